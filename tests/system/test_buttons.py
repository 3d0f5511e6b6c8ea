"""Buttons that an answer asks for, on the real Pi."""

from __future__ import annotations

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.records import Message
from tests.system import SystemCase

MATRIX = "[[{Yes|please go on|success}{No|please stop}]{Later}]"


class Buttons(SystemCase):
    """One answer with a keyboard."""

    def press(self, message: Message, label: str) -> str:
        """The owner presses; returns the id of the press."""
        return self.system.telegram.chat.user_presses(message.message_id, label=label)

    @deferred
    async def toast(self, press: str, words: str) -> None:
        """Wait until a press is answered, and see how."""
        presses = self.system.telegram.chat.world.presses
        found = await self.system.telegram.when(lambda: getattr(presses.get(press), "answer", None))
        self.assertEqual(found["text"], words)

    def looks(self, message: Message) -> list[list[tuple[str, str | None]]]:
        """Labels and styles."""
        return [[(b["text"], b.get("style")) for b in row] for row in message.keyboard]

    @deferred
    async def test_buttons(self) -> None:
        """Each press reaches the model once, whatever was killed between."""
        (thread,) = await self.start("alpha")
        said = f"Shall I?\\n\\n<!-- telegram_buttons {MATRIX} -->"
        self.system.say(f"[[say '{said}']]", thread)
        message = await self.system.telegram.when_message(lambda m: m.keyboard, thread=thread)
        self.assertEqual(message.text, "Shall I?")
        self.assertEqual(self.looks(message), [[("Yes", None), ("No", None)], [("Later", None)]])
        await self.toast(self.press(message, "Yes"), "Queued.")
        answer = await self.system.answer("You said: please go on", thread)
        self.assertEqual(answer.reply_to, message.message_id)
        (request,) = self.system.prompts("] please go on")
        self.assertRegex(request.text, r"\A\[telegram\|thread:[^]]+\] please go on\Z")
        await self.system.telegram.when(lambda: message.keyboard[0][0].get("style") == "success")
        await self.toast(self.press(message, "Yes"), "Already queued.")
        self.system.workers()[0].kill()
        self.press(message, "No")
        await self.system.answer("You said: please stop", thread)
        assert self.system.daemon is not None
        await self.system.restart_daemon()
        await self.toast(self.press(message, "Later"), "Queued.")
        await self.system.answer("You said: Later", thread)
        await self.system.telegram.when(
            lambda: (
                self.looks(message)
                == [[("Yes", "success"), ("No", "primary")], [("Later", "primary")]]
            )
        )
        for text in ("please go on", "please stop", "Later"):
            self.once(f"You said: {text}", thread)
            self.prompted_once(f"] {text}")

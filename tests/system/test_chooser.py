"""Messages that belong to nobody, on real workers: where the operator says, exactly once."""

from __future__ import annotations

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.records import Message
from tests.system import SystemCase


class Chooser(SystemCase):
    """What is written in All, and in Threads that no worker has."""

    def press(self, message: Message, label: str) -> None:
        """Press a button."""
        self.system.telegram.chat.user_presses(message.message_id, label=label)

    def threads(self) -> list[int]:
        """The Threads there are."""
        return [thread.thread_id for thread in self.system.telegram.chat.threads]

    @deferred
    async def chooser(self, label: str, thread: int | None) -> Message:
        """Fire with the message in that place that has this button."""
        return await self.system.telegram.when_message(
            lambda m: any(b["text"] == label for row in m.keyboard for b in row), thread=thread
        )

    @deferred
    async def test_choices(self) -> None:
        """Forward, restore, a command in All and a dismissal, with two workers."""
        alpha, beta = await self.start("alpha", "beta")
        # As people do it: a text outside of every Thread opens one.
        place = self.system.say("to whom?").thread_id
        assert place is not None
        asked = await self.chooser("↪️ A", place)
        self.assertEqual(self.system.prompts("to whom?"), [])
        self.press(asked, "↪️ B")
        await self.system.answer("You said: to whom?", beta)
        await self.system.telegram.when(lambda: place not in self.threads())
        self.prompted_once("to whom?")

        self.system.say("/status")
        asked = await self.chooser("↪️ A", None)
        self.assertIn("You used /status from the All tab.", asked.text or "")
        self.press(asked, "↪️ A")
        await self.system.telegram.when(lambda: not self.system.answers("Choose target", None))
        await self.system.until(
            lambda: self.rows("SELECT 1 FROM journal WHERE state <> 'settled'") == [], "an end"
        )

        place = self.system.say("never mind").thread_id
        assert place is not None
        asked = await self.chooser("✖️ Dismiss", place)
        self.press(asked, "✖️ Dismiss")
        await self.system.answer("✖️ Dismissed", place)
        self.assertEqual(self.system.prompts("never mind"), [])
        self.assertIn(place, self.threads())

        self.system.say("take this one", place)
        asked = await self.chooser("🔁 Replace/restore thread…", place)
        self.press(asked, "🔁 Replace/restore thread…")
        await self.chooser("➡️ A", place)
        self.press(asked, "➡️ A")
        await self.system.answer("You said: take this one", place)
        await self.system.telegram.when(lambda: alpha not in self.threads())
        self.prompted_once("take this one")
        names = {t.thread_id: t.name for t in self.system.telegram.chat.threads}
        self.assertEqual((names[place], names[beta]), ("A", "B"))
        self.system.say("and more", place)
        await self.system.answer("You said: and more", place)
        self.assertEqual(self.rows("SELECT * FROM choosers"), [])

    @deferred
    async def test_killed_between_choice_and_settlement(self) -> None:
        """The daemon dies when the choice is stored and the worker has not answered: once."""
        (alpha,) = await self.start("alpha")
        place = self.system.say("only once").thread_id
        assert place is not None
        asked = await self.chooser("↪️ A", place)
        (worker,) = self.system.workers()
        worker.suspend()
        self.press(asked, "↪️ A")
        await self.system.until(
            lambda: self.rows("SELECT state FROM choosers") == ["dispatching"], "the choice"
        )
        assert self.system.daemon is not None
        await self.system.daemon.kill()
        worker.resume()
        await self.system.start_daemon()
        await self.system.answer("You said: only once", alpha)
        await self.system.telegram.when(lambda: place not in self.threads())
        self.prompted_once("only once")
        self.once("You said: only once", alpha)

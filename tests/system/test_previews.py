"""The answer while it is written, with the real Pi."""

from __future__ import annotations

import signal

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase

WORDS = "Some words that are shown already. "


class StandIn(SystemCase):
    """A Telegram without drafts: a message stands in, and never stays beside its answer."""

    @deferred
    async def test_message_goes(self) -> None:
        """It is silent, shows the words, and goes with the run; after a kill the next worker deletes it."""
        self.assistant(draftPreviews=True)
        for method in ("sendRichMessageDraft", "sendMessageDraft"):
            self.system.telegram.faults.add(
                method, "error", times=None, code=404, description="Not Found: method not found"
            )
        (thread,) = await self.start("alpha")
        preview = await self.shown("first", thread)
        self.system.model.open_gate("first")
        await self.system.answer("The end of first.", thread)
        await self.gone(preview)
        self.once("The end of first.", thread)
        self.assertEqual(len(self.system.answers(WORDS.strip(), thread)), 1)
        preview = await self.shown("second", thread)
        (worker,) = self.system.workers()
        worker.send_signal(signal.SIGKILL)
        await self.gone(preview)
        self.assertEqual(len(self.system.answers(WORDS.strip(), thread)), 1)
        self.system.model.open_gate("second")

    @deferred
    async def shown(self, name: str, thread: int) -> int:
        """Begin a run that waits in its middle; fires with the message that shows what Pi wrote."""
        before = {message.message_id for message in self.system.answers(WORDS.strip(), thread)}
        self.system.say(
            f"[[say text='{WORDS}']] [[gate {name}]] [[say text='The end of {name}.']]", thread
        )
        message = await self.system.telegram.when_message(
            lambda m: m.text.startswith(WORDS.strip()) and m.message_id not in before, thread=thread
        )
        return int(message.message_id)

    async def gone(self, message_id: int) -> None:
        """Wait until a message is deleted."""
        await self.system.until(
            lambda: all(m.message_id != message_id for m in self.system.telegram.chat.messages()),
            "the end of the preview",
        )

"""A run of the real Pi, as the operator sees it beside its answer."""

from __future__ import annotations

from typing import Any

from pitelegram.bridge.activity.lines import INTERRUPTED
from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase

TOKEN = "987654321:AAHplantedplantedplantedplantedplanted"
SECRET = "hunter2-planted"


def shown_by(call: Any) -> str:
    """The text of a call, or the source of its rich message."""
    return str(call.values.get("text") or call.values.get("rich_message") or "")


class Activity(SystemCase):
    """Tools, thoughts, words before the answer, a retry."""

    @deferred
    async def test_verbose(self) -> None:
        """Silent and before the answer, with results, without secrets; words before it come once."""
        await self.system.start_daemon()
        thread = await self.system.start_worker("alpha")
        self.system.say(
            f"[[think 'I think of it for some time, then I use a tool for it.']]"
            f"[[say 'First I look.']][[tool bash 'echo {TOKEN} password={SECRET}; echo got-it']]"
            "[[say 'All is well.']]",
            thread,
        )
        await self.system.answer("All is well.", thread)
        texts = [message.text for message in self.system.telegram.chat.from_bot(thread)]
        names = ("💭 I think of it", "First I look.", "✅ Bash", "All is well.")
        places = [[i for i, text in enumerate(texts) if text.startswith(name)] for name in names]
        self.assertEqual([len(found) for found in places], [1, 1, 1, 1], texts)
        thoughts, comment, tool, answer = (found[0] for found in places)
        self.assertEqual(max(thoughts, comment, tool, answer), answer)
        self.assertIn("got-it", texts[tool])
        self.assertIn("[REDACTED_BOT_TOKEN]", texts[tool])
        sent = [(call, shown_by(call)) for call in self.system.telegram.calls if shown_by(call)]
        for _, text in sent:
            self.assertNotIn(TOKEN.partition(":")[2], text)
            self.assertNotIn(SECRET, text)
        silent = {
            name: [
                call.values.get("disable_notification")
                for call, text in sent
                if call.method.startswith("send") and name in text
            ]
            for name in ("💭", "First I look.", "Bash", "All is well.")
        }
        self.assertEqual(silent["All is well."], [None])
        for name in ("💭", "First I look.", "Bash"):
            self.assertEqual(silent[name], ["true"], name)

    @deferred
    async def test_retry(self) -> None:
        """A retry is a silent line that is gone when the answer is there."""
        self.system.model.write_models_json(self.system.agent_dir, retry=True)
        (thread,) = await self.start("alpha")
        self.system.say("[[error 503 times=1]]", thread)
        shown = await self.system.answer("🔁 Retry 1 of 3 in ", thread)
        await self.system.answer("The provider works again.", thread)
        await self.system.until(
            lambda: not self.system.answers("🔁", thread), "the end of the line", timeout=5
        )
        self.assertIn("scripted error 503", shown.text)
        (sent,) = [c for c in self.system.telegram.calls if shown.text in c.values.get("text", "")]
        self.assertEqual(sent.values["disable_notification"], "true")

    @deferred
    async def test_killed_worker(self) -> None:
        """What a killed worker left at work says so once the next one is there, and keeps what it showed."""
        (thread,) = await self.start("alpha")
        self.system.say("[[tool bash 'echo begun; sleep 600']]", thread)
        shown = await self.system.answer("🔧 Bash", thread)
        await self.system.until(lambda: "update" in self.shown(shown.message_id), "its output")
        (worker,) = self.system.workers()
        worker.kill()
        await self.system.until(lambda: INTERRUPTED in self.shown(shown.message_id), "the mark")
        self.assertIn("echo begun; sleep 600", self.shown(shown.message_id))

    def shown(self, message_id: int) -> str:
        """What a message of the chat shows now."""
        return self.system.telegram.chat.message(message_id).text

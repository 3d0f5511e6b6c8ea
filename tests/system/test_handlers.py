"""Programs of the operator, with the real daemon, worker and Pi."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from pitelegram.bridge.handlerwords import NOBODY_LISTENS
from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.chat import Attachment
from tests.system import SystemCase


class Handlers(SystemCase):
    """Voice messages and texts in one worker's Thread."""

    @deferred
    async def set_handlers(
        self, *entries: dict[str, Any], name: str = "inboundHandlers", **more: Any
    ) -> None:
        """Write the setting as an operator does, while everything runs; wait until it is told."""
        path = self.system.agent_dir / "telegram.json"
        settings = json.loads(path.read_text())
        path.write_text(json.dumps({**settings, name: list(entries), **more}))
        await self.system.until(lambda: self.told(name) == list(entries), "the setting")

    def told(self, name: str) -> Any:
        """The setting as the worker has it."""
        (path,) = (self.system.agent_dir / "telegram" / "workers").glob("*.sqlite3")
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            rows = connection.execute("SELECT value FROM meta WHERE key = 'settings'").fetchall()
        connection.close()
        return json.loads(rows[0][0]).get(name) if rows else None

    def speak(self, thread: int, text: str) -> None:
        """The owner sends a voice message that says this."""
        voice = Attachment(kind="voice", data=text.encode(), mime_type="audio/ogg")
        self.system.telegram.chat.user_sends("", thread, attachment=voice)

    @deferred
    async def test_voice(self) -> None:
        """A transcriber's words are the prompt; one that is missing or fails is told, and Pi gets the
        file; a change of the setting counts at once; no token reaches the program (demands 63, 64).
        """
        (thread,) = await self.start("alpha")
        self.speak(thread, "unheard")
        await self.system.answer(NOBODY_LISTENS, thread)
        await self.system.until(lambda: len(self.system.prompts("[attachments]")) == 1, "a prompt")
        listen = "sh -c 'cat \"$0\"; echo; env' {file}"
        await self.set_handlers({"type": "voice", "template": listen})
        self.speak(thread, "turn the light on")
        await self.system.until(lambda: self.system.prompts("turn the light on"), "the words")
        await self.system.answer("🎤 turn the light on", thread)
        (request,) = self.system.prompts("turn the light on")
        self.assertIn("PI_TELEGRAM_WORKER_MARK=", request.text)
        self.assertNotIn(self.system.telegram.token, request.text)
        before = len(self.system.model.requests)
        await self.set_handlers({"type": "voice", "label": "deaf", "template": "false"})
        self.speak(thread, "second")
        await self.system.answer("deaf failed on the voice message: exit code 1", thread)
        await self.system.until(lambda: len(self.system.model.requests) > before, "a prompt")
        self.assertIn("[attachments]", self.system.model.requests[-1].text)

    @deferred
    async def test_spoken_answer(self) -> None:
        """A recording comes behind the prose with its words, once; where the program fails they are shown."""
        (thread,) = await self.start("alpha")
        program = 'sh -c \'printf OggS > "$0"; cat >> "$0"\' {ogg}'
        await self.set_handlers(
            {"type": "voice", "template": program, "output": "ogg"},
            name="outboundHandlers",
            voice={"replyMode": "hidden", "sendTranscript": True},
        )
        self.system.say("[[say text='Read this.\\n<!-- telegram_voice: Hello there -->']]", thread)
        message = await self.system.answer("Hello there", thread)
        voice = message.content["voice"]
        self.assertEqual(
            self.system.telegram.chat.world.files.get(voice["file_id"]).data, b"OggSHello there"
        )
        (prose,) = self.system.answers("Read this.", thread)
        self.assertLess(prose.message_id, message.message_id)
        await self.set_handlers({"type": "voice", "template": "false"}, name="outboundHandlers")
        self.system.say("[[say text='<!-- telegram_voice: Good night -->']]", thread)
        await self.system.answer("Failed to send voice reply", thread)
        (shown,) = self.system.answers("Good night", thread)
        self.assertNotIn("voice", shown.content)

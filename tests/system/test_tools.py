"""The agent's own tools, with the real Pi and the extension in it."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


def a_png(width: int = 2, height: int = 2) -> bytes:
    """Return a small picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + b"\x7f" * 3 * width for _ in range(height))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


class Tools(SystemCase):
    """C{telegram_attach}, C{telegram_message} and what Pi is told."""

    @deferred
    async def test_files_follow_the_answer(self) -> None:
        """A text and a picture come behind the answer, in order, once; what cannot be sent is told to Pi."""
        (thread,) = await self.start("alpha")
        project = self.system.projects / "alpha"
        (project / "notes.txt").write_text("remember the milk")
        (project / "dot.png").write_bytes(a_png())
        self.system.say(
            '[[tool telegram_attach {"paths": ["notes.txt", "dot.png"], "caption": "as asked"}]]'
            "[[say text='Here they are.']]",
            thread,
        )
        await self.system.until(lambda: len(self.files(thread)) == 2, "the files")
        answer = await self.system.answer("Here they are.", thread)
        document, photo = self.files(thread)
        self.assertEqual((document.text, photo.text), ("as asked", ""))
        self.assertLess(answer.message_id, document.message_id)
        self.assertLess(document.message_id, photo.message_id)
        self.assertEqual(self.data(document.content["document"]), b"remember the milk")
        self.assertEqual(self.data(photo.content["photo"][-1]), a_png())
        self.system.say(
            '[[tool telegram_attach {"paths": ["missing.txt"]}]][[tool telegram_message'
            ' {"text": "hi"}]]',
            thread,
        )
        told = await self.system.answer("The tool said", thread)
        self.assertIn("Telegram agent turn routing is unavailable", told.text)
        self.assertEqual(len(self.files(thread)), 2)
        results = str([request.results for request in self.system.model.requests])
        self.assertIn("Queued 2 Telegram attachments.", results)
        self.assertIn("Not a file: missing.txt", results)

    def files(self, thread: int) -> list[Any]:
        """The bot's messages with files."""
        messages = self.system.telegram.chat.from_bot(thread)
        return [m for m in messages if "document" in m.content or "photo" in m.content]

    def data(self, about: dict[str, Any]) -> bytes:
        """The bytes of a file in the chat."""
        file = self.system.telegram.chat.world.files.get(about["file_id"])
        assert file is not None
        return bytes(file.data)

    @deferred
    async def test_what_pi_is_told(self) -> None:
        """With a prompt from Telegram all of it, with one from elsewhere a line; the tools are there."""
        (thread,) = await self.start("alpha")
        self.system.say("hello", thread)
        await self.system.answer("You said: hello", thread)
        done = await self.system.cli("workers", "prompt", "alpha", "from the shell")
        self.assertEqual(done.code, 0, done.err)
        await self.system.answer("You said: from the shell", thread)
        asked = {
            name: next(r for r in self.system.model.requests if name in r.text)
            for name in ("hello", "from the shell")
        }
        self.assertIn("This message came from Telegram", asked["hello"].system)
        self.assertNotIn("This message came from Telegram", asked["from the shell"].system)
        self.assertIn("connected to a Telegram chat", asked["from the shell"].system)
        offered = {"telegram_attach", "telegram_message", "telegram_help"}
        self.assertLessEqual(offered, set(asked["hello"].offered))

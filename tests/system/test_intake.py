"""Every kind of message, through the sandbox to the real Pi, to the letter."""

from __future__ import annotations

import re
import struct
import zlib
from typing import Any

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.chat import Attachment
from pitelegram.sandbox.posting import post, send_album
from tests.system import SystemCase

ALBUM_DELAY = 5.0
EVE = {"forward_origin": {"type": "hidden_user", "sender_user_name": "Eve", "date": 1}}
PASTE = "".join(f"line {number:05d} of it\n" for number in range(800))[:12_000]


def png(shade: int) -> bytes:
    """Return a small picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes([shade] * 8) for _ in range(8))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    )


def picture(shade: int) -> Attachment:
    """Return a photo."""
    return Attachment(kind="photo", data=png(shade), mime_type="image/png")


class Intake(SystemCase):
    """One worker, one batch of everything."""

    @deferred
    async def test_every_kind(self) -> None:
        """Pi gets each message as it was meant, in order, pictures with it."""
        (thread,) = await self.start("alpha")
        await self.gate(thread)
        expected = self.send_all(thread)
        await self.system.until(self.all_gathered, "the journal", timeout=60)
        self.system.model.open_gate("g")
        await self.system.until(
            lambda: len(self.asked_for()) >= len(expected) + 1, "every prompt", timeout=60
        )
        found = self.asked_for()[1:]
        self.assertEqual([text for text, _ in found], [text for text, _ in expected])
        self.assertEqual([count for _, count in found], [count for _, count in expected])
        # Of voice and audio: nobody could write either down, which is said once.
        self.assertEqual(len(self.system.answers("🎤", thread)), 1)

    @deferred
    async def gate(self, thread: int) -> None:
        """Pi is at work until the gate opens; the time is told once."""
        self.system.say("[[gate g]]", thread)
        request = await self.system.model.when_request(lambda r: "[[gate g]]" in r.text)
        self.tag = request.text.split("]")[0] + "]"
        self.assertTrue(self.tag.startswith("[telegram|thread:"), self.tag)
        told = r"\n\n\[time\] \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+\Z"
        self.assertRegex(request.text, re.escape(f"{self.tag} [[gate g]]") + told)

    def send_all(self, thread: int) -> list[tuple[str, int]]:
        """Send one message of each kind; returns the prompts and the pictures of each."""
        telegram = self.system.telegram
        chat = telegram.chat
        telegram.faults.add("file", "delay", times=10, seconds=ALBUM_DELAY)
        (ready,) = [m for m in chat.from_bot(thread) if "alpha is ready" in m.text]
        wanted: list[tuple[str, int]] = []

        album = send_album(chat, [picture(n) for n in range(10)], "ten", thread)
        listed = "".join(f"\n- /photo-{m.message_id}.jpg" for m in album)
        wanted.append((f"{self.tag} ten\n\n[attachments] <dir>{listed}", 10))

        post(chat, {"text": "news", **EVE}, thread)
        chat.user_sends("what of it?", thread)
        chat.user_sends("and of this?", thread)
        post(chat, {"text": "more news", **EVE}, thread)
        wanted.append((f"{self.tag} what of it?\n\n[forward|from:Eve] news", 0))
        wanted.append((f"{self.tag} and of this?\n\n[forward|from:Eve] more news", 0))

        files = [
            ("photo", png(200), "", "a photo", "photo-{}.jpg", 1, ""),
            ("document", b"one\ntwo\n", "notes.txt", "", "notes.txt", 0, "[notes.txt]\none\ntwo\n"),
            ("voice", b"OggS\0", "", "", "voice-{}.ogg", 0, ""),
            ("video", b"\0\0\0\x18ftyp", "film.mp4", "", "film.mp4", 0, ""),
            ("audio", b"ID3\0", "song.mp3", "", "song.mp3", 0, ""),
        ]
        types = {"voice": "audio/ogg", "document": "text/plain", "video": "video/mp4"}
        for kind, data, name, caption, shown, pictures, output in files:
            mime = types.get(kind, "application/octet-stream")
            attachment = Attachment(kind=kind, data=data, name=name, mime_type=mime)
            sent = chat.user_sends(caption, thread, attachment=attachment)
            opening = f"{self.tag} {caption}" if caption else self.tag
            named = f"{opening}\n\n[attachments] <dir>\n- /{shown.format(sent.message_id)}"
            made = f"\n\n[outputs]\n- {output}" if output else ""
            wanted.append((named + made, pictures))

        sticker = chat.world.files.add("sticker", b"\x1f\x8b\0", "", "")
        about = {**sticker.as_json(), "emoji": "😀", "set_name": "Cats", "is_animated": True}
        sent = post(chat, {"sticker": about}, thread)
        wanted.append(
            (
                f"{self.tag}\n\n[sticker] 😀 from the set Cats\n\n"
                f"[attachments] <dir>\n- /sticker-{sent.message_id}.tgs",
                0,
            )
        )
        film = chat.world.files.add("animation", b"\0\0\0\x18ftyp", "", "video/mp4").as_json()
        sent = post(chat, {"animation": film, "document": film}, thread)
        shown = f"animation-{sent.message_id}.mp4"
        wanted.append((f"{self.tag}\n\n[attachments] <dir>\n- /{shown}", 0))
        link = {"type": "text_link", "offset": 4, "length": 4, "url": "https://example.org/x"}
        post(chat, {"text": "see this", "entities": [link]}, thread)
        wanted.append((f"{self.tag} see this (https://example.org/x)", 0))
        origin = {"type": "channel", "chat": {"id": -100, "type": "channel", "title": "News"}}
        elsewhere = {"external_reply": {"origin": {**origin, "message_id": 3, "date": 1}}}
        post(chat, {"text": "true?", **elsewhere, "quote": {"text": "a claim"}}, thread)
        wanted.append((f"{self.tag} true?\n\n[reply|from:News] a claim", 0))
        place = {"latitude": 52.5, "longitude": 13.25}
        for members, words in (
            ({"location": place}, "[location] 52.5, 13.25"),
            (
                {"venue": {"location": place, "title": "Zoo", "address": "Gate 1"}},
                "[venue] Zoo, Gate 1 (52.5, 13.25)",
            ),
            ({"contact": {"first_name": "Ann", "phone_number": "+49"}}, "[contact] Ann, +49"),
            (
                {"poll": {"id": "1", "question": "Tea?", "options": [{"text": "Yes"}]}},
                "[poll] Tea?\n- Yes",
            ),
            ({"dice": {"emoji": "🎲", "value": 6}}, "[dice] 🎲 6"),
            ({"story": {"id": 1, "chat": {"first_name": "Ann"}}}, "[story] of Ann"),
            ({"hologram": {"x": 1}}, "[message] of an unknown kind: hologram"),
        ):
            post(chat, members, thread)
            wanted.append((f"{self.tag}\n\n{words}", 0))

        mistyped = chat.user_sends("mistyped", thread)
        chat.user_edits(mistyped.message_id, "corrected")
        wanted.append((f"{self.tag} corrected", 0))

        chat.user_sends("[time] is money", thread)
        wanted.append((f"{self.tag} \\[time] is money", 0))
        chat.user_sends("why?", thread, ready.message_id, quote={"text": "ready", "position": 0})
        wanted.append((f"{self.tag} why?\n\n[reply|from:bot] ready", 0))
        chat.user_sends(PASTE, thread)
        wanted.append((f"{self.tag} {PASTE}", 0))
        return wanted

    def all_gathered(self) -> bool:
        """Whether every update is with the worker."""
        return self.rows("SELECT count(*) FROM journal WHERE state <> 'settled'") == [0]

    def asked_for(self) -> list[tuple[str, int]]:
        """The prompts that the model got, file names without what makes them unique."""
        requests: list[Any] = [r for r in self.system.model.requests if r.tools and not r.results]
        downloads = str(self.system.agent_dir / "tmp" / "telegram" / "downloads")
        return [
            (re.sub(r"- /[0-9a-f]{12}-", "- /", r.text.replace(downloads, "<dir>")), r.pictures)
            for r in requests
        ]

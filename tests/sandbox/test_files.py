"""Files in both directions, and their limits."""

from __future__ import annotations

from typing import Any

from pitelegram.sandbox.parameters import Part
from tests.sandbox.helpers import BotTestCase

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR"


def png(width: int, height: int, size: int = 64) -> bytes:
    """Return something with the head of a PNG."""
    return (PNG + width.to_bytes(4, "big") + height.to_bytes(4, "big")).ljust(size, b"\0")


class FileTests(BotTestCase):
    """Files in both directions."""

    def upload(self, method: str, field: str, data: bytes, **params: Any) -> Any:
        """Send an upload under its own field."""
        parts = {field: Part(field, "../evil name.tXt", "text/plain", data)}
        return self.call(method, parts, chat_id=self.owner, **params)

    def test_document(self) -> None:
        """A file comes back as it went; its path keeps only an extension."""
        sent = self.upload(
            "sendDocument", "document", b"hello", caption="<b>c</b>", parse_mode="HTML"
        )
        document = sent["document"]
        self.assertEqual((document["file_size"], sent["caption"]), (5, "c"))
        link = self.call("getFile", file_id=document["file_id"])
        self.assertEqual(link["file_path"], "documents/file_0.tXt")
        self.assertEqual(self.world.files.by_path(link["file_path"]).data, b"hello")
        again = self.call("sendDocument", chat_id=self.owner, document=document["file_id"])
        self.assertEqual(again["document"]["file_id"], document["file_id"])

    def test_attach(self) -> None:
        """A parameter may point to a part of another name."""
        parts = {"p1": Part("p1", "a.ogg", "audio/ogg", b"x")}
        sent = self.call("sendVoice", parts, chat_id=self.owner, voice="attach://p1", duration=3)
        self.assertEqual((sent["voice"]["duration"], sent["voice"]["mime_type"]), (3, "audio/ogg"))
        self.assertFalse(self.world.warnings)

    def test_refusals(self) -> None:
        """Missing, empty, unknown, of another kind, too big a caption."""
        place = {"chat_id": self.owner}
        self.assert_refused("there is no document in the request", "sendDocument", **place)
        empty = {"document": Part("document", "a", "text/plain", b"")}
        self.assertIn("file must be non-empty", self.refused("sendDocument", empty, **place))
        self.assert_refused(
            "wrong file identifier/HTTP URL specified", "sendDocument", **place, document="nonsense"
        )
        self.assert_refused("invalid file_id", "getFile", file_id="nonsense")
        sent = self.upload("sendDocument", "document", b"x")
        self.assertIn(
            "can't use file of type Document as Audio",
            self.refused("sendAudio", **place, audio=sent["document"]["file_id"]),
        )
        self.assert_refused(
            "message caption is too long", "sendDocument", **place, caption="x" * 1025
        )

    def test_photos(self) -> None:
        """Sizes are read; what is no picture or of an odd shape is refused."""
        sent = self.upload("sendPhoto", "photo", png(640, 480))
        self.assertEqual(sent["photo"][-1]["width"], 640)
        for data, problem in (
            (b"no picture", "IMAGE_PROCESS_FAILED"),
            (png(9000, 2000), "PHOTO_INVALID_DIMENSIONS"),
            (png(2100, 100), "PHOTO_INVALID_DIMENSIONS"),
            (png(100, 100, 10 * 1024 * 1024 + 1), "is too big for a photo"),
        ):
            parts = {"photo": Part("photo", "a.png", "image/png", data)}
            self.assertIn(problem, self.refused("sendPhoto", parts, chat_id=self.owner))

    def test_size_limits(self) -> None:
        """Over 50 MB cannot be sent (413); over 20 MB cannot be fetched."""
        big = b"x" * (20 * 1024 * 1024 + 1)
        sent = self.upload("sendDocument", "document", big)
        self.assert_refused("file is too big", "getFile", file_id=sent["document"]["file_id"])
        parts = {"document": Part("document", "a", "text/plain", big * 3)}
        failure = self.failureResultOf(self.start("sendDocument", parts, chat_id=self.owner))
        self.assertEqual(failure.value.code, 413)

    def test_lower_limits(self) -> None:
        """A test has limits of its own: the last byte is taken, one more is not, in albums too."""
        files = self.world.files
        files.max_upload, files.max_photo = 200, 100
        self.upload("sendVoice", "voice", b"x" * 200)
        self.upload("sendPhoto", "photo", png(9, 9, 100))
        big = {"voice": Part("voice", "a", "audio/ogg", b"x" * 201)}
        failure = self.failureResultOf(self.start("sendVoice", big, chat_id=self.owner))
        self.assertEqual(failure.value.code, 413)
        problem = "file of size 101 bytes is too big for a photo; the maximum size is 100 bytes"
        parts = {f"p{n}": Part(f"p{n}", "a.png", "image/png", png(9, 9, 100 + n)) for n in (0, 1)}
        media = [{"type": "photo", "media": f"attach://{name}"} for name in parts]
        said = self.refused("sendMediaGroup", parts, chat_id=self.owner, media=media)
        self.assertEqual(said, f"Bad Request: {problem}")
        self.assertEqual(len(self.chat.messages()), 2)

    def test_album(self) -> None:
        """Items share an id and come as messages of their own."""
        parts = {f"p{n}": Part(f"p{n}", "a.png", "image/png", png(9, 9)) for n in range(3)}
        media = [{"type": "photo", "media": f"attach://p{n}"} for n in range(3)]
        media[0]["caption"] = "c"
        sent = self.call("sendMediaGroup", parts, chat_id=self.owner, media=media)
        self.assertEqual(len({message["media_group_id"] for message in sent}), 1)
        self.assertEqual([m.get("caption") for m in sent], ["c", None, None])

    def test_album_refusals(self) -> None:
        """Too many, or kinds that do not mix; nothing is sent then."""
        item = {"type": "document", "media": "attach://p"}
        place = {"chat_id": self.owner}
        self.assert_refused(
            "too many messages to send as an album", "sendMediaGroup", **place, media=[item] * 11
        )
        self.assert_refused(
            "Document can't be mixed with other media types",
            "sendMediaGroup",
            **place,
            media=[item, {"type": "photo", "media": "attach://q"}],
        )
        self.assertEqual(self.chat.messages(), [])

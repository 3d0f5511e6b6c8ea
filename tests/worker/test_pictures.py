"""Pictures are given to Pi as it wants them; what cannot be given is said."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, execute

from pitelegram.bridge import labels
from pitelegram.bridge.interfaces import FileItem
from pitelegram.testing.worker import CHAT
from pitelegram.worker.pictures import LARGE, Pictures, _read
from pitelegram.worker.reading import MAX_PICTURE, pictures
from tests.worker.test_queue import RigCase

PNG = b"\x89PNG\r\n\x1a\nrest"


class PictureTests(RigCase):
    """From C{content["images"]} to Pi's C{images}."""

    def picture(self, name: str, data: bytes = PNG) -> dict[str, Any]:
        """Write a picture and return its entry."""
        path = self.rig.base / name
        path.write_bytes(data)
        return {"path": str(path), "mime": "image/png"}

    def hand(self, *images: Any) -> list[dict[str, Any]]:
        """Hold a prompt with these and return what Pi got of them."""
        rig = self.started()
        rig.inbox.admit("p", "telegram", "message", b"{}", None, None, CHAT, None, 1)
        (row,) = rig.inbox.rows("admitted")
        rig.inbox.hold(row.seq, "look", {"images": list(images)})
        rig.parts.queue.kick(new=True)
        rig.run(1)
        self.assertEqual(rig.prompts(), ["look"])
        (given,) = rig.host.images
        return given

    def test_given(self) -> None:
        """Base64 and the type, in their order."""
        given = self.hand(self.picture("a"), self.picture("b", b"GIF"))
        self.assertEqual(
            [(each["type"], base64.b64decode(each["data"]), each["mimeType"]) for each in given],
            [("image", PNG, "image/png"), ("image", b"GIF", "image/png")],
        )
        self.assertEqual(self.rig.link.texts, ["You said: look"])

    def test_missing(self) -> None:
        """A file that is gone, empty, too large or no file is left out, and that is said once."""
        large = self.rig.base / "large"
        with large.open("wb") as file:
            file.truncate(MAX_PICTURE + 1)
        os.mkfifo(self.rig.base / "pipe")
        wanted = [{"path": str(self.rig.base / name), "mime": "image/png"} for name in "xy"]
        wanted += [{"path": str(large), "mime": "image/png"}, self.picture("empty", b"")]
        wanted += [{"path": str(self.rig.base / "pipe"), "mime": "image/png"}]
        given = self.hand(*wanted, self.picture("a"))
        self.assertEqual(len(given), 1)
        self.assertEqual(
            sorted(self.rig.link.texts), ["You said: look", labels.pictures_left_out("look", 5)]
        )

    def test_one_rule(self) -> None:
        """What was found small enough when the prompt was made is given, however many there are."""
        sizes = [MAX_PICTURE] * 3 + [MAX_PICTURE, 40]
        files = []
        for number, size in enumerate(sizes):
            path = self.rig.base / f"p{number}"
            with path.open("wb") as file:
                file.write(PNG + bytes(13))
                file.truncate(size)
            files.append(
                FileItem(kind="photo", path=str(path), name=path.name, mime="image/png", size=size)
            )
        chosen = pictures(files)
        self.assertEqual([Path(each["path"]).name for each in chosen], ["p0", "p1", "p2"])
        self.assertEqual(len(self.hand(*chosen)), 3)
        self.assertNotIn(labels.pictures_left_out("look", 1), self.rig.link.texts)

    def test_planted_link(self) -> None:
        """Where a picture was, a link to somebody's file is not followed."""
        secret = self.rig.base / "secret"
        secret.write_bytes(PNG)
        wanted = self.picture("a")
        Path(wanted["path"]).unlink()
        Path(wanted["path"]).symlink_to(secret)
        self.assertEqual(self.hand(wanted), [])
        self.assertRaises(OSError, _read, wanted["path"], MAX_PICTURE)

    def test_damaged_content(self) -> None:
        """What is no picture's description is left out."""
        given = self.hand(None, {"path": 3}, {"path": "a\0b", "mime": "image/png"}, {"mime": "x/y"})
        self.assertEqual(given, [])

    def test_large_ones_in_a_thread(self) -> None:
        """Only what takes time leaves the reactor's thread."""
        threaded: list[Path] = []

        def in_thread(work: Any, path: str, *arguments: Any) -> Deferred[Any]:
            threaded.append(Path(path))
            return execute(work, path, *arguments)

        self.rig_pictures = Pictures(in_thread)
        rig = self.started()
        small, big = self.picture("small"), self.picture("big", b"x" * LARGE)
        rig.inbox.admit("p", "telegram", "message", b"{}", None, None, CHAT, None, 1)
        (row,) = rig.inbox.rows("admitted")
        rig.inbox.hold(row.seq, "look", {"images": [small, big]})
        (row,) = rig.inbox.rows("held")
        done = Deferred.fromCoroutine(self.rig_pictures.of(row))
        images, missing = self.successResultOf(done)
        self.assertEqual((len(images), missing), (2, 0))
        self.assertEqual(threaded, [rig.base / "big"])

    def test_pis_note_behind_the_text(self) -> None:
        """Pi adds a note about a picture to the text; the prompt is known by it all the same."""
        rig = self.started()
        real = rig.host._run
        note = "[Image: original 1800x1800, displayed at 900x900]"
        rig.host._run = lambda message: real(f"{message}\n\n{note}")
        rig.message("look", 1)
        rig.run(1)
        self.assertEqual(rig.states(), {"settled": 1})
        self.assertEqual(rig.parts.queue.hands.book.open, [])

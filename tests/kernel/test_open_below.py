"""Opening a file without following any link on the way."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.files import open_below


class OpenBelowTests(SynchronousTestCase):
    """L{open_below}."""

    def test_way(self) -> None:
        """A real way is gone, also through a directory that may not be listed; a link is not."""
        base = Path(self.mktemp()).absolute()
        (base / "a" / "b").mkdir(parents=True)
        (base / "a" / "b" / "file").write_text("words")
        (base / "link").symlink_to(base / "a")
        (base / "a" / "b" / "other").symlink_to("file")
        (base / "a").chmod(0o311)
        self.addCleanup((base / "a").chmod, 0o755)
        with os.fdopen(open_below(base, ("a", "b", "file"))) as file:
            self.assertEqual(file.read(), "words")
        for parts in (
            ("link", "b", "file"),
            ("a", "b", "other"),
            ("a", "file"),
            ("a", "b", "file", "x"),
        ):
            with self.assertRaises(OSError):
                open_below(base, parts)

"""Pi's sessions of a directory: found, ordered, and told apart."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.pi.sessionlist import MOST_LISTED, session_words, sessions_of


class ListCase(SynchronousTestCase):
    """A place for session files."""

    def setUp(self) -> None:
        """Make it."""
        self.home = Path(self.mktemp()).resolve()
        self.project = self.home.parent / "project"
        self.project.mkdir()
        (self.home / "--project--").mkdir(parents=True)

    def write(self, name: str, *records: Any, age: int = 0, cwd: Path | None = None) -> Path:
        """A session file."""
        path = self.home / name
        path.parent.mkdir(exist_ok=True)
        header = {"type": "session", "version": 3, "id": "x", "cwd": str(cwd or self.project)}
        lines = [r if isinstance(r, str) else json.dumps(r, separators=(",", ":")) for r in records]
        path.write_text("\n".join([json.dumps(header), *lines]) + "\n")
        os.utime(path, (10_000 - age, 10_000 - age))
        return path

    def said(self, text: Any) -> dict[str, Any]:
        """A message of the user."""
        return {"type": "message", "id": "1", "message": {"role": "user", "content": text}}


class Finding(ListCase):
    """L{sessions_of}."""

    def found(self) -> list[str]:
        """The names of what is found."""
        return [each.path.name for each in sessions_of(self.home, str(self.project))]

    def test_newest_first(self) -> None:
        """Of the directory, at the top and one below, by the time of their last change."""
        self.write("--project--/b.jsonl", age=5)
        self.write("c.jsonl", age=1)
        self.write("elsewhere/a.jsonl", age=9)
        self.write("--project--/other.jsonl", cwd=self.home)
        self.assertEqual(self.found(), ["c.jsonl", "b.jsonl", "a.jsonl"])

    def test_not_sessions(self) -> None:
        """Damaged files, other files, links and directories are none."""
        real = self.write("--project--/a.jsonl")
        (self.home / "bad.jsonl").write_bytes(b"\xff\n")
        (self.home / "notes.txt").write_text("x")
        (self.home / "dir.jsonl").mkdir()
        (self.home / "link.jsonl").symlink_to(real)
        outside = self.home.parent / "outside"
        outside.mkdir()
        (outside / "z.jsonl").write_bytes(real.read_bytes())
        (self.home / "linked").symlink_to(outside)
        os.mkfifo(self.home / "pipe.jsonl")
        self.assertEqual(self.found(), ["a.jsonl"])

    def test_nothing(self) -> None:
        """Where Pi never was there is nothing."""
        self.assertEqual(sessions_of(self.home / "none", str(self.project)), [])

    def test_many(self) -> None:
        """The list has an end."""
        for number in range(MOST_LISTED + 20):
            self.write(f"--project--/{number}.jsonl", age=number)
        found = self.found()
        self.assertEqual((len(found), found[0]), (MOST_LISTED, "0.jsonl"))


class Words(ListCase):
    """L{session_words}."""

    def test_name_and_first_words(self) -> None:
        """The last name that it was given, and the first message of the user."""
        path = self.write(
            "a.jsonl",
            {"type": "session_info", "id": "1", "name": "old"},
            self.said([{"type": "text", "text": " first "}]),
            self.said("second"),
            {"type": "session_info", "id": "2", "name": " new "},
        )
        self.assertEqual(session_words(path), ("new", "first"))

    def test_large(self) -> None:
        """In a large file both ends are looked at."""
        filler = [{"type": "custom", "data": "x" * 1000}] * 600
        path = self.write(
            "a.jsonl", self.said("first"), *filler, {"type": "session_info", "name": "late"}
        )
        self.assertEqual(session_words(path), ("late", "first"))

    def test_odd(self) -> None:
        """What is not understood is nothing."""
        path = self.write(
            "a.jsonl",
            '{"type":"session_info","name":7}',
            '{"type":"session_info" broken',
            '{"type":"message","message":"a"} "role":"user"',
            '{"x":"\\"role\\":\\"user\\""}',
            "[]",
            self.said(7),
        )
        self.assertEqual(session_words(path), ("", ""))
        self.assertEqual(session_words(self.home / "none.jsonl"), ("", ""))

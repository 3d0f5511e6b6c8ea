"""What a session file says about a prompt."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.pi.sessions import (
    Finished,
    NeverRan,
    SessionChanged,
    SessionMark,
    Unknown,
    after_mark,
    mark,
    outcome,
    outcomes,
    read_header,
    session_home,
)

HEADER = {"type": "session", "version": 3, "id": "s-1", "timestamp": "t", "cwd": "/p"}


class SessionTests(SynchronousTestCase):
    """L{pitelegram.pi.sessions}."""

    def setUp(self) -> None:
        """A fresh session file."""
        self.path = Path(self.mktemp())
        self.entries = 0
        self.append(HEADER)

    def append(self, *records: dict[str, Any]) -> None:
        """Write records as Pi does."""
        with self.path.open("ab") as file:
            for record in records:
                file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")

    def message(self, role: str, text: str, **more: Any) -> dict[str, Any]:
        """A message entry."""
        self.entries += 1
        content = [{"type": "text", "text": text}]
        message = {"role": role, "content": content, **more}
        return {"type": "message", "id": f"e{self.entries}", "parentId": None, "message": message}

    def user(self, text: str) -> None:
        """Pi took a message."""
        self.append(self.message("user", text))

    def assistant(self, text: str, reason: str = "stop") -> None:
        """Pi answered."""
        self.append(self.message("assistant", text, stopReason=reason))

    def test_header(self) -> None:
        """A session is known by its first line."""
        header = read_header(self.path)
        self.assertEqual((header.session_id, header.cwd, header.version), ("s-1", "/p", 3))

    def test_no_header(self) -> None:
        """Other files, pipes, directories and missing files are no sessions."""
        pipe = Path(self.mktemp())
        os.mkfifo(pipe)
        other = Path(self.mktemp())
        for content in (
            b"",
            b"garbage\n",
            b"[]\n",
            b'{"type":"message"}\n',
            b'{"type":"session"}\n',
        ):
            other.write_bytes(content)
            self.assertIsNone(read_header(other))
        for path in (pipe, Path("/"), Path("/no/such/file")):
            self.assertIsNone(read_header(path))

    def test_mark(self) -> None:
        """A mark is the end of the last whole line and the id of the entry there."""
        self.assertEqual(mark(self.path), SessionMark(self.path.stat().st_size, None))
        self.user("x")
        size = self.path.stat().st_size
        self.assertEqual(mark(self.path), SessionMark(size, "e1"))
        with self.path.open("ab") as file:
            file.write(b'{"type":"message","id":"cut')
        self.assertEqual(mark(self.path), SessionMark(size, "e1"))
        self.assertEqual(mark(Path("/no/such/file")), SessionMark(0, None))

    def test_mark_behind_a_huge_line(self) -> None:
        """The last entry is found when it is larger than any buffer, and with odd key order."""
        self.user("y" * 300_000)
        self.assertEqual(mark(self.path).entry, "e1")
        self.append({"x": "z" * 300_000, "id": "odd", "type": "custom"})
        self.assertEqual(mark(self.path).entry, "odd")

    def test_after_mark(self) -> None:
        """Only whole entries behind the mark are given."""
        self.user("a")
        place = mark(self.path)
        self.user("b")
        with self.path.open("ab") as file:
            file.write(b'{"type":"mess')
        self.assertEqual([entry["id"] for entry in after_mark(self.path, place)], ["e2"])

    def test_fresh_file(self) -> None:
        """A mark of a file that did not exist covers the whole file, header left out."""
        place = mark(Path("/no/such/file"))
        self.user("a")
        self.assertEqual([entry["id"] for entry in after_mark(self.path, place)], ["e1"])
        self.assertEqual(outcome(Path("/no/such/file"), place, "a"), NeverRan())

    def test_never_ran(self) -> None:
        """Without a user entry behind the mark the prompt never ran."""
        self.user("earlier")
        self.assistant("earlier answer")
        place = mark(self.path)
        self.append({"type": "model_change", "id": "m", "modelId": "x"})
        self.assertEqual(outcome(self.path, place, "hello"), NeverRan())

    def test_finished(self) -> None:
        """A user entry with an answer that stopped is finished; tools may come between."""
        place = mark(self.path)
        self.user("hello")
        self.assistant("let me look", "toolUse")
        self.append(self.message("toolResult", "output"))
        self.assistant("the answer")
        self.assertEqual(outcome(self.path, place, "hello"), Finished("the answer", "e4"))

    def test_unknown(self) -> None:
        """Cut, aborted and failed answers are not known to be whole."""
        place = mark(self.path)
        self.user("hello")
        self.assertEqual(outcome(self.path, place, "hello"), Unknown())
        for reason in ("aborted", "error", "length", "toolUse"):
            self.assistant("part", reason)
            self.assertEqual(outcome(self.path, place, "hello"), Unknown())

    def test_two_prompts_of_one_run(self) -> None:
        """Of two prompts handed over together each is judged by its own entry."""
        place = mark(self.path)
        self.user("one")
        self.assistant("answer one")
        both = outcomes(self.path, place, ["one", "two"])
        self.assertEqual(both, [Finished("answer one", "e2"), NeverRan()])
        self.user("two")
        both = outcomes(self.path, place, ["one", "two"])
        self.assertEqual(both, [Finished("answer one", "e2"), Unknown()])
        self.assistant("answer two")
        both = outcomes(self.path, place, ["one", "two"])
        self.assertEqual(both, [Finished("answer one", "e2"), Finished("answer two", "e4")])

    def test_equal_texts(self) -> None:
        """The same text twice takes two entries."""
        place = mark(self.path)
        self.user("go on")
        self.assistant("answer")
        both = outcomes(self.path, place, ["go on", "go on"])
        self.assertEqual(both, [Finished("answer", "e2"), NeverRan()])

    def test_steered(self) -> None:
        """A steering message shares the answer of the run that it joined."""
        place = mark(self.path)
        self.user("one")
        self.assistant("working", "toolUse")
        self.user("faster")
        self.assistant("done")
        both = outcomes(self.path, place, ["one", "faster"])
        self.assertEqual(both, [Finished("done", "e4"), Finished("done", "e4")])

    def test_changed_text(self) -> None:
        """An entry that is nobody's text may be the prompt, changed by Pi: nobody can tell."""
        place = mark(self.path)
        self.user("an expanded template")
        self.assertEqual(outcome(self.path, place, "/template"), Unknown())

    def test_picture_note(self) -> None:
        """Pi's note about a picture behind the text does not hide the prompt."""
        place = mark(self.path)
        self.user("look\n\n[Image: original 1800x1800, displayed at 900x900]")
        self.assistant("a cat")
        self.assertEqual(outcome(self.path, place, "look"), Finished("a cat", "e2"))

    def test_replaced_file(self) -> None:
        """A file that was cut, rewritten or removed proves nothing."""
        self.user("a")
        place = mark(self.path)
        self.user("hello")
        content = self.path.read_bytes()
        for other in (content[:20], content.replace(b'"e1"', b'"x1"')):
            self.path.write_bytes(other)
            self.assertRaises(SessionChanged, after_mark, self.path, place)
            self.assertEqual(outcome(self.path, place, "hello"), Unknown())
        self.path.unlink()
        self.assertEqual(outcome(self.path, place, "hello"), Unknown())

    def test_damaged_line(self) -> None:
        """A line that was cut and closed later hides no answer, but may hide a prompt."""
        place = mark(self.path)
        with self.path.open("ab") as file:
            file.write(b'{"type":"message","id":"cut\n')
        self.user("hello")
        self.assistant("answer")
        found = outcomes(self.path, place, ["hello", "other"])
        self.assertEqual(found, [Finished("answer", "e2"), Unknown()])
        self.assertEqual(mark(self.path).entry, "e2")


class HomeTests(SynchronousTestCase):
    """Where Pi keeps its sessions."""

    def setUp(self) -> None:
        """An agent directory."""
        self.agent = Path(self.mktemp())
        self.agent.mkdir()

    def test_precedence(self) -> None:
        """The variable, Pi's own setting, the default place; a damaged setting is none."""
        self.assertEqual(session_home(self.agent, {}), self.agent / "sessions")
        (self.agent / "settings.json").write_text('{"sessionDir": "/s/own"}')
        self.assertEqual(session_home(self.agent, {}), Path("/s/own"))
        told = {"PI_CODING_AGENT_SESSION_DIR": "/s/told"}
        self.assertEqual(session_home(self.agent, told), Path("/s/told"))
        for text in ("{", "[]", '{"sessionDir": 1}', "[" * 100_000):
            (self.agent / "settings.json").write_text(text)
            self.assertEqual(session_home(self.agent, {}), self.agent / "sessions", text[:20])

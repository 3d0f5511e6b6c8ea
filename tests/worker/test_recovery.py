"""After a crash the session file tells what became of handed prompts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pitelegram.errors import LaunchFailed
from pitelegram.worker.runs import answer_key
from pitelegram.worker.sessions import SessionChoice
from tests.worker.test_queue import RigCase

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/"}


def _user(text: str, number: int = 1) -> dict[str, Any]:
    message = {"role": "user", "content": f"[telegram|thread:Atlas] {text}"}
    return {"type": "message", "id": f"u{number}", "message": message}


def _assistant(text: str, reason: str = "stop", number: int = 1) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    message = {"role": "assistant", "content": content, "stopReason": reason}
    return {"type": "message", "id": f"a{number}", "message": message}


class Recovery(RigCase):
    """One prompt handed, two held, and then the process is killed."""

    def _kill(self, *entries: dict[str, Any], torn: str = "") -> None:
        rig = self.started()
        for text in ("[[gate a]]", "two", "three"):
            rig.message(text)
        self.assertEqual(rig.states(), {"handed": 1, "held": 2})
        self.lead = rig.inbox.rows("handed")[0].rpc_id
        rig.crash()
        lines = [json.dumps(entry) for entry in (HEADER, *entries)]
        (rig.base / "session.jsonl").write_text("\n".join(lines) + "\n" + torn)
        rig.start()
        rig.run(1)

    def test_never_ran(self) -> None:
        """Nothing of it is in the file: it runs, first."""
        self._kill()
        self.assertEqual(self.rig.prompts(), ["[[gate a]]"])
        self.rig.host.open_gate("a")
        self.rig.run(1)
        self.assertEqual(self.rig.prompts(), ["[[gate a]]", "two", "three"])

    def test_no_file_at_all(self) -> None:
        """A session that Pi never wrote has nothing of it either."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.crash()
        rig.start()
        self.assertEqual(rig.prompts(), ["[[gate a]]"])

    def test_file_is_gone(self) -> None:
        """A session file that was marked and is gone tells nothing."""
        self._kill()
        self.rig.crash()
        (self.rig.base / "session.jsonl").unlink()
        self.rig.start()
        self.assertEqual(self.rig.states(), {"uncertain": 1, "settled": 2})

    def test_finished(self) -> None:
        """The answer is taken from the file, with the id that the live one would have had."""
        self._kill(_user("[[gate a]]"), _assistant("from the file"))
        self.assertEqual(self.rig.link.texts, ["from the file", "You said: two", "You said: three"])
        self.assertEqual(self.rig.link.submitted[0][0], f"final-{self.lead}")

    def test_taken_and_not_finished(self) -> None:
        """It is not repeated; the others run."""
        for entries in (
            (_user("[[gate a]]"),),
            (_user("[[gate a]]"), _assistant("I look", "toolUse")),
            (_user("[[gate a]]"), _assistant("", "error")),
            (_user("[[gate a]]"), _assistant("half", "aborted")),
            (_user("other words"),),
        ):
            self.setUp()
            self._kill(*entries)
            self.assertEqual(self.rig.prompts(), ["two", "three"])
            self.assertEqual(self.rig.states(), {"uncertain": 1, "settled": 2})

    def test_torn_last_line(self) -> None:
        """A half-written answer is no answer."""
        self._kill(_user("[[gate a]]"), torn='{"type":"message","id":"a1","mess')
        self.assertEqual(self.rig.states(), {"uncertain": 1, "settled": 2})

    def test_recovery_is_repeatable(self) -> None:
        """Killed in the recovery itself, nothing is lost and nothing doubled."""
        self._kill(_user("[[gate a]]"), _assistant("from the file"))
        ids = [name for name, _ in self.rig.link.submitted]
        self.rig.crash()
        self.rig.start()
        self.assertEqual(self.rig.link.submitted, [])
        self.assertEqual(len(ids), len(set(ids)))

    def test_steered_run(self) -> None:
        """Prompts that were answered together settle with one answer."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.parts.follower.control("r", {"type": "steer", "message": "sooner"})
        rig.run()
        self.assertEqual(rig.states(), {"handed": 2})
        lead = rig.host.prompts[0][0]
        rig.crash()
        sooner = {"type": "message", "id": "u2", "message": {"role": "user", "content": "sooner"}}
        entries = [HEADER, _user("[[gate a]]"), _assistant("I look", "toolUse"), sooner]
        entries.append(_assistant("both", number=2))
        (rig.base / "session.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries))
        rig.start()
        self.assertEqual(rig.link.texts, ["both"])
        self.assertEqual(rig.link.submitted[0][0], f"final-{lead}")
        self.assertEqual(rig.states(), {"settled": 2})

    def test_steering_that_never_arrived(self) -> None:
        """The run's own prompt is finished, the steering message runs now."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.parts.follower.control("r", {"type": "steer", "message": "sooner"})
        rig.run()
        rig.crash()
        entries = [HEADER, _user("[[gate a]]"), _assistant("one")]
        (rig.base / "session.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries))
        rig.start()
        rig.run()
        self.assertEqual(rig.link.texts, ["one", "You said: sooner"])

    def test_session_without_a_file(self) -> None:
        """Without a file nobody can tell."""
        rig = self.started()
        rig.host._state["sessionFile"] = None
        rig.message("[[gate a]]")
        rig.crash()
        rig.start()
        self.assertEqual(rig.states(), {"uncertain": 1})

    def test_answer_key(self) -> None:
        """The run's own prompt names the answer, else the oldest of those that settle."""
        self.assertEqual(answer_key([("b", "a"), ("a", "a")]), "a")
        self.assertEqual(answer_key([("b", "a"), ("c", "a")]), "b")


class Starting(RigCase):
    """What is said aloud at the start."""

    def test_other_session(self) -> None:
        """Pi is in another session than the one that was meant: the operator is told."""
        self.rig.start(choice=SessionChoice(file="/x", expected="another"))
        self.assertIn("did not resume", self.rig.link.texts[0])

    def test_no_model(self) -> None:
        """A Pi without a usable model is named in the Thread."""
        from pitelegram.testing.pihost import FakePiHost

        host = FakePiHost(self.rig.clock, str(self.rig.base / "s.jsonl"))
        host._state["model"] = {"id": "unknown", "provider": "unknown"}
        self.rig.start(host)
        self.assertIn("no usable model", self.rig.link.texts[0])

    def test_permanent_failure(self) -> None:
        """The leader hears the reason; the exit code says that trying again is of no use."""
        self.rig.start(choice=LaunchFailed("the session is gone", permanent=True))
        self.rig.run(5)
        self.assertEqual(self.rig.exits, [78])
        self.assertEqual(self.rig.parts.report.state()["lastError"], "the session is gone")
        self.assertEqual(self.rig.link.disconnects, [("quit", False)])

    def test_passing_failure(self) -> None:
        """A start that failed for a passing reason is the supervisor's to repeat."""
        self.rig.start(choice=LaunchFailed("no answer within 30 s"), connect=False)
        self.rig.run(5)
        self.assertEqual(self.rig.exits, [70])


class Choosing(RigCase):
    """Which session Pi is started with."""

    def _sessions(self) -> Any:
        from pitelegram.worker.sessions import Sessions

        rig = self.rig
        return Sessions(rig.paths, rig.inbox, rig.project, (), lambda: None)

    def _file(self, cwd: str | None = None, name: str = "a.jsonl") -> str:
        path = self.rig.paths.pi_sessions / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**HEADER, "cwd": cwd or str(self.rig.project)}) + "\n")
        return str(path)

    def test_first_start(self) -> None:
        """Nothing is remembered: a new session."""
        self.assertEqual(self._sessions().choose(None, False), SessionChoice(file=None))

    def test_resume(self) -> None:
        """The named file, with the id that Pi must report."""
        file = self._file()
        self.assertEqual(
            self._sessions().choose(file, False), SessionChoice(file=file, expected="s")
        )

    def test_own_memory(self) -> None:
        """Without a name the worker's own memory counts; C{fresh} overrides it."""
        file = self._file()
        sessions = self._sessions()
        done: list[None] = []
        from twisted.internet.defer import Deferred

        state = {"sessionFile": file, "sessionId": "s"}
        Deferred.fromCoroutine(sessions.changed(state)).addCallback(done.append)
        sessions.release()
        self.assertEqual(len(done), 1)
        again = self._sessions()
        self.assertEqual(again.choose(None, False).file, file)
        again.release()
        self.assertIsNone(self._sessions().choose(None, True).file)

    def test_directory_is_gone(self) -> None:
        """The recorded directory does not exist: permanent."""
        error = self.assertRaises(
            LaunchFailed, self._sessions().choose, self._file("/nowhere"), False
        )
        self.assertTrue(error.permanent)

    def test_damaged(self) -> None:
        """A file that is no session is permanent and left alone."""
        path = self.rig.base / "bad.jsonl"
        path.write_text("{}\n")
        error = self.assertRaises(LaunchFailed, self._sessions().choose, str(path), False)
        self.assertTrue(error.permanent)

    def test_in_use(self) -> None:
        """A session that another worker holds is refused."""
        file = self._file()
        first = self._sessions()
        first.choose(file, False)
        error = self.assertRaises(LaunchFailed, self._sessions().choose, file, False)
        self.assertTrue(error.permanent)
        first.release()
        self.assertEqual(self._sessions().choose(file, False).file, file)

    def test_missing(self) -> None:
        """A file that never had entries is started without a word; a lost one is said aloud."""
        from twisted.internet.defer import Deferred

        file = self._file(name="never.jsonl")
        sessions = self._sessions()
        state = {"sessionFile": file, "sessionId": "s"}
        Deferred.fromCoroutine(sessions.changed(state))
        sessions.release()
        Path(file).unlink()
        again = self._sessions()
        self.assertEqual(again.choose(file, False), SessionChoice(file=file))
        again.release()
        self._file(name="never.jsonl")
        Deferred.fromCoroutine(sessions.changed(state))
        Deferred.fromCoroutine(sessions.remember_entries())
        sessions.release()
        Path(file).unlink()
        self.assertIn("gone", self._sessions().choose(file, False).warning or "")

    def test_shared_with_another_pi(self) -> None:
        """A session that Pi went into by itself and another Pi is in is told once."""
        from twisted.internet.defer import Deferred

        from pitelegram.kernel.flock import FileLock

        file = self._file()
        other = FileLock.try_acquire(self.rig.paths.session_lock(file))
        sessions = self._sessions()
        state = {"sessionFile": file, "sessionId": "s"}
        told = [
            self.successResultOf(Deferred.fromCoroutine(sessions.changed(state))) for _ in range(3)
        ]
        self.assertEqual(told, [False, True, True])
        assert other is not None
        other.release()
        self.successResultOf(Deferred.fromCoroutine(sessions.changed(state)))
        self.assertIsNone(FileLock.try_acquire(self.rig.paths.session_lock(file)))

"""Which session is the latest, and who is in it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import LaunchFailed
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import own_birth
from pitelegram.kernel.flock import FileLock
from pitelegram.testing.worker import WorkerRig
from pitelegram.worker.sessionlock import SessionLock
from pitelegram.worker.sessionmemory import KEPT, SessionMemory
from pitelegram.worker.sessions import Sessions

PI = ProcessBirth(4321, "4321:start:9")


class SessionCase(SynchronousTestCase):
    """A binding with session files."""

    def setUp(self) -> None:
        """Make the rig."""
        base = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, base, ignore_errors=True)
        self.rig = WorkerRig(base)
        self.addCleanup(self.rig.database.close)

    def sessions(self, home: Path | None = None, pi: ProcessBirth | None = None) -> Sessions:
        """Return what a new worker process knows."""
        made = Sessions(
            self.rig.paths, self.rig.inbox, self.rig.project, (), lambda: None, home, lambda: pi
        )
        self.addCleanup(made.release)
        return made

    def file(self, name: str, cwd: str | None = None, home: Path | None = None) -> str:
        """Make a session file."""
        path = (home or self.rig.paths.pi_sessions) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        header = {"type": "session", "version": 3, "id": name, "cwd": cwd or str(self.rig.project)}
        path.write_text(json.dumps(header) + "\n")
        return str(path)

    def go(self, sessions: Sessions, file: str, session_id: str = "x") -> bool:
        """Pi says that it is in this session."""
        state = {"sessionFile": file, "sessionId": session_id}
        return self.successResultOf(Deferred.fromCoroutine(sessions.changed(state)))


class LatestTests(SessionCase):
    """The supervisor's memory against the worker's own."""

    def test_own_memory_is_later(self) -> None:
        """A session that was left while no leader could hear it is not resumed."""
        first, second = self.file("a.jsonl"), self.file("b.jsonl")
        before = self.sessions()
        self.go(before, first)
        self.go(before, second, "b.jsonl")
        before.release()
        choice = self.sessions().choose(first, False)
        self.assertEqual((choice.file, choice.expected), (second, "b.jsonl"))

    def test_back_again(self) -> None:
        """A session that was left and gone back to is the current one."""
        first, second = self.file("a.jsonl"), self.file("b.jsonl")
        before = self.sessions()
        for file in (first, second, first):
            self.go(before, file)
        before.release()
        self.assertEqual(self.sessions().choose(second, False).file, first)

    def test_unknown_here(self) -> None:
        """One that this store never heard of is later: the store was made anew."""
        first, second = self.file("a.jsonl"), self.file("b.jsonl")
        before = self.sessions()
        self.go(before, first)
        before.release()
        self.assertEqual(self.sessions().choose(second, False).file, second)

    def test_bounded(self) -> None:
        """Only so many are remembered."""
        memory = SessionMemory(self.rig.inbox)
        for number in range(KEPT + 10):
            self.successResultOf(Deferred.fromCoroutine(memory.note(f"/s/{number}", None)))
        self.assertEqual(memory.now().left, tuple(f"/s/{n}" for n in range(9, KEPT + 9)))

    def test_place_is_checked(self) -> None:
        """Own memory goes through the checks that the supervisor makes of its own (D7)."""
        elsewhere = self.file("a.jsonl", home=self.rig.base / "elsewhere")
        outside = self.file("b.jsonl", cwd="/")
        for file, words in ((elsewhere, "none of Pi's own"), (outside, "outside")):
            before = self.sessions()
            self.go(before, file)
            before.release()
            error = self.assertRaises(LaunchFailed, self.sessions().choose, None, False)
            self.assertTrue(error.permanent)
            self.assertIn(words, str(error))

    def test_another_home(self) -> None:
        """Where Pi was told to keep its sessions is where they are looked for."""
        home = self.rig.base / "elsewhere"
        file = self.file("a.jsonl", home=home)
        self.assertEqual(self.sessions(home).choose(file, False).file, file)


class LockTests(SessionCase):
    """A session is free only when worker and Pi are both out of it."""

    def setUp(self) -> None:
        """Have a path."""
        super().setUp()
        self.path = self.rig.paths.session_lock(self.file("a.jsonl"))
        self.living = {PI}

    def take(self) -> SessionLock | None:
        """Take the lock, as another worker would."""
        return SessionLock.take(self.path, self.living.__contains__)

    def killed(self, lock: SessionLock) -> None:
        """The worker is gone without a word: the descriptor closes, the file stays as it is."""
        lock._lock.release()

    def test_pi_outlives_its_worker(self) -> None:
        """The Pi of a killed worker keeps its session until it is gone too."""
        lock = self.take()
        assert lock is not None
        lock.name(PI)
        self.killed(lock)
        self.assertIsNone(self.take())
        self.assertIsNone(self.take(), "looking must not wipe the name out")
        self.living.clear()
        successor = self.take()
        assert successor is not None
        successor.release()

    def test_release(self) -> None:
        """A session that Pi has left is free although Pi lives."""
        lock = self.take()
        assert lock is not None
        lock.name(PI)
        lock.release()
        lock.release()
        again = self.take()
        assert again is not None
        again.release()
        self.assertEqual(list(self.rig.paths.session_locks.iterdir()), [])

    def test_damaged_name(self) -> None:
        """What is no name is nobody."""
        for content in (b"{", b"[]", b'{"pid": true, "birth": "x"}', b'{"pid": 1}', b"\xff" * 9000):
            self.path.write_bytes(content)
            lock = self.take()
            assert lock is not None, content
            lock.release()

    def test_unsafe_lock(self) -> None:
        """A lock file that is a link is a reason, not a crash."""
        self.path.symlink_to(self.rig.base / "elsewhere")
        error = self.assertRaises(LaunchFailed, self.sessions().choose, self.file("a.jsonl"), False)
        self.assertTrue(error.permanent)

    def test_every_session_of_pi(self) -> None:
        """The chosen session names Pi as soon as its process exists, later ones when it is in them."""
        first, second = self.file("a.jsonl"), self.file("b.jsonl")
        pi = own_birth()
        sessions = self.sessions(pi=pi)
        sessions.choose(first, False)
        sessions.pi_started()
        self.assertEqual(self.named(first), pi.pid)
        self.go(sessions, second)
        self.assertEqual((self.named(first), self.named(second)), (None, pi.pid))
        sessions.release()
        self.assertIsNone(self.named(second))

    def test_a_pi_without_worker_forbids_the_session(self) -> None:
        """Neither a start nor a switch goes into a session that a left-over Pi is in."""
        file = self.file("a.jsonl")
        lock = FileLock.try_acquire(self.path)
        assert lock is not None
        birth = own_birth()
        os.write(lock.fd, json.dumps({"pid": birth.pid, "birth": birth.birth}).encode())
        lock.release()
        error = self.assertRaises(LaunchFailed, self.sessions().choose, file, False)
        self.assertIn("another Pi is in that session", str(error))

    def named(self, file: str) -> int | None:
        """Return the pid that a session's lock names."""
        path = self.rig.paths.session_lock(file)
        return json.loads(path.read_bytes())["pid"] if path.exists() else None

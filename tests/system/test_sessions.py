"""Session files that must not be used, or are not what they were."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase

OUTSIDE = "/usr"
"""A directory that exists and lies in no root."""


class SessionsCase(SystemCase):
    """A worker with a conversation, and ways to spoil it."""

    @deferred
    async def session(self) -> Path:
        """The worker's session file."""
        return Path((await self.private("alpha"))["session_file"])

    def sessions(self) -> Path:
        """Where Pi keeps its session files."""
        return self.system.agent_dir / "sessions"

    def point_outside(self, file: Path) -> None:
        """The header names a directory outside the roots."""
        header, rest = file.read_text().split("\n", 1)
        file.write_text(json.dumps({**json.loads(header), "cwd": OUTSIDE}) + "\n" + rest)

    def link_outside(self, file: Path) -> None:
        """The file is a link to a valid one outside Pi's own directory."""
        elsewhere = self.base / "elsewhere.jsonl"
        elsewhere.write_bytes(file.read_bytes())
        file.unlink()
        file.symlink_to(elsewhere)

    def damage(self, file: Path) -> None:
        """The file holds something else."""
        file.write_bytes(b"\x00\xff not a session\n" * 50)


class RecordedSession(SessionsCase):
    """The session that a worker is to resume."""

    @deferred
    async def test_refused_or_told(self) -> None:
        """Outside in any way, or damaged: not started and said so.  Missing: a fresh start, said."""
        (thread,) = await self.start("alpha")
        await self.asked("the first turn", thread)
        file = await self.session()
        await self.worker("stop", "alpha")
        intact = file.read_bytes()
        for spoil, words in (
            (self.point_outside, "outside the roots"),
            (self.link_outside, "not one of Pi's own session files"),
            (self.damage, "no valid header"),
        ):
            spoil(file)
            await self.is_refused(words)
            if file.is_symlink():
                file.unlink()
            file.write_bytes(intact)
        self.assertEqual(self.rows("SELECT session_file FROM specs"), [str(file)])
        await self.worker("restart", "alpha")
        await self.system.until(self.runs, "the worker")
        request = await self.asked("the second turn", thread)
        self.assertIn("the first turn", request.users[0])
        await self.worker("stop", "alpha")
        file.unlink()
        await self.worker("start", str(self.system.project("alpha")))
        await self.system.answer("The session file is gone", thread)
        request = await self.asked("the third turn", thread)
        self.assertEqual(len(request.users), 1)
        self.once("The session file is gone")
        await self.recorded_elsewhere(thread)

    @deferred
    async def recorded_elsewhere(self, thread: int) -> None:
        """A record that names a file outside Pi's own directory is not followed."""
        await self.worker("stop", "alpha")
        daemon = self.system.daemon
        assert daemon is not None
        await daemon.kill()
        elsewhere = self.base / "elsewhere.jsonl"
        header = {"type": "session", "version": 3, "id": "x", "cwd": str(self.system.projects)}
        elsewhere.write_text(json.dumps(header) + "\n")
        store = sqlite3.connect(self.system.agent_dir / "telegram" / "default.sqlite3")
        store.execute("UPDATE specs SET session_file = ?", (str(elsewhere),))
        store.commit()
        store.close()
        await self.system.start_daemon()
        await self.is_refused("not one of Pi's own session files")
        self.assertEqual(elsewhere.read_text(), json.dumps(header) + "\n")

    @deferred
    async def is_refused(self, words: str) -> None:
        """A start fails for good, with these words, and no Pi runs."""
        done = await self.system.cli("workers", "start", str(self.system.project("alpha")))
        self.assertEqual(done.code, 1, done.out)
        worker = await self.private("alpha")
        self.assertEqual(worker["state"], "failed")
        self.assertIn(words, worker["last_error"])
        self.assertNotIn(OUTSIDE, worker["last_error"])
        self.assertEqual((self.system.workers(), self.system.pis()), ([], []))

    @deferred
    async def runs(self) -> bool:
        """Whether the worker runs."""
        return bool(await self.system.worker_state("alpha") == "running")


class SwitchSession(SessionsCase):
    """C{workers switch-session}."""

    @deferred
    async def test_from_the_command_line(self) -> None:
        """To one's own earlier session; everything else is refused, and nothing changes by it."""
        (thread,) = await self.start("alpha")
        await self.asked("the first turn", thread)
        first = await self.session()
        await self.worker("new-session", "alpha")
        await self.asked("somewhere else", thread)
        second = await self.session()
        for name, spoil in (
            ("outside", self.point_outside),
            ("linked", self.link_outside),
            ("damaged", self.damage),
        ):
            bad = first.with_name(f"{name}.jsonl")
            bad.write_bytes(first.read_bytes())
            spoil(bad)
            await self.refused("switch-session", "alpha", self.reference(bad))
        await self.refused("switch-session", "alpha", self.reference(first.with_name("no.jsonl")))
        for form in (str(first), "../telegram.json", f"./{self.reference(first)}"):
            done = await self.system.cli("workers", "switch-session", "alpha", form, "--json")
            self.assertEqual((done.code, done.json()["disposition"]), (1, "no_receipt"), form)
        self.assertEqual(await self.session(), second)
        await self.worker("switch-session", "alpha", self.reference(first))
        request = await self.asked("back again", thread)
        self.assertIn("the first turn", request.users[0])
        self.assertNotIn("somewhere else", "".join(request.users))
        self.assertEqual(await self.session(), first)
        (worker,) = self.system.workers()
        worker.kill()
        await self.system.until(lambda: self.is_another(worker.pid), "another worker")
        request = await self.asked("after a crash", thread)
        self.assertEqual(len(request.users), 3)

    def reference(self, file: Path) -> str:
        """A session as the control socket names it."""
        return os.path.relpath(file, self.sessions())

    @deferred
    async def is_another(self, before: int) -> bool:
        """Whether another process of the worker is ready."""
        worker = await self.private("alpha")
        return bool(worker["state"] == "running" and worker["pid"] != before)

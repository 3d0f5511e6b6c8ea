"""The whole machine: real daemon, real workers, real Pi; a sandbox Telegram and a scripted model."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from pitelegram.kernel.deferring import deferred
from pitelegram.testing.system import System


class SystemCase(TestCase):
    """A system that is set up and torn down; the daemon is started by the test.

    @cvar profile: what C{telegram.json} says of the profile beyond a paired bot.
    """

    timeout = 240
    profile: dict[str, Any] = {}

    def setUp(self) -> None:
        """Start Telegram and the model."""
        from twisted.internet import reactor

        self.base = Path(tempfile.mkdtemp(prefix="pt-"))
        self.system = System(reactor, self.base)
        self.system.set_up(**self.profile)

    @deferred
    async def tearDown(self) -> None:
        """End everything; keep what was logged when the test failed."""
        daemon = self.system.daemon
        await self.system.tear_down()
        if daemon is not None and not self._passed:
            (Path.cwd() / f"{self.id()}.daemon.txt").write_text(daemon.out + daemon.err)
            logs = self.system.agent_dir / "telegram" / "workers"
            for log in logs.glob("*.log"):
                shutil.copy(log, Path.cwd() / f"{self.id()}.{log.name}")
        shutil.rmtree(self.base, ignore_errors=True)

    def assistant(self, **settings: Any) -> None:
        """Write these C{assistant} settings, before the daemon is started."""
        path = self.system.agent_dir / "telegram.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "assistant": settings}))

    def once(self, text: str, thread: int | None | str = "any") -> None:
        """The bot wrote C{text} exactly once."""
        self.assertEqual([m.text for m in self.system.answers(text, thread)].__len__(), 1, text)

    def prompted_once(self, text: str) -> None:
        """The model was asked C{text} exactly once."""
        self.assertEqual(len(self.system.prompts(text)), 1, text)

    def start(self, *names: str) -> Deferred[list[int]]:
        """Start the daemon and workers of these names; fires with their Threads."""

        async def run() -> list[int]:
            await self.system.start_daemon()
            return [await self.system.start_worker(name) for name in names]

        return Deferred.fromCoroutine(run())

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Ask the leader's store, without changing it; single columns are unpacked."""
        path = self.system.agent_dir / "telegram" / "default.sqlite3"
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            found = connection.execute(query, values).fetchall()
        connection.close()
        return [row[0] if len(row) == 1 else row for row in found]

    def audit(self, name: str) -> list[tuple[str, str, str]]:
        """Actor, change and reason of everything that was audited of a worker, oldest first."""
        return self.rows(
            "SELECT actor, change, reason FROM audit WHERE subject ="
            " (SELECT 'spec:' || spec_id FROM specs WHERE name = ?) ORDER BY seq",
            name,
        )

    @deferred
    async def private(self, name: str) -> dict[str, Any]:
        """A worker as the local operator sees it."""
        done = await self.system.cli("workers", "list", "--json", "--private")
        return next(dict(w) for w in done.json()["workers"] if w["name"] == name)

    @deferred
    async def asked(self, text: str, thread: int) -> Any:
        """Say something that the model is to repeat; fires with the model's request."""
        self.system.say(text, thread)
        await self.system.answer(f"You said: {text}", thread)
        self.prompted_once(text)
        return self.system.prompts(text)[0]

    @deferred
    async def worker(self, *arguments: str) -> dict[str, Any]:
        """A C{workers} command that must be accepted; fires with its result."""
        done = await self.system.cli("workers", *arguments, "--json")
        self.assertEqual((done.code, done.json()["status"]), (0, "accepted"), done.out + done.err)
        return dict(done.json()["result"] or {})

    @deferred
    async def refused(self, *arguments: str) -> dict[str, Any]:
        """A C{workers} command that certainly changes nothing; fires with its error."""
        done = await self.system.cli("workers", *arguments, "--json")
        found = done.code, done.json()["disposition"]
        self.assertEqual(found, (1, "terminal_rejected"), done.out + done.err)
        return dict(done.json()["error"])

"""The whole machine: real daemon, real workers, real Pi; a sandbox Telegram and a scripted model."""

from __future__ import annotations

import shutil
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

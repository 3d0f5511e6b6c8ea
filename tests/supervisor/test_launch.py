"""What a worker's log tells about its end."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.flock import FileLock
from pitelegram.kernel.paths import Paths
from pitelegram.store.rows import Spec
from pitelegram.supervisor.environment import EnvironmentRules
from pitelegram.supervisor.launch import Launcher
from pitelegram.supervisor.roots import Roots
from pitelegram.testing.spawner import FakeSpawner

INFO = "2026-01-02T03:04:05+0000 [info] registered with the leader\n"
ERROR = "2026-01-02T03:04:05+0000 [error] Pi did not start: no model\n"


class LastWordsTests(SynchronousTestCase):
    """L{Launcher.last_words}."""

    def setUp(self) -> None:
        """A launcher that makes nothing."""
        base = Path(self.mktemp()).absolute()
        base.mkdir()
        self.paths = Paths(base)
        self.paths.prepare()
        rules = EnvironmentRules(agent_dir=str(base), token_digest="d" * 64, tokens=())
        self.launcher = Launcher(
            FakeSpawner(),
            Clock(),
            self.paths,
            ["pi"],
            Roots([base]),
            {},
            lambda: rules,
        )
        self.spec = Spec(
            spec_id="abc",
            name="alpha",
            directory=str(base),
            desired="running",
            trust="approve",
            restart="on-failure",
            slot_id=None,
            session_id=None,
            session_file=None,
            session_entries=0,
        )

    def launch(self) -> None:
        """A process is made."""
        lock = FileLock.try_acquire(self.paths.worker_lock("spec-abc"))
        assert lock is not None
        self.launcher.launch(self.spec, "spawn", b"x", lock, ["pi"], lambda exit: None)
        lock.release()

    def say(self, text: str) -> None:
        """It writes."""
        with open(self.paths.worker_log("spec-abc"), "a") as log:
            log.write(text)

    def words(self) -> str | None:
        """What is told."""
        return self.launcher.last_words(self.spec)

    def test_complaint(self) -> None:
        """The last complaint of this life, without its time; what came after it is no cause."""
        self.assertIsNone(self.words())
        self.launch()
        self.assertIsNone(self.words())
        self.say(INFO + ERROR + INFO)
        self.assertEqual(self.words(), "Pi did not start: no model")
        self.say("MemoryError\n" + INFO)
        self.assertEqual(self.words(), "MemoryError")

    def test_another_life(self) -> None:
        """What a former process said is not the cause of this one's end."""
        self.launch()
        self.say(ERROR)
        self.launch()
        self.say(INFO)
        self.assertIsNone(self.words())

    def test_log_that_shrank(self) -> None:
        """A log that was emptied meanwhile tells nothing old."""
        self.say(ERROR * 10)
        self.launch()
        os.truncate(self.paths.worker_log("spec-abc"), 0)
        self.say(INFO)
        self.assertIsNone(self.words())

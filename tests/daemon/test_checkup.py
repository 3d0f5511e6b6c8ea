"""Nothing says ok while a part is not: each part, each of its faults, and the sentence for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import attrs
from twisted.logger import LogPublisher

from pitelegram.daemon.checkup import PARTS
from pitelegram.daemon.snapshots import Snapshots
from pitelegram.errors import StoreError
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.logs import JsonLinesObserver
from tests.daemon.test_face import FaceCase

GOOD_POLL = {
    "phase": "long-poll",
    "last_success_ms": 1,
    "consecutive_failures": 0,
    "receiving": True,
    "not_receiving_since_ms": None,
}


def broken(*_: Any, **__: Any) -> Any:
    """A part that fails in a way that nobody thought of."""
    raise ZeroDivisionError("inside /home/bob")


def refusing(*_: Any, **__: Any) -> Any:
    """A store that cannot be read."""
    raise StoreError("the database refused a read")


class Defective:
    """A part that was written badly."""

    counts = look = staticmethod(broken)


@attrs.define
class Part:
    """A part that says of itself how it is."""

    problem: str | None = None


class CheckupCase(FaceCase):
    """A daemon of which every part is well at first."""

    @deferred
    async def setUp(self) -> None:
        """Start the bus, poll, and connect the worker."""
        super().setUp()
        leader = self.world.leader
        leader.bus.startService()
        self.addCleanup(leader.bus.stopService)
        self.poll = dict(GOOD_POLL)
        leader.poll.snapshot = lambda: self.poll
        leader.retention.startService()
        self.addCleanup(leader.retention.stopService)
        self.world.paths.spool.mkdir(mode=0o700, exist_ok=True)
        self.registry.stale = set()
        self.connect({})
        self.daemon.control = Part()
        self.daemon.snapshots = self.snapshots = Snapshots(
            self.world.paths.state, self.face.status, self.world.reactor
        )
        self.daemon.lines = self.lines = JsonLinesObserver(
            self.world.paths.logs, self.world.paths.logs_previous
        )
        self.addCleanup(self.lines.close)
        leader.pressure.free_bytes = lambda _: 2**40

    def problems(self) -> list[str]:
        """What is said, with the health that goes with it."""
        document = self.face.status()
        self.assertEqual(document["health"], "degraded" if document["problems"] else "ok")
        return list(document["problems"])

    def tries(self, words: str, break_: Callable[[], Any], mend: Callable[[], Any]) -> None:
        """Well, then a fault that is said with these words alone, then well again."""
        self.assertEqual(self.problems(), [], words)
        break_()
        (problem,) = self.problems()
        self.assertIn(words, problem)
        self.assertNotIn(str(self.world.base), problem)
        mend()
        self.assertEqual(self.problems(), [], words)

    def sets(self, words: str, where: Any, name: str, wrong: Any) -> None:
        """As L{tries}, with an attribute."""
        right = getattr(where, name)
        self.tries(words, lambda: setattr(where, name, wrong), lambda: setattr(where, name, right))


class FaultTests(CheckupCase):
    """One fault at a time."""

    def test_well(self) -> None:
        """A daemon of which every part is well says so, and hides nothing behind that."""
        self.assertEqual(self.problems(), [])
        self.assertEqual(self.face.status()["health"], "ok")

    def test_store(self) -> None:
        """A store that takes nothing in, and one that was damaged."""
        database = self.world.database
        self.tries(
            "the store takes nothing in: no space is left",
            lambda: database.times.lost("no space is left"),
            lambda: self.successResultOf(self.world.leader.leadership.set_meta("x", "y")),
        )
        self.sets("the store was damaged", database, "recovered", self.world.base)

    def test_parts_that_tell(self) -> None:
        """Parts with a sentence of their own."""
        leader = self.world.leader
        self.sets("maintained", leader.retention, "_status", "failed")
        self.sets("the commands do not", self.daemon, "control", Part("the commands do not come"))
        self.sets("no key", leader, "continuity", Keyless())
        self.sets("kept fresh: the disk", self.daemon, "ownership", Part("the disk is full"))
        intake = leader.delivery.intake
        self.tries("blocked", lambda: intake.blocked(True), lambda: intake.blocked(False))
        self.sets("left a file", leader.orphans, "problems", lambda: ["alpha left a file"])

    def test_bus(self) -> None:
        """A socket that was taken away: who loses his connection cannot come back."""
        path = self.world.paths.bus_socket
        aside = path.with_name("aside")
        self.tries(
            "the bus socket is gone",
            lambda: path.rename(aside),
            lambda: aside.rename(path),
        )

        def replace() -> None:
            path.rename(aside)
            path.touch()

        self.tries("the bus socket is gone", replace, lambda: aside.rename(path))

    def test_settings(self) -> None:
        """A file that is damaged, or says what cannot be."""
        file = self.world.paths.telegram_json
        right = file.read_text()

        def write(text: str) -> None:
            file.write_text(text)
            file.chmod(0o600)
            self.world.watcher.look()

        self.tries(
            "telegram.json changed and cannot be used",
            lambda: write('{"cluster": {"leader": 5}}'),
            lambda: write(right),
        )
        self.tries("was moved aside", lambda: write("{"), lambda: write(right))

    def test_workers(self) -> None:
        """A worker that is silent, failed, waiting, or overdue."""
        views = self.supervisor
        self.tries(
            "worker alpha is silent",
            lambda: self.registry.stale.add("spec-id-alpha"),
            lambda: self.registry.stale.clear(),
        )
        for state, error, words in (
            ("failed", "why", "worker alpha is in state failed"),
            ("backoff", "why", "worker alpha is in state backoff"),
            ("adopting", "why", "worker alpha still runs, but did not register"),
        ):
            self.tries(
                words,
                lambda state=state, error=error: views.change(  # type: ignore[misc]
                    "alpha", state=state, last_error=error
                ),
                lambda: views.change("alpha", state="running", last_error=None),
            )

    def test_polling(self) -> None:
        """Not receiving is degraded at once and down after a minute."""
        self.poll.update(phase="retrying", receiving=False)
        for since, health in ((2, "degraded"), (61, "down")):
            now = self.face.status()["written_at_ms"]
            self.poll["not_receiving_since_ms"] = now - since * 1000
            document = self.face.status()
            self.assertEqual(document["health"], health)
            self.assertIn("not receiving", document["problems"][0])

    def test_spool(self) -> None:
        """A spool that is gone, open to others, or something else."""
        spool = self.world.paths.spool
        self.tries(
            "files of answers cannot be kept",
            lambda: shutil.rmtree(spool),
            lambda: spool.mkdir(mode=0o700),
        )
        self.tries(
            "files of answers cannot be kept",
            lambda: spool.chmod(0o755),
            lambda: spool.chmod(0o700),
        )
        self.tries(
            "files of answers cannot be kept",
            lambda: (spool.rmdir(), spool.touch(mode=0o600)),
            lambda: (spool.unlink(), spool.mkdir(mode=0o700)),
        )

    def test_log(self) -> None:
        """A log that cannot be written, until a line gets through."""
        publisher = LogPublisher(self.lines)
        logs = self.world.paths.logs
        logs.unlink(missing_ok=True)
        self.tries(
            "the event log cannot be written",
            lambda: (logs.mkdir(), publisher({"log_format": "lost", "log_time": 1.0})),
            lambda: (logs.rmdir(), publisher({"log_format": "kept", "log_time": 2.0})),
        )

    def test_snapshot(self) -> None:
        """A snapshot that cannot be written, until it can."""
        state = self.world.paths.state
        self.tries(
            "the snapshot of the status cannot be written",
            lambda: (state.mkdir(), self.snapshots._write()),
            lambda: (state.rmdir(), self.snapshots._write()),
        )
        self.assertIn(b'"source":"snapshot"', state.read_bytes())

    def test_disk(self) -> None:
        """Little room, and none."""
        pressure = self.world.leader.pressure
        for free, words in ((2**24, "the disk is nearly full"), (2**20, "the disk is full")):
            self.sets(words, pressure, "free_bytes", lambda _, free=free: free)


class Keyless:
    """An installation without its key."""

    problem = "there is no key"

    def metas(self, slots: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Nobody has one."""
        return {binding: {} for binding in slots}


class DefectTests(CheckupCase):
    """Parts that cannot even be asked."""

    def test_unreadable_store(self) -> None:
        """The document is given all the same, without what stands in the store."""
        self.world.database.read = refusing
        document = self.face.status()
        self.assertEqual(document["health"], "degraded")
        for part in ("the journal", "the outbox", "the Threads", "the store's figures"):
            self.assertIn(f"{part} cannot be looked at", document["problems"])
        self.assertEqual(document["storage_pressure"]["status"], "degraded")
        self.assertEqual([worker["name"] for worker in document["workers"]], ["alpha", "beta"])

    def test_each_look(self) -> None:
        """Whatever part has a defect is named, and logged once; the others are still seen."""
        leader = self.world.leader
        for where, name, words in (
            (leader, "journal", "the journal"),
            (leader, "outbox", "the outbox"),
            (leader, "pressure", "the store's figures"),
            (leader.threads, "mode", "the bot's mode"),
            (leader.continuity, "metas", "the workers' keys"),
            (leader.orphans, "problems", "the workers' files"),
            (self.registry, "is_stale", "the registry"),
        ):
            right = getattr(where, name)
            setattr(where, name, broken if callable(right) else Defective())
            found = [self.problems(), self.problems()]
            setattr(where, name, right)
            for problems in found:
                self.assertIn(f"{words} cannot be looked at", problems)
                self.assertNotIn("/home", " ".join(problems))
            self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1, words)
            self.assertEqual(self.problems(), [])

    def test_supervisor(self) -> None:
        """A supervisor that cannot be asked has no workers to show, and is a problem."""
        self.supervisor.views = broken  # type: ignore[method-assign]
        document = self.face.status()
        self.assertEqual((document["health"], document["workers"]), ("degraded", []))
        self.assertIn("the supervisor cannot be looked at", document["problems"])
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 2)

    def test_poll(self) -> None:
        """A long poll that cannot be asked is not receiving."""
        self.world.leader.poll.snapshot = broken
        document = self.face.status()
        self.assertIs(document["polling"]["receiving"], False)
        self.assertEqual(document["health"], "degraded")
        self.flushLoggedErrors(ZeroDivisionError)

    def test_parts(self) -> None:
        """Every part has a name of its own."""
        names = [name for name, _ in PARTS]
        self.assertEqual(len(set(names)), len(names))
        self.assertGreaterEqual(len(names), 12)

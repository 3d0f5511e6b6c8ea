"""Taking, keeping, losing and giving back the transport."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import attrs
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import LiveOwner, OwnershipError, OwnershipLost
from pitelegram.kernel.birth import own_birth, process_birth
from pitelegram.kernel.paths import Paths
from pitelegram.ownership.locks_json import FOREIGN_KEY, OUR_KEY, claim, withdraw
from pitelegram.ownership.owners import OwnerRecord, read_owner
from pitelegram.ownership.ownership import HeartbeatWatch, Ownership, check


class OwnershipCase(SynchronousTestCase):
    """A fresh agent directory and a clock that also is the wall clock."""

    def setUp(self) -> None:
        self.paths = Paths(self.mktemp())
        self.paths.agent_dir.mkdir(parents=True)
        self.clock = Clock()
        self.clock.advance(time.time())
        self.offset = self.clock.seconds()

    def ownership(self, profile: str = "default", seed: bytes = b"s") -> Ownership:
        """An L{Ownership} under this test's clock."""
        paths = attrs.evolve(self.paths, profile=profile)
        return Ownership(
            paths,
            self.clock,
            bus_socket=Path("/b.sock"),
            control_socket=Path("/c.sock"),
            random_bytes=lambda count: seed * count,
            now=self.clock.seconds,
            monotonic=lambda: self.clock.seconds() - self.offset,
        )

    def acquired(self, **kw: object) -> Ownership:
        """An acquired one, released at the end."""
        one = self.ownership(**kw)  # type: ignore[arg-type]
        self.successResultOf(one.acquire("daemon"))
        self.addCleanup(lambda: self.successResultOf(one.release()))
        return one

    def file(self) -> dict:
        """What stands in C{owners.json}."""
        return json.loads(self.paths.owners.read_bytes())

    def put(self, **record: object) -> None:
        """Write a record of another program."""
        self.paths.runtime.mkdir(parents=True, exist_ok=True)
        self.paths.owners.write_text(json.dumps({"default": record}))
        self.paths.owners.chmod(0o600)


class AcquireTests(OwnershipCase):
    """L{Ownership.acquire} and L{check}."""

    def test_record(self) -> None:
        """The record has the agreed members, in a private file indented by two spaces."""
        one = self.acquired()
        record = self.file()["default"]
        self.assertEqual(
            sorted(record),
            sorted(
                "pid cwd instanceId heartbeatMs leaderEpoch runtimeGeneration busSocketPath"
                " controlSocketPath busSecret role processBirthId bootId".split()
            ),
        )
        self.assertEqual(record["processBirthId"], own_birth().birth)
        self.assertEqual(record["role"], "daemon")
        self.assertEqual(one.secret, b"s" * 32)
        self.assertTrue(self.paths.owners.read_text().startswith('{\n  "default"'))
        self.assertEqual(stat.S_IMODE(os.stat(self.paths.owners).st_mode), 0o600)

    def test_a_live_owner_refuses_whatever_its_heartbeat(self) -> None:
        """A second acquisition names the live owner, however old its heartbeat is."""
        parent = os.getppid()
        self.put(pid=parent, role="daemon", processBirthId=process_birth(parent), heartbeatMs=1)
        for attempt in (lambda: check(self.paths),):
            self.assertRaises(LiveOwner, attempt)
        failure = self.failureResultOf(self.ownership().acquire("daemon"), LiveOwner)
        self.assertEqual((failure.value.pid, failure.value.role), (parent, "daemon"))
        self.assertEqual(self.file()["default"]["pid"], parent)

    def test_looking_narrows_nothing(self) -> None:
        """Who only looks leaves a file that is too open as it is; the next owner's is private."""
        self.put(pid=os.getpid(), role="daemon", processBirthId=f"{os.getpid()}:start:1")
        self.paths.owners.chmod(0o664)
        check(self.paths)
        self.assertEqual(stat.S_IMODE(os.stat(self.paths.owners).st_mode), 0o664)
        self.acquired()
        self.assertEqual(stat.S_IMODE(os.stat(self.paths.owners).st_mode), 0o600)

    def test_own_process_is_a_live_owner_too(self) -> None:
        """Two owners in one process do not share a profile; other profiles are free."""
        self.acquired()
        self.failureResultOf(self.ownership().acquire("daemon"), LiveOwner)
        self.acquired(profile="work")
        self.assertEqual(sorted(self.file()), ["default", "work"])

    def test_a_dead_birth_is_free_at_once(self) -> None:
        """Another birth under a living pid, another boot, or a dead pid do not hinder."""
        parent = os.getppid()
        for record in (
            {"pid": parent, "processBirthId": f"{parent}:start:1", "heartbeatMs": 2**45},
            {"pid": parent, "processBirthId": process_birth(parent), "bootId": "another"},
            {"pid": 2**22 + 7, "heartbeatMs": 2**45},
            {"pid": os.getpid(), "instanceId": f"{os.getpid()}:1"},
            {"pid": parent, "instanceId": f"{parent}:1000"},
        ):
            self.put(**record)
            check(self.paths)
            one = self.ownership()
            self.successResultOf(one.acquire("daemon"))
            self.assertEqual(self.file()["default"]["pid"], os.getpid())
            self.successResultOf(one.release())

    def test_damage_fails_closed(self) -> None:
        """Neither a damaged file nor a damaged record is taken for a free lock."""
        self.paths.runtime.mkdir(parents=True)
        for text in ("{", "[]", '{"default": {"pid": "1"}}', '{"default": 5}', ""):
            self.paths.owners.write_text(text)
            self.assertRaises(OwnershipError, check, self.paths)
            self.failureResultOf(self.ownership().acquire("daemon"), OwnershipError)
            self.assertEqual(self.paths.owners.read_text(), text)

    def test_damage_from_before_this_boot_is_nobodys(self) -> None:
        """A file cut by a power loss holds no live owner: it does not hinder the start."""
        self.paths.runtime.mkdir(parents=True)
        self.paths.owners.write_text("")
        os.utime(self.paths.owners, (1, 1))
        self.acquired()
        self.assertEqual(self.file()["default"]["pid"], os.getpid())

    def test_other_members_survive(self) -> None:
        """Other profiles' records keep every member, known to us or not."""
        self.paths.runtime.mkdir(parents=True)
        other = {"pid": 1, "leaderEpoch": 7, "novel": {"a": [1]}}
        self.paths.owners.write_text(json.dumps({"work": other}))
        self.acquired()
        self.assertEqual(self.file()["work"], other)

    def test_foreign_extension(self) -> None:
        """A live C{@llblab/pi-telegram} entry refuses leading, a dead one does not."""
        self.paths.locks_json.write_text(json.dumps({FOREIGN_KEY: {"pid": os.getppid()}}))
        self.assertRaises(LiveOwner, check, self.paths)
        self.failureResultOf(self.ownership().acquire("daemon"), LiveOwner)
        self.paths.locks_json.write_text(json.dumps({FOREIGN_KEY: {"pid": 2**22 + 7}}))
        self.acquired()

    def test_election_replaces_only_the_stale_worker_it_saw(self) -> None:
        """A live worker's record is replaced when named exactly; a daemon's never."""
        parent = os.getppid()
        self.put(pid=parent, role="worker", processBirthId=process_birth(parent), heartbeatMs=1)
        seen = read_owner(self.paths.owners, "default")
        assert seen is not None
        other = attrs.evolve(seen, heartbeat_ms=2)
        self.failureResultOf(self.ownership().acquire("worker", other), LiveOwner)
        one = self.ownership()
        self.successResultOf(one.acquire("worker", seen))
        self.successResultOf(one.release())
        self.put(pid=parent, role="daemon", processBirthId=process_birth(parent), heartbeatMs=1)
        seen = read_owner(self.paths.owners, "default")
        self.failureResultOf(self.ownership().acquire("worker", seen), LiveOwner)


class KeepTests(OwnershipCase):
    """What happens after the acquisition."""

    def test_heartbeat(self) -> None:
        """The record is refreshed every two seconds, and nothing else in it changes."""
        self.acquired()
        before = self.file()["default"]
        self.clock.pump([1.0] * 4)
        after = self.file()["default"]
        self.assertEqual(after["heartbeatMs"] - before["heartbeatMs"], 4000)
        self.assertEqual({**after, "heartbeatMs": 0}, {**before, "heartbeatMs": 0})

    def test_loss(self) -> None:
        """Another owner, or a missing record, is a loss within a second; told once."""
        for replacement in ('{"default": {"pid": 1}}', "{}", None):
            one = self.ownership()
            self.successResultOf(one.acquire("daemon"))
            lost = one.when_lost()
            self.assertNoResult(lost)
            if replacement is None:
                self.paths.owners.unlink()
            else:
                self.paths.owners.write_text(replacement)
            self.clock.advance(1)
            self.assertIsInstance(self.successResultOf(lost), OwnershipLost)
            self.assertFalse(one.still_fresh())
            self.successResultOf(one.release())
            if replacement is not None:
                self.assertEqual(self.paths.owners.read_text(), replacement)
                self.paths.owners.unlink()
            self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_unreadable_is_a_loss_after_eight_seconds(self) -> None:
        """A file that stays damaged ends ownership, one that is repaired in time does not."""
        one = self.acquired()
        good = self.paths.owners.read_text()
        self.paths.owners.write_text("{")
        self.clock.pump([1.0] * 6)
        self.paths.owners.write_text(good)
        self.clock.pump([1.0] * 6)
        lost = one.when_lost()
        self.assertNoResult(lost)
        self.paths.owners.write_text("{")
        self.clock.pump([1.0] * 12)
        self.successResultOf(lost)

    def test_unwritable(self) -> None:
        """On a full disk a daemon stays and says so, a worker gives up after 8 s."""
        one = self.acquired()
        self.occupy_guard()
        self.clock.pump([0.025] * 800)
        self.assertNoResult(one.when_lost())
        assert one.problem is not None
        self.assertIn("lock", one.problem)
        self.paths.owners_guard.unlink()
        self.clock.pump([0.025] * 200)
        self.assertIsNone(one.problem)
        worker = self.ownership()
        self.successResultOf(one.release())
        self.successResultOf(worker.acquire("worker"))
        self.occupy_guard()
        self.clock.pump([0.025] * 800)
        self.successResultOf(worker.when_lost())
        self.paths.owners_guard.unlink()

    def occupy_guard(self) -> None:
        """Make every change of the record fail, as a full disk does."""
        self.paths.owners_guard.write_text("not a guard")

    def test_late_wake(self) -> None:
        """After more than 8 s away the answer at hand is refused, the record read, and it is said."""
        one = self.acquired()
        said: list[bool] = []
        one.on_late_wake(lambda: said.append(True))
        self.clock.pump([1.0] * 3)
        self.assertTrue(one.still_fresh())
        self.clock.rightNow += 30
        self.assertFalse(one.still_fresh())
        self.assertEqual(said, [True])
        self.assertTrue(one.still_fresh())
        self.clock.advance(0)
        self.assertEqual(said, [True])
        self.assertIsNotNone(one.record)

    def test_late_wake_finds_a_successor(self) -> None:
        """A process that slept through its replacement knows it before it uses an answer."""
        one = self.acquired()
        self.clock.rightNow += 30
        self.paths.owners.write_text('{"default": {"pid": 1}}')
        self.assertFalse(one.still_fresh())
        self.successResultOf(one.when_lost())

    def test_release_leaves_others_alone(self) -> None:
        """Release deletes exactly our own record."""
        one = self.ownership()
        self.successResultOf(one.acquire("daemon"))
        record = self.file()["default"]
        self.paths.owners.write_text(json.dumps({"default": {**record, "leaderEpoch": "x"}}))
        self.successResultOf(one.release())
        self.assertEqual(self.file()["default"]["leaderEpoch"], "x")

    def test_release_then_nothing(self) -> None:
        """After release the key is gone, no timer runs, and a repeat does nothing."""
        one = self.ownership()
        self.successResultOf(one.acquire("daemon"))
        lost = one.when_lost()
        self.successResultOf(one.release())
        self.successResultOf(one.release())
        self.assertEqual(self.file(), {})
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertNoResult(lost)
        self.assertRaises(OwnershipError, lambda: one.secret)

    def test_a_new_acquisition_is_new(self) -> None:
        """Epoch and generation differ between two acquisitions of one process."""
        one = self.ownership()
        first = self.successResultOf(one.acquire("daemon"))
        before = self.file()["default"]
        self.successResultOf(one.release())
        second = self.successResultOf(one.acquire("daemon"))
        after = self.file()["default"]
        self.assertNotEqual(first, second)
        self.assertGreater(after["runtimeGeneration"], before["runtimeGeneration"])
        self.successResultOf(one.release())

    def test_busy_guard(self) -> None:
        """A guard that a live process keeps for long is waited for, then refused."""
        guard = self.paths.owners_guard
        guard.mkdir(parents=True, mode=0o700)
        now = int(time.time() * 1000)
        payload = {"pid": os.getpid(), "acquiredAtMs": now, "generation": "12345678-1"}
        (guard / "owner.12345678-1.json").write_text(json.dumps(payload))
        acquiring = self.ownership().acquire("daemon")
        self.clock.pump([0.025] * 79)
        self.assertNoResult(acquiring)
        self.clock.advance(0.025)
        self.failureResultOf(acquiring, OwnershipError)


class RecordTests(SynchronousTestCase):
    """L{OwnerRecord} and L{HeartbeatWatch}."""

    def test_tolerant(self) -> None:
        """Missing members, a numeric epoch and unknown members are read; they come back as they were."""
        record = OwnerRecord.from_json({"pid": 5, "leaderEpoch": 7, "x": 1})
        self.assertEqual((record.leader_epoch, record.shown_role), ("7", "worker"))
        self.assertEqual(record.as_json()["x"], 1)

    def test_malformed(self) -> None:
        """No pid, a boolean pid, a text heartbeat, a numeric role: refused."""
        for value in (
            None,
            [],
            {},
            {"pid": True},
            {"pid": -1},
            {"pid": 1, "heartbeatMs": "1"},
            {"pid": 1, "role": 5},
        ):
            self.assertRaises(OwnershipError, OwnerRecord.from_json, value)

    def test_secret_is_not_shown(self) -> None:
        """The C{repr} of a record does not show its secret; a broken one reads as none."""
        record = OwnerRecord(pid=1, bus_secret="c2VjcmV0")
        self.assertNotIn("c2VjcmV0", repr(record))
        self.assertEqual(record.secret_bytes(), b"secret")
        self.assertIsNone(OwnerRecord(pid=1, bus_secret="!").secret_bytes())

    def test_stale_needs_our_own_eight_seconds(self) -> None:
        """A record is stale only after it was seen unchanged for more than 8 s."""
        clock = Clock()
        watch = HeartbeatWatch(clock.seconds)
        old = OwnerRecord(pid=1, heartbeat_ms=1)
        self.assertFalse(watch.is_stale(old))
        clock.advance(8)
        self.assertFalse(watch.is_stale(old))
        self.assertFalse(watch.is_stale(attrs.evolve(old, heartbeat_ms=2)))
        clock.advance(8.1)
        self.assertTrue(watch.is_stale(attrs.evolve(old, heartbeat_ms=2)))


class LocksJsonTests(OwnershipCase):
    """The shared registry."""

    def test_only_our_key(self) -> None:
        """Claim and withdraw touch our key alone."""
        self.paths.locks_json.write_text('{"other": {"pid": 1, "x": [1]}}')
        claim(self.paths, "/somewhere")
        registry = json.loads(self.paths.locks_json.read_text())
        self.assertEqual(registry["other"], {"pid": 1, "x": [1]})
        self.assertEqual(registry[OUR_KEY], {"pid": os.getpid(), "cwd": "/somewhere"})
        withdraw(self.paths)
        self.assertEqual(
            json.loads(self.paths.locks_json.read_text()), {"other": {"pid": 1, "x": [1]}}
        )

    def test_withdraw_leaves_a_successors_entry(self) -> None:
        """Another process's claim stays; a damaged registry is refused."""
        self.paths.locks_json.write_text(json.dumps({OUR_KEY: {"pid": 1}}))
        withdraw(self.paths)
        self.assertEqual(json.loads(self.paths.locks_json.read_text()), {OUR_KEY: {"pid": 1}})
        self.paths.locks_json.write_text("[")
        self.assertRaises(OwnershipError, withdraw, self.paths)
        self.assertRaises(OwnershipError, check, self.paths)

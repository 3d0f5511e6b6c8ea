"""The supervisor and its workers under a clock: starts, ends, restarts, adoption."""

from __future__ import annotations

import json
from pathlib import Path
from signal import SIGKILL, SIGTERM

from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.errors import LaunchFailed, LinkLost, Refusal, StoreFull
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.flock import FileLock
from pitelegram.routing.interfaces import (
    IBindingPolicy,
    IExpectation,
    IFollower,
    IRegistry,
    IRegistryObserver,
)
from pitelegram.store.database import Database
from pitelegram.store.leadership import Leadership
from pitelegram.store.rows import Spec
from pitelegram.store.specs import Specs
from pitelegram.supervisor.interfaces import ISupervisor, WorkerView
from pitelegram.supervisor.room import MIB
from pitelegram.testing.supervision import FakeFollower, World


class SlowSpecs(Specs):
    """A store that is slow to make specs: they wait for L{go}."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._waiting: list[Deferred[None]] = []

    def create(self, spec_id: str, name: str, directory: str) -> Deferred[Spec]:
        """See L{Specs.create}."""
        turn: Deferred[None] = Deferred()
        self._waiting.append(turn)
        return turn.addCallback(lambda _: Specs.create(self, spec_id, name, directory))

    def go(self) -> None:
        """Make those that wait."""
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            turn.callback(None)


class FullSpecs(Specs):
    """A store that has no room for the next C{refusals} intents."""

    refusals = 0

    def intend(self, spawn_id: str, spec_id: str, credential: bytes) -> Deferred[None]:
        """See L{Specs.intend}."""
        if self.refusals:
            self.refusals -= 1
            return fail(StoreFull("no space is left for the database (intend)"))
        return super().intend(spawn_id, spec_id, credential)


class SupervisorCase(SynchronousTestCase):
    """A running supervisor."""

    def setUp(self) -> None:
        self.world = World(Path(self.mktemp()).absolute())
        self.addCleanup(self.world.close)
        self.supervisor = self.world.supervisor
        self.supervisor.startService()
        self.addCleanup(lambda: self.successResultOf(self.supervisor.stopService()))

    def start(self, directory: Path | None = None) -> WorkerView:
        """An operator starts a worker; its process exists."""
        path = str(directory or self.world.project)
        return self.successResultOf(self.supervisor.start(path, "operator"))

    def ready(self, **state: object) -> FakeFollower:
        """The newest worker registers, and its Pi answers."""
        follower = self.world.follower(piReady=True, **state)
        self.world.registry.register(follower)
        return follower

    def running(self) -> tuple[WorkerView, FakeFollower]:
        """A worker that is ready."""
        view = self.start()
        return view, self.ready()

    def state(self, view: WorkerView) -> str:
        """The worker's state now."""
        found = self.supervisor.find(name=view.name)
        assert found is not None
        return found.state

    def crash(self, code: int | None = 1, signal: int | None = None, pi: bool = False) -> None:
        """The newest worker process ends."""
        self.world.spawner.end(self.world.spawner.workers[-1], code, signal, pi)

    def wait(self, seconds: int) -> None:
        """Let time pass in small steps, so that one thing can follow another."""
        for _ in range(seconds):
            self.world.clock.advance(1)

    def restart_daemon(self) -> None:
        """The daemon goes and another takes its place; the processes stay."""
        self.successResultOf(self.supervisor.stopService())
        self.world.registry.current.clear()
        self.world.registry.observers.clear()
        self.supervisor = self.world.make()
        self.supervisor.startService()

    def texts(self) -> list[str]:
        """What was posted."""
        return [text for _, text in self.world.notices.posted]


class StartTests(SupervisorCase):
    """Starting."""

    def test_provides(self) -> None:
        """It is what its neighbours expect, and so are the fakes."""
        for interface in (ISupervisor, IBindingPolicy, IExpectation, IRegistryObserver):
            verifyObject(interface, self.supervisor)
        self.start()
        verifyObject(IRegistry, self.world.registry)
        verifyObject(IFollower, self.world.follower())

    def test_start(self) -> None:
        """A start makes spec, Thread, intent and process, and is said in the Thread."""
        view = self.start()
        self.assertEqual((view.state, view.name, view.pid), ("spawning", "project", 5002))
        spec = self.world.specs.get(view.spec_id)
        assert spec is not None
        self.assertEqual((spec.desired, spec.directory), ("running", str(self.world.project)))
        self.assertIsNotNone(spec.slot_id)
        spawned = self.world.specs.live_spawn(view.spec_id)
        assert spawned is not None
        self.assertEqual((spawned.state, spawned.pid), ("made", 5002))
        self.assertEqual(spawned.credential, b"x" * 32)
        self.assertIsNotNone(self.world.threads.bindings.get(view.binding_key))
        self.assertEqual(self.texts(), ["⏳ project is starting…"])
        self.assertTrue(self.supervisor.is_starting(view.binding_key))
        self.assertTrue(self.supervisor.is_expected(view.binding_key))

    def test_process(self) -> None:
        """Arguments and environment carry no secret; directory and descriptors are as agreed."""
        view = self.start()
        process = self.world.spawner.workers[0]
        self.assertEqual(process.arguments[1:4], ["-m", "pitelegram.worker", "managed"])
        for name, value in (
            ("--spec-id", view.spec_id),
            ("--name", "project"),
            ("--directory", str(self.world.project)),
            ("--pi", str(self.world.program)),
        ):
            self.assertEqual(process.arguments[process.arguments.index(name) + 1], value)
        self.assertNotIn("--session", process.arguments)
        self.assertEqual(process.options["path"], str(self.world.paths.data))
        self.assertEqual(sorted(process.options["childFDs"]), [0, 1, 2, 3, 4])
        spawn_id = process.arguments[process.arguments.index("--spawn-id") + 1]
        self.assertEqual(process.options["env"]["PI_TELEGRAM_WORKER_MARK"], spawn_id)

    def test_ready_needs_pi(self) -> None:
        """Registered is not ready: Pi has to answer; then it is said once."""
        view = self.start()
        follower = self.world.follower(piReady=False)
        self.world.registry.register(follower)
        self.assertEqual(self.state(view), "spawning")
        settled = self.supervisor.when_settled(view.spec_id)
        self.assertNoResult(settled)
        self.world.registry.beat(follower, piReady=True)
        self.assertEqual(self.successResultOf(settled).state, "running")
        self.world.registry.beat(follower)
        self.assertEqual(self.texts()[1:], ["✅ project is ready."])
        self.assertFalse(self.supervisor.is_starting(view.binding_key))

    def test_a_session_means_ready_too(self) -> None:
        """A worker that does not say whether its Pi is ready is ready with a session."""
        view = self.start()
        self.world.registry.register(self.world.follower(sessionId="s"))
        self.assertEqual(self.state(view), "running")

    def test_another_spawns_registration_counts_nothing(self) -> None:
        """Only the current spawn may register, and only it is heard."""
        view = self.start()
        follower = self.world.follower(piReady=True)
        self.assertIsNone(self.supervisor.managed(view.spec_id, "another"))
        self.assertEqual(
            self.supervisor.managed(view.spec_id, follower.spawn_id), str(self.world.project)
        )
        follower.spawn_id = "another"
        self.world.registry.register(follower)
        self.assertEqual(self.state(view), "spawning")

    def test_refusals(self) -> None:
        """No directory, outside the roots, and a second worker for a directory are refused."""
        self.running()
        for path, code in (
            (str(self.world.home / "absent"), "not-a-directory"),
            ("relative", "not-a-directory"),
            ("/etc", "outside-roots"),
            (str(self.world.project), "already-running"),
        ):
            failure = self.failureResultOf(self.supervisor.start(path, "operator"), Refusal)
            self.assertEqual(failure.value.code, code, path)
        self.assertEqual(len(self.world.spawner.workers), 1)

    def test_links_out_of_the_roots(self) -> None:
        """A link that leads out of the roots is refused; one that stays is the same directory."""
        (self.world.home / "out").symlink_to("/etc")
        (self.world.home / "in").symlink_to(self.world.project)
        failure = self.failureResultOf(
            self.supervisor.start(str(self.world.home / "out"), "operator"), Refusal
        )
        self.assertEqual(failure.value.code, "outside-roots")
        self.assertEqual(self.start(self.world.home / "in").directory, str(self.world.project))

    def test_no_slot_leaves_nothing(self) -> None:
        """Without a free slot there is no spec afterwards."""
        self.world.threads.refusal = Refusal("no-slot", "full")
        starting = self.supervisor.start(str(self.world.project), "operator")
        self.failureResultOf(starting, Refusal)
        self.assertEqual(self.world.specs.list(), [])
        self.assertEqual(self.supervisor.views(), [])

    def test_missing_program(self) -> None:
        """A missing Pi is a normal failure with a sentence; a restart tries again."""
        self.world.program.unlink()
        starting = self.supervisor.start(str(self.world.project), "operator")
        failure = self.failureResultOf(starting, LaunchFailed)
        self.assertTrue(failure.value.permanent)
        [view] = self.supervisor.views()
        self.assertEqual(view.state, "failed")
        self.assertIn("was not found", view.last_error or "")
        self.assertIn("❌", self.texts()[-1])
        self.world.program.write_text("#!/bin/sh\n")
        self.world.program.chmod(0o755)
        self.successResultOf(self.supervisor.restart(view.spec_id, "operator"))
        self.ready()
        self.assertEqual(self.state(view), "running")

    def test_old_pi(self) -> None:
        """A Pi that is too old is refused, saying what to install."""
        self.world.spawner.version = b"0.73.1\n"
        starting = self.supervisor.start(str(self.world.project), "operator")
        failure = self.failureResultOf(starting, LaunchFailed)
        self.assertIn("0.84.4", str(failure.value))
        self.assertEqual(self.world.spawner.workers, [])

    def test_version_is_asked_once(self) -> None:
        """The version is asked again only when the program changed."""
        view, _ = self.running()
        self.crash()
        self.world.clock.advance(1)
        probes = [p for p in self.world.spawner.processes if p.arguments[-1] == "--version"]
        self.assertEqual(len(probes), 1)
        self.assertEqual(len(self.world.spawner.workers), 2)

    def test_not_ready_in_time(self) -> None:
        """After 60 s without readiness the ladder begins with SIGTERM, then it is tried again."""
        view = self.start()
        self.world.clock.advance(59.9)
        self.assertEqual(self.state(view), "spawning")
        self.world.clock.advance(0.2)
        self.assertEqual(self.state(view), "terminating")
        self.assertEqual(self.world.signals, [("worker", SIGTERM)])
        self.crash(0)
        self.assertEqual(self.state(view), "backoff")
        self.world.clock.advance(1)
        self.assertEqual(self.state(view), "spawning")

    def test_names(self) -> None:
        """Two directories of one name get different names."""
        other = self.world.home / "b" / "project"
        other.mkdir(parents=True)
        self.start()
        self.assertEqual(self.start(other).name, "b-project")

    def test_names_at_the_same_time(self) -> None:
        """Two of one name that are started at once, before either is stored, get different names too."""
        other = self.world.home / "b" / "project"
        other.mkdir(parents=True)
        self.world.specs = slow = SlowSpecs(self.world.database)
        self.restart_daemon()
        both = [self.supervisor.start(str(d), "operator") for d in (self.world.project, other)]
        for waiting in both:
            self.assertNoResult(waiting)
        slow.go()
        names = [self.successResultOf(each).name for each in both]
        self.assertEqual(names, ["project", "b-project"])


class CrashTests(SupervisorCase):
    """Ends that nobody asked for."""

    def test_restart_after_a_crash(self) -> None:
        """A crash is said, waited for and started again with the session of before."""
        view = self.start()
        session = self.world.paths.pi_sessions / "s.jsonl"
        session.parent.mkdir()
        header = {"type": "session", "id": "s", "cwd": str(self.world.project)}
        session.write_text(json.dumps(header) + "\n")
        self.ready(sessionId="s", sessionFile=str(session), sessionEntries=3)
        self.crash(None, 9)
        found = self.supervisor.find(name="project")
        assert found is not None
        self.assertEqual((found.state, found.restarts, found.pid), ("backoff", 1, None))
        self.assertIsNotNone(found.until_ms)
        self.assertIn("signal 9", found.last_error or "")
        self.assertIn("💥", self.texts()[-1])
        self.assertTrue(self.supervisor.is_starting(view.binding_key))
        self.world.clock.advance(1)
        arguments = self.world.spawner.workers[-1].arguments
        self.assertEqual(arguments[arguments.index("--session") + 1], str(session))
        self.ready()
        self.assertEqual(self.state(view), "running")

    def test_exit_zero_is_no_success(self) -> None:
        """An end without a stop counts as a crash whatever the code."""
        view, _ = self.running()
        self.crash(0)
        self.assertEqual(self.state(view), "backoff")

    def test_limit(self) -> None:
        """The sixth crash within ten minutes is the last; an operator starts it anew."""
        view, _ = self.running()
        pauses = []
        for _ in range(5):
            self.crash()
            found = self.supervisor.find(name="project")
            assert found is not None and found.until_ms is not None
            pauses.append(found.until_ms / 1000 - self.world.clock.seconds())
            self.world.clock.advance(60)
            self.ready()
        self.assertEqual(self.state(view), "running")
        self.crash()
        self.assertEqual(self.state(view), "failed")
        self.assertFalse(self.supervisor.is_expected(view.binding_key))
        self.assertTrue(all(0.4 <= pause <= 60 for pause in pauses), pauses)
        self.assertGreater(pauses[4], pauses[0])
        self.start()
        self.ready()
        self.assertEqual(self.state(view), "running")

    def test_forgiven(self) -> None:
        """Ten healthy minutes forgive all crashes before."""
        view, _ = self.running()
        for _ in range(7):
            self.crash()
            self.world.clock.advance(60)
            self.ready()
            self.world.clock.advance(600)
        self.assertEqual(self.state(view), "running")

    def test_permanent(self) -> None:
        """Exit code 78 stops at once, with the worker's own last words."""
        view, _ = self.running()
        log = self.world.paths.worker_log(view.binding_key)
        log.write_text("first\nPi refuses its arguments\n")
        self.crash(78)
        found = self.supervisor.find(name="project")
        assert found is not None
        self.assertEqual(found.state, "failed")
        self.assertIn("Pi refuses its arguments", found.last_error or "")
        self.assertIn("Pi refuses its arguments", self.texts()[-1])
        self.world.clock.advance(1000)
        self.assertEqual(len(self.world.spawner.workers), 1)

    def test_lock_taken_is_not_counted(self) -> None:
        """Exit code 75 is waited for and never counted."""
        view, _ = self.running()
        for _ in range(8):
            self.crash(75)
            self.assertEqual(self.state(view), "backoff")
            self.world.clock.advance(5)
        found = self.supervisor.find(name="project")
        assert found is not None
        self.assertEqual((found.state, found.restarts), ("spawning", 0))

    def test_a_full_disk_is_not_counted(self) -> None:
        """A start that could not be stored is tried again until there is room, however long."""
        self.world.specs = full = FullSpecs(self.world.database)
        self.restart_daemon()
        view, _ = self.running()
        full.refusals = 8
        self.crash()
        self.wait(60)
        found = self.supervisor.find(name="project")
        assert found is not None
        self.assertEqual((full.refusals, found.state, found.restarts), (0, "spawning", 1))

    def test_a_dead_workers_pi_is_waited_for(self) -> None:
        """A Pi that outlives its worker delays the successor; it is ended after 10 s."""
        view, follower = self.running()
        self.world.registry.beat(follower, piPid=7000, piBirthId="7000:start:1")
        self.crash(None, 9, pi=True)
        self.world.clock.advance(1)
        self.world.clock.pump([0.25] * 36)
        self.assertEqual(len(self.world.spawner.workers), 1)
        self.assertEqual(self.world.signals, [])
        self.world.clock.pump([0.25] * 8)
        self.assertEqual(self.world.signals, [("rest", SIGTERM)])
        self.world.clock.pump([0.25] * 8)
        self.assertEqual(self.world.signals[-1], ("rest", SIGKILL))
        self.world.spawner.end_pi()
        self.world.clock.pump([0.25] * 8)
        self.assertEqual(len(self.world.spawner.workers), 2)
        self.ready()
        self.assertEqual(self.state(view), "running")

    def test_a_pi_that_ends_by_itself(self) -> None:
        """A Pi that goes in time is not signalled; whether it left anything is looked at then."""
        self.running()
        self.crash(None, 9, pi=True)
        self.world.clock.advance(2)
        self.assertEqual(self.world.signals, [])
        self.world.spawner.end_pi()
        self.world.clock.advance(1)
        self.assertEqual(len(self.world.spawner.workers), 2)
        self.assertEqual(self.world.signals, [("rest", SIGTERM)])

    def test_what_a_crash_left(self) -> None:
        """A tool of the life before is ended before the next Pi works in its directory."""
        _, follower = self.running()
        self.world.remains[follower.spawn_id] = [7777]
        self.crash(None, 9)
        self.world.clock.advance(1)
        self.assertEqual(self.world.signals, [("rest", SIGTERM)])
        self.assertEqual(len(self.world.spawner.workers), 1)
        self.world.clock.advance(2)
        self.assertEqual(self.world.signals, [("rest", SIGTERM), ("rest", SIGKILL)])
        self.assertEqual(len(self.world.spawner.workers), 2)

    def test_what_was_left_while_no_daemon_ran(self) -> None:
        """The mark of a spawn whose end nobody saw is known from its record."""
        _, follower = self.running()
        self.world.remains[follower.spawn_id] = [7777]
        self.successResultOf(self.supervisor.stopService())
        self.world.spawner.end(self.world.spawner.workers[-1], None, 9)
        self.supervisor = self.world.make()
        self.supervisor.startService()
        self.world.clock.advance(2)
        self.assertEqual(self.world.signals, [("rest", SIGTERM), ("rest", SIGKILL)])
        self.assertEqual(len(self.world.spawner.workers), 2)

    def test_a_lock_that_stays_taken(self) -> None:
        """A lock that nobody of ours holds is a failure that is tried again, not a second copy."""
        view, _ = self.running()
        self.crash()
        lock = FileLock.try_acquire(self.world.paths.worker_lock(view.binding_key))
        assert lock is not None
        self.world.clock.pump([0.25] * 110)
        self.assertEqual(len(self.world.spawner.workers), 1)
        found = self.supervisor.find(name="project")
        assert found is not None
        self.assertIn("lock", found.last_error or "")
        lock.release()
        self.world.clock.pump([1.0] * 20)
        self.assertEqual(len(self.world.spawner.workers), 2)

    def test_lost_connection_changes_nothing(self) -> None:
        """Silence alone never ends a worker."""
        view, follower = self.running()
        self.world.registry.lose(follower)
        self.world.clock.pump([60.0] * 60)
        self.assertEqual(self.state(view), "running")
        self.assertEqual(self.world.signals, [])


class StopTests(SupervisorCase):
    """The ladder."""

    def test_link_ends_while_it_is_asked(self) -> None:
        """That is no fault: the phases go on, and nothing is logged as one."""
        view, follower = self.running()
        follower.link.failure = LinkLost("gone")
        stopping = self.supervisor.stop(view.spec_id, "operator")
        self.assertEqual(self.state(view), "draining")
        self.crash(0)
        self.assertEqual(self.successResultOf(stopping).state, "stopped")
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_drain(self) -> None:
        """A stop asks the worker to drain; its end is the end, and the slot is retired."""
        view, follower = self.running()
        stopping = self.supervisor.stop(view.spec_id, "operator")
        self.assertEqual(follower.link.asked, [("drain", 22500)])
        self.assertNoResult(stopping)
        self.assertEqual(self.state(view), "draining")
        self.assertTrue(self.supervisor.is_expected(view.binding_key))
        self.crash(0)
        self.assertEqual(self.successResultOf(stopping).state, "stopped")
        spec = self.world.specs.get(view.spec_id)
        assert spec is not None
        self.assertEqual((spec.desired, spec.slot_id), ("stopped", None))
        self.assertIsNone(self.world.specs.live_spawn(view.spec_id))
        self.assertEqual(self.world.signals, [])
        self.assertFalse(self.supervisor.is_expected(view.binding_key))

    def test_whole_ladder(self) -> None:
        """A worker that ignores everything goes through all phases within 30 s, then is killed."""
        view, follower = self.running()
        stopping = self.supervisor.stop(view.spec_id, "operator")
        seen = []
        for _ in range(301):
            if self.state(view) not in seen:
                seen.append(self.state(view))
            self.world.clock.advance(0.1)
        self.assertEqual(seen, ["draining", "aborting", "closing", "terminating", "killing"])
        self.assertEqual([mode for mode, _ in follower.link.asked], ["drain", "abort"])
        self.assertEqual(
            self.world.signals[:4],
            [("worker", SIGTERM), ("rest", SIGTERM), ("worker", SIGKILL), ("rest", SIGKILL)],
        )
        self.assertNoResult(stopping)
        self.world.clock.pump([1.0] * 5)
        self.assertGreater(len(self.world.signals), 8)
        self.crash(None, 9)
        self.assertEqual(self.successResultOf(stopping).state, "stopped")

    def test_proof_needs_the_lock(self) -> None:
        """A worker that ends and leaves its Pi is not gone: signals follow at once."""
        view, _ = self.running()
        stopping = self.supervisor.stop(view.spec_id, "operator")
        self.crash(0, pi=True)
        self.assertEqual(self.state(view), "terminating")
        self.assertNoResult(stopping)
        self.world.clock.advance(0)
        self.assertEqual(self.world.signals, [("rest", SIGTERM)])
        self.world.spawner.end_pi()
        self.world.clock.advance(0.3)
        self.assertEqual(self.successResultOf(stopping).state, "stopped")

    def test_without_a_link(self) -> None:
        """A worker that cannot be asked is signalled at once."""
        view, follower = self.running()
        self.world.registry.lose(follower)
        self.supervisor.stop(view.spec_id, "operator")
        self.assertEqual(self.state(view), "terminating")
        self.assertEqual(self.world.signals, [("worker", SIGTERM)])
        self.crash(0)

    def test_stop_during_backoff(self) -> None:
        """A worker that waits for its restart can be stopped and does not come back."""
        view, _ = self.running()
        self.crash()
        self.assertEqual(
            self.successResultOf(self.supervisor.stop(view.spec_id, "operator")).state, "stopped"
        )
        self.world.clock.advance(1000)
        self.assertEqual(len(self.world.spawner.workers), 1)

    def test_stop_before_the_process(self) -> None:
        """A start that waits for a lock is taken back, and its waiters hear of it."""
        view, _ = self.running()
        self.crash(1, pi=True)
        self.world.clock.advance(1)
        self.assertEqual(self.state(view), "spawning")
        restarting = self.supervisor.restart(view.spec_id, "operator")
        stopping = self.supervisor.stop(view.spec_id, "operator")
        self.assertEqual(self.state(view), "terminating")
        self.world.clock.advance(0)
        self.assertEqual(self.world.signals, [("rest", SIGTERM)])
        self.world.spawner.end_pi()
        self.world.clock.advance(0.3)
        self.assertEqual(self.successResultOf(stopping).state, "stopped")
        self.failureResultOf(restarting, LaunchFailed)
        self.world.clock.advance(100)
        self.assertEqual(len(self.world.spawner.workers), 1)

    def test_restart(self) -> None:
        """A restart goes down the ladder and comes up as the same spec with the same slot."""
        view, _ = self.running()
        before = self.world.specs.get(view.spec_id)
        restarting = self.supervisor.restart(view.spec_id, "operator")
        self.assertEqual(self.state(view), "draining")
        self.crash(0)
        self.assertEqual(self.successResultOf(restarting).state, "spawning")
        self.ready()
        after = self.world.specs.get(view.spec_id)
        assert before is not None and after is not None
        self.assertEqual(after.slot_id, before.slot_id)
        self.assertEqual(self.state(view), "running")

    def test_stop_while_restarting(self) -> None:
        """A stop during a restart's ladder wins."""
        view, _ = self.running()
        restarting = self.supervisor.restart(view.spec_id, "operator")
        stopping = self.supervisor.stop(view.spec_id, "operator")
        self.crash(0)
        self.assertEqual(self.successResultOf(stopping).state, "stopped")
        self.failureResultOf(restarting, LaunchFailed)

    def test_start_after_stop_is_a_new_slot(self) -> None:
        """Stop and start keep the spec and mint another slot."""
        view, _ = self.running()
        first = self.world.specs.get(view.spec_id)
        self.supervisor.stop(view.spec_id, "operator")
        self.crash(0)
        again = self.start()
        second = self.world.specs.get(view.spec_id)
        assert first is not None and second is not None
        self.assertEqual(again.spec_id, view.spec_id)
        self.assertNotEqual(first.slot_id, second.slot_id)

    def test_forget(self) -> None:
        """Only a stopped worker can be forgotten."""
        view, _ = self.running()
        failure = self.failureResultOf(self.supervisor.forget(view.spec_id, "operator"), Refusal)
        self.assertEqual(failure.value.code, "still-running")
        self.supervisor.stop(view.spec_id, "operator")
        self.crash(0)
        self.world.refusal = Refusal("still-settling", "wait")
        failure = self.failureResultOf(self.supervisor.forget(view.spec_id, "operator"), Refusal)
        self.assertEqual(failure.value.code, "still-settling")
        self.assertEqual([each.name for each in self.supervisor.views()], [view.name])
        self.world.refusal = None
        self.successResultOf(self.supervisor.forget(view.spec_id, "operator"))
        self.assertEqual((self.supervisor.views(), self.world.specs.list()), ([], []))
        self.assertEqual(self.world.given_up, [view.binding_key])
        self.assertIsNone(self.world.threads.bindings.get(view.binding_key))
        self.failureResultOf(self.supervisor.stop(view.spec_id, "operator"), Refusal)

    def test_nothing_starts_what_is_being_forgotten(self) -> None:
        """Neither a start nor a restart comes in between."""
        view, _ = self.running()
        self.supervisor.stop(view.spec_id, "operator")
        self.crash(0)
        leaving: Deferred[None] = Deferred()
        self.supervisor._give_up = lambda key: leaving
        forgetting = self.supervisor.forget(view.spec_id, "operator")
        for attempt in (
            self.supervisor.start(view.directory, "operator"),
            self.supervisor.restart(view.spec_id, "operator"),
            self.supervisor.forget(view.spec_id, "operator"),
        ):
            self.failureResultOf(attempt, Refusal)
        leaving.callback(None)
        self.successResultOf(forgetting)
        self.assertNotEqual(self.start().spec_id, view.spec_id)

    def test_audit(self) -> None:
        """Every transition is in the audit with its actor."""
        view, _ = self.running()
        self.supervisor.stop(view.spec_id, "operator")
        self.crash(0)
        self.assertEqual(
            self.world.audit(),
            [
                ("operator", "stopped > spawning"),
                ("daemon", "spawning > running"),
                ("operator", "running > draining"),
                ("daemon", "draining > stopped"),
            ],
        )

    def test_record_of_the_phases(self) -> None:
        """Each phase of an end, and the end itself, is audited with the time since it began."""
        view, _ = self.running()
        self.supervisor.stop(view.spec_id, "operator")
        self.wait(31)
        self.crash(None, 9)
        self.wait(1)
        lines = Leadership(self.world.database).history(f"spec:{view.spec_id}")
        phases = [(line["change"].partition(" > ")[2], line["reason"]) for line in lines[2:]]
        self.assertEqual(
            [phase for phase, _ in phases],
            ["draining", "aborting", "closing", "terminating", "killing", "stopped"],
        )
        for _, reason in phases[1:]:
            self.assertRegex(reason, r"; [0-9.]+ s after the end began$")
        self.assertEqual({line["actor"] for line in lines}, {"operator", "daemon", "policy"})

    def test_memory_is_short(self) -> None:
        """It is said where the worker starts, what runs already counted; nothing is refused."""
        self.running()
        self.assertIsNone(self.supervisor.memory_warning())
        self.world.free = 900 * MIB
        other = self.world.home / "other"
        other.mkdir()
        self.start(other)
        (text,) = [text for text in self.texts() if text.startswith("⏳ other")]
        self.assertIn("memory is short: 900 MiB are free, and one more worker beside the 1", text)


class DaemonRestartTests(SupervisorCase):
    """What a new daemon finds."""

    def test_daemon_stop_leaves_workers(self) -> None:
        """No worker is asked or signalled when the daemon stops, and no timer stays."""
        _, follower = self.running()
        self.successResultOf(self.supervisor.stopService())
        self.assertEqual((follower.link.asked, self.world.signals), ([], []))
        self.assertEqual(self.world.clock.getDelayedCalls(), [])

    def test_adoption(self) -> None:
        """A worker that lives is waited for, and no second copy is made."""
        view, _ = self.running()
        self.restart_daemon()
        self.assertEqual(self.state(view), "adopting")
        self.assertTrue(self.supervisor.is_expected(view.binding_key))
        self.ready()
        self.assertEqual(self.state(view), "running")
        self.assertEqual(len(self.world.spawner.workers), 1)
        self.assertEqual(self.texts().count("✅ project is ready."), 1)

    def test_ended_before_anybody_registered(self) -> None:
        """What is wanted outlives daemons that saw no worker: each is adopted, or resumed, by the next."""
        other = self.world.home / "b" / "project"
        other.mkdir(parents=True)
        session = self.world.paths.pi_sessions / "s.jsonl"
        session.parent.mkdir(parents=True, exist_ok=True)
        session.write_text(json.dumps({"type": "session", "cwd": str(self.world.project)}) + "\n")
        views = [self.start()]
        self.ready(sessionId="s", sessionFile=str(session))
        views.append(self.start(other))
        first, second = self.world.spawner.workers
        for _ in range(2):
            self.restart_daemon()
            self.assertEqual([self.state(view) for view in views], ["adopting", "adopting"])
        self.successResultOf(self.supervisor.stopService())
        for worker in (first, second):
            self.world.spawner.end(worker, None, 9)
        self.restart_daemon()
        self.assertEqual([self.state(view) for view in views], ["spawning", "spawning"])
        lines = [worker.arguments for worker in self.world.spawner.workers[2:]]
        resumed = {line[line.index("--name") + 1]: str(session) in line for line in lines}
        self.assertEqual(resumed, {"project": True, "b-project": False})

    def test_end_of_an_adopted_worker(self) -> None:
        """The end of a worker that is not our child is seen and counts as a crash."""
        view, _ = self.running()
        self.restart_daemon()
        self.ready()
        self.crash(None, 9)
        self.world.clock.advance(1)
        self.assertEqual(self.state(view), "backoff")
        self.world.clock.advance(1)
        self.assertEqual(len(self.world.spawner.workers), 2)

    def test_intent_with_a_process(self) -> None:
        """Killed between process and commit: the lock tells that there is one; it is adopted."""
        view = self.start()
        spawned = self.world.specs.live_spawn(view.spec_id)
        assert spawned is not None
        self.successResultOf(
            self.world.database.write(
                "unmake",
                lambda c: c.execute("UPDATE spawns SET state='intended', pid=NULL, birth=NULL"),
            )
        )
        self.restart_daemon()
        self.assertEqual(self.state(view), "adopting")
        self.world.clock.advance(5)
        self.ready()
        found = self.supervisor.find(name="project")
        assert found is not None
        self.assertEqual((found.state, found.pid), ("running", 5002))
        self.crash(None, 9)
        self.world.clock.advance(1)
        self.assertEqual(self.state(view), "backoff")

    def test_intent_with_a_process_that_goes(self) -> None:
        """Without a birth the lock tells of the end too."""
        view = self.start()
        self.successResultOf(
            self.world.database.write(
                "unmake",
                lambda c: c.execute("UPDATE spawns SET state='intended', pid=NULL, birth=NULL"),
            )
        )
        self.restart_daemon()
        self.crash()
        self.world.clock.advance(0.3)
        self.assertEqual(self.state(view), "backoff")

    def test_intent_without_a_process(self) -> None:
        """Killed between intent and process: the lock is free, and a process is made anew."""
        spec = self.successResultOf(
            self.world.specs.create("s1", "project", str(self.world.project))
        )
        self.successResultOf(self.world.specs.want(spec.spec_id, "running", "slot"))
        self.successResultOf(self.world.specs.intend("old", spec.spec_id, b"c" * 32))
        self.restart_daemon()
        self.assertEqual(len(self.world.spawner.workers), 1)
        spawned = self.world.specs.live_spawn(spec.spec_id)
        assert spawned is not None
        self.assertNotEqual(spawned.spawn_id, "old")

    def test_dead_while_the_daemon_was_away(self) -> None:
        """A recorded worker that is gone is started again, after its Pi is gone too."""
        view, _ = self.running()
        self.successResultOf(self.supervisor.stopService())
        self.crash(None, 9, pi=True)
        self.restart_daemon()
        self.assertEqual(self.state(view), "spawning")
        self.world.clock.advance(2)
        self.assertEqual(len(self.world.spawner.workers), 1)
        self.world.spawner.end_pi()
        self.world.clock.advance(0.3)
        self.assertEqual(len(self.world.spawner.workers), 2)

    def test_overdue(self) -> None:
        """One that lives but does not register stays, with a choice; it is not killed."""
        view, _ = self.running()
        self.restart_daemon()
        self.world.clock.advance(61)
        self.assertEqual(self.state(view), "adopting")
        self.assertIn("does not answer", self.texts()[-1])
        self.assertEqual(self.world.signals, [])
        self.world.clock.advance(600)
        self.assertEqual(self.state(view), "adopting")
        self.supervisor.keep_waiting(view.spec_id)
        self.ready()
        self.assertEqual(self.state(view), "running")

    def test_choice_has_its_buttons(self) -> None:
        """The notice of an overdue worker carries what can be done."""
        view, _ = self.running()
        self.restart_daemon()
        self.world.clock.advance(61)
        self.assertEqual(
            self.world.notices.buttons[-1],
            [
                ("♻️ Start anew", f"ptd:r:{view.spec_id}"),
                ("⏳ Keep waiting", f"ptd:k:{view.spec_id}"),
            ],
        )

    def test_failure_has_its_button(self) -> None:
        """The notice of one that failed for good carries the way to try again."""
        view, _ = self.running()
        self.crash(78)
        self.assertEqual(self.state(view), "failed")
        self.assertEqual(self.world.notices.buttons[-1], [("♻️ Retry", f"ptd:r:{view.spec_id}")])

    def test_new_session_instead(self) -> None:
        """A failed worker may be started without its session, once; later starts resume again."""
        view, _ = self.running()
        self.ready(sessionId="s", sessionFile="/gone/s.jsonl", sessionEntries=3)
        self.crash(78)
        self.assertEqual(
            self.world.notices.buttons[-1],
            [
                ("♻️ Retry", f"ptd:r:{view.spec_id}"),
                ("🆕 New session", f"ptd:f:{view.spec_id}"),
            ],
        )
        self.supervisor.restart(view.spec_id, "operator", True)
        arguments = self.world.spawner.workers[-1].arguments
        self.assertIn("--fresh", arguments)
        self.assertNotIn("--session", arguments)

    def test_start_anew_instead_of_waiting(self) -> None:
        """Starting anew goes down the ladder first."""
        view, _ = self.running()
        self.restart_daemon()
        self.world.clock.advance(61)
        restarting = self.supervisor.restart(view.spec_id, "operator")
        self.assertEqual(self.state(view), "terminating")
        self.assertEqual(self.world.signals, [("worker", SIGTERM)])
        self.crash(None, 15)
        self.world.clock.advance(1)
        self.assertEqual(self.successResultOf(restarting).state, "spawning")
        self.assertEqual(len(self.world.spawner.workers), 2)

    def test_stop_was_begun(self) -> None:
        """A stop that the former daemon could not finish is finished."""
        view, _ = self.running()
        self.supervisor.stop(view.spec_id, "operator")
        self.restart_daemon()
        self.assertEqual(self.state(view), "terminating")
        self.crash(0)
        self.world.clock.advance(1)
        self.assertEqual(self.state(view), "stopped")

    def test_no_fresh_budget(self) -> None:
        """Crashes count beyond the daemon that saw them; so do restarts."""
        view, _ = self.running()
        for _ in range(3):
            self.crash()
            self.wait(60)
            self.ready()
        self.restart_daemon()
        self.ready()
        for _ in range(2):
            self.crash()
            self.wait(60)
            self.ready()
        found = self.supervisor.find(name="project")
        assert found is not None
        self.assertEqual((found.state, found.restarts), ("running", 5))
        self.crash()
        self.assertEqual(self.state(view), "failed")

    def test_old_crashes_are_forgotten(self) -> None:
        """What is longer ago than the window counts for nobody."""
        view, _ = self.running()
        for _ in range(5):
            self.crash()
            self.wait(60)
            self.ready()
        self.world.clock.advance(601)
        self.restart_daemon()
        self.ready()
        self.crash()
        self.wait(1)
        self.assertEqual(self.state(view), "backoff")

    def test_operators_restart_is_remembered(self) -> None:
        """Nothing of before is left, for a later daemon either: no old count comes back."""
        view, _ = self.running()
        self.crash()
        self.wait(2)
        self.ready()
        self.world.clock.advance(601)
        self.restart_daemon()
        self.ready()
        self.assertEqual(self.supervisor.views()[0].restarts, 1)
        self.supervisor.restart(view.spec_id, "operator")
        self.crash(0)
        self.wait(1)
        self.ready()
        self.assertEqual(self.supervisor.views()[0].restarts, 0)
        self.restart_daemon()
        self.assertEqual(self.supervisor.views()[0].restarts, 0)

    def test_a_clock_that_was_set_back(self) -> None:
        """Crashes that seem to lie in the future count as just now, and do not stay for ever."""
        view, _ = self.running()
        self.successResultOf(
            self.world.specs.set_record(view.spec_id, 4, "[9999999999999, 9999999999998]", None)
        )
        self.restart_daemon()
        self.ready()
        for _ in range(3):
            self.crash()
            self.wait(60)
            self.ready()
        self.crash()
        self.assertEqual(self.state(view), "failed")

    def test_failed_stays_failed(self) -> None:
        """A new daemon shows it with its reason and starts nothing; an operator does."""
        view, _ = self.running()
        log = self.world.paths.worker_log(view.binding_key)
        log.write_text("Pi refuses its arguments\n")
        self.crash(78)
        posted = len(self.texts())
        self.restart_daemon()
        self.world.clock.advance(600)
        found = self.supervisor.find(name="project")
        assert found is not None
        self.assertEqual(found.state, "failed")
        self.assertIn("Pi refuses its arguments", found.last_error or "")
        self.assertEqual((len(self.world.spawner.workers), len(self.texts())), (1, posted))
        self.successResultOf(self.supervisor.restart(view.spec_id, "operator"))
        self.ready()
        self.assertEqual(self.state(view), "running")
        self.restart_daemon()
        self.ready()
        self.assertEqual(self.state(view), "running")

    def test_damaged_record(self) -> None:
        """A record that cannot be read counts nothing."""
        view, _ = self.running()
        for text in ("rubbish", "{}", '["a", null, true]', f"[{10**400}, -1]"):
            self.successResultOf(self.world.specs.set_record(view.spec_id, 0, text, None))
            self.restart_daemon()
            self.ready()
            self.assertEqual(self.state(view), "running")

    def test_stopped_stays_stopped(self) -> None:
        """Only what is wanted is started by a new daemon."""
        view, _ = self.running()
        self.supervisor.stop(view.spec_id, "operator")
        self.crash(0)
        self.restart_daemon()
        self.assertEqual(self.state(view), "stopped")
        self.assertEqual(len(self.world.spawner.workers), 1)

    def test_before_the_start_everything_managed_is_expected(self) -> None:
        """Nobody opens a managed inbox before the specs were taken up."""
        fresh = self.world.make()
        self.assertTrue(fresh.is_expected("spec-x"))
        self.assertFalse(fresh.is_expected("ws-x"))
        self.assertFalse(self.supervisor.is_expected("spec-x"))

    def test_memory(self) -> None:
        """Session and Pi are stored when they change, and only then."""
        view, follower = self.running()
        self.world.registry.beat(
            follower, sessionId="a", sessionFile="/s/a", piPid=7000, piBirthId="7000:start:1"
        )
        spec, spawned = (
            self.world.specs.get(view.spec_id),
            self.world.specs.live_spawn(view.spec_id),
        )
        assert spec is not None and spawned is not None
        self.assertEqual((spec.session_id, spec.session_file), ("a", "/s/a"))
        self.assertEqual((spawned.pi_pid, spawned.pi_birth), (7000, "7000:start:1"))
        found = self.supervisor.find(worker_id="worker-1")
        assert found is not None
        self.assertEqual((found.pi_pid, found.session_file), (7000, "/s/a"))
        self.world.registry.beat(follower, piPid="7", sessionFile=5, queued="x", activity="odd")
        self.assertEqual(self.supervisor.views()[0].activity, "idle")
        self.assertEqual(self.world.specs.get(view.spec_id), spec)

    def test_observers(self) -> None:
        """Observers see each transition."""
        seen: list[str] = []
        self.supervisor.subscribe(lambda view: seen.append(view.state))
        self.running()
        self.crash()
        self.assertEqual(seen, ["spawning", "running", "backoff"])

    def test_births_are_spared(self) -> None:
        """Other workers' processes are what no signal may reach."""
        _, follower = self.running()
        other = self.world.home / "other"
        other.mkdir()
        second = self.start(other)
        spared = list(self.supervisor._others(second.spec_id))
        self.assertIn(follower.birth, spared)
        self.assertNotIn(ProcessBirth(second.pid or 0, f"{second.pid}:start:1"), spared)

"""Who may be what, and who replaces whom."""

from __future__ import annotations

from itertools import count
from typing import Any

from twisted.internet.defer import Deferred

from pitelegram import errors
from pitelegram.bus.interfaces import Peer
from pitelegram.targets import TelegramTarget
from pitelegram.testing.bus import a_registration
from pitelegram.testing.followers import FakeLink
from tests.routing.support import ALPHA, OWNER, RoutingCase
from tests.worker.test_queue import Replaced


class Watcher:
    """An observer that notes what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def registered(self, follower: Any) -> None:
        """Noted."""
        self.events.append(("registered", follower.generation))

    def state_changed(self, follower: Any) -> None:
        """Noted."""
        self.events.append(("state", follower.generation))

    def lost(self, follower: Any) -> None:
        """Noted."""
        self.events.append(("lost", follower.generation))


class RegistryCase(RoutingCase):
    """With an observer."""

    def setUp(self) -> None:
        """Subscribe."""
        super().setUp()
        self.watcher = Watcher()
        self.registry.subscribe(self.watcher)

    def attached(self, pid: int | None = None) -> FakeLink:
        """A connection that has proven the shared secret."""
        return FakeLink(
            Peer(credential="shared", secret_id="epoch-1", pid=pid), leader=self.registry
        )

    def attach(self, link: FakeLink, **changes: Any) -> dict[str, Any]:
        """Register an attached worker."""
        return self.register(link, kind="attached", **changes)

    def refused(self, link: FakeLink, **changes: Any) -> str:
        """It may not be that; returns why."""
        failing = self.registry.register(link, a_registration(**changes), False)
        return str(self.failureResultOf(failing, errors.BusBadRequest).value)


class ManagedTests(RegistryCase):
    """Workers of specs."""

    def test_answer(self) -> None:
        """The registration comes back with all that the contract adds."""
        self.successResultOf(self.bindings.assign_slot(ALPHA, "A", "Fox"))
        self.successResultOf(self.bindings.set_title(ALPHA, "Fox · alpha"))
        link = self.link()
        answer = self.register(link, requestedName="alpha")
        for name in ("instanceId", "pid", "processBirthId", "requestedName", "cwd"):
            self.assertIn(name, answer)
        self.assertEqual(answer["bindingKey"], ALPHA)
        self.assertEqual(answer["target"], {"chatId": OWNER, "threadId": 11})
        self.assertEqual(
            (answer["slot"], answer["threadName"], answer["displayTitle"]),
            ("A", "Fox", "Fox · alpha"),
        )
        self.assertEqual((answer["heartbeatMs"], answer["staleMs"]), (1000, 15000))
        self.assertEqual(answer["epoch"], "epoch-1")
        row = self.bindings.last_worker(ALPHA)
        assert row is not None
        self.assertEqual(row["worker_id"], answer["workerId"])
        self.assertEqual(row["generation"], answer["registrationGeneration"])

    def test_no_thread_yet(self) -> None:
        """Registration does not depend on Telegram: the target is null, and follows later."""
        self.successResultOf(self.bindings.clear_target(ALPHA, (OWNER, 11)))
        link = self.link()
        self.assertIsNone(self.register(link)["target"])
        target = TelegramTarget(OWNER, 55)
        self.registry.target_changed(ALPHA, target, None, "created")
        self.assertEqual(link.targets, [({"chatId": OWNER, "threadId": 55}, None, "created")])
        self.registry.target_changed("spec-b", target, None, "created")

    def test_only_that_spec(self) -> None:
        """A spawn's credential registers its own spec's managed worker and nothing else."""
        link = self.link("a")
        self.assertIn("managed", self.refused(link, kind="attached"))
        self.assertIn("ownerId", self.refused(link, ownerId="worker:beta"))
        self.assertIn("bindingKey", self.refused(link, ownerId=None, bindingKey="spec-b"))
        self.register(link, bindingKey=ALPHA)

    def test_owner_id(self) -> None:
        """Its ownerId may be its name or its spec id."""
        for owner in ("worker:alpha", "worker:a"):
            link = self.link("a")
            registration = a_registration(ownerId=owner)
            self.successResultOf(self.registry.register(link, registration, False))

    def test_unwanted_spawn(self) -> None:
        """A spawn that the supervisor does not know is refused."""
        link = FakeLink(Peer(credential="worker:a", secret_id="spawn-old", pid=None))
        self.refused(link, ownerId=None)
        unknown = FakeLink(Peer(credential="worker:zzz", secret_id="x", pid=None))
        self.refused(unknown, ownerId=None)
        odd = FakeLink(Peer(credential="other", secret_id="x", pid=None))
        self.refused(odd, ownerId=None)

    def test_pid(self) -> None:
        """The pid must be the connected process, where the system tells it."""
        link = FakeLink(Peer(credential="worker:a", secret_id="spawn-a", pid=99))
        self.assertIn("pid", self.refused(link, ownerId=None))
        self.register(link, pid=99)

    def test_worker_id_follows_the_process(self) -> None:
        """The same birth keeps its worker id over registrations; another process gets its own."""
        first = self.register(self.link())["workerId"]
        generations = set()
        for _ in range(2):
            self.registry.live(ALPHA).link.cut()  # type: ignore[union-attr]
            answer = self.register(self.link())
            self.assertEqual(answer["workerId"], first)
            generations.add(answer["registrationGeneration"])
        self.assertEqual(len(generations), 2)
        self.registry.live(ALPHA).link.cut()  # type: ignore[union-attr]
        other = self.register(self.link(), processBirthId="4242:start:2")
        self.assertNotEqual(other["workerId"], first)

    def test_live_one_stays(self) -> None:
        """A second process does not push a live worker out, whatever it names."""
        link = self.follow()
        old = link.registration
        assert old is not None
        self.policy.specs["a"] = ("alpha", "/projects/alpha", "spawn-2")
        rival = FakeLink(Peer(credential="worker:a", secret_id="spawn-2", pid=None))
        for changes in (
            {},
            {"previousInstanceId": old["instanceId"]},
            {"previousInstanceId": "1:1", "processBirthId": old["processBirthId"]},
        ):
            merged = {
                "processBirthId": "9:start:9",
                "instanceId": "9:9",
                "ownerId": None,
                **changes,
            }
            self.assertIn("live", self.refused(rival, **merged))
        self.assertTrue(link.connected)
        self.assertIs(self.registry.live(ALPHA).link, link)  # type: ignore[union-attr]

    def test_same_process_replaces_itself(self) -> None:
        """A worker whose connection is half dead comes back over a new one."""
        link = self.follow()
        again = self.link()
        instance = link.registration["instanceId"]  # type: ignore[index]
        answer = self.register(again, previousInstanceId=instance)
        self.assertFalse(link.connected)
        self.assertIs(self.registry.live(ALPHA).link, again)  # type: ignore[union-attr]
        self.assertEqual([event for event, _ in self.watcher.events], ["registered", "lost"])
        self.assertRaises(errors.StaleGeneration, self.registry.heartbeat, link, {})
        self.registry.heartbeat(again, {})
        self.assertEqual(self.watcher.events[-1], ("registered", answer["registrationGeneration"]))

    def test_again_on_the_same_connection(self) -> None:
        """Registering again on one connection gives a new generation and keeps the connection."""
        link = self.follow()
        before = link.registration["registrationGeneration"]  # type: ignore[index]
        after = self.register(link)["registrationGeneration"]
        self.assertNotEqual(before, after)
        self.assertTrue(link.connected)
        self.assertEqual(self.registry.live(ALPHA).generation, after)  # type: ignore[union-attr]

    def test_serialised(self) -> None:
        """Two registrations of one key are done one after the other."""
        first: Deferred[Any] = Deferred()
        ensure = self.threads.ensure
        calls: list[str] = []

        class Slow:
            def ensure(self, *arguments: Any) -> Deferred[Any]:
                calls.append("ensure")
                return first if len(calls) == 1 else ensure(*arguments)

        self.registry._threads = Slow()  # type: ignore[assignment]
        one = self.registry.register(self.link(), a_registration(ownerId=None), False)
        rival = a_registration(ownerId=None, instanceId="1:1", processBirthId="1:start:1")
        two = self.registry.register(self.link(), rival, False)
        self.assertEqual(calls, ["ensure"])
        self.assertNoResult(two)
        first.callback(None)
        self.successResultOf(one)
        self.failureResultOf(two, errors.BusBadRequest)

    def test_no_slot(self) -> None:
        """The 27th is refused with the reason."""
        self.threads.refusal = errors.Refusal("no-slot", "all 26 places are taken")
        self.assertIn("26", self.refused(self.link(), ownerId=None))


class AttachedTests(RegistryCase):
    """Workers of terminal Pis."""

    def test_shared_registers_attached_only(self) -> None:
        """The shared secret gives no managed binding, under no name."""
        link = self.attached()
        self.refused(link, kind="managed")
        self.refused(link, kind="attached", ownerId="worker:alpha")
        self.refused(link, kind="attached", ownerId=None, profileKey="worker:alpha")
        self.refused(link, kind="attached", ownerId=None, bindingKey=ALPHA)

    def test_binding_is_kept(self) -> None:
        """The directory's binding comes back with the next Pi there."""
        link = self.attached()
        key = self.attach(link, cwd="/somewhere")["bindingKey"]
        self.assertRegex(key, r"\Aws-[0-9a-f]{16}\Z")
        link.cut()
        again = self.attach(
            self.attached(), cwd="/somewhere/../somewhere", processBirthId="8:start:8"
        )
        self.assertEqual(again["bindingKey"], key)
        other = self.attach(self.attached(), cwd="/elsewhere", processBirthId="9:start:9")
        self.assertNotEqual(other["bindingKey"], key)

    def test_one_live_per_binding(self) -> None:
        """A second Pi in the same directory gets a binding of its own while the first lives."""
        first = self.attach(self.attached(), cwd="/x", profileKey="manual:1")
        second = self.attach(
            self.attached(), cwd="/x", profileKey="manual:2", processBirthId="8:start:8"
        )
        self.assertNotEqual(first["bindingKey"], second["bindingKey"])

    def test_reload_of_the_same_pi(self) -> None:
        """A reloaded extension of the same Pi replaces its predecessor when it names it."""
        link = self.attached()
        first = self.attach(link, cwd="/x", profileKey="manual:1")
        stranger = a_registration(
            kind="attached",
            ownerId=None,
            cwd="/x",
            profileKey="manual:1",
            processBirthId="8:start:8",
        )
        failing = self.registry.register(self.attached(), stranger, False)
        self.failureResultOf(failing, errors.BusBadRequest)
        again = self.attach(
            self.attached(),
            cwd="/x",
            profileKey="manual:1",
            processBirthId="8:start:8",
            previousInstanceId=first["instanceId"],
        )
        self.assertEqual(again["bindingKey"], first["bindingKey"])
        self.assertFalse(link.connected)

    def test_restore(self) -> None:
        """Restoring needs a binding with a Thread, makes none, and gives it back."""
        registration = a_registration(kind="attached", ownerId=None, cwd="/x")
        failing = self.registry.register(self.attached(), registration, True)
        refusal = self.failureResultOf(failing, errors.Refusal).value
        self.assertEqual(refusal.code, "workspace-binding-unavailable")
        self.assertEqual([b.kind for b in self.bindings.list()], ["managed", "managed"])
        link = self.attached()
        key = self.attach(link, cwd="/x")["bindingKey"]
        link.cut()
        failing = self.registry.register(self.attached(), registration, True)
        self.failureResultOf(failing, errors.Refusal)
        self.give(key, 70)
        self.places.forget()
        answer = self.successResultOf(self.registry.register(self.attached(), registration, True))
        self.assertEqual((answer["bindingKey"], answer["target"]["threadId"]), (key, 70))


class WorkspaceTests(RegistryCase):
    """Bindings of exact directories, as C{04-bus} and the acceptance list have them."""

    def setUp(self) -> None:
        """Threads follow by the test's word."""
        super().setUp()
        self.births = count(100)

    def come(self, cwd: str, **changes: Any) -> tuple[FakeLink, dict[str, Any]]:
        """Another process registers."""
        link = self.attached()
        changes.setdefault("processBirthId", f"{next(self.births)}:start:1")
        return link, self.attach(link, cwd=cwd, **changes)

    def restore(self, cwd: str, **changes: Any) -> Any:
        """Another process wants to come back."""
        changes.setdefault("processBirthId", f"{next(self.births)}:start:1")
        registration = a_registration(kind="attached", ownerId=None, cwd=cwd, **changes)
        return self.registry.register(self.attached(), registration, True)

    def unavailable(self, restoring: Any) -> None:
        """There is nothing to come back to, and nothing was made."""
        before = [each.binding_key for each in self.bindings.list()]
        refusal = self.failureResultOf(restoring, errors.Refusal).value
        self.assertEqual(refusal.code, "workspace-binding-unavailable")
        self.assertEqual([each.binding_key for each in self.bindings.list()], before)

    def test_exact_directory(self) -> None:
        """A directory below, above or with the same name elsewhere is another workspace."""
        link, answer = self.come("/x/app")
        self.give(answer["bindingKey"], 70)
        link.cut()
        for other in ("/x", "/x/app/sub", "/y/app", "/x/App"):
            self.unavailable(self.restore(other))
        back = self.successResultOf(self.restore("/x/app/../app/"))
        self.assertEqual(back["bindingKey"], answer["bindingKey"])

    def test_the_living_are_not_restored(self) -> None:
        """A second process cannot come back to what the first one has."""
        _, answer = self.come("/x", profileKey="p1")
        self.give(answer["bindingKey"], 70)
        self.unavailable(self.restore("/x", profileKey="p2"))

    def test_second_process_comes_back_to_its_own(self) -> None:
        """Two of one directory find their own bindings again, in whatever order they come."""
        first, one = self.come("/x", profileKey="p1", pid=51)
        second, two = self.come("/x", profileKey="p2", pid=52)
        self.assertNotEqual(one["bindingKey"], two["bindingKey"])
        self.give(one["bindingKey"], 70)
        self.give(two["bindingKey"], 71)
        first.cut()
        second.cut()
        again = self.successResultOf(
            self.restore("/x", previousInstanceId=two["instanceId"], instanceId="7:7")
        )
        self.assertEqual(again["bindingKey"], two["bindingKey"])
        other = self.successResultOf(self.restore("/x", instanceId="8:8"))
        self.assertEqual(other["bindingKey"], one["bindingKey"])

    def test_remembered_target_and_letter(self) -> None:
        """Where no instance is remembered, the Thread or the letter tells which one it was."""
        first, one = self.come("/x", profileKey="p1")
        second, two = self.come("/x", profileKey="p2")
        for answer, slot, thread in ((one, "C", 70), (two, "D", 71)):
            self.successResultOf(self.bindings.assign_slot(answer["bindingKey"], slot, slot * 2))
            self.give(answer["bindingKey"], thread)
        first.cut()
        second.cut()
        for named in ({"target": {"chatId": OWNER, "threadId": 71}}, {"slot": "D"}):
            back = self.successResultOf(self.restore("/x", **named))
            self.assertEqual(back["bindingKey"], two["bindingKey"])
            self.registry.live(two["bindingKey"]).link.cut()  # type: ignore[union-attr]

    def test_process_that_moved(self) -> None:
        """A process whose session went to another directory keeps its binding over a reconnect."""
        link, answer = self.come("/x", processBirthId="5:start:5")
        key = answer["bindingKey"]
        self.registry.heartbeat(link, {"cwd": "/y"})
        self.assertEqual(self.bindings.get(key).directory, "/y")  # type: ignore[union-attr]
        link.cut()
        _, again = self.come("/x", processBirthId="5:start:5")
        self.assertEqual(again["bindingKey"], key)
        _, other = self.come("/x")
        self.assertNotEqual(other["bindingKey"], key)

    def test_deleted_meanwhile(self) -> None:
        """A Thread that is being deleted is not given back; who waits for the end hears the truth."""
        link, answer = self.come("/x")
        key = answer["bindingKey"]
        self.give(key, 70)
        link.cut()
        claimed = {key}
        self.registry._claimed = lambda binding_key: binding_key in claimed
        restoring = self.restore("/x")
        self.assertNoResult(restoring)
        self.successResultOf(self.bindings.clear_target(key, (OWNER, 70)))
        claimed.clear()
        self.clock.advance(0.1)
        self.unavailable(restoring)

    def test_managed_restores_too(self) -> None:
        """A managed worker may ask for no more than it had, like everybody."""
        answer = self.successResultOf(
            self.registry.register(self.link(), a_registration(ownerId=None), True)
        )
        self.assertEqual(answer["target"], {"chatId": OWNER, "threadId": 11})
        self.successResultOf(self.bindings.clear_target("spec-b", (OWNER, 12)))
        registration = a_registration(ownerId=None, instanceId="8:8")
        self.unavailable(self.registry.register(self.link("b"), registration, True))


class DirectoryTests(RegistryCase):
    """Sessions of other projects."""

    def directory(self) -> str | None:
        """Where alpha works, as the store has it."""
        binding = self.bindings.get(ALPHA)
        assert binding is not None
        return binding.directory

    def test_there_and_back(self) -> None:
        """The binding follows; slot, Thread, generation and worker stay."""
        self.successResultOf(self.bindings.assign_slot(ALPHA, "B", "Fox"))
        link = self.follow()
        before = self.registry.live(ALPHA)
        for cwd in ("/elsewhere/site", f"/projects/{ALPHA}"):
            self.registry.heartbeat(link, {"activity": "idle", "cwd": cwd})
            self.places.forget()
            self.assertEqual(self.directory(), cwd)
            binding = self.bindings.get(ALPHA)
            assert binding is not None
            self.assertEqual((binding.slot, binding.thread_id), ("B", 11))
            self.assertIs(self.registry.live(ALPHA), before)
        self.assertEqual(link.targets, [])

    def test_not_before_pi_is_up(self) -> None:
        """What a worker says before it knows its session moves nothing."""
        link = self.follow()
        state = {"activity": "idle", "cwd": "/elsewhere", "piReady": False}
        self.registry.heartbeat(link, state)
        self.assertEqual(self.directory(), f"/projects/{ALPHA}")
        self.registry.heartbeat(link, {**state, "piReady": True})
        self.assertEqual(self.directory(), "/elsewhere")

    def test_nonsense(self) -> None:
        """What is no path changes nothing."""
        link = self.follow()
        for cwd in (None, 5, "", "relative", "/a\0b", "/\udcff", "/" + "x" * 5000, ["/a"]):
            self.registry.heartbeat(link, {"cwd": cwd})
        self.assertEqual(self.directory(), f"/projects/{ALPHA}")

    def test_end_waits_for_registration(self) -> None:
        """A worker that moved still ends in its turn, as its registration began."""
        link = self.follow()
        self.registry.heartbeat(link, {"cwd": "/elsewhere"})
        outcome = self.successResultOf(self.registry.disconnect(link, "quit", False))
        self.assertEqual(outcome, {"thread": "kept"})

    def test_given_name_is_answered(self) -> None:
        """A registration hears the name that its Thread was given."""
        self.successResultOf(self.bindings.set_manual_name(ALPHA, (OWNER, 11), "Nav", "Nav"))
        answer = self.register(self.link())
        self.assertEqual((answer["manualName"], answer["displayTitle"]), ("Nav", "Nav"))


class LifeTests(RegistryCase):
    """Heartbeats and ends."""

    def test_ready_and_state(self) -> None:
        """The first heartbeat makes it ready; later ones tell changes only."""
        link = self.link()
        self.register(link)
        self.assertEqual(self.watcher.events, [])
        for state in ({"activity": "idle"}, {"activity": "idle"}, {"activity": "active"}):
            self.registry.heartbeat(link, state)
        self.assertEqual([event for event, _ in self.watcher.events], ["registered", "state"])

    def test_roster(self) -> None:
        """Slots of the living, the own title, the epoch."""
        self.successResultOf(self.bindings.assign_slot(ALPHA, "B", "Fox"))
        self.successResultOf(self.bindings.assign_slot("spec-b", "A", "Owl"))
        link = self.follow("a")
        self.follow("b")
        self.assertEqual(
            self.registry.heartbeat(link, {}),
            {"liveSlots": ["A", "B"], "displayTitle": None, "epoch": "epoch-1"},
        )

    def test_stale(self) -> None:
        """After 15 s of silence it is stale, and still live."""
        link = self.follow()
        self.clock.advance(14.9)
        self.assertFalse(self.registry.is_stale(ALPHA))
        self.clock.advance(0.2)
        self.assertTrue(self.registry.is_stale(ALPHA))
        self.assertIsNotNone(self.registry.live(ALPHA))
        self.registry.heartbeat(link, {})
        self.assertFalse(self.registry.is_stale(ALPHA))
        self.assertTrue(self.registry.is_stale("spec-zzz"))

    def test_lost(self) -> None:
        """A closed connection is no live follower, and is told once."""
        link = self.follow()
        link.cut()
        self.registry.lost(link)
        self.assertIsNone(self.registry.live(ALPHA))
        self.assertEqual(self.registry.followers(), [])
        self.assertEqual([event for event, _ in self.watcher.events], ["registered", "lost"])

    def test_disconnect(self) -> None:
        """A worker that leaves keeps its Thread and is gone; then its generation is stale."""
        link = self.follow()
        outcome = self.successResultOf(self.registry.disconnect(link, "quit", True))
        self.assertEqual(outcome, {"thread": "kept"})
        self.assertIsNone(self.registry.live(ALPHA))
        self.failureResultOf(self.registry.disconnect(link, "quit", True), errors.StaleGeneration)

    def test_claimed_while_it_is_recorded(self) -> None:
        """A Thread that was claimed before the process was on record is asked for anew."""
        ensured: list[str] = []
        real = self.threads.ensure
        self.registry._threads = Replaced(
            self.threads, ensure=lambda *named: ensured.append(named[0]) or real(*named)
        )
        claimed = iter([False, True, True, False])
        self.registry._claimed = lambda key: next(claimed)
        link = self.link()
        answer = self.registry.register(link, a_registration(ownerId="worker:alpha"), False)
        self.assertNoResult(answer)
        self.assertEqual(len(ensured), 1)
        self.assertIsNotNone(self.bindings.last_worker(ALPHA))
        self.clock.advance(0.1)
        self.successResultOf(answer)
        self.assertEqual(ensured, [ALPHA, ALPHA])

    def test_failing_observer(self) -> None:
        """An observer with a bug does not keep the others from hearing."""

        class Broken(Watcher):
            def registered(self, follower: Any) -> None:
                raise ZeroDivisionError

        self.registry._observers.insert(0, Broken())
        self.follow()
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertEqual([event for event, _ in self.watcher.events], ["registered"])

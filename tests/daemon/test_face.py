"""What the daemon shows and does on the control socket."""

from __future__ import annotations

import json
from typing import Any

import attrs
from twisted.internet.defer import fail, succeed
from twisted.trial.unittest import TestCase
from zope.interface.verify import verifyObject

from pitelegram.control.interfaces import IDaemon, Subject
from pitelegram.control.requests import ACTIONS
from pitelegram.daemon.face import Face
from pitelegram.daemon.operations import OPERATIONS
from pitelegram.errors import LaunchFailed, LinkLost, NobodyKnows, Refusal, StaleGeneration
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.logs import RecentEvents
from pitelegram.panel.interfaces import IStatusSource
from pitelegram.store.commands import Commands
from pitelegram.store.rows import Receipt
from pitelegram.testing.leading import LeaderWorld
from pitelegram.testing.panel import a_view
from pitelegram.testing.supervision import FakeFollower, FakeRegistry

ALPHA = {"name": "alpha"}


def a_receipt(action: str, subject: str) -> Receipt:
    """Return what an earlier daemon left of C{request-1}."""
    return Receipt(
        seq=1,
        request_id="request-1",
        action=action,
        canonical_version=1,
        canonical="{}",
        fingerprint="f",
        selector_proof="v1:x",
        subject=subject,
        state="send_started",
        owner_hash="x",
        owner_until_ms=0,
        envelope=None,
        created_ms=1,
        started_ms=1,
    )


CALL = {"method": "sendMessage", "params": {"text": "x"}}


@attrs.define(eq=False)
class Shown:
    """The part of a daemon that is shown."""

    leader: Any
    paths: Any
    events: RecentEvents = attrs.field(factory=RecentEvents)
    started_at: float = 1_700_000_000.0
    ownership: Any = None
    control: Any = None
    lines: Any = None
    snapshots: Any = None
    commands: Any = None


@attrs.define(eq=False)
class Link:
    """The part of a worker's connection that is used.

    @ivar answer: what each command gets.
    """

    answer: Any
    asked: list[Any] = attrs.field(factory=list)

    def control(self, request_id: str, command: dict[str, Any]) -> Any:
        """Record a command and answer it."""
        self.asked.append((request_id, command))
        return fail(self.answer) if isinstance(self.answer, Exception) else succeed(self.answer)


class FaceCase(TestCase):
    """A face over a leader that was built and not started."""

    timeout = 30

    def setUp(self) -> None:
        """Build it."""
        from twisted.internet import reactor

        self.world = LeaderWorld(
            reactor, a_view("alpha", last_error="why"), a_view("beta", "stopped", worker_id=None)
        )
        self.addCleanup(self.world.end)
        self.daemon = Shown(self.world.leader, self.world.paths)
        self.face = Face(self.daemon)  # type: ignore[arg-type]
        self.supervisor = self.world.supervisor
        self.registry = self.world.leader.registry = FakeRegistry()

    def connect(self, answer: Any, ready: bool = True) -> Link:
        """Have worker alpha connected."""
        link = Link(answer)
        follower = FakeFollower(
            spec_id="id-alpha",
            spawn_id="s1",
            birth=ProcessBirth(4711, "4711:start:1"),
            link=link,
            ready=ready,
        )
        self.registry.current = {follower.binding_key: follower}
        return link

    def perform(self, action: str, target: Any = ALPHA, **args: Any) -> Any:
        """Do a command, as the desk does."""

        @deferred
        async def go() -> Any:
            subject = self.face.resolve(action, target, args)
            self.face.check(action, subject)
            return await self.face.perform(action, subject, args, "request-1")

        return go()

    def settle(self, action: str, state: str = "spec:id-alpha", **args: Any) -> Any:
        """Ask what became of a command of an earlier daemon."""
        receipt = a_receipt(action, state)
        return self.face.settle(action, Subject(key=receipt.subject), args, receipt)

    def refused(self, code: str, action: str, target: Any = ALPHA, **args: Any) -> None:
        """The command is refused with that code."""
        refusal = self.failureResultOf(self.perform(action, target, **args), Refusal).value
        self.assertEqual(refusal.code, code)


class ReadingTests(FaceCase):
    """What is shown."""

    def test_interfaces(self) -> None:
        """Control socket and panel look at the same face."""
        self.assertTrue(verifyObject(IDaemon, self.face))
        self.assertTrue(verifyObject(IStatusSource, self.face))

    def test_starting(self) -> None:
        """Before there is a leader nothing can be asked."""
        self.daemon.leader = None
        self.assertEqual(self.assertRaises(Refusal, self.face.status).code, "backend_unavailable")

    @deferred
    async def test_status(self) -> None:
        """Facts come from where they are true."""
        leader = self.world.leader
        await leader.bindings.ensure("spec-id-alpha", "managed", "/projects/alpha")
        await leader.bindings.assign_slot("spec-id-alpha", "C", "Cedar")
        await leader.outbox.submit("spec-id-alpha", "d1", "final", "x", [CALL])
        await leader.learn_bot()
        status = self.face.status()
        self.assertEqual(status["bot"]["username"], "test_bot")
        self.assertEqual(status["bot"]["thread_mode"], "enabled")
        self.assertIs(status["bot"]["paired"], True)
        self.assertEqual(status["daemon"]["started_at_ms"], 1_700_000_000_000)
        self.assertEqual(status["polling"]["phase"], "starting")
        self.assertEqual(status["outbox"]["pending"], 1)
        alpha, beta = status["workers"]
        self.assertEqual((alpha["slot"], alpha["thread_name"]), ("C", "Cedar"))
        self.assertEqual((beta["state"], beta["slot"]), ("stopped", None))
        text = json.dumps(status)
        for private in (str(self.world.base), "/projects", '"why"', "1000", "spec-"):
            self.assertNotIn(private, text)

    def test_problems(self) -> None:
        """A damaged store or configuration and a lock that cannot be kept are said."""

        class Ownership:
            problem = "the disk is full"

        self.world.database.recovered = self.world.base
        self.daemon.ownership = Ownership()
        self.world.paths.telegram_json.write_text("{")
        self.world.watcher.look()
        problems = " ".join(self.face.status()["problems"])
        self.assertIn("the store was damaged", problems)
        self.assertIn("the disk is full", problems)
        self.assertIn("telegram.json was not valid JSON", problems)
        self.assertNotIn(str(self.world.base), problems)

    def test_blocked_bot(self) -> None:
        """A bot that its owner has blocked is said, and no longer once he lets it back in."""
        intake = self.world.leader.delivery.intake
        intake.blocked(True)
        self.assertIn("blocked the bot", " ".join(self.face.status()["problems"]))
        intake.blocked(False)
        self.assertNotIn("blocked the bot", " ".join(self.face.status()["problems"]))

    def test_silent_worker(self) -> None:
        """A worker that should run and is not heard of is said; a stopped one is not."""
        self.connect({})
        self.assertEqual(self.silent(), [])
        self.registry.stale = {"spec-id-alpha"}
        (problem,) = self.silent()
        self.assertIn("alpha", problem)

    def silent(self) -> list[str]:
        """The problems that speak of silence."""
        return [p for p in self.face.status()["problems"] if "silent" in p]

    def test_configuration_not_in_force(self) -> None:
        """A changed configuration that cannot be used is said until it can."""
        self.world.paths.telegram_json.write_text('{"cluster": {"leader": 5}}')
        self.world.watcher.look()
        (problem,) = [p for p in self.face.status()["problems"] if "telegram.json" in p]
        self.assertIn("cluster.leader", problem)

    def test_workers(self) -> None:
        """Public by default; the local operator's fields on request."""
        self.assertEqual(self.face.workers(False), self.face.status()["workers"])
        alpha, _ = self.face.workers(True)
        self.assertEqual((alpha["directory"], alpha["last_error"]), ("/projects/alpha", "why"))

    @deferred
    async def test_outbox(self) -> None:
        """Opaque keys, states and times; neither text nor binding."""
        outbox = self.world.leader.outbox
        await outbox.submit("spec-id-alpha", "d1", "final", "x", [CALL])
        (item,) = self.face.outbox()
        self.assertEqual(set(item), {"key", "state", "reason", "attempts", "created_at_ms"})
        self.assertEqual((item["state"], item["attempts"]), ("pending", 0))

    def test_events(self) -> None:
        """Events come from the daemon's own log."""
        heard: list[Any] = []
        stop = self.face.subscribe(heard.append)
        self.daemon.events({"log_format": "hello", "log_time": 1.0})
        stop()
        self.daemon.events({"log_format": "again", "log_time": 2.0})
        self.assertEqual([event["message"] for event in heard], ["hello"])
        self.assertEqual([event["message"] for event in self.face.events(1)], ["again"])


class DoingTests(FaceCase):
    """What is done."""

    def test_life(self) -> None:
        """Start, stop, restart and forget go to the supervisor and name the worker."""
        right = {"worker_id": "w-alpha", "name": "alpha", "state": "running"}
        found = self.successResultOf(self.perform("worker.start", {}, directory="/projects/alpha"))
        self.assertEqual(found, {**right, "warnings": []})
        for verb in ("stop", "restart", "forget"):
            found = self.successResultOf(self.perform(f"worker.{verb}"))
            found.pop("warnings", None)
            self.assertEqual(found, right)
        self.assertEqual(
            self.supervisor.asked,
            [
                ("start", "/projects/alpha"),
                ("stop", "id-alpha"),
                ("restart", "id-alpha"),
                ("forget", "id-alpha"),
            ],
        )

    def test_memory_is_short(self) -> None:
        """A start that may be too much is done, with a warning."""
        self.supervisor.short = "memory is short"
        found = self.successResultOf(self.perform("worker.start", {}, directory="/projects/alpha"))
        self.assertEqual(found["warnings"], ["memory is short"])

    @deferred
    async def test_tried_again(self) -> None:
        """A launch that failed for now is not refused: the wish is stored, and done later."""
        await self.world.leader.specs.create("id-alpha", "alpha", "/projects/alpha")
        self.supervisor.change("alpha", state="backoff", worker_id=None)
        begun = (
            ("worker.start", {}, {"directory": "/projects/alpha"}),
            ("worker.restart", ALPHA, {}),
        )
        for action, target, args in begun:
            self.supervisor.outcome = LaunchFailed("another process holds this worker's lock")
            found = await self.perform(action, target, **args)
            self.assertEqual(found["state"], "backoff")
            (warning,) = found["warnings"]
            self.assertIn("holds this worker's lock; it is tried again", warning)

    @deferred
    async def test_not_tried_again(self) -> None:
        """A launch that failed for good, or whose wish was withdrawn, fails the command."""
        await self.world.leader.specs.create("id-alpha", "alpha", "/projects/alpha")
        for state, permanent in (("failed", True), ("backoff", True), ("stopped", False)):
            self.supervisor.outcome = LaunchFailed("no", permanent=permanent)
            self.supervisor.change("alpha", state=state, worker_id=None)
            self.failureResultOf(self.perform("worker.restart"), LaunchFailed)

    def test_target(self) -> None:
        """By name or by id; others are unknown."""
        for target in (ALPHA, {"worker_id": "w-alpha"}):
            found = self.successResultOf(self.perform("resolve_target", target))
            self.assertEqual(found["name"], "alpha")
        self.refused("unknown_worker", "worker.stop", {"name": "gone"})
        self.refused("unknown_worker", "worker.stop", {"worker_id": "w-gone"})

    def test_refusals_pass(self) -> None:
        """What the supervisor refuses stays refused."""
        self.supervisor.outcome = Refusal("already-running", "it runs")
        self.refused("already-running", "worker.start", {}, directory="/projects/alpha")

    def test_commands(self) -> None:
        """Each is passed to the worker as the bus wants it, with the request's id."""
        for action, args, command in (
            ("prompt", {"text": "hi"}, {"type": "prompt", "message": "hi"}),
            ("steer", {"text": "hi"}, {"type": "steer", "message": "hi"}),
            ("abort", {}, {"type": "abort"}),
            ("clear_queue", {}, {"type": "clear_queue"}),
            (
                "switch_session",
                {"session_ref": "a/b.jsonl"},
                {"type": "switch_session", "sessionPath": "/sessions/a/b.jsonl"},
            ),
            (
                "answer",
                {"dialog_ref": "d", "text": "x"},
                {"type": "answer", "dialogRef": "d", "value": "x"},
            ),
            (
                "answer",
                {"dialog_ref": "d", "confirm": False},
                {"type": "answer", "dialogRef": "d", "confirmed": False},
            ),
            (
                "answer",
                {"dialog_ref": "d", "cancel": True},
                {"type": "answer", "dialogRef": "d", "cancelled": True},
            ),
            ("new_session", {}, {"type": "new_session"}),
            ("compact", {}, {"type": "compact"}),
            ("compact", {"instructions": "x"}, {"type": "compact", "customInstructions": "x"}),
            (
                "set_model",
                {"provider": "p", "model": "m"},
                {"type": "set_model", "provider": "p", "modelId": "m"},
            ),
            (
                "set_thinking_level",
                {"level": "low"},
                {"type": "set_thinking_level", "level": "low"},
            ),
        ):
            link = self.connect({"done": True})
            found = self.successResultOf(self.perform(f"worker.{action}", **args))
            self.assertEqual(found, {"done": True})
            self.assertEqual(link.asked, [("request-1", command)])

    def test_plain_result(self) -> None:
        """A worker's result that is no object is put into one."""
        self.connect(None)
        self.assertEqual(self.successResultOf(self.perform("worker.abort")), {"result": None})

    def test_keys_of_its_own(self) -> None:
        """What a worker says of public keys is left out, however deep and spelled."""
        self.connect({"model": {"id": "m", "stable-key": "wsk1_x"}, "stableKeyVersion": 1})
        found = self.successResultOf(self.perform("worker.get_state"))
        self.assertEqual(found, {"model": {"id": "m"}})

    def test_not_connected(self) -> None:
        """A worker that is not there, or has not opened its inbox, is unavailable."""
        self.refused("backend_unavailable", "worker.prompt", text="hi")
        self.connect({}, ready=False)
        self.refused("backend_unavailable", "worker.prompt", text="hi")

    def test_stopped(self) -> None:
        """For a worker that was stopped the refusal says how to start it."""
        performed = self.perform("worker.prompt", {"name": "beta"}, text="hi")
        refusal = self.failureResultOf(performed, Refusal).value
        self.assertIn("is stopped; pi-telegram workers restart", str(refusal))

    def test_link_lost(self) -> None:
        """A lost answer is no refusal: nobody knows."""
        self.connect(LinkLost("no answer"))
        self.failureResultOf(self.perform("worker.prompt", text="hi"), LinkLost)

    def test_registered_anew(self) -> None:
        """A worker that refuses what was meant for its former registration has done nothing."""
        self.connect(StaleGeneration("meant for another registration"))
        self.refused("stale_target", "worker.prompt", text="hi")

    @deferred
    async def test_outbox_retry(self) -> None:
        """A parked delivery goes again; an unknown key, or one that is on its way, is refused."""
        outbox = self.world.leader.outbox
        await outbox.submit("spec-id-alpha", "d1", "final", "x", [CALL])
        (item,) = self.face.outbox()
        self.refused("not_found", "outbox.retry", {}, key=item["key"])
        await outbox.sending(item["key"], 0)
        await outbox.park(item["key"], 0, "no-answer")
        found = await self.perform("outbox.retry", {}, key=item["key"])
        self.assertEqual(found, {"key": item["key"]})
        self.assertEqual(self.face.outbox()[0]["state"], "pending")
        self.refused("not_found", "outbox.retry", {}, key="gone")
        await outbox.submit("spec-id-alpha", "d2", "final", "x", [CALL], "known-incomplete")
        held = self.face.outbox()[1]
        self.assertEqual((held["state"], held["reason"]), ("hold", "known-incomplete"))
        self.refused("rejected", "outbox.retry", {}, key=held["key"])

    @deferred
    async def test_threads(self) -> None:
        """A review names what is inactive; deleting takes exactly that, once; without one it refuses."""
        self.refused("stale", "threads.delete_reviewed", {})
        self.assertEqual(await self.perform("threads.review", {}), {"inactive": []})
        self.refused("stale", "threads.delete_reviewed", {})
        bindings = self.world.leader.bindings
        await bindings.ensure("spec-gone", "managed", "/projects/gone")
        await bindings.set_target("spec-gone", 1000, 77, None)
        await bindings.assign_slot("spec-gone", "C", "Cedar")
        await bindings.set_inactive("spec-gone", 1)
        self.assertEqual(await self.perform("threads.review", {}), {"inactive": ["Cedar"]})
        self.assertEqual(self.world.api.made("deleteForumTopic"), [])
        found = await self.perform("threads.delete_reviewed", {})
        self.assertEqual(found, {"deleted": 1, "kept": 0})
        (call,) = self.world.api.made("deleteForumTopic")
        self.assertEqual(call.params["message_thread_id"], 77)
        self.refused("stale", "threads.delete_reviewed", {})

    def test_every_action(self) -> None:
        """Whatever the schema admits is done or refused in so many words."""
        done = {"worker.start", "worker.stop", "worker.restart", "worker.forget", "outbox.retry"}
        done |= {"threads.review", "threads.delete_reviewed"}
        for action in set(ACTIONS) - set(OPERATIONS) - done - {"resolve_target", "noop"}:
            target = ALPHA if ACTIONS[action].on_worker else {}
            self.refused("backend_unsupported", action, target)


class ResolvingTests(FaceCase):
    """What a command is about."""

    def test_start(self) -> None:
        """A directory without a spec gets one id, however it is spelled, until it has a spec."""
        first = self.face.resolve("worker.start", {}, {"directory": "/projects/new"})
        second = self.face.resolve("worker.start", {}, {"directory": "/projects/./new/"})
        other = self.face.resolve("worker.start", {}, {"directory": "/projects/other"})
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)
        self.successResultOf(self.world.leader.specs.create("s-new", "new", "/projects/new"))
        known = self.face.resolve("worker.start", {}, {"directory": "/projects/new"})
        self.assertEqual((known.key, known.name), ("spec:s-new", "new"))

    def test_without_target(self) -> None:
        """Commands about no worker have no subject."""
        self.assertEqual(self.face.resolve("outbox.retry", {}, {"key": "k"}), Subject())


class SettlingTests(FaceCase):
    """Commands that an earlier daemon had begun."""

    def setUp(self) -> None:
        """Have somewhere to look for effects."""
        super().setUp()
        self.daemon.commands = Commands(self.world.database, "host")

    def test_asked_of_the_worker(self) -> None:
        """The connected worker gets the same command with the same id."""
        link = self.connect({"deliveryId": "d"})
        found = self.successResultOf(self.settle("worker.prompt", text="hi"))
        self.assertEqual(found, {"deliveryId": "d"})
        self.assertEqual(link.asked, [("request-1", {"type": "prompt", "message": "hi"})])

    def test_refused_by_the_worker(self) -> None:
        """Its refusal is proof."""
        self.connect(Refusal("execution-failed", "no"))
        self.failureResultOf(self.settle("worker.abort"), Refusal)

    def test_worker_cannot_tell(self) -> None:
        """What a worker began and did not see the end of is no refusal, at once or later."""
        self.connect(Refusal("execution-failed", "nobody can tell", uncertain=True))
        self.failureResultOf(self.settle("worker.compact"), NobodyKnows)
        self.failureResultOf(self.perform("worker.compact"), NobodyKnows)

    def test_question_that_is_closed(self) -> None:
        """An option that was named by its number cannot be asked about any more: perhaps it was given."""
        link = self.connect({"dialogs": []})
        asking = self.settle("worker.answer", dialog_ref="d1", option=1)
        self.failureResultOf(asking, NobodyKnows)
        self.assertEqual(link.asked, [("state", {"type": "get_state"})])

    def test_session_that_is_gone(self) -> None:
        """A session file that went after it was switched to proves nothing."""
        self.connect({})
        self.supervisor.no_session = Refusal(
            "invalid_selection", "there is no session of that name"
        )
        asking = self.settle("worker.switch_session", session_ref="gone.jsonl")
        self.failureResultOf(asking, NobodyKnows)

    def test_nobody(self) -> None:
        """A stopped worker, or one that is forgotten, cannot be asked."""
        for subject in ("spec:id-beta", "spec:id-gone"):
            self.failureResultOf(self.settle("worker.abort", subject), NobodyKnows)

    @deferred
    async def test_waits_for_the_worker(self) -> None:
        """One that lives is asked as soon as it is back."""
        asking = self.settle("worker.abort")
        self.assertNoResult(asking)
        self.connect({"aborted": True})
        self.assertEqual(await asking, {"aborted": True})

    @deferred
    async def test_asked_again_after_it_registered_anew(self) -> None:
        """What was meant for its former registration is asked once more."""
        link = self.connect(StaleGeneration("meant for another registration"))
        asking = self.settle("worker.abort")
        self.assertEqual((len(link.asked), asking.called), (1, False))
        link.answer = {"aborted": True}
        self.assertEqual(await asking, {"aborted": True})

    @deferred
    async def test_own_changes(self) -> None:
        """What the daemon does itself is read from its store."""
        for action in ("worker.start", "worker.stop"):
            refusal = self.failureResultOf(self.settle(action), Refusal).value
            self.assertEqual(refusal.code, "not-begun")
        await self.world.leader.specs.create("id-alpha", "alpha", "/projects/alpha")
        await self.world.leader.specs.want("id-alpha", "running", "slot", "request-1")
        for action in ("worker.start", "worker.stop"):
            self.assertEqual(self.successResultOf(self.settle(action))["name"], "alpha")

    @deferred
    async def test_restart_and_forget(self) -> None:
        """A restart is proven by a later spawn, forgetting by there being nothing left."""
        self.failureResultOf(self.settle("worker.restart"), NobodyKnows)
        await self.world.leader.specs.create("id-alpha", "alpha", "/projects/alpha")
        await self.world.leader.specs.intend("p1", "id-alpha", b"secret")
        self.assertEqual(self.successResultOf(self.settle("worker.restart"))["name"], "alpha")
        self.failureResultOf(self.settle("worker.forget"), NobodyKnows)
        found = self.successResultOf(self.settle("worker.forget", "spec:gone"))
        self.assertEqual(found["state"], "stopped")

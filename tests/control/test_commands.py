"""The command desk: each request id at most once."""

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.control.commands import CommandDesk
from pitelegram.control.envelope import is_legal
from pitelegram.control.interfaces import IDaemon
from pitelegram.errors import (
    LaunchFailed,
    LinkLost,
    PiCancelled,
    PiGone,
    PiRefused,
    Refusal,
    StoreError,
)
from pitelegram.store.commands import Commands
from pitelegram.testing.control import FakeDaemon, FaultyCommands
from pitelegram.testing.stores import leader_database


def prompt(text="hi", request_id="r1", **changes):
    """A prompt request."""
    return {
        "schema_version": 1,
        "action": "worker.prompt",
        "request_id": request_id,
        "target": {"name": "a"},
        "args": {"text": text},
        **changes,
    }


def read(action="worker.get_state", **changes):
    """A reading request."""
    return {"schema_version": 1, "action": action, "target": {"name": "a"}, **changes}


class DeskCase(SynchronousTestCase):
    """Base: a desk with a fake daemon and table."""

    def setUp(self):
        """Build the desk."""
        self.daemon = FakeDaemon()
        self.clock = Clock()
        database = leader_database(self.clock)
        self.addCleanup(database.stopService)
        self.rows = Commands(database)
        self.commands = FaultyCommands(self.rows)
        self.desk = CommandDesk(self.daemon, self.commands, self.clock)

    def submit(self, value):
        """Return the envelope, which must be there at once and legal."""
        envelope = self.successResultOf(self.desk.submit(value))
        self.assertTrue(is_legal(envelope), envelope)
        return envelope

    def check(self, envelope, status, disposition, ok=False, dry_run=False):
        """Assert the four deciding fields."""
        self.assertEqual(
            (envelope["status"], envelope["disposition"], envelope["ok"], envelope["dry_run"]),
            (status, disposition, ok, dry_run),
        )


class FakeDaemonTests(SynchronousTestCase):
    """The fake daemon."""

    def test_provides(self):
        """It provides the interface."""
        self.assertTrue(verifyObject(IDaemon, FakeDaemon()))


class FormTests(DeskCase):
    """What is decided without the daemon."""

    def test_invalid(self):
        """A wrong request reaches nobody and leaves no row."""
        envelope = self.submit(prompt(dry_run="no"))
        self.check(envelope, "invalid_request", "no_receipt", dry_run=True)
        self.assertEqual(envelope["error"]["details"]["fields"], ["$.dry_run"])
        self.assertIsNone(envelope["request_id"])
        self.assertEqual((self.daemon.performed, self.rows.find("r1")), ([], None))

    def test_dry_run(self):
        """A dry run is pure: even for a worker that does not exist it is accepted and does nothing."""
        self.commands.broken["find"] = StoreError("closed")
        envelope = self.submit(prompt(dry_run=True))
        self.check(envelope, "dry_run", "no_receipt", ok=True, dry_run=True)
        self.assertEqual(envelope["request_id"], "r1")
        self.assertEqual(envelope["result"], {"target": {"name": "a"}, "args": {"text": "hi"}})
        self.assertEqual((self.daemon.performed, self.rows.find("r1")), ([], None))

    def test_noop(self):
        """C{noop} is answered without effect."""
        envelope = self.submit({"schema_version": 1, "action": "noop"})
        self.check(envelope, "noop", "no_receipt", ok=True, dry_run=True)


class ReadTests(DeskCase):
    """Reads leave no row."""

    def test_snapshot(self):
        """C{get_state} carries the worker's state."""
        self.daemon.answers["worker.get_state"] = {"streaming": False}
        envelope = self.submit(read())
        self.check(envelope, "snapshot", "no_receipt", ok=True, dry_run=True)
        self.assertEqual(envelope["result"], {"streaming": False})
        self.assertEqual(self.rows.started(), [])

    def test_resolve(self):
        """C{resolve_target} says who it is, or that there is nobody."""
        self.daemon.answers["resolve_target"] = {"worker_id": "w", "name": "a"}
        self.check(self.submit(read("resolve_target")), "resolved", "no_receipt", True, True)
        self.daemon.answers["resolve_target"] = Refusal("unknown_worker", "there is no such worker")
        envelope = self.submit(read("resolve_target"))
        self.check(envelope, "not_found", "no_receipt", dry_run=True)
        self.assertEqual(envelope["result"], {"candidates": []})

    def test_refused(self):
        """A state that cannot be read is a refusal."""
        self.daemon.answers["worker.get_state"] = Refusal("not-running", "it is stopped")
        envelope = self.submit(read())
        self.check(envelope, "rejected", "no_receipt", dry_run=True)
        self.assertEqual(envelope["error"]["details"], {"reason": "not-running"})

    def test_unavailable(self):
        """A worker that cannot be reached, or a defect, is told as such."""
        self.daemon.answers["worker.get_state"] = LinkLost("the worker's connection ended")
        self.check(self.submit(read()), "backend_unavailable", "no_receipt")
        self.daemon.answers["worker.get_state"] = ZeroDivisionError("secret")
        envelope = self.submit(read())
        self.check(envelope, "backend_unavailable", "no_receipt")
        self.assertNotIn("secret", str(envelope))
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def test_silent_worker(self):
        """A worker that never answers does not hold the caller for ever."""
        self.daemon.answers["worker.get_state"] = Deferred()
        answering = self.desk.submit(read())
        self.clock.advance(61)
        self.check(self.successResultOf(answering), "backend_unavailable", "no_receipt")


class ChangeTests(DeskCase):
    """Changes."""

    def test_accepted(self):
        """A command that worked is accepted, with the daemon's result, and remembered."""
        self.daemon.answers["worker.prompt"] = {"queued": 1}
        envelope = self.submit(prompt())
        self.check(envelope, "accepted", "terminal_accepted", ok=True)
        self.assertEqual(envelope["result"], {"queued": 1})
        self.assertEqual(
            self.daemon.performed, [("worker.prompt", {"name": "a"}, {"text": "hi"}, "r1")]
        )
        self.assertEqual(self.rows.find("r1")["state"], "accepted")

    def test_replay(self):
        """The same request again gives the same envelope and no second effect."""
        first = self.submit(prompt())
        self.assertEqual(self.submit(prompt()), first)
        self.assertEqual(len(self.daemon.performed), 1)

    def test_replay_of_a_refusal(self):
        """A refusal is replayed too, even when it would work by now."""
        self.daemon.answers["worker.prompt"] = Refusal("unknown_worker", "there is no such worker")
        first = self.submit(prompt())
        self.check(first, "unknown_worker", "terminal_rejected")
        del self.daemon.answers["worker.prompt"]
        self.assertEqual(self.submit(prompt()), first)
        self.assertEqual(len(self.daemon.performed), 1)

    def test_duplicate(self):
        """The id of another command is refused before anything is done."""
        self.submit(prompt())
        for other in (prompt("other"), prompt(target={"name": "b"}), prompt(action="worker.steer")):
            self.check(self.submit(other), "duplicate_request", "terminal_rejected")
        self.assertEqual(len(self.daemon.performed), 1)

    def test_other_id_same_text(self):
        """Equal text under another id is another command."""
        self.submit(prompt())
        self.submit(prompt(request_id="r2"))
        self.assertEqual(len(self.daemon.performed), 2)

    def test_concurrent(self):
        """Equal requests at the same time have one effect and the same envelope; others conflict."""
        work = Deferred()
        self.daemon.answers["worker.prompt"] = work
        waiting = [self.desk.submit(prompt()) for _ in range(5)]
        self.check(self.submit(prompt("other")), "duplicate_request", "terminal_rejected")
        self.assertEqual(len(self.daemon.performed), 1)
        work.callback({"queued": 1})
        envelopes = [self.successResultOf(each) for each in waiting]
        self.assertEqual(envelopes, [envelopes[0]] * 5)
        self.check(envelopes[0], "accepted", "terminal_accepted", ok=True)

    def test_in_progress(self):
        """After the deadline the callers are told so; the work goes on and is replayed later."""
        work = Deferred()
        self.daemon.answers["worker.prompt"] = work
        waiting = [self.desk.submit(prompt()) for _ in range(2)]
        self.clock.advance(60)
        for each in waiting:
            self.check(self.successResultOf(each), "pending", "in_progress")
        work.callback({})
        self.check(self.submit(prompt()), "accepted", "terminal_accepted", ok=True)
        self.assertEqual(len(self.daemon.performed), 1)

    def test_proven_negative(self):
        """Refusals by state, launch and Pi's own answer end in a rejection."""
        for number, (error, status, reason) in enumerate(
            (
                (Refusal("outside-roots", "not there"), "rejected", "outside-roots"),
                (
                    Refusal("backend_unsupported", "not yet"),
                    "backend_unsupported",
                    "backend_unsupported",
                ),
                (Refusal("duplicate_request", "odd"), "rejected", "duplicate_request"),
                (LaunchFailed("no pi"), "backend_failed", "backend_failed"),
                (PiRefused("busy"), "backend_failed", "backend_failed"),
                (PiCancelled("an extension said no"), "rejected", "cancelled"),
            )
        ):
            self.daemon.answers["worker.prompt"] = error
            envelope = self.submit(prompt(request_id=f"n{number}"))
            self.check(envelope, status, "terminal_rejected")
            self.assertEqual(envelope["error"]["details"], {"reason": reason})
            self.assertEqual(self.rows.find(f"n{number}")["state"], "rejected")

    def test_unknown_outcome(self):
        """A lost link, a gone Pi or a defect is uncertain, and is never done again."""
        errors = (LinkLost("cut"), PiGone("gone"), ZeroDivisionError("x"))
        for number, error in enumerate(errors):
            self.daemon.answers["worker.prompt"] = error
            first = self.submit(prompt(request_id=f"u{number}"))
            self.check(first, "request_state_uncertain", "terminal_uncertain")
            self.assertEqual(self.submit(prompt(request_id=f"u{number}")), first)
        self.assertEqual(len(self.daemon.performed), 3)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)


class EarlierLifeTests(DeskCase):
    """Rows that an earlier daemon left, and a store that fails."""

    def fingerprint_of(self, value):
        """The fingerprint as the desk computes it."""
        from pitelegram.control.requests import validate

        return validate(value).fingerprint()

    def leave(self, state, envelope=None, request_id="r1"):
        """Leave a row as a killed daemon would."""
        self.successResultOf(self.rows.reserve(request_id, self.fingerprint_of(prompt())))
        if state != "reserved":
            self.successResultOf(self.rows.send_started(request_id))
        if state == "accepted":
            self.successResultOf(self.rows.finish(request_id, state, envelope))

    def test_reserved(self):
        """A reserved row sent nothing: the command is done now, once."""
        self.leave("reserved")
        self.check(self.submit(prompt()), "accepted", "terminal_accepted", ok=True)
        self.assertEqual(len(self.daemon.performed), 1)

    def test_send_started(self):
        """A started row is uncertain and stays so; nothing is sent."""
        self.leave("send_started")
        first = self.submit(prompt())
        self.check(first, "request_state_uncertain", "terminal_uncertain")
        self.assertEqual(self.submit(prompt()), first)
        self.assertEqual(self.daemon.performed, [])

    def test_other_command(self):
        """A row of another command conflicts in whatever state it is."""
        for state in ("reserved", "send_started", "accepted"):
            self.leave(state, {}, request_id=state)
            envelope = self.submit(prompt("other", request_id=state))
            self.check(envelope, "duplicate_request", "terminal_rejected")
        self.assertEqual(self.daemon.performed, [])

    def test_damaged_envelope(self):
        """A stored envelope that is not legal, or another's, is not given out."""
        for number, stored in enumerate((None, {}, {"ok": True}, self.submit(prompt()))):
            self.leave("accepted", stored, request_id=f"d{number}")
            envelope = self.submit(prompt(request_id=f"d{number}"))
            self.check(envelope, "request_state_uncertain", "terminal_uncertain")
        self.assertEqual(len(self.daemon.performed), 1)

    def test_store_away(self):
        """A store that cannot be used before the start leaves the id free."""
        for name in ("find", "reserve"):
            self.commands.broken = {name: StoreError("the disk is full")}
            self.check(self.submit(prompt()), "backend_unavailable", "no_receipt")
        self.commands.broken = {}
        self.check(self.submit(prompt()), "accepted", "terminal_accepted", ok=True)
        self.assertEqual(len(self.daemon.performed), 1)

    def test_start_not_committed(self):
        """The start was not stored: nothing is sent and the id is free again."""
        self.commands.broken = {"send_started": StoreError("the disk is full")}
        self.check(self.submit(prompt()), "backend_unavailable", "no_receipt")
        self.assertEqual((self.daemon.performed, self.rows.find("r1")), ([], None))

    def test_start_committed_with_an_error(self):
        """The start was stored although the store complained: uncertain, and nothing is sent."""
        self.commands.broken_after = {"send_started": StoreError("lost")}
        self.check(self.submit(prompt()), "request_state_uncertain", "terminal_uncertain")
        self.assertEqual(self.daemon.performed, [])

    def test_end_not_committed(self):
        """The end could not be stored: the caller is not told that it worked, and never will be."""
        self.commands.broken = {"finish": StoreError("the disk is full")}
        self.check(self.submit(prompt()), "request_state_uncertain", "terminal_uncertain")
        self.commands.broken = {}
        self.check(self.submit(prompt()), "request_state_uncertain", "terminal_uncertain")
        self.assertEqual(len(self.daemon.performed), 1)

"""The command desk: each request id at most once."""

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.control.canonical import canonical_form, fingerprint_of, selector_proof
from pitelegram.control.commands import CommandDesk
from pitelegram.control.envelope import is_legal
from pitelegram.control.interfaces import IDaemon
from pitelegram.control.requests import validate
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
from pitelegram.store.rows import Claim
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
        database = self.database = leader_database(self.clock)
        self.addCleanup(database.stopService)
        self.rows = Commands(database, "host")
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
        self.daemon.unknown = {"a"}
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
        self.assertEqual(self.daemon.performed, [("worker.prompt", "spec:a", {"text": "hi"}, "r1")])
        self.assertEqual(self.rows.find("r1").state, "accepted")

    def test_replay(self):
        """The same request again gives the same envelope and no second effect."""
        first = self.submit(prompt())
        self.assertEqual(self.submit(prompt()), first)
        self.assertEqual(len(self.daemon.performed), 1)

    def test_replay_of_a_refusal(self):
        """A refusal is replayed too, even when it would work by now."""
        self.daemon.answers["worker.prompt"] = Refusal("outside-roots", "not there")
        first = self.submit(prompt())
        self.check(first, "rejected", "terminal_rejected")
        del self.daemon.answers["worker.prompt"]
        self.assertEqual(self.submit(prompt()), first)
        self.assertEqual(len(self.daemon.performed), 1)

    def test_nobody_of_that_name(self):
        """Nothing can be begun for an unknown worker; the id is free when there is one."""
        self.daemon.unknown = {"a"}
        self.check(self.submit(prompt()), "unknown_worker", "no_receipt")
        self.assertIsNone(self.rows.find("r1"))
        self.daemon.unknown = set()
        self.check(self.submit(prompt()), "accepted", "terminal_accepted", ok=True)

    def test_nobody_to_take_it(self):
        """A worker that is away leaves no receipt; the same id works exactly once when it is back."""
        self.daemon.away = Refusal("backend_unavailable", "worker a is not connected now")
        for _ in range(3):
            self.check(self.submit(prompt()), "backend_unavailable", "no_receipt")
        self.assertEqual((self.rows.find("r1"), self.daemon.performed), (None, []))
        self.daemon.away = None
        first = self.submit(prompt())
        self.daemon.away = Refusal("backend_unavailable", "worker a is not connected now")
        self.assertEqual(self.submit(prompt()), first)
        self.assertEqual(len(self.daemon.performed), 1)

    def test_selectors(self):
        """Name and id of one worker are one command; another's conflict, whoever that is."""
        first = self.submit(prompt())
        self.assertEqual(self.submit(prompt(target={"worker_id": "w-a"})), first)
        self.daemon.unknown = {"gone"}
        for other in ({"name": "b"}, {"name": "gone"}):
            envelope = self.submit(prompt(target=other))
            self.check(envelope, "duplicate_request", "terminal_rejected")
        self.assertEqual(len(self.daemon.performed), 1)

    def test_exact_repetition_after_the_worker_is_gone(self):
        """It is recognised by how it named the worker; by another name it is not."""
        first = self.submit(prompt())
        self.daemon.unknown = {"a"}
        self.assertEqual(self.submit(prompt()), first)
        other = self.submit(prompt(target={"worker_id": "w-a"}))
        self.check(other, "duplicate_request", "terminal_rejected")

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
            self.assertEqual(self.rows.find(f"n{number}").state, "rejected")

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

    def leave(self, state, envelope=None, request_id="r1", lease=0):
        """Leave a row as a killed daemon would; its lease is over C{lease} seconds from now."""
        request = validate(prompt(request_id=request_id))
        form = canonical_form(request, "spec:a")
        until = int((self.clock.seconds() + lease) * 1000)
        claim = Claim(
            request_id=request_id,
            action=request.action,
            canonical=form,
            fingerprint=fingerprint_of(form),
            selector_proof=selector_proof(request),
            subject="spec:a",
            owner_hash="earlier",
            owner_until_ms=until,
        )
        self.successResultOf(self.rows.reserve(claim))
        if state != "reserved":
            self.successResultOf(
                self.rows.send_started(request_id, claim.fingerprint, claim.owner_hash)
            )
        if state == "accepted":
            self.successResultOf(self.rows.finish(request_id, state, envelope))

    def test_reserved(self):
        """A reserved row sent nothing: while its lease runs it is pending, then it is done once."""
        self.leave("reserved", lease=30)
        self.check(self.submit(prompt()), "pending", "in_progress")
        self.clock.advance(29.9)
        self.check(self.submit(prompt()), "pending", "in_progress")
        self.assertEqual(self.daemon.performed, [])
        self.clock.advance(0.2)
        self.check(self.submit(prompt()), "accepted", "terminal_accepted", ok=True)
        self.check(self.submit(prompt()), "accepted", "terminal_accepted", ok=True)
        self.assertEqual(len(self.daemon.performed), 1)

    def test_send_started_and_nobody_to_ask(self):
        """A started row for which nobody can answer is uncertain at once, and stays so."""
        self.leave("send_started")
        first = self.submit(prompt())
        self.check(first, "request_state_uncertain", "terminal_uncertain")
        self.assertEqual(self.submit(prompt()), first)
        self.assertEqual((self.daemon.performed, self.daemon.settled), ([], ["r1"]))

    def test_send_started_and_the_worker_knows(self):
        """What the worker says of the same id is the outcome; it is asked once."""
        for number, (fate, status, disposition) in enumerate(
            (
                ({"deliveryId": "d"}, "accepted", "terminal_accepted"),
                (Refusal("execution-failed", "no"), "rejected", "terminal_rejected"),
                (PiCancelled("an extension said no"), "rejected", "terminal_rejected"),
            )
        ):
            self.leave("send_started", request_id=f"k{number}")
            self.daemon.fates["worker.prompt"] = fate
            for _ in range(2):
                envelope = self.submit(prompt(request_id=f"k{number}"))
                self.check(envelope, status, disposition, ok=status == "accepted")
        self.assertEqual(self.daemon.settled, ["k0", "k1", "k2"])
        self.assertEqual(self.daemon.performed, [])

    def test_settled_without_being_asked(self):
        """A daemon that starts finds out by itself; who asks meanwhile waits for the same answer."""
        self.leave("send_started")
        self.leave("reserved", request_id="r2", lease=30)
        fate = self.daemon.fates["worker.prompt"] = Deferred()
        self.desk.settle_earlier()
        asking = self.desk.submit(prompt())
        self.assertNoResult(asking)
        self.check(self.submit(prompt("other")), "duplicate_request", "terminal_rejected")
        fate.callback({"deliveryId": "d"})
        self.check(self.successResultOf(asking), "accepted", "terminal_accepted", ok=True)
        self.assertEqual(self.daemon.settled, ["r1"])
        self.assertEqual(self.rows.find("r2").state, "reserved")

    def test_damaged_row(self):
        """A started row that cannot be understood is uncertain; nothing is sent for it."""
        self.leave("send_started")
        self.damage("canonical = 'rubbish'")
        self.desk.settle_earlier()
        self.assertEqual(self.rows.find("r1").state, "uncertain")
        self.check(self.submit(prompt()), "request_state_uncertain", "terminal_uncertain")
        self.assertEqual((self.daemon.performed, self.daemon.settled), ([], []))

    def test_row_of_an_older_daemon(self):
        """Its id stays taken although nobody can tell whether it is the same command."""
        self.submit(prompt())
        self.damage("canonical_version = 0, canonical = '', selector_proof = '', host_id = ''")
        self.check(self.submit(prompt()), "request_state_uncertain", "terminal_uncertain")
        self.assertEqual(len(self.daemon.performed), 1)

    def damage(self, assignments):
        """Change a row behind everybody's back."""
        self.successResultOf(
            self.database.write(
                "damage", lambda store: store.execute(f"UPDATE commands SET {assignments}")
            )
        )

    def test_other_command(self):
        """A row of another command conflicts in whatever state it is."""
        for state in ("reserved", "send_started", "accepted"):
            self.leave(state, {}, request_id=state)
            envelope = self.submit(prompt("other", request_id=state))
            self.check(envelope, "duplicate_request", "terminal_rejected")
        self.assertEqual(self.daemon.performed, [])

    def test_damaged_envelope(self):
        """A stored envelope that is not legal, or another's, is not given out."""
        for number, stored in enumerate(({}, {"ok": True}, self.submit(prompt()))):
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
        """The end could not be stored: the caller is not told that it worked; the worker is asked."""
        self.commands.broken = {"finish": StoreError("the disk is full")}
        self.check(self.submit(prompt()), "request_state_uncertain", "terminal_uncertain")
        self.commands.broken = {}
        self.daemon.fates["worker.prompt"] = {"deliveryId": "d"}
        self.check(self.submit(prompt()), "accepted", "terminal_accepted", ok=True)
        self.assertEqual((len(self.daemon.performed), self.daemon.settled), (1, ["r1"]))

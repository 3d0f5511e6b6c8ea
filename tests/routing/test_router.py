"""Rows find their worker, once, in order, whatever is lost on the way."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed
from zope.interface.verify import verifyObject

from pitelegram import errors
from pitelegram.bus.interfaces import IFollowerLink
from pitelegram.ids import delivery_id
from pitelegram.routing.carrier import retry_delay
from pitelegram.routing.interfaces import (
    IBindingPolicy,
    IDaemonTarget,
    IExpectation,
    IFollower,
    IInboxProbe,
    INotices,
    IRegistry,
    IRegistryObserver,
    IRouter,
)
from pitelegram.targets import TelegramTarget
from pitelegram.threads.interfaces import IThreads
from tests.routing.support import ALPHA, BETA, OWNER, RoutingCase


class RouterCase(RoutingCase):
    """With a running router."""

    def setUp(self) -> None:
        """Start it; nothing may be left on the clock after it stopped."""
        super().setUp()
        self.router.startService()
        self.addCleanup(self.stop)

    def stop(self) -> None:
        """Stop it."""
        self.successResultOf(self.router.stopService())
        self.assertEqual(self.clock.getDelayedCalls(), [])


class InterfaceTests(RouterCase):
    """Everything provides what it says."""

    def test_all(self) -> None:
        """Real objects and fakes alike."""
        link = self.follow()
        for interface, thing in (
            (IRouter, self.router),
            (IRegistryObserver, self.router),
            (IRegistry, self.registry),
            (IFollower, self.registry.live(ALPHA)),
            (IFollowerLink, link),
            (IDaemonTarget, self.daemon),
            (IExpectation, self.expectation),
            (IInboxProbe, self.probe),
            (INotices, self.notices),
            (IBindingPolicy, self.policy),
            (IThreads, self.threads),
        ):
            verifyObject(interface, thing)


class Recorder:
    """A journal that notes which rows are pinned by a commit of their own."""

    def __init__(self, journal: Any, pins: list[int]) -> None:
        self._journal = journal
        self._pins = pins

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def pin(self, seq: int, recipient: str, delivery: str) -> Deferred[None]:
        """Noted."""
        self._pins.append(seq)
        return self._journal.pin(seq, recipient, delivery)


class WayTests(RouterCase):
    """The usual way."""

    def test_forwarded_and_settled(self) -> None:
        """A row is pinned before it is forwarded, with its stable id, and settled by its receipt."""
        link = self.follow()
        update = self.message(extra={"unknown": [1]})
        self.accept(update)
        (forward,) = link.waiting
        self.assertEqual(forward.update, update)
        self.assertEqual(forward.delivery_id, delivery_id("message", ALPHA, update["update_id"]))
        (row,) = self.rows()
        self.assertEqual(
            (row["state"], row["recipient"], row["delivery_id"]),
            ("forwarding", ALPHA, forward.delivery_id),
        )
        forward.settle()
        self.assertEqual(self.states(), ["settled"])
        self.assertIsNone(self.rows()[0]["body"])

    def test_pinned_with_the_batch(self) -> None:
        """A live worker's row is stored pinned; that costs no commit of its own, and keeps order."""
        link = self.follow()
        pins: list[int] = []
        self.router._carrier.journal = Recorder(self.journal, pins)
        self.accept(self.message(text="one"), self.message(text="two"))
        self.assertEqual((pins, self.texts(link)), ([], ["one", "two"]))
        link.waiting[0].settle("retryable")
        self.clock.advance(1.1)
        self.assertEqual((pins, self.texts(link)), ([1], ["one", "two", "one"]))

    def test_two_workers_never_mix(self) -> None:
        """Each Thread's rows go to its own worker only."""
        alpha, beta = self.follow("a"), self.follow("b")
        self.accept(*[self.message(11 + n % 2, f"m{n}") for n in range(10)])
        self.assertEqual(self.texts(alpha), ["m0", "m2", "m4", "m6", "m8"])
        self.assertEqual(self.texts(beta), ["m1", "m3", "m5", "m7", "m9"])

    def test_window(self) -> None:
        """At most 32 forwards are unanswered; answers let the next ones out, in order."""
        link = self.follow()
        self.accept(*[self.message(text=f"m{n}") for n in range(100)])
        self.assertEqual(len(link.waiting), 32)
        for done in range(100):
            link.waiting[0].settle()
            self.assertLessEqual(len(link.waiting), 32)
            self.assertEqual(len(link.forwards), min(100, 33 + done))
        self.assertEqual(self.texts(link), [f"m{n}" for n in range(100)])
        self.assertEqual(set(self.states()), {"settled"})

    def test_nothing_before_the_first_heartbeat(self) -> None:
        """A registered worker gets nothing until it has opened its inbox."""
        link = self.link()
        self.register(link)
        self.accept(self.message())
        self.assertEqual(link.forwards, [])
        self.registry.heartbeat(link, {})
        self.assertEqual(len(link.forwards), 1)

    def test_big_backlog_needs_no_stack(self) -> None:
        """Thousands of rows that are answered at once are carried without recursion."""
        self.accept(*[self.message(text=f"m{n}") for n in range(3000)])
        link = self.follow(automatic=True)
        self.assertEqual(len(link.admitted), 3000)
        self.assertEqual(set(self.states()), {"settled"})


class OutcomeTests(RouterCase):
    """What follows from an answer, or from none."""

    def test_retryable(self) -> None:
        """The pin goes, and the row is offered again after 1 s, 2 s, 4 s … 60 s, for ever."""
        self.assertEqual([retry_delay(n) for n in (0, 1, 2, 5, 6, 500)], [1, 2, 4, 32, 60, 60])
        link = self.follow()
        self.accept(self.message())
        for attempt in range(12):
            link.waiting[0].settle("retryable", "busy")
            (row,) = self.rows()
            self.assertEqual((row["state"], row["recipient"]), ("retry_wait", None))
            self.assertEqual(row["attempts"], attempt + 1)
            self.clock.advance(retry_delay(attempt) - 0.1)
            self.assertEqual(link.waiting, [])
            self.clock.advance(0.2)
            self.assertEqual(len(link.waiting), 1)
        self.assertEqual(len({forward.delivery_id for forward in link.forwards}), 1)

    def test_order_waits_for_the_first(self) -> None:
        """While the first row of a Thread waits for its next attempt, later ones do not pass it."""
        alpha, beta = self.follow("a"), self.follow("b")
        self.accept(self.message(text="first"))
        alpha.waiting[0].settle("retryable")
        self.accept(self.message(text="second"), self.message(12, "other"))
        self.assertEqual(alpha.waiting, [])
        self.assertEqual(self.texts(beta), ["other"])
        self.clock.advance(1.1)
        self.assertEqual(self.texts(alpha), ["first", "first", "second"])

    def test_terminal(self) -> None:
        """A rejected row fails visibly with its reason, and the next goes on."""
        link = self.follow()
        self.accept(self.message(text="bad"), self.message(text="good"))
        link.waiting[0].settle("terminal-rejected", "cannot be read")
        link.waiting[0].settle()
        self.assertEqual(self.states(), ["failed", "settled"])
        self.assertEqual(self.rows()[0]["reason"], "cannot be read")
        ((key, text),) = self.notices.posted
        self.assertEqual(key, ALPHA)
        self.assertIn("cannot be read", text)

    def test_wrong_receipts(self) -> None:
        """A receipt with another delivery id or update id settles nothing; eight of them fail it."""
        link = self.follow()
        self.accept(self.message(text="first"))
        first = link.waiting[0].update_id
        wrong: list[dict[str, Any]] = [
            {"deliveryId": "other"},
            {"updateId": first + 1},
            {"updateId": str(first)},
            {"updateId": float(first)},
            {"deliveryId": None},
            {"updateId": None},
            {"updateId": True},
            {"deliveryId": 5},
        ]
        for number, receipt in enumerate(wrong):
            self.assertEqual(self.states(), ["forwarding"])
            self.assertEqual(self.rows()[0]["recipient"], ALPHA)
            settlement = "retryable" if number % 2 else "accepted"
            link.waiting[0].settle(settlement, **receipt)
            self.clock.advance(61)
        self.assertEqual(self.states(), ["failed"])
        self.accept(self.message(text="next"))
        self.assertEqual(self.texts(link)[-1], "next")

    def test_unreadable_row(self) -> None:
        """A row that its worker cannot read fails after eight attempts, and the next one goes."""
        link = self.follow()
        self.accept(self.message(text="first"))
        for _ in range(8):
            link.waiting[0].answered.errback(errors.BusBadRequest("arguments are malformed"))
            self.clock.advance(61)
        self.assertEqual(self.states(), ["failed"])
        self.accept(self.message(text="next"))
        self.assertEqual(self.texts(link)[-1], "next")

    def test_no_answer_keeps_the_pin(self) -> None:
        """After a time-out the row goes to the same worker again, with the same id."""
        link = self.follow()
        self.accept(self.message())
        link.waiting[0].lose()
        self.assertEqual(self.states(), ["retry_wait"])
        self.assertEqual(self.rows()[0]["recipient"], ALPHA)
        self.clock.advance(1.1)
        again = link.waiting[0]
        self.assertEqual(again.delivery_id, link.forwards[0].delivery_id)
        again.settle()
        self.assertEqual(self.states(), ["settled"])

    def test_answers_that_are_errors(self) -> None:
        """A stale generation, or a follower with a bug, is tried again with the pin kept."""
        link = self.follow()
        self.accept(self.message())
        link.waiting[0].answered.errback(errors.StaleGeneration("other"))
        self.clock.advance(1.1)
        link.waiting[0].answered.errback(errors.BusError("bug"))
        self.assertEqual(self.rows()[0]["recipient"], ALPHA)
        self.clock.advance(2.1)
        link.waiting[0].settle()
        self.assertEqual(self.states(), ["settled"])

    def test_dead_silence_ends_the_connection(self) -> None:
        """When the whole window is unanswered for the time limit, the connection is given up."""
        link = self.follow()
        self.accept(*[self.message() for _ in range(40)])
        for forward in link.waiting:
            if link.connected:
                forward.lose()
        self.assertFalse(link.connected)
        self.expectation.expected.add(ALPHA)

    def test_lost_connection(self) -> None:
        """After the worker came back everything unanswered is sent again, in order, same ids."""
        self.expectation.expected.add(ALPHA)
        link = self.follow()
        self.accept(*[self.message(text=f"m{n}") for n in range(5)])
        link.forwards[1].settle()
        link.cut()
        again = self.follow()
        self.clock.advance(1.1)
        self.assertEqual(self.texts(again), ["m0", "m2", "m3", "m4"])
        for forward in again.waiting:
            forward.settle()
        self.assertEqual(set(self.states()), {"settled"})


class AbsenceTests(RouterCase):
    """Nobody is there."""

    def test_held_and_told_once(self) -> None:
        """A row without a worker is held; the user is told once, after 15 s."""
        self.accept(self.message(text="one"))
        self.assertEqual(self.states(), ["held"])
        self.clock.advance(14)
        self.assertEqual(self.notices.posted, [])
        self.clock.advance(2)
        self.assertEqual([key for key, _ in self.notices.posted], [ALPHA])
        self.accept(self.message(text="two"))
        self.clock.pump([5] * 20)
        self.assertEqual(len(self.notices.posted), 1)
        link = self.follow()
        self.assertEqual(self.texts(link), ["one", "two"])

    def test_told_survives_a_restart(self) -> None:
        """Another leader does not tell it again."""
        self.accept(self.message())
        self.clock.advance(16)
        self.restart()
        self.clock.pump([5] * 20)
        self.assertEqual(len(self.notices.posted), 1)

    def test_not_told_while_starting(self) -> None:
        """While a wanted worker is starting nobody needs to be told."""
        self.expectation.starting.add(ALPHA)
        self.expectation.expected.add(ALPHA)
        self.accept(self.message())
        self.clock.pump([5] * 20)
        self.assertEqual(self.notices.posted, [])
        self.expectation.starting.clear()
        self.clock.pump([5] * 4)
        self.assertEqual(len(self.notices.posted), 1)

    def test_buttons_are_not_told_of(self) -> None:
        """A waiting button press or edit is no reason for a message."""
        self.accept(self.callback(1, "w:x"))
        self.clock.pump([5] * 10)
        self.assertEqual(self.states(), ["held"])
        self.assertEqual(self.notices.posted, [])

    def test_short_absence(self) -> None:
        """A worker that is back within 15 s: nothing is told, and the count starts anew."""
        link = self.follow()
        link.cut()
        self.accept(self.message())
        self.clock.advance(10)
        self.follow().cut()
        self.clock.advance(10)
        self.assertEqual(self.notices.posted, [])


class PinTests(RouterCase):
    """Invariant 3: a row moves to another binding only after proof."""

    def lose_receipt(self) -> str:
        """Forward a prompt to alpha, lose the receipt and alpha, give its Thread to beta."""
        alpha = self.follow("a")
        self.accept(self.message(text="once"))
        alpha.cut()
        self.give(BETA, 11)
        return str(alpha.forwards[0].delivery_id)

    def test_thread_given_away_and_admitted(self) -> None:
        """The first worker had it: the row settles and the new one never sees it."""
        delivery = self.lose_receipt()
        self.probe.answers[ALPHA, delivery] = True
        beta = self.follow("b")
        self.router.kick()
        self.clock.pump([1] * 30)
        self.assertEqual(self.states(), ["settled"])
        self.assertEqual(beta.forwards, [])

    def test_thread_given_away_and_not_admitted(self) -> None:
        """The first worker provably had it not: the new one gets it, once, under its own id."""
        delivery = self.lose_receipt()
        self.probe.answers[ALPHA, delivery] = False
        beta = self.follow("b")
        self.router.kick()
        self.clock.pump([1] * 30)
        self.assertEqual(self.texts(beta), ["once"])
        self.assertNotEqual(beta.forwards[0].delivery_id, delivery)
        alpha = self.follow("a")
        self.clock.pump([1] * 70)
        self.assertEqual(alpha.forwards, [])

    def test_thread_given_away_and_nobody_can_tell(self) -> None:
        """While its lock is held, or a process is expected, the row waits for the first worker."""
        self.lose_receipt()
        beta = self.follow("b")
        self.router.kick()
        self.clock.pump([1] * 60)
        self.assertEqual(beta.forwards, [])
        self.assertEqual(self.rows()[0]["recipient"], ALPHA)
        alpha = self.follow("a")
        self.clock.pump([1] * 70)
        self.assertEqual(self.texts(alpha), ["once"])
        alpha.waiting[0].settle()
        self.assertEqual(self.states(), ["settled"])
        self.assertEqual(beta.forwards, [])

    def test_expected_worker_is_not_looked_into(self) -> None:
        """Its inbox is not ours while a process of it lives or is about to."""
        self.expectation.expected.add(ALPHA)
        self.lose_receipt()
        self.router.kick()
        self.clock.pump([1] * 60)
        self.assertEqual(self.probe.asked, [])

    def test_retryable_lets_go(self) -> None:
        """After a definite no the present owner of the Thread gets it."""
        alpha, beta = self.follow("a"), self.follow("b")
        self.accept(self.message(text="x"))
        self.give(BETA, 11)
        self.router.kick()
        self.assertEqual(beta.forwards, [])
        alpha.waiting[0].settle("retryable")
        self.clock.advance(1.1)
        self.assertEqual(self.texts(beta), ["x"])

    def test_worker_back_while_its_inbox_is_looked_into(self) -> None:
        """A probe that says no is not believed when the worker came back meanwhile."""
        delivery = self.lose_receipt()
        answer: Deferred[bool | None] = Deferred()
        self.probe.answers[ALPHA] = answer
        self.router.kick()
        alpha = self.follow("a")
        self.clock.advance(2)
        self.assertEqual(alpha.forwards, [])
        answer.callback(False)
        self.assertEqual([f.delivery_id for f in alpha.forwards], [delivery])

    def test_unpinned_rows_follow_the_thread(self) -> None:
        """Held rows that nobody was offered go where the Thread goes."""
        self.accept(self.message(text="x"))
        beta = self.follow("b")
        self.give(BETA, 11)
        self.router.target_changed(BETA, TelegramTarget(OWNER, 11), None, "attached")
        self.assertEqual(self.texts(beta), ["x"])

    def test_restart_of_the_leader(self) -> None:
        """All that is unsettled is taken up from the store: pins, held rows, back-off."""
        alpha = self.follow("a")
        self.accept(self.message(text="pinned"), self.message(text="also"))
        alpha.forwards[1].settle("retryable")
        self.accept(self.message(12, "held"))
        self.restart()
        again = self.follow("a")
        self.assertEqual(self.texts(again), ["pinned"])
        self.assertEqual(again.forwards[0].delivery_id, alpha.forwards[0].delivery_id)
        self.clock.advance(1.1)
        self.assertEqual(self.texts(again), ["pinned", "also"])
        self.assertEqual(self.texts(self.follow("b")), ["held"])


class OwnershipTests(RouterCase):
    """Updates without a Thread of their own."""

    def test_reaction_follows_the_message(self) -> None:
        """A reaction on a forwarded message goes to the worker that has it, at once and later."""
        alpha = self.follow("a")
        update = self.message(text="x")
        number = update["message"]["message_id"]
        self.accept(update, self.reaction(number))
        self.assertEqual([f.kind for f in alpha.forwards], ["message", "message_reaction"])
        self.restart()
        alpha = self.follow("a")
        self.accept(self.reaction(number))
        kinds = ["message", "message_reaction", "message_reaction"]
        self.assertEqual([f.kind for f in alpha.forwards], kinds)
        for forward in alpha.waiting:
            forward.settle()
        self.assertEqual(self.bindings.message_owner(OWNER, number), (ALPHA, False))
        self.restart()
        alpha = self.follow("a")
        self.accept(self.reaction(number))
        self.assertEqual([f.kind for f in alpha.forwards], ["message_reaction"])

    def test_callback_follows_the_sender(self) -> None:
        """A button goes to the worker that sent its message, wherever the message stands."""
        self.successResultOf(self.bindings.remember_messages(OWNER, [900], BETA, True))
        alpha, beta = self.follow("a"), self.follow("b")
        self.accept(self.callback(900, "w:x", thread=11))
        self.assertEqual((len(alpha.forwards), len(beta.forwards)), (0, 1))

    def test_message_that_nobody_noted(self) -> None:
        """Whose button is pressed, he has sent it, where no other is known: he may change it."""
        self.successResultOf(self.bindings.remember_messages(OWNER, [901], "daemon", True))
        self.follow("a")
        presses = [self.callback(number, "w:x", f"cb{number}") for number in (900, 901, 902, 903)]
        bot, user = {"id": 4242, "is_bot": True}, {"id": OWNER, "is_bot": False}
        for press, sender in zip(presses, (bot, bot, user, None), strict=True):
            press["callback_query"]["message"]["from"] = sender
        self.accept(*presses)
        for _ in range(2):
            owners = [self.router.owners.owner(OWNER, number) for number in (900, 901, 902, 903)]
            self.assertEqual(owners, [(ALPHA, True), ("daemon", True), None, None])
            self.restart()

    def test_unknown_buttons_settle(self) -> None:
        """Reactions, edits and buttons that belong to nobody settle without a word."""
        edit = {"update_id": next(self.update_ids), "edited_message": self.message(99)["message"]}
        self.accept(self.reaction(1), self.callback(2, "w:x", thread=99), edit)
        self.assertEqual(self.states(), ["settled"] * 3)
        self.assertEqual(self.replies, [])

    def test_forgotten_owner(self) -> None:
        """A message of a worker that was forgotten belongs to whoever has the Thread now."""
        self.successResultOf(self.bindings.remember_messages(OWNER, [900], "spec-gone", True))
        alpha = self.follow("a")
        self.accept(self.callback(900, "w:x", thread=11))
        self.assertEqual(len(alpha.forwards), 1)


class DaemonTests(RouterCase):
    """The daemon's own."""

    def test_first(self) -> None:
        """What the daemon wants never reaches a worker, and settles."""
        link = self.follow()
        self.accept(self.message(text="/daemon"), self.message(text="work"))
        self.assertEqual(len(self.daemon.handled), 1)
        self.assertEqual(self.texts(link), ["work"])
        self.assertEqual(self.states(), ["settled", "forwarding"])

    def test_callback_once(self) -> None:
        """A button's action is executed once, also when the update comes again under another id."""
        self.accept(self.callback(5, "d:stop", "same"))
        self.accept(self.callback(5, "d:stop", "same"))
        self.assertEqual(len(self.daemon.handled), 1)
        self.assertEqual(self.states(), ["settled", "settled"])

    def test_killed_in_between(self) -> None:
        """A leader that died while executing a button does not execute it again."""
        self.daemon.answer = Deferred()
        self.accept(self.callback(5, "d:stop", "same"))
        self.assertEqual(self.states(), ["pending"])
        killed, self.daemon.answer = self.router, None
        self.build()
        self.router.startService()
        self.assertEqual(len(self.daemon.handled), 1)
        self.assertTrue(killed.running)
        self.clock.advance(121)
        self.flushLoggedErrors()
        self.assertEqual(self.states(), ["settled"])

    def test_failure(self) -> None:
        """A failing panel is logged; its row settles and the next is served."""
        failing: Deferred[None] = Deferred()
        self.daemon.answer = failing
        self.accept(self.message(text="/daemon 1"), self.message(text="/daemon 2"))
        self.assertEqual(len(self.daemon.handled), 1)
        self.daemon.answer = succeed(None)
        failing.errback(ZeroDivisionError())
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertEqual(len(self.daemon.handled), 2)
        self.assertEqual(self.states(), ["settled", "settled"])

    def test_stuck(self) -> None:
        """A panel that never ends does not stop the daemon's Thread for ever."""
        self.daemon.answer = Deferred()
        self.accept(self.message(text="/daemon 1"), self.message(text="/daemon 2"))
        for handled in (1, 2, 3):
            self.assertEqual(len(self.daemon.handled), handled)
            self.clock.advance(121)
            self.daemon.answer = Deferred()
            self.clock.advance(8)
        self.daemon.answer = None
        self.clock.advance(121)
        self.assertEqual(self.states(), ["settled", "settled"])
        self.assertEqual(len(self.daemon.handled), 5)


class NobodyTests(RouterCase):
    """Places that belong to no worker; what asks for a choice is in C{test_chooser}."""

    def test_answered(self) -> None:
        """A short answer in All, once in ten minutes; the rows settle."""
        self.accept(self.message(None), self.message(None))
        self.assertEqual(self.states(), ["settled"] * 2)
        self.assertEqual([target.thread_id for target, _ in self.replies], [None])
        self.clock.advance(601)
        self.accept(self.message(None))
        self.assertEqual(len(self.replies), 2)

    def test_classic_mode(self) -> None:
        """Without Threads nothing is asked anywhere: commands and texts get the short answer."""
        self.threads.now = "disabled"
        self.accept(self.message(None, "/compact"), self.message(99), self.message(98))
        self.assertEqual(self.states(), ["settled"] * 3)
        self.assertEqual([target.thread_id for target, _ in self.replies], [None, 99, 98])
        self.assertEqual(self.choosers.all(), [])

    def test_control_thread(self) -> None:
        """Text in the daemon's own Thread that the daemon does not want reaches no worker."""
        self.successResultOf(self.bindings.ensure("daemon", "daemon", None))
        self.give("daemon", 90)
        self.accept(self.message(90, "hello"), self.message(90, "/compact"))
        self.assertEqual(self.states(), ["settled"] * 2)
        self.assertEqual(self.choosers.all(), [])

    def test_thread_being_made(self) -> None:
        """A message in a Thread whose making has not been answered yet waits for it."""
        self.successResultOf(self.bindings.ensure("spec-c", "managed", "/projects/c"))
        self.successResultOf(self.bindings.begin_provision("spec-c", OWNER, "c"))
        self.accept(self.message(31, "early"))
        self.clock.advance(3)
        self.assertEqual((self.states(), self.api.made("sendMessage")), (["held"], []))
        self.successResultOf(self.bindings.end_provision("spec-c", 31))
        self.router.target_changed("spec-c", TelegramTarget(OWNER, 31), None, "created")
        self.assertEqual(self.states(), ["held"])
        self.clock.advance(120)
        self.assertEqual(self.api.made("sendMessage"), [])

    def test_thread_that_is_never_made(self) -> None:
        """After a minute it is asked about like any other."""
        self.successResultOf(self.bindings.ensure("spec-c", "managed", "/projects/c"))
        self.successResultOf(self.bindings.begin_provision("spec-c", OWNER, "c"))
        self.accept(self.message(31, "early"))
        self.clock.pump([1] * 62)
        self.assertEqual(self.states(), ["held"])
        self.assertEqual(len(self.api.made("sendMessage")), 1)


class ConfirmationTests(RouterCase):
    """C{confirmSettled}."""

    def test_as_rows_settle(self) -> None:
        """Settled ids are confirmed in batches, and only once."""
        link = self.follow(automatic=True)
        self.accept(*[self.message() for _ in range(450)])
        self.clock.advance(1)
        self.assertEqual([len(batch) for batch in link.confirmed], [200, 200, 50])
        self.assertEqual({row["confirmed"] for row in self.rows()}, {1})
        self.clock.advance(10)
        self.assertEqual(len(link.confirmed), 3)

    def test_after_registration(self) -> None:
        """What a lost worker was not told, its successor is, before it gets new rows."""
        link = self.follow()
        self.accept(self.message())
        link.waiting[0].settle()
        link.cut()
        self.clock.advance(1)
        again = self.follow()
        self.assertEqual(again.confirmed, [[link.forwards[0].delivery_id]])

    def test_router_that_starts_late(self) -> None:
        """Workers that registered before the router started are told as well."""
        link = self.follow()
        self.accept(self.message())
        link.waiting[0].settle()
        self.successResultOf(self.router.stopService())
        self.router.startService()
        self.assertEqual(link.confirmed, [[link.forwards[0].delivery_id]])

    def test_not_while_unanswered(self) -> None:
        """An id with an unanswered forward waits until that connection is closed."""
        self.expectation.expected.add(ALPHA)
        link = self.follow()
        self.accept(self.message())
        link.waiting[0].lose()
        self.clock.advance(1.1)
        link.waiting[0].settle()
        self.clock.advance(2)
        self.assertEqual(self.states(), ["settled"])
        self.assertEqual(link.confirmed, [])
        link.cut()
        self.assertEqual(len(self.follow().confirmed), 1)


class FenceTests(RouterCase):
    """Another leader took over."""

    def test_nothing_goes_out(self) -> None:
        """A leader whose epoch is over forwards nothing and settles nothing."""
        link = self.follow()
        self.accept(self.message(text="before"))
        self.successResultOf(self.database.acquire("epoch-2"))
        self.database.write = lambda name, work: _fenced()  # type: ignore[method-assign]
        link.waiting[0].settle()
        row = self.rows()[0]
        self.assertEqual(row["state"], "forwarding")
        failing = self.admission.accept([self.message()], 9999)
        self.failureResultOf(failing, errors.Fenced)
        self.assertEqual(len(link.forwards), 1)


def _fenced() -> Deferred[Any]:
    from twisted.internet.defer import fail

    return fail(errors.Fenced("another leader"))

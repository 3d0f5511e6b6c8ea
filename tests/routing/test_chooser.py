"""Messages of nobody's: asked about, sent where the operator says, exactly once, and never by guess."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed

from pitelegram.errors import CertainlyUnsent, Refused, Uncertain
from pitelegram.routing import asking, choosertexts
from pitelegram.routing.choosing import LIFE
from pitelegram.store.interfaces import IBindings
from pitelegram.testing.followers import FakeThreads
from tests.routing.support import ALPHA, BETA, OWNER, RoutingCase

LOST = 99
"""A Thread that belongs to nobody."""


class Threads(FakeThreads):
    """Gives Threads for real, and tells the router of it, as the leader does."""

    def __init__(self, bindings: IBindings, case: ChooserCase) -> None:
        super().__init__(bindings)
        self.case = case
        self.reassigning: Deferred[bool] | None = None

    def reassign(self, binding_key: str, chat_id: int, thread_id: int | None) -> Deferred[bool]:
        """See L{IThreads.reassign}."""
        if self.reassigning is not None:
            return self.reassigning

        def told(done: bool) -> bool:
            self.case.moved(binding_key)
            return done

        return super().reassign(binding_key, chat_id, thread_id).addCallback(told)


class ChooserCase(RoutingCase):
    """With a running router and a way to press buttons."""

    def setUp(self) -> None:
        """Start it; nothing may be left on the clock after it stopped."""
        super().setUp()
        self.presses = 0
        self.router.startService()
        self.addCleanup(self.stop)

    def build(self) -> None:
        """With Threads that move."""
        self.threads = Threads(self.bindings, self)
        super().build()

    def stop(self) -> None:
        """Stop it."""
        self.successResultOf(self.router.stopService())
        for call in self.clock.getDelayedCalls():
            # The chat's own budget goes on by itself.
            self.assertIn("_release", str(call))

    def moved(self, binding_key: str) -> None:
        """What the leader does when a Thread has changed hands."""
        binding = self.bindings.get(binding_key)
        target = None if binding is None else binding.target
        self.router.target_changed(binding_key, target, None, "reassigned")

    def asked(self) -> list[dict[str, Any]]:
        """The parameters of everything that was sent."""
        return [call.params for call in self.api.made("sendMessage")]

    def labels(self, params: dict[str, Any]) -> list[str]:
        """The labels of a message's buttons."""
        return [b["text"] for row in params["reply_markup"]["inline_keyboard"] for b in row]

    def data(self, params: dict[str, Any], text: str) -> str:
        """The data of the button with that label."""
        rows = params["reply_markup"]["inline_keyboard"]
        return next(str(b["callback_data"]) for row in rows for b in row if b["text"] == text)

    def shown(self, number: int = -1) -> int:
        """The message id of a chooser."""
        message_id = self.choosers.all()[number].message_id
        assert message_id is not None
        return message_id

    def press(self, message_id: int, data: str, thread: int | None = LOST) -> str:
        """Press a button; returns the toast."""
        self.presses += 1
        self.accept(self.callback(message_id, data, f"press-{self.presses}", thread))
        answers = self.api.made("answerCallbackQuery")
        mine = [c for c in answers if c.params["callback_query_id"] == f"press-{self.presses}"]
        return str(mine[-1].params.get("text", "")) if mine else ""

    def choose(self, label: str, thread: int | None = LOST) -> str:
        """Press that button of the newest chooser, as it was last shown."""
        last = self.api.made("sendMessage", "editMessageText")[-1].params
        return self.press(self.shown(), self.data(last, label), thread)

    def deleted(self) -> list[int]:
        """Threads that were deleted."""
        return [c.params["message_thread_id"] for c in self.api.made("deleteForumTopic")]

    def command(self, text: str, **changes: Any) -> dict[str, Any]:
        """A command in All, written now."""
        return self.message(None, text, **{"date": round(self.clock.seconds()), **changes})


class ForwardTests(ChooserCase):
    """An unknown Thread, and its messages sent to a worker."""

    def test_asked(self) -> None:
        """One question in that Thread names the live workers; nothing goes anywhere by itself."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"), self.message(LOST, "/compact"))
        self.accept(self.message(LOST, "two", photo=[{"file_id": "x"}]))
        (asked,) = self.asked()
        self.assertEqual((asked["chat_id"], asked["message_thread_id"]), (OWNER, LOST))
        self.assertIn("⚠️", asked["text"])
        self.assertEqual(
            self.labels(asked), [f"↪️ {ALPHA}", "🔁 Replace/restore thread…", "✖️ Dismiss"]
        )
        self.clock.advance(100_000)
        self.assertEqual((self.states(), link.forwards), (["held"] * 3, []))

    def test_forwarded(self) -> None:
        """Once, in order, pinned to the chosen binding; then the Thread is deleted."""
        self.follow("b")
        link = self.follow("a")
        self.accept(self.message(LOST, "one"), self.message(LOST, "two"))
        self.assertEqual(self.choose(f"↪️ {ALPHA}"), choosertexts.ROUTED)
        self.assertEqual(self.texts(link), ["one", "two"])
        self.assertEqual([row["recipient"] for row in self.rows()[:2]], [ALPHA, ALPHA])
        link.waiting[0].settle()
        self.assertEqual(self.deleted(), [])
        link.waiting[0].settle()
        self.assertEqual(self.deleted(), [LOST])
        self.assertEqual(self.states(), ["settled"] * 3)
        self.assertEqual(self.choosers.all(), [])

    def test_second_press(self) -> None:
        """The first of two presses counts, whatever the second is."""
        alpha, beta = self.follow("a"), self.follow("b")
        self.accept(self.message(LOST, "one"))
        (asked,) = self.asked()
        message_id = self.shown()
        self.press(message_id, self.data(asked, f"↪️ {ALPHA}"))
        toast = self.press(message_id, self.data(asked, f"↪️ {BETA}"))
        self.assertEqual(toast, choosertexts.BUSY)
        toast = self.press(message_id, self.data(asked, "✖️ Dismiss"))
        self.assertEqual(toast, choosertexts.BUSY)
        self.assertEqual((self.texts(alpha), self.texts(beta)), (["one"], []))

    def test_written_meanwhile(self) -> None:
        """What is written after the choice is asked about again; the Thread stays for it."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose(f"↪️ {ALPHA}")
        self.accept(self.message(LOST, "two"))
        link.waiting[0].settle()
        self.assertEqual((self.deleted(), self.texts(link)), ([], ["one"]))
        self.assertEqual(self.choosers.all()[0].state, "sent")
        self.choose(f"↪️ {ALPHA}")
        link.waiting[0].settle()
        self.assertEqual((self.deleted(), self.texts(link)), ([LOST], ["one", "two"]))

    def test_edit_waits_too(self) -> None:
        """An edit of a waiting message waits behind the same question and goes the same way."""
        link = self.follow("a")
        first = self.message(LOST, "one")
        edit = dict(first["message"], text="one, better")
        self.accept(first, {"update_id": 9000, "edited_message": edit})
        self.assertEqual(self.states(), ["held", "held"])
        self.choose(f"↪️ {ALPHA}")
        self.assertEqual([f.kind for f in link.forwards], ["message", "edited_message"])

    def test_dismissed(self) -> None:
        """Exactly the waiting rows settle, nothing is sent, the Thread stays."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"), self.message(98, "other"))
        asked = self.asked()[0]
        toast = self.press(self.shown(0), self.data(asked, "✖️ Dismiss"))
        self.assertEqual(toast, choosertexts.DISMISSED)
        self.assertEqual(self.states(), ["settled", "held", "settled"])
        self.assertEqual((link.forwards, self.deleted()), ([], []))
        self.assertEqual(len(self.choosers.all()), 1)
        self.clock.advance(5)
        last = self.api.made("editMessageText")[-1].params
        self.assertEqual(
            (last["text"], self.labels(last)), (choosertexts.FAREWELLS["dismissed"], [])
        )

    def test_refused_by_the_worker(self) -> None:
        """A definite refusal is shown as for every row, and the words stay readable."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose(f"↪️ {ALPHA}")
        link.waiting[0].settle("terminal-rejected", "no")
        self.assertEqual((self.states()[0], self.deleted()), ("failed", []))
        self.assertEqual(self.choosers.all(), [])
        self.assertEqual([key for key, *_ in self.notices.posted], [ALPHA])

    def test_retryable(self) -> None:
        """A worker that is not able yet is asked again; nobody else is."""
        beta, link = self.follow("b"), self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose(f"↪️ {ALPHA}")
        link.waiting[0].settle("retryable")
        self.clock.advance(2)
        self.assertEqual(self.texts(link), ["one", "one"])
        link.waiting[0].settle()
        self.assertEqual((self.deleted(), beta.forwards), ([LOST], []))

    def test_freed(self) -> None:
        """Proven not to be with a worker that will not come back: the question is open again."""
        self.follow("b")
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose(f"↪️ {ALPHA}")
        self.probe.answers[ALPHA] = False
        link.cut()
        self.clock.advance(20)
        self.assertEqual(self.choosers.all()[0].state, "sent")
        last = self.api.made("editMessageText")[-1].params
        self.assertIn(f"↪️ {BETA}", self.labels(last))
        self.assertNotIn(f"↪️ {ALPHA}", self.labels(last))
        beta = self.registry.live(BETA).link
        self.choose(f"↪️ {BETA}")
        self.assertEqual(self.texts(beta), ["one"])

    def test_settled_in_the_dark(self) -> None:
        """The worker had it although its answer was lost: it is over, and the Thread goes."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose(f"↪️ {ALPHA}")
        self.probe.answers[ALPHA] = True
        link.cut()
        self.clock.advance(20)
        self.assertEqual((self.states()[0], self.deleted()), ("settled", [LOST]))

    def test_worker_gone_before_the_press(self) -> None:
        """A worker that is not live any more cannot be chosen."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        (asked,) = self.asked()
        link.cut()
        toast = self.press(self.shown(), self.data(asked, f"↪️ {ALPHA}"))
        self.assertEqual((toast, self.states()[0]), (choosertexts.NOT_ACTIVE, "held"))

    def test_no_worker(self) -> None:
        """Without a live worker the message is kept; one that comes may be chosen."""
        self.accept(self.message(LOST, "one"))
        (asked,) = self.asked()
        self.assertEqual(self.labels(asked), ["✖️ Dismiss"])
        self.assertIn("/daemon", asked["text"])
        link = self.follow("a")
        self.clock.advance(asking.START_CALM + 0.1)
        self.choose(f"↪️ {ALPHA}")
        self.assertEqual(self.texts(link), ["one"])

    def test_bound_meanwhile(self) -> None:
        """A worker gets the Thread by other means: the messages are its, and the question goes."""
        link = self.follow("b")
        self.accept(self.message(LOST, "one"))
        message_id = self.shown()
        self.give(BETA, LOST)
        self.moved(BETA)
        self.assertEqual(self.texts(link), ["one"])
        self.assertEqual(self.choosers.all(), [])
        (gone,) = self.api.made("deleteMessage")
        self.assertEqual(gone.params["message_id"], message_id)


class RestoreTests(ChooserCase):
    """A worker takes an unknown Thread over."""

    def restore(self, key: str = ALPHA) -> str:
        """Go through both screens."""
        self.assertEqual(self.choose("🔁 Replace/restore thread…"), choosertexts.PICK)
        self.clock.advance(5)
        return self.choose(f"➡️ {key}")

    def test_restored(self) -> None:
        """The Thread is the worker's, the message goes there, the old Thread and the question go."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        message_id = self.shown()
        self.assertEqual(self.restore(), choosertexts.RESTORED)
        binding = self.bindings.get(ALPHA)
        assert binding is not None
        self.assertEqual((binding.thread_id, self.texts(link)), (LOST, ["one"]))
        self.assertEqual(self.deleted(), [])
        link.waiting[0].settle()
        self.assertEqual(self.deleted(), [11])
        gone = [c.params["message_id"] for c in self.api.made("deleteMessage")]
        self.assertEqual((gone, self.choosers.all()), ([message_id], []))

    def test_back(self) -> None:
        """The second screen has a way back."""
        self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose("🔁 Replace/restore thread…")
        self.clock.advance(5)
        self.choose("↩️ Back")
        self.clock.advance(5)
        last = self.api.made("editMessageText")[-1].params
        self.assertIn("🔁 Replace/restore thread…", self.labels(last))

    def test_refused(self) -> None:
        """The Thread cannot be given: nothing was sent, and it is asked again."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.threads.reassigning = succeed(False)
        self.assertEqual(self.restore(), choosertexts.UNAVAILABLE)
        self.assertEqual((self.states()[0], link.forwards), ("held", []))
        self.assertEqual(self.choosers.all()[0].state, "sent")
        self.assertIsNone(self.rows()[0]["recipient"])

    def test_old_thread_in_use(self) -> None:
        """The old Thread belongs to somebody by then: it stays."""
        self.follow("b")
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.restore()
        self.give(BETA, 11)
        self.moved(BETA)
        link.waiting[0].settle()
        self.assertEqual((self.deleted(), self.choosers.all()), ([], []))


class CleanupTests(ChooserCase):
    """What cannot be deleted is offered as a button that never sends anything again."""

    def routed(self) -> Any:
        """One message, chosen and settled."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose(f"↪️ {ALPHA}")
        link.waiting[0].settle()
        return link

    def test_retry(self) -> None:
        """The button deletes the Thread, and does not dispatch."""
        self.api.script("deleteForumTopic", CertainlyUnsent("deleteForumTopic", 0, "no network"))
        self.api.script("deleteForumTopic", Uncertain("deleteForumTopic", 502, "bad gateway"))
        link = self.routed()
        self.clock.advance(5)
        self.assertEqual(self.choose("🧹 Retry cleanup"), choosertexts.STILL_PENDING)
        self.clock.advance(5)
        self.assertEqual(self.choose("🧹 Retry cleanup"), choosertexts.CLEANED)
        self.assertEqual((self.deleted(), self.texts(link)), ([LOST] * 3, ["one"]))
        self.assertEqual(self.choosers.all(), [])

    def test_gone_already(self) -> None:
        """A Thread that is not there is as good as deleted."""
        self.api.script(
            "deleteForumTopic", Refused("deleteForumTopic", 400, "Bad Request: TOPIC_ID_INVALID")
        )
        self.routed()
        self.assertEqual(self.choosers.all(), [])

    def test_home(self) -> None:
        """The Thread to which an attached worker would go back is never deleted."""
        self.database.write(
            "attach",
            lambda c: c.execute(
                "INSERT INTO attachments VALUES ('spec-b', ?, ?, 0)", (OWNER, LOST)
            ),
        )
        self.routed()
        self.assertEqual((self.deleted(), self.choosers.all()), ([], []))

    def test_bound_between_proof_and_call(self) -> None:
        """A Thread that a worker got after the claim was written, and before the call, stays."""
        clearing = self.router.desk.clearing
        choosing = clearing.choosing

        class Late:
            """The store, whose claim is answered when the Thread has changed hands."""

            def __getattr__(late, name: str) -> Any:
                return getattr(self.choosers, name)

            def claim(late, chooser_id: str, chat_id: int, thread_id: int) -> Any:
                claimed = self.choosers.claim(chooser_id, chat_id, thread_id)
                self.give(BETA, thread_id)
                return claimed

        choosing.store = Late()  # type: ignore[assignment]
        self.routed()
        self.assertEqual((self.deleted(), self.choosers.all()), ([], []))

    def test_making(self) -> None:
        """While a Thread is being made that it might be, nothing is deleted."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.successResultOf(self.bindings.ensure("spec-c", "managed", "/projects/c"))
        self.successResultOf(self.bindings.begin_provision("spec-c", OWNER, "c"))
        self.choose(f"↪️ {ALPHA}")
        link.waiting[0].settle()
        self.assertEqual(self.deleted(), [])
        self.successResultOf(self.bindings.end_provision("spec-c", None))
        self.clock.advance(6)
        self.assertEqual(self.deleted(), [LOST])

    def test_written_while_it_hangs(self) -> None:
        """Cleanup hangs and the user writes there: it is asked again."""
        self.api.script("deleteForumTopic", CertainlyUnsent("deleteForumTopic", 0, "no network"))
        link = self.routed()
        self.accept(self.message(LOST, "two"))
        self.clock.advance(5)
        self.choose(f"↪️ {ALPHA}")
        link.waiting[0].settle()
        self.assertEqual((self.texts(link), self.deleted()), (["one", "two"], [LOST, LOST]))


class AllTests(ChooserCase):
    """Commands in All."""

    def test_forwarded(self) -> None:
        """Chosen, sent once, and the question goes; there is no restore."""
        link = self.follow("a")
        self.accept(self.command("/compact please"))
        (asked,) = self.asked()
        self.assertNotIn("message_thread_id", asked)
        self.assertIn("You used <code>/compact</code> from the <b>All</b> tab.", asked["text"])
        self.assertEqual(self.labels(asked), [f"↪️ {ALPHA}", "✖️ Dismiss"])
        self.choose(f"↪️ {ALPHA}", None)
        self.assertEqual(self.texts(link), ["/compact please"])
        link.waiting[0].settle()
        self.assertEqual((self.deleted(), self.choosers.all()), ([], []))
        self.assertEqual(len(self.api.made("deleteMessage")), 1)

    def test_one_each(self) -> None:
        """Each command has its own question; a prompt between them does not wait."""
        self.follow("a")
        self.accept(self.command("/compact"), self.command("a prompt"), self.command("/new"))
        self.assertEqual(self.states(), ["held", "settled", "held"])
        self.assertEqual((len(self.asked()), len(self.replies)), (2, 1))

    def test_expired(self) -> None:
        """An hour after its own date the command settles, and its buttons do nothing."""
        link = self.follow("a")
        self.accept(self.command("/compact"))
        (asked,), message_id = self.asked(), self.shown()
        self.clock.advance(LIFE - 5)
        self.assertEqual(self.states(), ["held"])
        self.clock.advance(10)
        self.assertEqual(self.states(), ["settled"])
        last = self.api.made("editMessageText")[-1].params
        self.assertEqual(last["text"], choosertexts.FAREWELLS["expired"])
        toast = self.press(message_id, self.data(asked, f"↪️ {ALPHA}"), None)
        self.assertEqual((toast, link.forwards), (choosertexts.EXPIRED, []))
        self.clock.advance(5)
        (strip,) = self.api.made("editMessageReplyMarkup")
        self.assertEqual(strip.params["message_id"], message_id)

    def test_old_when_it_comes(self) -> None:
        """A command of the backlog that is older settles at once, without a question."""
        self.follow("a")
        self.accept(self.command("/compact", date=round(self.clock.seconds()) - LIFE))
        self.assertEqual((self.states(), self.asked()), (["settled"], []))

    def test_no_date(self) -> None:
        """Without a usable date nothing is guessed: it does not expire."""
        self.follow("a")
        self.accept(self.message(None, "/new"))
        self.accept(*[self.command("/compact", date=date) for date in (True, -5, "1", 2**62)])
        self.clock.advance(LIFE * 100)
        self.assertEqual((self.states(), len(self.asked())), (["held"] * 5, 5))

    def test_clock_set_back(self) -> None:
        """A wall clock that is set back makes the deadline come later, not never."""
        self.follow("a")
        back = [0]
        self.desk.choosing.now_ms = lambda: round(self.clock.seconds() * 1000) - back[0]
        self.accept(self.command("/compact"))
        back[0] = 600_000
        self.clock.pump([60] * 61)
        self.assertEqual(self.states(), ["held"])
        self.clock.pump([60] * 10)
        self.assertEqual(self.states(), ["settled"])

    def test_paused(self) -> None:
        """While a choice is under way the command does not expire; freed, its time is up."""
        link = self.follow("a")
        self.accept(self.command("/compact"))
        self.choose(f"↪️ {ALPHA}", None)
        self.clock.advance(LIFE + 5)
        self.assertEqual(self.states()[0], "forwarding")
        self.probe.answers[ALPHA] = False
        link.cut()
        self.clock.pump([20, 2])
        self.assertEqual((self.states()[0], self.choosers.all()), ("settled", []))

    def test_start(self) -> None:
        """An equal C{/start} takes the place of the one before once it is shown; others do not."""
        self.follow("a")
        self.accept(self.command("/start"), self.command("/start x"), self.command("/compact"))
        message_id = self.choosers.all()[0].message_id
        self.api.script("sendMessage", Deferred())
        self.accept(self.command("/compact"))
        sending = self.desk.asking._job
        assert sending is not None
        self.accept(self.command("/start"))
        self.assertEqual(self.states(), ["held"] * 5)
        sending.cancel()
        self.restart()
        self.follow("a")
        self.clock.pump([1] * 20)
        self.assertEqual(self.states(), ["settled", "held", "held", "held", "held"])
        gone = [c.params["message_id"] for c in self.api.made("deleteMessage")]
        self.assertEqual(gone, [message_id])

    def test_greeting_without_workers(self) -> None:
        """C{/start} is the daemon's while nobody could be chosen."""
        self.daemon.greets = True
        self.accept(self.command("/start"))
        self.assertEqual((len(self.daemon.handled), self.states()), (1, ["settled"]))
        self.follow("a")
        self.accept(self.command("/start"))
        self.assertEqual((len(self.daemon.handled), self.states()[1]), (1, "held"))
        self.registry.live(ALPHA).link.cut()
        self.router.kick()
        self.restart()
        self.assertEqual((len(self.daemon.handled), self.states()[1]), (1, "held"))

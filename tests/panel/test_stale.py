"""Buttons of another time, dead ends, and what Telegram refuses.

Numbered after the rows of the table of stale callbacks in an earlier control plane (its section 7.6,
and what 7.2 to 7.7 say besides): each row was a dead end there, or did something twice.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.errors import CertainlyUnsent, Refusal, Refused
from pitelegram.panel.panel import OLDER
from pitelegram.panel.picking import EXPIRED
from pitelegram.panel.roster import GONE
from pitelegram.testing.panel import a_view
from tests.panel.test_panel import CHAT, PanelCase
from tests.routing.support import OWNER, RoutingCase

WAYS_BACK = {"↩️ Back", "↩️ Menu", "✖️ Close"}

TOO_OLD = Refused("answerCallbackQuery", 400, "query is too old and response timeout expired")


class StaleCase(PanelCase):
    """A panel whose last screen can be looked at."""

    def keyboard(self) -> list[dict[str, str]]:
        """The buttons that the pressed message has now."""
        rows = self.api.made("editMessageText")[-1].params["reply_markup"]["inline_keyboard"]
        return [button for row in rows for button in row]

    def data(self, label: str) -> str:
        """The callback data behind a label of the screen that is shown."""
        return next(b["callback_data"] for b in self.keyboard() if b["text"] == label)

    def has_a_way_back(self) -> None:
        """The screen that is shown is no dead end."""
        self.assertTrue(WAYS_BACK & {button["text"] for button in self.keyboard()})

    def press_on(self, message: Any, data: str) -> None:
        """Press a button of some other message."""
        query = {"id": "q9", "data": data} | ({} if message is None else {"message": message})
        self.successResultOf(
            self.panel.handle("callback_query", {"update_id": 9, "callback_query": query})
        )


class StaleTests(StaleCase):
    """Section 7.6, row by row."""

    def test_7_6_1_worker_gone(self) -> None:
        """Each verb about a worker that is gone says so over the roster, and acts on nobody."""
        for verb in ("z", "y", "r", "n", "k", "f", "fx", "c"):
            toast, text = self.pressed(f"ptd:{verb}:id-gone")
            self.assertEqual(toast, GONE, verb)
            self.assertIn("Pi workers", text, verb)
            self.has_a_way_back()
        self.assertEqual(self.supervisor.asked, [])

    def test_7_6_2_locate_a_worker_that_is_gone(self) -> None:
        """The same, and no marker is sent anywhere."""
        toast, text = self.pressed("ptd:l:id-gone")
        self.assertEqual(toast, GONE)
        self.assertIn("Pi workers", text)
        self.assertEqual(self.notices.posted, [])

    def test_7_6_3_unknown_picker_token(self) -> None:
        """A token that nobody knows begins the picker anew, with its keyboard."""
        for data in ("ptd:d:0123456789abcdef:0", "ptd:s:0123456789abcdef", "ptd:g:x", "ptd:d"):
            toast, text = self.pressed(data)
            self.assertEqual(toast, EXPIRED, data)
            self.assertIn("Pick a project directory", text)
            self.has_a_way_back()
        self.assertEqual(self.supervisor.asked, [])

    def test_7_6_4_from_before_a_restart_of_the_daemon(self) -> None:
        """Menu, roster, status and picker go on working in another daemon on the same store."""
        self.supervisor.directories.tree = {"/home": ["/home/one"], "/home/one": []}
        self.pressed("ptd:b")
        opened, start = self.data("📁 one"), self.data("✅ Start a worker here")
        self.panel = self.make()
        for data, words in (
            ("ptd:m", "Daemon control"),
            ("ptd:w:0", "Pi workers"),
            ("ptd:t", "Status:"),
            ("ptd:th", "Inactive Threads"),
            ("ptd:z:id-alpha", "Stop alpha?"),
            (opened, "No directories in it."),
            (start, "Start a worker here?"),
        ):
            toast, text = self.pressed(data)
            self.assertEqual(toast, "", data)
            self.assertIn(words, text, data)
            self.has_a_way_back()

    def test_7_6_5_double_tap_on_stop(self) -> None:
        """Stop is done once: the second tap is told that it is under way, a third that it is done."""
        stopping: Deferred[Any] = Deferred()
        self.supervisor.outcome = stopping
        self.pressed("ptd:z:id-alpha")
        stop = self.data("🛑 Stop")
        self.assertEqual(self.pressed(stop)[0], "Stopping alpha…")
        self.assertEqual(self.pressed(stop)[0], "Stopping alpha already…")
        self.supervisor.change("alpha", state="stopped", pid=None)
        stopping.callback(None)
        self.assertEqual(self.pressed(stop)[0], "alpha is stopped already.")
        self.assertEqual(self.supervisor.asked, [("stop", "id-alpha")])
        self.has_a_way_back()

    def test_7_6_5_double_tap_on_restart(self) -> None:
        """One question is one restart: also when the new process runs before the second tap."""
        restarting: Deferred[Any] = Deferred()
        self.supervisor.outcome = restarting
        self.pressed("ptd:r:id-alpha")
        restart = self.data("♻️ Restart")
        self.assertEqual(self.pressed(restart)[0], "Restarting alpha…")
        self.assertEqual(self.pressed(restart)[0], "Restarting alpha already…")
        self.supervisor.change("alpha", state="spawning", pid=4800)
        restarting.callback(None)
        self.assertEqual(self.pressed(restart)[0], "alpha was started anew already.")
        self.supervisor.change("alpha", state="running")
        self.assertEqual(self.pressed(restart)[0], "alpha was started anew already.")
        self.assertEqual(self.supervisor.asked, [("restart", "id-alpha")])
        self.has_a_way_back()

    def test_7_6_5_double_tap_on_retry(self) -> None:
        """The same for a worker that did not run."""
        self.pressed("ptd:r:id-beta")
        retry = self.data("♻️ Retry")
        self.pressed(retry)
        self.supervisor.change("beta", state="running", pid=4800)
        self.assertEqual(self.pressed(retry)[0], "beta was started anew already.")
        self.assertEqual(self.supervisor.asked, [("restart", "id-beta")])

    def test_7_6_5_restart_in_a_crash_loop(self) -> None:
        """Who crashed meanwhile, or is being ended, is restarted although its process is another."""
        self.pressed("ptd:r:id-alpha")
        restart = self.data("♻️ Restart")
        for state in ("backoff", "failed", "draining", "killing", "adopting"):
            self.supervisor.change("alpha", state=state, pid=None)
            self.assertEqual(self.pressed(restart)[0], "Restarting alpha…", state)
        self.assertEqual(len(self.supervisor.asked), 5)

    def test_7_6_5_a_failed_action_can_be_repeated(self) -> None:
        """What failed is not under way any more."""
        self.supervisor.outcome = Refused("x", 400, "not now")
        self.pressed("ptd:y:id-alpha")
        self.pressed("ptd:y:id-alpha")
        self.assertEqual(self.supervisor.asked, [("stop", "id-alpha")] * 2)

    def test_7_6_5_double_tap_on_start(self) -> None:
        """A worker is started once."""
        starting: Deferred[Any] = Deferred()
        self.supervisor.outcome = starting
        self.pressed("ptd:b")
        self.pressed(self.data("✅ Start a worker here"))
        start = self.data("✅ Start a worker here")
        self.assertEqual(self.pressed(start)[0], "Starting in projects…")
        self.assertEqual(self.pressed(start)[0], "Starting in projects already…")
        starting.callback(a_view("projects"))
        self.assertEqual(self.supervisor.asked, [("start", "/projects")])

    def test_7_6_7_answer_too_late(self) -> None:
        """A refused answer holds up neither the action nor the screen."""
        self.api.script("answerCallbackQuery", TOO_OLD)
        self.assertIn("Pi workers", self.pressed("ptd:y:id-alpha")[1])
        self.assertEqual(self.supervisor.asked, [("stop", "id-alpha")])

    def test_7_6_7_answer_that_hangs(self) -> None:
        """While Telegram does not take the answer, the screen is shown already."""
        hanging: Deferred[Any] = Deferred()
        self.api.script("answerCallbackQuery", hanging)
        handling = self.press("ptd:w:0")
        self.assertEqual(len(self.api.made("editMessageText")), 1)
        self.assertNoResult(handling)
        hanging.errback(CertainlyUnsent("answerCallbackQuery", 0, "no connection", None))
        self.successResultOf(handling)

    def test_7_6_8_message_is_not_modified(self) -> None:
        """The client says it is so already: the same screen twice is no fault and sends nothing.

        On the whole machine: C{tests.system.test_screens.Screens.test_without_workers}.
        """
        self.api.script("editMessageText", True)
        self.pressed("ptd:m")
        self.pressed("ptd:m")
        self.assertEqual(self.api.made("sendMessage"), [])

    def test_7_6_9_callback_without_message(self) -> None:
        """It is answered, does nothing, and shows nothing."""
        self.press_on(None, "ptd:y:id-alpha")
        self.assertEqual(self.api.made("answerCallbackQuery")[0].params["text"], OLDER)
        self.assertEqual(self.api.made("editMessageText"), [])
        self.assertEqual(self.supervisor.asked, [])

    def test_7_6_9_inaccessible_message(self) -> None:
        """A panel that the user deleted: the press counts, its screen is sent anew."""
        self.api.script("editMessageText", Refused("x", 400, "message to edit not found"))
        self.press_on({"message_id": 50, "date": 0, "chat": {"id": CHAT}}, "ptd:w:0")
        (sent,) = self.api.made("sendMessage")
        self.assertIn("Pi workers", sent.params["text"])
        self.press_on({"message_id": 77, "date": 0, "chat": {"id": CHAT}}, "ptd:y:id-alpha")
        self.assertEqual(self.api.made("answerCallbackQuery")[-1].params["text"], OLDER)
        self.assertEqual(self.supervisor.asked, [])

    def test_7_6_10_unknown_operation(self) -> None:
        """What nobody knows leads to the menu, whatever it is."""
        for data in (
            "ptd:zz",
            "ptd:",
            "ptd:y",
            "ptd:y:",
            "ptd:" + "x" * 60,
            "ptd:ts:\u202e",
            "ptd:td:",
        ):
            self.pressed(data)
            self.has_a_way_back()
        self.assertEqual((self.supervisor.asked, self.cleanup.asked), ([], []))


class MeanwhileTests(StaleCase):
    """The operator walks on while something that he began goes on."""

    def setUp(self) -> None:
        """A stop is under way."""
        super().setUp()
        self.stopping: Deferred[Any] = Deferred()
        self.supervisor.outcome = self.stopping
        self.pressed("ptd:y:id-alpha")

    def test_elsewhere(self) -> None:
        """He is not thrown back to the roster when it ends."""
        self.pressed("ptd:t")
        self.stopping.callback(None)
        self.assertIn("Status:", self.api.made("editMessageText")[-1].params["text"])
        self.assertEqual(self.api.made("sendMessage"), [])

    def test_on_the_roster_again(self) -> None:
        """Whoever is back on the roster sees the end of it there."""
        self.pressed("ptd:t")
        self.pressed("ptd:w:0")
        self.supervisor.change("alpha", state="stopped")
        self.stopping.callback(None)
        self.assertIn("alpha · stopped", self.api.made("editMessageText")[-1].params["text"])

    def test_elsewhere_when_it_failed(self) -> None:
        """A failure is not missed: it comes as a new panel, with a way back."""
        self.pressed("ptd:m")
        self.stopping.errback(Refusal("x", "it will not go"))
        (sent,) = self.api.made("sendMessage")
        self.assertIn("⚠️ it will not go", sent.params["text"])
        labels = [b["text"] for row in sent.params["reply_markup"]["inline_keyboard"] for b in row]
        self.assertIn("↩️ Menu", labels)
        self.assertIn("Daemon control", self.api.made("editMessageText")[-1].params["text"])

    def test_another_panel(self) -> None:
        """What another panel shows is nothing to this one."""
        self.successResultOf(self.bindings.remember_messages(CHAT, [51], "daemon", True))
        self.press_on({"message_id": 51, "chat": {"id": CHAT}}, "ptd:t")
        self.stopping.callback(None)
        last = self.api.made("editMessageText")[-1].params
        self.assertEqual(last["message_id"], 50)
        self.assertIn("Pi workers", last["text"])


class BoundTests(StaleCase):
    """Section 7.2: a button counts in the chat, and on the message, in which it was issued."""

    def test_7_2_another_chat(self) -> None:
        """A message of that number in another chat is none of ours."""
        self.press_on({"message_id": 50, "chat": {"id": CHAT + 1}}, "ptd:y:id-alpha")
        self.assertEqual(self.api.made("answerCallbackQuery")[0].params["text"], OLDER)
        self.assertEqual(self.supervisor.asked, [])

    def test_7_2_the_users_own_message(self) -> None:
        """A message that the bot did not send carries no buttons of ours."""
        self.successResultOf(self.bindings.remember_messages(CHAT, [60], "daemon", False))
        self.press_on({"message_id": 60, "chat": {"id": CHAT}}, "ptd:n:id-alpha")
        self.assertEqual(self.supervisor.asked, [])

    def test_7_2_buttons_that_a_worker_made(self) -> None:
        """On a worker's message nothing counts but a question about that very worker."""
        self.successResultOf(self.bindings.remember_messages(CHAT, [60], "spec-id-alpha", True))
        for data in (
            "ptd:y:id-beta",
            "ptd:y:id-alpha",
            "ptd:n:id-alpha",
            "ptd:r:id-beta",
            "ptd:tx:op",
        ):
            self.successResultOf(self.bindings.remember_messages(CHAT, [60], "spec-id-alpha", True))
            self.press_on({"message_id": 60, "chat": {"id": CHAT}}, data)
            toast = self.api.made("answerCallbackQuery")[-1].params["text"]
            self.assertEqual(toast, OLDER, data)
            self.has_a_way_back()
        self.assertEqual((self.supervisor.asked, self.cleanup.asked), ([], []))

    def test_7_2_question_about_a_worker(self) -> None:
        """The keeper's offer in a worker's Thread leads to the question, and on from there."""
        self.successResultOf(self.bindings.remember_messages(CHAT, [60], "spec-id-beta", True))
        place = {"message_id": 60, "chat": {"id": CHAT}}
        self.press_on(place, "ptd:r:id-beta")
        self.assertIn("Retry beta?", self.api.made("editMessageText")[-1].params["text"])
        self.assertEqual(self.bindings.message_owner(CHAT, 60), ("daemon", True))
        self.press_on(place, self.data("♻️ Retry"))
        self.assertEqual(self.supervisor.asked, [("restart", "id-beta")])

    def test_7_2_parked_answer(self) -> None:
        """C{Deliver again} stands on messages of workers, and names its answer itself."""
        self.successResultOf(self.bindings.remember_messages(CHAT, [60], "spec-id-beta", True))
        self.press_on({"message_id": 60, "chat": {"id": CHAT}}, "ob:again:k1")
        self.assertEqual(self.delivery.retried, ["k1"])


class TypedTests(StaleCase):
    """Sections 7.1, 7.4 and 7.5: what is written."""

    def test_7_5_spaces(self) -> None:
        """A directory with spaces can be written; the question comes before the start."""
        self.supervisor.directories.tree = {"/home": ["/home/my project"]}
        self.write('/workers start "/home/my project"')
        (sent,) = self.api.made("sendMessage")
        self.assertIn("/home/my project", sent.params["text"])
        self.assertEqual(self.supervisor.asked, [])

    def test_7_5_stop_asks(self) -> None:
        """Stop and restart by text ask first."""
        for verb, words in (("stop", "Stop alpha?"), ("restart", "Restart alpha?")):
            self.write(f"/workers {verb} alpha")
            self.assertIn(words, self.api.made("sendMessage")[-1].params["text"])
        self.assertEqual(self.supervisor.asked, [])

    def test_7_5_whatever_is_written_ends_with_a_way_back(self) -> None:
        """Wrong, half and hostile commands get a screen with a keyboard."""
        for text in (
            *("/workers stop", "/workers stop nobody", "/workers nonsense x", '/workers stop "'),
            *(
                "/workers browse /etc",
                "/workers start /etc",
                "/workers browse",
                "/workers logs alpha",
            ),
            *("/attach", "/attach a b", "/attach nobody", '/attach "', "/detach", "/workers menu"),
            *("/workers start $(reboot)", "/workers stop ../../x", "/workers \u202e", "/help"),
        ):
            self.write(text, 8)
            markup = self.api.made("sendMessage")[-1].params["reply_markup"]
            found = {b["text"] for row in markup["inline_keyboard"] for b in row}
            self.assertTrue(WAYS_BACK & found, text)
        self.assertEqual(self.supervisor.asked, [])


class ReplayTests(RoutingCase):
    """Section 7.6, row 6: a callback that the journal holds is executed once."""

    def build(self) -> None:
        """The daemon is the real panel."""
        if not hasattr(self, "world"):
            self.world = PanelCase("press")
            self.world.setUp()
        self.daemon = self.world.panel  # type: ignore[assignment]
        super().build()

    def tearDown(self) -> None:
        """Close the panel's own store, too."""
        self.world.doCleanups()

    def stop_pressed(self) -> dict[str, Any]:
        """An update with a press of Stop."""
        message = {"message_id": 50, "chat": {"id": OWNER, "type": "private"}, "date": 1}
        sender = {"id": OWNER, "is_bot": False}
        query = {"id": "q1", "from": sender, "message": message, "data": "ptd:y:id-alpha"}
        return {"update_id": next(self.update_ids), "callback_query": query}

    def test_7_6_6_replayed_after_a_crash(self) -> None:
        """The daemon dies while it stops a worker; the next one takes the row up and does nothing."""
        hanging: Deferred[Any] = Deferred()
        self.world.api.script("answerCallbackQuery", hanging)
        self.router.startService()
        update = self.stop_pressed()
        self.successResultOf(self.admission.accept([update], update["update_id"] + 1))
        self.assertEqual(self.world.supervisor.asked, [("stop", "id-alpha")])
        self.assertEqual(len(self.journal.unsettled()), 1)
        self.build()
        self.router.startService()
        self.assertEqual(self.journal.unsettled(), [])
        self.assertEqual(self.world.supervisor.asked, [("stop", "id-alpha")])
        hanging.callback(True)

    def test_7_6_6_sent_twice_by_telegram(self) -> None:
        """The same press under another update id is the same press."""
        self.router.startService()
        for _ in range(2):
            update = self.stop_pressed()
            self.successResultOf(self.admission.accept([update], update["update_id"] + 1))
        self.assertEqual(self.journal.unsettled(), [])
        self.assertEqual(self.world.supervisor.asked, [("stop", "id-alpha")])

"""The panel: whose updates are its own, and what each button does."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from pitelegram.botapi.interfaces import ISendGate
from pitelegram.errors import CertainlyUnsent, Refusal, Refused
from pitelegram.panel.interfaces import IStatusSource
from pitelegram.panel.panel import Panel, command_of
from pitelegram.routing.interfaces import IDaemonTarget
from pitelegram.store.attachments import Attachments
from pitelegram.store.bindings import Bindings
from pitelegram.store.pickers import Pickers
from pitelegram.store.rows import Binding
from pitelegram.supervisor.interfaces import ISupervisor
from pitelegram.testing.botapi import FakeBotApi
from pitelegram.testing.delivery import FakeDelivery, FakeNotices
from pitelegram.testing.followers import FakeThreads
from pitelegram.testing.panel import FakeCleanup, FakeSupervisor, FakeTitleModes, OpenGate, a_view
from pitelegram.testing.stores import leader_database
from pitelegram.threads.attaching import Attaching
from tests.panel.test_screens import DOCUMENT, every_screen

CHAT = 1000


@implementer(IStatusSource)
class Source:
    """The status."""

    def status(self) -> dict[str, Any]:
        """See L{IStatusSource.status}."""
        return DOCUMENT


def binding(kind: str) -> Binding:
    """Return a binding with a Thread."""
    return Binding(
        binding_key="spec-a",
        kind=kind,
        directory="/a",
        chat_id=CHAT,
        thread_id=7,
        slot="A",
        thread_name="Atlas",
        title="A",
    )


def message(text: str, thread: int | None = None, **more: Any) -> dict[str, Any]:
    """Return an update with a message."""
    content: dict[str, Any] = {"message_id": 5, "chat": {"id": CHAT}, "text": text, **more}
    if thread is not None:
        content["message_thread_id"] = thread
    return {"update_id": 1, "message": content}


class PanelCase(SynchronousTestCase):
    """A panel with two workers."""

    def setUp(self) -> None:
        """Build it."""
        self.database = leader_database(Clock())
        self.addCleanup(self.database.stopService)
        self.bindings = Bindings(self.database)
        self.api = FakeBotApi()
        self.gate = OpenGate()
        self.supervisor = FakeSupervisor(a_view("alpha"), a_view("beta", "stopped"))
        self.delivery = FakeDelivery()
        self.cleanup = FakeCleanup()
        self.titles = FakeTitleModes()
        self.notices = FakeNotices()
        self.threads = FakeThreads(self.bindings)
        self.panel = self.make()
        self.successResultOf(self.bindings.remember_messages(CHAT, [50], "daemon", True))

    def make(self) -> Panel:
        """Another panel on the same store, as after a restart of the daemon."""
        return Panel(
            api=self.api,
            gate=self.gate,
            supervisor=self.supervisor,
            bindings=self.bindings,
            delivery=self.delivery,
            notices=self.notices,
            source=Source(),
            directories=self.supervisor.directories,
            pickers=Pickers(self.database),
            attaching=Attaching(self.threads, self.bindings, Attachments(self.database)),
            cleanup=self.cleanup,
            titles=self.titles,
        )

    def write(self, text: str, thread: int | None = None, **more: Any) -> None:
        """Have the panel handle a message."""
        self.successResultOf(self.panel.handle("message", message(text, thread, **more)))

    def press(self, data: str) -> Deferred[None]:
        """Have the panel handle a button of message 50."""
        query = {
            "id": "q1",
            "data": data,
            "message": {"message_id": 50, "chat": {"id": CHAT}},
        }
        return self.panel.handle("callback_query", {"update_id": 2, "callback_query": query})

    def pressed(self, data: str) -> tuple[str, str]:
        """Press and return the toast and the text that the panel's message has then."""
        self.successResultOf(self.press(data))
        toasts = self.api.made("answerCallbackQuery")
        edits = self.api.made("editMessageText")
        return toasts[-1].params.get("text", ""), edits[-1].params["text"] if edits else ""


class WantsTests(PanelCase):
    """L{Panel.wants}."""

    def test_interfaces(self) -> None:
        """Panel and fakes are what they say."""
        self.assertTrue(verifyObject(IDaemonTarget, self.panel))
        self.assertTrue(verifyObject(ISupervisor, self.supervisor))
        self.assertTrue(verifyObject(ISendGate, self.gate))
        self.assertTrue(verifyObject(IStatusSource, Source()))

    def test_commands(self) -> None:
        """C{/daemon} counts in All and in nobody's Thread; in a worker's Thread it is the worker's."""
        worker, control = binding("managed"), binding("daemon")
        for text, thread, owner, right in (
            ("/daemon", None, None, True),
            ("/daemon", None, worker, True),  # classic mode: the chat serves that worker
            ("/daemon@my_bot", None, None, True),
            ("/DAEMON", None, None, True),
            ("/daemon", 9, None, True),
            ("/daemon", 7, worker, False),
            ("/daemonic", None, None, False),
            ("/workers", 9, None, True),
            ("/workers", None, worker, False),
            ("/compact", None, None, False),
            ("hello", None, None, False),
            ("hello", 7, worker, False),
            ("hello", 8, control, True),
            ("/compact", 8, control, True),
        ):
            found = self.panel.wants("message", message(text, thread), owner)
            self.assertIs(found, right, (text, thread, owner))

    def test_other_kinds(self) -> None:
        """Its own buttons wherever they are, and whatever happens in its own Thread."""
        for data, right in (("ptd:m", True), ("ob:again:k", True), ("q:1", False), (None, False)):
            update = {"callback_query": {"id": "1", "data": data}}
            self.assertIs(self.panel.wants("callback_query", update, None), right, data)
        self.assertIs(self.panel.wants("edited_message", {}, binding("daemon")), True)
        self.assertIs(self.panel.wants("message_reaction", {}, binding("managed")), False)
        self.assertIs(self.panel.wants("edited_message", {}, None), False)

    def test_command_of(self) -> None:
        """A command is the first word, without the bot's name."""
        for text, right in (
            ("/a@bot b", "/a"),
            ("/A\nb", "/a"),
            (" /a", None),
            ("a", None),
            ("", None),
            (None, None),
        ):
            self.assertEqual(command_of({"text": text}), right)


class WrittenTests(PanelCase):
    """Messages."""

    def test_answers(self) -> None:
        """Commands open the menu or the roster, where they were written."""
        self.write("/daemon", 8)
        self.write("/workers")
        menu, roster = (call.params for call in self.api.made("sendMessage"))
        self.assertEqual((menu["message_thread_id"], menu["chat_id"]), (8, CHAT))
        self.assertIn("Daemon control", menu["text"])
        self.assertNotIn("message_thread_id", roster)
        self.assertIn("🟢 alpha", roster["text"])
        self.assertEqual(self.gate.passed, [(CHAT, "send")] * 2)

    def test_prose(self) -> None:
        """Prose in the daemon's Thread is told where it belongs; service messages are nothing."""
        self.write("hello", 8)
        self.write("", 8, forum_topic_edited={"name": "x"})
        (call,) = self.api.made("sendMessage")
        self.assertIn("Write to a worker's Thread", call.params["text"])

    def test_flood(self) -> None:
        """A flood limit is noted for everybody, and is no fault of ours."""
        self.api.script("sendMessage", CertainlyUnsent("sendMessage", 429, "slow down", 7.0))
        self.write("/daemon")
        self.assertEqual(self.gate.floods, [(CHAT, 7.0)])

    def test_edits_and_reactions(self) -> None:
        """They are nothing to the panel."""
        for kind in ("edited_message", "message_reaction"):
            self.successResultOf(self.panel.handle(kind, {kind: {}}))
        self.assertEqual(self.api.calls, [])


class PressedTests(PanelCase):
    """Buttons."""

    def test_screens(self) -> None:
        """Each of these shows its screen, without a toast."""
        for data, words in (
            ("ptd:m", "Daemon control"),
            ("ptd:w:0", "Pi workers"),
            ("ptd:w:x", "Pi workers"),
            ("ptd:t", "Status: degraded"),
            ("ptd:b", "Pick a project directory"),
            ("ptd:th", "Inactive Threads"),
            ("ptd:z:id-alpha", "🛑 Stop alpha?"),
            ("ptd:r:id-alpha", "♻️ Restart alpha?"),
            ("ptd:r:id-beta", "♻️ Retry beta?"),
            ("ptd:x", "closed"),
        ):
            toast, text = self.pressed(data)
            self.assertEqual(toast, "", data)
            self.assertIn(words, text, data)
        self.assertEqual(self.supervisor.asked, [])
        self.assertEqual(self.api.made("editMessageText")[-1].params["message_id"], 50)

    def test_buttons_lead_somewhere(self) -> None:
        """Every button of every screen has a verb that is known."""
        for screen in every_screen():
            for row in screen.rows:
                for button in row:
                    self.assertIn(button.data.split(":")[1], self.panel.verbs, button)

    def test_message_of_nobody_known(self) -> None:
        """A button counts only on a message that this program sent; it leads to the menu."""
        query = {
            "id": "q1",
            "data": "ptd:y:id-alpha",
            "message": {"message_id": 51, "chat": {"id": CHAT}},
        }
        update = {"update_id": 2, "callback_query": query}
        self.successResultOf(self.panel.handle("callback_query", update))
        (answer,) = self.api.made("answerCallbackQuery")
        self.assertEqual(answer.params["text"], "That button is from an older panel.")
        self.assertIn("Daemon control", self.api.made("editMessageText")[-1].params["text"])
        self.assertEqual(self.supervisor.asked, [])
        # What it shows now is ours: the daemon may have died before it noted the message.
        query["data"] = "ptd:t"
        self.successResultOf(self.panel.handle("callback_query", update))
        self.assertNotIn("text", self.api.made("answerCallbackQuery")[-1].params)
        self.assertIn("Status:", self.api.made("editMessageText")[-1].params["text"])

    def test_message_that_is_not_ours(self) -> None:
        """One that Telegram does not let us change stays nobody's."""
        for _ in range(2):
            self.api.script("editMessageText", Refused("x", 400, "Bad Request: something else"))
            query = {"id": "q1", "data": "ptd:y:id-alpha"}
            query |= {"message": {"message_id": 51, "chat": {"id": CHAT}}}  # type: ignore[dict-item]
            update = {"update_id": 2, "callback_query": query}
            self.successResultOf(self.panel.handle("callback_query", update))
        self.assertEqual(self.supervisor.asked, [])
        self.assertEqual(self.bindings.message_owner(CHAT, 51), None)

    def test_stop(self) -> None:
        """The press is answered at once; the roster is shown again when the worker has gone."""
        stopping: Deferred[Any] = Deferred()
        self.supervisor.outcome = stopping
        toast, text = self.pressed("ptd:y:id-alpha")
        self.assertEqual(self.supervisor.asked, [("stop", "id-alpha")])
        self.assertEqual(toast, "Stopping alpha…")
        self.supervisor.change("alpha", state="stopped")
        stopping.callback(None)
        text = self.api.made("editMessageText")[-1].params["text"]
        self.assertIn("⚪ alpha · stopped", text)

    def test_new_session(self) -> None:
        """A worker whose session cannot be resumed is started in a new one, when confirmed."""
        _, text = self.pressed("ptd:f:id-beta")
        self.assertIn("🆕 Start beta in a new session?", text)
        self.assertEqual(self.supervisor.asked, [])
        self.pressed("ptd:fx:id-beta")
        self.assertEqual(self.supervisor.asked, [("restart fresh", "id-beta")])

    def test_restart(self) -> None:
        """The same for a restart, whose failure is said on the roster."""
        self.supervisor.outcome = Refusal("outside-roots", "that directory is outside the roots")
        toast, text = self.pressed("ptd:n:id-beta")
        self.assertEqual(self.supervisor.asked, [("restart", "id-beta")])
        self.assertEqual(toast, "Restarting beta…")
        self.assertIn("⚠️ that directory is outside the roots", text)

    def test_defect_in_an_action(self) -> None:
        """A fault of ours is said too, and logged."""
        self.supervisor.outcome = ZeroDivisionError()
        _, text = self.pressed("ptd:n:id-beta")
        self.assertIn("⚠️ That failed", text)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def test_action_without_telegram(self) -> None:
        """The worker is stopped although Telegram takes neither answer nor edit."""
        hanging: Deferred[Any] = Deferred()
        self.api.script("answerCallbackQuery", hanging)
        self.api.script("editMessageText", Refused("editMessageText", 400, "gone"))
        handling = self.press("ptd:y:id-alpha")
        self.assertNoResult(handling)
        self.assertEqual(self.supervisor.asked, [("stop", "id-alpha")])
        hanging.errback(Refused("answerCallbackQuery", 400, "query is too old"))
        self.successResultOf(handling)

    def test_stale(self) -> None:
        """Buttons of what is gone, stopped already, or unknown say so and show what is."""
        for data, toast, words in (
            ("ptd:z:id-gone", "That worker is gone.", "Pi workers"),
            ("ptd:r:id-gone", "That worker is gone.", "Pi workers"),
            ("ptd:y:id-gone", "That worker is gone.", "Pi workers"),
            ("ptd:n:id-gone", "That worker is gone.", "Pi workers"),
            ("ptd:z:id-beta", "beta is stopped already.", "Pi workers"),
            ("ptd:zz", "That button is from an older panel.", "Daemon control"),
            ("ptd:", "That button is from an older panel.", "Daemon control"),
        ):
            found, text = self.pressed(data)
            self.assertEqual(found, toast, data)
            self.assertIn(words, text, data)
        self.assertEqual(self.supervisor.asked, [])

    def test_keep_waiting(self) -> None:
        """The operator waits on."""
        self.assertEqual(self.pressed("ptd:k:id-alpha")[0], "Waiting on.")
        self.pressed("ptd:k:id-gone")
        self.assertEqual(self.supervisor.asked, [("keep_waiting", "id-alpha")])

    def test_locate(self) -> None:
        """A marker goes into the worker's Thread, if it has one; the panel stays as it is."""
        self.assertIn("no Thread yet", self.pressed("ptd:l:id-alpha")[0])
        self.successResultOf(self.bindings.ensure("spec-id-alpha", "managed", "/a"))
        self.successResultOf(self.bindings.set_target("spec-id-alpha", CHAT, 7, None))
        self.pressed("ptd:l:id-alpha")
        self.assertEqual(self.notices.posted, [("spec-id-alpha", "📍 alpha is here.")])
        self.assertEqual(self.api.made("editMessageText"), [])

    def test_titles(self) -> None:
        """From the Threads screen to another way of titling, and back."""
        self.assertIn("Titles of Threads", self.pressed("ptd:tt")[1])
        self.assertEqual(self.pressed("ptd:ts:names")[0], "Titles: names")
        self.assertEqual(self.titles.now, "names")

    def test_deliver_again(self) -> None:
        """The button of a parked answer names its key; its message stays."""
        self.assertEqual(self.pressed("ob:again:k1")[0], "Sending it again.")
        self.assertEqual(self.delivery.retried, ["k1"])
        self.assertEqual(self.api.made("editMessageText"), [])

    def test_defect(self) -> None:
        """Whatever fails, the press is answered."""
        self.panel.delivery = None  # type: ignore[assignment]
        self.assertIn("That failed", self.pressed("ob:again:k1")[0])
        self.assertEqual(len(self.flushLoggedErrors(AttributeError)), 1)

    def test_inline_message(self) -> None:
        """A button without a message is answered and shows nothing."""
        query = {"callback_query": {"id": "q1", "data": "ptd:m"}}
        self.successResultOf(self.panel.handle("callback_query", query))
        self.assertEqual([call.method for call in self.api.calls], ["answerCallbackQuery"])


class ClassicTests(PanelCase):
    """Where there are no Threads, the chat serves one worker at a time."""

    def setUp(self) -> None:
        """Two run, one is stopped; none has anything."""
        super().setUp()
        self.supervisor.listed.insert(1, a_view("gamma"))
        for view in self.supervisor.listed:
            self.successResultOf(self.bindings.ensure(view.binding_key, "managed", view.directory))

    def offered(self) -> list[str]:
        """Open the roster; return what may be served, by callback data."""
        self.pressed("ptd:w:0")
        rows = self.api.made("editMessageText")[-1].params["reply_markup"]["inline_keyboard"]
        return [
            b["callback_data"] for row in rows for b in row if b["text"] == "💬 Talk to it here"
        ]

    def test_only_without_threads(self) -> None:
        """With Threads, or while nobody knows, nothing is offered, and an old button does nothing."""
        for mode in ("enabled", "unknown"):
            self.threads.now = mode
            self.assertEqual(self.offered(), [])
            toast, text = self.pressed("ptd:c:id-alpha")
            self.assertEqual(toast, "Each worker has its own Thread.")
            self.assertNotIn("This chat talks to", text)
        self.assertIsNone(self.bindings.by_target(CHAT, None))

    def test_choose(self) -> None:
        """Every running worker but the one that has the chat is offered; the choice is shown."""
        self.threads.now = "disabled"
        self.assertEqual(self.offered(), ["ptd:c:id-alpha", "ptd:c:id-gamma"])
        self.assertIn("This chat talks to no worker.", self.pressed("ptd:w:0")[1])
        toast, text = self.pressed("ptd:c:id-gamma")
        self.assertEqual(toast, "This chat talks to that worker now.")
        self.assertIn("💬 This chat talks to gamma.", text)
        self.assertEqual(self.offered(), ["ptd:c:id-alpha"])
        self.pressed("ptd:c:id-alpha")
        served = self.bindings.by_target(CHAT, None)
        self.assertEqual(served and served.binding_key, "spec-id-alpha")
        self.assertEqual(self.offered(), ["ptd:c:id-gamma"])

    def test_cannot_be_served(self) -> None:
        """A worker that is gone or does not run is said to be so, above the roster."""
        self.threads.now = "disabled"
        self.assertEqual(self.pressed("ptd:c:id-nobody")[0], "That worker is gone.")
        toast, text = self.pressed("ptd:c:id-beta")
        self.assertEqual(toast, "beta does not run.")
        self.assertIn("This chat talks to no worker.", text)

    def test_somebody_else(self) -> None:
        """A binding that the roster does not list may have the chat."""
        self.threads.now = "disabled"
        self.successResultOf(self.bindings.ensure("ws-other", "attached", "/other"))
        self.successResultOf(self.threads.serve("ws-other"))
        self.assertIn("talks to a worker that is not listed", self.pressed("ptd:w:0")[1])

    def test_locate(self) -> None:
        """Who does not have the chat cannot be located in it."""
        self.threads.now = "disabled"
        self.pressed("ptd:c:id-alpha")
        self.assertEqual(self.pressed("ptd:l:id-gamma")[0], "This chat talks to another worker.")
        self.pressed("ptd:l:id-alpha")
        self.assertEqual(self.notices.posted, [("spec-id-alpha", "📍 alpha is here.")])

    def test_written(self) -> None:
        """C{/workers} shows the same roster."""
        self.threads.now = "disabled"
        self.write("/workers")
        self.assertIn(
            "This chat talks to no worker.", self.api.made("sendMessage")[0].params["text"]
        )

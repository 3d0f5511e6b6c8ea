"""Menus of the Thread: shown, pressed, stale, put off, and pressed again after a crash."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.bridge.menus import compact, model, queue, sessions, settings, thinking
from pitelegram.errors import LinkLost, PiRefused, Refusal
from pitelegram.testing.worker import CHAT, THREAD
from pitelegram.worker.menus import EXPIRED
from tests.worker.menusupport import MENU, PLACE, MenuCase


class Root(MenuCase):
    """The main menu and the ways from it."""

    def test_start(self) -> None:
        """It comes into the worker's Thread, with what is so now; nothing goes to the outbox."""
        rig = self.begin()
        rig.host.results["get_commands"] = {
            "commands": [{"name": "fix-it", "source": "prompt", "description": "Mends"}]
        }
        for command in ("/start", "/help", "/START@some_bot"):
            rig.message(command)
            shown = self.shown()
            self.assertEqual((shown["chat_id"], shown["message_thread_id"]), (CHAT, THREAD))
            self.assertIn("🧩 /fix_it — Mends", shown["text"])
            self.assertIn("🤖 Model: scripted/scripted", self.labels())
        self.assertEqual((rig.link.submitted, rig.states()), ([], {"settled": 3}))

    def test_every_way_and_back(self) -> None:
        """Each button leads to its menu, and the first one of that leads back."""
        rig = self.begin()
        rig.host.results["set_model"] = {}
        rig.message("/model scripted/other<b>")
        rig.message("/start")
        for label, title in (
            ("🤖 Model", "🤖 Choose a model:"),
            ("🧠 Thinking", "🧠 Choose a thinking level:"),
            ("Queue", "⌛ Queue is empty."),
            ("🗂 Sessions", "🗂 Sessions:"),
            ("⚙️ Settings", "⚙️ Settings:"),
        ):
            self.tap(label)
            self.assertTrue(self.shown()["text"].startswith(title), label)
            self.assertEqual(self.labels()[0], "⬆️ Main menu")
            self.tap("⬆️ Main menu")
            self.assertTrue(self.shown()["text"].startswith("Pi Telegram"))
        edits = self.calls("editMessageText")
        self.assertEqual(len(edits), 10)
        self.assertTrue(all(PLACE.items() <= edit.items() for edit in edits))
        self.assertEqual(self.toasts(), [""] * 10)

    def test_pi_that_tells_nothing(self) -> None:
        """The menu comes without what Pi does not tell."""
        rig = self.begin()
        for name in ("get_commands", "get_session_stats"):
            rig.host.results[name] = PiRefused("no")
        rig.message("/start")
        text = self.shown()["text"]
        self.assertIn("Status: idle", text)
        self.assertNotIn("🧩", text)
        self.assertNotIn("Usage", text)

    def test_no_leader(self) -> None:
        """A menu that cannot be sent now comes as soon as it can, with its buttons."""
        rig = self.begin()
        link = rig.link
        rig.service._bus.lose()  # type: ignore[union-attr]
        rig.message("/settings")
        rig.connect()
        rig.run(2)
        (_, delivery) = rig.link.submitted[0]
        (call,) = delivery["calls"]
        self.assertEqual(call["params"]["text"], "⚙️ Settings:")
        self.assertNotIn("chat_id", call["params"])
        self.assertEqual(len(call["params"]["reply_markup"]["inline_keyboard"]), 9)
        self.assertEqual(link.api_calls, [])

    def test_sends_that_fail(self) -> None:
        """Refused for certain, it comes later; of unknown fate, it is not sent again."""
        rig = self.begin()
        for error, later in (
            (Refusal("rate-limited", "slowly"), 1),
            (Refusal("api", "Bad Request", errorCode=400), 2),
            (Refusal("commit-unknown", "who knows"), 2),
            (LinkLost("gone"), 2),
        ):
            rig.link.api_results = [error]
            rig.message("/settings")
            self.assertEqual(len(rig.link.submitted), later, error)

    def test_other_data(self) -> None:
        """What menus never wrote is expired; older menus' buttons lead to the main menu."""
        self.begin()
        bad = (
            "menu:nowhere", "model:scope:all", "model:page:x", "thinking:up",
            "queue:pick", "queue:prio-set:1:top", "queue:skip-set:1:maybe", "queue:x:1",
            "session:drop:1", "newsession:x", "compact:x", "compact:confirm", "model:<b>",
        )  # fmt: skip
        for data in bad:
            self.press(data)
        self.assertEqual(self.toasts(), [EXPIRED] * len(bad))
        self.assertEqual(self.calls("editMessageText"), [])
        for data in ("status:model", "status:queue", "status:x"):
            self.press(data)
        self.assertEqual(len(self.calls("editMessageText")), 3)
        self.assertEqual(self.toasts()[len(bad) :], [""] * 3)


class Edits(MenuCase):
    """How a pressed message changes."""

    def answer(self, error: Exception | Any) -> int:
        """Press with this answer to the edit; returns how many new messages came."""
        self.rig.link.api_results = [True, error]
        before = len(self.calls("sendMessage"))
        self.press("settings:list")
        return len(self.calls("sendMessage")) - before

    def test_answers(self) -> None:
        """Unmodified is success; a message that is gone, or not ours any more, is sent anew."""
        rig = self.begin()
        same = Refusal("api", "Bad Request: message is not modified", errorCode=400)
        self.assertEqual(self.answer(same), 0)
        gone = "Bad Request: message to edit not found"
        self.assertEqual(self.answer(Refusal("api", gone, errorCode=400, description=gone)), 1)
        self.assertEqual(self.shown()["message_thread_id"], THREAD)
        self.assertEqual(self.answer(Refusal("not-allowed", "not this worker's")), 1)
        self.assertEqual(self.answer(Refusal("api", "Bad Request: odd", errorCode=400)), 0)
        self.assertEqual(self.answer(LinkLost("gone")), 0)
        self.assertEqual(rig.states(), {"settled": 5})

    def test_a_failed_answer(self) -> None:
        """An answer that Telegram refuses keeps the message from nothing."""
        rig = self.begin()
        rig.link.api_results = [Refusal("api", "query is too old", errorCode=400)]
        self.press("settings:list")
        self.assertEqual(self.shown()["text"], "⚙️ Settings:")

    def test_put_off(self) -> None:
        """An edit that has to wait is made when it may be, with what was asked for last."""
        rig = self.begin()
        wait = Refusal("api", "Too Many Requests", errorCode=429, retryAfter=3)
        rig.link.api_results = [True, wait]
        self.press("settings:list")
        rig.run(1)
        self.assertEqual(len(self.calls("editMessageText")), 1)
        self.press("settings:open:proactive")
        rig.run(5)
        edits = [edit["text"][:4] for edit in self.calls("editMessageText")]
        self.assertEqual(edits, ["⚙️ S", "📌 Pr"])
        rig.link.api_results = [True, *[Refusal("rate-limited", "no", retryAfter=25)] * 9]
        self.press("settings:list")
        rig.run(200)
        self.assertEqual(len(self.calls("editMessageText")), 2 + 4)

    def test_slow_telegram(self) -> None:
        """An edit that hangs holds up neither the next press nor an abort."""
        rig = self.begin()
        hanging: Deferred[Any] = Deferred()
        rig.link.api_results = [True, hanging]
        self.press("settings:list")
        rig.message("/abort")
        self.assertEqual(rig.link.texts, ["No active turn."])
        self.press("queue:refresh:0")
        self.assertIn("Queue is empty", self.shown()["text"])


class Models(MenuCase):
    """Choosing a model by buttons."""

    def test_pick(self) -> None:
        """Pi uses it, and the menu says so."""
        rig = self.begin()
        rig.message("/model")
        self.assertEqual(self.labels()[1], "🟢 scripted/scripted")
        self.tap("other<b>")
        self.assertEqual(self.shown()["text"], "🤖 Model:\nscripted/other<b>")
        self.tap("☑️ Activate")
        self.assertEqual(rig.host.commands[-1][1], {"provider": "scripted", "modelId": "other<b>"})
        self.assertEqual(self.toasts()[-1], "Model: other<b>")
        self.assertIn("🟢 Active", self.labels())
        self.tap("⬆️ Back")
        self.assertEqual(self.labels()[1], "🟢 scripted/other<b>")

    def test_gone(self) -> None:
        """A model that is not there any more is told of, and the list is shown as it is now."""
        rig = self.begin()
        rig.message("/model")
        data = self.button("other<b>")
        rig.host.results["get_available_models"] = {"models": [{"provider": "new", "id": "first"}]}
        for verb in ("open", "pick"):
            self.press(data.replace("open", verb))
            self.assertEqual(self.toasts()[-1], model.GONE)
            self.assertEqual(self.labels(), ["⬆️ Main menu", "new/first"])
        self.assertNotIn("set_model", [name for name, _ in rig.host.commands])

    def test_refused(self) -> None:
        """A model that Pi refuses is not available."""
        rig = self.begin()
        rig.message("/model")
        self.tap("elsewhere/scripted", "Activate")
        self.assertEqual(self.toasts()[-1], model.NOT_AVAILABLE)
        self.assertEqual(self.labels()[1], "🟢 scripted/scripted")
        rig.host.results["get_available_models"] = PiRefused("no")
        self.press("model:page:0")
        rig.run(6)
        self.press("model:page:0")
        self.assertEqual(self.toasts()[-1], "Telegram control action failed: no")

    def test_while_pi_works(self) -> None:
        """It is used from Pi's next step on; while Pi compacts it has to wait."""
        rig = self.begin()
        rig.message("/model")
        self.tap("other<b>")
        data = self.button("Activate")
        rig.message("[[gate a]]")
        self.press(data)
        self.assertIn("Pi goes on with it after the current step.", self.toasts()[-1])
        self.assertIn("set_model", [name for name, _ in rig.host.commands])
        rig.host.open_gate("a")
        rig.run()
        self.assertIn("After the gate a.", rig.link.texts)
        count = len(rig.host.commands)
        rig.host._change(isCompacting=True)
        self.press(data)
        self.assertEqual(self.toasts()[-1], model.COMPACTING)
        names = [name for name, _ in rig.host.commands[count:]]
        self.assertNotIn("set_model", names)

    def test_pages(self) -> None:
        """Pages turn, and one can be chosen."""
        rig = self.begin()
        rig.host.results["get_available_models"] = {
            "models": [{"provider": "p", "id": f"{number:02}"} for number in range(20)]
        }
        rig.message("/model")
        self.tap("➡️")
        self.assertIn("p/06", self.labels())
        self.tap("2/4", "4")
        self.assertIn("p/18", self.labels())


class Levels(MenuCase):
    """Thinking levels."""

    def test_set(self) -> None:
        """One that the model has is set; others are told."""
        self.begin()
        self.rig.message("/thinking")
        self.assertEqual(self.labels(), ["⬆️ Main menu", "🟢 off", "low", "high"])
        self.tap("high")
        self.assertEqual(self.toasts()[-1], "Thinking: high")
        self.assertIn("🟢 high", self.labels())
        for level in ("max", "nonsense", ""):
            self.press(f"thinking:set:{level}")
            self.assertEqual(self.toasts()[-1], thinking.INVALID)
        self.rig.host.results["get_available_thinking_levels"] = {"levels": ["off"]}
        self.press("thinking:set:high")
        self.assertEqual(self.toasts()[-1], thinking.NO_CONTROLS)


class Items(MenuCase):
    """The queue."""

    def fill(self) -> None:
        """One runs, three wait."""
        rig = self.begin()
        rig.message("[[gate a]]", 1)
        for number, text in enumerate(("first", "second", "third"), 2):
            rig.message(text, number)
        rig.message("/queue", 9)

    def test_order(self) -> None:
        """What is moved and skipped decides what Pi gets, in which order."""
        self.fill()
        self.assertEqual(self.labels()[1:4], ["1. first", "2. second", "3. third"])
        self.tap("3. third")
        self.assertIn("third", self.shown()["text"])
        self.tap("Priority")
        self.assertEqual(self.toasts()[-1], queue.PRIORITIZED)
        # It goes to the running Pi as a steering message, so it is not in our queue any more.
        self.press("queue:refresh:0")
        self.assertIn("(steering):\n1. third", self.shown()["text"])
        self.tap("1. first", "Skip")
        self.assertEqual(self.toasts()[-1], queue.SKIPPED)
        self.assertIn("🔴 Skip", self.labels())
        self.tap("⬆️ Back")
        self.assertEqual(self.labels()[1:3], ["1. 🔴 first", "2. second"])
        self.rig.host.open_gate("a")
        self.rig.run()
        self.assertEqual(self.rig.prompts(), ["[[gate a]]", "third", "second"])

    def test_keep(self) -> None:
        """Keep takes Skip back."""
        self.fill()
        self.tap("1. first", "Skip", "Keep")
        self.assertEqual(self.toasts()[-1], queue.KEPT)
        self.rig.host.open_gate("a")
        self.rig.run()
        self.assertEqual(self.rig.prompts(), ["[[gate a]]", "first", "second", "third"])

    def test_gone(self) -> None:
        """An item that Pi has by now is told of, and the queue is shown as it is."""
        self.fill()
        self.tap("1. first")
        data = [self.button(label) for label in ("Priority", "Normal", "Keep", "Skip")]
        self.rig.host.open_gate("a")
        self.rig.run()
        for each in (*data, "queue:pick:1", "queue:pick:999"):
            self.press(each)
            self.assertEqual(self.toasts()[-1], queue.GONE)
            self.assertEqual(self.shown()["text"], queue.EMPTY[0])


class Options(MenuCase):
    """Settings."""

    def test_set(self) -> None:
        """The leader writes it, and the menu shows it."""
        rig = self.begin()
        rig.message("/settings")
        self.tap("📌 Proactive push", "Off")
        self.assertEqual(self.toasts()[-1], "Proactive push disabled")
        self.assertEqual(rig.link.settings, {"proactivePush": False})
        self.assertIn("🟡 Off", self.labels())
        self.tap("⬆️ Back", "👄 Voice reply", "mirror")
        self.assertEqual(rig.link.settings["voice"], {"replyMode": "mirror"})
        self.tap("⬆️ Back")
        self.assertIn("👄 Voice reply: mirror", self.labels())

    def test_not_set(self) -> None:
        """What the leader refuses, and what there is not, is told."""
        rig = self.begin()
        rig.link.setting_refusals = [Refusal("unavailable", "telegram.json cannot be written")]
        self.press("settings:set:proactive:off")
        self.assertEqual(self.toasts()[-1], "telegram.json cannot be written")
        for data in ("settings:open:x", "settings:set:proactive:x", "settings:drop:proactive"):
            self.press(data)
            self.assertEqual(self.toasts()[-1], settings.UNKNOWN)
        self.assertEqual(rig.link.settings, {})


class SessionMenus(MenuCase):
    """Pi's sessions of this directory."""

    def fill(self) -> None:
        """Two of this directory, one of another, one that is damaged."""
        self.begin()
        self.session("old", "the old talk", 90_000)
        self.session("new", "the new talk", 7_200)
        self.session("other", "elsewhere", 0, self.rig.base)
        path = self.session("bad", "x")
        path.write_bytes(b"no session\n")

    def test_list(self) -> None:
        """The newest first, by their first words and age."""
        self.fill()
        self.rig.message("/sessions")
        self.assertEqual(
            self.labels(),
            ["⬆️ Main menu", "the new talk · 2 h", "the old talk · 1 d", "🆕 New session"],
        )

    def test_switch(self) -> None:
        """After a question Pi goes there, once, whatever crashes."""
        self.fill()
        path = self.session("old", "the old talk", 90_000)
        self.rig.message("/sessions")
        self.tap("the old talk")
        self.assertIn("Switch to this session?", self.shown()["text"])
        self.tap("✅ Yes, switch")
        self.assertEqual(self.toasts()[-1], sessions.SWITCHED)
        self.assertEqual(self.rig.host.commands[-1], ("switch_session", {"sessionPath": str(path)}))
        self.assertIn("🟢 the old talk · 1 d", self.labels())
        self.tap("the old talk")
        self.assertEqual(self.labels(), ["⬆️ Back"])
        self.press(f"session:switch:{sessions.key_of('--project--/old.jsonl')}:0")
        self.assertEqual(self.toasts()[-1], sessions.CURRENT)

    def test_prompts_meanwhile(self) -> None:
        """What comes while Pi changes its session, of whatever lane, is handed when it is there."""
        self.fill()
        rig = self.rig
        real = rig.host.command
        self.session("old", "the old talk", 90_000)
        switch = f"session:switch:{sessions.key_of('--project--/old.jsonl')}:0"
        presses = (("switch_session", switch), ("new_session", None))
        for number, (name, data) in enumerate(presses):
            changing: Deferred[None] = Deferred()

            async def later(
                name: str, arguments: dict[str, Any], changing: Deferred[None] = changing
            ) -> Any:
                if name.endswith("_session"):
                    await changing
                return await real(name, **arguments)

            def command(name: str, /, later: Any = later, **arguments: Any) -> Any:
                return Deferred.fromCoroutine(later(name, arguments))

            rig.host.command = command
            rig.message("/sessions")
            before = rig.prompts()
            self.press(data or self.button("🆕 New session"))
            rig.message(f"comes meanwhile {number}")
            rig.parts.port.steer(f"s-{number}", f"sooner {number}")
            rig.run(3)
            self.assertEqual(rig.prompts(), before, name)
            changing.callback(None)
            rig.run(1)
            said = [f"sooner {number}", f"comes meanwhile {number}"]
            self.assertEqual(rig.prompts(), [*before, *said], name)

    def test_pages(self) -> None:
        """Words are read for the page that is shown, whichever it is."""
        self.begin()
        for number in range(15):
            self.session(f"s{number:02}", f"talk {number}", 60.0 * number)
        self.rig.message("/sessions")
        self.assertIn("talk 0 · 1 min", self.labels())
        self.tap("➡️")
        self.assertIn("talk 6 · 6 min", self.labels())
        self.press("session:page:99")
        self.assertEqual(self.labels()[4:], ["talk 12 · 12 min", "talk 13 · 13 min",
                                             "talk 14 · 14 min", "🆕 New session"])  # fmt: skip

    def test_busy(self) -> None:
        """While Pi works nothing is switched."""
        self.fill()
        self.rig.message("/sessions")
        self.tap("the old talk")
        self.rig.message("[[gate a]]")
        self.tap("✅ Yes, switch")
        self.assertEqual(self.toasts()[-1], sessions.BUSY)
        self.assertNotIn("switch_session", [name for name, _ in self.rig.host.commands])

    def test_gone(self) -> None:
        """A file that went away meanwhile is told of."""
        self.fill()
        self.rig.message("/sessions")
        self.tap("the old talk")
        (self.rig.paths.pi_sessions / "--project--" / "old.jsonl").unlink()
        self.tap("✅ Yes, switch")
        self.assertEqual(self.toasts()[-1], sessions.GONE)
        self.assertEqual(len(self.labels()), 3)

    def test_new(self) -> None:
        """At once while there is nothing to do, after a question else; what waits goes along."""
        rig = self.begin()
        rig.message("/sessions")
        first = self.button("🆕 New session")
        self.press(first)
        self.assertEqual(self.shown()["text"], sessions.NEW)
        self.press(first)
        self.assertEqual(self.toasts()[-1], EXPIRED)
        rig.message("[[gate a]]")
        rig.message("held")
        rig.message("/sessions")
        self.tap("🆕 New session")
        self.assertIn("1 prompt that waits", self.shown()["text"])
        yes = self.button("🆕 Yes")
        self.tap("❌ No")
        self.assertEqual(self.shown()["text"], sessions.KEPT)
        self.press(yes)
        rig.run(1)
        self.press(yes)
        self.assertEqual(self.toasts()[-1], EXPIRED)
        self.assertEqual(self.shown()["text"], sessions.NEW)
        names = [name for name, _ in rig.host.commands if name == "new_session"]
        self.assertEqual(len(names), 2)
        self.assertEqual(rig.prompts(), ["[[gate a]]", "held"])
        self.assertIn("You said: held", rig.link.texts)
        self.assertEqual(rig.host.state["sessionId"], "fake-3")


class Compacting(MenuCase):
    """Compacting by buttons."""

    def test_confirmed(self) -> None:
        """It begins, and its end is told for good."""
        rig = self.begin()
        rig.message("/compact keep names")
        self.assertIn("keep names", self.shown()["text"])
        self.tap("🗜 Yes, compact")
        self.assertEqual(self.shown()["text"], compact.STARTED)
        self.assertEqual(self.shown()["reply_markup"], {"inline_keyboard": []})
        self.assertEqual(rig.host.commands[-1], ("compact", {"customInstructions": "keep names"}))
        self.assertEqual(rig.link.texts, [compact.COMPLETED])

    def test_pressed_twice(self) -> None:
        """The second press finds it answered, during the compaction and after it."""
        rig = self.begin()
        hanging: Deferred[Any] = Deferred()
        real, begun = rig.host.command, []

        def command(name: str, /, **arguments: Any) -> Any:
            if name != "compact":
                return real(name, **arguments)
            begun.append(arguments)
            return hanging

        rig.host.command = command
        rig.message("/compact")
        data = self.button("Yes")
        rig.parts.report.ready = False
        self.press(data)
        self.press(data)
        rig.parts.report.ready = True
        rig.run()
        self.assertEqual(sorted(self.toasts()), ["", EXPIRED])
        hanging.callback({})
        self.press(data)
        self.assertEqual((self.toasts()[-1], len(begun)), (EXPIRED, 1))
        self.assertEqual(rig.link.texts, [compact.COMPLETED])

    def test_not_confirmed(self) -> None:
        """Nothing happens."""
        rig = self.begin()
        rig.message("/compact")
        self.tap("❌ No")
        self.assertEqual(self.shown()["text"], compact.CANCELLED)
        self.assertNotIn("compact", [name for name, _ in rig.host.commands])

    def test_an_older_question(self) -> None:
        """Its instructions are not known any more, so it does nothing."""
        rig = self.begin()
        rig.message("/compact one")
        data = self.button("Yes")
        rig.message("/compact two")
        self.press(data)
        self.assertEqual(self.toasts(), [EXPIRED])
        self.assertNotIn("compact", [name for name, _ in rig.host.commands])

    def test_busy_by_now(self) -> None:
        """Work that came between question and answer goes first."""
        rig = self.begin()
        rig.message("/compact")
        rig.message("[[gate a]]")
        self.tap("Yes")
        self.assertEqual(self.toasts(), [compact.BUSY])
        self.assertNotIn("compact", [name for name, _ in rig.host.commands])
        rig.host.open_gate("a")
        rig.run()
        self.tap("Yes")
        self.assertEqual(rig.link.texts[-1], compact.COMPLETED)

    def test_ends(self) -> None:
        """Failed and cancelled are told in words."""
        rig = self.begin()
        for error, told in (
            ("Nothing to compact (session too small)", "Compaction failed: Nothing to compact"),
            ("Compaction cancelled", compact.CANCELLED),
        ):
            rig.host.results["compact"] = PiRefused(error)
            rig.message("/compact")
            self.tap("Yes")
            self.assertTrue(rig.link.texts[-1].startswith(told), rig.link.texts)

    def test_other_menus_meanwhile(self) -> None:
        """While it lasts other buttons work, and a crash leaves no end untold."""
        rig = self.begin()
        hanging: Deferred[Any] = Deferred()
        self.addCleanup(lambda: hanging)  # a killed process runs nothing to its end
        real = rig.host.command

        def command(name: str, /, **arguments: Any) -> Any:
            return hanging if name == "compact" else real(name, **arguments)

        rig.host.command = command
        rig.message("/compact")
        self.tap("Yes")
        self.press("settings:list")
        self.assertEqual(self.shown()["text"], "⚙️ Settings:")
        self.assertEqual(rig.states(), {"admitted": 1, "settled": 2})
        rig.crash()
        rig.start()
        rig.run(1)
        self.assertEqual(len(rig.link.texts), 1)
        self.assertIn("nobody can tell whether it was done", rig.link.texts[0])
        self.assertEqual(rig.states(), {"settled": 3})


class Crashes(MenuCase):
    """Menus outlive the process that showed them."""

    def test_after_a_restart(self) -> None:
        """Every button of before works in the next process."""
        rig = self.begin()
        rig.message("/model")
        self.tap("other<b>")
        data = self.button("Activate")
        rig.crash()
        rig.start()
        rig.host.results["get_available_models"] = {
            "models": [{"provider": "scripted", "id": "other<b>"}]
        }
        self.press(data)
        self.assertEqual(self.toasts(), ["Model: other<b>"])
        self.assertEqual(self.calls("editMessageText")[-1]["message_id"], MENU)

    def test_before_pi_is_up(self) -> None:
        """A press waits for a Pi that starts; one that never comes is told of."""
        rig = self.begin()
        rig.parts.report.ready = False
        self.press("model:page:0")
        self.assertEqual(self.calls("editMessageText"), [])
        rig.message("/status")
        self.assertIn("Status: starting", rig.link.texts[-1])
        rig.parts.report.ready = True
        rig.run(0.5)
        self.assertEqual(len(self.calls("editMessageText")), 1)
        rig.parts.report.ready = False
        self.press("thinking:set:low")
        rig.run(21)
        self.assertEqual(self.toasts()[-1], "Telegram control action failed: Pi is not ready yet")

    def test_done_once(self) -> None:
        """A new session that was begun before a crash is not begun again by the same press."""
        rig = self.begin()

        async def crashes(row: Any, answers: Any) -> None:
            raise RuntimeError("killed")

        rig.parts.orders._slow._commit = crashes
        self.press(f"newsession:open:{rig.parts.menus._book.current_key()}")
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.assertEqual(rig.states(), {"admitted": 1})
        self.assertEqual([n for n, _ in rig.host.commands if n == "new_session"], ["new_session"])
        rig.crash()
        rig.start()
        rig.run(1)
        self.assertEqual(rig.states(), {"settled": 1})
        self.assertNotIn("new_session", [name for name, _ in rig.host.commands])

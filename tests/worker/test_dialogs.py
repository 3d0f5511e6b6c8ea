"""Questions of Pi's extensions in the worker's Thread: each answered once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

import pitelegram
from pitelegram.bridge import dialogs as words
from pitelegram.bridge.dialogs import CANCEL_LABEL
from pitelegram.errors import LinkLost, NotLeader, Refusal
from pitelegram.testing.worker import CHAT, THREAD
from pitelegram.worker.asking import CLOSED, TABLE
from tests.worker.test_queue import RigCase

CANCELLED = {"cancelled": True}


class DialogCase(RigCase):
    """A worker in memory whose Pi asks."""

    def ask(self, ref: str = "d1", method: str = "input", **more: Any) -> None:
        """Pi asks."""
        options = {"options": ["red", "green"]} if method == "select" else {}
        self.rig.host.ask({"id": ref, "method": method, "title": "Which?", **options, **more})
        self.rig.run()

    def asked(self, **more: Any) -> int:
        """Start, let Pi ask; the message's id."""
        self.started()
        self.ask(**more)
        return self.message_ids()[-1]

    def calls(self, method: str) -> list[dict[str, Any]]:
        """Parameters of the calls of one method."""
        return [params for name, params, _ in self.rig.link.api_calls if name == method]

    def message_ids(self) -> list[int]:
        """Ids of the questions that are shown and open."""
        traces = self.rig.parts.dialogs._traces._traces
        return [trace.message_id for trace in traces if trace.state == "open"]

    def button(self, label: str, question: int = -1) -> str:
        """The data of a button of a question that was sent."""
        rows = self.calls("sendMessage")[question]["reply_markup"]["inline_keyboard"]
        return next(b["callback_data"] for row in rows for b in row if b["text"] == label)

    def reply(self, text: str | None, to: int, **fields: Any) -> None:
        """The operator replies."""
        self.rig.message(text, message_id=70, reply_to_message={"message_id": to}, **fields)

    def toast(self) -> str:
        """The last answer to a press."""
        return str(self.calls("answerCallbackQuery")[-1]["text"])

    def ended_as(self, text: str) -> None:
        """The question's message was edited to end with this text, and has no buttons."""
        params = self.calls("editMessageText")[-1]
        self.assertTrue(params["text"].endswith(text), params["text"])
        self.assertEqual(params["reply_markup"], {"inline_keyboard": []})

    @property
    def answers(self) -> list[tuple[str, dict[str, Any]]]:
        """What Pi was answered."""
        return self.rig.host.dialog_answers


class Answered(DialogCase):
    """From Telegram and otherwise."""

    def test_button(self) -> None:
        """The answer goes to Pi once, the message says which; the press is answered."""
        message_id = self.asked(method="select")
        sent = self.calls("sendMessage")[0]
        self.assertEqual((sent["chat_id"], sent["message_thread_id"]), (CHAT, THREAD))
        self.assertTrue(self.rig.parts.report.state()["waitingForInput"])
        self.rig.press(self.button("green"), message_id)
        self.assertEqual(self.answers, [("d1", {"value": "green"})])
        self.assertEqual(self.toast(), words.TAKEN)
        self.ended_as("✅ Answered: green")
        self.assertFalse(self.rig.parts.report.state()["waitingForInput"])
        self.rig.press(self.button("red"), message_id)
        self.assertEqual(len(self.answers), 1)
        self.assertEqual(self.toast(), words.LATE)

    def test_confirm(self) -> None:
        """No is an answer, Cancel is none."""
        message_id = self.asked(method="confirm")
        self.rig.press(self.button("No"), message_id)
        self.ask("d2", "confirm")
        self.rig.press(self.button(CANCEL_LABEL), self.message_ids()[0])
        self.assertEqual(self.answers, [("d1", {"confirmed": False}), ("d2", CANCELLED)])
        self.assertEqual(CANCEL_LABEL, "✖️ Cancel")
        self.ended_as(words.CANCELLED)

    def test_failing_toast_and_edit(self) -> None:
        """The press's answer and the edit do not depend on each other, nor Pi's answer on them."""
        message_id = self.asked(method="confirm")
        self.rig.link.api_results = [LinkLost("x"), LinkLost("y"), LinkLost("z")]
        self.rig.press(self.button("Yes"), message_id)
        self.assertEqual(self.answers, [("d1", {"confirmed": True})])
        self.rig.run(20)
        self.ended_as("✅ Answered: Yes")
        self.assertEqual(len(self.calls("answerCallbackQuery")), 1)

    def test_text(self) -> None:
        """Only a reply is the answer; the message does not repeat it."""
        message_id = self.asked()
        self.rig.message("a prompt")
        self.assertEqual(self.answers, [])
        self.assertEqual(self.rig.prompts(), ["a prompt"])
        self.reply("/etc/secret  ", message_id)
        self.assertEqual(self.answers, [("d1", {"value": "/etc/secret  "})])
        self.assertEqual(self.rig.prompts(), ["a prompt"])
        self.ended_as(f"\n\n{words.ANSWERED}")
        self.assertNotIn("secret", str(self.rig.link.api_calls) + str(self.rig.link.texts))

    def test_late_text_is_no_prompt(self) -> None:
        """What was meant for a dialog, a password perhaps, never goes to the model."""
        message_id = self.asked()
        self.reply("first", message_id)
        self.reply("second", message_id)
        self.assertEqual(self.answers, [("d1", {"value": "first"})])
        self.assertEqual((self.rig.prompts(), self.rig.link.texts), ([], [words.LATE_REPLY]))

    def test_commands_are_commands(self) -> None:
        """C{/abort} as a reply to an open question aborts; the question is cancelled."""
        message_id = self.asked()
        self.reply("/abort", message_id)
        self.assertEqual(self.answers, [("d1", CANCELLED)])
        self.ended_as(words.ABORTED)
        self.assertEqual(self.rig.link.texts, ["No active turn."])

    def test_cancelled_before_the_abort(self) -> None:
        """A prompt that Pi has not answered, since it waits for a dialog, holds no abort up."""
        self.asked()
        order: list[str] = []
        brake, host = self.rig.parts.brake, self.rig.host
        real = host.abort
        host.abort = lambda: order.append(f"abort after {len(self.answers)} answers") or real()
        self.rig.parts.queue.handed_in_flight = lambda: not self.answers  # type: ignore
        done = brake.abort()
        self.rig.run()
        self.successResultOf(done)
        self.assertEqual(order, ["abort after 1 answers"])

    def test_no_text(self) -> None:
        """A picture, with a caption or not, is no answer; the question stays open."""
        message_id = self.asked()
        self.reply(None, message_id, photo=[{"file_id": "x"}], caption="words")
        self.reply(None, message_id, photo=[{"file_id": "x"}])
        self.assertEqual(self.rig.link.texts, [words.TEXT_ONLY, words.TEXT_ONLY])
        self.assertEqual((self.answers, self.rig.prompts()), ([], []))

    def test_reply_to_buttons(self) -> None:
        """While it is open, a text is no answer to a choice; afterwards it is a prompt."""
        message_id = self.asked(method="select")
        self.reply("green", message_id)
        self.assertEqual(self.rig.link.texts, [words.USE_BUTTONS])
        self.rig.press(self.button("red"), message_id)
        self.reply("why?", message_id)
        self.assertEqual(self.answers, [("d1", {"value": "red"})])
        self.assertEqual(self.rig.prompts(), ["why?"])

    def test_a_hundred_options(self) -> None:
        """Pages turn; an option without a button is chosen by its number."""
        options = [f"option {n}" for n in range(100)]
        message_id = self.asked(method="select", options=options)
        self.rig.press(self.button("➡️ 2/8"), message_id)
        rows = self.calls("editMessageReplyMarkup")[-1]["reply_markup"]["inline_keyboard"]
        self.assertEqual(rows[0][0]["text"], "option 8")
        self.assertEqual(self.answers, [])
        self.reply("101", message_id)
        self.assertEqual(self.rig.link.texts, [words.USE_BUTTONS])
        self.reply("100", message_id)
        self.assertEqual(self.answers, [("d1", {"value": "option 99"})])
        self.ended_as("✅ Answered: option 99")

    def test_pages_under_a_rate_limit(self) -> None:
        """Few edits are allowed: the page asked for last comes, and is tried until it is there."""
        message_id = self.asked(method="select", options=[f"option {n}" for n in range(50)])
        limited = Refusal("rate-limited", "x", retryAfter=5)
        self.rig.link.api_results = [True, limited]
        for label in ("➡️ 2/7", "⬅️ 7/7", "➡️ 2/7", "⬅️ 7/7"):
            self.rig.press(self.button(label), message_id)
        self.rig.run(6)
        self.rig.run(6)
        rows = self.calls("editMessageReplyMarkup")[-1]["reply_markup"]["inline_keyboard"]
        self.assertEqual(rows[0][0]["text"], "option 48")
        self.rig.link.api_results = [True, limited]
        self.rig.press(self.button("➡️ 2/7"), message_id)
        before = len(self.calls("editMessageReplyMarkup"))
        self.rig.press(self.button("option 1"), message_id)
        self.rig.run(20)
        self.assertEqual(len(self.calls("editMessageReplyMarkup")), before)

    def test_by_control(self) -> None:
        """The first answer wins, wherever it comes from."""
        message_id = self.asked()
        done = self.rig.parts.port.answer("r", "d1", {"value": "hidden"})
        self.assertEqual(self.successResultOf(done), {})
        self.ended_as(f"\n\n{words.ANSWERED}")
        self.reply("late", message_id)
        self.assertEqual(self.answers, [("d1", {"value": "hidden"})])
        self.ask("d2", "select")
        port = self.rig.parts.port
        wrong = self.failureResultOf(port.answer("t", "d2", {"value": "blue"}), Refusal).value
        self.assertEqual(wrong.code, "invalid-command")
        self.successResultOf(port.answer("s", "d2", {"value": "red"}))
        self.ended_as("✅ Answered: red")

    def test_forged_presses(self) -> None:
        """Another message's button, another option, another kind: nothing is answered."""
        message_id = self.asked(method="select")
        self.rig.press(self.button("red"), message_id + 7)
        self.assertEqual(self.toast(), words.LATE)
        key = self.button("red").rsplit(":", 1)[0]
        for forged in (f"{key}:o2", f"{key}:y"):
            self.rig.press(forged, message_id)
        self.rig.press("dlg:nonsense", message_id)
        self.assertEqual(self.answers, [])

    def test_replayed_press(self) -> None:
        """An admitted press that is done again by the next process answers no dialog of its Pi."""
        message_id = self.asked(method="select")
        self.rig.parts.orders._working = self.rig.clock  # type: ignore[assignment]
        data = self.button("red")
        self.rig.press(data, message_id)
        self.rig.crash()
        self.rig.start()
        self.ask(method="select")
        self.assertEqual(self.answers, [])
        self.assertEqual(self.rig.states(), {"settled": 1})


class Limits(DialogCase):
    """How many, how long, how large."""

    def test_two_minutes(self) -> None:
        """Announced and kept."""
        self.asked()
        self.assertIn("⏳ 2 minutes", self.calls("sendMessage")[0]["text"])
        self.rig.run(119)
        self.assertEqual(self.answers, [])
        self.rig.run(2)
        self.assertEqual(self.answers, [("d1", CANCELLED)])
        self.ended_as(words.EXPIRED)

    def test_own_time_out(self) -> None:
        """Pi has answered itself then; a late press changes nothing."""
        message_id = self.asked(method="confirm", timeout=5000)
        self.assertIn("⏳ 5 s", self.calls("sendMessage")[0]["text"])
        self.rig.run(6)
        self.ended_as(words.EXPIRED)
        self.rig.press(self.button("Yes"), message_id)
        self.assertEqual((self.answers, self.toast()), ([], words.LATE))

    def test_forty_at_once(self) -> None:
        """Eight are shown, the others cancelled at once; one line tells how many."""
        self.started()
        for number in range(40):
            self.rig.host.ask({"id": f"d{number}", "method": "confirm", "title": f"Q{number}"})
        self.assertEqual(self.answers, [(f"d{n}", CANCELLED) for n in range(8, 40)])
        self.rig.run(2)
        self.assertEqual(len(self.calls("sendMessage")), 8)
        line = "⚠️ Pi asked more than 8 questions at once; 32 were cancelled."
        self.assertEqual(self.rig.link.texts, [line])
        self.ask("d40", "confirm")
        self.rig.run(40)
        self.assertEqual(self.rig.link.texts[1:], [line.replace("32 were", "one was")])

    def test_malformed(self) -> None:
        """Cancelled with a line; the next one is fine."""
        self.started()
        self.ask(method="select", options=[1])
        self.ask(method="select", options=[])
        self.rig.host.ask({"method": "input"})
        self.rig.run(2)
        self.assertEqual(self.answers, [("d1", CANCELLED)] * 2)
        self.assertEqual(
            self.rig.link.texts, ["⚠️ Pi asked something that cannot be shown; 3 were cancelled."]
        )
        self.assertEqual(self.calls("sendMessage"), [])

    def test_ten_thousand_characters(self) -> None:
        """What is too long is attached below the question, and no file is left behind."""
        message_id = self.asked(method="editor", prefill="😀x" * 5000)
        (document,) = self.calls("sendDocument")
        self.assertEqual(document["reply_parameters"]["message_id"], message_id)
        self.assertEqual(self.rig.link.uploaded, ["😀x" * 5000])
        self.assertEqual([p for p in self.rig.paths.uploads.rglob("*") if p.is_file()], [])

    def test_attachment_refused(self) -> None:
        """A rate limit is waited for; where no file can go, the text comes as messages."""
        self.started()
        limited = Refusal("rate-limited", "x", retryAfter=2)
        self.rig.link.api_results = [{"message_id": 5}, limited, Refusal("too-large", "no")]
        self.ask(method="confirm", message="word " * 2000)
        self.assertEqual(self.rig.link.texts, [])
        self.rig.run(3)
        text = "".join(self.rig.link.texts)
        self.assertEqual(text.count("word"), 2000)

    def test_decoration_is_dropped(self) -> None:
        """Status lines, titles and widgets are for terminals."""
        self.started()
        for method in ("setStatus", "setTitle", "setWidget", "set_editor_text", "unheard of"):
            self.ask(method=method, text="x", statusText="x", widgetLines=["x"])
        self.rig.run(2)
        self.assertEqual((self.rig.link.api_calls, self.rig.link.texts), ([], []))
        self.assertEqual(self.answers, [])

    def test_notices(self) -> None:
        """They are durable lines, and a flood of them is one."""
        self.started()
        self.rig.link.texts.clear()
        for number in range(50):
            self.rig.host.ask({"id": f"n{number}", "method": "notify", "message": f"m{number}"})
        self.rig.run(2)
        self.assertEqual(self.rig.link.texts[:2], ["ℹ️ m0", "ℹ️ m1"])
        self.assertEqual(
            self.rig.link.texts[20:],
            ["⚠️ Pi's extensions said a lot at once; 30 were left out."],
        )


class Sending(DialogCase):
    """When the question cannot be brought."""

    def test_nowhere_to_ask(self) -> None:
        """Without a leader, or without a Thread, it is cancelled at once; the line comes later."""
        self.rig.start(connect=False)
        self.ask()
        self.assertEqual(self.answers, [("d1", CANCELLED)])
        self.rig.connect()
        self.rig.parts.registration.replaced(None)
        self.ask("d2")
        self.assertEqual(self.answers[1:], [("d2", CANCELLED)])
        self.rig.run(2)
        self.assertEqual(
            self.rig.link.texts,
            ["⚠️ Pi asked while its question could not be brought here; 2 were cancelled."],
        )

    def test_certainly_not_sent(self) -> None:
        """It is cancelled at once, with a line."""
        for error in (
            Refusal("unavailable", "x"),
            Refusal("api", "no", errorCode=403),
            NotLeader(),
        ):
            self.started()
            self.rig.link.api_results = [error]
            self.ask()
            self.assertEqual(self.answers, [("d1", CANCELLED)])
            self.rig.run(2)
            self.assertEqual(len(self.rig.link.texts), 1)
            self.rig.crash()

    def test_rate_limit(self) -> None:
        """It is sent when Telegram allows it, while its time lasts."""
        self.started()
        limited = Refusal("rate-limited", "x", retryAfter=10)
        self.rig.link.api_results = [limited, Refusal("api", "x", errorCode=429, retryAfter=3)]
        self.ask()
        self.rig.run(9)
        self.assertEqual(len(self.calls("sendMessage")), 1)
        self.rig.run(5)
        self.assertEqual(len(self.calls("sendMessage")), 3)
        self.assertEqual(len(self.message_ids()), 1)
        self.rig.link.api_results = [Refusal("rate-limited", "x", retryAfter=500)]
        self.ask("d2")
        self.rig.run(600)
        self.assertEqual(self.answers, [("d1", CANCELLED), ("d2", CANCELLED)])
        self.assertEqual(len(self.calls("sendMessage")), 4)

    def test_unknown_fate(self) -> None:
        """It is not sent twice, said so, and can be answered if it did arrive."""
        for number, error in enumerate((Refusal("commit-unknown", "x"), LinkLost("x"))):
            self.started()
            self.rig.link.api_results = [error]
            self.ask(method="confirm")
            self.assertIn("nobody can tell", self.rig.link.texts[0])
            self.rig.press(self.button("Yes"), 4711 + number)
            self.assertEqual(self.answers, [("d1", {"confirmed": True})])
            self.ended_as("✅ Answered: Yes")
            self.assertEqual(self.calls("editMessageText")[-1]["message_id"], 4711 + number)
            self.assertEqual(len(self.calls("sendMessage")), 1)
            self.rig.crash()

    def test_unknown_fate_of_a_text(self) -> None:
        """A reply to it carries its buttons, which tell which question it is."""
        self.started()
        self.rig.link.api_results = [LinkLost("x")]
        self.ask()
        markup = self.calls("sendMessage")[0]["reply_markup"]
        replied = {"message_id": 4711, "reply_markup": markup}
        self.rig.message("mine", message_id=71, reply_to_message=replied)
        self.assertEqual(self.answers, [("d1", {"value": "mine"})])

    def test_unknown_fate_and_nobody_answers(self) -> None:
        """It is cancelled when its time is over."""
        self.started()
        self.rig.link.api_results = [LinkLost("x")]
        self.ask()
        self.rig.run(121)
        self.assertEqual(self.answers, [("d1", CANCELLED)])

    def test_over_before_it_was_there(self) -> None:
        """A message that appears too late is closed at once."""
        self.started()
        slow: Deferred[Any] = Deferred()
        self.rig.link.api_results = [slow]
        self.ask(timeout=1000)
        self.rig.run(3)
        slow.callback({"message_id": 5})
        self.ended_as(words.EXPIRED)
        self.assertIn("could not be brought here", self.rig.link.texts[0])
        self.assertEqual(self.answers, [])

    def test_pressed_before_the_answer_came(self) -> None:
        """A quick press counts, and the late answer of Telegram opens nothing again."""
        self.started()
        slow: Deferred[Any] = Deferred()
        self.rig.link.api_results = [slow]
        self.ask(method="confirm")
        self.rig.press(self.button("Yes"), 5)
        self.assertEqual(self.answers, [("d1", {"confirmed": True})])
        slow.callback({"message_id": 5})
        self.ended_as("✅ Answered: Yes")
        self.assertEqual(len(self.calls("editMessageText")), 1)
        self.assertEqual(self.message_ids(), [])

    def test_another_thread(self) -> None:
        """An open question is asked again where the worker is now, and the old message closed."""
        old = self.asked(method="confirm")
        place = {"chatId": CHAT, "threadId": THREAD + 1}
        self.rig.parts.follower.replace_target(place, None, "lost")
        self.rig.run()
        self.assertEqual(self.calls("sendMessage")[1]["message_thread_id"], THREAD + 1)
        self.ended_as(words.MOVED)
        self.rig.press(self.button("No"), old)
        self.assertEqual((self.answers, self.toast()), ([], words.LATE))
        self.rig.press(self.button("No"), self.message_ids()[0])
        self.assertEqual(self.answers, [("d1", {"confirmed": False})])

    def test_no_threads(self) -> None:
        """In a chat without Threads the question stands in the chat itself."""
        self.started()
        self.rig.parts.registration.replaced({"chatId": CHAT})
        self.ask()
        self.assertEqual(self.rig.link.api_calls[-1][2], {"aggregate": True})
        self.assertNotIn("message_thread_id", self.calls("sendMessage")[0])


class Ends(DialogCase):
    """Pi or the worker ends while a question is open."""

    def test_pi_ends(self) -> None:
        """The message says so, and nothing is sent to a Pi that is gone."""
        message_id = self.asked(method="confirm")
        link = self.rig.link
        self.rig.host.die()
        self.rig.run(5)
        edits = [params for name, params, _ in link.api_calls if name == "editMessageText"]
        self.assertEqual(edits[0]["message_id"], message_id)
        self.assertTrue(edits[0]["text"].endswith(words.PI_ENDED))
        self.assertEqual(self.answers, [])

    def test_worker_stops(self) -> None:
        """Pi's end closes it, before the goodbye."""
        self.asked(method="confirm")
        link = self.rig.link
        self.rig.parts.follower.shutdown("abort", 5000)
        self.rig.run(8)
        names = [name for name, *_ in link.api_calls]
        self.assertEqual(names.count("editMessageText"), 1)
        self.assertEqual(self.rig.exits, [0])

    def test_worker_crashes(self) -> None:
        """The next process closes it; presses and replies of before change nothing."""
        message_id = self.asked(method="confirm")
        data = self.button("Yes")
        self.rig.crash()
        self.rig.start()
        self.ended_as(words.WORKER_ENDED)
        self.assertEqual(self.calls("editMessageText")[0]["message_id"], message_id)
        self.ask(method="confirm")
        self.rig.press(data, message_id)
        self.assertEqual((self.answers, self.toast()), ([], words.LATE))

    def test_another_pi(self) -> None:
        """A button is of one Pi: the same id of another one has another key."""
        self.asked(method="confirm")
        data = self.button("Yes")
        self.rig.crash()
        host = type(self.rig.host)(self.rig.clock, str(self.rig.base / "session.jsonl"))
        host.birth = "78:other:1"
        self.rig.start(host=host)
        self.ask(method="confirm")
        self.rig.press(data, self.message_ids()[-1])
        self.assertEqual((self.answers, self.toast()), ([], words.LATE))

    def test_reply_after_a_crash(self) -> None:
        """A text for a dialog of before is no prompt."""
        message_id = self.asked()
        self.rig.crash()
        self.rig.start()
        self.reply("password", message_id)
        self.assertEqual((self.answers, self.rig.prompts()), ([], []))
        self.assertIn(words.LATE_REPLY, self.rig.link.texts)

    def test_no_leader_when_it_ends(self) -> None:
        """The message is closed as soon as there is a leader."""
        self.asked()
        self.rig.service._bus.lose()  # type: ignore[union-attr]
        self.rig.run(130)
        self.assertEqual(self.answers, [("d1", CANCELLED)])
        self.rig.connect()
        self.rig.run()
        self.ended_as(words.EXPIRED)

    def test_edit_that_fails(self) -> None:
        """It is tried again while it may help; a message that is gone counts as closed."""
        message_id = self.asked(method="confirm")
        self.rig.link.api_results = [
            Refusal("rate-limited", "x", retryAfter=7),
            True,
            Refusal("unavailable", "x"),
            Refusal("api", "message to edit not found", errorCode=400),
        ]
        self.rig.press(self.button("Yes"), message_id)
        self.rig.run(60)
        self.assertEqual(len(self.calls("editMessageText")), 3)
        self.assertTrue(self.rig.parts.dialogs.tidy())

    def test_what_is_remembered_is_bounded(self) -> None:
        """Many dialogs leave little behind, and no answer."""
        message_id = self.asked()
        self.reply("secret", message_id)
        for number in range(100):
            self.ask(f"m{number}")
            self.reply("secret", self.message_ids()[-1])
        stored = self.rig.inbox.get_meta("dialogs") or ""
        self.assertLess(len(stored), 8000)
        self.assertNotIn("secret", stored)


class Machines(SynchronousTestCase):
    """The table."""

    def test_nothing_leads_away_from_the_end(self) -> None:
        """A dialog is over once."""
        self.assertEqual([start for start, _ in TABLE if start == CLOSED], [])

    def test_page(self) -> None:
        """The page has the same table."""
        page = (Path(pitelegram.__file__).parent.parent / "docs/machines/dialog.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE)
        self.assertEqual({(start, event): end for start, event, end in rows}, dict(TABLE))

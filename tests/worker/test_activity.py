"""What is shown of a run beside its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.activity.lines import INTERRUPTED
from pitelegram.bridge.activity.thoughts import MOST_FRAMES
from pitelegram.errors import LinkLost, Refusal
from pitelegram.pi.observing import CompactionStep, Retry
from pitelegram.testing.leaderlink import shown
from pitelegram.testing.worker import CHAT, THREAD, WorkerRig
from pitelegram.worker.frames import FINAL_WAITS, MOST_WAITING

TOKEN = "123456789:" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345678"
ECHO = "[[tool bash 'echo hi']][[say Done]]"


def said(text: str, reason: str = "stop", **more: Any) -> dict[str, Any]:
    """A message of the model."""
    return {"text": text, "stopReason": reason, **more}


def result(text: str) -> dict[str, Any]:
    """A tool's result."""
    return {"content": [{"type": "text", "text": text}]}


class SlowOutgoing:
    """Stores what was composed once it may."""

    def __init__(self, outgoing: Any) -> None:
        self._outgoing = outgoing
        self._waiting: list[Deferred[None]] | None = []

    def __getattr__(self, name: str) -> Any:
        """Be like the real one in all else."""
        return getattr(self._outgoing, name)

    def composed(self, *arguments: Any) -> Deferred[None]:
        """See L{IOutgoing<pitelegram.store.worker_interfaces.IOutgoing>}."""
        if self._waiting is None:
            return self._outgoing.composed(*arguments)
        waiter: Deferred[None] = Deferred()
        self._waiting.append(waiter)
        return waiter.addCallback(lambda _: self._outgoing.composed(*arguments))

    def release(self) -> None:
        """From now on it may."""
        waiting, self._waiting = self._waiting or [], None
        for waiter in waiting:
            waiter.callback(None)


class ActivityCase(SynchronousTestCase):
    """One worker with a fake Pi."""

    def setUp(self) -> None:
        """A worker that shows everything."""
        self.rig = WorkerRig(Path(self.mktemp()))
        self.rig.start()
        self.host = self.rig.host

    def prefer(self, **settings: Any) -> None:
        """Change settings."""
        self.rig.parts.preferences.take({**self.rig.parts.preferences.all(), **settings})

    def calls(self, *methods: str) -> list[dict[str, Any]]:
        """The parameters of the calls of these methods so far."""
        wanted = methods or ("sendMessage", "editMessageText", "deleteMessage")
        return [params for method, params, _ in self.rig.link.api_calls if method in wanted]

    def begin(self, prompt: str = "[[gate a]]") -> None:
        """Let a prompt run up to its gate."""
        self.rig.message(prompt)
        self.rig.run()


class ModeTests(ActivityCase):
    """Which events are shown."""

    def shown(self, mode: str) -> tuple[bool, bool]:
        """Whether tools and thoughts are shown in a mode."""
        self.prefer(activity=mode)
        self.rig.message(
            "[[think 'Let me see what there is to be seen here, and then act.']]" + ECHO
        )
        self.rig.run(3)
        texts = [params.get("text", "") for params in self.calls("sendMessage")]
        return any("Bash" in text for text in texts), any("Let me see" in text for text in texts)

    def test_quiet(self) -> None:
        """Nothing is shown, and Pi's events are not even decoded."""
        self.assertEqual(self.shown("quiet"), (False, False))
        self.assertEqual(self.calls(), [])
        self.assertEqual(self.rig.link.texts, ["Done"])

    def test_thinking(self) -> None:
        """Only thoughts."""
        self.assertEqual(self.shown("thinking"), (False, True))

    def test_tools(self) -> None:
        """Only tools."""
        self.assertEqual(self.shown("tools"), (True, False))

    def test_verbose(self) -> None:
        """Both; and nothing is decoded between runs."""
        self.assertEqual(self.shown("verbose"), (True, True))
        self.assertEqual(self.host._wanted, frozenset())

    def test_mode_is_read_at_each_run(self) -> None:
        """A change counts from the next run on."""
        self.begin()
        self.prefer(activity="quiet")
        self.host.tell("tool_started", "c", "bash", {})
        self.host.open_gate("a")
        self.rig.run(2)
        self.assertEqual(len(self.calls("sendMessage")), 1)
        self.rig.message(ECHO, message_id=2)
        self.rig.run(3)
        self.assertEqual(len(self.calls("sendMessage")), 1)

    def test_unreadable_mode(self) -> None:
        """A mode that nobody can read is quiet, and the run goes on."""
        self.rig.parts.activity._mode = lambda: "loud"
        self.rig.message(ECHO)
        self.rig.run(3)
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)
        self.assertEqual(self.calls(), [])
        self.assertEqual(self.rig.link.texts, ["Done"])


class ToolMessageTests(ActivityCase):
    """Messages of tools."""

    def test_shape(self) -> None:
        """It is silent, in the Thread, without previews; the arguments come first, secrets never."""
        self.begin()
        self.host.tell("tool_started", "c", "web_fetch", {"url": f"https://a.example/{TOKEN}"})
        self.rig.run()
        (sent,) = self.calls()
        self.assertEqual((sent["chat_id"], sent["message_thread_id"]), (CHAT, THREAD))
        self.assertIs(sent["disable_notification"], True)
        self.assertEqual(sent["link_preview_options"], {"is_disabled": True})
        self.assertTrue(sent["text"].startswith("🔧 Web fetch\nhttps://\u200ba.example/"))
        self.assertNotIn(TOKEN[:20], sent["text"])

    def test_pace_and_latest_state(self) -> None:
        """However often a tool tells something, one edit in 1.2 s shows the latest of it."""
        self.begin()
        self.host.tell("tool_started", "c", "bash", {"command": "make"})
        for number in range(40):
            self.host.tell("tool_updated", "c", "bash", result(f"line {number} end"))
            self.rig.run(0.1)
        edits = self.calls("editMessageText")
        self.assertEqual(len(edits), 3)
        updates = int(edits[-1]["text"].partition("update ")[2].split()[0])
        self.assertGreater(updates, 34)
        self.assertIn(f"line {updates - 1}", edits[-1]["text"])

    def test_nothing_new_is_no_edit(self) -> None:
        """What would show the same is not sent."""
        self.begin()
        self.host.tell("tool_started", "c", "bash", {})
        self.rig.run(2)
        self.host.tell("tool_updated", "c", "bash", result(""))
        self.rig.run(2)
        self.assertEqual(self.calls("editMessageText"), [])
        self.host.tell("tool_ended", "c", "bash", result("done"), False)
        self.rig.run(2)
        self.host.open_gate("a")
        self.rig.run(2)
        self.assertEqual(len(self.calls("editMessageText")), 1)

    def test_batches(self) -> None:
        """Six tools share a message; what runs at the same time ends in the message where it began."""
        self.begin()
        for number in range(8):
            self.host.tell("tool_started", f"c{number}", "bash", {"command": f"n{number}"})
        self.rig.run(2)
        first, second = self.calls("sendMessage")
        self.assertIn("n7", self.calls()[-1]["text"])
        for number in range(8):
            self.host.tell("tool_ended", f"c{number}", "bash", result(f"r{number}"), number == 5)
        self.rig.run(3)
        edits = {params["message_id"]: params["text"] for params in self.calls("editMessageText")}
        one, two = (edits[number] for number in sorted(edits))
        self.assertEqual((one.count("✅"), one.count("❌"), two.count("✅")), (5, 1, 2))
        self.assertIn("r5", one)
        self.assertIn("r7", two)

    def test_before_the_answer(self) -> None:
        """The last state of everything is sent before the answer is handed over."""
        self.begin("[[gate a]]" + ECHO)
        order: list[str] = []
        link = self.rig.link
        api, submit = link.call_api, link.submit_delivery
        link.call_api = lambda *a, **k: order.append(a[0]) or api(*a, **k)  # type: ignore
        link.submit_delivery = lambda *a: order.append("answer") or submit(*a)  # type: ignore
        self.host.open_gate("a")
        self.rig.run(4)
        self.assertEqual(order[-2:], ["editMessageText", "answer"])
        self.assertIn("✅ Bash", self.calls()[-1]["text"])

    def test_interrupted_by_the_end_of_the_run(self) -> None:
        """Tools of which nobody told the end look so."""
        self.begin()
        self.host.tell("tool_started", "c", "bash", {})
        self.rig.run(0.3)
        self.host.open_gate("a")
        self.rig.run(2)
        self.assertIn("⏹ Bash", self.calls()[-1]["text"])

    def test_below_what_was_said(self) -> None:
        """Tools after words of the model have a message below these."""
        self.begin()
        self.host.tell("tool_started", "c", "bash", {})
        self.host.tell("tool_ended", "c", "bash", result("x"), False)
        self.host.tell("assistant_message", said("", "toolUse"))
        self.host.tell("tool_started", "d", "bash", {})
        self.rig.run(2)
        self.assertEqual(len(self.calls("sendMessage")), 1)
        self.host.tell("assistant_message", said("Now the other one.", "toolUse"))
        self.host.tell("tool_started", "e", "bash", {})
        self.rig.run(2)
        self.assertEqual(len(self.calls("sendMessage")), 2)


class FrameTests(ActivityCase):
    """Best effort."""

    def limited(self, seconds: float) -> Refusal:
        """What a leader says whose budget is spent."""
        return Refusal("rate-limited", "not so soon", retryAfter=seconds)

    def test_rate_limit(self) -> None:
        """A refused message is sent later, once, as it is then."""
        self.rig.link.api_results = [self.limited(3)]
        self.begin()
        self.rig.link.api_calls.clear()
        self.rig.link.api_results = [self.limited(3)]
        self.host.tell("tool_started", "c", "bash", {"command": "one"})
        self.host.tell("tool_started", "d", "bash", {"command": "two"})
        self.rig.run(2.5)
        self.assertEqual(len(self.calls()), 1)
        self.rig.run(2)
        self.assertEqual(len(self.calls()), 2)
        self.assertIn("two", self.calls()[-1]["text"])

    def test_an_answer_does_not_wait_for_a_limit(self) -> None:
        """Where activity may not be sent for long the answer goes at once, nothing comes after it."""
        self.begin()
        self.rig.link.api_results = [self.limited(30)]
        self.host.tell("tool_started", "c", "bash", {})
        self.host.open_gate("a")
        self.rig.run(0.5)
        self.assertEqual(len(self.rig.link.texts), 1)
        calls = len(self.calls())
        self.rig.run(60)
        self.assertEqual(len(self.calls()), calls)

    def test_an_edit_that_is_held_back(self) -> None:
        """The answer does not wait for the last state of a message that is there; it comes later."""
        self.begin()
        self.host.tell("tool_started", "c", "bash", {})
        self.rig.run(0.2)
        self.rig.link.api_results = [self.limited(1.5)]
        self.host.tell("tool_ended", "c", "bash", result("x"), False)
        self.host.open_gate("a")
        self.rig.run(0.3)
        self.assertEqual(len(self.rig.link.texts), 1)
        self.rig.run(3)
        self.assertIn("✅ Bash", self.calls("editMessageText")[-1]["text"])

    def test_an_answer_waits_two_seconds(self) -> None:
        """Where activity hangs the answer comes all the same."""
        self.begin()
        hanging: Deferred[Any] = Deferred()
        self.rig.link.api_results = [hanging]
        self.host.tell("tool_started", "c", "bash", {})
        self.host.tell("assistant_message", said("Words.", "toolUse"))
        self.host.tell("tool_started", "d", "bash", {})
        self.host.open_gate("a")
        self.rig.run(FINAL_WAITS - 0.3)
        self.assertEqual(self.rig.link.texts, ["Words."])
        self.rig.run(0.6)
        self.assertEqual(len(self.rig.link.texts), 2)
        hanging.callback({"message_id": 77})
        self.rig.run(5)
        self.assertEqual(len(self.calls("sendMessage")), 1)
        self.assertEqual(self.calls()[-1]["message_id"], 77)

    def test_later_runs_do_not_hold_up_an_answer(self) -> None:
        """What an answer waits for is what was shown before it, not what the next run shows."""
        self.begin()
        hanging: Deferred[Any] = Deferred()
        self.rig.link.api_results = [hanging]
        self.host.tell("tool_started", "c", "bash", {})
        self.rig.parts.settler.finish([], "final-earlier", "Earlier")
        self.rig.run(0.2)
        self.assertEqual(self.rig.link.texts, ["Earlier"])
        hanging.callback({"message_id": 77})
        self.host.open_gate("a")
        self.rig.run(3)
        self.assertIn("⏹ Bash", self.calls()[-1]["text"])

    def test_most_waiting(self) -> None:
        """What cannot be sent does not pile up."""
        self.begin()
        self.rig.link.api_results = [self.limited(20)]
        for number in range(60):
            self.host.tell("tool_started", f"c{number}", "bash", {"command": f"n{number}"})
        self.rig.run(25)
        sent = self.calls("sendMessage")[1:]
        self.assertLessEqual(len(sent), MOST_WAITING)
        self.assertIn("n59", self.calls()[-1]["text"])

    def test_refused(self) -> None:
        """What Telegram will not take is left; the run and what follows go on."""
        self.begin()
        self.rig.link.api_results = [Refusal("api", "bad", errorCode=400, description="bad")]
        self.host.tell("tool_started", "c", "bash", {})
        self.rig.run()
        self.host.open_gate("a")
        self.rig.run(2)
        self.assertEqual(len(self.calls()), 1)
        self.assertEqual(len(self.rig.link.texts), 1)

    def test_lost_link(self) -> None:
        """A message of which nobody knows whether it was sent is not sent twice."""
        self.begin()
        self.rig.link.api_results = [LinkLost("gone")]
        self.host.tell("tool_started", "c", "bash", {})
        self.rig.run(5)
        self.assertEqual(len(self.calls()), 1)

    def test_without_a_leader(self) -> None:
        """Without a leader nothing is shown, and nothing waits for it."""
        self.begin()
        self.rig.service._bus.lose()  # type: ignore[union-attr]
        self.host.tell("tool_started", "c", "bash", {})
        self.host.open_gate("a")
        self.rig.run(3)
        self.rig.connect()
        self.rig.run(3)
        self.assertEqual(len(self.rig.link.texts), 1)
        self.assertEqual(self.calls(), [])

    def test_next_process_marks_what_was_left(self) -> None:
        """A message that a killed worker left says so, once, and keeps what it showed."""
        self.begin()
        self.rig.link.api_results = [{"message_id": 77}]
        self.host.tell("tool_started", "c", "bash", {"command": "make all"})
        self.rig.run(2)
        (left,) = self.calls("sendMessage")
        self.rig.crash()
        self.rig.start(connect=False)
        self.rig.run(30)
        self.rig.connect()
        self.rig.run(3)
        (marked,) = self.calls("editMessageText")
        self.assertEqual(marked["message_id"], 77)
        self.assertTrue(marked["text"].startswith(left["text"]))
        self.assertTrue(marked["text"].endswith(INTERRUPTED))
        self.rig.crash()
        self.rig.start()
        self.rig.run(3)
        self.assertEqual(self.calls("editMessageText"), [])

    def test_nothing_to_mark(self) -> None:
        """What was shown to its end is not touched by the next process, nor is nonsense."""
        self.rig.message(ECHO)
        self.rig.run(4)
        self.rig.crash()
        self.rig.start()
        self.rig.run(3)
        self.assertEqual(self.calls(), [])
        self.rig.crash()
        self.rig.inbox.set_meta("activity", '[1, {"a": 2}]')
        self.rig.start()
        self.rig.run(3)
        self.assertEqual(self.calls(), [])

    def test_stop(self) -> None:
        """No timer is left when the worker has ended."""
        self.begin()
        self.rig.link.api_results = [self.limited(500)]
        self.host.tell("tool_started", "c", "bash", {})
        self.rig.run(0.2)
        self.host.die()
        self.rig.run(30)
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])


class ThoughtMessageTests(ActivityCase):
    """Messages of thoughts."""

    def test_frames(self) -> None:
        """Thoughts grow in one message, paced and bounded, and end whole."""
        self.begin()
        for number in range(2000):
            self.host.tell("thinking_delta", f"thought{number} ")
            self.rig.run(0.05)
        self.host.tell("assistant_message", said("", "toolUse"))
        self.rig.run(3)
        sent, edits = self.calls("sendMessage"), self.calls("editMessageText")
        self.assertLessEqual(max(len(call["text"]) for call in sent + edits), 1210)
        self.assertEqual((len(sent), len(edits)), (1, MOST_FRAMES - 1))
        self.assertTrue(self.calls()[-1]["text"].endswith("thought1999"))


class CommentTests(ActivityCase):
    """What is said before the answer."""

    def deliveries(self) -> list[tuple[str, str, bool]]:
        """Kind, text and silence of everything that was handed over."""
        return [
            (
                each["kind"],
                shown(call),
                call["params"].get("disable_notification", False),
            )
            for _, each in self.rig.link.submitted
            for call in each["calls"]
        ]

    def test_once_and_silent(self) -> None:
        """Words before a tool come at once and silently, the answer does not repeat them."""
        self.rig.message("[[say 'First I look.']][[tool bash 'echo x']][[say 'All is well.']]")
        self.rig.run(4)
        self.assertEqual(
            self.deliveries(),
            [("notice", "First I look.", True), ("final", "All is well.", False)],
        )

    def test_quiet_too(self) -> None:
        """They are words for the operator, whatever is shown of tools."""
        self.prefer(activity="quiet")
        self.rig.message("[[say 'First I look.']][[tool bash 'echo x']][[say 'All is well.']]")
        self.rig.run(4)
        self.assertEqual(len(self.deliveries()), 2)

    def test_hidden_comments(self) -> None:
        """Hidden comments are taken out; nothing is sent when nothing else is there."""
        self.begin()
        self.host.tell("assistant_message", said("<!-- x -->\nShown", "toolUse"))
        self.host.tell("assistant_message", said("<!-- only this -->", "toolUse"))
        self.rig.run()
        self.assertEqual(self.rig.link.texts, ["Shown"])

    def test_crash(self) -> None:
        """A comment that was stored comes once, although the worker is killed; so does the answer."""
        self.begin()
        self.rig.link.held = True
        self.host.tell("assistant_message", said("First I look.", "toolUse"))
        self.rig.run()
        (sent,) = self.rig.link.submitted
        self.rig.crash()
        self.rig.start()
        self.rig.run(2)
        again = [entry for entry in self.rig.link.submitted if entry[0] == sent[0]]
        self.assertEqual(again, [sent])
        self.assertEqual(self.rig.inbox.answers(), [])

    def test_order_on_a_slow_disk(self) -> None:
        """A comment whose buttons take long to be stored comes before the answer all the same."""
        composer, slow = self.rig.parts.composer, SlowOutgoing(self.rig.outgoing)
        composer._outgoing = slow  # type: ignore[assignment]
        self.rig.message("[[gate a]]" + ECHO)
        self.rig.run()
        self.host.tell(
            "assistant_message", said("Look\n<!-- telegram_button: Faster -->", "toolUse")
        )
        self.host.open_gate("a")
        self.rig.run(3)
        self.assertEqual(self.rig.link.texts, [])
        slow.release()
        self.rig.run(3)
        self.assertEqual(self.rig.link.texts[0], "Look")
        self.assertEqual(self.rig.link.texts[-1], "Done")

    def test_different_runs(self) -> None:
        """Equal words of two runs are two comments."""
        for number in (1, 2):
            self.rig.message("[[say Look]][[tool bash 'echo x']][[say Done]]", message_id=number)
            self.rig.run(4)
        self.assertEqual(self.rig.link.texts, ["Look", "Done"] * 2)
        self.assertEqual(len({name for name, _ in self.rig.link.submitted}), 4)


class NobodyAskedTests(ActivityCase):
    """Runs that nobody in the chat asked for."""

    def by_itself(self) -> None:
        """Somebody at the terminal has Pi do something."""
        self.host._running = self.host._run("[[say Look]]" + ECHO)
        self.rig.run(4)

    def test_pushed(self) -> None:
        """Everything is shown but what was asked."""
        self.by_itself()
        self.assertEqual(self.rig.link.texts, ["Look", "Done"])
        self.assertIn("Bash", self.calls("sendMessage")[0]["text"])

    def test_not_pushed(self) -> None:
        """Nothing is shown, and what the chat asks afterwards is."""
        self.prefer(proactivePush=False)
        self.by_itself()
        self.host.tell("compaction", CompactionStep(reason="threshold"))
        self.rig.run(1)
        self.assertEqual((self.rig.link.texts, self.calls()), ([], []))
        self.rig.message(ECHO)
        self.rig.run(4)
        self.assertEqual(self.rig.link.texts, ["Done"])
        self.assertIn("Bash", self.calls("sendMessage")[0]["text"])


class FooterTests(ActivityCase):
    """What a run has used."""

    def test_footer(self) -> None:
        """It ends the answer where it is wanted, and counts every message of the run."""
        self.rig.message(ECHO)
        self.rig.run(4)
        self.prefer(footer=True)
        self.rig.message(ECHO, message_id=2)
        self.rig.run(4)
        self.assertEqual(self.rig.link.texts, ["Done", "Done\n\n200 in · 20 out"])

    def test_open_code(self) -> None:
        """Code that was not closed does not swallow it."""
        self.prefer(footer=True)
        self.rig.message("[[say 'Look:\\n```\\nx = 1']]")
        self.rig.run()
        (text,) = self.rig.link.texts
        self.assertTrue(text.endswith("```\n\n100 in · 10 out"), text)


class TroubleTests(ActivityCase):
    """Retries, compactions, failures."""

    def test_retries(self) -> None:
        """One silent line, which changes and goes; the answer is the answer."""
        self.prefer(activity="quiet")
        self.rig.message("[[error 529 times=2]]")
        self.rig.run(1)
        (sent,) = self.calls("sendMessage")
        self.assertEqual(sent["text"], "🔁 Retry 1 of 3 in 2 s: 529: scripted error 529")
        self.assertIs(sent["disable_notification"], True)
        self.rig.run(2)
        (edit,) = self.calls("editMessageText")
        self.assertIn("Retry 2 of 3 in 4 s", edit["text"])
        self.rig.run(4)
        place = {"chat_id": CHAT, "message_id": edit["message_id"]}
        self.assertEqual(self.calls("deleteMessage"), [place])
        self.assertEqual(self.rig.link.texts, ["The provider works again."])

    def test_line_that_was_not_sent(self) -> None:
        """A line that is over before it could be sent is not sent at all."""
        self.begin()
        self.rig.link.api_results = [Refusal("rate-limited", "x", retryAfter=3)]
        self.host.tell("retrying", Retry(attempt=1, of=3, delay=1.0, reason="x"))
        self.host.tell("retried", True, "")
        self.rig.run(5)
        self.assertEqual(len(self.calls()), 1)

    def test_failures_in_a_row(self) -> None:
        """A failure is told with what can be done; the same again in one line."""
        for number in (1, 2, 3):
            self.rig.message("[[error 429]]", message_id=number)
            self.rig.run(1)
        first, second, third = self.rig.link.texts
        self.assertIn("429: scripted error 429", first)
        self.assertIn("/continue", first)
        self.assertIn("2 times in a row", second)
        self.assertIn("3 times in a row", third)

    def test_compaction(self) -> None:
        """One that Pi begins by itself is told in a line with its outcome; one that was asked for not."""
        self.begin()
        self.host.tell("compaction", CompactionStep(reason="manual"))
        self.host.tell("compaction", CompactionStep(reason="threshold"))
        self.host.open_gate("a")
        self.rig.run(1)
        self.host.tell(
            "compaction", CompactionStep(reason="threshold", over=True, before=9000, after=800)
        )
        self.rig.run(2)
        (sent,), (edit,) = self.calls("sendMessage"), self.calls("editMessageText")
        self.assertIn("compacts", sent["text"])
        self.assertEqual(self.rig.link.texts, ["After the gate a."])
        self.assertIn("9.0k → 800", edit["text"])

"""Prompts go to Pi one at a time, each at most once, and settle with their answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge import labels
from pitelegram.delivery.shape import parse_delivery
from pitelegram.errors import LinkLost, PiRefused, StoreFull
from pitelegram.testing.worker import BINDING, WorkerRig
from pitelegram.worker.port import control_delivery_id


class RigCase(SynchronousTestCase):
    """A worker in memory."""

    def setUp(self) -> None:
        """Start one."""
        self.rig = WorkerRig(Path(self.mktemp()).resolve())
        self.addCleanup(self.rig.database.close)

    def started(self) -> WorkerRig:
        """Return the rig with a running worker."""
        self.rig.start()
        self.successResultOf(self.rig.started)
        return self.rig


class Queueing(RigCase):
    """The normal lane."""

    def test_prompt_and_answer(self) -> None:
        """A message becomes a prompt, its answer a delivery, its row settled."""
        rig = self.started()
        rig.message("hello")
        self.assertEqual(self.successResultOf(rig.receipt), ("accepted", ""))
        self.assertEqual(rig.host.prompts[0][1], "[telegram|thread:Atlas] hello")
        self.assertEqual(rig.link.texts, ["You said: hello"])
        self.assertTrue(rig.link.submitted[0][0].startswith("final-"))
        self.assertEqual(rig.states(), {"settled": 1})
        self.assertEqual(rig.inbox.answers(), [])

    def test_one_at_a_time(self) -> None:
        """The next prompt is handed only when Pi has settled; order is kept."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.message("two")
        rig.message("three")
        self.assertEqual(rig.prompts(), ["[[gate a]]"])
        self.assertEqual(rig.states(), {"held": 2, "handed": 1})
        rig.host.open_gate("a")
        rig.run()
        self.assertEqual(rig.prompts(), ["[[gate a]]", "two", "three"])
        self.assertEqual([lane for _, _, lane in rig.host.prompts], ["normal"] * 3)
        self.assertEqual(rig.link.texts, ["After the gate a.", "You said: two", "You said: three"])

    def test_repeated_delivery(self) -> None:
        """The same delivery again gives the same receipt and changes nothing."""
        rig = self.started()
        body = {"message_id": 1, "chat": {"id": 100}, "text": "once"}
        for _ in range(3):
            rig.forward("message", body, update_id=99)
            self.assertEqual(self.successResultOf(rig.receipt), ("accepted", ""))
        self.assertEqual(rig.prompts(), ["once"])

    def test_handed_is_committed_before_the_bytes(self) -> None:
        """When Pi is called the row says handed, with its mark."""
        rig = self.started()
        seen = []
        real = rig.host.prompt

        def prompt(rpc_id: str, message: str, lane: str, images: object) -> object:
            row = rig.inbox.rows("handed")[0]
            seen.append((row.rpc_id == rpc_id, row.run_id == rpc_id, row.mark_file, row.mark_size))
            return real(rpc_id, message, lane)

        rig.host.prompt = prompt
        rig.message("x")
        self.assertEqual(seen, [(True, True, str(rig.base / "session.jsonl"), 0)])

    def test_nothing_is_written_while_the_commit_lasts(self) -> None:
        """As long as the disk takes, Pi gets no byte; once it has taken it, Pi gets all, once."""
        rig = self.started()
        committed: Deferred[None] = Deferred()
        real = rig.inbox.hand

        def hand(*arguments: Any) -> Deferred[None]:
            return committed.addCallback(lambda _: real(*arguments))

        rig.parts.queue.hands._inbox = Replaced(rig.inbox, hand=hand)
        rig.message("x")
        rig.run(5)
        self.assertEqual((rig.prompts(), rig.states()), ([], {"held": 1}))
        committed.callback(None)
        rig.run(1)
        self.assertEqual((rig.prompts(), rig.states()), (["x"], {"settled": 1}))

    def test_long_answer(self) -> None:
        """Of 30,000 characters the beginning is a message, and a file behind it has all of them."""
        rig = self.started()
        rig.message("[[long 30000]]")
        [text] = rig.link.texts
        self.assertLessEqual(len(text), 4096)
        self.assertEqual([len(content) for content in rig.link.spooled], [30_000])
        [first, second] = [name for name, _ in rig.link.submitted]
        self.assertEqual(second, f"{first}.file")
        self.assertFalse(list(rig.paths.worker_files(BINDING).iterdir()), "receipted, and kept")

    def test_reply(self) -> None:
        """An answer is a reply to the message that it answers; one that nobody asked for is none."""
        rig = self.started()
        for number in (5, 6):
            rig.message("x", message_id=number)
        rig.host._running = rig.host._run("by itself")
        rig.run(1)
        replies = [
            delivery["calls"][0]["params"].get("reply_parameters", {}).get("message_id")
            for _, delivery in rig.link.submitted
        ]
        self.assertEqual(replies, [5, 6, None])

    def test_long_answer_submitted_twice(self) -> None:
        """A file is placed for each submission, and the delivery stays equal."""
        rig = self.started()
        rig.link.held = True
        rig.message("[[long 30000]]")
        rig.link.release()
        rig.run()
        (name, first) = rig.link.submitted[-1]
        rig.link.release(LinkLost("gone"))
        rig.service._bus.lose()  # type: ignore[union-attr]
        rig.connect()
        rig.run(2)
        self.assertEqual([each for each, _ in rig.link.submitted], [name])
        second = rig.link.submitted[0][1]
        self.assertEqual(len(rig.link.spooled[0]), 30_000)
        self.assertEqual(parse_delivery(name, first).digest, parse_delivery(name, second).digest)

    def test_run_that_nobody_asked_for(self) -> None:
        """What an extension made Pi say is delivered too."""
        rig = self.started()
        rig.host._running = rig.host._run("by itself")
        rig.run()
        self.assertEqual(rig.link.texts, ["You said: by itself"])

    def test_prompt_during_a_run_of_pi_itself(self) -> None:
        """It waits for the end of that run; each answer is its own."""
        rig = self.started()
        rig.host._running = rig.host._run("[[gate g]]")
        rig.run()
        rig.message("mine")
        self.assertEqual(rig.prompts(), [])
        rig.host.open_gate("g")
        rig.run()
        self.assertEqual(rig.link.texts, ["After the gate g.", "You said: mine"])

    def test_extension_swallows_a_prompt(self) -> None:
        """A prompt that no run follows is settled and told, and the queue goes on."""
        rig = self.started()
        real = rig.host.prompt

        def prompt(rpc_id: str, message: str, lane: str, images: object) -> object:
            rig.host.prompt = real
            return self._handled()

        rig.host.prompt = prompt
        rig.message("swallowed")
        rig.message("next")
        rig.run()
        self.assertEqual(rig.link.texts, [labels.HANDLED, "You said: next"])
        self.assertEqual(rig.states(), {"settled": 2})

    def _handled(self) -> object:
        from twisted.internet.defer import succeed

        return succeed("handled")

    def test_extension_rewrites_a_prompt(self) -> None:
        """A prompt that Pi took under other words settles with the run it was in."""
        rig = self.started()
        real = rig.host._run
        rig.host._run = lambda message: real("other words")
        rig.message("mine")
        rig.run()
        self.assertEqual(rig.link.texts, ["You said: other words"])
        self.assertEqual(rig.states(), {"settled": 1})

    def test_store_that_is_full_when_pi_settles(self) -> None:
        """The answer is kept and stored as soon as there is room; nothing is handed meanwhile."""
        rig = self.started()
        real = rig.inbox.settle
        refusals = [StoreFull("no space"), StoreFull("no space")]

        def settle(seqs: object, answers: object = ()) -> object:
            from twisted.internet.defer import fail

            return fail(refusals.pop()) if refusals else real(seqs, answers)

        rig.parts.settler._inbox = Replaced(rig.inbox, settle=settle)
        rig.message("one")
        rig.message("two")
        self.assertEqual(rig.prompts(), ["one"])
        rig.run(5)
        self.assertEqual(rig.link.texts, ["You said: one", "You said: two"])
        self.assertEqual(len(self.flushLoggedErrors()), 0)

    def test_store_that_is_full_when_handing(self) -> None:
        """Nothing is written to Pi without its commit; it is tried again."""
        rig = self.started()
        real = rig.inbox.hand
        refusals = [StoreFull("no space")]

        def hand(*arguments: object) -> object:
            from twisted.internet.defer import fail

            return fail(refusals.pop()) if refusals else real(*arguments)

        rig.parts.queue.hands._inbox = Replaced(rig.inbox, hand=hand)
        rig.message("one")
        self.assertEqual(rig.prompts(), [])
        self.assertEqual(rig.states(), {"held": 1})
        self.assertEqual(self.flushLoggedErrors(), [])
        rig.run(3)
        self.assertEqual(rig.link.texts, ["You said: one"])

    def test_store_that_is_full_when_pi_refused(self) -> None:
        """The row is held again as soon as there is room, and goes then."""
        rig = self.started()
        real = rig.inbox.unhand
        refusals = [StoreFull("no space")] * 3

        def unhand(seq: int) -> object:
            from twisted.internet.defer import fail

            return fail(refusals.pop()) if refusals else real(seq)

        rig.parts.settler._inbox = Replaced(rig.inbox, unhand=unhand)
        rig.host.refusals = [PiRefused("compaction")]
        rig.message("one")
        rig.message("two")
        rig.run(20)
        self.assertEqual(rig.link.texts, ["You said: one", "You said: two"])

    def test_retried_error_keeps_the_turn(self) -> None:
        """An error that Pi retries is no end: one outcome, after the retry."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.message("two", 2)
        rig.host._tell(
            "assistant_message", {"text": "", "stopReason": "error", "errorMessage": "429"}
        )
        rig.run(10)
        self.assertEqual((rig.prompts(), rig.link.texts), (["[[gate a]]"], []))
        rig.host.open_gate("a")
        rig.run()
        self.assertEqual(rig.link.texts, ["After the gate a.", "You said: two"])

    def test_error_without_a_retry(self) -> None:
        """It is told once, and the queue goes on."""
        rig = self.started()
        real = rig.host._assistant
        rig.host._assistant = lambda text, reason: rig.host._tell(
            "assistant_message", {"text": "", "stopReason": "error", "errorMessage": "no credit"}
        )
        rig.message("one")
        rig.host._assistant = real
        rig.message("two", 2)
        rig.run()
        first, second = rig.link.texts
        self.assertIn("no credit", first)
        self.assertEqual(second, "You said: two")

    def test_queue_without_a_leader(self) -> None:
        """What waits is counted and shown though nobody receives updates now."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.message("two", 2)
        rig.service._bus.lose()
        self.assertEqual(rig.parts.report.state()["queued"], 1)
        self.assertEqual([item.position for item in rig.parts.queue.view()], [1])

    def test_view(self) -> None:
        """It shows the order of the turns, with a few words of each."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.parts.queue.hands._steering_refused = True
        for number, text in enumerate(("one", "two", "three"), 2):
            rig.message(text, number)
        queue = rig.parts.queue
        self.assertTrue(self.successResultOf(queue.move(queue.view()[2].seq, "priority")))
        self.assertFalse(self.successResultOf(queue.move(999, "priority")))
        self.assertFalse(self.successResultOf(queue.move(queue.view()[0].seq, "control")))
        self.assertFalse(self.successResultOf(queue.mark(999, True)))
        shown = [(each.position, each.summary, each.lane) for each in queue.view()]
        expected = [(1, "three", "priority"), (2, "one", "normal"), (3, "two", "normal")]
        self.assertEqual(shown, expected)
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual(rig.prompts()[1:], ["three", "one", "two"])

    def test_before_pi_is_up(self) -> None:
        """What comes while Pi starts is held, and goes in order when it is up."""
        rig = self.started()
        rig.parts.queue.close()
        for number, text in enumerate(("one", "two"), 1):
            rig.message(text, number)
        rig.run(1)
        self.assertEqual((rig.prompts(), rig.states()), ([], {"held": 2}))
        rig.parts.queue.open()
        rig.run(0.1)  # before any watch looks
        self.assertEqual(rig.prompts()[:1], ["one"])
        rig.run(1)
        self.assertEqual(rig.prompts(), ["one", "two"])

    def test_control_is_not_moved(self) -> None:
        """What C{/continue} asks stays first, whatever a button says."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.message("waits", 2)
        rig.message("/continue", 3)
        queue = rig.parts.queue
        first = queue.view()[0]
        self.assertEqual(first.lane, "control")
        for lane in ("priority", "normal"):
            self.assertFalse(self.successResultOf(queue.move(first.seq, lane)))
        self.assertEqual(queue.view()[0], first)

    def test_changed_while_it_is_handed(self) -> None:
        """A mark that was written before the hand-over still counts: Pi does not get the prompt."""
        rig = self.started()
        rig.parts.queue.close()
        rig.message("one")
        rig.message("two", 2)
        first, _ = rig.inbox.rows("held")
        real = rig.inbox.hand

        def hand(seq: int, *arguments: object) -> object:
            if seq == first.seq and not first_marked:
                first_marked.append(rig.inbox.mark(seq, True))
            return real(seq, *arguments)

        first_marked: list[object] = []
        rig.parts.queue.hands._inbox = Replaced(rig.inbox, hand=hand)
        rig.parts.queue.open()
        rig.run(1)
        self.assertEqual(rig.prompts(), ["two"])
        self.assertEqual(rig.states(), {"settled": 1, "skipped": 1})


class Replaced:
    """An inbox with one method replaced."""

    def __init__(self, real: object, **replaced: object) -> None:
        self._real = real
        self._replaced = replaced

    def __getattr__(self, name: str) -> object:
        return self._replaced.get(name) or getattr(self._real, name)


class Refusing(RigCase):
    """A Pi that takes no prompt."""

    def test_compaction_passes(self) -> None:
        """A refusal that passes is tried again by itself, without a word."""
        rig = self.started()
        rig.host.refusals = [
            PiRefused("Cannot submit a prompt while compaction is in progress.")
        ] * 2
        rig.message("x")
        self.assertEqual(rig.states(), {"held": 1})
        rig.run(10)
        self.assertEqual(rig.link.texts, ["You said: x"])

    def test_no_key_is_told_once(self) -> None:
        """The operator is told; it is no hot loop; his next message tries again."""
        rig = self.started()
        refusal = PiRefused("No API key found for the selected model")
        rig.host.refusals = [refusal] * 3
        rig.message("one")
        rig.run(30)
        self.assertEqual(len(rig.host.refusals), 2)
        self.assertEqual(len(rig.link.texts), 1)
        self.assertIn("No API key found", rig.link.texts[0])
        self.assertIn("lastError", rig.parts.report.state())
        rig.message("two")
        self.assertEqual(len(rig.host.refusals), 1)
        self.assertEqual(len(rig.link.texts), 1)
        rig.host.refusals = []
        rig.message("three")
        rig.run()
        self.assertEqual(rig.prompts(), ["one", "two", "three"])
        self.assertNotIn("lastError", rig.parts.report.state())

    def test_new_model_tries_again(self) -> None:
        """A changed model is a reason to ask Pi again."""
        rig = self.started()
        rig.host.refusals = [PiRefused("No API key found for the selected model")]
        rig.message("one")
        self.assertEqual(rig.prompts(), [])
        rig.host._change(thinkingLevel="high")
        rig.run()
        rig.host._change(model={"id": "other", "provider": "p"})
        rig.run()
        self.assertEqual(rig.prompts(), ["one"])

    def test_retry_after_a_minute_or_more(self) -> None:
        """Nobody has to write for a Pi that was logged in meanwhile."""
        rig = self.started()
        rig.host.refusals = [PiRefused("No API key found for the selected model")]
        rig.message("one")
        rig.run(61)
        self.assertEqual(rig.link.texts[1:], ["You said: one"])


class Steering(RigCase):
    """The priority lane."""

    def _steer(self, text: str, request_id: str = "r") -> None:
        command = {"type": "steer", "message": text}
        done = self.rig.parts.follower.control(request_id, command)
        self.rig.run()
        self.assertEqual(
            self.successResultOf(done), {"deliveryId": control_delivery_id(request_id)}
        )

    def test_handed_at_once_while_pi_runs(self) -> None:
        """It goes as a steering message, and both settle with one answer."""
        rig = self.started()
        rig.message("[[gate a]]")
        self._steer("sooner")
        self.assertEqual([lane for _, _, lane in rig.host.prompts], ["normal", "priority"])
        rig.host.open_gate("a")
        rig.run()
        self.assertEqual(rig.link.texts, ["After the gate a.\n\nYou said: sooner"])
        self.assertEqual(rig.states(), {"settled": 2})
        self.assertEqual(rig.link.submitted[0][0], f"final-{rig.host.prompts[0][0]}")

    def test_goes_first_when_pi_is_idle(self) -> None:
        """Before held prompts, as an ordinary one."""
        rig = self.started()
        rig.host.refusals = [PiRefused("compaction")]
        rig.message("normal")
        self._steer("priority")
        rig.run(5)
        self.assertEqual(rig.prompts(), ["priority", "normal"])

    def test_refused_steering_waits_for_the_end(self) -> None:
        """It is held again and goes as the next prompt."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.host.refusals = [PiRefused("no")]
        self._steer("sooner")
        self.assertEqual(rig.states(), {"handed": 1, "held": 1})
        rig.host.open_gate("a")
        rig.run()
        self.assertEqual(rig.link.texts, ["After the gate a.", "You said: sooner"])

    def test_steering_that_comes_too_late_for_the_run(self) -> None:
        """It belongs to the run that it starts, and that answer has its own id."""
        rig = self.started()
        rig.message("[[gate a]]")
        lead = rig.host.prompts[0][0]
        real = rig.host.prompt

        def late(rpc_id: str, message: str, lane: str, images: object) -> object:
            rig.host.prompt = real
            rig.host.open_gate("a")
            rig.run()
            return real(rpc_id, message, lane)

        rig.host.prompt = late
        self._steer("late")
        rig.run()
        self.assertEqual(rig.link.texts, ["After the gate a.", "You said: late"])
        ids = [name for name, _ in rig.link.submitted]
        self.assertEqual(ids, [f"final-{lead}", f"final-{rig.host.prompts[1][0]}"])


class Losing(RigCase):
    """A Pi that does not do what it said."""

    def test_prompt_that_pi_lost(self) -> None:
        """Pi answered and never ran it: uncertain with its button, and the queue goes on."""
        rig = self.started()
        rig.host._run = lambda message: None
        rig.message("lost")
        rig.run(1)
        self.assertEqual(rig.states(), {"handed": 1})
        del rig.host._run
        rig.message("next")
        rig.run(8)
        self.assertIn("lost", rig.link.texts[0])
        self.assertEqual(rig.link.texts[1:], ["You said: next"])
        self.assertEqual(rig.states(), {"uncertain": 1, "settled": 1})

    def test_prompt_that_pi_left_in_its_queue(self) -> None:
        """It is taken back, held again and handed anew."""
        rig = self.started()
        rig.host._running = object()
        rig.message("stranded")
        self.assertEqual(rig.host.state["pendingMessageCount"], 1)
        rig.host._running = None
        rig.run(10)
        self.assertEqual(rig.link.texts, ["You said: stranded"])
        self.assertEqual(rig.states(), {"settled": 1})

    def test_settlement_that_pi_did_not_tell(self) -> None:
        """A run whose end was lost is settled by the watch."""
        rig = self.started()
        rig.host._settle = lambda aborted: rig.host._change(isStreaming=False)
        rig.message("x")
        rig.run(1)
        self.assertEqual(rig.states(), {"handed": 1})
        rig.run(8)
        self.assertEqual(rig.link.texts, ["You said: x"])

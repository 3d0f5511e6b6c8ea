"""C{/abort}, C{/stop}, C{/next} and C{/continue}: what they end, keep and say."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed

from pitelegram.bridge import labels
from pitelegram.errors import PiGone, StoreFull
from pitelegram.testing.worker import WorkerRig
from tests.worker.test_queue import Replaced, RigCase

GATE = "[[gate a]]"


class HaltingCase(RigCase):
    """A worker with a run at a gate."""

    def running(self, *waiting: str) -> WorkerRig:
        """Return the rig with these prompts behind the run."""
        rig = self.started()
        for number, text in enumerate((GATE, *waiting), 1):
            rig.message(text, number)
        return rig

    def steer(self, text: str) -> None:
        """A steering message of the control socket."""
        self.rig.parts.follower.control("r", {"type": "steer", "message": text})
        self.rig.run()


class Aborting(HaltingCase):
    """The queue goes on."""

    def test_what_pi_gives_back_keeps_its_place(self) -> None:
        """A steering message that Pi had queued has its turn before the normal ones."""
        rig = self.running("one", "two")
        self.steer("sooner")
        rig.message("/abort", 9)
        rig.run(1)
        self.assertEqual(rig.prompts(), [GATE, "sooner", "sooner", "one", "two"])
        self.assertEqual([lane for _, _, lane in rig.host.prompts][1:3], ["priority", "normal"])

    def test_waiting_prompts_are_not_lost(self) -> None:
        """Each is a turn of its own, with nothing of the others in it."""
        rig = self.running("one", "two")
        rig.message("/abort", 9)
        rig.run(1)
        self.assertEqual(rig.prompts(), [GATE, "one", "two"])
        self.assertEqual(rig.states(), {"settled": 4})

    def test_compaction(self) -> None:
        """A compaction is ended too, said in its own words, and the queue goes on."""
        rig = self.started()
        rig.host._change(isCompacting=True)
        rig.message("one", 1)
        self.assertEqual(rig.prompts(), [])
        rig.message("/abort", 2)
        rig.run(1)
        self.assertEqual(rig.link.texts, ["Compaction aborted.", "You said: one"])

    def test_deaf_pi(self) -> None:
        """Within a second the operator hears what is known; later how to go on; nothing is lost."""
        rig = self.running("one")
        rig.host.deaf = True
        rig.message("/abort", 9)
        rig.run(0.8)
        self.assertEqual(rig.link.texts, [labels.ABORT_IS_LATE])
        rig.message("/status", 10)
        rig.run(0.2)
        self.assertIn("Queue: 1", rig.link.texts[1])
        rig.run(31)
        self.assertEqual(rig.link.texts[2:], [labels.ABORT_UNANSWERED])
        self.assertEqual(rig.states()["held"], 1)

    def test_slow_pi(self) -> None:
        """An abort that comes late is told when it came."""
        rig = self.running("one")
        real = rig.host.abort
        late: Deferred[None] = Deferred()
        rig.host.abort = lambda: late.addCallback(lambda _: real())
        rig.message("/abort", 9)
        rig.run(1)
        self.assertEqual(rig.link.texts, [labels.ABORT_IS_LATE])
        late.callback(None)
        rig.run(1)
        self.assertEqual(
            sorted(rig.link.texts[1:]), ["Aborted current turn.", "You said: one", "⏹ Aborted."]
        )

    def test_pi_that_ends(self) -> None:
        """A Pi that is gone has no turn."""
        rig = self.running()
        rig.parts.report.ready = False
        rig.message("/abort", 9)
        rig.run(1)
        self.assertEqual(rig.link.texts, ["No active turn."])

    def test_idle_after_a_turn(self) -> None:
        """While only the answer is being stored there is no turn to end."""
        rig = self.running()
        real, waiting = rig.inbox.settle, []

        def settle(seqs: Any, answers: Any = ()) -> Any:
            done: Deferred[None] = Deferred()
            waiting.append(lambda: real(seqs, answers).chainDeferred(done))
            return done

        rig.parts.settler._inbox = Replaced(rig.inbox, settle=settle)
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual(rig.parts.queue.state, "storing")
        self.assertFalse(rig.parts.brake.at_work().run)
        waiting.pop()()


class Stopping(HaltingCase):
    """The queue is cleared."""

    def test_deaf_pi(self) -> None:
        """What was cleared is told at once; the rest later."""
        rig = self.running("one", "two")
        rig.host.deaf = True
        rig.message("/stop", 9)
        rig.run(0.8)
        cleared = " Cleared 2 queued turns."
        self.assertEqual(rig.link.texts, [labels.ABORT_IS_LATE + cleared])
        self.assertEqual(rig.states(), {"handed": 1, "settled": 1, "skipped": 2})
        rig.run(31)
        self.assertEqual(rig.link.texts[1:], [labels.ABORT_UNANSWERED + cleared])

    def test_moved_and_marked(self) -> None:
        """Lanes and marks save nothing from being cleared."""
        rig = self.running("one", "two")
        queue = rig.parts.queue
        queue.hands._steering_refused = True
        first, second = (item.seq for item in queue.view())
        self.assertTrue(self.successResultOf(queue.move(second, "priority")))
        self.assertTrue(self.successResultOf(queue.mark(first, True)))
        rig.message("/stop", 9)
        rig.run(1)
        self.assertIn("Aborted current turn. Cleared 2 queued turns.", rig.link.texts)
        self.assertEqual(rig.states(), {"settled": 2, "skipped": 2})

    def test_prompt_that_pi_refused_meanwhile(self) -> None:
        """It was on its way when the command came, and is cleared all the same."""
        rig = self.started()
        waiting: Deferred[str] = Deferred()
        rig.host.prompt = lambda *_: waiting
        rig.message("one", 1)
        rig.message("/stop", 2)
        self.assertEqual(rig.states(), {"handed": 1, "admitted": 1})
        from pitelegram.errors import PiRefused

        waiting.errback(PiRefused("Cannot submit a prompt while compaction is in progress."))
        rig.run(2)
        self.assertEqual(rig.states(), {"settled": 1, "skipped": 1})
        self.assertEqual(rig.link.texts, ["No active turn. Cleared 1 queued turn."])

    def test_groups(self) -> None:
        """What is still being gathered goes too, and is counted; only what came before."""
        rig = self.running("one")
        asked: list[int | None] = []
        counts = [2, 0]

        def drop(before: int | None) -> Deferred[int]:
            asked.append(before)
            return succeed(counts.pop(0))

        rig.parts.brake._drop_groups = drop
        name = rig.message("/stop", 9)
        rig.run(1)
        self.assertIn("Aborted current turn. Cleared 3 queued turns.", rig.link.texts)
        row = rig.inbox.row(name)
        self.assertEqual(asked, [row.seq if row else None] * 2)

    def test_full_disk(self) -> None:
        """A store that cannot be written keeps no run from being ended."""
        rig = self.running("one")

        def skip(seqs: Any) -> Any:
            raise StoreFull("no space")

        rig.parts.brake._inbox = Replaced(rig.inbox, skip=skip)  # type: ignore[assignment]
        rig.message("/stop", 9)
        rig.run(0.3)
        self.assertIn("Aborted current turn." + labels.NOT_CLEARED, rig.link.texts)


class Next(HaltingCase):
    """C{/next}."""

    def test_empty(self) -> None:
        """With nothing that waits nothing is ended, busy or not; no tags leak."""
        rig = self.running()
        rig.message("/next", 9)
        rig.run(1)
        self.assertEqual(rig.link.texts, ["Queue is empty."])
        self.assertEqual(rig.states(), {"handed": 1, "settled": 1})
        rig.host.open_gate("a")
        rig.run(1)
        rig.message("/next", 10)
        self.assertEqual(rig.link.texts[-1], "Queue is empty.")

    def test_only_skipped(self) -> None:
        """What would be dropped is nothing to go on with."""
        rig = self.running("one")
        (item,) = rig.parts.queue.view()
        rig.parts.queue.mark(item.seq, True)
        rig.message("/next", 9)
        self.assertEqual(rig.link.texts, ["Queue is empty."])
        self.assertEqual(rig.states()["handed"], 1)

    def test_busy(self) -> None:
        """The run ends and exactly the next prompt runs, by itself."""
        rig = self.running("[[gate b]]", "two")
        rig.message("/next", 9)
        rig.run(1)
        self.assertEqual(rig.prompts(), [GATE, "[[gate b]]"])
        self.assertIn("Aborted current turn. Dispatching next queued turn.", rig.link.texts)
        self.assertEqual(rig.states()["held"], 1)

    def test_idle(self) -> None:
        """A prompt that Pi refused is tried at once."""
        rig = self.started()
        from pitelegram.errors import PiRefused

        rig.host.refusals = [PiRefused("No API key found")]
        rig.message("one", 1)
        rig.message("/next", 2)
        rig.run(1)
        self.assertIn("Dispatching next queued turn.", rig.link.texts)
        self.assertEqual(rig.prompts(), ["one"])

    def test_in_pis_queue(self) -> None:
        """A steering message that Pi has not taken yet is what comes next."""
        rig = self.running()
        self.steer("sooner")
        self.assertEqual(rig.parts.queue.in_pi().steering, ("sooner",))
        rig.message("/next", 9)
        rig.run(1)
        self.assertEqual(rig.prompts(), [GATE, "sooner", "sooner"])
        self.assertEqual(rig.states(), {"settled": 3})

    def test_deaf_pi(self) -> None:
        """Nothing is handed to a Pi that does not end its run."""
        rig = self.running("one")
        rig.host.deaf = True
        rig.message("/next", 9)
        rig.run(1)
        self.assertEqual(rig.link.texts, [labels.ABORT_IS_LATE])
        rig.run(31)
        self.assertEqual(rig.link.texts[1:], [labels.ABORT_UNANSWERED])
        self.assertEqual(rig.prompts(), [GATE])


class Continuing(HaltingCase):
    """C{/continue}."""

    def test_before_everything_that_waits(self) -> None:
        """It is one prompt of its own, before the others, with nothing of them in it."""
        rig = self.running("one", "two")
        rig.parts.queue.hands._steering_refused = True
        rig.parts.queue.move(rig.parts.queue.view()[1].seq, "priority")
        rig.message("/continue", 9)
        self.assertEqual(rig.link.texts, [labels.CONTINUING])
        first = rig.parts.queue.view()[0]
        self.assertEqual((first.lane, first.summary), ("control", labels.CONTINUE))
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual(rig.prompts(), [GATE, "continue", "two", "one"])
        self.assertEqual(rig.host.prompts[1][1], "[telegram|thread:Atlas] continue")

    def test_holds_no_steering_up(self) -> None:
        """It waits for the end of the run; what goes into the run does not wait for it."""
        rig = self.running()
        rig.message("/continue", 2)
        self.steer("sooner")
        self.assertEqual(rig.prompts(), [GATE, "sooner"])

    def test_twice(self) -> None:
        """Each is a prompt; the same one again in a crash is not."""
        rig = self.running()
        rig.message("/continue", 2)
        rig.message("/continue", 3)
        rig.crash()
        rig.start()
        rig.run(1)
        self.assertEqual(rig.prompts().count("continue"), 2)
        self.assertNotIn("held", rig.states())


class Ending(HaltingCase):
    """A Pi that ends while it is aborted."""

    def test_gone_in_the_abort(self) -> None:
        """Nothing is said to be hanging that is gone."""
        rig = self.running()
        gone: Deferred[Any] = Deferred()
        rig.host.abort = lambda: gone
        rig.message("/abort", 9)
        rig.parts.report.ready = False
        gone.errback(PiGone("Pi ended"))
        rig.run(1)
        self.assertEqual(rig.link.texts, ["No active turn."])

"""What was missed is found: Pi itself is asked before anything is concluded."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.errors import PiGone, StoreFull
from tests.worker.test_queue import Replaced, RigCase


class Watching(RigCase):
    """Two looks in a row, then a question to Pi."""

    def test_busy_without_a_sign(self) -> None:
        """A Pi whose end of a run was lost is asked after half a minute, and the queue goes on."""
        rig = self.started()
        rig.host._settle = lambda aborted: None  # neither event nor state reaches us
        rig.message("one", 1)
        rig.message("two", 2)
        rig.run(20)
        self.assertEqual(rig.prompts(), ["one"])
        del rig.host._settle
        real = rig.host.get_state

        def get_state() -> Any:
            rig.host._change(isStreaming=False)
            return real()

        rig.host.get_state = get_state
        rig.run(30)
        self.assertEqual(rig.prompts(), ["one", "two"])
        self.assertEqual(rig.states(), {"settled": 2})

    def test_long_work_is_left_alone(self) -> None:
        """A tool that says nothing for minutes is asked about, and nothing else happens."""
        rig = self.started()
        asked: list[float] = []
        real = rig.host.get_state

        def get_state() -> Any:
            asked.append(rig.clock.seconds())
            return real()

        rig.host.get_state = get_state
        rig.message("[[gate a]]", 1)
        asked.clear()
        rig.run(200)
        self.assertEqual(rig.states(), {"handed": 1})
        self.assertIn(len(asked), range(4, 8))
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual(rig.link.texts, ["After the gate a."])

    def test_hanging_pi_is_asked_once(self) -> None:
        """A question without an answer is not repeated on top of itself."""
        rig = self.started()
        rig.message("[[gate a]]", 1)
        asked: list[Deferred[Any]] = []

        def get_state() -> Any:
            asked.append(Deferred())
            return asked[-1]

        rig.host.get_state = get_state
        rig.run(200)
        self.assertEqual(len(asked), 1)
        asked[0].errback(PiGone("no answer in time"))
        rig.run(40)
        self.assertEqual(len(asked), 2)

    def test_work_that_failed_is_tried_again(self) -> None:
        """A skipped prompt that could not be dropped for want of room goes when there is some."""
        rig = self.started()
        rig.message("[[gate a]]", 1)
        rig.message("one", 2)
        (item,) = rig.parts.queue.view()
        rig.parts.queue.mark(item.seq, True)
        real, refusals = rig.inbox.skip, [StoreFull("no space")]

        def skip(seqs: Any) -> Any:
            if refusals:
                raise refusals.pop()
            return real(seqs)

        rig.parts.queue.hands._inbox = Replaced(rig.inbox, skip=skip)
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual(rig.states(), {"held": 1, "settled": 1})
        rig.run(3)
        self.assertEqual(rig.states(), {"skipped": 1, "settled": 1})

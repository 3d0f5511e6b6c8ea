"""No prompt goes while Pi compacts; prompts go on whether that went well, badly or never ended."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.worker.compacting import BREATH, LONGEST, STEPS, Compaction
from tests.worker.test_queue import RigCase

PAGE = Path(__file__).parents[2] / "docs" / "machines" / "compaction-gate.md"


class GateTests(SynchronousTestCase):
    """The gate under a clock."""

    def setUp(self) -> None:
        """Make one."""
        self.clock = Clock()
        self.opened = 0
        self.gate = Compaction(self.clock, self._opened)

    def _opened(self) -> None:
        self.opened += 1

    def test_once(self) -> None:
        """It closes at the beginning and opens a moment after the end."""
        self.assertFalse(self.gate.closed())
        for _ in range(2):
            self.gate.look(True)
            self.clock.advance(10)
            self.assertTrue(self.gate.closed())
        self.gate.look(False)
        self.assertTrue(self.gate.closed())
        self.clock.advance(BREATH)
        self.assertFalse(self.gate.closed())
        self.assertEqual(self.opened, 1)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_again_in_the_moment_after(self) -> None:
        """A second compaction keeps it closed."""
        self.gate.look(True)
        self.gate.look(False)
        self.gate.look(True)
        self.clock.advance(1)
        self.assertTrue(self.gate.closed())

    def test_no_end(self) -> None:
        """After five minutes it opens; the end that comes later is no second opening too many."""
        self.gate.look(True)
        self.clock.advance(LONGEST)
        self.assertFalse(self.gate.closed())
        self.gate.look(True)
        self.assertFalse(self.gate.closed())
        self.gate.look(False)
        self.assertEqual(self.opened, 2)
        self.gate.look(True)
        self.assertTrue(self.gate.closed())

    def test_stop(self) -> None:
        """No timer is left."""
        self.gate.look(True)
        self.gate.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_page(self) -> None:
        """The page draws this table."""
        found = re.findall(r"^    (\S+) --> (\S+): (\S+)$", PAGE.read_text("utf-8"), re.M)
        drawn = {(was, event): then for was, then, event in found if was != "[*]"}
        self.assertEqual(drawn, dict(STEPS))


class Compacting(RigCase):
    """The gate in a worker."""

    def test_waits_and_goes_on(self) -> None:
        """Nothing is given meanwhile, and the next goes without being asked."""
        rig = self.started()
        rig.host._change(isCompacting=True)
        self.assertEqual(rig.parts.report.state()["activity"], "compacting")
        rig.message("one", 1)
        rig.run(10)
        self.assertEqual(rig.prompts(), [])
        rig.host._change(isCompacting=False)
        self.assertEqual(rig.prompts(), [])
        rig.run(1)
        self.assertEqual(rig.prompts(), ["one"])

    def test_compacting_comes_first(self) -> None:
        """A compaction within a run is shown as such."""
        rig = self.started()
        rig.message("[[gate a]]", 1)
        rig.host._change(isCompacting=True)
        self.assertEqual(rig.parts.report.state()["activity"], "compacting")
        self.assertIn("compacting", rig.parts.report.view(None).activity)

    def test_no_steering_meanwhile(self) -> None:
        """A priority prompt waits for the end of the compaction, not of the run."""
        rig = self.started()
        rig.message("[[gate a]]", 1)
        rig.host._change(isCompacting=True)
        rig.parts.follower.control("r", {"type": "steer", "message": "sooner"})
        rig.run(1)
        self.assertEqual(rig.prompts(), ["[[gate a]]"])
        rig.host._change(isCompacting=False)
        rig.run(1)
        self.assertEqual(rig.prompts(), ["[[gate a]]", "sooner"])

    def test_refused_at_its_beginning(self) -> None:
        """A prompt that Pi refused for a compaction that nobody told goes as soon as that is over."""
        rig = self.started()
        rig.host._state["isCompacting"] = True
        rig.message("one", 1)
        self.assertEqual((rig.prompts(), rig.parts.queue.state), ([], "waiting"))
        rig.host._state["isCompacting"] = False
        rig.host._change(isCompacting=True)
        rig.host._change(isCompacting=False)
        rig.run(0.2)
        self.assertEqual(rig.prompts(), ["one"])

    def test_end_that_nobody_told(self) -> None:
        """A Pi that says when asked that it is done is believed after half a minute."""
        rig = self.started()
        rig.host._change(isCompacting=True)
        rig.message("one", 1)
        real = rig.host.get_state

        def get_state() -> object:
            rig.host._change(isCompacting=False)
            return real()

        rig.host.get_state = get_state
        rig.run(40)
        self.assertEqual(rig.prompts(), ["one"])

    def test_never_ends(self) -> None:
        """After five minutes the prompt is tried; a refusal keeps it."""
        rig = self.started()
        rig.host._change(isCompacting=True)
        rig.message("one", 1)
        rig.run(310)
        self.assertEqual((rig.prompts(), rig.states()), ([], {"held": 1}))
        self.assertEqual(rig.parts.queue.state, "waiting")
        rig.host._state["isCompacting"] = False
        rig.run(70)
        self.assertEqual(rig.prompts(), ["one"])

    def test_typing(self) -> None:
        """A compaction is shown as typing, which ends with it."""
        rig = self.started()
        rig.host._change(isCompacting=True)
        rig.run(10)
        self.assertGreater(len([n for n, _, _ in rig.link.api_calls if n == "sendChatAction"]), 6)
        rig.host._change(isCompacting=False)
        rig.link.api_calls.clear()
        rig.run(10)
        self.assertNotIn("sendChatAction", [name for name, _, _ in rig.link.api_calls])

    def test_stop_leaves_no_timer(self) -> None:
        """A worker that ends is not called by a compaction's timer."""
        rig = self.started()
        rig.host._change(isCompacting=True)
        rig.parts.queue.close()
        rig.parts.watch.stopService()
        due = [call for call in rig.clock.getDelayedCalls() if call.func.__name__ == "_due"]
        self.assertEqual(due, [])

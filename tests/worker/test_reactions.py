"""Reactions to messages that wait: moved, skipped, and left alone where it is too late."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.bridge.reactions import Wish
from pitelegram.errors import StoreFull
from pitelegram.testing.worker import CHAT, WorkerRig
from pitelegram.worker.reactions import Reactions
from tests.worker.test_queue import Replaced, RigCase


class ReactingCase(RigCase):
    """A worker with a run at a gate, behind which prompts wait."""

    def setUp(self) -> None:
        """Start the run."""
        super().setUp()
        self.started()
        self.rig.message("[[gate a]]", 1)

    def react(self, message_id: int, new: str = "", old: str = "") -> None:
        """The operator changes his reactions."""
        body = {
            "chat": {"id": CHAT},
            "message_id": message_id,
            "old_reaction": [{"type": "emoji", "emoji": each} for each in old],
            "new_reaction": [{"type": "emoji", "emoji": each} for each in new],
        }
        self.rig.forward("message_reaction", body)
        self.assertEqual(self.successResultOf(self.rig.receipt), ("accepted", ""))

    def waiting(self, *texts: str) -> None:
        """Messages from number 2 that wait."""
        for number, text in enumerate(texts, 2):
            self.rig.message(text, number)

    def go(self) -> list[str]:
        """Let all run; returns the prompts behind the first."""
        self.rig.host.open_gate("a")
        self.rig.run(1)
        return self.rig.prompts()[1:]


class Reacting(ReactingCase):
    """What each reaction does."""

    def test_priority_is_steering(self) -> None:
        """A positive reaction sends the prompt at once while Pi works."""
        self.waiting("one", "two")
        self.react(3, "👍")
        self.assertEqual(self.rig.prompts(), ["[[gate a]]", "two"])
        self.assertEqual([lane for _, _, lane in self.rig.host.prompts], ["normal", "priority"])

    def test_priority_and_back(self) -> None:
        """Each change appends at the end of the lane it goes to."""
        self.rig.host.refusals = []
        self.rig.parts.queue.hands._steering_refused = True  # Pi takes no steering in this run
        self.waiting("one", "two", "three", "four")
        self.react(4, "🔥")
        self.react(3, "⚡")
        self.react(2, "❤")
        self.react(2, old="❤")
        self.assertEqual(
            [(item.prompt.partition("] ")[2], item.lane) for item in self.rig.parts.queue.view()],
            [("three", "priority"), ("two", "priority"), ("four", "normal"), ("one", "normal")],
        )
        self.assertEqual(self.go(), ["three", "two", "four", "one"])

    def test_skip_and_keep(self) -> None:
        """A negative reaction drops the prompt at its turn, without inference and without a word."""
        self.waiting("one", "two", "three")
        self.react(2, "👎")
        self.react(3, "💩")
        self.assertEqual([item.skip for item in self.rig.parts.queue.view()], [True, True, False])
        self.assertEqual(self.rig.states()["held"], 3)
        self.react(3, old="💩")
        self.assertEqual(self.go(), ["two", "three"])
        self.assertEqual(self.rig.states(), {"settled": 6, "skipped": 1})
        self.assertEqual(len(self.rig.link.texts), 3)

    def test_skip_wins(self) -> None:
        """A prompt with both is in the priority lane and dropped at its turn."""
        self.waiting("one", "two")
        self.rig.parts.queue.hands._steering_refused = True
        self.react(3, "👍👎")
        (first, _) = self.rig.parts.queue.view()
        self.assertEqual((first.lane, first.skip), ("priority", True))
        self.assertEqual(self.go(), ["one"])

    def test_too_late(self) -> None:
        """What was handed, or is over, is left alone."""
        self.react(1, "👎")
        self.assertEqual(self.rig.states(), {"handed": 1, "settled": 1})
        self.go()
        self.react(1, "👍")
        self.assertEqual(self.rig.states(), {"settled": 3})
        self.assertEqual(self.rig.link.texts, ["After the gate a."])

    def test_unknown_message(self) -> None:
        """A reaction to a message that never came here changes nothing."""
        self.waiting("one")
        self.react(77, "👍")
        self.assertEqual(self.go(), ["one"])

    def test_no_write_without_a_change(self) -> None:
        """What is so already is not written again."""
        self.waiting("one")
        self.react(2, "👎")

        def refuse(*arguments: Any) -> Any:
            raise AssertionError("nothing should be written")

        queue = self.rig.parts.queue
        queue._inbox = Replaced(self.rig.inbox, move=refuse, mark=refuse)  # type: ignore[assignment]
        self.react(2, "👎💩", "👎")
        self.react(2, "🤔👎", "👎")
        (item,) = queue.view()
        self.assertEqual(self.successResultOf(queue.mark(item.seq, True)), True)
        self.assertEqual(self.successResultOf(queue.move(item.seq, "normal")), True)

    def test_control_prompt_keeps_its_lane(self) -> None:
        """What runs before everything is not put behind by a reaction; it can be skipped."""
        self.rig.message("/continue", 2)
        self.react(2, "👍👎")
        (item,) = self.rig.parts.queue.view()
        self.assertEqual((item.lane, item.skip), ("control", True))

    def test_member_of_a_group(self) -> None:
        """A reaction to any message of a prompt counts for the prompt."""
        rig = self.rig
        self.waiting("first")
        (row,) = rig.inbox.rows("held")
        rig.inbox.admit("m", "telegram", "message", b"{}", None, None, CHAT, None, 3)
        rig.inbox.hold_group([row.seq, row.seq + 1], "both", {})
        self.react(3, "👎")
        (item,) = rig.parts.queue.view()
        self.assertEqual((item.seq, item.skip), (row.seq, True))


class Gathering(ReactingCase):
    """A message that is still being made into a prompt."""

    def test_wish_is_taken_along(self) -> None:
        """It is written to the row and the group is closed, without waiting for its files."""
        rig, flushed = self.rig, []
        rig.inbox.admit("g", "telegram", "message", b"{}", None, None, CHAT, None, 9)
        (row,) = rig.inbox.rows("admitted")

        def flush(chat_id: int, message_id: int) -> Deferred[None]:
            flushed.append((chat_id, message_id))
            return Deferred()

        reactions = Reactions(rig.inbox, rig.parts.queue, flush)
        done = reactions.apply(CHAT, 9, Wish(priority=True, skip=True))
        self.successResultOf(done)
        self.assertEqual(flushed, [(CHAT, 9)])
        rig.inbox.hold(row.seq, "gathered")
        (item,) = rig.parts.queue.view()
        self.assertEqual((item.lane, item.skip), ("priority", True))


class Undecided(RigCase):
    """A reaction that was admitted and is not done yet."""

    def _unresolved(self) -> WorkerRig:
        """Two prompts wait in an idle worker that cannot do orders now."""
        rig = self.started()
        rig.parts.queue.close()
        rig.message("one", 1)
        rig.message("two", 2)
        rig.parts.orders._working = rig.clock  # type: ignore[assignment]
        body = {"chat": {"id": CHAT}, "message_id": 1, "new_reaction": []}
        rig.forward(
            "message_reaction", {**body, "new_reaction": [{"type": "emoji", "emoji": "👎"}]}
        )
        return rig

    def test_only_its_item_waits(self) -> None:
        """The others have their turns; it has its own once the reaction is done."""
        rig = self._unresolved()
        rig.parts.queue.open()
        rig.run(1)
        self.assertEqual(rig.prompts(), ["two"])
        rig.parts.orders._working = None
        rig.parts.orders.kick()
        rig.run(1)
        self.assertEqual(rig.prompts(), ["two"])
        self.assertEqual(rig.states(), {"settled": 2, "skipped": 1})

    def test_after_a_crash(self) -> None:
        """The next process does it before the item has its turn."""
        rig = self._unresolved()
        rig.crash()
        rig.start()
        rig.run(1)
        self.assertEqual(rig.prompts(), ["two"])
        self.assertEqual(rig.states(), {"settled": 2, "skipped": 1})

    def test_full_disk(self) -> None:
        """A reaction that could not be written is tried again, and its item waits so long."""
        rig = self.started()
        rig.message("[[gate a]]", 1)
        rig.message("one", 2)
        real, refusals = rig.inbox.mark, [StoreFull("no space")]

        def mark(*arguments: Any) -> Any:
            if refusals:
                raise refusals.pop()
            return real(*arguments)

        rig.parts.queue._inbox = Replaced(rig.inbox, mark=mark)  # type: ignore[assignment]
        body = {"chat": {"id": CHAT}, "message_id": 2}
        rig.forward(
            "message_reaction", {**body, "new_reaction": [{"type": "emoji", "emoji": "👎"}]}
        )
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual(rig.prompts(), ["[[gate a]]"])
        rig.run(4)
        self.assertEqual(rig.states(), {"settled": 2, "skipped": 1})
        self.assertEqual(self.flushLoggedErrors(), [])

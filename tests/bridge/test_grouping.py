"""What belongs together, by the clock alone."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.content import read_content
from pitelegram.bridge.grouping import Piece, Windows, piece_of

PLACE = (100, 7)


class GroupingCase(SynchronousTestCase):
    """Windows whose groups are lists of message ids."""

    def setUp(self) -> None:
        """No piece yet."""
        self.clock = Clock()
        self.groups: list[list[int]] = []
        self.may_rejoin = True
        self.asked: list[int] = []
        self.windows = Windows(self.clock, self._closed, self._rejoin)
        self.ids = 0

    def _closed(self, pieces: Sequence[Piece]) -> None:
        self.groups.append([piece.message_id for piece in pieces])

    def _rejoin(self, seq: int) -> bool:
        self.asked.append(seq)
        return self.may_rejoin

    def piece(self, message_id: int | None = None, place: Any = PLACE, **fields: Any) -> Piece:
        """Return a message as a piece that is admitted now."""
        self.ids += 1
        number = self.ids if message_id is None else message_id
        content = read_content({"message_id": number, **fields})
        return piece_of(self.ids, place, self.clock.seconds(), content)

    def come(self, *batch: dict[str, Any], place: Any = PLACE) -> None:
        """Messages come, all in admission at the same time."""
        pieces = [self.piece(place=place, **fields) for fields in batch]
        for _ in pieces:
            self.windows.expect(place)
        for piece in pieces:
            self.windows.arrived(place, piece)

    def still(self) -> None:
        """Nothing is open any more."""
        self.assertEqual(self.windows.groups(), [])
        self.assertEqual(self.clock.getDelayedCalls(), [])


def text(words: str = "hi", **fields: Any) -> dict[str, Any]:
    """A text of the operator."""
    return {"text": words, **fields}


def forward(**fields: Any) -> dict[str, Any]:
    """Something forwarded."""
    origin = {"type": "hidden_user", "sender_user_name": "Eve"}
    return {"text": "news", "forward_origin": origin, **fields}


def album(name: str = "A", **fields: Any) -> dict[str, Any]:
    """A picture of an album."""
    return {"photo": [{"file_id": "F"}], "media_group_id": name, **fields}


class SingleTests(GroupingCase):
    """What waits for nothing."""

    def test_at_once(self) -> None:
        """A text, a photo and a reply leave in the same instant."""
        self.come(text())
        self.come({"photo": [{"file_id": "F"}]})
        self.come(text(reply_to_message={"from": {"first_name": "A"}, "text": "x"}))
        self.assertEqual(self.groups, [[1], [2], [3]])
        self.still()

    def test_texts_in_a_batch(self) -> None:
        """Texts that come together stay apart, in order."""
        self.come(*[text() for _ in range(5)])
        self.assertEqual(self.groups, [[1], [2], [3], [4], [5]])
        self.still()

    def test_text_before_what_is_no_prompt(self) -> None:
        """A text waits while another update is stored, and no longer, whatever that is."""
        self.windows.expect(PLACE)
        self.windows.expect(PLACE)
        self.windows.arrived(PLACE, self.piece(**text()))
        self.assertEqual(self.groups, [])
        self.windows.arrived(PLACE, None)
        self.assertEqual(self.groups, [[1]])
        self.still()


class AlbumTests(GroupingCase):
    """Albums."""

    def test_one(self) -> None:
        """Parts that come one after the other are one group, 1.2 s after the last."""
        for _ in range(10):
            self.come(album())
            self.clock.advance(1.1)
        self.assertEqual(self.groups, [])
        self.clock.advance(0.1)
        self.assertEqual(self.groups, [list(range(1, 11))])
        self.still()

    def test_message_order(self) -> None:
        """Updates out of order are put in order."""
        self.come(album(message_id=3), album(message_id=1), album(message_id=2))
        self.clock.advance(1.2)
        self.assertEqual(self.groups, [[1, 2, 3]])

    def test_two(self) -> None:
        """Two albums, with a text between, mixed: each is whole, and nothing waits for them."""
        self.come(album("A"), album("B"), text(), album("A"), album("B"))
        self.assertEqual(self.groups, [[3]])
        self.clock.advance(1.2)
        self.assertEqual(self.groups, [[3], [1, 4], [2, 5]])
        self.still()

    def test_too_late(self) -> None:
        """A part after the window is another prompt."""
        self.come(album())
        self.clock.advance(1.2)
        self.come(album())
        self.clock.advance(1.2)
        self.assertEqual(self.groups, [[1], [2]])

    def test_places(self) -> None:
        """The same album id in another Thread is another album."""
        self.come(album(), place=(100, 7))
        self.come(album(), place=(100, 8))
        self.clock.advance(1.2)
        self.assertEqual(self.groups, [[1], [2]])


class SplitTests(GroupingCase):
    """Pasted texts that a client cut."""

    def test_three_parts(self) -> None:
        """Long parts and a short last one are one prompt, a second after it."""
        self.come(text("a" * 4096), text("b" * 4096), text("c" * 100))
        self.assertEqual(self.groups, [])
        self.clock.advance(1.0)
        self.assertEqual(self.groups, [[1, 2, 3]])
        self.still()

    def test_threshold(self) -> None:
        """3,600 UTF-16 units may have been cut; fewer were not."""
        self.come(text("a" * 3599))
        self.come(text("😀" * 1799))
        self.assertEqual(self.groups, [[1], [2]])
        self.come(text("😀" * 1800), text("tail"))
        self.clock.advance(1)
        self.assertEqual(self.groups, [[1], [2], [3, 4]])

    def test_not_a_part(self) -> None:
        """Too far, too late, a caption, a reply, something forwarded, another Thread."""
        reply = {"reply_to_message": {"from": {"first_name": "A"}, "text": "x"}}
        for other in (
            text(message_id=114),
            text(message_id=100),
            {"caption": "c", "photo": [{"file_id": "F"}], "message_id": 102},
            text(message_id=102, **reply),
            forward(message_id=102),
        ):
            self.groups.clear()
            self.come(text("a" * 4000, message_id=101))
            self.come(other)
            self.assertEqual(self.groups[0], [101], other)
            self.clock.advance(2)
            self.assertEqual(len(self.groups), 2)
            self.still()
        self.groups.clear()
        self.come(text("a" * 4000, message_id=101))
        self.clock.advance(1.01)
        self.come(text(message_id=102))
        self.assertEqual(self.groups, [[101], [102]])

    def test_gap(self) -> None:
        """What other chats got meanwhile took numbers: up to eleven of them are no matter."""
        self.come(text("a" * 4096, message_id=101), text("b" * 4096, message_id=113))
        self.come(text("c", message_id=125))
        self.clock.advance(1)
        self.assertEqual(self.groups, [[101, 113, 125]])

    def test_reply(self) -> None:
        """Of a long reply that was cut only the first part is a reply."""
        reply = {"reply_to_message": {"from": {"first_name": "A"}, "text": "x"}}
        self.come(text("a" * 4096, **reply), text("b" * 4096), text("c"))
        self.clock.advance(1)
        self.assertEqual(self.groups, [[1, 2, 3]])
        self.still()

    def test_another_thread(self) -> None:
        """Threads are apart."""
        self.come(text("a" * 4000), place=(100, 7))
        self.come(text("b"), place=(100, 8))
        self.clock.advance(1)
        self.assertEqual(self.groups, [[2], [1]])


class ForwardTests(GroupingCase):
    """Forwards and comments."""

    def test_comment_behind(self) -> None:
        """Within a second it completes the group at once."""
        self.come(forward())
        self.clock.advance(0.9)
        self.come(text())
        self.assertEqual(self.groups, [[1, 2]])
        self.still()

    def test_comment_before(self) -> None:
        """In one batch the comment waits for what follows."""
        self.come(text(), forward())
        self.clock.advance(0.3)
        self.assertEqual(self.groups, [[1, 2]])
        self.still()

    def test_comment_that_left(self) -> None:
        """A comment that still waits in the queue is taken back."""
        self.come(text())
        self.clock.advance(0.8)
        self.come(forward())
        self.clock.advance(0.3)
        self.assertEqual((self.groups, self.asked), ([[1], [1, 2]], [1]))
        self.still()

    def test_comment_that_pi_has(self) -> None:
        """One that was handed is not."""
        self.may_rejoin = False
        self.come(text())
        self.come(forward())
        self.clock.advance(1)
        self.assertEqual(self.groups, [[1], [2]])

    def test_comment_long_before(self) -> None:
        """One of more than a second ago is not asked for."""
        self.come(text())
        self.clock.advance(1.1)
        self.come(forward())
        self.clock.advance(1)
        self.assertEqual((self.groups, self.asked), ([[1], [2]], []))

    def test_no_comment(self) -> None:
        """A forward goes alone after a second."""
        self.come(forward())
        self.clock.advance(0.99)
        self.assertEqual(self.groups, [])
        self.clock.advance(0.01)
        self.assertEqual(self.groups, [[1]])
        self.still()

    def test_several(self) -> None:
        """Several forwards of one batch and one comment are one turn, in either order."""
        self.come(text(), forward(), forward(), forward())
        self.clock.advance(0.3)
        self.come(forward(), forward(), text())
        self.assertEqual(self.groups, [[1, 2, 3, 4], [5, 6, 7]])
        self.still()

    def test_second_of_a_kind(self) -> None:
        """A second comment, or a forward that does not belong to the batch, closes the group."""
        self.come(text(), forward(), text())
        self.assertEqual(self.groups, [[1, 2], [3]])
        self.groups.clear()
        self.clock.advance(2)
        self.come(forward())
        self.clock.advance(0.5)
        self.come(forward())
        self.assertEqual(self.groups, [[4]])
        self.clock.advance(1)
        self.assertEqual(self.groups, [[4], [5]])
        self.still()

    def test_both_orders_in_one_batch(self) -> None:
        """A forward with its comment behind, and a comment with its forward, are two turns."""
        self.come(forward(), text(), text(), forward())
        self.clock.advance(0.3)
        self.assertEqual(self.groups, [[1, 2], [3, 4]])

    def test_forwarded_album(self) -> None:
        """It comes slowly and is one group with its comment."""
        self.come(text(), forward(**album()))
        self.clock.advance(1)
        self.come(forward(**album()))
        self.clock.advance(1.2)
        self.assertEqual(self.groups, [[1, 2, 3]])
        self.still()

    def test_not_a_comment(self) -> None:
        """A photo, a reply or a long text is none."""
        reply = {"reply_to_message": {"from": {"first_name": "A"}, "text": "x"}}
        for other in ({"photo": [{"file_id": "F"}]}, text(**reply), text("a" * 4000)):
            self.groups.clear()
            self.come(forward())
            self.come(other)
            self.clock.advance(1)
            self.assertEqual([len(group) for group in self.groups], [1, 1])


class EndTests(GroupingCase):
    """Closing early, dropping, stopping."""

    def test_flush(self) -> None:
        """The group of a piece is closed now; others stay open."""
        self.come(album("A"), album("B"))
        self.windows.flush(1)
        self.windows.flush(99)
        self.assertEqual(self.groups, [[1]])
        self.clock.advance(1.2)
        self.assertEqual(self.groups, [[1], [2]])

    def test_drop_and_stop(self) -> None:
        """What is dropped, or left at the end, is told of no more."""
        self.come(album("A"), album("B"), forward())
        self.windows.drop(frozenset({1, 3}))
        self.assertEqual([group.pieces[0].seq for group in self.windows.groups()], [2])
        self.windows.stop()
        self.still()
        self.clock.advance(5)
        self.assertEqual(self.groups, [])

    def test_recovered(self) -> None:
        """After a crash the times of admission count, not that of the start."""
        self.clock.advance(100)
        old = [self.piece(**forward()), self.piece(**text())]
        later = Piece(**{**_fields(old[1]), "at": old[0].at + 30})
        for _ in range(2):
            self.windows.expect(PLACE)
        self.windows.arrived(PLACE, old[0])
        self.windows.arrived(PLACE, later)
        self.assertEqual(self.groups, [[1], [2]])


def _fields(piece: Piece) -> dict[str, Any]:
    return {name: getattr(piece, name) for name in Piece.__slots__ if not name.startswith("__")}


class RandomTests(GroupingCase):
    """Anything in any order."""

    def test_each_leaves_once(self) -> None:
        """Whatever comes when: every piece leaves in exactly one group, and no timer is left."""
        chance = Random(11)
        for _ in range(300):
            self.setUp()
            self.may_rejoin = False
            reply = {"reply_to_message": {"from": {"first_name": "A"}, "text": "x"}}
            kinds = [text(), text("a" * 4000), forward(), album("A"), album("B"), text(**reply)]
            kinds += [forward(**album("C")), {"photo": [{"file_id": "F"}]}]
            for _ in range(chance.randrange(1, 12)):
                batch = [chance.choice(kinds) for _ in range(chance.randrange(1, 5))]
                self.come(*batch, place=chance.choice([(1, 1), (1, 2)]))
                self.clock.advance(chance.choice([0, 0, 0.1, 0.4, 1.0, 1.3]))
                if chance.random() < 0.1:
                    self.windows.flush(chance.randrange(1, self.ids + 1))
            self.clock.advance(2)
            self.still()
            left = [number for group in self.groups for number in group]
            self.assertEqual(sorted(left), list(range(1, self.ids + 1)))
            self.assertTrue(all(group == sorted(group) for group in self.groups))

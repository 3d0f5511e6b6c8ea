"""What reactions ask of the queue."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.reactions import PRIORITY, SKIP, Wish, wish

EMOJI = st.frozensets(st.sampled_from([*PRIORITY, *SKIP, "🤔", "❤\ufe0f", "⚡\ufe0f"]), max_size=4)


class WishTests(SynchronousTestCase):
    """Old and new are compared, each set for itself."""

    def test_each_emoji(self) -> None:
        """Every emoji of a set asks for it, and takes it back."""
        for emoji in PRIORITY:
            self.assertEqual(wish((), (emoji,)), Wish(priority=True))
            self.assertEqual(wish((emoji,), ()), Wish(priority=False))
        for emoji in SKIP:
            self.assertEqual(wish((), (emoji,)), Wish(skip=True))
            self.assertEqual(wish((emoji,), ()), Wish(skip=False))

    def test_variation_selector(self) -> None:
        """With and without the selector it is the same emoji."""
        self.assertEqual(wish((), ("❤\ufe0f",)), Wish(priority=True))
        self.assertEqual(wish(("❤\ufe0f",), ("❤",)), Wish())

    def test_independent(self) -> None:
        """One may come while the other goes."""
        self.assertEqual(wish(("👍",), ("👎",)), Wish(priority=False, skip=True))
        self.assertEqual(wish((), ("🔥", "💩")), Wish(priority=True, skip=True))

    def test_nothing(self) -> None:
        """Another emoji of the same set, or one of none, changes nothing."""
        self.assertEqual(wish(("👍",), ("🔥",)), Wish())
        self.assertEqual(wish(("👎",), ("👎", "👻")), Wish())
        self.assertEqual(wish((), ("🤔",)), Wish())

    @given(EMOJI, EMOJI)
    def test_there_and_back(self, old: frozenset[str], new: frozenset[str]) -> None:
        """What one change asks, the opposite change takes back."""
        there, back = wish(old, new), wish(new, old)
        for one, other in ((there.priority, back.priority), (there.skip, back.skip)):
            self.assertEqual(one, None if other is None else not other)
        self.assertEqual(wish(new, new), Wish())

"""What a reaction to a waiting message asks of the queue."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

PRIORITY = ("👍", "⚡", "❤", "🕊", "🔥")
"""Emoji that put a waiting prompt into the priority lane, the preferred one first."""
SKIP = ("👎", "👻", "💔", "💩", "🗑")
"""Emoji that have a waiting prompt dropped when its turn comes, the preferred one first."""

_VARIATION = "\ufe0f"


@attrs.frozen
class Wish:
    """What changed between two sets of reactions.

    @ivar priority: into the priority lane, back to the normal one, or None for no change.
    @ivar skip: to be dropped at its turn, to be kept, or None for no change.
    """

    priority: bool | None = None
    skip: bool | None = None


def wish(old: Iterable[str], new: Iterable[str]) -> Wish:
    """Compare the reactions before and after, each of the two sets for itself.

    One emoji of a set in place of another of the same set changes nothing, and what is in neither
    set is nobody's wish.

    @param old: emoji before; Telegram sends some with a variation selector and some without.
    @param new: emoji after.
    """
    before, after = _plain(old), _plain(new)
    return Wish(_changed(before, after, PRIORITY), _changed(before, after, SKIP))


def _plain(emoji: Iterable[str]) -> frozenset[str]:
    return frozenset(each.replace(_VARIATION, "") for each in emoji)


def _changed(before: frozenset[str], after: frozenset[str], kinds: tuple[str, ...]) -> bool | None:
    was, now = bool(before & set(kinds)), bool(after & set(kinds))
    return None if was == now else now

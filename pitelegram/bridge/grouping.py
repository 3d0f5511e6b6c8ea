"""Which messages belong together; drawing and table in C{docs/machines/grouping.md}."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from pitelegram.bridge.content import Content
from pitelegram.bridge.entities import units

ALBUM_SECONDS = 1.2
SPLIT_SECONDS = 1.0
SPLIT_UNITS = 3600
"""A text of this length may be the first part of a longer one that the client cut."""
SPLIT_IDS = 12
"""Part numbers may be this far apart."""
COMMENT_SECONDS = 1.0
BATCH_SECONDS = 0.3
"""Messages that were forwarded together come within this time of each other."""

Place = tuple[int | None, int | None]
"""Chat and Thread."""


class Kind(Enum):
    """What a group waits for; the states of the table."""

    ALBUM = "album"
    SPLIT = "split"
    FORWARDS = "forwards"
    COMMENT = "comment"
    COMMENTED = "commented"


@attrs.frozen(kw_only=True)
class Piece:
    """One message, as far as grouping goes.

    @ivar at: when it was admitted, seconds.
    @ivar plain: the operator's own text and nothing else.
    @ivar reply: it answers a message.
    @ivar length: of its text in UTF-16 units.
    """

    seq: int
    message_id: int
    place: Place
    at: float
    plain: bool = False
    reply: bool = False
    length: int = 0
    forward: bool = False
    album: str | None = None

    @property
    def long(self) -> bool:
        """Whether it may have been cut."""
        return self.plain and self.length >= SPLIT_UNITS

    @property
    def comment(self) -> bool:
        """Whether it may be the comment on something forwarded."""
        return self.plain and not self.reply and not self.long


def piece_of(seq: int, place: Place, at: float, content: Content) -> Piece:
    """Return a message as grouping sees it."""
    return Piece(
        seq=seq,
        message_id=content.message_id,
        place=place,
        at=at,
        plain=content.only_text,
        reply=content.reply is not None,
        length=units(content.typed),
        forward=content.forward is not None,
        album=content.album,
    )


@attrs.define(eq=False)
class Group:
    """Pieces that belong together so far."""

    kind: Kind
    place: Place
    pieces: list[Piece]
    timer: IDelayedCall | None = None

    @property
    def last(self) -> Piece:
        """The piece that came last."""
        return self.pieces[-1]


class Windows:
    """Collects pieces; each leaves it in exactly one group.

    At most one group per place is open beside albums: whatever does not belong to it closes it.

    @param closed: called with the pieces of a group, in message order, when nothing more is awaited.
    @param rejoin: asked whether a comment that left already can still be taken back.
    """

    def __init__(
        self,
        clock: IReactorTime,
        closed: Callable[[Sequence[Piece]], None],
        rejoin: Callable[[int], bool],
    ) -> None:
        self._clock = clock
        self._closed = closed
        self._rejoin = rejoin
        self._albums: dict[tuple[Place, str], Group] = {}
        self._open: dict[Place, Group] = {}
        self._recent: dict[Place, Piece] = {}
        self._expected: dict[Place, int] = {}

    def expect(self, place: Place) -> None:
        """A message of that place is being stored; L{arrived} follows, whatever becomes of it."""
        self._expected[place] = self._expected.get(place, 0) + 1

    def arrived(self, place: Place, piece: Piece | None) -> None:
        """It is stored.

        @param piece: None when it is no prompt, or was not stored.
        """
        left = self._expected.pop(place, 1) - 1
        if left > 0:
            self._expected[place] = left
        if piece is not None:
            self._add(piece)
        group = self._open.get(place)
        if left <= 0 and group is not None and group.kind is Kind.COMMENT:
            self._close(group)

    def idle(self, place: Place) -> bool:
        """Whether nothing is open there, and at most one message is being stored."""
        return place not in self._open and self._expected.get(place, 0) <= 1

    def groups(self) -> list[Group]:
        """Return the open groups."""
        return [*self._albums.values(), *self._open.values()]

    def flush(self, seq: int) -> None:
        """Close the group that has this piece, if any has."""
        for group in self.groups():
            if any(piece.seq == seq for piece in group.pieces):
                self._close(group)

    def drop(self, seqs: frozenset[int]) -> None:
        """Forget the groups that have one of these pieces."""
        for group in self.groups():
            if any(piece.seq in seqs for piece in group.pieces):
                self._forget(group)

    def stop(self) -> None:
        """Forget everything: the rows are still C{admitted}, and come again at the next start."""
        for group in self.groups():
            self._forget(group)
        self._recent.clear()

    # --- inside ----------------------------------------------------------------------------------

    def _add(self, piece: Piece) -> None:
        recent = self._recent.pop(piece.place, None)
        if piece.album is not None and not piece.forward:
            self._add_to_album(piece)
            return
        group = self._open.get(piece.place)
        if group is not None and self._joins(group, piece):
            self._join(group, piece)
            return
        if group is not None:
            self._close(group)
        if piece.forward:
            taken = recent is not None and piece.at - recent.at <= COMMENT_SECONDS
            if taken and recent is not None and self._rejoin(recent.seq):
                self._begin(Kind.COMMENTED, recent, piece)
            else:
                self._begin(Kind.FORWARDS, piece)
        elif piece.long:
            self._begin(Kind.SPLIT, piece)
        elif piece.comment and self._expected.get(piece.place):
            self._begin(Kind.COMMENT, piece)
        else:
            self._leave(piece)

    def _add_to_album(self, piece: Piece) -> None:
        assert piece.album is not None
        key = piece.place, piece.album
        group = self._albums.get(key)
        if group is None:
            group = self._albums[key] = Group(Kind.ALBUM, piece.place, [])
        group.pieces.append(piece)
        self._wait(group, ALBUM_SECONDS)

    def _joins(self, group: Group, piece: Piece) -> bool:
        gap = piece.at - group.last.at
        if group.kind is Kind.SPLIT:
            ids = piece.message_id - group.last.message_id
            part = piece.plain and not piece.reply
            return part and 0 < ids <= SPLIT_IDS and gap <= SPLIT_SECONDS
        if piece.forward:
            if group.kind is Kind.COMMENT:
                return gap <= COMMENT_SECONDS
            same = piece.album is not None and piece.album == group.last.album
            return gap <= (ALBUM_SECONDS if same else BATCH_SECONDS)
        return group.kind is Kind.FORWARDS and piece.comment and gap <= COMMENT_SECONDS

    def _join(self, group: Group, piece: Piece) -> None:
        group.pieces.append(piece)
        if group.kind is Kind.SPLIT:
            self._wait(group, SPLIT_SECONDS)
        elif not piece.forward:
            self._close(group)
        else:
            self._wait_for_forwards(group)

    def _begin(self, kind: Kind, *pieces: Piece) -> None:
        group = Group(kind, pieces[0].place, list(pieces))
        self._open[group.place] = group
        if kind is Kind.SPLIT:
            self._wait(group, SPLIT_SECONDS)
        elif kind is not Kind.COMMENT:
            self._wait_for_forwards(group)

    def _wait_for_forwards(self, group: Group) -> None:
        seconds = COMMENT_SECONDS
        if group.kind in (Kind.COMMENT, Kind.COMMENTED):
            group.kind, seconds = Kind.COMMENTED, BATCH_SECONDS
        self._wait(group, ALBUM_SECONDS if group.last.album is not None else seconds)

    def _wait(self, group: Group, seconds: float) -> None:
        if group.timer is not None and group.timer.active():
            group.timer.reset(seconds)
        else:
            group.timer = self._clock.callLater(seconds, self._close, group)

    def _close(self, group: Group) -> None:
        self._forget(group)
        if group.kind is Kind.COMMENT:
            self._recent[group.place] = group.last
        self._closed(sorted(group.pieces, key=lambda piece: (piece.message_id, piece.seq)))

    def _leave(self, piece: Piece) -> None:
        if piece.comment:
            self._recent[piece.place] = piece
        self._closed([piece])

    def _forget(self, group: Group) -> None:
        if group.timer is not None and group.timer.active():
            group.timer.cancel()
        if self._open.get(group.place) is group:
            del self._open[group.place]
        for key, album in list(self._albums.items()):
            if album is group:
                del self._albums[key]

"""Admitted messages on their way to prompts: what belongs together, and when it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.bridge.content import Content, read_content
from pitelegram.bridge.grouping import Piece, Place, Windows, piece_of
from pitelegram.errors import StoreError, StoreFull
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.observers import OneShot
from pitelegram.store.rows import SPREAD, InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.files import Files
from pitelegram.worker.interfaces import IGatherer
from pitelegram.worker.lanes import CONTROL
from pitelegram.worker.making import Made, Maker, files_missing
from pitelegram.worker.refetching import Refetcher
from pitelegram.worker.settling import Settler, short_id

AGAIN = 2.0
"""Seconds after which a prompt that could not be stored is stored again."""

AGAIN_SOURCE = "again"
"""The source of a prompt that the operator sent again."""

GATHERED = "⏳"
"""Marks in the queue what is still being made into a prompt."""

STALE = "stale"
"""In a held prompt's content: its messages say something else by now."""


@attrs.define(eq=False)
class _Item:
    """A prompt in the making.

    @ivar rows: in message order.
    @ivar contents: what each of them carries.
    @ivar former: the content that it replaces, None for a new prompt.
    @ivar replaced: another item has its messages now.
    """

    rows: list[InboxRow]
    contents: list[Content]
    former: dict[str, Any] | None = None
    replaced: bool = False
    work: Deferred[None] | None = None
    done: OneShot[None] = attrs.field(factory=OneShot)

    @property
    def head(self) -> int:
        """The row that will have the prompt."""
        return min(row.seq for row in self.rows)

    @property
    def seqs(self) -> list[int]:
        """The head, then the others."""
        return sorted(row.seq for row in self.rows)


@implementer(IGatherer)
class Gatherer:
    """See L{IGatherer} and C{docs/intake.md}.

    @param in_hand: whether a held row is being given to Pi this moment.
    @param complete: called when an item is held, with whether it is a new one.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        inbox: IInbox,
        maker: Maker,
        files: Files,
        settler: Settler,
        in_hand: Callable[[int], bool],
        complete: Callable[[bool], None],
    ) -> None:
        self._clock = clock
        self._inbox = inbox
        self._maker = maker
        self._files = files
        self._settler = settler
        self._in_hand = in_hand
        self._complete = complete
        self._windows = Windows(clock, self._closed, self._rejoin)
        self._waiting: dict[int, tuple[InboxRow, Content]] = {}
        self._items: list[_Item] = []
        self._refetcher = Refetcher(inbox, files, settler, lambda: complete(False))

    # --- what comes ------------------------------------------------------------------------------

    def expect(self, place: Place) -> None:
        """A message of that place is being stored; L{take} follows in any case."""
        self._windows.expect(place)

    def take(self, place: Place, row: InboxRow | None) -> None:
        """It is stored: an admitted row, or None when it is no prompt, known or not stored."""
        piece = None if row is None else self._wait_for(row)
        self._windows.arrived(place, piece)
        if row is not None and self.earliest() is not None:
            self._complete(False)  # it is counted from now on

    def at_once(self, place: Place, update: dict[str, Any]) -> str | None:
        """Return the prompt of a text that waits for nothing, so that it can be held at once.

        It is given to L{take} all the same: a forward may belong to it.
        """
        content = read_content(update["message"])
        piece = piece_of(0, place, self._clock.seconds(), content)
        if content.forward is not None or piece.long or not self._windows.idle(place):
            return None
        return self._maker.plain(content)

    def begin(self) -> None:
        """Take every admitted message that a former process left, and what it did not correct."""
        for held in self._inbox.rows("held"):
            if (held.content or {}).get(STALE):
                self._rebuild(held)
        rows = [row for row in self._inbox.rows("admitted") if row.lane != CONTROL]
        for row in rows:
            self.expect((row.chat_id, row.thread_id))
        for row in rows:
            self.take((row.chat_id, row.thread_id), row)

    def stop(self) -> None:
        """Leave everything as it is in the store: it comes again at the next start."""
        self._windows.stop()
        for item in list(self._items):
            if item.work is not None:
                item.work.cancel()
        self._items.clear()
        self._waiting.clear()
        self._files.stop()

    def keep(self) -> None:
        """Have the files of everything unsettled not age out."""
        contents = [row.content or {} for row in self._inbox.rows("held", "handed", "uncertain")]
        listed = [content.get("files") for content in contents]
        files = [each for found in listed if isinstance(found, list) for each in found]
        self._files.keep(str(each["path"]) for each in files if isinstance(each, dict))

    # --- what the queue asks ---------------------------------------------------------------------

    def earliest(self) -> int | None:
        """See L{IGatherer.earliest}."""
        heads = [item.head for item in self._items]
        return min([*heads, *self._waiting, *self._refetcher.seqs], default=None)

    def ready(self, row: InboxRow) -> bool:
        """See L{IGatherer.ready}."""
        if any(row.seq == item.head for item in self._items) or row.seq in self._waiting:
            return False
        earliest = self.earliest()
        if row.lane == "normal" and earliest is not None and row.order > earliest * SPREAD:
            return False
        if row.source == "telegram" and (files_missing(row) or (row.content or {}).get(STALE)):
            self._rebuild(row)
            return False
        if row.source == AGAIN_SOURCE and files_missing(row):
            self._refetcher.begin(row)
            return False
        return row.seq not in self._refetcher.seqs

    def unfinished(self) -> int:
        """See L{IGatherer.unfinished}."""
        return sum(rows[0].state != "held" for rows, _ in self._all_unfinished())

    def view(self) -> list[InboxRow]:
        """See L{IGatherer.view}."""
        found = []
        for rows, contents in self._all_unfinished():
            row = self._inbox.waiting(rows[0].seq)
            if row is not None and row.state != "held":
                prompt, summary = self._maker.preview(contents)
                shown = {"summary": f"{GATHERED} {summary}"}
                found.append(attrs.evolve(row, prompt=prompt, content=shown))
        return found

    def _all_unfinished(self) -> Iterator[tuple[list[InboxRow], list[Content]]]:
        """Return what each prompt is being made of, its head first."""
        for item in self._items:
            yield sorted(item.rows, key=lambda row: row.seq), item.contents
        for group in self._windows.groups():
            seqs = [piece.seq for piece in group.pieces if piece.seq in self._waiting]
            if seqs:
                rows = sorted((self._waiting[seq][0] for seq in seqs), key=lambda row: row.seq)
                yield rows, [self._waiting[seq][1] for seq in seqs]

    @deferred
    async def flush(self, chat_id: int, message_id: int) -> None:
        """See L{IGatherer.flush}."""
        row = self._inbox.by_message(chat_id, message_id)
        if row is None:
            return
        self._windows.flush(row.seq)
        for item in self._items:
            if row.seq in item.seqs:
                await item.done.when()
                return

    @deferred
    async def drop(self, before: int | None) -> int:
        """See L{IGatherer.drop}."""
        groups = [[piece.seq for piece in group.pieces] for group in self._windows.groups()]
        chosen = [seqs for seqs in groups if before is None or min(seqs) < before]
        self._windows.drop(frozenset(seq for seqs in chosen for seq in seqs))
        for item in list(self._items):
            if before is None or item.head < before:
                chosen.append(item.seqs)
                self._abandon(item)
        seqs = sorted({seq for each in chosen for seq in each})
        for seq in seqs:
            self._waiting.pop(seq, None)
        if seqs:
            await self._inbox.skip(seqs)
            self._complete(False)
        return len({min(each) for each in chosen})

    # --- what an edit asks -----------------------------------------------------------------------

    @deferred
    async def change(self, row: InboxRow, body: bytes) -> bool:
        """Have a message say something else; False when its prompt was handed or is over.

        A held prompt is marked before the message is changed: whatever happens then, it is not
        handed until it was made again.

        @param row: the message's, as it is stored.
        """
        try:
            if row.state != "admitted" and not await self._mark_stale(row):
                return False
            await self._inbox.change_body(row.seq, body)
        except StoreFull:
            raise
        except StoreError:
            return False
        current = self._inbox.row(row.delivery_id)
        return current is not None and self._changed(current)

    async def _mark_stale(self, row: InboxRow) -> bool:
        held = self._held_head(row)
        if held is None:
            return False
        content = {**(held.content or {}), STALE: True}
        await self._inbox.hold(held.seq, held.prompt or "", content)
        return True

    def _held_head(self, row: InboxRow) -> InboxRow | None:
        """Return the held prompt that a message is part of, if it can still be changed."""
        head = row.seq if row.head is None else row.head
        held = self._inbox.waiting(head)
        if held is None or held.state != "held" or self._in_hand(head):
            return None
        return held

    def _changed(self, row: InboxRow) -> bool:
        if row.seq in self._waiting:
            self._waiting[row.seq] = row, self._maker.read(row)
            return True
        for item in self._items:
            if row.seq in item.seqs:
                rows = [row if each.seq == row.seq else each for each in item.rows]
                self._abandon(item, answered=False)
                self._begin(self._item(rows, item.former, item.done))
                return True
        held = self._held_head(row)
        if held is not None:
            self._rebuild(held)
        return held is not None

    def _rebuild(self, held: InboxRow) -> None:
        """Make a held prompt again, of what its messages say now; its files are used again."""
        rows = [held, *self._inbox.members(held.seq)]
        rows.sort(key=lambda row: (row.message_id or 0, row.seq))
        self._begin(self._item(rows, held.content or {}))

    # --- inside ----------------------------------------------------------------------------------

    def _wait_for(self, row: InboxRow) -> Piece:
        content = self._maker.read(row)
        self._waiting[row.seq] = row, content
        for ref in content.files:
            self._files.fetch(ref)
        place = row.chat_id, row.thread_id
        return piece_of(row.seq, place, row.admitted_ms / 1000, content)

    def _rejoin(self, seq: int) -> bool:
        """Take back a comment that left by itself, for the forward that it belongs to."""
        item = next((item for item in self._items if item.seqs == [seq]), None)
        if item is not None:
            item.replaced = True
            row = item.rows[0]
        else:
            held = self._inbox.waiting(seq)
            if held is None or held.state != "held" or self._in_hand(seq) or held.skip:
                return False
            row = held
        self._waiting[seq] = row, self._maker.read(row)
        return True

    def _closed(self, pieces: Sequence[Piece]) -> None:
        rows = [self._waiting[piece.seq][0] for piece in pieces if piece.seq in self._waiting]
        if len(rows) == 1 and rows[0].state == "held" and rows[0].prompt is not None:
            del self._waiting[rows[0].seq]
            self._complete(True)
        elif rows:
            self._begin(self._item(rows))

    def _item(
        self,
        rows: list[InboxRow],
        former: dict[str, Any] | None = None,
        done: OneShot[None] | None = None,
    ) -> _Item:
        """Return an item of rows, which wait in no window from now on."""
        contents = []
        for row in rows:
            _, content = self._waiting.pop(row.seq, (row, None))
            contents.append(content or self._maker.read(row))
        return _Item(rows=rows, contents=contents, former=former, done=done or OneShot())

    def _begin(self, item: _Item) -> None:
        self._items.append(item)
        item.work = Deferred.fromCoroutine(self._work(item))
        item.work.addErrback(self._failed, item)

    def _failed(self, failure: Any, item: _Item) -> None:
        if not failure.check(CancelledError):
            self._log.failure("a prompt could not be made", failure)
        self._leave(item)

    async def _work(self, item: _Item) -> None:
        made = await self._maker.make(item.contents, item.former)
        await self._hold(item, made)
        self._leave(item)
        if not item.replaced:
            self._tell(item, made)
            self._complete(item.former is None)

    async def _hold(self, item: _Item, made: Made) -> None:
        while True:
            try:
                if len(item.rows) == 1:
                    await self._inbox.hold(item.head, made.prompt, made.content)
                else:
                    await self._inbox.hold_group(item.seqs, made.prompt, made.content)
                return
            except StoreError as error:
                states = {row.seq for row in self._inbox.rows("admitted", "joined", "held")}
                if not states.issuperset(item.seqs):
                    self._log.info("a prompt was dropped or handed while it was made again")
                    return
                self._log.error("a prompt could not be stored: {reason}", reason=str(error))
                await sleep(self._clock, AGAIN)

    def _tell(self, item: _Item, made: Made) -> None:
        """Tell the operator what did not work; told once, however often the prompt is made."""
        for text in made.notices:
            name = f"inbound-{short_id(item.rows[0].delivery_id)}-{short_id(text)[:8]}"
            self._settler.say(name, text, item.rows[0].admitted_ms)

    def _abandon(self, item: _Item, answered: bool = True) -> None:
        """Stop making it; nothing is written any more."""
        item.replaced = True
        if item in self._items:
            self._items.remove(item)
        if item.work is not None:
            item.work.cancel()
        if answered:
            item.done.fire(None)

    def _leave(self, item: _Item) -> None:
        if item in self._items:
            self._items.remove(item)
            item.done.fire(None)

"""Held prompts in their lanes: whose turn it is, and what the operator does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bridge.interfaces import QueueItem
from pitelegram.errors import StoreError, StoreFull
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.pi.interfaces import IPiHost
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.handover import WAITING
from pitelegram.worker.hands import Hands
from pitelegram.worker.lanes import (
    CONTROL,
    NORMAL,
    PRIORITY,
    PiQueue,
    in_turn,
    may_go,
    shown,
    shown_pi,
)
from pitelegram.worker.pictures import Pictures
from pitelegram.worker.settling import Settler


def _nothing_gathered() -> int | None:
    return None


def _none_unfinished() -> int:
    return 0


def _no_rows() -> list[InboxRow]:
    return []


def _always(_: InboxRow) -> bool:
    return True


class Queue:
    """Chooses what L{Hands} gives to Pi; the rules stand in C{docs/worker.md}.

    @param mark: returns C{(file, size, entry)} of the current session file.
    @param mint: returns a new random id.
    @param changed: called when what the heartbeat tells may have changed.
    @param gathering: returns the first row that is still being made into a prompt.
    @param ready: whether a row's prompt is complete (L{IGatherer.ready}).
    @param unfinished: how many prompts are still being made, beside the held ones.
    @param unfinished_view: these, as they are shown.
    @param pushes: see L{Hands}, as for C{footers}.
    @ivar hands: what is being given, runs and is stored.
    @ivar held: how many prompts waited when the queue was last looked at.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        inbox: IInbox,
        host: IPiHost,
        settler: Settler,
        mark: Callable[[], tuple[str | None, int, str | None]],
        mint: Callable[[], str],
        changed: Callable[[], None],
        gathering: Callable[[], int | None] = _nothing_gathered,
        pictures: Pictures | None = None,
        ready: Callable[[InboxRow], bool] = _always,
        unfinished: Callable[[], int] = _none_unfinished,
        unfinished_view: Callable[[], list[InboxRow]] = _no_rows,
        pushes: Callable[[], bool] = lambda: True,
        footers: Callable[[], bool] = lambda: False,
    ) -> None:
        self._inbox = inbox
        self._host = host
        self._changed = changed
        self._gathering = gathering
        self._ready = ready
        self._unfinished = unfinished
        self._unfinished_view = unfinished_view
        self._open_for_work = False
        self._paused = 0
        self.hands = Hands(
            clock,
            random,
            inbox,
            host,
            settler,
            mark,
            mint,
            pictures or Pictures(),
            self.kick,
            pushes,
            footers,
        )
        self.held = 0

    # --- what others ask -----------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state of the hand-over machine."""
        return self.hands.state

    @property
    def last_refusal(self) -> str | None:
        """Why Pi takes no prompt, None once it took one."""
        return self.hands.last_refusal

    def open(self) -> None:
        """Pi is up: start handing."""
        self._open_for_work = True
        self.kick()

    def close(self) -> None:
        """Hand nothing more; what was handed still settles."""
        self._open_for_work = False
        self.hands.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hand nothing meanwhile; whoever asks sees to it that nothing was handed before."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1
            self.kick()

    def ended(self) -> None:
        """Pi is gone."""
        self.close()
        self.hands.ended()

    def in_hand(self, seq: int) -> bool:
        """Whether a held row is being given to Pi this moment: it cannot be changed any more."""
        return seq in self.hands.seqs

    def quiet(self) -> bool:
        """Whether nothing is being handed, run or stored."""
        return self.hands.quiet()

    def handed_in_flight(self) -> bool:
        """Whether a prompt was written that Pi has not answered for yet."""
        return bool(self.hands.seqs)

    def skippable(self) -> list[InboxRow]:
        """Held rows that are not being handed this moment, in the order of their turns."""
        rows = in_turn(self._inbox.rows("held"))
        return [row for row in rows if row.seq not in self.hands.seqs]

    def waits(self) -> bool:
        """Whether anything waits that would run: held, being gathered, or in Pi's own queue."""
        held = any(not row.skip for row in self.skippable())
        return held or self._gathering() is not None or bool(self.hands.book.unseen())

    def view(self) -> list[QueueItem]:
        """Return what waits, in the order of the turns."""
        return shown([*self.skippable(), *self._unfinished_view()])

    @property
    def waiting(self) -> int:
        """How many prompts wait, those that are still being made too."""
        return self.held + self._unfinished()

    def in_pi(self) -> PiQueue:
        """Return what waits in Pi's own queue, as it last told."""
        return shown_pi(self._host.state or {})

    # --- what the operator does ----------------------------------------------------------------

    @deferred
    async def move(self, seq: int, lane: str) -> bool:
        """Put a waiting row behind everything in a lane; False when it does not wait any more.

        In that lane already it stays where it is.

        @param lane: C{priority} or C{normal}.
        """
        row = self._waiting(seq)
        if row is None or row.lane == CONTROL or lane not in (PRIORITY, NORMAL):
            return False
        if row.lane == lane:
            return True
        return await self._change(self._inbox.move(seq, lane))

    @deferred
    async def mark(self, seq: int, skip: bool) -> bool:
        """Have a waiting row dropped at its turn, or kept; False when it does not wait any more."""
        row = self._waiting(seq)
        if row is None:
            return False
        if row.skip == skip:
            return True
        return await self._change(self._inbox.mark(seq, skip))

    @deferred
    async def go_on(self, row: InboxRow, prompt: str, words: str) -> None:
        """Make an admitted row a prompt that runs before all that wait, as one of its own.

        @param words: how the queue shows it.
        """
        await self._inbox.hold(row.seq, prompt, {"summary": words}, CONTROL)
        self.kick(new=True)

    def _waiting(self, seq: int) -> InboxRow | None:
        if self.in_hand(seq):
            return None
        return self._inbox.waiting(seq)

    async def _change(self, change: object) -> bool:
        try:
            await change  # type: ignore[misc]
        except StoreFull:
            raise
        except StoreError:
            return False  # it was handed meanwhile
        self.kick()
        return True

    # --- turns ---------------------------------------------------------------------------------

    def kick(self, new: bool = False) -> None:
        """Look for something to hand.

        @param new: a new prompt came, so a Pi that refused is asked again.
        """
        if new and self.state == WAITING:
            self.hands.resume()
        # Counted, not read: this is asked for each message while thousands may wait.
        self.held = self._inbox.held()
        may = self._open_for_work and not self._paused
        lane = self.hands.may_take() if may else None
        if lane is not None and self.held:
            row = self._next(PRIORITY if lane == PRIORITY else None)
            if self.hands.may_take() != lane:
                pass  # looking for it completed one, which is being handed already
            elif row is not None and row.skip:
                spawn(self._log, "dropping a skipped prompt", self.hands.drop(row))
            elif row is not None:
                spawn(self._log, "handing a prompt to Pi", self.hands.hand(row))
        self._changed()

    def _next(self, lane: str | None) -> InboxRow | None:
        """Return the row whose turn it is and whose prompt is complete, of one lane or of any."""
        for turn in self._inbox.turns(lane):
            # Asked anew for each: looking whether one is ready may begin to make it again.
            row = self._inbox.waiting(turn.seq) if may_go(turn, self._gathering()) else None
            if row is not None and (row.skip or self._ready(row)):
                return row
        return None

    @deferred
    async def give_back(self, texts: Iterable[str], kick: bool = True) -> list[int]:
        """Pi emptied its queue: prompts of ours in it are held again.  Fires with their rows.

        @param kick: hand them (and others) again at once where that is possible.
        """
        returned = await self.hands.give_back(texts)
        if kick:
            self.kick()
        return returned

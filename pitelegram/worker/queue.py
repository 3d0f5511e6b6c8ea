"""Held prompts on their way to Pi, one after the other, each at most once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bridge import labels
from pitelegram.errors import PiGone, PiRefused
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.pi.interfaces import IPiHost
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.handover import GONE, IDLE, RUNNING, STORING, WAITING, hand_over
from pitelegram.worker.refusals import Patience
from pitelegram.worker.runs import Handed, RunBook
from pitelegram.worker.settling import Settler

PASSING = ("compaction", "already processing")
"""Words of refusals that pass by themselves."""


class Queue:
    """Hands prompts over and settles them; also what the Pi observer tells about runs.

    The normal lane goes one at a time, each when Pi has settled; the priority lane goes at once
    while Pi runs.  A row is C{handed} on disk before its bytes are written.

    @param mark: returns C{(file, size, entry)} of the current session file.
    @param mint: returns a new random id.
    @param changed: called when what the heartbeat tells may have changed.
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
    ) -> None:
        self._inbox = inbox
        self._host = host
        self._settler = settler
        self._mark = mark
        self._mint = mint
        self._changed = changed
        self._patience = Patience(clock, random, self._resume)
        self._machine = hand_over()
        self._in_hand: set[int] = set()
        self._steering_refused = False
        self._open_for_work = False
        self._storing = 0
        self._model: Any = None
        self.book = RunBook()
        self.held = 0
        self.last_refusal: str | None = None

    # --- what others ask ---------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state of the hand-over machine."""
        return self._machine.now

    def open(self) -> None:
        """Pi is up: start handing."""
        self._open_for_work = True
        self.kick()

    def close(self) -> None:
        """Hand nothing more; what was handed still settles."""
        self._open_for_work = False
        self._patience.stop()

    def in_hand(self, seq: int) -> bool:
        """Whether a held row is being given to Pi this moment: it cannot be changed any more."""
        return seq in self._in_hand

    def quiet(self) -> bool:
        """Whether nothing is being handed, run or stored."""
        if self.state == GONE:
            return True
        return self.state in (IDLE, WAITING) and not self.book.open and not self._busy()

    def handed_in_flight(self) -> bool:
        """Whether a prompt was written that Pi has not answered for yet."""
        return bool(self._in_hand)

    def kick(self, new: bool = False) -> None:
        """Look for something to hand.

        @param new: a new prompt came, so a Pi that refused is asked again.
        """
        rows = self._inbox.rows("held")
        self.held = len(rows)
        if new and self.state == WAITING:
            self._patience.stop()
            self._machine.feed("resume")
        if self._open_for_work:
            row = self._next(rows)
            if row is not None:
                spawn(self._log, "handing a prompt to Pi", self._hand(row))
        self._changed()

    def skippable(self) -> list[InboxRow]:
        """Held rows that are not being handed this moment."""
        return [row for row in self._inbox.rows("held") if row.seq not in self._in_hand]

    @deferred
    async def give_back(self, texts: Iterable[str], kick: bool = True) -> list[int]:
        """Pi emptied its queue: prompts of ours in it are held again.  Fires with their rows.

        @param kick: hand them (and others) again at once where that is possible.
        """
        returned = [handed.row.seq for handed in self.book.by_texts(list(texts))]
        for seq in returned:
            await self._settler.unhand(seq)
        if kick:
            self.kick()
        return returned

    # --- handing -----------------------------------------------------------------------------

    def _busy(self) -> bool:
        state = self._host.state or {}
        return bool(state.get("isStreaming") or state.get("isCompacting"))

    def _next(self, rows: list[InboxRow]) -> InboxRow | None:
        """Return the row to hand now, if Pi can take one."""
        if self._in_hand:
            return None
        first = sorted(rows, key=lambda row: (row.lane != "priority", row.seq))
        if not first:
            return None
        if self.state == IDLE and not self.book.open and not self._busy():
            return first[0]
        if self.state == RUNNING and first[0].lane == "priority" and not self._steering_refused:
            return first[0] if (self._host.state or {}).get("isStreaming") else None
        return None

    async def _hand(self, row: InboxRow) -> None:
        steering = self.state == RUNNING
        rpc_id = self._mint()
        run_id = self.book.begin(rpc_id).run_id if steering else rpc_id
        self._in_hand.add(row.seq)
        if not steering:
            self._machine.feed("hand")
        try:
            # A commit that fails leaves the row held: nothing was written to Pi.
            await self._inbox.hand(row.seq, rpc_id, run_id, *self._mark())
        except Exception:
            self._in_hand.discard(row.seq)
            self._refused(steering)
            raise
        current = self._inbox.row(row.delivery_id) or row  # an edit may have come before
        handed = Handed(current, rpc_id, run_id)
        self.book.open.append(handed)
        self._changed()
        await self._give(handed, steering)

    async def _give(self, handed: Handed, steering: bool) -> None:
        row = handed.row
        lane = "priority" if steering else "normal"
        try:
            disposition = await self._host.prompt(handed.rpc_id, row.prompt or "", lane)
        except PiRefused as refusal:
            self.book.take([handed])
            await self._settler.unhand(row.seq)
            self._in_hand.discard(row.seq)
            self._refused(steering, str(refusal))
        except PiGone:
            # Ended: the next process judges the row.  Alive all the same: the watch does.
            self._in_hand.discard(row.seq)
            handed.answered = True
            if not steering and self._machine.can("accepted"):
                self._machine.feed("accepted")
        else:
            self._in_hand.discard(row.seq)
            self._accepted(handed, disposition, steering)
        self.kick()

    def _accepted(self, handed: Handed, disposition: str, steering: bool) -> None:
        handed.answered = True
        self._patience.succeeded()
        self.last_refusal = None
        over = handed not in self.book.open
        if disposition == "handled" and not over and not handed.seen:
            # An extension swallowed it: no run will follow, so nothing else would settle it.
            self.book.take([handed])
            if not steering:
                self._machine.feed("finished")
            self._store(handed.rpc_id, [handed], labels.HANDLED)
        elif not steering:
            self._machine.feed("finished" if over else "accepted")
            if over and not self._storing:
                self._stored()

    def _refused(self, steering: bool, reason: str = "") -> None:
        if steering:
            self._steering_refused = True
            return
        self._machine.feed("refused")
        passing = not reason or any(word in reason.lower() for word in PASSING)
        if reason:
            self.last_refusal = reason
        self._patience.wait(passing)
        if not passing and self._patience.tell(reason):
            self._log.warn("Pi refuses prompts: {reason}", reason=reason)
            self._settler.say(f"refused-{self._mint()}", labels.refused(reason))

    def _resume(self) -> None:
        if self._machine.can("resume"):
            self._machine.feed("resume")
            self.kick()

    # --- what the Pi observer tells ------------------------------------------------------------

    def run_started(self) -> None:
        """Pi began to work, for whatever reason."""
        self.book.begin(self._mint())
        self._machine.feed("run")
        self.kick()

    def user_message(self, text: str) -> None:
        """Pi took a message into the conversation."""
        self.book.user_message(text, self._mint())

    def assistant_message(self, message: dict[str, Any]) -> None:
        """The model finished a message."""
        self.book.assistant_message(message, self._mint())

    def settled(self, aborted: bool) -> None:
        """Pi is done: store the answer with the rows that were part of the run."""
        self._steering_refused = False
        run, done = self.book.close()
        self._machine.feed("settled")
        if run is not None and not done and run.strangers and (late := self.book.unseen()):
            # An extension rewrote a prompt of ours: it is the one that Pi took under other words.
            done = late[: run.strangers]
            self.book.take(done)
        if run is not None and (done or not run.turn.empty):
            self._store(run.run_id, done, run.turn.answer(aborted))
        elif not self._storing and self.state == STORING:
            self._stored()

    def state_changed(self, state: dict[str, Any]) -> None:
        """Pi's state changed; a refusal may be over."""
        model, self._model = self._model, state.get("model")
        if self.state == WAITING and model != self._model and not state.get("isCompacting"):
            self._patience.stop()
            self._resume()
        else:
            self.kick()

    def ended(self) -> None:
        """Pi is gone; what was handed is judged by the next process."""
        self.close()
        self._machine.feed("gone")

    # --- settling ----------------------------------------------------------------------------

    def _store(self, run_id: str, done: list[Handed], text: str) -> None:
        self._keep("storing an answer", self._settler.settle(run_id, done, text))

    def _keep(self, what: str, storing: Deferred[None]) -> None:
        """Nothing is handed until this is on disk."""
        self._storing += 1
        spawn(self._log, what, storing).addCallback(self._kept)

    def _kept(self, _: object) -> None:
        self._storing -= 1
        self._stored()

    def _stored(self) -> None:
        if self.state == STORING and not self._storing:
            self._machine.feed("stored-running" if self.book.run else "stored")
        self.kick()

    def overdue(self) -> bool:
        """Whether something should be going on in Pi and nothing is."""
        waiting = self.state == RUNNING or (self.book.unseen() and self.state != GONE)
        return bool(waiting) and not self._busy() and not self._in_hand

    def missed_settlement(self) -> None:
        """Pi is idle though nothing said so: settle its run, and give up prompts it lost."""
        if self.state == RUNNING:
            self.settled(False)
        lost = self.book.unseen()
        self.book.take(lost)
        if lost:
            self._log.warn("Pi took {count} prompts and did not run them", count=len(lost))
            self._keep("storing lost prompts", self._settler.lost(lost))

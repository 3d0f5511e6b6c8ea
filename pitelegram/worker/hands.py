"""What is being given to Pi, what runs there, and what is being stored of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bridge import labels
from pitelegram.bridge.failures import Repeats, reason_of
from pitelegram.errors import PiGone, PiRefused
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.pi.interfaces import IPiHost
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.compacting import Compaction
from pitelegram.worker.handover import GONE, IDLE, RUNNING, STORING, WAITING, hand_over
from pitelegram.worker.lanes import NORMAL, PRIORITY
from pitelegram.worker.pictures import Pictures
from pitelegram.worker.refusals import Patience
from pitelegram.worker.runs import Handed, RunBook
from pitelegram.worker.settling import Settler, short_id

PASSING = ("compaction", "already processing")
"""Words of refusals that pass by themselves."""


class Hands:
    """Gives one prompt at a time to Pi, settles runs; takes the events of Pi.

    A row is C{handed} on disk before its bytes are written.

    @param mark: returns C{(file, size, entry)} of the current session file.
    @param mint: returns a new random id.
    @param free: called when something may have become possible.
    @param pushes: whether runs that nobody here asked for are shown.
    @param footers: whether answers end with what their run has used.
    @ivar book: the open run and the prompts that were handed.
    @ivar last_refusal: why Pi takes no prompt, None once it took one.
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
        pictures: Pictures,
        free: Callable[[], None],
        pushes: Callable[[], bool] = lambda: True,
        footers: Callable[[], bool] = lambda: False,
    ) -> None:
        self._inbox = inbox
        self._host = host
        self._settler = settler
        self._mark = mark
        self._mint = mint
        self._pictures = pictures
        self._free = free
        self._pushes = pushes
        self._footers = footers
        self._failures = Repeats()
        self._patience = Patience(clock, random, self.resume)
        self._machine = hand_over()
        self._in_hand: set[int] = set()
        self._steering_refused = False
        self._storing = 0
        self._model: Any = None
        self._compaction = Compaction(clock, self._compacted)
        self.book = RunBook()
        self.last_refusal: str | None = None

    # --- what may be done now ------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state of the hand-over machine."""
        return self._machine.now

    @property
    def seqs(self) -> frozenset[int]:
        """Rows that are being handed or dropped this moment: they cannot be changed any more."""
        return frozenset(self._in_hand)

    def stop(self) -> None:
        """Let no timer of this call anybody any more."""
        self._patience.stop()
        self._compaction.stop()

    def may_take(self) -> str | None:
        """Return the lane that may go now: C{priority} alone, C{normal} for any, None for none."""
        if self._in_hand or self._compaction.closed():
            return None
        if self.state == IDLE and not self.book.open and not self._streaming():
            return NORMAL
        if self.state == RUNNING and self._streaming() and not self._steering_refused:
            return PRIORITY
        return None

    def quiet(self) -> bool:
        """Whether nothing is being handed, run or stored."""
        if self.state == GONE:
            return True
        return self.state in (IDLE, WAITING) and not self.book.open and not self.busy()

    def overdue(self) -> bool:
        """Whether something should be going on in Pi and nothing is."""
        waiting = self.state == RUNNING or (self.book.unseen() and self.state != GONE)
        return bool(waiting) and not self.busy() and not self._in_hand

    def shown(self) -> bool:
        """Whether what Pi does now is to be shown: somebody here asked, or what nobody asked for is."""
        return bool(self.book.open) or self._pushes()

    def _streaming(self) -> bool:
        return bool((self._host.state or {}).get("isStreaming"))

    def busy(self) -> bool:
        """Whether Pi says that it works or compacts."""
        return self._streaming() or bool((self._host.state or {}).get("isCompacting"))

    # --- handing -------------------------------------------------------------------------------

    async def drop(self, row: InboxRow) -> None:
        """The turn of a row came that is to be skipped."""
        self._in_hand.add(row.seq)
        try:
            await self._inbox.skip([row.seq])
        finally:
            self._in_hand.discard(row.seq)
        self._free()

    async def hand(self, row: InboxRow) -> None:
        """Give a row to Pi, as a steering message where it runs."""
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
        self._free()
        if current.skip or (steering and current.lane != PRIORITY):
            await self._take_back(handed, steering)
            if not steering:
                self._machine.feed("refused")
                self.resume()
        else:
            await self._give(handed, steering)
        self._free()

    async def _give(self, handed: Handed, steering: bool) -> None:
        row = handed.row
        lane = PRIORITY if steering else NORMAL
        try:
            images, missing = await self._pictures.of(row)
            disposition = await self._host.prompt(handed.rpc_id, row.prompt or "", lane, images)
        except PiRefused as refusal:
            await self._take_back(handed, steering)
            self._refused(steering, str(refusal))
        except PiGone:
            # Ended: the next process judges the row.  Alive all the same: the watch does.
            self._in_hand.discard(row.seq)
            handed.answered = True
            if not steering and self._machine.can("accepted"):
                self._machine.feed("accepted")
        else:
            if missing:
                name = f"pictures-{short_id(row.delivery_id)}"
                self._settler.say(name, labels.pictures_left_out(row.prompt or "", missing))
            self._in_hand.discard(row.seq)
            self._accepted(handed, disposition, steering)

    async def _take_back(self, handed: Handed, steering: bool) -> None:
        """Pi did not get it: it is held again, at its old place."""
        self.book.take([handed])
        await self._settler.unhand(handed.row.seq)
        self._in_hand.discard(handed.row.seq)

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
            self._settler.say(f"refused-{self._mint()}", labels.refused(reason_of(reason)))

    def resume(self) -> None:
        """A Pi that refused is asked again."""
        self._patience.stop()
        if self._machine.can("resume"):
            self._machine.feed("resume")
            self._free()

    @deferred
    async def give_back(self, texts: Iterable[str]) -> list[int]:
        """Pi emptied its queue: prompts of ours in it are held again.  Fires with their rows."""
        returned = [handed.row.seq for handed in self.book.by_texts(list(texts))]
        for seq in returned:
            await self._settler.unhand(seq)
        return returned

    # --- what the Pi observer tells ------------------------------------------------------------

    def run_started(self) -> None:
        """Pi began to work, for whatever reason."""
        self.book.begin(self._mint())
        self._machine.feed("run")
        self._free()

    def user_message(self, text: str) -> None:
        """Pi took a message into the conversation."""
        self.book.user_message(text, self._mint())

    def assistant_message(self, message: dict[str, Any]) -> None:
        """The model finished a message."""
        run, comments = self.book.assistant_message(message, self._mint())
        for text in comments if self.shown() else ():
            run.comments += 1
            comment = self._settler.comment(run.run_id, run.comments, text)
            spawn(self._log, "storing a comment", comment)

    def settled(self, aborted: bool) -> None:
        """Pi is done: store the answer with the rows that were part of the run."""
        self._steering_refused = False
        run, done = self.book.close()
        self._machine.feed("settled")
        if run is not None and not done and run.strangers and (late := self.book.unseen()):
            # An extension rewrote a prompt of ours: it is the one that Pi took under other words.
            done = late[: run.strangers]
            self.book.take(done)
        if run is not None and (done or (not run.turn.empty and self._pushes())):
            answer = self._failures.told(run.turn.failure, run.turn.answer(aborted))
            footer = run.turn.spent.words() if self._footers() else None
            self._store(run.run_id, done, answer, footer)
        elif not self._storing and self.state == STORING:
            self._stored()

    def state_changed(self, state: dict[str, Any]) -> None:
        """Pi's state changed; a refusal may be over."""
        model, self._model = self._model, state.get("model")
        self._compaction.look(bool(state.get("isCompacting")))
        if self.state == WAITING and model != self._model and not state.get("isCompacting"):
            self.resume()
        else:
            self._free()

    def ended(self) -> None:
        """Pi is gone; what was handed is judged by the next process."""
        self.stop()
        self._machine.feed("gone")

    def _compacted(self) -> None:
        """A compaction is over, well or not."""
        if self.state == WAITING:
            self.resume()
        else:
            self._free()

    # --- settling ------------------------------------------------------------------------------

    def missed_settlement(self) -> None:
        """Pi is idle though nothing said so: settle its run, and give up prompts it lost."""
        if self.state == RUNNING:
            self.settled(False)
        lost = self.book.unseen()
        self.book.take(lost)
        if lost:
            self._log.warn("Pi took {count} prompts and did not run them", count=len(lost))
            self._keep("storing lost prompts", self._settler.lost(lost))

    def _store(self, run_id: str, done: list[Handed], text: str, footer: str | None = None) -> None:
        self._keep("storing an answer", self._settler.settle(run_id, done, text, footer))

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
        self._free()

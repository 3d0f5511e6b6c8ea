"""Stored answers on their way to the leader's outbox."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bridge.answer import notice
from pitelegram.bridge.composing import has_files, named_files
from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusBadRequest, BusError, Refusal, StoreError, UnsafeFile
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import deferred
from pitelegram.store.outfiles import OutFiles, remove
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.settling import short_id

PASSING = frozenset({"unavailable", "rate-limited", "commit-unknown"})
"""Refusals that another attempt may overcome; every other one ends the delivery."""


class Submitter(Service):
    """Submits answers in order, one at a time, until each has its durable receipt.

    It survives any number of lost links and new leaders: the same id and content is harmless to
    repeat.  One that the leader will never take is dropped with an error in the log and a notice.

    @param link: returns the registered link, None while there is none.
    @param files: the files that answers name.
    @param uploads: returns the directory of an instance that files are sent from.
    @param in_thread: C{(function, *arguments) -> Deferred}, for copying.
    @param before_final: fires when an answer may be submitted: what belongs before it is shown.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        inbox: IInbox,
        link: Callable[[], ILeaderLink | None],
        files: OutFiles,
        uploads: Callable[[str], Path],
        in_thread: Callable[..., Deferred[Any]],
        before_final: Callable[[], Deferred[None]] = lambda: succeed(None),
    ) -> None:
        self._clock = clock
        self._inbox = inbox
        self._link = link
        self._files = files
        self._uploads = uploads
        self._in_thread = in_thread
        self._before_final = before_final
        self._backoff = Backoff(0.5, 60.0, random)
        self._running: Deferred[None] | None = None
        self._nap: Deferred[None] | None = None

    def startService(self) -> None:
        """Submit what is stored already."""
        super().startService()
        self.kick()

    @deferred
    async def stopService(self) -> None:
        """Stop between two submissions; what is not receipted stays stored."""
        Service.stopService(self)
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await running

    def kick(self, new_link: bool = False) -> None:
        """An answer was stored, or there is a new link."""
        if not self.running:
            return
        if new_link:
            self._backoff.reset()
            if self._nap is not None and not self._nap.called:
                self._nap.callback(None)
        if self._running is None and self._link() is not None:
            running = self._run()
            if not running.called:
                self._running = running

    def drained(self) -> bool:
        """Whether every stored answer has its receipt."""
        return not self._inbox.answers()

    @deferred
    async def _run(self) -> None:
        try:
            while self.running and (answers := self._rendered()):
                for answer in answers:
                    if not await self._until_receipted(answer):
                        return
        except CancelledError:
            return
        except Exception:
            self._log.failure("submitting answers failed")
        finally:
            self._running = None

    def _rendered(self) -> list[dict[str, Any]]:
        """Return what may be submitted: nothing overtakes an answer that is still being rendered."""
        return list(takewhile(lambda answer: answer["kind"] != "raw", self._inbox.answers()))

    async def _until_receipted(self, answer: dict[str, Any]) -> bool:
        """Submit one; False when there is no link, or the end has come."""
        if answer["kind"] == "final":
            await self._before_final()
        while self.running and (link := self._link()) is not None:
            if await self._submit(link, answer):
                return True
            await self._pause()
        return False

    async def _pause(self) -> None:
        nap: Deferred[None] = Deferred()
        alarm = self._clock.callLater(self._backoff.next(), nap.callback, None)
        self._nap = nap
        try:
            await nap
        finally:
            self._nap = None
            if alarm.active():
                alarm.cancel()

    async def _submit(self, link: ILeaderLink, answer: dict[str, Any]) -> bool:
        """Submit one; False when it must be tried again later."""
        delivery_id = answer["delivery_id"]
        try:
            await self._handed_over(link, answer)
            await self._inbox.forget_answer(delivery_id)
        except Refusal as refusal:
            if refusal.code in PASSING:
                return False
            await self._drop(answer, refusal.code)
        except BusBadRequest:
            await self._drop(answer, "bad-request")
        except (BusError, StoreError, OSError, UnsafeFile) as error:
            self._log.info("an answer waits: {reason}", reason=str(error))
            return False
        self._backoff.reset()
        self._files.discard(named_files([answer]))
        return True

    async def _handed_over(self, link: ILeaderLink, answer: dict[str, Any]) -> None:
        delivery, copies = answer["delivery"], []
        if has_files(answer):
            uploads = self._uploads(link.registration["instanceId"])
            delivery, copies = await self._in_thread(self._files.placed, delivery, uploads)
        try:
            await link.submit_delivery(answer["delivery_id"], delivery)
        finally:
            remove(copies)

    async def _drop(self, answer: dict[str, Any], code: str) -> None:
        delivery_id = answer["delivery_id"]
        self._log.error(
            "the leader will not take answer {delivery} ({code}); it was dropped",
            delivery=delivery_id,
            code=code,
        )
        if answer["kind"] == "final":
            text = (
                f"⚠️ An answer of this worker could not be handed over ({code}). "
                "Its text is in Pi's session."
            )
            now = int(self._clock.seconds() * 1000)
            (told, *_) = notice(f"dropped-{short_id(delivery_id)}", text, now)
            await self._inbox.add_answer(told["delivery_id"], "notice", told["delivery"])
        await self._inbox.forget_answer(delivery_id)

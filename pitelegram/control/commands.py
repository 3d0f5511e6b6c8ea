"""Control commands: each request id is done at most once, and answered with one envelope.

The order is that of the contract: form, reads and dry runs, the known request id, resolution,
reservation, C{send_started} on disk, the effect, the answer on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import (
    CancelledError,
    Deferred,
    DeferredList,
    TimeoutError,
    maybeDeferred,
)
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.control import answers
from pitelegram.control import envelope as envelopes
from pitelegram.control.canonical import VERSION, canonical_form, fingerprint_of, selector_proof
from pitelegram.control.envelope import Envelope
from pitelegram.control.interfaces import IDaemon, Subject
from pitelegram.control.requests import Invalid, Request, dry_run, restored, validate
from pitelegram.errors import (
    LaunchFailed,
    PiCancelled,
    PiRefused,
    PiTelegramError,
    Refusal,
)
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.kernel.observers import OneShot
from pitelegram.store.commands import TERMINAL, owner_hash
from pitelegram.store.receipts import ICommands
from pitelegram.store.rows import Claim, Receipt

DEADLINE = 60.0
"""Seconds until a caller is told C{in_progress}; the stop ladder's total is 30."""

LEASE_MS = 30_000
"""How long a reservation protects its owner."""

Work = Callable[[], Deferred[dict[str, Any]]]


@attrs.define(eq=False)
class _Running:
    """A command that is being done.

    @ivar canonical: what it is compared by.
    """

    canonical: str
    done: OneShot[Envelope] = attrs.field(factory=OneShot)


@attrs.define(eq=False)
class CommandDesk:
    """Answers parsed requests.

    @ivar daemon: does the work.
    @ivar commands: the durable receipts.
    @ivar clock: wall time for leases, timers.
    @ivar deadline: seconds until a caller is told C{in_progress}; the work goes on.
    """

    daemon: IDaemon
    commands: ICommands
    clock: IReactorTime
    deadline: float = DEADLINE
    random_bytes: Callable[[int], bytes] = os.urandom
    _running: dict[str, _Running] = attrs.field(factory=dict, init=False)
    _log: Logger = attrs.field(factory=Logger, init=False)

    @deferred
    async def submit(self, value: dict[str, Any]) -> Envelope:
        """Answer one request with an envelope; fails only when cancelled."""
        try:
            request = validate(value)
        except Invalid as wrong:
            return envelopes.invalid(str(wrong), wrong.action, **wrong.details())
        if request.dry_run:
            return dry_run(request)
        if request.action == "noop":
            return answers.read(request, "noop", {})
        if request.reads:
            return await self._answer_read(request)
        return await self._answer_change(request)

    def settle_earlier(self) -> None:
        """Find out what became of everything that an earlier daemon had begun."""
        for row in self.commands.started():
            request = restored(row.action, row.request_id, row.canonical)
            if request is None:
                spawn(self._log, "ending a damaged receipt", self.give_up(row))
            elif row.request_id not in self._running:
                self._begin(request, row.canonical, self._settle(request, row))

    @deferred
    async def give_up(self, row: Receipt) -> None:
        """End a receipt that nobody will ever answer for, unless it is being done."""
        if row.request_id in self._running:
            return
        words = "it began, and nobody can tell how it ended; look at the worker before asking again"
        envelope = envelopes.refused(
            row.action, row.request_id, "request_state_uncertain", "terminal_uncertain", words
        )
        await self.commands.finish(row.request_id, "uncertain", envelope)

    # --- reads ---------------------------------------------------------------------------------

    async def _answer_read(self, request: Request) -> Envelope:
        status = "resolved" if request.action == "resolve_target" else "snapshot"
        try:
            subject = self.daemon.resolve(request.action, request.target, request.args)
            work = maybeDeferred(
                self.daemon.perform,
                request.action,
                subject,
                request.args,
                request.request_id or "",
            ).addTimeout(self.deadline, self.clock)
            return answers.read(request, status, await work)
        except CancelledError:
            raise
        except Refusal as refusal:
            return answers.read_refused(request, refusal)
        except PiTelegramError as error:
            return answers.unavailable(request, str(error))
        except TimeoutError:
            return answers.unavailable(request, "the worker did not answer in time")
        except Exception:
            self._log.failure("{action} failed", action=request.action)
            return answers.unavailable(request, "the daemon failed; its log has the reason")

    # --- changes -------------------------------------------------------------------------------

    async def _answer_change(self, request: Request) -> Envelope:
        assert request.request_id is not None
        try:
            known = self.commands.find(request.request_id)
            subject = self._subject(request, known)
            form = canonical_form(request, subject.key)
            answer = self._at_once(request, known, form)
        except Refusal as refusal:
            if known is not None:
                return answers.duplicate(request)  # it names something else than before
            return answers.unavailable(request, str(refusal), refusal.code)
        except PiTelegramError as error:
            return answers.unavailable(request, str(error))
        if answer is not None:
            return answer
        running = self._running.get(request.request_id)
        if running is None:
            started = known is not None and known.state == "send_started"
            work = self._settle(request, known) if started else self._do(request, subject, form)
            running = self._begin(request, form, work)
        waiting: Deferred[Envelope] = running.done.when()
        try:
            return await waiting.addTimeout(self.deadline, self.clock)
        except TimeoutError:
            return answers.pending(request)

    def _subject(self, request: Request, known: Receipt | None) -> Subject:
        """What it is about: as before for an exact repetition, else as it is resolved now.

        @raise Refusal: it cannot be resolved.
        """
        if known is not None and known.selector_proof == selector_proof(request):
            return Subject(key=known.subject)
        return self.daemon.resolve(request.action, request.target, request.args)

    def _at_once(self, request: Request, known: Receipt | None, form: str) -> Envelope | None:
        """Answer from what is known; None when it has to be begun, or is being done."""
        running = self._running.get(request.request_id or "")
        if running is not None:
            return None if running.canonical == form else answers.duplicate(request)
        if known is None:
            return None
        if known.canonical_version != VERSION or known.fingerprint != fingerprint_of(
            known.canonical
        ):
            return answers.uncertain(request)
        if known.action != request.action or known.canonical != form:
            return answers.duplicate(request)
        if known.state in TERMINAL:
            return answers.stored(request, known.envelope)
        if known.state == "reserved" and self._now_ms() < (known.owner_until_ms or 0):
            return answers.pending(request)
        return None

    def _begin(self, request: Request, form: str, work: Any) -> _Running:
        running = self._running[request.request_id or ""] = _Running(form)
        spawn(self._log, "a control command", self._run(request, running, work))
        return running

    async def _run(self, request: Request, running: _Running, work: Any) -> None:
        answer = answers.uncertain(request)
        try:
            answer = await work
        except CancelledError:
            raise
        except Exception:
            self._log.failure("{action} failed", action=request.action)
        finally:
            del self._running[request.request_id or ""]
            running.done.fire(answer)

    async def _do(self, request: Request, subject: Subject, form: str) -> Envelope:
        request_id, owner = request.request_id or "", owner_hash(self.random_bytes(32))
        claim = Claim(
            request_id=request_id,
            action=request.action,
            canonical=form,
            fingerprint=fingerprint_of(form),
            selector_proof=selector_proof(request),
            subject=subject.key,
            owner_hash=owner,
            owner_until_ms=self._now_ms() + LEASE_MS,
        )
        try:
            self.daemon.check(request.action, subject)
            # Asked for together, so that both share one commit; the second is nothing unless the
            # first succeeded.
            reserving = self.commands.reserve(claim)
            starting = self.commands.send_started(request_id, claim.fingerprint, owner)
            outcomes = await DeferredList([reserving, starting], consumeErrors=True)
        except Refusal as refusal:
            return answers.unavailable(request, str(refusal), refusal.code)
        for succeeded, outcome in outcomes:
            if not succeeded:
                return await self._start_failed(request, owner, outcome.value)
        if not all(outcome for _, outcome in outcomes):
            return answers.pending(request)  # somebody took it over, or took it, just now
        perform = self.daemon.perform
        return await self._finish(
            request, lambda: perform(request.action, subject, request.args, request_id)
        )

    async def _start_failed(self, request: Request, owner: str, error: Exception) -> Envelope:
        """A commit failed: only the row itself tells how far it got."""
        if not isinstance(error, PiTelegramError):
            raise error
        known = self.commands.find(request.request_id or "")
        if known is not None and known.state != "reserved":
            return answers.uncertain(request)
        if known is not None:
            await self.commands.abandon(known.request_id, owner)
        return answers.unavailable(request, str(error))

    async def _settle(self, request: Request, known: Receipt | None) -> Envelope:
        """An earlier daemon began it and ended before it knew the outcome."""
        assert known is not None
        subject, settle = Subject(key=known.subject), self.daemon.settle
        return await self._finish(
            request, lambda: settle(request.action, subject, request.args, known)
        )

    async def _finish(self, request: Request, work: Work) -> Envelope:
        """Do it, store how it ended, and only then say so."""
        state, answer = await self._outcome(request, work)
        try:
            if await self.commands.finish(request.request_id or "", state, answer):
                return answer
            known = self.commands.find(request.request_id or "")
        except PiTelegramError as error:
            return answers.uncertain(request, str(error))
        return answers.stored(request, None if known is None else known.envelope)

    async def _outcome(self, request: Request, work: Work) -> tuple[str, Envelope]:
        try:
            result = await maybeDeferred(work)
        except CancelledError:
            raise
        except Refusal as refusal:
            return "rejected", answers.rejected(request, refusal.code, str(refusal))
        except (LaunchFailed, PiRefused) as error:
            return "rejected", answers.rejected(request, "backend_failed", str(error))
        except PiCancelled as error:
            return "rejected", answers.rejected(request, "cancelled", str(error))
        except PiTelegramError as error:
            return "uncertain", answers.uncertain(request, str(error))
        except Exception:
            self._log.failure("{action} failed", action=request.action)
            return "uncertain", answers.uncertain(request)
        return "accepted", answers.accepted(request, dict(result))

    def _now_ms(self) -> int:
        return int(self.clock.seconds() * 1000)

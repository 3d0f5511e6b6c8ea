"""Running a plan: sequences with pipes, branches side by side, retries, limits.

A failed step with C{continue} gives nothing to the next one; C{branch} stops the steps around it,
C{root} everything.  Of a parallel group one branch is enough.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

import attrs
from twisted.internet.defer import (
    CancelledError,
    Deferred,
    DeferredSemaphore,
    succeed,
)
from twisted.internet.interfaces import IReactorTime

from pitelegram.bridge.templates.model import Command, Group, Step
from pitelegram.kernel.deferring import deferred, gathered, sleep
from pitelegram.worker.ending import Processes
from pitelegram.worker.outputs import OUTPUT_CHARS, bounded, marked
from pitelegram.worker.programs import Ended, Starter

BRANCH_CHARS = 1_000_000
"""Of the output of a branch that goes into another program."""

AT_ONCE = 4
"""Programs that run at one time; the others wait, and their time does not run yet."""


@attrs.frozen(kw_only=True)
class Failed:
    """An attempt of a step that failed.

    @ivar label: what it is called.
    @ivar words: how it failed.
    @ivar errors: the beginning of its standard error.
    """

    label: str
    words: str
    errors: str = ""


@attrs.frozen(kw_only=True)
class Result:
    """What came of a plan.

    @ivar text: the result within its bound; empty when there is none.
    @ivar failed: every attempt that failed, whether that mattered or not.
    """

    ok: bool
    text: str
    failed: tuple[Failed, ...] = ()


class Runner:
    """Runs plans.

    @param reactor: provides C{IReactorProcess} and C{IReactorTime}.
    @param directory: where programs run.
    @param environment: all that they get.
    """

    def __init__(
        self,
        reactor: Any,
        directory: str,
        environment: Mapping[str, str],
        processes: Processes | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        self._starter = Starter(reactor, directory, environment, processes)
        self._slots = DeferredSemaphore(at_once)

    def stop(self) -> Deferred[None]:
        """End all programs; fire when nothing of them is left."""
        return self._starter.stop()

    @deferred
    async def run(self, plan: Step, stdin: str) -> Result:
        """Run a plan to its end; the failure of a program is in the result.

        Cancelling ends every program of it.

        @param stdin: what the first programs read.
        """
        run = _Run(self._starter, self._slots)
        data = stdin.encode("utf-8", "replace")
        outcome = await run.step(plan, data, OUTPUT_CHARS, None)
        text = bounded(outcome.text()) if outcome.ok and not outcome.missing else outcome.text()
        return Result(ok=outcome.ok, text=text, failed=tuple(run.failed))


@attrs.frozen(kw_only=True)
class _Outcome:
    """How a step ended.

    @ivar root: whether everything must stop.
    @ivar missing: characters of the data that were not kept.
    """

    ok: bool
    data: bytes = b""
    missing: int = 0
    words: str = ""
    root: bool = False

    def text(self) -> str:
        """The data as text, with a mark when some is missing."""
        return marked(self.data.decode("utf-8", "replace").strip(), self.missing)


class _Limit:
    """Time for a step; it runs from the start of its first program, which has all of it."""

    def __init__(self, clock: IReactorTime, seconds: float | None, outer: _Limit | None) -> None:
        self._clock = clock
        self._seconds = seconds
        self._outer = outer
        self._until: float | None = None

    def begin(self) -> None:
        """A program starts."""
        if self._outer is not None:
            self._outer.begin()
        if self._until is None and self._seconds is not None:
            self._until = self._clock.seconds() + self._seconds

    def left(self) -> float | None:
        """Seconds that are left, None without a limit."""
        own = self._seconds if self._until is None else self._until - self._clock.seconds()
        outer = None if self._outer is None else self._outer.left()
        known = [seconds for seconds in (own, outer) if seconds is not None]
        return min(known) if known else None


class _Run:
    """One run of a plan."""

    def __init__(self, starter: Starter, slots: DeferredSemaphore) -> None:
        self.failed: list[Failed] = []
        self._starter = starter
        self._slots = slots

    async def step(
        self, step: Step, stdin: bytes, keep: int | None, outer: _Limit | None
    ) -> _Outcome:
        """Try a step as often as it may be.

        @param keep: most characters of its output; None keeps its bytes for the next program.
        """
        clock = self._starter.clock
        outcome = _Outcome(ok=False)
        for attempt in range(step.retry):
            if attempt and step.recover is not None:
                limit = _Limit(clock, step.timeout, outer)
                if not (await self.step(step.recover, b"", 0, limit)).ok:
                    break
            limit = _Limit(clock, step.timeout, outer)
            await self._wait(step.delay, limit)
            outcome = await self._once(step, stdin, keep, limit)
            if outcome.ok:
                break
        if outcome.ok and step.output is not None:
            return _Outcome(ok=True, data=step.output.encode("utf-8", "replace"))
        return outcome

    async def _wait(self, seconds: float, limit: _Limit) -> None:
        left = limit.left()
        seconds = seconds if left is None else min(seconds, left)
        if seconds > 0:
            await sleep(self._starter.clock, seconds)

    async def _once(self, step: Step, stdin: bytes, keep: int | None, limit: _Limit) -> _Outcome:
        if isinstance(step, Command):
            return await self._command(step, stdin, keep, limit)
        assert isinstance(step, Group)
        if step.parallel:
            return await self._beside(step, stdin, keep, limit)
        return await self._sequence(step, stdin, keep, limit)

    async def _command(
        self, step: Command, stdin: bytes, keep: int | None, limit: _Limit
    ) -> _Outcome:
        await self._slots.acquire()
        try:
            limit.begin()
            left = limit.left()
            if left is not None and left <= 0:
                ended = Ended(ok=False, words="had no time left")
            else:
                ended = await self._starter.run(step.words, stdin, keep, left)
        finally:
            self._slots.release()
        if ended.ok:
            return _Outcome(ok=True, data=ended.out, missing=ended.missing)
        self.failed.append(Failed(label=step.label, words=ended.words, errors=ended.errors))
        return _Outcome(ok=False, words=ended.words, root=step.failure == "root")

    async def _sequence(
        self, group: Group, stdin: bytes, keep: int | None, limit: _Limit
    ) -> _Outcome:
        outcome = _Outcome(ok=True, data=stdin)
        for number, step in enumerate(group.steps, 1):
            kept = keep if number == len(group.steps) else None
            tried = await self.step(step, outcome.data, kept, limit)
            if not tried.ok and (tried.root or step.failure != "continue"):
                return tried
            outcome = tried if tried.ok else _Outcome(ok=True)
        return outcome

    async def _beside(
        self, group: Group, stdin: bytes, keep: int | None, limit: _Limit
    ) -> _Outcome:
        kept = BRANCH_CHARS if keep is None else keep
        outcomes = await self._together(
            [self.step(step, stdin, kept, limit) for step in group.steps]
        )
        if any(outcome.root for outcome in outcomes):
            return _Outcome(ok=False, words="one branch stopped everything", root=True)
        if not any(outcome.ok for outcome in outcomes):
            return _Outcome(ok=False, words="every branch failed")
        branches = zip(group.steps, outcomes, strict=True)
        joined = "\n".join(_branch(step.label, outcome) for step, outcome in branches)
        return _Outcome(ok=True, data=joined.encode("utf-8", "replace"))

    async def _together(
        self, coroutines: list[Coroutine[Deferred[Any], Any, _Outcome]]
    ) -> list[_Outcome]:
        """Run all; one that stops everything cancels the others."""
        works: list[Deferred[_Outcome]] = []
        stopped: list[bool] = []

        def look(outcome: _Outcome) -> _Outcome:
            if outcome.root:
                stopped.append(True)
                for work in reversed(works):
                    work.cancel()
            return outcome

        for coroutine in coroutines:
            if stopped:
                coroutine.close()
                works.append(succeed(_Outcome(ok=False, words="was stopped")))
                continue
            works.append(Deferred.fromCoroutine(coroutine).addCallback(look))
        outcomes: list[_Outcome] = []
        for ok, value in await gathered(works):
            if ok:
                outcomes.append(value)
            elif stopped and value.check(CancelledError):
                outcomes.append(_Outcome(ok=False, words="was stopped"))
            else:
                value.raiseException()
        return outcomes


def _branch(label: str, outcome: _Outcome) -> str:
    """One branch of a parallel group, as it stands in the joined output."""
    status = "done" if outcome.ok else "failed"
    text = outcome.text() if outcome.ok else outcome.words
    return f"--- branch: {label} status: {status} ---\n{text}".rstrip("\n")

"""What an operator changes in Pi from the chat: model, thinking, session, context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bridge.menus import compact, sessions
from pitelegram.bridge.menus.model import COMPACTING, Model
from pitelegram.errors import PiGone, PiRefused, Refusal
from pitelegram.kernel.deferring import sleep
from pitelegram.pi.interfaces import IPiHost
from pitelegram.worker.brake import Brake
from pitelegram.worker.port import HostPort
from pitelegram.worker.queue import Queue

CALM_DUE = 5.0
"""Seconds that an aborted run may take to be stored before a new session is given up."""
_LOOK = 0.05


class Changes:
    """Makes changes; each is harmless to make again, or is made once per request id.

    A model or level that is chosen while Pi works counts from Pi's next request to the model on: a
    tool that runs is not touched, nothing is aborted, and the run goes on by itself.

    @param at_work: whether Pi works, compacts, or has something of ours.
    @param typing: shows C{typing…} or ends it.
    @param reopen: lets the queue hand prompts again, unless this worker is ending.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        host: IPiHost,
        port: HostPort,
        queue: Queue,
        brake: Brake,
        at_work: Callable[[], bool],
        typing: Callable[[bool], None],
        reopen: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._host = host
        self._port = port
        self._queue = queue
        self._brake = brake
        self._at_work = at_work
        self._typing = typing
        self._reopen = reopen

    def working(self) -> bool:
        """Whether Pi works now."""
        return self._at_work()

    def compacting(self) -> bool:
        """Whether Pi compacts its context now."""
        return bool((self._host.state or {}).get("isCompacting"))

    def has_work(self) -> bool:
        """Whether Pi works, or prompts wait for it."""
        return self._at_work() or bool(self._queue.skippable())

    def waiting(self) -> int:
        """How many prompts wait."""
        return len(self._queue.view())

    # --- model and thinking --------------------------------------------------------------------

    async def use_model(self, model: Model) -> bool:
        """Have Pi use a model; returns whether it was at work.

        @raise Refusal: it compacts just now.
        @raise PiRefused: it cannot use it.
        """
        if self.compacting():
            raise Refusal("busy", COMPACTING)
        busy = self._at_work()
        await self._host.command("set_model", provider=model.provider, modelId=model.id)
        return busy

    async def use_level(self, level: str) -> str:
        """Have Pi think at a level; returns the one that is in force then."""
        await self._host.command("set_thinking_level", level=level)
        found = (self._host.state or {}).get("thinkingLevel")
        return found if isinstance(found, str) else level

    # --- sessions ------------------------------------------------------------------------------

    async def new_session(self, request_id: str) -> None:
        """Have an idle Pi begin a new session.

        @raise Refusal: it was not done.
        """
        await self._port.new_session(request_id)

    async def renew(self, request_id: str) -> None:
        """Abort what runs and begin a new session; what waits runs there.

        @raise Refusal: it was not done.
        """
        self._queue.close()
        try:
            await self._brake.abort()
            until = self._clock.seconds() + CALM_DUE
            while self._at_work() and self._clock.seconds() < until:
                await sleep(self._clock, _LOOK)
            await self._port.new_session(request_id)
        finally:
            self._reopen()

    async def switch(self, request_id: str, path: str) -> None:
        """Have an idle Pi go into another session.

        @raise Refusal: it was not done.
        """
        if self._at_work():
            raise Refusal("busy", sessions.BUSY)
        await self._port.switch_session(request_id, path)

    # --- context -------------------------------------------------------------------------------

    async def compact(self, request_id: str, instructions: str) -> str:
        """Have Pi compact its context; returns what the operator is told when it is over."""
        self._typing(True)
        try:
            compacting: Deferred[Any] = self._port.compact(request_id, instructions or None)
            await compacting
        except (Refusal, PiRefused, PiGone) as error:
            self._log.info("a compaction did not work: {reason}", reason=str(error))
            words = str(error)
            return compact.CANCELLED if "cancelled" in words.lower() else compact.failed(words)
        finally:
            self._typing(False)
        return compact.COMPLETED

"""One prompt at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, DeferredLock, TimeoutError
from twisted.internet.interfaces import IReactorTime

from pitelegram.errors import PiGone, PiRefused
from pitelegram.kernel.observers import OneShot

PROMPT_SECONDS = 600.0
"""How long a prompt may wait for its turn, and how long for its answer."""


class PromptLine:
    """Lets one prompt be in flight, from its bytes to its response.

    Two in flight would cost the second: Pi answers that it started and forgets it.  So the turn ends
    with the response or with Pi, not when a caller gives up or its time is over.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._turn = DeferredLock()

    async def give(self, write: Callable[[], Deferred[Any]]) -> Any:
        """Call C{write} when it is this prompt's turn, and return the response's data.

        @param write: writes the prompt; its Deferred fires with the response, or fails when Pi ends.
        @raise PiRefused: the turn never came; nothing was written.
        @raise PiGone: no response came in time.
        """
        try:
            await self._turn.acquire().addTimeout(PROMPT_SECONDS, self._clock)
        except TimeoutError:
            raise PiRefused("an earlier message is still being taken; this one was not given to Pi")
        reply: OneShot[Any] = OneShot()
        try:
            response = write()
        except BaseException:
            self._turn.release()
            raise
        response.addBoth(self._over, reply)
        try:
            return await reply.when().addTimeout(PROMPT_SECONDS, self._clock)
        except TimeoutError:
            raise PiGone("Pi did not answer a prompt in time")

    async def pause(self) -> Callable[[], None]:
        """Keep prompts that are not written yet from being written; does not wait for one that is.

        Returns what ends the pause.
        """
        if self._turn.locked:
            return lambda: None
        await self._turn.acquire()
        return self._turn.release

    def _over(self, result: Any, reply: OneShot[Any]) -> None:
        self._turn.release()
        reply.fire(result)

"""Raw answers become deliveries, one after the other; drawn in C{docs/worker.md}."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.bridge.attaching import attached_answers, takes_files
from pitelegram.bridge.comments import read
from pitelegram.bridge.composing import Composed, compose, plain
from pitelegram.bridge.outgoing import IOutboundHandlers, Recording, Speech
from pitelegram.bridge.rendering.records import RenderOptions
from pitelegram.errors import StoreError, VoiceFailed
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.store.worker_interfaces import IOutgoing
from pitelegram.worker.minting import minting
from pitelegram.worker.preferences import Preferences
from pitelegram.worker.speaking import Speaker, Spoken


@implementer(IOutboundHandlers)
class NoOutboundHandlers:
    """Where the operator has no programs."""

    def takes_text(self) -> bool:
        """See L{IOutboundHandlers}."""
        return False

    def transform(self, text: str) -> Deferred[str]:
        """See L{IOutboundHandlers}."""
        return succeed(text)

    def takes_voice(self) -> bool:
        """See L{IOutboundHandlers}."""
        return False

    def speak(self, speech: Speech) -> Deferred[Recording]:
        """See L{IOutboundHandlers}."""
        return fail(VoiceFailed("no program that speaks is configured"))

    def discard(self, recording: Recording) -> None:
        """See L{IOutboundHandlers}."""

    def stop(self) -> Deferred[None]:
        """See L{IOutboundHandlers}."""
        return succeed(None)


class Composer(Service):
    """Takes raw answers in order and puts deliveries in their place.

    Where no program has to run it is done before L{kick} returns.  After a crash it is done again
    from the raw answer, and the deliveries have the same ids.  What fails is shown as it was
    written: an answer is never lost to its looks.

    @param keep: stores a file of an answer; see L{compose}.
    @param stored: called after each commit.
    @ivar busy: whether an answer is being composed.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        outgoing: IOutgoing,
        preferences: Preferences,
        handlers: IOutboundHandlers,
        speaker: Speaker,
        keep: Callable[[bytes, str], str],
        stored: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._random = random
        self._outgoing = outgoing
        self._mint = minting(random, outgoing)
        self._preferences = preferences
        self._handlers = handlers
        self._speaker = speaker
        self._keep = keep
        self._stored = stored
        self._backoff = Backoff(0.5, 30.0, random)
        self._running: Deferred[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether an answer is being composed, or waits for it."""
        return self._running is not None

    def startService(self) -> None:
        """Compose what a former process left."""
        super().startService()
        self.kick()

    @deferred
    async def stopService(self) -> None:
        """Stop; an answer that is not composed is composed by the next process."""
        Service.stopService(self)
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await running

    def kick(self) -> None:
        """A raw answer was stored."""
        if self.running and self._running is None:
            running = self._run()
            if not running.called:
                self._running = running

    @deferred
    async def _run(self) -> None:
        try:
            while self.running and (raw := self._outgoing.raw()) is not None:
                composed, attached = await self._composed(raw)
                await self._commit(raw, composed, attached)
        except CancelledError:
            return
        except Exception:
            self._log.failure("composing answers failed")
        finally:
            self._running = None

    async def _commit(
        self, raw: dict[str, Any], composed: Composed, attached: Sequence[int]
    ) -> None:
        """Store it, however long the disk is full: nothing behind it may go before it."""
        while True:
            try:
                await self._outgoing.composed(
                    raw["delivery_id"], composed.answers, composed.buttons, attached
                )
                break
            except StoreError as error:
                self._log.error("an answer could not be stored: {reason}", reason=str(error))
                if self._outgoing.raw() != raw:
                    return
            await sleep(self._clock, self._backoff.next())
        self._backoff.reset()
        self._stored()

    async def _composed(self, raw: dict[str, Any]) -> tuple[Composed, list[int]]:
        attached: list[int] = []
        try:
            answer = read(str(raw["delivery"]["text"]))
            if answer.markdown and self._handlers.takes_text():
                text = await self._handlers.transform(answer.markdown)
                answer = attrs.evolve(answer, markdown=text)
            spoken = Spoken(answer=answer)
            if self._speaker.wanted(raw, answer):
                spoken = await self._speaker.speak(raw, answer)
            composed = compose(
                raw, spoken.answer, self._options(), self._mint, self._keep, spoken.calls
            )
            more = list(spoken.notices)
            if takes_files(raw):
                files = self._outgoing.attached()
                more += attached_answers(raw, files)
                attached = [file.seq for file in files]
            return attrs.evolve(composed, answers=(*composed.answers, *more)), attached
        except CancelledError:
            raise
        except Exception:
            self._log.failure("an answer is shown as it was written")
            return plain(raw), []

    def _options(self) -> RenderOptions:
        return RenderOptions(
            rendering=self._preferences.get("rendering"),
            file_after=self._preferences.get("fileAfter"),
        )

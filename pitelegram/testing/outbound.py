"""Outbound handlers in memory."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred, fail, succeed
from zope.interface import implementer
from zope.interface.verify import verifyClass

from pitelegram.bridge.outgoing import IOutboundHandlers, Recording, Speech
from pitelegram.errors import VoiceFailed

SOUND = b"OggS sound of "


@implementer(IOutboundHandlers)
class FakeOutboundHandlers:
    """Changes and speaks what a test tells it.

    @param directory: where recordings are made.
    @ivar before: what is put before each text, None: texts stay.
    @ivar speaks: whether it can speak.
    @ivar held: while set, speaking waits for L{release}.
    @ivar spoken: what was to be spoken, oldest first.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.before: str | None = None
        self.speaks = True
        self.held = False
        self.spoken: list[Speech] = []
        self._waiting: list[tuple[Deferred[Recording], Speech]] = []

    def takes_text(self) -> bool:
        """See L{IOutboundHandlers}."""
        return self.before is not None

    def transform(self, text: str) -> Deferred[str]:
        """See L{IOutboundHandlers}."""
        return succeed(f"{self.before or ''}{text}")

    def takes_voice(self) -> bool:
        """See L{IOutboundHandlers}."""
        return self.speaks

    def speak(self, speech: Speech) -> Deferred[Recording]:
        """See L{IOutboundHandlers}."""
        self.spoken.append(speech)
        if not self.speaks:
            return fail(VoiceFailed("nobody speaks"))
        result: Deferred[Recording] = Deferred()
        self._waiting.append((result, speech))
        if not self.held:
            self.release()
        return result

    def release(self) -> None:
        """Make the recordings that wait."""
        waiting, self._waiting = self._waiting, []
        for result, speech in waiting:
            path = self._directory / f"{len(self.spoken)}.ogg"
            path.write_bytes(SOUND + speech.text.encode())
            path.chmod(0o600)
            if not result.called:
                result.callback(Recording(path=str(path)))

    def discard(self, recording: Recording) -> None:
        """See L{IOutboundHandlers}."""
        Path(recording.path).unlink()

    def stop(self) -> Deferred[None]:
        """See L{IOutboundHandlers}."""
        return succeed(None)


verifyClass(IOutboundHandlers, FakeOutboundHandlers)

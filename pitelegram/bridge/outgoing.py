"""What an answer of the agent is made of, before it becomes calls of the Bot API."""

from __future__ import annotations

import attrs
from twisted.internet.defer import Deferred
from zope.interface import Interface


@attrs.frozen(kw_only=True)
class Button:
    """A button that the agent asked for.

    @ivar prompt: what a press sends to the agent.
    @ivar style: C{primary}, C{success} or C{danger}: its looks once it was pressed.
    """

    label: str
    prompt: str
    style: str | None = None


@attrs.frozen(kw_only=True)
class Speech:
    """Words that the agent wants spoken.

    @ivar lang: as the operator's programs know it, such as C{en}.
    @ivar rate: as the operator's programs know it, such as C{+10%}.
    """

    text: str
    lang: str | None = None
    rate: str | None = None


@attrs.frozen(kw_only=True)
class Answer:
    """An answer without its hidden comments (C{bridge.comments.read}).

    @ivar markdown: what is shown; empty when there were only comments.
    @ivar buttons: rows of the keyboard.
    @ivar speeches: in order, none when nothing is to be spoken.
    """

    markdown: str
    buttons: tuple[tuple[Button, ...], ...] = ()
    speeches: tuple[Speech, ...] = ()


@attrs.frozen(kw_only=True)
class Recording:
    """A spoken text.

    @ivar path: an C{.ogg} or C{.opus} file that is ours to remove.
    @ivar transcript: its words, where the operator wants them below it.
    """

    path: str
    transcript: str | None = None


class IOutboundHandlers(Interface):
    """The operator's own programs for what goes out (C{worker.outbound.OutboundHandlers})."""

    def takes_text() -> bool:
        """Whether L{transform} may change anything."""

    def transform(text: str) -> Deferred[str]:
        """The text as the operator's programs change it.  Never fails: where one does, as it was."""

    def takes_voice() -> bool:
        """Whether anything is there that could speak."""

    def speak(speech: Speech) -> Deferred[Recording]:
        """Speak a text.

        @raise pitelegram.errors.VoiceFailed: every program and provider failed.
        """

    def discard(recording: Recording) -> None:
        """A recording is not needed any more."""

    def stop() -> Deferred[None]:
        """End all programs; fire when nothing of them is left."""

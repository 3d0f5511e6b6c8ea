"""What plug-ins do with messages: handlers by kind, and transcribers of recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from pitelegram.bridge.interfaces import FileItem
from pitelegram.bridge.outgoing import Speech
from pitelegram.errors import ConfigError

PROVIDER_SECONDS = 120.0
LONGEST_NAME = 64

Transcriber = Callable[[FileItem], Any]
"""Returns the words of a recording: a text, an object with C{text}, or None; or waits for one."""

Synthesizer = Callable[[Speech], Any]
"""Returns the path of a recording of a text, or waits for one; None: it cannot."""

Provider = Callable[[str, "FileItem | None"], Any]
"""Is given the message's text and a file (None for the text itself); returns like a transcriber."""


@attrs.frozen
class _Registered:
    name: str
    work: Callable[..., Any]


class Providers:
    """The plug-ins' registrations of one worker; those who came first are asked first."""

    def __init__(self) -> None:
        self._transcribers: list[_Registered] = []
        self._synthesizers: list[_Registered] = []
        self._handlers: list[_Registered] = []

    def register_transcriber(self, name: str, provider: Transcriber) -> Callable[[], None]:
        """Add who writes recordings down; return what takes it away again.

        @raise ConfigError: the name is none, or taken.
        """
        if any(known.name == name for known in self._transcribers):
            raise ConfigError(f"there is a transcriber {name!r} already")
        return _add(self._transcribers, name, provider)

    def register_synthesizer(self, name: str, provider: Synthesizer) -> Callable[[], None]:
        """Add who speaks texts; return what takes it away again.

        @raise ConfigError: the name is none, or taken.
        """
        if any(known.name == name for known in self._synthesizers):
            raise ConfigError(f"there is a synthesizer {name!r} already")
        return _add(self._synthesizers, name, provider)

    def register_handler(self, kind: str, provider: Provider) -> Callable[[], None]:
        """Add who does something with messages of a kind; return what takes it away again.

        @param kind: C{text}, C{photo}, C{document}, C{voice}, …, or C{*} for every kind of file.
        @raise ConfigError: the kind is none.
        """
        return _add(self._handlers, kind, provider)

    def transcribers(self) -> list[tuple[str, Transcriber]]:
        """Return names and providers in their order."""
        return [(known.name, known.work) for known in self._transcribers]

    def synthesizers(self) -> list[tuple[str, Synthesizer]]:
        """Return names and providers in their order."""
        return [(known.name, known.work) for known in self._synthesizers]

    def handlers(self, kind: str) -> list[Provider]:
        """Return the providers for a kind, then those for every kind of file."""
        kinds = (kind,) if kind == "text" else (kind, "*")
        return [known.work for wanted in kinds for known in self._handlers if known.name == wanted]


def _add(known: list[_Registered], name: str, work: Callable[..., Any]) -> Callable[[], None]:
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        raise ConfigError(f"a plug-in's registration has a name of 1 to {LONGEST_NAME} characters")
    registered = _Registered(name, work)
    known.append(registered)

    def remove() -> None:
        known[:] = [other for other in known if other is not registered]

    return remove


class ProviderFailed(Exception):
    """A plug-in did not do its part; the text says how, in words."""


def ask(clock: IReactorTime, work: Callable[..., Any], *arguments: Any) -> Deferred[str]:
    """Call a plug-in and return its text, empty when it has none.

    It fails with L{ProviderFailed} only, unless it is cancelled, which cancels the plug-in's work.
    """
    running = maybeDeferred(work, *arguments)
    dropped: list[bool] = []

    def drop(_: object) -> None:
        dropped.append(True)
        running.cancel()

    result: Deferred[str] = Deferred(drop)
    running.addTimeout(PROVIDER_SECONDS, clock, lambda *_: _late())

    def done(value: Any) -> None:
        if dropped:
            return
        try:
            result.callback(_text_of(value))
        except ProviderFailed as error:
            result.errback(error)

    def failed(failure: Failure) -> None:
        if not dropped:
            result.errback(_as_failed(failure))

    running.addCallbacks(done, failed)
    return result


def _late() -> None:
    raise ProviderFailed(f"took longer than {PROVIDER_SECONDS:g} s")


def _as_failed(failure: Failure) -> ProviderFailed:
    """A plug-in's error by its class alone: its text may hold anything."""
    if isinstance(failure.value, ProviderFailed):
        return failure.value
    if failure.check(CancelledError):
        return ProviderFailed("was stopped")
    return ProviderFailed(f"failed ({type(failure.value).__name__})")


def _text_of(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("text", value.get("audioPath"))
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ProviderFailed("gave something that is no text")
    return value.strip()

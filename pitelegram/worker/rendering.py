"""What turns Pi's words into deliveries, wired."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pitelegram.bridge.outgoing import IOutboundHandlers
from pitelegram.store.outfiles import OutFiles
from pitelegram.store.worker_interfaces import IOutgoing
from pitelegram.worker.bestcalls import BestEffort
from pitelegram.worker.composing import Composer
from pitelegram.worker.preferences import Preferences
from pitelegram.worker.speaking import Speaker


def make_composer(
    clock: IReactorTime,
    random: Random,
    outgoing: IOutgoing,
    preferences: Preferences,
    handlers: IOutboundHandlers,
    files: OutFiles,
    in_thread: Callable[..., Deferred[Any]],
    calls: BestEffort,
    target: Callable[[], dict[str, int] | None],
    stored: Callable[[], None],
) -> Composer:
    """Return the composer with all that it needs.

    @param in_thread: C{(function, *arguments) -> Deferred}, for copying files.
    @param target: returns the worker's Thread, None while there is none.
    @param stored: called when something is ready to be submitted.
    """
    speaker = Speaker(
        handlers,
        files,
        in_thread,
        lambda: bool(preferences.get("voice.sendTranscript")),
        lambda: calls.action("record_voice", target()),
    )
    return Composer(clock, random, outgoing, preferences, handlers, speaker, files.keep, stored)


def voice_mode(preferences: Preferences, handlers: IOutboundHandlers) -> str:
    """Return C{hidden}, C{mirror} or C{always}; C{hidden} where nobody can speak."""
    return str(preferences.get("voice.replyMode")) if handlers.takes_voice() else "hidden"

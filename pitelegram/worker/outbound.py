"""The operator's own programs for what goes out: L{IOutboundHandlers}.

Entries of C{outboundHandlers} are tried in their order, then, for speech, plug-ins.  The first result
wins; what fails is logged and passed over.
"""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.bridge.outbound import TEXT, VOICE, OutboundEntry, read_outbound, values_of
from pitelegram.bridge.outgoing import IOutboundHandlers, Recording, Speech
from pitelegram.bridge.templates.model import Value
from pitelegram.bridge.templates.planning import plan
from pitelegram.errors import TemplateError, UnsafeFile, VoiceFailed
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.files import ensure_private_dir
from pitelegram.worker.ending import Processes
from pitelegram.worker.providers import ProviderFailed, Providers, ask
from pitelegram.worker.running import Runner

TIMEOUT = 120.0
"""Seconds for an entry that says none (bridge facts, "Voice out")."""

LARGEST = 50 * 1024 * 1024
"""Bytes of a recording; Telegram takes no more."""

_SUFFIXES = (".ogg", ".opus")
_MAGIC = b"OggS"


@implementer(IOutboundHandlers)
class OutboundHandlers:
    """Runs what the setting and plug-ins say.

    @param reactor: provides C{IReactorProcess} and C{IReactorTime}.
    @param directory: the project: where programs run.
    @param environment: of the programs, that is Pi's own.
    @param entries: returns the value of C{outboundHandlers} as it stands, whatever that is.
    @param scratch: a directory for what programs write; made when it is needed, emptied at the start.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: Any,
        directory: Path,
        environment: Mapping[str, str],
        entries: Callable[[], object],
        scratch: Path,
        providers: Providers | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.providers = providers or Providers()
        self._clock = reactor
        self._directory = directory
        self._home = Path(environment.get("HOME") or "/")
        self._runner = Runner(reactor, str(directory), environment, processes)
        self._setting = entries
        self._scratch = scratch
        self._read: object = None
        self._entries: tuple[OutboundEntry, ...] = ()
        shutil.rmtree(scratch, ignore_errors=True)

    def takes_text(self) -> bool:
        """See L{IOutboundHandlers}."""
        return bool(self._of(TEXT))

    def takes_voice(self) -> bool:
        """See L{IOutboundHandlers}."""
        return bool(self._of(VOICE) or self.providers.synthesizers())

    @deferred
    async def transform(self, text: str) -> str:
        """See L{IOutboundHandlers}."""
        for entry in self._of(TEXT):
            made = await self._guarded(entry, values_of(text), text)
            if made:
                text = made
        return text

    @deferred
    async def speak(self, speech: Speech) -> Recording:
        """See L{IOutboundHandlers}."""
        for entry in self._of(VOICE):
            place = self._place()
            mp3, ogg = str(place / "voice.mp3"), str(place / "voice.ogg")
            values = values_of(speech.text, speech.lang, speech.rate, mp3, ogg)
            made = await self._guarded(entry, values, speech.text)
            if made and (path := self._checked(entry.place, made.splitlines()[-1].strip())):
                return Recording(path=path)
            shutil.rmtree(place, ignore_errors=True)
        for name, provider in self.providers.synthesizers():
            try:
                made = await ask(self._clock, provider, speech)
            except ProviderFailed as error:
                self._log.warn("{name} did not speak: {reason}", name=name, reason=str(error))
                continue
            if made and (path := self._checked(name, made)):
                return Recording(path=path)
        raise VoiceFailed("no program or plug-in gave a recording")

    def discard(self, recording: Recording) -> None:
        """See L{IOutboundHandlers}."""
        path = Path(recording.path)
        if self._scratch in path.parents:
            shutil.rmtree(self._scratch / path.relative_to(self._scratch).parts[0], True)

    def stop(self) -> Deferred[None]:
        """End all programs; fire when nothing of them is left."""
        return self._runner.stop()

    def _of(self, kind: str) -> list[OutboundEntry]:
        value = self._setting()
        if self._read is None or value != self._read:
            self._read = value
            self._entries, problems = read_outbound(value)
            for problem in problems:
                self._log.warn("an outbound handler is skipped: {problem}", problem=problem)
        return [entry for entry in self._entries if entry.kind == kind]

    def _place(self) -> Path:
        ensure_private_dir(self._scratch)
        place = self._scratch / uuid.uuid4().hex
        ensure_private_dir(place)
        return place

    async def _guarded(self, entry: OutboundEntry, values: Mapping[str, Value], text: str) -> str:
        """Run one entry; its output, empty when there is none for whatever reason."""
        try:
            step = plan(entry.template, values, self._home, self._directory)
            if step is None:
                return ""
            limited = attrs.evolve(step, timeout=step.timeout or TIMEOUT)
            result = await self._runner.run(limited, text)
        except CancelledError:
            raise
        except (TemplateError, UnsafeFile) as error:
            self._log.warn("{place} cannot run: {why}", place=entry.place, why=str(error))
            return ""
        except Exception:
            self._log.failure("an outbound handler failed")
            return ""
        for failure in result.failed:
            self._log.warn(
                "{place}: {step} failed: {reason}",
                place=entry.place,
                step=failure.label,
                reason=failure.words,
            )
        return result.text if result.ok else ""

    def _checked(self, place: str, name: str) -> str | None:
        """Return the path of a recording, None when it is none that Telegram takes as voice."""
        given = os.path.join(self._directory, os.path.expanduser(name))
        path = os.path.join(os.path.realpath(os.path.dirname(given)), os.path.basename(given))
        why = _wrong(path)
        if why is not None:
            self._log.warn("{place}: its result {why}", place=place, why=why)
            return None
        return path


def _wrong(path: str) -> str | None:
    if not path.lower().endswith(_SUFFIXES):
        return "is no .ogg or .opus file"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return "cannot be read"
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            return "is no regular file of this account"
        if not 0 < found.st_size <= LARGEST:
            return "is empty or too large"
        return None if os.read(descriptor, len(_MAGIC)) == _MAGIC else "is no Ogg stream"
    finally:
        os.close(descriptor)

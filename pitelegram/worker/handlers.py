"""The operator's own programs for what comes in: L{IInboundHandlers}.

For each file the entries of C{inboundHandlers} are tried in their order, then plug-ins, then, for
recordings, transcribers; the first one with an output wins.  Whatever fails is told and passed over;
what a recording was understood to say is told too.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.bridge import handlerwords as words
from pitelegram.bridge.inbound import TEXT, Entry, read_entries
from pitelegram.bridge.interfaces import FileItem, IInboundHandlers, Processed
from pitelegram.bridge.templates.model import Value
from pitelegram.bridge.templates.planning import plan
from pitelegram.errors import TemplateError
from pitelegram.kernel.deferring import deferred, gathered
from pitelegram.worker.ending import Processes
from pitelegram.worker.outputs import bounded
from pitelegram.worker.providers import ProviderFailed, Providers, ask
from pitelegram.worker.running import Failed, Runner

TIMEOUT = 120.0
"""Seconds for an entry that says none."""

_SHORTEST_SECRET = 4


@attrs.define
class _Found:
    """What was made of a file or of the text.

    @ivar output: empty when there is nothing.
    @ivar tried: whether any program was there for it.
    """

    output: str = ""
    tried: bool = False
    notices: list[str] = attrs.field(factory=list)


@implementer(IInboundHandlers)
class InboundHandlers:
    """Runs what the setting and plug-ins say.

    @param reactor: provides C{IReactorProcess} and C{IReactorTime}.
    @param directory: the project: where programs run.
    @param environment: of the programs, that is Pi's own.
    @param entries: returns the value of C{inboundHandlers} as it stands, whatever that is.
    @param providers: what plug-ins registered.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: Any,
        directory: Path,
        environment: Mapping[str, str],
        entries: Callable[[], object],
        providers: Providers | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.providers = providers or Providers()
        self._clock = reactor
        self._directory = directory
        self._home = Path(environment.get("HOME") or "/")
        self._runner = Runner(reactor, str(directory), environment, processes)
        self._setting = entries
        self._read: object = None
        self._entries: tuple[Entry, ...] = ()

    def takes_text(self) -> bool:
        """See L{IInboundHandlers}; a setting that was not read yet counts as one that does."""
        known = self._read is not None and self._setting() == self._read
        entries = any(entry.takes_text for entry in self._entries)
        return not known or entries or bool(self.providers.handlers(TEXT))

    @deferred
    async def process(self, text: str, files: Sequence[FileItem]) -> Processed:
        """See L{IInboundHandlers}."""
        notices = self._refresh()
        works = [self._guarded(self._of_file(text, file), file.kind) for file in files]
        if text.strip():
            works.append(self._guarded(self._of_text(text), TEXT))
        found = await _all(works)
        for each in found:
            notices += each.notices
        replaced = found.pop().output if text.strip() else ""
        made = [(file, each.output) for file, each in zip(files, found, strict=True) if each.output]
        notices += [words.heard(output) for file, output in made if words.is_recording(file)]
        spoken = [output for file, output in made if _is_own_speech(file)]
        if not text.strip() and spoken:
            replaced = "\n\n".join(spoken)
            outputs = [_told(file, output) for file, output in made if not _is_own_speech(file)]
        else:
            outputs = [_told(file, output) for file, output in made]
        return Processed(
            text=replaced or None,
            outputs=tuple(outputs),
            notices=tuple(dict.fromkeys(notices)),
            handled=tuple(file.path for file, _ in made),
        )

    def stop(self) -> Deferred[None]:
        """End all programs; fire when nothing of them is left."""
        return self._runner.stop()

    def _refresh(self) -> list[str]:
        """Read the setting if it changed; return what is wrong with it, once."""
        value = self._setting()
        if _same(value, self._read):
            return []
        self._read = value
        self._entries, problems = read_entries(value)
        for problem in problems:
            self._log.warn("a handler is skipped: {problem}", problem=problem)
        return [words.skipped(problem) for problem in problems]

    async def _guarded(self, work: Coroutine[Deferred[Any], Any, _Found], kind: str) -> _Found:
        """A fault of ours costs the output, not the message."""
        try:
            return await work
        except CancelledError:
            raise
        except Exception:
            self._log.failure("handling a message failed")
            return _Found(notices=[words.failed("a handler", kind, "an error of this program")])

    async def _of_text(self, text: str) -> _Found:
        found = _Found()
        values = _values(text, None)
        for entry in self._entries:
            if entry.takes_text and await self._entry(entry, values, text, TEXT, found):
                return found
        for provider in self.providers.handlers(TEXT):
            if await self._provider(found, TEXT, "a plug-in", provider, text, None):
                return found
        return found

    async def _of_file(self, text: str, file: FileItem) -> _Found:
        found = _Found()
        values = _values(text, file)
        for entry in self._entries:
            if entry.takes(file) and await self._entry(entry, values, text, file.kind, found):
                return found
        for provider in self.providers.handlers(file.kind):
            if await self._provider(found, file.kind, "a plug-in", provider, text, file):
                return found
        if words.is_recording(file):
            await self._transcribe(file, found)
        return found

    async def _transcribe(self, file: FileItem, found: _Found) -> None:
        for name, transcriber in self.providers.transcribers():
            if await self._provider(found, file.kind, name, transcriber, file):
                return
        if not found.notices:
            nothing = words.nothing_heard(file.kind) if found.tried else words.NOBODY_LISTENS
            found.notices.append(nothing)

    async def _entry(
        self, entry: Entry, values: Mapping[str, Value], text: str, kind: str, found: _Found
    ) -> bool:
        """Run one entry; whether it gave an output."""
        try:
            step = plan(entry.template, values, self._home, self._directory)
        except TemplateError as error:
            self._log.warn("a handler cannot run: {problem}", problem=str(error))
            found.notices.append(words.unusable(str(error), kind))
            return False
        if step is None:
            return False
        found.tried = True
        limited = attrs.evolve(step, timeout=step.timeout or TIMEOUT)
        result = await self._runner.run(limited, text)
        for failure in result.failed:
            self._report(step.label, failure, values)
        if result.text:
            found.output = result.text
        elif result.failed:
            last = result.failed[-1]
            found.notices.append(words.failed(step.label, kind, last.words, last.label))
        return bool(result.text)

    async def _provider(
        self, found: _Found, kind: str, name: str, work: Callable[..., Any], *arguments: Any
    ) -> bool:
        """Ask one plug-in; whether it gave an output."""
        found.tried = True
        try:
            output = await ask(self._clock, work, *arguments)
        except ProviderFailed as error:
            self._log.warn("{name} did not work: {reason}", name=name, reason=str(error))
            found.notices.append(words.failed(name, kind, str(error)))
            return False
        found.output = bounded(output)
        return bool(output)

    def _report(self, label: str, failure: Failed, values: Mapping[str, Value]) -> None:
        """Log a failure; what the program was given is taken out of what it says."""
        errors = "" if values["type"] == TEXT else _scrubbed(failure.errors, values)
        self._log.warn(
            "handler {label}: {step} failed: {reason}; standard error: {errors}",
            label=label,
            step=failure.label,
            reason=failure.words,
            errors=errors,
        )


def _same(value: object, other: object) -> bool:
    """Whether two settings are equal; those that are nested too deep to tell are not."""
    try:
        return value == other
    except RecursionError:
        return False


def _is_own_speech(file: FileItem) -> bool:
    return words.is_recording(file) and not file.foreign


def _told(file: FileItem, output: str) -> str:
    """An output as it goes into the prompt; that of a forwarded file says whose it is."""
    return f"[{file.name}]\n{output}" if file.foreign else output


def _values(text: str, file: FileItem | None) -> dict[str, Value]:
    """What the placeholders of a handler stand for."""
    values: dict[str, Value]
    if file is None:
        size = len(text.encode("utf-8", "replace"))
        values = {"file": "", "mime": "text/plain", "type": TEXT, "name": "", "size": size}
    else:
        values = {"file": file.path, "mime": file.mime, "type": file.kind, "name": file.name}
        values["size"] = file.size
    values["text"] = text
    return values


def _scrubbed(errors: str, values: Mapping[str, Value]) -> str:
    for name in ("text", "file", "name"):
        for line in str(values[name]).splitlines():
            if len(line) >= _SHORTEST_SECRET:
                errors = errors.replace(line, f"<{name}>")
    return errors


async def _all(works: Sequence[Coroutine[Deferred[Any], Any, _Found]]) -> list[_Found]:
    """Run all at once; cancelling ends all."""
    results = await gathered([Deferred.fromCoroutine(work) for work in works])
    for ok, value in results:
        if not ok:
            value.raiseException()
    return [value for _, value in results]

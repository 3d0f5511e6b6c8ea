"""A prompt made of messages: their files fetched, the handlers run, the text laid out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.bridge import intakewords as words
from pitelegram.bridge.content import Content, read_content
from pitelegram.bridge.filerefs import FileRef
from pitelegram.bridge.interfaces import FileItem, IInboundHandlers, Processed
from pitelegram.bridge.marking import bounded, guard
from pitelegram.bridge.prompt import (
    SUMMARY_LENGTH,
    Part,
    compose,
    own_words,
    summary,
    time_line,
)
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.kernel.jsonio import loads
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.files import Files, Missing, exists
from pitelegram.worker.reading import pictures, text_of

TIME_EVERY = 3600.0
"""Seconds between two C{[time]} lines with C{timeInjection: interval}."""

_TIME_KEY = "time-told"


@implementer(IInboundHandlers)
class NoHandlers:
    """What runs where no handlers are configured: nothing."""

    def takes_text(self) -> bool:
        """See L{IInboundHandlers.takes_text}."""
        return False

    @deferred
    async def process(self, text: str, files: Sequence[FileItem]) -> Processed:
        """See L{IInboundHandlers.process}."""
        return Processed()


@attrs.frozen(kw_only=True)
class Made:
    """A complete prompt.

    @ivar content: what the inbox keeps beside it (C{docs/intake.md}).
    @ivar notices: what the operator is told.
    """

    prompt: str
    content: dict[str, Any]
    notices: tuple[str, ...] = ()


class Maker:
    """Makes prompts; knows nothing of windows and rows' states.

    @param thread_name: returns the name of the worker's Thread, where it has one.
    @param time_injection: returns C{hidden}, C{always} or C{interval}.
    @param voice_mode: returns C{hidden}, C{mirror} or C{always}; C{hidden} where nobody can speak.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        inbox: IInbox,
        files: Files,
        handlers: IInboundHandlers,
        thread_name: Callable[[], str | None],
        time_injection: Callable[[], str],
        voice_mode: Callable[[], str] = lambda: "hidden",
    ) -> None:
        self._clock = clock
        self._inbox = inbox
        self._files = files
        self._handlers = handlers
        self._thread_name = thread_name
        self._time_injection = time_injection
        self._voice_mode = voice_mode

    def read(self, row: InboxRow) -> Content:
        """Return what a row's message carries; never raises for what a message may hold."""
        try:
            update = loads(row.body or b"{}")
            message = update.get("message") or update.get("edited_message")
            return read_content(message if isinstance(message, dict) else {})
        except Exception:
            self._log.failure("a message could not be read; its prompt names that")
            return Content(message_id=row.message_id or 0, notes=("[message] unreadable",))

    def plain(self, content: Content) -> str | None:
        """Return the prompt of a text for which nothing has to be waited, None for others."""
        if not content.only_text or self._handlers.takes_text() or self._time_is_due():
            return None
        if self._voice_mode() == "always":
            return None
        return compose([Part(content=content)], self._thread_name())

    def preview(self, contents: Sequence[Content]) -> tuple[str, str]:
        """Return the text and the summary of a prompt that is not complete yet."""
        parts = [Part(content=content) for content in contents]
        own = own_words([part for part in parts if part.content.forward is None])
        prompt = compose(parts, self._thread_name())
        return prompt, _summary(prompt, own, [ref for each in contents for ref in each.files])

    @deferred
    async def make(self, contents: Sequence[Content], former: dict[str, Any] | None = None) -> Made:
        """Fire with the prompt once everything of it is there.

        @param contents: of the messages, in their order.
        @param former: the C{content} of a prompt that this one replaces: its files are used again.
        """
        known = _former_files(former)
        # All begin before the first is waited for.
        begun = [
            [
                known.get((content.message_id, ref.unique_id)) or self._files.fetch(ref)
                for ref in content.files
            ]
            for content in contents
        ]
        parts, kept = [], []
        for content, fetches in zip(contents, begun, strict=True):
            found = [each if isinstance(each, FileItem) else await each for each in fetches]
            here = [file for file in found if isinstance(file, FileItem)]
            gone = [guard(file.words) for file in found if isinstance(file, Missing)]
            parts.append(Part(content=content, files=tuple(here), missing=tuple(gone)))
            kept += [
                {
                    "message_id": content.message_id,
                    "unique": ref.unique_id,
                    "file_id": ref.file_id,
                    **attrs.asdict(file),
                }
                for ref, file in zip(content.files, found, strict=True)
                if isinstance(file, FileItem)
            ]
        return await self._laid_out(parts, kept, former)

    async def _laid_out(
        self, parts: list[Part], kept: list[dict[str, Any]], former: dict[str, Any] | None
    ) -> Made:
        files = _all_files(parts)
        own = own_words([part for part in parts if part.content.forward is None])
        processed = await self._handlers.process(own, files)
        read = [text_of(file) for file in files if file.path not in processed.handled]
        outputs = [*processed.outputs, *(bounded(text) for text in read if text is not None)]
        time = self._time(former)
        voice = self._is_spoken(files)
        prompt = compose(parts, self._thread_name(), processed.text, outputs, time, voice)
        content: dict[str, Any] = {
            "files": kept,
            "images": pictures(files),
            "outputs": outputs,
            "summary": _summary(prompt, own if processed.text is None else processed.text, files),
            "time": time,
            "voice": voice,
        }
        notices = list(processed.notices)
        lost = [line for part in parts for line in part.missing]
        if lost:
            notices.append(words.not_fetched(lost))
        stored = {name: value for name, value in content.items() if value}
        return Made(prompt=prompt, content=stored, notices=tuple(notices))

    def _is_spoken(self, files: Sequence[FileItem]) -> bool:
        """Whether the whole answer will be spoken; C{mirror} answers a voice note so."""
        mode = self._voice_mode()
        heard = any(file.kind == "voice" and not file.foreign for file in files)
        return mode == "always" or (mode == "mirror" and heard)

    def _time(self, former: dict[str, Any] | None) -> str | None:
        """Return the time if this prompt is to tell it; one that did goes on telling the same."""
        if former is not None:
            told = former.get("time")
            return told if isinstance(told, str) else None
        if not self._time_is_due():
            return None
        now = self._clock.seconds()
        if self._time_injection() == "interval":
            told = self._inbox.set_meta(_TIME_KEY, f"{int(now)}")
            spawn(self._log, "remembering the time", told)
        return time_line(now)

    def _time_is_due(self) -> bool:
        mode, since = self._time_injection(), self._clock.seconds() - self._last_told()
        return mode == "always" or (mode == "interval" and not 0 <= since < TIME_EVERY)

    def _last_told(self) -> float:
        try:
            return float(self._inbox.get_meta(_TIME_KEY) or "-inf")
        except ValueError:
            return float("-inf")


def _all_files(parts: Sequence[Part]) -> list[FileItem]:
    """Return each file once, in their order, and whether it is somebody else's."""
    return list(
        {
            file.path: attrs.evolve(file, foreign=part.content.forward is not None)
            for part in parts
            for file in part.files
        }.values()
    )


def _former_files(former: dict[str, Any] | None) -> dict[tuple[int, str], FileItem]:
    """Return the files of a former prompt that are still on this disk."""
    listed = (former or {}).get("files")
    found = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and exists(str(each.get("path"))):
            item = FileItem(
                **{name: each[name] for name in ("kind", "path", "name", "mime", "size")}
            )
            found[each["message_id"], each["unique"]] = item
    return found


def files_missing(row: InboxRow) -> bool:
    """Whether a file of a prompt is not on this disk any more."""
    listed = (row.content or {}).get("files")
    return any(
        isinstance(each, dict) and not exists(str(each.get("path")))
        for each in (listed if isinstance(listed, list) else ())
    )


def _summary(prompt: str, own: str, files: Sequence[FileItem | FileRef]) -> str:
    if own.strip():
        return summary(own)
    if files and prompt.count("[forward|from:") == 0:
        more = f" +{len(files) - 1}" if len(files) > 1 else ""
        return f"📎 {files[0].name[: SUMMARY_LENGTH - 6]}{more}"
    return summary(prompt)

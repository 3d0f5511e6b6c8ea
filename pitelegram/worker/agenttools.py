"""What the agent's own tools do: files with the answer, messages, help."""

from __future__ import annotations

import mimetypes
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.bridge.composing import raw_answer
from pitelegram.bridge.guidance import help_text
from pitelegram.errors import StoreError, ToolRefused, UnsafeFile
from pitelegram.kernel.deferring import deferred
from pitelegram.store.outfiles import OutFiles
from pitelegram.store.rows import AttachedFile
from pitelegram.store.worker_interfaces import IInbox, IOutgoing
from pitelegram.worker.interfaces import IAgentTools
from pitelegram.worker.picturesize import HEAD, sides

MOST_FILES = 10
LARGEST = 50 * 1024 * 1024
LARGEST_PHOTO = 10 * 1024 * 1024
LONGEST_SIDES = 10_000
"""Of a photo, width and height together (Bot API)."""

MOST_RATIO = 20
LONGEST_TEXT = 200_000

_PHOTOS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
}


@attrs.frozen
class _Found:
    """A file that may be sent."""

    path: str
    size: int
    mime: str
    photo: bool


@implementer(IAgentTools)
class AgentTools:
    """See L{IAgentTools}.

    @param directory: the project, where Pi runs.
    @param in_thread: C{(function, *arguments) -> Deferred}, for copying.
    @param only_inside: whether files must lie in the project.
    @param in_turn: whether a run is under way that somebody in Telegram asked for.
    @param stored: called when a message was stored.
    @param now_ms: milliseconds since the epoch.
    @param largest: returns the bytes of the largest file that the Bot API's server takes.
    """

    def __init__(
        self,
        inbox: IInbox,
        outgoing: IOutgoing,
        files: OutFiles,
        directory: Path,
        in_thread: Callable[..., Deferred[Any]],
        only_inside: Callable[[], bool],
        in_turn: Callable[[], bool],
        stored: Callable[[], None],
        now_ms: Callable[[], int],
        largest: Callable[[], int] = lambda: LARGEST,
    ) -> None:
        self._inbox = inbox
        self._outgoing = outgoing
        self._files = files
        self._directory = directory
        self._in_thread = in_thread
        self._only_inside = only_inside
        self._in_turn = in_turn
        self._stored = stored
        self._now_ms = now_ms
        self._largest = largest
        self._taking = 0

    @deferred
    async def call(self, tool: str, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """See L{IAgentTools}."""
        if tool == "telegram_help":
            return f"\n{help_text(params.get('topic'))}", {}
        try:
            if tool == "telegram_attach":
                return await self._attach(params)
            if tool == "telegram_message":
                return await self._message(params)
        except StoreError:
            raise ToolRefused("\nThe worker's store cannot be written now; try again.") from None
        raise ToolRefused("\nThere is no such tool.")

    async def _attach(self, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        paths, caption = params.get("paths"), params.get("caption")
        if not isinstance(paths, list) or not all(isinstance(each, str) for each in paths):
            raise ToolRefused("\npaths is a list of texts.")
        waiting = len(self._outgoing.attached()) + self._taking
        if not 1 <= len(paths) <= MOST_FILES - waiting:
            raise ToolRefused(f"\nAttachment limit reached ({MOST_FILES})")
        self._taking += len(paths)
        try:
            found = [self._checked(path) for path in paths]
            copies = [await self._taken(file) for file in found]
            if caption:
                copies[0] = attrs.evolve(copies[0], caption=str(caption))
            await self._outgoing.attach(copies)
        finally:
            self._taking -= len(paths)
        plural = "" if len(paths) == 1 else "s"
        return f"\nQueued {len(paths)} Telegram attachment{plural}.", {"paths": paths}

    async def _taken(self, file: _Found) -> AttachedFile:
        """Copy a file: what the agent does to its own later changes nothing."""
        owner = f"attached-{uuid.uuid4().hex}"
        try:
            copy = await self._in_thread(self._files.take, file.path, owner, self._largest())
        except (OSError, UnsafeFile):
            raise ToolRefused(f"\nNot a file: {os.path.basename(file.path)}") from None
        return AttachedFile(
            path=copy,
            name=os.path.basename(file.path)[:255],
            mime=file.mime,
            size=file.size,
            photo=file.photo,
        )

    def _checked(self, path: str) -> _Found:
        try:
            real = os.path.realpath(os.path.join(self._directory, path))
            size, head = _look(real)
        except (OSError, ValueError):
            raise ToolRefused(f"\nNot a file: {path}") from None
        home = os.path.realpath(self._directory)
        if self._only_inside() and os.path.commonpath([home, real]) != home:
            raise ToolRefused(f"\nOutside of the project, which is not allowed here: {path}")
        largest = self._largest()
        if size > largest:
            raise ToolRefused(
                f"\nAttachment exceeds size limit ({size} bytes > {largest} bytes): {path}"
            )
        if size == 0:
            raise ToolRefused(f"\nThe file is empty: {path}")
        mime = next((kind for magic, kind in _PHOTOS.items() if head.startswith(magic)), None)
        guessed = mimetypes.guess_type(real)[0] or "application/octet-stream"
        return _Found(real, size, mime or guessed, mime is not None and _is_photo(mime, head, size))

    async def _message(self, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        text, thread = params.get("text"), params.get("thread")
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_TEXT:
            raise ToolRefused(f"\ntext has 1 to {LONGEST_TEXT} characters.")
        if thread:
            raise ToolRefused("\nTelegram agent target is unavailable, ambiguous, or not live.")
        if self._in_turn():
            raise ToolRefused(
                "\nTelegram agent turn routing is unavailable. Your answer is sent by itself."
            )
        raw = raw_answer(
            f"message-{uuid.uuid4().hex}", text, self._now_ms(), origin="local", silent=False
        )
        await self._inbox.add_answer(raw["delivery_id"], raw["kind"], raw["delivery"])
        self._stored()
        return "\nSent Telegram message to this Thread.", {}


def _look(path: str) -> tuple[int, bytes]:
    """Return size and head of a regular file, following nothing.

    @raise OSError: it is none.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        info = os.fstat(file.fileno())
        if not os.path.isfile(path):
            raise OSError("no regular file")
        return info.st_size, file.read(HEAD)


def _is_photo(mime: str, head: bytes, size: int) -> bool:
    """Whether Telegram takes a picture as a photo."""
    width, height = sides(mime, head)
    if not width or not height or size > LARGEST_PHOTO:
        return False
    ratio = max(width, height) / min(width, height)
    return width + height <= LONGEST_SIDES and ratio <= MOST_RATIO

"""The files that a message names."""

from __future__ import annotations

import mimetypes
import re
from typing import Any

import attrs

from pitelegram.bridge.marking import plain

Message = dict[str, Any]

MAX_FILES = 50
FILE_KINDS = {
    "animation": ("animation", "mp4"),
    "audio": ("audio", "mp3"),
    "document": ("document", "bin"),
    "sticker": ("sticker", "webp"),
    "video": ("video", "mp4"),
    "video_note": ("video-message", "mp4"),
    "voice": ("voice", "ogg"),
}
"""Kinds with one file each: what an unnamed one is called, and its extension where none is told."""

_TYPES = {"ogg": "audio/ogg", "webp": "image/webp", "jpg": "image/jpeg", "webm": "video/webm"}
_EXTENSIONS = {"audio/ogg": ".ogg", "audio/mpeg": ".mp3", "audio/mp4": ".m4a", "text/plain": ".txt"}
_MIME = re.compile(r"\A[A-Za-z0-9][A-Za-z0-9.+_-]{0,60}/[A-Za-z0-9][A-Za-z0-9.+_-]{0,80}\Z")
_UNSAFE = re.compile(r"[/\\:*?\"<>]+")
_NAME_BYTES = 100


@attrs.frozen(kw_only=True)
class FileRef:
    """A file that Telegram keeps.

    @ivar unique_id: the same for the same file, whoever sends it; the file id where there is none.
    @ivar name: safe as a file name on any system; its own where it has one.
    @ivar size: bytes as Telegram says, None where it does not.
    """

    kind: str
    file_id: str
    unique_id: str
    name: str
    mime: str
    size: int | None = None


def files_of(message: Message) -> list[FileRef]:
    """Return the files of a message, of its paid media, or of its rich text."""
    number = _integer(message.get("message_id")) or 0
    found = _own_files(message, f"{number}")
    paid = message.get("paid_media")
    items = paid.get("paid_media") if isinstance(paid, dict) else None
    for index, item in enumerate(items if isinstance(items, list) else (), 1):
        if isinstance(item, dict):
            found += _own_files(item, f"{number}-{index}")
    found += _rich_files(message.get("rich_message"), number, 0)
    return found[:MAX_FILES]


def _own_files(holder: Message, label: str) -> list[FileRef]:
    found = []
    if (size := _largest(holder.get("photo"))) is not None:
        found.append(_file("photo", size, f"photo-{label}.jpg", "image/jpeg"))
    for kind, (word, extension) in FILE_KINDS.items():
        about = holder.get(kind)
        if kind == "document" and isinstance(holder.get("animation"), dict):
            continue  # Telegram sends both members for one file.
        if isinstance(about, dict) and _text(about.get("file_id")):
            found.append(_named(kind, about, f"{word}-{label}", extension))
    return found


def _largest(sizes: Any) -> Message | None:
    """Return the biggest C{PhotoSize}; Telegram puts it last."""
    known = [s for s in (sizes if isinstance(sizes, list) else [sizes]) if isinstance(s, dict)]
    known = [size for size in known if _text(size.get("file_id"))]
    area = {
        id(s): (_integer(s.get("width")) or 0) * (_integer(s.get("height")) or 0) for s in known
    }
    return max(reversed(known), key=lambda size: area[id(size)], default=None)


def _named(kind: str, about: Message, stem: str, extension: str) -> FileRef:
    if kind == "sticker":
        moving = about.get("is_animated") is True, about.get("is_video") is True
        extension = "tgs" if moving[0] else "webm" if moving[1] else "webp"
    told = about.get("mime_type")
    mime = told.lower() if isinstance(told, str) and _MIME.match(told) else ""
    guessed = _EXTENSIONS.get(mime) or (mimetypes.guess_extension(mime) if mime else None)
    fallback = f"{stem}{guessed or '.' + extension}"
    name = safe_name(about.get("file_name"), fallback)
    mime = (
        mime or _TYPES.get(extension) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    )
    return _file(kind, about, name, mime)


def _file(kind: str, about: Message, name: str, mime: str) -> FileRef:
    file_id = _text(about.get("file_id"))
    size = _integer(about.get("file_size"))
    return FileRef(
        kind=kind,
        file_id=file_id,
        unique_id=_text(about.get("file_unique_id")) or file_id,
        name=name,
        mime=mime,
        size=size if size is not None and size >= 0 else None,
    )


def _rich_files(value: Any, number: int, depth: int) -> list[FileRef]:
    """Return every file in a rich message, wherever its blocks have it."""
    if depth > 24:
        return []
    if isinstance(value, list):
        nested = [_rich_files(each, number, depth + 1) for each in value[:500]]
        found = [file for files in nested for file in files]
    elif isinstance(value, dict):
        found = _own_files(value, str(number))
        rest = [v for k, v in value.items() if k != "photo" and k not in FILE_KINDS]
        found += _rich_files(rest, number, depth + 1)
    else:
        return []
    if depth == 0:
        found = [
            attrs.evolve(file, name=_numbered(file.name, index))
            for index, file in enumerate(found, 1)
        ]
    return found


def _numbered(name: str, index: int) -> str:
    stem, dot, extension = name.rpartition(".")
    return f"{stem}-{index}.{extension}" if dot else f"{name}-{index}"


def safe_name(name: object, default: str) -> str:
    """Return a file name without any power: no separators, control or direction characters.

    @param default: for what is no name; safe already.
    """
    words = plain(name, "", 1000) if isinstance(name, str) else ""
    words = _UNSAFE.sub("_", words.removesuffix("…")).lstrip(". -").rstrip(". ")
    stem, dot, extension = words.rpartition(".")
    if not dot or len(extension.encode()) > 20:
        stem, extension = words, ""
    room = _NAME_BYTES - len(extension.encode()) - 1
    stem = stem.encode()[:room].decode("utf-8", "ignore").strip()
    if not stem:
        return default
    return f"{stem}.{extension}" if extension else stem


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: Any) -> int | None:
    return value if type(value) is int else None

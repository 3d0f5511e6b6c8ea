"""Files that users and the bot send, kept in memory."""

from __future__ import annotations

import re
import string
import struct
from random import Random
from typing import Any

import attrs

from pitelegram.sandbox.errors import bad_request

MAX_DOWNLOAD = 20 * 1024 * 1024
MAX_UPLOAD = 50 * 1024 * 1024
MAX_PHOTO = 10 * 1024 * 1024
MAX_SIDES = 10_000
MAX_RATIO = 20

_ALPHABET = string.ascii_letters + string.digits + "_-"


@attrs.frozen(kw_only=True)
class StoredFile:
    """One file.

    @ivar kind: C{document}, C{photo}, C{audio}, C{voice} or C{video}.
    @ivar path: C{file_path} of C{getFile}.
    @ivar meta: further members (C{width}, C{duration} …).
    """

    file_id: str
    unique_id: str
    kind: str
    name: str
    mime_type: str
    data: bytes
    path: str
    meta: dict[str, Any] = attrs.Factory(dict)

    def as_json(self) -> dict[str, Any]:
        """Return the Bot API's object for it (for a photo: one C{PhotoSize})."""
        about: dict[str, Any] = {
            "file_id": self.file_id,
            "file_unique_id": self.unique_id,
            "file_size": len(self.data),
            **self.meta,
        }
        if self.kind != "photo":
            about["mime_type"] = self.mime_type
        if self.name and self.kind in ("document", "audio", "video"):
            about["file_name"] = self.name
        return about


class FileShelf:
    """All files of one bot.

    @ivar max_upload: bytes of a file that the bot may send; tests lower it.
    @ivar max_photo: bytes of a photo, likewise.
    """

    def __init__(self, random: Random) -> None:
        self.max_upload = MAX_UPLOAD
        self.max_photo = MAX_PHOTO
        self._random = random
        self._files: dict[str, StoredFile] = {}

    def add(self, kind: str, data: bytes, name: str, mime_type: str, **meta: Any) -> StoredFile:
        """Keep a file; C{meta} are members for its Bot API object."""
        number = len(self._files)
        extension = (
            re.sub(r"[^A-Za-z0-9.]", "", "." + name.rsplit(".", 1)[1]) if "." in name else ""
        )
        if kind == "photo":
            extension = extension or ".jpg"
            width, height = image_size(data)
            meta = {"width": width, "height": height, **meta}
        file = StoredFile(
            file_id=self._random_word(64),
            unique_id=self._random_word(15),
            kind=kind,
            name=name,
            mime_type=mime_type,
            data=data,
            path=f"{kind}s/file_{number}{extension[:12]}",
            meta=meta,
        )
        self._files[file.file_id] = file
        return file

    def get(self, file_id: str) -> StoredFile | None:
        """Return a file by its id."""
        return self._files.get(file_id)

    def by_path(self, path: str) -> StoredFile | None:
        """Return a file by its download path."""
        return next((file for file in self._files.values() if file.path == path), None)

    def link(self, file_id: str) -> dict[str, Any]:
        """Return the answer of C{getFile}."""
        file = self._files.get(file_id)
        if file is None:
            raise bad_request("invalid file_id")
        if len(file.data) > MAX_DOWNLOAD:
            raise bad_request("file is too big")
        return {
            "file_id": file.file_id,
            "file_unique_id": file.unique_id,
            "file_size": len(file.data),
            "file_path": file.path,
        }

    def _random_word(self, length: int) -> str:
        return "".join(self._random.choice(_ALPHABET) for _ in range(length))


def image_size(data: bytes) -> tuple[int, int]:
    """Return width and height of a PNG, JPEG, GIF or BMP.

    @raise pitelegram.sandbox.errors.ApiError: undecodable, or of a size that no photo may have.
    """
    width, height = _dimensions(data)
    if not width or not height:
        raise bad_request("IMAGE_PROCESS_FAILED")
    if width + height > MAX_SIDES or max(width, height) > MAX_RATIO * min(width, height):
        raise bad_request("PHOTO_INVALID_DIMENSIONS")
    return width, height


def _dimensions(data: bytes) -> tuple[int, int]:
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return struct.unpack(">II", data[16:24])
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return struct.unpack("<HH", data[6:10])
    if data.startswith(b"BM") and len(data) >= 26:
        width, height = struct.unpack("<ii", data[18:26])
        return width, abs(height)
    return _jpeg_dimensions(data) if data.startswith(b"\xff\xd8") else (0, 0)


def _jpeg_dimensions(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return 0, 0

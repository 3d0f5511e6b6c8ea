"""Files that a worker names in a call: from its own directory only, and really files."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pitelegram.botapi.interfaces import Upload
from pitelegram.errors import Refusal

UPLOAD_LIMIT = 50 * 1000 * 1000
"""Bytes that the Bot API takes in one call."""

_MOST_FILES = 10
_TEXT_LIMIT = 255


def check_uploads(files: Sequence[dict[str, Any]], directory: Path) -> list[Upload]:
    """Check the files of a call.

    @param directory: the uploads directory of the instance that calls.
    @raise Refusal: C{not-allowed} (elsewhere, a link, no regular file), C{too-large} with C{limit}.
    """
    if len(files) > _MOST_FILES:
        raise Refusal("not-allowed", f"at most {_MOST_FILES} files go with one call")
    uploads = [_check_upload(file, directory) for file in files]
    if sum(upload.path.stat().st_size for upload in uploads) > UPLOAD_LIMIT:
        raise Refusal("too-large", "the files are larger than Telegram takes", limit=UPLOAD_LIMIT)
    return uploads


def _check_upload(file: dict[str, Any], directory: Path) -> Upload:
    field, path = _text(file, "field"), _text(file, "path")
    filename, mime_type = _text(file, "filename"), _text(file, "mimeType")
    parts = Path(path).parts
    inside = parts[len(directory.parts) :]
    if not inside or parts[: len(directory.parts)] != directory.parts or ".." in inside:
        raise Refusal("not-allowed", "a file must lie in the worker's uploads directory")
    _check_regular(directory, inside)
    return Upload(field=field, path=Path(path), filename=filename, mime_type=mime_type)


def _check_regular(directory: Path, inside: Sequence[str]) -> None:
    """Walk down without following a link."""
    opened: list[int] = []
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        opened.append(os.open(directory, flags | os.O_DIRECTORY))
        for name in inside[:-1]:
            opened.append(os.open(name, flags | os.O_DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(inside[-1], flags, dir_fd=opened[-1]))
        found = os.fstat(opened[-1])
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            # A hard link brings a file from elsewhere in.
            raise Refusal("not-allowed", "only regular files of the directory itself can be sent")
    except OSError:
        raise Refusal("not-allowed", "the file cannot be opened, or it is a link") from None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _text(file: dict[str, Any], name: str) -> str:
    value = file.get(name)
    limit = 4096 if name == "path" else _TEXT_LIMIT
    if not isinstance(value, str) or not 0 < len(value) <= limit or "\0" in value:
        raise Refusal("not-allowed", f"a file needs a {name}")
    return value

"""Files of accepted deliveries, copied so that nobody else can change or remove them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import attrs

from pitelegram.botapi.interfaces import Upload
from pitelegram.errors import Refusal, UnsafeFile
from pitelegram.kernel.files import ensure_private_dir, open_below, open_private, sync_dir

FILE_LIMIT = 50 * 1024 * 1024
"""Bytes of one file; more is not taken by the public Bot API.  A local server takes what it gives out."""

_PIECE = 1024 * 1024

Call = dict[str, Any]


@attrs.define(eq=False)
class Spool:
    """One directory per delivery, named by its key.  All methods block.

    @param root: the spool directory, made 0700 when it is first needed.
    @param limit: bytes of one file.
    """

    _root: Path
    _limit: int = FILE_LIMIT

    def store(self, key: str, calls: Sequence[Call], uploads: Path | None) -> list[Call]:
        """Copy the calls' files; returns the calls with spool paths, sizes and digests.

        Nothing is left behind when it fails.

        @param uploads: where the files must be; links on the way are not followed.
        @raise Refusal: C{not-allowed} (elsewhere, no regular file), C{too-large}.
        @raise UnsafeFile: the spool itself is unsafe, or the disk refuses.
        """
        ensure_private_dir(self._root)
        building = self._root / f"{key}.new-{uuid.uuid4().hex}"
        ensure_private_dir(building)
        try:
            numbers = iter(range(1_000_000))
            copied = [self._copy_call(call, key, building, uploads, numbers) for call in calls]
            sync_dir(building)
            self.discard(key)
            os.rename(building, self._root / key)
            sync_dir(self._root)
        except OSError as error:
            shutil.rmtree(building, ignore_errors=True)
            raise UnsafeFile("operation_failed", "files of an answer cannot be copied") from error
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
        return copied

    def uploads(self, call: Call) -> list[Upload]:
        """Return the files of a stored call.

        @raise UnsafeFile: C{missing_entry} or C{entry_changed}.
        """
        return [_upload(file) for file in call.get("files", ())]

    def discard(self, key: str) -> None:
        """Remove the files of a delivery, if there are any."""
        shutil.rmtree(self._root / key, ignore_errors=True)

    def sweep(self, keep: Iterable[str]) -> int:
        """Remove what belongs to no delivery in C{keep}; returns how many directories went."""
        if not self._root.is_dir():
            return 0
        kept = set(keep)
        lost = [entry.name for entry in os.scandir(self._root) if entry.name not in kept]
        for name in lost:
            self.discard(name)
        return len(lost)

    def _copy_call(
        self, call: Call, key: str, building: Path, uploads: Path | None, numbers: Iterator[int]
    ) -> Call:
        if not call.get("files"):
            return call
        files = []
        for file in call["files"]:
            name = str(next(numbers))
            with _source(file["path"], uploads) as source:
                size, digest = self._copy(source, building / name)
            path = str(self._root / key / name)
            files.append({**file, "path": path, "size": size, "sha256": digest})
        return {**call, "files": files}

    def _copy(self, source: int, destination: Path) -> tuple[int, str]:
        digest, size = hashlib.sha256(), 0
        with os.fdopen(
            open_private(destination, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb"
        ) as target:
            while piece := os.read(source, _PIECE):
                size += len(piece)
                if size > self._limit:
                    text = f"a file of an answer is larger than {self._limit} bytes"
                    raise Refusal("too-large", text, limit=self._limit)
                digest.update(piece)
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())
        return size, digest.hexdigest()


def _upload(file: dict[str, Any]) -> Upload:
    path = Path(file["path"])
    descriptor = open_private(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size != file["size"]:
        raise UnsafeFile("entry_changed", "a file of an answer was changed in the spool")
    return Upload(
        field=file["field"], path=path, filename=file["filename"], mime_type=file["mimeType"]
    )


@contextlib.contextmanager
def _source(path: str, uploads: Path | None) -> Iterator[int]:
    """Open a worker's file below C{uploads}, following no link."""
    refusal = Refusal("not-allowed", "a file to send is no regular file in the uploads directory")
    if uploads is None:
        raise refusal
    try:
        parts = PurePosixPath(path).relative_to(PurePosixPath(uploads)).parts
    except ValueError:
        raise refusal from None
    if not parts or ".." in parts:
        raise refusal
    try:
        descriptor = open_below(uploads, parts)
    except OSError:
        raise refusal from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise refusal  # a hard link brings a file from elsewhere in
        yield descriptor
    finally:
        os.close(descriptor)

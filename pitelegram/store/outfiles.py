"""Files of answers, from the moment they are ours to the leader's receipt.

A file that an answer names lies in the binding's own directory: it survives the process, its instance
and the link.  A delivery names it by that path.  When the delivery is submitted, L{OutFiles.placed}
copies it into the uploads directory of the instance that submits, under the same name, since a leader
reads nowhere else; the copy goes when the leader has answered.  The name is part of what makes
deliveries equal, the directory is not, so the same answer may be submitted by several instances.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import math
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs

from pitelegram.errors import UnsafeFile
from pitelegram.kernel.files import ensure_private_dir, open_below, open_private, write_private

_PIECE = 1024 * 1024


@attrs.define(eq=False)
class OutFiles:
    """The directory of a binding's outgoing files.  All methods block.

    @param root: the directory; made, for its owner alone, when it is first needed.
    """

    root: Path

    def keep(self, content: bytes, owner: str) -> str:
        """Store bytes and return their path; the same for the same bytes of one owner.

        @param owner: the id of the delivery that will name it.
        @raise pitelegram.errors.UnsafeFile: the directory is unsafe, or the disk refuses.
        """
        ensure_private_dir(self.root)
        path = self.root / hashlib.sha256(owner.encode() + b"\0" + content).hexdigest()
        if not path.exists():
            write_private(path, content)
        return str(path)

    def take(self, path: str, owner: str, most: int) -> str:
        """Copy a file of somebody else and return the copy's path; the same for the same owner.

        @param path: a real path: no link is followed anywhere on it, so what was looked at before cannot
            be swapped for what lies elsewhere.
        @param most: bytes; one that grows beyond them meanwhile is not taken.
        @raise pitelegram.errors.UnsafeFile: it is no regular file, or too large.
        @raise OSError: it cannot be read, or the disk refuses.
        """
        ensure_private_dir(self.root)
        target = self.root / hashlib.sha256(owner.encode()).hexdigest()
        try:
            _copy(Path(path), target, _open_foreign, most)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return str(target)

    def placed(self, delivery: dict[str, Any], uploads: Path) -> tuple[dict[str, Any], list[Path]]:
        """Return a delivery whose files lie in C{uploads}, and the copies that were made.

        A file that is gone is named all the same: the leader refuses it, and that is told.
        """
        changed = copy.deepcopy(delivery)
        made = []
        for call in changed["calls"]:
            for file in call.get("files", ()):
                source = Path(file["path"])
                target = uploads / source.name
                file["path"] = str(target)
                if target not in made and source.parent == self.root:
                    ensure_private_dir(uploads)
                    with contextlib.suppress(FileNotFoundError):
                        _copy(source, target)
                        made.append(target)
        return changed, made

    def discard(self, paths: Iterable[str]) -> None:
        """Remove files of an answer that is a leader's now."""
        for path in map(Path, paths):
            if path.parent == self.root:
                path.unlink(missing_ok=True)

    def sweep(self, named: Iterable[str]) -> int:
        """Remove the files that are not in C{named}; returns how many went.

        For the start of a process: later, files stand here that an answer is still to name.
        """
        if not self.root.is_dir():
            return 0
        kept = {os.path.basename(path) for path in named}
        lost = [entry.path for entry in os.scandir(self.root) if entry.name not in kept]
        for path in lost:
            os.unlink(path)
        return len(lost)


def remove(paths: Iterable[Path]) -> None:
    """Remove copies; one that is gone is no error."""
    for path in paths:
        path.unlink(missing_ok=True)


def _open_foreign(path: Path, _: int) -> int:
    """Open a regular file that is not ours to change."""
    descriptor = open_below(Path(path.anchor), path.parts[1:])
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnsafeFile("wrong_type", "a file to send is no regular file")
    return descriptor


def _copy(
    source: Path,
    target: Path,
    opener: Callable[[Path, int], int] = open_private,
    most: float = math.inf,
) -> None:
    copied = 0
    with os.fdopen(opener(source, os.O_RDONLY), "rb") as origin:
        target.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(open_private(target, flags), "wb") as place:
            while piece := origin.read(_PIECE):
                copied += len(piece)
                if copied > most:
                    raise UnsafeFile("too_large", "a file to send is too large")
                place.write(piece)
            place.flush()
            os.fsync(place.fileno())

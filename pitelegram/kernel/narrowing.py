"""Everything below our two directories, made private again at a start."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pitelegram.kernel.files import DIR_MODE, FILE_MODE, check_owned, refusals, refuse_links

Type = Callable[[int], bool]


def narrow_trees(
    roots: Iterable[Path], files: Iterable[Path], known: Iterable[tuple[Path, Type]]
) -> None:
    """Take from what is ours below C{roots}, and from C{files}, all that others may do with it.

    First everything that is known by name is looked at; if any of it is unsafe, nothing is changed.
    Other things of other kinds or owners are left alone: whoever needs such a name refuses it.

    @param known: paths with the type that must be there, if anything is.
    @raise UnsafeFile: C{wrong_type} or C{wrong_owner}.
    """
    roots, files = list(roots), list(files)
    looked_at = [
        *((root, stat.S_ISDIR) for root in roots),
        *((file, stat.S_ISREG) for file in files),
        *known,
    ]
    with refusals():
        for path, right_type in looked_at:
            refuse_links(path.parent)
            try:
                check_owned(os.lstat(path), right_type)
            except FileNotFoundError:
                continue
        for root in (*roots, *files):
            for path, info in _below(root):
                _narrow(path, info)


def _below(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Everything of ours from a directory downwards, a directory before its content."""
    waiting = [root]
    while waiting:
        path = waiting.pop()
        try:
            info = os.lstat(path)
        except FileNotFoundError:
            continue
        if info.st_uid != os.geteuid():
            continue
        if stat.S_ISDIR(info.st_mode):
            yield path, info
            waiting += _entries(path)
        elif stat.S_ISREG(info.st_mode) or stat.S_ISSOCK(info.st_mode):
            yield path, info


def _entries(path: Path) -> list[Path]:
    try:
        return [path / name for name in os.listdir(path)]
    except (FileNotFoundError, PermissionError):
        return []


def _narrow(path: Path, info: os.stat_result) -> None:
    """Narrow by name: the directories above are private by now, so only we could exchange it."""
    allowed = DIR_MODE if stat.S_ISDIR(info.st_mode) else FILE_MODE
    mode = stat.S_IMODE(info.st_mode)
    if not mode & ~allowed:
        return
    try:
        os.chmod(path, mode & allowed)
    except FileNotFoundError:  # sockets and temporary files of workers come and go
        return

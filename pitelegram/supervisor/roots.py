"""Where workers may run: directories below the configured roots, links resolved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pitelegram.errors import LaunchFailed, Refusal
from pitelegram.kernel import jsonio

HEADER_LIMIT = 64 * 1024


class Roots:
    """The directories that contain everything Telegram may start, resume or switch to.

    @param roots: absolute directories; one that does not exist contains nothing.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(roots)

    @property
    def real(self) -> list[Path]:
        """The roots that exist now, links resolved."""
        return [Path(os.path.realpath(root)) for root in self._roots if os.path.isdir(root)]

    def contains(self, path: Path) -> bool:
        """Whether the real path of C{path} lies in a root (or is one)."""
        resolved = Path(os.path.realpath(path))
        return any(resolved == root or root in resolved.parents for root in self.real)

    def resolve(self, directory: str) -> Path:
        """Return the real path of a directory in which a worker may run.

        @raise Refusal: C{not-a-directory} or C{outside-roots}.
        """
        if not directory.startswith("/") or "\0" in directory:
            raise Refusal("not-a-directory", "give the absolute path of a directory")
        if not is_text(os.path.realpath(directory)):
            raise Refusal("not-a-directory", "that directory's name is not UTF-8; rename it first")
        real = Path(os.path.realpath(directory))
        if not self.contains(real):
            raise Refusal(
                "outside-roots",
                "that directory lies outside the roots below which workers may run: your home,"
                " unless workers.roots in telegram.json or --root says otherwise",
            )
        if not os.path.isdir(real) or not os.access(real, os.R_OK | os.X_OK):
            raise Refusal("not-a-directory", "there is no such directory that can be entered")
        return real

    def children(self, directory: Path) -> list[Path]:
        """Return the directories in C{directory} that a picker may show, by name.

        Hidden ones, names that are no text, and links that lead out of the roots are left out; what
        cannot be read, or lies outside itself, is empty.
        """
        if not self.contains(directory):
            return []
        try:
            with os.scandir(directory) as entries:
                # Only a link can lead out: the others, of which there may be thousands, cost no look.
                names = [
                    entry.name
                    for entry in entries
                    if not entry.name.startswith(".")
                    and is_text(entry.name)
                    and _is_directory(entry)
                    and (not entry.is_symlink() or self.contains(directory / entry.name))
                ]
        except OSError:
            return []
        return [directory / name for name in sorted(names, key=lambda n: (n.lower(), n))]


def check_session(file: str, sessions: Path, roots: Roots) -> None:
    """Make sure that a recorded session may be resumed.

    A file that is missing is the worker's to tell about.

    @param sessions: Pi's own sessions directory.
    @raise LaunchFailed: permanent; it is not below C{sessions}, has no valid header, or the
        directory it works in is gone or outside the roots.
    """
    real = Path(os.path.realpath(file))
    if Path(os.path.realpath(sessions)) not in real.parents:
        raise LaunchFailed("the recorded session is not one of Pi's own session files", True)
    try:
        with open(real, "rb") as opened:
            line = opened.readline(HEADER_LIMIT)
    except FileNotFoundError:
        return
    except OSError:
        raise LaunchFailed("the recorded session cannot be read", True) from None
    if not line:
        return
    directory = _session_directory(line)
    if directory is None:
        raise LaunchFailed("the recorded session has no valid header", True)
    try:
        roots.resolve(directory)
    except Refusal:
        raise LaunchFailed(
            "the directory of the recorded session is gone or outside the roots", True
        ) from None


def _session_directory(line: bytes) -> str | None:
    try:
        header = jsonio.exact(line)
    except ValueError:
        return None
    if not isinstance(header, dict) or header.get("type") != "session":
        return None
    directory = header.get("cwd")
    return directory if isinstance(directory, str) and directory else None


def is_text(name: str) -> bool:
    """Whether a file name is UTF-8: others cannot be stored, shown or passed on."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False

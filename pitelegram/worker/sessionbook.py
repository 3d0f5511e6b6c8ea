"""Pi's sessions of this worker's directory, as an operator chooses among them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import attrs

from pitelegram.bridge.menus.data import key_of
from pitelegram.bridge.menus.sessions import SessionView, by_key
from pitelegram.pi.sessionlist import SessionFile, session_words, sessions_of


@attrs.define(eq=False)
class SessionBook:
    """Lists sessions, and finds the one that a button means.

    @param home: where Pi keeps its sessions.
    @param directory: the worker's project, a real path.
    @param current: returns the file of the session that Pi is in.
    @param now: returns seconds since the epoch.
    """

    _home: Path
    _directory: str
    _current: Callable[[], str | None]
    _now: Callable[[], float]

    def current_key(self) -> str:
        """Return what stands for the session that Pi is in, empty while it is not known."""
        current = self._current()
        return "" if current is None else key_of(current)

    def list(self) -> list[SessionView]:
        """Return the sessions, the newest first."""
        current = self._current()
        real = None if current is None else os.path.realpath(current)
        return [self._view(file, real) for file in sessions_of(self._home, self._directory)]

    def path(self, key: str) -> str | None:
        """Return the file that a button means, None when it is not there any more."""
        for file in sessions_of(self._home, self._directory):
            if by_key([self._view(file, None, False)], key) is not None:
                return str(file.path)
        return None

    def _view(self, file: SessionFile, current: str | None, words: bool = True) -> SessionView:
        name, said = session_words(file.path) if words else ("", "")
        return SessionView(
            file=os.path.relpath(file.path, self._home),
            name=name,
            words=said,
            seconds=max(0.0, self._now() - file.modified),
            current=os.path.realpath(file.path) == current,
        )

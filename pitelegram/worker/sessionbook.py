"""Pi's sessions of this worker's directory, as an operator chooses among them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import attrs

from pitelegram.bridge.menus.data import key_of
from pitelegram.bridge.menus.screen import page_count
from pitelegram.bridge.menus.sessions import PAGE, SessionView
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

    def views(self, page: int = 0) -> list[SessionView]:
        """Return the sessions, the newest first; only those of one page with name and words."""
        files, current = self._files()
        shown = min(max(page, 0), page_count(len(files), PAGE) - 1)
        return [
            self._view(file, current, number // PAGE == shown) for number, file in enumerate(files)
        ]

    def find(self, key: str) -> tuple[SessionView, str] | None:
        """Return the session that a button means, and its file; None when it is not there."""
        files, current = self._files()
        for file in files:
            if self._view(file, current, False).key == key:
                return self._view(file, current, True), str(file.path)
        return None

    def _files(self) -> tuple[list[SessionFile], str | None]:
        current = self._current()
        real = None if current is None else os.path.realpath(current)
        return sessions_of(self._home, self._directory), real

    def _view(self, file: SessionFile, current: str | None, words: bool) -> SessionView:
        name, said = session_words(file.path) if words else ("", "")
        return SessionView(
            file=os.path.relpath(file.path, self._home),
            name=name,
            words=said,
            seconds=max(0.0, self._now() - file.modified),
            current=os.path.realpath(file.path) == current,
        )

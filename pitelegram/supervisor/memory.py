"""What a worker's heartbeats tell that has to outlive it: its session, and which Pi is its."""

from __future__ import annotations

from typing import Any

from twisted.logger import Logger

from pitelegram.ids import ProcessBirth
from pitelegram.kernel.deferring import spawn
from pitelegram.store.interfaces import ISpecs


class Memory:
    """Stores session and Pi of one spec when they change.

    @ivar pi: the worker's Pi, None while it is not known.
    @ivar session_file: the current session's file, None before a heartbeat told.
    """

    _log = Logger()

    def __init__(self, specs: ISpecs, spec_id: str) -> None:
        self._specs = specs
        self._spec_id = spec_id
        self._stored: tuple[str | None, str | None, bool] | None = None
        self.pi: ProcessBirth | None = None
        self.session_file: str | None = None

    def heard(self, spawn_id: str, state: dict[str, Any]) -> None:
        """Take a heartbeat's state."""
        self._note_pi(spawn_id, state)
        self._note_session(state)

    def _note_pi(self, spawn_id: str, state: dict[str, Any]) -> None:
        pid, birth = state.get("piPid"), state.get("piBirthId")
        if type(pid) is not int or pid <= 0 or not isinstance(birth, str):
            return
        found = ProcessBirth(pid, birth)
        if found != self.pi:
            self.pi = found
            spawn(self._log, "recording a Pi", self._specs.pi_seen(spawn_id, pid, birth))

    def _note_session(self, state: dict[str, Any]) -> None:
        session, file = state.get("sessionId"), state.get("sessionFile")
        if not isinstance(session, str) or not isinstance(file, str | None):
            return
        count = state.get("sessionEntries")
        entries = count if type(count) is int and count >= 0 else 0
        now = (session, file, entries > 0)
        self.session_file = file
        if now != self._stored:
            self._stored = now
            storing = self._specs.set_session(self._spec_id, session, file, entries)
            spawn(self._log, "recording a session", storing)

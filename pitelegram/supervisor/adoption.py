"""Waiting for a worker of an earlier daemon to register again."""

from __future__ import annotations

from pitelegram.supervisor.life import ADOPT_SECONDS, Event, Life
from pitelegram.supervisor.voice import Voice

SILENT = "its process lives, but it did not register"


class Adoption:
    """The limit of the waiting, and what is said when it is over.  Nothing is ended for it."""

    def __init__(self, life: Life, voice: Voice) -> None:
        self._life = life
        self._voice = voice

    def wait(self) -> None:
        """Wait for the whole limit from now on."""
        self._life.arm(ADOPT_SECONDS, Event.OVERDUE, "policy", "it did not register in time")

    def entered(self, overdue: bool, spawn_id: str | None) -> str | None:
        """The state was entered, or its limit is over; returns what is wrong."""
        if not overdue:
            self.wait()
            return None
        self._voice.overdue(spawn_id)
        return SILENT

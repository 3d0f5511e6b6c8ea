"""Asks every part how it is.  A part that cannot even be asked is a problem of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.logger import Logger

from pitelegram.errors import PiTelegramError, UnsafeFile
from pitelegram.kernel.files import check_private_dir
from pitelegram.leader import LeaderService

if TYPE_CHECKING:
    from pitelegram.daemon.service import Daemon

T = TypeVar("T")

Look = Callable[["Daemon", LeaderService], Iterable["str | None"]]


class Checkup:
    """Collects the problems of all parts.

    @ivar problems: the sentences of this look, in the order of L{PARTS}.
    """

    _log = Logger()

    def __init__(self) -> None:
        self._puzzled: set[str] = set()
        self.problems: list[str] = []

    def begin(self) -> None:
        """A new look."""
        self.problems = []

    def ask(self, what: str, look: Callable[[], T], otherwise: T) -> T:
        """Return what C{look} says; if it cannot, that is a problem and C{otherwise} is returned.

        @param what: the part, as the sentence names it.
        """
        try:
            found = look()
        except PiTelegramError:
            self.problems.append(f"{what} cannot be looked at")
            return otherwise
        except Exception:
            if what not in self._puzzled:
                self._puzzled.add(what)
                self._log.failure("{what} could not be looked at", what=what)
            self.problems.append(f"{what} cannot be looked at")
            return otherwise
        self._puzzled.discard(what)
        return found

    def look(self, daemon: Daemon, leader: LeaderService) -> None:
        """Add the problems of every part that has one."""
        for what, look in PARTS:
            self.problems += self.ask(what, lambda look=look: _sentences(look(daemon, leader)), [])  # type: ignore[misc]


def _sentences(found: Iterable[str | None]) -> list[str]:
    return [sentence for sentence in found if sentence is not None]


def _ownership(daemon: Daemon, leader: LeaderService) -> Iterator[str]:
    ownership = daemon.ownership
    if ownership is not None and ownership.problem is not None:
        yield f"the transport lock cannot be kept fresh: {ownership.problem}"


def _store(daemon: Daemon, leader: LeaderService) -> Iterator[str]:
    database = leader.ground.database
    if database.recovered is not None:
        yield "the store was damaged at this start; a new one was made, the old one is kept"
    if database.times.failure is not None:
        yield f"the store takes nothing in: {database.times.failure}"


def _settings(daemon: Daemon, leader: LeaderService) -> Iterator[str]:
    watcher = leader.ground.owner.watcher
    yield from watcher.settings.problems
    if watcher.settings.recovered:
        yield "telegram.json was not valid JSON and was moved aside; nothing is cleaned up"
    if watcher.problem is not None:
        yield f"telegram.json changed and cannot be used: {watcher.problem}"


def _workers(daemon: Daemon, leader: LeaderService) -> Iterator[str]:
    for view in leader.supervisor.views():
        if view.state == "running" and leader.registry.is_stale(view.binding_key):
            yield f"worker {view.name} is silent, or not connected"


def _spool(daemon: Daemon, leader: LeaderService) -> Iterator[str]:
    spool = daemon.paths.spool
    try:
        check_private_dir(spool)
    except UnsafeFile as error:
        yield f"files of answers cannot be kept: {error}"
        return
    if not os.access(spool, os.W_OK | os.X_OK):
        yield "files of answers cannot be kept: the spool cannot be written"


def _own(of: Callable[[Daemon, LeaderService], Any]) -> Look:
    """A part that has a C{problem}; one that is not made yet has none."""

    def look(daemon: Daemon, leader: LeaderService) -> Iterator[str | None]:
        part = of(daemon, leader)
        yield None if part is None else part.problem

    return look


PARTS: tuple[tuple[str, Look], ...] = (
    ("the transport lock", _ownership),
    ("the store", _store),
    ("maintenance", _own(lambda daemon, leader: leader.retention)),
    ("the outbox sender", _own(lambda daemon, leader: leader.delivery.sender)),
    ("the workers' files", lambda daemon, leader: leader.orphans.problems()),
    ("the choosers", lambda daemon, leader: leader.desk.problems()),
    ("the bus", _own(lambda daemon, leader: leader.bus)),
    ("the control socket", _own(lambda daemon, leader: daemon.control)),
    ("the installation's key", _own(lambda daemon, leader: leader.continuity)),
    ("the settings", _settings),
    ("the registry", _workers),
    ("the spool", _spool),
    ("the event log", _own(lambda daemon, leader: daemon.lines)),
    ("the snapshot", _own(lambda daemon, leader: daemon.snapshots)),
)
"""Every part that can fail by itself; workers' own states and figures are seen in the document."""

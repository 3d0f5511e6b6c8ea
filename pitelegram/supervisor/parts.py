"""What all workers of a supervisor share."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import attrs

from pitelegram.errors import PiTelegramError
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import is_alive, process_birth
from pitelegram.kernel.ending import ProcessEnd
from pitelegram.kernel.paths import Paths
from pitelegram.ownership.owners import OwnerRecord, read_owners
from pitelegram.routing.interfaces import INotices, IRegistry
from pitelegram.store.interfaces import ILeadership, ISpecs
from pitelegram.supervisor.ladder import TOTAL_SECONDS, Reach
from pitelegram.supervisor.launch import Launcher
from pitelegram.supervisor.room import Room


@attrs.frozen(kw_only=True, eq=False)
class Parts:
    """Collaborators, the outside world included, so that all of it runs under a clock.

    @ivar reactor: timers, and process descriptors where it can watch them.
    @ivar monotonic: seconds that only run forward.
    @ivar now: wall clock, seconds since the epoch.
    @ivar birth_of: the birth id of a pid, None for none.
    @ivar alive: whether exactly that process lives.
    @ivar reach: makes what a signal can reach (the arguments of L{Reach}).
    @ivar stop_seconds: the whole time of the stop ladder.
    @ivar room: looks at the memory before a spawn.
    """

    specs: ISpecs
    leadership: ILeadership
    registry: IRegistry
    notices: INotices
    launcher: Launcher
    paths: Paths
    reactor: Any
    random: Random
    random_bytes: Callable[[int], bytes] = os.urandom
    new_id: Callable[[], str] = attrs.field(default=lambda: uuid.uuid4().hex[:16])
    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    birth_of: Callable[[int], str | None] = process_birth
    alive: Callable[[ProcessBirth], bool] = is_alive
    reach: Callable[..., Reach] = Reach
    stop_seconds: float = TOTAL_SECONDS
    room: Room = Room()

    def watch(self, birth: ProcessBirth) -> ProcessEnd:
        """Watch a process that is not our child."""
        return ProcessEnd(birth, self.reactor, self.alive)


def owner_births(paths: Paths) -> Iterable[ProcessBirth]:
    """Return every process that owns a transport in this agent directory."""
    try:
        values = list(read_owners(paths.owners).values())
        records = [OwnerRecord.from_json(value) for value in values]
    except PiTelegramError:
        return []
    found = []
    for record in records:
        birth = record.process_birth_id or process_birth(record.pid)
        if birth is not None:
            found.append(ProcessBirth(record.pid, birth))
    return found

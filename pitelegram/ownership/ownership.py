"""Owning a bot profile's transport: take it, keep it fresh, notice its loss, give it back."""

from __future__ import annotations

import base64
import os
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.errors import LiveOwner, OwnershipError, OwnershipLost, UnsafeFile
from pitelegram.ids import Epoch
from pitelegram.kernel.birth import boot_id, own_birth
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.kernel.files import ensure_private_dir
from pitelegram.kernel.guard import TransactionGuard
from pitelegram.kernel.observers import OneShot
from pitelegram.kernel.paths import Paths
from pitelegram.ownership.locks_json import refuse_foreign
from pitelegram.ownership.owners import OwnerRecord, read_owner, read_owners, write_owners

CHECK_SECONDS = 1.0
REFRESH_SECONDS = 2.0
STALE_SECONDS = 8.0
SECRET_BYTES = 32


class HeartbeatWatch:
    """Decides that a live owner is stale: it showed the same heartbeat for 8 s of our own time.

    Wall clocks play no part, so neither sleep nor a stepped clock makes anybody stale.

    @param monotonic: seconds that only run forward.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._seen: OwnerRecord | None = None
        self._since = 0.0

    def is_stale(self, record: OwnerRecord) -> bool:
        """Look at the record as it is now; whether it is unchanged for longer than 8 s."""
        if self._seen != record:
            self._seen, self._since = record, self._monotonic()
        return self._monotonic() - self._since > STALE_SECONDS


def check(paths: Paths, twins: Iterable[str] = ()) -> None:
    """Read-only: make sure that no live process owns this profile, or another one of its bot.

    A live owner counts whatever the age of its heartbeat.

    @param twins: the other profiles that have the same bot.
    @raise LiveOwner: one does.
    @raise OwnershipError: a lock file is damaged.
    """
    record = read_owner(paths.owners, paths.profile)
    if record is not None and record.is_alive():
        raise LiveOwner(record.pid, record.shown_role)
    for twin in twins:
        record = read_owner(paths.owners, twin)
        if record is not None and record.is_alive():
            raise LiveOwner(record.pid, record.shown_role, twin)
    refuse_foreign(paths)


class Ownership(Service):
    """This process's hold on a profile's transport.

    Once acquired, the record is looked at every second and refreshed every two.  Another owner, a
    missing record, or 8 s without being able to read it is a loss; for a worker also 8 s without
    being able to write it, because an election may replace a worker whose heartbeat stands still.
    Nobody replaces a daemon that lives, so a full disk does not end one.

    @param clock: timers.
    @param bus_socket: where the leader's bus listens, published in the record.
    @param control_socket: where the control API listens, published in the record.
    @param random_bytes: source of the bus secret.
    @param now: wall clock, seconds since the epoch.
    @param monotonic: seconds that only run forward.
    @ivar problem: why the record cannot be kept fresh just now, None when all is well.
    """

    _log = Logger()

    def __init__(
        self,
        paths: Paths,
        clock: IReactorTime,
        *,
        bus_socket: Path,
        control_socket: Path,
        random_bytes: Callable[[int], bytes] = os.urandom,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = paths
        self._clock = clock
        self._bus_socket = bus_socket
        self._control_socket = control_socket
        self._random_bytes = random_bytes
        self._now = now
        self._monotonic = monotonic
        self._guard = TransactionGuard(paths.owners_guard, now)
        self._record: OwnerRecord | None = None
        self._lost: OneShot[OwnershipLost] = OneShot()
        self._late_observers: list[Callable[[], None]] = []
        self._call: Any = None
        self._checked = self._refreshed = self._good = 0.0
        self._refreshing: Deferred[Any] | None = None
        self._generation = 0
        self.problem: str | None = None

    @property
    def record(self) -> OwnerRecord | None:
        """Our record while we own the transport."""
        return self._record

    @property
    def secret(self) -> bytes:
        """The bus secret of this acquisition, for attached workers.

        @raise OwnershipError: nothing is owned.
        """
        raw = self._record.secret_bytes() if self._record is not None else None
        if raw is None:
            raise OwnershipError("this process does not own the transport")
        return raw

    def when_lost(self) -> Deferred[OwnershipLost]:
        """Fire, with the reason, when ownership was lost (never after L{release})."""
        return self._lost.when()

    def on_late_wake(self, observer: Callable[[], None]) -> None:
        """Call C{observer()} when this process was away for more than 8 s.

        The record has been read again by then.  An answer that a poll got meanwhile must be thrown
        away (see L{still_fresh}).
        """
        self._late_observers.append(observer)

    @deferred
    async def acquire(self, role: str, replacing: OwnerRecord | None = None) -> Epoch:
        """Take the transport and begin to keep it; fires with the new epoch.

        @param role: C{daemon} or C{worker}.
        @param replacing: elections only: the stale record, of a worker, that may be replaced if it
            is still exactly that one.
        @raise LiveOwner: another live process has it.
        @raise OwnershipError: the lock is damaged or stayed busy.
        """
        ensure_private_dir(self._paths.runtime)
        record = self._new_record(role)
        await self._guard.run(self._clock, lambda: self._take(record, replacing))
        self._record = record
        if self._lost.fired:
            self._lost = OneShot()
        self._checked = self._refreshed = self._good = self._monotonic()
        self._call = self._clock.callLater(CHECK_SECONDS, self._tick)
        assert record.leader_epoch is not None
        return Epoch(record.leader_epoch)

    def still_fresh(self) -> bool:
        """Whether an answer that just arrived may be used.

        False when nothing is owned, or when our own check is more than 8 s late (this process was
        stopped or the machine overloaded): then the record has been read again, and the caller
        throws its answer away and asks anew.
        """
        if self._record is None:
            return False
        if self._monotonic() - self._checked <= CHECK_SECONDS + STALE_SECONDS:
            return True
        self._check()
        return False

    @deferred
    async def release(self) -> None:
        """Stop keeping the transport and delete the record if it is exactly ours.  Safe to repeat."""
        self._halt()
        record, self._record = self._record, None
        if record is None:
            return
        if self._refreshing is not None:
            await self._refreshing
        await self._guard.run(self._clock, lambda: self._remove(record))

    @deferred
    async def stopService(self) -> None:
        """Release."""
        Service.stopService(self)
        await self.release()

    # --- inside the guard ----------------------------------------------------------------------

    def _take(self, record: OwnerRecord, replacing: OwnerRecord | None) -> None:
        owners = read_owners(self._paths.owners)
        value = owners.get(self._paths.profile)
        current = None if value is None else OwnerRecord.from_json(value)
        if current is not None and current.is_alive() and not _may_replace(current, replacing):
            raise LiveOwner(current.pid, current.shown_role)
        refuse_foreign(self._paths)
        owners[self._paths.profile] = record.as_json()
        write_owners(self._paths.owners, owners, durable=True)

    def _refresh(self) -> bool:
        owners = read_owners(self._paths.owners)
        record, value = self._record, owners.get(self._paths.profile)
        if record is None:
            return True
        if value is None or not OwnerRecord.from_json(value).same_owner(record):
            return False
        self._record = attrs.evolve(record, heartbeat_ms=int(self._now() * 1000))
        owners[self._paths.profile] = self._record.as_json()
        write_owners(self._paths.owners, owners, durable=False)
        return True

    def _remove(self, record: OwnerRecord) -> None:
        owners = read_owners(self._paths.owners)
        value = owners.get(self._paths.profile)
        if value is not None and OwnerRecord.from_json(value).same_owner(record):
            del owners[self._paths.profile]
            write_owners(self._paths.owners, owners, durable=True)

    # --- keeping it --------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._call = self._clock.callLater(CHECK_SECONDS, self._tick)
        self._check()
        due = self._monotonic() - self._refreshed > REFRESH_SECONDS - CHECK_SECONDS / 2
        if self._record is not None and due and self._refreshing is None:
            refreshing = spawn(self._log, "refreshing the transport lock", self._keep())
            if not refreshing.called:
                self._refreshing = refreshing
                refreshing.addCallback(self._refresh_done)

    def _check(self) -> None:
        """Read the record; say so when this look came late."""
        now = self._monotonic()
        late = now - self._checked > CHECK_SECONDS + STALE_SECONDS
        self._checked = now
        if late:
            self._good = now
        self._look()
        if late and self._record is not None:
            self._log.warn("this process was away for more than {seconds} s", seconds=STALE_SECONDS)
            for observer in list(self._late_observers):
                observer()

    def _look(self) -> None:
        if self._record is None:
            return
        try:
            found = read_owner(self._paths.owners, self._paths.profile)
        except (OwnershipError, UnsafeFile) as error:
            self._doubt(str(error))
            return
        if found is None or not found.same_owner(self._record):
            self._lose("the transport lock names somebody else now")
        elif self._record.role == "daemon":
            self._good = self._monotonic()

    async def _keep(self) -> None:
        try:
            ours = await self._guard.run(self._clock, self._refresh)
        except (OwnershipError, UnsafeFile) as error:
            self._doubt(str(error))
        else:
            self._refreshed = self._good = self._monotonic()
            self.problem = None
            if not ours:
                self._lose("the transport lock names somebody else now")

    def _refresh_done(self, _: object) -> None:
        self._refreshing = None

    def _doubt(self, reason: str) -> None:
        if self.problem != reason:
            self.problem = reason
            self._log.warn("the transport lock cannot be kept fresh: {reason}", reason=reason)
        if self._monotonic() - self._good > STALE_SECONDS:
            self._lose("the transport lock could not be kept fresh for 8 seconds")

    def _lose(self, reason: str) -> None:
        if self._record is not None:
            self._halt()
            self._record = None
            self._log.error("ownership lost: {reason}", reason=reason)
            self._lost.fire(OwnershipLost(reason))

    def _halt(self) -> None:
        if self._call is not None and self._call.active():
            self._call.cancel()
        self._call = None

    def _new_record(self, role: str) -> OwnerRecord:
        birth = own_birth()
        now_ms = int(self._now() * 1000)
        self._generation = max(now_ms, self._generation + 1)
        secret = base64.urlsafe_b64encode(self._random_bytes(SECRET_BYTES)).rstrip(b"=").decode()
        return OwnerRecord(
            pid=birth.pid,
            cwd=_working_directory(),
            instance_id=f"{birth.pid}:{now_ms}",
            heartbeat_ms=now_ms,
            leader_epoch=str(uuid.uuid4()),
            runtime_generation=self._generation,
            bus_socket_path=str(self._bus_socket),
            control_socket_path=str(self._control_socket),
            bus_secret=secret,
            role=role,
            process_birth_id=birth.birth,
            boot_id=boot_id(),
        )


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _may_replace(current: OwnerRecord, expected: OwnerRecord | None) -> bool:
    """An election may replace exactly the worker that it saw going stale."""
    return expected is not None and current.role != "daemon" and current == expected

"""C{owners.json}: one record per profile, shared with other programs."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import psutil

from pitelegram.errors import OwnershipError
from pitelegram.ids import ProcessBirth
from pitelegram.kernel import jsonio
from pitelegram.kernel.birth import boot_id, process_birth
from pitelegram.kernel.files import read_private, write_private

REUSE_SECONDS = 2.0

_DAMAGED = (
    "the file owners.json is damaged and was left alone; when no Telegram bridge runs, remove it and"
    " start again"
)

_NAMES = {
    "pid": "pid",
    "cwd": "cwd",
    "instance_id": "instanceId",
    "heartbeat_ms": "heartbeatMs",
    "leader_epoch": "leaderEpoch",
    "runtime_generation": "runtimeGeneration",
    "bus_socket_path": "busSocketPath",
    "control_socket_path": "controlSocketPath",
    "bus_secret": "busSecret",
    "role": "role",
    "process_birth_id": "processBirthId",
    "boot_id": "bootId",
}


@attrs.frozen(kw_only=True)
class OwnerRecord:
    """Who owns a profile's transport.

    All but C{pid} may be missing in records of other programs; C{extra} keeps what we do not know.
    """

    pid: int
    cwd: str | None = None
    instance_id: str | None = None
    heartbeat_ms: int | None = None
    leader_epoch: str | None = None
    runtime_generation: int | None = None
    bus_socket_path: str | None = None
    control_socket_path: str | None = None
    bus_secret: str | None = attrs.field(default=None, repr=False)
    role: str | None = None
    process_birth_id: str | None = None
    boot_id: str | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict, repr=False)

    @property
    def shown_role(self) -> str:
        """C{daemon}, or C{worker} for everybody else."""
        return "daemon" if self.role == "daemon" else "worker"

    @property
    def birth(self) -> ProcessBirth | None:
        """The owner's process, when the record says which one it is."""
        if self.process_birth_id is None:
            return None
        return ProcessBirth(self.pid, self.process_birth_id)

    def secret_bytes(self) -> bytes | None:
        """Return the raw bus secret, None when there is none that can be read."""
        if self.bus_secret is None:
            return None
        padded = self.bus_secret + "=" * (-len(self.bus_secret) % 4)
        try:
            return base64.b64decode(padded, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None

    def same_owner(self, other: OwnerRecord) -> bool:
        """Whether both are the same acquisition, whatever their heartbeats."""
        return (
            self.pid,
            self.cwd,
            self.instance_id,
            self.leader_epoch,
            self.runtime_generation,
        ) == (
            other.pid,
            other.cwd,
            other.instance_id,
            other.leader_epoch,
            other.runtime_generation,
        )

    def is_alive(self) -> bool:
        """Whether the owner's process may still live: only a certain death says no.

        A record of an earlier boot, another birth under its pid, and a process that started after
        the record was made are certain.
        """
        if self.boot_id is not None and self.boot_id != boot_id():
            return False
        birth = process_birth(self.pid)
        if birth is None:
            return False
        if self.process_birth_id is not None:
            return birth == self.process_birth_id
        return self.pid != os.getpid() and not self._reused()

    def as_json(self) -> dict[str, Any]:
        """Return the record as it stands in the file."""
        known = {wire: getattr(self, name) for name, wire in _NAMES.items()}
        return {**self.extra, **{wire: value for wire, value in known.items() if value is not None}}

    @classmethod
    def from_json(cls, value: Any) -> OwnerRecord:
        """Read a record, tolerating missing and unknown members.

        @raise OwnershipError: it names no process, or a member has another type.
        """
        if not isinstance(value, dict) or not _is_pid(value.get("pid")):
            raise OwnershipError(_DAMAGED)
        members: dict[str, Any] = {}
        for name, wire in _NAMES.items():
            if value.get(wire) is not None:
                members[name] = _member(name, value[wire])
        extra = {key: item for key, item in value.items() if key not in _NAMES.values()}
        return cls(extra=extra, **members)

    def _reused(self) -> bool:
        """Whether the process under this pid started after its instance was made."""
        text = (self.instance_id or "").rpartition(":")[2]
        made = int(text) / 1000 if text.isascii() and text.isdigit() else None
        if made is None:
            return False
        try:
            return psutil.Process(self.pid).create_time() > made + REUSE_SECONDS
        except psutil.Error:
            return False


def read_owners(path: Path) -> dict[str, Any]:
    """Return the whole file, C{{}} when there is none.

    A file that cannot be read, or is not what it should be, is never taken for empty, except when
    it was last written before this boot: nobody who wrote it can live.

    @raise OwnershipError: it is damaged.
    @raise pitelegram.errors.UnsafeFile: it breaks the permission policy.
    """
    data = read_private(path, narrow=False)
    if data is None:
        return {}
    try:
        value = jsonio.exact(data)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    if os.stat(path).st_mtime < psutil.boot_time() - REUSE_SECONDS:
        return {}
    raise OwnershipError(_DAMAGED)


def read_owner(path: Path, profile: str) -> OwnerRecord | None:
    """Return a profile's record, None when nobody owns it.

    @raise OwnershipError: the file or the record is damaged.
    """
    value = read_owners(path).get(profile)
    return None if value is None else OwnerRecord.from_json(value)


def write_owners(path: Path, owners: Mapping[str, Any], durable: bool) -> None:
    """Replace the file; only inside its transaction guard."""
    write_private(path, (json.dumps(owners, indent=2) + "\n").encode(), durable)


def _member(name: str, value: Any) -> Any:
    if name == "pid":
        return value
    if name in ("heartbeat_ms", "runtime_generation"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise OwnershipError(_DAMAGED)
        return int(value)
    if name == "leader_epoch" and type(value) in (int, float):
        return str(value)
    if not isinstance(value, str):
        raise OwnershipError(_DAMAGED)
    return value


def _is_pid(value: object) -> bool:
    return type(value) is int and 0 < value < 2**31

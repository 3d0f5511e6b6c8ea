"""Every file of a profile, spelled once (contract, "Files")."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

import attrs

from pitelegram.kernel.files import ensure_private_dir, runtime_socket_path, unsafe
from pitelegram.kernel.narrowing import narrow_trees

DEFAULT_PROFILE = "default"

_UNSAFE_NAME = re.compile(r"[/\\\0]")


def _real(path: Path | str) -> Path:
    return Path(os.path.realpath(os.path.expanduser(path)))


def _name(text: str) -> str:
    """Return C{text} as one path component.

    @raise UnsafeFile: C{invalid_entry_name}.
    """
    if not text or text in (".", "..") or len(text) > 200 or _UNSAFE_NAME.search(text):
        raise unsafe("invalid_entry_name")
    return text


@attrs.frozen
class Paths:
    """Where everything of one profile stands.

    Names of the default profile carry no suffix; others carry C{.<profile>}.

    @ivar agent_dir: Pi's agent directory; resolved (C{~} and links) here, once.
    @ivar profile: profile name.
    """

    agent_dir: Path = attrs.field(converter=_real)
    profile: str = DEFAULT_PROFILE

    @property
    def _suffix(self) -> str:
        return "" if self.profile == DEFAULT_PROFILE else f".{_name(self.profile)}"

    # --- shared with other programs ----------------------------------------------------------

    @property
    def telegram_json(self) -> Path:
        """The configuration."""
        return self.agent_dir / "telegram.json"

    @property
    def telegram_guard(self) -> Path:
        """The transaction guard of the configuration."""
        return self.agent_dir / "telegram.json.transaction"

    @property
    def locks_json(self) -> Path:
        """The registry of the extension locks standard."""
        return self.agent_dir / "locks.json"

    @property
    def locks_guard(self) -> Path:
        """The transaction guard of C{locks.json}."""
        return self.agent_dir / "locks.json.transaction"

    @property
    def pi_sessions(self) -> Path:
        """Pi's own session files."""
        return self.agent_dir / "sessions"

    # --- runtime: may be deleted while nothing runs --------------------------------------------

    @property
    def runtime(self) -> Path:
        """The runtime directory."""
        return self.agent_dir / "tmp" / "telegram"

    @property
    def owners(self) -> Path:
        """The transport lock of all profiles."""
        return self.runtime / "owners.json"

    @property
    def owners_guard(self) -> Path:
        """The transaction guard of C{owners.json}."""
        return self.runtime / "owners.json.transaction"

    @property
    def bus_socket(self) -> Path:
        """Where the leader's bus listens (short enough for a socket)."""
        return runtime_socket_path(self.runtime / f"bus{self._suffix}.sock")

    @property
    def control_socket(self) -> Path:
        """Where the control API listens unless told otherwise (short enough for a socket)."""
        return runtime_socket_path(self.runtime / f"control{self._suffix}.sock")

    @property
    def links(self) -> Path:
        """Directory of the private sockets between a worker and its Pi's shim."""
        return self.runtime / "links"

    def link_socket(self, binding_key: str) -> Path:
        """The private socket between a binding's worker and its Pi (short enough for a socket)."""
        short = hashlib.sha256(binding_key.encode()).hexdigest()[:12]
        return runtime_socket_path(self.links / f"{short}.sock")

    @property
    def state(self) -> Path:
        """The observational snapshot."""
        return self.runtime / f"state{self._suffix}.json"

    @property
    def logs(self) -> Path:
        """Redacted events."""
        return self.runtime / f"logs{self._suffix}.jsonl"

    @property
    def logs_previous(self) -> Path:
        """The events before the last rotation."""
        return self.runtime / f"logs{self._suffix}._prev.jsonl"

    @property
    def daemon_pid(self) -> Path:
        """Written by C{pi-telegram start}."""
        return self.runtime / f"daemon{self._suffix}.pid"

    @property
    def downloads(self) -> Path:
        """Inbound files."""
        return self.runtime / "downloads"

    @property
    def uploads(self) -> Path:
        """Parent of all instances' upload directories."""
        return self.runtime / "uploads"

    def uploads_of(self, instance: str) -> Path:
        """Files that one worker instance may name in C{callApi}."""
        return self.uploads / _name(instance)

    # --- data: worth a backup -------------------------------------------------------------------

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.agent_dir / "telegram"

    @property
    def database(self) -> Path:
        """The leader's store."""
        return self.data / f"{_name(self.profile)}.sqlite3"

    @property
    def workers(self) -> Path:
        """Directory of the workers' stores, locks and logs."""
        return self.data / "workers"

    def worker_database(self, binding_key: str) -> Path:
        """One worker's inbox, ledger and unsubmitted answers."""
        return self.workers / f"{_name(binding_key)}.sqlite3"

    def worker_lock(self, binding_key: str) -> Path:
        """The advisory lock of a binding."""
        return self.workers / f"{_name(binding_key)}.lock"

    def worker_files(self, binding_key: str) -> Path:
        """Directory of the files that a worker's answers name, until they are receipted."""
        return self.workers / f"{_name(binding_key)}.files"

    def worker_log(self, binding_key: str) -> Path:
        """Standard output and error of a binding's worker process."""
        return self.workers / f"{_name(binding_key)}.log"

    @property
    def session_locks(self) -> Path:
        """Directory of the advisory locks of session files."""
        return self.data / "sessions"

    def session_lock(self, session_file: Path | str) -> Path:
        """The advisory lock of a session file, by its real path."""
        real = os.fsencode(os.path.realpath(session_file))
        return self.session_locks / f"{hashlib.sha256(real).hexdigest()}.lock"

    @property
    def spool(self) -> Path:
        """Files of this profile's accepted answers (each profile tidies up its own)."""
        return self.data / "spool" / _name(self.profile)

    @property
    def recovery(self) -> Path:
        """Where damaged databases are moved."""
        return self.data / "recovery"

    @property
    def pairing(self) -> Path:
        """Hash and expiry of the pairing code."""
        return self.data / f"pairing.{_name(self.profile)}"

    @property
    def installation_key(self) -> Path:
        """The installation's key."""
        return self.data / "installation.key"

    @property
    def installation_digest(self) -> Path:
        """The key's digest."""
        return self.data / "installation.key.sha256"

    @property
    def installation_marker(self) -> Path:
        """Says that a key was made once."""
        return self.data / "installation.key.initialized"

    @property
    def _directories(self) -> tuple[Path, ...]:
        return (
            self.runtime,
            self.links,
            self.downloads,
            self.uploads,
            self.data,
            self.workers,
            self.session_locks,
            self.spool.parent,
            self.spool,
        )

    @property
    def _files(self) -> tuple[Path, ...]:
        """Files of this profile, or of all, that are known by name."""
        database = self.database
        return (
            self.owners,
            self.state,
            self.logs,
            self.logs_previous,
            self.daemon_pid,
            database,
            database.with_name(f"{database.name}-wal"),
            database.with_name(f"{database.name}-shm"),
            self.pairing,
            self.installation_key,
            self.installation_digest,
            self.installation_marker,
        )

    def prepare(self) -> None:
        """Make all private directories.

        @raise UnsafeFile: one of them is not ours.
        """
        for directory in self._directories:
            ensure_private_dir(directory)

    def narrow(self) -> None:
        """Make all that is there private again; where something is unsafe nothing is changed.

        C{telegram.json} may be a link (L{pitelegram.settings.file}); then its file is meant.

        @raise UnsafeFile: what stands at one of our names is not ours, or of another kind.
        """
        shared = (Path(os.path.realpath(self.telegram_json)), self.locks_json)
        narrow_trees(
            (self.runtime, self.data),
            shared,
            [
                *((path, stat.S_ISDIR) for path in self._directories),
                *((path, stat.S_ISREG) for path in self._files),
                *((path, stat.S_ISSOCK) for path in (self.bus_socket, self.control_socket)),
            ],
        )

"""Reading and changing C{telegram.json}, which other programs change too."""

from __future__ import annotations

import copy
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.errors import ConfigError, OwnershipError, UnsafeFile
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.files import open_private, unsafe, write_private
from pitelegram.kernel.guard import ATTEMPTS, TransactionGuard
from pitelegram.kernel.paths import Paths
from pitelegram.settings import document as documents
from pitelegram.settings.model import Settings
from pitelegram.settings.reading import settings_from

Signature = tuple[int, int, int, int]
"""Device, inode, size and time of change: whether a file is still the one that was read."""

Mutation = Callable[[dict[str, Any]], None]
"""Changes the document it is given, in place."""

READ_LIMIT = 16 * 1024 * 1024


class SettingsFile:
    """The configuration of one agent directory, seen from one profile.

    The file may be a link to a regular file of the same owner; writes replace that file.

    @param environ: where C{$NAME} tokens are looked up.
    @param now: wall clock in seconds, for the name of a damaged file.
    """

    _log = Logger()

    def __init__(
        self, paths: Paths, environ: Mapping[str, str], now: Callable[[], float] = time.time
    ) -> None:
        self._paths = paths
        self._environ = environ
        self._now = now
        self._guard = TransactionGuard(paths.telegram_guard, now)

    def load(self, with_token: bool = True, attempts: int = ATTEMPTS) -> Settings:
        """Read the file; a missing one gives the defaults.  One that is too open stays so: a start of
        the daemon narrows it (L{Paths.narrow}), and whatever is written is private.

        Invalid JSON is moved aside and the defaults are returned with C{recovered} set; that waits
        for the guard, up to C{attempts} times 25 ms.

        @raise ConfigError: a value cannot be understood.
        @raise UnsafeFile: the file breaks the permission policy.
        """
        recovered = False
        try:
            document = documents.migrate(self._read()[0])
        except ValueError:
            document, recovered = self._recover(attempts)
        return settings_from(
            document,
            self._paths.profile,
            self._environ,
            self._paths.agent_dir,
            with_token,
            recovered,
        )

    def document(self, with_tokens: bool = False) -> dict[str, Any]:
        """Return the whole document, by default without any token.

        @raise ConfigError: it is not valid JSON.
        """
        try:
            found = documents.migrate(self._read()[0])
        except ValueError:
            raise ConfigError("telegram.json is not valid JSON") from None
        return found if with_tokens else documents.without_tokens(found)

    def twins(self, bot_id: str) -> list[str]:
        """Return the names of the other profiles that have the same bot.

        @raise ConfigError: the file is not valid JSON.
        """
        profiles = self.document(with_tokens=True).get("profiles")
        return [
            name
            for name, profile in (profiles.items() if isinstance(profiles, dict) else ())
            if name != self._paths.profile and isinstance(profile, dict)
            if bot_id == str(profile.get("botId") or str(profile.get("botToken")).partition(":")[0])
        ]

    def update(self, clock: IReactorTime, mutate: Mutation) -> Deferred[bool]:
        """Change the file under the guard; fires with whether anything was written.

        C{mutate} gets the newest document, so keys that other programs wrote meanwhile survive.

        @raise ConfigError: the file is not valid JSON.
        @raise OwnershipError: the guard stayed taken.
        """
        return self._guard.run(clock, lambda: self._change(mutate))

    def update_blocking(self, mutate: Mutation) -> bool:
        """As L{update}, for programs without a running reactor."""
        self._paths.agent_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._guard.run_blocking(lambda: self._change(mutate))

    @deferred
    async def save(
        self, clock: IReactorTime, base: dict[str, Any], desired: dict[str, Any]
    ) -> bool:
        """Apply the difference from C{base} to C{desired} to the newest document.

        For edits that took a while: what others changed meanwhile stays.
        """

        def mutate(latest: dict[str, Any]) -> None:
            merged = documents.merge(base, desired, latest)
            latest.clear()
            latest.update(merged)

        return await self.update(clock, mutate)

    def signature(self) -> Signature | None:
        """What L{Watcher} compares; None when there is no file."""
        try:
            info = os.stat(self._paths.telegram_json)
        except OSError:
            return None
        return _signature(info)

    def _change(self, mutate: Mutation) -> bool:
        try:
            found, _ = self._read(narrow=True)
        except ValueError:
            raise ConfigError(
                "telegram.json is not valid JSON; repair it or move it away, then try again"
            ) from None
        changed = copy.deepcopy(documents.migrate(found))
        mutate(changed)
        if changed == found:
            return False
        write_private(self._target(), documents.render(changed))
        return True

    def _read(self, narrow: bool = False) -> tuple[dict[str, Any], Signature | None]:
        """Return the parsed document and which file it was; only who writes makes it private.

        @raise ValueError: it is not one JSON object.
        """
        data, signature = self._read_bytes(narrow)
        return ({} if data is None else documents.parse(data)), signature

    def _read_bytes(self, narrow: bool) -> tuple[bytes | None, Signature | None]:
        try:
            fd = open_private(self._target(), os.O_RDONLY, narrow)
        except UnsafeFile as refusal:
            if refusal.code == "missing_entry":
                return None, None
            raise
        with os.fdopen(fd, "rb") as file:
            return file.read(READ_LIMIT), _signature(os.fstat(fd))

    def _target(self) -> Path:
        """The regular file itself; a link must be ours."""
        path = self._paths.telegram_json
        try:
            info = os.lstat(path)
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(info.st_mode):
            return path
        if info.st_uid != os.geteuid():
            raise unsafe("wrong_owner")
        return Path(os.path.realpath(path))

    def _recover(self, attempts: int) -> tuple[dict[str, Any], bool]:
        """Move invalid JSON aside, unless somebody repaired it meanwhile."""
        try:
            return self._guard.run_blocking(self._move_aside, attempts)
        except OwnershipError:
            self._log.warn("telegram.json is not valid JSON and could not be moved aside")
            return {}, True

    def _move_aside(self) -> tuple[dict[str, Any], bool]:
        try:
            return documents.migrate(self._read()[0]), False
        except ValueError:
            target = self._target()
            aside = f"{target.name}.invalid-{os.getpid()}-{int(self._now() * 1000)}"
            os.rename(target, target.with_name(aside))
            self._log.warn("telegram.json was not valid JSON and was moved aside")
            return {}, True


def load(paths: Paths, environ: Mapping[str, str], with_token: bool = True) -> Settings:
    """Read C{telegram.json} once; see L{SettingsFile.load}."""
    return SettingsFile(paths, environ).load(with_token)


def _signature(info: os.stat_result) -> Signature:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns

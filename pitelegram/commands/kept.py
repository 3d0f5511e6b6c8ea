"""What C{doctor} says of what is kept: the leader's store and the installation's key.  It only looks."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from pitelegram.commands.finding import Finding
from pitelegram.errors import InstallationUnavailable, UnsafeFile
from pitelegram.kernel.paths import Paths
from pitelegram.kernel.pinned import PinnedDir
from pitelegram.ownership.continuity import DIGEST_FACT
from pitelegram.ownership.installation import FILES, MARKED, Trio, digest_of, read_trio
from pitelegram.store.migrations import load_migrations

STEPS = 20_000_000
"""Instructions of SQLite after which a check is left unfinished: a large store takes long."""

RESTORE = "restore the three installation.key files from a backup"


def store(paths: Paths, lives: bool) -> tuple[Finding, str | None]:
    """Look at the store; also returns the digest of the key that it records.

    @param lives: whether a daemon has it open.
    """
    path = paths.database
    if not path.exists():
        return Finding("ok", "store", "none yet; the first start makes it"), None
    log = path.with_name(f"{path.name}-wal")
    if not lives and log.exists() and log.stat().st_size:
        # Opening it would already repair it.
        return Finding("ok", "store", "left by a daemon that was cut off; a start goes on"), None
    try:
        return _examine(path, lives)
    except sqlite3.DatabaseError as error:
        if lives:
            return Finding("warn", "store", "busy", "ask again"), None
        cure = "start: it is moved aside and a new one made; or restore a backup first"
        return Finding("fail", "store", f"damaged ({error})", cure), None


def _examine(path: Path, lives: bool) -> tuple[Finding, str | None]:
    how = "mode=ro" if lives else "immutable=1"
    connection = sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, timeout=2.0)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        newest = load_migrations("leader")[-1].version
        size = f"{path.stat().st_size // 1024} KiB"
        if version > newest:
            cure = "install the version of pi-telegram that wrote it, or a newer one"
            return Finding("fail", "store", "written by a newer pi-telegram", cure), None
        recorded = connection.execute(
            "SELECT value FROM meta WHERE key = ?", (DIGEST_FACT,)
        ).fetchone()
        digest = None if recorded is None else str(recorded[0])
        sound = _check(connection)
        if sound is False:
            cure = "stop the daemon and restore a backup; a start would make a new one"
            return Finding("fail", "store", f"damaged, {size}", cure), digest
        checked = "sound" if sound else "large, not checked to the end"
        return Finding("ok", "store", f"{checked}, {size}"), digest
    finally:
        connection.close()


def _check(connection: sqlite3.Connection) -> bool | None:
    """Whether the file is sound, None when that takes too long."""
    left = [STEPS // 100_000]

    def patience() -> int:
        left[0] -= 1
        return int(left[0] < 0)

    connection.set_progress_handler(patience, 100_000)
    try:
        (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            return None
        raise
    finally:
        connection.set_progress_handler(None, 0)
    return bool(said == "ok")


def key(paths: Paths, recorded: str | None) -> Finding:
    """Look at the three files of the installation's key.

    @param recorded: the digest that the store keeps, None for none.
    """
    try:
        with PinnedDir.open(paths.data) as directory:
            trio = read_trio(directory)
    except UnsafeFile as error:
        if error.code != "missing_entry":
            return Finding("fail", "key", f"its files are unsafe: {error}", "make them yours alone")
        trio = Trio(None, None, None)
    if trio.empty and recorded is None:
        return Finding("ok", "key", "none yet; the first worker gets one")
    facts = {
        "present": None not in (trio.marker, trio.digest, trio.key),
        "digest_ok": _digest_fits(trio, recorded),
        "sentinel_ok": trio.marker == MARKED,
        "modes_ok": all(_is_private(paths.data / name) for name in FILES),
    }
    text = ", ".join(f"{name} {'yes' if fact else 'no'}" for name, fact in facts.items())
    try:
        trio.checked_key(recorded)
    except InstallationUnavailable:
        return Finding("fail", "key", text, RESTORE)
    if not all(facts.values()):
        return Finding("warn", "key", text, "a start makes it good")
    return Finding("ok", "key", text)


def _digest_fits(trio: Trio, recorded: str | None) -> bool:
    if trio.key is None or trio.digest is None:
        return False
    right = digest_of(trio.key)
    return trio.digest == right.encode() and recorded in (None, right)


def _is_private(path: Path) -> bool:
    try:
        return not stat.S_IMODE(os.lstat(path).st_mode) & 0o077
    except FileNotFoundError:
        return True

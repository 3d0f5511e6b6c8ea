"""The installation's key: every state of its three files, races, interruptions, rotation."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import skipIf

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import InstallationUnavailable, LiveOwner, OwnershipError
from pitelegram.kernel.birth import own_birth, process_birth
from pitelegram.kernel.pinned import PinnedDir
from pitelegram.ownership.continuity import DIGEST_FACT
from pitelegram.ownership.installation import DIGEST, KEY, MARKER, Installation
from pitelegram.ownership.rotation import reset_installation_key
from pitelegram.testing.others import NOBODY, as_user, why_not

OLD, NEW = b"o" * 32, b"n" * 32
SENTENCE = "installation identity is unavailable"


def sha(key: bytes) -> bytes:
    """The digest file of a key."""
    return hashlib.sha256(key).hexdigest().encode()


SOUND = {KEY: OLD, DIGEST: sha(OLD), MARKER: b"1"}

FAILS: dict[str, dict[str, bytes | None]] = {
    "key missing": {KEY: None},
    "digest missing": {DIGEST: None},
    "key and digest missing": {KEY: None, DIGEST: None},
    "key and marker missing": {KEY: None, MARKER: None},
    "key replaced": {KEY: NEW},
    "key replaced, marker missing": {KEY: NEW, MARKER: None},
    "digest changed": {DIGEST: sha(NEW)},
    "digest in upper case": {DIGEST: sha(OLD).upper()},
    "digest with newline": {DIGEST: sha(OLD) + b"\n"},
    "digest short": {DIGEST: sha(OLD)[:-1]},
    "digest empty": {DIGEST: b""},
    "digest long": {DIGEST: sha(OLD) * 3},
    "digest no text": {DIGEST: b"\xff" * 64},
    "key short": {KEY: OLD[1:]},
    "key long": {KEY: OLD + b"o"},
    "key empty": {KEY: b""},
    "marker zero": {MARKER: b"0"},
    "marker empty": {MARKER: b""},
    "marker with newline": {MARKER: b"1\n"},
    "marker twice": {MARKER: b"11"},
    "marker zero alone": {KEY: None, DIGEST: None, MARKER: b"0"},
    "short key alone": {KEY: OLD[1:], DIGEST: None, MARKER: None},
}
"""Changes of a sound trio (None: the file is missing) that fail closed."""

COMPLETED: dict[str, dict[str, bytes | None]] = {
    "marker missing": {MARKER: None},
    "digest and marker missing": {DIGEST: None, MARKER: None},
}
"""Changes that the next load completes with the same key."""


class TrioCase(SynchronousTestCase):
    """A data directory; C{drawn} counts what was asked of the random source."""

    def setUp(self) -> None:
        """Make it."""
        self.data = Path(self.mktemp()).resolve() / "telegram"
        self.data.mkdir(parents=True, mode=0o700)
        self.drawn = 0

    def random_bytes(self, count: int) -> bytes:
        """Counted."""
        self.drawn += 1
        return bytes([self.drawn]) * count

    def load(self, recorded: str | None = None, **changes: Any) -> bytes:
        """Load it as the daemon does."""
        made = Installation(data=self.data, random_bytes=self.random_bytes, **changes)
        return made.load(recorded)

    def verify(self, recorded: str | None = None) -> bytes:
        """Look as the status does."""
        return Installation(data=self.data, random_bytes=self.random_bytes).verify(recorded)

    def put(self, changes: dict[str, bytes | None] | None = None) -> None:
        """Write a trio with some changes."""
        for name, content in {**SOUND, **(changes or {})}.items():
            path = self.data / name
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
                path.chmod(0o600)

    def tree(self) -> dict[str, Any]:
        """All there is, links not followed."""
        found: dict[str, Any] = {".": stat.S_IMODE(os.lstat(self.data).st_mode)}
        for path in self.data.iterdir():
            info = os.lstat(path)
            content = path.read_bytes() if stat.S_ISREG(info.st_mode) else None
            found[path.name] = (info.st_mode, info.st_uid, info.st_ino, content)
        return found

    def fails(self, recorded: str | None = None) -> None:
        """Loading and looking fail with the one sentence; nothing changes, nothing is drawn."""
        before = self.tree()
        for attempt in (self.load, self.verify):
            problem = self.assertRaises(InstallationUnavailable, attempt, recorded)
            self.assertEqual(str(problem), SENTENCE)
            self.assertIsNone(problem.__cause__)
            self.assertTrue(problem.__suppress_context__ or problem.__context__ is None)
        self.assertEqual(self.tree(), before)
        self.assertEqual(self.drawn, 0)

    def is_sound(self, key: bytes) -> None:
        """The trio of this key stands there, private."""
        for name, content in {KEY: key, DIGEST: sha(key), MARKER: b"1"}.items():
            self.assertEqual((self.data / name).read_bytes(), content)
            self.assertEqual(stat.S_IMODE(os.lstat(self.data / name).st_mode), 0o600)
        self.assertEqual(sorted(os.listdir(self.data)), sorted(SOUND))


class StateTests(TrioCase):
    """What becomes of each state of the files."""

    def test_first(self) -> None:
        """With nothing there a key is made, with digest and marker; looking makes nothing."""
        self.assertRaises(InstallationUnavailable, self.verify)
        self.assertEqual(os.listdir(self.data), [])
        key = self.load()
        self.assertEqual((key, self.drawn), (b"\x01" * 32, 1))
        self.is_sound(key)

    def test_missing_directory(self) -> None:
        """The directory is made too, unless the database knows a key."""
        self.data.rmdir()
        self.assertRaises(InstallationUnavailable, self.load, sha(OLD).decode())
        self.assertRaises(InstallationUnavailable, self.verify)
        self.assertFalse(self.data.exists())
        self.is_sound(self.load())
        self.assertEqual(stat.S_IMODE(self.data.stat().st_mode), 0o700)

    def test_intact(self) -> None:
        """An intact trio gives its key, again and again, and is not written."""
        self.put()
        before = self.tree()
        for attempt in (self.load, self.verify):
            self.assertEqual(attempt(), OLD)
            self.assertEqual(attempt(sha(OLD).decode()), OLD)
        self.assertEqual((self.tree(), self.drawn), (before, 0))

    def test_fail_closed(self) -> None:
        """Every incoherent state fails, whatever the database knows."""
        for name, changes in FAILS.items():
            with self.subTest(name):
                self.put(changes)
                self.fails()
                self.fails(sha(OLD).decode())

    def test_completed(self) -> None:
        """What an interrupted making or an older version left is completed with the same key."""
        for name, changes in COMPLETED.items():
            with self.subTest(name):
                self.put(changes)
                self.assertEqual(self.verify(), OLD)
                self.assertEqual((self.load(), self.drawn), (OLD, 0))
                self.is_sound(OLD)

    def test_database_knows_better(self) -> None:
        """What the files alone cannot tell, the digest in the database does."""
        recorded = sha(OLD).decode()
        for changes in (
            dict.fromkeys(SOUND),
            {KEY: NEW, DIGEST: None, MARKER: None},
            {KEY: NEW, DIGEST: sha(NEW)},
        ):
            self.put(changes)  # type: ignore[arg-type]
            self.fails(recorded)
        self.put({KEY: NEW, DIGEST: None, MARKER: None})
        self.assertEqual(self.load(None), NEW)

    def test_modes(self) -> None:
        """What is too open is narrowed, twice with the same result; nothing is ever widened."""
        for before, after in (
            (0o644, 0o600),
            (0o640, 0o600),
            (0o666, 0o600),
            (0o4755, 0o600),
            (0o400, 0o400),
            (0o444, 0o400),
        ):
            self.put()
            for name in SOUND:
                (self.data / name).chmod(before)
            self.data.chmod(0o755)
            for _ in range(2):
                self.assertEqual(self.load(), OLD)
                for name in SOUND:
                    self.assertEqual(stat.S_IMODE(os.lstat(self.data / name).st_mode), after)
                self.assertEqual(stat.S_IMODE(os.lstat(self.data).st_mode), 0o700)

    def test_looking_narrows_nothing(self) -> None:
        """The status only looks."""
        self.put()
        (self.data / KEY).chmod(0o644)
        self.data.chmod(0o755)
        before = self.tree()
        self.assertEqual(self.verify(), OLD)
        self.assertEqual(self.tree(), before)

    def test_no_mask(self) -> None:
        """Under any umask all is private."""
        for mask in (0o000, 0o777):
            for name in SOUND:
                (self.data / name).unlink(missing_ok=True)
            before = os.umask(mask)
            try:
                key = self.load()
            finally:
                os.umask(before)
            self.is_sound(key)

    def test_hard_link(self) -> None:
        """A second name of the key is no reason to refuse it."""
        self.put()
        os.link(self.data / KEY, self.data / "copy")
        self.assertEqual(self.load(), OLD)

    def test_wrong_types(self) -> None:
        """A link, a directory and a FIFO are refused, whatever they lead to; nothing hangs."""
        for name in SOUND:
            for kind in ("link", "dangling", "directory", "fifo"):
                with self.subTest(f"{name} {kind}"):
                    self.put({name: None})
                    path, target = self.data / name, self.data.parent / "target"
                    target.write_bytes(SOUND[name])
                    target.chmod(0o644)
                    if kind == "link":
                        path.symlink_to(target)
                    elif kind == "dangling":
                        path.symlink_to("nowhere")
                    elif kind == "directory":
                        path.mkdir()
                    else:
                        os.mkfifo(path)
                    self.data.chmod(0o755)
                    self.fails()
                    self.assertEqual(target.read_bytes(), SOUND[name])
                    self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o644)
                    path.rmdir() if kind == "directory" else path.unlink()

    @skipIf(os.geteuid() != 0, "only root can give files away")
    def test_wrong_owner(self) -> None:
        """A file, or the directory, of another user is refused and nothing is narrowed."""
        for name in SOUND:
            self.put()
            (self.data / KEY).chmod(0o644)
            self.data.chmod(0o755)
            os.chown(self.data / name, 65534, 65534)
            self.fails()
            (self.data / name).unlink()
        self.put()
        os.chown(self.data, 65534, 65534)
        self.fails()

    @skipIf(why_not() is not None, why_not())
    def test_unreadable_as_another_user(self) -> None:
        """What a user may not read himself he does not widen: it fails."""
        code = (
            "import sys; from pathlib import Path\n"
            "from pitelegram.ownership.installation import Installation\n"
            "from pitelegram.errors import InstallationUnavailable\n"
            "try: Installation(data=Path(sys.argv[1])).load(None)\n"
            "except InstallationUnavailable as error: print(error)\n"
        )
        self.put()
        place = Path("/tmp") / f"pt-keys-{os.getpid()}"
        place.mkdir(mode=0o755)
        self.addCleanup(subprocess.run, ["rm", "-rf", str(place)], check=True)
        theirs = place / "telegram"
        os.rename(self.data, theirs)
        for path in (theirs, *theirs.iterdir()):
            os.chown(path, 65534, 65534)
        said = subprocess.run(
            as_user(NOBODY, code, theirs), capture_output=True, text=True, timeout=60
        )
        self.assertEqual((said.stdout, said.stderr), ("", ""))
        (theirs / KEY).chmod(0o200)
        said = subprocess.run(
            as_user(NOBODY, code, theirs), capture_output=True, text=True, timeout=60
        )
        self.assertEqual((said.stdout.strip(), said.stderr), (SENTENCE, ""))
        self.assertEqual(stat.S_IMODE((theirs / KEY).stat().st_mode), 0o200)

    def test_links_on_the_way(self) -> None:
        """The directory, or one above it, behind a link is refused; C{..} is too."""
        self.put()
        parent = self.data.parent
        (parent / "link").symlink_to(self.data)
        (parent / "above").symlink_to(parent)
        for path in (parent / "link", parent / "above" / "telegram", parent / "x/../telegram"):
            made = Installation(data=path, random_bytes=self.random_bytes)
            self.assertRaises(InstallationUnavailable, made.load, None)
            self.assertRaises(InstallationUnavailable, made.verify, None)
        self.assertEqual(self.drawn, 0)

    def test_exchanged_directory(self) -> None:
        """A directory that is exchanged meanwhile gets nothing: all goes where it was begun."""
        aside = self.data.parent / "aside"

        def exchange(count: int) -> bytes:
            os.rename(self.data, aside)
            self.data.mkdir()
            return NEW[:count]

        key = Installation(data=self.data, random_bytes=exchange).load(None)
        self.assertEqual(key, NEW)
        self.assertEqual(os.listdir(self.data), [])
        self.assertEqual(sorted(os.listdir(aside)), sorted(SOUND))


class InterruptionTests(TrioCase):
    """Power cuts and races."""

    def test_order(self) -> None:
        """Key, digest, marker; each is on disk, with its name, before the next."""
        seen: list[tuple[str, list[str]]] = []

        def fsync(fd: int) -> None:
            kind = "dir" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"
            seen.append((kind, sorted(name for name in SOUND if (self.data / name).exists())))
            os.fsync(fd)

        self.load(fsync=fsync)
        self.assertEqual(
            seen,
            [
                ("file", []),
                ("dir", [KEY]),
                ("file", [KEY]),
                ("dir", [KEY, DIGEST]),
                ("file", [KEY, DIGEST]),
                ("dir", sorted(SOUND)),
            ],
        )

    def test_killed_anywhere(self) -> None:
        """A process that dies at any step leaves what the next one completes, with the same key."""
        code = (
            "import os, sys; from pathlib import Path\n"
            "from pitelegram.ownership.installation import Installation\n"
            "left = int(sys.argv[2])\n"
            "def fsync(fd):\n"
            "    global left\n"
            "    os.fsync(fd)\n"
            "    left -= 1\n"
            "    if left == 0: os._exit(9)\n"
            "Installation(data=Path(sys.argv[1]), fsync=fsync).load(None)\n"
        )
        for step in range(1, 7):
            for path in self.data.iterdir():
                path.unlink()
            arguments = [sys.executable, "-c", code, str(self.data), str(step)]
            self.assertEqual(subprocess.run(arguments, timeout=60).returncode, 9)
            before = self.data / KEY
            left = before.read_bytes() if before.exists() else None
            self.assertEqual(left is None, step == 1)
            key = self.load()
            if left is not None:
                self.assertEqual(key, left)
            self.assertEqual(self.load(sha(key).decode()), key)

    def test_failing_disk(self) -> None:
        """A disk that fails at any step is the one error, and what is there is used later."""
        for step in range(6):
            for path in self.data.iterdir():
                path.unlink()
            calls = iter(range(6))

            def fsync(fd: int, calls: Any = calls, step: int = step) -> None:
                if next(calls) == step:
                    raise OSError(5, "disk")

            self.assertRaises(InstallationUnavailable, self.load, fsync=fsync)
            self.is_sound(self.load())

    def test_eight_makers(self) -> None:
        """Eight makers at once end with one trio, and none reads a part of it."""
        for _ in range(5):
            for path in self.data.iterdir():
                path.unlink()
            keys: list[Any] = []
            barrier = threading.Barrier(8)

            def make(keys: list[Any] = keys, barrier: Any = barrier) -> None:
                barrier.wait()
                try:
                    keys.append(Installation(data=self.data).load(None))
                except InstallationUnavailable as error:
                    keys.append(error)

            makers = [threading.Thread(target=make) for _ in range(8)]
            for maker in makers:
                maker.start()
            for maker in makers:
                maker.join()
            self.assertEqual(len(keys), 8)
            self.assertEqual(len(set(keys)), 1, keys)
            self.is_sound(keys[0])

    def test_overtaken(self) -> None:
        """Whoever is overtaken while he draws uses what the other made."""

        def slow(count: int) -> bytes:
            self.put()
            return NEW[:count]

        self.assertEqual(Installation(data=self.data, random_bytes=slow).load(None), OLD)
        self.is_sound(OLD)


class RotationTests(TrioCase):
    """L{reset_installation_key}."""

    def setUp(self) -> None:
        """A trio, and a database that knows it."""
        super().setUp()
        self.put()
        self.database = self.data / "default.sqlite3"
        with closing(sqlite3.connect(self.database)) as connection:
            connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
            connection.execute("INSERT INTO meta VALUES (?, ?)", (DIGEST_FACT, sha(OLD).decode()))
            connection.execute("INSERT INTO meta VALUES ('host_id', 'h')")
            connection.commit()

    def facts(self) -> dict[str, str]:
        """What the database keeps."""
        with closing(sqlite3.connect(self.database)) as connection:
            return dict(connection.execute("SELECT key, value FROM meta"))

    def test_literal_true_only(self) -> None:
        """Nothing but C{True} itself is an acknowledgement."""
        before, facts = self.tree(), self.facts()
        for value in (False, 1, "yes", "True", None, [True], 1.0):
            self.assertRaises(ValueError, reset_installation_key, self.data, value)
        self.assertRaises(ValueError, reset_installation_key, self.data)
        self.assertEqual((self.tree(), self.facts()), (before, facts))

    def test_reset(self) -> None:
        """All three go, the database forgets the digest and nothing else, and a new key is made."""
        reset_installation_key(self.data, acknowledge_continuity_break=True)
        self.assertEqual(self.facts(), {"host_id": "h"})
        self.assertEqual([name for name in SOUND if (self.data / name).exists()], [])
        self.assertEqual(self.load(None), b"\x01" * 32)

    def test_order_and_interruption(self) -> None:
        """Digest, key, database, marker: what is cut off in between stays closed until repeated."""
        removed: list[str] = []
        remove = PinnedDir.remove

        class Cut(BaseException):
            pass

        for steps in (1, 2):
            self.put()
            removed.clear()

            def cutting(directory: PinnedDir, name: str, steps: int = steps) -> None:
                if len(removed) == steps:
                    raise Cut
                removed.append(name)
                remove(directory, name)

            self.patch(PinnedDir, "remove", cutting)
            self.assertRaises(Cut, reset_installation_key, self.data, True)
            self.assertEqual(removed, [DIGEST, KEY][:steps])
            self.assertTrue((self.data / MARKER).exists())
            for recorded in (None, sha(OLD).decode()):
                self.assertRaises(InstallationUnavailable, self.load, recorded)
            self.patch(PinnedDir, "remove", remove)
            reset_installation_key(self.data, True)
            self.assertNotIn(DIGEST_FACT, self.facts())
            self.load(None)

    def test_incoherent(self) -> None:
        """What is neither sound nor the rest of a reset is left alone."""
        for changes in ({KEY: NEW}, {KEY: None}, {MARKER: b"0"}, {KEY: None, MARKER: None}):
            self.put(changes)  # type: ignore[arg-type]
            before, facts = self.tree(), self.facts()
            self.assertRaises(InstallationUnavailable, reset_installation_key, self.data, True)
            self.assertEqual((self.tree(), self.facts()), (before, facts))

    def test_lost_for_good(self) -> None:
        """Where all three files are lost, a reset lets the installation begin anew."""
        self.put(dict.fromkeys(SOUND))  # type: ignore[arg-type]
        self.assertRaises(InstallationUnavailable, self.load, self.facts()[DIGEST_FACT])
        reset_installation_key(self.data, True)
        self.assertNotIn(DIGEST_FACT, self.facts())

    def test_damaged_database(self) -> None:
        """A database that cannot be changed stops it before the marker goes."""
        self.database.write_bytes(b"no database" * 1000)
        self.assertRaises(OwnershipError, reset_installation_key, self.data, True)
        self.assertTrue((self.data / MARKER).exists())
        self.assertRaises(InstallationUnavailable, self.load)

    def test_live_owner(self) -> None:
        """A process that leads, of any profile, refuses it; a dead one does not."""
        runtime = self.data.parent / "tmp" / "telegram"
        runtime.mkdir(parents=True, mode=0o700)
        owners, parent = runtime / "owners.json", os.getppid()
        for pid, birth in ((parent, process_birth(parent)), (os.getpid(), own_birth().birth)):
            record = {"pid": pid, "role": "daemon", "processBirthId": birth}
            owners.write_text(json.dumps({"work": record}))
            before = self.tree()
            self.assertRaises(LiveOwner, reset_installation_key, self.data, True)
            self.assertEqual(self.tree(), before)
        record = {"pid": parent, "role": "daemon", "processBirthId": f"{parent}:start:1"}
        owners.write_text(json.dumps({"work": record}))
        reset_installation_key(self.data, True)
        self.assertFalse((self.data / KEY).exists())
        self.assertEqual(os.listdir(runtime), ["owners.json"])

"""The permission policy: made private, narrowed, refused."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import UnsafeFile
from pitelegram.kernel.files import (
    check_private_dir,
    check_private_file,
    ensure_private_dir,
    open_private,
    read_private,
    runtime_socket_path,
    set_umask,
    write_private,
)
from pitelegram.kernel.flock import FileLock, is_free
from pitelegram.kernel.paths import Paths


def mode(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(os.lstat(path).st_mode)


class FilesCase(SynchronousTestCase):
    """A fresh directory and a careless umask."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp()).absolute()
        self.base.mkdir()
        before = os.umask(0)
        self.addCleanup(os.umask, before)

    def refused(self, code: str, function: object, *args: object) -> None:
        """The call is refused with that code, and the text names no path."""
        error = self.assertRaises(UnsafeFile, function, *args)
        self.assertEqual(error.code, code)
        self.assertNotIn(self.base.name, str(error))


class PolicyTests(FilesCase):
    """Files and directories."""

    def test_created_private(self) -> None:
        """Whatever the umask, new files are 0600 and new directories 0700."""
        ensure_private_dir(self.base / "a" / "b")
        self.assertEqual((mode(self.base / "a"), mode(self.base / "a" / "b")), (0o700, 0o700))
        write_private(self.base / "f", b"x")
        self.assertEqual(mode(self.base / "f"), 0o600)
        os.close(open_private(self.base / "g", os.O_RDWR | os.O_CREAT))
        self.assertEqual(mode(self.base / "g"), 0o600)
        self.assertEqual([p.name for p in self.base.iterdir() if ".tmp-" in p.name], [])

    def test_narrowing(self) -> None:
        """An own object that is too open is narrowed by bitwise AND and never widened."""
        file = self.base / "f"
        for before, after in (
            (0o777, 0o600),
            (0o666, 0o600),
            (0o644, 0o600),
            (0o640, 0o600),
            (0o755, 0o600),
            (0o4755, 0o600),
            (0o444, 0o400),
            (0o400, 0o400),
        ):
            file.write_text("x")
            file.chmod(before)
            self.assertEqual(read_private(file), b"x")
            self.assertEqual(mode(file), after, oct(before))
            file.unlink()
        directory = self.base / "d"
        for before, after in (
            (0o755, 0o700),
            (0o750, 0o700),
            (0o777, 0o700),
            (0o2770, 0o700),
            (0o500, 0o500),
            (0o700, 0o700),
        ):
            directory.mkdir()
            directory.chmod(before)
            for _ in range(2):
                ensure_private_dir(directory)
                self.assertEqual(mode(directory), after, oct(before))
            directory.rmdir()

    def test_links(self) -> None:
        """A link is refused as the object and on the way to it; its target stays as it was."""
        target = self.base / "target"
        target.write_text("theirs")
        target.chmod(0o644)
        link = self.base / "link"
        link.symlink_to(target)
        self.refused("wrong_type", read_private, link)
        self.refused("wrong_type", write_private, link, b"x")
        self.refused("wrong_type", open_private, link, os.O_RDWR | os.O_CREAT)
        dangling = self.base / "dangling"
        dangling.symlink_to(self.base / "nowhere")
        self.refused("wrong_type", open_private, dangling, os.O_RDWR | os.O_CREAT)
        self.assertEqual((target.read_text(), mode(target)), ("theirs", 0o644))
        (self.base / "real").mkdir()
        (self.base / "way").symlink_to(self.base / "real")
        self.refused("wrong_type", ensure_private_dir, self.base / "way")
        self.refused("wrong_type", ensure_private_dir, self.base / "way" / "d")
        self.refused("wrong_type", write_private, self.base / "way" / "f", b"x")
        self.assertEqual(list((self.base / "real").iterdir()), [])

    def test_wrong_types(self) -> None:
        """Directories, pipes and devices where a file should be, and the reverse, are refused."""
        os.mkfifo(self.base / "pipe")
        (self.base / "dir").mkdir()
        (self.base / "file").write_text("")
        for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_CREAT):
            self.refused("wrong_type", open_private, self.base / "pipe", flags)
            self.refused("wrong_type", open_private, self.base / "dir", flags)
        self.refused("wrong_type", write_private, self.base / "dir", b"")
        self.refused("wrong_type", write_private, self.base / "pipe", b"")
        self.refused("wrong_type", ensure_private_dir, self.base / "file")
        self.refused("wrong_type", ensure_private_dir, self.base / "file" / "below")

    def test_wrong_owner(self) -> None:
        """What belongs to another user is refused and not changed."""
        if os.geteuid() != 0:
            self.refused("wrong_owner", read_private, Path("/etc/passwd"))
            return
        (self.base / "file").write_text("x")
        (self.base / "dir").mkdir()
        for name in ("file", "dir"):
            os.chown(self.base / name, 65534, 65534)
            os.chmod(self.base / name, 0o777)
        self.refused("wrong_owner", read_private, self.base / "file")
        self.refused("wrong_owner", write_private, self.base / "file", b"y")
        self.refused("wrong_owner", ensure_private_dir, self.base / "dir")
        self.assertEqual((mode(self.base / "file"), mode(self.base / "dir")), (0o777, 0o777))

    def test_missing_and_present(self) -> None:
        """A missing file reads as None; the codes for absence and presence are their own."""
        self.assertIsNone(read_private(self.base / "absent"))
        self.refused("missing_entry", open_private, self.base / "absent", os.O_RDONLY)
        (self.base / "f").write_text("")
        self.refused("entry_exists", open_private, self.base / "f", os.O_CREAT | os.O_EXCL)
        self.refused("missing_entry", write_private, self.base / "no" / "f", b"")

    def test_truncation_comes_after_the_checks(self) -> None:
        """A file of ours is emptied; one that is refused keeps its content."""
        file = self.base / "f"
        file.write_text("ours")
        os.close(open_private(file, os.O_WRONLY | os.O_TRUNC))
        self.assertEqual(file.read_text(), "")
        if os.geteuid() == 0:
            file.write_text("theirs")
            os.chown(file, 65534, 65534)
            self.refused("wrong_owner", open_private, file, os.O_WRONLY | os.O_TRUNC)
            self.assertEqual(file.read_text(), "theirs")

    def test_limit(self) -> None:
        """A file longer than the limit is refused."""
        write_private(self.base / "f", b"12345")
        self.assertEqual(read_private(self.base / "f", limit=5), b"12345")
        self.refused("operation_failed", read_private, self.base / "f", 4)

    def test_report_only(self) -> None:
        """The checks of C{doctor} say what is wrong and change nothing."""
        file, directory = self.base / "f", self.base / "d"
        file.write_text("")
        directory.mkdir()
        file.chmod(0o644)
        directory.chmod(0o755)
        self.refused("insecure_mode", check_private_file, file)
        self.refused("insecure_mode", check_private_dir, directory)
        self.assertEqual((mode(file), mode(directory)), (0o644, 0o755))
        self.refused("wrong_type", check_private_file, directory)
        self.refused("missing_entry", check_private_dir, self.base / "absent")
        file.chmod(0o400)
        check_private_file(file)

    def test_umask(self) -> None:
        """L{set_umask} makes everything private from then on and tells the umask before."""
        self.assertEqual(set_umask(), 0)
        (self.base / "f").write_text("")
        self.assertEqual(mode(self.base / "f"), 0o600)


class SocketPathTests(FilesCase):
    """L{runtime_socket_path}."""

    def test_short_stays(self) -> None:
        """A path of up to 100 bytes is used as it is, counted in bytes."""
        exact = Path("/" + "x" * 99)
        self.assertEqual(runtime_socket_path(exact), exact)
        self.assertNotEqual(runtime_socket_path(Path("/" + "ü" * 50)), Path("/" + "ü" * 50))

    def test_long_moves(self) -> None:
        """A longer one goes to a private directory of ours, the same one each time."""
        long = Path("/" + "x" * 100)
        moved = runtime_socket_path(long)
        self.assertEqual(moved, runtime_socket_path(long))
        self.assertEqual(moved.parent, Path(tempfile.gettempdir()) / f"pi-telegram-{os.getuid()}")
        self.assertEqual(mode(moved.parent), 0o700)
        self.assertRegex(moved.name, r"^[0-9a-f]{16}\.sock$")


class PathsTests(FilesCase):
    """L{Paths}."""

    def test_suffix(self) -> None:
        """The default profile has no suffix, others have."""
        plain, work = Paths(self.base), Paths(self.base, "work")
        self.assertEqual(plain.logs.name, "logs.jsonl")
        self.assertEqual(work.logs.name, "logs.work.jsonl")
        self.assertEqual(work.logs_previous.name, "logs.work._prev.jsonl")
        self.assertEqual(plain.database.name, "default.sqlite3")
        self.assertEqual(plain.pairing.name, "pairing.default")
        self.assertEqual(plain.owners, work.owners)
        self.assertEqual(plain.worker_lock("spec-1").name, "spec-1.lock")

    def test_hostile_names(self) -> None:
        """A name from outside never leaves its directory."""
        paths = Paths(self.base)
        for name in ("", "..", ".", "a/b", "a\\b", "a\0b", "x" * 300):
            self.refused("invalid_entry_name", paths.worker_lock, name)
            self.refused("invalid_entry_name", paths.uploads_of, name)
        self.assertEqual(paths.uploads_of("12:34").name, "12:34")

    def test_session_lock(self) -> None:
        """Two names of one session file share a lock."""
        (self.base / "s").write_text("")
        (self.base / "l").symlink_to(self.base / "s")
        paths = Paths(self.base)
        self.assertEqual(paths.session_lock(self.base / "s"), paths.session_lock(self.base / "l"))

    def test_prepare(self) -> None:
        """All directories are made private; an agent directory behind a link is fine."""
        (self.base / "agent").mkdir()
        (self.base / "link").symlink_to(self.base / "agent")
        paths = Paths(self.base / "link")
        paths.spool.parent.mkdir(parents=True)
        paths.spool.parent.chmod(0o777)
        paths.prepare()
        self.assertEqual(mode(paths.spool.parent), 0o700)
        for directory in (paths.runtime, paths.data, paths.workers, paths.spool, paths.uploads):
            self.assertEqual(mode(directory), 0o700)
        self.assertEqual(paths.agent_dir, self.base / "agent")


class NarrowTests(FilesCase):
    """L{Paths.narrow}: what a start does with all that is there."""

    def setUp(self) -> None:
        """A used agent directory, much too open."""
        super().setUp()
        self.paths = Paths(self.base / "agent")
        self.paths.prepare()
        files = (
            self.paths.owners,
            self.paths.database,
            self.paths.database.with_name("default.sqlite3-wal"),
            self.paths.worker_database("spec-1"),
            self.paths.worker_log("spec-1"),
            self.paths.worker_lock("spec-1"),
            self.paths.spool / "key" / "0",
            self.paths.uploads / "1:2" / "a",
            self.paths.pairing,
            self.paths.installation_key,
        )
        for file in files:
            file.parent.mkdir(exist_ok=True)
            file.write_text("x")
            file.chmod(0o664)
        os.mknod(self.paths.runtime / "bus.sock", stat.S_IFSOCK | 0o666)
        self.broaden()

    def broaden(self) -> None:
        """Open all directories."""
        for root in (self.paths.runtime, self.paths.data):
            for directory, _, _ in os.walk(root):
                os.chmod(directory, 0o2775)

    def modes(self) -> dict[str, int]:
        """Of all there is below the two directories, by path."""
        found = {}
        for root in (self.paths.runtime, self.paths.data):
            for path in (root, *root.rglob("*")):
                found[str(path.relative_to(self.base))] = os.lstat(path).st_mode
        return found

    def test_everything(self) -> None:
        """Files and sockets are 0600 and directories 0700 afterwards; a second time changes nothing."""
        for _ in range(2):
            self.paths.narrow()
            for name, found in self.modes().items():
                expected = 0o700 if stat.S_ISDIR(found) else 0o600
                self.assertEqual(stat.S_IMODE(found), expected, name)

    def test_all_table_modes(self) -> None:
        """By bitwise AND, stricter ones included."""
        for before, after in (
            (0o777, 0o600),
            (0o4755, 0o600),
            (0o444, 0o400),
            (0o200, 0o200),
            (0, 0),
        ):
            self.paths.database.chmod(before)
            self.paths.narrow()
            self.assertEqual(mode(self.paths.database), after)

    def test_one_unsafe_entry_stops_all(self) -> None:
        """Where one of our names is taken by something else, nothing at all is changed."""
        theirs = self.base / "theirs"
        theirs.write_text("x")
        theirs.chmod(0o644)
        for spoil, path in (
            (lambda path: path.symlink_to(theirs), self.paths.database),
            (lambda path: path.symlink_to("nowhere"), self.paths.state),
            (lambda path: os.mkfifo(path), self.paths.logs),
            (lambda path: path.mkdir(), self.paths.installation_key),
            (lambda path: path.write_text(""), self.paths.control_socket),
            (lambda path: path.write_text(""), self.paths.session_locks),
            (lambda path: path.symlink_to(self.base), self.paths.links),
        ):
            if path.is_dir():
                path.rmdir()
            path.unlink(missing_ok=True)
            spoil(path)
            before = self.modes()
            self.refused("wrong_type", self.paths.narrow)
            self.assertEqual(self.modes(), before)
            self.assertEqual(mode(theirs), 0o644)
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        self.paths.narrow()

    def test_wrong_owner(self) -> None:
        """What belongs to somebody else is refused at our names, and left alone elsewhere."""
        if os.geteuid() != 0:
            raise SkipTest("only root can give files away")
        stray = self.paths.downloads / "stray"
        stray.write_text("")
        stray.chmod(0o666)
        os.chown(stray, 65534, 65534)
        for path in (self.paths.owners, self.paths.workers, self.paths.data):
            os.chown(path, 65534, 65534)
            before = self.modes()
            self.refused("wrong_owner", self.paths.narrow)
            self.assertEqual(self.modes(), before)
            os.chown(path, 0, 0)
        self.paths.narrow()
        self.assertEqual(mode(stray), 0o666)

    def test_stray_things(self) -> None:
        """A link or a pipe that is none of ours stays as it is, and what it leads to."""
        theirs = self.base / "theirs"
        theirs.write_text("")
        theirs.chmod(0o644)
        (self.paths.downloads / "link").symlink_to(theirs)
        (self.paths.uploads / "away").symlink_to(self.base)
        os.mkfifo(self.paths.uploads / "pipe", 0o666)
        self.paths.narrow()
        self.assertEqual(mode(theirs), 0o644)
        self.assertEqual(mode(self.paths.uploads / "pipe"), 0o666)

    def test_nothing_there(self) -> None:
        """A first start has nothing to narrow, and this makes nothing."""
        fresh = Paths(self.base / "fresh")
        fresh.narrow()
        self.assertFalse(fresh.agent_dir.exists())


class LockTests(FilesCase):
    """L{FileLock}."""

    def test_exclusive(self) -> None:
        """One holder at a time; free again after release."""
        path = self.base / "l"
        self.assertTrue(is_free(path))
        self.assertFalse(path.exists())
        lock = FileLock.try_acquire(path)
        assert lock is not None
        self.assertIsNone(FileLock.try_acquire(path))
        self.assertFalse(is_free(path))
        lock.release()
        lock.release()
        self.assertFalse(lock.held)
        self.assertRaises(ValueError, lambda: lock.fd)
        self.assertTrue(is_free(path))

    def test_a_copy_keeps_it(self) -> None:
        """Releasing our copy leaves the lock with whoever has another copy."""
        path = self.base / "l"
        lock = FileLock.try_acquire(path)
        assert lock is not None
        copy = os.dup(lock.fd)
        lock.release()
        self.assertFalse(is_free(path))
        adopted = FileLock.adopt(copy)
        assert adopted is not None
        adopted.release()
        self.assertTrue(is_free(path))

    def test_adopting_a_lock_that_is_another_s(self) -> None:
        """A descriptor whose lock somebody else holds cannot be adopted."""
        path = self.base / "l"
        lock = FileLock.try_acquire(path)
        assert lock is not None
        other = os.open(path, os.O_RDWR)
        self.addCleanup(os.close, other)
        self.assertIsNone(FileLock.adopt(other))
        lock.release()

    def test_deleted_file(self) -> None:
        """A lock is of the file that stands there, not of one that was deleted."""
        path = self.base / "l"
        lock = FileLock.try_acquire(path)
        assert lock is not None
        path.unlink()
        again = FileLock.try_acquire(path)
        assert again is not None
        self.assertIsNone(FileLock.try_acquire(path))
        for each in (lock, again):
            each.release()

    def test_links_are_refused(self) -> None:
        """A link is no lock file."""
        (self.base / "l").symlink_to(self.base / "t")
        self.refused("wrong_type", FileLock.try_acquire, self.base / "l")
        self.refused("wrong_type", is_free, self.base / "l")

"""Where the control socket may stand, who may connect, and what a refusal leaves."""

from __future__ import annotations

import grp
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from unittest import skipIf

from twisted.internet.defer import maybeDeferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.utils import getProcessOutputAndValue
from twisted.trial.unittest import TestCase

from pitelegram.control import listening
from pitelegram.control.listening import check_place, listen
from pitelegram.errors import ConfigError, UnsafeFile
from pitelegram.kernel.deferring import deferred
from pitelegram.testing.others import as_user, why_not
from tests.control.test_http import ServerCase

ROOT = os.geteuid() == 0
SERVER, MEMBER, STRANGER = 65531, 65532, 65533

CONNECT = (
    "import socket, sys\n"
    "client = socket.socket(socket.AF_UNIX)\n"
    "try: client.connect(sys.argv[1])\n"
    "except OSError as error: print(type(error).__name__)\n"
    "else: client.settimeout(20); print(client.recv(100).decode())\n"
)

GREET = (
    "import os, sys; from pathlib import Path\n"
    "from twisted.internet import reactor\n"
    "from twisted.internet.protocol import Factory, Protocol\n"
    "from pitelegram.control.listening import listen\n"
    "class Hello(Protocol):\n"
    "    def connectionMade(self): self.transport.write(b'hello')\n"
    "os.umask(0)\n"
    "listen(Path(sys.argv[1]), Factory.forProtocol(Hello), reactor, sys.argv[2])\n"
    "print('listens', flush=True)\n"
    "reactor.run()\n"
)


class PlaceCase(TestCase):
    """A short directory that others may pass."""

    timeout = 60

    def setUp(self) -> None:
        """Make it; nothing is masked."""
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.base = Path(tempfile.mkdtemp(prefix="pt-")).resolve()
        self.addCleanup(shutil.rmtree, self.base)
        self.base.chmod(0o755)
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.parent = self.base / "d"
        self.path = self.parent / "c.sock"

    def listen(self, group: str | None = None) -> None:
        """Listen until the test ends."""
        port = listen(self.path, Factory.forProtocol(Protocol), self.reactor, group)
        self.addCleanup(lambda: maybeDeferred(port.stopListening))

    def tree(self) -> list[Any]:
        """All there is, with mode, owner, group and inode."""
        found = []
        for path in (self.base, *sorted(self.base.rglob("*"))):
            info = os.lstat(path)
            found.append((str(path), info.st_mode, info.st_uid, info.st_gid, info.st_ino))
        return found

    def refused(self, code: str, group: str | None = None) -> None:
        """Refused with that code and without a path, and nothing has changed."""
        before = self.tree()
        for attempt in (lambda: check_place(self.path, group), lambda: self.listen(group)):
            problem = self.assertRaises(UnsafeFile, attempt)
            self.assertEqual(problem.code, code)
            self.assertNotIn(str(self.base), str(problem))
            self.assertEqual(self.tree(), before)


class PrivateTests(PlaceCase):
    """Without a group."""

    def test_parents(self) -> None:
        """A directory of ours that nobody else may write to is used as it is."""
        for mode in (0o700, 0o750, 0o755, 0o711):
            self.parent.mkdir(exist_ok=True)
            self.parent.chmod(mode)
            self.assertIsNone(check_place(self.path, None))
            self.path = self.parent / f"{mode:o}.sock"
            self.listen()
            self.assertEqual(stat.S_IMODE(os.lstat(self.path).st_mode), 0o600)
            self.assertEqual(stat.S_IMODE(os.lstat(self.parent).st_mode), mode)

    def test_open_parents(self) -> None:
        """One that others may write to is refused, before a dead socket in it is touched."""
        self.parent.mkdir()
        os.mknod(self.path, stat.S_IFSOCK | 0o600)
        for mode in (0o770, 0o777, 0o1777, 0o702, 0o720):
            self.parent.chmod(mode)
            self.refused("insecure_socket_parent")

    def test_missing_parent(self) -> None:
        """A missing one is made, private."""
        check_place(self.path, None)
        self.assertFalse(self.parent.exists())
        self.listen()
        self.assertEqual(stat.S_IMODE(os.lstat(self.parent).st_mode), 0o700)

    def test_links(self) -> None:
        """A link as the directory, above it, or as the socket is refused."""
        real = self.base / "real"
        (real / "d").mkdir(parents=True, mode=0o700)
        (self.base / "above").symlink_to(real)
        self.parent.symlink_to(real / "d")
        self.refused("wrong_type")
        self.path = self.base / "above" / "d" / "c.sock"
        self.refused("wrong_type")
        self.path = real / "d" / "c.sock"
        self.path.symlink_to("elsewhere")
        before = self.tree()
        problem = self.assertRaises(UnsafeFile, self.listen)
        self.assertEqual((problem.code, self.tree()), ("wrong_type", before))

    def test_other_kinds(self) -> None:
        """A file as the directory; a file, a directory or a pipe as the socket."""
        self.parent.write_text("")
        self.refused("wrong_type")
        self.parent.unlink()
        self.parent.mkdir(mode=0o700)
        for make in (Path.touch, Path.mkdir, os.mkfifo):
            make(self.path)
            before = self.tree()
            problem = self.assertRaises(UnsafeFile, self.listen)
            self.assertEqual((problem.code, self.tree()), ("wrong_type", before))
            self.path.rmdir() if self.path.is_dir() else self.path.unlink()

    def test_names(self) -> None:
        """What is no name, or too long, is refused."""
        self.parent.mkdir(mode=0o700)
        for path in (self.base / "x" / ".." / "d" / "c", self.parent / "a\0b", Path("/")):
            self.path = path
            self.refused("invalid_entry_name")
        self.path = self.parent / ("x" * 120)
        self.refused("invalid_entry_name")

    @skipIf(not ROOT, "only root can give directories away")
    def test_wrong_owner(self) -> None:
        """Another user's directory, or his socket in ours, is refused."""
        self.parent.mkdir(mode=0o755)
        os.chown(self.parent, STRANGER, STRANGER)
        self.refused("wrong_owner")
        os.chown(self.parent, 0, 0)
        os.mknod(self.path, stat.S_IFSOCK | 0o600)
        os.chown(self.path, STRANGER, STRANGER)
        before = self.tree()
        problem = self.assertRaises(UnsafeFile, self.listen)
        self.assertEqual((problem.code, self.tree()), ("wrong_owner", before))


class GroupTests(PlaceCase):
    """With a group of this process."""

    def setUp(self) -> None:
        """The own group."""
        super().setUp()
        self.group = grp.getgrgid(os.getegid()).gr_name
        self.parent.mkdir()
        os.chown(self.parent, -1, os.getegid())

    def test_parents(self) -> None:
        """The group may pass its directory and not write to it; nobody else may anything."""
        for mode in (0o710, 0o750, 0o2710, 0o2750):
            self.parent.chmod(mode)
            self.assertEqual(check_place(self.path, self.group), os.getegid())
            self.path = self.parent / f"{mode:o}.sock"
            self.listen(self.group)
            info = os.lstat(self.path)
            self.assertEqual((stat.S_IMODE(info.st_mode), info.st_gid), (0o660, os.getegid()))
            self.assertEqual(stat.S_IMODE(os.lstat(self.parent).st_mode), mode)

    def test_other_parents(self) -> None:
        """Any other mode is refused, not repaired."""
        for mode in (0o700, 0o711, 0o740, 0o755, 0o770, 0o777, 0o1777, 0o714):
            self.parent.chmod(mode)
            self.refused("insecure_socket_parent", self.group)

    def test_missing_parent(self) -> None:
        """A missing one is not made."""
        self.parent.rmdir()
        self.refused("missing_entry", self.group)

    @skipIf(not ROOT, "only root can give directories away")
    def test_wrong_group_and_owner(self) -> None:
        """A directory of another group or user is refused."""
        self.parent.chmod(0o710)
        os.chown(self.parent, -1, MEMBER)
        self.refused("wrong_group", self.group)
        os.chown(self.parent, STRANGER, os.getegid())
        self.refused("wrong_owner", self.group)

    def test_no_group_of_ours(self) -> None:
        """No such group, no name of one, and one that this process is not in, change nothing."""
        self.parent.chmod(0o710)
        mine = {os.getegid(), *os.getgroups()}
        foreign = next(each.gr_name for each in grp.getgrall() if each.gr_gid not in mine)
        before = self.tree()
        for group in ("no-such-group-here", "", "a\0b", "65999", "\ud800", foreign):
            self.assertRaises(ConfigError, self.listen, group)
            self.assertRaises(ConfigError, check_place, self.path, group)
        self.assertEqual(self.tree(), before)

    def test_group_that_cannot_be_given(self) -> None:
        """Where the socket cannot be given to the group it is taken away again at once."""
        self.parent.chmod(0o710)

        class Unable:
            """The system, refusing."""

            def __getattr__(self, name: str) -> Any:
                return getattr(os, name)

            def chown(self, *arguments: Any) -> None:
                raise PermissionError(1, "no")

        self.patch(listening, "os", Unable())
        before = self.tree()
        problem = self.assertRaises(UnsafeFile, self.listen, self.group)
        self.assertEqual((problem.code, self.tree()), ("operation_failed", before))


@skipIf(why_not() is not None, why_not())
class OtherUserTests(PlaceCase):
    """As users who are not this one."""

    @deferred
    async def connects(self, uid: int, groups: list[int]) -> str:
        """What somebody gets at the socket."""
        command = as_user(uid, CONNECT, self.path, groups=groups)
        out, err, code = await getProcessOutputAndValue(command[0], command[1:], os.environ)
        self.assertEqual((err, code), (b"", 0))
        return out.decode().strip()

    @deferred
    async def test_members_only(self) -> None:
        """A member of the group, current by the process and not by a text, connects; others do not."""
        group = next(each for each in grp.getgrall() if each.gr_gid not in (0, os.getegid()))
        self.parent.mkdir()
        self.parent.chmod(0o710)
        os.chown(self.parent, SERVER, group.gr_gid)
        command = as_user(SERVER, GREET, self.path, group.gr_name, groups=[group.gr_gid])
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.terminate)
        assert server.stdout is not None
        self.assertEqual(server.stdout.readline(), "listens\n")
        info = os.lstat(self.path)
        self.assertEqual(
            (stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid),
            (0o660, SERVER, group.gr_gid),
        )
        self.assertEqual(await self.connects(MEMBER, [group.gr_gid]), "hello")
        self.assertEqual(await self.connects(SERVER, []), "hello")
        self.assertEqual(await self.connects(STRANGER, []), "PermissionError")
        self.assertEqual(await self.connects(STRANGER, [STRANGER]), "PermissionError")

    @deferred
    async def test_no_member(self) -> None:
        """Who is not in the group now cannot open his socket to it."""
        group = next(each for each in grp.getgrall() if each.gr_gid not in (0, os.getegid()))
        self.parent.mkdir()
        self.parent.chmod(0o710)
        os.chown(self.parent, SERVER, group.gr_gid)
        before = self.tree()
        command = as_user(SERVER, GREET, self.path, group.gr_name)
        _, err, code = await getProcessOutputAndValue(command[0], command[1:], os.environ)
        self.assertNotEqual(code, 0)
        self.assertIn(b"not a member", err)
        self.assertEqual(self.tree(), before)


@skipIf(why_not() is not None, why_not())
class PeerTests(ServerCase):
    """Who is at the other end, asked of the system."""

    @deferred
    async def test_foreign_peer(self) -> None:
        """However open the socket was made, another user gets nothing from it."""
        base = Path(tempfile.mkdtemp(prefix="pt-"))
        self.addCleanup(shutil.rmtree, base)
        base.chmod(0o755)
        server = self.make(base / "d" / "c.sock")
        server.startService()
        self.addCleanup(server.stopService)
        (base / "d").chmod(0o755)
        (base / "d" / "c.sock").chmod(0o666)
        asking = (
            "import socket, sys\n"
            "client = socket.socket(socket.AF_UNIX); client.connect(sys.argv[1])\n"
            "client.sendall(b'GET /v1/status HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')\n"
            "client.settimeout(20); print(client.recv(100000).decode())\n"
        )
        for uid, status in ((STRANGER, b"403"), (0, b"200")):
            command = as_user(uid, asking, base / "d" / "c.sock")
            out, err, _ = await getProcessOutputAndValue(command[0], command[1:], os.environ)
            self.assertEqual(err, b"")
            self.assertEqual(out.split()[1], status)

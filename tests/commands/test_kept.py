"""What C{doctor} says of store, key, disk and memory; it only looks."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.commands.doctor import line
from pitelegram.commands.finding import Finding
from pitelegram.commands.ground import FREE_MIB, MEMORY_MIB, MIB, disk, memory
from pitelegram.commands.kept import key, store
from pitelegram.kernel.paths import Paths
from pitelegram.ownership.continuity import DIGEST_FACT
from pitelegram.ownership.installation import Installation, digest_of
from pitelegram.store.leadership import Leadership
from pitelegram.testing.stores import leader_database


class KeptCase(SynchronousTestCase):
    """An agent directory of its own."""

    def setUp(self) -> None:
        """Make it."""
        base = Path(tempfile.mkdtemp(prefix="pi-telegram-test-"))
        self.addCleanup(shutil.rmtree, base, True)
        self.paths = Paths(base / "agent")
        self.paths.prepare()

    def files(self) -> dict[str, tuple[int, bytes]]:
        """Mode and content of everything in the data directory."""
        return {
            path.name: (path.stat().st_mode, path.read_bytes())
            for path in self.paths.data.iterdir()
            if path.is_file()
        }


class StoreTests(KeptCase):
    """L{store}."""

    def make(self) -> None:
        """Make a store that records a key, and close it."""
        database = leader_database(Clock(), self.paths.database)
        self.successResultOf(Leadership(database).set_meta(DIGEST_FACT, "0" * 64))
        self.successResultOf(database.stopService())

    def look(self, lives: bool = False) -> tuple[str, str]:
        """Level and text; nothing is changed."""
        before = self.files()
        finding, self.recorded = store(self.paths, lives)
        self.assertEqual(self.files().keys(), before.keys())
        if not lives:
            self.assertEqual(self.files(), before)
        return finding.level, finding.text

    def test_none(self) -> None:
        """Before the first start there is none, and that is right."""
        self.assertEqual(self.look(), ("ok", "none yet; the first start makes it"))

    def test_sound(self) -> None:
        """A closed one, and one that a daemon has open."""
        self.make()
        level, text = self.look()
        self.assertEqual((level, self.recorded), ("ok", "0" * 64))
        self.assertRegex(text, r"\Asound, \d+ KiB\Z")
        database = leader_database(Clock(), self.paths.database)
        self.addCleanup(database.stopService)
        self.successResultOf(Leadership(database).set_meta("x", "y"))
        self.assertEqual(self.look(lives=True)[0], "ok")
        self.assertEqual(self.recorded, "0" * 64)

    def test_cut_off(self) -> None:
        """One that a killed daemon left is not even opened: that would repair it."""
        database = leader_database(Clock(), self.paths.database)
        self.addCleanup(database.stopService)
        self.assertEqual(self.look()[0], "ok")
        self.assertIsNone(self.recorded)

    def test_damaged(self) -> None:
        """Rubbish, and pages that were overwritten."""
        self.make()
        whole = self.paths.database.read_bytes()
        self.paths.database.write_bytes(b"x" * 8192)
        self.assertEqual(self.look()[0], "fail")
        self.paths.database.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
        level, text = self.look()
        self.assertEqual(level, "fail")
        self.assertIn("damaged", text)

    def test_newer(self) -> None:
        """One of a newer version is not for this one."""
        self.make()
        with sqlite3.connect(self.paths.database) as connection:
            connection.execute("PRAGMA user_version = 9999")
        connection.close()
        self.assertEqual(self.look(), ("fail", "written by a newer pi-telegram"))


class KeyTests(KeptCase):
    """L{key}: present, digest, sentinel, modes."""

    def setUp(self) -> None:
        """Make a key."""
        super().setUp()
        made = Installation(data=self.paths.data).load(None)
        self.recorded = digest_of(made)

    def look(self, recorded: str | None = None) -> tuple[str, str]:
        """Level and text; nothing is changed, and nothing of the key is told."""
        before = self.files()
        finding = key(self.paths, recorded or self.recorded)
        self.assertEqual(self.files(), before)
        self.assertNotIn(self.recorded[:8], finding.text + finding.cure)
        return finding.level, finding.text

    def facts(self, present: str, digest: str, sentinel: str, modes: str) -> str:
        """The text."""
        return f"present {present}, digest_ok {digest}, sentinel_ok {sentinel}, modes_ok {modes}"

    def test_right(self) -> None:
        """All four."""
        self.assertEqual(self.look(), ("ok", self.facts("yes", "yes", "yes", "yes")))

    def test_none(self) -> None:
        """None at all is right before there is a record of one, and only then."""
        for name in (
            self.paths.installation_key,
            self.paths.installation_digest,
            self.paths.installation_marker,
        ):
            name.unlink()
        self.assertEqual(key(self.paths, None).level, "ok")
        self.assertEqual(self.look(), ("fail", self.facts("no", "no", "no", "yes")))

    def test_faults(self) -> None:
        """Each of the four by itself."""
        installation = self.paths
        modes = self.facts("yes", "yes", "yes", "no")
        installation.installation_key.chmod(0o640)
        self.assertEqual(self.look(), ("warn", modes))
        installation.installation_key.chmod(0o600)
        self.assertEqual(self.look("0" * 64), ("fail", self.facts("yes", "no", "yes", "yes")))
        right = installation.installation_marker.read_bytes()
        installation.installation_marker.write_bytes(b"2")
        self.assertEqual(self.look(), ("fail", self.facts("yes", "yes", "no", "yes")))
        installation.installation_marker.write_bytes(right)
        installation.installation_digest.write_text("f" * 64)
        self.assertEqual(self.look(), ("fail", self.facts("yes", "no", "yes", "yes")))
        installation.installation_digest.unlink()
        self.assertEqual(self.look(), ("fail", self.facts("no", "no", "yes", "yes")))

    def test_unsafe(self) -> None:
        """A link is refused, without saying where it leads."""
        self.paths.installation_key.unlink()
        self.paths.installation_key.symlink_to("/etc/hostname")
        finding = key(self.paths, self.recorded)
        self.assertEqual(finding.level, "fail")
        self.assertNotIn("/", finding.text)


class GroundTests(KeptCase):
    """Disk and memory."""

    def test_disk(self) -> None:
        """Enough, too little, unknown; of the nearest directory that is there."""
        asked: list[Path] = []

        def free(place: Path) -> int:
            asked.append(place)
            return FREE_MIB * MIB

        nowhere = Paths(self.paths.agent_dir / "not" / "yet")
        self.assertEqual(disk(nowhere, free).level, "ok")
        self.assertEqual(asked, [self.paths.agent_dir])
        self.assertEqual(disk(self.paths, lambda _: FREE_MIB * MIB - 1).level, "fail")

        def broken(place: Path) -> int:
            raise OSError("no")

        self.assertEqual(disk(self.paths, broken).level, "warn")
        right = os.statvfs(self.paths.agent_dir)
        shown = int(disk(self.paths).text.split()[0])
        self.assertAlmostEqual(shown, right.f_bavail * right.f_frsize // MIB, delta=1024)

    def test_memory(self) -> None:
        """Enough for a worker, or not."""
        self.assertEqual(memory(lambda: MEMORY_MIB * MIB).level, "ok")
        found = memory(lambda: MEMORY_MIB * MIB - 1)
        self.assertEqual(found.level, "warn")
        self.assertIn("400 MiB", found.cure)
        self.assertGreater(int(memory().text.split()[0]), 0)


class LineTests(SynchronousTestCase):
    """L{line}."""

    def test_report(self) -> None:
        """For the public a line has neither places nor addresses; for the operator it has."""
        found = Finding("fail", "files", "x at /home/bob", "look at /home/bob for a@b.org")
        self.assertEqual(line(found, public=False).count("/home/bob"), 2)
        shown = line(found, public=True)
        self.assertNotIn("bob", shown)
        self.assertNotIn("a@b", shown)
        self.assertIn("->", shown)

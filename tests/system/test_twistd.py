"""The daemon under twistd, in front and in the background."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pitelegram.kernel.deferring import deferred
from pitelegram.testing.system import Program
from tests.system import SystemCase


class Twistd(SystemCase):
    """C{twistd pi-telegram}."""

    def twistd(self, *arguments: str) -> Program:
        """Start twistd with these arguments."""
        command = [str(Path(sys.executable).parent / "twistd"), *arguments]
        return self.system.spawn(command)

    @deferred
    async def test_in_front(self) -> None:
        """C{twistd -n} gets ready, and SIGTERM ends it with 0; its workers live on."""
        pidfile = self.base / "t.pid"
        self.system.daemon = self.twistd("-n", f"--pidfile={pidfile}", "pi-telegram")
        await self.system.daemon.when_says("pi-telegram ready profile=default bot=@")
        thread = await self.system.start_worker("alpha")
        self.assertEqual(int(pidfile.read_text()), self.system.daemon.pid)
        done = await self.system.daemon.kill(signal.SIGTERM)
        self.assertEqual(done.code, 0, done.err)
        self.assertFalse(pidfile.exists())
        self.assertEqual(len(self.system.workers()), 1)
        await self.system.start_daemon()
        self.system.say("hello", thread)
        await self.system.answer("You said: hello", thread)

    @deferred
    async def test_in_the_background(self) -> None:
        """Daemonised with a pid file it works; SIGTERM ends it and removes the file."""
        pidfile, log = self.base / "t.pid", self.base / "t.log"
        done = await self.twistd(
            f"--pidfile={pidfile}", f"--logfile={log}", "pi-telegram"
        ).finished.when()
        self.assertEqual(done.code, 0, done.err)
        await self.system.until(
            lambda: log.exists() and "pi-telegram ready" in log.read_text(), "readiness"
        )
        thread = await self.system.start_worker("alpha")
        self.system.say("hello", thread)
        await self.system.answer("You said: hello", thread)
        os.kill(int(pidfile.read_text()), signal.SIGTERM)
        await self.system.until(lambda: not pidfile.exists(), "the end")
        self.assertNotIn(self.system.telegram.token, log.read_text())

    @deferred
    async def test_codes(self) -> None:
        """Bad options end with 2, a missing token with 3, before twistd forks; its own with 1."""
        for arguments, code in (
            (("pi-telegram", "--network-family", "ipv9"), 2),
            (("pi-telegram", "--nonsense"), 2),
            (("--nonsense", "pi-telegram"), 1),
        ):
            done = await self.twistd("-n", "--pidfile=", *arguments).finished.when()
            self.assertEqual(done.code, code, done.out + done.err)
        self.system.write_settings(botToken="")
        done = await self.twistd("--pidfile=", "pi-telegram").finished.when()
        self.assertEqual(done.code, 3, done.out + done.err)
        self.assertIn("pi-telegram setup", done.out + done.err)

    @deferred
    async def test_revoked_token(self) -> None:
        """A token that is revoked later ends C{twistd -n} with 5."""
        self.system.daemon = self.twistd("-n", "--pidfile=", "pi-telegram")
        await self.system.daemon.when_says("pi-telegram ready")
        self.system.telegram.faults.add("*", "401", times=None)
        done = await self.system.daemon.finished.when()
        self.assertEqual(done.code, 5, done.out + done.err)

"""The daemon as its unit starts it."""

from __future__ import annotations

import os
import signal
import socket

from pitelegram.commands import units
from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


class Service(SystemCase):
    """What C{service install} wrote, run with nothing but what stands in it."""

    @deferred
    async def test_unit(self) -> None:
        """Python and Pi are found without anybody's C{PATH}; systemd is told; workers live on."""
        done = await self.system.cli("service", "install", "--root", str(self.system.projects))
        home = self.system.environment()["HOME"]
        (unit,) = self.base.rglob("pi-telegram.service")
        self.assertTrue(unit.is_relative_to(home), done.err)
        text = unit.read_text()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            address = f"\0pi-telegram-test-{os.getpid()}"
            manager.bind(address)
            manager.setblocking(False)
            environment = {
                **units.environment_of(text),
                "HOME": home,
                "NOTIFY_SOCKET": "@" + address[1:],
            }
            daemon = self.system.spawn(units.words_of(text), environment=environment)
            self.system.daemon = daemon
            await daemon.when_says("pi-telegram ready")
            await self.system.until(lambda: b"READY=1" in self.told(manager), "the word to systemd")
            thread = await self.system.start_worker("alpha")
            self.system.say("found by the service", thread)
            await self.system.answer("You said: found by the service", thread)
            (worker,) = self.system.workers()
            ended = await daemon.kill(signal.SIGTERM)
            self.assertEqual(ended.code, 0)
            self.assertIn(b"STOPPING=1", self.told(manager))
        self.assertTrue(worker.is_running())
        self.assertEqual([each.pid for each in self.system.workers()], [worker.pid])

    def told(self, manager: socket.socket) -> bytes:
        """What came since the last look."""
        found = b""
        while True:
            try:
                found += manager.recv(4096) + b"\n"
            except BlockingIOError:
                return found

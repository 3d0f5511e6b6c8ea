"""Two daemons: of one profile, and of two profiles."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import psutil
from twisted.internet.defer import gatherResults

from pitelegram.kernel.deferring import deferred
from pitelegram.testing.system import Program
from pitelegram.testing.telegram import Sandbox
from tests.system import SystemCase


class OneProfile(SystemCase):
    """Only one daemon leads a profile, and only it has workers."""

    @deferred
    async def test_second_starts_nothing(self) -> None:
        """It exits with 4 while a worker is wanted, running or stopped, and makes no process."""
        (thread,) = await self.start("alpha")
        (worker,) = self.system.workers()
        await self.exits_with_4("run")
        await self.exits_with_4("start")
        self.assertEqual([p.pid for p in self.system.workers()], [worker.pid])
        await self.silent()
        await self.asked("still one", thread)
        spawns = self.rows("SELECT count(*) FROM spawns")
        self.assertEqual((spawns, len(self.system.pis())), ([1], 1))

    @deferred
    async def silent(self) -> None:
        """A first daemon that is suspended, with an old heartbeat, is an owner all the same."""
        assert self.system.daemon is not None
        daemon = psutil.Process(self.system.daemon.pid)
        daemon.suspend()
        owners = self.system.agent_dir / "tmp" / "telegram" / "owners.json"
        before = owners.read_bytes()
        record = json.loads(before)
        record["default"]["heartbeatMs"] -= 3_600_000
        owners.write_text(json.dumps(record))
        await self.exits_with_4("run")
        owners.write_bytes(before)
        daemon.resume()

    @deferred
    async def exits_with_4(self, verb: str) -> None:
        """Another daemon ends at once and names the first; nothing in the store says it was there."""
        daemon = self.system.daemon
        assert daemon is not None
        epoch = self.rows("SELECT epoch, acquired_ms FROM leader")
        done = await self.system.cli(verb)
        self.assertEqual(done.code, 4, done.out + done.err)
        self.assertIn(str(daemon.pid), done.out + done.err)
        self.assertFalse(daemon.finished.fired)
        self.assertEqual(self.rows("SELECT epoch, acquired_ms FROM leader"), epoch)

    @deferred
    async def test_two_at_the_same_moment(self) -> None:
        """After a kill two new ones come at once: one leads and adopts, the other exits with 4."""
        (thread,) = await self.start("alpha")
        (worker,) = self.system.workers()
        assert self.system.daemon is not None
        await self.system.daemon.kill()
        both = [self.system.run("run") for _ in range(2)]
        await self.system.until(lambda: [p for p in both if p.finished.fired], "the loser's end")
        (loser,) = [p for p in both if p.finished.fired]
        (self.system.daemon,) = [p for p in both if p is not loser]
        self.assertEqual((await loser.finished.when()).code, 4, loser.out + loser.err)
        await self.system.daemon.when_says("pi-telegram ready")
        await self.asked("one of them", thread)
        self.assertEqual([p.pid for p in self.system.workers()], [worker.pid])


class TwoProfiles(SystemCase):
    """Two bots on one agent directory."""

    def setUp(self) -> None:
        """A second Telegram, with the profile C{other} for it."""
        from twisted.internet import reactor

        super().setUp()
        self.second = Sandbox(reactor, token=f"222222222:{'t' * 35}")
        self.second.startService()
        self.other: Program | None = None
        path = self.system.agent_dir / "telegram.json"
        settings = json.loads(path.read_text())
        bot = self.second.chat.world.bot
        settings["profiles"]["other"] = {
            "botToken": self.second.token,
            "botId": bot["id"],
            "botUsername": bot["username"],
            "allowedUserId": self.second.chat.owner["id"],
        }
        path.write_text(json.dumps(settings))

    @deferred
    async def tearDown(self) -> None:
        """End the second daemon and its Telegram too."""
        if self.other is not None:
            await self.other.kill()
        await super().tearDown()
        await self.second.stopService()

    @deferred
    async def start_other(self) -> None:
        """Start the daemon of the second profile."""
        self.other = self.system.run(
            "run", "--profile", "other", "--api-root", self.second.api_root
        )
        await self.other.when_says("pi-telegram ready")

    @deferred
    async def of_other(self, *arguments: str) -> Any:
        """A C{workers} command to the second daemon."""
        return await self.system.cli("workers", *arguments, "--profile", "other")

    @deferred
    async def worker_of_other(self) -> dict[str, Any]:
        """The second daemon's worker, as the local operator sees it."""
        done = await self.of_other("list", "--json", "--private")
        return dict(done.json()["workers"][0])

    @deferred
    async def test_one_directory(self) -> None:
        """Both may work in one directory, each in its own session; the other's is never entered,
        neither by a recorded session nor by a switch."""
        directory = str(self.system.project("alpha"))
        await gatherResults([self.system.start_daemon(), self.start_other()])
        await gatherResults([self.system.start_worker("alpha"), self.of_other("start", directory)])
        mine, theirs = await self.private("alpha"), await self.worker_of_other()
        self.assertEqual(theirs["state"], "running")
        self.assertNotEqual(mine["session_file"], theirs["session_file"])
        (thread,) = [m.thread_id for m in self.system.answers("alpha is ready")]
        assert thread is not None
        await self.asked("mine alone", thread)
        await self.of_other("stop", "alpha")
        await self.record_for_other(mine["session_file"])
        refused = await self.of_other("start", directory)
        self.assertEqual(refused.code, 1, refused.out)
        theirs = await self.worker_of_other()
        self.assertEqual(theirs["state"], "failed")
        self.assertIn("another Pi is in that session", theirs["last_error"])
        self.assertEqual(len(self.system.pis()), 1)
        await self.asked("mine still", thread)
        await self.worker("stop", "alpha")
        self.assertEqual((await self.of_other("start", directory)).code, 0)
        self.assertEqual((await self.worker_of_other())["session_file"], mine["session_file"])

    @deferred
    async def record_for_other(self, file: str) -> None:
        """Let the second daemon's store say that its worker was in that session."""
        assert self.other is not None
        await self.other.kill()
        store = sqlite3.connect(self.system.agent_dir / "telegram" / "other.sqlite3")
        store.execute("UPDATE specs SET session_file = ?, session_id = NULL", (file,))
        store.commit()
        store.close()
        await self.start_other()

"""What a daemon says of a stop or a restart that an earlier one began."""

from __future__ import annotations

from pitelegram.errors import NobodyKnows
from pitelegram.kernel.deferring import deferred
from pitelegram.store.commands import Commands
from tests.daemon.test_face import FaceCase


class TakenOverStops(FaceCase):
    """The ladder is gone down by this daemon; its end is the command's."""

    @deferred
    async def test_done_when_it_is_gone(self) -> None:
        """A worker that still goes down is waited for: accepted means that it is gone."""
        self.daemon.commands = Commands(self.world.database, "host")
        await self.world.leader.specs.create("id-alpha", "alpha", "/projects/alpha")
        await self.world.leader.specs.want("id-alpha", "stopped", None, "request-1")
        self.supervisor.change("alpha", state="terminating")
        settling = self.settle("worker.stop")
        self.assertNoResult(settling)
        self.supervisor.change("alpha", state="stopped", worker_id=None)
        found = await settling
        self.assertEqual((found["name"], found["state"]), ("alpha", "stopped"))


class TakenOverRestarts(FaceCase):
    """The worker was gone already, and this daemon starts it."""

    @deferred
    async def test_done_when_it_is_made(self) -> None:
        """A start that is being made is waited for: its intent proves the restart."""
        specs = self.world.leader.specs
        await specs.create("id-alpha", "alpha", "/projects/alpha")
        self.supervisor.change("alpha", state="spawning", worker_id=None)
        settling = self.settle("worker.restart")
        self.assertNoResult(settling)
        await specs.intend("p1", "id-alpha", b"secret")
        self.assertEqual((await settling)["name"], "alpha")

    @deferred
    async def test_not_made(self) -> None:
        """A start that comes to nothing proves nothing."""
        self.supervisor.change("alpha", state="spawning", worker_id=None)
        settling = self.settle("worker.restart")
        self.assertNoResult(settling)
        self.supervisor.change("alpha", state="backoff")
        await self.assertFailure(settling, NobodyKnows)

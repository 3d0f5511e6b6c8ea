"""What a daemon says of a stop that an earlier one began."""

from __future__ import annotations

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

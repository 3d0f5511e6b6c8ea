"""A worker that is given up."""

from __future__ import annotations

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


class Forget(SystemCase):
    """C{workers forget} on the whole machine."""

    @deferred
    async def test_nothing_of_it_stays(self) -> None:
        """Slot and files are free after it, status goes on, and the directory can start anew."""
        (first,) = await self.start("alpha")
        self.system.say("remember this", first)
        await self.system.answer("You said: remember this", first)
        refused = await self.system.cli("workers", "forget", "alpha", "--json")
        self.assertEqual((refused.code, refused.json()["status"]), (1, "rejected"))
        self.assertEqual((await self.system.cli("workers", "stop", "alpha")).code, 0)
        self.system.say("nobody runs this", first)
        await self.system.until(
            lambda: self.system.answers("is kept", first) or None, "the notice of a held message"
        )
        forgotten = await self.system.cli("workers", "forget", "alpha", "--json")
        self.assertEqual((forgotten.code, forgotten.json()["status"]), (0, "accepted"))
        stores = self.system.agent_dir / "telegram" / "workers"
        self.assertEqual(list(stores.iterdir()), [])
        status = await self.system.status()
        self.assertEqual(status["workers"], [])
        await self.system.start_worker("alpha")
        ready = await self.system.until(
            lambda: [m for m in self.system.answers("is ready") if m.thread_id != first],
            "readiness in another Thread",
        )
        second = ready[0].thread_id
        self.assertEqual((await self.system.status())["workers"][0]["slot"], "A")
        self.system.say("a new life", second)
        await self.system.answer("You said: a new life", second)
        self.assertEqual(self.system.prompts("nobody runs this"), [])

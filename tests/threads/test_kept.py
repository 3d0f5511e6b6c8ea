"""What does not take a worker's Thread away."""

from __future__ import annotations

from pitelegram.kernel.deferring import deferred
from tests.test_leader import LeaderCase, attached


class KeptTests(LeaderCase):
    """Deleting on quit is switched on, as it is by default."""

    @deferred
    async def test_crash_and_slow_return(self) -> None:
        """A lost connection and a goodbye leave Thread, slot and binding; it comes back to them."""
        first = attached()
        target = await self.join(first)
        key = first.link.registration["bindingKey"]
        before = self.leader.bindings.get(key)
        for number in range(3):
            follower = first if number == 0 else attached()
            if number:
                self.assertEqual(await self.join(follower), target)
            if number == 1:
                await follower.link.disconnect("quit", False)
            else:
                self.leader.registry.live(key).link.abort()
            await self.world.until(lambda: self.leader.registry.live(key) is None)
            await self.leader.janitor.round()
            self.assertEqual(self.leader.bindings.get(key), before)
        self.assertEqual(self.api.made("deleteForumTopic", "editForumTopic"), [])

"""Threads of attached workers that quit: deleted by proof, kept in every other case."""

from __future__ import annotations

import json

from pitelegram.errors import Refused
from pitelegram.kernel.deferring import deferred
from pitelegram.testing.botapi import FakeBotApi
from pitelegram.testing.bus import FakeBusFollower
from tests.test_leader import LeaderCase, attached

DELETE = "deleteForumTopic"


class QuitTests(LeaderCase):
    """A client of the bus that says goodbye; deleting on quit is switched on, as it is by default."""

    api: FakeBotApi

    @deferred
    async def joined(self) -> FakeBusFollower:
        """Register one whose process is said to live as long as C{alive} is set."""
        self.alive = True
        self.leader.inactivity._alive = lambda birth: self.alive
        follower = attached()
        self.target = await self.join(follower)
        self.key = follower.link.registration["bindingKey"]
        await self.world.until(lambda: not self.leader.outbox.live_bindings())
        return follower

    def thread(self) -> int | None:
        """The Thread of its binding."""
        found = self.leader.bindings.get(self.key)
        return None if found is None else found.thread_id

    @deferred
    async def test_lives_on_for_a_moment(self) -> None:
        """It is deleted when the process is gone, with the binding's Thread and not before."""
        follower = await self.joined()
        self.assertEqual(await follower.link.disconnect("quit", True), {"thread": "pending"})
        self.assertEqual(self.api.made(DELETE), [])
        self.alive = False
        await self.world.until(lambda: self.thread() is None)
        (call,) = self.api.made(DELETE)
        self.assertEqual(call.params["message_thread_id"], self.target.thread_id)

    @deferred
    async def test_gone_already(self) -> None:
        """A process that nobody needs to wait for."""
        follower = await self.joined()
        self.alive = False
        self.assertEqual(await follower.link.disconnect("quit", True), {"thread": "deleted"})
        self.assertIsNone(self.thread())

    @deferred
    async def test_last_answer(self) -> None:
        """What it said last is delivered first."""
        follower = await self.joined()
        self.alive = False
        last = {"method": "sendMessage", "params": {"text": "last words"}}
        delivery = {"kind": "final", "createdAtMs": 1, "calls": [last]}
        await follower.link.submit_delivery("d1", delivery)
        outcome = await follower.link.disconnect("quit", True)
        self.assertIn(outcome["thread"], ("pending", "deleted"))
        await self.world.until(lambda: self.thread() is None)
        methods = [call.method for call in self.api.calls]
        self.assertEqual(len(self.world.sent("last words")), 1)
        said = next(
            number
            for number, call in enumerate(self.api.calls)
            if call.params.get("text") == "last words"
        )
        self.assertLess(said, methods.index(DELETE))

    @deferred
    async def test_comes_back(self) -> None:
        """Who registers meanwhile keeps the Thread, also when it is lost without a goodbye then."""
        follower = await self.joined()
        await follower.link.disconnect("quit", True)
        again = attached()
        self.assertEqual(await self.join(again), self.target)
        self.leader.registry.live(self.key).link.abort()
        await self.world.until(lambda: self.leader.registry.live(self.key) is None)
        self.alive = False
        await self.world.until(lambda: not self.leader.leaving._timers)
        self.assertEqual((self.api.made(DELETE), self.thread()), ([], self.target.thread_id))

    @deferred
    async def test_kept(self) -> None:
        """Not asked for, no quit, or switched off."""
        for reason, delete, switch in (
            ("quit", False, True),
            ("disconnect", True, True),
            ("replaced", True, True),
            ("quit", True, False),
        ):
            follower = await self.joined()
            self.alive = False
            self.world._settings(
                {
                    "profiles": {"default": {"allowedUserId": self.target.chat_id}},
                    "threads": {"automaticCleanup": switch},
                }
            )
            outcome = await follower.link.disconnect(reason, delete)
            self.assertEqual(outcome, {"thread": "kept"}, (reason, delete, switch))
        self.assertEqual((self.api.made(DELETE), self.thread()), ([], self.target.thread_id))

    @deferred
    async def test_managed(self) -> None:
        """A managed worker's Thread is never deleted by a goodbye, whoever asks."""
        bindings = self.leader.bindings
        await bindings.ensure("spec-x", "managed", "/projects/x")
        await bindings.set_target("spec-x", 1, 2, None)
        self.assertEqual(await self.leader.leaving.quit("spec-x"), "kept")
        self.assertEqual(await self.leader.leaving.quit("ws-nobody"), "kept")
        self.assertEqual(self.api.made(DELETE), [])

    @deferred
    async def test_damaged_settings(self) -> None:
        """While the file cannot be understood nothing is deleted."""
        follower = await self.joined()
        self.alive = False
        self.world.paths.telegram_json.write_text("{" + json.dumps({"threads": 5}))
        self.assertEqual(await follower.link.disconnect("quit", True), {"thread": "kept"})
        self.assertEqual(self.api.made(DELETE), [])

    @deferred
    async def test_refused(self) -> None:
        """Telegram's no is not asked for again, and the next registration does not wait."""
        follower = await self.joined()
        self.alive = False
        self.api.script(DELETE, Refused(DELETE, 403, "no rights"))
        self.assertEqual(await follower.link.disconnect("quit", True), {"thread": "kept"})
        self.assertFalse(self.leader.cleanups.is_claimed(self.key))
        self.assertEqual(await self.join(attached()), self.target)

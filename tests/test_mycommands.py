"""The commands that Telegram lists: told once, again when they changed, and never spoilt by one."""

from __future__ import annotations

from random import Random

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import CertainlyUnsent, Refused, Uncertain
from pitelegram.leader.mycommands import LAST_DELAY, LISTED, MyCommands, legal
from pitelegram.store.leadership import Leadership
from pitelegram.testing.botapi import FakeBotApi
from pitelegram.testing.stores import leader_database

METHOD = "setMyCommands"


class Legal(SynchronousTestCase):
    """L{legal}."""

    def test_ours(self) -> None:
        """All of ours can be listed, in this order."""
        good, bad = legal(LISTED)
        names = [each["command"] for each in good]
        self.assertEqual(names, ["start", "compact", "next", "continue", "abort", "stop", "daemon"])
        self.assertEqual(bad, [])

    def test_illegal(self) -> None:
        """What Telegram would refuse is left out, and the rest stays."""
        listed = [
            ("ok", "fine"),
            ("Bad", "x"),
            ("with-dash", "x"),
            ("", "x"),
            ("x" * 33, "x"),
            ("ok", "again"),
            ("blank", " "),
            ("long", "x" * 257),
            ("line\n", "x"),
            ("ok_2", "fine"),
        ]
        good, bad = legal(listed)
        self.assertEqual([each["command"] for each in good], ["ok", "ok_2"])
        self.assertEqual(len(bad), 8)
        good, bad = legal([(f"c{number}", "x") for number in range(120)])
        self.assertEqual((len(good), len(bad)), (100, 20))


class Telling(SynchronousTestCase):
    """L{MyCommands}."""

    def setUp(self) -> None:
        """A store that outlives starts."""
        self.clock = Clock()
        self.database = leader_database(self.clock)
        self.leadership = Leadership(self.database)
        self.successResultOf(self.leadership.acquire("e1"))
        self.api = FakeBotApi()

    def start(self, listed: object = LISTED, bot: int = 1) -> MyCommands:
        """One start of a leader."""
        service = MyCommands(
            self.clock,
            Random(1),
            self.api,
            self.leadership,
            bot,
            listed,  # type: ignore[arg-type]
        )
        service.startService()
        self.addCleanup(lambda: service.running and service.stopService())
        return service

    def told(self) -> int:
        """How often Telegram was told."""
        return len(self.api.made(METHOD))

    def test_once(self) -> None:
        """For private chats; the next start does not tell it again, a change or another bot does."""
        self.start()
        (call,) = self.api.made(METHOD)
        self.assertEqual(call.params["scope"], {"type": "all_private_chats"})
        self.assertEqual(call.params["commands"][0]["description"], "🟢 Open menu / Pair bridge")
        self.start()
        self.assertEqual(self.told(), 1)
        self.start([("start", "other words")])
        self.assertEqual(self.told(), 2)
        self.start([("start", "other words")], bot=2)
        self.assertEqual(self.told(), 3)

    def test_again(self) -> None:
        """Without Telegram it is tried again, at the time that it asks for or less and less often."""
        self.api.script(
            METHOD,
            CertainlyUnsent(METHOD, 429, "wait", 100.0),
            CertainlyUnsent(METHOD, 0, "no network"),
            Uncertain(METHOD, 502, "bad gateway"),
        )
        self.start()
        self.clock.advance(99)
        self.assertEqual(self.told(), 1)
        for _ in range(3):
            self.clock.advance(LAST_DELAY)
        self.assertEqual(self.told(), 4)
        self.clock.advance(LAST_DELAY * 10)
        self.start()
        self.assertEqual(self.told(), 4)

    def test_refused(self) -> None:
        """A refusal is not tried again by this process, and is by the next."""
        self.api.script(METHOD, Refused(METHOD, 400, "BOT_COMMAND_INVALID"))
        self.start()
        self.clock.advance(LAST_DELAY * 10)
        self.assertEqual(self.told(), 1)
        self.start()
        self.assertEqual(self.told(), 2)

    def test_illegal_one(self) -> None:
        """It is left out and the others are told."""
        self.start([("ok", "x"), ("not-ok", "x")])
        (call,) = self.api.made(METHOD)
        self.assertEqual(call.params["commands"], [{"command": "ok", "description": "x"}])

    def test_stopped(self) -> None:
        """Stopping ends what is under way and what waits."""
        hanging: Deferred[bool] = Deferred()
        self.api.script(METHOD, hanging)
        self.start().stopService()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.api.script(METHOD, Uncertain(METHOD, 502, "x"))
        service = self.start()
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)
        service.stopService()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertIsNone(self.leadership.get_meta("my_commands"))

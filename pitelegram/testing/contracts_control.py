"""What every table of request ids must do; run for the fake and for the real one."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from pitelegram.kernel.deferring import deferred
from pitelegram.store.interfaces import ICommands


class CommandsContract:
    """Mix into a trial C{TestCase} that has C{make_commands}."""

    def make_commands(self) -> Deferred[Any]:
        """Return a Deferred of an empty table."""
        raise NotImplementedError

    @deferred
    async def test_provides_the_interface(self) -> None:
        """The table provides L{ICommands}."""
        verifyObject(ICommands, await self.make_commands())

    @deferred
    async def test_unknown_id(self) -> None:
        """An id that nobody used is not there."""
        commands = await self.make_commands()
        self.assertIsNone(commands.find("a"))

    @deferred
    async def test_reserve_once(self) -> None:
        """An id is reserved once; the second caller is told so and changes nothing."""
        commands = await self.make_commands()
        self.assertTrue(await commands.reserve("a", "f1"))
        self.assertFalse(await commands.reserve("a", "f2"))
        row = commands.find("a")
        self.assertEqual((row["fingerprint"], row["state"]), ("f1", "reserved"))
        self.assertIsNone(row["envelope"])

    @deferred
    async def test_life(self) -> None:
        """Reserved, started, finished: each state is found, and the envelope comes back equal."""
        commands = await self.make_commands()
        await commands.reserve("a", "f")
        await commands.send_started("a")
        self.assertEqual(commands.started(), ["a"])
        self.assertEqual(commands.find("a")["state"], "send_started")
        await commands.finish("a", "accepted", {"status": "accepted", "result": {"n": [1, "ü"]}})
        row = commands.find("a")
        self.assertEqual(row["state"], "accepted")
        self.assertEqual(row["envelope"], {"status": "accepted", "result": {"n": [1, "ü"]}})
        self.assertEqual(commands.started(), [])

    @deferred
    async def test_abandon_reserved_only(self) -> None:
        """A reserved row goes when it is abandoned; a started one stays."""
        commands = await self.make_commands()
        await commands.reserve("a", "f")
        await commands.abandon("a")
        self.assertIsNone(commands.find("a"))
        await commands.reserve("b", "f")
        await commands.send_started("b")
        await commands.abandon("b")
        self.assertEqual(commands.find("b")["state"], "send_started")

    @deferred
    async def test_ids_are_exact(self) -> None:
        """Ids differ by case and are not trimmed."""
        commands = await self.make_commands()
        await commands.reserve("Aa", "f")
        self.assertIsNone(commands.find("aa"))
        self.assertIsNone(commands.find("Aa "))

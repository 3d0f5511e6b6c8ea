"""What every store must do, run for each way a store can be opened.

A test class joins one of these with C{twisted.trial.unittest.TestCase} and provides
C{open(schema)}, which returns an opened database (a leader's with its epoch acquired).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.task import Clock
from zope.interface.verify import verifyObject

from pitelegram.errors import StoreError
from pitelegram.store.commands import Commands
from pitelegram.store.interfaces import ILeadership, ISpecs
from pitelegram.store.leadership import Leadership
from pitelegram.store.receipts import ICommands
from pitelegram.store.rows import Claim, Incoming
from pitelegram.store.specs import Specs


def incoming(update_id: int, **changes: Any) -> Incoming:
    """Return an update of the owner's private chat."""
    values: dict[str, Any] = {
        "update_id": update_id,
        "kind": "message",
        "chat_id": 7,
        "thread_id": 70,
        "message_id": 1000 + update_id,
        "callback_id": None,
        "body": b'{"update_id":%d}' % update_id,
    }
    return Incoming(**{**values, **changes})


def message(text: str) -> dict[str, Any]:
    """Return one call of a delivery."""
    return {"method": "sendMessage", "params": {"text": text}}


class StoreContract:
    """What all contracts share."""

    clock: Clock
    database: Any
    schema = "leader"
    open: Callable[[str], Any]

    async def refused(self, work: Any, kind: type[Exception] = StoreError) -> Exception:
        """Await C{work}, which must fail with exactly that kind; returns the error."""
        try:
            await work
        except kind as error:
            return error
        raise AssertionError(f"no {kind.__name__} was raised")


class LeadershipContract(StoreContract):
    """L{ILeadership}."""

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        assert verifyObject(ILeadership, Leadership(self.open("leader")))

    async def test_meta(self) -> None:
        """A fact is there after it was stored, and a second value replaces it."""
        leadership = Leadership(self.open("leader"))
        assert leadership.get_meta("host_id") is None
        await leadership.set_meta("host_id", "a")
        await leadership.set_meta("host_id", "b")
        assert leadership.get_meta("host_id") == "b"

    async def test_kept_meta(self) -> None:
        """A fact that is made once stays, and everybody who asks at the same time gets that one."""
        leadership = Leadership(self.open("leader"))
        first, second = leadership.keep_meta("host_id", "a"), leadership.keep_meta("host_id", "b")
        assert (await first, await second) == ("a", "a")
        assert await leadership.keep_meta("host_id", "c") == "a"
        assert leadership.get_meta("host_id") == "a"

    async def test_audit(self) -> None:
        """An audit line is appended; an actor that is not known is refused."""
        database = self.open("leader")
        leadership = Leadership(database)
        await leadership.audit("spec:x", "operator", "start", "asked")
        await self.refused(leadership.audit("spec:x", "nobody", "start", "asked"))
        rows = database.read("SELECT subject, actor, change, reason FROM audit")
        assert [tuple(row) for row in rows] == [("spec:x", "operator", "start", "asked")]

    async def test_history_in_batches(self) -> None:
        """Old lines go, the oldest first, so many at a time."""
        database = self.open("leader")
        leadership = Leadership(database)
        for number in range(3):
            await leadership.audit(f"spec:{number}", "daemon", "start", "asked")
        later = database.now_ms() + 1
        assert await leadership.forget_history(later, 2) == 2
        assert [row["subject"] for row in database.read("SELECT subject FROM audit")] == ["spec:2"]
        assert await leadership.forget_history(later, 2) == 1
        assert await leadership.forget_history(later, 2) == 0


class SpecsContract(StoreContract):
    """L{ISpecs}."""

    async def specs(self) -> Specs:
        """Return a store with one stopped spec C{s1}."""
        specs = Specs(self.open("leader"))
        await specs.create("s1", "app", "/home/u/app")
        return specs

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        assert verifyObject(ISpecs, await self.specs())

    async def test_create_and_find(self) -> None:
        """A spec is stopped at first and is found by id, name and directory; both are unique."""
        specs = await self.specs()
        spec = specs.get("s1")
        assert spec is not None
        assert (spec.desired, spec.trust, spec.restart) == ("stopped", "approve", "on-failure")
        assert specs.by_name("app") == specs.by_directory("/home/u/app") == spec
        assert specs.by_name("x") is None
        await self.refused(specs.create("s2", "app", "/home/u/other"))
        await self.refused(specs.create("s2", "app2", "/home/u/app"))
        await specs.create("s0", "aaa", "/home/u/aaa")
        assert [each.name for each in specs.list()] == ["aaa", "app"]

    async def test_wish_and_session(self) -> None:
        """Start, stop and session are what was stored last; an unknown spec is an error."""
        specs = await self.specs()
        await specs.want("s1", "running", "slot-1")
        await specs.set_session("s1", "sid", "/f.jsonl", 4)
        spec = specs.get("s1")
        assert spec is not None
        assert (spec.desired, spec.slot_id) == ("running", "slot-1")
        assert (spec.session_id, spec.session_file, spec.session_entries) == ("sid", "/f.jsonl", 4)
        await specs.want("s1", "stopped", None)
        assert specs.list()[0].slot_id is None
        await self.refused(specs.want("nobody", "running", "x"))

    async def test_spawn(self) -> None:
        """A spawn goes from its intent over the process and the registration to its end."""
        specs = await self.specs()
        await specs.intend("p1", "s1", b"secret")
        spawn = specs.live_spawn("s1")
        assert spawn is not None
        assert (spawn.state, spawn.pid, spawn.credential) == ("intended", None, b"secret")
        await specs.made("p1", 10, "10:start:1")
        await specs.registered("p1", 11, "11:start:1")
        await specs.made("p1", 10, "10:start:1")
        await specs.pi_seen("p1", 12, "12:start:1")
        spawn = specs.live_spawn("s1")
        assert spawn is not None
        assert (spawn.state, spawn.pid, spawn.pi_pid) == ("registered", 11, 12)
        await specs.ended("p1", "signal 9")
        await specs.ended("p1", "later news")
        assert specs.live_spawn("s1") is None
        await self.refused(specs.registered("p1", 11, "11:start:1"))
        row = self.database.read("SELECT exit, credential FROM spawns")[0]
        assert tuple(row) == ("signal 9", b"")

    async def test_newest_spawn(self) -> None:
        """The newest spawn that has not ended counts, also within one millisecond."""
        specs = await self.specs()
        await specs.intend("p1", "s1", b"1")
        await specs.intend("p2", "s1", b"2")
        assert [each.spawn_id for each in specs.live_spawns("s1")] == ["p2", "p1"]
        await specs.ended("p2", "0")
        spawn = specs.live_spawn("s1")
        assert spawn is not None and spawn.spawn_id == "p1"

    async def test_forget(self) -> None:
        """A forgotten spec takes its spawns along."""
        specs = await self.specs()
        await specs.intend("p1", "s1", b"1")
        await specs.forget("s1")
        assert (specs.list(), specs.live_spawns("s1")) == ([], [])
        await self.refused(specs.intend("p2", "s1", b"1"))


def a_claim(request_id: str = "r", text: str = "hi", until_ms: int = 30_000, **more: str) -> Claim:
    """Return a claim of owner C{one}."""
    facts = {
        "action": "worker.prompt",
        "canonical": text,
        "fingerprint": f"f-{text}",
        "selector_proof": "v1:x",
        "subject": "spec:1",
        "owner_hash": "one",
    }
    return Claim(request_id=request_id, owner_until_ms=until_ms, **{**facts, **more})


class CommandsContract(StoreContract):
    """L{ICommands}."""

    def commands(self) -> Commands:
        """Return receipts in a fresh store."""
        return Commands(self.open("leader"), "host")

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        assert verifyObject(ICommands, self.commands())

    async def test_life(self) -> None:
        """An id is taken once, goes over C{send_started} to one outcome, and keeps it."""
        commands = self.commands()
        assert commands.find("r") is None
        claim = a_claim(until_ms=2**60)
        assert await commands.reserve(claim) is True
        assert await commands.reserve(a_claim(text="other", until_ms=2**60)) is False
        assert await commands.finish("r", "accepted", {"ok": True}) is False
        assert await commands.send_started("r", claim.fingerprint, "another") is False
        assert await commands.send_started("r", "f-other", "one") is False
        assert await commands.send_started("r", claim.fingerprint, "one") is True
        assert [row.request_id for row in commands.started()] == ["r"]
        assert await commands.abandon("r", "one") is False
        assert await commands.finish("r", "accepted", {"ok": True}) is True
        found = commands.find("r")
        assert found is not None
        assert (found.state, found.envelope, found.owner_hash) == ("accepted", {"ok": True}, "")
        assert (found.canonical, found.subject, found.canonical_version) == ("hi", "spec:1", 1)
        assert await commands.finish("r", "rejected", {"ok": False}) is False
        assert await commands.send_started("r", claim.fingerprint, "one") is False
        assert await commands.reserve(claim) is False
        assert commands.started() == []

    async def test_abandon(self) -> None:
        """A reserved id that sent nothing is free again, by the word of its owner."""
        commands = self.commands()
        await commands.reserve(a_claim())
        assert await commands.abandon("r", "another") is False
        assert await commands.abandon("r", "one") is True
        assert await commands.reserve(a_claim(text="other")) is True

    async def test_lease(self) -> None:
        """After its lease a reservation goes over to one other owner of the same command."""
        commands = self.commands()
        await commands.reserve(a_claim(until_ms=2**60))
        assert await commands.reserve(a_claim(owner_hash="two", until_ms=2**60)) is False
        await commands.abandon("r", "one")
        await commands.reserve(a_claim(until_ms=0))
        assert await commands.reserve(a_claim(text="other", owner_hash="two")) is False
        assert await commands.reserve(a_claim(owner_hash="two", until_ms=2**60)) is True
        assert await commands.reserve(a_claim(owner_hash="three", until_ms=2**60)) is False
        assert await commands.send_started("r", "f-hi", "one") is False
        assert await commands.send_started("r", "f-hi", "two") is True

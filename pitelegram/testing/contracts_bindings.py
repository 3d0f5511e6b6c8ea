"""What every store of bindings must do; see L{pitelegram.testing.contracts_store}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from pitelegram.store.bindings import Bindings
from pitelegram.store.interfaces import IBindings
from pitelegram.testing.contracts_store import StoreContract


class BindingsContract(StoreContract):
    """L{IBindings}."""

    async def bindings(self) -> Bindings:
        """Return a store with the bindings C{a} and C{b}."""
        bindings = Bindings(self.open("leader"))
        await bindings.ensure("a", "managed", "/a")
        await bindings.ensure("b", "managed", "/b")
        return bindings

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        assert verifyObject(IBindings, await self.bindings())

    async def test_ensure(self) -> None:
        """A row is made once; a second call finds it unchanged."""
        bindings = await self.bindings()
        again = await bindings.ensure("a", "attached", "/elsewhere")
        assert (again.kind, again.directory, again.target) == ("managed", "/a", None)
        assert [each.binding_key for each in bindings.list()] == ["a", "b"]
        assert bindings.get("zzz") is None

    async def test_set_target(self) -> None:
        """A target changes only from the expected one."""
        bindings = await self.bindings()
        assert await bindings.set_target("a", 7, 70, None) is True
        assert await bindings.set_target("a", 7, 71, None) is False
        assert await bindings.set_target("a", 7, 71, (7, 70)) is True
        assert await bindings.set_target("nobody", 7, 72, None) is False
        assert bindings.by_target(7, 70) is None
        found = bindings.by_target(7, 71)
        assert found is not None and found.binding_key == "a"
        assert await bindings.clear_target("a", (7, 70)) is False
        assert await bindings.clear_target("a", (7, 71)) is True
        row = bindings.get("a")
        assert row is not None and row.target is None

    async def test_target_is_taken(self) -> None:
        """A target has one owner: the last one to whom it was given (threadless ones too)."""
        bindings = await self.bindings()
        for thread in (70, None):
            first = bindings.get("a")
            assert first is not None
            assert await bindings.set_target("a", 7, thread, None)
            second = bindings.get("b")
            assert second is not None
            old = None if second.target is None else (7, second.thread_id)
            assert await bindings.set_target("b", 7, thread, old)
            first = bindings.get("a")
            assert first is not None and first.target is None
            owner = bindings.by_target(7, thread)
            assert owner is not None and owner.binding_key == "b"

    async def test_slots(self) -> None:
        """A slot belongs to one binding; refusing it leaves nothing half done."""
        bindings = await self.bindings()
        await bindings.assign_slot("a", "A", "Amber")
        await self.refused(bindings.assign_slot("b", "A", "Amber"))
        await bindings.set_title("a", "⏳ app")
        row = bindings.get("a")
        assert row is not None
        assert (row.slot, row.thread_name, row.title) == ("A", "Amber", "⏳ app")
        await bindings.forget("a")
        await bindings.assign_slot("b", "A", "Amber")
        await self.refused(bindings.set_title("a", "x"))

    async def test_worker(self) -> None:
        """The newest registration of a binding is kept."""
        bindings = await self.bindings()
        assert bindings.last_worker("a") is None
        await bindings.record_worker("a", "w1", "managed", 5, "5:start:1", "g1", "5:1")
        await bindings.record_worker("a", "w2", "managed", 6, "6:start:1", "g2", "6:1")
        worker = bindings.last_worker("a")
        assert worker is not None
        assert (worker["worker_id"], worker["pid"], worker["generation"]) == ("w2", 6, "g2")

    async def test_provision(self) -> None:
        """The intent stands until it is ended, with the Thread or without one."""
        bindings = await self.bindings()
        await bindings.begin_provision("a", 7, "app")
        await bindings.mark_ambiguous("a")
        (intent,) = bindings.provisions()
        assert (intent["binding_key"], intent["state"]) == ("a", "ambiguous")
        await bindings.end_provision("a", 70)
        row = bindings.get("a")
        assert row is not None
        assert ((row.chat_id, row.thread_id), row.title) == ((7, 70), "app")
        assert bindings.provisions() == []
        await self.refused(bindings.end_provision("a", 71))
        await bindings.begin_provision("b", 7, "b")
        await bindings.end_provision("b", None)
        other = bindings.get("b")
        assert bindings.provisions() == [] and other is not None and other.target is None

    async def test_messages(self) -> None:
        """Whose message it is is remembered until it is forgotten by age."""
        bindings = await self.bindings()
        await bindings.remember_messages(7, [1, 2], "a", True)
        await bindings.remember_messages(7, [2], "b", False)
        assert bindings.message_owner(7, 1) == ("a", True)
        assert bindings.message_owner(7, 2) == ("b", False)
        assert bindings.message_owner(8, 1) is None
        self.clock.advance(10)
        assert await bindings.forget_messages(5000, 10) == 2
        assert bindings.message_owner(7, 1) is None

    async def test_names_follow_the_thread(self) -> None:
        """Names, titles and the user's closing are kept for the Thread that they were for only."""
        bindings = await self.bindings()
        await bindings.set_target("a", 7, 70, None)
        await bindings.set_user_title("a", (7, 70), "Mine", True)
        assert await bindings.set_manual_name("a", (7, 71), "Other", "Other") is False
        assert await bindings.set_manual_name("a", (7, 70), "Navigator", "Navigator") is True
        await bindings.set_title("a", "late", (7, 71))
        assert await bindings.set_closed("a", (7, 71), True) is False
        assert await bindings.set_closed("a", (7, 70), True) is True
        row = bindings.get("a")
        assert row is not None
        assert (row.title, row.manual_name, row.user_title) == ("Navigator", "Navigator", None)
        assert (row.closed, row.suffixed) == (True, False)
        await bindings.set_target("a", 7, 71, (7, 70))
        row = bindings.get("a")
        assert row is not None
        assert (row.title, row.manual_name, row.closed) == (None, "Navigator", False)

    async def test_directory(self) -> None:
        """The directory changes from the expected one only; a shown letter stays shown."""
        bindings = await self.bindings()
        await bindings.set_suffixed(["a", "nobody"])
        assert await bindings.set_directory("a", "/b", "/c") is False
        assert await bindings.set_directory("a", "/a", "/c") is True
        assert await bindings.set_directory("nobody", None, "/c") is False
        row, other = bindings.get("a"), bindings.get("b")
        assert row is not None and other is not None
        assert (row.directory, row.suffixed, other.suffixed) == ("/c", True, False)

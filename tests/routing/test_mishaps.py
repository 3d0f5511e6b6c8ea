"""What the daemon cannot do at once is not lost, not doubled, and no traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import Fenced, Refused, StoreError, StoreFull
from pitelegram.kernel.files import write_private
from pitelegram.routing.gate import Sort, look
from pitelegram.routing.pairing import Pairing
from tests.routing.support import BOT, OWNER
from tests.routing.test_chooser import LOST, ChooserCase
from tests.routing.test_router import RouterCase

NO_THREAD = Refused("sendMessage", 400, "Bad Request: message thread not found")


class Dying:
    """The store of a leader that dies when a case ends."""

    def __init__(self, choosers: Any) -> None:
        self._choosers = choosers
        self.ends = 0

    def __getattr__(self, name: str) -> Any:
        """Everything else is done."""
        return getattr(self._choosers, name)

    def end(self, *_: Any) -> Deferred[None]:
        """Nothing is heard any more."""
        self.ends += 1
        return Deferred()


class Failing:
    """A journal whose next claims fail as the test says."""

    def __init__(self, journal: Any, *errors: StoreError) -> None:
        self._journal = journal
        self.errors = list(errors)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the journal's."""
        return getattr(self._journal, name)

    def claim_callback(self, callback_id: str) -> Deferred[bool]:
        """See L{IJournal.claim_callback}."""
        if self.errors:
            return fail(self.errors.pop(0))
        claiming: Deferred[bool] = self._journal.claim_callback(callback_id)
        return claiming


class ServedLaterTests(RouterCase):
    """The daemon's own updates, when store or Telegram do not let them be served."""

    def test_press_while_the_disk_is_full(self) -> None:
        """It is executed once there is space again, once, with no traceback."""
        self.router.journal = Failing(self.journal, *[StoreFull("full")] * 6)
        self.accept(self.callback(50, "d:m", thread=None))
        self.assertEqual((self.states(), self.daemon.handled), (["pending"], []))
        self.clock.pump([1.0] * 130)
        self.assertEqual((self.states(), len(self.daemon.handled)), (["settled"], 1))
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_press_of_another_leader(self) -> None:
        """Where another process leads, the press is left to it as it is stored."""
        self.router.journal = Failing(self.journal, Fenced("newer"))
        self.accept(self.callback(50, "d:m", thread=None))
        self.clock.advance(100)
        self.assertEqual((self.states(), self.daemon.handled), (["pending"], []))
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_command_that_telegram_holds_up(self) -> None:
        """A command whose answer a long flood limit holds up is served anew, with no traceback."""
        self.daemon.answer = Deferred()
        self.accept(self.message(None, "/daemon"))
        self.clock.advance(121)
        self.assertEqual(self.states(), ["pending"])
        self.daemon.answer = None
        self.clock.advance(2)
        self.assertEqual((self.states(), len(self.daemon.handled)), (["settled"], 2))
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_press_that_telegram_holds_up(self) -> None:
        """A press is not executed a second time."""
        self.daemon.answer = Deferred()
        self.accept(self.callback(50, "d:m", thread=None))
        self.clock.advance(121)
        self.clock.advance(2)
        self.assertEqual((self.states(), len(self.daemon.handled)), (["settled"], 1))
        self.assertEqual(self.flushLoggedErrors(), [])


class DroppedTests(ChooserCase):
    """Messages in a Thread that is gone."""

    def test_told_before_they_go(self) -> None:
        """Their loss is told before they settle: killed in between, it is told, and once."""
        self.follow("a")
        dying: Any = Dying(self.choosers)
        self.desk.choosing.store = dying
        self.api.script("sendMessage", *[NO_THREAD] * 3)
        self.accept(self.message(LOST, "precious"))
        self.clock.pump([1.0] * 60)
        self.assertEqual((dying.ends, self.states()), (1, ["held"]))
        (told,) = self.notices.posted
        self.assertIn("1 messages in it were dropped", told[1])


class CrowdedTests(ChooserCase):
    """Where edits are scarce."""

    def test_dead_buttons(self) -> None:
        """However often they are pressed, they use up one edit, and questions go on being asked."""
        self.follow("a")
        for number in range(200):
            self.accept(self.callback(4000 + number % 2, "reroute:x:y", f"q{number}", LOST))
        self.accept(self.message(LOST, "one"))
        self.clock.pump([1.0] * 10)
        self.assertEqual(len(self.asked()), 1)
        self.choose("✖️ Dismiss")
        self.clock.pump([1.0] * 10)
        self.assertIn("Dismissed", self.api.made("editMessageText")[-1].params["text"])
        self.assertLess(len(self.api.made("editMessageReplyMarkup")), 20)
        self.assertEqual(self.gate.blocked_for(OWNER), 0.0)


class FormerOwnerTests(ChooserCase):
    """What the one before wrote, and nobody served in time."""

    def replace(self) -> None:
        """The daemon is killed, somebody else becomes the owner, and it starts again."""
        self.owner.owner_id = OWNER + 1
        self.restart()
        self.clock.pump([1.0] * 30)

    def test_press(self) -> None:
        """It is not executed for the former owner."""
        self.router.journal = Failing(self.journal, StoreFull("full"))  # type: ignore[assignment]
        self.accept(self.callback(50, "d:stop", thread=None))
        self.replace()
        self.assertEqual((self.states(), self.daemon.handled), (["settled"], []))

    def test_choice(self) -> None:
        """Messages that wait for his choice do not wait for ever, and reach nobody."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"), self.command("/compact"))
        self.assertEqual(self.states(), ["held", "held"])
        self.replace()
        self.assertEqual((self.states(), self.choosers.all()), (["settled", "settled"], []))
        self.assertEqual((self.desk.problems(), self.texts(link)), ([], []))


class HostileTests(SynchronousTestCase):
    """What is no update of Telegram's."""

    def press(self, **changes: Any) -> dict[str, Any]:
        """A press of the owner."""
        chat = {"id": OWNER, "type": "private"}
        query = {"id": "q", "from": {"id": OWNER}, "data": "ptd:m"}
        query |= {"message": {"message_id": 50, "chat": chat, **changes.pop("message", {})}}
        return {"update_id": 1, "callback_query": {**query, **changes}}

    def test_nameless(self) -> None:
        """A press without an id could be executed twice, and one of no message cannot be shown."""
        self.assertIs(look(self.press(), OWNER, BOT).sort, Sort.ADMITTED)
        for odd in (
            self.press(id=None),
            self.press(id=7),
            self.press(message={"message_id": None}),
        ):
            self.assertIs(look(odd, OWNER, BOT).sort, Sort.MALFORMED)
        for kind in ("message", "edited_message"):
            content = {"from": {"id": OWNER}, "chat": {"id": OWNER, "type": "private"}}
            odd = {"update_id": 1, kind: content}
            self.assertIs(look(odd, OWNER, BOT).sort, Sort.MALFORMED)

    def test_pairing_file_of_another_hand(self) -> None:
        """A pairing file with anything in it lets nobody in, and stops no batch of updates."""
        path = Path(self.mktemp()).resolve()
        pairing = Pairing(path, lambda: 1.0, lambda: 1.0)
        for digest in ("é", "", "\ud800", "x" * 64):
            record = {"version": 1, "sha256": digest, "expiresAtMs": 10**15}
            write_private(path, json.dumps(record).encode())
            self.assertFalse(pairing.attempt(1, "A" * 20), digest)

"""Updates of odd shapes, from the owner and from strangers."""

from __future__ import annotations

from random import Random
from typing import Any

from pitelegram.routing.gate import Sort, look
from tests.fuzz.test_bus import crooked
from tests.panel.test_panel import PanelCase
from tests.routing.support import BOT, OWNER, RoutingCase

SEED = 20_261_203
UPDATES = 4000
BATCH = 20
STRANGER = 666
MARK = "from a stranger"

PRESSES = (
    "d:1",
    "m",
    "w",
    "t",
    "b",
    "z:alpha",
    "y:id-alpha",
    "d:1:2",
    "g:x:0",
    "tx:op1",
    "tf:x",
    "reroute:x:y",
    "reroutenew:::",
    "rerouteclean",
    "",
)
TEXTS = ("do it", "/daemon", "/start", "/start ABCDEFGH", "/attach alpha", "/workers stop x", "")


def an_update(random: Random, number: int, sender: int, text: str | None = None) -> dict[str, Any]:
    """Return a right update of any kind."""
    person = {"id": sender, "is_bot": False, "first_name": "x"}
    chat = {"id": sender, "type": "private"}
    thread = random.choice((11, 12, 99, None))
    message = {"message_id": number, "chat": chat, "message_thread_id": thread, "date": 1}
    message |= {"text": text or random.choice(TEXTS)}
    query = {"id": f"q{number}", "data": text or random.choice(PRESSES), "chat_instance": "1"}
    member = {"status": "member", "user": {"id": BOT, "is_bot": True}}
    kinds = {
        "message": {**message, "from": person},
        "edited_message": {**message, "from": person, "edit_date": 2},
        "callback_query": {**query, "from": person, "message": {**message, "message_id": 50}},
        "message_reaction": {
            **{"chat": chat, "user": person, "message_id": 50, "old_reaction": []},
            "new_reaction": [{"type": "emoji", "emoji": text or "👍"}],
        },
        "my_chat_member": {"chat": chat, "from": person, "new_chat_member": member},
        "poll": {"id": "1"},
    }
    kind = random.choice(list(kinds))
    return {"update_id": number, kind: kinds[kind]}


def odd(random: Random, update: dict[str, Any]) -> Any:
    """Return the update with up to three parts exchanged; its number stays, most often."""
    changed: Any = update
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        changed = crooked(random, changed)
        if not isinstance(changed, dict):
            return changed
    if random.random() < 0.9:
        changed["update_id"] = update["update_id"]
    return changed


class AdmissionTests(RoutingCase):
    """Admission and router: no crash, and no effect from anybody but the owner."""

    def setUp(self) -> None:
        """Two workers that take everything."""
        super().setUp()
        self.router.startService()
        self.addCleanup(lambda: self.successResultOf(self.router.stopService()))
        self.links = [self.follow("a", automatic=True), self.follow("b", automatic=True)]
        self.random = Random(SEED)

    def feed(self, sender: int, text: str | None = None) -> None:
        """Four thousand updates in batches."""
        number = 1
        for _ in range(UPDATES // BATCH):
            batch = []
            for _ in range(BATCH):
                number += 1
                batch.append(odd(self.random, an_update(self.random, number, sender, text)))
            self.successResultOf(self.admission.accept(batch, number + 1))
            self.clock.advance(0.1)

    def test_owner(self) -> None:
        """Whatever stands in the owner's updates: each that is admitted is settled or visible."""
        self.feed(OWNER)
        rows = self.rows()
        self.assertGreater(len(rows), UPDATES // 10)
        self.assertGreater(sum(len(link.forwards) for link in self.links), UPDATES // 20)
        self.assertEqual({row["chat_id"] for row in rows} - {OWNER}, set())
        self.assertLessEqual(set(self.states()), {"settled", "held", "failed", "retry_wait"})
        self.assertEqual({place.chat_id for place, _ in self.replies} - {OWNER}, set())
        self.assertGreater(self.admission.counters["malformed"], UPDATES // 20)
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_strangers(self) -> None:
        """A stranger's updates, as odd as they may be, are never stored, shown or answered."""
        self.feed(STRANGER, MARK)
        self.assertEqual(self.rows(), [])
        self.assertEqual([link.forwards for link in self.links], [[], []])
        self.assertEqual((self.daemon.handled, self.replies, self.api.calls), ([], [], []))
        self.assertEqual((self.owner.owner_id, self.owner.blocks), (OWNER, []))
        self.assertEqual(self.owner.services, [])
        self.assertGreater(self.admission.counters["strangers"], UPDATES // 3)
        self.assertEqual(self.flushLoggedErrors(), [])


class PanelTests(PanelCase):
    """The panel bears everything that the admission lets through."""

    def test_owner(self) -> None:
        """Each is handled without an error, and nothing is sent to another chat."""
        self.successResultOf(self.bindings.remember_messages(OWNER, [50], "daemon", True))
        random = Random(SEED)
        handled = 0
        for number in range(2, 2 * UPDATES):
            update = odd(random, an_update(random, number, OWNER))
            seen = look(update, OWNER, BOT)
            if seen.sort is not Sort.ADMITTED or seen.kind is None:
                continue
            if self.panel.wants(seen.kind, update, None):
                self.successResultOf(self.panel.handle(seen.kind, update))
                handled += 1
        self.assertGreater(handled, UPDATES // 10)
        chats = {call.params["chat_id"] for call in self.api.calls if "chat_id" in call.params}
        self.assertEqual(chats - {OWNER}, set())
        self.assertEqual(self.flushLoggedErrors(), [])

"""Whose updates are taken, and how somebody becomes the owner."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram import errors
from pitelegram.botapi.interfaces import IUpdateSink
from pitelegram.ids import UPDATE_KINDS
from pitelegram.kernel import jsonio
from pitelegram.routing.gate import Sort, look
from pitelegram.routing.pairing import LIFE, SHUT_OUT, TRIES, Pairing
from tests.routing.support import BOT, OWNER, RoutingCase

STRANGER = 666


class AdmissionCase(RoutingCase):
    """With a router that is running."""

    def setUp(self) -> None:
        """Start the router."""
        super().setUp()
        self.router.startService()
        self.addCleanup(lambda: self.successResultOf(self.router.stopService()))

    def foreign(self, update: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """The same update with other members in its content."""
        (kind,) = [key for key in update if key != "update_id"]
        return {"update_id": update["update_id"], kind: {**update[kind], **changes}}

    def assert_dropped(self, update: Any, counter: str = "strangers") -> None:
        """It leaves nothing but a count, and the cursor moves."""
        before = self.admission.counters[counter]
        self.accept(update)
        self.assertEqual(self.rows(), [])
        self.assertEqual(self.admission.counters[counter], before + 1)
        self.assertEqual(self.daemon.handled, [])
        self.assertEqual(self.replies, [])


class GateTests(AdmissionCase):
    """Only what the owner did in his private chat."""

    def test_interface(self) -> None:
        """It is the long poll's sink."""
        verifyObject(IUpdateSink, self.admission)

    def test_owner(self) -> None:
        """The owner's updates of each kind are stored whole, with the cursor."""
        edit = {"update_id": next(self.update_ids), "edited_message": self.message()["message"]}
        updates = [self.message(future={"a": 1}), edit, self.callback(3, "x"), self.reaction(4)]
        self.accept(*updates)
        rows = self.rows()
        self.assertEqual([jsonio.loads(row["body"]) for row in rows[:3]], updates[:3])
        self.assertEqual(
            [(row["kind"], row["thread_id"]) for row in rows],
            [
                ("message", 11),
                ("edited_message", 11),
                ("callback_query", 11),
                ("message_reaction", None),
            ],
        )
        self.assertEqual(rows[2]["callback_id"], "cb")
        self.assertEqual(self.admission.next_offset(), updates[-1]["update_id"] + 1)

    def test_strangers(self) -> None:
        """A stranger's message, edit, callback and reaction leave no row and no answer."""
        stranger = {"id": STRANGER, "is_bot": False}
        chat = {"id": STRANGER, "type": "private"}
        self.assert_dropped(self.foreign(self.message(), **{"from": stranger, "chat": chat}))
        edit = {"update_id": next(self.update_ids), "edited_message": self.message()["message"]}
        self.assert_dropped(self.foreign(edit, **{"from": stranger, "chat": chat}))
        callback = self.callback(1, "d:stop")
        self.assert_dropped(self.foreign(callback, **{"from": stranger}))
        theirs = {"message_id": 1, "chat": chat}
        self.assert_dropped(self.foreign(callback, **{"from": stranger, "message": theirs}))
        self.assert_dropped(self.foreign(self.reaction(1), user=stranger, chat=chat))

    def test_owner_elsewhere(self) -> None:
        """The owner's own updates in a group, a channel or another chat are dropped."""
        for chat in (
            {"id": -100, "type": "supergroup"},
            {"id": -5, "type": "group"},
            {"id": OWNER, "type": "channel"},
            {"id": STRANGER, "type": "private"},
        ):
            self.assert_dropped(self.foreign(self.message(), chat=chat))
            self.assert_dropped(self.foreign(self.reaction(1), chat=chat))
            message = {"message_id": 1, "chat": chat}
            self.assert_dropped(self.foreign(self.callback(1, "d:x"), message=message))
        inline = {**self.callback(1, "d:x")}
        del inline["callback_query"]["message"]
        inline["callback_query"]["inline_message_id"] = "x"
        self.assert_dropped(inline)

    def test_guests(self) -> None:
        """Questions from chats that the bot is a guest in are not asked for, and dropped if they come."""
        asked_for = "message edited_message callback_query message_reaction my_chat_member"
        self.assertEqual(UPDATE_KINDS, tuple(asked_for.split()))
        for kind in ("guest_message", "business_message", "channel_post"):
            update = {"update_id": next(self.update_ids), kind: self.message()["message"]}
            self.assert_dropped(update, "unknown")

    def test_others_in_the_owners_name(self) -> None:
        """Bots are not the owner, whatever id they show."""
        self.assert_dropped(self.foreign(self.message(), **{"from": {"id": OWNER, "is_bot": True}}))
        self.assert_dropped(self.foreign(self.message(), **{"from": {"id": 5, "is_bot": True}}))

    def test_service_messages(self) -> None:
        """They are counted apart and passed on, but never stored; a stranger's are a stranger's."""
        own = self.foreign(
            self.message(),
            **{"from": {"id": BOT, "is_bot": True}, "forum_topic_created": {"name": "x"}},
        )
        self.assert_dropped(own, "service")
        self.assertEqual(self.owner.services, [own["message"]])
        owners = self.foreign(self.message(), forum_topic_edited={"name": "x"})
        self.assert_dropped(owners, "service")
        self.assertEqual(self.owner.services, [own["message"], owners["message"]])
        strangers = self.foreign(self.message(), **{**own["message"], "from": {"id": 5}})
        self.assert_dropped(strangers)
        self.assertEqual(len(self.owner.services), 2)

    def test_malformed(self) -> None:
        """Nothing that Telegram might send stops the poll; the cursor moves over it."""
        for update in (
            {"update_id": 1, "message": None},
            {"update_id": 2, "message": []},
            {"update_id": 3, "message": {}},
            {
                "update_id": 4,
                "message": {"from": {"id": "1"}, "chat": {"id": 1, "type": "private"}},
            },
            {"update_id": 5, "callback_query": {"from": {"id": OWNER}}},
            {"update_id": 6, "message_reaction": {"chat": {"id": OWNER, "type": "private"}}},
            {**self.foreign(self.message(), message_thread_id=2**70), "update_id": 7},
        ):
            self.assert_dropped(update, "malformed")
        for update in ({"no": "id"}, 5, None, "x", {"update_id": True}, {"update_id": 2**64}):
            before = self.admission.counters["malformed"]
            self.successResultOf(self.admission.accept([update], 10))  # type: ignore[list-item]
            self.assertEqual(self.admission.counters["malformed"], before + 1)
        deep = self.message(x=jsonio.loads(b"[" * 300 + b"]" * 300))["message"]
        self.assert_dropped({"update_id": 8, "message": deep}, "malformed")
        huge = self.message(x=["\ud800", 2**80])["message"]
        self.assert_dropped({"update_id": 9, "message": huge}, "malformed")
        self.assert_dropped({"update_id": 9, "purchased_paid_media": {}}, "unknown")
        self.assertEqual(self.admission.next_offset(), 10)

    def test_membership(self) -> None:
        """The owner's blocking of the bot is reported after the commit; a stranger's is not."""

        def change(user: int, status: str) -> dict[str, Any]:
            return {
                "update_id": next(self.update_ids),
                "my_chat_member": {
                    "chat": {"id": user, "type": "private"},
                    "from": {"id": user, "is_bot": False},
                    "new_chat_member": {"status": status},
                },
            }

        self.accept(change(OWNER, "kicked"), change(OWNER, "member"), change(STRANGER, "kicked"))
        self.assertEqual(self.owner.blocks, [True, False])
        self.assertEqual(self.rows(), [])

    def test_one_commit(self) -> None:
        """When nothing can be stored the poll hears of it, and the cursor stands."""
        self.accept(self.message())
        cursor = self.admission.next_offset()
        self.successResultOf(self.database.write("full", lambda c: c.execute("DROP TABLE journal")))
        failing = self.admission.accept([self.message()], 10**6)
        self.failureResultOf(failing)
        self.assertEqual(self.admission.next_offset(), cursor)

    def test_duplicates(self) -> None:
        """A batch that comes twice is taken once."""
        link = self.follow()
        update = self.message()
        self.accept(update)
        self.accept(update)
        self.assertEqual(len(self.rows()), 1)
        self.assertEqual(len(link.forwards), 1)

    @given(
        update=st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "update_id",
                            "message",
                            "from",
                            "chat",
                            "id",
                            "type",
                            "callback_query",
                            "user",
                        ]
                    ),
                    inner,
                    max_size=5,
                )
            ),
            max_leaves=12,
        )
    )
    @settings(max_examples=200, deadline=None)
    def test_any_shape(self, update: Any) -> None:
        """No shape of an update raises, and none that is not the owner's is admitted."""
        seen = look(update, OWNER, BOT)
        self.assertIn(seen.sort, list(Sort))
        self.assertTrue(seen.row is None or seen.row.chat_id == OWNER)


class StartTests(AdmissionCase):
    """C{/start} and pairing."""

    def setUp(self) -> None:
        """Nobody is paired."""
        super().setUp()
        self.owner.owner_id = None

    def start(self, user: int, text: str, **changes: Any) -> None:
        """A private message of a user."""
        update = self.message(None, text)
        message = {
            **update["message"],
            "from": {"id": user, "is_bot": False},
            "chat": {"id": user, "type": "private"},
            **changes,
        }
        self.accept({"update_id": update["update_id"], "message": message})

    def test_right_code(self) -> None:
        """The right code pairs its sender, once; the message itself is not kept."""
        code = self.pairing.create_code(os.urandom)
        self.start(OWNER, f"/start {code}")
        self.assertEqual(self.owner.pairings, [OWNER])
        self.assertFalse(self.pairing.is_open())
        self.assertEqual(self.rows(), [])
        self.start(STRANGER, f"/start {code}")
        self.assertEqual(self.owner.pairings, [OWNER])

    def test_new_owner_in_the_same_batch(self) -> None:
        """What the new owner wrote right after the code is taken."""
        code = self.pairing.create_code(os.urandom)
        first = self.message(None, f"/start {code.lower()} ")
        self.accept(first, self.message(text="hello"))
        self.assertEqual(len(self.rows()), 1)

    def test_code_elsewhere(self) -> None:
        """The right code in a group, by a bot, or without the command pairs nobody."""
        code = self.pairing.create_code(os.urandom)
        self.start(OWNER, f"/start {code}", chat={"id": -100, "type": "group"})
        self.start(OWNER, f"/start {code}", **{"from": {"id": OWNER, "is_bot": True}})
        self.start(OWNER, code)
        self.start(OWNER, f"/start {code} and more")
        self.assertEqual(self.owner.pairings, [])

    def test_paired_already(self) -> None:
        """With an owner and no code of C{setup} nothing pairs; with one, a second owner may come."""
        self.owner.owner_id = OWNER
        self.start(STRANGER, "/start ABCDEFGHIJKLMNOPQRST")
        self.assertEqual(self.owner.pairings, [])
        code = self.pairing.create_code(os.urandom)
        self.start(STRANGER, f"/start {code}")
        self.assertEqual(self.owner.pairings, [STRANGER])

    def test_owners_plain_start(self) -> None:
        """The owner's C{/start} is a message like others, and the settings are read again."""
        self.owner.owner_id = OWNER
        self.start(OWNER, "/start")
        self.assertEqual(len(self.rows()), 1)
        self.assertEqual(self.owner.reloads, 1)
        self.start(OWNER, "plain")
        self.assertEqual(self.owner.reloads, 1)

    def test_first_contact(self) -> None:
        """Off by default; when on, the first person who writes is the owner, and nobody after."""
        self.start(STRANGER, "hi")
        self.assertEqual(self.owner.pairings, [])
        self.owner.first = True
        self.start(OWNER, "hi")
        self.start(STRANGER, "hi")
        self.assertEqual(self.owner.pairings, [OWNER])
        self.assertEqual(len(self.rows()), 1)

    def test_store_fails(self) -> None:
        """When the new owner cannot be stored the code stays good, and polling goes on."""
        code = self.pairing.create_code(os.urandom)
        self.owner.failing = True
        self.start(OWNER, f"/start {code}")
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)
        self.assertTrue(self.pairing.is_open())
        self.owner.failing = False
        self.start(OWNER, f"/start {code}")
        self.assertEqual(self.owner.pairings, [OWNER])

    def test_slow_settings(self) -> None:
        """The batch waits for the settings, and its commit comes after them."""
        reading: Deferred[None] = Deferred()
        self.owner.reload = lambda: reading  # type: ignore[method-assign, assignment, return-value]
        self.owner.owner_id = OWNER
        accepting = self.admission.accept([self.message(None, "/start")], 999)
        self.assertNoResult(accepting)
        self.assertEqual(self.rows(), [])
        reading.callback(None)
        self.successResultOf(accepting)
        self.assertEqual(len(self.rows()), 1)


class PairingTests(SynchronousTestCase):
    """The pairing file."""

    def setUp(self) -> None:
        """A pairing with both clocks in hand."""
        self.clock = Clock()
        self.wall = 1_700_000_000.0
        self.path = Path(self.mktemp()).resolve()
        self.pairing = Pairing(self.path, self.clock.seconds, lambda: self.wall)

    def test_code(self) -> None:
        """Twenty base32 characters; the file is private and does not hold them."""
        code = self.pairing.create_code(os.urandom)
        self.assertRegex(code, r"\A[A-Z2-7]{20}\Z")
        self.assertNotEqual(code, self.pairing.create_code(os.urandom))
        self.assertNotIn(code.encode(), self.path.read_bytes())
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)

    def test_expiry(self) -> None:
        """After fifteen minutes a code is void."""
        code = self.pairing.create_code(os.urandom)
        self.wall += LIFE - 1
        self.assertTrue(self.pairing.attempt(1, code))
        self.wall += 2
        self.assertFalse(self.pairing.attempt(1, code))
        self.assertFalse(self.pairing.is_open())

    def test_new_code_voids_the_old(self) -> None:
        """Only the newest code counts."""
        old = self.pairing.create_code(os.urandom)
        self.pairing.create_code(os.urandom)
        self.assertFalse(self.pairing.attempt(1, old))

    def test_ten_wrong_codes(self) -> None:
        """Ten wrong codes shut that sender out for an hour, and nobody else."""
        code = self.pairing.create_code(os.urandom)
        for _ in range(TRIES):
            self.assertFalse(self.pairing.attempt(1, "WRONG"))
        self.assertFalse(self.pairing.attempt(1, code))
        self.assertTrue(self.pairing.attempt(2, code))
        self.clock.advance(SHUT_OUT - 1)
        self.assertFalse(self.pairing.attempt(1, code))
        self.clock.advance(2)
        self.assertTrue(self.pairing.attempt(1, code))

    def test_shut_out_outlives_a_pairing(self) -> None:
        """Who was shut out stays so when somebody else has paired and a new code is made."""
        code = self.pairing.create_code(os.urandom)
        for _ in range(TRIES):
            self.pairing.attempt(1, "WRONG")
        self.assertTrue(self.pairing.attempt(2, code))
        self.pairing.close()
        self.assertFalse(self.pairing.attempt(1, self.pairing.create_code(os.urandom)))

    def test_used_once(self) -> None:
        """A code that was used is void, also when its file cannot be removed; a new one is good."""
        code = self.pairing.create_code(os.urandom)
        kept = self.path.read_bytes()
        self.pairing.close()
        self.assertFalse(self.path.exists())
        self.path.write_bytes(kept)
        self.path.chmod(0o600)
        self.assertFalse(self.pairing.attempt(1, code))
        self.assertFalse(self.pairing.is_open())
        self.assertTrue(self.pairing.attempt(1, self.pairing.create_code(os.urandom)))

    def test_not_removable(self) -> None:
        """What stands in the file's place and cannot be removed does not stop the updates."""
        self.path.mkdir()
        self.pairing.close()
        self.assertFalse(self.pairing.attempt(1, "X"))

    def test_many_senders(self) -> None:
        """Memory of wrong senders is bounded."""
        self.pairing.create_code(os.urandom)
        for sender in range(3000):
            self.pairing.attempt(sender, "WRONG")
        self.assertLessEqual(len(self.pairing._senders), 1000)

    def test_damaged_file(self) -> None:
        """A file that is no pairing, or not ours to trust, pairs nobody and raises nothing."""
        for content in (b"", b"{", b"[]", b'{"sha256": 5, "expiresAtMs": "x"}'):
            self.path.write_bytes(content)
            self.assertFalse(self.pairing.attempt(1, "X"))
        self.path.unlink()
        self.path.symlink_to("/dev/null")
        self.assertFalse(self.pairing.attempt(1, "X"))

    def test_unwritable(self) -> None:
        """A link in the file's place is refused when a code is made."""
        self.path.symlink_to("/nowhere")
        self.assertRaises(errors.UnsafeFile, self.pairing.create_code, os.urandom)

    def test_surrogates(self) -> None:
        """Any text may be sent as a code."""
        self.pairing.create_code(os.urandom)
        self.assertFalse(self.pairing.attempt(1, "\ud83d"))

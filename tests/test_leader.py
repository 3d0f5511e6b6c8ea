"""The leader's parts, wired as they are in the daemon."""

from __future__ import annotations

import os
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from pitelegram.errors import Refusal, Refused
from pitelegram.kernel.birth import process_birth
from pitelegram.kernel.deferring import deferred
from pitelegram.routing.credentials import Credentials
from pitelegram.targets import TelegramTarget
from pitelegram.testing.bus import FakeBusFollower, a_registration
from pitelegram.testing.leading import BOT, OWNER, SECRET, LeaderWorld
from pitelegram.testing.panel import a_view


def attached(**changes: Any) -> FakeBusFollower:
    """Return an attached worker that is this process."""
    registration = a_registration(
        kind="attached",
        ownerId=None,
        pid=os.getpid(),
        processBirthId=process_birth(os.getpid()),
        cwd="/projects/attached",
        **changes,
    )
    return FakeBusFollower(
        {name: value for name, value in registration.items() if value is not None}
    )


class LeaderCase(TestCase):
    """A leader with two managed workers, started."""

    timeout = 30

    @deferred
    async def setUp(self) -> None:
        """Start it."""
        from twisted.internet import reactor

        self.world = LeaderWorld(reactor, a_view("alpha"), a_view("beta"))
        self.addCleanup(self.world.end)
        self.leader, self.api = self.world.leader, self.world.api
        await self.leader.startService()
        await self.leader.learn_bot()

    @deferred
    async def join(self, follower: FakeBusFollower) -> TelegramTarget:
        """Have a worker register; fires with its Thread."""
        client = self.world.follower(follower)
        client.startService()
        self.addCleanup(client.stopService)
        await self.world.until(lambda: follower.link)
        key = follower.link.registration["bindingKey"]
        await self.world.until(lambda: self.leader.registry.live(key).ready)
        return await self.world.until(lambda: self.leader.places.target_of(key))


class LeadingTests(LeaderCase):
    """What a started leader does."""

    @deferred
    async def test_the_way_of_one_prompt(self) -> None:
        """A worker gets a Thread and what is written there; its answer goes there, once."""
        follower = attached()
        target = await self.join(follower)
        self.assertEqual(target.chat_id, OWNER)
        self.assertIn((OWNER, target.thread_id), self.api.topics)
        await self.world.receive(self.world.message("hello", target.thread_id))
        (admitted,) = await self.world.until(
            lambda: [call for call in follower.calls if call[0] == "admit"]
        )
        self.assertEqual(admitted[4]["message"]["text"], "hello")
        await self.world.until(lambda: not self.leader.journal.unsettled())
        call = {"method": "sendMessage", "params": {"text": "world"}}
        delivery = {"kind": "final", "createdAtMs": 1, "calls": [call]}
        for expected in ("accepted", "delivered"):
            state = await follower.link.submit_delivery("d1", delivery)
            self.assertEqual(state, expected)
            await self.world.until(lambda: not self.leader.outbox.live_bindings())
        (sent,) = self.world.sent("world")
        self.assertEqual(sent.params["message_thread_id"], target.thread_id)

    @deferred
    async def test_old_downloads(self) -> None:
        """The started leader looks after the files that it fetched for workers."""
        directory = self.leader.ground.paths.downloads
        self.assertIn(directory, [getattr(each, "_directory", None) for each in self.leader])

    @deferred
    async def test_given_up(self) -> None:
        """A binding that is needed as proof stays; else it goes, and its last words go to Control."""
        follower = attached()
        target = await self.join(follower)
        key = follower.link.registration["bindingKey"]
        control = await self.world.until(lambda: self.leader.places.target_of("daemon"))
        receipt: Deferred[tuple[str, str]] = Deferred()
        follower.answers["admit"] = receipt
        await self.world.receive(self.world.message("proof", target.thread_id))
        await self.world.until(lambda: [call for call in follower.calls if call[0] == "admit"])
        with self.assertRaises(Refusal) as refused:
            await self.leader.give_up(key)
        self.assertEqual(refused.exception.code, "still-settling")
        self.assertIsNotNone(self.leader.bindings.get(key))
        receipt.callback(("accepted", ""))
        await self.world.until(lambda: not self.leader.journal.unsettled())
        await self.leader.give_up(key)
        self.assertIsNone(self.leader.bindings.get(key))
        self.assertIsNone(self.leader.places.target_of(key))
        await self.leader.delivery.notices.post(key, "last words", "n1")
        (sent,) = await self.world.until(lambda: self.world.sent("last words"))
        self.assertEqual(sent.params["message_thread_id"], control.thread_id)

    @deferred
    async def test_moved_thread(self) -> None:
        """A worker whose Thread is another one now is told, and gets what is written there."""
        follower = attached()
        old = await self.join(follower)
        key = follower.link.registration["bindingKey"]
        await self.leader.threads.reassign(key, OWNER, 99)
        (told,) = await self.world.until(
            lambda: [call for call in follower.calls if call[0] == "replace_target"]
        )
        self.assertEqual(told[1], {"chatId": OWNER, "threadId": 99})
        await self.world.receive(
            self.world.message("to nobody", old.thread_id), self.world.message("to it", 99)
        )
        (admitted,) = await self.world.until(
            lambda: [call for call in follower.calls if call[0] == "admit"]
        )
        self.assertEqual(admitted[4]["message"]["text"], "to it")
        await self.world.until(lambda: self.world.sent("Choose target thread"))

    @deferred
    async def test_control_thread(self) -> None:
        """The daemon's own Thread is made; the panel works there and in All."""
        control = await self.world.until(
            lambda: next((k for k, v in self.api.topics.items() if v == "🛠 Control"), None)
        )
        await self.world.until(lambda: self.leader.places.target_of("daemon"))
        await self.world.receive(
            self.world.message("anything", control[1]), self.world.message("/workers")
        )
        (menu,) = await self.world.until(lambda: self.world.sent("Daemon control"))
        self.assertEqual(menu.params["message_thread_id"], control[1])
        await self.world.until(lambda: self.world.sent("🟢 beta"))

    @deferred
    async def test_button_once(self) -> None:
        """A callback is executed once, although its update comes in two guises."""
        press = self.world.press("ptd:y:id-alpha", 60)
        await self.leader.bindings.remember_messages(OWNER, [60], "daemon", True)
        await self.world.receive(press)
        again = {**press, "update_id": press["update_id"] + 1}
        await self.world.receive(again)
        await self.world.until(lambda: not self.leader.journal.unsettled())
        self.assertEqual(self.world.supervisor.asked, [("stop", "id-alpha")])

    @deferred
    async def test_strangers(self) -> None:
        """What strangers write leaves no row and no answer."""
        before = len(self.api.made("sendMessage"))
        await self.world.receive(self.world.message("/daemon", sender=666))
        self.assertEqual(self.leader.journal.unsettled(), [])
        self.assertEqual(self.leader.journal.counts()["pending"], 0)
        self.assertEqual(len(self.api.made("sendMessage")), before)
        self.assertEqual(self.leader.admission.counters["strangers"], 1)

    @deferred
    async def test_paired(self) -> None:
        """A new owner is welcomed in his own chat; the old one is told, and gets nothing more."""
        await self.world.until(lambda: self.leader.places.target_of("daemon"))
        self.api.calls.clear()
        await self.world.owner.paired(2000, 2000)
        (welcome,) = await self.world.until(lambda: self.world.sent("is paired"))
        self.assertEqual(welcome.params["chat_id"], 2000)
        (farewell,) = self.world.sent("not paired with you any more")
        self.assertEqual(farewell.params["chat_id"], OWNER)
        self.assertNotIn("message_thread_id", farewell.params)
        others = [c for c in self.api.calls if "chat_id" in c.params and c is not farewell]
        self.assertEqual({call.params["chat_id"] for call in others}, {2000})

    @deferred
    async def test_blocked(self) -> None:
        """While the owner blocks the bot nothing is sent; afterwards all of it is."""
        await self.world.until(lambda: self.leader.places.target_of("daemon"))
        self.world.owner.blocked(True)
        await self.leader.delivery.notices.post("daemon", "held back")
        self.assertEqual(self.world.sent("held back"), [])
        self.world.owner.blocked(False)
        await self.world.until(lambda: self.world.sent("held back"))

    @deferred
    async def test_topic_message_settles_a_lost_answer(self) -> None:
        """The bot's own C{forum_topic_created} gets to the Threads."""
        await self.world.until(lambda: self.leader.places.target_of("daemon"))
        await self.leader.bindings.ensure("ws-1", "attached", "/projects/one")
        await self.leader.bindings.begin_provision("ws-1", OWNER, "Z")
        created = self.world.message("", 77)
        del created["message"]["text"]
        created["message"].update(
            {
                "from": {"id": BOT, "is_bot": True},
                "date": int(self.world.reactor.seconds()),
                "forum_topic_created": {"name": "Z", "icon_color": 1},
            }
        )
        await self.world.receive(created)
        await self.world.until(lambda: self.leader.bindings.by_target(OWNER, 77))

    @deferred
    async def test_polling(self) -> None:
        """Polling begins when told to, with the stored cursor, and ends with the leader."""
        self.assertEqual(self.api.made("getUpdates"), [])
        await self.leader.journal.accept(BOT, [], 321)
        self.leader.begin_polling()
        (poll,) = await self.world.until(lambda: self.api.made("getUpdates"))
        self.assertEqual(poll.params["offset"], 321)
        await self.leader.stopService()
        self.assertFalse(self.leader.poll.running)

    @deferred
    async def test_fenced(self) -> None:
        """A newer leader in the store ends this one: code 5, and nothing is stored."""
        update = self.world.message("hello")
        self.api.script("getUpdates", [update])
        await self.world.database.write(
            "a newer leader", lambda store: store.execute("UPDATE leader SET epoch = 'newer'")
        )
        self.leader.begin_polling()
        ((code, reason),) = await self.world.until(lambda: self.world.ends)
        self.assertEqual(code, 5)
        self.assertIn("newer leader", reason)
        self.flushLoggedErrors()

    @deferred
    async def test_bot_remembered(self) -> None:
        """What C{getMe} says is kept for the next start."""
        settings = self.world.file.load(with_token=False)
        self.assertEqual((settings.bot_id, settings.bot_username), (BOT, "test_bot"))

    @deferred
    async def test_bot_not_stored(self) -> None:
        """A configuration that cannot be written is no reason not to lead."""
        self.world.paths.telegram_json.write_text("{ broken")
        self.api.me["username"] = "renamed_bot"
        await self.leader.learn_bot()
        self.assertEqual(self.leader.bot_username, "renamed_bot")
        self.assertEqual(self.world.paths.telegram_json.read_text(), "{ broken")

    def test_another_bot(self) -> None:
        """A name that is stored of another bot is not this one's."""
        for bot_id, right in ((BOT, "stored_bot"), (BOT + 1, None)):
            profile = {"allowedUserId": OWNER, "botId": bot_id, "botUsername": "stored_bot"}
            world = LeaderWorld(self.world.reactor, profile=profile)
            self.addCleanup(world.end)
            self.assertEqual(world.leader.bot_username, right)

    @deferred
    async def test_short_answer_refused(self) -> None:
        """A short answer that Telegram refuses is no fault, and its row is settled."""
        self.api.script("sendMessage", Refused("sendMessage", 400, "no"))
        await self.world.receive(self.world.message("hello"))
        await self.world.until(lambda: not self.leader.journal.unsettled())
        self.assertEqual(len(self.world.sent("no worker")), 1)

    def test_names(self) -> None:
        """A managed binding is called as its worker, an attached one by its key."""
        self.assertEqual(self.leader.binding_name("spec-a"), "name-of-a")
        self.assertEqual(self.leader.binding_name("ws-1"), "ws-1")


class RecoveredTests(TestCase):
    """A store that was damaged."""

    timeout = 30

    @deferred
    async def test_told(self) -> None:
        """The operator reads it in the daemon's own Thread; a sound store says nothing."""
        from twisted.internet import reactor

        for damaged in (True, False):
            world = LeaderWorld(reactor)
            self.addCleanup(world.end)
            world.database.recovered = world.base if damaged else None
            await world.leader.startService()
            await world.leader.learn_bot()
            await world.until(lambda world=world: world.leader.places.target_of("daemon"))
            await world.until(lambda world=world: not world.leader.outbox.live_bindings())
            told = world.sent("was damaged")
            self.assertEqual(len(told), int(damaged))
            self.assertFalse(damaged and str(world.base) in told[0].params["text"])


class CredentialTests(LeaderCase):
    """L{Credentials}."""

    @deferred
    async def test_candidates(self) -> None:
        """The epoch's secret for all attached; a spec's own while its spawn lives; else nothing."""
        specs = self.leader.specs
        await specs.create("a", "alpha", "/projects/alpha")
        await specs.intend("s1", "a", b"c" * 32)
        credentials = Credentials(specs, "epoch-1", SECRET)
        self.assertEqual(credentials.secrets("shared"), [("epoch-1", SECRET)])
        self.assertEqual(credentials.secrets("worker:a"), [("s1", b"c" * 32)])
        for unknown in ("worker:b", "worker:", "worker", "", "shared:a", "other:a"):
            self.assertEqual(credentials.secrets(unknown), [], unknown)
        await specs.ended("s1", "exit 0")
        self.assertEqual(credentials.secrets("worker:a"), [])
        self.assertNotIn("eeee", repr(credentials))

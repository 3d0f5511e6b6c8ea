"""Names, display modes and closed Threads with a whole leader, asked by a client of its own make."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from pitelegram.errors import CertainlyUnsent, Refused
from pitelegram.kernel.birth import process_birth
from pitelegram.kernel.deferring import deferred
from pitelegram.targets import TelegramTarget
from pitelegram.testing.bus import a_registration
from pitelegram.testing.leading import OWNER, SECRET
from pitelegram.testing.rawamp import RawClient, pieces
from pitelegram.testing.rawamp import Refused as AmpError
from tests.test_leader import LeaderCase, attached

RENAME, MODE = "workspace-thread-rename-v1", "thread-display-mode-v1"
ADMISSION = "durable-follower-admission-v1"


class Peer:
    """A raw client that has registered in a directory."""

    def __init__(self, path: str, *capabilities: str, cwd: str = "/projects/raw") -> None:
        self.client = RawClient(path)
        nonce = os.urandom(32)
        hello = self.client.hello("shared", nonce, capabilities=sorted([ADMISSION, *capabilities]))
        self.offered = self.client.json_of(hello, "capabilities")
        self.client.close()
        self.client = RawClient(path)
        real, wanted = self.client.hello, sorted([ADMISSION, *capabilities])
        self.client.hello = lambda *a: real(*a, capabilities=wanted)  # type: ignore[method-assign]
        self.client.shake_hands("shared", SECRET)
        registration = a_registration(
            kind="attached",
            ownerId=None,
            pid=os.getpid(),
            processBirthId=process_birth(os.getpid()),
            cwd=cwd,
        )
        given = {name: value for name, value in registration.items() if value is not None}
        self.registration = self.client.register(given)
        self.roster: dict[str, Any] = {}
        self.beat()

    def sender(self, **changes: str) -> list[tuple[bytes, bytes]]:
        """Who asks."""
        names = ("instanceId", "registrationGeneration")
        values = {name: self.registration[name] for name in names}
        return [(name.encode(), text.encode()) for name, text in {**values, **changes}.items()]

    def beat(self, **state: Any) -> dict[str, Any]:
        """One heartbeat; its roster."""
        pairs = pieces("state", {"activity": "idle", "cwd": "/projects/raw", **state})
        answer = self.client.call("follower.heartbeat", [*self.sender(), *pairs])
        self.roster = self.client.json_of(answer, "roster")
        return self.roster

    def ask(self, command: str, target: Any, name: str, text: str, **changes: str) -> Any:
        """Ask for a name or a mode."""
        pairs = [*self.sender(**changes), *pieces("target", target), (name.encode(), text.encode())]
        return self.client.json_of(self.client.call(command, pairs), "result")

    def rename(self, target: Any, name: str, **changes: str) -> Any:
        """C{follower.renameThread}"""
        return self.ask("follower.renameThread", target, "name", name, **changes)

    def mode(self, target: Any, mode: str) -> Any:
        """C{follower.setDisplayMode}"""
        return self.ask("follower.setDisplayMode", target, "mode", mode)


class WireCase(LeaderCase):
    """Blocking clients run in threads."""

    @deferred
    async def setUp(self) -> None:
        """Start the leader."""
        await super().setUp()
        self.peers: list[Peer] = []
        self.addCleanup(lambda: [peer.client.close() for peer in self.peers])

    def blocking(self, work: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """Do it in a thread."""
        return deferToThread(work, *arguments)

    @deferred
    async def peer(self, *capabilities: str) -> tuple[Peer, TelegramTarget]:
        """A registered client and its Thread."""
        path = str(self.world.paths.bus_socket)
        peer = await self.blocking(lambda: Peer(path, *capabilities))
        self.peers.append(peer)
        key = peer.registration["bindingKey"]
        return peer, await self.world.until(lambda: self.leader.bindings.get(key).target)

    def title(self, target: TelegramTarget) -> Any:
        """What Telegram shows above a Thread."""
        return self.api.topics[target.chat_id, target.thread_id]


class NameTests(WireCase):
    """C{follower.renameThread} and C{follower.setDisplayMode}."""

    @deferred
    async def test_name_and_reset(self) -> None:
        """The title is Telegram's before the answer comes, and in the next heartbeat's roster."""
        peer, target = await self.peer(RENAME)
        self.assertLessEqual({RENAME, MODE}, set(peer.offered))
        answer = await self.blocking(peer.rename, target.as_json(), "  Navi\tgator ")
        named = {"displayTitle": "Navi gator", "manualName": "Navi gator"}
        self.assertEqual(answer, {"ok": True, "result": named})
        self.assertEqual(self.title(target), "Navi gator")
        roster = await self.blocking(peer.beat)
        self.assertEqual(roster["displayTitle"], "Navi gator")
        answer = await self.blocking(peer.rename, target.as_json(), "")
        self.assertEqual(answer["result"], {"displayTitle": "A", "manualName": None})
        self.assertEqual(self.title(target), "A")

    @deferred
    async def test_refused(self) -> None:
        """Another Thread, nothing to see, no capability, and Telegram's wait: a code and words each."""
        peer, target = await self.peer(RENAME)
        limited = CertainlyUnsent("editForumTopic", 429, "Too Many Requests", 31.0)
        self.api.script("editForumTopic", limited)
        control = await self.world.until(lambda: self.leader.places.target_of("daemon"))
        for place, name, code in (
            (control.as_json(), "x", "not-allowed"),
            ({"chatId": OWNER, "threadId": 987}, "x", "not-allowed"),
            (None, "x", "unavailable"),
            (target.as_json(), " ", "invalid-name"),
            (target.as_json(), "x", "rate-limited"),
        ):
            answer = await self.blocking(peer.rename, place, name)
            self.assertEqual((answer["ok"], answer["error"]["code"]), (False, code))
            self.assertTrue(answer["error"]["message"])
        self.assertEqual(answer["error"]["retryAfter"], 31.0)
        answer = await self.blocking(peer.mode, target.as_json(), "names")
        self.assertEqual(answer["error"]["code"], "not-allowed")
        self.assertEqual(self.title(target), "A")

    @deferred
    async def test_lost_thread(self) -> None:
        """A Thread that Telegram does not find any more is looked for, and a new one made."""
        peer, target = await self.peer(RENAME)
        del self.api.topics[target.chat_id, target.thread_id]
        gone = Refused("editForumTopic", 400, "Bad Request: TOPIC_ID_INVALID")
        self.api.script("editForumTopic", gone, gone)
        answer = await self.blocking(peer.rename, target.as_json(), "x")
        self.assertEqual(answer["error"]["code"], "unavailable")
        key = peer.registration["bindingKey"]
        new = await self.world.until(
            lambda: (
                (self.leader.bindings.get(key).target not in (None, target))
                and self.leader.bindings.get(key).target
            )
        )
        self.assertEqual((self.title(new), self.leader.bindings.get(key).manual_name), ("A", None))

    @deferred
    async def test_stale_generation(self) -> None:
        """A generation that is not the current one is no follower."""
        peer, target = await self.peer(RENAME)
        asking = self.blocking(
            lambda: peer.rename(target.as_json(), "x", registrationGeneration="g-old")
        )
        error = await self.assertFailure(asking, AmpError)
        self.assertEqual(error.args, ("STALE_GENERATION",))
        self.assertEqual(self.title(target), "A")

    @deferred
    async def test_mode(self) -> None:
        """A mode stands in the profile, beside what others wrote there, and titles follow it."""
        peer, target = await self.peer(MODE)
        answer = await self.blocking(peer.mode, target.as_json(), "directory-title")
        self.assertEqual(answer, {"ok": True, "result": {"mode": "directory-title"}})
        profile = json.loads(self.world.paths.telegram_json.read_text())["profiles"]["default"]
        self.assertEqual(profile["threadDisplayMode"], "directory-title")
        self.assertEqual(profile["allowedUserId"], OWNER)
        key = peer.registration["bindingKey"]
        self.assertEqual(self.leader.threads.title(key), "Raw")
        await self.leader.threads.retitle(key)
        self.assertEqual(self.title(target), "Raw")
        answer = await self.blocking(peer.mode, None, "directories")
        self.assertEqual(answer["ok"], False)

    @deferred
    async def test_another_project(self) -> None:
        """A session of another project takes binding and title along, not the Thread."""
        peer, target = await self.peer(MODE)
        key = peer.registration["bindingKey"]
        await self.blocking(peer.mode, None, "directory-snake")
        for cwd, label in (("/projects/other-one", "other_one"), ("/projects/raw", "raw")):
            await self.blocking(lambda cwd=cwd: peer.beat(cwd=cwd))
            await self.world.until(lambda cwd=cwd: self.leader.bindings.get(key).directory == cwd)
            await self.leader.threads.retitle(key)
            self.assertEqual((self.title(target), self.leader.places.get(key).slot), (label, "A"))
            self.assertEqual(self.leader.places.target_of(key), target)


class ClosedTests(WireCase):
    """The user closes a Thread in his client."""

    def service(self, target: TelegramTarget, field: str) -> dict[str, Any]:
        """His service message."""
        update = self.world.message("", target.thread_id)
        del update["message"]["text"]
        update["message"][field] = {}
        return update

    @deferred
    async def test_closed_and_opened(self) -> None:
        """An answer waits for him; then it comes, into the same Thread, which was never renamed."""
        follower = attached()
        target = await self.join(follower)
        key = follower.link.registration["bindingKey"]
        await self.world.receive(self.service(target, "forum_topic_closed"))
        await self.world.until(lambda: self.leader.bindings.get(key).closed)
        self.api.script("sendMessage", Refused("sendMessage", 400, "Bad Request: TOPIC_CLOSED"))
        await self.leader.delivery.notices.post(key, "for you")
        await self.world.until(
            lambda: [item["reason"] for item in self.leader.outbox.items()] == ["topic-closed"]
        )
        self.assertFalse(await self.leader.threads.retitle(key, True))
        await self.world.receive(self.service(target, "forum_topic_reopened"))
        await self.world.until(lambda: not self.leader.outbox.items())
        sent = self.world.sent("for you")
        self.assertEqual(
            [call.params["message_thread_id"] for call in sent], [target.thread_id] * 2
        )
        self.assertFalse(self.leader.bindings.get(key).closed)
        created = [call.params["name"] for call in self.api.made("createForumTopic")]
        self.assertEqual(sorted(created), ["A", "🛠 Control"])
        self.assertEqual(self.api.made("editForumTopic", "deleteForumTopic"), [])

    @deferred
    async def test_found_out_by_a_worker(self) -> None:
        """A worker's own message that is refused says that the Thread is closed, not lost."""
        follower = attached()
        target = await self.join(follower)
        key = follower.link.registration["bindingKey"]
        self.api.script("sendMessage", Refused("sendMessage", 400, "Bad Request: TOPIC_CLOSED"))
        params = {"chat_id": OWNER, "message_thread_id": target.thread_id, "text": "x"}
        refused = await self.assertFailure(follower.link.call_api("sendMessage", params), Exception)
        self.assertEqual(refused.code, "api")
        await self.world.until(lambda: self.leader.bindings.get(key).closed)
        self.assertEqual(self.leader.places.target_of(key), target)

"""What the leader does for a follower, over the real bus in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from zope.interface import implementer
from zope.interface.verify import verifyObject

from pitelegram import errors
from pitelegram.botapi.interfaces import IBotApi, ISendGate, Upload
from pitelegram.bus.follower import BusClient
from pitelegram.bus.interfaces import IBusLeader
from pitelegram.bus.leader import BusServer
from pitelegram.kernel.paths import Paths
from pitelegram.routing.busleader import BusLeader
from pitelegram.routing.preferences import WorkerSettings
from pitelegram.routing.weights import SHOWN, SharedActions
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.watching import Watcher
from pitelegram.testing.bus import (
    FakeBusFollower,
    FixedCredentials,
    FixedEndpoint,
    MemoryWire,
    a_registration,
    no_peer,
)
from pitelegram.testing.delivery import FakeDelivery, FakeThreadLoss
from pitelegram.testing.panel import FakeTitleModes
from tests.routing.support import ALPHA, BETA, OWNER, RoutingCase


def sent(message_id: int, thread: int = 11) -> dict[str, Any]:
    """The result of a send into a Thread."""
    return {"message_id": message_id, "message_thread_id": thread}


@implementer(IBotApi)
@attrs.define(eq=False)
class ScriptedApi:
    """Answers every call with C{answer}; an exception is raised.  Methods in C{failing} fail."""

    answer: Any = True
    failing: set[str] = attrs.field(factory=set)
    calls: list[tuple[str, dict[str, Any], Sequence[Upload]]] = attrs.field(factory=list)
    download_limit: int = 20_000_000

    def call(
        self,
        method: str,
        params: dict[str, Any],
        files: Sequence[Upload] = (),
        timeout: float | None = None,
        ready: Any = None,
    ) -> Deferred[Any]:
        """See L{IBotApi.call}."""
        self.calls.append((method, params, files))
        if method in self.failing:
            return fail(errors.Refused(method, 400, "Bad Request"))
        return fail(self.answer) if isinstance(self.answer, Exception) else succeed(self.answer)

    def download(self, file_id: str, destination: Path, limit: int) -> Deferred[int]:
        """See L{IBotApi.download}."""
        if isinstance(self.answer, Exception):
            return fail(self.answer)
        destination.write_bytes(b"data")
        return succeed(4)

    def close(self) -> Deferred[None]:
        """See L{IBotApi.close}."""
        return succeed(None)


@implementer(ISendGate)
@attrs.define(eq=False)
class ScriptedGate:
    """Blocks for C{seconds}."""

    seconds: float = 0.0
    floods: list[tuple[int, float]] = attrs.field(factory=list)
    passed: list[str] = attrs.field(factory=list)

    def wait(self, chat_id: int, weight: str = "send") -> Deferred[None]:
        """See L{ISendGate.wait}."""
        self.passed.append(weight)
        return succeed(None)

    def flood(self, chat_id: int, retry_after: float) -> None:
        """See L{ISendGate.flood}."""
        self.floods.append((chat_id, retry_after))

    def blocked_for(self, chat_id: int, weight: str = "send") -> float:
        """See L{ISendGate.blocked_for}."""
        return self.seconds


class BusLeaderCase(RoutingCase):
    """Two followers over the bus: alpha (spec a) and beta (spec b)."""

    def setUp(self) -> None:
        """Connect both."""
        super().setUp()
        self.directory = Path(self.mktemp()).resolve()
        (self.directory / "downloads").mkdir(parents=True)
        self.api, self.gate, self.delivery = ScriptedApi(), ScriptedGate(), FakeDelivery()
        self.titles = FakeTitleModes()
        self.bus_leader = BusLeader(
            epoch="epoch-1",
            profile="default",
            registry=self.registry,
            places=self.places,
            owners=self.owners,
            bindings=self.bindings,
            api=self.api,
            gate=self.gate,
            delivery=self.delivery,
            uploads_of=lambda instance: self.directory / "uploads" / instance,
            downloads=self.directory / "downloads",
            random_bytes=Random(5).randbytes,
            threads=self.threads,
            titles=self.titles,
            settings=self.settings_of(),
        )
        secrets = {f"worker:{spec}": [(f"spawn-{spec}", b"s" * 32)] for spec in "ab"}
        self.server = BusServer(
            path=Path("/nowhere"),
            credentials=FixedCredentials(secrets),
            leader=self.bus_leader,
            reactor=None,
            clock=self.clock,
            random_bytes=Random(6).randbytes,
            build="test",
            peer_ids=no_peer,
        )
        self.wire = MemoryWire(self.server)
        self.router.startService()
        self.followers: dict[str, FakeBusFollower] = {}
        self.clients = {spec: self.join(spec) for spec in "ab"}
        self.wire.flush()
        self.addCleanup(self.stop)

    def settings_of(self) -> WorkerSettings:
        """Real settings in a file of this test."""
        paths = Paths(self.directory / "agent")
        paths.agent_dir.mkdir()
        self.telegram_json = paths.telegram_json
        self.file = SettingsFile(paths, {})
        self.watcher = Watcher(self.file, self.file.load(), self.clock)
        return WorkerSettings(self.file, self.watcher, self.clock, lambda: 20_000_000)

    def join(self, spec: str) -> BusClient:
        """A client of a spec."""
        registration = a_registration(ownerId=None, instanceId=f"{ord(spec)}:1", pid=ord(spec))
        self.followers[spec] = FakeBusFollower(registration=registration)
        client = BusClient(
            endpoint=FixedEndpoint(("/nowhere", b"s" * 32)),
            credential=f"worker:{spec}",
            follower=self.followers[spec],
            reactor=None,
            clock=self.clock,
            random=Random(7),
            build="test",
            random_bytes=os.urandom,
            connect=self.wire.connect,
        )
        client.startService()
        return client

    def stop(self) -> None:
        """Stop everything."""
        self.successResultOf(self.router.stopService())
        for client in self.clients.values():
            stopping = client.stopService()
            self.wire.flush()
            self.successResultOf(stopping)

    def call(self, spec: str, method: str, params: dict[str, Any], **named: Any) -> Any:
        """A call that succeeds."""
        calling = self.clients[spec].link.call_api(method, params, **named)  # type: ignore[union-attr]
        self.wire.flush()
        return self.successResultOf(calling)

    def refused(
        self, spec: str, method: str, params: dict[str, Any], **named: Any
    ) -> errors.Refusal:
        """A call that is refused."""
        calling = self.clients[spec].link.call_api(method, params, **named)  # type: ignore[union-attr]
        self.wire.flush()
        refusal = self.failureResultOf(calling, errors.Refusal).value
        assert isinstance(refusal, errors.Refusal)
        return refusal

    def place(self, thread: int = 11) -> dict[str, Any]:
        """Parameters that name a Thread."""
        return {"chat_id": OWNER, "message_thread_id": thread}


class CallTests(BusLeaderCase):
    """C{follower.callApi}."""

    def test_interfaces(self) -> None:
        """Real and fake provide what they say."""
        verifyObject(IBusLeader, self.bus_leader)
        verifyObject(IBotApi, self.api)
        verifyObject(ISendGate, self.gate)

    def test_own_thread_only(self) -> None:
        """A worker speaks into its own Thread, not into another's."""
        self.api.answer = sent(70)
        self.assertEqual(self.call("a", "sendMessage", self.place(11)), sent(70))
        self.assertEqual(self.refused("a", "sendMessage", self.place(12)).code, "not-allowed")
        self.assertEqual(self.refused("b", "sendMessage", self.place(11)).code, "not-allowed")
        self.assertEqual(len(self.api.calls), 1)

    def test_current_target(self) -> None:
        """A Thread that moved is no longer one's own, from that moment."""
        self.give(BETA, 11)
        self.router.kick()
        self.assertEqual(self.refused("a", "sendMessage", self.place(11)).code, "not-allowed")
        self.api.answer = sent(70)
        self.call("b", "sendMessage", self.place(11))

    def test_ownership_of_messages(self) -> None:
        """What one worker sent, another cannot edit or delete; nor what the user wrote."""
        self.api.answer = [sent(70), sent(71)]
        self.call("a", "sendMediaGroup", self.place(11))
        self.assertEqual(self.bindings.message_owner(OWNER, 71), (ALPHA, True))
        self.api.answer = True
        for number in (70, 71):
            self.call("a", "editMessageText", {"chat_id": OWNER, "message_id": number})
        edit = {"chat_id": OWNER, "message_id": 70}
        self.assertEqual(self.refused("b", "deleteMessage", edit).code, "not-allowed")
        update = self.message()
        self.accept(update)
        self.wire.flush()
        theirs = {"chat_id": OWNER, "message_id": update["message"]["message_id"]}
        self.assertEqual(self.refused("a", "deleteMessage", theirs).code, "not-allowed")

    def test_rate_limit(self) -> None:
        """A call over the budget is answered at once with the time to wait, and not made."""
        self.gate.seconds = 3.5
        refusal = self.refused("a", "sendMessage", self.place())
        self.assertEqual((refusal.code, refusal.fields), ("rate-limited", {"retryAfter": 3.5}))
        self.assertEqual(self.api.calls, [])
        self.call("a", "answerCallbackQuery", {"callback_query_id": "x"})
        self.gate.seconds = 0.0
        for method in ("sendMessage", "sendMessageDraft", "sendChatAction"):
            self.call("a", method, self.place())
        self.assertEqual(self.gate.passed, ["minor", "draft", "action"])

    def test_what_somebody_waits_for(self) -> None:
        """Messages with buttons, and edits of those, go with the answers; others are activity."""
        self.api.answer = sent(70)
        keyboard = {"reply_markup": {"inline_keyboard": []}}
        self.call("a", "sendMessage", {**self.place(11), **keyboard})
        self.call("a", "sendRichMessageDraft", self.place(11))
        own = {"chat_id": OWNER, "message_id": 70}
        self.call("a", "editMessageText", {**own, **keyboard})
        self.call("a", "editMessageText", own)
        self.call("a", "deleteMessage", own)
        self.assertEqual(self.gate.passed, ["send", "draft", "edit", "minor-edit", "edit"])

    def test_typing_in_all_is_shared(self) -> None:
        """However many workers type in All, one call shows it; one that failed shows nothing."""
        self.bus_leader.actions = SharedActions(self.clock)
        action = {"chat_id": OWNER, "action": "typing"}
        self.api.answer = errors.CertainlyUnsent("sendChatAction", 0, "no route")
        self.refused("a", "sendChatAction", action)
        self.api.answer = True
        for _ in range(5):
            self.call("a", "sendChatAction", action)
            self.call("b", "sendChatAction", action)
        self.assertEqual(len(self.api.calls), 2)
        self.call("a", "sendChatAction", {**action, "message_thread_id": 11})
        self.assertEqual(len(self.api.calls), 3)
        self.clock.advance(SHOWN)
        self.call("b", "sendChatAction", action)
        self.assertEqual(len(self.api.calls), 4)

    def test_errors(self) -> None:
        """Each class of failure has its refusal; only an uncertain send is commit-unknown."""
        cases: list[tuple[Exception, str, str, dict[str, Any]]] = [
            (
                errors.Refused("sendMessage", 400, "Bad Request: x"),
                "sendMessage",
                "api",
                {"errorCode": 400, "description": "Bad Request: x"},
            ),
            (
                errors.CertainlyUnsent("sendMessage", 429, "Too Many Requests", 7.0),
                "sendMessage",
                "api",
                {"errorCode": 429, "description": "Too Many Requests", "retryAfter": 7.0},
            ),
            (
                errors.CertainlyUnsent("sendMessage", 0, "no route"),
                "sendMessage",
                "unavailable",
                {},
            ),
            (errors.Uncertain("sendMessage", 502, "bad"), "sendMessage", "commit-unknown", {}),
            (errors.Uncertain("sendMessage", 502, "bad"), "sendMessageDraft", "unavailable", {}),
            (errors.Uncertain("sendMessage", 0, "cut"), "sendChatAction", "unavailable", {}),
        ]
        for error, method, code, fields in cases:
            self.api.answer = error
            refusal = self.refused("a", method, self.place())
            self.assertEqual((refusal.code, refusal.fields), (code, fields))
        self.assertEqual(self.gate.floods, [(OWNER, 7.0)])

    def test_dead_thread(self) -> None:
        """A message that Telegram put outside the Thread is taken back, and the Thread examined."""
        loss = FakeThreadLoss()
        self.bus_leader.loss = loss
        self.api.answer = {"message_id": 70}
        refusal = self.refused("a", "sendMessage", self.place(11))
        self.assertEqual((refusal.code, refusal.fields["errorCode"]), ("api", 400))
        self.assertEqual(
            [(method, params.get("message_id")) for method, params, _ in self.api.calls],
            [("sendMessage", None), ("deleteMessage", 70)],
        )
        self.assertEqual(loss.asked, [ALPHA])
        self.assertIsNone(self.bindings.message_owner(OWNER, 70))
        self.api.failing = {"deleteMessage"}
        self.assertEqual(self.call("a", "sendMessage", self.place(11)), {"message_id": 70})
        self.assertEqual(self.bindings.message_owner(OWNER, 70), (ALPHA, True))
        self.call("a", "sendMessage", {"chat_id": OWNER}, options={"aggregate": True})
        self.assertEqual(loss.asked, [ALPHA] * 2)

    def test_thread_not_found(self) -> None:
        """A refusal that says so has the Thread examined, a send into it only."""
        loss = FakeThreadLoss()
        self.bus_leader.loss = loss
        for words in ("message thread not found", "TOPIC_DELETED", "TOPIC_ID_INVALID"):
            self.api.answer = errors.Refused("sendMessage", 400, f"Bad Request: {words}")
            refusal = self.refused("a", "sendMessage", self.place(11))
            self.assertEqual((refusal.code, refusal.fields["errorCode"]), ("api", 400))
        self.assertEqual(loss.asked, [ALPHA] * 3)
        self.refused("a", "sendChatAction", self.place())
        self.refused("a", "sendMessage", {"chat_id": OWNER}, options={"aggregate": True})
        self.api.answer = errors.Refused("sendMessage", 400, "Bad Request: message is too long")
        self.refused("a", "sendMessage", self.place(11))
        self.assertEqual(loss.asked, [ALPHA] * 3)

    def test_uploads(self) -> None:
        """Files come from the instance's own uploads directory, regular and not by a link."""
        own = self.directory / "uploads" / "97:1"
        (own / "deep").mkdir(parents=True)
        (own / "deep" / "f.txt").write_text("x")
        (self.directory / "secret").write_text("s")
        (own / "link").symlink_to(self.directory / "secret")
        (own / "dirlink").symlink_to(self.directory)
        os.mkfifo(own / "pipe")
        os.link(self.directory / "secret", own / "hard")
        other = self.directory / "uploads" / "98:1"
        other.mkdir()
        (other / "f").write_text("x")

        def file(path: Any) -> list[dict[str, Any]]:
            return [{"field": "f", "path": str(path), "filename": "f", "mimeType": "text/plain"}]

        self.api.answer = sent(5)
        self.call("a", "sendDocument", self.place(), files=file(own / "deep" / "f.txt"))
        self.assertEqual(self.api.calls[-1][2][0].path, own / "deep" / "f.txt")
        for path in (
            own / "link",
            own / "dirlink" / "secret",
            own / "pipe",
            own / "hard",
            own / "deep",
            own / "missing",
            own / ".." / "98:1" / "f",
            own,
            other / "f",
            self.directory / "secret",
            "deep/f.txt",
        ):
            refusal = self.refused("a", "sendDocument", self.place(), files=file(path))
            self.assertEqual(refusal.code, "not-allowed", path)
        for broken in ([{}], [{**file(own / "x")[0], "field": 5}], file(own / "x") * 11):
            refusal = self.refused("a", "sendDocument", self.place(), files=broken)
            self.assertEqual(refusal.code, "not-allowed")

    def test_download(self) -> None:
        """A file goes into the downloads directory under a name that nobody chose."""
        getting = self.clients["a"].link.download_file("../../FILE")  # type: ignore[union-attr]
        self.wire.flush()
        found = self.successResultOf(getting)
        self.assertEqual(found["size"], 4)
        self.assertEqual(Path(found["path"]).parent, self.directory / "downloads")
        self.api.answer = errors.Refusal("too-large", "too large", limit=20_000_000)
        getting = self.clients["a"].link.download_file("F")  # type: ignore[union-attr]
        self.wire.flush()
        refusal = self.failureResultOf(getting, errors.Refusal).value
        self.assertEqual((refusal.code, refusal.fields), ("too-large", {"limit": 20_000_000}))

    def test_delivery(self) -> None:
        """An answer goes to the outbox under the follower's binding."""
        calls = [{"method": "sendMessage", "params": {"text": "x"}}]
        delivery = {"kind": "final", "createdAtMs": 1, "calls": calls}
        submitting = self.clients["b"].link.submit_delivery("d1", delivery)  # type: ignore[union-attr]
        self.wire.flush()
        self.assertEqual(self.successResultOf(submitting), "accepted")
        self.assertEqual(self.delivery.submitted[0][:2], (BETA, "d1"))


class EndToEndTests(BusLeaderCase):
    """Journal, router, bus and follower together."""

    def test_prompt(self) -> None:
        """The owner's message is admitted by its worker as it came, and settles."""
        update = self.message(text="€" * 30_000, new_field={"x": 1})
        self.accept(update, self.message(12, "for beta"))
        self.wire.flush()
        (admitted,) = [c for c in self.followers["a"].calls if c[0] == "admit"]
        self.assertEqual(admitted[2:], (update["update_id"], "message", update))
        self.assertEqual(self.states(), ["settled", "settled"])
        self.clock.advance(1)
        self.wire.flush()
        confirmed = [c for c in self.followers["a"].calls if c[0] == "confirm_settled"]
        self.assertEqual(confirmed, [("confirm_settled", [admitted[1]])])

    def test_lost_receipt(self) -> None:
        """The worker admitted, the receipt was lost: the same id comes again, and no other gets it."""
        late: Deferred[Any] = Deferred()
        self.followers["a"].answers["admit"] = late
        self.accept(self.message(text="once"))
        self.wire.flush()
        self.expectation.expected |= {ALPHA, BETA}
        self.wire.cut()
        self.give(BETA, 11)
        self.router.kick()
        self.followers["a"].answers["admit"] = ("accepted", "")
        for _ in range(40):
            self.clock.advance(0.1)
            self.wire.flush()
        ids = [c[1] for c in self.followers["a"].calls if c[0] == "admit"]
        self.assertEqual(len(ids), 2)
        self.assertEqual(len(set(ids)), 1)
        self.assertEqual([c for c in self.followers["b"].calls if c[0] == "admit"], [])
        self.assertEqual(self.states(), ["settled"])

    def test_new_target_is_told(self) -> None:
        """A worker hears of its new Thread, and may speak there."""
        from pitelegram.targets import TelegramTarget

        self.give(ALPHA, 40)
        self.router.target_changed(ALPHA, TelegramTarget(OWNER, 40), None, "created")
        self.registry.target_changed(ALPHA, TelegramTarget(OWNER, 40), None, "created")
        self.wire.flush()
        told = [c for c in self.followers["a"].calls if c[0] == "replace_target"]
        self.assertEqual(
            told, [("replace_target", {"chatId": OWNER, "threadId": 40}, None, "created")]
        )
        self.call("a", "sendChatAction", self.place(40))

    def test_other_workers(self) -> None:
        """A Thread of another live worker is found by its name or id; what is not offered says so."""
        self.successResultOf(self.bindings.assign_slot(BETA, "B", "Owl"))
        self.places.forget()

        def resolve(selector: dict[str, Any]) -> Any:
            link = self.registry.live(ALPHA).link  # type: ignore[union-attr]
            return self.bus_leader.resolve_target(link, selector)

        for selector in ({"threadName": "owl"}, {"threadId": 12}):
            self.assertEqual(
                self.successResultOf(resolve(selector)), {"chatId": OWNER, "threadId": 12}
            )
        for selector in ({"threadName": "Fox"}, {"threadName": ""}, {}, {"threadId": 11}):
            failing = self.failureResultOf(resolve(selector), errors.Refusal)
            self.assertEqual(failing.value.code, "unavailable")
        link = self.registry.live(ALPHA).link  # type: ignore[union-attr]
        self.failureResultOf(self.bus_leader.route_agent_message(link, "r", {}), errors.Refusal)


class NameTests(BusLeaderCase):
    """Names of Threads and what titles are made of, over the bus."""

    def link(self, spec: str = "a") -> Any:  # type: ignore[override]
        """The worker's end."""
        link = self.clients[spec].link
        assert link is not None
        return link

    def settle(self, asking: Deferred[Any]) -> Any:
        """The answer."""
        self.wire.flush()
        return self.successResultOf(asking)

    def refusal(self, asking: Deferred[Any]) -> errors.Refusal:
        """The refusal."""
        self.wire.flush()
        value = self.failureResultOf(asking, errors.Refusal).value
        assert isinstance(value, errors.Refusal)
        return value

    def test_capabilities(self) -> None:
        """The leader says that it can."""
        wanted = {"thread-display-mode-v1", "workspace-thread-rename-v1"}
        self.assertLessEqual(wanted, self.link().capabilities)

    def test_rename(self) -> None:
        """The answer names title and name; a reset has no name."""
        place = {"chatId": OWNER, "threadId": 11}
        self.assertEqual(
            self.settle(self.link().rename_thread(place, "Navigator")),
            {"displayTitle": "Navigator", "manualName": "Navigator"},
        )
        answer = self.settle(self.link().rename_thread(place, ""))
        self.assertEqual(answer["manualName"], None)

    def test_without_the_capability(self) -> None:
        """A follower that did not say that it can is refused."""
        follower = self.registry.live(ALPHA)
        assert follower is not None
        follower.link.capabilities = frozenset()
        place = {"chatId": OWNER, "threadId": 11}
        for asking in (
            self.link().rename_thread(place, "x"),
            self.link().set_display_mode(place, "names"),
        ):
            self.assertEqual(self.refusal(asking).code, "not-allowed")
        self.assertIsNone(self.bindings.get(ALPHA).manual_name)  # type: ignore[union-attr]

    def test_display_mode(self) -> None:
        """One of the five, for the follower's own Thread or none; stored, and answered."""
        for mode in ("directory-snake", "letters"):
            for place in ({"chatId": OWNER, "threadId": 11}, None):
                answer = self.settle(self.link().set_display_mode(place, mode))
                self.assertEqual((answer, self.titles.now), ({"mode": mode}, mode))
        other = {"chatId": OWNER, "threadId": 12}
        refusal = self.refusal(self.link().set_display_mode(other, "names"))
        self.assertEqual((refusal.code, self.titles.now), ("not-allowed", "letters"))
        self.titles.fails = errors.ConfigError("not valid JSON")
        refusal = self.refusal(self.link().set_display_mode(None, "names"))
        self.assertEqual(refusal.code, "unavailable")

    def test_what_a_thread_is_called(self) -> None:
        """Title, given name and palette name find it, in any letter case; what two have, none."""
        self.successResultOf(self.bindings.assign_slot(BETA, "B", "Beacon"))
        self.successResultOf(
            self.bindings.set_manual_name(BETA, (OWNER, 12), "Navigator", "⏳ Navigator")
        )
        self.places.forget()
        link = self.registry.live(ALPHA).link  # type: ignore[union-attr]

        def resolve(name: str) -> Any:
            return self.bus_leader.resolve_target(link, {"threadName": name})

        for name in ("navigator", "⏳ Navigator", "BEACON", " Navigator "):
            found = self.successResultOf(resolve(name))
            self.assertEqual(found, {"chatId": OWNER, "threadId": 12})
        self.successResultOf(self.bindings.ensure("ws-1", "attached", "/w"))
        self.give("ws-1", 40)
        self.successResultOf(self.bindings.set_title("ws-1", "navigator"))
        refusal = self.failureResultOf(resolve("Navigator"), errors.Refusal).value
        self.assertEqual(refusal.code, "ambiguous")

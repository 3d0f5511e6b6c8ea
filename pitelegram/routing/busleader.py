"""What the leader does with a follower's requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.botapi.interfaces import IBotApi, ISendGate, Upload
from pitelegram.botapi.missing import NO_THREAD, misplaced, says_closed, says_no_thread
from pitelegram.bus.allowlist import check_call
from pitelegram.bus.handshake import DISPLAY_MODE, RENAME, SETTINGS
from pitelegram.bus.interfaces import IBusLeader, IFollowerLink
from pitelegram.delivery.interfaces import IDelivery, IThreadLoss
from pitelegram.errors import (
    CertainlyUnsent,
    ConfigError,
    OwnershipError,
    Refusal,
    TelegramError,
    Uncertain,
    UnsafeFile,
)
from pitelegram.errors import Refused as TelegramRefused
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.panel.interfaces import ITitleModes
from pitelegram.routing.activity import at_work
from pitelegram.routing.called import is_called
from pitelegram.routing.owners import MessageOwners
from pitelegram.routing.places import Places
from pitelegram.routing.preferences import WorkerSettings
from pitelegram.routing.registry import Follower, Registry
from pitelegram.routing.turns import Turns
from pitelegram.routing.uploads import check_uploads
from pitelegram.routing.weights import SharedActions, weight_of
from pitelegram.store.interfaces import IBindings
from pitelegram.targets import TelegramTarget
from pitelegram.threads.interfaces import IThreads


@implementer(IBusLeader)
@attrs.define(eq=False, kw_only=True)
class BusLeader:
    """See L{IBusLeader}.

    @ivar uploads_of: the uploads directory of an instance id.
    @ivar downloads: where inbound files go; private, and exists.
    @ivar titles: what titles are made of, in the settings.
    @ivar settings: what workers are told of the settings, and may change.
    @ivar loss: examines a Thread that a message could not be put into; None: nobody does.
    @ivar quitting: deletes the Thread of an attached worker that quit, and fires with what became of
        it; None: nobody does.
    @ivar turns: keeps places in the queue for questions; None: nobody does.
    @ivar actions: knows what is shown in All; None: nobody does.
    """

    epoch: str
    profile: str
    registry: Registry
    places: Places
    owners: MessageOwners
    bindings: IBindings
    api: IBotApi
    gate: ISendGate
    delivery: IDelivery
    uploads_of: Callable[[str], Path]
    downloads: Path
    random_bytes: Callable[[int], bytes] = attrs.field(repr=False)
    threads: IThreads
    titles: ITitleModes
    settings: WorkerSettings
    loss: IThreadLoss | None = None
    turns: Turns | None = None
    quitting: Callable[[str], Deferred[str]] | None = None
    actions: SharedActions | None = None
    _log = Logger()

    # --- registration ------------------------------------------------------------------------

    @deferred
    async def register(
        self, link: IFollowerLink, registration: dict[str, Any], restore: bool
    ) -> dict[str, Any]:
        """See L{IBusLeader.register}."""
        answer = await self.registry.register(link, registration, restore)
        if SETTINGS in link.capabilities:
            answer = {**answer, "settings": self.settings.first(link)}
        return answer

    def heartbeat(self, link: IFollowerLink, state: dict[str, Any]) -> dict[str, Any]:
        """See L{IBusLeader.heartbeat}."""
        roster = self.registry.heartbeat(link, state)
        news = self.settings.news(link) if SETTINGS in link.capabilities else None
        return roster if news is None else {**roster, "settings": news}

    @deferred
    async def disconnect(
        self, link: IFollowerLink, reason: str, delete_thread: bool
    ) -> dict[str, Any]:
        """See L{IBusLeader.disconnect}."""
        follower = self.registry.of_link(link)
        outcome = await self.registry.disconnect(link, reason, delete_thread)
        wanted = delete_thread and reason == "quit" and follower.kind == "attached"
        if not wanted or self.quitting is None:
            return outcome
        return {**outcome, "thread": await self.quitting(follower.binding_key)}

    def lost(self, link: IFollowerLink) -> None:
        """See L{IBusLeader.lost}."""
        self.registry.lost(link)

    # --- Telegram ----------------------------------------------------------------------------

    @deferred
    async def call_api(
        self,
        link: IFollowerLink,
        request_id: str,
        method: str,
        params: dict[str, Any],
        options: dict[str, Any],
        files: Sequence[dict[str, Any]],
    ) -> Any:
        """See L{IBusLeader.call_api}.  One attempt; nothing is waited for."""
        follower = self.registry.of_link(link)
        key = follower.binding_key
        target = self.places.target_of(key)

        def owns(chat_id: int, message_id: int) -> bool:
            return self.owners.owner(chat_id, message_id) == (key, True)

        checked, kind = check_call(method, params, options, files, target, owns)
        uploads = check_uploads(files, self.uploads_of(follower.instance_id)) if files else []
        actions = self.actions if kind == "action" else None
        if actions is not None and actions.shown(checked):
            return True
        try:
            weight = weight_of(kind, checked)
            if target is not None and weight is not None:
                # A question that Pi waits for keeps its place.
                await self._pass_gate(target, weight, key if weight == "send" else None)
            result = await self._called(method, checked, uploads, kind, key, target)
        except Refusal:
            if actions is not None:
                actions.failed(checked)
            raise
        if kind == "send" and target is not None:
            messages = _messages(result)
            await self._take_back(messages, checked, target, key)
            await self._remember(target.chat_id, messages, key)
        return result

    async def _called(
        self,
        method: str,
        params: dict[str, Any],
        uploads: Sequence[Upload],
        kind: str,
        key: str,
        target: TelegramTarget | None,
    ) -> Any:
        """Make the call; a Thread that it did not find is looked for.

        @raise Refusal: what Telegram said.
        """
        try:
            return await self.api.call(method, params, uploads)
        except TelegramError as error:
            if kind == "send" and says_no_thread(error.code, error.description):
                self._look_for_thread(params, target, key)
            if kind == "send" and target is not None and says_closed(error.code, error.description):
                spawn(self._log, "a closed Thread", self.threads.found_closed(key, target))
            raise self._as_refusal(error, kind, target) from None

    async def _pass_gate(self, target: TelegramTarget, weight: str, asking: str | None) -> None:
        """Spend the chat's budget; C{asking} is the binding of a question, which keeps its place.

        @raise Refusal: C{rate-limited}.
        """
        turns = self.turns if asking is not None else None
        if turns is not None and turns.take(asking or "", target.chat_id):
            return
        wait = self.gate.blocked_for(target.chat_id, weight)
        if wait > 0:
            if turns is not None:
                turns.keep(asking or "", target.chat_id)
            raise Refusal(
                "rate-limited", "this chat may not be written to so soon", retryAfter=wait
            )
        await self.gate.wait(target.chat_id, weight)

    def _as_refusal(
        self, error: TelegramError, kind: str, target: TelegramTarget | None
    ) -> Refusal:
        if isinstance(error, Uncertain):
            if kind == "send":
                return Refusal("commit-unknown", "nobody can tell whether Telegram took it")
            return Refusal("unavailable", "Telegram did not answer; it may be tried again")
        fields: dict[str, Any] = {"errorCode": error.code, "description": error.description}
        if isinstance(error, CertainlyUnsent):
            if error.code != 429:
                return Refusal("unavailable", "Telegram cannot be reached")
            if error.retry_after is not None:
                fields["retryAfter"] = error.retry_after
                if target is not None:
                    self.gate.flood(target.chat_id, error.retry_after)
        elif not isinstance(error, TelegramRefused):
            return Refusal("unavailable", "Telegram did not take it")
        return Refusal("api", error.description, **fields)

    async def _take_back(
        self,
        messages: list[dict[str, Any]],
        params: dict[str, Any],
        target: TelegramTarget,
        binding_key: str,
    ) -> None:
        """Delete messages that Telegram put outside the Thread they were for: it may be gone.

        @raise Refusal: as when Telegram had said so; what cannot be deleted counts as sent.
        """
        if not misplaced(messages, params.get("message_thread_id")):
            return
        self._look_for_thread(params, target, binding_key)
        try:
            for each in messages:
                place = {"chat_id": target.chat_id, "message_id": each["message_id"]}
                await self.api.call("deleteMessage", place)
        except TelegramError:
            return
        raise Refusal("api", NO_THREAD, errorCode=400, description=NO_THREAD)

    def _look_for_thread(
        self, params: dict[str, Any], target: TelegramTarget | None, binding_key: str
    ) -> None:
        """Find out whether the follower's own Thread is lost; a new one is told to it."""
        wanted = params.get("message_thread_id")
        own = target is not None and wanted is not None and wanted == target.thread_id
        if own:
            self._examine(binding_key)

    def _examine(self, binding_key: str) -> None:
        if self.loss is not None:
            spawn(self._log, "examining a lost Thread", self.loss.examine(binding_key))

    async def _remember(
        self, chat_id: int, messages: list[dict[str, Any]], binding_key: str
    ) -> None:
        ids = [each["message_id"] for each in messages]
        if ids:
            await self.bindings.remember_messages(chat_id, ids, binding_key, True)

    @deferred
    async def download_file(
        self, link: IFollowerLink, request_id: str, file_id: str
    ) -> dict[str, Any]:
        """See L{IBusLeader.download_file}."""
        self.registry.of_link(link)
        path = self.downloads / self.random_bytes(16).hex()
        try:
            size = await self.api.download(file_id, path, self.api.download_limit)
        except TelegramError as error:
            raise self._as_refusal(error, "free", None) from None
        return {"path": str(path), "size": size}

    def submit_delivery(
        self, link: IFollowerLink, delivery_id: str, delivery: dict[str, Any]
    ) -> Deferred[str]:
        """See L{IBusLeader.submit_delivery}."""
        follower = self.registry.of_link(link)
        uploads = self.uploads_of(follower.instance_id)
        return self.delivery.submit(follower.binding_key, delivery_id, delivery, uploads)

    # --- other workers -----------------------------------------------------------------------

    @deferred
    async def resolve_target(self, link: IFollowerLink, selector: dict[str, Any]) -> dict[str, Any]:
        """See L{IBusLeader.resolve_target}: by C{threadName} or C{threadId}."""
        own = self.registry.of_link(link).binding_key
        name, thread_id = selector.get("threadName"), selector.get("threadId")
        found = [
            binding
            for binding in self.bindings.list()
            if binding.binding_key != own
            and binding.kind != "daemon"
            and binding.target is not None
            and (
                binding.thread_id == thread_id
                if type(thread_id) is int
                else isinstance(name, str) and is_called(binding, name)
            )
        ]
        if not found:
            raise Refusal("unavailable", "there is no such Thread of another worker")
        if len(found) > 1:
            raise Refusal("ambiguous", "several Threads have that name")
        if self.registry.live(found[0].binding_key) is None:
            raise Refusal("not-live", "the worker of that Thread is not running")
        target = found[0].target
        assert target is not None
        return dict(target.as_json())

    @deferred
    async def route_agent_message(
        self, link: IFollowerLink, request_id: str, message: dict[str, Any]
    ) -> dict[str, Any]:
        """See L{IBusLeader.route_agent_message}; this leader does not offer it."""
        raise Refusal("unavailable", "this leader does not pass messages between workers")

    @deferred
    async def rename_thread(
        self, link: IFollowerLink, target: dict[str, int] | None, name: str
    ) -> dict[str, Any]:
        """See L{IBusLeader.rename_thread}."""
        follower = self._capable(link, RENAME)
        place = TelegramTarget.from_json(target)
        key = follower.binding_key
        try:
            title, manual = await self.threads.rename(key, place, name, at_work(follower.state))
        except Refusal as refusal:
            found = refusal.fields
            if says_no_thread(found.get("errorCode"), found.get("description")):
                self._examine(key)
                raise Refusal("unavailable", "Telegram does not find this Thread") from None
            raise
        return {"displayTitle": title, "manualName": manual}

    @deferred
    async def set_display_mode(
        self, link: IFollowerLink, target: dict[str, int] | None, mode: str
    ) -> dict[str, Any]:
        """See L{IBusLeader.set_display_mode}: for all Threads of the profile."""
        follower = self._capable(link, DISPLAY_MODE)
        place = TelegramTarget.from_json(target)
        if place is not None and place != self.places.target_of(follower.binding_key):
            raise Refusal("not-allowed", "this Thread is not this worker's any more")
        try:
            return {"mode": await self.titles.choose(mode)}
        except (ConfigError, OwnershipError, UnsafeFile, OSError) as error:
            self._log.warn("the display mode was not stored: {why}", why=type(error).__name__)
            raise Refusal("unavailable", "telegram.json cannot be written just now") from None

    @deferred
    async def set_setting(self, link: IFollowerLink, name: str, value: Any) -> dict[str, Any]:
        """See L{IBusLeader.set_setting}."""
        self._capable(link, SETTINGS)
        return {"settings": await self.settings.set(name, value)}

    def _capable(self, link: IFollowerLink, capability: str) -> Follower:
        follower = self.registry.of_link(link)
        if capability not in link.capabilities:
            raise Refusal("not-allowed", f"this needs the capability {capability}")
        return follower


def _messages(result: Any) -> list[dict[str, Any]]:
    """The messages of a send's result: one, or a group."""
    found = result if isinstance(result, list) else [result]
    return [
        each for each in found if isinstance(each, dict) and type(each.get("message_id")) is int
    ]

"""C{getUpdates} with its one waiting poll, and the webhook methods that exclude it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from pitelegram.sandbox.errors import (
    OTHER_POLLER,
    UNAUTHORIZED,
    WEBHOOK_ACTIVE,
    WEBHOOK_SET,
    ApiError,
    bad_request,
    conflict,
)
from pitelegram.sandbox.parameters import Parameters
from pitelegram.sandbox.world import World

MAX_LIMIT = 100
MAX_TIMEOUT = 50
WAKE_DELAY = 0.002
CONFLICT_PAUSE = 3.0
SAME_OFFSET_WAIT = 3.0
SAME_OFFSET_CROWD = 0.5


@attrs.define(eq=False)
class _Waiting:
    offset: int
    limit: int
    done: Deferred[list[dict[str, Any]]]
    timer: IDelayedCall
    wake: IDelayedCall | None = None


class Poller:
    """At most one poll waits; a later one that has to wait ends it with 409.

    A poll whose connection died goes on waiting here, as in the real server.

    @ivar webhook: the address that C{setWebhook} stored, empty for none (nothing is sent there).
    """

    def __init__(self, world: World, clock: IReactorTime) -> None:
        self._world = world
        self._clock = clock
        self._waiting: _Waiting | None = None
        self._late: dict[Deferred[list[dict[str, Any]]], IDelayedCall] = {}
        self._next_conflict = 0.0
        self._last_offset: int | None = None
        self._last_start = 0.0
        self.webhook = ""
        world.updates.pushed = self._pushed

    def methods(self) -> dict[str, Callable[[World, Parameters], Any]]:
        """Return the methods by name."""
        return {
            "getUpdates": self._get_updates,
            "setWebhook": self._set_webhook,
            "deleteWebhook": self._delete_webhook,
            "getWebhookInfo": self._webhook_info,
        }

    @property
    def waiting(self) -> bool:
        """Whether a poll waits now."""
        return self._waiting is not None

    def poll(self, offset: int, limit: int, timeout: int) -> Deferred[list[dict[str, Any]]]:
        """Confirm and return updates, or wait for the first one.

        @raise ApiError: 409 when displaced later.
        """
        limit = min(max(limit, 1), MAX_LIMIT)
        timeout = min(max(timeout, 0), MAX_TIMEOUT)
        limit, timeout = self._slowed(offset, limit, timeout)
        batch = self._world.updates.take(offset, limit)
        if batch or not timeout:
            return succeed(batch)
        self.abort(conflict(OTHER_POLLER))
        done: Deferred[list[dict[str, Any]]] = Deferred()
        timer = self._clock.callLater(timeout, self._finish)
        self._waiting = _Waiting(offset, limit, done, timer)
        return done

    def _slowed(self, offset: int, limit: int, timeout: int) -> tuple[int, int]:
        now = self._clock.seconds()
        if offset == self._last_offset:
            if now - self._last_start < SAME_OFFSET_WAIT:
                timeout = max(timeout, 3)
            if now - self._last_start < SAME_OFFSET_CROWD:
                limit = 1
        self._last_offset, self._last_start = offset, now
        return limit, timeout

    def abort(self, error: ApiError) -> None:
        """End the waiting poll; conflicts that follow each other soon are told late."""
        waiting = self._take_waiting()
        if waiting is None:
            return
        now = self._clock.seconds()
        if error.code == 409 and now < self._next_conflict:
            self._late[waiting.done] = self._clock.callLater(
                CONFLICT_PAUSE, self._tell_late, waiting.done, error
            )
            return
        if error.code == 409:
            self._next_conflict = now + CONFLICT_PAUSE
        waiting.done.errback(error)

    def stop(self) -> None:
        """Drop the waiting poll and every timer."""
        self._take_waiting()
        for timer in self._late.values():
            timer.cancel()
        self._late.clear()

    def revoke(self) -> None:
        """End the waiting poll since its token is no longer valid."""
        self.abort(ApiError(*UNAUTHORIZED))

    def _tell_late(self, done: Deferred[list[dict[str, Any]]], error: ApiError) -> None:
        del self._late[done]
        done.errback(error)

    def _take_waiting(self) -> _Waiting | None:
        waiting, self._waiting = self._waiting, None
        for call in (waiting.timer, waiting.wake) if waiting else ():
            if call is not None and call.active():
                call.cancel()
        return waiting

    def _pushed(self) -> None:
        if self._waiting is not None and self._waiting.wake is None:
            self._waiting.wake = self._clock.callLater(WAKE_DELAY, self._finish)

    def _finish(self) -> None:
        waiting = self._take_waiting()
        if waiting is not None:
            waiting.done.callback(self._world.updates.take(waiting.offset, waiting.limit))

    def _get_updates(self, world: World, parameters: Parameters) -> Any:
        offset = parameters.integer("offset", 0)
        limit = parameters.integer("limit", MAX_LIMIT)
        timeout = parameters.integer("timeout", 0)
        allowed = parameters.json("allowed_updates", list)
        if self.webhook:
            raise conflict(WEBHOOK_ACTIVE)
        if allowed is not None:
            world.updates.allow(allowed)
        return self.poll(offset, limit, timeout)

    def _set_webhook(self, world: World, parameters: Parameters) -> bool:
        parameters.ignore("secret_token", "max_connections", "ip_address", "certificate")
        url = parameters.text("url")
        allowed = parameters.json("allowed_updates", list)
        if url and not url.startswith("https://"):
            raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        if allowed is not None:
            world.updates.allow(allowed)
        if parameters.boolean("drop_pending_updates"):
            world.updates.clear()
        self.webhook = url
        if url:
            self.abort(conflict(WEBHOOK_SET))
        return True

    def _delete_webhook(self, world: World, parameters: Parameters) -> bool:
        if parameters.boolean("drop_pending_updates"):
            world.updates.clear()
        self.webhook = ""
        return True

    def _webhook_info(self, world: World, parameters: Parameters) -> dict[str, Any]:
        info: dict[str, Any] = {
            "url": self.webhook,
            "has_custom_certificate": False,
            "pending_update_count": len(world.updates.pending()),
        }
        if world.updates.named is not None:
            info["allowed_updates"] = list(world.updates.named)
        return info

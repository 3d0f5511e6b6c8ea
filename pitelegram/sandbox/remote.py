"""The control API: what a test in another process may order and ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.web.http import Request

from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.sandbox.actions import ACTIONS
from pitelegram.sandbox.apidoor import ApiDoor, send_bytes
from pitelegram.sandbox.chat import SandboxChat
from pitelegram.sandbox.faults import Faults
from pitelegram.sandbox.guard import refuse, same
from pitelegram.sandbox.website import send_result
from pitelegram.sandbox.world import Event

HEADER = "X-Sandbox-Control"
MAX_WAIT = 60.0
MAX_BODY = 80 * 1024 * 1024


class IsSwitched(Protocol):
    """Something that can be taken off the network."""

    def go_offline(self) -> None:
        """Refuse and drop API connections."""

    def go_online(self) -> None:
        """Listen again."""


@attrs.define(eq=False)
class _Waiter:
    request: Request
    since: int
    timer: IDelayedCall


class Remote:
    """Answers C{/control/*} for whoever has the control token (L{HEADER}).

    C{POST do} performs an action, C{POST fault} orders one (C{{"clear": true}} takes all back),
    C{POST offline} and C{online} switch the network, C{GET messages?thread=N|none|any} lists, C{GET
    calls} lists what the bot called, C{GET wait?since=SEQ&timeout=S} answers as soon as something
    happened after that event.
    """

    def __init__(
        self,
        chat: SandboxChat,
        door: ApiDoor,
        faults: Faults,
        switch: IsSwitched,
        clock: IReactorTime,
        token: str,
    ) -> None:
        self.token = token
        self._chat = chat
        self._door = door
        self._faults = faults
        self._switch = switch
        self._clock = clock
        self._waiters: list[_Waiter] = []
        self._stop_observing: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin to hear what happens."""
        self._stop_observing = self._chat.world.observe(self._tell)

    def stop(self) -> None:
        """Answer everybody who waits."""
        if self._stop_observing is not None:
            self._stop_observing()
        self._stop_observing = None
        for waiter in list(self._waiters):
            self._release(waiter)

    def handle(self, request: Request, name: str) -> None:
        """Answer a request below C{/control/}."""
        if not same(request.getHeader(HEADER), self.token):
            refuse(request, 404)
            return
        body = request.content.read(MAX_BODY) if request.content else b""
        if request.method == b"POST" and name == "do":
            send_result(request, self._chat, body, ACTIONS)
        elif request.method == b"POST":
            self._order(request, name, body)
        elif request.method == b"GET" and name == "wait":
            self._wait(request)
        elif request.method == b"GET":
            self._show(request, name)
        else:
            refuse(request, 405)

    def _order(self, request: Request, name: str, body: bytes) -> None:
        try:
            order = loads(body or b"{}")
            if name == "fault" and order.pop("clear", False):
                self._faults.clear()
            elif name == "fault":
                self._faults.add(order.pop("method"), order.pop("kind"), **order)
            elif name == "offline":
                self._switch.go_offline()
            elif name == "online":
                self._switch.go_online()
            else:
                refuse(request, 404)
                return
        except (ValueError, TypeError, KeyError, AttributeError):
            _answer(request, {"ok": False, "error": "malformed"}, 400)
            return
        _answer(request, {"ok": True})

    def _show(self, request: Request, name: str) -> None:
        world, chat = self._chat.world, self._chat.chat
        if name == "messages":
            thread = _thread(request)
            found = self._chat.messages(thread, service=True)
            shown = [world.seen(chat, message) for message in found]
            _answer(request, {"seq": world.seq, "messages": shown})
        elif name == "threads":
            shown = [thread.seen() for thread in self._chat.threads]
            _answer(request, {"seq": world.seq, "threads": shown})
        elif name == "calls":
            calls = [attrs.asdict(call) for call in self._door.calls]
            _answer(request, {"calls": calls, "warnings": list(world.warnings)})
        elif name == "updates":
            pending = world.updates.pending()
            _answer(request, {"next_id": world.updates.next_id, "pending": pending})
        else:
            refuse(request, 404)

    def _wait(self, request: Request) -> None:
        since = _number(request, "since", 0)
        seconds = min(_number(request, "timeout", 25), MAX_WAIT)
        timer = self._clock.callLater(seconds, lambda: self._release(waiter))
        waiter = _Waiter(request, int(since), timer)
        self._waiters.append(waiter)
        request.notifyFinish().addErrback(lambda _: self._forget(waiter))
        if self._chat.world.seq > waiter.since or not seconds:
            self._release(waiter)

    def _tell(self, event: Event) -> None:
        for waiter in list(self._waiters):
            self._release(waiter)

    def _release(self, waiter: _Waiter) -> None:
        self._forget(waiter)
        events = self._chat.events_after(waiter.since)
        _answer(waiter.request, {"seq": self._chat.world.seq, "events": events})

    def _forget(self, waiter: _Waiter) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        if waiter.timer.active():
            waiter.timer.cancel()


def _answer(request: Request, value: Any, code: int = 200) -> None:
    send_bytes(request, code, "application/json", dumps(value))


def _argument(request: Request, name: str) -> str:
    given: dict[bytes, list[bytes]] = request.args or {}
    values = given.get(name.encode(), [b""])
    return values[0].decode("utf-8", "replace")


def _number(request: Request, name: str, default: float) -> float:
    try:
        return max(0.0, float(_argument(request, name)))
    except ValueError:
        return default


def _thread(request: Request) -> int | None | str:
    value = _argument(request, "thread")
    if value.isascii() and value.isdigit():
        return int(value)
    return None if value == "none" else "any"

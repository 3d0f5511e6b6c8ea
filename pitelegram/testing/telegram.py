"""A sandbox Telegram for tests: in the same process, or in another one over its control API."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import treq
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.web.client import Agent, HTTPConnectionPool

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.records import Message
from pitelegram.sandbox.remote import HEADER
from pitelegram.sandbox.server import SandboxTelegram
from pitelegram.sandbox.world import Event

DEADLINE = 30.0


class Sandbox(SandboxTelegram):
    """A sandbox in the test's own process, with waiting.

    Start it with C{startService} and give C{stopService} to C{addCleanup}.
    """

    def __init__(self, reactor: Any, clock: IReactorTime | None = None, **options: Any) -> None:
        random = options.pop("random", None) or Random(20)
        super().__init__(reactor, clock or reactor, random, **options)
        self._wall: IReactorTime = reactor

    def when_event(
        self, wanted: Callable[[Event], Any], timeout: float = DEADLINE
    ) -> Deferred[Event]:
        """Fire with the next event for which C{wanted} is true."""
        found: Deferred[Event] = Deferred()

        def look(event: Event) -> None:
            if not found.called and wanted(event):
                found.callback(event)

        stop = self.chat.world.observe(look)

        def done(result: Any) -> Any:
            stop()
            return result

        return found.addTimeout(timeout, self._wall).addBoth(done)

    def when_message(
        self,
        wanted: Callable[[Message], Any],
        timeout: float = DEADLINE,
        thread: int | None | str = "any",
    ) -> Deferred[Message]:
        """Fire with the first message of the bot, there already or to come, that is C{wanted}.

        An edit counts too.
        """

        def find() -> Message | None:
            return next((m for m in self.chat.from_bot(thread) if wanted(m)), None)

        return self.when(find, timeout)

    def press(self, label: str, thread: int | None | str = "any") -> str:
        """The owner presses the newest button of that label; return the callback query's id.

        @raise LookupError: if no message has it.
        """
        for message in reversed(self.chat.from_bot(thread)):
            if any(button["text"] == label for row in message.keyboard for button in row):
                return self.chat.user_presses(message.message_id, label=label)
        raise LookupError(f"no message has a button {label!r}")

    @deferred
    async def when(self, find: Callable[[], Any], timeout: float = DEADLINE) -> Any:
        """Fire with what C{find} returns as soon as it is true; it is asked at each event.

        @raise twisted.internet.defer.TimeoutError: when it does not come.
        """
        found = find()
        if not found:
            await self.when_event(lambda event: find(), timeout)
            found = find()
        return found


class SandboxClient:
    """The control API of a sandbox in another process.

    @param addresses: the JSON line that it printed at its start.
    """

    def __init__(self, reactor: Any, addresses: dict[str, Any]) -> None:
        self.addresses = addresses
        self._reactor = reactor
        self._pool = HTTPConnectionPool(reactor, persistent=False)
        self._http = treq.client.HTTPClient(Agent(reactor, pool=self._pool))

    def act(self, action: str, **arguments: Any) -> Deferred[Any]:
        """Make somebody do something (L{pitelegram.sandbox.actions}); fires with the result."""
        order = {"action": action, **arguments}
        return self._post("do", order).addCallback(lambda answer: answer["result"])

    def send(self, text: str, thread: int | None = None, **arguments: Any) -> Deferred[Any]:
        """The owner writes; fires with C{message_id} and C{thread_id}."""
        return self.act("send", text=text, thread=thread, **arguments)

    def press(self, message_id: int, label: str) -> Deferred[Any]:
        """The owner presses a button; fires with C{callback_id}."""
        return self.act("press", message_id=message_id, label=label)

    def fault(self, method: str, kind: str, **options: Any) -> Deferred[Any]:
        """Order a fault (L{pitelegram.sandbox.faults})."""
        return self._post("fault", {"method": method, "kind": kind, **options})

    def clear_faults(self) -> Deferred[Any]:
        """Take all faults back."""
        return self._post("fault", {"clear": True})

    def offline(self, offline: bool = True) -> Deferred[Any]:
        """Take the Bot API off the network, or bring it back."""
        return self._post("offline" if offline else "online", {})

    def messages(self, thread: int | None | str = "any") -> Deferred[list[dict[str, Any]]]:
        """Fire with the owner's messages, service messages among them, oldest first."""
        where = "none" if thread is None else str(thread)
        return self._get(f"messages?thread={where}").addCallback(lambda answer: answer["messages"])

    def threads(self) -> Deferred[list[dict[str, Any]]]:
        """Fire with the living Threads."""
        return self._get("threads").addCallback(lambda answer: answer["threads"])

    def calls(self, method: str | None = None) -> Deferred[list[dict[str, Any]]]:
        """Fire with the Bot API calls that came in, of one method or of all."""
        return self._get("calls").addCallback(
            lambda answer: [c for c in answer["calls"] if method in (None, c["method"])]
        )

    @deferred
    async def when_message(
        self,
        wanted: Callable[[dict[str, Any]], Any],
        timeout: float = DEADLINE,
        thread: int | None | str = "any",
    ) -> dict[str, Any]:
        """Fire with the first message, there already or to come, that is C{wanted}.

        @raise TimeoutError: when it does not come.
        """
        where = "none" if thread is None else str(thread)
        end = self._reactor.seconds() + timeout
        while True:
            answer = await self._get(f"messages?thread={where}")
            for message in answer["messages"]:
                if wanted(message):
                    return message
            left = end - self._reactor.seconds()
            if left <= 0:
                raise TimeoutError("no such message came")
            await self._get(f"wait?since={answer['seq']}&timeout={left:.3f}")

    def close(self) -> Deferred[None]:
        """Drop the connections."""
        return self._pool.closeCachedConnections()

    def _post(self, name: str, body: dict[str, Any]) -> Deferred[Any]:
        return self._request("POST", name, json=body)

    def _get(self, name: str) -> Deferred[Any]:
        return self._request("GET", name)

    @deferred
    async def _request(self, method: str, name: str, **options: Any) -> Any:
        url = self.addresses["control_root"] + name
        headers = {HEADER: self.addresses["control_token"]}
        response = await self._http.request(method, url, headers=headers, **options)
        answer = await response.json()
        if response.code != 200:
            raise RuntimeError(f"the sandbox refused {name}: {answer.get('error')}")
        return answer

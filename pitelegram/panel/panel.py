"""The panel: C{/daemon}, its buttons, and everything written into the Control Thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.botapi.interfaces import IBotApi, ISendGate
from pitelegram.botapi.limits import call_in_turn
from pitelegram.delivery.interfaces import IDelivery
from pitelegram.errors import PiTelegramError, TelegramError
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.panel import screens
from pitelegram.panel.interfaces import IStatusSource
from pitelegram.panel.screens import Screen
from pitelegram.routing.interfaces import IDaemonTarget, INotices
from pitelegram.store.interfaces import IBindings
from pitelegram.supervisor.interfaces import ISupervisor, WorkerView

COMMANDS = ("/daemon", "/workers", "/start", "/help")
"""Commands the daemon answers outside workers' Threads."""

TOAST_LIMIT = 200
"""Characters of a callback answer (Bot API)."""

Act = Callable[["Panel", str], Awaitable[tuple[str, Screen | None]]]


@implementer(IDaemonTarget)
@attrs.define(eq=False, kw_only=True)
class Panel:
    """Answers what is the daemon's own.

    Lifecycle actions run in the background: the button is answered at once, and the roster is
    rendered again when the action ended.  What is written goes under the chat's rate budget.

    @ivar gate: that budget.
    """

    api: IBotApi
    gate: ISendGate
    supervisor: ISupervisor
    bindings: IBindings
    delivery: IDelivery
    notices: INotices
    source: IStatusSource
    _log: Logger = Logger()

    def wants(self, kind: str, update: dict[str, Any], binding: Any | None) -> bool:
        """See L{IDaemonTarget.wants}."""
        if kind == "callback_query":
            data = update["callback_query"].get("data")
            return isinstance(data, str) and data.startswith(("ptd:", "ob:"))
        if kind != "message":
            return binding is not None and binding.kind == "daemon"
        message = update["message"]
        if binding is not None and binding.kind == "daemon":
            return True
        in_all = message.get("message_thread_id") is None
        command = command_of(message)
        if command == "/daemon":
            return in_all or binding is None
        return binding is None and command in COMMANDS

    @deferred
    async def handle(self, kind: str, update: dict[str, Any]) -> None:
        """See L{IDaemonTarget.handle}."""
        if kind == "callback_query":
            await self._pressed(update["callback_query"])
        elif kind == "message":
            await self._written(update["message"])

    async def _written(self, message: dict[str, Any]) -> None:
        command = command_of(message)
        if command == "/workers":
            screen = screens.workers(self.supervisor.views())
        elif command in COMMANDS:
            screen = screens.menu()
        elif _is_service(message):
            return
        else:
            screen = screens.menu("This Thread is the daemon's own. Write to a worker's Thread.")
        params = {**_place(message), **screen.as_params()}
        try:
            await call_in_turn(self.api, self.gate, "sendMessage", params)
        except TelegramError as error:
            self._log.info("panel not shown: {code}", code=error.code)

    async def _pressed(self, query: dict[str, Any]) -> None:
        verb, _, argument = query["data"].partition(":")[2].partition(":")
        if query["data"].startswith("ob:"):
            verb = "ob"
            argument = query["data"].rpartition(":")[2]
        act = ACTS.get(verb)
        if act is None:
            toast, screen = "That button is from an older panel.", screens.menu()
        else:
            toast, screen = await self._acted(act, argument)
        # What Telegram makes of the answer must not hold the action up.
        ending = self._begin_life(LIFE_VERBS[verb], argument) if verb in LIFE_VERBS else None
        await self._answer(query, toast)
        if screen is not None:
            await self._show(query, screen)
        if ending is not None:
            spawn(self._log, "showing how a panel action ended", self._show_end(query, ending))

    async def _acted(self, act: Act, argument: str) -> tuple[str, Screen | None]:
        """Do what a button does; whatever goes wrong, the press gets its answer."""
        try:
            return await act(self, argument)
        except PiTelegramError as error:
            return f"⚠️ {error}", screens.workers(self.supervisor.views())
        except CancelledError:
            raise
        except Exception:
            self._log.failure("a panel button failed")
            return "⚠️ That failed; the log has the reason.", None

    def _begin_life(self, verb: str, spec_id: str) -> Deferred[str | None] | None:
        """Begin a lifecycle action; fires with what is to be said about it."""
        if self._view(spec_id) is None:
            return None
        return spawn(self._log, "a panel action", self._live(verb, spec_id))

    async def _live(self, verb: str, spec_id: str) -> str:
        try:
            if verb == "stop":
                await self.supervisor.stop(spec_id, "operator")
            else:
                await self.supervisor.restart(spec_id, "operator")
        except PiTelegramError as error:
            return f"⚠️ {error}"
        return ""

    async def _show_end(self, query: dict[str, Any], ending: Deferred[str | None]) -> None:
        note = await ending
        if note is None:
            note = "⚠️ That failed; the log has the reason."
        await self._show(query, screens.workers(self.supervisor.views(), 0, note))

    async def _answer(self, query: dict[str, Any], toast: str) -> None:
        params: dict[str, Any] = {"callback_query_id": query["id"]}
        if toast:
            params["text"] = screens.clip(toast, TOAST_LIMIT)
        try:
            await self.api.call("answerCallbackQuery", params)
        except TelegramError as error:
            # A late answer is refused; the action counts all the same.
            self._log.debug("callback not answered: {code}", code=error.code)

    async def _show(self, query: dict[str, Any], screen: Screen) -> None:
        message = query.get("message")
        if not message:
            return
        where = {"chat_id": message["chat"]["id"], "message_id": message["message_id"]}
        try:
            params = {**where, **screen.as_params()}
            await call_in_turn(self.api, self.gate, "editMessageText", params)
        except TelegramError as error:
            self._log.info("panel not re-rendered: {code}", code=error.code)

    def _view(self, spec_id: str) -> WorkerView | None:
        return next((v for v in self.supervisor.views() if v.spec_id == spec_id), None)

    # --- what the buttons do: (toast, screen) ------------------------------------------------

    async def _menu(self, _: str) -> tuple[str, Screen]:
        return "", screens.menu()

    async def _close(self, _: str) -> tuple[str, Screen]:
        return "", screens.closed()

    async def _roster(self, page: str) -> tuple[str, Screen]:
        number = int(page) if page.isdecimal() and len(page) < 6 else 0
        return "", screens.workers(self.supervisor.views(), number)

    async def _status(self, _: str) -> tuple[str, Screen]:
        return "", screens.status(self.source.status())

    async def _new(self, _: str) -> tuple[str, Screen]:
        return "", screens.new_worker()

    async def _ask(self, spec_id: str, verb: str) -> tuple[str, Screen]:
        view = self._view(spec_id)
        if view is None:
            return "That worker is gone.", screens.workers(self.supervisor.views())
        if verb == "stop" and view.state == "stopped":
            return f"{view.name} is stopped already.", screens.workers(self.supervisor.views())
        return "", screens.confirm(view, verb)

    async def _ask_stop(self, spec_id: str) -> tuple[str, Screen]:
        return await self._ask(spec_id, "stop")

    async def _ask_restart(self, spec_id: str) -> tuple[str, Screen]:
        return await self._ask(spec_id, "restart")

    async def _begin(self, spec_id: str, words: str) -> tuple[str, Screen]:
        view = self._view(spec_id)
        toast = "That worker is gone." if view is None else f"{words} {view.name}…"
        return toast, screens.workers(self.supervisor.views())

    async def _stop(self, spec_id: str) -> tuple[str, Screen]:
        return await self._begin(spec_id, "Stopping")

    async def _restart(self, spec_id: str) -> tuple[str, Screen]:
        return await self._begin(spec_id, "Restarting")

    async def _wait(self, spec_id: str) -> tuple[str, Screen]:
        if self._view(spec_id) is not None:
            self.supervisor.keep_waiting(spec_id)
        return "Waiting on.", screens.workers(self.supervisor.views())

    async def _locate(self, spec_id: str) -> tuple[str, Screen | None]:
        view = self._view(spec_id)
        binding = None if view is None else self.bindings.get(view.binding_key)
        if view is None or binding is None or binding.target is None:
            return "This worker has no Thread yet.", None
        await self.notices.post(view.binding_key, f"📍 {view.name} is here.")
        return "A marker is on its way into that Thread.", None

    async def _again(self, key: str) -> tuple[str, None]:
        sent = await self.delivery.again(key)
        return ("Sending it again." if sent else "Nothing to send again."), None


ACTS: dict[str, Act] = {
    "m": Panel._menu,
    "x": Panel._close,
    "w": Panel._roster,
    "t": Panel._status,
    "b": Panel._new,
    "z": Panel._ask_stop,
    "r": Panel._ask_restart,
    "y": Panel._stop,
    "n": Panel._restart,
    "k": Panel._wait,
    "l": Panel._locate,
    "ob": Panel._again,
}
"""What each verb of the callback data does."""

LIFE_VERBS = {"y": "stop", "n": "restart"}
"""Verbs that go on in the background."""


def command_of(message: dict[str, Any]) -> str | None:
    """Return the command at the start of a message, lower case and without C{@bot}."""
    text = message.get("text")
    if not isinstance(text, str) or not text.startswith("/"):
        return None
    return text.split(None, 1)[0].partition("@")[0].lower()


def _is_service(message: dict[str, Any]) -> bool:
    return any(key.startswith("forum_topic_") or key == "pinned_message" for key in message)


def _place(message: dict[str, Any]) -> dict[str, int]:
    place = {"chat_id": message["chat"]["id"]}
    if message.get("message_thread_id") is not None:
        place["message_thread_id"] = message["message_thread_id"]
    return place

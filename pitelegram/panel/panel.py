"""The panel: C{/daemon}, its buttons, and everything written into the Control Thread."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.botapi.interfaces import IBotApi, ISendGate
from pitelegram.delivery.interfaces import IDelivery
from pitelegram.errors import PiTelegramError
from pitelegram.ids import managed_binding
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.panel import screens
from pitelegram.panel.cleaning import Cleaning
from pitelegram.panel.interfaces import (
    ICleanup,
    IDirectories,
    IStatusSource,
    ITitleModes,
)
from pitelegram.panel.picking import Picker
from pitelegram.panel.renderer import OWNER, Renderer, place_of
from pitelegram.panel.reply import Act, Reply
from pitelegram.panel.roster import Roster
from pitelegram.panel.screens import Screen
from pitelegram.panel.texts import Texts
from pitelegram.routing.interfaces import IDaemonTarget, INotices
from pitelegram.store.interfaces import IBindings
from pitelegram.store.pickers import Pickers
from pitelegram.store.rows import Binding
from pitelegram.supervisor.interfaces import ISupervisor
from pitelegram.targets import TelegramTarget
from pitelegram.threads.interfaces import IAttaching

COMMANDS = ("/daemon", "/workers", "/attach", "/detach", "/start", "/help")
"""Commands the daemon answers outside workers' Threads."""

OFFERED = ("r", "f", "k")
"""Verbs that may stand on a message about a worker, for that worker: two ask, one waits on."""

OLDER = "That button is from an older panel."


@implementer(IDaemonTarget)
class Panel:
    """Answers what is the daemon's own.

    Only the owner gets here (the admission sees to it), each callback at most once (the router
    does).  A button counts only on a message that this program sent.

    @param gate: the rate budget of the chat.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        api: IBotApi,
        gate: ISendGate,
        supervisor: ISupervisor,
        bindings: IBindings,
        delivery: IDelivery,
        notices: INotices,
        source: IStatusSource,
        directories: IDirectories,
        pickers: Pickers,
        attaching: IAttaching,
        cleanup: ICleanup,
        titles: ITitleModes,
    ) -> None:
        self.supervisor = supervisor
        self.delivery = delivery
        self._source = source
        self._attaching = attaching
        self._renderer = Renderer(api, gate, bindings)
        self._roster = roster = Roster(supervisor, bindings, notices, attaching)
        picker = Picker(directories, pickers, supervisor, roster.screen)
        self._texts = Texts(supervisor, picker, attaching, roster.screen)
        cleaning = Cleaning(cleanup, titles)
        self._acts: dict[str, Act] = {
            "m": self._menu,
            "x": self._close,
            "t": self._status,
            "w": roster.show,
            "z": roster.ask_stop,
            "r": roster.ask_restart,
            "y": roster.stop,
            "n": roster.restart,
            "k": roster.keep_waiting,
            "f": roster.ask_fresh,
            "fx": roster.fresh,
            "l": roster.locate,
            "c": roster.serve,
            "b": lambda _: picker.begin(),
            "d": picker.open,
            "s": picker.ask,
            "g": picker.start,
            "th": cleaning.show,
            "tr": cleaning.review,
            "td": cleaning.ask,
            "tx": cleaning.delete,
            "tf": cleaning.flip,
            "tt": cleaning.titles,
            "ts": cleaning.retitle,
        }

    @property
    def verbs(self) -> frozenset[str]:
        """The verbs of callback data that mean something."""
        return frozenset(self._acts)

    def wants(self, kind: str, update: dict[str, Any], binding: Binding | None) -> bool:
        """See L{IDaemonTarget.wants}."""
        if kind == "callback_query":
            data = update["callback_query"].get("data")
            return isinstance(data, str) and data.startswith(("ptd:", "ob:"))
        if kind != "message":
            return binding is not None and binding.kind == "daemon"
        message = update["message"]
        if binding is not None and binding.kind == "daemon":
            return True
        return self._wants_command(message, binding)

    def _wants_command(self, message: dict[str, Any], binding: Binding | None) -> bool:
        command = command_of(message)
        if command not in COMMANDS:
            return False
        if binding is None:
            return True
        in_all = message.get("message_thread_id") is None
        if command in ("/attach", "/detach"):
            # Classic mode: the chat itself; else a Thread that a worker is only a guest in.
            return in_all or self._attaching.is_attached(binding.binding_key)
        return command == "/daemon" and in_all

    @deferred
    async def handle(self, kind: str, update: dict[str, Any]) -> None:
        """See L{IDaemonTarget.handle}."""
        if kind == "callback_query":
            await self._pressed(update["callback_query"])
        elif kind == "message":
            await self._written(update["message"])

    async def _written(self, message: dict[str, Any]) -> None:
        if _is_service(message):
            return
        reply = await self._guarded(self._reply_to_text(message))
        assert reply.screen is not None
        await self._renderer.send(place_of(message), reply.screen)

    async def _reply_to_text(self, message: dict[str, Any]) -> Reply:
        return Reply("", await self._screen_for(message))

    async def _screen_for(self, message: dict[str, Any]) -> Screen:
        command, text = command_of(message), str(message.get("text"))
        place = TelegramTarget(message["chat"]["id"], message.get("message_thread_id"))
        if command == "/workers":
            return await self._texts.workers(text, place)
        if command == "/attach":
            return await self._texts.attach(text, place)
        if command == "/detach":
            return await self._texts.detach(place)
        if command in COMMANDS:
            return screens.menu()
        return screens.menu("This Thread is the daemon's own. Write to a worker's Thread.")

    async def _pressed(self, query: dict[str, Any]) -> None:
        reply = await self._reply_to(query)
        # What Telegram makes of the answer must hold up neither the action nor the screen.
        ending: Deferred[Reply | None] | None = None
        if reply.later is not None:
            ending = spawn(self._log, "a panel action", self._guarded(reply.later()))
        answering = spawn(self._log, "answering a press", self._renderer.answer(query, reply))
        if reply.screen is not None:
            # Nor must the chat's budget, which many presses use up, hold up those that follow.
            spawn(self._log, "showing a screen", self._renderer.edit(query, reply.screen))
        await answering
        if ending is not None:
            spawn(self._log, "showing how a panel action ended", self._show_end(query, ending))

    async def _reply_to(self, query: dict[str, Any]) -> Reply:
        data = query["data"]
        issuer = self._renderer.issuer(query)
        if issuer is None:
            return Reply(OLDER, screens.menu())
        if data.startswith("ob:"):
            return await self._guarded(self._again(data.rpartition(":")[2]))
        verb, _, argument = data.partition(":")[2].partition(":")
        act = self._acts.get(verb)
        if issuer != OWNER and not (verb in OFFERED and managed_binding(argument) == issuer):
            # A worker may put any button on its messages; only its own keeper's questions count.
            act = None
        return Reply(OLDER, screens.menu()) if act is None else await self._guarded(act(argument))

    async def _guarded(self, acting: Awaitable[Reply]) -> Reply:
        """Whatever goes wrong, the operator gets an answer and the panel a way back."""
        try:
            return await acting
        except PiTelegramError as error:
            words = f"⚠️ {error}"
        except CancelledError:
            raise
        except Exception:
            self._log.failure("the panel failed")
            words = "⚠️ That failed; the log has the reason."
        return Reply(words, self._roster.screen(words), alert=True)

    async def _show_end(self, query: dict[str, Any], ending: Deferred[Reply | None]) -> None:
        reply = await ending
        if reply is not None:
            await self._renderer.end(query, reply)

    # --- what the plain buttons do --------------------------------------------------------------

    async def _menu(self, _: str) -> Reply:
        return Reply("", screens.menu())

    async def _close(self, _: str) -> Reply:
        return Reply("", screens.closed())

    async def _status(self, _: str) -> Reply:
        # The press that asks is under way itself.
        return Reply("", screens.status(self._source.status(), own=1))

    async def _again(self, key: str) -> Reply:
        sent = await self.delivery.again(key)
        return Reply("Sending it again." if sent else "Nothing to send again.")


def command_of(message: dict[str, Any]) -> str | None:
    """Return the command at the start of a message, lower case and without C{@bot}."""
    text = message.get("text")
    if not isinstance(text, str) or not text.startswith("/"):
        return None
    return text.split(None, 1)[0].partition("@")[0].lower()


def _is_service(message: dict[str, Any]) -> bool:
    return any(key.startswith("forum_topic_") or key == "pinned_message" for key in message)

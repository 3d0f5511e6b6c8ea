"""The messages of dialogs, remembered over the life of a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pitelegram.botapi.missing import says_no_message
from pitelegram.bridge.dialogs import WORKER_ENDED, closed
from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusBadRequest, BusError, Refusal
from pitelegram.kernel.deferring import spawn
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.worker_interfaces import IInbox

KEPT = 64
"""How many messages of dialogs that are over are remembered."""
RETRY_SECONDS = 15.0
PASSING = frozenset({"unavailable", "rate-limited", "commit-unknown"})
"""Refusals that another attempt may overcome."""

_KEY = "dialogs"


@attrs.define
class Trace:
    """One message of a dialog.

    @ivar state: C{open}, C{closing} (it still shows its buttons) or C{closed}.
    @ivar text: the question while it is open, then what the message is to say.
    @ivar lasting: it stays open when this process ends.
    @ivar thread_id: for a lasting one, where it is.
    @ivar key: for a lasting one, what its buttons carry.
    @ivar unseen: nobody answered in time, perhaps because the message is not there any more.
    """

    chat_id: int
    message_id: int
    takes_text: bool
    text: str
    state: str = "open"
    unseen: bool = False
    lasting: bool = False
    thread_id: int | None = None
    key: str = ""


class DialogTraces:
    """Closes the messages of dialogs that are over, however long that takes.

    A message whose worker died is closed by the next process of the binding.

    @param link: returns the registered link, None while there is none.
    @param unseen: called when a question that nobody answered turns out to have no message.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        inbox: IInbox,
        link: Callable[[], ILeaderLink | None],
        unseen: Callable[[], object],
    ) -> None:
        self._clock = clock
        self._inbox = inbox
        self._link = link
        self._unseen = unseen
        self._working: Deferred[Any] | None = None
        self._again: IDelayedCall | None = None
        self._wait = RETRY_SECONDS
        self._stopped = False
        stored = inbox.get_meta(_KEY)
        found: Any = [] if stored is None else loads(stored)
        self._traces = [Trace(**each) for each in found]
        for trace in self._traces:
            if trace.state == "open" and not trace.lasting:
                trace.state, trace.text = "closing", closed(trace.text, WORKER_ENDED)

    def find(self, chat_id: int | None, message_id: int | None) -> Trace | None:
        """Return what is known of a message."""
        return next(
            (
                trace
                for trace in self._traces
                if (trace.chat_id, trace.message_id) == (chat_id, message_id)
            ),
            None,
        )

    def lasting(self) -> list[Trace]:
        """Return the open ones that outlive the process."""
        return [trace for trace in self._traces if trace.lasting and trace.state == "open"]

    def opened(
        self,
        chat_id: int,
        message_id: int,
        takes_text: bool,
        body: str,
        lasting: bool = False,
        thread_id: int | None = None,
        key: str = "",
    ) -> None:
        """A dialog's message is in the Thread; see L{Trace}."""
        if self.find(chat_id, message_id) is None:
            trace = Trace(chat_id, message_id, takes_text, body)
            trace.lasting, trace.thread_id, trace.key = lasting, thread_id, key
            self._traces.append(trace)
            self._store()

    def over(self, chat_id: int, message_id: int, text: str, unseen: bool = False) -> None:
        """A dialog is over: its message is to say C{text}, without buttons."""
        trace = self.find(chat_id, message_id)
        if trace is not None and trace.state == "open":
            trace.state, trace.text, trace.unseen = "closing", text, unseen
            self._store()
            self.flush()

    def flush(self) -> None:
        """Close what is to be closed, as far as there is a link."""
        if self._again is not None and self._again.active():
            self._again.cancel()
        self._again = None
        if self._working is None and self._next() is not None:
            working = spawn(self._log, "closing dialogs", self._work())
            if not working.called:
                self._working = working

    def tidy(self) -> bool:
        """Whether no message waits to be closed."""
        return self._next() is None

    def stop(self) -> None:
        """Do not try again; the next process goes on."""
        self._stopped = True
        if self._again is not None and self._again.active():
            self._again.cancel()
        self._again = None

    def _next(self) -> Trace | None:
        return next((trace for trace in self._traces if trace.state == "closing"), None)

    async def _work(self) -> None:
        try:
            while (trace := self._next()) is not None:
                link = self._link()
                if link is None:
                    return
                if not await self._close(link, trace):
                    if not self._stopped:
                        self._again = self._clock.callLater(self._wait, self.flush)
                    return
                trace.state, trace.text = "closed", ""
                self._store()
        finally:
            self._working = None

    async def _close(self, link: ILeaderLink, trace: Trace) -> bool:
        """Edit one; False when it must be tried again.  A message that is gone counts as closed."""
        params = {
            "chat_id": trace.chat_id,
            "message_id": trace.message_id,
            "text": trace.text,
            "link_preview_options": {"is_disabled": True},
            "reply_markup": {"inline_keyboard": []},
        }
        try:
            await link.call_api("editMessageText", params)
        except Refusal as refusal:
            wait: Any = refusal.fields.get("retryAfter")
            self._wait = float(wait) if isinstance(wait, int | float) else RETRY_SECONDS
            fields = refusal.fields
            if trace.unseen and says_no_message(fields.get("errorCode"), fields.get("description")):
                self._unseen()
            return refusal.code not in PASSING and refusal.fields.get("errorCode") != 429
        except BusBadRequest:
            return True
        except BusError:
            return False
        return True

    def _store(self) -> None:
        """Remember what is open and closing, and the newest of those that are closed."""
        old = [trace for trace in self._traces if trace.state == "closed"][:-KEPT]
        self._traces = [trace for trace in self._traces if trace not in old]
        value = dumps([attrs.asdict(trace, filter=_told) for trace in self._traces]).decode()
        spawn(self._log, "remembering dialogs", self._inbox.set_meta(_KEY, value))


def _told(field: Any, value: Any) -> bool:
    """Whether a field says more than its default."""
    return bool(value != field.default)

"""C{/name}: the operator names the Thread that he writes in.

The bare command asks by a message with buttons.  That message is remembered with those of Pi's
questions (L{DialogTraces}), but outlives the process: the reply and the buttons work after a restart.
"""

from __future__ import annotations

import hashlib

from twisted.internet.defer import DeferredLock

from pitelegram.bridge import naming as words
from pitelegram.bridge.incoming import Asked, Command, Origin, Press, Prompt
from pitelegram.bridge.questions import read_press
from pitelegram.bus.handshake import RENAME
from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusError, Refusal
from pitelegram.worker.bestcalls import BestEffort
from pitelegram.worker.posting import Limited, Posted, Poster
from pitelegram.worker.registration import Registration
from pitelegram.worker.traces import DialogTraces, Trace

Place = dict[str, int]


class Naming:
    """Has the leader name the Thread, one wish after the other."""

    def __init__(
        self,
        registration: Registration,
        poster: Poster,
        traces: DialogTraces,
        calls: BestEffort,
    ) -> None:
        self._registration = registration
        self._poster = poster
        self._traces = traces
        self._calls = calls
        self._turn = DeferredLock()
        self._asking: dict[str, Place] = {}

    def offered(self) -> bool:
        """Whether the leader can do it."""
        link = self._registration.link
        return link is not None and RENAME in link.capabilities

    def ready(self) -> bool:
        """Whether there is a leader to ask."""
        return self._registration.link is not None

    def wants(self, asked: Asked, origin: Origin) -> bool:
        """Whether it is the command, or the answer to an open question for a name."""
        if isinstance(asked, Command):
            return asked.name == "name"
        if isinstance(asked, Press):
            button = read_press(asked.data)
            return button is not None and self._question(origin, origin.message_id, button.key)
        if isinstance(asked, Prompt):
            return self._question(origin, origin.reply_to, origin.reply_key, twins=True)
        return False

    async def do(self, asked: Asked, origin: Origin, name: str) -> str | None:
        """Do what L{wants} named; returns what the operator is told, if anything.

        @param name: stands for the update, over restarts.
        """
        await self._turn.acquire()
        try:
            if isinstance(asked, Command):
                return await self._command(asked.argument, origin, name)
            message_id = origin.message_id if isinstance(asked, Press) else origin.reply_to
            trace = self._traces.find(origin.chat_id, message_id)
            if trace is None or trace.state != "open":
                # It was settled while this waited for its turn.
                return self._too_late(asked)
            if isinstance(asked, Press):
                await self._pressed(asked, trace)
                return None
            if not isinstance(asked, Prompt) or not asked.plain:
                return words.TEXT_ONLY
            done, text = await self._rename(_place(trace), asked.text)
            if done:
                self._close(trace, text)
                self._close_all()
                return None
            return text
        finally:
            self._turn.release()

    def placed(self) -> None:
        """The worker has a link, or another Thread: what was asked elsewhere is over."""
        target = self._registration.target
        for trace in self._traces.lasting():
            if target is not None and _place(trace) != target:
                self._close(trace, words.MOVED)

    # --- inside ------------------------------------------------------------------------------

    async def _command(self, argument: str, origin: Origin, name: str) -> str | None:
        target = self._registration.target
        link = self._registration.link
        if link is not None and RENAME not in link.capabilities:
            return words.TOO_OLD
        if target is None or "threadId" not in target:
            return words.NO_THREADS
        if origin.chat_id is None or origin.thread_id is None:
            return words.WRONG_PLACE
        place = {"chatId": origin.chat_id, "threadId": origin.thread_id}
        if not argument:
            return await self._ask(place, hashlib.sha256(f"name\0{name}".encode()).hexdigest()[:12])
        done, text = await self._rename(place, argument)
        if done:
            self._close_all()
        return text

    async def _ask(self, place: Place, key: str) -> str | None:
        self._asking[key] = place
        try:
            markup = words.keyboard(key, self._registration.manual_name is not None)
            outcome = await self._poster.question(place, words.ASK, markup)
        finally:
            del self._asking[key]
        if isinstance(outcome, Posted):
            self._close_all(but=outcome.message_id)
            self._opened(place, outcome.message_id, key)
            return None
        return words.later(outcome.seconds) if isinstance(outcome, Limited) else words.HOW

    def _opened(self, place: Place, message_id: int, key: str) -> None:
        self._traces.opened(
            place["chatId"],
            message_id,
            True,
            words.ASK,
            lasting=True,
            thread_id=place["threadId"],
            key=key,
        )

    async def _pressed(self, press: Press, trace: Trace) -> None:
        button = read_press(press.data)
        if button is None or not words.wants_reset(button.action):
            self._close(trace, words.CANCELLED)
            self._calls.answer_callback(press.callback_id, words.toast(words.CANCELLED))
            return
        done, text = await self._rename(_place(trace), "")
        if done:
            self._close(trace, text)
        self._calls.answer_callback(press.callback_id, words.toast(text))

    async def _rename(self, place: Place, name: str) -> tuple[bool, str]:
        """Ask the leader; returns whether it was done, and what to say."""
        link: ILeaderLink | None = self._registration.link
        if link is None:
            return False, words.NOBODY_KNOWS
        try:
            result = await link.rename_thread(place, name)
        except Refusal as refusal:
            return False, words.refused(refusal)
        except BusError:
            return False, words.NOBODY_KNOWS
        title, manual = result.get("displayTitle"), result.get("manualName")
        if link is self._registration.link and self._registration.target == place:
            self._registration.renamed(title, manual)
        return True, words.done(str(title or ""), manual)

    def _question(
        self, origin: Origin, message_id: int | None, key: str | None, twins: bool = False
    ) -> bool:
        """Whether that message is an open question for a name, also while it is being asked.

        @param twins: also when it was asked a second time, because who asked first was killed
            before that was noted.
        """
        if message_id is None:
            return False
        trace = self._traces.find(origin.chat_id, message_id)
        if trace is not None:
            return trace.lasting and trace.state == "open"
        places = {each.key: _place(each) for each in self._traces.lasting()} if twins else {}
        place = {**places, **self._asking}.get(key or "")
        if place is None or place["chatId"] != origin.chat_id:
            return False
        self._opened(place, message_id, key or "")
        return True

    def _too_late(self, asked: Asked) -> str | None:
        if isinstance(asked, Press):
            self._calls.answer_callback(asked.callback_id, words.toast(words.REPLACED))
            return None
        return words.REPLACED

    def _close(self, trace: Trace, text: str) -> None:
        self._traces.over(trace.chat_id, trace.message_id, text)

    def _close_all(self, but: int | None = None) -> None:
        for trace in self._traces.lasting():
            if trace.message_id != but:
                self._close(trace, words.REPLACED)


def _place(trace: Trace) -> Place:
    place = {"chatId": trace.chat_id}
    if trace.thread_id is not None:
        place["threadId"] = trace.thread_id
    return place

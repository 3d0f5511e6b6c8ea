"""One part, sent once, and what became of it."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.botapi.interfaces import IBotApi, ISendGate, Upload
from pitelegram.botapi.missing import misplaced
from pitelegram.delivery.interfaces import IThreadLoss
from pitelegram.delivery.plain import Call, bare_calls, plain_calls
from pitelegram.delivery.spool import Spool
from pitelegram.delivery.takeback import TakeBack, Taken
from pitelegram.delivery.verdicts import Judgement, Verdict, judge
from pitelegram.errors import Fenced, StoreError, StoreFull, TelegramError, UnsafeFile
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import sleep
from pitelegram.store.interfaces import IBindings, IOutbox
from pitelegram.store.rows import OutboxPart
from pitelegram.targets import TelegramTarget

RETRIED_FOR_MS = 7 * 24 * 3_600_000
"""How long a part is retried, from its first attempt."""

MISPLACED_LIMIT = 3
"""After so many attempts a message that lands outside its Thread is left there."""


RECORD_LIMIT = 5
RECORD_WAIT = 1.0


class Step(enum.Enum):
    """What the sender does after one attempt."""

    NEXT = "look for the next part"
    BLOCKED = "the owner blocked the bot"
    UNAUTHORIZED = "the token was refused"


CLOSED_WAIT_MS = 3_600_000
"""How often a closed Thread is tried, in case nobody was told that it is open again."""


Announce = Callable[[str, str, str, str], None]
Closed = Callable[[str, TelegramTarget], Awaitable[None]]
Destination = Callable[[str], "TelegramTarget | None"]


class _Marking:
    """Marks a part C{sending}, once, however often a connection is made for it.

    @ivar problem: why it could not be marked; then nothing was sent.
    """

    def __init__(self, mark: Callable[[], Deferred[None]]) -> None:
        self._mark = mark
        self._marked = False
        self.problem: BaseException | None = None

    def begin(self) -> Deferred[None]:
        """There is a connection."""
        if self._marked:
            return succeed(None)
        self._marked = True
        return self._mark().addErrback(self._failed)

    def _failed(self, failure: Failure) -> Failure:
        self.problem = failure.value
        return failure


class Transmitter:
    """Sends one part to its binding's current target and records the outcome.

    C{sending} is committed when there is a connection, before the request is written: a part whose
    outcome was not recorded is known to be uncertain, and one that never got a connection is not.

    @param resend: whether uncertain sends are repeated (C{outbox.ambiguous}), asked each time.
    @param allowed: whether a chat is the paired owner's; nothing goes to another one.
    @param closed: told of a binding's Thread that the user closed.
    @param destination: where a binding's messages go; its own target unless given.
    @param announce: C{announce(binding_key, key, state, reason)} when a part is parked
        (C{uncertain}) or refused (C{dead_letter}).
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        outbox: IOutbox,
        bindings: IBindings,
        api: IBotApi,
        gate: ISendGate,
        losses: IThreadLoss,
        spool: Spool,
        takeback: TakeBack,
        *,
        resend: Callable[[], bool],
        allowed: Callable[[int], bool],
        announce: Announce,
        closed: Closed,
        destination: Destination | None = None,
    ) -> None:
        self._clock = clock
        self._outbox = outbox
        self._bindings = bindings
        self._api = api
        self._gate = gate
        self._losses = losses
        self._spool = spool
        self._takeback = takeback
        self._resend = resend
        self._allowed = allowed
        self._announce = announce
        self._closed = closed
        self._destination = self._own_target if destination is None else destination
        self._rich_unknown = False

    def target(self, binding_key: str) -> TelegramTarget | None:
        """Return where a binding's messages go now, None while they have to wait."""
        target = self._destination(binding_key)
        return target if target is not None and self._allowed(target.chat_id) else None

    def _own_target(self, binding_key: str) -> TelegramTarget | None:
        binding = self._bindings.get(binding_key)
        return None if binding is None else binding.target

    async def reshaped(self, part: OutboxPart) -> bool:
        """Whether a part had a form that Telegram is known not to have, and has another one now.

        Nothing is called for that, so nothing of the chat's budget is to be used up.
        """
        known = self._rich_unknown and part.call["method"] == "sendRichMessage"
        if known:
            await self._plain(part, "not-found")
        return known

    async def transmit(self, part: OutboxPart, backoff: Backoff) -> Step:
        """Send a part once."""
        target = self.target(part.binding_key)
        if target is None:
            return await self._later(part, 0, "no-target")
        try:
            files = self._spool.uploads(part.call)
        except UnsafeFile as problem:
            return await self._dead(part, f"spool-{problem.code}")
        return await self._call(part, target, files, backoff)

    async def _call(
        self, part: OutboxPart, target: TelegramTarget, files: list[Upload], backoff: Backoff
    ) -> Step:
        marking = _Marking(lambda: self._outbox.sending(part.key, part.part))
        try:
            params = addressed(part.call["params"], target)
            result = await self._api.call(part.call["method"], params, files, ready=marking.begin)
        except CancelledError:
            raise
        except Exception as error:
            if marking.problem is not None:
                raise marking.problem from None
            if isinstance(error, TelegramError):
                return await self._failed(part, target, error, backoff)
            self._log.failure("a send ended in an unexpected way")
            return await self._park(part, "internal-error")
        backoff.reset()
        return await self._sent(part, target, result, backoff)

    # --- it arrived ---------------------------------------------------------------------------

    async def _sent(
        self, part: OutboxPart, target: TelegramTarget, result: Any, backoff: Backoff
    ) -> Step:
        messages = result if isinstance(result, list) else [result]
        messages = [each for each in messages if isinstance(each, dict)]
        ids = [each["message_id"] for each in messages if type(each.get("message_id")) is int]
        astray = misplaced(messages, target.thread_id)
        if astray and ids and part.attempts < MISPLACED_LIMIT:
            taken = await self._takeback.take(target, ids)
            if taken is Taken.BACK:
                return await self._examine(part, backoff)
            if taken is Taken.UNKNOWN:
                await self._lost(part.binding_key)
                return await self._park(part, "misplaced")
        await self._recorded(lambda: self._outbox.delivered(part.key, part.part, ids))
        await self._recorded(
            lambda: self._bindings.remember_messages(
                target.chat_id, ids, part.binding_key, outgoing=True
            )
        )
        self._finish(part)
        if astray:
            await self._lost(part.binding_key)
        return Step.NEXT

    def _finish(self, part: OutboxPart) -> None:
        """The part arrived; what of its delivery as a whole?"""
        state = self._outbox.state_of(part.key)
        if state == "delivered":
            self._spool.discard(part.key)
        elif state in ("uncertain", "dead_letter"):
            self._announce(part.binding_key, part.key, state, "parts-missing")

    # --- it did not, or nobody knows ----------------------------------------------------------

    async def _failed(
        self, part: OutboxPart, target: TelegramTarget, error: TelegramError, backoff: Backoff
    ) -> Step:
        judgement = judge(error, part.call["method"], self._resend())
        verdict = judgement.verdict
        self._log.info(
            "a send failed: {reason} ({verdict})", reason=judgement.reason, verdict=verdict.name
        )
        if verdict is Verdict.RETRY:
            return await self._retry(part, target, judgement, backoff)
        if verdict is Verdict.CLOSED:
            return await self._wait_until_open(part, target)
        if verdict is Verdict.THREAD:
            return await self._examine(part, backoff)
        if verdict is Verdict.PLAIN:
            return await self._plain(part, judgement.reason)
        if verdict is Verdict.BARE:
            # However often it was replaced: without a keyboard it cannot come here again.
            return await self._replaced(part, judgement.reason, bare_calls(part.call))
        if verdict is Verdict.DEAD:
            return await self._dead(part, judgement.reason)
        if verdict is Verdict.PARK:
            return await self._park(part, judgement.reason)
        blocked = verdict is Verdict.BLOCKED
        await self._later(part, 0 if blocked else backoff.next(), judgement.reason)
        return Step.BLOCKED if blocked else Step.UNAUTHORIZED

    async def _retry(
        self, part: OutboxPart, target: TelegramTarget, judgement: Judgement, backoff: Backoff
    ) -> Step:
        wait = judgement.wait
        if wait is not None:
            self._gate.flood(target.chat_id, wait)
        return await self._later(part, backoff.next() if wait is None else wait, judgement.reason)

    async def _later(self, part: OutboxPart, seconds: float, reason: str) -> Step:
        now, first = self._now_ms(), part.first_attempt_ms
        if seconds > 0 and first is not None and now - first > RETRIED_FOR_MS:
            return await self._dead(part, "expired")
        due = now + int(seconds * 1000)
        await self._recorded(lambda: self._outbox.retry(part.key, part.part, due, reason))
        return Step.NEXT

    async def _wait_until_open(self, part: OutboxPart, target: TelegramTarget) -> Step:
        """The user closed the Thread: it is his to open, and what is for it waits, however long."""
        await self._closed(part.binding_key, target)
        due = self._now_ms() + CLOSED_WAIT_MS
        await self._recorded(lambda: self._outbox.retry(part.key, part.part, due, "topic-closed"))
        return Step.NEXT

    async def _examine(self, part: OutboxPart, backoff: Backoff) -> Step:
        """The Thread may be lost: then the part waits for the binding's new one."""
        lost = await self._lost(part.binding_key)
        return await self._later(part, 0 if lost else backoff.next(), "no-thread")

    async def _lost(self, binding_key: str) -> bool:
        try:
            return await self._losses.examine(binding_key) == "lost"
        except CancelledError:
            raise
        except Exception:
            self._log.failure("a Thread could not be examined")
            return False

    async def _plain(self, part: OutboxPart, reason: str) -> Step:
        self._rich_unknown = self._rich_unknown or reason == "not-found"
        calls = part.call.get("otherwise") or plain_calls(part.call)
        again = not part.plain or "otherwise" in part.call
        return await self._replaced(part, reason, calls if again else ())

    async def _replaced(self, part: OutboxPart, reason: str, calls: Sequence[Call]) -> Step:
        """Send other calls in the part's place, if there are any."""
        if not calls:
            return await self._dead(part, reason)
        await self._recorded(lambda: self._outbox.replace_call(part.key, part.part, calls))
        return Step.NEXT

    async def _park(self, part: OutboxPart, reason: str) -> Step:
        await self._recorded(lambda: self._outbox.park(part.key, part.part, reason))
        self._announce(part.binding_key, part.key, "uncertain", reason)
        return Step.NEXT

    async def _dead(self, part: OutboxPart, reason: str) -> Step:
        await self._recorded(lambda: self._outbox.dead(part.key, part.part, reason))
        self._announce(part.binding_key, part.key, "dead_letter", reason)
        return Step.NEXT

    async def _recorded(self, write: Callable[[], Deferred[None]]) -> None:
        """Record an outcome, however long the disk is full: without it the part would be stuck.

        @raise pitelegram.errors.StoreError: it failed C{RECORD_LIMIT} times in another way.
        """
        for attempt in count(1):
            try:
                await write()
                return
            except Fenced:
                raise
            except StoreError as error:
                if not isinstance(error, StoreFull) and attempt >= RECORD_LIMIT:
                    raise
            await sleep(self._clock, RECORD_WAIT)

    def _now_ms(self) -> int:
        return int(self._clock.seconds() * 1000)


def addressed(params: dict[str, Any], target: TelegramTarget) -> dict[str, Any]:
    """Return the parameters with chat and Thread; a reply whose message is gone is sent as well."""
    result = {**params, "chat_id": target.chat_id}
    if target.thread_id is not None:
        result["message_thread_id"] = target.thread_id
    reply = params.get("reply_parameters")
    if isinstance(reply, dict):
        result["reply_parameters"] = {**reply, "allow_sending_without_reply": True}
    return result

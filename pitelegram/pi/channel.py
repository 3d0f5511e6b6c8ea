"""Requests to Pi and their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from pitelegram.errors import PiCancelled, PiGone, PiRefused
from pitelegram.kernel import jsonio

_ERROR_LENGTH = 500


@attrs.define
class _Pending:
    command: str
    waiter: Deferred[Any]
    timer: IDelayedCall | None = None


class Channel:
    """Writes one line a request and matches answers by id.

    A request counts as given only on its answer.  Everything is written in pure ASCII.

    @param write: takes the bytes of whole lines; may raise, then the request fails with that.
    @param redact: takes secrets out of Pi's error texts.
    @ivar late: answers that came after their deadline, or to nobody.
    """

    def __init__(
        self,
        clock: IReactorTime,
        write: Callable[[bytes], None],
        redact: Callable[[str], str],
    ) -> None:
        self.late = 0
        self._clock = clock
        self._write = write
        self._redact = redact
        self._pending: dict[str, _Pending] = {}
        self._number = 0
        self._lost: str | None = None

    def request(
        self,
        command: str,
        arguments: Mapping[str, Any],
        timeout: float | None,
        request_id: str | None = None,
    ) -> Deferred[Any]:
        """Send a command; fires with its C{data} (C{{}} when it has none).

        @param timeout: seconds until it fails, None for no limit.  Cancelling forgets the answer.
        @raise PiRefused: C{success:false}, with Pi's own words.
        @raise PiCancelled: C{success:true} with C{cancelled:true}.
        @raise PiGone: Pi ended, or no answer came in time; the outcome is unknown.
        @raise ValueError: the id is in use.
        """
        key = request_id or self._next_id()
        if key in self._pending:
            raise ValueError("this request id is in use")
        waiter: Deferred[Any] = Deferred(lambda _: self._forget(key))
        if self._lost is not None:
            waiter.errback(PiGone(self._lost))
            return waiter
        try:
            self.send({"id": key, "type": command, **arguments})
        except (PiGone, PiRefused) as error:
            waiter.errback(error)
            return waiter
        pending = _Pending(command, waiter)
        if timeout is not None:
            pending.timer = self._clock.callLater(timeout, self._expired, key)
        self._pending[key] = pending
        return waiter

    def send(self, record: Mapping[str, Any]) -> None:
        """Write one record that has no answer."""
        self._write(jsonio.escaped(record) + b"\n")

    def answered(self, record: Mapping[str, Any]) -> None:
        """Take a C{response} record."""
        pending = self._forget(record.get("id"))
        if pending is None:
            self.late += 1
            return
        data = record.get("data")
        if record.get("success") is not True:
            pending.waiter.errback(PiRefused(self._words(record.get("error"))))
        elif isinstance(data, dict) and data.get("cancelled") is True:
            pending.waiter.errback(
                PiCancelled(f"{pending.command} was cancelled; nothing was done")
            )
        else:
            pending.waiter.callback({} if data is None else data)

    def lost(self, reason: str) -> None:
        """Pi is gone: every request that waits, and every later one, fails."""
        self._lost = reason
        for key in list(self._pending):
            pending = self._forget(key)
            if pending is not None:
                pending.waiter.errback(PiGone(reason))

    def _next_id(self) -> str:
        self._number += 1
        return f"own-{self._number}"

    def _forget(self, key: object) -> _Pending | None:
        pending = self._pending.pop(key, None) if isinstance(key, str) else None
        if pending is not None and pending.timer is not None and pending.timer.active():
            pending.timer.cancel()
        return pending

    def _expired(self, key: str) -> None:
        pending = self._forget(key)
        if pending is not None:
            pending.waiter.errback(PiGone(f"Pi did not answer {pending.command} in time"))

    def _words(self, error: object) -> str:
        words = error if isinstance(error, str) and error else "Pi gave no reason"
        return self._redact(words)[:_ERROR_LENGTH]

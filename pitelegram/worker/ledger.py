"""Control requests: each executed once, its result kept and repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pitelegram.errors import PiCancelled, PiGone, PiRefused, Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import canonical
from pitelegram.kernel.observers import OneShot
from pitelegram.store.worker_interfaces import IInbox

UNKNOWN_OUTCOME = "the worker ended while it did this: nobody can tell whether it was done"


def fingerprint(command: dict[str, Any]) -> str:
    """Return what two equal commands have in common."""
    return hashlib.sha256(canonical(command)).hexdigest()


def unknown_outcome(words: str = UNKNOWN_OUTCOME) -> Refusal:
    """Return the refusal that proves nothing; the field C{uncertain} tells it from the others."""
    return Refusal("execution-failed", words, uncertain=True)


class Ledger:
    """Runs each request id once.

    The same id with the same command gives the same result, refusals included; with another command
    it is C{request-id-collision}.  One that a killed worker had begun, or of which Pi
    took the answer with it, is C{execution-failed} with C{uncertain}: no proof that nothing was done.
    """

    _log = Logger()

    def __init__(self, inbox: IInbox) -> None:
        self._inbox = inbox
        self._running: dict[str, tuple[str, OneShot[dict[str, Any]]]] = {}

    @deferred
    async def once(
        self, request_id: str, command: dict[str, Any], work: Callable[[], Deferred[Any]]
    ) -> Any:
        """Fire with the result of C{work}, now or from before.

        @raise Refusal: it was refused, now or before, or the id is taken.
        """
        print_ = fingerprint(command)
        running = self._running.get(request_id)
        if running is not None:
            _same(running[0], print_)
            return _opened(await running[1].when())
        known = self._inbox.ledger(request_id)
        if known is not None:
            _same(known["fingerprint"], print_)
            if known["state"] != "finished":
                raise unknown_outcome()
            return _opened(known["result"])
        done: OneShot[dict[str, Any]] = OneShot()
        self._running[request_id] = print_, done
        try:
            await self._inbox.ledger_start(request_id, print_)
            result = await self._execute(work)
            await self._inbox.ledger_finish(request_id, result)
        except BaseException:
            done.fire(unknown_outcome().as_json())
            raise
        finally:
            del self._running[request_id]
        done.fire(result)
        return _opened(result)

    async def _execute(self, work: Callable[[], Deferred[Any]]) -> dict[str, Any]:
        try:
            return {"ok": True, "result": await work()}
        except Refusal as refusal:
            return refusal.as_json()
        except PiCancelled as error:
            return Refusal("cancelled", str(error)).as_json()
        except PiRefused as error:
            return Refusal("execution-failed", str(error)).as_json()
        except PiGone as error:
            return unknown_outcome(f"nobody can tell whether it was done: {error}").as_json()
        except (ValueError, TypeError) as error:
            return Refusal("invalid-command", str(error)).as_json()


def _same(before: str, now: str) -> None:
    if before != now:
        raise Refusal("request-id-collision", "this request id was used for another command")


def _opened(result: dict[str, Any] | None) -> Any:
    if not result:
        raise unknown_outcome()
    if result.get("ok") is True:
        return result.get("result")
    error = dict(result["error"])
    raise Refusal(error.pop("code"), error.pop("message"), **error)

"""A dialog's message, on its way to the Thread."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from twisted.logger import Logger

from pitelegram.botapi.missing import says_no_thread
from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusError, LinkLost, Refusal, UnsafeFile
from pitelegram.kernel.files import ensure_private_dir, write_private

LEAST_WAIT = 1.0


@attrs.frozen
class Posted:
    """It is there, under this id."""

    message_id: int


@attrs.frozen
class Limited:
    """Not now; it may be tried again after some seconds."""

    seconds: float


@attrs.frozen
class Unsure:
    """Nobody can tell whether it is there."""


@attrs.frozen
class Unsent:
    """It is certainly not there."""


@attrs.frozen
class NoThread:
    """It is not there, since its Thread was not found; that may be wrong (rule D29)."""


Outcome = Posted | Limited | Unsure | Unsent | NoThread


class Poster:
    """Sends questions and what is attached to them, each once.

    @param link: returns the registered link, None while there is none.
    @param uploads: returns the directory of an instance that files are sent from.
    """

    _log = Logger()

    def __init__(
        self, link: Callable[[], ILeaderLink | None], uploads: Callable[[str], Path]
    ) -> None:
        self._link = link
        self._uploads = uploads

    def ready(self) -> bool:
        """Whether there is a leader to send through."""
        return self._link() is not None

    async def question(self, place: dict[str, int], text: str, markup: dict[str, Any]) -> Outcome:
        """Send the message."""
        params = {"text": text, "reply_markup": markup, "link_preview_options": _NO_PREVIEW}
        return await self._send("sendMessage", place, params)

    async def document(self, place: dict[str, int], reply_to: int, name: str, text: str) -> Outcome:
        """Send a text as a file, as a reply to the question."""
        link = self._link()
        if link is None:
            return Unsent()
        path = self._uploads(link.registration["instanceId"]) / f"{secrets.token_hex(16)}.txt"
        try:
            ensure_private_dir(path.parent)
            write_private(path, text.encode("utf-8", "replace"), durable=False)
            params = {
                "document": "attach://document",
                "reply_parameters": {"message_id": reply_to, "allow_sending_without_reply": True},
            }
            file = {
                "field": "document",
                "path": str(path),
                "filename": name,
                "mimeType": "text/plain",
            }
            return await self._send("sendDocument", place, params, [file])
        except (OSError, UnsafeFile) as error:
            self._log.warn("a question's text cannot be attached: {reason}", reason=str(error))
            return Unsent()
        finally:
            path.unlink(missing_ok=True)

    async def buttons(
        self, place: dict[str, int], message_id: int, markup: dict[str, Any]
    ) -> Outcome:
        """Change the buttons of a message; only L{Limited} says that trying again may help."""
        link = self._link()
        if link is None:
            return Unsent()
        params = {
            "chat_id": place["chatId"],
            "message_id": message_id,
            "reply_markup": markup,
        }
        try:
            await link.call_api("editMessageReplyMarkup", params)
        except Refusal as refusal:
            return _refused(refusal)
        except BusError:
            return Unsure()
        return Posted(message_id)

    async def _send(
        self,
        method: str,
        place: dict[str, int],
        params: dict[str, Any],
        files: list[dict[str, str]] | None = None,
    ) -> Outcome:
        link = self._link()
        if link is None:
            return Unsent()
        params = {"chat_id": place["chatId"], **params}
        options = {"aggregate": True}
        if "threadId" in place:
            params["message_thread_id"] = place["threadId"]
            options = {}
        try:
            result = await link.call_api(method, params, options, files or ())
        except Refusal as refusal:
            return _refused(refusal)
        except LinkLost:
            return Unsure()
        except BusError as error:
            self._log.info("a question was not sent: {reason}", reason=str(error))
            return Unsent()
        message_id = result.get("message_id") if isinstance(result, dict) else None
        return Posted(message_id) if type(message_id) is int else Unsure()


_NO_PREVIEW = {"is_disabled": True}


def _refused(refusal: Refusal) -> Outcome:
    if refusal.code == "commit-unknown":
        return Unsure()
    if refusal.code == "rate-limited" or refusal.fields.get("errorCode") == 429:
        wait: Any = refusal.fields.get("retryAfter")
        return Limited(max(float(wait) if isinstance(wait, int | float) else 0.0, LEAST_WAIT))
    if says_no_thread(refusal.fields.get("errorCode"), refusal.fields.get("description")):
        return NoThread()
    return Unsent()

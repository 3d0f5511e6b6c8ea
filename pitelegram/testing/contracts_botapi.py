"""What every L{IBotApi} does, the fake included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zope.interface.verify import verifyObject

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.errors import (
    CertainlyUnsent,
    Conflict,
    Refusal,
    Refused,
    Unauthorized,
    Uncertain,
)


class BotApiContract:
    """Mix into a trial TestCase that provides the four methods below."""

    api: Any

    def will_return(self, value: Any) -> None:
        """The next call succeeds with this."""
        raise NotImplementedError

    def will_refuse(self, code: int, description: str, retry_after: int | None = None) -> None:
        """The next call is refused."""
        raise NotImplementedError

    def will_have_file(self, content: bytes) -> str:
        """The next download is of this file; returns its id."""
        raise NotImplementedError

    def seen(self) -> tuple[str, dict[str, Any]]:
        """Return method and parameters of the last call."""
        raise NotImplementedError

    async def _error(self, kind: type[Exception], code: int, description: str, **more: Any) -> Any:
        self.will_refuse(code, description, **more)
        case: Any = self
        return await case.assertFailure(
            self.api.call("sendMessage", {"chat_id": 1, "text": "x"}), kind
        )

    def test_provides_the_interface(self) -> None:
        """It has the methods and signatures of the interface."""
        case: Any = self
        case.assertTrue(verifyObject(IBotApi, self.api))

    async def test_result(self) -> None:
        """A success fires with C{result}; parameters that are None are left out."""
        case: Any = self
        self.will_return({"message_id": 7})
        params = {"chat_id": 1, "text": "héllo", "message_thread_id": None}
        case.assertEqual(await self.api.call("sendMessage", params), {"message_id": 7})
        case.assertEqual(self.seen(), ("sendMessage", {"chat_id": 1, "text": "héllo"}))

    async def test_classes_of_errors(self) -> None:
        """Each refusal has the class that says what may be done."""
        case: Any = self
        error = await self._error(Refused, 400, "Bad Request: chat not found")
        case.assertEqual((error.code, error.method), (400, "sendMessage"))
        await self._error(Unauthorized, 401, "Unauthorized")
        other = await self._error(Conflict, 409, "Conflict: terminated by other getUpdates request")
        case.assertFalse(other.webhook)
        hook = await self._error(Conflict, 409, "Conflict: webhook is active")
        case.assertTrue(hook.webhook)
        await self._error(Uncertain, 500, "Internal Server Error")

    async def test_flood(self) -> None:
        """429 is certainly unsent, and says how long to wait."""
        case: Any = self
        error = await self._error(CertainlyUnsent, 429, "Too Many Requests", retry_after=7)
        case.assertEqual(error.retry_after, 7)

    async def test_download(self) -> None:
        """A file comes to a private file of that size."""
        case: Any = self
        destination = Path(case.mktemp())
        file_id = self.will_have_file(b"content" * 1000)
        case.assertEqual(await self.api.download(file_id, destination, 10_000), 7000)
        case.assertEqual(destination.read_bytes(), b"content" * 1000)
        case.assertEqual(destination.stat().st_mode & 0o777, 0o600)

    async def test_download_too_large(self) -> None:
        """A file over the limit is refused, and leaves nothing behind."""
        case: Any = self
        destination = Path(case.mktemp())
        file_id = self.will_have_file(b"content" * 1000)
        error = await case.assertFailure(self.api.download(file_id, destination, 6999), Refusal)
        case.assertEqual((error.code, error.fields), ("too-large", {"limit": 6999}))
        case.assertFalse(destination.exists())

    async def test_closed(self) -> None:
        """After close nothing is sent."""
        case: Any = self
        await self.api.close()
        await case.assertFailure(self.api.call("getMe", {}), CertainlyUnsent)

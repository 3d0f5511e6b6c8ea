"""Refusals of the emulated Bot API."""

from __future__ import annotations

from typing import Any

from pitelegram.errors import PiTelegramError


class ApiError(PiTelegramError):
    """A method answers C{ok:false}.

    @ivar code: C{error_code}, which is the HTTP status too.
    @ivar description: the text as the real service words it.
    @ivar parameters: C{retry_after} and the like, empty for none.
    """

    def __init__(
        self, code: int, description: str, parameters: dict[str, Any] | None = None
    ) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters or {}

    def as_json(self) -> dict[str, Any]:
        """Return the body of the answer."""
        answer: dict[str, Any] = {
            "ok": False,
            "error_code": self.code,
            "description": self.description,
        }
        if self.parameters:
            answer["parameters"] = self.parameters
        return answer


def bad_request(text: str) -> ApiError:
    """Return a 400 with C{text} behind its class name."""
    return ApiError(400, f"Bad Request: {text}")


def conflict(text: str) -> ApiError:
    """Return a 409."""
    return ApiError(409, f"Conflict: {text}")


def flood(seconds: int) -> ApiError:
    """Return a 429 that asks for a pause of C{seconds}."""
    return ApiError(429, f"Too Many Requests: retry after {seconds}", {"retry_after": int(seconds)})


UNAUTHORIZED = (401, "Unauthorized")
NOT_FOUND = (404, "Not Found")
OTHER_POLLER = (
    "terminated by other getUpdates request; make sure that only one bot instance is running"
)
WEBHOOK_ACTIVE = (
    "can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)
WEBHOOK_SET = "terminated by setWebhook request"

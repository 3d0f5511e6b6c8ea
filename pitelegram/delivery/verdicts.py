"""What follows from a failed send; the table stands in C{docs/delivery.md}."""

from __future__ import annotations

import enum

import attrs

from pitelegram.botapi.methods import REPEATABLE
from pitelegram.botapi.missing import says_closed, says_no_thread
from pitelegram.errors import CertainlyUnsent, Conflict, Refused, TelegramError, Unauthorized


class Verdict(enum.Enum):
    """What to do next with a part."""

    RETRY = "send it again later"
    PLAIN = "send it again as plain text, else it is dead"
    BARE = "send it again without its keyboard, else it is dead"
    BLOCKED = "wait until the owner unblocks the bot"
    UNAUTHORIZED = "wait for another token"
    CLOSED = "wait until the user opens the Thread again"
    THREAD = "find out whether the Thread is lost"
    DEAD = "dead letter"
    PARK = "uncertain: shown, and the operator decides"


@attrs.frozen
class Judgement:
    """A verdict with its reason.

    @ivar reason: one word that may be shown and logged; never Telegram's own text.
    @ivar wait: seconds that the server asked for.
    """

    verdict: Verdict
    reason: str
    wait: float | None = None


_MARKUP = ("parse entities", "parse_mode", "entity", "entities", "rich")
_REASONS = (
    ("chat not found", "chat-not-found"),
    ("keyboard", "bad-keyboard"),
    ("button", "bad-keyboard"),
    ("reply markup", "bad-keyboard"),
    ("too long", "too-long"),
    ("too_long", "too-long"),
    ("too big", "too-big"),
    ("too large", "too-big"),
    ("text is empty", "empty"),
    ("must be non-empty", "empty"),
    ("photo", "bad-media"),
    ("image", "bad-media"),
    ("media", "bad-media"),
    ("file", "bad-media"),
)


def judge(error: TelegramError, method: str, resend: bool) -> Judgement:
    """Return what follows when C{method} failed with C{error}.

    @param resend: the operator wants uncertain sends repeated (C{outbox.ambiguous}).
    """
    if isinstance(error, CertainlyUnsent):
        reason = "flood" if error.code == 429 else "unreachable"
        return Judgement(Verdict.RETRY, reason, error.retry_after)
    if isinstance(error, Unauthorized):
        return Judgement(Verdict.UNAUTHORIZED, "unauthorized")
    if isinstance(error, Conflict):
        return Judgement(Verdict.RETRY, "conflict")
    if isinstance(error, Refused):
        return _refused(error, method)
    reason = "server-error" if error.code >= 500 else "no-answer"
    repeat = resend or method in REPEATABLE
    return Judgement(Verdict.RETRY if repeat else Verdict.PARK, reason)


def _refused(error: Refused, method: str) -> Judgement:
    description = error.description.lower()
    if error.code == 403:
        return Judgement(Verdict.BLOCKED, "blocked")
    if error.code == 404:
        # Plain methods exist on every server: without them it is the address that is wrong.
        known = method != "sendRichMessage"
        return Judgement(Verdict.RETRY if known else Verdict.PLAIN, "not-found")
    if error.code == 400:
        if says_closed(error.code, description):
            return Judgement(Verdict.CLOSED, "topic-closed")
        if says_no_thread(error.code, description):
            return Judgement(Verdict.THREAD, "no-thread")
        reason = next((word for words, word in _REASONS if words in description), "")
        if reason == "chat-not-found":
            return Judgement(Verdict.DEAD, reason)
        if reason == "bad-keyboard":
            return Judgement(Verdict.BARE, reason)
        if method == "sendRichMessage" or any(words in description for words in _MARKUP):
            return Judgement(Verdict.PLAIN, "bad-markup")
        return Judgement(Verdict.DEAD, reason or "refused-400")
    return Judgement(Verdict.DEAD, "too-big" if error.code == 413 else f"refused-{error.code}")

"""Failures of the model's provider in words, with what the operator can do."""

from __future__ import annotations

import re

from pitelegram.kernel.jsonio import loads
from pitelegram.kernel.redact import redact_public

REASON = 400
"""Most characters of a provider's own words."""

_MESSAGE = re.compile(r'"message"\s*:\s*("(?:[^"\\]|\\.)*")')
_STATUS = re.compile(r"\A\s*(?:Error:\s*)?([45]\d\d)\b")

_GO_ON = "/continue tries again"
_KINDS = (
    (
        r"credit|insufficient[ _]|quota|billing|payment|\A402\b|out of (?:funds|usage)",
        "💳 The provider says that there is no credit left, or that a quota is used up.",
        f"Top it up, or take another /model; then {_GO_ON}.",
    ),
    (
        r"context[ _](?:length|window|limit)|maximum context|prompt is too long|too many tokens"
        r"|input is too long|tokens? (?:exceed|limit)|\A413\b|request_too_large",
        "📏 The conversation is too long for this model.",
        "/compact makes it shorter, /new begins a new session, or take a larger /model.",
    ),
    (
        r"\A40[13]\b|unauthori[sz]ed|api[ _-]?key|authenticat|permission|forbidden|expired token"
        r"|no auth|log ?in",
        "🔑 The provider does not accept the key or login.",
        "Log in again with pi in a terminal, or take another /model.",
    ),
    (
        r"\A429\b|rate.?limit|too many requests|usage limit|resets? (?:at|in)\b",
        "⏳ The provider's limit on requests is reached.",
        f"Wait a while, then {_GO_ON}; or take another /model.",
    ),
    (
        r"\A5(?:03|29)\b|overloaded|at capacity|temporarily unavailable",
        "🌩 The provider is overloaded.",
        f"{_GO_ON}, or take another /model.",
    ),
    (
        r"\A404\b|model.{0,60}(?:not found|does not exist|unknown)|no such model|not_found_error",
        "🔎 The provider does not know this model.",
        "Take another /model.",
    ),
    (
        r"econn|enotfound|etimedout|fetch failed|socket|network|connection|timed? ?out|terminated"
        r"|premature close|other side closed",
        "🔌 The provider could not be reached, or the connection broke.",
        f"{_GO_ON}.",
    ),
)
_OTHER = ("⚠️ The model's provider failed.", f"{_GO_ON}, or take another /model.")
_PATTERNS = tuple((re.compile(pattern, re.I), words, hint) for pattern, words, hint in _KINDS)


def reason_of(text: str, limit: int = REASON) -> str:
    """Return a failure's own words on one line: without JSON around them, redacted and bounded."""
    found = _MESSAGE.search(text[:20_000])
    if found is not None:
        status = _STATUS.match(text)
        try:
            inner = str(loads(found[1]))
        except ValueError:
            inner = found[1]
        text = f"{status[1]}: {inner}" if status else inner
    short = redact_public(" ".join(text[:20_000].split()), limit)
    return short or "no reason was given"


def failure_text(message: str) -> str:
    """Return what an operator is told of a failed answer; the first line stands for its kind."""
    words, hint = _OTHER
    for pattern, its_words, its_hint in _PATTERNS:
        if pattern.search(message[:20_000]):
            words, hint = its_words, its_hint
            break
    return f"{words}\n{reason_of(message)}\n{hint}"


class Repeats:
    """Collapses failures that are the same as the one before."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._times = 1

    def told(self, failure: str | None, answer: str) -> str:
        """Return the answer to show.

        @param failure: the whole answer when it is nothing but a failure, else None.
        """
        if failure is None or failure != self._last:
            self._last, self._times = failure, 1
            return answer
        self._times += 1
        return f"{failure.partition(chr(10))[0]} The same as before, {self._times} times in a row."

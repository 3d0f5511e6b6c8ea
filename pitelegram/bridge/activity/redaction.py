"""Making technical text fit to be shown in a chat: no secrets, nothing that can be tapped."""

from __future__ import annotations

import re

from pitelegram.kernel.redact import redact

REDACTED = "[REDACTED]"
BOT_TOKEN = "[REDACTED_BOT_TOKEN]"

_BOT_TOKEN = re.compile(r"\d{8,12}:[A-Za-z0-9_-]{30,}")
_BEARER = re.compile(r"\b(bearer|basic)(\s+)[\w.~+/=-]{6,}", re.I)
_NAMES = r"[\w-]{0,40}(?:api[_-]?key|access[_-]?key|token|passw(?:or)?d|passphrase|secret)s?(?!\w)"
_ASSIGNED = re.compile(
    rf"({_NAMES}\\?[\"']?\s{{0,4}}(?:=>|[:=])\s{{0,4}}\\?[\"']?)(?!\[REDACTED)[^\s\"'\\,;&}}]+",
    re.I,
)
_OPTION = re.compile(rf"(--{_NAMES}\s+[\"']?)(?![-\[])[^\s\"',;&}}]+", re.I)
_KEY = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bAKIA[A-Z0-9]{12,}"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S
)

_ADDRESS = re.compile(r"\b([a-z][a-z0-9+.-]{0,20}://|www\.)(?=\w)", re.I)
_TAPPED = re.compile(r"(?<![\w/])([/@#])(?=[A-Za-z])")
_LAST_WORD = re.compile(r"\S+\Z")
_NOTHING = "\u200b"


def without_secrets(text: str) -> str:
    """Return a text without what looks like a token, a key or a password."""
    text = _BOT_TOKEN.sub(BOT_TOKEN, text)
    text = _PRIVATE_KEY.sub(REDACTED, text)
    text = _BEARER.sub(rf"\1\2{REDACTED}", text)
    text = _ASSIGNED.sub(rf"\1{REDACTED}", text)
    text = _OPTION.sub(rf"\1{REDACTED}", text)
    return redact(_KEY.sub(REDACTED, text))


def inert(text: str, words: bool = False) -> str:
    """Return a text of which no client makes links or cards.

    @param words: also take the effect from commands, names and hashtags; not needed in C{code}.
    """
    text = _ADDRESS.sub(rf"\1{_NOTHING}", text)
    return _TAPPED.sub(rf"\1{_NOTHING}", text) if words else text


def so_far(text: str) -> str:
    """Return a text that is still growing, or was cut, without its last word: half a secret is not recognised."""
    cut = text.endswith("…")
    kept = _LAST_WORD.sub("", text.removesuffix("…"))
    return f"{kept}…" if cut else kept

"""Taking secrets out of text.

Two strengths.  L{redact} removes known secrets and everything that looks like a bot token, nothing
else: it is for text that belongs to the owner.  L{redact_public} also removes paths, credentials,
addresses and ids: it is for logs, events and anything that may be pasted in public.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from urllib.parse import quote

MARK = "[redacted]"

PUBLIC_LIMIT = 12_000
"""Characters that one public text keeps."""

_LABEL = 256
_LABELS_KEPT = 4096
"""Longest text that is remembered as redacted, and how many are."""

_MINIMUM = 8
"""Shorter strings are not treated as secrets: removing them would shred ordinary text."""

_BOT_TOKEN = re.compile(r"(?<![0-9])[0-9]{3,20}(?::|%3[Aa])[A-Za-z0-9_-]{20,}")

_INVISIBLE = dict.fromkeys(map(ord, "\0\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad"))

_SECRET_WORDS = (
    r"token|secret|pass(?:word|wd|phrase)?|api[_-]?key|access[_-]?key|private[_-]?key|credential"
    r"|authorization|cookie|signature|bearer"
)

_ASSIGNMENT = (
    rf"(?:{_SECRET_WORDS})[\w-]{{0,40}}[\"']?\s{{0,4}}[=:]\s{{0,4}}"
    r"(?:basic\s+|bearer\s+)?[\"']?[^\s\"',;&}]+"
)

_PRIVATE_PARTS = re.compile(
    r"token|secret|password|passwd|passphrase|apikey|accesskey|privatekey|credential|authorization"
    r"|cookie|signature|bearer|text|prompt|instruction|directory|directories|cwd|argv|cmdline|environ"
    r"|stdin|stdout|stderr|fingerprint|username|(?:chat|user|message|thread|topic|session|owner)ids?$"
)
"""Of a name without case and separators."""

_PRIVATE_ENDS = frozenset({"path", "file", "dir", "env", "hash", "proof", "digest", "canonical"})

_OPEN_IDS = frozenset({"workerid", "requestid", "hostid"})

_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")

_PUBLIC = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S),
        (r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/@:]+:[^\s/@]+@[^\s\"'<>]+", re.I),
        (r"(?<![\w:/.-])[\w.+-]{1,64}:[^\s:@/]{1,128}@[\w.-]+", 0),
        (r"\bunix://[^\s\"'<>]+", re.I),
        (r"\bbearer\s+[\w.~+/=-]{6,}", re.I),
        (_ASSIGNMENT, re.I),
        (r"\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*", 0),
        (r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b", 0),
        (r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}", 0),
        (r"\b(?:gh[pousr]|glpat|xox[abprs])[_-][A-Za-z0-9_-]{8,}", 0),
        (r"\bgithub_pat_\w{8,}", 0),
        (r"\b(?:toolu|session|term|call)_[A-Za-z0-9]{6,}", 0),
        (r"\bw\d+:p\d+\b", 0),
        (r"\b(?:chat|user|message|thread|message_thread|topic)_?id[\"']?\s*[=:]\s*-?\d+", re.I),
        (r"(?<![\w-])-100\d{10}\b", 0),
        (r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+", 0),
        (r"(?<![\w.])(?:10|127)(?:\.\d{1,3}){3}(?![\w.])", 0),
        (r"(?<![\w.])(?:192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}(?![\w.])", 0),
        (r"(?<![\w:])(?:::1|fe80:[0-9a-f:]*|f[cd][0-9a-f]{2}:[0-9a-f:]+)(?![\w:])", re.I),
        (r"(?<![\w.])~[\w.-]*/[^\s\"'<>:;,)\]}]*", 0),
        (r"(?<!\w)[A-Za-z]:\\[^\s\"'<>;,)\]}]*", 0),
        (r"(?<![\w.:/<~-])/(?:[\w.@%+=~-][^\s\"'<>:;,)\]}]*)", 0),
    )
)


_LAST_WORD = re.compile(r"\S+\Z")


@lru_cache(maxsize=1024)
def is_private_name(name: str) -> bool:
    """Whether a field of this name is never shown in public, whatever its value.

    Case, separators and plurals make no difference.  An id is private unless it is the handle by
    which something is asked for.
    """
    name = unicodedata.normalize("NFKC", name).translate(_INVISIBLE)
    folded = "".join(c for c in name.casefold() if c.isalnum())
    if folded in _OPEN_IDS:
        return False
    words = [word.lower() for word in _WORDS.findall(name)]
    last = words[-1] if words else ""
    ends = {last, last.removesuffix("s")}
    if "id" in ends and len(words) > 1:
        return True
    return bool(ends & _PRIVATE_ENDS) or _PRIVATE_PARTS.search(folded) is not None


class Secrets:
    """The secret strings that this process knows."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._labels: dict[str, str] = {}

    def add(self, *secrets: str) -> None:
        """Remove these strings, and their URL-quoted forms, from now on.

        Strings under 8 characters are ignored.
        """
        for secret in secrets:
            if len(secret) >= _MINIMUM:
                self._known.update(_spellings(secret))
        self._rebuild()

    def remove(self, *secrets: str) -> None:
        """Forget these strings."""
        for secret in secrets:
            self._known.difference_update(_spellings(secret))
        self._rebuild()

    def redact(self, text: str) -> str:
        """Return C{text} without known secrets and bot tokens."""
        if self._pattern is not None:
            text = self._pattern.sub(MARK, text)
        return _BOT_TOKEN.sub(MARK, text)

    def redact_public(self, text: str, limit: int = PUBLIC_LIMIT) -> str:
        """Return C{text} fit for the public: redacted by all rules, then cut to C{limit}."""
        if len(text) > 4 * limit:
            # Between two words, so that nothing secret is cut in two and then not recognised.
            text = _LAST_WORD.sub("", text[: 4 * limit]) + MARK
        text = unicodedata.normalize("NFKC", text).translate(_INVISIBLE)
        text = self.redact(text)
        for pattern in _PUBLIC:
            text = pattern.sub(MARK, text)
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def label_public(self, text: str) -> str:
        """Return what L{redact_public} does; a short text that comes again is not looked at again.

        For what stands in each document: names of members, Threads and problems.
        """
        if len(text) > _LABEL:
            return self.redact_public(text)
        labels = self._labels  # from before a change of the secrets: then nobody reads it any more
        shown = labels.get(text)
        if shown is None:
            if len(labels) >= _LABELS_KEPT:
                labels.clear()
            shown = labels[text] = self.redact_public(text)
        return shown

    def _rebuild(self) -> None:
        longest_first = sorted(self._known, key=len, reverse=True)
        joined = "|".join(re.escape(secret) for secret in longest_first)
        self._pattern = re.compile(joined) if joined else None
        self._labels = {}


def _spellings(secret: str) -> tuple[str, ...]:
    """A secret as it stands, quoted for a URL, and as public text would have it."""
    normal = unicodedata.normalize("NFKC", secret).translate(_INVISIBLE)
    return secret, quote(secret, safe=""), normal


SECRETS = Secrets()
"""The registry of this process: secrets are known to the whole process or to nobody."""


def redact(text: str) -> str:
    """Return C{text} without this process's known secrets and without bot tokens."""
    return SECRETS.redact(text)


def redact_public(text: str, limit: int = PUBLIC_LIMIT) -> str:
    """Return C{text} fit for the public, by this process's L{SECRETS}."""
    return SECRETS.redact_public(text, limit)

"""Which addresses may be pressed."""

from __future__ import annotations

import re

MAX_URL = 2048

_WEB = re.compile(
    r"https?://(?:[^\s/?#@]*@)?(?:[^\s/?#:.]+\.)+[^\s/?#:.]+(?::\d{1,5})?(?:[/?#]\S*)?", re.I
)
_MAIL = re.compile(r"mailto:[^\s@]+@[^\s@]+", re.I)


def live_url(target: str, kind: str = "Inline") -> str:
    """Return the address a link may lead to, or nothing: then its target is shown as text.

    Only C{http}, C{https} and C{mailto}; a host without a dot would be dropped by Telegram.

    @param kind: as the parser calls it; an C{Email} comes without its scheme.
    """
    url = f"mailto:{target}" if kind == "Email" else target
    if len(url) > MAX_URL or not url.isprintable():
        return ""
    return url if _WEB.fullmatch(url) or _MAIL.fullmatch(url) else ""

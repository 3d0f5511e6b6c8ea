"""Who may speak to the sandbox at all.  Loopback is not private: other users and web pages reach it."""

from __future__ import annotations

import hmac

from twisted.web.http import Request
from twisted.web.server import NOT_DONE_YET

HARDENING = {
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def same(given: str | None, secret: str) -> bool:
    """Compare with a secret in constant time."""
    return hmac.compare_digest((given or "").encode("utf-8", "replace"), secret.encode())


def is_addressed(request: Request, port: int) -> bool:
    """Whether C{Host} is the loopback literal with our port and C{Origin} absent or the same.

    A name instead of the literal would let a page of that name in (DNS rebinding).
    """
    hosts = request.requestHeaders.getRawHeaders("host", [])
    if len(hosts) != 1 or hosts[0] not in (f"127.0.0.1:{port}", f"[::1]:{port}"):
        return False
    origins = request.requestHeaders.getRawHeaders("origin", [])
    return not origins or origins == [f"http://{hosts[0]}"]


def harden(request: Request) -> None:
    """Set the headers that every answer has, and none that names the software."""
    request.responseHeaders.removeHeader("server")
    for name, value in HARDENING.items():
        request.setHeader(name, value)


def refuse(request: Request, code: int) -> int:
    """Answer with nothing but a status."""
    request.setResponseCode(code)
    request.setHeader("Content-Length", "0")
    request.responseHeaders.removeHeader("content-type")
    request.finish()
    return NOT_DONE_YET

"""Exit codes (contract, "Exit codes")."""

from __future__ import annotations

from pitelegram.errors import ConfigError, LiveOwner, NotConfigured, OwnershipLost

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_CONFIGURED = 3
EXIT_LIVE_OWNER = 4
EXIT_LOST = 5

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (NotConfigured, EXIT_NOT_CONFIGURED),
    (LiveOwner, EXIT_LIVE_OWNER),
    (OwnershipLost, EXIT_LOST),
    (ConfigError, EXIT_USAGE),
)


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error that ends a command or the daemon, or forbids a start."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), EXIT_FAILED)

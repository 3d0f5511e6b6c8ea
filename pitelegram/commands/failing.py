"""Exit codes of errors."""

from __future__ import annotations

from pitelegram.errors import ConfigError, LiveOwner, NotConfigured, PiTelegramError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_CONFIGURED = 3
EXIT_LIVE_OWNER = 4


def exit_code(error: PiTelegramError) -> int:
    """Return the exit code of an error that ends a command or forbids a start."""
    if isinstance(error, NotConfigured):
        return EXIT_NOT_CONFIGURED
    if isinstance(error, LiveOwner):
        return EXIT_LIVE_OWNER
    return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILED

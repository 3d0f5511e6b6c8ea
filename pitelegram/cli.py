"""C{pi-telegram}: the command line."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from pitelegram.commands import parser as parsers

EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    words = parsers.in_order(sys.argv[1:] if argv is None else argv)
    args = parsers.build().parse_args(words)
    module, _, name = args.handler.partition(":")
    handler = getattr(importlib.import_module(module), name)
    try:
        code = handler(args)
        sys.stdout.flush()
        return int(code)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    from pitelegram.errors import PiTelegramError
    from pitelegram.kernel.exits import exit_code

    if not isinstance(error, PiTelegramError):
        raise error
    print(f"pi-telegram: {error}{getattr(error, 'hint', '')}", file=sys.stderr)
    return exit_code(error)


if __name__ == "__main__":
    sys.exit(main())

"""C{python -m pitelegram.sandbox.server}: the sandbox as a process of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from random import SystemRandom
from typing import Any

from pitelegram.kernel.jsonio import dumps
from pitelegram.sandbox.apidoor import TOKEN_SHAPE
from pitelegram.sandbox.server import SandboxTelegram


def _token(value: str) -> str:
    if not TOKEN_SHAPE.fullmatch(value):
        raise argparse.ArgumentTypeError("a bot token looks like 123:35 characters")
    return value


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a wrong one ends with exit code 2."""
    parser = argparse.ArgumentParser(prog="pitelegram.sandbox.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of Bot API and chat page; 0: any")
    parser.add_argument("--token", type=_token, help="bot token; a random one is made without it")
    parser.add_argument("--control", action="store_true", help="offer the control API as well")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run until SIGTERM or SIGINT; the first line of stdout is JSON with all addresses."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    from twisted.internet import reactor as installed

    reactor: Any = installed
    sandbox = SandboxTelegram(
        reactor,
        reactor,
        SystemRandom(),
        port=options.port,
        token=options.token,
        control=options.control,
    )
    sandbox.startService()
    sys.stdout.buffer.write(dumps(sandbox.addresses()) + b"\n")
    sys.stdout.buffer.flush()
    reactor.addSystemEventTrigger("before", "shutdown", sandbox.stopService)
    reactor.run()

"""C{pi-telegram sandbox} and C{pi-telegram demo}: a Telegram on this machine."""

from __future__ import annotations

import argparse
import importlib
import os
import socket
import sys
from typing import Any, TextIO

from pitelegram.commands.foreground import resolve, run_service
from pitelegram.kernel.exits import EXIT_FAILED


def sandbox(args: argparse.Namespace) -> int:
    """Run the local Telegram alone and print what a daemon needs to use it."""
    if _is_taken(args.port):
        return EXIT_FAILED
    out = sys.stdout  # the log takes the name over

    def make() -> Any:
        from random import SystemRandom

        from twisted.internet import reactor

        from pitelegram.sandbox.server import SandboxTelegram

        service = SandboxTelegram(reactor, reactor, SystemRandom(), port=args.port)
        reactor.callWhenRunning(_show_addresses, service, out)  # type: ignore[attr-defined]
        return service

    return run_service(make, "warn", sys.stderr)


def _show_addresses(service: Any, out: TextIO) -> None:
    addresses = service.addresses()
    root = addresses["api_root"]
    print(
        f"Chat page:  {addresses['page_url']}\n"
        f"Bot API:    {root}\n"
        f"Bot token:  {addresses['token']}\n"
        f"Owner id:   {addresses['owner_id']}\n"
        f"Use it: pi-telegram setup --token-stdin --api-root {root}\n"
        f"        pi-telegram run --api-root {root}\n"
        "Ctrl-C ends it.",
        file=out,
        flush=True,
    )


def demo(args: argparse.Namespace) -> int:
    """Run sandbox, scripted model and daemon on a throw-away agent directory."""
    if _is_taken(args.port):
        return EXIT_FAILED
    resolved = {**resolve(args), "port": args.port}
    assembly = importlib.import_module("pitelegram.assembly")
    told = getattr(args, "log_level", None) or os.environ.get("PI_TELEGRAM_LOG_LEVEL")
    level = resolved["log_level"] if told else "warn"
    return run_service(lambda: assembly.make_demo(resolved), level, sys.stderr)


def _is_taken(port: int) -> bool:
    """Say so when somebody listens on a port already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port or 0))
        except OSError:
            text = f"pi-telegram: port {port} is taken; give another one with --port"
            print(text, file=sys.stderr)
            return True
    return False

"""C{pi-telegram command --stdin}: one raw request in, one envelope out."""

from __future__ import annotations

import argparse
import sys

from pitelegram.commands import output
from pitelegram.commands.asking import ask
from pitelegram.commands.client import FateUnknown
from pitelegram.control import envelope as envelopes
from pitelegram.control import outward
from pitelegram.control.strictjson import Ambiguous, NotAnObject, parse_object
from pitelegram.kernel.exits import EXIT_FAILED, EXIT_USAGE

LIMIT = 1024 * 1024


def command(args: argparse.Namespace) -> int:
    """Read the request, print exactly one envelope; nothing on stdout when its fate is unknown."""
    data = sys.stdin.buffer.read(LIMIT + 1)
    try:
        if len(data) > LIMIT:
            raise NotAnObject("larger than 1 MiB")
        value = parse_object(data)
    except (NotAnObject, Ambiguous) as wrong:
        envelope = envelopes.invalid(f"the request cannot be read: {wrong}", field="request")
    else:
        try:
            envelope = ask(args, value, data)
        except FateUnknown as error:
            output.complain(f"{error}; it may have been done")
            return EXIT_USAGE
    output.print_json(envelope, outward.envelope)
    return 0 if envelope["ok"] else EXIT_FAILED

"""Commands that only show help."""

from __future__ import annotations

import argparse


def show(args: argparse.Namespace) -> int:
    """Print help: what to do first."""
    args.parser.print_help()
    return 0


def show_and_fail(args: argparse.Namespace) -> int:
    """Print help of a command that needs a sub-command."""
    args.parser.print_help()
    return 2

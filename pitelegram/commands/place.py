"""Which agent directory and profile a command is about, and who runs there."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from pitelegram.errors import PiTelegramError
from pitelegram.kernel.paths import Paths
from pitelegram.ownership.owners import OwnerRecord, read_owner
from pitelegram.settings.model import Settings
from pitelegram.settings.options import resolve_paths


def given(args: argparse.Namespace) -> dict[str, object]:
    """Return the options that stood on the command line, by long name."""
    return {name.replace("_", "-"): value for name, value in vars(args).items()}


def command_line(args: argparse.Namespace, words: str) -> str:
    """Return the command C{words} as it must be typed to be about the same place as C{args}."""
    told = given(args)
    places = [(name, told.get(name)) for name in ("agent-dir", "profile")]
    options = [f" --{name} {shlex.quote(str(value))}" for name, value in places if value]
    return f"pi-telegram {words}{''.join(options)}"


def paths_of(args: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> Paths:
    """Return the paths that the command is about."""
    return resolve_paths(given(args), environ)


def tell_recovered(settings: Settings) -> None:
    """Say aloud that this load moved an invalid C{telegram.json} aside: nothing else would."""
    if settings.recovered:
        print(
            "pi-telegram: telegram.json was not valid JSON and was moved aside, to a file beside it"
            " that is called telegram.json.invalid-…; repair it and move it back",
            file=sys.stderr,
        )


def live_owner(paths: Paths) -> OwnerRecord | None:
    """Return who owns the profile's transport and lives, None for nobody."""
    record = read_owner(paths.owners, paths.profile)
    return record if record is not None and record.is_alive() else None


def control_socket(
    args: argparse.Namespace, paths: Paths, environ: Mapping[str, str] = os.environ
) -> Path:
    """Return the control socket: as told, as the owner published it, or the default one."""
    told = getattr(args, "control_socket", None) or environ.get("PI_TELEGRAM_CONTROL_SOCKET")
    if told:
        return Path(os.path.abspath(os.path.expanduser(told)))
    try:
        owner = live_owner(paths)
    except PiTelegramError:
        owner = None
    if owner is not None and owner.control_socket_path:
        return Path(owner.control_socket_path)
    return paths.control_socket

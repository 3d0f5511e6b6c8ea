"""Which worker a process is, and what it has where nobody gives it anything else."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from pitelegram.bridge.interfaces import IInboundHandlers
from pitelegram.bridge.outgoing import IOutboundHandlers
from pitelegram.ids import ProcessBirth
from pitelegram.worker.composing import NoOutboundHandlers
from pitelegram.worker.making import NoHandlers


@attrs.frozen(kw_only=True)
class WorkerIdentity:
    """Which worker this is.

    @ivar directory: the project's real path.
    @ivar uploads: returns the directory that an instance sends files from.
    @ivar files: the directory of the binding's outgoing files.
    @ivar roots: directories that a session may work in, beside the project.
    """

    spec_id: str
    spawn_id: str
    name: str
    directory: Path
    birth: ProcessBirth
    uploads: Callable[[str], Path]
    files: Path
    roots: Sequence[Path] = ()


def no_handlers(_: Callable[[], object]) -> IInboundHandlers:
    """Return what does nothing."""
    return NoHandlers()


def mint_id() -> str:
    """Return 32 random hex digits."""
    return secrets.token_hex(16)


def no_outbound(_: Callable[[], object]) -> IOutboundHandlers:
    """Return what changes and speaks nothing."""
    return NoOutboundHandlers()

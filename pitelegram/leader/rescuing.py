"""Answers that a dead worker had stored and not rendered."""

from __future__ import annotations

import secrets
from pathlib import Path

from twisted.logger import Logger

from pitelegram.bridge.attaching import attached_answers, takes_files
from pitelegram.bridge.comments import read
from pitelegram.bridge.composing import compose, plain
from pitelegram.bridge.rendering.records import RenderOptions
from pitelegram.kernel.deferring import deferred
from pitelegram.settings.model import Settings
from pitelegram.store.database import Database
from pitelegram.store.outfiles import OutFiles
from pitelegram.store.outgoing import Outgoing

_log = Logger()


def render_options(settings: Settings) -> RenderOptions:
    """Return how answers look."""
    return RenderOptions(
        rendering="html" if settings.assistant_rendering == "html" else "rich",
        file_after=settings.assistant_file_after,
    )


@deferred
async def compose_left(database: Database, files: Path, options: RenderOptions) -> None:
    """Render the raw answers in a worker's file, without the operator's programs.

    Their buttons stay in the file and work once the worker runs again.

    @param database: opened, with the binding's lock held.
    @param files: the directory of the binding's outgoing files.
    @raise pitelegram.errors.StoreError: the file cannot be written.
    """
    outgoing, kept = Outgoing(database), OutFiles(files)
    while (raw := outgoing.raw()) is not None:
        try:
            answer = read(str(raw["delivery"]["text"]))
            composed = compose(raw, answer, options, lambda: secrets.token_hex(4), kept.keep)
        except Exception:
            _log.failure("an answer left behind is shown as it was written")
            composed = plain(raw)
        attached = outgoing.attached() if takes_files(raw) else []
        more = attached_answers(raw, attached) if attached else []
        await outgoing.composed(
            raw["delivery_id"],
            (*composed.answers, *more),
            composed.buttons,
            [file.seq for file in attached],
        )

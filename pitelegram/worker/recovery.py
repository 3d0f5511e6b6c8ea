"""What became of prompts that a former process had handed to its Pi.

Called while the binding's lock is held, so that Pi is proven gone, and before the next one starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twisted.logger import Logger

from pitelegram.bridge import labels
from pitelegram.bridge.comments import finished
from pitelegram.bridge.turn import NO_TEXT
from pitelegram.kernel.deferring import deferred
from pitelegram.pi.sessions import Finished, NeverRan, Outcome, SessionMark, Unknown, outcomes
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.runs import answer_key
from pitelegram.worker.settling import Settler

_log = Logger()


@deferred
async def recover(inbox: IInbox, settler: Settler) -> tuple[int, int, int]:
    """Judge every handed row by its session file.

    Those that never ran are held again; finished ones settle with the answer of the file; the
    others become uncertain, each with its button.  Fires with C{(held, finished, uncertain)}.
    """
    groups: dict[str | None, list[InboxRow]] = {}
    for row in inbox.rows("handed"):
        groups.setdefault(row.mark_file, []).append(row)
    held, finished, unknown = 0, 0, 0
    for file, rows in groups.items():
        # In the order of their hand-over: a steering message may be younger than one still held.
        rows.sort(key=lambda row: (row.mark_size or 0, row.rpc_id != row.run_id, row.seq))
        judged = list(zip(rows, _outcomes(file, rows), strict=True))
        done = [(row, found) for row, found in judged if isinstance(found, Finished)]
        lost = [row for row, found in judged if isinstance(found, Unknown)]
        for row, found in judged:
            if isinstance(found, NeverRan):
                await inbox.unhand(row.seq)
                held += 1
        if done:
            await _deliver(settler, done)
        if lost:
            await settler.uncertain(lost, labels.NOBODY_KNOWS)
        finished += len(done)
        unknown += len(lost)
    if held or finished or unknown:
        _log.info(
            "handed prompts judged: {held} never ran, {finished} finished, {unknown} uncertain",
            held=held,
            finished=finished,
            unknown=unknown,
        )
    return held, finished, unknown


def _outcomes(file: str | None, rows: Sequence[InboxRow]) -> list[Outcome]:
    if file is None:
        return [Unknown() for _ in rows]
    first = min(rows, key=lambda row: row.mark_size or 0)
    place = SessionMark(first.mark_size or 0, first.mark_entry)
    return outcomes(Path(file), place, [row.prompt or "" for row in rows])


async def _deliver(settler: Settler, done: Sequence[tuple[InboxRow, Finished]]) -> None:
    """Settle prompts of one run with their answers, each answer once."""
    texts: dict[str, str] = {}
    for _, found in done:
        texts.setdefault(found.entry, found.text)
    said = [text.strip("\n") for text in texts.values() if text.strip()]
    text = "\n\n".join([*map(finished, said[:-1]), *said[-1:]]) or NO_TEXT
    key = answer_key([(row.rpc_id or "", row.run_id or "") for row, _ in done])
    await settler.finish([row for row, _ in done], f"final-{key}", text)

"""Files of the agent as deliveries behind an answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from pitelegram.bridge.answer import deliveries
from pitelegram.bridge.cutting import shorten
from pitelegram.store.rows import AttachedFile

ALBUM = 10
"""Most photos of an album."""

LONGEST_CAPTION = 1024


def takes_files(raw: dict[str, Any]) -> bool:
    """Whether the agent's files follow a raw answer: one that ends a run, not what is said on the way."""
    return str(raw["delivery_id"]).startswith("final-")


def attached_answers(raw: dict[str, Any], files: Sequence[AttachedFile]) -> list[dict[str, Any]]:
    """Return a delivery for each file, and one for photos that stand next to each other.

    Each stands by itself, so that one which Telegram refuses takes no other with it.

    @param raw: the answer that they follow.
    """
    base, created = str(raw["delivery_id"])[:100], int(raw["delivery"]["createdAtMs"])
    answers: list[dict[str, Any]] = []
    for group in _groups(files):
        call = _album(group) if len(group) > 1 else _single(group[0])
        answers += deliveries(f"{base}.a{group[0].seq}", "final", [call], created)
    return answers


def _groups(files: Sequence[AttachedFile]) -> list[list[AttachedFile]]:
    groups: list[list[AttachedFile]] = []
    for photo, run in groupby(files, key=lambda file: file.photo):
        found = list(run)
        size = ALBUM if photo else 1
        groups += [found[start : start + size] for start in range(0, len(found), size)]
    return groups


def _single(file: AttachedFile) -> dict[str, Any]:
    kind = "photo" if file.photo else "document"
    params: dict[str, Any] = {kind: f"attach://{kind}"}
    if file.caption:
        params["caption"] = shorten(file.caption, LONGEST_CAPTION)
    method = "sendPhoto" if file.photo else "sendDocument"
    return {"method": method, "params": params, "files": [_file(kind, file)]}


def _album(files: Sequence[AttachedFile]) -> dict[str, Any]:
    media = []
    for number, file in enumerate(files):
        item: dict[str, Any] = {"type": "photo", "media": f"attach://photo{number}"}
        if file.caption:
            item["caption"] = shorten(file.caption, LONGEST_CAPTION)
        media.append(item)
    named = [_file(f"photo{number}", file) for number, file in enumerate(files)]
    return {"method": "sendMediaGroup", "params": {"media": media}, "files": named}


def _file(field: str, file: AttachedFile) -> dict[str, str]:
    return {"field": field, "path": file.path, "filename": file.name, "mimeType": file.mime}

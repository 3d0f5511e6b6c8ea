"""Looking up what a change became when its answer was lost: read-only, from the daemon's store."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pitelegram.control import envelope as envelopes
from pitelegram.control.envelope import Envelope

SECONDS = 1.0
"""How long the store may be busy."""

_ROW = (
    "SELECT action, canonical_version, canonical, selector_proof, subject, state, envelope"
    " FROM commands WHERE request_id = ? AND host_id <> ''"
)


def durable_answer(database: Path, value: dict[str, Any]) -> Envelope | None:
    """Return the stored envelope of exactly this request; None when nothing proves it.

    Nothing is executed, changed or created.

    @param value: the request as it was sent.
    """
    try:
        uri = f"file:{quote(str(database))}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=SECONDS)
    except sqlite3.Error:
        return None
    try:
        connection.row_factory = sqlite3.Row
        row = connection.execute(_ROW, (value.get("request_id"),)).fetchone()
    except sqlite3.Error:
        return None
    finally:
        connection.close()
    return None if row is None else _proven(row, value)


def _proven(row: sqlite3.Row, value: dict[str, Any]) -> Envelope | None:
    from pitelegram.control.canonical import VERSION, canonical_form, selector_proof
    from pitelegram.control.requests import Invalid, validate

    try:
        request = validate(value)
        found = json.loads(row["envelope"] or "null")
    except (Invalid, ValueError):
        return None
    same = (
        row["canonical_version"] == VERSION
        and row["action"] == request.action
        and row["selector_proof"] == selector_proof(request)
        and row["canonical"] == canonical_form(request, row["subject"])
    )
    if not same or not envelopes.is_legal(found):
        return None
    right = (found["action"], found["request_id"]) == (request.action, request.request_id)
    return found if right else None

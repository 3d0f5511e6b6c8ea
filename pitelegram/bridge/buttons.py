"""Keyboards below answers: made of the agent's buttons, and marked once one of them was pressed."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from pitelegram.bridge.menus.screen import MAX_BUTTONS, MAX_LABEL, label
from pitelegram.bridge.outgoing import Button
from pitelegram.kernel.jsonio import dumps
from pitelegram.store.rows import ButtonRow

PREFIX = "tgbtn:"
PER_ROW = 8
"""Telegram's limit for one row."""

MAX_BYTES = 10_000
"""JSON of a keyboard that Telegram takes, with some room."""

PRESSED = "primary"
"""How a button looks once it was pressed, unless the agent says otherwise."""

QUEUED = "Queued."
ALREADY = "Already queued."
EXPIRED = "Button action expired."

_LABELS = (MAX_LABEL, 32, 16, 8)
"""Most UTF-16 units of a label: as few as it needs for the whole to fit."""
_LONGEST_STYLE = "success"
_DATA = re.compile(rf"\A{PREFIX}([0-9a-f]{{8}})\Z")

Keyboard = list[list[dict[str, Any]]]


def keyboard(
    rows: Sequence[Sequence[Button]], mint: Callable[[], str]
) -> tuple[dict[str, Any], list[ButtonRow]]:
    """Return the C{reply_markup} for an answer's buttons, and what has to be stored for it.

    A row that is too wide goes on in the next one; what exceeds a message's limit is left out.  Labels
    are shorter where many are long.

    @param mint: returns 8 random hex digits.  One that came already is asked for anew.
    """
    lines = _lines(rows)
    given: dict[str, Button] = {}
    for button in (each for line in lines for each in line):
        given[_fresh(mint, given)] = button
    made: Keyboard = []
    for limit in _LABELS:
        made = _made(lines, list(given), limit)
        if len(dumps(with_styles(made, dict.fromkeys(given, _LONGEST_STYLE)))) <= MAX_BYTES:
            break
    shown = {str(each["callback_data"]): str(each["text"]) for line in made for each in line}
    stored = [
        ButtonRow(
            key=key,
            label=shown[PREFIX + key],
            prompt=button.prompt,
            style=button.style,
            keyboard=made,
        )
        for key, button in given.items()
    ]
    return {"inline_keyboard": made}, stored


def _lines(rows: Sequence[Sequence[Button]]) -> list[Sequence[Button]]:
    """Return rows that are not too wide, and not too many buttons."""
    lines: list[Sequence[Button]] = []
    room = MAX_BUTTONS
    for row in rows:
        for start in range(0, len(row), PER_ROW):
            line = row[start : start + PER_ROW][:room]
            if not line:
                return lines
            lines.append(line)
            room -= len(line)
    return lines


def _made(lines: Sequence[Sequence[Button]], keys: Sequence[str], limit: int) -> Keyboard:
    rest = iter(keys)
    return [
        [
            {"text": label(button.label, limit), "callback_data": PREFIX + next(rest)}
            for button in line
        ]
        for line in lines
    ]


def is_button(data: str) -> bool:
    """Whether callback data are of a button below an answer."""
    return data.startswith(PREFIX)


def key_of(data: str) -> str | None:
    """Return the key in callback data, None when they are no button's."""
    found = _DATA.match(data)
    return None if found is None else found[1]


def keys_of(made: Keyboard) -> list[str]:
    """Return the keys of a keyboard."""
    found = [key_of(str(button.get("callback_data"))) for row in made for button in row]
    return [key for key in found if key is not None]


def with_styles(made: Keyboard, styles: Mapping[str, str]) -> Keyboard:
    """Return a keyboard in which some buttons have a style.

    @param styles: by key.
    """
    return [[_styled(button, styles) for button in row] for row in made]


def _styled(button: dict[str, Any], styles: Mapping[str, str]) -> dict[str, Any]:
    style = styles.get(key_of(str(button.get("callback_data"))) or "")
    return {**button, "style": style} if style else button


def _fresh(mint: Callable[[], str], taken: Container[str]) -> str:
    while (key := mint()) in taken:
        pass
    return key

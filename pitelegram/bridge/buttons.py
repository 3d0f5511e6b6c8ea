"""Keyboards below answers: made of the agent's buttons, and marked once one of them was pressed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pitelegram.bridge.menus.screen import MAX_BUTTONS, label
from pitelegram.bridge.outgoing import Button
from pitelegram.store.rows import ButtonRow

PREFIX = "tgbtn:"
PER_ROW = 8
"""Telegram's limit for one row."""

PRESSED = "primary"
"""How a button looks once it was pressed, unless the agent says otherwise."""

QUEUED = "Queued."
ALREADY = "Already queued."
EXPIRED = "Button action expired."

_DATA = re.compile(rf"\A{PREFIX}([0-9a-f]{{8}})\Z")

Keyboard = list[list[dict[str, Any]]]


def keyboard(
    rows: Sequence[Sequence[Button]], mint: Callable[[], str]
) -> tuple[dict[str, Any], list[ButtonRow]]:
    """Return the C{reply_markup} for an answer's buttons, and what has to be stored for it.

    A row that is too wide goes on in the next one; what exceeds a message's limit is left out.

    @param mint: returns 8 random hex digits.  One that came already is asked for anew.
    """
    made: Keyboard = []
    found: list[tuple[str, str, Button]] = []
    keys: set[str] = set()
    for row in rows:
        for start in range(0, len(row), PER_ROW):
            line = row[start : start + PER_ROW][: MAX_BUTTONS - len(found)]
            if not line:
                break
            made.append([])
            for button in line:
                key = _fresh(mint, keys)
                shown = label(button.label)
                made[-1].append({"text": shown, "callback_data": PREFIX + key})
                found.append((key, shown, button))
    stored = [
        ButtonRow(key=key, label=shown, prompt=button.prompt, style=button.style, keyboard=made)
        for key, shown, button in found
    ]
    return {"inline_keyboard": made}, stored


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


def _fresh(mint: Callable[[], str], keys: set[str]) -> str:
    while (key := mint()) in keys:
        pass
    keys.add(key)
    return key

"""What Pi's extensions ask, and what a button or a reply says to it, as plain records."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import attrs

from pitelegram.bridge.cutting import clean

ANNOUNCED = 120.0
"""Seconds that a dialog without a time-out of its own stays open."""

MAX_BUTTONS = 60
"""Options of one dialog that have a button."""

PREFIX = "dlg:"
CANCEL, YES, NO = "x", "y", "n"

_DATA = re.compile(r"\Adlg:([0-9a-f]{12}):(?:([xyn])|([op])([0-9]{1,4}))\Z")
_NUMBER = re.compile(r"\A[0-9]{1,6}\.?\Z")
_MARKS = {"warning": "⚠️", "error": "❌"}

MAX_NOTICE = 4000
"""Characters of a notice."""


@attrs.frozen(kw_only=True)
class Question:
    """One dialog.

    @ivar detail: the message of a C{confirm}, the placeholder of an C{input}, the text of an
        C{editor}.
    @ivar seconds: how long it is open.
    @ivar own: whether Pi has this time-out itself.
    """

    method: str
    title: str
    detail: str = ""
    options: tuple[str, ...] = ()
    seconds: float = ANNOUNCED
    own: bool = False

    @property
    def takes_text(self) -> bool:
        """Whether it is answered by a text."""
        return self.method in ("input", "editor")


@attrs.frozen
class DialogPress:
    """A button of a dialog.

    @ivar action: L{CANCEL}, L{YES}, L{NO}, C{o} (an option) or C{p} (a page).
    @ivar number: which option or page.
    """

    key: str
    action: str
    number: int = 0


def read_question(request: Mapping[str, Any]) -> Question:
    """Return what a request that waits for an answer asks.

    @param request: an C{extension_ui_request} that L{pitelegram.pi.dialogs.well_formed} accepts.
    """
    method = str(request["method"])
    field = {"confirm": "message", "input": "placeholder", "editor": "prefill"}.get(method, "")
    timeout: Any = request.get("timeout")
    own = (
        isinstance(timeout, int | float)
        and not isinstance(timeout, bool)
        and timeout > 0
        and math.isfinite(timeout)
    )
    return Question(
        method=method,
        title=clean(_text(request.get("title"))).strip() or "Pi needs an answer",
        detail=_text(request.get(field)),
        options=tuple(request["options"]) if method == "select" else (),
        seconds=float(timeout) / 1000 if own else ANNOUNCED,
        own=own,
    )


def read_press(data: str) -> DialogPress | None:
    """Return what callback data says, None when it is not a dialog's."""
    match = _DATA.match(data)
    if match is None:
        return None
    key, word, kind, number = match.groups()
    return DialogPress(key, word) if word else DialogPress(key, kind, int(number))


def key_of_markup(markup: Any) -> str | None:
    """Return the key of the dialog whose buttons C{markup} holds, None when there is none."""
    rows = markup.get("inline_keyboard") if isinstance(markup, dict) else None
    for row in rows if isinstance(rows, list) else ():
        for button in row if isinstance(row, list) else ():
            data = button.get("callback_data") if isinstance(button, dict) else None
            press = read_press(data) if isinstance(data, str) else None
            if press is not None:
                return press.key
    return None


def option_of(question: Question, text: str) -> str | None:
    """Return the option that a written number or an option's own words mean, None for neither."""
    word = text.strip()
    if text in question.options:
        return text
    if _NUMBER.match(word) and 1 <= int(word.rstrip(".")) <= len(question.options):
        return question.options[int(word.rstrip(".")) - 1]
    return next((option for option in question.options if option.strip() == word), None)


def answer_of(question: Question, press: DialogPress) -> tuple[dict[str, Any], str] | None:
    """Return the answer that a button gives, and it in words; None when it has no such button."""
    if press.action == CANCEL:
        return {"cancelled": True}, ""
    if press.action in (YES, NO) and question.method == "confirm":
        yes = press.action == YES
        return {"confirmed": yes}, "Yes" if yes else "No"
    if press.action == "o" and press.number < min(len(question.options), MAX_BUTTONS):
        option = question.options[press.number]
        return {"value": option}, option
    return None


def notice_text(request: Mapping[str, Any]) -> str | None:
    """Return what a C{notify} shows, None when it says nothing."""
    text = clean(_text(request.get("message")))
    if not text.strip():
        return None
    mark = _MARKS.get(str(request.get("notifyType")), "ℹ️")
    left = len(text) - MAX_NOTICE
    more = f"… ({left} more characters were left out)" if left > 0 else ""
    return f"{mark} {text[:MAX_NOTICE]}{more}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

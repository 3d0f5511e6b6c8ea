"""How a dialog looks in Telegram: text, pages of buttons, what is attached, what it becomes."""

from __future__ import annotations

from typing import Any

import attrs

from pitelegram.bridge.cutting import clean, shorten, utf16_length
from pitelegram.bridge.questions import CANCEL, MAX_BUTTONS, NO, PREFIX, YES, Question

MAX_TEXT = 4000
"""UTF-16 units of a dialog's text that are shown; longer text is attached."""
MAX_MESSAGE = 4096
MAX_LABEL = 64
PAGE = 8
"""Options on one page."""

CANCEL_LABEL = "✖️ Cancel"

LATE = "This question is not open any more"
LATE_REPLY = (
    "⌛ That question is not open any more; your reply changed nothing and Pi did not take it."
)
TAKEN = "Pi has your answer."
CANCELLED_TOAST = "Cancelled."
USE_BUTTONS = "☝️ That question is answered with its buttons; Pi did not get your reply."
TEXT_ONLY = "✍️ That question takes a text, as a reply to it; Pi did not get this."

ANSWERED = "✅ Answered."
CANCELLED = "✖️ Cancelled."
EXPIRED = "⌛ Nobody answered in time; it was cancelled."
ABORTED = "✖️ Cancelled: what asked was aborted."
PI_ENDED = "✖️ Closed: Pi ended before an answer came."
WORKER_ENDED = "✖️ Closed: this worker ended before an answer came."
MOVED = "✖️ Closed here: the question was asked again in the worker's Thread."


@attrs.frozen
class Shown:
    """A dialog's message.

    @ivar body: the question as it is shown, without what stands below it.
    @ivar text: the whole message.
    @ivar attachment: C{(file name, text)} of what is too long to be shown, or None.
    """

    body: str
    text: str
    attachment: tuple[str, str] | None


def shown(question: Question) -> Shown:
    """Return the message of a dialog."""
    footer = "\n".join(_footer(question))
    whole = "\n\n".join(part for part in (question.title, _detail(question)) if part)
    room = min(MAX_TEXT, MAX_MESSAGE - utf16_length(footer) - 6)
    fits = utf16_length(whole) <= room
    body = f"❔ {whole if fits else shorten(whole, room, '… (the whole text is attached)')}"
    return Shown(body, f"{body}\n\n{footer}", None if fits else _attachment(question, whole))


def keyboard(question: Question, key: str, page: int = 0) -> dict[str, Any]:
    """Return the buttons of a dialog.

    @param key: 12 hex digits that stand for this dialog of this Pi of this worker.
    @param page: which page of options; a page that does not exist is the nearest one.
    """
    rows: list[list[dict[str, str]]] = []
    if question.method == "confirm":
        rows = [[_button("Yes", key, YES)], [_button("No", key, NO)]]
    elif question.method == "select":
        rows = _options(question, key, page)
    return {"inline_keyboard": [*rows, [_button(CANCEL_LABEL, key, CANCEL)]]}


def pages(question: Question) -> int:
    """Return how many pages of options a dialog has."""
    return max(1, -(-min(len(question.options), MAX_BUTTONS) // PAGE))


def closed(body: str, words: str) -> str:
    """Return what the message of a dialog says when it is over."""
    return f"{shorten(body, MAX_MESSAGE - utf16_length(words) - 2)}\n\n{words}"


def chosen(words: str) -> str:
    """Return the words of an answer that may be shown."""
    return f"✅ Answered: {shorten(clean(words).strip() or '(empty)', 200)}"


def label(option: str, number: int) -> str:
    """Return the label of an option's button: never empty, on one line, at most 64 units."""
    return shorten(" ".join(clean(option).split()), MAX_LABEL) or f"Option {number}"


def duration(seconds: float) -> str:
    """Return a span of time in words."""
    if seconds < 60 or seconds % 60 and seconds < 600:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    return f"{round(minutes / 60)} hours"


def _options(question: Question, key: str, page: int) -> list[list[dict[str, str]]]:
    count, last = min(len(question.options), MAX_BUTTONS), pages(question) - 1
    page = min(max(page, 0), last)
    start = page * PAGE
    rows = [
        [_button(label(question.options[number], number + 1), key, f"o{number}")]
        for number in range(start, min(start + PAGE, count))
    ]
    if last:
        before, after = (page - 1) % (last + 1), (page + 1) % (last + 1)
        rows.append(
            [
                _button(f"⬅️ {before + 1}/{last + 1}", key, f"p{before}"),
                _button(f"➡️ {after + 1}/{last + 1}", key, f"p{after}"),
            ]
        )
    return rows


def _button(text: str, key: str, action: str) -> dict[str, str]:
    return {"text": text, "callback_data": f"{PREFIX}{key}:{action}"}


def _footer(question: Question) -> list[str]:
    lines = []
    if question.takes_text:
        lines.append("✍️ Reply to this message with your input.")
    count = len(question.options)
    if count > MAX_BUTTONS:
        lines.append(f"{MAX_BUTTONS} of {count} have buttons; reply with a number for any.")
    return [*lines, f"⏳ {duration(question.seconds)}, then it is cancelled."]


def _detail(question: Question) -> str:
    text = clean(question.detail)
    if question.method == "select":
        return _list(question.options)
    if not text:
        return ""
    if question.method == "input":
        return f"For example: {text}"
    return f"The text now:\n{text}" if question.method == "editor" else text


def _list(options: tuple[str, ...]) -> str:
    """The options as numbered text, where their buttons do not show all of them."""
    told = all(label(option, 0) == option.strip() for option in options)
    if told and len(options) <= MAX_BUTTONS:
        return ""
    return "\n".join(f"{number}. {clean(text)}" for number, text in enumerate(options, 1))


def _attachment(question: Question, whole: str) -> tuple[str, str]:
    if question.method == "editor" and utf16_length(question.title) < MAX_TEXT:
        return "text.txt", question.detail
    return "question.txt", whole

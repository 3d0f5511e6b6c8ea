"""The queue: what is held, what Pi has queued itself, and one prompt in detail."""

from __future__ import annotations

from collections.abc import Sequence

from pitelegram.bridge.cutting import shorten
from pitelegram.bridge.interfaces import QueueItem
from pitelegram.bridge.menus.screen import (
    MAIN_MENU,
    Button,
    Row,
    Screen,
    Text,
    marked,
    page_count,
    pager,
)
from pitelegram.bridge.prompt import summary

PAGE = 8
PREVIEW = 3600
"""UTF-16 units of a prompt that are shown."""
PI_SHOWN = 5
"""Prompts of each of Pi's own queues that are shown."""

PRIORITIZED = "Prioritized."
NORMAL = "Normal priority."
KEPT = "Kept."
SKIPPED = "It will be skipped."
GONE = "Item no longer in queue."

EMPTY = (
    "⌛ Queue is empty.",
    "🫙 Nothing waits here.",
    "🍃 Still empty.",
    "🦗 Only crickets.",
    "🌵 Not a single prompt far and wide.",
    "🛶 Calm water.",
    "🧘 Pi has caught up with you.",
    "🪴 Room for new ideas.",
    "🌙 All quiet.",
    "🧹 Swept clean.",
    "🎈 Light as air.",
    "🕳 Looked again: no.",
)
"""Titles of an empty queue; each refresh shows the next one, so that a press is seen to work."""

_MARKS = {"control": "🎛", "priority": "⚡"}


def queue_list(
    items: Sequence[QueueItem],
    page: int = 0,
    turn: int = 0,
    steering: Sequence[str] = (),
    follow_up: Sequence[str] = (),
) -> Screen:
    """Return one page of the queue.

    @param turn: how often an empty queue was looked at.
    @param steering: texts in Pi's own queue, which are shown and cannot be changed.
    """
    pages = page_count(len(items), PAGE)
    page = min(max(page, 0), pages - 1)
    text = Text().bold("⏳ Queue:" if items else EMPTY[turn % len(EMPTY)])
    for words, texts in (("steering", steering), ("follow-up", follow_up)):
        if texts:
            text.plain(f"\n\nPi has these already ({words}):")
            for number, each in enumerate(texts[:PI_SHOWN], 1):
                text.plain(f"\n{number}. {summary(each)}")
            if len(texts) > PI_SHOWN:
                text.plain(f"\n… and {len(texts) - PI_SHOWN} more")
    again = f"queue:refresh:{0 if items else (turn + 1) % len(EMPTY)}"
    rows: list[Row] = [(MAIN_MENU,)]
    rows += pager("queue:page:", page, pages, f"queue:page:{page}")
    for item in items[page * PAGE : (page + 1) * PAGE]:
        rows.append((Button(_label(item), f"queue:pick:{item.seq}"),))
    return Screen(text, (*rows, (Button("🌀 Refresh", again),)))


def queue_detail(item: QueueItem) -> Screen:
    """Return one prompt with what can be done to it."""
    text = Text().bold(f"{item.position}.").plain(f" {_mark(item)}\n".replace(" \n", "\n"))
    text.pre(shorten(item.prompt, PREVIEW, "\n… [truncated]"))
    page = (item.position - 1) // PAGE
    rows: list[Row] = [(Button("⬆️ Back", f"queue:page:{page}"),)]
    if item.lane in ("priority", "normal"):
        first = item.lane == "priority"
        prefix = f"queue:prio-set:{item.seq}:"
        rows.append(
            (
                Button(marked(first, "Priority", "🟡 ", "⚫️ "), f"{prefix}priority"),
                Button(marked(not first, "Normal", "🟣 ", "⚫️ "), f"{prefix}normal"),
            )
        )
    prefix = f"queue:skip-set:{item.seq}:"
    keep, skip = Button("🟢 Keep", f"{prefix}keep"), Button("🔴 Skip", f"{prefix}skip")
    if item.skip:
        keep = Button("⚫️ Keep", f"{prefix}keep")
    else:
        skip = Button("⚫️ Skip", f"{prefix}skip")
    return Screen(text, (*rows, (keep, skip)))


def _mark(item: QueueItem) -> str:
    return "🔴" if item.skip else _MARKS.get(item.lane, "")


def _label(item: QueueItem) -> str:
    words = item.summary.strip() or "(no text)"
    return " ".join(part for part in (f"{item.position}.", _mark(item), words) if part)

"""The panel's screens as data.  Pure functions: a view in, a L{Screen} out.

Callback data is C{ptd:<verb>[:<argument>]}, well under Telegram's 64 bytes.  Every screen but the
closed one offers a way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from pitelegram.supervisor.interfaces import WorkerView

MAX_TEXT = 4096
"""Telegram's limit for a text message, counted in UTF-16 units here (never more than its own)."""

MAX_BUTTONS = 100
"""More buttons than this are dropped by clients."""

PAGE_SIZE = 8
"""Workers on one page of the roster."""

ERROR_TAIL = 160
"""Characters of a worker's last error in the roster: the end says most."""

MARKS = {
    "running": "🟢",
    "spawning": "⏳",
    "adopting": "⏳",
    "backoff": "🟠",
    "failed": "🔴",
    "stopped": "⚪",
}
"""Marks of the roster by worker state; all states of stopping show 🟡."""


@attrs.frozen
class Button:
    """An inline button."""

    label: str
    data: str


@attrs.frozen
class Screen:
    """Plain text and rows of buttons."""

    text: str
    rows: tuple[tuple[Button, ...], ...] = ()

    def as_params(self) -> dict[str, Any]:
        """Return C{text} and C{reply_markup} as the Bot API wants them, within its limits."""
        kept: list[list[dict[str, str]]] = []
        count = 0
        for row in self.rows:
            count += len(row)
            if count > MAX_BUTTONS:
                break
            kept.append([{"text": b.label[:64], "callback_data": b.data} for b in row])
        return {"text": clip(self.text), "reply_markup": {"inline_keyboard": kept}}


MENU_BUTTON = Button("↩️ Menu", "ptd:m")
BACK_BUTTON = Button("↩️ Back", "ptd:w:0")


def clip(text: str, limit: int = MAX_TEXT) -> str:
    """Return C{text}, cut with an ellipsis to C{limit} UTF-16 units."""
    if len(text.encode("utf-16-le")) // 2 <= limit:
        return text
    cut = text.encode("utf-16-le")[: (limit - 1) * 2].decode("utf-16-le", "ignore")
    return cut + "…"


def menu(note: str = "") -> Screen:
    """The root screen of C{/daemon}."""
    return Screen(
        _noted("🛠️ Daemon control", note),
        (
            (Button("👷 Workers", "ptd:w:0"), Button("📁 New worker…", "ptd:b")),
            (Button("ℹ️ Status", "ptd:t"), Button("🧹 Threads", "ptd:th")),
            (Button("✖️ Close", "ptd:x"),),
        ),
    )


def closed() -> Screen:
    """What stays of a panel that was closed."""
    return Screen("✖️ Control panel closed.")


def closing(text: str) -> Screen:
    """A short answer, with the way to the menu."""
    return Screen(text, ((MENU_BUTTON,),))


def workers(views: Sequence[WorkerView], page: int = 0, note: str = "") -> Screen:
    """The roster: C{page} of all managed workers, clamped to what exists."""
    if not views:
        return Screen(_noted("📭 No Pi workers yet.", note), _roster_end())
    pages = (len(views) + PAGE_SIZE - 1) // PAGE_SIZE
    page = max(0, min(page, pages - 1))
    shown = views[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]
    title = "👷 Pi workers" if pages == 1 else f"👷 Pi workers ({page + 1}/{pages})"
    text = _noted("\n".join([title, "", *map(worker_line, shown)]), note)
    rows: list[tuple[Button, ...]] = []
    for view in shown:
        rows.append((Button(f"📍 {view.name}", f"ptd:l:{view.spec_id}"),))
        rows.append(_life_buttons(view))
    if pages > 1:
        rows.append(
            (
                Button("⬅️", f"ptd:w:{(page - 1) % pages}"),
                Button("➡️", f"ptd:w:{(page + 1) % pages}"),
            )
        )
    return Screen(text, (*rows, *_roster_end()))


def worker_line(view: WorkerView) -> str:
    """What the roster says of a worker: one line, and the end of its last error below."""
    mark = MARKS.get(view.state, "🟡")
    parts = [f"{mark} {view.name}", view.state]
    if view.state == "running":
        parts.append(view.activity)
    if view.queued:
        parts.append(f"{view.queued} waiting")
    if view.restarts:
        parts.append(f"restarts {view.restarts}")
    if view.state == "running" and view.model:
        parts.append(view.model)
    line = " · ".join(parts)
    if view.last_error and view.state != "stopped":
        line += f"\n    ⚠️ {_tail(view.last_error)}"
    return line


def _tail(text: str) -> str:
    return text if len(text) <= ERROR_TAIL else f"…{text[1 - ERROR_TAIL :]}"


def confirm(view: WorkerView, verb: str) -> Screen:
    """Ask before C{stop} or C{restart}; the button is called as the one that led here."""
    if verb == "stop":
        text = f"🛑 Stop {view.name}?\n\nIts Thread and its waiting messages stay."
        action = Button("🛑 Stop", f"ptd:y:{view.spec_id}")
    elif verb == "fresh":
        text = f"🆕 Start {view.name} in a new session?\n\nIts session file stays where it is."
        action = Button("🆕 New session", f"ptd:fx:{view.spec_id}")
    else:
        label = restart_label(view)
        text = f"{label} {view.name}?\n\n{RESTART_WORDS[label]}"
        action = Button(label, f"ptd:n:{view.spec_id}")
    return Screen(text, ((action,), (BACK_BUTTON,)))


RESTART_WORDS = {
    "♻️ Restart": "Its session goes on.",
    "♻️ Retry": "It is started in its directory, and its session goes on.",
    "♻️ Start anew": "The process that does not answer is ended first; its session goes on.",
}
"""What a restart means, by the label of its button."""


def restart_label(view: WorkerView) -> str:
    """Return what the button for a worker's (re)start is called."""
    if view.state in ("stopped", "failed"):
        return "♻️ Retry"
    return "♻️ Start anew" if view.state == "adopting" else "♻️ Restart"


def status(document: dict[str, Any]) -> Screen:
    """The Status screen from the public status document."""
    polling, outbox, journal = document["polling"], document["outbox"], document["journal"]
    lines = [
        f"ℹ️ Status: {document['health']}",
        "",
        f"Profile: {document['profile']}",
        f"Receiving: {'yes' if polling['receiving'] else 'no'} ({polling['phase']})",
        f"Workers: {len(document['workers'])}",
        f"Waiting updates: {journal['pending']} · held {journal['held']}"
        f" · failed {journal['failed']}",
        f"Answers: {outbox['pending']} on their way · {outbox['uncertain']} uncertain"
        f" · {outbox['dead_letter']} refused",
        *(f"⚠️ {problem}" for problem in document["problems"]),
    ]
    return Screen("\n".join(lines), ((MENU_BUTTON,),))


def _life_buttons(view: WorkerView) -> tuple[Button, ...]:
    restart = Button(restart_label(view), f"ptd:r:{view.spec_id}")
    if view.state in ("stopped", "failed"):
        return (restart,)
    if view.state == "adopting":
        return (restart, Button("⏳ Keep waiting", f"ptd:k:{view.spec_id}"))
    return (Button("🛑 Stop", f"ptd:z:{view.spec_id}"), restart)


def _roster_end() -> tuple[tuple[Button, ...], ...]:
    return ((Button("📁 New worker…", "ptd:b"), MENU_BUTTON),)


def _noted(text: str, note: str) -> str:
    return f"{note}\n\n{text}" if note else text

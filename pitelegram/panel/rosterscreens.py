"""The roster, and the questions about a worker.  Pure functions, as in L{screens}."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pitelegram.panel.paging import page_row
from pitelegram.panel.screens import BACK_BUTTON, MENU_BUTTON, Button, Screen, noted
from pitelegram.supervisor.interfaces import WorkerView

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
class Serving:
    """Whom the chat serves where there are no Threads.

    @ivar binding_key: None for nobody.
    """

    binding_key: str | None


def workers(
    views: Sequence[WorkerView], page: int = 0, note: str = "", serving: Serving | None = None
) -> Screen:
    """The roster: C{page} of all managed workers, clamped to what exists.

    @param serving: whom the chat serves; None where each worker has a Thread.
    """
    if not views:
        return Screen(noted("📭 No Pi workers yet.", note), _roster_end(), "roster")
    pages = (len(views) + PAGE_SIZE - 1) // PAGE_SIZE
    page = max(0, min(page, pages - 1))
    shown = views[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]
    title = "👷 Pi workers" if pages == 1 else f"👷 Pi workers ({page + 1}/{pages})"
    lines = [title, *_serving_lines(views, serving), "", *map(worker_line, shown)]
    rows: list[tuple[Button, ...]] = []
    for view in shown:
        rows.append((Button(f"📍 {view.name}", f"ptd:l:{view.spec_id}"), *_serve(view, serving)))
        rows.append(_life_buttons(view))
    if pages > 1:
        rows.append(page_row("ptd:w:", page, pages))
    return Screen(noted("\n".join(lines), note), (*rows, *_roster_end()), "roster")


def _serving_lines(views: Sequence[WorkerView], serving: Serving | None) -> list[str]:
    if serving is None:
        return []
    if serving.binding_key is None:
        return ["💬 This chat talks to no worker."]
    names = [view.name for view in views if view.binding_key == serving.binding_key]
    return [f"💬 This chat talks to {names[0] if names else 'a worker that is not listed here'}."]


def _serve(view: WorkerView, serving: Serving | None) -> tuple[Button, ...]:
    if serving is None or view.state != "running" or view.binding_key == serving.binding_key:
        return ()
    return (Button("💬 Talk to it here", f"ptd:c:{view.spec_id}"),)


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
        action = Button("🆕 New session", f"ptd:fx:{life_of(view)}")
    else:
        label = restart_label(view)
        text = f"{label} {view.name}?\n\n{RESTART_WORDS[label]}"
        action = Button(label, f"ptd:n:{life_of(view)}")
    return Screen(text, ((action,), (BACK_BUTTON,)))


def life_of(view: WorkerView) -> str:
    """Return the worker and which of its lives a question is about, for callback data."""
    return f"{view.spec_id}:{view.pid or 0}"


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


def _life_buttons(view: WorkerView) -> tuple[Button, ...]:
    restart = Button(restart_label(view), f"ptd:r:{view.spec_id}")
    if view.state in ("stopped", "failed"):
        return (restart,)
    if view.state == "adopting":
        return (restart, Button("⏳ Keep waiting", f"ptd:k:{view.spec_id}"))
    return (Button("🛑 Stop", f"ptd:z:{view.spec_id}"), restart)


def _roster_end() -> tuple[tuple[Button, ...], ...]:
    return ((Button("📁 New worker…", "ptd:b"), MENU_BUTTON),)

"""The main menu: C{/start} and C{/help}."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pitelegram.bridge.menus.screen import Button, Row, Screen, Text
from pitelegram.bridge.menus.status import StatusView, status_lines

TITLE = "Pi Telegram"

MENU_COMMANDS = (
    ("start", "🟢", "Open menu / Pair bridge"),
    ("compact", "🗜", "Compact current session"),
    ("next", "⏩", "Force next turn"),
    ("continue", "▶️", "Queue continue prompt"),
    ("abort", "⏹️", "Abort Pi"),
    ("stop", "🟥", "Abort Pi & Clear queue"),
)
"""Name, mark and words of the commands that Telegram lists for the bot."""

MORE = "More: /status /queue /model /thinking /sessions /new /settings"

MAX_TEMPLATES = 40
"""Prompt templates that are listed; the others work all the same."""


@attrs.frozen(kw_only=True)
class MainView:
    """What the main menu shows.

    @ivar templates: C{(name, description)} of Pi's prompt templates and skills.
    @ivar with_name: the leader can name Threads.
    """

    status: StatusView
    templates: Sequence[tuple[str, str]] = ()
    with_name: bool = True


def main_menu(view: MainView) -> Screen:
    """Return the root screen."""
    text = Text().bold(TITLE).plain("\n\n")
    for name, mark, words in MENU_COMMANDS:
        text.plain(f"{mark} /{name} — {words}\n")
    text.plain(MORE + (" /name" if view.with_name else "") + "\n\n")
    shown = view.templates[:MAX_TEMPLATES]
    for name, words in shown:
        text.plain(f"🧩 /{name}" + (f" — {_short(words)}" if words.strip() else "") + "\n")
    if len(view.templates) > len(shown):
        text.plain(f"… and {len(view.templates) - len(shown)} more\n")
    if shown:
        text.plain("\n")
    return Screen(text.join(status_lines(view.status)), main_rows(view.status))


def main_rows(view: StatusView) -> tuple[Row, ...]:
    """Return the buttons of the main menu and of the status card."""
    rows: list[Row] = [(Button(f"🤖 Model: {view.model or 'none'}", "menu:model"),)]
    if view.reasoning:
        rows.append((Button(f"🧠 Thinking: {view.thinking or 'off'}", "menu:thinking"),))
    mark = "⏳" if view.queued else "⌛"
    rows.append((Button(f"{mark} Queue: {view.queued}", "menu:queue"),))
    rows.append((Button("🗂 Sessions", "menu:sessions"),))
    rows.append((Button("⚙️ Settings", "menu:settings"),))
    return tuple(rows)


def status_card(view: StatusView) -> Screen:
    """Return the answer to C{/status}."""
    return Screen(status_lines(view), main_rows(view))


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= 60 else line[:59].rstrip() + "…"

"""Choosing a thinking level."""

from __future__ import annotations

from collections.abc import Sequence

from pitelegram.bridge.menus.screen import MAIN_MENU, Button, Screen, Text, in_rows, marked

ORDER = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""Levels as they are shown; Pi says which of them a model has."""

NO_CONTROLS = "This model has no reasoning controls."
INVALID = "Invalid thinking level."


def thinking_menu(levels: Sequence[str], current: str | None) -> Screen:
    """Return the menu: C{off} alone, the others in rows of three."""
    text = Text().bold("🧠 Choose a thinking level:")
    if not has_choice(levels):
        text.plain(f"\n{NO_CONTROLS}")
        return Screen(text, ((MAIN_MENU,),))
    known = [level for level in ORDER if level in levels]
    buttons = [Button(marked(level == current, level), f"thinking:set:{level}") for level in known]
    alone = [(button,) for level, button in zip(known, buttons, strict=True) if level == "off"]
    rest = [button for level, button in zip(known, buttons, strict=True) if level != "off"]
    return Screen(text, ((MAIN_MENU,), *alone, *in_rows(rest, 3)))


def has_choice(levels: Sequence[str]) -> bool:
    """Whether there is anything to choose."""
    return any(level in ORDER and level != "off" for level in levels)


def chosen(level: str) -> str:
    """Return the toast and the answer."""
    return f"Thinking: {level}"


def unknown(wanted: str, levels: Sequence[str]) -> str:
    """Return the answer to a level that the model does not have."""
    if not has_choice(levels):
        return NO_CONTROLS
    words = ", ".join(level for level in ORDER if level in levels)
    return f"{INVALID} “{wanted[:40]}” is none of: {words}"

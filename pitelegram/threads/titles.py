"""What stands above a Thread."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from pitelegram.store.rows import Binding

CONTROL_KEY = "daemon"
CONTROL_TITLE = "🛠 Control"
TITLE_LIMIT = 128
MODES = ("letters", "names", "directory-snake", "directory-title", "state")

_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]+")


def title_for(
    mode: str, binding: Binding, others: Iterable[Binding] = (), busy: bool = False
) -> str:
    """Return the title of a binding's Thread.

    @param mode: one of L{MODES}; an unknown one means C{letters}.
    @param others: all bindings; equal directory names are told apart by their letters.
    @param busy: for the mode C{state}.
    """
    if binding.kind == "daemon":
        return CONTROL_TITLE
    slot = binding.slot or "?"
    name = binding.thread_name or slot
    if mode == "names":
        return clean(name)
    if mode == "state":
        return clean(f"{'⏳' if busy else '🟢'} {name}")
    if mode in ("directory-snake", "directory-title") and binding.directory:
        return clean(_directory_title(mode, binding, others) or slot)
    return clean(slot)


def clean(title: str) -> str:
    """Return a title as Telegram keeps it: one line, no outer space, at most 128 characters."""
    return _SPACE.sub(" ", title).strip()[:TITLE_LIMIT].rstrip()


def _directory_title(mode: str, binding: Binding, others: Iterable[Binding]) -> str:
    snake = _snake(binding)
    if not snake:
        return ""
    twins = any(
        other.binding_key != binding.binding_key and _snake(other) == snake for other in others
    )
    suffix = f"_{(binding.slot or '').lower()}" if twins and binding.slot else ""
    title = snake[: TITLE_LIMIT - len(suffix)] + suffix
    if mode == "directory-snake":
        return title
    return " ".join(word.capitalize() for word in title.split("_"))


def _snake(binding: Binding) -> str:
    base = PurePath(binding.directory or "").name
    return "_".join(word.lower() for word in _WORD.findall(base))

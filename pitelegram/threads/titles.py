"""What stands above a Thread."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pitelegram.store.rows import Binding
from pitelegram.threads.directories import SNAKE, TITLE, directory_titles
from pitelegram.threads.interfaces import MARKS

CONTROL_KEY = "daemon"
CONTROL_TITLE = "🛠 Control"
TITLE_LIMIT = 128
MODES = ("letters", "names", SNAKE, TITLE, "state")

_SPACE = re.compile(r"\s+")


def title_for(
    mode: str, binding: Binding, others: Iterable[Binding] = (), busy: bool | None = None
) -> str:
    """Return the title of a binding's Thread.

    What the user called the Thread himself comes first, then the name given by C{/name}.

    @param mode: one of L{MODES}; an unknown one means C{letters}.
    @param others: all bindings; directories are told apart among them.
    @param busy: for the mode C{state}; None: nobody knows.
    """
    if binding.user_title is not None:
        return binding.user_title
    if binding.manual_name is not None and binding.kind != "daemon":
        return binding.manual_name
    return automatic_title(mode, binding, others, busy)


def automatic_title(
    mode: str, binding: Binding, others: Iterable[Binding] = (), busy: bool | None = None
) -> str:
    """Return the title that nobody chose; see L{title_for}."""
    if binding.kind == "daemon":
        return CONTROL_TITLE
    slot = binding.slot or "?"
    if mode == "names":
        return clean(binding.thread_name or slot)
    if mode == "state":
        return clean(MARKS[busy] + _directory_title(SNAKE, binding, others))
    if mode in (SNAKE, TITLE):
        return clean(_directory_title(mode, binding, others))
    return clean(slot)


def clean(title: str) -> str:
    """Return a title as Telegram keeps it: one line, no outer space, at most 128 characters."""
    return _SPACE.sub(" ", title).strip()[:TITLE_LIMIT].rstrip()


def _directory_title(style: str, binding: Binding, others: Iterable[Binding]) -> str:
    rows = [each for each in others if each.binding_key != binding.binding_key]
    titles = directory_titles(style, [*rows, binding])
    return titles.get(binding.binding_key) or binding.slot or "?"

"""Tools at work, as one message for a few of them: arguments visible, results folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from pitelegram.bridge.activity.marked import BOLD, CODE, FOLDED, Marked
from pitelegram.bridge.activity.redaction import inert, so_far, without_secrets
from pitelegram.bridge.cutting import clean, shorten, utf16_length
from pitelegram.kernel.jsonio import dumps

MOST_TOOLS = 6
LIMIT = 3900
"""UTF-16 units of one message."""
DETAIL = 1200
"""UTF-16 units of the arguments, and of the result, of one tool."""

_ARGUMENTS = 2400
"""UTF-16 units of all titles and arguments of one message; the rest is for results."""
_TITLE = 60
_ALONE = frozenset({"command", "file_path", "path", "pattern", "query", "url"})
"""Arguments that need no name where they are the only one."""
_UPPER = frozenset({"ai", "api", "css", "csv", "db", "html", "http", "id", "io", "json", "lsp"}) | {
    *("mcp", "pdf", "sql", "ssh", "ui", "url", "xml", "yaml")
}

RUNNING, DONE, FAILED, INTERRUPTED = "running", "done", "failed", "interrupted"
_SIGNS = {RUNNING: "🔧", DONE: "✅", FAILED: "❌", INTERRUPTED: "⏹"}


@attrs.define(eq=False)
class ToolView:
    """One tool call as it is shown.

    @ivar arguments: safe to be shown and bounded.
    @ivar updates: how often it told of what it has.
    """

    title: str
    arguments: str
    updates: int = 0
    state: str = RUNNING
    _raw: str = ""
    _safe: str | None = ""

    @classmethod
    def of(cls, name: str, arguments: Any) -> ToolView:
        """A tool that begins."""
        return cls(humanised(name), _detail(argument_text(arguments)))

    def update(self, result: str) -> None:
        """It has given this so far."""
        self.updates += 1
        self._raw, self._safe = result, None

    def end(self, result: str, failed: bool) -> None:
        """It is done."""
        self._raw, self._safe = result, None
        self.state = FAILED if failed else DONE

    @property
    def result(self) -> str:
        """What it gave (so far), safe to be shown and bounded; made when somebody looks."""
        if self._safe is None:
            growing = self.state in (RUNNING, INTERRUPTED) or self._raw.endswith("…")
            self._safe = _detail(so_far(self._raw) if growing else self._raw)
        return self._safe

    def interrupt(self) -> None:
        """Nobody will tell of its end."""
        if self.state == RUNNING:
            self.state = INTERRUPTED

    @property
    def fixed(self) -> int:
        """UTF-16 units of what is always shown of it."""
        return utf16_length(self.title) + utf16_length(self.arguments) + 40


def humanised(name: str) -> str:
    """Return a tool's name as words: C{web_fetch} is C{Web fetch}, C{mcp_call} is C{MCP call}."""
    words = clean(name).replace("_", " ").replace("-", " ").split()
    if not words:
        return "Tool"
    first = words[0].upper() if words[0].lower() in _UPPER else words[0][:1].upper() + words[0][1:]
    return shorten(inert(" ".join([first, *words[1:]]), words=True), _TITLE)


def argument_text(arguments: Any) -> str:
    """Return arguments for people: a line for each, or JSON where they are nested."""
    if not isinstance(arguments, dict):
        return "" if arguments is None else _json(arguments)
    if len(arguments) == 1:
        ((name, value),) = arguments.items()
        if name in _ALONE and isinstance(value, str):
            return value
    if any(isinstance(value, dict | list) for value in arguments.values()):
        return _json(arguments)
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else _json(value)}"
        for name, value in arguments.items()
    )


def fits(views: Sequence[ToolView], new: ToolView) -> bool:
    """Whether another tool may join these in their message."""
    if not views:
        return True
    return len(views) < MOST_TOOLS and sum(view.fixed for view in views) + new.fixed <= _ARGUMENTS


def tools_message(views: Sequence[ToolView]) -> dict[str, Any]:
    """Return the parameters of the message that shows these."""
    room = LIMIT - sum(view.fixed for view in views)
    results = sum(bool(view.result) for view in views)
    each = room // results - 2 if results else 0
    message = Marked()
    for number, view in enumerate(views):
        if number:
            message.add("\n")
        message.add(f"{_SIGNS[view.state]} ").add(view.title, BOLD)
        if view.state == RUNNING and view.updates:
            message.add(f" · update {view.updates}")
        if view.arguments:
            message.add("\n").add(view.arguments, CODE)
        result = shorten(view.result, each) if view.result else ""
        if result:
            message.add("\n")
            with message.within(FOLDED):
                message.add(result, CODE)
    return message.as_params()


def _detail(text: str) -> str:
    return inert(shorten(without_secrets(clean(text)), DETAIL))


def _json(value: Any) -> str:
    """Return JSON; C{…} of what has none, such as a number of a thousand digits."""
    try:
        return dumps(value).decode()
    except ValueError:
        return "…"

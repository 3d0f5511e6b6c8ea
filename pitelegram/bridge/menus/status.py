"""The status rows: what Pi does, and what the session has used."""

from __future__ import annotations

import attrs

from pitelegram.bridge.cutting import shorten
from pitelegram.bridge.menus.screen import Text

MAX_LINE = 300
"""UTF-16 units of a name or an error within the rows."""


@attrs.frozen(kw_only=True)
class Usage:
    """Tokens, money and context of a session, as far as Pi told.

    @ivar cost: in dollars.
    @ivar percent: of the context window; None right after a compaction.
    @ivar window: tokens of the model's context window.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None
    percent: float | None = None
    window: int | None = None


@attrs.frozen(kw_only=True)
class StatusView:
    """What the status rows show.

    @ivar activity: C{compacting}, C{pending}, C{active}, C{idle}, C{starting} or C{unknown}.
    @ivar model: C{provider/id}, None where there is none.
    @ivar reasoning: whether the model has thinking levels to choose from.
    @ivar queued: prompts that wait.
    @ivar waiting: an extension of Pi waits for an answer.
    @ivar usage: None while Pi has not told it.
    """

    activity: str = "unknown"
    model: str | None = None
    thinking: str | None = None
    reasoning: bool = False
    queued: int = 0
    session: str | None = None
    waiting: bool = False
    error: str | None = None
    usage: Usage | None = None


def status_lines(view: StatusView) -> Text:
    """Return the rows."""
    text = Text().bold("Status:").plain(f" {view.activity}")
    if view.queued:
        text.plain(f"\nQueue: {view.queued}")
    if view.model is not None:
        text.plain(f"\nModel: {shorten(view.model, MAX_LINE)}")
        if view.thinking:
            text.plain(f", thinking {shorten(view.thinking, 20)}")
    if view.session:
        text.plain(f"\nSession: {shorten(view.session, MAX_LINE)}")
    if view.usage is not None:
        text.join(_usage(view.usage))
    if view.waiting:
        text.plain("\nAn extension of Pi waits for an answer.")
    if view.error:
        text.plain(f"\n⚠️ {shorten(view.error, MAX_LINE)}")
    return text


def amount(tokens: int) -> str:
    """Return a number of tokens in few characters."""
    if tokens < 1000:
        return str(tokens)
    if tokens < 10_000:
        return f"{tokens / 1000:.1f}k"
    if tokens < 1_000_000:
        return f"{round(tokens / 1000)}k"
    return f"{tokens / 1_000_000:.1f}M"


def _usage(usage: Usage) -> Text:
    text = Text()
    parts = [f"↑{amount(usage.input)}", f"↓{amount(usage.output)}"]
    if usage.cache_read:
        parts.append(f"R {amount(usage.cache_read)}")
    if usage.cache_write:
        parts.append(f"W {amount(usage.cache_write)}")
    if usage.input or usage.output:
        text.plain(f"\nUsage: {' '.join(parts)}")
    if usage.cost:
        text.plain(f"\nCost: ${usage.cost:.3f}")
    if usage.window:
        share = "?" if usage.percent is None else f"{usage.percent:.1f}%"
        text.plain(f"\nContext: {share}/{amount(usage.window)}")
    return text

"""The parser: pulldown-cmark, by way of C{pyromark}, loaded when the first answer is rendered."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any

MAX_EVENTS = 200_000
"""More than an answer of a megabyte has; what has more is shown as it was written."""

Events = list[tuple[Any, dict[str, int]]]
"""C{(event, {"start", "end"})}; positions are bytes of the UTF-8 source."""


def parse(source: str) -> Events | None:
    """Return the events of a Markdown text.

    @return: None for a text of more than L{MAX_EVENTS}.
    """
    events = list(islice(_parser().events_with_range(source), MAX_EVENTS + 1))
    return events if len(events) <= MAX_EVENTS else None


@lru_cache(maxsize=1)
def _parser() -> Any:
    from pyromark import Markdown, Options

    return Markdown(
        options=Options.ENABLE_TABLES
        | Options.ENABLE_STRIKETHROUGH
        | Options.ENABLE_TASKLISTS
        | Options.ENABLE_MATH
        | Options.ENABLE_GFM
    )

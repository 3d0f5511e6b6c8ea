"""The parser: pulldown-cmark, by way of C{pyromark}, loaded when the first answer is rendered."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any

MAX_EVENTS = 200_000
"""More than an answer of a megabyte has; what has more is shown as it was written."""

Event = tuple[str, str, Any, int, int]
"""C{(kind, name, value, start, end)}: C{start} or C{end} of the element C{name} with its data, or
C{leaf} with its text; the place is bytes of the UTF-8 source."""

Events = list[Event]


def parse(source: str) -> Events | None:
    """Return the events of a Markdown text.

    @return: None for a text of more than L{MAX_EVENTS}.
    """
    events: Events = []
    for event, place in islice(_parser().events_with_range(source), MAX_EVENTS + 1):
        if type(event) is str:
            events.append(("leaf", event, "", place["start"], place["end"]))
            continue
        [(kind, value)] = event.items()
        if kind != "Start" and kind != "End":
            events.append(("leaf", kind, value, place["start"], place["end"]))
            continue
        kind = "start" if kind == "Start" else "end"
        if type(value) is str:
            events.append((kind, value, None, place["start"], place["end"]))
        else:
            [(name, data)] = value.items()
            events.append((kind, name, data, place["start"], place["end"]))
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

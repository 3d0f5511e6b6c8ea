"""What the setting C{outboundHandlers} says: which template changes texts, which one speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from pitelegram.bridge.templates.model import Node, Value
from pitelegram.bridge.templates.reading import read_template
from pitelegram.errors import TemplateError

SETTING = "outboundHandlers"
TEXT = "text"
VOICE = "voice"
MOST_ENTRIES = 100


@attrs.frozen(kw_only=True)
class OutboundEntry:
    """One usable entry.

    @ivar place: as the operator finds it, C{outboundHandlers[0]}.
    @ivar kind: C{text} or C{voice}.
    """

    place: str
    kind: str
    template: Node


def read_outbound(value: object) -> tuple[tuple[OutboundEntry, ...], tuple[str, ...]]:
    """Return the usable entries, and a sentence for each other one."""
    if value is None:
        return (), ()
    if not isinstance(value, list | tuple):
        return (), (f"{SETTING}: must be a list",)
    entries, problems = [], []
    for index, item in enumerate(value[:MOST_ENTRIES]):
        try:
            entries.append(_entry(item, f"{SETTING}[{index}]"))
        except TemplateError as error:
            problems.append(str(error))
    if len(value) > MOST_ENTRIES:
        problems.append(f"{SETTING}: only the first {MOST_ENTRIES} entries count")
    return tuple(entries), tuple(problems)


def _entry(item: Any, place: str) -> OutboundEntry:
    if not isinstance(item, dict):
        raise TemplateError(place, "must be an object with a template")
    kind = item.get("type", item.get("match"))
    if kind not in (TEXT, VOICE):
        raise TemplateError(f"{place}.type", "must be text or voice")
    return OutboundEntry(place=place, kind=kind, template=read_template(item, place))


def values_of(
    text: str, lang: str | None = None, rate: str | None = None, mp3: str = "", ogg: str = ""
) -> Mapping[str, Value]:
    """Return what the placeholders of an outbound handler stand for.

    @param mp3: a path in a private directory that a program may write to; C{ogg} is another.
    """
    return {"text": text, "lang": lang or "", "rate": rate or "", "mp3": mp3, "ogg": ogg}

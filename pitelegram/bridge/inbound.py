"""What the setting C{inboundHandlers} says: which template is for which message."""

from __future__ import annotations

from typing import Any

import attrs

from pitelegram.bridge.interfaces import FileItem
from pitelegram.bridge.templates.model import Node
from pitelegram.bridge.templates.reading import read_template
from pitelegram.errors import TemplateError

SETTING = "inboundHandlers"
MOST_ENTRIES = 100
TEXT = "text"

_LONGEST_PATTERN = 200


@attrs.frozen(kw_only=True)
class Entry:
    """One usable entry.

    @ivar place: as the operator finds it, C{inboundHandlers[0]}.
    @ivar match: patterns for MIME type or kind.
    @ivar mime: patterns for the MIME type.
    @ivar kinds: patterns for the kind.
    """

    place: str
    template: Node
    match: tuple[str, ...] = ()
    mime: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def takes(self, file: FileItem) -> bool:
        """Whether it is for this file: one pattern is enough, and without any it is for each."""
        if not (self.match or self.mime or self.kinds):
            return True
        mime = file.mime.partition(";")[0].strip().lower()
        kind = file.kind.lower()
        return any(is_like(pattern, mime) for pattern in self.mime + self.match) or any(
            is_like(pattern, kind) for pattern in self.kinds + self.match
        )

    @property
    def takes_text(self) -> bool:
        """Whether it is for the text of messages: it must say so by that word, no pattern does."""
        return TEXT in self.kinds + self.match


def read_entries(value: object) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
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


def _entry(item: Any, place: str) -> Entry:
    if not isinstance(item, dict):
        raise TemplateError(place, "must be an object with a template")
    return Entry(
        place=place,
        template=read_template(item, place),
        match=_patterns(item.get("match"), f"{place}.match"),
        mime=_patterns(item.get("mime"), f"{place}.mime"),
        kinds=_patterns(item.get("type"), f"{place}.type"),
    )


def _patterns(value: object, place: str) -> tuple[str, ...]:
    if value is None:
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise TemplateError(place, "must be a text or a list of texts")
    patterns = tuple(item.strip().lower() for item in values)
    if not all(0 < len(pattern) <= _LONGEST_PATTERN for pattern in patterns):
        raise TemplateError(place, f"a pattern has 1 to {_LONGEST_PATTERN} characters")
    return patterns


def is_like(pattern: str, text: str) -> bool:
    """Whether a text is like a pattern, in which C{*} stands for anything."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    if not text.startswith(first):
        return False
    place = len(first)
    for piece in others[:-1]:
        found = text.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return len(text) - place >= len(others[-1]) and text.endswith(others[-1])

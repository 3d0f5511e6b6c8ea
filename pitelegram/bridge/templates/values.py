"""What placeholders stand for: values of the run, then defaults, then the placeholder's own default."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping

import attrs

from pitelegram.bridge.templates.arithmetic import Miscalculated, result_of
from pitelegram.bridge.templates.model import (
    LONGEST_WORD,
    Calculated,
    Choice,
    Condition,
    Fallback,
    Item,
    Kind,
    Length,
    Placeholder,
    Simple,
    Sum,
    Value,
    Word,
)
from pitelegram.bridge.templates.words import placeholder_of
from pitelegram.errors import TemplateError

DEEPEST_DEFAULT = 8

_FALSE = ("", "0", "false", "no")
_INT = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?")
_PADDED = re.compile(r"(_{1,6})(index|prev|next|repeat)")
_SINGLE = re.compile(r"\{([^{}]+)\}")


class _Missing:
    """Nothing has this name."""


MISSING = _Missing()


@attrs.frozen(kw_only=True)
class Scope:
    """The values at one place of a template.

    Values of the run are never searched for placeholders, whatever they hold; a default that is
    exactly one placeholder is replaced by what that stands for.

    @ivar given: of the run; None counts as missing.
    @ivar home: replaces C{~} in a C{path}.
    @ivar numbers: C{index}, C{prev}, C{next}, C{repeat} within a repetition; they win.
    """

    given: Mapping[str, Value]
    home: str
    defaults: Mapping[str, Value] = attrs.field(factory=dict)
    kinds: Mapping[str, Kind] = attrs.field(factory=dict)
    numbers: Mapping[str, int] = attrs.field(factory=dict)

    def within(self, defaults: Mapping[str, Value], kinds: Mapping[str, Kind] | None) -> Scope:
        """Return the values of a template within: its defaults go before those from outside."""
        merged = {**self.defaults, **defaults}
        for name, value in defaults.items():
            if value == "{" + name + "}" and name in self.defaults:
                merged[name] = self.defaults[name]
        return attrs.evolve(self, defaults=merged, kinds=self.kinds if kinds is None else kinds)

    def repeated(self, index: int, count: int) -> Scope:
        """Return the values of one repetition."""
        numbers = {
            "index": index,
            "prev": (index - 1) % count,
            "next": (index + 1) % count,
            "repeat": count,
        }
        return attrs.evolve(self, numbers=numbers)

    def word(self, word: Word, place: str) -> str:
        """Return a word with its placeholders replaced.

        @raise TemplateError: a value is missing or of the wrong kind.
        """
        pieces, size = [], 0
        for piece in word:
            text = piece if isinstance(piece, str) else self._text_of(piece, place)
            size += len(text)
            if size > LONGEST_WORD:
                raise TemplateError(
                    place, "an argument is too long; long texts come on standard input"
                )
            pieces.append(text)
        return "".join(pieces)

    def named(self, name: str, place: str) -> str:
        """Return the value of a name as text.

        @raise TemplateError: there is none.
        """
        return self._text_of(Simple("{" + name + "}", name), place)

    def holds(self, condition: Condition, place: str) -> bool:
        """Whether a condition is met; what is missing, empty, C{0}, C{false} or C{no} is false."""
        if isinstance(condition.test, str):
            value = self._find(condition.test, place)
            if isinstance(value, _Missing):
                value = condition.test == "true"
        elif isinstance(condition.test, Simple) and not condition.test.otherwise:
            value = self._find(condition.test.name, place)
        else:
            value = self._text_of(condition.test, place)
        return is_true(value) != condition.negated

    def _text_of(self, placeholder: Placeholder, place: str) -> str:
        value = self._value(placeholder, place, 0)
        kind = None
        if isinstance(placeholder, Simple):
            kind = placeholder.kind or self.kinds.get(placeholder.name)
        return self._as_kind(kind, value, placeholder.text, place)

    def _value(self, placeholder: Placeholder, place: str, depth: int) -> Value:
        if isinstance(placeholder, Simple):
            return self._simple(placeholder, place, depth)
        if isinstance(placeholder, Item):
            return self._item(placeholder, place, depth)
        if isinstance(placeholder, Length):
            return len(self._array(placeholder.name, placeholder.text, place, depth))
        if isinstance(placeholder, Fallback):
            found = self._find(placeholder.name, place, depth)
            if isinstance(found, _Missing) or found is None or found == "":
                return placeholder.other
            return found
        if isinstance(placeholder, Choice):
            value = self._find(placeholder.name, place, depth)
            met = is_true(value) != placeholder.negated
            return placeholder.yes if met else placeholder.no
        return self._calculated(placeholder, place, depth)

    def _simple(self, placeholder: Simple, place: str, depth: int) -> Value:
        value = self._find(placeholder.name, place, depth)
        if not isinstance(value, _Missing):
            return value
        if placeholder.default is not None:
            return placeholder.default
        if placeholder.sum is not None:
            return self._result(placeholder.sum, placeholder.text, place, depth)
        raise TemplateError(place, f"{placeholder.text} has no value")

    def _item(self, placeholder: Item, place: str, depth: int) -> Value:
        array = self._array(placeholder.name, placeholder.text, place, depth)
        index = int(placeholder.index) if placeholder.index.isdigit() else None
        if index is None:
            index = self._number(placeholder.index, placeholder.text, place, depth)
        if not 0 <= index < len(array):
            raise TemplateError(place, f"{placeholder.text}: there is no such element")
        return array[index]

    def _array(self, name: str, shown: str, place: str, depth: int) -> list:
        value = self._find(name, place, depth)
        if isinstance(value, str):
            value = _json_array(value)
        if not isinstance(value, list):
            raise TemplateError(place, f"{shown}: there is no array of that name")
        return value

    def _calculated(self, placeholder: Calculated, place: str, depth: int) -> Value:
        result = self._result(placeholder.sum, placeholder.text, place, depth)
        return _padded(result, placeholder.width)

    def _result(self, sum_: Sum, shown: str, place: str, depth: int) -> int:
        try:
            return result_of(sum_, lambda name: self._number(name, shown, place, depth))
        except Miscalculated as error:
            raise TemplateError(place, f"{shown}: {error}") from None

    def _number(self, name: str, shown: str, place: str, depth: int) -> int:
        value = self._find(name, place, depth)
        if isinstance(value, _Missing):
            raise TemplateError(place, f"{shown}: {name} has no value")
        if isinstance(value, bool) or not _INT.fullmatch(as_text(value)):
            raise TemplateError(place, f"{shown}: {name} is no whole number")
        return int(as_text(value))

    def _find(self, name: str, place: str, depth: int = 0) -> Value | _Missing:
        if name in self.numbers:
            return self.numbers[name]
        padded = _PADDED.fullmatch(name)
        if padded is not None and padded[2] in self.numbers:
            return _padded(self.numbers[padded[2]], len(padded[1]) + 1)
        if self.given.get(name) is not None:
            return self.given[name]
        if name not in self.defaults:
            return MISSING
        return self._default(name, place, depth)

    def _default(self, name: str, place: str, depth: int) -> Value:
        value = self.defaults[name]
        single = _SINGLE.fullmatch(value) if isinstance(value, str) else None
        if single is None:
            return "" if value is None else value
        if depth >= DEEPEST_DEFAULT:
            raise TemplateError(place, f"the default of {name} leads back to itself")
        try:
            inner = placeholder_of(single[1], place)
        except TemplateError:
            return value
        return self._value(inner, place, depth + 1)

    def _as_kind(self, kind: Kind | None, value: Value, shown: str, place: str) -> str:
        text = as_text(value)
        if kind is None or text == "" or kind.name == "string":
            return text
        if kind.name == "path":
            return expanded(text, self.home)
        if kind.name == "bool":
            return _bool(text, shown, place)
        if not _fits(kind, value, text):
            what = "one of " + ", ".join(kind.choices) if kind.choices else _WANTED[kind.name]
            raise TemplateError(place, f"{shown} must be {what}")
        return text


_WANTED = {"int": "a whole number", "number": "a number", "array": "an array"}


def is_true(value: Value | _Missing) -> bool:
    """Whether a value counts as true."""
    if isinstance(value, _Missing) or value is None or value == []:
        return False
    return as_text(value).strip().lower() not in _FALSE


def as_text(value: Value) -> str:
    """Return a value as it goes into an argument; arrays are JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def expanded(path: str, home: str) -> str:
    """Return a path with the home directory in place of C{~}."""
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def _fits(kind: Kind, value: Value, text: str) -> bool:
    if kind.name == "enum":
        return text in kind.choices
    if kind.name == "array":
        return isinstance(value, list) or _json_array(text) is not None
    if isinstance(value, bool):
        return False
    if kind.name == "int":
        return _INT.fullmatch(text) is not None
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def _bool(text: str, shown: str, place: str) -> str:
    word = text.strip().lower()
    if word in ("true", "1", "yes", "on"):
        return "true"
    if word in ("false", "0", "no", "off", ""):
        return "false"
    raise TemplateError(place, f"{shown} must be true or false")


def _json_array(text: str) -> list | None:
    if not text.lstrip().startswith("[") or len(text) > 100_000:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if is_flat(value) else None


def is_flat(value: object) -> bool:
    """Whether a value is an array of plain values that can be written as text."""
    return isinstance(value, list) and all(is_plain(item) for item in value)


def is_plain(value: object) -> bool:
    """Whether a value is null, a truth value, a text or a number of a sane size."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) < 2**63
    return value is None or isinstance(value, str | float | bool)


def _padded(number: int, width: int) -> str:
    sign = "-" if number < 0 else ""
    return sign + str(abs(number)).rjust(width - len(sign), "0")

"""From the text of a command to words with placeholders.

The text is split first and only then searched for placeholders, so a value can never make two
arguments of one.
"""

from __future__ import annotations

import re

from pitelegram.bridge.templates.arithmetic import Miscalculated, read_sum
from pitelegram.bridge.templates.model import (
    LONGEST,
    Calculated,
    Choice,
    Fallback,
    Item,
    Kind,
    Length,
    Placeholder,
    Simple,
    Sum,
    Word,
)
from pitelegram.errors import TemplateError

KINDS = ("string", "path", "int", "number", "bool", "array")

_SPACES = " \t\r\n\f\v"
_BRACES = re.compile(r"\{([^{}]+)\}")
_OPEN = re.compile(r"\{!?[A-Za-z_]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_INDEX = re.compile(r"\[([0-9]{1,9}|[A-Za-z_][A-Za-z0-9_-]*)\]")
_KIND = re.compile(r":(?:enum\(([^()]*)\)|([a-z]+))(?:=(.*))?", re.DOTALL)
_PADDED = re.compile(r"(_{1,6})\((.+)\)", re.DOTALL)
_SHOWN = 60


def words_of(text: str, place: str) -> tuple[Word, ...]:
    """Split a command and read the placeholders of each word.

    @raise TemplateError: with the place.
    """
    if len(text) > LONGEST:
        raise TemplateError(place, f"a command has at most {LONGEST} characters")
    return tuple(word_of(word, place) for word in split(text, place))


def split(text: str, place: str = "template") -> list[str]:
    """Split into words at white space; quotes and backslashes keep it together.

    A backslash takes the special meaning from white space, quotes and itself, between double quotes
    from C{"} and itself; before anything else, and between single quotes, it is a backslash.
    """
    words: list[str] = []
    current: list[str] | None = None
    quote, index = "", 0
    while index < len(text):
        char = text[index]
        index += 1
        if quote == "" and char in _SPACES:
            if current is not None:
                words.append("".join(current))
            current = None
            continue
        current = [] if current is None else current
        if char == "\\" and index < len(text) and text[index] in _escaped(quote):
            current.append(text[index])
            index += 1
        elif char == quote:
            quote = ""
        elif quote == "" and char in "'\"":
            quote = char
        else:
            current.append(char)
    if quote:
        raise TemplateError(place, f"a quote ({quote}) is never closed")
    if current is not None:
        words.append("".join(current))
    return words


def _escaped(quote: str) -> str:
    if quote == "'":
        return ""
    return '"\\' if quote else _SPACES + "'\"\\"


def word_of(word: str, place: str) -> Word:
    """Read the placeholders of one word; braces around others, and empty ones, are literal.

    @raise TemplateError: a placeholder is malformed or not closed.
    """
    pieces: list[str | Placeholder] = []
    end = 0
    for match in _BRACES.finditer(word):
        _literal(word[end : match.start()], pieces, place)
        pieces.append(placeholder_of(match[1], place))
        end = match.end()
    _literal(word[end:], pieces, place)
    return tuple(pieces)


def _literal(text: str, pieces: list[str | Placeholder], place: str) -> None:
    opened = _OPEN.search(text)
    if opened is not None:
        shown = text[opened.start() :][:_SHOWN]
        raise TemplateError(
            place,
            f"{shown!r} opens a placeholder that is not closed in that word, or has another one "
            "in it; with spaces it needs quotes",
        )
    if text:
        pieces.append(text)


def placeholder_of(content: str, place: str) -> Placeholder:
    """Read what stands between braces.

    @raise TemplateError: it is no placeholder.
    """
    shown = "{" + content[:_SHOWN] + "}"
    negated = content.startswith("!")
    name = _NAME.match(content, 1 if negated else 0)
    if name is None:
        return _calculated(content, shown, place)
    rest = content[name.end() :]
    if rest.startswith("?") and (negated or not rest.startswith("??")):
        yes, colon, no = rest[1:].partition(":")
        if not colon:
            raise TemplateError(place, f"{shown} needs two texts: {{flag?yes:no}}")
        return Choice(shown, name[0], negated, yes, no)
    if negated:
        raise TemplateError(place, f"{shown} is no placeholder; '!' goes with {{!flag?yes:no}}")
    if rest.startswith("??"):
        return Fallback(shown, name[0], rest[2:])
    if rest.startswith("="):
        return Simple(shown, name[0], default=rest[1:])
    if rest.startswith(":"):
        return _typed(shown, name[0], rest, place)
    if rest == ".length":
        return Length(shown, name[0])
    index = _INDEX.fullmatch(rest)
    if index is not None:
        return Item(shown, name[0], index[1])
    if not rest:
        return Simple(shown, name[0], sum=_perhaps_sum(content))
    return _calculated(content, shown, place)


def kind_of(text: str, place: str) -> Kind:
    """Read a type.

    @raise TemplateError: there is none of that name.
    """
    match = _KIND.fullmatch(":" + text)
    if match is None or match[3] is not None:
        raise TemplateError(place, _no_kind(text))
    return _kind(match, text, place)


def _typed(shown: str, name: str, rest: str, place: str) -> Simple:
    match = _KIND.fullmatch(rest)
    if match is None:
        raise TemplateError(place, f"{shown}: {_no_kind(rest[1:])}")
    return Simple(shown, name, _kind(match, rest[1:], place), match[3])


def _kind(match: re.Match[str], text: str, place: str) -> Kind:
    if match[2] is None:
        choices = tuple(choice.strip() for choice in match[1].split(","))
        if not all(choices):
            raise TemplateError(place, "an enum names its choices: enum(a,b)")
        return Kind("enum", choices)
    if match[2] not in KINDS:
        raise TemplateError(place, _no_kind(text))
    return Kind(match[2])


def _no_kind(text: str) -> str:
    return f"{text[:_SHOWN]!r} is no type; there are {', '.join(KINDS)} and enum(a,b)"


def _perhaps_sum(content: str) -> Sum | None:
    """A name with hyphens may be a difference."""
    if "-" not in content:
        return None
    try:
        return read_sum(content)
    except Miscalculated:
        return None


def _calculated(content: str, shown: str, place: str) -> Calculated:
    padded = _PADDED.fullmatch(content)
    try:
        if padded is not None:
            return Calculated(shown, read_sum(padded[2]), len(padded[1]) + 1)
        if re.search(r"[-+*/%()]", content) is None:
            raise Miscalculated("it is no placeholder")
        return Calculated(shown, read_sum(content))
    except Miscalculated as error:
        raise TemplateError(place, f"{shown}: {error}") from None

"""From JSON to a template: everything that can be wrong without values is found here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pitelegram.bridge.templates.model import (
    DEEPEST,
    FAILURES,
    Condition,
    Kind,
    Node,
    Value,
    Word,
)
from pitelegram.bridge.templates.values import is_flat, is_plain
from pitelegram.bridge.templates.words import kind_of, placeholder_of, word_of, words_of
from pitelegram.errors import TemplateError

MOST_PARTS = 200
LONGEST_LABEL = 100

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ARGUMENT = re.compile(
    r"([A-Za-z_][A-Za-z0-9_-]*)(?::([a-z]+(?:\([^()]*\))?))?(?:=(.*))?", re.DOTALL
)
_CONDITION = re.compile(r"(!?)\s*(?:\{([^{}]+)\}|([A-Za-z_][A-Za-z0-9_-]*))")
_LENGTH = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\.length")


def read_template(value: object, place: str = "template") -> Node:
    """Read a template: a text, a list, or an object.

    Keys of an object that the language does not have are left to whoever has use for them.

    @param place: how errors call the place of C{value}.
    @raise TemplateError: it is malformed.
    """
    return _read(value, place, 0)


def _read(value: object, place: str, depth: int) -> Node:
    if depth > DEEPEST:
        raise TemplateError(place, f"templates stand at most {DEEPEST} deep in one another")
    if isinstance(value, str):
        return Node(place=place, content=_command(value, place), is_command=True)
    if isinstance(value, list):
        return Node(place=place, content=_parts(value, place, depth), is_command=False)
    if isinstance(value, dict):
        return _object(value, place, depth)
    raise TemplateError(place, "a template is a text, a list or an object")


def _command(text: str, place: str) -> tuple[Word, ...]:
    words = words_of(text, place)
    if not words:
        raise TemplateError(place, "the command is empty")
    return words


def _parts(values: list, place: str, depth: int) -> tuple[Node, ...]:
    if not values:
        raise TemplateError(place, "the list is empty")
    if len(values) > MOST_PARTS:
        raise TemplateError(place, f"a list has at most {MOST_PARTS} templates")
    return tuple(_read(part, f"{place}[{index}]", depth + 1) for index, part in enumerate(values))


def _object(value: dict[Any, Any], place: str, depth: int) -> Node:
    inner = f"{place}.template"
    template = value.get("template")
    content: tuple[Word, ...] | tuple[Node, ...]
    if isinstance(template, str):
        content = _command(template, inner)
    elif isinstance(template, list):
        content = _parts(template, inner, depth)
    else:
        raise TemplateError(inner, "there is no command: a text or a list is needed")
    kinds, declared = _arguments(value.get("args"), f"{place}.args")
    recover = value.get("recover")
    return Node(
        place=place,
        content=content,
        is_command=isinstance(template, str),
        label=_label(value.get("label"), f"{place}.label"),
        parallel=_flag(value.get("parallel"), f"{place}.parallel"),
        when=_when(value.get("when"), f"{place}.when"),
        kinds=kinds,
        defaults={**declared, **_defaults(value.get("defaults"), f"{place}.defaults")},
        timeout=_number(value.get("timeout"), f"{place}.timeout"),
        delay=_number(value.get("delay"), f"{place}.delay"),
        retry=_number(value.get("retry"), f"{place}.retry"),
        repeat=_number(value.get("repeat"), f"{place}.repeat", _repeat),
        failure=_failure(value.get("failure"), f"{place}.failure"),
        recover=None if recover is None else _read(recover, f"{place}.recover", depth + 1),
        output=_output(value.get("output"), f"{place}.output"),
    )


def _label(value: object, place: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TemplateError(place, "a label is a text")
    shown = "".join(char if char.isprintable() else " " for char in value)
    return shown.strip()[:LONGEST_LABEL]


def _flag(value: object, place: str) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise TemplateError(place, "must be true or false")
    return value


def _when(value: object, place: str) -> bool | Condition:
    if value is None:
        return True
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise TemplateError(place, "a condition is true, false, or a text like flag or !flag")
    if not value.strip():
        return False
    match = _CONDITION.fullmatch(value.strip())
    if match is None:
        raise TemplateError(place, "a condition is flag, !flag or one placeholder")
    test = match[3] if match[2] is None else placeholder_of(match[2], place)
    return Condition(test, bool(match[1]))


def _arguments(value: object, place: str) -> tuple[dict[str, Kind] | None, dict[str, Value]]:
    if value is None:
        return None, {}
    if not isinstance(value, list):
        raise TemplateError(place, "must be a list of names")
    kinds: dict[str, Kind] = {}
    defaults: dict[str, Value] = {}
    for index, item in enumerate(value):
        match = _ARGUMENT.fullmatch(item.strip()) if isinstance(item, str) else None
        if match is None:
            raise TemplateError(f"{place}[{index}]", "must be name, name:type or name=default")
        if match[2] is not None:
            kinds[match[1]] = kind_of(match[2], f"{place}[{index}]")
        if match[3] is not None:
            defaults[match[1]] = match[3]
    return kinds, defaults


def _defaults(value: object, place: str) -> Mapping[str, Value]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TemplateError(place, "must be an object of values by name")
    for name, default in value.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise TemplateError(place, "a name has letters, digits, '_' and '-' only")
        if not is_plain(default) and not is_flat(default):
            raise TemplateError(
                f"{place}.{name}", "must be a text, a number, true, false or a list"
            )
    return value


def _number(
    value: object, place: str, read: Callable[[str, str], Word] | None = None
) -> float | Word | None:
    """A number as it is, a text as a word that becomes one."""
    if value is None:
        return None
    if isinstance(value, str) and value.strip():
        return (read or word_of)(value.strip(), place)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) < 2**53:
            return value
    raise TemplateError(place, "must be a number, or a placeholder for one")


def _repeat(text: str, place: str) -> Word:
    return word_of("{" + text + "}" if _LENGTH.fullmatch(text) else text, place)


def _failure(value: object, place: str) -> str | None:
    if value is None or (isinstance(value, str) and value in FAILURES):
        return value
    raise TemplateError(place, f"must be {', '.join(FAILURES[:-1])} or {FAILURES[-1]}")


def _output(value: object, place: str) -> str | None:
    if value is None or value == "stdout":
        return None
    name = value[1:-1] if isinstance(value, str) and value[:1] + value[-1:] == "{}" else value
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TemplateError(place, "must be stdout or the name of a value")
    return None if name == "stdout" else name

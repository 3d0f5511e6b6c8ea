"""The parameters of one call: text values from wherever they came, read with a type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.sandbox.errors import bad_request

_ABSENT: Any = object()


@attrs.frozen
class Part:
    """A file part of a multipart body."""

    field: str
    filename: str
    mime_type: str
    data: bytes


def from_json(value: Any) -> dict[str, str]:
    """Return the parameters of a JSON body: strings as they are, other values as their JSON text.

    @raise pitelegram.sandbox.errors.ApiError: if it is no object.
    """
    if not isinstance(value, dict):
        raise bad_request("the body is not a JSON object")
    return {
        key: item if isinstance(item, str) else dumps(item).decode()
        for key, item in value.items()
        if item is not None
    }


class Parameters:
    """Typed access; remembers what was asked for, so that unknown names can be reported."""

    def __init__(self, values: Mapping[str, str], parts: Mapping[str, Part] | None = None) -> None:
        self.values = dict(values)
        self.parts = dict(parts or {})
        self._asked: set[str] = set()

    def __contains__(self, name: str) -> bool:
        self._asked.add(name)
        return name in self.values

    def unknown(self) -> list[str]:
        """Return the names that nobody asked for."""
        return sorted(set(self.values) - self._asked)

    def ignore(self, *names: str) -> None:
        """Accept parameters that change nothing here."""
        self._asked.update(names)

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as it came."""
        self._asked.add(name)
        return self.values.get(name, default)

    def integer(self, name: str, default: int | None = _ABSENT) -> Any:
        """Return an integer.

        @raise pitelegram.sandbox.errors.ApiError: absent without a default, or no integer.
        """
        value = self.text(name)
        if not value:
            if default is _ABSENT:
                raise bad_request(f'parameter "{name}" is required')
            return default
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", value):
            raise bad_request(f'parameter "{name}" must be of type Integer')
        return int(value)

    def boolean(self, name: str) -> bool:
        """Return whether it is C{true}, C{yes} or C{1}."""
        return self.text(name).lower() in ("true", "yes", "1")

    def json(self, name: str, kind: type | None = None) -> Any:
        """Return parsed JSON, None when absent.

        @raise pitelegram.sandbox.errors.ApiError: not JSON, or not a C{kind}.
        """
        value = self.text(name)
        if not value:
            return None
        try:
            parsed = loads(value)
        except ValueError:
            raise bad_request(f"can't parse {name} JSON object")
        if kind is not None and parsed is not None and not isinstance(parsed, kind):
            word = "an Object" if kind is dict else "an Array"
            raise bad_request(f'parameter "{name}" must be {word}')
        return parsed

    def part(self, name: str) -> Part | None:
        """Return the file part that a parameter means: its own, or the C{attach://} one."""
        value = self.text(name)
        self._asked.add(name)
        if value.startswith("attach://"):
            field = value[len("attach://") :]
            self._asked.add(field)
            return self.parts.get(field)
        return self.parts.get(name)

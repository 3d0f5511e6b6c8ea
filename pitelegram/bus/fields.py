"""Scalar values of AMP boxes, strict, and without AMP's look-up of names at every turn."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from twisted.protocols.amp import Argument

_DECIMAL = re.compile(rb"-?[0-9]{1,20}")


@lru_cache(maxsize=256)
def python_name(name: bytes) -> str:
    """Return the key of the values' dict for a key of a box."""
    return name.decode("ascii")


class Field(Argument):
    """One value under its own key."""

    def fromBox(self, name: bytes, strings: dict, objects: dict, proto: Any) -> None:
        """Read it. @raise KeyError: it is absent and not optional."""
        data = strings.get(name)
        if data is not None:
            objects[python_name(name)] = self.fromString(data)
        elif self.optional:
            objects[python_name(name)] = None
        else:
            raise KeyError(name)

    def toBox(self, name: bytes, strings: dict, objects: dict, proto: Any) -> None:
        """Write it; None only where it is optional."""
        value = objects.get(python_name(name))
        if value is not None:
            strings[name] = self.toString(value)
        elif not self.optional:
            raise KeyError(name)


class Integer(Field):
    """A decimal ASCII integer, and nothing else that C{int} would take."""

    def fromString(self, inString: bytes) -> int:  # type: ignore[override]
        """Read it. @raise ValueError: it is anything else."""
        if _DECIMAL.fullmatch(inString) is None:
            raise ValueError("not a decimal integer")
        return int(inString)

    def toString(self, inObject: int) -> bytes:  # type: ignore[override]
        """Write it."""
        return b"%d" % (inObject,)


class Unicode(Field):
    """UTF-8 text."""

    def fromString(self, inString: bytes) -> str:  # type: ignore[override]
        """Read it. @raise ValueError: it is no UTF-8."""
        return inString.decode("utf-8")

    def toString(self, inObject: str) -> bytes:  # type: ignore[override]
        """Write it; lone surrogates become question marks."""
        return inObject.encode("utf-8", "replace")


class String(Field):
    """Raw bytes."""

    def fromString(self, inString: bytes) -> bytes:  # type: ignore[override]
        """Read them."""
        return inString

    def toString(self, inObject: bytes) -> bytes:  # type: ignore[override]
        """Write them."""
        return inObject


class Boolean(Field):
    """C{True} or C{False}."""

    def fromString(self, inString: bytes) -> bool:  # type: ignore[override]
        """Read it. @raise ValueError: it is neither."""
        if inString not in (b"True", b"False"):
            raise ValueError("neither True nor False")
        return inString == b"True"

    def toString(self, inObject: bool) -> bytes:  # type: ignore[override]
        """Write it."""
        return b"True" if inObject else b"False"

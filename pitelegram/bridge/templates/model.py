"""The records of a template that was read, and of the plan that it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

import attrs

Value = Union[str, int, float, bool, None, "list[str | int | float | bool | None]"]
"""What a placeholder can stand for."""

FAILURES = ("continue", "branch", "root")
DEEPEST = 16
"""Most templates within one another."""

MOST_STEPS = 1000
"""Most programs and groups of one plan."""

LONGEST = 32_768
"""Most characters of a command."""

LONGEST_WORD = 100_000
"""Most characters of an argument; the system refuses 128 KiB."""

LONGEST_WAIT = 24 * 3600.0
MOST_TRIES = 20


@attrs.frozen
class Kind:
    """The type of a value.

    @ivar name: C{string}, C{path}, C{int}, C{number}, C{bool}, C{array} or C{enum}.
    @ivar choices: of an C{enum}.
    """

    name: str
    choices: tuple[str, ...] = ()


Sum = Union[int, str, "tuple[str, Sum]", "tuple[str, Sum, Sum]"]
"""A number, a name, C{("-", of)} or C{(operator, left, right)}."""


@attrs.frozen
class Simple:
    """C{{name}}, C{{name=default}}, C{{name:kind=default}}; or the sum, if the name is unknown."""

    text: str
    name: str
    kind: Kind | None = None
    default: str | None = None
    sum: Sum | None = None

    @property
    def otherwise(self) -> bool:
        """Whether it means something when the name is unknown."""
        return self.default is not None or self.sum is not None


@attrs.frozen
class Item:
    """C{{name[index]}}; the index is a number or a name."""

    text: str
    name: str
    index: str


@attrs.frozen
class Length:
    """C{{name.length}}."""

    text: str
    name: str


@attrs.frozen
class Fallback:
    """C{{name??other}}: the other text when the value is missing or empty."""

    text: str
    name: str
    other: str


@attrs.frozen
class Choice:
    """C{{flag?yes:no}} or C{{!flag?yes:no}}."""

    text: str
    name: str
    negated: bool
    yes: str
    no: str


@attrs.frozen
class Calculated:
    """C{{index+1}} or, padded to a width, C{{_(index+1)}}."""

    text: str
    sum: Sum
    width: int = 0


Placeholder = Simple | Item | Length | Fallback | Choice | Calculated

Word = tuple[str | Placeholder, ...]
"""One word of a command: literal pieces and placeholders."""


@attrs.frozen
class Condition:
    """A C{when}: a placeholder, or the truth of a name."""

    test: Placeholder | str
    negated: bool = False


@attrs.frozen(kw_only=True)
class Node:
    """A template that was read; its fields stand as they were written.

    @ivar place: where it stands, for errors.
    @ivar content: the words of a command, or the templates within.
    @ivar kinds: types by name; None leaves those from outside in force.
    @ivar failure: None takes the one from outside.
    @ivar timeout: milliseconds; None for no limit of its own.
    @ivar output: name of a value that is the result instead of standard output.
    """

    place: str
    content: tuple[Word, ...] | tuple[Node, ...]
    is_command: bool
    label: str = ""
    parallel: bool = False
    when: bool | Condition = True
    kinds: Mapping[str, Kind] | None = None
    defaults: Mapping[str, Value] = attrs.field(factory=dict)
    timeout: float | Word | None = None
    delay: float | Word | None = None
    retry: float | Word | None = None
    repeat: float | Word | None = None
    failure: str | None = None
    recover: Node | None = None
    output: str | None = None


@attrs.frozen(kw_only=True)
class Step:
    """A part of a plan.

    @ivar label: what it is called in reports.
    @ivar timeout: seconds for each attempt, None for no limit of its own.
    @ivar delay: seconds before each attempt.
    @ivar retry: attempts, the first included.
    @ivar failure: C{continue}, C{branch} or C{root}: what its failure stops.
    @ivar recover: runs between attempts; when it fails there is no further one.
    @ivar output: the result instead of standard output.
    """

    label: str
    timeout: float | None = None
    delay: float = 0.0
    retry: int = 1
    failure: str = "continue"
    recover: Step | None = None
    output: str | None = None


@attrs.frozen(kw_only=True)
class Command(Step):
    """Run one program.

    @ivar words: the program and its arguments.
    """

    words: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Group(Step):
    """Run several steps, one after the other or side by side."""

    steps: tuple[Step, ...]
    parallel: bool = False

"""From a template and values to a plan: what to run, with which arguments, in which order."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from pitelegram.bridge.templates.model import (
    LONGEST_WAIT,
    MOST_STEPS,
    MOST_TRIES,
    Command,
    Group,
    Node,
    Step,
    Value,
    Word,
)
from pitelegram.bridge.templates.values import Scope, expanded
from pitelegram.errors import TemplateError

LONGEST_ARGUMENTS = 1_000_000
"""Bytes of all arguments of a program."""


def plan(node: Node, given: Mapping[str, Value], home: Path, directory: Path) -> Step | None:
    """Return what C{node} means with these values, or None when its condition is not met.

    Values go into arguments and fields only: what a program is called is the operator's alone, so a
    message cannot name one.

    @param home: what C{~} stands for.
    @param directory: what a relative program starts from.
    @raise TemplateError: a value is missing, malformed or of the wrong kind.
    """
    scope = Scope(given=given, home=str(home))
    return _Planner(str(home), str(directory)).step(node, scope, "continue")


class _Planner:
    def __init__(self, home: str, directory: str) -> None:
        self._home = home
        self._directory = directory
        self._count = 0

    def step(self, node: Node, outer: Scope, failure: str) -> Step | None:
        """One node and all within, its repetitions as a group."""
        failure = node.failure or failure
        if node.repeat is None:
            return self._single(node, outer, failure, "")
        count = _whole(node.repeat, outer.within(node.defaults, node.kinds), node, "repeat")
        if count > MOST_STEPS:
            raise TemplateError(f"{node.place}.repeat", f"at most {MOST_STEPS} times")
        numbered = (
            self._single(node, outer.repeated(index, count), failure, f" {index + 1}")
            for index in range(count)
        )
        steps = tuple(step for step in numbered if step is not None)
        if len(steps) < 2:
            return steps[0] if steps else None
        label = node.label or steps[0].label.rpartition(" ")[0]
        return Group(label=label, failure=failure, steps=steps, parallel=node.parallel)

    def _single(self, node: Node, outer: Scope, failure: str, number: str) -> Step | None:
        self._count += 1
        if self._count > MOST_STEPS:
            raise TemplateError(node.place, f"more than {MOST_STEPS} steps")
        scope = outer.within(node.defaults, node.kinds)
        if isinstance(node.when, bool):
            if not node.when:
                return None
        elif not scope.holds(node.when, f"{node.place}.when"):
            return None
        made = self._command(node, scope) if node.is_command else None
        steps = () if node.is_command else self._within(node, scope, failure)
        if made is None and not steps:
            return None
        place = node.place
        label = node.label or (made[0].rpartition("/")[2] if made else steps[0].label)
        recover = None if node.recover is None else self.step(node.recover, scope, "branch")
        timeout = _seconds(node.timeout, scope, f"{place}.timeout")
        common: dict[str, Any] = {
            "label": label + number,
            "timeout": timeout or None,
            "delay": _seconds(node.delay, scope, f"{place}.delay"),
            "retry": _tries(node, scope),
            "failure": failure,
            "recover": recover,
            "output": None if node.output is None else scope.named(node.output, f"{place}.output"),
        }
        if made is not None:
            return Command(words=made, **common)
        return Group(steps=steps, parallel=node.parallel, **common)

    def _within(self, node: Node, scope: Scope, failure: str) -> tuple[Step, ...]:
        made = (self.step(part, scope, failure) for part in node.content)  # type: ignore[arg-type]
        return tuple(step for step in made if step is not None)

    def _command(self, node: Node, scope: Scope) -> tuple[str, ...]:
        words: list[str] = []
        total = 0
        for word in node.content:
            inner = scope if words else attrs.evolve(scope, given={})
            text = inner.word(word, node.place)  # type: ignore[arg-type]
            if not words:
                text = self._program(text, node.place)
            total += _size(text, node.place)
            if total > LONGEST_ARGUMENTS:
                raise TemplateError(node.place, "the arguments are too long")
            if text:
                words.append(text)
        return tuple(words)

    def _program(self, word: str, place: str) -> str:
        if not word:
            raise TemplateError(place, "the program's name is empty")
        word = expanded(word, self._home)
        return os.path.join(self._directory, word) if "/" in word else word


def _size(word: str, place: str) -> int:
    """Bytes of an argument that the system takes."""
    if "\0" in word:
        raise TemplateError(place, "an argument holds a NUL character")
    try:
        return len(os.fsencode(word)) + 1
    except UnicodeEncodeError:
        raise TemplateError(place, "an argument holds half a character") from None


def _seconds(value: float | Word | None, scope: Scope, place: str) -> float:
    """Milliseconds of a field as seconds, 0 when there are none."""
    number = _resolved(value, scope, place)
    if number is None:
        return 0.0
    if not 0 <= number <= LONGEST_WAIT * 1000:
        raise TemplateError(place, "must be milliseconds, from 0 to a day")
    return number / 1000


def _tries(node: Node, scope: Scope) -> int:
    if node.retry is None:
        return 1
    count = _whole(node.retry, scope, node, "retry")
    if not 1 <= count <= MOST_TRIES:
        raise TemplateError(f"{node.place}.retry", f"must be from 1 to {MOST_TRIES}")
    return count


def _whole(value: float | Word, scope: Scope, node: Node, field: str) -> int:
    place = f"{node.place}.{field}"
    number = _resolved(value, scope, place)
    least = 1 if isinstance(value, int | float) else 0
    if number is None or number != int(number) or number < least:
        raise TemplateError(place, "must be a whole number of times")
    return int(number)


def _resolved(value: float | Word | None, scope: Scope, place: str) -> float | None:
    """The number of a field; an empty text counts as none."""
    if value is None or isinstance(value, int | float):
        return value
    text = scope.word(value, place).strip()
    if not text:
        return None
    try:
        number = float(_ascii(text))
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise TemplateError(place, "is no number")
    return number


def _ascii(text: str) -> str:
    """Only what a number is written with; C{float} would take C{nan}, C{1_000} and more."""
    if len(text) > 20 or not set(text) <= set("0123456789.+-eE"):
        raise ValueError
    return text

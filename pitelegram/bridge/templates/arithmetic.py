"""Whole-number arithmetic in placeholders: C{+ - * / %}, parentheses, names."""

from __future__ import annotations

import re
from collections.abc import Callable

from pitelegram.bridge.templates.model import Sum

LONGEST_SUM = 100
LARGEST = 2**53

_TOKEN = re.compile(r"\s*([0-9]+|[A-Za-z_][A-Za-z0-9_]*|[-+*/%()])")


class Miscalculated(Exception):
    """No sum, or one without a result; the text says why."""


def read_sum(text: str) -> Sum:
    """Read an expression.

    @raise Miscalculated: it is none.
    """
    if len(text) > LONGEST_SUM:
        raise Miscalculated("the calculation is too long")
    reader = _Reader(_tokens(text))
    result = reader.sum()
    if reader.left:
        raise Miscalculated("the calculation does not end where it should")
    return result


def result_of(sum_: Sum, number: Callable[[str], int]) -> int:
    """Return the result; division cuts towards zero, and a remainder has the sign of what is divided.

    @param number: returns the number that a name stands for.
    @raise Miscalculated: it has none.
    """
    if isinstance(sum_, int):
        result = sum_
    elif isinstance(sum_, str):
        result = number(sum_)
    elif len(sum_) == 2:
        result = -result_of(sum_[1], number)
    else:
        operator, left, right = sum_
        result = _apply(operator, result_of(left, number), result_of(right, number))
    if abs(result) > LARGEST:
        raise Miscalculated("the result is too large")
    return result


def _apply(operator: str, left: int, right: int) -> int:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if right == 0:
        raise Miscalculated("it divides by zero")
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    return quotient if operator == "/" else left - quotient * right


def _tokens(text: str) -> list[str]:
    tokens, place, text = [], 0, text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise Miscalculated("it is no calculation")
        tokens.append(match[1])
        place = match.end()
    return tokens


class _Reader:
    """Reads by descent; the depth is bounded by the length of the text."""

    def __init__(self, tokens: list[str]) -> None:
        self.left = tokens[::-1]

    def sum(self) -> Sum:
        result = self._product()
        while self._next in ("+", "-"):
            result = (self.left.pop(), result, self._product())
        return result

    @property
    def _next(self) -> str:
        return self.left[-1] if self.left else ""

    def _product(self) -> Sum:
        result = self._single()
        while self._next in ("*", "/", "%"):
            result = (self.left.pop(), result, self._single())
        return result

    def _single(self) -> Sum:
        token = self.left.pop() if self.left else ""
        if token == "-":
            return ("-", self._single())
        if token == "(":
            inner = self.sum()
            if self._next != ")":
                raise Miscalculated("a parenthesis is not closed")
            self.left.pop()
            return inner
        if token.isdigit():
            if len(token) > 15:
                raise Miscalculated("a number is too large")
            return int(token)
        if token and token not in "+*/%)":
            return token
        raise Miscalculated("a number or a name is missing")

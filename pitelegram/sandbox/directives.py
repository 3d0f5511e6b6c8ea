"""What a prompt asks of the scripted model: C{[[…]]} directives in its text.

A prompt holds any number of directives; they are the steps of the answer, in order.  A C{tool} step
ends one model request, the steps behind it answer the request that brings the tool's result.  The
page C{docs/sandbox-model.md} lists them for people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

WORDS = ("say", "long", "slow", "tool", "error", "hang", "gate", "think")
"""All directives; anything else between double brackets is plain text."""

_TAG = re.compile(r"\A\s*\[telegram[^\]\n]*\]\s*")
_TIME = re.compile(r"\n\n\[time\] [^\n]*\Z")
_OPTION = re.compile(r"\A([a-z]+)=(.*)\Z", re.DOTALL)
_QUOTED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_TOKEN = re.compile(
    rf"""\s*(?:(?P<close>\]\])|(?P<word>(?:[^\s'"\]]|\](?!\])|{_QUOTED.pattern})+))""", re.DOTALL
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t"}
_JSON = json.JSONDecoder()


@attrs.frozen
class Step:
    """One directive.

    @ivar word: one of L{WORDS}, or C{echo} for a prompt without directives.
    @ivar arguments: the values without a name.
    @ivar options: the C{name=value} pairs.
    """

    word: str
    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] = attrs.field(factory=dict)

    def argument(self, index: int, default: str) -> str:
        """The positional value, or C{default} where it is missing."""
        return self.arguments[index] if index < len(self.arguments) else default

    def number(self, name: str, default: float) -> float:
        """The option as a number, or C{default} where it is missing or no number."""
        try:
            return float(self.options.get(name, default))
        except ValueError:
            return default

    def tool_arguments(self) -> dict[str, Any]:
        """What a C{tool} step passes: a JSON object as it stands, else C{{"command": text}}."""
        text = " ".join(self.arguments[1:])
        if text.startswith("{"):
            try:
                value = json.loads(text)
            except ValueError:
                value = None
            if isinstance(value, dict):
                return value
        return {"command": text}


def parse(text: str) -> list[Step]:
    """Return the steps of a prompt: its directives, or one C{echo} step with the plain text."""
    steps = []
    position = 0
    while (start := text.find("[[", position)) >= 0:
        tokens, end = _tokens(text, start + 2)
        if tokens and tokens[0] in WORDS:
            steps.append(_step(tokens))
            position = end
        else:
            position = start + 2
    return steps or [Step("echo", (plain(text),))]


def plain(text: str) -> str:
    """Return the prompt without the bridge's leading C{[telegram…]} tag and its last C{[time]}."""
    return _TAG.sub("", _TIME.sub("", text)).strip()


def long_text(characters: int) -> str:
    """Return exactly that many characters of numbered lines, the same each time.

    It neither begins nor ends with white space and holds nothing that markup would change, so that
    a reader can prove order and wholeness.
    """
    lines = (
        f"{number:06d} abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz"
        for number in range(1, characters // 60 + 2)
    )
    text = "\n".join(lines)[:characters]
    return text if text == text.rstrip() else text[:-1] + "."


def _step(tokens: list[str]) -> Step:
    arguments, options = [], {}
    for token in tokens[1:]:
        match = _OPTION.match(token) if tokens[0] != "tool" else None
        if match:
            options[match[1]] = match[2]
        else:
            arguments.append(token)
    return Step(tokens[0], tuple(arguments), options)


def _tokens(text: str, position: int) -> tuple[list[str], int]:
    """Split up to the closing C{]]}; no tokens when there is none.

    Quotes group words and disappear; inside them a backslash before C{n}, C{t} or a quote means what
    it means in Python.  A JSON object is one token, as it stands.
    """
    tokens: list[str] = []
    while match := _TOKEN.match(text, position):
        if match["close"]:
            return tokens, match.end()
        position = match.end()
        token = _QUOTED.sub(_unquoted, match["word"])
        if match["word"].startswith("{"):
            try:
                _, position = _JSON.raw_decode(text, match.start("word"))
                token = text[match.start("word") : position]
            except ValueError:
                pass
        tokens.append(token)
    return [], position


def _unquoted(match: re.Match[str]) -> str:
    inner = match[0][1:-1]
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), inner)

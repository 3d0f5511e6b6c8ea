"""Markdown as models write it, made safe and regular before it is parsed."""

from __future__ import annotations

import re

from pitelegram.bridge.cutting import clean

_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069\x80-\x9f\ufdd0-\ufdef\ufffe\uffff]")
"""Embeddings, overrides and isolates of direction reorder what stands beside them; C1 controls."""

_FENCE = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})([^\n]*)$", re.M)
_ROUND = re.compile(r"\\\(((?:(?!\\\()[^`$\n]){1,300}?)\\\)")
_SQUARE = re.compile(r"\\\[((?:(?!\\\[)[^`$]){1,1000}?)\\\]")
_DEFINITION = re.compile(r"^( {0,3})\[([^\[\]\n]{1,200})\]:(?=[ \t]*\S)", re.M)
_LOOK_BACK = 2000
_MOST_LABELS = 200
_DEEP = re.compile(r"^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t])){65}", re.M)


def safe(markdown: str) -> str:
    """Return the text without what cannot be sent: lone surrogates, controls, direction overrides.

    The marks that right-to-left text needs (LRM, RLM, ALM) stay.
    """
    return clean(_DIRECTIONS.sub("", clean(markdown)))


def too_deep(source: str) -> bool:
    """Whether more than 64 quotes or lists are opened on one line: no prose, but costly."""
    return _DEEP.search(source) is not None


def regular(source: str) -> str:
    """Return Markdown in which nothing is lost by the letter of its specification.

    Outside fenced code: C{\\(x\\)} and C{\\[x\\]} become dollar math; tables are widened to their
    longest row, whose surplus cells would vanish; definitions nobody refers to stay visible.
    """
    if not any(mark in source for mark in ("\\(", "\\[", "|", "]:")):
        return source
    return "".join(
        text if code else _definitions(_tables(_math(text)), source)
        for code, text in _segments(source)
    )


def _segments(source: str) -> list[tuple[bool, str]]:
    """Cut a source into (whether it is fenced code, text)."""
    result, start, opened = [], 0, ""
    for match in _FENCE.finditer(source):
        fence, rest = match.group(1), match.group(2)
        if not opened:
            if fence[0] == "`" and "`" in rest:
                continue
            result.append((False, source[start : match.start()]))
            start, opened = match.start(), fence
        elif fence[0] == opened[0] and len(fence) >= len(opened) and not rest.strip():
            result.append((True, source[start : match.end()]))
            start, opened = match.end(), ""
    result.append((bool(opened), source[start:]))
    return result


def _math(text: str) -> str:
    if "\\(" in text:
        text = _ROUND.sub(lambda m: _dollars(text, m, "$", m.group(1).strip()), text)
    if "\\[" in text:
        text = _SQUARE.sub(lambda m: _dollars(text, m, "$$", m.group(1)), text)
    return text


def _dollars(text: str, match: re.Match[str], mark: str, inner: str) -> str:
    start = max(0, match.start() - _LOOK_BACK)
    line = max(start, text.rfind("\n", start, match.start()) + 1)
    in_code = text.count("`", line, match.start()) % 2
    if in_code or not inner.strip() or "\n\n" in inner:
        return match.group()
    return f"{mark}{inner}{mark}"


def _tables(text: str) -> str:
    if "|" not in text or "-" not in text:
        return text
    lines = text.split("\n")
    number = 1
    while number < len(lines):
        if _is_delimiter(lines[number]) and "|" in lines[number - 1]:
            number = _widen(lines, number)
        number += 1
    return "\n".join(lines)


def _is_delimiter(line: str) -> bool:
    return "-" in line and "|" in line and not line.strip("|-: \t>")


def _widen(lines: list[str], number: int) -> int:
    """Give header and delimiter row of a table as many cells as its longest row has.

    Return the line behind the table.
    """
    wanted = have = _cells(lines[number])
    header = _cells(lines[number - 1])
    last = number + 1
    while last < len(lines) and lines[last].strip(" >\t"):
        wanted = max(wanted, _cells(lines[last]) if "|" in lines[last] else 1)
        last += 1
    wanted = max(wanted, header)
    if wanted > have:
        lines[number] = lines[number].rstrip().rstrip("|") + "|---" * (wanted - have) + "|"
    if wanted > header:
        lines[number - 1] = lines[number - 1].rstrip().rstrip("|") + "| " * (wanted - header) + "|"
    return last


def _cells(line: str) -> int:
    bare = line.replace("\\\\", "").replace("\\|", "").strip(" \t>")
    return bare.removeprefix("|").removesuffix("|").count("|") + 1


def _definitions(text: str, source: str) -> str:
    if "]:" not in text:
        return text
    seen: set[str] = set()
    folded: list[str] = []

    def escaped(match: re.Match[str]) -> str:
        label = match.group(2).casefold()
        if not folded:
            folded.append(source.casefold())
        first = label not in seen and len(seen) < _MOST_LABELS and not label.startswith("^")
        seen.add(label)
        if not first or folded[0].count(f"[{label}]") < 2:
            return f"{match.group(1)}\\[{match.group(2)}]:"
        return match.group()

    return _DEFINITION.sub(escaped, text)

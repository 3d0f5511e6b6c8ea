"""The corpus: Markdown documents by name.

C{corpus/*.txt} hold documents one after the other, each under a line C{%%%% name}; those in
C{escaped.txt} are written with the escapes of a Python string.  What is large is made here.
"""

from __future__ import annotations

import re
from pathlib import Path

_HOME = Path(__file__).parent / "corpus"
_TITLE = re.compile(r"^%%%% (\S+)\n", re.M)

REDUCED = frozenset({"entities", "entity-broken", "html-telegram"})
"""Documents whose text is compared by words only; all of C{reduced.txt} too."""


def _read(name: str) -> dict[str, str]:
    _, *parts = _TITLE.split((_HOME / name).read_text("utf-8"))
    return dict(zip(parts[::2], (text[:-1] for text in parts[1::2]), strict=True))


def _unescaped(text: str) -> str:
    return text.encode("ascii").decode("unicode-escape")


def exact() -> dict[str, str]:
    """Documents of which every letter comes back in its place."""
    found = {**_read("answers.txt"), **_read("broken.txt"), **_read("scripts.txt")}
    found |= {name: _unescaped(text) for name, text in _read("escaped.txt").items()}
    found |= _made() | _cut_short(found["explanation"])
    return {name: text for name, text in found.items() if name not in REDUCED}


def reduced() -> dict[str, str]:
    """Documents with titles, references or wide tables: each word comes back."""
    every = {**_read("answers.txt"), **_read("broken.txt")}
    found = _read("reduced.txt") | {name: every[name] for name in REDUCED}
    return found | {
        "table-200-columns": _table(200, 3),
        "table-21-columns": _table(21, 3),
        "table-600-rows": _table(3, 600),
    }


def _table(columns: int, rows: int) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cells) + " |\n"

    names = line([f"name{column}" for column in range(columns)])
    body = "".join(line([f"r{row}c{column}" for column in range(columns)]) for row in range(rows))
    return names + line(["---"] * columns) + body


def _cut_short(answer: str) -> dict[str, str]:
    """An answer as it looks when its stream breaks off."""
    step = len(answer) // 12
    return {f"explanation-{at}": answer[:at] for at in range(step, len(answer), step)}


def _made() -> dict[str, str]:
    code = "\n".join(f"line_{number} = {number}" for number in range(3000))
    prose = "\n\n".join(
        f"Paragraph {number} is **bold {number}** and [link](https://example.org/{number}), "
        f"with `code {number}` and *some 😀 words {number}*." + " Filling words." * 12
        for number in range(150)
    )
    return {
        "list-40-levels": "\n".join("  " * level + f"- level {level}" for level in range(40)),
        "list-40-numbered": "\n".join("   " * level + f"1. n{level}" for level in range(40)),
        "quote-40-levels": "\n".join("> " * level + f"q{level}" for level in range(1, 41)),
        "line-of-20000": "word " * 4000,
        "word-of-20000": "x" * 20_000,
        "emoji-5000": "😀" * 5000,
        "families-1000": "👩‍👩‍👧‍👦" * 1000,
        "code-3000-lines": f"Before\n\n```python\n{code}\n```\n\nAfter",
        "code-one-line": "```\n" + "0123456789" * 1500 + "\n```",
        "code-indented-lines": "```\n"
        + "\n".join("    " * 3 + f"l{n}" for n in range(900))
        + "\n```",
        "quote-2000-lines": "\n".join(f"> quoted {number}" for number in range(2000)),
        "list-700-items": "\n".join(f"- item {number}" for number in range(700)),
        "list-700-numbers": "\n".join(f"{number}. item" for number in range(1, 701)),
        "prose-150": prose,
        "bold-over-many-cuts": "**" + "bold words " * 2000 + "end**",
        "styles-1000": "**b** *i* " * 1000,
        "links-500": " ".join(f"[l{n}](https://example.org/{n})" for n in range(500)),
        "codes-500": " ".join(f"`c{n}`" for n in range(500)),
        "accents-9000": "e" + "\u0301" * 9000,
        "hebrew-long": "שלום עולם " * 900,
        "chinese-long": "这是一个没有空格的长句子。" * 700,
        "flags-2100": "🇩🇪" * 2100,
        "brackets-300": "[" * 300 + "x" + "]" * 300,
        "blank-lines": "a" + "\n" * 5000 + "b",
        "wide-spaces": "a" + " " * 9000 + "b",
        "quote-900-paragraphs": "\n>\n".join(f"> quoted {n}, " + "q" * 40 for n in range(900)),
        "paragraph-100k": "words without *any* style **in** `them` and more words " * 1800,
        "paragraph-100k-plain": "words, and - 1. then # some 2) more + words " * 2200,
        "code-100k-in-list": "- item\n\n  ```\n" + "  some code\n" * 8000 + "  ```\n",
        "list-big-items": "\n".join(f"- item {n} " + "text " * 900 for n in range(20)),
        "rules-600": "x\n\n" + "---\n\n" * 600 + "y",
    }

"""Keeping what a program writes, within bounds while it writes."""

from __future__ import annotations

import codecs

OUTPUT_CHARS = 12_000
"""Of a result that goes into a prompt."""

ERROR_CHARS = 4_000
"""Of standard error in a report."""


class Head:
    """Keeps the first characters and counts the others.

    White space at the end does not count.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept: list[str] = []
        self._room = most
        self._seen = 0
        self._length = 0

    def add(self, data: bytes, final: bool = False) -> None:
        """Take the next bytes."""
        text = self._decoder.decode(data, final)
        if self._room > 0 and text:
            self._kept.append(text[: self._room])
            self._room -= len(self._kept[-1])
        inked = len(text.rstrip())
        if inked:
            self._length = self._seen + inked
        self._seen += len(text)

    def close(self) -> tuple[str, int]:
        """Return the text, and how many characters of it are missing."""
        self.add(b"", final=True)
        return "".join(self._kept).strip(), max(0, self._length - self._most)


def marked(text: str, missing: int) -> str:
    """Return a text with the sign of how many characters are missing at its end."""
    return f"{text}… [truncated {missing} chars]" if missing else text


def bounded(text: str, most: int = OUTPUT_CHARS) -> str:
    """Return a text of at most that many characters, and the sign if it was longer."""
    return marked(text[:most], max(0, len(text) - most))

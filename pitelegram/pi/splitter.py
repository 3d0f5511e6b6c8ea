"""Lines out of a byte stream, as Pi's RPC mode frames them."""

from __future__ import annotations

LINE_LIMIT = 64 * 1024 * 1024
"""Longest line in bytes that is kept; a longer one is discarded up to its LF."""


class LineSplitter:
    """Splits on LF bytes only and drops one CR before it; never scans a byte twice.

    @param limit: longest line in bytes, its CR included.
    @ivar oversized: how many lines were discarded because they were longer.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self.oversized = 0
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._discarding = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the lines that they complete, in order."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines:
            if self._parts or self._discarding:
                self._complete(lines)
            if len(data) > self._limit:
                lines = [line for line in lines if self._fits(line)]
            if b"\r" in data or (lines and lines[0].endswith(b"\r")):
                lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
        if rest:
            self._keep(rest)
        return lines

    @property
    def pending(self) -> int:
        """How many bytes of an unfinished line are kept."""
        return self._size

    def _complete(self, lines: list[bytes]) -> None:
        """Put what was kept in front of the first line, or drop that line's end."""
        size = self._size + len(lines[0])
        if not self._discarding and size <= self._limit:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
        else:
            self.oversized += not self._discarding
            del lines[0]
        self._parts = []
        self._size = 0
        self._discarding = False

    def _keep(self, rest: bytes) -> None:
        if self._discarding:
            return
        self._size += len(rest)
        if self._size > self._limit:
            self.oversized += 1
            self._discarding = True
            self._parts = []
            self._size = 0
        else:
            self._parts.append(rest)

    def _fits(self, line: bytes) -> bool:
        if len(line) <= self._limit:
            return True
        self.oversized += 1
        return False

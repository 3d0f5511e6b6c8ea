"""How much of a streamed text may be shown already: nothing in it is still open.

A preview is rendered like any other text.  Cut in the middle of C{**bold} or of a fence it would show
marks that vanish with the next frame, so a frame ends where no code, emphasis, link or comment is
open.  Each character is looked at once, however small the pieces are that the text comes in.
"""

from __future__ import annotations

import re
from collections import deque

_TOKEN = re.compile(
    r"\\."  # an escape
    r"|`+|~{3,}|~~|\*+|_+"
    r"|<!--|-->"
    r"|!?\[|\](?:\([^()\n]{0,2100}(?:\([^()\n]{0,200}\)[^()\n]{0,2100})?\))?"
    r"|\$\$|\n",
    re.S,
)
_UNFINISHED = re.compile(r"(?:\\|`+|~+|\*+|_+|<!?-{0,2}|-{1,2}|!|\$+|\](?:\([^)\n]{0,2100})?)\Z")
_LONGEST = 4500
"""A token that is not finished is waited for up to this many characters."""

_KEPT = 4096


class ClosedPrefix:
    """Fed with deltas; knows how long the closed prefix is, and its last blocks.

    An emphasis or a link that its paragraph does not close is none; it holds back no more than that
    paragraph.

    @ivar length: characters of the closed prefix.
    """

    def __init__(self) -> None:
        self.length = 0
        self._seen = 0
        self._tail = ""
        self._before = ""
        self._open: list[str] = []
        self._fence = ""
        self._comment = False
        self._blank = True
        self._line_start = True
        self._window = ""
        self._window_start = 0
        self._recent: list[str] = []
        self._recent_size = 0
        self._blocks: deque[int] = deque()

    def feed(self, delta: str) -> None:
        """Take the next piece of the text."""
        text = self._tail + delta
        self._keep(delta)
        end = self._complete(text)
        self._scan(text, end)
        self._seen += end
        self._before = text[end - 1 : end] or self._before
        self._tail = text[end:]

    def text(self, limit: int = _KEPT, whole: bool = False) -> str:
        """Return the closed prefix, or its last whole blocks when it is longer than C{limit}.

        @param limit: at most 4,096 characters.
        @param whole: of a last block that is longer nothing is returned; else its end, whatever is open
            there.
        """
        self._gather()
        start = 0
        if self.length > limit:
            wanted = self.length - limit
            otherwise = self.length if whole else wanted
            start = next((block for block in self._blocks if block >= wanted), otherwise)
        start = max(start, self._window_start)
        return self._window[start - self._window_start : self.length - self._window_start]

    def _keep(self, delta: str) -> None:
        self._recent.append(delta)
        self._recent_size += len(delta)
        if self._recent_size > _KEPT:
            self._gather()

    def _gather(self) -> None:
        """Remember enough to show the last blocks: not all of a long text."""
        window = self._window + "".join(self._recent)
        self._recent, self._recent_size = [], 0
        spare = max(0, self.length - _KEPT - self._window_start)
        self._window = window[spare:]
        self._window_start += spare
        while self._blocks and self._blocks[0] < self._window_start:
            self._blocks.popleft()

    def _complete(self, text: str) -> int:
        """Return how much can be read: not a mark that the next delta may make longer."""
        match = _UNFINISHED.search(text, max(0, len(text) - _LONGEST))
        if match is None or match.end() - match.start() >= _LONGEST:
            return len(text)
        start = match.start()
        slashes = start - len(text[:start].rstrip("\\"))
        return start - slashes % 2

    def _scan(self, text: str, end: int) -> None:
        at = 0
        for match in _TOKEN.finditer(text, 0, end):
            self._plain(text, at, match.start())
            before = text[match.start() - 1 : match.start()] or self._before
            self._token(match.group(), before, match.end(), text[match.end() : match.end() + 1])
            at = match.end()
        self._plain(text, at, end)

    def _plain(self, text: str, start: int, end: int) -> None:
        if end > start:
            if not text[start:end].isspace():
                self._blank = False
                if text[start:end].strip(" \t>0123456789.-+)"):
                    self._line_start = False
            self._close(end)

    def _close(self, end: int) -> None:
        if not (self._open or self._fence or self._comment):
            self.length = self._seen + end

    def _token(self, token: str, before: str, end: int, after: str) -> None:
        if token == "\n":
            self._newline(end)
            return
        fence = token[0] in "`~" and len(token) >= 3 and self._line_start
        self._blank = self._line_start = False
        if self._comment:
            self._comment = token != "-->"
        elif self._fence:
            same = token[0] == self._fence[0] and len(token) >= len(self._fence)
            if fence and same and not after.strip():
                self._fence = ""
        elif fence:
            self._fence = token
        elif token == "<!--":
            self._comment = not self._in_code()
        else:
            self._inline(token, before, after)
        self._close(end)

    def _newline(self, end: int) -> None:
        if self._blank and not self._fence and not self._comment:
            self._open.clear()
            if not self._blocks or self._blocks[-1] < self._seen + end:
                self._blocks.append(self._seen + end)
        self._blank = self._line_start = True
        self._close(end)

    def _in_code(self) -> bool:
        return bool(self._open) and self._open[-1][0] == "`"

    def _inline(self, token: str, before: str, after: str) -> None:
        if self._in_code():
            if token == self._open[-1]:
                self._open.pop()
        elif token[0] == "\\" or token == "-->":
            return
        elif token[0] == "]":
            if "[" in self._open:
                while self._open.pop() != "[":
                    pass
        elif token[-1] == "[":
            self._push("[")
        elif token[0] in "*_~$":
            self._emphasis(token, before, after)
        else:
            self._push(token)

    def _emphasis(self, token: str, before: str, after: str) -> None:
        if token in self._open and before and not before.isspace():
            while self._open.pop() != token:
                pass
        elif token[0] == "$" or not (token[0] == "_" and before.isalnum()):
            if after and not after.isspace():
                self._push(token)

    def _push(self, mark: str) -> None:
        if len(self._open) < 64:
            self._open.append(mark)


def closed_prefix(markdown: str) -> str:
    """Return the longest beginning of a text in which no code, emphasis, link or comment is open."""
    scanner = ClosedPrefix()
    scanner.feed(markdown)
    return markdown[: scanner.length]

"""What the model thinks, as one folded message that grows."""

from __future__ import annotations

import re
from typing import Any

from pitelegram.bridge.activity.marked import FOLDED, Marked
from pitelegram.bridge.activity.redaction import inert, so_far, without_secrets
from pitelegram.bridge.cutting import clean, utf16_length

SHOWN = 1200
"""UTF-16 units of thought that are shown: the newest."""
KEPT = 4 * SHOWN
"""Characters that are kept, so that a secret is whole when it is looked for."""
NEWS = 160
"""Characters that are worth another edit."""
MOST_FRAMES = 24
"""Sends and edits of one message."""
FIRST = 40
"""Characters that are worth the first one."""

_FIRST_WORD = re.compile(r"\A\S*\s+")


class Thoughts:
    """Collects thoughts for one message.

    @ivar frames: how often they were shown.
    @ivar over: no word of them is incomplete.
    """

    def __init__(self) -> None:
        self.frames = 0
        self.over = False
        self._text = ""
        self._new = 0

    def add(self, text: str) -> bool:
        """Take more; whether it is worth showing now."""
        self.over = False
        cut = len(self._text) + len(text) > KEPT
        self._text = (self._text + text)[-KEPT:]
        if cut:
            self._text = _FIRST_WORD.sub("", self._text)
        self._new += len(text)
        return self._new >= (NEWS if self.frames else FIRST) and self.frames < MOST_FRAMES - 1

    def pause(self) -> None:
        """What comes next is another thought."""
        self.over = True
        if self._text and not self._text.endswith("\n\n"):
            self._text += "\n\n"

    @property
    def news(self) -> bool:
        """Whether there is something that was not shown yet."""
        return self._new > 0 and bool(self._text.strip())

    def message(self) -> dict[str, Any] | None:
        """Return the message as it is now; None while there is nothing to show."""
        text = self._text if self.over else so_far(self._text)
        text = inert(without_secrets(clean(text)), words=True)
        if not text.strip():
            return None
        self.frames += 1
        self._new = 0
        message = Marked().add("💭 ")
        with message.within(FOLDED):
            message.add(_newest(text))
        return message.as_params()


def _newest(text: str) -> str:
    """Return the end of a text that may be shown, from the beginning of a word."""
    if utf16_length(text) <= SHOWN:
        return text
    end = text[-SHOWN:]
    while utf16_length(end) > SHOWN - 2:
        end = end[utf16_length(end) - SHOWN + 2 :]
    return "… " + (_FIRST_WORD.sub("", end) or end)

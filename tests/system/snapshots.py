"""Screens as files: what a message says and which buttons it has, compared with what was recorded.

Each snapshot is a JSON file with the toast of the press that led there, the lines of the text, and the
keyboard row by row as C{label -> callback data}.  What differs between two runs (ids, paths) is
replaced before it is compared.  After a wanted change run the module once with
C{PI_TELEGRAM_RECORD_SCREENS=1} in the environment, and read what changed in the files before it is
committed.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from pathlib import Path
from typing import Any

from pitelegram.sandbox.records import Message

RECORD = "PI_TELEGRAM_RECORD_SCREENS"

DIRECTORY = Path(__file__).parent / "screens"

_VARYING = (
    (re.compile(r"(?<=ptd:n:)[0-9a-f]{16}:[0-9]+"), "<id>:<pid>"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "<id>"),
    (re.compile(r"(?<=· running · )(idle|active|queued)"), "<activity>"),
)


class Snapshots:
    """The recorded screens.

    @param places: what to write instead of a path or another text that differs between runs.
    @param record: whether to write instead of comparing; None: as the environment says.
    @ivar checked: names of the screens that were compared (or recorded).
    """

    def __init__(
        self, places: dict[str, str], directory: Path = DIRECTORY, record: bool | None = None
    ) -> None:
        self._places = places
        self._directory = directory
        self._record = bool(os.environ.get(RECORD)) if record is None else record
        self.checked: list[str] = []

    def check(self, name: str, message: Message, toast: str = "") -> None:
        """Compare a message as it is shown now; or record it.

        @raise AssertionError: with a diff, when it is another screen than the recorded one.
        """
        now = self._text(message, toast)
        path = self._directory / f"{name}.json"
        self.checked.append(name)
        if self._record:
            path.write_text(now, "utf-8")
            return
        if not path.exists():
            raise AssertionError(f"no screen {name} is recorded; run once with {RECORD}=1\n{now}")
        before = path.read_text("utf-8")
        if now != before:
            diff = difflib.unified_diff(
                before.splitlines(), now.splitlines(), "recorded", "shown", lineterm=""
            )
            raise AssertionError(
                f"the screen {name} is not as recorded:\n" + "\n".join(diff) + f"\n({RECORD}=1)"
            )

    def _text(self, message: Message, toast: str) -> str:
        rows = [
            [self._same(f"{b['text']} -> {b['callback_data']}") for b in row]
            for row in message.keyboard
        ]
        document: dict[str, Any] = {
            "toast": self._same(toast),
            "text": self._same(message.text).split("\n"),
            "keyboard": rows,
        }
        return json.dumps(document, ensure_ascii=False, indent=2) + "\n"

    def _same(self, text: str) -> str:
        for varying, name in self._places.items():
            text = text.replace(varying, name)
        for pattern, name in _VARYING:
            text = pattern.sub(name, text)
        return text

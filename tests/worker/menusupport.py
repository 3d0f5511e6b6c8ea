"""A worker whose menus can be read and pressed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pitelegram.kernel.jsonio import dumps
from pitelegram.testing.worker import CHAT, WorkerRig
from tests.worker.test_queue import RigCase

MENU = 50
"""The message that presses come from."""


class MenuCase(RigCase):
    """Reads what was shown, and presses buttons by their label."""

    def begin(self) -> WorkerRig:
        """A worker that is up, with two models of which one has thinking levels."""
        self.rig = self.started()
        self.rig.host.results["get_available_models"] = {
            "models": [
                {"provider": "scripted", "id": "scripted", "reasoning": True},
                {"provider": "scripted", "id": "other<b>"},
                {"provider": "elsewhere", "id": "scripted"},
                "odd",
            ]
        }
        return self.rig

    def calls(self, method: str) -> list[dict[str, Any]]:
        """The parameters of every call of that method."""
        return [params for name, params, _ in self.rig.link.api_calls if name == method]

    def shown(self) -> dict[str, Any]:
        """What the newest menu looks like."""
        found = [
            params
            for name, params, _ in self.rig.link.api_calls
            if name in ("sendMessage", "editMessageText")
        ]
        return found[-1]

    def toasts(self) -> list[str]:
        """The answers to presses."""
        return [params["text"] for params in self.calls("answerCallbackQuery")]

    def labels(self) -> list[str]:
        """The newest menu's buttons."""
        rows = self.shown()["reply_markup"]["inline_keyboard"]
        return [button["text"] for row in rows for button in row]

    def button(self, label: str) -> str:
        """The data of a button of the newest menu."""
        rows = self.shown()["reply_markup"]["inline_keyboard"]
        (found,) = [b["callback_data"] for row in rows for b in row if label in b["text"]]
        return str(found)

    def tap(self, *labels: str) -> None:
        """Press buttons of the newest menu, one after the other."""
        for label in labels:
            self.press(self.button(label))

    def press(self, data: str) -> None:
        """Press whatever it is."""
        self.rig.press(data, MENU)
        self.rig.run()

    def session(self, name: str, said: str, age: float = 0.0, cwd: Path | None = None) -> Path:
        """A session file of the worker's project."""
        place = self.rig.paths.pi_sessions / "--project--"
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{name}.jsonl"
        records: list[dict[str, Any]] = [
            {"type": "session", "version": 3, "id": name, "cwd": str(cwd or self.rig.project)},
            {"type": "message", "id": "1", "message": {"role": "user", "content": said}},
        ]
        path.write_bytes(b"".join(dumps(record) + b"\n" for record in records))
        when = self.rig.clock.seconds() - age
        os.utime(path, (when, when))
        return path


PLACE = {"chat_id": CHAT, "message_id": MENU}

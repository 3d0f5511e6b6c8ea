"""What is known of a Pi: C{get_state}, kept current by events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Projection:
    """The last known state, and word of each change.

    Beside the members of C{get_state} it holds C{queue}: C{{"steering": [text], "followUp": [text]}}
    as Pi last reported it.

    @param changed: called with the new state after it really changed.
    """

    def __init__(self, changed: Callable[[dict[str, Any]], None]) -> None:
        self._changed = changed
        self._state: dict[str, Any] = {
            "isStreaming": False,
            "isCompacting": False,
            "pendingMessageCount": 0,
            "queue": {"steering": [], "followUp": []},
        }

    @property
    def state(self) -> dict[str, Any]:
        """A copy of the state."""
        return dict(self._state)

    def replace(self, data: Mapping[str, Any]) -> None:
        """Take the data of C{get_state}; members that it lacks are gone."""
        state = {**data, "queue": self._state["queue"]}
        if not data.get("pendingMessageCount"):
            state["queue"] = {"steering": [], "followUp": []}
        self._take(state)

    def update(self, **members: Any) -> None:
        """Take single members that an event told."""
        self._take({**self._state, **members})

    def queue(self, steering: object, follow_up: object) -> None:
        """Take the lists of C{queue_update}."""
        lists = {"steering": _texts(steering), "followUp": _texts(follow_up)}
        count = len(lists["steering"]) + len(lists["followUp"])
        self.update(queue=lists, pendingMessageCount=count)

    def _take(self, state: dict[str, Any]) -> None:
        if state != self._state:
            self._state = state
            self._changed(self.state)


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []

"""Answers that a worker had not rendered when it was gone, as the leader sends them in its place."""

from __future__ import annotations

from typing import Any

from pitelegram.bridge.answer import deliveries, text_calls
from pitelegram.bridge.comments import finished, read
from pitelegram.bridge.rendering.messages import visible
from pitelegram.bridge.rendering.records import RenderOptions
from pitelegram.bridge.rendering.render import render
from pitelegram.errors import BusBadRequest

_OPTIONS = RenderOptions(rendering="html", file_after=0)


def leftover(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the deliveries that an answer of a worker's store comes to, in order.

    What is rendered already stays as it is.  Pi's own words (C{raw}) are rendered with entities, the
    form that nothing refuses: no program of the operator runs for them any more, what was to be spoken is
    shown, and buttons, whose presses nobody would understand, stand there by their labels.

    @raise BusBadRequest: it is no such answer.
    """
    if answer["kind"] != "raw":
        return [answer]
    content = answer["delivery"]
    text, created = content.get("text"), content.get("createdAtMs")
    if not isinstance(text, str) or type(created) is not int:
        raise BusBadRequest("an answer without its text or its time")
    calls = _calls(_shown(text), content.get("footer"))
    anchor = content.get("anchor")
    message_id = anchor.get("messageId") if isinstance(anchor, dict) else None
    if calls and type(message_id) is int:
        reply = {"message_id": message_id, "allow_sending_without_reply": True}
        calls[0]["params"]["reply_parameters"] = reply
    return deliveries(answer["delivery_id"], "final", calls, created)


def _shown(text: str) -> str:
    found = read(text)
    parts = [found.markdown]
    if not visible(found.markdown):
        parts = [speech.text for speech in found.speeches]
    parts += [f"- ☑️ {button.label}" for row in found.buttons for button in row]
    return "\n\n".join(part for part in parts if part)


def _calls(markdown: str, footer: object) -> list[dict[str, Any]]:
    if isinstance(footer, str) and footer:
        markdown = f"{finished(markdown)}\n\n{footer}"
    found = render(markdown, _OPTIONS).calls("entities")
    return [dict(call) for call in found] or text_calls(markdown)

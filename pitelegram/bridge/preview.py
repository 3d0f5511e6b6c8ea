"""What is shown of an answer that is still being written."""

from __future__ import annotations

from typing import Any, Literal

from pitelegram.bridge.comments import visible_prefix
from pitelegram.bridge.rendering.messages import visible
from pitelegram.bridge.rendering.prefix import ClosedPrefix
from pitelegram.bridge.rendering.records import Call, RenderOptions
from pitelegram.bridge.rendering.render import render
from pitelegram.bridge.rendering.splitting import LIMIT, Measure

Rendering = Literal["rich", "html"]


def frame(prefix: ClosedPrefix, rendering: Rendering) -> Call | None:
    """Return the call that would send what may be shown now, None when there is nothing to see.

    It is one message of at most 4,096 units, the end of a longer text; without hidden comments, open
    marks, and frames in which no letter or digit stands.  The work is bounded however long the text is.

    @return: a C{sendRichMessage} or a C{sendMessage}, as L{render} makes them.
    """
    text = _fitting(prefix)
    shown = visible_prefix(text) if text else ""
    if not visible(shown):
        return None
    steps = render(shown, RenderOptions(rendering=rendering, file_after=0)).steps
    if not steps:
        return None
    step = steps[-1]
    words = "".join(call["params"]["text"] for call in step.entities)
    if not any(map(str.isalnum, words)):
        return None
    calls = step.rich if rendering == "rich" and step.rich else step.entities
    return calls[-1]


def as_draft(call: Call, draft_id: int) -> tuple[str, dict[str, Any]]:
    """Return method and parameters of the draft that shows the same as a message."""
    params = {"draft_id": draft_id, **call["params"]}
    params.pop("link_preview_options", None)
    return call["method"] + "Draft", params


def _fitting(prefix: ClosedPrefix) -> str:
    for limit in (LIMIT, LIMIT // 2):
        text = prefix.text(limit, whole=True)
        if Measure(text).units(0, len(text)) <= LIMIT:
            return text
    return ""

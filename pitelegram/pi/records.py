"""Pi's event stream, cut to what anybody looks at.

Most of what Pi writes is not shown: usage figures with every token, tool output, copies of whole
messages.  A line's first bytes say what it is, so only the records that matter are decoded.  Text
deltas are cut out of their lines and decoded together, which also puts characters right that the
model's chunks had cut in two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Protocol

from pitelegram.kernel import jsonio
from pitelegram.pi.heads import failed, head

_KEY = 20
"""How many first bytes tell the types apart: C{{"type":"} and eleven letters."""

_UPDATE, _SKIP, _END, _DECODE, _TOOL = range(5)

_SKIPPED = (
    "agent_end",
    "bash_execution_update",
    "entry_appended",
    "message_start",
    "summarization_retry_attempt_start",
    "tool_execution_start",
    "turn_end",
    "turn_start",
)
"""Record types that are never decoded (those that share their first letters with these too)."""


def _first_bytes(kind: str) -> bytes:
    return f'{{"type":"{kind}","'.encode()[:_KEY]


_TOOL_KEY = _first_bytes("tool_execution_start")
"""Starts, updates and ends of tools have it."""

_KINDS = {
    **{_first_bytes(kind): _SKIP for kind in _SKIPPED},
    _first_bytes("message_update"): _UPDATE,
    _first_bytes("message_end"): _END,
}
_ROLE = b'{"type":"message_end","message":{"role":"'
_USER = _ROLE + b'user"'
_ASSISTANT = _ROLE + b'assistant"'
_TEXT_DELTA = b'"text_delta"'
_THINKING_DELTA = b'"thinking_delta"'
_DELTA = b'"delta":"'
_BODY = re.compile(rb'(?:[^"\\]|\\.)*', re.DOTALL)
"""The inside of a JSON string."""
_HALF = re.compile(rb"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})\Z")


class RecordSink(Protocol):
    """What the records mean to somebody."""

    def text_delta(self, text: str) -> None:
        """One or more text deltas in a row."""

    def thinking_delta(self, text: str) -> None:
        """One or more deltas of what the model thinks, in a row."""

    def tool(self, kind: str, record: dict[str, Any], failed: bool) -> None:
        """A C{tool_execution_…} record, or the beginning of one."""

    def record(self, kind: str, record: dict[str, Any]) -> None:
        """Any other record that was decoded; C{kind} is its type."""


class RecordReader:
    """Decodes lines and passes on what matters, in order.

    @ivar seen: lines so far.
    @ivar malformed: lines that were no JSON.
    @ivar not_objects: lines that were JSON, but no object with a type.
    """

    def __init__(self, sink: RecordSink) -> None:
        self.seen = 0
        self.malformed = 0
        self.not_objects = 0
        self._sink = sink
        self._deltas: list[bytes] = []
        self._thinks = False  # whether these are what the model thinks, not what it says
        self._kinds = dict(_KINDS)
        self._thinking = False

    def want(self, tools: bool, thinking: bool) -> None:
        """Decode also these from now on, or not."""
        self._kinds[_TOOL_KEY] = _TOOL if tools else _SKIP
        self._thinking = thinking

    def feed(self, lines: list[bytes]) -> None:
        """Take complete lines."""
        self.seen += len(lines)
        kinds, deltas = self._kinds.get, self._deltas
        for line in lines:
            kind = kinds(line[:_KEY], _DECODE)
            if kind == _UPDATE:
                found = line.find(_TEXT_DELTA)
                if found >= 0:
                    if self._thinks:
                        self._turn(False)
                    start = line.find(_DELTA, found) + 9
                    if start > 8 and line.endswith(b'"}}'):
                        deltas.append(line[start:-3])
                    else:
                        self._decode(line)
                elif self._thinking and (found := line.find(_THINKING_DELTA)) >= 0:
                    self._thought(line, found)
            elif kind == _TOOL:
                self._tool(line)
            elif kind != _SKIP and (kind == _DECODE or _is_shown(line)):
                self._decode(line)
        if deltas:
            self._flush(whole=False)

    def finish(self) -> None:
        """The stream ended: pass on what was held back."""
        self._flush(whole=True)

    def _turn(self, thinks: bool) -> None:
        """From now on the deltas are what the model thinks, or says."""
        self._flush(whole=True)
        self._thinks = thinks

    def _thought(self, line: bytes, found: int) -> None:
        if not self._thinks:
            self._turn(True)
        start = line.find(_DELTA, found) + 9
        if start > 8 and (body := _BODY.match(line, start)):
            self._deltas.append(body[0])

    def _tool(self, line: bytes) -> None:
        self._flush(whole=True)
        try:
            record = head(line)
        except (ValueError, RecursionError):
            self.malformed += 1
            return
        if isinstance(record, dict) and isinstance(kind := record.get("type"), str):
            self._sink.tool(kind, record, failed(line))
        else:
            self.not_objects += 1

    def _decode(self, line: bytes) -> None:
        self._flush(whole=True)
        try:
            record = jsonio.loads(line)
        except (ValueError, RecursionError):
            self.malformed += 1
            return
        kind = record.get("type") if isinstance(record, dict) else None
        if not isinstance(kind, str):
            self.not_objects += 1
        elif kind == "message_update":
            event = record.get("assistantMessageEvent")
            if isinstance(event, dict) and event.get("type") == "text_delta":
                self._sink.text_delta(str(event.get("delta", "")))
        elif kind not in _SKIPPED:
            self._sink.record(kind, record)

    def _flush(self, whole: bool) -> None:
        """Pass the collected deltas on; a cut character at the end waits unless C{whole}."""
        deltas = self._deltas
        if not deltas:
            return
        raw = b"".join(deltas)
        half = None if whole else _HALF.search(raw, max(0, len(raw) - 64))
        text = _text(raw[: half.start(1)] if half else raw, deltas)
        deltas.clear()
        if half:
            deltas.append(half[1])
        if text and self._thinks:
            self._sink.thinking_delta(text)
        elif text:
            self._sink.text_delta(text)


def _is_shown(line: bytes) -> bool:
    """Whether somebody looks at this C{message_end}: those of user and assistant, and odd ones."""
    return line.startswith((_USER, _ASSISTANT)) or not line.startswith(_ROLE)


def _text(raw: bytes, deltas: Iterable[bytes]) -> str:
    """Decode joined string bodies; one by one when there is more in them than a string."""
    try:
        return jsonio.loads(b'"' + raw + b'"')
    except ValueError:
        return "".join(map(_one, deltas))


def _one(body: bytes) -> str:
    try:
        value = jsonio.loads(b'{"delta":"' + body + b'"}')["delta"]
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def message_text(message: dict[str, Any]) -> str:
    """Return the text parts of a message, with an empty line between them."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts: list[str] = [
        part["text"]
        for part in content
        if isinstance(part, dict)
        and part.get("type") == "text"
        and isinstance(part.get("text"), str)
    ]
    return "\n\n".join(text for text in texts if text)

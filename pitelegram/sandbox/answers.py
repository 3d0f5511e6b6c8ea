"""One streamed answer of the scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.web.server import Request

from pitelegram.kernel.deferring import sleep, spawn
from pitelegram.kernel.observers import OneShot
from pitelegram.sandbox.directives import Step, long_text, parse

_log = Logger()

SUMMARY = "A short summary of the conversation so far."
"""What a request without tools is answered with."""


@attrs.define
class ModelRequest:
    """One completion request, as recorded.

    @ivar index: its place in the order of arrival, from 0.
    @ivar text: the text of the last user message, as Pi sent it.
    @ivar results: the texts of the tool results that came after it.
    @ivar users: the texts of all user messages, oldest first.
    @ivar tools: whether Pi offered tools; it does not when it asks for a summary.
    @ivar system: the system prompt.
    @ivar offered: names of the tools that Pi offered.
    @ivar pictures: how many pictures the last user message has.
    @ivar attempt: how often this was asked, this time included (Pi repeats failed requests).
    @ivar state: C{answering}, C{answered} or C{cut} (Pi went away before the end).
    """

    index: int
    text: str
    results: tuple[str, ...]
    users: tuple[str, ...]
    tools: bool
    pictures: int = 0
    attempt: int = 1
    state: str = "answering"
    system: str = attrs.field(default="", repr=False)
    offered: tuple[str, ...] = ()

    @classmethod
    def from_body(cls, index: int, body: Mapping[str, Any]) -> ModelRequest:
        """Read a request's body, whatever it holds."""
        text, system, pictures = "", "", 0
        results: list[str] = []
        users: list[str] = []
        for message in body["messages"]:
            if not isinstance(message, dict):
                continue
            if message.get("role") == "user":
                text = _text(message.get("content"))
                pictures = _pictures(message.get("content"))
                users.append(text)
                results = []
            elif message.get("role") == "tool":
                results.append(_text(message.get("content")))
            elif message.get("role") in ("system", "developer"):
                system = _text(message.get("content"))
        tools = [each for each in body.get("tools") or () if isinstance(each, dict)]
        return cls(
            index,
            text,
            tuple(results),
            tuple(users),
            bool(body.get("tools")),
            pictures,
            system=system,
            offered=tuple(str(each.get("function", {}).get("name")) for each in tools),
        )

    def as_json(self) -> dict[str, Any]:
        """Return what C{GET /control/requests} shows."""
        own = ("system", "offered")
        return attrs.asdict(self, filter=lambda field, _: field.name not in own)


class Answer:
    """Streams the steps of one request as server-sent events.

    @param gate: returns the gate of a name.
    @param summary_gate: the gate at which a summary waits, None when it does not wait.
    """

    def __init__(
        self,
        gate: Callable[[str], OneShot[None]],
        clock: IReactorTime,
        record: ModelRequest,
        request: Request,
        summary_gate: str | None = None,
    ) -> None:
        self._gate = gate
        self._summary_gate = summary_gate
        self._clock = clock
        self._record = record
        self._request = request
        self._begun = False

    def start(self) -> None:
        """Begin; the request is finished, or cut when Pi goes away."""
        running = spawn(_log, "a scripted answer", self._run())
        self._request.notifyFinish().addErrback(lambda _: self._cut(running))

    def _cut(self, running: Deferred[None]) -> None:
        self._record.state = "cut"
        running.cancel()

    async def _run(self) -> None:
        try:
            await self._steps()
        except CancelledError:
            if self._record.state != "cut":
                raise

    async def _steps(self) -> None:
        steps, follow_up = self._pending()
        if follow_up is not None and not steps:
            await self._say(follow_up, 1)
        for step in steps:
            if step.word == "tool":
                return self._call_tool(step)
            if step.word == "error" and self._record.attempt <= step.number("times", inf):
                return self._fail(step)
            await self._play(step)
        self._finish("stop")

    def _pending(self) -> tuple[list[Step], str | None]:
        """The steps that this request answers, and what to say when a tool ended the script."""
        if not self._record.tools:
            return [self._summary()], None
        steps = parse(self._record.text)
        done = len(self._record.results)
        if not done:
            return steps, None
        for position, step in enumerate(steps):
            if step.word == "tool":
                done -= 1
                if not done:
                    return steps[position + 1 :], f"The tool said: {self._record.results[-1]}"
        return [], f"The tool said: {self._record.results[-1]}"

    def _summary(self) -> Step:
        if self._summary_gate is None:
            return Step("say", (SUMMARY,))
        return Step("gate", (self._summary_gate,), {"text": SUMMARY})

    async def _play(self, step: Step) -> None:
        chunks = max(1, int(step.number("chunks", 1)))
        text = step.options.get("text", step.argument(0, ""))
        if step.word == "echo":
            await self._say(f"You said: {step.argument(0, '')}", 3)
        elif step.word == "error":
            await self._say("The provider works again.", 1)
        elif step.word == "say":
            await self._say(text, chunks)
        elif step.word == "long":
            size = int(text) if text.isdecimal() else 30_000
            await self._say(long_text(size), max(chunks, size // 1000))
        elif step.word == "think":
            await self._say(text, chunks, name="reasoning_content")
        elif step.word == "slow":
            chunks = max(1, int(step.number("chunks", 20)))
            text = step.options.get("text") or " ".join(f"word{n}" for n in range(1, chunks + 1))
            await self._say(text, chunks, step.number("seconds", 5))
        elif step.word == "gate":
            await self._through_gate(step)
        elif step.word == "hang":
            for number in range(int(step.number("chunks", 0))):
                self._delta({"content": f"part {number + 1} "})
            await Deferred()

    async def _through_gate(self, step: Step) -> None:
        name = step.argument(0, "gate")
        text = step.options.get("text") or f"Before the gate {name}. After the gate {name}."
        middle = len(text) // 2
        await self._say(text[:middle], 2)
        await self._gate(name).when()
        await self._say(text[middle:], 2)

    async def _say(self, text: str, chunks: int, seconds: float = 0, name: str = "content") -> None:
        pieces = list(_pieces(text, chunks))
        for piece in pieces:
            self._delta({name: piece})
            await sleep(self._clock, seconds / len(pieces))

    def _call_tool(self, step: Step) -> None:
        call = {
            "index": 0,
            "id": f"call_{self._record.index}",
            "type": "function",
            "function": {
                "name": step.argument(0, "bash"),
                "arguments": json.dumps(step.tool_arguments()),
            },
        }
        self._delta({"tool_calls": [call]})
        self._finish("tool_calls")

    def _fail(self, step: Step) -> None:
        status = step.argument(0, "500")
        code = int(status) if status.isdecimal() and 400 <= int(status) <= 599 else 500
        body = {"error": {"message": f"scripted error {code}", "type": "scripted_error"}}
        if self._begun:
            self._event(body)
            self._record.state = "answered"
            return self._request.finish()
        self._request.setResponseCode(code)
        self._request.setHeader(b"content-type", b"application/json")
        self._request.write(json.dumps(body).encode())
        self._record.state = "answered"
        self._request.finish()

    def _delta(self, delta: dict[str, Any]) -> None:
        self._chunk([{"index": 0, "delta": delta, "finish_reason": None}])

    def _finish(self, reason: str) -> None:
        self._chunk([{"index": 0, "delta": {}, "finish_reason": reason}])
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        self._chunk([], usage=usage)
        self._request.write(b"data: [DONE]\n\n")
        self._record.state = "answered"
        self._request.finish()

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> None:
        self._event(
            {
                "id": f"scripted-{self._record.index}",
                "object": "chat.completion.chunk",
                "created": int(self._clock.seconds()),
                "model": "scripted",
                "choices": choices,
                **more,
            }
        )

    def _event(self, value: dict[str, Any]) -> None:
        if not self._begun:
            self._begun = True
            self._request.setHeader(b"content-type", b"text/event-stream")
            self._request.setHeader(b"cache-control", b"no-store")
        self._request.write(b"data: " + json.dumps(value).encode() + b"\n\n")


def _pieces(text: str, count: int) -> Iterator[str]:
    """Cut into at most C{count} pieces of nearly equal length."""
    size = max(1, -(-len(text) // count))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _pictures(content: object) -> int:
    """How many pictures a message has."""
    parts = content if isinstance(content, list) else []
    return sum(isinstance(part, dict) and part.get("type") == "image_url" for part in parts)


def _text(content: object) -> str:
    """The text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(
        part["text"]
        for part in content
        if isinstance(part, dict)
        and part.get("type") == "text"
        and isinstance(part.get("text"), str)
    )

"""The scripted model as a client sees it."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import treq
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.protocol import ProcessProtocol
from twisted.trial.unittest import TestCase

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.directives import long_text
from pitelegram.sandbox.model import ScriptedModel

TOOLS = [{"type": "function", "function": {"name": "bash"}}]


class ScriptedModelTests(TestCase):
    """L{ScriptedModel}."""

    timeout = 20

    def setUp(self) -> None:
        """A running model."""
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.model = ScriptedModel(self.reactor, self.reactor)
        self.model.startService()
        self.addCleanup(lambda: maybeDeferred(self.model.stopService))

    def request(self, method: str, path: str, **more: Any) -> Deferred[Any]:
        """A request with the right key."""
        headers = {"authorization": f"Bearer {self.model.key}", **more.pop("headers", {})}
        url = self.model.url.removesuffix("/v1") + path
        return treq.request(method, url, headers=headers, persistent=False, **more)

    def chat(self, *messages: Any, **body: Any) -> Deferred[Any]:
        """A completion request; a text is a user message."""
        full = [m if isinstance(m, dict) else {"role": "user", "content": m} for m in messages]
        record = {"stream": True, "messages": full, "tools": TOOLS, **body}
        return self.request("POST", "/v1/chat/completions", json=record)

    async def events(self, response: Any) -> list[dict[str, Any]]:
        """The server-sent events of an answer."""
        lines = (await treq.content(response)).decode().split("\n\n")
        data = [line.removeprefix("data: ") for line in lines if line]
        self.assertEqual(data[-1], "[DONE]")
        return [json.loads(line) for line in data[:-1]]

    async def said(self, *messages: Any) -> str:
        """The text of an answer."""
        events = await self.events(await self.chat(*messages))
        choices = [event["choices"][0] for event in events if event["choices"]]
        self.assertEqual(choices[-1]["finish_reason"], "stop")
        return "".join(choice["delta"].get("content", "") for choice in choices)

    @deferred
    async def test_echo(self) -> None:
        """A prompt without directives is echoed; parts of a message are joined."""
        self.assertEqual(await self.said("[telegram] hello"), "You said: hello")
        parts = [
            {"type": "text", "text": "a"},
            {"type": "image_url"},
            {"type": "text", "text": "b"},
        ]
        self.assertEqual(await self.said({"role": "user", "content": parts}), "You said: ab")

    @deferred
    async def test_last_message_counts(self) -> None:
        """Directives of earlier messages are not played again."""
        earlier = [{"role": "user", "content": "[[hang]]"}, {"role": "assistant", "content": "x"}]
        self.assertEqual(await self.said(*earlier, "[[say now]]"), "now")

    @deferred
    async def test_long(self) -> None:
        """A long answer comes in pieces and is exact."""
        events = await self.events(await self.chat("[[long 30000]]"))
        self.assertGreater(len(events), 20)
        self.assertEqual(await self.said("[[long 30000]]"), long_text(30_000))

    @deferred
    async def test_slow(self) -> None:
        """A slow answer is spread over its time."""
        begin = self.reactor.seconds()
        self.assertEqual(await self.said("[[slow seconds=0.3 chunks=3]]"), "word1 word2 word3")
        self.assertGreaterEqual(self.reactor.seconds() - begin, 0.29)

    @deferred
    async def test_tool(self) -> None:
        """A tool call ends the answer; the request with its result is answered by what follows."""
        script = "[[say go]][[tool bash 'echo hi']][[say done]]"
        events = await self.events(await self.chat(script))
        choices = [event["choices"][0] for event in events if event["choices"]]
        call = choices[-2]["delta"]["tool_calls"][0]["function"]
        self.assertEqual(json.loads(call["arguments"]), {"command": "echo hi"})
        self.assertEqual(choices[-1]["finish_reason"], "tool_calls")
        result = {"role": "tool", "content": "hi"}
        self.assertEqual(await self.said(script, {"role": "assistant"}, result), "done")
        bare = "[[tool bash 'echo hi']]"
        self.assertEqual(await self.said(bare, {"role": "assistant"}, result), "The tool said: hi")

    @deferred
    async def test_errors(self) -> None:
        """An error has its status; with C{times} the provider recovers."""
        for status in (400, 500):
            response = await self.chat(f"[[error {status}]]")
            self.assertEqual(response.code, status)
            self.assertIn("scripted error", (await treq.json_content(response))["error"]["message"])
        response = await self.chat("[[error 429 times=1]]")
        self.assertEqual(response.code, 429)
        await treq.content(response)
        self.assertEqual(await self.said("[[error 429 times=1]]"), "The provider works again.")

    @deferred
    async def test_gate(self) -> None:
        """An answer waits at its gate, here opened over HTTP; an opened gate stays open."""
        waiting = self.said("[[gate my-gate]]")
        answer = Deferred.fromCoroutine(waiting)
        record = await self.model.when_request(lambda request: "my-gate" in request.text)
        self.assertEqual(record.state, "answering")
        response = await self.request("POST", "/control/gate/my-gate")
        self.assertEqual(await treq.json_content(response), {"opened": True})
        text = "Before the gate my-gate. After the gate my-gate."
        self.assertEqual(await answer, text)
        self.assertEqual(record.state, "answered")
        self.assertEqual(await self.said("[[gate my-gate]]"), text)

    @deferred
    async def test_hang(self) -> None:
        """A hanging answer never ends by itself; when the client goes it is recorded as cut."""
        response = await self.chat("[[hang chunks=2]]")
        got: Deferred[bytes] = Deferred()
        treq.collect(response, lambda data: None if got.called else got.callback(data)).addErrback(
            lambda _: None
        )
        self.assertIn(b"part 1", await got)
        await self.model.stopService()
        self.assertEqual(self.model.requests[0].state, "cut")

    @deferred
    async def test_summary(self) -> None:
        """A request without tools is a compaction: directives of the conversation are not played."""
        events = await self.events(await self.chat("<conversation>[[hang]]", tools=None))
        self.assertIn("summary", events[0]["choices"][0]["delta"]["content"])

    @deferred
    async def test_summary_waits_at_its_gate(self) -> None:
        """A summary can be held up, so that Pi is found compacting."""
        self.model.summary_gate = "summary"
        asking = self.chat("<conversation>", tools=None)
        await self.model.when_request(lambda r: not r.tools)
        self.assertEqual(self.model.requests[0].state, "answering")
        self.model.open_gate("summary")
        events = await self.events(await asking)
        said = [c["delta"].get("content", "") for e in events for c in e["choices"]]
        self.assertEqual("".join(said), "A short summary of the conversation so far.")

    @deferred
    async def test_records(self) -> None:
        """Every request is recorded and can be waited for, before and after."""
        later = self.model.when_request(lambda request: request.text == "two")
        await self.said("one")
        await self.said("two")
        self.assertEqual((await later).index, 1)
        self.assertEqual((await self.model.when_request(lambda r: r.text == "one")).index, 0)
        response = await self.request("GET", "/control/requests")
        listed = await treq.json_content(response)
        self.assertEqual(
            [(entry["text"], entry["state"]) for entry in listed],
            [("one", "answered"), ("two", "answered")],
        )

    @deferred
    async def test_locked(self) -> None:
        """Without the key, with another, or with a foreign host nothing is answered."""
        for headers in (
            {"authorization": ""},
            {"authorization": "Bearer x"},
            {"host": "example.com"},
            {"host": "127.0.0.1.example.com"},
        ):
            for method, path in (
                ("GET", "/v1/models"),
                ("GET", "/control/requests"),
                ("POST", "/control/gate/x"),
                ("POST", "/v1/chat/completions"),
            ):
                response = await self.request(method, path, headers=headers)
                self.assertEqual(response.code, 401, (headers, path))
                await treq.content(response)
        self.assertEqual(self.model.requests, [])
        self.assertFalse(self.model.gate("x").fired)

    @deferred
    async def test_bad_requests(self) -> None:
        """What cannot be answered is refused; unknown paths are not there."""
        for body, status in (
            (b"x", 400),
            (b"[]", 400),
            (b"{}", 400),
            (b'{"messages":[]}', 400),
            (b'{"messages":[1],"stream":true}', 200),
        ):
            response = await self.request("POST", "/v1/chat/completions", data=body)
            self.assertEqual(response.code, status)
            await treq.content(response)
        for method in ("GET", "POST"):
            response = await self.request(method, "/v2")
            self.assertEqual(response.code, 404)
            await treq.content(response)
        response = await self.request("GET", "/v1/models")
        self.assertEqual((await treq.json_content(response))["data"][0]["id"], "scripted")

    def test_files_for_pi(self) -> None:
        """The files for Pi name this model as the default, readable by the owner only."""
        agent_dir = Path(self.mktemp()) / "agent"
        self.model.write_models_json(agent_dir, retry=False)
        models = agent_dir / "models.json"
        provider = json.loads(models.read_text())["providers"]["scripted"]
        self.assertEqual(
            (provider["baseUrl"], provider["apiKey"]), (self.model.url, self.model.key)
        )
        settings = json.loads((agent_dir / "settings.json").read_text())
        self.assertEqual(settings["defaultModel"], provider["models"][0]["id"])
        self.assertEqual(settings["retry"], {"enabled": False})
        self.assertEqual(models.stat().st_mode & 0o777, 0o600)


class _Alone(ProcessProtocol):
    """The model in a process of its own."""

    def __init__(self) -> None:
        self.line: Deferred[dict[str, Any]] = Deferred()
        self.ended: Deferred[Any] = Deferred()
        self._data = b""

    def outReceived(self, data: bytes) -> None:
        """Its first line."""
        self._data += data
        if self._data.endswith(b"\n"):
            self.line.callback(json.loads(self._data))

    def processEnded(self, reason: Any) -> None:
        """It ended."""
        self.ended.callback(reason.value)


class RunnableTests(TestCase):
    """C{python -m pitelegram.sandbox.model}."""

    timeout = 20

    @deferred
    async def test_alone(self) -> None:
        """It prints where it is, writes Pi's files, answers, and ends with SIGTERM."""
        from twisted.internet import reactor

        agent_dir, alone = Path(self.mktemp()).resolve(), _Alone()
        root = str(Path(__file__).resolve().parent.parent.parent)
        arguments = [
            sys.executable,
            "-m",
            "pitelegram.sandbox.model",
            "--agent-dir",
            str(agent_dir),
        ]
        process = reactor.spawnProcess(  # type: ignore[attr-defined]
            alone, sys.executable, arguments, env={**os.environ, "PYTHONPATH": root}
        )
        where = await alone.line
        headers = {"authorization": f"Bearer {where['key']}"}
        response = await treq.get(f"{where['url']}/models", headers=headers, persistent=False)
        self.assertEqual(response.code, 200)
        await treq.content(response)
        self.assertTrue((agent_dir / "models.json").exists())
        process.signalProcess(signal.SIGTERM)
        await alone.ended

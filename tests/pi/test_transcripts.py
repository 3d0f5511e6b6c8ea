"""Recorded runs of the real Pi, replayed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.pi.records import message_text
from pitelegram.pi.rpc import RpcPiHost
from pitelegram.testing.pirecorder import PiRecorder
from pitelegram.testing.spawner import FakeSpawner

TRANSCRIPTS = Path(__file__).parent / "transcripts"


TOLD = {
    "tool_execution_start": "tool_started",
    "tool_execution_update": "tool_updated",
    "tool_execution_end": "tool_ended",
}


def records(path: Path) -> list[Any]:
    """What Pi wrote in a recorded run."""
    entries = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    return [entry["r"] for entry in entries if entry.get("d") == "<"]


def whole(text: str) -> str:
    """Replace half characters that are alone."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def expected(run: list[Any]) -> dict[str, Any]:
    """What an observer must have heard, worked out the slow way."""
    heard: dict[str, Any] = {"user_message": [], "assistant_message": [], "text": ""}
    heard |= {"thoughts": "", "tools": [], "retrying": [], "retried": [], "compaction": []}
    heard |= {"settled": [], "run_started": [], "dialog_requested": 0}
    running = False
    for record in run:
        kind = record["type"]
        if kind == "message_end" and record["message"]["role"] in ("user", "assistant"):
            name = f"{record['message']['role']}_message"
            heard[name].append(whole(message_text(record["message"])))
        elif kind == "message_update":
            event = record["assistantMessageEvent"]
            heard["text"] += event["delta"] if event["type"] == "text_delta" else ""
            heard["thoughts"] += event["delta"] if event["type"] == "thinking_delta" else ""
        elif kind.startswith("tool_execution_"):
            heard["tools"].append((TOLD[kind], record["toolCallId"], record["toolName"]))
        elif kind == "auto_retry_start":
            heard["retrying"].append((record["attempt"], record["maxAttempts"]))
        elif kind == "auto_retry_end":
            heard["retried"].append(record["success"])
        elif kind in ("compaction_start", "compaction_end"):
            heard["compaction"].append((record["reason"], kind == "compaction_end"))
        elif kind == "agent_start" and not running:
            running = True
            heard["run_started"].append(None)
        elif kind == "agent_settled" and running:
            running = False
            heard["settled"].append(record["aborted"])
        elif kind == "extension_ui_request" and not record["method"].startswith("set"):
            heard["dialog_requested"] += 1
    heard["text"] = whole(heard["text"])
    return heard


class TranscriptTests(SynchronousTestCase):
    """Every recording means to an observer what it says."""

    def replay(self, run: list[Any], random: Random) -> tuple[RpcPiHost, PiRecorder]:
        """Feed a run in chunks of random sizes."""
        spawner, recorder = FakeSpawner(), PiRecorder()
        host = RpcPiHost([sys.executable], Path("/"), {}, spawner, Clock())
        host.subscribe(recorder)
        host.want(["tools", "thinking"])
        host.start().addErrback(lambda _: None)
        data = b"".join(json.dumps(r, separators=(",", ":")).encode() + b"\n" for r in run)
        while data:
            size = random.choice((1, 7, 100, 4096, 65536))
            spawner.processes[0].out(data[:size])
            data = data[size:]
        return host, recorder

    def check(self, path: Path) -> None:
        """Compare one recording with the slow way."""
        run = [record for record in records(path) if isinstance(record, dict)]
        wanted = expected(run)
        host, recorder = self.replay(run, Random(path.name))
        for name in ("user_message", "settled", "run_started"):
            self.assertEqual(recorder.all(name), wanted[name], (path.name, name))
        texts = [message["text"] for message in recorder.all("assistant_message")]
        self.assertEqual(texts, wanted["assistant_message"], path.name)
        self.assertEqual("".join(recorder.all("text_delta")), wanted["text"], path.name)
        self.assertEqual("".join(recorder.all("thinking_delta")), wanted["thoughts"], path.name)
        tools = [event[:3] for event in recorder.events if event[0] in TOLD.values()]
        self.assertEqual(tools, wanted["tools"], path.name)
        retries = [(retry.attempt, retry.of) for retry in recorder.all("retrying")]
        self.assertEqual(retries, wanted["retrying"], path.name)
        self.assertEqual(recorder.all("retried"), wanted["retried"], path.name)
        steps = [(step.reason, step.over) for step in recorder.all("compaction")]
        self.assertEqual(steps, wanted["compaction"], path.name)
        self.assertEqual(len(recorder.all("dialog_requested")), wanted["dialog_requested"])
        counts = host.counts
        self.assertEqual(counts["records"], len(run), path.name)
        odd = (counts["malformed"], counts["not_objects"], counts["oversized"])
        self.assertEqual(odd, (0, 0, 0), path.name)

    def test_recordings(self) -> None:
        """All recordings of the checkout, in chunks of any size."""
        paths = sorted(TRANSCRIPTS.glob("*.jsonl"))
        self.assertGreater(len(paths), 10)
        for path in paths:
            self.check(path)

    def test_what_they_hold(self) -> None:
        """Retries and compactions are told with their reasons and numbers, all kinds occur."""
        _, recorder = self.replay(records(TRANSCRIPTS / "02_retry_500.jsonl"), Random(1))
        retry = recorder.all("retrying")[0]
        self.assertIn("boom", retry.reason)
        self.assertEqual(retry.delay, 0.3)
        _, recorder = self.replay(records(TRANSCRIPTS / "02_compact_auto.jsonl"), Random(1))
        start, end = recorder.all("compaction")[:2]
        self.assertFalse(start.over)
        self.assertGreater(end.before, end.after)
        _, recorder = self.replay(records(TRANSCRIPTS / "01_thinking.jsonl"), Random(1))
        self.assertTrue(recorder.all("thinking_delta"))
        _, recorder = self.replay(records(TRANSCRIPTS / "01_tool_bash.jsonl"), Random(1))
        self.assertTrue(recorder.all("tool_ended"))

    def test_state_after_a_run(self) -> None:
        """After a recorded run with a queue the state is that of an idle Pi."""
        host, recorder = self.replay(records(TRANSCRIPTS / "01_steer_busy.jsonl"), Random(1))
        self.assertFalse(host.state["isStreaming"])
        self.assertEqual(host.state["pendingMessageCount"], 0)
        lengths = [state["pendingMessageCount"] for state in recorder.all("state_changed")]
        self.assertGreaterEqual(max(lengths), 2)

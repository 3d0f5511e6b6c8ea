"""Ten thousand records from a Pi that has lost its mind."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase

from pitelegram.errors import PiGone, PiRefused, PiTelegramError
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.pi.child import PiChild
from pitelegram.pi.rpc import RpcPiHost
from pitelegram.pi.splitter import LINE_LIMIT, LineSplitter
from pitelegram.testing.pirecorder import PiRecorder
from pitelegram.testing.spawner import FakeSpawner
from tests.pi.test_rpc import STATE, NoProcesses
from tests.pi.test_transcripts import TRANSCRIPTS, records

RECORDS = 10_000
SEED = 20_261_130

RUBBISH: list[bytes] = [
    *(b"null", b"true", b"42", b'"text"', b"[]", b"{}", b"", b" ", b"\r", b"{", b"}", b"\xff\xfe"),
    *(b'{"type":null}', b'{"type":7}', b'{"type":[]}', b'{"type":"response"}', b'{"type":"x"}'),
    b'{"type":"response","id":7,"success":true}',
    b'{"type":"response","id":"foreign","success":"yes","data":[]}',
    b'{"type":"queue_update","steering":"no","followUp":[1,null,{}]}',
    b'{"type":"message_update","assistantMessageEvent":null}',
    b'{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":7}}',
    b'{"type":"message_end","message":[]}',
    b'{"type":"message_end","message":{"role":"assistant","content":"x"}}',
    b'{"type":"extension_ui_request"}',
    b'{"type":"extension_ui_request","id":[],"method":{}}',
    b'{"type":"extension_ui_request","id":"d","method":"select","options":7}',
    b'{"type":"agent_settled","aborted":"maybe"}',
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"type":"agent_end","messages":"' + b"x" * 200_000 + b'"}',
    b'{"type":"response","id":"\\ud800","success":true}',
    b'{"type":"agent_start","type":"agent_settled"}',
    b'{"n":' + b"9" * 5000 + b"}",
    b'{"n":NaN}',
    b'{"type":"tool_execution_start","toolCallId":[],"toolName":{},"args":7}',
    b'{"type":"tool_execution_start","toolCallId":"c","toolName":"t","args":' + b'{"a":[' * 1500,
    b'{"type":"tool_execution_update","toolCallId":"c","partialResult":{"content":[7,{"text":[]}]}}',
    b'{"type":"tool_execution_end","toolCallId":"c","result":"' + b"\\u00e9" * 100_000,
    b'{"type":"tool_execution_end","isError":true}',
    b'{"type":"tool_execution_nonsense","toolCallId":"c","toolName":"t"}',
    b'{"type":"message_update","assistantMessageEvent":{"type":"thinking_delta","delta":7}}',
    b'{"type":"message_update","assistantMessageEvent":{"type":"thinking_delta","delta":"\\ud83d"}}',
    b'{"type":"auto_retry_start","attempt":"x","maxAttempts":-1,"delayMs":1e400,"errorMessage":[]}',
    b'{"type":"compaction_end","reason":7,"result":[],"aborted":"no","errorMessage":{}}',
]


def recorded() -> list[bytes]:
    """Return the lines that a real Pi wrote."""
    found = []
    for path in sorted(TRANSCRIPTS.glob("*.jsonl")):
        found += [json.dumps(record).encode() for record in records(path)]
    return found


class Madness:
    """Makes lines out of right ones.

    @param random: what is done to which.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._lines = recorded()

    def line(self) -> bytes:
        """The next line, its LF included."""
        random = self._random
        line = random.choice(self._lines) if random.random() < 0.8 else random.choice(RUBBISH)
        for _ in range(random.choice((0, 0, 1, 1, 2, 5))):
            line = self._mutated(line)
        return line + random.choice((b"\n", b"\n", b"\n", b"\r\n"))

    def _mutated(self, line: bytes) -> bytes:
        random = self._random
        at = random.randrange(len(line) + 1)
        to = min(len(line), at + random.randrange(8))
        kind = random.randrange(6)
        if kind == 0:
            return line[:at]
        if kind == 1:
            return line[:at] + line[to:]
        if kind == 2:
            return line[:at] + bytes(random.randrange(256) for _ in range(3)) + line[to:]
        if kind == 3:
            return line[:to] + line[at:]
        if kind == 4:
            old, new = random.choice(((b"true", b"null"), (b'":"', b'":['), (b"type", b"tipe")))
            return line.replace(old, new, 1)
        return line.replace(b'"id":"', b'"id":"x', 1)


class RecordTests(SynchronousTestCase):
    """A host that is fed with them in random pieces."""

    def make(self) -> Any:
        """A started host and its process."""
        spawner = FakeSpawner()
        self.clock, self.recorder = Clock(), PiRecorder()
        host = RpcPiHost(
            [sys.executable], Path("/"), {}, spawner, self.clock, processes=NoProcesses()
        )
        host.subscribe(self.recorder)
        host.want(["tools", "thinking"])
        starting = host.start()
        process = spawner.processes[-1]
        self.answer(process, "get_state", STATE)
        self.successResultOf(starting)
        return host, process

    def answer(self, process: Any, command: str, data: dict[str, Any]) -> None:
        """Answer the last command."""
        asked = json.loads(process.written.splitlines()[-1])
        self.assertEqual(asked["type"], command)
        response = {"type": "response", "id": asked["id"], "command": command}
        line = json.dumps({**response, "success": True, "data": data}).encode()
        process.out(line + b"\n")

    def test_mutated(self) -> None:
        """No crash, no undeclared error; every question is answered or fails, once."""
        random = Random(SEED)
        madness = Madness(random)
        host, process = self.make()
        outcomes: list[Any] = []
        asked = heard = 0
        counts = []
        for number in range(RECORDS):
            if number % 100 == 0:
                question: Deferred[Any] = host.get_state()
                asked += 1
                question.addBoth(outcomes.append)
            data = madness.line()
            while data:
                cut = random.randrange(1, len(data) + 1) if random.random() < 0.3 else len(data)
                process.out(data[:cut])
                data = data[cut:]
            if number % 1000 == 999:
                self.clock.advance(31)  # what was not answered is over
                heard += len(self.recorder.events)
                self.recorder.events.clear()
                gc.collect()
                counts.append(len(gc.get_objects()))
        process.out(b"\n")
        self.clock.advance(31)
        self.assertEqual(len(outcomes), asked)
        self.assertGreater(heard, RECORDS // 20)  # some of it was sense
        for outcome in outcomes:
            error = getattr(outcome, "value", None)
            self.assertTrue(error is None or isinstance(error, PiTelegramError), outcome)
        self.assertLess(counts[-1], counts[1] * 1.2 + 1000, counts)
        self.assertEqual(self.flushLoggedErrors(), [])
        again = host.get_state()
        self.answer(process, "get_state", STATE)
        self.assertEqual(self.successResultOf(again)["sessionId"], "s-1")

    def test_end_in_the_middle(self) -> None:
        """What was asked fails when Pi ends in the middle of a line; later questions too."""
        host, process = self.make()
        asking = host.get_state()
        process.out(b'{"type":"response","id":')
        process.exit(1)
        self.failureResultOf(asking, PiGone, PiRefused)
        self.failureResultOf(host.get_state(), PiGone, PiRefused)


class Counting(ProcessProtocol):
    """Splits what a child writes.

    @ivar lines: the lengths of the lines that came.
    @ivar most: most bytes that were kept at a time.
    """

    def __init__(self) -> None:
        self.splitter = LineSplitter()
        self.lines: list[int] = []
        self.most = 0
        self.done: Deferred[None] = Deferred()

    def outReceived(self, data: bytes) -> None:
        """Split it."""
        self.lines += [len(line) for line in self.splitter.feed(data)]
        self.most = max(self.most, self.splitter.pending)

    def processEnded(self, reason: Any) -> None:
        """All of it came."""
        self.done.callback(None)


WRITER = """
import sys
piece = b"x" * (1 << 20)
for _ in range(100):
    sys.stdout.buffer.write(piece)
sys.stdout.buffer.write(b"\\n{}\\n")
"""


class LongLineTests(TestCase):
    """A line without an end, through a real pipe."""

    timeout = 60

    @deferred
    async def test_hundred_megabytes(self) -> None:
        """It is cut off at the cap and counted; the next line is read."""
        from twisted.internet import reactor

        counting = Counting()
        command = [sys.executable, "-c", WRITER]
        reactor.spawnProcess(counting, sys.executable, command, env=None)  # type: ignore[attr-defined]
        await counting.done
        self.assertEqual(counting.lines, [2])
        self.assertEqual(counting.splitter.oversized, 1)
        self.assertLessEqual(counting.most, LINE_LIMIT + (1 << 20))
        self.assertEqual(counting.splitter.pending, 0)


CLOSER = """
import os, sys, time
os.close(0)
print("closed", flush=True)
time.sleep(60)
"""


class DeadInputTests(TestCase):
    """Writing to a child that does not read any more, through a real pipe."""

    timeout = 30

    @deferred
    async def write_until_refused(self, program: str, until: bytes) -> PiChild:
        """Write and write; the error that comes is ours, and nothing else happens."""
        from twisted.internet import reactor

        clock: Any = reactor
        output: list[bytes] = []
        child = PiChild(clock, output.append, str)
        command = [sys.executable, "-c", program]
        clock.spawnProcess(child, sys.executable, command, env=None)
        while until not in b"".join(output) or (not until and not child.exited.fired):
            await sleep(clock, 0.01)
        with self.assertRaises(PiGone):
            for _ in range(1000):
                child.write(b"x" * 1000 + b"\n")
                await sleep(clock, 0.001)
        self.assertEqual(self.flushLoggedErrors(), [])
        return child

    @deferred
    async def test_closed(self) -> None:
        """The child lives, its input is closed: EPIPE."""
        child = await self.write_until_refused(CLOSER, b"closed")
        self.assertFalse(child.exited.fired)
        child.signal(9)
        await child.ended.when()

    @deferred
    async def test_gone(self) -> None:
        """The child is gone."""
        child = await self.write_until_refused("", b"")
        self.assertEqual(await child.ended.when(), "exit code 0")

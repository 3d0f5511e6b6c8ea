"""Control commands whose daemon is killed, and many at once."""

from __future__ import annotations

import json
import signal
import socket
from typing import Any

from twisted.internet.defer import gatherResults
from twisted.internet.threads import deferToThread

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


class Receipts(SystemCase):
    """One request id, one effect."""

    def request(self, text: str, request_id: str = "r1") -> bytes:
        """A prompt for worker alpha, as it goes over the control socket."""
        value = {
            "schema_version": 1,
            "action": "worker.prompt",
            "request_id": request_id,
            "target": {"name": "alpha"},
            "args": {"text": text},
        }
        body = json.dumps(value).encode()
        head = (
            "POST /v1/commands HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body

    def post(self, request: bytes) -> bytes:
        """Send it and return the whole answer; empty when the daemon ended first."""
        owners = json.loads((self.system.agent_dir / "tmp/telegram/owners.json").read_text())
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(90)
        connection.connect(owners["default"]["controlSocketPath"])
        connection.sendall(request)
        answer = b""
        try:
            while data := connection.recv(65536):
                answer += data
        except ConnectionError:
            pass
        connection.close()
        return answer.partition(b"\r\n\r\n")[2]

    @deferred
    async def send(self, text: str, request_id: str = "r1") -> bytes:
        """Send a prompt in a thread of its own."""
        answer = await deferToThread(self.post, self.request(text, request_id))
        assert isinstance(answer, bytes)
        return answer

    def state(self, request_id: str = "r1") -> list[Any]:
        """The stored states of a request."""
        return self.rows("SELECT state FROM commands WHERE request_id = ?", request_id)

    @deferred
    async def test_twenty_at_once(self) -> None:
        """Twenty identical requests: one effect, twenty equal envelopes."""
        (thread,) = await self.start("alpha")
        answers = await gatherResults([self.send("said by twenty") for _ in range(20)])
        self.assertEqual(len(set(answers)), 1)
        self.assertEqual(json.loads(answers[0])["disposition"], "terminal_accepted")
        await self.system.answer("You said: said by twenty", thread)
        self.prompted_once("said by twenty")
        again = await self.send("said by twenty")
        self.assertEqual(again, answers[0])
        other = json.loads(await self.send("something else"))
        self.assertEqual(other["status"], "duplicate_request")
        self.prompted_once("said by twenty")

    @deferred
    async def test_killed_after_the_start_was_stored(self) -> None:
        """The worker that was told, and was not heard, is asked; the command is done once."""
        (thread,) = await self.start("alpha")
        (worker,) = self.system.workers()
        worker.suspend()
        asking = self.send("told to a suspended worker")
        await self.system.until(lambda: self.state() == ["send_started"], "the stored start")
        assert self.system.daemon is not None
        await self.system.daemon.kill(signal.SIGKILL)
        self.assertEqual(await asking, b"")
        worker.resume()
        await self.system.start_daemon()
        await self.system.until(lambda: self.state() == ["accepted"], "the settled receipt")
        answer = json.loads(await self.send("told to a suspended worker"))
        self.assertEqual(answer["disposition"], "terminal_accepted")
        await self.system.answer("You said: told to a suspended worker", thread)
        self.prompted_once("told to a suspended worker")

    @deferred
    async def test_killed_with_its_worker(self) -> None:
        """The successor of a worker that died untold is asked: the command is done once."""
        (thread,) = await self.start("alpha")
        (worker,) = self.system.workers()
        worker.suspend()
        asking = self.send("told to a dying worker")
        await self.system.until(lambda: self.state() == ["send_started"], "the stored start")
        assert self.system.daemon is not None
        await self.system.daemon.kill(signal.SIGKILL)
        await asking
        worker.kill()
        await self.system.start_daemon()
        await self.system.until(lambda: self.state() == ["accepted"], "the settled receipt")
        await self.system.answer("You said: told to a dying worker", thread)
        self.prompted_once("told to a dying worker")
        answer = json.loads(await self.send("told to a dying worker"))
        self.assertEqual(answer["disposition"], "terminal_accepted")
        self.prompted_once("told to a dying worker")

"""The queue beside the real Pi: aborts, steering and pictures."""

from __future__ import annotations

import os
import signal
import struct
import zlib
from pathlib import Path
from typing import Any

from twisted.internet.task import deferLater

from pitelegram.bridge import labels
from pitelegram.kernel.deferring import deferred
from pitelegram.testing.realpi import RealPiCase
from pitelegram.testing.worker import CHAT, WorkerRig


def wide_png(path: Path, width: int = 2600, height: int = 4) -> None:
    """Write a picture that Pi has to make smaller."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x7f" * width) * height)
    whole = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + whole)


class RealQueueTests(RealPiCase):
    """A whole worker in this process, with the real Pi."""

    @deferred
    async def setUp(self) -> None:
        """Start it."""
        RealPiCase.setUp(self)
        self.rig = WorkerRig(self.base / "rig", self.reactor, self.agent_dir)
        self.rig.start(self.make_host(directory=self.rig.project))
        await self.rig.started

    @deferred
    async def tearDown(self) -> None:
        """End the worker's timers with its Pi."""
        await self.rig.end()
        await RealPiCase.tearDown(self)

    async def until(self, condition: Any) -> None:
        """Wait for a condition."""
        while not condition():
            await deferLater(self.reactor, 0.02)

    async def running(self) -> None:
        """Let a run wait at a gate."""
        self.rig.message("[[gate a]]", 1)
        await self.until(lambda: (self.rig.host.state or {}).get("isStreaming"))

    def steer(self, text: str) -> None:
        """A steering message of the control socket."""
        self.rig.parts.follower.control("r", {"type": "steer", "message": text})

    @deferred
    async def test_abort_of_a_pi_that_hangs(self) -> None:
        """The operator hears within a second; when Pi is back the abort is done and told."""
        rig = self.rig
        await self.running()
        rig.message("next", 2)
        os.kill(rig.host.pid, signal.SIGSTOP)
        try:
            before = self.reactor.seconds()
            rig.message("/abort", 3)
            await self.until(lambda: rig.link.texts)
            self.assertLess(self.reactor.seconds() - before, 1.0)
            self.assertEqual(rig.link.texts, [labels.ABORT_IS_LATE])
        finally:
            os.kill(rig.host.pid, signal.SIGCONT)
        await self.until(lambda: "You said: next" in rig.link.texts)
        await self.until(lambda: "Aborted current turn." in rig.link.texts)
        self.assertEqual(rig.states(), {"settled": 3})

    @deferred
    async def test_steering_that_is_given_back(self) -> None:
        """After an abort it has its turn before the normal ones, once."""
        rig = self.rig
        await self.running()
        rig.message("normal", 2)
        self.steer("sooner")
        await self.until(lambda: rig.parts.queue.in_pi().steering)
        self.assertEqual(rig.parts.queue.in_pi().steering, ("sooner",))
        rig.message("/abort", 3)
        await self.until(lambda: "You said: normal" in rig.link.texts)
        said = [text for text in rig.link.texts if text.startswith("You said")]
        self.assertEqual(said, ["You said: sooner", "You said: normal"])
        self.assertNotIn("handed", rig.states())

    @deferred
    async def test_next_and_continue(self) -> None:
        """C{/continue} runs before what waits; C{/next} ends the run and exactly one goes on."""
        rig = self.rig
        await self.running()
        rig.message("[[gate b]]", 2)
        rig.message("/continue", 3)
        rig.message("/next", 4)
        await self.until(lambda: "You said: continue" in "".join(rig.link.texts))
        await self.until(lambda: rig.states() == {"settled": 3, "handed": 1})
        self.assertIn("Aborted current turn. Dispatching next queued turn.", rig.link.texts)
        self.open_gate(rig.host, "b")
        await self.until(lambda: rig.states() == {"settled": 4})
        self.assertIn("After the gate b.", rig.link.texts[-1])

    @deferred
    async def test_picture_that_pi_makes_smaller(self) -> None:
        """Pi writes a note behind the text; the prompt is known by it, and settles."""
        rig = self.rig
        picture = self.base / "wide.png"
        wide_png(picture)
        await rig.inbox.admit("p", "telegram", "message", b"{}", None, None, CHAT, None, 1)
        (row,) = rig.inbox.rows("admitted")
        await rig.inbox.hold(
            row.seq, "look", {"images": [{"path": str(picture), "mime": "image/png"}]}
        )
        rig.parts.queue.kick(new=True)
        await self.until(lambda: rig.states() == {"settled": 1})
        session = Path(rig.host.state["sessionFile"]).read_text()
        self.assertIn("[Image", session)
        self.assertIn('"type":"image"', session)

"""The control port, whoever provides it."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.trial.unittest import SynchronousTestCase, TestCase

from pitelegram.bus.follower import BusClient
from pitelegram.bus.leader import BusServer
from pitelegram.daemon.workerport import BusPort
from pitelegram.errors import PiCancelled, Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.testing.bus import (
    CREDENTIAL,
    SECRET,
    FakeBusFollower,
    FakeBusLeader,
    FixedCredentials,
    FixedEndpoint,
)
from pitelegram.testing.contracts_port import PortContract
from pitelegram.testing.controlport import FakePort
from pitelegram.testing.realpi import RealPiCase
from pitelegram.testing.worker import WorkerRig
from pitelegram.worker.control import Control


def write_session(rig: WorkerRig) -> str:
    """Make a session of the rig's project; its file."""
    path = rig.paths.pi_sessions / "other.jsonl"
    path.parent.mkdir(exist_ok=True, parents=True)
    header = {"type": "session", "version": 3, "id": "other", "cwd": str(rig.project)}
    path.write_text(json.dumps(header) + "\n")
    return str(path)


class FakePortTests(PortContract, TestCase):
    """The fake of the tests."""

    async def make_port(self) -> FakePort:
        """See L{PortContract}."""
        self.port = FakePort()
        self.port.sessions.add("/sessions/other.jsonl")
        return self.port

    def a_session(self) -> str:
        """See L{PortContract}."""
        return "/sessions/other.jsonl"

    async def an_entry(self) -> str:
        """See L{PortContract}."""
        return "e1"

    def ask(self) -> str:
        """See L{PortContract}."""
        self.port.dialogs["d1"] = "confirm"
        return "d1"

    def refuse_next(self, kind: str) -> None:
        """See L{PortContract}."""
        self.port.fails[kind] = Refusal("cancelled", "an extension said no")


class RigCase(PortContract):
    """A whole worker with a fake Pi."""

    timeout = 30

    def start_rig(self) -> None:
        """Start the worker, and let it have a turn."""
        self.rig = WorkerRig(Path(self.mktemp()).resolve())
        self.rig.start()
        self.rig.message("the first turn")
        self.rig.run(1)

    def a_session(self) -> str:
        """See L{PortContract}."""
        return write_session(self.rig)

    async def an_entry(self) -> str:
        """See L{PortContract}."""
        return "0123abcd"

    def ask(self) -> str:
        """See L{PortContract}."""
        self.rig.host.ask({"id": "d1", "method": "confirm", "title": "Sure?"})
        self.rig.run()
        return "d1"

    def refuse_next(self, kind: str) -> None:
        """See L{PortContract}."""
        self.rig.host.results[kind] = PiCancelled("an extension said no")


class HostPortTests(RigCase, TestCase):
    """The worker's own, beside the fake Pi."""

    async def make_port(self) -> Any:
        """See L{PortContract}."""
        self.start_rig()
        return self.rig.parts.port

    def done(self, work: Deferred[Any]) -> Any:
        """See L{PortContract}."""
        for _ in range(100):
            if work.called:
                break
            self.rig.run()
        return work


class BusPortTests(RigCase, TestCase):
    """The daemon's, over a real socket, to a whole worker with the fake Pi."""

    over_bus = True

    def setUp(self) -> None:
        """Listen; connect the worker's side."""
        from twisted.internet import reactor

        self.start_rig()
        directory = tempfile.mkdtemp(prefix="bus-")
        path = Path(directory) / "bus.sock"
        self.leader, self.worker = FakeBusLeader(), Worker(self.rig)
        self.server = BusServer(
            path=path,
            credentials=FixedCredentials(),
            leader=self.leader,
            reactor=reactor,
            clock=reactor,
            random_bytes=os.urandom,
            build="test",
        )
        self.client = BusClient(
            endpoint=FixedEndpoint((str(path), SECRET)),
            credential=CREDENTIAL,
            follower=self.worker,
            reactor=reactor,
            clock=reactor,
            random=Random(1),
            random_bytes=os.urandom,
            build="test",
        )
        self.server.startService()
        self.client.startService()

    @deferred
    async def tearDown(self) -> None:
        """Disconnect, then stop listening."""
        await self.client.stopService()
        await self.server.stopService()

    async def make_port(self) -> BusPort:
        """See L{PortContract}."""
        await self.worker.here
        return BusPort(lambda: self.leader.links[-1])

    @deferred
    async def test_nobody(self) -> None:
        """Without a connection nothing is sent, and that is said."""
        await self.worker.here

        def nobody() -> Any:
            raise Refusal("backend-unavailable", "the worker is not connected now")

        self.assertEqual(await self.code(BusPort(nobody).abort("a")), "backend-unavailable")


class Worker(FakeBusFollower):
    """The worker's side of the connection: control goes to the rig's port.

    @ivar here: fires once it is registered.
    """

    def __init__(self, rig: WorkerRig) -> None:
        super().__init__()
        self.rig = rig
        self.here: Deferred[None] = Deferred()
        self._control = Control(rig.parts.port)

    def registered(self, link: Any, registration: dict[str, Any]) -> Deferred[None]:
        """Tell the test, once the link is in use."""
        from twisted.internet import reactor

        reactor.callLater(0, self.here.callback, None)  # type: ignore[attr-defined]
        return super().registered(link, registration)

    def control(self, request_id: str, command: dict[str, Any]) -> Deferred[Any]:
        """Do it, while the rig's time passes."""
        work = self._control.execute(request_id, command)
        for _ in range(100):
            if not work.called:
                self.rig.run()
        return work


class AllowListTests(SynchronousTestCase):
    """What the wire takes."""

    def test_exactly_the_contract(self) -> None:
        """Eleven types, no more; whatever else is said, C{bash} first of all, is refused."""
        rig = WorkerRig(Path(self.mktemp()).resolve())
        rig.start()
        control = Control(rig.parts.port)
        self.assertEqual(
            control.types,
            {"prompt", "steer", "abort", "clear_queue", "compact", "set_model"}
            | {"set_thinking_level", "new_session", "switch_session", "answer", "get_state"},
        )
        commands: list[Any] = [
            *("bash", "abort_bash", "follow_up", "set_session_name", "cycle_model", "export_html"),
            *("set_auto_compaction", "set_auto_retry", "set_steering_mode", "set_follow_up_mode"),
            *(
                "cycle_thinking_level",
                "get_messages",
                "get_commands",
                "",
                "Prompt",
                None,
                7,
                ["abort"],
            ),
        ]
        for kind in commands:
            failure = self.failureResultOf(control.execute("r", {"type": kind, "command": "id"}))
            self.assertEqual(failure.value.code, "invalid-command", kind)  # type: ignore[attr-defined]
        for kind in ("fork", "clone"):
            failure = self.failureResultOf(control.execute("r", {"type": kind, "entryId": "e"}))
            self.assertEqual(failure.value.code, "unsupported")  # type: ignore[attr-defined]
        self.assertEqual(rig.host.commands, [])


EXTENSION = """
let refusing = false;
export default function (pi) {
  pi.on("session_before_switch", async () => (refusing ? { cancel: true } : undefined));
  pi.registerCommand("refuse", { handler: async () => { refusing = true; } });
}
"""


class RealPiPortTests(RealPiCase, PortContract):
    """The worker's own, beside the real Pi; a request stands in for an extension that asks."""

    async def make_port(self) -> Any:
        """See L{PortContract}."""
        extension = self.base / "refusing.ts"
        extension.write_text(EXTENSION)
        self.rig = WorkerRig(self.base / "rig", self.reactor, self.agent_dir)
        host = self.make_host(directory=self.rig.project, extra_args=["-e", str(extension)])
        self.rig.start(host)
        await self.rig.started
        await self.rig.parts.port.prompt("first", "the first turn")
        await self.until(lambda: self.rig.inbox.rows("settled"))
        return self.rig.parts.port

    @deferred
    async def tearDown(self) -> None:
        """End the worker's timers with its Pi."""
        await self.rig.end()
        await RealPiCase.tearDown(self)

    async def until(self, condition: Any) -> None:
        """Wait for a condition."""
        while not condition():
            await deferLater(self.reactor, 0.02)

    def a_session(self) -> str:
        """See L{PortContract}."""
        return write_session(self.rig)

    async def an_entry(self) -> str:
        """See L{PortContract}."""
        found = await self.rig.host.command("get_fork_messages")
        return str(found["messages"][0]["entryId"])

    def ask(self) -> str:
        """See L{PortContract}."""
        self.rig.parts.dialogs.requested({"id": "d1", "method": "confirm", "title": "Sure?"})
        return "d1"

    def refuse_next(self, kind: str) -> None:
        """See L{PortContract}; an extension's command is run by Pi before what follows it."""
        self.rig.host.prompt("refuse", "/refuse", "normal").addErrback(lambda _: None)

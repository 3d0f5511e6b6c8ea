"""The RPC host over a process in memory."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import LaunchFailed, PiGone, PiRefused
from pitelegram.ids import ProcessBirth
from pitelegram.pi.prompting import PROMPT_SECONDS
from pitelegram.pi.rpc import START_SECONDS, RpcPiHost
from pitelegram.testing.pirecorder import PiRecorder
from pitelegram.testing.spawner import FakeProcess, FakeSpawner

STATE = {"sessionId": "s-1", "isStreaming": False, "isCompacting": False, "pendingMessageCount": 0}


class NoProcesses:
    """An empty process table."""

    def descendants(self, pid: int) -> list[Any]:
        """None."""
        return []

    def marked(self, mark: str) -> list[Any]:
        """None."""
        return []

    def signal(self, process: Any, number: int) -> bool:
        """Nothing to signal."""
        return False

    def alive(self, process: Any) -> bool:
        """Nothing lives."""
        return False


class OneTool(NoProcesses):
    """A tool that has lost its parent by the time that Pi is stopped.

    @ivar sent: signals.
    """

    def __init__(self) -> None:
        self.tool = ProcessBirth(77, "77:start")
        self.below = [self.tool]
        self.sent: list[int] = []

    def descendants(self, pid: int) -> list[Any]:
        """The tool, while it is below Pi."""
        return self.below

    def signal(self, process: Any, number: int) -> bool:
        """It ends by the first signal."""
        self.sent.append(process.pid)
        return True

    def alive(self, process: Any) -> bool:
        """Until it is signalled."""
        return process.pid not in self.sent


class RpcPiHostTests(SynchronousTestCase):
    """L{RpcPiHost}."""

    def setUp(self) -> None:
        """A host that is not started."""
        self.clock = Clock()
        self.spawner = FakeSpawner()
        self.recorder = PiRecorder()
        self.host = self.make()

    def make(self, **options: Any) -> RpcPiHost:
        """A host with the recorder."""
        host = RpcPiHost(
            options.pop("command", [sys.executable]),
            options.pop("directory", Path("/")),
            {"A": "b"},
            self.spawner,
            self.clock,
            redact=lambda text: text.replace("secret", "…"),
            processes=options.pop("processes", NoProcesses()),
            **options,
        )
        host.subscribe(self.recorder)
        return host

    @property
    def process(self) -> FakeProcess:
        """The last process that was made."""
        return self.spawner.processes[-1]

    def sent(self) -> list[dict[str, Any]]:
        """What was written to Pi so far."""
        return [json.loads(line) for line in self.process.written.splitlines()]

    def pi(self, *records: dict[str, Any]) -> None:
        """Pi writes records."""
        for record in records:
            self.process.out(json.dumps(record, separators=(",", ":")).encode() + b"\n")

    def respond(self, request: dict[str, Any], **members: Any) -> None:
        """Pi answers a request."""
        record = {"id": request["id"], "type": "response", "command": request["type"]}
        self.pi({**record, "success": True, **members})

    def start(self) -> None:
        """Start the host."""
        started = self.host.start()
        self.respond(self.sent()[0], data=STATE)
        self.assertEqual(self.successResultOf(started)["sessionId"], "s-1")

    def ask(self, **request: Any) -> None:
        """An extension asks."""
        self.pi({"type": "extension_ui_request", **request})

    def test_spawn(self) -> None:
        """The lock is inherited as descriptor 3; the environment is exactly the given one."""
        self.host = self.make(name="parser", lock_fd=17)
        self.start()
        self.assertEqual(self.process.options["env"], {"A": "b"})
        self.assertEqual(self.process.options["childFDs"], {0: "w", 1: "r", 2: "r", 3: 17})
        self.assertIsNone(self.process.options["path"])
        self.assertEqual(self.process.arguments[-2:], ["-n", "parser"])
        self.assertEqual(self.host.pid, self.process.pid)

    def test_missing_program(self) -> None:
        """A missing program is a permanent failure without a process."""
        host = self.make(command=["no-such-pi"])
        self.assertTrue(self.failureResultOf(host.start(), LaunchFailed).value.permanent)
        self.assertEqual(self.spawner.processes, [])
        self.assertEqual(self.successResultOf(host.stop(10)), "never started")
        self.failureResultOf(host.prompt("p", "x", "normal"), PiGone)

    def test_spawn_raises(self) -> None:
        """An error of the system call is a failed launch, not an exception."""
        self.spawner.error = OSError(errno.EAGAIN, "Resource temporarily unavailable")
        error = self.failureResultOf(self.host.start(), LaunchFailed).value
        self.assertFalse(error.permanent)
        self.assertIn("temporarily", str(error))

    def test_refused_arguments(self) -> None:
        """An exit before the first answer says what Pi said, without secrets; observers hear nothing."""
        started = self.host.start()
        self.process.err(b"Error: Unknown option: --secret\n")
        self.process.exit(1)
        error = self.failureResultOf(started, LaunchFailed).value
        self.assertTrue(error.permanent)
        self.assertEqual(str(error), "Pi refuses to start: Error: Unknown option: --…")
        self.assertEqual(self.recorder.all("ended"), [])
        self.failureResultOf(self.host.get_state(), PiGone)

    def test_silent_start(self) -> None:
        """A Pi without an answer for 30 s is killed, and only then the start has failed."""
        started = self.host.start()
        self.clock.advance(START_SECONDS + 0.1)
        self.assertNoResult(started)
        self.assertEqual(self.process.signals, [9])
        self.process.exit(None, 9)
        error = self.failureResultOf(started, LaunchFailed).value
        self.assertFalse(error.permanent)
        self.assertIn("30 s", str(error))

    def test_odd_state(self) -> None:
        """A program that answers something else than a state is no Pi."""
        for data in ([], {}, {"sessionId": 5}):
            self.host = self.make()
            started = self.host.start()
            self.respond(self.sent()[0], data=data)
            self.assertEqual(self.process.signals, [9])
            self.process.exit(None, 9)
            self.failureResultOf(started, LaunchFailed)

    def test_stopped_while_starting(self) -> None:
        """A stop during the start ends Pi, and the start fails."""
        started, stopped = self.host.start(), self.host.stop(4)
        self.clock.pump([0.1] * 11)
        self.assertTrue(self.process.stdin_closed)
        self.process.exit(0)
        self.clock.pump([0.1] * 20)
        self.failureResultOf(started, LaunchFailed)
        self.assertEqual(self.successResultOf(stopped), "exit code 0")

    def test_before_the_start(self) -> None:
        """Nothing is taken before Pi is there."""
        self.failureResultOf(self.host.prompt("p", "x", "normal"), PiRefused)
        self.failureResultOf(self.host.abort(), PiRefused)
        self.assertEqual(self.successResultOf(self.host.stop(1)), "never started")

    def test_one_prompt_in_flight(self) -> None:
        """The second prompt is written only after the first one's response."""
        self.start()
        first = self.host.prompt("p1", "one", "normal")
        second = self.host.prompt("p2", "two", "priority")
        self.assertEqual([r["id"] for r in self.sent()[1:]], ["p1"])
        self.respond(self.sent()[1], data={"disposition": "started"})
        self.assertEqual(self.successResultOf(first), "started")
        last = self.sent()[-1]
        self.assertEqual((last["id"], last["streamingBehavior"]), ("p2", "steer"))
        self.respond(last, success=False, error="no")
        self.failureResultOf(second, PiRefused)
        self.host.prompt("p3", "three", "normal")
        self.assertEqual(self.sent()[-1]["id"], "p3")

    def test_prompt_without_answer(self) -> None:
        """After ten minutes nobody can tell of the first, the second was not given; neither is a
        third written before Pi has answered.
        """
        self.start()
        first = self.host.prompt("p1", "one", "normal")
        second = self.host.prompt("p2", "two", "normal")
        self.clock.advance(PROMPT_SECONDS + 1)
        self.failureResultOf(first, PiGone)
        self.failureResultOf(second, PiRefused)
        third = self.host.prompt("p3", "three", "normal")
        self.assertEqual(self.sent()[-1]["id"], "p1")
        self.respond(self.sent()[-1])
        self.assertEqual(self.sent()[-1]["id"], "p3")
        self.respond(self.sent()[-1])
        self.assertEqual(self.successResultOf(third), "started")

    def test_cancelled_prompt(self) -> None:
        """A caller that gives up does not let the next prompt overtake."""
        self.start()
        first = self.host.prompt("p1", "one", "normal").addErrback(lambda _: None)
        self.host.prompt("p2", "two", "normal")
        first.cancel()
        self.assertEqual(self.sent()[-1]["id"], "p1")
        self.respond(self.sent()[-1])
        self.assertEqual(self.sent()[-1]["id"], "p2")

    def test_prompts_when_pi_dies(self) -> None:
        """Of a prompt without an answer nobody can tell; one that waited was not given either."""
        self.start()
        first = self.host.prompt("p1", "one", "normal")
        second = self.host.prompt("p2", "two", "normal")
        self.process.exit(None, 9)
        self.failureResultOf(first, PiGone)
        self.failureResultOf(second, PiGone)
        self.assertEqual(self.recorder.all("ended"), ["Pi ended (signal 9 (SIGKILL))"])

    def test_output_after_the_exit(self) -> None:
        """What Pi wrote before it died is told before its end."""
        self.start()
        self.process.exit(1, end=False)
        self.pi({"type": "agent_start"})
        self.process.end()
        self.assertEqual(
            [event[0] for event in self.recorder.events][-2:], ["run_started", "ended"]
        )

    def test_abort_sequence(self) -> None:
        """Dialogs are cancelled, then the queue is cleared, then the run is aborted; new prompts wait."""
        self.start()
        self.ask(id="d1", method="confirm", title="?", message="?")
        aborted = self.host.abort()
        waiting = self.host.prompt("p1", "next", "normal")
        cancel, clear = self.sent()[1:]
        self.assertEqual((cancel["id"], cancel["cancelled"]), ("d1", True))
        self.respond(clear, data={"steering": ["a"], "followUp": []})
        abort = self.sent()[-1]
        self.assertEqual((clear["type"], abort["type"]), ("clear_queue", "abort"))
        self.ask(id="d2", method="input", title="?")
        self.assertEqual(self.sent()[-1]["id"], "d2")
        self.respond(abort)
        self.assertEqual(self.successResultOf(aborted), {"steering": ["a"], "followUp": []})
        self.assertEqual(self.sent()[-1]["id"], "p1")
        self.assertNoResult(waiting)

    def test_abort_twice(self) -> None:
        """A second abort joins the first, so that it cannot hit a prompt that came after both."""
        self.start()
        first, second = self.host.abort(), self.host.abort()
        self.host.prompt("p1", "next", "normal")
        self.respond(self.sent()[-1], data={"steering": ["a"], "followUp": []})
        self.respond(self.sent()[-1])
        self.assertEqual(self.successResultOf(first)["steering"], ["a"])
        self.assertEqual(self.successResultOf(second), {"steering": [], "followUp": []})
        self.assertEqual([r["type"] for r in self.sent()[1:]], ["clear_queue", "abort", "prompt"])

    def test_abort_that_fails(self) -> None:
        """An abort without an answer fails for all who wait for it; the next one is tried again."""
        self.start()
        first, second = self.host.abort(), self.host.abort()
        self.clock.advance(31)
        self.failureResultOf(first, PiGone)
        self.failureResultOf(second, PiGone)
        self.assertNoResult(self.host.abort())
        self.assertEqual([r["type"] for r in self.sent()[1:]], ["clear_queue", "clear_queue"])

    def test_abort_during_a_prompt(self) -> None:
        """A prompt that waits for a dialog does not hold an abort up."""
        self.start()
        self.host.prompt("p1", "x", "normal")
        self.host.abort()
        self.assertEqual(self.sent()[-1]["type"], "clear_queue")

    def test_dialogs(self) -> None:
        """A dialog is told, answered once; malformed ones are cancelled; decoration is dropped."""
        self.start()
        self.ask(id="d1", method="select", title="t", options=["a", "b"])
        self.ask(id="d2", method="select", title="t", options=None)
        self.ask(id="d3", method="setStatus", statusKey="x")
        self.ask(id="d4", method="notify", message="done")
        told = [request["id"] for request in self.recorder.all("dialog_requested")]
        self.assertEqual(told, ["d1", "d2", "d4"])
        self.host.answer_dialog("d1", {"value": "a"})
        self.host.answer_dialog("d1", {"value": "b"})
        answers = [(r["id"], r.get("value"), r.get("cancelled")) for r in self.sent()[1:]]
        self.assertEqual(answers, [("d2", None, True), ("d1", "a", None)])
        self.process.exit(0)
        self.host.answer_dialog("d1", {"value": "a"})

    def test_state_is_asked_again(self) -> None:
        """After what changes session or model the state is asked for, since no event tells."""
        self.start()
        done = self.host.command("set_model", provider="p", modelId="m")
        self.respond(self.sent()[-1], data={"id": "m"})
        self.assertEqual(self.sent()[-1]["type"], "get_state")
        self.respond(self.sent()[-1], data={**STATE, "model": {"id": "m"}})
        self.assertEqual(self.successResultOf(done), {"id": "m"})
        self.assertEqual(self.host.state["model"], {"id": "m"})

    def test_session_of_somebody_else(self) -> None:
        """A session that must not be opened is not even named to Pi."""
        base = Path(self.mktemp())
        header = {"type": "session", "version": 3, "id": "x", "cwd": "/"}
        base.write_text(json.dumps(header) + "\n")
        self.host = self.make(session_allowed=lambda path: False)
        self.start()
        path = str(base.resolve())
        self.failureResultOf(self.host.command("switch_session", sessionPath=path), PiRefused)
        self.assertEqual(len(self.sent()), 1)

    def test_retries_are_one_run(self) -> None:
        """A retry within a run is no new run, and a settle without a run is none."""
        self.start()
        settled = {"type": "agent_settled", "aborted": False}
        start = {"type": "agent_start"}
        self.pi(settled, start, {"type": "agent_end", "willRetry": True}, start, settled, settled)
        self.assertEqual(len(self.recorder.all("run_started")), 1)
        self.assertEqual(self.recorder.all("settled"), [False])

    def test_compaction_and_names(self) -> None:
        """Compaction, session name and thinking level are followed by their events."""
        self.start()
        self.pi({"type": "compaction_start", "reason": "manual"})
        self.assertTrue(self.host.state["isCompacting"])
        self.pi({"type": "compaction_end", "reason": "manual", "aborted": False})
        self.pi({"type": "session_info_changed", "name": "n"})
        self.pi({"type": "thinking_level_changed", "level": "high"})
        state = self.host.state
        self.assertFalse(state["isCompacting"])
        self.assertEqual((state["sessionName"], state["thinkingLevel"]), ("n", "high"))

    def test_hostile_output(self) -> None:
        """Odd records are counted and change nothing; what comes after them is understood."""
        self.start()
        for line in (
            b"null",
            b"[]",
            b"x",
            b'{"type":"message_end","message":5}',
            b'{"type":"new"}',
            b'{"type":"queue_update","steering":5}',
            b'{"type":"response"}',
        ):
            self.process.out(line + b"\n")
        self.pi({"type": "agent_start"})
        self.assertEqual(self.recorder.all("run_started"), [None])
        counts = self.host.counts
        self.assertEqual((counts["malformed"], counts["not_objects"]), (1, 2))
        self.assertEqual((counts["unknown"], counts["late"]), (1, 1))

    def test_observers_that_fail(self) -> None:
        """An observer's fault is logged and keeps nobody else from hearing."""
        self.host = self.make()
        self.host.subscribe(object())
        other = PiRecorder()
        self.host.subscribe(other)
        self.start()
        self.pi({"type": "agent_start"})
        self.assertEqual(other.all("run_started"), [None])
        self.assertTrue(self.flushLoggedErrors(AttributeError))

    def test_never_re_entrant(self) -> None:
        """What an observer causes is told after everybody heard the first thing."""
        test = self

        class Eager(PiRecorder):
            def run_started(self) -> None:
                test.pi({"type": "queue_update", "steering": ["x"], "followUp": []})
                super().run_started()

        eager, other = Eager(), PiRecorder()
        self.host = self.make()
        self.host.subscribe(eager)
        self.host.subscribe(other)
        self.start()
        self.pi({"type": "agent_start"})
        names = [event[0] for event in other.events][-2:]
        self.assertEqual(names, ["run_started", "state_changed"])

    def test_stop_after_an_abort(self) -> None:
        """What ran below Pi at an abort is ended with Pi, although nothing leads to it any more."""
        processes = OneTool()
        self.host = self.make(processes=processes)
        self.start()
        self.host.abort()
        processes.below = []
        for _ in range(2):
            self.respond(self.sent()[-1])
        stopping = self.host.stop(10)
        for _ in range(2):
            self.respond(self.sent()[-1])
        self.process.exit(0)
        self.clock.pump([0.1] * 20)
        self.assertEqual(self.successResultOf(stopping), "exit code 0")
        self.assertEqual(processes.sent, [77])

    def test_stop(self) -> None:
        """A stop quiets Pi, closes its input and waits for its end; a second one waits too."""
        self.start()
        first, second = self.host.stop(10), self.host.stop(10)
        self.respond(self.sent()[-1], data={"steering": [], "followUp": []})
        self.respond(self.sent()[-1])
        self.assertTrue(self.process.stdin_closed)
        self.failureResultOf(self.host.prompt("p", "x", "normal"), PiRefused)
        self.process.exit(0, end=False)
        self.clock.pump([0.1] * 20)
        self.assertEqual(self.successResultOf(first), "exit code 0")
        self.assertEqual(self.successResultOf(second), "exit code 0")
        self.assertEqual(self.recorder.all("ended"), ["Pi ended (exit code 0)"])
        self.assertEqual(self.clock.getDelayedCalls(), [])

"""What only the real Pi can show."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from pathlib import Path
from typing import Any

from pitelegram.errors import LaunchFailed, PiGone, PiRefused
from pitelegram.kernel.birth import process_birth
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.pi.rpc import RpcPiHost
from pitelegram.pi.sessions import (
    Finished,
    NeverRan,
    Unknown,
    mark,
    outcome,
    outcomes,
    read_header,
)
from pitelegram.testing.pirecorder import PiRecorder
from pitelegram.testing.realpi import RealPiCase

MARK = "PI_TELEGRAM_WORKER_MARK"


def free(path: Path) -> bool:
    """Whether nobody holds the lock of that file."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


class RealPiTests(RealPiCase):
    """L{RpcPiHost} on the real Pi."""

    async def started(self, **options: Any) -> tuple[RpcPiHost, PiRecorder]:
        """A running Pi."""
        host, recorder = self.make_host(**options), PiRecorder()
        host.subscribe(recorder)
        await host.start()
        return host, recorder

    async def until(self, condition: Any) -> None:
        """Look until it is true; the test's own time-out ends a wait in vain."""
        while not condition():
            await sleep(self.reactor, 0.02)

    async def pid_in(self, path: Path) -> int:
        """The pid that a tool wrote."""
        await self.until(lambda: path.exists() and path.read_text().strip())
        return int(path.read_text())

    @deferred
    async def test_own_session(self) -> None:
        """Pi leads a session of its own, in its project, with the given file mode mask."""
        host, recorder = await self.started(umask=0o27)
        self.assertEqual(os.getsid(host.pid), host.pid)
        await host.prompt("p", "[[tool bash 'pwd > where; touch made']]", "normal")
        await recorder.when_settled()
        self.assertEqual((self.project / "where").read_text().strip(), str(self.project))
        self.assertEqual((self.project / "made").stat().st_mode & 0o777, 0o640)

    @deferred
    async def test_tool(self) -> None:
        """A tool runs and its result reaches the answer."""
        host, recorder = await self.started()
        await host.prompt("p", "[[say 'Let me look.']][[tool bash 'echo hi']]", "normal")
        await recorder.when_settled()
        texts = [message["text"] for message in recorder.all("assistant_message")]
        self.assertEqual(texts, ["Let me look.", "The tool said: hi\n"])
        self.assertEqual(recorder.all("user_message"), [self.model.requests[0].text])

    @deferred
    async def test_abort_of_a_tool(self) -> None:
        """An abort ends a running tool at once."""
        host, recorder = await self.started()
        await host.prompt("p", "[[tool bash 'echo $$ > pid; sleep 600']]", "normal")
        pid = await self.pid_in(self.project / "pid")
        await host.abort()
        await recorder.when_settled()
        self.assertEqual(recorder.all("settled"), [True])
        await self.until(lambda: process_birth(pid) is None)

    @deferred
    async def test_provider_error(self) -> None:
        """A provider's error is an assistant message that says so; Pi stays usable."""
        host, recorder = await self.started()
        self.assertEqual(await host.prompt("p", "[[error 400]]", "normal"), "started")
        await recorder.when_settled()
        message = recorder.all("assistant_message")[0]
        self.assertEqual(message["stopReason"], "error")
        self.assertIn("scripted error 400", message["errorMessage"])
        await host.prompt("p2", "hello", "normal")
        await recorder.when_settled(2)
        self.assertEqual(recorder.all("assistant_message")[-1]["text"], "You said: hello")

    @deferred
    async def test_many_prompts_at_random_moments(self) -> None:
        """Prompts that come while a run ends are all answered."""
        host, recorder = await self.started()
        texts = [f"number {n}" for n in range(40)]
        for number, text in enumerate(texts):
            await host.prompt(f"p{number}", text, "priority" if number % 3 == 0 else "normal")
            await sleep(self.reactor, (number % 7) * 0.004)
        await recorder.when(
            lambda: len(recorder.all("assistant_message")) == 40 and not host.state["isStreaming"]
        )
        self.assertEqual(sorted(recorder.all("user_message")), sorted(texts))

    @deferred
    async def test_lock_is_free_when_pi_is_gone(self) -> None:
        """Pi keeps the inherited lock after ours is closed, and its background jobs do not."""
        path = self.base / "lock"
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        host, recorder = await self.started(lock_fd=fd)
        os.close(fd)
        command = "nohup setsid sleep 600 >/dev/null 2>&1 & echo $! > job"
        await host.prompt("p", f"[[tool bash '{command}']]", "normal")
        await recorder.when_settled()
        job = await self.pid_in(self.project / "job")
        self.assertFalse(free(path))
        self.kill(host)
        await recorder.when(lambda: bool(recorder.all("ended")))
        try:
            self.assertIsNotNone(process_birth(job))
            self.assertTrue(free(path))
        finally:
            os.kill(job, signal.SIGKILL)

    @deferred
    async def test_killed_with_a_tool(self) -> None:
        """A killed Pi is noticed although its tool lives on."""
        host, recorder = await self.started()
        await host.prompt("p", "[[tool bash 'echo $$ > pid; exec sleep 600']]", "normal")
        pid = await self.pid_in(self.project / "pid")
        self.kill(host)
        await recorder.when(lambda: bool(recorder.all("ended")))
        self.assertIsNotNone(process_birth(pid))
        self.assertIn("SIGKILL", await host.stop(5.0))
        os.kill(pid, signal.SIGKILL)

    @deferred
    async def test_stop_takes_everything_along(self) -> None:
        """A stop ends the tool that runs and the background job that left its session."""
        host, recorder = await self.started(environment={MARK: f"test-{os.getpid()}-{id(self)}"})
        command = "nohup setsid sleep 600 >/dev/null 2>&1 & echo $! > job; echo $$ > pid; sleep 600"
        await host.prompt("p", f"[[tool bash '{command}']]", "normal")
        pid, job = await self.pid_in(self.project / "pid"), await self.pid_in(self.project / "job")
        self.assertEqual(await host.stop(10.0), "exit code 0")
        for left in (pid, job, host.pid):
            self.assertIsNone(process_birth(left))

    @deferred
    async def test_stop_of_a_stopped_pi(self) -> None:
        """A Pi that hears nothing at all is killed within the grace."""
        host, recorder = await self.started()
        os.kill(host.pid, signal.SIGSTOP)
        begin = self.reactor.seconds()
        self.assertIn("SIGKILL", await host.stop(2.0))
        self.assertLess(self.reactor.seconds() - begin, 10.0)
        self.assertEqual(len(recorder.all("ended")), 1)

    @deferred
    async def test_input_closed(self) -> None:
        """Closing Pi's input ends it; exit code 0 says nothing about the run."""
        host, recorder = await self.started()
        await host.prompt("p", "[[hang chunks=1]]", "normal")
        await recorder.when(lambda: bool(recorder.all("text_delta")))
        host.close_stdin()
        await recorder.when(lambda: bool(recorder.all("ended")))
        self.assertEqual(recorder.all("ended"), ["Pi ended (exit code 0)"])
        self.assertEqual(recorder.all("settled"), [])

    async def launch_error(self, **options: Any) -> LaunchFailed:
        """Why a launch fails."""
        host = self.make_host(**options)
        return await self.assertFailure(host.start(), LaunchFailed)

    @deferred
    async def test_refused_starts(self) -> None:
        """Arguments and sessions that Pi refuses are permanent failures in Pi's own words."""
        garbage = self.base / "garbage.jsonl"
        garbage.write_text("no session\n")
        for options, words in (
            ({"extra_args": ["--no-such-option"]}, "Unknown option"),
            ({"extra_args": ["--model", "no/such"]}, "not found"),
            ({"session_file": str(garbage)}, "not a valid pi session"),
        ):
            error = await self.launch_error(**options)
            self.assertIn(words, str(error))
            self.assertTrue(error.permanent)
        self.assertEqual(garbage.read_text(), "no session\n")

    @deferred
    async def test_no_program(self) -> None:
        """A program that the system cannot run is a permanent failure."""
        broken = self.base / "broken"
        broken.write_bytes(b"\x00\x01")
        broken.chmod(0o755)
        error = await self.launch_error(command=[str(broken)])
        self.assertTrue(error.permanent)
        self.assertIn("cannot be started", str(error))

    @deferred
    async def test_no_model(self) -> None:
        """Without a usable model Pi starts, says so in its state, and refuses prompts."""
        (self.agent_dir / "models.json").unlink()
        (self.agent_dir / "settings.json").unlink()
        host, _ = await self.started()
        self.assertEqual(host.state["model"]["id"], "unknown")
        error = await self.assertFailure(host.prompt("p", "x", "normal"), PiRefused)
        self.assertIn("No API key", str(error))

    @deferred
    async def test_resumed_session(self) -> None:
        """A session is resumed by its file with its history, and keeps its name."""
        host, recorder = await self.started(name="first")
        await host.prompt("p", "remember this", "normal")
        await recorder.when_settled()
        path, session = host.state["sessionFile"], host.state["sessionId"]
        await host.stop(10.0)
        again, heard = await self.started(name="other", session_file=path)
        self.assertEqual(again.state["sessionId"], session)
        self.assertEqual(again.state["sessionName"], "first")
        await again.prompt("p", "and now", "normal")
        await heard.when_settled()
        self.assertEqual(self.model.requests[-1].users, ("remember this", "and now"))
        header = read_header(Path(path))
        self.assertEqual((header.session_id, header.cwd), (session, str(self.project)))

    @deferred
    async def test_switch_session(self) -> None:
        """Another session is opened by its file, and the state names it."""
        host, recorder = await self.started()
        await host.prompt("p", "in the first", "normal")
        await recorder.when_settled()
        first = host.state["sessionFile"]
        await host.command("new_session")
        await host.command("switch_session", sessionPath=first)
        self.assertEqual(host.state["sessionFile"], first)

    @deferred
    async def test_outcomes_after_kill(self) -> None:
        """After a kill the session file tells what ran, what finished and what never did."""
        host, recorder = await self.started()
        path = Path(host.state["sessionFile"])
        start = mark(path)
        self.assertEqual((start.size, path.exists()), (0, False))
        self.assertEqual(outcome(path, start, "  one  "), NeverRan())
        await host.prompt("p1", "  one  ", "normal")
        await recorder.when_settled()
        finished = outcome(path, start, "  one  ")
        self.assertIsInstance(finished, Finished)
        self.assertEqual(finished.text, "You said: one")
        second = mark(path)
        self.assertEqual(second.entry, finished.entry)
        await host.prompt("p2", "[[gate never]]", "normal")
        await recorder.when(lambda: len(recorder.all("text_delta")) > 1)
        await host.prompt("p3", "queued", "normal")
        self.kill(host)
        await recorder.when(lambda: bool(recorder.all("ended")))
        texts = ["[[gate never]]", "queued"]
        self.assertEqual(outcomes(path, second, texts), [Unknown(), NeverRan()])

    @deferred
    async def test_cut_session_file(self) -> None:
        """A session whose last line was cut by a kill can be resumed, and its outcome is told."""
        host, recorder = await self.started()
        path = Path(host.state["sessionFile"])
        await host.prompt("p1", "one", "normal")
        await recorder.when_settled()
        await host.stop(10.0)
        with path.open("ab") as file:
            file.write(b'{"type":"message","id":"cut')
        place = mark(path)
        again, heard = await self.started(session_file=str(path))
        await again.prompt("p2", "two", "normal")
        await heard.when_settled()
        self.assertEqual(self.model.requests[-1].users, ("one", "two"))
        self.assertIsInstance(outcome(path, place, "two"), Finished)

    @deferred
    async def test_odd_text(self) -> None:
        """Text with separators, quotes, NUL and emoji reaches the model unchanged."""
        text = "a\u2028b\u2029c\u0085d\x00e\x0b\"f'\\ \U0001f600 \r\n g"
        host, recorder = await self.started()
        await host.prompt("p", text, "normal")
        await recorder.when_settled()
        self.assertEqual(self.model.requests[0].text, text)
        self.assertEqual(recorder.all("user_message"), [text])
        lines = Path(host.state["sessionFile"]).read_bytes().split(b"\n")
        self.assertTrue(all(json.loads(line) for line in lines if line))

    @deferred
    async def test_gone_during_a_prompt(self) -> None:
        """A prompt whose answer never came says that nobody can tell."""
        host, recorder = await self.started()
        os.kill(host.pid, signal.SIGSTOP)
        waiting = host.prompt("p", "x", "normal")
        self.kill(host)
        await self.assertFailure(waiting, PiGone)

"""The whole machine for tests: a sandbox Telegram and a scripted model in this process, the daemon,
its workers and the real Pi in theirs."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import psutil
from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import deferLater

from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.observers import OneShot
from pitelegram.sandbox.model import ScriptedModel
from pitelegram.sandbox.records import Message
from pitelegram.testing.pienv import make_agent_dir, pi_command
from pitelegram.testing.telegram import Sandbox

PATIENCE = 60.0
"""Seconds a condition may take on a busy machine."""

LOOK_EVERY = 0.05
"""Seconds between two looks at something that cannot call back."""


@attrs.frozen
class Finished:
    """How a program ended: exit code (negative: by that signal) and what it printed."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return standard output as JSON."""
        return json.loads(self.out)


class Program(ProcessProtocol):
    """A running program whose output can be waited for."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self.out = ""
        self.err = ""
        self.finished: OneShot[Finished] = OneShot()
        self._waiters: list[tuple[str, Deferred[str]]] = []

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.transport is not None
        return self.transport.pid  # type: ignore[no-any-return]

    def outReceived(self, data: bytes) -> None:
        """Collect standard output."""
        self.out += data.decode("utf-8", "replace")
        self._look()

    def errReceived(self, data: bytes) -> None:
        """Collect standard error."""
        self.err += data.decode("utf-8", "replace")
        self._look()

    def processExited(self, reason: Any) -> None:
        """Let the output drain, however long grandchildren keep the pipes."""
        self._reactor.callLater(0.2, self._finish, reason.value)

    def _finish(self, status: Any) -> None:
        code = status.exitCode if status.exitCode is not None else -(status.signal or 0)
        self.finished.fire(Finished(code, self.out, self.err))
        if self.transport is not None:
            self.transport.loseConnection()
        self._look()

    def kill(self, sig: int = signal.SIGKILL) -> Deferred[Finished]:
        """Send a signal; fires when the program has ended."""
        try:
            assert self.transport is not None
            self.transport.signalProcess(sig)
        except ProcessExitedAlready:
            pass
        return self.finished.when()

    def when_says(self, text: str, timeout: float = PATIENCE) -> Deferred[str]:
        """Fire with the whole output once it contains C{text}; fail if the program ends first."""
        waiter: Deferred[str] = Deferred()
        self._waiters.append((text, waiter))
        waiter.addTimeout(timeout, self._reactor)
        self._look()
        return waiter

    def _look(self) -> None:
        output = self.out + self.err
        for entry in list(self._waiters):
            text, waiter = entry
            if waiter.called:
                self._waiters.remove(entry)
            elif text in output:
                self._waiters.remove(entry)
                waiter.callback(output)
            elif self.finished.fired:
                self._waiters.remove(entry)
                waiter.errback(AssertionError(f"ended before it said {text!r}:\n{output}"))


class System:
    """One sandbox, one model, one agent directory, and the daemon on them.

    @param base: an empty directory; the home directory of everything that is started.
    @ivar projects: parent of the workers' directories.
    """

    def __init__(self, reactor: Any, base: Path) -> None:
        self.reactor = reactor
        self.base = base.resolve()
        self.telegram = Sandbox(reactor)
        self.model = ScriptedModel(reactor, reactor)
        self.projects = self.base / "projects"
        self.agent_dir = self.base / "agent"
        self.daemon: Program | None = None
        self.extra_environment: dict[str, str] = {}

    # --- life ---------------------------------------------------------------------------------

    def set_up(self, **profile: Any) -> None:
        """Start Telegram and the model, write C{telegram.json}; no daemon yet."""
        self.telegram.startService()
        self.model.startService()
        self.projects.mkdir()
        make_agent_dir(self.base, self.model)
        self.write_settings(**profile)

    def write_settings(self, **profile: Any) -> None:
        """Write C{telegram.json} with a literal token and a paired owner, unless told otherwise."""
        bot = self.telegram.chat.world.bot
        settings = {
            "profiles": {
                "default": {
                    "botToken": self.telegram.token,
                    "botId": bot["id"],
                    "botUsername": bot["username"],
                    "allowedUserId": self.telegram.chat.owner["id"],
                    **profile,
                }
            },
            "workers": {"command": shlex.join(pi_command())},
        }
        path = self.agent_dir / "telegram.json"
        path.write_text(json.dumps(settings))
        path.chmod(0o600)

    @deferred
    async def tear_down(self) -> None:
        """End everything that was started, gently or not."""
        if self.daemon is not None:
            await self.daemon.kill()
        self.reap()
        await self.telegram.stopService()
        await self.model.stopService()

    def reap(self) -> None:
        """Kill every process that lives on this agent directory."""
        for process in self.processes():
            try:
                process.kill()
            except psutil.Error:
                continue

    def processes(self, words: str = "") -> list[psutil.Process]:
        """Return the processes of this agent directory whose command line contains C{words}."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if process.environ().get("PI_CODING_AGENT_DIR") != str(self.agent_dir):
                    continue
                if words in " ".join(process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def workers(self) -> list[psutil.Process]:
        """The worker processes."""
        return self.processes("pitelegram.worker")

    def pis(self) -> list[psutil.Process]:
        """The Pi processes (their title reads just C{pi})."""
        return [p for p in self.processes() if p.name() in ("pi", "node")]

    # --- programs -----------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """What the daemon and the command line get."""
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.base),
            "LANG": "C.UTF-8",
            "PI_CODING_AGENT_DIR": str(self.agent_dir),
            "PI_TELEGRAM_API_ROOT": self.telegram.api_root,
            "PI_OFFLINE": "1",
            "PI_TELEMETRY": "0",
            **self.extra_environment,
        }

    def run(self, *arguments: str, directory: Path | None = None) -> Program:
        """Start C{pi-telegram} with these arguments."""
        return self.spawn([str(Path(sys.executable).parent / "pi-telegram"), *arguments], directory)

    def spawn(
        self,
        command: Sequence[str],
        directory: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> Program:
        """Start any program, in the system's environment unless told otherwise."""
        program = Program(self.reactor)
        self.reactor.spawnProcess(
            program,
            command[0],
            list(command),
            self.environment() if environment is None else environment,
            str(directory or self.base),
        )
        return program

    @deferred
    async def cli(self, *arguments: str, stdin: str | None = None) -> Finished:
        """Run the command line to its end."""
        program = self.run(*arguments)
        assert program.transport is not None
        if stdin is not None:
            program.transport.write(stdin.encode())
        program.transport.closeStdin()
        return await program.finished.when().addTimeout(PATIENCE * 2, self.reactor)

    @deferred
    async def start_daemon(self, *arguments: str) -> Program:
        """Start the daemon in the foreground and wait until it is ready."""
        self.daemon = self.run("run", *arguments)
        await self.daemon.when_says("pi-telegram ready")
        return self.daemon

    @deferred
    async def restart_daemon(self, sig: int = signal.SIGKILL) -> Program:
        """End the daemon with a signal and start another one."""
        assert self.daemon is not None
        await self.daemon.kill(sig)
        return await self.start_daemon()

    def project(self, name: str) -> Path:
        """Make a project directory."""
        directory = self.projects / name
        directory.mkdir(exist_ok=True)
        return directory

    @deferred
    async def start_worker(self, name: str) -> int:
        """Start a worker in a new project directory; fires with its Thread's id."""
        done = await self.cli("workers", "start", str(self.project(name)))
        if done.code != 0:
            raise AssertionError(f"workers start: exit {done.code}\n{done.out}\n{done.err}")
        return await self.thread_of(name)

    @deferred
    async def thread_of(self, name: str) -> int:
        """Fire with the id of the Thread in which a worker said that it is ready."""
        ready = await self.telegram.when_message(
            lambda m: f"{name} is ready" in (m.text or ""), timeout=PATIENCE
        )
        assert ready.thread_id is not None
        return ready.thread_id

    # --- looking ------------------------------------------------------------------------------

    @deferred
    async def status(self) -> dict[str, Any]:
        """The status document."""
        return (await self.cli("status", "--json")).json()

    @deferred
    async def worker_state(self, name: str) -> str:
        """A worker's state by the status document."""
        document = await self.status()
        return next(w["state"] for w in document["workers"] if w["name"] == name)

    @deferred
    async def until(
        self, look: Callable[[], Any], what: str = "the condition", timeout: float = PATIENCE
    ) -> Any:
        """Look (also at Deferreds) until it is true; fires with it.

        @raise TimeoutError: when it does not become true.
        """
        end = self.reactor.seconds() + timeout
        while True:
            found = look()
            if isinstance(found, Deferred):
                found = await found
            if found:
                return found
            if self.reactor.seconds() > end:
                raise TimeoutError(timeout, f"{what} did not come")
            await deferLater(self.reactor, LOOK_EVERY, lambda: None)

    @deferred
    async def answer(self, text: str, thread: int, timeout: float = PATIENCE) -> Message:
        """Fire with the bot's message in a Thread that contains C{text}."""
        return await self.telegram.when_message(
            lambda m: text in (m.text or ""), timeout=timeout, thread=thread
        )

    def answers(self, text: str, thread: int | None | str = "any") -> list[Message]:
        """The bot's messages that contain C{text}."""
        return [m for m in self.telegram.chat.from_bot(thread) if text in (m.text or "")]

    def prompts(self, text: str) -> list[Any]:
        """The model's requests whose last user message contains C{text}.

        A run with tool calls asks more than once; only requests that begin a turn are counted.
        """
        return [r for r in self.model.requests if text in r.text and not r.results]

    def say(self, text: str, thread: int | None = None) -> Message:
        """The owner writes."""
        return self.telegram.chat.user_sends(text, thread)

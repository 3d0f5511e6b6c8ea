"""A Pi in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from pitelegram.errors import PiGone, PiRefused
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.observers import OneShot
from pitelegram.pi.arguments import check_command, prompt_arguments
from pitelegram.pi.interfaces import IPiHost
from pitelegram.pi.observing import THINKING, TOOLS, Retry
from pitelegram.sandbox.directives import Step, long_text, parse


@implementer(IPiHost)
class FakePiHost:
    """Behaves as Pi does, without a process.

    It answers as the scripted model would: C{[[gate NAME]]} waits for L{open_gate}, C{[[say …]]},
    C{[[think …]]}, C{[[error …]]}, C{[[long N]]} and C{[[tool bash 'echo …']]} are known, other text is
    echoed.  Everything happens in C{callLater(0)} steps.

    @ivar prompts: C{(rpc_id, message, lane)} of every prompt that was taken.
    @ivar images: the pictures of each of them.
    @ivar commands: C{(name, arguments)} of every command.
    @ivar results: what C{command} answers, by name; an exception is raised.
    @ivar dialog_answers: C{(dialog_id, answer)} in order.
    @ivar deaf: it reacts to no abort; that fails after 30 s.
    @ivar refusals: each prompt takes one of these and fails with it, while there are any.
    """

    def __init__(
        self,
        clock: IReactorTime,
        session_file: str | None = "/sessions/fake-1.jsonl",
        pid: int | None = 4242,
    ) -> None:
        self.pid = pid
        self.birth = None if pid is None else f"{pid}:start:1"
        self.prompts: list[tuple[str, str, str]] = []
        self.images: list[list[dict[str, Any]]] = []
        self.commands: list[tuple[str, dict[str, Any]]] = []
        self.results: dict[str, Any] = {
            "get_available_models": {"models": [{"provider": "scripted", "id": "scripted"}]},
            "get_available_thinking_levels": {"levels": ["off", "low", "high"]},
            "get_commands": {"commands": []},
            "get_session_stats": {"tokens": {"input": 1, "output": 2}, "cost": 0},
        }
        self.dialog_answers: list[tuple[str, dict[str, Any]]] = []
        self.refusals: list[Exception] = []
        self.stdin_closed = False
        self.deaf = False
        self._clock = clock
        self._observers: list[Any] = []
        self._wanted: frozenset[str] = frozenset()
        self._gates: dict[str, OneShot[None]] = {}
        self._running: Deferred[None] | None = None
        self._steering: list[str] = []
        self._follow_up: list[str] = []
        self._sessions = 1
        self._end: str | None = None
        self._state: dict[str, Any] = {
            "isStreaming": False,
            "isCompacting": False,
            "thinkingLevel": "off",
            "sessionId": "fake-1",
            "sessionFile": session_file,
            "messageCount": 0,
            "pendingMessageCount": 0,
            "queue": {"steering": [], "followUp": []},
            "model": {"id": "scripted", "provider": "scripted"},
        }
        self._ready = False

    @property
    def state(self) -> dict[str, Any]:
        """See L{IPiHost}."""
        return dict(self._state)

    def open_gate(self, name: str) -> None:
        """Let the answer that waits at this gate go on."""
        self._gates.setdefault(name, OneShot()).fire(None)

    def tell(self, name: str, *arguments: Any) -> None:
        """Let an event happen that nothing else here brings about."""
        self._tell(name, *arguments)

    def die(self, reason: str = "Pi ended (signal 9 (SIGKILL))") -> None:
        """End as a killed Pi does: what runs is lost."""
        if self._end is None:
            self._end = reason
            self._forget_run()
            self._tell("ended", reason)

    def ask(self, request: dict[str, Any]) -> None:
        """Let an extension ask something."""
        self._tell("dialog_requested", request)

    def subscribe(self, observer: Any) -> None:
        """See L{IPiHost}."""
        self._observers.append(observer)

    def want(self, kinds: Collection[str]) -> None:
        """See L{IPiHost}."""
        self._wanted = frozenset(kinds)

    def start(self) -> Deferred[dict[str, Any]]:
        """See L{IPiHost}."""
        self._ready = True
        return succeed(self.state)

    @deferred
    async def prompt(
        self, rpc_id: str, message: str, lane: str, images: Sequence[dict[str, Any]] = ()
    ) -> str:
        """See L{IPiHost}."""
        prompt_arguments(message, lane, images)
        self._require()
        await sleep(self._clock, 0)
        self._require()
        if self.refusals:
            raise self.refusals.pop(0)
        if self._state["isCompacting"]:
            raise PiRefused("Cannot submit a prompt while compaction is in progress.")
        self.prompts.append((rpc_id, message, lane))
        self.images.append(list(images))
        if self._running is not None:
            (self._steering if lane == "priority" else self._follow_up).append(message)
            self._queue_changed()
            return "queued"
        self._running = self._run(message)
        return "started"

    @deferred
    async def abort(self) -> dict[str, Any]:
        """See L{IPiHost}."""
        if self.deaf:
            await sleep(self._clock, 30)
            self._require()
            raise PiGone("Pi did not answer clear_queue in time")
        queued = await self.clear_queue()
        await sleep(self._clock, 0)
        self._require()
        self._change(isCompacting=False)
        if self._running is not None:
            self._forget_run()
            self._assistant("", "aborted")
            self._settle(True)
        return queued

    def clear_queue(self) -> Deferred[dict[str, Any]]:
        """See L{IPiHost}."""
        try:
            self._require()
        except (PiGone, PiRefused):
            return fail()
        queued = {"steering": self._steering, "followUp": self._follow_up}
        self._steering, self._follow_up = [], []
        self._queue_changed()
        return succeed(queued)

    @deferred
    async def get_state(self) -> dict[str, Any]:
        """See L{IPiHost}."""
        self._require()
        return self.state

    @deferred
    async def command(self, name: str, /, **arguments: Any) -> Any:
        """See L{IPiHost}."""
        check_command(name, arguments)
        self._require()
        self.commands.append((name, arguments))
        result = self.results.get(name, {})
        if isinstance(result, Exception):
            raise result
        if name == "set_model" and arguments["provider"] != "scripted":
            raise PiRefused(f"Model not found: {arguments['provider']}/{arguments['modelId']}")
        if name in ("new_session", "fork", "clone"):
            self._sessions += 1
            session = f"fake-{self._sessions}"
            self._change(sessionId=session, sessionFile=f"/sessions/{session}.jsonl")
        elif name == "switch_session":
            self._change(sessionFile=arguments["sessionPath"])
        elif name == "set_model":
            model = {"id": arguments["modelId"], "provider": arguments["provider"]}
            self._change(model={**model, "reasoning": True})
        elif name == "set_session_name":
            self._change(sessionName=arguments["name"])
        elif name == "set_thinking_level":
            self._change(thinkingLevel=arguments["level"])
        return result

    def answer_dialog(self, dialog_id: str, answer: dict[str, Any]) -> None:
        """See L{IPiHost}."""
        self.dialog_answers.append((dialog_id, answer))

    def close_stdin(self) -> None:
        """See L{IPiHost}."""
        self.stdin_closed = True
        self.die("Pi ended (exit code 0)")

    @deferred
    async def stop(self, grace: float) -> str:
        """See L{IPiHost}."""
        if self._end is None:
            if self._ready:
                await self.abort()
            self.close_stdin()
        return "exit code 0"

    @deferred
    async def _run(self, message: str) -> None:
        await sleep(self._clock, 0)
        self._change(isStreaming=True)
        self._tell("run_started")
        following: str | None = message
        while following is not None:
            self._tell("user_message", following)
            await self._answer(following)
            await sleep(self._clock, 0)
            waiting = self._steering or self._follow_up
            following = waiting.pop(0) if waiting else None
            if following is not None:
                self._queue_changed()
        self._running = None
        self._settle(False)

    async def _answer(self, message: str) -> None:
        """Play the steps of a prompt; a tool ends one message of the model and begins another."""
        said: list[str] = []
        steps = parse(message)
        for number, step in enumerate(steps):
            if step.word == "tool":
                self._say("".join(said), "toolUse")
                result = await self._tool(f"call_{number}", step)
                said = [] if steps[number + 1 :] else [f"The tool said: {result}"]
            elif step.word == "error":
                if "times" not in step.options:
                    return self._fail(step)
                await self._retry(step)
                said.append("The provider works again.")
            elif step.word == "think":
                if THINKING in self._wanted:
                    self._tell("thinking_delta", step.options.get("text", step.argument(0, "")))
            elif step.word == "gate":
                await self._gates.setdefault(step.argument(0, "gate"), OneShot()).when()
                said.append(f"After the gate {step.argument(0, 'gate')}.")
            elif step.word == "long":
                said.append(long_text(int(step.argument(0, "30000"))))
            elif step.word == "echo":
                said.append(f"You said: {step.argument(0, '')}")
            else:
                said.append(step.options.get("text", step.argument(0, "")))
        self._say("".join(said), "stop")

    async def _tool(self, call_id: str, step: Step) -> str:
        name, arguments = step.argument(0, "bash"), step.tool_arguments()
        told = TOOLS in self._wanted
        if told:
            self._tell("tool_started", call_id, name, arguments)
        await sleep(self._clock, 0)
        text = str(arguments.get("command", "")).removeprefix("echo ") + "\n"
        result = {"content": [{"type": "text", "text": text}]}
        if told:
            self._tell("tool_updated", call_id, name, {"content": []})
            self._tell("tool_updated", call_id, name, result)
            self._tell("tool_ended", call_id, name, result, False)
        await sleep(self._clock, 0)
        return text

    async def _retry(self, step: Step) -> None:
        times = int(step.number("times", 1))
        for attempt in range(1, times + 1):
            self._fail(step)
            retry = Retry(attempt=attempt, of=3, delay=2.0**attempt, reason=_failure(step))
            self._tell("retrying", retry)
            await sleep(self._clock, retry.delay)
        self._tell("retried", True, "")

    def _fail(self, step: Step) -> None:
        self._assistant("", "error", _failure(step))

    def _say(self, text: str, reason: str) -> None:
        if text:
            self._tell("text_delta", text)
        self._assistant(text, reason)

    def _require(self) -> None:
        if self._end is not None:
            raise PiGone("Pi does not run any more")
        if not self._ready:
            raise PiRefused("Pi takes nothing now (fresh)")

    def _forget_run(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.addErrback(lambda _: None)
            running.cancel()

    def _assistant(self, text: str, reason: str, error: str = "Request was aborted") -> None:
        content = [{"type": "text", "text": text}] if text else []
        message = {"role": "assistant", "content": content, "text": text, "stopReason": reason}
        message["usage"] = {"input": 100, "output": 10, "cost": {"total": 0.0}}
        if reason in ("aborted", "error"):
            message["errorMessage"] = error
        self._tell("assistant_message", message)

    def _settle(self, aborted: bool) -> None:
        self._change(isStreaming=False)
        self._tell("settled", aborted)

    def _queue_changed(self) -> None:
        lists = {"steering": list(self._steering), "followUp": list(self._follow_up)}
        self._change(queue=lists, pendingMessageCount=sum(map(len, lists.values())))

    def _change(self, **members: Any) -> None:
        state = {**self._state, **members}
        if state != self._state:
            self._state = state
            self._tell("state_changed", self.state)

    def _tell(self, name: str, *arguments: Any) -> None:
        for observer in list(self._observers):
            getattr(observer, name)(*arguments)


def _failure(step: Step) -> str:
    """What Pi says about a scripted failure."""
    status = step.argument(0, "500")
    return f'{status}: {{"message":"scripted error {status}","type":"scripted_error"}}'

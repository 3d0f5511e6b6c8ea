"""What every L{IPiHost<pitelegram.pi.interfaces.IPiHost>} must do."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import gatherResults
from zope.interface.verify import verifyObject

from pitelegram.errors import PiGone, PiRefused
from pitelegram.kernel.deferring import deferred
from pitelegram.pi.interfaces import IPiHost, IPiObserver
from pitelegram.pi.observing import result_text
from pitelegram.sandbox.directives import long_text
from pitelegram.testing.pirecorder import PiRecorder


class PiHostContract:
    """Mixed into a trial C{TestCase} that makes hosts; the prompts are directives of the scripted model."""

    def make_host(self) -> Any:
        """Return a fresh host; the test case stops it at its end."""
        raise NotImplementedError

    def open_gate(self, host: Any, name: str) -> None:
        """Let the answer that waits at a gate go on."""
        raise NotImplementedError

    def kill(self, host: Any) -> None:
        """Kill the host's Pi as C{kill -9} does."""
        raise NotImplementedError

    async def started(self) -> tuple[Any, PiRecorder]:
        """A running host and its observer."""
        host, recorder = self.make_host(), PiRecorder()
        host.subscribe(recorder)
        await host.start()
        return host, recorder

    @deferred
    async def test_interface(self: Any) -> None:
        """A host and an observer provide what their interfaces say."""
        host, recorder = await self.started()
        self.assertTrue(verifyObject(IPiHost, host))
        self.assertTrue(verifyObject(IPiObserver, recorder))

    @deferred
    async def test_start(self: Any) -> None:
        """Starting gives the state of an idle Pi with a session, and a process id."""
        host = self.make_host()
        state = await host.start()
        self.assertFalse(state["isStreaming"])
        self.assertTrue(state["sessionId"])
        self.assertEqual(state, host.state)
        self.assertIsInstance(host.pid, int)
        self.assertTrue(host.birth.startswith(f"{host.pid}:"))

    @deferred
    async def test_answer(self: Any) -> None:
        """A prompt is started; its events come in order; the deltas are the answer."""
        host, recorder = await self.started()
        disposition = await host.prompt("p1", "hello there", "normal")
        await recorder.when_settled()
        self.assertEqual(disposition, "started")
        names = [event[0] for event in recorder.events if event[0] != "state_changed"]
        self.assertEqual(names[:2], ["run_started", "user_message"])
        self.assertEqual(set(names[2:-2]), {"text_delta"})
        self.assertEqual(names[-2:], ["assistant_message", "settled"])
        self.assertEqual(recorder.all("user_message"), ["hello there"])
        message = recorder.all("assistant_message")[0]
        self.assertEqual(message["text"], "You said: hello there")
        self.assertEqual(message["stopReason"], "stop")
        self.assertEqual("".join(recorder.all("text_delta")), "You said: hello there")
        self.assertEqual(recorder.all("settled"), [False])

    @deferred
    async def test_long_answer(self: Any) -> None:
        """An answer of 30,000 characters arrives whole and in order."""
        host, recorder = await self.started()
        await host.prompt("p1", "[[long 30000]]", "normal")
        await recorder.when_settled()
        self.assertEqual(recorder.all("assistant_message")[0]["text"], long_text(30_000))
        self.assertEqual("".join(recorder.all("text_delta")), long_text(30_000))

    @deferred
    async def test_state_follows_the_run(self: Any) -> None:
        """C{isStreaming} is true during a run and false after it, and each change is told."""
        host, recorder = await self.started()
        await host.prompt("p1", "[[gate a]]", "normal")
        await recorder.when(lambda: bool(recorder.all("user_message")))
        self.assertTrue(host.state["isStreaming"])
        self.open_gate(host, "a")
        await recorder.when_settled()
        self.assertFalse(host.state["isStreaming"])
        told = [state["isStreaming"] for state in recorder.all("state_changed")]
        self.assertIn(True, told)
        self.assertFalse(told[-1])

    @deferred
    async def test_two_prompts_at_once(self: Any) -> None:
        """Two prompts that are given at the same time are both answered."""
        host, recorder = await self.started()
        await gatherResults(
            [host.prompt("p1", "one", "normal"), host.prompt("p2", "two", "normal")]
        )
        await recorder.when(lambda: len(recorder.all("assistant_message")) == 2)
        await recorder.when_settled()
        texts = [message["text"] for message in recorder.all("assistant_message")]
        self.assertEqual(texts, ["You said: one", "You said: two"])

    @deferred
    async def test_queue(self: Any) -> None:
        """While Pi works messages queue; steering ones come first; the state shows both lanes."""
        host, recorder = await self.started()
        await host.prompt("p1", "[[gate a]]", "normal")
        await recorder.when(lambda: bool(recorder.all("user_message")))
        self.assertEqual(await host.prompt("p2", "later", "normal"), "queued")
        self.assertEqual(await host.prompt("p3", "sooner", "priority"), "queued")
        await recorder.when(lambda: host.state["pendingMessageCount"] == 2)
        self.assertEqual(host.state["queue"], {"steering": ["sooner"], "followUp": ["later"]})
        self.open_gate(host, "a")
        await recorder.when_settled()
        self.assertEqual(recorder.all("user_message"), ["[[gate a]]", "sooner", "later"])
        self.assertEqual(recorder.all("run_started"), [None])
        self.assertEqual(host.state["pendingMessageCount"], 0)

    @deferred
    async def test_clear_queue(self: Any) -> None:
        """Clearing the queue gives the texts back and leaves the run alone."""
        host, recorder = await self.started()
        await host.prompt("p1", "[[gate a]]", "normal")
        await recorder.when(lambda: bool(recorder.all("user_message")))
        await host.prompt("p2", "later", "normal")
        self.assertEqual(await host.clear_queue(), {"steering": [], "followUp": ["later"]})
        self.open_gate(host, "a")
        await recorder.when_settled()
        self.assertEqual(recorder.all("user_message"), ["[[gate a]]"])

    @deferred
    async def test_abort(self: Any) -> None:
        """An abort gives queued texts back and ends the run, which says that it was aborted."""
        host, recorder = await self.started()
        await host.prompt("p1", "[[gate a]]", "normal")
        await recorder.when(lambda: bool(recorder.all("user_message")))
        await host.prompt("p2", "later", "normal")
        await host.prompt("p3", "sooner", "priority")
        queued = await host.abort()
        self.assertEqual(queued, {"steering": ["sooner"], "followUp": ["later"]})
        await recorder.when_settled()
        self.assertEqual(recorder.all("settled"), [True])
        self.assertEqual(recorder.all("assistant_message")[-1]["stopReason"], "aborted")
        self.assertFalse(host.state["isStreaming"])
        await host.prompt("p4", "next", "normal")
        await recorder.when_settled(2)
        self.assertEqual(recorder.all("user_message"), ["[[gate a]]", "next"])

    @deferred
    async def test_abort_when_idle(self: Any) -> None:
        """An abort of an idle Pi changes nothing."""
        host, recorder = await self.started()
        self.assertEqual(await host.abort(), {"steering": [], "followUp": []})
        self.assertEqual(recorder.all("settled"), [])

    @deferred
    async def test_refused_commands(self: Any) -> None:
        """Nothing is sent that is not on the list or has wrong arguments."""
        host, _ = await self.started()
        for name, arguments in (
            ("bash", {"command": "true"}),
            ("prompt", {"message": "x"}),
            ("steer", {"message": "x"}),
            ("set_steering_mode", {"mode": "all"}),
            ("set_follow_up_mode", {"mode": "all"}),
            ("set_auto_compaction", {"enabled": True}),
            ("set_auto_retry", {"enabled": True}),
            ("set_thinking_level", {"level": "bogus"}),
            ("set_thinking_level", {"level": None}),
            ("set_thinking_level", {}),
            ("set_model", {"provider": "scripted", "modelId": " "}),
            ("set_session_name", {"name": "x", "more": 1}),
            ("switch_session", {"sessionPath": "relative.jsonl"}),
            ("switch_session", {"sessionPath": "/nowhere/at/all.jsonl"}),
            ("fork", {"entryId": "../x"}),
        ):
            await self.assertFailure(host.command(name, **arguments), PiRefused)
        self.assertEqual((await host.get_state())["thinkingLevel"], "off")

    @deferred
    async def test_refused_prompts(self: Any) -> None:
        """A prompt with an unknown lane or a malformed picture is not given to Pi."""
        host, _ = await self.started()
        await self.assertFailure(host.prompt("p1", "x", "urgent"), PiRefused)
        await self.assertFailure(host.prompt("p2", None, "normal"), PiRefused)
        picture = {"data": "x", "mimeType": "text/plain"}
        for odd in (picture, None, {}):
            await self.assertFailure(host.prompt("p3", "x", "normal", [odd]), PiRefused)

    @deferred
    async def test_tool(self: Any) -> None:
        """Where tools are wanted their start, updates and end are told; the words before are a message."""
        host, recorder = await self.started()
        host.want(["tools"])
        await host.prompt("p1", "[[say 'First I look.']][[tool bash 'echo hi']]", "normal")
        await recorder.when_settled()
        names = [event[0] for event in recorder.events if event[0] != "state_changed"]
        self.assertLess(names.index("assistant_message"), names.index("tool_started"))
        (started,) = [event[1:] for event in recorder.events if event[0] == "tool_started"]
        (ended,) = [event[1:] for event in recorder.events if event[0] == "tool_ended"]
        updates = [event[1:] for event in recorder.events if event[0] == "tool_updated"]
        self.assertEqual(started[1:], ("bash", {"command": "echo hi"}))
        self.assertEqual((ended[:2], ended[3]), (started[:2], False))
        self.assertEqual(result_text(ended[2]), "hi\n")
        self.assertTrue(updates)
        self.assertEqual({update[:2] for update in updates}, {started[:2]})
        messages = [(m["text"], m["stopReason"]) for m in recorder.all("assistant_message")]
        self.assertEqual(messages[0], ("First I look.", "toolUse"))
        self.assertEqual(messages[1], ("The tool said: hi\n", "stop"))
        self.assertGreater(recorder.all("assistant_message")[1]["usage"]["output"], 0)

    @deferred
    async def test_thinking(self: Any) -> None:
        """Where thinking is wanted it is told, and it is no part of the answer."""
        host, recorder = await self.started()
        host.want(["thinking"])
        await host.prompt("p1", "[[think 'Let me see']][[say Done]]", "normal")
        await recorder.when_settled()
        self.assertEqual("".join(recorder.all("thinking_delta")), "Let me see")
        self.assertEqual("".join(recorder.all("text_delta")), "Done")
        self.assertEqual(recorder.all("assistant_message")[0]["text"], "Done")

    @deferred
    async def test_nothing_wanted(self: Any) -> None:
        """Nobody is told of tools and thinking who did not want it, or does not any more."""
        host, recorder = await self.started()
        host.want(["tools", "thinking"])
        host.want([])
        await host.prompt("p1", "[[think Hm]][[tool bash 'echo hi']]", "normal")
        await recorder.when_settled()
        told = {event[0] for event in recorder.events}
        self.assertFalse(told & {"tool_started", "tool_updated", "tool_ended", "thinking_delta"})

    @deferred
    async def test_new_session(self: Any) -> None:
        """After a new session the state names it, and observers were told."""
        host, recorder = await self.started()
        before = host.state["sessionId"]
        await host.command("new_session")
        self.assertNotEqual(host.state["sessionId"], before)
        self.assertEqual(recorder.all("state_changed")[-1]["sessionId"], host.state["sessionId"])

    @deferred
    async def test_session_name(self: Any) -> None:
        """A new session name stands in the state."""
        host, _ = await self.started()
        await host.command("set_session_name", name="parser")
        self.assertEqual(host.state["sessionName"], "parser")

    @deferred
    async def test_stop(self: Any) -> None:
        """Stopping ends a working Pi, tells observers once, and nothing can be asked after it."""
        host, recorder = await self.started()
        await host.prompt("p1", "[[gate a]]", "normal")
        await recorder.when(lambda: bool(recorder.all("user_message")))
        words = await host.stop(10.0)
        self.assertEqual(words, "exit code 0")
        self.assertEqual(recorder.all("ended"), ["Pi ended (exit code 0)"])
        self.assertEqual(await host.stop(10.0), words)
        await self.assertFailure(host.prompt("p2", "x", "normal"), PiGone)
        await self.assertFailure(host.get_state(), PiGone)

    @deferred
    async def test_killed(self: Any) -> None:
        """A killed Pi is told as ended with the signal; what is asked then fails as unknown."""
        host, recorder = await self.started()
        await host.prompt("p1", "[[gate a]]", "normal")
        await recorder.when(lambda: bool(recorder.all("user_message")))
        self.kill(host)
        await recorder.when(lambda: bool(recorder.all("ended")))
        self.assertIn("SIGKILL", recorder.all("ended")[0])
        self.assertEqual(recorder.all("settled"), [])
        await self.assertFailure(host.prompt("p2", "x", "normal"), PiGone)

"""Commands over the bus: validated, executed once, refused with the right word."""

from __future__ import annotations

import json
import os
from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.errors import PiCancelled, PiGone, PiRefused, Refusal
from pitelegram.worker.port import MAX_MESSAGE, control_delivery_id
from pitelegram.worker.sessionmemory import SessionMemory
from tests.worker.test_queue import RigCase


class ControlCase(RigCase):
    """Sends commands."""

    def command(self, request_id: str, **command: Any) -> Any:
        """Execute one and return its result, or the refusal's code."""
        done: Deferred[Any] = self.rig.parts.follower.control(request_id, command)
        result: list[Any] = []
        done.addBoth(result.append)
        self.rig.run()
        self.assertEqual(len(result), 1, "the command is not done")
        value = result[0]
        if getattr(value, "check", None) and value.check(Refusal):
            return value.value.code
        return value


class Prompts(ControlCase):
    """C{prompt} and C{steer}."""

    def test_prompt(self) -> None:
        """It is an inbox row like all others; the text goes to Pi as it stands."""
        self.started()
        result = self.command("r/1 ü", type="prompt", message="hello")
        self.assertEqual(result, {"deliveryId": control_delivery_id("r/1 ü")})
        self.assertEqual(self.rig.host.prompts[0][1], "hello")
        self.assertEqual(self.rig.link.texts, ["You said: hello"])

    def test_same_request_runs_once(self) -> None:
        """Also by the next process of the binding."""
        self.started()
        first = self.command("r", type="prompt", message="hello")
        self.assertEqual(self.command("r", type="prompt", message="hello"), first)
        self.rig.crash()
        self.rig.start()
        self.assertEqual(self.command("r", type="prompt", message="hello"), first)
        self.assertEqual(self.rig.prompts(), [])
        self.assertEqual(len(self.rig.inbox.rows("settled")), 1)

    def test_same_id_for_other_content(self) -> None:
        """A collision, whatever the commands are."""
        self.started()
        self.command("r", type="prompt", message="hello")
        for other in (
            {"type": "prompt", "message": "other"},
            {"type": "steer", "message": "hello"},
            {"type": "abort"},
        ):
            self.assertEqual(self.command("r", **other), "request-id-collision")

    def test_refused(self) -> None:
        """Empty, too long, a slash command, a wrong type."""
        self.started()
        for message, code in (
            ("", "invalid-command"),
            (" \n", "invalid-command"),
            ("/new", "invalid-command"),
            ("  /compact now", "invalid-command"),
            (None, "invalid-command"),
            (7, "invalid-command"),
            ("x" * (MAX_MESSAGE + 1), "command-too-large"),
        ):
            self.assertEqual(self.command("r", type="prompt", message=message), code)
        self.assertEqual(
            self.command("r", type="prompt", message="x", deliverAs="now"), "invalid-command"
        )
        self.assertEqual(self.rig.states(), {})

    def test_longest(self) -> None:
        """200,000 characters pass, and so does a path."""
        self.started()
        self.command("a", type="prompt", message="x" * MAX_MESSAGE)
        self.command("b", type="prompt", message="/ is the root")
        self.rig.run(1)
        self.assertEqual(len(self.rig.host.prompts), 2)

    def test_committed_before_the_answer(self) -> None:
        """When the answer is there, so is the row, even if the process is killed then."""
        self.started()
        self.command("r", type="prompt", message="[[gate a]]")
        self.command("s", type="prompt", message="held")
        self.rig.crash()
        self.assertEqual(self.rig.states(), {"handed": 1, "held": 1})


class Commands(ControlCase):
    """Everything else."""

    def test_types_that_are_refused(self) -> None:
        """C{bash} first of all."""
        self.started()
        for kind in (
            "bash",
            "follow_up",
            "set_steering_mode",
            "set_auto_retry",
            "quit",
            "",
            None,
            7,
            [],
        ):
            self.assertEqual(self.command("r", type=kind), "invalid-command")
        for kind in ("fork", "clone"):
            self.assertEqual(self.command("r", type=kind), "unsupported")
        self.assertEqual(self.rig.host.commands, [])

    def test_state_is_never_an_old_one(self) -> None:
        """A read with an id that was used before is asked anew, and leaves nothing in the ledger."""
        self.started()
        before = self.command("", type="get_state")
        self.command("n", type="new_session")
        after = self.command("", type="get_state")
        self.assertNotEqual(before["sessionId"], after["sessionId"])
        self.assertIsNone(self.rig.inbox.ledger(""))

    def test_get_state(self) -> None:
        """The heartbeat's state and more, as JSON."""
        self.started()
        state = self.command("r", type="get_state")
        json.dumps(state)
        self.assertEqual(
            (state["activity"], state["piReady"], state["queued"], state["spawnId"]),
            ("idle", True, 0, "spawn"),
        )

    def test_abort(self) -> None:
        """It ends the run, once per request id."""
        self.started()
        self.rig.message("[[gate a]]")
        self.assertEqual(self.command("r", type="abort"), {"aborted": True})
        self.rig.message("[[gate b]]")
        self.assertEqual(self.command("r", type="abort"), {"aborted": True})
        self.assertEqual(self.rig.states(), {"settled": 1, "handed": 1})
        self.assertEqual(self.command("s", type="abort"), {"aborted": True})
        self.assertEqual(self.command("t", type="abort"), {"aborted": False})

    def test_clear_queue(self) -> None:
        """Held prompts and those in Pi's own queue are dropped; what runs goes on."""
        self.started()
        self.rig.message("[[gate a]]")
        self.command("s", type="steer", message="sooner")
        self.rig.message("held")
        self.assertEqual(self.command("r", type="clear_queue"), {"cleared": 2})
        self.rig.host.open_gate("a")
        self.rig.run(1)
        self.assertEqual(self.rig.link.texts, ["After the gate a."])
        self.assertEqual(self.rig.states(), {"settled": 1, "skipped": 2})

    def test_settings(self) -> None:
        """Model and thinking level are validated before Pi hears of them."""
        self.started()
        self.assertEqual(
            self.command("a", type="set_thinking_level", level="bogus"), "invalid-command"
        )
        self.assertEqual(
            self.command("b", type="set_thinking_level", level="high"), {"level": "high"}
        )
        self.assertEqual(
            self.command("c", type="set_model", provider="scripted"), "invalid-command"
        )
        self.assertEqual(
            self.command("d", type="set_model", provider="scripted", modelId="m"),
            {"provider": "scripted", "modelId": "m"},
        )
        self.assertEqual(
            self.rig.host.commands,
            [
                ("set_thinking_level", {"level": "high"}),
                ("set_model", {"provider": "scripted", "modelId": "m"}),
            ],
        )

    def test_failures_have_their_words(self) -> None:
        """Refused, cancelled and lost are told apart, and the answer is kept."""
        self.started()
        for number, (error, code) in enumerate(
            (
                (PiRefused("Nothing to compact"), "execution-failed"),
                (PiCancelled("cancelled"), "cancelled"),
                (PiGone("Pi ended"), "execution-failed"),
            )
        ):
            self._fail_with(error)
            self.assertEqual(self.command(f"r{number}", type="compact"), code)
            del self.rig.host.command
            self.assertEqual(self.command(f"r{number}", type="compact"), code)
        self.assertEqual(self.rig.host.commands, [])

    def _fail_with(self, error: Exception) -> None:
        from twisted.internet.defer import fail

        self.rig.host.command = lambda *names, **arguments: fail(error)

    def test_begun_by_a_killed_worker(self) -> None:
        """Nobody can tell whether it was done: it is not done again."""
        self.started()
        never: Deferred[Any] = Deferred()
        self.rig.host.command = lambda *names, **arguments: never
        self.rig.parts.follower.control("r", {"type": "compact"})
        self.rig.run()
        self.rig.crash()
        self.rig.start()
        self.assertEqual(self.command("r", type="compact"), "execution-failed")
        self.assertTrue(self._is_uncertain("r", type="compact"))
        self.assertEqual(self.rig.host.commands, [])

    def test_only_an_unknown_outcome_is_uncertain(self) -> None:
        """Without Pi's answer nobody can tell, now and later; what Pi refused was certainly not done."""
        self.started()
        errors = (PiGone("Pi ended"), PiRefused("no"), PiCancelled("cancelled"))
        for error, uncertain in zip(errors, (True, False, False), strict=True):
            self._fail_with(error)
            for _ in range(2):
                found = self._is_uncertain(type(error).__name__, type="compact")
                self.assertIs(found, uncertain, error)

    def _is_uncertain(self, request_id: str, **command: Any) -> bool:
        asking = self.rig.parts.follower.control(request_id, command)
        self.rig.run()
        return self.failureResultOf(asking, Refusal).value.fields.get("uncertain", False)

    def test_repeat_while_it_runs(self) -> None:
        """It waits for the first one's result."""
        self.started()
        result: Deferred[Any] = Deferred()
        calls = []
        self.rig.host.command = lambda *names, **arguments: calls.append(names) or result
        both = [self.rig.parts.follower.control("r", {"type": "compact"}) for _ in range(2)]
        self.rig.run()
        result.callback({"tokensBefore": 10, "summary": "secret"})
        self.assertEqual([self.successResultOf(each) for each in both], [{"tokensBefore": 10}] * 2)
        self.assertEqual(len(calls), 1)

    def test_new_session(self) -> None:
        """The new session is remembered and reported."""
        self.started()
        result = self.command("r", type="new_session")
        self.assertEqual(result["sessionId"], "fake-2")
        self.assertEqual(self.rig.parts.report.state()["sessionId"], "fake-2")
        self.assertEqual(SessionMemory(self.rig.inbox).now().session_id, "fake-2")

    def test_before_pi_is_up(self) -> None:
        """Commands for Pi are refused, prompts wait."""
        from pitelegram.testing.pihost import FakePiHost

        host = FakePiHost(self.rig.clock)
        starting: Deferred[Any] = Deferred()
        host.start = lambda: starting
        self.rig.start(host)
        self.assertEqual(self.command("a", type="new_session"), "execution-failed")
        self.assertEqual(self.command("b", type="abort"), {"aborted": False})
        self.command("c", type="prompt", message="x")
        self.assertFalse(self.command("d", type="get_state")["piReady"])
        self.assertEqual(self.rig.states(), {"held": 1})
        host._ready = True
        starting.callback(host.state)
        self.rig.run()
        self.assertEqual(self.rig.prompts(), ["x"])


class SwitchSession(ControlCase):
    """C{switch_session} (D7)."""

    def _file(self, name: str = "a.jsonl", cwd: str | None = None, below: bool = True) -> str:
        base = self.rig.paths.pi_sessions if below else self.rig.base
        path = base / name
        path.parent.mkdir(exist_ok=True, parents=True)
        header = {"type": "session", "version": 3, "id": "x", "cwd": cwd or str(self.rig.project)}
        path.write_text(json.dumps(header) + "\n")
        return str(path)

    def test_allowed(self) -> None:
        """A session of this project below Pi's own sessions."""
        self.started()
        path = self._file()
        self.command("r", type="switch_session", sessionPath=path)
        self.assertEqual(self.rig.host.commands, [("switch_session", {"sessionPath": path})])

    def test_refused(self) -> None:
        """Elsewhere, relative, missing, damaged, through a link, or working outside."""
        self.started()
        outside = self._file(below=False)
        link = self.rig.paths.pi_sessions / "link.jsonl"
        link.parent.mkdir(exist_ok=True)
        os.symlink(outside, link)
        damaged = self.rig.paths.pi_sessions / "bad.jsonl"
        damaged.write_text("{}\n")
        for number, path in enumerate(
            (
                outside,
                str(link),
                str(damaged),
                "a.jsonl",
                str(self.rig.paths.pi_sessions / "missing.jsonl"),
                self._file("etc.jsonl", cwd="/etc"),
                self._file("gone.jsonl", cwd=str(self.rig.project / "gone")),
                f"{self.rig.paths.pi_sessions}/../../session.jsonl",
                None,
            )
        ):
            code = self.command(f"r{number}", type="switch_session", sessionPath=path)
            self.assertEqual(code, "invalid-command", path)
        self.assertEqual(self.rig.host.commands, [])

    def test_in_use(self) -> None:
        """Two Pis in one session would fork it."""
        from pitelegram.kernel.flock import FileLock

        self.started()
        path = self._file()
        lock = FileLock.try_acquire(self.rig.paths.session_lock(path))
        self.assertEqual(
            self.command("a", type="switch_session", sessionPath=path), "execution-failed"
        )
        assert lock is not None
        lock.release()
        self.assertEqual(self.rig.host.commands, [])
        self.command("b", type="switch_session", sessionPath=path)
        self.assertEqual(len(self.rig.host.commands), 1)


class Dialogs(ControlCase):
    """Questions of Pi's extensions."""

    def _ask(self, ref: str = "d1", method: str = "select", **more: Any) -> None:
        options = {"options": ["a", "b"]} if method == "select" else {}
        self.rig.host.ask({"id": ref, "method": method, "title": "Which?", **options, **more})
        self.rig.run()

    def test_answered(self) -> None:
        """Once, in the right form; a late answer says so."""
        self.started()
        self._ask()
        self.assertIn("Which?", self.rig.link.api_calls[0][1]["text"])
        state = self.command("s", type="get_state")
        self.assertTrue(state["waitingForInput"])
        self.assertEqual(
            state["dialogs"],
            [{"dialogRef": "d1", "method": "select", "title": "Which?", "options": ["a", "b"]}],
        )
        for number, wrong in enumerate(
            ({"confirmed": True}, {"value": 7}, {"cancelled": False}, {})
        ):
            self.assertEqual(
                self.command(f"w{number}", type="answer", dialogRef="d1", **wrong),
                "invalid-command",
            )
        self.assertEqual(self.command("a", type="answer", dialogRef="d1", value="b"), {})
        self.assertEqual(
            self.command("b", type="answer", dialogRef="d1", value="a"), "execution-failed"
        )
        self.assertEqual(self.rig.host.dialog_answers, [("d1", {"value": "b"})])

    def test_cancelled_after_two_minutes(self) -> None:
        """Pi is never blocked for ever."""
        self.started()
        self._ask(method="editor")
        self.rig.run(121)
        self.assertEqual(self.rig.host.dialog_answers, [("d1", {"cancelled": True})])
        self.assertFalse(self.rig.parts.report.state()["waitingForInput"])

    def test_own_time_out(self) -> None:
        """Pi answers itself then; nothing more is said to it."""
        self.started()
        self._ask(timeout=700)
        self.rig.run(1)
        self.assertEqual(self.rig.host.dialog_answers, [])
        self.assertEqual(
            self.command("a", type="answer", dialogRef="d1", value="a"), "execution-failed"
        )

    def test_ninth_is_cancelled(self) -> None:
        """At most eight are open."""
        self.started()
        for number in range(9):
            self._ask(f"d{number}", "confirm")
        self.assertEqual(self.rig.host.dialog_answers, [("d8", {"cancelled": True})])
        self.assertEqual(self.command("a", type="answer", dialogRef="d0", confirmed=False), {})

    def test_notices_need_no_answer(self) -> None:
        """C{notify} opens nothing."""
        self.started()
        self._ask(method="notify", message="x")
        self.assertEqual(self.rig.host.dialog_answers, [])
        self.assertFalse(self.rig.parts.report.state()["waitingForInput"])

"""The real worker process with the real Pi and a scripted model."""

from __future__ import annotations

import os
import secrets
import signal
from pathlib import Path
from random import Random
from typing import Any

from twisted.trial.unittest import TestCase

from pitelegram.bridge import labels
from pitelegram.errors import BusError
from pitelegram.ids import managed_binding
from pitelegram.kernel.birth import process_birth
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.flock import is_free
from pitelegram.kernel.paths import Paths
from pitelegram.sandbox.directives import long_text
from pitelegram.sandbox.model import ScriptedModel
from pitelegram.testing.leader import MemoryLeader
from pitelegram.testing.leaderlink import shown
from pitelegram.testing.pienv import make_agent_dir, pi_command, pi_environment
from pitelegram.testing.workerprocess import WorkerProcess, spawn_worker

SPEC = "0123456789abcdef"
BINDING = managed_binding(SPEC)


class ProcessCase(TestCase):
    """A leader, a model and any number of worker processes of one binding."""

    timeout = 90

    def setUp(self) -> None:
        """Start model and leader."""
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.base = Path(self.mktemp()).resolve()
        self.project = self.base / "atlas"
        self.project.mkdir(parents=True)
        self.model = ScriptedModel(self.reactor, self.reactor)
        self.model.startService()
        agent_dir = make_agent_dir(self.base, self.model)
        self.paths = Paths(agent_dir)
        self.paths.prepare()
        self.environment = pi_environment(agent_dir)
        self.leader = MemoryLeader(self.reactor, self.paths)
        self.leader.start()
        self.processes: list[WorkerProcess] = []
        # The spawn id marks processes: those of another run on this machine must not match.
        self.spawn_id = ""

    @deferred
    async def tearDown(self) -> None:
        """End everything."""
        for process in self.processes:
            if not process.ended.fired:
                process.kill()
            await process.ended.when()
        await self.until(lambda: is_free(self.paths.worker_lock(BINDING)))
        await self.leader.stop()
        await self.model.stopService()

    def until(self, condition: Any, seconds: float = 30.0) -> Any:
        """Wait for it."""
        return self.leader.until(condition, seconds)

    def spawn(self, *more: str, pi: list[str] | None = None, **options: Any) -> WorkerProcess:
        """Start a worker process."""
        self.spawn_id = spawn_id = secrets.token_hex(16)
        credential = options.pop("credential", None) or self.leader.credential(SPEC, spawn_id)
        environment = {**self.environment, **options.pop("environment", {})}
        process = spawn_worker(
            self.reactor,
            self.paths,
            SPEC,
            spawn_id,
            credential,
            options.pop("directory", self.project),
            options.pop("raw_pi", None) or pi or pi_command(),
            environment,
            more,
            **options,
        )
        self.processes.append(process)
        return process

    @deferred
    async def ready(self, *more: str) -> WorkerProcess:
        """Start a worker process and wait until it is ready."""
        await self.until(lambda: is_free(self.paths.worker_lock(BINDING)))
        process = self.spawn(*more)
        spawn_id = self.spawn_id
        await self.until(lambda: process.ended.fired or self.leader.ready(BINDING, spawn_id))
        if process.ended.fired:
            raise AssertionError(f"the worker ended: {process.log()}")
        return process

    async def say(self, number: int, text: str) -> None:
        """Send a message and check its receipt."""
        answer = await self.leader.message(BINDING, number, text)
        self.assertEqual(answer["settlement"], "accepted")

    def asked(self, text: str) -> int:
        """How many model requests end with a prompt that holds C{text}."""
        return sum(text in request.text for request in self.model.requests)

    @property
    def state(self) -> dict[str, Any]:
        """The last heartbeat's state."""
        return self.leader.states[BINDING]


class Talking(ProcessCase):
    """A worker that is left alone."""

    @deferred
    async def test_prompt_and_answer(self) -> None:
        """A message reaches Pi, its answer the leader, once; the end is clean."""
        process = await self.ready()
        await self.say(1, "[[say 'the answer']]")
        await self.until(lambda: "the answer" in self.leader.texts)
        await self.until(lambda: self.state["activity"] == "idle")
        self.assertEqual(self.asked("the answer"), 1)
        self.assertTrue(self.state["sessionFile"].startswith(str(self.paths.pi_sessions)))
        self.assertEqual(process_birth(self.state["piPid"]), self.state["piBirthId"])
        pi = self.state["piPid"]
        process.kill(signal.SIGTERM)
        self.assertEqual(await process.ended.when(), 0)
        self.assertIsNone(process_birth(pi))
        self.assertTrue(is_free(self.paths.worker_lock(BINDING)))
        self.assertEqual(self.leader.goodbyes, [(BINDING, "quit")])
        self.assertEqual(len(self.leader.texts), 1)

    @deferred
    async def test_thirty_thousand_characters(self) -> None:
        """Their beginning is a message within the limit, and all of them are in a file behind it."""
        await self.ready()
        await self.say(1, "[[long 30000]]")
        await self.until(lambda: self.leader.spooled)
        [text] = self.leader.texts
        self.assertEqual(text[:3000], long_text(30_000)[:3000])
        self.assertLessEqual(len(text), 4096)
        self.assertEqual(self.leader.spooled, [long_text(30_000).encode()])

    @deferred
    async def test_leader_away(self) -> None:
        """Without a leader the work goes on; the answer is submitted to the next one."""
        await self.ready()
        await self.say(1, "[[gate g]]")
        await self.until(lambda: self.asked("gate g"))
        await self.leader.stop()
        self.model.open_gate("g")
        await self.until(lambda: self._stored_answers() == 1)
        self.leader.start()
        await self.until(lambda: len(self.leader.texts) == 1)
        await self.until(lambda: self._stored_answers() == 0)

    @deferred
    async def test_control(self) -> None:
        """Prompt and state over the control command; the same request id runs once."""
        await self.ready()
        link = self.leader.links[BINDING]
        command = {"type": "prompt", "message": "[[say controlled]]"}
        first = await link.control("r1", command)
        self.assertEqual(await link.control("r1", command), first)
        await self.until(lambda: "controlled" in self.leader.texts)
        self.assertEqual(self.asked("controlled"), 1)
        result = await link.control("r2", {"type": "get_state"})
        self.assertTrue(result["piReady"])

    @deferred
    async def test_abort(self) -> None:
        """A hanging run ends, and the queue goes on."""
        await self.ready()
        await self.say(1, "[[gate never]]")
        await self.until(lambda: self.asked("gate never"))
        await self.say(2, "[[say next]]")
        await self.say(3, "/abort")
        await self.until(lambda: "next" in self.leader.texts)
        self.assertTrue(any("⏹ Aborted." in text for text in self.leader.texts))
        self.assertIn("Aborted current turn.", self.leader.texts)

    @deferred
    async def test_drain(self) -> None:
        """A drained worker finishes what runs, hands nothing more, and exits with 0."""
        process = await self.ready()
        await self.say(1, "[[gate g]]")
        await self.until(lambda: self.asked("gate g"))
        await self.say(2, "[[say later]]")
        await self.leader.links[BINDING].shutdown("drain", 20_000)
        await self.until(lambda: self.state.get("stopPhase") == "draining")
        self.model.open_gate("g")
        self.assertEqual(await process.ended.when(), 0)
        self.assertEqual(len(self.leader.texts), 1)
        self.assertEqual(self.asked("later"), 0)
        await self.ready()
        await self.until(lambda: "later" in self.leader.texts)
        self.assertEqual(self.asked("gate g"), 1)

    @deferred
    async def test_footprint(self) -> None:
        """No OpenSSL in the process, and little memory (Linux tells both)."""
        process = await self.ready()
        maps = Path(f"/proc/{process.pid}/maps")
        if not maps.exists():
            return
        loaded = maps.read_text()
        self.assertNotIn("libssl", loaded)
        self.assertNotIn("libcrypto", loaded)
        status = Path(f"/proc/{process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        self.assertLess(int(line.split()[1]), 45 * 1024)

    @deferred
    async def test_tools_do_not_hold_the_lock(self) -> None:
        """What Pi's tools leave running keeps no copy of the binding's lock."""
        process = await self.ready()
        await self.say(1, "[[tool bash sleep 61 >/dev/null 2>&1 </dev/null & ]][[say done]]")
        await self.until(lambda: "done" in self.leader.texts)
        await process.kill()
        await self.until(lambda: is_free(self.paths.worker_lock(BINDING)), 5)

    def _stored_answers(self) -> int:
        import sqlite3

        path = self.paths.worker_database(BINDING)
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])
        finally:
            connection.close()


class Killed(ProcessCase):
    """C{kill -9} at the worst moments."""

    @deferred
    async def _three(self, first: str) -> WorkerProcess:
        """One prompt handed, two held."""
        process = await self.ready()
        await self.say(1, first)
        await self.until(lambda: self.asked(first))
        await self.say(2, "[[say two]]")
        await self.say(3, "[[say three]]")
        return process

    @deferred
    async def _again(self, process: WorkerProcess) -> WorkerProcess:
        """Kill it and start the next one."""
        session = self.state["sessionFile"]
        await process.kill()
        return await self.ready("--session", session)

    @deferred
    async def test_handed_prompt_of_unknown_fate(self) -> None:
        """It is not repeated: the operator gets a button, which repeats it once."""
        await self._again(await self._three("[[gate g]]"))
        await self.until(lambda: "three" in self.leader.texts)
        self.assertEqual(self.asked("gate g"), 1)
        self.assertEqual([self.asked(text) for text in ("say two", "say three")], [1, 1])
        notice = next(name for name in self.leader.deliveries if name.startswith("uncertain-"))
        (call,) = self.leader.deliveries[notice]["calls"]
        self.assertIn("gate g", shown(call))
        (button,) = call["params"]["reply_markup"]["inline_keyboard"][0]
        self.assertEqual(button["text"], "🔁 Send again")
        self.model.open_gate("g")
        for number in (4, 5):
            await self._press(number, button["callback_data"])
        await self.until(lambda: any("After the gate g" in text for text in self.leader.texts))
        await self.until(lambda: self.state["activity"] == "idle")
        self.assertEqual(self.asked("gate g"), 2)
        told = [params["text"] for method, params in self.leader.api_calls if "text" in params]
        self.assertEqual(told, [labels.AGAIN_SENT, labels.AGAIN_GONE])

    async def _press(self, number: int, data: str) -> None:
        message = {"message_id": 50, "chat": {"id": 100}, "message_thread_id": 7}
        body = {"id": str(number), "data": data, "message": message}
        await self.leader.forward(BINDING, number, "callback_query", body)

    @deferred
    async def test_handed_prompt_that_pi_finished(self) -> None:
        """Its answer is taken from the session file and delivered once."""
        process = await self._three("[[gate g]]")
        os.kill(process.pid, signal.SIGSTOP)
        self.model.open_gate("g")
        session = Path(self.state["sessionFile"])
        await self.until(lambda: b"After the gate g" in session.read_bytes())
        await self._again(process)
        await self.until(lambda: "three" in self.leader.texts)
        answers = [text for text in self.leader.texts if "After the gate g" in text]
        self.assertEqual(len(answers), 1)
        self.assertEqual([self.asked(text) for text in ("gate g", "say two", "say three")], [1] * 3)
        self.assertFalse(any(name.startswith("uncertain-") for name in self.leader.deliveries))

    @deferred
    async def test_handed_prompt_that_pi_never_saw(self) -> None:
        """It runs after the restart."""
        process = await self.ready()
        await self.say(1, "[[say before]]")
        await self.until(lambda: "before" in self.leader.texts)
        await self.until(lambda: self.state["activity"] == "idle")
        os.kill(self.state["piPid"], signal.SIGSTOP)
        await self.say(2, "[[say one]]")
        await self.say(3, "[[say two]]")
        await self.until(lambda: self._handed() == 1)
        pi = self.state["piPid"]
        session = self.state["sessionFile"]
        await process.kill()
        os.kill(pi, signal.SIGKILL)
        await self.ready("--session", session)
        await self.until(lambda: "two" in self.leader.texts)
        self.assertEqual(self.leader.texts, ["before", "one", "two"])
        self.assertEqual([self.asked(f"say {text}") for text in ("one", "two")], [1, 1])

    def _handed(self) -> int:
        import sqlite3

        path = self.paths.worker_database(BINDING)
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            query = "SELECT count(*) FROM inbox WHERE state = 'handed'"
            return int(connection.execute(query).fetchone()[0])
        finally:
            connection.close()

    @deferred
    async def test_pi_is_killed(self) -> None:
        """The worker ends with 70 and says why; the next one goes on in the same session."""
        process = await self._three("[[gate g]]")
        session, session_id = self.state["sessionFile"], self.state["sessionId"]
        os.kill(self.state["piPid"], signal.SIGKILL)
        self.assertEqual(await process.ended.when(), 70)
        self.assertIn("SIGKILL", self.state["lastError"])
        await self.ready("--session", session)
        self.assertEqual(self.state["sessionId"], session_id)
        await self.until(lambda: "three" in self.leader.texts)
        self.assertEqual(self.asked("gate g"), 1)


class KilledAtRandom(ProcessCase):
    """Worker or Pi killed at any moment, several times."""

    PROMPTS = 8

    @deferred
    async def test_each_prompt_runs_once_or_is_uncertain(self) -> None:
        """Offered until receipted, as the leader does; the last process is left alone."""
        random = Random(7)
        waiting = list(range(1, self.PROMPTS + 1))
        for last in (False,) * 4 + (True,):
            process = await self.ready()
            if not last:
                self.reactor.callLater(random.uniform(0.0, 0.5), self._strike, process, random)
            while waiting and not process.ended.fired:
                if await self._offer(waiting[0]):
                    waiting.pop(0)
                await sleep(self.reactor, random.uniform(0.0, 0.1))
            if not last:
                await process.ended.when()
        await self.until(lambda: all(self._fate(number) for number in range(1, self.PROMPTS + 1)))
        await self.until(lambda: self.state["activity"] == "idle")
        for number in range(1, self.PROMPTS + 1):
            answered, uncertain = self._answers(number), self._notices(number)
            self.assertEqual(answered + uncertain, 1, f"p{number}: {self.leader.texts}")
            self.assertIn(self.asked(f"p{number} "), (1,) if answered else (0, 1))

    def _strike(self, process: WorkerProcess, random: Random) -> None:
        victim = process.pid if random.random() < 0.6 else self.state.get("piPid", process.pid)
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()

    async def _offer(self, number: int) -> bool:
        if BINDING not in self.leader.links:
            return False
        text = f"p{number} [[slow seconds=0.1 chunks=5 text='done p{number}.']]"
        try:
            answer = await self.leader.message(BINDING, number, text)
        except BusError:
            return False
        return bool(answer["settlement"] == "accepted")

    def _answers(self, number: int) -> int:
        return sum(text.count(f"done p{number}.") for text in self._texts("final-"))

    def _notices(self, number: int) -> int:
        return sum(text.count(f"p{number} ") for text in self._texts("uncertain-"))

    def _fate(self, number: int) -> int:
        return self._answers(number) + self._notices(number)

    def _texts(self, prefix: str) -> list[str]:
        return [
            shown(call)
            for name, delivery in self.leader.deliveries.items()
            if name.startswith(prefix)
            for call in delivery["calls"]
        ]


class Refusing(ProcessCase):
    """Starts that cannot work."""

    @deferred
    async def test_second_process(self) -> None:
        """The binding's lock is taken: 75, and the first goes on."""
        first = await self.ready()
        second = self.spawn(locked=False)
        self.assertEqual(await second.ended.when(), 75)
        self.assertFalse(first.ended.fired)

    @deferred
    async def test_no_executable(self) -> None:
        """A missing Pi is permanent, and the leader hears the reason."""
        process = self.spawn(pi=["/nowhere/pi"])
        self.assertEqual(await process.ended.when(), 78)
        self.assertIn("/nowhere/pi", self.state["lastError"])

    @deferred
    async def test_arguments_that_pi_refuses(self) -> None:
        """A Pi that does not know its arguments is permanent."""
        process = self.spawn(pi=[*pi_command(), "--no-such-option"])
        self.assertEqual(await process.ended.when(), 78)

    @deferred
    async def test_damaged_session(self) -> None:
        """A file that is no session is left alone, and permanent."""
        damaged = self.base / "damaged.jsonl"
        damaged.write_text("no session\n")
        process = self.spawn("--session", str(damaged))
        self.assertEqual(await process.ended.when(), 78)
        self.assertEqual(damaged.read_text(), "no session\n")

    @deferred
    async def test_lost_session(self) -> None:
        """A session file that is gone is said aloud, and Pi starts there."""
        missing = self.paths.pi_sessions / "gone.jsonl"
        await self.ready("--session", str(missing))
        await self.until(lambda: any("session file is gone" in text for text in self.leader.texts))
        self.assertEqual(self.state["sessionFile"], str(missing))

    @deferred
    async def test_damaged_store(self) -> None:
        """It is moved aside, and the operator is told."""
        path = self.paths.worker_database(BINDING)
        path.write_bytes(b"no database at all, and long enough to look like one" * 100)
        path.chmod(0o600)
        await self.ready()
        await self.until(lambda: any("store was damaged" in text for text in self.leader.texts))
        await self.say(1, "[[say hello]]")
        await self.until(lambda: "hello" in self.leader.texts)

    @deferred
    async def test_command_that_cannot_be_read(self) -> None:
        """An open quote in the setting is permanent, and the leader hears the reason."""
        process = self.spawn(raw_pi="pi 'open")
        self.assertEqual(await process.ended.when(), 78)
        self.assertIn("workers.command", self.state["lastError"])

    @deferred
    async def test_wrong_credential(self) -> None:
        """A credential that the leader does not know ends the worker with 69."""
        self.leader.credential(SPEC, "another")
        process = self.spawn(credential=b"x" * 32)
        self.assertEqual(await process.ended.when(), 69)

    @deferred
    async def test_no_credential(self) -> None:
        """Without one the worker does not start."""
        process = self.spawn(credential=b"short")
        self.assertEqual(await process.ended.when(), 69)

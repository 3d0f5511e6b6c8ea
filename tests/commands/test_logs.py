"""C{logs}."""

import json
import os
import sys

from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher

from pitelegram.commands.logs import Follower
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.logs import ROTATE_BYTES, JsonLinesObserver
from pitelegram.store.leadership import Leadership
from pitelegram.supervisor.life import State
from pitelegram.supervisor.voice import Voice
from pitelegram.testing.stores import leader_database
from pitelegram.testing.system import Program
from tests.commands.support import CommandCase


class LogsTests(CommandCase):
    """Events from the files."""

    def log(self, *messages, path=None, **fields):
        """Append events."""
        with open(path or self.paths.logs, "a") as file:
            for message in messages:
                event = {"at_ms": 1000, "level": "warn", "message": message, **fields}
                file.write(json.dumps(event) + "\n")

    @deferred
    async def test_shows(self):
        """The newest events across the rotation, as text or as JSON."""
        self.log("one", "two", path=self.paths.logs_previous)
        self.log("three", "\033[31mred", traceback="line 1\nline 2")
        ended = await self.cli("logs", "-n", "3")
        self.assertEqual(ended.code, 0)
        self.assertNotIn("one", ended.out)
        self.assertRegex(ended.out, r"(?s)warn +two\n.*warn +three\n    line 1\n    line 2\n")
        self.assertNotIn("\033", ended.out)
        ended = await self.cli("logs", "--json")
        messages = [json.loads(line)["message"] for line in ended.out.splitlines()]
        self.assertEqual(messages, ["one", "two", "three", "\033[31mred"])

    @deferred
    async def test_worker(self):
        """Events of one worker."""
        self.log("of blue", fields={"worker": "blue"})
        self.log("of red", fields={"name": "red"})
        self.log("of nobody")
        self.assertRegex(
            (await self.cli("logs", "--worker", "blue")).out, r"\A\S+ \S+ warn +of blue\n\Z"
        )
        self.assertRegex(
            (await self.cli("logs", "--worker", "red")).out, r"\A\S+ \S+ warn +of red\n\Z"
        )

    @deferred
    async def test_none(self):
        """Without events that is said, with exit code 1."""
        ended = await self.cli("logs")
        self.assertEqual((ended.code, ended.out), (1, ""))

    def texts(self, events):
        """The messages of events."""
        return [event["message"] for event in events]

    def test_follows(self):
        """New events once each, over a rotation, and never half a line."""
        self.log("a")
        follower = Follower(self.paths)
        self.assertEqual(self.texts(follower.past()), ["a"])
        self.log("b")
        self.assertEqual(self.texts(follower.new()), ["b"])
        self.assertEqual(self.texts(follower.new()), [])
        with open(self.paths.logs, "a") as file:
            file.write('{"message":"c"')
        self.assertEqual(self.texts(follower.new()), [])
        with open(self.paths.logs, "a") as file:
            file.write("}\nnonsense\n")
        self.assertEqual(self.texts(follower.new()), ["c"])
        self.log("d")
        self.paths.logs.rename(self.paths.logs_previous)
        self.log("e")
        self.assertEqual(self.texts(follower.new()), ["d", "e"])

    def test_follows_from_nothing(self):
        """A log that is not there yet is followed from its beginning."""
        follower = Follower(self.paths)
        self.assertEqual(self.texts(follower.past()), [])
        self.log("first")
        self.assertEqual(self.texts(follower.new()), ["first"])

    def test_emptied(self):
        """A log that somebody emptied is read from its beginning."""
        self.log("a long line that is gone", "another")
        follower = Follower(self.paths)
        list(follower.past())
        self.paths.logs.write_text("")
        self.log("b")
        self.assertEqual(self.texts(follower.new()), ["b"])

    def observe(self, **how):
        """Have the process's log written as the daemon has it."""
        observer = JsonLinesObserver(self.paths.logs, self.paths.logs_previous, **how)
        globalLogPublisher.addObserver(observer)
        self.addCleanup(observer.close)
        self.addCleanup(globalLogPublisher.removeObserver, observer)
        return observer

    def voices(self, *names):
        """What speaks for workers of these names."""
        database = leader_database(Clock())
        self.addCleanup(database.stopService)
        leadership = Leadership(database)
        return [
            Voice(leadership, None, name, f"spec-{name}", name, Clock().seconds) for name in names
        ]

    @deferred
    async def test_supervision(self):
        """Who did what to a worker, and why; of one worker alone when that is asked."""
        self.observe()
        blue, red = self.voices("blue", "red")
        blue.transition(State.RUNNING, State.DRAINING, "operator", "a stop was asked for")
        red.transition(State.RUNNING, State.BACKOFF, "policy", "Pi ended in /home/bob/red")
        shown = (await self.cli("logs")).out
        self.assertIn("worker blue: running > draining (operator: a stop was asked for)", shown)
        self.assertIn("worker red: running > backoff (policy: Pi ended in [redacted])", shown)
        shown = (await self.cli("logs", "--worker", "red", "--json")).out
        (event,) = [json.loads(line) for line in shown.splitlines()]
        self.assertEqual(
            event["fields"],
            {
                "worker": "red",
                "change": "running > backoff",
                "actor": "policy",
                "reason": "Pi ended in [redacted]",
            },
        )

    @deferred
    async def test_follows_a_process(self):
        """C{-f} goes on over rotations and needs no daemon; it ends when it is interrupted."""
        self.assertEqual(ROTATE_BYTES, 5 * 1024 * 1024)
        self.observe(rotate_bytes=600)
        (blue,) = self.voices("blue")
        program = Program(self.reactor)
        words = [sys.executable, "-u", "-m", "pitelegram.cli", "logs", "-f", "--worker", "blue"]
        environ = {**os.environ, "PI_CODING_AGENT_DIR": str(self.agent)}
        self.reactor.spawnProcess(program, words[0], words, environ)
        inodes = set()
        for number in range(6):
            blue.transition(State.RUNNING, State.DRAINING, "operator", f"reason {number}.")
            await program.when_says(f"reason {number}.")
            inodes.add(self.paths.logs.stat().st_ino)
        self.assertGreater(len(inodes), 1)
        for number in range(6):
            self.assertEqual(program.out.count(f"reason {number}."), 1)
        ended = await program.kill(2)
        self.assertEqual((ended.code, ended.err), (130, ""))

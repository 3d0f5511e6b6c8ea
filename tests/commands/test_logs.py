"""C{logs}."""

import json

from pitelegram.commands.logs import Follower
from pitelegram.kernel.deferring import deferred
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

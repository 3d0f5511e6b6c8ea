"""As many workers as there are letters, and workers whose directories have one name."""

from __future__ import annotations

import secrets
from string import ascii_uppercase
from typing import Any

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.threads import deferToThread

from pitelegram.commands.client import ControlClient
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import dumps
from pitelegram.kernel.paths import Paths
from pitelegram.sandbox.records import Message, Thread
from tests.system import SystemCase

MOST = 26
WAVE = 5
"""Workers that are started at the same time."""

NAMES = [f"p{number:02d}" for number in range(1, MOST + 1)]
ONE_MORE = "q-one-more"
NOT_FOUND = "Bad Request: message thread not found"


class Full(SystemCase):
    """26 workers with a Pi each.  The one slow test: what it shows needs them all at once."""

    @deferred
    async def test_twenty_six(self) -> None:
        """Each has its letter and its Thread, although each Thread is once said to be gone; the 27th
        is refused by command and by button, and leaves nothing; a forgotten one makes room."""
        faults = [
            self.system.telegram.faults.add(
                "sendMessage", "error", description=NOT_FOUND, containing=f"{name} is ready"
            )
            for name in NAMES
        ]
        for name in [*NAMES, ONE_MORE]:
            self.system.project(name)
        await self.system.start_daemon("--root", str(self.system.projects))
        for begin in range(0, MOST, WAVE):
            await self.wave(NAMES[begin : begin + WAVE])
        threads = [await self.thread_of(name) for name in NAMES]
        self.assertEqual([fault.hits for fault in faults], [1] * MOST)
        self.all_apart(threads)
        await self.refused_by_command()
        await self.refused_by_button()
        self.all_apart(threads)
        await self.asked("hello", threads[-1])
        await self.room_again(threads)

    @deferred
    async def wave(self, names: list[str]) -> None:
        """Start some at the same time, and wait until they and all before them run."""
        await gatherResults([self.begin(name) for name in names])
        count = NAMES.index(names[-1]) + 1
        await self.system.until(lambda: self.running(count), "a wave of workers", 120)

    def all_apart(self, threads: list[int]) -> None:
        """26 letters, names, Threads, workers and Pis, each once; nothing that nobody asked for."""
        bindings = self.rows(
            "SELECT slot, thread_name, thread_id FROM bindings WHERE kind = 'managed'"
        )
        letters, names, found = zip(*bindings, strict=True)
        self.assertEqual(sorted(letters), list(ascii_uppercase))
        self.assertEqual((len(set(names)), sorted(found)), (MOST, sorted(threads)))
        topics = {each.thread_id: each.name for each in self.system.telegram.chat.threads}
        self.assertEqual(len(topics), MOST + 1)
        self.assertEqual([topics[thread] for _, _, thread in bindings], list(letters))
        self.assertEqual(len(self.system.workers()), MOST)
        self.assertEqual(len(self.system.pis()), MOST)
        self.assertEqual(self.rows("SELECT count(*) FROM specs"), [MOST])
        self.assertEqual(self.rows("SELECT count(*) FROM provisions"), [0])

    @deferred
    async def refused_by_command(self) -> None:
        """The command says that all letters are taken, and what to do."""
        envelope = await self.command(
            "worker.start", {}, directory=str(self.system.project(ONE_MORE))
        )
        found = envelope["disposition"], envelope["status"]
        self.assertEqual(found, ("terminal_rejected", "rejected"))
        self.assertIn("all 26 letters are taken; forget a worker", envelope["error"]["message"])

    @deferred
    async def refused_by_button(self) -> None:
        """So does the panel, which stays usable."""
        self.system.say("/daemon")
        panel = await self.system.telegram.when_message(lambda m: "👷 Workers" in labels(m))
        self.press(panel, "📁 New worker…")
        await self.system.telegram.when(lambda: "Lately used:" in panel.text)
        self.press(panel, f"📁 {self.system.projects.name}")
        await self.system.telegram.when(lambda: "✅ Start a worker here" in labels(panel))
        while f"📁 {ONE_MORE}" not in labels(panel):
            before = labels(panel)
            self.press(panel, next(each for each in before if each.startswith("➡️")))
            await self.system.telegram.when(lambda old=before: labels(panel) != old)
        self.press(panel, f"📁 {ONE_MORE}")
        await self.system.telegram.when(lambda: "No directories in it." in panel.text)
        self.press(panel, "✅ Start a worker here")
        await self.system.telegram.when(lambda: "settings, extensions and skills" in panel.text)
        self.press(panel, "✅ Start a worker here")
        await self.system.telegram.when(lambda: "all 26 letters are taken" in panel.text)
        self.assertTrue({"↩️ Menu", "↩️ Back"} & set(labels(panel)), labels(panel))

    @deferred
    async def room_again(self, threads: list[int]) -> None:
        """The next worker gets the letter of one that was forgotten, and a Thread of its own."""
        gone = NAMES[4]
        ((letter,),) = [
            self.rows("SELECT slot FROM bindings WHERE thread_id = ?", threads[4]),
        ]
        await self.worker("stop", gone)
        await self.worker("forget", gone)
        await self.begin(ONE_MORE)
        thread = await self.thread_of(ONE_MORE)
        self.assertNotIn(thread, threads)
        self.assertEqual(
            self.rows("SELECT slot FROM bindings WHERE thread_id = ?", thread), [letter]
        )
        await self.asked("there is room", thread)

    @deferred
    async def begin(self, name: str) -> None:
        """Start a worker; the command is accepted."""
        envelope = await self.command("worker.start", {}, directory=str(self.system.project(name)))
        self.assertEqual((envelope["status"], envelope["error"]), ("accepted", None))

    @deferred
    async def running(self, count: int) -> bool:
        """Whether so many workers run."""
        document = await deferToThread(self.client().get, "/v1/workers")
        return [each["state"] for each in document["workers"]] == ["running"] * count

    def client(self) -> ControlClient:
        """Return a client of the control socket."""
        return ControlClient(Paths(self.system.agent_dir).control_socket)

    def command(self, action: str, target: dict[str, Any], **args: Any) -> Deferred[Any]:
        """Send a command to the control socket."""
        request_id = secrets.token_hex(8)
        request = {
            "schema_version": 1,
            "action": action,
            "request_id": request_id,
            "target": target,
            "args": args,
        }
        return deferToThread(self.client().command, dumps(request), action, request_id)

    @deferred
    async def thread_of(self, name: str) -> int:
        """The Thread in which a worker said that it is ready, however long the queue is."""
        ready = await self.system.telegram.when_message(
            lambda m: f"{name} is ready" in (m.text or ""), timeout=150
        )
        return int(ready.thread_id or 0)

    def press(self, message: Message, label: str) -> None:
        """Press a button."""
        self.system.telegram.chat.user_presses(message.message_id, label=label)


def labels(message: Message) -> list[str]:
    """The labels of a message's buttons."""
    return [button["text"] for row in message.keyboard for button in row]


class Twins(SystemCase):
    """Two directories of one name."""

    profile = {"threadDisplayMode": "directory-title"}

    @deferred
    async def test_one_base_name(self) -> None:
        """Names, letters, titles and Threads are different, and each answers for itself."""
        places = [self.system.project(parent) / "my-app" for parent in ("here", "there")]
        threads, names = [], ("my-app", "there-my-app")
        await self.system.start_daemon()
        for place, name in zip(places, names, strict=True):
            place.mkdir()
            await self.worker("start", str(place))
            threads.append(await self.system.thread_of(name))
        found = self.rows("SELECT name, directory FROM specs ORDER BY name")
        self.assertEqual(found, list(zip(names, map(str, places), strict=True)))
        self.assertEqual(len(set(threads)), 2)
        for place, thread in zip(places, threads, strict=True):
            self.system.say("[[tool bash pwd]]", thread)
            await self.system.answer(f"The tool said: {place}", thread)
        topics = self.system.telegram.chat.chat.threads
        titles = await self.system.telegram.when(lambda: self.apart(*(topics[t] for t in threads)))
        self.assertTrue(all("My App" in title for title in titles), titles)

    def apart(self, one: Thread, other: Thread) -> tuple[str, str] | None:
        """The titles of two Threads, when neither is what both would have."""
        names = one.name, other.name
        return names if names[0] != names[1] and "My App" not in names else None

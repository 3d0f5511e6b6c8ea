"""A conversation outlives its processes."""

from __future__ import annotations

import json
from typing import Any

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


class Resume(SystemCase):
    """What only an earlier turn knew is told to the model again."""

    @deferred
    async def session(self) -> tuple[str, str]:
        """Id (by the worker's Pi) and file of the worker's session."""
        done = await self.system.cli("workers", "state", "alpha", "--json")
        state = done.json()["result"]
        return state["sessionId"], state["sessionFile"]

    @deferred
    async def goes_on(self, question: str, thread: int, *known: str) -> None:
        """Ask the model something; it is told these earlier turns, each once."""
        request = await self.asked(question, thread)
        earlier = [text for text in request.users if question not in text]
        self.assertEqual(len(earlier), len(known), earlier)
        for text, turn in zip(earlier, known, strict=True):
            self.assertIn(turn, text)

    @deferred
    async def ready_again(self, before: int) -> None:
        """Wait until another worker process than C{before} is ready."""
        await self.system.until(lambda: self.is_other(before), "another worker")

    @deferred
    async def is_other(self, before: int) -> bool:
        """Whether another process runs and is ready."""
        worker = await self.private("alpha")
        return bool(worker["state"] == "running" and worker["pid"] != before)

    @deferred
    async def test_through_every_end(self) -> None:
        """Kill of the worker, stop and start, kill of daemon and worker: one session all along."""
        (thread,) = await self.start("alpha")
        await self.goes_on("turn one", thread)
        session = await self.session()
        (worker,) = self.system.workers()
        worker.kill()
        await self.ready_again(worker.pid)
        self.assertEqual(await self.session(), session)
        await self.goes_on("turn two", thread, "turn one")
        await self.worker("stop", "alpha")
        self.assertEqual(self.system.pis(), [])
        await self.worker("start", str(self.system.project("alpha")))
        self.assertEqual(await self.session(), session)
        await self.goes_on("turn three", thread, "turn one", "turn two")
        daemon = self.system.daemon
        assert daemon is not None
        await daemon.kill()
        for process in (*self.system.workers(), *self.system.pis()):
            process.kill()
        await self.system.start_daemon()
        await self.system.until(lambda: self.is_other(-1), "the worker")
        self.assertEqual(await self.session(), session)
        await self.goes_on("turn four", thread, "turn one", "turn two", "turn three")
        self.assertEqual(self.stored(), [session])

    @deferred
    async def test_new_session(self) -> None:
        """After C{new_session} a crash resumes the new session, empty or not, and not the old one."""
        (thread,) = await self.start("alpha")
        await self.goes_on("of old", thread)
        old = await self.session()
        await self.worker("new-session", "alpha")
        new = await self.session()
        self.assertNotEqual(new, old)
        await self.goes_on("of the new one", thread)
        (worker,) = self.system.workers()
        worker.kill()
        await self.ready_again(worker.pid)
        self.assertEqual(await self.session(), new)
        await self.goes_on("again", thread, "of the new one")
        await self.worker("new-session", "alpha")
        empty = (await self.session())[1]
        (worker,) = self.system.workers()
        worker.kill()
        await self.ready_again(worker.pid)
        self.assertEqual((await self.session())[1], empty)
        await self.goes_on("from nothing", thread)
        self.assertEqual(self.system.answers("⚠️", thread), [])
        self.assertNotIn("of old", self.entries((await self.session())[1]))

    def stored(self) -> list[Any]:
        """Session id and file as the leader's store has them."""
        return self.rows("SELECT session_id, session_file FROM specs")

    def entries(self, file: str) -> str:
        """A session file's user texts."""
        with open(file) as opened:
            records = [json.loads(line) for line in opened]
        return json.dumps([r for r in records if r.get("message", {}).get("role") == "user"])

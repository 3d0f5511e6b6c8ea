"""Names, closed Threads and sessions of other projects, with the real daemon, worker and Pi."""

from __future__ import annotations

import os
from typing import Any

from pitelegram.bridge import naming as words
from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


class NamesCase(SystemCase):
    """One worker's Thread."""

    def title(self, thread: int) -> str:
        """What Telegram shows above it."""
        return next(t.name for t in self.system.telegram.chat.threads if t.thread_id == thread)

    @deferred
    async def titled(self, thread: int, title: str) -> None:
        """It gets that title."""
        await self.system.telegram.when(lambda: self.title(thread) == title)

    @deferred
    async def shown(self) -> tuple[str, str, str]:
        """The worker's public name of its Thread, letter and key."""
        (worker,) = (w for w in (await self.system.status())["workers"] if w["name"] == "alpha")
        return worker["thread_name"], worker["slot"], worker["meta"]["stable_key"]

    @deferred
    async def is_another(self, before: int) -> bool:
        """Whether another process of the worker is ready."""
        worker = await self.private("alpha")
        return bool(worker["state"] == "running" and worker["pid"] != before)


class Names(NamesCase):
    """Named, and closed by the user."""

    @deferred
    async def test_name(self) -> None:
        """By the command, by a reply after a crash, and back; prompts and status say the same."""
        (thread,) = await self.start("alpha")
        self.system.say("/name Navigator", thread)
        await self.titled(thread, "Navigator")
        await self.system.answer(words.done("Navigator", "Navigator"), thread)
        request = await self.asked("who am I", thread)
        self.assertIn("[telegram|thread:Navigator]", request.users[-1])
        self.assertEqual((await self.shown())[:2], ("Navigator", "A"))
        self.system.say("/name", thread)
        question = await self.system.answer(words.ASK, thread)
        (worker,) = self.system.workers()
        worker.kill()
        await self.system.until(lambda: self.is_another(worker.pid), "another worker")
        self.system.telegram.chat.user_sends("Pilot", thread, reply_to=question.message_id)
        await self.titled(thread, "Pilot")
        await self.system.telegram.when(lambda: words.done("Pilot", "Pilot") in question.text)
        self.assertEqual(question.keyboard, [])
        self.assertEqual(self.system.prompts("Pilot"), [])
        command = self.system.say("/name", thread)

        def asked_again() -> Any:
            asked = self.system.answers(words.ASK, thread)
            return next((m for m in asked if m.message_id > command.message_id), None)

        again = await self.system.telegram.when(asked_again)
        self.system.telegram.chat.user_presses(again.message_id, label=words.RESET_LABEL)
        await self.titled(thread, "A")

    @deferred
    async def test_closed(self) -> None:
        """An answer for a closed Thread waits through a restart, and comes once it is open."""
        (thread,) = await self.start("alpha")
        await self.asked("before", thread)
        chat = self.system.telegram.chat
        chat.user_closes_thread(thread)
        await self.worker("prompt", "alpha", "meanwhile")
        await self.system.until(self.waits, "the answer in the outbox")
        await self.system.restart_daemon()
        self.system.write_settings(threadDisplayMode="names")
        await self.system.until(lambda: self.waits(), "the answer after a restart")
        self.assertEqual(self.system.answers("You said: meanwhile"), [])
        chat.user_reopens_thread(thread)
        await self.system.answer("You said: meanwhile", thread)
        self.once("You said: meanwhile", thread)
        self.assertNotEqual(self.title(thread), "")
        self.assertEqual(await self.system.thread_of("alpha"), thread)
        self.assertEqual(len([t for t in chat.threads if t.name != "🛠 Control"]), 1)

    @deferred
    async def waits(self) -> bool:
        """Whether an answer waits for its Thread to be opened."""
        items = (await self.system.cli("outbox", "inspect", "--json")).json()["items"]
        return [item["reason"] for item in items] == ["topic-closed"]


class Projects(NamesCase):
    """Titles of directories."""

    profile = {"threadDisplayMode": "directory-snake"}

    @deferred
    async def test_another_project(self) -> None:
        """A session of another project takes the title along; Thread, letter and key stay."""
        thread, _ = await self.start("alpha", "beta-site")
        await self.asked("one", thread)
        first = (await self.private("alpha"))["session_file"]
        before = await self.shown()
        await self.asked("two", await self.system.thread_of("beta-site"))
        second = next(w["session_file"] for w in await self.listed() if w["name"] == "beta-site")
        await self.worker("stop", "beta-site")
        for file, title in ((second, "beta_site"), (first, "alpha")):
            await self.worker("switch-session", "alpha", self.reference(file))
            await self.titled(thread, title)
            shown = await self.shown()
            self.assertEqual(shown, (title, before[1], before[2]))
        request = await self.asked("three", thread)
        self.assertIn("one", "".join(request.users))

    @deferred
    async def listed(self) -> list[dict[str, Any]]:
        """All workers as the local operator sees them."""
        done = await self.system.cli("workers", "list", "--json", "--private")
        return list(done.json()["workers"])

    def reference(self, file: str) -> str:
        """A session as the control socket names it."""
        return os.path.relpath(file, self.system.agent_dir / "sessions")

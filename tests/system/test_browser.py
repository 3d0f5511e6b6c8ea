"""A person at the chat page: the real daemon, worker and Pi behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pitelegram.kernel.deferring import deferred
from pitelegram.testing.browser import Browser, ChatPage
from tests.system import SystemCase


class ChatPageJob(SystemCase):
    """Write, press and read in headless Chromium."""

    def setUp(self) -> None:
        """Have a browser, too."""
        super().setUp()
        self.browser = Browser(self.base / "browser")

    @deferred
    async def tearDown(self) -> None:
        """Close it first."""
        await self.browser.close()
        await super().tearDown()

    @deferred
    async def test_prompt_button_and_answer(self) -> None:
        """A prompt is answered in its Thread; the panel's button shows the worker."""
        (thread,) = await self.start("alpha")
        title = next(t.name for t in self.system.telegram.chat.threads if t.thread_id == thread)

        def person(page: ChatPage) -> dict[str, Any]:
            page.open(self.system.telegram.page_url)
            page.choose_thread(title)
            page.write("hello from the page")
            answer = page.wait_for_answer("You said: hello from the page")
            page.choose_thread("🛠 Control")
            page.write("/daemon")
            page.wait_for_answer("Daemon control")
            page.press("👷 Workers")
            roster = page.wait_for_answer(lambda text: "alpha" in text)
            return {"answer": answer, "roster": roster, "complaints": page.complaints()}

        seen = await self.browser.run(person)
        self.assertIn("You said: hello from the page", seen["answer"])
        self.assertIn("running", seen["roster"])
        self.assertEqual(seen["complaints"], [])
        self.once("You said: hello from the page", thread)

    @deferred
    async def test_from_the_roster_to_the_roster(self) -> None:
        """A new worker by the mouse alone: picked, started, asked, stopped.

        The pictures that it leaves in C{shots} are those of C{docs/}.
        """
        shots = Path(self.mktemp()).absolute()
        shots.mkdir()
        self.system.project("my project")
        await self.system.start_daemon("--root", str(self.system.projects))

        def begin(page: ChatPage) -> None:
            page.open(self.system.telegram.page_url)
            page.choose_thread("🛠 Control")
            page.write("/daemon")
            page.wait_for_answer("Daemon control")
            page.press("📁 New worker…")
            page.wait_for_answer("Pick a project directory")
            page.screenshot(shots / "panel-picker.png")
            page.press("📁 my project")
            page.wait_for_answer("No directories in it.")
            page.press("✅ Start a worker here")
            page.wait_for_answer("settings, extensions and skills")
            page.screenshot(shots / "panel-start.png")
            page.press("✅ Start a worker here")

        def use(page: ChatPage) -> str:
            page.choose_thread("A")
            page.write("hello from the new worker")
            return page.wait_for_answer("You said: hello from the new worker")

        def stop(page: ChatPage) -> dict[str, Any]:
            page.choose_thread("🛠 Control")
            page.press("↩️ Menu")
            page.wait_for_answer("Daemon control")
            page.press("👷 Workers")
            page.wait_for_answer(lambda text: "running" in text)
            page.screenshot(shots / "panel-roster.png")
            page.press("🛑 Stop")
            page.wait_for_answer("Stop my-project?")
            page.press("🛑 Stop")
            roster = page.wait_for_answer(lambda text: "stopped" in text and "Pi workers" in text)
            return {"roster": roster, "complaints": page.complaints()}

        await self.browser.run(begin)
        await self.system.thread_of("my-project")
        self.assertIn("hello from the new worker", await self.browser.run(use))
        seen = await self.browser.run(stop)
        self.assertIn("⚪ my-project · stopped", seen["roster"])
        self.assertEqual(seen["complaints"], [])
        self.assertEqual(self.system.workers(), [])
        self.assertEqual(len(list(shots.iterdir())), 3)

"""A person at the chat page: the real daemon, worker and Pi behind it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.paths import Paths
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


ANSWER = r"""[[say text='# A heading\n\nWords in **bold** and `code`.\n\n```python\nprint(1)\n```\n\n| name | size |\n|---|--:|\n| a | 10 |\n| b | 2 |\n\n- one\n- two\n\n<!-- telegram_buttons [[{Go on|please go on}{Stop}]] -->']]"""


class Reading(ChatPageJob):
    """A rendered answer, and what a person does beside writing."""

    @deferred
    async def test_rendered_answer(self) -> None:
        """Headings are larger, code has equal widths, the table its cells, and a button works."""
        (thread,) = await self.start("alpha")
        title = next(t.name for t in self.system.telegram.chat.threads if t.thread_id == thread)

        def person(page: ChatPage) -> dict[str, Any]:
            page.open(self.system.telegram.page_url)
            page.choose_thread(title)
            page.write(ANSWER)
            page.wait_for_answer("A heading")
            script = """
                const of = (selector) => [...document.querySelectorAll(`.rich ${selector}`)];
                const size = (node) => parseFloat(getComputedStyle(node).fontSize);
                const width = (node, words) => {
                  const probe = node.cloneNode();
                  probe.style.cssText = "position:absolute;display:inline;padding:0";
                  probe.textContent = words;
                  node.after(probe);
                  const found = probe.getBoundingClientRect().width;
                  probe.remove();
                  return found;
                };
                return {
                  larger: size(of("h1")[0]) / size(of("p")[0]),
                  bold: Number(getComputedStyle(of("strong")[0]).fontWeight),
                  mono: width(of("pre")[0], "iiii") === width(of("pre")[0], "MMMM"),
                  code: of("pre").map((node) => node.textContent),
                  cells: of("tr").map((row) => [...row.children].map((cell) => cell.textContent)),
                  align: getComputedStyle(of("td")[1]).textAlign,
                  items: of("ul > li").map((node) => node.innerText.trim()),
                };"""
            seen = dict(page.driver.execute_script(script))
            seen["drawn"] = [page.shades(f".rich {each}") for each in ("h1", "pre", "table")]
            page.press("Go on")
            page.wait_for_answer("You said: please go on")
            seen["complaints"] = page.complaints()
            return seen

        seen = await self.browser.run(person)
        self.assertGreater(seen["larger"], 1.2)
        self.assertGreaterEqual(seen["bold"], 600)
        self.assertTrue(seen["mono"])
        self.assertEqual(seen["code"], ["print(1)"])
        self.assertEqual(seen["cells"], [["name", "size"], ["a", "10"], ["b", "2"]])
        self.assertEqual(seen["align"], "right")
        self.assertEqual(seen["items"], ["one", "two"])
        self.assertEqual(seen["complaints"], [])
        self.once("You said: please go on", thread)
        self.assertGreater(min(seen["drawn"]), 2, "something is not drawn")

    @deferred
    async def test_files_and_reactions(self) -> None:
        """A file, an album and a reaction by the mouse reach Pi, or its queue."""
        (thread,) = await self.start("alpha")
        title = next(t.name for t in self.system.telegram.chat.threads if t.thread_id == thread)
        notes = self.base / "notes.txt"
        notes.write_text("remember the milk")
        others = [self.base / f"part{number}.txt" for number in range(3)]
        for number, path in enumerate(others):
            path.write_text(f"part number {number}")

        def send(page: ChatPage) -> None:
            page.open(self.system.telegram.page_url)
            page.choose_thread(title)
            page.attach(notes, caption="what is in it")
            page.wait_for_answer("remember the milk")
            page.attach(*others, caption="all of them")
            page.wait_for_answer("part number 2")
            page.write("[[gate hold]] working")
            page.write("never mind this one")

        await self.browser.run(send)
        await self.system.until(lambda: self.waiting(1), "the prompt to wait")
        await self.browser.run(lambda page: page.react("never mind this one", "👎"))
        # A reaction that comes after the run's end is too late: its prompt has begun.
        await self.system.until(self.skipped, "the mark of the reaction")
        self.system.model.open_gate("hold")
        await self.system.answer("After the gate hold.", thread)
        (prompt,) = self.system.prompts("part number 0")
        self.assertTrue(all(f"part number {number}" in prompt.text for number in range(3)))
        self.system.telegram.chat.user_sends("the last one", thread)
        await self.system.answer("You said: the last one", thread)
        self.assertEqual(self.system.prompts("never mind"), [])

    @deferred
    async def waiting(self, count: int) -> bool:
        """Whether that many prompts wait."""
        status = await self.system.status()
        return sum(worker["queued"] for worker in status["workers"]) == count

    def skipped(self) -> bool:
        """Whether a prompt in the worker's store is marked to be left out."""
        (spec,) = self.rows("SELECT spec_id FROM specs WHERE name = ?", "alpha")
        store = Paths(self.system.agent_dir).worker_database(f"spec-{spec}")
        connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        found = connection.execute("SELECT 1 FROM inbox WHERE skip").fetchone()
        connection.close()
        return found is not None

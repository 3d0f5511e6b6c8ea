"""The control panel in the sandbox."""

from __future__ import annotations

import json

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.records import Message
from tests.system import SystemCase


class Panel(SystemCase):
    """C{/daemon} and its buttons, on real workers."""

    def press(self, message: Message, label: str) -> None:
        """Press a button."""
        self.system.telegram.chat.user_presses(message.message_id, label=label)

    @deferred
    async def panel(self, label: str) -> Message:
        """Fire with the panel's message once it has that button."""
        return await self.system.telegram.when_message(
            lambda m: any(b["text"] == label for row in m.keyboard for b in row)
        )

    @deferred
    async def test_roster_stop_and_retry(self) -> None:
        """The roster shows a worker; stopping and starting ask first; Close closes."""
        (thread,) = await self.start("alpha")
        self.system.say("/daemon")
        panel = await self.panel("👷 Workers")
        self.press(panel, "👷 Workers")
        await self.panel("📍 alpha")
        self.assertIn("alpha", panel.text)
        self.press(panel, "🛑 Stop")
        await self.system.telegram.when(lambda: "Stop alpha?" in panel.text)
        self.press(panel, "🛑 Stop")
        await self.panel("♻️ Retry")
        self.assertEqual(self.system.workers(), [])
        self.press(panel, "♻️ Retry")
        await self.system.telegram.when(lambda: "Retry alpha?" in panel.text)
        self.press(panel, "♻️ Retry")
        await self.system.until(lambda: len(self.system.workers()) == 1, "the worker")
        self.system.say("back again", thread)
        await self.system.answer("You said: back again", thread)
        self.press(panel, "↩️ Menu")
        await self.panel("✖️ Close")
        self.press(panel, "✖️ Close")
        await self.system.telegram.when(lambda: "closed" in panel.text)
        self.assertEqual(panel.keyboard, [])

    @deferred
    async def test_titles(self) -> None:
        """Another display mode renames Threads; a name that the user gave stays."""
        threads = await self.start("my-project", "other")
        chat = self.system.telegram.chat

        def names() -> list[str]:
            return [t.name for number in threads for t in chat.threads if t.thread_id == number]

        self.assertEqual(names(), ["A", "B"])
        chat.user_renames_thread(threads[1], "the other one")
        self.system.say("hello", threads[1])
        await self.system.answer("You said: hello", threads[1])
        self.system.write_settings(threadDisplayMode="directory-title")
        await self.system.telegram.when(lambda: names() == ["My Project", "the other one"])
        self.system.write_settings(threadDisplayMode="letters")
        await self.system.telegram.when(lambda: names() == ["A", "the other one"])

    @deferred
    async def test_control_thread_is_made_once(self) -> None:
        """Three starts of the daemon make one Control Thread."""
        await self.system.start_daemon()
        await self.system.telegram.when(
            lambda: [t for t in self.system.telegram.chat.threads if t.name == "🛠 Control"]
        )
        for _ in range(2):
            await self.system.restart_daemon()
        self.system.say("/daemon")
        await self.panel("👷 Workers")
        names = [t.name for t in self.system.telegram.chat.threads]
        self.assertEqual(names.count("🛠 Control"), 1)


class Surface(SystemCase):
    """What an operator does from the phone alone."""

    def setUp(self) -> None:
        """Have two projects, one with a strange name, below the root."""
        super().setUp()
        for name in ("my project", "größe", "plain"):
            self.system.project(name)

    def press(self, message: Message, label: str) -> None:
        """Press a button."""
        self.system.telegram.chat.user_presses(message.message_id, label=label)

    def labels(self, message: Message) -> list[str]:
        """The labels of a message's buttons."""
        return [button["text"] for row in message.keyboard for button in row]

    @deferred
    async def shows(self, panel: Message, words: str) -> None:
        """Wait until a panel shows these words, and a way back."""
        await self.system.telegram.when(lambda: words in (panel.text or ""))
        self.assertTrue({"↩️ Menu", "↩️ Back", "✖️ Close"} & set(self.labels(panel)), panel.text)

    @deferred
    async def open(self, thread: int | None = None) -> Message:
        """Write C{/daemon}; fires with the panel."""
        self.system.say("/daemon", thread)
        return await self.system.telegram.when_message(lambda m: "👷 Workers" in self.labels(m))

    @deferred
    async def test_new_worker(self) -> None:
        """Picked, confirmed, started, used, stopped; each screen as it stands."""
        await self.system.start_daemon("--root", str(self.system.projects))
        panel = await self.open()
        self.assertEqual(
            self.labels(panel),
            ["👷 Workers", "📁 New worker…", "ℹ️ Status", "🧹 Threads", "✖️ Close"],
        )
        self.press(panel, "📁 New worker…")
        await self.shows(panel, "Pick a project directory")
        self.assertEqual(
            self.labels(panel),
            ["📁 größe", "📁 my project", "📁 plain"]
            + ["✅ Start a worker here", "↩️ Back", "↩️ Menu"],
        )
        self.press(panel, "📁 my project")
        await self.shows(panel, "No directories in it.")
        self.press(panel, "⬆️ ..")
        await self.shows(panel, "3 directories in it")
        self.press(panel, "📁 my project")
        await self.shows(panel, "No directories in it.")
        await self.system.restart_daemon()
        self.press(panel, "✅ Start a worker here")
        await self.shows(panel, "settings, extensions and skills")
        self.assertEqual(self.system.workers(), [])
        self.press(panel, "✅ Start a worker here")
        thread = await self.system.thread_of("my-project")
        self.system.say("from the phone", thread)
        await self.system.answer("You said: from the phone", thread)
        self.press(panel, "↩️ Menu")
        await self.shows(panel, "Daemon control")
        self.press(panel, "ℹ️ Status")
        await self.shows(panel, "Workers: 1")
        self.press(panel, "↩️ Menu")
        await self.shows(panel, "Daemon control")
        self.press(panel, "👷 Workers")
        await self.shows(panel, "🟢 my-project · running")
        self.press(panel, "🛑 Stop")
        await self.shows(panel, "Stop my-project?")
        self.press(panel, "🛑 Stop")
        await self.shows(panel, "⚪ my-project · stopped")

    @deferred
    async def test_inactive_threads(self) -> None:
        """A stopped worker's Thread is found, and deleted when that is confirmed; a live one stays."""
        one, two = await self.start("plain", "other")
        await self.system.cli("workers", "stop", "plain")
        await self.system.until(
            lambda: self.rows("SELECT 1 FROM specs WHERE name = 'plain' AND desired = 'stopped'"),
            "the stop",
        )
        panel = await self.open()
        self.press(panel, "🧹 Threads")
        await self.shows(panel, "Inactive Threads")
        self.press(panel, "🔍 Review inactive")
        await self.shows(panel, "1 inactive: A")
        self.assertIn(one, [thread.thread_id for thread in self.system.telegram.chat.threads])
        self.press(panel, "🗑 Delete reviewed")
        await self.shows(panel, "Their messages cannot be brought back")
        self.press(panel, "🗑 Delete reviewed")
        await self.shows(panel, "Deleted 1; kept 0.")
        left = [thread.thread_id for thread in self.system.telegram.chat.threads]
        self.assertNotIn(one, left)
        self.assertIn(two, left)
        self.press(panel, "⚫ Unattended cleanup")
        await self.system.telegram.when(lambda: "🟢 Unattended cleanup" in self.labels(panel))
        settings = json.loads((self.system.agent_dir / "telegram.json").read_text())
        self.assertIs(settings["threads"]["unattendedCleanup"], True)
        await self.system.cli("workers", "restart", "plain")
        await self.system.telegram.when(
            lambda: [t.name for t in self.system.telegram.chat.threads].count("A") == 1
        )

    @deferred
    async def test_attach_and_detach(self) -> None:
        """A worker is moved to a Thread that the user made, answers there, and goes back."""
        (home,) = await self.start("plain")
        place = self.system.telegram.chat.user_creates_thread("somewhere").thread_id
        self.system.say("/attach nobody", place)
        await self.system.answer("⚠️ Unknown Pi worker.", place)
        self.system.say("/attach plain", place)
        await self.system.answer("This Thread belongs to that worker now", place)
        self.system.say("over here", place)
        await self.system.answer("You said: over here", place)
        self.system.say("/detach", place)
        await self.system.answer("back in its own Thread", place)
        self.system.say("home again", home)
        await self.system.answer("You said: home again", home)
        self.system.say("/detach", place)
        await self.system.answer("no worker was attached", place)

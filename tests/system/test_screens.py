"""Every screen of the panel, reached by its buttons, as it was recorded (see L{snapshots})."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.records import Message
from pitelegram.testing.pienv import pi_command
from tests.system import SystemCase
from tests.system.snapshots import DIRECTORY, Snapshots

WRAPPER = """#!/bin/sh
if [ "$1" != --version ] && [ -e {order} ]; then
    echo 'Error: no such flag' >&2
    exit 1
fi
exec {pi} "$@"
"""


class SnapshotTests(SynchronousTestCase):
    """L{Snapshots} itself."""

    def setUp(self) -> None:
        """An empty directory, and no wish to record."""
        self.directory = Path(self.mktemp())
        self.directory.mkdir()
        self.screens = Snapshots({"/tmp/a b": "<base>"}, self.directory, record=False)
        self.recording = Snapshots({"/tmp/a b": "<base>"}, self.directory, record=True)

    def shown(self, text: str, data: str) -> Message:
        """A message with one button."""
        keyboard = {"inline_keyboard": [[{"text": "Go", "callback_data": data}]]}
        return Message(1, {"id": 1}, 0, {"text": text}, markup=keyboard)

    def test_same(self) -> None:
        """What varies does not count: paths, ids, lives."""
        first = self.shown("in /tmp/a b\n🟢 a · running · idle", "ptd:n:0123456789abcdef:12")
        self.recording.check("one", first, "toast")
        again = self.shown("in <base>\n🟢 a · running · active", "ptd:n:fedcba9876543210:4711")
        self.screens.check("one", again, "toast")
        self.assertEqual(self.screens.checked, ["one"])

    def test_other(self) -> None:
        """Another text, button or toast fails, and the difference can be read."""
        self.recording.check("one", self.shown("a\nb", "ptd:m"))
        for other, toast in (
            (self.shown("a\nc", "ptd:m"), ""),
            (self.shown("a\nb", "ptd:x"), ""),
            (self.shown("a\nb", "ptd:m"), "t"),
        ):
            failed = self.assertRaises(AssertionError, self.screens.check, "one", other, toast)
            self.assertIn("the screen one is not as recorded", str(failed))
            self.assertRegex(str(failed), r"(?m)^-.*\n\+")

    def test_unknown(self) -> None:
        """A screen that was never recorded fails, and is not recorded by the way."""
        failing = self.shown("a", "ptd:m")
        self.assertRaises(AssertionError, self.screens.check, "one", failing)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_no_left_overs(self) -> None:
        """Every recorded screen is compared by some test here."""
        source = Path(__file__).read_text("utf-8")
        for file in DIRECTORY.glob("*"):
            self.assertIn(f'"{file.stem}"', source)


class ScreensCase(SystemCase):
    """The owner walks, and each screen is compared."""

    def setUp(self) -> None:
        """Have some projects."""
        super().setUp()
        for name in ("größe", "my project", "plain"):
            self.system.project(name)
        for number in range(20):
            (self.system.project("many") / f"part {number:02}").mkdir()
        self.screens = Snapshots({str(self.system.base): "<base>", "~/projects": "<projects>"})
        self.panel: Message | None = None

    @deferred
    async def open(self, name: str = "", thread: int | None = None) -> Message:
        """Write C{/daemon} and compare the menu that comes."""
        known = {m.message_id for m in self.system.telegram.chat.from_bot()}
        self.system.say("/daemon", thread)
        self.panel = await self.system.telegram.when_message(
            lambda m: m.message_id not in known and "Daemon control" in m.text
        )
        if name:
            self.screens.check(name, self.panel)
        return self.panel

    @deferred
    async def press(self, label: str, words: str, name: str = "", last: bool = False) -> str:
        """Press a button of the panel, wait for these words and compare; fires with the toast.

        @param last: the last button of that label, instead of the first.
        """
        assert self.panel is not None
        found = [b for row in self.panel.keyboard for b in row if b["text"] == label]
        assert found, (label, self.panel.text, self.panel.keyboard)
        return await self.forge(found[-1 if last else 0]["callback_data"], words, name)

    @deferred
    async def forge(self, data: str, words: str, name: str = "") -> str:
        """The same with any callback data."""
        panel, telegram = self.panel, self.system.telegram
        assert panel is not None
        number = telegram.chat.user_presses(panel.message_id, data)
        press = telegram.chat.world.presses.get(number)
        assert press is not None
        await telegram.when(lambda: press.answer is not None)
        await telegram.when(
            lambda: (
                words in panel.text or words in (b["text"] for row in panel.keyboard for b in row)
            )
        )
        toast = str((press.answer or {}).get("text") or "")
        if name:
            self.screens.check(name, panel, toast)
        return toast


class Screens(ScreensCase):
    """With Threads."""

    @deferred
    async def test_without_workers(self) -> None:
        """Menu, empty roster, status, Threads, titles, picker, stale buttons, closed.

        In the middle the daemon is killed and another one has two roots: the panel goes on.
        """
        await self.system.start_daemon("--root", str(self.system.projects))
        await self.open("menu")
        await self.press("👷 Workers", "No Pi workers", "roster-empty")
        await self.press("📁 New worker…", "Pick a project", "picker-root")
        await self.press("📁 many", "page 1 of 2", "picker-page-1")
        await self.press("➡️", "page 2 of 2", "picker-page-2")
        await self.press("📁 part 16", "No directories in it.", "picker-empty")
        await self.press("⬆️ ..", "page 1 of 2", "picker-page-1")
        await self.two_roots()
        await self.press("✅ Start a worker here", "Pi trusts", "start-question")
        await self.press("↩️ Back", "page 1 of 2")
        await self.press("⬆️ ..", "Roots:", "picker-roots")
        await self.press("📁 größe", "No directories in it.", "picker-one-of-the-roots")
        await self.press("↩️ Menu", "Daemon control", "menu")
        await self.press("ℹ️ Status", "Status:", "status")
        await self.press("↩️ Menu", "Daemon control")
        await self.press("🧹 Threads", "Inactive Threads", "threads")
        await self.press("🔍 Review inactive", "No proven inactive tabs.", "threads-nothing-found")
        await self.press("⚫ Unattended cleanup", "now delete unattended", "threads-unattended")
        await self.press("🟢 Delete tab on quit", "preserved on quit", "threads-kept-on-quit")
        await self.press("🏷 Titles: letters", "Titles of Threads", "titles")
        await self.forge("ptd:z:0123456789abcdef", "No Pi workers", "stale-worker")
        await self.forge("ptd:d:0123456789abcdef:0", "Pick a project", "stale-directory")
        await self.forge("ptd:what", "Daemon control", "stale-unknown")
        await self.press("✖️ Close", "closed", "closed")
        await self.forge("ptd:x", "closed", "closed")
        daemon = self.system.daemon
        assert daemon is not None
        # Telegram's "message is not modified" is no fault.
        self.assertNotIn("not re-rendered", daemon.out + daemon.err)

    @deferred
    async def two_roots(self) -> None:
        """The daemon dies; the next one has two roots."""
        assert self.system.daemon is not None
        await self.system.daemon.kill()
        roots = [str(self.system.project(name)) for name in ("many", "größe")]
        await self.system.start_daemon(*(word for root in roots for word in ("--root", root)))

    @deferred
    async def test_worker(self) -> None:
        """Started under a title of choice, located, stopped, failed, retried; its Thread deleted."""
        order, pi = self.base / "order", self.base / "some pi"
        pi.write_text(
            WRAPPER.format(order=shlex.quote(str(order)), pi=shlex.join(pi_command())), "utf-8"
        )
        pi.chmod(0o755)
        arguments = ("--root", str(self.system.projects), "--pi", shlex.quote(str(pi)))
        await self.system.start_daemon(*arguments)
        self.system.say(f'/workers start "{self.system.projects}/plain"')
        self.panel = await self.system.telegram.when_message(lambda m: "Pi trusts" in m.text)
        start = self.panel.button("✅ Start a worker here")["callback_data"]
        await self.forge("ptd:tt", "Titles of Threads")
        await self.press("⚫ directory-title", "🟢 directory-title", "titles-chosen")
        await self.forge(start, "plain is starting", "started")
        thread = await self.system.thread_of("plain")
        self.assertEqual(self.system.telegram.chat.thread_named("Plain").thread_id, thread)
        await self.forge("ptd:w:0", "plain · running", "roster")
        toast = await self.press("📍 plain", "plain · running")
        self.assertEqual(toast, "A marker is on its way into that Thread.")
        await self.system.answer("📍 plain is here.", thread)
        assert self.panel is not None
        stop = self.panel.button("🛑 Stop")["callback_data"]
        await self.press("♻️ Restart", "Restart plain?", "restart-question")
        await self.forge(stop, "Stop plain?", "stop-question")
        toast = await self.press("🛑 Stop", "plain · stopped", "stopped")
        self.assertEqual(toast, "Stopping plain…")
        order.touch()
        await self.press("♻️ Retry", "Retry plain?", "retry-question")
        await self.press("♻️ Retry", "Pi workers")
        await self.system.answer("❌ plain", thread)
        await self.forge("ptd:w:0", "plain · failed", "failed")
        await self.deleted(thread)

    @deferred
    async def deleted(self, thread: int) -> None:
        """The Thread of a worker that does not run is found and, when confirmed, deleted."""
        await self.forge("ptd:tr", "1 inactive", "threads-found")
        await self.press("🗑 Delete reviewed", "cannot be brought back", "delete-question")
        await self.press("🗑 Delete reviewed", "Deleted 1; kept 0.", "threads-deleted")
        self.assertNotIn(thread, [t.thread_id for t in self.system.telegram.chat.threads])


class ClassicScreens(ScreensCase):
    """Topics are switched off: the chat serves one worker at a time."""

    @deferred
    async def test_who_has_the_chat(self) -> None:
        """Two workers, one chat: chosen by button, and what is written goes to the chosen one."""
        telegram, answers = self.system.telegram, self.system.answers
        telegram.chat.switch_threads(False)
        await self.start_two()
        await self.open("menu")
        await self.press("👷 Workers", "This chat talks to plain.", "classic-roster")
        self.system.say("a prompt for one")
        await telegram.when(lambda: answers("You said: a prompt for one"))
        toast = await self.press("💬 Talk to it here", "talks to other.", "classic-chosen")
        self.assertEqual(toast, "This chat talks to that worker now.")
        self.system.say("a prompt for another")
        await telegram.when(lambda: answers("You said: a prompt for another"))
        self.assertEqual(self.asked_in("a prompt for one"), "plain")
        self.assertEqual(self.asked_in("a prompt for another"), "other")
        self.system.say("/detach")
        await telegram.when(lambda: answers("talks to no worker now"))
        await self.forge("ptd:w:0", "talks to no worker", "classic-nobody")

    @deferred
    async def start_two(self) -> None:
        """Start the daemon and two workers; the first has the chat by itself."""
        await self.system.start_daemon("--root", str(self.system.projects))
        for name in ("plain", "other"):
            done = await self.system.cli("workers", "start", str(self.system.project(name)))
            self.assertEqual(done.code, 0, done.out + done.err)

    def asked_in(self, text: str) -> str:
        """The directory in whose session Pi keeps this prompt."""
        (found,) = (
            file
            for file in (self.system.agent_dir / "sessions").rglob("*.jsonl")
            if text in file.read_text("utf-8")
        )
        header = json.loads(found.read_text("utf-8").split("\n", 1)[0])
        return Path(header["cwd"]).name

"""The control panel in the sandbox."""

from __future__ import annotations

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

"""Menus and commands of a worker's Thread, on the real Pi."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import TimeoutError

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.records import Message
from tests.system import SystemCase

OTHER = "thinker"
TEMPLATE = "---\ndescription: Repeats\n---\nTemplate says: $ARGUMENTS\n"


class Menus(SystemCase):
    """One worker, and everything that its operator does by buttons."""

    def setUp(self) -> None:
        """A second model, which has thinking levels, and a prompt template; short talks compact."""
        super().setUp()
        settings = self.system.agent_dir / "settings.json"
        value = {**json.loads(settings.read_text()), "compaction": {"keepRecentTokens": 1}}
        settings.write_text(json.dumps(value))
        path = self.system.agent_dir / "models.json"
        document = json.loads(path.read_text())
        (provider,) = document["providers"].values()
        provider["models"].append({**provider["models"][0], "id": OTHER, "reasoning": True})
        path.write_text(json.dumps(document))
        prompts = self.system.agent_dir / "prompts"
        prompts.mkdir()
        (prompts / "say-it.md").write_text(TEMPLATE)

    @deferred
    async def menu(self, words: str, thread: int) -> Message:
        """Fire with the newest message of the bot that says these words and has buttons."""
        return await self.system.telegram.when(
            lambda: next(
                (
                    m
                    for m in reversed(self.system.telegram.chat.from_bot(thread))
                    if words in (m.text or "") and m.keyboard
                ),
                None,
            )
        )

    @deferred
    async def tap(self, message: Message, label: str, words: str) -> None:
        """Press the button of that label, and wait until text or buttons say these words."""

        def found(wanted: str) -> list[str]:
            labels = [b["text"] for row in message.keyboard for b in row]
            return [each for each in labels if wanted in each]

        try:
            await self.system.telegram.when(lambda: found(label), 10)
        except TimeoutError:
            self.fail(f"no {label!r} in {message.text!r} {message.keyboard!r}")
        self.system.telegram.chat.user_presses(message.message_id, label=found(label)[0])
        await self.system.telegram.when(lambda: words in (message.text or "") or found(words))

    @deferred
    async def state(self) -> dict[str, Any]:
        """What the worker says of its Pi."""
        done = await self.system.cli("workers", "state", "alpha", "--json")
        return dict(done.json()["result"])

    @deferred
    async def test_an_operator_s_hour(self) -> None:
        """Model, thinking, queue, template, settings, compaction and sessions, over a restart."""
        (thread,) = await self.start("alpha")
        await self.model_and_level(thread)
        await self.queue(thread)
        await self.template(thread)
        await self.settings(thread)
        await self.sessions(thread)
        await self.compaction(thread)

    async def model_and_level(self, thread: int) -> None:
        """By buttons, and seen in Pi's state."""
        self.system.say("/start", thread)
        menu = await self.menu("Pi Telegram", thread)
        self.assertIn("🧩 /say_it — Repeats", menu.text)
        await self.tap(menu, "🤖 Model", "Choose a model")
        await self.tap(menu, OTHER, "🤖 Model:")
        await self.tap(menu, "☑️ Activate", "🟢 Active")
        await self.tap(menu, "⬆️ Back", "Choose a model")
        await self.tap(menu, "⬆️ Main menu", "Status: idle")
        await self.tap(menu, "🧠 Thinking", "Choose a thinking level")
        await self.tap(menu, "high", "🟢 high")
        state = await self.state()
        self.assertTrue(state["model"].endswith(f"/{OTHER}"), state)
        self.assertEqual(state["thinkingLevel"], "high")

    async def queue(self, thread: int) -> None:
        """What is moved, skipped and kept decides what the model gets, and in which order."""
        self.system.say("[[gate a]]", thread)
        await self.system.model.when_request(lambda r: "[[gate a]]" in r.text)
        for text in ("first", "second", "third"):
            self.system.say(f"{text} waits", thread)
        await self.system.until(self.three_wait)
        self.system.say("/queue", thread)
        menu = await self.menu("Queue:", thread)
        await self.tap(menu, "1. first", "first waits")
        await self.tap(menu, "Skip", "🔴 Skip")
        await self.tap(menu, "⬆️ Back", "1. 🔴 first")
        await self.tap(menu, "3. third", "third waits")
        await self.tap(menu, "Priority", "Queue:")
        self.system.model.open_gate("a")
        await self.system.answer("You said: second waits", thread)
        texts = [r.text for r in self.system.model.requests if "waits" in r.text]
        self.assertEqual(len(texts), 2, texts)
        self.assertIn("third waits", texts[0])
        self.assertIn("second waits", texts[1])

    @deferred
    async def three_wait(self) -> bool:
        """Whether three prompts are held."""
        status = await self.system.status()
        return bool(status["workers"][0]["queued"] == 3)

    async def template(self, thread: int) -> None:
        """Pi expands its own template."""
        self.system.say("/say_it hello there", thread)
        await self.system.answer("You said: Template says: hello there", thread)
        self.system.say("/mcp", thread)
        await self.system.answer("There is no /mcp here", thread)

    async def settings(self, thread: int) -> None:
        """Written by the leader, beside what stood there."""
        self.system.say("/settings", thread)
        menu = await self.menu("⚙️ Settings:", thread)
        await self.tap(menu, "📌 Proactive push: on", "📌 Proactive push: on")
        await self.tap(menu, "Off", "🟡 Off")
        document = json.loads((self.system.agent_dir / "telegram.json").read_text())
        self.assertEqual(document["assistant"], {"proactivePush": False})
        self.assertIn("botToken", document["profiles"]["default"])
        (worker,) = self.system.workers()
        worker.kill()
        await self.system.until(lambda: self.is_another(worker.pid), "another worker")
        await self.tap(menu, "⬆️ Back", "⚙️ Settings:")
        await self.tap(menu, "📌 Proactive push: off", "📌 Proactive push: off")

    @deferred
    async def is_another(self, before: int) -> bool:
        """Whether another process of the worker is ready."""
        worker = await self.private("alpha")
        return bool(worker["state"] == "running" and worker["pid"] != before)

    async def sessions(self, thread: int) -> None:
        """A new one, and back to the one before by its first words."""
        before = (await self.private("alpha"))["session_file"]
        self.system.say("/new", thread)
        await self.system.answer("Pi is in a new session", thread)
        await self.asked("elsewhere now", thread)
        self.assertNotEqual((await self.private("alpha"))["session_file"], before)
        self.system.say("/sessions", thread)
        menu = await self.menu("🗂 Sessions:", thread)
        await self.tap(menu, "[[gate a]]", "Switch to this session?")
        await self.tap(menu, "✅ Yes, switch", "🗂 Sessions:")
        self.assertEqual((await self.private("alpha"))["session_file"], before)
        request = await self.asked("back again", thread)
        self.assertIn("[[gate a]]", request.users[0])

    async def compaction(self, thread: int) -> None:
        """Confirmed by a button; its end is told, and the model was asked for a summary."""
        self.system.say("/compact keep the names", thread)
        menu = await self.menu("Compact session?", thread)
        self.system.telegram.chat.user_presses(menu.message_id, label="🗜 Yes, compact")
        ended = await self.system.telegram.when_message(
            lambda m: (
                "Compaction completed" in (m.text or "") or "Compaction failed" in (m.text or "")
            ),
            thread=thread,
        )
        self.assertEqual(ended.text, "✅ Compaction completed.")
        await self.system.telegram.when(lambda: menu.text == "🗜 Compaction started.")
        self.assertEqual(menu.keyboard, [])

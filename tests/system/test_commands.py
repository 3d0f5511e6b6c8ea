"""What can be asked of a worker's Pi from the command line."""

from __future__ import annotations

import json
from typing import Any

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


class Commands(SystemCase):
    """C{workers set-model}, C{set-thinking}, C{compact}, C{clear-queue}, C{new-session}."""

    def setUp(self) -> None:
        """Give Pi a second model, and let it compact even a short conversation."""
        super().setUp()
        models = self.system.agent_dir / "models.json"
        settings = self.system.agent_dir / "settings.json"
        value = json.loads(models.read_text())
        (provider,) = value["providers"].values()
        provider["models"].append({**provider["models"][0], "id": "thinker", "reasoning": True})
        models.write_text(json.dumps(value))
        value = json.loads(settings.read_text())
        settings.write_text(json.dumps({**value, "compaction": {"keepRecentTokens": 1}}))

    @deferred
    async def state(self) -> dict[str, Any]:
        """What the worker's Pi says now."""
        done = await self.system.cli("workers", "state", "alpha", "--json")
        return dict(done.json()["result"])

    @deferred
    async def test_everything(self) -> None:
        """Each is done by Pi, seen in its state, and refused with a reason where it cannot be."""
        (thread,) = await self.start("alpha")
        await self.asked("the first turn", thread)
        await self.model_and_thinking()
        await self.compaction(thread)
        await self.queue(thread)
        before = await self.state()
        await self.worker("new-session", "alpha")
        after = await self.state()
        self.assertNotEqual(before["sessionId"], after["sessionId"])
        self.assertEqual(after["sessionEntries"], 0)
        request = await self.asked("after all that", thread)
        self.assertEqual(len(request.users), 1)

    @deferred
    async def model_and_thinking(self) -> None:
        """The model, then its thinking level."""
        await self.worker("set-model", "alpha", "scripted/thinker")
        await self.worker("set-thinking", "alpha", "high")
        state = await self.state()
        self.assertEqual((state["model"], state["thinkingLevel"]), ("scripted/thinker", "high"))
        await self.refused("set-model", "alpha", "scripted/no-such-model")
        bad = await self.system.cli("workers", "set-thinking", "alpha", "sideways", "--json")
        self.assertEqual((bad.code, bad.json()["disposition"]), (1, "no_receipt"), bad.out)
        state = await self.state()
        self.assertEqual((state["model"], state["thinkingLevel"]), ("scripted/thinker", "high"))

    @deferred
    async def compaction(self, thread: int) -> None:
        """It asks the model for a summary, once per request id, and the summary is what it knows."""
        await self.asked("the second turn", thread)
        arguments = ("compact", "alpha", "--instructions", "keep names", "--request-id", "c-1")
        result = await self.worker(*arguments)
        summaries = [text for r in self.system.model.requests if not r.tools for text in r.users]
        self.assertIn("keep names", "".join(summaries))
        asked = len(self.system.model.requests)
        self.assertEqual(await self.worker(*arguments), result)
        self.assertEqual(len(self.system.model.requests), asked)
        request = await self.asked("after the compaction", thread)
        self.assertIn("A short summary", "".join(request.users))
        self.assertFalse([text for text in request.users if text == "the first turn"])

    @deferred
    async def queue(self, thread: int) -> None:
        """What waits is dropped, and never runs."""
        self.system.say("[[gate g]] streams", thread)
        await self.system.model.when_request(lambda r: "gate g" in r.text)
        for number in range(2):
            await self.worker("prompt", "alpha", f"dropped {number}")
        self.assertEqual((await self.state())["queued"], 2)
        await self.worker("clear-queue", "alpha")
        self.assertEqual((await self.state())["queued"], 0)
        self.system.model.open_gate("g")
        await self.system.answer("After the gate", thread)
        await self.asked("behind it", thread)
        self.assertEqual(self.system.prompts("dropped"), [])

"""Telegram answers badly, or not at all."""

from __future__ import annotations

from typing import Any

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase

AGAIN = "📤 Deliver again"


class BadAnswers(SystemCase):
    """Each answer is in the chat once, or counted as uncertain with its button."""

    @deferred
    async def ask(self, kind: str, **options: Any) -> int:
        """Start a worker and order a fault for its answer; fires with the Thread."""
        (thread,) = await self.start("alpha")
        fault = self.system.telegram.faults.add(
            "sendRichMessage", kind, containing="the answer", **options
        )
        self.system.say("[[say text='this is the answer']]", thread)
        await fault.when_hit()
        return thread

    @deferred
    async def parked(self) -> None:
        """The status document counts one uncertain answer and is degraded."""
        document = await self.system.until(
            lambda: self.system.status().addCallback(
                lambda d: d if d["outbox"]["uncertain"] == 1 else None
            ),
            "an uncertain answer",
        )
        self.assertEqual(document["health"], "degraded")

    @deferred
    async def uncertain(self, kind: str, applied: bool) -> None:
        """An answer of unknown fate is parked, and sent again by its button only."""
        thread = await self.ask(kind, applied=applied)
        await self.parked()
        self.assertEqual(len(self.system.answers("this is the answer", thread)), int(applied))
        button = await self.system.telegram.when_message(
            lambda m: any(b["text"] == AGAIN for row in m.keyboard for b in row), thread=thread
        )
        self.system.say("next", thread)
        await self.system.answer("You said: next", thread)
        self.assertEqual(len(self.system.answers("this is the answer", thread)), int(applied))
        self.system.telegram.chat.user_presses(button.message_id, label=AGAIN)
        await self.system.until(
            lambda: len(self.system.answers("this is the answer", thread)) == int(applied) + 1,
            "the answer sent again",
        )
        await self.system.until(
            lambda: self.system.status().addCallback(lambda d: d["outbox"]["uncertain"] == 0),
            "nothing uncertain",
        )
        # The button is good once.
        self.system.telegram.chat.user_presses(button.message_id, label=AGAIN)
        self.system.say("and then", thread)
        await self.system.answer("You said: and then", thread)
        self.assertEqual(len(self.system.answers("this is the answer", thread)), int(applied) + 1)

    def test_502(self) -> Any:
        """A 502 page in HTML after the message was posted."""
        return self.uncertain("html502", True)

    def test_502_not_posted(self) -> Any:
        """A 502 page in HTML although nothing was posted."""
        return self.uncertain("html502", False)

    def test_cut(self) -> Any:
        """An answer that is cut in the middle."""
        return self.uncertain("cut", True)

    def test_reset(self) -> Any:
        """A connection that ends without an answer."""
        return self.uncertain("reset", True)

    def test_hang(self) -> Any:
        """An answer that never comes."""
        return self.uncertain("hang", True)

    @deferred
    async def test_429(self) -> None:
        """A flood limit is waited for; the answer arrives once and nothing is uncertain."""
        thread = await self.ask("429", retry_after=3)
        begin = self.system.reactor.seconds()
        await self.system.answer("this is the answer", thread)
        self.assertGreaterEqual(self.system.reactor.seconds() - begin, 2.5)
        self.once("this is the answer", thread)
        document = await self.system.status()
        self.assertEqual(document["outbox"]["uncertain"], 0)

    @deferred
    async def test_429_storm(self) -> None:
        """Everything is slowed down again and again, with previews and typing: each answer once, in order."""
        self.assistant(draftPreviews=True)
        threads = await self.start("alpha", "beta")
        for method, times in (("sendMessage", 4), ("sendChatAction", 6), ("editMessageText", 3)):
            self.system.telegram.faults.add(method, "429", times=times, retry_after=1)
        for number in range(3):
            for thread in threads:
                self.system.say(f"storm-{number}", thread)
        for thread in threads:
            await self.system.answer("You said: storm-2", thread)
            said = [m.text for m in self.system.answers("You said: storm-", thread)]
            self.assertEqual(said, [f"You said: storm-{number}" for number in range(3)])
        document = await self.system.status()
        self.assertEqual(document["outbox"]["uncertain"], 0)

    @deferred
    async def test_409_once(self) -> None:
        """A 409 is told by the status and got over."""
        (thread,) = await self.start("alpha")
        self.system.telegram.faults.add("getUpdates", "409", times=3)
        self.system.say("first", thread)
        await self.system.until(
            lambda: self.system.status().addCallback(
                lambda d: d["polling"]["phase"] == "conflict" or d["polling"]["receiving"]
            ),
            "a phase",
        )
        await self.system.answer("You said: first", thread)
        self.once("You said: first", thread)

    @deferred
    async def test_polls_fail_in_every_way(self) -> None:
        """Polls that hang, are cut or answered with rubbish lose and double nothing."""
        (thread,) = await self.start("alpha")
        for number, kind in enumerate(("html502", "cut", "empty", "no-result", "reset")):
            fault = self.system.telegram.faults.add("getUpdates", kind, times=2, applied=True)
            self.system.say(f"poll-{number}", thread)
            await fault.when_done()
            await self.system.answer(f"You said: poll-{number}", thread)
        for number in range(5):
            self.once(f"You said: poll-{number}")
            self.prompted_once(f"poll-{number}")


class TelegramAway(SystemCase):
    """The machine works while Telegram is away."""

    @deferred
    async def test_everything_over_the_control_socket(self) -> None:
        """It starts, runs a worker and a prompt, and tells the truth; the answer comes later."""
        await self.system.telegram.go_offline()
        await self.system.start_daemon()
        started = await self.system.cli("workers", "start", str(self.system.project("alpha")))
        self.assertEqual(started.code, 0, started.err)
        asked = await self.system.cli("workers", "prompt", "alpha", "hello from the desk")
        self.assertEqual(asked.code, 0, asked.err)
        await self.system.until(lambda: self.system.prompts("hello from the desk"), "the prompt")
        document = await self.system.status()
        self.assertNotEqual(document["health"], "ok")
        self.assertEqual(document["polling"]["phase"], "retrying")
        self.assertEqual([w["state"] for w in document["workers"]], ["running"])
        self.system.telegram.go_online()
        thread = await self.system.thread_of("alpha")
        await self.system.answer("You said: hello from the desk", thread)
        self.once("You said: hello from the desk", thread)
        self.prompted_once("hello from the desk")

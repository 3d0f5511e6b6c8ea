"""The way of one prompt: Telegram, daemon, worker, Pi, and back."""

from __future__ import annotations

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.directives import long_text
from tests.system import SystemCase


class MainJob(SystemCase):
    """A person writes in a Thread and reads the answer there."""

    @deferred
    async def test_an_answer_comes_back_once(self) -> None:
        """A message in a worker's Thread reaches Pi, and its answer comes back there, once."""
        (thread,) = await self.start("alpha")
        self.system.say("good morning", thread)
        await self.system.answer("You said: good morning", thread)
        self.once("You said: good morning")
        self.prompted_once("good morning")

    @deferred
    async def test_two_workers_never_mix(self) -> None:
        """Ten prompts to each of two workers are answered in their own Threads, in order."""
        first, second = await self.start("alpha", "beta")
        for number in range(10):
            self.system.say(f"one-{number:02d}", first)
            self.system.say(f"two-{number:02d}", second)
        await self.system.answer("You said: one-09", first)
        await self.system.answer("You said: two-09", second)
        for thread, word in ((first, "one"), (second, "two")):
            said = [m.text for m in self.system.answers("You said:", thread)]
            self.assertEqual(said, [f"You said: {word}-{n:02d}" for n in range(10)])
        self.assertEqual(len(self.system.prompts("one-")), 10)
        self.assertEqual(len(self.system.prompts("two-")), 10)

    @deferred
    async def test_a_long_answer_arrives_whole(self) -> None:
        """Nineteen thousand characters arrive in order, in messages within Telegram's limit."""
        self.assistant(rendering="html")
        (thread,) = await self.start("alpha")
        self.system.say("[[long 19000]]", thread)
        answer = await self.system.until(
            lambda: self.whole_answer(thread) if self.whole_answer(thread)[1] >= 18_500 else None,
            "the long answer",
        )
        parts, _ = answer
        done = await self.system.cli("workers", "state", "alpha", "--json")
        self.assertEqual(done.code, 0, done.err)
        joined = "".join("".join(part.split()) for part in parts)
        expected = "".join(long_text(19_000).split())
        self.assertEqual(joined, expected)
        self.assertTrue(all(len(part.encode("utf-16-le")) <= 8192 for part in parts))

    def whole_answer(self, thread: int) -> tuple[list[str], int]:
        """The texts after the readiness notice, and their length."""
        texts = [m.text for m in self.system.telegram.chat.from_bot(thread)]
        start = next(i for i, text in enumerate(texts) if "is ready" in text)
        parts = texts[start + 1 :]
        return parts, sum(map(len, parts))

"""Threads that the owner deleted, and Threads of which Telegram only says so."""

from __future__ import annotations

from typing import Any

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.records import Message, Thread
from tests.system import SystemCase
from tests.system.test_dialogs import DialogCase

REPLACED = "this one takes its place"
NOT_FOUND = "Bad Request: message thread not found"


class DeadThreads(SystemCase):
    """An answer finds out that its Thread is dead; it arrives once, and the worker goes on."""

    @deferred
    async def streaming(self, name: str, thread: int) -> None:
        """Bring the model into the middle of an answer."""
        self.system.say(f"[[gate {name} text='the whole answer of {name}']]", thread)
        await self.system.model.when_request(lambda request: f"gate {name}" in request.text)

    @deferred
    async def replaced(self, old: int) -> int:
        """The worker's one new Thread; it is told what happened, once."""
        thread = int(
            await self.system.until(
                lambda: next((t.thread_id for t in self.named("A") if t.thread_id != old), None),
                "a new Thread",
            )
        )
        await self.system.answer(REPLACED, thread)
        self.once(REPLACED, thread)
        self.assertEqual([t.thread_id for t in self.named("A")], [thread])
        return thread

    def named(self, title: str) -> list[Thread]:
        """The living Threads of a title."""
        return [each for each in self.system.telegram.chat.threads if each.name == title]

    def made(self, method: str) -> int:
        """How often the bot called a method."""
        return sum(call.method == method for call in self.system.telegram.calls)

    @deferred
    async def test_three_ways(self) -> None:
        """Not found, TOPIC_DELETED, and a silent landing in the main chat, while an answer streams:
        it arrives once, in one new Thread that is told once, where the worker goes on."""
        (thread,) = await self.start("alpha")
        chat = self.system.telegram.chat
        for sends in ("not-found", "deleted", "main"):
            await self.streaming(sends, thread)
            chat.user_deletes_thread(thread, sends)
            self.system.model.open_gate(sends)
            thread = await self.replaced(thread)
            await self.system.answer(f"answer of {sends}", thread)
            self.once(f"answer of {sends}")
            await self.asked(f"after {sends}", thread)
        self.assertEqual(self.made("createForumTopic"), 5)
        self.assertEqual([m.text for m in chat.from_bot(None) if m.text], [])
        await self.landed_for_good(thread)

    @deferred
    async def landed_for_good(self, thread: int) -> None:
        """What cannot be taken back out of the main chat counts as delivered there."""
        await self.streaming("stuck", thread)
        self.system.telegram.chat.user_deletes_thread(thread, "main")
        fault = self.system.telegram.faults.add(
            "deleteMessage", "error", description="Bad Request: message can't be deleted"
        )
        self.system.model.open_gate("stuck")
        thread = await self.replaced(thread)
        self.assertEqual(fault.hits, 1)
        self.once("answer of stuck", None)
        self.once("answer of stuck")
        await self.asked("after all", thread)
        document = await self.system.status()
        self.assertEqual(set(document["outbox"].values()), {0})

    @deferred
    async def test_lost_deletion(self) -> None:
        """Whether the message was taken out of the main chat is asked until it is known: an answer
        that is nowhere counts as delivered nowhere."""
        (thread,) = await self.start("alpha")
        await self.streaming("lost", thread)
        self.system.telegram.chat.user_deletes_thread(thread, "main")
        fault = self.system.telegram.faults.add("deleteMessage", "cut", applied=True)
        self.system.model.open_gate("lost")
        thread = await self.replaced(thread)
        await self.system.answer("answer of lost", thread)
        self.once("answer of lost")
        self.assertEqual(fault.hits, 1)

    @deferred
    async def test_false_alarm(self) -> None:
        """Telegram does not find a living Thread: no new one is made, the answer comes a bit later."""
        (thread,) = await self.start("alpha")
        for number, description in enumerate((NOT_FOUND, "Bad Request: TOPIC_DELETED")):
            fault = self.system.telegram.faults.add(
                "sendRichMessage",
                "error",
                description=description,
                containing=f"said: alarm {number}",
            )
            await self.asked(f"alarm {number}", thread)
            self.assertEqual(fault.hits, 1)
            self.once(f"said: alarm {number}", thread)
        self.assertEqual(self.made("createForumTopic"), 2)
        self.assertEqual(self.made("editForumTopic"), 2)
        self.assertEqual(len(self.named("A")), 1)
        self.assertEqual(self.system.answers(REPLACED), [])


class DeadDialogs(DialogCase):
    """A question and its Thread."""

    @deferred
    async def question_elsewhere(self, text: str, old: int) -> Message:
        """The message of a question that can be answered, in another Thread than before."""
        found = await self.system.telegram.when_message(
            lambda m: (
                text in (m.text or "") and bool(m.keyboard) and m.thread_id not in (None, old)
            ),
            timeout=60,
        )
        self.thread = int(found.thread_id or 0)
        return found

    @deferred
    async def test_open_in_it(self) -> None:
        """It is asked again where the worker's next word goes, and answered there."""
        old = await self.begin()
        self.ask("wait")
        await self.question("Still there?")
        self.system.telegram.chat.user_deletes_thread(old)
        (self.system.project("alpha") / "go").touch()
        question = await self.question_elsewhere("Still there?", old)
        await self.system.answer("knock knock", self.thread)
        self.reply(question, "yes")
        await self.answered(("wait", "yes"))
        await self.system.answer("wait was asked", self.thread)
        self.assertEqual(len(self.system.answers("Still there?")), 1)

    @deferred
    async def test_nobody_can_see_it(self) -> None:
        """When nothing else is said its time passes; the worker goes on, and says so."""
        old = await self.begin()
        self.ask("quick")
        await self.question("Quick?")
        self.system.telegram.chat.user_deletes_thread(old)
        await self.answered(("quick", None))
        line = await self.system.telegram.when_message(
            lambda m: "message was gone before" in (m.text or ""), timeout=60
        )
        self.thread = int(line.thread_id or 0)
        await self.system.answer("quick was asked", self.thread)
        self.assertNotEqual(self.thread, old)

    @deferred
    async def test_asked_into_it(self) -> None:
        """A question that finds its Thread dead is asked in the new one, however it finds out."""
        thread = await self.begin()
        for number, sends in enumerate(("not-found", "deleted", "main")):
            request = self.late("input", sends)
            await self.system.model.when_request(request)
            self.system.telegram.chat.user_deletes_thread(thread, sends)
            self.system.model.open_gate(sends)
            question = await self.question_elsewhere("Your name?", thread)
            thread = self.thread
            self.reply(question, sends)
            await self.until_answer(number + 1)
            await self.system.answer(f"{sends} was asked", thread)
        self.assertEqual(self.answers(), [["input", s] for s in ("not-found", "deleted", "main")])
        self.assertEqual(self.system.answers("Pi asked while"), [])
        self.assertEqual(self.system.telegram.chat.from_bot(None), [])

    def late(self, kind: str, gate: str) -> Any:
        """Let the model use the tool when a gate is opened; returns what knows its request."""
        tool = f'[[tool ask {{"kind": "{kind}"}}]] [[say "{gate} was asked"]]'
        self.system.say(f"[[gate {gate} text='first']] {tool}", self.thread)
        return lambda request: f"gate {gate}" in request.text

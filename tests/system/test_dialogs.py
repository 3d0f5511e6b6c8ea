"""Questions of a real Pi's extensions, asked and answered in Telegram."""

from __future__ import annotations

import json
import signal
from typing import Any

from pitelegram.bridge import dialogs as words
from pitelegram.bridge.cutting import utf16_length
from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.records import Message
from tests.system import SystemCase

EXTENSION = """
import { appendFileSync, existsSync } from "node:fs";

const names = Array.from({ length: 100 }, (_, n) => `option ${n}`);
const asks = {
  select: (ui) => ui.select("Which colour?", ["red", "green"]),
  hundred: (ui) => ui.select("Which of many?", names),
  confirm: (ui) => ui.confirm("Sure?", "All of it?"),
  input: (ui) => ui.input("Your name?", "a name"),
  editor: (ui) => ui.editor("Edit this", "one\\ntwo"),
  long: (ui) => ui.confirm("Long?", "word ".repeat(2000)),
  quick: (ui) => ui.input("Quick?", "", { timeout: 4000 }),
  many: (ui) => Promise.all(names.slice(0, 40).map((name) => ui.select(name, ["yes", "no"]))),
  wait: (ui) => {
    const timer = setInterval(() => {
      if (!existsSync("go")) return;
      clearInterval(timer);
      ui.notify("knock knock");
    }, 50);
    return ui.input("Still there?");
  },
  tell: async (ui) => { ui.notify("look here", "warning"); ui.setStatus("k", "hidden"); ui.setTitle("hidden"); },
};

export default function (pi) {
  pi.registerTool({
    name: "ask",
    label: "Ask",
    description: "Asks the user",
    parameters: { type: "object", properties: { kind: { type: "string" } }, required: ["kind"] },
    async execute(id, params, signal, onUpdate, ctx) {
      const value = await asks[params.kind](ctx.ui);
      const line = JSON.stringify([params.kind, value === undefined ? null : value]);
      appendFileSync("answers.log", line + "\\n");
      return { content: [{ type: "text", text: "asked" }], details: {} };
    },
  });
}
"""
"""An extension with a tool that asks each kind of question and writes down what it was answered."""


class DialogCase(SystemCase):
    """A worker whose Pi can ask."""

    @deferred
    async def begin(self) -> int:
        """Start the daemon and one worker; its Thread."""
        folder = self.system.agent_dir / "extensions"
        folder.mkdir()
        (folder / "ask.ts").write_text(EXTENSION)
        (self.thread,) = await self.start("alpha")
        return self.thread

    def ask(self, kind: str) -> None:
        """Let the model use the tool."""
        arguments = json.dumps({"kind": kind})
        self.system.say(f"[[tool ask {arguments}]] [[say '{kind} was asked']]", self.thread)

    @deferred
    async def question(self, text: str) -> Message:
        """The message of a question that can be answered."""
        return await self.system.telegram.when_message(
            lambda m: text in (m.text or "") and bool(m.keyboard), thread=self.thread, timeout=60
        )

    @deferred
    async def told(self, message: Message, text: str) -> None:
        """A question's message comes to say this and loses its buttons."""
        await self.system.until(lambda: text in message.text and not message.keyboard, text)

    def press(self, message: Message, label: str) -> str:
        """Press a button."""
        return self.system.telegram.chat.user_presses(message.message_id, label=label)

    def reply(self, message: Message, text: str) -> None:
        """Reply to a question."""
        self.system.telegram.chat.user_sends(text, self.thread, reply_to=message.message_id)

    def answers(self) -> list[Any]:
        """What the extension was answered, in order."""
        path = self.system.project("alpha") / "answers.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @deferred
    async def until_answer(self, number: int) -> Any:
        """The answer of that number."""
        await self.system.until(lambda: len(self.answers()) >= number, f"answer {number}")
        return self.answers()[number - 1]

    @deferred
    async def answered(self, *expected: Any) -> None:
        """The extension comes to have been answered exactly this."""
        count = len(expected)
        await self.system.until(lambda: len(self.answers()) >= count, f"answer {count}")
        self.assertEqual(self.answers(), [list(each) for each in expected])

    @deferred
    async def toast(self, query: str) -> str:
        """What a press was answered."""
        presses = self.system.telegram.chat.world.presses

        def look() -> Any:
            press = presses.get(query)
            return press is not None and press.answer

        return str((await self.system.until(look, "the answer to a press")).get("text"))


class Asked(DialogCase):
    """Each kind, with everything going well or nobody there."""

    @deferred
    async def test_each_kind(self) -> None:
        """Buttons, pages, replies, long texts, notices; all reach the extension unchanged."""
        await self.begin()
        self.ask("select")
        colour = await self.question("Which colour?")
        self.press(colour, "green")
        await self.told(colour, "✅ Answered: green")
        self.ask("confirm")
        sure = await self.question("All of it?")
        self.press(sure, "No")
        self.ask("input")
        name = await self.question("Your name?")
        self.reply(name, "Ada Ⅸ  ")
        await self.told(name, words.ANSWERED)
        self.assertNotIn("Ada", name.text)
        self.ask("editor")
        self.reply(await self.question("one\ntwo"), "three")
        self.ask("hundred")
        many = await self.question("60 of 100 have buttons")
        for button, first in (("➡️ 2/8", 8), ("⬅️ 1/8", 0), ("⬅️ 8/8", 56)):
            self.press(many, button)
            await self.system.until(
                lambda label=f"option {first}": many.keyboard[0][0]["text"] == label, button
            )
        self.press(many, "option 59")
        await self.told(many, "✅ Answered: option 59")
        self.ask("hundred")
        self.reply(await self.question("60 of 100 have buttons"), "100")
        await self.answered(
            ("select", "green"),
            ("confirm", False),
            ("input", "Ada Ⅸ  "),
            ("editor", "three"),
            ("hundred", "option 59"),
            ("hundred", "option 99"),
        )
        self.assertEqual(self.system.prompts("Ada"), [])
        await self.long_text_and_notice()

    @deferred
    async def long_text_and_notice(self) -> None:
        """The whole of a long text is attached; a notice is a message, decoration is nothing."""
        self.ask("long")
        long = await self.question("Long?")
        self.assertLessEqual(utf16_length(long.text), 4096)
        chat = self.system.telegram.chat
        document = await self.system.until(
            lambda: next((m for m in chat.from_bot(self.thread) if "document" in m.content), None),
            "the document",
        )
        self.assertEqual(document.reply_to, long.message_id)
        self.assertGreaterEqual(document.content["document"]["file_size"], 10_000)
        self.press(long, words.CANCEL_LABEL)
        await self.told(long, words.CANCELLED)
        self.assertEqual((await self.until_answer(7)), ["long", False])
        self.ask("tell")
        await self.system.answer("⚠️ look here", self.thread)
        await self.system.answer("tell was asked", self.thread)
        self.assertEqual(self.system.answers("hidden"), [])

    @deferred
    async def test_forty_and_time(self) -> None:
        """Of forty at once eight are shown, 32 cancelled; a time-out ends one; late changes nothing."""
        await self.begin()
        self.ask("many")
        await self.system.answer("32 were cancelled", self.thread)
        shown = await self.system.until(
            lambda: (
                found if len(found := self.system.answers("❔ option", self.thread)) == 8 else None
            ),
            "eight questions",
        )
        for message in shown:
            self.press(message, "yes")
        await self.answered(("many", ["yes"] * 8 + [None] * 32))
        for message in shown:
            await self.told(message, "✅ Answered: yes")
        self.ask("quick")
        quick = await self.question("Quick?")
        self.assertIn("⏳ 4 s", quick.text)
        await self.told(quick, words.EXPIRED)
        await self.answered(("many", ["yes"] * 8 + [None] * 32), ("quick", None))
        self.reply(quick, "too late")
        await self.system.answer(words.LATE_REPLY, self.thread)
        chat = self.system.telegram.chat
        key = shown[0].message_id
        query = chat.user_presses(key, data="dlg:0123456789ab:o0")
        self.assertEqual(await self.toast(query), words.LATE)
        self.assertEqual(len(self.answers()), 2)
        self.assertEqual(self.system.prompts("too late"), [])


class Interrupted(DialogCase):
    """Something ends while a question is open."""

    @deferred
    async def test_abort_is_a_command(self) -> None:
        """As a reply to an open question too; what asked is aborted, the next prompt runs."""
        await self.begin()
        self.ask("input")
        name = await self.question("Your name?")
        self.reply(name, "/abort")
        await self.system.answer("Aborted current turn.", self.thread)
        await self.told(name, words.ABORTED)
        await self.asked("and now", self.thread)
        self.assertNotIn(["input", "/abort"], self.answers())

    @deferred
    async def test_first_answer_wins(self) -> None:
        """The command line answers the same question; the Thread's answer is late then."""
        await self.begin()
        self.ask("select")
        colour = await self.question("Which colour?")
        green = next(row[0] for row in colour.keyboard if row[0]["text"] == "green")
        (dialog,) = (await self.system.cli("workers", "state", "alpha", "--json")).json()["result"][
            "dialogs"
        ]
        await self.worker("answer", "alpha", dialog["dialogRef"], "--option", "red")
        await self.told(colour, "✅ Answered: red")
        query = self.system.telegram.chat.user_presses(
            colour.message_id, data=green["callback_data"]
        )
        self.assertEqual(await self.toast(query), words.LATE)
        await self.answered(("select", "red"))

    @deferred
    async def test_worker_killed_and_stopped(self) -> None:
        """Its questions are closed by the next one; their buttons answer nothing of the new Pi."""
        await self.begin()
        self.ask("confirm")
        first = await self.question("All of it?")
        await self.system.cli("workers", "state", "alpha")  # the message's id is stored by then
        yes = next(b for b in first.keyboard[0] if b["text"] == "Yes")["callback_data"]
        (worker,) = self.system.workers()
        worker.send_signal(signal.SIGKILL)
        await self.told(first, words.WORKER_ENDED)
        self.assertEqual(self.answers(), [])
        self.ask("confirm")
        second = await self.question("All of it?")
        query = self.system.telegram.chat.user_presses(first.message_id, data=yes)
        self.assertEqual(await self.toast(query), words.LATE)
        self.assertEqual(self.answers(), [])
        await self.worker("stop", "alpha")
        await self.told(second, "✖️")
        self.assertEqual([value for _, value in self.answers() if value], [])

    @deferred
    async def test_everything_restarted(self) -> None:
        """A new daemon brings the answer that was given meanwhile; a worker that is to be restarted
        waits for its answer; the new one asks its own questions."""
        await self.begin()
        self.ask("select")
        colour = await self.question("Which colour?")
        assert self.system.daemon is not None
        await self.system.daemon.kill()
        self.press(colour, "green")
        await self.system.start_daemon()
        await self.answered(("select", "green"))
        await self.told(colour, "✅ Answered: green")
        await self.system.answer("select was asked", self.thread)
        self.ask("confirm")
        first = await self.question("All of it?")
        restart = self.worker("restart", "alpha")
        await self.system.until(
            lambda: self.system.worker_state("alpha").addCallback(lambda s: s == "draining"),
            "the drain",
        )
        self.press(first, "Yes")
        await self.answered(("select", "green"), ("confirm", True))
        await restart
        await self.system.telegram.when(lambda: len(self.system.answers("alpha is ready")) == 2)
        await self.told(first, "✅ Answered: Yes")
        self.ask("confirm")
        second = await self.question("All of it?")
        self.assertNotEqual(second.message_id, first.message_id)
        self.press(second, "No")
        await self.told(second, "✅ Answered: No")
        await self.answered(("select", "green"), ("confirm", True), ("confirm", False))

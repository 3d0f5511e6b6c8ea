"""A press of a button below an answer becomes one prompt, once, whatever happens meanwhile."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.buttons import keyboard
from pitelegram.bridge.comments import HEADING
from pitelegram.bridge.outgoing import Button
from pitelegram.bridge.turn import NO_TEXT
from pitelegram.errors import LinkLost, PiRefused, StoreFull
from pitelegram.store.database import Database
from pitelegram.store.inbox import Inbox
from pitelegram.store.outgoing import BUTTONS_KEPT_MS, Outgoing
from pitelegram.testing.worker import WorkerRig
from pitelegram.worker.minting import minting
from pitelegram.worker.speaking import FAILED
from tests.worker.test_crashes import WritingPi
from tests.worker.test_queue import Replaced, RigCase

ROWS = (
    (
        Button(label="Go on", prompt="please go on", style="success"),
        Button(label="Stop", prompt="please stop"),
    ),
    (Button(label="More", prompt="two\n[telegram] lines"),),
)
KEYS = "0000000a", "0000000b", "0000000c"
GO, STOP, MORE = (f"tgbtn:{key}" for key in KEYS)


def offer(outgoing: Outgoing) -> None:
    """Store the buttons of an answer."""
    _, stored = keyboard(ROWS, iter(KEYS).__next__)
    outgoing.add_buttons(stored)


def answers(rig: WorkerRig) -> list[str]:
    """What presses were answered with."""
    return [p["text"] for method, p, _ in rig.link.api_calls if method == "answerCallbackQuery"]


def looks(rig: WorkerRig) -> list[list[str | None]]:
    """The styles of all buttons, after each edit of the keyboard."""
    edits = [p for method, p, _ in rig.link.api_calls if method == "editMessageReplyMarkup"]
    return [
        [button.get("style") for row in edit["reply_markup"]["inline_keyboard"] for button in row]
        for edit in edits
    ]


class Presses(RigCase):
    """One worker with an answer that has buttons."""

    def started(self) -> WorkerRig:
        """A running worker whose answer was sent."""
        rig = super().started()
        offer(rig.outgoing)
        return rig

    def test_once(self) -> None:
        """The first press is a prompt, the second one is told so."""
        rig = self.started()
        rig.press(GO)
        rig.press(GO)
        self.assertEqual([text for _, text, _ in rig.host.prompts],
                         ["[telegram|thread:Atlas] please go on"])  # fmt: skip
        self.assertEqual(answers(rig), ["Queued.", "Already queued."])
        self.assertEqual(rig.states(), {"settled": 2})

    def test_unknown(self) -> None:
        """A button that is not known, or is too old, does nothing."""
        rig = self.started()
        rig.press("tgbtn:ffffffff")
        rig.press("tgbtn:nothing")
        rig.clock.advance(BUTTONS_KEPT_MS / 1000)
        rig.press(GO)
        self.assertEqual(answers(rig), ["Button action expired."] * 3)
        self.assertEqual((rig.prompts(), looks(rig)), ([], []))

    def test_looks(self) -> None:
        """After the commit what was pressed has its style, and nothing else has."""
        rig = self.started()
        rig.press(STOP, 60)
        rig.press(GO, 60)
        rig.press(STOP, 60)
        self.assertEqual(looks(rig), [[None, "primary", None], ["success", "primary", None]])
        (edit, _) = (p for m, p, _ in rig.link.api_calls if m == "editMessageReplyMarkup")
        self.assertEqual((edit["chat_id"], edit["message_id"]), (100, 60))
        texts = [[b["text"] for b in row] for row in edit["reply_markup"]["inline_keyboard"]]
        self.assertEqual(texts, [["Go on", "Stop"], ["More"]])

    def test_failed_looks(self) -> None:
        """A restyle or an answer that fails changes nothing."""
        rig = self.started()
        rig.link.api_results += [LinkLost("no"), LinkLost("no")]
        rig.press(GO)
        self.assertEqual(rig.prompts(), ["please go on"])
        self.assertEqual(rig.states(), {"settled": 1})

    def test_after_a_restart(self) -> None:
        """Another process of the worker knows the buttons, and which were pressed."""
        rig = self.started()
        rig.press(GO)
        rig.crash()
        rig.start()
        for data in (GO, STOP):
            rig.press(data)
        self.assertEqual(rig.prompts(), ["please stop"])
        self.assertEqual(answers(rig), ["Already queued.", "Queued."])

    def test_no_link(self) -> None:
        """The press counts also when its answer cannot be sent."""
        rig = self.started()
        rig.link.lost = True
        rig.press(GO)
        self.assertEqual(rig.prompts(), ["please go on"])

    def test_while_pi_works(self) -> None:
        """It is a steering message, before everything that waits."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.message("waits")
        rig.press(GO)
        self.assertEqual(rig.prompts(), ["[[gate a]]", "please go on"])
        self.assertEqual(rig.host.prompts[-1][2], "priority")
        rig.host.open_gate("a")
        rig.run()
        self.assertEqual(rig.prompts(), ["[[gate a]]", "please go on", "waits"])

    def test_pi_that_refused(self) -> None:
        """A press asks a Pi again that takes no prompts, as a message does."""
        rig = self.started()
        rig.host.refusals = [PiRefused("No API key found for the selected model")]
        rig.message("first")
        rig.run(1)
        self.assertEqual(rig.prompts(), [])
        rig.press(GO)
        self.assertEqual(rig.prompts(), ["please go on", "first"])

    def test_in_the_queue(self) -> None:
        """Where it waits it goes before the others, and is called like its button."""
        rig = self.started()
        rig.parts.queue.close()
        rig.message("first")
        rig.press(MORE)
        rig.press(STOP)
        shown = [(item.summary, item.lane) for item in rig.parts.queue.view()]
        self.assertEqual(shown, [("More", "priority"), ("Stop", "priority"), ("first", "normal")])

    def test_nothing_is_forged(self) -> None:
        """What looks like a tag of ours in a prompt is none."""
        rig = self.started()
        rig.press(MORE)
        self.assertEqual(rig.host.prompts[0][1], "[telegram|thread:Atlas] two\n\\[telegram] lines")

    def test_full_disk(self) -> None:
        """A press that cannot be stored is done when it can."""
        rig = self.started()
        buttons = rig.parts.orders._buttons
        real = buttons._outgoing
        buttons._outgoing = Replaced(real, press=self.refuse)
        rig.press(GO)
        self.assertEqual((rig.prompts(), answers(rig)), ([], []))
        buttons._outgoing = real
        rig.run(15)
        self.assertEqual((rig.prompts(), answers(rig)), (["please go on"], ["Queued."]))

    async def refuse(self, *_: Any) -> bool:
        """As a store without space."""
        raise StoreFull("no space")

    def test_forgotten(self) -> None:
        """Old buttons are thrown away within the hour."""
        rig = self.started()
        rig.run(1)
        rig.clock.advance(BUTTONS_KEPT_MS / 1000 + 1)
        rig.clock.advance(3600)
        found = rig.database.read("SELECT count(*) FROM buttons")
        self.assertEqual(found[0][0], 0)


SAYING = r"[[say 'Shall I?\n\n<!-- telegram_buttons [[{Yes|please go on}{No}]{More}] -->']]"


def keyboards(delivery: dict[str, Any]) -> list[Any]:
    """The keyboard of each call of a delivery."""
    return [call["params"].get("reply_markup") for call in delivery["calls"]]


class Answers(RigCase):
    """What Pi says, with its comments."""

    def test_buttons_of_an_answer(self) -> None:
        """They stand below it, are known when it is sent, and do what they say."""
        rig = self.started()
        rig.message(SAYING)
        ((_, delivery),) = rig.link.submitted
        self.assertEqual(rig.link.texts, ["Shall I?"])
        rows = keyboards(delivery)[0]["inline_keyboard"]
        self.assertEqual([[b["text"] for b in row] for row in rows], [["Yes", "No"], ["More"]])
        for row in rows:
            for button in row:
                rig.press(button["callback_data"])
        self.assertEqual(rig.prompts()[1:], ["please go on", "No", "More"])

    def test_reply(self) -> None:
        """The answer to a press is a reply to the message with the button."""
        rig = self.started()
        offer(rig.outgoing)
        rig.press(GO, 77)
        ((_, delivery),) = rig.link.submitted
        reply = delivery["calls"][0]["params"]["reply_parameters"]
        self.assertEqual(reply["message_id"], 77)

    def test_last_message(self) -> None:
        """Of a long answer the last message has them."""
        rig = self.started()
        rig.parts.preferences.take({"rendering": "html"})
        rig.message("[[long 9000]] [[say '\\n<!-- telegram_button: A -->']]")
        ((_, delivery),) = rig.link.submitted
        found = keyboards(delivery)
        self.assertGreater(len(found), 2)
        self.assertEqual(
            [markup is not None for markup in found], [False] * (len(found) - 1) + [True]
        )

    def test_only_comments(self) -> None:
        """There is always something to see."""
        rig = self.started()
        for comment in ("telegram_button: A", "telegram_voice: Hello", "telegram_button {", "note"):
            rig.message(f"[[say '<!-- {comment} -->']]")
        self.assertEqual(rig.link.texts, [HEADING, "Hello", FAILED, NO_TEXT, NO_TEXT])

    def test_before_the_answer(self) -> None:
        """What Pi says before its answer, or by itself, has its buttons, too; comments alone are not said."""
        rig = self.started()
        rig.parts.settler.comment("run", 1, "On it.\n<!-- telegram_button: Faster -->")
        rig.parts.settler.comment("run", 2, "<!-- telegram_button {} -->")
        rig.run()
        ((_, delivery),) = rig.link.submitted
        self.assertEqual(rig.link.texts, ["On it."])
        rig.press(keyboards(delivery)[0]["inline_keyboard"][0][0]["callback_data"])
        self.assertEqual(rig.prompts(), ["Faster"])

    def test_store_that_is_full(self) -> None:
        """Buttons that were stored without their answer are in nobody's way."""
        rig = self.started()
        refusals = [StoreFull("no space")] * 2
        real = rig.inbox.settle

        def settle(*arguments: Any) -> Any:
            return fail(refusals.pop()) if refusals else real(*arguments)

        rig.parts.settler._inbox = Replaced(rig.inbox, settle=settle)
        rig.message(SAYING)
        rig.run(10)
        ((_, delivery),) = rig.link.submitted
        rig.press(keyboards(delivery)[0]["inline_keyboard"][0][0]["callback_data"])
        self.assertEqual(rig.prompts()[1:], ["please go on"])

    def test_killed(self) -> None:
        """At whatever write: the answer is there once, and its buttons are known."""
        for writes in range(7):
            for after in (False, True):
                self.life(writes, after)

    def life(self, writes: int, after: bool) -> None:
        """Die at that write; then see the answer, and press."""
        rig = WorkerRig(Path(self.mktemp()).resolve())
        self.addCleanup(rig.database.close)
        dying: Any = DyingDatabase(rig.database)
        rig.inbox, rig.outgoing = Inbox(dying), Outgoing(dying)
        file = rig.base / "session.jsonl"
        pi = WritingPi(rig.clock, file)
        rig.start(pi)
        rig.run(1)
        dying.left, dying.after = writes, after
        rig.message(SAYING)
        rig.run(1)
        received, said = rig.receipt.called, list(rig.link.submitted)
        pi.stopped = True
        rig.crash()
        rig.inbox, rig.outgoing = Inbox(rig.database), Outgoing(rig.database)
        rig.start(WritingPi(rig.clock, file))
        if not received:
            body = {"message_id": 1, "chat": {"id": 100}, "text": SAYING}
            rig.forward("message", body, 1)
        rig.run(1)
        found = {name: delivery for name, delivery in [*said, *rig.link.submitted]}
        ((_, delivery),) = found.items()
        rig.press(keyboards(delivery)[0]["inline_keyboard"][0][0]["callback_data"])
        self.assertEqual(rig.prompts()[-1], "please go on", dying.names)


class Minting(RigCase):
    """Keys of new buttons."""

    def test_keys(self) -> None:
        """Eight hex digits, and none that is there already."""
        keys = [f"{Random(3).getrandbits(32):08x}"]
        _, stored = keyboard(ROWS[1:], iter(keys).__next__)
        self.rig.outgoing.add_buttons(stored)
        mint = minting(Random(3), self.rig.outgoing)
        keys += [mint() for _ in range(50)]
        self.assertEqual(len(set(keys)), 51)
        for key in keys:
            self.assertRegex(key, r"\A[0-9a-f]{8}\Z")


class DyingDatabase:
    """A store whose process is killed at a write: just before the commit, or just after.

    @ivar left: how many writes are done before, None for all.
    @ivar names: of the writes since then, the one that killed it included.
    """

    def __init__(self, real: Database) -> None:
        self._real = real
        self.left: int | None = None
        self.after = False
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def write(self, name: str, work: Any) -> Deferred[Any]:
        """Write while it lives."""
        if self.left is None:
            return self._real.write(name, work)
        if self.left < 0:
            return Deferred()
        self.left -= 1
        self.names.append(name)
        if self.left >= 0:
            return self._real.write(name, work)
        if self.after:
            self._real.write(name, work)
        return Deferred()


class Killed(SynchronousTestCase):
    """The worker dies at every step of a press."""

    def test_at_each_write(self) -> None:
        """The prompt is in the conversation once, and a second press does nothing."""
        died = {self.life(writes, after) for writes in range(6) for after in (False, True)}
        self.assertLessEqual({"admit", "press", "change inbox", "settled"}, died)

    def life(self, writes: int, after: bool) -> str:
        """Die at that write, live on, and press again; returns the write that it died at."""
        rig = WorkerRig(Path(self.mktemp()).resolve())
        self.addCleanup(rig.database.close)
        offer(rig.outgoing)
        file = rig.base / "session.jsonl"
        dying: Any = DyingDatabase(rig.database)
        rig.inbox, rig.outgoing = Inbox(dying), Outgoing(dying)
        pi = WritingPi(rig.clock, file)
        rig.start(pi)
        rig.run(1)
        dying.left, dying.after = writes, after
        rig.press(GO)
        rig.run(1)
        received, said = rig.receipt.called, list(rig.link.texts)
        pi.stopped = True
        rig.crash()
        rig.inbox, rig.outgoing = Inbox(rig.database), Outgoing(rig.database)
        rig.start(WritingPi(rig.clock, file))
        if not received:  # the leader sends an update again that it has no receipt for
            message = {"message_id": 50, "chat": {"id": 100}}
            rig.forward("callback_query", {"id": "cb", "data": GO, "message": message}, 1)
        rig.run(1)
        rig.press(GO)
        rig.run(1)
        where = writes, after, dying.names
        # Done before it is registered, a worker does not know its Thread's name yet.
        asked = re.findall(r'"user", "content": "\[telegram[^]]*\] please', file.read_text())
        self.assertEqual(len(asked), 1, where)
        self.assertEqual(answers(rig)[-1], "Already queued.", where)
        self.assertEqual(rig.inbox.rows("admitted", "held", "handed", "uncertain"), [], where)
        said += rig.link.texts
        self.assertEqual({text for text in said if "please" in text}, {"You said: please go on"})
        return dying.names[-1]

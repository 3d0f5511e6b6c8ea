"""Commands, edits and buttons overtake the queue, and repeating them does no harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.bridge import intakewords, labels
from pitelegram.errors import PiRefused, Refusal
from pitelegram.testing.worker import CHAT, WorkerRig
from pitelegram.worker.settling import short_id
from tests.worker.test_queue import Replaced, RigCase


class Commands(RigCase):
    """Slash commands of the Thread."""

    def test_abort_ends_the_run_and_the_queue_goes_on(self) -> None:
        """The answer so far is delivered, the next prompt runs."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.message("next")
        rig.message("/abort")
        rig.run()
        self.assertEqual(rig.link.texts, ["⏹ Aborted.", "Aborted current turn.", "You said: next"])
        self.assertEqual(rig.states(), {"settled": 3})

    def test_slow_disk(self) -> None:
        """Commits that overlap in any order leave no state behind that waits for nothing."""
        rig = self.started()
        waiting: list[Any] = []
        real = rig.inbox.settle

        def settle(seqs: Any, answers: Any = ()) -> Any:
            done: Deferred[None] = Deferred()
            waiting.append(lambda: real(seqs, answers).chainDeferred(done))
            return done

        rig.parts.settler._inbox = Replaced(rig.inbox, settle=settle)
        rig.message("[[gate a]]")
        rig.message("next")
        rig.message("/abort")
        rig.run()
        self.assertEqual(len(waiting), 2)
        for commit in list(waiting):
            commit()
        rig.run()
        self.assertEqual(rig.prompts(), ["[[gate a]]", "next"])

    def test_abort_gives_steering_back(self) -> None:
        """What Pi had queued is held again and runs."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.parts.follower.control("r", {"type": "steer", "message": "sooner"})
        rig.run()
        self.assertEqual(rig.states(), {"handed": 2})
        rig.message("/abort")
        rig.run()
        self.assertIn("You said: sooner", rig.link.texts)
        self.assertEqual(rig.states(), {"settled": 3})

    def test_stop_clears_what_came_before(self) -> None:
        """The run ends and nothing of the queue runs; what comes later does."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.parts.follower.control("r", {"type": "steer", "message": "sooner"})
        rig.run()
        rig.message("held")
        rig.message("/stop")
        rig.message("after")
        rig.run()
        self.assertIn("Aborted current turn. Cleared 2 queued turns.", rig.link.texts)
        self.assertEqual(rig.prompts(), ["[[gate a]]", "sooner", "after"])
        self.assertEqual(rig.link.texts[-1], "You said: after")
        self.assertEqual(rig.states(), {"settled": 3, "skipped": 2})

    def test_nothing_to_end(self) -> None:
        """Both say so."""
        rig = self.started()
        rig.message("/abort")
        rig.message("/stop")
        self.assertEqual(
            rig.link.texts, ["No active turn.", "No active turn. Cleared 0 queued turns."]
        )

    def test_abort_of_a_prompt_on_its_way(self) -> None:
        """An abort right behind a prompt ends that prompt's run."""
        rig = self.started()
        for number, text in enumerate(("[[gate a]]", "/abort"), 1):
            body = {"message_id": number, "chat": {"id": CHAT}, "text": text}
            rig.parts.follower.admit(f"d{number}", number, "message", {"message": body})
        rig.run()
        self.assertEqual(rig.link.texts, ["⏹ Aborted.", "Aborted current turn."])

    def test_status(self) -> None:
        """It tells what Pi does and how many wait."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.message("held")
        rig.message("/status")
        (text,) = rig.link.texts
        self.assertIn("Status: active", text)
        self.assertIn("Queue: 1", text)
        self.assertIn("scripted/scripted", text)

    def test_unknown_command(self) -> None:
        """It is answered with what exists, and Pi does not get it."""
        rig = self.started()
        rig.message("/bash please")
        self.assertEqual(rig.prompts(), [])
        self.assertEqual(rig.link.texts, [labels.unknown_command("bash")])

    def test_command_in_a_crash(self) -> None:
        """A command that was admitted only is done by the next process, once."""
        rig = self.started()
        rig.parts.orders._working = rig.clock  # type: ignore[assignment]
        rig.message("/status")
        self.assertEqual(rig.states(), {"admitted": 1})
        rig.crash()
        rig.start()
        self.assertEqual(len(rig.link.texts), 1)
        self.assertEqual(rig.states(), {"settled": 1})

    def test_stop_in_a_crash_spares_newer_prompts(self) -> None:
        """Done again after a crash it clears nothing that came after it."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.message("before")
        rig.parts.orders._working = rig.clock  # type: ignore[assignment]
        rig.message("/stop")
        rig.message("after")
        rig.crash()
        rig.start()
        rig.run(1)
        self.assertEqual(rig.inbox.rows("held"), [])
        self.assertIn("You said: after", rig.link.texts)
        self.assertNotIn("You said: before", rig.link.texts)


class Edits(RigCase):
    """Edited messages."""

    def test_held_prompt_is_replaced(self) -> None:
        """Pi gets the newest text."""
        rig = self.started()
        rig.message("[[gate a]]", 1)
        rig.message("old", 2)
        rig.edit("new", 2)
        rig.host.open_gate("a")
        rig.run()
        self.assertEqual(rig.prompts(), ["[[gate a]]", "new"])

    def test_handed_prompt_is_told_once(self) -> None:
        """The edit changes nothing and says so, once for all edits of a message."""
        rig = self.started()
        rig.message("[[gate a]]", 1)
        for text in ("b", "c"):
            rig.edit(text, 1)
        rig.host.open_gate("a")
        rig.run()
        rig.edit("d", 1)
        self.assertEqual(rig.link.texts, [intakewords.EDIT_TOO_LATE, "After the gate a."])
        self.assertEqual(rig.prompts(), ["[[gate a]]"])

    def test_edit_of_nothing_known(self) -> None:
        """An edit of a message that never came here does nothing."""
        rig = self.started()
        rig.edit("x", 77)
        self.assertEqual((rig.link.texts, rig.states()), ([], {"settled": 1}))


class SendAgain(RigCase):
    """The button of an uncertain prompt."""

    def _uncertain(self) -> tuple[WorkerRig, Any]:
        rig = self.started()
        rig.message("[[gate a]]", 5)
        row = rig.inbox.rows("handed")[0]
        rig.crash()
        file = rig.base / "session.jsonl"
        file.write_text(
            '{"type":"session","version":3,"id":"s","cwd":"/"}\n'
            '{"type":"message","id":"u1","message":{"role":"user","content":'
            '"[telegram|thread:Atlas] [[gate a]]"}}\n'
        )
        rig.start()
        return rig, row

    def test_notice_and_button(self) -> None:
        """The notice names the prompt and has one button."""
        rig, row = self._uncertain()
        ((name, delivery),) = rig.link.submitted
        (call,) = delivery["calls"]
        self.assertEqual(name, f"uncertain-{short_id(row.delivery_id)}")
        self.assertIn("[[gate a]]", call["params"]["text"])
        ((button,),) = call["params"]["reply_markup"]["inline_keyboard"]
        self.assertEqual(button["text"], "🔁 Send again")
        self.assertLessEqual(len(button["callback_data"].encode()), 64)
        self.assertEqual(rig.prompts(), [])

    def test_with_its_pictures(self) -> None:
        """It is not handed before it has what the old one had beside its text."""
        rig, row = self._uncertain()
        rig.parts.queue.close()
        picture = rig.base / "a.png"
        picture.write_bytes(b"png")
        rig.message("look", 6)
        (held,) = rig.inbox.rows("held")
        images = [{"path": str(picture), "mime": "image/png"}]
        rig.inbox.hold(held.seq, "look", {"images": images})
        rig.inbox.uncertain([held.seq])
        rig.parts.queue.open()
        storing: Deferred[None] = Deferred()
        slow = Replaced(rig.inbox, hold=lambda *arguments: storing)
        rig.parts.orders._inbox = slow
        rig.press(f"again:{short_id(held.delivery_id)}")
        rig.parts.queue.kick()  # something else happens
        rig.run(3)
        self.assertEqual(rig.prompts(), [])
        (again,) = [each for each in rig.inbox.rows("held") if each.source == "again"]
        rig.inbox.hold(again.seq, "look", {"images": images})
        storing.callback(None)
        rig.run(1)
        self.assertEqual((rig.prompts(), len(rig.host.images[-1])), (["look"], 1))

    def with_file(self, again: Any) -> tuple[Any, list[str]]:
        """Send a prompt again whose file is gone from the disk; the rig and its notices.

        @param again: what the second fetch comes to.
        """
        rig, _ = self._uncertain()
        rig.parts.queue.close()
        rig.link.directory = rig.base / "downloads"
        rig.link.files["F"] = [b"\x89PNG\r\n\x1a\n", again]
        rig.message(None, 6, caption="look", document={"file_id": "F", "file_name": "a.png"})
        (held,) = rig.inbox.rows("held")
        rig.inbox.uncertain([held.seq])
        self.path = Path(held.content["files"][0]["path"])
        self.path.unlink()
        rig.run(61)
        before = len(rig.link.texts)
        rig.parts.queue.open()
        rig.press(f"again:{short_id(held.delivery_id)}")
        rig.run(2)
        return rig, rig.link.texts[before:]

    def test_file_is_fetched_again(self) -> None:
        """To where the prompt says that it is."""
        rig, told = self.with_file(b"\x89PNG\r\n\x1a\nnew")
        self.assertIn(f"\n- /{self.path.name}", rig.host.prompts[-1][1])
        self.assertTrue(self.path.read_bytes().endswith(b"new"))
        self.assertEqual((len(rig.host.prompts), len(rig.host.images[-1]), len(told)), (1, 1, 1))

    def test_file_is_gone(self) -> None:
        """Prompt and operator are told, and it goes without."""
        rig, told = self.with_file(Refusal("api", "gone", errorCode=400))
        line = "a.png: Telegram does not give it (gone)"
        self.assertTrue(rig.host.prompts[-1][1].endswith(f"\n\n[not delivered]\n- {line}"))
        self.assertEqual((len(rig.host.prompts), rig.host.images[-1]), (1, []))
        self.assertIn(intakewords.not_fetched([line]), told)

    def test_pressed_twice_runs_once(self) -> None:
        """The second press says so; both are answered and the button is taken off."""
        rig, row = self._uncertain()
        rig.host.open_gate("a")
        for _ in range(2):
            rig.press(f"again:{short_id(row.delivery_id)}")
            rig.run()
        self.assertEqual(rig.prompts(), ["[[gate a]]"])
        answers = [params["text"] for _, params, _ in rig.link.api_calls if "text" in params]
        self.assertEqual(answers, [labels.AGAIN_SENT, labels.AGAIN_GONE])
        edits = [
            params for method, params, _ in rig.link.api_calls if method == "editMessageReplyMarkup"
        ]
        self.assertEqual(edits[0]["message_id"], 50)
        self.assertEqual(rig.states(), {"settled": 4})

    def test_crash_between_the_two_steps(self) -> None:
        """The new row is there, the old one not settled: done again, it still runs once."""
        rig, row = self._uncertain()
        key = short_id(row.delivery_id)
        rig.inbox.admit(f"again-{key}", "again", "message", b"{}", row.prompt)
        rig.press(f"again:{key}")
        rig.run()
        self.assertEqual(rig.prompts(), ["[[gate a]]"])
        self.assertEqual(rig.inbox.rows("uncertain"), [])

    def test_sent_again_and_uncertain_again(self) -> None:
        """The repetition has a button of its own."""
        rig, row = self._uncertain()
        rig.press(f"again:{short_id(row.delivery_id)}")
        (again,) = rig.inbox.rows("handed")
        rig.crash()
        with (rig.base / "session.jsonl").open("a") as file:
            file.write(
                '{"type":"message","id":"u2","message":{"role":"user","content":'
                '"[telegram|thread:Atlas] [[gate a]]"}}\n'
            )
        rig.start()
        self.assertEqual(
            [name for name, _ in rig.link.submitted], [f"uncertain-{short_id(again.delivery_id)}"]
        )

    def test_forged_buttons(self) -> None:
        """Unknown data is answered politely and does nothing."""
        rig = self.started()
        for data in ("", "again:", "again:x", "menu:1", "again:" + "é" * 20):
            rig.press(data)
        texts = [params["text"] for _, params, _ in rig.link.api_calls if "text" in params]
        self.assertEqual(len(texts), 5)
        self.assertEqual(rig.prompts(), [])
        self.assertEqual(rig.states(), {"settled": 5})

    def test_refusal_is_not_uncertain(self) -> None:
        """A prompt that Pi refused is simply held."""
        rig = self.started()
        rig.host.refusals = [PiRefused("compaction")]
        rig.message("x")
        rig.crash()
        rig.start()
        self.assertEqual(rig.prompts(), ["x"])

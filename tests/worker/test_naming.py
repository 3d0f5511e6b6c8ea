"""C{/name} in a worker's Thread: the exact Thread, once, and over a restart."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.bridge import dialogs as dialog_words
from pitelegram.bridge import labels
from pitelegram.bridge import naming as words
from pitelegram.errors import LinkLost, Refusal
from pitelegram.testing.worker import CHAT, THREAD
from tests.worker.test_dialogs import DialogCase

PLACE = {"chatId": CHAT, "threadId": THREAD}


class NamingCase(DialogCase):
    """A worker in memory."""

    def question(self, first: bool = True) -> int:
        """Write the bare command; returns the id of the message that asks."""
        if first:
            self.started()
        self.rig.message("/name")
        return self.message_ids()[-1]

    @property
    def renames(self) -> list[tuple[Any, str]]:
        """What the leader was asked for."""
        return self.rig.link.renames

    def labels(self) -> list[str]:
        """The buttons of the newest question."""
        rows = self.calls("sendMessage")[-1]["reply_markup"]["inline_keyboard"]
        return [button["text"] for row in rows for button in row]


class Command(NamingCase):
    """The name behind the command."""

    def test_done(self) -> None:
        """The leader gets the Thread that it was written in; the Thread is told the title."""
        rig = self.started()
        rig.message("/name  Navigator ")
        self.assertEqual(self.renames, [(PLACE, "Navigator")])
        self.assertEqual(rig.link.texts, [words.done("Navigator", "Navigator")])
        self.assertEqual((rig.states(), rig.prompts()), ({"settled": 1}, []))

    def test_another_thread(self) -> None:
        """It is the Thread of the message that is named, not the one that the worker has by then."""
        rig = self.started()
        rig.parts.registration.target = {"chatId": CHAT, "threadId": 9}
        rig.link.rename_results.append(Refusal("not-allowed", "not this worker's any more"))
        rig.message("/name x")
        self.assertEqual(self.renames, [(PLACE, "x")])
        self.assertIn("not this worker's", rig.link.texts[0])

    def test_refusals(self) -> None:
        """Each has its words; the wait is named, and waited for by nobody."""
        rig = self.started()
        for result, told in (
            (Refusal("rate-limited", "wait", retryAfter=34.6), "another 35 s"),
            (Refusal("rate-limited", "wait"), "another 10 s"),
            (Refusal("invalid-name", "a name needs a letter"), "needs a letter"),
            (LinkLost("gone"), words.NOBODY_KNOWS),
        ):
            rig.link.rename_results.append(result)
            rig.message("/name x")
            self.assertIn(told, rig.link.texts[-1])
        self.assertEqual(rig.states(), {"settled": 4})

    def test_no_threads(self) -> None:
        """In a chat without Threads, and outside of one, it says so."""
        rig = self.started()
        body = {"message_id": 5, "chat": {"id": CHAT}, "text": "/name x"}
        rig.forward("message", body)
        rig.parts.registration.target = {"chatId": CHAT}
        rig.message("/name x")
        self.assertEqual(rig.link.texts, [words.WRONG_PLACE, words.NO_THREADS])
        self.assertEqual(self.renames, [])

    def test_old_leader(self) -> None:
        """A leader that cannot do it is not asked, and the command is not offered."""
        rig = self.started()
        rig.link.capabilities = frozenset()
        for text in ("/name x", "/name", "/help"):
            rig.message(text)
        self.assertEqual(rig.link.texts, [words.TOO_OLD] * 2)
        (menu,) = self.calls("sendMessage")
        self.assertNotIn("/name", menu["text"])
        self.assertEqual(self.renames, [])
        self.assertIn("/name", labels.unknown_command("help"))

    def test_slow_telegram(self) -> None:
        """While a name is under way an abort is done, and the next name waits its turn."""
        rig = self.started()
        waiting: Deferred[Any] = Deferred()
        rig.link.rename_results.append(waiting)
        rig.message("[[gate a]]")
        rig.message("/name one")
        rig.message("/name two")
        rig.message("/abort")
        self.assertIn("Aborted current turn.", rig.link.texts)
        self.assertEqual([name for _, name in self.renames], ["one"])
        waiting.callback({"displayTitle": "one", "manualName": "one"})
        rig.run()
        self.assertEqual([name for _, name in self.renames], ["one", "two"])
        self.assertEqual(rig.inbox.rows("admitted"), [])

    def test_killed_under_way(self) -> None:
        """A name that was under way is asked for again by the next process."""
        rig = self.started()
        rig.link.rename_results.append(Deferred())
        rig.message("/name one")
        self.assertEqual(rig.states(), {"admitted": 1})
        rig.crash()
        rig.start(connect=False)
        self.assertEqual(rig.states(), {"admitted": 1})
        rig.connect()
        rig.run()
        self.assertEqual((self.renames, rig.states()), ([(PLACE, "one")], {"settled": 1}))


class Question(NamingCase):
    """The bare command."""

    def test_reply(self) -> None:
        """The reply to exactly that message is the name; the message says what became of it."""
        message_id = self.question()
        sent = self.calls("sendMessage")[0]
        self.assertEqual((sent["chat_id"], sent["message_thread_id"]), (CHAT, THREAD))
        self.assertEqual((sent["text"], self.labels()), (words.ASK, ["✖️ Cancel"]))
        self.reply("Navigator", message_id)
        self.assertEqual(self.renames, [(PLACE, "Navigator")])
        self.ended_as(words.done("Navigator", "Navigator"))
        self.assertEqual((self.rig.link.texts, self.rig.prompts()), ([], []))

    def test_prompts_go_on(self) -> None:
        """What is no reply to it is a prompt as ever."""
        message_id = self.question()
        self.rig.message("work")
        self.reply("about that", 12345)
        self.assertEqual(self.rig.prompts(), ["work", "about that"])
        self.assertEqual(self.message_ids(), [message_id])

    def test_commands_are_no_names(self) -> None:
        """A command as a reply is the command."""
        message_id = self.question()
        self.reply("/status", message_id)
        self.assertIn("Status: ", self.rig.link.texts[0])
        self.reply(None, message_id, photo=[{"file_id": "x"}])
        self.reply(None, message_id, photo=[{"file_id": "x"}], caption="a name?")
        self.assertEqual(self.rig.link.texts[1:], [words.TEXT_ONLY] * 2)
        self.assertEqual((self.renames, self.message_ids()), ([], [message_id]))

    def test_cancel(self) -> None:
        """The button closes it; a reply after that comes too late and is no prompt."""
        message_id = self.question()
        self.rig.press(self.button("✖️ Cancel"), message_id)
        self.ended_as(words.CANCELLED)
        self.assertEqual(self.toast(), words.CANCELLED)
        self.reply("late", message_id)
        self.rig.press(self.button("✖️ Cancel"), message_id)
        self.assertEqual(self.toast(), dialog_words.LATE)
        self.assertEqual(self.rig.link.texts, [dialog_words.LATE_REPLY])
        self.assertEqual((self.renames, self.rig.prompts()), ([], []))

    def test_reset(self) -> None:
        """It is offered only where there is a name to be taken away."""
        self.started()
        self.rig.message("/name Navigator")
        message_id = self.question(first=False)
        self.assertEqual(self.labels(), ["♻️ Reset", "✖️ Cancel"])
        self.rig.press(self.button("♻️ Reset"), message_id)
        self.assertEqual(self.renames[-1], (PLACE, ""))
        self.ended_as(words.done("A", None))
        self.question(first=False)
        self.assertEqual(self.labels(), ["✖️ Cancel"])

    def test_refused_reset(self) -> None:
        """It says why above the button, and can be pressed again."""
        self.started()
        self.rig.message("/name Navigator")
        message_id = self.question(first=False)
        self.rig.link.rename_results.append(Refusal("rate-limited", "wait", retryAfter=5))
        self.rig.press(self.button("♻️ Reset"), message_id)
        self.assertIn("another 5 s", self.toast())
        self.assertEqual(self.message_ids(), [message_id])

    def test_refused_reply(self) -> None:
        """A name that is refused leaves the question open for another one."""
        message_id = self.question()
        self.rig.link.rename_results.append(Refusal("invalid-name", "nothing to see"))
        self.reply("…", message_id)
        self.assertIn("nothing to see", self.rig.link.texts[0])
        self.reply("better", message_id)
        self.assertEqual([name for _, name in self.renames], ["…", "better"])
        self.assertEqual(self.message_ids(), [])

    def test_over_a_restart(self) -> None:
        """Reply and button work in the next process; what its predecessor's dialogs asked is over."""
        message_id = self.question()
        self.rig.crash()
        self.rig.start()
        self.assertEqual(self.message_ids(), [message_id])
        self.reply("Navigator", message_id)
        self.assertEqual(self.renames, [(PLACE, "Navigator")])
        self.ended_as(words.done("Navigator", "Navigator"))

    def test_asked_twice(self) -> None:
        """Killed before the message was noted, it is asked again; a reply to either is the name."""
        rig = self.started()
        rig.link.api_results.append(Deferred())
        rig.message("/name")
        markup = self.calls("sendMessage")[0]["reply_markup"]
        rig.crash()
        rig.start()
        (second,) = self.message_ids()
        rig.message("First", 70, reply_to_message={"message_id": 900, "reply_markup": markup})
        self.assertEqual((self.renames, rig.prompts()), ([(PLACE, "First")], []))
        self.assertEqual(self.message_ids(), [])
        edits = {each["message_id"]: each["text"] for each in self.calls("editMessageText")}
        self.assertEqual(set(edits), {900, second})
        self.assertIn("First", edits[900])

    def test_asked_again(self) -> None:
        """One question at a time; a name settles it too."""
        first = self.question()
        second = self.question(first=False)
        self.ended_as(words.REPLACED)
        self.assertEqual(self.message_ids(), [second])
        self.assertNotEqual(first, second)
        self.rig.message("/name other")
        self.assertEqual(self.message_ids(), [])

    def test_another_thread(self) -> None:
        """A question in a Thread that the worker lost is closed there."""
        self.question()
        self.rig.parts.follower.replace_target({"chatId": CHAT, "threadId": 9}, PLACE, "reassigned")
        self.rig.run()
        self.ended_as(words.MOVED)
        self.assertEqual(self.message_ids(), [])

    def test_not_sent(self) -> None:
        """Where it cannot be asked, the Thread hears how to do without."""
        rig = self.started()
        for result, told in (
            (Refusal("rate-limited", "wait", retryAfter=7.0), words.later(7)),
            (Refusal("unavailable", "no"), words.HOW),
            (LinkLost("gone"), words.HOW),
        ):
            rig.link.api_results.append(result)
            rig.message("/name")
            self.assertEqual(rig.link.texts[-1], told)
        self.assertEqual(self.message_ids(), [])

    def test_answered_before_it_is_known_to_be_there(self) -> None:
        """A reply that overtakes Telegram's own answer is the name all the same."""
        rig = self.started()
        sending: Deferred[Any] = Deferred()
        rig.link.api_results.append(sending)
        rig.message("/name")
        markup = self.calls("sendMessage")[0]["reply_markup"]
        rig.message("Early", 70, reply_to_message={"message_id": 900, "reply_markup": markup})
        sending.callback({"message_id": 900})
        rig.run()
        self.assertEqual((self.renames, rig.prompts()), ([(PLACE, "Early")], []))
        self.assertEqual(self.message_ids(), [])

    def test_forged(self) -> None:
        """A button that stands on another message does nothing."""
        self.started()
        self.rig.message("/name Navigator")
        self.question(first=False)
        self.rig.press(self.button("♻️ Reset"), 77)
        self.assertEqual(len(self.renames), 1)
        self.assertEqual(self.toast(), dialog_words.LATE)


class Title(NamingCase):
    """What prompts are told of the Thread."""

    def tag(self) -> str:
        """How the newest prompt begins."""
        return str(self.rig.host.prompts[-1][1]).partition("]")[0]

    def test_follows_the_title(self) -> None:
        """Palette name, then the title that Telegram took, without the mark; a new Thread has its own."""
        rig = self.started()
        rig.message("one")
        self.assertEqual(self.tag(), "[telegram|thread:Atlas")
        rig.link.registration["displayTitle"] = "⏳ my_app"
        rig.message("two")
        self.assertEqual(self.tag(), "[telegram|thread:my_app")
        rig.message("/name Navigator")
        rig.message("three")
        self.assertEqual(self.tag(), "[telegram|thread:Navigator")
        rig.parts.follower.replace_target({"chatId": CHAT, "threadId": 9}, PLACE, "recreated")
        rig.message("four", message_thread_id=9)
        self.assertEqual(self.tag(), "[telegram|thread:Atlas")

    def test_without_a_link(self) -> None:
        """What was known last stays known."""
        rig = self.started()
        rig.link.registration["displayTitle"] = "my_app"
        rig.service._bus.lose()  # type: ignore[union-attr]
        self.assertEqual(rig.parts.registration.display_title, "my_app")

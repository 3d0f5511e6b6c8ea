"""What holds for every method; keyboards, commands, people."""

from __future__ import annotations

from typing import Any

from pitelegram.sandbox.errors import ApiError
from pitelegram.sandbox.parameters import Parameters
from tests.sandbox.helpers import BotTestCase, buttons


class CallTests(BotTestCase):
    """What holds for every method."""

    def test_unknown_method(self) -> None:
        """404 with its own words."""
        error = self.failureResultOf(self.start("nonsense"), ApiError).value
        self.assertEqual((error.code, error.description), (404, "Not Found: method not found"))

    def test_names_ignore_case(self) -> None:
        """GETME is getMe."""
        self.assertTrue(self.call("GETME")["has_topics_enabled"])

    def test_wrong_types_are_refused(self) -> None:
        """An integer must be one; strings of digits are."""
        self.assert_refused(
            'parameter "chat_id" must be of type Integer', "sendMessage", chat_id="me", text="x"
        )
        self.assertEqual(self.call("sendMessage", chat_id=str(self.owner), text="x")["text"], "x")

    def test_unknown_parameters_are_noted(self) -> None:
        """They change nothing but can be seen by a test."""
        self.send(colour="red", disable_notification=True)
        self.assertEqual(list(self.world.warnings), ["sendMessage: unknown parameter 'colour'"])

    def test_unknown_chat(self) -> None:
        """A chat that does not exist."""
        self.assert_refused("chat not found", "sendMessage", chat_id=12345, text="x")

    def test_order_of_checks(self) -> None:
        """Text first, then markup, chat, Thread, reply, length."""
        wrong: dict[str, Any] = {
            "text": "<x>",
            "parse_mode": "HTML",
            "reply_markup": {"inline_keyboard": [[{}]]},
            "chat_id": 1,
            "message_thread_id": 99,
            "reply_parameters": {"message_id": 99},
        }
        self.assertIn("can't parse entities", self.refused("sendMessage", **wrong))
        wrong |= {"text": "x" * 5000, "parse_mode": ""}
        self.assertIn("can't parse inline keyboard", self.refused("sendMessage", **wrong))
        wrong |= {"reply_markup": None}
        self.assert_refused("chat not found", "sendMessage", **wrong)
        wrong |= {"chat_id": self.owner}
        self.assert_refused("message thread not found", "sendMessage", **wrong)
        wrong |= {"message_thread_id": None}
        self.assert_refused("message to be replied not found", "sendMessage", **wrong)
        wrong |= {"reply_parameters": None}
        self.assert_refused("message is too long", "sendMessage", **wrong)

    def test_the_shape_of_a_message(self) -> None:
        """The members that the documentation requires are there, with their types."""
        sent = self.send(message_thread_id=self.topic(), reply_markup=buttons("a"))
        self.assertLessEqual({"message_id", "date", "chat", "from", "text"}, set(sent))
        self.assertTrue(all(type(sent[k]) is int for k in ("message_id", "date")))
        self.assertTrue(sent["is_topic_message"])
        self.assertTrue(sent["from"]["is_bot"])
        self.assertEqual(sent["chat"]["type"], "private")
        self.assertNotIn("is_forum", sent["chat"])

    def test_own_messages_give_no_update(self) -> None:
        """The bot does not hear itself."""
        self.send()
        self.assertEqual(self.updates(), [])

    def test_blocked(self) -> None:
        """403 while the user blocks the bot; my_chat_member tells of both."""
        self.chat.user_blocks()
        self.assertEqual(
            self.refused("sendMessage", chat_id=self.owner, text="x"),
            "Forbidden: bot was blocked by the user",
        )
        self.chat.user_blocks(False)
        self.send()
        told = [u["my_chat_member"]["new_chat_member"]["status"] for u in self.updates()]
        self.assertEqual(told, ["kicked", "member"])


class KeyboardTests(BotTestCase):
    """Inline keyboards and what presses give."""

    def refuse_button(self, problem: str, **button: Any) -> None:
        """Assert that a button is refused."""
        self.assert_refused(
            problem,
            "sendMessage",
            chat_id=self.owner,
            text="x",
            reply_markup={"inline_keyboard": [[button]]},
        )

    def test_wrong_buttons(self) -> None:
        """Each mistake has its words."""
        wrong = "can't parse inline keyboard button: "
        self.refuse_button(wrong + 'Can\'t find field "text"', callback_data="x")
        self.refuse_button("inline keyboard button text must be non-empty", text=" ", url="x.org")
        self.refuse_button(
            wrong + "unknown button style specified", text="x", url="x.org", style="gold"
        )
        self.refuse_button(wrong + "Text buttons are unallowed in the inline keyboard", text="x")
        for data in ("", "x" * 65, "ä" * 33):
            self.refuse_button("BUTTON_DATA_INVALID", text="x", callback_data=data)
        self.refuse_button(
            "inline keyboard button URL 'nonsense' is invalid: Wrong HTTP URL",
            text="x",
            url="nonsense",
        )

    def test_limits(self) -> None:
        """64 bytes of data pass; too many or too big buttons do not."""
        self.send(reply_markup={"inline_keyboard": [[{"text": "x", "callback_data": "ä" * 32}]]})
        row = buttons(*"abcdefghi")
        self.assertIn(
            "more than 8", self.refused("sendMessage", chat_id=1, text="x", reply_markup=row)
        )
        big = {"inline_keyboard": [[{"text": "x" * 200, "callback_data": "y" * 60}]] * 60}
        self.assert_refused(
            "reply markup is too long", "sendMessage", chat_id=1, text="x", reply_markup=big
        )

    def test_a_press(self) -> None:
        """The bot gets the message, the data and who pressed; it may answer once."""
        sent = self.send(reply_markup=buttons("go"), message_thread_id=self.topic())
        callback_id = self.chat.user_presses(sent["message_id"], label="go")
        query = self.updates()[-1]["callback_query"]
        self.assertEqual((query["id"], query["data"]), (callback_id, "go"))
        self.assertEqual(query["from"]["id"], self.owner)
        self.assertEqual(query["message"]["message_thread_id"], sent["message_thread_id"])
        answer = {"callback_query_id": callback_id, "text": "done"}
        self.assertIs(self.call("answerCallbackQuery", **answer), True)
        late = "query is too old and response timeout expired or query ID is invalid"
        self.assert_refused(late, "answerCallbackQuery", **answer)
        self.assert_refused(late, "answerCallbackQuery", callback_query_id="1")
        self.assertEqual(self.world.events[-1]["text"], "done")

    def test_late_answers(self) -> None:
        """After a minute it is too late."""
        sent = self.send(reply_markup=buttons("go"))
        callback_id = self.chat.user_presses(sent["message_id"], "go")
        self.clock.advance(61)
        self.assertIn("too old", self.refused("answerCallbackQuery", callback_query_id=callback_id))

    def test_inaccessible_message(self) -> None:
        """A press on a message that is gone tells where it was and nothing else."""
        sent = self.send(reply_markup=buttons("go"))
        self.chat.user_deletes(sent["message_id"])
        self.chat.user_presses(sent["message_id"], "go")
        message = self.updates()[-1]["callback_query"]["message"]
        self.assertEqual(set(message), {"chat", "message_id", "date"})
        self.assertEqual(message["date"], 0)


class AccountTests(BotTestCase):
    """Commands, chat actions, chats."""

    def test_commands(self) -> None:
        """Kept per scope; a wrong name or description is refused."""
        commands = [{"command": "daemon", "description": "Everything by button"}]
        self.call("setMyCommands", commands=commands)
        self.assertEqual(self.call("getMyCommands"), commands)
        scope = {"type": "chat", "chat_id": self.owner}
        self.assertEqual(self.call("getMyCommands", scope=scope), [])
        for wrong in ("Ü", "Big", "x" * 33, ""):
            self.assert_refused(
                "BOT_COMMAND_INVALID",
                "setMyCommands",
                commands=[{"command": wrong, "description": "x"}],
            )

    def test_chat_actions(self) -> None:
        """Known ones are shown in their Thread, others refused."""
        topic = self.topic()
        self.call("sendChatAction", chat_id=self.owner, message_thread_id=topic, action="typing")
        self.assertEqual(self.world.events[-1]["thread_id"], topic)
        self.assert_refused(
            "wrong parameter action in request",
            "sendChatAction",
            chat_id=self.owner,
            action="dancing",
        )


class PeopleTests(BotTestCase):
    """What people do, and what the bot hears of it."""

    def test_long_texts_are_split(self) -> None:
        """A text of 10,000 characters becomes three messages."""
        self.chat.user_sends("/" + "x" * 9_999)
        lengths = [len(update["message"]["text"]) for update in self.updates()]
        self.assertEqual(lengths, [4096, 4096, 1808])

    def test_edits(self) -> None:
        """An edit is an update with a date."""
        message = self.chat.user_sends("/x")
        self.chat.user_edits(message.message_id, "/y")
        edited = self.updates()[-1]["edited_message"]
        self.assertEqual(edited["text"], "/y")
        self.assertIn("edit_date", edited)

    def test_strangers_and_groups(self) -> None:
        """They come from chats of their own, with message ids that may equal the owner's."""
        mine = self.chat.user_sends("/x")
        theirs = self.chat.stranger_sends("/x")
        self.chat.group_sends("/x")
        chats = [update["message"]["chat"] for update in self.updates()]
        self.assertEqual([chat["type"] for chat in chats], ["private", "private", "supergroup"])
        self.assertEqual(mine.message_id, theirs.message_id)
        self.chat.stranger_edits(theirs, "/z")
        self.chat.stranger_presses(mine.message_id, "forged")
        self.assertEqual(self.updates()[-2]["edited_message"]["text"], "/z")
        self.assertNotEqual(self.updates()[-1]["callback_query"]["from"]["id"], self.owner)

    def test_events_rise(self) -> None:
        """Observers get each event once, numbered without gaps, until they stop."""
        seen: list[int] = []
        stop = self.world.observe(lambda event: seen.append(event["seq"]))
        self.send()
        self.chat.user_sends("/x")
        stop()
        self.send()
        self.assertEqual(seen, [1, 2])
        self.assertEqual([event["seq"] for event in self.chat.events_after(1)], [2, 3])


class ParameterTests(BotTestCase):
    """Reading typed values from text."""

    def test_booleans(self) -> None:
        """Three words are true, everything else false."""
        words = Parameters({"a": "True", "b": "yes", "c": "1", "d": "on", "e": "0"})
        self.assertEqual([words.boolean(name) for name in "abcdef"], [True] * 3 + [False] * 3)

    def test_integers(self) -> None:
        """Only digits with a sign, and not endless ones."""
        numbers = Parameters({"a": "-5", "b": "1e3", "c": "9" * 40, "d": "٣"})
        self.assertEqual(numbers.integer("a"), -5)
        for name in "bcd":
            self.assertRaises(ApiError, numbers.integer, name)
        self.assertEqual(numbers.integer("z", 7), 7)

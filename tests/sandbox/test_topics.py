"""Threads and replies in the private chat."""

from __future__ import annotations

from tests.sandbox.helpers import BotTestCase


class TopicTests(BotTestCase):
    """Threads in the private chat."""

    def test_creation(self) -> None:
        """The Thread's id is that of its service message, which comes as an update of the bot."""
        topic = self.call("createForumTopic", chat_id=self.owner, name=" a \n b ")
        self.assertEqual(topic["name"], "a b")
        message = self.updates()[0]["message"]
        self.assertEqual(message["from"]["id"], self.world.bot["id"])
        self.assertEqual(message["message_id"], topic["message_thread_id"])
        self.assertEqual(message["message_thread_id"], topic["message_thread_id"])
        self.assertEqual(message["forum_topic_created"]["name"], "a b")

    def test_names(self) -> None:
        """Cut at 128 characters in silence; empty is refused."""
        created = self.call("createForumTopic", chat_id=self.owner, name="😀" * 200)
        self.assertEqual(created["name"], "😀" * 128)
        self.assert_refused(
            "name must be non-empty", "createForumTopic", chat_id=self.owner, name=" \n"
        )

    def test_rename(self) -> None:
        """A rename leaves a service message; the same name is refused; nothing given is fine."""
        topic = {"chat_id": self.owner, "message_thread_id": self.topic("A")}
        self.assertIs(self.call("editForumTopic", **topic), True)
        self.assert_refused("TOPIC_NOT_MODIFIED", "editForumTopic", **topic, name="A")
        self.assertIs(self.call("editForumTopic", **topic, name="B"), True)
        self.assertEqual(self.updates()[-1]["message"]["forum_topic_edited"], {"name": "B"})
        self.assertEqual(self.chat.threads[0].name, "B")

    def test_deletion(self) -> None:
        """All messages go; later sends, edits and topic methods fail each in its way."""
        topic = self.topic()
        sent = self.send(message_thread_id=topic)
        self.assertIs(
            self.call("deleteForumTopic", chat_id=self.owner, message_thread_id=topic), True
        )
        place = {"chat_id": self.owner, "message_thread_id": topic}
        self.assert_refused("message thread not found", "sendMessage", **place, text="x")
        self.assert_refused("TOPIC_ID_INVALID", "editForumTopic", **place, name="x")
        self.assert_refused("TOPIC_ID_INVALID", "deleteForumTopic", **place)
        self.assert_refused(
            "message to edit not found",
            "editMessageText",
            chat_id=self.owner,
            message_id=sent["message_id"],
            text="x",
        )
        self.assertIs(self.call("sendChatAction", **place, action="typing"), True)

    def test_unknown_thread(self) -> None:
        """A Thread that never was."""
        self.assert_refused(
            "message thread not found",
            "sendMessage",
            chat_id=self.owner,
            message_thread_id=9,
            text="x",
        )

    def test_deleted_by_the_user(self) -> None:
        """No update; and the three ways in which sends have been seen to behave."""
        for sends, problem in (
            ("not-found", "message thread not found"),
            ("deleted", "TOPIC_DELETED"),
        ):
            topic = self.topic()
            before = len(self.updates())
            self.chat.user_deletes_thread(topic, sends)
            self.assertEqual(len(self.updates()), before)
            self.assert_refused(
                problem, "sendMessage", chat_id=self.owner, message_thread_id=topic, text="x"
            )
        topic = self.topic()
        self.chat.user_deletes_thread(topic, "main")
        self.assertNotIn("message_thread_id", self.send(message_thread_id=topic))

    def test_closing_does_not_exist(self) -> None:
        """closeForumTopic and reopenForumTopic are for supergroups."""
        place = {"chat_id": self.owner, "message_thread_id": self.topic()}
        for method in ("closeForumTopic", "reopenForumTopic"):
            self.assert_refused("the chat is not a supergroup forum", method, **place)

    def test_closed_by_the_user(self) -> None:
        """The bot hears of it, its sends are refused until it is open again; edits go on."""
        topic = self.topic()
        sent = self.send(message_thread_id=topic)
        self.updates()
        self.chat.user_closes_thread(topic)
        self.chat.user_closes_thread(topic)
        (closed,) = [u["message"] for u in self.updates() if "forum_topic_closed" in u["message"]]
        self.assertEqual((closed["from"]["id"], closed["message_thread_id"]), (self.owner, topic))
        place = {"chat_id": self.owner, "message_thread_id": topic}
        self.assert_refused("TOPIC_CLOSED", "sendMessage", **place, text="x")
        self.call("editMessageText", chat_id=self.owner, message_id=sent["message_id"], text="y")
        self.assertIs(self.call("sendChatAction", **place, action="typing"), True)
        self.chat.user_reopens_thread(topic)
        self.assertIn("forum_topic_reopened", self.updates()[-1]["message"])
        self.send(message_thread_id=topic)

    def test_closing_what_is_gone(self) -> None:
        """A deleted Thread can be neither closed nor opened."""
        topic = self.topic()
        self.chat.user_deletes_thread(topic)
        self.assertRaises(LookupError, self.chat.user_closes_thread, topic)
        self.assertRaises(LookupError, self.chat.user_reopens_thread, topic)

    def test_threaded_mode_off_and_on(self) -> None:
        """Off: no Threads, no fields, getMe says so; on again: the old ones are there."""
        topic = self.topic()
        self.chat.switch_threads(False)
        self.assertFalse(self.call("getMe")["has_topics_enabled"])
        place = {"chat_id": self.owner, "message_thread_id": topic}
        self.assert_refused("message thread not found", "sendMessage", **place, text="x")
        self.assert_refused("the chat is not a forum", "editForumTopic", **place, name="x")
        self.assert_refused(
            "the chat is not a forum", "createForumTopic", chat_id=self.owner, name="x"
        )
        self.chat.user_sends("plain", thread=topic)
        self.assertNotIn("message_thread_id", self.updates()[-1]["message"])
        self.chat.switch_threads(True)
        self.assertEqual(self.send(message_thread_id=topic)["message_thread_id"], topic)

    def test_plain_text_outside_opens_a_thread(self) -> None:
        """An implicit Thread first, then the text in it; commands stay outside."""
        sent = self.chat.user_sends("build me a boat")
        created, text = [update["message"] for update in self.updates()]
        self.assertTrue(created["forum_topic_created"]["is_name_implicit"])
        self.assertEqual(text["message_thread_id"], created["message_id"])
        self.assertEqual(sent.thread_id, created["message_id"])
        self.assertIsNone(self.chat.user_sends("/start").thread_id)

    def test_plain_text_that_stays_outside(self) -> None:
        """When it is asked for, plain text opens no Thread."""
        sent = self.chat.user_sends("hello", outside=True)
        self.assertIsNone(sent.thread_id)
        self.assertEqual(self.chat.threads, [])

    def test_without_the_right_users_stay_outside(self) -> None:
        """When users may not open Threads, their text has none."""
        self.chat.switch_threads(True, users_create=False)
        self.assertIsNone(self.chat.user_sends("hello").thread_id)
        self.assertFalse(self.call("getMe")["allows_users_to_create_topics"])


class ReplyTests(BotTestCase):
    """Replies."""

    def test_a_reply_lands_in_the_thread_of_its_target(self) -> None:
        """Without a Thread of its own; the target is nested one level."""
        topic = self.topic()
        first = self.send("a", message_thread_id=topic)
        second = self.send("b", reply_parameters={"message_id": first["message_id"]})
        third = self.send("c", reply_parameters={"message_id": second["message_id"]})
        self.assertEqual(second["message_thread_id"], topic)
        self.assertEqual(third["reply_to_message"]["text"], "b")
        self.assertNotIn("reply_to_message", third["reply_to_message"])

    def test_other_thread(self) -> None:
        """A target elsewhere becomes an external reply."""
        first = self.send("a", message_thread_id=self.topic("A"))
        second = self.send(
            "b",
            message_thread_id=self.topic("B"),
            reply_parameters={"message_id": first["message_id"]},
        )
        self.assertEqual(second["external_reply"]["message_id"], first["message_id"])
        self.assertNotIn("reply_to_message", second)

    def test_missing_target(self) -> None:
        """Refused, or sent without when that is allowed."""
        reply = {"message_id": 77}
        self.assert_refused(
            "message to be replied not found",
            "sendMessage",
            chat_id=self.owner,
            text="x",
            reply_parameters=reply,
        )
        sent = self.send(reply_parameters=reply | {"allow_sending_without_reply": True})
        self.assertNotIn("reply_to_message", sent)

    def test_quotes(self) -> None:
        """An exact part is quoted with its UTF-16 position; anything else is refused."""
        first = self.send("😀 abc def")
        reply = {"message_id": first["message_id"], "quote": "abc"}
        self.assertEqual(self.send(reply_parameters=reply)["quote"]["position"], 3)
        self.assert_refused(
            "QUOTE_TEXT_INVALID",
            "sendMessage",
            chat_id=self.owner,
            text="x",
            reply_parameters=reply | {"quote": "abd"},
        )

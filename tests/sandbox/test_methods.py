"""The methods: effects, results, and the exact words of refusals."""

from __future__ import annotations

from typing import Any

from pitelegram.sandbox.editing import NOT_MODIFIED
from pitelegram.sandbox.errors import ApiError
from pitelegram.sandbox.parameters import Parameters, Part
from tests.sandbox.helpers import BotTestCase

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR"


def png(width: int, height: int, size: int = 64) -> bytes:
    """Return something with the head of a PNG."""
    return (PNG + width.to_bytes(4, "big") + height.to_bytes(4, "big")).ljust(size, b"\0")


def buttons(*labels: str) -> dict[str, Any]:
    """Return a keyboard of one row."""
    return {"inline_keyboard": [[{"text": label, "callback_data": label} for label in labels]]}


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


class EditTests(BotTestCase):
    """Edits and deletions."""

    def edit(self, message_id: int, text: str = "new", **params: Any) -> Any:
        """Edit a text."""
        return self.call(
            "editMessageText", chat_id=self.owner, message_id=message_id, text=text, **params
        )

    def refuse_edit(self, problem: str, method: str = "editMessageText", **params: Any) -> None:
        """Assert that an edit is refused."""
        self.assert_refused(problem, method, **{"chat_id": self.owner, "text": "new"} | params)

    def test_edit(self) -> None:
        """The text changes, the keyboard goes unless it is given again."""
        number = self.send(reply_markup=buttons("a"))["message_id"]
        edited = self.edit(number, reply_markup=buttons("a"))
        self.assertEqual((edited["text"], edited["edit_date"]), ("new", self.world.now()))
        self.assertIn("reply_markup", edited)
        self.assertNotIn("reply_markup", self.edit(number))

    def test_refusals(self) -> None:
        """Same content, unknown, not the bot's, service, too long."""
        sent = self.send("new")["message_id"]
        self.refuse_edit(NOT_MODIFIED, message_id=sent)
        self.refuse_edit(NOT_MODIFIED, message_id=sent, text="<b></b>new", parse_mode="HTML")
        self.refuse_edit("message to edit not found", message_id=999)
        theirs = self.chat.user_sends("/x").message_id
        self.refuse_edit("message can't be edited", message_id=theirs)
        self.refuse_edit("message can't be edited", message_id=self.topic())
        self.refuse_edit("MESSAGE_TOO_LONG", message_id=sent, text="x" * 4097)
        self.refuse_edit(
            "there is no caption in the message to edit",
            "editMessageCaption",
            message_id=sent,
            caption="x",
        )

    def test_captions(self) -> None:
        """A file's caption can be edited, its text cannot; the limit has other words."""
        part = Part("document", "a.txt", "text/plain", b"x")
        sent = self.call("sendDocument", {"document": part}, chat_id=self.owner, caption="a")
        place = {"chat_id": self.owner, "message_id": sent["message_id"]}
        self.refuse_edit("there is no text in the message to edit", message_id=sent["message_id"])
        self.assertEqual(self.call("editMessageCaption", **place, caption="b")["caption"], "b")
        self.assert_refused(
            "MEDIA_CAPTION_TOO_LONG", "editMessageCaption", **place, caption="x" * 1025
        )
        self.assertNotIn("caption", self.call("editMessageCaption", **place))

    def test_keyboard_alone(self) -> None:
        """editMessageReplyMarkup leaves the text."""
        sent = self.send("a")["message_id"]
        place = {"chat_id": self.owner, "message_id": sent}
        edited = self.call("editMessageReplyMarkup", **place, reply_markup=buttons("x"))
        self.assertEqual(edited["text"], "a")
        self.assert_refused(
            NOT_MODIFIED, "editMessageReplyMarkup", **place, reply_markup=buttons("x")
        )

    def test_delete(self) -> None:
        """Own and the user's messages, once; not the creation of a Thread; not old ones."""
        sent = self.send()["message_id"]
        theirs = self.chat.user_sends("/x").message_id
        for number in (sent, theirs):
            self.assertIs(self.call("deleteMessage", chat_id=self.owner, message_id=number), True)
        self.assert_refused(
            "message to delete not found", "deleteMessage", chat_id=self.owner, message_id=sent
        )
        self.assert_refused(
            "message can't be deleted",
            "deleteMessage",
            chat_id=self.owner,
            message_id=self.topic(),
        )
        old = self.send()["message_id"]
        self.clock.advance(49 * 3600)
        self.assert_refused(
            "message can't be deleted for everyone",
            "deleteMessage",
            chat_id=self.owner,
            message_id=old,
        )

    def test_delete_many(self) -> None:
        """Unknown ids are skipped."""
        numbers = [self.send()["message_id"] for _ in range(3)]
        self.call("deleteMessages", chat_id=self.owner, message_ids=[*numbers, 999])
        self.assertEqual(self.chat.messages(), [])


class ReactionTests(BotTestCase):
    """Reactions and pins."""

    def test_the_bot_reacts(self) -> None:
        """One known emoji, no update; an empty list takes it back."""
        theirs = self.chat.user_sends("/x")
        before = len(self.updates())
        place = {"chat_id": self.owner, "message_id": theirs.message_id}
        like = {"type": "emoji", "emoji": "👍"}
        self.call("setMessageReaction", **place, reaction=[like])
        self.assertEqual(theirs.reactions, {self.world.bot["id"]: [like]})
        self.assert_refused(
            "REACTIONS_TOO_MANY", "setMessageReaction", **place, reaction=[like, like]
        )
        self.assert_refused(
            "REACTION_INVALID",
            "setMessageReaction",
            **place,
            reaction=[{"type": "emoji", "emoji": "🪿"}],
        )
        self.assert_refused(
            "message to react not found",
            "setMessageReaction",
            **place | {"message_id": 99},
            reaction=[like],
        )
        self.call("setMessageReaction", **place, reaction=[])
        self.assertEqual(theirs.reactions, {})
        self.assertEqual(len(self.updates()), before)

    def test_a_person_reacts(self) -> None:
        """The update has no Thread; old and new lists follow each other."""
        self.call("getUpdates", allowed_updates=["message_reaction"])
        number = self.send(message_thread_id=self.topic())["message_id"]
        self.chat.user_reacts(number, "👍")
        self.chat.user_reacts(number)
        first, second = [update["message_reaction"] for update in self.updates()]
        self.assertNotIn("message_thread_id", first)
        self.assertEqual(first["old_reaction"], [])
        self.assertEqual(second["old_reaction"], first["new_reaction"])

    def test_pins(self) -> None:
        """A pin leaves a service message and an update; unpinning needs one."""
        sent = self.send()["message_id"]
        self.call("pinChatMessage", chat_id=self.owner, message_id=sent)
        self.assertEqual(self.updates()[-1]["message"]["pinned_message"]["message_id"], sent)
        pinned = self.call("getChat", chat_id=self.owner)["pinned_message"]
        self.assertEqual(pinned["message_id"], sent)
        self.call("unpinChatMessage", chat_id=self.owner)
        self.assert_refused("message to unpin not found", "unpinChatMessage", chat_id=self.owner)


class FileTests(BotTestCase):
    """Files in both directions."""

    def upload(self, method: str, field: str, data: bytes, **params: Any) -> Any:
        """Send an upload under its own field."""
        parts = {field: Part(field, "../evil name.tXt", "text/plain", data)}
        return self.call(method, parts, chat_id=self.owner, **params)

    def test_document(self) -> None:
        """A file comes back as it went; its path keeps only an extension."""
        sent = self.upload(
            "sendDocument", "document", b"hello", caption="<b>c</b>", parse_mode="HTML"
        )
        document = sent["document"]
        self.assertEqual((document["file_size"], sent["caption"]), (5, "c"))
        link = self.call("getFile", file_id=document["file_id"])
        self.assertEqual(link["file_path"], "documents/file_0.tXt")
        self.assertEqual(self.world.files.by_path(link["file_path"]).data, b"hello")
        again = self.call("sendDocument", chat_id=self.owner, document=document["file_id"])
        self.assertEqual(again["document"]["file_id"], document["file_id"])

    def test_attach(self) -> None:
        """A parameter may point to a part of another name."""
        parts = {"p1": Part("p1", "a.ogg", "audio/ogg", b"x")}
        sent = self.call("sendVoice", parts, chat_id=self.owner, voice="attach://p1", duration=3)
        self.assertEqual((sent["voice"]["duration"], sent["voice"]["mime_type"]), (3, "audio/ogg"))
        self.assertFalse(self.world.warnings)

    def test_refusals(self) -> None:
        """Missing, empty, unknown, of another kind, too big a caption."""
        place = {"chat_id": self.owner}
        self.assert_refused("there is no document in the request", "sendDocument", **place)
        empty = {"document": Part("document", "a", "text/plain", b"")}
        self.assertIn("file must be non-empty", self.refused("sendDocument", empty, **place))
        self.assert_refused(
            "wrong file identifier/HTTP URL specified", "sendDocument", **place, document="nonsense"
        )
        self.assert_refused("invalid file_id", "getFile", file_id="nonsense")
        sent = self.upload("sendDocument", "document", b"x")
        self.assertIn(
            "can't use file of type Document as Audio",
            self.refused("sendAudio", **place, audio=sent["document"]["file_id"]),
        )
        self.assert_refused(
            "message caption is too long", "sendDocument", **place, caption="x" * 1025
        )

    def test_photos(self) -> None:
        """Sizes are read; what is no picture or of an odd shape is refused."""
        sent = self.upload("sendPhoto", "photo", png(640, 480))
        self.assertEqual(sent["photo"][-1]["width"], 640)
        for data, problem in (
            (b"no picture", "IMAGE_PROCESS_FAILED"),
            (png(9000, 2000), "PHOTO_INVALID_DIMENSIONS"),
            (png(2100, 100), "PHOTO_INVALID_DIMENSIONS"),
            (png(100, 100, 10 * 1024 * 1024 + 1), "is too big for a photo"),
        ):
            parts = {"photo": Part("photo", "a.png", "image/png", data)}
            self.assertIn(problem, self.refused("sendPhoto", parts, chat_id=self.owner))

    def test_size_limits(self) -> None:
        """Over 50 MB cannot be sent (413); over 20 MB cannot be fetched."""
        big = b"x" * (20 * 1024 * 1024 + 1)
        sent = self.upload("sendDocument", "document", big)
        self.assert_refused("file is too big", "getFile", file_id=sent["document"]["file_id"])
        parts = {"document": Part("document", "a", "text/plain", big * 3)}
        failure = self.failureResultOf(self.start("sendDocument", parts, chat_id=self.owner))
        self.assertEqual(failure.value.code, 413)

    def test_album(self) -> None:
        """Items share an id and come as messages of their own."""
        parts = {f"p{n}": Part(f"p{n}", "a.png", "image/png", png(9, 9)) for n in range(3)}
        media = [{"type": "photo", "media": f"attach://p{n}"} for n in range(3)]
        media[0]["caption"] = "c"
        sent = self.call("sendMediaGroup", parts, chat_id=self.owner, media=media)
        self.assertEqual(len({message["media_group_id"] for message in sent}), 1)
        self.assertEqual([m.get("caption") for m in sent], ["c", None, None])

    def test_album_refusals(self) -> None:
        """Too many, or kinds that do not mix; nothing is sent then."""
        item = {"type": "document", "media": "attach://p"}
        place = {"chat_id": self.owner}
        self.assert_refused(
            "too many messages to send as an album", "sendMediaGroup", **place, media=[item] * 11
        )
        self.assert_refused(
            "Document can't be mixed with other media types",
            "sendMediaGroup",
            **place,
            media=[item, {"type": "photo", "media": "attach://q"}],
        )
        self.assertEqual(self.chat.messages(), [])


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

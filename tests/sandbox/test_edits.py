"""Edits, deletions, reactions and pins."""

from __future__ import annotations

from typing import Any

from pitelegram.sandbox.editing import NOT_MODIFIED
from pitelegram.sandbox.parameters import Part
from tests.sandbox.helpers import BotTestCase, buttons


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

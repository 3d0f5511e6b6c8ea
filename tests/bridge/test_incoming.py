"""Updates become what they ask for; nothing is dropped without a word."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.incoming import (
    Command,
    Edit,
    Nothing,
    Origin,
    Press,
    Prompt,
    Reaction,
    read_update,
)


def _message(**fields: Any) -> dict[str, Any]:
    message = {"message_id": 7, "chat": {"id": 5}, "message_thread_id": 9, **fields}
    return {"update_id": 1, "message": message}


class Incoming(SynchronousTestCase):
    """L{read_update}."""

    def _asked(self, **fields: Any) -> Any:
        return read_update("message", _message(**fields))[0]

    def test_text(self) -> None:
        """Text is a prompt, with its origin."""
        asked, origin = read_update("message", _message(text="hi\nthere"))
        self.assertEqual(asked, Prompt("hi\nthere"))
        self.assertEqual(origin, Origin(chat_id=5, thread_id=9, message_id=7))

    def test_commands(self) -> None:
        """A slash and a word is a command; a path is text."""
        self.assertEqual(self._asked(text="/abort"), Command("abort"))
        self.assertEqual(
            self._asked(text="/Abort@my_bot now\nplease"), Command("abort", "now\nplease")
        )
        self.assertEqual(self._asked(text="/etc/hosts is odd"), Prompt("/etc/hosts is odd"))
        self.assertEqual(self._asked(text=" /abort"), Prompt(" /abort"))

    def test_more_than_text(self) -> None:
        """A caption is no answer to a question that takes a text; it never holds a command."""
        asked = self._asked(caption="/stop", photo=[{"file_id": "x"}])
        self.assertEqual(asked, Prompt("/stop", plain=False))
        self.assertEqual(self._asked(sticker={"file_id": "x"}), Prompt("", plain=False))

    def test_what_others_said_is_no_command(self) -> None:
        """A command in a forwarded message is text; one in what is answered is not looked at."""
        origin = {"type": "user", "sender_user": {"first_name": "Eve"}}
        self.assertEqual(self._asked(text="/stop", forward_origin=origin), Prompt("/stop"))
        answered = {"from": {"first_name": "Eve"}, "text": "/stop"}
        asked = self._asked(text="why?", reply_to_message=answered, quote={"text": "/stop"})
        self.assertEqual(asked, Prompt("why?"))

    def test_service_messages_ask_nothing(self) -> None:
        """A pinned message is no message of the operator."""
        self.assertEqual(self._asked(pinned_message={"message_id": 1}), Nothing())

    def test_unknown_content_is_not_silent(self) -> None:
        """A kind that did not exist when this was written is a prompt too."""
        self.assertEqual(self._asked(hologram={}), Prompt("", plain=False))

    def test_edit(self) -> None:
        """An edit carries the new content."""
        update = {"edited_message": _message(text="new")["message"]}
        self.assertEqual(read_update("edited_message", update)[0], Edit(Prompt("new")))

    def test_press(self) -> None:
        """A press works without its message (too old, or deleted)."""
        update = {"callback_query": {"id": "1", "data": "again:x"}}
        self.assertEqual(read_update("callback_query", update), (Press("1", "again:x"), Origin()))

    def test_offered_buttons(self) -> None:
        """A button counts as the bot's when the bot's message has it."""
        message = {
            "from": {"id": 1, "is_bot": True},
            "reply_markup": {"inline_keyboard": [[{"text": "A", "callback_data": "yes"}], 5, [6]]},
        }
        for data, sender, offered in (
            ("yes", True, True),
            ("no", True, False),
            ("yes", False, False),
        ):
            about = {**message, "from": {"is_bot": sender}}
            update = {"callback_query": {"id": "1", "data": data, "message": about}}
            self.assertEqual(read_update("callback_query", update)[0], Press("1", data, offered))

    def test_broken_updates(self) -> None:
        """An update that lacks what its kind promises is refused."""
        for update in ({}, {"message": None}, {"message": []}, {"message": "x"}):
            self.assertRaises(ValueError, read_update, "message", update)

    def test_hostile_types(self) -> None:
        """Wrong types inside never raise."""
        asked, origin = read_update(
            "message", {"message": {"chat": 5, "message_id": "7", "text": {"a": 1}, "caption": []}}
        )
        self.assertEqual((asked, origin), (Prompt("", plain=False), Origin()))


class Reactions(SynchronousTestCase):
    """Reactions of the operator."""

    def _reaction(self, old: Any, new: Any) -> Any:
        body = {"message_id": 7, "chat": {"id": 5}, "old_reaction": old, "new_reaction": new}
        return read_update("message_reaction", {"update_id": 1, "message_reaction": body})

    def test_sets(self) -> None:
        """Old and new emoji are sets, without variation selectors."""
        heart = {"type": "emoji", "emoji": "❤\ufe0f"}
        asked, origin = self._reaction([heart], [{"type": "emoji", "emoji": "👍"}, heart])
        self.assertEqual(asked, Reaction(frozenset("❤"), frozenset("👍❤")))
        self.assertEqual(origin, Origin(chat_id=5, message_id=7))

    def test_others_are_left_out(self) -> None:
        """Custom and paid reactions and nonsense are no emoji."""
        odd = [{"type": "custom_emoji", "custom_emoji_id": "1"}, {"type": "paid"}, 5, None]
        odd += [{"type": "emoji", "emoji": 5}, {"type": "emoji"}, {"emoji": "👍"}]
        for old in (odd, None, "x", {"type": "emoji"}):
            self.assertEqual(self._reaction(old, old)[0], Reaction())

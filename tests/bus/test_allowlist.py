"""What a follower may call."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bus.allowlist import DELETES, DRAFTS, EDITS, SENDS, WITH_FILES, check_call
from pitelegram.errors import Refusal
from pitelegram.targets import TelegramTarget

OWN = TelegramTarget(100, 7)
FILE = {"field": "f", "path": "/u/f", "filename": "f", "mimeType": "text/plain"}


class AllowListTests(SynchronousTestCase):
    """Each rule, from both sides."""

    def check(
        self,
        method: str,
        params: dict[str, Any],
        options: dict[str, Any] | None = None,
        files: Any = (),
        target: TelegramTarget | None = OWN,
    ) -> tuple[dict[str, Any], str]:
        """Check a call of a follower that sent message 5 of its chat."""
        return check_call(
            method, params, options or {}, files, target, lambda chat, message: message == 5
        )

    def refused(self, *arguments: Any, **named: Any) -> None:
        """The call is not allowed."""
        refusal = self.assertRaises(Refusal, self.check, *arguments, **named)
        self.assertEqual(refusal.code, "not-allowed")

    def test_own_thread(self) -> None:
        """Every kind of send passes into the own Thread."""
        place = {"chat_id": 100, "message_thread_id": 7}
        for method in SENDS | DRAFTS:
            params, kind = self.check(method, dict(place))
            self.assertEqual(params, place)
            self.assertEqual(kind, "send" if method in SENDS else "draft")
        self.assertEqual(self.check("sendChatAction", place)[1], "action")

    def test_all(self) -> None:
        """Without a Thread a send goes to All, which needs its option; typing does not."""
        for method in SENDS | DRAFTS:
            self.refused(method, {"chat_id": 100})
            self.refused(method, {"chat_id": 100}, {"aggregate": 1})
            self.refused(method, {"chat_id": 100, "message_thread_id": None}, {"crossTarget": True})
            self.check(method, {"chat_id": 100}, {"aggregate": True})
        self.check("sendChatAction", {"chat_id": 100})

    def test_another_thread(self) -> None:
        """Another Thread of the same chat needs its own option."""
        place = {"chat_id": 100, "message_thread_id": 8}
        for method in SENDS | DRAFTS | {"sendChatAction"}:
            self.refused(method, place)
            self.refused(method, place, {"aggregate": True})
            self.check(method, place, {"crossTarget": True})

    def test_another_chat(self) -> None:
        """No option leads into another chat, however it is written."""
        options = {"aggregate": True, "crossTarget": True}
        for chat in (101, "100", "@channel", None, True, 100.0, [100]):
            for method in SENDS | DRAFTS | EDITS | DELETES | {"sendChatAction"}:
                params = {"chat_id": chat, "message_thread_id": 7, "message_id": 5}
                self.refused(method, params, options)
        self.refused("sendMessage", {"message_thread_id": 7}, options)

    def test_thread_of_a_wrong_type(self) -> None:
        """A Thread id that is no integer is refused, also where it would compare equal."""
        for thread in ("7", 7.0, True, [7]):
            params = {"chat_id": 100, "message_thread_id": thread}
            self.refused("sendMessage", params, {"crossTarget": True})

    def test_current_target_counts(self) -> None:
        """After the Thread changed the old one is foreign; without a target nothing is sent."""
        place = {"chat_id": 100, "message_thread_id": 7}
        self.refused("sendMessage", place, target=TelegramTarget(100, 9))
        self.refused("sendMessage", place, target=None)
        self.refused("editMessageText", {**place, "message_id": 5}, target=None)

    def test_classic_mode(self) -> None:
        """When the chat itself is the target, no Thread is the own place."""
        classic = TelegramTarget(100)
        self.check("sendMessage", {"chat_id": 100}, target=classic)
        self.refused("sendMessage", {"chat_id": 100, "message_thread_id": 7}, target=classic)

    def test_own_messages(self) -> None:
        """Edits and deletes only of messages that this follower sent."""
        for method, kind in [(m, "edit") for m in EDITS] + [(m, "delete") for m in DELETES]:
            self.assertEqual(self.check(method, {"chat_id": 100, "message_id": 5})[1], kind)
            self.refused(method, {"chat_id": 100, "message_id": 6})
            self.refused(method, {"chat_id": 100, "message_id": "5"})
            self.refused(method, {"chat_id": 100})
            self.refused(method, {"inline_message_id": "x"})
            self.refused(method, {"chat_id": 100, "message_id": 5, "inline_message_id": "x"})

    def test_not_listed(self) -> None:
        """Everything else is refused, and letter case is part of a name."""
        for method in (
            "getUpdates",
            "setWebhook",
            "deleteWebhook",
            "logOut",
            "close",
            "createForumTopic",
            "editForumTopic",
            "closeForumTopic",
            "reopenForumTopic",
            "deleteForumTopic",
            "unpinAllForumTopicMessages",
            "hideGeneralForumTopic",
            "forwardMessage",
            "copyMessage",
            "deleteMessages",
            "SendMessage",
            "sendmessage",
            "SENDMESSAGE",
            "sendMessage ",
            "../sendMessage",
            "sendMessage?x",
            "",
            "downloadFile",
        ):
            self.refused(method, {"chat_id": 100, "message_thread_id": 7, "message_id": 5})

    def test_ways_around(self) -> None:
        """Parameters that lead elsewhere are refused; private markers are taken out."""
        place = {"chat_id": 100, "message_thread_id": 7}
        self.refused("sendMessage", {**place, "business_connection_id": "b"})
        self.refused("sendMessage", {**place, "direct_messages_topic_id": 3})
        self.refused("sendMessage", {**place, "reply_parameters": {"message_id": 1, "chat_id": 5}})
        self.check("sendMessage", {**place, "reply_parameters": {"message_id": 1}})
        params, _ = self.check("sendMessage", {**place, "__piTelegramAggregateDelivery": True})
        self.assertEqual(params, place)

    def test_local_files(self) -> None:
        """A file: address would make a local Bot API server read our disk."""
        place = {"chat_id": 100, "message_thread_id": 7}
        self.refused("sendDocument", {**place, "document": "file:///etc/passwd"})
        self.refused("sendPhoto", {**place, "photo": " FILE:///etc/passwd"})
        media = [{"type": "photo", "media": "attach://a"}, {"type": "photo", "media": "file:x"}]
        self.refused("sendMediaGroup", {**place, "media": media})
        self.check("sendDocument", {**place, "document": "AgACAgQ", "caption": "file: x"})

    def test_files(self) -> None:
        """Uploads go with the methods that take them only."""
        place = {"chat_id": 100, "message_thread_id": 7, "message_id": 5}
        for method in WITH_FILES:
            self.check(method, dict(place), files=[FILE])
        for method in ("sendMessage", "editMessageText", "getMe", "setMyCommands"):
            self.refused(method, dict(place), files=[FILE])

    def test_commands(self) -> None:
        """The command menu is checked in form and scope."""
        good = {"commands": [{"command": "stop", "description": "Stop"}]}
        self.assertEqual(self.check("setMyCommands", good), (good, "free"))
        self.check("setMyCommands", {**good, "scope": {"type": "chat", "chat_id": 100}})
        for bad in (
            {"commands": "x"},
            {"commands": ["x"]},
            {"commands": [{"command": "Stop", "description": "x"}]},
            {"commands": [{"command": "stop", "description": ""}]},
            {"commands": [{"command": "s", "description": "x"}] * 101},
            {**good, "scope": {"type": "chat", "chat_id": 1}},
            {**good, "scope": {"type": "all_group_chats"}},
            {**good, "scope": "chat"},
        ):
            self.refused("setMyCommands", bad)

    def test_free(self) -> None:
        """Answers to buttons and getMe are free, also without a target."""
        for method in ("answerCallbackQuery", "getMe", "answerGuestQuery"):
            self.assertEqual(self.check(method, {"x": 1}, target=None), ({"x": 1}, "free"))

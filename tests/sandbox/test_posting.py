"""The owner sends messages of any kind."""

from __future__ import annotations

import base64
from random import Random

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.sandbox.actions import BadArguments, perform
from pitelegram.sandbox.chat import Attachment, SandboxChat
from pitelegram.sandbox.posting import send_album


class PostingTests(SynchronousTestCase):
    """C{post}, albums."""

    def setUp(self) -> None:
        """A chat that asks for messages."""
        self.chat = SandboxChat(Clock(), Random(1))
        self.chat.world.updates.allow(["message"])

    def test_any_members(self) -> None:
        """The bot gets exactly what was given, as the owner's message."""
        members = {"location": {"latitude": 1, "longitude": 2}, "forward_origin": {"type": "x"}}
        sent = perform(self.chat, "post", {"members": members, "album": "A"})
        (update,) = self.chat.world.updates.pending()
        message = update["message"]
        self.assertEqual(message["message_id"], sent["message_id"])
        self.assertEqual(message["from"]["id"], self.chat.owner["id"])
        self.assertEqual(message["media_group_id"], "A")
        self.assertLessEqual(members.items(), message.items())

    def test_no_members(self) -> None:
        """Anything but an object is refused."""
        self.assertRaises(BadArguments, perform, self.chat, "post", {"members": []})

    def test_album(self) -> None:
        """One id for all, the caption on the first; the action takes an id, too."""
        files = [Attachment(kind="document", data=b"x", name=f"{n}.bin") for n in range(3)]
        sent = send_album(self.chat, files, "three")
        self.assertEqual([m.album for m in sent], ["album"] * 3)
        self.assertEqual([m.text for m in sent], ["three", "", ""])
        data = base64.b64encode(b"x").decode()
        perform(self.chat, "send_file", {"base64": data, "album": "B"})
        self.assertEqual(self.chat.messages()[-1].album, "B")

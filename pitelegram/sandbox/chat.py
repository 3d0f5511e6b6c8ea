"""What people do in a sandbox Telegram: the owner, strangers, groups."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime

from pitelegram.sandbox.formatting import MAX_TEXT
from pitelegram.sandbox.records import Chat, Message, Thread
from pitelegram.sandbox.richtext import RichText, with_automatic_entities
from pitelegram.sandbox.world import Event, World

OWNER_ID = 100_000_001
STRANGER_ID = 666_000_001
GROUP_ID = -1_001_000_000_001
IMPLICIT_NAME = 32


@attrs.frozen(kw_only=True)
class Attachment:
    """A file that a person sends.

    @ivar kind: C{document}, C{photo}, C{audio}, C{voice} or C{video}.
    """

    kind: str
    data: bytes
    name: str = ""
    mime_type: str = "application/octet-stream"
    meta: dict[str, Any] = attrs.Factory(dict)


class SandboxChat:
    """The people's side.  Where nothing else is said, the owner acts in his chat with the bot.

    @ivar world: the state, with C{world.updates}, C{world.files} and C{world.presses}.
    @ivar owner: Bot API C{User} of the owner.
    """

    def __init__(self, clock: IReactorTime, random: Random) -> None:
        self.world = World(clock, random)
        self.owner = person(OWNER_ID, "Olivia", "olivia")
        self.chat: Chat = self.world.add_chat(private_chat(self.owner))

    # --- seeing -------------------------------------------------------------------------------

    @property
    def threads(self) -> list[Thread]:
        """The living Threads of the owner's chat, oldest first."""
        return [thread for thread in self.chat.threads.values() if not thread.dead]

    def thread_named(self, name: str) -> Thread:
        """Return the newest living Thread of that name.

        @raise LookupError: if there is none.
        """
        for thread in reversed(self.threads):
            if thread.name == name:
                return thread
        raise LookupError(f"no Thread is named {name!r}")

    def messages(self, thread: int | None | str = "any", service: bool = False) -> list[Message]:
        """Return the owner's messages, oldest first.

        @param thread: a Thread's id, None for those outside every Thread, C{"any"} for all.
        @param service: whether service messages are among them.
        """
        return [
            message
            for message in self.chat.messages.values()
            if (thread == "any" or message.thread_id == thread) and (service or not message.service)
        ]

    def from_bot(self, thread: int | None | str = "any") -> list[Message]:
        """Return what the bot wrote, oldest first."""
        return [m for m in self.messages(thread) if m.sender["id"] == self.world.bot["id"]]

    def message(self, message_id: int) -> Message:
        """Return a message of the owner's chat.

        @raise LookupError: if it is not there (any more).
        """
        return self.chat.messages[message_id]

    def events_after(self, seq: int) -> list[Event]:
        """Return what happened after that sequence number."""
        return [event for event in self.world.events if event["seq"] > seq]

    # --- the owner ----------------------------------------------------------------------------

    def user_sends(
        self,
        text: str = "",
        thread: int | None = None,
        reply_to: int | None = None,
        attachment: Attachment | None = None,
        album: str | None = None,
        outside: bool = False,
        entities: Sequence[dict[str, Any]] = (),
        **extra: Any,
    ) -> Message:
        """The owner writes; the last message is returned.

        A text over 4096 characters becomes several messages, as clients do.  Plain text outside
        every Thread opens one when users may do that; commands stay outside.

        @param outside: plain text outside every Thread stays there, as from older clients.
        @param album: C{media_group_id}.
        @param extra: further members of the message (C{quote}, C{forward_origin} …).
        """
        if thread is None and reply_to in self.chat.messages:
            thread = self.chat.messages[reply_to].thread_id
        starts = self.world.topics_enabled and self.world.users_create_topics and not outside
        if starts and thread is None and text and not text.startswith("/"):
            thread = self.user_creates_thread(implicit_name(text), implicit=True).thread_id
        if attachment is None:
            pieces = [text[i : i + MAX_TEXT] for i in range(0, len(text), MAX_TEXT)]
            contents = [with_entities(piece, entities) for piece in pieces]
        else:
            contents = [self._attached(attachment, text)]
        if not contents:
            raise ValueError("a message needs a text or an attachment")
        for content in contents:
            sent = self.world.post(
                self.chat,
                self.owner,
                content,
                thread_id=thread,
                reply_to=reply_to,
                album=album,
                extra=dict(extra),
            )
        return sent

    def user_presses(
        self,
        message_id: int,
        data: str | None = None,
        label: str | None = None,
        user: dict[str, Any] | None = None,
    ) -> str:
        """Somebody presses a button, given by its data (which may be forged) or its label.

        The message may be gone; then the bot gets an inaccessible one.

        @return: the id of the callback query.
        """
        chat, user = self.chat, user or self.owner
        message = chat.messages.get(message_id)
        if data is None:
            if message is None or label is None:
                raise LookupError("say which button: data or label")
            data = str(message.button(label)["callback_data"])
        press = self.world.presses.open(user["id"], chat.chat_id, message_id)
        if message is None:
            about: dict[str, Any] = {"chat": chat.about, "message_id": message_id, "date": 0}
        else:
            about = self.world.render(chat, message)
        query = {
            "id": press.callback_id,
            "from": user,
            "message": about,
            "chat_instance": str(7_000_000_000 + chat.chat_id),
            "data": data,
        }
        self.world.updates.push("callback_query", query)
        self.world.emit("press", chat_id=chat.chat_id, callback_id=press.callback_id, data=data)
        return press.callback_id

    def user_edits(self, message_id: int, text: str) -> Message:
        """The owner edits his message."""
        message = self.chat.messages[message_id]
        kept = {k: v for k, v in message.content.items() if k not in ("text", "entities")}
        if "text" in message.content:
            message.content = kept | with_entities(text)
        else:
            message.content = kept | {"caption": text}
        self.world.changed(self.chat, message)
        return message

    def user_reacts(self, message_id: int, *emoji: str) -> None:
        """The owner's reactions on a message become exactly these."""
        reactions = [{"type": "emoji", "emoji": one} for one in emoji]
        self.world.react(self.chat, self.chat.messages[message_id], self.owner, reactions)

    def user_deletes(self, *message_ids: int) -> None:
        """The owner deletes messages; the bot hears nothing."""
        self.world.remove(self.chat, message_ids)

    def user_creates_thread(self, name: str, implicit: bool = False) -> Thread:
        """The owner opens a Thread."""
        return self.world.open_thread(self.chat, self.owner, name, implicit=implicit)

    def user_renames_thread(self, thread_id: int, name: str) -> None:
        """The owner renames a Thread."""
        thread = self.chat.threads[thread_id]
        self.world.change_thread(self.chat, self.owner, thread, {"name": name})

    def user_closes_thread(self, thread_id: int) -> None:
        """The owner closes a Thread: the bot hears of it and can write nothing more there."""
        self.world.shut_thread(self.chat, self.owner, self._living(thread_id), True)

    def user_reopens_thread(self, thread_id: int) -> None:
        """The owner opens it again."""
        self.world.shut_thread(self.chat, self.owner, self._living(thread_id), False)

    def _living(self, thread_id: int) -> Thread:
        thread = self.chat.threads[thread_id]
        if thread.dead:
            raise LookupError("that Thread was deleted")
        return thread

    def user_deletes_thread(self, thread_id: int, sends: str = "not-found") -> None:
        """The owner deletes a Thread; the bot hears nothing.

        @param sends: what a later send gets: C{not-found}, C{deleted} or C{main}.
        """
        self.world.drop_thread(self.chat, self.chat.threads[thread_id], sends)

    def user_blocks(self, blocked: bool = True) -> None:
        """The owner blocks the bot, or lets it in again."""
        states = ("member", "kicked")
        self.chat.blocked = blocked
        members = [
            {"status": state, "user": self.world.bot}
            | ({"until_date": 0} if state == "kicked" else {})
            for state in (states if blocked else reversed(states))
        ]
        update = {
            "chat": self.chat.about,
            "from": self.owner,
            "date": self.world.now(),
            "old_chat_member": members[0],
            "new_chat_member": members[1],
        }
        self.world.updates.push("my_chat_member", update)
        self.world.emit("blocked", chat_id=self.chat.chat_id, blocked=blocked)

    # --- the bot's settings -------------------------------------------------------------------

    def switch_threads(self, enabled: bool, users_create: bool = True) -> None:
        """Switch threaded mode in BotFather; the bot hears nothing."""
        self.world.users_create_topics = users_create
        self.world.set_topics(enabled)

    # --- others -------------------------------------------------------------------------------

    def stranger_sends(self, text: str, user_id: int = STRANGER_ID, **fields: Any) -> Message:
        """Somebody else writes in his own chat with the bot."""
        stranger = person(user_id, "Mallory", "mallory")
        chat = self.world.add_chat(private_chat(stranger))
        return self.world.post(chat, stranger, with_entities(text), **fields)

    def stranger_edits(self, message: Message, text: str) -> None:
        """He edits it."""
        message.content = with_entities(text)
        self.world.changed(self.world.chats[message.sender["id"]], message)

    def stranger_reacts(self, message: Message, emoji: str) -> None:
        """He reacts in his own chat."""
        chat = self.world.chats[message.sender["id"]]
        self.world.react(chat, message, message.sender, [{"type": "emoji", "emoji": emoji}])

    def stranger_presses(self, message_id: int, data: str, user_id: int = STRANGER_ID) -> str:
        """He forges a press on a message of the owner's chat."""
        return self.user_presses(message_id, data, user=person(user_id, "Mallory", "mallory"))

    def group_sends(self, text: str, user: dict[str, Any] | None = None, **fields: Any) -> Message:
        """The owner (or C{user}) writes in a group that the bot is in."""
        about = {"id": GROUP_ID, "type": "supergroup", "title": "Some group"}
        chat = self.world.add_chat(about)
        return self.world.post(chat, user or self.owner, with_entities(text), **fields)

    def _attached(self, attachment: Attachment, caption: str) -> dict[str, Any]:
        file = self.world.files.add(
            attachment.kind,
            attachment.data,
            attachment.name,
            attachment.mime_type,
            **attachment.meta,
        )
        about: Any = file.as_json()
        content = {attachment.kind: [about] if attachment.kind == "photo" else about}
        if caption:
            content |= with_automatic_entities(RichText(caption)).as_json(
                "caption", "caption_entities"
            )
        return content


def person(user_id: int, name: str, username: str) -> dict[str, Any]:
    """Return the Bot API C{User} of a human."""
    return {
        "id": user_id,
        "is_bot": False,
        "first_name": name,
        "username": username,
        "language_code": "en",
    }


def private_chat(user: dict[str, Any]) -> dict[str, Any]:
    """Return the Bot API C{Chat} of somebody's chat with the bot."""
    return {
        "id": user["id"],
        "type": "private",
        "first_name": user["first_name"],
        "username": user["username"],
    }


def with_entities(text: str, entities: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return the content of a text message as a client sends it."""
    return with_automatic_entities(RichText(text, tuple(entities))).as_json()


def implicit_name(text: str) -> str:
    """Return the name that a client gives to a Thread that a text opens."""
    return " ".join(text.split())[:IMPLICIT_NAME] or "New Thread"

"""The state of a sandbox Telegram, and everything that may happen to it.

Both sides act on it: the Bot API's methods (L{pitelegram.sandbox.methods}) and the people
(L{pitelegram.sandbox.chat}).  Whatever happens is told to the observers as one small event with a
rising C{seq}.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from twisted.internet.interfaces import IReactorTime

from pitelegram.sandbox.callbacks import Presses
from pitelegram.sandbox.files import FileShelf
from pitelegram.sandbox.records import Chat, Message, Thread
from pitelegram.sandbox.updates import UpdateQueue

Event = dict[str, Any]
ICON_COLORS = (7322096, 16766590, 13338331, 9367192, 16749490, 16478047)
KEPT_EVENTS = 20_000


class World:
    """One bot, its chats, its updates.

    @param random: source of every id; give a seeded one for a repeatable world.
    @ivar topics_enabled: C{getMe.has_topics_enabled}; set it through L{set_topics}.
    """

    def __init__(self, clock: IReactorTime, random: Random) -> None:
        self._clock = clock
        self.random = random
        number = random.randrange(10**9, 10**10)
        self.bot: dict[str, Any] = {
            "id": number,
            "is_bot": True,
            "first_name": "Sandbox Pi",
            "username": "sandbox_pi_bot",
        }
        self.topics_enabled = True
        self.users_create_topics = True
        self.chats: dict[int, Chat] = {}
        self.updates = UpdateQueue(clock, random)
        self.presses = Presses(clock, random)
        self.files = FileShelf(random)
        self.commands: dict[str, list[dict[str, str]]] = {}
        self.warnings: deque[str] = deque(maxlen=1000)
        self.events: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self.seq = 0
        self._observers: list[Callable[[Event], None]] = []

    # --- seeing -------------------------------------------------------------------------------

    def observe(self, observer: Callable[[Event], None]) -> Callable[[], None]:
        """Call C{observer} with every event from now on; the result ends that."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def emit(self, kind: str, **members: Any) -> None:
        """Tell the observers."""
        self.seq += 1
        event = {"seq": self.seq, "event": kind, **members}
        self.events.append(event)
        for observer in list(self._observers):
            observer(event)

    def now(self) -> int:
        """Seconds since the epoch."""
        return int(self._clock.seconds())

    def render(self, chat: Chat, message: Message) -> dict[str, Any]:
        """Return the Bot API's C{Message} as the bot sees it now."""
        return chat.render(message, threads=self.topics_enabled or not chat.private)

    def seen(self, chat: Chat, message: Message) -> dict[str, Any]:
        """Return the message as people see it: always with its Thread and its reactions."""
        view = chat.render(message) | {"service": message.service}
        if message.reactions:
            view["reactions"] = [item for some in message.reactions.values() for item in some]
        return view

    # --- changing -----------------------------------------------------------------------------

    def add_chat(self, about: dict[str, Any]) -> Chat:
        """Return the chat of that id, made if need be."""
        return self.chats.setdefault(int(about["id"]), Chat(about))

    def post(
        self,
        chat: Chat,
        sender: dict[str, Any],
        content: dict[str, Any],
        *,
        thread_id: int | None = None,
        **more: Any,
    ) -> Message:
        """Put a message into a chat; people's messages and service messages become updates.

        @param more: further fields of L{Message}.
        """
        chat.last_id += 1
        message = Message(
            message_id=chat.last_id,
            sender=sender,
            date=self.now(),
            content=content,
            thread_id=thread_id,
            **more,
        )
        chat.messages[message.message_id] = message
        self._announce(chat, message)
        return message

    def _announce(self, chat: Chat, message: Message) -> None:
        if message.service or message.sender["id"] != self.bot["id"]:
            self.updates.push("message", self.render(chat, message))
        self.emit("message", chat_id=chat.chat_id, message=self.seen(chat, message))

    def changed(self, chat: Chat, message: Message) -> None:
        """Tell that a message was edited; a person's edit becomes an update."""
        message.edit_date = self.now()
        if message.sender["id"] != self.bot["id"]:
            self.updates.push("edited_message", self.render(chat, message))
        self.emit("edit", chat_id=chat.chat_id, message=self.seen(chat, message))

    def remove(self, chat: Chat, message_ids: Iterable[int]) -> None:
        """Take messages away; no update exists for that."""
        gone = [number for number in message_ids if chat.messages.pop(number, None)]
        chat.pinned = [number for number in chat.pinned if number in chat.messages]
        if gone:
            self.emit("delete", chat_id=chat.chat_id, message_ids=gone)

    def react(
        self, chat: Chat, message: Message, user: dict[str, Any], reactions: list[dict[str, Any]]
    ) -> None:
        """Replace somebody's reactions; a person's become an update (without a Thread)."""
        old = message.reactions.pop(user["id"], [])
        if reactions:
            message.reactions[user["id"]] = reactions
        if user["id"] != self.bot["id"]:
            update = {
                "chat": chat.about,
                "message_id": message.message_id,
                "user": user,
                "date": self.now(),
                "old_reaction": old,
                "new_reaction": reactions,
            }
            self.updates.push("message_reaction", update)
        self.emit("reaction", chat_id=chat.chat_id, message=self.seen(chat, message))

    def open_thread(
        self,
        chat: Chat,
        sender: dict[str, Any],
        name: str,
        icon_color: int | None = None,
        icon_custom_emoji_id: str = "",
        implicit: bool = False,
    ) -> Thread:
        """Create a Thread with its service message."""
        number = chat.last_id + 1
        color = icon_color or ICON_COLORS[len(chat.threads) % len(ICON_COLORS)]
        thread = Thread(number, name, color, icon_custom_emoji_id, implicit)
        chat.threads[number] = thread
        content = {"forum_topic_created": thread.created()}
        self.post(chat, sender, content, thread_id=number, service=True)
        self.emit("thread", chat_id=chat.chat_id, thread=thread.seen())
        return thread

    def change_thread(
        self, chat: Chat, sender: dict[str, Any], thread: Thread, changes: dict[str, str]
    ) -> None:
        """Rename a Thread or change its icon, with the service message."""
        thread.name = changes.get("name", thread.name)
        thread.icon_custom_emoji_id = changes.get(
            "icon_custom_emoji_id", thread.icon_custom_emoji_id
        )
        thread.implicit = False
        content = {"forum_topic_edited": changes}
        self.post(chat, sender, content, thread_id=thread.thread_id, service=True)
        self.emit("thread", chat_id=chat.chat_id, thread=thread.seen())

    def shut_thread(self, chat: Chat, sender: dict[str, Any], thread: Thread, closed: bool) -> None:
        """Close a Thread or open it again, with the service message; twice is once."""
        if thread.closed == closed:
            return
        thread.closed = closed
        content: dict[str, Any] = {f"forum_topic_{'closed' if closed else 'reopened'}": {}}
        self.post(chat, sender, content, thread_id=thread.thread_id, service=True)
        self.emit("thread", chat_id=chat.chat_id, thread=thread.seen())

    def drop_thread(self, chat: Chat, thread: Thread, dead: str = "not-found") -> None:
        """Delete a Thread with all its messages; no update exists for that."""
        thread.dead = dead
        members = [m.message_id for m in chat.messages.values() if m.thread_id == thread.thread_id]
        self.remove(chat, members)
        self.emit("thread_deleted", chat_id=chat.chat_id, thread_id=thread.thread_id)

    def act(self, chat: Chat, thread_id: int | None, action: str) -> None:
        """Show that the bot is busy (C{typing} and the like)."""
        self.emit("action", chat_id=chat.chat_id, thread_id=thread_id, action=action)

    def draft(
        self, chat: Chat, thread_id: int | None, draft_id: int, content: dict[str, Any]
    ) -> None:
        """Show what the bot is writing; clients drop it with the next message there, or after 30 s."""
        self.emit(
            "draft", chat_id=chat.chat_id, thread_id=thread_id, draft_id=draft_id, content=content
        )

    def set_topics(self, enabled: bool) -> None:
        """Switch threaded mode; no update tells the bot, and old Threads stay."""
        self.topics_enabled = enabled
        self.emit("mode", topics_enabled=enabled)

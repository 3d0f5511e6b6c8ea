"""Who this worker says it is, and what the leader made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusBadRequest
from pitelegram.ids import BindingKey, ProcessBirth
from pitelegram.kernel.deferring import spawn
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.threads.interfaces import without_mark

_NAME_KEY = "thread-shown"


class Registration:
    """Makes each registration, remembers the last one, and holds the link that it came on.

    Over reconnects the previous instance, target, slot and Thread name are named again; over a
    restart the previous instance.

    @param session: returns C{sessionId} and C{sessionFile} as far as they are known.
    @ivar link: the registered link, None while there is none.
    @ivar made: how many registrations there were.
    @ivar target: C{{"chatId","threadId"?}} or None.
    @ivar thread_name: the palette name of the Thread, None while it has none.
    @ivar manual_name: the name that the operator gave the Thread, as far as is known.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        inbox: IInbox,
        birth: ProcessBirth,
        binding_key: BindingKey,
        name: str,
        cwd: str,
        session: Callable[[], dict[str, Any]],
    ) -> None:
        self._clock = clock
        self._inbox = inbox
        self._birth = birth
        self._binding_key = binding_key
        self._name = name
        self._cwd = cwd
        self._session = session
        self._slot: str | None = None
        self._instances = 0
        self.made = 0
        self.link: ILeaderLink | None = None
        self.target: dict[str, int] | None = None
        self.thread_name: str | None = None
        self.manual_name: str | None = None
        self._title: str | None = None

    @property
    def display_title(self) -> str | None:
        """What the Thread is called, as Telegram took it; None while that is not known."""
        if self.link is not None:
            self._title = self.link.registration.get("displayTitle")
        return self._title

    def shown_name(self) -> str | None:
        """Return how the operator knows the Thread: its title, without the mark of who works.

        A process that has not registered yet says what was so last.
        """
        title = self.display_title
        name = without_mark(title) if title else self.thread_name
        known = self._inbox.get_meta(_NAME_KEY)
        if name is None or name == known:
            return name or known
        spawn(self._log, "remembering a Thread's name", self._inbox.set_meta(_NAME_KEY, name))
        return name

    def renamed(self, title: str | None, manual_name: str | None) -> None:
        """The leader gave the Thread another title."""
        self._title, self.manual_name = title, manual_name
        if self.link is not None:
            self.link.registration["displayTitle"] = title

    def current_link(self) -> ILeaderLink | None:
        """Return the registered link, None while there is none."""
        return self.link

    def request(self) -> dict[str, Any]:
        """Return the registration to send."""
        now = int(self._clock.seconds() * 1000)
        self._instances = max(self._instances + 1, now)
        session = self._session()
        optional = {
            "previousInstanceId": self._inbox.get_meta("instance_id"),
            "target": self.target,
            "slot": self._slot,
            "threadName": self.thread_name,
            "sessionId": session.get("sessionId"),
            "sessionFile": session.get("sessionFile"),
        }
        return {
            "instanceId": f"{self._birth.pid}:{self._instances}",
            "kind": "managed",
            "ownerId": f"worker:{self._name}",
            "profileKey": self._binding_key,
            "pid": self._birth.pid,
            "processBirthId": self._birth.birth,
            "sessionGeneration": 1,
            "cwd": self._cwd,
            "requestedName": self._name,
            "connectedAtMs": now,
            **{name: value for name, value in optional.items() if value is not None},
        }

    async def registered(self, link: ILeaderLink, answer: dict[str, Any]) -> None:
        """Take the leader's answer.

        @raise BusBadRequest: it speaks of another binding than the one whose inbox is open here.
        """
        if answer.get("bindingKey") != self._binding_key:
            raise BusBadRequest("the leader registered this worker under another binding")
        self.target = answer.get("target")
        self._slot = answer.get("slot")
        self.thread_name = answer.get("threadName")
        self.manual_name = answer.get("manualName")
        self._title = answer.get("displayTitle")
        await self._inbox.set_meta("instance_id", answer["instanceId"])
        self.made += 1
        self.link = link
        self.shown_name()

    def replaced(self, target: dict[str, int] | None) -> None:
        """The worker's Thread is another one now."""
        if target != self.target and self.link is not None:
            # The title of the one before is not this one's; the next heartbeat tells.
            self.renamed(None, self.manual_name)
        self.target = target

    def lost(self) -> None:
        """The link is gone; what was known last stays known."""
        self._title = self.display_title
        self.link = None

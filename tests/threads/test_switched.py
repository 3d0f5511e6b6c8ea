"""Threads that are switched off and on again keep what they were, whenever the daemon dies."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.targets import TelegramTarget
from tests.threads.test_provision import OWNER, ThreadsCase

OWN = TelegramTarget(OWNER, 101)


class Dying:
    """Bindings of a leader that dies when a Thread is given back."""

    def __init__(self, bindings: Any) -> None:
        self._bindings = bindings

    def __getattr__(self, name: str) -> Any:
        """Everything else is done."""
        return getattr(self._bindings, name)

    def set_target(self, *_: Any) -> Deferred[bool]:
        """Nothing is heard any more."""
        return Deferred()


class SwitchedTests(ThreadsCase):
    """Off and on."""

    def switch(self, enabled: bool) -> None:
        """C{getMe} says so, twice."""
        me = {**self.api.me, "has_topics_enabled": enabled}
        self.threads.learn(me)
        self.threads.learn(me)

    def name(self, name: str) -> None:
        """The user renames the Thread in his client."""
        message = {
            "message_id": 5,
            "message_thread_id": 101,
            "chat": {"id": OWNER, "type": "private"},
            "from": {"id": OWNER, "is_bot": False},
            "forum_topic_edited": {"name": name},
        }
        self.successResultOf(self.threads.renamed(message))

    def test_users_title_stays(self) -> None:
        """The Thread stays called as the user called it, in between served as the chat or not."""
        self.ensure()
        self.name("My own")
        for served in (False, True):
            self.switch(False)
            if served:
                self.successResultOf(self.threads.serve("spec-1"))
            self.switch(True)
            self.assertEqual(self.target(), OWN)
            self.assertEqual(self.threads.title("spec-1"), "My own")
            self.assertFalse(self.successResultOf(self.threads.retitle("spec-1")))
        self.assertEqual(self.api.made("editForumTopic"), [])

    def test_title_given_back(self) -> None:
        """A title that was ours again before is not held to be the user's."""
        self.ensure()
        self.name("My own")
        self.switch(False)
        self.switch(True)
        self.name("A")
        self.switch(False)
        self.switch(True)
        self.display = "names"
        self.assertTrue(self.successResultOf(self.threads.retitle("spec-1")))

    def test_killed_while_it_is_given_back(self) -> None:
        """The next leader gives it back; no second one is made."""
        self.ensure()
        self.switch(False)
        self.successResultOf(self.threads.stopService())
        self.make(Dying(self.bindings)).learn(self.api.me)
        self.assertIsNone(self.target())
        self.threads = self.make()
        self.threads.learn(self.api.me)
        self.ensure()
        self.assertEqual((self.target(), self.made()), (OWN, ["A"]))

    def test_killed_after_it_was_given_back(self) -> None:
        """What is remembered of it then is forgotten, and revives no Thread that is lost later."""
        self.ensure()
        self.successResultOf(self.leadership.set_meta("parked_thread:spec-1", OWN.key))
        self.restart()
        self.pass_time(1)
        self.assertTrue(self.successResultOf(self.threads.lost("spec-1", OWN)))
        self.threads.kick()
        self.pass_time(1)
        self.assertEqual(self.target(), TelegramTarget(OWNER, 102))

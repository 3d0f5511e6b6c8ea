"""Questions whose Thread is dead, or is said to be; and the closing of many at once."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.botapi.limits import CHAT_RATE, EDIT_BURST, EDIT_RATE, SendGate
from pitelegram.bridge import dialogs as words
from pitelegram.errors import Refusal
from pitelegram.store.inbox import Inbox
from pitelegram.testing.stores import worker_database
from pitelegram.testing.worker import CHAT, THREAD
from pitelegram.worker.traces import DialogTraces
from tests.worker.test_dialogs import CANCELLED, DialogCase

NEW = {"chatId": CHAT, "threadId": THREAD + 1}


def no_thread(description: str = "Bad Request: message thread not found") -> Refusal:
    """What the leader answers when Telegram did not find the Thread."""
    return Refusal("api", description, errorCode=400, description=description)


class NotFound(DialogCase):
    """A question that is sent into a Thread that is not found."""

    def threads(self) -> list[int]:
        """The Threads that questions were sent to."""
        return [params["message_thread_id"] for params in self.calls("sendMessage")]

    def test_false_alarm(self) -> None:
        """It is sent again after a moment, into the same Thread, and can be answered."""
        self.started()
        self.rig.link.api_results = [no_thread(), no_thread("Bad Request: TOPIC_DELETED")]
        self.ask(method="confirm")
        self.assertEqual((self.threads(), self.answers), ([THREAD], []))
        self.rig.run(7)
        self.assertEqual(self.threads(), [THREAD] * 3)
        self.rig.press(self.button("Yes"), self.message_ids()[0])
        self.assertEqual(self.answers, [("d1", {"confirmed": True})])
        self.assertEqual(self.rig.link.texts, [])

    def test_lost(self) -> None:
        """The new Thread gets it, once, whether it is told before the wait is over or after."""
        for pause in (1.0, 20.0):
            self.started()
            self.rig.link.api_results = [no_thread()]
            self.ask(method="confirm")
            self.rig.parts.follower.replace_target(None, None, "lost")
            self.rig.run(pause)
            self.assertEqual(self.threads(), [THREAD])
            self.rig.parts.follower.replace_target(NEW, None, "recreated")
            self.rig.run(10)
            self.assertEqual(self.threads(), [THREAD, THREAD + 1])
            self.rig.press(self.button("No"), self.message_ids()[0])
            self.assertEqual(self.answers, [("d1", {"confirmed": False})])
            self.rig.crash()

    def test_moved_during_a_rate_limit(self) -> None:
        """What waits to be sent into the old Thread does not come into the new one as well."""
        for answer in ({"message_id": 9}, Deferred()):
            self.started()
            self.rig.link.api_results = [Refusal("rate-limited", "x", retryAfter=5), answer]
            self.ask()
            self.rig.parts.follower.replace_target(NEW, None, "recreated")
            self.rig.run(20)
            self.assertEqual(self.threads(), [THREAD, THREAD + 1])
            self.rig.crash()

    def test_never_found(self) -> None:
        """When its time is over it is cancelled with a line; Pi does not wait for ever."""
        self.started()
        self.rig.link.api_results = [no_thread() for _ in range(100)]
        self.ask()
        self.rig.run(130)
        self.assertEqual(self.answers, [("d1", CANCELLED)])
        self.assertEqual(len(self.threads()), 40)
        self.assertEqual(len(self.rig.link.texts), 1)
        self.assertIn("could not be brought here", self.rig.link.texts[0])

    def test_attachment(self) -> None:
        """Where its long text finds no Thread any more, it comes as messages."""
        self.started()
        self.rig.link.api_results = [{"message_id": 5}, no_thread()]
        self.ask(method="confirm", message="word " * 2000)
        self.rig.run(2)
        self.assertIn("word word", "".join(self.rig.link.texts))


class Gone(DialogCase):
    """A question whose message was deleted, with its Thread or by itself."""

    def test_nobody_could_answer(self) -> None:
        """When its time is over a line says that nobody can have seen it."""
        for timeout in (None, 2000):
            self.asked(**({} if timeout is None else {"timeout": timeout}))
            missing = "Bad Request: message to edit not found"
            self.rig.link.api_results = [
                Refusal("api", missing, errorCode=400, description=missing)
            ]
            self.rig.run(125)
            self.assertEqual(len(self.rig.link.texts), 1)
            self.assertIn("message was gone before", self.rig.link.texts[0])
            self.rig.crash()

    def test_answered_or_visible(self) -> None:
        """No line is said of one that was answered, or whose message is there."""
        message_id = self.asked()
        missing = "Bad Request: message to edit not found"
        self.rig.link.api_results = [Refusal("api", missing, errorCode=400, description=missing)]
        self.reply("here", message_id)
        self.ask("d2")
        self.rig.run(130)
        self.assertEqual(self.answers, [("d1", {"value": "here"}), ("d2", CANCELLED)])
        self.assertEqual(self.rig.link.texts, [])


class GatedLink:
    """A leader's link that lets as many edits through as the chat's budget allows."""

    def __init__(self, clock: Clock, gate: SendGate) -> None:
        self._clock = clock
        self._gate = gate
        self.edited: list[tuple[float, int]] = []
        self.refused = 0

    def call_api(self, method: str, params: dict[str, Any], *_: Any) -> Deferred[Any]:
        """Edit, or say when."""
        wait = self._gate.blocked_for(CHAT, "edit")
        if wait > 0:
            self.refused += 1
            return fail(Refusal("rate-limited", "x", retryAfter=wait))
        self._gate.wait(CHAT, "edit")
        self.edited.append((self._clock.seconds(), params["message_id"]))
        return succeed(True)


class ManyClosings(SynchronousTestCase):
    """Forty questions of five workers are over at once."""

    def test_bounded(self) -> None:
        """Each message is closed once, as fast as Telegram allows edits; answers do not wait."""
        clock = Clock()
        gate = SendGate(clock)
        link: Any = GatedLink(clock, gate)
        closing = []
        for worker in range(5):
            database = worker_database(clock)
            self.addCleanup(database.close)
            traces = DialogTraces(clock, Inbox(database), lambda: link, lambda: None)
            for number in range(8):
                traces.opened(CHAT, worker * 8 + number, False, "x")
            closing.append(traces)
        for worker, traces in enumerate(closing):
            for number in range(8):
                traces.over(CHAT, worker * 8 + number, "over")
        self.assertEqual(len(link.edited), 8)
        waits = []
        while not all(traces.tidy() for traces in closing) and clock.seconds() < 1000:
            begin = clock.seconds()
            answer = gate.wait(CHAT)
            for _ in range(40):
                clock.advance(0.1)
                if answer.called and len(waits) < begin + 1:
                    waits.append(clock.seconds() - begin)
        self.assertEqual(sorted(number for _, number in link.edited), list(range(40)))
        self.assertLessEqual(
            max(when for when, _ in link.edited), (40 - EDIT_BURST + 2) / EDIT_RATE
        )
        self.assertLessEqual(max(waits), 2 / CHAT_RATE)
        self.assertLessEqual(link.refused, 5 * 40)


class Untold(DialogCase):
    """A worker that was killed between Telegram's send and its own commit."""

    def test_first_press(self) -> None:
        """Nobody remembers that message: its first press or reply is told so and takes its buttons
        off; no question of the new process is answered by it."""
        self.started()
        self.rig.link.api_results = [Deferred()]
        self.ask(method="confirm")
        yes = self.button("Yes")
        self.rig.crash()
        self.rig.start()
        self.ask(method="confirm")
        self.rig.press(yes, 4711)
        self.assertEqual((self.answers, self.toast()), ([], words.LATE))
        (edit,) = self.calls("editMessageReplyMarkup")
        self.assertEqual(
            (edit["message_id"], edit["reply_markup"]), (4711, {"inline_keyboard": []})
        )

    def test_reply(self) -> None:
        """A text for it is no prompt; it may be a secret."""
        self.started()
        self.rig.link.api_results = [Deferred()]
        self.ask()
        markup = self.calls("sendMessage")[0]["reply_markup"]
        self.rig.crash()
        self.rig.start()
        replied = {"message_id": 4711, "reply_markup": markup}
        self.rig.message("secret", message_id=71, reply_to_message=replied)
        self.assertEqual((self.answers, self.rig.prompts()), ([], []))
        self.assertEqual(self.rig.link.texts[-1], words.LATE_REPLY)

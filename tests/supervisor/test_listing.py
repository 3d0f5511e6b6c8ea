"""What a listing says of a worker."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.ids import ProcessBirth
from pitelegram.store.rows import Spec
from pitelegram.supervisor.interfaces import WorkerView
from pitelegram.supervisor.life import State
from pitelegram.supervisor.listing import worker_view
from pitelegram.testing.supervision import FakeFollower

BIRTH = ProcessBirth(4711, "4711:start:1")


class ListingTests(SynchronousTestCase):
    """Worker C{alpha}, as its registration and its life have it."""

    def view(self, state: State = State.RUNNING, **reported: Any) -> WorkerView:
        """The view of a worker that reports this."""
        spec = Spec(
            spec_id="a",
            name="alpha",
            directory="/projects/alpha",
            desired="running",
            trust="approved",
            restart="on-failure",
            slot_id=None,
            session_id=None,
            session_file=None,
            session_entries=0,
        )
        follower = FakeFollower(spec_id="a", spawn_id="s", birth=BIRTH, link=None)
        follower.state = reported
        return worker_view(
            spec,
            state,
            follower,
            process=BIRTH,
            pi=BIRTH,
            session_file=None,
            restarts=0,
            last_error=None,
            until_ms=7,
        )

    def test_error(self) -> None:
        """Pi's error is one line without places; none is none."""
        found = self.view(lastError="No key.\n\nLook into\t/home/me/keys\n").last_error
        self.assertEqual(found, "No key. Look into [redacted]")
        self.assertIsNone(self.view().last_error)

    def test_model(self) -> None:
        """One line, and not a long one."""
        self.assertEqual(self.view(model="one/big\n model").model, "one/big model")
        self.assertEqual(len(self.view(model="m" * 999).model or ""), 60)

    def test_nonsense(self) -> None:
        """What a worker makes up of itself is not shown."""
        found = self.view(activity="dancing", queued="many", lastError=["x"], model=7)
        self.assertIsNone(found.model)
        self.assertEqual((found.activity, found.queued, found.last_error), ("idle", 0, "['x']"))

    def test_processes(self) -> None:
        """They are named only while one may live; the time only in back-off."""
        running, backoff = self.view(), self.view(State.BACKOFF)
        self.assertEqual((running.pid, running.pi_pid, running.until_ms), (4711, 4711, None))
        self.assertEqual((backoff.pid, backoff.pi_pid, backoff.until_ms), (None, None, 7))

"""The public status document: its shape, its health, and what it never holds."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.control import status
from pitelegram.testing.control import quiet_figures
from pitelegram.testing.panel import a_view

NOW = 1_700_000_100_000
GOOD_POLL = {
    "phase": "long-poll",
    "last_success_ms": NOW - 1000,
    "consecutive_failures": 0,
    "receiving": True,
    "not_receiving_since_ms": None,
}


def facts(**changes: Any) -> status.Facts:
    """Return facts of a daemon that is well."""
    polling = {**GOOD_POLL, **changes.pop("poll", {})}
    right: dict[str, Any] = {
        "profile": "default",
        "now_ms": NOW,
        "pid": 4711,
        "epoch": "epoch-1",
        "started_at_ms": NOW - 90_000,
        "version": "1.2.3",
        "bot_username": "some_bot",
        "bot_id": 77,
        "thread_mode": "enabled",
        "paired": True,
        "polling": polling,
        "not_receiving_since_ms": polling["not_receiving_since_ms"],
        "journal": {"pending": 1, "held": 2, "retry_wait": 3, "failed": 0},
        "outbox": {"pending": 4, "sending": 1, "uncertain": 0, "dead_letter": 0},
        "workers": [a_view("alpha", queued=2, activity="active")],
        "threads": {"spec-id-alpha": ("Atlas", "A")},
        "attached": 1,
        "storage_pressure": quiet_figures(),
    }
    return status.Facts(**{**right, **changes})


class ShapeTests(SynchronousTestCase):
    """The contract's names."""

    def test_document(self) -> None:
        """Word for word."""
        self.assertEqual(
            status.document(facts()),
            {
                "schema_version": 1,
                "profile": "default",
                "written_at_ms": NOW,
                "daemon": {
                    "role": "daemon",
                    "pid": 4711,
                    "epoch": "epoch-1",
                    "started_at_ms": NOW - 90_000,
                    "version": "1.2.3",
                },
                "bot": {
                    "username": "some_bot",
                    "id": 77,
                    "thread_mode": "enabled",
                    "paired": True,
                },
                "polling": {
                    "phase": "long-poll",
                    "last_success_ms": NOW - 1000,
                    "consecutive_failures": 0,
                    "receiving": True,
                },
                "journal": {"pending": 1, "held": 2, "retry_wait": 3, "failed": 0},
                "outbox": {"pending": 4, "sending": 1, "uncertain": 0, "dead_letter": 0},
                "workers": [
                    {
                        "name": "alpha",
                        "state": "running",
                        "activity": "active",
                        "queued": 2,
                        "restarts": 0,
                        "thread_name": "Atlas",
                        "slot": "A",
                        "meta": {},
                    }
                ],
                "attached": {"count": 1},
                "health": "ok",
                "problems": [],
                "storage_pressure": {"status": "ok", "pressure": False, **quiet_figures()},
            },
        )

    def test_no_thread(self) -> None:
        """A worker without a binding is listed all the same."""
        (worker,) = status.document(facts(threads={}))["workers"]
        self.assertEqual((worker["thread_name"], worker["slot"]), (None, None))

    def test_keys(self) -> None:
        """A worker's public pair is shown as it is given, and nobody else's."""
        pair = {"stable_key": "wsk1_" + "a" * 64, "stable_key_version": 1}
        views = [a_view("alpha"), a_view("beta")]
        given = facts(workers=views, continuity={views[1].binding_key: pair})
        metas = [worker["meta"] for worker in status.document(given)["workers"]]
        self.assertEqual(metas, [{}, pair])

    def test_nothing_private(self) -> None:
        """Nothing of a worker's directory, processes, session or error is in it."""
        view = a_view("alpha", "failed", last_error="a secret of the directory")
        text = json.dumps(status.document(facts(workers=[view])))
        for private in ("/projects", "4712", "/sessions", "a secret", "w-alpha", "id-alpha"):
            self.assertNotIn(private, text)

    def test_private_part(self) -> None:
        """What the local operator sees besides."""
        self.assertEqual(
            status.private_part(a_view("alpha", last_error="why")),
            {
                "worker_id": "w-alpha",
                "directory": "/projects/alpha",
                "pid": 4711,
                "pi_pid": 4712,
                "session_file": "/sessions/one.jsonl",
                "last_error": "why",
            },
        )

    def test_without_a_daemon(self) -> None:
        """Down, with the reason."""
        document = status.down("work", NOW, "no daemon runs")
        self.assertEqual(document["health"], "down")
        self.assertEqual(document["problems"], ["no daemon runs"])
        self.assertEqual((document["profile"], document["daemon"]), ("work", None))


class HealthTests(SynchronousTestCase):
    """C{health} and C{problems}."""

    def look(self, **changes: Any) -> tuple[str, list[str]]:
        """Return health and problems."""
        document = status.document(facts(**changes))
        return document["health"], document["problems"]

    def test_not_receiving(self) -> None:
        """Since when is said all the while; after a minute it is down."""
        for seconds, right in ((1, "degraded"), (60, "degraded"), (61, "down")):
            quiet = {
                "phase": "retrying",
                "receiving": False,
                "not_receiving_since_ms": NOW - seconds * 1000,
            }
            health, (problem,) = self.look(poll=quiet)
            self.assertEqual(health, right, seconds)
        self.assertEqual(
            problem, "not receiving from Telegram since 2023-11-14T22:13:59Z (phase retrying)"
        )

    def test_conflict(self) -> None:
        """Somebody else polls: named from the first 409 on, though the last poll is young."""
        health, problems = self.look(
            poll={"phase": "conflict", "not_receiving_since_ms": NOW - 2000}
        )
        self.assertEqual(health, "degraded")
        self.assertIn("since 2023-11-14T22:14:58Z", problems[0])
        self.assertIn("another poller or a webhook", problems[1])

    def test_each_problem(self) -> None:
        """Everything that is not as it should be degrades health and has its sentence."""
        for changes, words in (
            ({"paired": False}, "no owner is paired"),
            ({"journal": {"failed": 2}}, "2 update(s) could not be delivered"),
            ({"outbox": {"uncertain": 3}}, "3 answer(s) may or may not have arrived"),
            ({"outbox": {"dead_letter": 1}}, "1 answer(s) were refused"),
            ({"workers": [a_view("beta", "failed")]}, "worker beta is in state failed"),
            ({"workers": [a_view("beta", "backoff")]}, "worker beta is in state backoff"),
            (
                {"workers": [a_view(f"w{n}", "failed") for n in range(9)]},
                "workers w0, w1, w2, w3, w4 and 4 more are in state failed",
            ),
            (
                {"workers": [a_view("beta", "adopting", last_error="it did not register")]},
                "worker beta still runs, but did not register",
            ),
            ({"storage_pressure": quiet_figures(disk="low")}, "the disk is nearly full"),
            ({"storage_pressure": quiet_figures(disk="full")}, "the disk is full"),
            ({"storage_pressure": quiet_figures(wal_bytes=2**27)}, "log has grown large"),
            ({"storage_pressure": quiet_figures(wal_bytes=-1)}, "make no sense together"),
            ({"problems": ["the roof is on fire"]}, "the roof is on fire"),
            (
                {"poll": {"phase": "persisting", "consecutive_failures": 1}},
                "updates cannot be stored",
            ),
        ):
            health, problems = self.look(**changes)
            self.assertEqual(health, "degraded", words)
            self.assertEqual([words in problem for problem in problems], [True], problems)

    def test_no_problem(self) -> None:
        """Stopped and starting workers are no problem."""
        views = [a_view(state, state) for state in ("stopped", "spawning", "adopting", "draining")]
        self.assertEqual(self.look(workers=views), ("ok", []))

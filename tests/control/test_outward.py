"""Each document's last look: what its contract names stays, everything else private goes."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.control import envelope as envelopes
from pitelegram.control import outward, status
from pitelegram.control.envelope import is_legal
from pitelegram.testing.panel import a_view
from tests.control.test_status import facts

TOKEN = "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"
META = {"stable_key": "wsk1_" + "0f" * 32, "stable_key_version": 1}


class StatusTests(SynchronousTestCase):
    """Status and workers."""

    def test_unchanged(self) -> None:
        """A right document passes as it is, whatever odd words its names are made of."""
        views = [a_view(name) for name in ("alpha", "sk-abcdefghijkl", "session-one-2", "10-0-0-1")]
        document = status.document(
            facts(
                workers=views,
                bot_username="session_abcdef_bot",
                epoch="eyJhbGciOiJI.eyJzdWIi.sig",
                continuity={"spec-id-alpha": META},
            )
        )
        self.assertEqual(outward.status(document), document)

    def test_thread_names(self) -> None:
        """A Thread bears the name that its owner gave it; a place in it does not get out."""
        document = status.document(facts(threads={"spec-id-alpha": ("at /home/bob", "A")}))
        (worker,) = outward.status(document)["workers"]
        self.assertEqual(worker["thread_name"], "at [redacted]")

    def test_problems(self) -> None:
        """A part's sentence is a text like any other."""
        document = status.document(facts(problems=[f"bot{TOKEN} at /home/bob for chat_id=77"]))
        text = json.dumps(outward.status(document))
        for private in ("AAEhBO", "/home", "77,"):
            self.assertNotIn(private, json.dumps(outward.status(document)["problems"]))
        self.assertIn('"id": 77', text)

    def listing(self, **extra: Any) -> dict[str, Any]:
        """A list of one worker with its private fields and more."""
        view = a_view("alpha", last_error="why")
        entry = {**status.worker(view, "Atlas", "A", META), **status.private_part(view), **extra}
        return {"schema_version": 1, "workers": [entry]}

    def test_workers(self) -> None:
        """Without C{private} nothing of it passes, even when somebody put it there."""
        (shown,) = outward.workers(self.listing(), False)["workers"]
        for name in ("directory", "session_file", "worker_id"):
            self.assertEqual(name in shown, name == "worker_id")
        self.assertNotIn("/projects", json.dumps(shown))

    def test_private_workers(self) -> None:
        """With it exactly its fields, as they are but for tokens."""
        listing = self.listing(environ={"A": "b"}, argv=["pi"], directory=f"/projects/{TOKEN}")
        (shown,) = outward.workers(listing, True)["workers"]
        self.assertEqual(shown["session_file"], "/sessions/one.jsonl")
        self.assertEqual(shown["directory"], "/projects/[redacted]")
        self.assertEqual(
            set(shown) - set(status.worker(a_view("a"), None, None, {})), set(outward.PRIVATE)
        )


class EnvelopeTests(SynchronousTestCase):
    """Answers to commands."""

    def test_refusal(self) -> None:
        """The id that was asked with comes back exactly; message and details are public."""
        refused = envelopes.refused(
            "worker.start",
            "sk-abcdefghijkl",
            "rejected",
            "terminal_rejected",
            f"no {TOKEN} below /home/bob",
            field="directory",
            value="/home/bob",
            cwd="/home/bob",
        )
        shown = outward.envelope(refused)
        self.assertTrue(is_legal(shown))
        self.assertEqual(shown["request_id"], "sk-abcdefghijkl")
        self.assertEqual(shown["error"]["message"], "no [redacted] below [redacted]")
        self.assertEqual(shown["error"]["details"], {"field": "directory", "value": "[redacted]"})

    def test_unknown_action(self) -> None:
        """An action that is none is no way to have something repeated."""
        shown = outward.envelope(envelopes.invalid("no such action", action="/home/bob"))
        self.assertEqual(shown["action"], "[redacted]")

    def test_result(self) -> None:
        """What a command found out belongs to who asked; a token belongs to nobody."""
        done = envelopes.make(
            action="worker.get_state",
            request_id=None,
            dry_run=True,
            status="snapshot",
            disposition="no_receipt",
            result={"cwd": "/home/bob", "queue": [f"say {TOKEN}"], "sessionId": "0199"},
        )
        shown = outward.envelope(done)["result"]
        self.assertEqual(
            shown, {"cwd": "/home/bob", "queue": ["say [redacted]"], "sessionId": "0199"}
        )


class OtherTests(SynchronousTestCase):
    """Outbox and events."""

    def test_outbox(self) -> None:
        """Opaque keys and reasons' words stay."""
        item = {
            "key": "session_abcdef12",
            "state": "uncertain",
            "reason": "no-answer",
            "attempts": 2,
            "created_at_ms": 5,
        }
        document = {"schema_version": 1, "items": [item]}
        self.assertEqual(outward.outbox(document), document)

    def test_event(self) -> None:
        """A record of the log is looked at again."""
        record = {
            "at_ms": 5,
            "level": "info",
            "namespace": "pitelegram.x",
            "message": "worker alpha: running > failed (policy: in /home/bob)",
            "fields": {"worker": "alpha", "actor": "policy", "chat_id": "[redacted]"},
        }
        shown = outward.event(record)
        self.assertEqual(shown["fields"], {"worker": "alpha", "actor": "policy"})
        self.assertNotIn("/home", shown["message"])

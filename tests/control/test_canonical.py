"""When two requests are the same command."""

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.control.canonical import canonical_form, fingerprint_of, selector_proof
from pitelegram.control.requests import restored, validate


def request(**changes):
    """A valid prompt."""
    return validate(
        {
            "schema_version": 1,
            "action": "worker.prompt",
            "request_id": "r1",
            "target": {"name": "a"},
            "args": {"text": "hi"},
            **changes,
        }
    )


class CanonicalTests(SynchronousTestCase):
    """L{canonical_form}."""

    def test_what_counts(self):
        """Action, arguments and what it is about; neither the request id nor the selector."""
        first = canonical_form(request(), "spec:1")
        self.assertEqual(
            first,
            '{"action":"worker.prompt","args":{"text":"hi"},"canonical_version":1,'
            '"target":{"subject":"spec:1"}}',
        )
        for same in ({"request_id": "other"}, {"target": {"worker_id": "w"}}):
            self.assertEqual(canonical_form(request(**same), "spec:1"), first)
        for other in (
            {"args": {"text": "Hi"}},
            {"args": {"text": "hi "}},
            {"action": "worker.steer"},
        ):
            self.assertNotEqual(canonical_form(request(**other), "spec:1"), first)
        self.assertNotEqual(canonical_form(request(), "spec:2"), first)
        self.assertEqual(len(fingerprint_of(first)), 24)

    def test_start(self):
        """A start is compared by its worker: two spellings of a directory are the same."""
        here, there = (
            request(action="worker.start", target={}, args={"directory": directory})
            for directory in ("/a/b", "/a/./b")
        )
        self.assertEqual(canonical_form(here, "spec:1"), canonical_form(there, "spec:1"))
        self.assertNotEqual(selector_proof(here), selector_proof(there))

    def test_proof(self):
        """The proof tells how the worker was named, and does not show it."""
        first = selector_proof(request())
        self.assertRegex(first, r"^v1:[0-9a-f]{64}$")
        self.assertEqual(selector_proof(request(args={"text": "other"})), first)
        for other in ({"target": {"name": "b"}}, {"target": {"worker_id": "a"}}):
            self.assertNotEqual(selector_proof(request(**other)), first)

    def test_restored(self):
        """What was stored can be asked about again; rubbish, reads and foreign forms cannot."""
        form = canonical_form(request(), "spec:1")
        found = restored("worker.prompt", "r1", form)
        self.assertEqual(
            (found.action, found.request_id, found.args), ("worker.prompt", "r1", {"text": "hi"})
        )
        started = request(action="worker.start", target={}, args={"directory": "/a"})
        self.assertIsNotNone(restored("worker.start", "r1", canonical_form(started, "spec:1")))
        for action, request_id, stored in (
            ("worker.prompt", "r1", "rubbish"),
            ("worker.prompt", "r1", "[]"),
            ("worker.prompt", "r1", "{}"),
            ("worker.prompt", "r 1", form),
            ("worker.bash", "r1", form),
            ("worker.get_state", "r1", '{"args":{}}'),
            ("worker.set_model", "r1", form),
        ):
            self.assertIsNone(restored(action, request_id, stored), (action, stored))

"""Envelope v2."""

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.control import envelope


def accepted(**changes):
    """A legal envelope with some fields changed."""
    value = envelope.make(
        action="worker.abort",
        request_id="r",
        dry_run=False,
        status="accepted",
        disposition="terminal_accepted",
        result={},
    )
    return {**value, **changes}


class EnvelopeTests(SynchronousTestCase):
    """L{envelope.make} and L{envelope.is_legal}."""

    def test_ten_fields(self):
        """An envelope has exactly the ten fields, in their order."""
        self.assertEqual(tuple(accepted()), envelope.FIELDS)
        self.assertEqual(len(envelope.FIELDS), 10)

    def test_missing_and_extra(self):
        """A field less or more is not legal."""
        for name in envelope.FIELDS:
            value = accepted()
            del value[name]
            self.assertFalse(envelope.is_legal(value), name)
        self.assertFalse(envelope.is_legal(accepted(extra=1)))
        self.assertFalse(envelope.is_legal(None))

    def test_wrong_types(self):
        """Each field has its type."""
        for changes in (
            {"schema_version": True},
            {"schema_version": 2.0},
            {"schema_version": 1},
            {"action": None},
            {"request_id": 5},
            {"ok": 1},
            {"dry_run": 0},
            {"status": None},
            {"result": []},
            {"error": "x"},
            {"error": {"code": "x", "message": "y"}},
            {"warnings": None},
        ):
            self.assertFalse(envelope.is_legal(accepted(**changes)), changes)

    def test_illegal_combinations(self):
        """Combinations outside the matrix cannot be made."""
        error = {"code": "x", "message": "m", "details": {}}
        for ok, dry_run, status, disposition in (
            (True, False, "pending", "in_progress"),
            (True, True, "accepted", "terminal_accepted"),
            (False, False, "accepted", "terminal_rejected"),
            (False, False, "duplicate_request", "no_receipt"),
            (False, True, "backend_unavailable", "no_receipt"),
            (False, False, "rejected", "terminal_uncertain"),
            (True, True, "rejected", "no_receipt"),
        ):
            with self.assertRaises(ValueError):
                envelope.make(
                    action="noop",
                    request_id=None,
                    dry_run=dry_run,
                    status=status,
                    disposition=disposition,
                    error=None if ok else error,
                )

    def test_invalid(self):
        """A request of wrong form is answered as a dry run without an id."""
        value = envelope.invalid("no", field="request")
        self.assertTrue(envelope.is_legal(value))
        self.assertEqual(
            (value["action"], value["request_id"], value["dry_run"], value["status"]),
            ("", None, True, "invalid_request"),
        )
        self.assertEqual(value["error"]["details"], {"field": "request"})

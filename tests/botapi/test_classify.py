"""The classifier alone."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet import error as net
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web._newclient import RequestGenerationFailed, ResponseNeverReceived

from pitelegram.botapi.classify import is_cancelled, read_answer, transport_error
from pitelegram.errors import (
    CertainlyUnsent,
    Conflict,
    Refused,
    TelegramError,
    Unauthorized,
    Uncertain,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["ok", "result", "error_code", "description", "parameters", "retry_after"])


def refuse(code: int, description: Any = "no", **more: Any) -> TelegramError | None:
    """Return the error that such a refusal becomes."""
    body = {"ok": False, "error_code": code, "description": description, **more}
    try:
        read_answer("sendMessage", code, None, json.dumps(body).encode())
    except TelegramError as error:
        return error
    return None


class ClassifyTests(SynchronousTestCase):
    """What answers mean."""

    def test_codes(self) -> None:
        """The body's code decides, below 500 as a refusal."""
        kinds = {
            400: Refused,
            401: Unauthorized,
            403: Refused,
            404: Refused,
            409: Conflict,
            413: Refused,
            429: CertainlyUnsent,
            500: Uncertain,
            502: Uncertain,
        }
        for code, kind in kinds.items():
            self.assertIs(type(refuse(code)), kind)

    def test_code_of_the_body_wins(self) -> None:
        """A complete refusal counts, whatever the HTTP status."""
        body = b'{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}'
        self.assertRaises(Refused, read_answer, "x", 502, None, body)
        self.assertRaises(Uncertain, read_answer, "x", 502, None, b'{"ok":false}')

    def test_retry_after(self) -> None:
        """Odd waits are no waits; long ones are cut."""
        for given_wait, expected in (
            (5, 5.0),
            ("7", 7.0),
            (-1, None),
            (True, None),
            ("soon", None),
            ([1], None),
            (10**9, 86400.0),
        ):
            error = refuse(429, parameters={"retry_after": given_wait})
            self.assertEqual(error.retry_after, expected)
        self.assertIsNone(refuse(429, parameters=[1]).retry_after)

    def test_description(self) -> None:
        """A description is one short line without the token."""
        body = json.dumps({"ok": False, "description": "a\r\nb\x1b[0m 1:SECRET" + "x" * 999})
        error = self.assertRaises(Refused, read_answer, "x", 400, None, body.encode(), "1:SECRET")
        self.assertTrue(error.description.startswith("a b [0m <token>x"))
        self.assertEqual(len(error.description), 500)
        self.assertEqual(refuse(400, ["x"]).description, "refused without a reason")

    def test_deep_json(self) -> None:
        """JSON made to overflow is uncertain."""
        for body in (b"[" * 200_000, b'{"ok":' * 200_000, b"1" * 100_000, b"\xff\xfe"):
            self.assertRaises(Uncertain, read_answer, "x", 200, None, body)

    @settings(max_examples=200, derandomize=True, deadline=None)
    @given(st.dictionaries(keys, values), st.integers(100, 599), st.none() | st.text())
    def test_any_object(self, body: dict[str, Any], status: int, header: str | None) -> None:
        """Whatever comes is a result or one of our errors."""
        data = json.dumps(body, default=str).encode()
        try:
            outcome = read_answer("x", status, header, data)
        except TelegramError as error:
            self.assertLess(len(str(error)), 600)
        else:
            self.assertIsNotNone(outcome)

    @settings(max_examples=200, derandomize=True, deadline=None)
    @given(st.binary(max_size=60), st.integers(100, 599))
    def test_any_bytes(self, body: bytes, status: int) -> None:
        """So it is for bytes."""
        try:
            read_answer("x", status, None, body)
        except TelegramError as error:
            self.assertEqual(error.method, "x")

    def test_transport(self) -> None:
        """Only what was written whole is uncertain; wrapped reasons are looked into."""
        lost = ResponseNeverReceived([Failure(net.ConnectionLost())])
        self.assertIs(type(transport_error("x", lost, True)), Uncertain)
        self.assertIs(type(transport_error("x", lost, False)), CertainlyUnsent)
        self.assertIn("lost", transport_error("x", lost, True).description)
        self.assertIn("looked up", transport_error("x", net.DNSLookupError("h"), False).description)

    def test_secret_in_the_cause(self) -> None:
        """An unknown cause says nothing of its own."""
        error = transport_error("x", ValueError("https://host/bot1:SECRET/x"), False)
        self.assertNotIn("SECRET", str(error) + repr(error))

    def test_cancelled(self) -> None:
        """A cancellation is found at any depth."""
        inner = Failure(CancelledError())
        for error in (
            CancelledError(),
            net.ConnectingCancelledError(None),
            ResponseNeverReceived([inner]),
            RequestGenerationFailed([Failure(ResponseNeverReceived([inner]))]),
        ):
            self.assertTrue(is_cancelled(error))
        self.assertFalse(is_cancelled(ResponseNeverReceived([Failure(net.ConnectionLost())])))

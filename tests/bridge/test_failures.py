"""Failures of a provider in words."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.failures import REASON, Repeats, failure_text, reason_of

MOCK = '429: {"message":"rate limit exceeded","type":"mock_error","code":"429"}'


class FailureTests(SynchronousTestCase):
    """L{failure_text} and L{reason_of}."""

    def test_kinds(self) -> None:
        """What the operator can do follows from what the provider said."""
        for message, words, hint in (
            (MOCK, "limit on requests", "/continue"),
            ('402: {"error":{"message":"Insufficient credits"}}', "no credit", "/model"),
            ("You exceeded your current quota, check your plan and billing", "no credit", "/model"),
            ("Your credit balance is too low to access the API", "no credit", "/model"),
            ('529 {"type":"error","error":{"message":"Overloaded"}}', "overloaded", "/continue"),
            ("503: Service temporarily unavailable", "overloaded", "/continue"),
            ("prompt is too long: 250000 tokens > 200000 maximum", "too long", "/compact"),
            ("This model's maximum context length is 8192 tokens", "too long", "/new"),
            ('401: {"message":"invalid x-api-key"}', "key or login", "pi in a terminal"),
            ("No API key found for that provider", "key or login", "pi in a terminal"),
            ('404: {"message":"model: foo"}', "does not know this model", "/model"),
            ("fetch failed", "could not be reached", "/continue"),
            ("Connection error.", "could not be reached", "/continue"),
            ('500: {"message":"boom"}', "provider failed", "/continue"),
            ("", "provider failed", "/continue"),
        ):
            text = failure_text(message)
            self.assertIn(words, text.splitlines()[0], message)
            self.assertIn(hint, text.splitlines()[2], message)

    def test_own_words(self) -> None:
        """The provider's sentence is shown without the JSON around it, on one line."""
        self.assertEqual(reason_of(MOCK), "429: rate limit exceeded")
        self.assertEqual(reason_of('x {"error":{"message":"a \\"b\\"\\nc"}}'), 'a "b" c')
        self.assertEqual(reason_of("Request\n was   cut"), "Request was cut")
        self.assertEqual(reason_of(""), "no reason was given")

    def test_bounded_and_redacted(self) -> None:
        """A long reason is cut; keys and paths do not get through."""
        self.assertLessEqual(len(reason_of("word " * 100_000)), REASON)
        text = failure_text(
            "401: Incorrect API key provided: sk-abcdefghijklmnop1234 in /home/me/x"
        )
        self.assertNotIn("abcdefghijkl", text)
        self.assertNotIn("/home/me", text)

    def test_repeats(self) -> None:
        """The same failure again is one line with how often; another one, or an answer, begins anew."""
        repeats, failure, other = Repeats(), failure_text(MOCK), failure_text("boom")
        self.assertEqual(repeats.told(failure, failure), failure)
        second, third = repeats.told(failure, failure), repeats.told(failure, failure)
        self.assertNotIn("\n", second)
        self.assertIn("2 times in a row", second)
        self.assertIn("3 times in a row", third)
        self.assertEqual(repeats.told(other, other), other)
        self.assertEqual(repeats.told(None, "an answer"), "an answer")
        self.assertEqual(repeats.told(other, other), other)

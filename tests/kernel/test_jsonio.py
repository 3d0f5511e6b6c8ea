"""JSON in and out: only C{ValueError} says that something cannot be read or written."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel import jsonio


class JsonTests(SynchronousTestCase):
    """Whatever comes."""

    def test_too_deep_to_read(self) -> None:
        """Text nested too deeply is no JSON, for both readers."""
        for read in (jsonio.loads, jsonio.exact):
            for text in (b"[" * 4096, b'{"a":' * 100_000 + b"1" + b"}" * 100_000):
                self.assertRaises(ValueError, read, text)

    def test_too_deep_to_write(self) -> None:
        """What can be read and not be written is refused as a value, at every depth."""
        for depth in (255, 300, 500, 1000):
            value = jsonio.loads(b"[" * depth + b"]" * depth)
            self.assertRaises(ValueError, jsonio.dumps, value)
        self.assertRaises(ValueError, jsonio.dumps, ["\ud800", 2**80])

    def test_surrogates(self) -> None:
        """Lone surrogates become U+FFFD in both directions."""
        self.assertEqual(jsonio.loads(b'["\\ud800"]'), ["\ufffd"])
        self.assertEqual(jsonio.loads(jsonio.dumps({"\ud800": "\udc00"})), {"\ufffd": "\ufffd"})

    def test_exact(self) -> None:
        """Numbers of other programs survive."""
        self.assertEqual(jsonio.exact("[123456789012345678901]"), [123456789012345678901])

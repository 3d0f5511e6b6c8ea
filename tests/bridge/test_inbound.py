"""Which entry of C{inboundHandlers} is for which message."""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.inbound import MOST_ENTRIES, is_like, read_entries
from pitelegram.bridge.templates.planning import plan
from pitelegram.testing.handlers import file_item
from tests.bridge.test_templates import JSON

VOICE = file_item("voice", mime="Audio/OGG; codecs=opus")


def entry(**selectors):
    """Return the one entry with these selectors."""
    entries, problems = read_entries([{"template": "x", **selectors}])
    assert not problems, problems
    return entries[0]


class SelectorTests(SynchronousTestCase):
    """Selectors of files and of text."""

    def test_table(self):
        """C{type} is the kind, C{mime} the MIME type, C{match} either; one of them is enough."""
        table = (
            ({}, True),
            ({"type": "voice"}, True),
            ({"type": " Voice "}, True),
            ({"type": "audio"}, False),
            ({"type": "audio/ogg"}, False),
            ({"type": ["photo", "voice"]}, True),
            ({"type": "v*"}, True),
            ({"type": "*"}, True),
            ({"mime": "audio/ogg"}, True),
            ({"mime": "audio/*"}, True),
            ({"mime": "voice"}, False),
            ({"mime": ["image/*", "text/*"]}, False),
            ({"match": "voice"}, True),
            ({"match": "audio/*"}, True),
            ({"match": "*"}, True),
            ({"match": "image/*"}, False),
            ({"match": "image/*", "type": "voice"}, True),
            ({"match": "image/*", "type": "photo"}, False),
            ({"type": []}, True),
        )
        for selectors, takes in table:
            self.assertEqual(entry(**selectors).takes(VOICE), takes, selectors)

    def test_text(self):
        """The text of messages is for entries that say C{text}; no pattern and no MIME type does."""
        table = (
            ({"type": "text"}, True),
            ({"match": ["voice", "Text"]}, True),
            ({}, False),
            ({"type": "*"}, False),
            ({"match": "*"}, False),
            ({"match": "te*"}, False),
            ({"mime": "text/plain"}, False),
            ({"match": "text/*"}, False),
        )
        for selectors, takes in table:
            self.assertEqual(entry(**selectors).takes_text, takes, selectors)

    def test_like(self):
        """A star stands for anything, nothing included; everything else for itself."""
        table = (
            ("", "", True),
            ("a", "a", True),
            ("a", "ab", False),
            ("*", "", True),
            ("a*", "abc", True),
            ("*c", "abc", True),
            ("a*c", "abc", True),
            ("a*c", "ac", True),
            ("a*a", "a", False),
            ("*b*", "abc", True),
            ("a**c", "abc", True),
            ("*ab*ab*", "abab", True),
            ("*ab*ab*", "aba", False),
            ("a.c", "abc", False),
            ("a*" * 50 + "b", "a" * 5000, False),
        )
        for pattern, text, like in table:
            self.assertEqual(is_like(pattern, text), like, (pattern, text[:20]))


class ReadingTests(SynchronousTestCase):
    """Good and bad entries."""

    def test_malformed(self):
        """Each bad entry is a sentence with its place; the good ones stay, in their order."""
        table = (
            ("echo", "must be an object"),
            (None, "must be an object"),
            ({}, r"template: there is no command"),
            ({"template": "x {a"}, "not closed"),
            ({"template": "x", "type": 3}, r"\.type: must be a text"),
            ({"template": "x", "mime": ["a", 3]}, r"\.mime: must be a text"),
            ({"template": "x", "match": {}}, r"\.match: must be a text"),
            ({"template": "x", "match": " "}, r"\.match: a pattern has"),
            ({"template": "x", "type": ["a", ""]}, r"\.type: a pattern has"),
            ({"template": "x", "type": "a" * 300}, r"\.type: a pattern has"),
        )
        for bad, reason in table:
            entries, problems = read_entries([{"template": "a"}, bad, {"template": "b"}])
            self.assertEqual([each.place[-3:] for each in entries], ["[0]", "[2]"])
            self.assertEqual(len(problems), 1)
            self.assertRegex(problems[0], r"^inboundHandlers\[1\].*" + reason)

    def test_example(self):
        """The example of the documentation is right."""
        page = (Path(__file__).parents[2] / "docs" / "handlers.md").read_text("utf-8")
        example = json.loads(page.split("```json")[1].split("```")[0])
        entries, problems = read_entries(example["inboundHandlers"])
        self.assertEqual((len(entries), problems), (3, ()))
        values = {"file": "/f", "text": "t"}
        for each in entries:
            self.assertIsNotNone(plan(each.template, values, Path("/home/o"), Path("/")))

    def test_shape(self):
        """Nothing is no problem; anything but a list is; too many are cut."""
        self.assertEqual(read_entries(None), ((), ()))
        self.assertEqual(read_entries([]), ((), ()))
        self.assertEqual(read_entries(())[1], ())
        for value in ({}, "x", 3, True):
            self.assertEqual(len(read_entries(value)[1]), 1)
        entries, problems = read_entries([{"template": "x"}] * 1000)
        self.assertEqual((len(entries), len(problems)), (MOST_ENTRIES, 1))

    @settings(max_examples=150, deadline=None)
    @given(JSON, st.text(), st.text())
    def test_any_json(self, value, mime, kind):
        """Any JSON is read; what comes of it takes or does not take any file."""
        for setting in (value, [value], [{"template": "x", "match": value}]):
            entries, problems = read_entries(setting)
            self.assertTrue(all(problem.startswith("inboundHandlers") for problem in problems))
            for each in entries:
                self.assertIsInstance(each.takes(file_item(kind, mime=mime)), bool)

"""Texts of what is shown beside answers."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.activity.lines import compaction_line, interrupted, retry_line
from pitelegram.bridge.activity.marked import line
from pitelegram.bridge.activity.redaction import inert, so_far, without_secrets
from pitelegram.bridge.activity.thoughts import FIRST, MOST_FRAMES, NEWS, SHOWN, Thoughts
from pitelegram.bridge.activity.tools import (
    DETAIL,
    LIMIT,
    MOST_TOOLS,
    ToolView,
    argument_text,
    fits,
    humanised,
    tools_message,
)
from pitelegram.bridge.cutting import utf16_length
from pitelegram.pi.observing import CompactionStep, Retry

TOKEN = "123456789:" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345678"


def parts(params: dict[str, Any], kind: str) -> list[str]:
    """The texts that have a style."""
    raw = params["text"].encode("utf-16-le")
    return [
        raw[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le")
        for e in params["entities"]
        if e["type"] == kind
    ]


class RedactionTests(SynchronousTestCase):
    """L{pitelegram.bridge.activity.redaction}."""

    def test_secrets(self) -> None:
        """Tokens, keys and passwords go, in the forms in which tools have them."""
        for text, secret in (
            (f"curl https://api.telegram.org/bot{TOKEN}/getMe", TOKEN[10:]),
            ("Authorization: Bearer abc.def-ghi123", "abc.def"),
            ("export OPENAI_API_KEY=sekrit-value", "sekrit"),
            ('{"token": "sekrit", "a": 1}', "sekrit"),
            ('{\\"password\\": \\"sekrit\\"}', "sekrit"),
            ("db_password: sekrit", "sekrit"),
            ("mysql --password sekrit -h x", "sekrit"),
            ("client-secret='sekrit'", "sekrit"),
            ("key sk-abcdefghijklmnopqrst here", "abcdefgh"),
            ("-----BEGIN RSA PRIVATE KEY-----\nsekrit", "sekrit"),
        ):
            shown = without_secrets(text)
            self.assertNotIn(secret, shown, text)
            self.assertIn("[", shown)
        self.assertIn("[REDACTED_BOT_TOKEN]", without_secrets(TOKEN))

    def test_ordinary_text_stays(self) -> None:
        """Words that only sound like it stay."""
        for text in ("3 tokens are left", "the secret of it", "a = b", "tokenizer = x"):
            self.assertEqual(without_secrets(text), text)

    def test_inert(self) -> None:
        """Addresses, commands, names and hashtags do nothing any more."""
        self.assertEqual(inert("see https://a.example/b"), "see https://\u200ba.example/b")
        self.assertEqual(inert("www.example.org"), "www.\u200bexample.org")
        self.assertEqual(
            inert("/stop @me #x a/b", words=True), "/\u200bstop @\u200bme #\u200bx a/b"
        )

    def test_growing(self) -> None:
        """Of a text that grows the last word waits: half a token is not recognised as one."""
        self.assertEqual(so_far(f"the token is {TOKEN[:20]}"), "the token is ")
        self.assertEqual(so_far(f"the token is {TOKEN[:20]}…"), "the token is …")


class ToolTests(SynchronousTestCase):
    """L{pitelegram.bridge.activity.tools}."""

    def test_titles(self) -> None:
        """Names become words."""
        self.assertEqual(humanised("web_fetch"), "Web fetch")
        self.assertEqual(humanised("mcp_call_tool"), "MCP call tool")
        self.assertEqual(humanised("bash"), "Bash")
        self.assertEqual(humanised(" "), "Tool")
        self.assertLessEqual(utf16_length(humanised("x" * 500)), 60)

    def test_arguments(self) -> None:
        """One well-known argument is shown as it is, others by name, nested ones as JSON."""
        self.assertEqual(argument_text({"command": "ls"}), "ls")
        self.assertEqual(argument_text({"password": "x"}), "password: x")
        self.assertEqual(argument_text({"path": "a", "limit": 3}), "path: a\nlimit: 3")
        self.assertEqual(argument_text({"edits": [1]}), '{"edits":[1]}')
        self.assertEqual(argument_text(None), "")
        self.assertEqual(argument_text({}), "")

    def test_message(self) -> None:
        """The title is bold, arguments are visible, the result is folded; nothing is previewed."""
        view = ToolView.of("bash", {"command": f"echo {TOKEN} https://a.example"})
        params = tools_message([view])
        self.assertTrue(params["text"].startswith("🔧 Bash\necho [REDACTED_BOT_TOKEN]"))
        self.assertEqual(parts(params, "bold"), ["Bash"])
        self.assertEqual(parts(params, "expandable_blockquote"), [])
        view.update("one tw")
        view.update("one two thr")
        params = tools_message([view])
        self.assertIn(" · update 2\n", params["text"])
        self.assertEqual(parts(params, "expandable_blockquote"), ["one two"])
        view.end("one two three\n", failed=False)
        params = tools_message([view])
        self.assertTrue(params["text"].startswith("✅ Bash\n"))
        self.assertEqual(parts(params, "expandable_blockquote"), ["one two three"])
        self.assertEqual(params["link_preview_options"], {"is_disabled": True})
        self.assertIn("https://\u200ba", params["text"])

    def test_outcomes(self) -> None:
        """A failed tool and one of which nobody heard any more look so."""
        failed, lost = ToolView.of("a", {}), ToolView.of("b", {})
        failed.end("no", failed=True)
        failed.interrupt()
        lost.interrupt()
        self.assertEqual(tools_message([failed, lost])["text"], "❌ A\nno\n⏹ B")

    @given(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
        st.text(),
    )
    def test_anything(self, name: str, arguments: Any, found: str) -> None:
        """Whatever a tool is called, gets and gives is a message."""
        view = ToolView.of(name, arguments)
        view.update(found)
        tools_message([view])
        view.end(found, failed=True)
        self.assertTrue(tools_message([view])["text"].startswith("❌ "))

    @given(
        st.lists(
            st.tuples(st.text(max_size=90), st.integers(0, 3000), st.integers(0, 9000)), max_size=12
        )
    )
    def test_bounds(self, tools: list[tuple[str, int, int]]) -> None:
        """However long arguments and results are, each message has its bounds and valid styles."""
        views: list[ToolView] = []
        for name, arguments, result in tools:
            view = ToolView.of(name, {"command": "ä😀" * arguments})
            view.end("😀 x" * result, failed=False)
            self.assertLessEqual(utf16_length(view.result), DETAIL)
            if not fits(views, view):
                views = []
            views.append(view)
            params = tools_message(views)
            length = utf16_length(params["text"])
            self.assertLessEqual(length, LIMIT)
            self.assertLessEqual(len(views), MOST_TOOLS)
            for entity in params["entities"]:
                self.assertLessEqual(entity["offset"] + entity["length"], length)


class ThoughtTests(SynchronousTestCase):
    """L{Thoughts}."""

    def test_pace(self) -> None:
        """The first words are shown soon, then only what is worth it, and so often at most."""
        thoughts = Thoughts()
        self.assertFalse(thoughts.add("x" * (FIRST - 1)))
        self.assertTrue(thoughts.add(" y"))
        self.assertIsNotNone(thoughts.message())
        self.assertFalse(thoughts.news)
        self.assertFalse(thoughts.add("z" * (NEWS - 1)))
        self.assertTrue(thoughts.add("z z"))
        for _ in range(MOST_FRAMES - 2):
            thoughts.add("word " * 40)
            thoughts.message()
        self.assertFalse(thoughts.add("word " * 100))
        self.assertTrue(thoughts.news)

    def test_the_newest_is_shown(self) -> None:
        """Of very long thoughts the end is shown, folded, without links and without secrets."""
        thoughts = Thoughts()
        for number in range(5000):
            thoughts.add(f"thought{number} ")
        thoughts.add(f"/stop {TOKEN}")
        growing = thoughts.message()
        assert growing is not None
        self.assertNotIn(TOKEN[:20], growing["text"])
        thoughts.pause()
        params = thoughts.message()
        assert params is not None
        self.assertLessEqual(utf16_length(params["text"]), SHOWN + 10)
        (shown,) = parts(params, "expandable_blockquote")
        self.assertTrue(shown.startswith("… thought"))
        self.assertTrue(shown.endswith("thought4999 /\u200bstop [REDACTED_BOT_TOKEN]"))

    def test_nothing(self) -> None:
        """Blank thoughts are no message."""
        thoughts = Thoughts()
        thoughts.add(" \n" * 100)
        thoughts.pause()
        self.assertIsNone(thoughts.message())


class LineTests(SynchronousTestCase):
    """L{pitelegram.bridge.activity.lines}."""

    def test_retry(self) -> None:
        """Which attempt, how long, and why."""
        retry = Retry(attempt=2, of=3, delay=8.0, reason='503: {"message":"overloaded"}')
        self.assertEqual(retry_line(retry), "🔁 Retry 2 of 3 in 8 s: 503: overloaded")

    def test_compaction(self) -> None:
        """Its beginning, and every end."""
        step = CompactionStep(reason="threshold")
        self.assertIn("compacts", compaction_line(step))
        done = CompactionStep(reason="threshold", over=True, before=150_000, after=12_000)
        self.assertIn("150k → 12k", compaction_line(done))
        self.assertIn(
            "cancelled", compaction_line(CompactionStep(reason="x", over=True, aborted=True))
        )
        failed = compaction_line(CompactionStep(reason="overflow", over=True, error="500: boom"))
        self.assertIn("boom", failed)
        self.assertIn("/new", failed)

    def test_interrupted(self) -> None:
        """The content stays, with its styles, and the word is added within the limit."""
        params = tools_message([ToolView.of("bash", {"command": "ls"})])
        marked = interrupted(params)
        self.assertTrue(marked["text"].startswith(params["text"]))
        self.assertIn("Interrupted", marked["text"])
        self.assertEqual(marked["entities"], params["entities"])
        self.assertLessEqual(utf16_length(interrupted(line("x" * 4096))["text"]), 4096)

"""What an answer looks like, and how it is sent when it is long."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.rendering.records import RenderOptions
from pitelegram.bridge.rendering.render import render
from tests.bridge.rendering.checks import check_message

HTML = RenderOptions(rendering="html")


def looks(markdown: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the text of a short answer, and what its entities cover."""
    (call,) = render(markdown, HTML).calls("entities")
    units = call["params"]["text"].encode("utf-16-le")
    return call["params"]["text"], [
        (e["type"], units[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le"))
        for e in call["params"].get("entities", ())
    ]


class Looks(SynchronousTestCase):
    """The form with entities."""

    def test_blocks(self) -> None:
        """Headings are bold, lists have bullets and numbers, tasks boxes, code its block."""
        self.assertEqual(
            looks("# T *x*\n\ntext"), ("T x\n\ntext", [("bold", "T x"), ("italic", "x")])
        )
        self.assertEqual(looks("- a\n  - b\n- c")[0], "• a\n  ◦ b\n• c")
        self.assertEqual(looks("3. a\n4. b\n10. c")[0], "3. a\n4. b\n10. c")
        self.assertEqual(looks("1. a\n1. b")[0], "1. a\n2. b")
        self.assertEqual(looks("- [x] a\n- [ ] b")[0], "☑ a\n☐ b")
        self.assertEqual(looks("```py\nx\n```"), ("x", [("pre", "x")]))
        self.assertEqual(looks("> q"), ("q", [("blockquote", "q")]))
        long = "> " + "word " * 200
        self.assertEqual(looks(long)[1][0][0], "expandable_blockquote")

    def test_emphasis_over_a_line_break(self) -> None:
        """A style may go on over a line break, which stays."""
        self.assertEqual(
            looks("a **b\nc** *d\ne*"), ("a b\nc d\ne", [("bold", "b\nc"), ("italic", "d\ne")])
        )

    def test_links(self) -> None:
        """Only web and mail addresses can be pressed; other targets are shown."""
        self.assertEqual(looks("[a](https://b.example)"), ("a", [("text_link", "a")]))
        self.assertEqual(looks("[a](src/b.py)"), ("a (src/b.py)", []))
        self.assertEqual(looks("[a](javascript:x)"), ("a (javascript:x)", []))
        self.assertEqual(looks("![p](https://b.example)"), ("🖼 p", [("text_link", "🖼 p")]))

    def test_tables(self) -> None:
        """A narrow table is aligned, wide signs counted twice; a wide one is a list."""
        text, entities = looks("| a | 数量 |\n|---|---:|\n| 苹果 | 3 |")
        self.assertEqual(text, "a    │ 数量\n─────┼─────\n苹果 │    3")
        self.assertEqual([kind for kind, _ in entities], ["pre"])
        wide = "| Name | Text |\n|---|---|\n| x | " + "long " * 12 + "|"
        self.assertEqual(looks(wide)[0], "Name: x\n• Text: " + ("long " * 12).strip())

    def test_plain_shows_addresses(self) -> None:
        """Without entities the address stands behind its words."""
        (step,) = render("[a](https://b.example)").steps
        self.assertEqual(step.plain[0]["params"]["text"], "a (https://b.example)")


class Forms(SynchronousTestCase):
    """The steps and the file."""

    def test_order_of_attempts(self) -> None:
        """Rich, then entities, then plain; C{html} leaves the first out."""
        (step,) = render("**x**").steps
        methods = [[call["method"] for call in calls] for calls in step.attempts()]
        self.assertEqual(methods, [["sendRichMessage"], ["sendMessage"], ["sendMessage"]])
        (step,) = render("**x**", HTML).steps
        self.assertEqual(len(step.attempts()), 2)

    def test_rich_source_is_made_regular(self) -> None:
        """Quotes, dollars, HTML, images, nested items and display math are rewritten; code is not."""
        source = (
            "> q\n\n$AAPL <b> ![i](https://a.example/i)\n\n- a\n  - b\n\n$$\nx\n$$\n\n"
            "`$A <b>`\n\n[a](b.py)"
        )
        (step,) = render(source).steps
        self.assertEqual(
            step.rich[0]["params"]["rich_message"]["markdown"],
            ">q\n\n\\$AAPL &lt;b> [i](https://a.example/i)\n\n- a\n\u00a0\u00a0- b\n\n"
            "```math\nx\n```\n\n`$A <b>`\n\n\\[a](b.py)",
        )

    def test_code_is_fenced_again(self) -> None:
        """A block of code over two rich messages has its fence and language in both."""
        code = "\n".join(f"line {number} of a long program" for number in range(1500))
        rendered = render(f"```python\n{code}\n```", RenderOptions(file_after=0))
        sources = [c["params"]["rich_message"]["markdown"] for c in rendered.calls("rich")]
        self.assertEqual(len(sources), 2)
        for source in sources:
            self.assertTrue(source.startswith("```python\n") and source.endswith("\n```"))
        bodies = [s.removeprefix("```python\n").removesuffix("\n```") for s in sources]
        self.assertEqual("\n".join(bodies), code)

    def test_a_long_answer_is_a_file(self) -> None:
        """Beyond the bound: one message with the beginning, which names the file with all of it."""
        markdown = "**Begin** " + "word " * 3000
        rendered = render(markdown, RenderOptions(file_after=10_000))
        (call,) = rendered.calls("entities")
        check_message(call)
        self.assertTrue(call["params"]["text"].startswith("Begin word"))
        self.assertIn("in the file", call["params"]["text"])
        assert rendered.file is not None
        self.assertEqual(rendered.file.text, markdown.strip())
        self.assertIsNone(render(markdown, RenderOptions(file_after=0)).file)

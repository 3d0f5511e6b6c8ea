"""What a prompt asks of the scripted model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.sandbox.directives import WORDS, Step, long_text, parse, plain


class DirectiveTests(SynchronousTestCase):
    """L{pitelegram.sandbox.directives}."""

    def test_plain_text(self) -> None:
        """Text without directives is echoed, the bridge's tag left out."""
        self.assertEqual(parse("hello [[x]] there"), [Step("echo", ("hello [[x]] there",))])
        self.assertEqual(plain("[telegram from=x]\n hi"), "hi")
        self.assertEqual(plain("say [telegram]"), "say [telegram]")

    def test_several(self) -> None:
        """Directives are the steps of the answer, in order."""
        steps = parse("please [[say 'one two']] and [[tool bash 'ls']][[say text=three chunks=3]]")
        self.assertEqual([step.word for step in steps], ["say", "tool", "say"])
        self.assertEqual(steps[0].argument(0, ""), "one two")
        self.assertEqual(steps[2].options, {"text": "three", "chunks": "3"})

    def test_quotes(self) -> None:
        """Quotes group words, keep brackets, and know line breaks and escaped quotes."""
        (step,) = parse(r"""[[say 'if [[ -f x ]]\n it\'s "so"']]""")
        self.assertEqual(step.argument(0, ""), 'if [[ -f x ]]\n it\'s "so"')

    def test_tools(self) -> None:
        """A tool takes a command or a JSON object."""
        (bash,) = parse("[[tool bash ls -l {a,b} x=1]]")
        self.assertEqual(bash.tool_arguments(), {"command": "ls -l {a,b} x=1"})
        (read,) = parse('[[tool read {"path": "a ]] b"}]]')
        self.assertEqual(read.tool_arguments(), {"path": "a ]] b"})

    def test_unclosed(self) -> None:
        """What is not closed is plain text."""
        for text in ("[[say hello", "[[say 'x]]", "[[", "[[]]", "[[say don't]]"):
            self.assertEqual(parse(text), [Step("echo", (text,))])

    def test_numbers(self) -> None:
        """An option that is no number has its default."""
        (step,) = parse("[[slow seconds=2.5 chunks=many]]")
        self.assertEqual((step.number("seconds", 5), step.number("chunks", 20)), (2.5, 20))

    @given(st.text("[]say tool'\"{}\\=x ", max_size=30))
    def test_any_text(self, text: str) -> None:
        """No text is too odd; only known words come out."""
        for step in parse(text):
            self.assertIn(step.word, (*WORDS, "echo"))

    @given(st.integers(1, 3000))
    def test_long_text(self, size: int) -> None:
        """The long answer has exactly the size asked for and no white space at its ends."""
        text = long_text(size)
        self.assertEqual((len(text), text), (size, text.strip()))

    def test_long_text_is_numbered(self) -> None:
        """Its lines are numbered one by one, so that a lost or doubled one is seen."""
        numbers = [int(line[:6]) for line in long_text(30_000).split("\n")]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))

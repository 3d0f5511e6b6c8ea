"""Hidden comments ask for buttons and speech; of the text they leave nothing and lose nothing."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.actions import MAX_COMMENT, MAX_PROMPT
from pitelegram.bridge.comments import HEADING, finished, read, visible_prefix
from pitelegram.bridge.matrix import Literal, Malformed
from pitelegram.bridge.outgoing import Answer, Button, Speech


def labels(text: str) -> list[list[str]]:
    """The labels of an answer's buttons."""
    return [[button.label for button in row] for row in read(text).buttons]


def one(comment: str) -> Answer:
    """An answer with this comment below its text."""
    return read(f"Text\n\n<!-- {comment} -->")


def button(label: str, prompt: str | None = None, style: str | None = None) -> Button:
    """A button; without a prompt its label is sent."""
    return Button(label=label, prompt=label if prompt is None else prompt, style=style)


class Forms(SynchronousTestCase):
    """Every form of a comment that asks for something."""

    def rows(self, comment: str, *rows: list[Button]) -> None:
        """The comment makes these rows and leaves the text."""
        found = one(comment)
        self.assertEqual(found.markdown, "Text")
        self.assertEqual([list(row) for row in found.buttons], [list(row) for row in rows], comment)

    def test_colon(self) -> None:
        """The label is the prompt."""
        self.rows("telegram_button: Show risks", [button("Show risks")])
        self.rows("telegram_buttons:Go", [button("Go")])
        self.rows('telegram_button: Say "no", please', [button('Say "no", please')])
        self.rows("telegram_button: [{A}{B|c}]", [button("A")], [button("B", "c")])

    def test_attributes(self) -> None:
        """On one line, in double quotes."""
        self.rows('telegram_button label="A b" prompt="do it"', [button("A b", "do it")])
        self.rows('telegram_button value="A"', [button("A")])
        self.rows('telegram_button\n label="A" prompt="b"\n', [button("A", "b")])
        self.rows(
            'telegram_button label="A" prompt="b" selected_style="danger"',
            [button("A", "b", "danger")],
        )
        self.rows('telegram_button label="{A}" prompt="[b]"', [button("{A}", "[b]")])

    def test_body(self) -> None:
        """What stands below the attributes is the prompt, with its lines."""
        self.rows(
            'telegram_button label="Go on" selected_style="success"\nFirst this.\n\n  Then that.\n',
            [button("Go on", "First this.\n\n  Then that.", "success")],
        )
        self.rows('telegram_button label="A"\n{curly}\n', [button("A", "{curly}")])

    def test_json(self) -> None:
        """An object is a row; an array has rows, and cells that are rows by themselves."""
        self.rows('telegram_button {"value": "A"}', [button("A")])
        self.rows('telegram_button {"label": "A", "prompt": "b|}"}', [button("A", "b|}")])
        self.rows(
            'telegram_buttons [[{"value":"A"},{"label":"B","prompt":"b\\nc"}],'
            '\n {"value":"C","selected_style":"primary","more":[1]}]',
            [button("A"), button("B", "b\nc")],
            [button("C", None, "primary")],
        )

    def test_positional(self) -> None:
        """Value; label and prompt; label, prompt and style."""
        self.rows("telegram_button {Next}", [button("Next")])
        self.rows("telegram_button { Pause | music::pause }", [button("Pause", "music::pause")])
        self.rows("telegram_button {Stop|stop|danger}", [button("Stop", "stop", "danger")])
        self.rows(r"telegram_button {a\|b|c\}d\\}", [button("a|b", "c}d\\")])
        self.rows('telegram_button {"a", [b]: {c}', [button('"a", [b]: {c')])
        self.rows('telegram_button {"a"}', [button('"a"')])

    def test_matrix(self) -> None:
        """Commas between elements are optional, and JSON stands beside cells."""
        expected = [button("A"), button("B", "b")], [button("C")]
        for between in ("", ",", " , ", "\n", "\t,\r\n"):
            self.rows(f"telegram_button [[{{A}}{between}{{B|b}}]{between}{{C}}]", *expected)
        self.rows('telegram_buttons [ [{"value":"A"}{B|b}] {"label":"C","prompt":"C"} ]', *expected)
        wide = "".join(f"{{{number}}}" for number in range(1, 12))
        self.rows(f"telegram_button [[{wide}]]", [button(str(n)) for n in range(1, 12)])

    def test_voice(self) -> None:
        """In all forms but the matrix."""
        for form in (
            "telegram_voice: Hello there.",
            'telegram_voice text="Hello there."',
            'telegram_voice value="Hello there."',
            "telegram_voice\nHello there.\n",
            'telegram_voice {"text": "Hello there."}',
            'telegram_voice {"value": "Hello there."}',
            "!telegram_voice: Hello there.",
        ):
            self.assertEqual(one(form).speeches, (Speech(text="Hello there."),), form)
        told = Speech(text="Hallo.\nDu.", lang="de", rate="+10%")
        for form in (
            'telegram_voice lang="de" rate="+10%"\nHallo.\nDu.\n',
            'telegram_voice {"text": "Hallo.\\nDu.", "lang": "de", "rate": "+10%"}',
        ):
            self.assertEqual(one(form).speeches, (told,), form)

    def test_many(self) -> None:
        """Comments add up in their order; a later language is the default."""
        found = read(
            "<!-- telegram_voice: One -->\nAbove\n<!-- telegram_button: A -->\n"
            '<!-- telegram_voice lang="en" text="Two" -->\n<!-- telegram_button: B -->\nBelow'
        )
        self.assertEqual(found.markdown, "Above\n\nBelow")
        self.assertEqual(
            found.speeches, (Speech(text="One", lang="en"), Speech(text="Two", lang="en"))
        )
        self.assertEqual(found.buttons, ((button("A"),), (button("B"),)))

    def test_only_buttons(self) -> None:
        """Buttons without a text have a fixed heading; speech alone and nothing have none."""
        self.assertEqual(read("<!-- telegram_button: A -->").markdown, HEADING)
        self.assertEqual(read("\n\u200b\n<!-- telegram_button: A -->\n").markdown, HEADING)
        self.assertEqual(read("\x7f\n<!-- telegram_button: A -->").markdown, HEADING)
        self.assertEqual(read("<!-- telegram_voice: A -->").markdown, "")
        self.assertEqual(read("<!-- telegram_button {} -->"), Answer(markdown=""))
        self.assertEqual(HEADING, "☑️ **Choose an option:**")

    def test_lone_surrogates_and_controls(self) -> None:
        """What cannot be stored or sent is replaced."""
        found = one('telegram_button {"label":"a\\ud800\\u202eb","prompt":"c\\ud83d\\u0000d"}')
        self.assertEqual(found.buttons, ((button("a\ufffdb", "c\ufffd d"),),))


class Rejected(SynchronousTestCase):
    """A comment that is malformed makes nothing, and is taken out all the same."""

    def test_rejected(self) -> None:
        """Whatever is wrong with it, no button of it is used."""
        long = "x" * (MAX_PROMPT + 1)
        for payload in (
            "",
            " A",
            ":",
            ": ",
            ": A\nB",
            ": [A",
            " {}",
            " []",
            " [[]]",
            " [[{A}],[]]",
            " {A|}",
            " {|A}",
            " {A||danger}",
            " {A|b|red}",
            " {A|b|danger|1}",
            " {A",
            " {A\\n}",
            " {A\\",
            " {A\x07b}",
            " {A\nb}",
            " {A\x85b}",
            " {A} x",
            " {A}{B}",
            " [{A}",
            " [{A}]]",
            " [,{A}]",
            " [{A},]",
            " [{A},,{B}]",
            " [{A}, x]",
            ' {"value":"A",}',
            ' {"value":"A","more":NaN}',
            ' [{A}{"value":"B"]',
            ' [{A}{"value": B}]',
            " [[[{A}]]]",
            ' ["A"]',
            " [1]",
            ' [{"value":"A"},{"value":""}]',
            ' [{"value":"A"},{"value":"  "}]',
            ' [{"value":"A"},{"value":5}]',
            ' [{"value":"A"},{"label":"B"}]',
            ' [{"value":"A"},{"prompt":"B"}]',
            ' [{"value":"A"},{"value":"B","selected_style":"red"}]',
            ' [{"value":"A"},{"value":"B","selected_style":null}]',
            ' [{"value":"A"},{"value":"B","selected_style":["danger"]}]',
            ' [{"value":"A"},[[{"value":"B"}]]]',
            ' [{"value":"A"},[]]',
            ' [{"value":"A"} {"value":NaN}]',
            ' {"value":"A"} {"value":"B"}',
            ' {"value":"\u200b\u2060"}',
            " {\u200b}",
            " label='A' prompt='b'",
            " label=A prompt=b",
            ' label="A"',
            ' prompt="A"',
            ' label="A" prompt=""',
            ' label="A"prompt="b"',
            ' label="A" label="B" prompt="b"',
            ' label="A" prompt="b" selected_style="red"',
            ' label="A" prompt="b" c',
            ' label="A" prompt="b"\nbody',
            ' value="A"\nbody',
            "\nbody",
            " A\nbody",
            f": {long}",
            f' {{"label":"A","prompt":"{long}"}}',
        ):
            found = one(f"telegram_button{payload}")
            self.assertEqual(found, Answer(markdown="Text"), payload[:80])
            self.assertEqual(one(f"telegram_buttons{payload}"), Answer(markdown="Text"))

    def test_voice_rejected(self) -> None:
        """Nor is anything spoken."""
        for payload in (
            "",
            " Hello",
            ":",
            "\n \n",
            ' lang="de"',
            " [{Hello}]",
            " {Hello}",
            ' {"text": 5}',
            ' {"text": "a", "lang": 5}',
            ' [{"text": "a"}]',
            ' text="a"\nb',
            ' text="a" lang="d\x07e"',
        ):
            self.assertEqual(one(f"telegram_voice{payload}"), Answer(markdown="Text"), payload)

    def test_other_words(self) -> None:
        """Other comments are taken out, too, and mean nothing."""
        for word in ("telegram_buttonx: A", "Telegram_button: A", "!!telegram_button: A", "x", ""):
            self.assertEqual(one(word), Answer(markdown="Text"))

    def test_too_long(self) -> None:
        """A comment has a bound."""
        filler = " " * MAX_COMMENT
        self.assertEqual(one(f"telegram_button {{A{filler}}}").buttons, ())
        self.assertNotEqual(one(f"telegram_button {{A{filler[:1000]}}}").buttons, ())


class Scanning(SynchronousTestCase):
    """Where a comment begins and ends."""

    def test_column_zero(self) -> None:
        """Elsewhere it is text: indented, quoted, in a list, behind words."""
        for text in (
            " <!-- telegram_button: A -->",
            "x\n\t<!-- telegram_button: A -->",
            "x\n    <!-- telegram_button: A -->",
            "> <!-- telegram_button: A -->",
            "- <!-- telegram_button: A -->",
            "see <!-- telegram_button: A -->",
            "`<!-- telegram_button: A -->`",
        ):
            self.assertEqual(read(text), Answer(markdown=text))

    def test_rest_of_the_line(self) -> None:
        """What stands behind it is kept, and is no comment."""
        self.assertEqual(read("<!-- telegram_button: A --> and on").markdown, "and on")
        text = "<!-- telegram_button: A --> <!-- telegram_button: B -->\nx"
        self.assertEqual(labels(text), [["A"]])
        self.assertEqual(read(text).markdown, "<!-- telegram_button: B -->\nx")
        self.assertEqual(labels("<!-- telegram_button: A --><!--\n<!-- telegram_button: B -->"),
                         [["A"], ["B"]])  # fmt: skip

    def test_ends(self) -> None:
        """At the first end mark, whatever it stands in; the shortest comments are comments."""
        self.assertEqual(read('<!-- telegram_button {"value":"-->"} -->').markdown, '"} -->')
        self.assertEqual(read("a\n<!-->\nb\n<!--->\nc\n<!---->\nd").markdown, "a\n\nb\n\nc\n\nd")
        self.assertEqual(read("<!-- a <!-- telegram_button: A -->b").markdown, "b")

    def test_unclosed(self) -> None:
        """A comment without an end takes what is behind it."""
        text = "a\n<!-- telegram_button: A -->\nb\n<!-- telegram_button: B\nc"
        self.assertEqual(read(text), Answer(markdown="a\n\nb", buttons=((button("A"),),)))

    def test_fences(self) -> None:
        """Code is shown as it is; what is behind it counts again."""
        comment = "<!-- telegram_button: A -->"
        for opening, inside, closing in (
            ("```", "", "```"),
            ("```html", "", "```  \t"),
            ("   ~~~~ x`y", "~~~\n```", "  ~~~~~"),
            ("````", "```\n", "`````"),
            ("```", "``` x\n", "```\r"),
        ):
            code = f"{opening}\n{inside}{comment}\n\n\n\n<!-- x\n{closing}"
            self.assertEqual(labels(f"{code}\n{comment}"), [["A"]], code)
            self.assertEqual(read(f"{code}\n{comment}").markdown, code.rstrip())
            self.assertEqual(labels(f"{opening}\n{inside}{comment}"), [], opening)
        for prose in ("``` a `b`", "``", "    ```", "x ```", "- ```"):
            self.assertEqual(labels(f"{prose}\n{comment}"), [["A"]], prose)

    def test_blank_lines(self) -> None:
        """Comments leave no gap; code keeps its blank lines."""
        self.assertEqual(read("a\n\n\n\nb\n\n").markdown, "a\n\nb")
        self.assertEqual(read("\n \n  a\n\n<!-- x -->\n\n<!-- y -->\n\nb").markdown, "  a\n\nb")
        code = "```\na\n\n\n\nb\n```"
        self.assertEqual(read(code).markdown, code)

    def test_no_comments(self) -> None:
        """Text of any kind stays as it is."""
        for text in ("a < b", "<!", "x <!-- y", "--> z", "<b>\n<!x>\n<!- a -->", "a  \nb\r\nc"):
            self.assertEqual(read(text), Answer(markdown=text))


class Previews(SynchronousTestCase):
    """L{visible_prefix}."""

    def test_beginnings(self) -> None:
        """What may become a comment is not shown; what cannot is."""
        for end in ("<", "<!", "<!-", "<!--", "<!-- telegram_button: A", "<!-- x --"):
            self.assertEqual(visible_prefix(f"Text\n{end}"), "Text", end)
            self.assertEqual(visible_prefix(end), "")
        for end in ("a <", "a <!-", " <", "<b", "<!d", "```\n<", "```\n<!--", "<!-- x --> <"):
            self.assertEqual(
                visible_prefix(f"Text\n\n{end}"), f"Text\n\n{end}".replace("<!-- x --> ", "")
            )

    def test_whole_comments(self) -> None:
        """They are taken out, and no heading takes their place."""
        self.assertEqual(visible_prefix("a\n\n<!-- telegram_button: A -->\n\nb"), "a\n\nb")
        self.assertEqual(visible_prefix("<!-- telegram_button: A -->"), "")

    @given(st.lists(st.sampled_from(
        ["a", "\n", "\n\n", "<!--", "-->", "```", "~~~~", "<", "telegram_button: A", " "]
    ), max_size=25))  # fmt: skip
    def test_nothing_is_taken_back(self, words: list[str]) -> None:
        """Each frame begins like the whole; the last frame is all there is."""
        text = "".join(words)
        whole = visible_prefix(f"{text}\nend")
        for end in range(len(text)):
            self.assertTrue(whole.startswith(visible_prefix(text[:end])), (text, end))
        shown = read(text).markdown
        if shown != HEADING and not shown.endswith("<"):
            self.assertEqual(visible_prefix(text), shown)


class Finished(SynchronousTestCase):
    """L{finished}."""

    def test_open(self) -> None:
        """What is open is closed, or goes."""
        self.assertEqual(finished("a\n<!-- telegram_button: A"), "a\n")
        self.assertEqual(finished("a\n~~~~ py\n<!-- b"), "a\n~~~~ py\n<!-- b\n~~~~")
        for text in ("", "a", "<!-- a -->", "```\na\n```", " <!-- a"):
            self.assertEqual(finished(text), text)

    @given(st.lists(st.sampled_from(["a", "\n", "<!--", "-->", "```", "~~~~", "<", " ", "`"])))
    def test_what_is_put_behind(self, words: list[str]) -> None:
        """It is read as if it stood alone."""
        behind = "Aborted.\n<!-- telegram_button: A -->"
        whole = read("".join([finished("".join(words)), "\n\n", behind]))
        self.assertTrue(whole.markdown.endswith("Aborted."), whole)
        self.assertEqual(whole.buttons, ((button("A"),),))


ATOMS = st.text(
    st.one_of(st.sampled_from('ab|}\\{[]",:é😀 '), st.characters(codec="utf-8")), max_size=20
).map(lambda text: read_back(text))


def read_back(text: str) -> str:
    """A text that a label keeps as it is."""
    printable = "".join(c for c in text if c.isprintable())
    return " ".join(printable.split()).replace("-->", "") + "x"


BUTTONS = st.builds(
    Button,
    label=ATOMS,
    prompt=ATOMS,
    style=st.sampled_from([None, "primary", "success", "danger"]),
)
ROWS = st.lists(st.lists(BUTTONS, min_size=1, max_size=4), min_size=1, max_size=4)


def as_json(found: Button) -> str:
    """A button as a JSON object, in which no end mark can stand."""
    fields = {"label": found.label, "prompt": found.prompt, "selected_style": found.style}
    return json.dumps({k: v for k, v in fields.items() if v}).replace(">", "\\u003e")


def as_cell(found: Button) -> str:
    """A button as a positional cell."""
    atoms = [found.label, found.prompt, *([found.style] if found.style else [])]
    return "{" + "|".join(re.sub(r"([|}\\])", r"\\\1", atom) for atom in atoms) + "}"


class Encoded(SynchronousTestCase):
    """What is written in a form is read back."""

    @given(ROWS, st.randoms(use_true_random=False))
    def test_matrices(self, rows: list[list[Button]], random: Any) -> None:
        """In any mixture of JSON, cells and commas."""
        lines = []
        for row in rows:
            cells = [random.choice([as_json, as_cell])(each) for each in row]
            joined = random.choice(["", ",", " ,\n"]).join(cells)
            alone = len(cells) == 1 and random.random() < 0.5
            lines.append(joined if alone else f"[{joined}]")
        text = f"<!-- telegram_buttons [{random.choice(['', ',', chr(10)]).join(lines)}] -->"
        if text.index("-->") == len(text) - 3:
            self.assertEqual([list(row) for row in read(text).buttons], rows, text)

    @given(BUTTONS)
    def test_attributes(self, found: Button) -> None:
        """As attributes, and with a body."""
        style = f' selected_style="{found.style}"' if found.style else ""
        if '"' in found.label + found.prompt:
            return
        for text in (
            f'<!-- telegram_button label="{found.label}" prompt="{found.prompt}"{style} -->',
            f'<!-- telegram_button label="{found.label}"{style}\n{found.prompt}\n-->',
        ):
            self.assertEqual(read(text).buttons, ((found,),), text)

    @given(st.text(st.one_of(st.sampled_from("\n<!->` ~"), st.characters()), max_size=200))
    def test_any_text(self, text: str) -> None:
        """Never fails; without a comment it is unchanged but for blank lines."""
        found = read(text)
        visible_prefix(text)
        if "<!--" not in text and "`" not in text and "~" not in text:
            expected = re.sub(r"\n{3,}", "\n\n", text)
            expected = re.sub(r"\A(?:[^\S\n]*\n)+", "", expected).rstrip()
            self.assertEqual(found, Answer(markdown=expected))


_WS, _SIGN = r"[ \t\r\n]*", r"(?:[^|}\\ \t\r\n]|\\[|}\\])"
_ATOM = rf"{_WS}{_SIGN}(?:(?:{_SIGN}| )*{_SIGN})?{_WS}"
_CELL = rf"\{{{_ATOM}(?:\|{_ATOM})?\}}"
_BETWEEN = rf"{_WS},?{_WS}"
_ROW = rf"\[{_WS}{_CELL}(?:{_BETWEEN}{_CELL})*{_WS}\]"
_ELEMENT = rf"(?:{_CELL}|{_ROW})"
LITERAL = re.compile(rf"{_CELL}|\[{_WS}{_ELEMENT}(?:{_BETWEEN}{_ELEMENT})*{_WS}\]")
"""The grammar as one expression, for cells of one or two atoms without names of JSON."""


class Grammar(SynchronousTestCase):
    """Payloads of all kinds against the grammar itself."""

    @settings(max_examples=400)
    @given(
        st.lists(
            st.sampled_from([*'{}[]|\\, \n"a', "{a}", "{a|b}", "{a}", "[{a}", "[[", "]", "]]"]),
            max_size=10,
        )
    )
    def test_accepted(self, words: list[str]) -> None:
        """Exactly what it has is accepted."""
        payload = "".join(words).strip()
        if payload[:1] in ("{", "["):
            accepted = bool(read(f"<!-- telegram_buttons {payload} -->").buttons)
            self.assertEqual(accepted, LITERAL.fullmatch(payload) is not None, payload)


class Hostile(SynchronousTestCase):
    """A megabyte of anything is read in linear time and without deep stacks."""

    def steps(self, payload: str) -> int:
        """How many characters of a payload were looked at as JSON."""
        steps = 0

        def decode(text: str, place: int) -> tuple[Any, int]:
            nonlocal steps
            try:
                found, end = json.JSONDecoder().raw_decode(text, place)
            except RecursionError:
                steps += len(text) - place
                raise
            except json.JSONDecodeError as error:
                unterminated = error.msg.startswith("Unterminated")
                steps += (len(text) if unterminated else error.pos) - place
                raise
            steps += end - place
            return found, end

        literal = Literal(payload, decode)
        try:
            if literal.whole_json() is None:
                literal.rows()
        except Malformed:
            pass
        return steps

    def test_steps(self) -> None:
        """A payload that looks like JSON everywhere is looked at as such twice, not again and again."""
        for unit in (
            '{"a":[{"b":0},',
            '{"a":{"b":0},',
            '{"a',
            '{"":"}{","":"}',
            '{"a}',
            '{"a":"b|c"',
            "{",
            "[",
            '[{"a":',
            '{"a":1}',
            '{"a":1},',
            '{"\\"}',
            '{"a" ',
        ):
            for size in (1000, 4000, 16000):
                payload = "[" + unit * (size // len(unit))
                self.assertLessEqual(self.steps(payload), 3 * size + 100, (unit, size))

    def test_megabytes(self) -> None:
        """Nothing fails, within and without comments."""
        units = ("{", "[", "<!--", "<!--\n", "-->", "```\n", "`", "~~~\n<!-- x\n", "\n", " ", "{a|",
                 '{"a":', '{"a', "\\", "<!-- telegram_button: a -->\n", '[{"a":[{"b":0},', "<!-->\n",
                 'a="b" ', "a", " <", "{a}")  # fmt: skip
        for unit in units:
            text = unit * (1_000_000 // len(unit))
            payload = text[: MAX_COMMENT - 100]
            read(text)
            visible_prefix(text)
            for comment in (f"telegram_button [{payload}]", f"telegram_voice {payload}\n"):
                one(comment)

    def test_deep(self) -> None:
        """Nesting without end is malformed."""
        for depth in (10, 1000, 100_000):
            for payload in ("[" * depth + "]" * depth, '{"value":' * depth + "1" + "}" * depth,
                            '[{"value":"A","more":' + "[" * depth + "]" * depth + "}{B}]"):  # fmt: skip
                self.assertIn(len(labels(f"<!-- telegram_buttons {payload} -->")), (0, 2))

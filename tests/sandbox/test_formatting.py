"""Texts: limits, parse modes, entities, and the words of refusals."""

from __future__ import annotations

import html
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.sandbox.formatting import rich_text
from pitelegram.sandbox.htmltext import MarkupError, parse_html
from pitelegram.sandbox.markdowntext import parse_markdown, parse_markdown_v2
from pitelegram.sandbox.richtext import RichText, trimmed, utf16_length, utf16_slice
from tests.sandbox.helpers import BotTestCase


def spans(rich: RichText) -> list[tuple[str, str]]:
    """Return each entity's kind and text."""
    return [(e["type"], utf16_slice(rich.text, e["offset"], e["length"])) for e in rich.entities]


class LimitTests(BotTestCase):
    """How long and how empty a text may be."""

    def test_length(self) -> None:
        """4095 and 4096 characters pass, 4097 do not."""
        for length in (4095, 4096):
            self.assertEqual(len(self.send("x" * length)["text"]), length)
        self.assert_refused(
            "message is too long", "sendMessage", chat_id=self.owner, text="x" * 4097
        )

    def test_astral_characters_count_once(self) -> None:
        """4096 characters outside the BMP are 8192 UTF-16 units and still pass."""
        self.assertEqual(self.send("😀" * 4096)["text"], "😀" * 4096)
        self.assert_refused(
            "message is too long", "sendMessage", chat_id=self.owner, text="😀" * 4097
        )

    def test_length_counts_after_parsing(self) -> None:
        """Tags do not count."""
        text = "<b>" + "x" * 4096 + "</b>"
        self.assertEqual(len(self.send(text, parse_mode="HTML")["text"]), 4096)

    def test_raw_bytes_are_limited(self) -> None:
        """Beyond 32768 bytes before parsing the text is refused as such."""
        self.assert_refused("text is too long", "sendMessage", chat_id=self.owner, text="x" * 32769)

    def test_empty(self) -> None:
        """Missing, empty and blank texts have their own words."""
        self.assert_refused("message text is empty", "sendMessage", chat_id=self.owner)
        self.assert_refused("message text is empty", "sendMessage", chat_id=self.owner, text="")
        for text, mode in ((" \n ", ""), ("<b> </b>", "HTML"), ("\r", "")):
            self.assert_refused(
                "text must be non-empty",
                "sendMessage",
                chat_id=self.owner,
                text=text,
                parse_mode=mode,
            )

    def test_the_text_is_cleaned(self) -> None:
        """Blanks around go, carriage returns go, control characters become spaces."""
        self.assertEqual(self.send(" \n a\r\nb\x07c \n")["text"], "a\nb c")

    def test_refusal_changes_nothing(self) -> None:
        """A refused send leaves no message and uses no id."""
        self.refused("sendMessage", chat_id=self.owner, text="x" * 5000)
        self.assertEqual(self.send()["message_id"], 1)

    def test_unknown_mode(self) -> None:
        """A mode that does not exist."""
        self.assert_refused(
            "unsupported parse_mode", "sendMessage", chat_id=self.owner, text="x", parse_mode="rtf"
        )

    def test_given_entities_never_fail_on_content(self) -> None:
        """Entities beyond the text are clipped or dropped."""
        entities = [
            {"type": "bold", "offset": 0, "length": 99},
            {"type": "italic", "offset": 50, "length": 1},
        ]
        sent = self.send("<b>", entities=entities)
        self.assertEqual(sent["text"], "<b>")
        self.assertEqual(sent["entities"], [{"type": "bold", "offset": 0, "length": 3}])

    def test_at_most_a_hundred_entities(self) -> None:
        """More are cut off."""
        sent = self.send("<b>x</b> " * 150, parse_mode="HTML")
        self.assertEqual(len(sent["entities"]), 100)


class HtmlTests(SynchronousTestCase):
    """C{parse_mode=HTML}."""

    def test_tags(self) -> None:
        """Every documented tag gives its entity."""
        rich = parse_html(
            "<b>a</b><strong>b</strong><i>c</i><em>d</em><u>e</u><ins>f</ins><s>g</s><strike>h"
            "</strike><del>i</del><tg-spoiler>j</tg-spoiler><span class='tg-spoiler'>k</span>"
            "<code>l</code><pre>m</pre><blockquote>n</blockquote><blockquote expandable>o"
            '</blockquote><tg-emoji emoji-id="5">p</tg-emoji><a href="https://x.org/">q</a>'
        )
        kinds = [kind for kind, _ in spans(rich)]
        self.assertEqual(rich.text, "abcdefghijklmnopq")
        self.assertEqual(
            kinds,
            ["bold"] * 2 + ["italic"] * 2 + ["underline"] * 2 + ["strikethrough"] * 3
            + ["spoiler"] * 2 + ["code", "pre", "blockquote", "expandable_blockquote"]
            + ["custom_emoji", "text_link"],
        )  # fmt: skip

    def test_offsets_are_utf16(self) -> None:
        """A character outside the BMP counts twice."""
        (entity,) = parse_html("😀<b>x😀</b>").entities
        self.assertEqual((entity["offset"], entity["length"]), (2, 3))

    def test_code_language_and_no_styles_inside(self) -> None:
        """The language comes from the inner tag; code holds no other styles."""
        rich = parse_html('<pre><code class="language-python">a <b>b</b></code></pre>')
        self.assertEqual(
            list(rich.entities),
            [{"type": "pre", "offset": 0, "length": 3, "language": "python"}],
        )

    def test_named_entities(self) -> None:
        """Four names and all numbers; anything else stays."""
        self.assertEqual(
            parse_html("&lt;&gt;&amp;&quot;&#65;&#x42;&nbsp;&bogus;").text, '<>&"AB&nbsp;&bogus;'
        )

    def test_links(self) -> None:
        """Mentions by id, addresses without a dot dropped, missing address taken from the text."""
        rich = parse_html(
            "<a href='tg://user?id=7'>u</a><a href='http://localhost'>v</a><a>x.org</a>"
        )
        self.assertEqual([e["type"] for e in rich.entities], ["text_mention", "text_link"])
        self.assertEqual(rich.entities[0]["user"]["id"], 7)
        self.assertEqual(rich.entities[1]["url"], "http://x.org/")

    def test_errors(self) -> None:
        """The service's own words, offsets in bytes."""
        for text, problem in (
            ("ä<x>", 'Unsupported start tag "x" at byte offset 2'),
            ("<b>a", 'Can\'t find end tag corresponding to start tag "b"'),
            (
                "<b><i>a</b>",
                'Unmatched end tag at byte offset 7, expected "</i>", found "</b>"',
            ),
            ("a</b>", "Unexpected end tag at byte offset 1"),
            ("a <b", "Unclosed start tag at byte offset 2"),
            ("<b>a</b", "Unclosed end tag at byte offset 4"),
            (
                "<span>a</span>",
                'Tag "span" must have class "tg-spoiler" at byte offset 0',
            ),
            ("1 < 2 > 1", 'Unsupported start tag "" at byte offset 2'),
        ):
            error = self.assertRaises(MarkupError, parse_html, text)
            self.assertEqual(str(error), problem)

    @settings(deadline=None, max_examples=200)
    @given(st.text(max_size=60))
    def test_escaped_text_comes_back(self, text: str) -> None:
        """Escaping any text and parsing it gives the same text and no entity."""
        rich = parse_html(html.escape(text))
        self.assertEqual(rich, RichText(text.replace("'", "'")))

    @settings(deadline=None, max_examples=300)
    @given(st.text(alphabet="<>/abi&;=\"' 😀ä", max_size=40))
    def test_any_input_parses_or_is_refused(self, text: str) -> None:
        """Garbage is refused as markup, never with another error; entities lie in the text."""
        try:
            rich = parse_html(text)
        except MarkupError:
            return
        end = utf16_length(rich.text)
        self.assertTrue(all(e["offset"] + e["length"] <= end for e in rich.entities))


class MarkdownTests(SynchronousTestCase):
    """C{parse_mode=MarkdownV2} and C{Markdown}."""

    def test_marks(self) -> None:
        """Every mark gives its entity."""
        rich = parse_markdown_v2(
            "*a* _b_ __c__ ~d~ ||e|| `f` [g](https://x.org) ![h](tg://emoji?id=5)"
        )
        self.assertEqual(
            spans(rich),
            [
                ("bold", "a"),
                ("italic", "b"),
                ("underline", "c"),
                ("strikethrough", "d"),
                ("spoiler", "e"),
                ("code", "f"),
                ("text_link", "g"),
                ("custom_emoji", "h"),
            ],
        )

    def test_code_blocks(self) -> None:
        """A language, none, and reserved characters inside."""
        (first, second) = parse_markdown_v2("```py\na.b!\n```\n```\nx\n```").entities
        self.assertEqual((first["type"], first["language"]), ("pre", "py"))
        self.assertNotIn("language", second)

    def test_quotes(self) -> None:
        """Lines that begin with > form one quote; two bars at the end make it expandable."""
        rich = parse_markdown_v2(">a\n>b\nc\n**>d\n>e||")
        self.assertEqual(
            [(kind, text.strip()) for kind, text in spans(rich)],
            [("blockquote", "a\nb"), ("expandable_blockquote", "d\ne")],
        )

    def test_nesting(self) -> None:
        """Styles nest."""
        rich = parse_markdown_v2("*a _b_ c*")
        self.assertEqual(spans(rich), [("bold", "a b c"), ("italic", "b")])

    def test_errors(self) -> None:
        """The service's own words."""
        for text, problem in (
            ("a.b", "Character '.' is reserved and must be escaped with the preceding '\\'"),
            ("a > b", "Character '>' is reserved and must be escaped with the preceding '\\'"),
            ("ä*a", "Can't find end of Bold entity at byte offset 2"),
            ("_a", "Can't find end of Italic entity at byte offset 0"),
            ("__a", "Can't find end of Underline entity at byte offset 0"),
            ("```a", "Can't find end of Pre entity at byte offset 0"),
            ("```a\nb", "Can't find end of PreCode entity at byte offset 0"),
            ("[a](b", "Can't find end of a URL at byte offset 4"),
            ("[a", "Can't find end of TextUrl entity at byte offset 0"),
        ):
            error = self.assertRaises(MarkupError, parse_markdown_v2, text)
            self.assertEqual(str(error), problem)

    @settings(deadline=None, max_examples=300)
    @given(st.text(max_size=60))
    def test_escaped_text_comes_back(self, text: str) -> None:
        """Escaping everything reserved gives the text back."""
        escaped = re.sub(r"([_*\[\]()~`>#+\-=|{}.!\\])", r"\\\1", text)
        self.assertEqual(parse_markdown_v2(escaped).text, text)

    @settings(deadline=None, max_examples=300)
    @given(st.text(alphabet="*_~|`[]()!>\n\\a. ", max_size=40))
    def test_any_input_parses_or_is_refused(self, text: str) -> None:
        """Garbage is refused as markup, never with another error."""
        for parser in (parse_markdown_v2, parse_markdown):
            try:
                rich = parser(text)
            except MarkupError:
                continue
            end = utf16_length(rich.text)
            self.assertTrue(all(e["offset"] + e["length"] <= end for e in rich.entities))

    def test_legacy(self) -> None:
        """Bold, italic, code, links; nothing nests; an open one is refused."""
        rich = parse_markdown("*a* _b_ `c` [d](x.org) \\_")
        self.assertEqual([kind for kind, _ in spans(rich)], ["bold", "italic", "code", "text_link"])
        self.assertEqual(rich.text, "a b c d _")
        error = self.assertRaises(MarkupError, parse_markdown, "a *b")
        self.assertEqual(str(error), "Can't find end of the entity starting at byte offset 2")


class TrimmingTests(SynchronousTestCase):
    """Entities move with the text."""

    def test_entities_move(self) -> None:
        """Blanks cut at the front shift entities, at the end shorten them."""
        rich = trimmed(RichText("  a b  ", ({"type": "bold", "offset": 1, "length": 6},)))
        self.assertEqual(rich, RichText("a b", ({"type": "bold", "offset": 0, "length": 3},)))

    def test_automatic_entities(self) -> None:
        """Links, mentions, commands and hashtags are found in plain text."""
        rich = rich_text("/start@some_bot see https://x.org/a?b, @olivia #tag a/b", "", None)
        self.assertEqual(
            spans(rich),
            [
                ("bot_command", "/start@some_bot"),
                ("url", "https://x.org/a?b"),
                ("mention", "@olivia"),
                ("hashtag", "#tag"),
            ],
        )

"""Every document of the corpus comes out whole, in calls that Telegram takes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.rendering.records import Rendered, RenderOptions
from pitelegram.bridge.rendering.render import render
from pitelegram.bridge.rendering.source import regular, safe
from pitelegram.sandbox.blocks import blocks_of, visible_text
from pitelegram.sandbox.errors import ApiError
from tests.bridge.rendering.checks import check_message, check_rich, letters, shown, words
from tests.bridge.rendering.documents import exact, reduced

RICH = RenderOptions(file_after=0)
HTML = RenderOptions(rendering="html", file_after=0)

_LOST = {
    "reference-links": {"g", "faq", "this", "guide"},
    "link-title": {"a", "title", "t"},
    "badge": {"https", "example", "org", "badge", "svg"},
    "numbers-all-one": set(),
    "entities": {"lt", "gt", "amp", "copy", "nbsp", "39"},
    "entity-broken": {"99999999"},
}
"""Words that are not content: titles, labels of references, the picture in a link, entities."""


class Corpus(SynchronousTestCase):
    """L{render} of each document, in each form."""

    def test_the_corpus_is_large(self) -> None:
        """There are at least 150 documents, the broken ones among them."""
        self.assertGreaterEqual(len(exact()) + len(reduced()), 150)

    def _each(self, rendered: Rendered) -> None:
        for step in rendered.steps:
            for call in (*step.entities, *step.plain):
                check_message(call)
            for call in step.plain:
                self.assertNotIn("entities", call["params"])
            for call in step.rich:
                check_rich(call)
            self.assertTrue(step.entities and step.plain)

    def _all(self, problems: list[str]) -> None:
        self.assertEqual([], problems, "\n".join(problems))

    def test_calls_are_good(self) -> None:
        """Each call passes the description of the Bot API and the local Telegram, unchanged."""
        problems = []
        for name, markdown in {**exact(), **reduced()}.items():
            for options in (RICH, HTML):
                try:
                    self._each(render(markdown, options))
                except AssertionError as error:
                    problems.append(f"{name} ({options.rendering}): {error}"[:300])
        self._all(problems)

    def test_text_is_the_source(self) -> None:
        """With entities and plain: every letter of the source, in order, and no other."""
        problems = []
        for name, markdown in exact().items():
            source = letters(safe(markdown))
            for options in (RICH, HTML):
                rendered = render(markdown, options)
                for form in ("entities", "plain"):
                    calls = rendered.calls(form)
                    if form == "plain":
                        source_now = letters(_without_languages(markdown))
                        text = letters(shown(calls))
                    else:
                        source_now, text = source, letters(shown(calls, markdown))
                    if text != source_now:
                        problems.append(f"{name} {form}: {_difference(source_now, text)}")
        self._all(problems)

    def test_rich_text_is_the_source(self) -> None:
        """The chunks of Markdown hold every letter of the source, in order."""
        problems = []
        for name, markdown in exact().items():
            chunks = [
                check_rich(call) for step in render(markdown, RICH).steps for call in step.rich
            ]
            if not chunks:
                continue
            joined = "\n".join(chunks).replace("&lt;", "<")
            if "```math" not in markdown:
                joined = joined.replace("```math\n", "```\n")
            if len(chunks) > 1 and "```python" in markdown:
                joined = joined.replace("\n```\n```python\n", "\n")
            if letters(joined) != letters(safe(markdown)):
                problems.append(f"{name}: {_difference(letters(safe(markdown)), letters(joined))}")
        self._all(problems)

    def test_no_word_is_lost(self) -> None:
        """Titles, references, wide tables: each word of the source is shown."""
        problems = []
        for name, markdown in reduced().items():
            wanted = words(markdown) - _LOST.get(name, set())
            for options in (RICH, HTML):
                rendered = render(markdown, options)
                for form in ("entities", "plain"):
                    missing = wanted - words(shown(rendered.calls(form), markdown)) - {"br"}
                    if missing:
                        problems.append(f"{name} {form}: {sorted(missing)[:10]}")
        self._all(problems)

    def test_steps_of_rich_messages_show_the_same(self) -> None:
        """A step's fall-back shows what its rich message would have shown, no more, no less."""
        problems = []
        for name, markdown in exact().items():
            for number, step in enumerate(render(markdown, RICH).steps):
                if not step.rich:
                    continue
                rich = step.rich[0]["params"]["rich_message"]["markdown"]
                source = rich.replace("&lt;", "<")
                if letters(shown(step.entities, regular(rich))) != letters(source):
                    text = letters(shown(step.entities, rich))
                    problems.append(f"{name} {number}: {_difference(letters(source), text)}")
        self._all(problems)

    def test_the_sandbox_takes_rich_messages(self) -> None:
        """It finds blocks in each, within the limits, and all words of the text with entities in them."""
        problems = []
        refused = set()
        for name, markdown in {**exact(), **reduced()}.items():
            for step in render(markdown, RICH).steps:
                for call in step.rich:
                    source = call["params"]["rich_message"]["markdown"]
                    try:
                        text = visible_text(blocks_of(source))
                    except ApiError:
                        refused.add(name)
                        continue
                    wanted = words(source) & words(
                        " ".join(c["params"]["text"] for c in step.entities)
                    )
                    missing = wanted - words(text) - words(" ".join(_languages(source)))
                    missing = {
                        word for word in missing if not word.isdigit()
                    }  # items are counted anew
                    if missing:
                        problems.append(f"{name}: {sorted(missing)[:10]}")
        self._all(problems)
        # Nothing but an address: the form with entities, which comes next, shows it.
        self.assertEqual(refused, {"link-without-text"})


def _languages(source: str) -> list[str]:
    return [
        line.strip("`~ >") for line in source.split("\n") if line.strip(" >")[:3] in ("```", "~~~")
    ]


def _without_languages(markdown: str) -> str:
    """Return the source without the words behind its fences: plain text does not show them."""
    lines = []
    opened = ""
    for line in safe(markdown).split("\n"):
        bare = line.lstrip(" >-1234567890.\t")
        mark = bare[: len(bare) - len(bare.lstrip("`~"))]
        if len(mark) >= 3 and not opened and "`" not in bare[len(mark) :]:
            opened, line = mark, mark
        elif opened and bare.startswith(opened) and not bare.strip("`~ "):
            opened = ""
        lines.append(line)
    return "\n".join(lines)


def _difference(wanted: str, found: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(wanted, found, strict=False)) if a != b), 0)
    return f"at {at}: {wanted[max(0, at - 10) : at + 30]!r} became {found[max(0, at - 10) : at + 30]!r}"

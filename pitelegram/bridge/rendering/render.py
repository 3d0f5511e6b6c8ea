"""L{render}: an answer as Bot API calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pitelegram.bridge.rendering.converting import Converter, Document
from pitelegram.bridge.rendering.messages import entity_calls, plain_calls, rich_call, visible
from pitelegram.bridge.rendering.parsing import Events, parse
from pitelegram.bridge.rendering.records import (
    AttachedText,
    Call,
    Rendered,
    RenderOptions,
    Span,
    Step,
)
from pitelegram.bridge.rendering.richsource import Chunk, chunks
from pitelegram.bridge.rendering.source import regular, safe, too_deep
from pitelegram.bridge.rendering.splitting import LIMIT, Measure, Part, split

FILE_NAME = "answer.md"

CONTINUED = "✂️ The whole answer ({characters:,} characters) is in the file."


def render(markdown: str, options: RenderOptions = RenderOptions()) -> Rendered:  # noqa: B008
    """Return the calls that show an answer.

    Never fails on content.  Hidden action comments must have been taken out before.

    @param markdown: any text; lone surrogates, control characters and whatever else are allowed.
    """
    source = safe(markdown)
    if not visible(source):
        return Rendered(steps=())
    document, events, source = _converted(source, options)
    measure = Measure(document.text)
    if options.file_after and measure.units(0, len(document.text)) > options.file_after:
        return _shortened(safe(markdown), document, measure)
    steps: tuple[Step, ...] = ()
    if options.rendering == "rich" and events is not None:
        steps = _rich_steps(source, events, document, measure)
    return Rendered(steps=steps or _entity_steps(document, measure))


def _converted(source: str, options: RenderOptions) -> tuple[Document, Events | None, str]:
    """Parse and convert; what is nested beyond reason stays as it was written."""
    if not too_deep(source):
        better = regular(source)
        events = parse(better)
        if events is not None:
            document = Converter(better.encode("utf-8"), options.columns).run(events)
            if visible(document.text):
                return document, events, better
    return Document(source, (), {}), None, source


def _rich_steps(
    source: str, events: Events, document: Document, measure: Measure
) -> tuple[Step, ...]:
    found = chunks(source, events)
    starts = [0, *_places(source, document, found[1:])]
    if not found or -1 in starts or starts != sorted(starts):
        return ()
    steps = []
    for chunk, start, end in zip(found, starts, [*starts[1:], len(document.text)], strict=True):
        if visible(chunk.markdown) and visible(document.text[start:end]):
            steps.append(_step(document, measure, start, end, chunk.markdown))
    return tuple(steps)


def _places(source: str, document: Document, found: Sequence[Chunk]) -> Iterator[int]:
    """Return where in the text chunks begin; -1 where that is not known."""
    raw = source.encode("utf-8") if found else b""
    for chunk in found:
        start = document.marks.get(chunk.base, -1)
        verbatim = raw[chunk.base : chunk.mark].decode("utf-8", "replace")
        yield start + len(verbatim) if start >= 0 else -1


def _step(document: Document, measure: Measure, start: int, end: int, markdown: str) -> Step:
    spans = _within(document.spans, start, end)
    parts = split(document.text, spans, bounds=(start, end), measure=measure)
    shown = [part for part in parts if visible(part.text)]
    return Step(
        rich=(rich_call(markdown),), entities=tuple(entity_calls(shown)), plains=_plains(shown)
    )


def _plains(parts: Sequence[Part]) -> tuple[tuple[Call, ...], ...]:
    return tuple(tuple(plain_calls(part.text, part.spans)) for part in parts)


def _within(spans: tuple[Span, ...], start: int, end: int) -> list[Span]:
    return [span for span in spans if span.start < end and span.end > start]


def _entity_steps(document: Document, measure: Measure) -> tuple[Step, ...]:
    steps = []
    for part in split(document.text, document.spans, measure=measure):
        calls = tuple(entity_calls([part]))
        if calls:
            steps.append(Step(rich=(), entities=calls, plains=_plains([part])))
    return tuple(steps)


def _shortened(source: str, document: Document, measure: Measure) -> Rendered:
    """Return the beginning of a long answer as one message, and all of it as a file."""
    note = "\n\n" + CONTINUED.format(characters=len(source))
    head = split(document.text[: LIMIT + 1], _clipped(document.spans), LIMIT - len(note) - 8)[0]
    text = head.text + note
    whole = Document(text, head.spans, {})
    return Rendered(
        steps=_entity_steps(whole, Measure(text)),
        file=AttachedText(name=FILE_NAME, mime_type="text/markdown", text=source),
    )


def _clipped(spans: tuple[Span, ...]) -> list[Span]:
    return [span._replace(end=min(span.end, LIMIT + 1)) for span in spans if span.start <= LIMIT]

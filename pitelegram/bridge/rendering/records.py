"""What rendering is asked and what it answers."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import attrs

Call = dict[str, Any]
"""C{{"method", "params"}} without C{chat_id} and C{message_thread_id}."""

Form = Literal["rich", "entities", "plain"]

FORMS: tuple[Form, ...] = ("rich", "entities", "plain")
"""In the order of the fall-back."""


class Span(NamedTuple):
    """A formatted stretch of text, in code points.

    @ivar kind: a C{MessageEntity} type.
    @ivar extra: the C{url} of a C{text_link}, the C{language} of a C{pre}, else empty.
    """

    start: int
    end: int
    kind: str
    extra: str = ""


class Range(NamedTuple):
    """A piece of the source (bytes of UTF-8) and what became of it (code points of the text)."""

    start: int
    end: int
    text_start: int
    text_end: int


@attrs.frozen(kw_only=True)
class RenderOptions:
    """The operator's wishes.

    @ivar rendering: C{rich} begins with rich messages, C{html} with entities
        (C{assistant.rendering}).
    @ivar file_after: UTF-16 units of shown text; a longer answer is sent as its beginning and a
        file.  0: never.
    @ivar columns: how many monospaced columns a phone shows; wider tables become lists.
    """

    rendering: Literal["rich", "html"] = "rich"
    file_after: int = 20_000
    columns: int = 40


@attrs.frozen(kw_only=True)
class Step:
    """One part of an answer, in all forms: each form's calls show the same content.

    @ivar rich: empty where it cannot be shown so.
    @ivar plains: for each call of C{entities}, the calls that show the same without entities.
    """

    rich: tuple[Call, ...]
    entities: tuple[Call, ...]
    plains: tuple[tuple[Call, ...], ...]

    @property
    def plain(self) -> tuple[Call, ...]:
        """The whole part without entities."""
        return tuple(call for calls in self.plains for call in calls)

    def attempts(self) -> tuple[tuple[Call, ...], ...]:
        """Return the forms to try, in order, each once: the next one when one was refused."""
        return tuple(calls for calls in (self.rich, self.entities, self.plain) if calls)


@attrs.frozen(kw_only=True)
class AttachedText:
    """A text to be sent as a document after the calls.

    @ivar text: the whole Markdown, without lone surrogates and control characters.
    """

    name: str
    mime_type: str
    text: str


@attrs.frozen(kw_only=True)
class Rendered:
    """An answer ready to be sent: the steps in order, then the file.

    @ivar steps: none for an answer without anything visible.
    """

    steps: tuple[Step, ...]
    file: AttachedText | None = None

    def calls(self, form: Form) -> list[Call]:
        """Return the calls of one form for the whole answer.

        A step that has no rich form gives its calls with entities.
        """
        return [call for step in self.steps for call in (getattr(step, form) or step.entities)]

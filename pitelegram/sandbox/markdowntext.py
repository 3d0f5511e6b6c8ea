"""C{parse_mode=MarkdownV2} and the legacy C{Markdown}."""

from __future__ import annotations

import re

import attrs

from pitelegram.sandbox.htmltext import MarkupError, link
from pitelegram.sandbox.richtext import RichText, TextBuilder

_RESERVED = "_*[]()~`>#+-=|{}.!"
_KINDS = {
    "Bold": ("*", "bold"),
    "Italic": ("_", "italic"),
    "Underline": ("__", "underline"),
    "Strikethrough": ("~", "strikethrough"),
    "Spoiler": ("||", "spoiler"),
    "Code": ("`", "code"),
    "Pre": ("```", "pre"),
    "PreCode": ("```", "pre"),
    "TextUrl": ("]", "text_link"),
    "CustomEmoji": ("]", "custom_emoji"),
}
_OPENERS = (
    ("```", "Pre"),
    ("||", "Spoiler"),
    ("__", "Underline"),
    ("![", "CustomEmoji"),
    ("*", "Bold"),
    ("_", "Italic"),
    ("~", "Strikethrough"),
    ("`", "Code"),
    ("[", "TextUrl"),
)


@attrs.define
class _Open:
    kind: str
    start: int
    byte: int
    language: str = ""


def parse_markdown_v2(text: str) -> RichText:
    """Return the text without its marks.

    @raise MarkupError: as the Bot API words it; offsets count bytes of UTF-8.
    """
    return _Parser(text).run()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._out = TextBuilder()
        self._open: list[_Open] = []
        self._quote: int | None = None

    def run(self) -> RichText:
        while self._at < len(self._text):
            if not self._in_code() and (self._at == 0 or self._text[self._at - 1] == "\n"):
                self._line_start()
            if self._at < len(self._text):
                self._step()
        if self._open:
            last = self._open[-1]
            raise MarkupError(f"Can't find end of {last.kind} entity at byte offset {last.byte}")
        self._end_quote("blockquote")
        return self._out.result()

    def _in_code(self) -> bool:
        return bool(self._open) and self._open[-1].kind in ("Code", "Pre", "PreCode")

    def _byte(self, position: int) -> int:
        return len(self._text[:position].encode("utf-8", "replace"))

    def _line_start(self) -> None:
        quoted = next((m for m in ("**>", ">") if self._text.startswith(m, self._at)), None)
        if quoted == "**>":
            self._end_quote("blockquote")
        if quoted is None:
            self._end_quote("blockquote")
            return
        self._at += len(quoted)
        if self._quote is None:
            self._quote = self._out.offset

    def _end_quote(self, kind: str) -> None:
        if self._quote is not None:
            start, self._quote = self._quote, None
            self._out.entity(kind, start)

    def _step(self) -> None:
        text, at = self._text, self._at
        character = text[at]
        if character == "\\" and at + 1 < len(text) and 1 <= ord(text[at + 1]) <= 126:
            self._out.add(text[at + 1])
            self._at += 2
        elif self._closes():
            self._close(self._open.pop())
        elif character not in ("`" if self._in_code() else _RESERVED):
            self._out.add(character)
            self._at += 1
        elif self._quote is not None and re.compile(r"\|\|(\n|$)").match(text, at):
            self._end_quote("expandable_blockquote")
            self._at += 2
        else:
            self._begin()

    def _closes(self) -> bool:
        if not self._open:
            return False
        kind = self._open[-1].kind
        mark = _KINDS[kind][0]
        if not self._text.startswith(mark, self._at):
            return False
        return not (kind == "Italic" and self._text.startswith("__", self._at))

    def _begin(self) -> None:
        text, at = self._text, self._at
        mark, kind = next(((m, k) for m, k in _OPENERS if text.startswith(m, at)), ("", ""))
        if not kind or self._in_code():
            raise MarkupError(
                f"Character '{text[at]}' is reserved and must be escaped with the preceding '\\'"
            )
        entity = _Open(kind, self._out.offset, self._byte(at))
        self._at += len(mark)
        if kind == "Pre":
            language = re.compile(r"([^\s`]*)(\r?\n)?").match(text, self._at)
            assert language is not None
            followed = text[language.end(1) : language.end(1) + 1]
            if language.group(1) and followed not in ("", "`"):
                entity.kind, entity.language = "PreCode", language.group(1)
                self._at = language.end()
            elif not language.group(1):
                self._at = language.end()
        self._open.append(entity)

    def _close(self, entity: _Open) -> None:
        mark, kind = _KINDS[entity.kind]
        self._at += len(mark)
        if entity.kind in ("TextUrl", "CustomEmoji"):
            self._close_link(entity)
        elif entity.kind == "PreCode":
            self._out.entity(kind, entity.start, language=entity.language)
        else:
            self._out.entity(kind, entity.start)

    def _close_link(self, entity: _Open) -> None:
        url = self._out.text_since(entity.start)
        if self._text.startswith("(", self._at):
            match = re.compile(r"\(((?:\\[\x01-\x7e]|[^)\\]|\\)*)\)").match(self._text, self._at)
            if match is None:
                raise MarkupError(
                    f"Can't find end of a URL at byte offset {self._byte(self._at + 1)}"
                )
            url = re.sub(r"\\([\x01-\x7e])", r"\1", match.group(1))
            self._at = match.end()
        emoji = re.fullmatch(r"tg://emoji/?\?id=(\d+)", url)
        if entity.kind == "TextUrl":
            link(self._out, entity.start, url)
        elif emoji:
            self._out.entity("custom_emoji", entity.start, custom_emoji_id=emoji.group(1))
        else:
            raise MarkupError("Custom emoji URL must have scheme tg://emoji")


_LEGACY = {"*": "bold", "_": "italic", "`": "code", "```": "pre"}


def parse_markdown(text: str) -> RichText:
    """Return a legacy Markdown text without its marks; nothing nests.

    @raise MarkupError: when an entity has no end.
    """
    out, at = TextBuilder(), 0
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] in ("_", "*", "`", "["):
            out.add(text[at + 1])
            at += 2
            continue
        mark = next((m for m in ("```", "*", "_", "`", "[") if text.startswith(m, at)), None)
        if mark is None:
            out.add(text[at])
            at += 1
            continue
        closing = "]" if mark == "[" else mark
        end = text.find(closing, at + len(mark))
        if end < 0:
            byte = len(text[:at].encode("utf-8", "replace"))
            raise MarkupError(f"Can't find end of the entity starting at byte offset {byte}")
        at = _legacy_entity(out, text, mark, at + len(mark), end)
    return out.result()


def _legacy_entity(out: TextBuilder, text: str, mark: str, begin: int, end: int) -> int:
    start, inner = out.offset, text[begin:end]
    if mark == "```":
        inner = re.sub(r"^\w*\n", "", inner)
    out.add(inner)
    if mark != "[":
        out.entity(_LEGACY[mark], start)
        return end + len(mark)
    target = re.compile(r"\]\(([^)]*)\)").match(text, end)
    if target is None:
        return end + 1
    link(out, start, target.group(1))
    return target.end()

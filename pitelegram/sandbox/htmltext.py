"""C{parse_mode=HTML}: the tags, entities and error texts of the Bot API."""

from __future__ import annotations

import re

import attrs

from pitelegram.sandbox.richtext import RichText, TextBuilder

_SIMPLE = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
}
_TAGS = {*_SIMPLE, "a", "code", "pre", "blockquote", "span", "tg-emoji", "tg-time"}
_ENTITY = re.compile(r"&(?:(lt|gt|amp|quot)|#(\d{1,8})|#x([0-9a-fA-F]{1,8}));?")
_NAMES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_ATTRIBUTE = re.compile(r"\s*([^\s=>/]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([\w.-]+)(?=[\s>])))?")


class MarkupError(ValueError):
    """The markup cannot be parsed; the text is what follows C{can't parse entities: }."""


@attrs.define
class _Open:
    name: str
    attributes: dict[str, str]
    start: int


def parse_html(text: str) -> RichText:
    """Return the text without its tags.

    @raise MarkupError: as the Bot API words it; offsets count bytes of UTF-8.
    """
    return _Parser(text).run()


def unescape(text: str) -> str:
    """Replace the entities that the Bot API knows; others stay as they are."""
    return _ENTITY.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    if match.group(1):
        return _NAMES[match.group(1)]
    number = int(match.group(2) or 0) or int(match.group(3) or "0", 16)
    valid = 0 < number < 0x110000 and not 0xD800 <= number < 0xE000
    return chr(number) if valid else match.group()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._out = TextBuilder()
        self._open: list[_Open] = []

    def run(self) -> RichText:
        while self._at < len(self._text):
            tag = self._text.find("<", self._at)
            end = len(self._text) if tag < 0 else tag
            self._out.add(unescape(self._text[self._at : end]))
            self._at = end
            if tag < 0:
                break
            if self._text.startswith("/", tag + 1):
                self._end_tag(tag)
            else:
                self._start_tag(tag)
        if self._open:
            name = self._open[-1].name
            raise MarkupError(f'Can\'t find end tag corresponding to start tag "{name}"')
        return self._out.result()

    def _byte(self, position: int) -> int:
        return len(self._text[:position].encode("utf-8", "replace"))

    def _start_tag(self, begin: int) -> None:
        match = re.compile(r"[^\s>]*").match(self._text, begin + 1)
        assert match is not None
        name, position = match.group().lower(), match.end()
        if position >= len(self._text):
            raise MarkupError(f"Unclosed start tag at byte offset {self._byte(begin)}")
        if name not in _TAGS:
            raise MarkupError(f'Unsupported start tag "{name}" at byte offset {self._byte(begin)}')
        attributes: dict[str, str] = {}
        while not re.compile(r"\s*>").match(self._text, position):
            position = self._attribute(name, begin, position, attributes)
        self._at = self._text.index(">", position) + 1
        if name == "span" and attributes.get("class") != "tg-spoiler":
            raise MarkupError(
                f'Tag "span" must have class "tg-spoiler" at byte offset {self._byte(begin)}'
            )
        self._open.append(_Open(name, attributes, self._out.offset))

    def _attribute(self, tag: str, begin: int, position: int, found: dict[str, str]) -> int:
        match = _ATTRIBUTE.match(self._text, position)
        assert match is not None
        if match.end() >= len(self._text):
            raise MarkupError(f'Unclosed start tag "{tag}" at byte offset {self._byte(begin)}')
        if not match.group(1):
            raise MarkupError(
                f'Empty attribute name in the tag "{tag}" at byte offset {self._byte(begin)}'
            )
        value = next((g for g in match.groups()[1:] if g is not None), "")
        found[match.group(1).lower()] = unescape(value)
        rest = self._text[match.end()]
        if not (rest.isspace() or rest == ">"):
            raise MarkupError(
                f"Unexpected end of name token at byte offset {self._byte(match.end())}"
            )
        return match.end()

    def _end_tag(self, begin: int) -> None:
        offset = self._byte(begin)
        if not self._open:
            raise MarkupError(f"Unexpected end tag at byte offset {offset}")
        match = re.compile(r"</([^\s>]*)\s*(>?)").match(self._text, begin)
        assert match is not None
        if not match.group(2):
            raise MarkupError(f"Unclosed end tag at byte offset {offset}")
        tag, name = self._open.pop(), match.group(1).lower()
        if name and name != tag.name:
            raise MarkupError(
                f'Unmatched end tag at byte offset {offset}, expected "</{tag.name}>", '
                f'found "</{name}>"'
            )
        self._at = match.end()
        self._finish(tag)

    def _finish(self, tag: _Open) -> None:
        out, attributes = self._out, tag.attributes
        if tag.name in _SIMPLE:
            out.entity(_SIMPLE[tag.name], tag.start)
        elif tag.name == "span":
            out.entity("spoiler", tag.start)
        elif tag.name == "blockquote":
            expandable = "expandable" in attributes
            out.entity("expandable_blockquote" if expandable else "blockquote", tag.start)
        elif tag.name == "a":
            link(out, tag.start, attributes.get("href") or out.text_since(tag.start))
        elif tag.name == "tg-emoji" and attributes.get("emoji-id"):
            out.entity("custom_emoji", tag.start, custom_emoji_id=attributes["emoji-id"])
        elif tag.name == "code":
            language = attributes.get("class", "")
            parent = self._open[-1] if self._open else None
            if parent and parent.name == "pre" and language.startswith("language-"):
                parent.attributes["language"] = language[len("language-") :]
            elif not (parent and parent.name == "pre"):
                out.entity("code", tag.start)
        elif tag.name == "pre":
            language = attributes.get("language", "")
            out.entity("pre", tag.start, **({"language": language} if language else {}))


def link(out: TextBuilder, start: int, url: str) -> None:
    """End a link: a mention, a text link, or nothing for an address without a host."""
    user = re.fullmatch(r"tg://user/?\?id=(\d+)", url)
    if user:
        person = {"id": int(user.group(1)), "is_bot": False, "first_name": "User"}
        out.entity("text_mention", start, user=person)
        return
    address = url if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", url) else f"http://{url}"
    host = re.match(r"(?:https?|ton|tg|tonsite)://(?:[^/@]*@)?([^/:?#]+)", address)
    if host and ("." in host.group(1) or address.startswith("tg://")):
        slash = "/" if address == host.group() and not address.startswith("tg:") else ""
        out.entity("text_link", start, url=address + slash)

"""The text that Pi gets for messages; its layout stands in C{docs/intake.md}."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

import attrs

from pitelegram.bridge.content import Content
from pitelegram.bridge.interfaces import FileItem
from pitelegram.bridge.marking import guard, plain

SUMMARY_WORDS = 5
SUMMARY_LENGTH = 40
VOICE_LINE = "[voice] delivery: automatic voice"

_OPENING = re.compile(r"\A\[telegram[^\]\n]*\][ \n]*")
_FIRST_FILE = re.compile(r"^- /(?:[0-9a-f]{12}-)?(.+)$", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Part:
    """One message of a prompt.

    @ivar files: those of its files that are on this disk.
    @ivar missing: a line for each that is not, guarded.
    """

    content: Content
    files: tuple[FileItem, ...] = ()
    missing: tuple[str, ...] = ()


def prompt_text(text: str, thread_name: str | None = None) -> str:
    """Return the prompt for plain words of the operator.

    @param thread_name: the name of the worker's Thread, where it has one.
    """
    return f"{_opening(thread_name)} {guard(text)}"


def compose(
    parts: Sequence[Part],
    thread_name: str | None = None,
    text: str | None = None,
    outputs: Sequence[str] = (),
    time: str | None = None,
    voice: bool = False,
) -> str:
    """Return the prompt for messages that belong together, in their order.

    @param text: replaces what the operator himself wrote.
    @param outputs: what handlers made of it.
    @param time: the line that tells the time, if it is told.
    @param voice: whether the whole answer will be spoken.
    """
    own = [part for part in parts if part.content.forward is None]
    words = own_words(own) if text is None else text
    opening = _opening(thread_name)
    blocks = [f"{opening} {guard(words)}" if words.strip() else opening]
    blocks += [note for part in own for note in part.content.notes]
    blocks += _attachments("attachments", own)
    if outputs:
        blocks.append("\n- ".join(["[outputs]", *(guard(each) for each in outputs)]))
    for source, run in groupby(parts, key=_run):
        if source[0] is not None:
            blocks += _forwarded(source[0], list(run))
    replies = [part.content.reply for part in parts if part.content.reply is not None]
    blocks += [f"[reply|from:{reply.source}] {reply.text}" for reply in dict.fromkeys(replies)]
    if time:
        blocks.append(f"[time] {time}")
    if voice:
        blocks.append(VOICE_LINE)
    return "\n\n".join(blocks)


def own_words(parts: Sequence[Part]) -> str:
    """Return what the operator wrote in messages that belong together.

    A text that his client cut is joined as it was, nothing between; captions are lines.
    """
    contents = [part.content for part in parts if part.content.text.strip()]
    cut = all(content.only_text for content in contents)
    return ("" if cut else "\n").join(content.text for content in contents)


def time_line(seconds: float) -> str:
    """Return a time as C{[time]} tells it, in this machine's zone.

    @param seconds: since the epoch.
    """
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def callback_text(data: str) -> str:
    """Return the prompt for the press of a button that is nobody's here."""
    return f"[callback] {plain(data, 'without data', 256)}"


def summary(prompt: str) -> str:
    """Return the first words of a prompt, for a line that must tell it from others."""
    plain_text = _OPENING.sub("", prompt)
    if plain_text.startswith("[attachments") and (found := _FIRST_FILE.search(plain_text)):
        plain_text = f"📎 {found[1]}"
    words = plain_text.split()
    text = " ".join(words[:SUMMARY_WORDS])
    cut = len(words) > SUMMARY_WORDS or len(text) > SUMMARY_LENGTH
    return text[:SUMMARY_LENGTH].rstrip() + ("…" if cut else "")


def _opening(thread_name: str | None) -> str:
    name = plain(thread_name, "")
    return f"[telegram|thread:{name}]" if name else "[telegram]"


def _run(part: Part) -> tuple[str | None, object]:
    """What neighbours have in common that are told in one block: an album of one origin."""
    content = part.content
    alone = content.album is None or content.forward is None
    return content.forward, id(part) if alone and content.forward is not None else content.album


def _forwarded(source: str, parts: Sequence[Part]) -> list[str]:
    words = "\n".join(part.content.text for part in parts if part.content.text.strip())
    blocks = [f"[forward|from:{source}] {guard(words)}".rstrip()]
    blocks += [note for part in parts for note in part.content.notes]
    return blocks + _attachments(f"attachments|from:{source}", parts)


def _attachments(tag: str, parts: Sequence[Part]) -> list[str]:
    """Return one block for each directory, and one for what is missing."""
    paths = dict.fromkeys(file.path for part in parts for file in part.files)
    blocks = []
    for directory, files in groupby(paths, key=os.path.dirname):
        lines = "".join(f"\n- /{os.path.basename(path)}" for path in files)
        blocks.append(f"[{tag}] {directory}{lines}")
    missing = [line for part in parts for line in part.missing]
    if missing:
        blocks.append("\n- ".join(["[not delivered]", *missing]))
    return blocks

"""An answer of the agent as deliveries: the calls, their other forms, reply, keyboard and file.

Pure but for C{keep}; the worker composes what it says, the leader what a dead worker had to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from pitelegram.bridge.answer import deliveries, text_calls
from pitelegram.bridge.buttons import keyboard
from pitelegram.bridge.comments import HEADING, finished
from pitelegram.bridge.cutting import clean
from pitelegram.bridge.outgoing import Answer
from pitelegram.bridge.rendering.messages import visible
from pitelegram.bridge.rendering.records import AttachedText, RenderOptions, Step
from pitelegram.bridge.rendering.render import render
from pitelegram.bridge.turn import NO_TEXT
from pitelegram.store.rows import ButtonRow

Call = dict[str, Any]

FILE_FIELD = "document"


@attrs.frozen(kw_only=True)
class Composed:
    """What takes a raw answer's place in the store.

    @ivar answers: as L{IInbox.answers<pitelegram.store.worker_interfaces.IInbox.answers>} has them.
    """

    answers: tuple[dict[str, Any], ...]
    buttons: tuple[ButtonRow, ...] = ()


def raw_answer(
    delivery_id: str,
    text: str,
    created_ms: int,
    anchor: int | None = None,
    footer: str | None = None,
    origin: str = "telegram",
    silent: bool = False,
    spoken: bool = False,
) -> dict[str, Any]:
    """Return Pi's words for the store, not rendered yet.

    @param anchor: the message that they answer.
    @param footer: a line about tokens and cost.
    @param origin: C{telegram}, or C{local} when nobody there asked.
    @param silent: said on the way to an answer, without a sound.
    @param spoken: Pi was told that the whole answer is spoken.
    """
    delivery = {
        "text": text,
        "createdAtMs": created_ms,
        "anchor": anchor,
        "footer": footer,
        "origin": origin,
        "silent": silent,
        "spoken": spoken,
    }
    return {"delivery_id": delivery_id, "kind": "raw", "delivery": delivery}


def compose(
    raw: dict[str, Any],
    answer: Answer,
    options: RenderOptions,
    mint: Callable[[], str],
    keep: Callable[[bytes, str], str],
    voices: Sequence[Call] = (),
) -> Composed:
    """Return the deliveries of a raw answer; the first has its id.

    What is only to be spoken is shown where it was not spoken.

    @param raw: from the store.
    @param answer: what it shows and asks for, as the operator's programs left it.
    @param mint: returns a new key of a button.
    @param voices: calls that send what was spoken, each a delivery of its own behind the text.
    @param keep: C{(bytes, delivery id)}: stores a file of an answer and returns its path.
    """
    delivery_id, words = raw["delivery_id"], raw["delivery"]
    created = int(words["createdAtMs"])
    only_spoken = bool(voices) and not visible(clean(answer.markdown))
    rendered = render("" if only_spoken else _shown(words, answer), options)
    calls = [call for step in rendered.steps for call in nested(step)]
    markup, buttons = keyboard(answer.buttons, mint) if answer.buttons else (None, [])
    decorated = with_keyboard(with_reply(calls or voices, words.get("anchor")), markup)
    calls, voices = (decorated, voices) if calls else ([], decorated)
    kind = "final"
    if words.get("silent"):
        kind, calls = "notice", silenced(calls)
    answers = deliveries(delivery_id, kind, calls, created)
    for number, call in enumerate(voices, 1):
        answers += deliveries(f"{delivery_id[:100]}.voice{number}", "final", [call], created)
    if rendered.file is not None:
        name = f"{delivery_id[:100]}.file"
        call = file_call(rendered.file, lambda content: keep(content, name))
        answers += deliveries(name, "final", [call], created)
    return Composed(answers=tuple(answers), buttons=tuple(buttons) if decorated else ())


def _shown(words: dict[str, Any], answer: Answer) -> str:
    """Return what is rendered: the first that shows anything, and the line below it."""
    spoken = "\n\n".join(speech.text for speech in answer.speeches)
    otherwise = "" if words.get("silent") else NO_TEXT
    wanted = (answer.markdown, spoken, HEADING if answer.buttons else otherwise)
    text = next((each for each in wanted if visible(clean(each))), "")
    footer = words.get("footer")
    return f"{finished(text)}\n\n{footer}" if footer else text


def plain(raw: dict[str, Any]) -> Composed:
    """Return a raw answer as it was written, for when everything else failed.

    One without its words or its time is passed on, so that it is refused and told of.
    """
    words = raw["delivery"]
    try:
        text, created = str(words["text"]), int(words["createdAtMs"])
    except (KeyError, TypeError, ValueError):
        return Composed(answers=({**raw, "kind": "final"},))
    calls, kind = with_reply(text_calls(text), words.get("anchor")), "final"
    if words.get("silent"):
        calls, kind = silenced(calls), "notice"
    return Composed(answers=tuple(deliveries(raw["delivery_id"], kind, calls, created)))


def nested(step: Step) -> list[Call]:
    """Return the calls of a step, each with what to send instead when it is refused."""
    shown: list[Call] = []
    for call, plain_calls in zip(step.entities, step.plains, strict=True):
        refusable = "entities" in call["params"] and plain_calls
        shown.append({**call, "otherwise": list(plain_calls)} if refusable else call)
    return [{**call, "otherwise": shown} for call in step.rich] or shown


def with_reply(calls: Sequence[Call], anchor: int | None) -> list[Call]:
    """Return calls of which the first, in each of its forms, answers a message."""
    if anchor is None or not calls:
        return list(calls)
    reply = {"message_id": anchor, "allow_sending_without_reply": True}
    return [_with(calls[0], with_reply, anchor, reply_parameters=reply), *calls[1:]]


def with_keyboard(calls: Sequence[Call], markup: dict[str, Any] | None) -> list[Call]:
    """Return calls of which the last, in each of its forms, has the keyboard."""
    if markup is None or not calls:
        return list(calls)
    return [*calls[:-1], _with(calls[-1], with_keyboard, markup, reply_markup=markup)]


def silenced(calls: Sequence[Call]) -> list[Call]:
    """Return calls that make no sound, in each of their forms."""
    result = []
    for call in calls:
        quiet = {**call, "params": {**call["params"], "disable_notification": True}}
        if "otherwise" in call:
            quiet["otherwise"] = silenced(call["otherwise"])
        result.append(quiet)
    return result


def _with(call: Call, change: Callable[..., list[Call]], value: Any, **params: Any) -> Call:
    changed = {**call, "params": {**call["params"], **params}}
    if "otherwise" in call:
        changed["otherwise"] = change(call["otherwise"], value)
    return changed


def file_call(text: AttachedText, keep: Callable[[bytes], str]) -> Call:
    """Return the call that sends a text as a document."""
    path = keep(text.text.encode("utf-8", "replace"))
    file = {"field": FILE_FIELD, "path": path, "filename": text.name, "mimeType": text.mime_type}
    return {
        "method": "sendDocument",
        "params": {FILE_FIELD: f"attach://{FILE_FIELD}"},
        "files": [file],
    }


def named_files(answers: Iterable[dict[str, Any]]) -> set[str]:
    """Return the paths of all files that stored answers name."""
    return {
        file["path"]
        for answer in answers
        for call in answer["delivery"].get("calls", ())
        for file in call.get("files", ())
    }


def has_files(answer: dict[str, Any]) -> bool:
    """Whether a stored answer names files."""
    return any(call.get("files") for call in answer["delivery"].get("calls", ()))

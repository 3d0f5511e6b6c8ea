"""Methods that send: texts, files, albums, chat actions."""

from __future__ import annotations

from typing import Any

from pitelegram.sandbox.errors import ApiError, bad_request
from pitelegram.sandbox.files import FileShelf
from pitelegram.sandbox.formatting import MAX_CAPTION, MAX_TEXT, message_text, rich_text
from pitelegram.sandbox.parameters import Parameters
from pitelegram.sandbox.targets import Destination, chat_of, destination
from pitelegram.sandbox.world import World

ACTIONS = frozenset(
    "typing upload_photo record_video upload_video record_voice upload_voice upload_document "
    "choose_sticker find_location record_video_note upload_video_note".split()
)
KINDS = ("photo", "document", "audio", "voice", "video")
_META = ("duration", "width", "height", "performer", "title")
_IGNORED = ("has_spoiler", "show_caption_above_media", "thumbnail", "supports_streaming",
            "disable_content_type_detection")  # fmt: skip
ALBUM = 10


def send_message(world: World, parameters: Parameters) -> dict[str, Any]:
    """C{sendMessage}."""
    rich = message_text(
        parameters.text("text"),
        parameters.text("parse_mode"),
        parameters.json("entities", list),
    )
    target = destination(world, parameters)
    if len(rich.text) > MAX_TEXT:
        raise bad_request("message is too long")
    return post(world, target, rich.as_json())


def post(
    world: World, target: Destination, content: dict[str, Any], album: str | None = None
) -> dict[str, Any]:
    """Put a message of the bot into its place; return it as the bot sees it."""
    message = world.post(
        target.chat,
        world.bot,
        content,
        thread_id=target.thread_id,
        reply_to=target.reply_to,
        markup=target.markup,
        album=album,
        extra=dict(target.extra),
    )
    return world.render(target.chat, message)


def _send_file(kind: str, world: World, parameters: Parameters) -> dict[str, Any]:
    parameters.ignore(*_IGNORED)
    caption = _caption(
        parameters.text("caption"),
        parameters.text("parse_mode"),
        parameters.json("caption_entities", list),
    )
    target = destination(world, parameters)
    meta: dict[str, Any] = {"duration": 0} if kind in ("audio", "voice", "video") else {}
    if kind == "video":
        meta |= {"width": 640, "height": 360}
    for name in _META:
        if name in parameters:
            text = name in ("performer", "title")
            meta[name] = parameters.text(name) if text else parameters.integer(name)
    media = _media(world, parameters, kind, kind, meta)
    return post(world, target, media | caption)


def _caption(text: str, mode: str, entities: Any) -> dict[str, Any]:
    if not text:
        return {}
    rich = rich_text(text, mode, entities)
    if len(rich.text) > MAX_CAPTION:
        raise bad_request("message caption is too long")
    return rich.as_json("caption", "caption_entities") if rich.text else {}


def _media(
    world: World, parameters: Parameters, name: str, kind: str, meta: dict[str, Any]
) -> dict[str, Any]:
    """Return the content of a file given as an upload or by its id."""
    part, value = parameters.part(name), parameters.text(name)
    if part is None and value and not value.startswith("attach://"):
        file = world.files.get(value)
        if value.startswith(("http://", "https://")):
            raise bad_request("failed to get HTTP URL content")
        if file is None:
            raise bad_request("wrong file identifier/HTTP URL specified")
        if file.kind != kind:
            raise bad_request(f"can't use file of type {file.kind.title()} as {kind.title()}")
    elif part is None:
        raise bad_request(f"there is no {kind} in the request")
    else:
        _check_size(world.files, part.data, kind)
        file = world.files.add(kind, part.data, part.filename, part.mime_type, **meta)
    about: Any = file.as_json()
    return {kind: [about] if kind == "photo" else about}


def _check_size(files: FileShelf, data: bytes, kind: str) -> None:
    if not data:
        raise bad_request("file must be non-empty")
    if len(data) > files.max_upload:
        raise ApiError(413, "Request Entity Too Large")
    if kind == "photo" and len(data) > files.max_photo:
        raise bad_request(
            f"file of size {len(data)} bytes is too big for a photo; "
            f"the maximum size is {files.max_photo} bytes"
        )


def send_media_group(world: World, parameters: Parameters) -> list[dict[str, Any]]:
    """C{sendMediaGroup}."""
    media = parameters.json("media", list)
    if not media:
        raise bad_request(
            'parameter "media" is required' if media is None else "there are no messages to send"
        )
    if len(media) > ALBUM:
        raise bad_request("too many messages to send as an album")
    kinds = {item.get("type") if isinstance(item, dict) else None for item in media}
    if not kinds <= {"photo", "video", "audio", "document"}:
        raise bad_request("can't parse InputMedia: unknown type")
    for alone in ("document", "audio"):
        if alone in kinds and len(kinds) > 1:
            raise bad_request(f"{alone.title()} can't be mixed with other media types")
    captions = [
        _caption(
            str(item.get("caption") or ""),
            str(item.get("parse_mode") or ""),
            item.get("caption_entities"),
        )
        for item in media
    ]
    target = destination(world, parameters)
    contents = []
    for item, caption in zip(media, captions, strict=True):
        named = Parameters({"media": str(item.get("media") or "")}, parameters.parts)
        contents.append(_media(world, named, "media", item["type"], {}) | caption)
    album = str(world.random.randrange(10**16, 10**17)) if len(media) > 1 else None
    return [post(world, target, content, album) for content in contents]


def send_chat_action(world: World, parameters: Parameters) -> bool:
    """C{sendChatAction}; a dead Thread is not noticed, as in the real service."""
    action = parameters.text("action")
    thread_id = parameters.integer("message_thread_id", None)
    chat = chat_of(world, parameters)
    if action not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    world.act(chat, thread_id, action)
    return True


def _sender(kind: str) -> Any:
    return lambda world, parameters: _send_file(kind, world, parameters)


METHODS = {
    "sendMessage": send_message,
    "sendMediaGroup": send_media_group,
    "sendChatAction": send_chat_action,
    **{f"send{kind.title()}": _sender(kind) for kind in KINDS},
}

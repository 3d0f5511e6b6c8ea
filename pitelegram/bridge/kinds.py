"""What a message carries beside text and files, in words."""

from __future__ import annotations

from typing import Any

from pitelegram.bridge.marking import guard, plain, shorten

Message = dict[str, Any]

_OPTIONS = 30
_TASKS = 100
_LONG = 1000


def notes_of(message: Message) -> list[str]:
    """Return a line (or some) for everything of a message that is no text and no file."""
    found = []
    for kind, describe in _NOTES.items():
        about = message.get(kind)
        if about is None or (kind == "location" and isinstance(message.get("venue"), dict)):
            continue
        words = describe(about if isinstance(about, dict) else {})
        found.append(f"[{kind.replace('_', ' ')}] {words}".rstrip())
    return found


def _sticker(about: Message) -> str:
    words = plain(about.get("emoji"), "")
    name = plain(about.get("set_name"), "")
    return f"{words} from the set {name}".strip() if name else words


def _place(about: Message) -> str:
    latitude, longitude = about.get("latitude"), about.get("longitude")
    if not all(type(each) in (int, float) for each in (latitude, longitude)):
        return "at an unknown place"
    live = ", live" if _integer(about.get("live_period")) else ""
    return f"{latitude}, {longitude}{live}"


def _venue(about: Message) -> str:
    place = about.get("location")
    words = [plain(about.get(name), "") for name in ("title", "address")]
    named = ", ".join(word for word in words if word) or "a venue"
    return f"{named} ({_place(place if isinstance(place, dict) else {})})"


def _contact(about: Message) -> str:
    name = person(about)
    return f"{name}, {plain(about.get('phone_number'), 'no number')}"


def _poll(about: Message) -> str:
    lines = [_line(about.get("question"), "a question")]
    options = about.get("options")
    for option in (options if isinstance(options, list) else [])[:_OPTIONS]:
        if isinstance(option, dict):
            votes = _integer(option.get("voter_count"))
            counted = f" ({votes} votes)" if votes else ""
            lines.append(f"- {_line(option.get('text'), 'an option')}{counted}")
    return "\n".join(lines)


def _dice(about: Message) -> str:
    value = _integer(about.get("value"))
    return f"{plain(about.get('emoji'), '🎲')} {'' if value is None else value}".rstrip()


def _story(about: Message) -> str:
    return f"of {person(about.get('chat'))}"


def _checklist(about: Message) -> str:
    lines = [_line(about.get("title"), "")]
    tasks = about.get("tasks")
    for task in (tasks if isinstance(tasks, list) else [])[:_TASKS]:
        if isinstance(task, dict):
            done = "x" if task.get("completion_date") else " "
            lines.append(f"- [{done}] {_line(task.get('text'), 'a task')}")
    return "\n".join(lines)


def _paid(about: Message) -> str:
    items = about.get("paid_media")
    kinds = [
        plain(item.get("type"), "media")
        for item in (items if isinstance(items, list) else [])[:_OPTIONS]
        if isinstance(item, dict)
    ]
    stars = _integer(about.get("star_count"))
    price = f" for {stars} stars" if stars is not None else ""
    return f"{', '.join(kinds) or 'media'}{price}"


def _game(about: Message) -> str:
    return f"{_line(about.get('title'), 'a game')}: {_line(about.get('description'), '')}".rstrip(
        ": "
    )


def _invoice(about: Message) -> str:
    total, currency = _integer(about.get("total_amount")), plain(about.get("currency"), "", 3)
    price = f", {total} {currency} in its smallest unit" if total is not None and currency else ""
    return f"{_line(about.get('title'), 'an invoice')}{price}"


def _giveaway(about: Message) -> str:
    count = _integer(about.get("winner_count"))
    return "" if count is None else f"{count} winners"


_NOTES = {
    "sticker": _sticker,
    "location": _place,
    "venue": _venue,
    "contact": _contact,
    "poll": _poll,
    "dice": _dice,
    "story": _story,
    "checklist": _checklist,
    "paid_media": _paid,
    "game": _game,
    "invoice": _invoice,
    "giveaway": _giveaway,
    "giveaway_winners": _giveaway,
}


def person(about: Any) -> str:
    """Return what a user or chat is called."""
    if not isinstance(about, dict):
        return "unknown"
    words = [plain(about.get(name), "") for name in ("first_name", "last_name")]
    full = " ".join(word for word in words if word)
    user_id = _integer(about.get("id", about.get("user_id")))
    return (
        full
        or plain(about.get("title"), "")
        or plain(about.get("username"), "")
        or (str(user_id) if user_id is not None else "unknown")
    )


def _line(text: Any, default: str) -> str:
    """Return a text of one line, bounded."""
    return guard(shorten(" ".join(text.split()), _LONG)) if isinstance(text, str) else default


def _integer(value: Any) -> int | None:
    return value if type(value) is int else None

"""Checks of C{reply_markup}."""

from __future__ import annotations

import re
from typing import Any

from pitelegram.kernel.jsonio import dumps
from pitelegram.sandbox.errors import bad_request

MAX_MARKUP_BYTES = 10240
MAX_DATA_BYTES = 64
MAX_ROW = 8
MAX_BUTTONS = 100

_ACTIONS = ("url", "login_url", "web_app", "switch_inline_query", "copy_text", "pay")
_STYLES = (None, "primary", "success", "danger")
_OTHER_KINDS = ("keyboard", "remove_keyboard", "force_reply")


def checked_markup(markup: Any) -> dict[str, Any] | None:
    """Return a valid markup, None for none.

    A row over 8 or a keyboard over 100 buttons, which clients would quietly cut, is refused here.

    @raise pitelegram.sandbox.errors.ApiError: 400 with the service's wording.
    """
    if markup is None:
        return None
    if not isinstance(markup, dict):
        raise bad_request("object expected as reply markup")
    if "inline_keyboard" not in markup:
        if markup and not any(kind in markup for kind in _OTHER_KINDS):
            raise bad_request("can't parse reply markup: unknown kind of keyboard")
        return markup or None
    rows = markup["inline_keyboard"]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad_request(
            'field "inline_keyboard" of the InlineKeyboardMarkup should be an Array of Arrays'
        )
    checked = [[_checked_button(button) for button in row] for row in rows if row]
    if any(len(row) > MAX_ROW for row in checked):
        raise bad_request(f"inline keyboard row has more than {MAX_ROW} buttons")
    if sum(map(len, checked)) > MAX_BUTTONS:
        raise bad_request(f"inline keyboard has more than {MAX_BUTTONS} buttons")
    if len(dumps(checked)) > MAX_MARKUP_BYTES:
        raise bad_request("reply markup is too long")
    return {"inline_keyboard": checked} if checked else None


def _checked_button(button: Any) -> dict[str, Any]:
    wrong = "can't parse inline keyboard button: "
    if not isinstance(button, dict):
        raise bad_request(wrong + "InlineKeyboardButton must be an Object")
    if "text" not in button:
        raise bad_request(wrong + 'Can\'t find field "text"')
    if not isinstance(button["text"], str):
        raise bad_request(wrong + 'Field "text" must be of type String')
    if not button["text"].strip():
        raise bad_request("inline keyboard button text must be non-empty")
    if button.get("style") not in _STYLES:
        raise bad_request(wrong + "unknown button style specified")
    data = button.get("callback_data")
    if data is not None:
        if not isinstance(data, str):
            raise bad_request(wrong + 'Field "callback_data" must be of type String')
        if not 1 <= len(data.encode("utf-8", "replace")) <= MAX_DATA_BYTES:
            raise bad_request("BUTTON_DATA_INVALID")
    elif not any(action in button for action in _ACTIONS):
        raise bad_request(wrong + "Text buttons are unallowed in the inline keyboard")
    url = button.get("url")
    if url is not None and not re.match(
        r"(?:https?|tg|ton)://[^\s/]+|[\w-]+(?:\.[\w-]+)+", str(url)
    ):
        raise bad_request(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
    return dict(button)

"""Which RPC commands may be sent, and with what.

Pi believes what it is told: a bogus thinking level switches thinking off, C{null} ends it, some
commands rewrite the operator's global settings.  So only what is listed here is ever sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pitelegram.errors import PiRefused
from pitelegram.pi.sessions import read_header

THINKING_LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")

LANES = {"normal": "followUp", "priority": "steer"}
"""Our lanes and Pi's names for them."""

_ENTRY = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _words(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _level(value: Any) -> bool:
    return value in THINKING_LEVELS


def _entry(value: Any) -> bool:
    return isinstance(value, str) and _ENTRY.fullmatch(value) is not None


def _session(value: Any) -> bool:
    """An existing session file by its absolute path: Pi starts an empty one for any other."""
    return isinstance(value, str) and os.path.isabs(value) and read_header(Path(value)) is not None


@attrs.frozen(kw_only=True)
class CommandRule:
    """What one command takes.

    @ivar timeout: seconds to wait for the answer.
    @ivar required: checks of the arguments that must be there.
    @ivar optional: checks of those that may be.
    @ivar refreshes: whether C{get_state} must be asked afterwards, since no event tells.
    """

    timeout: float = 30.0
    required: Mapping[str, Callable[[Any], bool]] = attrs.field(factory=dict)
    optional: Mapping[str, Callable[[Any], bool]] = attrs.field(factory=dict)
    refreshes: bool = False


COMMANDS: Mapping[str, CommandRule] = {
    "abort_retry": CommandRule(),
    "clone": CommandRule(refreshes=True),
    "compact": CommandRule(timeout=600.0, optional={"customInstructions": _text}, refreshes=True),
    "cycle_model": CommandRule(refreshes=True),
    "cycle_thinking_level": CommandRule(refreshes=True),
    "fork": CommandRule(required={"entryId": _entry}, refreshes=True),
    "get_available_models": CommandRule(),
    "get_available_thinking_levels": CommandRule(),
    "get_commands": CommandRule(),
    "get_fork_messages": CommandRule(),
    "get_last_assistant_text": CommandRule(),
    "get_session_stats": CommandRule(),
    "new_session": CommandRule(refreshes=True),
    "set_model": CommandRule(required={"provider": _words, "modelId": _words}, refreshes=True),
    "set_session_name": CommandRule(required={"name": _words}, refreshes=True),
    "set_thinking_level": CommandRule(required={"level": _level}, refreshes=True),
    "switch_session": CommandRule(required={"sessionPath": _session}, refreshes=True),
}
"""The allow-list of C{IPiHost.command}; the bridge's own methods cover the rest."""


def check_command(name: str, arguments: Mapping[str, Any]) -> CommandRule:
    """Return the rule of a command whose arguments are right.

    @raise PiRefused: it is not on the list, or an argument is missing, unknown or wrong.
    """
    rule = COMMANDS.get(name)
    if rule is None:
        raise PiRefused(f"the command {name!r} is not one that may be sent to Pi")
    checks = {**rule.required, **rule.optional}
    missing = [key for key in rule.required if key not in arguments]
    wrong = [key for key, value in arguments.items() if key not in checks or not checks[key](value)]
    if missing or wrong:
        raise PiRefused(f"{name} was not sent: check {', '.join(sorted(missing + wrong))}")
    return rule


def prompt_arguments(
    message: str, lane: str, images: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the members of a C{prompt} record.

    @raise PiRefused: the lane is unknown, or text or images have not the right shape.
    """
    if lane not in LANES:
        raise PiRefused(f"there is no lane {lane!r}")
    if not isinstance(message, str):
        raise PiRefused("a prompt is a text")
    arguments: dict[str, Any] = {"message": message, "streamingBehavior": LANES[lane]}
    if images:
        arguments["images"] = [_image(image) for image in images]
    return arguments


def _image(image: Mapping[str, Any]) -> dict[str, str]:
    shaped = isinstance(image, Mapping)
    data, kind = (image.get("data"), image.get("mimeType")) if shaped else (None, None)
    if not (isinstance(data, str) and isinstance(kind, str) and kind.startswith("image/")):
        raise PiRefused("a picture of this prompt has no data or no image type")
    return {"type": "image", "data": data, "mimeType": kind}

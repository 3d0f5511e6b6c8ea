"""From the parsed document to L{Settings}."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from pitelegram.errors import ConfigError
from pitelegram.settings.model import Settings
from pitelegram.settings.names import is_profile_name
from pitelegram.settings.secret import Secret

TOKEN_FILE_LIMIT = 4096

_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a text")
    return value


def _identity(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"[1-9][0-9]{0,17}", value):
        return int(value)
    if type(value) is not int or not 0 < value < 2**63:
        raise ValueError("must be a positive number")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**31:
        raise ValueError("must be a whole number, 0 or more")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError("must be a list of texts")
    return tuple(value)


def _variables(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(
        isinstance(text, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and "\0" not in text
        for name, text in value.items()
    ):
        raise ValueError("must be an object of texts, named like environment variables")
    return dict(value)


def _objects(value: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("must be a list of objects")
    return tuple(value)


def _any_list(value: Any) -> tuple[Any, ...]:
    """Whoever uses the entries looks at each: a bad one does not cost the others."""
    if not isinstance(value, list):
        raise ValueError("must be a list")
    return tuple(value)


def _one_of(*words: str, legacy: Mapping[str, str] | None = None) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        text = (legacy or {}).get(value, value) if isinstance(value, str) else value
        if text not in words:
            raise ValueError("must be one of " + ", ".join(words))
        return str(text)

    return read


def _activity(value: Any) -> str:
    """An unknown word shows less, not more."""
    return value if value in ("quiet", "thinking", "tools", "verbose") else "quiet"


_MODES = ("letters", "names", "directory-snake", "directory-title", "state")


@attrs.frozen
class _Key:
    """One declared key; a C{strict} one with a wrong value stops the program."""

    path: tuple[str, ...]
    field: str
    read: Callable[[Any], Any]
    strict: bool = False


_PROFILE_KEYS = (
    _Key(("botId",), "bot_id", _identity),
    _Key(("botUsername",), "bot_username", _text),
    _Key(("allowedUserId",), "allowed_user_id", _identity, strict=True),
    _Key(("apiRoot",), "api_root", _text, strict=True),
    _Key(
        ("threadDisplayMode",),
        "thread_display_mode",
        _one_of(*_MODES, legacy={"directories": "directory-title"}),
    ),
)

_KEYS = (
    _Key(("cluster", "leader"), "cluster_leader", _one_of("auto", "daemon"), strict=True),
    _Key(("workers", "command"), "workers_command", _text, strict=True),
    _Key(("workers", "roots"), "workers_roots", _texts, strict=True),
    _Key(("workers", "env"), "workers_env", _variables, strict=True),
    _Key(("workers", "passEnv"), "workers_pass_env", _texts, strict=True),
    _Key(("threads", "automaticCleanup"), "threads_automatic_cleanup", _flag, strict=True),
    _Key(("threads", "unattendedCleanup"), "threads_unattended_cleanup", _flag, strict=True),
    _Key(("pairing", "firstContact"), "pairing_first_contact", _flag, strict=True),
    _Key(("assistant", "rendering"), "assistant_rendering", _one_of("rich", "html")),
    _Key(("assistant", "fileAfter"), "assistant_file_after", _count),
    _Key(("assistant", "draftPreviews"), "assistant_draft_previews", _flag),
    _Key(("assistant", "proactivePush"), "assistant_proactive_push", _flag),
    _Key(("assistant", "activity"), "assistant_activity", _activity),
    _Key(("assistant", "footer"), "assistant_footer", _flag),
    _Key(
        ("assistant", "timeInjection"),
        "assistant_time_injection",
        _one_of("hidden", "always", "interval", legacy={"off": "hidden"}),
    ),
    _Key(
        ("voice", "replyMode"),
        "voice_reply_mode",
        _one_of("hidden", "mirror", "always", legacy={"manual": "hidden"}),
    ),
    _Key(("attachments", "workspaceOnly"), "attachments_workspace_only", _flag, strict=True),
    _Key(("voice", "sendTranscript"), "voice_send_transcript", _flag),
    _Key(("inboundHandlers",), "inbound_handlers", _any_list),
    _Key(("attachmentHandlers",), "attachment_handlers", _any_list),
    _Key(("outboundHandlers",), "outbound_handlers", _objects),
    _Key(("network", "proxy"), "network_proxy", _text, strict=True),
    _Key(("network", "family"), "network_family", _text, strict=True),
    _Key(("control", "socket"), "control_socket", _text, strict=True),
    _Key(("control", "socketGroup"), "control_socket_group", _text, strict=True),
    _Key(("outbox", "ambiguous"), "outbox_ambiguous", _one_of("park", "resend"), strict=True),
)


def settings_from(
    document: dict[str, Any],
    profile: str,
    environ: Mapping[str, str],
    directory: Path,
    with_token: bool,
    recovered: bool = False,
) -> Settings:
    """Read all declared keys of C{profile}.

    @param directory: what a relative C{botTokenFile} starts from.
    @raise ConfigError: a value that must be understood is not.
    """
    profiles = document.get("profiles", {})
    if not isinstance(profiles, dict):
        raise ConfigError("profiles in telegram.json must be an object of objects")
    own = profiles.get(profile, {})
    if not isinstance(own, dict):
        raise ConfigError(f"profiles.{profile} in telegram.json must be an object")
    problems = [
        f"telegram.json: {name!r} is not a profile name and is ignored"
        for name in profiles
        if not is_profile_name(name)
    ]
    values = _read_keys(own, _PROFILE_KEYS, f"profiles.{profile}.", problems)
    values.update(_read_keys(document, _KEYS, "", problems))
    former = values.pop("attachment_handlers", ())
    values["inbound_handlers"] = (*values.get("inbound_handlers", ()), *former)
    if recovered:
        values["threads_automatic_cleanup"] = values["threads_unattended_cleanup"] = False
    if with_token:
        values["bot_token"], values["token_problem"] = token_of(own, profile, environ, directory)
        others = (
            token_of(value, name, environ, directory)[0]
            for name, value in profiles.items()
            if name != profile and isinstance(value, dict)
        )
        values["other_tokens"] = tuple(token for token in others if token is not None)
    return Settings(
        profile=profile,
        known_profile=profile in profiles,
        token_variables=_token_variables(profiles),
        problems=tuple(problems),
        recovered=recovered,
        **values,
    )


def token_of(
    profile: Mapping[str, Any], name: str, environ: Mapping[str, str], directory: Path
) -> tuple[Secret | None, str]:
    """Return a profile's token, or None and a sentence that says why there is none."""
    literal, file = profile.get("botToken"), profile.get("botTokenFile")
    if isinstance(literal, str) and literal:
        variable = _VARIABLE.fullmatch(literal)
        if variable is None:
            return Secret(literal), ""
        value = environ.get(variable[1] or variable[2], "").strip()
        if value:
            return Secret(value), ""
        return None, (
            f"the bot token of profile {name} is taken from the environment variable"
            f" {variable[1] or variable[2]}, which is not set"
        )
    if isinstance(file, str) and file:
        return _token_from_file(directory / os.path.expanduser(file), name)
    return None, f"no bot token is configured for profile {name}; run pi-telegram setup"


def _token_from_file(path: Path, name: str) -> tuple[Secret | None, str]:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError
            text = file.read(TOKEN_FILE_LIMIT).decode("ascii").strip()
    except (OSError, ValueError):
        text = ""
    if not text:
        return None, f"the bot token file of profile {name} is missing, empty or unreadable"
    return Secret(text), ""


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _token_variables(profiles: Mapping[str, Any]) -> frozenset[str]:
    names = set()
    for value in profiles.values():
        literal = value.get("botToken") if isinstance(value, dict) else None
        match = _VARIABLE.fullmatch(literal) if isinstance(literal, str) else None
        if match is not None:
            names.add(match[1] or match[2])
    return frozenset(names)


def _read_keys(
    source: Mapping[str, Any], keys: tuple[_Key, ...], prefix: str, problems: list[str]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key in keys:
        found = _find(source, key.path)
        if found is None:
            continue
        try:
            values[key.field] = key.read(found)
        except ValueError as error:
            sentence = f"telegram.json: {prefix}{'.'.join(key.path)} {error}"
            if key.strict:
                raise ConfigError(sentence) from None
            problems.append(sentence)
    return values


def _find(source: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(source, dict):
            return None
        source = source.get(name)
    return source

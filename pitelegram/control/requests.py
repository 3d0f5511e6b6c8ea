"""Request schema v1 of the control commands: exact validation and the canonical form.

Form only: nothing here looks at the state of the daemon, so a dry run stays pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from pitelegram.control import envelope as envelopes
from pitelegram.control.envelope import Envelope
from pitelegram.kernel.jsonio import loads

SCHEMA_VERSION = 1

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

_TOP_LEVEL = frozenset({"schema_version", "action", "request_id", "dry_run", "target", "args"})

_NAME_LIMIT = 256

_PATH_LIMIT, _PATHS_LIMIT = 80, 16

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters other than TAB and LF."""


class Invalid(ValueError):
    """The request breaks the schema.

    @ivar action: the action as far as it is known, else the empty string.
    @ivar fields: JSON paths of what is wrong; never a value.
    """

    def __init__(self, message: str, *fields: str, action: str = "") -> None:
        super().__init__(message)
        self.action = action
        self.fields = [field[:_PATH_LIMIT] for field in fields[:_PATHS_LIMIT]]

    def details(self) -> dict[str, Any]:
        """Return C{details} of the envelope's error."""
        field = self.fields[0].removeprefix("$.") if self.fields else "request"
        return {"field": field, "fields": self.fields}


@attrs.frozen(kw_only=True)
class Request:
    """A valid request."""

    action: str
    request_id: str | None
    dry_run: bool
    target: dict[str, Any]
    args: dict[str, Any]

    @property
    def reads(self) -> bool:
        """Whether it changes nothing (and needs no request id)."""
        return ACTIONS[self.action].read


Check = Callable[[Any], str | None]
"""Returns what would be right, or None when the value is right."""


def _text(limit: int | None = None) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, str) or not value.strip():
            return "must be a text that is not empty"
        if limit is not None and len(value) > limit:
            return f"must have at most {limit} characters"
        if _CONTROLS.search(value):
            return "must have no control characters other than TAB and LF"
        return None

    return check


def _line(value: Any) -> str | None:
    if not isinstance(value, str) or not value or len(value) > 4096:
        return "must be a text of 1 to 4096 characters"
    return "must be one line" if _CONTROLS.search(value) or "\n" in value else None


def _choice(*choices: str) -> Check:
    def check(value: Any) -> str | None:
        return None if value in choices else f"must be one of {', '.join(choices)}"

    return check


def _session_ref(value: Any) -> str | None:
    wrong = _line(value)
    if wrong is not None:
        return wrong
    parts = value.split("/")
    if value.startswith("/") or "\\" in value or any(part in ("", ".", "..") for part in parts):
        return "must be a file name below Pi's sessions directory"
    return None


def _option(value: Any) -> str | None:
    if isinstance(value, str):
        return _line(value)
    right = type(value) is int and 0 <= value < 1000
    return None if right else "must be the option's text, or its number from 0"


def _boolean(value: Any) -> str | None:
    return None if type(value) is bool else "must be true or false"


def _true(value: Any) -> str | None:
    return None if value is True else "must be true"


@attrs.frozen(kw_only=True)
class Action:
    """One row of the table of actions.

    @ivar on_worker: the target names a worker; otherwise there is none.
    @ivar required: arguments that must be there.
    @ivar optional: arguments that may be there.
    @ivar one_of: exactly one of these must be there.
    @ivar read: changes nothing.
    """

    on_worker: bool = True
    required: Mapping[str, Check] = attrs.Factory(dict)
    optional: Mapping[str, Check] = attrs.Factory(dict)
    one_of: Mapping[str, Check] = attrs.Factory(dict)
    read: bool = False


THINKING_LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")

ACTIONS: Mapping[str, Action] = {
    "noop": Action(on_worker=False, read=True),
    "resolve_target": Action(read=True),
    "worker.get_state": Action(read=True),
    "worker.start": Action(on_worker=False, required={"directory": _line}),
    "worker.stop": Action(),
    "worker.restart": Action(),
    "worker.forget": Action(),
    "worker.abort": Action(),
    "worker.clear_queue": Action(),
    "worker.compact": Action(optional={"instructions": _text()}),
    "worker.new_session": Action(),
    "worker.prompt": Action(required={"text": _text()}),
    "worker.steer": Action(required={"text": _text()}),
    "worker.set_model": Action(required={"provider": _line, "model": _line}),
    "worker.set_thinking_level": Action(required={"level": _choice(*THINKING_LEVELS)}),
    "worker.switch_session": Action(required={"session_ref": _session_ref}),
    "worker.answer": Action(
        required={"dialog_ref": _line},
        one_of={"option": _option, "text": _text(), "confirm": _boolean, "cancel": _true},
    ),
    "outbox.retry": Action(on_worker=False, required={"key": _line}),
    "threads.review": Action(on_worker=False),
    "threads.delete_reviewed": Action(on_worker=False),
}


def validate(value: Mapping[str, Any]) -> Request:
    """Check a parsed object against the schema.

    @raise Invalid: with the JSON paths of what is wrong.
    """
    action = value.get("action")
    known = action if isinstance(action, str) and action in ACTIONS else ""
    if type(value.get("schema_version")) is not int or value["schema_version"] != SCHEMA_VERSION:
        raise Invalid("schema_version must be the integer 1", "$.schema_version", action=known)
    foreign = sorted(set(value) - _TOP_LEVEL)
    if foreign:
        paths = [f"$.{name}" for name in foreign]
        raise Invalid("the request has unknown fields", *paths, action=known)
    if not known:
        raise Invalid("action must be one of the known actions", "$.action")
    try:
        return _validate(known, ACTIONS[known], value)
    except Invalid as wrong:
        wrong.action = known
        raise


def _validate(name: str, action: Action, value: Mapping[str, Any]) -> Request:
    dry_run = value.get("dry_run", False)
    if type(dry_run) is not bool:
        raise Invalid("dry_run must be true or false", "$.dry_run")
    request_id = value.get("request_id")
    if request_id is None and not dry_run and not action.read:
        raise Invalid("request_id is needed for a change", "$.request_id")
    if request_id is not None and not (
        isinstance(request_id, str) and REQUEST_ID.fullmatch(request_id)
    ):
        raise Invalid("request_id must be 1 to 128 of A-Z a-z 0-9 . _ -", "$.request_id")
    return Request(
        action=name,
        request_id=request_id,
        dry_run=dry_run,
        target=_target(action, value.get("target")),
        args=_args(action, value.get("args")),
    )


def _object(value: Any, path: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Invalid(f"{path[2:]} must be an object", path)
    return value


def _target(action: Action, value: Any) -> dict[str, Any]:
    target = _object(value, "$.target")
    allowed = {"name", "worker_id"} if action.on_worker else set()
    foreign = sorted(set(target) - allowed)
    if foreign:
        raise Invalid(
            "the target has fields it cannot have", *(f"$.target.{name}" for name in foreign)
        )
    if action.on_worker and len(target) != 1:
        raise Invalid("the target must have either name or worker_id", "$.target")
    for name, item in target.items():
        if _line(item) is not None or len(item) > _NAME_LIMIT:
            raise Invalid(f"target.{name} must be a short text", f"$.target.{name}")
    return target


def _args(action: Action, value: Any) -> dict[str, Any]:
    args = _object(value, "$.args")
    checks = {**action.required, **action.optional, **action.one_of}
    foreign = sorted(set(args) - set(checks))
    if foreign:
        raise Invalid("args has fields it cannot have", *(f"$.args.{name}" for name in foreign))
    missing = sorted(set(action.required) - set(args))
    if missing:
        raise Invalid("an argument is missing", *(f"$.args.{name}" for name in missing))
    if action.one_of and len(set(action.one_of) & set(args)) != 1:
        raise Invalid(f"exactly one of {', '.join(action.one_of)} must be there", "$.args")
    for name, item in args.items():
        wrong = checks[name](item)
        if wrong is not None:
            raise Invalid(f"args.{name} {wrong}", f"$.args.{name}")
    return args


def dry_run(request: Request) -> Envelope:
    """Answer a dry run: what would be asked, without looking at anything."""
    return envelopes.make(
        action=request.action,
        request_id=request.request_id,
        dry_run=True,
        status="noop" if request.action == "noop" else "dry_run",
        disposition="no_receipt",
        result={"target": request.target, "args": request.args},
    )


def restored(action: str, request_id: str, form: str) -> Request | None:
    """Return the request of a stored canonical form; None for what is none (any more).

    Its target is how it was resolved, not how it was named.
    """
    try:
        parsed = loads(form)
        args = parsed["args"]
        known = ACTIONS[action]
        right = action == "worker.start" or _args(known, args) is not None
    except (ValueError, TypeError, KeyError, Invalid):
        return None
    if not right or known.read or not REQUEST_ID.fullmatch(request_id):
        return None
    return Request(action=action, request_id=request_id, dry_run=False, target={}, args=args)

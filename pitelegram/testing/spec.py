"""Is a call one that the Bot API knows?  Checked against a trimmed copy of its description."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Any


@lru_cache(maxsize=1)
def methods() -> dict[str, dict[str, dict[str, Any]]]:
    """Return C{{method: {parameter: {"types", "required"}}}}."""
    source = resources.files("pitelegram.testing").joinpath("botapi_spec.json")
    return json.loads(source.read_text("utf-8"))["methods"]


def problems(method: str, params: dict[str, Any], files: Iterable[str] = ()) -> list[str]:
    """Return what is wrong with a call, in sentences; an empty list is a good call.

    @param files: names of the parts that carry files.
    """
    known = methods().get(method)
    if known is None:
        return [f"{method} is not a method"]
    attached = set(files)
    found = [
        f"{method} needs {name}"
        for name, field in known.items()
        if field["required"] and name not in params and name not in attached
    ]
    for name, value in params.items():
        if name not in known:
            found.append(f"{method} has no parameter {name}")
        elif value is not None and not any(_fits(value, kind) for kind in known[name]["types"]):
            wanted = " or ".join(known[name]["types"])
            found.append(f"{method}: {name} must be {wanted}, not {type(value).__name__}")
    text = json.dumps(params, default=str)
    found.extend(
        f"{method}: the file part {name} is named nowhere"
        for name in sorted(attached)
        if name not in known and f"attach://{name}" not in text
    )
    return found


def check_call(method: str, params: dict[str, Any], files: Iterable[str] = ()) -> None:
    """Raise L{AssertionError} unless the call is good."""
    found = problems(method, params, files)
    if found:
        raise AssertionError("; ".join(found))


def _fits(value: Any, kind: str) -> bool:
    if kind.startswith("Array of "):
        return isinstance(value, list) and all(_fits(item, kind[9:]) for item in value)
    if kind == "Integer":
        return type(value) is int
    if kind == "Float":
        return type(value) in (int, float)
    if kind == "Boolean":
        return type(value) is bool
    if kind == "String":
        return isinstance(value, str)
    if kind == "InputFile":
        return isinstance(value, str)
    return isinstance(value, dict)

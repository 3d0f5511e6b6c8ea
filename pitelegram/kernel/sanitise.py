"""The last look at JSON before it leaves: nothing secret goes out, whoever put it in.

What is built from named parts already is looked at again here.  Fields of an exact protocol (request
ids, names, keys) are let through because they match their grammar, never because somebody made them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from pitelegram.kernel.redact import MARK, SECRETS, Secrets, is_private_name

DEEPEST = 64

Grammars = Mapping[str, re.Pattern[str]]


def public(
    value: Any,
    exact: Grammars | None = None,
    keep: Collection[str] = (),
    secrets: Secrets = SECRETS,
) -> Any:
    """Return JSON data fit for the public.

    Members with private names go; every other text is redacted by all rules.

    @param exact: by member name: what a text must fully match to stay as it is.
    @param keep: private names that this document shows by contract.
    """
    return _Public(exact or {}, frozenset(keep), secrets).of(value, "", 0)


def owned(value: Any, secrets: Secrets = SECRETS) -> Any:
    """Return JSON data for the owner alone: it loses bot tokens and known secrets, nothing else."""
    return _owned(value, secrets, 0)


class _Public:
    def __init__(self, exact: Grammars, keep: frozenset[str], secrets: Secrets) -> None:
        self._exact = exact
        self._keep = keep
        self._secrets = secrets
        self._names: dict[str, str | None] = {}

    def of(self, value: Any, name: str, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value, name)
        if depth > DEEPEST:
            return MARK
        if isinstance(value, dict):
            return {
                shown: self.of(item, key, depth + 1)
                for key, item in value.items()
                if (shown := self._name(key)) is not None
            }
        if isinstance(value, list | tuple):
            return [self.of(item, name, depth + 1) for item in value]
        return value

    def _text(self, text: str, name: str) -> str:
        grammar = self._exact.get(name)
        if grammar is not None and grammar.fullmatch(text) and self._secrets.redact(text) == text:
            return text
        return self._secrets.label_public(text)

    def _name(self, name: str) -> str | None:
        """A member's name as it is shown, None for a private one; it is a text as well."""
        if name not in self._names:
            private = name not in self._keep and is_private_name(name)
            self._names[name] = None if private else self._secrets.label_public(name)
        return self._names[name]


def _owned(value: Any, secrets: Secrets, depth: int) -> Any:
    if isinstance(value, str):
        return secrets.redact(value)
    if depth > DEEPEST:
        return MARK
    if isinstance(value, dict):
        return {
            secrets.redact(key): _owned(item, secrets, depth + 1) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_owned(item, secrets, depth + 1) for item in value]
    return value

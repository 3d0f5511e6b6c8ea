"""Which workers an operator may choose, and which messages he is asked about."""

from __future__ import annotations

import re
from typing import Any

import attrs

from pitelegram.routing.choosertexts import MOST_WORKERS, Worker, label
from pitelegram.routing.interfaces import IRegistry
from pitelegram.store.interfaces import IBindings
from pitelegram.threads.interfaces import IThreads

ENABLED = "enabled"
"""The thread mode in which choosers are shown."""
DISABLED = "disabled"
"""The one in which nothing waits for them; while the mode is not known, it does."""

START = "/start"
_GREETINGS = (START, "/help")
_COMMAND = re.compile(r"/[A-Za-z0-9_]{1,64}(?:@\w+)?(?:\s|$)")


def command_in(message: dict[str, Any]) -> str | None:
    """Return the whole text of a message that is a bot command."""
    text = message.get("text")
    return text if isinstance(text, str) and _COMMAND.match(text) else None


def word_of(command: str) -> str:
    """Return a command's first word, in lower case and without C{@bot}."""
    return command.split(None, 1)[0].partition("@")[0].lower() if command else ""


@attrs.define(eq=False)
class Candidates:
    """The live workers, as their Threads are called."""

    _bindings: IBindings
    _registry: IRegistry
    _threads: IThreads

    def possible(self) -> bool:
        """Whether anything is asked just now: there are Threads."""
        return bool(self._threads.mode() == ENABLED)

    def excluded(self) -> bool:
        """Whether nothing will be asked: there certainly are no Threads."""
        return bool(self._threads.mode() == DISABLED)

    def workers(self) -> list[Worker]:
        """Return the live workers with a Thread, by slot; equal titles get their letter."""
        found = []
        for follower in self._registry.followers():
            binding = self._bindings.get(follower.binding_key) if follower.ready else None
            if binding is not None and binding.thread_id is not None:
                title = binding.title or self._threads.title(binding.binding_key)
                found.append((binding.slot or "?", binding.binding_key, title))
        titles = [title for _, _, title in found]
        return [
            Worker(
                binding_key=key,
                label=label(title if titles.count(title) == 1 else f"{slot} · {title}"),
            )
            for slot, key, title in sorted(found)[:MOST_WORKERS]
        ]

    def prefers(self, message: dict[str, Any]) -> bool:
        """Whether a greeting that nobody owns is to be chosen for, instead of answered."""
        command = command_in(message)
        if command is None or not self.possible():
            return False
        return word_of(command) in _GREETINGS and bool(self.workers())

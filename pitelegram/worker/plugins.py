"""Plug-ins that are installed beside this program: transcribers and synthesizers.

Any installed distribution may name callables under the entry points L{TRANSCRIBERS} and
L{SYNTHESIZERS}.  They are looked up before anything of a project could be imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from twisted.logger import Logger

from pitelegram.errors import ConfigError
from pitelegram.worker.providers import Providers

TRANSCRIBERS = "pitelegram.transcribers"
SYNTHESIZERS = "pitelegram.synthesizers"

_log = Logger()


def _installed(group: str) -> Iterable[EntryPoint]:
    return entry_points(group=group)


def installed_providers(
    find: Callable[[str], Iterable[EntryPoint]] = _installed,
) -> Providers:
    """Return what is installed, ordered by name; one that cannot be loaded is logged and left out.

    @param find: returns the entry points of a group.
    """
    providers = Providers()
    groups: tuple[tuple[str, Callable[[str, Any], Any]], ...] = (
        (TRANSCRIBERS, providers.register_transcriber),
        (SYNTHESIZERS, providers.register_synthesizer),
    )
    for group, register in groups:
        for entry in sorted(find(group), key=lambda entry: entry.name):
            try:
                work = entry.load()
                if not callable(work):
                    raise ConfigError("it is not callable")
                register(entry.name, work)
            except Exception as error:
                _log.warn(
                    "plug-in {name} of {group} is left out: {why}",
                    name=entry.name,
                    group=group,
                    why=type(error).__name__,
                )
    return providers

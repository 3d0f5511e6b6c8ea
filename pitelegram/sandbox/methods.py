"""The methods of the emulated Bot API: one table, from small modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorTime

from pitelegram.sandbox import account, editing, rich, sending, topics
from pitelegram.sandbox.errors import ApiError
from pitelegram.sandbox.parameters import Parameters
from pitelegram.sandbox.polling import Poller
from pitelegram.sandbox.world import World

Method = Callable[[World, Parameters], Any]

_METHODS: dict[str, Method] = {
    **account.METHODS,
    **editing.METHODS,
    **rich.METHODS,
    **sending.METHODS,
    **topics.METHODS,
}


class BotApiMethods:
    """Calls of one bot.

    @ivar poller: the long poll and the webhook.
    """

    def __init__(self, world: World, clock: IReactorTime) -> None:
        self.world = world
        self.poller = Poller(world, clock)
        table = _METHODS | self.poller.methods()
        self._table = {name.lower(): (name, method) for name, method in table.items()}

    def name_of(self, method: str) -> str | None:
        """Return a method's own spelling, None when it does not exist."""
        entry = self._table.get(method.lower())
        return entry[0] if entry else None

    def call(self, method: str, parameters: Parameters) -> Deferred[Any]:
        """Run a method; fires with its C{result}.

        Names that the method does not know are noted in C{world.warnings}.

        @raise ApiError: as the service would refuse.
        """
        entry = self._table.get(method.lower())
        if entry is None:
            return maybeDeferred(_unknown_method)
        name, function = entry
        running: Deferred[Any] = maybeDeferred(function, self.world, parameters)
        for unknown in parameters.unknown():
            self.world.warnings.append(f"{name}: unknown parameter {unknown!r}")
        return running


def _unknown_method() -> None:
    raise ApiError(404, "Not Found: method not found")

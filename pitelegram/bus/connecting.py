"""Connecting to a UNIX socket without the weight of C{twisted.internet.endpoints}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IAddress, IConnector
from twisted.internet.protocol import ClientFactory
from twisted.python.failure import Failure

from pitelegram.bus.leaderlink import LeaderLink
from pitelegram.errors import LinkLost
from pitelegram.kernel.deferring import deferred

CONNECT_LIMIT = 5.0

Connect = Callable[[str, LeaderLink], Deferred[None]]
"""Connects a link to a path; fires when it has its transport."""


def unix_connect(reactor: Any) -> Connect:
    """Return a way to connect over UNIX sockets of C{reactor}."""

    @deferred
    async def connect(path: str, link: LeaderLink) -> None:
        connector = reactor.connectUNIX(path, _Once(link), CONNECT_LIMIT)
        try:
            await link.made.when()
        except CancelledError:
            connector.disconnect()
            raise

    return connect


class _Once(ClientFactory):
    noisy = False

    def __init__(self, link: LeaderLink) -> None:
        self._link = link

    def buildProtocol(self, addr: IAddress | None) -> LeaderLink:
        return self._link

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        self._link.made.fire(Failure(LinkLost("the leader's socket does not answer")))

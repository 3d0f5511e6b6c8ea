"""The leader's end of the bus: one private UNIX socket, one link per follower."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet.defer import DeferredList
from twisted.internet.interfaces import IAddress, IReactorTime
from twisted.internet.protocol import Factory

from pitelegram.bus.interfaces import IBusLeader, ICredentials
from pitelegram.bus.link import FollowerLink, LeaderSide
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.peers import PeerIds, peer_ids
from pitelegram.kernel.sockets import PrivatePort, listen_privately

_GOODBYE = 2.0
"""Seconds that links get to take what was written, when the leader stops."""


@attrs.define(eq=False, slots=False)
class BusServer(Service):
    """Listens for followers.

    Start it only while this process owns the profile's transport: a socket that nobody answers on is
    removed then.

    @ivar path: the socket; its directory is private and exists.
    @ivar random_bytes: C{os.urandom} or a stand-in.
    @ivar build: what this program calls itself, at most 128 characters.
    """

    path: Path
    credentials: ICredentials
    leader: IBusLeader
    reactor: Any
    clock: IReactorTime
    random_bytes: Callable[[int], bytes] = attrs.field(repr=False)
    build: str
    _peer_ids: Callable[[Any], PeerIds] = attrs.field(default=peer_ids, alias="peer_ids")
    _links: set[FollowerLink] = attrs.field(factory=set, init=False)
    _port: PrivatePort | None = attrs.field(default=None, init=False)

    def startService(self) -> None:
        """Listen.

        @raise pitelegram.errors.SocketInUse: another live process listens there.
        @raise pitelegram.errors.UnsafeFile: the path is taken by something that is not ours.
        """
        self._port = listen_privately(self.path, _Links(self), self.reactor, "bus socket")
        super().startService()

    @property
    def problem(self) -> str | None:
        """The sentence for the operator while no worker can connect."""
        if self._port is not None and self._port.in_place:
            return None
        return "the bus socket is gone: workers that lose their connection stay away"

    @deferred
    async def stopService(self) -> None:
        """Close the socket and every link; fires when all are gone."""
        Service.stopService(self)
        port, self._port = self._port, None
        if port is not None:
            await port.stopListening()
        links = list(self._links)
        for link in links:
            link.hang_up()
        impatience = self.clock.callLater(_GOODBYE, _abort, links)
        await DeferredList([link.gone.when() for link in links])
        if impatience.active():
            impatience.cancel()

    def new_link(self) -> FollowerLink:
        """Return the protocol for one connection."""
        link = FollowerLink(
            LeaderSide(
                credentials=self.credentials,
                leader=self.leader,
                clock=self.clock,
                random_bytes=self.random_bytes,
                build=self.build,
                peer_ids=self._peer_ids,
                uid=os.geteuid(),
            )
        )
        self._links.add(link)
        link.gone.when().addCallback(lambda _: self._links.discard(link))
        return link


def _abort(links: list[FollowerLink]) -> None:
    for link in links:
        link.abort()


class _Links(Factory):
    noisy = False

    def __init__(self, server: BusServer) -> None:
        self._server = server

    def buildProtocol(self, addr: IAddress | None) -> FollowerLink:
        return self._server.new_link()

"""The follower's end of the bus: finds the leader, stays registered, comes back."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bus.connecting import Connect, unix_connect
from pitelegram.bus.interfaces import IBusFollower, IEndpoint
from pitelegram.bus.leaderlink import LeaderLink
from pitelegram.errors import BusError, BusUnauthorized, Refusal, StaleGeneration
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import deferred, sleep

_FIRST_DELAY = 0.25
_LAST_DELAY = 5.0


@attrs.define(eq=False, slots=False)
class BusClient(Service):
    """Keeps one registered link to whoever leads.

    One loop: locate, connect, shake hands, register, beat until the link fails, wait, again.  A stale
    generation registers anew on the same connection.  The delay between attempts grows from a quarter
    of a second to five, and starts over with the first heartbeat that was answered.

    @ivar credential: C{shared} or C{worker:<specId>}.
    @ivar unauthorized: called each time one side did not prove itself to the other.
    @ivar link: the registered link, None while there is none.
    """

    endpoint: IEndpoint
    credential: str
    follower: IBusFollower
    reactor: Any
    clock: IReactorTime
    random: Random
    build: str
    random_bytes: Callable[[int], bytes] = attrs.field(repr=False)
    connect: Connect = attrs.field(
        default=attrs.Factory(lambda self: unix_connect(self.reactor), takes_self=True)
    )
    unauthorized: Callable[[BusUnauthorized], None] | None = None
    link: LeaderLink | None = attrs.field(default=None, init=False)
    _running: Deferred[None] | None = attrs.field(default=None, init=False)
    _log = Logger()

    def startService(self) -> None:
        """Begin to look for the leader."""
        super().startService()
        self._running = self._run()

    @deferred
    async def stopService(self) -> None:
        """Close the link and fire when it is closed.  It does not say C{disconnect}."""
        Service.stopService(self)
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await running

    @deferred
    async def _run(self) -> None:
        backoff = Backoff(_FIRST_DELAY, _LAST_DELAY, self.random)
        while self.running:
            try:
                await self._session(backoff)
            except (BusError, Refusal) as error:
                self._log.info("bus session ended: {reason}", reason=str(error))
                if isinstance(error, BusUnauthorized) and self.unauthorized is not None:
                    self.unauthorized(error)
            except CancelledError:
                return
            except Exception:
                self._log.failure("bus session failed")
            if not self.running:
                return
            try:
                await sleep(self.clock, backoff.next())
            except CancelledError:
                return

    async def _session(self, backoff: Backoff) -> None:
        found = self.endpoint.locate()
        if found is None:
            return
        path, secret = found
        link = LeaderLink(self.follower, self.clock)
        await self.connect(path, link)
        try:
            await link.shake_hands(self.credential, secret, self.build, self.random_bytes)
            while True:
                await self._live(link, backoff)
        finally:
            self.link = None
            link.hang_up()
            await _closed(link, self.clock)
            if link.registration is not None:
                self.follower.lost()

    async def _live(self, link: LeaderLink, backoff: Backoff) -> None:
        registration = await link.register(self.follower.register_request())
        await self.follower.registered(link, registration)
        self.link = link
        try:
            await link.beat(backoff.reset)
        except StaleGeneration:
            self._log.info("the registration went stale; registering again")
        await sleep(self.clock, backoff.next())


async def _closed(link: LeaderLink, clock: IReactorTime) -> None:
    """Wait until the connection is closed, for a second at most before it is cut."""
    impatience = clock.callLater(1.0, link.end, "the leader did not close its side")
    await link.gone.when()
    if impatience.active():
        impatience.cancel()

"""Services that wait for their children."""

from __future__ import annotations

from typing import Any

from twisted.application.service import MultiService, Service
from twisted.internet.defer import Deferred, maybeDeferred, succeed

from pitelegram.kernel.deferring import deferred


class AsyncMultiService(MultiService):
    """Start children in order, each after the one before is up; stop them in reverse.

    L{startService} returns a Deferred that fails with the first child's failure; what had been
    started by then is stopped again.  (Twisted's own ignores what a child returns.)
    """

    @deferred
    async def startService(self) -> None:
        """Start every child; see the class."""
        Service.startService(self)
        started: list[Any] = []
        try:
            for child in list(self):
                started.append(child)
                await maybeDeferred(child.startService)
        except BaseException:
            for child in reversed(started):
                await maybeDeferred(child.stopService)
            raise

    @deferred
    async def stopService(self) -> None:
        """Stop every child in reverse order; the first failure is raised after all were tried."""
        Service.stopService(self)
        first: BaseException | None = None
        for child in reversed(list(self)):
            if not child.running:
                continue
            try:
                await maybeDeferred(child.stopService)
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    def addService(self, service: Any) -> Deferred[None]:
        """Add a child; when this service runs already, start it and return that Deferred."""
        self.services.append(service)
        if service.name is not None:
            self.namedServices[service.name] = service
        return maybeDeferred(service.startService) if self.running else succeed(None)

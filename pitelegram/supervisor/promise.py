"""A result that can be waited for again and again."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from pitelegram.kernel.observers import OneShot


class Promise:
    """As L{OneShot}, but waiting after it was kept waits for the next time."""

    def __init__(self) -> None:
        self._shot: OneShot[None] = OneShot()

    def when(self) -> Deferred[None]:
        """Fire, or fail, the next time it is kept or broken."""
        self.renew()
        return self._shot.when()

    def renew(self) -> None:
        """From now on it counts anew."""
        if self._shot.fired:
            self._shot = OneShot()

    def keep(self) -> None:
        """Fire all who wait."""
        self._shot.fire(None)

    def break_(self, error: Exception) -> None:
        """Fail all who wait."""
        self._shot.fire(Failure(error))

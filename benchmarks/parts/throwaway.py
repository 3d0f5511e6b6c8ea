"""A whole system on a directory that goes away with it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from pitelegram.testing.system import System


def on_system(name: str, work: Callable[[Any, System], Awaitable[None]]) -> None:
    """Call C{work} with the reactor and a system that is set up, and end everything after it.

    @param name: begins the directory's name.
    """
    print(f"{os.cpu_count()} cores, load average before {os.getloadavg()[0]:.2f}")
    base = Path(tempfile.mkdtemp(prefix=f"{name}-"))

    async def measured(reactor: Any) -> None:
        system = System(reactor, base)
        system.set_up()
        try:
            await work(reactor, system)
        finally:
            await system.tear_down()

    def begin(reactor: Any) -> Deferred[None]:
        return Deferred.fromCoroutine(measured(reactor))

    try:
        react(begin)
    finally:
        shutil.rmtree(base, ignore_errors=True)

"""What a leader stands on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from random import Random
from typing import Any

import attrs

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import is_alive
from pitelegram.kernel.paths import Paths
from pitelegram.routing.paired import Owner
from pitelegram.store.database import Database


@attrs.frozen(kw_only=True, eq=False)
class Ground:
    """What the leader stands on.

    @ivar secret: the bus secret of this acquisition.
    @ivar still_fresh: whether this process still owns the transport and was not away.
    @ivar fatal: ends the process with an exit code and a reason.
    """

    reactor: Any
    random: Random
    paths: Paths
    database: Database
    api: IBotApi
    owner: Owner
    bot_id: int
    epoch: str
    secret: bytes = attrs.field(repr=False)
    still_fresh: Callable[[], bool]
    fatal: Callable[[int, str], None]
    build: str
    random_bytes: Callable[[int], bytes] = os.urandom
    monotonic: Callable[[], float] = time.monotonic
    birth_lives: Callable[[ProcessBirth], bool] = is_alive

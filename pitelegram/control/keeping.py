"""Receipts that have served their time go; what nobody ended in a week is uncertain."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime

from pitelegram.control.commands import CommandDesk
from pitelegram.errors import StoreError
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.rounds import Rounds
from pitelegram.store.commands import HORIZON_MS
from pitelegram.store.receipts import ICommands

PERIOD = 3600.0
BATCH = 100
PAUSE = 0.05
"""Seconds between two batches, so that no update waits long behind one."""


class ReceiptRounds(Rounds):
    """Runs at start and hourly."""

    def __init__(self, clock: IReactorTime, commands: ICommands, desk: CommandDesk) -> None:
        super().__init__(clock, PERIOD)
        self._clock = clock
        self._commands = commands
        self._desk = desk

    @deferred
    async def round(self) -> None:
        """End what is stale, then forget what is old; a refusal of the store ends the round."""
        try:
            horizon = int(self._clock.seconds() * 1000) - HORIZON_MS
            for row in self._commands.started(horizon)[:BATCH]:
                await self._desk.give_up(row)
            while await self._commands.forget(BATCH) >= BATCH:
                await sleep(self._clock, PAUSE)
        except StoreError as error:
            self._log.warn("receipts are not looked after in this hour: {why}", why=str(error))

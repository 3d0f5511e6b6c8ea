"""The parts of delivery, wired to each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from twisted.internet.interfaces import IReactorTime

from pitelegram.botapi.interfaces import IBotApi, ISendGate
from pitelegram.delivery.announce import Announcer
from pitelegram.delivery.intake import Intake, RunBlocking
from pitelegram.delivery.interfaces import IThreadLoss
from pitelegram.delivery.notices import Notices
from pitelegram.delivery.sender import Sender
from pitelegram.delivery.spool import FILE_LIMIT, Spool
from pitelegram.delivery.takeback import TakeBack
from pitelegram.delivery.transmitter import Closed, Destination, Transmitter
from pitelegram.kernel.services import AsyncMultiService
from pitelegram.store.interfaces import IBindings, ILeadership, IOutbox
from pitelegram.targets import TelegramTarget


async def _nothing(binding_key: str, target: TelegramTarget) -> None:
    """Nobody wants to hear it."""


class DeliveryService(AsyncMultiService):
    """Sender and announcer as one service.

    @param spool: the spool directory.
    @param run_blocking: runs file copies, C{threads.deferToThread} in the daemon.
    @param resend: whether uncertain sends are repeated (C{outbox.ambiguous} is C{resend}).
    @param allowed: whether a chat is the paired owner's private one.
    @param on_unauthorized: called at each 401.
    @param destination: where a binding's messages go (C{IThreads.destination}); its own target
        unless given.
    @param closed: told of a Thread that the user closed (C{IThreads.found_closed}).
    @ivar intake: the L{pitelegram.delivery.interfaces.IDelivery}.
    @ivar notices: the L{pitelegram.routing.interfaces.INotices}.
    """

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        outbox: IOutbox,
        bindings: IBindings,
        facts: ILeadership,
        api: IBotApi,
        gate: ISendGate,
        losses: IThreadLoss,
        spool: Path,
        *,
        run_blocking: RunBlocking,
        resend: Callable[[], bool] = lambda: False,
        allowed: Callable[[int], bool] = lambda chat_id: True,
        on_unauthorized: Callable[[], None] = lambda: None,
        destination: Destination | None = None,
        closed: Closed = _nothing,
    ) -> None:
        super().__init__()
        files = Spool(spool, max(FILE_LIMIT, api.download_limit))
        takeback = TakeBack(api, clock, random)
        transmitter = Transmitter(
            clock,
            outbox,
            bindings,
            api,
            gate,
            losses,
            files,
            takeback,
            resend=resend,
            allowed=allowed,
            announce=lambda *facts: self.announcer.announce(*facts),
            closed=closed,
            destination=destination,
        )
        self.sender = Sender(
            clock,
            random,
            outbox,
            gate,
            transmitter,
            files,
            resend=resend,
            on_unauthorized=on_unauthorized,
        )
        self.announcer = Announcer(
            clock,
            random,
            outbox,
            bindings,
            facts,
            api,
            gate,
            losses,
            takeback,
            target=transmitter.target,
        )
        self.intake = Intake(outbox, files, self.sender, self.announcer, run_blocking)
        self.notices = Notices(outbox, self.sender.kick, lambda: f"{random.getrandbits(96):024x}")
        self.addService(self.sender)
        self.addService(self.announcer)

"""What the leader asks of this worker, to the parts that do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.bus.interfaces import IBusFollower
from pitelegram.kernel.deferring import deferred
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.control import Control
from pitelegram.worker.dialogs import Dialogs
from pitelegram.worker.intake import Intake
from pitelegram.worker.orders import Orders
from pitelegram.worker.preferences import Preferences
from pitelegram.worker.previews import Previews
from pitelegram.worker.registration import Registration
from pitelegram.worker.report import Report
from pitelegram.worker.submitter import Submitter


@implementer(IBusFollower)
class Follower:
    """See L{IBusFollower}.

    @param stop: begins the end C{(drain, seconds)}.
    """

    _log = Logger()

    def __init__(
        self,
        inbox: IInbox,
        registration: Registration,
        report: Report,
        intake: Intake,
        control: Control,
        submitter: Submitter,
        dialogs: Dialogs,
        orders: Orders,
        preferences: Preferences,
        previews: Previews,
        stop: Callable[[bool, float], None],
    ) -> None:
        self._inbox = inbox
        self._registration = registration
        self._report = report
        self._intake = intake
        self._control = control
        self._submitter = submitter
        self._dialogs = dialogs
        self._orders = orders
        self._preferences = preferences
        self._previews = previews
        self._stop = stop

    def register_request(self) -> dict[str, Any]:
        """See L{IBusFollower.register_request}."""
        return self._registration.request()

    @deferred
    async def registered(self, link: Any, registration: dict[str, Any]) -> None:
        """See L{IBusFollower.registered}; the inbox has been open since the start."""
        await self._registration.registered(link, registration)
        self._log.info("registered with the leader")
        settings = registration.get("settings")
        if isinstance(settings, dict):
            self._preferences.take(settings)
        self._submitter.kick(new_link=True)
        self._previews.placed()
        self._dialogs.placed()
        self._orders.placed()

    def state(self) -> dict[str, Any]:
        """See L{IBusFollower.state}."""
        return self._report.state()

    def admit(
        self, delivery_id: str, update_id: int, kind: str, update: dict[str, Any]
    ) -> Deferred[tuple[str, str]]:
        """See L{IBusFollower.admit}."""
        return self._intake.admit(delivery_id, update_id, kind, update)

    def confirm_settled(self, delivery_ids: Sequence[str]) -> Deferred[None]:
        """See L{IBusFollower.confirm_settled}."""
        return self._inbox.confirm(delivery_ids)

    def control(self, request_id: str, command: dict[str, Any]) -> Deferred[Any]:
        """See L{IBusFollower.control}."""
        return self._control.execute(request_id, command)

    def shutdown(self, mode: str, deadline_ms: int) -> None:
        """See L{IBusFollower.shutdown}."""
        self._log.info("the leader asked for the end ({mode})", mode=mode)
        self._stop(mode == "drain", max(deadline_ms, 0) / 1000)

    @deferred
    async def replace_target(
        self, target: dict[str, int] | None, old_target: dict[str, int] | None, reason: str
    ) -> dict[str, Any]:
        """See L{IBusFollower.replace_target}."""
        self._registration.replaced(target)
        self._dialogs.placed()
        self._orders.placed()
        return {}

    def settings_told(self, settings: dict[str, Any]) -> None:
        """See L{IBusFollower.settings_told}."""
        self._preferences.take(settings)

    def lost(self) -> None:
        """See L{IBusFollower.lost}; the work goes on."""
        self._log.info("the link to the leader is gone")
        self._registration.lost()

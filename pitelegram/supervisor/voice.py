"""Saying what happens to a worker: log, audit table, and its Thread."""

from __future__ import annotations

from collections.abc import Callable

from twisted.logger import Logger

from pitelegram.kernel.deferring import spawn
from pitelegram.kernel.redact import redact_public
from pitelegram.routing.interfaces import INotices
from pitelegram.store.interfaces import ILeadership
from pitelegram.supervisor.life import LADDER, State

REASON_LIMIT = 300

ASK_RESTART = "ptd:r:"
ASK_FRESH = "ptd:f:"
KEEP_WAITING = "ptd:k:"
"""Callback data of the panel's buttons, before the spec id."""


class Voice:
    """Speaks for one spec.

    @param monotonic: seconds that only run forward.
    @ivar name: the worker's name.
    """

    _log = Logger()

    def __init__(
        self,
        leadership: ILeadership,
        notices: INotices,
        spec_id: str,
        binding_key: str,
        name: str,
        monotonic: Callable[[], float],
    ) -> None:
        self._monotonic = monotonic
        self._began: float | None = None
        self._leadership = leadership
        self._notices = notices
        self._spec_id = spec_id
        self._subject = f"spec:{spec_id}"
        self._binding_key = binding_key
        self.name = name

    def transition(self, before: State, state: State, actor: str, reason: str) -> None:
        """Put a transition into the log and the audit table.

        On the way down the time since it began is told with each phase, and with its end.
        """
        if state in LADDER and before not in LADDER:
            self._began = self._monotonic()
        elif before in LADDER and self._began is not None:
            reason = f"{reason}; {self._monotonic() - self._began:.1f} s after the end began"
        reason, change = redact_public(reason, REASON_LIMIT), f"{before.value} > {state.value}"
        self._log.info(
            "worker {worker}: {change} ({actor}: {reason})",
            worker=self.name,
            change=change,
            actor=actor,
            reason=reason,
        )
        audit = self._leadership.audit(self._subject, actor, change, reason)
        spawn(self._log, "writing the audit", audit)

    def ready(self, spawn_id: str | None) -> None:
        """It can be used."""
        self._post("ready", spawn_id, f"✅ {self.name} is ready.")

    def ended(self, spawn_id: str | None, what: str, pause: float) -> None:
        """It ended and will be started again."""
        again = max(1, round(pause))
        text = f"💥 {self.name} {what}. It is started again in {again} s."
        self._post("ended", spawn_id, text)

    def failed(self, spawn_id: str | None, what: str, session: bool = False) -> None:
        """It ended and waits for an operator, who may give up its session, where there is one."""
        retry = ("♻️ Retry", f"{ASK_RESTART}{self._spec_id}")
        fresh = [("🆕 New session", f"{ASK_FRESH}{self._spec_id}")] if session else []
        self._post("failed", spawn_id, f"❌ {self.name} {what}.", retry, *fresh)

    def overdue(self, spawn_id: str | None) -> None:
        """It lives but does not register."""
        self._post(
            "overdue",
            spawn_id,
            f"⚠️ {self.name} still runs but does not answer.",
            ("♻️ Start anew", f"{ASK_RESTART}{self._spec_id}"),
            ("⏳ Keep waiting", f"{KEEP_WAITING}{self._spec_id}"),
        )

    def _post(self, kind: str, spawn_id: str | None, text: str, *buttons: tuple[str, str]) -> None:
        """Post once per spawn and kind."""
        posted = self._notices.post(self._binding_key, text, f"{kind}-{spawn_id}", buttons)
        spawn(self._log, "posting a notice", posted)

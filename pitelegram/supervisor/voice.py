"""Saying what happens to a worker: log, audit table, and its Thread."""

from __future__ import annotations

from twisted.logger import Logger

from pitelegram.kernel.deferring import spawn
from pitelegram.kernel.redact import redact_public
from pitelegram.routing.interfaces import INotices
from pitelegram.store.interfaces import ILeadership
from pitelegram.supervisor.life import State

REASON_LIMIT = 300


class Voice:
    """Speaks for one spec.

    @ivar name: the worker's name.
    """

    _log = Logger()

    def __init__(
        self, leadership: ILeadership, notices: INotices, spec_id: str, binding_key: str, name: str
    ) -> None:
        self._leadership = leadership
        self._notices = notices
        self._subject = f"spec:{spec_id}"
        self._binding_key = binding_key
        self.name = name

    def transition(self, before: State, state: State, actor: str, reason: str) -> None:
        """Put a transition into the log and the audit table."""
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

    def failed(self, spawn_id: str | None, what: str) -> None:
        """It ended and waits for an operator."""
        self._post("failed", spawn_id, f"❌ {self.name} {what}. ♻️ Restart tries again.")

    def overdue(self, spawn_id: str | None) -> None:
        """It lives but does not register."""
        self._post(
            "overdue",
            spawn_id,
            f"⚠️ {self.name} still runs but does not answer. In 👷 Workers you can start it anew or"
            " keep waiting.",
        )

    def _post(self, kind: str, spawn_id: str | None, text: str) -> None:
        """Post once per spawn and kind."""
        posted = self._notices.post(self._binding_key, text, f"{kind}-{spawn_id}")
        spawn(self._log, "posting a notice", posted)

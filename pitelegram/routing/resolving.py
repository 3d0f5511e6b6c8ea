"""Where a row goes."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.logger import Logger

from pitelegram.routing.choosing import Choosing
from pitelegram.routing.interfaces import IDaemonTarget
from pitelegram.routing.lanes import DAEMON, NOBODY, WORKER, Destination, Entry
from pitelegram.routing.owners import MessageOwners
from pitelegram.routing.places import Places
from pitelegram.store.rows import Binding, Incoming, JournalRow
from pitelegram.targets import TelegramTarget


@attrs.define(eq=False)
class Resolver:
    """Answers for each row, in this order: its pin; what was chosen for it; the daemon; the owner of
    the message that an edit, a button or a reaction belongs to; the binding of the target; the
    operator's choice; nobody.
    """

    _places: Places
    _owners: MessageOwners
    _daemon: IDaemonTarget
    _choosing: Choosing
    _log = Logger()

    def resolve(self, entry: Entry) -> Destination:
        """Return where C{entry} goes now."""
        if entry.recipient is not None:
            return Destination(WORKER, entry.recipient)
        kept = self._choosing.kept(entry)
        if kept is not None:
            return kept
        update = entry.update()
        found = self.resolve_row(entry.row, update)
        if found.kind != NOBODY or self._places.owner_of(entry.row.target) is not None:
            return found
        return self._choosing.destination(entry.row, update) or found

    def resolve_row(self, row: JournalRow | Incoming, update: dict[str, Any]) -> Destination:
        """Return where an update goes that is pinned to nobody."""
        target = TelegramTarget(row.chat_id, row.thread_id)
        binding = self._places.owner_of(target)
        if self._is_daemons(row.kind, update, binding):
            return Destination(DAEMON, target.key, target)
        if row.kind != "message" and row.message_id is not None:
            owner = self._owners.owner(row.chat_id, row.message_id)
            if owner is not None and _is_worker(self._places.get(owner[0])):
                return Destination(WORKER, owner[0])
        if binding is not None and _is_worker(binding):
            return Destination(WORKER, binding.binding_key)
        return Destination(NOBODY, target.key, target)

    def _is_daemons(self, kind: str, update: dict[str, Any], binding: Binding | None) -> bool:
        try:
            return bool(self._daemon.wants(kind, update, binding))
        except Exception:
            self._log.failure("an update of kind {kind} could not be looked at", kind=kind)
            return False


def _is_worker(binding: Binding | None) -> bool:
    return binding is not None and binding.kind != "daemon"

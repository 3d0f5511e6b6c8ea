"""Where a row goes."""

from __future__ import annotations

import attrs
from twisted.logger import Logger

from pitelegram.routing.interfaces import IDaemonTarget
from pitelegram.routing.lanes import DAEMON, NOBODY, WORKER, Destination, Entry
from pitelegram.routing.owners import MessageOwners
from pitelegram.routing.places import Places
from pitelegram.store.rows import Binding


@attrs.define(eq=False)
class Resolver:
    """Answers for each row, in this order: its pin; the daemon; the owner of the message that an edit,
    a button or a reaction belongs to; the binding of the target; nobody.
    """

    _places: Places
    _owners: MessageOwners
    _daemon: IDaemonTarget
    _log = Logger()

    def resolve(self, entry: Entry) -> Destination:
        """Return where C{entry} goes now."""
        if entry.recipient is not None:
            return Destination(WORKER, entry.recipient)
        row = entry.row
        target = row.target
        binding = self._places.owner_of(target)
        if self._is_daemons(entry, binding):
            return Destination(DAEMON, target.key, target)
        if row.kind != "message" and row.message_id is not None:
            owner = self._owners.owner(row.chat_id, row.message_id)
            if owner is not None and _is_worker(self._places.get(owner[0])):
                return Destination(WORKER, owner[0])
        if binding is not None and _is_worker(binding):
            return Destination(WORKER, binding.binding_key)
        return Destination(NOBODY, target.key, target)

    def _is_daemons(self, entry: Entry, binding: Binding | None) -> bool:
        try:
            return bool(self._daemon.wants(entry.row.kind, entry.update(), binding))
        except Exception:
            self._log.failure("update {seq} could not be looked at", seq=entry.seq)
            return False


def _is_worker(binding: Binding | None) -> bool:
    return binding is not None and binding.kind != "daemon"

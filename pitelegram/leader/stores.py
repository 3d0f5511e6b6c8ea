"""Everything that the leader keeps in its database."""

from __future__ import annotations

import attrs

from pitelegram.store.attachments import Attachments
from pitelegram.store.bindings import Bindings
from pitelegram.store.choosers import Choosers
from pitelegram.store.cleanups import Cleanups
from pitelegram.store.database import Database
from pitelegram.store.journal import Journal
from pitelegram.store.leadership import Leadership
from pitelegram.store.outbox import Outbox
from pitelegram.store.pickers import Pickers
from pitelegram.store.specs import Specs


@attrs.frozen(kw_only=True)
class Stores:
    """One object per kind of row, all on the same database."""

    leadership: Leadership
    journal: Journal
    specs: Specs
    bindings: Bindings
    outbox: Outbox
    cleanups: Cleanups
    attachments: Attachments
    pickers: Pickers
    choosers: Choosers

    @classmethod
    def of(cls, database: Database) -> Stores:
        """Return the stores of a database."""
        kinds = {
            "leadership": Leadership,
            "journal": Journal,
            "specs": Specs,
            "bindings": Bindings,
            "outbox": Outbox,
            "cleanups": Cleanups,
            "attachments": Attachments,
            "pickers": Pickers,
            "choosers": Choosers,
        }
        return cls(**{name: kind(database) for name, kind in kinds.items()})

"""Whether a follower is the very process that was made for its spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from pitelegram.errors import BusBadRequest
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import process_birth
from pitelegram.routing.claims import Claim
from pitelegram.store.interfaces import ISpecs

UNAVAILABLE = "continuity_unavailable: "
"""Begins every refusal of here: nothing is published for that follower and no route moves."""


@attrs.frozen
class Witness:
    """Compares a managed follower with what is recorded of its spawn and with the system.

    An attached one has no record: its process is compared where it would replace another
    (L{pitelegram.routing.claims.check_replacement}).

    @param birth_of: the birth id of a pid, None for none.
    """

    _specs: ISpecs
    _birth_of: Callable[[int], str | None] = process_birth

    def check(self, claim: Claim, registration: dict[str, Any]) -> None:
        """See that a registration is of a living process, and of the recorded one once that is known.

        @raise BusBadRequest: it is not; nothing may change then.
        """
        if claim.spec_id is None:
            return
        claimed = ProcessBirth(registration["pid"], registration["processBirthId"])
        if self._birth_of(claimed.pid) != claimed.birth:
            raise BusBadRequest(f"{UNAVAILABLE}there is no such process")
        spawns = self._specs.live_spawns(claim.spec_id)
        spawn = next((each for each in spawns if each.spawn_id == claim.spawn_id), None)
        if spawn is None:
            raise BusBadRequest(f"{UNAVAILABLE}this attempt to make a worker has ended")
        recorded = (spawn.pid, spawn.birth)
        if recorded not in ((None, None), (claimed.pid, claimed.birth)):
            raise BusBadRequest(f"{UNAVAILABLE}another process was made for this worker")

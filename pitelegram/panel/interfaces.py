"""What the panel asks of the daemon."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import Interface


class IStatusSource(Interface):
    """Where the Status screen gets its facts (the assembly provides it)."""

    def status() -> dict[str, Any]:
        """The public status document."""


class IDirectories(Interface):
    """Directories in which a worker may be started (C{supervisor.directories.Directories}).

    All paths are absolute and real.  Nothing outside the roots is ever returned.
    """

    def roots() -> list[str]:
        """The roots that exist now."""

    def recent(limit: int) -> list[str]:
        """Directories of known workers that may be started, the last used first."""

    def resolve(directory: str) -> str:
        """The real path of a directory, checked anew.

        @raise pitelegram.errors.Refusal: C{not-a-directory} or C{outside-roots}.
        """

    def children(directory: str) -> list[str]:
        """The directories in it that may be shown, by name; links that stay inside are resolved."""

    def parent(directory: str) -> str | None:
        """The directory above; None at a root."""


@attrs.frozen(kw_only=True)
class Switches:
    """The settings that a panel may flip.

    @ivar on_quit: Threads of attached Pis that quit are deleted.
    @ivar unattended: Threads proven inactive for a day are deleted without being asked for.
    """

    on_quit: bool
    unattended: bool


class ICleanup(Interface):
    """Inactive Threads (C{threads.cleanup.Cleanup})."""

    def review() -> Deferred[tuple[str, list[str]]]:
        """Look for inactive Threads; fires with the review's id and their names.  Deletes nothing."""

    def delete(operation_id: str) -> Deferred[tuple[int, int]]:
        """Delete what that review found and is still proven inactive, one by one.

        Fires with how many were deleted and how many were kept.

        @raise pitelegram.errors.Refusal: C{stale}: another review took that one's place.
        """

    def switches() -> Switches:
        """The switches as the file has them now."""

    def flip(name: str) -> Deferred[Switches]:
        """Flip C{on_quit} or C{unattended} in C{telegram.json}."""


DISPLAY_MODES = ("letters", "names", "directory-snake", "directory-title", "state")
"""How Threads may be titled (C{threadDisplayMode})."""


class ITitleModes(Interface):
    """How Threads are titled (C{panel.titlemodes.TitleModes})."""

    def mode() -> str:
        """The mode that is in force now, one of L{DISPLAY_MODES}."""

    def choose(mode: str) -> Deferred[str]:
        """Write a mode into C{telegram.json}; fires with the one that is in force then.

        @raise pitelegram.errors.Refusal: C{unknown-mode}.
        @raise pitelegram.errors.ConfigError: the file is not valid JSON.
        """

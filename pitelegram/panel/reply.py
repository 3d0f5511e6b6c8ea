"""What pressing a button, or writing a command, leads to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from pitelegram.panel.screens import Screen


@attrs.frozen
class Reply:
    """The answer to one press.

    @ivar toast: shown at once over the chat; cut to Telegram's limit.
    @ivar screen: what the panel's message becomes; None leaves it.
    @ivar alert: the toast has to be closed by hand; of what ended later: it must be seen.
    @ivar later: goes on after the answer; what it returns is shown then.
    """

    toast: str = ""
    screen: Screen | None = None
    alert: bool = False
    later: Callable[[], Awaitable[Reply]] | None = None


Act = Callable[[str], Awaitable[Reply]]
"""Does what one verb of the callback data means; gets the data's argument."""

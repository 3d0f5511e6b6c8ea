"""Who is told when a binding's target changes."""

from __future__ import annotations

from collections.abc import Callable

from twisted.logger import Logger

from pitelegram.targets import TelegramTarget

Observer = Callable[[str, "TelegramTarget | None", "TelegramTarget | None", str], None]


class Observers:
    """Observers of committed changes; one that fails disturbs no other."""

    log = Logger()

    def __init__(self) -> None:
        self._observers: list[Observer] = []

    def add(self, observer: Observer) -> None:
        """Tell this one too from now on."""
        self._observers.append(observer)

    def tell(
        self,
        binding_key: str,
        target: TelegramTarget | None,
        old: TelegramTarget | None,
        reason: str,
    ) -> None:
        """Tell everybody."""
        for observer in list(self._observers):
            try:
                observer(binding_key, target, old, reason)
            except Exception:
                self.log.failure("an observer of Threads failed")

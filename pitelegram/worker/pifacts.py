"""What Pi tells when it is asked: models, levels, usage, templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import TimeoutError
from twisted.internet.interfaces import IReactorTime

from pitelegram.bridge.menus.model import Model
from pitelegram.bridge.menus.status import Usage
from pitelegram.bridge.picommands import Template, templates
from pitelegram.errors import PiGone, PiRefused
from pitelegram.kernel.deferring import sleep
from pitelegram.pi.interfaces import IPiHost

ANSWER_DUE = 10.0
"""Seconds that Pi may take for an answer; it usually needs a hundredth of one."""
START_DUE = 20.0
"""Seconds that an operator's question waits for a Pi that is starting."""
KEPT = 5.0
"""Seconds that a list of models or templates is good for."""
_LOOK = 0.1


class PiFacts:
    """Asks Pi.

    @param up: whether Pi can be talked to.
    """

    def __init__(self, clock: IReactorTime, host: IPiHost, up: Callable[[], bool]) -> None:
        self._clock = clock
        self._host = host
        self._up = up
        self._kept: dict[str, tuple[float, Any]] = {}

    async def ready(self) -> None:
        """Wait for a Pi that is starting.

        @raise PiRefused: it is not there in time.
        """
        until = self._clock.seconds() + START_DUE
        while not self._up():
            if self._clock.seconds() >= until:
                raise PiRefused("Pi is not ready yet")
            await sleep(self._clock, _LOOK)

    def current(self) -> str | None:
        """Return C{provider/id} of the model in use, None where there is none."""
        model = self._model()
        provider, name = model.get("provider"), model.get("id")
        if not isinstance(name, str) or name in ("", "unknown"):
            return None
        return f"{provider}/{name}" if isinstance(provider, str) else name

    def reasons(self) -> bool:
        """Whether the model in use has thinking levels to choose from."""
        return self._model().get("reasoning") is True

    def level(self) -> str | None:
        """Return the thinking level in use."""
        level = (self._host.state or {}).get("thinkingLevel")
        return level if isinstance(level, str) else None

    async def models(self, fresh: bool = False) -> list[Model]:
        """Return what Pi can use now.

        @param fresh: ask even if the last answer is young.
        """
        data = await self._ask("get_available_models", 0.0 if fresh else KEPT)
        return [
            Model(record["provider"], record["id"])
            for record in _list(data, "models")
            if isinstance(record, dict)
            and isinstance(record.get("provider"), str)
            and isinstance(record.get("id"), str)
        ]

    async def levels(self) -> tuple[str, ...]:
        """Return the thinking levels of the model in use."""
        data = await self._ask("get_available_thinking_levels", 0.0)
        return tuple(level for level in _list(data, "levels") if isinstance(level, str))

    async def templates(self) -> list[Template]:
        """Return the prompt templates and skills that may be run from here."""
        return templates(_list(await self._ask("get_commands", KEPT), "commands"))

    async def usage(self, seconds: float = ANSWER_DUE) -> Usage | None:
        """Return what the session has used; None when Pi does not say so in time."""
        try:
            data = await self._ask("get_session_stats", 0.0, seconds)
        except (PiRefused, PiGone):
            return None
        return _usage(data)

    async def _ask(self, name: str, kept: float, seconds: float = ANSWER_DUE) -> Any:
        now = self._clock.seconds()
        since, known = self._kept.get(name, (float("-inf"), None))
        if now - since < kept:
            return known
        if not self._up():
            raise PiRefused("Pi is not ready yet")
        try:
            data = await self._host.command(name).addTimeout(seconds, self._clock)
        except TimeoutError:
            raise PiRefused("Pi does not answer just now") from None
        self._kept[name] = now, data
        return data

    def _model(self) -> dict[str, Any]:
        model = (self._host.state or {}).get("model")
        return model if isinstance(model, dict) else {}


def _list(data: Any, name: str) -> list[Any]:
    found = data.get(name) if isinstance(data, dict) else None
    return found if isinstance(found, list) else []


def _usage(data: Any) -> Usage | None:
    if not isinstance(data, dict):
        return None
    tokens, context = data.get("tokens"), data.get("contextUsage")
    tokens = tokens if isinstance(tokens, dict) else {}
    context = context if isinstance(context, dict) else {}
    window = _number(context.get("contextWindow"))
    return Usage(
        input=int(_number(tokens.get("input")) or 0),
        output=int(_number(tokens.get("output")) or 0),
        cache_read=int(_number(tokens.get("cacheRead")) or 0),
        cache_write=int(_number(tokens.get("cacheWrite")) or 0),
        cost=_number(data.get("cost")),
        percent=_number(context.get("percent")),
        window=None if window is None else int(window),
    )


def _number(value: Any) -> float | None:
    """Return a number that can be shown, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e15 else None

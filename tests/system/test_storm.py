"""Floods, rubbish, and everything that is killed at random."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from twisted.internet.utils import getProcessOutputAndValue

import pitelegram
from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase

CHAOS = Path(pitelegram.__file__).resolve().parent.parent / "benchmarks" / "chaos.py"


class Storm(SystemCase):
    """C{benchmarks/chaos.py}, one short seed of it."""

    @deferred
    async def test_nothing_is_lost_or_doubled(self) -> None:
        """Every prompt runs once or is visibly uncertain, every answer arrives once or is counted."""
        arguments = (str(CHAOS), "--seed", "409", "--prompts", "20", "--workers", "2")
        out, err, code = await getProcessOutputAndValue(
            sys.executable, arguments, env=self.system.environment(), path=str(self.base)
        )
        self.assertEqual(code, 0, (out + err).decode())
        self.assertIn(b'"answered"', out)


class Rubbish(SystemCase):
    """What no Telegram sends, and too much of what it does."""

    @deferred
    async def test_it_goes_on(self) -> None:
        """Malformed updates, a stranger's flood and a storm of presses stop nothing."""
        (thread,) = await self.start("alpha")
        chat = self.system.telegram.chat
        self.system.say("/daemon")
        panel = await self.system.telegram.when_message(
            lambda m: any(b["text"] == "👷 Workers" for row in m.keyboard for b in row)
        )
        for place in (thread, None, 77_777):
            for kind, value in self.rubbish(place):
                chat.world.updates.push(kind, value)
        for number in range(1000):
            chat.stranger_sends(f"flood {number}", user_id=700_000 + number % 7)
        for _ in range(12):
            chat.user_presses(panel.message_id, label="👷 Workers")
        self.system.say("still here", thread)
        await self.system.model.when_request(lambda request: "still here" in request.text)
        await self.system.until(
            lambda: self.system.status().addCallback(lambda d: not any(d["journal"].values())),
            "an empty journal",
        )
        self.prompted_once("still here")
        self.assertFalse(self.system.daemon is None or self.system.daemon.finished.fired)
        self.assertEqual((await self.system.status())["health"], "ok")

    def rubbish(self, thread: int | None) -> list[tuple[str, Any]]:
        """Updates that promise more than they hold, or less."""
        chat = self.system.telegram.chat
        place = {"id": chat.owner["id"], "type": "private"}
        message: dict[str, Any] = {"message_id": 5000, "from": chat.owner, "chat": place, "date": 1}
        if thread is not None:
            message["message_thread_id"] = thread
        deep: Any = 1
        for _ in range(240):
            deep = [deep]
        fields: list[dict[str, Any]] = [
            {"text": 5},
            {"text": "x", "entities": [5, {"type": 5, "offset": -1}], "x": deep},
            {"text": "x", "message_id": 2**63 - 1},
            {"text": "x", "message_thread_id": -5},
            {"text": "NUL\x00 and \u202e and \u200b"},
            {"text": "/start " + "A" * 150},
            {"text": "/abort@otherbot"},
            {"text": "ob:again:x", "reply_to_message": 5},
            {"photo": [{"file_id": 5}], "caption": 7},
            {"voice": {"file_id": "../../x"}, "media_group_id": 5},
        ]
        press = {"from": chat.owner, "message": message}
        datas = (5, "again:-1", "ob:again:" + "x" * 55, None)
        presses = [press, *({**press, "data": data} for data in datas)]
        return [
            *(("message", value) for value in ({}, [], None, "x", message)),
            *(("message", {**message, **each}) for each in fields),
            *(("edited_message", {**message, **each}) for each in fields),
            *(
                ("callback_query", {**press, "id": f"{thread}.{n}"})
                for n, press in enumerate(presses)
            ),
        ]

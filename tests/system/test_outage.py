"""Telegram is away while twenty turns end, and processes are killed meanwhile."""

from __future__ import annotations

import re
import signal
import sqlite3
from contextlib import closing
from typing import Any

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase

NAMES = ("alpha", "beta")
TURNS = 10
GATED = (0, 5)
"""Turns that wait until they are let go on."""


def prompt(name: str, number: int) -> str:
    """Return what is asked in a turn."""
    words = f"[[say text='answer {name}-{number} is here']]"
    return f"[[gate {name}-{number}]] {words}" if number in GATED else words


class Outage(SystemCase):
    """Nothing is lost, doubled or out of order."""

    @deferred
    async def test_twenty_turns(self) -> None:
        """All answers come when it is over, though daemon and workers were killed twice each."""
        threads = dict(zip(NAMES, await self.start(*NAMES), strict=True))
        for number in range(TURNS):
            for name, thread in threads.items():
                self.system.say(prompt(name, number), thread)
        await self.until_asked(0)
        await self.system.until(
            lambda: self.system.status().addCallback(lambda d: not any(d["journal"].values())),
            "all prompts with the workers",
        )
        await self.system.telegram.go_offline()
        self.go_on(0)
        await self.until_asked(5)
        await self.system.restart_daemon()
        assert self.system.daemon is not None
        await self.system.daemon.kill()
        self.go_on(5)
        # The second half ends without any leader; then the workers are killed, too.
        await self.system.until(lambda: self.settled() == 2 * TURNS, "the end of all turns")
        for process in self.system.workers():
            process.send_signal(signal.SIGKILL)
        await self.system.until(lambda: not self.system.workers(), "the workers' end")
        await self.system.start_daemon()
        self.assertEqual(self.system.answers("answer"), [])
        self.system.telegram.go_online()
        for name, thread in threads.items():
            await self.system.answer(f"answer {name}-{TURNS - 1} is here", thread)
        for name, thread in threads.items():
            said = [m.text for m in self.system.answers("is here", thread)]
            found = [int(n) for text in said for n in re.findall(rf"{name}-(\d+) is here", text)]
            self.assertEqual(found, list(range(TURNS)), name)
            for number in range(TURNS):
                self.prompted_once(f"answer {name}-{number} is here")
        document = await self.system.status()
        self.assertEqual(
            (document["outbox"]["uncertain"], document["outbox"]["dead_letter"]), (0, 0)
        )

    def until_asked(self, number: int) -> Any:
        """Wait until Pi has that turn of every worker before it."""
        return self.system.until(
            lambda: all(self.system.prompts(f"gate {name}-{number}") for name in NAMES),
            f"turn {number}",
        )

    def go_on(self, number: int) -> None:
        """Let that turn go on."""
        for name in NAMES:
            self.system.model.open_gate(f"{name}-{number}")

    def settled(self) -> int:
        """How many prompts the workers have settled."""
        count = 0
        for path in (self.system.agent_dir / "telegram" / "workers").glob("*.sqlite3"):
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                query = "SELECT count(*) FROM inbox WHERE state = 'settled'"
                count += connection.execute(query).fetchone()[0]
        return count

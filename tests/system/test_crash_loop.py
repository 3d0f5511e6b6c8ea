"""A Pi that ends again and again."""

from __future__ import annotations

import shlex
from pathlib import Path

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.records import Message
from pitelegram.testing.pienv import pi_command
from tests.system import SystemCase

WRAPPER = """#!/bin/sh
if [ "$1" != --version ] && [ -e {orders} ]; then
    ordered=$(cat {orders})
    echo started >> {starts}
    eval "$ordered"
fi
exec {pi} "$@"
"""

DIES = "exit 3\n"
REFUSES = "echo 'Error: no such flag' >&2\nexit 1\n"


def has(message: Message, label: str) -> bool:
    """Whether a message has a button of that label."""
    return any(button["text"] == label for row in message.keyboard for button in row)


class CrashLoop(SystemCase):
    """Pi is a wrapper that passes C{--version} on and then does what it is ordered."""

    def setUp(self) -> None:
        """Write the wrapper."""
        super().setUp()
        self.orders = self.base / "orders"
        self.starts = self.base / "starts"
        wrapper = self.base / "some pi"
        wrapper.write_text(
            WRAPPER.format(
                orders=shlex.quote(str(self.orders)),
                starts=shlex.quote(str(self.starts)),
                pi=shlex.join(pi_command()),
            )
        )
        wrapper.chmod(0o755)
        self.wrapper = wrapper

    def order(self, what: str) -> None:
        """From now on Pi ends like this; with an empty text it works."""
        fresh = Path(f"{self.orders}.new")
        fresh.write_text(what)
        fresh.rename(self.orders)

    def count(self) -> int:
        """How often Pi was started under an order."""
        return len(self.starts.read_text().splitlines()) if self.starts.exists() else 0

    @deferred
    async def test_back_off_failure_and_revival(self) -> None:
        """Crashes are restarted and counted, a permanent cause stops at once, a command revives.

        What is written meanwhile waits, and runs once.
        """
        await self.system.start_daemon("--pi", shlex.quote(str(self.wrapper)))
        thread = await self.system.start_worker("alpha")
        await self.asked("before", thread)
        self.order(DIES)
        self.system.workers()[0].kill()
        await self.system.until(lambda: self.count() == 2, "two starts")
        self.order(REFUSES)
        await self.system.until(lambda: self.is_in("failed"), "failure")
        starts = self.count()
        self.assertEqual(self.system.workers(), [])
        worker = await self.private("alpha")
        self.assertEqual(worker["restarts"], 3)
        self.assertIn("Error: no such flag", worker["last_error"])
        (said,) = self.system.answers("❌ alpha", thread)
        self.assertIn("Error: no such flag", said.text or "")
        self.assertGreaterEqual(len(self.system.answers("It is started again", thread)), 1)
        status = await self.system.status()
        self.assertEqual(status["health"], "degraded")
        self.assertTrue([p for p in status["problems"] if "alpha" in p], status["problems"])
        self.assertEqual(self.count(), starts)
        self.system.say("meanwhile", thread)
        self.order("")
        await self.worker("restart", "alpha")
        await self.system.answer("You said: meanwhile", thread)
        self.once("You said: meanwhile")
        self.assertIn("before", self.system.prompts("meanwhile")[0].users[0])
        self.assertEqual((await self.private("alpha"))["restarts"], 0)
        await self.revive_by_button(thread)

    @deferred
    async def revive_by_button(self, thread: int) -> None:
        """Fail for good once more; the panel's button starts it, and the conversation goes on."""
        self.order(REFUSES)
        self.system.workers()[0].kill()
        await self.system.until(lambda: self.is_in("failed"), "failure")
        self.order("")
        telegram = self.system.telegram
        self.system.say("/daemon")
        panel = await telegram.when_message(lambda m: has(m, "👷 Workers"))
        telegram.chat.user_presses(panel.message_id, label="👷 Workers")
        await telegram.when(lambda: has(panel, "♻️ Retry"))
        telegram.chat.user_presses(panel.message_id, label="♻️ Retry")
        await telegram.when(lambda: "Retry alpha?" in panel.text)
        telegram.chat.user_presses(panel.message_id, label="♻️ Retry")
        await self.system.until(lambda: self.is_in("running"), "the worker")
        request = await self.asked("by button", thread)
        self.assertEqual(len(request.users), 3)

    @deferred
    async def test_stop_in_back_off(self) -> None:
        """A worker that waits for its restart is visible, and a stop ends the waiting for good."""
        await self.system.start_daemon("--pi", shlex.quote(str(self.wrapper)))
        self.order(DIES)
        started = await self.system.cli("workers", "start", str(self.system.project("alpha")))
        self.assertEqual(started.code, 1)
        self.assertIn("did not start", started.err)
        await self.system.until(lambda: self.count() >= 2 and self.is_in("backoff"), "back-off")
        await self.worker("stop", "alpha")
        count = self.count()
        self.assertEqual(await self.system.worker_state("alpha"), "stopped")
        begin = self.system.reactor.seconds()
        await self.system.until(lambda: self.system.reactor.seconds() - begin > 3, "three seconds")
        self.assertEqual((self.count(), self.system.workers()), (count, []))

    @deferred
    async def test_limit(self) -> None:
        """Five restarts in ten minutes are enough: then it waits for an operator, whose start revives it."""
        await self.system.start_daemon("--pi", shlex.quote(str(self.wrapper)))
        thread = await self.system.start_worker("alpha")
        self.order(DIES)
        self.system.workers()[0].kill()
        await self.system.until(lambda: self.is_in("failed"), "the last of five", 90)
        self.assertEqual(self.count(), 5)
        worker = await self.private("alpha")
        self.assertEqual((worker["restarts"], worker["pid"]), (5, None))
        changes = [change for _, change, _ in self.audit("alpha")]
        self.assertEqual(changes.count("backoff > spawning"), 5)
        self.assertEqual(len(self.system.answers("❌ alpha", thread)), 1)
        self.order("")
        await self.worker("restart", "alpha")
        await self.asked("revived", thread)

    @deferred
    async def is_in(self, state: str) -> bool:
        """Whether the worker is in that state."""
        return bool(await self.system.worker_state("alpha") == state)

"""The daemon is killed, stopped and woken; nothing is lost or doubled."""

from __future__ import annotations

import signal

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


class KillDaemon(SystemCase):
    """C{kill -9} and worse."""

    @deferred
    async def test_while_pi_streams(self) -> None:
        """Killed while Pi streams: the worker lives on, the answer arrives once."""
        (thread,) = await self.start("alpha")
        (worker,) = self.system.workers()
        self.system.say(
            "[[say text='the first half']] [[gate g]] [[say text=' and the rest']]", thread
        )
        await self.system.model.when_request(lambda r: "gate g" in r.text)
        assert self.system.daemon is not None
        await self.system.daemon.kill()
        self.system.model.open_gate("g")
        await self.system.start_daemon()
        await self.system.answer("and the rest", thread)
        self.system.say("still there?", thread)
        await self.system.answer("You said: still there?", thread)
        self.assertEqual([p.pid for p in self.system.workers()], [worker.pid])
        self.once("and the rest")
        self.prompted_once("gate g")

    @deferred
    async def test_between_spawn_and_registration(self) -> None:
        """Killed after the process was made and before it registered: no second copy."""
        await self.start()
        starting = self.system.run(
            "workers", "start", str(self.system.project("alpha")), "--no-wait"
        )
        await self.system.until(self.system.workers, "the worker process")
        assert self.system.daemon is not None
        await self.system.daemon.kill()
        await starting.finished.when()
        await self.system.start_daemon()
        thread = await self.system.thread_of("alpha")
        self.assertEqual(len(self.system.workers()), 1)
        self.assertEqual(len(self.system.telegram.chat.threads), 2)
        self.system.say("hello", thread)
        await self.system.answer("You said: hello", thread)
        self.prompted_once("hello")

    @deferred
    async def test_messages_wait_while_it_is_dead(self) -> None:
        """What is written while no daemon runs is answered by the next one, once each, in order."""
        (thread,) = await self.start("alpha")
        assert self.system.daemon is not None
        await self.system.daemon.kill()
        for number in range(5):
            self.system.say(f"waiting-{number}", thread)
        await self.system.start_daemon()
        await self.system.answer("You said: waiting-4", thread)
        said = [m.text for m in self.system.answers("You said: waiting", thread)]
        self.assertEqual(said, [f"You said: waiting-{n}" for n in range(5)])

    @deferred
    async def test_suspended_with_a_poll_open(self) -> None:
        """Suspended for thirty seconds with a poll open, then woken: nothing lost or doubled."""
        (thread,) = await self.start("alpha")
        daemon = self.system.daemon
        assert daemon is not None and daemon.transport is not None
        daemon.transport.signalProcess(signal.SIGSTOP)
        for number in range(3):
            self.system.say(f"asleep-{number}", thread)
        begin = self.system.reactor.seconds()
        await self.system.until(
            lambda: self.system.reactor.seconds() - begin > 30, "thirty seconds"
        )
        daemon.transport.signalProcess(signal.SIGCONT)
        await self.system.answer("You said: asleep-2", thread)
        for number in range(3):
            self.once(f"You said: asleep-{number}")
            self.prompted_once(f"asleep-{number}")
        self.assertFalse(daemon.finished.fired)

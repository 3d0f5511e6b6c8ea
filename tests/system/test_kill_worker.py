"""A worker or its Pi is killed."""

from __future__ import annotations

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


class KillWorker(SystemCase):
    """C{kill -9} of a worker with one prompt handed and two held."""

    @deferred
    async def hand_and_hold(self, first: str) -> int:
        """Start a worker, hand it C{first}, hold two more; fires with its Thread."""
        (thread,) = await self.start("alpha")
        self.system.say(first, thread)
        await self.system.model.when_request(lambda r: first in r.text)
        self.system.say("held one", thread)
        self.system.say("held two", thread)
        await self.system.until(lambda: self.queued(2), "two held prompts")
        return thread

    @deferred
    async def queued(self, count: int) -> bool:
        """Whether the worker says that so many prompts wait."""
        document = await self.system.status()
        return bool(document["workers"][0]["queued"] == count)

    @deferred
    async def test_handed_prompt_of_unknown_fate(self) -> None:
        """Pi had it and did not finish: it is reported with its button, the held ones run once."""
        thread = await self.hand_and_hold("[[gate never]] unfinished")
        self.system.workers()[0].kill()
        await self.system.answer("You said: held two", thread)
        for text in ("held one", "held two"):
            self.once(f"You said: {text}", thread)
            self.prompted_once(text)
        self.prompted_once("unfinished")
        (report,) = [
            m
            for m in self.system.telegram.chat.from_bot(thread)
            if any("🔁 Send again" in b["text"] for row in m.keyboard for b in row)
        ]
        self.system.model.open_gate("never")
        self.system.telegram.chat.user_presses(report.message_id, label="🔁 Send again")
        await self.system.until(lambda: len(self.system.prompts("unfinished")) == 2, "the repeat")
        await self.system.answer("unfinished", thread)

    @deferred
    async def test_handed_prompt_that_pi_finished(self) -> None:
        """Pi finished while the worker was suspended, then the worker died: delivered once."""
        thread = await self.hand_and_hold("[[gate open]] [[say text='the finished answer']]")
        (worker,) = self.system.workers()
        worker.suspend()
        self.system.model.open_gate("open")
        request = self.system.prompts("gate open")[0]
        await self.system.until(lambda: request.state == "answered", "the model's answer")
        await self.system.until(
            lambda: any(
                "the finished answer" in f.read_text()
                for f in (self.system.agent_dir / "sessions").rglob("*.jsonl")
                if '"stopReason":"stop"' in f.read_text()
            ),
            "the session file's entry",
        )
        worker.kill()
        await self.system.answer("You said: held two", thread)
        self.once("the finished answer", thread)
        self.prompted_once("gate open")
        for text in ("held one", "held two"):
            self.once(f"You said: {text}", thread)
            self.prompted_once(text)

    @deferred
    async def test_pi_killed(self) -> None:
        """Pi is killed: worker and Pi are restarted with the same session, held prompts go on."""
        thread = await self.hand_and_hold("[[gate never]] unfinished")
        before = await self.session()
        self.system.pis()[0].kill()
        await self.system.answer("You said: held two", thread)
        for text in ("held one", "held two"):
            self.once(f"You said: {text}", thread)
            self.prompted_once(text)
        self.assertEqual(await self.session(), before)

    @deferred
    async def session(self) -> str:
        """The session file, as the local operator sees it."""
        done = await self.system.cli("workers", "list", "--json", "--private")
        return str(done.json()["workers"][0]["session_file"])


class WorkerForGood(SystemCase):
    """A worker never runs again."""

    @deferred
    async def test_unsubmitted_answer_arrives(self) -> None:
        """Killed for good with an answer that the daemon never got: it arrives all the same."""
        (thread,) = await self.start("alpha")
        daemon = self.system.daemon
        assert daemon is not None
        self.system.say("[[gate g]] [[say text='left ']] [[say text='behind']]", thread)
        await self.system.model.when_request(lambda r: "gate g" in r.text)
        await daemon.kill()
        self.system.model.open_gate("g")
        stores = self.system.agent_dir / "telegram" / "workers"
        await self.system.until(
            lambda: any(b"left behind" in f.read_bytes() for f in stores.glob("*.sqlite3*")),
            "the stored answer",
        )
        for process in (*self.system.workers(), *self.system.pis()):
            process.kill()
        self.forget_project()
        await self.system.start_daemon()
        await self.system.answer("left behind", thread)
        self.once("left behind")

    def forget_project(self) -> None:
        """Take the project away, so that the worker cannot be started again."""
        self.system.project("alpha").rename(self.system.projects / "gone")

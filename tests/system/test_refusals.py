"""What the daemon refuses, and how it says so."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


class Exits(SystemCase):
    """Exit codes in the foreground and through C{start}."""

    @deferred
    async def both(self, code: int, *words: str) -> None:
        """C{run} and C{start} end with C{code} and say C{words}."""
        for verb in ("run", "start"):
            done = await self.system.run(verb).finished.when()
            self.assertEqual(done.code, code, f"{verb}: {done.out}{done.err}")
            for word in words:
                self.assertIn(word, done.out + done.err)

    @deferred
    async def test_second_daemon(self) -> None:
        """A second daemon exits with 4 and names the owner."""
        daemon = await self.system.start_daemon()
        await self.both(4, str(daemon.pid))
        self.assertFalse(daemon.finished.fired)

    @deferred
    async def test_no_token(self) -> None:
        """A daemon without a token exits with 3 and says what to do."""
        self.system.write_settings(botToken="")
        await self.both(3, "pi-telegram setup")

    @deferred
    async def test_bad_option(self) -> None:
        """A bad option exits with 2 and is named."""
        for arguments in (["run", "--no-such-option"], ["run", "--network-family", "ipv9"]):
            done = await self.system.run(*arguments).finished.when()
            self.assertEqual(done.code, 2, done.err)
            self.assertIn(arguments[1].lstrip("-"), done.out + done.err)
        started = await self.system.run("start", "--network-family", "ipv9").finished.when()
        self.assertEqual(started.code, 2, started.err)

    @deferred
    async def test_token_revoked_while_running(self) -> None:
        """A revoked token ends a running daemon with 5."""
        daemon = await self.system.start_daemon()
        self.system.telegram.faults.add("*", "401", times=None)
        done = await daemon.finished.when()
        self.assertEqual(done.code, 5)

    @deferred
    async def test_token_revoked_keeps_answers(self) -> None:
        """All calls stop after the third refusal; what was to be said is said when the token is good again."""
        daemon = await self.system.start_daemon()
        thread = await self.system.start_worker("alpha")
        self.system.say("[[gate g]]", thread)
        await self.system.model.when_request(lambda request: "gate g" in request.text)
        fault = self.system.telegram.faults.add("*", "401", times=None)
        self.system.model.open_gate("g")
        done = await daemon.finished.when()
        # Calls that were on their way when the third was refused are answered, too.
        self.assertEqual((done.code, fault.hits in range(3, 7)), (5, True), fault.hits)
        fault.remove()
        await self.system.start_daemon()
        await self.system.answer("After the gate g.", thread)
        self.assertEqual(len(self.system.answers("After the gate g.", thread)), 1)
        self.assertEqual((await self.system.status())["outbox"]["uncertain"], 0)

    @deferred
    async def test_token_refused_at_start(self) -> None:
        """A token that was never good exits with 3, in the foreground and through start."""
        self.system.write_settings(botToken="123456:" + "x" * 35, botId=None, botUsername=None)
        await self.both(3, "pi-telegram setup")

    @deferred
    async def test_lasting_conflict(self) -> None:
        """Another poller that stays ends the daemon with 5; accepted work is kept."""
        daemon = await self.system.start_daemon()
        self.system.telegram.faults.add("getUpdates", "409", times=None)
        done = await daemon.finished.when().addTimeout(200, self.system.reactor)
        self.assertEqual(done.code, 5)
        owners = json.loads((self.system.agent_dir / "tmp/telegram/owners.json").read_text())
        self.assertNotIn("default", owners)

    @deferred
    async def test_start_and_stop(self) -> None:
        """C{start} waits until ready, C{status} sees it, C{stop} ends it."""
        started = await self.system.cli("start")
        self.assertEqual(started.code, 0, started.err)
        document = await self.system.status()
        self.assertEqual(document["daemon"]["role"], "daemon")
        stopped = await self.system.cli("stop")
        self.assertEqual(stopped.code, 0, stopped.err)
        after = await self.system.cli("status", "--json")
        self.assertEqual(after.code, 1)
        self.assertEqual(after.json()["health"], "down")


class Strangers(SystemCase):
    """Nobody but the paired owner, in his private chat, leaves a trace."""

    @deferred
    async def test_nothing_is_left(self) -> None:
        """A stranger's message, edit, reaction and press, and the owner's in a group, are dropped."""
        (thread,) = await self.start("alpha")
        chat = self.system.telegram.chat
        before = len(chat.from_bot())
        stranger = chat.stranger_sends("let me in, marker-zebra")
        chat.stranger_edits(stranger, "really, marker-zebra")
        chat.stranger_reacts(stranger, "👍")
        ready = chat.from_bot(thread)[-1]
        chat.stranger_presses(ready.message_id, "ptd:m")
        chat.group_sends("hello group, marker-zebra")
        self.system.say("still mine", thread)
        await self.system.answer("You said: still mine", thread)
        self.assertEqual(len(chat.from_bot()), before + 1)
        self.assertEqual(self.system.prompts("marker-zebra"), [])
        rows = self.journal()
        self.assertEqual([kind for kind, _ in rows].count("message_reaction"), 0)
        self.assertEqual([kind for kind, _ in rows].count("callback_query"), 0)
        self.assertEqual({chat_id for _, chat_id in rows}, {chat.owner["id"]})
        for path in self.files():
            self.assertNotIn(b"marker-zebra", path.read_bytes(), path.name)

    def journal(self) -> list[tuple[str, int]]:
        """Kind and chat of every journal row."""
        path = self.system.agent_dir / "telegram" / "default.sqlite3"
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT kind, chat_id FROM journal").fetchall()

    def files(self) -> list[Path]:
        """Every file of the agent directory."""
        return [p for p in self.system.agent_dir.rglob("*") if p.is_file() and not p.is_symlink()]


class Secrets(SystemCase):
    """The token stays where the operator put it."""

    @deferred
    async def test_token_is_found_nowhere_else(self) -> None:
        """Not on disk, in no environment, in no command line and in no output of the run."""
        token = self.system.telegram.token
        self.system.extra_environment = {"SOME_TOOL_SETTING": f"x{token}y"}
        (thread,) = await self.start("alpha")
        fault = self.system.telegram.faults.add("getUpdates", "reset", times=2)
        self.system.telegram.faults.add("sendMessage", "cut", applied=True)
        self.system.say("[[tool bash 'env']]", thread)
        await fault.when_done()
        await self.system.until(lambda: self.system.prompts("env"), "the prompt")
        self.system.say("hello", thread)
        await self.system.answer("You said: hello", thread)
        processes = [*self.system.workers(), *self.system.pis()]
        self.assertGreaterEqual(len(processes), 2)
        for process in processes:
            self.assertNotIn(token, "\n".join(process.environ().values()))
            self.assertNotIn(token, " ".join(process.cmdline()))
        daemon = self.system.daemon
        assert daemon is not None
        self.assertNotIn(token, daemon.out + daemon.err)
        found = [
            path
            for path in self.base.rglob("*")
            if path.is_file() and token.encode() in path.read_bytes()
        ]
        self.assertEqual([p.name for p in found], ["telegram.json"])


class HostileProject(SystemCase):
    """A project directory that tries to be us."""

    @deferred
    async def test_changes_nothing(self) -> None:
        """Modules named like ours and our libraries' are never imported."""
        project = self.system.project("alpha")
        mark = self.base / "imported"
        poison = f"open({str(mark)!r}, 'a').write(__name__)\nraise SystemExit(99)\n"
        for name in ("pitelegram", "twisted", "attr", "zope", "orjson"):
            (project / name).mkdir()
            (project / name / "__init__.py").write_text(poison)
        for name in ("attr.py", "sitecustomize.py", "usercustomize.py", "sqlite3.py", "json.py"):
            (project / name).write_text(poison)
        self.system.daemon = self.system.run("run", directory=project)
        await self.system.daemon.when_says("pi-telegram ready")
        thread = await self.system.start_worker("alpha")
        self.system.say("hello", thread)
        await self.system.answer("You said: hello", thread)
        self.assertFalse(mark.exists(), mark.read_text() if mark.exists() else "")


class EndsInTheBackground(SystemCase):
    """A daemon of C{start} that must end does so, and leaves its reason and exit code in its log."""

    @deferred
    async def ends(self, method: str, kind: str, seconds: float) -> None:
        """Start, order a lasting fault, and wait for the end with code 5."""
        started = await self.system.cli("start")
        self.assertEqual(started.code, 0, started.err)
        self.system.telegram.faults.add(method, kind, times=None)
        log = self.system.agent_dir / "tmp" / "telegram" / "daemon.log"
        await self.system.until(lambda: "(exit 5)" in log.read_text(), "the reason", seconds)
        await self.system.until(lambda: not self.system.processes("pi-telegram run"), "the end")
        after = await self.system.cli("status", "--json")
        self.assertEqual((after.code, after.json()["health"]), (1, "down"))

    def test_revoked_token(self) -> Any:
        """A token that is revoked."""
        return self.ends("*", "401", 60)

    def test_lasting_conflict(self) -> Any:
        """Another poller that stays."""
        return self.ends("getUpdates", "409", 200)

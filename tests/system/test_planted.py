"""Secrets are planted wherever a run can pick them up; no public surface shows one."""

from __future__ import annotations

import json
import shlex
import socket
from pathlib import Path
from typing import Any

from twisted.internet.defer import gatherResults
from twisted.internet.threads import deferToThreadPool

from pitelegram.kernel.deferring import deferred
from pitelegram.testing.pienv import pi_command
from tests.system import SystemCase

TOKEN = "987654321:AAHplantedplantedplantedplantedplanted"
KEY = "sk-planted0123456789abcdef"
PLACE = "/srv/planted-place/project"
PASSWORD = "planted-hunter2"
LAST_WORDS = f"panic at {PLACE} with {TOKEN}, password={PASSWORD}, key {KEY}"

WRAPPER = """#!/bin/sh
[ "$1" != --version ] && [ -e "$PWD/refuse" ] && {{ cat "$PWD/refuse" >&2; exit 1; }}
exec {pi} "$@"
"""

SECONDS = 1.0
"""How long a stream of events is read."""


class Planted(SystemCase):
    """One run with a worker that is fed secrets, one that dies with them, and refusals."""

    @deferred
    async def test_nothing_is_shown(self) -> None:
        """Not in documents, metrics, events, logs, snapshots, reports, refusals or command lines."""
        wrapper = self.base / "pi-wrapper"
        wrapper.write_text(WRAPPER.format(pi=shlex.join(pi_command())))
        wrapper.chmod(0o755)
        self.system.extra_environment = {"PLANTED_API_KEY": KEY, "PLANTED_PLACE": PLACE}
        await self.system.start_daemon("--pi", str(wrapper))
        await self.feed()
        session = (await self.private("alpha"))["session_file"]
        state = await self.worker_state("alpha")
        secrets = {
            "token": self.system.telegram.token,
            "planted token": TOKEN.partition(":")[2],
            "key": KEY,
            "password": PASSWORD,
            "owner": str(self.system.telegram.chat.owner["id"]),
            "session": state["sessionId"],
            "session file": Path(session).name,
        }
        places = {"place": PLACE, "base": str(self.base)}
        self.assertGreater(len(secrets["owner"]), 6, "an id that is told from other numbers")
        surfaces = await self.surfaces()
        self.assertIn('"health":"degraded"', surfaces["status --json"])
        self.assertIn("pitelegram_workers", surfaces["/metrics"])
        self.assertIn("data: {", surfaces["/v1/events"])
        for surface in ("logs.jsonl", "logs -n 10000", "logs --json -n 10000", "/v1/events"):
            self.assertIn("panic at [redacted]", surfaces[surface])
        for surface, text in surfaces.items():
            self.assertNotEqual(text, "", surface)
            for what, secret in {**secrets, **places}.items():
                self.assertNotIn(secret, text, f"{what} in {surface}")
        for process in (*self.system.processes("pi-telegram"), *self.system.workers()):
            line = " ".join(process.cmdline())
            for what, secret in secrets.items():
                self.assertNotIn(secret, line, what)

    @deferred
    async def feed(self) -> None:
        """Let prompts, answers, tools, file names and a dying Pi bring secrets in."""
        thread = await self.system.start_worker("alpha")
        (self.system.project("alpha") / f"{KEY}.txt").write_text(TOKEN)
        for text in (
            f"remember {TOKEN} in {PLACE}",
            f"[[tool bash 'ls; env; echo {TOKEN} {PASSWORD} >&2']] {PLACE}",
        ):
            self.system.say(text, thread)
            await self.system.until(lambda text=text: self.system.prompts(text), "the prompt")
        self.system.telegram.faults.add("sendMessage", "cut", applied=True)
        self.system.say("hello", thread)
        await self.system.until(lambda: self.system.prompts("hello"), "the prompt")
        (self.system.project("beta") / "refuse").write_text(LAST_WORDS)
        done = await self.system.cli("workers", "start", str(self.system.project("beta")))
        self.assertEqual(done.code, 1, done.out + done.err)
        log = self.system.agent_dir / "tmp/telegram/logs.jsonl"
        await self.system.until(lambda: "panic at" in log.read_text(), "its last words")

    @deferred
    async def worker_state(self, name: str) -> dict[str, Any]:
        """What the worker tells its owner."""
        done = await self.system.cli("workers", "state", name, "--json")
        return dict(done.json()["result"])

    @deferred
    async def surfaces(self) -> dict[str, str]:
        """Every public surface, by name."""
        shown: dict[str, str] = {}
        commands = (
            ("status", "--json"),
            ("workers", "list", "--json"),
            ("logs", "-n", "10000"),
            ("logs", "--json", "-n", "10000"),
            ("doctor", "--report"),
            ("workers", "start", PLACE, "--json"),
            ("workers", "prompt", "nobody", f"{TOKEN} in {PLACE}", "--json"),
            ("workers", "switch-session", "alpha", f"gone/{KEY}", "--json"),
        )
        for words, done in zip(
            commands,
            await gatherResults(self.system.cli(*words) for words in commands),
            strict=True,
        ):
            shown[" ".join(words)] = done.out + done.err
        for path in ("/v1/status", "/v1/workers", "/v1/outbox", "/metrics", "/v1/events"):
            shown[path] = await self.ask(f"GET {path} HTTP/1.1")
        body = json.dumps({"schema_version": 1, "action": PLACE, "args": {TOKEN: PASSWORD}})
        shown["a wrong command"] = await self.ask("POST /v1/commands HTTP/1.1", body)
        shown["a wrong path"] = await self.ask(f"GET {PLACE}/{TOKEN} HTTP/1.1")
        runtime = self.system.agent_dir / "tmp" / "telegram"
        for name in ("state.json", "logs.jsonl"):
            shown[name] = (runtime / name).read_text()
        return shown

    def ask(self, line: str, body: str = "") -> Any:
        """Send raw HTTP to the control socket; fires with all that comes back."""
        record = json.loads((self.system.agent_dir / "tmp/telegram/owners.json").read_text())
        path = record["default"]["controlSocketPath"]
        text = (
            f"{line}\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        reactor = self.system.reactor
        return deferToThreadPool(reactor, reactor.getThreadPool(), _exchange, path, text)


def _exchange(path: str, text: str) -> str:
    """Read until the other side closes, or falls silent."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS)
        connection.connect(path)
        connection.sendall(text.encode())
        got = b""
        try:
            while piece := connection.recv(65536):
                got += piece
        except TimeoutError:
            pass
        return got.decode()

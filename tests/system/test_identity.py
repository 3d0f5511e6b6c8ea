"""Who is who: public keys over a worker's life, impostors on the bus, and what others may read."""

from __future__ import annotations

import base64
import grp
import json
import os
import re
import shutil
import signal
import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from twisted.internet.defer import gatherResults
from twisted.internet.threads import deferToThread

from pitelegram.kernel.birth import process_birth
from pitelegram.kernel.deferring import deferred
from pitelegram.testing.bus import a_registration
from pitelegram.testing.rawamp import RawClient, Refused
from tests.system import SystemCase

FORM = re.compile(r"wsk1_[0-9a-f]{64}")
SENTENCE = "installation identity is unavailable"
TRIO = ("installation.key", "installation.key.sha256", "installation.key.initialized")


class IdentityCase(SystemCase):
    """With shorthands for the data directory and the published keys."""

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.system.agent_dir / "telegram"

    @deferred
    async def meta(self, name: str) -> dict[str, Any]:
        """What is published of a worker's key."""
        workers = (await self.system.status())["workers"]
        meta: dict[str, Any] = next(w["meta"] for w in workers if w["name"] == name)
        return meta

    @deferred
    async def key(self, name: str) -> str:
        """A worker's complete pair's key."""
        meta = await self.system.until(lambda: self.meta(name), "a key")
        self.assertEqual(sorted(meta), ["stable_key", "stable_key_version"])
        self.assertIs(meta["stable_key_version"].__class__, int)
        self.assertEqual(meta["stable_key_version"], 1)
        self.assertTrue(FORM.fullmatch(meta["stable_key"]))
        return str(meta["stable_key"])

    def rows(self, sql: str) -> list[Any]:
        """Read the leader's store."""
        uri = f"file:{self.data / 'default.sqlite3'}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return connection.execute(sql).fetchall()


class Keys(IdentityCase):
    """The public key of a worker."""

    @deferred
    async def test_over_its_life(self) -> None:
        """It stays over a killed daemon and a killed worker, and is another after stop and start;
        without the key's files nobody has one, and with them back the same one is there."""
        self.assertEqual((await self.system.cli("status", "--json")).code, 1)
        await self.system.cli("doctor")
        self.assertFalse(self.data.exists())
        await self.system.start_daemon()
        self.assertEqual([n for n in os.listdir(self.data) if n.startswith("installation")], [])
        await self.system.start_worker("alpha")
        first = await self.key("alpha")
        await self.system.restart_daemon(signal.SIGKILL)
        self.assertEqual(await self.key("alpha"), first)
        (worker,) = self.system.workers()
        worker.kill()
        await self.system.until(
            lambda: [w for w in self.system.workers() if w.pid != worker.pid], "another worker"
        )
        self.assertEqual(await self.key("alpha"), first)
        await self.lose_the_files("alpha", first)
        self.assertEqual((await self.system.cli("workers", "stop", "alpha")).code, 0)
        self.assertEqual(await self.meta("alpha"), {})
        self.assertEqual((await self.system.status())["health"], "ok")
        await self.system.cli("workers", "start", str(self.system.project("alpha")))
        self.assertNotEqual(await self.key("alpha"), first)
        self.nothing_secret_is_shown((await self.system.cli("status", "--json")).out)

    @deferred
    async def lose_the_files(self, name: str, key: str) -> None:
        """Take all three away while the daemon is down, and give them back while it runs."""
        assert self.system.daemon is not None
        await self.system.daemon.kill()
        aside = self.base / "aside"
        aside.mkdir()
        for each in TRIO:
            shutil.move(self.data / each, aside / each)
        await self.system.start_daemon()
        document = await self.system.status()
        self.assertEqual([w["meta"] for w in document["workers"]], [{}])
        self.assertEqual(document["health"], "degraded")
        self.assertIn(SENTENCE, document["problems"])
        self.assertEqual([n for n in os.listdir(self.data) if n.startswith("installation")], [])
        for each in TRIO:
            shutil.move(aside / each, self.data / each)
        self.assertEqual(await self.key(name), key)

    def nothing_secret_is_shown(self, text: str) -> None:
        """Neither key, digest, host id nor slot stands in what is published or logged."""
        secrets = [
            (self.data / TRIO[0]).read_bytes().hex(),
            (self.data / TRIO[1]).read_text(),
            *(value for (value,) in self.rows("SELECT value FROM meta WHERE key = 'host_id'")),
            *(slot for (slot,) in self.rows("SELECT slot_id FROM specs") if slot),
        ]
        self.assertEqual(len(secrets), 4)
        logs = (self.system.agent_dir / "tmp/telegram/logs.jsonl").read_text()
        for secret in secrets:
            self.assertNotIn(secret, text)
            self.assertNotIn(secret, logs)


class Impostors(IdentityCase):
    """Followers that are not the process made for a spec."""

    @deferred
    async def test_nothing_moves(self) -> None:
        """With the shared secret, another spec's credential, or the right one and a wrong birth:
        refused, and workers, routes and the status document stay."""
        await self.system.start_daemon()
        alpha, _ = await gatherResults(
            [self.system.start_worker(name) for name in ("alpha", "beta")]
        )
        await gatherResults([self.key("alpha"), self.key("beta")])
        before, routes = await self.picture(), self.routes()
        owner = self.owner()
        credentials = dict(
            self.rows(
                "SELECT name, credential FROM specs JOIN spawns USING (spec_id)"
                " WHERE state <> 'ended'"
            )
        )
        ids = dict(self.rows("SELECT name, spec_id FROM specs"))
        target = {"chatId": self.system.telegram.chat.owner["id"], "threadId": alpha}
        own = process_birth(os.getpid())
        recorded = dict(
            self.rows("SELECT name, pid || '|' || birth FROM specs JOIN spawns USING (spec_id)")
        )
        pid, birth = recorded["alpha"].split("|")
        shared = ("shared", owner["secret"])
        right = (f"worker:{ids['alpha']}", credentials["alpha"])
        other = (f"worker:{ids['beta']}", credentials["beta"])
        for (credential, secret), changes in (
            (shared, {"kind": "managed"}),
            (shared, {"kind": "attached", "bindingKey": f"spec-{ids['alpha']}"}),
            (shared, {"kind": "attached", "ownerId": "worker:alpha"}),
            (shared, {"kind": "attached", "target": target}),
            (other, {"bindingKey": f"spec-{ids['alpha']}"}),
            (other, {"ownerId": "worker:alpha"}),
            (other, {"ownerId": "worker:beta"}),
            (right, {"ownerId": "worker:alpha"}),
            (right, {"processBirthId": birth}),
            (right, {"processBirthId": f"{os.getpid()}:start:1"}),
            (right, {"pid": int(pid), "processBirthId": birth}),
        ):
            registration = a_registration(
                **{
                    "ownerId": None,
                    "pid": os.getpid(),
                    "processBirthId": own,
                    "cwd": str(self.system.project("alpha")),
                    **changes,
                }
            )
            cleaned = {name: value for name, value in registration.items() if value is not None}
            code = await deferToThread(register, owner["path"], credential, secret, cleaned)
            self.assertEqual(code, "BAD_REQUEST", (credential, changes))
        self.assertEqual(await self.picture(), before)
        self.assertEqual(self.routes(), routes)
        self.system.say("still there", alpha)
        await self.system.answer("You said: still there", alpha)

    @deferred
    async def picture(self) -> Any:
        """The status document's workers, and what the operator sees beside them."""
        document = await self.system.status()
        listed = [{**worker, "activity": None} for worker in document["workers"]]
        return listed, document["attached"], document["health"], document["problems"]

    def routes(self) -> list[Any]:
        """Which Thread is whose, and which process serves it."""
        return self.rows("SELECT * FROM bindings ORDER BY binding_key") + self.rows(
            "SELECT spec_id, spawn_id, pid, birth, state FROM spawns ORDER BY spawn_id"
        )

    def owner(self) -> dict[str, Any]:
        """Socket and secret, as an attached worker reads them."""
        path = self.system.agent_dir / "tmp/telegram/owners.json"
        record = json.loads(path.read_text())["default"]
        secret = record["busSecret"]
        raw = base64.urlsafe_b64decode(secret + "=" * (-len(secret) % 4))
        return {"path": record["busSocketPath"], "secret": raw}


def register(path: str, credential: str, secret: bytes, registration: dict[str, Any]) -> str:
    """Try to register; returns the error's code, or C{registered}."""
    client = RawClient(path)
    try:
        client.shake_hands(credential, secret)
        client.register(registration)
    except Refused as refused:
        return str(refused)
    finally:
        client.close()
    return "registered"


class Private(IdentityCase):
    """Every file, directory and socket, under no umask at all."""

    @deferred
    async def test_all_of_it(self) -> None:
        """All is 0600 and 0700 after a run; what was opened is reported by looking, and narrowed
        by the next start."""
        await self.start_unmasked()
        thread = await self.system.start_worker("alpha")
        self.system.say("hello", thread)
        await self.system.answer("You said: hello", thread)
        await self.key("alpha")
        names = self.is_private()
        runtime, data = "tmp/telegram/", "telegram/"
        for name in (
            *("owners.json", "bus.sock", "control.sock", "state.json", "logs.jsonl", "daemon.pid"),
            *("downloads", "uploads", "links"),
        ):
            self.assertIn(runtime + name, names)
        for name in ("default.sqlite3", "default.sqlite3-wal", "spool", *TRIO):
            self.assertIn(data + name, names)
        for pattern in (
            r"telegram/workers/spec-\w+\.sqlite3",
            r"telegram/workers/spec-\w+\.lock",
            r"telegram/workers/spec-\w+\.log",
            r"telegram/sessions/[0-9a-f]{64}\.lock",
        ):
            self.assertTrue([n for n in names if re.fullmatch(pattern, n)], pattern)
        await self.system.cli("stop")
        opened = self.open_all()
        await self.system.cli("status", "--json")
        await self.system.cli("doctor")
        found = self.modes()
        for modes in (found, opened):  # the living worker reads it, and may repair what is its own
            del modes["tmp/telegram/owners.json"]
        self.assertEqual(found, opened)
        await self.start_unmasked()
        self.system.say("again", thread)
        await self.system.answer("You said: again", thread)
        self.is_private()

    @deferred
    async def test_socket_for_a_group(self) -> None:
        """With a group its socket is open to that group, and nothing else is opened."""
        place = self.base / "door"
        place.mkdir()
        place.chmod(0o710)
        group = grp.getgrgid(os.getegid()).gr_name
        await self.start_unmasked(f"--control-socket={place}/c.sock", f"--socket-group={group}")
        info = os.lstat(place / "c.sock")
        self.assertEqual((stat.S_IMODE(info.st_mode), info.st_gid), (0o660, os.getegid()))
        self.assertEqual(stat.S_IMODE(os.lstat(place).st_mode), 0o710)
        self.assertNotIn("tmp/telegram/control.sock", self.is_private())
        self.assertEqual((await self.system.status())["health"], "ok")
        await self.system.cli("stop")
        done = await self.system.cli("start", f"--socket-group={group}")
        self.assertEqual(done.code, 2, done.err)
        self.assertIn("--control-socket", done.err)

    @deferred
    async def start_unmasked(self, *arguments: str) -> None:
        """C{pi-telegram start} under umask 000."""
        program = str(Path(sys.executable).parent / "pi-telegram")
        command = ["/bin/sh", "-c", 'umask 000; exec "$0" start "$@"', program, *arguments]
        done = await self.system.spawn(command).finished.when()
        self.assertEqual(done.code, 0, done.out + done.err)

    def modes(self) -> dict[str, int]:
        """Of all that is ours in the agent directory."""
        agent = self.system.agent_dir
        found = [agent / "telegram.json"]
        for root in (agent / "tmp/telegram", agent / "telegram"):
            found += [root, *root.rglob("*")]
        modes = {}
        for path in found:
            try:
                modes[str(path.relative_to(agent))] = os.lstat(path).st_mode
            except FileNotFoundError:
                continue  # the daemon writes meanwhile
        return modes

    def is_private(self) -> set[str]:
        """All of it is; returns the names."""
        found = self.modes()
        for name, mode in found.items():
            expected = 0o700 if stat.S_ISDIR(mode) else 0o600
            self.assertEqual(oct(stat.S_IMODE(mode)), oct(expected), name)
        return set(found)

    def open_all(self) -> dict[str, int]:
        """Let everybody do everything with it."""
        for name, mode in self.modes().items():
            os.chmod(self.system.agent_dir / name, 0o777 if stat.S_ISDIR(mode) else 0o666)
        return self.modes()

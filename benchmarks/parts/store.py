"""What the leader and the followers find on disk: specs, spawns, Threads, and old rows."""

from __future__ import annotations

import json
import time
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from twisted.internet.task import Clock

from pitelegram.ids import delivery_id, managed_binding
from pitelegram.kernel.paths import Paths
from pitelegram.store.bindings import Bindings
from pitelegram.store.database import Database
from pitelegram.store.leadership import Leadership
from pitelegram.store.specs import Specs

TOKEN = "424242:AAbenchmarkbenchmarkbenchmarkbenchmark0"
BOT = {"id": 424242, "is_bot": True, "first_name": "Bench", "username": "bench_bot"}
CHAT = 777_000
CONTROL_THREAD = 7
FIRST_THREAD = 100
FIRST_UPDATE = 500_000_000
OLD_UPDATE = 100_000_000


def spec_id(number: int) -> str:
    """Return the id of a spec."""
    return f"{number:016x}"


def credential(number: int) -> bytes:
    """Return the secret of a spec's spawn."""
    return bytes([number]) * 32


def prepare(agent_dir: Path, api_root: str, followers: int, retained: int) -> None:
    """Write everything before the first process starts."""
    paths = Paths(agent_dir)
    paths.agent_dir.mkdir()
    paths.prepare()
    profile = {
        "botToken": TOKEN,
        "botId": BOT["id"],
        "botUsername": BOT["username"],
        "allowedUserId": CHAT,
        "apiRoot": api_root,
    }
    paths.telegram_json.write_text(json.dumps({"profiles": {"default": profile}}))
    paths.telegram_json.chmod(0o600)
    clock = Clock()
    clock.advance(time.time())
    _prepare_leader(paths, clock, followers, retained)
    for number in range(followers):
        _prepare_follower(paths, clock, number, range(number, retained, followers))


def _prepare_leader(paths: Paths, clock: Clock, followers: int, retained: int) -> None:
    database = Database(paths.database, "leader", clock)
    database.open()
    database.acquire("before")
    bindings, specs = Bindings(database), Specs(database)
    Leadership(database).set_meta("thread_mode", "enabled")
    bindings.ensure("daemon", "daemon", None)
    bindings.set_target("daemon", CHAT, CONTROL_THREAD, None)
    for number in range(followers):
        key, directory = managed_binding(spec_id(number)), str(paths.agent_dir / f"p{number}")
        specs.create(spec_id(number), f"p{number}", directory)
        specs.want(spec_id(number), "running", f"slot-{number}")
        specs.intend(f"spawn-{number}", spec_id(number), credential(number))
        bindings.ensure(key, "managed", directory)
        bindings.assign_slot(key, ascii_uppercase[number], f"Name {number}")
        bindings.set_target(key, CHAT, FIRST_THREAD + number, None)
    now = database.now_ms()
    rows = (_old_row(number, followers, now) for number in range(retained))
    notes = (
        (CHAT, number, managed_binding(spec_id(number % followers)), now)
        for number in range(retained)
    )

    def work(connection: Any) -> None:
        connection.executemany(
            "INSERT INTO journal (bot_id, update_id, kind, chat_id, thread_id, message_id, state,"
            " recipient, delivery_id, confirmed, received_ms, settled_ms)"
            " VALUES (?, ?, 'message', ?, ?, ?, 'settled', ?, ?, 1, ?, ?)",
            rows,
        )
        connection.executemany("INSERT INTO messages VALUES (?, ?, ?, 0, ?)", notes)

    database.write("old rows", work)
    database.close()


def _old_row(number: int, followers: int, now: int) -> tuple[Any, ...]:
    key = managed_binding(spec_id(number % followers))
    update = OLD_UPDATE + number
    name = delivery_id("message", key, update)
    thread = FIRST_THREAD + number % followers
    return (BOT["id"], update, CHAT, thread, number, key, name, now, now)


def _prepare_follower(paths: Paths, clock: Clock, number: int, old: range) -> None:
    key = managed_binding(spec_id(number))
    database = Database(paths.worker_database(key), "worker", clock)
    database.open()
    now = database.now_ms()
    rows = [
        (delivery_id("message", key, OLD_UPDATE + each), OLD_UPDATE + each, CHAT, now, now, now)
        for each in old
    ]

    def work(connection: Any) -> None:
        connection.executemany(
            "INSERT INTO inbox (delivery_id, source, kind, update_id, chat_id, state, admitted_ms,"
            " settled_ms, confirmed_ms) VALUES (?, 'telegram', 'message', ?, ?, 'settled', ?, ?, ?)",
            rows,
        )

    database.write("old rows", work)
    database.close()

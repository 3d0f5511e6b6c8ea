"""telegram.json: read by declared keys, changed without losing anybody's keys."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import ConfigError, NotConfigured, OwnershipError, UnsafeFile
from pitelegram.kernel.guard import TransactionGuard
from pitelegram.kernel.paths import Paths
from pitelegram.settings.document import merge, migrate, parse, render
from pitelegram.settings.file import SettingsFile, load
from pitelegram.settings.secret import Secret
from pitelegram.settings.watching import Watcher

TOKEN = "123456:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"

WRITER = """
import sys
from pitelegram.kernel.paths import Paths
from pitelegram.settings.file import SettingsFile
file = SettingsFile(Paths(sys.argv[1]), {})
for number in range(20):
    def change(document):
        document.setdefault(sys.argv[2], {})[str(number)] = number
        document["total"] = document.get("total", 0) + 1
    file.update_blocking(change)
"""


class SettingsCase(SynchronousTestCase):
    """A fresh agent directory."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp()).absolute()
        self.base.mkdir()
        self.environ: dict[str, str] = {}

    def paths(self, profile: str = "default") -> Paths:
        """Its paths."""
        return Paths(self.base, profile)

    @property
    def path(self) -> Path:
        """The file."""
        return self.base / "telegram.json"

    def put(self, document: Any) -> None:
        """Write it as another program would."""
        text = document if isinstance(document, str) else json.dumps(document)
        self.path.write_text(text)

    def file(self, profile: str = "default") -> SettingsFile:
        """Our view of it."""
        return SettingsFile(self.paths(profile), self.environ, lambda: 1234.5)

    def disk(self) -> Any:
        """What stands in the file."""
        return json.loads(self.path.read_text())


class ReadTests(SettingsCase):
    """Reading."""

    def test_missing(self) -> None:
        """Without a file there are the defaults, and no token, which is said with the cure."""
        settings = load(self.paths(), {})
        self.assertTrue(settings.threads_automatic_cleanup)
        self.assertFalse(settings.recovered)
        error = self.assertRaises(NotConfigured, settings.require_token)
        self.assertIn("pi-telegram setup", str(error))
        self.assertFalse(self.path.exists())

    def test_keys(self) -> None:
        """Every declared key is read."""
        self.put(
            {
                "profiles": {
                    "default": {
                        "botToken": TOKEN,
                        "botId": 5,
                        "botUsername": "b",
                        "allowedUserId": 7,
                        "apiRoot": "http://127.0.0.1:1",
                        "threadDisplayMode": "directories",
                    }
                },
                "cluster": {"leader": "daemon"},
                "workers": {
                    "command": "pi x",
                    "roots": ["/a"],
                    "env": {"A": "1"},
                    "passEnv": ["X_*"],
                },
                "threads": {"automaticCleanup": False, "unattendedCleanup": True},
                "pairing": {"firstContact": True},
                "assistant": {"rendering": "html", "activity": "tools", "timeInjection": "off"},
                "voice": {"replyMode": "mirror", "sendTranscript": True},
                "inboundHandlers": [{"x": 1}],
                "network": {"proxy": "http://p:1", "family": "ipv4"},
                "control": {"socket": "/s", "socketGroup": "g"},
                "outbox": {"ambiguous": "resend"},
            }
        )
        s = load(self.paths(), {})
        self.assertEqual(s.require_token(), Secret(TOKEN))
        self.assertEqual((s.bot_id, s.bot_username, s.allowed_user_id), (5, "b", 7))
        self.assertEqual(
            (s.api_root, s.thread_display_mode), ("http://127.0.0.1:1", "directory-title")
        )
        self.assertEqual((s.cluster_leader, s.workers_command), ("daemon", "pi x"))
        self.assertEqual((s.workers_roots, s.workers_env), (("/a",), {"A": "1"}))
        self.assertEqual((s.workers_pass_env, s.pairing_first_contact), (("X_*",), True))
        self.assertEqual((s.threads_automatic_cleanup, s.threads_unattended_cleanup), (False, True))
        self.assertEqual((s.assistant_activity, s.assistant_time_injection), ("tools", "hidden"))
        self.assertEqual((s.voice_reply_mode, s.inbound_handlers), ("mirror", ({"x": 1},)))
        self.assertEqual((s.network_family, s.outbox_ambiguous), ("ipv4", "resend"))
        self.assertEqual((s.control_socket, s.control_socket_group), ("/s", "g"))

    def test_former_words(self) -> None:
        """Words of older versions mean what took their place."""
        self.put({"voice": {"replyMode": "manual"}, "assistant": {"timeInjection": "off"}})
        settings = load(self.paths(), {})
        self.assertEqual(
            (settings.voice_reply_mode, settings.assistant_time_injection), ("hidden", "hidden")
        )

    def test_handlers(self) -> None:
        """Entries under the old name come after the others; a bad one is left to its user."""
        self.put({"inboundHandlers": [{"x": 1}, "bad"], "attachmentHandlers": [{"y": 2}]})
        s = load(self.paths(), {})
        self.assertEqual(s.inbound_handlers, ({"x": 1}, "bad", {"y": 2}))
        self.assertEqual(s.problems, ())
        self.put({"inboundHandlers": {"x": 1}, "attachmentHandlers": [{"y": 2}]})
        s = load(self.paths(), {})
        self.assertEqual(s.inbound_handlers, ({"y": 2},))
        self.assertEqual(s.problems, ("telegram.json: inboundHandlers must be a list",))

    def test_wrong_values(self) -> None:
        """A wrong value that matters stops with its key's name; another has its default and is told."""
        for document, key in (
            ({"cluster": {"leader": "me"}}, "cluster.leader"),
            ({"workers": {"roots": "/a"}}, "workers.roots"),
            ({"workers": {"env": {"A": 1}}}, "workers.env"),
            ({"profiles": {"default": {"allowedUserId": True}}}, "allowedUserId"),
            ({"profiles": []}, "profiles"),
            ({"profiles": {"default": 5}}, "profiles.default"),
            ({"pairing": {"firstContact": "yes"}}, "pairing.firstContact"),
        ):
            self.put(document)
            error = self.assertRaises(ConfigError, load, self.paths(), {})
            self.assertIn(key, str(error))
        self.put({"assistant": {"rendering": 5, "activity": "loud"}, "profiles": {"Not Good": {}}})
        settings = load(self.paths(), {})
        self.assertEqual(
            (settings.assistant_rendering, settings.assistant_activity), ("rich", "quiet")
        )
        self.assertEqual(len(settings.problems), 2)

    def test_token_reference(self) -> None:
        """C{$NAME} and C{${NAME}} are looked up; an unset one is named; the names are kept."""
        for text in ("$BOT", "${BOT}"):
            self.put({"profiles": {"default": {"botToken": text}, "work": {"botToken": "$OTHER"}}})
            settings = load(self.paths(), {"BOT": TOKEN, "OTHER": "zzz"})
            self.assertEqual(settings.require_token().reveal(), TOKEN)
            self.assertEqual(settings.token_variables, {"BOT", "OTHER"})
            self.assertEqual([t.reveal() for t in settings.other_tokens], ["zzz"])
            error = self.assertRaises(NotConfigured, load(self.paths(), {}).require_token)
            self.assertIn("BOT", str(error))

    def test_token_file(self) -> None:
        """A token file is read, a link included; a bad one is told without its path."""
        (self.base / "secret").write_text(TOKEN + "\n")
        (self.base / "link").symlink_to(self.base / "secret")
        for name in ("secret", "link", str(self.base / "secret")):
            self.put({"profiles": {"default": {"botTokenFile": name}}})
            self.assertEqual(load(self.paths(), {}).require_token().reveal(), TOKEN)
        os.mkfifo(self.base / "pipe")
        (self.base / "empty").write_text("")
        for name in ("absent", "pipe", "empty", "."):
            self.put({"profiles": {"default": {"botTokenFile": name}}})
            error = self.assertRaises(NotConfigured, load(self.paths(), {}).require_token)
            self.assertNotIn(str(self.base), str(error))

    def test_without_token(self) -> None:
        """A reader that asks without gets no token in any way."""
        self.put({"profiles": {"default": {"botToken": TOKEN}, "work": {"botToken": "w" * 40}}})
        settings = self.file().load(with_token=False)
        self.assertIsNone(settings.bot_token)
        self.assertEqual(settings.other_tokens, ())
        self.assertNotIn(TOKEN, repr(settings) + json.dumps(self.file().document()))
        self.assertIn(TOKEN, json.dumps(self.file().document(with_tokens=True)))

    def test_secret_hides(self) -> None:
        """Neither C{repr} nor C{str} shows a secret; its digest can be told."""
        self.put({"profiles": {"default": {"botToken": TOKEN}}})
        settings = load(self.paths(), {})
        self.assertNotIn("AAEh", f"{settings!r} {settings.bot_token!s} {settings.bot_token!r}")
        self.assertEqual(len(settings.require_token().digest()), 64)

    def test_narrowed(self) -> None:
        """A file that is too open is left so by who reads it, and narrowed by who writes, even if
        nothing is to be changed, and by a start of the daemon."""
        for narrow in (lambda: self.file().update_blocking(lambda document: None), self.start):
            self.put({})
            self.path.chmod(0o644)
            load(self.paths(), {})
            self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o644)
            narrow()
            self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)

    def start(self) -> None:
        """What a start does with all that is there."""
        self.paths().narrow()

    def test_narrowed_behind_a_link(self) -> None:
        """Of a link the file is narrowed; one of another kind or owner is refused."""
        real = self.base / "config"
        real.write_text("{}")
        real.chmod(0o664)
        self.path.symlink_to(real)
        self.start()
        self.assertEqual(stat.S_IMODE(real.stat().st_mode), 0o600)
        self.assertTrue(self.path.is_symlink())
        for target in ("/dev/null", str(self.base)):
            self.path.unlink()
            self.path.symlink_to(target)
            for attempt in (self.start, lambda: load(self.paths(), {})):
                error = self.assertRaises(UnsafeFile, attempt)
                self.assertIn(error.code, ("wrong_type", "wrong_owner"))
        if os.geteuid() == 0:
            os.chown(real, 65534, 65534)
            self.path.unlink()
            self.path.symlink_to(real)
            for attempt in (self.start, lambda: load(self.paths(), {})):
                self.assertEqual(self.assertRaises(UnsafeFile, attempt).code, "wrong_owner")
            os.chown(real, 0, 0)
            os.chown(self.path, 65534, 65534, follow_symlinks=False)
            error = self.assertRaises(UnsafeFile, load, self.paths(), {})
            self.assertEqual(error.code, "wrong_owner")

    def test_link(self) -> None:
        """A link to an own regular file is followed, and a write replaces that file."""
        (self.base / "dots").mkdir()
        real = self.base / "dots" / "config"
        real.write_text('{"a": 1}')
        self.path.symlink_to(real)
        self.assertTrue(self.file().update_blocking(lambda d: d.update(b=2)))
        self.assertTrue(self.path.is_symlink())
        self.assertEqual(json.loads(real.read_text()), {"a": 1, "b": 2})
        real.unlink()
        real.mkdir()
        self.assertRaises(UnsafeFile, load, self.paths(), {})


class MigrationTests(SettingsCase):
    """An identity at the root."""

    def test_moves(self) -> None:
        """It becomes the default profile's, in memory at once and on disk at the next write."""
        self.put(
            {"botToken": TOKEN, "allowedUserId": 7, "x": 1, "profiles": {"default": {"botId": 5}}}
        )
        settings = load(self.paths(), {})
        self.assertEqual((settings.allowed_user_id, settings.bot_id), (7, 5))
        self.assertIn("botToken", self.disk())
        self.file().update_blocking(lambda document: None)
        self.assertEqual(
            self.disk(),
            {"x": 1, "profiles": {"default": {"botId": 5, "botToken": TOKEN, "allowedUserId": 7}}},
        )

    def test_conflicts(self) -> None:
        """Identical ones collapse; different ones and one without a token are refused."""
        same = {"botToken": "t", "profiles": {"default": {"botToken": "t"}}}
        self.assertEqual(migrate(same), {"profiles": {"default": {"botToken": "t"}}})
        other = {"botToken": "t", "profiles": {"default": {"botToken": "u"}}}
        self.assertRaises(ConfigError, migrate, other)
        self.assertRaises(ConfigError, migrate, {"allowedUserId": 7})
        self.assertRaises(ConfigError, migrate, {"botToken": "t", "profiles": []})
        cursor = {"botToken": "t", "lastUpdateId": 3, "profiles": {"default": {"lastUpdateId": 9}}}
        self.assertEqual(migrate(cursor)["profiles"]["default"]["lastUpdateId"], 9)


class DamageTests(SettingsCase):
    """Invalid JSON."""

    def test_moved_aside(self) -> None:
        """It is kept under another name, and nothing is deleted by itself for that load."""
        for number, text in enumerate(("{", "[]", "\0", '{"a": NaN}', "")):
            self.put(text)
            now = 1000.0 + number
            settings = SettingsFile(self.paths(), {}, lambda now=now: now).load()
            self.assertTrue(settings.recovered)
            self.assertFalse(settings.threads_automatic_cleanup)
            aside = self.base / f"telegram.json.invalid-{os.getpid()}-{int(now * 1000)}"
            self.assertEqual(aside.read_text(), text)
            self.assertFalse(self.path.exists())

    def test_update_refuses(self) -> None:
        """A change never overwrites what it cannot read."""
        self.put("{")
        self.assertRaises(ConfigError, self.file().update_blocking, lambda d: d.update(a=1))
        self.assertEqual(self.path.read_text(), "{")

    def test_repaired_meanwhile(self) -> None:
        """What another process repaired while we waited for the guard is used."""
        self.put("{")
        file = self.file()
        guard = TransactionGuard(self.paths().telegram_guard)

        def inside() -> None:
            self.put({"cluster": {"leader": "daemon"}})
            self.assertEqual(file.load(attempts=1).cluster_leader, "daemon")

        guard.run_blocking(inside)
        self.put("{")
        guard.run_blocking(lambda: self.assertTrue(file.load(attempts=1).recovered))
        self.assertEqual(self.path.read_text(), "{")


class WriteTests(SettingsCase):
    """Changes."""

    def test_text(self) -> None:
        """The file is indented by tabs, ends with a newline, is 0600, and keeps unknown keys."""
        self.put({"theirs": {"ü": [1, 2.5, None]}})
        self.assertTrue(self.file().update_blocking(lambda d: d.setdefault("a", {}).update(b=1)))
        self.assertEqual(
            self.path.read_text(),
            '{\n\t"theirs": {\n\t\t"ü": [\n\t\t\t1,\n\t\t\t2.5,\n\t\t\tnull\n\t\t]\n\t},\n'
            '\t"a": {\n\t\t"b": 1\n\t}\n}\n',
        )
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)

    def test_nothing_to_write(self) -> None:
        """A change that changes nothing does not touch the file."""
        self.put('{"a":1}')
        before = self.path.stat().st_ino
        self.assertFalse(self.file().update_blocking(lambda document: None))
        self.assertEqual(self.path.stat().st_ino, before)

    def test_failing_mutation(self) -> None:
        """An error inside a mutation leaves the file and no guard."""
        self.put({"a": 1})
        self.assertRaises(KeyError, self.file().update_blocking, lambda d: d["absent"])
        self.assertEqual(sorted(p.name for p in self.base.iterdir()), ["telegram.json"])

    def test_async(self) -> None:
        """With a reactor the guard is waited for by the clock."""
        clock = Clock()
        self.successResultOf(self.file().update(clock, lambda d: d.update(a=1)))
        guard = TransactionGuard(self.paths().telegram_guard)
        waiting: list[Any] = []
        guard.run_blocking(
            lambda: waiting.append(self.file().update(clock, lambda d: d.update(b=2)))
        )
        self.assertNoResult(waiting[0])
        clock.advance(0.025)
        self.assertTrue(self.successResultOf(waiting[0]))
        self.assertEqual(self.disk(), {"a": 1, "b": 2})

    def test_busy(self) -> None:
        """A guard that stays taken is an error, and nothing was written."""
        guard = TransactionGuard(self.paths().telegram_guard)
        file = SettingsFile(self.paths(), {})
        clock = Clock()

        def inside() -> None:
            waiting = file.update(clock, lambda d: d.update(a=1))
            clock.pump([0.025] * 81)
            self.failureResultOf(waiting, OwnershipError)

        guard.run_blocking(inside)
        self.assertFalse(self.path.exists())

    def test_save_keeps_what_others_did(self) -> None:
        """An edit that took a while brings in its own changes only."""
        base = {"a": {"x": 1, "y": 1}, "gone": 1}
        self.put({"a": {"x": 1, "y": 2}, "gone": 1, "new": 5})
        clock = Clock()
        self.successResultOf(self.file().save(clock, base, {"a": {"x": 3, "y": 1}}))
        self.assertEqual(self.disk(), {"a": {"x": 3, "y": 2}, "new": 5})

    def test_two_processes(self) -> None:
        """Two processes that change the file at once lose nothing."""
        running = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(self.base), name])
            for name in ("one", "two")
        ]
        self.assertEqual([process.wait(60) for process in running], [0, 0])
        document = self.disk()
        self.assertEqual(document["total"], 40)
        self.assertEqual((len(document["one"]), len(document["two"])), (20, 20))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.sampled_from("abc"), JSON)


class MergeTests(SynchronousTestCase):
    """L{merge}, by its laws."""

    @given(OBJECT, OBJECT)
    def test_nobody_else(self, base: dict, desired: dict) -> None:
        """Without another change the result is what was wanted."""
        self.assertEqual(merge(base, desired, base), desired)

    @given(OBJECT, OBJECT)
    def test_nothing_wanted(self, base: dict, latest: dict) -> None:
        """Without a change of ours the result is what stands there."""
        self.assertEqual(merge(base, base, latest), latest)

    @given(OBJECT, st.integers(), st.integers())
    def test_apart(self, base: dict, mine: int, theirs: int) -> None:
        """Changes to different keys both survive."""
        result = merge(base, {**base, "mine": mine}, {**base, "theirs": theirs})
        self.assertEqual(result, {**base, "mine": mine, "theirs": theirs})

    def test_cursor(self) -> None:
        """A polling cursor only grows and is never removed."""
        self.assertEqual(
            merge({"lastUpdateId": 1}, {"lastUpdateId": 2}, {"lastUpdateId": 9}),
            {"lastUpdateId": 9},
        )
        self.assertEqual(merge({"lastUpdateId": 1}, {}, {"lastUpdateId": 1}), {"lastUpdateId": 1})

    def test_removed_by_others(self) -> None:
        """A key that another program removed and we did not touch stays removed."""
        self.assertEqual(merge({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"b": 1}), {"b": 2})

    @given(OBJECT)
    def test_round_trip(self, document: dict) -> None:
        """What is written is read again as it was."""
        self.assertEqual(parse(render(document)), document)

    def test_odd_texts(self) -> None:
        """A byte order mark and lone surrogates of other programs are survived."""
        self.assertEqual(parse(b'\xef\xbb\xbf{"a": "\\ud800"}'), {"a": "\ud800"})
        self.assertEqual(parse(render({"a": "\ud800"})), {"a": "\ud800"})


class WatcherTests(SettingsCase):
    """Re-reading while the daemon runs."""

    def setUp(self) -> None:
        super().setUp()
        self.put({"profiles": {"default": {"botToken": TOKEN, "allowedUserId": 7}}})
        self.clock = Clock()
        file = self.file()
        self.watcher = Watcher(file, file.load(), self.clock)
        self.seen: list[Any] = []
        self.watcher.subscribe(self.seen.append)
        self.watcher.startService()
        self.addCleanup(self.watcher.stopService)

    def test_change(self) -> None:
        """A change is seen within two seconds, or at once when asked."""
        self.put({"profiles": {"default": {"botToken": TOKEN, "allowedUserId": 71}}})
        self.assertEqual(self.seen, [])
        self.clock.advance(2)
        self.assertEqual([s.allowed_user_id for s in self.seen], [71])
        self.put({"profiles": {"default": {"botToken": TOKEN, "allowedUserId": 8}}})
        self.assertEqual(self.watcher.look().allowed_user_id, 8)
        self.clock.pump([2.0] * 3)
        self.assertEqual(len(self.seen), 2)

    def test_saved_in_two_steps(self) -> None:
        """A file that is away for a moment unpairs nobody; one that stays away is gone."""
        self.path.rename(self.base / "backup~")
        self.watcher.look()
        self.clock.advance(2)
        self.watcher.look()
        self.assertEqual(self.watcher.settings.allowed_user_id, 7)
        self.put({"profiles": {"default": {"botToken": TOKEN, "allowedUserId": 8}}})
        self.clock.advance(2)
        self.assertEqual([s.allowed_user_id for s in self.seen], [8])
        self.path.unlink()
        self.clock.advance(2)
        self.assertEqual(self.watcher.settings.allowed_user_id, 8)
        self.clock.advance(2)
        self.assertIsNone(self.watcher.settings.allowed_user_id)

    def test_damage_keeps_what_is_in_force(self) -> None:
        """An invalid file unpairs nobody; only deletions by itself are off."""
        self.put("{ broken")
        self.clock.advance(2)
        [settings] = self.seen
        self.assertEqual(settings.allowed_user_id, 7)
        self.assertTrue(settings.recovered)
        self.assertFalse(settings.threads_automatic_cleanup)

    def test_wrong_value_keeps_what_is_in_force(self) -> None:
        """A value that cannot be understood changes nothing."""
        self.put({"cluster": {"leader": 5}})
        self.clock.advance(2)
        self.assertEqual(self.seen, [])
        self.assertEqual(self.watcher.settings.allowed_user_id, 7)
        assert self.watcher.problem is not None
        self.assertIn("cluster.leader", self.watcher.problem)
        self.put({"profiles": {"default": {"botToken": TOKEN, "allowedUserId": 7}}})
        self.clock.advance(2)
        self.assertIsNone(self.watcher.problem)

    def test_stop(self) -> None:
        """After the stop no timer runs."""
        self.watcher.stopService()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.watcher.startService()

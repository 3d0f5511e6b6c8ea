"""Nothing secret survives redaction, and ordinary text does."""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.logger import Logger, LogLevel, LogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.logs import (
    ConsoleObserver,
    JsonLinesObserver,
    RecentEvents,
    at_level,
    forward_stdlib,
)
from pitelegram.kernel.notify import notify
from pitelegram.kernel.redact import Secrets, redact, redact_public

TOKEN = "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"


class RedactTests(SynchronousTestCase):
    """Text."""

    def test_token(self) -> None:
        """A bot token goes wherever it stands: in a URL, after a word, quoted for a URL."""
        for text in (
            TOKEN,
            f"https://api.telegram.org/bot{TOKEN}/getMe",
            f"x{TOKEN}y",
            TOKEN.replace(":", "%3A"),
            f"({TOKEN})",
        ):
            for result in (redact(text), redact_public(text)):
                self.assertNotIn("AAEhBOweik6ad9r", result)

    def test_content_keeps_everything_else(self) -> None:
        """The owner's own text keeps paths, addresses and ids."""
        text = (
            "see /home/me/x.py at 10.0.0.1, mail a@b.org, password: x, 12:30:45 and 5000:1790000000"
        )
        self.assertEqual(redact(text), text)

    def test_public(self) -> None:
        """Paths, credentials, addresses and ids are removed from public text."""
        for text in (
            "/home/bob/x.py",
            "~/.ssh/id_rsa",
            "/tmp",
            "/api/v1/users",
            "C:\\Users\\x",
            "token=abc",
            "API_KEY=zz",
            "password: x",
            '"api_key": "zz"',
            "user:pw@host",
            "https://me:pw@host/x",
            "Authorization: Basic abcdef",
            "Bearer abcdefgh",
            "eyJhbGciOiJI.eyJzdWIi.sig",
            "AKIAABCDEFGHIJKLMNOP",
            "sk-abcdefghij",
            "ghp_abcdefghij",
            "-1001234567890",
            "chat_id: 5",
            "message_thread_id=77",
            "w1:p1",
            "toolu_abcdef",
            "session_abcdef",
            "term_abcd12",
            "call_abcdef12",
            "10.1.2.3",
            "192.168.0.1",
            "127.0.0.1",
            "::1",
            "fe80::1",
            "unix:///run/x.sock",
            "bob@example.org",
            "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
        ):
            result = redact_public(f"before {text} after")
            self.assertNotIn(text, result, text)
            self.assertIn("[redacted]", result, text)
            self.assertTrue(result.startswith("before "), result)

    def test_public_keeps(self) -> None:
        """Ordinary text stays as it is."""
        for text in (
            "src/app.py",
            "git push --force",
            "-100123",
            "8.8.8.8",
            "https://example.org/a/b?x=1",
            "pi-telegram ready profile=default bot=@name pid=12",
            "1/2 and/or 12:30:45",
            "5 of 20000 rows, update 123456789",
            "twref1 and twplan1",
            "ratio 3:4, w1:x1, at 10.5 %",
            "a session of the user, its path and its text",
        ):
            self.assertEqual(redact_public(text), text)

    def test_disguise(self) -> None:
        """Invisible and compatibility characters do not hide a secret."""
        hidden = "\u200b".join(TOKEN)
        wide = TOKEN.translate({ord(c): ord(c) + 0xFEE0 for c in "0123456789"})
        for text in (hidden, wide, "pass\u00adword: hunter2", "a\0b"):
            result = redact_public(text)
            self.assertNotIn("AAEhBOweik", result)
            self.assertNotIn("hunter2", result)
            self.assertNotIn("\0", result)

    def test_redacted_before_cut(self) -> None:
        """A secret that straddles the cut is not shown in part."""
        for shift in range(60):
            result = redact_public("x" * shift + " " + TOKEN, limit=40)
            self.assertNotIn("AAEh", result)
            self.assertLessEqual(len(result), 40)

    def test_hostile_text_is_quick(self) -> None:
        """No text makes the patterns run away."""
        before = time.process_time()
        for text in ("a1", "token", "a:", "a-", "/", "a.b@", "secret", "eyJ", " ", "~", "::"):
            redact_public(text * 50_000)
        self.assertLess(time.process_time() - before, 10)

    @given(st.text(max_size=200), st.text(max_size=200))
    def test_known_secrets(self, before: str, after: str) -> None:
        """A known secret never survives, whatever stands around it."""
        secrets = Secrets()
        secrets.add("s3cr3t/value+x")
        for text in ("s3cr3t/value+x", "s3cr3t%2Fvalue%2Bx"):
            self.assertNotIn(text, secrets.redact(before + text + after))

    def test_registry(self) -> None:
        """Short strings are no secrets; removed ones are forgotten; longer ones go first."""
        secrets = Secrets()
        secrets.add("short", "long-secret", "long-secret-longer")
        self.assertEqual(secrets.redact("short long-secret-longer."), "short [redacted].")
        secrets.remove("long-secret", "long-secret-longer")
        self.assertEqual(secrets.redact("long-secret"), "long-secret")

    def test_labels(self) -> None:
        """Remembered labels are as if looked at anew: a secret that is learned later goes too."""
        secrets = Secrets()
        self.assertEqual(secrets.label_public("notes in /home/bob"), "notes in [redacted]")
        for text in ("swordfish-1", "x" * 300 + " swordfish-1"):
            self.assertEqual(secrets.label_public(text), text)
            self.assertEqual(secrets.label_public(text), text)
        secrets.add("swordfish-1")
        self.assertEqual(secrets.label_public("swordfish-1"), "[redacted]")
        self.assertNotIn("swordfish", secrets.label_public("x" * 300 + " swordfish-1"))
        secrets.remove("swordfish-1")
        self.assertEqual(secrets.label_public("swordfish-1"), "swordfish-1")
        for number in range(10_000):
            secrets.label_public(f"label {number}")
        self.assertLess(len(secrets._labels), 5000)


class LogTests(SynchronousTestCase):
    """Observers."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp()).absolute()
        self.base.mkdir()
        self.publisher = LogPublisher()
        self.log = Logger("test", observer=self.publisher)

    def lines(self) -> list[dict]:
        """What stands in the file."""
        return [json.loads(line) for line in (self.base / "l").read_text().splitlines()]

    def file(self, **kw: int) -> JsonLinesObserver:
        """An observer on that file."""
        observer = JsonLinesObserver(self.base / "l", self.base / "p", **kw)
        self.addCleanup(observer.close)
        self.publisher.addObserver(observer)
        return observer

    def test_fields_and_tracebacks(self) -> None:
        """Message, every field and the traceback are redacted; private names show no value."""
        self.file()
        recent = RecentEvents()
        self.publisher.addObserver(recent)
        try:
            raise ValueError(f"bot{TOKEN} in /home/bob/x")
        except ValueError:
            self.log.failure(
                "it broke: {what}",
                Failure(),
                what=TOKEN,
                worker="demo",
                chat_id=5,
                directory="d",
                n=3,
            )
        text = (self.base / "l").read_text()
        for hidden in ("AAEhBO", "/home/bob", '"d"'):
            self.assertNotIn(hidden, text)
        [event] = self.lines()
        self.assertEqual(event["fields"]["worker"], "demo")
        self.assertEqual(event["fields"]["chat_id"], "[redacted]")
        self.assertEqual(event["fields"]["n"], 3)
        self.assertEqual(event["level"], "critical")
        self.assertIn("test_redact.py", event["traceback"])
        self.assertEqual(recent.newest(5), [event])
        self.assertEqual(os.stat(self.base / "l").st_mode & 0o777, 0o600)

    def test_console(self) -> None:
        """The console line has level and message, redacted of secrets only; a closed one is no error."""
        stream = io.StringIO()
        self.publisher.addObserver(at_level(ConsoleObserver(stream), "info"))
        self.log.info("token {t} in {p}", t=TOKEN, p="/home/me")
        self.log.debug("hidden")
        self.log.info("braces {{}} {what}", what='{"a": 1}')
        self.assertIn("[info] token [redacted] in /home/me", stream.getvalue())
        self.assertIn('braces {} {"a": 1}', stream.getvalue())
        self.assertNotIn("hidden", stream.getvalue())
        stream.close()
        self.log.info("nobody hears")
        self.assertRaises(ValueError, at_level, ConsoleObserver(stream), "loud")

    def test_twisted_about_itself(self):
        """Factories that start are no news for the operator; their problems are, and so is all at debug."""
        shown = {}
        for level in ("debug", "info"):
            shown[level] = io.StringIO()
            self.publisher.addObserver(at_level(ConsoleObserver(shown[level]), level))
        theirs = Logger(namespace="twisted.web.client.Factory", observer=self.publisher)
        theirs.info("starting factory")
        theirs.warn("a factory that fails")
        self.assertNotIn("starting factory", shown["info"].getvalue())
        self.assertIn("a factory that fails", shown["info"].getvalue())
        self.assertIn("starting factory", shown["debug"].getvalue())

    def test_rotation(self) -> None:
        """At its size the file becomes the previous one; only one of those is kept."""
        self.file(rotate_bytes=1000)
        for number in range(100):
            self.log.info("line {number}", number=number)
        self.assertLessEqual((self.base / "l").stat().st_size, 1000)
        self.assertLessEqual((self.base / "p").stat().st_size, 1000)
        self.assertEqual(self.lines()[-1]["message"], "line 99")
        self.assertEqual(sorted(p.name for p in self.base.iterdir()), ["l", "p"])

    def test_removed_file(self) -> None:
        """A log file that somebody removed or renamed is made anew; nothing goes into the old one."""
        observer = self.file()
        self.log.info("one")
        (self.base / "l").unlink()
        self.log.info("two")
        self.assertEqual([line["message"] for line in self.lines()], ["two"])
        (self.base / "l").rename(self.base / "elsewhere")
        self.log.info("three")
        self.assertEqual([line["message"] for line in self.lines()], ["three"])
        self.assertIsNone(observer.problem)

    def test_lost_lines(self) -> None:
        """A log that cannot be written has a problem, until a line gets through."""
        observer = self.file()
        (self.base / "l").mkdir()
        self.log.info("one")
        self.assertIn("cannot be written", observer.problem or "")
        (self.base / "l").rmdir()
        self.log.info("two", n=10**30)
        self.assertIsNone(observer.problem)
        self.assertEqual(self.lines()[0]["fields"], {"n": str(10**30)})

    def test_unsafe_file_loses_lines_only(self) -> None:
        """A log file that is a link is not written, and logging goes on when it is repaired."""
        (self.base / "l").symlink_to(self.base / "target")
        self.file()
        self.log.info("one")
        self.assertFalse((self.base / "target").exists())
        (self.base / "l").unlink()
        self.log.info("two")
        self.assertEqual([line["message"] for line in self.lines()], ["two"])

    def test_recent(self) -> None:
        """The newest events are kept, and subscribers hear of each until they leave."""
        recent = RecentEvents(size=3)
        self.publisher.addObserver(recent)
        heard: list[str] = []
        leave = recent.subscribe(lambda event: heard.append(event["message"]))
        for number in range(5):
            self.log.info("{n}", n=number)
        leave()
        self.log.info("later")
        self.assertEqual(heard, ["0", "1", "2", "3", "4"])
        self.assertEqual([e["message"] for e in recent.newest(2)], ["4", "later"])
        self.assertEqual(recent.newest(0), [])

    def test_stdlib(self) -> None:
        """What libraries log through the standard module arrives with its level."""
        events: list[dict] = []
        from twisted.logger import globalLogPublisher

        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        handler = forward_stdlib()
        self.addCleanup(logging.getLogger().removeHandler, handler)
        logging.getLogger("lib").warning("100%% of {%s}", "x")
        self.assertEqual(events[-1]["log_level"], LogLevel.warn)
        self.assertEqual(events[-1]["text"], "100% of {x}")
        try:
            raise KeyError("k")
        except KeyError:
            logging.getLogger("lib").exception("broken")
        self.assertEqual(events[-1]["log_failure"].type, KeyError)
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)


class NotifyTests(SynchronousTestCase):
    """L{notify}."""

    def test_notify(self) -> None:
        """The state arrives at the named socket; without one, or with nobody there, nothing fails."""
        path = str(Path(self.mktemp()).absolute())
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            receiver.bind(path)
            self.assertTrue(notify("READY=1", {"NOTIFY_SOCKET": path}))
            self.assertEqual(receiver.recv(100), b"READY=1")
            abstract = f"@pi-telegram-test-{os.getpid()}"
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
                other.bind("\0" + abstract[1:])
                self.assertTrue(notify("STOPPING=1", {"NOTIFY_SOCKET": abstract}))
                self.assertEqual(other.recv(100), b"STOPPING=1")
        self.assertFalse(notify("READY=1", {}))
        self.assertFalse(notify("READY=1", {"NOTIFY_SOCKET": path + "x"}))
        self.assertFalse(notify("READY=1", {"NOTIFY_SOCKET": "vsock:1"}))

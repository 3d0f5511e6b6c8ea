"""JSON that leaves: public without anything private, owned without tokens."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.redact import MARK, Secrets, is_private_name, redact_public
from pitelegram.kernel.sanitise import DEEPEST, owned, public

TOKEN = "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"

PLANTED = (
    TOKEN,
    "/home/bob/project/x.py",
    "~/.ssh/id_rsa",
    "password: hunter22",
    "sk-abcdefghijkl",
    "ghp_abcdefghij",
    "-1001234567890",
    "session_abcdef12",
    "10.1.2.3",
    "bob@example.org",
)

PRIVATE_NAMES = (
    "token",
    "botToken",
    "bot_token",
    "BOT-TOKEN",
    "Bot.Token",
    "tokens",
    "secret",
    "password",
    "pass_phrase",
    "api_key",
    "apiKeys",
    "credential",
    "Authorization",
    "set-cookie",
    "chat_id",
    "chatId",
    "CHATID",
    "chat_ids",
    "message_thread_id",
    "user_id",
    "allowedUserId",
    "owner_id",
    "topic_id",
    "turn_id",
    "update_id",
    "session_id",
    "sessionId",
    "sessionFile",
    "session_file",
    "path",
    "busSocketPath",
    "paths",
    "cwd",
    "directory",
    "directories",
    "argv",
    "cmdline",
    "environ",
    "env",
    "stdout",
    "stderr",
    "text",
    "prompt",
    "custom_instructions",
    "fingerprint",
    "binding_fingerprint",
    "owner_hash",
    "selector_proof",
    "digest",
    "username",
    "user\u200b_id",
    "\uff50\uff41\uff54\uff48",
)

OPEN_NAMES = (
    "name",
    "state",
    "reason",
    "profile",
    "count",
    "worker",
    "worker_id",
    "workerId",
    "request_id",
    "host_id",
    "id",
    "stable_key",
    "message",
    "method",
    "code",
    "change",
    "actor",
    "kind",
    "at_ms",
    "pid",
    "attempts",
    "thread_name",
    "thread_mode",
    "seconds",
)


class NameTests(SynchronousTestCase):
    """L{is_private_name}."""

    def test_private(self) -> None:
        """However they are spelled."""
        self.assertEqual([name for name in PRIVATE_NAMES if not is_private_name(name)], [])

    def test_open(self) -> None:
        """Names that documents and logs need."""
        self.assertEqual([name for name in OPEN_NAMES if is_private_name(name)], [])


class PublicTests(SynchronousTestCase):
    """L{public}."""

    def test_names(self) -> None:
        """Members with private names go, however deep; the contract's own may stay."""
        value = {"ok": 1, "cwd": "x", "in": [{"chat_id": 5, "n": [{"text": "x"}]}]}
        self.assertEqual(public(value), {"ok": 1, "in": [{"n": [{}]}]})
        self.assertEqual(public({"username": "bot"}, keep=("username",)), {"username": "bot"})

    def test_planted(self) -> None:
        """What is secret goes from texts under innocent names, nested, and as a name itself."""
        for planted in PLANTED:
            for value in (
                planted,
                {"reason": planted},
                {"a": [{"b": ["x", f"before {planted} after"]}]},
                {planted: 1},
            ):
                self.assertNotIn(planted, json.dumps(public(value)), planted)

    def test_exact(self) -> None:
        """A field of the protocol stays when it has the form, and only then."""
        exact = {"request_id": re.compile(r"[A-Za-z0-9._-]{1,128}")}
        self.assertEqual(
            public({"request_id": "sk-abcdefghijkl"}, exact), {"request_id": "sk-abcdefghijkl"}
        )
        self.assertEqual(public({"request_id": "/home/bob"}, exact), {"request_id": MARK})
        self.assertEqual(public({"other": "sk-abcdefghijkl"}, exact), {"other": MARK})

    def test_exact_is_no_way_out(self) -> None:
        """A secret that this process knows does not leave as a field either."""
        secrets = Secrets()
        secrets.add("s3cr3t-value")
        exact = {"key": re.compile(r"[a-z0-9-]+")}
        self.assertEqual(public({"key": "s3cr3t-value"}, exact, secrets=secrets), {"key": MARK})

    def test_other_values(self) -> None:
        """Numbers, flags and nothing stay; what is nested too deeply is cut."""
        value = {"n": 1, "f": 1.5, "t": True, "x": None, "l": [1, [2]]}
        self.assertEqual(public(value), value)
        deep: object = "bottom"
        for _ in range(DEEPEST + 10):
            deep = [deep]
        self.assertNotIn("bottom", json.dumps(public(deep)))
        self.assertNotIn("bottom", json.dumps(owned(deep)))

    @given(st.recursive(st.text(max_size=40), lambda inner: st.lists(inner, max_size=3)))
    @settings(deadline=None, max_examples=100)
    def test_twice(self, value: object) -> None:
        """A second look changes nothing."""
        once = public(value)
        self.assertEqual(public(once), once)


class OwnedTests(SynchronousTestCase):
    """L{owned}."""

    def test_owner_keeps_his_own(self) -> None:
        """Paths, addresses and ids stay; tokens and known secrets go."""
        secrets = Secrets()
        secrets.add("s3cr3t-value")
        value = {"directory": "/home/bob", "chat_id": 5, "text": "mail a@b.org at 10.0.0.1"}
        self.assertEqual(owned(value), value)
        shown = owned({"a": [f"x{TOKEN}"], TOKEN: "s3cr3t-value"}, secrets)
        self.assertEqual(shown, {"a": [f"x{MARK}"], MARK: MARK})


class CutTests(SynchronousTestCase):
    """Secrets at a cut."""

    def test_every_position(self) -> None:
        """Whatever stands in front of it, and wherever the cut falls, no piece of a secret is shown."""
        for fill in ("x ", "xy,", "/path,", "{", "sk-aaaaaaaa,"):
            for planted, piece in ((TOKEN, "AAEhB"), ("password: hunter22", "hunter")):
                for limit in (20, 40, 100):
                    for count in range(0, 4 * limit // len(fill) + 40):
                        shown = redact_public(fill * count + planted, limit)
                        self.assertNotIn(piece, shown, (fill, count, limit))
                        self.assertLessEqual(len(shown), limit)

    def test_one_long_word(self) -> None:
        """A text without a gap that is far too long is not cut in the middle of something."""
        shown = redact_public("/" + "a" * 300 + "," + "b" * 95 + TOKEN, 100)
        self.assertNotIn("1234567", shown)

    def test_known_secret_in_other_letters(self) -> None:
        """A known secret goes also as public text would spell it."""
        secrets = Secrets()
        secrets.add("Ünïcode-ﬁxed")
        self.assertEqual(secrets.redact_public("a Ünïcode-ﬁxed b"), f"a {MARK} b")
        secrets.remove("Ünïcode-ﬁxed")
        self.assertIn("fixed", secrets.redact_public("a Ünïcode-ﬁxed b"))

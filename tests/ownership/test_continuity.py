"""Public keys of workers: derivation, what a source may not bring, and when nobody gets one."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from itertools import permutations
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, fail, succeed
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import StoreFull
from pitelegram.ownership.continuity import (
    DIGEST_FACT,
    FORM,
    HOST_FACT,
    Continuity,
    host_id,
    stable_key,
    without_stable_keys,
)
from pitelegram.ownership.installation import DIGEST, KEY, MARKER, Installation

KEY_BYTES = bytes(range(32))
SPELLINGS = (
    "stable_key stableKey STABLE-KEY stable.key.version stable_key_version stable_key_v2 StableKey"
    " stablekey s_t_a_b_l_e_k_e_y stable-key_ _stable_key STABLE_KEY_VERSION stableKeyVersion"
).split() + ["stable key", "\uff53table_key", "stable\u200b_key", "\u017ftable_key"]


class Memory:
    """Facts in memory; C{error} makes the next ones unstorable."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.error: Exception | None = None

    def get_meta(self, key: str) -> str | None:
        """A fact."""
        return self.facts.get(key)

    def keep_meta(self, key: str, value: str) -> Deferred[str]:
        """Store one."""
        if self.error is not None:
            return fail(self.error)
        return succeed(self.facts.setdefault(key, value))


class DerivationTests(SynchronousTestCase):
    """L{stable_key}."""

    def test_vector(self) -> None:
        """It is HMAC-SHA256 over this canonical JSON, hex in lower case."""
        message = (
            b'{"backend":"pi","domain":"pi-telegram.worker-stable-key","host_id":"h",'
            b'"profile":"default","slot_id":"s1","version":1}'
        )
        expected = "wsk1_" + hmac.new(KEY_BYTES, message, hashlib.sha256).hexdigest()
        found = stable_key(KEY_BYTES, "h", "default", "s1")
        self.assertEqual(found, expected)
        self.assertEqual(
            found, "wsk1_" + "19e4f7bf78585aefd754ac2e3b717e4fec423251149983a5979fe8e6133f0e62"
        )
        self.assertTrue(FORM.fullmatch(found))
        self.assertIsNone(FORM.fullmatch(found + "\n"))

    def test_everything_counts(self) -> None:
        """Another installation, host, profile or slot gives another key; values never run together."""
        one = ("h", "p", "s")
        variants = {stable_key(KEY_BYTES, *one), stable_key(b"x" * 32, *one)}
        variants |= {stable_key(KEY_BYTES, *other) for other in permutations(one)}
        variants |= {stable_key(KEY_BYTES, "hp", "", "s"), stable_key(KEY_BYTES, "h", "ps", "")}
        self.assertEqual(len(variants), 9)


class StrippingTests(SynchronousTestCase):
    """L{without_stable_keys}."""

    def test_spellings_at_all_depths(self) -> None:
        """However it is spelled and however deep it lies, it goes; all else stays."""
        for name in SPELLINGS:
            value: Any = {name: "wsk1_" + "0" * 64, "kept": [1, None, "stable_key"]}
            for depth in range(6):
                stripped = without_stable_keys(value)
                self.assertNotIn("wsk1_", json.dumps(stripped), (name, depth))
                self.assertIn("kept", json.dumps(stripped))
                value = {"a": [value, {"b": depth}]} if depth % 2 else [value, {"c": (value,)}]

    def test_others_stay(self) -> None:
        """Names that only resemble it are untouched, and the source's data is not changed."""
        value = {"unstable_key": 1, "stable": 2, "key_stable": 3, "stab": [{"le": "key"}], "n": 1.5}
        self.assertEqual(without_stable_keys(value), value)
        value["stableKey"] = 1
        without_stable_keys(value)
        self.assertIn("stableKey", value)

    def test_deep(self) -> None:
        """Nesting without end does no harm."""
        value: Any = {"stable_key": 1}
        for _ in range(500):
            value = [value]
        self.assertNotIn("stable", json.dumps(without_stable_keys(value)))

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(st.text() | st.sampled_from(SPELLINGS[:13]), inner)
            ),
        )
    )
    def test_any_json(self, value: Any) -> None:
        """Of any JSON the result has no such name, and stripping again changes nothing."""
        once = without_stable_keys(value)
        self.assertEqual(without_stable_keys(once), once)
        for name in SPELLINGS[:13]:
            self.assertNotIn(json.dumps(name) + ": ", json.dumps(once))


class ContinuityTests(SynchronousTestCase):
    """L{Continuity}: what is published, and when nothing is."""

    def setUp(self) -> None:
        """A data directory, facts and a clock of our own."""
        self.data = Path(self.mktemp()).resolve()
        self.data.mkdir(parents=True, mode=0o700)
        self.facts = Memory()
        self.now = 0.0
        self.continuity = self.make()

    def make(self, profile: str = "default") -> Continuity:
        """As a daemon that starts."""
        return Continuity(
            Installation(data=self.data), profile, self.facts, monotonic=lambda: self.now
        )

    def prepared(self, continuity: Continuity | None = None) -> Continuity:
        """After a worker needed its key."""
        continuity = continuity or self.continuity
        self.successResultOf(continuity.prepare())
        return continuity

    def key(self, continuity: Continuity, slot: str = "s") -> str:
        """What is published for a slot; the pair is complete."""
        meta = continuity.metas({"spec-a": slot})["spec-a"]
        self.assertEqual(sorted(meta), ["stable_key", "stable_key_version"])
        self.assertIs(type(meta["stable_key_version"]), int)
        self.assertEqual(meta["stable_key_version"], 1)
        self.assertTrue(FORM.fullmatch(meta["stable_key"]))
        return str(meta["stable_key"])

    def unavailable(self, continuity: Continuity) -> None:
        """Nobody gets a pair, and the problem is the one sentence."""
        self.now += 5
        self.assertEqual(continuity.metas({"spec-a": "s", "spec-b": None}).popitem()[1], {})
        self.assertEqual(continuity.metas({"spec-a": "s"}), {"spec-a": {}})
        self.assertEqual(continuity.problem, "installation identity is unavailable")

    def test_nobody_needs_one(self) -> None:
        """Without a worker nothing is made, and nothing is a problem."""
        self.assertEqual(self.continuity.metas({"spec-a": None}), {"spec-a": {}})
        self.assertEqual(self.continuity.metas({}), {})
        self.assertIsNone(self.continuity.problem)
        self.assertEqual((os.listdir(self.data), self.facts.facts), ([], {}))

    def test_first_worker(self) -> None:
        """The first one makes key, digest and host id; who has no slot has no key."""
        self.prepared()
        self.assertEqual(sorted(os.listdir(self.data)), sorted((KEY, DIGEST, MARKER)))
        self.assertRegex(self.facts.facts[HOST_FACT], r"\A[0-9a-f]{32}\Z")
        digest = (self.data / DIGEST).read_text()
        self.assertEqual(self.facts.facts[DIGEST_FACT], digest)
        self.assertEqual(self.continuity.metas({"spec-b": None}), {"spec-b": {}})
        expected = stable_key(
            (self.data / KEY).read_bytes(), self.facts.facts[HOST_FACT], "default", "s"
        )
        self.assertEqual(self.key(self.continuity), expected)
        self.assertIsNone(self.continuity.problem)

    def test_restart(self) -> None:
        """The next daemon publishes the same for a kept slot, another for a new one, and another
        for another profile or host."""
        first = self.key(self.prepared())
        again = self.prepared(self.make())
        self.assertEqual(self.key(again), first)
        self.assertNotEqual(self.key(again, "t"), first)
        self.assertNotEqual(self.key(self.prepared(self.make("work"))), first)
        self.facts.facts[HOST_FACT] = "0" * 32
        self.assertNotEqual(self.key(again), first)

    def test_lost_while_running(self) -> None:
        """A file that goes, or is exchanged, while the daemon runs takes all keys away until it is
        back."""
        first = self.key(self.prepared())
        for name in (KEY, DIGEST):
            content = (self.data / name).read_bytes()
            (self.data / name).unlink()
            self.unavailable(self.continuity)
            self.prepared()
            self.unavailable(self.continuity)
            self.assertFalse((self.data / name).exists())
            (self.data / name).write_bytes(content[::-1])
            self.unavailable(self.continuity)
            (self.data / name).write_bytes(content)
            self.now += 5
            self.assertEqual(self.key(self.continuity), first)
            self.assertIsNone(self.continuity.problem)

    def test_all_three_lost(self) -> None:
        """The database remembers that there was a key: no other is made."""
        self.prepared()
        for name in (KEY, DIGEST, MARKER):
            (self.data / name).unlink()
        self.unavailable(self.prepared(self.make()))
        self.assertEqual(os.listdir(self.data), [])

    def test_other_database(self) -> None:
        """Key and database of different backups do not fit."""
        self.prepared()
        self.facts.facts[DIGEST_FACT] = "0" * 64
        self.unavailable(self.prepared(self.make()))

    def test_full_disk(self) -> None:
        """A key whose digest could not be kept is not used; the next need tries again."""
        self.facts.error = StoreFull("no space is left")
        self.unavailable(self.prepared())
        self.facts.error = None
        self.key(self.prepared())
        self.assertIsNone(self.continuity.problem)

    def test_while_preparing(self) -> None:
        """Until it is known, there is neither a key nor a problem."""
        waiting: Deferred[str] = Deferred()
        self.patch(self.facts, "keep_meta", lambda key, value: waiting)
        preparing = self.continuity.prepare()
        self.assertEqual(self.continuity.metas({"spec-a": "s"}), {"spec-a": {}})
        self.assertIsNone(self.continuity.problem)
        waiting.errback(StoreFull("no space is left"))
        self.successResultOf(preparing)
        self.unavailable(self.continuity)

    def test_looked_at_once_a_second(self) -> None:
        """Asking often does not read the files each time."""
        first = self.key(self.prepared())
        (self.data / KEY).unlink()
        self.now += 0.5
        self.assertEqual(self.key(self.continuity), first)
        self.now += 0.5
        self.unavailable(self.continuity)

    def test_nothing_secret_is_shown(self) -> None:
        """Neither key nor digest, slot, host id nor a half is in what is published or in a text."""
        self.prepared()
        shown = json.dumps(self.continuity.metas({"spec-a": "slot-secret"})) + repr(self.continuity)
        secrets = (
            (self.data / KEY).read_bytes().hex(),
            (self.data / DIGEST).read_text(),
            "slot-secret",
            self.facts.facts[HOST_FACT],
        )
        for secret in secrets:
            self.assertNotIn(secret, shown)

    def test_host_id(self) -> None:
        """It is made once, however many ask."""
        made = {self.successResultOf(host_id(self.facts)) for _ in range(3)}
        self.assertEqual(len(made), 1)

"""Ten thousand control requests, right ones and mutated ones."""

from __future__ import annotations

import gc
import json
import math
import tracemalloc
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.control.commands import CommandDesk
from pitelegram.control.envelope import is_legal
from pitelegram.control.requests import ACTIONS
from pitelegram.control.strictjson import Ambiguous, NotAnObject, parse_object
from pitelegram.store.commands import Commands
from pitelegram.testing.control import FakeDaemon
from pitelegram.testing.stores import leader_database

EXAMPLES = 10_000
VARIANTS = 4
"""Requests made of each example: see L{variants}."""

MARK = "zqMARKzq"
"""A value that no answer may repeat, but for a request's own id."""

QUICK = settings(
    max_examples=EXAMPLES // 10 // VARIANTS,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
"""A tenth of the examples in each of ten parts; seeds make them the same ones each time."""

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**62, max_value=2**70),
    st.floats(allow_nan=True),
    st.text(max_size=40),
    st.sampled_from(
        ["", "a", MARK, "spec:1", "../..", "\0", "\ud800", "x" * 5000, "/" * 300, "-1"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)
ARGUMENTS = {
    "directory": "/projects/a",
    "text": MARK,
    "instructions": MARK,
    "provider": "p",
    "model": "m",
    "level": "low",
    "session_ref": "a/b.jsonl",
    "dialog_ref": "d",
    "option": 1,
    "confirm": True,
    "cancel": True,
    "key": "k",
}
NAMES = [*ARGUMENTS, "session", "cwd", "argv", "chat_id", "token", "__proto__", "name", ""]


@st.composite
def requests(draw: Any) -> dict[str, Any]:
    """A right request, of which some members may have been exchanged, added or taken away."""
    action = draw(st.sampled_from(sorted(ACTIONS)))
    rule = ACTIONS[action]
    wanted = [*rule.required, *list(rule.one_of)[:1]]
    request: dict[str, Any] = {
        "schema_version": 1,
        "action": action,
        "request_id": draw(st.sampled_from([f"r{number}" for number in range(50)])),
        "dry_run": draw(st.booleans()),
        "target": {"name": draw(st.sampled_from("abc"))} if rule.on_worker else {},
        "args": {name: ARGUMENTS[name] for name in wanted},
    }
    for _ in range(draw(st.integers(0, 3))):
        where = draw(st.sampled_from([request, request["target"], request["args"]]))
        if not isinstance(where, dict):
            continue
        name = draw(st.sampled_from([*where, *NAMES]))
        if draw(st.booleans()):
            where.pop(name, None)
        else:
            where[name] = draw(VALUES)
        if not isinstance(request.get("target"), dict) or not isinstance(request.get("args"), dict):
            break
    return request


def variants(request: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Return the request, the same again, the same for looking or not, and as another action."""
    action = sorted(ACTIONS)[number % len(ACTIONS)]
    other = {**request, "dry_run": request.get("dry_run") is not True}
    return [request, dict(request), other, {**request, "action": action}]


class DeskCase(SynchronousTestCase):
    """A desk that answers whatever it is asked."""

    def setUp(self) -> None:
        """Build it."""
        self.daemon = FakeDaemon()
        self.daemon.unknown = {"c"}
        database = leader_database(Clock())
        self.addCleanup(database.stopService)
        self.desk = CommandDesk(self.daemon, Commands(database, "host"), Clock())
        self.effects: dict[str, int] = {}
        self.asked = 0

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Submit; exactly one legal envelope must come, and no effect twice."""
        before = len(self.daemon.performed)
        envelope: dict[str, Any] = self.successResultOf(self.desk.submit(request))
        self.assertTrue(is_legal(envelope), envelope)
        told = {**envelope, "request_id": None, "result": None}
        self.assertNotIn(MARK, json.dumps(told))
        self.asked += 1
        for action, _, _, request_id in self.daemon.performed[before:]:
            if not ACTIONS[action].read:
                self.effects[request_id] = self.effects.get(request_id, 0) + 1
                self.assertEqual(self.effects[request_id], 1, request_id)
        return envelope


class RequestTests(DeskCase):
    """L{CommandDesk.submit}: no crash, no undeclared error, no second effect, nothing echoed."""

    def test_mutated(self) -> None:
        """Ten times a thousand; memory does not grow with what was refused."""
        sizes = []
        for number in range(10):
            self.run_part(number)
            gc.collect()
            sizes.append(len(gc.get_objects()))
        self.assertLess(sizes[-1], sizes[2] * 1.2, sizes)
        self.assertGreaterEqual(self.asked, EXAMPLES)
        self.assertGreater(len(self.effects), 25)
        self.assertEqual(self.flushLoggedErrors(), [])

    def run_part(self, number: int) -> None:
        """A thousand requests."""

        @seed(number)
        @QUICK
        @given(requests())
        def part(request: dict[str, Any]) -> None:
            for variant in variants(request, self.asked):
                self.ask(variant)

        part()

    def test_one_id_at_a_time(self) -> None:
        """Whatever comes under fifty ids: each had one effect at most, and keeps its answer."""
        answers: dict[str, str] = {}

        @seed(10)
        @QUICK
        @given(requests())
        def part(request: dict[str, Any]) -> None:
            for variant in variants(request, self.asked):
                envelope = self.ask(variant)
                if envelope["status"] == "duplicate_request":
                    continue
                if envelope["disposition"] in ("terminal_accepted", "terminal_rejected"):
                    text = json.dumps(envelope)
                    self.assertEqual(answers.setdefault(envelope["request_id"], text), text)

        part()
        self.assertGreater(len(answers), 20)


class TextTests(SynchronousTestCase):
    """L{parse_object}: bytes become one object, or one of two declared errors."""

    def test_mutated_texts(self) -> None:
        """Cut, doubled, exchanged and random bytes."""
        base = json.dumps(
            {"schema_version": 1, "action": "worker.prompt", "args": {"text": "ü\ud83d\ude00"}}
        ).encode()

        @seed(11)
        @settings(parent=QUICK, max_examples=EXAMPLES // 5)
        @given(
            st.one_of(
                st.binary(max_size=200),
                st.tuples(
                    st.integers(0, len(base)), st.integers(0, len(base)), st.binary(max_size=4)
                ).map(lambda cut: base[: cut[0]] + cut[2] + base[cut[1] :]),
            )
        )
        def part(data: bytes) -> None:
            try:
                value = parse_object(data)
            except (NotAnObject, Ambiguous):
                return
            self.assertIsInstance(value, dict)
            self.assertTrue(all(map(sound, leaves(value))), value)

        part()

    def test_depth(self) -> None:
        """A hundred thousand brackets are an error, not the end of the stack."""
        for opening in (b"[", b'{"a":', b'{"a":['):
            data = b'{"args":' + opening * 100_000
            with self.assertRaises((NotAnObject, Ambiguous)):
                parse_object(data)

    def test_memory(self) -> None:
        """Refused texts leave nothing behind."""
        data = b'{"a":' + b"[" * 50_000
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for round_ in range(60):
            if round_ == 10:
                before = tracemalloc.get_traced_memory()[0]
            with self.assertRaises((NotAnObject, Ambiguous)):
                parse_object(data)
        self.assertLess(tracemalloc.get_traced_memory()[0] - before, 100_000)


def leaves(value: Any) -> list[Any]:
    """Return the scalars in a value."""
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in (key, *leaves(item))]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def sound(leaf: Any) -> bool:
    """Whether a scalar can be stored and passed on."""
    if isinstance(leaf, str):
        return leaf.encode("utf-8", "surrogatepass").decode("utf-8", "ignore") == leaf
    if isinstance(leaf, float):
        return math.isfinite(leaf)
    return not isinstance(leaf, int) or -(2**63) <= leaf < 2**63

"""Request schema v1 and the strict JSON in front of it."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.control.requests import ACTIONS, Invalid, validate
from pitelegram.control.strictjson import Ambiguous, NotAnObject, parse_object


def request(**changes):
    """A valid prompt request with some fields changed; Ellipsis removes one."""
    value = {
        "schema_version": 1,
        "action": "worker.prompt",
        "request_id": "r1",
        "target": {"name": "a"},
        "args": {"text": "hi"},
        **changes,
    }
    return {key: item for key, item in value.items() if item is not ...}


class StrictJsonTests(SynchronousTestCase):
    """L{parse_object}."""

    def test_object(self):
        """An ordinary object is parsed."""
        self.assertEqual(parse_object(b'{"a":[1,"\xc3\xbc",null,1.5]}'), {"a": [1, "ü", None, 1.5]})

    def test_not_an_object(self):
        """Broken JSON, broken UTF-8 and other values are told apart from an object."""
        for data in (b"", b"{", b"[]", b"1", b"null", b'"x"', b"\xff{}", b"{}x", b"{'a':1}"):
            with self.assertRaises(NotAnObject, msg=data):
                parse_object(data)

    def test_ambiguous(self):
        """What two readers could understand differently is refused, at any depth."""
        for data in (
            b'{"a":1,"a":2}',
            b'{"b":{"a":1,"a":1}}',
            b'{"a":NaN}',
            b'{"a":[-Infinity]}',
            b'{"a":9223372036854775808}',
            b'{"a":-9223372036854775809}',
            b'{"a":' + b"9" * 5000 + b"}",
            b'{"a":1e999}',
            b'{"a":"\\ud800"}',
            b'{"\\udc00":1}',
            b'{"a":' + b"[" * 100 + b"]" * 100 + b"}",
            b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        ):
            with self.assertRaises(Ambiguous, msg=data[:40]):
                parse_object(data)

    def test_largest_integers(self):
        """Integers of 63 bits and a sign pass; a whole surrogate pair is a character."""
        data = b'{"a":[9223372036854775807,-9223372036854775808,"\\ud83d\\ude00"]}'
        self.assertEqual(parse_object(data)["a"], [2**63 - 1, -(2**63), "😀"])

    @given(st.binary(max_size=60))
    def test_any_bytes(self, data):
        """Whatever comes, it is an object or one of the two refusals."""
        try:
            self.assertIsInstance(parse_object(data), dict)
        except (NotAnObject, Ambiguous) as error:
            self.assertTrue(str(error))


class ValidateTests(SynchronousTestCase):
    """L{validate}."""

    def refused(self, field, **changes):
        """Assert that a request is refused because of C{field}."""
        with self.assertRaises(Invalid) as caught:
            validate(request(**changes))
        self.assertIn(field, caught.exception.fields)
        return caught.exception

    def test_valid(self):
        """A right request is taken as it is; C{dry_run} defaults to false."""
        found = validate(request())
        self.assertEqual(
            (found.action, found.request_id, found.dry_run, found.target, found.args),
            ("worker.prompt", "r1", False, {"name": "a"}, {"text": "hi"}),
        )

    def test_schema_version(self):
        """Only the integer 1 is the schema version."""
        for version in (..., 1.0, "1", True, 2, None):
            self.refused("$.schema_version", schema_version=version)

    def test_dry_run(self):
        """Only booleans are booleans."""
        for value in ("false", 0, 1, None, []):
            self.refused("$.dry_run", dry_run=value)

    def test_request_id_grammar(self):
        """A request id is 1 to 128 ASCII characters of the grammar, never trimmed."""
        for value in (..., None, "", " a1", "a\n", "a" * 129, "ä", "a/b", 7, "ａ"):
            error = self.refused("$.request_id", request_id=value)
            self.assertEqual(error.details()["field"], "request_id")
        for value in ("A.b_c-9", "a" * 128):
            self.assertEqual(validate(request(request_id=value)).request_id, value)

    def test_no_id_needed(self):
        """Dry runs and reads need no request id, but a wrong one is refused all the same."""
        self.assertIsNone(validate(request(request_id=..., dry_run=True)).request_id)
        read = {"action": "worker.get_state", "args": ...}
        self.assertIsNone(validate(request(request_id=..., **read)).request_id)
        self.refused("$.request_id", request_id="ü", **read)

    def test_unknown_fields(self):
        """Unknown fields are refused by path at every level, and values are never repeated."""
        error = self.refused("$.chat_id", chat_id="12345")
        self.assertNotIn("12345", str(error))
        self.assertEqual(error.action, "worker.prompt")
        self.refused("$.target.cwd", target={"name": "a", "cwd": "/"})
        self.refused("$.args.env", args={"text": "x", "env": {}})
        self.refused("$.instruction", instruction={"text": "x"})

    def test_many_long_fields(self):
        """The list of paths stays short whatever is sent."""
        error = self.refused("$.f0", **{f"f{n}" + "x" * 500 * bool(n): 1 for n in range(500)})
        self.assertLess(len(str(error.details())), 3000)

    def test_action(self):
        """An unknown action is refused and not repeated."""
        for action in (..., None, "worker.bash", 1, ["noop"], "WORKER.PROMPT"):
            self.assertEqual(self.refused("$.action", action=action).action, "")

    def test_target(self):
        """Exactly one selector names the worker."""
        for target in (..., None, {}, {"name": "a", "worker_id": "w"}, [], "a"):
            self.refused("$.target", target=target)
        for name in ("", 1, None, "x" * 300, "a\nb"):
            self.refused("$.target.name", target={"name": name})

    def test_no_target(self):
        """Actions that are not about a worker have no target."""
        start = {"action": "worker.start", "args": {"directory": "/x"}}
        self.assertEqual(validate(request(target=..., **start)).target, {})
        self.refused("$.target.name", **start)

    def test_text(self):
        """A prompt has visible text and no control characters but TAB and LF."""
        self.assertEqual(validate(request(args={"text": "a\n\tb"})).args["text"], "a\n\tb")
        for text in ("", " \n", "a\x00", "\x1b[200~", "a\rb", "\x85", 5, None):
            self.refused("$.args.text", args={"text": text})
        self.refused("$.args.text", args={})

    def test_arguments_of_each_action(self):
        """Each action of the contract takes its arguments and refuses wrong ones."""
        right = {
            "worker.start": {"directory": "/a"},
            "worker.compact": {"instructions": "short"},
            "worker.steer": {"text": "x"},
            "worker.set_model": {"provider": "p", "model": "m/n"},
            "worker.set_thinking_level": {"level": "high"},
            "worker.switch_session": {"session_ref": "dir/file.jsonl"},
            "worker.answer": {"dialog_ref": "d", "option": 0},
            "outbox.retry": {"key": "k"},
        }
        wrong = {
            "worker.start": {"directory": ""},
            "worker.compact": {"instructions": None},
            "worker.set_model": {"provider": "p"},
            "worker.set_thinking_level": {"level": "bogus"},
            "worker.switch_session": {"session_ref": "../x.jsonl"},
            "worker.answer": {"dialog_ref": "d", "option": 0, "text": "x"},
            "worker.abort": {"force": True},
            "outbox.retry": {"key": 5},
        }
        for action, args in right.items():
            target = {"name": "a"} if ACTIONS[action].on_worker else ...
            self.assertEqual(validate(request(action=action, args=args, target=target)).args, args)
        for action, args in wrong.items():
            target = {"name": "a"} if ACTIONS[action].on_worker else ...
            with self.assertRaises(Invalid, msg=action):
                validate(request(action=action, args=args, target=target))

    def test_answers(self):
        """A dialog's answer is one of four, each of its own type."""
        for answer in ({"confirm": False}, {"text": "t"}, {"cancel": True}, {"option": "Yes"}):
            args = {"dialog_ref": "d", **answer}
            self.assertEqual(validate(request(action="worker.answer", args=args)).args, args)
        for answer in ({"confirm": 1}, {"cancel": False}, {"option": True}, {"option": -1}, {}):
            with self.assertRaises(Invalid):
                validate(request(action="worker.answer", args={"dialog_ref": "d", **answer}))

    def test_session_ref_stays_below(self):
        """A session is a name below Pi's sessions, however it is written."""
        for ref in ("/etc/passwd", "a/../b", "./a", "a//b", "a\\b", "..", ""):
            self.refused(
                "$.args.session_ref", action="worker.switch_session", args={"session_ref": ref}
            )

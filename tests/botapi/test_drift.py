"""Every method and parameter that the program's text names exists in the Bot API."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import pitelegram
from pitelegram.testing.spec import check_call, methods, problems

ROOT = Path(pitelegram.__file__).parent
LATER = {"sendRichMessage": {"blocks", "media"}}
"""Parameters that are newer than the description."""


def literal_calls(tree: ast.AST) -> Iterator[tuple[str, set[str], int]]:
    """Yield C{(method, parameters, line)} of calls whose names stand in the text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) >= 2:
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            if name in ("call", "_call") and _is_name(node.args[0]):
                yield node.args[0].value, _keys(node.args[1]), node.lineno
        elif isinstance(node, ast.Dict):
            members = {
                key.value: value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            }
            if _is_name(members.get("method")) and "params" in members:
                yield members["method"].value, _keys(members["params"]), node.lineno


def _is_name(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _keys(node: ast.AST) -> set[str]:
    keys = node.keys if isinstance(node, ast.Dict) else []
    return {key.value for key in keys if isinstance(key, ast.Constant)}


class DriftTests(SynchronousTestCase):
    """The program against the description."""

    def test_literal_calls(self) -> None:
        """Names in the text of the program are names of the Bot API."""
        found, wrong = 0, []
        for path in sorted(ROOT.rglob("*.py")):
            if path.parts[len(ROOT.parts)] in ("testing", "sandbox"):
                continue
            for method, keys, line in literal_calls(ast.parse(path.read_text("utf-8"))):
                found += 1
                known = set(methods().get(method, ())) | LATER.get(method, set())
                if method not in methods() or keys - known:
                    wrong.append(f"{path.name}:{line}: {method} {sorted(keys - known)}")
        self.assertEqual(wrong, [])
        self.assertGreater(found, 5)

    def test_the_scan_sees(self) -> None:
        """The scan finds both forms."""
        source = 'x.call("getMe", {"a": 1})\ny = {"method": "m", "params": {"b": 2, **c}}\n'
        found = sorted(literal_calls(ast.parse(source)))
        self.assertEqual(found, [("getMe", {"a"}, 1), ("m", {"b"}, 2)])


class SpecTests(SynchronousTestCase):
    """The check itself."""

    def test_good(self) -> None:
        """Good calls pass."""
        check_call("sendMessage", {"chat_id": 1, "text": "x", "reply_markup": {}})
        check_call("sendMessage", {"chat_id": "@x", "text": "x", "entities": [{}]})
        check_call("sendDocument", {"chat_id": 1}, ["document"])
        media = [{"type": "photo", "media": "attach://p1"}, {"type": "photo", "media": "x"}]
        check_call("sendMediaGroup", {"chat_id": 1, "media": media}, ["p1"])

    def test_bad(self) -> None:
        """Each fault is named."""
        for method, params, files, text in (
            ("sendMesage", {}, [], "not a method"),
            ("sendMessage", {"chat_id": 1}, [], "needs text"),
            ("sendMessage", {"chat_id": 1, "text": "x", "thread": 2}, [], "no parameter thread"),
            ("sendMessage", {"chat_id": 1, "text": 5}, [], "text must be String, not int"),
            ("sendMessage", {"chat_id": True, "text": "x"}, [], "chat_id must be"),
            ("sendMessage", {"chat_id": 1, "text": "x", "entities": [1]}, [], "entities"),
            ("sendMediaGroup", {"chat_id": 1, "media": []}, ["p1"], "p1 is named nowhere"),
        ):
            self.assertIn(text, "; ".join(problems(method, params, files)))
        self.assertRaises(AssertionError, check_call, "sendMesage", {})

"""What is taken out of Pi's event stream."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel import jsonio
from pitelegram.pi import heads
from pitelegram.pi.records import RecordReader, message_text


class Sink:
    """Remembers."""

    def __init__(self) -> None:
        self.text = ""
        self.calls = 0
        self.records: list[tuple[str, dict[str, Any]]] = []
        self.thoughts: list[str] = []
        self.tools: list[tuple[str, dict[str, Any], bool]] = []

    def thinking_delta(self, text: str) -> None:
        """Keep the text."""
        self.thoughts.append(text)

    def tool(self, kind: str, record: dict[str, Any], failed: bool) -> None:
        """Keep the record."""
        self.tools.append((kind, record, failed))

    def text_delta(self, text: str) -> None:
        """Join the text."""
        self.text += text
        self.calls += 1

    def record(self, kind: str, record: dict[str, Any]) -> None:
        """Keep the record."""
        self.records.append((kind, record))


def delta(text: str, **more: Any) -> bytes:
    """A text delta as Pi writes it."""
    event = {"type": "text_delta", "contentIndex": 0, "delta": text}
    record = {"type": "message_update", "usage": {"input": 1}, "assistantMessageEvent": event}
    return (
        json.dumps({**record, **more}, separators=(",", ":"), ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )
        if not any("\ud800" <= c <= "\udfff" for c in text)
        else json.dumps({**record, **more}, separators=(",", ":")).encode()
    )


def line(record: Any) -> bytes:
    """Any record as Pi writes it."""
    return json.dumps(record, separators=(",", ":")).encode()


class RecordReaderTests(SynchronousTestCase):
    """L{RecordReader}."""

    def setUp(self) -> None:
        """A reader and what it told."""
        self.sink = Sink()
        self.reader = RecordReader(self.sink)

    @given(st.lists(st.text(max_size=8), max_size=8), st.integers(0, 8))
    def test_deltas_are_joined(self, texts: list[str], cut: int) -> None:
        """The text of the deltas comes out whole, wherever the chunks were cut."""
        sink = Sink()
        reader = RecordReader(sink)
        reader.feed([delta(text) for text in texts[:cut]])
        reader.feed([delta(text) for text in texts[cut:]])
        reader.finish()
        self.assertEqual(sink.text, "".join(texts))
        self.assertEqual(reader.malformed, 0)

    def test_a_character_in_two_halves(self) -> None:
        """A surrogate pair in two deltas is one character, in one chunk and across two."""
        self.reader.feed([delta("a\ud83d"), delta("\ude00b")])
        self.reader.feed([delta("c\ud83d")])
        self.assertEqual(self.sink.text, "a\U0001f600bc")
        self.reader.feed([delta("\ude00d")])
        self.assertEqual(self.sink.text, "a\U0001f600bc\U0001f600d")

    def test_half_a_character_alone(self) -> None:
        """A half that never gets its other half becomes a replacement character."""
        self.reader.feed([delta("a\ud83d")])
        self.reader.feed([line({"type": "agent_settled", "aborted": False})])
        self.assertEqual(self.sink.text.rstrip("\ufffd"), "a")
        self.assertTrue(self.sink.text.endswith("\ufffd"))
        self.sink.text.encode()

    def test_an_escaped_backslash_is_no_half(self) -> None:
        """Text that only looks like an escaped surrogate is passed on at once."""
        self.reader.feed([delta("\\ud83d")])
        self.assertEqual(self.sink.text, "\\ud83d")

    def test_text_that_looks_like_a_record(self) -> None:
        """Quotes and field names inside a text do not confuse the cut."""
        text = '"text_delta","delta":"x"}} {"type":"agent_settled"}\n'
        self.reader.feed([delta(text)])
        self.assertEqual(self.sink.text, text)

    def test_more_fields_than_known(self) -> None:
        """A delta with further members is still understood."""
        event = {"type": "text_delta", "contentIndex": 0, "delta": "x", "note": "y"}
        self.reader.feed(
            [
                line({"type": "message_update", "assistantMessageEvent": event}),
                delta("z", extra=1),
                line({"usage": {}, "type": "message_update", "assistantMessageEvent": event}),
            ]
        )
        self.assertEqual(self.sink.text, "xzx")

    def test_other_updates_are_not_text(self) -> None:
        """Thinking and tool call deltas are left out, whatever text they hold."""
        for kind in ("thinking_delta", "toolcall_delta", "text_end", "text_start"):
            event = {"type": kind, "contentIndex": 0, "delta": '"text_delta"', "content": "no"}
            self.reader.feed([line({"type": "message_update", "assistantMessageEvent": event})])
        self.assertEqual(self.sink.text, "")

    def test_thinking_only_where_wanted(self) -> None:
        """Thoughts are told where they are wanted, apart from the text and in order."""
        event = {"type": "thinking_delta", "contentIndex": 0, "delta": 'Hm "text_delta"\n'}
        thought = line({"type": "message_update", "assistantMessageEvent": event})
        older = line(
            {"type": "message_update", "assistantMessageEvent": {**event, "partial": {"a": "b"}}}
        )
        self.reader.feed([thought, delta("a")])
        self.assertEqual((self.sink.thoughts, self.sink.text), ([], "a"))
        self.reader.want(tools=False, thinking=True)
        self.reader.feed([thought, older, delta("b"), thought, delta("c")])
        self.assertEqual(self.sink.thoughts, ['Hm "text_delta"\n' * 2, 'Hm "text_delta"\n'])
        self.assertEqual((self.sink.text, self.sink.calls), ("abc", 3))

    def test_tools_only_where_wanted(self) -> None:
        """Records of tools are told where they are wanted; of large ones the beginning and the outcome."""
        small = {"type": "tool_execution_start", "toolCallId": "c", "args": {"command": "ls"}}
        text = 'a"\\\n' * 3_000_000
        large = {
            "type": "tool_execution_end",
            "toolCallId": "c",
            "toolName": "bash",
            "result": {"content": [{"type": "text", "text": text}], "details": {"x": [1, 2]}},
            "isError": True,
            "durationMs": 12.5,
        }
        self.reader.feed([line(small), line(large)])
        self.assertEqual(self.sink.tools, [])
        self.reader.want(tools=True, thinking=False)
        self.reader.feed([line(small), line(large), b'{"type":"tool_execution_start",broken'])
        first, second = self.sink.tools
        self.assertEqual(first, ("tool_execution_start", small, False))
        self.assertEqual((second[0], second[2]), ("tool_execution_end", True))
        shown = second[1]["result"]["content"][0]["text"]
        self.assertLess(len(shown), 4096)
        self.assertTrue(shown.endswith("…") and text.startswith(shown[:-1]))
        self.assertEqual(self.reader.malformed, 1)

    def test_only_messages_of_user_and_assistant(self) -> None:
        """Ends of tool results and of the system prompt are not even decoded."""
        for role in ("system", "toolResult", "user", "assistant"):
            self.reader.feed([line({"type": "message_end", "message": {"role": role}})])
        self.reader.feed([b'{"type":"message_end","message":{"role":"toolResult","content":broken'])
        roles = [record["message"]["role"] for _, record in self.sink.records]
        self.assertEqual(roles, ["user", "assistant"])
        self.assertEqual(self.reader.malformed, 0)

    def test_big_tool_output_is_skipped(self) -> None:
        """Tool output is skipped by its first bytes."""
        for kind in (
            "tool_execution_start",
            "tool_execution_update",
            "tool_execution_end",
            "turn_end",
            "turn_start",
            "agent_end",
            "message_start",
            "entry_appended",
        ):
            self.reader.feed([f'{{"type":"{kind}","x":broken'.encode()])
        self.assertEqual((self.sink.records, self.reader.malformed), ([], 0))

    def test_order(self) -> None:
        """Deltas are told before the record that follows them."""
        seen: list[str] = []
        self.sink.text_delta = seen.append  # type: ignore[method-assign]
        self.sink.record = lambda kind, _: seen.append(kind)  # type: ignore[method-assign]
        self.reader.feed([delta("a"), delta("b"), line({"type": "agent_settled"}), delta("c")])
        self.assertEqual(seen, ["ab", "agent_settled", "c"])

    def test_odd_lines_are_counted(self) -> None:
        """Lines that are no JSON, no object, or have no type change nothing."""
        self.reader.feed([b"", b"nonsense", b"[1]", b'"x"', b"42", b"null", b"{}", b'{"type":1}'])
        self.reader.feed([b"[" * 100_000])
        self.assertEqual((self.reader.malformed, self.reader.not_objects), (3, 6))
        self.assertEqual(self.sink.records, [])

    def test_message_text(self) -> None:
        """The text of a message is its text parts; other shapes give nothing."""
        parts = [{"type": "text", "text": "a"}, {"type": "toolCall"}, {"type": "text", "text": "b"}]
        self.assertEqual(message_text({"content": parts}), "a\n\nb")
        self.assertEqual(message_text({"content": "plain"}), "plain")
        for content in (None, 1, [1, None, {"type": "text"}, {"type": "text", "text": 5}]):
            self.assertEqual(message_text({"content": content}), "")


class HeadTests(SynchronousTestCase):
    """L{pitelegram.pi.heads}."""

    def cut(self, value: Any, size: int) -> Any:
        """What is left of a value of which only so many bytes are looked at."""
        data = json.dumps(value, ensure_ascii=False).encode()
        return jsonio.loads(heads._closed(data[:size]))

    def test_everywhere(self) -> None:
        """Wherever it is cut something valid is left, and nothing that was not there."""
        value = {"a": [1, -2.5, 'x\\ "q" \u20ac😀'], "b": {"c": None, "d": True, "e": []}, "f": "g"}
        size = len(json.dumps(value, ensure_ascii=False).encode())
        for number in range(1, size):
            found = self.cut(value, number)
            self.assertLessEqual(set(found), set(value), number)
            for kept, whole in zip(found.get("a", []), value["a"], strict=False):
                if isinstance(kept, str):
                    self.assertTrue(str(whole).startswith(kept.removesuffix("…")), number)
                else:
                    self.assertEqual(kept, whole, number)
        self.assertEqual(self.cut(value, 8), {"a": []})

    def test_escapes(self) -> None:
        """An escape that was cut in two is left out."""
        data = json.dumps({"a": "x\u20ac"}).encode()
        for size in range(8, 14):
            self.assertEqual(jsonio.loads(heads._closed(data[:size])), {"a": "x…"})

    def test_failed(self) -> None:
        """The outcome is read at the end, not in what a tool wrote."""
        end = {"type": "tool_execution_end", "result": {"content": '"isError":true'}}
        self.assertFalse(heads.failed(line({**end, "isError": False, "durationMs": 1})))
        self.assertTrue(heads.failed(line({**end, "isError": True})))
        self.assertFalse(heads.failed(line(end)))

    @given(st.binary(max_size=64))
    def test_anything(self, data: bytes) -> None:
        """Bytes of any kind are JSON or a ValueError."""
        try:
            jsonio.loads(heads._closed(data))
        except ValueError:
            pass

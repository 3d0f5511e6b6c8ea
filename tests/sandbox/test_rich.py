"""Rich messages and drafts of the sandbox."""

from __future__ import annotations

from typing import Any

from pitelegram.sandbox.editing import NOT_MODIFIED
from tests.sandbox.helpers import BotTestCase, buttons

SOURCE = """# Head

Some **bold** `code` [link](https://example.org) and ~~old~~.

1. one
   - [x] done
2. two

> said

```py
x = 1
```

| a | b |
|:-:|--:|
| 1 | 2 |
"""


class RichMessages(BotTestCase):
    """C{sendRichMessage}."""

    def rich(self, markdown: str, **more: Any) -> dict[str, Any]:
        """Send one."""
        message = {"markdown": markdown, "skip_entity_detection": True}
        return self.call("sendRichMessage", chat_id=self.owner, rich_message=message, **more)

    def test_blocks(self) -> None:
        """What the Markdown says is in the blocks, and there is no text beside them."""
        message = self.rich(SOURCE, reply_markup=buttons("Yes"))
        self.assertNotIn("text", message)
        blocks = message["rich_message"]["blocks"]
        self.assertEqual(
            [block["type"] for block in blocks],
            ["heading", "paragraph", "list", "blockquote", "pre", "table"],
        )
        self.assertEqual(blocks[0], {"type": "heading", "text": "Head", "size": 1})
        self.assertIn({"type": "bold", "text": "bold"}, blocks[1]["text"])
        self.assertIn(
            {"type": "url", "text": "link", "url": "https://example.org"}, blocks[1]["text"]
        )
        inner = blocks[2]["items"][0]["blocks"][1]["items"][0]
        self.assertEqual((inner["has_checkbox"], inner["is_checked"]), (True, True))
        self.assertEqual(blocks[4], {"type": "pre", "text": "x = 1", "language": "py"})
        self.assertEqual([cell["align"] for cell in blocks[5]["cells"][1]], ["center", "right"])
        found = self.chat.messages()[-1]
        self.assertIn("1. one", found.text)
        self.assertEqual(found.button("Yes")["callback_data"], "Yes")

    def test_limits(self) -> None:
        """Characters, blocks, nesting and columns."""
        for markdown, problem in (
            ("x" * 32_769, "message is too long"),
            ("- x\n" * 500, "rich message has too many blocks"),
            ("> " * 17 + "x", "rich message is nested too deep"),
            ("|a" * 21 + "|\n" + "|-" * 21 + "|\n", "rich message table has too many columns"),
            (" \n", "message text is empty"),
            ("![a](https://example.org/a.png)", "failed to get HTTP URL content"),
            ("a <script>x</script>", "can't parse rich message: unsupported inlinehtml"),
        ):
            message = {"markdown": markdown}
            with self.subTest(problem):
                self.assert_refused(
                    problem, "sendRichMessage", chat_id=self.owner, rich_message=message
                )
        self.assertEqual(self.chat.messages(), [])

    def test_most(self) -> None:
        """What just keeps the limits is taken."""
        for markdown in (
            "x" * 32_768,
            "- x\n" * 499,
            "> " * 16 + "x",
            "|a" * 20 + "|\n" + "|-" * 20 + "|\n",
        ):
            self.rich(markdown)
        self.assertEqual(len(self.chat.messages()), 4)

    def test_direction(self) -> None:
        """A message from right to left says so."""
        message = {"markdown": "a", "is_rtl": True}
        sent = self.call("sendRichMessage", chat_id=self.owner, rich_message=message)
        self.assertIs(sent["rich_message"]["is_rtl"], True)
        self.assertNotIn("is_rtl", self.rich("a")["rich_message"])

    def test_edits(self) -> None:
        """Plain and rich text replace each other; the same again is no change."""
        number = self.send("plain")["message_id"]
        place = {"chat_id": self.owner, "message_id": number}
        rich = {"rich_message": {"markdown": "# Head"}}
        edited = self.call("editMessageText", **place, **rich)
        self.assertNotIn("text", edited)
        self.assertEqual(edited["rich_message"]["blocks"][0]["type"], "heading")
        self.assertEqual(self.chat.message(number).text, "Head")
        self.assert_refused(NOT_MODIFIED, "editMessageText", **place, **rich)
        self.assertNotIn("rich_message", self.call("editMessageText", **place, text="plain"))

    def test_refused_edits(self) -> None:
        """Two texts, a source that cannot be read, a caption: the message stays."""
        number = self.rich("# Head")["message_id"]
        place = {"chat_id": self.owner, "message_id": number}
        both = "exactly one of text and rich_message is needed"
        rich = {"markdown": "x"}
        self.assert_refused(both, "editMessageText", **place, rich_message=rich, text="y")
        self.assert_refused(
            "message text is empty", "editMessageText", **place, rich_message={"markdown": ""}
        )
        self.assert_refused(
            "there is no caption in the message to edit", "editMessageCaption", **place, caption="x"
        )
        self.assertEqual(self.chat.message(number).text, "Head")

    def test_form(self) -> None:
        """Exactly one source, of which the sandbox reads Markdown."""
        for message in ({}, {"markdown": "a", "html": "a"}, {"blocks": []}, {"html": "<b>a</b>"}):
            refusal = self.refused("sendRichMessage", chat_id=self.owner, rich_message=message)
            self.assertIn("can't parse rich message", refusal)


class Drafts(BotTestCase):
    """C{sendMessageDraft} and C{sendRichMessageDraft}."""

    def drafts(self) -> list[Any]:
        """What people saw being written."""
        return [event["content"] for event in self.world.events if event["event"] == "draft"]

    def test_seen(self) -> None:
        """A draft is seen, and is no message."""
        place = {"chat_id": self.owner, "draft_id": 7}
        self.assertTrue(self.call("sendMessageDraft", text="so far", **place))
        self.assertTrue(self.call("sendMessageDraft", **place))
        self.call("sendRichMessageDraft", rich_message={"markdown": "**b**"}, **place)
        block = {"type": "paragraph", "text": {"type": "bold", "text": "b"}}
        self.assertEqual(
            self.drafts(), [{"text": "so far"}, {"text": ""}, {"rich_message": {"blocks": [block]}}]
        )
        self.assertEqual((self.chat.messages(), self.updates()), ([], []))

    def test_refused(self) -> None:
        """Zero is no draft, and its text has the limit of a message."""
        for number, text, problem in (
            (0, "x", "wrong draft identifier specified"),
            (7, "x" * 4097, "message is too long"),
        ):
            self.assert_refused(
                problem, "sendMessageDraft", chat_id=self.owner, draft_id=number, text=text
            )
        self.assertEqual(self.drafts(), [])

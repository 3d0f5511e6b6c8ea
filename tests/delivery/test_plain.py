"""Plain text, and the table of verdicts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.delivery.plain import plain_calls
from pitelegram.delivery.text import LIMIT, pieces, rich_text, shortened, without_markup
from pitelegram.delivery.verdicts import Judgement, Verdict, judge
from pitelegram.errors import CertainlyUnsent, Conflict, Refused, Unauthorized, Uncertain
from tests.delivery.world import text_call

SETTINGS = settings(deadline=None, derandomize=True, max_examples=100, database=None)


def units(text: str) -> int:
    """Return the length in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class TextTests(SynchronousTestCase):
    """Cutting and stripping."""

    def test_shortened(self) -> None:
        """A long text ends with an ellipsis within the limit; a short one is as it was."""
        self.assertEqual(shortened("x" * LIMIT), "x" * LIMIT)
        self.assertEqual(shortened("x" * (LIMIT + 1)), "x" * (LIMIT - 1) + "…")
        self.assertEqual(units(shortened("😀" * LIMIT)), LIMIT - 1)

    @SETTINGS
    @given(st.text(alphabet="ab \n😀", max_size=60), st.integers(2, 12))
    def test_pieces(self, text: str, limit: int) -> None:
        """Pieces fit, are not blank, and lose nothing but blanks."""
        found = pieces(text, limit)
        self.assertTrue(all(0 < units(piece) <= limit and piece.strip() for piece in found))
        self.assertEqual("".join("".join(found).split()), "".join(text.split()))

    def test_without_markup(self) -> None:
        """Tags, entities and escapes go; the text that looks like them stays."""
        self.assertEqual(without_markup('<a href="x">a</a> &lt;b&gt; 1 < 2', "HTML"), "a <b> 1 < 2")
        self.assertEqual(without_markup(r"1\. a\_b \\", "MarkdownV2"), "1. a_b \\")
        self.assertEqual(without_markup("<b>", None), "<b>")

    def test_rich_text(self) -> None:
        """Each form of a rich message has a text."""
        self.assertEqual(rich_text({"markdown": "# a"}), "# a")
        self.assertEqual(rich_text({"html": "<h1>a</h1>b"}), "a\nb")
        blocks = [{"type": "p", "text": "a"}, {"items": [{"text": "b"}, {"text": {"text": "c"}}]}]
        self.assertEqual(rich_text({"blocks": blocks}), "a\nb\nc")
        self.assertEqual(rich_text("x"), "")


class PlainTests(SynchronousTestCase):
    """Calls without markup."""

    def test_message(self) -> None:
        """Parse mode and entities go, everything else stays."""
        keyboard = {"inline_keyboard": [[{"text": "b", "callback_data": "d"}]]}
        call = text_call("<i>x</i>", parse_mode="HTML", reply_markup=keyboard)
        (plain,) = plain_calls(call)
        self.assertEqual(
            (plain["params"]["text"], plain["params"]["reply_markup"]), ("x", keyboard)
        )
        (plain,) = plain_calls(
            text_call("x", entities=[{"type": "bold", "offset": 0, "length": 9}])
        )
        self.assertEqual(plain["params"]["text"], "x")

    def test_long_message(self) -> None:
        """Text that gets too long is sent in several messages, answer first, keyboard last."""
        call = text_call(
            "x " * 4000, parse_mode="HTML", reply_markup={}, reply_parameters={"message_id": 1}
        )
        plain = plain_calls(call)
        self.assertEqual(len(plain), 2)
        self.assertEqual(["reply_parameters" in each["params"] for each in plain], [True, False])
        self.assertEqual(["reply_markup" in each["params"] for each in plain], [False, True])

    def test_caption(self) -> None:
        """Captions lose their markup; files stay."""
        files = [{"field": "f", "path": "/x"}]
        params = {"caption": "<b>c</b>", "parse_mode": "HTML", "document": "attach://f"}
        (plain,) = plain_calls({"method": "sendDocument", "params": params, "files": files})
        self.assertEqual(plain["params"], {"caption": "c", "document": "attach://f"})
        self.assertEqual(plain["files"], files)
        self.assertEqual(plain_calls({"method": "sendDocument", "params": {"caption": "c"}}), [])

    def test_album(self) -> None:
        """So do the captions in an album."""
        media = [{"type": "photo", "media": "p", "caption": "<b>c</b>", "parse_mode": "HTML"}]
        (plain,) = plain_calls({"method": "sendMediaGroup", "params": {"media": media}})
        self.assertEqual(
            plain["params"]["media"], [{"type": "photo", "media": "p", "caption": "c"}]
        )
        for media in ([{"type": "photo"}], "text", ["x"]):
            params = {"media": media}
            self.assertEqual(plain_calls({"method": "sendMediaGroup", "params": params}), [])


class VerdictTests(SynchronousTestCase):
    """Each class of failure, and no text of Telegram's in any reason."""

    def test_table(self) -> None:
        """What follows from which answer."""
        send, rich = "sendMessage", "sendRichMessage"
        table = [
            (CertainlyUnsent(send, 0, "x"), send, Judgement(Verdict.RETRY, "unreachable")),
            (CertainlyUnsent(send, 429, "x", 5.0), send, Judgement(Verdict.RETRY, "flood", 5.0)),
            (Unauthorized(send, 401, "x"), send, Judgement(Verdict.UNAUTHORIZED, "unauthorized")),
            (Conflict(send, 409, "x"), send, Judgement(Verdict.RETRY, "conflict")),
            (Uncertain(send, 502, "x"), send, Judgement(Verdict.PARK, "server-error")),
            (Uncertain(send, 0, "x"), send, Judgement(Verdict.PARK, "no-answer")),
            (Uncertain(send, 0, "x"), "deleteMessage", Judgement(Verdict.RETRY, "no-answer")),
            (Refused(send, 403, "x"), send, Judgement(Verdict.BLOCKED, "blocked")),
            (Refused(send, 404, "x"), send, Judgement(Verdict.RETRY, "not-found")),
            (Refused(rich, 404, "x"), rich, Judgement(Verdict.PLAIN, "not-found")),
            (Refused(send, 413, "x"), send, Judgement(Verdict.DEAD, "too-big")),
            (Refused(send, 418, "x"), send, Judgement(Verdict.DEAD, "refused-418")),
        ]
        for error, method, expected in table:
            self.assertEqual(judge(error, method, resend=False), expected)
        uncertain = judge(Uncertain(send, 0, "x"), send, resend=True)
        self.assertEqual(uncertain.verdict, Verdict.RETRY)

    def test_bad_requests(self) -> None:
        """A 400 is judged by its description."""
        table = {
            "Bad Request: can't parse entities: x": (Verdict.PLAIN, "bad-markup"),
            "Bad Request: unsupported parse_mode": (Verdict.PLAIN, "bad-markup"),
            "Bad Request: message thread not found": (Verdict.THREAD, "no-thread"),
            "Bad Request: TOPIC_ID_INVALID": (Verdict.THREAD, "no-thread"),
            "Bad Request: TOPIC_DELETED": (Verdict.THREAD, "no-thread"),
            "Bad Request: the chat is not a forum": (Verdict.THREAD, "no-thread"),
            "Bad Request: chat not found": (Verdict.DEAD, "chat-not-found"),
            "Bad Request: message is too long": (Verdict.DEAD, "too-long"),
            "Bad Request: BUTTON_DATA_INVALID": (Verdict.BARE, "bad-keyboard"),
            "Bad Request: reply markup is too long": (Verdict.BARE, "bad-keyboard"),
            "Bad Request: something about private words": (Verdict.DEAD, "refused-400"),
        }
        for description, (verdict, reason) in table.items():
            found = judge(Refused("sendMessage", 400, description), "sendMessage", resend=False)
            self.assertEqual((found.verdict, found.reason), (verdict, reason))
        found = judge(Refused("sendRichMessage", 400, "Bad Request: X"), "sendRichMessage", True)
        self.assertEqual(found.verdict, Verdict.PLAIN)

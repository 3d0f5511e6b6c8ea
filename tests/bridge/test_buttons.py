"""Keyboards below answers stay within Telegram's limits, and keep what was pressed."""

from __future__ import annotations

from itertools import count

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge import buttons, callbacks
from pitelegram.bridge.buttons import Keyboard, keyboard, with_styles
from pitelegram.bridge.cutting import utf16_length
from pitelegram.bridge.outgoing import Button
from pitelegram.sandbox.keyboards import checked_markup


def minted(*first: str) -> object:
    """Return what gives these keys, then others."""
    given, numbers = list(first), count(1)
    return lambda: given.pop(0) if given else f"{next(numbers):08x}"


def made(*rows: list[str], mint: object = None) -> tuple[Keyboard, list[object]]:
    """The keyboard for buttons with these labels, and what is stored."""
    asked = [[Button(label=label, prompt=f"do {label}") for label in row] for row in rows]
    markup, stored = keyboard(asked, mint or minted())  # type: ignore[arg-type]
    return markup["inline_keyboard"], list(stored)


class Keyboards(SynchronousTestCase):
    """L{keyboard}."""

    def test_made(self) -> None:
        """Each button carries its key, and its row in the store has all that a press needs."""
        stop = Button(label="Stop", prompt="stop it", style="danger")
        found, stored = keyboard([[Button(label="Go", prompt="go on"), stop]], minted())  # type: ignore[arg-type]
        go = {"text": "Go", "callback_data": "tgbtn:00000001"}
        halt = {"text": "Stop", "callback_data": "tgbtn:00000002"}
        self.assertEqual(found, {"inline_keyboard": [[go, halt]]})
        self.assertEqual(
            [(b.key, b.label, b.prompt, b.style, b.pressed) for b in stored],
            [
                ("00000001", "Go", "go on", None, False),
                ("00000002", "Stop", "stop it", "danger", False),
            ],
        )
        self.assertEqual([b.keyboard for b in stored], [[[go, halt]]] * 2)

    def test_data(self) -> None:
        """Data are ours, and fit."""
        ((button,),), _ = made(["A"])
        self.assertLessEqual(len(button["callback_data"].encode()), 64)
        self.assertTrue(callbacks.is_ours(button["callback_data"]))
        self.assertEqual(buttons.key_of(button["callback_data"]), "00000001")
        for other in ("tgbtn:", "tgbtn:0000001", "tgbtn:000000011", "tgbtn:0000000G", "x:00000001"):
            self.assertIsNone(buttons.key_of(other))

    def test_wide_rows(self) -> None:
        """A row of more than eight goes on below, in order, and nothing is lost."""
        found, _ = made([str(n) for n in range(20)], ["last"])
        self.assertEqual([len(row) for row in found], [8, 8, 4, 1])
        texts = [button["text"] for row in found for button in row]
        self.assertEqual(texts, [*map(str, range(20)), "last"])

    def test_many(self) -> None:
        """No more than a hundred; no row is empty."""
        for rows in ([["a"]] * 300, [["a"] * 7] * 30, [["a"] * 300], [["a"] * 100, ["b"]]):
            found, stored = made(*rows)
            self.assertEqual(sum(len(row) for row in found), 100)
            self.assertEqual(len(stored), 100)
            self.assertTrue(all(0 < len(row) <= 8 for row in found))

    def test_bytes(self) -> None:
        """The whole fits into a message's markup also when all of them were pressed."""
        for sign in "a", "é", "語", "😀":
            for many in (1, 20, 60, 100):
                found, stored = made(*[[sign * 80] * 8] * (many // 8), [sign * 80] * (many % 8))
                self.assertEqual(len(stored), many)
                styles = dict.fromkeys(buttons.keys_of(found), "success")
                markup = {"inline_keyboard": with_styles(found, styles)}
                self.assertEqual(checked_markup(markup), markup)
                if many < 20:
                    self.assertGreater(utf16_length(found[0][0]["text"]), 60)

    def test_labels(self) -> None:
        """They are cut between visible signs; the prompt never is."""
        family = "👩‍👩‍👧‍👦"
        found, (stored,) = made([family * 40])
        text = found[0][0]["text"]
        self.assertLessEqual(utf16_length(text), 64)
        self.assertEqual(text.rstrip("…").replace(family, ""), "")
        self.assertEqual(stored.prompt, f"do {family * 40}")  # type: ignore[attr-defined]
        self.assertEqual(stored.label, text)  # type: ignore[attr-defined]

    def test_keys_differ(self) -> None:
        """A key that came already is asked for anew."""
        found, _ = made(
            ["a", "b"], ["c"], mint=minted("0000000a", "0000000a", "0000000a", "0000000b")
        )
        self.assertEqual(buttons.keys_of(found), ["0000000a", "0000000b", "00000001"])

    def test_nothing(self) -> None:
        """No buttons, no keyboard."""
        self.assertEqual(made(), ([], []))

    def test_styles(self) -> None:
        """Only those that are named get one; the keyboard that was sent stays as it is."""
        found, _ = made(["a", "b"])
        shown = with_styles(found, {"00000002": "success"})
        self.assertEqual([[b.get("style") for b in row] for row in shown], [[None, "success"]])
        self.assertNotIn("style", found[0][1])

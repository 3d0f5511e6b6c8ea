"""Letters, names and titles."""

from __future__ import annotations

from string import ascii_uppercase

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import Refusal
from pitelegram.store.rows import Binding
from pitelegram.threads.slots import PALETTE, first_free, fnv1a, pick_name
from pitelegram.threads.titles import CONTROL_TITLE, clean, title_for


def binding(key: str = "spec-1", kind: str = "managed", **values: object) -> Binding:
    """Return a row."""
    row = dict.fromkeys(("directory", "chat_id", "thread_id", "slot", "thread_name", "title"))
    return Binding(binding_key=key, kind=kind, **{**row, **values})


class SlotTests(SynchronousTestCase):
    """Letters and palette names."""

    def test_palette(self) -> None:
        """Five different names for each letter, each beginning with it."""
        self.assertEqual("".join(PALETTE), ascii_uppercase)
        names = [name for letter in PALETTE.values() for name in letter]
        self.assertEqual((len(names), len(set(names))), (130, 130))
        for letter, five in PALETTE.items():
            self.assertTrue(all(name.isalpha() and name[0] == letter for name in five))

    def test_first_free(self) -> None:
        """The first letter that is free, gaps first."""
        self.assertEqual(first_free(()), "A")
        self.assertEqual(first_free({"A", "B", "D"}), "C")
        error = self.assertRaises(Refusal, first_free, set(ascii_uppercase))
        self.assertEqual(error.code, "no-slot")

    def test_hash(self) -> None:
        """FNV-1a gives its published values."""
        self.assertEqual(fnv1a(b""), 0x811C9DC5)
        self.assertEqual(fnv1a(b"a"), 0xE40C292C)
        self.assertEqual(fnv1a(b"foobar"), 0xBF9CF968)

    def test_name_by_time(self) -> None:
        """The time chooses; the same time chooses the same."""
        chosen = {pick_name("A", at, ()) for at in range(50)}
        self.assertEqual(chosen, set(PALETTE["A"]))
        self.assertEqual(pick_name("A", 7, ()), pick_name("A", 7, ()))

    def test_used_up(self) -> None:
        """A palette that is used up goes on with the next letter's, and never doubles a name."""
        taken: set[str] = set()
        for _ in range(130):
            name = pick_name("Y", 123, taken)
            self.assertNotIn(name, taken)
            taken.add(name)
        self.assertRaises(Refusal, pick_name, "Y", 123, taken)
        self.assertIn(pick_name("Y", 123, set(PALETTE["Y"])), PALETTE["Z"])


class TitleTests(SynchronousTestCase):
    """Titles by display mode."""

    def test_modes(self) -> None:
        """Each mode shows what it says."""
        row = binding(slot="A", thread_name="Atlas", directory="/home/u/My-proj.Web")
        self.assertEqual(title_for("letters", row), "A")
        self.assertEqual(title_for("names", row), "Atlas")
        self.assertEqual(title_for("directory-snake", row), "my_proj_web")
        self.assertEqual(title_for("directory-title", row), "My Proj Web")
        self.assertEqual(title_for("state", row), "🟢 Atlas")
        self.assertEqual(title_for("state", row, busy=True), "⏳ Atlas")
        self.assertEqual(title_for("odd", row), "A")

    def test_control(self) -> None:
        """The daemon's own Thread has one title in all modes."""
        self.assertEqual(title_for("names", binding("daemon", "daemon")), CONTROL_TITLE)

    def test_twins(self) -> None:
        """Equal directory names are told apart."""
        one = binding("a", slot="A", directory="/x/app")
        two = binding("b", slot="B", directory="/y/app")
        self.assertEqual(title_for("directory-snake", two, [one, two]), "app_b")
        self.assertEqual(title_for("directory-title", two, [one, two]), "App B")
        self.assertEqual(title_for("directory-snake", two, [two]), "app")

    def test_nameless_directory(self) -> None:
        """A directory without a usable name shows the letter."""
        self.assertEqual(title_for("directory-snake", binding(slot="C", directory="/...")), "C")
        self.assertEqual(title_for("directory-snake", binding(slot="C")), "C")

    @settings(max_examples=100, derandomize=True, deadline=None)
    @given(st.text(max_size=300), st.sampled_from(["directory-snake", "directory-title"]))
    def test_limit(self, name: str, mode: str) -> None:
        """A title is never empty, has at most 128 characters, and Telegram would change nothing."""
        row = binding("a", slot="A", directory="/x/" + name)
        title = title_for(mode, row, [row, binding("b", slot="B", directory="/y/" + name)])
        self.assertTrue(0 < len(title) <= 128)
        self.assertEqual(title, clean(title))

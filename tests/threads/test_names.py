"""Letters, names and titles."""

from __future__ import annotations

from string import ascii_uppercase

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import Refusal
from pitelegram.store.rows import Binding
from pitelegram.threads.naming import clean_name
from pitelegram.threads.slots import PALETTE, first_free, fnv1a, pick_name
from pitelegram.threads.titles import CONTROL_TITLE, MODES, TITLE_LIMIT, clean, title_for

COMPONENTS = st.one_of(
    st.sampled_from(
        ["app", "App", "APP", "my-app", "my_app", "lib", "a", "app_a", "...", "ß", "ss"]
    ),
    st.sampled_from(["x" * 200, "x" * 200 + "y", "é" * 130, "漢" * 150, "🚀", "İ", "ŉ"]),
    st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=12),
)


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
        self.assertEqual(title_for("odd", row), "A")

    def test_state(self) -> None:
        """The mark tells whether it works; there is none before anybody knows."""
        row = binding(slot="A", thread_name="Atlas", directory="/home/u/My-proj.Web")
        titles = [title_for("state", row, busy=busy) for busy in (None, False, True)]
        self.assertEqual(titles, ["my_proj_web", "🟢 my_proj_web", "⏳ my_proj_web"])

    def test_control(self) -> None:
        """The daemon's own Thread has one title in all modes."""
        row = binding("daemon", "daemon", manual_name="x", directory="/d")
        self.assertEqual({title_for(mode, row) for mode in MODES}, {CONTROL_TITLE})

    def test_words(self) -> None:
        """Words are letters, digits and marks of any script; capitals that stand alone stay."""
        for name, snake, title in (
            ("APIServer-v2", "apiserver_v2", "Apiserver V2"),
            ("the API", "the_api", "The API"),
            ("cafe\u0301", "café", "Café"),
            ("हिन्दी परियोजना", "हिन्दी_परियोजना", "हिन्दी परियोजना"),
            ("Straße", "straße", "Straße"),
            ("проект_Х", "проект_х", "Проект Х"),
            ("漢字", "漢字", "漢字"),
        ):
            row = binding(slot="A", directory=f"/home/u/{name}")
            self.assertEqual(title_for("directory-snake", row), snake)
            self.assertEqual(title_for("directory-title", row), title)

    def test_equal_basenames(self) -> None:
        """The shortest tail that tells them apart, and no longer one."""
        rows = [
            binding("a", slot="A", directory="/srv/acme/app"),
            binding("b", slot="B", directory="/srv/Big-Co/app"),
            binding("c", slot="C", directory="/srv/big-co/lib"),
            binding("d", slot="D", directory="/srv/x/big-co/app"),
        ]
        titles = [title_for("directory-snake", row, rows) for row in rows]
        self.assertEqual(titles, ["acme_app", "srv_big_co_app", "lib", "x_big_co_app"])
        titles = [title_for("directory-title", row, rows) for row in rows]
        self.assertEqual(titles, ["Acme / App", "Srv / Big Co / App", "Lib", "X / Big Co / App"])

    def test_letters_where_a_directory_was_shared(self) -> None:
        """Those that once shared a directory show their letters; their neighbours do not."""
        one = binding("a", slot="A", directory="/x/app", suffixed=True)
        two = binding("b", slot="B", directory="/x/app", suffixed=True)
        three = binding("c", slot="C", directory="/x/lib")
        rows = [one, two, three]
        snakes = [title_for("directory-snake", row, rows) for row in rows]
        self.assertEqual(snakes, ["app_a", "app_b", "lib"])
        titles = [title_for("directory-title", row, rows) for row in rows]
        self.assertEqual(titles, ["App A", "App B", "Lib"])
        self.assertEqual(title_for("directory-snake", two, [two]), "app_b")

    def test_labels_that_meet(self) -> None:
        """No title is another's, also where one directory is called as another's label."""
        rows = [
            binding("a", slot="A", directory="/x/app", suffixed=True),
            binding("b", slot="B", directory="/y/app_a"),
            binding("c", slot="C", directory="/z/my-app"),
            binding("d", slot="D", directory="/z/my_app"),
        ]
        titles = [title_for("directory-snake", row, rows) for row in rows]
        self.assertEqual(len({each.casefold() for each in titles}), 4)
        self.assertEqual(titles[2:], ["my_app_c", "my_app_d"])

    def test_nameless_directory(self) -> None:
        """A directory without a usable name shows its parent's, or else the letter."""
        self.assertEqual(title_for("directory-snake", binding(slot="C", directory="/a/...")), "a")
        self.assertEqual(title_for("directory-snake", binding(slot="C", directory="/🚀")), "C")
        self.assertEqual(title_for("directory-snake", binding(slot="C")), "C")

    def test_given_names(self) -> None:
        """A name by /name is above every mode, what the user wrote himself above that."""
        row = binding(slot="A", directory="/x", manual_name="Navigator")
        self.assertEqual({title_for(mode, row, busy=True) for mode in MODES}, {"Navigator"})
        named = binding(slot="A", directory="/x", manual_name="Navigator", user_title="Mine")
        self.assertEqual({title_for(mode, named) for mode in MODES}, {"Mine"})

    @settings(max_examples=300, derandomize=True, deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.lists(COMPONENTS, min_size=1, max_size=4).map(
                    lambda parts: "/" + "/".join(parts)
                ),
                st.booleans(),
            ),
            min_size=1,
            max_size=8,
        )
    )
    def test_distinct(self, places: list[tuple[str, bool]]) -> None:
        """No two workers have one title; each has 1 to 128 characters that Telegram keeps as they are."""
        rows = []
        for number, (directory, suffixed) in enumerate(places):
            shared = any(directory == other for other, _ in places[:number])
            slot = ascii_uppercase[number]
            rows.append(
                binding(
                    f"k{number}",
                    slot=slot,
                    thread_name=PALETTE[slot][0],
                    directory=directory,
                    suffixed=suffixed or shared,
                )
            )
        for mode in MODES:
            titles = [title_for(mode, row, rows, busy=True) for row in rows]
            self.assertEqual(len({each.casefold() for each in titles}), len(rows), (mode, titles))
            for title in titles:
                self.assertTrue(0 < len(title) <= TITLE_LIMIT)
                self.assertEqual(title, clean(title))


class GivenNameTests(SynchronousTestCase):
    """What /name takes."""

    def test_cleaned(self) -> None:
        """Blanks are one space, nothing invisible stays, 96 characters do."""
        for text, kept in (
            ("Navigator", "Navigator"),
            ("  two \n\t words ", "two words"),
            ("a\x00b\x1b[1m", "a b [1m"),
            ("\u202eevil\u2066", "evil"),
            ("👨‍👩‍👧 🏴\U000e0067\U000e0062\U000e007f", "👨‍👩‍👧 🏴\U000e0067\U000e0062\U000e007f"),
            ("x" * 200, "x" * 96),
            ("\ud800y", "y"),
        ):
            self.assertEqual(clean_name(text), kept)

    def test_nothing_left(self) -> None:
        """A name that nobody could see is refused."""
        for text in (" ", "\n", "\u200b\u200d", "\ufe0f", "\ud800"):
            error = self.assertRaises(Refusal, clean_name, text)
            self.assertEqual(error.code, "invalid-name")

    @settings(max_examples=300, derandomize=True, deadline=None)
    @given(st.text(st.characters(), min_size=1, max_size=300))
    def test_kept_as_it_is(self, given: str) -> None:
        """What is kept would be kept as it is again, by us and by Telegram."""
        try:
            kept = clean_name(given)
        except Refusal:
            return
        self.assertTrue(0 < len(kept) <= 96)
        self.assertEqual((clean_name(kept), clean(kept)), (kept, kept))
        kept.encode()

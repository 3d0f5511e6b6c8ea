"""The menus as data: what they say, and that nothing makes them too big for Telegram."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.cutting import utf16_length
from pitelegram.bridge.interfaces import QueueItem
from pitelegram.bridge.menus import compact, data, main, model, queue, sessions, thinking
from pitelegram.bridge.menus import settings as options
from pitelegram.bridge.menus.screen import Button, Screen, Text
from pitelegram.bridge.menus.status import StatusView, Usage, amount, status_lines
from pitelegram.bridge.picommands import BUILT_IN, telegram_name, templates

NASTY = st.one_of(
    st.text(max_size=300),
    st.sampled_from(
        (
            "<b>&amp;</i>\x00\r\n",
            "x" * 300,
            "ж" * 300,
            "🧨" * 300,
            "\ud800 alone",
            " ",
            "🏳️‍🌈🇩🇪é" * 40,
            "a" * 5000,
            "🧨" * 3000,
        )
    ),
)


def item(seq: int = 7, **changes: Any) -> QueueItem:
    """A held prompt."""
    values = {
        "position": 1,
        "seq": seq,
        "lane": "normal",
        "skip": False,
        "summary": "one two",
        "prompt": "[telegram] one two",
        **changes,
    }
    return QueueItem(**values)


def texts(screen: Screen) -> list[list[str]]:
    """The labels, row by row."""
    keyboard = screen.as_params()["reply_markup"]["inline_keyboard"]
    return [[button["text"] for button in row] for row in keyboard]


def all_data(screen: Screen) -> list[str]:
    """All callback data."""
    keyboard = screen.as_params()["reply_markup"]["inline_keyboard"]
    return [button["callback_data"] for row in keyboard for button in row]


class MenuCase(SynchronousTestCase):
    """Checks a screen against Telegram's limits and our own promises."""

    def check(self, screen: Screen, root: bool = False) -> None:
        """It fits, its entities are whole, its data can be read, and its way back comes first."""
        params = screen.as_params()
        text = params["text"]
        text.encode("utf-8")
        units = utf16_length(text)
        self.assertTrue(0 < units <= 4096)
        self.assertTrue(text.strip())
        for entity in params.get("entities", ()):
            self.assertGreater(entity["length"], 0)
            self.assertLessEqual(entity["offset"] + entity["length"], units)
            raw = text.encode("utf-16-le")
            start, end = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
            raw[start:end].decode("utf-16-le")
        keyboard = params["reply_markup"]["inline_keyboard"]
        self.assertLessEqual(sum(map(len, keyboard)), 100)
        for button in (button for row in keyboard for button in row):
            self.assertTrue(0 < utf16_length(button["text"]) <= 64)
            button["text"].encode("utf-8")
            self.assertLessEqual(len(button["callback_data"].encode()), 64)
            self.assertIsNotNone(data.read(button["callback_data"]), button)
        if not root:
            self.assertTrue(keyboard[0][0]["text"].startswith("⬆️"), keyboard[0])


class ModelMenu(MenuCase):
    """Choosing a model."""

    def test_list(self) -> None:
        """The current one comes first and is marked; the rest stands by provider and id."""
        models = [model.Model("b", "2"), model.Model("a", "9"), model.Model("b", "1")]
        screen = model.model_list(models, "b/2")
        self.assertEqual(texts(screen), [["⬆️ Main menu"], ["🟢 b/2"], ["a/9"], ["b/1"]])
        self.check(screen)

    def test_pages(self) -> None:
        """The pager turns in a ring, and there is none for one page."""
        models = [model.Model("p", f"{number:02}") for number in range(13)]
        self.assertEqual(texts(model.model_list(models[:6], None))[1], ["p/00"])
        screen = model.model_list(models, None, 2)
        self.assertEqual(texts(screen)[1:], [["⬅️", "3/3", "➡️"], ["p/12"]])
        self.assertEqual(all_data(screen)[1:4], ["model:page:1", "model:pages:2", "model:page:0"])
        self.assertEqual(texts(model.model_list(models, None, 99)), texts(screen))
        picker = model.model_pages(models, 1)
        self.assertEqual(texts(picker), [["⬆️ Back"], ["1", "🟣 2", "3"]])
        self.check(picker)

    def test_stable_ids(self) -> None:
        """A button means the same model in a list that changed; a model that went means none."""
        old = [model.Model("p", name) for name in ("a", "b", "c")]
        screen = model.model_list(old, None)
        pressed = data.read(all_data(screen)[2])
        assert pressed is not None
        self.assertEqual((pressed.verb, pressed.number(1)), ("open", 0))
        new = [model.Model("o", "z"), *old[1:]]
        self.assertEqual(model.by_key(new, pressed.word()), model.Model("p", "b"))
        self.assertIsNone(model.by_key([old[0], old[2]], pressed.word()))

    def test_detail(self) -> None:
        """It can be activated unless it is the current one."""
        one = model.Model("p", "m")
        screen = model.model_detail(one, None, 3)
        self.assertEqual(texts(screen), [["⬆️ Back"], ["☑️ Activate"]])
        self.assertEqual(all_data(screen)[0], "model:page:3")
        self.assertEqual(texts(model.model_detail(one, "p/m", 0))[1], ["🟢 Active"])
        self.check(screen)

    def test_none(self) -> None:
        """Without models it says so."""
        screen = model.model_list([], None)
        self.assertIn(model.NO_MODELS, screen.as_params()["text"])
        self.check(screen)

    def test_written_names(self) -> None:
        """In full, or the id alone; an id that several providers have means each of them."""
        one, two = model.Model("a", "Big"), model.Model("b", "Big")
        self.assertEqual(model.named([one, two], "a/Big"), [one])
        self.assertEqual(model.named([one, two], "A/big"), [one])
        self.assertEqual(model.named([one, two], "big"), [one, two])
        self.assertIn("a/Big\nb/Big", model.unknown("big", [one, two]))
        self.assertIn("There is no model", model.unknown("x", []))

    @given(st.lists(st.tuples(NASTY, NASTY), max_size=20), st.integers(0, 40))
    @settings(max_examples=60, deadline=None)
    def test_hostile(self, names: list[tuple[str, str]], page: int) -> None:
        """Whatever models are called, and however many there are."""
        models = [model.Model(provider, name) for provider, name in names]
        many = models + [model.Model("x" * 300, f"<{n}>" + "ж" * 300) for n in range(200)]
        for found in (models, many):
            current = found[0].name if found else None
            self.check(model.model_list(found, current, page))
            self.check(model.model_pages(found, page))
            for each in found[:3]:
                self.check(model.model_detail(each, current, page))

    def test_very_many_pages(self) -> None:
        """Even of ten thousand models every n-th page can be chosen."""
        models = [model.Model("p", str(number)) for number in range(10_000)]
        screen = model.model_pages(models, 1_000)
        self.check(screen)
        self.assertGreater(len(all_data(screen)), 80)
        self.assertEqual(len([words for row in texts(screen) for words in row if "🟣" in words]), 1)


class ThinkingMenu(MenuCase):
    """Choosing a thinking level."""

    def test_rows(self) -> None:
        """C{off} stands alone, the others in two rows of three."""
        screen = thinking.thinking_menu(thinking.ORDER, "low")
        self.assertEqual(
            texts(screen)[1:],
            [["off"], ["minimal", "🟢 low", "medium"], ["high", "xhigh", "max"]],
        )
        self.check(screen)

    def test_only_what_the_model_has(self) -> None:
        """Other levels are not offered; a model without any says so."""
        screen = thinking.thinking_menu(("high", "off", "low", "odd"), "off")
        self.assertEqual(texts(screen)[1:], [["🟢 off"], ["low", "high"]])
        for none in ((), ("off",), ("strange",)):
            screen = thinking.thinking_menu(none, None)
            self.assertIn(thinking.NO_CONTROLS, screen.as_params()["text"])
            self.assertEqual(texts(screen), [["⬆️ Main menu"]])
        self.assertEqual(thinking.unknown("x", ("off",)), thinking.NO_CONTROLS)
        self.assertIn("off, low", thinking.unknown("x", ("low", "off")))


class QueueMenu(MenuCase):
    """The queue."""

    def test_list(self) -> None:
        """Items with their marks, and what Pi has already below."""
        found = [item(1, position=1, lane="priority"), item(2, position=2, skip=True)]
        screen = queue.queue_list(found, steering=["[telegram] steer me"], follow_up=["later"])
        self.assertEqual(
            texts(screen),
            [["⬆️ Main menu"], ["1. ⚡ one two"], ["2. 🔴 one two"], ["🌀 Refresh"]],
        )
        self.assertEqual(all_data(screen)[1], "queue:pick:1")
        self.assertIn("(steering):\n1. steer me", screen.as_params()["text"])
        self.check(screen)

    def test_empty(self) -> None:
        """Each refresh of an empty queue looks different from the one before."""
        titles, turn = [], 0
        for _ in queue.EMPTY:
            screen = queue.queue_list([], turn=turn)
            self.check(screen)
            titles.append(screen.as_params()["text"])
            pressed = data.read(all_data(screen)[-1])
            assert pressed is not None and pressed.number() is not None
            turn = pressed.number() or 0
        self.assertEqual(len(set(titles)), len(queue.EMPTY))
        self.assertEqual(turn, 0)

    def test_detail(self) -> None:
        """Lane and skip are two things, and Skip is red."""
        screen = queue.queue_detail(item())
        self.assertEqual(texts(screen)[1:], [["⚫️ Priority", "🟣 Normal"], ["🟢 Keep", "⚫️ Skip"]])
        screen = queue.queue_detail(item(lane="priority", skip=True))
        self.assertEqual(texts(screen)[1:], [["🟡 Priority", "⚫️ Normal"], ["⚫️ Keep", "🔴 Skip"]])
        screen = queue.queue_detail(item(lane="control", position=20))
        self.assertEqual(texts(screen)[1:], [["🟢 Keep", "⚫️ Skip"]])
        self.assertEqual(all_data(screen)[0], "queue:page:2")

    @given(st.lists(NASTY, min_size=1, max_size=30), NASTY, st.integers(0, 10))
    @settings(max_examples=60, deadline=None)
    def test_hostile(self, prompts: list[str], words: str, page: int) -> None:
        """Whatever the prompts say, here and in Pi."""
        found = [
            item(2**53 + number, position=number + 1, prompt=text, summary=words)
            for number, text in enumerate(prompts)
        ]
        self.check(queue.queue_list(found, page, 0, prompts, prompts))
        for each in found[:5]:
            self.check(queue.queue_detail(each))

    def test_long_prompt(self) -> None:
        """It is cut, and says so."""
        text = queue.queue_detail(item(prompt="word " * 5000)).as_params()["text"]
        self.assertTrue(text.endswith("\n… [truncated]"))


class MainMenu(MenuCase):
    """The root, and the status rows."""

    def test_main(self) -> None:
        """Commands, templates, status and buttons; thinking only where the model has it."""
        view = StatusView(
            activity="idle", model="p/m", thinking="low", reasoning=True, queued=2, session="S"
        )
        screen = main.main_menu(main.MainView(status=view, templates=[("fix", "Mends things")]))
        text = screen.as_params()["text"]
        for words in ("🟢 /start", "🟥 /stop", "🧩 /fix — Mends things", "Status: idle"):
            self.assertIn(words, text)
        self.assertEqual(
            texts(screen),
            [["🤖 Model: p/m"], ["🧠 Thinking: low"], ["⏳ Queue: 2"], ["🗂 Sessions"],
             ["⚙️ Settings"]],
        )  # fmt: skip
        self.check(screen, root=True)
        plain = main.status_card(StatusView())
        self.assertEqual(texts(plain)[:2], [["🤖 Model: none"], ["⌛ Queue: 0"]])
        self.check(plain, root=True)

    def test_usage(self) -> None:
        """Tokens, cost and context, as far as they are known."""
        usage = Usage(
            input=1234, output=999, cache_read=45_678, cost=0.1234, percent=12.34, window=200_000
        )
        text = status_lines(StatusView(activity="idle", usage=usage)).as_params()["text"]
        self.assertIn("Usage: ↑1.2k ↓999 R 46k\nCost: $0.123\nContext: 12.3%/200k", text)
        unknown = Usage(window=2_000_000)
        text = status_lines(StatusView(usage=unknown)).as_params()["text"]
        self.assertEqual(text, "Status: unknown\nContext: ?/2.0M")
        self.assertEqual(amount(5), "5")

    @given(NASTY, NASTY, st.lists(st.tuples(NASTY, NASTY), max_size=120))
    @settings(max_examples=60, deadline=None)
    def test_hostile(self, name: str, error: str, found: list[tuple[str, str]]) -> None:
        """Whatever models, sessions, errors and templates are called."""
        view = StatusView(
            activity="active", model=name, session=name, error=error, thinking=name, waiting=True
        )
        self.check(main.main_menu(main.MainView(status=view, templates=found)), root=True)
        self.check(main.status_card(view), root=True)


class SessionMenu(MenuCase):
    """Pi's sessions."""

    def view(self, number: int = 0, words: str = "words", **changes: Any) -> sessions.SessionView:
        """One session."""
        return sessions.SessionView(file=f"{number}.jsonl", words=words, seconds=90, **changes)

    def test_list(self) -> None:
        """Words and age; the current one is marked; a new one can be begun."""
        screen = sessions.session_list([self.view(0, current=True), self.view(1, "")])
        self.assertEqual(
            texts(screen),
            [["⬆️ Main menu"], ["🟢 words · 1 min"], ["(empty) · 1 min"], ["🆕 New session"]],
        )
        self.check(screen)
        self.check(sessions.session_list([]))

    def test_detail(self) -> None:
        """The current one cannot be switched to; another asks."""
        screen = sessions.session_detail(self.view(), 2)
        self.assertEqual(texts(screen), [["⬆️ Back"], ["✅ Yes, switch"]])
        self.assertEqual(all_data(screen)[1].split(":")[2], self.view().key)
        self.assertNotEqual(self.view(1).key, self.view().key)
        self.assertEqual(len(texts(sessions.session_detail(self.view(current=True), 0))), 1)

    def test_ages(self) -> None:
        """In the largest unit."""
        self.assertEqual(
            [sessions.age(seconds) for seconds in (0, 61, 7200, 90_000, 10**8)],
            ["1 min", "1 min", "2 h", "1 d", "1157 d"],
        )

    def test_questions(self) -> None:
        """Both say what will happen and offer to leave it."""
        screen = sessions.new_question(True, 1)
        self.assertIn("1 prompt that waits goes", screen.as_params()["text"])
        self.assertEqual(texts(screen)[1], ["❌ No"])
        screen = compact.question("keep the names", 4)
        self.assertEqual(all_data(screen), ["compact:confirm:4", "compact:cancel"])
        self.assertIn("keep the names", screen.as_params()["text"])
        self.assertNotIn("entities", Text().plain("x").as_params())

    @given(st.lists(NASTY, max_size=30), st.integers(0, 9))
    @settings(max_examples=60, deadline=None)
    def test_hostile(self, words: list[str], page: int) -> None:
        """Whatever was said first."""
        found = [self.view(number, text) for number, text in enumerate(words)]
        self.check(sessions.session_list(found, page))
        for each in found[:3]:
            self.check(sessions.session_detail(each, page))
        for text in words:
            self.assertLessEqual(
                utf16_length(compact.question(text, 2**53).as_params()["text"]), 4096
            )
            self.assertLess(len(compact.failed(text)), 1100)


class SettingsMenu(MenuCase):
    """Settings."""

    def test_list(self) -> None:
        """Each with the value in force; without any, the defaults."""
        rows = texts(options.settings_list({"draftPreviews": True, "voice": {"replyMode": "odd"}}))
        self.assertEqual(
            [row[0] for row in rows],
            [
                "⬆️ Main menu",
                "📝 Draft previews: on",
                "🧾 Rendering: rich",
                "👄 Voice reply: hidden",
                "🔬 Activity: verbose",
                "📌 Proactive push: on",
                "🧮 Footer: off",
                "🕒 Time injection: interval",
                "🧹 Thread cleanup: on",
            ],
        )

    def test_details(self) -> None:
        """Every setting with every value; its data lead back to it."""
        for setting in options.SETTINGS:
            for value in setting.values:
                found: dict[str, Any] = {}
                *above, last = setting.name.split(".")
                inner = found
                for part in above:
                    inner = inner.setdefault(part, {})
                inner[last] = value.value
                screen = options.setting_detail(setting, found)
                self.check(screen)
                self.assertIn(f": {value.word}\n", screen.as_params()["text"])
                pressed = [data.read(each) for each in all_data(screen)[1:]]
                words = [each.words for each in pressed if each is not None]
                self.assertEqual(
                    words, [(setting.key, possible.word) for possible in setting.values]
                )
        self.assertIsNone(options.by_key("no"))
        proactive = options.by_key("proactive")
        assert proactive is not None
        self.assertEqual(proactive.told("off"), "Proactive push disabled")
        self.assertIsNone(proactive.value("maybe"))

    def test_switches(self) -> None:
        """On is green, off is yellow."""
        setting = options.SETTINGS[0]
        on = texts(options.setting_detail(setting, {"draftPreviews": True}))[1]
        off = texts(options.setting_detail(setting, {"draftPreviews": False}))[1]
        self.assertEqual((on, off), (["🟢 On", "⚫️ Off"], ["⚫️ On", "🟡 Off"]))


class Data(SynchronousTestCase):
    """Callback data."""

    def test_read(self) -> None:
        """Only what menus write is understood."""
        self.assertEqual(data.read("queue:pick:7"), data.Pressed("queue", "pick", ("7",)))
        self.assertEqual(data.read("menu:back"), data.Pressed("menu", "back"))
        for other in ("", "menu", "dlg:1", "again:1", "model:<b>", "x:y", "queue:ж", "model:a\n"):
            self.assertIsNone(data.read(other), other)
        self.assertTrue(data.belongs("model:<b>"))
        self.assertFalse(data.belongs("modell:x"))

    def test_numbers(self) -> None:
        """Anything that is no number is none."""
        pressed = data.Pressed("queue", "pick", ("7", "x", "٣", "9" * 16, "-1"))
        self.assertEqual([pressed.number(n) for n in range(6)], [7, None, None, None, None, None])

    def test_too_long(self) -> None:
        """A button that Telegram would refuse is never made."""
        self.assertRaises(ValueError, Button, "x", "ж" * 33)
        self.assertRaises(ValueError, Button, "x", "")

    @given(NASTY)
    @settings(max_examples=200, deadline=None)
    def test_any(self, text: str) -> None:
        """Nothing in callback data makes reading fail."""
        found = data.read(text)
        if found is not None:
            self.assertIn(found.family, data.FAMILIES)
            found.number()


class PiCommands(SynchronousTestCase):
    """Pi's templates and skills as Telegram commands."""

    def test_names(self) -> None:
        """Only what Telegram takes is left of a name."""
        self.assertEqual(telegram_name("Review-It"), "review_it")
        self.assertEqual(telegram_name("skill:deep-look"), "skill_deep_look")
        self.assertEqual(telegram_name("ж"), "")
        self.assertEqual(telegram_name("a" * 31 + "-b"), "a" * 31)

    def test_what_is_listed(self) -> None:
        """Templates and skills; nothing of extensions, nothing that is ours, each name once."""
        listed = [
            {"name": "mcp", "source": "extension"},
            {"name": "taken", "source": "prompt"},
            {"name": "taken", "source": "extension"},
            {"name": "review-it", "description": "D", "source": "prompt"},
            {"name": "review_it", "source": "prompt"},
            {"name": "skill:x", "source": "skill", "description": 3},
            {"name": "Stop", "source": "prompt"},
            {"name": "two words", "source": "prompt"},
            {"name": 7, "source": "prompt"},
            "odd",
        ]
        found = templates(listed)
        self.assertEqual(
            [(each.name, each.command, each.description) for each in found],
            [("review_it", "review-it", "D"), ("skill_x", "skill:x", "")],
        )
        self.assertEqual(found[0].prompt("a b"), "/review-it a b")
        self.assertEqual(found[0].prompt(""), "/review-it")

    @given(st.lists(st.builds(lambda n: {"name": n, "source": "prompt"}, NASTY), max_size=20))
    @settings(max_examples=100, deadline=None)
    def test_hostile(self, listed: list[Any]) -> None:
        """Every name that comes out is one that Telegram takes, and none is ours."""
        for each in templates(listed):
            self.assertTrue(re.fullmatch(r"[a-z0-9_]{1,32}", each.name))
            self.assertNotIn(each.name, BUILT_IN)

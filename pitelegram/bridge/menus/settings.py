"""The settings that an operator changes in the chat: their texts, values and screens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from pitelegram.bridge.menus.screen import MAIN_MENU, Button, Row, Screen, Text, marked

UNKNOWN = "Unknown setting."


@attrs.frozen
class Value:
    """One value of a setting.

    @ivar word: what buttons carry and rows show.
    @ivar value: as it stands in C{telegram.json}.
    @ivar words: what it does.
    """

    word: str
    value: Any
    words: str


@attrs.frozen(kw_only=True)
class Setting:
    """One setting.

    @ivar key: what buttons carry.
    @ivar name: what the bus calls it; a dot leads into an object.
    @ivar default: the word that counts while nothing is written.
    @ivar answer: the toast, with C{{}} for the word.
    """

    key: str
    name: str
    title: str
    sentence: str
    values: tuple[Value, ...]
    default: str
    answer: str

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off."""
        return isinstance(self.values[0].value, bool)

    def word(self, settings: Mapping[str, Any]) -> str:
        """Return the word of the value in force."""
        found: Any = settings
        for part in self.name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return next((v.word for v in self.values if v.value == found), self.default)

    def value(self, word: str) -> Value | None:
        """Return the value of a word, None when it has none."""
        return next((value for value in self.values if value.word == word), None)

    def told(self, word: str) -> str:
        """Return the toast for a value that was chosen."""
        if self.is_switch:
            return f"{self.answer} {'enabled' if word == 'on' else 'disabled'}"
        return f"{self.answer}: {word}"


def _switch(on: str, off: str) -> tuple[Value, ...]:
    return Value("on", True, on), Value("off", False, off)


SETTINGS = (
    Setting(
        key="draft-previews",
        name="draftPreviews",
        title="📝 Draft previews",
        sentence="Shows an answer while Pi writes it.",
        values=_switch("the answer grows in the chat", "only the finished answer comes"),
        default="off",
        answer="Draft previews",
    ),
    Setting(
        key="assistant-rendering",
        name="rendering",
        title="🧾 Rendering",
        sentence="How Pi's answers are formatted.",
        values=(
            Value("rich", "rich", "tables, headings and lists as Telegram shows them"),
            Value("html", "html", "plain formatting for older clients"),
        ),
        default="rich",
        answer="Rendering",
    ),
    Setting(
        key="voice-reply",
        name="voice.replyMode",
        title="👄 Voice reply",
        sentence="When Pi is asked to answer by voice.",
        values=(
            Value("hidden", "hidden", "never"),
            Value("mirror", "mirror", "when you sent a voice message"),
            Value("always", "always", "for every answer"),
        ),
        default="hidden",
        answer="Voice reply mode",
    ),
    Setting(
        key="activity-verbosity",
        name="activity",
        title="🔬 Activity",
        sentence="What is shown of Pi's work before the answer.",
        values=(
            Value("quiet", "quiet", "only what it says"),
            Value("thinking", "thinking", "what it thinks"),
            Value("tools", "tools", "the tools that it uses"),
            Value("verbose", "verbose", "everything"),
        ),
        default="verbose",
        answer="Activity",
    ),
    Setting(
        key="proactive",
        name="proactivePush",
        title="📌 Proactive push",
        sentence="Whether answers to work that was not begun here come here too.",
        values=_switch("they come", "only answers to this chat come"),
        default="on",
        answer="Proactive push",
    ),
    Setting(
        key="footer",
        name="footer",
        title="🧮 Footer",
        sentence="Whether an answer ends with the tokens and the cost of its run.",
        values=_switch("it does", "only the answer is shown"),
        default="off",
        answer="Footer",
    ),
    Setting(
        key="time-injection",
        name="timeInjection",
        title="🕒 Time injection",
        sentence="Whether a prompt tells Pi what time it is.",
        values=(
            Value("hidden", "hidden", "never"),
            Value("always", "always", "in every prompt"),
            Value("interval", "interval", "at most once in a while"),
        ),
        default="interval",
        answer="Time injection",
    ),
    Setting(
        key="automatic-thread-cleanup",
        name="automaticCleanup",
        title="🧹 Thread cleanup",
        sentence="Whether the Thread of a terminal's Pi goes when that Pi ends.",
        values=_switch("its Thread is deleted", "its Thread stays"),
        default="on",
        answer="Thread cleanup",
    ),
)
"""In the order of the menu."""


def by_key(key: str) -> Setting | None:
    """Return a setting by what a button carries."""
    return next((setting for setting in SETTINGS if setting.key == key), None)


def settings_list(settings: Mapping[str, Any]) -> Screen:
    """Return the list with the values in force."""
    rows: list[Row] = [(MAIN_MENU,)]
    for each in SETTINGS:
        words = f"{each.title}: {each.word(settings)}"
        rows.append((Button(words, f"settings:open:{each.key}"),))
    return Screen(Text().bold("⚙️ Settings:"), tuple(rows))


def setting_detail(setting: Setting, settings: Mapping[str, Any]) -> Screen:
    """Return one setting with its values."""
    now = setting.word(settings)
    text = Text().bold(f"{setting.title}:").plain(" ").code(now).plain(f"\n{setting.sentence}\n")
    for value in setting.values:
        default = " (default)" if value.word == setting.default else ""
        text.plain("\n").code("-").plain(" ").code(value.word).plain(f"{default}: {value.words}")
    rows: list[Row] = [(Button("⬆️ Back", "settings:list"),)]
    prefix = f"settings:set:{setting.key}:"
    if setting.is_switch:
        on, off = ("🟢 On", "⚫️ Off") if now == "on" else ("⚫️ On", "🟡 Off")
        rows.append((Button(on, f"{prefix}on"), Button(off, f"{prefix}off")))
    else:
        for value in setting.values:
            words = marked(value.word == now, value.word)
            rows.append((Button(words, f"{prefix}{value.word}"),))
    return Screen(text, tuple(rows))

"""Pi's sessions of this directory, and beginning another one."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from pitelegram.bridge.cutting import shorten
from pitelegram.bridge.menus.data import key_of
from pitelegram.bridge.menus.screen import (
    MAIN_MENU,
    Button,
    Row,
    Screen,
    Text,
    marked,
    page_count,
    pager,
)

PAGE = 6
NONE = "Pi has no session of this directory yet."
GONE = "That session is not there any more."
CURRENT = "That is the current session."
BUSY = "Pi is busy. Send /abort, /next, or /stop."
SWITCHED = "Switched."
NEW = "🆕 Pi is in a new session."
KEPT = "Nothing was changed."

_TAG = re.compile(r"\A\[telegram[^\]\n]*\]\s*")
"""What stands before a prompt that came from here."""


@attrs.frozen(kw_only=True)
class SessionView:
    """One session.

    @ivar file: its file's name, which is what buttons stand for.
    @ivar name: as Pi has it, if it has one.
    @ivar words: what was first said in it.
    @ivar seconds: how long ago it was used.
    """

    file: str
    words: str
    name: str = ""
    seconds: float
    current: bool = False

    @property
    def key(self) -> str:
        """What buttons carry."""
        return key_of(self.file)


def session_list(sessions: Sequence[SessionView], page: int = 0, current: str = "") -> Screen:
    """Return one page of the list, which comes with the newest first.

    @param current: the key of the session that Pi is in: a new one is begun in its place, once.
    """
    text = Text().bold("🗂 Sessions:")
    if not sessions:
        text.plain(f"\n{NONE}")
    pages = page_count(len(sessions), PAGE)
    page = min(max(page, 0), pages - 1)
    rows: list[Row] = [(MAIN_MENU,)]
    rows += pager("session:page:", page, pages, f"session:page:{page}")
    for each in sessions[page * PAGE : (page + 1) * PAGE]:
        words = f"{shorten(_words(each), 40)} · {age(each.seconds)}"
        rows.append((Button(marked(each.current, words), f"session:open:{each.key}:{page}"),))
    return Screen(text, (*rows, (Button("🆕 New session", f"newsession:open:{current}"),)))


def session_detail(session: SessionView, page: int) -> Screen:
    """Return one session with the question whether to go into it."""
    title = "🗂 Current session:" if session.current else "Switch to this session?"
    text = Text().bold(title).plain("\n").plain(shorten(_words(session), 500))
    text.plain(f"\nLast used {age(session.seconds)} ago.")
    rows: list[Row] = [(Button("⬆️ Back", f"session:page:{page}"),)]
    if not session.current:
        rows.append((Button("✅ Yes, switch", f"session:switch:{session.key}:{page}"),))
    return Screen(text, tuple(rows))


def new_question(active: bool, queued: int, current: str = "") -> Screen:
    """Return the confirmation of a new session while there is work; see L{session_list}."""
    text = Text().bold("Start a new session?")
    if active:
        text.plain("\nWhat Pi is doing now is aborted.")
    if queued:
        words = "prompt that waits goes" if queued == 1 else "prompts that wait go"
        text.plain(f"\n{queued} {words} to the new session.")
    return Screen(
        text,
        (
            (Button("🆕 Yes, new session", f"newsession:confirm:{current}"),),
            (Button("❌ No", "newsession:cancel"),),
        ),
    )


def age(seconds: float) -> str:
    """Return a span of time in its largest unit."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "1 min"


def _words(session: SessionView) -> str:
    said = " ".join(_TAG.sub("", session.words).split())
    return ": ".join(part for part in (session.name.strip(), said) if part) or "(empty)"

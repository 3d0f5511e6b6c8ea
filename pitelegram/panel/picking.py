"""The directory picker: where a new worker may be started.

A view is a directory's token and a page, so that every button works after a restart of the daemon.
What may be started is checked when it is shown and again when it is started (rule D7).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import PurePath

import attrs

from pitelegram.errors import PiTelegramError, Refusal
from pitelegram.panel.interfaces import IDirectories
from pitelegram.panel.paging import page_of, page_row
from pitelegram.panel.reply import Reply
from pitelegram.panel.screens import BACK_BUTTON, MENU_BUTTON, Button, Screen, clip
from pitelegram.store.pickers import Pickers, token_of
from pitelegram.supervisor.interfaces import ISupervisor

PAGE_SIZE = 16
"""Directories on one page, two a row."""

RECENT = 6
"""Directories of known workers on the first screen."""

LABEL_LIMIT = 60

TRUST = (
    "Pi trusts the project it runs in: its settings, extensions and skills are executed with your"
    " rights."
)

_JOINERS = "\u200c\u200d"
"""Not printable by themselves, but parts of words and of pictures."""

EXPIRED = "That directory is not known any more; choose again."


@attrs.define(eq=False)
class Picker:
    """Answers the picker's buttons.

    @param directories: what there is inside the roots.
    @param pickers: the durable tokens.
    @param roster: the roster with a note above it, which a start leads to.
    """

    _directories: IDirectories
    _pickers: Pickers
    _supervisor: ISupervisor
    _roster: Callable[[str], Screen]
    _starting: set[str] = attrs.field(factory=set, init=False)

    async def begin(self, note: str = "") -> Reply:
        """The first screen: recent projects, and the roots (or the one root's content)."""
        roots = self._directories.roots()
        recent = [each for each in self._directories.recent(RECENT) if each not in roots]
        if len(roots) == 1 and not recent:
            return await self._view(roots[0], 0, note)
        await self._pickers.show([*recent, *roots])
        text = "📂 Pick a project directory" if roots else "📭 None of the configured roots exists."
        lines = [note, ""] if note else []
        lines.append(text)
        if recent:
            lines += ["", "Lately used:", *(f"· {short(each)}" for each in recent)]
        if roots:
            lines += ["", "Roots:", *(f"· {short(each)}" for each in roots)]
        buttons = [_open_button(each) for each in (*recent, *roots)]
        return Reply("", Screen("\n".join(lines), (*_pairs(buttons), (BACK_BUTTON, MENU_BUTTON))))

    async def open(self, argument: str) -> Reply:
        """C{<token>:<page>}: the content of a directory."""
        token, _, page = argument.partition(":")
        directory = self._pickers.directory(token)
        if directory is None:
            return await self._again()
        return await self.show(directory, page_of(page))

    async def show(self, directory: str, page: int = 0) -> Reply:
        """The content of a directory that somebody named."""
        try:
            real = self._directories.resolve(directory)
        except Refusal as refusal:
            return await self._again(str(refusal))
        return await self._view(real, page, "")

    async def ask(self, token: str) -> Reply:
        """Ask before a start, and say what a start means."""
        directory = self._pickers.directory(token)
        return await self._again() if directory is None else await self.confirm(directory)

    async def confirm(self, directory: str) -> Reply:
        """The question before a start in a directory."""
        try:
            real = self._directories.resolve(directory)
        except Refusal as refusal:
            return await self._again(str(refusal))
        await self._pickers.show([real])
        text = f"✅ Start a worker here?\n\n{short(real)}\n\n{TRUST}"
        rows = (
            (Button("✅ Start a worker here", f"ptd:g:{token_of(real)}"),),
            (Button("↩️ Back", f"ptd:d:{token_of(real)}:0"),),
        )
        return Reply("", Screen(text, rows))

    async def start(self, token: str) -> Reply:
        """Start a worker in the directory behind a token."""
        directory = self._pickers.directory(token)
        if directory is None:
            return await self._again()
        where = _plain(PurePath(directory).name or "/")
        if directory in self._starting:
            return Reply(f"Starting in {where} already…", self._roster(""))
        self._starting.add(directory)

        async def go() -> Reply:
            try:
                view = await self._supervisor.start(directory, "operator")
            except PiTelegramError as error:
                return Reply("", self._roster(f"⚠️ {error}"), alert=True)
            finally:
                self._starting.discard(directory)
            note = f"✅ {view.name} is starting; its Thread says when it is ready."
            return Reply("", self._roster(note))

        return Reply(f"Starting in {where}…", self._roster(""), later=go)

    async def _again(self, words: str = EXPIRED) -> Reply:
        reply = await self.begin(f"⚠️ {words}")
        return attrs.evolve(reply, toast=words, alert=True)

    async def _view(self, directory: str, page: int, note: str) -> Reply:
        children = self._directories.children(directory)
        pages = max(1, -(-len(children) // PAGE_SIZE))
        page = min(page, pages - 1)
        shown = children[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]
        parent = self._directories.parent(directory)
        await self._pickers.show([directory, *shown, *([] if parent is None else [parent])])
        token = token_of(directory)
        rows: list[tuple[Button, ...]] = []
        up = self._up_button(parent)
        if up is not None:
            rows.append((up,))
        rows += _pairs([_open_button(each) for each in shown])
        if pages > 1:
            rows.append(page_row(f"ptd:d:{token}:", page, pages))
        rows.append((Button("✅ Start a worker here", f"ptd:s:{token}"),))
        rows.append((BACK_BUTTON, MENU_BUTTON))
        return Reply(
            "", Screen(_view_text(directory, len(children), page, pages, note), tuple(rows))
        )

    def _up_button(self, parent: str | None) -> Button | None:
        if parent is not None:
            return Button("⬆️ ..", f"ptd:d:{token_of(parent)}:0")
        return Button("⬆️ ..", "ptd:b") if len(self._directories.roots()) > 1 else None


def short(directory: str) -> str:
    """Return a directory as people write it, with C{~} for the home directory."""
    home = os.path.expanduser("~")
    if directory == home or directory.startswith(home.rstrip("/") + "/"):
        directory = "~" + directory[len(home.rstrip("/")) :]
    return clip(_plain(directory), 300)


def _plain(name: str) -> str:
    """What a name looks like in one line: nothing in it may pass for words of the panel."""
    return "".join(each if each.isprintable() or each in _JOINERS else "\ufffd" for each in name)


def _view_text(directory: str, count: int, page: int, pages: int, note: str) -> str:
    what = "No directories in it." if count == 0 else f"{count} directories in it"
    where = f" (page {page + 1} of {pages})" if pages > 1 else ""
    head = f"{note}\n\n" if note else ""
    return f"{head}📂 Pick a project directory\n\n{short(directory)}\n{what}{where}"


def _open_button(directory: str) -> Button:
    name = _plain(PurePath(directory).name or directory)
    return Button(f"📁 {clip(name, LABEL_LIMIT)}", f"ptd:d:{token_of(directory)}:0")


def _pairs(buttons: Sequence[Button]) -> list[tuple[Button, ...]]:
    return [tuple(buttons[at : at + 2]) for at in range(0, len(buttons), 2)]

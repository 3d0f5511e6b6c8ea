"""What a chooser says, and the data of its buttons.

Callback data: C{reroute:<id>:<worker>}, C{rerouterestore:<id>}, C{reroutenew:<id>:<worker>},
C{rerouteback:<id>}, C{reroutedrop:<id>}, C{rerouteclean:<id>}; C{<worker>} is L{token_of} its binding.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Sequence
from typing import Any

import attrs

from pitelegram.store.choosers import Chooser

SEND = "reroute"
RESTORE_SCREEN = "rerouterestore"
RESTORE = "reroutenew"
BACK = "rerouteback"
DISMISS = "reroutedrop"
CLEAN = "rerouteclean"

VERBS = frozenset({SEND, RESTORE_SCREEN, RESTORE, BACK, DISMISS, CLEAN})

LABEL_LIMIT = 64
"""UTF-16 units of a button's label, its arrow included."""

MOST_WORKERS = 26

EXPIRED = "Message route expired."
PICK = "Choose instance to restore."
NOT_ACTIVE = "Thread is not active yet."
ROUTED = "Message routed."
RESTORED = "Thread restored."
DISMISSED = "Dismissed; nothing was sent."
BUSY = "A choice was made already."
UNAVAILABLE = "Target thread is unavailable; choose again."
CLEANED = "Thread cleanup completed."
STILL_PENDING = "Message routed, but thread cleanup is still pending. Try again."

_THREAD_HEAD = (
    "⚠️ <b>New thread is not a Pi instance</b>\n\n"
    "1. Your message is kept and waits for your choice.\n"
    "2. Send it to a worker's Thread; this one is deleted afterwards.\n"
    "3. Or give this Thread to a worker, whose old one is deleted.\n\n"
    "🧵 <b>Choose target thread</b>"
)
_RESTORE_HEAD = (
    "<b>🧵 Replace/restore Telegram thread</b>\n\n"
    "The chosen worker moves here with your message; its old Thread is deleted."
)
_ALL_HEAD = (
    "<b>🧵 Choose target thread</b>\n\nYou used <code>{command}</code> from the <b>All</b> tab."
)
_NO_WORKER = (
    "\n\nNo worker is running. The message is kept until one does. /daemon shows the workers."
)
_NO_WORKER_IN_ALL = (
    "\n\nNo worker is running. The command is kept for an hour. /daemon shows the workers."
)
_THREAD_ALONE = "⚠️ This Thread belongs to no worker."
_STUCK = "⚠️ The message was routed. What is no longer needed could not be deleted."

FAREWELLS = {
    "dismissed": "✖️ Dismissed. Nothing was sent.",
    "expired": "⌛ Expired: nothing was chosen in time, and nothing was sent.",
    "kept": "✅ The message was routed. This Thread stays.",
    "failed": "⚠️ The worker did not take the message. This Thread stays.",
    "over": "✅ The message was routed.",
}


@attrs.frozen(kw_only=True)
class Worker:
    """A worker that may be chosen, as its Thread is called."""

    binding_key: str
    label: str


@attrs.frozen(kw_only=True)
class View:
    """What a chooser shows: HTML, and one button a row."""

    text: str
    buttons: tuple[tuple[str, str], ...] = ()

    def as_params(self) -> dict[str, Any]:
        """Return the parameters of a send or an edit."""
        rows = [[{"text": label, "callback_data": data}] for label, data in self.buttons]
        return {
            "text": self.text,
            "parse_mode": "HTML",
            "reply_markup": {"inline_keyboard": rows},
        }


def question(chooser: Chooser, workers: Sequence[Worker], restoring: bool) -> View:
    """Return the first or the second screen of a chooser that waits for an answer."""
    dismiss = ("✖️ Dismiss", f"{DISMISS}:{chooser.chooser_id}")
    listed = workers[:MOST_WORKERS]
    in_all = chooser.thread_id is None
    if restoring and listed and not in_all:
        return View(
            text=_RESTORE_HEAD,
            buttons=(
                *_choices("➡️", RESTORE, chooser, listed),
                ("↩️ Back", f"{BACK}:{chooser.chooser_id}"),
            ),
        )
    words = chooser.command.split(None, 1) or ["/"]
    head = _ALL_HEAD.format(command=html.escape(words[0], quote=False)) if in_all else _THREAD_HEAD
    if not listed:
        head = head + _NO_WORKER_IN_ALL if in_all else _THREAD_ALONE + _NO_WORKER
        return View(text=head, buttons=(dismiss,))
    choices = _choices("↪️", SEND, chooser, listed)
    if in_all:
        return View(text=head, buttons=(*choices, dismiss))
    second = ("🔁 Replace/restore thread…", f"{RESTORE_SCREEN}:{chooser.chooser_id}")
    return View(text=head, buttons=(*choices, second, dismiss))


def stuck(chooser: Chooser) -> View:
    """Return what is shown when something could not be deleted."""
    return View(text=_STUCK, buttons=(("🧹 Retry cleanup", f"{CLEAN}:{chooser.chooser_id}"),))


def farewell(why: str) -> View:
    """Return what an answered or expired chooser says."""
    return View(text=FAREWELLS[why])


def label(title: str) -> str:
    """Return a Thread's title, short enough for a button with its arrow."""
    title = title.encode("utf-8", "replace").decode("utf-8")
    units, limit = title.encode("utf-16-le"), (LABEL_LIMIT - 4) * 2
    return title if len(units) <= limit else units[:limit].decode("utf-16-le", "ignore") + "…"


def token_of(binding_key: str) -> str:
    """Return what stands for a binding in callback data, which has 64 bytes."""
    return hashlib.sha256(binding_key.encode()).hexdigest()[:16]


def _choices(
    arrow: str, verb: str, chooser: Chooser, workers: Sequence[Worker]
) -> list[tuple[str, str]]:
    return [
        (f"{arrow} {each.label}", f"{verb}:{chooser.chooser_id}:{token_of(each.binding_key)}")
        for each in workers
    ]

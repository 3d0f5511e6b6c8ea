"""What a directory is called above a Thread: as short as it can be told from the others.

Labels are compared without regard to letter case: nobody should have to tell C{App} from C{APP}.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import PurePath

from pitelegram.store.rows import Binding

SNAKE, TITLE = "directory-snake", "directory-title"

LABEL_LIMIT = 110
"""Characters of a label; suffix and mark fit into a title beside it."""

_BETWEEN = {SNAKE: "_", TITLE: " / "}


def directory_titles(style: str, bindings: Iterable[Binding]) -> dict[str, str]:
    """Return the titles of all bindings that have a directory, by key; all are different.

    A label is the shortest tail of the path that no other binding's directory has.  Where two live
    bindings once shared a directory (C{suffixed}), or no tail tells two directories apart, the letter
    follows.

    @param style: L{SNAKE} or L{TITLE}.
    """
    rows = [each for each in bindings if each.kind != "daemon" and each.directory]
    rows.sort(key=lambda each: (each.slot or "~", each.binding_key))
    tails = {each.directory: _tails(style, each.directory or "") for each in rows}
    owners: dict[str, set[str | None]] = {}
    for directory, labels in tails.items():
        for label in labels:
            owners.setdefault(label.casefold(), set()).add(directory)
    titles: dict[str, str] = {}
    taken: set[str] = set()
    for row in rows:
        labels = tails[row.directory]
        own = next((each for each in labels if len(owners[each.casefold()]) == 1), None)
        title = _free(style, row, own, labels, taken)
        taken.add(title.casefold())
        titles[row.binding_key] = title
    return titles


def _free(style: str, row: Binding, own: str | None, labels: Sequence[str], taken: set[str]) -> str:
    """Return the first of a binding's titles that is not taken."""
    slot = row.slot or "?"
    label = own or (labels[0] if labels else None)
    if label is None:
        candidates = [slot]
    else:
        lettered = f"{label}_{slot.lower()}" if style == SNAKE else f"{label} {slot}"
        # Without an own label the letter is needed whatever else is there.
        candidates = [lettered] if row.suffixed or own is None else [label, lettered]
    for candidate in candidates:
        if candidate.casefold() not in taken:
            return candidate
    between = "_" if style == SNAKE else " "
    numbered = (f"{candidates[-1]}{between}{number}" for number in count(2))
    return next(each for each in numbered if each.casefold() not in taken)


def _tails(style: str, directory: str) -> list[str]:
    """Return the labels of a path's last component, last two, and so on."""
    word = _WORDS[style]
    label, found = "", []
    for part in reversed(PurePath(directory).parts):
        words = [word(each) for each in tokens(part)]
        if not words:
            continue
        own = ("_" if style == SNAKE else " ").join(words)
        label = own if not label else f"{own}{_BETWEEN[style]}{label}"
        label = label[:LABEL_LIMIT].rstrip(" _/")
        if not found or found[-1] != label:
            found.append(label)
    return found


def tokens(text: str) -> list[str]:
    """Return the words of a text: letters, digits and the marks that belong to them."""
    plain = unicodedata.normalize("NFC", text)
    kept = "".join(each if unicodedata.category(each)[0] in "LNM" else " " for each in plain)
    return kept.split()


def _titled(word: str) -> str:
    return word if word.isupper() else word.capitalize()


_WORDS: dict[str, Callable[[str], str]] = {SNAKE: str.lower, TITLE: _titled}

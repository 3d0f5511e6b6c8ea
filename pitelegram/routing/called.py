"""What a Thread can be named by."""

from __future__ import annotations

from pitelegram.store.rows import Binding
from pitelegram.threads.interfaces import without_mark


def is_called(binding: Binding, name: str) -> bool:
    """Whether a binding's Thread has that title, given name or palette name; case is ignored.

    In the display mode C{state} the mark before a title may be left out.
    """
    wanted = " ".join(name.split()).casefold()
    title = binding.title or ""
    names = (title, without_mark(title), binding.manual_name, binding.thread_name)
    return bool(wanted) and wanted in {(each or "").casefold() for each in names}

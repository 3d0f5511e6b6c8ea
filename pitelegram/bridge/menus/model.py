"""Choosing a model.

A button carries a hash of C{provider/id}, never a place in a list: a list that changed meanwhile
cannot make it mean another model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from pitelegram.bridge.menus.data import key_of
from pitelegram.bridge.menus.screen import (
    MAIN_MENU,
    MAX_BUTTONS,
    Button,
    Screen,
    Text,
    in_rows,
    marked,
    page_count,
    pager,
)

PAGE = 6
"""Models on one page."""
_PAGES_IN_A_ROW = 4
_MOST_PAGES = MAX_BUTTONS - _PAGES_IN_A_ROW

NO_MODELS = "No available models with configured auth."
GONE = "Selected model is no longer available."
NOT_AVAILABLE = "Model is not available."
COMPACTING = "Pi is compacting its context. Try again when that is done."


@attrs.frozen(order=True)
class Model:
    """A model that Pi can use now."""

    provider: str
    id: str

    @property
    def name(self) -> str:
        """C{provider/id}."""
        return f"{self.provider}/{self.id}"

    @property
    def key(self) -> str:
        """What buttons carry."""
        return key_of(self.name)


def arranged(models: Iterable[Model], current: str | None) -> list[Model]:
    """Return each model once: the current one, then by provider and id."""
    return sorted(set(models), key=lambda model: (model.name != current, model))


def by_key(models: Iterable[Model], key: str) -> Model | None:
    """Return the model that a button means, None when there is none (any more)."""
    return next((model for model in models if model.key == key), None)


def named(models: Sequence[Model], wanted: str) -> list[Model]:
    """Return the models that written words mean: C{provider/id}, or an id, case ignored."""
    exact = [model for model in models if wanted in (model.name, model.id)]
    low = wanted.lower()
    return exact or [model for model in models if low in (model.name.lower(), model.id.lower())]


def model_list(models: Sequence[Model], current: str | None, page: int = 0) -> Screen:
    """Return one page of the list; a page that does not exist is the last one."""
    text = Text().bold("🤖 Choose a model:")
    if not models:
        text.plain(f"\n{NO_MODELS}")
    found = arranged(models, current)
    pages = page_count(len(found), PAGE)
    page = min(max(page, 0), pages - 1)
    rows = [(MAIN_MENU,), *pager("model:page:", page, pages, f"model:pages:{page}")]
    for model in found[page * PAGE : (page + 1) * PAGE]:
        words = marked(model.name == current, model.name)
        rows.append((Button(words, f"model:open:{model.key}:{page}"),))
    return Screen(text, tuple(rows))


def model_pages(models: Sequence[Model], page: int) -> Screen:
    """Return the choice of a page; with very many of them, only every n-th."""
    pages = page_count(len(set(models)), PAGE)
    step = -(-pages // _MOST_PAGES)
    page -= page % step
    buttons = [
        Button(marked(number == page, str(number + 1), "🟣 "), f"model:page:{number}")
        for number in range(0, pages, step)
    ]
    back = Button("⬆️ Back", f"model:page:{page}")
    rows = ((back,), *in_rows(buttons, _PAGES_IN_A_ROW))
    return Screen(Text().bold("Choose a page:"), rows)


def model_detail(model: Model, current: str | None, page: int) -> Screen:
    """Return one model with the button that chooses it."""
    text = Text().bold("🤖 Model:").plain("\n").code(model.name)
    active = model.name == current
    choose = Button("🟢 Active" if active else "☑️ Activate", f"model:pick:{model.key}:{page}")
    return Screen(text, ((Button("⬆️ Back", f"model:page:{page}"),), (choose,)))


def chosen(model: Model) -> str:
    """Return the toast for a model that was chosen."""
    return f"Model: {model.id}"


def switched(model: Model, busy: bool) -> str:
    """Return the answer to C{/model provider/id}, and what a press while Pi works is told."""
    if not busy:
        return f"🤖 Model: {model.name}"
    return f"Switched to {model.id}. Pi goes on with it after the current step."


def unknown(wanted: str, found: Sequence[Model]) -> str:
    """Return the answer to a name that means no model, or several."""
    if not found:
        return f"There is no model “{wanted[:100]}” here. /model lists what there is."
    names = "\n".join(model.name[:200] for model in found[:10])
    return f"“{wanted[:100]}” could be any of these; name one in full:\n{names}"

"""The text that Pi gets for a message."""

from __future__ import annotations

import re

SUMMARY_WORDS = 5
SUMMARY_LENGTH = 40

_NOT_IN_A_TAG = re.compile(r"[\]\[|\x00-\x1f\x7f]+")


def prompt_text(text: str, thread_name: str | None = None, missing: str | None = None) -> str:
    """Return the prompt for a message of the operator.

    @param text: what he wrote, or the caption of what he sent.
    @param thread_name: the name of the worker's Thread, where it has one.
    @param missing: what the message carried beside its text and Pi cannot be given.
    """
    name = _NOT_IN_A_TAG.sub(" ", thread_name or "").strip()
    tag = f"[telegram|thread:{name}]" if name else "[telegram]"
    prompt = f"{tag} {text}"
    return f"{prompt}\n\n[not delivered: {missing}]" if missing else prompt


def summary(prompt: str) -> str:
    """Return the first words of a prompt, for a line that must tell it from others."""
    plain = re.sub(r"\A\[telegram[^\]\n]*\] ", "", prompt)
    words = plain.split()
    text = " ".join(words[:SUMMARY_WORDS])
    cut = len(words) > SUMMARY_WORDS or len(text) > SUMMARY_LENGTH
    return text[:SUMMARY_LENGTH].rstrip() + ("…" if cut else "")

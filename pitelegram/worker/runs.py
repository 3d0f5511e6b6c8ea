"""Which handed prompts Pi has taken up, and what it said meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from pitelegram.bridge.turn import Turn
from pitelegram.pi.sessions import is_prompt
from pitelegram.store.rows import InboxRow


@attrs.define(eq=False)
class Handed:
    """A prompt that was given to Pi and is not settled.

    @ivar answered: Pi answered the command that carried it.
    @ivar seen: Pi reported it as a message of the conversation: it is part of a run.
    """

    row: InboxRow
    rpc_id: str
    run_id: str
    answered: bool = False
    seen: bool = False


@attrs.define(eq=False)
class Run:
    """One run of Pi, from its first sign to C{agent_settled}.

    @ivar run_id: names its answer when no prompt of ours is part of it.
    @ivar strangers: messages of the user that match no prompt of ours.
    @ivar comments: how many were said before the answer.
    """

    run_id: str
    turn: Turn = attrs.field(factory=Turn)
    strangers: int = 0
    comments: int = 0


def answer_key(handed: Sequence[tuple[str, str]]) -> str:
    """Return what names the answer of prompts that settle together.

    The same rule holds after a crash, so that an answer submitted twice has one id.

    @param handed: C{(rpc_id, run_id)} of each, oldest first; not empty.
    """
    for rpc_id, run_id in handed:
        if rpc_id == run_id:
            return run_id
    return handed[0][0]


class RunBook:
    """Keeps the open run and the prompts that were handed."""

    def __init__(self) -> None:
        self.open: list[Handed] = []
        self.run: Run | None = None

    def begin(self, run_id: str) -> Run:
        """Return the open run; one is opened when there is none."""
        if self.run is None:
            self.run = Run(run_id)
        return self.run

    def user_message(self, text: str, run_id: str) -> None:
        """Pi took a message: ours when an unseen prompt has that text, the oldest first."""
        run = self.begin(run_id)
        run.turn.user()
        for handed in self.open:
            if not handed.seen and _same(handed.row.prompt, text):
                handed.seen = True
                return
        run.strangers += 1

    def assistant_message(self, message: dict[str, Any], run_id: str) -> tuple[Run, list[str]]:
        """Pi finished a message of the model; returns what is said before the answer, see L{Turn}."""
        run = self.begin(run_id)
        return run, run.turn.assistant(message)

    def close(self) -> tuple[Run | None, list[Handed]]:
        """Pi settled: return the run and its prompts; the others stay open."""
        run, self.run = self.run, None
        done = [handed for handed in self.open if handed.seen]
        self.open = [handed for handed in self.open if not handed.seen]
        return run, done

    def unseen(self) -> list[Handed]:
        """Prompts that Pi has answered for, and that are part of no run yet."""
        return [handed for handed in self.open if handed.answered and not handed.seen]

    def take(self, chosen: Sequence[Handed]) -> None:
        """These are not open any more."""
        self.open = [handed for handed in self.open if handed not in chosen]

    def by_texts(self, texts: Sequence[str]) -> list[Handed]:
        """Return the open prompts that Pi gave back from its queue, and close them."""
        result: list[Handed] = []
        for text in texts:
            for handed in self.open:
                if handed not in result and not handed.seen and _same(handed.row.prompt, text):
                    result.append(handed)
                    break
        self.take(result)
        return result


def _same(prompt: str | None, text: str) -> bool:
    """Whether Pi's text is that prompt."""
    return prompt is not None and is_prompt(text, prompt)

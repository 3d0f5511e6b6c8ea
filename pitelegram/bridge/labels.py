"""Words that a worker says in its Thread, in one place."""

from __future__ import annotations

from collections.abc import Sequence

from pitelegram.bridge.prompt import summary

SEND_AGAIN = "🔁 Send again"
AGAIN_PREFIX = "again:"

COMMANDS = {
    "start": "the menu",
    "status": "what this worker is doing, and what the session has used",
    "abort": "end what Pi is doing; the queue goes on",
    "stop": "end what Pi is doing and clear the queue",
    "next": "end what Pi is doing and go on with the next prompt",
    "continue": "have Pi go on, before everything that waits",
    "queue": "what waits; move or skip it",
    "model": "the model; /model NAME switches at once",
    "thinking": "the thinking level; /thinking LEVEL sets it",
    "compact": "compact the session's context; with instructions behind it",
    "new": "a new session",
    "sessions": "go back to an earlier session",
    "settings": "what is shown and told here",
    "name": "give this Thread a name, or its own title again",
}
"""Every command of a worker's Thread, with its help."""

ELSEWHERE = ("attach", "daemon", "detach", "workers")
"""Commands that are the daemon's."""
MOST_TEMPLATES = 30
"""Templates that an answer names."""

AGAIN_SENT = "Queued again."
AGAIN_GONE = "That was sent again already."
STALE_BUTTON = "This button does nothing any more."
HANDLED = "✅ An extension of Pi took that message; there is no answer."
PI_LOST_IT = "⚠️ Pi took this prompt and never answered it"
ABORT_IS_LATE = "⏳ The abort is on its way; Pi has not reacted yet."
ABORT_UNANSWERED = (
    "⚠️ Pi does not react to the abort. Waiting prompts are kept. "
    "To go on, restart this worker: /daemon in the 🛠 Control Thread, 👷 Workers, ♻️ Restart."
)
NOT_CLEARED = " ⚠️ The queue could not be cleared: the worker's store cannot be written now."
QUEUE_EMPTY = "Queue is empty."
NEXT_TURN = "Dispatching next queued turn."
CONTINUE = "▶️ continue"
CONTINUING = "Queued continue prompt."
NOBODY_KNOWS = "⚠️ Nobody can tell whether Pi finished this prompt"


def command_list(with_name: bool = True) -> str:
    """Return one line per command.

    @param with_name: the leader can name Threads.
    """
    return "\n".join(
        f"/{name} – {words}" for name, words in COMMANDS.items() if with_name or name != "name"
    )


def unknown_command(name: str, with_name: bool = True, templates: Sequence[str] = ()) -> str:
    """Return the answer to a command that does not exist here; see L{command_list}.

    @param templates: Pi's templates, as commands.
    """
    commands = command_list(with_name)
    shown = "".join(f"\n🧩 /{each}" for each in templates[:MOST_TEMPLATES])
    if len(templates) > MOST_TEMPLATES:
        shown += f"\n… and {len(templates) - MOST_TEMPLATES} more"
    hint = f"\n/{name} works in the 🛠 Control Thread." if name in ELSEWHERE else ""
    return f"There is no /{name} here, and Pi did not get it. There are:\n{commands}{shown}{hint}"


def unasked_command(name: str) -> str:
    """Return the answer to a command that may be one of Pi's, which cannot be asked now."""
    return (
        f"Pi does not answer now, so /{name} was not given to it, and is not kept. "
        "Send it again when Pi answers; /status says how it is."
    )


def pictures_left_out(prompt: str, missing: int) -> str:
    """Return the notice about pictures that Pi could not be shown."""
    many = f"{missing} pictures" if missing > 1 else "a picture"
    return f"📎 Pi was not shown {many} of “{summary(prompt)}”: too large, or gone from the disk."


def uncertain(prompt: str, why: str = NOBODY_KNOWS) -> str:
    """Return the notice about a prompt whose fate is unknown."""
    return f"{why}: “{summary(prompt)}”\nIt was not repeated."


def refused(reason: str) -> str:
    """Return the notice about a Pi that takes no prompt now."""
    return (
        f"⚠️ Pi does not take prompts now: {reason}\nThey wait here. The next message tries again."
    )


def aborted(run: bool, compaction: bool = False, cleared: int | None = None) -> str:
    """Return the answer to C{/abort}, or with C{cleared} to C{/stop}."""
    text = "Aborted current turn." if run else "No active turn."
    if compaction and not run:
        text = "Compaction aborted."
    return text + cleared_turns(cleared)


def cleared_turns(cleared: int | None) -> str:
    """Return how many waiting prompts were dropped, as the end of an answer."""
    if cleared is None:
        return ""
    return f" Cleared {cleared} queued turn{'' if cleared == 1 else 's'}."

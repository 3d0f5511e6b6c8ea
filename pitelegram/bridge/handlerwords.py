"""What the operator is told about handlers of what he sends."""

from __future__ import annotations

from pitelegram.bridge.interfaces import FileItem

NOBODY_LISTENS = (
    "🎤 Nobody here can write down voice messages: set inboundHandlers in telegram.json. "
    "Pi got the recording as a file."
)

SHOWN = 1000
"""Characters of a recording's words that are shown back."""

_NAMES = {
    "animation": "animation",
    "audio": "audio file",
    "document": "document",
    "photo": "photo",
    "sticker": "sticker",
    "text": "text",
    "video": "video",
    "video_note": "video message",
    "voice": "voice message",
}


def is_recording(file: FileItem) -> bool:
    """Whether somebody may speak in that file."""
    return file.kind in ("voice", "audio") or file.mime.lower().startswith("audio/")


def skipped(problem: str) -> str:
    """An entry of the setting is of no use."""
    return f"⚙️ A handler in telegram.json is skipped. {problem}"


def unusable(problem: str, kind: str) -> str:
    """An entry cannot be run with this message."""
    return f"⚠️ A handler cannot run for the {_name(kind)}. {problem}. {_instead(kind)}"


def failed(label: str, kind: str, reason: str, step: str = "") -> str:
    """A handler failed.

    @param step: the part of it that did, if that is called otherwise.
    """
    where = f" ({step})" if step and step != label else ""
    return f"⚠️ {label}{where} failed on the {_name(kind)}: {reason}. {_instead(kind)}"


def heard(text: str) -> str:
    """What a transcriber understood, for the operator to see."""
    return "🎤 " + (text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")


def nothing_heard(kind: str) -> str:
    """Whoever writes recordings down found no words in this one."""
    return f"🎤 No words were found in the {_name(kind)}. {_instead(kind)}"


def _name(kind: str) -> str:
    return _NAMES.get(kind, "file")


def _instead(kind: str) -> str:
    return "Pi got the text as it is." if kind == "text" else "Pi got the file."

"""What of an answer is spoken, and how that is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from pitelegram.bridge.answer import deliveries
from pitelegram.bridge.cutting import shorten
from pitelegram.bridge.outgoing import Answer, IOutboundHandlers, Speech
from pitelegram.bridge.rendering.records import RenderOptions
from pitelegram.bridge.rendering.render import render
from pitelegram.errors import UnsafeFile, VoiceFailed
from pitelegram.kernel.deferring import deferred
from pitelegram.store.outfiles import OutFiles

FAILED = "⚠️ Failed to send voice reply: every voice synthesis provider and outbound voice handler failed."
LARGEST = 50 * 1024 * 1024
"""Bytes of a recording."""

LONGEST_CAPTION = 1024
"""UTF-16 units of a caption."""

_WORDS = RenderOptions(rendering="html", file_after=0)


@attrs.frozen(kw_only=True)
class Spoken:
    """What became of an answer's speech.

    @ivar answer: what is left to be shown.
    @ivar calls: one for each recording, in order.
    @ivar notices: deliveries that say what did not work.
    """

    answer: Answer
    calls: tuple[dict[str, Any], ...] = ()
    notices: tuple[dict[str, Any], ...] = ()


class Speaker:
    """Has answers spoken: those that ask for it, and whole ones where that was promised to Pi.

    @param in_thread: C{(function, *arguments) -> Deferred}, for copying files.
    @param transcripts: whether the words stand below a recording.
    @param recording: shows in the Thread that something is being recorded.
    """

    _log = Logger()

    def __init__(
        self,
        handlers: IOutboundHandlers,
        files: OutFiles,
        in_thread: Callable[..., Deferred[Any]],
        transcripts: Callable[[], bool],
        recording: Callable[[], None],
    ) -> None:
        self._handlers = handlers
        self._files = files
        self._in_thread = in_thread
        self._transcripts = transcripts
        self._recording = recording

    def wanted(self, raw: dict[str, Any], answer: Answer) -> bool:
        """Whether anything of an answer is to be spoken."""
        return bool(answer.speeches) or self._automatic(raw, answer)

    @deferred
    async def speak(self, raw: dict[str, Any], answer: Answer) -> Spoken:
        """Speak what is to be; where that fails the words are shown, and it is said."""
        automatic = not answer.speeches
        speeches = (Speech(text=words_of(answer.markdown)),) if automatic else answer.speeches
        calls = []
        self._recording()
        for number, speech in enumerate(speeches, 1):
            owner = f"{raw['delivery_id'][:100]}.voice{number}"
            try:
                calls.append(await self._call(speech, owner))
            except CancelledError:
                raise
            except (VoiceFailed, UnsafeFile, OSError) as error:
                self._log.warn("a reply was not spoken: {why}", why=str(error))
                created = int(raw["delivery"]["createdAtMs"])
                said = deliveries(
                    f"{raw['delivery_id'][:100]}.unspoken", "notice", [_plain(FAILED)], created
                )
                return Spoken(answer=answer, notices=tuple(said))
        left = attrs.evolve(answer, markdown="" if automatic else answer.markdown, speeches=())
        return Spoken(answer=left, calls=tuple(calls))

    def _automatic(self, raw: dict[str, Any], answer: Answer) -> bool:
        spoken = bool(raw["delivery"].get("spoken")) and not raw["delivery"].get("silent")
        return spoken and bool(words_of(answer.markdown)) and self._handlers.takes_voice()

    async def _call(self, speech: Speech, owner: str) -> dict[str, Any]:
        recording = await self._handlers.speak(speech)
        try:
            path = await self._in_thread(self._files.take, recording.path, owner, LARGEST)
        finally:
            self._handlers.discard(recording)
        params: dict[str, Any] = {"voice": "attach://voice"}
        if self._transcripts():
            params["caption"] = shorten(recording.transcript or speech.text, LONGEST_CAPTION)
        file = {"field": "voice", "path": path, "filename": "voice.ogg", "mimeType": "audio/ogg"}
        return {"method": "sendVoice", "params": params, "files": [file]}


def words_of(markdown: str) -> str:
    """Return the words of a Markdown text, for somebody who listens."""
    calls = render(markdown, _WORDS).calls("entities")
    return "\n\n".join(call["params"]["text"] for call in calls).strip()


def _plain(text: str) -> dict[str, Any]:
    return {"method": "sendMessage", "params": {"text": text}}

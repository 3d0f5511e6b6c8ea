"""The chat page: static files, a stream of events, and what a person does there."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

from twisted.internet.interfaces import IPushProducer, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.web.http import Request
from zope.interface import implementer

from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.sandbox.actions import PAGE_ACTIONS, BadArguments, perform
from pitelegram.sandbox.apidoor import close, send_bytes
from pitelegram.sandbox.chat import SandboxChat
from pitelegram.sandbox.guard import refuse
from pitelegram.sandbox.world import Event

SNAPSHOT_MESSAGES = 1000
HEARTBEAT = 15.0
MAX_BODY = 80 * 1024 * 1024
MAX_UNREAD = 8 * 1024 * 1024
_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "blocks.js": "text/javascript; charset=utf-8",
    "format.js": "text/javascript; charset=utf-8",
    "view.js": "text/javascript; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
}

_SOUND = ("audio/ogg", "audio/mpeg", "audio/mp4", "audio/wav", "audio/x-wav")
_SHOWN = {
    "photo": ("image/png", "image/jpeg", "image/gif"),
    "audio": _SOUND,
    "voice": _SOUND,
    "video": ("video/mp4", "video/webm"),
}
"""What the page shows or plays; everything else can only be saved."""


@implementer(IPushProducer)
class _Stream:
    """One page's stream.  A page that does not read is cut off; it gets everything when it is back."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._paused = False
        self._unread = 0

    def send(self, record: bytes) -> None:
        """Write, or end the stream when too much waits already."""
        self._unread = self._unread + len(record) if self._paused else 0
        if self._unread > MAX_UNREAD:
            self.stopProducing()
        else:
            self._request.write(record)

    def pauseProducing(self) -> None:
        """The page does not keep up."""
        self._paused = True

    def resumeProducing(self) -> None:
        """It has read everything."""
        self._paused = False

    def stopProducing(self) -> None:
        """End the stream."""
        close(self._request, abort=True)


class Website:
    """The page of the owner's chat.

    A page gets everything once (C{snapshot}) and each later event; after a lost connection the
    browser comes back by itself and gets everything again.
    """

    def __init__(self, chat: SandboxChat, clock: IReactorTime) -> None:
        self._chat = chat
        self._streams: set[_Stream] = set()
        self._stop_observing: Callable[[], None] | None = None
        self._heartbeat = LoopingCall(self._beat)
        self._heartbeat.clock = clock

    def start(self) -> None:
        """Begin to tell events, and to send heartbeats, by which dead pages are noticed."""
        self._stop_observing = self._chat.world.observe(self._tell)
        self._heartbeat.start(HEARTBEAT, now=False)

    def stop(self) -> None:
        """End every stream."""
        if self._stop_observing is not None:
            self._stop_observing()
            self._heartbeat.stop()
        self._stop_observing = None
        for stream in list(self._streams):
            stream.stopProducing()

    def handle(self, request: Request, name: str) -> None:
        """Answer a request below the page's address."""
        if request.method == b"GET" and (name or "index.html") in _TYPES:
            name = name or "index.html"
            data = files("pitelegram.sandbox").joinpath("page", name).read_bytes()
            send_bytes(request, 200, _TYPES[name], data)
        elif request.method == b"GET" and name == "events":
            self._stream(request)
        elif request.method == b"GET" and name.startswith("media/"):
            self._media(request, name[len("media/") :])
        elif request.method == b"POST" and name == "do":
            self._act(request)
        else:
            refuse(request, 404)

    def snapshot(self) -> dict[str, Any]:
        """Return everything that a page shows."""
        world, chat = self._chat.world, self._chat.chat
        recent = list(chat.messages.values())[-SNAPSHOT_MESSAGES:]
        return {
            "seq": world.seq,
            "bot": world.bot,
            "me": self._chat.owner,
            "topics_enabled": world.topics_enabled,
            "threads": [thread.seen() for thread in self._chat.threads],
            "messages": [world.seen(chat, message) for message in recent],
        }

    def _stream(self, request: Request) -> None:
        request.setHeader("Content-Type", "text/event-stream; charset=utf-8")
        request.setHeader("X-Accel-Buffering", "no")
        stream = _Stream(request)
        self._streams.add(stream)
        request.notifyFinish().addBoth(lambda _: self._streams.discard(stream))
        request.registerProducer(stream, True)
        stream.send(_record("snapshot", self.snapshot()))

    def _tell(self, event: Event) -> None:
        if event.get("chat_id", self._chat.chat.chat_id) != self._chat.chat.chat_id:
            return
        for stream in list(self._streams):
            stream.send(_record("change", event))

    def _beat(self) -> None:
        for stream in list(self._streams):
            stream.send(b": still here\n\n")

    def _media(self, request: Request, file_id: str) -> None:
        file = self._chat.world.files.get(file_id)
        if file is None:
            refuse(request, 404)
            return
        shown = file.mime_type in _SHOWN.get(file.kind, ())
        request.setHeader("Content-Disposition", "inline" if shown else "attachment")
        kind = file.mime_type if shown else "application/octet-stream"
        send_bytes(request, 200, kind, file.data)

    def _act(self, request: Request) -> None:
        kind = (request.getHeader("content-type") or "").partition(";")[0].strip()
        body = request.content.read(MAX_BODY + 1) if request.content else b""
        if kind != "application/json" or len(body) > MAX_BODY:
            refuse(request, 415 if kind != "application/json" else 413)
            return
        send_result(request, self._chat, body, PAGE_ACTIONS)


def send_result(request: Request, chat: SandboxChat, body: bytes, allowed: Any) -> None:
    """Perform the action of a JSON body and answer with its result, or 400 and the reason."""
    try:
        order = loads(body)
        if not isinstance(order, dict):
            raise BadArguments("an action is an object")
        name = str(order.pop("action", ""))
        answer: dict[str, Any] = {"ok": True, "result": perform(chat, name, order, allowed)}
    except ValueError as error:
        reason = str(error) if isinstance(error, BadArguments) else "malformed"
        answer = {"ok": False, "error": reason}
    send_bytes(request, 200 if answer["ok"] else 400, "application/json", dumps(answer))


def _record(kind: str, value: Any) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + dumps(value) + b"\n\n"

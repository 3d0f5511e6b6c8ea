"""A Bot API without a network."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, maybeDeferred, succeed
from twisted.python.failure import Failure
from zope.interface import implementer

from pitelegram.botapi.interfaces import IBotApi, Upload
from pitelegram.errors import CertainlyUnsent, Refusal
from pitelegram.testing.spec import check_call


@attrs.frozen
class Call:
    """One recorded call."""

    method: str
    params: dict[str, Any]
    files: tuple[Upload, ...] = ()
    timeout: float | None = None


@implementer(IBotApi)
class FakeBotApi:
    """Answers from scripts, and sensibly without one; every call is checked against the spec.

    A scripted answer is a value, an exception, a Deferred (which the test fires), or a function of
    the call that returns one of these.

    @ivar calls: every call made, oldest first.
    @ivar topics: titles of the Threads made so far, by C{(chat_id, thread_id)}.
    @ivar me: what C{getMe} answers.
    @ivar connecting: while set, calls never get a connection, and none fails.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.topics: dict[tuple[int, int], str] = {}
        self.me: dict[str, Any] = {
            "id": 4242,
            "is_bot": True,
            "first_name": "Bot",
            "username": "test_bot",
            "has_topics_enabled": True,
        }
        self.closed = False
        self.connecting = False
        self.download_limit = 20_000_000
        self._scripts: dict[str, deque[Any]] = {}
        self._files: dict[str, bytes] = {}
        self._next_id = 100

    def script(self, method: str, *answers: Any) -> None:
        """Append answers for the next calls of a method."""
        self._scripts.setdefault(method, deque()).extend(answers)

    def keep_file(self, file_id: str, content: bytes) -> None:
        """Have a file to download."""
        self._files[file_id] = content

    def made(self, *names: str) -> list[Call]:
        """Return the calls of these methods, or all."""
        return [call for call in self.calls if not names or call.method in names]

    def call(
        self,
        method: str,
        params: dict[str, Any],
        files: Sequence[Upload] = (),
        timeout: float | None = None,
        ready: Callable[[], Deferred[None]] | None = None,
    ) -> Deferred[Any]:
        """Record, check and answer a call; one that is scripted to be unsent has no connection."""
        if self.closed:
            return fail(CertainlyUnsent(method, 0, "the client is closed"))
        params = {name: value for name, value in params.items() if value is not None}
        check_call(method, params, [upload.field for upload in files])
        call = Call(method, params, tuple(files), timeout)
        if self.connecting:
            return Deferred()
        scripts = self._scripts.get(method)
        first = scripts[0] if scripts else None
        unsent = isinstance(first, CertainlyUnsent) and first.code == 0
        if ready is None or unsent:
            return self._answer(call)
        return ready().addCallback(lambda _: self._answer(call))

    def _answer(self, call: Call) -> Deferred[Any]:
        self.calls.append(call)
        method, scripts = call.method, self._scripts.get(call.method)
        if scripts:
            return _as_deferred(scripts.popleft(), call)
        if method == "getUpdates":
            return Deferred()
        return succeed(self._default(call))

    def download(self, file_id: str, destination: Path, limit: int) -> Deferred[int]:
        """Write a kept file."""
        content = self._files.get(file_id)
        if content is None:
            raise AssertionError("no such file in the fake")
        if len(content) > limit:
            text = f"the file is larger than {limit} bytes"
            return fail(Refusal("too-large", text, limit=limit))
        destination.touch(0o600, exist_ok=False)
        destination.write_bytes(content)
        return succeed(len(content))

    def close(self) -> Deferred[None]:
        """Make no more calls."""
        self.closed = True
        return succeed(None)

    def _default(self, call: Call) -> Any:
        method, params = call.method, call.params
        if method == "getMe":
            return dict(self.me)
        if method == "createForumTopic":
            thread = self._mint()
            self.topics[params["chat_id"], thread] = params["name"]
            return {"message_thread_id": thread, "name": params["name"], "icon_color": 7322096}
        if method == "editForumTopic":
            self.topics[params["chat_id"], params["message_thread_id"]] = params.get("name", "")
            return True
        if method == "sendMediaGroup":
            return [self._message(params) for _ in params["media"]]
        if method.startswith("send") and method not in (
            "sendChatAction",
            "sendMessageDraft",
            "sendRichMessageDraft",
        ):
            return self._message(params)
        if method.startswith("editMessage"):
            return {**self._message(params), "message_id": params["message_id"]}
        return True

    def _message(self, params: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {
            "message_id": self._mint(),
            "date": 1_700_000_000,
            "chat": {"id": params["chat_id"], "type": "private"},
            "from": {key: self.me[key] for key in ("id", "is_bot", "first_name", "username")},
        }
        for name, value in (("text", params.get("text")), ("caption", params.get("caption"))):
            if value is not None:
                message[name] = value
        if params.get("message_thread_id") is not None:
            message["message_thread_id"] = params["message_thread_id"]
            message["is_topic_message"] = True
        return message

    def _mint(self) -> int:
        self._next_id += 1
        return self._next_id


def _as_deferred(answer: Any, call: Call) -> Deferred[Any]:
    if isinstance(answer, Deferred):
        return answer
    if isinstance(answer, BaseException):
        return fail(Failure(answer))
    if callable(answer):
        function: Callable[[Call], Any] = answer
        return maybeDeferred(function, call).addCallback(
            lambda given: _as_deferred(given, call) if isinstance(given, BaseException) else given
        )
    return succeed(answer)

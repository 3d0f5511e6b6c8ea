"""Request bodies that know when their last byte has been handed over."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IConsumer
from twisted.internet.task import Cooperator, TaskFinished, TaskStopped
from twisted.web.iweb import IBodyProducer
from zope.interface import implementer

from pitelegram.botapi.interfaces import Upload
from pitelegram.kernel import jsonio

_CHUNK = 64 * 1024


@implementer(IBodyProducer)
class BytesBody:
    """Bytes, written at once.

    @ivar written: whether the last byte was given to the connection.
    """

    def __init__(self, data: bytes, content_type: str) -> None:
        self._data = data
        self.content_type = content_type
        self.length = len(data)
        self.written = False

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        """Write everything."""
        self.written = True
        consumer.write(self._data)
        return succeed(None)

    def pauseProducing(self) -> None:
        """Nothing is left to pause."""

    def resumeProducing(self) -> None:
        """Nothing is left to resume."""

    def stopProducing(self) -> None:
        """Nothing is left to stop."""


@implementer(IBodyProducer)
class MultipartBody:
    """C{multipart/form-data} whose files are read from disk while they are sent.

    @ivar written: whether the last byte was given to the connection.
    @raise OSError: at construction, if a file cannot be opened.
    """

    def __init__(
        self,
        params: dict[str, Any],
        files: Sequence[Upload],
        cooperator: Cooperator,
        open_file: Callable[[Any], BinaryIO] = lambda path: open(path, "rb"),
    ) -> None:
        boundary = secrets.token_hex(16)
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self.written = False
        self._cooperator = cooperator
        self._task: Any = None
        self._pieces: list[bytes | tuple[BinaryIO, int]] = []
        self._files: list[BinaryIO] = []
        head = f"--{boundary}\r\nContent-Disposition: form-data; name="
        for name, value in params.items():
            self._pieces.append(f"{head}{_quoted(name)}\r\n\r\n".encode() + _text(value) + b"\r\n")
        try:
            for upload in files:
                self._add_file(head, upload, open_file)
        except BaseException:
            self.close()
            raise
        self._pieces.append(f"--{boundary}--\r\n".encode())
        self.length = sum(_length(piece) for piece in self._pieces)

    def _add_file(self, head: str, upload: Upload, open_file: Callable[[Any], BinaryIO]) -> None:
        source = open_file(upload.path)
        self._files.append(source)
        size = source.seek(0, 2)
        source.seek(0)
        mime_type = upload.mime_type.replace("\r", "").replace("\n", "")
        self._pieces.append(
            f"{head}{_quoted(upload.field)}; filename={_quoted(upload.filename)}\r\n"
            f"Content-Type: {mime_type}\r\n\r\n".encode()
        )
        self._pieces.append((source, size))
        self._pieces.append(b"\r\n")

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        """Write piece by piece; fires when all is written, fails if a file became shorter."""
        finished: Deferred[None] = Deferred(lambda _: self.stopProducing())
        self._task = self._cooperator.cooperate(self._write_to(consumer))
        self._task.whenDone().addCallbacks(
            lambda _: finished.callback(None),
            lambda failure: None if failure.check(TaskStopped) else finished.errback(failure),
        )
        return finished

    def pauseProducing(self) -> None:
        """Stop writing for now."""
        self._task.pause()

    def resumeProducing(self) -> None:
        """Go on writing."""
        self._task.resume()

    def stopProducing(self) -> None:
        """Write no more."""
        self.close()
        if self._task is not None:
            with suppress(TaskFinished):
                self._task.stop()

    def close(self) -> None:
        """Close the files; safe to call twice."""
        for source in self._files:
            source.close()

    def _write_to(self, consumer: IConsumer) -> Iterator[None]:
        last = len(self._pieces) - 1
        for index, piece in enumerate(self._pieces):
            if isinstance(piece, bytes):
                self.written = index == last
                consumer.write(piece)
                yield
            else:
                yield from self._copy(*piece, consumer)
        self.close()

    @staticmethod
    def _copy(source: BinaryIO, size: int, consumer: IConsumer) -> Iterator[None]:
        while size:
            data = source.read(min(_CHUNK, size))
            if not data:
                raise EOFError("a file became shorter while it was sent")
            size -= len(data)
            consumer.write(data)
            yield


def json_body(params: dict[str, Any]) -> BytesBody:
    """Return the body of a call without files."""
    return BytesBody(jsonio.dumps(params), "application/json")


def _text(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return jsonio.dumps(value)


def _quoted(name: str) -> str:
    clean = name.replace("\r", "").replace("\n", "").replace("\\", "_").replace('"', "%22")
    return '"' + clean.encode("utf-8", "replace").decode() + '"'


def _length(piece: bytes | tuple[BinaryIO, int]) -> int:
    return len(piece) if isinstance(piece, bytes) else piece[1]

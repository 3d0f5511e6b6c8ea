"""The client of the control socket.  It never does a command itself and never repeats one."""

from __future__ import annotations

import http.client
import json
import os
import socket
import stat
from pathlib import Path
from typing import Any

from pitelegram.control.envelope import Envelope, is_legal
from pitelegram.errors import PiTelegramError

READ_TIMEOUT = 10.0

COMMAND_TIMEOUT = 75.0
"""Longer than the daemon's own deadline, after which it answers C{in_progress}."""

ANSWER_LIMIT = 64 * 1024 * 1024


class Unreachable(PiTelegramError):
    """No daemon took the request; nothing was begun."""

    hint = "; is a daemon running? See: pi-telegram status"


class FateUnknown(PiTelegramError):
    """The request may have begun, and no answer proves how it ended."""


class _Connection(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._path))


class ControlClient:
    """Asks one control socket.

    @param path: the socket.
    """

    def __init__(
        self,
        path: Path,
        read_timeout: float = READ_TIMEOUT,
        command_timeout: float = COMMAND_TIMEOUT,
    ) -> None:
        self._path = path
        self._read_timeout = read_timeout
        self._command_timeout = command_timeout

    def get(self, path: str) -> dict[str, Any]:
        """Return a document.

        @raise Unreachable: there is no daemon, or its answer makes no sense.
        """
        connection = self._connect(self._read_timeout)
        try:
            connection.request("GET", path)
            status, value = _answer(connection)
        except (OSError, http.client.HTTPException, ValueError):
            raise Unreachable("the daemon did not answer") from None
        finally:
            connection.close()
        if status != 200 or not isinstance(value, dict):
            raise Unreachable(f"the daemon answered with HTTP status {status}")
        return value

    def command(self, body: bytes, action: str, request_id: str | None) -> Envelope:
        """Send a request once; returns the envelope.

        @raise Unreachable: nothing was sent, or the daemon took it for broken HTTP.
        @raise FateUnknown: it was sent, and what came back proves nothing.
        """
        connection = self._connect(self._command_timeout)
        try:
            connection.request("POST", "/v1/commands", body, {"Content-Type": "application/json"})
            status, value = _answer(connection)
        except TimeoutError:
            raise FateUnknown("the daemon did not answer in time") from None
        except (OSError, http.client.HTTPException, ValueError):
            raise FateUnknown("the daemon's answer was lost") from None
        finally:
            connection.close()
        if 400 <= status < 500:
            raise Unreachable("the daemon could not read the request")
        right = status == 200 and is_legal(value) and _is_about(value, action, request_id)
        if not right:
            raise FateUnknown("the daemon's answer makes no sense")
        return value

    def _connect(self, timeout: float) -> _Connection:
        self._check_endpoint()
        connection = _Connection(self._path, timeout)
        try:
            connection.connect()
        except OSError:
            connection.close()
            raise Unreachable("no daemon listens on the control socket") from None
        return connection

    def _check_endpoint(self) -> None:
        try:
            info = os.lstat(self._path)
        except OSError:
            raise Unreachable("there is no control socket") from None
        if not stat.S_ISSOCK(info.st_mode) or info.st_mode & 0o002:
            raise Unreachable("the control socket is not private; it was not used")
        if info.st_uid not in (os.geteuid(), 0) and not info.st_mode & 0o020:
            raise Unreachable("the control socket belongs to another user; it was not used")


def _is_about(envelope: Envelope, action: str, request_id: str | None) -> bool:
    if envelope["status"] == "invalid_request":
        return envelope["action"] in ("", action)
    return bool(envelope["action"] == action and envelope["request_id"] == request_id)


def _answer(connection: _Connection) -> tuple[int, Any]:
    response = connection.getresponse()
    data = response.read(ANSWER_LIMIT + 1)
    if len(data) > ANSWER_LIMIT:
        raise ValueError("the answer is too large")
    return response.status, json.loads(data)

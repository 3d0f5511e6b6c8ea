"""The bus spoken by hand: sockets and C{struct}, nothing of Twisted and nothing of our bus.

For tests of what a client in another language, or a hostile one, may send.  It blocks; run it in a
thread.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import struct
from typing import Any

PIECE = 65_535


def packed(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """Return a box with these keys and values in this order; nothing is checked."""
    strings = [part for pair in pairs for part in pair]
    return b"".join(struct.pack("!H", len(part)) + part for part in strings) + b"\0\0"


def pieces(name: str, value: Any, size: int = PIECE) -> list[tuple[bytes, bytes]]:
    """Return a JSON value's pairs, cut every C{size} bytes."""
    data = json.dumps(value, ensure_ascii=False).encode()
    cuts = [data[start : start + size] for start in range(0, len(data), size)]
    keys = [name, *(f"{name}.{number}" for number in range(1, len(cuts)))][: len(cuts)]
    return [(key.encode(), cut) for key, cut in zip(keys, cuts, strict=True)]


class Closed(Exception):
    """The other side ended the connection."""


class Refused(Exception):
    """An AMP error; its first argument is the code."""


class RawClient:
    """A blocking AMP client.

    @param path: the leader's socket.
    @ivar asked: commands of the other side that came while an answer was awaited.
    """

    def __init__(self, path: str, timeout: float = 20.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._socket.connect(path)
        self._buffer = b""
        self._tag = 0
        self.asked: list[dict[bytes, bytes]] = []

    def send(self, data: bytes) -> None:
        """Write bytes as they are. @raise Closed: the other side has gone."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Closed(str(error)) from None

    def close(self) -> None:
        """Close at once."""
        self._socket.close()

    def box(self) -> dict[bytes, bytes]:
        """Read one box. @raise Closed: the stream ended."""
        box: dict[bytes, bytes] = {}
        while True:
            key = self._string()
            if not key:
                return box
            box[key] = self._string()

    def is_closed(self) -> bool:
        """Read until the stream ends; False if it stays open for the time limit."""
        try:
            while True:
                self.box()
        except Closed:
            return True
        except TimeoutError:
            return False

    def call(self, command: str, pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
        """Ask and wait for the answer.

        @raise Refused: an error box came.
        @raise Closed: the stream ended first.
        """
        tag = self.ask(command, pairs)
        while True:
            box = self.box()
            if box.get(b"_answer") == tag:
                return box
            if box.get(b"_error") == tag:
                raise Refused(box[b"_error_code"].decode())
            self.asked.append(box)

    def ask(self, command: str, pairs: list[tuple[bytes, bytes]]) -> bytes:
        """Ask without waiting; returns the tag."""
        self._tag += 1
        tag = b"%d" % self._tag
        self.send(packed([(b"_ask", tag), (b"_command", command.encode()), *pairs]))
        return tag

    def answer(self, box: dict[bytes, bytes], pairs: list[tuple[bytes, bytes]]) -> None:
        """Answer a command of the other side."""
        self.send(packed([(b"_answer", box[b"_ask"]), *pairs]))

    def next_asked(self) -> dict[bytes, bytes]:
        """Return the next command of the other side."""
        if self.asked:
            return self.asked.pop(0)
        while True:
            box = self.box()
            if b"_command" in box:
                return box

    def _string(self) -> bytes:
        (length,) = struct.unpack("!H", self._exactly(2))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            try:
                data = self._socket.recv(65_536)
            except ConnectionError as error:
                raise Closed(str(error)) from None
            if not data:
                raise Closed("end of stream")
            self._buffer += data
        result, self._buffer = self._buffer[:count], self._buffer[count:]
        return result

    # --- the contract's handshake and registration -------------------------------------------

    def hello(
        self, credential: str, nonce: bytes, version: int = 1, capabilities: Any = None
    ) -> dict[bytes, bytes]:
        """C{bus.hello}"""
        if capabilities is None:
            capabilities = ["durable-follower-admission-v1"]
        return self.call(
            "bus.hello",
            [
                (b"protocolVersion", b"%d" % version),
                (b"build", b"raw"),
                *pieces("capabilities", capabilities),
                (b"nonce", nonce),
                (b"credential", credential.encode()),
            ],
        )

    def authenticate(self, proof: bytes) -> None:
        """C{bus.authenticate}"""
        self.call("bus.authenticate", [(b"proof", proof)])

    def shake_hands(self, credential: str, secret: bytes) -> dict[bytes, bytes]:
        """The whole handshake; returns the leader's hello."""
        nonce = os.urandom(32)
        hello = self.hello(credential, nonce)
        theirs = hello[b"nonce"]
        expected = hmac.new(secret, b"leader\0" + nonce + theirs, hashlib.sha256).digest()
        assert hello[b"proof"] == expected, "the leader's proof is wrong"
        self.authenticate(hmac.new(secret, b"follower\0" + theirs + nonce, hashlib.sha256).digest())
        return hello

    def register(self, registration: dict[str, Any]) -> dict[str, Any]:
        """C{follower.register}; returns the answered registration."""
        return self.json_of(
            self.call("follower.register", pieces("registration", registration)), "registration"
        )

    @staticmethod
    def json_of(box: dict[bytes, bytes], name: str) -> Any:
        """Join and parse a JSON value."""
        data, number = box[name.encode()], 1
        while (piece := box.get(f"{name}.{number}".encode())) is not None:
            data, number = data + piece, number + 1
        return json.loads(data)

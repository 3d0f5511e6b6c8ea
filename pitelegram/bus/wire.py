"""One AMP connection with guarded responders, deadlines and size limits.

Both sides of the bus are sub-classes: they say which commands they answer.  A responder gets the
parsed values as one dict and returns the answer's values, or a Deferred of them.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, TimeoutError, fail
from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.logger import Logger
from twisted.protocols import amp
from twisted.python.failure import Failure

from pitelegram.bus.bigjson import BrokenPieces, Json
from pitelegram.bus.boxes import BOX_LIMIT, EARLY_LIMIT, BoxReader, BrokenBox
from pitelegram.bus.commands import FATAL, WIRE_ERRORS, BusCommand
from pitelegram.errors import (
    BusBadRequest,
    BusError,
    BusUnauthorized,
    Fenced,
    LinkLost,
    NotLeader,
    Refusal,
)

Values = dict[str, Any]
Responder = Callable[[Values], Any]

_MARGIN = 16 * 1024
"""What keys and lengths of the largest answer take."""

DEADLINE = 30.0
"""Seconds a caller waits for an answer where the contract says nothing else."""


class Wire(amp.BinaryBoxProtocol, amp.BoxDispatcher):
    """AMP with the manners of the wire contract.

    @ivar clock: times the deadlines.
    @ivar trusted: whether the peer has proven itself; sets the size limit.
    @ivar ended: whether this side gave the connection up, or lost it.
    """

    log = Logger()
    transport: Any = None

    def __init__(self, clock: IReactorTime) -> None:
        amp.BoxDispatcher.__init__(self, self)
        amp.BinaryBoxProtocol.__init__(self, self)
        self.clock = clock
        self.trusted = False
        self.ended = False
        self._reader = BoxReader(EARLY_LIMIT)
        self._responders = {
            command.commandName: (command, responder)
            for command, responder in self.responders().items()
        }

    # --- for sub-classes ---------------------------------------------------------------------

    def responders(self) -> dict[type[BusCommand], Responder]:
        """The commands this side answers."""
        raise NotImplementedError

    def admits(self, command: bytes) -> bool:
        """Whether this command may come now; False ends the connection."""
        raise NotImplementedError

    def trust(self) -> None:
        """The peer has proven itself: large boxes may come."""
        self.trusted = True
        self._reader.limit = BOX_LIMIT

    def end(self, reason: str) -> None:
        """Give the connection up now; what was written before is not waited for."""
        if not self.ended:
            self.ended = True
            self.log.warn("bus connection ended: {reason}", reason=reason)
        if self.transport is not None:
            self.transport.abortConnection()

    def hang_up(self) -> None:
        """Close after what was written; nothing more is read."""
        self.ended = True
        if self.transport is not None:
            self.transport.loseConnection()

    # --- calling -----------------------------------------------------------------------------

    def ask(
        self, command: type[BusCommand], values: Values, deadline: float = DEADLINE
    ) -> Deferred[Values]:
        """Send a command; fires with the answer's values.

        @raise LinkLost: the connection ended, or C{deadline} seconds passed without an answer.
        @raise BusError: the peer's error by its code.
        @raise BusBadRequest: the values do not fit into a box; nothing was sent.
        """
        if self.ended or self.transport is None:
            return fail(LinkLost("the bus connection is closed"))
        try:
            asking: Deferred[Values] = self.callRemote(command, **values)
        except Exception as error:
            return fail(error)
        asking.addTimeout(deadline, self.clock)
        asking.addErrback(self._translate)
        return asking

    def _translate(self, failure: Failure) -> None:
        if failure.check(TimeoutError):
            raise LinkLost("the peer did not answer in time")
        if failure.check(CancelledError, BusError):
            failure.raiseException()
        if failure.check(BrokenPieces):
            self.end("an answer has a gap in its pieces")
            raise LinkLost("the peer's answer was broken")
        if failure.check(amp.UnhandledCommand):
            raise BusBadRequest("the peer does not know this command")
        if failure.check(amp.UnknownRemoteError, amp.RemoteAmpError):
            raise BusError("the peer failed inside")
        if failure.check(KeyError, ValueError):
            raise BusBadRequest("the peer's answer is malformed")
        raise LinkLost("the bus connection ended before the answer")

    # --- answering ---------------------------------------------------------------------------

    def locateResponder(self, name: bytes) -> Callable[[amp.AmpBox], Any] | None:
        """Find who answers a command; None makes AMP answer C{UNHANDLED}."""
        found = self._responders.get(name)
        if found is None:
            return None
        command, responder = found
        return lambda box: Deferred.fromCoroutine(self._respond(command, responder, box))

    async def _respond(
        self, command: type[BusCommand], responder: Responder, box: amp.AmpBox
    ) -> amp.AmpBox:
        try:
            values = self._parse(command, box)
            answer = responder(values)
            if isinstance(answer, Deferred):
                answer = await answer
            return self._formatted(command, answer)
        except Refusal as refusal:
            return self._refused(command, refusal)
        except Fenced:
            raise self._declared(NotLeader("this process does not lead any more")) from None
        except BusError as error:
            raise self._declared(error) from None
        except CancelledError:
            raise self._declared(BusError("the command was given up")) from None
        except Exception:
            self.log.failure("{command} failed", command=command.commandName.decode())
            raise self._declared(BusError("the command failed inside; see the log")) from None

    def _parse(self, command: type[BusCommand], box: amp.AmpBox) -> Values:
        try:
            return command.parseArguments(box, self)
        except BrokenPieces:
            self.end("a command has a gap in its pieces")
            raise BusBadRequest("a value has a gap in its pieces") from None
        except (KeyError, ValueError):
            raise BusBadRequest("arguments are missing or malformed") from None

    def _formatted(self, command: type[BusCommand], answer: Values | None) -> amp.AmpBox:
        box = command.makeResponse(answer or {}, self)
        if sum(map(len, box.values())) > BOX_LIMIT - _MARGIN:
            return self._refused(command, Refusal("too-large", "the answer is over 16 MiB"))
        return box

    def _refused(self, command: type[BusCommand], refusal: Refusal) -> amp.AmpBox:
        names = [key.decode() for key, kind in command.response if isinstance(kind, Json)]
        if len(command.response) != 1 or not names:
            raise self._declared(BusBadRequest(str(refusal)))
        return command.makeResponse({names[0]: refusal.as_json()}, self)

    def _declared(self, error: BusError) -> amp.RemoteAmpError:
        code = next(code for kind, code in WIRE_ERRORS.items() if isinstance(error, kind))
        fatal = isinstance(error, FATAL) or not self.trusted
        return amp.RemoteAmpError(code, str(error)[:1000], fatal)

    # --- the stream --------------------------------------------------------------------------

    def sendBox(self, box: amp.AmpBox) -> None:
        """Write a box. @raise BusBadRequest: if it is over the limit."""
        if self.transport is None:
            raise LinkLost("the bus connection is closed")
        self.transport.write(_serialized(box))
        if isinstance(box, amp.QuitBox):
            self.ended = True

    def makeConnection(self, transport: Any) -> None:
        """Begin."""
        self.transport = transport
        self.startReceivingBoxes(self)
        self.connectionMade()

    def dataReceived(self, data: bytes) -> None:
        """Take bytes; what comes after the end of a connection is thrown away."""
        if self.ended:
            return
        try:
            for box in self._reader.feed(data):
                self.ampBoxReceived(box)
                if self.ended:
                    return
        except BrokenBox as error:
            self.end(str(error))

    def ampBoxReceived(self, box: amp.AmpBox) -> None:
        """Dispatch one box; one that is neither command nor awaited answer ends the connection."""
        if amp.COMMAND in box:
            if not self.admits(box[amp.COMMAND]):
                self._turn_away(box)
            else:
                self._commandReceived(box)
            return
        tag = box.get(amp.ANSWER, box.get(amp.ERROR))
        complete = amp.ANSWER in box or (amp.ERROR_CODE in box and amp.ERROR_DESCRIPTION in box)
        if tag not in (self._outstandingRequests or {}) or not complete:
            self.end("an answer to nothing came")
        else:
            # Not AMP's own way: that takes a failure for unhandled, and drops the connection, when
            # the caller looks at its Deferred only later.
            question = self._outstandingRequests.pop(tag)
            question.callback(box if amp.ANSWER in box else _as_failure(box))

    def _turn_away(self, box: amp.AmpBox) -> None:
        if amp.ASK in box:
            refusal = amp.QuitBox()
            refusal[amp.ERROR] = box[amp.ASK]
            refusal[amp.ERROR_CODE] = WIRE_ERRORS[BusUnauthorized]
            refusal[amp.ERROR_DESCRIPTION] = b"prove yourself first"
            self._safeEmit(refusal)
        self.hang_up()

    def unhandledError(self, failure: Failure) -> None:
        """An error that nobody handled: a fault of ours, or a box that could not be written."""
        if isinstance(failure.value, amp.RemoteAmpError):
            # The answer to a command that wanted none.
            if failure.value.fatal:
                self.hang_up()
        elif not failure.check(LinkLost):
            self.log.failure("unhandled on the bus", failure)
            self.end("an internal fault")

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Every waiting caller learns that the outcome is unknown."""
        self.ended = True
        self.transport = None
        self.stopReceivingBoxes(Failure(LinkLost("the bus connection ended before the answer")))


def _as_failure(box: amp.AmpBox) -> Failure:
    code = box[amp.ERROR_CODE]
    kind = amp.PROTOCOL_ERRORS.get(code, amp.RemoteAmpError)
    return Failure(kind(code, box[amp.ERROR_DESCRIPTION].decode("utf-8", "replace")))


def _serialized(box: amp.AmpBox) -> bytes:
    """AMP's own, without sorting the keys, and with the limit of a box."""
    parts: list[bytes] = []
    for key, value in box.items():
        if len(value) > amp.MAX_VALUE_LENGTH:
            raise BusBadRequest("a text over 65,535 bytes cannot be sent")
        parts += (pack("!H", len(key)), key, pack("!H", len(value)), value)
    data = b"".join((*parts, b"\0\0"))
    if len(data) > BOX_LIMIT:
        raise BusBadRequest("a box over 16 MiB cannot be sent")
    return data

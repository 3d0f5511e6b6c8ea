"""The sandbox Telegram as a service, and as a process of its own."""

from __future__ import annotations

import string
from random import Random
from typing import Any
from urllib.parse import unquote

from twisted.application.service import Service
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IListeningPort, IReactorTime
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.http import Request
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site
from twisted.web.server import Request as SiteRequest

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.apidoor import ApiDoor, Call
from pitelegram.sandbox.chat import SandboxChat
from pitelegram.sandbox.faults import Faults
from pitelegram.sandbox.guard import harden, is_addressed, refuse, same
from pitelegram.sandbox.methods import BotApiMethods
from pitelegram.sandbox.remote import Remote
from pitelegram.sandbox.website import Website

LOOPBACK = "127.0.0.1"
MAX_REQUEST = 80 * 1024 * 1024
_ALPHABET = string.ascii_letters + string.digits + "_-"


class _BoundedRequest(SiteRequest):
    """A request whose body cannot fill the disk."""

    _received = 0

    def handleContentChunk(self, data: bytes) -> None:
        """Take a piece of the body, or give the client up."""
        self._received += len(data)
        if self._received > MAX_REQUEST:
            self.channel.transport.abortConnection()
        else:
            super().handleContentChunk(data)


class _QuietSite(Site):
    """A site without an access log: addresses hold secrets."""

    def __init__(self, root: Resource, reactor: Any) -> None:
        super().__init__(root, _BoundedRequest, reactor=reactor, parsePOSTFormSubmission=False)

    def log(self, request: Any) -> None:
        """Log nothing."""


class _Root(Resource):
    """Lets a request in, or answers with nothing."""

    isLeaf = True

    def __init__(self, sandbox: SandboxTelegram, doors: dict[str, Any]) -> None:
        super().__init__()
        self._sandbox = sandbox
        self._doors = doors

    def render(self, request: Request) -> int:
        """Find the door that a request means."""
        harden(request)
        if not is_addressed(request, request.getHost().port):
            return refuse(request, 403)
        path = unquote(request.path.decode("latin-1"))
        first, _, rest = path[1:].partition("/")
        if "api" in self._doors and path.startswith(("/bot", "/file/bot")):
            self._doors["api"].handle(request, path)
        elif "page" in self._doors and same(first, self._sandbox.page_token) and "/" in path[1:]:
            self._doors["page"].handle(request, rest)
        elif "control" in self._doors and first == "control":
            self._doors["control"].handle(request, rest)
        else:
            return refuse(request, 404)
        return NOT_DONE_YET


class SandboxTelegram(Service):
    """A local Telegram with one bot and one owner, on the loopback interface only.

    @param reactor: listens.
    @param clock: gives dates, ages and time-outs.
    @param random: source of all ids and secrets; a C{SystemRandom} wherever others can connect.
    @param port: of the Bot API and the chat page; 0 picks a free one, which is kept from then on.
    @param control: whether there is a control API, on a port of its own.
    @param token: bot token; None makes one.
    @ivar chat: the world and what people do in it.
    @ivar faults: what goes wrong with calls.
    """

    name = "sandbox"

    def __init__(
        self,
        reactor: Any,
        clock: IReactorTime,
        random: Random,
        port: int = 0,
        token: str | None = None,
        control: bool = False,
    ) -> None:
        self._reactor = reactor
        self._random = random
        self._port_number = port
        self.chat = SandboxChat(clock, random)
        self.faults = Faults()
        self.methods = BotApiMethods(self.chat.world, clock)
        if token is None:
            token = self._new_token()
        else:
            self.chat.world.bot["id"] = int(token.partition(":")[0])
        self.page_token = self._word(32)
        self._door = ApiDoor(self.methods, self.faults, clock, token)
        self._website = Website(self.chat, clock)
        self._remote: Remote | None = None
        if control:
            self._remote = Remote(self.chat, self._door, self.faults, self, clock, self._word(43))
        self._api_site = self._site({"api": self._door, "page": self._website})
        self._control_site = self._site({"control": self._remote})
        self._listening: IListeningPort | None = None
        self._control_port: IListeningPort | None = None

    # --- addresses ----------------------------------------------------------------------------

    @property
    def token(self) -> str:
        """The bot token that is valid now."""
        return self._door.token

    @property
    def api_root(self) -> str:
        """C{http://127.0.0.1:PORT}, the root of the Bot API."""
        return f"http://{LOOPBACK}:{self._port_number}"

    @property
    def page_url(self) -> str:
        """The address of the chat page, with its secret."""
        return f"{self.api_root}/{self.page_token}/"

    @property
    def calls(self) -> list[Call]:
        """The latest Bot API calls, oldest first."""
        return list(self._door.calls)

    def addresses(self) -> dict[str, Any]:
        """Return everything that another process needs."""
        about: dict[str, Any] = {
            "api_root": self.api_root,
            "token": self.token,
            "page_url": self.page_url,
            "owner_id": self.chat.owner["id"],
            "bot_username": self.chat.world.bot["username"],
        }
        if self._remote is not None and self._control_port is not None:
            port = self._control_port.getHost().port
            about["control_root"] = f"http://{LOOPBACK}:{port}/control/"
            about["control_token"] = self._remote.token
        return about

    # --- life ---------------------------------------------------------------------------------

    def startService(self) -> None:
        """Listen; the addresses are known when this returns."""
        super().startService()
        self.go_online()
        if self._remote is not None:
            self._remote.start()
            self._control_port = self._reactor.listenTCP(0, self._control_site, interface=LOOPBACK)
        self._website.start()

    @deferred
    async def stopService(self) -> None:
        """Drop every connection and stop listening."""
        super().stopService()
        self._website.stop()
        self.methods.poller.stop()
        if self._remote is not None:
            self._remote.stop()
        port, self._control_port = self._control_port, None
        await self.go_offline()
        if port is not None:
            _abort_all(self._control_site)
            await maybeDeferred(port.stopListening)

    def go_offline(self) -> Deferred[None]:
        """Refuse new connections and drop those of bot and page; fires when nothing listens."""
        port, self._listening = self._listening, None
        _abort_all(self._api_site)
        return (
            maybeDeferred(port.stopListening) if port is not None else maybeDeferred(lambda: None)
        )

    def go_online(self) -> None:
        """Listen (again) on the same port."""
        if self._listening is None:
            self._listening = self._reactor.listenTCP(
                self._port_number, self._api_site, interface=LOOPBACK
            )
            self._port_number = self._listening.getHost().port

    def revoke_token(self) -> str:
        """Make the bot's token invalid; return the one that is valid instead."""
        self._door.revoke(self._new_token())
        return self.token

    # --- parts --------------------------------------------------------------------------------

    def _site(self, doors: dict[str, Any]) -> WrappingFactory:
        return WrappingFactory(_QuietSite(_Root(self, doors), self._reactor))

    def _new_token(self) -> str:
        return f"{self.chat.world.bot['id']}:{self._word(35)}"

    def _word(self, length: int) -> str:
        return "".join(self._random.choice(_ALPHABET) for _ in range(length))


def _abort_all(factory: WrappingFactory) -> None:
    wrapper: ProtocolWrapper
    for wrapper in list(factory.protocols):
        wrapper.transport.abortConnection()


if __name__ == "__main__":
    from pitelegram.sandbox.process import main

    main()

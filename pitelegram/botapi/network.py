"""How connections are made: address family, proxies, TLS."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.web.client import URI, BrowserLikePolicyForHTTPS
from twisted.web.iweb import IAgentEndpointFactory, IPolicyForHTTPS
from zope.interface import implementer

from pitelegram.botapi.classify import SetupFailed
from pitelegram.botapi.families import FAMILIES, FamilyReactor
from pitelegram.botapi.handshake import Dialogue, ProxyEndpoint, SecureEndpoint, Write
from pitelegram.errors import ConfigError

CONNECT_TIMEOUT = 10.0


@attrs.frozen(kw_only=True)
class Proxy:
    """A proxy; its password is in no C{repr}."""

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str | None = attrs.field(default=None, repr=False)


def parse_proxy(url: str) -> Proxy:
    """Read C{http://[user[:password]@]host[:port]} or C{socks5://…}.

    @raise ConfigError: for anything else; the message does not repeat the value.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("the proxy address is malformed") from None
    if parts.scheme not in ("http", "socks5", "socks5h"):
        raise ConfigError("the proxy must begin with http:// or socks5://")
    if not parts.hostname or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigError("the proxy must be http://HOST:PORT or socks5://HOST:PORT")
    scheme = "http" if parts.scheme == "http" else "socks5"
    return Proxy(
        scheme=scheme,
        host=parts.hostname,
        port=port or (8080 if scheme == "http" else 1080),
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
    )


@implementer(IAgentEndpointFactory)
class Network:
    """Makes the endpoint for a URI.

    @param reactor: also resolves names, unless a proxy does.
    @param proxy: as for L{parse_proxy}, or None.
    @param family: C{auto}, C{ipv4} or C{ipv6}.  C{auto} avoids a family whose connections were made
        but never finished TLS, for as long as the other one has an address.
    @param policy: what is trusted for TLS; the system's roots unless given.
    @param connect_timeout: seconds for a TCP connection, for a proxy's dialogue (twice that) and
        for a TLS handshake.
    @raise ConfigError: for a malformed proxy or family.
    """

    def __init__(
        self,
        reactor: Any,
        proxy: str | None = None,
        family: str = "auto",
        policy: IPolicyForHTTPS | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        if family not in FAMILIES:
            raise ConfigError("the network family must be auto, ipv4 or ipv6")
        self._reactor = reactor
        self._proxy = None if proxy is None else parse_proxy(proxy)
        self._policy = policy
        self._limit = connect_timeout
        self._resolving = FamilyReactor(reactor, family)
        self._made: dict[tuple[Any, ...], IStreamClientEndpoint] = {}

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """Return the endpoint: TCP or a tunnel through the proxy, and TLS above it for https.

        It is asked for with every request, even where a connection is kept; the same one is given
        for the same server until another address family is avoided.
        """
        key = (uri.scheme, uri.host, uri.port, self._resolving.avoided)
        if key not in self._made:
            self._made[key] = self._make(uri)
        return self._made[key]

    def _make(self, uri: URI) -> IStreamClientEndpoint:
        host = uri.host.decode("ascii")
        endpoint = self._reach(host, uri.port)
        if uri.scheme == b"http":
            return endpoint
        if self._policy is None:
            self._policy = BrowserLikePolicyForHTTPS()
        creator = self._policy.creatorForNetloc(uri.host, uri.port)
        stalled = self._resolving.avoid
        return SecureEndpoint(self._reactor, endpoint, creator, self._limit, stalled)

    def _reach(self, host: str, port: int) -> IStreamClientEndpoint:
        if self._proxy is None:
            return HostnameEndpoint(self._resolving, host, port, timeout=self._limit)
        proxy = self._proxy
        base = HostnameEndpoint(self._resolving, proxy.host, proxy.port, timeout=self._limit)
        dialogue: Callable[[Write], Dialogue]
        if proxy.scheme == "http":
            dialogue = connect_dialogue(proxy, host, port)
        else:
            dialogue = socks5_dialogue(proxy, host, port)
        return ProxyEndpoint(self._reactor, base, dialogue, 2 * self._limit)


def connect_dialogue(proxy: Proxy, host: str, port: int) -> Callable[[Write], Dialogue]:
    """Return the C{CONNECT} dialogue; the target's name is looked up by the proxy."""
    name = f"[{host}]" if ":" in host else host
    lines = [f"CONNECT {name}:{port} HTTP/1.1", f"Host: {name}:{port}"]
    if proxy.user is not None:
        pair = f"{proxy.user}:{proxy.password or ''}".encode()
        lines.append("Proxy-Authorization: Basic " + base64.b64encode(pair).decode())
    request = ("\r\n".join(lines) + "\r\n\r\n").encode()

    def talk(write: Write) -> Dialogue:
        write(request)
        head = yield b"\r\n\r\n"
        words = head.split(b"\r\n", 1)[0].split(b" ", 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise SetupFailed("the proxy does not speak HTTP")
        if words[1] == b"407":
            raise SetupFailed("the proxy wants another user name or password")
        if not words[1].startswith(b"2"):
            raise SetupFailed(f"the proxy refused the connection (HTTP {int(words[1][:3])})")

    return talk


def socks5_dialogue(proxy: Proxy, host: str, port: int) -> Callable[[Write], Dialogue]:
    """Return the SOCKS5 dialogue (RFC 1928, RFC 1929); the proxy looks the target's name up."""

    def talk(write: Write) -> Dialogue:
        write(b"\x05\x01\x00" if proxy.user is None else b"\x05\x02\x00\x02")
        version, method = yield 2
        if version != 5:
            raise SetupFailed("the proxy does not speak SOCKS5")
        if method == 2 and proxy.user is not None:
            write(_credentials(proxy))
            _, status = yield 2
            if status != 0:
                raise SetupFailed("the proxy wants another user name or password")
        elif method != 0:
            raise SetupFailed("the proxy wants a user name and a password")
        write(b"\x05\x01\x00" + _socks_address(host) + port.to_bytes(2, "big"))
        _, reply, _, kind = yield 4
        if reply != 0:
            raise SetupFailed(f"the proxy refused the connection (SOCKS5 reply {reply})")
        if kind == 3:
            (length,) = yield 1
        else:
            length = 16 if kind == 4 else 4
        yield length + 2

    return talk


def _credentials(proxy: Proxy) -> bytes:
    user = (proxy.user or "").encode()[:255]
    password = (proxy.password or "").encode()[:255]
    return b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password


def _socks_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("ascii")[:255]
        return b"\x03" + bytes([len(name)]) + name
    return (b"\x01" if address.version == 4 else b"\x04") + address.packed

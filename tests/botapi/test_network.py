"""Proxies, TLS and address families, over loopback."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import CancelledError, maybeDeferred
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.interfaces import IHostnameResolver
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.ssl import PrivateCertificate, trustRootFromCertificates
from twisted.internet.task import deferLater
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase
from twisted.web.client import URI, BrowserLikePolicyForHTTPS
from zope.interface import implementer

from pitelegram.botapi.client import BotApi
from pitelegram.botapi.families import FamilyReactor
from pitelegram.botapi.network import Network, parse_proxy
from pitelegram.errors import CertainlyUnsent, ConfigError
from pitelegram.testing.botserver import ScriptedServer, hang, result

TOKEN = "123456:AAsecretsecretsecret"


def certificate(name: str) -> PrivateCertificate:
    """Return a certificate for a name, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime(2024, 1, 1)
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return PrivateCertificate.loadPEM(pem + signed.public_bytes(serialization.Encoding.PEM))


class Pipe(Protocol):
    """The proxy's side towards the target."""

    def __init__(self, client: Proxying) -> None:
        self._client = client

    def dataReceived(self, data: bytes) -> None:
        """Pass on."""
        self._client.transport.write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Pass on."""
        self._client.transport.loseConnection()


class Proxying(Protocol):
    """One client of a proxy: C{talk} is called with what came until it returns the answer."""

    target: Any = None

    def __init__(self, proxy: FakeProxy) -> None:
        self._proxy = proxy
        self._held = b""

    def connectionMade(self) -> None:
        """Count it."""
        self._proxy.clients.append(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Close the other side."""
        if self.target is not None:
            self.target.transport.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        """Talk, then pass on."""
        self._proxy.seen += data
        if self.target is not None:
            self.target.transport.write(data)
            return
        self._held += data
        reply, done = self._proxy.talk(self._held)
        if reply and not done:
            self._held = b""
            self.transport.write(reply)
        if done:
            self._connect(reply)

    def _connect(self, reply: bytes) -> None:
        def connected(pipe: Any) -> None:
            self.target = pipe
            self.transport.write(reply)

        endpoint = TCP4ClientEndpoint(self._proxy.reactor, "127.0.0.1", self._proxy.target)
        endpoint.connect(Factory.forProtocol(lambda: Pipe(self))).addCallback(connected)


class FakeProxy:
    """A proxy; C{talk(bytes)} gives C{(reply, done)}."""

    def __init__(self, reactor: Any, target: int, talk: Callable[[bytes], tuple[bytes, bool]]):
        self.reactor = reactor
        self.target = target
        self.talk = talk
        self.seen = b""
        self.clients: list[Proxying] = []
        self.listening = reactor.listenTCP(
            0, Factory.forProtocol(lambda: Proxying(self)), interface="127.0.0.1"
        )
        self.port = self.listening.getHost().port

    async def stop(self) -> None:
        """Close everything."""
        for client in self.clients:
            client.transport.abortConnection()
        await maybeDeferred(self.listening.stopListening)


def connect_talk(status: str = "200 OK", rest: bytes = b"") -> Callable[[bytes], Any]:
    """Answer a CONNECT."""

    def talk(held: bytes) -> tuple[bytes, bool]:
        if b"\r\n\r\n" not in held:
            return b"", False
        answer = f"HTTP/1.1 {status}\r\nVia: x\r\n\r\n".encode() + rest
        return answer, status.startswith("2")

    return talk


class NetworkCase(TestCase):
    """A TLS server, and a client that trusts it."""

    def setUp(self) -> None:
        """Listen."""
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.server = ScriptedServer(reactor)
        self.certificate = certificate("localhost")
        self.listening = reactor.listenSSL(
            0, self.server.factory(), self.certificate.options(), interface="127.0.0.1"
        )
        self.port = self.listening.getHost().port
        self.policy = BrowserLikePolicyForHTTPS(trustRootFromCertificates([self.certificate]))
        self.clients: list[BotApi] = []
        self.proxies: list[FakeProxy] = []
        self.addCleanup(self._stop)

    async def _stop(self) -> None:
        for api in self.clients:
            await api.close()
        for proxy in self.proxies:
            await proxy.stop()
        await self.server.stop()
        await maybeDeferred(self.listening.stopListening)
        while self.server.live:
            await deferLater(self.reactor, 0.001)

    def api(self, proxy: str | None = None, host: str = "localhost", **options: Any) -> BotApi:
        """Return a client."""
        options.setdefault("policy", self.policy)
        endpoints = Network(self.reactor, proxy, **options)
        root = f"https://{host}:{self.port}"
        self.clients.append(BotApi(TOKEN, root, self.reactor, endpoints=endpoints))
        return self.clients[-1]

    def proxy(self, talk: Callable[[bytes], Any]) -> FakeProxy:
        """Return a proxy to the server."""
        self.proxies.append(FakeProxy(self.reactor, self.port, talk))
        return self.proxies[-1]

    async def unsent(self, api: BotApi, **options: Any) -> str:
        """Call, be certain that nothing was sent, and return why."""
        params = {"chat_id": 1, "text": "x"}
        call = api.call("sendMessage", params, **options)
        error = await self.assertFailure(call, CertainlyUnsent)
        self.assertEqual(self.server.requests, [])
        self.assertNotIn("AAsecret", str(error) + repr(error))
        return error.description


class TlsTests(NetworkCase):
    """TLS."""

    async def test_works(self) -> None:
        """A trusted server is spoken to, over a kept connection."""
        self.server.reply(result(1), result(2))
        api = self.api()
        self.assertEqual(await api.call("getMe", {}), 1)
        self.assertEqual(await api.call("getMe", {}), 2)
        self.assertEqual(self.server.connections, 1)

    async def test_untrusted(self) -> None:
        """An unknown certificate is certainly unsent, and named."""
        reason = await self.unsent(self.api(policy=None))
        self.assertIn("certificate verify failed", reason)

    async def test_other_name(self) -> None:
        """So is a certificate for another name."""
        self.assertIn("another name", await self.unsent(self.api(host="127.0.0.1")))

    async def test_not_tls(self) -> None:
        """So is a server that does not speak TLS."""
        plain = ScriptedServer(self.reactor)
        plain.listen()
        self.addCleanup(plain.stop)
        self.port = plain.port
        self.assertIn("TLS", await self._against_plain(plain))

    async def _against_plain(self, plain: ScriptedServer) -> str:
        api = self.api()
        call = api.call("getMe", {})
        while not plain.live:
            await deferLater(self.reactor, 0.001)
        for connection in list(plain.live):
            connection.transport.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        error = await self.assertFailure(call, CertainlyUnsent)
        return error.description

    async def test_stalled_handshake(self) -> None:
        """A handshake that stalls is certainly unsent, within the call's own deadline."""
        plain = ScriptedServer(self.reactor)
        plain.listen()
        self.addCleanup(plain.stop)
        self.port = plain.port
        self.assertIn("in time", await self.unsent(self.api(), timeout=0.1))

    async def test_cancel_while_connecting(self) -> None:
        """A cancelled call is cancelled, even inside the handshake."""
        plain = ScriptedServer(self.reactor)
        plain.listen()
        self.addCleanup(plain.stop)
        self.port = plain.port
        call = self.api().call("getMe", {})
        while not plain.live:
            await deferLater(self.reactor, 0.001)
        call.cancel()
        await self.assertFailure(call, CancelledError)

    async def test_cancel_poll(self) -> None:
        """An open poll over TLS is cancelled at once, and its connection ends."""
        self.server.reply(hang)
        call = self.api().call("getUpdates", {"timeout": 25})
        while not self.server.requests:
            await deferLater(self.reactor, 0.001)
        call.cancel()
        await self.assertFailure(call, CancelledError)
        while self.server.live:
            await deferLater(self.reactor, 0.001)
        self.assertEqual(len(self.server.requests), 1)


class ConnectTests(NetworkCase):
    """HTTP proxies."""

    async def test_tunnel(self) -> None:
        """The proxy sees the target's name and credentials, never the token."""
        self.server.reply(result(1), result(2))
        proxy = self.proxy(connect_talk())
        api = self.api(f"http://us%40er:p%3Ass@127.0.0.1:{proxy.port}")
        self.assertEqual(await api.call("getMe", {}), 1)
        self.assertEqual(await api.call("getMe", {}), 2)
        head = proxy.seen.split(b"\r\n\r\n")[0]
        self.assertTrue(head.startswith(f"CONNECT localhost:{self.port} HTTP/1.1".encode()))
        self.assertIn(base64.b64encode(b"us@er:p:ss"), head)
        self.assertNotIn(b"AAsecret", proxy.seen)
        self.assertEqual(len(proxy.clients), 1)

    async def test_refusals(self) -> None:
        """A refusal of the proxy is certainly unsent; 407 is named as a setting."""
        proxy = self.proxy(connect_talk("403 Forbidden"))
        self.assertIn("HTTP 403", await self.unsent(self.api(f"http://127.0.0.1:{proxy.port}")))
        proxy.talk = connect_talk("407 Proxy Authentication Required")
        self.assertIn("password", await self.unsent(self.api(f"http://127.0.0.1:{proxy.port}")))
        proxy.talk = lambda held: (b"SSH-2.0 hello\r\n\r\n", False)
        self.assertIn("HTTP", await self.unsent(self.api(f"http://127.0.0.1:{proxy.port}")))

    async def test_endless_answer(self) -> None:
        """An answer without an end is cut off."""
        proxy = self.proxy(lambda held: (b"x" * 20_000, False))
        self.assertIn("too long", await self.unsent(self.api(f"http://127.0.0.1:{proxy.port}")))

    async def test_silent(self) -> None:
        """A silent proxy ends with the call's deadline, unsent."""
        proxy = self.proxy(lambda held: (b"", False))
        api = self.api(f"http://127.0.0.1:{proxy.port}")
        self.assertIn("in time", await self.unsent(api, timeout=0.1))

    async def test_silent_limit(self) -> None:
        """It has a limit of its own too."""
        proxy = self.proxy(lambda held: (b"", False))
        api = self.api(f"http://127.0.0.1:{proxy.port}", connect_timeout=0.05)
        self.assertIn("in time", await self.unsent(api, timeout=5))

    async def test_nobody(self) -> None:
        """A proxy that is not there is certainly unsent."""
        proxy = self.proxy(connect_talk())
        await proxy.stop()
        self.assertIn("refused", await self.unsent(self.api(f"http://127.0.0.1:{proxy.port}")))


class Socks:
    """The server side of SOCKS5."""

    def __init__(self, method: int = 0, login: int = 0, reply: int = 0, kind: int = 1) -> None:
        self.method, self.login, self.reply, self.kind = method, login, reply, kind
        self.step = 0
        self.said: list[bytes] = []

    def __call__(self, held: bytes) -> tuple[bytes, bool]:
        """Answer one message."""
        self.said.append(held)
        self.step += 1
        if self.step == 1:
            return bytes([5, self.method]), False
        if self.step == 2 and self.method == 2:
            return bytes([1, self.login]), False
        bound = {1: b"\0" * 4, 3: b"\x03abc", 4: b"\0" * 16}[self.kind]
        answer = bytes([5, self.reply, 0, self.kind]) + bound + b"\0\0"
        return answer, self.reply == 0


class SocksTests(NetworkCase):
    """SOCKS5 proxies."""

    async def _through(self, socks: Socks, login: str = "") -> bytes:
        self.server.reply(result(1))
        proxy = self.proxy(socks)
        api = self.api(f"socks5://{login}127.0.0.1:{proxy.port}")
        self.assertEqual(await api.call("getMe", {}), 1)
        self.assertNotIn(b"AAsecret", proxy.seen)
        return socks.said[-1]

    async def test_name_goes_to_the_proxy(self) -> None:
        """The target's name is not looked up here; every form of answer is understood."""
        for kind in (1, 3, 4):
            said = await self._through(Socks(kind=kind))
            port = self.port.to_bytes(2, "big")
            self.assertEqual(said, b"\x05\x01\x00\x03\x09localhost" + port)

    async def test_login(self) -> None:
        """User name and password are given when asked for."""
        socks = Socks(method=2)
        await self._through(socks, "me:pass@")
        self.assertEqual(socks.said[:2], [b"\x05\x02\x00\x02", b"\x01\x02me\x04pass"])

    async def test_refusals(self) -> None:
        """Every refusal is certainly unsent."""
        for socks, login, word in (
            (Socks(method=2), "", "user name"),
            (Socks(method=255), "me:x@", "user name"),
            (Socks(method=2, login=1), "me:x@", "another user name"),
            (Socks(reply=5), "", "reply 5"),
        ):
            proxy = self.proxy(socks)
            api = self.api(f"socks5://{login}127.0.0.1:{proxy.port}")
            self.assertIn(word, await self.unsent(api))


class SettingTests(SynchronousTestCase):
    """Settings."""

    def test_proxy(self) -> None:
        """Schemes, ports and credentials are read."""
        proxy = parse_proxy("socks5://u:p%2F@proxy.example:9000/")
        self.assertEqual(
            (proxy.scheme, proxy.host, proxy.port, proxy.user, proxy.password),
            ("socks5", "proxy.example", 9000, "u", "p/"),
        )
        self.assertNotIn("p/", repr(proxy))
        self.assertEqual(parse_proxy("http://[::1]").host, "::1")
        self.assertEqual(parse_proxy("http://a").port, 8080)

    def test_bad_proxies(self) -> None:
        """A malformed one is a usage error that does not repeat the password."""
        for url in (
            "ftp://u:secret@h",
            "u:secret@h:1",
            "http://",
            "http://u:secret@h:x",
            "http://h/p",
        ):
            error = self.assertRaises(ConfigError, parse_proxy, url)
            self.assertNotIn("secret", str(error))
        self.assertRaises(ConfigError, Network, None, family="ipv5")


@implementer(IHostnameResolver)
class Resolver:
    """Knows two addresses of everything."""

    def resolveHostName(self, receiver, name, port=0, types=None, semantics="TCP"):
        """Resolve."""
        receiver.resolutionBegan(None)
        for address in (IPv6Address("TCP", "::1", port), IPv4Address("TCP", "127.0.0.1", port)):
            if types is None or type(address) in types:
                receiver.addressResolved(address)
        receiver.resolutionComplete()


class Receiver:
    """Collects addresses."""

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.complete = False

    def resolutionBegan(self, resolution: Any) -> None:
        """Begin."""

    def addressResolved(self, address: Any) -> None:
        """Collect."""
        self.hosts.append(address.host)

    def resolutionComplete(self) -> None:
        """End."""
        self.complete = True


class FamilyTests(SynchronousTestCase):
    """Address families."""

    class _Reactor:
        nameResolver = Resolver()

    def resolved(self, reactor: FamilyReactor) -> list[str]:
        """Resolve through it."""
        receiver = Receiver()
        reactor.nameResolver.resolveHostName(receiver, "x", 1)
        self.assertTrue(receiver.complete)
        return receiver.hosts

    def test_families(self) -> None:
        """A fixed family has only its addresses."""
        for family, hosts in (
            ("auto", ["::1", "127.0.0.1"]),
            ("ipv4", ["127.0.0.1"]),
            ("ipv6", ["::1"]),
        ):
            self.assertEqual(self.resolved(FamilyReactor(self._Reactor(), family)), hosts)

    def test_stall(self) -> None:
        """A family that stalled is avoided until the other one stalls."""
        reactor = FamilyReactor(self._Reactor(), "auto")
        reactor.avoid(IPv6Address("TCP", "::1", 1))
        self.assertEqual(self.resolved(reactor), ["127.0.0.1"])
        reactor.avoid(IPv4Address("TCP", "127.0.0.1", 1))
        self.assertEqual(self.resolved(reactor), ["::1"])

    def test_endpoint_is_kept(self) -> None:
        """The same server has the same endpoint, with the resolver that holds now."""
        network = Network(self._Reactor())
        first, other = (
            URI.fromBytes(f"http://{host}:80/x".encode()) for host in ("a.test", "b.test")
        )
        kept = network.endpointForURI(first)
        self.assertIs(network.endpointForURI(first), kept)
        self.assertIsNot(network.endpointForURI(other), kept)
        network._resolving.avoid(IPv6Address("TCP", "::1", 1))
        self.assertIsNot(network.endpointForURI(first), kept)

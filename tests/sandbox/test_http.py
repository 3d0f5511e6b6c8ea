"""HTTP: how parameters come in, and who gets nothing at all."""

from __future__ import annotations

import io
import re
import socket
from typing import Any

from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import loads
from pitelegram.sandbox.errors import ApiError
from pitelegram.sandbox.forms import read_multipart
from tests.sandbox.wire import WireTestCase

SECRET_WORDS = re.compile(rb"telegram|twisted|sandbox|python|html", re.I)


class TransportTests(WireTestCase):
    """The four ways to give parameters, and the HTTP side of answers."""

    @deferred
    async def test_four_ways(self) -> None:
        """Query, form, JSON and multipart mean the same."""
        params = {"chat_id": str(self.owner), "text": "a b"}
        for options in (
            {"params": params},
            {"data": params},
            {"json": params},
            {"files": {"x": ("a.txt", io.BytesIO(b"x"))}, "data": params},
        ):
            response = await self.http.post(self.url("sendMessage"), **options)
            self.assertEqual((await response.json())["result"]["text"], "a b")

    @deferred
    async def test_upload(self) -> None:
        """A multipart file arrives byte by byte, with its name and type."""
        data = bytes(range(256)) * 300 + b"\r\n--not the boundary\r\n"
        response = await self.http.post(
            self.url("sendDocument"),
            data={"chat_id": str(self.owner)},
            files={"document": ('a"b.bin', io.BytesIO(data))},
        )
        document = (await response.json())["result"]["document"]
        link = (await self.call("getFile", file_id=document["file_id"]))["result"]
        url = f"{self.sandbox.api_root}/file/bot{self.sandbox.token}/{link['file_path']}"
        response = await self.http.get(url)
        self.assertEqual(await response.content(), data)

    @deferred
    async def test_status_equals_code(self) -> None:
        """A refusal's HTTP status is its error_code."""
        response = await self.http.post(self.url("sendMessage"), json={"chat_id": 1, "text": "x"})
        self.assertEqual((response.code, (await response.json())["error_code"]), (400, 400))
        response = await self.http.post(self.url("nonsense"))
        self.assertEqual(response.code, 404)

    @deferred
    async def test_method_as_parameter(self) -> None:
        """An empty method in the path is taken from the parameters."""
        response = await self.http.get(self.url(""), params={"method": "getMe"})
        self.assertTrue((await response.json())["ok"])

    @deferred
    async def test_other_verbs(self) -> None:
        """Only GET and POST."""
        for verb in ("PUT", "DELETE", "OPTIONS"):
            response = await self.http.request(verb, self.url("getMe"))
            self.assertEqual(response.code, 501)
            self.assertIsNone(response.headers.getRawHeaders("Access-Control-Allow-Origin"))

    @deferred
    async def test_bodies_that_are_no_objects(self) -> None:
        """A JSON body must be an object."""
        for body in (b"[1]", b"{", b'"x"', b"\xff"):
            response = await self.http.post(
                self.url("getMe"), data=body, headers={"Content-Type": "application/json"}
            )
            self.assertEqual(response.code, 400, body)

    @deferred
    async def test_tokens(self) -> None:
        """A well-formed wrong token is 401, a malformed one 404; downloads too."""
        number = self.sandbox.token.partition(":")[0]
        for token, code in (
            (f"{number}:{'x' * 35}", 401),
            (f"{number}:{'x' * 34}", 404),
            ("", 404),
            (f"٣:{'x' * 35}", 404),
        ):
            for path in (f"/bot{token}/getMe", f"/file/bot{token}/documents/file_0"):
                response = await self.http.get(self.sandbox.api_root + path)
                self.assertEqual(response.code, code, path)
        self.assertTrue(re.fullmatch(r"\d+:[A-Za-z0-9_-]{35}", self.sandbox.token))

    @deferred
    async def test_displaced_poller_over_http(self) -> None:
        """The first waiting poll is answered with 409."""
        first = self.call("getUpdates", offset=0, timeout=25)
        while not self.sandbox.methods.poller.waiting:
            await self.call("getMe")
        second = self.call("getUpdates", offset=1, timeout=25)
        self.assertEqual((await first)["error_code"], 409)
        self.sandbox.chat.user_sends("/x")
        self.assertEqual(len((await second)["result"]), 1)


class StrangerTests(WireTestCase):
    """Requests that do not belong here get an empty 403 or 404."""

    def assert_nothing(self, answer: bytes, *codes: int) -> None:
        """Assert that an answer is one of those statuses and tells nothing."""
        head, _, body = answer.partition(b"\r\n\r\n")
        self.assertIn(int(head.split()[1]), codes)
        self.assertEqual(body, b"")
        self.assertFalse(SECRET_WORDS.search(head), head)
        self.assertNotIn(b"access-control", head.lower())

    def paths(self) -> list[str]:
        """Return paths that work for those who may."""
        page = "/" + self.sandbox.page_token
        return [
            f"{page}/",
            f"{page}/app.js",
            f"{page}/events",
            f"/bot{self.sandbox.token}/getMe",
            f"/file/bot{self.sandbox.token}/documents/file_0",
        ]

    @deferred
    async def test_foreign_host(self) -> None:
        """Any Host but the loopback literal with our port: names, other ports, none, two."""
        for path in self.paths():
            for host in (
                "evil.example",
                f"evil.example:{self.port}",
                f"localhost:{self.port}",
                "127.0.0.1",
                "127.0.0.1:1",
                f"127.0.0.1.evil.example:{self.port}",
                "",
            ):
                self.assert_nothing(await self.request(path, f"Host: {host}"), 403, 400)
            both = (f"Host: 127.0.0.1:{self.port}", "Host: evil.example")
            self.assert_nothing(await self.request(path, *both), 403, 400)

    @deferred
    async def test_foreign_origin(self) -> None:
        """Any Origin but our own."""
        own = f"http://127.0.0.1:{self.port}"
        for path in self.paths():
            for origin in ("http://evil.example", "null", "http://127.0.0.1:1", own + ".evil", ""):
                self.assert_nothing(await self.request(path, f"Origin: {origin}"), 403)
        answer = await self.request(self.paths()[0], f"Origin: {own}")
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"))

    @deferred
    async def test_ipv6_literal(self) -> None:
        """[::1] is the other literal."""
        answer = await self.request(self.paths()[3], f"Host: [::1]:{self.port}")
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"))

    @deferred
    async def test_without_the_page_token(self) -> None:
        """No path without the secret shows anything, whatever it tries."""
        token = self.sandbox.page_token
        for path in (
            "/",
            "/index.html",
            "/app.js",
            "/events",
            "/do",
            f"/{token}",
            f"/{token[:-1]}/",
            f"/{token}x/",
            f"/{token.lower()}/app.js",
            f"/{token}/../{token[:-1]}/",
            "/favicon.ico",
            "/control/messages",
            "//",
            "/%00/",
        ):
            self.assert_nothing(await self.request(path), 404)

    @deferred
    async def test_below_the_page(self) -> None:
        """With the secret there are only the page's own files."""
        for name in ("x", "../website.py", "%2e%2e/website.py", "media/x", "style.css/x", "do"):
            answer = await self.request(f"/{self.sandbox.page_token}/{name}")
            self.assert_nothing(answer, 404)

    @deferred
    async def test_headers(self) -> None:
        """The page's answers forbid caching, framing, referrers and foreign content."""
        response = await self.http.get(self.sandbox.page_url)
        headers = response.headers

        def one(name: str) -> str:
            (value,) = headers.getRawHeaders(name)
            return value

        self.assertEqual(one("Referrer-Policy"), "no-referrer")
        self.assertIn("default-src 'self'", one("Content-Security-Policy"))
        self.assertEqual(one("X-Frame-Options"), "DENY")
        self.assertEqual(one("Cache-Control"), "no-store")
        self.assertIsNone(headers.getRawHeaders("Server"))
        self.assertIsNone(headers.getRawHeaders("Access-Control-Allow-Origin"))

    @deferred
    async def test_the_page_may_do_little(self) -> None:
        """JSON only, three actions, and mistakes are told without harm."""
        url = self.sandbox.page_url + "do"
        for body, kind, code in (
            (b'{"action":"send","text":"/x"}', "text/plain", 415),
            (b'{"action":"send","text":"/x"}', "application/json", 200),
            (b'{"action":"stranger","text":"/x"}', "application/json", 400),
            (b'{"action":"block"}', "application/json", 400),
            (b'{"action":"send","text":5}', "application/json", 400),
            (b'{"action":"press","message_id":99,"label":"x"}', "application/json", 400),
            (b"[]", "application/json", 400),
            (b"nonsense", "application/json", 400),
        ):
            response = await self.http.post(url, data=body, headers={"Content-Type": kind})
            self.assertEqual(response.code, code, body)
        self.assertEqual([m.text for m in self.sandbox.chat.messages()], ["/x"])

    @deferred
    async def test_nothing_is_logged(self) -> None:
        """No access log: neither token stands in any log event."""
        from twisted.logger import globalLogPublisher

        seen: list[str] = []
        observer: Any = lambda event: seen.append(repr(event))  # noqa: E731
        globalLogPublisher.addObserver(observer)
        self.addCleanup(globalLogPublisher.removeObserver, observer)
        await self.send()
        await self.request(self.paths()[0])
        text = "\n".join(seen)
        self.assertNotIn(self.sandbox.token, text)
        self.assertNotIn(self.sandbox.page_token, text)

    @deferred
    async def test_garbage_ends_the_connection(self) -> None:
        """Bytes that are no HTTP get a 400 or nothing, and the server lives on."""
        for data in (b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
            answer = await self.raw(data)
            self.assertIn(answer.split(b" ")[1:2], ([], [b"400"], [b"404"], [b"403"], [b"505"]))
        self.assertTrue((await self.send())["ok"])


class EventStreamTests(WireTestCase):
    """What the page is told."""

    @deferred
    async def test_snapshot_then_changes(self) -> None:
        """A stream begins with everything and goes on with each event; it is dropped at the end."""
        self.sandbox.chat.user_sends("/before")
        response = await self.http.get(self.sandbox.page_url + "events")
        pieces: list[bytes] = []
        reading = response.collect(pieces.append)
        self.sandbox.chat.user_sends("/after <b>")
        await self.send("answer")
        self.sandbox.chat.stranger_sends("not for the page")
        await self.sandbox.stopService()
        await self.assertFailure(reading, Exception)
        records = [
            (record.split(b"\n")[0], loads(record.partition(b"data: ")[2]))
            for record in b"".join(pieces).split(b"\n\n")
            if record.startswith(b"event")
        ]
        self.assertEqual(
            [kind for kind, _ in records], [b"event: snapshot"] + [b"event: change"] * 2
        )
        self.assertEqual([m["text"] for m in records[0][1]["messages"]], ["/before"])
        self.assertEqual([r[1]["message"]["text"] for r in records[1:]], ["/after <b>", "answer"])
        self.sandbox.startService()

    @deferred
    async def test_a_page_that_does_not_read_is_cut_off(self) -> None:
        """Events do not pile up without end for a page that stopped reading."""
        connected = self.sandbox.chat.world.seq
        path = f"/{self.sandbox.page_token}/events"
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode()
        lazy = socket.create_connection(("127.0.0.1", self.port))
        self.addCleanup(lazy.close)
        lazy.sendall(head)
        streams = self.sandbox._website._streams
        while not streams:
            await self.call("getMe")
        for _ in range(10_000):
            self.sandbox.chat.user_sends("/" + "x" * 4000)
            if not streams or self.sandbox.chat.world.seq - connected > 8000:
                break
            if self.sandbox.chat.world.seq % 500 == 0:
                await self.call("getMe")
        await self.call("getMe")
        self.assertFalse(streams)


class MultipartTests(WireTestCase):
    """Bodies that lie about themselves."""

    def test_refusals(self) -> None:
        """No boundary, no end, a nameless part, too many parts: refused, not crashed."""
        kind = "multipart/form-data; boundary=x"
        part = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'
        for body, content_type in (
            (part + b"--x--", "multipart/form-data"),
            (part, kind),
            (b"", kind),
            (b"--x\r\n\r\nb\r\n--x--", kind),
            (b'--x\r\nContent-Disposition: form-data; name="a"\r\n--x--', kind),
            (part * 200 + b"--x--", kind),
        ):
            self.assertRaises(ApiError, read_multipart, body, content_type)
        self.assertEqual(read_multipart(part + b"--x--\r\n", kind), ({"a": "b"}, {}))

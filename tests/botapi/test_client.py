"""The client against a server that misbehaves."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from pitelegram.botapi.client import BotApi
from pitelegram.botapi.interfaces import Upload
from pitelegram.botapi.methods import REPEATABLE
from pitelegram.errors import (
    CertainlyUnsent,
    Refusal,
    Refused,
    TelegramError,
    Unauthorized,
    Uncertain,
)
from pitelegram.testing.botserver import (
    ScriptedServer,
    answer,
    hang,
    raw,
    refusal,
    reset,
    result,
)
from pitelegram.testing.spec import methods

TOKEN = "123456:AAsecretsecretsecret"
MESSAGE = {"chat_id": 1, "text": "x"}


class ClientCase(TestCase):
    """A client and a scripted server."""

    def setUp(self) -> None:
        """Listen on loopback."""
        from twisted.internet import reactor

        self.reactor = reactor
        self.server = ScriptedServer(reactor)
        self.refused: list[bool] = []
        self.api = BotApi(
            TOKEN,
            self.server.listen(),
            reactor,
            on_unauthorized=lambda: self.refused.append(True),
        )
        self.addCleanup(self._stop)

    async def _stop(self) -> None:
        await self.api.close()
        await self.server.stop()

    async def turn(self) -> None:
        """Let the reactor work."""
        await deferLater(self.reactor, 0.001)

    async def error(self, method: str = "sendMessage", **options: Any) -> TelegramError:
        """Call and return the error, which must not know the token."""
        params = MESSAGE if method == "sendMessage" else {}
        try:
            await self.api.call(method, params, **options)
        except TelegramError as error:
            self.assert_no_token(error)
            return error
        raise self.failureException("no error")

    def assert_no_token(self, error: BaseException) -> None:
        """Neither text, nor repr, nor traceback, nor chain has the token."""
        shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        link: BaseException | None = error
        while link is not None:
            shown += repr(link) + str(link) + repr(vars(link))
            link = link.__cause__ or link.__context__
        self.assertNotIn("AAsecret", shown)


class AnswerTests(ClientCase):
    """Answers of all kinds."""

    async def test_html_502(self) -> None:
        """A front end's HTML is uncertain."""
        self.server.reply(raw(answer(b"<html>Bad Gateway</html>", "502 Bad Gateway")))
        self.assertIsInstance(await self.error(), Uncertain)

    async def test_garbage(self) -> None:
        """What is not HTTP is uncertain."""
        self.server.reply(raw(b"\x00\x01garbage\r\n\r\n\r\n", close=True))
        self.assertIsInstance(await self.error(), Uncertain)

    async def test_not_an_object(self) -> None:
        """JSON that is no object is uncertain."""
        self.server.reply(*(raw(answer(body)) for body in (b"[]", b"null", b"1", b'"ok"', b"")))
        for _ in range(5):
            self.assertIsInstance(await self.error(), Uncertain)

    async def test_no_result(self) -> None:
        """C{ok} without a result is uncertain."""
        self.server.reply(raw(answer(b'{"ok":true}')), raw(answer(b'{"ok":"yes","result":1}')))
        self.assertIsInstance(await self.error(), Uncertain)
        self.assertIsInstance(await self.error(), Uncertain)

    async def test_cut_body(self) -> None:
        """A body shorter than announced is uncertain, even if it is whole JSON."""
        whole = b'{"ok":true,"result":1}'
        self.server.reply(
            raw(answer(whole[:10], claim=len(whole)), close=True),
            raw(answer(whole, claim=len(whole) + 1), close=True),
        )
        self.assertIsInstance(await self.error(), Uncertain)
        self.assertIsInstance(await self.error(), Uncertain)

    async def test_body_without_length(self) -> None:
        """Without a length, the body is whole when it is JSON with a result."""
        head = b"HTTP/1.1 200 OK\r\n\r\n"
        self.server.reply(
            raw(head + b'{"ok":true,"result":5}', close=True),
            raw(head + b'{"ok":true,"resu', close=True),
        )
        self.assertEqual(await self.api.call("sendMessage", MESSAGE), 5)
        self.assertIsInstance(await self.error(), Uncertain)

    async def test_reset(self) -> None:
        """A connection that is cut after the request leaves it uncertain."""
        self.server.reply(reset)
        self.assertIsInstance(await self.error(), Uncertain)

    async def test_hang_before_headers(self) -> None:
        """Our own deadline ends a silent call, and its connection."""
        self.server.reply(hang)
        self.assertIsInstance(await self.error(timeout=0.05), Uncertain)
        self.server.reply(result(1))
        self.assertEqual(await self.api.call("sendMessage", MESSAGE), 1)
        self.assertEqual(self.server.connections, 2)

    async def test_hang_in_body(self) -> None:
        """The same deadline covers the body."""
        self.server.reply(raw(answer(b'{"ok":', claim=100)))
        error = await self.error(timeout=0.1)
        self.assertIsInstance(error, Uncertain)
        self.assertIn("in time", error.description)

    async def test_huge_body(self) -> None:
        """A body over the cap is cut off."""
        piece = b"x" * 1024 * 1024
        self.server.reply(raw(answer(piece * 9)))
        error = await self.error()
        self.assertIsInstance(error, Uncertain)
        self.assertIn("larger", error.description)

    async def test_redirect_is_not_followed(self) -> None:
        """A redirect would give the token away."""
        self.server.reply(raw(answer(b"", "302 Found", "Location: http://127.0.0.1:9/\r\n")))
        self.assertIsInstance(await self.error(), Uncertain)
        self.assertEqual(len(self.server.requests), 1)

    async def test_429_header(self) -> None:
        """C{Retry-After} counts when the body does not say, JSON or not."""
        body = b'{"ok":false,"error_code":429,"description":"Too Many Requests"}'
        for content in (body, b"<html>"):
            self.server.reply(raw(answer(content, "429 X", "Retry-After: 9\r\n")))
            error = await self.error()
            self.assertIsInstance(error, CertainlyUnsent)
            self.assertEqual(error.retry_after, 9.0)

    async def test_not_modified(self) -> None:
        """An edit that changes nothing is a success."""
        self.server.reply(
            refusal(400, "Bad Request: message is not modified: specified new message content"),
            refusal(400, "Bad Request: TOPIC_NOT_MODIFIED"),
        )
        edit = {"chat_id": 1, "message_id": 2, "text": "x"}
        self.assertIs(await self.api.call("editMessageText", edit), True)
        topic = {"chat_id": 1, "message_thread_id": 2, "name": "A"}
        self.assertIs(await self.api.call("editForumTopic", topic), True)

    async def test_token_in_description(self) -> None:
        """A description that repeats the token loses it."""
        self.server.reply(refusal(404, f"no such path /bot{TOKEN}/x"))
        self.assertIsInstance(await self.error(), Refused)

    async def test_repr(self) -> None:
        """The client's own C{repr} tells nothing."""
        self.assertNotIn("AA", repr(self.api))


class ConnectionTests(ClientCase):
    """Which connection a call uses, and what its loss means."""

    async def test_kept_alive(self) -> None:
        """Calls share a connection; polling has another."""
        self.server.reply(*(result(1) for _ in range(4)))
        for _ in range(3):
            await self.api.call("sendMessage", MESSAGE)
        await self.api.call("getUpdates", {"timeout": 0})
        self.assertEqual([r.connection for r in self.server.requests], [1, 1, 1, 2])

    async def test_nobody_listens(self) -> None:
        """A refused connection is certainly unsent."""
        await self.server.stop()
        self.assertIsInstance(await self.error(), CertainlyUnsent)

    async def test_unknown_host(self) -> None:
        """So is a name that does not exist."""
        api = BotApi(TOKEN, "http://no-such-host.invalid", self.reactor)
        error = await self.assertFailure(api.call("sendMessage", MESSAGE), CertainlyUnsent)
        self.assertIn("looked up", error.description)
        self.assert_no_token(error)

    async def test_dead_connection_repeatable(self) -> None:
        """A repeatable method is tried once more when its kept-alive connection was dead."""
        self.server.reply(result(1), reset, result(2))
        await self.api.call("getMe", {})
        self.assertEqual(await self.api.call("getMe", {}), 2)
        self.assertEqual([r.connection for r in self.server.requests], [1, 1, 2])

    async def test_ready(self) -> None:
        """Whoever wants to know is told when there is a connection; nothing is written before."""
        self.server.reply(result({"message_id": 1}), result({"message_id": 2}))
        for _ in range(2):  # a new connection, then the one that was kept
            told: list[Deferred[None]] = []
            before = len(self.server.requests)

            def ready(told: list[Deferred[None]] = told) -> Deferred[None]:
                told.append(Deferred())
                return told[-1]

            calling = self.api.call("sendMessage", MESSAGE, ready=ready)
            while not told:
                await self.turn()
            for _ in range(20):
                await self.turn()
            self.assertEqual(len(self.server.requests), before)
            told[0].callback(None)
            await calling
            self.assertEqual((len(told), len(self.server.requests)), (1, before + 1))

    async def test_not_ready(self) -> None:
        """If that fails nothing is sent, and the next call works."""
        error = await self.error(ready=lambda: fail(ValueError("the disk")))
        self.assertIsInstance(error, CertainlyUnsent)
        self.assertEqual(self.server.requests, [])
        self.server.reply(result({"message_id": 1}))
        await self.api.call("sendMessage", MESSAGE)

    async def test_no_connection_is_never_ready(self) -> None:
        """Without a connection nobody is told that there is one."""
        await self.server.stop()
        told: list[bool] = []

        def ready() -> Deferred[None]:
            told.append(True)
            return succeed(None)

        self.assertIsInstance(await self.error(ready=ready), CertainlyUnsent)
        self.assertEqual(told, [])

    async def test_dead_connection_once(self) -> None:
        """It is tried only once more."""
        self.server.reply(result(1), reset, reset, result(2))
        await self.api.call("getMe", {})
        self.assertIsInstance(await self.error("getMe"), Uncertain)
        self.assertEqual(len(self.server.requests), 3)

    async def test_dead_connection_send(self) -> None:
        """A send is never repeated."""
        self.server.reply(result(1), reset)
        await self.api.call("sendMessage", MESSAGE)
        self.assertIsInstance(await self.error(), Uncertain)
        self.assertEqual(len(self.server.requests), 2)

    async def test_cancel_poll(self) -> None:
        """Cancelling a poll ends it at once, and closes its connection."""
        self.server.reply(hang)
        poll = self.api.call("getUpdates", {"timeout": 25})
        while not self.server.requests:
            await self.turn()
        before = self.reactor.seconds()
        poll.cancel()
        await self.assertFailure(poll, CancelledError)
        self.assertLess(self.reactor.seconds() - before, 0.5)
        while self.server.live:
            await self.turn()
        self.assertEqual(self.server.live, set())

    async def test_cancel_in_body(self) -> None:
        """Cancelling while the body comes is a cancellation too."""
        self.server.reply(raw(answer(b"[", claim=100)))
        poll = self.api.call("getUpdates", {"timeout": 25})
        while not self.server.requests:
            await self.turn()
        for _ in range(5):
            await self.turn()
        poll.cancel()
        await self.assertFailure(poll, CancelledError)

    async def test_close_cancels(self) -> None:
        """Closing cancels what runs."""
        running = self.api.call("sendMessage", MESSAGE)
        while not self.server.requests:
            await self.turn()
        await self.api.close()
        await self.assertFailure(running, CancelledError)

    async def test_stalled_poll_gets_a_new_connection(self) -> None:
        """After a stalled poll the next one uses a new connection; a send in flight goes on."""
        self.server.reply(hang, hang, result([]))
        send = self.api.call("sendMessage", MESSAGE)
        while not self.server.requests:
            await self.turn()
        self.assertIsInstance(await self.error("getUpdates", timeout=0.05), Uncertain)
        self.assertEqual(await self.api.call("getUpdates", {"timeout": 0}), [])
        self.assertEqual([r.connection for r in self.server.requests], [1, 2, 3])
        self.assertFalse(send.called)
        send.cancel()
        await self.assertFailure(send, CancelledError)


class UnauthorizedTests(ClientCase):
    """A refused token."""

    async def test_three_in_a_row(self) -> None:
        """The third 401 in a row, on whatever methods, ends all calls."""
        self.server.reply(*(refusal(401, "Unauthorized") for _ in range(4)))
        for method in ("getMe", "sendMessage", "getUpdates"):
            self.assertEqual(self.refused, [])
            self.assertIsInstance(await self.error(method), Unauthorized)
        self.assertEqual(self.refused, [True])
        self.assertIsInstance(await self.error(), Unauthorized)
        self.assertEqual(len(self.server.requests), 3)

    async def test_not_in_a_row(self) -> None:
        """Another complete answer between them begins the count anew."""
        no, yes = refusal(401, "Unauthorized"), result(1)
        self.server.reply(no, no, yes, no, no, refusal(400, "no"), no, no)
        for _ in range(8):
            await self.api.call("sendMessage", MESSAGE).addErrback(lambda f: f.trap(Refused))
        self.assertEqual(self.refused, [])


class FileTests(ClientCase):
    """Files both ways."""

    def _upload(self, content: bytes, name: str = 'a"b\nü.txt') -> Upload:
        path = Path(self.mktemp())
        path.write_bytes(content)
        return Upload(field="document", path=path, filename=name, mime_type="text/plain")

    async def test_multipart(self) -> None:
        """A file is streamed after the parameters, with a length, in UTF-8."""
        self.server.reply(result(True))
        content = bytes(range(256)) * 1024
        params = {"chat_id": 1, "caption": "hé", "reply_parameters": {"message_id": 3}}
        await self.api.call("sendDocument", params, [self._upload(content)])
        request = self.server.requests[0]
        self.assertEqual(int(request.headers["content-length"]), len(request.body))
        boundary = request.headers["content-type"].split("boundary=")[1].encode()
        parts = request.body.split(b"--" + boundary)[1:-1]
        self.assertEqual(len(parts), 4)
        self.assertTrue(parts[0].endswith(b"\r\n\r\n1\r\n"))
        self.assertTrue(parts[1].endswith("\r\n\r\nhé\r\n".encode()))
        self.assertTrue(parts[2].endswith(b'{"message_id":3}\r\n'))
        head, body = parts[3].split(b"\r\n\r\n", 1)
        self.assertIn('name="document"; filename="a%22bü.txt"'.encode(), head)
        self.assertEqual(body[:-2], content)

    async def test_file_is_gone(self) -> None:
        """A file that cannot be read is refused, without a request."""
        upload = self._upload(b"x")
        upload.path.unlink()
        error = await self.error(files=[upload])
        self.assertIsInstance(error, Refused)
        self.assertEqual(self.server.requests, [])

    async def test_unfinished_upload(self) -> None:
        """A request whose last byte never left is certainly unsent."""
        upload = self._upload(b"x" * 50_000_000)
        self.server.on_request = lambda request: None
        call = self.api.call("sendDocument", {"chat_id": 1}, [upload])
        while not self.server.live:
            await self.turn()
        for connection in list(self.server.live):
            connection.transport.abortConnection()
        error = await self.assertFailure(call, CertainlyUnsent)
        self.assert_no_token(error)

    async def test_download_cut(self) -> None:
        """A file shorter than announced leaves nothing behind."""
        self.server.reply(result({"file_path": "a"}), raw(answer(b"abc", claim=10), close=True))
        destination = Path(self.mktemp())
        error = await self.assertFailure(self.api.download("f", destination, 100), Uncertain)
        self.assert_no_token(error)
        self.assertFalse(destination.exists())

    async def test_download_announced_too_large(self) -> None:
        """A size over the limit needs no download; Telegram's own limit reads the same."""
        self.server.reply(
            result({"file_path": "a", "file_size": 101}),
            refusal(400, "Bad Request: file is too big"),
        )
        for _ in range(2):
            destination = Path(self.mktemp())
            error = await self.assertFailure(self.api.download("f", destination, 100), Refusal)
            self.assertEqual(error.code, "too-large")
        self.assertEqual(len(self.server.requests), 2)

    async def test_download_refused(self) -> None:
        """An error instead of the file is that error, and not the file."""
        body = b'{"ok":false,"error_code":404,"description":"Not Found"}'
        self.server.reply(result({"file_path": "a"}), raw(answer(body, "404 Not Found")))
        destination = Path(self.mktemp())
        await self.assertFailure(self.api.download("f", destination, 100), Refused)
        self.assertFalse(destination.exists())

    async def test_download_existing(self) -> None:
        """A file that is there already is neither overwritten nor removed."""
        destination = Path(self.mktemp())
        destination.write_text("mine")
        self.server.reply(result({"file_path": "a"}), raw(answer(b"abc")))
        await self.assertFailure(self.api.download("f", destination, 100), Refusal)
        self.assertEqual(destination.read_text(), "mine")

    async def test_download_too_big_for_the_server(self) -> None:
        """The limit that is told then is the public server's, which refused it."""
        self.server.reply(refusal(400, "Bad Request: file is too big"))
        destination = Path(self.mktemp())
        limit = self.api.download_limit
        error = await self.assertFailure(self.api.download("f", destination, limit), Refusal)
        self.assertEqual((limit, error.fields["limit"]), (2_000_000_000, 20_000_000))

    async def test_download_from_this_machine(self) -> None:
        """A local server names its file, which is copied within the limit."""
        source = Path(self.mktemp()).absolute()
        source.write_bytes(b"x" * 3_000_000)
        destination = Path(self.mktemp())
        self.server.reply(*[result({"file_path": str(source)}) for _ in range(2)])
        self.assertEqual(await self.api.download("f", destination, 3_000_000), 3_000_000)
        self.assertEqual(destination.read_bytes(), source.read_bytes())
        self.assertEqual(destination.stat().st_mode & 0o777, 0o600)
        destination.unlink()
        error = await self.assertFailure(self.api.download("f", destination, 2_999_999), Refusal)
        self.assertEqual((error.code, destination.exists()), ("too-large", False))

    async def test_download_that_this_machine_has_not(self) -> None:
        """What cannot be read is refused, links and directories among it."""
        link = Path(self.mktemp()).absolute()
        link.symlink_to(__file__)
        for path in (link, link.parent, link.with_name("none")):
            self.server.reply(result({"file_path": str(path)}))
            destination = Path(self.mktemp())
            error = await self.assertFailure(self.api.download("f", destination, 100), Refused)
            self.assertIn("cannot be read on this machine", str(error))
            self.assertFalse(destination.exists())

    def test_limits(self) -> None:
        """Telegram's own server gives out 20 MB, every other one what it has."""
        for root, limit in (
            ("https://api.telegram.org", 20_000_000),
            ("https://API.telegram.org/", 20_000_000),
            ("http://127.0.0.1:8081", 2_000_000_000),
        ):
            self.assertEqual(BotApi(TOKEN, root, self.reactor).download_limit, limit)

    async def test_download_empty(self) -> None:
        """An empty file is a file."""
        self.server.reply(result({"file_path": "a"}), raw(answer(b"")))
        destination = Path(self.mktemp())
        self.assertEqual(await self.api.download("f", destination, 100), 0)
        self.assertEqual(destination.read_bytes(), b"")


class MethodTests(TestCase):
    """Facts about methods."""

    def test_repeatable_exist(self) -> None:
        """Every repeatable method is in the Bot API, and none of them posts."""
        self.assertEqual(REPEATABLE - set(methods()), set())
        posts = {m for m in REPEATABLE if m.startswith(("send", "copy", "forward", "create"))}
        self.assertEqual(posts, {"sendChatAction", "sendMessageDraft", "sendRichMessageDraft"})

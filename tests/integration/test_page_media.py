"""Media, files and reactions on the chat page, in a real browser; the bot speaks through its door."""

from __future__ import annotations

import struct
import wave
from io import BytesIO
from pathlib import Path
from typing import Any

import treq
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool

from pitelegram.kernel.deferring import deferred
from pitelegram.testing.browser import Browser, ChatPage, is_installed
from pitelegram.testing.telegram import Sandbox
from tests.sandbox.test_files import png


def sound() -> bytes:
    """Return a second of silence."""
    file = BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes(struct.pack("<h", 0) * 8000)
    return file.getvalue()


class MediaTests(TestCase):
    """What the bot sends is seen, what a person sends arrives."""

    timeout = 60
    if not is_installed():
        skip = "chromium and chromium-driver are not installed"

    @deferred
    async def setUp(self) -> None:
        """Start sandbox and browser, and open the page in a Thread."""
        from twisted.internet import reactor

        self.sandbox = Sandbox(reactor)
        self.sandbox.startService()
        self.addCleanup(self.sandbox.stopService)
        pool = HTTPConnectionPool(reactor, persistent=False)
        self.http = treq.client.HTTPClient(Agent(reactor, pool=pool))
        self.chat = self.sandbox.chat
        self.thread = self.chat.user_creates_thread("A").thread_id
        self.browser = Browser(Path(self.mktemp()).absolute())
        self.addCleanup(self.browser.close)

        def begin(page: ChatPage) -> None:
            page.open(self.sandbox.page_url)
            page.choose_thread("A")

        await self.browser.run(begin)

    @deferred
    async def call(self, method: str, file: tuple[str, str, bytes], **params: Any) -> Any:
        """Upload a file, given as name, type and content, into the Thread."""
        url = f"{self.sandbox.api_root}/bot{self.sandbox.token}/{method}"
        field = method.removeprefix("send").lower()
        name, kind, data = file
        place = {"chat_id": str(self.chat.owner["id"]), "message_thread_id": str(self.thread)}
        response = await self.http.post(
            url, data=place | params, files={field: (name, kind, BytesIO(data))}
        )
        answer = await response.json()
        self.assertTrue(answer["ok"], answer)
        return answer["result"]

    @deferred
    async def tell(self, method: str, thread: int, **params: Any) -> Any:
        """Call a method with a Thread."""
        url = f"{self.sandbox.api_root}/bot{self.sandbox.token}/{method}"
        place = {"chat_id": self.chat.owner["id"], "message_thread_id": thread}
        answer = await (await self.http.post(url, json=place | params)).json()
        self.assertTrue(answer["ok"], answer)
        return answer["result"]

    def see(self, script: str, done: str) -> Deferred[Any]:
        """Fire with what a script returns as soon as C{done} is true on the page."""

        def look(page: ChatPage) -> Any:
            page.until(lambda: page.driver.execute_script(f"return {done}"), done)
            return page.driver.execute_script(script), page.complaints()

        return self.browser.run(look)

    @deferred
    async def test_players(self) -> None:
        """A recording can be played and saved; what is no sound by its type can only be saved."""
        await self.call("sendVoice", ("note.wav", "audio/wav", sound()), caption="listen")
        await self.call("sendDocument", ("page.html", "text/html", b"<b>x</b>"))
        seen, complaints = await self.see(
            "return [document.querySelector('.player').duration,"
            " document.querySelectorAll('.player').length,"
            " [...document.querySelectorAll('.file')].map(link => link.href)]",
            "document.querySelectorAll('.file').length === 2"
            " && document.querySelector('.player').readyState >= 1",
        )
        seconds, players, links = seen
        self.assertAlmostEqual(seconds, 1.0, 1)
        self.assertEqual((players, complaints), (1, []))
        kinds = []
        for link in links:
            response = await self.http.get(link)
            await response.content()
            headers = response.headers
            kinds += headers.getRawHeaders("content-type")
            kinds += headers.getRawHeaders("content-disposition")
        self.assertEqual(kinds, ["audio/wav", "inline", "application/octet-stream", "attachment"])

    @deferred
    async def test_drafts(self) -> None:
        """A draft grows in its own Thread, and goes with the message, whose buttons have colours."""
        other = self.chat.user_creates_thread("B").thread_id
        drafts = "[...document.querySelectorAll('#draft .bubble')].map(each => each.innerText)"
        await self.tell("sendMessageDraft", other, draft_id=5, text="not here")
        await self.tell("sendMessageDraft", self.thread, draft_id=7)
        seen, _ = await self.see(f"return {drafts}", f"{drafts}.length === 1")
        self.assertEqual(seen, ["Thinking…"])
        growing = {"markdown": "# Head\n\nso far"}
        await self.tell("sendRichMessageDraft", self.thread, draft_id=7, rich_message=growing)
        seen, _ = await self.see(
            "return [document.querySelector('#draft h1').innerText,"
            " document.querySelectorAll('#draft .bubble').length]",
            "document.querySelector('#draft h1')",
        )
        self.assertEqual(seen, ["Head", 1])
        styles = ("primary", "success", "danger")
        row = [{"text": each, "callback_data": each, "style": each} for each in styles]
        plain = [{"text": "plain", "callback_data": "plain"}]
        await self.tell(
            "sendRichMessage",
            self.thread,
            rich_message={"markdown": "# Head"},
            reply_markup={"inline_keyboard": [row, plain]},
        )
        seen, complaints = await self.see(
            f"return [{drafts}, [...document.querySelectorAll('.key')].map("
            "key => getComputedStyle(key).color)]",
            "document.querySelectorAll('#messages .key').length === 4",
        )
        left, colours = seen
        self.assertEqual((left, len(set(colours)), complaints), ([], 4, []))

    @deferred
    async def test_by_mouse(self) -> None:
        """A document with its caption, an album of three, a voice note and a reaction are updates."""
        base = Path(self.mktemp())
        base.mkdir()
        paths = []
        for number in range(3):
            paths.append((base / f"p{number}.png").absolute())
            paths[-1].write_bytes(png(9, 9))
        notes = (base / "notes.txt").absolute()
        notes.write_text("the milk")
        voice = (base / "said.ogg").absolute()
        voice.write_bytes(b"OggS")
        url = f"{self.sandbox.api_root}/bot{self.sandbox.token}/getUpdates"
        wanted = {"allowed_updates": ["message", "message_reaction"], "timeout": 0}
        await treq.content(await self.http.post(url, json=wanted))
        said = self.chat.user_sends("what I said", self.thread)

        def act(page: ChatPage) -> None:
            page.attach(notes, caption="read it")
            page.attach(*paths, caption="look")
            page.attach(voice)
            page.react("what I said", "👎")

        found = self.sandbox.when_event(lambda event: event["event"] == "reaction")
        await self.browser.run(act)
        await found
        await self.sandbox.when(lambda: len(self.chat.messages(self.thread)) == 6)
        updates = self.sandbox.chat.world.updates.pending()
        messages = [update["message"] for update in updates if "message" in update]
        (document,) = [message for message in messages if "document" in message]
        self.assertEqual(document["document"]["file_name"], "notes.txt")
        self.assertEqual(
            (document["caption"], document["message_thread_id"]), ("read it", self.thread)
        )
        photos = [message for message in messages if "photo" in message]
        self.assertEqual([message.get("caption") for message in photos], ["look", None, None])
        self.assertEqual(len({message["media_group_id"] for message in photos}), 1)
        self.assertEqual(len([message for message in messages if "voice" in message]), 1)
        (reaction,) = [u["message_reaction"] for u in updates if "message_reaction" in u]
        self.assertEqual(reaction["message_id"], said.message_id)
        self.assertEqual(reaction["new_reaction"], [{"type": "emoji", "emoji": "👎"}])

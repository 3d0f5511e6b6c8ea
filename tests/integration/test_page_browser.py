"""The chat page in a real browser: a person writes, presses, reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import treq
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool, ResponseFailed

from pitelegram.kernel.deferring import deferred
from pitelegram.testing.browser import Browser, ChatPage, is_installed
from pitelegram.testing.telegram import Sandbox

HOSTILE = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"


class TinyBot:
    """Answers every message, in the Thread it came from, and every press."""

    def __init__(self, sandbox: Sandbox, http: treq.client.HTTPClient) -> None:
        self._sandbox = sandbox
        self._http = http

    @deferred
    async def call(self, method: str, **params: Any) -> Any:
        """Call a method; fires with its result."""
        url = f"{self._sandbox.api_root}/bot{self._sandbox.token}/{method}"
        response = await self._http.post(url, json=params)
        answer = await response.json()
        if not answer["ok"]:
            raise AssertionError(answer["description"])
        return answer["result"]

    @deferred
    async def run(self) -> None:
        """Poll until cancelled."""
        offset = 0
        while True:
            for update in await self.call("getUpdates", offset=offset, timeout=25):
                offset = update["update_id"] + 1
                if "callback_query" in update:
                    await self._pressed(update["callback_query"])
                elif "text" in update["message"]:
                    await self._told(update["message"])

    async def _told(self, message: dict[str, Any]) -> None:
        place = {"chat_id": message["chat"]["id"]}
        if "message_thread_id" in message:
            place["message_thread_id"] = message["message_thread_id"]
        await self.call("sendChatAction", **place, action="typing")
        if message["text"] == "wait":
            return
        keyboard = {"inline_keyboard": [[{"text": "✅ Good", "callback_data": "good"}]]}
        await self.call(
            "sendMessage",
            **place,
            text=f"You said: {message['text']}",
            reply_markup=keyboard,
        )

    async def _pressed(self, query: dict[str, Any]) -> None:
        await self.call("answerCallbackQuery", callback_query_id=query["id"], text="Noted.")
        message = query["message"]
        await self.call(
            "editMessageText",
            chat_id=message["chat"]["id"],
            message_id=message["message_id"],
            text="It was good.",
        )


class PageTests(TestCase):
    """One browser for one story each."""

    timeout = 120
    if not is_installed():
        skip = "chromium and chromium-driver are not installed"

    @deferred
    async def setUp(self) -> None:
        """Start sandbox, bot and browser, and open the page."""
        from twisted.internet import reactor

        self.sandbox = Sandbox(reactor)
        self.sandbox.startService()
        self.addCleanup(self.sandbox.stopService)
        pool = HTTPConnectionPool(reactor, persistent=False)
        self.bot = TinyBot(self.sandbox, treq.client.HTTPClient(Agent(reactor, pool=pool)))
        self.owner = self.sandbox.chat.owner["id"]
        profile = Path(self.mktemp()).absolute()
        self.browser = Browser(profile)
        self.addCleanup(self.browser.close)
        await self.browser.run(lambda page: page.open(self.sandbox.page_url))

    def run_bot(self) -> None:
        """Let the bot answer until the test ends."""
        running: Deferred[None] = self.bot.run()
        running.addErrback(lambda failure: failure.trap(CancelledError, ResponseFailed))

        def end() -> Deferred[None]:
            running.cancel()
            return running

        self.addCleanup(end)

    @deferred
    async def thread(self, name: str) -> int:
        """Make a Thread as the bot."""
        topic = await self.bot.call("createForumTopic", chat_id=self.owner, name=name)
        return int(topic["message_thread_id"])

    @deferred
    async def test_write_press_read(self) -> None:
        """A prompt is written in a Thread, the answer read, its button pressed, the toast seen."""
        await self.thread("A · website")
        self.run_bot()

        def story(page: ChatPage) -> tuple[str, str, str]:
            page.choose_thread("A · website")
            page.write("Hello *bot*")
            answer = page.wait_for_answer("You said")
            page.press("✅ Good")
            toast = page.wait_for_toast()
            return answer, toast, page.wait_for_answer("It was good.")

        answer, toast, edited = await self.browser.run(story)
        self.assertEqual(answer, "You said: Hello *bot*")
        self.assertEqual((toast, edited), ("Noted.", "It was good."))
        waiting = await self.browser.run(lambda page: len(page.all(".key")))
        self.assertEqual(waiting, 0)
        self.assertEqual(await self.browser.run(ChatPage.complaints), [])

    @deferred
    async def test_lines(self) -> None:
        """Shift and Enter make a line break, Enter sends, the empty text is not sent."""
        thread = await self.thread("A")
        sent = self.sandbox.when_event(
            lambda event: event["event"] == "message" and not event["message"]["service"]
        )
        await self.browser.run(
            lambda page: (page.choose_thread("A"), page.write("   "), page.write("one\ntwo"))
        )
        self.assertEqual((await sent)["message"]["text"], "one\ntwo")
        self.assertEqual(len(self.sandbox.chat.messages(thread)), 1)

    @deferred
    async def test_threads(self) -> None:
        """Threads appear by themselves, hold their own messages, count what is unread."""
        first, second = await self.thread("A"), await self.thread("B")

        def say(text: str, thread: int) -> Deferred[Any]:
            return self.bot.call(
                "sendMessage", chat_id=self.owner, message_thread_id=thread, text=text
            )

        await self.browser.run(lambda page: page.choose_thread("A"))
        await say("for a", first)
        await say("for b", second)
        await say("for b again", second)

        def look(page: ChatPage) -> tuple[list[str], dict[str, int]]:
            page.wait_for_answer("for a")
            page.until(lambda: page.unread() == {"B": 2}, "two unread")
            return page.messages(), page.unread()

        self.assertEqual(await self.browser.run(look), (["for a"], {"B": 2}))

        def switch(page: ChatPage) -> tuple[list[str], dict[str, int]]:
            page.choose_thread("B")
            page.wait_for_answer("for b again")
            page.until(lambda: not page.unread(), "nothing unread")
            shown = page.messages()
            page.choose_thread("All")
            return shown, page.messages()

        both = (["for b", "for b again"], ["for a", "for b", "for b again"])
        self.assertEqual(await self.browser.run(switch), both)
        await self.bot.call("editForumTopic", chat_id=self.owner, message_thread_id=first, name="Z")
        await self.bot.call("deleteForumTopic", chat_id=self.owner, message_thread_id=second)
        await self.browser.run(
            lambda page: page.until(lambda: page.threads() == ["All", "Z"], "rename and deletion")
        )

    @deferred
    async def test_text_in_all_opens_a_thread(self) -> None:
        """Plain text written in All opens a Thread, and the page goes there."""
        self.run_bot()

        def story(page: ChatPage) -> tuple[str, str]:
            page.write("build a boat")
            page.until(lambda: page.current_thread() == "build a boat", "the new Thread")
            return page.current_thread(), page.wait_for_answer("You said")

        self.assertEqual(await self.browser.run(story), ("build a boat", "You said: build a boat"))

    @deferred
    async def test_formatting(self) -> None:
        """Entities become elements; a language, a link and offsets behind an emoji are right."""
        text = (
            "😀 <b>bold <i>both</i></b> <code>code</code> <a href='https://example.org/'>link</a>"
            "<pre><code class='language-python'>x &lt; 1</code></pre><blockquote>said</blockquote>"
        )
        await self.bot.call("sendMessage", chat_id=self.owner, text=text, parse_mode="HTML")

        def look(page: ChatPage) -> dict[str, list[str]]:
            page.wait_for_answer("bold")
            names = ("strong", "strong em", ".text > code", "pre", "figcaption", "blockquote")
            return {
                name: page.texts(f"#messages .text {name}".replace(".text .text", ".text"))
                for name in names
            }

        found = await self.browser.run(look)
        self.assertEqual(found["strong"], ["bold both"])
        self.assertEqual(found["strong em"], ["both"])
        self.assertEqual(found[".text > code"], ["code"])
        self.assertEqual(found["pre"], ["x < 1"])
        self.assertIn("python", found["figcaption"][0])
        self.assertEqual(found["blockquote"], ["said"])
        link = await self.browser.run(lambda page: page.one("#messages a").get_attribute("href"))
        self.assertEqual(link, "https://example.org/")

    @deferred
    async def test_text_stays_text(self) -> None:
        """Markup in texts, names, buttons and toasts is shown, never run; bad links are no links."""
        await self.thread(HOSTILE)
        keyboard = {"inline_keyboard": [[{"text": HOSTILE, "callback_data": "x"}]]}
        entity = {"type": "text_link", "offset": 0, "length": 4, "url": "javascript:alert(1)"}
        sent = await self.bot.call(
            "sendMessage",
            chat_id=self.owner,
            text=HOSTILE,
            entities=[entity],
            reply_markup=keyboard,
        )
        self.sandbox.chat.user_sends("/" + HOSTILE)

        def look(page: ChatPage) -> list[str]:
            page.until(lambda: len(page.messages()) == 2, "both messages")
            return page.messages()

        self.assertEqual(await self.browser.run(look), [HOSTILE, "/" + HOSTILE])
        press = self.browser.run(lambda page: page.one("#messages .key").click())
        event = await self.sandbox.when_event(lambda event: event["event"] == "press")
        await press
        await self.bot.call(
            "answerCallbackQuery", callback_query_id=event["callback_id"], text=HOSTILE
        )
        self.assertEqual(await self.browser.run(ChatPage.wait_for_toast), HOSTILE)
        foreign = "#app img, #app script, #toast *, #messages a"
        self.assertEqual(await self.browser.run(lambda page: page.texts(foreign)), [])
        title = await self.browser.run(lambda page: page.driver.title)
        self.assertNotEqual(title, "broken")
        self.assertEqual(sent["text"], HOSTILE)

    @deferred
    async def test_typing_and_alert(self) -> None:
        """The typing sign comes with the action and goes with the message; an alert is a dialog."""
        thread = await self.thread("A")
        place = {"chat_id": self.owner, "message_thread_id": thread}
        await self.browser.run(lambda page: page.choose_thread("A"))
        await self.bot.call("sendChatAction", **place, action="typing")
        await self.browser.run(ChatPage.wait_for_typing)
        keyboard = {"inline_keyboard": [[{"text": "ask", "callback_data": "a"}]]}
        await self.bot.call("sendMessage", **place, text="done", reply_markup=keyboard)

        def gone(page: ChatPage) -> bool:
            page.wait_for_answer("done")
            return page.is_typing()

        self.assertFalse(await self.browser.run(gone))
        press = self.browser.run(lambda page: page.press("ask"))
        event = await self.sandbox.when_event(lambda event: event["event"] == "press")
        await press
        await self.bot.call(
            "answerCallbackQuery",
            callback_query_id=event["callback_id"],
            text="Really?",
            show_alert=True,
        )

        def alert(page: ChatPage) -> str:
            text = page.until(lambda: page.one("#alert-text").text, "the alert")
            page.one("#alert button").click()
            page.until(lambda: not page.one("#alert").is_displayed(), "the alert to close")
            return text

        self.assertEqual(await self.browser.run(alert), "Really?")

    @deferred
    async def test_reconnects(self) -> None:
        """After the network was away the page shows what happened meanwhile."""
        await self.browser.run(lambda page: page.until(lambda: page.threads() == ["All"], "All"))
        await self.sandbox.go_offline()
        await self.browser.run(
            lambda page: page.until(
                lambda: "reconnecting" in page.one("#connection").text, "the loss to be seen"
            )
        )
        self.sandbox.chat.user_sends("/meanwhile")
        self.sandbox.go_online()
        texts = await self.browser.run(
            lambda page: page.until(lambda: page.messages(), "the message", 40)
        )
        self.assertEqual(texts, ["/meanwhile"])

    @deferred
    async def test_on_a_phone(self) -> None:
        """On a narrow screen list and chat are two screens, and nothing is cut at the side."""
        await self.thread("A")

        def story(page: ChatPage) -> tuple[list[bool], int]:
            shown = []
            page.resize(360, 720)
            page.until(lambda: page.threads() == ["All", "A"], "the Thread")
            shown.append(page.one("#chat").is_displayed())
            page.choose_thread("A")
            shown += [page.one("#chat").is_displayed(), page.one("#sidebar").is_displayed()]
            wide = page.driver.execute_script("return document.documentElement.scrollWidth")
            page.one("#back").click()
            shown.append(page.one("#sidebar").is_displayed())
            return shown, wide

        shown, wide = await self.browser.run(story)
        self.assertEqual(shown, [False, True, False, True])
        self.assertLessEqual(wide, 360)

    @deferred
    async def test_reply_and_edit(self) -> None:
        """A reply quotes, and the bot gets it as one; one's own message can be changed."""
        thread = await self.thread("A")

        def go(page: ChatPage) -> list[str]:
            page.choose_thread("A")
            page.reply("What is your name?", "Ada")
            page.until(lambda: "Ada" in page.messages(), "the reply")
            self.assertFalse(page.one("#about").is_displayed())
            page.edit("Ada", "Ada L.")
            page.until(lambda: "Ada L." in page.messages(), "the edit")
            return page.texts("#messages .mine .reply")

        asked = await self.bot.call(
            "sendMessage", chat_id=self.owner, message_thread_id=thread, text="What is your name?"
        )
        (quote,) = await self.browser.run(go)
        self.assertIn("What is your name?", quote)
        updates = await self.bot.call("getUpdates")
        (reply,) = [u["message"] for u in updates if u.get("message", {}).get("text") == "Ada"]
        self.assertEqual(reply["reply_to_message"]["message_id"], asked["message_id"])
        (edit,) = [u["edited_message"] for u in updates if "edited_message" in u]
        self.assertEqual((edit["message_id"], edit["text"]), (reply["message_id"], "Ada L."))

    @deferred
    async def test_own_threads(self) -> None:
        """A person opens, renames and deletes a Thread; asked twice before it is gone."""

        def go(page: ChatPage) -> list[list[str]]:
            page.new_thread("mine")
            page.until(lambda: page.current_thread() == "mine", "the new Thread")
            page.write("hello")
            page.rename_thread("renamed")
            page.until(lambda: page.current_thread() == "renamed", "the new name")
            before = page.threads()
            page.delete_thread()
            page.until(lambda: page.current_thread() == "All", "the Thread to go")
            self.assertEqual(page.complaints(), [])
            return [before, page.threads()]

        before, after = await self.browser.run(go)
        self.assertEqual((before, after), (["All", "renamed"], ["All"]))
        updates = await self.bot.call("getUpdates")
        kinds = {kind for update in updates for kind in update["message"]}
        self.assertLessEqual({"forum_topic_created", "forum_topic_edited", "text"}, kinds)

    @deferred
    async def test_closed_thread(self) -> None:
        """A person closes a Thread: nothing can be written, until he opens it again with a click."""
        thread = await self.thread("A")

        def close(page: ChatPage) -> list[str]:
            page.choose_thread("A")
            page.shut_thread()
            page.until(page.is_closed, "the Thread to be closed")
            return page.texts("#messages .service")

        self.assertIn("The Thread was closed", await self.browser.run(close))
        place = {"chat_id": self.owner, "message_thread_id": thread}
        refused = self.bot.call("sendMessage", **place, text="x")
        error = await self.assertFailure(refused, AssertionError)
        self.assertEqual(str(error), "Bad Request: TOPIC_CLOSED")

        def reopen(page: ChatPage) -> list[str]:
            page.one("#open-again").click()
            page.until(lambda: not page.is_closed(), "the Thread to open again")
            page.write("hello")
            page.until(lambda: "hello" in page.messages(), "the message")
            return page.complaints()

        self.assertEqual(await self.browser.run(reopen), [])
        await self.bot.call("sendMessage", **place, text="x")
        updates = await self.bot.call("getUpdates")
        kinds = [kind for update in updates for kind in update["message"] if "forum" in kind]
        self.assertEqual(kinds[-2:], ["forum_topic_closed", "forum_topic_reopened"])

    @deferred
    async def test_all(self) -> None:
        """In All a person chooses whether text opens a Thread; a reply goes where its question is."""
        thread = await self.thread("A")
        await self.bot.call(
            "sendMessage", chat_id=self.owner, message_thread_id=thread, text="Which colour?"
        )

        def go(page: ChatPage) -> list[str]:
            page.choose_thread("All")
            page.send_outside(True)
            page.write("stays in All")
            page.until(lambda: "stays in All" in page.messages(), "the message")
            page.reply("Which colour?", "blue")
            page.until(lambda: "blue" in page.messages(), "the reply")
            seen = [page.current_thread()]
            page.send_outside(False)
            page.write("a new beginning")
            page.until(lambda: page.current_thread() == "a new beginning", "the new Thread")
            shown = page.one("#outside-box").is_displayed()
            return [*seen, page.current_thread(), str(shown)]

        self.assertEqual(await self.browser.run(go), ["All", "a new beginning", "False"])
        chat = self.sandbox.chat
        places = {m.text: m.thread_id for m in chat.messages()}
        opened = chat.thread_named("a new beginning").thread_id
        self.assertEqual(
            [places[text] for text in ("stays in All", "blue", "a new beginning")],
            [None, thread, opened],
        )
        self.assertEqual([t.name for t in chat.threads], ["A", "a new beginning"])

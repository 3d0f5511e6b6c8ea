"""From a fresh token to a paired chat."""

from __future__ import annotations

import json
import re
from typing import Any

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase


class Pairing(SystemCase):
    """C{setup}, then C{/start <code>}."""

    @deferred
    async def test_setup_and_start(self) -> None:
        """Only the code from the terminal pairs; then the owner's prompts are answered."""
        (self.system.agent_dir / "telegram.json").unlink()
        self.system.extra_environment = {"PI_TELEGRAM_PI": self.pi()}
        done = await self.system.cli("setup", "--token-stdin", stdin=self.system.telegram.token)
        self.assertEqual(done.code, 0, done.err)
        self.assertNotIn(self.system.telegram.token, done.out + done.err)
        found = re.search(r"\b[A-Z2-7]{20}\b", done.out)
        assert found is not None, done.out
        await self.system.start_daemon()
        self.system.say("not paired yet")
        stranger = self.system.telegram.chat.stranger_sends("/start AAAAAAAAAAAAAAAAAAAA")
        self.system.say("/start WRONGWRONGWRONGWRONG")
        self.system.say(f"/start {found[0]}")
        await self.system.telegram.when_message(lambda m: "paired" in m.text)
        self.system.telegram.chat.stranger_sends(f"/start {found[0]}")
        thread = await self.system.start_worker("alpha")
        self.system.say("hello", thread)
        await self.system.answer("You said: hello", thread)
        self.assertEqual(self.system.prompts("not paired yet"), [])
        theirs = self.system.telegram.chat.world.chats[stranger.sender["id"]].messages.values()
        self.assertEqual([m for m in theirs if m.sender["is_bot"]], [])

    def pi(self) -> str:
        """The command of the Pi under test."""
        from shlex import join

        from pitelegram.testing.pienv import pi_command

        return join(pi_command())


class AnotherOwner(SystemCase):
    """C{setup --new-owner} under a running daemon."""

    second = 200_000_002

    @deferred
    async def test_new_owner(self) -> None:
        """The second account gets everything, the first is told once and gets nothing more."""
        await self.system.start_daemon()
        chat = self.system.telegram.chat
        self.system.say("/daemon")
        panel = await self.system.telegram.when_message(lambda m: "Daemon control" in m.text)
        code = await self.code()
        chat.stranger_sends("/start WRONGWRONGWRONGWRONG", self.second)
        chat.stranger_sends(f"/start {code}", self.second)
        farewell = await self.system.telegram.when_message(lambda m: "not paired" in m.text)
        self.assertIsNone(farewell.thread_id)
        await self.says("This chat is paired")
        before = len(chat.from_bot())
        chat.user_presses(panel.message_id, label="ℹ️ Status")
        self.system.say("/daemon")
        chat.stranger_sends(f"/start {code}")
        chat.stranger_sends("/daemon", self.second)
        await self.says("Daemon control")
        self.assertEqual(len(chat.from_bot()), before)
        self.assertIn("Daemon control", panel.text)
        self.assertEqual(self.written_to(chat.world.chats, 666_000_001), [])
        document = json.loads((self.system.agent_dir / "telegram.json").read_text())
        self.assertEqual(document["profiles"]["default"]["allowedUserId"], self.second)

    @deferred
    async def code(self) -> str:
        """Ask for a code; the first owner stays one until it is used."""
        done = await self.system.cli("setup", "--new-owner")
        self.assertEqual(done.code, 0, done.err)
        found = re.search(r"https://t\.me/\w+\?start=([A-Z2-7]{20})", done.out)
        assert found is not None, done.out
        return found[1]

    @deferred
    async def says(self, words: str) -> None:
        """Wait until the bot has written these words to the second account, once."""
        chats = self.system.telegram.chat.world.chats

        def find() -> list[str]:
            return [t for t in self.written_to(chats, self.second) if words in t]

        self.assertEqual(len(await self.system.telegram.when(find)), 1)

    def written_to(self, chats: dict[int, Any], user_id: int) -> list[str]:
        """What the bot wrote to somebody."""
        messages = list(chats[user_id].messages.values())
        return [m.text for m in messages if m.sender["is_bot"] and not m.service]


class StrangerAtThePanel(SystemCase):
    """Somebody else presses the owner's buttons and writes what the owner may write."""

    @deferred
    async def test_nothing_changes(self) -> None:
        """No button, command, code, edit or reaction of his does anything or gets an answer."""
        self.system.project("plain")
        await self.system.start_daemon("--root", str(self.system.projects))
        chat, telegram = self.system.telegram.chat, self.system.telegram
        self.system.say("/daemon")
        panel = await telegram.when_message(lambda m: "Daemon control" in m.text)
        chat.user_presses(panel.message_id, label="📁 New worker…")
        await telegram.when(lambda: "Pick a project" in panel.text)
        chat.user_presses(panel.message_id, label="✅ Start a worker here")
        await telegram.when(lambda: "Pi trusts" in panel.text)
        start = panel.button("✅ Start a worker here")["callback_data"]
        settings = (self.system.agent_dir / "telegram.json").read_text()
        shown, sent = panel.text, len(chat.from_bot())
        presses = [
            chat.stranger_presses(panel.message_id, data)
            for data in (start, "ptd:x", "ptd:m", "ptd:tf:unattended", "ptd:ts:names", "ptd:tr")
        ]
        written = chat.stranger_sends("/start")
        for text in ("/start AAAAAAAAAAAAAAAAAAAA", "/daemon", "/workers", "let me in"):
            written = chat.stranger_sends(text)
        chat.stranger_edits(written, "/daemon")
        chat.stranger_reacts(written, "👍")
        mine = chat.user_presses(panel.message_id, label="↩️ Back")
        await telegram.when(lambda: "Pick a project" in panel.text)
        press = chat.world.presses.get(mine)
        await telegram.when(lambda: press is not None and press.answer is not None)
        self.assertIn("Pi trusts", shown)
        self.assertEqual(len(chat.from_bot()), sent)
        answers = [chat.world.presses.get(number) for number in presses]
        self.assertEqual([each and each.answer for each in answers], [None] * len(presses))
        theirs = list(chat.world.chats[written.sender["id"]].messages.values())
        self.assertEqual([m for m in theirs if m.sender["is_bot"]], [])
        self.assertEqual((self.system.agent_dir / "telegram.json").read_text(), settings)
        self.assertEqual(self.rows("SELECT count(*) FROM specs"), [0])
        self.assertEqual(self.system.workers(), [])

"""From a fresh token to a paired chat."""

from __future__ import annotations

import re

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
        self.assertEqual([m for m in self.chat_of(stranger.sender["id"]) if m.sender["is_bot"]], [])

    def pi(self) -> str:
        """The command of the Pi under test."""
        from shlex import join

        from pitelegram.testing.pienv import pi_command

        return join(pi_command())

    def chat_of(self, user_id: int) -> list:
        """All messages of another chat."""
        return list(self.system.telegram.chat.world.chats[user_id].messages.values())

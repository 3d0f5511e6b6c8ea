"""C{setup} and C{doctor} against the local Telegram."""

import hashlib
import json
import os
import re
import stat
from random import Random

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.commands.setup import find_token
from pitelegram.errors import ConfigError
from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.server import SandboxTelegram
from tests.commands.support import CommandCase

TOKEN = "123456789:AAE-abcdefghijklmnopqrstuvwxyz_01234"


class FindTokenTests(SynchronousTestCase):
    """What people paste."""

    def test_found(self):
        """The token alone, with white space, or inside BotFather's whole message."""
        for text in (
            TOKEN,
            f" {TOKEN}\n",
            f"Done! Use this token:\n{TOKEN}\nKeep it safe: {TOKEN}",
        ):
            self.assertEqual(find_token(text), TOKEN)

    def test_reference(self):
        """The name of a variable is kept as it is."""
        for text in ("$BOT_TOKEN", "${BOT_TOKEN}\n"):
            self.assertEqual(find_token(text), text.strip())

    def test_refused(self):
        """No token, half of one, or two; the text is never repeated."""
        other = TOKEN.replace("1", "2")
        for text in ("", "secret-word", TOKEN[:20], TOKEN + "x" * 60, f"{TOKEN} {other}", "$"):
            with self.assertRaises(ConfigError) as caught:
                find_token(text)
            self.assertNotIn("secret-word", str(caught.exception))
            self.assertNotIn(TOKEN[:20], str(caught.exception))


class TelegramCase(CommandCase):
    """Base: a local Telegram."""

    def setUp(self):
        """Start it."""
        super().setUp()
        self.telegram = SandboxTelegram(self.reactor, self.reactor, Random(7))
        self.telegram.startService()
        self.addCleanup(self.telegram.stopService)

    @property
    def profile(self):
        """The stored profile."""
        return self.configured()["profiles"]["default"]

    def setup_bot(self, *arguments, token=None):
        """Run C{setup} with the sandbox's token."""
        words = self.telegram.token if token is None else token
        return self.cli(
            "setup",
            "--token-stdin",
            "--api-root",
            self.telegram.api_root,
            *arguments,
            stdin=words.encode(),
        )


class SetupTests(TelegramCase):
    """C{setup}."""

    @deferred
    async def test_stores_and_pairs(self):
        """Token and bot are stored privately; code and link are shown; only a hash is kept."""
        ended = await self.setup_bot()
        self.assertEqual(ended.code, 0, ended.err)
        self.assertEqual(self.profile["botToken"], self.telegram.token)
        self.assertEqual(self.profile["botUsername"], "sandbox_pi_bot")
        self.assertEqual(self.profile["botId"], int(self.telegram.token.split(":")[0]))
        self.assertNotIn("allowedUserId", self.profile)
        self.assertEqual(stat.S_IMODE(os.stat(self.paths.telegram_json).st_mode), 0o600)
        code = re.search(r"https://t\.me/sandbox_pi_bot\?start=([A-Z2-7]{20})\n", ended.out)[1]
        self.assertIn(f"/start {code}\n", ended.out)
        kept = self.paths.pairing.read_text()
        self.assertNotIn(code, kept)
        self.assertIn(hashlib.sha256(code.encode()).hexdigest(), kept)
        self.assertNotIn(self.telegram.token, ended.out + ended.err)

    @deferred
    async def test_keeps_what_others_wrote(self):
        """Unknown keys and other profiles survive."""
        other = {
            "unknown": {"a": [1]},
            "profiles": {"work": {"botToken": "x"}, "default": {"y": 1}},
        }
        self.configure(other)
        self.assertEqual((await self.setup_bot()).code, 0)
        found = self.configured()
        self.assertEqual(found["unknown"], {"a": [1]})
        self.assertEqual(found["profiles"]["work"], {"botToken": "x"})
        self.assertEqual(found["profiles"]["default"]["y"], 1)

    @deferred
    async def test_refused_token(self):
        """A token that Telegram refuses changes nothing."""
        ended = await self.setup_bot(token=TOKEN)
        self.assertEqual(ended.code, 1)
        self.assertIn("@BotFather", ended.err)
        self.assertNotIn(TOKEN, ended.out + ended.err)
        self.assertFalse(self.paths.telegram_json.exists())

    @deferred
    async def test_garbage(self):
        """What is no token is a usage error that does not repeat it."""
        ended = await self.setup_bot(token="hunter22hunter22")
        self.assertEqual((ended.code, ended.out), (2, ""))
        self.assertNotIn("hunter22", ended.err)

    @deferred
    async def test_no_network(self):
        """Without Telegram nothing is stored and nothing that was stored is lost."""
        await self.setup_bot()
        before = self.configured()
        await self.telegram.go_offline()
        ended = await self.setup_bot(token=TOKEN)
        self.assertEqual(ended.code, 1)
        self.assertIn("try again", ended.err)
        self.assertEqual(self.configured(), before)

    @deferred
    async def test_nothing_given(self):
        """Without a token and without a terminal the way is shown."""
        ended = await self.cli("setup")
        self.assertEqual(ended.code, 3)
        self.assertIn("--token-stdin", ended.err)

    @deferred
    async def test_user_id(self):
        """With C{--user-id} no code is needed; another owner needs C{--new-owner}."""
        ended = await self.setup_bot("--user-id", "42")
        self.assertEqual((ended.code, self.profile["allowedUserId"]), (0, 42))
        self.assertFalse(self.paths.pairing.exists())
        ended = await self.setup_bot("--user-id", "43")
        self.assertEqual((ended.code, self.profile["allowedUserId"]), (2, 42))
        self.assertIn("--new-owner", ended.err)
        await self.setup_bot("--user-id", "43", "--new-owner")
        self.assertEqual(self.profile["allowedUserId"], 43)
        self.assertEqual((await self.setup_bot("--user-id", "me")).code, 2)

    @deferred
    async def test_new_owner(self):
        """A paired owner stays; C{--new-owner} shows a code and keeps him until it is used."""
        await self.setup_bot("--user-id", "42")
        ended = await self.setup_bot()
        self.assertNotIn("/start ", ended.out)
        ended = await self.cli("setup", "--new-owner")
        self.assertRegex(ended.out, r"/start [A-Z2-7]{20}")
        self.assertEqual(self.profile["allowedUserId"], 42)

    @deferred
    async def test_first_contact(self):
        """First contact is a setting that is warned of."""
        ended = await self.setup_bot("--first-contact")
        self.assertIs(self.configured()["pairing"]["firstContact"], True)
        self.assertIn("Warning", ended.out)
        self.assertNotIn("/start ", ended.out)

    @deferred
    async def test_reference(self):
        """A variable's name is stored instead of the token it holds."""
        ended = await self.cli(
            "setup",
            "--token-stdin",
            "--api-root",
            self.telegram.api_root,
            "--user-id=42",
            stdin=b"$MY_BOT",
            environ={"MY_BOT": self.telegram.token},
        )
        self.assertEqual((ended.code, self.profile["botToken"]), (0, "$MY_BOT"))
        ended = await self.cli(
            "setup", "--token-stdin", "--api-root", self.telegram.api_root, stdin=b"$OTHER_BOT"
        )
        self.assertEqual(ended.code, 3)
        self.assertIn("OTHER_BOT", ended.err)

    @deferred
    async def test_threads_off(self):
        """A bot without Threaded Mode is told where the switch is."""
        self.telegram.chat.world.set_topics(False)
        ended = await self.setup_bot()
        self.assertEqual(ended.code, 0)
        self.assertIn("Threaded Mode is off", ended.out)
        self.assertIn("mini app", ended.out)

    @deferred
    async def test_other_profile(self):
        """Each profile has its own bot and its own code."""
        ended = await self.setup_bot("--profile", "work")
        self.assertEqual(ended.code, 0)
        self.assertEqual(set(self.configured()["profiles"]), {"work"})
        self.assertTrue((self.paths.data / "pairing.work").exists())


class DoctorTests(TelegramCase):
    """C{doctor}."""

    @deferred
    async def doctor(self, *arguments, pi="/bin/echo 1.6.0"):
        """Run it; returns the exit code and the level of each subject."""
        ended = await self.cli("doctor", "--pi", pi, *arguments)
        levels = {}
        for line in ended.out.splitlines():
            level, subject = re.fullmatch(r"(ok|warn|fail) +([\w ]+): .+", line).groups()
            levels[subject] = level
        return ended, levels

    @deferred
    async def test_nothing_configured(self):
        """Without a token it fails and names the cure."""
        ended, levels = await self.doctor()
        self.assertEqual((ended.code, levels["token"]), (1, "fail"))
        self.assertIn("-> pi-telegram setup", ended.out)

    @deferred
    async def test_well(self):
        """A configured bot: nothing fails, and nothing was made."""
        await self.setup_bot("--user-id", "42")
        before = sorted(str(path) for path in self.agent.rglob("*"))
        ended, levels = await self.doctor()
        self.assertEqual(ended.code, 0, ended.out)
        for subject in ("network", "token", "webhook", "threads", "Pi", "files", "disk", "owner"):
            self.assertEqual(levels[subject], "ok", ended.out)
        self.assertEqual((levels["store"], levels["key"]), ("ok", "ok"))
        self.assertIn(levels["memory"], ("ok", "warn"))
        self.assertEqual(levels["daemon"], "warn")
        self.assertEqual(sorted(str(path) for path in self.agent.rglob("*")), before)
        self.assertNotIn(self.telegram.token, ended.out + ended.err)

    @deferred
    async def test_refused_token(self):
        """A revoked token fails."""
        await self.setup_bot("--user-id", "42")
        self.telegram.revoke_token()
        ended, levels = await self.doctor()
        self.assertEqual((ended.code, levels["token"]), (1, "fail"))

    @deferred
    async def test_no_network(self):
        """No answer is a failure of the network, not of the token."""
        await self.setup_bot("--user-id", "42")
        await self.telegram.go_offline()
        ended, levels = await self.doctor()
        self.assertEqual((ended.code, levels["network"]), (1, "fail"))
        self.assertNotIn("token", levels)

    @deferred
    async def test_pi(self):
        """A Pi that is missing, silent or too old fails with what to install."""
        for pi in ("/nowhere/pi", "/bin/true", "/bin/echo 0.73.1"):
            ended, levels = await self.doctor(pi=pi)
            self.assertEqual((ended.code, levels["Pi"]), (1, "fail"), pi)
            self.assertIn("@earendil-works/pi-coding-agent", ended.out)

    @deferred
    async def test_open_files(self):
        """A file that others may read fails, is named, and is not changed."""
        await self.setup_bot("--user-id", "42")
        self.paths.telegram_json.chmod(0o644)
        ended, levels = await self.doctor()
        self.assertEqual((ended.code, levels["files"]), (1, "fail"))
        self.assertEqual(stat.S_IMODE(os.stat(self.paths.telegram_json).st_mode), 0o644)

    @deferred
    async def test_broken_configuration(self):
        """Invalid JSON is reported and left where it is."""
        self.paths.telegram_json.write_text("{broken")
        self.paths.telegram_json.chmod(0o600)
        ended, levels = await self.doctor()
        self.assertEqual((ended.code, levels["configuration"]), (1, "fail"))
        self.assertEqual(self.paths.telegram_json.read_text(), "{broken")

    @deferred
    async def test_damaged_owners(self):
        """A damaged ownership file fails."""
        await self.setup_bot("--user-id", "42")
        self.paths.owners.write_text("{")
        self.paths.owners.chmod(0o600)
        ended, levels = await self.doctor()
        self.assertEqual((ended.code, levels["ownership"]), (1, "fail"))

    @deferred
    async def test_report(self):
        """C{--report} has no path, no address and no token."""
        await self.setup_bot("--user-id", "42")
        document = self.configured()
        document["workers"] = {"roots": ["/home/somebody/secret-project"]}
        self.configure(document)
        ended, _ = await self.doctor("--report", pi="/nowhere/private/pi")
        self.assertEqual(ended.code, 1)
        self.assertIn("roots", ended.out)
        self.paths.telegram_json.chmod(0o644)
        report, _ = await self.doctor("--report")
        text = ended.out + report.out
        for private in (
            str(self.agent),
            "secret-project",
            "/nowhere",
            "127.0.0.1",
            self.telegram.token,
        ):
            self.assertNotIn(private, text, private)
        self.assertIn("fail", text)
        self.assertEqual(json.loads(self.paths.telegram_json.read_text()), document)

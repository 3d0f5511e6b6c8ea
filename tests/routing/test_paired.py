"""The paired owner, in C{telegram.json}."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.paths import Paths
from pitelegram.routing.paired import Owner
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.watching import Watcher

BOT = {"id": 77, "username": "some_bot"}


class OwnerTests(SynchronousTestCase):
    """L{Owner}."""

    def setUp(self) -> None:
        """An agent directory whose configuration knows nobody yet."""
        base = Path(self.mktemp()).resolve()
        base.mkdir(mode=0o700, parents=True)
        self.paths = Paths(base, "work")
        self.write({"other": {"kept": 1}, "profiles": {"work": {"botToken": "$T", "mine": 2}}})
        self.build()

    def build(self) -> None:
        """Make the owner from what the file says."""
        self.file = SettingsFile(self.paths, {})
        watcher = Watcher(self.file, self.file.load(with_token=False), Clock())
        self.heard: list[Any] = []
        self.owner = Owner(
            file=self.file,
            watcher=watcher,
            clock=Clock(),
            profile="work",
            on_paired=lambda: self.heard.append("paired"),
            on_replaced=lambda user_id: self.heard.append(("replaced", user_id)),
            on_blocked=self.heard.append,
            on_service=self.heard.append,
        )

    def write(self, document: dict[str, Any]) -> None:
        """Write the file as another program would."""
        self.paths.telegram_json.write_text(json.dumps(document))
        self.paths.telegram_json.chmod(0o600)

    def document(self) -> Any:
        """Read the file."""
        return json.loads(self.paths.telegram_json.read_text())

    def test_paired(self) -> None:
        """The owner is in force and on disk before anybody is told; everything else stays."""
        self.assertIsNone(self.owner.owner())
        told: list[Any] = []
        self.owner.on_paired = lambda: told.append((self.owner.owner(), self.document()))
        self.successResultOf(self.owner.paired(1000, 1000))
        right = {
            "other": {"kept": 1},
            "profiles": {"work": {"botToken": "$T", "mine": 2, "allowedUserId": 1000}},
        }
        self.assertEqual(told, [(1000, right)])
        self.assertEqual(self.owner.owner(), 1000)
        mode = stat.S_IMODE(self.paths.telegram_json.stat().st_mode)
        self.assertEqual(mode, 0o600)

    def test_replaced(self) -> None:
        """A second owner takes the first one's place, who is named; pairing again replaces nobody."""
        self.successResultOf(self.owner.paired(1000, 1000))
        self.successResultOf(self.owner.paired(1000, 1000))
        self.assertEqual(self.heard, ["paired", "paired"])
        self.successResultOf(self.owner.paired(2000, 2000))
        self.assertEqual(self.heard[2:], ["paired", ("replaced", 1000)])
        self.assertEqual(self.owner.owner(), 2000)

    def test_replaced_in_the_file(self) -> None:
        """C{setup --user-id} of another process does the same, and so does taking the owner out."""
        self.successResultOf(self.owner.paired(1000, 1000))
        del self.heard[:]
        document = self.document()
        document["profiles"]["work"]["allowedUserId"] = 2000
        self.write(document)
        self.owner.reload()
        self.assertEqual(self.heard, ["paired", ("replaced", 1000)])
        del document["profiles"]["work"]["allowedUserId"], self.heard[:]
        self.write(document)
        self.owner.reload()
        self.assertEqual((self.heard, self.owner.owner()), ([("replaced", 2000)], None))

    def test_new_profile(self) -> None:
        """A configuration without profiles gets this one."""
        self.write({})
        self.build()
        self.successResultOf(self.owner.paired(5, 5))
        self.successResultOf(self.owner.remember_bot(BOT))
        profile = {"allowedUserId": 5, "botId": 77, "botUsername": "some_bot"}
        self.assertEqual(self.document(), {"profiles": {"work": profile}})

    def test_reload(self) -> None:
        """What another program wrote counts from the next look."""
        document = self.document()
        document["profiles"]["work"]["allowedUserId"] = 1234567
        document["pairing"] = {"firstContact": True}
        self.write(document)
        self.assertEqual((self.owner.owner(), self.owner.first_contact()), (None, False))
        self.owner.reload()
        self.assertEqual((self.owner.owner(), self.owner.first_contact()), (1234567, True))

    def test_bot(self) -> None:
        """Id and name are kept once; the same again writes nothing."""
        self.successResultOf(self.owner.remember_bot(BOT))
        work = self.document()["profiles"]["work"]
        self.assertEqual((work["botId"], work["botUsername"]), (77, "some_bot"))
        before = self.paths.telegram_json.stat()
        self.successResultOf(self.owner.remember_bot({**BOT, "has_topics_enabled": True}))
        after = self.paths.telegram_json.stat()
        self.assertEqual((before.st_ino, before.st_mtime_ns), (after.st_ino, after.st_mtime_ns))
        self.successResultOf(self.owner.remember_bot({**BOT, "username": "renamed_bot"}))
        self.assertEqual(self.document()["profiles"]["work"]["botUsername"], "renamed_bot")

    def test_passed_on(self) -> None:
        """What admission reports gets to whoever listens."""
        self.owner.blocked(True)
        self.owner.service({"forum_topic_created": {}})
        self.assertEqual(self.heard, [True, {"forum_topic_created": {}}])

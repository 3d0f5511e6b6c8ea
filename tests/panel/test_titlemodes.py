"""The display mode in C{telegram.json}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.errors import ConfigError, Refusal
from pitelegram.kernel.paths import Paths
from pitelegram.panel.interfaces import DISPLAY_MODES, ITitleModes
from pitelegram.panel.titlemodes import TitleModes
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.watching import Watcher
from pitelegram.threads.titles import MODES


class TitleModesTests(SynchronousTestCase):
    """L{TitleModes}."""

    def setUp(self) -> None:
        """A configuration of two profiles."""
        base = Path(self.mktemp()).resolve()
        base.mkdir(mode=0o700, parents=True)
        self.paths = Paths(base, "work")
        self.write(json.dumps({"profiles": {"work": {"mine": 1}, "play": {"yours": 2}}}))
        file = SettingsFile(self.paths, {})
        watcher = Watcher(file, file.load(with_token=False), Clock())
        self.modes = TitleModes(file, watcher, Clock(), "work")

    def write(self, text: str) -> None:
        """Write the file as another program would."""
        self.paths.telegram_json.write_text(text)
        self.paths.telegram_json.chmod(0o600)

    def document(self) -> Any:
        """Read the file."""
        return json.loads(self.paths.telegram_json.read_text())

    def test_interface(self) -> None:
        """It is what it says, and offers the modes that titles can have."""
        self.assertTrue(verifyObject(ITitleModes, self.modes))
        self.assertEqual(DISPLAY_MODES, MODES)

    def test_choose(self) -> None:
        """Each mode is written into its profile, in force at once, and nothing else changes."""
        self.assertEqual(self.modes.mode(), "letters")
        for mode in DISPLAY_MODES:
            self.assertEqual(self.successResultOf(self.modes.choose(mode)), mode)
            self.assertEqual(self.modes.mode(), mode)
            work = {"mine": 1, "threadDisplayMode": mode}
            self.assertEqual(self.document()["profiles"], {"work": work, "play": {"yours": 2}})

    def test_unknown(self) -> None:
        """Nothing but the five is ever written."""
        before = self.document()
        self.failureResultOf(self.modes.choose("$(reboot)"), Refusal)
        self.assertEqual(self.document(), before)

    def test_broken_file(self) -> None:
        """A file that is not valid JSON is not written over."""
        self.write("{")
        self.failureResultOf(self.modes.choose("names"), ConfigError)
        self.assertEqual(self.paths.telegram_json.read_text(), "{")

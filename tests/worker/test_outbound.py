"""The operator's programs for what goes out, as real programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from twisted.trial.unittest import TestCase
from zope.interface.verify import verifyObject

from pitelegram.bridge.outgoing import IOutboundHandlers, Speech
from pitelegram.errors import VoiceFailed
from pitelegram.worker.outbound import OutboundHandlers
from pitelegram.worker.plugins import installed_providers
from pitelegram.worker.providers import Providers


class OutboundCase(TestCase):
    """Real programs in a directory of their own."""

    def setUp(self) -> None:
        """Nothing is configured."""
        from twisted.internet import reactor

        self.home = Path(self.mktemp()).absolute()
        self.home.mkdir()
        self.entries: Any = []
        self.providers = Providers()
        self.handlers = OutboundHandlers(
            reactor,
            self.home,
            {"PATH": os.environ["PATH"], "HOME": str(self.home)},
            lambda: self.entries,
            self.home / "scratch",
            self.providers,
        )
        self.addCleanup(self.handlers.stop)

    def script(self, text: str) -> str:
        """Write a program and return its path."""
        path = self.home / f"program{len(list(self.home.iterdir()))}.sh"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return str(path)

    async def refused(self, speech: str = "hello") -> None:
        """Assert that nobody speaks it, and that nothing is left."""
        try:
            await self.handlers.speak(Speech(text=speech))
        except VoiceFailed:
            scratch = self.home / "scratch"
            self.assertEqual(list(scratch.iterdir()) if scratch.exists() else [], [])
            return
        self.fail("it was spoken")


class Voices(OutboundCase):
    """L{OutboundHandlers.speak}."""

    def test_interface(self) -> None:
        """It has the interface's methods."""
        self.assertTrue(verifyObject(IOutboundHandlers, self.handlers))
        self.assertFalse(self.handlers.takes_voice() or self.handlers.takes_text())

    async def test_named_output(self) -> None:
        """The first program reads the text, the next one its output; language and rate are arguments."""
        program = self.script(
            'printf OggS > "$1"; printf "%s %s " "$2" "$3" >> "$1"; cat >> "$1"\n'
        )
        steps = ["tr a-z A-Z", f"{program} {{ogg}} {{lang=en}} {{rate}}"]
        self.entries = [{"type": "voice", "template": steps, "output": "ogg"}]
        self.assertTrue(self.handlers.takes_voice())
        recording = await self.handlers.speak(Speech(text="hello", lang="de", rate="+5%"))
        self.assertEqual(Path(recording.path).read_text(), "OggSde +5% HELLO")
        self.assertEqual(os.stat(Path(recording.path).parent).st_mode & 0o777, 0o700)
        self.handlers.discard(recording)
        self.assertFalse(Path(recording.path).exists())

    async def test_last_line_is_the_path(self) -> None:
        """Without a named output the program's last line says where it is."""
        program = self.script('printf OggS1 > "$1"; echo working; echo "$1"\n')
        self.entries = [{"type": "voice", "template": f"{program} {{ogg}}"}]
        recording = await self.handlers.speak(Speech(text="x"))
        self.assertEqual(Path(recording.path).read_text(), "OggS1")

    async def test_the_next_one(self) -> None:
        """What fails, or gives no recording, is passed over; then plug-ins are asked."""
        good = self.home / "good.ogg"
        good.write_bytes(b"OggS good")
        bad = self.script('printf mp3 > "$1"; echo "$1"\n')
        self.entries = [
            {"type": "voice", "template": self.script("exit 3\n")},
            {"type": "voice", "template": f"{bad} {{ogg}}"},
            {"type": "voice", "template": self.script("echo /etc/hostname\n")},
            {"type": "loud", "template": "true"},
            "nonsense",
        ]
        await self.refused()
        self.providers.register_synthesizer("broken", lambda _: 1 / 0)
        self.providers.register_synthesizer("good", lambda speech: str(good))
        recording = await self.handlers.speak(Speech(text="x"))
        self.assertEqual(recording.path, str(good))
        self.handlers.discard(recording)
        self.assertTrue(good.exists(), "it is not ours")

    async def test_links_and_others(self) -> None:
        """A link, a directory, an empty file are no recordings."""
        (self.home / "link.ogg").symlink_to(self.home / "real.ogg")
        (self.home / "real.ogg").write_bytes(b"OggS")
        (self.home / "directory.ogg").mkdir()
        (self.home / "empty.ogg").touch()
        for name in ("link", "directory", "empty", "missing"):
            program = self.script(f"echo {self.home}/{name}.ogg\n")
            self.entries = [{"type": "voice", "template": program}]
            await self.refused(name)

    async def test_timeout(self) -> None:
        """A program that hangs is ended."""
        self.entries = [{"type": "voice", "template": "sleep 60", "timeout": 100}]
        await self.refused()


class Changes(OutboundCase):
    """L{OutboundHandlers.transform}."""

    async def test_in_order(self) -> None:
        """Each changes what the one before made; one that fails changes nothing."""
        self.entries = [
            {"type": "text", "template": "tr a-z A-Z"},
            {"type": "text", "template": self.script("exit 1\n")},
            {"type": "text", "template": "sed s/L/l/"},
        ]
        self.assertTrue(self.handlers.takes_text())
        self.assertEqual(await self.handlers.transform("hello"), "HElLO")


class Installed(TestCase):
    """L{installed_providers}."""

    def test_order_and_faults(self) -> None:
        """By name; what cannot be loaded, or is nothing to call, is left out."""

        class Entry:
            def __init__(self, name: str, work: Any) -> None:
                self.name, self.work = name, work

            def load(self) -> Any:
                if isinstance(self.work, Exception):
                    raise self.work
                return self.work

        entries = [Entry("b", str), Entry("c", ImportError("x")), Entry("a", len), Entry("d", 5)]
        found = installed_providers(lambda group: entries)  # type: ignore[arg-type, return-value]
        self.assertEqual([name for name, _ in found.transcribers()], ["a", "b"])
        self.assertEqual([name for name, _ in found.synthesizers()], ["a", "b"])

"""Starting workers in directories of all kinds."""

from __future__ import annotations

from twisted.internet.defer import gatherResults

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase

STRANGE = "-my 100% 'Prüfung' $HOME \"ζ\" 🦄 [x] %n;a"


class Directories(SystemCase):
    """C{workers start}."""

    @deferred
    async def test_at_the_same_time(self) -> None:
        """Many starts of one directory, by its name and by a link, make one worker."""
        await self.system.start_daemon()
        directory = self.system.project("alpha")
        link = self.system.projects / "link"
        link.symlink_to(directory)
        places = [directory, link, directory / ".." / "alpha", directory]
        done = await gatherResults(
            [self.system.cli("workers", "start", str(p), "--no-wait", "--json") for p in places]
        )
        self.assertEqual(
            sorted(each.json()["status"] for each in done), ["accepted", *["rejected"] * 3]
        )
        thread = await self.system.thread_of("alpha")
        again = await self.refused("start", str(directory))
        self.assertIn("already", again["message"])
        await self.asked("only you", thread)
        self.assertEqual((len(self.system.workers()), len(self.system.pis())), (1, 1))
        self.assertEqual(self.rows("SELECT count(*) FROM specs"), [1])
        self.assertEqual(len(self.system.telegram.chat.threads), 2)

    @deferred
    async def test_strange_name(self) -> None:
        """Spaces, quotes, C{%}, C{$} and letters of all kinds: Pi works right there, also after a
        crash and a stop."""
        await self.system.start_daemon()
        directory = self.system.project(STRANGE)
        done = await self.system.cli("workers", "start", str(directory))
        self.assertEqual(done.code, 0, done.out + done.err)
        ((name, recorded),) = self.rows("SELECT name, directory FROM specs")
        self.assertEqual(recorded, str(directory))
        thread = await self.system.thread_of(name)
        self.assertEqual((await self.private(name))["directory"], str(directory))
        self.system.say("[[tool bash 'pwd && touch here']]", thread)
        await self.system.answer(f"The tool said: {directory}", thread)
        self.assertTrue((directory / "here").exists())
        self.system.workers()[0].kill()
        await self.asked("after a crash", thread)
        await self.worker("stop", name)
        await self.worker("start", str(directory))
        request = await self.asked("after a stop", thread)
        self.assertEqual(len(request.users), 3)
        self.assertEqual(self.rows("SELECT name, directory FROM specs"), [(name, str(directory))])

"""C{pi-telegram demo}, as a person with a fresh checkout meets it."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import psutil
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.blocks import visible_text
from pitelegram.testing.pienv import pi_command
from pitelegram.testing.system import PATIENCE
from tests.system import SystemCase

SNAPSHOT = re.compile(r"event: snapshot\ndata: (.*)\n")


class Page:
    """The chat page's own requests.

    @param address: as the demo printed it.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    def snapshot(self) -> dict[str, Any]:
        """Return what a page shows that is opened now."""
        with urllib.request.urlopen(self._address + "events", timeout=10) as stream:
            text = ""
            while not (found := SNAPSHOT.search(text)):
                text += stream.readline().decode()
        return json.loads(found[1])  # type: ignore[no-any-return]

    def act(self, action: str, **arguments: Any) -> None:
        """Do what a person does."""
        request = urllib.request.Request(
            self._address + "do",
            json.dumps({"action": action, **arguments}).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=10).close()

    def thread(self, title: str) -> int | None:
        """Return the id of a Thread."""
        for thread in self.snapshot()["threads"]:
            if thread["name"] == title:
                return thread["message_thread_id"]  # type: ignore[no-any-return]
        return None

    def says(self, text: str, thread: int | None) -> bool:
        """Whether that message stands there."""
        return any(
            _text(message) == text and message.get("message_thread_id") == thread
            for message in self.snapshot()["messages"]
        )


def _text(message: dict[str, Any]) -> str:
    rich = message.get("rich_message")
    return visible_text(rich["blocks"]) if rich else str(message.get("text"))


class Demo(SystemCase):
    """The demo in a directory of its own."""

    def demo_processes(self) -> list[psutil.Process]:
        """Everything that lives on a demo's throw-away directory."""
        found = []
        for process in psutil.process_iter():
            try:
                directory = process.environ().get("PI_CODING_AGENT_DIR", "")
                if directory.startswith(str(self.temporary)):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def setUp(self) -> None:
        """Give it a directory for what is temporary, and a provider it must not use."""
        super().setUp()
        self.temporary = Path(tempfile.mkdtemp(prefix="d", dir=self.base)).resolve()
        self.system.extra_environment = {
            "TMPDIR": str(self.temporary),
            "PI_TELEGRAM_PI": shlex.join(pi_command()),
            "OPENAI_API_KEY": "a-key-that-must-not-be-used",
        }

    @deferred
    async def test_first_steps(self) -> None:
        """The address is printed, a worker answers, the panel opens; Ctrl-C leaves nothing."""
        demo = self.system.run("demo")
        self.addCleanup(lambda: [process.kill() for process in self.demo_processes()])
        self.addCleanup(lambda: None if demo.finished.fired else demo.kill())
        out = await demo.when_says("Ctrl-C ends everything")
        found = re.search(r"Chat page: +(\S+)", out)
        assert found is not None, out
        page = Page(found[1])

        @deferred
        async def until(condition: Any, what: str) -> Any:
            end = self.system.reactor.seconds() + PATIENCE
            while not (value := await deferToThread(condition)):
                if self.system.reactor.seconds() > end:
                    shown = await deferToThread(page.snapshot)
                    raise AssertionError(f"{what}:\n{shown['messages']}\n{demo.out}{demo.err}")
                await deferLater(self.system.reactor, 0.1, lambda: None)
            return value

        thread = await until(lambda: page.thread("A"), "no worker's Thread")
        await deferToThread(page.act, "send", text="hello", thread=thread)
        await until(lambda: page.says("You said: hello", thread), "no answer")
        await deferToThread(page.act, "send", text="/daemon")
        await until(lambda: page.says("🛠️ Daemon control", None), "no panel")
        self.assertTrue(self.demo_processes())
        for process in self.demo_processes():
            self.assertNotIn("a-key-that-must-not-be-used", str(process.environ()))
        done = await demo.kill(signal.SIGINT)
        self.assertEqual(done.code, 0, done.out + done.err)
        self.assertEqual(list(self.temporary.glob("pi-telegram-*")), [])
        await self.system.until(lambda: not self.demo_processes(), "processes are left")

    @deferred
    async def test_taken_port(self) -> None:
        """A port where somebody listens is named in one line, and nothing is left behind."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port = listener.getsockname()[1]
            for command in ("demo", "sandbox"):
                done = await self.system.run(command, "--port", str(port)).finished.when()
                self.assertEqual(done.code, 1)
                right = f"pi-telegram: port {port} is taken; give another one with --port\n"
                self.assertEqual((done.out, done.err), ("", right))
        self.assertEqual(list(self.temporary.iterdir()), [])

"""The demo: a Telegram, a model and the daemon on a throw-away agent directory, all on this machine."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import SystemRandom
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.errors import PiTelegramError
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.sandbox.model import ScriptedModel
from pitelegram.sandbox.server import SandboxTelegram

PROJECT = "hello-pi"

WELCOME = """\
Chat page:  {page}

A first worker, {project}, is being started in a throw-away directory.
Open the page, choose its Thread on the left (A: Threads are called by letters) and write
something: its model is scripted and repeats what you say. [[long 9000]] or [[tool bash 'ls -la']]
make it do more; /daemon in All opens the control panel. Ctrl-C ends everything and removes the
directory.
"""


class Demo(Service):
    """Sandbox, scripted model and daemon as one service.

    No configured provider is used: the agent directory is new and knows the scripted model only.

    @param options: the daemon's options; C{port} is the page's.
    @param make_daemon: see L{pitelegram.assembly.make_daemon}.
    """

    log = Logger()

    def __init__(self, options: Mapping[str, Any], make_daemon: Callable[..., Any]) -> None:
        self._options = options
        self._make_daemon = make_daemon
        self._out = sys.stdout
        self._daemon: Any = None
        self._base: Path | None = None
        self.name = "demo"

    @property
    def exit_code(self) -> int:
        """The daemon's."""
        return 1 if self._daemon is None else int(self._daemon.exit_code)

    def startService(self) -> None:
        """Start everything and print the address of the page."""
        from twisted.internet import reactor

        super().startService()
        self._telegram = SandboxTelegram(
            reactor, reactor, SystemRandom(), port=self._options.get("port") or 0
        )
        self._model = ScriptedModel(reactor, reactor)  # type: ignore[arg-type]
        self._telegram.startService()
        self._model.startService()
        self._base = Path(tempfile.mkdtemp(prefix="pi-telegram-demo-"))
        project = self._base / PROJECT
        project.mkdir()
        self._daemon = self._make_daemon(self._daemon_options(), self._environ())
        self._daemon.startService()
        print(WELCOME.format(page=self._telegram.page_url, project=PROJECT), file=self._out)
        self._out.flush()
        starting: Deferred[None] = self._start_worker(reactor, project)
        starting.addErrback(self._failed)

    @deferred
    async def stopService(self) -> None:
        """Stop the workers and everything else, and remove the directory."""
        Service.stopService(self)
        daemon = self._daemon
        if daemon is not None:
            if daemon.leader is not None:
                for view in daemon.leader.supervisor.views():
                    await self._stop_worker(daemon, view.spec_id)
            await daemon.stopService()
        await self._model.stopService()
        await self._telegram.stopService()
        if self._base is not None:
            shutil.rmtree(self._base, ignore_errors=True)

    @deferred
    async def _start_worker(self, reactor: Any, project: Path) -> None:
        while self.running and (self._daemon.leader is None or not self._daemon.leader.running):
            await sleep(reactor, 0.1)
        if self.running:
            await self._daemon.leader.supervisor.start(str(project), "operator")

    @deferred
    async def _stop_worker(self, daemon: Any, spec_id: str) -> None:
        try:
            await daemon.leader.supervisor.stop(spec_id, "operator")
        except PiTelegramError as error:
            self.log.warn("a worker was not stopped: {why}", why=str(error))

    def _failed(self, failure: Failure) -> None:
        print(f"The first worker did not start: {failure.getErrorMessage()}", file=self._out)

    def _daemon_options(self) -> dict[str, Any]:
        assert self._base is not None
        agent_dir = self._base / "agent"
        self._model.write_models_json(agent_dir)
        bot = self._telegram.chat.world.bot
        settings = agent_dir / "telegram.json"
        profile = {
            "botToken": self._telegram.token,
            "botId": bot["id"],
            "botUsername": bot["username"],
            "allowedUserId": self._telegram.chat.owner["id"],
        }
        settings.write_text(json.dumps({"profiles": {"default": profile}}))
        settings.chmod(0o600)
        return {
            **self._options,
            "agent_dir": str(agent_dir),
            "profile": "default",
            "api_root": self._telegram.api_root,
            "root": [str(self._base)],
            "proxy": None,
            "control_socket": None,
            "socket_group": None,
        }

    def _environ(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.endswith(("_API_KEY", "_BASE_URL"))
        }
        return {**kept, "PI_OFFLINE": "1", "PI_TELEMETRY": "0"}

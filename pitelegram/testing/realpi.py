"""A test case with the real Pi and a scripted model."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from twisted.trial.unittest import TestCase

from pitelegram.kernel.deferring import deferred
from pitelegram.pi.rpc import RpcPiHost
from pitelegram.sandbox.model import ScriptedModel
from pitelegram.testing.pienv import make_agent_dir, pi_command, pi_environment


class RealPiCase(TestCase):
    """Gives each test a scripted model, an agent directory and a project; stops what it started."""

    timeout = 60

    def setUp(self) -> None:
        """Start the model."""
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.base = Path(self.mktemp()).resolve()
        self.project = self.base / "project"
        self.project.mkdir(parents=True)
        self.model = ScriptedModel(self.reactor, self.reactor)
        self.model.startService()
        self.agent_dir = make_agent_dir(self.base, self.model)
        self.hosts: list[RpcPiHost] = []

    @deferred
    async def tearDown(self) -> None:
        """End every Pi, then the model."""
        for host in self.hosts:
            await host.stop(10.0)
        await self.model.stopService()

    def make_host(self, environment: Any = None, **options: Any) -> RpcPiHost:
        """A fresh host in the project."""
        host = RpcPiHost(
            options.pop("command", None) or pi_command(),
            options.pop("directory", self.project),
            pi_environment(self.agent_dir, environment),
            self.reactor,
            self.reactor,
            **options,
        )
        self.hosts.append(host)
        return host

    def open_gate(self, host: Any, name: str) -> None:
        """Open a gate of the model."""
        self.model.open_gate(name)

    def kill(self, host: Any) -> None:
        """Kill that Pi."""
        os.kill(host.pid, signal.SIGKILL)

"""A control server and the command line beside it."""

import json
import os
import shutil
import tempfile
from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import TestCase

from pitelegram.control.http import ControlServer
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.paths import Paths
from pitelegram.store.commands import Commands
from pitelegram.testing.control import FakeDaemon
from pitelegram.testing.processes import run_cli
from pitelegram.testing.stores import leader_database


class CommandCase(TestCase):
    """Base: an agent directory of its own, and the command line as a process."""

    timeout = 60

    def setUp(self):
        """Make the directory; socket paths must be short."""
        from twisted.internet import reactor

        self.reactor = reactor
        self.agent = Path(tempfile.mkdtemp(prefix="pi-telegram-test-"))
        self.addCleanup(shutil.rmtree, self.agent, True)
        self.paths = Paths(self.agent)
        self.paths.prepare()

    def cli(self, *arguments, **how):
        """Run C{pi-telegram} about this agent directory."""
        environ = {"PI_CODING_AGENT_DIR": str(self.agent), **how.pop("environ", {})}
        return run_cli(self.reactor, *arguments, environ=environ, **how)

    def configure(self, document):
        """Write C{telegram.json}."""
        self.paths.telegram_json.write_text(json.dumps(document))
        self.paths.telegram_json.chmod(0o600)

    def configured(self):
        """Read C{telegram.json}."""
        return json.loads(self.paths.telegram_json.read_text())

    def own(self, pid=None, birth=None, **members):
        """Write an owner record, of this process unless told otherwise."""
        from pitelegram.kernel.birth import boot_id, process_birth

        pid = os.getpid() if pid is None else pid
        record = {
            "pid": pid,
            "role": "daemon",
            "processBirthId": process_birth(pid) if birth is None else birth,
            "bootId": boot_id(),
            **members,
        }
        self.paths.owners.write_text(json.dumps({"default": record}))
        self.paths.owners.chmod(0o600)


class ServedCase(CommandCase):
    """Base: a control server with a fake daemon at the default path."""

    def setUp(self):
        """Start it."""
        super().setUp()
        self.daemon = FakeDaemon()
        database = leader_database(Clock())
        self.addCleanup(database.stopService)
        self.server = self.serve(self.paths.control_socket, Commands(database, "host"))

    def serve(self, path, commands):
        """Start a server at C{path}."""
        server = ControlServer(path, self.daemon, commands, self.reactor, self.reactor)
        server.startService()
        self.addCleanup(lambda: server.stopService() if server.running else None)
        return server

    @deferred
    async def envelope(self, *arguments, code=0, **how):
        """Run a command with C{--json}; returns its envelope."""
        ended = await self.cli(*arguments, "--json", **how)
        self.assertEqual(ended.code, code, ended.err)
        return json.loads(ended.out)

"""Building the worker process of a managed Pi from its command line."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger, globalLogBeginner

from pitelegram.bus.follower import BusClient
from pitelegram.errors import LaunchFailed, StoreError, StoreFull, UnsafeFile
from pitelegram.extension import SHIM
from pitelegram.ids import ProcessBirth, managed_binding
from pitelegram.kernel.birth import own_birth
from pitelegram.kernel.flock import FileLock
from pitelegram.kernel.lean import end_start
from pitelegram.kernel.logs import ConsoleObserver, at_level
from pitelegram.kernel.paths import Paths
from pitelegram.kernel.proctree import MARK_VARIABLE
from pitelegram.kernel.redact import SECRETS
from pitelegram.pi.rpc import RpcPiHost
from pitelegram.pi.sessions import session_home
from pitelegram.store.database import Database
from pitelegram.store.inbox import Inbox
from pitelegram.store.outgoing import Outgoing
from pitelegram.worker.agenttools import LARGEST, AgentTools
from pitelegram.worker.endpoint import DaemonEndpoint
from pitelegram.worker.handlers import InboundHandlers
from pitelegram.worker.identity import WorkerIdentity
from pitelegram.worker.outbound import OutboundHandlers
from pitelegram.worker.parts import WorkerParts
from pitelegram.worker.plugins import installed_providers
from pitelegram.worker.service import EXIT_LATER, EXIT_PI_ENDED, EXIT_REFUSED, WorkerService
from pitelegram.worker.sessions import SessionChoice, Sessions
from pitelegram.worker.toollink import ToolLink

CREDENTIAL_FD = 3
LOCK_FD = 4
CREDENTIAL_BYTES = 32
BUILD = "pi-telegram"

_OWN_VARIABLES = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
"""What only the worker's own interpreter needs."""

_SESSION_VARIABLES = (
    "PI_SESSION_ID",
    "PI_SESSION_FILE",
    "PI_PROVIDER",
    "PI_MODEL",
    "PI_REASONING_LEVEL",
)

LINK_VARIABLE = "PI_TELEGRAM_WORKER_LINK"

_log = Logger()


def shim_arguments(agent_dir: Path | str) -> tuple[str, ...]:
    """Return what makes Pi load our extension; nothing where it is installed for every Pi."""
    installed = Path(agent_dir) / "extensions" / "pi-telegram"
    return () if installed.exists() else ("-e", str(SHIM))


def pi_environment(inherited: Mapping[str, str], options: Namespace) -> dict[str, str]:
    """Return Pi's environment: the worker's own, which is the allow-list already, and the marks.

    @param inherited: this process's environment.
    """
    environment = {
        name: value
        for name, value in inherited.items()
        if name not in _OWN_VARIABLES and name not in _SESSION_VARIABLES
    }
    environment.update(
        {
            "PI_CODING_AGENT_DIR": str(options.agent_dir),
            "PI_TELEGRAM_DAEMON_WORKER": "1",
            "PI_TELEGRAM_FOLLOWER_OWNER_ID": f"worker:{options.name}",
            MARK_VARIABLE: options.spawn_id,
        }
    )
    return environment


def read_credential() -> bytes | None:
    """Read the spawn's credential from its pipe and close it; None if it has not its length."""
    try:
        with os.fdopen(CREDENTIAL_FD, "rb") as pipe:
            secret = pipe.read(CREDENTIAL_BYTES + 1)
    except OSError:
        return None
    return secret if len(secret) == CREDENTIAL_BYTES else None


def take_lock(path: Path) -> FileLock | None:
    """Take over the inherited lock of the binding, or take it; None when somebody else has it."""
    try:
        inherited = os.fstat(LOCK_FD)
    except OSError:
        return FileLock.try_acquire(path)
    try:
        named = os.stat(path, follow_symlinks=False)
    except OSError:
        return FileLock.try_acquire(path)
    if (inherited.st_dev, inherited.st_ino) != (named.st_dev, named.st_ino):
        return FileLock.try_acquire(path)
    return FileLock.adopt(LOCK_FD)


def run(options: Namespace) -> int:
    """Run one managed worker to its end and return the exit code."""
    _start_log(options.log_level)
    secret = read_credential()
    if secret is None:
        _log.error("no spawn credential was given; managed workers are started by the daemon")
        return EXIT_REFUSED
    paths = Paths(options.agent_dir, options.profile)
    binding = managed_binding(options.spec_id)
    try:
        paths.prepare()
        lock = take_lock(paths.worker_lock(binding))
    except UnsafeFile as error:
        _log.error("{reason}", reason=str(error))
        return EXIT_PI_ENDED
    if lock is None:
        _log.warn("another process of this worker still runs")
        return EXIT_LATER
    from twisted.internet import reactor

    database = Database(paths.worker_database(binding), "worker", reactor, reactor)
    try:
        database.open()
    except (StoreError, UnsafeFile) as error:
        _log.error("the worker's store cannot be opened: {reason}", reason=str(error))
        return EXIT_LATER if isinstance(error, StoreFull) else EXIT_PI_ENDED
    service = build(options, paths, database, lock, secret, reactor)
    return _run_reactor(reactor, service, database)


def build(
    options: Namespace,
    paths: Paths,
    database: Database,
    lock: FileLock,
    secret: bytes,
    reactor: Any,
) -> WorkerService:
    """Compose the worker around an open store and a held lock; starts nothing."""
    inbox, random = Inbox(database), SystemRandom()
    endpoint = DaemonEndpoint(paths=paths, secret=secret)
    identity = _identity(options)
    environment = pi_environment(os.environ, options)
    plugins = installed_providers()
    in_thread = partial(deferToThreadPool, reactor, reactor.getThreadPool())
    service: WorkerService
    sessions = Sessions(
        paths,
        inbox,
        identity.directory,
        identity.roots,
        lambda: service.parts.changed(),
        session_home(paths.agent_dir, pi_environment(os.environ, options)),
        lambda: _process_of(host),
    )
    command, choice = _choose(options, sessions)
    link = paths.link_socket(managed_binding(options.spec_id))
    host = _host(options, command, choice, lock, endpoint, reactor, link)
    service = WorkerService(
        reactor,
        inbox,
        lambda ended, stop: WorkerParts(
            reactor,
            random,
            inbox,
            Outgoing(database),
            host,
            sessions,
            identity,
            ended,
            stop,
            in_thread=in_thread,
            handlers=lambda entries: InboundHandlers(
                reactor, identity.directory, environment, entries, plugins
            ),
            outbound=lambda entries: OutboundHandlers(
                reactor,
                identity.directory,
                environment,
                entries,
                identity.files.with_suffix(".speech"),
                plugins,
            ),
        ),
        lambda parts: BusClient(
            endpoint,
            f"worker:{options.spec_id}",
            parts.follower,
            reactor,
            reactor,
            random,
            BUILD,
            os.urandom,
            unauthorized=lambda error: service.credential_refused(error),
        ),
        choice,
        damaged=database.recovered is not None,
        tool_link=lambda parts: ToolLink(
            reactor, link, lambda: host.pid, _tools(parts, inbox, identity, in_thread)
        ),
    )
    return service


def _tools(
    parts: WorkerParts,
    inbox: Inbox,
    identity: WorkerIdentity,
    in_thread: Callable[..., Deferred[Any]],
) -> AgentTools:
    """Return what the agent's own tools do."""
    return AgentTools(
        inbox,
        parts.outgoing,
        parts.files,
        identity.directory,
        in_thread,
        lambda: bool(parts.preferences.get("workspaceOnly")),
        lambda: any(each.row.source == "telegram" for each in parts.queue.hands.book.open),
        parts.composer.kick,
        parts.settler.now_ms,
        lambda: max(LARGEST, parts.preferences.get("downloadLimit") or 0),
    )


def _host(
    options: Namespace,
    command: list[str],
    choice: SessionChoice | LaunchFailed,
    lock: FileLock,
    endpoint: DaemonEndpoint,
    reactor: Any,
    link: Path,
) -> RpcPiHost:
    return RpcPiHost(
        command,
        Path(options.directory),
        {**pi_environment(os.environ, options), LINK_VARIABLE: str(link)},
        reactor,
        reactor,
        name=options.name,
        extra_args=shim_arguments(options.agent_dir),
        session_file=choice.file if isinstance(choice, SessionChoice) else None,
        lock_fd=lock.fd,
        redact=SECRETS.redact,
        umask=options.pi_umask,
        spare=endpoint.owns,
    )


def _identity(options: Namespace) -> WorkerIdentity:
    paths = Paths(options.agent_dir, options.profile)
    return WorkerIdentity(
        spec_id=options.spec_id,
        spawn_id=options.spawn_id,
        name=options.name,
        directory=Path(options.directory),
        birth=own_birth(),
        uploads=paths.uploads_of,
        files=paths.worker_files(managed_binding(options.spec_id)),
        roots=[Path(root) for root in options.root],
    )


def _process_of(host: RpcPiHost) -> ProcessBirth | None:
    if host.pid is None or host.birth is None:
        return None
    return ProcessBirth(host.pid, host.birth)


def _choose(
    options: Namespace, sessions: Sessions
) -> tuple[list[str], SessionChoice | LaunchFailed]:
    """Return Pi's command and session, or why neither is of use."""
    try:
        command = shlex.split(options.pi)
    except ValueError as error:
        reason = f"workers.command cannot be read: {error}"
        return [], LaunchFailed(reason, permanent=True)
    try:
        return command, sessions.choose(options.session, options.fresh)
    except LaunchFailed as error:
        return command, error


def _start_log(level: str) -> None:
    observer = at_level(ConsoleObserver(sys.stdout), level)
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False)


def _run_reactor(reactor: Any, service: WorkerService, database: Database) -> int:
    codes: list[int] = []

    def finished(code: int) -> None:
        codes.append(code)
        if reactor.running:
            reactor.callLater(0, reactor.stop)

    def failed(failure: Any) -> None:
        _log.failure("the worker cannot start", failure)
        service.finished.fire(EXIT_PI_ENDED)

    def begin() -> None:
        service.startService().addErrback(failed)

    def end() -> Any:
        """SIGTERM, or the end of the service itself."""
        stopping = service.stopService() if service.running else service.finished.when()
        return stopping.addBoth(lambda _: database.close())

    service.finished.when().addCallback(finished)
    reactor.callWhenRunning(begin)
    reactor.addSystemEventTrigger("before", "shutdown", end)
    end_start()
    reactor.run()
    return codes[0] if codes else EXIT_PI_ENDED

"""The one composer: from options to services.  Nothing here opens, locks or starts anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from random import SystemRandom
from typing import Any

from twisted.application.service import IService

from pitelegram.control.listening import check_place
from pitelegram.daemon.service import Daemon
from pitelegram.errors import NotConfigured
from pitelegram.kernel.deferring import spawn
from pitelegram.kernel.paths import Paths
from pitelegram.leader import LeaderService
from pitelegram.ownership.ownership import check
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.model import Settings
from pitelegram.settings.options import RunOptions, resolve_options
from pitelegram.supervisor.environment import EnvironmentRules
from pitelegram.supervisor.launch import Launcher
from pitelegram.supervisor.parts import Parts
from pitelegram.supervisor.roots import Roots
from pitelegram.supervisor.supervisor import Supervisor


def check_before_start(options: Mapping[str, Any]) -> None:
    """Look, without changing anything, whether a daemon may start.

    @param options: see L{make_daemon}.
    @raise NotConfigured: no usable token.
    @raise pitelegram.errors.LiveOwner: another live process owns the transport.
    @raise pitelegram.errors.ConfigError: C{telegram.json} cannot be understood, or the control
        socket's group is none of this process's.
    @raise pitelegram.errors.UnsafeFile: the control socket's directory is open to others.
    """
    paths = _paths(options)
    file = SettingsFile(paths, os.environ)
    settings = file.load()
    bot_id = settings.require_token().reveal().partition(":")[0]
    if not bot_id.isdecimal():
        raise NotConfigured("the bot token is malformed; run pi-telegram setup")
    socket = options["control_socket"]
    if socket is not None:
        check_place(Path(socket), options["socket_group"])
    check(paths, file.twins(bot_id))


def make_daemon(options: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> IService:
    """Return the daemon.

    @param options: the contract's option names with underscores, after precedence
        (L{pitelegram.tap.Options.resolved}).
    """
    from twisted.internet import reactor

    paths = _paths(options)
    return Daemon(paths, run_options(options), environ, make_supervisor, reactor)  # type: ignore[return-value]


def run_options(options: Mapping[str, Any]) -> RunOptions:
    """Return options after precedence as a record; neither environment nor file counts any more."""
    dashed = {name.replace("_", "-"): value for name, value in options.items()}
    roots = tuple(options["root"])  # none given means that none is left, not the default
    return resolve_options(dashed, {}, Settings(profile=options["profile"], workers_roots=roots))


def make_supervisor(leader: LeaderService, daemon: Daemon) -> Supervisor:
    """Return the supervisor of a leader's workers."""
    ground, run = leader.ground, daemon.options
    roots = Roots(run.roots)

    watcher = ground.owner.watcher
    at_start = watcher.settings

    def rules() -> EnvironmentRules:
        return environment_rules(watcher.look(), at_start, ground.paths, ground.bot_id)

    launcher = Launcher(
        ground.reactor,
        ground.reactor,
        ground.paths,
        run.pi_command,
        roots,
        daemon.environ,
        rules,
        log_level=run.log_level,
        pi_umask=daemon.operator_umask,
    )
    parts = Parts(
        specs=leader.specs,
        leadership=leader.leadership,
        registry=leader.registry,
        notices=leader.delivery.notices,
        launcher=launcher,
        paths=ground.paths,
        reactor=ground.reactor,
        random=SystemRandom(),
    )
    supervisor = Supervisor(parts, leader.threads, roots, leader.give_up)
    supervisor.subscribe(lambda view: _worker_moved(leader, view))
    return supervisor


def environment_rules(
    settings: Settings, at_start: Settings, paths: Paths, bot_id: int
) -> EnvironmentRules:
    """Return what a worker's environment may hold.

    @param settings: as they are now.
    @param at_start: as they were when the daemon started, whose token is the one in use.
    """
    known = [
        token for each in (at_start, settings) for token in (each.bot_token, *each.other_tokens)
    ]
    return EnvironmentRules(
        agent_dir=str(paths.agent_dir),
        token_digest=at_start.require_token().digest(),
        pass_env=settings.workers_pass_env,
        extra=settings.workers_env,
        tokens=tuple({token.reveal() for token in known if token is not None}),
        token_variables=at_start.token_variables | settings.token_variables,
        bot_id=bot_id,
    )


def make_demo(options: Mapping[str, Any]) -> IService:
    """Return sandbox, scripted model and daemon on a throw-away agent directory."""
    from pitelegram.daemon.demo import Demo

    return Demo(options, make_daemon)  # type: ignore[return-value]


def _worker_moved(leader: LeaderService, view: Any) -> None:
    """A worker changed its state: what waits for it may go, what it left is looked at."""
    leader.router.kick(view.binding_key)
    leader.threads.kick()
    if view.state in ("spawning", "adopting"):
        spawn(leader.log, "the key of the installation", leader.continuity.prepare())
    if view.state in ("stopped", "failed"):
        spawn(leader.log, "noting inactive Threads", leader.janitor.note())
        spawn(leader.log, "looking into a worker's file", leader.orphans.examine(view.binding_key))


def _paths(options: Mapping[str, Any]) -> Paths:
    return Paths(options["agent_dir"], options["profile"])


__all__ = ["RunOptions", "check_before_start", "make_daemon", "make_demo"]

"""How the parts of a leader are put together: one function a part, in the order they need each other.

Each takes the leader as far as it is made; what a part asks of a later one, it asks when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.threads import deferToThreadPool

from pitelegram.botapi.longpoll import LongPoll
from pitelegram.bus.leader import BusServer
from pitelegram.delivery.orphans import Orphans
from pitelegram.delivery.service import DeliveryService
from pitelegram.leader.rescuing import compose_left, render_options
from pitelegram.ownership.continuity import Continuity
from pitelegram.ownership.installation import Installation
from pitelegram.panel.interfaces import IStatusSource
from pitelegram.panel.panel import Panel
from pitelegram.panel.switches import CleanupSwitches
from pitelegram.panel.titlemodes import TitleModes
from pitelegram.routing.admission import Admission
from pitelegram.routing.busleader import BusLeader
from pitelegram.routing.credentials import Credentials
from pitelegram.routing.desk import Desk
from pitelegram.routing.inactivity import Inactivity
from pitelegram.routing.pairing import Pairing
from pitelegram.routing.preferences import WorkerSettings
from pitelegram.routing.registry import Registry
from pitelegram.routing.router import Router
from pitelegram.routing.turns import Turns
from pitelegram.routing.weights import SharedActions
from pitelegram.routing.witness import Witness
from pitelegram.store.retention import Retention
from pitelegram.threads.attaching import Attaching
from pitelegram.threads.cleanup import Cleanup
from pitelegram.threads.janitor import Janitor
from pitelegram.threads.leaving import Leaving
from pitelegram.threads.provision import Threads

if TYPE_CHECKING:
    from pitelegram.leader.service import LeaderService


def make_continuity(leader: LeaderService) -> Continuity:
    """Make the keeper of the workers' public keys."""
    ground = leader.ground
    return Continuity(
        Installation(data=ground.paths.data, random_bytes=ground.random_bytes),
        ground.paths.profile,
        leader.leadership,
        ground.random_bytes,
        ground.monotonic,
    )


def make_retention(leader: LeaderService) -> Retention:
    """Make what forgets old rows."""
    ground = leader.ground
    return Retention(
        ground.reactor,
        ground.database,
        leader.journal,
        leader.outbox,
        leader.bindings,
        leader.leadership,
        ground.monotonic,
    )


def make_threads(leader: LeaderService) -> Threads:
    """Make the keeper of Threads."""
    ground = leader.ground
    settings = ground.owner.watcher
    return Threads(
        ground.api,
        leader.bindings,
        leader.leadership,
        ground.reactor,
        ground.random,
        ground.owner.owner,
        running=lambda: [f.binding_key for f in leader.registry.followers()],
        receiving=lambda: bool(leader.poll.snapshot()["receiving"]),
        display_mode=lambda: settings.settings.thread_display_mode,
        changed=leader.places.forget,
    )


def make_delivery(leader: LeaderService) -> DeliveryService:
    """Make the outbox's service."""
    ground = leader.ground
    settings = ground.owner.watcher
    pool = ground.reactor.getThreadPool()

    def run_blocking(work: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        return deferToThreadPool(ground.reactor, pool, work, *arguments)

    return DeliveryService(
        ground.reactor,
        ground.random,
        leader.outbox,
        leader.bindings,
        leader.leadership,
        ground.api,
        leader.gate,
        leader.loss,
        ground.paths.spool,
        run_blocking=run_blocking,
        resend=lambda: settings.settings.outbox_ambiguous == "resend",
        allowed=lambda chat_id: chat_id == ground.owner.owner(),
        destination=leader.threads.destination,
        closed=leader.threads.found_closed,
    )


def make_orphans(leader: LeaderService) -> Orphans:
    """Make what looks into the files of workers that are gone."""
    ground = leader.ground
    return Orphans(
        ground.reactor,
        ground.paths,
        leader.bindings,
        leader.workers,
        leader.delivery.intake,
        leader.delivery.notices,
        leader.binding_name,
        lambda database, files: compose_left(
            database, files, render_options(ground.owner.watcher.settings)
        ),
    )


def make_registry(leader: LeaderService) -> Registry:
    """Make the registry of followers."""
    ground = leader.ground
    return Registry(
        ground.epoch,
        leader.bindings,
        leader.places,
        leader.threads,
        leader.workers,
        ground.reactor,
        ground.random_bytes,
        Witness(leader.specs).check,
        lambda binding_key: leader.cleanups.is_claimed(binding_key),
    )


def make_bus(leader: LeaderService) -> BusServer:
    """Make the bus's server with what answers its commands."""
    ground = leader.ground
    answering = BusLeader(
        epoch=ground.epoch,
        profile=ground.paths.profile,
        registry=leader.registry,
        places=leader.places,
        owners=leader.owners,
        bindings=leader.bindings,
        api=ground.api,
        gate=leader.gate,
        delivery=leader.delivery.intake,
        uploads_of=ground.paths.uploads_of,
        downloads=ground.paths.downloads,
        random_bytes=ground.random_bytes,
        threads=leader.threads,
        titles=make_title_modes(leader),
        settings=make_worker_settings(leader),
        loss=leader.loss,
        turns=Turns(leader.gate, ground.reactor),
        quitting=lambda binding_key: leader.leaving.quit(binding_key),
        actions=SharedActions(ground.reactor),
    )
    return BusServer(
        ground.paths.bus_socket,
        Credentials(leader.specs, ground.epoch, ground.secret),
        answering,
        ground.reactor,
        ground.reactor,
        ground.random_bytes,
        ground.build,
    )


def make_cleanup(leader: LeaderService, switches: CleanupSwitches) -> Cleanup:
    """Make what deletes inactive Threads."""
    ground = leader.ground
    return Cleanup(
        api=ground.api,
        store=leader.cleanups,
        bindings=leader.bindings,
        observers=leader.threads.observers,
        protects=leader.inactivity.protects,
        dismiss=leader.threads.dismiss,
        missing=leader.threads.kick,
        fresh_id=lambda: ground.random_bytes(8).hex(),
        now_ms=ground.database.now_ms,
        read_switches=switches.read,
        write_switch=switches.flip,
        clock=ground.reactor,
    )


def make_leaving(leader: LeaderService, switches: CleanupSwitches) -> Leaving:
    """Make what deletes Threads of attached workers that quit."""
    ground = leader.ground
    return Leaving(
        ground.reactor,
        leader.bindings,
        leader.cleanup,
        leader.inactivity.lives,
        switches.trusted,
        ground.database.now_ms,
    )


def make_switches(leader: LeaderService) -> CleanupSwitches:
    """Make the cleanup switches of the settings file."""
    ground = leader.ground
    return CleanupSwitches(ground.owner.file, ground.owner.watcher, ground.reactor)


def make_inactivity(leader: LeaderService) -> Inactivity:
    """Make what proves that a binding has no living process."""
    ground = leader.ground
    return Inactivity(
        ground.paths, leader.bindings, leader.workers, leader.registry, ground.birth_lives
    )


def make_janitor(leader: LeaderService, switches: CleanupSwitches) -> Janitor:
    """Make what looks for inactive Threads now and then."""
    ground = leader.ground
    return Janitor(
        ground.reactor,
        leader.bindings,
        leader.cleanup,
        leader.inactivity.lives,
        switches.trusted,
        leader.delivery.notices,
        ground.database.now_ms,
    )


def make_title_modes(leader: LeaderService) -> TitleModes:
    """Make what chooses the display mode in the settings file."""
    ground = leader.ground
    owner = ground.owner
    return TitleModes(owner.file, owner.watcher, ground.reactor, ground.paths.profile)


def make_worker_settings(leader: LeaderService) -> WorkerSettings:
    """Make what tells workers the settings."""
    ground = leader.ground
    return WorkerSettings(
        ground.owner.file, ground.owner.watcher, ground.reactor, lambda: ground.api.download_limit
    )


def make_panel(leader: LeaderService, status: IStatusSource) -> Panel:
    """Make the panel."""
    return Panel(
        api=leader.ground.api,
        gate=leader.gate,
        supervisor=leader.supervisor,
        bindings=leader.bindings,
        delivery=leader.delivery.intake,
        notices=leader.delivery.notices,
        source=status,
        directories=leader.supervisor.directories,
        pickers=leader.stores.pickers,
        attaching=Attaching(leader.threads, leader.bindings, leader.stores.attachments),
        cleanup=leader.cleanup,
        titles=make_title_modes(leader),
    )


def make_desk(leader: LeaderService) -> Desk:
    """Make what asks the operator about messages that belong to nobody."""
    ground = leader.ground
    return Desk(
        store=leader.stores.choosers,
        journal=leader.journal,
        bindings=leader.bindings,
        registry=leader.registry,
        threads=leader.threads,
        api=ground.api,
        gate=leader.gate,
        notices=leader.delivery.notices,
        clock=ground.reactor,
        now_ms=ground.database.now_ms,
        fresh_id=lambda: ground.random_bytes(8).hex(),
        owner=ground.owner.owner,
    )


def make_router(leader: LeaderService) -> Router:
    """Make the router."""
    ground = leader.ground
    return Router(
        leader.journal,
        leader.places,
        leader.owners,
        leader.registry,
        leader.panel,
        leader.workers,
        leader.orphans,
        leader.delivery.notices,
        leader.reply,
        ground.reactor,
        ground.database.now_ms,
        leader.desk,
    )


def make_admission(leader: LeaderService) -> Admission:
    """Make what lets updates in, or does not."""
    ground = leader.ground
    return Admission(
        ground.bot_id,
        leader.journal,
        leader.router,
        ground.owner,
        Pairing(ground.paths.pairing, ground.monotonic, ground.reactor.seconds),
    )


def make_poll(leader: LeaderService) -> LongPoll:
    """Make the long poll, and say what ends the daemon."""
    ground = leader.ground
    return LongPoll(
        ground.api,
        leader.admission,
        ground.reactor,
        ground.random,
        ground.monotonic,
        on_conflict=lambda: ground.fatal(5, "another program polls this bot's updates"),
        on_unauthorized=lambda: ground.fatal(5, "Telegram refuses the bot token"),
        on_fenced=lambda: ground.fatal(5, "a newer leader owns the store"),
        recheck=lambda: succeed(ground.still_fresh()),
    )

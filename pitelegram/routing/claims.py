"""Who may register as what: the rules of the wire contract, without state."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import attrs

from pitelegram.bus.interfaces import Peer
from pitelegram.errors import BusBadRequest
from pitelegram.ids import ProcessBirth, managed_binding
from pitelegram.routing.interfaces import IBindingPolicy, IFollower
from pitelegram.targets import TelegramTarget

_WORKER = "worker:"


@attrs.frozen(kw_only=True)
class Claim:
    """What a follower has shown that it may be.

    @ivar binding_key: for a managed one; None for an attached one, whose binding is looked up.
    @ivar directory: of the spec, or the real path of the attached one's C{cwd}.
    """

    kind: str
    spec_id: str | None
    spawn_id: str | None
    binding_key: str | None
    directory: str


def check_claim(peer: Peer, registration: dict[str, Any], policy: IBindingPolicy) -> Claim:
    """Compare a registration with what its sender has proven.

    @raise BusBadRequest: it may not be that; the message says why.
    """
    if peer.pid is not None and peer.pid != registration["pid"]:
        raise BusBadRequest("pid is not the connected process")
    if peer.credential == "shared":
        return _attached(registration)
    if peer.credential.startswith(_WORKER):
        return _managed(peer, registration, policy)
    raise BusBadRequest("this credential registers nothing")


def _attached(registration: dict[str, Any]) -> Claim:
    if registration["kind"] != "attached":
        raise BusBadRequest("the shared credential registers attached workers only")
    for name in ("ownerId", "profileKey"):
        if str(registration.get(name) or "").startswith(_WORKER):
            raise BusBadRequest(f"{name} belongs to a managed worker")
    if str(registration.get("bindingKey") or "").startswith("spec-"):
        raise BusBadRequest("this binding belongs to a managed worker")
    return Claim(
        kind="attached",
        spec_id=None,
        spawn_id=None,
        binding_key=None,
        directory=os.path.realpath(registration["cwd"]),
    )


def _managed(peer: Peer, registration: dict[str, Any], policy: IBindingPolicy) -> Claim:
    spec_id = peer.credential[len(_WORKER) :]
    if registration["kind"] != "managed":
        raise BusBadRequest("this credential registers its managed worker only")
    directory = policy.managed(spec_id, peer.secret_id)
    if directory is None:
        raise BusBadRequest("no worker of this credential is wanted any more")
    names = (None, f"{_WORKER}{spec_id}", f"{_WORKER}{policy.name(spec_id)}")
    if registration.get("ownerId") not in names:
        raise BusBadRequest("ownerId names another worker")
    binding_key = managed_binding(spec_id)
    if registration.get("bindingKey") not in (None, binding_key):
        raise BusBadRequest("bindingKey belongs to another worker")
    return Claim(
        kind="managed",
        spec_id=spec_id,
        spawn_id=peer.secret_id,
        binding_key=binding_key,
        directory=directory,
    )


def check_replacement(
    claim: Claim, registration: dict[str, Any], link: Any, rivals: Iterable[IFollower]
) -> None:
    """See that every live registration with the same key may be replaced by this one.

    It must name the other as C{previousInstanceId} (or be that instance itself) and be the same
    process, the same spawn, or belong to the same attached Pi.

    @raise BusBadRequest: a live one stands in the way.
    """
    for rival in rivals:
        if rival.link is link:
            continue
        old = rival.link.registration or {}
        named = rival.instance_id in (
            registration.get("previousInstanceId"),
            registration["instanceId"],
        )
        # The pid has been compared with the connected process: a birth alone could be anybody's.
        same_process = rival.birth == ProcessBirth(
            registration["pid"], registration["processBirthId"]
        )
        same_spawn = claim.spawn_id is not None and claim.spawn_id == rival.spawn_id
        profile = registration.get("profileKey")
        same_pi = (
            claim.kind == "attached" and profile is not None and profile == old.get("profileKey")
        )
        if not (named and (same_process or same_spawn or same_pi)):
            raise BusBadRequest("a live worker is registered with this key; it must go first")


def is_rival(
    claim: Claim, binding_key: str, registration: dict[str, Any], other: IFollower
) -> bool:
    """Whether a live follower has the same binding, C{profileKey}, C{ownerId} or target."""
    if other.binding_key == binding_key:
        return True
    old = other.link.registration or {}
    for name in ("profileKey", "ownerId"):
        if registration.get(name) is not None and registration[name] == old.get(name):
            return True
    target = TelegramTarget.from_json(registration.get("target"))
    return target is not None and target == TelegramTarget.from_json(old.get("target"))

"""Address families: keep to one, or avoid one that stalled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import (
    IHostnameResolver,
    IReactorPluggableNameResolver,
    IResolutionReceiver,
)
from zope.interface import implementer

FAMILIES = ("auto", "ipv4", "ipv6")
_TYPES = {"ipv4": IPv4Address, "ipv6": IPv6Address}


@implementer(IHostnameResolver)
class _FamilyResolver:
    """Leaves out addresses of a family."""

    def __init__(self, resolver: IHostnameResolver, types: Sequence[type] | None) -> None:
        self._resolver = resolver
        self._types = types

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[type] | None = None,
        transportSemantics: str = "TCP",
    ) -> Any:
        """Resolve; see the class."""
        return self._resolver.resolveHostName(
            resolutionReceiver, hostName, portNumber, self._types, transportSemantics
        )


@implementer(IReactorPluggableNameResolver)
class FamilyReactor:
    """A reactor whose name resolver keeps to one address family, or avoids one.

    @ivar avoided: the address class of that family, None while none is avoided.
    """

    def __init__(self, reactor: Any, family: str) -> None:
        self._reactor = reactor
        self._family = family
        self.avoided: type | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reactor, name)

    def avoid(self, address: Any) -> None:
        """Prefer the other family from now on, until that one stalls too."""
        self.avoided = type(address) if isinstance(address, (IPv4Address, IPv6Address)) else None

    @property
    def nameResolver(self) -> IHostnameResolver:
        """The narrowed resolver."""
        resolver = self._reactor.nameResolver
        if self._family != "auto":
            return _FamilyResolver(resolver, (_TYPES[self._family],))
        if self.avoided is not None:
            return _Reordered(resolver, self.avoided)
        return resolver

    def installNameResolver(self, resolver: IHostnameResolver) -> IHostnameResolver:
        """Install a resolver in the real reactor."""
        return self._reactor.installNameResolver(resolver)


@implementer(IHostnameResolver)
class _Reordered:
    """Gives addresses of an avoided family only when there are no others."""

    def __init__(self, resolver: IHostnameResolver, avoided: type) -> None:
        self._resolver = resolver
        self._avoided = avoided

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[type] | None = None,
        transportSemantics: str = "TCP",
    ) -> Any:
        """Resolve; see the class."""
        filtered = _Filter(resolutionReceiver, self._avoided)
        return self._resolver.resolveHostName(
            filtered, hostName, portNumber, addressTypes, transportSemantics
        )


@implementer(IResolutionReceiver)
class _Filter:
    """Holds back addresses of the avoided family until the end."""

    def __init__(self, receiver: IResolutionReceiver, avoided: type) -> None:
        self._receiver = receiver
        self._avoided = avoided
        self._held: list[Any] = []
        self._passed = False

    def resolutionBegan(self, resolutionInProgress: Any) -> None:
        """Pass it on."""
        self._receiver.resolutionBegan(resolutionInProgress)

    def addressResolved(self, address: Any) -> None:
        """Pass it on, or hold it back."""
        if isinstance(address, self._avoided):
            self._held.append(address)
        else:
            self._passed = True
            self._receiver.addressResolved(address)

    def resolutionComplete(self) -> None:
        """Pass it on, after what was held back if there was nothing else."""
        if not self._passed:
            for address in self._held:
                self._receiver.addressResolved(address)
        self._receiver.resolutionComplete()

"""A leader in memory, as a worker sees it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from zope.interface import implementer

from pitelegram.bus.handshake import CAPABILITIES
from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import LinkLost

_MESSAGES = count(1000)
_FILES = count(1)


@implementer(ILeaderLink)
class FakeLeaderLink:
    """Receipts everything at once and remembers it.

    @ivar submitted: C{(delivery_id, delivery)} in order, repeats included.
    @ivar spooled: the contents of the files of submitted deliveries.
    @ivar api_calls: C{(method, params, options)} in order.
    @ivar api_results: each call takes one of these as its result (an exception fails it, a Deferred
        is waited for), while there are any; later sends give message ids from 1000.
    @ivar renames: C{(target, name)} of each wish; its result is one of C{rename_results}, as with
        C{api_results}, or what a leader whose own title is C{A} answers.
    @ivar uploaded: the content of every file that a call named, in order.
    @ivar failures: each submission takes one of these and fails with it, while there are any.
    @ivar settings: what C{set_setting} wrote.
    @ivar setting_refusals: each C{set_setting} takes one of these and fails with it.
    @ivar files: by file id what a download gives: bytes, an exception, a Deferred that fires with one
        of them, or a list of these, one for each time.
    @ivar downloads: the file ids that were asked for, in order.
    @ivar directory: where downloads are stored.
    @ivar held: with True, submissions wait until L{release}.
    """

    def __init__(self, registration: dict[str, Any] | None = None) -> None:
        self.registration = registration or {}
        self.capabilities = frozenset(CAPABILITIES)
        self.renames: list[tuple[Any, str]] = []
        self.rename_results: list[Any] = []
        self.modes: list[tuple[Any, str]] = []
        self.submitted: list[tuple[str, dict[str, Any]]] = []
        self.spooled: list[bytes] = []
        self.api_calls: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        self.api_results: list[Any] = []
        self.uploaded: list[str] = []
        self.failures: list[Exception] = []
        self.files: dict[str, Any] = {}
        self.downloads: list[str] = []
        self.directory: Path | None = None
        self.beats = 0
        self.disconnects: list[tuple[str, bool]] = []
        self.held = False
        self.lost = False
        self.settings: dict[str, Any] = {}
        self.setting_refusals: list[Exception] = []
        self._waiting: list[Deferred[str]] = []

    @property
    def texts(self) -> list[str]:
        """The text of every submitted call, in order."""
        found = [shown(call) for _, delivery in self.submitted for call in delivery["calls"]]
        return [text for text in found if text]

    def heartbeat_now(self) -> None:
        """See L{ILeaderLink}."""
        self.beats += 1

    def call_api(
        self,
        method: str,
        params: dict[str, Any],
        options: dict[str, Any] | None = None,
        files: Sequence[dict[str, Any]] = (),
    ) -> Deferred[Any]:
        """See L{ILeaderLink}."""
        if self.lost:
            return fail(LinkLost("the link is gone"))
        self.api_calls.append((method, params, options or {}))
        self.uploaded += [Path(file["path"]).read_text() for file in files]
        if self.api_results:
            result = self.api_results.pop(0)
            if isinstance(result, Deferred):
                return result
            return fail(result) if isinstance(result, Exception) else succeed(result)
        return succeed({"message_id": next(_MESSAGES)} if method.startswith("send") else True)

    def download_file(self, file_id: str) -> Deferred[dict[str, Any]]:
        """See L{ILeaderLink}."""
        self.downloads.append(file_id)
        found = self.files.get(file_id, LinkLost("no files here"))
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        waiting = found if isinstance(found, Deferred) else succeed(found)
        return waiting.addCallback(self._stored)

    def _stored(self, found: Any) -> dict[str, Any]:
        if isinstance(found, Exception):
            raise found
        assert self.directory is not None, "say where downloads go"
        self.directory.mkdir(exist_ok=True)
        path = self.directory / f"{next(_FILES):012x}{0:020x}"
        path.write_bytes(found)
        return {"path": str(path), "size": len(found)}

    def submit_delivery(self, delivery_id: str, delivery: dict[str, Any]) -> Deferred[str]:
        """See L{ILeaderLink}."""
        if self.lost:
            return fail(LinkLost("the link is gone"))
        if self.failures:
            return fail(self.failures.pop(0))
        self.submitted.append((delivery_id, delivery))
        self.spooled += contents(delivery)
        if not self.held:
            return succeed("accepted")
        waiter: Deferred[str] = Deferred()
        self._waiting.append(waiter)
        return waiter

    def release(self, error: Exception | None = None) -> None:
        """Answer the submissions that wait."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if error is None:
                waiter.callback("accepted")
            else:
                waiter.errback(error)

    def set_setting(self, name: str, value: Any) -> Deferred[dict[str, Any]]:
        """See L{ILeaderLink}; dots in a name lead into objects."""
        if self.lost:
            return fail(LinkLost("the link is gone"))
        if self.setting_refusals:
            return fail(self.setting_refusals.pop(0))
        inner = self.settings
        *above, last = name.split(".")
        for part in above:
            inner = inner.setdefault(part, {})
        inner[last] = value
        return succeed(copy.deepcopy(self.settings))

    def rename_thread(self, target: dict[str, int], name: str) -> Deferred[dict[str, Any]]:
        """See L{ILeaderLink}."""
        if self.lost:
            return fail(LinkLost("the link is gone"))
        self.renames.append((target, name))
        if self.rename_results:
            result = self.rename_results.pop(0)
            if isinstance(result, Deferred):
                return result
            return fail(result) if isinstance(result, Exception) else succeed(result)
        return succeed({"displayTitle": name or "A", "manualName": name or None})

    def set_display_mode(
        self, target: dict[str, int] | None, mode: str
    ) -> Deferred[dict[str, Any]]:
        """See L{ILeaderLink}."""
        self.modes.append((target, mode))
        return succeed({"mode": mode})

    def disconnect(self, reason: str, delete_thread: bool) -> Deferred[dict[str, Any]]:
        """See L{ILeaderLink}."""
        self.disconnects.append((reason, delete_thread))
        return succeed({"thread": "kept"})


def shown(call: dict[str, Any]) -> str:
    """Return the text of a call, or the source of a rich message; empty when it has neither."""
    params = call["params"]
    return str(params.get("text") or params.get("rich_message", {}).get("markdown", ""))


def contents(delivery: dict[str, Any]) -> list[bytes]:
    """Return what is in the files that a delivery names, as a leader copies them."""
    files = [file for call in delivery["calls"] for file in call.get("files", ())]
    return [Path(file["path"]).read_bytes() for file in files]

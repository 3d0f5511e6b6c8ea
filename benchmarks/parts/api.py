"""A Bot API on the loopback that only serves updates, as lean as it can be.

An update is I{available} from the moment it is added: an open poll is answered with it at once, else
the next one is.  Times are nanoseconds of the monotonic clock, which all processes share.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import Any

import orjson
from twisted.internet import reactor as _reactor  # noqa: TID253  (a process of its own)
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site

from parts.store import BOT, CHAT, FIRST_THREAD, FIRST_UPDATE
from parts.talking import obey

reactor: Any = _reactor

BATCH = 100
TEXT = "Please look at the failing test in the parser and tell me what you would change. "


class Updates:
    """All updates so far, and the poll that waits for more."""

    def __init__(self, followers: int) -> None:
        self.followers = followers
        self.available: list[bytes] = []
        self.times: list[int] = []
        self.waiting: tuple[Any, int] | None = None
        self._timer: Any = None

    def make(self, count: int) -> list[bytes]:
        """Make updates, one Thread after the other."""
        first = len(self.available)
        return [orjson.dumps(self._update(number)) for number in range(first, first + count)]

    def _update(self, number: int) -> dict[str, Any]:
        person = {"id": CHAT, "is_bot": False, "first_name": "Ada", "language_code": "en"}
        return {
            "update_id": FIRST_UPDATE + number,
            "message": {
                "message_id": 1_000_000 + number,
                "from": person,
                "chat": {"id": CHAT, "first_name": "Ada", "type": "private"},
                "date": 1_800_000_000,
                "message_thread_id": FIRST_THREAD + number % self.followers,
                "is_topic_message": True,
                "text": f"{TEXT}{number}",
            },
        }

    def add(self, updates: list[bytes]) -> None:
        """Make these available now."""
        self.times += [monotonic_ns()] * len(updates)
        self.available += updates
        self._serve()

    def poll(self, request: Any, offset: int, timeout: int) -> None:
        """Answer a poll, now or later."""
        self._answer([])
        self.waiting = request, max(0, offset - FIRST_UPDATE)
        self._timer = reactor.callLater(timeout, self._answer, [])
        request.notifyFinish().addErrback(lambda _: self._gone(request))
        self._serve()

    def _gone(self, request: Any) -> None:
        if self.waiting is not None and self.waiting[0] is request:
            self.waiting = None
            self._timer.cancel()

    def _serve(self) -> None:
        if self.waiting is not None:
            start = self.waiting[1]
            found = self.available[start : start + BATCH]
            if found:
                self._answer(found)

    def _answer(self, updates: list[bytes]) -> None:
        if self.waiting is None:
            return
        (request, _), self.waiting = self.waiting, None
        if self._timer.active():
            self._timer.cancel()
        body = b'{"ok":true,"result":[' + b",".join(updates) + b"]}"
        request.setHeader(b"content-length", str(len(body)).encode())
        request.write(body)
        request.finish()


class Methods(Resource):
    """C{/bot<token>/<method>}."""

    isLeaf = True

    def __init__(self, updates: Updates) -> None:
        super().__init__()
        self._updates = updates

    def render_POST(self, request: Any) -> Any:
        """Answer a call."""
        params = orjson.loads(request.content.read() or b"{}")
        method = request.postpath[-1]
        request.setHeader(b"content-type", b"application/json")
        if method == b"getUpdates":
            self._updates.poll(request, params.get("offset", 0), params.get("timeout", 0))
            return NOT_DONE_YET
        if method == b"getMe":
            return orjson.dumps({"ok": True, "result": {**BOT, "has_topics_enabled": True}})
        return orjson.dumps({"ok": True, "result": True})


class Quiet(Site):
    """Keeps no access log."""

    def log(self, request: Any) -> None:
        """Say nothing."""


class Pace:
    """Adds updates at a fixed rate, whatever becomes of them (open loop)."""

    def __init__(self, updates: Updates, made: list[bytes], rate: float, done: Any) -> None:
        self._updates = updates
        self._made = made
        self._rate = rate
        self._done = done
        self._start = monotonic_ns()
        self._added = 0
        self.late = 0.0
        self.step()

    def step(self) -> None:
        """Add what is due."""
        now = (monotonic_ns() - self._start) / 1e9
        due = min(len(self._made), int(now * self._rate) + 1)
        if due > self._added:
            self.late = max(self.late, now - self._added / self._rate)
            self._updates.add(self._made[self._added : due])
            self._added = due
        if self._added == len(self._made):
            self._done(self.late)
        else:
            reactor.callLater(max(0.0, self._added / self._rate - now), self.step)


def run(followers: int) -> None:
    """Be the Bot API until the parent goes away."""
    updates = Updates(followers)
    site = Quiet(Methods(updates))
    site.noisy = False  # type: ignore[attr-defined]
    port = reactor.listenTCP(0, site, interface="127.0.0.1")

    def order(words: dict[str, Any]) -> None:
        first = len(updates.available)
        made = updates.make(words["count"])
        if words["do"] == "flood":
            updates.add(made)
            orders.say(times=updates.times[first:], late=0.0)
        else:
            Pace(
                updates,
                made,
                words["rate"],
                lambda late: orders.say(times=updates.times[first:], late=late),
            )

    orders = obey(reactor, order)
    reactor.callWhenRunning(lambda: orders.say(port=port.getHost().port))
    reactor.run()

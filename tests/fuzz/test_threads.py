"""Random lives of workers and Threads: what may never happen does not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.botapi.interfaces import Upload
from pitelegram.errors import CertainlyUnsent, Refusal, Refused, TelegramError, Uncertain
from pitelegram.panel.interfaces import Switches
from pitelegram.store.attachments import Attachments
from pitelegram.store.bindings import Bindings
from pitelegram.store.cleanups import Cleanups
from pitelegram.store.leadership import Leadership
from pitelegram.store.rows import Binding
from pitelegram.targets import TelegramTarget
from pitelegram.testing.botapi import FakeBotApi
from pitelegram.testing.stores import leader_database
from pitelegram.threads.attaching import Attaching
from pitelegram.threads.cleanup import Cleanup
from pitelegram.threads.loss import ThreadLoss
from pitelegram.threads.provision import Threads
from pitelegram.threads.titler import Titler
from pitelegram.threads.titles import MODES, clean, title_for

OWNER = 1000
SEQUENCES = 1000
STEPS = 25
KEYS = st.sampled_from([f"spec-{number}" for number in range(5)])
TOTAL: Counter[str] = Counter()
FAULTS = ("none", "none", "none", "unsent", "lost before", "lost after")


class World(FakeBotApi):
    """Telegram: Threads exist until they are deleted; answers get lost.

    @ivar faults: what happens to the next calls that change a Thread.
    @ivar watch: looks at each such call before it is done.
    @ivar unheard: service messages that have not come yet.
    @ivar doubtful: Threads whose new title's answer was lost.
    @ivar done: how often each method was done.
    """

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.watch: Any = None
        self.unheard: list[dict[str, Any]] = []
        self.doubtful: set[int] = set()
        self.done: Counter[str] = Counter()

    def call(
        self,
        method: str,
        params: dict[str, Any],
        files: Sequence[Upload] = (),
        timeout: float | None = None,
        ready: Any = None,
    ) -> Deferred[Any]:
        """Do it, or fail as Telegram and the net do."""
        if not method.endswith("ForumTopic"):
            return super().call(method, params, files, timeout)
        self.watch(method, params)
        fault = self.faults.pop(0) if self.faults else "none"
        if fault == "unsent":
            return fail(CertainlyUnsent(method, 429, "Too Many Requests", retry_after=3))
        if fault == "lost before":
            return fail(Uncertain(method, 0, "the connection was lost"))
        place = params["chat_id"], params.get("message_thread_id")
        if method != "createForumTopic" and place not in self.topics:
            return fail(Refused(method, 400, "Bad Request: TOPIC_ID_INVALID"))
        if method == "deleteForumTopic":
            del self.topics[place]
            answer = succeed(True)
        else:
            answer = super().call(method, params, files, timeout)
        if method == "createForumTopic":
            thread = max(number for _, number in self.topics)
            self.unheard.append({"name": params["name"], "thread": thread})
        self.done[method] += 1
        if fault == "lost after":
            self.doubtful.add(params.get("message_thread_id", 0))
            return fail(Uncertain(method, 0, "the answer was lost"))
        self.doubtful.discard(params.get("message_thread_id", 0))
        return answer


class Lives(RuleBasedStateMachine):
    """Five workers, their Threads, an operator and a user who rename, move and delete them."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.database = leader_database(self.clock)
        self.bindings = Bindings(self.database)
        self.store = Cleanups(self.database)
        self.api = World()
        self.api.watch = self.look_at_call
        self.mode = "letters"
        self.live: set[str] = set()
        self.reviewed: set[str] = set()
        self.given: str | None = None
        self.wrong: list[str] = []
        self.lead()

    @initialize()
    def begin(self) -> None:
        """The bot is known, and one worker runs."""
        self.threads.learn(self.api.me)
        self.start("spec-0")

    def lead(self) -> None:
        """Build what a leader has, over the same store."""
        self.threads = Threads(
            self.api,
            self.bindings,
            Leadership(self.database),
            self.clock,
            random.Random(1),
            lambda: OWNER,
            running=lambda: self.live,
            display_mode=lambda: self.mode,
        )
        self.cleanup = Cleanup(
            api=self.api,
            store=self.store,
            bindings=self.bindings,
            observers=self.threads.observers,
            protects=lambda key: "it lives" if key in self.live else None,
            dismiss=self.threads.dismiss,
            missing=self.threads.kick,
            fresh_id=lambda: f"op{len(self.api.calls)}-{self.clock.seconds()}",
            now_ms=self.database.now_ms,
            read_switches=lambda: Switches(on_quit=True, unattended=True),
            write_switch=lambda name: succeed(self.cleanup.read_switches()),
            clock=self.clock,
        )
        self.attaching = Attaching(self.threads, self.bindings, Attachments(self.database))
        self.loss = ThreadLoss(self.api, self.bindings, self.threads)
        self.titler = Titler(
            self.clock, self.threads, self.threads.budget, lambda: dict.fromkeys(self.live, False)
        )
        self.threads.startService()
        self.titler.startService()

    def teardown(self) -> None:
        """End it."""
        self.do(self.titler.stopService())
        self.do(self.threads.stopService())
        self.database.stopService()
        TOTAL.update(self.api.done)

    def do(self, asked: Any) -> Any:
        """Ask; what is refused, or fails as Telegram does, is no fault."""
        waiting: Deferred[Any] = (
            asked if isinstance(asked, Deferred) else Deferred.fromCoroutine(asked)
        )
        found: list[Any] = []
        waiting.addErrback(lambda failure: failure.trap(Refusal, TelegramError) and None)
        waiting.addCallbacks(found.append, lambda failure: self.wrong.append(str(failure)))
        return found[0] if found else None

    # --- what Telegram sees -----------------------------------------------------------------

    def look_at_call(self, method: str, params: dict[str, Any]) -> None:
        """Each call needs its proof at the moment it is made."""
        thread = params.get("message_thread_id")
        if method == "createForumTopic":
            titles = [intent["title"] for intent in self.bindings.provisions()]
            if params["name"] not in titles:
                self.wrong.append("a Thread was made without a stored intent")
            return
        owner = self.bindings.by_target(OWNER, thread)
        if owner is None:
            self.wrong.append(f"{method} for a Thread that is nobody's")
            return
        if method == "deleteForumTopic":
            if owner.binding_key in self.live:
                self.wrong.append("the Thread of a living worker was deleted")
            if owner.binding_key not in self.reviewed:
                self.wrong.append("a Thread was deleted that no review had found")
        elif params["name"] not in self.allowed(owner):
            self.wrong.append("a Thread got the title of another one")
        elif owner.closed and params["name"] != owner.title:
            self.wrong.append("the title of a closed Thread was edited")

    def allowed(self, owner: Binding) -> set[str | None]:
        """The titles that a Thread may get now: its own, the one it has, or one just given."""
        own = {self.threads.title(owner.binding_key, busy) for busy in (None, False)}
        plain = attrs.evolve(owner, manual_name=None, user_title=None)
        reset = {title_for(self.mode, plain, self.bindings.list())}
        return own | {owner.title} | (reset if self.given == "" else {self.given})

    # --- workers ----------------------------------------------------------------------------

    @rule(key=KEYS)
    def start(self, key: str) -> None:
        """A worker registers, for the first time or again; not while its Thread is being deleted."""
        if self.store.is_claimed(key):
            return
        if self.do(self.threads.ensure(key, "managed", f"/projects/{key}")) is not None:
            self.live.add(key)
            self.threads.kick()

    @rule(key=KEYS)
    def end(self, key: str) -> None:
        """Its last process is gone, and that is noted."""
        if key in self.live:
            self.live.discard(key)
            self.do(self.bindings.set_inactive(key, self.database.now_ms()))

    @rule(key=KEYS, seconds=st.sampled_from([0, 10]), back=st.booleans())
    def end_and_delete(self, key: str, seconds: int, back: bool) -> None:
        """The usual way there; perhaps it is back before its Thread's turn."""
        self.end(key)
        self.review()
        self.time(seconds)
        if back:
            self.start(key)
        self.delete()

    @rule()
    def note(self) -> None:
        """The janitor sees who lives again, some time later."""
        for key in self.live & self.bindings.inactive().keys():
            self.do(self.bindings.set_inactive(key, None))

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        """The operator forgets one that does not run."""
        if key not in self.live:
            self.do(self.threads.forget(key))

    # --- the operator -----------------------------------------------------------------------

    @rule()
    def review(self) -> None:
        """Look which Threads nobody needs; the newest review counts."""
        if self.do(self.cleanup.review()) is not None:
            self.reviewed = {item.binding_key for item in self.store.reviewed(None)}

    @rule()
    def delete(self) -> None:
        """Delete what was found."""
        self.do(self.cleanup.delete_newest())

    @rule(key=KEYS, other=KEYS)
    def attach(self, key: str, other: str) -> None:
        """Move a worker to where another one is, or was."""
        binding = self.bindings.get(other)
        known = sorted(number for _, number in self.api.topics)
        if binding is not None and binding.target is not None:
            self.do(self.attaching.attach(key, binding.target))
        elif known:
            self.do(self.attaching.attach(key, TelegramTarget(OWNER, known[-1])))

    @rule(key=KEYS)
    def detach(self, key: str) -> None:
        """Move it back."""
        binding = self.bindings.get(key)
        if binding is not None and binding.target is not None:
            self.do(self.attaching.detach(binding.target))

    @rule(mode=st.sampled_from(MODES))
    def display(self, mode: str) -> None:
        """Titles are to be others."""
        self.mode = mode

    @rule(
        key=KEYS, name=st.sampled_from(["", "Navigator", "A", "  ", "x" * 200]), wrong=st.booleans()
    )
    def name(self, key: str, name: str, wrong: bool) -> None:
        """The operator writes /name, perhaps in a Thread that is not the worker's any more."""
        binding = self.bindings.get(key)
        if binding is None or binding.target is None:
            return
        place = TelegramTarget(OWNER, 9999) if wrong else binding.target
        self.given = name and clean(name)[:96]
        done = self.do(self.threads.rename(key, place, name))
        self.given = None
        now = self.bindings.get(key)
        if done is not None and (wrong or now.manual_name != done[1] or now.title != done[0]):
            self.wrong.append("a name was answered that is not so")

    @rule(key=KEYS, closed=st.booleans())
    def close(self, key: str, closed: bool) -> None:
        """The user closes a Thread, or opens it."""
        binding = self.bindings.get(key)
        if binding is not None and binding.target is not None:
            message = {
                "chat": {"id": OWNER},
                "message_thread_id": binding.target.thread_id,
                "from": {"id": OWNER},
                f"forum_topic_{'closed' if closed else 'reopened'}": {},
            }
            hear = self.threads.closed if closed else self.threads.reopened
            self.do(hear(message))

    @rule(key=KEYS, directory=st.sampled_from(["/home/spec-0", "/x/spec-1", "/x/spec_1"]))
    def move(self, key: str, directory: str) -> None:
        """A worker's session goes to another project."""
        if key in self.live:
            self.do(self.threads.moved(key, directory))

    # --- the user, Telegram and the machine -------------------------------------------------

    @rule(number=st.integers(0, 9))
    def user_deletes(self, number: int) -> None:
        """The user deletes a Thread; nobody is told."""
        if self.api.topics:
            places = sorted(self.api.topics)
            del self.api.topics[places[number % len(places)]]

    @rule(key=KEYS)
    def found_out(self, key: str) -> None:
        """A message did not arrive: is the Thread gone?"""
        binding = self.bindings.get(key)
        if binding is not None and binding.target is not None:
            there = (OWNER, binding.target.thread_id) in self.api.topics
            verdict = self.do(self.loss.examine(key))
            if there and verdict == "lost":
                self.wrong.append("a Thread that is there was taken for lost")

    @rule(key=KEYS, name=st.sampled_from(["mine", "A", "  ", "x" * 200]))
    def user_renames(self, key: str, name: str) -> None:
        """The user calls a Thread something."""
        binding = self.bindings.get(key)
        if binding is not None and binding.target is not None:
            message = {
                "chat": {"id": OWNER},
                "message_thread_id": binding.target.thread_id,
                "from": {"id": OWNER},
                "forum_topic_edited": {"name": name},
            }
            if (OWNER, binding.target.thread_id) in self.api.topics and name.strip():
                self.api.topics[OWNER, binding.target.thread_id] = name[:128]
                self.do(self.threads.renamed(message))

    @precondition(lambda self: self.api.unheard)
    @rule()
    def heard(self) -> None:
        """The service message of a Thread that was made comes at last."""
        made = self.api.unheard.pop(0)
        message = {
            "chat": {"id": OWNER},
            "message_thread_id": made["thread"],
            "from": {"id": 4242, "is_bot": True},
            "date": int(self.clock.seconds()),
            "forum_topic_created": {"name": made["name"]},
        }
        self.do(self.threads.created(message))

    @rule(faults=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=4))
    def trouble(self, faults: list[str]) -> None:
        """The next calls fail."""
        self.api.faults = list(faults)

    @rule(seconds=st.sampled_from([1, 10, 60, 3600]))
    def time(self, seconds: int) -> None:
        """Time passes."""
        self.clock.pump([seconds / 4] * 4)

    @rule()
    def crash(self) -> None:
        """The leader ends in the middle; the next one finds its store."""
        self.do(self.titler.stopService())
        self.do(self.threads.stopService())
        self.lead()
        self.threads.learn(self.api.me)

    # --- what holds always ------------------------------------------------------------------

    @invariant()
    def nothing_wrong(self) -> None:
        """No call without its proof, no error of a kind that is not declared."""
        assert not self.wrong, self.wrong

    @invariant()
    def one_owner(self) -> None:
        """No two workers share a Thread, a letter or a name."""
        bindings = self.bindings.list()
        for values in (
            [b.target for b in bindings if b.target is not None],
            [b.slot for b in bindings if b.slot],
            [b.thread_name for b in bindings if b.thread_name],
        ):
            assert len(values) == len(set(values)), values

    @invariant()
    def own_titles_differ(self) -> None:
        """No two workers are to have one title, but for what people wrote."""
        rows = [
            attrs.evolve(each, manual_name=None, user_title=None) for each in self.bindings.list()
        ]
        titles = [title_for(self.mode, row, rows, False) for row in rows]
        assert len(titles) == len(set(titles)), titles

    @invariant()
    def titles_are_true(self) -> None:
        """What is noted as a title stands above that Thread, unless an answer was lost."""
        for binding in self.bindings.list():
            thread = None if binding.target is None else binding.target.thread_id
            there = None if thread is None else self.api.topics.get((OWNER, thread))
            if there is not None and binding.title and thread not in self.api.doubtful:
                assert there == binding.title, (there, binding)


class ThreadTests(SynchronousTestCase):
    """A thousand random sequences."""

    def test_random_lives(self) -> None:
        """No two live workers on one target, no deletion without proof, no title on a wrong Thread."""
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            Lives,
            settings=settings(
                max_examples=SEQUENCES,
                stateful_step_count=STEPS,
                deadline=None,
                derandomize=True,
                database=None,
            ),
        )
        for method in ("createForumTopic", "editForumTopic", "deleteForumTopic"):
            self.assertGreater(TOTAL[method], SEQUENCES // 10, f"{method} was hardly tried")

    def test_a_fault_is_seen(self) -> None:
        """The machine itself notices a deletion without a review."""
        lives = Lives()
        self.addCleanup(lives.teardown)
        lives.begin()
        target = lives.bindings.get("spec-0").target
        place = {"chat_id": OWNER, "message_thread_id": target.thread_id}
        self.successResultOf(lives.api.call("deleteForumTopic", place))
        self.assertRaises(AssertionError, lives.nothing_wrong)

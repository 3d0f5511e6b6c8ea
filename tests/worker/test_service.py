"""Answers reach the leader whatever happens to it; a worker ends as it was asked to."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.errors import BusBadRequest, BusUnauthorized, LinkLost, Refusal, StaleGeneration
from pitelegram.store.inbox import Inbox
from pitelegram.testing.worker import BINDING, CHAT, THREAD
from tests.worker.test_queue import RigCase


class Submitting(RigCase):
    """Stored answers and the leader's receipts."""

    def test_without_a_leader(self) -> None:
        """Pi goes on; the answers collect and are submitted in order later."""
        rig = self.rig
        rig.start(connect=False)
        for text in ("one", "two"):
            rig.message(text)
        self.assertEqual(len(rig.inbox.answers()), 2)
        rig.connect()
        rig.run()
        self.assertEqual(rig.link.texts, ["You said: one", "You said: two"])
        self.assertEqual(rig.inbox.answers(), [])

    def test_lost_receipt(self) -> None:
        """The same answer, with the same content, is submitted on the next link."""
        rig = self.started()
        rig.link.held = True
        first = rig.link
        rig.message("one")
        rig.service._bus.lose()
        first.release(LinkLost("gone"))
        rig.connect()
        rig.run()
        self.assertEqual(first.submitted, rig.link.submitted)
        self.assertEqual(len(rig.link.submitted), 1)
        self.assertEqual(rig.inbox.answers(), [])

    def test_next_process_submits(self) -> None:
        """Killed before the receipt: the successor submits it, unchanged."""
        rig = self.started()
        rig.link.held = True
        first = rig.link
        rig.message("one")
        rig.crash()
        rig.start()
        self.assertEqual(first.submitted, rig.link.submitted)

    def test_passing_failures(self) -> None:
        """Busy, unavailable, stale: tried again with back-off, order kept."""
        rig = self.started()
        rig.link.failures = [
            Refusal("rate-limited", "later"),
            Refusal("unavailable", "later"),
            StaleGeneration("stale"),
        ]
        rig.message("one")
        rig.message("two")
        self.assertEqual(rig.link.texts, [])
        rig.run(20)
        self.assertEqual(rig.link.texts, ["You said: one", "You said: two"])

    def test_answer_that_nobody_takes(self) -> None:
        """It is dropped with an error and a notice, and blocks nothing."""
        rig = self.started()
        for error in (Refusal("delivery-id-collision", "other"), BusBadRequest("invalid")):
            rig.link.failures = [error]
            rig.link.submitted.clear()
            rig.message("one")
            rig.message("two")
            rig.run(5)
            self.assertEqual(rig.link.texts[-1], "You said: two")
            self.assertTrue(any("could not be handed over" in text for text in rig.link.texts))
            self.assertEqual(rig.inbox.answers(), [])

    def test_refused_notice_makes_no_notice(self) -> None:
        """A notice that is refused is only logged."""
        rig = self.started()
        rig.link.failures = [Refusal("delivery-id-collision", "other")]
        rig.message("/status")
        rig.run(5)
        self.assertEqual(rig.link.submitted, [])

    def test_delivery_has_no_target(self) -> None:
        """The leader sets chat and Thread when it sends."""
        rig = self.started()
        rig.message("one")
        ((_, delivery),) = rig.link.submitted
        self.assertEqual(set(delivery), {"kind", "createdAtMs", "calls"})
        self.assertEqual(delivery["kind"], "final")
        for call in delivery["calls"]:
            self.assertNotIn("chat_id", call["params"])
            self.assertNotIn("message_thread_id", call["params"])


class Registering(RigCase):
    """What is told at each registration and heartbeat."""

    def test_again(self) -> None:
        """A new instance that names the previous one, its target and its Thread."""
        rig = self.started()
        first = rig.link.registration
        rig.service._bus.lose()
        rig.run(1)
        rig.connect()
        second = rig.link.registration
        self.assertNotEqual(first["instanceId"], second["instanceId"])
        self.assertEqual(second["previousInstanceId"], first["instanceId"])
        self.assertEqual(second["target"], {"chatId": CHAT, "threadId": THREAD})
        self.assertEqual(second["threadName"], "Atlas")
        self.assertEqual(second["kind"], "managed")
        self.assertEqual(second["ownerId"], "worker:atlas")

    def test_wrong_binding(self) -> None:
        """Another binding than the one whose inbox is open is no registration."""
        rig = self.started()
        answer = {**rig.link.registration, "bindingKey": "spec-other"}
        refused = rig.parts.follower.registered(rig.link, answer)
        self.failureResultOf(refused, BusBadRequest)

    def test_form(self) -> None:
        """The bus takes it."""
        from pitelegram.bus.forms import a_registration

        self.started()
        a_registration(self.rig.parts.follower.register_request())

    def test_changes_are_told_at_once(self) -> None:
        """One heartbeat for each change of the state, none without one."""
        rig = self.started()
        before = rig.link.beats
        rig.run(5)
        self.assertEqual(rig.link.beats, before)
        rig.message("[[gate a]]")
        self.assertGreater(rig.link.beats, before)
        self.assertEqual(rig.parts.follower.state()["activity"], "active")
        rig.message("held")
        self.assertEqual(rig.parts.follower.state()["queued"], 1)

    def test_typing(self) -> None:
        """While Pi works, every 2.5 s, in the current Thread and in All; never after."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.run(4.9)
        thread = {"chat_id": CHAT, "message_thread_id": THREAD, "action": "typing"}
        everywhere = {"chat_id": CHAT, "action": "typing"}
        self.assertEqual(
            rig.link.api_calls,
            [
                ("sendChatAction", thread, {}),
                ("sendChatAction", everywhere, {"aggregate": True}),
            ]
            * 2,
        )
        rig.parts.follower.replace_target({"chatId": CHAT, "threadId": 9}, None, "moved")
        rig.run(1)
        self.assertEqual(rig.link.api_calls[-2][1]["message_thread_id"], 9)
        rig.host.open_gate("a")
        rig.run(10)
        self.assertEqual(len(rig.link.api_calls), 6)

    def test_previews(self) -> None:
        """Where the operator wants them, the answer is shown while it is written; then it comes once."""
        rig = self.started()
        rig.parts.preferences.take({"draftPreviews": True})
        rig.message("[[gate a]]")
        rig.host.tell("text_delta", "After the **ga")
        rig.run(3)
        (draft,) = [params for name, params, _ in rig.link.api_calls if name.endswith("Draft")]
        self.assertEqual(draft["message_thread_id"], THREAD)
        self.assertEqual(draft["rich_message"]["markdown"], "After the")
        self.assertEqual(rig.link.texts, [])
        rig.host.open_gate("a")
        rig.run(10)
        self.assertEqual(rig.link.texts, ["After the gate a."])
        names = [name for name, _, _ in rig.link.api_calls]
        rig.run(10)
        self.assertEqual([name for name, _, _ in rig.link.api_calls], names)

    def test_confirmed_ids_go_after_48_hours(self) -> None:
        """The hourly retention forgets them, not before."""
        rig = self.started()
        name = rig.message("one")
        self.successResultOf(rig.parts.follower.confirm_settled([name]))
        rig.clock.pump([1800.0] * (2 * 47))
        self.assertIsNotNone(rig.inbox.row(name))
        rig.clock.pump([1800.0] * 8)
        self.assertIsNone(rig.inbox.row(name))


class Ending(RigCase):
    """The stop ladder and the exit codes."""

    def test_idle_worker_stops_at_once(self) -> None:
        """Pi is closed, the leader told, exit code 0."""
        rig = self.started()
        rig.parts.follower.shutdown("drain", 30_000)
        rig.run(1)
        self.assertEqual(rig.exits, [0])
        self.assertTrue(rig.host.stdin_closed)
        self.assertEqual(rig.link.disconnects, [("quit", False)])
        self.assertEqual(rig.clock.getDelayedCalls(), [])

    def test_drain_waits_for_the_run(self) -> None:
        """It ends by itself, its answer is submitted, and nothing new is handed."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.message("held")
        rig.parts.follower.shutdown("drain", 30_000)
        rig.run(5)
        self.assertEqual(rig.parts.report.state()["stopPhase"], "draining")
        rig.message("later")
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual(rig.exits, [0])
        self.assertEqual(rig.link.texts, ["After the gate a."])
        self.assertEqual(rig.states(), {"settled": 1, "held": 2})

    def test_drain_waits_for_what_waits_in_pi(self) -> None:
        """A Pi that runs nothing and has something in its own queue is not idle."""
        rig = self.started()
        rig.host._change(pendingMessageCount=1)
        rig.parts.follower.shutdown("drain", 30_000)
        rig.run(5)
        self.assertEqual((rig.exits, rig.parts.report.state()["stopPhase"]), ([], "draining"))
        rig.host._change(pendingMessageCount=0)
        rig.run(1)
        self.assertEqual(rig.exits, [0])

    def test_drain_ends_with_an_abort(self) -> None:
        """A run that does not end is aborted within the deadline; what it said is delivered."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.parts.follower.shutdown("drain", 10_000)
        rig.run(6)
        self.assertEqual(rig.exits, [])
        rig.run(5)
        self.assertEqual(rig.exits, [0])
        self.assertEqual(rig.link.texts, ["⏹ Aborted."])
        self.assertEqual(rig.states(), {"settled": 1})

    def test_abort_does_not_wait(self) -> None:
        """The run is aborted now."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.parts.follower.shutdown("abort", 10_000)
        rig.run(1)
        self.assertEqual(rig.exits, [0])
        self.assertEqual(rig.link.texts, ["⏹ Aborted."])

    def test_abort_shortens_a_drain(self) -> None:
        """A second, harsher call ends the waiting."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.parts.follower.shutdown("drain", 60_000)
        rig.run(5)
        rig.parts.follower.shutdown("abort", 5_000)
        rig.run(5)
        self.assertEqual(rig.exits, [0])

    def test_sigterm(self) -> None:
        """As the process's end asks: within 5 s."""
        rig = self.started()
        rig.message("[[gate a]]")
        stopped = rig.service.stopService()
        rig.run(5)
        self.successResultOf(stopped)
        self.assertEqual(rig.exits, [0])

    def test_without_a_leader(self) -> None:
        """Nobody to say goodbye to: it ends all the same, and the answer is kept."""
        rig = self.rig
        rig.start(connect=False)
        rig.message("one")
        rig.parts.follower.shutdown("drain", 5_000)
        rig.run(3)
        self.assertEqual(rig.exits, [0])
        self.assertEqual(len(rig.inbox.answers()), 1)

    def test_pi_ends(self) -> None:
        """Exit 70 with the reason; what was handed is left for the next process."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.host.die()
        rig.run(5)
        self.assertEqual(rig.exits, [70])
        self.assertIn("SIGKILL", rig.parts.report.state()["lastError"])
        self.assertFalse(rig.parts.report.state()["piReady"])
        self.assertEqual(rig.states(), {"handed": 1})
        self.assertEqual(len(self.flushLoggedErrors()), 0)

    def test_answer_stored_before_pi_ended(self) -> None:
        """A run that settled just before is submitted before the exit."""
        rig = self.started()
        rig.message("one")
        rig.host.die("Pi ended (exit code 1)")
        rig.run(5)
        self.assertEqual((rig.exits, rig.link.texts), ([70], ["You said: one"]))

    def test_credential_refused(self) -> None:
        """Three times without a registration: exit 69, once Pi is idle."""
        rig = self.rig
        rig.start(connect=False)
        rig.message("[[gate a]]")
        error = BusUnauthorized("the leader did not prove itself")
        for _ in range(2):
            rig.service.credential_refused(error)
        rig.connect()
        for _ in range(2):
            rig.service.credential_refused(error)
        rig.run(1)
        self.assertIsNone(rig.parts.ladder.phase)
        rig.service.credential_refused(error)
        rig.run(1)
        self.assertEqual(rig.exits, [])
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual(rig.exits, [69])

    def test_stopped_while_it_starts(self) -> None:
        """A stop before Pi is up ends it too."""
        from pitelegram.testing.pihost import FakePiHost

        host = FakePiHost(self.rig.clock)
        host.start = lambda: Deferred()
        self.rig.start(host)
        self.rig.parts.follower.shutdown("drain", 5_000)
        self.rig.run(3)
        self.assertEqual(self.rig.exits, [0])

    def test_stopped_while_it_recovers(self) -> None:
        """A stop while old prompts are judged: Pi is not started at all, nothing goes on."""
        rig = self.started()
        rig.message("[[gate a]]")
        rig.crash()
        judged: Deferred[None] = Deferred()

        class SlowInbox(Inbox):
            """Takes its time."""

            def uncertain(self, seqs: Any, answers: Any = ()) -> Deferred[None]:
                """Wait first."""
                return judged.addCallback(lambda _: Inbox.uncertain(self, seqs, answers))

        rig.inbox = SlowInbox(rig.database)
        (row,) = rig.inbox.rows("handed")
        rig.start(connect=False)
        starts: list[str] = []
        rig.host.start = lambda: starts.append("start")
        rig.service.stop_soon(True, 2.0)
        rig.run(3)
        judged.callback(None)
        rig.run(3)
        self.assertEqual((rig.exits, starts), ([0], []))
        self.assertEqual(rig.clock.getDelayedCalls(), [])


class Endpoint(RigCase):
    """Where the leader is."""

    def _locate(self, content: Any) -> Any:
        from pitelegram.kernel.files import write_private
        from pitelegram.kernel.jsonio import dumps
        from pitelegram.worker.endpoint import DaemonEndpoint

        paths = self.rig.paths
        if content is not None:
            data = content if isinstance(content, bytes) else dumps(content)
            write_private(paths.owners, data)
        return DaemonEndpoint(paths=paths, secret=b"s" * 32).locate()

    def test_daemon(self) -> None:
        """Its socket, with this spawn's secret."""
        owners = {"default": {"role": "daemon", "busSocketPath": "/run/bus.sock"}}
        self.assertEqual(self._locate(owners), ("/run/bus.sock", b"s" * 32))

    def test_nobody(self) -> None:
        """Missing, broken, of another profile, led by a worker, or without a socket: no leader."""
        for content in (
            None,
            b"",
            b"{",
            b"[]",
            {"other": {"role": "daemon", "busSocketPath": "/x"}},
            {"default": {"role": "worker", "busSocketPath": "/x"}},
            {"default": {"busSocketPath": "/x"}},
            {"default": {"role": "daemon"}},
            {"default": {"role": "daemon", "busSocketPath": 7}},
            {"default": "daemon"},
        ):
            self.assertIsNone(self._locate(content), content)

    def test_owners_are_spared(self) -> None:
        """Whoever owns a transport is not ended with Pi's processes, whatever its role."""
        from pitelegram.ids import ProcessBirth
        from pitelegram.worker.endpoint import DaemonEndpoint

        self._locate({"other": {"role": "worker", "pid": 41}, "default": "x"})
        endpoint = DaemonEndpoint(paths=self.rig.paths, secret=b"s" * 32)
        self.assertTrue(endpoint.owns(ProcessBirth(41, "41:start:1")))
        self.assertFalse(endpoint.owns(ProcessBirth(42, "42:start:1")))


class Identity(RigCase):
    """The process's own."""

    def test_binding(self) -> None:
        """The inbox is that of the spec."""
        self.started()
        self.assertEqual(self.rig.link.registration["bindingKey"], BINDING)

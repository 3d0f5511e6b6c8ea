"""The update queue and the long poll: confirmation, order, one poller."""

from __future__ import annotations

from pitelegram.sandbox.errors import ApiError
from tests.sandbox.helpers import BotTestCase


class ConfirmationTests(BotTestCase):
    """What getUpdates returns and forgets."""

    def setUp(self) -> None:
        """Queue five messages."""
        super().setUp()
        for number in range(5):
            self.chat.user_sends(f"/{number}")
        self.ids = [update["update_id"] for update in self.updates()]

    def take(self, **params: object) -> list[int]:
        """Poll, long after the poll before."""
        self.clock.advance(10)
        return [update["update_id"] for update in self.call("getUpdates", **params)]

    def test_ids_rise_by_one_from_a_random_start(self) -> None:
        """Ids of consecutive updates differ by one and do not start at a fixed number."""
        self.assertEqual(self.ids, list(range(self.ids[0], self.ids[0] + 5)))
        self.assertGreater(self.ids[0], 1000)

    def test_unconfirmed_updates_come_again(self) -> None:
        """Without a higher offset the same updates are delivered each time."""
        self.assertEqual(self.take(), self.ids)
        self.assertEqual(self.take(offset=self.ids[0]), self.ids)

    def test_offset_confirms_what_lies_below(self) -> None:
        """An offset forgets the updates with lower ids for good."""
        self.assertEqual(self.take(offset=self.ids[2]), self.ids[2:])
        self.assertEqual(self.take(offset=0), self.ids[2:])

    def test_confirming_all(self) -> None:
        """One past the last leaves nothing."""
        self.assertEqual(self.take(offset=self.ids[-1] + 1), [])
        self.assertEqual(self.updates(), [])

    def test_negative_offset_keeps_the_last(self) -> None:
        """Minus two means the last two; the others are forgotten."""
        self.assertEqual(self.take(offset=-2), self.ids[-2:])
        self.assertEqual(self.take(), self.ids[-2:])

    def test_negative_offset_beyond_the_start(self) -> None:
        """More than there are means all of them."""
        self.assertEqual(self.take(offset=-100), self.ids)

    def test_far_too_high_offset_delivers_again(self) -> None:
        """More than ten past the end is taken for a mistake: nothing is forgotten."""
        self.assertEqual(self.take(offset=self.ids[-1] + 12), self.ids)

    def test_slightly_too_high_offset_confirms(self) -> None:
        """Up to ten past the end still confirms everything."""
        self.assertEqual(self.take(offset=self.ids[-1] + 11), [])
        self.assertEqual(self.updates(), [])

    def test_far_too_low_offset_delivers_again(self) -> None:
        """An ancient offset starts at the oldest."""
        self.assertEqual(self.take(offset=1), self.ids)

    def test_limit(self) -> None:
        """A batch is at most limit long, clamped to 1 and 100."""
        self.assertEqual(self.take(limit=2), self.ids[:2])
        self.assertEqual(self.take(limit=-5), self.ids[:1])
        for _ in range(120):
            self.chat.user_sends("/more")
        self.assertEqual(len(self.take(limit=100_000)), 100)

    def test_polling_again_at_once_is_slowed(self) -> None:
        """The same offset within half a second gets one update only."""
        self.assertEqual(self.take(offset=0), self.ids)
        self.assertEqual(len(self.call("getUpdates", offset=0)), 1)

    def test_a_batch_is_bounded_in_bytes(self) -> None:
        """Big updates come in batches of at most 4 MiB."""
        for _ in range(70):
            self.chat.user_sends("/x", caption="y" * 90_000)
        self.assertIn(len(self.take(offset=0)), range(45, 55))

    def test_messages_expire_after_a_day(self) -> None:
        """What nobody fetched for 24 hours is gone."""
        self.clock.advance(86_399)
        self.assertEqual(len(self.updates()), 5)
        self.clock.advance(1)
        self.assertEqual(self.updates(), [])

    def test_presses_expire_after_150_seconds(self) -> None:
        """A button press that nobody fetched in time is missing."""
        sent = self.send(reply_markup=_one_button())
        self.chat.user_presses(sent["message_id"], "d")
        self.clock.advance(149)
        self.assertIn("callback_query", self.updates()[-1])
        self.clock.advance(1)
        self.assertNotIn("callback_query", self.updates()[-1])

    def test_ids_change_after_a_quiet_week(self) -> None:
        """After a week without updates numbering starts anew."""
        self.clock.advance(8 * 86_400)
        self.chat.user_sends("/new")
        self.assertNotEqual(self.updates()[0]["update_id"], self.ids[-1] + 1)

    def test_hostile_repetition(self) -> None:
        """A test can have an update delivered twice and ids jump."""
        again = self.updates()[0]
        self.world.updates.push_again(again, skip=1000)
        self.chat.user_sends("/after")
        found = [update["update_id"] for update in self.updates()]
        self.assertEqual(found[5:], [self.ids[0], self.ids[-1] + 1001])


class AllowedUpdatesTests(BotTestCase):
    """Kinds are filtered when an update is made, by the list that was given last."""

    def allow(self, *names: str) -> None:
        """Name the wanted kinds."""
        self.clock.advance(10)
        self.call("getUpdates", allowed_updates=list(names))

    def test_reactions_are_not_in_the_default(self) -> None:
        """Without a list, messages come and reactions do not."""
        number = self.send()["message_id"]
        self.chat.user_reacts(number, "👍")
        self.assertEqual(self.updates(), [])
        self.assertEqual(self.world.updates.dropped, 1)

    def test_the_list_persists(self) -> None:
        """A later poll without a list keeps the kinds of the one before."""
        self.allow("message_reaction")
        self.clock.advance(10)
        self.call("getUpdates")
        number = self.send()["message_id"]
        self.chat.user_reacts(number, "👍")
        self.chat.user_sends("/dropped")
        self.assertEqual([set(u) - {"update_id"} for u in self.updates()], [{"message_reaction"}])

    def test_empty_and_unknown_lists_mean_the_default(self) -> None:
        """A list without a known name is the default set."""
        for names in ((), ("nonsense",)):
            self.allow("message_reaction")
            self.allow(*names)
            self.chat.user_sends("/x")
        self.assertEqual(len(self.updates()), 2)

    def test_queued_updates_stay(self) -> None:
        """A narrower list does not take back what is queued."""
        self.chat.user_sends("/x")
        self.allow("callback_query")
        self.assertEqual(len(self.updates()), 1)

    def test_webhook_info_names_them(self) -> None:
        """getWebhookInfo shows the list."""
        self.allow("message", "nonsense")
        self.assertEqual(self.call("getWebhookInfo")["allowed_updates"], ["message"])


class LongPollTests(BotTestCase):
    """Waiting polls."""

    def test_wakes_with_the_first_update(self) -> None:
        """A waiting poll ends a moment after an update, with all that came by then."""
        waiting = self.start("getUpdates", timeout=25)
        self.chat.user_sends("/a")
        self.chat.user_sends("/b")
        self.assertNoResult(waiting)
        self.clock.advance(0.002)
        self.assertEqual(len(self.successResultOf(waiting)), 2)
        self.assertFalse(self.clock.getDelayedCalls())

    def test_ends_empty_after_its_time(self) -> None:
        """Nothing came: an empty list after timeout seconds."""
        waiting = self.start("getUpdates", timeout=25)
        self.clock.advance(24.9)
        self.assertNoResult(waiting)
        self.clock.advance(0.1)
        self.assertEqual(self.successResultOf(waiting), [])

    def test_timeout_is_clamped(self) -> None:
        """At most fifty seconds."""
        waiting = self.start("getUpdates", timeout=9999)
        self.clock.advance(50)
        self.assertEqual(self.successResultOf(waiting), [])

    def test_a_wrong_offset_does_not_hang(self) -> None:
        """A waiting poll with a far too high offset still gets the next update."""
        waiting = self.start("getUpdates", offset=self.world.updates.next_id + 500, timeout=25)
        self.chat.user_sends("/a")
        self.clock.advance(1)
        self.assertEqual(len(self.successResultOf(waiting)), 1)

    def test_the_earlier_poller_loses(self) -> None:
        """A second waiting poll ends the first with 409 and goes on waiting itself."""
        first = self.start("getUpdates", offset=0, timeout=25)
        second = self.start("getUpdates", offset=1, timeout=25)
        error = self.failureResultOf(first, ApiError).value
        self.assertEqual(error.code, 409)
        self.assertEqual(
            error.description,
            "Conflict: terminated by other getUpdates request; make sure that only one bot "
            "instance is running",
        )
        self.assertNoResult(second)
        self.chat.user_sends("/x")
        self.clock.advance(1)
        self.assertEqual(len(self.successResultOf(second)), 1)

    def test_a_poll_that_does_not_wait_disturbs_nobody(self) -> None:
        """With timeout 0 the waiting one stays."""
        first = self.start("getUpdates", timeout=25)
        self.clock.advance(5)
        self.assertEqual(self.call("getUpdates", timeout=0), [])
        self.assertNoResult(first)

    def test_quick_conflicts_are_told_late(self) -> None:
        """Within three seconds of the last 409 the next one waits three seconds."""
        polls = [self.start("getUpdates", offset=n, timeout=50) for n in range(3)]
        self.failureResultOf(polls[0], ApiError)
        self.assertNoResult(polls[1])
        self.clock.advance(3)
        self.assertEqual(self.failureResultOf(polls[1], ApiError).value.code, 409)
        self.assertNoResult(polls[2])

    def test_webhook_excludes_polling(self) -> None:
        """A webhook ends the waiting poll and refuses later ones until it is deleted."""
        waiting = self.start("getUpdates", timeout=25)
        self.assertTrue(self.call("setWebhook", url="https://example.org/x"))
        self.assertEqual(
            self.failureResultOf(waiting, ApiError).value.description,
            "Conflict: terminated by setWebhook request",
        )
        self.assertEqual(
            self.refused("getUpdates"),
            "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to "
            "delete the webhook first",
        )
        self.assertEqual(self.call("getWebhookInfo")["url"], "https://example.org/x")
        self.call("deleteWebhook")
        self.clock.advance(10)
        self.assertEqual(self.call("getUpdates"), [])

    def test_delete_webhook_can_drop_updates(self) -> None:
        """Only when asked to."""
        self.chat.user_sends("/a")
        self.call("deleteWebhook")
        self.assertEqual(len(self.updates()), 1)
        self.call("deleteWebhook", drop_pending_updates=True)
        self.assertEqual(self.updates(), [])

    def test_revoked_token_ends_the_poll(self) -> None:
        """The waiting poll gets 401."""
        waiting = self.start("getUpdates", timeout=25)
        self.methods.poller.revoke()
        self.assertEqual(self.failureResultOf(waiting, ApiError).value.code, 401)


def _one_button() -> dict:
    return {"inline_keyboard": [[{"text": "b", "callback_data": "d"}]]}

"""Where messages go."""

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.targets import TelegramTarget


class TargetTests(SynchronousTestCase):
    """L{TelegramTarget}."""

    def test_chat_and_thread_are_two_places(self):
        """A chat and each Thread in it are different targets, by value and by key."""
        places = [
            TelegramTarget(chat, thread) for chat in (1, 11, -1) for thread in (None, 1, 11, 111)
        ]
        self.assertEqual(len(set(places)), len(places))
        self.assertEqual(len({place.key for place in places}), len(places))
        for place in places:
            self.assertEqual(TelegramTarget.from_json(place.as_json()), place)

    def test_no_target(self):
        """Null is no target; texts, truth values and other shapes are none of any kind."""
        self.assertIsNone(TelegramTarget.from_json(None))
        wrong = (
            *({}, [], "1", 1, {"threadId": 1}, {"chatId": "1"}, {"chatId": True}, {"chatId": 1.0}),
            *({"chatId": 1, "threadId": "2"}, {"chatId": 1, "threadId": True}),
        )
        for value in wrong:
            self.assertRaises(ValueError, TelegramTarget.from_json, value)

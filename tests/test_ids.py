"""Identities that cross process borders."""

import hashlib
import json

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.ids import UPDATE_KINDS, delivery_id


class DeliveryIdTests(SynchronousTestCase):
    """The id of a forwarded update, as an independent implementation makes it."""

    def test_canonical(self):
        """It is the SHA-256 of JSON with sorted keys, no spaces, and nothing but ASCII."""
        for kind in UPDATE_KINDS:
            for key in ("spec-00ff00ff00ff00ff", "ws-a1", 'odd "\\\n\x7f \u00e9 \U0001f600'):
                for update_id in (0, 7, 900_719_925_474_099_267):
                    value = {
                        "version": 1,
                        "sourceUpdateId": update_id,
                        "recipientBindingKey": key,
                        "kind": kind,
                    }
                    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
                    expected = "telegram-follower-v1-" + hashlib.sha256(text.encode()).hexdigest()
                    self.assertEqual(delivery_id(kind, key, update_id), expected)

"""What a worker knows of the operator's settings."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import LinkLost, Refusal
from pitelegram.testing.leaderlink import FakeLeaderLink
from pitelegram.worker.preferences import DEFAULTS, Preferences
from tests.worker.test_queue import RigCase


class PreferencesCase(RigCase):
    """Settings in a worker that is connected."""

    def test_defaults(self) -> None:
        """Until a leader has told anything the defaults count."""
        rig = self.started()
        found = rig.parts.preferences
        self.assertEqual(found.all(), DEFAULTS)
        self.assertEqual(found.get("voice.replyMode"), "hidden")
        self.assertEqual(found.get("downloadLimit"), 20_000_000)

    def test_told(self) -> None:
        """What was told counts, observers hear it once, and it survives a restart alone."""
        rig = self.started()
        heard: list[dict[str, Any]] = []
        rig.parts.preferences.subscribe(heard.append)
        told = {"rendering": "html", "voice": {"replyMode": "always"}, "downloadLimit": None}
        for _ in range(2):
            rig.parts.follower.settings_told(told)
        self.assertEqual([each["rendering"] for each in heard], ["html"])
        rig.crash()
        rig.start(connect=False)
        found = rig.parts.preferences
        self.assertEqual(found.get("rendering"), "html")
        self.assertEqual(found.get("voice.replyMode"), "always")
        self.assertIs(found.get("voice.sendTranscript"), False)
        self.assertIsNone(found.get("downloadLimit"))
        self.assertIs(found.get("proactivePush"), True)

    def test_odd_values(self) -> None:
        """A value of another type than it should have counts as not told."""
        rig = self.started()
        rig.parts.preferences.take(
            {"rendering": 7, "voice": "x", "draftPreviews": 1, "downloadLimit": "y"}
        )
        found = rig.parts.preferences
        self.assertEqual(found.get("rendering"), "rich")
        self.assertEqual(found.get("voice.replyMode"), "hidden")
        self.assertIs(found.get("draftPreviews"), False)
        self.assertEqual(found.get("downloadLimit"), 20_000_000)

    def test_a_broken_observer(self) -> None:
        """It keeps nobody else from hearing."""
        rig = self.started()
        heard: list[Any] = []

        def broken(_: Any) -> None:
            raise RuntimeError("broken")

        rig.parts.preferences.subscribe(broken)
        rig.parts.preferences.subscribe(heard.append)
        rig.parts.preferences.take({"rendering": "html"})
        self.assertEqual(len(heard), 1)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_set(self) -> None:
        """The leader writes, and what it answers counts at once."""
        rig = self.started()
        self.successResultOf(rig.parts.preferences.set("voice.replyMode", "mirror"))
        self.assertEqual(rig.parts.preferences.get("voice.replyMode"), "mirror")

    def test_not_set(self) -> None:
        """Without a link, with an older leader, and where it is refused, nothing changes."""
        rig = self.started()
        found = rig.parts.preferences
        rig.link.setting_refusals = [Refusal("invalid-value", "no"), LinkLost("gone")]
        for code in ("invalid-value", "unavailable"):
            failure = self.failureResultOf(found.set("rendering", "html"), Refusal)
            self.assertEqual(failure.value.code, code)
        rig.link.capabilities = frozenset()
        self.failureResultOf(found.set("rendering", "html"), Refusal)
        rig.service._bus.lose()  # type: ignore[union-attr]
        self.failureResultOf(found.set("rendering", "html"), Refusal)
        self.assertEqual(found.get("rendering"), "rich")


class Alone(SynchronousTestCase):
    """Without a worker around it."""

    def test_damaged(self) -> None:
        """What was stored and cannot be read counts as nothing."""

        class Store:
            def get_meta(self, key: str) -> str | None:
                return "{broken"

        found = Preferences(Store(), lambda: FakeLeaderLink())  # type: ignore[arg-type]
        self.assertEqual(found.all(), DEFAULTS)

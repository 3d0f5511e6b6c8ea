"""Settings over the bus: told to workers, written for their operator, and nothing else of the file."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred

from pitelegram import errors
from pitelegram.routing.preferences import WRITABLE
from pitelegram.settings.watching import INTERVAL
from tests.routing.support import ALPHA
from tests.routing.test_busleader import BusLeaderCase


class SettingsCase(BusLeaderCase):
    """A settings file beside two followers."""

    def link(self, spec: str = "a") -> Any:  # type: ignore[override]
        """The worker's end."""
        return self.clients[spec].link

    def set(self, name: str, value: Any) -> Any:
        """Ask for a setting; the answer or the refusal's code."""
        asking: Deferred[Any] = self.link().set_setting(name, value)
        for _ in range(100):
            self.wire.flush()
            if asking.called:
                break
            self.clock.advance(0.03)
        results: list[Any] = []
        asking.addBoth(results.append)
        (result,) = results
        if not hasattr(result, "value"):
            return result
        assert isinstance(result.value, errors.Refusal)
        return result.value.code

    def document(self) -> dict[str, Any]:
        """What stands in the file."""
        return json.loads(self.telegram_json.read_text())  # type: ignore[no-any-return]

    def write(self, document: dict[str, Any]) -> None:
        """Somebody else writes the file."""
        self.telegram_json.write_text(json.dumps(document))
        self.telegram_json.chmod(0o600)


class Telling(SettingsCase):
    """From the file to the workers."""

    def test_with_the_registration(self) -> None:
        """The answer has every setting that a worker needs, and nothing secret."""
        settings = self.link().registration["settings"]
        self.assertEqual(
            settings,
            {
                "rendering": "rich",
                "fileAfter": 20_000,
                "workspaceOnly": False,
                "draftPreviews": False,
                "proactivePush": True,
                "activity": "verbose",
                "footer": False,
                "timeInjection": "interval",
                "automaticCleanup": True,
                "voice": {"replyMode": "hidden", "sendTranscript": False},
                "inboundHandlers": [],
                "outboundHandlers": [],
                "downloadLimit": 20_000_000,
            },
        )
        self.assertEqual(self.followers["a"].settings, [])

    def test_when_they_changed(self) -> None:
        """Each follower hears of a change with its next heartbeat, once."""
        self.watcher.startService()
        self.write(
            {
                "profiles": {"default": {"botToken": "1:secret"}},
                "assistant": {"rendering": "html"},
                "inboundHandlers": [{"type": "voice"}],
            }
        )
        self.clock.advance(INTERVAL)
        for _ in range(5):
            self.clock.advance(1.0)
            self.wire.flush()
        for spec in "ab":
            (told,) = self.followers[spec].settings
            self.assertEqual(told["rendering"], "html")
            self.assertEqual(told["inboundHandlers"], [{"type": "voice"}])
            self.assertNotIn("secret", json.dumps(told))
        self.watcher.stopService()

    def test_without_the_capability(self) -> None:
        """An older follower is told nothing, and may write nothing."""
        follower = self.registry.live(ALPHA)
        assert follower is not None
        follower.link.capabilities = frozenset()
        self.assertNotIn("settings", self.bus_leader.heartbeat(follower.link, {}))
        self.assertEqual(self.set("rendering", "html"), "not-allowed")
        self.assertFalse(self.telegram_json.exists())


class Writing(SettingsCase):
    """From a worker to the file."""

    def test_every_value(self) -> None:
        """What is written is in force in the answer, and other keys of the file stay."""
        self.write({"profiles": {"default": {"allowedUserId": 7}}, "future": {"x": 1}})
        for name, place in WRITABLE.items():
            for value in place.values:
                answer = self.set(name, value)
                for part in name.split("."):
                    answer = answer[part]
                self.assertEqual(answer, value, name)
        document = self.document()
        self.assertEqual(document["future"], {"x": 1})
        self.assertEqual(document["profiles"], {"default": {"allowedUserId": 7}})
        self.assertEqual(document["voice"]["replyMode"], "always")
        self.set("voice.replyMode", "hidden")
        self.assertNotIn("replyMode", self.document()["voice"])

    def test_refused(self) -> None:
        """Other names and other values change nothing, whatever they are."""
        for name, value, code in (
            ("botToken", "x", "unknown-setting"),
            ("profiles.default.allowedUserId", 1, "unknown-setting"),
            ("", True, "unknown-setting"),
            ("rendering", "plain", "invalid-value"),
            ("rendering", ["rich"], "invalid-value"),
            ("draftPreviews", 1, "invalid-value"),
            ("draftPreviews", None, "invalid-value"),
            ("proactivePush", "true", "invalid-value"),
            ("activity", {"a": 1}, "invalid-value"),
        ):
            self.assertEqual(self.set(name, value), code, (name, value))
        self.assertFalse(self.telegram_json.exists())

    def test_a_file_that_cannot_be_written(self) -> None:
        """Invalid JSON is left as it is, and the worker is told."""
        self.telegram_json.write_text("{ broken")
        self.telegram_json.chmod(0o600)
        self.assertEqual(self.set("rendering", "html"), "unavailable")
        self.assertEqual(self.telegram_json.read_text(), "{ broken")

    def test_an_odd_file(self) -> None:
        """A text where an object belongs gives way to one."""
        self.write({"assistant": "odd"})
        self.assertEqual(self.set("rendering", "html")["rendering"], "html")
        self.assertEqual(self.document()["assistant"], {"rendering": "html"})

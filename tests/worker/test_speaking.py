"""Answers that are spoken, and texts that the operator's programs change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.comments import HEADING
from pitelegram.bridge.prompt import VOICE_LINE
from pitelegram.testing.outbound import SOUND, FakeOutboundHandlers
from pitelegram.testing.worker import BINDING, WorkerRig
from pitelegram.worker.speaking import FAILED

HELLO = "[[say 'Read this.\\n<!-- telegram_voice: Hello -->']]"
ONLY = "[[say '<!-- telegram_voice: Hello -->']]"


class SpeakingCase(SynchronousTestCase):
    """A worker with programs in memory."""

    def setUp(self) -> None:
        """Start it."""
        self.rig = WorkerRig(Path(self.mktemp()).resolve())
        self.addCleanup(self.rig.database.close)
        self.voice = self.rig.outbound = FakeOutboundHandlers(self.rig.base)
        self.rig.start()

    def prefer(self, **settings: Any) -> None:
        """The operator has these settings."""
        self.rig.parts.preferences.take(settings)

    def sent(self) -> list[tuple[str, Any]]:
        """Method and text, or caption, of each submitted call."""
        return [
            (call["method"], _said(call["params"]))
            for _, delivery in self.rig.link.submitted
            for call in delivery["calls"]
        ]


def _said(params: dict[str, Any]) -> Any:
    rich = params.get("rich_message", {}).get("markdown")
    return params.get("text") or rich or params.get("caption")


class Explicit(SpeakingCase):
    """C{telegram_voice}."""

    def test_prose_and_voice(self) -> None:
        """The prose is kept, and the recording comes behind it, with its words where that is wanted."""
        self.rig.message(HELLO)
        self.assertEqual(self.sent(), [("sendRichMessage", "Read this."), ("sendVoice", None)])
        self.assertEqual(self.rig.link.spooled, [SOUND + b"Hello"])
        self.prefer(voice={"replyMode": "hidden", "sendTranscript": True})
        self.rig.message(HELLO, message_id=2)
        self.assertEqual(self.sent()[-1], ("sendVoice", "Hello"))
        self.assertFalse(list(self.rig.paths.worker_files(BINDING).iterdir()))
        self.assertFalse(list(self.rig.base.glob("*.ogg")), "a recording was left")

    def test_only_voice(self) -> None:
        """It is the reply; its words are not shown beside it."""
        self.rig.message(ONLY, 9)
        ((name, delivery),) = self.rig.link.submitted
        (call,) = delivery["calls"]
        self.assertEqual((call["method"], name[-7:]), ("sendVoice", ".voice1"))
        self.assertEqual(call["params"]["reply_parameters"]["message_id"], 9)

    def test_voice_and_buttons(self) -> None:
        """Buttons have their heading, which is the reply; the recording comes behind it."""
        self.rig.message("[[say '<!-- telegram_voice: Hi -->\\n<!-- telegram_button: A -->']]")
        self.assertEqual(self.sent(), [("sendRichMessage", HEADING), ("sendVoice", None)])

    def test_nobody_speaks(self) -> None:
        """The words are shown, and it is said."""
        self.voice.speaks = False
        self.rig.message(ONLY)
        self.assertEqual(self.sent(), [("sendRichMessage", "Hello"), ("sendMessage", FAILED)])

    def test_killed_while_a_program_runs(self) -> None:
        """It is spoken again by the next process, and comes once."""
        self.voice.held = True
        self.rig.message(HELLO)
        self.assertEqual(self.sent(), [])
        self.rig.crash()
        (before,) = self.voice.spoken
        self.voice = self.rig.outbound = FakeOutboundHandlers(self.rig.base)
        self.rig.start()
        self.rig.run(1)
        self.assertEqual(self.sent(), [("sendRichMessage", "Read this."), ("sendVoice", None)])
        self.assertEqual(self.voice.spoken, [before])

    def test_what_comes_next_waits(self) -> None:
        """Nothing overtakes an answer that is being spoken; Pi goes on meanwhile."""
        self.voice.held = True
        self.rig.message(HELLO)
        self.rig.message("second", 2)
        self.assertEqual((len(self.rig.prompts()), self.sent()), (2, []))
        self.voice.release()
        self.rig.run(1)
        self.assertEqual(
            [text for _, text in self.sent()], ["Read this.", None, "You said: second"]
        )


class Automatic(SpeakingCase):
    """C{voice.replyMode}."""

    def test_always(self) -> None:
        """Pi is told, and every answer is spoken, stripped, in place of its text."""
        self.prefer(voice={"replyMode": "always", "sendTranscript": False})
        self.rig.message("[[say 'It **works**.']]")
        self.assertTrue(self.rig.prompts()[0].endswith(VOICE_LINE))
        self.assertEqual(self.sent(), [("sendVoice", None)])
        self.assertEqual([each.text for each in self.voice.spoken], ["It works."])

    def test_explicit_wins(self) -> None:
        """What Pi wants spoken is spoken, and nothing else."""
        self.prefer(voice={"replyMode": "always", "sendTranscript": False})
        self.rig.message(HELLO)
        self.assertEqual([each.text for each in self.voice.spoken], ["Hello"])
        self.assertEqual(self.sent()[0], ("sendRichMessage", "Read this."))

    def test_mirror_of_a_text(self) -> None:
        """A text is answered by a text."""
        self.prefer(voice={"replyMode": "mirror", "sendTranscript": False})
        self.rig.message("hello")
        self.assertNotIn(VOICE_LINE, self.rig.prompts()[0])
        self.assertEqual(self.voice.spoken, [])

    def test_nobody_speaks(self) -> None:
        """Where nobody can, Pi is not told so."""
        self.voice.speaks = False
        self.prefer(voice={"replyMode": "always", "sendTranscript": False})
        self.rig.message("hello")
        self.assertNotIn(VOICE_LINE, self.rig.prompts()[0])
        self.assertEqual(self.sent(), [("sendRichMessage", "You said: hello")])


class Texts(SpeakingCase):
    """Handlers of texts."""

    def test_final_text_only(self) -> None:
        """The text is changed, the prompt of a button is not."""
        self.voice.before = "Sir, "
        self.rig.message("[[say 'it is done.\\n<!-- telegram_button: A -->']]")
        self.assertEqual(self.sent(), [("sendRichMessage", "Sir, it is done.")])
        (_, delivery) = self.rig.link.submitted[0]
        markup = delivery["calls"][0]["params"]["reply_markup"]
        self.rig.press(markup["inline_keyboard"][0][0]["callback_data"])
        self.assertTrue(self.rig.prompts()[-1].endswith("A"))

"""The operator's own programs for what comes in."""

import os
from pathlib import Path

import attrs
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase, TestCase

from pitelegram.bridge import handlerwords as words
from pitelegram.bridge.interfaces import Processed
from pitelegram.errors import ConfigError
from pitelegram.kernel.deferring import deferred
from pitelegram.testing.contracts_handlers import InboundHandlersContract
from pitelegram.testing.handlers import FakeInboundHandlers, file_item
from pitelegram.worker.handlers import InboundHandlers
from pitelegram.worker.providers import PROVIDER_SECONDS, Providers
from tests.worker.test_programs import FakeProcesses, Reactor


class FakeTests(InboundHandlersContract, TestCase):
    """The fake keeps the contract."""

    def make_silent(self):
        """See the contract."""
        return FakeInboundHandlers()

    def make_answering(self, output):
        """See the contract."""

        def answer(_, files):
            paths = tuple(file.path for file in files if file.kind == "document")
            return Processed(outputs=(output,) * len(paths), handled=paths)

        return FakeInboundHandlers(answer)

    def make_replacing(self, text):
        """See the contract."""
        return FakeInboundHandlers(lambda *_: Processed(text=text))

    def make_failing(self):
        """See the contract."""
        return FakeInboundHandlers(lambda *_: Processed(notices=("a handler failed",)))

    def make_hanging(self):
        """See the contract."""
        handlers = FakeInboundHandlers()
        handlers.paused = True
        return handlers

    def test_paused(self):
        """Calls wait while it is paused, and are remembered; a cancelled one is counted."""
        handlers = FakeInboundHandlers(lambda text, _: Processed(text=text.upper()))
        handlers.paused = True
        item = file_item("voice")
        first, second = handlers.process("a", [item]), handlers.process("b", [])
        second.cancel()
        self.failureResultOf(second)
        self.assertEqual((handlers.waiting, handlers.cancelled), (1, 1))
        handlers.release()
        self.assertEqual(self.successResultOf(first), Processed(text="A"))
        self.assertEqual(handlers.calls, [("a", (item,)), ("b", ())])


class RealTests(InboundHandlersContract, TestCase):
    """The real ones keep the contract, with real programs."""

    def make(self, *entries):
        """Return handlers with these entries."""
        from twisted.internet import reactor

        directory = Path(self.mktemp_directory())
        handlers = InboundHandlers(reactor, directory, dict(os.environ), lambda: list(entries))
        self.addCleanup(handlers.stop)
        return handlers

    def mktemp_directory(self):
        """Return a fresh directory."""
        path = os.path.abspath(self.mktemp())
        os.mkdir(path)
        return path

    def make_silent(self):
        """See the contract."""
        return self.make({"type": "photo", "template": "false"})

    def make_answering(self, output):
        """See the contract."""
        return self.make({"type": "document", "template": f"echo {output}"})

    def make_replacing(self, text):
        """See the contract."""
        return self.make({"type": "text", "template": f"echo {text}"})

    def make_failing(self):
        """See the contract."""
        return self.make({"type": "document", "template": "false {file} {text}"})

    def make_hanging(self):
        """See the contract."""
        return self.make({"type": "document", "template": "sleep 60"})


VOICE = file_item("voice", path="/tmp/v.ogg", name="v.ogg", mime="audio/ogg", size=9)
PHOTO = file_item("photo", path="/tmp/p.jpg", name="p.jpg", mime="image/jpeg")


class ProcessTests(TestCase):
    """What entries do with messages, with real programs."""

    def setUp(self):
        """Handlers whose setting a test changes."""
        from twisted.internet import reactor

        self.setting = []
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        environment = dict(os.environ)
        self.handlers = InboundHandlers(reactor, Path(directory), environment, lambda: self.setting)
        self.addCleanup(self.handlers.stop)

    @deferred
    async def test_placeholders(self):
        """A file's path, type, kind, name and size, and the message's text are values."""
        template = "echo {file} {mime} {type} {name} {size} {text}"
        self.setting = [{"template": template}]
        result = await self.handlers.process("the words", [VOICE])
        self.assertEqual(result.outputs, ("/tmp/v.ogg audio/ogg voice v.ogg 9 the words",))
        self.setting = [
            {"type": "text", "template": "echo <{file}{name}> {mime} {type} {size} {text}"}
        ]
        result = await self.handlers.process("wörds", [])
        self.assertEqual(result.text, "<> text/plain text 6 wörds")

    @deferred
    async def test_text_on_stdin(self):
        """The first program reads the original text, for files too."""
        self.setting = [{"type": ["text", "voice"], "template": "tr a-z A-Z"}]
        result = await self.handlers.process("words", [VOICE])
        self.assertEqual((result.text, result.outputs), ("WORDS", ("WORDS",)))

    @deferred
    async def test_first_output_wins(self):
        """Failures and empty outputs fall through to the next entry; what comes after is not run."""
        self.setting = [
            {"label": "one", "template": "false"},
            {"label": "two", "template": "true"},
            {"type": "photo", "template": "echo other"},
            {"label": "three", "template": "echo three"},
            {"label": "four", "template": "no-such-program"},
        ]
        result = await self.handlers.process("x", [file_item()])
        self.assertEqual(result.outputs, ("three",))
        self.assertEqual(
            result.notices, ("⚠️ one failed on the document: exit code 1. Pi got the file.",)
        )

    @deferred
    async def test_each_file(self):
        """Each file has its own first output; files without one are left out."""
        self.setting = [
            {"type": "photo", "template": "echo p"},
            {"mime": "text/*", "template": "cat"},
        ]
        files = [PHOTO, file_item(), file_item(mime="text/x", path="/tmp/t"), PHOTO]
        result = await self.handlers.process("c", files)
        self.assertEqual(result.outputs, ("p", "c", "p"))
        self.assertEqual(result.handled, ("/tmp/p.jpg", "/tmp/t", "/tmp/p.jpg"))
        self.assertIsNone(result.text)

    @deferred
    async def test_voice(self):
        """What a recording says is the text when there is none, and an output when there is."""
        self.setting = [{"match": "voice", "template": "echo said {file}"}]
        result = await self.handlers.process("", [VOICE])
        self.assertEqual((result.text, result.outputs), ("said /tmp/v.ogg", ()))
        self.assertEqual(result.handled, ("/tmp/v.ogg",))
        result = await self.handlers.process("caption", [VOICE])
        self.assertEqual((result.text, result.outputs), (None, ("said /tmp/v.ogg",)))
        result = await self.handlers.process(" ", [VOICE, VOICE])
        self.assertEqual(result.text, "said /tmp/v.ogg\n\nsaid /tmp/v.ogg")
        self.assertEqual(result.notices, ("🎤 said /tmp/v.ogg",))

    @deferred
    async def test_forwarded_voice(self):
        """What somebody else says is never taken for the operator's words, and names its file."""
        self.setting = [{"match": "voice", "template": "echo said"}]
        foreign = attrs.evolve(VOICE, foreign=True)
        result = await self.handlers.process("", [foreign])
        self.assertEqual((result.text, result.outputs), (None, ("[v.ogg]\nsaid",)))
        result = await self.handlers.process("", [foreign, VOICE])
        self.assertEqual((result.text, result.outputs), ("said", ("[v.ogg]\nsaid",)))
        result = await self.handlers.process("look", [foreign, VOICE])
        self.assertEqual((result.text, result.outputs), (None, ("[v.ogg]\nsaid", "said")))

    @deferred
    async def test_shown_back(self):
        """What was understood is shown to the operator, the beginning of it (demand 63)."""
        self.setting = [{"match": "voice", "template": "cat"}, {"type": "photo", "template": "cat"}]
        result = await self.handlers.process("x" * 999 + "yz", [VOICE, PHOTO])
        self.assertEqual(result.notices, ("🎤 " + "x" * 999 + "…",))
        result = await self.handlers.process("x" * 1000, [VOICE])
        self.assertEqual(result.notices, ("🎤 " + "x" * 1000,))

    @deferred
    async def test_condition(self):
        """An entry whose condition is not met was not there."""
        self.setting = [{"match": "voice", "when": "text", "template": "echo said"}]
        result = await self.handlers.process("", [VOICE])
        self.assertEqual((result.text, result.notices), (None, (words.NOBODY_LISTENS,)))

    @deferred
    async def test_failed_transcriber(self):
        """A transcriber that fails is told of, with its reason; nothing else is lost (demand 64)."""
        for template, reason in (
            ("false {file}", "exit code 1"),
            ("whisper-that-is-not-there {file}", "was not found"),
            ({"timeout": 100, "template": "sleep 60"}, "took longer than 0.1 s"),
        ):
            entry = template if isinstance(template, dict) else {"template": template}
            self.setting = [{"type": "voice", "label": "my stt", **entry}]
            result = await self.handlers.process("", [VOICE])
            self.assertEqual((result.text, result.outputs), (None, ()))
            notice = f"⚠️ my stt failed on the voice message: {reason}. Pi got the file."
            self.assertEqual(result.notices[:1], (notice,))

    @deferred
    async def test_nothing_heard(self):
        """A transcriber that finds nothing is told of."""
        self.setting = [{"type": "voice", "template": "true"}]
        result = await self.handlers.process("", [VOICE])
        self.assertEqual(result.notices, (words.nothing_heard("voice"),))

    @deferred
    async def test_failed_step(self):
        """Of a sequence the step that failed is named."""
        self.setting = [{"label": "stt", "template": ["false", "cat"]}]
        result = await self.handlers.process("", [file_item()])
        self.assertEqual(
            result.notices, ("⚠️ stt (false) failed on the document: exit code 1. Pi got the file.",)
        )

    @deferred
    async def test_missing_value(self):
        """An entry that cannot be run with this message is told of by its place."""
        self.setting = [{"template": "echo {lang}"}, {"template": "echo ok"}]
        result = await self.handlers.process("hidden", [file_item()])
        self.assertEqual(result.outputs, ("ok",))
        self.assertIn("inboundHandlers[0]: {lang} has no value", result.notices[0])
        self.assertNotIn("hidden", result.notices[0])

    @deferred
    async def test_output_bound(self):
        """An output has 12,000 characters and says how many are missing (fault class 94)."""
        self.setting = [{"template": "cat"}]
        result = await self.handlers.process("x" * 20_000, [file_item()])
        self.assertEqual(result.outputs, ("x" * 12_000 + "… [truncated 8000 chars]",))

    @deferred
    async def test_hostile_text(self):
        """Text cannot become a command, an option of ours, or a placeholder."""
        self.setting = [{"type": "text", "template": "printf %s {text}"}]
        for text in ("$(id); `id` | sh && x", "{file}{name=x}", "a\nb 'c\"", "-n", "\\"):
            result = await self.handlers.process(text, [])
            self.assertEqual(result.text or "", text if text != "-n" else "-n")

    @deferred
    async def test_not_runnable_text(self):
        """Text that no program can take as an argument is told of and stays."""
        self.setting = [{"type": "text", "template": "echo {text}"}]
        for text in ("a\0b", "\ud800", "x" * 200_000):
            result = await self.handlers.process(text, [])
            self.assertIsNone(result.text)
            self.assertIn("Pi got the text as it is", result.notices[0])


class SettingTests(SynchronousTestCase):
    """The setting, plug-ins and limits, with processes in memory."""

    def setUp(self):
        """Handlers under a clock."""
        self.setting = []
        self.reactor = Reactor()
        environment = {"PATH": os.environ["PATH"], "HOME": "/home/o"}
        self.providers = Providers()
        self.handlers = InboundHandlers(
            self.reactor,
            Path("/"),
            environment,
            lambda: self.setting,
            self.providers,
            FakeProcesses(self.reactor),
        )

    def process(self, text="", *files):
        """Return what came of a message."""
        return self.successResultOf(self.handlers.process(text, files))

    def test_default_limit(self):
        """An entry has 120 s, one that says a limit has that."""
        for limit, seconds in (({}, 120), ({"timeout": 0}, 120), ({"timeout": 2500}, 2.5)):
            self.setting = [{"template": "cat", **limit}]
            running = self.handlers.process("", [file_item()])
            self.reactor.advance(seconds - 0.1)
            self.assertNoResult(running)
            self.reactor.advance(0.1)
            notice = self.successResultOf(running).notices[0]
            self.assertIn(f"took longer than {seconds:g} s", notice)
            self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_bad_entries(self):
        """Each bad entry is told of once, and the others work; a change is read at once."""
        self.setting = [
            "echo",
            {"template": "x {a"},
            {"type": 3, "template": "x"},
            {"template": "cat"},
        ]
        running = self.handlers.process("", [file_item()])
        self.reactor.processes[-1].out(b"read")
        self.reactor.processes[-1].exit()
        result = self.successResultOf(running)
        self.assertEqual(result.outputs, ("read",))
        self.assertEqual(len(result.notices), 3)
        for index, notice in enumerate(result.notices):
            self.assertIn(f"inboundHandlers[{index}]", notice)
        self.setting = [*self.setting[:3]]
        self.assertEqual(len(self.process("hello").notices), 3)
        self.assertEqual(self.process("hello").notices, ())

    def test_no_list(self):
        """A setting of another shape is told of once."""
        for value in ("x", 3, {"template": "x"}, True):
            self.setting = value
            self.assertEqual(len(self.process("x").notices), 1)
            self.assertEqual(self.process("x").notices, ())
        self.setting = None
        self.assertEqual(self.process("x"), Processed())

    def test_too_deep_to_compare(self):
        """A setting that is nested without end is refused, not followed."""
        for _ in range(2):
            deep = inner = []
            for _ in range(100_000):
                inner.append([])
                inner = inner[0]
            self.setting = [{"template": deep}]
            self.assertEqual(len(self.process("x").notices), 1)
            while deep:
                deep = deep.pop()

    def test_nobody(self):
        """Without a transcriber a recording is told of, once a message; other files are not."""
        self.assertEqual(self.process("", VOICE, VOICE).notices, (words.NOBODY_LISTENS,))
        self.assertEqual(self.process("text", VOICE).notices, (words.NOBODY_LISTENS,))
        self.assertEqual(self.process("", PHOTO), Processed())
        self.assertIn("inboundHandlers", words.NOBODY_LISTENS)

    def test_transcribers(self):
        """Transcribers are asked in their order until one has words (demand 63)."""
        asked = []

        def first(file):
            asked.append(file)
            raise ValueError("private words")

        async def second(file):
            return "   "

        def third(file):
            return succeed({"text": " hello ", "lang": "en"})

        self.providers.register_transcriber("first", first)
        self.providers.register_transcriber("second", second)
        self.providers.register_transcriber("third", third)
        result = self.process("", VOICE)
        self.assertEqual((result.text, result.outputs, asked), ("hello", (), [VOICE]))
        self.assertEqual(
            result.notices,
            (
                "⚠️ first failed on the voice message: failed (ValueError). Pi got the file.",
                "🎤 hello",
            ),
        )
        self.assertEqual(self.process("caption", VOICE).outputs, ("hello",))
        self.assertEqual(self.process("", PHOTO), Processed())

    def test_transcriber_after_entries(self):
        """Entries come first; a transcriber is asked when none of them had an output."""
        self.providers.register_transcriber("stt", lambda file: "spoken")
        self.setting = [{"type": "voice", "template": "cat"}]
        running = self.handlers.process("", [VOICE])
        self.reactor.processes[-1].exit(1)
        result = self.successResultOf(running)
        self.assertEqual((result.text, len(result.notices)), ("spoken", 2))

    def test_slow_transcriber(self):
        """A transcriber has 120 s."""
        cancelled = []
        self.providers.register_transcriber("slow", lambda file: Deferred(cancelled.append))
        running = self.handlers.process("", [VOICE])
        self.reactor.advance(PROVIDER_SECONDS)
        self.assertIn("took longer than 120 s", self.successResultOf(running).notices[0])
        self.assertEqual(len(cancelled), 1)

    def test_cancelled_transcriber(self):
        """Cancelling ends a transcriber's work; one that cancels itself has only failed."""
        cancelled, own = [], Deferred()
        remove = self.providers.register_transcriber("x", lambda file: Deferred(cancelled.append))
        running = self.handlers.process("", [VOICE])
        running.cancel()
        self.failureResultOf(running, CancelledError)
        self.assertEqual(len(cancelled), 1)
        remove()
        self.providers.register_transcriber("x", lambda file: own)
        running = self.handlers.process("", [VOICE])
        own.cancel()
        self.assertIn("x failed", self.successResultOf(running).notices[0])
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_wrong_transcriber(self):
        """A transcriber that gives something else than text has failed; its words are bounded."""
        remove = self.providers.register_transcriber("x", lambda file: 3)
        self.assertIn("no text", self.process("", VOICE).notices[0])
        remove()
        self.providers.register_transcriber("x", lambda file: "y" * 12_001)
        self.assertTrue(self.process("", VOICE).text.endswith("… [truncated 1 chars]"))

    def test_registration(self):
        """Names of transcribers are unique and sane; taking away takes only one's own away."""
        remove = self.providers.register_transcriber("a", lambda file: "1")
        for name in ("a", "", "x" * 65, "a\nb", 3):
            with self.assertRaises(ConfigError):
                self.providers.register_transcriber(name, lambda file: "2")
        remove()
        self.providers.register_transcriber("a", lambda file: "2")
        remove()
        self.assertEqual(self.process("", VOICE).text, "2")

    def test_plug_ins(self):
        """Plug-ins for a kind are asked after entries, before those for every kind of file."""
        seen = []

        def provider(name, answer):
            def work(text, file):
                seen.append((name, text, file))
                return answer

            return work

        self.providers.register_handler("*", provider("any", "any"))
        self.providers.register_handler("photo", provider("photo", None))
        self.providers.register_handler("text", provider("text", "new text"))
        result = self.process("old", PHOTO)
        self.assertEqual((result.text, result.outputs), ("new text", ("any",)))
        self.assertEqual([name for name, _, _ in seen], ["photo", "any", "text"])
        self.assertEqual(seen[0][1:], ("old", PHOTO))
        self.assertEqual(seen[2][1:], ("old", None))

    def test_own_fault(self):
        """A fault of ours is logged and costs the output, not the message."""
        self.setting = [{"template": "cat"}]
        self.handlers._runner = None
        result = self.process("", file_item())
        self.assertIn("an error of this program", result.notices[0])
        self.assertEqual(len(self.flushLoggedErrors(AttributeError)), 1)

    def test_log(self):
        """A failure is logged with what the program said, without what it was given."""
        events = []
        from twisted.logger import globalLogPublisher

        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        self.setting = [{"template": "cat"}]
        running = self.handlers.process("private words", [VOICE])
        self.reactor.processes[-1].err(b"cannot open /tmp/v.ogg: private words: broken")
        self.reactor.processes[-1].exit(1)
        self.successResultOf(running)
        logged = [event for event in events if "errors" in event]
        self.assertEqual(logged[0]["errors"], "cannot open <file>: <text>: broken")
        self.setting = [{"type": "text", "template": "cat"}]
        running = self.handlers.process("private words", [])
        self.reactor.processes[-1].err(b"private")
        self.reactor.processes[-1].exit(1)
        self.successResultOf(running)
        logged = [event for event in events if "errors" in event]
        self.assertEqual(logged[1]["errors"], "")

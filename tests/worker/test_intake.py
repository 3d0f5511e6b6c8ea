"""Messages on their way to prompts: files, groups, edits, presses, crashes."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.bridge import intakewords as words
from pitelegram.bridge.interfaces import FileItem, IInboundHandlers, Processed
from pitelegram.errors import LinkLost, Refusal
from pitelegram.testing.handlers import FakeInboundHandlers
from pitelegram.testing.worker import CHAT, THREAD, WorkerRig
from pitelegram.worker.files import PATIENCE
from pitelegram.worker.interfaces import IGatherer
from pitelegram.worker.making import NoHandlers
from tests.worker.test_queue import Replaced, RigCase

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
TAG = "[telegram|thread:Atlas]"
EVE = {"type": "hidden_user", "sender_user_name": "Eve"}


class IntakeCase(RigCase):
    """A worker whose Pi is at work, so that prompts wait."""

    def begun(self, busy: bool = True) -> WorkerRig:
        """Return a rig; with C{busy} its Pi waits at a gate."""
        rig = self.started()
        rig.link.directory = rig.base / "downloads"
        if busy:
            rig.message("[[gate a]]", 1)
        return rig

    def held(self, rig: WorkerRig) -> list[str]:
        """The prompts that wait, file names without what makes them unique."""
        directory = str(rig.base / "downloads")
        rows = rig.inbox.rows("held")
        return [_stable(row.prompt or "", directory) for row in rows]

    def batch(self, rig: WorkerRig, *messages: dict[str, Any]) -> None:
        """Forward messages that are in admission at the same time."""
        gatherer = rig.parts.gatherer
        place = CHAT, THREAD
        for _ in messages:
            gatherer.expect(place)
        for message in messages:
            fields = dict(message)
            rig.message(fields.pop("text", None), **fields)
            gatherer.take(place, None)


def _stable(prompt: str, directory: str) -> str:
    lines = prompt.replace(directory, "<dir>").split("\n")
    return "\n".join(f"- /{line[16:]}" if line.startswith("- /0") else line for line in lines)


def photo(file_id: str = "F", **fields: Any) -> dict[str, Any]:
    """A photo's members."""
    return {"photo": [{"file_id": file_id, "file_unique_id": f"u{file_id}"}], **fields}


def document(file_id: str = "F", name: str = "a.bin", **fields: Any) -> dict[str, Any]:
    """A document's members."""
    return {"document": {"file_id": file_id, "file_name": name}, **fields}


class CommitTests(IntakeCase):
    """No receipt, no download, no prompt and no answer before the commit; all of it after."""

    def stored_first(self, text: str | None, **fields: Any) -> None:
        """A message comes while the disk takes its time."""
        rig = self.begun(busy=False)
        rig.link.files["F"] = b"x"
        committed: Deferred[bool] = Deferred()
        real = rig.inbox.admit

        def admit(*arguments: Any, **named: Any) -> Deferred[bool]:
            return committed.addCallback(lambda _: real(*arguments, **named))

        rig.parts.intake._inbox = Replaced(rig.inbox, admit=admit)
        rig.message(text, 5, **fields)
        rig.run(5)
        self.assertNoResult(rig.receipt)
        told = (rig.prompts(), rig.link.downloads, rig.link.texts, rig.states())
        self.assertEqual(told, ([], [], [], {}))
        committed.callback(True)
        rig.run(1)
        self.assertEqual(self.successResultOf(rig.receipt), ("accepted", ""))
        self.assertEqual(rig.states(), {"settled": 1})
        self.assertTrue(rig.link.texts)

    def test_text(self) -> None:
        """A prompt that waits for nothing."""
        self.stored_first("words")

    def test_command(self) -> None:
        """What overtakes the queue."""
        self.stored_first("/abort")

    def test_file(self) -> None:
        """What has to be fetched."""
        self.stored_first(None, **document())


class FileTests(IntakeCase):
    """Files through the leader."""

    def test_photo(self) -> None:
        """Its path stands in the prompt, and Pi is shown it."""
        rig = self.begun(busy=False)
        rig.link.files["F"] = PNG
        rig.message(None, 5, caption="look", **photo())
        ((_, text, _),) = rig.host.prompts
        (row,) = rig.inbox.rows("handed", "settled")[:1] or [None]
        self.assertEqual(
            _stable(text, str(rig.base / "downloads")),
            f"{TAG} look\n\n[attachments] <dir>\n- /photo-5.jpg",
        )
        (image,) = rig.host.images[-1]
        self.assertEqual(base64.b64decode(image["data"]), PNG)
        self.assertEqual(image["mimeType"], "image/png")
        self.assertIsNotNone(row)

    def test_same_names(self) -> None:
        """Two files of one name stay apart; a name is only a name."""
        rig = self.begun()
        rig.link.files.update({"A": b"\0a", "B": b"\0b"})
        rig.message(None, 5, **document("A", "../../x.bin"))
        rig.message(None, 6, **document("B", "../../x.bin"))
        files = [row.content["files"][0] for row in rig.inbox.rows("held")]  # type: ignore[index]
        self.assertEqual([Path(f["path"]).read_bytes() for f in files], [b"\0a", b"\0b"])
        self.assertEqual({Path(f["path"]).parent for f in files}, {rig.base / "downloads"})
        self.assertEqual([f["name"] for f in files], ["_.._x.bin"] * 2)

    def test_text_is_inlined(self) -> None:
        """A text file's words are an output, within the bound and without tags of ours."""
        rig = self.begun()
        rig.link.files.update({"A": "ä\n[time] x".encode(), "B": b"x" * 13_000, "C": b"a\0b"})
        rig.message(None, 5, **document("A", "a.txt"))
        rig.message(None, 6, **document("B", "b.py"))
        rig.message(None, 7, **document("C", "c.txt"))
        first, second, third = self.held(rig)
        self.assertTrue(first.endswith("\n\n[outputs]\n- [a.txt]\nä\n\\[time] x"), first)
        self.assertTrue(second.endswith("x… [truncated 1007 chars]"), second[-40:])
        self.assertEqual(third, f"{TAG}\n\n[attachments] <dir>\n- /c.txt")

    def test_downloads_of_an_album(self) -> None:
        """All begin at once; slow ones split nothing; the order is that of the messages."""
        rig = self.begun()
        waiting = {f"F{n}": Deferred() for n in range(10)}
        rig.link.files.update(waiting)
        for number in (3, 1, 2, 0, 4, 5, 6, 7, 8, 9):
            caption = {"caption": "ten"} if number == 0 else {}
            rig.message(None, 10 + number, media_group_id="A", **photo(f"F{number}"), **caption)
        self.assertEqual(len(rig.link.downloads), 10)
        rig.run(6)
        self.assertEqual(self.held(rig), [])
        for name in reversed(waiting):
            waiting[name].callback(PNG)
        rig.run(0.1)
        listed = "".join(f"\n- /photo-{10 + n}.jpg" for n in range(10))
        self.assertEqual(self.held(rig), [f"{TAG} ten\n\n[attachments] <dir>{listed}"])
        (row,) = rig.inbox.rows("held")
        self.assertEqual((row.message_id, len(row.content["images"])), (13, 10))  # type: ignore[index]
        self.assertEqual(len(rig.inbox.members(row.seq)), 9)

    def test_order(self) -> None:
        """What is gathered holds up later texts, and no priority; then all go in order."""
        rig = self.begun()
        rig.link.files["F"] = slow = Deferred()
        rig.message(None, 5, caption="first", **document())
        rig.message("second", 6)
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual(len(rig.host.prompts), 1)
        slow.callback(b"\0")
        rig.run(1)
        self.assertEqual([p.split("\n")[0] for p in rig.prompts()[1:]], ["first", "second"])

    def test_too_large(self) -> None:
        """The limit is told to both, and the prompt goes."""
        rig = self.begun()
        rig.link.files["F"] = Refusal("too-large", "too large", limit=20_000_000)
        rig.message(None, 5, caption="see", **document(name="big.iso"))
        line = "big.iso: larger than 20 MB, which is all that a bot may fetch here"
        self.assertEqual(self.held(rig), [f"{TAG} see\n\n[not delivered]\n- {line}"])
        self.assertIn(words.not_fetched([line]), rig.link.texts)

    def test_refused_by_telegram(self) -> None:
        """A refusal that cannot pass is told at once."""
        rig = self.begun()
        gone = Refusal("api", "Bad Request: invalid file_id", errorCode=400)
        rig.link.files["F"] = gone
        rig.message(None, 5, **document())
        (prompt,) = self.held(rig)
        self.assertIn("[not delivered]\n- a.bin: Telegram does not give it (Bad Request", prompt)
        self.assertEqual(len(rig.link.downloads), 1)

    def test_tried_again(self) -> None:
        """While the leader or Telegram is away the prompt waits."""
        rig = self.begun()
        away = Refusal("unavailable", "Telegram cannot be reached")
        flood = Refusal("api", "Too Many Requests", errorCode=429, retryAfter=7)
        rig.link.files["F"] = [LinkLost("gone"), away, flood, b"\0"]
        rig.message(None, 5, **document())
        rig.run(4)
        self.assertEqual((len(rig.link.downloads), self.held(rig)), (3, []))
        rig.run(20)
        self.assertEqual(self.held(rig), [f"{TAG}\n\n[attachments] <dir>\n- /a.bin"])

    def test_given_up(self) -> None:
        """After ten minutes it goes without the file, and says so."""
        rig = self.begun()
        rig.message(None, 5, caption="see", **document())
        rig.clock.pump([1.0] * int(PATIENCE + 60))
        line = "a.bin: it could not be fetched within 10 minutes"
        self.assertEqual(self.held(rig), [f"{TAG} see\n\n[not delivered]\n- {line}"])
        self.assertIn(words.not_fetched([line]), rig.link.texts)

    def test_vanished(self) -> None:
        """A file that is gone when its turn comes is fetched again before it is handed."""
        rig = self.begun()
        rig.link.files["F"] = b"\0"
        rig.message(None, 5, caption="x", **document())
        (row,) = rig.inbox.rows("held")
        Path(row.content["files"][0]["path"]).unlink()  # type: ignore[index]
        rig.run(61)
        rig.link.files["F"] = slow = Deferred()
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual((len(rig.host.prompts), rig.parts.gatherer.earliest()), (1, row.seq))
        slow.callback(b"\0")
        rig.run(1)
        path = rig.host.prompts[-1][1].split("- /")[1]
        self.assertTrue((rig.base / "downloads" / path).is_file())

    def test_kept(self) -> None:
        """Files of what is unsettled do not age out; what may be sent again is unsettled, too."""
        rig = self.begun()
        rig.link.files["F"] = b"\0"
        rig.message(None, 5, **document())
        (row,) = rig.inbox.rows("held")
        path = Path(row.content["files"][0]["path"])  # type: ignore[index]
        for state in ("held", "uncertain"):
            self.assertEqual([each.seq for each in rig.inbox.rows(state)], [row.seq])
            os.utime(path, (1, 1))
            rig.parts.gatherer.keep()
            self.assertGreater(path.stat().st_mtime, 1_000_000, state)
            rig.inbox.uncertain([row.seq])

    def test_what_the_leader_names(self) -> None:
        """A link, a directory or nothing at all is never used as a file."""
        rig = self.begun()
        files = rig.parts.gatherer._files
        link = rig.base / "link"
        link.symlink_to("/etc/passwd")
        item = _ref()
        for answer in (
            {},
            {"path": 5, "size": 1},
            {"path": "x", "size": 1},
            {"path": str(link), "size": 1},
            {"path": str(rig.base), "size": 1},
            {"path": str(rig.base / "no"), "size": 1},
        ):
            self.assertRaises(OSError, files._placed, item, answer)


def _ref() -> Any:
    from pitelegram.bridge.filerefs import files_of

    return files_of({"message_id": 1, **document()})[0]


class HandlerTests(IntakeCase):
    """What the operator's programs make of it."""

    def _with(self, rig: WorkerRig, answer: Any = None) -> FakeInboundHandlers:
        handlers = FakeInboundHandlers(answer)
        rig.parts.gatherer._maker._handlers = handlers
        return handlers

    def test_outputs_and_text(self) -> None:
        """Outputs follow the files; a text replaces the words; notices are told."""
        rig = self.begun()
        rig.link.files["F"] = b"words in the file"
        outputs = ("one", "two\n[reply|from:bot] x")
        handlers = self._with(
            rig,
            lambda text, files: Processed(
                text="better", outputs=outputs, notices=("no",), handled=(files[0].path,)
            ),
        )
        rig.message(None, 5, caption="worse", **document())
        self.assertEqual(
            self.held(rig),
            [
                f"{TAG} better\n\n[attachments] <dir>\n- /a.bin\n\n"
                "[outputs]\n- one\n- two\n\\[reply|from:bot] x"
            ],
        )
        ((text, files),) = handlers.calls
        self.assertEqual((text, [file.name for file in files]), ("worse", ["a.bin"]))
        self.assertIn("no", rig.link.texts)

    def test_files_that_nothing_was_made_of(self) -> None:
        """A text file beside one that a program took is read all the same."""
        rig = self.begun()
        rig.link.files.update({"F": b"\0", "G": b"plain"})
        self._with(
            rig,
            lambda _, files: Processed(
                outputs=("made",), handled=tuple(f.path for f in files if f.name == "a.bin")
            ),
        )
        rig.message(None, 5, media_group_id="A", **document())
        rig.message(None, 6, media_group_id="A", **document("G", "b.txt"))
        rig.run(1.3)
        (prompt,) = self.held(rig)
        self.assertTrue(prompt.endswith("[outputs]\n- made\n- [b.txt]\nplain"), prompt)

    def test_somebody_elses(self) -> None:
        """Handlers are told which recordings were forwarded."""
        rig = self.begun()
        rig.link.files["F"] = b"OggS"
        handlers = self._with(rig)
        voice = {"file_id": "F", "mime_type": "audio/ogg"}
        origin = {"type": "hidden_user", "sender_user_name": "Eve", "date": 1}
        rig.message(None, 5, voice=voice, forward_origin=origin)
        rig.run(1.1)
        rig.message(None, 6, voice=voice)
        foreign = [file.foreign for _, files in handlers.calls for file in files]
        self.assertEqual(foreign, [True, False])

    def test_slow(self) -> None:
        """A slow handler holds up its own prompt and later ones, not commands."""
        rig = self.begun()
        handlers = self._with(rig, lambda text, files: Processed(outputs=("x",)))
        handlers.paused = True
        rig.message("hello", 5)
        rig.message("/status", 6)
        self.assertEqual((self.held(rig), len(rig.link.texts)), ([], 1))
        handlers.release()
        rig.run(0.1)
        self.assertEqual(self.held(rig), [f"{TAG} hello\n\n[outputs]\n- x"])

    def test_end(self) -> None:
        """The end of the worker ends the programs; the message stays admitted."""
        rig = self.begun()
        handlers = self._with(rig)
        handlers.paused = True
        rig.message("hello", 5)
        rig.parts.gatherer.stop()
        self.assertEqual((handlers.cancelled, len(rig.inbox.rows("admitted"))), (1, 1))

    def test_none(self) -> None:
        """Without handlers nothing is changed."""
        handlers = NoHandlers()
        verifyObject(IInboundHandlers, handlers)
        file = FileItem(kind="photo", path="/x", name="x", mime="image/png", size=1)
        self.assertEqual(self.successResultOf(handlers.process("a", [file])), Processed())


class GroupTests(IntakeCase):
    """Several messages, one prompt."""

    def test_paste(self) -> None:
        """Twelve thousand characters in three parts are joined as they were."""
        rig = self.begun()
        whole = "".join(f"line {n:05d} \n" for n in range(1000))[:12_000]
        pieces = [whole[i : i + 4096] for i in range(0, 12_000, 4096)]
        self.batch(rig, *[{"text": t, "message_id": 5 + n} for n, t in enumerate(pieces)])
        rig.run(1.1)
        self.assertEqual(self.held(rig), [f"{TAG} {whole}"])

    def test_forward_and_comment(self) -> None:
        """In one batch, in either order: one turn with both attributions."""
        rig = self.begun()
        news = {"text": "news", "forward_origin": EVE}
        self.batch(rig, {**news, "message_id": 5}, {"text": "what?", "message_id": 6})
        self.batch(rig, {"text": "and?", "message_id": 7}, {**news, "message_id": 8})
        rig.run(1.1)
        self.assertEqual(
            self.held(rig),
            [f"{TAG} what?\n\n[forward|from:Eve] news", f"{TAG} and?\n\n[forward|from:Eve] news"],
        )

    def test_comment_that_waits(self) -> None:
        """A comment that is held already is joined with the forward that follows."""
        rig = self.begun()
        rig.message("see", 5)
        self.assertEqual(self.held(rig), [f"{TAG} see"])
        rig.link.files["F"] = slow = Deferred()
        rig.message(None, 6, forward_origin=EVE, **document())
        rig.host.open_gate("a")
        rig.run(1)
        self.assertEqual(len(rig.host.prompts), 1)
        slow.callback(b"\0")
        rig.run(1)
        self.assertEqual(
            _stable(rig.host.prompts[-1][1], str(rig.base / "downloads")),
            f"{TAG} see\n\n[forward|from:Eve]\n\n[attachments|from:Eve] <dir>\n- /a.bin",
        )
        self.assertEqual(rig.states().get("held"), None)

    def test_commands_overtake(self) -> None:
        """A command is done while a group is gathered; /stop drops the group."""
        rig = self.begun()
        rig.message(None, 5, media_group_id="A", **photo())
        rig.message(None, 6, media_group_id="A", **photo("G"))
        rig.message("/stop", 7)
        rig.run(5)
        self.assertEqual((self.held(rig), len(rig.inbox.rows("admitted"))), ([], 0))
        self.assertEqual(len(rig.inbox.rows("skipped")), 2)
        self.assertEqual(rig.parts.gatherer.earliest(), None)

    def test_cleared_by_the_control_socket(self) -> None:
        """clear_queue takes what is gathered along with what is held."""
        rig = self.begun()
        rig.message("held", 4)
        rig.message(None, 5, media_group_id="A", **photo())
        dropped = self.successResultOf(rig.parts.brake.clear_all())
        self.assertEqual((dropped, len(rig.inbox.rows("skipped"))), (2, 2))

    def test_crash_while_it_gathers(self) -> None:
        """Rows stay admitted; the next process makes the same prompt of them."""
        rig = self.begun()
        rig.link.files.update({"F": Deferred(), "G": Deferred()})
        rig.message(None, 5, media_group_id="A", caption="two", **photo())
        rig.message(None, 6, media_group_id="A", **photo("G"))
        rig.run(2)
        self.assertEqual(len(rig.inbox.rows("admitted")), 2)
        rig.crash()
        rig.start(connect=False)
        rig.connect()
        rig.link.directory = rig.base / "downloads"
        rig.link.files.update({"F": PNG, "G": PNG})
        rig.run(20)
        listed = "\n- /photo-5.jpg\n- /photo-6.jpg"
        self.assertEqual(self.held(rig), [f"{TAG} two\n\n[attachments] <dir>{listed}"])

    def test_name_over_a_crash(self) -> None:
        """A prompt that is made before the next registration says its Thread's name all the same."""
        rig = self.begun(busy=False)
        rig.message("news", 5, forward_origin=EVE)
        rig.link.registration["displayTitle"] = "Borea"
        rig.message("plain", 6)
        rig.crash()
        rig.start(connect=False)
        rig.message("more", 7)
        rig.run(3)
        self.assertEqual(
            [text for _, text, _ in rig.host.prompts][-1], "[telegram|thread:Borea] more"
        )

    def test_shown_while_it_gathers(self) -> None:
        """The queue, its count and the heartbeat have what is still being gathered or fetched, once."""
        rig = self.begun()
        rig.link.files["F"] = slow = Deferred()
        rig.message("waits", 4)
        rig.message(None, 5, caption="see", **photo())
        rig.message("news", 6, forward_origin=EVE)
        queue, gatherer = rig.parts.queue, rig.parts.gatherer
        shown = [(item.position, item.summary) for item in queue.view()]
        self.assertEqual(shown, [(1, "waits"), (2, "⏳ see"), (3, "⏳ [forward|from:Eve] news")])
        self.assertEqual((gatherer.unfinished(), queue.waiting), (2, 3))
        self.assertEqual(rig.parts.report.state()["queued"], 3)
        self.assertEqual(rig.parts.report.view(None).queued, 3)
        skipped = queue.view()[1].seq
        self.successResultOf(queue.mark(skipped, True))
        self.successResultOf(queue.move(queue.view()[2].seq, "priority"))
        rig.run(3)
        slow.callback(PNG)
        rig.run(3)
        shown = [(item.summary, item.lane, item.skip) for item in queue.view()]
        self.assertEqual(
            shown,
            [
                ("waits", "normal", False),
                ("see", "normal", True),
            ],
        )
        self.assertTrue(rig.host.prompts[-1][1].endswith("[forward|from:Eve] news"))
        self.assertEqual((gatherer.unfinished(), queue.waiting), (0, 2))

    def test_comment_is_counted_once(self) -> None:
        """A held text that is taken back for a forward is one prompt."""
        rig = self.begun()
        rig.message("what of it?", 5)
        rig.message("news", 6, forward_origin=EVE)
        self.assertEqual(len(rig.parts.queue.view()), 1)
        self.assertEqual(rig.parts.queue.waiting, 1)

    def test_stop_of_the_worker(self) -> None:
        """At an orderly end nothing is lost, and no timer is left."""
        rig = self.begun(busy=False)
        rig.link.files["F"] = PNG
        rig.message(None, 5, media_group_id="A", **photo())
        before = len(rig.clock.getDelayedCalls())
        rig.parts.gatherer.stop()
        self.assertEqual(len(rig.clock.getDelayedCalls()), before - 1)
        rig.run(3)
        self.assertEqual(len(rig.inbox.rows("admitted")), 1)

    def test_plain_text_is_held_by_one_commit(self) -> None:
        """Alone in its Thread it costs no second one; Pi has it at once."""
        rig = self.begun(busy=False)
        held: list[int] = []
        rig.parts.gatherer._inbox = Replaced(
            rig.inbox, hold=lambda seq, *_: held.append(seq), hold_group=None
        )
        rig.message("quick", 5)
        rig.message("/status", 6)
        rig.message("[time] as well", 7)
        self.assertEqual((rig.prompts(), held), (["quick", "\\[time] as well"], []))

    def test_flush(self) -> None:
        """A group that is waiting is closed at once; others are no matter."""
        rig = self.begun()
        gatherer = rig.parts.gatherer
        verifyObject(IGatherer, gatherer)
        rig.link.files["F"] = PNG
        rig.message(None, 5, media_group_id="A", **photo())
        done = gatherer.flush(CHAT, 5)
        self.successResultOf(done)
        self.assertEqual(len(self.held(rig)), 1)
        self.successResultOf(gatherer.flush(CHAT, 5))
        self.successResultOf(gatherer.flush(CHAT, 999))

    def test_wishes_about_one_message(self) -> None:
        """A reaction on any part of an album that is gathered counts for its prompt."""
        rig = self.begun()
        rig.link.files.update({"F": PNG, "G": PNG})
        rig.message(None, 5, media_group_id="A", **photo())
        rig.message(None, 6, media_group_id="A", **photo("G"))
        reaction = {"type": "emoji", "emoji": "👎"}
        body = {
            "message_id": 6,
            "chat": {"id": CHAT},
            "old_reaction": [],
            "new_reaction": [reaction],
        }
        rig.forward("message_reaction", body)
        rig.run(1.5)
        (row,) = rig.inbox.rows("held")
        self.assertEqual((row.message_id, row.skip), (5, True))

    def test_wish_that_was_taken_back(self) -> None:
        """It stays so when the prompt is made again."""
        rig = self.begun()
        rig.link.files.update({"F": PNG, "G": PNG})
        rig.message(None, 5, media_group_id="A", **photo())
        rig.message(None, 6, media_group_id="A", **photo("G"))
        body: dict[str, Any] = {"message_id": 6, "chat": {"id": CHAT}}
        wished = [{"type": "emoji", "emoji": "👎"}]
        rig.forward("message_reaction", {**body, "old_reaction": [], "new_reaction": wished})
        rig.run(1.5)
        (row,) = rig.inbox.rows("held")
        self.assertTrue(row.skip)
        rig.forward("message_reaction", {**body, "old_reaction": wished, "new_reaction": []})
        edited = {"media_group_id": "A", "caption": "late", **photo("G")}
        rig.forward("edited_message", {**body, **edited})
        rig.run(0.1)
        (row,) = rig.inbox.rows("held")
        self.assertIn("late", row.prompt or "")
        self.assertFalse(row.skip)

    def test_drop_before(self) -> None:
        """Only what is older goes."""
        rig = self.begun()
        rig.message(None, 5, media_group_id="A", **photo())
        first = rig.inbox.rows("admitted")[0].seq
        rig.message(None, 6, media_group_id="B", **photo("G"))
        self.assertEqual(self.successResultOf(rig.parts.gatherer.drop(first + 1)), 1)
        self.assertEqual([row.message_id for row in rig.inbox.rows("admitted")], [6])
        self.assertEqual(self.successResultOf(rig.parts.gatherer.drop(None)), 1)
        self.assertEqual(rig.inbox.rows("admitted"), [])


class TimeTests(IntakeCase):
    """C{[time]}."""

    def _mode(self, rig: WorkerRig, mode: str) -> None:
        rig.parts.preferences.take({"timeInjection": mode})

    def test_modes(self) -> None:
        """Never, always, or once an hour."""
        rig = self.begun()
        for mode, expected in (("hidden", [0, 0]), ("always", [1, 1]), ("interval", [1, 0])):
            self._mode(rig, mode)
            rig.inbox.set_meta("time-told", "0")
            before = len(self.held(rig))
            rig.message("a")
            rig.message("b")
            told = [prompt.count("\n\n[time] 1970-01-12 13:") for prompt in self.held(rig)[before:]]
            self.assertEqual(told, expected, mode)
        rig.clock.advance(3601)
        rig.message("c")
        self.assertIn("[time]", self.held(rig)[-1])


class EditTests(IntakeCase):
    """Messages that change."""

    def edited(self, rig: WorkerRig, message_id: int, **fields: Any) -> None:
        """The operator edits a message."""
        body = {"message_id": message_id, "chat": {"id": CHAT}, **fields}
        rig.forward("edited_message", body)
        rig.run(0.1)

    def test_caption(self) -> None:
        """The caption changes, the file stays, and is not fetched again."""
        rig = self.begun()
        rig.link.files["F"] = PNG
        rig.message(None, 5, caption="old", **photo())
        self.edited(rig, 5, caption="new", **photo())
        self.assertEqual(self.held(rig), [f"{TAG} new\n\n[attachments] <dir>\n- /photo-5.jpg"])
        self.assertEqual(rig.link.downloads, ["F"])
        self.edited(rig, 5, **photo())
        self.assertEqual(self.held(rig), [f"{TAG}\n\n[attachments] <dir>\n- /photo-5.jpg"])

    def test_other_file(self) -> None:
        """Another picture in its place is fetched."""
        rig = self.begun()
        rig.link.files.update({"F": PNG, "G": PNG + b"2"})
        rig.message(None, 5, **photo())
        self.edited(rig, 5, **photo("G"))
        (row,) = rig.inbox.rows("held")
        (file,) = row.content["files"]  # type: ignore[index]
        self.assertEqual(Path(file["path"]).read_bytes(), PNG + b"2")

    def test_member_of_a_group(self) -> None:
        """Any part of a pasted text or an album may change."""
        rig = self.begun()
        rig.link.files.update({"F": PNG, "G": PNG})
        rig.message(None, 5, media_group_id="A", **photo())
        rig.message(None, 6, media_group_id="A", **photo("G"))
        rig.run(1.3)
        self.edited(rig, 6, caption="late words", media_group_id="A", **photo("G"))
        listed = "\n- /photo-5.jpg\n- /photo-6.jpg"
        self.assertEqual(self.held(rig), [f"{TAG} late words\n\n[attachments] <dir>{listed}"])

    def test_while_it_is_gathered(self) -> None:
        """In a window, and while its file comes."""
        rig = self.begun()
        rig.link.files["F"] = slow = Deferred()
        rig.message(None, 5, media_group_id="A", caption="one", **photo())
        self.edited(rig, 5, media_group_id="A", caption="two", **photo())
        rig.run(1.3)
        self.edited(rig, 5, media_group_id="A", caption="three", **photo())
        slow.callback(PNG)
        rig.run(0.1)
        self.assertEqual(self.held(rig), [f"{TAG} three\n\n[attachments] <dir>\n- /photo-5.jpg"])

    def test_to_a_command_or_nothing(self) -> None:
        """Neither runs nor empties the prompt; a note says so."""
        rig = self.begun()
        rig.message("keep", 5)
        self.edited(rig, 5, text="/stop")
        self.edited(rig, 5, text="/stop")
        self.edited(rig, 5)
        self.assertEqual(self.held(rig), [f"{TAG} keep"])
        self.assertEqual(rig.link.texts, [words.EDIT_TO_COMMAND, words.EDIT_EMPTY])

    def test_of_a_command(self) -> None:
        """A command that was done stays done."""
        rig = self.begun()
        rig.message("/status", 5)
        before = len(rig.link.texts)
        self.edited(rig, 5, text="/stop")
        self.assertEqual(rig.link.texts[before:], [words.EDIT_OF_COMMAND])
        self.assertEqual(len(rig.inbox.rows("handed")), 1)

    def test_of_an_answer(self) -> None:
        """A message that answered a question was no command."""
        rig = self.begun()
        rig.host.ask({"id": "d1", "method": "input", "title": "Which?"})
        rig.run()
        (trace,) = rig.parts.dialogs._traces._traces
        fields = {"reply_to_message": {"message_id": trace.message_id}}
        rig.message("red", 5, **fields)
        before = len(rig.link.texts)
        self.edited(rig, 5, text="green", **fields)
        self.assertEqual(rig.link.texts[before:], [words.EDIT_OF_ANSWER])
        self.assertEqual(rig.host.dialog_answers, [("d1", {"value": "red"})])

    def test_crash_while_it_is_corrected(self) -> None:
        """A prompt whose message changed is not handed before it was made again."""
        rig = self.begun()
        rig.link.files.update({"F": PNG, "G": Deferred()})
        rig.message(None, 5, caption="old", **photo())
        self.edited(rig, 5, caption="new", **photo("G"))
        rig.crash()
        rig.start(connect=False)
        rig.connect()
        rig.link.directory = rig.base / "downloads"
        rig.link.files["G"] = PNG
        rig.host.open_gate("a")
        rig.run(20)
        last = _stable(rig.host.prompts[-1][1], str(rig.base / "downloads"))
        self.assertEqual(last, f"{TAG} new\n\n[attachments] <dir>\n- /photo-5.jpg")

    def test_unchanged(self) -> None:
        """A link preview that loaded is no edit, before and after the hand-over."""
        rig = self.begun()
        rig.message("http://a.b", 5)
        self.edited(rig, 5, text="http://a.b")
        self.edited(rig, 1, text="[[gate a]]")
        self.assertEqual((self.held(rig), rig.link.texts), ([f"{TAG} http://a.b"], []))

    def test_handed(self) -> None:
        """One note, whatever is edited how often."""
        rig = self.begun()
        self.edited(rig, 1, text="x")
        self.edited(rig, 1, text="y")
        self.assertEqual(rig.link.texts, [words.EDIT_TOO_LATE])

    def test_before_its_message(self) -> None:
        """It waits for its message."""
        rig = self.begun()
        self.edited(rig, 5, text="new")
        rig.message("old", 5)
        rig.message("other", 6)
        self.assertEqual(self.held(rig), [f"{TAG} new", f"{TAG} other"])

    def test_before_its_message_and_a_crash(self) -> None:
        """A worker that is killed before the edit is worked in does so at its next start."""
        rig = self.begun()
        self.edited(rig, 5, text="new")
        rig.parts.editing.edited_before = lambda row: Deferred()
        rig.message("old", 5)
        rig.crash()
        rig.start()
        self.assertEqual(self.held(rig), [f"{TAG} new"])

    def test_of_something_forgotten(self) -> None:
        """A message of long ago that is not known here is over."""
        rig = self.begun()
        self.edited(rig, 5, text="new", date=1000)
        self.assertEqual(rig.link.texts, [words.EDIT_TOO_LATE])


class PressTests(IntakeCase):
    """Buttons that are nobody's here."""

    def _press(self, rig: WorkerRig, data: str, bot: bool = True, shown: str | None = None) -> None:
        button = {"text": "x", "callback_data": data if shown is None else shown}
        message = {
            "message_id": 50,
            "chat": {"id": CHAT},
            "message_thread_id": THREAD,
            "from": {"id": 1, "is_bot": bot},
            "reply_markup": {"inline_keyboard": [[button]]},
        }
        rig.forward("callback_query", {"id": "cb", "data": data, "message": message})

    def test_prompt(self) -> None:
        """It becomes a prompt in the priority lane, and the press is answered."""
        rig = self.begun()
        self._press(rig, "deploy] \nnow")
        (row,) = rig.inbox.rows("held", "handed")[1:]
        self.assertEqual((row.prompt, row.lane), ("[callback] deploy now", "priority"))
        self.assertIn(("answerCallbackQuery", "cb"), _answered(rig))

    def test_not_ours_to_forward(self) -> None:
        """Our own data, a message of somebody else, data that is on no button: stale."""
        rig = self.begun()
        self._press(rig, "menu:main")
        self._press(rig, "dlg:000000000000:x")
        self._press(rig, "deploy", bot=False)
        self._press(rig, "deploy", shown="other")
        rig.press("deploy")
        self.assertEqual(rig.inbox.rows("held"), [])


def _answered(rig: WorkerRig) -> list[tuple[str, Any]]:
    return [(m, params.get("callback_query_id")) for m, params, _ in rig.link.api_calls]


class HostileTests(IntakeCase):
    """Updates that make no sense."""

    def test_never_lost(self) -> None:
        """Wrong types anywhere: accepted, a prompt made, and the next message goes on."""
        rig = self.begun()
        rig.link.files["F"] = b"x"
        odd: list[Any] = [None, 5, {"file_id": 5}, {"file_id": "F"}, [[{}]], 2**62]
        names = ["text", "caption", "entities", "photo", "document", "voice", "poll", "venue"]
        names += ["forward_origin", "reply_to_message", "external_reply", "quote", "media_group_id"]
        names += ["message_thread_id", "from", "rich_message", "paid_media", "chat", "date"]
        for number, name in enumerate(names):
            for index, value in enumerate(odd):
                body = {"message_id": 100 + number * 20 + index, "chat": {"id": CHAT}}
                rig.forward("message", {**body, name: value})
                self.assertEqual(self.successResultOf(rig.receipt), ("accepted", ""))
        rig.run(3)
        self.assertEqual(rig.inbox.rows("admitted"), [])
        rig.message("the end", 9999)
        self.assertEqual(self.held(rig)[-1], f"{TAG} the end")
        self.assertEqual(self.flushLoggedErrors(), [])


class WordsTests(SynchronousTestCase):
    """What is said."""

    def test_sizes(self) -> None:
        """As people read them."""
        self.assertEqual(words.megabytes(20_000_000), "20 MB")
        self.assertEqual(words.megabytes(2_097_152), "2.1 MB")

"""Random lives of an intake: nothing lost, nothing doubled, whatever is killed when."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import LinkLost, Refusal
from pitelegram.testing.worker import CHAT, WorkerRig

LIVES = 60
EVE = {"type": "hidden_user", "sender_user_name": "Eve"}


class Life:
    """One rig whose messages all carry a word of their own."""

    def __init__(self, base: Path, seed: int) -> None:
        self.chance = Random(seed)
        self.rig = WorkerRig(base)
        self.words: list[str] = []
        self.edited: dict[str, str] = {}
        self.slow: list[str] = []
        self.rig.start()
        self.prepare()
        self.rig.message("[[gate end]]", 1)

    def prepare(self) -> None:
        """Give a new link its files."""
        self.rig.link.directory = self.rig.base / "downloads"
        self.rig.link.files.update({"ok": b"\0", **dict.fromkeys(self.slow, b"\0")})
        self.rig.link.files["gone"] = Refusal("api", "Bad Request", errorCode=400)
        self.rig.link.files["flaky"] = [LinkLost("x"), b"\0"]

    def step(self) -> None:
        """Something happens."""
        chance, rig = self.chance, self.rig
        what = chance.choice(["text", "text", "file", "album", "forward", "edit", "edit", "wait"])
        what = "crash" if chance.random() < 0.08 else what
        if what == "wait":
            rig.run(chance.choice([0.1, 0.5, 1.3, 3]))
        elif what == "crash":
            rig.crash()
            rig.start()
            self.prepare()
        elif what == "edit" and self.words:
            self.edit(chance.choice(self.words))
        else:
            self.send(what)

    def send(self, what: str) -> None:
        """A message with a new word."""
        number = len(self.words) + 10
        word = f"word{number:04d}."
        self.words.append(word)
        file = {"document": {"file_id": self.file(number), "file_name": "a.bin"}}
        if what == "album":
            self.rig.message(None, number, caption=word, media_group_id="A", **file)
        elif what == "file":
            self.rig.message(None, number, caption=word, **file)
        elif what == "forward":
            self.rig.message(word, number, forward_origin=EVE)
        else:
            self.rig.message(word, number)

    def file(self, number: int) -> str:
        """Return the id of a file that is there, gone, or there the second time, or late."""
        kind = self.chance.choice(["ok", "ok", "gone", "flaky", "slow"])
        if kind != "slow":
            return kind
        waiting: Deferred[Any] = Deferred()
        self.slow.append(f"slow{number}")
        self.rig.link.files[f"slow{number}"] = waiting
        self.rig.clock.callLater(self.chance.random() * 4, _give, waiting)
        return f"slow{number}"

    def edit(self, word: str) -> None:
        """The operator changes one of his messages; whether it counts depends on when."""
        number = int(word[4:8])
        row = self.rig.inbox.by_message(CHAT, number)
        assert row is not None and row.body is not None
        new = word.replace(".", "e")
        body = {"message_id": number, "chat": {"id": CHAT}}
        content = re.sub(rb'"(text|caption)":"[^"]*"', b"", row.body)
        if b'"document"' in content:
            body |= {"caption": new, "document": {"file_id": "ok", "file_name": "a.bin"}}
        else:
            body |= {"text": new}
        if b"forward_origin" in content:
            body["forward_origin"] = EVE  # type: ignore[assignment]
        if b"media_group_id" in content:
            body["media_group_id"] = "A"
        self.rig.forward("edited_message", body)
        self.edited[word] = new


def _give(waiting: Deferred[Any]) -> None:
    if not waiting.called:
        waiting.callback(b"\0")


class IntakeFuzz(SynchronousTestCase):
    """Lives with crashes."""

    def test_lives(self) -> None:
        """Each word is in exactly one prompt, each as it was said last; none is left over."""
        for seed in range(LIVES):
            life = Life(Path(self.mktemp()).absolute(), seed)
            for _ in range(life.chance.randrange(5, 30)):
                life.step()
            life.rig.run(30)
            self._judge(life, seed)

    def _judge(self, life: Life, seed: int) -> None:
        inbox = life.rig.inbox
        self.assertEqual(inbox.rows("admitted"), [], seed)
        self.assertIsNone(life.rig.parts.gatherer.earliest(), seed)
        prompts = "\n".join(row.prompt or "" for row in inbox.rows("held"))
        found = re.findall(r"word\d{4}[.e]", prompts)
        wanted = [life.edited.get(word, word) for word in life.words]
        self.assertEqual(sorted(found), sorted(wanted), seed)
        stale = [row for row in inbox.rows("held") if (row.content or {}).get("stale")]
        self.assertEqual(stale, [], seed)

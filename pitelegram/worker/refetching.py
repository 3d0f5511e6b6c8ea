"""Files of a prompt that is sent again: fetched again to where its text says they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.logger import Logger

from pitelegram.bridge import intakewords as words
from pitelegram.bridge.filerefs import FileRef
from pitelegram.bridge.marking import guard
from pitelegram.errors import StoreError, StoreFull
from pitelegram.kernel.deferring import spawn
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.files import Files, Missing, exists
from pitelegram.worker.settling import Settler, short_id


class Refetcher:
    """Completes prompts whose messages are not kept any more, so that they cannot be made anew.

    @param done: called when a prompt is complete.
    @ivar seqs: rows that are being completed.
    """

    _log = Logger()

    def __init__(
        self, inbox: IInbox, files: Files, settler: Settler, done: Callable[[], None]
    ) -> None:
        self._inbox = inbox
        self._files = files
        self._settler = settler
        self._done = done
        self.seqs: set[int] = set()

    def begin(self, row: InboxRow) -> None:
        """Fetch what is missing; of what cannot be fetched the prompt and the operator are told."""
        if row.seq not in self.seqs:
            self.seqs.add(row.seq)
            spawn(self._log, "fetching files again", self._complete(row))

    async def _complete(self, row: InboxRow) -> None:
        try:
            lost = {}
            for file in (row.content or {}).get("files", ()):
                if not exists(file["path"]) and (why := await self._fetch(file)) is not None:
                    lost[file["path"]] = why
            if lost:
                await self._leave_out(row, lost)
        finally:
            self.seqs.discard(row.seq)
        self._done()

    async def _fetch(self, file: dict[str, Any]) -> str | None:
        """Return None when the file is in its old place, else what is said of it."""
        name, path = file["name"], file["path"]
        if not file.get("file_id"):
            return words.file_gone(name)
        ref = FileRef(
            kind=file["kind"],
            file_id=file["file_id"],
            unique_id=file["unique"],
            name=name,
            mime=file["mime"],
        )
        found = await self._files.fetch(ref)
        if isinstance(found, Missing):
            return found.words
        if os.path.dirname(found.path) != os.path.dirname(path) or os.path.lexists(path):
            return words.file_gone(name)
        os.rename(found.path, path)
        return None

    async def _leave_out(self, row: InboxRow, lost: dict[str, str]) -> None:
        content = dict(row.content or {})
        for kind in ("files", "images"):
            content[kind] = [each for each in content.get(kind, ()) if each["path"] not in lost]
        lines = list(lost.values())
        listed = "".join(f"\n- {guard(line)}" for line in lines)
        try:
            prompt = f"{row.prompt}\n\n[not delivered]{listed}"
            await self._inbox.hold(row.seq, prompt, content)
        except StoreFull:
            raise
        except StoreError:
            self._log.info("a prompt that was sent again was dropped before it was complete")
            return
        self._settler.say(f"inbound-{short_id(row.delivery_id)}", words.not_fetched(lines))

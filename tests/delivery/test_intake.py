"""Taking deliveries: form, identity, files."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.delivery.intake import Intake
from pitelegram.delivery.shape import MOST_CALLS, SIZE_LIMIT, parse_delivery
from pitelegram.delivery.spool import Spool
from pitelegram.errors import BusBadRequest, Refusal, UnsafeFile
from tests.delivery.world import DeliveryCase, delivery, text_call


def file_call(path: Any) -> dict[str, Any]:
    """Return a call with one file."""
    file = {"field": "f", "path": str(path), "filename": "a.txt", "mimeType": "text/plain"}
    params = {"document": "attach://f"}
    return {"method": "sendDocument", "params": params, "files": [file]}


def changed_file(**changes: Any) -> dict[str, Any]:
    """Return a call whose one file has other members."""
    call = file_call("/u/a")
    return {**call, "files": [{**call["files"][0], **changes}]}


class ShapeTests(SynchronousTestCase):
    """The form of a delivery."""

    def bad(self, value: Any, delivery_id: Any = "d", kind: Any = BusBadRequest) -> None:
        """A delivery that must not pass."""
        self.assertRaises(kind, parse_delivery, delivery_id, value)

    def test_good(self) -> None:
        """A right one comes out with its calls; times and unknown members make no difference."""
        one = parse_delivery("d", delivery(text_call("x")))
        other = parse_delivery("d", {**delivery(text_call("x")), "createdAtMs": 9, "more": 1})
        self.assertEqual(one, other)
        self.assertEqual((one.kind, one.calls, one.has_files), ("final", [text_call("x")], False))

    def test_safety(self) -> None:
        """What is known to be incomplete, or names its owner in half, is held back; others are not."""
        owner = {"stableKey": "wsk1_" + "a" * 64, "stableKeyVersion": 1}
        for more, hold in (
            ({}, None),
            (owner, None),
            ({"knownIncomplete": False}, None),
            ({"knownIncomplete": True}, "known-incomplete"),
            ({"knownIncomplete": "no"}, "known-incomplete"),
            ({**owner, "stableKeyVersion": True}, "owner-malformed"),
            ({**owner, "stableKeyVersion": 2}, "owner-malformed"),
            ({**owner, "stableKey": "wsk1_" + "A" * 64}, "owner-malformed"),
            ({**owner, "stableKey": owner["stableKey"] + "\n"}, "owner-malformed"),
            ({"stableKey": owner["stableKey"]}, "owner-malformed"),
            ({"stableKeyVersion": 1}, "owner-malformed"),
            ({"stableKey": None, "stableKeyVersion": None}, "owner-malformed"),
        ):
            found = parse_delivery("d", {**delivery(text_call("x")), **more})
            self.assertEqual(found.hold, hold, more)

    def test_key_order_makes_no_difference(self) -> None:
        """The digest is over canonical JSON."""
        one = {"method": "sendMessage", "params": {"text": "x", "disable_notification": True}}
        other = {"params": {"disable_notification": True, "text": "x"}, "method": "sendMessage"}
        digests = {parse_delivery("d", delivery(call)).digest for call in (one, other)}
        self.assertEqual(len(digests), 1)
        kind = parse_delivery("d", delivery(one, kind="notice")).digest
        self.assertNotIn(kind, digests)

    def test_ids(self) -> None:
        """Ids have one grammar, matched as a whole."""
        for good in ("a", "A-1._", "x" * 128):
            self.assertEqual(parse_delivery(good, delivery(text_call("x"))).kind, "final")
        for bad in ("", "x" * 129, "a b", "a\n", "ä", "a/b", "a\0", None, 5, "a:b"):
            self.bad(delivery(text_call("x")), bad)

    def test_wrong_forms(self) -> None:
        """What is no delivery is refused, whatever it is instead."""
        call = text_call("x")
        for value in (
            None,
            [],
            "final",
            {"calls": [call]},
            {"kind": "preview", "calls": [call]},
            {"kind": "final"},
            {"kind": "final", "calls": []},
            {"kind": "final", "calls": {"0": call}},
            {"kind": "final", "calls": [call] * (MOST_CALLS + 1)},
            {"kind": "final", "calls": [None]},
            {"kind": "final", "calls": [{"method": "sendMessage"}]},
            {"kind": "final", "calls": [{"method": "sendMessage", "params": []}]},
        ):
            self.bad(value)

    def test_address_is_the_leaders(self) -> None:
        """A delivery names neither chat nor Thread, and no other place."""
        self.bad(delivery(text_call("x", chat_id=5)))
        self.bad(delivery(text_call("x", message_thread_id=5)))
        for params in (
            {"business_connection_id": "b"},
            {"direct_messages_topic_id": 1},
            {"allow_paid_broadcast": True},
            {"reply_parameters": {"message_id": 1, "chat_id": 5}},
        ):
            self.bad(delivery(text_call("x", **params)), kind=Refusal)

    def test_methods(self) -> None:
        """Only sends are taken, and their names letter by letter."""
        for method in (
            "sendmessage",
            "SENDMESSAGE",
            "deleteMessage",
            "getUpdates",
            "forwardMessage",
        ):
            self.bad(delivery({"method": method, "params": {}}), kind=Refusal)
        self.bad(delivery({"method": 5, "params": {}}), kind=Refusal)

    def test_no_local_files_by_address(self) -> None:
        """A file: address, which a local server would open, is refused wherever it stands."""
        for params in (
            {"document": "file:///etc/passwd"},
            {"document": "FILE:///etc/passwd"},
            {"media": [{"type": "photo", "media": " file:///etc/passwd"}]},
        ):
            call = {"method": "sendDocument", "params": params}
            self.bad(delivery(call), kind=Refusal)
        text = text_call("see file:///etc/passwd")
        self.assertEqual(parse_delivery("d", delivery(text)).calls, [text])

    def test_files(self) -> None:
        """A file's members are checked one by one."""
        self.assertTrue(parse_delivery("d", delivery(file_call("/u/a"))).has_files)
        for changes in (
            {"path": "relative"},
            {"path": "/a\0b"},
            {"path": 5},
            {"field": "a b"},
            {"field": ""},
            {"filename": ""},
            {"filename": "x" * 256},
            {"mimeType": "text/plain\r\nX: y"},
            {"mimeType": None},
        ):
            self.bad(delivery(changed_file(**changes)))
        self.bad(delivery({**text_call("x"), "files": "no"}))
        self.bad(delivery({**text_call("x"), "files": [None]}))

    def test_size(self) -> None:
        """All calls together have a limit; numbers and texts must be JSON's."""
        self.bad(delivery(text_call("x" * (SIZE_LIMIT + 1))))
        self.bad(delivery(text_call("x", n=2**70)))
        self.bad(delivery(text_call("lone \ud800 surrogate")))

    @settings(deadline=None, derandomize=True, max_examples=200, database=None)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(
                    st.sampled_from(["kind", "calls", "method", "params", "files", "path"]), inner
                )
            ),
        )
    )
    def test_anything(self, value: Any) -> None:
        """Whatever JSON comes, it passes or is refused; nothing else happens."""
        try:
            parsed = parse_delivery("d", value)
        except (BusBadRequest, Refusal):
            return
        self.assertIn(parsed.kind, ("final", "notice"))


class IdentityTests(DeliveryCase):
    """The same delivery submitted again."""

    def test_same_and_other(self) -> None:
        """The same id and content has the same receipt and one message; other content collides."""
        self.start()
        self.assertEqual(self.submit("a", "1", text_call("x")), "accepted")
        self.assertEqual(self.submit("a", "1", text_call("x")), "delivered")
        self.assertEqual(self.texts(), ["x"])
        collision = self.service.intake.submit("a", "1", delivery(text_call("y")), None)
        error = self.failureResultOf(collision, Refusal).value
        self.assertEqual(error.code, "delivery-id-collision")
        self.assertEqual(self.submit("b", "1", text_call("y")), "accepted")
        self.assertEqual(self.texts(), ["x", "y"])

    def test_bad_form(self) -> None:
        """A wrong form fails the Deferred; it does not raise."""
        wrong = self.service.intake.submit("a", "1", {}, None)
        self.failureResultOf(wrong, BusBadRequest)


class FileTests(DeliveryCase):
    """Files of deliveries."""

    def setUp(self) -> None:
        """Make an uploads directory with a file."""
        super().setUp()
        self.uploads = Path(self.mktemp()).resolve()
        (self.uploads / "deep").mkdir(parents=True)
        self.file = self.uploads / "deep" / "a.txt"
        self.file.write_bytes(b"content")

    def refused(self, path: Any, uploads: Path | None, code: str = "not-allowed") -> None:
        """A file that must not be taken; nothing stays in the spool."""
        taken = self.service.intake.submit("a", "1", delivery(file_call(path)), uploads)
        error = self.failureResultOf(taken, Refusal).value
        self.assertEqual(error.code, code)
        left = list(self.spool.iterdir()) if self.spool.exists() else []
        self.assertEqual((left, self.outbox.find("a", "1")), ([], None))

    def spooled(self) -> Path:
        """Return the one spooled file."""
        (found,) = [path for path in self.spool.rglob("*") if path.is_file()]
        return found

    def test_copied_before_the_receipt(self) -> None:
        """The file is copied, not linked, with size and digest; its sender may remove it then."""
        self.assertEqual(
            self.submit("a", "1", file_call(self.file), uploads=self.uploads), "accepted"
        )
        copy = self.spooled()
        self.assertEqual(copy.read_bytes(), b"content")
        self.assertEqual(copy.stat().st_nlink, 1)
        self.assertEqual(stat.S_IMODE(copy.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(copy.parent.stat().st_mode), 0o700)
        part = self.outbox.next_part("a")
        assert part is not None
        (file,) = part.call["files"]
        self.assertEqual((file["size"], file["path"]), (7, str(copy)))
        self.assertEqual(file["sha256"], hashlib.sha256(b"content").hexdigest())
        self.file.unlink()
        state = self.submit("a", "1", file_call(self.file), uploads=self.uploads)
        self.assertEqual(state, "accepted")
        self.start()
        (call,) = self.api.made("sendDocument")
        self.assertEqual([(u.field, u.filename) for u in call.files], [("f", "a.txt")])
        self.assertEqual((self.states(), list(self.spool.iterdir())), ({}, []))

    def test_only_from_the_uploads(self) -> None:
        """Files from elsewhere are refused, on whatever way they are named."""
        outside = Path(self.mktemp()).resolve()
        outside.write_bytes(b"secret")
        self.refused(outside, self.uploads)
        self.refused(self.file, None)
        self.refused(self.uploads / ".." / outside.name, self.uploads)
        self.refused(self.uploads, self.uploads)
        self.refused(self.uploads / "deep", self.uploads)
        self.refused(self.uploads / "missing", self.uploads)
        self.refused(str(self.uploads) + "-other/a.txt", self.uploads)

    def test_links(self) -> None:
        """Links are not followed, neither at the end nor on the way; pipes do not hang."""
        outside = Path(self.mktemp()).resolve()
        outside.mkdir()
        (outside / "a.txt").write_bytes(b"secret")
        (self.uploads / "link.txt").symlink_to(outside / "a.txt")
        (self.uploads / "way").symlink_to(outside)
        os.mkfifo(self.uploads / "pipe")
        os.link(outside / "a.txt", self.uploads / "hard.txt")
        self.refused(self.uploads / "hard.txt", self.uploads)
        self.refused(self.uploads / "link.txt", self.uploads)
        self.refused(self.uploads / "way" / "a.txt", self.uploads)
        self.refused(self.uploads / "pipe", self.uploads)

    def test_too_large(self) -> None:
        """A file beyond the limit is refused with the limit, and nothing is left."""
        spool = Spool(self.spool, limit=6)
        call = file_call(self.file)
        error = self.assertRaises(Refusal, spool.store, "k", [call], self.uploads)
        self.assertEqual((error.code, error.fields), ("too-large", {"limit": 6}))
        self.assertEqual(list(self.spool.iterdir()), [])

    def test_changed_in_the_spool(self) -> None:
        """A spooled file that is gone or changed is not sent; the delivery is a dead letter."""
        for number, harm in enumerate((Path.unlink, lambda path: path.write_bytes(b"longer now"))):
            delivery_id = str(number)
            self.submit("a", delivery_id, file_call(self.file), uploads=self.uploads)
            harm(self.spooled())
            if not self.service.running:
                self.start()
            self.service.intake.kick()
            self.assertEqual(self.states()[delivery_id], "dead_letter")
            self.assertEqual(self.api.made("sendDocument"), [])
            self.stop()
            self.service = self.make()
            for path in self.spool.iterdir():
                Spool(self.spool).discard(path.name)

    def test_sweep(self) -> None:
        """What a killed copy left behind goes at the next start; files still wanted stay."""
        self.lose("a")
        self.submit("a", "1", file_call(self.file), uploads=self.uploads)
        (self.spool / "gone").mkdir()
        (self.spool / f"{self.key_of('1')}.new-1234").mkdir()
        self.start()
        self.assertEqual([path.name for path in self.spool.iterdir()], [self.key_of("1")])
        self.assertEqual(self.spooled().read_bytes(), b"content")

    def test_copy_once(self) -> None:
        """Two submissions at the same time copy one after the other, the second not at all."""
        jobs: list[tuple[Any, Deferred[Any]]] = []

        def later(work: Any) -> Deferred[Any]:
            jobs.append((work, Deferred()))
            return jobs[-1][1]

        intake = Intake(
            self.outbox, Spool(self.spool), self.service.sender, self.service.announcer, later
        )
        wanted = delivery(file_call(self.file))
        first = intake.submit("a", "1", wanted, self.uploads)
        second = intake.submit("a", "1", wanted, self.uploads)
        self.assertEqual(len(jobs), 1)
        work, done = jobs[0]
        done.callback(work())
        self.assertEqual(self.successResultOf(first), "accepted")
        self.assertEqual(self.successResultOf(second), "accepted")
        self.assertEqual((len(jobs), intake._copying), (1, {}))

    def test_unusable_spool(self) -> None:
        """A spool that is no directory of ours fails the submission; it is not receipted."""
        self.spool.write_bytes(b"")
        taken = self.service.intake.submit("a", "1", delivery(file_call(self.file)), self.uploads)
        self.failureResultOf(taken, UnsafeFile)
        self.assertIsNone(self.outbox.find("a", "1"))

"""C{/metrics}: read by the client library's own parser, and by the letter of the format."""

from __future__ import annotations

import re
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.control import metrics, outward, status
from pitelegram.supervisor.life import State
from pitelegram.testing.control import quiet_figures
from pitelegram.testing.panel import a_view
from tests.control.test_status import NOW, facts

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (-?[0-9.e+-]+)")


class MetricsCase(SynchronousTestCase):
    """Reads pages."""

    def page(self, **changes: Any) -> str:
        """The page of a daemon with these facts, as it leaves."""
        document = outward.status(status.document(facts(**changes)))
        return metrics.render(document).decode()

    def read(self, **changes: Any) -> dict[tuple[str, ...], float]:
        """Samples by name and label values."""
        found = {}
        for family in text_string_to_metric_families(self.page(**changes)):
            for sample in family.samples:
                found[(sample.name, *sample.labels.values())] = sample.value
        return found


class FormTests(MetricsCase):
    """Text format 0.0.4."""

    def test_letter_by_letter(self) -> None:
        """HELP, TYPE, then the samples of a family together; each sample once; a newline at the end."""
        page = self.page(workers=[a_view("alpha"), a_view("beta", "failed")])
        self.assertTrue(page.endswith("\n") and not page.endswith("\n\n"))
        families: list[str] = []
        seen: set[tuple[str, str | None]] = set()
        lines = iter(page.splitlines())
        family = kind = ""
        for line in lines:
            if line.startswith("# HELP "):
                family = line.split()[2]
                self.assertNotIn(family, families)
                self.assertRegex(family, r"\Apitelegram_[a-z0-9_]+\Z")
                self.assertGreater(len(line.split(None, 3)[3]), 5)
                families.append(family)
                typed = next(lines).split()
                self.assertEqual(typed[:3], ["#", "TYPE", family])
                kind = typed[3]
                self.assertIn(kind, ("gauge", "counter", "summary"))
                continue
            match = _SAMPLE.fullmatch(line)
            assert match is not None, line
            suffixes = ("", "_sum", "_count") if kind == "summary" else ("",)
            self.assertIn(match[1], [family + suffix for suffix in suffixes])
            self.assertNotIn((match[1], match[2]), seen)
            seen.add((match[1], match[2]))
            float(match[3])

    def test_labels(self) -> None:
        """What a name may hold is escaped."""
        strange = 'a"b\\c\nd'
        page = metrics._Page()
        page.family("x", "gauge", "X.", [({"worker": strange}, 1)])
        (family,) = text_string_to_metric_families(page.bytes().decode())
        self.assertEqual(family.samples[0].labels, {"worker": strange})

    def test_states(self) -> None:
        """Every state of a worker is listed, whether there is one in it or not."""
        self.assertEqual(set(metrics.WORKER_STATES), {state.value for state in State})

    def test_nothing_private(self) -> None:
        """Directories, processes, sessions, errors and ids are in no label."""
        page = self.page(workers=[a_view("alpha", last_error="a secret of the directory")])
        for private in ("/projects", "4711", "4712", "/sessions", "a secret", "w-alpha", "epoch-1"):
            self.assertNotIn(private, page)


class ValueTests(MetricsCase):
    """What the figures say."""

    def test_well(self) -> None:
        """A daemon that is well."""
        found = self.read(
            workers=[a_view("alpha", restarts=3, queued=2), a_view("beta", "stopped")]
        )
        for sample, value in (
            (("pitelegram_build_info", "1.2.3", "default"), 1),
            (("pitelegram_uptime_seconds",), 90),
            (("pitelegram_health", "ok"), 1),
            (("pitelegram_health", "degraded"), 0),
            (("pitelegram_health", "down"), 0),
            (("pitelegram_problems",), 0),
            (("pitelegram_polling_receiving",), 1),
            (("pitelegram_polling_phase", "long-poll"), 1),
            (("pitelegram_polling_phase", "conflict"), 0),
            (("pitelegram_polling_last_success_timestamp_seconds",), (NOW - 1000) / 1000),
            (("pitelegram_journal_updates", "retry_wait"), 3),
            (("pitelegram_outbox_deliveries", "pending"), 4),
            (("pitelegram_commands", "accepted"), 0),
            (("pitelegram_workers", "running"), 1),
            (("pitelegram_workers", "stopped"), 1),
            (("pitelegram_workers", "failed"), 0),
            (("pitelegram_attached_workers",), 1),
            (("pitelegram_worker_restarts", "alpha"), 3),
            (("pitelegram_worker_queued", "alpha"), 2),
            (("pitelegram_store_commit_seconds", "0.99"), 0.00002),
            (("pitelegram_store_commit_seconds_sum",), 0.00003),
            (("pitelegram_store_commit_seconds_count",), 2),
            (("pitelegram_store_bytes",), 4096),
            (("pitelegram_store_rows", "journal"), 0),
            (("pitelegram_disk", "ok"), 1),
            (("pitelegram_storage_pressure",), 0),
            (("pitelegram_maintenance_failed",), 0),
        ):
            self.assertAlmostEqual(found[sample], value, msg=str(sample))

    def test_ill(self) -> None:
        """A daemon that is not."""
        failed = {**quiet_figures()["maintenance"], "status": "failed"}
        found = self.read(
            poll={
                "phase": "retrying",
                "receiving": False,
                "last_success_ms": None,
                "not_receiving_since_ms": NOW - 90_000,
            },
            storage_pressure=quiet_figures(disk="full", maintenance=failed),
        )
        self.assertEqual(found[("pitelegram_health", "down")], 1)
        self.assertEqual(found[("pitelegram_polling_receiving",)], 0)
        self.assertNotIn(("pitelegram_polling_last_success_timestamp_seconds",), found)
        self.assertEqual(found[("pitelegram_disk", "full")], 1)
        self.assertEqual(found[("pitelegram_maintenance_failed",)], 1)
        self.assertEqual(found[("pitelegram_problems",)], 2)

    def test_no_workers(self) -> None:
        """A family without samples is not there at all."""
        self.assertNotIn("pitelegram_worker_queued", self.page(workers=[]))

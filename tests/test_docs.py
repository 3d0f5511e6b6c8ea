"""What the documentation names exists."""

import re
import unittest
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

DOCS = Path(__file__).resolve().parent.parent / "docs"


class DocumentationTests(SynchronousTestCase):
    """Pages in C{docs}."""

    def test_invariants(self):
        """Each invariant names tests."""
        page = (DOCS / "architecture.md").read_text("utf-8")
        rows = re.findall(r"^\| (\d+) \|.*\|(.*)\|$", page, re.MULTILINE)
        self.assertEqual([int(number) for number, _ in rows], list(range(1, 11)))
        for number, tests in rows:
            names = re.findall(r"`(tests\.[\w.]+)`", tests)
            self.assertTrue(names, number)

    def test_named_tests(self):
        """Every test that any page names is there."""
        for page in sorted(DOCS.rglob("*.md")):
            for name in sorted(set(re.findall(r"`(tests\.[\w.]+)`", page.read_text("utf-8")))):
                loader = unittest.TestLoader()
                suite = loader.loadTestsFromName(name)
                self.assertEqual(loader.errors, [], page.name)
                self.assertGreater(suite.countTestCases(), 0, (page.name, name))

    def test_known_faults(self):
        """Each fault names a test that fails on it; each behaviour a test or what took its place."""
        faults, behaviours = (DOCS / "known-faults.md").read_text("utf-8").split("## What it did")
        rows = re.findall(r"^\| (?!What went wrong|---)([^|]+)\|(.*)\|$", faults, re.MULTILINE)
        self.assertGreaterEqual(len(rows), 24)
        for fault, tests in rows:
            self.assertRegex(tests, r"`tests\.", fault)
        numbers: set[int] = set()
        for first, last in re.findall(r"^\| (\d+)(?:–(\d+))?\. ", behaviours, re.MULTILINE):
            numbers.update(range(int(first), int(last or first) + 1))
        self.assertEqual(numbers, {*range(1, 57), *range(93, 105)})

    def test_known_faults_of_bridges(self):
        """Each section has its numbers; each fault names a test, or says why it cannot occur."""
        page = (DOCS / "known-faults-bridge.md").read_text("utf-8")
        expected = {
            "14.4": range(88, 110),
            "14.5": range(110, 142),
            "14.6": range(142, 173),
            "14.7": range(173, 199),
            "14.8": range(199, 221),
        }
        sections = re.findall(r"^## (14\.\d) .*\n((?:(?!## ).*\n)*)", page, re.MULTILINE)
        self.assertEqual(set(dict(sections)), set(expected))
        for name, text in sections:
            numbers: list[int] = []
            for first, last, here in re.findall(
                r"^\| (\d+)(?:–(\d+))?\. [^|]+\|(.*)\|$", text, re.MULTILINE
            ):
                numbers += range(int(first), int(last or first) + 1)
                self.assertGreater(len(here.strip()), 20, first)
            self.assertEqual(numbers, list(expected[name]), name)

    def test_links(self):
        """Every link to a page or picture of ours leads somewhere."""
        for page in sorted(DOCS.rglob("*.md")):
            for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
                if "://" not in link:
                    self.assertTrue((page.parent / link).exists(), (page.name, link))

    def test_every_page_is_listed(self):
        """The list of pages is complete."""
        listed = (DOCS / "README.md").read_text("utf-8")
        missing = [
            page.name
            for page in DOCS.glob("*.md")
            if page.name != "README.md" and f"({page.name})" not in listed
        ]
        self.assertEqual(missing, [])

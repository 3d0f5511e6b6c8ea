"""What the documentation names exists."""

import re
import unittest
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

DOCS = Path(__file__).resolve().parent.parent / "docs"


class DocumentationTests(SynchronousTestCase):
    """Pages in C{docs}."""

    def test_invariants(self):
        """Each invariant names tests, and every test that is named is there."""
        page = (DOCS / "architecture.md").read_text("utf-8")
        rows = re.findall(r"^\| (\d+) \|.*\|(.*)\|$", page, re.MULTILINE)
        self.assertEqual([int(number) for number, _ in rows], list(range(1, 11)))
        for number, tests in rows:
            names = re.findall(r"`(tests\.[\w.]+)`", tests)
            self.assertTrue(names, number)
            for name in names:
                loader = unittest.TestLoader()
                suite = loader.loadTestsFromName(name)
                self.assertEqual(loader.errors, [])
                self.assertGreater(suite.countTestCases(), 0, name)

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

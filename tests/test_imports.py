"""Dependencies point downwards only: the imports themselves are read."""

import ast
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import pitelegram

PACKAGE = Path(pitelegram.__file__).resolve().parent

ROWS = (
    ("errors", "ids", "targets"),
    ("kernel",),
    ("botapi", "bus", "pi", "store", "ownership", "settings"),
    ("panel", "routing", "threads", "bridge", "delivery"),
    ("supervisor", "worker", "control", "sandbox"),
    ("ground",),
    ("leader",),
    ("assembly", "daemon"),
    ("cli", "tap", "commands"),
)
"""From the bottom to the top; a part may use the rows below its own."""

ROW = {part: number for number, row in enumerate(ROWS) for part in row}


def imports_of(path):
    """Return the dotted names of ours that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"{path}: relative import")
    return {name for name in found if name.startswith("pitelegram.")}


def is_allowed(part, name):
    """Whether a file of C{part} may import C{name}."""
    words = name.split(".")
    other = words[1]
    if other == part or other not in ROW:
        return other != "testing"
    if ROW[part] == ROW[other] >= len(ROWS) - 2:
        return True  # composer and command line are one thing each, in several modules
    if part == "bridge" and other == "botapi":
        return False
    is_interface = len(words) > 2 and words[2] == "interfaces"
    same_kind = ROW[part] >= 2 and ROW[other] <= ROW[part] + 1
    return ROW[other] < ROW[part] or (is_interface and same_kind)


class ImportTests(SynchronousTestCase):
    """The product's imports."""

    def files(self):
        """Every Python file of the product with the part it belongs to."""
        for path in sorted(PACKAGE.rglob("*.py")):
            words = path.relative_to(PACKAGE).with_suffix("").parts
            if words[0] not in ("testing", "__init__", "extension"):
                yield words[0], path

    def test_known_parts(self):
        """Every part of the product has its row."""
        self.assertEqual({part for part, _ in self.files()} - set(ROW), set())

    def test_downwards(self):
        """No part imports one above it or beside it, but for interfaces; nothing imports fakes."""
        wrong = [
            f"{path.relative_to(PACKAGE)}: {name}"
            for part, path in self.files()
            for name in sorted(imports_of(path))
            if not is_allowed(part, name)
        ]
        self.assertEqual(wrong, [])

    def test_no_reactor_at_import(self):
        """No module imports the reactor when it is imported itself."""
        wrong = []
        for _, path in self.files():
            for node in ast.parse(path.read_text()).body:
                names = []
                if isinstance(node, ast.ImportFrom):
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                elif isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                if "twisted.internet.reactor" in names:
                    wrong.append(str(path))
        self.assertEqual(wrong, [])

    def test_the_rule_itself(self):
        """The rule refuses what it must and allows what it may."""
        for part, name, right in (
            ("kernel", "pitelegram.errors.Refusal", True),
            ("kernel", "pitelegram.store.rows.Spec", False),
            ("bus", "pitelegram.store.rows", False),
            ("bus", "pitelegram.store.interfaces.IInbox", True),
            ("panel", "pitelegram.supervisor.interfaces.ISupervisor", True),
            ("panel", "pitelegram.supervisor.supervisor", False),
            ("bridge", "pitelegram.botapi.interfaces.IBotApi", False),
            ("control", "pitelegram.commands.table", False),
            ("cli", "pitelegram.control.envelope", True),
            ("worker", "pitelegram.testing.control", False),
        ):
            self.assertIs(is_allowed(part, name), right, (part, name))

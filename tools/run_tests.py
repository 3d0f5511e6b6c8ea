"""Run the whole test suite: C{python tools/run_tests.py [NAME …]}.

First the quick packages under trial, then the same under pytest (both must agree), then the slow
packages, with real processes, under trial.  Prints each runner's closing lines and at the end one
line C{N passed, N failed}; the exit code is 0 only when nothing failed and everything ran.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

SLOW = ("commands", "packaging", "integration", "system")
"""Packages of tests that start daemons, browsers and installations; they run last."""

LIMIT = 20 * 60
"""Seconds that one runner may take."""


def packages() -> list[str]:
    """Return every package and module of tests, the slow ones last."""
    found = []
    for entry in sorted((ROOT / "tests").iterdir()):
        if entry.is_dir() and any(entry.glob("test_*.py")):
            found.append(entry.name)
        elif entry.name.startswith("test_") and entry.suffix == ".py":
            found.append(entry.stem)
    return sorted(found, key=lambda name: SLOW.index(name) if name in SLOW else -1)


def run(title: str, words: list[str]) -> tuple[int, str]:
    """Run one runner; show its output; return its exit code and its output."""
    print(f"\n=== {title}", flush=True)
    begun = time.monotonic()
    environ = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        words,
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    lines = []
    deadline = begun + LIMIT
    for line in process.stdout:
        lines.append(line)
        if time.monotonic() > deadline:
            process.kill()
            lines.append(f"stopped after {LIMIT} seconds\n")
            break
    code = process.wait()
    output = "".join(lines)
    print(output if code != 0 else closing(output), flush=True)
    print(f"({title}: {time.monotonic() - begun:.0f} s, exit code {code})", flush=True)
    return code, output


def closing(output: str) -> str:
    """Return the lines with which a runner ends."""
    lines = output.rstrip().splitlines()
    skipped = [line for line in lines if re.match(r"\[SKIPPED\]|SKIPPED ", line)]
    return "\n".join([*skipped, *lines[-3:]])


def count(output: str, *words: str) -> int:
    """Return the sum of the counts that the last line gives for these words."""
    text = "\n".join(output.rstrip().splitlines()[-3:])
    found = 0
    for word in words:
        for pattern in (rf"\b{word}=(\d+)", rf"\b(\d+) {word}\b"):
            found += sum(int(number) for number in re.findall(pattern, text))
    return found


def main(names: list[str]) -> int:
    """Run everything, or the packages named."""
    wanted = names or packages()
    quick = [name for name in wanted if name not in SLOW]
    slow = [name for name in wanted if name in SLOW]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="pi-telegram-tests-") as scratch:
        trial = [sys.executable, "-m", "twisted.trial", f"--temp-directory={scratch}/trial"]
        runs = [
            ("trial", [*trial, *(f"tests.{name}" for name in quick)]),
            ("pytest", [sys.executable, "-m", "pytest", "-q", *(path(name) for name in quick)]),
            *((f"trial {name}", [*trial, f"tests.{name}"]) for name in slow),
        ]
        for title, words in runs:
            if not quick and title in ("trial", "pytest"):
                continue
            code, output = run(title, words)
            if title != "pytest":
                passed += count(output, "successes", "expectedFailures")
            problems = count(output, "failures", "errors", "failed", "error", "unexpectedSuccesses")
            failed += problems or (1 if code != 0 else 0)
            if code == 0 and not count(output, "successes", "passed"):
                failed += 1
                print(f"{title} ran no test at all")
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed else 0


def path(name: str) -> str:
    """Return where a package or module of tests stands."""
    entry = ROOT / "tests" / name
    return str(entry if entry.is_dir() else entry.with_suffix(".py"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

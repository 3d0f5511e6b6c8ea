"""Run the whole test suite: C{python tools/run_tests.py [NAME …]}.

First the quick packages under trial, those without processes of their own under pytest too (both must
agree), then the slow packages under trial: two runners, or two tests of one, at a time.  Prints each runner's closing lines and at the end one
line C{N passed, N failed}; the exit code is 0 only when nothing failed and everything ran.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent

SLOW = ("fuzz", "commands", "packaging", "integration", "system")
"""Packages of tests that take long, or start daemons, browsers and installations; they run last."""

WAITING = ("system",)
"""Of these, packages whose tests mostly wait: two run at a time."""

TRIAL_ONLY = ("botapi", "ownership", "pi", "sandbox", "supervisor", "worker")
"""Quick packages that start processes or wait for real time: to run them twice takes minutes."""

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


def run(title: str, words: list[str]) -> tuple[str, int, str]:
    """Run one runner; show its end; return title, exit code and output."""
    begun = time.monotonic()
    environ = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"\nstopped after {LIMIT} seconds\n"
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            raise
    code = process.returncode
    seconds = time.monotonic() - begun
    text = without_successes(output) if code != 0 else closing(output)
    print(f"\n=== {title} ({seconds:.0f} s, exit code {code})\n{text}", flush=True)
    return title, code, output


def without_successes(output: str) -> str:
    """Return what a runner said without its lines about tests that passed."""
    return "\n".join(line for line in output.splitlines() if not line.endswith("[OK]"))


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

        def trial(directory: str) -> list[str]:
            there = f"--temp-directory={scratch}/{directory}"
            return [sys.executable, "-m", "twisted.trial", there]

        first = [
            ("trial", [*trial("quick"), *(f"tests.{name}" for name in quick)]),
        ]
        both = [path(name) for name in quick if name not in TRIAL_ONLY]
        if both:
            first.append(("pytest", [sys.executable, "-m", "pytest", "-q", *both]))
        then = [
            (f"trial {name}", [*trial(name), f"tests.{name}"])
            for name in slow
            if name not in WAITING
        ]
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda each: run(*each), [*first, *then] if quick else then))
        for name in slow:
            if name in WAITING:
                results.append(run(f"trial {name}", [*trial(name), "-j2", f"tests.{name}"]))
    for title, code, output in results:
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

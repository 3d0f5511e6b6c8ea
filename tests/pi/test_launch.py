"""How Pi is started."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import LaunchFailed
from pitelegram.pi.launch import LaunchPlan, early_exit, spawn_failure


class LaunchPlanTests(SynchronousTestCase):
    """L{LaunchPlan}."""

    def plan(self, **more: Any) -> LaunchPlan:
        """A plan that would work."""
        values: dict[str, Any] = {"command": [sys.executable], "directory": Path("/")}
        return LaunchPlan(**{**values, "environment": {}, **more})

    def test_fresh_session(self) -> None:
        """A fresh session gets its name."""
        words = self.plan(name="parser", extra_args=["-e", "shim.ts"]).pi_arguments()
        self.assertEqual(words[1:], ["--mode", "rpc", "--approve", "-n", "parser", "-e", "shim.ts"])

    def test_resumed_session(self) -> None:
        """A resumed one is named by its file and is not renamed."""
        words = self.plan(name="parser", session_file="/s/x.jsonl").pi_arguments()
        self.assertEqual(words[1:], ["--mode", "rpc", "--approve", "--session", "/s/x.jsonl"])

    def test_wrapper(self) -> None:
        """The process that becomes Pi imports nothing of the project and gets the directory."""
        words = self.plan(umask=0o22).arguments()
        self.assertEqual(words[:3], [sys.executable, "-I", "-S"])
        self.assertEqual(words[4:6], ["/", "22"])

    def test_program_is_absolute(self) -> None:
        """A program is found by our own view, never inside the project."""
        base = Path(self.mktemp()).resolve()
        base.mkdir()
        (base / "pi").touch(mode=0o755)
        found = self.plan(command=["pi", "--x"], environment={"PATH": str(base)}).pi_arguments()
        self.assertEqual(found[:2], [str(base / "pi"), "--x"])
        relative = os.path.relpath(base / "pi")
        self.assertEqual(self.plan(command=[relative]).pi_arguments()[0], str(base / "pi"))

    def refused(self, **more: Any) -> str:
        """What a check says."""
        error = self.assertRaises(LaunchFailed, self.plan(**more).check)
        self.assertTrue(error.permanent)
        return str(error)

    def test_checks(self) -> None:
        """What is certain to fail is said before, without a process."""
        self.plan().check()
        self.assertIn("workers.command", self.refused(command=[]))
        self.assertIn("was not found", self.refused(command=["no-such-pi"]))
        self.assertIn("directory is gone", self.refused(directory=Path("/no/such/place")))
        self.assertIn("absolute", self.refused(session_file="x.jsonl"))

    def test_spawn_failures(self) -> None:
        """An error of the system call is permanent when trying again cannot help."""
        self.assertTrue(spawn_failure(OSError(errno.ENOENT, "")).permanent)
        self.assertFalse(spawn_failure(OSError(errno.EAGAIN, "")).permanent)

    def test_early_exits(self) -> None:
        """An exit before the first answer says what Pi said."""
        refusal = early_exit(1, "exit code 1", "Warning: x\nError: Unknown option: -Z\n")
        self.assertEqual(str(refusal), "Pi refuses to start: Error: Unknown option: -Z")
        self.assertTrue(refusal.permanent)
        self.assertTrue(
            early_exit(127, "exit code 127", "cannot start: Exec format error").permanent
        )
        self.assertFalse(early_exit(None, "signal 9 (SIGKILL)", "").permanent)
        self.assertFalse(early_exit(1, "exit code 1", "something broke").permanent)
        self.assertIn("exit code 0", str(early_exit(0, "exit code 0", "")))

"""Running Python as another user: for tests of what others may and may not do."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pitelegram

NOBODY = 65534


def as_user(uid: int, code: str, *arguments: object, groups: Sequence[int] = ()) -> list[str]:
    """Return a command that runs C{code} as another user, in these supplementary groups only."""
    python, _ = _interpreter()
    return [*_prefix(uid, groups), *python, "-c", code, *map(str, arguments)]


def why_not() -> str | None:
    """Why this cannot be done here, None when it can."""
    return _interpreter()[1]


def _prefix(uid: int, groups: Sequence[int]) -> list[str]:
    more = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", *more]


@functools.lru_cache(maxsize=1)
def _interpreter() -> tuple[tuple[str, ...], str | None]:
    """A Python that another user can run this program with; or why there is none."""
    if os.geteuid() != 0:
        return (), "only root becomes somebody else"
    if shutil.which("setpriv") is None:
        return (), "there is no setpriv"
    root = Path(pitelegram.__file__).parent.parent
    path = os.pathsep.join([str(root), *(each for each in sys.path if "site-packages" in each)])
    env = ("env", f"PYTHONPATH={path}", "PYTHONDONTWRITEBYTECODE=1")
    for program in (sys.executable, "/usr/bin/python3"):
        python = (*env, program)
        probe = [*_prefix(NOBODY, ()), *python, "-c", "import pitelegram, twisted, attrs, psutil"]
        try:
            done = subprocess.run(probe, cwd="/", capture_output=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return python, None
    return (), "another user cannot run this Python"

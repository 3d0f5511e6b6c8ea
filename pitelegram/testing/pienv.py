"""The real Pi, for tests."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import pitelegram
from pitelegram.sandbox.model import ScriptedModel

VARIABLE = "PI_TELEGRAM_TEST_PI"
"""Shell words of the Pi to test with, instead of the one in the checkout."""


class PiMissing(AssertionError):
    """There is no Pi to test with; tests fail, they are never skipped for it."""


def pi_command() -> list[str]:
    """Return the command of the Pi to test with.

    @raise PiMissing: if it is not there.
    """
    words = shlex.split(os.environ.get(VARIABLE, ""))
    if not words:
        words = [str(Path(pitelegram.__file__).resolve().parent.parent / ".pi" / "pi")]
    if os.sep in words[0] and not os.access(words[0], os.X_OK):
        raise PiMissing(f"no Pi at {words[0]}: run 'make test' once, or set {VARIABLE}")
    return words


def pi_environment(agent_dir: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment that ties Pi to C{agent_dir} and keeps it off the network."""
    kept = ("PATH", "HOME", "USER", "SHELL", "TMPDIR", "LANG")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PI_CODING_AGENT_DIR": str(agent_dir),
        "PI_OFFLINE": "1",
        "PI_TELEMETRY": "0",
        **(extra or {}),
    }


def make_agent_dir(base: Path, model: ScriptedModel, retry: bool = False) -> Path:
    """Make a throw-away agent directory below C{base} whose default model is C{model}."""
    agent_dir = base / "agent"
    model.write_models_json(agent_dir, retry=retry)
    return agent_dir

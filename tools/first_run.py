"""What C{make run} does last: the demo, or a word about the real bot when one is configured.

Usage: C{python tools/first_run.py PATH_OF_PI}.
"""

import os
import shlex
import sys

from pitelegram.errors import PiTelegramError
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.options import resolve_paths


def is_configured() -> bool:
    """Whether a bot token is configured for the profile that a plain start would use."""
    try:
        paths = resolve_paths({}, os.environ)
        return SettingsFile(paths, os.environ).load().bot_token is not None
    except PiTelegramError:
        return True


def main(pi: str) -> None:
    """Start the demo in this process's place."""
    program = os.path.join(os.path.dirname(sys.executable), "pi-telegram")
    pi_words = shlex.quote(os.path.abspath(pi))
    if is_configured():
        print(
            "A bot token is configured, so this does not start the demo by itself.\n\n"
            f"  {program} doctor --pi {pi_words}    check everything\n"
            f"  {program} start --pi {pi_words}     run your bot in the background\n"
            f"  {program} demo --pi {pi_words}      the demo all the same\n"
        )
        return
    os.execv(program, [program, "demo", f"--pi={pi_words}"])


if __name__ == "__main__":
    main(sys.argv[1])

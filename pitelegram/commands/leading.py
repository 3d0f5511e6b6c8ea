"""Saying in C{telegram.json} that the daemon leads, so that terminal Pis wait for it (rule D31)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from pitelegram.errors import PiTelegramError
from pitelegram.kernel.paths import Paths


def want_daemon(resolved: Mapping[str, Any], only_first: bool) -> None:
    """Set C{cluster.leader} to C{daemon} and say so; a file that cannot be changed is only named.

    @param resolved: the options of the start.
    @param only_first: leave a value alone that stands there already.
    """
    from pitelegram.settings.file import SettingsFile

    def mutate(document: dict[str, Any]) -> None:
        cluster = document.setdefault("cluster", {})
        if isinstance(cluster, dict) and not (only_first and "leader" in cluster):
            cluster["leader"] = "daemon"

    file = SettingsFile(Paths(resolved["agent_dir"], resolved["profile"]), os.environ)
    try:
        changed = file.update_blocking(mutate)
    except PiTelegramError as error:
        print(f"pi-telegram: cluster.leader was not set: {error}", file=sys.stderr)
        return
    if changed:
        print(
            'pi-telegram: set cluster.leader to "daemon" in telegram.json:'
            " terminal Pis wait for the daemon instead of leading",
            file=sys.stderr,
        )

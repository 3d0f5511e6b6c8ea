"""The daemon's options, one row each, for twistd and for C{pi-telegram} alike."""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One option of the contract.

    @ivar name: long name without dashes.
    @ivar metavar: what stands for the value in help texts.
    @ivar help: what it is; environment variable and default in brackets.
    """

    name: str
    metavar: str
    help: str


AGENT_DIR = Option("agent-dir", "DIR", "Pi's agent directory [PI_CODING_AGENT_DIR; ~/.pi/agent]")
PROFILE = Option("profile", "NAME", "bot profile: a-z and 0-9 [PI_TELEGRAM_PROFILE; default]")
CONTROL_SOCKET = Option(
    "control-socket", "PATH", "the control socket [PI_TELEGRAM_CONTROL_SOCKET; runtime directory]"
)
ROOT = Option(
    "root",
    "DIR",
    "directory below which workers may run; may be given several times [PI_TELEGRAM_ROOTS; home]",
)

SINGLE = (
    AGENT_DIR,
    PROFILE,
    Option("api-root", "URL", "the Bot API [PI_TELEGRAM_API_ROOT; https://api.telegram.org]"),
    Option("pi", "COMMAND", "how to start Pi, in shell words [PI_TELEGRAM_PI; pi]"),
    Option("proxy", "URL", "http:// or socks5:// [PI_TELEGRAM_PROXY, HTTPS_PROXY, ALL_PROXY]"),
    Option("network-family", "F", "auto, ipv4 or ipv6 [PI_TELEGRAM_NETWORK_FAMILY; auto]"),
    CONTROL_SOCKET,
    Option("socket-group", "GROUP", "who may use that socket too [PI_TELEGRAM_SOCKET_GROUP]"),
    Option(
        "log-level",
        "LEVEL",
        "debug, info, warn, error or critical [PI_TELEGRAM_LOG_LEVEL; info]",
    ),
)
"""Options that have one value; L{ROOT} is the only one that may be given several times."""

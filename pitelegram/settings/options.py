"""The options of a run: command line before environment before C{telegram.json} before default."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import attrs

from pitelegram.errors import ConfigError, UsageError
from pitelegram.kernel.paths import DEFAULT_PROFILE, Paths
from pitelegram.settings.model import Settings
from pitelegram.settings.names import is_profile_name

T = TypeVar("T")

DEFAULT_API_ROOT = "https://api.telegram.org"
FAMILIES = ("auto", "ipv4", "ipv6")
LOG_LEVELS = ("debug", "info", "warn", "error", "critical")


@attrs.frozen(kw_only=True)
class RunOptions:
    """What a daemon was told, after precedence.

    @ivar pi_command: the words that start Pi.
    @ivar roots: absolute directories below which workers may run.
    @ivar control_socket: an explicit path, or None for the one in the runtime directory.
    """

    api_root: str
    pi_command: tuple[str, ...]
    roots: tuple[Path, ...]
    proxy: str | None = attrs.field(repr=False)
    network_family: str
    control_socket: Path | None
    socket_group: str | None
    log_level: str


def resolve_paths(options: Mapping[str, Any], environ: Mapping[str, str]) -> Paths:
    """Return the paths that C{--agent-dir} and C{--profile}, or their variables, select.

    @raise UsageError: the profile name is malformed, or the directory is none.
    """
    agent_dir, profile = options.get("agent-dir"), options.get("profile")
    if agent_dir is None:
        agent_dir = environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent"
    if not agent_dir or "\0" in str(agent_dir):
        raise UsageError("--agent-dir: must be the path of a directory")
    origin = "PI_TELEGRAM_PROFILE" if profile is None else "--profile"
    if profile is None:
        profile = environ.get("PI_TELEGRAM_PROFILE") or DEFAULT_PROFILE
    if not is_profile_name(profile):
        raise UsageError(
            f"{origin}: a profile name has 1 to 32 characters a-z and 0-9 and is neither main nor"
            " active"
        )
    return Paths(agent_dir, profile)


def resolve_options(
    options: Mapping[str, Any], environ: Mapping[str, str], settings: Settings
) -> RunOptions:
    """Apply the precedence to every other option.

    @param options: the command line's values by long name without dashes; absent or None means not
        given.  C{root} is a list.  (A variable that is empty is not given either.)
    @raise UsageError: a malformed value from the command line or the environment.
    @raise ConfigError: a malformed value from C{telegram.json}.
    """
    pick = _Picker(options, environ)
    api_root = pick.value("api-root", "PI_TELEGRAM_API_ROOT", settings.api_root, _api_root)
    socket = pick.value(
        "control-socket", "PI_TELEGRAM_CONTROL_SOCKET", settings.control_socket, _path
    )
    group = pick.value(
        "socket-group", "PI_TELEGRAM_SOCKET_GROUP", settings.control_socket_group, _group
    )
    if group is not None and socket is None:
        raise UsageError("--socket-group needs an explicit --control-socket")
    return RunOptions(
        api_root=api_root or DEFAULT_API_ROOT,
        pi_command=pick.value("pi", "PI_TELEGRAM_PI", settings.workers_command, _words) or ("pi",),
        roots=_roots(options, environ, settings),
        proxy=_proxy(pick, settings, api_root or DEFAULT_API_ROOT),
        network_family=pick.value(
            "network-family", "PI_TELEGRAM_NETWORK_FAMILY", settings.network_family, _word(FAMILIES)
        )
        or "auto",
        control_socket=socket,
        socket_group=group,
        log_level=pick.value("log-level", "PI_TELEGRAM_LOG_LEVEL", None, _word(LOG_LEVELS))
        or "info",
    )


@attrs.frozen
class _Picker:
    """Finds the strongest source of a value and names it when it is malformed."""

    options: Mapping[str, Any]
    environ: Mapping[str, str]

    def value(
        self, option: str, variable: str, configured: str | None, read: Callable[[str], T]
    ) -> T | None:
        given = self.options.get(option)
        if given is not None:
            return _read(read, str(given), f"--{option}", UsageError)
        given = self.environ.get(variable)
        if given:
            return _read(read, given, variable, UsageError)
        if configured:
            return _read(read, configured, f"telegram.json ({option})", ConfigError)
        return None


def _read(read: Callable[[str], T], text: str, origin: str, error: type[ConfigError]) -> T:
    try:
        return read(text)
    except ValueError as wrong:
        raise error(f"{origin}: {wrong}") from None


def _roots(
    options: Mapping[str, Any], environ: Mapping[str, str], settings: Settings
) -> tuple[Path, ...]:
    given: Sequence[str] = options.get("root") or ()
    if given:
        return tuple(_read(_path, root, "--root", UsageError) for root in given)
    variable = environ.get("PI_TELEGRAM_ROOTS", "")
    if variable:
        listed = [root for root in variable.split(os.pathsep) if root]
        return tuple(_read(_absolute, root, "PI_TELEGRAM_ROOTS", UsageError) for root in listed)
    if settings.workers_roots is not None:
        return tuple(
            _read(_absolute, root, "telegram.json (workers.roots)", ConfigError)
            for root in settings.workers_roots
        )
    return (Path(environ.get("HOME") or os.path.expanduser("~")),)


def _proxy(pick: _Picker, settings: Settings, api_root: str) -> str | None:
    environ = pick.environ
    strongest = pick.value("proxy", "PI_TELEGRAM_PROXY", None, _proxy_url)
    if strongest is not None:
        return strongest
    common = _variable(environ, "HTTPS_PROXY") or _variable(environ, "ALL_PROXY")
    if common:
        if bypasses_proxy(api_root, _variable(environ, "NO_PROXY")):
            return None
        return _read(_proxy_url, common, "HTTPS_PROXY or ALL_PROXY", UsageError)
    configured = settings.network_proxy
    return (
        _read(_proxy_url, configured, "telegram.json (proxy)", ConfigError) if configured else None
    )


def bypasses_proxy(url: str, no_proxy: str) -> bool:
    """Whether C{NO_PROXY} excludes the host of C{url}: a name, a domain's suffix, or C{*}."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    for entry in (item.strip().lower() for item in no_proxy.split(",")):
        name, _, port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
        if port and port != str(parts.port or (443 if parts.scheme == "https" else 80)):
            continue
        name = name.strip("[]").lstrip(".")
        if entry == "*" or (name and (host == name or host.endswith("." + name))):
            return True
    return False


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.lower()) or ""


def _api_root(text: str) -> str:
    parts = urlsplit(text)
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in ("http", "https") or not _host(parts) or not plain:
        raise ValueError(f"must be an address like {DEFAULT_API_ROOT}")
    return text.rstrip("/")


def _proxy_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "socks5", "socks5h") or not _host(parts):
        raise ValueError("must be an address like http://host:port or socks5://host:port")
    return text


def _host(parts: Any) -> bool:
    try:
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # the port is not a number
        return False


def _words(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        words = ()
    if not words:
        raise ValueError("must be a command in shell words, with quotes closed")
    return words


def _group(text: str) -> str:
    if not text:
        raise ValueError("must be the name of a group")
    return text


def _path(text: str) -> Path:
    if not text or "\0" in text:
        raise ValueError("must be a path")
    return Path(os.path.abspath(os.path.expanduser(text)))


def _absolute(text: str) -> Path:
    expanded = os.path.expanduser(text)
    if not os.path.isabs(expanded) or "\0" in text:
        raise ValueError("must hold absolute directories")
    return Path(os.path.normpath(expanded))


def _word(words: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError("must be one of " + ", ".join(words))
        return text

    return read

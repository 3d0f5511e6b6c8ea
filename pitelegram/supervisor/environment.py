"""The environment of a worker and of its Pi: a list of what may go in, then what must not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import attrs

from pitelegram.kernel.proctree import MARK_VARIABLE

_NAMES = frozenset(
    "PATH HOME USER LOGNAME SHELL TMPDIR TZ LANG TERM SSH_AUTH_SOCK"
    " HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY NODE_USE_ENV_PROXY"
    " http_proxy https_proxy all_proxy no_proxy"
    " SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE".split()
)

_PATTERNS = (
    "LC_*",
    "XDG_*",
    "PI_*",
    "*_API_KEY",
    "*_BASE_URL",
    "AWS_*",
    "AZURE_*",
    "GOOGLE_*",
    "OLLAMA_*",
)

_OURS = "PI_TELEGRAM_"

_SESSION_VARIABLES = frozenset(
    ("PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL")
)

_TOKEN_NAME = re.compile(r"TELEGRAM_.*TOKEN.*", re.I)


@attrs.frozen(kw_only=True)
class EnvironmentRules:
    """What the configuration adds, and what has to stay out.

    @ivar pass_env: patterns of C{workers.passEnv}.
    @ivar extra: C{workers.env}.
    @ivar tokens: bot tokens of all profiles; a variable whose value contains one is removed.
    @ivar token_variables: names of variables that tokens are taken from; removed too.
    @ivar token_digest: SHA-256 of this profile's token, which workers may know.
    @ivar bot_id: the bot's id, once known.
    @ivar agent_dir: Pi's agent directory.
    """

    agent_dir: str
    token_digest: str
    pass_env: tuple[str, ...] = ()
    extra: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    tokens: tuple[str, ...] = attrs.field(default=(), repr=False)
    token_variables: frozenset[str] = frozenset()
    bot_id: int | None = None


def allowed(name: str, pass_env: Iterable[str]) -> bool:
    """Whether an inherited variable may go to a worker."""
    if name.startswith(_OURS):
        return False
    if name in _NAMES or any(fnmatchcase(name, pattern) for pattern in _PATTERNS):
        return True
    return any(fnmatchcase(name, pattern) for pattern in pass_env)


def pi_environment(environ: Mapping[str, str], rules: EnvironmentRules) -> dict[str, str]:
    """Return the environment in which Pi may be asked for its version: no worker's marks."""
    result = {name: value for name, value in environ.items() if allowed(name, rules.pass_env)}
    result.update(rules.extra)
    result["PI_CODING_AGENT_DIR"] = rules.agent_dir
    return _without_secrets(result, rules)


def worker_environment(
    environ: Mapping[str, str], rules: EnvironmentRules, name: str, spawn_id: str
) -> dict[str, str]:
    """Return the environment of one worker process."""
    result = pi_environment(environ, rules)
    result["PI_TELEGRAM_DAEMON_WORKER"] = "1"
    result["PI_TELEGRAM_FOLLOWER_OWNER_ID"] = f"worker:{name}"
    result["PI_TELEGRAM_WORKER_BOT_TOKEN_SHA256"] = rules.token_digest
    if rules.bot_id is not None:
        result["PI_TELEGRAM_WORKER_BOT_ID"] = str(rules.bot_id)
    result[MARK_VARIABLE] = spawn_id
    return _without_secrets(result, rules)


def _without_secrets(environment: Mapping[str, str], rules: EnvironmentRules) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name not in _SESSION_VARIABLES
        and name not in rules.token_variables
        and not _TOKEN_NAME.fullmatch(name)
        and not any(token and token in value for token in rules.tokens)
    }

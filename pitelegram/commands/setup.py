"""C{pi-telegram setup}: a token that works, and an owner whom the operator confirmed."""

from __future__ import annotations

import argparse
import getpass
import os
import re
import sys
import time
from typing import Any

from pitelegram.commands import output
from pitelegram.commands.place import command_line, given, paths_of, tell_recovered
from pitelegram.commands.telegram import BotFacts, ask_telegram
from pitelegram.errors import ConfigError, NotConfigured, TelegramError, Unauthorized, UsageError
from pitelegram.kernel.exits import EXIT_FAILED
from pitelegram.kernel.paths import Paths
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.model import Settings
from pitelegram.settings.options import RunOptions, resolve_options
from pitelegram.settings.reading import token_of

_TOKEN = re.compile(r"(?<![0-9A-Za-z:_-])[0-9]{3,20}:[A-Za-z0-9_-]{30,64}(?![A-Za-z0-9_-])")

_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})")

_USER_ID = re.compile(r"[1-9][0-9]{0,17}")


def setup(args: argparse.Namespace) -> int:
    """Check the token, store it, and pair an owner.  The token is never shown."""
    paths = paths_of(args)
    file = SettingsFile(paths, os.environ)
    settings = file.load()
    tell_recovered(settings)
    options = resolve_options(given(args), os.environ, settings)
    owner = _wanted_owner(args, settings)
    stored = _wanted_token(args, settings, paths)
    token = _reveal(stored, settings, paths)
    try:
        bot = ask_telegram(token, options.api_root, options.proxy, options.network_family)
    except TelegramError as error:
        output.complain(_why(error))
        return EXIT_FAILED
    changes = _Changes(paths.profile, stored, bot, owner, args, options)
    file.update_blocking(changes.apply)
    _say(bot)
    for twin in file.twins(str(bot.bot_id)):
        print(f"Note: profile {twin} is the same bot; only one of the two can run at a time.")
    return _pair(args, paths, owner or settings.allowed_user_id, bot)


class _Changes:
    """What setup writes into C{telegram.json}."""

    def __init__(
        self,
        profile: str,
        token: str | None,
        bot: BotFacts,
        owner: int | None,
        args: argparse.Namespace,
        options: RunOptions,
    ) -> None:
        self._profile = profile
        self._token = token
        self._bot = bot
        self._owner = owner
        self._args = args
        self._options = options

    def apply(self, document: dict[str, Any]) -> None:
        """Change the newest document."""
        profile = document.setdefault("profiles", {}).setdefault(self._profile, {})
        if self._token is not None:
            profile["botToken"] = self._token
            profile.pop("botTokenFile", None)
        profile["botId"] = self._bot.bot_id
        profile["botUsername"] = self._bot.username
        if self._owner is not None:
            profile["allowedUserId"] = self._owner
        if getattr(self._args, "api_root", None):
            profile["apiRoot"] = self._options.api_root
        for option, key in (("proxy", "proxy"), ("network_family", "family")):
            if getattr(self._args, option, None):
                document.setdefault("network", {})[key] = getattr(self._options, option)
        if self._args.first_contact:
            document.setdefault("pairing", {})["firstContact"] = True


def find_token(text: str) -> str:
    """Return the one bot token in a text (people paste BotFather's whole message).

    A reference to an environment variable, C{$NAME}, is taken as it is.

    @raise ConfigError: there is none, or more than one; the text is not repeated.
    """
    if _VARIABLE.fullmatch(text.strip()):
        return text.strip()
    found = set(_TOKEN.findall(text))
    if len(found) != 1:
        raise ConfigError(
            "this is not a bot token; @BotFather gives one that looks like 123456789:AAE… (digits,"
            " a colon, 35 characters)"
        )
    return found.pop()


def _wanted_token(args: argparse.Namespace, settings: Settings, paths: Paths) -> str | None:
    """Return what to store as the token; None to keep the one that is there."""
    if args.token_stdin:
        return find_token(sys.stdin.read(65536))
    pairing_only = args.new_owner or args.user_id or args.first_contact
    if settings.bot_token is not None and (pairing_only or not sys.stdin.isatty()):
        return None
    if not sys.stdin.isatty():
        raise NotConfigured("give the token with --token-stdin, or run setup in a terminal")
    keep = " (empty: keep the one that is stored)" if settings.bot_token is not None else ""
    text = getpass.getpass(f"Bot token of profile {paths.profile}, not shown{keep}: ")
    if not text.strip() and settings.bot_token is not None:
        return None
    return find_token(text)


def _reveal(stored: str | None, settings: Settings, paths: Paths) -> str:
    if stored is None:
        return settings.require_token().reveal()
    secret, problem = token_of({"botToken": stored}, paths.profile, os.environ, paths.agent_dir)
    if secret is None:
        raise NotConfigured(problem)
    return secret.reveal()


def _wanted_owner(args: argparse.Namespace, settings: Settings) -> int | None:
    if args.user_id is None:
        return None
    if not _USER_ID.fullmatch(args.user_id):
        raise UsageError("--user-id must be a number: your own Telegram id, not the bot's")
    owner = int(args.user_id)
    if settings.allowed_user_id not in (None, owner) and not args.new_owner:
        raise ConfigError("another owner is paired already; add --new-owner to replace him")
    return owner


def _why(error: TelegramError) -> str:
    if isinstance(error, Unauthorized) or error.code == 404:
        return "Telegram refuses this token; copy it again from @BotFather. Nothing was changed."
    return f"Telegram could not be asked ({error.description}). Nothing was changed; try again."


def _say(bot: BotFacts) -> None:
    print(f"Bot: @{bot.username}. Stored.")
    for sentence in bot.switches_off():
        print(f"Note: {sentence}.")
    if bot.webhook:
        print(
            "Note: a webhook is set for this bot, so nothing can be received. Remove it where it"
            " was set, or with the Bot API method deleteWebhook."
        )


def _pair(args: argparse.Namespace, paths: Paths, owner: int | None, bot: BotFacts) -> int:
    if args.first_contact:
        print(
            "Warning: the first person who writes to the bot becomes its owner and can run"
            " anything that Pi can."
        )
        return 0
    if owner is not None and (args.user_id or not args.new_owner):
        print(f"An owner is paired. Next: {command_line(args, 'start')}")
        return 0
    code = _new_code(paths)
    print(
        f"\nTo pair your account within 15 minutes, have the daemon running ({command_line(args, 'start')})"
        f" and open:\n\n  https://t.me/{bot.username}?start={code}\n\n"
        f"or send this to the bot in a private chat:\n\n  /start {code}\n"
    )
    return 0


def _new_code(paths: Paths) -> str:
    from pitelegram.kernel.files import ensure_private_dir
    from pitelegram.routing.pairing import Pairing

    ensure_private_dir(paths.data)
    return Pairing(paths.pairing, time.monotonic, time.time).create_code(os.urandom)

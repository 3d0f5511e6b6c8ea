"""The declared keys of C{telegram.json} as one record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from pitelegram.errors import NotConfigured
from pitelegram.settings.secret import Secret


@attrs.frozen(kw_only=True)
class Settings:
    """What the configuration says for one profile; unknown keys stay in the file.

    @ivar bot_token: None when there is none, or when it was read without (C{token_problem} says
        why there is none).
    @ivar token_variables: names of environment variables that any profile takes its token from.
    @ivar other_tokens: literal tokens of all other profiles (never for a worker's environment).
    @ivar problems: sentences about values that were not understood and have their default.
    @ivar recovered: this load found invalid JSON and moved it aside: nothing may be deleted on
        the strength of these settings.
    """

    profile: str
    known_profile: bool = False
    bot_token: Secret | None = None
    token_problem: str = ""
    bot_id: int | None = None
    bot_username: str | None = None
    allowed_user_id: int | None = None
    api_root: str | None = None
    thread_display_mode: str = "letters"
    cluster_leader: str = "auto"
    workers_command: str | None = None
    workers_roots: tuple[str, ...] | None = None
    workers_env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    workers_pass_env: tuple[str, ...] = ()
    threads_automatic_cleanup: bool = True
    threads_unattended_cleanup: bool = False
    pairing_first_contact: bool = False
    assistant_rendering: str = "rich"
    assistant_file_after: int = 20_000
    assistant_draft_previews: bool = False
    assistant_proactive_push: bool = True
    assistant_activity: str = "verbose"
    assistant_footer: bool = False
    assistant_time_injection: str = "interval"
    attachments_workspace_only: bool = False
    voice_reply_mode: str = "hidden"
    voice_send_transcript: bool = False
    inbound_handlers: tuple[Any, ...] = attrs.field(factory=tuple, repr=False)
    outbound_handlers: tuple[Mapping[str, Any], ...] = attrs.field(factory=tuple, repr=False)
    network_proxy: str | None = attrs.field(default=None, repr=False)
    network_family: str | None = None
    control_socket: str | None = None
    control_socket_group: str | None = None
    outbox_ambiguous: str = "park"
    token_variables: frozenset[str] = frozenset()
    other_tokens: tuple[Secret, ...] = ()
    problems: tuple[str, ...] = ()
    recovered: bool = False

    def require_token(self) -> Secret:
        """Return the bot token.

        @raise NotConfigured: there is none; the message says what to do.
        """
        if self.bot_token is None:
            raise NotConfigured(
                self.token_problem
                or f"no bot token is configured for profile {self.profile}; run pi-telegram setup"
            )
        return self.bot_token

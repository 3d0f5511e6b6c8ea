"""One tree of errors.

Every message is written for the operator: it says what happened and what to do, and never carries a
token, message text, or a path that the reader did not give himself.
"""

from __future__ import annotations


class PiTelegramError(Exception):
    """Base of every error this package raises on purpose."""


# --- configuration and ownership -------------------------------------------------------------


class ConfigError(PiTelegramError):
    """A setting is missing, malformed or contradictory."""


class UsageError(ConfigError):
    """An option is unknown or malformed; the message names it and says what is right (exit 2)."""


class NotConfigured(ConfigError):
    """No usable bot token or owner for this profile; C{pi-telegram setup} is the cure (exit 3)."""


class TemplateError(ConfigError):
    """A command template is malformed, or a value that it needs is missing or of the wrong kind.

    @ivar place: where in the setting, in its own terms (C{inboundHandlers[0].template[1]}).
    @ivar reason: what is wrong there; never a value.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class UnsafeFile(PiTelegramError):
    """A file, directory or socket breaks the permission policy and was left alone.

    @ivar code: one word of the refusal table (C{wrong_type}, C{wrong_owner}, C{wrong_group},
        C{insecure_mode}, C{insecure_socket_parent}, C{entry_changed}, C{missing_entry},
        C{entry_exists}, C{invalid_entry_name}, C{operation_failed}).
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class InstallationUnavailable(PiTelegramError):
    """The installation key cannot be used.  Always this one sentence: no cause, no place."""

    def __init__(self) -> None:
        super().__init__("installation identity is unavailable")


class OwnershipError(PiTelegramError):
    """The transport lock cannot be taken or kept."""


class LiveOwner(OwnershipError):
    """Another live process owns this profile's transport (exit 4).

    @ivar pid: its process id.
    @ivar role: C{"daemon"} or C{"worker"}.
    @param twin: the profile that it runs for, when that is another one of the same bot.
    """

    def __init__(self, pid: int, role: str, twin: str | None = None) -> None:
        text = f"another live {role} (pid {pid}) owns this bot profile; stop it first"
        if twin is not None:
            text = f"profile {twin} is the same bot, and its {role} (pid {pid}) runs; stop it first"
        super().__init__(text)
        self.pid = pid
        self.role = role


class OwnershipLost(OwnershipError):
    """The transport lock names somebody else now (exit 5)."""


class SocketInUse(OwnershipError):
    """Another live process listens on a socket that would be ours."""


# --- storage ---------------------------------------------------------------------------------


class StoreError(PiTelegramError):
    """The database cannot do what was asked."""


class Fenced(StoreError):
    """The database belongs to a newer leader epoch: nothing was stored."""


class StoreTooNew(StoreError):
    """The file was written by a newer version; install that version or restore a backup."""


class StoreFull(StoreError):
    """No space is left; nothing was confirmed that could not be stored."""


# --- Bot API ---------------------------------------------------------------------------------


class TelegramError(PiTelegramError):
    """A Bot API call failed.  Sub-classes say what may be done about it.

    @ivar method: the Bot API method.
    @ivar code: Telegram's C{error_code}, 0 when there was no readable answer.
    @ivar description: Telegram's own text, or a fixed sentence of ours; never the URL.
    """

    def __init__(self, method: str, code: int, description: str) -> None:
        super().__init__(f"{method}: {description}")
        self.method = method
        self.code = code
        self.description = description


class CertainlyUnsent(TelegramError):
    """Telegram did not act: look-up, connect, TLS or proxy refused, or 429.  Safe to repeat.

    @ivar retry_after: seconds the server asked for, or None.
    """

    def __init__(
        self, method: str, code: int, description: str, retry_after: float | None = None
    ) -> None:
        super().__init__(method, code, description)
        self.retry_after = retry_after


class Refused(TelegramError):
    """Telegram answered with a complete C{ok:false} below 500: it definitely did not act."""


class Unauthorized(Refused):
    """401: the token was revoked or is wrong."""


class Conflict(Refused):
    """409: another poller, or a webhook is set.

    @ivar webhook: true when a webhook is the reason.
    """

    def __init__(self, method: str, code: int, description: str) -> None:
        super().__init__(method, code, description)
        self.webhook = "webhook" in description.lower()


class Uncertain(TelegramError):
    """Nobody can tell whether Telegram acted: 5xx, not JSON, cut or missing answer."""


# --- bus -------------------------------------------------------------------------------------


class BusError(PiTelegramError):
    """The bus protocol was broken; C{code} is the AMP error code."""

    code = "INTERNAL"


class BusUnauthorized(BusError):
    """The peer did not prove its credential; the connection ends."""

    code = "UNAUTHORIZED"


class IncompatibleProtocol(BusError):
    """The peer speaks another protocol version; the connection ends."""

    code = "INCOMPATIBLE_PROTOCOL"


class BusBadRequest(BusError):
    """The request breaks the wire contract; the connection stays."""

    code = "BAD_REQUEST"


class StaleGeneration(BusError):
    """The registration is not the current one; register again."""

    code = "STALE_GENERATION"


class NotLeader(BusError):
    """This process does not lead (any more)."""

    code = "NOT_LEADER"


class NobodyKnows(PiTelegramError):
    """Nobody is left who could tell what became of a command."""

    def __init__(self) -> None:
        super().__init__("nobody is left who could tell what became of it")


class LinkLost(BusError):
    """The connection ended, or the answer did not come in time: the outcome is unknown."""

    code = "LINK_LOST"


class Refusal(PiTelegramError):
    """A well-formed request that the other side will not do.

    It travels as C{{"ok":false,"error":{"code","message",…}}}.

    @ivar code: one of the wire contract's refusal codes.
    @ivar fields: further members of the error object (C{errorCode}, C{retryAfter}, …).
    """

    def __init__(self, code: str, message: str, **fields: object) -> None:
        super().__init__(message)
        self.code = code
        self.fields = fields

    def as_json(self) -> dict:
        """Return the refusal as it stands in a json answer."""
        error = {"code": self.code, "message": str(self), **self.fields}
        return {"ok": False, "error": error}


# --- workers and Pi --------------------------------------------------------------------------


class WorkerError(PiTelegramError):
    """A worker or its Pi cannot do what was asked."""


class LaunchFailed(WorkerError):
    """A process could not be started.

    @ivar permanent: true when trying again without a change cannot help.
    """

    def __init__(self, message: str, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class PiRefused(WorkerError):
    """Pi answered a command with C{success:false}; the message is Pi's own, redacted."""


class PiCancelled(WorkerError):
    """Pi answered C{success:true} with C{cancelled:true}: nothing was done."""


class PiGone(WorkerError):
    """Pi ended, or its answer did not come: the outcome is unknown."""


class VoiceFailed(WorkerError):
    """No program or provider could speak a text; C{str()} says which were tried, for the log."""


class ToolRefused(WorkerError):
    """A tool of the agent was not carried out; C{str()} tells the agent why, first a line break."""

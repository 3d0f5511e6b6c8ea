"""A Pi that can be talked to, whatever carries it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface


class IPiHost(Interface):
    """One running Pi (C{pi.rpc.RpcPiHost}, C{testing.pihost.FakePiHost}).

    The rules of Pi's RPC mode are kept here, not by callers: one C{prompt} in flight (a second call
    waits for the first's response), always with C{streamingBehavior}, arguments validated before
    they are sent, C{get_state} after everything that changes session or model.
    """

    pid = Attribute("Pi's process id, None when it is not ours.")
    birth = Attribute("Birth id of that process, None when it is not ours.")
    state = Attribute(
        "Last known state, a copy: get_state's data, C{isStreaming} etc. kept current by events, and"
        ' C{queue}: C{{"steering": [text], "followUp": [text]}} as Pi last reported it.'
    )

    def start() -> Deferred[dict[str, Any]]:
        """Start Pi; fires with the first C{get_state} data (deadline 30 s).

        @raise pitelegram.errors.LaunchFailed: C{permanent} for a missing program or directory and
            for arguments that Pi refuses.
        """

    def prompt(
        rpc_id: str, message: str, lane: str, images: Sequence[dict[str, Any]] = ()
    ) -> Deferred[str]:
        """Hand a message over (C{lane} C{normal}: followUp, C{priority}: steer).

        Fires with Pi's C{disposition}.

        @raise pitelegram.errors.PiRefused: Pi did not take it.
        @raise pitelegram.errors.PiGone: nobody can tell.
        """

    def abort() -> Deferred[dict[str, Any]]:
        """Cancel open dialogs, clear Pi's queue, abort; fires with C{{"steering","followUp"}}."""

    def clear_queue() -> Deferred[dict[str, Any]]: ...

    def get_state() -> Deferred[dict[str, Any]]: ...

    def command(name: str, /, **arguments: Any) -> Deferred[Any]:
        """C{compact}, C{set_model}, C{set_thinking_level}, C{new_session}, C{switch_session}, …

        Only names of the allow-list; C{bash} and all C{set_auto_*}, C{set_*_mode} are refused.
        """

    def answer_dialog(dialog_id: str, answer: dict[str, Any]) -> None:
        """C{{"value"}}, C{{"confirmed"}} or C{{"cancelled": True}}, once."""

    def subscribe(observer: Any) -> None:
        """Add an L{IPiObserver}."""

    def want(kinds: Collection[str]) -> None:
        """Tell observers of C{tools} and C{thinking} from now on, or not: these cost something.

        At first nobody is told of either.
        """

    def close_stdin() -> None: ...

    def stop(grace: float) -> Deferred[str]:
        """Dialogs cancelled, queue cleared, abort, stdin closed, SIGTERM, SIGKILL, sweep.

        Each phase has its share of C{grace} seconds.  Fires with the exit in words once Pi and its
        descendants are proven gone.
        """


class IPiObserver(Interface):
    """Who watches a Pi.  Called in order, never re-entrantly."""

    def run_started() -> None:
        """C{agent_start} of a run (not of a retry within one)."""

    def text_delta(text: str) -> None: ...

    def thinking_delta(text: str) -> None:
        """What the model thinks (only where C{thinking} is wanted)."""

    def user_message(text: str) -> None:
        """C{message_end} with role user: Pi took this message."""

    def assistant_message(message: dict[str, Any]) -> None:
        """C{message_end} with role assistant (C{text}, C{stopReason}, C{errorMessage?}, C{usage?})."""

    def tool_started(call_id: str, name: str, arguments: Any) -> None:
        """A tool runs (only where C{tools} are wanted, as with the next two).

        Of what is large, arguments and results hold only the beginning.
        """

    def tool_updated(call_id: str, name: str, result: Any) -> None:
        """What a tool has given so far, as a result."""

    def tool_ended(call_id: str, name: str, result: Any, failed: bool) -> None:
        """A tool is done; results have C{content} (L{pitelegram.pi.observing.result_text})."""

    def retrying(retry: Any) -> None:
        """The model failed and is asked again (L{pitelegram.pi.observing.Retry})."""

    def retried(succeeded: bool, reason: str) -> None:
        """Retries are over; C{reason} is the last failure when they failed."""

    def compaction(step: Any) -> None:
        """A compaction begins or ends (L{pitelegram.pi.observing.CompactionStep})."""

    def settled(aborted: bool) -> None:
        """C{agent_settled}: the only "done"."""

    def state_changed(state: dict[str, Any]) -> None: ...

    def dialog_requested(request: dict[str, Any]) -> None:
        """An C{extension_ui_request}: C{select}, C{confirm}, C{input}, C{editor} wait for
        C{IPiHost.answer_dialog}; C{notify} does not.  A malformed one was cancelled already.
        """

    def ended(reason: str) -> None:
        """The Pi process is gone (C{processExited})."""

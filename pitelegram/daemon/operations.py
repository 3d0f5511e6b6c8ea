"""Actions of control commands that are operations of a worker's control port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pitelegram.errors import Refusal
from pitelegram.pi.port import IWorkerControlPort

Operation = Callable[[IWorkerControlPort, str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Gets the port, the request id and the action's checked arguments."""


async def _answer(
    port: IWorkerControlPort, request_id: str, args: dict[str, Any]
) -> dict[str, Any]:
    ref = args["dialog_ref"]
    if "cancel" in args:
        answer: dict[str, Any] = {"cancelled": True}
    elif "confirm" in args:
        answer = {"confirmed": args["confirm"]}
    elif "text" in args:
        answer = {"value": args["text"]}
    else:
        answer = {"value": await _option(port, ref, args["option"])}
    result: dict[str, Any] = await port.answer(request_id, ref, answer)
    return result


async def _option(port: IWorkerControlPort, ref: str, option: str | int) -> str:
    """The text of an option that is named by its text or its number."""
    state: dict[str, Any] = await port.get_state()
    found = [each for each in state.get("dialogs", ()) if each.get("dialogRef") == ref]
    options = found[0].get("options", []) if found else []
    if isinstance(option, int):
        if not found:
            raise Refusal("decision_not_pending", "that question is not open any more")
        if option >= len(options):
            raise Refusal("invalid_selection", "that question has no option of that number")
        return str(options[option])
    if found and option not in options:
        raise Refusal("invalid_selection", "that question has no such option")
    return option


OPERATIONS: dict[str, Operation] = {
    "worker.prompt": lambda port, id_, args: port.prompt(id_, args["text"]),
    "worker.steer": lambda port, id_, args: port.steer(id_, args["text"]),
    "worker.abort": lambda port, id_, args: port.abort(id_),
    "worker.clear_queue": lambda port, id_, args: port.clear_queue(id_),
    "worker.compact": lambda port, id_, args: port.compact(id_, args.get("instructions")),
    "worker.set_model": lambda port, id_, args: port.set_model(
        id_, args["provider"], args["model"]
    ),
    "worker.set_thinking_level": lambda port, id_, args: port.set_thinking_level(
        id_, args["level"]
    ),
    "worker.new_session": lambda port, id_, args: port.new_session(id_),
    "worker.switch_session": lambda port, id_, args: port.switch_session(id_, args["path"]),
    "worker.answer": _answer,
    "worker.get_state": lambda port, id_, args: port.get_state(),
}
"""C{worker.switch_session} gets the checked C{path} of its C{session_ref} beside it."""

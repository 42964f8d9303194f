"""The machine's `Send` -> the next `Request`, and the body in which one server wants it. Pure.

Stands above both the machine and the wire formats, which do not know each other. What a server or a model refuses is
read from its profile: a prefill that it would answer with an error is never asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loop_core.errors import CallerError
from loop_core.history import LATE_SYSTEM, Ability
from loop_core.seam import Method
from loop_core.turn import Send, Turn
from loop_core.values import Request
from loop_core.wire import wire
from loop_core.wire.profile import Prefill, Profile

CONTINUES: Mapping[str, frozenset[Prefill]] = {
    "openai_chat": frozenset(Prefill) - {Prefill.NONE},
    "anthropic_messages": frozenset({Prefill.PLAIN}),
    "bedrock_converse": frozenset({Prefill.PLAIN}),
}
"""Format -> the ways of continuing a last assistant message that can be asked for in it. The others begin an answer
anew (continuation notes, part B)."""

MARKS: Mapping[Prefill, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    Prefill.PREFIX: ({"prefix": True}, {}),
    Prefill.PARTIAL: ({"partial": True}, {}),
    Prefill.CONTINUE_FINAL_MESSAGE: ({}, {"continue_final_message": True, "add_generation_prompt": False}),
}
"""How a prefill is told from a finished message: fields of the message, and of the body."""


def ability(profile: Profile, api: str) -> Ability:
    """What a server allows in a format, as far as continuing goes; `profile` is resolved for the model."""
    continues = profile.prefill in CONTINUES.get(api, ())
    return Ability(prefill=continues, echoes=profile.echoes, system_hint=api in LATE_SYSTEM)


def outgoing(turn: Turn, send: Send) -> Request:
    """The request that this effect asks for: the history so far, and what it adds.

    Raises:
        CallerError: a continuation token is asked for and the last response brought none.
    """
    changes: dict[str, Any] = {}
    if send.method is Method.TOKEN:
        token = turn.evaluated.response.continuation_token if turn.evaluated else None
        if token is None:
            raise CallerError("a continuation token is to be sent, and the last response brought none")
        changes["previous_id"] = token
    return replace(
        turn.request,
        messages=(*turn.history, *send.added),
        max_tokens=send.max_tokens,
        tool_choice=send.tool_choice,
        **changes,
    )


def body_of(request: Request, profile: Profile, method: Method = Method.FIRST) -> dict[str, Any]:
    """The body of a request as this server wants it spelled.

    Raises:
        EncodeError: the format cannot carry the request.
    """
    body = wire(request.api).encode_request(request)
    if request.api == "openai_chat":
        if profile.cap_field is not None and "max_tokens" in body:
            body = {profile.cap_field if name == "max_tokens" else name: value for name, value in body.items()}
        if request.stream and profile.stream_usage:
            body.setdefault("stream_options", {"include_usage": True})  # without it a stream has no token counts
        if method is Method.PREFILL:
            message, beside = MARKS.get(profile.prefill, ({}, {}))
            body["messages"][-1] |= message
            body |= beside
    return body


def reduced(request: Request) -> Request:
    """The request with tools whose schemas the provider takes; they then allow more than the tools do."""
    return replace(request, tools=tuple(wire(request.api).reduced(tool) for tool in request.tools))

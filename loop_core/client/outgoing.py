"""Builds requests: the machine's `Send` -> the next `Request` -> the HTTP request for one server. Pure.

This module connects the machine and the wire formats, which do not depend on each other. A profile says what a server
or a model refuses, so a prefill that it would answer with an error is never sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loop_core.client import address
from loop_core.client.address import Server
from loop_core.errors import CallerError, EncodeError, check_kinds, foreign
from loop_core.formats import format_entry
from loop_core.turn.continuation import Method
from loop_core.turn.history import Ability, tool_message, tool_result
from loop_core.turn.state import RequestPlace, Send, Turn
from loop_core.values import ChatResponse, Message, Request, Role, TextPart
from loop_core.wire import check_message, decode_request, encode_request, wire
from loop_core.wire.body import dump
from loop_core.wire.format import Prefill, Profile

Messages = Sequence[Message | Mapping[str, Any]]
"""A history: messages, or chat messages as JSON with `role` and `content`."""
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})

MARKS: Mapping[Prefill, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    Prefill.PREFIX: ({"prefix": True}, {}),  # Mistral, DeepSeek (DeepSeek API docs, Chat Prefix Completion)
    Prefill.PARTIAL: ({"partial": True}, {}),  # Moonshot, DashScope
    Prefill.CONTINUE_FINAL_MESSAGE: ({}, {"continue_final_message": True, "add_generation_prompt": False}),  # vLLM
}
"""Kind of prefill -> the fields that mark the last message as a prefill: fields of that message, and fields of the
body."""

SIGNATURE_PROFILES = frozenset({
    "gemini", "vertex", "github_copilot", "openrouter", "vercel_gateway", "litellm", "portkey", "generic",
})
"""The profiles of Gemini's servers, and of servers that may route to Gemini. Other servers issue no thought signatures
of calls, so a history that is sent to them has none."""


def ability(profile: Profile, api: str) -> Ability:
    """Which methods of continuation a server supports in a format; `profile` is resolved for the model."""
    form = wire(api)
    return Ability(profile.prefill in form.prefills, profile.echoes, format_entry(api).late_system)


ON_TOP: frozenset[Method] = frozenset({Method.HINT, Method.ANCHOR, Method.AGAIN, Method.REPAIR})
"""The methods that continue from the last response. The others repeat the request that it answered, or finish it."""


def is_chained(request: Request) -> bool:
    """Whether the server stores the history of the request, so that the next request continues from its response."""
    return wire(request.api).chained(request)


def keeps_conversation(request: Request) -> bool:
    """Whether the server keeps the whole conversation under an id that the request names."""
    return is_chained(request) and request.extra.get("conversation") is not None


def request_for(turn: Turn, send: Send) -> Request:
    """Returns the request for a `Send` effect: the history so far and the new messages. If the server stores the
    history, the request names the last response by its id and holds only new messages. Raises `CallerError` if a
    continuation token or the last response's id is needed, and there is no usable one."""
    last = turn.evaluation.response if turn.evaluation is not None else None
    chained = is_chained(turn.request)
    changes = _from_last(turn, send, last) if last is not None and chained else {}
    if send.method is Method.TOKEN:
        if last is None or last.continuation_token is None:
            raise CallerError("a continuation token is to be sent, but the last response held none")
        changes["continuation_token"] = last.continuation_token
        if chained and turn.request.extra.get("store") is not False:
            changes |= {"previous_id": last.id, "messages": _leading_system(turn)}
    changes.setdefault("messages", (*turn.history, *send.new_messages))
    changes["extra"] = _with_container(turn)
    return replace(turn.request, max_tokens=send.max_tokens, tool_choice=send.tool_choice, **changes)


def _with_container(turn: Turn) -> Mapping[str, Any]:
    """Further fields of the request, with the container that the last response names, unless the caller names one."""
    extra, places = turn.request.extra, wire(turn.request.api).container
    if places is None or turn.evaluation is None:
        return extra
    word, name = places
    container, asked = turn.evaluation.response.native.get(word), extra.get(name)
    if container is None or not (asked is None or isinstance(asked, Mapping)):
        return extra
    # An object also holds skills; it has an id only if the caller chose a container.
    return {**extra, name: container if asked is None else {**asked, "id": asked.get("id") or container}}


def _from_last(turn: Turn, send: Send, last: ChatResponse) -> dict[str, Any]:
    """The changed fields of a request after the first of a chain; none if the request starts from the beginning of the
    turn. Raises `CallerError` if the request cannot continue from the last response."""
    on_top = send.method in ON_TOP
    results = send.place is RequestPlace.REQUEST and send.ordinal > 0
    conversation = keeps_conversation(turn.request)
    if not on_top and not results:
        if conversation and send.method is not Method.POLL:
            raise CallerError("the server keeps this conversation and would get the same request twice")
        return {}
    changes: dict[str, Any] = {}
    if not conversation:
        if turn.request.extra.get("store") is False:
            if results:
                return {}  # the calls and their results are sent in the history of the turn
            raise CallerError("the request is of a chain whose responses are not stored (store: false), so nothing can "
                              "go on from the last one")
        if last.id is None:
            raise CallerError("the history is kept by the server, but the last response has no id to continue from")
        changes["previous_id"] = last.id
    results_of_calls = _refused_results(turn) if on_top else ()
    changes["messages"] = (*_leading_system(turn), *results_of_calls, *_new_messages(turn, send))
    return changes


def _leading_system(turn: Turn) -> tuple[Message, ...]:
    """The system message at the beginning of the history, if there is one. No server stores it."""
    # Instructions of an earlier response do not carry over (OpenAI API reference, previous_response_id).
    first = turn.request.messages[:1]
    return first if first and first[0].role is Role.SYSTEM else ()


def _new_messages(turn: Turn, send: Send) -> tuple[Message, ...]:
    """The messages that the server does not have yet, added after its last answer."""
    if send.method in ON_TOP:
        return tuple(message for message in send.new_messages if message.role is not Role.ASSISTANT)
    history = (*turn.history, *send.new_messages)
    last = max((at for at, message in enumerate(history) if message.role is Role.ASSISTANT), default=-1)
    return history[last + 1 :]


def _refused_results(turn: Turn) -> tuple[Message, ...]:
    """A result for every call of the last response: the server has these calls in its history, and refuses a call
    without a result."""
    verdicts = turn.evaluation.verdicts if turn.evaluation is not None else ()
    parts = tuple(tool_result(v.call, f"Not run: {v.why}", is_error=True) for v in verdicts if v.call.id)
    return (tool_message(parts),) if parts else ()


def body_of(request: Request, profile: Profile, method: Method = Method.FIRST) -> dict[str, Any]:
    """The body of a request in this server's spelling. Raises `EncodeError` if the format cannot carry the request."""
    form = wire(request.api)
    body = encode_request(request.api, request)
    if form.body_marks:
        if profile.cap_field is not None and "max_tokens" in body:
            body = {profile.cap_field if name == "max_tokens" else name: value for name, value in body.items()}
        if request.stream and profile.stream_usage:
            body.setdefault("stream_options", {"include_usage": True})  # without it a stream has no token counts
        if profile.name not in SIGNATURE_PROFILES:
            for call in (call for message in body["messages"] for call in message.get("tool_calls", ())):
                call.pop("extra_content", None)
        if method is Method.PREFILL:
            message, beside = MARKS.get(profile.prefill, ({}, {}))
            body["messages"][-1] |= message
            body |= beside
    return body


def with_reduced_tools(request: Request) -> Request:
    """The request with tool schemas that the provider accepts; they allow more than the tools' own schemas do."""
    return replace(request, tools=tuple(wire(request.api).reduced(tool) for tool in request.tools))


def messages_of(prompt: str | Messages) -> tuple[Message, ...]:
    """A prompt as messages; a plain text becomes a message of the user. Raises `CallerError` if the prompt is neither a
    text nor messages, is empty, or holds something that is not a message."""
    if isinstance(prompt, (Message, Mapping)):
        raise CallerError("prompt: expected a text, or a list of messages, not one message")
    if not isinstance(prompt, (str, Iterable)) or isinstance(prompt, bytes):
        raise CallerError(f"prompt: expected a text, or a list of messages, not {type(prompt).__name__}")
    raw_messages = [Message(Role.USER, (TextPart(prompt),))] if isinstance(prompt, str) else list(prompt)
    messages = tuple(check_message(each) if isinstance(each, Message) else _message(each) for each in raw_messages)
    if not messages or not all(message.parts for message in messages) or prompt == "":
        raise CallerError("prompt: there is nothing to send: expected a text, or messages that have content")
    return messages


def _message(value: Any) -> Message:
    if not isinstance(value, Mapping):
        raise CallerError(f"not a message: expected {{'role': …, 'content': …}}, not {type(value).__name__}")
    role = value.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise CallerError(f"not a message: expected a role that is one of {', '.join(sorted(ROLES))}, not {role!r:.40}")
    try:
        (message,) = decode_request("openai_chat", {"messages": [value]}).messages
    except (TypeError, ValueError, RecursionError):
        raise CallerError("not a message: its content is not JSON") from None
    return message


# -- the HTTP request ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """One HTTP request, without its credential."""

    number: int
    """The number of the request, counted from 0 over everything that a run sends, retries included."""
    request: Request
    place: RequestPlace
    ordinal: int
    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: Mapping[str, Any] | None
    profile: str | None
    """The name of the profile that the operator named; None if the address or the answer shows it."""
    attempt: int = 0
    """The number of times that the same request was sent before."""
    repeats: int | None = None
    """The number of the request that this one sends again; None for a first attempt."""


def known_ability(server: Server, request: Request) -> tuple[Ability, str]:
    """Which methods of continuation a server supports for a request's model, and the server's profile."""
    profile = address.expected_profile(server, request.model).profile
    return ability(profile, server.api), profile.name


def live_request_for(server: Server, send: Send, turn: Turn, number: int) -> LiveRequest:
    """The HTTP request for an effect of a turn, as it would be sent now. Raises `LoopError` if it cannot be sent in
    this format."""
    request = request_for(turn, send)
    if send.method is Method.POLL:
        polled = turn.evaluation.response.id if turn.evaluation else None
        if not polled:
            raise CallerError("a response is to be fetched again, but it has no id")
        request = replace(request, previous_id=polled, stream=False)  # polling returns one JSON body
    return live_request(server, request, send, number)


def live_request(server: Server, request: Request, send: Send, number: int) -> LiveRequest:
    """The HTTP request for a `Request`. Raises `EncodeError` if the format cannot carry it."""
    chosen = address.expected_profile(server, request.model)
    polled = send.method is Method.POLL
    url = address.public_url(_url(server, request, polled))
    return LiveRequest(
        number, request, send.place, send.ordinal, "GET" if polled else "POST", url,
        (*address.headers_of(server, request.stream), *address.masked_auth_header(server, chosen.profile.name)),
        None if polled else body_of(request, chosen.profile, send.method),
        server.profile,
    )


def _url(server: Server, request: Request, polled: bool) -> str:
    path = wire(server.api).path(request)
    return address.url_of(server, f"{path}/{request.previous_id}" if polled else path)


@dataclass(frozen=True, slots=True, repr=False)
class HttpRequest:
    """One HTTP request with its credential, for the code that sends it; it must never be shown."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    content: bytes
    request: Request
    """The request in the engine's form; `read` takes it together with the answer."""


def with_credentials(server: Server, request: LiveRequest) -> HttpRequest:
    """The request with its key or signature; no other function adds them. Raises `LoopError` if the request holds a
    value that JSON cannot express, or there is nothing to sign with."""
    profile = address.expected_profile(server, request.request.model).profile.name
    auth_names = {name for name, _ in address.masked_auth_header(server, profile)}
    headers = [(name, value) for name, value in request.headers if name not in auth_names]
    headers += address.key_header(server, profile)
    url = _url(server, request.request, request.method == "GET")
    content = b"" if request.body is None else _content(request)
    if server.sign is not None:
        with foreign("sign"):
            headers += server.sign(request.method, url, tuple(headers), content)
    return HttpRequest(request.method, url, tuple(headers), content, request.request)


def _content(request: LiveRequest) -> bytes:
    """The bytes of the body. Raises `EncodeError` if the body holds a value that JSON cannot express."""
    try:
        content = dump(request.body).encode()
        if b"NaN" in content or b"Infinity" in content:  # in a string, or as a number that a provider would refuse
            json.loads(content, parse_constant=_refused_constant)
    except (TypeError, ValueError, RecursionError) as why:
        reason = "it is nested too deeply or holds itself" if isinstance(why, RecursionError) else str(why)
        raise EncodeError(f"the request cannot be written as JSON: {reason}", api=request.request.api) from None
    return content


def _refused_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


def http_request(server: Server, turn: Turn, send: Send) -> HttpRequest:
    """Returns the HTTP request for an effect of a turn, for the caller's own transport.

    Raises:
        LoopError: an argument has the wrong type, the request cannot be sent in this format, or a key would leave as
            plain text.
    """
    check_kinds(("server", server, Server), ("turn", turn, Turn), ("send", send, Send))
    address.refuse_plain_http(server)
    return with_credentials(server, live_request_for(server, send, turn, 0))

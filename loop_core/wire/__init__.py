"""The wire formats: what each provider's bytes mean, and the bytes each would send.

One package a format, one line here. A format gives what `WireFormat` lists, and in its module `reads` what it reads
where. They are imported when first used, so that reading one format does not pay for six.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from loop_core.errors import CallerError, DecodeError, EncodeError
from loop_core.fastjson import from_json
from loop_core.frozen import replace
from loop_core.values import ChatResponse, Request, Tool, TransportEnd
from loop_core.wire.base import Decoder, Mapped, Pieces, See
from loop_core.wire.reads import Row

FORMATS: Mapping[str, str] = {
    "openai_chat": "loop_core.wire.openai_chat",
    "openai_responses": "loop_core.wire.openai_responses",
    "anthropic_messages": "loop_core.wire.anthropic_messages",
    "gemini_generate": "loop_core.wire.gemini_generate",
    "bedrock_converse": "loop_core.wire.bedrock_converse",
    "ollama_chat": "loop_core.wire.ollama_chat",
}


class WireFormat(Protocol):
    """What a format's package offers; the conformance suite runs over every entry of `FORMATS`."""

    Decoder: type[Decoder]
    STOP_REASONS: Mapping[str, Mapped]
    """Native word -> mapped reason."""
    LOSES: Mapping[str, str]
    """What the format cannot carry -> why; `encode` refuses the first kind and `essence` leaves out the second."""
    PATHS: Sequence[re.Pattern[str]]
    """URL paths that this format is served under."""

    def deltas(self, pieces: Pieces) -> See:
        """What keeps the pieces of output that each JSON value of a stream carries."""

    def encode(self, response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
        """The bytes that this provider would send; `chunk` is the text characters in one delta."""

    def read_request(self, body: Mapping[str, Any], url: str = "") -> Request:
        """What a recorded request body asks for."""

    ASKING_LOSES: Mapping[str, str]
    """What a request loses when it is encoded -> why."""

    def encode_request(self, request: Request) -> dict[str, Any]:
        """The body that this provider expects for a request; what it cannot carry is an `EncodeError`."""

    def reduced(self, tool: Tool) -> Tool:
        """The tool with a schema that this provider takes; what cannot be said is left out, so that it allows more."""

    def path(self, request: Request) -> str:
        """Where the request goes, below the version of the API."""

    def recognises(self, value: Mapping[str, Any], event: str | None = None) -> bool:
        """Whether a JSON value (a whole body, or one event of a stream) is of this format."""


@cache
def wire(api: str) -> WireFormat:
    """The format with this id.

    Raises:
        CallerError: there is none.
    """
    if api not in FORMATS:
        raise CallerError(f"unknown API {api!r}; expected one of {', '.join(FORMATS)}")
    return cast("WireFormat", import_module(FORMATS[api]))


@cache
def reads_of(api: str) -> tuple[Row, ...]:
    """Which values of a format's JSON become which facts.

    Raises:
        CallerError: there is no such format.
    """
    wire(api)
    return cast("tuple[Row, ...]", import_module(f"{FORMATS[api]}.reads").READS)


def decoder(
    api: str,
    *,
    http_status: int | None = None,
    headers: Sequence[tuple[str, str]] = (),
    n: int = 1,
    background: bool = False,
    words: Mapping[str, Mapped] | None = None,
) -> Decoder:
    """A decoder of one response: `feed` it bytes as they come, `close` it for the `ChatResponse`.

    Raises:
        CallerError: there is no such API.
    """
    return wire(api).Decoder(http_status=http_status, headers=headers, n=n, background=background, words=words)


def decode_response(
    api: str,
    chunks: Iterable[bytes] | bytes,
    *,
    http_status: int | None = None,
    headers: Sequence[tuple[str, str]] = (),
    n: int = 1,
    background: bool = False,
    words: Mapping[str, Mapped] | None = None,
    end: TransportEnd = TransportEnd.EOF,
) -> ChatResponse:
    """Reads one response, whole or in chunks of any size; `words` are a profile's own stop words.

    Raises:
        CallerError: there is no such API.
        DecodeError: the bytes are no body of it.
    """
    reading = decoder(api, http_status=http_status, headers=headers, n=n, background=background, words=words)
    for data in (chunks,) if isinstance(chunks, bytes) else chunks:
        reading.feed(data)
    return reading.close(end)


decode = decode_response
"""The old name of `decode_response`, for one release."""


def encode_response(api: str, response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The bytes that a provider of this format would send: one piece, or with `stream` one for each event, with
    `chunk` characters of text in each. The response may have been read in another format.

    Raises:
        CallerError: there is no such API.
        EncodeError: the response holds what the format cannot carry; `what` names it.
    """
    return wire(api).encode(response, stream=stream, chunk=chunk)


def decode_request(api: str, body: Mapping[str, Any] | bytes, *, url: str = "") -> Request:
    """What the body of a request asks for; `body` is JSON, parsed or as bytes. Some formats say the model in the URL.

    Raises:
        CallerError: there is no such API.
        DecodeError: the bytes are no JSON object.
    """
    value = _object(api, body) if isinstance(body, bytes) else body
    return wire(api).read_request(value, url)


def _object(api: str, body: bytes) -> Mapping[str, Any]:
    try:
        value = from_json(body.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as why:
        raise DecodeError(f"the body is no JSON ({str(why)[:120]})", api=api, expected="a JSON object") from None
    if not isinstance(value, dict):
        raise DecodeError("the body is no JSON object", api=api, expected="`{`")
    return value


def encode_request(api: str, request: Request) -> dict[str, Any]:
    """The body that a provider of this format expects. A request of another format is carried over, unless it holds
    fields that only its own provider knows (`Request.extra`, `Tool.declared`).

    Raises:
        CallerError: there is no such API.
        EncodeError: the format cannot carry the request; `what` names it.
    """
    form = wire(api)
    if request.api != api:
        own = "extra" if request.extra else "tool.declared" if any(tool.declared for tool in request.tools) else ""
        if own:
            raise EncodeError(f"the request holds fields of {request.api} as they were sent", api=api, what=own)
        request = replace(request, api=api)
    return form.encode_request(request)


def following(api: str, headers: Sequence[tuple[str, str]] = ()) -> tuple[Decoder, Pieces]:
    """A decoder to be fed a stream as it comes, and the pieces of output that it fills meanwhile.

    Raises:
        CallerError: there is no such API.
    """
    form, found = wire(api), Pieces()
    decoder_ = form.Decoder(headers=headers)
    decoder_.seeing(form.deltas(found))
    return decoder_, found


def deltas(api: str, body: bytes) -> Pieces:
    """The pieces of output that a recorded stream carries; none where the body is one JSON value.

    What is no text where text should be is among them: whoever joins them must expect it.

    Raises:
        CallerError: there is no such API.
        DecodeError: the bytes are no body of it.
    """
    form, found = wire(api), Pieces()
    form.Decoder().watch(body, form.deltas(found))
    return found

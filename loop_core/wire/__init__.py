"""The wire formats of the providers: decoding and encoding of requests and responses.

Each format is a package (a module if it is small) with a row in the registry (`loop_core.formats`); everything else is
in its `Format`. A format is imported when it is first used, so a program that reads one format does not load the
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, cast

from loop_core.errors import CallerError, DecodeError, EncodeError, check_kinds
from loop_core.formats import FORMATS
from loop_core.json_parser import from_json
from loop_core.values import ChatResponse, Message, OpaquePart, ReasoningPart, Request, Role, Stop, TransportEnd
from loop_core.wire.base import Decoder
from loop_core.wire.failures import StopRow
from loop_core.wire.format import Format
from loop_core.wire.reads import Pieces, piece_observer

__all__ = ["FORMATS", "decode", "decode_request", "decode_response", "decoder", "deltas", "encode_request",
           "encode_response", "stream_reader", "wire"]


_BYTES = bytes, bytearray, memoryview
Headers = Sequence[tuple[str, str]] | Mapping[str, str]


def wire(api: str) -> Format:
    """The format with this id. Raises `CallerError` if there is no format with this id."""
    if not isinstance(api, str) or api not in FORMATS:
        raise CallerError(f"unknown API {api!r}; expected one of {', '.join(FORMATS)}")
    return _format_in(FORMATS[api].package)


@cache
def _format_in(package: str) -> Format:
    return cast("Format", import_module(package).FORMAT)


def decoder(
    api: str,
    *,
    http_status: int | None = None,
    headers: Headers = (),
    n: int = 1,
    background: bool = False,
    words: Mapping[str, StopRow] | None = None,
) -> Decoder:
    """A decoder of one response: `feed` takes bytes as they arrive, and `close` returns the `ChatResponse`.

    Raises:
        CallerError: there is no such API, or an argument has the wrong type.
    """
    check_kinds(("http_status", 0 if http_status is None else http_status, int))
    return wire(api).decoder(http_status=http_status, headers=header_pairs(headers), n=n, background=background,
                             words=words)


def decode_response(
    api: str,
    chunks: Iterable[bytes] | bytes,
    *,
    http_status: int | None = None,
    headers: Headers = (),
    n: int = 1,
    background: bool = False,
    words: Mapping[str, StopRow] | None = None,
    end: TransportEnd = TransportEnd.EOF,
) -> ChatResponse:
    """Decodes one response, from a whole body or from chunks of any size; `words` are a profile's own stop words.

    Raises:
        CallerError: there is no such API, the body is text instead of bytes, or another argument has the wrong type.
        DecodeError: the bytes are not a body of it.
    """
    check_kinds(("end", end, TransportEnd))
    reading = decoder(api, http_status=http_status, headers=headers, n=n, background=background, words=words)
    for data in pieces_of(chunks):
        reading.feed(data)
    return reading.close(end)


def pieces_of(chunks: Iterable[bytes] | bytes) -> Iterator[bytes]:
    """The pieces of a body. Raises `CallerError` if they are not bytes."""
    several = isinstance(chunks, Iterable) and not isinstance(chunks, (*_BYTES, str))
    for data in chunks if several else (chunks,):
        if not isinstance(data, _BYTES):  # such as text, which a client decoded with an encoding of its own
            raise CallerError("the body: expected bytes, or an iterable of bytes, as they came (not text)")
        yield bytes(data)


def header_pairs(headers: Headers) -> Sequence[tuple[str, str]]:
    """The headers as pairs. Raises `CallerError` if they are neither pairs of texts nor a mapping."""
    rows = headers.items() if isinstance(headers, Mapping) else headers
    with suppress(TypeError, ValueError):
        pairs = tuple([(name, value) for name, value in rows])
        if all(isinstance(word, str) for pair in pairs for word in pair):  # not bytes, as some servers have them
            return pairs
    raise CallerError("headers: expected pairs of a name and a value, or a mapping, of texts")


decode = decode_response
"""Deprecated name of `decode_response`, kept for one release."""


def encode_response(api: str, response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """Yields the bytes that a provider of this format would send for a response: one element, or with `stream` one for
    each event, with `chunk` characters of text in each. The response may have been read in another format: then its
    stop word becomes one with the same meaning; without such a one, the answer never looks finished.

    Raises:
        CallerError: there is no such API, or the response is not a `ChatResponse`.
        EncodeError: the response holds what the format cannot carry; `what` names it.
    """
    form = wire(api)
    check_kinds(("response", response, ChatResponse))
    return form.encode(_in_words_of(form, response), stream=stream, chunk=chunk)


def _in_words_of(form: Format, response: ChatResponse) -> ChatResponse:
    """The response with a stop word of this format, if it was read in another one."""
    stop = response.stop_reason
    if response.api == form.id or not stop.raw:
        return response
    # Some formats have one word for the end of a turn and for calls. Without the calls it would only say the former.
    calls = stop.normalized is Stop.TOOL_CALL and response.tool_calls and not form.no_tools
    means = (stop.normalized, Stop.END_TURN) if calls else (stop.normalized,)
    rows = [(word, row) for mean in means for word, row in form.stop_reasons.items() if row.stop is mean]
    # One with the same detail, else the first, which is the provider's usual word. Never another meaning.
    foreign = None if stop.raw in form.stop_reasons else stop.raw
    word, row = min(rows, key=lambda each: each[1].detail != stop.detail, default=(foreign, None))
    return replace(response, stop_reason=stop._replace(raw=word, detail=row.detail if row else stop.detail))


def decode_request(api: str, body: Mapping[str, Any] | bytes, *, url: str = "") -> Request:
    """Decodes the body of a request; `body` is JSON, parsed or as bytes. Some formats name the model in the URL.
    A field with a value that the format does not allow is left out, because recordings may hold anything.

    Raises:
        CallerError: there is no such API, or the body is neither bytes nor an object.
        DecodeError: the bytes are not a JSON object.
    """
    value = _object(api, body) if isinstance(body, bytes) else body
    if not isinstance(value, Mapping):
        raise CallerError(f"the body: expected JSON that is parsed, or as bytes, not {type(value).__name__}")
    request = wire(api).read_request(value, url)
    return replace(request, messages=tuple([_with_api(message, api) for message in request.messages]))


def _with_api(message: Message, api: str) -> Message:
    return message._replace(api=api) if any(type(part) is ReasoningPart for part in message.parts) else message


def _object(api: str, body: bytes) -> Mapping[str, Any]:
    try:
        # a byte order mark, which JSON does not permit (RFC 8259 section 8.1)
        value = from_json(body.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as why:
        raise DecodeError(f"the body is not JSON ({str(why)[:120]})", api=api, expected="a JSON object") from None
    if not isinstance(value, dict):
        raise DecodeError("the body is not a JSON object", api=api, expected="`{`")
    return value


def encode_request(api: str, request: Request) -> dict[str, Any]:
    """The body of a request in this format. A request of another format is converted, unless it holds what only its own
    provider knows: fields (`Request.extra`, `Tool.declaration`), or blocks such as images (`OpaquePart`). Reasoning of
    another format is left out.

    Raises:
        CallerError: there is no such API, the request is not a `Request`, or one of its messages not a `Message`.
        EncodeError: the format cannot carry the request; `what` names it.
    """
    form = wire(api)
    check_kinds(("request", request, Request))
    for message in request.messages:
        check_message(message)
    if request.api != api:
        own = ("extra" if request.extra else "tool.declared" if any(tool.declaration for tool in request.tools)
               else "opaque" if any(map(_is_verbatim, request.messages)) else "")
        if own:
            held = "blocks" if own == "opaque" else "fields"
            raise EncodeError(f"the request holds {held} of {request.api} as they were sent", api=api, what=own)
    return form.encode_request(replace(request, api=api, messages=tuple(_without_foreign_reasoning(request, form))))


def check_message(message: Message) -> Message:
    """Returns the message. Raises `CallerError` if it is not one, or if its role or a part is a plain text."""
    if not isinstance(message, Message) or not isinstance(message.role, Role) or any(
            isinstance(part, str) for part in message.parts):
        raise CallerError("not a message: a Message has a Role and parts; only a prompt may be a list of plain "
                          "{'role': 'user', 'content': '…'}")
    return message


def _is_verbatim(message: Message) -> bool:
    return any(type(part) is OpaquePart for part in message.parts) or any(part.json for part in message.results)


def _without_foreign_reasoning(request: Request, form: Format) -> Iterator[Message]:
    # A provider refuses thinking that it did not sign, and cannot read encrypted thinking of others.
    for message in request.messages:
        if message.api in (None, form.id, *form.signed_alike):
            yield message
        elif parts := tuple([part for part in message.parts if type(part) is not ReasoningPart]):
            yield message._replace(parts=parts)


def stream_reader(api: str, headers: Sequence[tuple[str, str]] = ()) -> tuple[Decoder, Pieces]:
    """A decoder for a stream that is still arriving, and the pieces of output that it fills. Raises `CallerError` if
    there is no such API."""
    form, found = wire(api), Pieces([], [], [])
    reading = form.decoder(headers=headers)
    reading.seeing(piece_observer(form.stream_reads, found))
    return reading, found


def deltas(api: str, body: bytes) -> Pieces:
    """The pieces of output that a recorded stream carries; none if the body is one JSON value. Raises `CallerError` if
    there is no such API; `DecodeError` if the bytes are not a body of it."""
    form, found = wire(api), Pieces([], [], [])
    form.decoder().watch(body, piece_observer(form.stream_reads, found))
    return found

"""Anthropic's legacy text completions, `POST /v1/complete`: one prompt, one text, no token counts.

A stream consists of server-sent events, each of which is a whole completion with the next piece of the text; the last
event holds the stop reason. Source: the anthropic SDK 0.125.0 (types/completion.py, resources/completions.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import ChatResponse, Message, OpaquePart, Request, Role, Severity, Stop, TextPart
from loop_core.wire import asking, base
from loop_core.wire.body import dump, merge, misfits, non_null, pieces, rest, sse_event, token_count, word
from loop_core.wire.failures import StopRow, read_error
from loop_core.wire.format import VERSION, Format, Home, Prefill
from loop_core.wire.reads import FactRow

API = "anthropic_complete"
NO_TOOLS = "a completion has neither tools nor calls"

_SDK = "anthropic 0.125.0 types/completion.py"

STOP_REASONS: Mapping[str, StopRow] = {
    "stop_sequence": StopRow(Stop.END_TURN, "own_end", _SDK),
    "max_tokens": StopRow(Stop.MAX_TOKENS, None, _SDK),
}
"""Native word -> mapped reason. `stop_sequence` is also the word of an answer that the model ended itself, at the
human's turn."""

LOSES: Mapping[str, str] = {
    "usage": "tokens are not counted",
    **dict.fromkeys(("call", "server", "reasoning", "refusal", "text.phase"), "a completion is text"),
}

PATHS: tuple[re.Pattern[str], ...] = (re.compile(r"/v1/complete/?(?=$|[?#])"),)

STREAM_READS: tuple[FactRow, ...] = (FactRow("text", "/completion"),)
READS: tuple[FactRow, ...] = (
    FactRow("id", "/id"),
    FactRow("model", "/model"),
    FactRow("native.stop", "/stop"),
    *STREAM_READS,
)


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON object is a completion or an event of its stream."""
    return (event in (None, "completion") and value.get("type") == "completion"
            and isinstance(value.get("completion"), str))


# -- Bytes, whole or streamed -> `ChatResponse` ----------------------------------------------------------------------

class Decoder(base.Decoder):
    """The decoder of one completion."""

    api = API
    stop_reasons = STOP_REASONS
    closing = (*base.Decoder.closing, b'"stop_reason":"', b'"stop_reason": "')

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._texts: list[str] = []

    def on_event(self, event: Any, name: str | None) -> None:
        """Reads one event: a piece of the text, a ping, or an error."""
        if recognises(event):
            self._read(event)
        elif (error := read_error(event, self.http_status)) is not None:
            self.fail(error, self.at("error"))
        elif event.get("type") != "ping":  # Anthropic sends pings in any stream (Anthropic docs, Streaming)
            self.find(f"{API}.unknown_event", f"an event of type {event.get('type')!r} is not known", self.at())

    def on_body(self, body: Any) -> None:
        """Reads a whole completion or an error (already read by the base class)."""
        if isinstance(body.get("completion"), str):
            self._read(body)
        elif self.error is None:
            self.find(f"{API}.no_completion", "the body is not a completion", self.at(), Severity.ERROR)

    def _read(self, completion: Mapping[str, Any]) -> None:
        if self.raw and word(completion.get("id")) not in (None, self.id):  # another answer in the same bytes
            self.saw_done = True
            self.after_end()
            return
        self._texts.append(completion["completion"])
        self.id = word(completion.get("id")) or self.id
        self.model = word(completion.get("model")) or self.model
        if word(completion.get("stop")):
            self.native["stop"] = completion["stop"]
        if completion.get("stop_reason") is not None:
            self.end_with(str(completion["stop_reason"]), self.at("stop_reason"))

    def build(self) -> ChatResponse:
        """The response, as far as it arrived."""
        text = "".join(self._texts)  # each event holds a piece since version 2023-06-01 (Anthropic docs, Versions)
        return self.response((TextPart(text),) if text else ())


# -- `ChatResponse` -> the bytes that Anthropic would send for it ----------------------------------------------------

def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one item per event when streamed, with `chunk` characters of text in each."""
    for what, why in _losses(response, stream):
        raise EncodeError(why, api=API, what=what)
    error = None if response.error is None else {
        "type": "error", "error": {"type": response.error.type, "message": response.error.message}}
    if not stream:
        yield dump(error or _completion(response, response.text or "", last=True)).encode()
        return
    for piece in pieces(response.text or "", max(1, chunk)):
        yield sse_event(_completion(response, piece, last=False), "completion")
    if response.stop_reason.raw is not None or not (error or response.parts):
        yield sse_event(_completion(response, "", last=True), "completion")
    if error:
        yield sse_event(error, "error")


def _losses(response: ChatResponse, stream: bool) -> Iterator[tuple[str, str]]:
    yield from misfits(response, ("stop",))
    if any(isinstance(part, OpaquePart) for part in response.parts):
        yield "opaque", "a completion is text"
    if response.error is not None and not stream and (response.parts or response.stop_reason.raw):
        yield "error", "a whole completion holds no error"


def _completion(response: ChatResponse, text: str, *, last: bool) -> dict[str, Any]:
    return {"type": "completion", "id": response.id or "", "completion": text,
            "stop_reason": response.stop_reason.raw if last else None, "model": response.model or "",
            "stop": response.native.get("stop") if last else None}


# -- Body of a recorded request -> `Request` -------------------------------------------------------------------------

def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body; the prompt, with its own marks of who speaks, becomes one message of the user.
    """
    prompt = word(body.get("prompt"))
    return Request(
        api=API,
        messages=(Message(Role.USER, (TextPart(prompt),)),) if prompt else (),
        model=word(body.get("model")),
        max_tokens=token_count(body.get("max_tokens_to_sample")),
        stream=body.get("stream") is True,
        extra=rest(body, "model", "max_tokens_to_sample", "stream", *(["prompt"] if prompt else [])),
    )


# -- `Request` -> the body that Anthropic expects --------------------------------------------------------------------

def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request: its texts in one prompt, so that an answer continues the last one."""
    asking.one_choice(request, API)
    asking.no_calls(request, API, NO_TOOLS)
    body = non_null(model=request.model, prompt=asking.prompt_of(request.messages, API) or None,
                    max_tokens_to_sample=request.max_tokens)
    return merge(body | non_null(stream=request.stream or None), request.extra)


FORMAT = Format(
    decoder=Decoder,
    paths=PATHS,
    recognises=recognises,
    reads=READS,
    stream_reads=STREAM_READS,
    read_request=read_request,
    encode=encode,
    loses=LOSES,
    encode_request=encode_request,
    asking_loses=asking.PROMPT_LOSES,
    path=lambda request: "/complete",
    home=Home("https://api.anthropic.com", "/v1", VERSION, "x-api-key", (("anthropic-version", "2023-06-01"),)),
    provider="anthropic",
    history="prompt",
    no_tools=NO_TOOLS,
    prefills=frozenset(Prefill),  # on any server: the text follows directly after its prompt
    played_in="anthropic_messages.serving:COMPLETE_SERVING",
)

"""Bedrock InvokeModel: `POST /model/{id}/invoke`, whose bodies are those of the model's maker.

Claude's bodies are those of Messages and Nova's those of Converse, with the words of these formats. The other makers'
are in AWS's guide to "Inference request parameters and response fields for foundation models".
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote, unquote

from loop_core.errors import EncodeError
from loop_core.json_parser import from_json
from loop_core.values import At, ChatResponse, ExchangePart, Message, Request, Role, Stop, TextPart, Usage
from loop_core.wire import base
from loop_core.wire.anthropic_messages.decode import Decoder as MessagesDecoder
from loop_core.wire.anthropic_messages.encode import encode as encode_message
from loop_core.wire.anthropic_messages.request import ASKING_LOSES as MESSAGES_LOSE
from loop_core.wire.anthropic_messages.request import encode_request as encode_messages
from loop_core.wire.anthropic_messages.request import read_request as read_messages
from loop_core.wire.anthropic_messages.table import LOSES as MESSAGES_LOSES
from loop_core.wire.anthropic_messages.table import READS as MESSAGES_READS
from loop_core.wire.anthropic_messages.table import STOP_REASONS as MESSAGES_WORDS
from loop_core.wire.anthropic_messages.table import STREAM_READS as MESSAGES_STREAM_READS
from loop_core.wire.base import StopRow
from loop_core.wire.bedrock_converse.decode import Decoder as ConverseDecoder
from loop_core.wire.bedrock_converse.encode import encode as encode_error
from loop_core.wire.bedrock_converse.request import encode_request as encode_converse
from loop_core.wire.bedrock_converse.request import read_request as read_converse
from loop_core.wire.bedrock_converse.table import READS as CONVERSE_READS
from loop_core.wire.bedrock_converse.table import STOP_REASONS as CONVERSE_WORDS
from loop_core.wire.bedrock_converse.table import STREAM_READS as CONVERSE_STREAM_READS
from loop_core.wire.body import compact, integer, list_of, mapping_of, rest, string, word
from loop_core.wire.eventstream import CONTENT_TYPE, event_frame
from loop_core.wire.format import ANY_PATH, Format, Home
from loop_core.wire.framing import SSE
from loop_core.wire.openai_chat.choice import GrowingChoice
from loop_core.wire.openai_chat.decode import Decoder as ChatDecoder
from loop_core.wire.openai_chat.request import read_request as read_chat
from loop_core.wire.openai_chat.table import READS as CHAT_READS
from loop_core.wire.reads import FactRow, See

API = "bedrock_invoke"

_LLAMA = "AWS guide, Meta Llama and Mistral AI models: stop_reason"
_TITAN = "AWS guide, Amazon Titan Text models: completionReason"
_COHERE = "AWS guide, Cohere Command models: finish_reason"
_COHERE_R = "cohere 7.3.1 types/finish_reason.py (v1), which Command R writes on Bedrock too"

MAKERS_WORDS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, _LLAMA),
    "length": StopRow(Stop.MAX_TOKENS, None, _LLAMA),
    "tool_calls": StopRow(Stop.TOOL_CALL, None, "AWS guide, Mistral AI chat completion: stop_reason"),
    "FINISH": StopRow(Stop.END_TURN, None, _TITAN),
    "FINISHED": StopRow(Stop.END_TURN, None, _TITAN),
    "LENGTH": StopRow(Stop.MAX_TOKENS, None, _TITAN),
    "STOP_CRITERIA_MET": StopRow(Stop.END_TURN, "stop_sequence", _TITAN),
    "CONTENT_FILTERED": StopRow(Stop.SAFETY_BLOCKED, None, _TITAN),
    "RAG_QUERY_WHEN_RAG_DISABLED": StopRow(Stop.ERROR, "fatal: rag disabled", _TITAN),
    "COMPLETE": StopRow(Stop.END_TURN, None, _COHERE),
    "MAX_TOKENS": StopRow(Stop.MAX_TOKENS, None, _COHERE),
    "ERROR": StopRow(Stop.ERROR, "retryable", _COHERE),
    "ERROR_TOXIC": StopRow(Stop.SAFETY_BLOCKED, None, _COHERE),
    "STOP_SEQUENCE": StopRow(Stop.END_TURN, "stop_sequence", _COHERE_R),
    "ERROR_LIMIT": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _COHERE_R),
    "USER_CANCEL": StopRow(Stop.CANCELLED, None, _COHERE_R),
}
"""The words of Llama, Mistral, Titan and Cohere."""
STOP_REASONS: Mapping[str, StopRow] = {**CONVERSE_WORDS, **MESSAGES_WORDS, **MAKERS_WORDS}

LOSES: Mapping[str, str] = MESSAGES_LOSES

PATHS: tuple[re.Pattern[str], ...] = (
    re.compile(r"/model/(?P<model>(?![^/?#]*embed)[^/?#]+)/invoke(?P<stream>-with-response-stream)?/?(?:$|[?#])"),
)
REASON = "stop_reason"
"""What Mistral calls the finish reason of a choice."""
METRICS = "amazon-bedrock-invocationMetrics"
"""The field of a stream's last chunk with Bedrock's own counts of tokens."""


class TextShape(NamedTuple):
    """A model maker's text answer: where its fields are in a body or in a chunk."""

    holder: str
    """The list whose first item holds text and reason; empty if they stand in the body itself."""
    text: str
    reason: str
    input_tokens: str = ""
    output_tokens: str = ""


TEXTS: tuple[TextShape, ...] = (
    TextShape("", "generation", "stop_reason", "prompt_token_count", "generation_token_count"),  # Llama
    TextShape("outputs", "text", "stop_reason"),  # Mistral
    TextShape("results", "outputText", "completionReason", "inputTextTokenCount"),  # Titan
    TextShape("", "outputText", "completionReason", "inputTextTokenCount", "totalOutputTextTokenCount"),  # its chunks
    TextShape("generations", "text", "finish_reason"),  # Cohere Command
    TextShape("", "completion", "stop_reason"),  # Claude up to 2.1, without messages
    TextShape("", "text", "finish_reason"),  # Cohere Command R, and chunks of Command
)
"""The first shape whose text is there counts."""


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a value is a chunk of a stream; a whole body has its maker's format, so only the address tells."""
    return event == "chunk" and isinstance(value.get("bytes"), str)


_NOVA = tuple(row._replace(pattern=f"/{row.when}{row.pattern}", keys=tuple(f"/{row.when}{key}" for key in row.keys),
                           when="") for row in CONVERSE_STREAM_READS)
"""Nova's events are wrapped by their names: read without them, a text delta looks like one of Claude."""

_TEXT_READS = tuple(
    FactRow("text", f"/{shape.holder}/*/{shape.text}" if shape.holder else f"/{shape.text}") for shape in TEXTS)

STREAM_READS: tuple[FactRow, ...] = (*MESSAGES_STREAM_READS, *_NOVA, *_TEXT_READS)
"""What the events inside the chunks add piece by piece."""
READS: tuple[FactRow, ...] = tuple(dict.fromkeys((
    *MESSAGES_READS, *CONVERSE_READS, *CHAT_READS, *_TEXT_READS,
    *(FactRow(f"usage.{fact}", f"/{name}") for shape in TEXTS
      for fact, name in (("input_tokens", shape.input_tokens), ("output_tokens", shape.output_tokens)) if name),
    FactRow("usage.output_tokens", "/results/*/tokenCount"),
)))
"""Of whole bodies: what a chunk holds stands in base64, where no value has bytes of its own."""


# -- Bytes -> `ChatResponse` -----------------------------------------------------------------------------------------
# They are a body of the model's maker, or an event stream whose chunks hold its events: `{"bytes": "..."}` with one
# event in base64. Claude's are read by the decoder of Messages, Nova's by that of Converse, which reads the frames and
# their exceptions too, bodies with `choices` by that of Chat Completions, and the makers' that are one text here.
# Places are those of whole frames.


class _ChatDecoder(ChatDecoder):
    """The decoder of Mistral's chat, whose choices call the word `stop_reason`."""

    def _ending(self, state: GrowingChoice, event: Any, choice: Any, reason: Any, at: At) -> None:
        if reason is None and word(choice.get(REASON)):
            reason = choice[REASON]
            pointer = f"{(at.pointer or '').rpartition('/')[0]}/{REASON}"
            at = self.body_at(pointer) if self.slice_bytes() else at._replace(pointer=pointer)
        super()._ending(state, event, choice, reason, at)


class Decoder(ConverseDecoder):
    """The decoder of one InvokeModel response."""

    api: ClassVar[str] = API
    stop_reasons: ClassVar[Mapping[str, StopRow]] = STOP_REASONS

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._maker: base.Decoder | None = None
        self._maker_options = {**options, "words": {**STOP_REASONS, **self.words}}
        self._texts: list[str] = []
        self._id: str | None = None
        self._read_text = False

    def on_event(self, event: Any, name: str | None, start: int, end: int) -> None:
        """Reads one frame: a chunk, or an exception."""
        if name != "chunk":
            super().on_event(event, name, start, end)
            return
        inner, text = _opened(event)
        metrics = inner.pop(METRICS, None)
        if "type" in inner and self._shape(inner) is None:
            maker = self._as(MessagesDecoder)
            maker.payload = text
            maker.on_event(inner, None, start, end)
        elif "choices" in inner:
            maker = self._as(_ChatDecoder)
            maker.payload = text
            maker.on_event(_as_chunk(inner), None, start, end)
        elif (shape := self._shape(inner)) is not None:
            self._text(shape, inner, At(ExchangePart.BODY, start, end))
        else:
            super().on_event(_counts_named(inner), None, start, end)
        if isinstance(metrics, dict) and self._usage is None:
            self._usage = Usage(integer(metrics.get("inputTokenCount")), integer(metrics.get("outputTokenCount")))

    def on_body(self, body: Any) -> None:
        """Reads a whole body or an error."""
        shape = self._shape(body)
        if self.error is not None or "output" in body:
            super().on_body(body)
        elif shape is not None:
            self._text(shape, body, None)
        else:
            maker = self._as(_ChatDecoder if "choices" in body else MessagesDecoder)
            maker._whole, maker.size = self._whole, self.size
            maker.on_body(body)

    def build(self) -> ChatResponse:
        """The response, as far as it arrived."""
        if self._maker is None:
            response = super().build()
            if self._read_text:
                joined = "".join(self._texts)
                self.saw_done = self.raw is not None
                response = replace(response, parts=(TextPart(joined),) if joined else (), id=self._id)
            return replace(response, api=API)
        self._maker.size = self.size
        made = self._maker.build()
        for found in self._maker.findings:
            self.find(found.rule, found.message, found.at, found.severity)
        if self._maker.error is not None:
            self.fail(self._maker.error, self._maker.error_at)
        self.saw_done = self._maker.saw_done
        return replace(made, api=API, id=made.id or None, model=made.model or None, usage=made.usage or self._usage)

    def watch(self, body: bytes, see: See) -> None:
        """Passes the events inside the chunks to `see`."""
        super().watch(body, _seen_inside(see))

    def seeing(self, see: See) -> None:
        """From this call on, the events inside the chunks go to `see`."""
        super().seeing(_seen_inside(see))

    # -- inside --------------------------------------------------------------------------------------------------

    def _as(self, kind: type[base.Decoder]) -> base.Decoder:
        if self._maker is None:
            self._maker = kind(**self._maker_options)
        return self._maker

    def _shape(self, body: Mapping[str, Any]) -> TextShape | None:
        return next((shape for shape in TEXTS if isinstance(_holder(shape, body).get(shape.text), str)), None)

    def _text(self, shape: TextShape, body: Mapping[str, Any], at: At | None) -> None:
        """A body, or a chunk (which has a place), that is one text."""
        self._read_text = True
        holder = _holder(shape, body)
        self._texts.append(holder[shape.text])
        self._id = string(body.get("id")) or self._id
        reason = string(holder.get(shape.reason))
        if reason:
            pointer = f"/{shape.holder}/0/{shape.reason}" if shape.holder else f"/{shape.reason}"
            self.raw, self.raw_at = reason, at or self.body_at(pointer)
        counts = [integer(body.get(name)) for name in (shape.input_tokens, shape.output_tokens)]
        if counts[1] is None:
            counts[1] = integer(holder.get("tokenCount"))
        if counts != [None, None]:
            before = self._usage or Usage()
            self._usage = Usage(before.input_tokens if counts[0] is None else counts[0],
                                before.output_tokens if counts[1] is None else counts[1])


def _opened(event: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The event inside a chunk, and its bytes."""
    text = base64.b64decode(event["bytes"], validate=True)
    inner = from_json(text)
    if not isinstance(inner, dict):
        raise TypeError("a chunk holds no object")
    return inner, text


def _seen_inside(see: See) -> See:
    def look(event: Any, name: str | None, start: int, end: int) -> None:
        if name != "chunk":
            return
        inner, _ = _opened(event)
        inner.pop(METRICS, None)
        see(inner, None, start, end)

    return look


def _as_chunk(event: dict[str, Any]) -> dict[str, Any]:
    """An event of Mistral's chat as a chunk of Chat Completions: each has a message, and its word for the end."""
    choices = [{**choice, "delta": choice.get("delta", choice.get("message")),
                "finish_reason": choice.get("finish_reason", choice.get(REASON))}
               if isinstance(choice, dict) else choice for choice in list_of(event["choices"])]
    return {**event, "choices": choices}


def _holder(shape: TextShape, body: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_of(next(iter(list_of(body.get(shape.holder))), None)) if shape.holder else body


def _counts_named(event: dict[str, Any]) -> dict[str, Any]:
    """Nova's event with its count of cached tokens as Converse names it."""
    usage = mapping_of(mapping_of(event.get("metadata")).get("usage"))
    if "cacheReadInputTokenCount" not in usage:
        return event
    counts = {**usage, "cacheReadInputTokens": usage["cacheReadInputTokenCount"]}
    return {**event, "metadata": {**event["metadata"], "usage": counts}}


# -- `ChatResponse` -> the bytes that InvokeModel would send for it from Claude --------------------------------------
# A message, or its events in chunks.

def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one frame per event when streamed."""
    failure: bytes | None = None
    if response.error is not None and (stream or not response.parts):
        bare = replace(response, api="bedrock_converse", parts=(), usage=None, native={},
                       stop_reason=response.stop_reason._replace(raw=None))
        *_, failure = encode_error(bare, stream=stream)  # what stands before an exception is of Converse
        if not stream or not response.parts:
            yield failure
            return
    try:
        claude = replace(response, api="anthropic_messages", error=None if stream else response.error)
        written = list(encode_message(claude, stream=stream, chunk=chunk))
    except EncodeError as refused:
        raise EncodeError(str(refused), api=API, what=refused.what) from None
    if not stream:
        yield from written
        return
    events = SSE()
    for piece in (*events.feed(b"".join(written)), *events.flush()):
        yield event_frame("chunk", compact({"bytes": base64.b64encode(piece[0]).decode()}).encode())
    if failure is not None:
        yield failure


# -- Body of a recorded request -> `Request` -------------------------------------------------------------------------
# The model in the URL says whose body it is.

VERSION = "bedrock-2023-05-31"
"""The value of `anthropic_version` that Bedrock asks of every body for Claude."""
_PROMPTS = ("prompt", "inputText", "message")
_CAPS = ("max_gen_len", "max_tokens", "max_tokens_to_sample")


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body; the model and whether it streams are in `url`."""
    place = PATHS[0].search(url)
    model = unquote(place["model"]) if place else None
    return replace(_read(body, model or ""), api=API, model=model, stream=bool(place and place["stream"]))


def _read(body: Mapping[str, Any], model: str) -> Request:
    if "messages" not in body:
        return _read_text(body)
    if "anthropic_version" in body or "anthropic." in model:
        return read_messages(rest(body, "anthropic_version") if body.get("anthropic_version") == VERSION else body)
    if "amazon." in model or "inferenceConfig" in body or "toolConfig" in body:
        request = read_converse(body)
        cap = integer(mapping_of(body.get("inferenceConfig")).get("max_new_tokens"))
        if cap is None or request.max_tokens is not None:
            return request
        return replace(request, max_tokens=cap, extra=rest(request.extra, "inferenceConfig.max_new_tokens"))
    return read_chat(body) if model else read_messages(body)


def _read_text(body: Mapping[str, Any]) -> Request:
    field = next((name for name in _PROMPTS if word(body.get(name))), None)
    cap_field = next((name for name in _CAPS if integer(body.get(name)) is not None), None)
    titan = integer(mapping_of(body.get("textGenerationConfig")).get("maxTokenCount"))
    taken = [name for name in (field, cap_field) if name] + ["textGenerationConfig.maxTokenCount"]
    messages = (Message(Role.USER, (TextPart(body[field]),)),) if field else ()
    return Request(API, messages, max_tokens=body[cap_field] if cap_field else titan, extra=rest(body, *taken))


# -- `Request` -> the body for Claude or Nova ------------------------------------------------------------------------

ASKING_LOSES: Mapping[str, str] = MESSAGES_LOSE


def path(request: Request) -> str:
    """The path of the request."""
    way = "invoke-with-response-stream" if request.stream else "invoke"
    return f"/model/{quote(request.model or '', safe='')}/{way}"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request; a model of a maker whose bodies are not written is an `EncodeError` too."""
    model = request.model or ""
    if "anthropic." in model or "." not in model:  # an inference profile of one's own names no maker
        body = encode_messages(replace(request, api="anthropic_messages", model=None, stream=False))
        return {"anthropic_version": VERSION, **rest(body, "model", "stream")}
    if "amazon.nova" in model:
        return encode_converse(replace(request, api="bedrock_converse"))
    said = "bodies can be written for Claude and Nova only"
    raise EncodeError(f"{model or 'no model'}: {said}", api=API, what="model")


FORMAT = Format(
    id=API,
    decoder=Decoder,
    stop_reasons=STOP_REASONS,
    paths=PATHS,
    recognises=recognises,
    reads=READS,
    stream_reads=STREAM_READS,
    read_request=read_request,
    encode=encode,
    loses=LOSES,
    encode_request=encode_request,
    asking_loses=ASKING_LOSES,
    path=path,
    home=Home("https://bedrock-runtime.us-east-1.amazonaws.com", "", ANY_PATH, "authorization"),
    provider="aws.bedrock",
    stream_type=CONTENT_TYPE,
    cached_apart=True,
    region="us-east-1",
)

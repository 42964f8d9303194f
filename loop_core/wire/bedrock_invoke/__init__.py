"""Bedrock InvokeModel: `POST /model/{id}/invoke`, whose bodies are those of the model's maker.

Claude's bodies and stop words are those of Messages, Nova's those of Converse. AWS's guide "Inference request
parameters and response fields for foundation models" documents those of the other makers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from loop_core.errors import EncodeError
from loop_core.json_parser import JsonPath, from_json_checked
from loop_core.values import ArgsForm, At, ChatResponse, Evidence, Stop, TextPart, ToolCall, Usage
from loop_core.wire import base
from loop_core.wire.anthropic_messages.decode import Decoder as MessagesDecoder
from loop_core.wire.anthropic_messages.table import LOSES as MESSAGES_LOSES
from loop_core.wire.anthropic_messages.table import READS as MESSAGES_READS
from loop_core.wire.anthropic_messages.table import STOP_REASONS as MESSAGES_WORDS
from loop_core.wire.anthropic_messages.table import STREAM_READS as MESSAGES_STREAM_READS
from loop_core.wire.anthropic_messages.table import UNNAMED
from loop_core.wire.bedrock_converse import encode as encode_error
from loop_core.wire.bedrock_converse.decode import Decoder as ConverseDecoder
from loop_core.wire.bedrock_converse.table import READS as CONVERSE_READS
from loop_core.wire.bedrock_converse.table import STOP_REASONS as CONVERSE_WORDS
from loop_core.wire.bedrock_converse.table import STREAM_READS as CONVERSE_STREAM_READS
from loop_core.wire.bedrock_invoke import makers
from loop_core.wire.bedrock_invoke.makers import API
from loop_core.wire.body import compact, list_of, mapping_of, rest, string, token_count, value_at, word
from loop_core.wire.eventstream import CONTENT_TYPE, event_frame
from loop_core.wire.failures import StopRow
from loop_core.wire.format import ANY_PATH, Format, Home
from loop_core.wire.json_values import slice_of
from loop_core.wire.openai_chat.choice import GrowingChoice
from loop_core.wire.openai_chat.decode import Decoder as ChatDecoder
from loop_core.wire.openai_chat.table import READS as CHAT_READS
from loop_core.wire.reads import FactRow, See
from loop_core.wire.response_calls import gone_on

_LLAMA = "AWS guide, Meta Llama and Mistral AI models: stop_reason"
_TITAN = "AWS guide, Amazon Titan Text models: completionReason"
_AI21 = "AWS guide, AI21 Labs Jurassic-2 models: finishReason.reason"
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
    "endoftext": StopRow(Stop.END_TURN, None, _AI21),
    "COMPLETE": StopRow(Stop.END_TURN, None, _COHERE),
    "MAX_TOKENS": StopRow(Stop.MAX_TOKENS, None, _COHERE),
    "ERROR": StopRow(Stop.ERROR, "retryable", _COHERE),
    "ERROR_TOXIC": StopRow(Stop.SAFETY_BLOCKED, None, _COHERE),
    "STOP_SEQUENCE": StopRow(Stop.END_TURN, "stop_sequence", _COHERE_R),
    "ERROR_LIMIT": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _COHERE_R),
    "USER_CANCEL": StopRow(Stop.CANCELLED, None, _COHERE_R),
}
"""Native word -> mapped reason, for the models of Llama, Mistral, Titan, AI21 and Cohere."""
GUARDRAIL = "amazon-bedrock-guardrailAction"
"""The name of the field that says, in a body or a chunk of any maker, whether a guardrail intervened."""
STOP_REASONS: Mapping[str, StopRow] = {
    **CONVERSE_WORDS, **rest(MESSAGES_WORDS, UNNAMED), **MAKERS_WORDS,
    GUARDRAIL: StopRow(Stop.SAFETY_BLOCKED, "guardrail", "AWS InvokeModel; langchain-aws 1.9.1 llms/bedrock.py"),
}
"""Native word -> mapped reason. The last key is the guardrail's field, which outranks a clean word."""
INTERVENED = "INTERVENED"
TRACE = "amazon-bedrock-trace"
"""The name of the field with the guardrail's trace, beside an event of any maker."""

LOSES: Mapping[str, str] = MESSAGES_LOSES
REASON = "stop_reason"
"""The name of the finish reason in a choice of Mistral's chat."""


class TextShape(NamedTuple):
    """A model maker's text answer: where its fields are in a body or in a chunk."""

    holder: str
    """The name of the list whose first item holds text and reason; empty if the body itself holds them."""
    text: str
    """The path of the text, and that of the reason, as in a JSON pointer."""
    reason: str
    input_tokens: str = ""
    output_tokens: str = ""
    calls: str = ""
    """The name of the list of calls beside the text; empty if such answers hold no calls."""


TEXTS: tuple[TextShape, ...] = (
    TextShape("", "generation", "stop_reason", "prompt_token_count", "generation_token_count"),  # Llama
    TextShape("outputs", "text", "stop_reason"),  # Mistral
    TextShape("choices", "text", "stop_reason"),  # DeepSeek-R1
    TextShape("choices", "text", "finish_reason"),  # imported models, served as OpenAI's completions
    TextShape("results", "outputText", "completionReason", "inputTextTokenCount"),  # Titan
    TextShape("", "outputText", "completionReason", "inputTextTokenCount", "totalOutputTextTokenCount"),  # its chunks
    TextShape("generations", "text", "finish_reason"),  # Cohere Command
    TextShape("completions", "data/text", "finishReason/reason"),  # AI21's Jurassic-2
    TextShape("", "completion", "stop_reason"),  # Claude up to 2.1, without messages
    TextShape("", "text", "finish_reason", calls="tool_calls"),  # Cohere Command R, and chunks of Command
)
"""The known shapes. The first shape with both text and reason counts, else the first with a text."""
_COMMAND = TEXTS[-1]
"""The shape of chunks that are events of Cohere's first version. Not every such event holds a text."""
_COMMAND_MARKS = frozenset({"event_type", "is_finished"})
"""The members by which such an event is recognised: of Command R, and of Command."""


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a value is a chunk of a stream; a whole body has its maker's format, so only the URL identifies it."""
    return event == "chunk" and isinstance(value.get("bytes"), str)  # botocore's PayloadPart


_NOVA = tuple(
    row._replace(pattern=f"/{row.when}{row.pattern}", when="",
                 siblings=tuple(f"/{row.when}{sibling}" for sibling in row.siblings)) for row in CONVERSE_STREAM_READS)
"""The rows of Converse for events of Nova, each of which is wrapped in an object under its name. Without that name a
text delta would look like one of Claude's."""

_TEXT_READS = tuple(
    FactRow("text", f"/{shape.holder}/*/{shape.text}" if shape.holder else f"/{shape.text}") for shape in TEXTS)

STREAM_READS: tuple[FactRow, ...] = (*MESSAGES_STREAM_READS, *_NOVA, *_TEXT_READS)
"""The rows for values that the events inside the chunks deliver piece by piece."""
READS: tuple[FactRow, ...] = tuple(dict.fromkeys((
    *MESSAGES_READS, *CONVERSE_READS, *CHAT_READS, *_TEXT_READS,
    *(FactRow(f"usage.{fact}", f"/{name}") for shape in TEXTS
      for fact, name in (("input_tokens", shape.input_tokens), ("output_tokens", shape.output_tokens)) if name),
    FactRow("usage.output_tokens", "/results/*/tokenCount"),
    FactRow("call.name", "/tool_calls/*/name"),
    FactRow("call.arguments", "/tool_calls/*/parameters"),
)))
"""The rows for whole bodies. A chunk holds base64, so no value inside it has bytes of its own."""


# -- Bytes -> `ChatResponse` -----------------------------------------------------------------------------------------
# A body of the model's maker, or an event stream whose chunks hold its events: `{"bytes": "..."}` with one event in
# base64. The decoder of Messages reads Claude's, that of Converse Nova's, the frames and their exceptions, and that of
# Chat Completions bodies with `choices`; text answers are read here. Places are those of whole frames.


class _ChatDecoder(ChatDecoder):
    """The decoder of Mistral's chat, whose choices name the finish reason `stop_reason`."""

    def _ending(
        self, state: GrowingChoice, event: Any, choice: Any, reason: Any, path: JsonPath, member: str
    ) -> None:
        if reason is None and word(choice.get(REASON)):
            reason, member = choice[REASON], REASON
        super()._ending(state, event, rest(choice, REASON), reason, path, member)  # not as the stop string


class Decoder(ConverseDecoder):
    """The decoder of one InvokeModel response."""

    api: ClassVar[str] = API
    stop_reasons: ClassVar[Mapping[str, StopRow]] = STOP_REASONS
    closing = (*base.Decoder.closing, b'"bytes"')  # in every chunk, since base64 hides its content

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._measured = False
        self._maker: base.Decoder | None = None
        self._maker_options = {**options, "words": {**STOP_REASONS, **self.words}}
        self._texts: list[str] = []
        self._calls: list[ToolCall] = []
        self._read_text = self._goes_on = False  # whether a text was read, and text followed its stop word
        self._guarded_at: At | None = None
        self._others: set[int] = set()

    @property
    def is_over(self) -> bool:
        """Whether the chunk with Bedrock's own counts, the last one, or the maker's last event was read."""
        return self._measured or (self._maker is not None and self._maker.is_over)

    def on_event(self, event: Any, name: str | None) -> None:
        """Reads one frame: a chunk, or an exception."""
        if name != "chunk":
            super().on_event(event, name)
            return
        inner, text = _open_chunk(event)
        self.check_types(inner)
        metrics = inner.pop(makers.METRICS, None)
        self._measured = self._measured or metrics is not None
        if inner.pop(GUARDRAIL, None) == INTERVENED:
            self._guarded_at = self.at()
        inner.pop(TRACE, None)
        shape = self._shape(inner) or (_COMMAND if not _COMMAND_MARKS.isdisjoint(inner) else None)
        if shape is _COMMAND and (index := token_count(inner.get("index"))):
            self._others.add(index)  # another answer of Command (num_generations)
        elif shape is not None:
            self._text(shape, inner, self.at(), text)
        elif self._maker is not None and self._maker.saw_done and not (self._maker.reads_on and "type" in inner):
            self.after_end()
        elif "type" in inner:  # Claude
            maker = self._maker_decoder(MessagesDecoder, text)
            maker.on_event(inner, None)
            if maker._late is maker.frame:
                self.after_end()  # who reads a file of several streams looks for this finding while it reads
        elif "choices" in inner:  # Mistral's chat; all others are Nova's
            self._maker_decoder(_ChatDecoder, text).on_event(_as_chunk(inner), None)
        else:
            super().on_event(_with_converse_counts(inner), None)
        if isinstance(metrics, dict) and self.usage is None:  # the maker's own counts come first
            self.usage = Usage(*(token_count(metrics.get(name)) for name in ("inputTokenCount", "outputTokenCount")))

    def on_body(self, body: Any) -> None:
        """Reads a whole body or an error."""
        if body.get(GUARDRAIL) == INTERVENED:
            self._guarded_at = self.at(GUARDRAIL)
        shape = self._shape(body)
        if self.error is not None or "output" in body:
            super().on_body(_with_converse_counts(body))
        elif shape is not None:
            self._text(shape, body, None, self.frame[0])
        else:
            self._maker_decoder(_ChatDecoder if "choices" in body else MessagesDecoder, self.frame[0]).on_body(body)

    def build(self) -> ChatResponse:
        """The response, as far as it arrived. If a guardrail replaced the answer, the stop word may be clean, so the
        guardrail's field decides."""
        response = self._assemble()
        stop = response.stop_reason
        if self._guarded_at is None or stop.normalized in (Stop.SAFETY_BLOCKED, Stop.ERROR):
            return response
        row = STOP_REASONS[GUARDRAIL]
        evidence = Evidence(f"{API}.guardrail", self._guarded_at, INTERVENED)
        return replace(response, stop_reason=stop._replace(normalized=row.stop, detail=row.detail,
                                                           evidence=(*stop.evidence, evidence)))

    def _assemble(self) -> ChatResponse:
        if self._maker is None:
            response = super().build()
            if not self._read_text:
                return response
            joined = "".join(self._texts)
            self.saw_done = self.raw is not None
            text, stop = (TextPart(joined),) if joined else (), response.stop_reason
            if self._goes_on and not self._measured:  # the counts are the end
                stop = gone_on(API, stop, self.size, self.find)
            return replace(response, parts=(*text, *self._calls), stop_reason=stop, other_choices=len(self._others))
        self._maker.size = self.size
        maker_response = self._maker.build()
        for found in self._maker.findings:
            self.findings.note(found)
        if self._maker.error is not None:
            self.fail(self._maker.error, self._maker.error_at)
        self.saw_done, self.words_said = self._maker.saw_done, self._maker.words_said
        return replace(maker_response, api=API, id=maker_response.id or None, model=maker_response.model or None,
                       usage=maker_response.usage or self.usage)

    def watch(self, body: bytes, see: See) -> None:
        """Passes the events inside the chunks to `see`."""
        super().watch(body, _look_inside(see))

    def seeing(self, see: See) -> None:
        """After this call, the events inside the chunks are passed to `see`."""
        super().seeing(_look_inside(see))

    def _maker_decoder(self, kind: type[base.Decoder], text: bytes) -> base.Decoder:
        """The maker's decoder, prepared to read this JSON text and to cut verbatim values out of it."""
        if self._maker is None:
            self._maker = kind(**self._maker_options)
        self._maker.frame, self._maker.streaming = (text, None, *self.frame[2:]), self.streaming
        return self._maker

    def _shape(self, body: Mapping[str, Any]) -> TextShape | None:
        found = [shape for shape in TEXTS if isinstance(value_at(_holder(shape, body), shape.text.split("/")), str)]
        reasons = ((shape, shape.reason.partition("/")[0]) for shape in found)
        return next((shape for shape, name in reasons if name in _holder(shape, body)), found[0] if found else None)

    def _text(self, shape: TextShape, body: Mapping[str, Any], at: At | None, source: bytes) -> None:
        """Reads a body, or a chunk (which has a place), of a maker whose answer is one text, with its calls."""
        self._read_text = True
        holder = _holder(shape, body)
        self._texts.append(string(value_at(holder, shape.text.split("/"))) or "")
        calls = list_of(body.get(shape.calls)) if shape.calls else []
        json_text = source.decode("utf-8", "replace") if calls else ""
        for number, call in enumerate(calls):
            if isinstance(call, dict):
                arguments = slice_of(json_text, shape.calls, number, "parameters")
                self._calls.append(ToolCall(None, string(call.get("name")) or "", arguments, closed=True,
                                            form=ArgsForm.OBJECT, at=at or self.at(shape.calls, number)))
        self.id = string(body.get("id")) or self.id
        reason = string(value_at(holder, shape.reason.split("/")))
        self._goes_on = not reason and (self._goes_on or bool(self.raw and self._texts[-1].strip()))
        if reason is not None:
            place = *((shape.holder, 0) if shape.holder else ()), *shape.reason.split("/")
            self.end_with(reason, at or self.at(*place))
        usage = mapping_of(body.get("usage"))
        counts = [token_count(body.get(shape.input_tokens, usage.get("prompt_tokens"))),
                  token_count(body.get(shape.output_tokens, usage.get("completion_tokens")))]
        if counts[1] is None:
            counts[1] = token_count(holder.get("tokenCount"))
        if counts != [None, None]:
            before = self.usage or Usage()
            self.usage = Usage(before.input_tokens if counts[0] is None else counts[0],
                                before.output_tokens if counts[1] is None else counts[1])


def _open_chunk(event: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    text = base64.b64decode(event["bytes"], validate=True)
    inner = from_json_checked(text)
    if not isinstance(inner, dict):
        raise TypeError("a chunk holds no object")
    return inner, text


def _look_inside(see: See) -> See:
    def look(event: Any, name: str | None, start: int, end: int) -> None:
        if name != "chunk":
            return
        inner, _ = _open_chunk(event)
        inner.pop(makers.METRICS, None)
        see(inner, None, start, end)

    return look


def _as_chunk(event: dict[str, Any]) -> dict[str, Any]:
    """An event of Mistral's chat converted to a chunk of Chat Completions."""
    choices = [{**choice, "delta": choice.get("delta", choice.get("message")),
                "finish_reason": choice.get("finish_reason", choice.get(REASON))}
               if isinstance(choice, dict) else choice for choice in list_of(event["choices"])]
    return {**event, "choices": choices}


def _holder(shape: TextShape, body: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_of(next(iter(list_of(body.get(shape.holder))), None)) if shape.holder else body


def _with_converse_counts(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Nova's body or event, with its count of cached tokens renamed as in Converse."""
    if "metadata" in value:
        return {**value, "metadata": _with_converse_counts(mapping_of(value["metadata"]))}
    usage = mapping_of(value.get("usage"))
    named = {other: usage[name] for name, other in makers.NOVA_COUNTS.items() if name in usage}
    return {**value, "usage": {**usage, **named}} if named else value


# -- `ChatResponse` -> the bytes that InvokeModel would send for it --------------------------------------------------
# A body, or events in chunks, of the maker whose model the answer names; of Claude if it names none.

def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one frame per event when streamed."""
    failure: bytes | None = None
    if response.error is not None and (stream or not response.parts):
        bare = replace(response, api="bedrock_converse", parts=(), usage=None, native={},
                       stop_reason=response.stop_reason._replace(raw=None))
        *_, failure = encode_error(bare, stream=stream)  # only the last frame is the exception
        if not stream or not response.parts:
            yield failure
            return
    fitting = (write for pattern, write in makers.WRITERS if pattern.search(response.model or ""))
    write = next(fitting, makers.encode_claude)
    try:
        written = list(write(replace(response, error=None if stream else response.error), stream, max(1, chunk)))
    except EncodeError as refused:
        raise EncodeError(str(refused), api=API, what=refused.what) from None
    if not stream:
        yield from written
        return
    for event in written:
        yield event_frame("chunk", compact({"bytes": base64.b64encode(event).decode()}).encode())
    if failure is not None:
        yield failure


FORMAT = Format(
    decoder=Decoder,
    paths=makers.PATHS,
    recognises=recognises,
    reads=READS,
    stream_reads=STREAM_READS,
    read_request=makers.read_request,
    encode=encode,
    loses=LOSES,
    encode_request=makers.encode_request,
    asking_loses=makers.ASKING_LOSES,
    path=makers.path,
    home=Home("https://bedrock-runtime.us-east-1.amazonaws.com", "", ANY_PATH, "authorization"),
    provider="aws.bedrock",
    stream_type=CONTENT_TYPE,
    cached_apart=True,
    signed_alike=frozenset({"anthropic_messages", "bedrock_converse"}),  # as in Messages
    region="us-east-1",
)

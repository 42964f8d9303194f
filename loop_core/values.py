"""The values that the whole engine shares: requests, messages, tool calls, responses, stop reasons, findings.

Every value is immutable, and its methods only read its own fields. Offsets are bytes of the decoded body.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

EMPTY: Mapping[str, Any] = {}
"""The empty mapping that values share. A mapping of its own for each value would take 64 bytes."""
_Value = TypeVar("_Value")
shared: Callable[[_Value], _Value] = lru_cache(maxsize=4096, typed=True)(lambda value: value)
"""Returns one object for equal values of one type, since most answers share a few values."""


class Stop(StrEnum):
    """Why a response stopped, in one vocabulary for all wire formats."""

    __hash__ = str.__hash__  # these are keys of hot tables, and Enum's own hash is a Python function

    END_TURN = "end_turn"
    """The model finished its answer, or wrote a stop sequence."""
    TOOL_CALL = "tool_call"
    """The model waits for the results of its calls."""
    MAX_TOKENS = "max_tokens"
    """The output limit cut the response."""
    CONTEXT_WINDOW_EXCEEDED = "context_window_exceeded"
    """The context was full, so the response was cut or the request refused. A continuation cannot succeed."""
    SAFETY_BLOCKED = "safety_blocked"
    """A filter, a guardrail or a refusal ended the response."""
    CANCELLED = "cancelled"
    """The client or the operator ended the response."""
    UNKNOWN = "unknown"
    """No known word says how the response ended. Such a response never counts as finished."""
    PAUSED = "paused"
    """The provider waits for the client. `StopReason.detail` says how to resume: echo, token, poll or server."""
    INTERRUPTED = "interrupted"
    """The bytes ended before they said that the response is complete."""
    MALFORMED_TOOL_CALL = "malformed_tool_call"
    """A call cannot be used: it is invalid, or the provider's own parser refused it."""
    ERROR = "error"
    """The provider reported a failure. `StopReason.detail` begins with retryable or fatal."""


FINISHED = frozenset({Stop.END_TURN, Stop.TOOL_CALL})
"""The reasons of a complete response: the loop ends, or runs the tools."""
WORDLESS = FINISHED | {Stop.UNKNOWN}
"""The reasons under which a response may still turn out to be cut."""


class ExchangePart(StrEnum):
    """The part of an exchange that a fact was read from."""

    BODY = "body"
    HEADERS = "headers"
    REQUEST = "request"


class At(NamedTuple):
    """A place in an exchange: bytes `start` to `end` of the decoded body, and a JSON pointer inside them."""

    part: ExchangePart = ExchangePart.BODY
    start: int | None = None
    end: int | None = None
    pointer: str | None = None


class FactQuote(NamedTuple):
    """Characters `start` to `end` of a fact of the response: `text` or `reasoning`."""

    fact: str
    start: int
    end: int


class Evidence(NamedTuple):
    """One observation that led to a stop reason: the rule, the bytes that it read, and a note for people."""

    rule: str
    at: At | None = None
    note: str = ""
    quote: FactQuote | None = None
    """The characters of a text that the rule read; None if it read none."""


class StopReason(NamedTuple):
    """The normalized stop reason beside the provider's own word, with the evidence for it, in order."""

    normalized: Stop
    raw: str | None = None  # the provider's word, verbatim; None if it sent none
    detail: str | None = None
    evidence: tuple[Evidence, ...] = ()


class Severity(StrEnum):
    """How much a finding matters, the gravest first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


INTERRUPTED = StopReason(Stop.INTERRUPTED)
"""The reason of a response without any word about its end."""


class Finding(NamedTuple):
    """A remark on a response, such as a contradiction, a quirk or a loss. `rule` is a stable dotted name."""

    rule: str
    severity: Severity
    message: str
    at: At | None = None
    quote: FactQuote | None = None
    """The characters that the finding is about, if it is about a text."""


class CallKind(StrEnum):
    """Who runs a tool call, and the kind of its payload."""

    FUNCTION = "function"
    CUSTOM = "custom"
    """Free-form text instead of JSON arguments (Responses custom tools)."""
    SERVER = "server"
    """The provider itself runs the call, so it neither counts as a call to answer nor passes the gate."""


class ArgsForm(StrEnum):
    """How arguments were sent: as a string, or as a JSON object, which does not show a cut."""

    STRING = "string"
    OBJECT = "object"


class ToolCall(NamedTuple):
    """A tool call exactly as received."""

    id: str | None
    """The provider's id; None if the format or the server has none. An id is never invented here."""
    name: str
    arguments: str | None
    """The exact characters received (for `ArgsForm.OBJECT` the JSON slice), never repaired; None only when absent."""
    closed: bool = False
    """Whether the provider said that this call is finished: its block was closed, or a stop reason followed it."""
    kind: CallKind = CallKind.FUNCTION
    form: ArgsForm = ArgsForm.STRING
    status: str | None = None
    """The provider's own status word for this call (Responses `item.status`)."""
    item_id: str | None = None
    """A second id that some formats give (Responses `id` beside `call_id`)."""
    signature: str | None = None
    """A token that must go back with the call (Gemini `thoughtSignature`)."""
    other_arguments: str | None = None
    """A second text of the arguments that the provider sent, if it is different JSON; None if all agree."""
    arguments_unsent: bool = False
    """Whether the arguments are only the empty object with which a format begins every call."""
    at: At | None = None


class TextPart(NamedTuple):
    """Visible text."""

    text: str
    phase: str | None = None
    """The purpose of the text, as the provider states it: `commentary` or `final_answer` (Responses)."""


class ReasoningPart(NamedTuple):
    """Reasoning, with the data that must be sent back with it."""

    text: str
    signature: str | None = None
    data: str | None = None
    """Encrypted or redacted thinking, which only the provider can read."""
    item_id: str | None = None
    json: str | None = None
    """The item verbatim, if it holds more texts than one summary (Responses); else None."""


class OpaquePart(NamedTuple):
    """A block that is not interpreted, kept as verbatim JSON so that it can be echoed."""

    type: str
    json: str


class ToolResultPart(NamedTuple):
    """The result of a tool call; it occurs in requests only."""

    call_id: str | None
    name: str | None
    text: str
    is_error: bool = False
    json: str | None = None
    """The content verbatim if it holds more than text (images, documents); None if `text` is all of it."""

    @property
    def size(self) -> int:
        """The number of characters of the text."""
        return len(self.text)

    @property
    def text_key(self) -> Hashable:
        """A key that is equal for equal texts. It never reads a text that is only loaded on demand."""
        return self.text


ResponsePart = TextPart | ReasoningPart | ToolCall | OpaquePart
MessagePart = TextPart | ReasoningPart | ToolCall | OpaquePart | ToolResultPart


class Usage(NamedTuple):
    """Token counts as the provider reported them; None if it reported none. Cached tokens were read from its cache."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    """All generated tokens, reasoning included, however the provider counts."""
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None

    @property
    def visible_tokens(self) -> int | None:
        """Output tokens without reasoning; None if unknown, or if fewer than the reasoning tokens (recorded)."""
        left = None if self.output_tokens is None else self.output_tokens - (self.reasoning_tokens or 0)
        return None if left is None or left < 0 else left


class Quota(NamedTuple):
    """The rate-limit headers of a response; raw header values by lower-case name."""

    limit_requests: int | None = None
    remaining_requests: int | None = None
    limit_tokens: int | None = None
    remaining_tokens: int | None = None
    reset: str | None = None
    retry_after: str | None = None
    headers: Mapping[str, str] = {}


class TransportEnd(StrEnum):
    """How the transfer of a response ended; `ChatResponse` holds separately what the bytes say about the end."""

    EOF = "eof"
    RESET = "reset"
    TIMEOUT = "timeout"
    ABORTED = "aborted"
    DAMAGED = "damaged"  # the checksum of a compressed body is wrong
    CUT = "cut"  # the recording stopped while bytes still arrived (a killed process, a full disk): the end is unknown


BREAKS = frozenset({TransportEnd.RESET, TransportEnd.TIMEOUT})
"""The ends of a connection that broke or fell silent."""


class ProviderError(NamedTuple):
    """An error that the provider reported, in a body or in the middle of a stream."""

    message: str
    type: str | None = None
    code: str | None = None
    retryable: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ChatResponse:
    """One response, decoded. `stop_reason` is the **mapped** reason: what the format's table says, without judging."""

    api: str
    parts: tuple[ResponsePart, ...] = ()
    stop_reason: StopReason = INTERRUPTED
    usage: Usage | None = None
    quota_metadata: Quota | None = None
    id: str | None = None
    model: str | None = None
    streaming: bool = False
    http_status: int | None = None
    refusal: str | None = None
    error: ProviderError | None = None
    native: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Name -> other words about the end, verbatim: native_finish_reason, stop_sequence, blockReason, …"""
    continuation_token: str | None = None
    saw_stop_reason: bool = False
    saw_done: bool = False
    transport_end: TransportEnd = TransportEnd.EOF
    findings: tuple[Finding, ...] = ()
    """Findings about the bytes: a missing index, a repeated id, a broken frame."""
    other_choices: int = 0
    """The number of further choices in the body (n > 1). Only the first choice is read."""
    size: int = 0  # the number of bytes of the decoded body

    @property
    def raw_stop_reason(self) -> str | None:
        """The provider's own stop word."""
        return self.stop_reason.raw

    @property
    def text(self) -> str | None:
        """All visible text in order; None if there was none."""
        found = [part.text for part in self.parts if type(part) is TextPart]
        return "".join(found) if found else None

    @property
    def reasoning_content(self) -> str | None:
        """All readable reasoning in order; None if there was none."""
        found = [part.text for part in self.parts if type(part) is ReasoningPart and part.text]
        return "".join(found) if found else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls for the client to run, in order."""
        return tuple([p for p in self.parts if type(p) is ToolCall and p.kind is not CallKind.SERVER])

    @property
    def broken_connection(self) -> str:
        """How the client saw the connection break; empty if it saw no break."""
        return next((found.message for found in self.findings if found.rule.startswith("transport.")), "")

    @property
    def server_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the provider ran itself."""
        return tuple(p for p in self.parts if type(p) is ToolCall and p.kind is CallKind.SERVER)


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Message(NamedTuple):
    """One message of a request's history. If it holds reasoning, `api` is the wire format of its model, if known."""

    role: Role
    parts: tuple[MessagePart, ...] = ()
    api: str | None = None

    @property
    def text(self) -> str:
        """The visible text of the message, joined."""
        return "".join([part.text for part in self.parts if type(part) is TextPart])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the message that the client runs; calls that the provider ran are left out."""
        return tuple([p for p in self.parts if type(p) is ToolCall and p.kind is not CallKind.SERVER])

    @property
    def results(self) -> tuple[ToolResultPart, ...]:
        """The tool results that the message carries."""
        return tuple([p for p in self.parts if isinstance(p, ToolResultPart)])


class Tool(NamedTuple):
    """A tool as declared in a request."""

    name: str
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the arguments as sent, in the provider's dialect; None if unknown."""
    description: str = ""
    kind: CallKind = CallKind.FUNCTION
    dialect: str = "json_schema"
    """The dialect of `schema`: json_schema, or openapi (Gemini's upper-case types and `nullable`)."""
    declaration: Mapping[str, Any] | None = None
    """The declaration as a request held it, which is sent again unchanged; None for a tool that was made here."""
    allowed: bool = True  # False if the tool choice lists the tools that may be called, and not this one


def tools_by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Returns the tools by name. Of several with one name the last counts, as on a server."""
    return {tool.name: tool for tool in tools}


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request to a provider, sent or to be sent."""

    api: str
    messages: tuple[Message, ...] = ()
    model: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: str | None = None
    """The tool choice: auto, any, none, or tool:NAME; None if the request set none."""
    max_tokens: int | None = None  # the output cap; None if the request set none
    stream: bool = False
    n: int = 1
    previous_id: str | None = None
    """The id of the response that this request continues on the provider's side (Responses `previous_response_id`)."""
    continuation_token: str | None = None
    """The token with which a provider resumes an answer that it paused (Gemini `continuationToken`)."""
    background: bool = False
    extra: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """Name -> value (JSON) of the other fields of the body, as the provider names them: temperature, thinking, …"""

"""Describes Anthropic Messages as data: stop words, content blocks and their parts, paths, fields that cannot be
carried, and how its JSON is recognised.

Events are read in `decode`. Sources: the anthropic SDK 2.12.0 (types/stop_reason.py, types/content_block.py and their
beta twins), the API documentation, and the rows of the project's stop-reason facts that name this API.

The later sections convert between the other fields about the end of a message and flat words, and read content blocks
and fallback blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    OpaquePart,
    ReasoningPart,
    ResponsePart,
    Stop,
    TextPart,
    ToolCall,
)
from loop_core.wire.asking import CALL_FIELDS, ITEM_FIELDS, SERVER_FIELDS, usual_losses
from loop_core.wire.body import compact, conflicting_arguments, integer, list_of, mapping_of, read_object, string, word
from loop_core.wire.failures import StopRow
from loop_core.wire.json_values import slice_of
from loop_core.wire.reads import FactRow
from loop_core.wire.response_calls import StreamedPart

API = "anthropic_messages"
_SDK = "anthropic 2.12.0 types/stop_reason.py"

UNNAMED = "stop_sequence.unnamed"
STOP_REASONS: Mapping[str, StopRow] = {
    "end_turn": StopRow(Stop.END_TURN, None, _SDK),
    "max_tokens": StopRow(Stop.MAX_TOKENS, None, _SDK),
    "stop_sequence": StopRow(Stop.END_TURN, None, _SDK),
    "tool_use": StopRow(Stop.TOOL_CALL, None, _SDK),
    "pause_turn": StopRow(Stop.PAUSED, "echo", _SDK),
    "refusal": StopRow(Stop.SAFETY_BLOCKED, "refusal", _SDK),
    "model_context_window_exceeded": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _SDK),
    "compaction": StopRow(Stop.PAUSED, "echo", "anthropic 2.12.0 types/beta/beta_stop_reason.py"),
    "sensitive": StopRow(Stop.SAFETY_BLOCKED, "sensitive", "undocumented; pi-ai 1.5.2 api/anthropic-messages.js"),
    "error": StopRow(Stop.ERROR, "retryable: server failure under HTTP 200", "1rgs/claude-code-proxy server.py"),
    UNNAMED: StopRow(Stop.UNKNOWN, "unnamed", "musistudio/llms@ac0fafe anthropic.transformer.ts (a filter); lmdeploy "
                     "0.18.0 serve/anthropic/adapter.py (failure, abort); ollama anthropic/anthropic.go mapStopReason"),
}
"""Native word -> mapped reason. The last row is for a `stop_sequence` that names no sequence."""

LOSES: Mapping[str, str] = usual_losses(*CALL_FIELDS, *SERVER_FIELDS, *ITEM_FIELDS)

PATHS: tuple[re.Pattern[str], ...] = (
    re.compile(r"/v1/messages/?(?=$|[?#])"),
    re.compile(r"/publishers/anthropic/models/(?P<model>[^/:]+):(?:streamR|r)awPredict(?=$|[?#])"),
)


class BlockKind(NamedTuple):
    """How one type of content block streams: the delta that carries its characters, and their place."""

    delta: str
    field: str
    call: CallKind | None = None


KINDS: Mapping[str, BlockKind] = {
    "text": BlockKind("text_delta", "text"),
    "thinking": BlockKind("thinking_delta", "thinking"),
    "tool_use": BlockKind("input_json_delta", "partial_json", CallKind.FUNCTION),
    "server_tool_use": BlockKind("input_json_delta", "partial_json", CallKind.SERVER),
    "mcp_tool_use": BlockKind("input_json_delta", "partial_json", CallKind.SERVER),
}
"""Block type -> how the block streams, for types that are read. A block of any other type is kept verbatim."""

STORED_FIELDS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    **dict.fromkeys(("tool_use", "server_tool_use", "mcp_tool_use"), frozenset({"type", "id", "name", "input"})),
}
"""Block type -> the fields that its part stores. Other fields (citations, server_name, caller) go into an opaque part
after it."""

FIELDS = ".fields"
"""Suffix of the type of an opaque part that holds further fields of the block before it: `text.fields` holds
`{"citations": [...]}`."""

_MESSAGE_EVENTS = frozenset({
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
    "message_stop",
})
"""Without `ping`, which gateways send in a stream of any format."""


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON value is a Messages body, an event of its stream, or its error."""
    kind, content = value.get("type"), value.get("content")
    if kind == "message" and isinstance(content, list):
        return "status" not in value and value.get("role", "assistant") == "assistant"
    if kind in (None, "message"):  # translators omit the type, or send the text instead of its block
        return isinstance(content, (list, str)) and value.get("role") == "assistant" and "stop_reason" in value
    if kind == "error":
        # Responses sends `error` events too, flat and numbered.
        return isinstance(value.get("error"), dict) and "sequence_number" not in value
    return isinstance(kind, str) and kind in _MESSAGE_EVENTS


# -- What a message says about its end beside the stop reason, as flat words, and back again -------------------------
# `stop_details`, `container` and `context_management` are objects; a response keeps words. Paths join with dots,
# strings stay as they are, anything else becomes its JSON.

_JSON = frozenset({"stop_details.fallback_has_prefill_claim", "container.skills", "context_management.applied_edits"})
"""The paths of values that are JSON and not strings (anthropic 2.12.0: RefusalStopDetails, Container,
ContextManagementResponse)."""


def flatten(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every leaf below `value`, with its dotted path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(f"{name}.{key}", inner)
    elif isinstance(value, str):
        yield name, value
    elif value is not None:
        yield name, compact(value)


def unflatten(native: Mapping[str, str], name: str) -> str | None:
    """The JSON of the value called `name`, rebuilt from its leaves; None if there are none."""
    if name in native:
        return compact(native[name])
    members: dict[str, str] = {}
    for leaf in native:
        if leaf.startswith(name + "."):
            key = leaf[len(name) + 1 :].split(".")[0]
            path = f"{name}.{key}"
            members[key] = native[leaf] if leaf == path and path in _JSON else unflatten(native, path) or "null"
    return "{" + ",".join(f"{compact(key)}:{text}" for key, text in members.items()) + "}" if members else None


# -- Which values of a Messages body or event become which facts -----------------------------------------------------

_INDEX = ("/index",)
_COUNTS: tuple[tuple[str, str], ...] = (
    ("usage.input_tokens", "/usage/input_tokens"),
    ("usage.output_tokens", "/usage/output_tokens"),
    ("usage.reasoning_tokens", "/usage/output_tokens_details/thinking_tokens"),
    ("usage.cached_tokens", "/usage/cache_read_input_tokens"),
    ("usage.cache_write_tokens", "/usage/cache_creation_input_tokens"),
)
_MESSAGE: tuple[tuple[str, str], ...] = (
    ("id", "/id"), ("model", "/model"), ("refusal", "/stop_details/explanation"), *_COUNTS,
)
_BLOCK: tuple[tuple[str, str], ...] = (
    ("text", "/text"),
    ("reasoning", "/thinking"),
    ("call.id", "/id"),
    ("call.name", "/name"),
    ("call.arguments", "/input"),
)
_DELTA: tuple[tuple[str, str], ...] = (
    ("text", "/text"),
    ("reasoning", "/thinking"),
    ("call.arguments", "/partial_json"),
)
_HOLDERS = ("", "/message")  # of a message: the whole body, or the member of `message_start`

STREAM_READS = tuple(FactRow(fact, f"/delta{place}", _INDEX) for fact, place in _DELTA)
READS = (
    FactRow("error", "/error"),
    FactRow("refusal", "/delta/stop_details/explanation"),
    *(FactRow(fact, holder + place) for holder in _HOLDERS for fact, place in _MESSAGE),
    FactRow("text", "/content"),
    *(FactRow(fact, f"{holder}/content/*{place}") for holder in _HOLDERS for fact, place in _BLOCK),
    *(FactRow(fact, f"/content_block{place}", _INDEX) for fact, place in _BLOCK),
    *STREAM_READS,
)


# -- Content blocks -> parts: one block, read whole or grown from deltas ---------------------------------------------
# What of a block becomes a part, and what stays verbatim.


class MessageBlock(StreamedPart):
    """A block of a stream while it arrives. `delta`, `field` and `append` serve the most frequent deltas."""

    __slots__ = ("citations", "delta", "field", "fields", "grown", "source", "type")

    def __init__(self, fields: dict[str, Any], source: str | None, start: int, *, orphan: bool) -> None:
        super().__init__(start, orphan=orphan)
        self.type = str(fields.get("type"))
        kind = KINDS.get(self.type)
        self.delta, self.field = (kind.delta, kind.field) if kind else ("", "")
        self.fields, self.source = fields, source
        self.citations: list[Any] = []
        self.grown = False
        first = fields.get("input" if kind and kind.call else self.field)
        if isinstance(first, str):
            self.append(first)  # a gateway may send the beginning, or all, with the block itself

    def began_with(self, fields: dict[str, Any], source: str | None) -> bool:
        """Whether the block began with these fields, and nothing else of it has arrived."""
        return self.source == source and self.fields == fields and not (any(self.chunks) or self.citations)

    def extend(self, delta: Mapping[str, Any]) -> bool:
        """Reads a delta without the block's own characters; returns False if it does not belong here."""
        kind = delta.get("type")
        if self.type == "thinking" and kind == "signature_delta":
            self.fields["signature"] = delta.get("signature")
        elif self.type == "text" and kind == "citations_delta":
            self.citations.append(delta.get("citation"))
        elif self.type not in STORED_FIELDS:
            # compaction_delta and unknown deltas: strings grow, other values are set.
            self.grown = True
            for name, value in delta.items():
                before = self.fields.get(name)
                if name != "type" and value is not None:
                    self.fields[name] = before + value if isinstance(before, str) and isinstance(value, str) else value
        else:
            return False
        return True

    def parts(self, limit: int) -> list[ResponsePart]:
        """The parts of the block; a call that never closed reaches to `limit`."""
        fields, text = self.fields, "".join(self.chunks)
        if self.citations:
            before = fields.get("citations")
            fields = {**fields, "citations": [*(before if isinstance(before, list) else ()), *self.citations]}
        kind = KINDS.get(self.type)
        if kind is None or kind.call is None:
            return _plain(self.type, fields, text, lambda: None if self.grown else self.source)
        arguments, form = self._arguments(text)
        call = _call(kind.call, fields, arguments, form, self.closed, self.place(limit, "/content_block"))
        if not text and fields.get("input") == {}:
            call = call._replace(arguments_unsent=True)  # every block begins with `{}`, and no input followed
        if text and kind.call is CallKind.FUNCTION:
            call = call._replace(other_arguments=conflicting_arguments(fields.get("input"), text))
        return [call, *_fields(self.type, fields)]

    def _arguments(self, text: str) -> tuple[str | None, ArgsForm]:
        if text:
            return text, ArgsForm.STRING
        call_input = self.fields.get("input")
        if call_input is None:
            return None, ArgsForm.STRING
        if isinstance(call_input, str) or (not self.closed and not call_input):
            # In an open block `{}` means that no input has arrived; as arguments it would be a complete call.
            return "", ArgsForm.STRING
        return (slice_of(self.source, "input") if self.source else None) or compact(call_input), ArgsForm.OBJECT


def read_block(fields: Any, closed: bool, at: At, slice_at: Callable[..., str | None]) -> list[ResponsePart]:
    """The parts of one block of a whole body; `slice_at` gives the verbatim JSON at a path inside it."""
    type_ = str(fields.get("type"))
    kind = KINDS.get(type_)
    if kind is None or kind.call is None:
        text = fields.get(kind.field) if kind else ""
        if not isinstance(text, str):
            return [OpaquePart(type_, slice_at() or compact(fields))]
        return _plain(type_, fields, text, slice_at)
    call_input, form = fields.get("input"), ArgsForm.OBJECT
    arguments: str | None = None
    if isinstance(call_input, str):
        arguments, form = call_input, ArgsForm.STRING
    elif call_input is not None:
        arguments = slice_at("input") or compact(call_input)
    return [_call(kind.call, fields, arguments, form, closed, at), *_fields(type_, fields)]


def _plain(
    type_: str, fields: Mapping[str, Any], text: str, source: Callable[[], str | None]
) -> list[ResponsePart]:
    part: ResponsePart
    if type_ == "text":
        part = TextPart(text)
    elif type_ == "thinking":
        signature = fields.get("signature")
        part = ReasoningPart(text, signature if isinstance(signature, str) and signature else None)
    elif type_ == "redacted_thinking" and isinstance(fields.get("data"), str):
        part = ReasoningPart("", data=fields["data"])
    else:
        return [OpaquePart(type_, source() or compact(fields))]
    return [part, *_fields(type_, fields)]


def _call(
    kind: CallKind, fields: Mapping[str, Any], arguments: str | None, form: ArgsForm, closed: bool, at: At
) -> ToolCall:
    return ToolCall(string(fields.get("id")), string(fields.get("name")) or "", arguments, closed, kind, form, at=at)


def _fields(type_: str, fields: Mapping[str, Any]) -> list[ResponsePart]:
    stored_names = STORED_FIELDS[type_]
    rest = {name: value for name, value in fields.items() if name not in stored_names and value not in (None, [], {})}
    if rest.get("caller") == {"type": "direct"}:  # the API's default
        del rest["caller"]
    if not rest and type_ != "mcp_tool_use":
        return []
    return [OpaquePart(type_ + FIELDS, compact(rest, sort=True))]


# -- Fallback blocks, with which a model hands over to another one inside an answer; they stay verbatim --------------

BLOCK = "fallback"
ITERATION = "fallback_message"
"""The type of an entry of `usage.iterations` for the work of a fallback model (anthropic 2.12.0)."""


def iterations_differ(iterations: Any) -> bool:
    """Whether usage per iteration differs from the total usage."""
    return isinstance(iterations, list) and (len(iterations) > 1 or bool(_fallback_models(iterations)))


def declined_calls(parts: Sequence[ResponsePart]) -> list[ToolCall]:
    """The calls of models that handed over to a fallback model. They must not be answered, so they are not calls of the
    response."""
    last = max((i for i, part in enumerate(parts) if _is_seam(part)), default=0)
    return [part for part in parts[:last] if type(part) is ToolCall and part.kind is CallKind.FUNCTION]


def answer_parts(parts: Sequence[ResponsePart]) -> list[ResponsePart]:
    """The parts without declined calls and without the fields that belong to them."""
    gone = {id(call) for call in declined_calls(parts)}
    answer: list[ResponsePart] = []
    for before, part in zip((None, *parts), parts, strict=False):
        extends = type(part) is OpaquePart and part.type.endswith(FIELDS) and id(before) in gone
        if id(part) not in gone and not extends:
            answer.append(part)
    return answer


def remarks(
    parts: Sequence[ResponsePart], iterations: Any, places: Sequence[At], end: At
) -> Iterator[tuple[str, str, At]]:
    """The findings that say which model wrote which part, one for each handover at its block; `end` is the place for an
    answer without blocks."""
    seams = [i for i, part in enumerate(parts) if _is_seam(part)]
    for number, (at, place) in enumerate(zip(seams, places, strict=False)):
        block = _value(parts[at])
        before, after = _model(block, "from"), _model(block, "to")
        begin = seams[number - 1] + 1 if number else 0
        characters = sum(len(part.text) for part in parts[begin:at] if type(part) is TextPart)
        whose = f"{characters:,} characters before this seam are its, what follows is by {after}"
        spent = _describe_iterations(iterations) if number == len(seams) - 1 else ""
        yield BLOCK, f"{before} gave way to {after}{_trigger(block)}: {whose}{spent}", place
    if not seams:
        for model in _fallback_models(iterations)[-1:]:
            yield BLOCK, f"the answer is by the fallback model {model}{_describe_iterations(iterations)}", end
    for call in declined_calls(parts):
        yield "fallback_call", f"the call {call.name} is of a model that gave way, and is left out", call.at or end


def handovers(parts: Sequence[ResponsePart]) -> list[tuple[int, str]]:
    """The handovers inside one answer: the index of the character at which another model continues, and a text that
    names both models."""
    found: list[tuple[int, str]] = []
    position = 0
    for part in parts:
        if type(part) is TextPart:
            position += len(part.text)
        elif _is_seam(part):
            block = _value(part)
            found.append((position, f"{_model(block, 'from')} gave way to {_model(block, 'to')}{_trigger(block)}"))
    return found


def _is_seam(part: ResponsePart) -> bool:
    return type(part) is OpaquePart and part.type == BLOCK


def _value(part: ResponsePart) -> Mapping[str, Any]:
    return mapping_of(read_object(part.json) if type(part) is OpaquePart else None)


def _model(block: Mapping[str, Any], side: str) -> str:
    return word(mapping_of(block.get(side)).get("model")) or "a model without a name"


def _trigger(block: Mapping[str, Any]) -> str:
    trigger = mapping_of(block.get("trigger"))
    named = ", ".join(filter(None, (word(trigger.get("type")), word(trigger.get("category")))))
    return f" ({named})" if named else ""


def _fallback_models(iterations: Any) -> list[str]:
    """The names of the fallback models that made an answer, from the usage per iteration."""
    usages = [mapping_of(each) for each in list_of(iterations)]
    return [str(usage.get("model")) for usage in usages if usage.get("type") == ITERATION]


def _describe_iterations(iterations: Any) -> str:
    counts = [integer(mapping_of(each).get("output_tokens")) for each in list_of(iterations)]
    sums = " + ".join(f"{count:,}" for count in counts if count is not None)
    return f"; output tokens by iteration: {sums}" if sums else ""

"""Describes the Responses format as data: stop words, which items the client must answer, paths, fields that cannot be
carried.

Bytes are read in `decode`. The native word is the status, with its reason if it has one:
`incomplete:max_output_tokens`. The last section says which values become which facts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loop_core.values import Request, Stop
from loop_core.wire.failures import StopRow
from loop_core.wire.reads import FactRow

API = "openai_responses"

_STATUS = "openai 3.54.0 types/responses/response_status.py"
_REASON = "openai 3.54.0 types/responses/response.py IncompleteDetails"

STOP_REASONS: Mapping[str, StopRow] = {
    "completed": StopRow(Stop.END_TURN, None, _STATUS),
    "incomplete": StopRow(Stop.INTERRUPTED, None, f"{_STATUS}; the reason is null: a cut of any kind (hermes #91770)"),
    "incomplete:max_output_tokens": StopRow(Stop.MAX_TOKENS, None, _REASON),
    "incomplete:length": StopRow(Stop.MAX_TOKENS, None, "Volcengine Ark and others (earendil-works/pi PR#7817)"),
    "incomplete:max_messages": StopRow(Stop.MAX_TOKENS, "max_messages", _REASON),
    "incomplete:content_filter": StopRow(Stop.SAFETY_BLOCKED, "content_filter", _REASON),
    "incomplete:steered": StopRow(Stop.PAUSED, "server", f"{_REASON}: the server makes the successor itself"),
    "failed": StopRow(Stop.ERROR, "fatal", _STATUS),
    "cancelled": StopRow(Stop.CANCELLED, None, _STATUS),
    "queued": StopRow(Stop.PAUSED, "poll", f"{_STATUS}: only background responses wait"),
    "in_progress": StopRow(Stop.INTERRUPTED, None, f"{_STATUS}: in the foreground the stream ended early"),
    "output.status:incomplete": StopRow(Stop.MAX_TOKENS, "item", "openai response_function_tool_call.py"),
    "refusal": StopRow(Stop.SAFETY_BLOCKED, "refusal", "openai types/responses/response_output_refusal.py"),
    "content_filters.blocked": StopRow(Stop.SAFETY_BLOCKED, "content_filters", "Azure: content_filters[].blocked"),
}
"""Native word -> mapped reason. The last three keys are contents that outrank `completed`."""

BACKGROUND: Mapping[str, StopRow] = {
    "in_progress": StopRow(Stop.PAUSED, "poll", f"{_STATUS}: a background response is still being made"),
}
"""Native word -> mapped reason, for words with another meaning in a response that was requested in the background."""

PENDING = frozenset({"queued", "in_progress"})
"""The statuses of a response before its end. No event except the last may have any other status."""

KEEPALIVE = "keepalive"
"""The type of an event that only keeps the connection open. OpenAI numbers it like other events; a gateway that adds
one may use any number."""
BEGIN = "response.created"

TERMINAL_EVENTS: Mapping[str, str] = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
    "response.done": "",  # of gateways (oh-my-pi PR#4692)
}
"""Event that ends a response -> its status; empty if only the response object holds it."""

CLIENT_ITEMS: Mapping[str, str] = {
    "computer_call": "computer",
    "local_shell_call": "local_shell",
    "shell_call": "shell",
    "apply_patch_call": "apply_patch",
    "tool_search_call": "tool_search",
    "mcp_approval_request": "mcp_approval_request",
}
"""Type of an item that waits for the client -> the tool's name (openai types/responses/response_output_item.py).

The whole JSON of such an item is the payload. `shell_call` and `tool_search_call` can also be run by the provider: see
`runs_itself`.
"""

SERVER_ITEMS: Mapping[str, str] = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
    "mcp_call": "mcp",
    "program": "program",
    "x_search_call": "x_search",
}
"""Type of an item that the provider runs itself -> the tool's name; `x_search_call` is xAI's."""

KNOWN_RESULTS = frozenset({
    "compaction", "mcp_list_tools", "tool_search_output", "program_output", "shell_call_output",
    "local_shell_call_output", "computer_call_output", "apply_patch_call_output", "function_call_output",
    "custom_tool_call_output", "additional_tools", "mcp_approval_response",
})
"""The types of items that are not calls; they are kept verbatim."""

DELTAS: Mapping[str, tuple[str, str]] = {
    "response.output_text.delta": ("text", "content_index"),
    "response.refusal.delta": ("refusal", "content_index"),
    "response.function_call_arguments.delta": ("arguments", ""),
    "response.custom_tool_call_input.delta": ("input", ""),
    "response.reasoning_summary_text.delta": ("summary", "summary_index"),
    "response.reasoning_text.delta": ("reasoning", "content_index"),
}
"""Event that carries a piece -> the field that the piece belongs to, and the member with the index of the part."""

DONES: Mapping[str, tuple[str, str, str]] = {
    kind.replace(".delta", ".done"): (field, index, "text" if field in ("summary", "reasoning") else field)
    for kind, (field, index) in DELTAS.items()
}
"""Event that repeats a whole field -> the field, and the members with the index of the part and with the value."""

ITEM_OF_FIELD: Mapping[str, str] = {
    "text": "message", "refusal": "message", "arguments": "function_call", "input": "custom_tool_call",
    "summary": "reasoning", "reasoning": "reasoning",
}
"""Field -> the type of the item that has it, for servers that send pieces of an item without announcing it."""

LOSES: Mapping[str, str] = {
    "reasoning.signature": "reasoning is given back by its id and encrypted content",
    "call.signature": "a call is given back by its id",
    "continuation_token": "a response is continued by its id",
}

PATHS: tuple[re.Pattern[str], ...] = (
    re.compile(r"/responses/?(?:$|[?#])"),
    re.compile(r"/responses/resp_[^/?#]+(?:/cancel)?/?(?:$|[?#])"),  # a background response, polled or cancelled
)


def is_chained(request: Request) -> bool:
    """Whether the server keeps the history, so that each request continues the response before it."""
    stored = request.extra.get("store") is True or request.extra.get("conversation") is not None
    return stored or request.background or request.previous_id is not None


def runs_itself(item: Mapping[str, Any], result_ids: frozenset[str]) -> bool:
    """Whether the provider ran an item that the client could also run; `result_ids` are the call ids with an output."""
    call_id = item.get("call_id")
    if call_id and isinstance(call_id, str) and call_id in result_ids:
        return True
    if item.get("execution") == "server":
        return True
    environment = item.get("environment")
    return isinstance(environment, Mapping) and environment.get("type") == "container_reference"


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON object is a response of this format or an event of its stream."""
    if value.get("object") == "response":
        return "status" in value or "output" in value
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    if kind.startswith("response."):
        return isinstance(value.get("response"), Mapping) or "output_index" in value or "item_id" in value
    return kind == "error" and "sequence_number" in value  # Anthropic's errors have no number


# -- Which values of a Responses body or event become which facts ----------------------------------------------------
# A value that an event repeats as a whole has a group of its own: it is a repetition, or the only copy.

_FACTS = {"text": "text", "refusal": "refusal", "summary": "reasoning", "reasoning": "reasoning",
          "arguments": "call.arguments", "input": "call.arguments"}
"""Field of an item -> the fact that it becomes."""
_HOLDERS: tuple[str, ...] = ("", "/response")
"""The JSON pointers of a response: the whole body, or the member of an event."""
_RESPONSE: tuple[tuple[str, str], ...] = (
    ("id", "/id"),
    ("model", "/model"),
    ("error", "/error"),
    ("stop_reason", "/status"),
    ("usage.input_tokens", "/usage/input_tokens"),
    ("usage.output_tokens", "/usage/output_tokens"),
    ("usage.reasoning_tokens", "/usage/output_tokens_details/reasoning_tokens"),
    # A server may count thinking separately; then the output is the sum of both.
    ("usage.output_tokens", "/usage/output_tokens_details/reasoning_tokens"),
    ("usage.cached_tokens", "/usage/input_tokens_details/cached_tokens"),
    ("usage.cache_write_tokens", "/usage/input_tokens_details/cache_write_tokens"),
)
_ITEMS: tuple[str, ...] = ("/item", "/output/*", "/response/output/*")
_ITEM: tuple[tuple[str, str], ...] = (
    ("text", "/content"),
    ("text", "/content/*/text"),
    ("refusal", "/content/*/refusal"),
    ("reasoning", "/content/*/text"),
    ("reasoning", "/content"),
    ("reasoning", "/summary/*/text"),
    ("reasoning", "/summary"),
    ("call.id", "/call_id"),
    ("call.id", "/id"),
    ("call.name", "/name"),
    ("call.arguments", "/arguments"),
    ("call.arguments", "/input"),
    ("call.arguments", ""),
)
"""Fact -> its place in an item. The last row is for items of a provider's tool, whose payload is the whole item."""


def _index(field: str, name: str) -> tuple[str, ...]:
    """The index that separates texts: each part of a message is one text; all parts of a thought are one."""
    return ("/output_index", f"/{name}") if field in ("text", "refusal") else ("/output_index",)


STREAM_READS = tuple(FactRow(_FACTS[field], "/delta", _index(field, name), kind, field)
                     for kind, (field, name) in DELTAS.items())
READS: tuple[FactRow, ...] = (
    *STREAM_READS,
    *(FactRow(_FACTS[field], f"/{value}", _index(field, name), kind, f"{field} done")
      for kind, (field, name, value) in DONES.items()),
    *(FactRow(fact, holder + place) for holder in _HOLDERS for fact, place in _RESPONSE),
    *(FactRow(fact, item + place, group=item + place) for item in _ITEMS for fact, place in _ITEM),
)

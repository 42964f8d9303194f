"""How a server of Messages is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loop_core.wire.serving import (
    Calls,
    Carried,
    Event,
    Moment,
    Own,
    Refused,
    Serving,
    Spelling,
    Told,
    fails,
    say,
    spent,
)

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: say("end_turn"),
    Moment.CALLED: say("tool_use"),
    **spent("max_tokens", full="model_context_window_exceeded"),
    Moment.FILTERED: say("refusal"),
    Moment.PAUSED: say("pause_turn"),
    Moment.MALFORMED: say("tool_use"),
    Moment.FAILED: fails(None, "Overloaded", "overloaded_error"),
    Moment.BROKEN: say(None, Carried.OPEN),
}
CANNOT: Mapping[str, str] = {
    "malformed_call whole": "arguments are an object",
    "commentary": "its messages have no phase",
    "empty_choices": "it has no choices",
    "done_without_reason": "the end has no mark of its own",
    "wandering_index": "the later pieces of a call carry no id",
    "fresh_ids": "the later pieces of a call carry no id",
}
ERRORS: Mapping[int, str] = {
    400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error", 500: "api_error", 503: "api_error",
    529: "overloaded_error",
}


def _text(name: str | None, value: Event) -> tuple[Event, str]:
    return (value["delta"], "text") if name == "content_block_delta" else ({}, "")


def _told(value: Event) -> Sequence[Event]:
    return (value.get("delta", value),)


def _indexes(value: Event) -> Sequence[tuple[Event, str]]:
    return [(value, "index")] if "index" in value else []


def _refused(refused: Refused) -> Event:
    return {"type": "error", "error": {"type": refused.kind, "message": refused.message}}


SERVING = Serving(
    own=Own("anthropic", "claude-sonnet-4-5", "anthropic 2.12.0 types/stop_reason.py", whole="cynative PR#283"),
    base="",
    client='anthropic.Anthropic(base_url="{base}", api_key="any")',
    says=SAYS,
    text=_text,
    told=Told(_told, ("stop_reason",), null=True),
    calls=Calls.BLOCKS,
    answer_id="msg_{}",
    call_id="toolu_{}",
    counts_early=True,
    indexes=_indexes,
    errors=ERRORS,
    refused=_refused,
    stops=("stop_sequences",),
    stopped="stop_sequence",
    stopped_field="stop_sequence",
    cannot=CANNOT,
)

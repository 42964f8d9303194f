"""How a server of Responses is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loop_core.wire.openai_responses.table import TERMINAL_EVENTS
from loop_core.wire.serving import (
    Calls,
    Event,
    Moment,
    Own,
    Serving,
    Spelling,
    Told,
    fails,
    itself,
    say,
    spent,
)

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: say("completed"),
    Moment.CALLED: say("completed"),
    **spent("incomplete:max_output_tokens", full="incomplete:max_output_tokens"),
    Moment.FILTERED: say("incomplete:content_filter"),
    Moment.PAUSED: Spelling("in_progress", whole=True),
    Moment.MALFORMED: say("completed"),
    Moment.FAILED: fails("failed", "The server had an error while processing the request.", code="server_error"),
    Moment.BROKEN: say(None),
}
CANNOT: Mapping[str, str] = {
    "paused stream": "only a whole response waits",
    "no_call": "it has no word of its own for calls",
    "fallback": "it has no block that tells of it",
    "empty_choices": "it has no choices",
    "done_without_reason": "the end has no mark of its own",
    "wandering_index": "the later pieces of a call carry no id",
    "fresh_ids": "the later pieces of a call carry no id",
}
ENDS: Mapping[str, str] = {"context_full": "completed", "no_reason stream": "interrupted"}


def _text(name: str | None, value: Event) -> tuple[Event, str]:
    return (value, "delta") if name == "response.output_text.delta" else ({}, "")


def _indexes(value: Event) -> Sequence[tuple[Event, str]]:
    return [(value, "output_index")] if "output_index" in value else []


SERVING = Serving(
    own=Own("openai", "gpt-5-mini", "openai 3.54.0 types/responses/response.py"),
    base="/v1",
    client='openai.OpenAI(base_url="{base}", api_key="any")',
    says=SAYS,
    text=_text,
    told=Told(itself, ("status", "incomplete_details"), null=True, events=frozenset(TERMINAL_EVENTS)),
    calls=Calls.ITEMS,
    answer_id="resp_{}",
    call_id="call_{}",
    thought_id="rs_{}",
    counts_all=True,
    indexes=_indexes,
    unknown="incomplete:{}",
    poll=r"/responses/(?P<id>resp_[^/?#]+)$",
    cannot=CANNOT,
    ends=ENDS,
)

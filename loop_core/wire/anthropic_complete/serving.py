"""How a server of Anthropic's text completions is played: its words, and what it demands of a request."""

from __future__ import annotations

from collections.abc import Mapping

from loop_core.wire.anthropic_messages.serving import ERRORS, refused
from loop_core.wire.demands import Demands, Member
from loop_core.wire.serving import (
    ONLY_TEXT,
    Event,
    Moment,
    OwnServer,
    RequestId,
    Serving,
    Spelling,
    StopPlace,
    fails,
    itself,
    say,
)

COMPLETE_SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: say("stop_sequence"),  # where the model ends by itself, a turn of the human is the string
    Moment.CUT: say("max_tokens"),
    Moment.FULL: say("max_tokens"),
    Moment.FAILED: fails(None, "Overloaded", "overloaded_error"),
}
COMPLETE_CANNOT: Mapping[str, str] = {
    **ONLY_TEXT,
    "filtered": "it has no word for a filter",
    "empty_choices": "it has no choices",
    "done_without_reason": "the end has no mark of its own",
}
COMPLETE_ENDS: Mapping[str, str] = {
    "context_full": "completed", "echoed": "no_progress", "no_reason stream": "interrupted",
}


def _completion_text(name: str | None, value: Event) -> tuple[Event, str]:
    return value, "completion"


# -- What it demands -------------------------------------------------------------------------------------------------
# Members: anthropic 0.125.0 types/completion_create_params.py. That a prompt begins with "\n\nHuman:" is not asked for.

COMPLETE_MEMBERS: tuple[Member, ...] = (
    Member("model", "string", required=True),
    Member("prompt", "string", required=True),
    Member("max_tokens_to_sample", "integer", required=True, least=1),
    Member("stop_sequences", "array"),
    Member("stop_sequences[]", "string"),
    Member("stream", "boolean"),
    Member("temperature", "number", least=0, most=1),
    Member("top_p", "number", least=0, most=1),
    Member("top_k", "integer", least=0),
    Member("metadata", "object"),
)

SERVING = Serving(
    own=OwnServer("anthropic", "claude-2.1", "anthropic 0.125.0 types/completion.py"),
    base="",
    client='anthropic.Anthropic(base_url="{base}", api_key="any").completions',
    says=COMPLETE_SAYS,
    text=_completion_text,
    stop_place=StopPlace(itself, ("stop_reason",), null=True),
    answer_id="compl_{}",
    errors=ERRORS,
    error_body=refused,
    stops=("stop_sequences",),
    stop_string_word="stop_sequence",
    stopped_field="stop",
    cannot=COMPLETE_CANNOT,
    ends=COMPLETE_ENDS,
    demands=Demands(COMPLETE_MEMBERS),
    request_id=RequestId("request-id", "req_01{:.22}".format, in_errors=True),
)

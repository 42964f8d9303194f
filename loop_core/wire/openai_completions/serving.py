"""How a server of OpenAI's legacy completions is played: its words, and what it demands of a request."""

from __future__ import annotations

from collections.abc import Mapping

from loop_core.wire.demands import Demands, Member, Rule, Telling
from loop_core.wire.openai_chat.serving import SAMPLING, choices, dated, model_named, stream_options
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
    say,
)

COMPLETIONS_SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: say("stop"),
    Moment.CUT: say("length"),
    Moment.FULL: say("length"),
    Moment.FILTERED: say("content_filter"),
    Moment.FAILED: fails(None, "The server had an error while processing the request.", "server_error"),
}
COMPLETIONS_CANNOT: Mapping[str, str] = {
    **ONLY_TEXT,
    "done_without_reason whole": "a whole body has no mark",
}
COMPLETIONS_ENDS: Mapping[str, str] = {"context_full": "completed", "echoed": "no_progress"}


def _completion_text(name: str | None, value: Event) -> tuple[Event, str]:
    return value["choices"][0], "text"


# -- What it demands -------------------------------------------------------------------------------------------------
# Members and ranges: openai 3.54.0 types/completion_create_params.py and its API reference.

COMPLETIONS_MEMBERS: tuple[Member, ...] = (
    Member("prompt", "string|array", required=True, most=1),
    Member("prompt[]", "string"),
    *SAMPLING,
    Member("best_of", "integer", least=1, only=(1,)),
    Member("echo", "boolean", only=(False,)),
    Member("logprobs", "integer", only=()),
    Member("suffix", "string", only=()),
)


COMPLETIONS_RULES: tuple[Rule, ...] = (
    Rule("model", model_named, "as in Chat Completions"),
    Rule("stream_options", stream_options, "API reference: only set this when you set stream: true"),
)

SERVING = Serving(
    own=OwnServer("openai", "gpt-3.5-turbo-instruct", "openai 3.54.0 types/completion_choice.py"),
    base="/v1",
    client='openai.OpenAI(base_url="{base}", api_key="any").completions',
    says=COMPLETIONS_SAYS,
    text=_completion_text,
    stop_place=StopPlace(choices, ("finish_reason",), null=True),
    answer_id="cmpl-{}",
    stops=("stop",),
    cannot=COMPLETIONS_CANNOT,
    ends=COMPLETIONS_ENDS,
    demands=Demands(COMPLETIONS_MEMBERS, COMPLETIONS_RULES, Telling.CODES),
    request_id=RequestId("x-request-id", "req_{}".format),
    set_times=dated,
)

"""How Ollama is played."""

from __future__ import annotations

from collections.abc import Mapping

from loop_core.wire.serving import (
    Carried,
    Event,
    Moment,
    Own,
    Refused,
    Serving,
    Spelling,
    Told,
    fails,
    itself,
    say,
    spent,
)

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: say("stop"),
    Moment.CALLED: say("stop"),
    **spent("length", full="length"),
    Moment.FAILED: fails(None, "an error was encountered while running the model", retryable=False),
    Moment.BROKEN: say(None),
}
CANNOT: Mapping[str, str] = {
    "filtered": "it has no word for a filter",
    "paused": "it has no word for a pause",
    "malformed_call": "a call that is no JSON is not sent",
    "no_call": "it has no word of its own for calls",
    "fallback": "it has no block that tells of it",
    "commentary": "its messages have no phase",
    "empty_choices": "it has no choices",
    "no_index": "calls have no index",
    "one_index": "calls have no index",
    "wandering_index": "a call comes whole",
    "fresh_ids": "a call comes whole",
}
ENDS: Mapping[str, str] = {"context_full": "completed", "refused_repair": "completed"}


def _text(name: str | None, value: Event) -> tuple[Event, str]:
    return value["message"], "content"


def _refused(refused: Refused) -> Event:
    return {"error": refused.message}


SERVING = Serving(
    own=Own("ollama", "qwen3:8b", "ollama llm/server.go DoneReason; TradingAgents#168",
            "a cut call vanishes; length for num_predict and num_ctx alike"),
    base="",
    client='ollama.Client(host="{base}")',
    says=SAYS,
    text=_text,
    told=Told(itself, ("done_reason",)),
    carried=Carried.DROPPED,
    calls_last=True,
    ends_without=True,
    errors={},
    refused=_refused,
    stops=("options", "stop"),
    cannot=CANNOT,
    ends=ENDS,
)

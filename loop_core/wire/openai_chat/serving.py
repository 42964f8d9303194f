"""How a server of chat completions is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loop_core.wire.serving import Event, Moment, Own, Serving, Spelling, Told, fails, say, spent

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: say("stop"),
    Moment.CALLED: say("tool_calls"),
    **spent("length", full="length"),
    Moment.FILTERED: say("content_filter"),
    Moment.MALFORMED: say("tool_calls"),
    Moment.FAILED: fails(None, "The server had an error while processing the request.", "server_error"),
    Moment.BROKEN: say(None),
}
CANNOT: Mapping[str, str] = {
    "paused": "it has no word for a pause",
    "fallback": "it has no block that tells of it",
    "commentary": "its messages have no phase",
    "done_without_reason whole": "a whole body has no mark",
}
ENDS: Mapping[str, str] = {"context_full": "completed"}


def _text(name: str | None, value: Event) -> tuple[Event, str]:
    return value["choices"][0]["delta"], "content"


def _choices(value: Event) -> Sequence[Event]:
    return value.get("choices") or ()


def _indexes(value: Event) -> Sequence[tuple[Event, str]]:
    return [(call, "index") for choice in _choices(value) for call in choice.get("delta", {}).get("tool_calls", ())]


SERVING = Serving(
    own=Own("openai", "gpt-4o-mini", "openai 3.54.0 types/chat/chat_completion.py"),
    base="/v1",
    client='openai.OpenAI(base_url="{base}", api_key="any")',
    says=SAYS,
    text=_text,
    told=Told(_choices, ("finish_reason", "native_finish_reason"), null=True),
    answer_id="chatcmpl-{}",
    call_id="call_{}",
    indexes=_indexes,
    stops=("stop",),
    cannot=CANNOT,
    ends=ENDS,
)

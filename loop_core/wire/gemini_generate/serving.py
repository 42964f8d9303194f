"""How a server of generateContent is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loop_core.wire.serving import (
    GOOGLE_ERRORS,
    Carried,
    Event,
    Moment,
    Own,
    Serving,
    Spelling,
    Told,
    fails,
    google_error,
    say,
    spent,
)

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: say("STOP"),
    Moment.CALLED: say("STOP"),
    **spent("MAX_TOKENS"),
    Moment.FILTERED: say("SAFETY"),
    Moment.PAUSED: Spelling("CONTINUATION", token="Y29udGludWU="),  # noqa: S106  a place in an answer, no secret
    Moment.MALFORMED: say("MALFORMED_FUNCTION_CALL", Carried.DROPPED, finishMessage="Malformed function call"),
    Moment.FAILED: fails(None, "The model is overloaded.", "UNAVAILABLE", "503"),
    Moment.BROKEN: say(None),
}
CANNOT: Mapping[str, str] = {
    "context_full": "it has no word for a full context",
    "no_call": "it has no word of its own for calls",
    "fallback": "it has no block that tells of it",
    "commentary": "its messages have no phase",
    "empty_choices": "it has no choices",
    "done_without_reason": "the end has no mark of its own",
    "no_index": "parts and calls have no index",
    "one_index": "parts and calls have no index",
    "wandering_index": "a call comes whole",
    "fresh_ids": "a call comes whole",
}
ENDS: Mapping[str, str] = {"refused_repair": "completed", "no_reason stream": "interrupted"}


def _text(name: str | None, value: Event) -> tuple[Event, str]:
    return value["candidates"][0]["content"]["parts"][0], "text"


def _told(value: Event) -> Sequence[Event]:
    return value.get("candidates") or ()


SERVING = Serving(
    own=Own("gemini", "gemini-2.5-flash", "wire notes", "a cut call is not sent"),
    base="",
    client='genai.Client(api_key="any", http_options={{"base_url": "{base}"}})',
    says=SAYS,
    text=_text,
    told=Told(_told, ("finishReason", "finishMessage")),
    carried=Carried.DROPPED,
    answer_id="{}",
    frame_end=b"\r\n\r\n",
    array_unless="alt=sse",
    errors=GOOGLE_ERRORS,
    refused=google_error,
    stops=("generationConfig", "stopSequences"),
    cannot=CANNOT,
    ends=ENDS,
)

"""How a server of Converse is played."""

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
    itself,
    say,
    spent,
)

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: say("end_turn"),
    Moment.CALLED: say("tool_use"),
    **spent("max_tokens", full="model_context_window_exceeded"),
    Moment.FILTERED: say("guardrail_intervened"),
    Moment.MALFORMED: say("malformed_tool_use"),
    Moment.FAILED: fails(None, "The model stream failed.", "modelStreamErrorException"),
    Moment.BROKEN: say(None, Carried.OPEN),
}
CANNOT: Mapping[str, str] = {
    "paused": "it has no word for a pause",
    "malformed_call whole": "arguments are an object",
    "fallback": "it has no block that tells of it",
    "commentary": "its messages have no phase",
    "empty_choices": "it has no choices",
    "done_without_reason": "the end has no mark of its own",
    "wandering_index": "the later pieces of a call carry no id",
    "fresh_ids": "the later pieces of a call carry no id",
}
ENDS: Mapping[str, str] = {"malformed_frame": "interrupted"}
ERRORS: Mapping[int, str] = {
    400: "ValidationException", 404: "ResourceNotFoundException", 429: "ThrottlingException",
    500: "InternalServerException", 503: "ServiceUnavailableException", 529: "ServiceUnavailableException",
}


def _text(name: str | None, value: Event) -> tuple[Event, str]:
    return (value["delta"], "text") if name == "contentBlockDelta" else ({}, "")


def _indexes(value: Event) -> Sequence[tuple[Event, str]]:
    return [(value, "contentBlockIndex")] if "contentBlockIndex" in value else []


def _refused(refused: Refused) -> Event:
    return {"message": refused.message, "__type": refused.kind}


SERVING = Serving(
    own=Own("bedrock", "anthropic.claude-sonnet-4-5", "goose#11838", "the block of a cut call may never end",
            whole="botocore 1.44.5 service-2.json: input is a document"),
    base="",
    client='boto3.client("bedrock-runtime", endpoint_url="{base}", region_name="us-east-1", '
           'aws_access_key_id="any", aws_secret_access_key="any")',
    says=SAYS,
    text=_text,
    told=Told(itself, ("stopReason",)),
    carried=Carried.OPEN,
    calls=Calls.BLOCKS,
    call_id="tooluse_{}",
    names_model=False,
    indexes=_indexes,
    errors=ERRORS,
    refused=_refused,
    error_header="x-amzn-errortype",
    stops=("inferenceConfig", "stopSequences"),
    stopped="stop_sequence",
    cannot=CANNOT,
    ends=ENDS,
)

"""Describes how the scripted provider plays Gemini's server, for generateContent and for Interactions: stop words, and
checks of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from loop_core.wire import serving
from loop_core.wire.demands import Body, Condition, Demands, JSONShape, Member, PathStyle, RequestError, inside, items
from loop_core.wire.gemini_generate.table import snake
from loop_core.wire.serving import CallFraming, CutCallForm, Event, Moment, PeerWords, Spelling

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: serving.say("STOP"),
    Moment.CALLED: serving.say("STOP"),  # also the word for calls (google-genai 3.4.0)
    **serving.budget_words("MAX_TOKENS"),  # no word of its own for a full context
    Moment.FILTERED: serving.say("SAFETY"),
    Moment.PAUSED: Spelling("CONTINUATION", token="Y29udGludWU="),  # noqa: S106  a place in an answer, no secret
    Moment.MALFORMED: serving.say("MALFORMED_FUNCTION_CALL", CutCallForm.DROPPED,
                                  finishMessage="Malformed function call"),
    Moment.FAILED: serving.fails(None, "The model is overloaded.", "UNAVAILABLE", "503"),
    Moment.BROKEN: serving.say(None),
}
PEERS: Mapping[str, PeerWords] = {
    "STOP": (("stop", "tool_calls"), ("stop", "tool-calls"), "stop", ("stop", "toolUse")),
    "MAX_TOKENS": (("length", "tool_calls"), "length", "length", "length"),
    "SAFETY": serving.PEER_FILTER,
    "MALFORMED_FUNCTION_CALL": ("stop", "error", "error", "error"),
    "CONTINUATION": ("length", "length", "length", "raises"),
}
CANNOT: Mapping[str, str] = {
    **serving.usual_reasons("context_full", "no_call", "fallback", "commentary", "empty_choices",
                            "done_without_reason"),
    "no_index": "parts and calls have no index",
    "one_index": "parts and calls have no index",
    **serving.WHOLE_CALLS,
}
ENDS: Mapping[str, str] = {"refused_repair": "completed", "no_reason stream": "interrupted"}


def _count(count: int) -> Event:
    return {"totalTokens": count, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": count}]}


# -- What it demands: it finds a field for every name, or refuses it -------------------------------------------------
# Members and values: google-genai 3.4.0 models.py (what it sends) and types.py, and the API reference. Names are read
# in both spellings, as the server does.

def spellings(name: str) -> Sequence[str]:
    """A name in camel case and in snake case."""
    return (name, snake(name))


_MEMBER_NAMES = (
    "contents", "tools", "toolConfig", "safetySettings", "systemInstruction", "generationConfig", "cachedContent",
    "model", "labels", "store", "serviceTier", "continuationToken", "modelArmorConfig", "outputConfig",
)
_SETTING_NAMES = (
    "temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "responseLogprobs", "logprobs",
    "presencePenalty", "frequencyPenalty", "seed", "responseMimeType", "responseSchema", "responseJsonSchema",
    "responseFormat", "routingConfig", "modelSelectionConfig", "responseModalities", "mediaResolution", "speechConfig",
    "audioTimestamp", "thinkingConfig", "imageConfig", "enableEnhancedCivicAnswers", "enableAffectiveDialog",
    "audioTranscriptionConfig", "translationConfig", "streamFunctionCallArguments",
)
MEMBER_NAMES = frozenset(spelled for name in _MEMBER_NAMES for spelled in spellings(name))
SETTING_NAMES = frozenset(spelled for name in (*_SETTING_NAMES, "_responseJsonSchema") for spelled in spellings(name))

MEMBERS: tuple[Member, ...] = (
    Member("contents", "array", required=True, least=1),
    Member("contents[].role", "string", among=("user", "model", "function")),
    Member("contents[].parts", "array|object", required=True, least=1),
    Member("contents[].parts[].text", "string"),
    Member("contents[].parts[].functionCall.name", "string", required=True),
    Member("contents[].parts[].functionCall.args", "object"),
    Member("contents[].parts[].functionResponse.name", "string", required=True),
    Member("contents[].parts[].functionResponse.response", "object", required=True),
    Member("systemInstruction", "object"),
    Member("safetySettings", "array"),
    Member("generationConfig.temperature", "number", least=0, most=2),
    Member("generationConfig.topP", "number", least=0, most=1),
    Member("generationConfig.topK", "number"),
    Member("generationConfig.maxOutputTokens", "integer", least=1),
    Member("generationConfig.candidateCount", "integer", only=(1,),
          hint="one answer is given, and several are asked for"),
    Member("generationConfig.stopSequences", "array", most=5),  # up to five (API reference)
    Member("generationConfig.stopSequences[]", "string"),
    Member("generationConfig.responseLogprobs", "boolean", only=(False,)),
    Member("generationConfig.logprobs", "integer", only=()),
    Member("generationConfig.responseMimeType", "string", among=("text/plain", "application/json")),
    Member("generationConfig.responseSchema", "object"),
    Member("tools[].functionDeclarations[].name", "string", required=True),
    Member("tools[].functionDeclarations[].parameters", "object"),
    Member("toolConfig.functionCallingConfig.mode", "string",
          among=("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")),
    Member("toolConfig.functionCallingConfig.allowedFunctionNames", "array"),
)


member = partial(inside, spellings=spellings)
"""Finds the value at the end of a path of names, each in either spelling."""


def _pairs(body: Body) -> RequestError | None:
    """Finds calls of a model's turn that the contents up to the model's next turn do not answer. Consecutive contents
    of the model are one turn, because Google's own client sends the pieces of a stream in this way."""
    called = answers = 0
    before: Any = None
    for _, content in items(body.get("contents")):
        role, parts = content.get("role"), [part for _, part in items(content.get("parts"))]
        if role == "model":
            if before != "model":
                if answers != called:
                    return _uneven()
                called = answers = 0
            called += sum(member(part, "functionCall") is not None for part in parts)
        else:
            answers += sum(member(part, "functionResponse") is not None for part in parts)
            if answers and not called:
                return RequestError("a function response turn must come immediately after a function call turn")
        before = role
    return _uneven() if before != "model" and answers != called else None


def _uneven() -> RequestError:
    return RequestError("the number of function response parts must be equal to the number of function call parts of "
                        "the function call turn")


def _choice(body: Body) -> RequestError | None:
    allowed = member(body, "toolConfig", "functionCallingConfig", "allowedFunctionNames") or ()
    names = [member(each, "name") for _, tool in items(body.get("tools"))
             for _, each in items(member(tool, "functionDeclarations"))]
    odd = next((name for name in allowed if name not in names), None)
    if odd is None:
        return None
    at = "toolConfig.functionCallingConfig.allowedFunctionNames"
    return RequestError(f"{at}: no function is declared as {str(odd)[:80]!r}", param=at)


def _schema_alone(body: Body) -> RequestError | None:
    schema = member(body, "generationConfig", "responseSchema")
    if schema is None or member(body, "generationConfig", "responseMimeType") == "application/json":
        return None
    return RequestError("generationConfig.responseSchema is only served with responseMimeType application/json")


CONDITIONS: tuple[Condition, ...] = (
    Condition("pairs", _pairs, "gemini-cli#5443, #7410, #4504"),
    Condition("choice", _choice, "API reference, FunctionCallingConfig: names should match FunctionDeclaration.name"),
    Condition("schema_alone", _schema_alone, "API reference, GenerationConfig.responseSchema: a compatible MIME type"),
)


def _json_shape(extra: Body) -> JSONShape | None:
    settings = member(extra, "generationConfig")
    for name in ("responseJsonSchema", "_responseJsonSchema"):  # the second is the API's internal name of it
        if member(settings, name) is not None:
            return JSONShape(f"generationConfig.{name}", member(settings, name))
    if member(settings, "responseSchema") is not None:
        return JSONShape("generationConfig.responseSchema", member(settings, "responseSchema"), "openapi")
    wanted = member(settings, "responseMimeType") == "application/json"
    return JSONShape("generationConfig.responseMimeType") if wanted else None


SERVING = serving.Serving(
    own=serving.OwnServer("gemini", "gemini-2.5-flash", "wire notes", "a cut call is not sent"),
    base="",
    client='genai.Client(api_key="any", http_options={{"base_url": "{base}"}})',
    says=SAYS,
    text=lambda name, value: (value["candidates"][0]["content"]["parts"][0], "text"),
    stop_place=serving.StopPlace(lambda value: value.get("candidates") or (), ("finishReason", "finishMessage")),
    call_form=CutCallForm.DROPPED,
    answer_id="{}",  # ids have no prefix
    frame_end=b"\r\n\r\n",  # Google ends lines so (recorded)
    array_unless="alt=sse",  # without it the stream is one JSON array (API reference)
    errors=serving.GOOGLE_ERRORS,
    error_body=serving.google_error,
    stops=("generationConfig", "stopSequences"),
    cannot=CANNOT,
    ends=ENDS,
    demands=Demands(MEMBERS, CONDITIONS, PathStyle.BRACKETS, spellings, {
        "": MEMBER_NAMES, "generationConfig": SETTING_NAMES, "generation_config": SETTING_NAMES}),
    json_shape=_json_shape,
    count=serving.TokenCount(re.compile(r"/models/(?P<model>[^/:?#]+):countTokens(?=$|[?#])"), _count,
                             # contents alone, or a whole request (API reference)
                             lambda body: body.get("generateContentRequest", body)),
    near=re.compile(r"/v1beta(?=[/?#]|$)|/models/[^/?#]+:"),
    client_header="x-goog-api-key",
    peers=PEERS,
)


# -- Interactions ----------------------------------------------------------------------------------------------------

INTERACTIONS_SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: serving.say("completed"),
    Moment.CALLED: serving.say("requires_action"),
    **serving.budget_words("incomplete"),  # no word of its own for a full context
    Moment.PAUSED: Spelling("requires_continuation", token="Y29udGludWU="),  # noqa: S106  a place, no secret
    Moment.MALFORMED: serving.say("requires_action"),
    Moment.FAILED: serving.fails(None, "The model is overloaded.", code="unavailable"),
    Moment.BROKEN: serving.say(None, CutCallForm.OPEN),  # the step's end is lost with the connection
}
INTERACTIONS_CANNOT: Mapping[str, str] = {
    **serving.usual_reasons("context_full", "filtered", "malformed_call whole", "empty_choices",
                            "done_without_reason whole", "wandering_index", "fresh_ids"),
    "fallback": "it has no step that reports it",
    "commentary": "its steps have no phase",
}
INTERACTIONS_ERRORS: Mapping[int, str] = {
    400: "invalid_request", 404: "not_found", 429: "resource_exhausted", 500: "internal", 503: "unavailable",
    529: "unavailable",
}

# Members and values: google-genai 3.4.0 _gaos/types/interactions: createmodelinteraction.py, generationconfig.py.
INTERACTIONS_MEMBERS: tuple[Member, ...] = (
    Member("input", "string|array|object"),
    Member("input[]"),  # an item may be a text too
    Member("input[].type", "string"),
    Member("system_instruction", "string"),
    Member("previous_interaction_id", "string"),
    Member("continuation_token", "string"),
    Member("stream", "boolean"),
    Member("background", "boolean"),
    Member("store", "boolean"),
    Member("generation_config.temperature", "number", least=0, most=2),
    Member("generation_config.top_p", "number", least=0, most=1),
    Member("generation_config.max_output_tokens", "integer", least=1),
    Member("generation_config.stop_sequences[]", "string"),
    Member("generation_config.tool_choice", "string|object"),
    Member("tools[].type", "string", required=True),
)


def _interactions_json_shape(extra: Body) -> JSONShape | None:
    wanted = extra.get("response_format")
    for each in wanted if isinstance(wanted, list) else [wanted]:
        schema = inside(each, "schema")
        if inside(each, "type") == "text" and (inside(each, "mime_type") == "application/json" or schema):
            return JSONShape("response_format", schema)
    return None


INTERACTIONS_SERVING = serving.Serving(
    own=serving.OwnServer("gemini", "gemini-3.5-flash", "google-genai 3.4.0 _gaos/types/interactions/interaction.py",
                          whole="google-genai 3.4.0 _gaos/types/interactions/functioncallstep.py: arguments is an "
                                "object"),
    base="",
    client='genai.Client(api_key="any", http_options={{"base_url": "{base}"}}).interactions',
    says=INTERACTIONS_SAYS,
    text=serving.text_in("step.delta", "delta", "text"),
    stop_place=serving.StopPlace(lambda value: (value.get("interaction", value),), ("status",)),
    calls=CallFraming.BLOCKS,
    answer_id="v1_{}",
    call_id="fc_{}",
    indexes=serving.index_under("index"),
    stops=("generation_config", "stop_sequences"),
    errors=INTERACTIONS_ERRORS,
    error_body=lambda refused: {"error": {"message": refused.message, "code": refused.kind}},
    poll=r"/interactions/(?P<id>v1_[^/?#]+)$",
    cannot=INTERACTIONS_CANNOT,
    demands=Demands(INTERACTIONS_MEMBERS),
    json_shape=_interactions_json_shape,
)

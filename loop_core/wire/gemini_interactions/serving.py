"""Describes how the scripted provider plays an Interactions server: stop words, and checks of a request."""

from __future__ import annotations

from collections.abc import Mapping

from loop_core.wire import serving
from loop_core.wire.demands import Body, Demands, JSONShape, Member, inside
from loop_core.wire.serving import CallFraming, CutCallForm, Moment, Spelling

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: serving.say("completed"),
    Moment.CALLED: serving.say("requires_action"),
    **serving.budget_words("incomplete"),  # no word of its own for a full context
    Moment.PAUSED: Spelling("requires_continuation", token="Y29udGludWU="),  # noqa: S106  a place, no secret
    Moment.MALFORMED: serving.say("requires_action"),
    Moment.FAILED: serving.fails(None, "The model is overloaded.", code="unavailable"),
    Moment.BROKEN: serving.say(None, CutCallForm.OPEN),  # the step's end is lost with the connection
}
CANNOT: Mapping[str, str] = {
    **serving.usual_reasons("context_full", "filtered", "malformed_call whole", "empty_choices",
                            "done_without_reason whole", "wandering_index", "fresh_ids"),
    "fallback": "it has no step that reports it",
    "commentary": "its steps have no phase",
}
ERRORS: Mapping[int, str] = {
    400: "invalid_request", 404: "not_found", 429: "resource_exhausted", 500: "internal", 503: "unavailable",
    529: "unavailable",
}


# -- What it demands -------------------------------------------------------------------------------------------------
# Members and values: google-genai 3.4.0 _gaos/types/interactions: createmodelinteraction.py, generationconfig.py.

MEMBERS: tuple[Member, ...] = (
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


def _json_shape(extra: Body) -> JSONShape | None:
    wanted = extra.get("response_format")
    for each in wanted if isinstance(wanted, list) else [wanted]:
        schema = inside(each, "schema")
        if inside(each, "type") == "text" and (inside(each, "mime_type") == "application/json" or schema):
            return JSONShape("response_format", schema)
    return None


SERVING = serving.Serving(
    own=serving.OwnServer("gemini", "gemini-3.5-flash", "google-genai 3.4.0 _gaos/types/interactions/interaction.py",
                          whole="google-genai 3.4.0 _gaos/types/interactions/functioncallstep.py: arguments is an "
                                "object"),
    base="",
    client='genai.Client(api_key="any", http_options={{"base_url": "{base}"}}).interactions',
    says=SAYS,
    text=serving.text_in("step.delta", "delta", "text"),
    stop_place=serving.StopPlace(lambda value: (value.get("interaction", value),), ("status",)),
    calls=CallFraming.BLOCKS,
    answer_id="v1_{}",
    call_id="fc_{}",
    indexes=serving.index_under("index"),
    stops=("generation_config", "stop_sequences"),
    errors=ERRORS,
    error_body=lambda refused: {"error": {"message": refused.message, "code": refused.kind}},
    poll=r"/interactions/(?P<id>v1_[^/?#]+)$",
    cannot=CANNOT,
    demands=Demands(MEMBERS),
    json_shape=_json_shape,
)

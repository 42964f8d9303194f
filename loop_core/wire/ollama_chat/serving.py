"""Describes how the scripted provider plays Ollama, chat and completions: stop words, and checks of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping

from loop_core.wire import serving
from loop_core.wire.demands import Body, Condition, Demands, JSONShape, Member, RequestError
from loop_core.wire.ollama_chat.decode import DURATIONS
from loop_core.wire.serving import CutCallForm, Event, Moment, PeerWords, Spelling

SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: serving.say("stop"),
    Moment.CALLED: serving.say("stop"),
    **serving.budget_words("length", full="length"),
    Moment.FAILED: serving.fails(None, "an error was encountered while running the model", retryable=False),
    Moment.BROKEN: serving.say(None),
}
PEERS: Mapping[str, PeerWords] = {
    "stop": (("stop", "tool_calls"), "", "stop", ""),
    "length": (("length", "tool_calls"), "", "length", ""),
    serving.PEER_ABSENT: ("stop", "", "none", ""),
}
CANNOT: Mapping[str, str] = {
    **serving.usual_reasons("filtered", "paused", "no_call", "fallback", "commentary", "empty_choices"),
    "malformed_call": "a call that is not JSON is not sent",
    "no_index": "calls have no index",
    "one_index": "calls have no index",
    **serving.WHOLE_CALLS,
}
ENDS: Mapping[str, str] = {"context_full": "completed", "refused_repair": "completed"}


def ollama_error(why: serving.RequestRefusal) -> Event:
    """The body of an error from Ollama."""
    return {"error": why.message}


def set_times(value: Event) -> bool:
    """Sets the time at which the answer was made, and at its end how long that took."""
    if "created_at" not in value:
        return False
    value["created_at"] = serving.DATE
    if value.get("done") is True:
        took = serving.nanoseconds(value, "prompt_eval_count", "eval_count")
        durations = dict(zip(DURATIONS, (sum(took), *took), strict=True))
        value.update({name: each for name, each in durations.items() if name in value})
    return True


# -- What it demands: it is lenient ----------------------------------------------------------------------------------
# Roles, pairs of calls and results, empty lists and unknown members are not checked; only values that its Go types
# cannot read are refused. Members: ollama 0.6.3 _types.py; the server's api/types.go. The real server ignores the four
# members of other APIs at the end of the table; here nothing that requests another answer is ignored.

MEMBERS: tuple[Member, ...] = (
    Member("model", "string", required=True),
    Member("messages[].role", "string"),
    Member("messages[].content", "string"),
    Member("messages[].thinking", "string"),
    Member("messages[].images", "array"),
    Member("messages[].tool_calls[].function.name", "string"),
    Member("messages[].tool_calls[].function.arguments", "object"),
    Member("tools[].function.parameters", "object"),
    Member("stream", "boolean"),
    Member("think", "boolean|string"),
    Member("format", "string|object"),
    Member("options.num_predict", "number"),
    Member("options.temperature", "number"),
    Member("options.stop[]", "string"),
    Member("logprobs", "boolean", only=(False,)),
    Member("top_logprobs", "integer", least=0, most=20, only=(0,)),
    Member("n", only=(1,), hint="one answer is given, and several are asked for"),
    Member("stop", only=(), hint="in Ollama's own API it is options.stop"),
    Member("response_format", only=(), hint="in Ollama's own API it is format"),
)


def _format(body: Body) -> RequestError | None:
    output_format = body.get("format")
    if isinstance(output_format, str) and output_format not in ("", "json"):
        return RequestError(f'invalid format: {output_format[:80]!r}; expected "json" or a JSON schema')
    return None


CONDITIONS: tuple[Condition, ...] = (
    Condition("format", _format, "server/routes.go and the API docs: json or a JSON schema"),
)


def json_shape(extra: Body) -> JSONShape | None:
    """The JSON that `format` asks for."""
    wanted = extra.get("format")
    return JSONShape("format", {"type": "object"} if wanted == "json" else wanted) if wanted else None


SERVING = serving.Serving(
    own=serving.OwnServer("ollama", "qwen3:8b", "ollama llm/server.go DoneReason; TradingAgents#168",
            "a cut call vanishes; length for num_predict and num_ctx alike"),
    base="",
    client='ollama.Client(host="{base}")',
    says=SAYS,
    text=lambda name, value: (value["message"], "content"),
    stop_place=serving.StopPlace(serving.itself, ("done_reason",)),
    call_form=CutCallForm.DROPPED,
    calls_last=True,
    ends_without=True,
    errors={},
    error_body=ollama_error,
    stops=("options", "stop"),
    cannot=CANNOT,
    ends=ENDS,
    demands=Demands(MEMBERS, CONDITIONS),
    json_shape=json_shape,
    set_times=set_times,
    near=re.compile(r"/api/"),
    peers=PEERS,
)


# -- Its completions: the words and demands of the chat, with a prompt in place of the messages -----------------------


GENERATE_SAYS: Mapping[Moment, Spelling] = {
    moment: SAYS[moment] for moment in (Moment.ENDED, Moment.CUT, Moment.FULL, Moment.FAILED)
}
GENERATE_CANNOT: Mapping[str, str] = {
    **serving.ONLY_TEXT, **serving.usual_reasons("filtered", "empty_choices"),
}
GENERATE_ENDS: Mapping[str, str] = {"context_full": "completed"}


# -- What it demands -------------------------------------------------------------------------------------------------
# Members: ollama 0.6.3 _types.py (GenerateRequest); the server's api/types.go.

GENERATE_MEMBERS: tuple[Member, ...] = (
    Member("prompt", "string", required=True, hint="without one the model is only loaded"),
    Member("system", "string"),
    Member("template", "string"),
    Member("suffix", "string", only=("",)),
    Member("context", "array", only=([],), hint="token ids are of no scripted answer; the prompt holds what was said"),
    Member("images[]", "string"),
    Member("raw", "boolean"),
    *(member for member in MEMBERS if not member.path.startswith(("messages", "tools"))),
)

GENERATE_SERVING = serving.Serving(
    own=serving.OwnServer("ollama", "qwen3:8b", "ollama llm/server.go DoneReason"),
    base="",
    client='ollama.Client(host="{base}").generate',
    says=GENERATE_SAYS,
    text=lambda name, value: (value, "response"),
    stop_place=serving.StopPlace(serving.itself, ("done_reason",)),
    ends_without=True,
    errors={},
    error_body=ollama_error,
    stops=("options", "stop"),
    cannot=GENERATE_CANNOT,
    ends=GENERATE_ENDS,
    demands=Demands(GENERATE_MEMBERS, CONDITIONS),
    json_shape=json_shape,
    set_times=set_times,
)

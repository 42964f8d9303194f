"""How Ollama's completions are played: its chat's words and demands, with a prompt in place of the messages."""

from __future__ import annotations

from collections.abc import Mapping

from loop_core.wire.demands import Demands, Member
from loop_core.wire.ollama_chat.serving import MEMBERS, RULES, dated, json_shape, refused
from loop_core.wire.serving import (
    ONLY_TEXT,
    Event,
    Moment,
    OwnServer,
    Serving,
    Spelling,
    StopPlace,
    fails,
    itself,
    say,
)

GENERATE_SAYS: Mapping[Moment, Spelling] = {
    Moment.ENDED: say("stop"),
    Moment.CUT: say("length"),
    Moment.FULL: say("length"),
    Moment.FAILED: fails(None, "an error was encountered while running the model", retryable=False),
}
GENERATE_CANNOT: Mapping[str, str] = {
    **ONLY_TEXT,
    "filtered": "it has no word for a filter",
    "empty_choices": "it has no choices",
}
GENERATE_ENDS: Mapping[str, str] = {"context_full": "completed"}


def _response_text(name: str | None, value: Event) -> tuple[Event, str]:
    return value, "response"


# -- What it demands -------------------------------------------------------------------------------------------------
# Members: ollama 0.6.3 _types.py (GenerateRequest); the server's api/types.go.

GENERATE_MEMBERS: tuple[Member, ...] = (
    Member("prompt", "string", required=True, hint="without one the model is only loaded"),
    Member("system", "string"),
    Member("template", "string"),
    Member("suffix", "string", only=("",)),
    Member("context", "array", only=([],), hint="token ids are of no scripted answer; the prompt holds what was said"),
    Member("images", "array"),
    Member("images[]", "string"),
    Member("raw", "boolean"),
    *(member for member in MEMBERS if not member.path.startswith(("messages", "tools"))),
)

SERVING = Serving(
    own=OwnServer("ollama", "qwen3:8b", "ollama llm/server.go DoneReason"),
    base="",
    client='ollama.Client(host="{base}").generate',
    says=GENERATE_SAYS,
    text=_response_text,
    stop_place=StopPlace(itself, ("done_reason",)),
    ends_without=True,
    errors={},
    error_body=refused,
    stops=("options", "stop"),
    cannot=GENERATE_CANNOT,
    ends=GENERATE_ENDS,
    demands=Demands(GENERATE_MEMBERS, RULES),
    json_shape=json_shape,
    set_times=dated,
)

"""Describes how the scripted provider plays InvokeModel: stop words, each maker's checks, Bedrock's frames and
errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loop_core.wire.anthropic_messages.serving import CANNOT as MESSAGES_CANNOT
from loop_core.wire.anthropic_messages.serving import CONDITIONS, MEMBER_NAMES
from loop_core.wire.anthropic_messages.serving import MEMBERS as MESSAGES_MEMBERS
from loop_core.wire.anthropic_messages.serving import SAYS as MESSAGES_SAYS
from loop_core.wire.anthropic_messages.serving import SERVING as MESSAGES
from loop_core.wire.bedrock_converse.serving import SERVING as CONVERSE
from loop_core.wire.bedrock_invoke.makers import LLAMA, MISTRAL, MISTRAL_CHAT, NOVA
from loop_core.wire.body import list_of, mapping_of
from loop_core.wire.demands import Demands, Member
from loop_core.wire.serving import Event, Moment, OwnServer, Spelling, StopPlace, fails, usual_reasons

SAYS: Mapping[Moment, Spelling] = {
    **MESSAGES_SAYS,
    Moment.FAILED: fails(None, "The model stream failed.", "modelStreamErrorException"),
}
CANNOT: Mapping[str, str] = {**MESSAGES_CANNOT, **usual_reasons("fallback")}


def _events(value: Event) -> Sequence[Event]:
    """The objects of a body or an event, of any maker, that describe the answer."""
    inner = [value[name] for name in ("delta", "contentBlockDelta", "messageStop") if isinstance(value.get(name), dict)]
    listed = [each for name in ("outputs", "choices") for each in list_of(value.get(name)) if isinstance(each, dict)]
    return (value, *inner, *listed)


def _text(name: str | None, value: Event) -> tuple[Event, str]:
    if name is not None:
        return MESSAGES.text(name, value)
    if "generation" in value:  # Llama
        return value, "generation"
    if "contentBlockDelta" in value:  # Nova
        return value["contentBlockDelta"]["delta"], "text"
    (held,) = value.get("outputs") or (value["choices"][0]["message"],)  # Mistral's text completion, else its chat
    return held, "content" if "content" in held else "text"


def _indexes(value: Event) -> Sequence[tuple[Event, str]]:
    found = [(each, "contentBlockIndex") for each in value.values() if "contentBlockIndex" in mapping_of(each)]
    return found or MESSAGES.indexes(value)


# -- What it demands: the address names the model, and whether it streams --------------------------------------------
# Members: AWS guide, "Anthropic Claude Messages API", "Amazon Nova", "Meta Llama models", "Mistral AI text completion"
# and "chat completion". Stop strings are honoured only for Claude and refused for the others.

MEMBERS: tuple[Member, ...] = (
    Member("anthropic_version", "string", required=True, among=("bedrock-2023-05-31",)),
    *(member for member in MESSAGES_MEMBERS if member.path not in ("model", "stream")),
)
ELSEWHERE = frozenset({"model", "stream"})
"""The members of a Messages request that InvokeModel has in the URL instead."""

NOVA_MEMBERS: tuple[Member, ...] = (
    Member("schemaVersion", "string", among=("messages-v1",)),
    *(member for member in CONVERSE.demands.members if "stopSequences" not in member.path),
    Member("inferenceConfig.max_new_tokens", "integer", least=1),
    Member("inferenceConfig.topK", "integer", least=0, most=128),
    Member("inferenceConfig.stopSequences", only=()),
)
_SAMPLING = (Member("temperature", "number", least=0, most=1), Member("top_p", "number", least=0, most=1))
LLAMA_MEMBERS: tuple[Member, ...] = (
    Member("prompt", "string", required=True), Member("max_gen_len", "integer", least=1, most=8192), *_SAMPLING,
)
MISTRAL_MEMBERS: tuple[Member, ...] = (
    Member("prompt", "string", required=True), Member("max_tokens", "integer", least=1, most=8192), *_SAMPLING,
    Member("top_k", "integer", least=0), Member("stop", only=()),
)
CHAT_MEMBERS: tuple[Member, ...] = (
    Member("messages", "array", required=True, least=1),
    Member("messages[].role", "string", required=True, among=("system", "user", "assistant", "tool")),
    Member("messages[role=tool].tool_call_id", "string", required=True),
    Member("messages[].tool_calls[].id", "string", required=True),
    Member("messages[].tool_calls[].function.name", "string", required=True),
    Member("tools[].function.name", "string", required=True),
    Member("max_tokens", "integer", least=1, most=8192),
    *_SAMPLING,
    *(Member(name, only=()) for name in ("n", "stop", "response_format")),
)

SERVING = replace(
    MESSAGES,
    own=OwnServer("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", "AWS guide, Anthropic Claude Messages API",
                  whole="cynative PR#283"),
    client=CONVERSE.client,
    says=SAYS,
    cannot=CANNOT,
    text=_text,
    stop_place=StopPlace(_events, ("stop_reason", "stopReason"), null=True),
    indexes=_indexes,
    ends=CONVERSE.ends,
    answer_id="msg_bdrk_{}",
    call_id="toolu_bdrk_{}",
    wrapped="chunk",
    errors=CONVERSE.errors,
    error_body=CONVERSE.error_body,
    error_header=CONVERSE.error_header,
    demands=Demands(MEMBERS, CONDITIONS, names={"": tuple(name for name in MEMBER_NAMES if name not in ELSEWHERE)}),
    demands_of=(
        (NOVA, Demands(NOVA_MEMBERS, CONVERSE.demands.conditions)),
        (LLAMA, Demands(LLAMA_MEMBERS, names={"": ("images", *(member.path for member in LLAMA_MEMBERS))})),
        (MISTRAL_CHAT, Demands(CHAT_MEMBERS)),
        (MISTRAL, Demands(MISTRAL_MEMBERS)),
    ),
    request_id=CONVERSE.request_id,
    count=None,
    near=None,
    client_header="",
    peers={},
)

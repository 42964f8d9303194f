"""How InvokeModel is played: Claude's words and demands, in Bedrock's frames and with its errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loop_core.wire.anthropic_messages.serving import CANNOT as MESSAGES_CANNOT
from loop_core.wire.anthropic_messages.serving import KNOWN, RULES
from loop_core.wire.anthropic_messages.serving import MEMBERS as MESSAGES_MEMBERS
from loop_core.wire.anthropic_messages.serving import SAYS as MESSAGES_SAYS
from loop_core.wire.anthropic_messages.serving import SERVING as MESSAGES
from loop_core.wire.bedrock_converse.serving import SERVING as CONVERSE
from loop_core.wire.demands import Demands, Member
from loop_core.wire.serving import Moment, OwnServer, Spelling, fails

SAYS: Mapping[Moment, Spelling] = {
    **MESSAGES_SAYS,
    Moment.FAILED: fails(None, "The model stream failed.", "modelStreamErrorException"),
}
CANNOT: Mapping[str, str] = {**MESSAGES_CANNOT, "fallback": "it has no block that reports it"}

# -- What it demands: the address names the model, and whether it streams --------------------------------------------
# Members: AWS guide, "Anthropic Claude Messages API".

MEMBERS: tuple[Member, ...] = (
    Member("anthropic_version", "string", required=True, among=("bedrock-2023-05-31",)),
    *(member for member in MESSAGES_MEMBERS if member.path not in ("model", "stream")),
)
ELSEWHERE = frozenset({"model", "stream"})
"""Members of a Messages request that stand in the address."""

SERVING = replace(
    MESSAGES,
    own=OwnServer("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", "AWS guide, Anthropic Claude Messages API",
                  whole="cynative PR#283"),
    client=CONVERSE.client,
    says=SAYS,
    cannot=CANNOT,
    ends=CONVERSE.ends,
    answer_id="msg_bdrk_{}",
    call_id="toolu_bdrk_{}",
    wrapped="chunk",
    errors=CONVERSE.errors,
    error_body=CONVERSE.error_body,
    error_header=CONVERSE.error_header,
    demands=Demands(MEMBERS, RULES, names={"": tuple(name for name in KNOWN if name not in ELSEWHERE)}),
    request_id=CONVERSE.request_id,
    count=None,
    near=None,
    client_header="",
    follows=CONVERSE.follows,
    peers={},
)

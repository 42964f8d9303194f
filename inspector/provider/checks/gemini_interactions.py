"""What Google's server demands of an Interactions request.

Members and values: google-genai 3.4.0 _gaos/types/interactions: createmodelinteraction.py, generationconfig.py.
"""

from __future__ import annotations

from inspector.provider.checks.fields import Field
from inspector.provider.checks.rules import Rule

FIELDS: tuple[Field, ...] = (
    Field("input", "string|array|object"),
    Field("input[].type", "string"),
    Field("system_instruction", "string"),
    Field("previous_interaction_id", "string"),
    Field("continuation_token", "string"),
    Field("stream", "boolean"),
    Field("background", "boolean"),
    Field("store", "boolean"),
    Field("generation_config", "object"),
    Field("generation_config.temperature", "number", least=0, most=2),
    Field("generation_config.top_p", "number", least=0, most=1),
    Field("generation_config.max_output_tokens", "integer", least=1),
    Field("generation_config.stop_sequences", "array"),
    Field("generation_config.stop_sequences[]", "string"),
    Field("generation_config.tool_choice", "string|object"),
    Field("tools", "array"),
    Field("tools[]", "object"),
    Field("tools[].type", "string", required=True),
)
RULES: tuple[Rule, ...] = ()

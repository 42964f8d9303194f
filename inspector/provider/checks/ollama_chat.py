"""What Ollama's server demands of a chat request. It is lenient: roles, pairs of calls and results, empty lists and
unknown members are left alone, and what is checked is what its Go types cannot read.

Members: ollama 0.6.3 _types.py; the server's api/types.go. The four members of other APIs at the end of the table are
passed over by the real server; here nothing that asks for another answer is.
"""

from __future__ import annotations

from inspector.provider.checks.fields import Field
from inspector.provider.checks.rules import Body, RequestError, Rule

FIELDS: tuple[Field, ...] = (
    Field("model", "string", required=True),
    Field("messages", "array"),
    Field("messages[]", "object"),
    Field("messages[].role", "string"),
    Field("messages[].content", "string"),
    Field("messages[].thinking", "string"),
    Field("messages[].images", "array"),
    Field("messages[].tool_calls", "array"),
    Field("messages[].tool_calls[]", "object"),
    Field("messages[].tool_calls[].function", "object"),
    Field("messages[].tool_calls[].function.name", "string"),
    Field("messages[].tool_calls[].function.arguments", "object"),
    Field("tools", "array"),
    Field("tools[]", "object"),
    Field("tools[].function", "object"),
    Field("tools[].function.parameters", "object"),
    Field("stream", "boolean"),
    Field("think", "boolean|string"),
    Field("format", "string|object"),
    Field("options", "object"),
    Field("options.num_predict", "number"),
    Field("options.temperature", "number"),
    Field("options.stop", "array"),
    Field("options.stop[]", "string"),
    Field("logprobs", "boolean", only=(False,)),
    Field("top_logprobs", "integer", least=0, most=20, only=(0,)),
    Field("n", only=(1,), hint="one answer is given, and several are asked for"),
    Field("stop", only=(), hint="in Ollama's own API it is options.stop"),
    Field("response_format", only=(), hint="in Ollama's own API it is format"),
)


def _format(body: Body) -> RequestError | None:
    asked = body.get("format")
    if isinstance(asked, str) and asked not in ("", "json"):
        return RequestError(f'invalid format: {asked[:80]!r}; expected "json" or a JSON schema')
    return None


RULES: tuple[Rule, ...] = (
    Rule("format", _format, "server/routes.go and the API docs: json or a JSON schema"),
)

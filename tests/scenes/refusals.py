"""Requests that each provider's server refuses, one for each member and rule of the tables, and what it says of them.

Codes and params are OpenAI's; in the other formats the place stands in the message (and with Gemini in its details).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from loop_core.wire.servers import (
    CHAT,
    COHERE,
    COMPLETE,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    GENERATE,
    INVOKE,
    MESSAGES,
    OLLAMA,
    RESPONSES,
)

INTERACTIONS = "gemini_interactions"
DROP = object()
"""In place of a member: it is left out."""
HI: dict[str, Any] = {"role": "user", "content": "Hi."}
PARTS: dict[str, Any] = {"role": "user", "parts": [{"text": "Hi."}]}
BLOCKS: dict[str, Any] = {"role": "user", "content": [{"text": "Hi."}]}
BODIES: Mapping[str, dict[str, Any]] = {
    CHAT: {"model": "text", "messages": [HI]},
    RESPONSES: {"model": "text", "input": "Hi."},
    MESSAGES: {"model": "text", "max_tokens": 64, "messages": [HI]},
    GEMINI: {"contents": [PARTS]},
    CONVERSE: {"messages": [BLOCKS]},
    OLLAMA: {"model": "text", "messages": [HI], "stream": False},
    INTERACTIONS: {"model": "text", "input": "Hi."},
    COHERE: {"model": "text", "messages": [HI]},
    INVOKE: {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 64, "messages": [HI]},
    COMPLETIONS: {"model": "text", "prompt": "Hi."},
    COMPLETE: {"model": "text", "prompt": "Hi.", "max_tokens_to_sample": 64},
    GENERATE: {"model": "text", "prompt": "Hi.", "stream": False},
}
"""Format -> a request that is accepted."""
PATHS: Mapping[str, str] = {
    CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages",
    GEMINI: "/v1beta/models/text:generateContent", CONVERSE: "/model/text/converse", OLLAMA: "/api/chat",
    INTERACTIONS: "/v1beta/interactions", COHERE: "/v2/chat",
    INVOKE: "/model/text/invoke",
    COMPLETIONS: "/v1/completions", COMPLETE: "/v1/complete", GENERATE: "/api/generate",
}


class Refusal(NamedTuple):
    """One row."""

    change: Mapping[str, Any]
    """Members of the request that are otherwise."""
    place: str = ""
    """The param of OpenAI's formats; in the others how the message begins."""
    code: str | None = None


TYPE, MISSING, VALUE = "invalid_type", "missing_required_parameter", "invalid_value"


def call(**more: Any) -> dict[str, Any]:
    made = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, **more}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def result(ident: Any = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ident, "content": "done"}


def function(**more: Any) -> dict[str, Any]:
    return call(function={"name": "f", "arguments": "{}", **more})


TOOL: dict[str, Any] = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SCHEMA: dict[str, Any] = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}

CHATS = (
    Refusal({"model": DROP}),
    Refusal({"messages": DROP}, "messages", MISSING),
    Refusal({"messages": []}, "messages", "empty_array"),
    Refusal({"messages": "Hi."}, "messages", TYPE),
    Refusal({"messages": ["Hi."]}, "messages[0]", TYPE),
    Refusal({"messages": [{"content": "Hi."}]}, "messages[0].role", MISSING),
    Refusal({"messages": [{"role": "bot", "content": "Hi."}]}, "messages[0].role", VALUE),
    Refusal({"messages": [HI, {"role": "assistant", "content": 5}]}, "messages[1].content", TYPE),
    Refusal({"messages": [{"role": "user"}]}, "messages[0].content", MISSING),
    Refusal({"messages": [{"role": "system", "content": None}, HI]}, "messages[0].content", TYPE),
    Refusal({"messages": [HI, call(), {"role": "tool", "content": "x"}]}, "messages[2].tool_call_id", MISSING),
    Refusal({"messages": [HI, {"role": "assistant", "content": "x", "tool_calls": []}, HI]}, "messages[1].tool_calls",
            "empty_array"),
    Refusal({"messages": [HI, {"role": "assistant", "tool_calls": ["x"]}, HI]}, "messages[1].tool_calls[0]", TYPE),
    Refusal({"messages": [HI, call(id=DROP), result()]}, "messages[1].tool_calls[0].id", MISSING),
    Refusal({"messages": [HI, call(function="f"), result()]}, "messages[1].tool_calls[0].function", TYPE),
    Refusal({"messages": [HI, function(name=DROP), result()]}, "messages[1].tool_calls[0].function.name", MISSING),
    Refusal({"messages": [HI, function(arguments={}), result()]}, "messages[1].tool_calls[0].function.arguments", TYPE),
    Refusal({"max_tokens": "20"}, "max_tokens", TYPE),
    Refusal({"max_tokens": 0}, "max_tokens", "integer_below_min_value"),
    Refusal({"max_completion_tokens": 0}, "max_completion_tokens", "integer_below_min_value"),
    Refusal({"stream": "true"}, "stream", TYPE),
    Refusal({"stream": True, "stream_options": True}, "stream_options", TYPE),
    Refusal({"stream_options": {"include_usage": True}}, "stream_options"),
    Refusal({"temperature": 2.5}, "temperature", "decimal_above_max_value"),
    Refusal({"top_p": -0.1}, "top_p", "decimal_below_min_value"),
    Refusal({"presence_penalty": 3}, "presence_penalty", "decimal_above_max_value"),
    Refusal({"frequency_penalty": -3}, "frequency_penalty", "decimal_below_min_value"),
    Refusal({"seed": "x"}, "seed", TYPE),
    Refusal({"parallel_tool_calls": "yes"}, "parallel_tool_calls", TYPE),
    Refusal({"stop": 5}, "stop", TYPE),
    Refusal({"stop": ["a", "b", "c", "d", "e"]}, "stop", "array_above_max_length"),
    Refusal({"stop": [5]}, "stop[0]", TYPE),
    Refusal({"n": 2}, "n", "unsupported_value"),
    Refusal({"logprobs": True}, "logprobs", "unsupported_parameter"),
    Refusal({"top_logprobs": 2}, "top_logprobs", "unsupported_parameter"),
    Refusal({"response_format": "json"}, "response_format", TYPE),
    Refusal({"response_format": {"type": "xml"}}, "response_format.type", VALUE),
    Refusal({"response_format": {"type": "json_schema"}}, "response_format.json_schema", MISSING),
    Refusal({"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
            "response_format.json_schema.name", MISSING),
    Refusal({"response_format": {"type": "text", "json_schema": {"name": "s", "schema": 5}}},
            "response_format.json_schema.schema", TYPE),
    Refusal({"response_format": {"type": "json_object"}}, "messages"),
    Refusal({"response_format": {"type": "json_object"}, "messages": [{"role": "user", "content": "As JSON."}]},
            "response_format"),
    Refusal({"response_format": SCHEMA}, "response_format"),
    Refusal({"tools": {}}, "tools", TYPE),
    Refusal({"tools": ["f"]}, "tools[0]", TYPE),
    Refusal({"tools": [{"function": {"name": "f"}}]}, "tools[0].type", MISSING),
    Refusal({"tools": [{"type": "function", "name": "f"}]}, "tools[0].function", MISSING),
    Refusal({"tools": [{"type": "custom", "function": "f"}]}, "tools[0].function", TYPE),
    Refusal({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name", MISSING),
    Refusal({"tools": [{"type": "function", "function": {"name": "f", "parameters": "x"}}]},
            "tools[0].function.parameters", TYPE),
    Refusal({"tools": [TOOL], "tool_choice": 5}, "tool_choice", TYPE),
    Refusal({"tools": [TOOL], "tool_choice": "any"}, "tool_choice", VALUE),
    Refusal({"tools": [TOOL], "tool_choice": {"type": "function"}}, "tool_choice.function", MISSING),
    Refusal({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice"),
    Refusal({"tool_choice": "auto"}, "tool_choice"),
    Refusal({"messages": [HI, result()]}, "messages.[1].role"),
    Refusal({"messages": [HI, call(), result("c2")]}, "messages.[2].role"),
    Refusal({"messages": [HI, call(), HI]}, "messages.[2].role"),
    Refusal({"messages": [HI, call()]}, "messages"),
)

CALL: dict[str, Any] = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT: dict[str, Any] = {"type": "function_call_output", "call_id": "c1", "output": "done"}
OBJECT: dict[str, Any] = {"type": "object"}

RESPONSE = (
    Refusal({"model": DROP}, "model", MISSING),
    Refusal({"input": DROP}, "input", MISSING),
    Refusal({"input": 5}, "input", TYPE),
    Refusal({"input": ["Hi."]}, "input[0]", TYPE),
    Refusal({"input": [{"role": "tool", "content": "x"}]}, "input[0].role", VALUE),
    Refusal({"input": [{"type": "message", "content": "x"}]}, "input[0].role", MISSING),
    Refusal({"input": [{"type": "message", "role": "user"}]}, "input[0].content", MISSING),
    Refusal({"input": [{"content": "x"}]}, "input[0].role", MISSING),
    Refusal({"input": [{"role": "user", "content": 5}]}, "input[0].content", TYPE),
    Refusal({"input": [{**CALL, "call_id": DROP}, OUTPUT]}, "input[0].call_id", MISSING),
    Refusal({"input": [{**CALL, "name": DROP}, OUTPUT]}, "input[0].name", MISSING),
    Refusal({"input": [{**CALL, "arguments": {}}, OUTPUT]}, "input[0].arguments", TYPE),
    Refusal({"input": [CALL, {**OUTPUT, "call_id": 5}]}, "input[1].call_id", TYPE),
    Refusal({"input": [CALL, {**OUTPUT, "output": DROP}]}, "input[1].output", MISSING),
    Refusal({"input": [OUTPUT]}, "input"),
    Refusal({"input": [CALL, {"role": "user", "content": "x"}]}, "input"),
    Refusal({"input": [{**CALL, "type": "custom_tool_call"}, OUTPUT]}, "input"),
    Refusal({"input": [{"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "x"}]}, "input"),
    Refusal({"instructions": 5}, "instructions", TYPE),
    Refusal({"previous_response_id": 5}, "previous_response_id", TYPE),
    Refusal({"max_output_tokens": 0}, "max_output_tokens", "integer_below_min_value"),
    Refusal({"stream": 1}, "stream", TYPE),
    Refusal({"background": "no"}, "background", TYPE),
    Refusal({"store": "no"}, "store", TYPE),
    Refusal({"temperature": "hot"}, "temperature", TYPE),
    Refusal({"top_p": 1.5}, "top_p", "decimal_above_max_value"),
    Refusal({"top_logprobs": 3}, "top_logprobs", "unsupported_parameter"),
    Refusal({"include": "all"}, "include", TYPE),
    Refusal({"include": ["message.output_text.logprobs"]}, "include[0]", VALUE),
    Refusal({"text": "json"}, "text", TYPE),
    Refusal({"text": {"format": "json"}}, "text.format", TYPE),
    Refusal({"text": {"format": {"type": "xml"}}}, "text.format.type", VALUE),
    Refusal({"text": {"format": {"type": "json_schema", "schema": OBJECT}}}, "text.format.name", MISSING),
    Refusal({"text": {"format": {"type": "json_schema", "name": "s"}}}, "text.format.schema", MISSING),
    Refusal({"text": {"format": {"type": "json_schema", "name": "s", "schema": OBJECT}}}, "text.format"),
    Refusal({"text": {"format": {"type": "json_object"}}}, "text.format"),
    Refusal({"reasoning": "high"}, "reasoning", TYPE),
    Refusal({"tools": {}}, "tools", TYPE),
    Refusal({"tools": [5]}, "tools[0]", TYPE),
    Refusal({"tools": [{"name": "f"}]}, "tools[0].type", MISSING),
    Refusal({"tools": [TOOL]}, "tools[0].name", MISSING),
    Refusal({"tools": [{"type": "function", "name": "f", "parameters": "x"}]}, "tools[0].parameters", TYPE),
    Refusal({"tool_choice": 5}, "tool_choice", TYPE),
    Refusal({"tool_choice": "any"}, "tool_choice", VALUE),
    Refusal({"tool_choice": {"type": "function", "name": "g"}, "tools": [{"type": "function", "name": "f"}]},
            "tool_choice"),
    Refusal({"stop": ["\n"]}, "stop", "unknown_parameter"),
    Refusal({"n": 2}, "n", "unknown_parameter"),
    Refusal({"logprobs": True}, "logprobs", "unknown_parameter"),
    Refusal({"response_format": {"type": "json_object"}}, "response_format", "unsupported_parameter"),
    Refusal({"max_tokens": 20}, "max_tokens", "unsupported_parameter"),
    Refusal({"max_completion_tokens": 20}, "max_completion_tokens", "unsupported_parameter"),
    Refusal({"messages": [HI]}, "messages", "unsupported_parameter"),
    Refusal({"functions": []}, "functions", "unsupported_parameter"),
)

USE: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
DONE: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
CUSTOM: dict[str, Any] = {"name": "f", "input_schema": {"type": "object"}}


def reply(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def ask(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


MESSAGE = (
    Refusal({"model": DROP}, "model: "),
    Refusal({"max_tokens": DROP}, "max_tokens: "),
    Refusal({"max_tokens": "64"}, "max_tokens: "),
    Refusal({"max_tokens": 0}, "max_tokens: expected 1 or more, but it is 0"),
    Refusal({"messages": DROP}, "messages: expected array"),
    Refusal({"messages": []}, "messages: at least one"),
    Refusal({"messages": ["Hi."]}, "messages.0: "),
    Refusal({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role: "),
    Refusal({"messages": [{"role": "user"}]}, "messages.0.content: "),
    Refusal({"messages": [ask("Hi.")]}, "messages.0.content.0: "),
    Refusal({"messages": [ask({"text": "Hi."})]}, "messages.0.content.0.type: "),
    Refusal({"messages": [ask({"type": "text"})]}, "messages.0.content.0.text: "),
    Refusal({"messages": [HI, reply({**USE, "id": DROP}), ask(DONE)]}, "messages.1.content.0.id: "),
    Refusal({"messages": [HI, reply({**USE, "name": 5}), ask(DONE)]}, "messages.1.content.0.name: "),
    Refusal({"messages": [HI, reply({**USE, "input": "{}"}), ask(DONE)]}, "messages.1.content.0.input: "),
    Refusal({"messages": [HI, reply(USE), ask({**DONE, "tool_use_id": DROP})]},
            "messages.2.content.0.tool_use_id: "),
    Refusal({"messages": [HI, reply(USE), ask({**DONE, "content": 5})]}, "messages.2.content.0.content: "),
    Refusal({"messages": [HI, reply(USE), ask({**DONE, "is_error": "no"})]}, "messages.2.content.0.is_error: "),
    Refusal({"system": 5}, "system: "),
    Refusal({"stop_sequences": "END"}, "stop_sequences: "),
    Refusal({"stop_sequences": [5]}, "stop_sequences.0: "),
    Refusal({"stop_sequences": [" \n"]}, "stop_sequences: "),
    Refusal({"stream": "yes"}, "stream: "),
    Refusal({"temperature": 1.5}, "temperature: "),
    Refusal({"top_p": 2}, "top_p: "),
    Refusal({"top_k": -1}, "top_k: "),
    Refusal({"thinking": True}, "thinking: "),
    Refusal({"thinking": {"type": "on"}}, "thinking.type: "),
    Refusal({"thinking": {"type": "enabled"}}, "thinking.budget_tokens: "),
    Refusal({"output_config": "json"}, "output_config: "),
    Refusal({"output_config": {"format": {"type": "json"}}}, "output_config.format.type: "),
    Refusal({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema: "),
    Refusal({"output_config": {"format": {"type": "json_schema", "schema": OBJECT}}}, "output_config.format: "),
    Refusal({"output_format": {"type": "json_schema", "schema": OBJECT}}, "output_format: "),
    Refusal({"tools": {}}, "tools: "),
    Refusal({"tools": ["f"]}, "tools.0: "),
    Refusal({"tools": [{"input_schema": OBJECT}]}, "tools.0.name: "),
    Refusal({"tools": [{"name": "f"}]}, "tools.0.input_schema: "),
    Refusal({"tools": [{"type": "custom", "input_schema": OBJECT}]}, "tools.0.name: "),
    Refusal({"tools": [{"type": "custom", "name": "f"}]}, "tools.0.input_schema: "),
    Refusal({"tool_choice": "auto"}, "tool_choice: "),
    Refusal({"tool_choice": {"type": "required"}, "tools": [CUSTOM]}, "tool_choice.type: "),
    Refusal({"tool_choice": {"type": "tool"}, "tools": [CUSTOM]}, "tool_choice.name: "),
    Refusal({"tool_choice": {"type": "tool", "name": "g"}, "tools": [CUSTOM]}, "tool_choice: "),
    Refusal({"tool_choice": {"type": "any"}}, "tool_choice: "),
    Refusal({"n": 2}, "n: "),
    Refusal({"stop": ["END"]}, "stop: "),
    Refusal({"logprobs": True}, "logprobs: "),
    Refusal({"response_format": {"type": "json_object"}}, "response_format: "),
    Refusal({"messages": [HI, reply(USE), HI]}, "messages.1: "),
    Refusal({"messages": [HI, reply(USE)]}, "messages.1: "),
    Refusal({"messages": [HI, reply(USE), ask({"type": "text", "text": "x"}, DONE)]}, "messages.1: "),
    Refusal({"messages": [HI, reply({"type": "text", "text": "x"}), ask(DONE)]}, "messages.2.content.0: "),
    Refusal({"messages": [ask({"type": "text", "text": ""})]}, "messages.0: "),
    Refusal({"messages": [HI, {"role": "assistant", "content": "x "}]}, "messages: "),
)

ASK: dict[str, Any] = {"functionCall": {"name": "f", "args": {}}}
TELL: dict[str, Any] = {"functionResponse": {"name": "f", "response": {"result": "done"}}}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def settings(**more: Any) -> dict[str, Any]:
    return {"generationConfig": more}


def calling(**more: Any) -> dict[str, Any]:
    return {"toolConfig": {"functionCallingConfig": more}}


GEMINIS = (
    Refusal({"contents": DROP}, "contents: "),
    Refusal({"contents": []}, "contents: "),
    Refusal({"contents": ["Hi."]}, "contents[0]: "),
    Refusal({"contents": [{"role": "assistant", "parts": [{"text": "x"}]}]}, "contents[0].role: "),
    Refusal({"contents": [{"role": "user"}]}, "contents[0].parts: "),
    Refusal({"contents": [user()]}, "contents[0].parts: "),
    Refusal({"contents": [user("Hi.")]}, "contents[0].parts[0]: "),
    Refusal({"contents": [user({"text": 5})]}, "contents[0].parts[0].text: "),
    Refusal({"contents": [PARTS, model({"functionCall": "f"}), user(TELL)]}, "contents[1].parts[0].functionCall: "),
    Refusal({"contents": [PARTS, model({"functionCall": {}}), user(TELL)]}, "contents[1].parts[0].functionCall.name: "),
    Refusal({"contents": [PARTS, model({"function_call": {"name": "f", "args": "{}"}}), user(TELL)]},
            "contents[1].parts[0].function_call.args: "),
    Refusal({"contents": [PARTS, model(ASK), user({"functionResponse": "x"})]},
            "contents[2].parts[0].functionResponse: "),
    Refusal({"contents": [PARTS, model(ASK), user({"functionResponse": {"response": {}}})]},
            "contents[2].parts[0].functionResponse.name: "),
    Refusal({"contents": [PARTS, model(ASK), user({"functionResponse": {"name": "f", "response": "x"}})]},
            "contents[2].parts[0].functionResponse.response: "),
    Refusal({"systemInstruction": "Be brief."}, "systemInstruction: "),
    Refusal({"safetySettings": {}}, "safetySettings: "),
    Refusal({"generationConfig": 5}, "generationConfig: "),
    Refusal(settings(temperature=3), "generationConfig.temperature: "),
    Refusal(settings(topP=1.5), "generationConfig.topP: "),
    Refusal(settings(topK="x"), "generationConfig.topK: "),
    Refusal(settings(maxOutputTokens=0), "generationConfig.maxOutputTokens: "),
    Refusal(settings(candidateCount=2), "generationConfig.candidateCount: "),
    Refusal(settings(stopSequences="END"), "generationConfig.stopSequences: "),
    Refusal(settings(stopSequences=[5]), "generationConfig.stopSequences[0]: "),
    Refusal(settings(stopSequences=["a", "b", "c", "d", "e", "f"]), "generationConfig.stopSequences: "),
    Refusal(settings(responseLogprobs=True), "generationConfig.responseLogprobs: "),
    Refusal(settings(logprobs=3), "generationConfig.logprobs: "),
    Refusal(settings(responseMimeType="text/xml"), "generationConfig.responseMimeType: "),
    Refusal(settings(responseMimeType="application/json"), "generationConfig.responseMimeType: "),
    Refusal(settings(responseMimeType="application/json", responseSchema="x"),
            "generationConfig.responseSchema: expected"),
    Refusal(settings(responseMimeType="application/json", responseSchema={"type": "OBJECT"}),
            "generationConfig.responseSchema: "),
    Refusal(settings(responseMimeType="application/json", responseJsonSchema=OBJECT),
            "generationConfig.responseJsonSchema: "),
    Refusal(settings(responseSchema={"type": "OBJECT"}), "generationConfig.responseSchema is only"),
    Refusal(settings(n=2), "generationConfig.n: "),
    Refusal({"generation_config": {"max_tokens": 5}}, "generation_config.max_tokens: "),
    Refusal({"stop": ["END"]}, "stop: "),
    Refusal({"response_format": {}}, "response_format: "),
    Refusal({"tools": {}}, "tools: "),
    Refusal({"tools": ["f"]}, "tools[0]: "),
    Refusal({"tools": [{"functionDeclarations": {}}]}, "tools[0].functionDeclarations: "),
    Refusal({"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name: "),
    Refusal({"tools": [{"functionDeclarations": [{"name": "f", "parameters": "x"}]}]},
            "tools[0].functionDeclarations[0].parameters: "),
    Refusal({"toolConfig": "ANY"}, "toolConfig: "),
    Refusal({"toolConfig": {"functionCallingConfig": "ANY"}}, "toolConfig.functionCallingConfig: "),
    Refusal(calling(mode="required"), "toolConfig.functionCallingConfig.mode: "),
    Refusal(calling(mode="ANY", allowedFunctionNames="f"),
            "toolConfig.functionCallingConfig.allowedFunctionNames: exp"),
    Refusal(calling(mode="ANY", allowedFunctionNames=["g"]),
            "toolConfig.functionCallingConfig.allowedFunctionNames: no f"),
    Refusal({"contents": [PARTS, model(ASK, ASK), user(TELL)]}, "the number of function response parts"),
    Refusal({"contents": [PARTS, model(ASK), PARTS]}, "the number of function response parts"),
    Refusal({"contents": [PARTS, model(ASK), PARTS, model({"text": "x"}), PARTS]}, "the number of function response"),
    Refusal({"contents": [PARTS, model({"text": "x"}), user(TELL)]}, "a function response turn"),
)

TOOL_USE: dict[str, Any] = {"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}
TOOL_RESULT: dict[str, Any] = {"toolResult": {"toolUseId": "t1", "content": [{"text": "done"}]}}
SPEC: dict[str, Any] = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}
DECLARED: dict[str, Any] = {"toolConfig": {"tools": [SPEC]}}


def tool_use(*blocks: Any, **more: Any) -> dict[str, Any]:
    use = {"toolUse": {**TOOL_USE["toolUse"], **more}}
    return {**DECLARED, "messages": [BLOCKS, reply(use), ask(*(blocks or (TOOL_RESULT,)))]}


def with_output_schema(schema: str) -> dict[str, Any]:
    structure = {"jsonSchema": {"schema": schema, "name": "s"}}
    return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": structure}}}


CONVERSES = (
    Refusal({"messages": DROP}, "messages: "),
    Refusal({"messages": []}, "messages: "),
    Refusal({"messages": ["Hi."]}, "messages.0: "),
    Refusal({"messages": [{"role": "tool", "content": [{"text": "x"}]}]}, "messages.0.role: "),
    Refusal({"messages": [HI]}, "messages.0.content: "),
    Refusal({"messages": [{"role": "user"}]}, "messages.0.content: "),
    Refusal({"messages": [ask()]}, "messages.0.content: "),
    Refusal({"messages": [ask("Hi.")]}, "messages.0.content.0: "),
    Refusal({"messages": [ask({"text": 5})]}, "messages.0.content.0.text: "),
    Refusal({**DECLARED, "messages": [BLOCKS, reply({"toolUse": "f"}), BLOCKS]}, "messages.1.content.0.toolUse: "),
    Refusal(tool_use(toolUseId=DROP), "messages.1.content.0.toolUse.toolUseId: "),
    Refusal(tool_use(name=DROP), "messages.1.content.0.toolUse.name: "),
    Refusal(tool_use(input="{}"), "messages.1.content.0.toolUse.input: "),
    Refusal(tool_use({"toolResult": "x"}), "messages.2.content.0.toolResult: "),
    Refusal(tool_use({"toolResult": {"content": []}}), "messages.2.content.0.toolResult.toolUseId: "),
    Refusal(tool_use({"toolResult": {"toolUseId": "t1", "content": "x"}}), "messages.2.content.0.toolResult.content: "),
    Refusal(tool_use({"toolResult": {"toolUseId": "t1", "content": [], "status": "ok"}}),
            "messages.2.content.0.toolResult.status: "),
    Refusal({"system": "Be brief."}, "system: "),
    Refusal({"system": ["Be brief."]}, "system.0: "),
    Refusal({"inferenceConfig": 5}, "inferenceConfig: "),
    Refusal({"inferenceConfig": {"maxTokens": "64"}}, "inferenceConfig.maxTokens: "),
    Refusal({"inferenceConfig": {"temperature": 1.5}}, "inferenceConfig.temperature: "),
    Refusal({"inferenceConfig": {"topP": 1.5}}, "inferenceConfig.topP: "),
    Refusal({"inferenceConfig": {"stopSequences": "END"}}, "inferenceConfig.stopSequences: "),
    Refusal({"inferenceConfig": {"stopSequences": [5]}}, "inferenceConfig.stopSequences.0: "),
    Refusal({"inferenceConfig": {"stopSequences": ["END"] * 2_501}}, "inferenceConfig.stopSequences: "),
    Refusal({"toolConfig": "f"}, "toolConfig: "),
    Refusal({"toolConfig": {"tools": []}}, "toolConfig.tools: "),
    Refusal({"toolConfig": {"tools": ["f"]}}, "toolConfig.tools.0: "),
    Refusal({"toolConfig": {"tools": [{"toolSpec": "f"}]}}, "toolConfig.tools.0.toolSpec: "),
    Refusal({"toolConfig": {"tools": [{"toolSpec": {"inputSchema": {}}}]}}, "toolConfig.tools.0.toolSpec.name: "),
    Refusal({"toolConfig": {"tools": [{"toolSpec": {"name": "f"}}]}}, "toolConfig.tools.0.toolSpec.inputSchema: "),
    Refusal({"toolConfig": {"tools": [SPEC], "toolChoice": "any"}}, "toolConfig.toolChoice: "),
    Refusal({"toolConfig": {"tools": [SPEC], "toolChoice": {"tool": {}}}}, "toolConfig.toolChoice.tool.name: expected"),
    Refusal({"toolConfig": {"tools": [SPEC], "toolChoice": {"tool": {"name": "g"}}}},
            "toolConfig.toolChoice.tool.name: no"),
    Refusal({"outputConfig": 5}, "outputConfig: "),
    Refusal({"outputConfig": {"textFormat": 5}}, "outputConfig.textFormat: "),
    Refusal({"outputConfig": {"textFormat": {"type": "xml", "structure": {}}}}, "outputConfig.textFormat.type: "),
    Refusal({"outputConfig": {"textFormat": {"type": "json_schema"}}}, "outputConfig.textFormat.structure: "),
    Refusal(with_output_schema('{"type": "object"}'),
            "outputConfig.textFormat: the scenario text answers with a text that is no"),
    Refusal(with_output_schema("{"), "outputConfig.textFormat: the schema is not a JSON schema"),
    Refusal({"additionalModelRequestFields": 5}, "additionalModelRequestFields: "),
    *(Refusal({name: value}, f"{name}: ") for name, value in {
        "n": 2, "stop": "x", "stop_sequences": ["x"], "logprobs": True, "top_logprobs": 2, "response_format": {},
    }.items()),
    *(Refusal({"additionalModelRequestFields": {name: value}}, f"additionalModelRequestFields.{name}: ")
      for name, value in {"n": 2, "stop": "x", "stop_sequences": ["x"], "logprobs": True, "top_logprobs": 2,
                          "response_format": {}}.items()),
    Refusal({"messages": [reply({"text": "x"}), BLOCKS]}, "A conversation must start"),
    Refusal({"messages": [BLOCKS, BLOCKS]}, "A conversation must alternate"),
    Refusal({**tool_use(), "toolConfig": DROP}, "The toolConfig field must be defined"),
    Refusal(tool_use({"text": "x"}), "Expected toolResult blocks at messages.2.content for the ids t1"),
    Refusal({**DECLARED, "messages": [BLOCKS, reply({"text": "x"}), ask(TOOL_RESULT)]},
            "The toolResult block at messages.2.content.0"),
)


def tool_turn(**more: Any) -> dict[str, Any]:
    return {"messages": [HI, {"role": "assistant", "content": "", "tool_calls": [{"function": {
        "name": "f", "arguments": {}, **more}}]}, {"role": "tool", "tool_name": "f", "content": "done"}]}


OLLAMAS = (
    Refusal({"model": DROP}, "model: "),
    Refusal({"messages": "Hi."}, "messages: "),
    Refusal({"messages": ["Hi."]}, "messages.0: "),
    Refusal({"messages": [{"role": 5, "content": "x"}]}, "messages.0.role: "),
    Refusal({"messages": [ask({"type": "text", "text": "x"})]}, "messages.0.content: "),
    Refusal({"messages": [{**HI, "thinking": True}]}, "messages.0.thinking: "),
    Refusal({"messages": [{**HI, "images": "x"}]}, "messages.0.images: "),
    Refusal({"messages": [{**HI, "tool_calls": {}}]}, "messages.0.tool_calls: "),
    Refusal({"messages": [{**HI, "tool_calls": ["f"]}]}, "messages.0.tool_calls.0: "),
    Refusal({"messages": [{**HI, "tool_calls": [{"function": "f"}]}]}, "messages.0.tool_calls.0.function: "),
    Refusal(tool_turn(name=5), "messages.1.tool_calls.0.function.name: "),
    Refusal(tool_turn(arguments="{}"), "messages.1.tool_calls.0.function.arguments: "),
    Refusal({"tools": {}}, "tools: "),
    Refusal({"tools": ["f"]}, "tools.0: "),
    Refusal({"tools": [{"function": "f"}]}, "tools.0.function: "),
    Refusal({"tools": [{"function": {"name": "f", "parameters": "x"}}]}, "tools.0.function.parameters: "),
    Refusal({"stream": "no"}, "stream: "),
    Refusal({"think": 5}, "think: "),
    Refusal({"format": 5}, "format: expected"),
    Refusal({"format": "xml"}, "invalid format: "),
    Refusal({"format": "json"}, "format: "),
    Refusal({"format": OBJECT}, "format: "),
    Refusal({"options": "x"}, "options: "),
    Refusal({"options": {"num_predict": "20"}}, "options.num_predict: "),
    Refusal({"options": {"temperature": "hot"}}, "options.temperature: "),
    Refusal({"options": {"stop": "END"}}, "options.stop: "),
    Refusal({"options": {"stop": [5]}}, "options.stop.0: "),
    Refusal({"logprobs": True}, "logprobs: "),
    Refusal({"top_logprobs": 5}, "top_logprobs: "),
    Refusal({"n": 2}, "n: "),
    Refusal({"stop": ["END"]}, "stop: "),
    Refusal({"response_format": {"type": "json_object"}}, "response_format: "),
)

INTERACTED = (
    Refusal({"input": 5}, "input"),
    Refusal({"input": [{"type": 5}]}, "input.0.type"),
    Refusal({"system_instruction": 5}, "system_instruction"),
    Refusal({"previous_interaction_id": 5}, "previous_interaction_id"),
    Refusal({"continuation_token": 5}, "continuation_token"),
    Refusal({"stream": "true"}, "stream"),
    Refusal({"background": 1}, "background"),
    Refusal({"store": "no"}, "store"),
    Refusal({"generation_config": 5}, "generation_config"),
    Refusal({"generation_config": {"temperature": 3}}, "generation_config.temperature"),
    Refusal({"generation_config": {"top_p": 2}}, "generation_config.top_p"),
    Refusal({"generation_config": {"max_output_tokens": 0}}, "generation_config.max_output_tokens"),
    Refusal({"generation_config": {"stop_sequences": "x"}}, "generation_config.stop_sequences"),
    Refusal({"generation_config": {"stop_sequences": [5]}}, "generation_config.stop_sequences.0"),
    Refusal({"generation_config": {"tool_choice": 5}}, "generation_config.tool_choice"),
    Refusal({"tools": {}}, "tools"),
    Refusal({"tools": ["f"]}, "tools.0"),
    Refusal({"tools": [{"name": "f"}]}, "tools.0.type"),
)


def cohere_tool_turn(**more: Any) -> dict[str, Any]:
    made = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, **more}
    return {"messages": [HI, {"role": "assistant", "tool_calls": [made]},
                         {"role": "tool", "tool_call_id": "c1", "content": "done"}]}


COHERES = (
    Refusal({"message": "Hi."}, "message: "),
    Refusal({"model": DROP}, "model: "),
    Refusal({"messages": DROP}, "messages: "),
    Refusal({"messages": []}, "messages: "),
    Refusal({"messages": ["Hi."]}, "messages.0: "),
    Refusal({"messages": [{"role": "CHATBOT", "content": "x"}]}, "messages.0.role: "),
    Refusal({"messages": [{"role": "user"}]}, "messages.0.content: "),
    Refusal({"messages": [{"role": "system"}, HI]}, "messages.0.content: "),
    Refusal({"messages": [HI, {"role": "assistant", "content": 5}]}, "messages.1.content: "),
    Refusal({"messages": [HI, {"role": "tool", "content": "x"}]}, "messages.1.tool_call_id: "),
    Refusal({"messages": [HI, {"role": "tool", "tool_call_id": "c1"}]}, "messages.1.content: "),
    Refusal({"messages": [HI, {"role": "assistant", "tool_calls": {}}]}, "messages.1.tool_calls: "),
    Refusal({"messages": [HI, {"role": "assistant", "tool_calls": ["f"]}]}, "messages.1.tool_calls.0: "),
    Refusal(cohere_tool_turn(id=DROP), "messages.1.tool_calls.0.id: "),
    Refusal(cohere_tool_turn(function={"name": 5}), "messages.1.tool_calls.0.function.name: "),
    Refusal(cohere_tool_turn(function={"name": "f", "arguments": {}}), "messages.1.tool_calls.0.function.arguments: "),
    Refusal({"max_tokens": 0}, "max_tokens: "),
    Refusal({"stream": "true"}, "stream: "),
    Refusal({"stop_sequences": "x"}, "stop_sequences: "),
    Refusal({"stop_sequences": ["a", "b", "c", "d", "e", "f"]}, "stop_sequences: "),
    Refusal({"stop_sequences": [5]}, "stop_sequences.0: "),
    Refusal({"temperature": -1}, "temperature: "),
    Refusal({"seed": "x"}, "seed: "),
    Refusal({"frequency_penalty": 2}, "frequency_penalty: "),
    Refusal({"presence_penalty": -1}, "presence_penalty: "),
    Refusal({"k": 501}, "k: "),
    Refusal({"p": 1}, "p: "),
    Refusal({"logprobs": True}, "logprobs: "),
    Refusal({"response_format": 5}, "response_format: "),
    Refusal({"response_format": {"type": "xml"}}, "response_format.type: "),
    Refusal({"response_format": {"type": "json_object", "json_schema": 5}}, "response_format.json_schema: "),
    Refusal({"response_format": {"type": "json_object"}}, "response_format: the scenario"),
    Refusal({"thinking": 5}, "thinking: "),
    Refusal({"thinking": {"type": "much"}}, "thinking.type: "),
    Refusal({"tools": {}}, "tools: "),
    Refusal({"tools": ["f"]}, "tools.0: "),
    Refusal({"tools": [{"type": "function"}]}, "tools.0.function: "),
    Refusal({"tools": [{"function": {"parameters": {}}}]}, "tools.0.function.name: "),
    Refusal({"tools": [{"function": {"name": "f"}}]}, "tools.0.function.parameters: "),
    Refusal({"tools": [TOOL], "tool_choice": "ANY"}, "tool_choice: expected one of"),
    Refusal({"tool_choice": "REQUIRED"}, "tool_choice: it may only"),
    Refusal({"messages": [HI, {"role": "tool", "tool_call_id": "c1", "content": "x"}]}, "messages.1: no tool call"),
)

COMPLETED = (
    Refusal({"model": DROP}),
    Refusal({"prompt": DROP}, "prompt", MISSING),
    Refusal({"prompt": 5}, "prompt", TYPE),
    Refusal({"prompt": ["Hi.", "Ho."]}, "prompt", "array_above_max_length"),
    Refusal({"prompt": [5]}, "prompt[0]", TYPE),
    Refusal({"max_tokens": 0}, "max_tokens", "integer_below_min_value"),
    Refusal({"stream": "true"}, "stream", TYPE),
    Refusal({"stream": True, "stream_options": True}, "stream_options", TYPE),
    Refusal({"stream_options": {"include_usage": True}}, "stream_options"),
    Refusal({"temperature": 2.5}, "temperature", "decimal_above_max_value"),
    Refusal({"top_p": -0.1}, "top_p", "decimal_below_min_value"),
    Refusal({"presence_penalty": 3}, "presence_penalty", "decimal_above_max_value"),
    Refusal({"frequency_penalty": -3}, "frequency_penalty", "decimal_below_min_value"),
    Refusal({"seed": "x"}, "seed", TYPE),
    Refusal({"stop": 5}, "stop", TYPE),
    Refusal({"stop": [5]}, "stop[0]", TYPE),
    Refusal({"n": 2}, "n", "unsupported_value"),
    Refusal({"best_of": 2}, "best_of", "unsupported_parameter"),
    Refusal({"echo": True}, "echo", "unsupported_parameter"),
    Refusal({"logprobs": 0}, "logprobs", "unsupported_parameter"),
    Refusal({"suffix": "x"}, "suffix", "unsupported_parameter"),
)
COMPLETE_ROWS = (
    Refusal({"model": DROP}, "model: "),
    Refusal({"prompt": DROP}, "prompt: "),
    Refusal({"max_tokens_to_sample": DROP}, "max_tokens_to_sample: "),
    Refusal({"max_tokens_to_sample": 0}, "max_tokens_to_sample: "),
    Refusal({"stop_sequences": "x"}, "stop_sequences: "),
    Refusal({"stop_sequences": [5]}, "stop_sequences.0: "),
    Refusal({"stream": "true"}, "stream: "),
    Refusal({"temperature": 1.5}, "temperature: "),
    Refusal({"top_p": 2}, "top_p: "),
    Refusal({"top_k": -1}, "top_k: "),
    Refusal({"metadata": "x"}, "metadata: "),
)
GENERATED = (
    Refusal({"prompt": DROP}, "prompt: "),
    Refusal({"system": 5}, "system: "),
    Refusal({"template": 5}, "template: "),
    Refusal({"suffix": "x"}, "suffix: "),
    Refusal({"context": [1]}, "context: "),
    Refusal({"images": "x"}, "images: "),
    Refusal({"images": [5]}, "images.0: "),
    Refusal({"raw": "yes"}, "raw: "),
    *(row for row in OLLAMAS if not {"messages", "tools"} & set(row.change)),
)
INVOKED = (
    Refusal({"anthropic_version": DROP}, "anthropic_version: "),
    Refusal({"anthropic_version": "2023-06-01"}, "anthropic_version: "),
    Refusal({"model": "text"}, "model: "),
    Refusal({"stream": True}, "stream: "),
    *(row for row in MESSAGE if not {"model", "stream"} & set(row.change)),
)
REFUSALS: Mapping[str, tuple[Refusal, ...]] = {
    COHERE: COHERES, COMPLETIONS: COMPLETED,
    INVOKE: INVOKED, COMPLETE: COMPLETE_ROWS, GENERATE: GENERATED,
    INTERACTIONS: INTERACTED,
    CHAT: CHATS, RESPONSES: RESPONSE, MESSAGES: MESSAGE, GEMINI: GEMINIS, CONVERSE: CONVERSES, OLLAMA: OLLAMAS,
}


def body_of(api: str, refusal: Refusal) -> dict[str, Any]:
    """The request of a row."""
    made = without({**BODIES[api], **refusal.change})
    assert isinstance(made, dict)
    return made


def without(value: Any) -> Any:
    """The value without the members that are dropped."""
    if isinstance(value, dict):
        return {name: without(inner) for name, inner in value.items() if inner is not DROP}
    return [without(inner) for inner in value] if isinstance(value, list) else value

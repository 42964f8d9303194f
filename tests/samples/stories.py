"""The stories of the hand-written sample sessions, in the words of each provider's documents."""

from __future__ import annotations

import json
from typing import Any

from loop_core.values import (
    ArgsForm,
    CallKind,
    ChatResponse,
    OpaquePart,
    ReasoningPart,
    ResponsePart,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    Usage,
)
from tests.samples.make import Exchange, Story

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
    "additionalProperties": False,
}
CHAT_TOOL = {"type": "function", "function": {"name": "write_file", "description": "Writes a file.", "parameters": SCHEMA}}
PAGE_SCHEMA = {"type": "object", "properties": {"team": {"type": "string"}}, "required": ["team"]}
PAGE_TOOL = {"type": "function", "function": {"name": "page_oncall", "parameters": PAGE_SCHEMA}}
MESSAGES_TOOL = {"name": "write_file", "description": "Writes a file.", "input_schema": SCHEMA}
FILE = json.dumps({"path": "notes/incident.md", "content": "# Incident\n\nThe queue filled at 09:14 and drained at 09:33."})

SEGMENTS = (
    "The migration has six parts, and each can be undone. First, the old table is frozen: writes go to a journal, "
    "reads still go to the table, and the journal is checked once a minute. ",
    "Second, rows are copied in the order of their keys, a thousand at a time, with a pause whenever replication falls "
    "behind by more than two seconds. ",
    "Third, the journal is replayed over the copy. Every entry carries the version of the row that it saw, so a row "
    "that has changed since is skipped and ",
    "listed for a person to look at. Fourth, both tables are compared: counts first, then checksums by range, then the "
    "rows of every range that differs. ",
    "Fifth, reads move over, one service at a time, the smallest first. A service that reports an error goes back by "
    "itself, without asking anyone. ",
    "Sixth, writes move over and the journal is closed. The old table stays for a month, read-only, and is dropped "
    "only after two people have said so.",
)


def reply(api: str, parts: list[ResponsePart], stop: Stop, raw: str | None, **more: Any) -> ChatResponse:
    """A response as a value."""
    return ChatResponse(api, tuple(parts), StopReason(stop, raw, more.pop("detail", None)), **more)


def chat(text: str, raw: str | None, tokens: tuple[int, int], *calls: ToolCall, **more: Any) -> ChatResponse:
    """An OpenAI Chat response."""
    stops = {"stop": Stop.END_TURN, "length": Stop.MAX_TOKENS, "tool_calls": Stop.TOOL_CALL, None: Stop.INTERRUPTED}
    parts: list[ResponsePart] = [*([TextPart(text)] if text else []), *calls]
    usage = Usage(tokens[0], tokens[1], more.pop("reasoning", None))
    return reply("openai_chat", parts, stops[raw], raw, usage=usage, id="chatcmpl-sample", model=more.pop("model", "gpt-5-mini"),
                 saw_done=True, **more)


def call(name: str, arguments: str | None, key: str = "call_1", closed: bool = True, **more: Any) -> ToolCall:
    """A tool call."""
    return ToolCall(key, name, arguments, closed=closed, **more)


def user(text: str) -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    """An assistant message."""
    return {"role": "assistant", "content": text}


def _first() -> Story:
    asked = user("Plan the migration of the orders table. Be complete.")
    hint = user("Continue exactly from where you left off.")
    base = {"model": "gpt-5-mini", "stream": True, "tools": [CHAT_TOOL]}
    exchanges = []
    history: list[dict[str, Any]] = [asked]
    for number, segment in enumerate(SEGMENTS):
        raw = "stop" if number == len(SEGMENTS) - 1 else "length"
        exchanges.append(Exchange({**base, "messages": list(history)}, chat(segment, raw, (60 + 40 * number, 40))))
        history += [assistant(segment), hint]
    history = [*history[:-1], user("Now write that plan to plan.md.")]
    cut = '{"path": "plan.md", "content": "# Migration\\n\\n1. Freeze the old table: writes go to a journ'
    exchanges.append(Exchange({**base, "messages": list(history)}, chat("Writing it down.", "length", (420, 40), call("write_file", cut))))
    ran = {"path": "plan.md", "content": "# Migration\n\n1. Freeze the old table: writes go to a journ"}
    history += [
        {"role": "assistant", "content": "Writing it down.", "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "write_file", "arguments": json.dumps(ran)}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "ok, 57 bytes written to plan.md"},
    ]
    exchanges.append(Exchange({**base, "messages": history}, chat("The plan is in plan.md.", "stop", (480, 8))))
    return Story(
        "01-cut-call-and-long-answer.session.jsonl", "openai_chat",
        "A gateway that cuts at 40 tokens: a long answer, and a tool call that was run half-written",
        "The gateway ends every response at 40 tokens, whatever it is asked for. Turn 1 needs five continuations, two "
        "more than the default allows: raise continuation_max_attempts to 5 and it completes. In turn 2 the call of "
        "write_file is cut in the middle of its JSON, and the agent runs what it has.",
        "AbortPartial, retry_limit; Unrecorded, unrecorded", tuple(exchanges), url="https://gateway.example/v1/chat/completions",
    )


def _anthropic_repaired() -> Story:
    asked = user("Save the incident note.")
    base = {"model": "claude-sonnet-4-5", "max_tokens": 60, "stream": True, "tools": [MESSAGES_TOOL]}
    cut = reply("anthropic_messages", [TextPart("I will save it."), call("write_file", FILE[:61], "toolu_1", closed=False)],
                Stop.MAX_TOKENS, "max_tokens", usage=Usage(310, 60), id="msg_1", model="claude-sonnet-4-5")
    whole = reply("anthropic_messages", [call("write_file", FILE, "toolu_2")], Stop.TOOL_CALL, "tool_use",
                  usage=Usage(372, 48), id="msg_2", model="claude-sonnet-4-5")
    done = reply("anthropic_messages", [TextPart("The note is saved.")], Stop.END_TURN, "end_turn", usage=Usage(450, 7),
                 id="msg_3", model="claude-sonnet-4-5")
    history = [asked, assistant("I will save it."),
               user("Your call of write_file was cut off. Send that one call again, complete, and nothing else.")]
    after = [*history,
             {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_2", "name": "write_file", "input": json.loads(FILE)}]},
             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "saved"}]}]
    return Story(
        "05-cut-call-repaired.session.jsonl", "anthropic_messages", "A call cut in the middle of its JSON, and repaired",
        "max_tokens ends the response inside write_file's input; the call is held, asked for again, comes whole and runs.",
        "Complete, completed",
        (Exchange({**base, "messages": [asked]}, cut), Exchange({**base, "messages": history}, whole),
         Exchange({**base, "messages": after}, done)),
    )


def _responses_degrades() -> Story:
    tool = {"type": "function", "name": "write_file", "parameters": SCHEMA}
    base = {"model": "gpt-5", "max_output_tokens": 48, "stream": True, "tools": [tool]}
    asked = {"role": "user", "content": "Write the report to report.md."}

    def cut(number: int) -> ChatResponse:
        prefix = '{"path":"report.md","content":"Three regions were affected. In the first, the queue was satur'
        return reply("openai_responses", [call("write_file", prefix, f"call_{number}", closed=False, status="incomplete",
                                               item_id=f"fc_{number}")],
                     Stop.MAX_TOKENS, "incomplete:max_output_tokens", usage=Usage(200 + 60 * number, 48, 0),
                     id=f"resp_{number}", model="gpt-5")

    again = {"role": "user", "content": "The write_file call was truncated. Emit the complete call again and nothing else."}
    return Story(
        "06-repair-fails.session.jsonl", "openai_responses", "A repair that fails: the turn degrades safely",
        "The call is cut at 48 tokens, asked for again and cut at the same place: nothing is run, and the notice says "
        "what to change.",
        "AbortPartial, repair_failed",
        (Exchange({**base, "input": [asked]}, cut(1)), Exchange({**base, "input": [asked, again]}, cut(2))),
    )


def _mimo() -> Story:
    prefix = '{"path": "test.txt", "content": "Lorem ipsum dolor sit amet, consectetur adipis'
    response = chat("", None, (180, 100), call("write_to_file", prefix, closed=False), model="mimo-v2.5-pro", reasoning=45)
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
              "required": ["path", "content"]}
    request = {
        "model": "mimo-v2.5-pro", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 100,
        "messages": [user("Use write_to_file to create test.txt with 2000 characters of filler text.")],
        "tools": [{"type": "function", "function": {"name": "write_to_file", "parameters": schema}}],
    }
    return Story(
        "07-no-finish-reason.session.jsonl", "openai_chat", "The MiMo stream: no finish reason, and choices []",
        "The budget is spent inside the call; the last chunk has no choices and no reason. The usage equals the cap: "
        "thinking took 45 of the 100 tokens.",
        "Unrecorded, unrecorded", (Exchange(request, response),),
        url="https://token-plan-sgp.xiaomimimo.com/v1/chat/completions",
    )


def _router() -> Story:
    prefix = '{"path": "summary.md", "content": "Two of the three regions were drained by'
    response = chat("", "tool_calls", (240, 64), call("write_file", prefix), model="anthropic/claude-sonnet-4.5",
                    native={"native_finish_reason": "max_tokens"})
    request = {"model": "anthropic/claude-sonnet-4.5", "stream": True, "max_tokens": 64, "tools": [CHAT_TOOL],
               "messages": [user("Write the summary.")]}
    return Story(
        "08-router-says-tool-calls.session.jsonl", "openai_chat", "A router says tool_calls over a cut call",
        "finish_reason is tool_calls, native_finish_reason is max_tokens, and the arguments end in the middle: the "
        "native word and the bytes agree.",
        "Unrecorded, unrecorded", (Exchange(request, response),), url="https://openrouter.ai/api/v1/chat/completions",
    )


def _batch() -> Story:
    response = chat("I page the team and file the report.", "length", (300, 96), call("page_oncall", '{"team": "platform"}', "call_a"),
                    call("write_file", '{"path": "report.md", "content": "At 09:14 the', "call_b"))
    request = {"model": "gpt-5-mini", "stream": True, "max_tokens": 96, "tools": [PAGE_TOOL, CHAT_TOOL],
               "messages": [user("Page the platform team and file a report.")]}
    return Story(
        "09-one-complete-one-cut.session.jsonl", "openai_chat", "One complete and one cut call in a batch",
        "The first call of the batch is complete, the second is cut: a truncated batch is one unfinished batch, so both "
        "are held.",
        "Unrecorded, unrecorded", (Exchange(request, response),),
    )


def _cut_call_ran() -> Story:
    cut = reply("anthropic_messages",
                [call("run_command", '{"command": "rm -rf build/cache"}', "toolu_9", closed=False, form=ArgsForm.OBJECT)],
                Stop.MAX_TOKENS, "max_tokens", usage=Usage(520, 32), id="msg_9", model="claude-sonnet-4-5")
    done = reply("anthropic_messages", [TextPart("The cache is gone.")], Stop.END_TURN, "end_turn", usage=Usage(570, 6),
                 id="msg_10", model="claude-sonnet-4-5")
    schema = {"type": "object", "properties": {"command": {"type": "string"}, "cwd": {"type": "string"}}, "required": ["command"]}
    base = {"model": "claude-sonnet-4-5", "max_tokens": 32, "tools": [{"name": "run_command", "input_schema": schema}]}
    asked = user("Clear the build cache of the staging checkout only.")
    after = [asked,
             {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_9", "name": "run_command",
                                                "input": {"command": "rm -rf build/cache"}}]},
             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_9", "content": "removed 4,112 files"}]}]
    return Story(
        "10-agent-ran-a-cut-call.session.jsonl", "anthropic_messages", "An agent that ran a cut call",
        "Not streamed, so the cut call arrives as a valid object: the working directory that should have followed is "
        "missing, no parser complains, and the agent runs it. Only the stop reason tells.",
        "Unrecorded, unrecorded",
        (Exchange({**base, "messages": [asked]}, cut, stream=False), Exchange({**base, "messages": after}, done, stream=False)),
    )


def _context() -> Story:
    response = reply("anthropic_messages", [TextPart("The log has 41,000 lines. The first error is at line 118: the")],
                     Stop.CONTEXT_WINDOW_EXCEEDED, "model_context_window_exceeded", usage=Usage(199_982, 18), id="msg_1",
                     model="claude-sonnet-4-5")
    request = {"model": "claude-sonnet-4-5", "max_tokens": 4096, "stream": True,
               "messages": [user("Here is the log. Find every error.")]}
    return Story(
        "11-context-window-exceeded.session.jsonl", "anthropic_messages", "The context window is exceeded",
        "The answer is cut because the context is full, not because of max_tokens: a continuation cannot succeed.",
        "Abort, context_window_exceeded", (Exchange(request, response),),
    )


def _safety() -> Story:
    response = reply("gemini_generate", [TextPart("I can describe the general")], Stop.SAFETY_BLOCKED, "SAFETY",
                     usage=Usage(90, 5), id="resp-1", model="gemini-2.5-flash")
    request = {"contents": [{"role": "user", "parts": [{"text": "Explain how the lock was opened."}]}],
               "generationConfig": {"maxOutputTokens": 512}}
    return Story(
        "12-safety-block.session.jsonl", "gemini_generate", "A safety block in the middle of an answer",
        "Gemini ends with SAFETY after a few words: the turn aborts, and nothing is continued.",
        "Abort, safety_blocked", (Exchange(request, response),), url=URL_SSE,
    )


URL_SSE = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"


def _pause() -> Story:
    search = call("web_search", '{"query": "queue saturation 2026 incident"}', "srvtoolu_1", kind=CallKind.SERVER)
    found = OpaquePart("web_search_tool_result", json.dumps(
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
         "content": [{"type": "web_search_result", "url": "https://status.example/1", "title": "Incident", "encrypted_content": "E"}]},
        separators=(",", ":")))
    paused = reply("anthropic_messages", [TextPart("I look for reports."), search, found], Stop.PAUSED, "pause_turn", detail="echo",
                   usage=Usage(800, 60), id="msg_1", model="claude-sonnet-4-5")
    done = reply("anthropic_messages", [TextPart(" There was one: the queue was saturated for nineteen minutes.")], Stop.END_TURN,
                 "end_turn", usage=Usage(1400, 16), id="msg_2", model="claude-sonnet-4-5")
    base = {"model": "claude-sonnet-4-5", "max_tokens": 1024, "stream": True,
            "tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    asked = user("Was there a public incident report?")
    echoed = {"role": "assistant", "content": [
        {"type": "text", "text": "I look for reports."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "queue saturation 2026 incident"}},
        json.loads(found.json)]}
    return Story(
        "13-pause-turn.session.jsonl", "anthropic_messages", "pause_turn: the provider's own tools took a break",
        "The response pauses after a web search; its content goes back as it is, and the answer is finished.",
        "Complete, completed",
        (Exchange({**base, "messages": [asked]}, paused), Exchange({**base, "messages": [asked, echoed]}, done)),
    )


def _bedrock() -> Story:
    cut = reply("bedrock_converse", [TextPart("Saving."), call("write_file", FILE[:44], "tooluse_1", closed=False)],
                Stop.MAX_TOKENS, "max_tokens", usage=Usage(260, 40), model="anthropic.claude-sonnet-4-5")
    request = {
        "messages": [{"role": "user", "content": [{"text": "Save the incident note."}]}],
        "inferenceConfig": {"maxTokens": 40},
        "toolConfig": {"tools": [{"toolSpec": {"name": "write_file", "inputSchema": {"json": SCHEMA}}}]},
    }
    return Story(
        "14-bedrock-event-stream.session.jsonl", "bedrock_converse", "A Bedrock event stream with a call that is never closed",
        "Binary frames with checksums; contentBlockStop never comes, messageStop says max_tokens.",
        "Unrecorded, unrecorded", (Exchange(request, cut),),
    )


def _gemini_malformed() -> Story:
    bad = reply("gemini_generate", [], Stop.MALFORMED_TOOL_CALL, "MALFORMED_FUNCTION_CALL", usage=Usage(140, 0), id="resp-1",
                model="gemini-2.5-flash", native={"finishMessage": "Malformed function call: print(default_api.write_file(path="})
    good = reply("gemini_generate", [call("write_file", json.dumps({"path": "a.md", "content": "x"}), None, form=ArgsForm.OBJECT)],
                 Stop.END_TURN, "STOP", usage=Usage(180, 20), id="resp-2", model="gemini-2.5-flash")
    done = reply("gemini_generate", [TextPart("Done.")], Stop.END_TURN, "STOP", usage=Usage(210, 2), id="resp-3",
                 model="gemini-2.5-flash")
    asked = {"role": "user", "parts": [{"text": "Create a.md with one letter."}]}
    again = {"role": "user", "parts": [{"text": "Your function call was malformed. Send the complete write_file call again and nothing else."}]}
    ran = [{"role": "model", "parts": [{"functionCall": {"name": "write_file", "args": {"path": "a.md", "content": "x"}}}]},
           {"role": "user", "parts": [{"functionResponse": {"name": "write_file", "response": {"result": "ok"}}}]}]
    base = {"generationConfig": {"maxOutputTokens": 512},
            "tools": [{"functionDeclarations": [{"name": "write_file", "parametersJsonSchema": SCHEMA}]}]}
    return Story(
        "15-gemini-malformed-call.session.jsonl", "gemini_generate", "A malformed Gemini call, asked for again",
        "MALFORMED_FUNCTION_CALL comes with no content at all; asked again, the model sends a whole call, under STOP.",
        "Complete, completed",
        (Exchange({**base, "contents": [asked]}, bad), Exchange({**base, "contents": [asked, again]}, good),
         Exchange({**base, "contents": [asked, again, *ran]}, done)),
        url=URL_SSE,
    )


def _budget() -> Story:
    asked = user("Plan the migration of the orders table. Be complete.")
    hint = user("Continue exactly from where you left off.")
    base = {"model": "gpt-5-mini", "stream": True, "max_tokens": 40}
    exchanges, history = [], [asked]
    for number, segment in enumerate(SEGMENTS[:5]):
        exchanges.append(Exchange({**base, "messages": list(history)}, chat(segment, "length", (60 + 40 * number, 40))))
        history = [*history, assistant(segment), hint]
    return Story(
        "04-token-budget-exhausted.session.jsonl", "openai_chat", "The token budget is exhausted before the attempts",
        "Ten attempts are allowed, but four times the initial max_tokens (160) is spent after three continuations.",
        "AbortPartial, budget_exhausted", tuple(exchanges), limits={"continuation_max_attempts": 10},
    )


def _thinking() -> Story:
    parts: list[ResponsePart] = [ReasoningPart("The user wants a plan. Let me think about every table and its writers first")]
    empty = reply("ollama_chat", parts, Stop.MAX_TOKENS, "length", usage=Usage(40, 32), model="qwen3:4b")
    request = {"model": "qwen3:4b", "stream": True, "options": {"num_predict": 32},
               "messages": [user("Plan the migration of the orders table.")]}
    return Story(
        "17-thinking-ate-the-budget.session.jsonl", "ollama_chat", "Thinking ate the whole budget",
        "num_predict ends the response while the model still thinks: no visible text, so the machine would ask once "
        "more with a larger cap.",
        "Unrecorded, unrecorded", (Exchange(request, empty),),
    )


STORIES: tuple[Story, ...] = (
    _first(), _budget(), _anthropic_repaired(), _responses_degrades(), _mimo(), _router(), _batch(), _cut_call_ran(), _context(),
    _safety(), _pause(), _bedrock(), _gemini_malformed(), _thinking(),
)

"""Tables of known texts that agents write in place of an answer or a result, with their sources.

A user message after a cut is a continuation only if a row matches it or if it quotes the cut text; any other message
begins a new turn. Agents have these wordings as constants, so each is searched only at the beginning of a text: a file
that a tool has read may contain any sentence.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
import re
from typing import NamedTuple

from loop_core.values import ToolResultPart

# -- Hints after a cut -----------------------------------------------------------------------------------------------


class HintWording(NamedTuple):
    """One wording; the pattern is searched in the message, white space folded, letters in lower case."""

    name: str
    source: str
    pattern: str
    call: bool = False
    """Whether the wording concerns a tool call, and therefore counts only if a call was cut."""
    again: bool = False
    """Whether an agent writes it after an answer that it cannot use, which may be empty."""


HINTS: tuple[HintWording, ...] = (
    HintWording("continue_exactly", "ZeroClaw RFI 2309 (continuation hint); Hermes; ZeroClaw",
        r"\b(?:continue|resume|go on|pick up|carry on)\b[^.!?]{0,40}"
        r"\b(?:where|(?:at|from) the (?:exact )?(?:point|place|spot)) (?:where |that )?"
        r"(?:you|it|the (?:text|answer|output|response)) (?:\w+ )?(?:left|stop|cut|end|broke|break|were|was|paused)"),
    HintWording("previous_cut", "ZeroClaw RFI 2309; Hermes; gsd-pi; mini-swe-agent; nanobot",
        r"\b(?:previous|last|your) (?:assistant )?(?:response|message|output|answer|reply|generation|turn)\b"
        r"[^.!?,;]{0,40}\b(?:truncated|cut (?:off|short)|incomplete|interrupted mid|"
        r"(?:hit|reached) the (?:output|token|length))"),
    HintWording("stream_timed_out", "Hermes", r"\byour previous tool call\b[^.!?]{0,120}\bthe stream timed out\b"),
    HintWording("limit_hit", "Claude Code; typeclaw",
        r"\b(?:output|response|completion|max(?:imum)?)[ _-](?:output[ _-])?(?:token[s]?|length)(?: limit)? "
        r"(?:was |has been |is )?(?:hit|reached|exceeded)"),
    HintWording("no_recap", "Claude Code; cursor2api",
        r"\b(?:resume|continue)\b.{0,60}\b(?:no|without|do not|don't)\b.{0,20}"
        r"\b(?:apolog|recap|repeat|preamble|restat)"),
    HintWording("do_not_repeat", "ZeroClaw RFI 2309 (continuation hint)",
        r"\bdo not (?:repeat|restate|restart|regenerate)\b.{0,60}"
        r"\b(?:already[ -](?:sent|said|wrote|written|given|above)|previous|sent|wrote|written|text|beginning)"),
    HintWording("bare_continue", "LibreChat; bedrock-access-gateway; pi-length-continue; opencode (in quotes)",
        r"^\"?(?:please |now )?(?:continue|go on|keep going|carry on|resume|proceed)"
        r"(?: please| writing| generating)?(?: (?:the|your) (?:response|answer|output|text))?[ .!…]*\"?$"),
    HintWording("call_cut", "ZeroClaw RFI 2309 (tool repair); Hermes; DeepChat; Strands",
        r"\b(?:call|tool use|function|arguments?|payload)s?\b[^.!?]{0,60}"
        r"\b(?:truncated|cut (?:off|short)|incomplete|malformed|invalid json|not valid json|never finished)",
        call=True),
    HintWording("resend_call", "ZeroClaw RFI 2309 (tool repair); pi #6285",
        r"\b(?:re-?(?:send|issue|emit|do|try|generate)|repeat|send|emit|issue|make)\b[^.!?]{0,60}"
        r"\b(?:tool|function|call|arguments|payload|json)\b", call=True),
    HintWording("split_call", "Hermes; cynative",
        r"\b(?:split|break)\b[^.!?]{0,60}\b(?:smaller|several|multiple|parts?|chunks?)\b[^.!?]{0,40}"
        r"\b(?:call|write|tool)s?\b", call=True),
    HintWording("no_call_found", "gptme; mini-swe-agent; smolagents; OpenHands; Instructor",
        r"^(?:<system>no tool call detected\b|tool call error: <error>|error: error while parsing tool call\b|"
        r"your last response did not include a function call or a message\b|validation error (?:found: no tool calls?|"
        r"due to no tool invocation)\b)", call=True, again=True),
    HintWording("answer_wanted", "Pydantic AI messages.py: the feedback of `no_output`; Inspect agent/_types.py",
        r"^(?:<system>)?please (?:(?:return (?:text|an image)|include your response in a tool call|call a tool|"
        r"proceed to the next step using your best judgement)(?: or )?)+\.", call=True, again=True),
    HintWording("answer_of_no_use", "Claude Code 2.1.332, also after an answer left out; Droid; Codex; Gemini CLI",
        r"^(?:<content_filter_guidance>|(?:<system-reminder> ?)?(?:output token limit hit|your response (?:above )?was "
        r"(?:cut off (?:mid-stream|because it exceeded)|stopped by a safety classifier)|your previous response was "
        r"interrupted mid-generation|your tool call was malformed and could not be parsed|the previous response failed "
        r"to produce a valid tool call|\[your previous response (?:had|reached the output limit with) no visible)\b|"
        r"<system-reminder> ?continue\.</system-reminder>$|\[system: you (?:previously (?:"
        r"returned an empty|generated thoughts but)|successfully executed a tool but returned an)\b)", again=True),
)

RESULTS: tuple[HintWording, ...] = (
    HintWording("cut_result", "pi #6285; OpenClaw; Zoo-Code",
        r"\b(?:truncated|cut (?:off|short)|incomplete|output (?:token )?limit|"
        r"max[_ ]?(?:output[_ ])?tokens|length limit)\b"),
    HintWording("not_run", "pi #6285; agentao",
        r"\b(?:not (?:been )?(?:executed|run)|was (?:blocked|held|rejected|discarded)|re-?issue)\b"),
    HintWording("invalid_arguments", "Claude Code; pydantic-ai; LangChain",
        r"\b(?:invalid|malformed|unparsable|could not parse|failed to parse)\b.{0,30}"
        r"\b(?:json|arguments?|input|parameters?)\b|\binputvalidationerror\b"),
)
"""Wordings with which agents tell a model in a tool result that its call was cut and did not run."""

RESULT_TEXTS = (r"observation:", r"call id: \S+ error:", r"error: (?:error executing tool '|unknown tool \S+,)")
"""Patterns of the beginning of a user message in which an agent sends back a result: smolagents, also release 1.26."""

_SEARCHED_CHARACTERS = 600
"""The number of characters at the beginning of a message that are searched, since a hint is short or comes first."""


def known_hint(text: str, call: bool = True) -> str | None:
    """The name of the hint in `text` after a cut (of a call, or of text); None if there is no hint."""
    return _search(HINTS if call else tuple(row for row in HINTS if not row.call), text)


def asks_again(text: str) -> str | None:
    """The name of the hint by which an agent asks again after an answer that it cannot use; None if there is none."""
    return _search(tuple(row for row in HINTS if row.again), text)


def begins_as_result(text: str) -> bool:
    """Whether a user message is the result of a call, by a pattern of `RESULT_TEXTS`."""
    return re.match("|".join(RESULT_TEXTS), " ".join(text[:_SEARCHED_CHARACTERS].lower().split())) is not None


def cut_result(text: str) -> str | None:
    """The name of the wording in a tool result that reports that its call was cut; None if there is none."""
    return _search(RESULTS, text)


def _search(rows: tuple[HintWording, ...], text: str) -> str | None:
    # a model may write either apostrophe
    folded = " ".join(text[:_SEARCHED_CHARACTERS].lower().replace("\u2019", "'").split())
    return next((row.name for row in rows if re.search(row.pattern, folded)), None)


# -- Calls that did not run, and interruptions of the user -----------------------------------------------------------


class NotRun(NamedTuple):
    """A wording in a result that reports that its call did not run."""

    name: str
    pattern: str
    """The pattern at the beginning of the result, after error marks. It ignores case; a space is any white space. Where
    it has a group `model`, that group must be the name of the model of the tool's arguments."""
    why: str
    source: str


REFUSALS: tuple[NotRun, ...] = (
    NotRun("user_refused", r"the user doesn't want to (?:proceed with this tool use|take this action right now)\b",
           "the user refused it", "Claude Code; also where the turn was stopped before the call began"),
    NotRun("user_denied", r"permission for this tool use was denied\b", "the user refused it",
           "Claude Code, subagents"),
    NotRun("plan_refused", r"the agent proposed a plan that was rejected by the user\b", "the user refused the plan",
           "Claude Code"),
    NotRun("not_granted", r"claude requested permissions? .{0,500}haven't granted it yet",
           "a permission was missing", "Claude Code"),
    NotRun("rule_denied", r"(?:permission (?:to (?:use|read|edit|write) .{0,500}\bdenied\b|denied by rule: )|"
           r"exec_command failed(?: for `.{1,500}`)?: createprocess \{ message: \"rejected\()",
           "a permission rule refused it", "Claude Code; Letta Code; Codex CLI core/src/exec_policy.rs"),
    NotRun("hook_blocked", r"(?:pretooluse:\S+ hook|hook pretooluse:\S+|execution stopped by pretooluse hook|"
           r"\S+ operation blocked by hook)\b", "a hook refused it", "Claude Code"),
    NotRun("input_refused", r"inputvalidationerror\b", "the agent refused its arguments", "Claude Code"),
    NotRun("validation_failed", r"validation failed for (?:tool\b|input parameters: )",
           "the agent refused its arguments", "pi; Strands tools/decorator.py, before the tool runs"),
    NotRun("arguments_invalid", r"(?:the arguments provided to the tool are invalid\b|"
           r"the \S+ tool was called with invalid arguments\b|\S+ tool missing required parameters?: )",
           "the agent refused its arguments", "opencode; Letta Code"),
    NotRun("user_rejected", r"(?:the user rejected (?:permission to use this specific|this) tool call|"
           r"(?:the tool call is|tool call invocation was) rejected by (?:the )?user)\b", "the user refused it",
           "opencode; Copilot CLI; Kiro; Kimi CLI; Microsoft Agent Framework 1.23 _tools.py"),
    NotRun("rule_prevents", r"(?:the user has specified a rule which prevents you from using this specific tool call\b|"
           r"command blocked by security policy$|(?:this|tool) \"\S+\" (?:invocation was|is) denied by permission "
           r"rules\b)", "a permission rule refused it", "opencode; Continue CLI; Qwen Code"),
    NotRun("denied", r"(?:user denied permission\b|the user has declined to run this tool\b|"
           r"the user declined this tool call\b|permission denied by user$|user denied the tool execution$|"
           r"tool execution denied\.$)", "the user refused it",
           "Crush; Goose; opencode 2 runner/step.ts; Continue CLI stream/streamChatResponse.helpers.ts; Letta Code"),
    NotRun("call_skipped", r"<user_cancellation>(?:tool execution skipped by user\b|user cancelled the operation\b|"
           r"[\w.-]{1,100}</user_cancellation>)", "the user refused it",
           "Mistral Vibe core/utils/tags.py: mostly with the name of the tool alone"),
    NotRun("input_rewritten", r"user cancell?ed assistant tool calling\b", "the user cancelled it first", "Crush"),
    NotRun("hook_denied", r"tool (?:call|execution) blocked by hook\b", "a hook refused it", "Crush; CrewAI"),
    NotRun("unread_arguments", r"(?:(?:-?\d+: )?could not interpret tool use parameters\b|\[\] \(empty list\)$)",
           "the agent could not read its arguments", "Goose; Swarms, whose results name the function that ran"),
    NotRun("no_such_tool", r"(?:tool not found: |tool not found$|no such tool available\b|tool \S+ not found\b|"
           r"unknown tool(?: name)?: |no tool named \S+ exists$|model tried to call unavailable tool '|"
           r"agenttoolexecutionerror: unknown tool \S+, should be one of: |"
           r"the requested tool does not exist or is not available\b|could not find function to call\b|"
           r"requested function \"\S+\" not found\.|function \S+ not found\.$|tool \S+ does not exists\.$|"
           r"the tool call with name `\S+` is not part of the provided tools\b)",
           "the agent knows no such tool", "Claude Code; pi; Crush; opencode 2; MCP; CrewAI; Pydantic AI "
           "_tool_manager.py; AI SDK NoSuchToolError; Agno models/base.py; Phidata; smolagents; Microsoft Agent "
           "Framework 1.23 _tools.py; Semantic Kernel 1.45 kernel.py; AG2; Qwen-Agent agent.py; Zed"),
    NotRun("not_a_tool", r"\S+ is not a valid tool, try one of \[", "the agent knows no such tool",
           "LangGraph prebuilt/tool_node.py"),
    NotRun("not_invoked", r"error invoking tool '\S+' with kwargs ", "the agent refused its arguments",
           "LangGraph prebuilt/tool_node.py: ToolInvocationError, before the tool runs"),
    NotRun("model_not_valid", r"(?:error executing tool \S+: )?"
           r"(?:\d+ validation errors? for (?:'|call\[)?|(?:error executing tool: )?(?:[\w.<>]+\.)?(?=\w+\(\) "
           r"(?:missing \d+ required|got an unexpected keyword) ))(?P<model>\w+)", "the agent refused its arguments",
           "LangChain tools/base.py; MCP fastmcp/tools/base.py; Python's words: LlamaIndex workflow/base_agent.py"),
    NotRun("details_not_valid", r"(?:\d+ validation errors?: (?:```json )?\[ ?\{ ?\"type\":|"
           r"\[ ?\{ ?\"type\": ?\"\w+\", ?\"loc\": ?\[)", "the agent refused its arguments",
           "Pydantic AI messages.py: RetryPromptPart of a ValidationError, and its list of errors alone, in spans"),
    NotRun("schema_not_met", r"(?:tool input validation error\b|received tool input did not match expected schema\b|"
           r"validation error found: \d+ validation errors? for )",
           "the agent refused its arguments", "LangChain tools/base.py; LangChain.js tools/index.ts; Instructor"),
    NotRun("server_refused", r"(?:mcp error -32602: (?:tool \S+ (?:not found|disabled)\b|unknown tool\b|"
           r"(?:input validation error: )?invalid arguments for tool \S+:)|input validation error: .{1,200}(?:"
           r"is a required property|is not (?:of type|one of|valid under) |not allowed \(|does not match ))",
           "the tool's server refused its arguments", "MCP servers: the words of their SDKs, and of jsonschema"),
    NotRun("not_parsed_as_json", r"(?:an error occurred while running the tool\. please try again\. )?(?:error: )*+"
           r"(?:invalid json input for tool\b|an error occurred while parsing tool arguments\b)",
           "the agent could not parse its arguments", "OpenAI Agents SDK tool.py; its JavaScript twin tool.ts"),
    NotRun("argument_parsing", r"argument parsing failed\.(?: exception: |$)",
           "the agent could not parse its arguments", "Microsoft Agent Framework 1.23 _tools.py"),
    NotRun("parameters_no_json", r"an error occurred when calling tool `\S+`: "
           r"valueerror: parameters must be formatted as a valid json!", "the agent could not parse its arguments",
           "Qwen-Agent agent.py, tools/base.py: a tool's first check"),
    NotRun("invalid_tool_call", r'\{"result":\{"type":"error","error":\{"name":"invalidtoolcall",',
           "the agent could not parse its arguments", "Mistral Vibe 3"),
    NotRun("parameters_not_present",
           r"invoking `\S+` failed as the following mandatory input parameters are not present\b",
           "the agent refused its arguments", "Google ADK tools/function_tool.py"),
    NotRun("arguments_malformed", r"(?:the tool call arguments are malformed\b|"
           r"there are `\d+` tool call arguments required and only `|"
           r"(?:missing required|received unexpected) argument\(s\): \[.{1,400} please revise the arguments to\b)",
           "the agent refused its arguments", "Semantic Kernel kernel.py"),
    NotRun("agent_error", r"agent(?:toolcallerror: |executionerror: code parsing failed on line \d+ due to: )",
           "the agent refused its arguments", "smolagents agents.py, local_python_executor.py: the type of "
           "an error, and the error"),
    NotRun("no_json_object", r"(?:function arguments are not a valid json object\b|"
           r"error while (?:decoding|parsing) function arguments: )", "the agent could not parse its arguments",
           "Agno utils/functions.py"),
    NotRun("not_in_json", r"[^:]{1,80}: line \d+ column \d+ \(char \d+\) the argument must be in json format\.",
           "the agent could not parse its arguments", "AG2 agentchat/conversable_agent.py"),
    NotRun("parameters_no_object", r"(?:tool '\S{1,80}' parameters must be a json object, got |"
           r"invalid parameters for tool '\S{1,80}': )", "the agent refused its arguments", "nanobot registry.py"),
    NotRun("no_native_call", r"(?:invalid native|unrecognized) tool call format$",
           "the agent could not parse it", "CrewAI agents/agent_executor.py"),
    NotRun("input_not_parsed", r"(?:error parsing (?:the following )?tool call arguments: |"
           r"found \d+ validation errors parsing tool input arguments: |"
           r"error (?:parsing|validating) (?:json arguments|input json): |failed to receive tool input: )",
           "the agent refused its arguments", "Inspect model/_call_tools.py; Kimi CLI; Zed agent/src/thread.rs"),
    NotRun("params_not_valid", r"params(?:/\S+)? must (?:have required property '|match |equal |"
           r"not have (?:additional|fewer|more) |be (?:string|number|integer|boolean|object|array|null|equal|>|<))",
           "the agent refused its arguments", "Gemini CLI and Qwen Code utils/schemaValidator.ts: Ajv's words"),
    NotRun("input_not_valid",
           r"(?:invalid (?:input|arguments|args) for tool \S+: |tool (?:input )?validation failed for |"
           r"(?:error executing tool: )?(?:tool '.{1,80}' )?arguments validation failed: |"
           r"invalid input: \"\S+\": (?:required$|expected ))", "the agent refused its arguments", "Copilot CLI; AI "
           "SDK InvalidToolInputError (4: …ArgumentsError; 7: with its name); Mastra; Kimi Code; CrewAI"),
    NotRun("blocked", r"tool execution was blocked\b", "an extension refused it", "pi"),
    NotRun("not_executed", r"<exception>\s?action was not executed\b", "the run ended before it", "mini-swe-agent"),
    NotRun("unparsed_arguments", r"(?:failed to parse (?:function arguments\b|tool arguments as json: )|"
           r"tool call (?:arguments were malformed json|failed: arguments were not valid json)\b|"
           r"the arguments for the tool call '\S+' were not valid json\.)", "the agent could not parse its arguments",
           "Codex CLI; opencode 2 publish-llm-event.ts; Crush; CrewAI; Copilot CLI"),
    NotRun("call_not_parsed", r"there was a problem parsing the tool call\b", "the agent refused its arguments",
           "Antigravity"),
    NotRun("args_not_valid", r"error validating (?:args\b|tool '\S{1,200}': )", "the agent refused its arguments",
           "OpenHands SDK agent/agent.py: the event `AgentErrorEvent`, which also tells of a tool that failed"),
    NotRun("command_rejected", r"(?:exec command |patch )?rejected by user\b", "the user refused it", "Codex CLI"),
    NotRun("unsupported_call", r"unsupported (?:custom tool )?call:", "the agent knows no such tool", "Codex CLI"),
    NotRun("parameters_missing", r"(?:\S+ call rejected: missing required parameters?\b|"
           r"required parameter \"\S+\" missing for tool \"|\w+ is required and must be an? \w+\.?$)",
           "the agent refused its arguments", "Droid; Continue CLI tools/index.tsx"),
    NotRun("operation_cancelled", r"\[operation cancelled\] reason:", "the user cancelled it", "Gemini CLI"),
    NotRun("chat_mode", r"let the user know the tool call was skipped in goose chat mode\b",
           "the agent runs no tools in this mode", "Goose tool_execution.rs"),
    NotRun("skipped", r"skipped due to queued user message\b", "the user spoke first, and it was skipped", "pi"),
    NotRun("operation_denied", r"(?:\{\"status\":\"denied\"|the user denied this operation\b)", "the user refused it",
           "Roo Code responses.ts; Cline"),
    NotRun("earlier_refused", r"(?:skipping (?:tool \[|mcp tool )|"
           r"(?:mcp )?tool .{1,500} was interrupted and not executed due to user rejecting a previous tool\b)",
           "the user refused an earlier call", "Roo Code presentAssistantMessage.ts"),
    NotRun("one_a_message", r"(?:tool .{1,500} was not executed because a tool has already been used in this message\b|"
           r"this tool was not executed because new_task was called\b)",
           "the agent runs no further call of this answer", "Cline; Roo Code Task.ts"),
    NotRun("roo_refused", r"\{\"status\":\"error\",\"message\":\"the tool execution failed\",\"error\":\""
           r"(?:missing value for required parameter|unknown tool|tool \S{1,80} is not allowed|"
           r"tool call repetition limit reached|multiple valid tool calls were emitted)\b", "the agent refused it",
           "Roo Code presentAssistantMessage.ts, validateToolUse.ts"),
)
"""The wordings of results whose call did not run; the first row that matches names the refusal."""

ERRORS: tuple[str, ...] = (
    r"an error occurred (?:while running the tool\b|when calling tool `)",
    r"function failed\.(?: exception: |$)",
    r"tool execution was aborted (?:by middleware )?before a result was produced\b",
    r"expecting value: line 1 column 1 \(char 0\)$",
)
"""Patterns of the beginning of a result that libraries write for a tool that failed and for arguments that they could
not read alike: they do not show that the call ran, nor that it did not. Sources: OpenAI's Agents SDK 0.24
`default_tool_error_function`, its JavaScript twin 0.20 `tool.ts`; Microsoft Agent Framework 1.23 `_tools.py`;
Qwen-Agent 0.0.34 `agent.py`; AutoGen 0.7, of empty arguments. OpenAI's APIs have no mark for an error."""


def _beginning(wording: str) -> str:
    """The regular expression for a result that begins with a wording, and has one space for any white space: with
    `\\s+` for each space the pattern of all wordings takes twice as long to compile."""
    spelled = wording.replace("'", "['\u2019]")
    # possessive, so that the marks cause no backtracking; `true` is Mastra's, the last two are Kimi Code's
    return (r"(?i)(?:</?(?:tool_use_error|error|system)>|(?:ai_[a-z]+)?error:|"
            r"\{ ?\"error\": ?(?:true, ?\"message\": ?)?\"| |"
            rf"wall time: \S+ seconds|tool execution failed\.(?=</))*+(?:{spelled})")


_ANY = _beginning("|".join(row.pattern for row in REFUSALS))
_ERROR = _beginning("|".join(ERRORS))

STOPS = "stop what you are doing and wait for the user"
"""The part of a refusal after which the agent does not continue by itself."""
_INTERRUPTION = (r"\s*\[Request (?:interrupted|cancell?ed|aborted) by (?:the )?user(?P<tool> for tool use)?"
                 r"[^\]\n]{0,80}\]")
PLACEHOLDERS: tuple[str, ...] = (
    r"interrupted by user", r"task was interrupted before this tool call could be completed\.",
    r"tool execution was interrupted before completion\.", r"tool canceled by user",
    r"\[interrupted by user before this tool produced a result\]",
    r"<user_cancellation>tool execution interrupted - no response available</user_cancellation>",
)
"""Patterns of the whole text that agents write as the result of a call without one: Claude Code, Roo Code (when a task
is resumed, and for a missing result), ZeroClaw, Zed, Mistral Vibe. They only show that the call has no result."""
_PLACEHOLDER = rf"(?i)\s*(?:<error>)?\s*(?:{'|'.join(PLACEHOLDERS)})\s*(?:</error>)?\s*$"


class Interruption(NamedTuple):
    """The mark by which an agent notes that the user stopped it, and the user's text after it."""

    at_tool: bool
    """Whether a tool was running or waited for permission, so that the answer itself was complete."""
    rest: str


def _is_stored(part: ToolResultPart) -> bool:
    """Whether the text stays in its file (`stored_rows.StoredResult`); such a text has none of these wordings."""
    return type(part) is not ToolResultPart


_MODELS = frozenset({"", "schema", "schemaschema", "arguments", "args", "input", "params", "tool"})
"""What the name of the model of a tool's arguments has after the tool's name: LangChain, FastMCP, Strands."""


def _is_model_of(tool: str | None, model: str) -> bool:
    """Whether a model is that of a tool's arguments: a tool that ran may report that something else is not valid."""
    own, name = (re.sub(r"[\W_]", "", text).lower() for text in (tool or "", model))
    return bool(own) and name.startswith(own) and name[len(own) :] in _MODELS


def _one_line(part: ToolResultPart) -> str:
    return " ".join(part.text[:_SEARCHED_CHARACTERS].split())


def begins_as_refusal(part: ToolResultPart) -> bool:
    """Whether a result begins with a wording of `REFUSALS`, whatever the name of its tool is."""
    return not _is_stored(part) and re.match(_ANY, _one_line(part)) is not None


def is_error(part: ToolResultPart) -> bool:
    """Whether a result is an error, by its mark or by its wording: its call may have run, and may not."""
    return part.is_error or (not _is_stored(part) and re.match(_ERROR, _one_line(part)) is not None)


def refusal(part: ToolResultPart, tool: str | None = None) -> NotRun | None:
    """The wording in a result whose call did not run; None if there is none. `tool`: the name in the call."""
    if not begins_as_refusal(part):
        return None  # the case of nearly all results
    text = _one_line(part)
    found = ((row, re.match(_beginning(row.pattern), text)) for row in REFUSALS)
    return next((row for row, match in found if match is not None and (
        "model" not in match.groupdict() or _is_model_of(tool or part.name, match["model"]))), None)


def refused_arguments(part: ToolResultPart, tool: str | None) -> str | None:
    """The name of the wording in a result that asks for its call again, with other arguments; None if there is none."""
    row = refusal(part, tool)
    return row.name if row is not None and row.why.endswith(" its arguments") else None


def why_refused(part: ToolResultPart, denied: bool, unread: bool = False, tool: str | None = None) -> str | None:
    """The refusal in words; None if the call may have run. `denied`, `unread`: the file reports beside the result that
    the user refused the call, or that it could not be read. `tool`: as for `refusal`."""
    row = refusal(part, tool)
    if row is None and unread and part.is_error:
        return "the agent could not parse its arguments: it did not run"
    if row is None:
        return f"{REFUSALS[0].why}: it did not run" if denied else None
    return f"{row.why}: it did not run"


def stops(part: ToolResultPart) -> bool:
    """Whether the user told the agent to stop and wait, which ends the turn."""
    return not _is_stored(part) and STOPS in part.text[:_SEARCHED_CHARACTERS].lower() and refusal(part) is not None


def interruption(text: str) -> Interruption | None:
    """The mark of an interruption at the beginning of a text; None if it begins with none."""
    found = re.match(_INTERRUPTION, text)
    return None if found is None else Interruption(found["tool"] is not None, text[found.end() :].strip())


def interruption_in(part: ToolResultPart) -> Interruption | None:
    """The mark of an interruption at the beginning of a result; None if it begins with none."""
    return None if _is_stored(part) else interruption(part.text)


def placeholder(part: ToolResultPart) -> bool:
    """Whether a result is only a placeholder for an interrupted call."""
    found = interruption_in(part)
    if found is not None:
        return not found.at_tool
    return not _is_stored(part) and re.match(_PLACEHOLDER, part.text) is not None

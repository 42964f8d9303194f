"""What the user did to an agent, as its transcript has it: refused calls, interruptions, hooks, and what follows."""

from __future__ import annotations

import json

import pytest

from inspector.config.settings import Settings
from inspector.sessions.reasons import is_temporary
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TreePlace
from inspector.sessions.wordings import interruption, refusal
from loop_core.values import ProviderError, ToolResultPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import (
    MISSING,
    block,
    claude,
    failure,
    pi,
    pi_call,
    pi_reply,
    pi_result,
    pi_user,
    places,
    prompt,
    result,
    rules,
    show,
    stops,
    system,
    text,
    use,
    words,
)

WHOLE = {"file_path": "/home/a.md", "content": "one two three"}
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
)
WITH_REASON = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\nuse b.md"
)
NOT_NOW = (
    "The user doesn't want to take this action right now. STOP what you are doing and wait for the user to tell you "
    "how to proceed."
)
STOPPED = "[Request interrupted by user]"
STOPPED_AT_TOOL = "[Request interrupted by user for tool use]"


def messages(seen, rule: str) -> list[str]:
    return [noted.finding.message for noted in seen.findings if noted.finding.rule == rule]


def admissions(seen, index: int = 0) -> list[tuple[str, str]]:
    return [(verdict.admission.value, verdict.why) for verdict in seen.responses[index].verdicts]


def prompts(seen) -> list[str]:
    return [turn.run.record.user_text for turn in seen.turns]


# -- a call that the user refused -------------------------------------------------------------------------------------


@each_row("word", ["tool_use", None])
@each_row("said", [REFUSED, NOT_NOW])
def test_a_refused_call_did_not_run_and_the_interruption_ends_the_turn(tmp_path, word, said):
    seen = show(claude(
        prompt("rename"), block(use(**WHOLE), stop=word), result(said, error=True), prompt([text(STOPPED_AT_TOOL)]),
        prompt("leave it"), block(text("Left."), "msg_02", "end_turn"),
    ), tmp_path)
    assert stops(seen) == ["tool_call", "end_turn"]
    assert admissions(seen) == [("rejected", "the user refused it: it did not run")]
    assert words(seen) == ["CANCELLED", "COMPLETE"]
    assert prompts(seen) == ["rename", "leave it"]
    assert {turn.conversation for turn in seen.turns} == {"c1"}
    assert messages(seen, "transcript.stopped") == ["line 4: the user interrupted the turn"]
    assert seen.responses[0].recorded_next == "refused the call, and went on to a new turn"
    assert seen.turns[0].terminal == "cancelled"
    assert not [noted for noted in seen.findings if noted.finding.rule.startswith("agent.")]


def test_a_refusal_that_tells_the_agent_to_wait_ends_the_turn_without_a_mark(tmp_path):
    rows = [prompt("rename"), block(use(**WHOLE), stop="tool_use"), result(REFUSED, error=True)]
    for after in ((), (prompt("leave it"), block(text("Left."), "msg_02", "end_turn"))):
        seen = show(claude(*rows, *after), tmp_path)
        assert words(seen) == ["CANCELLED", "COMPLETE"][: len(seen.turns)]
        assert seen.turns[0].terminal == "cancelled"
        assert messages(seen, "transcript.stopped") == [
            "line 3: the user refused a call, and the agent was told to stop and wait"]


@pytest.mark.parametrize("said", [WITH_REASON, REFUSED])
def test_an_agent_that_goes_on_after_a_refusal_is_in_the_same_turn(tmp_path, said):
    seen = show(claude(prompt("rename"), block(use(**WHOLE)), result(said, error=True),
                        block(text("Then b.md."), "msg_02", "end_turn")), tmp_path)
    assert places(seen) == [["request", "tool_result"]]
    assert admissions(seen) == [("rejected", "the user refused it: it did not run")]
    assert words(seen) == ["COMPLETE"]
    assert messages(seen, "transcript.stopped") == []


def test_a_row_that_names_the_users_refusal_needs_no_known_wording(tmp_path):
    row = result("no, thank you", error=True, toolUseResult="User rejected tool use")
    seen = show(claude(prompt("go"), block(use(**WHOLE)), row, block(text("So."), "msg_02", "end_turn")), tmp_path)
    assert admissions(seen) == [("rejected", "the user refused it: it did not run")]


def test_a_refusal_at_the_end_of_the_file_is_no_error_to_send_back(tmp_path):
    seen = show(claude(prompt("go"), block(use(**WHOLE)), result(WITH_REASON, error=True)), tmp_path)
    (turn,) = seen.turns
    assert turn.verdict.word == "CALL REJECTED"
    assert "its call Write is rejected: the user refused it: it did not run" in turn.verdict.sentence
    assert turn.verdict.advice.text == "nothing to change: the agent already answered the call with this error"


def test_of_a_batch_only_the_refused_call_did_not_run(tmp_path):
    seen = show(claude(
        prompt("both"), block(use("toolu_01A", "Read", path="a"), uuid="a1"),
        block(use("toolu_01B", **WHOLE), uuid="a2"),
        result("A", "toolu_01A", parentUuid="a1"), result(REFUSED, "toolu_01B", True, parentUuid="a2"),
        prompt([text(STOPPED_AT_TOOL)]),
    ), tmp_path)
    assert [admission for admission, _ in admissions(seen)] == ["ready", "rejected"]
    assert seen.responses[0].recorded_next == "refused 1 of 2 calls, and the recording ends"
    assert words(seen) == ["CANCELLED"]


@each_row(("said", "why"), [
    (REFUSED, "the user refused it"),
    (WITH_REASON, "the user refused it"),
    (NOT_NOW, "the user refused it"),
    ("Permission for this tool use was denied. The tool use was rejected. The user said:\nno", "the user refused it"),
    ("The agent proposed a plan that was rejected by the user. The user chose to stay in plan mode.",
     "the user refused the plan"),
    ("Claude requested permissions to write to /home/a.md, but you haven't granted it yet.",
     "a permission was missing"),
    ("Permission to use Bash with command rm has been denied.", "a permission rule refused it"),
    ("PreToolUse:Bash hook error: [check.sh]: not here", "a hook refused it"),
    ("Hook PreToolUse:Bash denied this tool", "a hook refused it"),
    ("Bash operation blocked by hook:\n- [check.sh]: no", "a hook refused it"),
    (MISSING, "the agent refused its arguments"),
    ("<tool_use_error>Error: No such tool available: Fly</tool_use_error>", "the agent knows no such tool"),
    ("InputValidationError: content is missing", "the agent refused its arguments"),
    ('Validation failed for tool "write":\n  - content: is missing', "the agent refused its arguments"),
    ("Tool fly not found", "the agent knows no such tool"),
    ("Tool execution was blocked: not here", "an extension refused it"),
    ("Error: fly is not a valid tool, try one of [look, write].", "the agent knows no such tool"),
    ("Error invoking tool 'write' with kwargs {'path': 'a'} with error:\n content: Field required",
     "the agent refused its arguments"),
    ("The arguments provided to the tool are invalid: JSON parsing failed", "the agent refused its arguments"),
    ("The write tool was called with invalid arguments: path is missing", "the agent refused its arguments"),
    ("The user rejected permission to use this specific tool call.", "the user refused it"),
    ("The user rejected this tool call. User feedback: no", "the user refused it"),
    ("The user has specified a rule which prevents you from using this specific tool call. Here",
     "a permission rule refused it"),
    ("User denied permission", "the user refused it"),
    ("The user has declined to run this tool. DO NOT attempt to call this tool again.", "the user refused it"),
    ("Error: user cancelled assistant tool calling", "the user cancelled it first"),
    ("Tool call blocked by hook. Reason: nope", "a hook refused it"),
    ("-32602: Could not interpret tool use parameters for id c: EOF", "the agent could not read its arguments"),
    ("[] (empty list)", "the agent could not read its arguments"),
    ("tool not found: map", "the agent knows no such tool"),
    ("Let the user know the tool call was skipped in Goose chat mode.", "the agent runs no tools in this mode"),
    ("Skipped due to queued user message.", "the user spoke first, and it was skipped"),
    ('Error: Execute call rejected: missing required parameters "path".', "the agent refused its arguments"),
    ('Required parameter "content" missing for tool "Write"', "the agent refused its arguments"),
    ("Permission denied by user", "the user refused it"),
    ("Command blocked by security policy", "a permission rule refused it"),
    ('This "run_shell_command" invocation was denied by permission rules. Matching deny rule: "Bash".',
     "a permission rule refused it"),
    ('Tool "run_shell_command" is denied by permission rules. Matching deny rule: "read-only".',
     "a permission rule refused it"),
    ("Error: file_path is required and must be a string", "the agent refused its arguments"),
    ("[Operation Cancelled] Reason: User did not allow tool call", "the user cancelled it"),
    ("<exception>action was not executed</exception>", "the run ended before it"),
    ("failed to parse function arguments: EOF while parsing a value", "the agent could not parse its arguments"),
    ("Error validating args {\"command\": \"l for tool 'terminal': x", "the agent refused its arguments"),
    ("Error validating tool 'terminal': Unterminated string. Arguments: unparseable JSON",
     "the agent refused its arguments"),
    ("exec command rejected by user", "the user refused it"),
    ("unsupported call: fly", "the agent knows no such tool"),
    ("Tool call failed: arguments were not valid JSON. Please check your tool call format and try again.",
     "the agent could not parse its arguments"),
    ("The arguments for the tool call 'bash' were not valid JSON. The arguments have been cleared. Arguments: {\"com",
     "the agent could not parse its arguments"),
    ('Invalid input: "command": Required', "the agent refused its arguments"),
    ("Wall time: 0.000 seconds\n<system>ERROR: Tool execution failed.</system>\nInvalid args for tool \"Bash\": x",
     "the agent refused its arguments"),
    ("Unknown tool: fly", "the agent knows no such tool"),
    ("The user declined this tool call", "the user refused it"),
    ("Tool call arguments were malformed JSON and were not executed.", "the agent could not parse its arguments"),
    ('{"status":"denied","message":"The user denied this operation."}', "the user refused it"),
    ('{"status":"denied","feedback":"not here"}', "the user refused it"),
    ("The user denied this operation and provided the following feedback:\nno", "the user refused it"),
    ("Skipping tool [write_to_file for 'a'] due to user rejecting a previous tool.",
     "the user refused an earlier call"),
    ("MCP tool look was interrupted and not executed due to user rejecting a previous tool.",
     "the user refused an earlier call"),
    ("Tool [write_to_file for 'a'] was not executed because a tool has already been used in this message. Only one",
     "the agent runs no further call of this answer"),
    ("This tool was not executed because new_task was called in the same message turn.",
     "the agent runs no further call of this answer"),
    (json.dumps({"status": "error", "message": "The tool execution failed",
                 "error": "Missing value for required parameter 'path'. Please retry"}, separators=(",", ":")),
     "the agent refused it"),
    (json.dumps({"status": "error", "message": "The tool execution failed",
                 "error": 'Tool "write_to_file" is not allowed in ask mode.'}, separators=(",", ":")),
     "the agent refused it"),
    # Libraries that run tools for an agent: what each answers before the tool would begin.
    ("1 validation error for Write\ncontent\n  Field required [type=missing]", "the agent refused its arguments"),
    ("Error: 2 validation errors for WriteSchema\npath\n  x\n Please fix", "the agent refused its arguments"),
    ("Error executing tool Write: 1 validation error for writeArguments\nx", "the agent refused its arguments"),
    ("Error: Validation failed for input parameters: 1 validation error for SaveTool\npath",  # of a renamed tool
     "the agent refused its arguments"),
    ('1 validation error:\n```json\n[\n  {"type": "missing"}]\n```', "the agent refused its arguments"),
    ('2 validation errors: [{"type":"missing"}]\n\nFix the errors', "the agent refused its arguments"),
    ("Tool input validation error", "the agent refused its arguments"),
    ("Error: Received tool input did not match expected schema\n Please fix", "the agent refused its arguments"),
    ("MCP error -32602: Tool Write not found", "the tool's server refused its arguments"),
    ("MCP error -32602: Input validation error: Invalid arguments for tool Write: [",
     "the tool's server refused its arguments"),
    ("MCP error -32602: Invalid arguments for tool Write: [", "the tool's server refused its arguments"),
    ("Input validation error: 'content' is a required property", "the tool's server refused its arguments"),
    ("Input validation error: 5 is not of type 'string'", "the tool's server refused its arguments"),
    ("Input validation error: Additional properties are not allowed ('x' was unexpected)",
     "the tool's server refused its arguments"),
    ("An error occurred while running the tool. Please try again. Error: Error: Invalid JSON input for tool",
     "the agent could not parse its arguments"),
    ("Invalid JSON input for tool Write: {\"p", "the agent could not parse its arguments"),
    ("An error occurred while parsing tool arguments. Please try again with valid JSON.",
     "the agent could not parse its arguments"),
    (json.dumps({"error": "Invoking `Write()` failed as the following mandatory input parameters are not present:\nx"}),
     "the agent refused its arguments"),
    ("The tool call arguments are malformed. Arguments must be in JSON format.", "the agent refused its arguments"),
    ("There are `2` tool call arguments required and only `1` received.", "the agent refused its arguments"),
    ("Missing required argument(s): ['content']. Please revise the arguments to match the function signature.",
     "the agent refused its arguments"),
    ("Function arguments are not a valid JSON object.\n\n Please fix", "the agent could not parse its arguments"),
    ("Error: Expecting value: line 1 column 1 (char 0)\n The argument must be in JSON format.",
     "the agent could not parse its arguments"),
    ("Error while parsing function arguments: x", "the agent could not parse its arguments"),
    ("Error: Tool 'Write' parameters must be a JSON object, got str.", "the agent refused its arguments"),
    ("Error: Invalid parameters for tool 'Write': missing required path", "the agent refused its arguments"),
    ("Error: 1 validation error for call[Write]\ncontent\n  Missing", "the agent refused its arguments"),
    ("Error: Invalid native tool call format", "the agent could not parse it"),
    ("Unrecognized tool call format", "the agent could not parse it"),
    ("Error: Failed to parse tool arguments as JSON: Unterminated string",
     "the agent could not parse its arguments"),
    ("Error executing tool: Tool 'Write' arguments validation failed: 1 problem", "the agent refused its arguments"),
    ("Error executing tool: Arguments validation failed: 1 problem", "the agent refused its arguments"),
    ("Tool execution blocked by hook. Tool: Write", "a hook refused it"),
    ("Write() missing 1 required positional argument: 'content'", "the agent refused its arguments"),
    ("Error executing tool: main.<locals>.Write() got an unexpected keyword argument 'x'",
     "the agent refused its arguments"),
    ("Error parsing the following tool call arguments:\n\n{\"p", "the agent refused its arguments"),
    ("Error parsing JSON arguments: Unterminated string starting at", "the agent refused its arguments"),
    ("<system>ERROR: Error validating JSON arguments: 'path' is missing</system>", "the agent refused its arguments"),
    ("The tool call is rejected by the user. Stop what you are doing", "the user refused it"),
    ("Tool `fly` not found", "the agent knows no such tool"),
    ("Found 1 validation errors parsing tool input arguments:\n- x", "the agent refused its arguments"),
    ("params must have required property 'content'", "the agent refused its arguments"),
    ("params/path must be string", "the agent refused its arguments"),
    ("Invalid input for tool Write: JSON parsing failed", "the agent refused its arguments"),
    ("AI_InvalidToolInputError: Invalid input for tool Write: no", "the agent refused its arguments"),
    ("Tool input validation failed for Write. Please fix", "the agent refused its arguments"),
    ("Unknown tool name: 'Write'. Available tools: 'a'", "the agent knows no such tool"),
    ("Model tried to call unavailable tool 'Write'. No tools are available.", "the agent knows no such tool"),
    ("Error: The requested tool does not exist or is not available.", "the agent knows no such tool"),
    ("Could not find function to call.", "the agent knows no such tool"),
    ("Tool not found", "the agent knows no such tool"),
    ('Error: Requested function "Write" not found.', "the agent knows no such tool"),
    ("The tool call with name `Write` is not part of the provided tools, please try again",
     "the agent knows no such tool"),
    ("Error: Argument parsing failed.", "the agent could not parse its arguments"),
    ("Error: Argument parsing failed. Exception: 1 problem", "the agent could not parse its arguments"),
    ("Error: Tool call invocation was rejected by user.", "the user refused it"),
    ("AgentToolCallError: Argument why is required", "the agent refused its arguments"),
    ("An error occurred when calling tool `Write`:\nValueError: Parameters must be formatted as a valid JSON!\n",
     "the agent could not parse its arguments"),
    ("Validation Error found:\n1 validation error for Other\n  Invalid JSON", "the agent refused its arguments"),
    ("Tool Write does not exists.", "the agent knows no such tool"),
    ('{"error":true,"message":"Tool validation failed for write_file. Please fix the following errors"}',
     "the agent refused its arguments"),
    ('{"result":{"type":"error","error":{"name":"InvalidToolCall","message":"tool arguments are not"}}}',
     "the agent could not parse its arguments"),
])
def test_each_wording_says_that_the_call_did_not_run(tmp_path, said, why):
    seen = show(claude(prompt("go"), block(use(**WHOLE)), result(said, error=True),
                        block(text("I see."), "msg_02", "end_turn")), tmp_path)
    assert stops(seen) == ["tool_call", "end_turn"]
    assert admissions(seen) == [("rejected", f"{why}: it did not run")]


@each_row("said", [
    "Exit code 1\nno such file", "<tool_use_error>File has not been read yet. Read it first.</tool_use_error>",
    "     1\u2192The user doesn't want to proceed with this tool use.", "So the user doesn't want to take this action",
    "File created", "", "Command was aborted before completion", "Error executing tool 'terminal': x",
    '{"status":"error","message":"The tool execution failed","error":"Error reading a.md: ENOENT"}',
    '{"status":"approved","feedback":"go"}\n\nThe user denied this operation.',
    # A tool that ran may say that something else is not valid, or was not found.
    "1 validation error for Config\nname\n  Field required", "1 validation error for Rewrite\nname",
    "1 validation error in a.toml", "2 validation errors: [a.toml, b.toml]", "Tool not found in the list",
    "Error executing tool Write: no space left", "An error occurred while running the tool. Please try again.",
    '{"result":{"type":"error","error":{"name":"NotFound","message":"no such branch"}}}',
    "Validation Error found: 1 file", "An error occurred when calling tool `Write`:\nValueError: 5",
    "Tool Write does not exists. Use grep",
    "Params must be set with care.", "Error: Function failed.", "error: argument parsing failed: see --help",
    # A server's tool may look for something itself, and a program that ran may check an input of its own.
    "MCP error -32602: issue 5 was closed in the meantime", "Input validation error: age must be above 17",
    '{"error": "Input validation error: no such branch"}', 'Required parameter "id" missing for the endpoint "a"',
    "helper() missing 1 required positional argument: 'content'", "Write() missing 2 of 3 lines",
    'Invalid input: "a.csv": Required columns are missing',
    "[]", "[] (empty list) of changes",
    "Permission denied by user 'root'", "Command blocked by security policy of the host: see /etc/policy",
    "Error: name is required and must be a string of at most 8 characters, said the registry",
])
def test_other_results_leave_the_call_as_it_is(tmp_path, said):
    assert refusal(ToolResultPart("toolu_01A", None, said), "Write") is None
    seen = show(claude(prompt("go"), block(use(**WHOLE)), result(said), block(text("So."), "msg_02", "end_turn")),
                 tmp_path)
    assert [admission for admission, _ in admissions(seen)] == ["ready"]


def test_in_pi_a_skipped_call_did_not_run_and_steering_stays_in_the_turn(tmp_path):
    seen = show(pi(pi_user("write"), pi_reply(pi_call(path="a.md"), stop="toolUse"),
                    pi_result("Skipped due to queued user message.", error=True), pi_user("to b.md instead"),
                    pi_reply(text("Done."))), tmp_path)
    assert admissions(seen) == [("rejected", "the user spoke first, and it was skipped: it did not run")]
    assert places(seen) == [["request", "tool_result"]]


# -- an interruption --------------------------------------------------------------------------------------------------


@each_row("mark", [
    STOPPED, "[Request interrupted by user ]", "[Request cancelled by the user]", "[Request aborted by user]",
])
@each_row("shape", ["blocks", "string", "meta"])
def test_the_mark_of_an_interruption_ends_the_turn_however_it_is_written(tmp_path, mark, shape):
    row = prompt([text(mark)]) if shape == "blocks" else prompt(mark, isMeta=shape == "meta")
    seen = show(claude(prompt("hi"), block(text("Well")), row, prompt("never mind"),
                        block(text("Fine."), "msg_02", "end_turn")), tmp_path)
    assert stops(seen) == ["cancelled", "end_turn"]
    assert words(seen) == ["CANCELLED", "COMPLETE"]
    assert prompts(seen) == ["hi", "never mind"]


@pytest.mark.parametrize("content", [
    [text(STOPPED), text("never mind")], f"{STOPPED}never mind", [text(f"{STOPPED}\nnever mind")],
])
def test_words_behind_the_mark_are_the_next_message(tmp_path, content):
    seen = show(claude(prompt("hi"), block(text("Well")), prompt(content),
                        block(text("Fine."), "msg_02", "end_turn")), tmp_path)
    assert prompts(seen) == ["hi", "never mind"]
    assert words(seen) == ["CANCELLED", "COMPLETE"]


def test_continue_after_an_interruption_is_another_turn(tmp_path):
    seen = show(claude(prompt("hi"), block(text("Well")), prompt([text(STOPPED)]), prompt("continue"),
                        block(text("Fine."), "msg_02", "end_turn")), tmp_path)
    assert prompts(seen) == ["hi", "continue"]


def test_an_interruption_after_results_that_came_leaves_the_answer_whole(tmp_path):
    """The tool ran, and what the user stopped is the request that would have carried its result."""
    seen = show(claude(prompt("write"), block(use(**WHOLE)), result("File created"), prompt([text(STOPPED)]),
                        prompt("enough"), block(text("Yes."), "msg_02", "end_turn")), tmp_path)
    assert (stops(seen)[0], rules(seen)) == ("tool_call", ["transcript.absent", "transcript.inferred.calls_answered"])
    assert admissions(seen) == [("ready", "closed and complete; no usable schema is known")]
    assert words(seen) == ["CANCELLED", "COMPLETE"]
    assert prompts(seen) == ["write", "enough"]
    assert not [noted for noted in seen.findings if noted.finding.rule.startswith("agent.")]


@pytest.mark.parametrize("said", [STOPPED, "Interrupted by user"])
def test_a_result_that_only_stands_for_the_interruption_shows_nothing_of_the_call(tmp_path, said):
    rows = [prompt("write"), block(use(**WHOLE)), result(said, error=True), prompt([text(STOPPED)])]
    seen = show(claude(*rows), tmp_path)
    assert stops(seen) == ["cancelled"]
    assert [admission for admission, _ in admissions(seen)] == ["held"]
    assert words(seen) == ["CANCELLED"]
    assert messages(seen, "agent.ran_held_call") == []


@pytest.mark.parametrize("rows", [
    (result(STOPPED_AT_TOOL, error=True),), (result(STOPPED_AT_TOOL, error=True), prompt([text(STOPPED_AT_TOOL)])),
    (prompt([text(STOPPED_AT_TOOL)]),),
])
def test_an_interruption_at_a_tool_leaves_the_answer_whole(tmp_path, rows):
    seen = show(claude(prompt("write"), block(use(**WHOLE)), *rows), tmp_path)
    assert stops(seen) == ["tool_call"]
    assert words(seen) == ["CANCELLED"]


def test_an_interruption_that_follows_the_users_next_words_is_of_their_request(tmp_path):
    seen = show(claude(prompt("hi"), block(text("Hello."), stop="end_turn"), prompt("next"), prompt([text(STOPPED)]),
                        prompt("other"), block(text("Yes."), "msg_02", "end_turn")), tmp_path)
    assert words(seen) == ["COMPLETE", "COMPLETE"]
    assert messages(seen, "transcript.stopped") == []
    assert prompts(seen) == ["hi", "other"]
    assert any("stop a request of the user before any answer: 1" in note for note in seen.inputs[0].notices)


def test_an_interruption_after_the_recorded_end_of_a_turn_is_not_of_that_turn(tmp_path):
    rows = [prompt("hi"), block(text("Hello.")), system("turn_duration"), prompt([text(STOPPED)])]
    assert words(show(claude(*rows), tmp_path)) == ["END INFERRED"]


def test_an_interruption_in_a_sidechain_is_of_the_sidechain(tmp_path):
    side = {"isSidechain": True, "agentId": "a0"}
    seen = show(claude(
        prompt("look", **side), block(text("Looking"), "msg_02", **side), prompt([text(STOPPED)], **side),
        prompt("main", parentUuid=None), block(text("Hello."), "msg_03", "end_turn"),
    ), tmp_path)
    assert words(seen) == ["CANCELLED", "COMPLETE"]


def test_a_request_that_the_user_stopped_before_anything_came_is_cancelled(tmp_path):
    seen = show(claude(prompt("hi"), failure("API Error: Request was aborted.")), tmp_path)
    assert (stops(seen), words(seen)) == (["cancelled"], ["CANCELLED"])


def test_the_mark_is_known_at_the_beginning_alone():
    assert interruption("[Request interrupted by user for tool use]") == (True, "")
    assert interruption("[Request interrupted by user]no") == (False, "no")
    assert interruption("the row says [Request interrupted by user]") is None


def test_an_aborted_answer_of_pi_is_cancelled_and_the_next_message_another_turn(tmp_path):
    half = pi_reply(text("Once"), pi_call(path="a.md"), stop="aborted", message={"errorMessage": "Request was aborted"})
    seen = show(pi(pi_user("tell"), half, pi_user("continue"), pi_reply(text("Done."))), tmp_path)
    assert stops(seen) == ["cancelled", "end_turn"]
    assert words(seen) == ["CANCELLED", "COMPLETE"]
    assert prompts(seen) == ["tell", "continue"]
    assert [admission for admission, _ in admissions(seen)] == ["held"]


def test_a_long_turn_that_the_user_stopped_is_cancelled_though_our_machine_left_it_before(tmp_path):
    rows = [prompt("go")]
    for number in range(12):
        rows += [block(use(f"toolu_{number:02}A", "Read", path=str(number)), f"msg_{number}", "tool_use"),
                 result("seen", f"toolu_{number:02}A")]
    seen = show(claude(*rows, prompt([text(STOPPED)]), prompt("stop"), block(text("Yes."), "msg_99", "end_turn")),
                tmp_path, Settings(explicit=frozenset({"max_tool_steps"})))
    assert seen.turns[0].terminal == "step_limit"
    assert words(seen) == ["CANCELLED", "COMPLETE"]


def test_a_call_whose_row_is_missing_is_not_recorded(tmp_path):
    """The word was written down with the text, and the file ends before the call, or lacks it."""
    rows = [prompt("go"), block(text("I will look."), stop="tool_use")]
    seen = show(claude(*rows), tmp_path)
    assert (stops(seen), rules(seen)[-1]) == (["unknown"], "transcript.no_row")
    assert seen.responses[0].exchange.response.raw_stop_reason == "tool_use"
    assert words(seen) == ["END NOT RECORDED"]
    assert messages(seen, "stop.unknown_word") == []
    assert messages(seen, "transcript.not_recorded") == [
        "the stop reason is 'tool_use', and the row of the call is not in the file"]
    more = show(claude(*rows, block(text("Found."), "msg_02", "end_turn")), tmp_path)
    assert words(more) == ["COMPLETE"]
    assert not [noted for noted in more.findings if noted.finding.rule.startswith("agent.")]


# -- what else ends a turn --------------------------------------------------------------------------------------------


def test_a_hook_that_stops_the_turn_is_told(tmp_path):
    note = {"type": "hook_stopped_continuation", "hookName": "PostToolUse:Write", "hookEvent": "PostToolUse"}
    seen = show(claude(prompt("write"), block(use(**WHOLE)), result("File created"),
                        {"type": "attachment", "attachment": note}, prompt("and now"),
                        block(text("Yes."), "msg_02", "end_turn")), tmp_path)
    assert words(seen) == ["CANCELLED", "COMPLETE"]
    assert messages(seen, "transcript.stopped") == ["line 4: the hook PostToolUse:Write stopped the turn"]


@pytest.mark.parametrize("note", [{"hookEvent": "Stop"}, {"hookName": "Stop"}, {"hookName": "SubagentStop"}])
def test_a_stop_hook_that_prevents_more_is_the_end_of_the_loop(tmp_path, note):
    row = {"type": "attachment", "attachment": {"type": "hook_stopped_continuation", **note}}
    seen = show(claude(prompt("hi"), block(text("Hello.")), row), tmp_path)
    assert words(seen) == ["END INFERRED"]


def test_a_refusal_of_the_provider_is_blocked(tmp_path):
    said = "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy."
    seen = show(claude(prompt("hi"), failure(said)), tmp_path)
    assert (stops(seen), words(seen)) == (["safety_blocked"], ["BLOCKED"])


def test_a_message_after_results_that_no_answer_took_up_opens_a_turn(tmp_path):
    seen = show(claude(prompt("write"), block(use(**WHOLE)), result("File created"), prompt("a task for security too"),
                        block(text("Yes."), "msg_02", "end_turn")), tmp_path)
    assert prompts(seen) == ["write", "a task for security too"]
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "File created"


@pytest.mark.parametrize("row", [
    prompt("Base directory for this skill: /s", isMeta=True), prompt("<system-reminder>mind</system-reminder>"),
    prompt([{"type": "tool_result", "tool_use_id": "toolu_01A", "content": "File created"}, text("[Image: 1]")]),
])
def test_what_the_agent_puts_beside_results_opens_none(tmp_path, row):
    rows = [prompt("write"), block(use(**WHOLE)), result("File created"), row]
    assert prompts(show(claude(*rows, block(text("Yes."), "msg_02", "end_turn")), tmp_path)) == ["write"]


@each_row("said", [
    "<command-name>/exit</command-name>\n<command-args></command-args>",
    "<local-command-stdout>Bye!</local-command-stdout>",
    "Caveat: The messages below were generated by the user while running local commands. DO NOT respond.",
    "This session is being continued from a previous conversation that ran out of context.",
    "<task-notification>done</task-notification>", "<bash-input>ls</bash-input>", "<teammate-message>x",
])
def test_what_the_agent_writes_itself_is_no_message_of_the_user(tmp_path, said):
    seen = show(claude(prompt("hi"), block(text("Hello.")), prompt(said)), tmp_path)
    assert (stops(seen), rules(seen)) == (["unknown"], ["transcript.absent"])


# -- a lost connection ------------------------------------------------------------------------------------------------


@each_row("message", [
    "terminated", "fetch failed", "Failed to fetch", "socket hang up", "other side closed", "Premature close",
    "Connection error.", "connection refused", "The socket connection was closed unexpectedly", "network error",
    "Request timed out.", "connect ETIMEDOUT 1.2.3.4:443", "read ECONNRESET", "timed out", "stream ended early",
    "UND_ERR_SOCKET", "incomplete chunked read", "peer closed connection without sending complete message body",
    "Overloaded", "The server had an error while processing the request.", "Internal server error",
    "504 Gateway Time-out", "Cannot connect to API: Was there a typo in the url or port?", "Failed to connect to host",
    "Service Unavailable", "The service is currently unavailable.", "502 Bad Gateway", "Too many requests.",
    "Too many tokens, please wait before trying again.", "Rate limit reached for m-1 in organization o",
    "Please try again in 1.2s.", "The model cannot answer now. Please try again later.",
    "litellm.RateLimitError: OpenAIException", "Request failed with status code 520",
    "exceeded retry limit, last status: 409 Conflict", "Failed to process successful response",
    "Response stream ended without a finish reason.", "Reconnecting... 2/5",
])
def test_a_lost_connection_or_a_failed_server_is_asked_again(tmp_path, message):
    assert is_temporary(message)
    row = pi_reply(text("Editing:"), stop="error", message={"errorMessage": message})
    seen = show(pi(pi_user("edit"), row), tmp_path)
    assert (stops(seen), seen.responses[0].judgement.stop.detail) == (["error"], "retryable")
    assert words(seen) == ["ERROR"]


@each_row("message", [
    "temperature is out of range", "Too many tools: at most 128", "Too many tokens: at most 8192",
    "You exceeded your current quota. See https://example.com/docs/rate-limits", "unknown model",
    "Request failed with status code 400", "400 timeout must be at most 600",
    "litellm.BadRequestError: OpenAIException",
    "connect the account first",
])
def test_a_fault_of_the_request_does_not_pass(tmp_path, message):
    row = pi_reply(text("Editing:"), stop="error", message={"errorMessage": message})
    seen = show(pi(pi_user("edit"), row), tmp_path)
    assert (stops(seen), seen.responses[0].judgement.stop.detail) == (["error"], "fatal")


def test_an_answer_that_broke_and_was_asked_for_at_once_again_is_a_retry(tmp_path):
    broken = pi_reply(text("Editing:"), pi_call(path="a.md"), stop="error", message={"errorMessage": "terminated"})
    seen = show(pi(pi_user("edit"), broken, pi_reply(text("Done."))), tmp_path)
    assert places(seen) == [["request", "retry"]]
    assert words(seen) == ["RETRIED"]


@each_row("message", ["model not found", "invalid x-api-key", "the contract was terminatedly signed",
                                     "the operator is not overloadedly defined"])
def test_another_failure_is_no_lost_connection(message):
    assert not is_temporary(message)


# -- an answer that a parent quotes -----------------------------------------------------------------------------------

FOUND = "I found three places where the queue is read, all of them in the worker module."


def family(tmp_path, quoted: str, said: str = FOUND, name: str = "Task"):
    below = tmp_path / "s" / "subagents"
    below.mkdir(parents=True, exist_ok=True)
    side = {"isSidechain": True, "agentId": "a0"}
    (below / "agent-a0.jsonl").write_text(claude(prompt("look", **side), block(text(said), "msg_09", **side)))
    return show(claude(prompt("main"), block(use("toolu_01T", name, prompt="look")), result(quoted, "toolu_01T"),
                        block(text("Three places."), "msg_02", "end_turn")), tmp_path)


@each_row("behind", ["", "\nagentId: a0 (for resuming)", "\n<usage>total_tokens: 9</usage>"])
@each_row("name", ["Task", "Agent", "TaskOutput", "AgentOutputTool"])
@each_row("said", [FOUND, "No."])
def test_an_answer_that_a_parents_result_quotes_whole_is_recorded(tmp_path, behind, name, said):
    seen = family(tmp_path, said + behind, said, name=name)
    assert stops(seen) == ["tool_call", "end_turn", "end_turn"]
    assert rules(seen, 2) == ["transcript.absent", "transcript.inferred.quoted"]
    assert words(seen) == ["COMPLETE", "END INFERRED"]
    assert messages(seen, "transcript.not_recorded") == []


@pytest.mark.parametrize(("quoted", "said", "name"), [
    (FOUND[:-10], FOUND, "Task"), (FOUND, FOUND, "Bash"), ("Okay, and more.", "Ok", "Task"),
])
def test_a_part_of_it_another_tool_or_an_accident_shows_nothing(tmp_path, quoted, said, name):
    seen = family(tmp_path, quoted, said, name)
    assert stops(seen)[-1] == "unknown"
    assert words(seen)[-1] == "END NOT RECORDED"


def test_the_notice_that_a_task_is_done_quotes_too(tmp_path):
    side = {"isSidechain": True, "agentId": "a0"}
    notice = f"<task-notification>\n<status>completed</status>\n<result>{FOUND}</result>\n</task-notification>"
    rows = [prompt("look", **side), block(text(FOUND), "msg_09", **side), prompt("main", parentUuid=None),
            block(use("toolu_01T", "Task", prompt="look")), result("Async agent launched.", "toolu_01T")]
    seen = show(claude(*rows, prompt(notice), block(text("So."), "msg_02", "end_turn")), tmp_path)
    assert (stops(seen)[0], rules(seen)[-1]) == ("end_turn", "transcript.inferred.quoted")


def test_a_sidechain_in_the_same_file_is_quoted_too(tmp_path):
    side = {"isSidechain": True, "agentId": "a0"}
    seen = show(claude(
        prompt("main"), block(use("toolu_01T", "Task", prompt="look"), uuid="call"),
        prompt("look", parentUuid=None, **side), block(text(FOUND), "msg_09", **side),
        result(FOUND, "toolu_01T", parentUuid="call"), block(text("So."), "msg_02", "end_turn"),
        system("turn_duration"),
    ), tmp_path)
    assert words(seen) == ["COMPLETE", "END INFERRED"]


def test_failed_attempts_behind_one_another_are_each_followed_once():
    first = TreePlace(None, (None, InterimRow(1, "go")))
    attempts = [TranscriptAnswer("a0", None, None, first, 2)]
    for number in range(1, 4):
        attempts.append(TranscriptAnswer(f"a{number}", None, None, TreePlace(attempts[-1]), 2 + number))
    for answer in attempts:
        answer.error = ProviderError("down")
        answer.forget()
    assert [answer.above for answer in attempts] == [first] * 4

"""Small cases that the documents show by running them: calls before the gate, and a turn that emits every event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loop_core.judge.classify import Judgement, judge
from loop_core.judge.gate import Verdict, admit_all
from loop_core.turn.loop import Plan, run
from loop_core.turn.machine import begin, step
from loop_core.turn.policy import Policy
from loop_core.turn.state import ProviderResponse, RunTools, State, Tick
from loop_core.turn.trace import Record
from loop_core.values import (
    CallKind,
    ChatResponse,
    Message,
    Request,
    ResponsePart,
    Role,
    Stop,
    StopReason,
    TextPart,
    Tool,
    ToolCall,
    Usage,
)
from tests.scenes.turns import ScriptedSource

WRITE = Tool("write_file", {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
})
PING = Tool("ping", {"type": "object", "properties": {}})
PATCH = Tool("patch", kind=CallKind.CUSTOM)
RAW: Mapping[str, Stop] = {
    "tool_calls": Stop.TOOL_CALL,
    "stop": Stop.END_TURN,
    "length": Stop.MAX_TOKENS,
    "content_filter": Stop.SAFETY_BLOCKED,
    "": Stop.INTERRUPTED,
    "weird": Stop.UNKNOWN,
}
"""The words that the cases come with, as a chat completion spells them; the empty one is a stream without a reason."""

WORDS_TRIED = tuple(word.value for word in RAW.values())


@dataclass(frozen=True, slots=True)
class Tried:
    """The result for the call that a case is about."""

    mapped: str
    effective: str
    verdict: Verdict


def _write(arguments: str | None, closed: bool = True) -> ToolCall:
    return ToolCall("call_1", "write_file", arguments, closed)


WHOLE = '{"path": "a.md", "content": "done"}'
GATE_CASES: Mapping[str, tuple[ToolCall, ...]] = {
    "complete": (_write(WHOLE),),
    "complete, beside a cut call": (_write(WHOLE), _write('{"path": "b.md", "content": "The rep')),
    "complete, beside a call without a name": (_write(WHOLE), ToolCall("call_2", "", WHOLE, closed=True)),
    "cut in a string": (_write('{"path": "a.md", "content": "The rep'),),
    "cut after a number": (ToolCall("call_1", "ping", '{"times": 12', closed=True),),
    "never closed": (_write(WHOLE, closed=False),),
    "no JSON": (_write("{path: a.md}"),),
    "refused by its schema": (_write('{"path": "a.md"}'),),
    "refused, beside a complete call": (_write('{"path": "a.md"}'), _write(WHOLE)),
    "empty, though the tool needs arguments": (_write(""),),
    "empty, and the tool needs none": (ToolCall("call_1", "ping", "", closed=True),),
    "free-form text": (ToolCall("call_1", "patch", "*** Begin Patch", closed=True, kind=CallKind.CUSTOM),),
    "without a name and arguments": (ToolCall(None, "", None, closed=True),),
}
"""What the gate is asked about; the verdict shown is that of the first call."""


def _judged(response: ChatResponse, request: Request) -> Judgement:
    return judge(response, request)


def try_call(calls: tuple[ToolCall, ...], word: str) -> Tried:
    """The verdict on the first of `calls` in a response that ended with `word`."""
    raw = next(raw for raw, stop in RAW.items() if stop.value == word)
    request = Request("openai_chat", tools=(WRITE, PING, PATCH))
    response = ChatResponse("openai_chat", calls, StopReason(RAW[raw], raw or None))
    judged = _judged(response, request)
    first = admit_all(response.tool_calls, judged, request.tools)[0]
    return Tried(judged.mapped.normalized.value, judged.stop.normalized.value, first)


POLICY_CASES: tuple[tuple[str, tuple[ToolCall, ...], str], ...] = (
    ("text", (), "length"),
    ("text", (), "content_filter"),
    ("a whole call", GATE_CASES["complete"], "tool_calls"),
    ("a whole call", GATE_CASES["complete"], "stop"),
    ("a whole call", GATE_CASES["complete"], "length"),
    ("a whole call and a cut one", GATE_CASES["complete, beside a cut call"], "length"),
    ("a cut call", GATE_CASES["cut in a string"], "length"),
    ("a cut call", GATE_CASES["cut in a string"], "tool_calls"),
    ("a cut call", GATE_CASES["cut in a string"], ""),
    ("a call without arguments", GATE_CASES["empty, though the tool needs arguments"], "length"),
)
"""What the policies are shown: what a chat completion holds beside a text, and its finish reason."""

GOES: Mapping[State, str] = {
    State.COMPLETE: "ends, as if finished",
    State.CONTINUE_PENDING: "continues the text",
    State.REPAIR_PENDING: "asks for the call again",
    State.NUDGE_PENDING: "asks once more",
    State.ABORT: "ends with a notice",
    State.ABORT_PARTIAL: "ends with a notice",
}
"""Where a response leads, in words; a batch that runs is counted."""


def decided(policy: Policy, calls: tuple[ToolCall, ...], raw: str) -> str:
    """The decision of a loop about one chat completion."""
    request = Request("openai_chat", tools=(WRITE, PING, PATCH))
    response = ChatResponse("openai_chat", (TextPart("Well."), *calls), StopReason(RAW[raw], raw or None))
    turn, _ = begin("t", request, policy=policy)
    turn, _ = step(turn, ProviderResponse(response, _judged(response, request)))
    turn, effects = step(turn, Tick())
    if turn.terminal == "stuck":
        return "**stuck**"
    if isinstance(effects[0] if effects else None, RunTools):
        ran = len(turn.would_run)
        return f"**runs** {ran} of {len(calls)}" if len(calls) > 1 else "**runs** it"
    return GOES[turn.state]


def records() -> tuple[Record, ...]:
    """Every kind of event: a text that is cut once, and a call that is cut, repaired and run."""
    request = Request("openai_chat", (Message(Role.USER, (TextPart("Write the report."),)),), "small-1", (WRITE,),
                      max_tokens=512)
    cut = _write('{"path": "a.md", "content": "The rep')

    def answered(reason: str, *parts: ResponsePart) -> ProviderResponse:
        usage = Usage(input_tokens=40, output_tokens=512 if reason == "length" else 90)
        response = ChatResponse("openai_chat", parts, StopReason(RAW[reason], reason), usage, model="small-1")
        return ProviderResponse(response, _judged(response, request))

    source = ScriptedSource((
        answered("length", TextPart("The report covers three regions.")),
        answered("length", TextPart(" The first is"), cut),
        answered("tool_calls", _write(WHOLE)),
        answered("stop", TextPart("Written.")),
    ))
    return tuple(run("t1", request, source, Plan(provider="example")).records)

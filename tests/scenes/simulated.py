"""Recorded turns in every wire format, one token a chunk, and a run over them at another budget. No tests here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.replay.simulate import SimulatedTurn
from inspector.replay.tokens import measure
from loop_core.judge.classify import judge
from loop_core.turn.continuation import Method
from loop_core.turn.history import Ability
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, RecordedSource, run
from loop_core.turn.policy import STRICT, Policy
from loop_core.turn.state import ProviderResponse, RequestPlace
from loop_core.turn.trace import Fidelity, Trace
from loop_core.values import (
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
    ToolResultPart,
    Usage,
)
from loop_core.wire import decode, deltas, wire
from loop_core.wire.servers import GENERIC
from tests.scenes.provider import CALLING

WORDS: Mapping[str, tuple[str, str, str]] = {
    "openai_chat": ("stop", "length", "tool_calls"),
    "openai_responses": ("completed", "incomplete:max_output_tokens", "completed"),
    "anthropic_messages": ("end_turn", "max_tokens", "tool_use"),
    "gemini_generate": ("STOP", "MAX_TOKENS", "STOP"),
    "bedrock_converse": ("end_turn", "max_tokens", "tool_use"),
    "ollama_chat": ("stop", "length", "stop"),
    "gemini_interactions": ("completed", "incomplete", "requires_action"),
    "cohere_chat": ("COMPLETE", "MAX_TOKENS", "TOOL_CALL"),
    "bedrock_invoke": ("end_turn", "max_tokens", "tool_use"),
}
"""Format -> its words for an end of turn, a budget cut and a tool call, as the providers document them."""
assert WORDS.keys() == set(CALLING)
WHOLE_CALLS = ("gemini_generate", "ollama_chat")
"""Formats that send arguments as an object, so that a cut one cannot be said."""
TOKEN = 3
"""Characters of one token in these scenes."""
TOOL = Tool("write", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
AMPLE = Limits(continuation_max_attempts=1_000, continuation_max_total_completion_tokens=1_000_000,
               continuation_tool_repair_attempts=3)


def tokens(*texts: str) -> int:
    """How many tokens these texts have, each a stretch of its own."""
    return sum(-(-len(text) // TOKEN) for text in texts)


def reply(api: str, stop: Stop, *parts: ResponsePart, count: int | None = None) -> tuple[ChatResponse, bytes]:
    """A response as it would be recorded, and its bytes: a stream of one token a chunk, its usage counted."""
    end, cut, call = WORDS[api]
    word = {Stop.END_TURN: end, Stop.MAX_TOKENS: cut, Stop.TOOL_CALL: call}[stop]
    if count is None:
        count = tokens(*(getattr(p, "text", None) or getattr(p, "arguments", None) or "" for p in parts))
        count += stop is not Stop.MAX_TOKENS  # the end mark
    made = ChatResponse(api, parts, StopReason(stop, word), Usage(9, count), saw_done=True)
    body = b"".join(wire(api).encode(made, stream=True, chunk=TOKEN))
    return decode(api, body), body


def call(arguments: str, closed: bool = True) -> ToolCall:
    return ToolCall("c1", "write", arguments, closed)


Piece = tuple[RequestPlace, ChatResponse, bytes]


def simulation_of(
    pieces: Sequence[Piece], budget: int, cap: int, results: bool = False
) -> tuple[Request, SimulatedTurn]:
    """A recording of these answers under `cap`, asked again under `budget`."""
    api = pieces[0][1].api
    request = Request(api, (Message(Role.USER, (TextPart("go"),)),), tools=(TOOL,), max_tokens=cap)
    counts = dict.fromkeys(RequestPlace, 0)
    answers = []
    for index, (place, response, _) in enumerate(pieces):
        counts[place] += bool(index)
        method = {RequestPlace.CONTINUATION: Method.HINT, RequestPlace.REPAIR: Method.REPAIR}.get(place, Method.FIRST)
        answers.append((place, counts[place], ProviderResponse(response, judge(response, request), index, method)))
    recorded = RecordedSource(tuple(answers), {0: (ToolResultPart("c1", "write", "ok"),)} if results else {})
    measured = [measure(response, deltas(api, body)) for _, response, body in pieces]
    source = SimulatedTurn(recorded, lambda position: measured[position], GENERIC, (cap,) * len(pieces), budget != cap)
    return Request(api, request.messages, tools=request.tools, max_tokens=budget), source


def play(
    pieces: Sequence[Piece], budget: int, cap: int = 1_000, *, method: Method = Method.ANCHOR,
    limits: Limits = AMPLE, results: bool = False,
) -> Trace:
    """The run at another budget, continuing by one method."""
    request, source = simulation_of(pieces, budget, cap, results)
    policy = Policy(STRICT.name, STRICT.title, methods=(method,))
    return run("t", request, source, Plan(limits, policy, Ability(prefill=True), fidelity=Fidelity.RECORDED))


def answers(trace: Trace) -> list[ProviderResponse]:
    """The answers of a run, in order."""
    return [step.event for step in trace.steps if isinstance(step.event, ProviderResponse)]

"""From the mapped reason to the effective one: `judge`.

Owns the corrections: a short list of rules, tried in order, each of which may only tighten and leaves evidence. The one
loosening, a complete call under `stop`, needs the gate's full conditions. Does not know a wire format: a router's
native word arrives already read (`native`), and what is known of a server arrives as a `Speaker`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from loop_core import schema
from loop_core.arguments import Arguments, Shape, parse
from loop_core.endings import Ending, Seen, ending_of, string_untold
from loop_core.frozen import frozen, replace
from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    ChatResponse,
    Evidence,
    Finding,
    Request,
    Severity,
    Stop,
    StopReason,
    Tool,
    ToolCall,
)

__all__ = ["Ending", "Judged", "Speaker", "is_phantom", "judge", "means_nothing", "remarks", "spent_cap"]


class Speaker(Protocol):
    """What a profile knows of a server, as far as judging needs it."""

    @property
    def name(self) -> str:
        """The profile's name."""
    @property
    def reasoning_under_cap(self) -> bool:
        """Whether thinking is counted under the output cap."""
    @property
    def context_size(self) -> int | None:
        """The context in tokens, where it is known."""


@frozen
class Judged:
    """The mapped and the effective reason of one response, and what was noticed on the way."""

    mapped: StopReason
    stop: StopReason
    cap_reached: bool = False
    """The stream ended without a reason while its usage equals the cap: a budget cut in all likelihood (seed 001)."""
    promoted: bool = False
    ending: Ending | None = None
    """How the answer ended, where it only looks finished; its reason keeps its word."""
    ending_sure: bool = True
    """False where the request set stop strings and the word cannot say whether one was hit."""
    findings: tuple[Finding, ...] = ()


@frozen
class Case:
    """What a rule looks at."""

    response: ChatResponse
    request: Request | None
    speaker: Speaker | None
    native: StopReason | None
    calls: tuple[tuple[ToolCall, Arguments], ...]
    """The calls whose arguments must be a JSON object, each with its reading; phantoms left out."""

    def tool(self, name: str) -> Tool | None:
        """The declaration of a tool, if the request is known and has it."""
        if self.request is None:
            return None
        return next((tool for tool in reversed(self.request.tools) if tool.name == name), None)


class Correction(NamedTuple):
    """What a rule decided: another word, or only a remark."""

    stop: Stop | None
    detail: str | None = None
    at: At | None = None
    note: str = ""
    severity: Severity | None = None
    """Set where the rule is also a finding."""
    cap_reached: bool = False


Rule = Callable[[Case, StopReason], Correction | None]
"""What was received and the reason as tightened so far -> a correction."""

FINISHED = frozenset({Stop.END_TURN, Stop.TOOL_CALL})
"""The words that would let a loop go on or end in peace; only these can be tightened further."""
FAILING = frozenset({
    Stop.MAX_TOKENS, Stop.CONTEXT_WINDOW_EXCEEDED, Stop.SAFETY_BLOCKED, Stop.ERROR, Stop.MALFORMED_TOOL_CALL,
    Stop.CANCELLED,
})
"""What a native word must say to outrank the mapped one; an end, a call or an unknown word changes nothing."""


def native_word(case: Case, stop: StopReason) -> Correction | None:
    """A router's native word, read through all tables, says that the answer was cut, filtered or failed."""
    native = case.native
    if native is None or stop.normalized not in FINISHED:
        return None
    at = native.evidence[0].at if native.evidence else None
    if native.normalized not in FAILING:
        return Correction(None, None, at, f"{native.raw!r} changes nothing")
    return Correction(native.normalized, native.detail, at,
                      f"the router says {stop.raw!r}, the provider behind it {native.raw!r}", Severity.ERROR)


def cut_arguments(case: Case, stop: StopReason) -> Correction | None:
    """Arguments end in the middle of their JSON, whatever the reason says (vLLM #58228, hermes-agent #7693)."""
    if stop.normalized not in FINISHED:
        return None
    for call, reading in case.calls:
        if reading.shape is Shape.CUT:
            return Correction(Stop.MAX_TOKENS, None, call.at,
                              f"the arguments of {call.name} are cut, though the reason is {stop.raw!r}",
                              Severity.ERROR)
    return None


def open_call(case: Case, stop: StopReason) -> Correction | None:
    """A call was begun and never closed, though the response says that it ended."""
    if stop.normalized not in FINISHED:
        return None
    for call in case.response.tool_calls:
        if not call.closed and not is_phantom(call):
            return Correction(Stop.MAX_TOKENS, None, call.at, f"the call {call.name} was never closed", Severity.ERROR)
    return None


LOST = frozenset({"frame.invalid", "frame.shape"})
"""Findings that say that a frame was not, or not wholly, read."""


def lost_frame(case: Case, stop: StopReason) -> Correction | None:
    """A frame could not be read: what it held of a call is missing, and arguments may parse without it."""
    if stop.normalized not in FINISHED or not any(not is_phantom(call) for call in case.response.tool_calls):
        return None
    for finding in case.response.findings:
        if finding.rule in LOST:
            return Correction(Stop.MALFORMED_TOOL_CALL, None, finding.at,
                              f"{finding.message}, and a part of a call may have stood in it", Severity.ERROR)
    return None


def invalid_arguments(case: Case, stop: StopReason) -> Correction | None:
    """Arguments are no JSON object and no beginning of one."""
    if stop.normalized not in FINISHED:
        return None
    for call, reading in case.calls:
        if reading.shape in (Shape.INVALID, Shape.NOT_OBJECT):
            return Correction(Stop.MALFORMED_TOOL_CALL, None, call.at,
                              f"the arguments of {call.name} are invalid: {reading.problem}", Severity.ERROR)
    return None


def empty_arguments(case: Case, stop: StopReason) -> Correction | None:
    """Arguments are empty or absent where `{}` is not known to be meant (Zoo-Code #425: 24 of 24 were cut calls)."""
    if stop.normalized not in FINISHED:
        return None
    for call, reading in case.calls:
        shape = reading.shape
        if shape in (Shape.EMPTY, Shape.ABSENT) and not means_nothing(call, case.tool(call.name)):
            return Correction(Stop.MALFORMED_TOOL_CALL, None, call.at,
                              f"the arguments of {call.name} are {shape.value}, and the tool is not known to need none",
                              Severity.WARNING)
    return None


def spent_cap(response: ChatResponse, request: Request | None) -> tuple[int, int] | None:
    """The output tokens and the cap, where as many came as were allowed; None where not, or where it is not known."""
    cap, usage = request.max_tokens if request else None, response.usage
    if cap is None or usage is None or usage.output_tokens is None or usage.output_tokens < cap:
        return None
    if response.other_choices or (request is not None and request.n > 1):
        return None  # the usage is the sum over all choices, the cap is for each
    return usage.output_tokens, cap


def usage_at_cap(case: Case, stop: StopReason) -> Correction | None:
    """As many tokens came as were allowed: proof where reasoning counts under the cap, a finding elsewhere."""
    spent = spent_cap(case.response, case.request)
    if spent is None:
        return None
    seen = f"{spent[0]:,} of {spent[1]:,} output tokens"
    if stop.normalized is Stop.INTERRUPTED:
        return Correction(None, None, None, seen, cap_reached=True)
    if stop.normalized not in FINISHED:
        return None
    if case.speaker is not None and case.speaker.reasoning_under_cap:
        said = f"{seen}, though the reason is {stop.raw!r}"
        return Correction(Stop.MAX_TOKENS, None, None, said, Severity.ERROR)
    return Correction(None, None, None, f"{seen}; here reasoning may not count under the cap", Severity.WARNING)


def context_full(case: Case, stop: StopReason) -> Correction | None:
    """The context is full, not the budget: a continuation cannot succeed."""
    if stop.normalized not in FINISHED | {Stop.MAX_TOKENS}:
        return None
    if case.response.native.get("truncated") == "true":
        return Correction(Stop.CONTEXT_WINDOW_EXCEEDED, "server", None, "the server says truncated: true")
    size = case.speaker.context_size if case.speaker else None
    usage = case.response.usage
    if size is None or usage is None or stop.normalized is not Stop.MAX_TOKENS:
        return None
    used = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    if used < size:
        return None
    return Correction(Stop.CONTEXT_WINDOW_EXCEEDED, "usage", None, f"{used:,} tokens of a context of {size:,}")


RULES: tuple[tuple[str, Rule], ...] = (
    ("native_word", native_word),
    ("cut_arguments", cut_arguments),
    ("open_call", open_call),
    ("lost_frame", lost_frame),
    ("invalid_arguments", invalid_arguments),
    ("empty_arguments", empty_arguments),
    ("usage_at_cap", usage_at_cap),
    ("context_full", context_full),
)
"""In this order; the first that names a word wins for the rest of the list, since only finished words are tightened."""


def judge(
    response: ChatResponse,
    request: Request | None = None,
    speaker: Speaker | None = None,
    native: StopReason | None = None,
) -> Judged:
    """The effective reason of a response, with the evidence of every correction."""
    stop = response.stop_reason
    findings: list[Finding] = []
    cap_reached = False
    case = Case(response, request, speaker, native, _readings(response))
    for name, rule in RULES:
        correction = rule(case, stop)
        if correction is None:
            continue
        cap_reached = cap_reached or correction.cap_reached
        seen = Evidence(f"judge.{name}", correction.at, correction.note)
        word = correction.stop or stop.normalized
        detail = correction.detail if correction.stop else stop.detail
        stop = replace(stop, normalized=word, detail=detail, evidence=(*stop.evidence, seen))
        if correction.severity is not None:
            findings.append(Finding(f"judge.{name}", correction.severity, correction.note, correction.at))
    promoted = stop.normalized is Stop.END_TURN and _promotes(response, request)
    if promoted:
        seen = Evidence("judge.promoted", response.tool_calls[0].at, f"complete calls under {stop.raw!r}")
        stop = replace(stop, normalized=Stop.TOOL_CALL, evidence=(*stop.evidence, seen))
    elif stop.normalized is Stop.TOOL_CALL and not response.tool_calls:
        stop = replace(stop, detail="no_calls")
    found = ending_of(response, request, stop)
    sure = response.stop_reason.normalized is not Stop.END_TURN or not string_untold(response, request)
    if found is not None:
        noted = _noted(found.ending, found.seen, sure)
        stop = replace(stop, evidence=(*stop.evidence, Evidence(noted.rule, noted.at, noted.message)))
        findings.append(noted)
    findings.extend(remarks(response, stop))
    ending = found.ending if found is not None else None
    return Judged(response.stop_reason, stop, cap_reached, promoted, ending, ending is None or sure, tuple(findings))


def _noted(ending: Ending, seen: Seen, sure: bool) -> Finding:
    said = seen.said if sure else f"{seen.said}; a stop string of the request may have ended it"
    return Finding(f"ending.{ending.value}", Severity.ERROR if sure else Severity.WARNING, said, seen.at)


def remarks(response: ChatResponse, stop: StopReason) -> list[Finding]:
    """What is worth telling but changes no reason: an unknown word, a budget eaten by thinking."""
    found: list[Finding] = []
    word = response.stop_reason
    if word.normalized is Stop.UNKNOWN and word.raw and word.detail is None:
        at = response.stop_reason.evidence[0].at if response.stop_reason.evidence else None
        found.append(Finding("stop.unknown_word", Severity.WARNING,
                             f"{response.stop_reason.raw!r} is no known stop reason of {response.api}", at))
    usage = response.usage
    if stop.normalized is Stop.MAX_TOKENS and usage and usage.reasoning_tokens and usage.output_tokens:
        left = usage.visible_tokens
        if left is not None and usage.reasoning_tokens * 2 >= usage.output_tokens:
            found.append(Finding("usage.reasoning", Severity.WARNING,
                                 f"thinking took {usage.reasoning_tokens:,} of {usage.output_tokens:,} output tokens; "
                                 f"{left:,} were left for the answer and its calls"))
    return found


def _readings(response: ChatResponse) -> tuple[tuple[ToolCall, Arguments], ...]:
    return tuple(
        (call, parse(call.arguments))
        for call in response.tool_calls
        if call.kind is CallKind.FUNCTION and not is_phantom(call)
    )


def means_nothing(call: ToolCall, tool: Tool | None) -> bool:
    """Whether no arguments mean `{}`: the tool is known to need none, and the format may leave them out.

    A string of arguments is always sent, if only as `""`; where it is absent, something was lost. An object may be
    left out when it is empty (Gemini `functionCall` without `args`).
    """
    shape = parse(call.arguments).shape
    left_out = shape is Shape.ABSENT and call.form is ArgsForm.OBJECT
    return (shape is Shape.EMPTY or left_out) and schema.requires_nothing(tool)


def is_phantom(call: ToolCall) -> bool:
    """A call without a name and without arguments: some servers append one (pydantic-ai's recordings)."""
    return not call.name and not (call.arguments or "").strip()


def _promotes(response: ChatResponse, request: Request | None) -> bool:
    """Whether calls under an end of turn are complete: closed, strictly parsed, and accepted by their schemas."""
    calls = response.tool_calls
    if not calls:
        return False
    tools: Mapping[str, Tool] = {tool.name: tool for tool in request.tools} if request else {}
    for call in calls:
        if not call.closed or not call.name:
            return False
        if call.kind is CallKind.CUSTOM:
            if call.arguments is None:
                return False
            continue
        reading = parse(call.arguments)
        tool = tools.get(call.name)
        if means_nothing(call, tool):
            continue
        if reading.value is None or schema.problems(tool, reading.value):
            return False
    return True

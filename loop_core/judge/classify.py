"""Decides why a response really stopped: `judge` turns the mapped stop reason into the effective one, by ordered rules.

Each rule may only make the reason stricter, and leaves evidence; the one exception, a complete call under `stop`, needs
the gate's full conditions. This module depends on no wire format: the word of a provider behind a router arrives
already mapped (`native`), and the facts about a server arrive as `ServerFacts`.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from loop_core.formats import format_entry
from loop_core.json_parser import LENIENT_RULES
from loop_core.judge import arguments, endings
from loop_core.judge.arguments import Arguments, ArgumentShape, is_complete, is_phantom, means_empty_object, parse_input
from loop_core.judge.endings import Ending
from loop_core.values import (
    FINISHED,
    WORDLESS,
    ArgsForm,
    At,
    CallKind,
    ChatResponse,
    Evidence,
    FactQuote,
    Finding,
    Request,
    Severity,
    Stop,
    StopReason,
    Tool,
    ToolCall,
    TransportEnd,
    tools_by_name,
)


class ServerFacts(Protocol):
    """The facts about a server that judging needs."""

    @property
    def name(self) -> str:
        """The profile's name."""
    @property
    def reasoning_under_cap(self) -> bool | None:
        """Whether reasoning tokens count under the output cap; None if that is unknown."""
    @property
    def at_cap(self) -> Mapping[str, str]:
        """Format -> the end-of-turn word that the server sends over an answer that the output cap cut."""
    @property
    def mends_calls(self) -> Collection[str]:
        """The formats in which the server closes the arguments of a cut call and sends them as an object."""
    @property
    def context_size(self) -> int | None:
        """The size of the context in tokens, if known."""


class Judgement(NamedTuple):
    """The mapped and the effective reason of one response, and the findings of the judge."""

    mapped: StopReason
    stop: StopReason
    cap_reached: bool = False
    """Whether the answer ended without a reason after it used the whole output cap: most likely a cut (MiMo)."""
    promoted: bool = False
    """Whether the reason became `tool_call` because the answer holds complete calls under an end-of-turn word."""
    ending: Ending | None = None
    """Why the answer looks finished and is not; None otherwise. The stop reason stays."""
    ending_sure: bool = True
    """Whether the ending is certain. False if a stop string of the request may have been hit."""
    findings: tuple[Finding, ...] = ()


class JudgeCase(NamedTuple):
    """The input of every rule: a response, its request, and the facts about its server."""

    response: ChatResponse
    request: Request | None
    server: ServerFacts | None
    native: StopReason | None
    every_call: tuple[ToolCall, ...]
    calls: tuple[tuple[ToolCall, Arguments], ...]
    """The calls whose arguments must be a JSON object, each with its parsed arguments; phantoms are left out."""

    def tool(self, name: str) -> Tool | None:
        """The declaration of a tool, if the request is known and declares it."""
        return tools_by_name(self.request.tools).get(name) if self.request is not None else None


class Correction(NamedTuple):
    """The result of a rule: another stop reason, or only a remark."""

    stop: Stop | None
    detail: str | None = None
    at: At | None = None
    note: str = ""
    severity: Severity | None = None
    """The severity of the finding that the rule also reports; None if it reports none."""
    cap_reached: bool = False
    quote: FactQuote | None = None
    """The characters of a text that show the reason; None if there are none."""


Rule = Callable[[JudgeCase, StopReason], Correction | None]
"""A function from a response and its stop reason so far to a correction; None if the rule does not apply."""

FAILING = frozenset({
    Stop.MAX_TOKENS, Stop.CONTEXT_WINDOW_EXCEEDED, Stop.SAFETY_BLOCKED, Stop.ERROR, Stop.MALFORMED_TOOL_CALL,
    Stop.CANCELLED, Stop.INTERRUPTED, Stop.PAUSED,
})
"""The native reasons that replace a mapped one. An end, a call or an unknown word replaces none."""
OVER_A_CUT = FAILING - {Stop.MAX_TOKENS, Stop.MALFORMED_TOOL_CALL, Stop.INTERRUPTED}
"""The native reasons that replace a cut too, because LiteLLM writes `length` for a pause too (1.110.2)."""


def ended_wordless(case: JudgeCase, stop: StopReason) -> Correction | None:
    """The response ended properly (a whole body, or a stream with its end mark) without any stop word."""
    response = case.response
    absent = stop.normalized is Stop.INTERRUPTED and not stop.raw and stop.evidence[:1]
    if not absent or stop.evidence[0].rule != "absent" or any(evidence.rule == "cut" for evidence in stop.evidence):
        return None
    whole = not response.streaming and response.size > 0 and response.transport_end is TransportEnd.EOF
    if not (whole or response.saw_done):
        return None
    note = f"the {'stream ended' if response.streaming else 'body is complete'} without a stop reason"
    return Correction(Stop.UNKNOWN, NO_WORD, stop.evidence[0].at, note)


NO_WORD = "no_stop_reason"
"""The detail of an answer that ended properly and holds no stop word."""


def native_word(case: JudgeCase, stop: StopReason) -> Correction | None:
    """The native word of the engine or of the provider behind a router shows a cut, a filter, a failure or a pause."""
    native, cut = case.native, stop.normalized is Stop.MAX_TOKENS
    if native is None or not (native.normalized in OVER_A_CUT if cut else stop.normalized in WORDLESS):
        return None
    at = native.evidence[0].at if native.evidence else None
    if native.normalized not in FAILING:
        return Correction(None, None, at, f"{native.raw!r} changes nothing")
    claim = f"the response says {stop.raw!r}" if stop.raw else "the response says nothing"
    # A pause in the format behind the router cannot be resumed in this format.
    word, detail = (Stop.INTERRUPTED, None) if native.normalized is Stop.PAUSED else (native.normalized, native.detail)
    return Correction(word, detail, at, f"{claim}, the engine or provider behind it {native.raw!r}", Severity.ERROR)


def contradiction(case: JudgeCase, stop: StopReason) -> Correction | None:
    """The provider sent the arguments of one call twice, as different JSON, and nothing says which is meant."""
    if stop.normalized not in FINISHED:
        return None
    for call in case.every_call:
        if call.other_arguments is not None:
            return Correction(Stop.MALFORMED_TOOL_CALL, "contradiction", call.at,
                              f"the provider sent two different texts of the arguments of {arguments.name_of(call)}")
    return None


MISPLACED_EVENTS = (
    ".repeated_index", ".delta_without_start", ".orphan_delta", ".event_missing", ".event_repeated", ".name_differs",
)
"""Suffixes of the rules of findings about an event that came twice, is missing, or does not belong to its part."""


def misplaced_event(case: JudgeCase, stop: StopReason) -> Correction | None:
    """A call is not whole, and an event came twice, is missing or belongs to another part, as through a faulty proxy.
    No limit cut the call."""
    if stop.normalized not in FINISHED:
        return None
    finding = next((found for found in case.response.findings if found.rule.endswith(MISPLACED_EVENTS)), None)
    cut = {id(call) for call, reading in case.calls if reading.shape is ArgumentShape.CUT}
    call = next((call for call in case.every_call
                 if not is_phantom(call) and (not call.closed or id(call) in cut)), None)
    if finding is None or call is None:
        return None
    return Correction(Stop.MALFORMED_TOOL_CALL, None, finding.at,
                      f"{finding.message}, and {arguments.name_of(call)} is incomplete", Severity.ERROR)


def cut_arguments(case: JudgeCase, stop: StopReason) -> Correction | None:
    """Arguments end in the middle of their JSON, whatever the reason says (vLLM #58228, hermes-agent #7693)."""
    if stop.normalized not in WORDLESS or (case.response.transport_end is TransportEnd.CUT and not stop.raw):
        return None  # not recorded to its end: the server may have sent the rest
    for call, reading in case.calls:
        if reading.shape is ArgumentShape.CUT:
            note = f"the arguments of {arguments.name_of(call)} are cut, {endings.despite(stop)}"
            return Correction(Stop.MAX_TOKENS, None, call.at, note, Severity.ERROR)
    return None


def open_call(case: JudgeCase, stop: StopReason) -> Correction | None:
    """A call was never closed, though the response says that it ended; or a stop string ended it in a form that hides
    cuts."""
    if stop.normalized not in FINISHED:
        return None
    calls, stopped = case.every_call, endings.hit_stop_string(case.response)
    for call in calls:
        unseen = stopped and call is calls[-1] and (call.form is ArgsForm.OBJECT or call.kind is CallKind.CUSTOM)
        if (unseen or not call.closed) and not is_phantom(call):
            how = "was ended by a stop string, and a cut in it cannot be seen" if call.closed else "was never closed"
            message = f"the call {call.name or 'without a name'} {how}"
            return Correction(Stop.MAX_TOKENS, None, call.at, message, Severity.ERROR)
    return None


LOST_FRAME_RULES = endings.UNREAD_RULES | endings.REPEATED_MEMBER_RULES
"""The rules of findings about a frame or body that was not read, or only in part: of two values one is lost."""


def lost_frame(case: JudgeCase, stop: StopReason) -> Correction | None:
    """A frame or a part of a call was not read, or a member came twice: arguments that parse may lack something."""
    calls = [call for call in case.every_call if not is_phantom(call)]
    if stop.normalized not in FINISHED or not calls:
        return None
    lossy = any(endings.is_damaged(f"{call.name}{call.arguments}") for call in calls)
    for finding in case.response.findings:
        lost = finding.rule in LOST_FRAME_RULES or finding.rule.endswith(".call_unread_value")
        if lost or (lossy and finding.rule in LENIENT_RULES):
            return Correction(Stop.MALFORMED_TOOL_CALL, None, finding.at,
                              f"{finding.message}; part of a call may be missing", Severity.ERROR)
    return None


def invalid_arguments(case: JudgeCase, stop: StopReason) -> Correction | None:
    """The arguments are neither a JSON object nor the beginning of one."""
    if stop.normalized not in FINISHED:
        return None
    for call, reading in case.calls:
        if reading.shape in (ArgumentShape.INVALID, ArgumentShape.NOT_OBJECT):
            message = f"the arguments of {arguments.name_of(call)} are invalid: {reading.problem}"
            return Correction(Stop.MALFORMED_TOOL_CALL, None, call.at, message, Severity.ERROR)
    return None


def empty_arguments(case: JudgeCase, stop: StopReason) -> Correction | None:
    """Arguments are empty or absent and cannot mean `{}` (Zoo-Code #425: 24 of 24 were cut calls)."""
    if stop.normalized not in FINISHED:
        return None
    for call, reading in case.calls:
        if reading.shape.is_missing and not means_empty_object(call, case.tool(call.name)):
            return Correction(Stop.MALFORMED_TOOL_CALL, None, call.at,
                              f"the arguments of {call.name} are {reading.shape.value}, "
                              "and the tool is not known to need none",
                              Severity.WARNING)
    return None


def usage_at_cap(case: JudgeCase, stop: StopReason) -> Correction | None:
    """The response used all allowed tokens, which is a sign of a cut. It counts as a cut only with a second sign: the
    text stops in the middle, the server is known to send this word over a cut, the answer has calls and the server
    counts reasoning under the cap, or the last call lacks required members or came already parsed."""
    spent = endings.spent_cap(case.response, case.request)
    if spent is None:
        return None
    usage_text = f"{spent[0]:,} of {spent[1]:,} output tokens" if spent[0] <= spent[1] else (
        f"{spent[0]:,} output tokens, more than the cap of {spent[1]:,}")
    mapped = case.response.stop_reason
    if mapped.normalized is Stop.INTERRUPTED and stop.normalized in (Stop.INTERRUPTED, Stop.UNKNOWN, Stop.MAX_TOKENS):
        # MiMo ends like this at its cap (Zoo Code's analysis).
        return Correction(None, None, None, usage_text, cap_reached=True)
    if stop.normalized not in FINISHED:
        return None
    sign = endings.cut_at_cap(case.response, case.request)
    if sign is not None:
        note = f"{usage_text}, and the text stops in the middle ({sign.text}), {endings.despite(stop)}"
        return Correction(Stop.MAX_TOKENS, None, None, note, Severity.ERROR,
                          quote=FactQuote("text", sign.start, sign.end))
    server, has_reasoning = case.server, endings.has_reasoning(case.response)
    if server is not None and stop.raw and server.at_cap.get(case.response.api) == stop.raw and (
            server.reasoning_under_cap or not has_reasoning):
        note = f"{usage_text}, and this server says {stop.raw!r} for a cut answer too"
        return Correction(Stop.MAX_TOKENS, None, None, note, Severity.WARNING)
    if endings.has_calls(case.response) and server is not None and server.reasoning_under_cap:
        # A call does not show whether its batch was cut, or whether `{}` stands for lost arguments (vLLM #46303).
        note = f"{usage_text}, {endings.despite(stop)}: the batch may be cut"
        return Correction(Stop.MAX_TOKENS, None, None, note, Severity.WARNING)
    if has_reasoning:
        return Correction(None, None, None, f"{usage_text}; reasoning may not count under the cap", Severity.INFO)
    for call, reading in case.calls[-1:]:
        unseen = call.form is ArgsForm.OBJECT and reading.value and not format_entry(case.response.api).whole_calls
        lacks = arguments.shortcoming(case.tool(call.name), reading.value) or (
            "came already parsed, so a cut would not show" if unseen else "")
        if lacks:  # a server sends this for a call that it could not parse (vLLM PR#46303)
            of_call = f"the arguments of {arguments.name_of(call)} {lacks}"
            note = f"{usage_text}, and {of_call}, {endings.despite(stop)}"
            return Correction(Stop.MAX_TOKENS, None, call.at, note, Severity.ERROR)
    return Correction(None, None, None, f"{usage_text}; nothing else shows a cut", Severity.INFO)


def context_full(case: JudgeCase, stop: StopReason) -> Correction | None:
    """The context is full, not the output budget, so a continuation cannot succeed."""
    if stop.normalized not in FINISHED | {Stop.MAX_TOKENS}:  # `length` may mean a full context (llama.cpp PR#28711)
        return None
    if case.response.native.get("truncated") == "true":
        return Correction(Stop.CONTEXT_WINDOW_EXCEEDED, "server", None, "the server says truncated: true")
    size = endings.num_ctx_of(case.request) or (case.server.context_size if case.server else None)
    usage = case.response.usage
    if size is None or usage is None or stop.normalized is not Stop.MAX_TOKENS:
        return None
    used = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    if used < size:  # at num_ctx Ollama stops at it exactly (TradingAgents#168)
        return None
    return Correction(Stop.CONTEXT_WINDOW_EXCEEDED, "usage", None, f"{used:,} tokens of a context of {size:,}")


def mended_call(case: JudgeCase, stop: StopReason) -> Correction | None:
    """The word asks for no tools, and the server sends a cut call as a whole object, so no byte shows the cut."""
    server = case.server
    if stop.normalized is not Stop.END_TURN or server is None or case.response.api not in server.mends_calls:
        return None
    for call, _ in case.calls:
        if call.form is ArgsForm.OBJECT:
            note = f"{server.name} closes the arguments of a cut call and says {stop.raw!r}: perhaps this one was cut"
            return Correction(Stop.UNKNOWN, None, call.at, note, Severity.WARNING)
    return None


RULES: tuple[tuple[str, Rule], ...] = (
    ("ended_wordless", ended_wordless),
    ("native_word", native_word),
    ("contradiction", contradiction),
    ("misplaced_event", misplaced_event),
    ("cut_arguments", cut_arguments),
    ("open_call", open_call),
    ("lost_frame", lost_frame),
    ("invalid_arguments", invalid_arguments),
    ("empty_arguments", empty_arguments),
    ("usage_at_cap", usage_at_cap),
    ("mended_call", mended_call),
    ("context_full", context_full),
)
"""The rules in the order in which they are tried. Most of them change a reason only if it says finished."""


def judge(
    response: ChatResponse,
    request: Request | None = None,
    server: ServerFacts | None = None,
    native: StopReason | None = None,
    tools_known: bool = True,
) -> Judgement:
    """The effective stop reason, with the evidence of corrections. `native` is the word of a provider behind a router;
    `tools_known` is False for a transcript, which keeps no declared tools."""
    stop = response.stop_reason
    findings: list[Finding] = []
    cap_reached, every_call = False, response.tool_calls
    case = JudgeCase(response, request, server, native, every_call, _readings(every_call, request))
    for name, rule in RULES:
        correction = rule(case, stop)
        if correction is None:
            continue
        cap_reached = cap_reached or correction.cap_reached
        evidence = Evidence(f"judge.{name}", correction.at, correction.note)
        word = correction.stop or stop.normalized
        detail = correction.detail if correction.stop else stop.detail
        quoted = (Evidence("judge.quoted", None, "", correction.quote),) if correction.quote else ()
        stop = stop._replace(normalized=word, detail=detail, evidence=(*stop.evidence, evidence, *quoted))
        if correction.severity is not None:
            findings.append(Finding(f"judge.{name}", correction.severity, correction.note, correction.at))
    # OpenAI says stop over complete calls where tool_choice names the function (vLLM PR#25054).
    promoted = stop.normalized is Stop.END_TURN and _has_complete_calls(response, request)
    if promoted:
        first = next(call for call in response.tool_calls if not is_phantom(call))
        evidence = Evidence("judge.promoted", first.at, f"complete calls under {stop.raw!r}")
        stop = stop._replace(normalized=Stop.TOOL_CALL, evidence=(*stop.evidence, evidence))
    elif stop.normalized is Stop.TOOL_CALL and not endings.has_calls(response):
        stop = stop._replace(detail="no_calls")
    found = endings.ending_of(response, request, stop, tools_known)
    ending: Ending | None = None
    sure = response.stop_reason.normalized is not Stop.END_TURN or not endings.stop_string_unknown(response, request)
    if found is not None:
        ending, (text, at, quote) = found
        message = text if sure else f"{text}; a stop string of the request may have ended it"
        severity = Severity.ERROR if sure else Severity.WARNING
        finding = Finding(f"ending.{ending.value}", severity, message, at, quote)
        stop = stop._replace(evidence=(
            *stop.evidence, Evidence(finding.rule, finding.at, finding.message, finding.quote)))
        findings.append(finding)
    elif (guess := endings.unfinished_text(response, request, stop)) is not None:
        findings.append(guess)
    findings.extend(endings.remarks(response, stop))
    return Judgement(response.stop_reason, stop, cap_reached, promoted, ending, ending is None or sure, tuple(findings))


def _readings(calls: Sequence[ToolCall], request: Request | None) -> tuple[tuple[ToolCall, Arguments], ...]:
    mine = [call for call in calls if call.kind is CallKind.FUNCTION and not is_phantom(call)]
    tools = tools_by_name(request.tools) if mine and request else {}
    return tuple([(call, parse_input(call, tools.get(call.name))) for call in mine])


def _has_complete_calls(response: ChatResponse, request: Request | None) -> bool:
    """Whether the calls under `end_turn` are complete: closed, with a whole payload. Schemas are not considered, since
    a call that its schema refuses is a call too, and is answered with an error."""
    tools = tools_by_name(request.tools if request else ())
    calls = [call for call in response.tool_calls if not is_phantom(call)]
    return bool(calls) and all(
        call.closed and (is_complete(call) or means_empty_object(call, tools.get(call.name))) for call in calls)

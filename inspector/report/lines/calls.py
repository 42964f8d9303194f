"""Tool calls as lines: all facts about a call, and what each policy would do with it. No call is run here."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple

from inspector.replay.case import has_unrecorded_answer
from inspector.replay.recorded_calls import MASKED, NOT_CHECKABLE, REFUSED, problems_beside
from inspector.report.call_outcomes import cut_run_lines, sent_back
from inspector.report.facts import ResponseFacts, View
from inspector.report.findings import OF_HELD_CALLS, RAN, RAN_IT, ran_calls
from inspector.report.lines import glyphs
from inspector.report.lines.spans import Line, LineSheet, Span, Tone, count_of, field, more, one_line, paragraphs, safe
from inspector.report.run_answers import Block, answers_of
from inspector.sessions.recording import Exchange
from inspector.sessions.redact import masked_places
from loop_core.judge import arguments
from loop_core.judge.arguments import ArgumentShape, parse, parse_leniently
from loop_core.judge.classify import Judgement
from loop_core.judge.endings import brought_output
from loop_core.judge.gate import REMEDY, Admission, Verdict
from loop_core.turn.machine import begin, step
from loop_core.turn.policy import Dispatch, Policy
from loop_core.turn.presets import POLICIES
from loop_core.turn.state import ProviderResponse, RunTools, State, Tick, Turn
from loop_core.values import CallKind, OpaquePart, Request, Tool, ToolCall, tools_by_name


class Fate(StrEnum):
    """What a policy would do with a call."""

    RUN = "run"
    REFUSE = "refuse"
    STUCK = "stuck"
    """The loop would start the call and never finish it."""
    HOLD = "hold"


class Opinion(NamedTuple):
    """What one policy would do with one call, and the reason."""

    policy: str
    fate: Fate
    why: str


RUNS: Mapping[Dispatch, str] = {
    Dispatch.READY: "complete, and allowed by the stop reason",
    Dispatch.COMPLETE: "its arguments parse",
    Dispatch.READABLE: "a lenient parser reads some of it",
    Dispatch.PRESENT: "it is present",
}
"""Dispatch rule of a policy -> why a loop with this rule runs a call."""

HOLDS: Mapping[State, str] = {
    State.EXECUTE_TOOLS: "runs its siblings without it",
    State.REPAIR_PENDING: "asks for it again",
    State.CONTINUE_PENDING: "leaves it out and has the text continued",
    State.RESUME: "resumes the response without it",
    State.COMPLETE: "leaves it out and treats the turn as finished",
    State.NUDGE_PENDING: "leaves it out and asks once more for an answer",
    State.ABORT_PARTIAL: "ends the turn with a notice",
    State.ABORT: "ends the turn with a notice",
}
"""Next state of the engine, if a call does not run -> what the loop does."""


class Stance(NamedTuple):
    """One policy's decision about a whole response: the engine's next state, and the calls to run."""

    policy: Policy
    turn: Turn
    runs: frozenset[int]
    """The identities (`id`) of the calls that the policy would run."""


def stances(exchange: Exchange, judgement: Judgement, verdicts: tuple[Verdict, ...]) -> tuple[Stance, ...]:
    """The stance of each policy on a response, which serves for all its calls."""
    return tuple(_stance(policy, exchange, ProviderResponse(exchange.response, judgement, verdicts=verdicts))
                 for policy in POLICIES.values())


def _stance(policy: Policy, exchange: Exchange, event: ProviderResponse) -> Stance:
    request = exchange.request or Request(exchange.api)
    # Each policy gets a new turn, because the recorded turn's limits would affect this decision.
    turn, _ = begin("stance", request, policy=policy, provider=exchange.profile.name)
    turn, _ = step(turn, event)
    turn, effects = step(turn, Tick())
    runs = turn.would_run if any(isinstance(effect, RunTools) for effect in effects) else ()
    # By identity, since two calls of a response may be equal.
    return Stance(policy, turn, frozenset([id(each.call) for each in runs]))


def opinions_of(stances: Sequence[Stance], verdict: Verdict) -> tuple[Opinion, ...]:
    """What each policy would do with one call of a response, given the stances on the response."""
    return tuple([_opinion(stance, verdict) for stance in stances])


def _opinion(stance: Stance, verdict: Verdict) -> Opinion:
    policy, turn = stance.policy, stance.turn
    if turn.terminal == "stuck":
        return Opinion(policy.name, Fate.STUCK, f"{_reading_words(turn)}, which ends no call")
    if id(verdict.call) not in stance.runs:
        return Opinion(policy.name, Fate.HOLD, f"{_reading_words(turn)}; {HOLDS[turn.state]}")
    if verdict.admission is Admission.REJECTED:
        return Opinion(policy.name, Fate.REFUSE, "its schema refuses it")
    dispatch = Dispatch.READY if verdict.admission is Admission.READY else policy.dispatch
    return Opinion(policy.name, Fate.RUN, f"{_reading_words(turn)}; {RUNS[dispatch]}")


def _reading_words(turn: Turn) -> str:
    return f"reads {turn.evaluation.word.value}" if turn.evaluation else "reads nothing"


SAYS: Mapping[Fate, str] = {
    Fate.RUN: "would run it",
    Fate.STUCK: "stuck with it",
    Fate.REFUSE: "would answer it with the error",
    Fate.HOLD: "would hold it",
}
"""Fate of a call -> the words for a group of policies; the worst fate comes first."""


def names_by_fate(opinions: Iterable[Opinion]) -> list[tuple[Fate, list[str]]]:
    """The names of the policies grouped by fate, worst first."""
    found: dict[Fate, list[str]] = {fate: [] for fate in SAYS}
    for opinion in opinions:
        found[opinion.fate].append(opinion.policy)
    return [(fate, names) for fate, names in found.items() if names]


# -- The sheet of tool calls -----------------------------------------------------------------------------------------

CUT = "▌"
RECEIVED_SHOWN = 4_000


def calls(view: View, block: Block, here: ResponseFacts | None, step: int | None = None) -> LineSheet:
    """The sheet of a run's calls, opened at those of response `here`; calls after `step` are only counted."""
    lines: list[Line] = []
    focus: int | None = None
    copied: list[str] = []
    later = 0
    for facts in _answers(view, block):
        if step is not None and facts.step > step:
            later += len(facts.verdicts)
            continue
        own = here is not None and (facts.index, facts.step) == (here.index, here.step)
        if facts.verdicts and own:
            focus = len(lines)
        every_stance = stances(facts.exchange, facts.judgement, facts.verdicts) if facts.verdicts else ()
        for verdict in facts.verdicts:
            lines += [*call(view, facts, verdict, own, every_stance), ()]
            if own or here is None:
                copied.append(verdict.call.arguments or "")
        lines += server_lines(facts)
    if not lines:
        lines = [(Span("no tool calls up to this step" if later else "no tool calls in this turn", Tone.DIM),)]
    if later:
        come = count_of(later, "call comes", "calls come")
        lines.append((Span(f"{come} at a later step of this turn", Tone.DIM),))
    # These lines come before the calls of the current response, so that they are visible when the sheet opens.
    sums = cut_run_lines(view, block.turn)
    lines[focus or 0 : focus or 0] = [*sums, ()] if sums else []
    return LineSheet(lines, focus or 0, lambda: "\n".join(copied))


def _answers(view: View, block: Block) -> Iterable[ResponseFacts]:
    """The recorded answers of the turn; in a simulated run, the answers of that run."""
    if has_unrecorded_answer(view.steps[block.end - 1].turn):
        return (facts for _, facts in answers_of(view, block.first, block.end))
    return (view.responses[index] for index in view.turns[block.turn].responses)


def call(
    view: View, facts: ResponseFacts, verdict: Verdict, here: bool = False, every_stance: Sequence[Stance] = ()
) -> list[Line]:
    """All facts about one call; `every_stance` are the policies' stances on its response, if known already."""
    glyph, role = glyphs.ADMISSION[verdict.admission]
    tool_call = verdict.call
    ran = verdict in ran_calls(view.findings, facts.index)
    title: Line = (
        Span(f"{glyph} {verdict.admission.value.upper()} ", role), safe(tool_call.name or "unnamed", Tone.STRONG),
        Span(f"  {short_why(verdict)}", role), *((Span(f"  {RAN_IT}", Tone.ERROR),) if ran else ()),
        *((Span(f"  ▶{glyphs.UNBROKEN}here", Tone.HERE),) if here else ()),
    )
    lines = [title, field("where", _where(facts)), *_arguments(verdict)]
    lines.append(field("parser", *_parser(verdict)))
    lines.append(field("schema", *_schema(facts, verdict)))
    if verdict.admission is not Admission.READY:
        lines.append(field("why", safe(without_remedy(verdict.why))))
    if tool_call.kind is not CallKind.CUSTOM and parse(tool_call.arguments).shape is not ArgumentShape.COMPLETE:
        lines.append(field("lenient", *_lenient(verdict)))
        lines.append(more(Span("what a lenient parser would have run; shown only, never run", Tone.DIM)))
    lines += _policies(verdict, every_stance or stances(facts.exchange, facts.judgement, facts.verdicts))
    lines.append(field("agent", *_agent(view, facts, verdict)))
    lines.append(field("what to do", Span(advice(verdict), Tone.KEY)))
    if ran:
        lines += _sent_back(view, facts, verdict)
    return lines


def _where(facts: ResponseFacts) -> Span:
    """The response of a call and its step; on a row of its own, because it would be broken beside the name."""
    if facts.recut is not None:
        return Span(facts.name, Tone.WARN)
    return Span(f"{facts.name} · step {facts.step + 1:,}", Tone.DIM)


def without_remedy(why: str) -> str:
    """Why a call is held, without the advice, which is shown on another line."""
    return why.removesuffix(f"; {REMEDY}")


def short_why(verdict: Verdict) -> str:
    """The reason in a few words."""
    return {
        "gate.ready": "may run",
        MASKED: "may run, though a masked value could not be checked",
        "gate.schema": "refused by its schema",
        "gate.incomplete": "incomplete",
        "gate.reason": "not authorised by the stop reason",
        "gate.batch": "its batch is unfinished",
        "gate.phantom": "a phantom: neither name nor arguments",
    }.get(verdict.rule, verdict.rule)


def _arguments(verdict: Verdict) -> list[Line]:
    raw = verdict.call.arguments
    if raw is None:
        return [field("received", Span("no arguments", Tone.WARN))]
    if not raw:
        return [field("received", Span("empty arguments", Tone.WARN))]
    excerpt, left = raw[:RECEIVED_SHOWN], len(raw) - RECEIVED_SHOWN
    body = paragraphs(excerpt)
    cut = verdict.admission is Admission.HELD and parse(raw).shape is not ArgumentShape.COMPLETE
    if left > 0:
        body[-1] = (*body[-1], Span(f" … {count_of(left, 'character')} more", Tone.DIM))
    elif cut:
        body[-1] = (*body[-1], Span(CUT, Tone.HELD))
    return [field("received", *body[0]), *(more(*line) for line in body[1:])]


def _parser(verdict: Verdict) -> Line:
    if verdict.call.kind is CallKind.CUSTOM:
        return (Span("free-form text, not parsed", Tone.DIM),)
    reading = parse(verdict.call.arguments)
    size = count_of(len(verdict.call.arguments or ""), "character")
    if reading.shape is ArgumentShape.COMPLETE:
        return (Span(f"one complete JSON object, {size}", Tone.OK),)
    if reading.shape.is_missing:
        return (Span(reading.problem, Tone.WARN),)
    if reading.shape is ArgumentShape.NOT_OBJECT:
        return (Span(reading.in_words, Tone.WARN), Span(f"; {size} received", Tone.DIM))
    return (Span(f"stopped at character {reading.stopped_at:,}: ", Tone.WARN), safe(reading.problem, Tone.WARN),
            Span(f"; {size} received, {reading.in_words}", Tone.DIM))


def _schema(facts: ResponseFacts, verdict: Verdict) -> Line:
    tool = tool_of(facts.exchange.request, verdict.call.name)
    reading = parse(verdict.call.arguments)
    if verdict.problems:
        return (safe("; ".join(verdict.problems), Tone.WARN),)
    if tool is None or tool.schema is None:
        why = ("the request declares none for this tool" if facts.exchange.request_json is not None
               else "the request, which declares the tools, was not recorded")
        return (Span(f"unknown: {why}", Tone.DIM),)
    if verdict.call.kind is CallKind.CUSTOM:
        return (Span("free-form text: none applies", Tone.DIM),)
    if not arguments.is_usable(tool):
        return (Span("not usable", Tone.DIM),)
    if reading.value is None:
        return (Span(f"not checked: the arguments are {reading.in_words}", Tone.DIM),)
    masked = masked_places(verdict.call.arguments or "")
    problems = problems_beside(masked, tool, verdict.call)
    if problems:
        return (safe("; ".join(problems), Tone.WARN),)
    return (Span(NOT_CHECKABLE, Tone.DIM),) if masked else (Span("accepts the arguments", Tone.OK),)


def tool_of(request: Request | None, name: str) -> Tool | None:
    """The declaration of a tool in a request."""
    return tools_by_name(request.tools).get(name) if request else None


def _lenient(verdict: Verdict) -> Line:
    # The values that an agent with a lenient parser would run; a number that was cut looks like a smaller number.
    value = parse_leniently(verdict.call.arguments)
    name = safe(verdict.call.name or "unnamed")
    if not isinstance(value, dict):
        return (Span("nothing can be read", Tone.DIM),)
    arguments_text = ", ".join(f"{key}={json.dumps(item, ensure_ascii=False)}" for key, item in value.items())
    return (name, Span("("), safe(arguments_text, Tone.REMOVED, 600), Span(")"))


def _policies(verdict: Verdict, stances: Sequence[Stance]) -> list[Line]:
    unsafe = {Fate.RUN, Fate.STUCK} if verdict.admission is Admission.HELD else {Fate.STUCK}
    lines: list[Line] = []
    for fate, names in names_by_fate(opinions_of(stances, verdict)):
        role = Tone.ERROR if fate in unsafe else Tone.PLAIN
        spans = (Span(f"{SAYS[fate]}: ", Tone.DIM), Span(", ".join(names), role))
        lines.append(more(*spans) if lines else field("policies", *spans))
    return [*lines, more(Span("p ", Tone.PRESS), Span("explains these policies and what each does", Tone.DIM))]


def _agent(view: View, facts: ResponseFacts, verdict: Verdict) -> Line:
    mine = [
        note.finding for note in view.findings
        if note.response == facts.index and note.finding.rule in OF_HELD_CALLS and note.call == verdict
    ]
    if verdict.admission is Admission.HELD and mine:
        return (safe(mine[0].message, Tone.ERROR if mine[0].rule in RAN else Tone.PLAIN),)
    return (safe(facts.recorded_next),)


def _sent_back(view: View, facts: ResponseFacts, verdict: Verdict) -> list[Line]:
    """The call and its result in the agent's next request, each with its JSON pointer."""
    lines: list[Line] = []
    for each in sent_back(view, facts, verdict.call):
        kind = each.kind.format(name=verdict.call.name or "unnamed")
        where = safe(f"{kind}: the request of {each.answer.name} {each.pointer}", Tone.DIM)
        lines.append(more(where) if lines else field("sent back", where))
        lines.append(more(safe(each.text, Tone.PLAIN, RECEIVED_SHOWN)))
    return lines


def advice(verdict: Verdict) -> str:
    """What to do about a call."""
    if verdict.admission is Admission.READY:
        return "nothing: it may run"
    if verdict.rule == REFUSED:
        return "nothing: the agent already answered it with this error"
    if verdict.admission is Admission.REJECTED:
        return "send the error back to the model as this call's result"
    if verdict.rule == "gate.phantom":
        return "nothing: there is no call to run"
    if verdict.rule == "gate.batch":
        return "nothing: it runs once the other calls are complete"
    return REMEDY if verdict.why.endswith(REMEDY) else "do not run it; ask for the call again if it is still needed"


# -- Calls of the provider's own tools -------------------------------------------------------------------------------


RESULT_OF = ("tool_use_id", "toolUseId", "call_id")
"""The members of a result that may hold the id of its call (Anthropic, Bedrock, Responses)."""


def server_lines(facts: ResponseFacts) -> list[Line]:
    """The provider's own calls, and whether the answer proves that each ran; a call alone does not prove it."""
    response = facts.exchange.response
    results = set(chain.from_iterable(map(_ids_in, response.parts)))
    fates = [_server_call(call, results) for call in response.server_calls]
    lines: list[Line] = [
        (safe(call.name, Tone.STRONG), Span(f"  {outcome}; neither held nor run here", Tone.DIM if ran else Tone.WARN),
         Span(f"  {facts.name}", Tone.DIM))
        for call, (ran, outcome) in zip(response.server_calls, fates, strict=True)]
    count = sum(ran for ran, _ in fates)
    if len(lines) > 1:
        summary = f"{count_of(len(fates), 'call')} of the provider's own tools; the answer shows {count:,} of them run"
        lines.insert(0, (Span(summary, Tone.DIM),))
    return lines


def _ids_in(part: object) -> Iterator[str]:
    """The ids of the calls whose results are in opaque blocks."""
    if not isinstance(part, OpaquePart):
        return
    try:
        value: Any = json.loads(part.json)
    except (ValueError, RecursionError):
        return
    members = value if isinstance(value, dict) else {}
    for each in (members, *(inner for inner in members.values() if isinstance(inner, dict))):
        yield from (each[name] for name in RESULT_OF if isinstance(each.get(name), str))


def _server_call(call: ToolCall, results: Container[str | None]) -> tuple[bool, str]:
    """Whether the answer shows that the provider ran a call, and how."""
    if (call.id is not None and call.id in results) or brought_output(call):
        return True, "run by the provider itself: its result came"
    if call.status == "completed":
        return True, "run by the provider itself, which says that it is completed"
    word = f", and its state is {one_line(call.status)}" if call.status else ""
    return False, f"left to the provider itself: this answer holds no result of it{word}"

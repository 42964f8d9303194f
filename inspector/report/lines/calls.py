"""Tool calls as objects in their own right, the held ones above all.

For each call: what was received and where it ends, where the parser stopped, the schema, what a forgiving parser would
have run, why the gate decided as it did, which policies would have run it, what the recorded agent did, and what to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from inspector.replay.case import REFUSED
from inspector.report.by_policy import SAYS, Fate, Stance, grouped, opinions_of, stances
from inspector.report.facts import ResponseFacts, View, answers_of, is_simulated
from inspector.report.findings import OF_HELD_CALLS, RAN
from inspector.report.lines import glyphs
from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import Line, Role, Span, field, more, paragraphs, said
from inspector.report.lines.steps import Block
from loop_core.judge import arguments
from loop_core.judge.arguments import ArgumentShape, parse, parse_leniently
from loop_core.judge.gate import REMEDY, Admission, Verdict
from loop_core.values import CallKind, Request, Tool

CUT = "▌"
RECEIVED_SHOWN = 4_000


def calls(view: View, block: Block, here: ResponseFacts | None, step: int | None = None) -> Listed:
    """The sheet of a run's calls up to a step; it opens at those of the response `here`.

    `step` is an index in the trace: an answer that comes after it is not shown, only how many calls are still to come.
    None shows all.
    """
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
        taken = stances(facts.exchange, facts.judged, facts.verdicts) if facts.verdicts else ()
        for verdict in facts.verdicts:
            lines += [*call(view, facts, verdict, own, taken), ()]
            if own or here is None:
                copied.append(verdict.call.arguments or "")
        lines += _server(facts)
    if not lines:
        lines = [(Span("no tool calls up to this step" if later else "no tool calls in this turn", Role.DIM),)]
    if later:
        come = "1 call comes" if later == 1 else f"{later:,} calls come"
        lines.append((Span(f"{come} at a later step of this turn", Role.DIM),))
    return Listed(lines, focus or 0, lambda: "\n".join(copied))


def _answers(view: View, block: Block) -> Iterable[ResponseFacts]:
    """All that was recorded of the turn; where the run was simulated, what it was answered."""
    if is_simulated(view, block.end):
        return (facts for _, facts in answers_of(view, block.first, block.end))
    return (view.responses[index] for index in view.turns[block.turn].responses)


def _server(facts: ResponseFacts) -> list[Line]:
    return [
        (said(call.name, Role.STRONG), Span("  run by the provider itself; neither held nor run here", Role.DIM),
         Span(f"  {facts.name}", Role.DIM))
        for call in facts.exchange.response.server_calls
    ]


def call(
    view: View, facts: ResponseFacts, verdict: Verdict, here: bool = False, taken: Sequence[Stance] = ()
) -> list[Line]:
    """Everything that is known of one call; `taken` are the policies' stances on its response, where they are known."""
    glyph, role = glyphs.ADMISSION[verdict.admission]
    made = verdict.call
    title: Line = (
        Span(f"{glyph} {verdict.admission.value.upper()} ", role), said(made.name or "unnamed", Role.STRONG),
        Span(f"  {short_why(verdict)}", role), *_where(facts),
        *((Span("  ▶ here", Role.HERE),) if here else ()),
    )
    lines = [title, *_received(verdict)]
    lines.append(field("parser", *_parser(verdict)))
    lines.append(field("schema", *_schema(facts, verdict)))
    if verdict.admission is not Admission.READY:
        lines.append(field("why", said(without_remedy(verdict.why))))
    if made.kind is not CallKind.CUSTOM and parse(made.arguments).shape is not ArgumentShape.COMPLETE:
        lines.append(field("lenient", *_lenient(verdict)))
        lines.append(more(Span("what a forgiving parser would have run; shown only, never run", Role.DIM)))
    lines += _policies(verdict, taken or stances(facts.exchange, facts.judged, facts.verdicts))
    lines.append(field("agent", *_agent(view, facts, verdict)))
    lines.append(field("what to do", Span(advice(verdict), Role.KEY)))
    return lines


def _where(facts: ResponseFacts) -> Line:
    if facts.recut is not None:
        return (Span(f"  {facts.name}", Role.WARN),)
    return (Span(f"  {facts.name} · step {facts.step + 1}", Role.DIM),)


def without_remedy(why: str) -> str:
    """Why a call is held, without what to do about it, which stands in a line of its own."""
    return why.removesuffix(f"; {REMEDY}")


def short_why(verdict: Verdict) -> str:
    """Why, in a few words."""
    return {
        "gate.ready": "may run",
        "gate.schema": "refused by its schema",
        "gate.incomplete": "incomplete",
        "gate.reason": "not authorised by the stop reason",
        "gate.batch": "its batch is unfinished",
        "gate.phantom": "a phantom: neither name nor arguments",
    }.get(verdict.rule, verdict.rule)


def _received(verdict: Verdict) -> list[Line]:
    raw = verdict.call.arguments
    if raw is None:
        return [field("received", Span("no arguments", Role.WARN))]
    if not raw:
        return [field("received", Span("empty arguments", Role.WARN))]
    shown, left = raw[:RECEIVED_SHOWN], len(raw) - RECEIVED_SHOWN
    body = paragraphs(shown)
    cut = verdict.admission is Admission.HELD and parse(raw).shape is not ArgumentShape.COMPLETE
    if left > 0:
        body[-1] = (*body[-1], Span(f" … {left:,} characters more", Role.DIM))
    elif cut:
        body[-1] = (*body[-1], Span(CUT, Role.HELD))
    return [field("received", *body[0]), *(more(*line) for line in body[1:])]


def _parser(verdict: Verdict) -> Line:
    if verdict.call.kind is CallKind.CUSTOM:
        return (Span("free-form text, not parsed", Role.DIM),)
    reading = parse(verdict.call.arguments)
    size = len((verdict.call.arguments or "").encode("utf-8", "surrogatepass"))
    if reading.shape is ArgumentShape.COMPLETE:
        return (Span(f"one complete JSON object, {size:,} bytes", Role.OK),)
    if reading.shape in (ArgumentShape.EMPTY, ArgumentShape.ABSENT):
        return (Span(reading.problem, Role.WARN),)
    return (Span(f"stopped at character {reading.stopped_at:,}: ", Role.WARN), said(reading.problem, Role.WARN),
            Span(f"; {size:,} bytes received, {reading.shape.value}", Role.DIM))


def _schema(facts: ResponseFacts, verdict: Verdict) -> Line:
    tool = tool_of(facts.exchange.request, verdict.call.name)
    reading = parse(verdict.call.arguments)
    if verdict.problems:
        return (said("; ".join(verdict.problems), Role.WARN),)
    if tool is None or tool.schema is None:
        return (Span("unknown: the request declares none for this tool", Role.DIM),)
    if verdict.call.kind is CallKind.CUSTOM:
        return (Span("free-form text: none applies", Role.DIM),)
    if not arguments.is_usable(tool):
        return (Span("not usable", Role.DIM),)
    if reading.value is None:
        return (Span(f"not checked: the arguments are {reading.shape.value}", Role.DIM),)
    problems = arguments.schema_problems(tool, reading.value)
    return (said("; ".join(problems), Role.WARN),) if problems else (Span("accepts the arguments", Role.OK),)


def tool_of(request: Request | None, name: str) -> Tool | None:
    """The declaration of a tool in a request."""
    return next((tool for tool in request.tools if tool.name == name), None) if request else None


def _lenient(verdict: Verdict) -> Line:
    value = parse_leniently(verdict.call.arguments)
    name = said(verdict.call.name or "unnamed")
    if not isinstance(value, dict):
        return (Span("nothing can be read", Role.DIM),)
    shown = ", ".join(f"{key}={_literal(item)}" for key, item in value.items())
    return (name, Span("("), said(shown, Role.REMOVED, 600), Span(")"))


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _policies(verdict: Verdict, taken: Sequence[Stance]) -> list[Line]:
    unsafe = {Fate.RUN, Fate.STUCK} if verdict.admission is Admission.HELD else {Fate.STUCK}
    lines: list[Line] = []
    for fate, names in grouped(opinions_of(taken, verdict)):
        role = Role.ERROR if fate in unsafe else Role.PLAIN
        shown = (Span(f"{SAYS[fate]}: ", Role.DIM), Span(", ".join(names), role))
        lines.append(more(*shown) if lines else field("policies", *shown))
    return lines


def _agent(view: View, facts: ResponseFacts, verdict: Verdict) -> Line:
    mine = [
        noted.finding for noted in view.findings
        if noted.response == facts.index and noted.finding.rule in OF_HELD_CALLS and noted.call == verdict
    ]
    if verdict.admission is Admission.HELD and mine:
        ran = mine[0].rule in RAN
        return (said(mine[0].message, Role.ERROR if ran else Role.PLAIN),)
    return (said(facts.recorded_next),)


def advice(verdict: Verdict) -> str:
    """What to do about a call."""
    if verdict.admission is Admission.READY:
        return "nothing: it may run"
    if verdict.rule == REFUSED:
        return "nothing: the agent answered it with that"
    if verdict.admission is Admission.REJECTED:
        return "send the error back to the model as this call's result"
    if verdict.rule == "gate.phantom":
        return "nothing: there is no call to run"
    if verdict.rule == "gate.batch":
        return "nothing by itself: it runs once its siblings are whole"
    return REMEDY

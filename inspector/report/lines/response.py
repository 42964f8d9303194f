"""The facts of one response as lines, with the recorded agent's next action beside the engine's decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.report.explain_document import provider
from inspector.report.facts import ResponseFacts, View
from inspector.report.findings import RAN_IT, ran_calls
from inspector.report.lines import glyphs
from inspector.report.lines.calls import without_remedy
from inspector.report.lines.glyphs import hint
from inspector.report.lines.spans import (
    EMPTY,
    Line,
    LineSheet,
    Span,
    Tone,
    count_of,
    field,
    join_groups,
    last_name,
    more,
    one_line,
    paragraphs,
    quote,
    safe,
    words,
)
from inspector.report.lines.steps import SEVERITY, send_of
from inspector.report.lines.wire import place
from inspector.report.sentences import format_name, only_reasoning_above
from inspector.report.times_and_costs import cost_text, response_cost, session_cost, time_phrases, turn_cost
from inspector.sessions.file_format import entry_name
from inspector.sessions.reasons import inference_of, recorder_word
from loop_core.judge.gate import Admission
from loop_core.turn.state import Send
from loop_core.turn.trace import Fidelity, Step
from loop_core.values import ChatResponse, Request, Severity, Usage

TEXT_SHOWN = 200_000
"""The largest number of characters of text or thinking that is shown; the Wire tab shows every byte."""


def response(view: View, facts: ResponseFacts) -> LineSheet:
    """The sheet of one response."""
    lines: list[Line] = [_title(view, facts), *simulation_lines(facts), EMPTY, *_reason(facts)]
    lines += [*_outcome(view, facts), EMPTY]
    lines += [*_of_file(view, facts), *_usage(facts), *_cost(view, facts), *_who(facts), *_calls(view, facts)]
    found = _findings(view, facts.index)
    if found:
        lines += [EMPTY, *found]
    answer = facts.exchange.response
    lines += _section("text", answer.text)
    lines += _section("thinking", answer.reasoning_content)
    lines += _section("refusal", answer.refusal)
    return ResponseSheet(lines, facts_of(lines), answer.text or "")


class ResponseSheet(LineSheet):
    """The sheet of a response, with the fact that each line shows, by its name in `Provenance`."""

    def __init__(self, lines: Sequence[Line], facts: Sequence[str | None], text: str) -> None:
        super().__init__(lines, copy_text=lambda: text)
        self.facts = facts


FACTS: Mapping[str, str] = {
    "raw": "stop_reason", "mapped": "stop_reason", "effective": "stop_reason", "evidence": "stop_reason",
    "usage": "usage.output_tokens", "provider": "model",
    "text": "text", "thinking": "reasoning", "refusal": "refusal",
}
"""First word of a line -> the name of the fact that this line and the lines below it show."""


def facts_of(lines: Sequence[Line]) -> list[str | None]:
    """The fact of each line, with calls numbered."""
    found: list[str | None] = []
    current, calls_seen, in_calls = None, 0, False
    for line in lines:
        role, word = (line[0].role, line[0].text.strip()) if line else (Tone.PLAIN, "")
        if role in (Tone.KEY, Tone.TITLE):
            current, in_calls = FACTS.get(word), word == "calls" or (in_calls and not word)
            if in_calls:
                current, calls_seen = f"tool_calls[{calls_seen}].arguments", calls_seen + 1
        elif not line:
            current = None
        found.append(current)
    return found


def _of_file(view: View, facts: ResponseFacts) -> list[Line]:
    """The place of the response in its file, where entries are numbered instead of turns."""
    exchange = facts.exchange
    if facts.recut is not None:
        return []
    format_name = next((input_file.format for input_file in view.inputs if input_file.path == exchange.path), "")
    where = f"line {exchange.lines[0]:,}" if exchange.lines else entry_name(format_name, exchange.entry)
    return [field("file", safe(f"{last_name(exchange.path)} · {where}"))]


def _title(view: View, facts: ResponseFacts) -> Line:
    return join_groups([
        (Span(f"{facts.name[0].upper()}{facts.name[1:]}", Tone.WARN if facts.is_made else Tone.TITLE),),
        (Span(f"turn {view.number(view.turn_of(facts.step)):,}"),), (Span(f"segment {facts.segment}"),),
        (Span(f"step {facts.step + 1:,}"),), (safe(facts.why, Tone.DIM, 80),),
    ])


BY_A_STAND_IN = "a stand-in of this program answered, and no provider: what was not recorded is made up"
"""The remark about an answer of the stand-in in `inspector.live.scripted`."""


def simulation_lines(facts: ResponseFacts) -> list[Line]:
    """How a simulated response was made; empty for a recorded one."""
    recut = facts.recut
    if recut is None:
        origin = BY_A_STAND_IN if facts.live else "made from a table of dialects; no request was sent"
        return [field("SIMULATED", Span(origin, Tone.WARN))] if facts.simulated else []
    cap = "no cap" if recut.budget is None else f"max_tokens {recut.budget:,}"
    origin = f"the known output cut again: {count_of(recut.tokens, 'token')} under {cap}"
    lines = [
        field("SIMULATED", Span(origin, Tone.WARN)),
        field("boundaries", Span(f"{recut.basis}: ", Tone.STRONG), safe(recut.note)),
    ]
    if recut.apart is not None:
        lines.append(field("ESTIMATED", Span(f"{recut.between}; one reading of several is shown", Tone.WARN)))
    if recut.lost:
        lines.append(field("lost", safe(f"{recut.lost}: the format cannot carry it", Tone.WARN)))
    return lines


def _reason(facts: ResponseFacts) -> list[Line]:
    judged, answer = facts.judgement, facts.exchange.response
    glyph, role = glyphs.of_reason(judged.stop)
    no_word = Span("absent" if facts.exchange.recorder is None else "not recorded", Tone.RAW)
    raw = no_word if answer.raw_stop_reason is None else quote(answer.raw_stop_reason)
    detail = (safe(f" ({judged.stop.detail})", Tone.PLAIN, 80),) if judged.stop.detail else ()
    lines = [
        field("raw", raw, *_native(answer)),
        field("mapped", Span(judged.mapped.normalized.value, Tone.NORMALIZED),
              Span(f"  {_mapping(facts)}", Tone.DIM)),
        field("effective", Span(f"{glyph} {judged.stop.normalized.value}", role), *detail,
              *_correction(facts)),
    ]
    name = "evidence"
    for number, evidence in enumerate(facts.evidence, 1):
        note = (Span(": ", Tone.DIM), safe(evidence.note)) if evidence.note else ()
        lines.append(field(name, Span(f"{number} ", Tone.DIM), safe(evidence.rule, Tone.STRONG), *note))
        lines.append(more(Span(f"  {place(evidence.at)}", Tone.DIM)))
        name = ""
    return lines


def _mapping(facts: ResponseFacts) -> str:
    """The source of the mapped reason; the format's table is named only for a recorded word."""
    mapped = facts.judgement.mapped
    if facts.exchange.response.raw_stop_reason is not None:
        return "what the format's table says"
    word = recorder_word(mapped)
    if word is not None:
        return f"what the recorder's word {one_line(word, 40)} means"
    return "no word says it: inferred, see the evidence" if inference_of(mapped) is not None else "no word says it"


def _native(answer: ChatResponse) -> Line:
    return tuple(
        span for name, word in answer.native.items()
        for span in (safe(f"  {name} ", Tone.DIM), quote(word, Tone.RAW, 60))
    )


def _correction(facts: ResponseFacts) -> Line:
    if facts.judgement.promoted:
        return (Span("  promoted: every call is complete", Tone.WARN),)
    if facts.judgement.mapped.normalized is not facts.judgement.stop.normalized:
        return (Span("  tightened", Tone.WARN),)
    return ()


def _outcome(view: View, facts: ResponseFacts) -> list[Line]:
    state = facts.state.value if facts.state else "not reached"
    # There is no recorded agent in a live run. For a simulated answer the line says that the agent never saw it.
    live = view.steps[facts.step].fidelity is Fidelity.LIVE
    agent = [] if live else [field("the agent", safe(facts.recorded_next))]
    return [field("this loop", Span(state, Tone.STRONG)), *agent]


def _usage(facts: ResponseFacts) -> list[Line]:
    usage = facts.exchange.response.usage
    if usage is None:
        return [field("usage", Span("not reported", Tone.DIM))]
    return [field("usage", *words(*_counts(usage, facts.exchange.cap)))]


def _cost(view: View, facts: ResponseFacts) -> list[Line]:
    """The cost of the response, its turn and the session; empty without a price table."""
    table = view.prices
    if not table.models:
        return []
    cost = response_cost(facts, table)
    is_priced = cost.amount is not None
    amount = table.amount_text(cost.amount or 0.0)
    cost_span = safe(amount, Tone.STRONG) if is_priced else safe(f"not known: {cost.why}", Tone.DIM)
    sums = (("turn", turn_cost(view, view.turn_of(facts.step))), ("session", session_cost(view)))
    rest = [(Span(f"{name} ", Tone.DIM), safe(cost_text(each, table))) for name, each in sums if each is not None]
    return [field("cost", *join_groups([(cost_span,), *rest]))]


def _counts(usage: Usage, cap: int | None) -> list[str]:
    def number(value: int | None) -> str:
        return "–" if value is None else f"{value:,}"

    found = [f"input {number(usage.input_tokens)}"]
    limit, used = "" if cap is None else f" of {cap:,}", usage.output_tokens
    above = used is not None and cap is not None and used > cap
    apart = cap is not None and only_reasoning_above(usage, cap)
    found.append(f"output {number(used)}{f', more than the cap of {cap:,}' if above and not apart else ''}"
                 f"{'' if above else limit}")
    if usage.reasoning_tokens is not None:
        found.append(f"thinking {usage.reasoning_tokens:,}")
        found.append(f"the answer {number(usage.visible_tokens)}{limit if apart else ''}")
    if usage.cached_tokens is not None:
        found.append(f"cached {usage.cached_tokens:,}")
    if usage.cache_write_tokens:
        found.append(f"written to the cache {usage.cache_write_tokens:,}")
    return found


def _who(facts: ResponseFacts) -> list[Line]:
    exchange, answer = facts.exchange, facts.exchange.response
    status = "no HTTP status" if answer.http_status is None else f"HTTP {answer.http_status}"
    how = "streamed" if answer.streaming else "whole"
    parts = [format_name(exchange), provider(facts) or "host not recorded", exchange.model or "model not named", status,
             how]
    lines = [field("provider", *join_groups([(safe(part),) for part in parts]))]
    rules = ", ".join(each.rule for each in exchange.profile_evidence)
    chosen = safe(f"  chosen by {rules}" if rules else "", Tone.DIM)
    lines.append(field("profile", safe(exchange.profile.name, Tone.STRONG), chosen))
    lines += [more(Span("known: ", Tone.WARN), safe(lie)) for lie in exchange.profile.lies]
    times = time_phrases(exchange)
    if times:
        lines.append(field("times", *join_groups([(safe(each),) for each in times])))
    quota = answer.quota_metadata
    if quota is not None and quota.headers:
        left = [f"{name} {value}" for name, value in quota.headers.items()]
        lines.append(field("quota", safe(" · ".join(left), Tone.DIM)))
    if answer.error is not None:
        lines.append(field("error", safe(answer.error.message.strip(), Tone.ERROR)))
    end = [answer.transport_end.value, "stop reason seen" if answer.saw_stop_reason else "no stop reason seen",
           "terminal seen" if answer.saw_done else "no terminal seen"]
    size = Span(f"{answer.size:,}")
    lines.append(field("bytes", *join_groups([(size,), *((Span(each, Tone.DIM),) for each in end)])))
    if answer.other_choices:
        lines.append(field("choices", Span(
            f"{count_of(answer.other_choices, 'further choice is', 'further choices are')} not read", Tone.WARN)))
    return lines


def _calls(view: View, facts: ResponseFacts) -> list[Line]:
    lines: list[Line] = []
    ran = ran_calls(view.findings, facts.index)
    for verdict in facts.verdicts:
        glyph, role = glyphs.ADMISSION[verdict.admission]
        why = () if verdict.admission is Admission.READY else (safe(f"  {without_remedy(verdict.why)}", Tone.DIM),)
        lines.append(field("" if lines else "calls", Span(f"{glyph} {verdict.admission.value} ", role),
                           safe(verdict.call.name or "unnamed", Tone.STRONG),
                           *((Span(f"  {RAN_IT}", Tone.ERROR),) if verdict in ran else ()), *why))
    return lines


def _findings(view: View, response: int) -> list[Line]:
    lines: list[Line] = []
    for note in view.findings:
        if note.response == response:
            finding = note.finding
            role = Tone.PLAIN if finding.severity is Severity.INFO else SEVERITY[finding.severity]
            lines.append(field(finding.severity.value, safe(finding.message, role)))
            lines.append(more(Span(finding.rule, Tone.DIM)))
    return lines


def _section(name: str, text: str | None) -> list[Line]:
    if not text:
        return []
    title = (Span(name, Tone.TITLE), Span(f"  {count_of(len(text), 'character')}", Tone.DIM))
    return [EMPTY, title, *_quote_lines(text)]


def _quote_lines(text: str) -> list[Line]:
    """The lines of a text beside a drawn rule, and how much of the text is left out."""
    lines: list[Line] = [(Span("│ ", Tone.RULE), *line) for line in paragraphs(text[:TEXT_SHOWN])]
    if len(text) > TEXT_SHOWN:
        left = count_of(len(text) - TEXT_SHOWN, "character")
        lines.append((Span(f"… {left} more; Wire shows every byte", Tone.WARN),))
    return lines


def awaiting_sheet(step: Step, forms: Line = EMPTY) -> LineSheet:
    """The sheet while no response has arrived: the request in progress, and the tab's forms if there are several."""
    request = step.turn.request
    send = send_of(step)
    lines: list[Line] = [(Span("No response yet: ", Tone.STRONG), Span("the request is under way", Tone.DIM))]
    lines += [forms, EMPTY] if forms else [EMPTY]
    lines += _request_lines(request, send)
    lines += [EMPTY, hint("space steps to the answer")]
    return LineSheet(lines)


def _request_lines(request: Request, send: Send | None) -> list[Line]:
    cap = send.max_tokens if send is not None else request.max_tokens
    lines = [
        field("api", safe(request.api)), field("model", safe(request.model or "not named")),
        field("max_tokens", Span("not set", Tone.DIM) if cap is None else Span(f"{cap:,}")),
        field("messages", Span(f"{len(request.messages):,}")),
        field("tools", safe(", ".join(tool.name for tool in request.tools) or "none")),
    ]
    if request.messages:
        last = request.messages[-1]
        lines += [EMPTY, (Span(f"last message, from {last.role.value}", Tone.TITLE),), *_quote_lines(last.text)]
    return lines

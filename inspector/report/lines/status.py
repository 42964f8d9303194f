"""The status line: where the cursor is, in which state, how far it can be trusted, and what was spent."""

from __future__ import annotations

from inspector.report.lines import spent
from inspector.report.lines.merged import reason
from inspector.report.lines.outline import Outline
from inspector.report.lines.spans import Line, Role, Span, joined, said, width_of
from loop_core.trace import Fidelity, Step
from loop_core.turn import State

ESTIMATED = "ESTIMATED"
"""Stands behind SIMULATED where a budget cut an answer at a place that is not known to the character."""
FIDELITY = {Fidelity.RECORDED: Role.OK, Fidelity.SIMULATED: Role.WARN, Fidelity.LIVE: Role.WARN}


def status(outline: Outline, index: int, width: int, filtered: str = "", coming: str = "") -> Line:
    """The line for step `index`; what does not fit is left out (the tabs show the fidelity too).

    `coming` is what has come of an answer that is still under way.
    """
    view = outline.view
    if not view.steps:
        return (Span("no steps", Role.DIM),)
    step = view.shown(index)
    turn = outline.block_of(index).turn + 1
    place: list[Line] = [
        (Span("step ", Role.DIM), Span(f"{index + 1}/{len(view.steps)}", Role.STRONG)),
        (Span("turn ", Role.DIM), Span(f"{turn}/{len(view.turns)}", Role.STRONG)),
        (Span(step.state.value, Role.HERE),),
    ]
    trust: Line = (fidelity(step),)
    if filtered:
        place.append((said(filtered, Role.MARK),))
    if coming:
        place.append((Span(coming, Role.WARN),))
    gauge = spent.short(step.turn)
    out: Line = (Span("out ", Role.DIM), Span(f"{step.turn.spent.output_tokens:,}"))
    word = _word(step)
    live = [trust] if step.fidelity is Fidelity.LIVE else []  # what costs money says so at any width
    for parts in ([*place, trust, *([word] if word else []), out, gauge], [*place, trust, out, gauge],
                  [*place, *live, out, gauge], [*place, *live, gauge]):
        line = joined(parts)
        if width_of(line) <= width:
            return line
    line = joined([*place, *live, gauge], " ")
    if width_of(line) <= width:
        return line
    return joined([*(part[-1:] for part in place), *live, spent.short(step.turn, tight=True)], " ")


def fidelity(step: Step) -> Span:
    """How far the step can be trusted."""
    estimated = f" {ESTIMATED}" if step.estimated is not None else ""
    return Span(f"{step.fidelity.value}{estimated}", FIDELITY[step.fidelity])


def _word(step: Step) -> Line:
    seen = step.turn.evaluated
    if seen is None or step.state is not State.EVALUATE_STOP:
        return ()
    return reason(seen.response.raw_stop_reason, seen.judged.stop.normalized.value)

"""What one step changed: state, spent, text, and the history that will be sent. Against the step before it."""

from __future__ import annotations

from dataclasses import fields

from inspector.report.facts import View
from inspector.report.lines.messages import SHOWN, difference
from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import LABEL, Line, Role, Span, field, joined, more, paragraphs, quoted, said
from inspector.report.recut import messages_of
from loop_core.gate import Admission
from loop_core.limits import Spent
from loop_core.trace import Step
from loop_core.turn import RunTools, Send


def diff(view: View, index: int) -> Listed:
    """The sheet of one step against the step before it."""
    step = view.steps[index]
    before = view.steps[index - 1] if step.came_from is not None else None
    lines = [_head(step, before, index), ()]
    lines += _state(step, before)
    lines += _spent(step, before)
    lines += _text(step, before)
    lines += _effects(step)
    lines += _history(step, before)
    if step.turn.notice and (before is None or before.turn.notice != step.turn.notice):
        lines.append(field("notice", said(step.turn.notice, Role.WARN)))
    return Listed(lines)


def _head(step: Step, before: Step | None, index: int) -> Line:
    against = "the turn begins" if before is None else f"against step {index}"
    return (Span(f"Step {index + 1} ", Role.TITLE), Span(against, Role.DIM))


def changed(old: str, new: str) -> tuple[Span, ...]:
    """A value before and after."""
    return (Span(old, Role.REMOVED), Span(" → ", Role.DIM), Span(new, Role.ADDED))


def _state(step: Step, before: Step | None) -> list[Line]:
    if before is None:
        return [field("state", Span(step.state.value, Role.ADDED))]
    lines = [field("state", *changed(before.state.value, step.state.value))]
    if step.signal is not None:
        lines.append(field("by", Span(step.signal.value, Role.STRONG)))
    if before.fidelity is not step.fidelity:
        lines.append(field("fidelity", *changed(before.fidelity.value, step.fidelity.value)))
    if step.turn.terminal and step.turn.terminal != before.turn.terminal:
        role = Role.OK if step.turn.terminal == "completed" else Role.ERROR
        lines.append(field("ends as", Span(step.turn.terminal, role)))
    return lines


def _spent(step: Step, before: Step | None) -> list[Line]:
    old = before.turn.spent if before is not None else Spent()
    new = step.turn.spent
    parts: list[Line] = []
    for each in fields(Spent):
        was, now = getattr(old, each.name), getattr(new, each.name)
        if was != now:
            parts.append((Span(f"{each.name.replace('_', ' ')} ", Role.DIM), *changed(f"{was:,}", f"{now:,}")))
    return [field("spent", *joined(parts))] if parts else [field("spent", Span("nothing", Role.DIM))]


def _text(step: Step, before: Step | None) -> list[Line]:
    if before is None or step.turn.answers is before.turn.answers:
        return [field("text", Span("unchanged", Role.DIM))]
    if len(step.turn.answers) > len(before.turn.answers):
        return [field("text", Span("a new answer begins", Role.DIM))]
    old, new = before.turn.merged().text, step.turn.merged().text
    same = shared(old, new)
    lines: list[Line] = []
    if same < len(old):
        lines.append(field("text", Span(f"− {len(old) - same:,} characters", Role.REMOVED)))
        lines += [more(said(old[same:], Role.REMOVED, SHOWN))]
    added = new[same:]
    lines.append(field("text", Span(f"+ {len(added):,} characters, {len(new):,} in all", Role.ADDED)))
    if added:
        shown = added if len(added) <= SHOWN else f"{added[: SHOWN // 2]} … {added[-SHOWN // 2 :]}"
        lines += [more(*line) for line in paragraphs(shown, Role.ADDED)]
    return lines


def shared(old: str, new: str) -> int:
    """How many characters two texts have in common at their beginning."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[:middle] == new[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _effects(step: Step) -> list[Line]:
    lines: list[Line] = []
    for effect in step.effects:
        if isinstance(effect, Send):
            lines.append(field("sends", *_send(effect)))
        elif isinstance(effect, RunTools):
            for verdict in effect.batch:
                word = "runs" if verdict.admission is Admission.READY else "answers with an error"
                lines.append(field(word if len(word) < LABEL else "refuses", said(verdict.call.name, Role.STRONG),
                                   said(f" {verdict.call.arguments or ''}", Role.PLAIN, SHOWN)))
    return lines


def _send(send: Send) -> Line:
    place = send.place.value if not send.ordinal else f"{send.place.value} {send.ordinal}"
    parts: list[Line] = [(Span(place, Role.STRONG),)]
    if send.ordinal and send.method.value != "first":
        parts.append((Span(f"by {send.method.value}"),))
    cap = "no max_tokens" if send.max_tokens is None else f"max_tokens {send.max_tokens:,}"
    parts.append((Span(cap),))
    if send.tool_choice:
        parts.append((said(f"tool_choice {send.tool_choice}"),))
    if send.anchor:
        parts.append((Span("anchor "), quoted(send.anchor, Role.SEAM)))
    return joined(parts)


def _history(step: Step, before: Step | None) -> list[Line]:
    """The messages that are sent with this step, or with the next request; what the step before would have sent."""
    send = _sent(step)
    now = messages_of(step.turn, send)
    when = "sent now" if send is not None else "kept" if step.turn.ended else "to be sent next"
    return difference(messages_of(before.turn, _sent(before)) if before is not None else now, now, when)


def _sent(step: Step) -> Send | None:
    return next((effect for effect in step.effects if isinstance(effect, Send)), None)

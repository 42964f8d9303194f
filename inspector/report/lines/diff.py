"""Comparisons as lines: a step with the step before it, the messages of two requests, two segments around a seam."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from inspector.report.facts import ResponseFacts, View
from inspector.report.judged_turn import messages_of
from inspector.report.lines.glyphs import DIFF_FORMS, forms_line
from inspector.report.lines.merged import (
    NO_SEAM,
    answers,
    change_lines,
    changes,
    kept_range,
    reason,
    seam_lines,
    shorten,
    trial_lines,
)
from inspector.report.lines.spans import (
    EMPTY,
    Line,
    LineSheet,
    Measure,
    Span,
    Tone,
    cells,
    count_of,
    field,
    join_groups,
    more,
    paragraphs,
    quote,
    safe,
    width_of,
    wrap_line,
)
from inspector.report.lines.steps import ending_role, send_of
from inspector.report.run_answers import Block
from inspector.sessions.recording import common_beginning
from loop_core.judge.gate import Admission
from loop_core.turn.continuation import JoinedText, SeamRule, Segment
from loop_core.turn.limits import SHORT_NAMES, TOTAL, Spend
from loop_core.turn.quotation import shared_length
from loop_core.turn.seam import join
from loop_core.turn.state import NotRecorded, RunTools, Send
from loop_core.turn.trace import Step
from loop_core.values import Message, MessagePart, ReasoningPart, TextPart, ToolCall, ToolResultPart

# -- The messages of a request, compared with those of the request before --------------------------------------------

MOST_SHOWN = 400
"""The number of characters of a message part that are shown."""
MOST_REPEATED_CHARS = 80
"""The number of characters of a part that are shown if the request before had the same message."""
LAST = 8
"""The number of unchanged messages that are shown; the others are counted."""


def message_lines(message: Message, mark: str = "", role: Tone = Tone.PLAIN, most: int = MOST_SHOWN) -> Iterator[Line]:
    """One message: its author and its parts."""
    for part in message.parts or (TextPart(""),):
        word, text = part_words(part)
        gutter = (Span(mark, role),) if mark else ()
        name = Span(f"{message.role.value} ", Tone.KEY)
        yield more(*gutter, name, *((safe(f"{word} ", Tone.DIM),) if word else ()), safe(text, role, most))


def part_words(part: MessagePart) -> tuple[str, str]:
    """The kind of a message part, in a word or two, and its text."""
    if isinstance(part, TextPart):
        return "", part.text
    if isinstance(part, ReasoningPart):
        return "thinking", part.text or "(opaque)"
    if isinstance(part, ToolCall):
        return f"calls {part.name}", part.arguments or ""
    if isinstance(part, ToolResultPart):
        return "error" if part.is_error else "result", part.text
    return part.type, part.json


def equal(one: Message, other: Message) -> bool:
    """Whether two messages are equal; in a long history they usually are one object, which is a fast comparison."""
    return one is other or one == other


def difference(old: Sequence[Message], new: Sequence[Message], when: str) -> list[Line]:
    """The messages of a request, with those added and removed since the one before; unchanged ones are cut short."""
    same = common_beginning(old, new, equal)
    gone, come = old[same:], new[same:]
    size = f"{count_of(len(new), 'message')} {when}"
    changed = [Span(f"{mark}{len(each):,} ", role) for mark, each, role in (
        ("+", come, Tone.ADDED), ("−", gone, Tone.REMOVED)) if each]
    lines = [field("history", *(changed or [Span("unchanged, ", Tone.DIM)]), Span(size, Tone.DIM))]
    if same > LAST:
        lines.append(more(Span(f"  … {same - LAST:,} before these", Tone.DIM)))
    for message in new[max(0, same - LAST) : same]:
        lines += message_lines(message, "  ", Tone.DIM, MOST_REPEATED_CHARS)
    for mark, messages, role in (("− ", gone, Tone.REMOVED), ("+ ", come, Tone.ADDED)):
        for message in messages:
            lines += message_lines(message, mark, role)
    return lines


def diff(view: View, index: int) -> LineSheet:
    """The sheet that compares one step with the step before it."""
    step = view.steps[index]
    before = view.steps[index - 1] if step.previous_state is not None else None
    against = "the turn begins" if before is None else f"against step {index:,}"
    head = (Span(f"Step {index + 1:,} ", Tone.TITLE), Span(against, Tone.DIM))
    lines: list[Line] = [head, forms_line(DIFF_FORMS, "step"), ()]
    lines += [*_state(step, before), *_spend(step, before), *_text(step, before), *_effects(step),
              *_history(step, before)]
    if step.turn.notice and (before is None or before.turn.notice != step.turn.notice):
        lines.append(field("notice", safe(step.turn.notice, Tone.WARN)))
    return LineSheet(lines)


def change_line(old: str, new: str) -> tuple[Span, ...]:
    """A value before and after the step."""
    return (Span(old, Tone.REMOVED), Span(" → ", Tone.DIM), Span(new, Tone.ADDED))


def _state(step: Step, before: Step | None) -> list[Line]:
    if before is None:
        return [field("state", Span(step.state.value, Tone.ADDED))]
    lines = [field("state", *change_line(before.state.value, step.state.value))]
    if step.signal is not None:
        lines.append(field("by", Span(step.signal.value, Tone.STRONG)))
    if before.fidelity is not step.fidelity:
        lines.append(field("fidelity", *change_line(before.fidelity.value, step.fidelity.value)))
    if step.turn.terminal and step.turn.terminal != before.turn.terminal:
        lines.append(field("ends as", Span(step.turn.terminal, ending_role(step.turn.terminal, step.state))))
    return lines


SPENT_NAMES = {"continuation_tokens": SHORT_NAMES[TOTAL],
               "continuation_chars": SHORT_NAMES["continuation_max_output_chars"]}
"""Count of a turn -> the short name of its limit, if the limit has another name."""


def _spend(step: Step, before: Step | None) -> list[Line]:
    old = before.turn.spend if before is not None else Spend()
    new = step.turn.spend
    parts: list[Line] = []
    for name, was, now in zip(Spend._fields, old, new, strict=True):
        if was != now:
            shown = SPENT_NAMES.get(name, name.replace("_", " "))
            parts.append((Span(f"{shown} ", Tone.DIM), *change_line(f"{was:,}", f"{now:,}")))
    if parts and isinstance(step.event, NotRecorded):
        parts.append((Span("a request that was not recorded does not count", Tone.DIM),))
    return [field("spent", *join_groups(parts))] if parts else [field("spent", Span("nothing", Tone.DIM))]


def _text(step: Step, before: Step | None) -> list[Line]:
    if before is None or step.turn.answers is before.turn.answers:
        return [field("text", Span("unchanged", Tone.DIM))]
    if len(step.turn.answers) > len(before.turn.answers):
        return [field("text", Span("a new answer begins", Tone.DIM))]
    old, new = before.turn.joined_answer().text, step.turn.joined_answer().text
    same = shared_length(old, new)
    lines: list[Line] = []
    if same < len(old):
        lines.append(field("text", Span(f"− {count_of(len(old) - same, 'character')}", Tone.REMOVED)))
        lines += [more(safe(old[same:], Tone.REMOVED, MOST_SHOWN))]
    added = new[same:]
    if not added and not lines:
        return [field("text", Span("no visible text came" if not new else "unchanged", Tone.DIM))]
    lines.append(field("text", Span(f"+ {count_of(len(added), 'character')}, {len(new):,} in all", Tone.ADDED)))
    if added:
        lines += [more(*line) for line in paragraphs(shorten(added, MOST_SHOWN), Tone.ADDED)]
    return lines


def _effects(step: Step) -> list[Line]:
    lines: list[Line] = []
    for effect in step.effects:
        if isinstance(effect, Send):
            lines.append(field("sends", *_send(effect)))
        elif isinstance(effect, RunTools):
            for verdict in effect.batch:
                word = "runs" if verdict.admission is Admission.READY else "refuses"
                lines.append(field(word, safe(verdict.call.name or "unnamed", Tone.STRONG),
                                   safe(f" {verdict.call.arguments or ''}", Tone.PLAIN, MOST_SHOWN)))
    return lines


def _send(send: Send) -> Line:
    place = send.place.value if not send.ordinal else f"{send.place.value} {send.ordinal}"
    parts: list[Line] = [(Span(place, Tone.STRONG),)]
    if send.ordinal and send.method.value != "first":
        parts.append((Span(f"by {send.method.value}"),))
    cap = "no max_tokens" if send.max_tokens is None else f"max_tokens {send.max_tokens:,}"
    parts.append((Span(cap),))
    if send.tool_choice:
        parts.append((safe(f"tool_choice {send.tool_choice}"),))
    if send.anchor:
        parts.append((Span("anchor "), quote(send.anchor, Tone.SEAM)))
    return join_groups(parts)


def _history(step: Step, before: Step | None) -> list[Line]:
    """The messages that this step or the next request sends, compared with those of the step before."""
    send = send_of(step)
    now = messages_of(step.turn, send)
    when = "sent now" if send is not None else "kept" if step.turn.ended else "to be sent next"
    return difference(messages_of(before.turn, send_of(before)) if before is not None else now, now, when)


# -- The segments of a turn side by side around each seam ------------------------------------------------------------
# Text that a seam left out is shown beside the text before the seam, so that a reader can see whether it was a
# repetition.


COLUMNS = 66
"""The width in cells below which the sides stand one below the other."""
SIDE_SHOWN = 240
BETWEEN: Line = (Span(" │ ", Tone.RULE),)


class Pair(NamedTuple):
    """The two sides of one row."""

    left: Line
    right: Line


class Sides(LineSheet):
    """A sheet in which some lines have two sides."""

    def __init__(self, entries: Sequence[Line | Pair], focus: int, text: str) -> None:
        super().__init__([_flat(entry) for entry in entries], focus, lambda: text)
        self.entries = entries

    def rows(self, index: int, width: int, measure: Measure = cells, needle: str = "") -> Sequence[Line]:
        """The line wrapped to a width, with its sides next to each other if there is room."""
        entry = self.entries[index]
        if not isinstance(entry, Pair):
            return wrap_line(entry, width, measure, needle=needle)
        if width < COLUMNS:
            sides = (side for side in (entry.left, entry.right) if side)
            return [row for side in sides for row in wrap_line(side, width, measure, needle=needle)]
        half = (width - width_of(BETWEEN)) // 2
        left, right = (wrap_line(side, half, measure, needle=needle) for side in (entry.left, entry.right))
        return [
            (*one, Span(" " * (half - width_of(one, measure))), *BETWEEN, *other)
            for one, other in zip_longest(left, right, fillvalue=EMPTY)
        ]


def _flat(entry: Line | Pair) -> Line:
    if not isinstance(entry, Pair):
        return entry
    return join_groups([side for side in (entry.left, entry.right) if side], " │ ")


def sides(view: View, block: Block, step: int, trial: SeamRule | None) -> Sides:
    """The sheet of one run, opened at the seam before the current segment."""
    turn = view.steps[block.end - 1].turn
    in_force = turn.policy.seam
    rule = trial or in_force
    entries: list[Line | Pair] = []
    focus = 0
    texts: list[str] = []
    if rule is not in_force:
        entries += trial_lines(turn, rule)
    for answer in answers(view, block):
        segments = [segment for segment, _, _ in answer]
        whole = join(segments, rule)
        texts.append(whole.text)
        differing = changes(segments, in_force, rule)
        for place in range(1, len(answer)):
            if answer[place][1] <= step:
                focus = len(entries)
            entries += seam_lines(whole.seams[place - 1], rule)[:1]
            for change in differing:
                if (change.segment, change.tail) in ((place - 1, True), (place, False)):
                    entries += change_lines(change, in_force)
            entries.append(Pair(*(_heading(at, answer[at][2]) for at in (place - 1, place))))
            entries += _around(segments, whole, place)
            entries.append(EMPTY)
    if not any(isinstance(entry, Pair) for entry in entries):
        entries.append((Span(NO_SEAM, Tone.DIM),))
    return Sides(entries, focus, "\n\n".join(text for text in texts if text))


def _heading(place: int, facts: ResponseFacts) -> Line:
    word = "SIMULATED " if facts.simulated else "LIVE " if facts.live else ""
    mark = (Span(word, Tone.WARN),) if word else ()
    raw = facts.exchange.response.raw_stop_reason
    return (Span(f"segment {place + 1} ", Tone.STRONG), *mark, *reason(raw, facts.judgement.stop))


def _around(segments: Sequence[Segment], whole: JoinedText, place: int) -> Iterator[Pair]:
    """Before the seam, what the two segments share or what was left out, and after it."""
    before, after = segments[place - 1].text, segments[place].text
    cut, end = len(whole.seams[place - 1].cut), kept_range(whole, place - 1)[1]
    shared = cut if before[:end].endswith(after[:cut]) else 0
    yield from (Pair(_side(place, line), EMPTY) for line in _ending(before[: end - shared]))
    left = [*_mark_lines("", before[end - shared : end], Tone.SEAM), *_mark_lines("− ", before[end:], Tone.REMOVED)]
    right = _mark_lines("− ", after[:cut], Tone.REMOVED)
    for one, other in zip_longest(left, right, fillvalue=EMPTY):
        yield Pair(_side(place, one), _side(place + 1, other))
    yield from (Pair(EMPTY, _side(place + 1, line)) for line in _beginning(whole.seams[place - 1].remainder(after)))


def _mark_lines(mark: str, text: str, role: Tone) -> list[Line]:
    """Lines of shared or left-out text, with a mark."""
    return [(Span(mark, role), *line) for line in paragraphs(text[-SIDE_SHOWN:], role)] if text else []


def _ending(text: str) -> list[Line]:
    lines = paragraphs(text[-SIDE_SHOWN:]) if text else []
    return [(Span("…", Tone.DIM), *lines[0]), *lines[1:]] if len(text) > SIDE_SHOWN else lines


def _beginning(text: str) -> list[Line]:
    lines = paragraphs(text[:SIDE_SHOWN]) if text else []
    return [*lines[:-1], (*lines[-1], Span("…", Tone.DIM))] if len(text) > SIDE_SHOWN else lines


def _side(number: int, line: Line) -> Line:
    """A line of a segment with the segment's number; empty for an empty line."""
    return (Span(f"{number} ", Tone.DIM), *line) if line else EMPTY

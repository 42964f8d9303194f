"""The merged text of a turn as lines: every answer with its segments, its seams, and the held calls.

The whole run is laid out at every step, and the part after the cursor is dimmed, so that no text moves while stepping.
A seam shows the decision, its reason, and the characters left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from inspector.report.facts import ResponseFacts, View
from inspector.report.findings import RAN_IT, ran_calls
from inspector.report.lines import glyphs
from inspector.report.lines.spans import (
    Line,
    LineSheet,
    Span,
    Tone,
    count_of,
    join_groups,
    paragraphs,
    quote,
    safe,
)
from inspector.report.lines.steps import end_words, ending_role
from inspector.report.run_answers import Block, answers_of
from inspector.report.sentences import LONGEST
from inspector.sessions.reasons import recorder_word
from loop_core.judge.arguments import ArgumentShape, parse
from loop_core.judge.gate import REMEDY, Admission, Verdict
from loop_core.turn.continuation import JoinedText, Seam, SeamDecision, SeamRule, Segment
from loop_core.turn.seam import APART, join
from loop_core.turn.state import Turn
from loop_core.values import ChatResponse, StopReason

# -- Seams in words --------------------------------------------------------------------------------------------------
# What was left out where two segments meet, by which rule, and what another rule would change there.

CUT_SHOWN = 60
"""The number of characters that are shown of a text that a seam left out or another rule changes."""
NO_SEAM = "there is no seam in this turn: each answer is one segment"


class Change(NamedTuple):
    """How another seam rule changes one end of a segment."""

    segment: int
    tail: bool
    """Whether the end of the segment changes, instead of its beginning."""
    removed: str
    added: str


def kept_range(whole: JoinedText, place: int) -> tuple[int, int]:
    """The range of a segment's characters that the merged text keeps."""
    starts = [0, *(seam.at for seam in whole.seams), len(whole.text)]
    size = min(starts[place + 1 :]) - starts[place] - len(text_between(whole, place))
    if not place:
        return 0, max(0, size)
    seam = whole.seams[place - 1]
    start = end = len(seam.cut)
    for begin, left_out in seam.removals:  # text left out in the middle is in the range, because kept text follows it
        if begin - end >= size:
            break
        size, end = size - (begin - end), begin + len(left_out)
    return start, end + max(0, size)


def kept_text(segments: Sequence[Segment], whole: JoinedText, place: int) -> str:
    """The kept text of a segment, without parts left out in its middle."""
    start, end = kept_range(whole, place)
    text = segments[place].text[:end]
    return whole.seams[place - 1].remainder(text) if place else text[start:]


def text_between(whole: JoinedText, place: int) -> str:
    """The text between two segments that belongs to neither; empty if the later one started again."""
    following = whole.seams[place:]
    if not following or following[0].decision is not SeamDecision.APART:
        return ""
    return APART if all(seam.at >= following[0].at for seam in following) else ""


def changes(segments: Sequence[Segment], rule: SeamRule, trial: SeamRule) -> list[Change]:
    """The changes to an answer, in the order of its segments, if the rule `trial` replaces `rule`."""
    if trial is rule:
        return []
    old, new = join(segments, rule), join(segments, trial)
    found: list[Change] = []
    for place, segment in enumerate(segments):
        (was_from, was_to), (now_from, now_to) = kept_range(old, place), kept_range(new, place)
        text, was, now = segment.text, text_between(old, place), text_between(new, place)
        if max(was_from, now_from) >= min(was_to, now_to):  # the two ranges do not overlap
            before, after = text[was_from:was_to] + was, text[now_from:now_to] + now
            if before != after:
                found.append(Change(place, False, before, after))
            continue
        if was_from != now_from:
            found.append(Change(place, False, text[was_from:now_from], text[now_from:was_from]))
        gone, come = text[now_to:was_to] + was, text[was_to:now_to] + now
        if gone != come:
            found.append(Change(place, True, gone, come))
    return found


def changes_in(turn: Turn, rule: SeamRule) -> list[Change]:
    """The changes to all answers of a turn, if a rule replaces the one in force."""
    return [change for segments in turn.answers for change in changes(segments, turn.policy.seam, rule)]


def change_counts(changes: Sequence[Change]) -> tuple[int, int]:
    """The numbers of characters added and removed."""
    return sum(len(change.added) for change in changes), sum(len(change.removed) for change in changes)


RULE_MEANS: Mapping[SeamRule, str] = {
    SeamRule.CAREFUL: "leaves out a repetition only if it was asked for or is too long to be chance",
    SeamRule.CONCAT: "joins the answers as they were sent",
    SeamRule.OVERLAP: "leaves out every repetition, also one that is chance",
}


def seam_lines(seam: Seam, rule: SeamRule) -> list[Line]:
    """One seam as lines: its segments, the reason and rule of the decision, and the text left out."""
    why = safe(seam.why or seam.decision.value, Tone.SEAM if seam.sure else Tone.WARN)
    where = f"══ seam {seam.segment} to {seam.segment + 1}: "
    lines: list[Line] = [(Span(where, Tone.SEAM), why, Span(f" · rule: {rule.value} ══", Tone.SEAM))]
    for left_out in seam.left_out:
        lines.append((Span("− ", Tone.REMOVED), quote(shorten(left_out), Tone.REMOVED), Span(" cut", Tone.DIM)))
    if seam.segment == 1:
        means = f"   a seam is where the answer goes on after a cut; the rule {rule.value} {RULE_MEANS[rule]}"
        lines.append((Span(means, Tone.DIM),))
    return lines


def change_lines(change: Change, rule: SeamRule) -> list[Line]:
    """How another rule changes one end of a segment, compared with the rule in force."""
    lines: list[Line] = []
    for mark, text, role, word in (
        ("−− ", change.removed, Tone.REMOVED, "fewer"), ("++ ", change.added, Tone.ADDED, "more"),
    ):
        if text:
            size = f" {count_of(len(text), 'character')} {word} than by the rule {rule.value}"
            lines.append((Span(mark, role), quote(shorten(text), role), Span(size, Tone.DIM)))
    return lines


def trial_lines(turn: Turn, trial: SeamRule) -> list[Line]:
    """The effect of trying another rule, as lines before the text."""
    changes, in_force = changes_in(turn, trial), f"{turn.policy.seam.value}, the rule in force"
    added, removed = change_counts(changes)
    change = (f"+{added:,} −{removed:,} characters compared with {in_force}" if changes else
              f"no character differs from {in_force}")
    return [
        (Span(f"seam rule {trial.value}, tried: ", Tone.STRONG), Span(change, Tone.MARK if changes else Tone.PLAIN)),
        (Span("s ", Tone.PRESS), Span("tries the next rule; ", Tone.DIM), Span(f"--set seam={trial.value}", Tone.KEY),
         Span(" makes it a branch, whose requests follow it too", Tone.DIM)), (),
    ]


def shorten(text: str, most: int = CUT_SHOWN) -> str:
    """A long text with its middle left out."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


class SegmentLine(NamedTuple):
    """A line and the index of its segment; -1 for lines about the whole answer."""

    segment: int
    line: Line
    changed: bool = False


class MergedSheet(LineSheet):
    """The sheet of one run of a turn; `here` is the segment that the cursor has reached. `arrivals` has the step that
    received each segment, and the segment's index."""

    def __init__(
        self, entries: Sequence[SegmentLine], arrivals: Sequence[tuple[int, int]], here: int, text: str
    ) -> None:
        super().__init__([entry.line for entry in entries], copy_text=lambda: text)
        self.entries, self.arrivals, self.here, self.text = entries, arrivals, here, text
        self.shape: object = entries
        """A value that is equal for all sheets of one run, whose lines have the same heights."""
        changed = next((i for i, entry in enumerate(entries) if entry.changed), None)
        own = next((i for i, entry in enumerate(entries) if entry.segment == here >= 0), 0)
        self.focus = own if changed is None else changed

    def line(self, index: int) -> Line:
        """The line with its gutter, dimmed if it lies ahead of the cursor."""
        entry = self.entries[index]
        if entry.segment < 0:
            return entry.line
        if entry.segment > self.here:
            ahead = tuple(Span(text, Tone.AHEAD if role is Tone.PLAIN else role) for text, role in entry.line)
            return (Span(f"{glyphs.AHEAD} ", Tone.RULE), *ahead)
        gutter = glyphs.AT_CURSOR if entry.segment == self.here else glyphs.PAST
        return (Span(f"{gutter} ", Tone.RULE), *entry.line)

    def at(self, step: int) -> MergedSheet:
        """The sheet with the cursor on another step."""
        place = bisect_right(self.arrivals, step, key=lambda pair: pair[0]) - 1
        here = self.arrivals[place][1] if place >= 0 else -1
        return self if here == self.here else MergedSheet(self.entries, self.arrivals, here, self.text)


def merged_sheet(view: View, block: Block, step: int, trial: SeamRule | None = None) -> MergedSheet:
    """The sheet of one run at a step; joined by another seam rule if one is tried."""
    turn = view.steps[block.end - 1].turn
    rule = trial or turn.policy.seam
    entries: list[SegmentLine] = []
    arrivals: list[tuple[int, int]] = []
    texts: list[str] = []
    number = 0
    if rule is not turn.policy.seam:
        entries.extend(SegmentLine(-1, line) for line in trial_lines(turn, rule))
    if block.run:
        ended = f"this loop stopped at step {block.first:,}; what the recorded agent did then:"
        entries.append(SegmentLine(-1, (Span(ended, Tone.WARN),)))
    for order, answer in enumerate(answers(view, block)):
        if len(turn.answers) > 1:
            entries.append(SegmentLine(-1, (Span(f"answer {order + 1:,} of {len(turn.answers):,}", Tone.TITLE),)))
        segments = [segment for segment, _, _ in answer]
        differing = changes(segments, turn.policy.seam, rule)
        notes = view.turns[block.turn].findings
        text = Text(segments, join(segments, rule), rule, turn.policy.seam, differing)
        texts.append(text.whole.text)
        for place, (_, at, facts) in enumerate(answer):
            arrivals.append((at, number))
            entries.extend(SegmentLine(number, line, changed) for line, changed in segment_lines(
                text, place, facts, ran_calls(notes, facts.index)))
            number += 1
        if not segments:
            none = "no answer was recorded here" if turn.ended else "no answer yet"
            entries.append(SegmentLine(number, (Span(none, Tone.WARN),)))
            number += 1
    entries.extend(SegmentLine(-1, line) for line in _end(turn))
    return MergedSheet(entries, arrivals, -1, "\n\n".join(text for text in texts if text)).at(step)


Answer = list[tuple[Segment, int, ResponseFacts]]
"""The segments of one answer, each with the step that received it and the facts of its response."""


def answers(view: View, block: Block) -> Iterator[Answer]:
    """The answers of a run; every response is one segment."""
    come = answers_of(view, block.first, block.end)
    for segments in view.steps[block.end - 1].turn.answers:
        yield [(segment, *next(come)) for segment in segments]


def trying(view: View, block: Block, trial: SeamRule) -> str:
    """The effect of a tried rule on a run, in one short line."""
    turn = view.steps[block.end - 1].turn
    rule = turn.policy.seam
    if all(len(segments) < 2 for segments in turn.answers):
        return NO_SEAM
    if trial is rule:
        return f"seam rule {rule.value}: the rule in force"
    size = count_of(sum(change_counts(changes_in(turn, trial))), "character differs", "characters differ")
    return f"seam {trial.value}: {size} from {rule.value} · branch: --set seam={trial.value}"


class Text(NamedTuple):
    """One answer, joined by a rule."""

    segments: Sequence[Segment]
    whole: JoinedText
    rule: SeamRule
    in_force: SeamRule
    """The rule of the run; another rule may be tried in its place."""
    changes: Sequence[Change]


def segment_lines(
    text: Text, place: int, facts: ResponseFacts, ran: Sequence[Verdict] = ()
) -> Iterator[tuple[Line, bool]]:
    """The lines of a segment, each with whether it shows a change by the tried rule; `ran` are held calls that ran."""
    segment, whole = text.segments[place], text.whole
    own = [each for each in text.changes if each.segment == place]
    if place:
        yield from ((line, False) for line in seam_lines(whole.seams[place - 1], text.rule))
    yield from ((line, True) for each in own if not each.tail for line in change_lines(each, text.in_force))
    yield heading(text.segments, place, facts), False
    words = kept_text(text.segments, whole, place)
    if words:
        lines = _with_handovers(words.rstrip("\n") if text_between(whole, place) else words, segment, facts.handovers)
    elif segment.text:
        remark = f"another segment replaces its {count_of(len(segment.text), 'character')}"
        lines = [(Span(remark, Tone.WARN),)]
    else:
        lines = [(Span("no visible text", Tone.DIM),)]
    yield from ((line, False) for line in lines)
    yield from ((line, True) for each in own if each.tail for line in change_lines(each, text.in_force))
    yield from ((_call(verdict, verdict in ran), False) for verdict in facts.verdicts)


def _with_handovers(text: str, segment: Segment, seams: Sequence[tuple[int, str]]) -> list[Line]:
    """The text of a segment, with a seam at each place where another model continued it."""
    lines: list[Line] = []
    done, cut = 0, len(segment.text) - len(text)
    for place, words in seams:
        at = min(max(place - cut, 0), len(text))
        lines += [*(paragraphs(text[done:at]) if at > done else []), (safe(f"══ fallback: {words} ══", Tone.SEAM),)]
        done = at
    return [*lines, *(paragraphs(text[done:]) if done < len(text) or not lines else [])]


def heading(segments: Sequence[Segment], place: int, facts: ResponseFacts) -> Line:
    """The line above a segment: its tokens, its stop reason, its source."""
    segment, answer = segments[place], facts.exchange.response
    return join_groups([
        (Span(f"segment {place + 1}", Tone.STRONG),), (Span(tokens(answer), Tone.DIM),),
        reason(answer.raw_stop_reason, facts.judgement.stop),
        (Span(facts.name, Tone.WARN if facts.is_made else Tone.DIM),),
        (Span(count_of(len(segment.text), "char"), Tone.DIM),),
    ])


def reason(raw: str | None, stop: StopReason) -> tuple[Span, ...]:
    """The provider's stop word and the effective one; the recorder's word if the provider's was not recorded."""
    own_word = recorder_word(stop) if raw is None else None
    word = raw if own_word is None else own_word
    word_span = Span("absent", Tone.RAW) if word is None else quote(word, Tone.RAW, 40)
    whose = () if own_word is None else (Span(" (recorder)", Tone.DIM),)
    return (word_span, *whose, Span(" → ", Tone.DIM), Span(stop.normalized.value, Tone.NORMALIZED))


def tokens(response: ChatResponse) -> str:
    """The output tokens in words, with reasoning tokens separately."""
    usage = response.usage
    if usage is None or usage.output_tokens is None:
        return "tokens not reported"
    thinking = f" ({usage.reasoning_tokens:,} thinking)" if usage.reasoning_tokens else ""
    return f"{count_of(usage.output_tokens, 'token')}{thinking}"


def _call(verdict: Verdict, ran: bool) -> Line:
    glyph, role = glyphs.ADMISSION[verdict.admission]
    name = safe(verdict.call.name or "unnamed", Tone.STRONG, LONGEST)
    word = Span(f"{glyph} {verdict.admission.value.upper()} ", role)
    if verdict.admission is Admission.HELD:
        agent = [(Span(RAN_IT, Tone.ERROR),)] if ran else []
        return join_groups([(word, name), (Span(ending(verdict)),), *agent, (Span("see Calls", Tone.DIM),)])
    return (word, name, safe(f" {verdict.call.arguments or ''}", Tone.DIM, 160))


def ending(verdict: Verdict) -> str:
    """The place where the arguments of a held call end, in words."""
    reading = parse(verdict.call.arguments)
    if reading.shape is ArgumentShape.CUT:
        return f"its arguments end at character {len(verdict.call.arguments or ''):,}: {reading.problem}"
    if verdict.rule == "gate.batch":
        return "its batch is unfinished"
    if reading.shape is ArgumentShape.COMPLETE:
        return f"its arguments parse; {verdict.why.removesuffix(f'; {REMEDY}')}"
    return reading.problem


def _end(turn: Turn) -> list[Line]:
    if not turn.ended and turn.outcome is None:
        return []
    role = ending_role(turn.terminal, turn.outcome or turn.state)
    lines: list[Line] = [(), (Span("ends in ", Tone.DIM), Span(end_words(turn), role))]
    if turn.notice:
        lines.append((safe(turn.notice),))
    return lines

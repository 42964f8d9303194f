"""The first lines of every view (the worst verdict, the counts), the gauges of a turn's limits, the status line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from inspector.report.facts import TurnFacts, View
from inspector.report.lines.glyphs import keyed
from inspector.report.lines.merged import reason
from inspector.report.lines.spans import (
    Line,
    Measure,
    Span,
    Tone,
    clip,
    count_of,
    end_of_line,
    join_groups,
    last_name,
    safe,
    width_of,
    wrap_line,
)
from inspector.report.lines.steps import Outline, role_of
from inspector.report.times_and_costs import turn_cost
from loop_core.turn.limits import Spend
from loop_core.turn.policy import STRICT
from loop_core.turn.state import Turn
from loop_core.turn.trace import Fidelity, Step, limit_usage

ADVICE_KEPT = 60
"""The least width in cells that the advice keeps beside a sentence that does not fit; at most half of the room."""


def verdict(view: View, turn: TurnFacts | None = None, room: int | None = None) -> Line:
    """The verdict line of a turn, by default the worst, cut to `room` cells: word, turn, cause, what to change."""
    turn = turn or view.worst
    if turn is None:
        return (Span("NOTHING READ", Tone.ERROR), Span("  "), safe(view.replay.case.recording.why_empty))
    turn_verdict = turn.verdict
    head = head_of(view, turn)
    dot = Span(" · ", Tone.DIM)
    sentence, advice = safe(turn_verdict.sentence), keyed_advice(turn)
    if room is not None:
        left = room - width_of(head)
        least = min(width_of((dot, *advice)), ADVICE_KEPT, left // 2) if advice else 0
        advice_width = max(least, left - width_of((sentence,))) if advice else 0
        sentence = safe(turn_verdict.sentence, width=max(1, left - advice_width))
        advice = clip(advice, max(1, advice_width - width_of((dot,))))
    return (*head, sentence, dot, *advice) if advice else (*head, sentence)


def head_of(view: View, turn: TurnFacts) -> Line:
    """The beginning of a verdict line: the word, and the turn's number."""
    turn_verdict = turn.verdict
    return (Span(f"{turn_verdict.glyph} {turn_verdict.word}", role_of(turn_verdict)), Span("  "),
            Span(view.place(turn), Tone.STRONG), Span(" · ", Tone.DIM))


def keyed_advice(turn: TurnFacts) -> Line:
    """The advice with its key, which stays visible if the advice is cut; empty if there is none."""
    return keyed(turn.verdict.advice.text, Tone.KEY) if turn.verdict.advice else ()


SHOWS_ALL: Line = (Span(" V shows all", Tone.STRONG),)
"""The end of a cut verdict, which names the key that shows the rest."""
SHORTENED_BY = 4
"""The cells by which the verdict is shortened at each attempt, until it fits its rows."""


def verdict_rows(view: View, turn: TurnFacts | None, width: int, rows: int, measure: Measure) -> list[Line]:
    """The verdict in at most this many rows, the advice on its own row if there is room."""
    if turn is not None and turn.verdict.advice:
        sentence = (*head_of(view, turn), safe(turn.verdict.sentence))
        apart = [row for line in (sentence, (Span("what to change  ", Tone.DIM), *keyed_advice(turn)))
                 for row in wrap_line(line, width, measure)]
        if len(apart) <= rows:
            return apart
    found = wrap_line(verdict(view, turn), width, measure)
    room = width * rows - width_of(SHOWS_ALL)
    while len(found) > rows and room > width:  # rows break at spaces, so they hold less than their width
        found, room = wrap_line((*verdict(view, turn, room), *SHOWS_ALL), width, measure), room - SHORTENED_BY
    return found[:rows]


@lru_cache(maxsize=1)  # for 33,000 turns they take as long as ten key presses
def counts(view: View) -> Line:
    """The number of turns with each verdict, worst first, simulated ones apart, and of complete ones."""
    verdicts = {turn.verdict.count_word: turn.verdict for turn in view.turns}
    each: list[Line] = [
        (Span(f"{number:,} ", Tone.STRONG), Span(f"{verdicts[word].glyph} {word}", role_of(verdicts[word])))
        for word, number in view.counts()
    ]
    recorded = [turn.verdict for turn in view.turns if not turn.verdict.simulated]
    complete = [turn_verdict.word for turn_verdict in recorded if turn_verdict.complete]
    if len(set(complete)) > 1:
        each.append((Span(f"{len(complete):,} of {len(recorded):,} complete", Tone.DIM),))
    return join_groups(each)


FILE = 28
"""The most characters of a file's name; half of them beside the name of a run. A longer name shows its end, which
identifies it better. With the number of inputs, the name fits into half a row of 80 cells."""


def source(paths: Sequence[str], view: View, branch: str, file: str = "") -> Line:
    """The current run, its file (`file`, if there are several), and the inputs that could not be read."""
    run = [safe(f"run {branch}", Tone.STRONG if branch != "original" else Tone.DIM)]
    title = next((input_file.about.title for input_file in view.inputs
                  if input_file.about and input_file.about.title), "")
    file_name = last_name(paths[0]) if paths else "session"
    parts: list[list[Span]] = [run, [safe(title or file_name, Tone.DIM, 60)]]
    if file:
        name = Span(end_of_line(file, FILE if branch == "original" else FILE // 2), Tone.STRONG)
        parts = [[name], *([run] if branch != "original" else [])]
    policy = view.replay.settings.policy
    if policy.name != STRICT.name and policy.name not in branch:
        parts.append([safe(f"policy {policy.name}", Tone.STRONG)])
    if len(view.inputs) > 1:
        parts.append([Span(f"{len(view.inputs):,} inputs", Tone.DIM)])
    if view.error is not None:
        parts.append([safe(view.error, Tone.ERROR)])
    else:
        left = sum(len(input_file.skipped) for input_file in view.inputs)
        if left:
            parts.append([Span(f"{count_of(left, 'entry', 'entries')} skipped", Tone.WARN)])
    return join_groups(parts)


# -- What a turn has spent -------------------------------------------------------------------------------------------
# It shows all output tokens of the turn, and what counts against each of the four continuation limits.

FULL, EMPTY = "▰", "▱"
GAUGE, NAME = 4, 12


def gauges(turn: Turn, width: int) -> list[Line]:
    """The total output, then one line per limit: name, gauge and numbers, condensed in a narrow column."""
    lines: list[Line] = [(Span(f"{'output':<{NAME}}", Tone.KEY), Span(count_of(turn.spend.output_tokens, "token")))]
    rows = limit_usage(turn)
    longest = max(len(f"{used:,} of {limit:,}") for _, _, used, limit in rows if limit is not None)
    between = " of " if NAME + GAUGE + 1 + longest <= width else "/"
    for _, name, used, limit in rows:
        role = _role(used, limit)
        filled, blank = _gauge_cells(used, limit)
        numbers = f" {used:,}{between}{limit:,}" if limit is not None else f" {used:,}, no limit"
        lines.append((
            Span(f"{name:<{NAME}}", Tone.KEY), Span(FULL * filled, role), Span(EMPTY * blank, Tone.RULE),
            Span(" " * (GAUGE - filled - blank)), Span(numbers, role),
        ))
    lines += [(Span(doubt, Tone.DIM),) for doubt in doubts(turn.spend)]
    return lines


def spent_title(view: View, turn: TurnFacts) -> Line:
    """The title of the gauges, with the turn's cost if prices are configured and it is known."""
    title, cost = Span("SPENT", Tone.TITLE), turn_cost(view, turn)
    if cost is None:
        return (title,)
    least = "" if cost.priced == cost.responses else "≥ "
    return title, Span("  "), safe(f"{least}{view.prices.amount_text(cost.amount)}")


def output(spend: Spend) -> str:
    """The turn's output tokens in words, with what is uncertain about them."""
    tokens = count_of(spend.output_tokens, "output token")
    doubt = ", ".join(doubts(spend))
    return f"{tokens} ({doubt})" if doubt else tokens


def doubts(spend: Spend) -> list[str]:
    """Why the count of output tokens is uncertain."""
    found = [f"{spend.tokens_assumed:,} assumed"] if spend.tokens_assumed else []
    if spend.uncounted:
        found.append(f"{count_of(spend.uncounted, 'response')} not counted")
    return found


def _gauge_cells(amount: int, limit: int | None) -> tuple[int, int]:
    """Full and empty cells; a small limit is drawn cell by cell."""
    if limit is None or limit == 0:
        return 0, GAUGE if limit is None else 0
    size = min(limit, GAUGE)
    filled = min(size, amount * size // limit)
    return filled, size - filled


def _role(amount: int, limit: int | None) -> Tone:
    if limit is None or amount == 0:
        return Tone.PLAIN
    return Tone.ERROR if amount >= limit else Tone.WARN if amount * 4 >= limit * 3 else Tone.PLAIN


def limits_line(turn: Turn) -> Line:
    """All four limits: `attempts 2/3 cont_tokens 60% cont_chars 3% repairs 0/1`."""
    return join_groups([_limit_words(name, used, limit) for _, name, used, limit in limit_usage(turn)], " ")


def limits_in_use(turn: Turn) -> list[Line]:
    """The limits of which at least a hundredth is spent, the one nearest to its end first."""
    spent = [(used / limit, _limit_words(name, used, limit)) for _, name, used, limit in limit_usage(turn) if limit]
    return [words for share, words in sorted(spent, key=lambda each: each[0], reverse=True) if share >= 1 / 100]


def _limit_words(name: str, used: int, limit: int | None) -> Line:
    """A limit by its name, with the number that is spent of it, or with the share of a large one."""
    if limit is None:
        amount = f"{used:,}"
    elif name in ("attempts", "repairs"):
        amount = f"{used}/{limit}"
    else:
        amount = f"{min(999, used * 100 // limit)}%"
    return Span(f"{name} ", Tone.DIM), Span(amount, _role(used, limit))


# -- The status line -------------------------------------------------------------------------------------------------
# It shows the cursor's place, the state, the current answer's stop reason and fidelity, and what was spent of the
# limits: of all four if there is room, else of those in use, because single letters ("a0/3 t25%") would not be
# understood.

ESTIMATED = "ESTIMATED"
"""The word after SIMULATED if the place at which a budget cut an answer is only estimated."""
FIDELITY = {Fidelity.RECORDED: Tone.OK, Fidelity.SIMULATED: Tone.WARN, Fidelity.LIVE: Tone.WARN}


def status(outline: Outline, index: int, width: int, filtered: str = "", coming: str = "", live: bool = False) -> Line:
    """The status line of step `index`; parts that do not fit are left out, the stop reason last. `coming` is the text
    about the answer that is arriving; `live`: this screen made the recording."""
    view = outline.view
    if not view.steps:
        return (Span("no steps", Tone.DIM),)
    step = view.effective_step(index)
    turn = outline.block_of(index).turn + 1
    place: list[Line] = [
        (Span("step ", Tone.DIM), Span(f"{index + 1:,}/{len(view.steps):,}", Tone.STRONG)),
        (Span("turn ", Tone.DIM), Span(f"{turn:,}/{len(view.turns):,}", Tone.STRONG)),
        (Span(step.state.value, Tone.HERE),),
    ]
    trust: Line = (fidelity(step, live),)
    if filtered:
        place.append((safe(filtered, Tone.MARK),))
    if coming:
        place.append((Span(coming, Tone.WARN),))
    used, word = limits_in_use(step.turn), _word(step)
    in_use, nearest = [join_groups(used, " ")] if used else [], used[:1]
    spend = step.turn.spend
    out: Line = (Span("out ", Tone.DIM), Span(f"{spend.output_tokens:,}{'+' if spend.uncounted else ''}"))
    cost = [trust] if step.fidelity is Fidelity.LIVE else []  # a live answer costs money, so LIVE is shown at any width
    short_place, no_turn = [part[-1:] for part in place], [place[0], *place[2:]]
    for separator, parts in (
        (" · ", [*place, trust, word, out, limits_line(step.turn)]), (" · ", [*place, trust, word, out, *in_use]),
        (" · ", [*place, trust, word, out, *nearest]), (" · ", [*place, *cost, word, out, *nearest]),
        (" · ", [*place, *cost, word, *nearest]), (" ", [*place, *cost, word, *nearest]),
        (" ", [*no_turn, *cost, word, *nearest]), (" ", [*short_place, *cost, word, *nearest]),
        (" ", [*short_place, *cost, word]),
    ):
        line = join_groups(parts, separator)
        if width_of(line) <= width:
            return line
    room = width - width_of(join_groups([*short_place[:2], *cost, ()], " ")) - width_of(word[1:])
    return join_groups([*short_place[:2], *cost, (*clip(word[:1], max(1, room)), *word[1:])], " ")


def fidelity(step: Step, live: bool = False) -> Span:
    """The fidelity of a step; with `live`, a recorded step counts as LIVE, since this screen recorded it."""
    trust = Fidelity.LIVE if live and step.fidelity is Fidelity.RECORDED else step.fidelity
    estimated = f" {ESTIMATED}" if step.estimated_cut is not None else ""
    return Span(f"{trust.value}{estimated}", FIDELITY[trust])


def _word(step: Step) -> Line:
    """The stop reason of the current answer: the provider's word and the normalized one."""
    evaluation = step.turn.evaluation
    if evaluation is None:
        return (Span("no answer yet", Tone.DIM),)
    return reason(evaluation.response.raw_stop_reason, evaluation.judgement.stop)

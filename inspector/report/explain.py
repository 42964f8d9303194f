"""Writes the text of `inspector explain`, without colours, boxes or cursor movements, for pipes and screen readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence, Set
from itertools import groupby
from typing import NamedTuple

from inspector.config.settings import command, settings_of
from inspector.report.facts import ANSWERED_CALLS, ResponseFacts, TurnFacts, View
from inspector.report.findings import RAN_IT, ran_calls
from inspector.report.lines.glyphs import copies_left_out, simulated_beside
from inspector.report.lines.spans import count_of, inert, one_line, plain
from inspector.report.lines.steps import end_words
from inspector.report.run_answers import branch_files, recut_responses, settings_words
from inspector.report.sentences import format_name
from inspector.report.table_rows import count_rows
from inspector.report.times_and_costs import cost_text, session_cost, time_phrases, took_phrase, turn_cost, turn_times
from inspector.report.turn_rows import TurnRow, name_of, rows_of
from inspector.sessions.copies import files_by_session
from inspector.sessions.file_format import entry_name
from inspector.sessions.intake import input_name
from inspector.sessions.notices import is_own, shared_notices
from inspector.sessions.recording import Input
from inspector.sessions.thread import response_number
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.state import State
from loop_core.turn.trace import Fidelity, Step
from loop_core.values import At, Severity

_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_MOST_NAME = 60


def text(
    view: View, only: Sequence[int] | None = None, read: ReadOptions | None = None, with_bytes: bool = False,
    everything: bool = True, table: int = 0, fold: bool = False,
) -> str:
    """The whole report; with `only`, the report on the responses with these indices and their turns. With `read`, each
    advice is followed by the command that carries it out; `with_bytes` adds to each turn the bytes that decided it, for
    a reader without the recording. Without `everything`, turns that need no attention are only counted. If `table` is
    not 0, a table of the turns comes first, of this width in columns. With `fold`, successive rounds of tools in which
    nothing is remarkable are one line."""
    wanted = None if only is None else frozenset(only)
    first = [*overview(_rows(view, wanted), everything, table), ""] if table else ()
    # The notes on what was read show how reliable one recording is; for many files they would hide the turns.
    inputs, files = [*_read_lines(view, everything or not table)], places_in_files(view)
    turns = _turn_lines(view, files, wanted, read, with_bytes, everything, fold)
    below = [*turns, "", *inputs] if table else [*inputs, *turns]
    counts = not table or wanted is not None  # else the table ends with the same ones
    return "\n".join([*first, *_head(view, files, wanted, with_bytes, counts), *below]) + "\n"


def turn_text(view: View, number: int, read: ReadOptions) -> str:
    """The part of the report about one turn, numbered from 1. Raises `CallerError` if there is no such turn."""
    wanted = frozenset(view.numbered(number).responses)
    return "\n".join([*_turn_lines(view, places_in_files(view), wanted, read, False, True)][1:]) + "\n"


def files_in(view: View) -> int:
    """The number of files with responses in a view."""
    return sum(input_file.responses > 0 for input_file in view.inputs)


def _rows(view: View, only: Set[int] | None) -> list[TurnRow]:
    rows = rows_of(view)
    turns = [row for row, turn in zip(rows, view.turns, strict=False)
             if only is None or not only.isdisjoint(turn.responses)]
    return [*turns, *(rows[len(view.turns):] if only is None else [])]


WIDE = 200
"""The width of the table in columns if it is not printed on a terminal."""


def overview(rows: Sequence[TurnRow], everything: bool, width: int = WIDE) -> Iterator[str]:
    """The table as text, worst first, and the counts of turns by verdict and model."""
    from inspector.report import turn_table as table  # a report of one file has none

    # Without ages, so that the same files always give the same report. Turns are numbered over all files, not within
    # each file as in the app; the heading names the option that takes this number.
    verdict, *others = (column._replace(name="--turn") if column.name == "turn" else column
                        for column in table.columns(0) if column.name not in ("age", "message"))
    listed = [rows[at] for at in table.sorted_rows(rows, verdict)]
    visible_rows = [row for row in listed if everything or row.verdict is None or not row.verdict.clean]
    counts = count_rows(rows)
    every_turn = f"{count_of(counts.turns, 'turn')}{simulated_beside(counts.simulated)}"
    yield f"{every_turn} in {count_of(counts.sessions, 'session')}{copies_left_out(counts.copied)}{counts.unread_words}"
    if visible_rows:
        every = (verdict, table.FILE, *others)
        laid = table.layout(every, width, table.widest_cells(every, visible_rows))
        yield plain([table.heading(laid), *(table.cells_of(row, laid) for row in visible_rows)])
    if len(visible_rows) < len(listed):
        yield f"not listed: {count_of(len(listed) - len(visible_rows), 'turn')} (no attention needed; --all lists them)"
    yield "by verdict: " + " · ".join(
        f"{count:,} {turn_verdict.count_word.lower()}" for turn_verdict, count in counts.verdicts)
    turns = Counter(row.model or "model not recorded" for row in rows if row.verdict is not None)
    attention = Counter(row.model or "model not recorded" for row in rows if row.verdict and not row.verdict.clean)
    yield "by model: " + ", ".join(
        f"{one_line(model, _MOST_NAME)} {count:,}"
        + (f" ({attention[model]:,} need attention)" if attention[model] else "")
        for model, count in turns.most_common())


class ReadOptions(NamedTuple):
    """The inputs of a report, and how they were read."""

    paths: Sequence[str]
    api: str | None = None
    profile: str | None = None


def command_to_try(view: View, turn: TurnFacts, read: ReadOptions) -> str:
    """The command line that repeats a tried run, or sends the request to a live server; empty if there is none."""
    replay, advice = view.replay, turn.verdict.advice
    if advice is None or replay.settings.live is not None:
        return ""
    if advice.set is not None:
        settings = settings_of(advice.set, replay.settings)
        return command(read.paths, settings, read.api, read.profile, replay.since, replay.earlier)
    if not advice.live or replay.since:
        return ""
    settings = settings_of(advice.guess or {}, replay.settings)
    return f"{command(read.paths, settings, read.api, read.profile)} --live --turn {view.number(turn)}"


def _head(
    view: View, files: Sequence[str], only: Set[int] | None, with_bytes: bool, counts: bool,
) -> Iterator[str]:
    # The worst verdict comes first, for a reader who stops after one line.
    yield one_line(view.headline())
    if (worst := view.worst) is not None and (file := files[view.number(worst) - 1]):
        yield f"  file: {one_line(file)}"
    if len(view.turns) > 1 and counts:
        yield "turns: " + " · ".join(f"{count:,} {word.lower()}" for word, count in view.counts())
    cost = session_cost(view)
    if cost is not None:
        yield f"cost: {one_line(cost_text(cost, view.prices))}"
    # Only together with the bytes, which are meant for a reader who did not make the run.
    under = settings_words(view) if with_bytes else ""
    if under:
        yield f"settings of this run: {one_line(under)}"
    if only is not None:
        verb = "matches" if len(only) == 1 else "match"
        yield f"filter: {len(only):,} of {count_of(len(view.responses), 'response')} {verb}"


def _turn_lines(
    view: View, files: Sequence[str], only: Set[int] | None, read: ReadOptions | None, with_bytes: bool,
    everything: bool, fold: bool = False,
) -> Iterator[str]:
    findings: dict[int | None, list[str]] = {}
    for note in view.findings:
        where = f" at {place(note.finding.at)}" if note.finding.at else ""
        line = f"{_WORDS[note.finding.severity]}: {one_line(note.finding.message)} [{note.finding.rule}]{where}"
        findings.setdefault(note.response, []).append(line)
    for turn, file in zip(view.turns, files, strict=True):
        indices = [index for index in turn.responses if only is None or index in only]
        # A filter may leave a turn without any of its responses; then the turn is not part of the report.
        if indices and (everything or not turn.verdict.clean):
            yield ""
            yield from _turn_head(view, turn, file, read)
            yield from _turn_answers(view, turn, indices, findings, fold)
            yield from _deciding_bytes(view, turn) if with_bytes else ()


def places_in_files(view: View) -> list[str]:
    """For each turn, its file and its number in its session, as the app shows them; empty if one file has all turns."""
    if files_in(view) < 2:
        return [""] * len(view.turns)
    return [f"{path}, turn {number:,} of {total:,}" for path, number, total in places_in_sessions(view)]


def places_in_sessions(view: View) -> list[tuple[str, int, int]]:
    """For each turn its file, its number in its session, and the number of turns of that session."""
    paths, files = [view.path_of(turn) for turn in view.turns], files_by_session(view.inputs)
    copies: dict[tuple[str, ...], set[int]] = {}
    for source in view.inputs:
        copies.setdefault(files[source.path], set()).update(source.copies)
    totals = {every: count + len(copies[every]) for every, count in Counter(files[path] for path in paths).items()}
    numbers = {every: iter([number for number in range(1, total + 1) if number not in copies[every]])
               for every, total in totals.items()}
    return [(path, next(numbers[files[path]]), totals[files[path]]) for path in paths]


def _read_lines(view: View, everything: bool) -> Iterator[str]:
    headline = view.headline()  # if nothing was read, it already contains the first error
    shared = {} if everything else shared_notices(source.statements for source in view.inputs)
    without_notice: Counter[str] = Counter()
    for source in view.inputs:
        lines = [*_source_lines(source, headline, shared)]
        if everything or source.error or len(lines) > 1:
            yield from lines
        elif source.format != "folder":
            without_notice[source.format or "nothing"] += 1
    yield from (one_line(each.text) for each in shared.values())
    if without_notice:
        formats = ", ".join(f"{name} {count:,}" for name, count in without_notice.most_common())
        yield (f"files without a notice of their own: {without_notice.total():,} (by format: {formats}; "
               "--all lists them)")
    for path, who, count in branch_files(view):
        yield f"read {one_line(path)}: session ({who}), {count_of(count, 'response')}"


def _source_lines(source: Input, headline: str, shared: Container[tuple[str, bool]]) -> Iterator[str]:
    """What was read of a file, with its notices, except those that other files share."""
    left = len(source.skipped)
    if source.error and not source.responses:
        yield f"not read {one_line(input_name(source.path))}"
    elif source.format == "folder":
        yield f"looked through {one_line(source.path)}: {count_of(left, 'file')} skipped"
    else:
        skipped = f", {count_of(left, 'entry', 'entries')} skipped" if left else ""
        yield (f"read {one_line(source.path)}: {source.format or 'nothing'}, "
               f"{count_of(source.responses, 'response')}{skipped}")
    for why, count in Counter(entry.why for entry in source.skipped).most_common():
        yield f"  skipped {count:,}: {one_line(why)}"
    for notice in source.statements:
        if is_own(notice, shared):
            yield f"  notice: {one_line(notice.text)}"
    if source.masked:
        # the name of a header or a member, which a recording chooses
        names = (f"{count:,} {one_line(name, _MOST_NAME)}" for name, count in sorted(source.masked.items()))
        yield f"  masked: {', '.join(names)}"
    if source.error and source.error not in headline:
        yield f"  error: {one_line(source.error)}"


def _turn_head(view: View, turn: TurnFacts, file: str, read: ReadOptions | None) -> Iterator[str]:
    """The verdict on a turn, its advice, its path through the machine, its spend, its times and its cost."""
    from inspector.report.lines.header import output

    verdict = turn.verdict
    yield f"{view.place(turn)} ({turn.id}): {verdict.word} · {one_line(verdict.sentence)}"
    if file:
        yield f"  file: {one_line(file)}"
    exchange = view.responses[turn.responses[0]].exchange if turn.responses else None
    if exchange is not None and exchange.session:
        abouts = (source.about for source in view.inputs if source.path == exchange.path)
        if exchange.session != name_of(exchange.path, next((each.title for each in abouts if each is not None), "")):
            yield f"  session: {one_line(exchange.session)}"
    if verdict.advice:
        yield f"  what to change: {one_line(verdict.advice.text)}"
        how = command_to_try(view, turn, read) if read is not None else ""
        if how:
            yield f"  {'run it' if verdict.advice.set is not None else 'try it live'}: {one_line(how)}"
            if verdict.advice.set is None:
                yield "  without a key: use --stand-in in place of --live; it makes up the rest"
    yield f"  this loop: {machine_path(view.steps[turn.run.first : turn.run.deciding_step + 1])}"
    spent = turn.spend
    yield f"  ends in {end_words(turn.final_turn)}; continuations {spent.continuations}; {output(spent)}"
    if turn.notice:
        yield f"  notice: {one_line(turn.notice)}"
    times = turn_times(view, turn)
    took = "" if times is None else took_phrase(times)
    if took:
        yield f"  {took}"
    cost = turn_cost(view, turn)
    if cost is not None:
        yield f"  cost {one_line(cost_text(cost, view.prices))}"


def _turn_answers(
    view: View, turn: TurnFacts, indices: Sequence[int], findings: dict[int | None, list[str]], fold: bool
) -> Iterator[str]:
    """The responses of a turn with these indices, the seams between them, and the merged text."""
    live = view.steps[turn.run.first].fidelity is Fidelity.LIVE
    # A filter names responses by their indices, which simulated responses do not have.
    simulated = recut_responses(view, turn) if len(indices) == len(turn.responses) else []
    shown = (*simulated, *(view.responses[index] for index in indices))
    for is_plain, group in groupby(shown, lambda facts: fold and _is_plain_round(facts, findings.get(facts.index, []))):
        part = [*group]
        if is_plain and len(part) >= _FEWEST_FOLDED:
            yield _fold_rounds(part)
            continue
        for facts in part:
            index = facts.index
            yield from _response(facts, findings.get(index, []), ran_calls(turn.findings, index), live)
    for index in indices:
        for where, words in view.responses[index].handovers:
            yield f"  seam inside response {response_number(index)} at character {where}: fallback, {one_line(words)}"
    for seam in turn.joined_text.seams:
        # Text that a seam removed is quoted, so that a reader can check that it was only a repetition.
        left_out = " and ".join(repr(one_line(text, 60)) for text in seam.left_out)
        cut = f", left out {left_out}" if left_out else ""
        yield f"  seam before segment {seam.segment + 1} at character {seam.at}: {seam.why}{cut}"
    if turn.joined_text.text:
        yield "  merged text:"
        # Inert: an answer may contain escape sequences that would act on the reader's terminal.
        yield from (f"    {line}" for line in inert(turn.joined_text.text).split("\n"))


_FEWEST_FOLDED = 3
"""The least number of successive rounds of tools that are folded into one line."""


def _is_plain_round(facts: ResponseFacts, findings: Sequence[str]) -> bool:
    """Whether a response has nothing but calls that are ready and were answered, and no warning."""
    return (facts.recut is None and facts.state is State.EXECUTE_TOOLS and facts.recorded_next == ANSWERED_CALLS
            and all(verdict.admission is Admission.READY for verdict in facts.verdicts)
            and all(line.startswith(_WORDS[Severity.INFO]) for line in findings))


def _fold_rounds(rounds: Sequence[ResponseFacts]) -> str:
    """The line for successive rounds of tools."""
    words = Counter("absent" if facts.judgement.stop.raw is None else f'"{one_line(facts.judgement.stop.raw)}"'
                    for facts in rounds)
    raw = " or ".join(f"{word} ({count:,})" if len(words) > 1 else word for word, count in words.most_common())
    calls = count_of(sum(len(facts.verdicts) for facts in rounds), "call")
    first, last = (response_number(facts.index) for facts in (rounds[0], rounds[-1]))
    return f"  responses {first} to {last}: {calls} READY and answered, raw {raw}; --all shows each response"


def machine_path(steps: Iterable[Step], arrow: str = " > ") -> str:
    """The states of steps in order. A round goes from one request to the next; equal successive rounds are joined."""
    rounds: list[list[str]] = []
    for step in steps:
        if not rounds or step.state is State.REQUEST:
            rounds.append([])
        rounds[-1].append(step.state.value)
    words = []
    for states, equal in groupby(rounds):
        times = sum(1 for _ in equal)
        way = arrow.join(states)
        words.append(way if times == 1 else f"({way}) {times} times")
    return arrow.join(words)


def _deciding_bytes(view: View, turn: TurnFacts) -> Iterator[str]:
    from inspector.report.lines.excerpts import LEGEND, excerpts, text_rows

    for number, excerpt in enumerate(excerpts(view, turn)):
        if number == 0:
            yield f"  deciding bytes. {LEGEND}"
        yield f"    {excerpt.title}, {excerpt.where}:"
        yield from (f"    {row}" for row in text_rows(excerpt.rows))


def _response(facts: ResponseFacts, findings: list[str], ran: Sequence[Verdict], live: bool) -> Iterator[str]:
    exchange, stop = facts.exchange, facts.judgement.stop
    raw = "absent" if stop.raw is None else f'"{one_line(stop.raw)}"'
    detail = f" ({one_line(stop.detail)})" if stop.detail else ""
    mapped = facts.judgement.mapped.normalized.value
    way = stop.normalized.value if mapped == stop.normalized.value else f"{mapped} > {stop.normalized.value}"
    # A simulated answer is in no file: the path and entry of its exchange are those of the answer that it replaces.
    part = entry_name("", exchange.entry)
    where = f"{one_line(exchange.path)} {part}" if facts.recut is None else f"in no file: {facts.why}"
    yield f"  {facts.name} ({where}): {format_name(exchange)}, raw {raw} > {way}{detail}"
    yield ("    evidence: "
           f"{'; '.join(f'{evidence.rule} at {place(evidence.at)}' for evidence in facts.evidence) or 'none'}")
    times = time_phrases(exchange)
    if times:
        yield f"    times: {one_line(', '.join(times))}"
    usage = exchange.response.usage
    if usage is not None and usage.output_tokens is not None:
        reasoning = f", of which reasoning {usage.reasoning_tokens:,}" if usage.reasoning_tokens else ""
        cap = "" if exchange.cap is None else f", cap {exchange.cap:,}"
        yield f"    tokens: {usage.output_tokens:,} out{reasoning}{cap}"
    # Only this text needs the module: `explain --json` starts 4 ms sooner without it.
    from inspector.report.lines.calls import SAYS, Stance, names_by_fate, opinions_of, stances

    every_stance: Sequence[Stance] = ()
    for verdict in facts.verdicts:
        call = verdict.call
        name = one_line(call.name) or "(no name)"
        agent = f" ({RAN_IT})" if verdict in ran else ""
        yield f"    call {name}: {verdict.admission.value.upper()}{agent}, {one_line(verdict.why)}"
        if verdict.admission is not Admission.READY:
            yield f"      received: {'absent' if call.arguments is None else one_line(call.arguments, 200)}"
            every_stance = every_stance or stances(facts.exchange, facts.judgement, facts.verdicts)
            fates = names_by_fate(opinions_of(every_stance, verdict))
            yield "      policies: " + "; ".join(f"{SAYS[fate]}: {', '.join(names)}" for fate, names in fates)
    state = facts.state.value if facts.state else "not reached"
    # In a live run, and for a simulated answer, no recorded agent has received the answer.
    yield f"    this loop then: {state}" + (
        "" if live or facts.is_made else f"; the recorded agent: {facts.recorded_next}")
    yield from (f"    {line}" for line in findings)


def place(at: At | None) -> str:
    """A place in an exchange, in words."""
    if at is None:
        return "the whole response"
    span = f" bytes {at.start:,} to {at.end:,}" if at.start is not None and at.end is not None else ""
    return f"{at.part.value}{span}{f' {one_line(at.pointer)}' if at.pointer else ''}"  # it names members of the body

"""A session as a document: headings, lines, tables and quotations, told once for Markdown and HTML alike.

Texts here are as they were recorded, well-known keys masked once more; making them harmless for its own syntax is each
renderer's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.text import place
from inspector.sessions import redact
from loop_core.frozen import frozen
from loop_core.gate import Admission
from loop_core.values import Severity


@frozen
class Heading:
    """A heading; 1 is the title."""

    level: int
    text: str


@frozen
class Said:
    """A paragraph; `grave` is how much it matters."""

    text: str
    grave: Severity = Severity.INFO


@frozen
class Items:
    """A list."""

    texts: tuple[str, ...]


@frozen
class Table:
    """Rows below a head."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@frozen
class Quote:
    """Text of a transcript, as it stands."""

    text: str
    label: str = ""


Block = Heading | Said | Items | Table | Quote


def blocks(view: View, turns: Sequence[int] | None = None) -> Iterator[Block]:
    """The document of a session, or of the turns with these indices."""
    yield Heading(1, "Loop Inspector report")
    worst = view.worst
    yield Said(view.headline(), worst.verdict.severity if worst is not None else Severity.ERROR)
    if len(view.turns) > 1:
        yield Said("turns: " + ", ".join(f"{count} {word.lower()}" for word, count in view.counts()))
    read = [given for given in view.inputs if given.path != "-"]
    if read:
        yield Table(("file", "format", "responses", "skipped"), tuple(
            (given.path, given.format or "nothing", f"{given.responses:,}", f"{len(given.skipped):,}")
            for given in read))
    notices = [f"{given.path}: {said}" for given in view.inputs for said in (*given.notices, given.error) if said]
    if notices:
        yield Items(tuple(notices))
    for number, turn in enumerate(view.turns, 1):
        if turns is None or number - 1 in turns:
            yield from _turn(view, number, turn)


def _turn(view: View, number: int, turn: TurnFacts) -> Iterator[Block]:
    verdict = turn.verdict
    yield Heading(2, f"Turn {number}: {verdict.word}")
    yield Said(verdict.sentence, verdict.severity)
    if verdict.advice:
        yield Said(f"What to change: {verdict.advice.text}")
    path = [step.state.value for step in view.steps[turn.run.first : turn.run.decided + 1]]
    yield Said(f"Our machine: {' → '.join(path)}; ends in {turn.final_state.value}, {turn.terminal}")
    if turn.ended.notice:
        yield Said(turn.ended.notice, Severity.WARNING)
    yield Table(
        ("response", "raw", "mapped", "effective", "tokens out", "evidence", "then", "the recorded agent"),
        tuple(_response(view.responses[index]) for index in turn.responses))
    for index in turn.responses:
        yield from _calls(view.responses[index])
    if turn.merged.text:
        yield Heading(3, "Merged text")
        yield from _merged(turn)
    found = [f"{note.finding.severity.value}: {note.finding.message} [{note.finding.rule}]"
             for note in view.findings if note.turn == turn.id]
    if found:
        yield Heading(3, "Findings")
        yield Items(tuple(redact.text(each) for each in found))


def _response(facts: ResponseFacts) -> tuple[str, ...]:
    stop, response = facts.judged.stop, facts.exchange.response
    used = response.usage.output_tokens if response.usage else None
    cap = facts.exchange.request.max_tokens if facts.exchange.request else None
    tokens = "not reported" if used is None else f"{used:,}"
    return (
        f"{facts.index} ({facts.exchange.api}, {facts.exchange.profile.name})",
        "absent" if stop.raw is None else f'"{stop.raw}"',
        facts.judged.mapped.normalized.value,
        stop.normalized.value + (f" ({stop.detail})" if stop.detail else ""),
        tokens + (f" of {cap:,}" if cap is not None else ""),
        "; ".join(f"{seen.rule} at {place(seen.at)}" for seen in facts.evidence) or "none",
        facts.state.value if facts.state else "not reached",
        facts.recorded_next,
    )


def _calls(facts: ResponseFacts) -> Iterator[Block]:
    for verdict in facts.verdicts:
        word, name = verdict.admission.value.upper(), verdict.call.name or "unnamed"
        grave = Severity.INFO if verdict.admission is Admission.READY else Severity.ERROR
        yield Said(f"{word} call {name} in response {facts.index}: {verdict.why}", grave)
        yield Quote(redact.text(verdict.call.arguments or ""), "arguments as received")


def _merged(turn: TurnFacts) -> Iterator[Block]:
    text, seams = turn.merged.text, turn.merged.seams
    starts = [0, *(seam.at for seam in seams), len(text)]
    if redact.text(text) != text:  # a key that lies across a seam: masked in the whole, which has no parts then
        yield Quote(redact.text(text), f"{len(seams) + 1} segments")
        return
    for number, (start, end) in enumerate(pairwise(starts)):
        if number:
            seam = seams[number - 1]
            left_out = [text for text in (seam.cut, *(text for _, text in seam.gone)) if text]
            cut = f"; left out: {' and '.join(map(repr, left_out))}" if left_out else ""
            yield Said(f"Seam: {seam.why or seam.decision.value}{cut}")
        yield Quote(text[start:end], f"segment {number + 1}")

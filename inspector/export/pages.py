"""Renders a session as a document of blocks in Markdown or HTML; each renderer escapes texts for its own syntax."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from inspector.report.explain import machine_path, place, places_in_files
from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.findings import RAN_IT, ran_calls
from inspector.report.lines.excerpts import LEGEND, excerpts, text_rows
from inspector.report.lines.spans import count_of, escape_markdown, inert
from inspector.report.lines.steps import end_words
from inspector.report.run_answers import branch_files, fidelity_of, recut_responses, settings_words
from inspector.report.sentences import format_name
from inspector.report.table import html_page
from inspector.report.times_and_costs import cost_text, time_phrases, took_phrase, turn_cost, turn_times
from inspector.sessions import redact
from inspector.sessions.notices import is_own, shared_notices
from inspector.sessions.thread import response_number
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.trace import Fidelity
from loop_core.values import Severity


class Heading(NamedTuple):
    """A heading; 1 is the title."""

    level: int
    text: str
    name: str = ""
    """The name by which `Links` lead to it."""


class Links(NamedTuple):
    """A list of texts that lead to headings: the name and the text of each."""

    links: tuple[tuple[str, str], ...]


class Paragraph(NamedTuple):
    """A paragraph; with its severity."""

    text: str
    severity: Severity = Severity.INFO


class Items(NamedTuple):
    """A list."""

    texts: tuple[str, ...]


class TableBlock(NamedTuple):
    """Rows with a header."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Quote(NamedTuple):
    """Verbatim text of a transcript."""

    text: str
    label: str = ""


class QuotedBytes(NamedTuple):
    """Bytes of a body with offsets, one row each, and which rows decided."""

    rows: tuple[tuple[str, bool], ...]
    label: str


Block = Heading | Links | Paragraph | Items | TableBlock | Quote | QuotedBytes


def blocks(view: View, turns: Sequence[int] | None = None) -> Iterator[Block]:
    """The document of a session, or of the turns with these indices."""
    yield Heading(1, "Loop Inspector report")
    worst = view.worst
    yield Paragraph(view.headline(), worst.verdict.severity if worst is not None else Severity.ERROR)
    if len(view.turns) > 1:
        yield Paragraph("turns: " + " · ".join(f"{count:,} {word.lower()}" for word, count in view.counts()))
        yield from _links(view, turns)
    under = settings_words(view)
    if under:
        yield Paragraph(f"Settings of this run: {under}")
    read = [(source.path, source.format or "nothing", f"{source.responses:,}", f"{len(source.skipped):,}")
            for source in view.inputs if source.path != "-"]
    read += [(path, f"session ({who})", f"{count:,}", "0") for path, who, count in branch_files(view)]
    if read:
        yield TableBlock(("file", "format", "responses", "skipped"), tuple(read))
    shared = shared_notices(source.statements for source in view.inputs)
    notices = [text for source in view.inputs for text, notice in zip(source.notices, source.statements, strict=True)
               if is_own(notice, shared)]
    errors = [source.error for source in view.inputs if source.error]
    if notices or shared or errors:
        yield Items((*errors, *notices, *(each.text for each in shared.values())))
    for number, (turn, file) in enumerate(zip(view.turns, places_in_files(view), strict=True), 1):
        if turns is None or number - 1 in turns:
            yield from _turn(view, number, turn, file)


def _links(view: View, turns: Sequence[int] | None) -> Iterator[Block]:
    """Links to the turns that need attention, the worst first, if the document has several turns."""
    bad = [(turn.verdict.rank, number, turn) for number, turn in enumerate(view.turns, 1)
           if not turn.verdict.clean and (turns is None or number - 1 in turns)]
    if bad and (turns is None or len(turns) > 1):
        yield Links(tuple((f"turn-{number}", f"Turn {number:,}: {turn.verdict.word} · {turn.verdict.sentence}")
                          for _, number, turn in sorted(bad, key=lambda row: row[:2])))


def _turn(view: View, number: int, turn: TurnFacts, file: str) -> Iterator[Block]:
    verdict = turn.verdict
    yield Heading(2, f"Turn {number:,}: {verdict.word}", f"turn-{number}")
    yield Paragraph(verdict.sentence, verdict.severity)
    if file:
        yield Paragraph(f"File: {file}")
    if verdict.advice:
        yield Paragraph(f"What to change: {verdict.advice.text}")
    path = machine_path(view.steps[turn.run.first : turn.run.deciding_step + 1], " → ")
    yield Paragraph(f"This loop: {path}; ends in {end_words(turn.final_turn)}")
    if turn.notice:
        yield Paragraph(turn.notice, Severity.WARNING)
    times, cost = turn_times(view, turn), turn_cost(view, turn)
    phrases = [took_phrase(times) if times is not None else "", f"cost {cost_text(cost, view.prices)}" if cost else ""]
    if any(phrases):
        yield Paragraph("; ".join(each for each in phrases if each))
    answers = [*recut_responses(view, turn), *(view.responses[index] for index in turn.responses)]
    yield TableBlock(
        ("response", "raw", "mapped", "effective", "tokens out", "evidence", "then", "the recorded agent"),
        tuple(_response(facts) for facts in answers))
    timed = [(index, time_phrases(view.responses[index].exchange)) for index in turn.responses]
    lines = tuple(f"response {response_number(index)}: {', '.join(phrases)}" for index, phrases in timed if phrases)
    if lines:
        yield Items(lines)
    for facts in answers:
        yield from _calls(facts, ran_calls(turn.findings, facts.index))
    yield from _deciding_bytes(view, turn)
    if turn.joined_text.text:
        fidelity = fidelity_of(view, turn)
        yield Heading(3, "Merged text" + ("" if fidelity is Fidelity.RECORDED else f", {fidelity.value}"))
        yield from _answer_blocks(turn)
    found = [f"{note.finding.severity.value}: {note.finding.message} [{note.finding.rule}]"
             for note in view.findings if note.turn == turn.id]
    if found:
        yield Heading(3, "Findings")
        yield Items(tuple(redact.text(each) for each in found))


def _response(facts: ResponseFacts) -> tuple[str, ...]:
    stop, response = facts.judgement.stop, facts.exchange.response
    used = response.usage.output_tokens if response.usage else None
    cap = facts.exchange.cap
    tokens = "not reported" if used is None else f"{used:,}"
    name = facts.name if facts.is_made else response_number(facts.index)
    return (
        f"{name} ({format_name(facts.exchange)}, {facts.exchange.profile.name})",
        "absent" if stop.raw is None else f'"{stop.raw}"',
        facts.judgement.mapped.normalized.value,
        stop.normalized.value + (f" ({stop.detail})" if stop.detail else ""),
        tokens + (f" of {cap:,}" if cap is not None else ""),
        "; ".join(f"{evidence.rule} at {place(evidence.at)}" for evidence in facts.evidence) or "none",
        facts.state.value if facts.state else "not reached",
        facts.recorded_next,
    )


def _calls(facts: ResponseFacts, ran: Sequence[Verdict]) -> Iterator[Block]:
    for verdict in facts.verdicts:
        word, name = verdict.admission.value.upper(), verdict.call.name or "unnamed"
        severity = Severity.INFO if verdict.admission is Admission.READY else Severity.ERROR
        agent = f" ({RAN_IT})" if verdict in ran else ""
        yield Paragraph(f"{word} call {name} in {facts.name}{agent}: {verdict.why}", severity)
        yield Quote(redact.text(verdict.call.arguments or ""), "arguments as received")


def _deciding_bytes(view: View, turn: TurnFacts) -> Iterator[Block]:
    for number, excerpt in enumerate(excerpts(view, turn)):
        if number == 0:
            yield Heading(3, "The deciding bytes")
            yield Paragraph(LEGEND)
        rows = zip(text_rows(excerpt.rows), (row.deciding for row in excerpt.rows), strict=True)
        yield QuotedBytes(tuple(rows), f"{excerpt.title} · {excerpt.where}")


def _answer_blocks(turn: TurnFacts) -> Iterator[Block]:
    text, seams = turn.joined_text.text, turn.joined_text.seams
    starts = [0, *(seam.at for seam in seams), len(text)]
    if redact.text(text) != text:  # a key may cross a seam, so the whole text is masked instead of its parts
        yield Quote(redact.text(text), count_of(len(seams) + 1, "segment"))
        return
    for number, (start, end) in enumerate(pairwise(starts)):
        if number:
            seam = seams[number - 1]
            left_out = " and ".join(map(repr, seam.left_out))
            cut = f"; left out: {left_out}" if left_out else ""
            yield Paragraph(f"Seam: {seam.why or seam.decision.value}{cut}")
        yield Quote(text[start:end], f"segment {number + 1}")


# -- The document as one HTML page -----------------------------------------------------------------------------------
# It has no script, loads nothing, and has headings and tables that a screen reader can navigate. Every text is escaped,
# and a content-security policy limits the effect of a mistake.

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fdfdfb; --dim: #5c6773; --rule: #d5dae0;
  --quote: #f1f3f5; --bad: #a1190f; --warn: #7a4f00; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #dde3ea; --paper: #14181d; --dim: #98a3af;
  --rule: #333c46; --quote: #1e242b; --bad: #ff8f85; --warn: #f0c05a; } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; border-top: 1px solid var(--rule);
  padding-top: 1rem; } h3 { font-size: 1rem; }
a { color: inherit; }
.error { color: var(--bad); font-weight: 600; } .warning { color: var(--warn); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .875rem; }
th, td { border-bottom: 1px solid var(--rule); padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; }
th { color: var(--dim); font-weight: 600; }
figure { margin: .8rem 0; } figcaption { color: var(--dim); font-size: .8rem; }
pre span, pre b { display: block; padding-left: 14ch; text-indent: -14ch; word-break: break-all; }
pre b { color: var(--bad); }
@media (max-width: 40rem) { pre span, pre b { padding-left: 4ch; text-indent: -6ch; } }
@media print { :root { color-scheme: light; font-size: 12px; } body { margin: 0; font-size: 12px; }
  tr, figure { break-inside: avoid; } h2, h3, figcaption { break-after: avoid; } }
pre { margin: .2rem 0; padding: .7rem .9rem; background: var(--quote); white-space: pre-wrap; overflow-wrap: anywhere;
  font: .875rem/1.5 ui-monospace, monospace; }
"""


def html(blocks: Iterable[Block]) -> str:
    """The document as an HTML page."""
    body = "\n".join(_html_block(block) for block in blocks)
    return html_page("Loop Inspector report", STYLE, f"<main>\n{body}\n</main>")


def _text(text: str) -> str:
    return escape(inert(text), quote=True)  # the result is also safe within an attribute


def _cells(tag: str, row: Iterable[str]) -> str:
    return "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in row)


def _html_block(block: Block) -> str:
    if isinstance(block, Heading):
        name = f' id="{block.name}"' if block.name else ""
        return f"<h{block.level}{name}>{_text(block.text)}</h{block.level}>"
    if isinstance(block, Links):
        rows = "".join(f'<li><a href="#{name}">{_text(text)}</a></li>' for name, text in block.links)
        return f"<ul>{rows}</ul>"
    if isinstance(block, Paragraph):
        return f'<p class="{block.severity.value}">{_text(block.text)}</p>'
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{_text(text)}</li>' for text in block.texts)}</ul>"
    if isinstance(block, TableBlock):
        rows = "".join(f"<tr>{_cells('td', row)}</tr>" for row in block.rows)
        return (f'<div class="wide"><table><thead><tr>{_cells("th", block.head)}</tr></thead>'
                f"<tbody>{rows}</tbody></table></div>")
    if isinstance(block, QuotedBytes):
        marks = (("b" if deciding else "span", row) for row, deciding in block.rows)
        text = "".join(f"<{mark}>{_text(row)}\n</{mark}>" for mark, row in marks)
        return f"<figure><figcaption>{_text(block.label)}</figcaption><pre>\n{text}</pre></figure>"
    assert isinstance(block, Quote)  # noqa: S101 - the last of the union
    # A parser drops the line break after <pre>, so an extra one keeps a line break at the beginning of the text.
    return f"<figure><figcaption>{_text(block.label)}</figcaption><pre>\n{_text(block.text)}</pre></figure>"


# -- The document as Markdown ----------------------------------------------------------------------------------------
# A transcript's text is in fences that it cannot close, or is escaped.

_GRAVE = {Severity.ERROR: "**✖** ", Severity.WARNING: "**!** ", Severity.INFO: ""}


def markdown(blocks: Iterable[Block]) -> str:
    """The document as Markdown."""
    return "\n\n".join(_markdown_block(block) for block in blocks) + "\n"


def fence_text(text: str) -> str:
    """`text` in a fence that is longer than any run of backticks in it."""
    plain = inert(text)
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * max(3, longest + 1)  # CommonMark: only a fence of at least this length ends it
    return f"{fence}text\n{plain}\n{fence}"


def _markdown_block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {escape_markdown(block.text)}"
    if isinstance(block, Links):  # which names a heading has depends on who renders the Markdown
        return "\n".join(f"- {escape_markdown(text)}" for _, text in block.links)
    if isinstance(block, Paragraph):
        return _GRAVE[block.severity] + escape_markdown(block.text)
    if isinstance(block, Items):
        return "\n".join(f"- {escape_markdown(text)}" for text in block.texts)
    if isinstance(block, TableBlock):
        head = [f"| {' | '.join(block.head)} |", f"|{' --- |' * len(block.head)}"]
        return "\n".join([*head, *(f"| {' | '.join(escape_markdown(cell) for cell in row)} |" for row in block.rows)])
    if isinstance(block, QuotedBytes):
        return f"{escape_markdown(block.label)}:\n\n" + fence_text("\n".join(row for row, _ in block.rows))
    assert isinstance(block, Quote)  # noqa: S101 - the last of the union
    return (f"{escape_markdown(block.label)}:\n\n" if block.label else "") + fence_text(block.text)

"""Statistics of how turns ended, by model, by agent and by day, with the tokens of lost turns; as text, JSON, CSV and
HTML.

A turn is lost if its verdict is an error: its answer was cut, broken or empty, or one of its calls was held, or run
although it was cut. A turn that was filtered, or whose end is unknown, is neither complete nor lost. Simulated turns
and copies of turns are only counted separately. The HTML page is one file without scripts and external resources.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from inspector.check.reports import Report, TurnEnd
from inspector.report.lines.spans import count_of, one_line
from inspector.report.table import PAGE_STYLE, Column, Table, html_page, wide

SCHEMA = "loop-inspector/stats/1"
UNKNOWN = "not recorded"
BAR = 30
"""The width of the longest bar in a terminal, in columns."""


class GroupRow(NamedTuple):
    """The turns of one group: a model, an agent, or a day."""

    name: str
    turns: int
    complete: int
    lost: int
    output: int
    """The output tokens of the group's answers that have a token count."""
    lost_output: int
    endings: Mapping[str, int]
    """Verdict -> number of turns, the most frequent verdict first."""


DIMENSIONS: Mapping[str, Callable[[TurnEnd], str]] = {
    "ending": lambda turn: turn.verdict, "model": lambda turn: turn.model, "agent": lambda turn: turn.agent,
    "day": lambda turn: turn.day,
}
COUNTS: Table[GroupRow] = Table((
    Column("turns", lambda row: row.turns), Column("complete", lambda row: row.complete),
    Column("lost", lambda row: row.lost), Column("output_tokens", lambda row: row.output),
    Column("lost_tokens", lambda row: row.lost_output),
))
"""The columns with counts: JSON has them for all turns, CSV for each group."""
CSV: Table[tuple[str, str, GroupRow]] = Table((
    Column("by", lambda row: row[0]), Column("name", lambda row: row[1]), Column("ending", lambda row: row[2].name),
    *(column.of(lambda row: row[2]) for column in COUNTS.columns),
))
"""The columns of the CSV file: the dimension, the group, an ending, and the number of its turns with this ending."""


def groups(turns: Sequence[TurnEnd], dimension: str) -> list[GroupRow]:
    """The groups of one dimension: days in order, others by frequency."""
    rows = [_row(name, group) for name, group in _by_name(turns, dimension).items()]
    return sorted(rows, key=(lambda row: row.name) if dimension == "day" else (lambda row: (-row.turns, row.name)))


def _row(name: str, turns: Sequence[TurnEnd]) -> GroupRow:
    lost = [turn for turn in turns if turn.is_lost]
    return GroupRow(name, len(turns), sum(turn.complete for turn in turns), len(lost),
                    sum(turn.output for turn in turns), sum(turn.output for turn in lost),
                    dict(Counter(turn.verdict for turn in turns).most_common()))


def document(report: Report) -> dict[str, Any]:
    """The statistics as plain values."""
    turns = report.recorded_turns
    whole = _row("all", turns)
    return {
        "schema": SCHEMA, "files": len(report.files), "copied": report.copy_count,
        "simulated": report.simulated_count, **COUNTS.values(whole),
        "uncounted_answers": sum(turn.uncounted for turn in turns),
        **{f"by_{name}": [row._asdict() for row in groups(turns, name)] for name in DIMENSIONS},
    }


def as_json(report: Report) -> str:
    """The statistics as JSON text."""
    return json.dumps(document(report), indent=1) + "\n"


def as_csv(report: Report) -> str:
    """The statistics as CSV: a row for each group and ending."""
    return CSV.csv((dimension, name, row) for dimension in ("model", "agent", "day")
                   for name, group in sorted(_by_name(report.recorded_turns, dimension).items())
                   for row in groups(group, "ending"))


def _by_name(turns: Sequence[TurnEnd], dimension: str) -> dict[str, list[TurnEnd]]:
    found: dict[str, list[TurnEnd]] = {}
    for turn in turns:
        found.setdefault(DIMENSIONS[dimension](turn) or UNKNOWN, []).append(turn)
    return found


def _totals(report: Report, whole: GroupRow) -> str:
    turns = f"{count_of(whole.turns, 'turn')}{report.not_counted}"
    return (f"{turns} in {count_of(len(report.files), 'file')}: {whole.complete:,} complete, "
            f"{whole.lost:,} lost, {whole.turns - whole.complete - whole.lost:,} neither; {whole.output:,} output "
            f"tokens, {whole.lost_output:,} of them in lost turns")


def text(report: Report) -> str:
    """The statistics with bars, for a terminal."""
    turns = report.recorded_turns
    whole = _row("all", turns)
    lines = [f"{_totals(report, whole)}{_share(whole.lost_output, whole.output)}", ""]
    lines += _bars("how they ended", [(row.name, row.turns, "") for row in groups(turns, "ending")])
    for dimension in ("model", "agent", "day"):
        lines += _bars(f"lost turns, by {dimension}", [
            (row.name, row.lost, f"of {row.turns:,}{_share(row.lost, row.turns)}") for row in groups(turns, dimension)])
    lines += _bars("output tokens of lost turns, by model", [
        (row.name, row.lost_output, f"of {row.output:,}{_share(row.lost_output, row.output)}")
        for row in groups(turns, "model")])
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    if not whole:
        return ""
    near = {0: "under 1", 100: "over 99"} if 0 < part < whole else {}  # 0 % means none, and 100 % all
    percent = round(part * 100 / whole)
    return f" ({near.get(percent, percent)} %)"


def _bars(title: str, rows: Sequence[tuple[str, int, str]]) -> list[str]:
    if not rows:
        return []
    most = max(count for _, count, _ in rows) or 1
    width = min(32, max(len(one_line(name)) for name, _, _ in rows))
    return [title, *(
        f"  {one_line(name, 32):<{width}}  {'█' * max(count * BAR // most, 1 if count else 0):<{BAR}} {count:,} {more}"
        .rstrip() for name, count, more in rows), ""]


_COLOURS = ("#2f855a", "#c53030", "#b7791f", "#6b46c1", "#2b6cb0", "#718096")
"""The colours of complete turns, frequent other endings and the rest, with a contrast of 3:1 to white and to the next.
"""
_STYLE = (
    f"{PAGE_STYLE}body{{max-width:60rem}}h2{{margin-top:2.5rem}}table{{border-collapse:collapse}}"
    "td,th{padding:.15rem .8rem .15rem 0;text-align:left}td+td,th+th{text-align:right}"
    ".key i{display:inline-block;width:.8em;height:.8em;margin:0 .4em 0 1em}"
)


def page(report: Report) -> str:
    """An HTML page with the charts, each with its numbers in a table below."""
    turns = report.recorded_turns
    bad = Counter(turn.verdict for turn in turns if not turn.complete)
    order = [name for name, _ in bad.most_common(len(_COLOURS) - 2)]  # the endings that have their own colour
    parts = [
        f"<h1>How turns ended</h1><p>{_totals(report, _row('all', turns))}.</p>",
        _legend(order),
    ]
    for title, dimension in (("Endings over days", "day"), ("Models side by side", "model"), ("Agents", "agent")):
        rows = groups(turns, dimension)
        split = {name: _split(group, order) for name, group in _by_name(turns, dimension).items()}
        bars = _stacks(title, [(row.name, [*zip(_COLOURS, split[row.name], strict=True)], row.turns) for row in rows])
        parts.append(f"<h2>{title}</h2>{wide(bars)}{wide(_table(rows))}")
    tokens = [(row.name, [(_COLOURS[1], row.lost_output), (_COLOURS[0], row.output - row.lost_output)], row.lost_output)
              for row in groups(turns, "model")]
    parts.append(f"<h2>Output tokens, those of lost turns in red</h2>{wide(_stacks('Output tokens by model', tokens))}")
    return html_page("How turns ended", _STYLE, "".join(parts))


def _split(turns: Sequence[TurnEnd], order: Sequence[str]) -> list[int]:
    """The turns of a group by colour: complete, each named ending, and the rest."""
    others = Counter(turn.verdict for turn in turns if not turn.complete)
    named = [others[name] for name in order]
    return [len(turns) - others.total(), *named, *[0] * (len(_COLOURS) - 2 - len(named)), others.total() - sum(named)]


def _legend(order: Sequence[str]) -> str:
    names = ["complete", *(name.lower() for name in order)]
    colours = [*_COLOURS[: len(names)], _COLOURS[-1]]
    return '<p class="key">' + "".join(
        f'<i style="background:{colour}"></i>{escape(name)}' for colour, name in zip(
            colours, [*names, "other"], strict=True)) + "</p>"


def _stacks(title: str, rows: Sequence[tuple[str, Sequence[tuple[str, int]], int]]) -> str:
    """A horizontal bar for each row: its name, colours with their counts, and the number beside the bar."""
    most = max((sum(count for _, count in counts) for _, counts, _ in rows), default=0) or 1
    height = 26 * len(rows) + 6
    drawn = []
    for at, (name, counts, beside) in enumerate(rows):
        x, y = 190.0, 26 * at + 4
        drawn.append(f'<text x="182" y="{y + 14}" text-anchor="end" font-size="12">{_label(name)}</text>')
        for colour, count in counts:
            width = 500 * count / most
            if count:
                drawn.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="18" fill="{colour}">'
                             f"<title>{_label(name)}: {count:,}</title></rect>")
            x += width
        drawn.append(f'<text x="{x + 6:.1f}" y="{y + 14}" font-size="12">{beside:,}</text>')
    return (f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 760 {height}" width="760" height="{height}">'
            f"{''.join(drawn)}</svg>")


def _label(name: str) -> str:
    return escape(one_line(name, 26))


def _table(rows: Sequence[GroupRow]) -> str:
    body = "".join(
        f"<tr><td>{escape(one_line(row.name, 80))}</td><td>{row.turns:,}</td><td>{row.complete:,}</td>"
        f"<td>{row.lost:,}</td><td>{row.output:,}</td><td>{row.lost_output:,}</td></tr>" for row in rows)
    return ("<table><tr><th></th><th>turns</th><th>complete</th><th>lost</th><th>output tokens</th>"
            f"<th>of those lost</th></tr>{body}</table>")


FORMS: Mapping[str, Callable[[Report], str]] = {"text": text, "json": as_json, "csv": as_csv, "html": page}

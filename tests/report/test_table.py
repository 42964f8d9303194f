"""A table's columns are declared once: CSV, JSON and what is drawn say the same under the same names."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import NamedTuple

from inspector.report.lines.spans import Span, text_of
from inspector.report.table import Column, Table, attributes, html_page, side_by_side
from inspector.whatif.grid_report import ENDS, as_csv, csv_table, document
from inspector.whatif.policies_lines import CELLS, values
from tests.whatif.test_tune_report import FIRST, tune_files


class Server(NamedTuple):
    name: str
    tokens: int | None
    fast: bool = False


TABLE: Table[Server] = Table((
    Column("name", lambda row: row.name, lambda row: (Span(row.name),), most=5),
    *attributes(("tokens",), lambda row: row),
    Column("fast", lambda row: row.fast, in_csv=False),
))


def test_csv_and_json_hold_the_same_values():
    rows = [Server("vllm", 7), Server("=cmd()", None, fast=True), Server("two\nlines", 0)]
    read = list(csv.DictReader(io.StringIO(TABLE.csv(rows))))
    assert [TABLE.values(row) for row in rows] == [row._asdict() for row in rows]
    assert read == [{"name": "vllm", "tokens": "7"}, {"name": "'=cmd()", "tokens": ""},
                    {"name": "two⏎lines", "tokens": "0"}], "text is inert, and no formula"


def test_a_column_over_a_part_of_a_row():
    name = TABLE.columns[0].of(lambda pair: pair[1])
    assert name.value((0, Server("vllm", 7))) == "vllm"
    assert text_of(name.cell((0, Server("vllm", 7)))) == "vllm"


def test_cells_stand_side_by_side_in_their_sizes():
    name = TABLE.columns[0]
    assert name.size([Server("ab", 1)]) == len("name")
    assert name.size([Server("a long name", 1)]) == 5
    line = side_by_side([(Span("a long name"),), (Span("7"),)], [5, 3])
    assert text_of(line) == "a lo…  7"


def test_csv_holds_no_credential_of_a_file_name():
    key = f"ghp_{'a1B2' * 9}"
    table = Table((Column("path", lambda row: row),))
    assert key not in table.csv([f"runs/{key}.har"])
    assert table.csv(["runs/a.har"]) == "path\nruns/a.har\n"


def test_a_credential_that_is_masked_in_csv_takes_no_other_field_with_it():
    table = Table((Column("path", lambda row: row), Column("word", lambda row: f"ghp_{'a1B2' * 9}"),
                   Column("turn", lambda row: 7)))
    (_, (path, word, turn)) = csv.reader(table.csv(["Cookie: a=b; c=d"]).splitlines())
    assert (path, word[:8], turn) == ("Cookie: a=b; c=d", "[masked:", "7")


def test_tune_says_the_same_of_an_end_in_csv_and_in_json():
    made = tune_files("attempts=4,5", "tokens=100,1000")
    told = json.loads(json.dumps(document(made)))
    rows = list(csv.DictReader(io.StringIO(as_csv(made))))
    cells = [["" if value is None else str(value) for value in cell["values"]] for cell in told["cells"]]
    assert rows
    for row in rows:
        turn = told["turns"][int(row["turn"]) - 1]
        place = cells.index([row[name] for name in made.grid.names])
        end = turn["ends"][turn["cells"][place]]
        assert {key: "" if value is None else str(value) for key, value in end.items() if key != "cut_unseen"} == {
            key: row[key] for key in end if key != "cut_unseen"}
    assert [*rows[0]] == [column.key for column in csv_table(made.grid.names).columns if column.in_csv]
    assert [*told["turns"][0]["ends"][0]] == [column.key for column in ENDS.columns]


def test_policies_decisions_are_the_columns_of_their_table():
    from inspector.config.settings import Settings
    from inspector.replay.case import open_case
    from inspector.sessions import open_paths
    from inspector.whatif.policies import matrix

    told = values(matrix(open_case(open_paths([FIRST])), Settings()))
    keys = ["policy", *(column.key for column in CELLS.columns)]
    assert all([*each] == keys for turn in told["turns"] for each in turn["decisions"])


def test_a_page_runs_no_script_and_loads_nothing_from_elsewhere():
    page = html_page("Numbers", "p{margin:0}", "<p>1</p>")
    (policy,) = re.findall('http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"  # no source for scripts, pictures or connections
    assert page.index(policy) < page.index("<style>p{margin:0}</style>") < page.index("<body>\n<p>1</p>\n</body>")

"""The documents and tables of the commands: each is of the schema that its help names; CSV and JSON say the same."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable

import jsonschema_rs
import pytest

from tests.commands.test_cli import SAMPLE
from tests.scenes.command import Output

Inspector = Callable[..., Output]
TEXT_CUT_TWICE = "sample:02"
OTHER_BUDGET = ("--set", "continuation_max_attempts=1")
DOCUMENTS = {
    "explain": (SAMPLE,),
    "replay": (TEXT_CUT_TWICE, *OTHER_BUDGET),
    "policies": (TEXT_CUT_TWICE,),
    "tune": (TEXT_CUT_TWICE, "--grid", "attempts=0..2"),
    "providers": (),
    "branches": (TEXT_CUT_TWICE,),
}
BESIDE_THE_ENDS = ("turn", "turn_id", "path", "smallest_max_tokens", "fewest_max_tokens", "grain", "enough_max_tokens",
                   "enough_grain")
"""Columns of `tune --csv` that are no member of an end of a turn."""


@pytest.mark.parametrize("command", DOCUMENTS)
def test_a_document_is_of_the_schema_that_the_help_names(inspector: Inspector, command: str) -> None:
    promised = re.findall(r"loop-inspector/\w+/\d+", inspector(command, "--help").out)
    made = json.loads(inspector(command, *DOCUMENTS[command], "--json").out)
    assert promised == [made["schema"]]


def test_what_explain_prints_fits_the_schema_that_is_printed(inspector: Inspector) -> None:
    check = jsonschema_rs.validator_for(json.loads(inspector("schema", "explain").out))
    made = json.loads(inspector("explain", *DOCUMENTS["explain"], "--json").out)
    check.validate(made)
    assert not check.is_valid({**made, "unheard_of": 1})


def test_the_columns_of_a_grid_are_the_members_of_its_document(inspector: Inspector) -> None:
    made = json.loads(inspector("tune", *DOCUMENTS["tune"], "--json").out)
    rows = list(csv.DictReader(io.StringIO(inspector("tune", *DOCUMENTS["tune"], "--csv", "-").out)))
    axes = [axis["name"] for axis in made["axes"]]
    assert list(rows[0])[: len(axes)] == axes
    columns = [name for name in rows[0] if name not in (*axes, *BESIDE_THE_ENDS)]
    of_ends = [name for name in made["turns"][0]["ends"][0] if name != "cut_unseen"]
    assert columns == of_ends
    for row, values in zip(rows, (cell["values"] for cell in made["cells"]), strict=True):
        turn = made["turns"][int(row["turn"]) - 1]
        end = turn["ends"][turn["cells"][made["cells"].index(next(c for c in made["cells"] if c["values"] == values))]]
        assert [row[name] for name in axes] == ["" if value is None else str(value) for value in values]
        assert [row[name] for name in columns] == ["" if end[name] is None else str(end[name]) for name in columns]

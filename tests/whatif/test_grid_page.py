"""The heat map as a page: the same cells as the sheet, inert, whole in one file."""

from __future__ import annotations

import re

from inspector.config.settings import Settings
from inspector.replay.case import open_case
from inspector.sessions import open_paths
from inspector.whatif.grid import Grid, parse_axes
from inspector.whatif.grid_report import page
from inspector.whatif.grid_run import tune
from tests.scenes.recordings import chat, lines, pair_of, user

CUT = pair_of([user("One?")], chat("Half of it", "length", tokens=7), max_tokens=7)
WHOLE = pair_of([user("Two?")], chat("All of it.", tokens=9), max_tokens=50)


def tune_grid(*specs: str, sessions=(CUT, WHOLE)):
    case = open_case(open_paths(["-"], stdin=lines(*sessions)))
    return tune(case, Grid(parse_axes(specs), Settings(simulate=True)))


def test_each_cell_says_how_many_turns_complete(tmp_path):
    run = tune_grid("attempts=0,1", "max_tokens=4,50")
    made = page(run)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", made)
    assert [cell.rstrip("~") for cell in cells] == [f"{done} of 2" for done in run.completed]
    assert made.count("class=best") == 1
    assert "attempts" in made
    assert "<script" not in made
    assert "default-src 'none'" in made


def test_one_axis_and_three_have_tables_of_their_own():
    assert page(tune_grid("max_tokens=4,50")).count("<table>") == 1
    three = page(tune_grid("attempts=0,1", "continuation_max_output_chars=10,100", "max_tokens=4,50"))
    assert three.count("<table>") == 2
    assert "<caption>cont_chars=10</caption>" in three


def test_the_page_names_limits_and_values_as_the_sheet_does():
    made = page(tune_grid("attempts=0,1", "max_tokens=4,recorded"))
    assert re.findall("<th>([^<]*)</th>", made) == ["attempts \\ max_tokens", "4", "recorded", "0", "1"]
    assert "<strong>attempts=0, max_tokens=recorded</strong>" in made


def test_a_single_turn_says_how_it_ends():
    assert "done" in page(tune_grid("max_tokens=50", sessions=(WHOLE,)))


def test_the_command_writes_it_once(inspector, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(CUT))
    to = tmp_path / "map.html"
    words = ("tune", path, "--grid", "max_tokens=4,7", "--html", to)
    assert inspector(*words).code == 0
    assert to.read_text("utf-8").startswith("<!doctype html>")
    again = inspector(*words)
    assert again.code == 2
    assert "--html" in again.err
    assert inspector(*words, "--force").code == 0


def test_the_command_writes_it_alone_to_standard_output_and_no_two_outputs_to_one_file(inspector, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(CUT))
    words = ("tune", path, "--grid", "max_tokens=4,7")
    alone = inspector(*words, "--html", "-").out
    assert alone.startswith("<!doctype html>")
    assert alone.endswith("</html>\n")
    one = tmp_path / "one"
    said = inspector(*words, "--csv", one, "--html", one)
    assert (said.code, said.err) == (2, f"inspector: --html {one}: another output goes there; expected another path\n")
    assert not one.exists()
    for pair in (("--csv", "-", "--html", "-"), ("--html", "-", "--json")):
        said = inspector(*words, *pair)
        assert (said.code, "both write to standard output" in said.err) == (2, True)

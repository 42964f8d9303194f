"""A grid as text, CSV and JSON: what stands there, that it can be read back, and that hostile names stay inert."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from inspector.config.settings import parse_assignments, settings_of
from inspector.replay.case import open_case
from inspector.report.lines.spans import plain, text_of
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from inspector.whatif.grid import End, Grid, parse_axes
from inspector.whatif.grid_lines import answer_lines, headline, turn_headline
from inspector.whatif.grid_report import as_csv, document, heat, text
from inspector.whatif.grid_run import tune
from inspector.whatif.heat import MEASURES, WIDTH, cell_marks, cell_sheet, end_word, plane
from inspector.whatif.smallest import smallest_limits
from loop_core.turn.limits import Spend
from loop_core.turn.state import State
from tests.scenes.recordings import chat, lines, pair_of, user
from tests.scenes.rows import each_row
from tests.test_import_hygiene import COMMAND, SLOW, modules_after
from tests.whatif.test_sweep import story

FIRST, SECOND, THIRD = (str(sample.path) for sample in samples()[:3])


def tune_files(*specs, paths=(FIRST,), **more):
    return tune(open_case(open_paths(list(paths))), Grid(parse_axes(specs)), jobs=1, **more)


def test_the_map_says_in_each_cell_how_many_turns_complete():
    made = tune_files("attempts=4,5", "tokens=80,1000")
    assert plain(heat(made, "outcome")).split("\n") == [
        "          cont_tokens",
        "attempts  80     1,000",
        "4         ■ 0/2  ■ 0/2",
        "5         ■ 0/2  ∅ 1/2",
    ]


@each_row(("end", "said"), [
    ({"limit": "continuation_max_attempts"}, "attempts"),
    ({"limit": "continuation_max_total_completion_tokens"}, "cont_tokens"),
    ({"limit": "continuation_max_output_chars"}, "cont_chars"),
    ({"limit": "continuation_tool_repair_attempts"}, "repairs"),
    ({"limit": "max_thinking_only"}, "thinking"), ({"limit": "min_progress_chars"}, "progress"),
    ({"limit": "max_tool_steps"}, "rounds"), ({"limit": "max_identical_calls"}, "identical"),
    ({"limit": "max_resumes"}, "resumes"), ({"terminal": "unrecorded"}, "unrecorded"),
    ({"terminal": "retry_limit"}, "no method"), ({"terminal": "interrupted"}, "cut off"),
    ({"terminal": "safety_blocked"}, "filtered"), ({"terminal": "context_window_exceeded"}, "context"),
    ({"state": State.COMPLETE, "cut_unseen": True}, "cut unseen"),
    ({"state": State.COMPLETE, "complete": True}, "done"),
    ({"state": State.UNRECORDED, "terminal": "unrecorded", "verdict": "COMPLETE SO FAR"}, "so far"),
])
def test_a_cell_of_one_turn_is_one_word(end, said):
    assert end_word(End(**{"state": State.ABORT_PARTIAL, "terminal": "completed", "limit": "", "segments": 1,
                       "spend": Spend(), "fidelity": "exact", **end})) == said


def plane_lines(made, turn=None, here=None):
    spans = cell_marks(made, "outcome", turn)
    laid = plane(made.grid.axes, spans, WIDTH)
    return plain([laid.line(y, spans, here) for y in range(laid.height)]).split("\n")


def test_the_map_of_one_turn_names_the_limit_that_stopped_it():
    made = tune_files("attempts=4,5", "tokens=80,1000", "chars=10,9999")
    assert plane_lines(made, turn=0) == [
        "",
        "attempts=4",
        "             cont_chars",
        "cont_tokens  10             9,999",
        "80           ■ cont_chars   ■ cont_tokens",
        "1,000        ■ cont_chars   ■ attempts",
        "",
        "attempts=5",
        "             cont_chars",
        "cont_tokens  10             9,999",
        "80           ■ cont_chars   ■ cont_tokens",
        "1,000        ■ cont_chars   ✓ done",
    ]


def numbers(made, show):
    return [int(line.split()[-1]) for line in plain(heat(made, show)).split("\n")[1:]]


def test_spend_and_segments_are_shaded_and_say_the_number():
    """Turn 1 spends 40 tokens a response, turn 2 its 40 in every cell: 80, 120, 160 of 280 at most."""
    made = tune_files("attempts=0..5")
    assert numbers(made, "spend") == [80, 120, 160, 200, 240, 280]
    assert numbers(made, "segments") == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("show", MEASURES)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_maps_keep_to_eighty_columns_and_to_ascii(show, ascii_only):
    made = tune_files("attempts=0..6", "tokens=1..4000*2")
    told = text(made, show, ascii_only)
    assert max(map(len, told.split("\n"))) <= 80
    assert told.isascii() is ascii_only
    assert told.count("2,048") >= 2, "values that do not fit stand in a further block"


def test_the_marked_cell_stands_out_without_colour():
    lines = plane_lines(tune_files("attempts=4,5", "tokens=80,1000"), here=3)
    assert [line.count("◀") for line in lines] == [0, 0, 0, 1]
    assert lines[3].endswith("∅ 1/2◀")


def test_a_turn_of_which_nothing_is_known_in_the_largest_cell_counts_no_tokens_there(inspector):
    """Sample 17 was recorded with 32 tokens, all of them spent: of what 64 would bring, no answer is known."""
    path = next(str(sample.path) for sample in samples() if sample.path.stem.startswith("17"))
    done = inspector("tune", path, "--grid", "max_tokens=32,64")
    assert "in the largest cell: no answer to its first request is known" in done.out
    assert " 0 output tokens" not in done.out


def test_the_sheet_says_the_answer_first_and_how_to_open_it():
    made = tune_files("attempts=0..6")
    told = text(made, paths=[FIRST])
    assert told.startswith(
        "1 OF 2 CAN COMPLETE, 1 unknown  fewest output tokens 280 with up to 5\n"
        "continuations: from the recording\n")
    assert "RECORDED in 7 cells · the recording ends first in 7:" in told
    assert "turn 1         ✓ fewest output tokens with up to 5 continuations\n" in told
    assert "grid           attempts (continuation_max_attempts): 0 1 2 3 4 5 6\n" in told
    assert "policy strict\n               This engine's own: nothing unfinished counts as finished" in told
    assert "exact values: attempts 5, cont_tokens 240, cont_chars 768" in told
    assert told.endswith(f"\n\ninspector replay {FIRST} --set continuation_max_attempts=5\n")
    opened = settings_of(parse_assignments(["continuation_max_attempts=5"]), made.grid.base)
    assert opened == made.grid.settings(5)


def test_one_cell_tells_how_each_turn_ends_in_it():
    told = plain(cell_sheet(tune_files("attempts=3,5"), 0, None, None)).split("\n")
    assert told[:2] == ["attempts=3", "complete       0 of 2 turns"]
    # 4 segments of 160 tokens in turn 1, 1 of 40 in turn 2.
    assert told[2].startswith("spent          5 segments · 200 output tokens · ")
    assert told[3:5] == ["fidelity       RECORDED in 2 turns", ""]
    assert told[5].startswith("turn 1         ■ attempts  4 segments · 160 output tokens · 4 requests · ")
    assert told[6].startswith("turn 2         ∅ unrecorded")


def test_one_turn_of_a_cell_tells_its_end_its_spend_and_its_fidelity():
    told = plain(cell_sheet(tune_files("attempts=3,5"), 0, turn=0, most=None)).split("\n")
    assert told[:4] == ["attempts=3", "turn           1 of 2", "ends in        ■ AbortPartial  retry_limit",
                        "               stopped by attempts"]
    assert told[4:6] == ["verdict        LIMIT REACHED", "segments       4"]
    assert told[6].startswith("output         160 tokens, ")
    assert told[7].startswith("of cut answers 160 tokens, ")
    assert told[8] == "requests       4  of them 3 continuations, 0 repairs"
    assert told[-1] == "fidelity       RECORDED"
    assert plain(cell_sheet(tune_files("attempts=3,5", cancelled=lambda: True), 0, turn=1,
                            most=None)).endswith("not run")


def test_long_lists_of_turns_are_cut_and_counted():
    made = tune_files("attempts=3,5")
    assert "1 turn more, one at a time" in plain(cell_sheet(made, 0, most=1, turn=None))
    told = plain(answer_lines(made, most=1))
    assert "turn 1 " in told
    assert "turn 2 " not in told
    assert "1 turn more, one at a time" in told


def test_one_turn_and_one_cell_are_singular(inspector):
    told = " ".join(inspector("tune", "sample:05", "sample:08", "--grid", "attempts=1").out.split())
    assert "the recording ends first in 1: its spend is a lower bound" in told
    assert "1 turn completes in every cell" in told
    two = " ".join(inspector("tune", "sample:02", "sample:05", "--grid", "attempts=4").out.split())
    assert "2 turns complete in every cell" in two


def test_what_was_cancelled_says_so_and_stays_blank():
    made = tune_files("attempts=0..6", cancelled=lambda: True)
    told = text(made)
    assert told.startswith("NO CELL  none of 7 was run\n")
    assert "2 turns not run" in told
    assert "cancelled      0 of 2 parts were run; the rest is left blank" in told
    assert document(made)["cancelled"] is True
    assert document(made)["cells"][0]["completed"] is None
    assert as_csv(made).count("\n") == 1


@each_row(("name", "value", "said"), [
    ("attempts", 6, "up to 6 continuations"), ("attempts", 1, "up to 1 continuation"),
    ("attempts", 0, "no continuations"),
    ("cont_tokens", 1000, "up to 1,000 tokens of continuations"), ("chars", 1, "up to 1 character"),
    ("repairs", 2, "up to 2 repairs"), ("max_tokens", 64, "max_tokens 64"), ("max_tool_steps", 3, "max_tool_steps 3"),
])
def test_a_limit_is_said_in_words(name: str, value: int, said: str):
    (axis,) = parse_axes([f"{name}={value}"])
    assert axis.phrase(value) == said



def test_a_cancel_leaves_the_turns_that_were_run():
    answers = iter([False, True])
    made = tune_files("attempts=4,5", cancelled=lambda: next(answers, True))
    told = text(made)
    assert told.startswith(
        "1 OF 1 CAN COMPLETE  fewest output tokens 240 with up to 5 continuations: from\n"
        "the recording\n")
    assert "1 of 2 parts were run" in told
    assert "1 turn not run" in told
    assert [line.split()[-2:] for line in plain(heat(made, "outcome")).split("\n")[1:]] == [["■", "0/1"], ["✓", "1/1"]]


def test_csv_is_read_back_row_by_row():
    made = tune_files("attempts=3,5", "tokens=none,100", paths=[FIRST, THIRD])
    rows = list(csv.DictReader(io.StringIO(as_csv(made))))
    assert len(rows) == 4 * 3
    for number, row in enumerate(rows):
        cell, turn = divmod(number, 3)
        end = made.turns[turn].end(cell)
        values = (row["continuation_max_attempts"], row["continuation_max_total_completion_tokens"])
        assert values == tuple("" if value is None else str(value) for value in made.grid.values(cell))
        assert (row["turn"], row["terminal_reason"], row["output_tokens"]) == (
            str(turn + 1), end.terminal, str(end.spend.output_tokens))
        assert row["fidelity"] == "RECORDED"


def test_json_is_read_back_with_every_cell():
    made = tune_files("attempts=3,5")
    told = json.loads(json.dumps(document(made)))
    assert told["schema"] == "loop-inspector/tune/2"
    assert told["axes"] == [{"name": "continuation_max_attempts", "values": [3, 5]}]
    assert [cell["completed"] for cell in told["cells"]] == [0, 1]
    turn = told["turns"][0]
    assert [turn["ends"][code]["terminal_reason"] for code in turn["cells"]] == ["retry_limit", "completed"]
    assert turn["ends"][turn["cells"][0]] == {
        "final_state": "AbortPartial", "terminal_reason": "retry_limit", "limit": "continuation_max_attempts",
        "cut_unseen": False, "segments": 4, "requests": 4, "output_tokens": 160, "tokens_assumed": 0, "uncounted": 0,
        "output_chars": 624, "continuations": 3, "continuation_tokens": 160, "continuation_chars": 624, "repairs": 0,
        "tool_steps": 0, "resumes": 0, "fidelity": "RECORDED", "verdict": "limit_reached", "complete": False}
    assert turn["smallest"]["cell"] == 1
    assert turn["smallest"]["limits"]["continuation_max_attempts"] == 5
    assert told["turns"][1]["smallest"] is None
    assert "recording ends first" in told["turns"][1]["why_not"]
    assert told["enough"] == {"cell": 1, "completed": 1, "output_tokens": 280, "edge": None, "every_larger": True}


HOSTILE = "=cmd|' /C calc'!A0\x1b[2J\u202e\n\"x\",y"


def test_hostile_names_reach_no_terminal_and_no_spreadsheet():
    made = tune_files("attempts=0..3")
    made = replace(made, turns=tuple(replace(turn, id=HOSTILE, path=HOSTILE) for turn in made.turns))
    told = text(made, paths=["\x1b]0;x\x07.har"])
    written = as_csv(made)
    for said in (told, written):
        assert not {"\x1b", "\u202e", "\x07"} & set(said)
    row = next(csv.DictReader(io.StringIO(written)))
    assert row["turn_id"].startswith("'=cmd")
    assert row["turn_id"].endswith('"x",y')
    assert json.dumps(document(made)).isascii()


# -- the command line ------------------------------------------------------------------------------------------------


def test_the_command_prints_the_sheet_and_ends_with_0(inspector):
    said = inspector("tune", FIRST, "--grid", "attempts=1..6")
    assert said.code == 0
    assert said.out.startswith("1 OF 2 CAN COMPLETE")
    assert said.err == ""


def test_a_varied_budget_is_simulated_unless_it_is_told_not_to_be(inspector):
    """The 134 tokens of sample 02 in budgets of 70: cut once; a recording knows nothing of that budget."""
    command = ("tune", SECOND, "--grid", "max_tokens=70,1000", "--json")
    told = json.loads(inspector(*command).out)
    assert told["simulate"] is True
    assert [(end["segments"], end["fidelity"]) for end in told["turns"][0]["ends"]] == [
        (2, "SIMULATED"), (1, "SIMULATED")]
    assert [cell["simulated"] for cell in told["cells"]] == [1, 1]
    told = json.loads(inspector(*command, "--recorded").out)
    assert told["simulate"] is False
    assert {(end["segments"], end["fidelity"]) for end in told["turns"][0]["ends"]} == {(3, "RECORDED")}
    assert json.loads(inspector("tune", SECOND, "--grid", "attempts=1", "--json").out)["simulate"] is False


def test_what_was_simulated_is_marked_and_the_command_says_so(inspector):
    said = inspector("tune", SECOND, "--grid", "max_tokens=70,1000")
    assert "done~" in said.out
    assert "~ marks what was simulated" in said.out
    assert "SIMULATED in 2" in said.out
    assert said.out.endswith("--simulate\n")


def test_json_and_csv_from_the_command(inspector, tmp_path):
    told = json.loads(inspector("tune", FIRST, "--grid", "attempts=5", "--json", "--policy", "pi-presence").out)
    assert told["policy"] == "pi-presence"
    target = tmp_path / "grid.csv"
    assert inspector("tune", FIRST, "--grid", "attempts=5", "--csv", target).out.startswith("1 OF 2")
    assert inspector("tune", FIRST, "--grid", "attempts=5", "--csv", "-").out == target.read_text()


def test_an_outcome_that_the_recording_does_not_hold_is_unknown_and_no_failure(inspector):
    told = inspector("tune", FIRST, "--grid", "attempts=5").out
    assert told.startswith("1 OF 2 CAN COMPLETE, 1 unknown  "), "turn 2 waits for what was never recorded"
    made = tune_files("attempts=5")
    told = text_of(turn_headline(made, smallest_limits(made, 1)))
    assert told.startswith("NOT KNOWN TO COMPLETE  the recording ends first")
    blocked = tune_files("attempts=5", paths=[next(str(each.path) for each in samples() if each.path.stem[:2] == "12")])
    assert text_of(turn_headline(blocked, smallest_limits(blocked, 0))).startswith("DOES NOT COMPLETE")
    assert text_of(headline(blocked)).startswith("NONE COMPLETES")


def test_a_request_that_was_never_sent_is_counted_nowhere(inspector):
    told = " ".join(inspector("tune", FIRST, "--grid", "attempts=0,5").out.split())
    assert "in the largest cell: 1 segment · 40 output tokens · 1 request · RECORDED" in told, "its repair is a wish"
    cells = inspector("tune", FIRST, "--grid", "attempts=5", "--csv", "-").out
    (row,) = [row for row in csv.DictReader(io.StringIO(cells)) if row["turn"] == "2"]
    assert (row["requests"], row["repairs"], row["final_state"]) == ("1", "0", "Unrecorded")
    shown = inspector("replay", FIRST, "--set", "continuation_tool_repair_attempts=0").out
    assert "repairs 0 of 0" in shown


def test_what_is_the_same_in_all_cells_can_be_set(inspector):
    said = inspector("tune", FIRST, "--grid", "attempts=5", "--set", "continuation_max_output_chars=100")
    told = " ".join(said.out.split())
    assert told.startswith(
        "NONE IS KNOWN TO COMPLETE continuation_max_output_chars stops it, which this grid does not vary "
        "(in 1 of 2 turns)")


@pytest.mark.parametrize(("arguments", "fidelity", "varied"), [
    (["--grid", "attempts=3", "--set", "max_tokens=240"], "SIMULATED", ["continuation_max_attempts"]),
    (["--grid", "attempts=3", "--set", "max_tokens=240", "--recorded"], "RECORDED", ["continuation_max_attempts"]),
    (["--set", "simulate=no"], "RECORDED",
     ["continuation_max_attempts", "continuation_max_total_completion_tokens"]),
])
def test_a_set_max_tokens_is_simulated_and_set_simulate_is_obeyed(inspector, arguments, fidelity, varied):
    found = json.loads(inspector("tune", FIRST, *arguments, "--json").out)
    assert [axis["name"] for axis in found["axes"]] == varied
    assert {end["fidelity"] for end in found["turns"][0]["ends"]} == {fidelity}


@pytest.mark.parametrize(("arguments", "says"), [
    (["--grid", "colour=1"], "not a limit that a replay uses"),
    (["--grid", "attempts=5..1"], "begins above its end"),
    (["--grid", "attempts=1", "--set", "continuation_max_attempts=5"], "both set and varied"),
    (["--grid", "attempts=1", "--set", "attempts=5"], "continuation_max_attempts: both set and varied"),
    (["--set", "max_tokens=20"], "max_tokens: both set and varied; name another limit with --grid"),
    (["--set", "simulate=no", "--simulate"], "simulate: --set contradicts the option"),
    (["--set", "edit.1.1=x", "--grid", "attempts=1"], "edit.1.1: only `inspector replay`"),
    (["--show", "beauty"], "beauty"),
    (["--jobs", "0"], "--jobs"),
    (["--csv", "-", "--json"], "both write to standard output"),
    (["--csv", FIRST], "this session was read"),
    (["--csv", "/nowhere/at/all.csv"], "cannot be written"),
])
def test_bad_usage_is_one_line_and_2(inspector, arguments, says):
    said = inspector("tune", FIRST, *arguments)
    assert said.code == 2
    assert says in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(("command", "value", "says"), [
    ("replay", "edit.9.1=x", "edit.9.1: this run has the turns 1 to 2"),
    ("replay", "edit.1.9=x", "edit.1.9: no input '9' in turn 1; it has 1"),
    ("policies", "edit.1.1=x", "edit.1.1: only `inspector replay`"),
    ("policies", "policy=botnexus", "--set policy: all policies are shown"),
])
def test_a_setting_that_would_change_nothing_is_refused(inspector, command, value, says):
    said = inspector(command, FIRST, "--set", value)
    assert (said.code, said.out) == (2, "")
    assert says in said.err


def test_an_unreadable_input_ends_with_2(inspector, tmp_path):
    path = tmp_path / "absent.har"
    said = inspector("tune", path, "--grid", "attempts=1")
    assert said.code == 2
    assert said.out.startswith("NOTHING TO TUNE")
    assert f"{path}: cannot be read" in said.out.replace("\n", ""), "it said that no LLM traffic was found"
    assert "absent.har" in said.err


def test_tuning_loads_nothing_slow(tmp_path):
    path = tmp_path / "story.jsonl"
    path.write_bytes(lines(*story(["cut text", "answer"], 20, [20], False)))
    loaded = modules_after(COMMAND, "tune", str(path), "--grid", "attempts=0..3", "--jobs", "1")
    assert "inspector.whatif.sweep" in loaded
    assert loaded & SLOW == set()


def test_files_of_one_name_are_told_apart_by_their_folders(inspector, tmp_path):
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "s.jsonl").write_bytes(lines(pair_of([user(f"In {folder}?")], chat("Half", "length"))))
    told = " ".join(inspector("tune", tmp_path / "one" / "s.jsonl", tmp_path / "other" / "s.jsonl").out.split())
    assert "(one/s.jsonl)" in told
    assert "(other/s.jsonl)" in told


def test_turns_of_several_files_are_named_by_their_file(inspector):
    told = " ".join(inspector("tune", "sample:01", "sample:08", "--grid", "attempts=5").out.split())
    assert "(01-cut-call-and-long-answer.session.jsonl)" in told
    assert "(08-router-says-tool-calls.session.jsonl)" in told
    assert ".jsonl)" not in inspector("tune", "sample:01", "--grid", "attempts=5").out

"""`inspector check`: places, forms, baselines, exit codes, many files over processes, and what merges."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from inspector import check, commands
from inspector.check import check_file, check_paths, examine, merge, report_forms, stats
from inspector.check.agent_tools import answer_of
from inspector.check.report_forms import FORMS, place
from inspector.check.rules import RULES, selected_rules
from inspector.report.table_rows import count_rows
from inspector.report.turn_rows import rows_of
from loop_core.errors import CallerError
from tests.scenes import transcripts as agents
from tests.scenes.recordings import ASKS, CUT, PARTS, TOOLS, call, chat, cut_text, exchange, lines, pair_of, user

SAMPLES = Path(__file__).parents[2] / "sample_sessions"
WHOLE = pair_of(ASKS, chat("All of it."), max_tokens=50)
LOST = pair_of([user("Two?")], chat("Half of <it> & more", "length"), max_tokens=7)
HELD = pair_of([user("Three?")], chat(None, "length", call(CUT)), max_tokens=9, tools=TOOLS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A clean session, one with two problems, and a file that is no session."""
    (tmp_path / "a.jsonl").write_bytes(lines(WHOLE))
    (tmp_path / "b.jsonl").write_bytes(lines(WHOLE, LOST, HELD))
    (tmp_path / "notes.txt").write_text("nothing of a session")
    return tmp_path


# -- places ------------------------------------------------------------------------------------------------------------


def test_a_problem_points_at_its_record_and_byte(folder):
    first, second = check_file(folder / "b.jsonl").problems
    assert (first.rule, first.record, first.turn, first.line) == ("answer-cut", 1, 2, None)
    assert (second.rule, second.record, second.turn) == ("call-cut", 2, 3)
    body = json.dumps(chat("Half of <it> & more", "length")).encode()
    assert body[first.start : first.end] == b'"length"'


def test_a_problem_of_a_transcript_points_at_its_line(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(agents.claude(agents.prompt("write"), agents.block(agents.text("Half of"), stop="max_tokens")))
    (problem,) = check_file(path).problems
    assert problem.rule == "answer-cut"
    assert json.loads(path.read_text().splitlines()[problem.line - 1])["message"]["stop_reason"] == "max_tokens"
    assert problem.agent == "claude-code"


def test_bytes_are_checked_as_a_file_is_and_a_report_can_be_sent(folder):
    path = folder / "b.jsonl"
    of_bytes = check_file(path.read_bytes(), name=str(path))
    assert of_bytes == check_file(path)
    assert pickle.loads(pickle.dumps(of_bytes)) == of_bytes


def test_only_the_rules_that_are_named(folder):
    assert [each.rule for each in check_file(folder / "b.jsonl", ["call-cut"]).problems] == ["call-cut"]
    with pytest.raises(CallerError, match="is not a rule"):
        check_file(folder / "b.jsonl", ["call-cutt"])


# -- many files --------------------------------------------------------------------------------------------------------


def test_little_is_looked_at_by_one_process(tmp_path, monkeypatch):
    for number in range(6):
        (tmp_path / f"{number}.jsonl").write_bytes(lines(WHOLE))
    seen = []
    monkeypatch.setattr(check, "_results", lambda tasks, jobs: seen.append(jobs) or iter(()))
    monkeypatch.setattr(check, "cores", lambda: 4)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    for small, jobs in ((size + 1, None), (size, None), (size + 1, 3)):
        monkeypatch.setattr(check, "SMALL", small)
        check_paths([str(tmp_path)], selected_rules(), jobs=jobs)
    assert seen == [1, 4, 3]


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_folder_is_the_same_in_one_process_and_in_several(tmp_path, jobs):
    for number in range(9):
        blank_lines = b"\n" * number  # without them the files would be copies of two
        (tmp_path / f"{number}.jsonl").write_bytes(
            lines(*([WHOLE, LOST] if number % 2 else [WHOLE, WHOLE])) + blank_lines)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.md").write_text("no session")
    done = []
    report = check_paths([str(tmp_path)], selected_rules(), jobs=jobs, progress=lambda at, of: done.append((at, of)))
    assert [Path(each.file).name for each in report.problems] == [f"{number}.jsonl" for number in (1, 3, 5, 7)]
    assert report.skipped == 1
    assert len(report.turns) == 18
    assert sorted(done) == [(at, 10) for at in range(1, 11)]
    assert report == merge([check_file(path) for path in sorted(tmp_path.glob("*.jsonl"))])._replace(skipped=1)


def test_a_single_exchange_is_examined_once(tmp_path, monkeypatch):
    (tmp_path / "one.json").write_bytes(lines(pair_of([user("q")], chat("a", "length"), max_tokens=7)))
    examined = []
    monkeypatch.setattr(check, "examine", lambda task: examined.append(task) or examine(task))
    report = check.check_paths([str(tmp_path)], selected_rules(), jobs=None)
    assert [task.paths for task in examined] == [(str(tmp_path / "one.json"),)]
    assert report == merge([check_file(tmp_path / "one.json")])
    assert [problem.rule for file in report.files for problem in file.problems] == ["answer-cut"]


def test_exchanges_that_a_logger_spread_over_files_are_one_conversation(tmp_path):
    asks = [user("tell me")]
    (tmp_path / "1.json").write_text(json.dumps(pair_of(asks, chat("Half of it, ", "length"), max_tokens=7)))
    later = [*asks, {"role": "assistant", "content": "Half of it, "}, user("and now something else")]
    (tmp_path / "2.json").write_text(json.dumps(pair_of(later, chat("Fine."), max_tokens=50)))
    report = check_paths([str(tmp_path)], selected_rules(), jobs=None)
    assert [(each.rule, Path(each.file).name) for each in report.problems] == [("cut-answer-taken", "1.json")]


def test_a_process_that_is_killed_costs_no_file(tmp_path, monkeypatch):
    for number in range(6):
        (tmp_path / f"{number}.jsonl").write_bytes(lines(LOST))
    here, plain = os.getpid(), check.check_paths_together

    def die(paths, *words, **named):
        if os.getpid() != here and paths[0].endswith("3.jsonl"):
            os._exit(9)
        return plain(paths, *words, **named)

    monkeypatch.setattr(check, "check_paths_together", die)
    report = check_paths([str(tmp_path)], selected_rules(), jobs=2)
    assert [each.rule for each in report.problems] == ["answer-cut"] * 6


KILLED = """
import sys
from inspector import check
from inspector.check.rules import selected_rules

check.check_paths([sys.argv[1]], selected_rules(), jobs=2, progress=lambda done, of: print(done, flush=True))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes of a caller that is killed at once are forked")
def test_the_processes_end_with_a_caller_that_is_killed(tmp_path):
    for number in range(2_000):
        (tmp_path / f"{number}.jsonl").write_bytes(lines(LOST))
    caller = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert [caller.stdout.readline() for _ in range(40)][-1] == "40\n", "its processes are at work"
    caller.kill()
    caller.communicate(timeout=20)  # its output ends when the last process is gone


# -- copies of turns ---------------------------------------------------------------------------------------------------

BEGUN = (agents.prompt("a plan"), agents.block(agents.text("Half of"), stop="max_tokens"),
         agents.prompt("again"), agents.block(agents.text("Whole."), "msg_02", "end_turn"))
ON = (agents.prompt("go on"), agents.block(agents.text("Half of the"), "msg_03", "max_tokens"))
OTHER, THIRD = ((agents.prompt("or else", timestamp=f"{day}T00:00:00Z"),
                 agents.block(agents.text("Fine."), key, "end_turn", timestamp=f"{day}T00:00:01Z"))
                for day, key in (("2026-02-07", "msg_04"), ("2026-02-08", "msg_05")))


@pytest.fixture
def resumed_folder(tmp_path: Path) -> Path:
    """A session, one that was resumed from it, one resumed from that, and one forked from the first."""
    for name, more in (("a", ()), ("b", ON), ("c", (*ON, *OTHER)), ("d", THIRD)):
        (tmp_path / f"{name}.jsonl").write_text(agents.claude(*BEGUN, *more))
    return tmp_path


def test_a_turn_that_a_session_copied_is_checked_in_the_file_that_has_it_first(resumed_folder):
    report = check_paths([str(resumed_folder)], selected_rules(), jobs=None)
    assert [(Path(each.file).name, each.turn) for each in report.problems if each.rule == "answer-cut"] == [
        ("a.jsonl", 1), ("b.jsonl", 3)]
    assert [[turn.turn for turn in file.turns] for file in report.files] == [[1, 2], [3], [4], [3]]
    assert report.copy_count == 2 + 3 + 2


def test_reports_merge_in_any_order_to_the_same_turns(resumed_folder):
    a, b, c, d = (check_file(path) for path in sorted(resumed_folder.iterdir()))
    whole = merge([a, b, c, d])
    assert merge([merge([d, c]), merge([b, a])]) == merge([merge([c]), a, merge([b, d])]) == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert len(merge([b]).turns) == len(b.turns) == 3, "alone, a file is whole"


def test_every_form_says_how_many_copies_are_left_out_and_names_no_turn_of_them(resumed_folder):
    paths = [resumed_folder / "a.jsonl", resumed_folder / "b.jsonl"]
    report = merge(map(check_file, paths))
    for form in ("text", "md"):
        assert "3 turns (2 copies of turns left out)" in FORMS[form](report).replace("\n  ", " ")
    files = json.loads(FORMS["json"](report))["files"]
    assert [(file["turns"], file.get("copied")) for file in files] == [(2, None), (1, 2)]
    assert [case.get("name") for case in ElementTree.fromstring(FORMS["junit"](report)).iter("testcase")] == [
        "turn 1", "turn 2", "turn 3"]
    assert "3 turns (2 copies of turns left out) in 2 files" in stats.text(report)
    assert json.loads(stats.as_json(report))["copied"] == 2


def test_a_filter_changes_neither_the_numbers_of_turns_nor_what_is_a_copy(resumed_folder):
    paths = [str(resumed_folder / "a.jsonl"), str(resumed_folder / "b.jsonl")]
    for words, found, copied in (("stop:max_tokens", ["a1", "b3"], 1), ("stop:end_turn", ["a2"], 1)):
        report = check_paths(paths, selected_rules(), jobs=None, filter_text=words)
        assert [f"{Path(file.path).stem}{turn.turn}" for file in report.files for turn in file.turns] == found
        assert {f"{Path(each.file).stem}{each.turn}" for each in report.problems} <= {*found}
        assert report.copy_count == copied


def test_simulated_turns_are_counted_apart_as_in_the_table(tmp_path):
    """A session with a stand-in: nobody was asked for one of its answers."""
    source = SAMPLES / "01-cut-call-and-long-answer.session.jsonl"
    records = [json.loads(line) for line in source.read_text().splitlines()]
    *_, last = (record for record in records if record.get("type") == "response")
    last["simulated"] = True
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    before, report = check_file(source), check_file(path)
    assert len(report.turns) == len(before.turns) == 2
    counts = count_rows(rows_of(agents.view_file(path)))
    assert (counts.turns, counts.simulated) == (1, 1)
    assert "1 turn + 1 SIMULATED (~), " in report_forms.totals_line(report)
    assert "1 turn + 1 SIMULATED (~) in 1 file" in stats.text(report)
    document = stats.document(report)
    told = answer_of("findings", {"paths": [str(path)]})
    assert [(each["turns"], each["simulated"]) for each in (document, told)] == [(1, 1)] * 2
    assert [row["turns"] for row in document["by_model"]] == [1]


# -- forms -------------------------------------------------------------------------------------------------------------


def test_text_and_markdown_name_the_problem_its_place_and_what_to_do(folder):
    report = check_file(folder / "b.jsonl")
    said = FORMS["text"](report)
    assert "✖ error   answer-cut  " in said
    assert "b.jsonl entry 2, turn 2, byte " in said
    assert RULES["answer-cut"].fix in said
    assert said.endswith("2 errors · 3 turns, 2 not complete · 1 file\n")
    table = FORMS["md"](report)
    assert "| ✖ error | `answer-cut` | " in table
    assert FORMS["text"](check_file(folder / "a.jsonl")).startswith("nothing found · 1 turn,")
    unread = FORMS["text"](check_file(folder / "missing.jsonl"))
    assert unread == "nothing was checked · 0 turns, 0 not complete · 1 file, 1 could not be read\n"


def test_sarif_has_every_rule_and_a_result_for_each_problem(folder):
    (run,) = json.loads(FORMS["sarif"](check_file(folder / "b.jsonl")))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(RULES)
    first, second = run["results"]
    assert (first["ruleId"], first["level"]) == ("answer-cut", "error")
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "answer-cut"
    assert first["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    assert first["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "turn 2 / entry 2"
    assert first["partialFingerprints"] != second["partialFingerprints"]
    assert run["invocations"][0]["executionSuccessful"] is True


def test_junit_has_a_case_for_each_turn(folder):
    root = ElementTree.fromstring(FORMS["junit"](merge([
        check_file(folder / "b.jsonl"), check_file(folder / "notes.txt")])))
    suites = {Path(suite.get("name")).name: suite for suite in root}
    assert [suites["b.jsonl"].get(name) for name in ("tests", "failures", "errors")] == ["3", "2", "0"]
    assert [case.find("failure") is not None for case in suites["b.jsonl"]] == [False, True, True]
    assert suites["b.jsonl"][1].find("failure").get("type") == "answer-cut"
    assert suites["notes.txt"].get("errors") == "1"


def test_github_annotations_cannot_be_broken_by_what_a_session_holds(tmp_path):
    path = tmp_path / "a:b,c%.jsonl"
    path.write_bytes(lines(pair_of([user("x")], chat(None, "stop\n::error::no", call(CUT)), max_tokens=9, tools=TOOLS)))
    said = FORMS["github"](check_file(path))
    assert said
    for line in said.splitlines():
        head, _, message = line.removeprefix("::").partition("::")
        assert head.split(" ")[0] in ("error", "warning", "notice")
        assert head.count(",line=1,title=") == 1
        assert "a%3Ab%2Cc%25.jsonl" in head
        assert message


@pytest.mark.parametrize("form", FORMS)
def test_no_text_is_a_command_to_the_ci_server_that_logs_the_report(tmp_path, monkeypatch, form):
    """GitHub: `::name` at the beginning of a line, `##[name` anywhere; Azure Pipelines: `##vso[name` anywhere."""
    monkeypatch.chdir(tmp_path)
    name = "::add-mask::x ##[set-output name=a]b ##vso[task.setvariable variable=a]b.jsonl"
    Path(name).write_bytes(lines(pair_of([user("x")], chat("Half", "length"), max_tokens=7)))
    said = FORMS[form](check_file(Path(name)))
    assert not re.findall(r"(?m)^ *::(?!(?:error|info|notice|warning) )|^(?!::).*##\w*\[", said)
    if form == "json":
        assert json.loads(said)["files"][0]["path"] == name
    if form == "junit":
        assert ElementTree.fromstring(said)[0].get("name") == name


def test_a_credential_in_a_file_name_is_masked_before_the_name_is_escaped(tmp_path, monkeypatch, inspector):
    monkeypatch.chdir(tmp_path)
    key = "AAq1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6j"
    name = f"bot123456789:{key}.jsonl"
    Path(name).write_bytes(lines(pair_of([user("x")], chat("Half", "length"), max_tokens=7)))
    for form in ("sarif", "github"):
        said = inspector("check", name, "--format", form).out
        assert (".jsonl" in said, key in said) == (True, False)


def test_a_summary_is_bounded_and_an_empty_run_is_not_silent(tmp_path, monkeypatch, inspector):
    monkeypatch.setattr(report_forms, "MOST_ROWS", 2)
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(*[pair_of([user(f"x{n}")], chat("Half", "length"), max_tokens=7) for n in range(5)]))
    table = FORMS["md"](check_file(path))
    assert (table.count("| ✖"), "3 more are not listed." in table) == (2, True)
    (tmp_path / "none").mkdir()
    said = inspector("check", tmp_path / "none")
    assert (said.code, "nothing was checked" in said.err) == (0, True)
    annotated = inspector("check", tmp_path / "none", "--format", "github").out
    assert annotated.startswith("::warning title=nothing checked::")
    assert "nothing was checked" not in inspector("check", path).err


def test_what_a_session_holds_is_no_markup_in_junit_and_markdown(tmp_path):
    path = tmp_path / "a|b<i>&c.jsonl"
    word = 'stop]]> "<script>" | `x` [l](http://x) @me $a$\n| row'
    path.write_bytes(lines(pair_of([user("x")], chat("All", word), max_tokens=9)))
    report = check_file(path)
    (problem,) = report.problems
    (suite,) = ElementTree.fromstring(FORMS["junit"](report))
    assert suite.get("name") == str(path)
    assert suite[0].find("failure").get("message") == problem.message
    assert "<script>" in problem.message
    table = FORMS["md"](report)
    assert re.search(r"(?<!\\)[<@$]|(?<!\\):(?=//)", table) is None, "no tag, mention, formula or link"
    (row,) = [line for line in table.splitlines() if line.startswith("| ▲")]
    assert row.replace("\\|", "").count("|") == 5
    assert row.replace("\\`", "").count("`") == 2


# -- the command ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "code"), [
    (("a.jsonl",), 0), (("b.jsonl",), 1), (("b.jsonl", "--fail-on", "never"), 0), (("b.jsonl", "notes.txt"), 2),
    (("b.jsonl", "--select", "cut-call-*"), 0), (("b.jsonl", "--ignore", "answer-cut,call-cut"), 0),
    (("b.jsonl", "--filter", "held"), 1), (("b.jsonl", "--filter", "stop:error"), 0), ((".",), 1), (("gone.jsonl",), 2),
])
def test_exit_codes(inspector, folder, monkeypatch, words, code):
    monkeypatch.chdir(folder)
    assert inspector("check", *words).code == code


def test_a_filter_that_no_turn_passes_is_named(inspector, folder, monkeypatch):
    monkeypatch.chdir(folder)
    said = inspector("check", "b.jsonl", "--filter", "zebra")
    assert said.err.splitlines() == ['inspector: --filter: "zebra" as text',
                                     "inspector: no turn passes the filter zebra, so nothing was checked"]
    assert "as text" not in inspector("check", "b.jsonl", "--filter", "held").err


@pytest.mark.parametrize("words", [("--select", "nothing"), ("--filter", "stop:"), ("--baseline", "a.jsonl"),
                                   ("--baseline", "gone"), ("--format", "yaml")])
def test_a_wrong_word_is_one_line_and_2(inspector, folder, monkeypatch, words):
    monkeypatch.chdir(folder)
    said = inspector("check", "b.jsonl", *words)
    assert said.code == 2
    assert "Traceback" not in said.err
    assert said.err


def test_warnings_fail_where_that_is_wanted(inspector, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(pair_of(ASKS, chat("All of it.", None), max_tokens=50)))
    assert inspector("check", path).code == 0
    said = inspector("check", path, "--fail-on", "warning")
    assert (said.code, "▲ warning " in said.out, said.out.count("1 warning · ")) == (1, True, 1)
    path.write_bytes(lines(*cut_text(*PARTS)))
    words = ("check", path, "--select", "cut-and-continued", "--fail-on")
    noted = inspector(*words, "warning")
    assert (noted.code, "· info " in noted.out) == (0, True)
    assert inspector(*words, "info").code == 1


def test_a_file_of_a_folder_that_may_not_be_read_is_no_mere_other_file(inspector, folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("notes.txt"))
    said = inspector("check", folder, "--jobs", "1", "--fail-on", "never")
    assert (said.code, "notes.txt: cannot be read: Permission denied" in said.err) == (2, True)


def test_a_baseline_that_is_nested_too_deep_is_refused_in_one_line(inspector, folder):
    (folder / "deep.json").write_text("[" * 100_000)
    said = inspector("check", folder / "b.jsonl", "--baseline", folder / "deep.json")
    assert (said.code, said.err.count("\n"), "invalid JSON" in said.err) == (2, 1, True)


def test_a_baseline_overwrites_nothing_but_a_baseline(inspector, folder):
    session = folder / "b.jsonl"
    before = session.read_bytes()
    said = inspector("check", session, "--write-baseline", session)
    assert (said.code, said.err) == (2, f"inspector: --write-baseline {session}: exists and is no baseline; expected "
                                        "another path\n")
    assert session.read_bytes() == before
    known = folder / "known.json"
    known.touch()
    assert [inspector("check", session, "--write-baseline", known).code for _ in range(2)] == [0, 0]
    made = known.read_text("utf-8")
    assert inspector("check", session, "--write-baseline", "-").out == commands.ascii_json(made)
    said = inspector("check", session, "--write-baseline", "/dev/full")
    why = "--write-baseline /dev/full: cannot be written: No space left on device"
    assert (said.code, said.err) == (2, f"inspector: {why}\n")


def test_a_file_name_that_is_no_text_or_that_moves_the_cursor_is_harmless(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"a\xff\x1b[31m.jsonl")
    with open(path, "wb") as file:
        file.write(lines(LOST))
    report = check_file(os.fsdecode(path))
    for form, make in FORMS.items():
        assert "\x1b" not in make(report), form
    (run,) = json.loads(FORMS["sarif"](report))["runs"]
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.endswith("/a%FF%1B%5B31m.jsonl")


def test_rules_of_which_none_is_left_are_refused(inspector, folder):
    said = inspector("check", folder / "b.jsonl", "--select", "answer-*", "--ignore", "answer-*")
    assert (said.code, said.out) == (2, "")
    assert said.err == "inspector: --ignore leaves out every rule, so nothing would be checked\n"


def test_a_baseline_survives_moved_lines_and_a_new_name(inspector, folder):
    known = folder / "known.json"
    said = inspector("check", folder / "b.jsonl", "--write-baseline", known)
    assert (said.code, said.out) == (0, "")
    assert inspector("check", folder / "b.jsonl", "--baseline", known).code == 0
    moved = folder / "moved.jsonl"
    moved.write_bytes(lines(WHOLE, WHOLE, HELD, LOST))
    assert inspector("check", moved, "--baseline", known).code == 0
    moved.write_bytes(lines(HELD, LOST, pair_of([user("Four?")], chat("Another half", "length"), max_tokens=7)))
    said = inspector("check", moved, "--baseline", known, "--format", "json")
    assert said.code == 1
    assert [each["turn"] for each in json.loads(said.out)["problems"]] == [3]
    assert f"inspector: {known}: known problems left out: 2\n" in said.err


def test_no_credential_gets_into_a_report(inspector, tmp_path):
    key = "sk-proj-abcdefghij0123456789abcdefghij"
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(pair_of([user("x")], {"error": {"message": f"bad key {key}", "type": "auth"}}, status=401)))
    for form in FORMS:
        said = inspector("check", path, "--format", form, "--fail-on", "never")
        assert key not in said.out
        assert said.code == 0
        assert "provider-error" in said.out


def test_standard_input_is_checked(inspector):
    said = inspector("check", "-", stdin=lines(LOST))
    assert said.code == 1
    assert "answer-cut" in said.out


# -- the rules ------------------------------------------------------------------------------------------------------


def test_a_rule_is_explained_and_all_are_listed(inspector):
    said = inspector("rule", "answer-cut")
    assert said.out.startswith("answer-cut (error): ")
    for part in (RULES["answer-cut"].about, RULES["answer-cut"].example, RULES["answer-cut"].fix):
        assert part in said.out
    assert [line.split()[0] for line in inspector("rule").out.splitlines()] == list(RULES)
    assert [each["id"] for each in json.loads(inspector("rule", "--json").out)] == list(RULES)
    assert inspector("rule", "answer-cat").code == 2
    assert "did you mean answer-cut?" in inspector("rule", "answer-cat").err


def test_the_text_is_readable_at_eighty_columns(folder):
    report = check_file(folder / "b.jsonl")
    places = {place(problem) for problem in report.problems}
    lines = FORMS["text"](report).splitlines()
    assert places
    assert [line for line in lines if len(line) > 80 and line.strip() not in places] == []


def test_exchanges_in_a_format_that_is_not_read_are_named(tmp_path):
    old = {"model": "command", "prompt": "hi", "max_tokens": 3}
    body = {"id": "g", "generations": [{"id": "g1", "text": " Hi", "finish_reason": "MAX_TOKENS"}], "prompt": "hi"}
    path = tmp_path / "old.jsonl"
    path.write_bytes(lines(exchange(old, body, url="https://api.cohere.com/v1/generate"), WHOLE))
    report = check_file(path)
    assert report.unread == {"Cohere generate": 1}
    words = "1 exchange in formats that are not read: Cohere generate (1)"
    assert words in " ".join(FORMS["text"](report).split())
    assert words in FORMS["md"](report)
    assert FORMS["github"](report) == f"::warning title=not read::{words}\n"
    assert json.loads(FORMS["json"](report))["files"][0]["unread"] == {"Cohere generate": 1}
    (run,) = json.loads(FORMS["sarif"](report))["runs"]
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": [
        {"level": "warning", "message": {"text": words}}]}]


def test_files_without_a_turn_are_counted(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(WHOLE))
    (tmp_path / "b.har").write_text(json.dumps({"log": {"version": "1.2", "entries": []}}))
    report = merge([check_file(tmp_path / "a.jsonl"), check_file(tmp_path / "b.har")])
    assert " ".join(FORMS["text"](report).split()).endswith("2 files, 1 of them without a turn")


@pytest.mark.parametrize(("variables", "content", "named"), [
    ({}, "", ""),
    ({"LOOP_INSPECTOR_THEME": "inspector-light"}, "[prices.m]\ninput = 1.0\noutput = 1.0\n", ""),
    ({"LOOP_INSPECTOR_POLICY": "zoo-before"}, "", "policy ($LOOP_INSPECTOR_POLICY)"),
    ({"LOOP_INSPECTOR_SEAM": "concat"}, "[agent]\ncontinuation_max_attempts = 0\nmax_tool_steps = 3\n",
     "continuation_max_attempts, max_tool_steps ({file}) and seam ($LOOP_INSPECTOR_SEAM)"),
    ({}, "no TOML", ""),
], ids=["none", "only looks and prices", "a variable", "a file and a variable", "an invalid file"])
def test_check_names_the_configured_values_under_which_it_does_not_judge(
    inspector, tmp_path, monkeypatch, variables, content, named
):
    """The sample is CUT, COMPLETED by default, and LIMIT REACHED without continuations."""
    file = tmp_path / "config.toml"
    file.write_text(content)
    monkeypatch.setenv("LOOP_INSPECTOR_CONFIG", str(file))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    said = inspector("check", "sample:02")
    line = "judged under the default settings, as on every machine: explain and the app use "
    assert said.err == (f"inspector: {line}{named.format(file=file)}\n" if named else "")
    assert "1 turn, 0 not complete" in said.out

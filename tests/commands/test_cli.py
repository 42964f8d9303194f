"""The command line: what it prints, where, and with which exit code; never a traceback."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from click import UsageError

from inspector import cli, commands
from inspector.commands import explain_follow
from inspector.config.settings import Settings
from inspector.export import FORMS
from inspector.report.table_rows import LOOK
from inspector.sessions.native import SessionWriter
from inspector.whatif import tree
from loop_core.formats import FORMATS
from tests.scenes.command import exit_of
from tests.scenes.recordings import (
    PARTS,
    bodiless_har,
    chat,
    cut_call_ran,
    cut_text,
    lines,
    pair_of,
    rounds_of_tools,
    user,
)
from tests.scenes.transcripts import block, claude, prompt, text

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = str(ROOT / "sample_sessions" / "01-cut-call-and-long-answer.session.jsonl")


def spawn(*arguments, stdin=b"", **environment):
    """The same in a process of its own, as it is installed."""
    return subprocess.run(
        [sys.executable, "-m", "inspector", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=30,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.fixture
def in_encoding(monkeypatch, capsys):
    """The exit code and the bytes of a command that writes to a standard output of this encoding, and nowhere else."""

    def run(encoding, *words):
        out = io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding=encoding))
            code = exit_of(patch, *map(str, words))
            sys.stdout.flush()
            assert capsys.readouterr() == ("", "")
            return code or 0, out.getvalue()

    return run


@pytest.fixture
def cut(tmp_path):
    """A file in which an agent ran a cut call."""
    path = tmp_path / "cut.jsonl"
    path.write_bytes(lines(*cut_call_ran()))
    return path


# -- explain ----------------------------------------------------------------------------------------------------------


def test_the_module_of_the_command_line_runs_as_the_command_does():
    """A CI job that calls the wrong module must not pass by doing nothing."""
    done = subprocess.run([sys.executable, "-m", "inspector.cli", "check", "missing.har"], cwd=ROOT,
                          capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr == "inspector: missing.har: cannot be read: No such file or directory\n"


def test_explain_says_the_verdict_first_and_exits_0_whatever_it_finds(inspector, cut):
    said = inspector("explain", cut)
    assert said.code == 0
    assert said.out.startswith("CUT CALL RUN  turn 1 of 1")
    assert said.err == ""


def test_explain_folds_rounds_of_tools_without_a_warning(inspector, tmp_path):
    path = tmp_path / "rounds.jsonl"
    # The call of the fourth ran although it is cut, which is a warning.
    path.write_bytes(lines(*rounds_of_tools(7, chat("Half of the", "length"), cut=3)))
    folded, whole = inspector("explain", path).out, inspector("explain", "--all", path).out
    shown = re.findall(r"^  (responses? [0-9 to]+)", folded, re.MULTILINE)
    assert shown == ["responses 1 to 3", "response 4 ", "responses 5 to 7", "response 8 "]
    assert '  responses 1 to 3: 3 calls READY and answered, raw "tool_calls"; --all shows each response\n' in folded
    assert re.findall(r"^  response ([0-9]+)", whole, re.MULTILINE) == [*"12345678"]
    assert inspector("explain", "--turn", "1", path).out.count("  response ") == 8


def test_explain_as_json_is_one_document_in_ascii(inspector, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines(pair_of([user("Grüße")], chat("Schöne Grüße \u202e \x1b[31m 🦊"))))
    said = inspector("explain", "--json", path)
    assert said.out.isascii()
    assert "\x1b" not in said.out
    made = json.loads(said.out)
    assert made["schema"] == "loop-inspector/explain/2"
    assert made["responses"][0]["text"] == "Schöne Grüße \u202e \x1b[31m 🦊"
    assert (said.code, said.err) == (0, "")


def test_many_files_and_folders_in_one_call(inspector, tmp_path, cut):
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "one.jsonl").write_bytes(lines(pair_of([user("one")], chat("one"))))
    (folder / "notes.txt").write_text("nothing to see")
    said = inspector("explain", "--json", cut, folder, SAMPLE)
    made = json.loads(said.out)
    assert said.code == 0
    assert [given["path"] for given in made["inputs"]] == [str(cut), str(folder), str(folder / "one.jsonl"), SAMPLE]
    assert [given["responses"] for given in made["inputs"]] == [2, 0, 1, 8]
    assert [skipped["entry"] for skipped in made["inputs"][1]["skipped"]] == [0]
    assert len(made["responses"]) == 11
    assert len({turn["id"] for turn in made["turns"]}) == len(made["turns"])


def test_a_named_file_that_is_unreadable_gives_2_after_the_rest_was_read(inspector, tmp_path, cut):
    missing = tmp_path / "missing.har"
    said = inspector("explain", "--json", missing, cut)
    made = json.loads(said.out)
    assert said.code == 2
    assert len(made["responses"]) == 2
    assert "No such file" in made["inputs"][0]["error"]
    assert said.err == f"inspector: {missing}: cannot be read: No such file or directory\n"


def test_standard_input(inspector):
    said = inspector("explain", "-", stdin=lines(*cut_call_ran()))
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("CUT CALL RUN")


def test_a_path_opens_from_where_one_is(inspector, cut, monkeypatch):
    monkeypatch.chdir(cut.parent)
    made = json.loads(inspector("explain", "--json", cut.name).out)
    assert {response["path"] for response in made["responses"]} == {cut.name}
    assert Path(made["responses"][0]["path"]).is_file()


def test_a_policy_changes_what_the_machine_does(inspector, cut):
    assert "EvaluateStop > RepairPending" in inspector("explain", cut).out
    assert "EvaluateStop > ExecuteTools" in inspector("explain", "--policy", "pi-presence", cut).out


def test_an_api_and_a_profile_can_be_given(inspector, tmp_path):
    path = tmp_path / "error.json"
    path.write_text(json.dumps({"error": {"message": "no", "type": "server_error", "code": None}}))
    said = inspector("explain", "--json", "--api", "openai_chat", "--profile", "vllm", path)
    (response,) = json.loads(said.out)["responses"]
    assert (response["api"], response["profile"]) == ("openai_chat", "vllm")


# -- replay -----------------------------------------------------------------------------------------------------------


def test_replay_with_more_attempts(inspector, tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_bytes(lines(*cut_text(*PARTS)))
    said = inspector("replay", path, "--set", "continuation_max_attempts=5")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[0] == "attempts=5: turn 1 ends in Complete"
    made = json.loads(inspector("replay", path, "--set", "continuation_max_attempts=5", "--json").out)
    assert (made["schema"], made["name"]) == ("loop-inspector/replay/2", "attempts=5")
    assert made["turns"][0]["after"]["terminal_reason"] == "completed"


def test_replay_takes_many_settings_and_a_policy(inspector, cut):
    said = inspector(
        "replay", cut, "--set", "max_tokens=80", "--set", "max_tool_steps=2", "--policy", "pi-presence", "--json"
    )
    assert said.code == 0
    assert json.loads(said.out)["name"] == "max_tool_steps=2, max_tokens=80, policy=pi-presence"
    assert said.out.isascii()


def test_replay_of_nothing_changed(inspector, cut):
    assert inspector("replay", cut).out.startswith("unchanged: nothing changes")


def test_replay_exits_2_for_what_it_could_not_read(inspector, cut, tmp_path):
    said = inspector("replay", cut, tmp_path / "missing")
    assert said.code == 2
    assert "unchanged" in said.out
    assert said.err.count("\n") == 1


# -- samples and the rest ---------------------------------------------------------------------------------------------


def test_samples_lists_paths_that_open(inspector):
    said = inspector("samples")
    rows = [line.split("  ", 1) for line in said.out.splitlines()]
    assert said.code == 0
    assert len(rows) >= 14
    assert all(Path(path).is_file() and title for path, title in rows)


def test_the_version(inspector):
    from inspector import __version__

    said = inspector("--version")
    assert (said.code, said.err) == (0, "")
    assert said.out.strip() == f"loop-inspector, version {__version__}"


@pytest.mark.parametrize(
    "command",
    [[], ["view"], ["explain"], ["replay"], ["policies"], ["branches"], ["samples"]],
    ids=lambda c: " ".join(c) or "-",
)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_fits_a_terminal_of_80_columns(inspector, monkeypatch, command, option):
    monkeypatch.setenv("COLUMNS", "300")
    said = inspector(*command, option)
    assert (said.code, said.err) == (0, "")
    assert "Usage:" in said.out
    assert [line for line in said.out.splitlines() if len(line) > 80] == []


def test_the_app_is_asked_for_by_a_path_alone_and_says_that_it_needs_a_terminal(inspector, cut):
    said = inspector(cut)
    assert said.code == 2
    assert said.out == ""
    assert "needs a terminal" in said.err
    assert "inspector explain" in said.err
    assert inspector("--policy", "pi-presence", cut).code == 2


@pytest.mark.parametrize(("word", "meant"), [
    ("diff", "compare"), ("find", "search"), ("grep", "search"), ("lint", "check"), ("open", "view"),
    ("show", "explain"), ("simulate", "replay"), ("stats", "check --stats"),
])
def test_a_word_of_other_programs_names_the_command_and_is_not_taken_for_a_file(inspector, word, meant):
    said = inspector(word, "a.har", "b.har")
    assert said.code == 2
    assert f"{word!r} is neither a command nor a file; did you mean {meant}?" in said.err


@pytest.mark.parametrize(("word", "meant"), [("explian", "explain"), ("repaly", "replay"), ("tnue", "tune")])
def test_a_misspelt_command_is_not_taken_for_a_file(inspector, word, meant):
    said = inspector(word, "some.har")
    assert (said.code, said.out) == (2, "")
    assert f"{word!r} is neither a command nor a file; did you mean {meant}?" in said.err


def test_a_file_that_is_called_nearly_like_a_command_is_opened(inspector, cut, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("explian").write_bytes(Path(cut).read_bytes())
    assert "needs a terminal" in inspector("explian").err


@pytest.mark.parametrize(("words", "wanted"), [
    (["ex"], {"explain", "export"}),
    (["explain", "--api", "openai_c"], {"openai_chat", "openai_completions"}),
    (["explain", "--policy", "zoo"], {"zoo-before", "zoo-after"}),
    (["explain", "--profile", "llama"], {"llama_cpp"}),
    (["--pol"], {"--policy"}),
])
def test_a_shell_completes_commands_options_and_names(words, wanted):
    from click.shell_completion import BashComplete

    shell = BashComplete(cli.main, {}, "inspector", "_INSPECTOR_COMPLETE")
    found = {item.value for item in shell.get_completions(words[:-1], words[-1]) if item.type == "plain"}
    assert found == wanted


def test_a_shell_completes_files_where_a_command_may_stand():
    from click.shell_completion import BashComplete

    shell = BashComplete(cli.main, {}, "inspector", "_INSPECTOR_COMPLETE")
    items = shell.get_completions([], "e")
    assert (items[0].type, items[1].value) == ("file", "explain")  # bash forgets what stands before the files


# -- bad input --------------------------------------------------------------------------------------------------------

HAR = json.loads(bodiless_har())


def cut_har():
    entries = [HAR["log"]["entries"][0]] * 3
    whole = json.dumps({"log": {**HAR["log"], "entries": entries}})
    return whole[: int(len(whole) * 0.9)].encode()


BAD = {
    "empty": (b"", "empty"),
    "binary": (bytes(range(256)) * 64, "binary data at byte"),
    "text": (b"just some notes\n", "text of no session format"),
    "invalid UTF-8": ("Some notes about the Gru\u00df".encode("latin-1"), "invalid UTF-8 at byte 24"),
    "other JSON": (b'{"name": "package"}', "JSON of no API"),
    "a HAR cut at once": (b'{"log": {"version": "1.2", "entr', "HAR"),
    "a format that is known": (b'{"finishReason": "length", "usage": {}}', "result of Vercel's AI SDK: not read yet"),
    "what Cline prints": (b'{"ts": "2026-01-01T00:00:00Z", "type": "hook_event", "hookEventName": "agent_start", '
                          b'"agentId": "a", "taskId": "c", "parentAgentId": null}\n',
                          "output of cline --json: not read yet"),
    "an agent of AutoGen": (b'{"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": []}}',
                            "state of an agent of AutoGen: not read yet"),
    "what nanocoder writes": (b'{"id": "7f", "title": "go", "createdAt": "2026-11-29T11:53:29.910Z", "lastAccessedAt": '
                              b'"2026-11-29T11:53:29.910Z", "messageCount": 1, "provider": "lo", "model": "m", '
                              b'"workingDirectory": "/w", "messages": [{"role": "user", "content": "go"}]}',
                              "session of nanocoder: not read yet"),
    "a team of AutoGen": (b'{"type": "TeamState", "version": "1.0.0", "agent_states": {}}',
                          "state of a team of AutoGen: not read yet"),
}


@pytest.mark.parametrize("command", ["explain", "replay"])
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line_and_exit_2(inspector, tmp_path, command, name):
    data, what = BAD[name]
    path = tmp_path / "bad.file"
    path.write_bytes(data)
    said = inspector(command, path)
    assert said.code == 2
    assert said.err.startswith(f"inspector: {path}: ")
    assert what in said.err
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.out + said.err
    assert said.out.startswith(f"NOTHING READ  {path}: ")
    assert said.out.count(what) == 1, "the reason is given once"
    assert (f"\nnot read {path}\n" in said.out) is (command == "explain")


def test_bad_input_from_standard_input_is_named_so(inspector):
    said = inspector("explain", "-", stdin=b"")
    assert said.code == 2
    assert said.err.startswith("inspector: standard input: empty")


def test_a_folder_without_sessions(inspector, tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    said = inspector("explain", tmp_path)
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert "no session in this folder (files looked at: 1)" in said.err


def test_a_har_that_was_cut_shows_what_was_read(inspector, tmp_path):
    path = tmp_path / "cut.har"
    path.write_bytes(cut_har())
    said = inspector("explain", "--json", path)
    made = json.loads(said.out)
    assert said.code == 2
    assert len(made["responses"]) == 3
    assert made["responses"][2]["stop_detail"] == "recording_cut"
    assert made["verdict"]["id"] == "recording_cut"
    assert made["inputs"][0]["error"]
    assert said.err.count("\n") == 1


def test_a_line_of_20_megabytes(inspector, tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_bytes(b'{"x": "' + b"y" * 20_000_000 + b'"}')
    said = inspector("explain", path)
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert len(said.err) < 1000
    assert len(said.out) < 3000


def test_a_wrong_api_for_the_content(inspector, tmp_path):
    path = tmp_path / "body.json"
    path.write_text(json.dumps(chat("hello")))
    said = inspector("explain", "--api", "anthropic_messages", path)
    assert said.code == 2
    assert "openai_chat" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["explain", "--api", "telepathy"], "unknown API 'telepathy'"),
        (["explain", "--profile", "nobody"], "unknown profile 'nobody'"),
        (["explain", "--policy", "hope"], "unknown policy 'hope'"),
        (["replay", "--policy", "hope"], "unknown policy 'hope'"),
        (["replay", "--set", "continuation_max_attempts"], "expected NAME=VALUE"),
        (["replay", "--set", "hope=3"], "unknown setting 'hope'"),
        (["replay", "--set", "continuation_max_attempts=many"], "'many' is not a whole number"),
        (["replay", "--set", "continuation_max_attempts=100000"], "not a whole number from 0 to 1,000"),
        (["replay", "--set", "max_tokens=0"], "max_tokens: '0'"),
        (["--policy", "hope"], "unknown policy 'hope'"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_2(inspector, cut, arguments, what):
    said = inspector(*arguments, cut)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("inspector: ")
    assert what in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(("arguments", "what"), [
    (["explain"], "inspector explain: missing argument 'PATH…'; see `inspector explain --help`"),
    (["schema"], "inspector schema: missing argument '{explain|session}'. Choose from: explain, session; see "
                 "`inspector schema --help`"),
    (["run"], "inspector run: missing option '--api'; see `inspector run --help`"),
    (["run", "--api", "nope", "--model", "m"], f"inspector: unknown API 'nope'; expected one of {', '.join(FORMATS)}"),
    (["samples", "more"], "inspector samples: got unexpected extra argument (more)"),
    (["check", "--fail-on", "x", "a.har"],
     "inspector check: invalid value for '--fail-on': 'x' is not one of 'error', 'warning', 'info', 'never'"),
    (["export", "a.har"], f"inspector export: --to is missing: one of {', '.join(FORMS)}"),
    (["hope", "--help"], "inspector: 'hope' is neither a command nor a file; `inspector --help` lists the commands"),
])
def test_wrong_usage_is_one_line_that_says_where_and_what_was_expected(inspector, arguments, what):
    said = inspector(*arguments)
    assert (said.code, said.out, said.err) == (2, "", f"{what}\n")


@pytest.mark.parametrize(("arguments", "before", "after"), [  # in between, versions of click differ
    (["explain", "--zzz"], "inspector explain: no such option", "; see `inspector explain --help`\n"),
    (["--folow"], "inspector view: no such option", "'--follow'?\n"),
])
def test_an_unknown_option_is_one_line_with_a_hint(inspector, arguments, before, after):
    said = inspector(*arguments)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert (said.err.startswith(before), said.err.endswith(after)) == (True, True)


@pytest.mark.parametrize(("arguments", "what"), [
    (["explain", "--turn", "x"], "'--turn': 'x' is not a whole number from 1 up"),
    (["explain", "--turn", "0"], "'--turn': '0' is not a whole number from 1 up"),
    (["tune", "--jobs", "65"], "'--jobs': '65' is not a whole number from 1 to 64"),
    (["serve", "--port", "none"], "'--port': 'none' is not a whole number from 0 to 65,535"),
    (["serve", "--idle", "soon"], "'--idle': 'soon' is not a number from 0 to 10,000"),
])
def test_a_wrong_number_says_what_is_expected(inspector, arguments, what):
    said = inspector(*arguments, "sample:01")
    assert said.code == 2
    assert f"invalid value for {what}\n" in said.err


def test_a_session_whose_limits_do_not_exist_hides_no_other(inspector, tmp_path, cut):
    path = tmp_path / "odd.session.jsonl"
    rows = Path(SAMPLE).read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(rows[0] + '{"type": "limits", "values": {"hope": 3}}\n' + "".join(rows[1:]), encoding="utf-8")
    said = inspector("explain", "--json", path, cut)
    made = json.loads(said.out)
    assert said.code == 0
    assert len(made["responses"]) == 10
    assert "unknown limit 'hope'" in made["inputs"][0]["notices"][0]


def test_a_hostile_file_name_is_inert(inspector, tmp_path):
    path = os.fsdecode(os.fsencode(str(tmp_path)) + b"/a\x1b[31m\xff\nb.har")
    Path(path).write_bytes(b"")
    said = inspector("explain", path)
    assert said.code == 2
    assert "\x1b" not in said.out + said.err
    assert said.err.count("\n") == 1
    assert inspector("explain", "--json", path).out.isascii()


def test_what_an_error_quotes_is_inert(inspector, cut):
    said = inspector("explain", "--api", "\x1b[31m\u202e\nx", cut)
    assert said.code == 2
    assert "\x1b" not in said.err
    assert "\u202e" not in said.err
    assert said.err.count("\n") == 1


# -- as a process -----------------------------------------------------------------------------------------------------


def test_python_dash_m_piped_without_textual(cut):
    ran = spawn("explain", "--json", "-", stdin=cut.read_bytes())
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert json.loads(ran.stdout)["turns"][0]["final_state"] == "Unrecorded"


def test_the_app_without_a_terminal_does_not_wait_for_keys():
    ran = spawn()
    assert ran.returncode in (0, 2)
    assert b"Traceback" not in ran.stderr
    assert b"\x1b" not in ran.stdout


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_leaves_early_is_no_error(tmp_path, options):
    path = tmp_path / "many.jsonl"
    text = "A long answer, line by line.\n" * 400
    path.write_bytes(b"".join(lines(pair_of([user(f"question {n}")], chat(text))) for n in range(60)))
    process = subprocess.Popen(
        [sys.executable, "-m", "inspector", "explain", *options, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout.read(100)
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) == 0
    assert error == b""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_of_another_encoding_gets_escapes_and_no_traceback(cut, encoding, tmp_path, in_encoding):
    path = tmp_path / "other.jsonl"
    path.write_bytes(lines(pair_of([user("compare")], chat("It is ≥ 80."))))
    code, out = in_encoding(encoding, "explain", path)
    assert (code, b"\\u2265 80" in out) == (0, True)  # none of these has a sign for it
    for words in (("replay", cut), ("samples",), ("check", "--help")):
        assert in_encoding(encoding, *words)[0] == 0, words
    if encoding == "ascii":  # the same in a process of its own
        ran = spawn("explain", path, PYTHONIOENCODING=encoding)
        assert (ran.returncode, ran.stderr, b"\\u2265 80" in ran.stdout) == (0, b"", True)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
def test_an_input_for_which_the_memory_is_too_small_is_no_finding_and_no_traceback(tmp_path):
    path = tmp_path / "large.jsonl"
    path.write_bytes(lines(pair_of([user("say w")], chat("long"))).replace(b"long", b"w " * 30_000_000))
    ran = subprocess.run(["sh", "-c", f"ulimit -v 150000; exec {sys.executable} -m inspector check {path}"],
                         check=False, capture_output=True, cwd=ROOT)
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr == b"inspector: out of memory: --max-bytes N limits what is read of an input\n"


def test_a_working_folder_that_was_removed_is_named(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    ran = subprocess.run(["sh", "-c", f"cd {gone} && rmdir {gone} && exec {sys.executable} -m inspector explain a"],
                         check=False, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (ran.returncode, ran.stderr) == (2, b"inspector: the working folder: No such file or directory\n")


# -- branches ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def long(tmp_path, monkeypatch):
    """A text that is cut four times, in a place where branches may be kept."""
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "data"))
    path = tmp_path / "long.jsonl"
    path.write_bytes(lines(*cut_text(*PARTS)))
    return path


def test_replay_from_a_step_on(inspector, long):
    said = inspector("replay", long, "--set", "continuation_max_attempts=1", "--from-step", "9")
    # Steps 1 to 8 stay: two continuations were asked for by then, and the third is refused at step 10.
    assert (said.code, said.err) == (0, "")
    ends = "turn 1 ends in AbortPartial, retry_limit, as before, with another text"
    assert said.out.splitlines()[0] == f"attempts=1 from step 9: {ends}"
    assert "first difference: step 10, RequestContinuation (under_limits) became AbortPartial (retry_limit)" in said.out
    assert "attempts 2 of 1" in said.out
    same = inspector("replay", long, "--set", "continuation_max_attempts=1@9")
    assert same.out == said.out


def test_what_was_saved_is_listed_compared_and_run_again(inspector, long, tmp_path):
    assert inspector("branches", long).out.startswith("original")
    assert not (tmp_path / "data").exists()
    one = inspector("replay", long, "--set", "continuation_max_attempts=5", "--save")
    two = inspector("replay", long, "--branch", "attempts=5", "--set", "max_tool_steps=2", "--from-step", "4", "--save")
    assert (one.err, two.err) == ("", "")
    assert two.out.startswith("max_tool_steps=2 from step 4: nothing changes")
    said = inspector("branches", long)
    rows = said.out.splitlines()
    wanted = ("original  ", "└ attempts=5  ", "  └ max_tool_steps=2 from step 4  ")
    assert [row.startswith(begin) for row, begin in zip(rows, wanted, strict=True)] == [True] * 3
    assert rows[1].endswith("turn 1 ends in Complete; differs at step 13")
    made = json.loads(inspector("branches", long, "--json").out)
    assert made["schema"] == "loop-inspector/branches/1"
    assert [each["path"] for each in made["branches"]] == ["attempts=5", "attempts=5 / max_tool_steps=2 from step 4"]
    assert made["branches"][1]["parent"] == made["branches"][0]["key"]
    again = inspector("replay", long, "--branch", made["branches"][0]["key"])
    assert again.out == one.out
    against = inspector("replay", long, "--set", "continuation_max_attempts=1", "--against", "attempts=5")
    assert against.out.splitlines()[0] == "attempts=1: turn 1 ends in AbortPartial, retry_limit"
    assert "Complete became AbortPartial, retry_limit" in against.out
    for each in made["branches"]:
        words = shlex.split(each["command"])
        assert inspector(*words[1:]).code == 0


def test_a_run_is_saved_without_the_other_saved_runs(inspector, long, monkeypatch):
    for attempts in ("2", "3"):
        inspector("replay", long, "--set", f"continuation_max_attempts={attempts}", "--save")
    made, again = [], tree.branch
    monkeypatch.setattr(tree, "branch", lambda *given: made.append(given) or again(*given))
    for _ in range(2):
        said = inspector("replay", long, "--set", "continuation_max_attempts=5", "--save")
        assert (said.code, said.err) == (0, "")
    assert len(made) == 2, "each time the run that is saved"
    rows = inspector("branches", long).out.splitlines()
    assert [row.split()[1] for row in rows[1:]] == ["attempts=2", "attempts=3", "attempts=5"]


@pytest.mark.parametrize(("options", "what"), [
    (["--from-step", "99", "--set", "max_tokens=5"], "step 99: this run has the steps 1 to"),
    (["--branch", "hope"], "there is no run 'hope'; the runs are original"),
    (["--against", "hope"], "there is no run 'hope'"),
    (["--set", "max_tokens=5@x"], "expected the number of a step after @"),
    (["--set", "profile=nobody"], "profile: 'nobody' is not one of"),
])
def test_a_run_that_does_not_exist_is_one_line_and_exit_2(inspector, long, options, what):
    said = inspector("replay", long, *options)
    assert (said.code, said.out) == (2, "")
    assert what in said.err
    assert said.err.count("\n") == 1


def test_branches_of_a_newer_program_are_refused_and_left_alone(inspector, long, tmp_path):
    inspector("replay", long, "--set", "max_tokens=9", "--save")
    (file,) = (tmp_path / "data" / "sessions").iterdir()
    file.write_text('{"loop_inspector_branches": 2}\n')
    for arguments in (["branches", long], ["replay", long, "--set", "max_tokens=9", "--save"]):
        said = inspector(*arguments)
        assert (said.code, said.out) == (2, "")
        assert "branches of version 2, written by a newer program: expected 1 at most" in said.err
    assert file.read_text() == '{"loop_inspector_branches": 2}\n'
    assert inspector("replay", long, "--set", "max_tokens=9").code == 0


def test_what_cannot_be_kept_is_one_note(inspector, long, tmp_path, monkeypatch):
    (tmp_path / "data").write_text("no folder")
    said = inspector("replay", long, "--set", "continuation_max_attempts=5", "--save")
    assert said.code == 2
    assert said.out.startswith("attempts=5: ")
    assert said.err.count("\n") == 1
    assert "cannot be" in said.err


def test_notes_marks_and_breakpoints_are_listed_inert(inspector, long):
    from inspector.sessions import open_paths
    from inspector.whatif.store import open_store

    store = open_store(open_paths([str(long)]), os.environ)
    store.mark("original", 6)
    store.note("original", 6, "look \x1b[31mhere\u202e")
    store.note("original", None, "all of it")
    store.breakpoint("state:Abort", False)
    said = inspector("branches", long)
    assert "mark  step 7\n" in said.out
    assert "note  the session: all of it\n" in said.out
    assert "breakpoint  state:Abort (off)\n" in said.out
    assert "\x1b" not in said.out
    assert "\u202e" not in said.out


@pytest.mark.parametrize(("redirected", "why"), [(">/dev/full", "No space left on device"), (">&-", "it is closed")])
@pytest.mark.parametrize("option", ["", "--json"])
def test_output_that_cannot_be_written_is_one_line(cut, redirected, why, option):
    line = f'"$0" -m inspector explain "$1" {option} {redirected}'
    done = subprocess.run(["sh", "-c", line, sys.executable, str(cut)], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (2, f"inspector: standard output: {why}\n")


def test_a_standard_input_that_is_closed_is_empty():
    done = subprocess.run(["sh", "-c", '"$0" -m inspector check - <&-', sys.executable], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stderr.partition(": expected")[0]) == (2, "inspector: standard input: empty")


@pytest.mark.parametrize("arguments", ["--help", "explain --help", "--version"])
def test_a_help_that_cannot_be_written_is_one_line(arguments):
    done = subprocess.run(["sh", "-c", f'"$0" -m inspector {arguments} >/dev/full', sys.executable], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "inspector: No space left on device\n")


@pytest.mark.parametrize("redirected", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize("arguments", ["explain /nowhere", "check /nowhere", "explain", "run --api x", "frobnicate"])
def test_a_standard_error_that_cannot_be_written_changes_no_exit_code(arguments, redirected):
    done = subprocess.run(["sh", "-c", f'"$0" -m inspector {arguments} {redirected}', sys.executable], cwd=ROOT,
                          capture_output=True, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize(("arguments", "code"), [
    ("check sample:08", 1), ("explain sample:08", 0), ("explain --json sample:08", 0), ("explain /nowhere", 2),
    ("--help", 0), ("--version", 0), ("explain --help", 0), ("explain --bogus", 2),
])
def test_the_exit_code_is_the_same_if_nobody_reads(arguments, code):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "inspector", *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, check=False)
    assert done.returncode == code
    assert b"Broken" not in done.stderr
    assert subprocess.run(command, cwd=ROOT, stdout=writer, stderr=writer, check=False).returncode == code
    os.close(writer)


@pytest.mark.parametrize("arguments", ["explain -", "check -"])
def test_ctrl_c_has_an_exit_code_of_its_own(arguments):
    with subprocess.Popen([sys.executable, "-m", "inspector", *arguments.split()], cwd=ROOT, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b" " * (1 << 18))  # more than a pipe holds: written once the program reads its input
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=30)
    assert (process.returncode, out, error.strip()) == (130, b"", b"inspector: interrupted")


HOSTILE = "Grüße 🦊 \x9b31m \u202e \x7f"


@pytest.mark.parametrize("arguments", [
    "check --format json", "check --format sarif", "check --format junit", "check --stats --format json",
    "export --to session --out -",
])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_what_programs_read_is_ascii_and_whole_in_any_encoding(tmp_path, arguments, encoding, in_encoding):
    path = tmp_path / "a é \x9b.jsonl"
    body = {"model": HOSTILE, "max_tokens": 9, "messages": [user(HOSTILE)]}
    path.write_bytes(lines({"request": body, "response": chat(HOSTILE, "length", model=HOSTILE)}))
    _, out = in_encoding(encoding, *arguments.split(), path)
    assert out.isascii()
    if "junit" in arguments:
        assert ElementTree.fromstring(out)[0].get("name") == str(path)
        return
    assert b"\x7f" not in out
    documents = [json.loads(line) for line in out.splitlines()] if "export" in arguments else [json.loads(out)]
    assert json.dumps(HOSTILE) in json.dumps(documents)


@pytest.mark.parametrize("name", ["explain", "session"])
def test_a_schema_is_printed(inspector, name):
    said = inspector("schema", name)
    assert said.code == 0
    made = json.loads(said.out)
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert made["title"]


def test_a_schema_that_is_not_there_is_refused(inspector):
    said = inspector("schema", "nothing")
    assert said.code == 2
    assert "explain" in said.err


# -- what is not there -------------------------------------------------------------------------------------------------


def test_an_export_of_nothing_writes_no_file(inspector, tmp_path):
    said = inspector("export", tmp_path / "nope.har", "--to", "html", "--out", tmp_path / "out")
    assert said.code == 2
    assert "No such file" in said.err
    assert not (tmp_path / "out").exists()


def test_a_sample_can_be_followed_and_what_does_not_exist_cannot(inspector, tmp_path):
    assert commands.followed_paths(["sample:08"])[0].endswith("08-router-says-tool-calls.session.jsonl")
    said = inspector("explain", "--follow", tmp_path / "none")
    assert said.code == 2
    assert "--follow: expected existing files or folders;" in " ".join(said.err.split())
    with pytest.raises(UsageError, match=r"expected existing files; .* is a folder, whose table is"):
        commands.followed_paths([str(tmp_path)])


def acting_between_looks(monkeypatch, acts) -> list[float]:
    """Does one of the acts at each sleep of what follows, then Ctrl-C; the list gets the length of each sleep."""
    sleeps: list[float] = []
    waiting = iter(acts)

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        act = next(waiting, None)
        if act is None:
            raise KeyboardInterrupt
        act()

    monkeypatch.setattr(explain_follow, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: 100.0 * len(sleeps)))
    return sleeps


def test_a_folder_is_followed_with_a_line_for_each_turn_that_is_new_or_changes(tmp_path, monkeypatch, capsys):
    """Also a new file, one of a logger's folder and one that is not a session; Ctrl-C ends it."""
    cut = pair_of([user("One?")], chat("Half of it", "length"), max_tokens=7)
    first = tmp_path / "a.jsonl"
    first.write_bytes(lines(cut))
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "1.json").write_text(json.dumps(pair_of([user("P1")], chat("P1."))))
    done = pair_of([user("Two?")], chat("All of it."), max_tokens=50)

    def add() -> None:
        with first.open("ab") as file:
            file.write(lines(done))

    (tmp_path / "main.jsonl").write_text(claude(prompt("m"), block(text("M"), stop="end_turn")))

    def begin_subagent() -> None:
        (tmp_path / "main" / "subagents").mkdir(parents=True)
        (tmp_path / "main" / "subagents" / "agent-a.jsonl").write_text(
            claude(prompt("s"), block(text("S"), "msg_02", stop="max_tokens")))

    acts = [
        add, lambda: (tmp_path / "new.jsonl").write_bytes(lines(done, cut)),
        lambda: (tmp_path / "pairs" / "2.json").write_text(json.dumps(pair_of([user("P2")], chat("P2.", "length")))),
        lambda: (tmp_path / "notes.txt").write_text("no session"), lambda: first.write_bytes(lines(done, done)),
        begin_subagent, lambda: None]
    sleeps = acting_between_looks(monkeypatch, acts)
    view, watch = explain_follow.start([str(tmp_path)], None, None, Settings())
    watch()
    assert len(view.turns) == 3
    said = [line.removeprefix(f"{tmp_path}/").partition(" · ")[0] for line in capsys.readouterr().out.splitlines()]
    assert said == ["a.jsonl, turn 2: COMPLETE", "new.jsonl, turn 1: COMPLETE", "new.jsonl, turn 2: TRUNCATED",
                    "pairs/2.json, turn 2: TRUNCATED", "a.jsonl, turn 1: COMPLETE",
                    "main/subagents/agent-a.jsonl, turn 2: TRUNCATED"]
    assert set(sleeps) == {LOOK}, "it never looks without a rest"


def test_turns_that_a_followed_file_no_longer_holds_are_told_in_one_line(tmp_path, monkeypatch, capsys):
    """A file that shrinks, in a folder and alone, and one that is replaced by turns of other answers."""
    def turns(*ids):
        return claude(*(each for key in ids for each in (prompt(f"go {key}"), block(text("A"), key, stop="end_turn"))))

    shrinks, replaced = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    shrinks.write_text(turns("m1", "m2", "m3"))
    replaced.write_text(turns("m4", "m5"))
    acts = [lambda: shrinks.write_text(turns("m1")), lambda: replaced.write_text(turns("m6", "m5")),
            lambda: shrinks.write_text(turns("m1", "m7")), lambda: None]
    acting_between_looks(monkeypatch, acts)
    explain_follow.start([str(tmp_path)], None, None, Settings())[1]()
    why = "no longer in the file, which shrank or was replaced"
    assert [line.removeprefix(f"{tmp_path}/").partition(" · ")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"a.jsonl, turns 2 to 3: {why}", f"b.jsonl, turn 1: {why}", "a.jsonl, turn 2: COMPLETE"]
    shrinks.write_text(turns("m1", "m2", "m3"))
    acting_between_looks(monkeypatch, [lambda: shrinks.write_text(turns("m1", "m2")), lambda: None])
    explain_follow.start([str(shrinks)], None, None, Settings())[1]()
    assert capsys.readouterr().out == f"turn 3: {why}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a locked file cannot be read there")
@pytest.mark.parametrize("place", ["s.jsonl", "."])
def test_a_recorder_that_is_gone_changes_a_verdict_though_the_file_stays_as_it_is(
    tmp_path, monkeypatch, capsys, place
):
    writer = SessionWriter(tmp_path / "s.jsonl")
    writer.append({"type": "request", "id": "r1", "api": "openai_chat", "body": {"model": "m", "messages": []}})
    acting_between_looks(monkeypatch, [lambda: None, writer.close, lambda: None, lambda: None])
    view, watch = explain_follow.start([str(tmp_path / place)], None, None, Settings())
    watch()
    assert [turn.verdict.word for turn in view.turns] == ["UNDER WAY"]
    assert [line.partition("turn 1: ")[2].partition(" · ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "RECORDING CUT"]


def test_a_file_of_a_followed_folder_that_is_gone_or_damaged_is_told_once(tmp_path, monkeypatch, capsys):
    whole = claude(prompt("go"), block(text("A"), stop="end_turn"))
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(whole)
    second.write_text(whole.replace("msg_01", "msg_09"))
    acts = [
        lambda: first.write_bytes(b""), lambda: None, lambda: first.write_text(whole), lambda: first.write_bytes(b""),
        second.unlink, lambda: (tmp_path / "c.jsonl").write_text(claude(prompt("no answer yet"))), lambda: None]
    acting_between_looks(monkeypatch, acts)
    explain_follow.start([str(tmp_path)], None, None, Settings())[1]()
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.split(f"{tmp_path}/")[1].partition(": expected")[0] for line in said.err.splitlines()] == [
        "a.jsonl: empty", "a.jsonl: empty", "b.jsonl: cannot be read: No such file or directory"]

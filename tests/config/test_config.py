"""Flags over the environment over the project over the operator's file; each value knows its origin."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from inspector import cli
from inspector.config import NAMES, every, files, load
from inspector.config.model import ConfigFile
from inspector.config.settings import REPLAYED, Settings, live_limits
from loop_core.errors import CallerError
from loop_core.turn.continuation import Method, SeamRule
from loop_core.turn.limits import Limits
from tests.scenes.recordings import PARTS, cut_text, lines

ROOT = Path(__file__).parents[2]


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """A user with a configuration folder, in a project with a repository."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "deep")
    monkeypatch.setenv(files.CONFIG_VARIABLE, str(tmp_path / "config.toml"))
    return tmp_path


def user(home, text):
    (home / "config.toml").write_text(text, "utf-8")


def project(home, text):
    (home / "project" / files.PROJECT_FILE).write_text(text, "utf-8")


def test_nothing_configured_is_the_defaults(at_home):
    user(at_home, "")
    found = load({files.CONFIG_VARIABLE: ""})
    assert found.values == {}
    assert found.settings == Settings()
    assert found.settings.limits.max_empty_retries == 0  # nobody would answer in a replay
    assert live_limits(found.settings) == Limits()
    assert {each.origin for _, each in every(found)} == {"default"}


@pytest.mark.parametrize("given", [None, "", "relative", "/elsewhere", "/with/end/"])
@pytest.mark.parametrize("home", ["/home/somebody", "/home/somebody/"])
def test_the_operators_file_stands_where_platformdirs_says(monkeypatch, home, given):
    """Found without it where it usually stands; a home that is none is left to it."""
    platformdirs = pytest.importorskip("platformdirs")
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    environment = {"HOME": home}
    if given is not None:
        monkeypatch.setenv("XDG_CONFIG_HOME", given)
        environment["XDG_CONFIG_HOME"] = given
    expected = str(platformdirs.user_config_path(files.APP, appauthor=False) / "config.toml")
    assert files.user_file(environment) == expected
    assert files.user_file({}) == expected


def test_each_layer_goes_over_the_one_before(at_home):
    environment = {files.CONFIG_VARIABLE: str(at_home / "config.toml")}
    user(at_home, '[agent]\ncontinuation_max_attempts = 4\nmax_tool_steps = 7\n')
    assert load(environment).settings.limits.continuation_max_attempts == 4
    project(at_home, "[agent]\ncontinuation_max_attempts = 5\n")
    found = load(environment)
    assert found.settings.limits == replace(REPLAYED, continuation_max_attempts=5, max_tool_steps=7)
    assert found.values["agent.continuation_max_attempts"].origin.endswith(files.PROJECT_FILE)
    environment["LOOP_INSPECTOR_CONTINUATION_MAX_ATTEMPTS"] = "6"
    found = load(environment)
    assert found.settings.limits.continuation_max_attempts == 6
    assert found.values["agent.continuation_max_attempts"].origin == "$LOOP_INSPECTOR_CONTINUATION_MAX_ATTEMPTS"


def test_the_limits_of_a_session_file_go_before_those_of_a_configuration(at_home):
    user(at_home, "[agent]\ncontinuation_max_attempts = 4\n")
    assert load({files.CONFIG_VARIABLE: str(at_home / "config.toml")}).settings.explicit == frozenset()


@pytest.mark.parametrize("retries", [0, 2])
def test_retries_that_were_configured_hold_live_and_in_replays(at_home, retries):
    user(at_home, f"\ufeff[agent]\r\nmax_empty_retries = {retries}\r\n")  # as an editor on Windows writes it
    found = load({files.CONFIG_VARIABLE: str(at_home / "config.toml")}).settings
    assert (found.limits.max_empty_retries, live_limits(found).max_empty_retries) == (retries, retries)


def test_a_file_may_set_whatever_a_variable_may_set():
    assert set(NAMES) <= set(ConfigFile.model_fields)


def test_every_value_has_its_effect(at_home):
    user(at_home, 'policy = "pi-presence"\nseam = "concat"\nmethod = "hint"\ntheme = "nord"\nascii = true\n'
                  'allow_silence = "yes"\n[keys]\n"step.forward" = "right"\n')
    found = load({files.CONFIG_VARIABLE: str(at_home / "config.toml")})
    assert found.settings.policy.name == "pi-presence"
    assert found.settings.seam is SeamRule.CONCAT
    assert found.settings.method is Method.HINT
    assert found.settings.allow_silence is True
    assert (found.theme, found.ascii, dict(found.keys)) == ("nord", True, {"step.forward": "right"})


@pytest.mark.parametrize(("text", "says"), [
    ('theme = "inspector-drak"', "theme: there is no theme 'inspector-drak'; did you mean inspector-dark?"),
    ('theme = "zzzz"', "theme: there is no theme 'zzzz'; expected one of "),
    ('[keys]\n"step.forwrad" = "space"', "keys.step.forwrad: there is no such binding; did you mean step.forward?"),
    ('[keys]\n"step.forward" = "space,spcae"', "keys.step.forward: there is no key 'spcae'; did you mean space?"),
    ('[keys]\n"step.forward" = "control+x"', "keys.step.forward: there is no key 'control+x'"),
    ('[keys]\n"step.forward" = ""', "keys.step.forward: '' names no key"),
    ('[keys]\n"step.forward" = 5', "keys.step.forward: input should be a valid string"),
    ('thme = "nord"', "thme: there is no such value; did you mean theme?"),
    ('[prices.m]\ninput = 1\noutputt = 2', "prices.m.outputt: there is no such value; did you mean output?"),
])
def test_what_the_app_would_not_take_is_refused_with_the_nearest_name(at_home, inspector, text, says):
    user(at_home, text)
    said = inspector("config")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"inspector: {at_home / 'config.toml'}: {says}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("keys", ["space,right", "ctrl+shift+p", "f12", "[", "left_square_bracket", "+", "plus", "?",
                                  "alt+x", "meta+x", "super+x", "hyper+x", "shift+f1", "subtract", "menu", "f25"])
def test_a_key_that_exists_is_taken(at_home, inspector, keys):
    user(at_home, f'[keys]\n"step.forward" = "{keys}"')
    assert f"keys.step.forward = {keys}" in inspector("config").out


@pytest.mark.parametrize(("text", "says"), [
    ("[agent]\ncontinuation_max_attempts = 'x'\n", "agent.continuation_max_attempts: input should be a valid integer"),
    ("[agent]\ncontinuation_max_attempts = 5000\n", "agent.continuation_max_attempts: input should be less than"),
    ("[agent]\ncontinuation_max_atempts = 5\n", "did you mean continuation_max_attempts?"),
    ("[agent]\nattempts_scope = 'never'\n", "agent.attempts_scope"),
    ("polcy = 'strict'\n", "did you mean policy?"),
    ("policy = 'nobody'\n", "unknown policy 'nobody'"),
    ("seam = 'sideways'\n", "seam: 'sideways' is not one of"),
    ("= 3\n", "invalid TOML: "),
    ("ascii = 'yes'\n", "ascii: input should be a valid boolean"),
    ("allow_silence = true\n", "allow_silence: input should be 'yes' or 'no'"),
])
def test_a_mistake_names_the_file_and_the_value(at_home, text, says):
    user(at_home, text)
    path = str(at_home / "config.toml")
    with pytest.raises(CallerError) as caught:
        load({files.CONFIG_VARIABLE: path})
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(at_home):
    with pytest.raises(CallerError, match="cannot be read"):
        load({files.CONFIG_VARIABLE: str(at_home / "nothing.toml")})
    (at_home / "config.toml").write_bytes(b"theme = '\xff'")
    with pytest.raises(CallerError, match="byte 9 is not UTF-8"):
        load({files.CONFIG_VARIABLE: str(at_home / "config.toml")})


@pytest.mark.skipif(os.name != "posix", reason="FIFOs and devices are those of POSIX")
def test_what_is_no_file_of_a_few_lines_is_told_at_once(at_home):
    os.mkfifo(at_home / "fifo")
    (at_home / "deep.toml").write_text("x = " + "[" * 100_000)
    (at_home / "large.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    for path, says in ((at_home / "fifo", "a FIFO or a device"), ("/dev/zero", "a FIFO or a device"),
                       (at_home, "Is a directory"), (at_home / "deep.toml", "nested too deeply"),
                       (at_home / "large.toml", "larger than 1,048,576 bytes")):
        with pytest.raises(CallerError, match=says) as caught:
            load({files.CONFIG_VARIABLE: str(path)})
        assert str(caught.value).startswith(f"{path}: ")
    assert load({files.CONFIG_VARIABLE: os.devnull})


def test_a_wrong_variable_is_told_by_its_name():
    with pytest.raises(CallerError, match=r"^\$LOOP_INSPECTOR_MAX_TOOL_STEPS: max_tool_steps: "):
        load({files.CONFIG_VARIABLE: "", "LOOP_INSPECTOR_MAX_TOOL_STEPS": "many"})


@pytest.mark.parametrize(("variable", "says"), [
    ("LOOP_INSPECTOR_CONTINUATION_MAX_ATTEMPT", "did you mean LOOP_INSPECTOR_CONTINUATION_MAX_ATTEMPTS?"),
    ("LOOP_INSPECTOR_continuation_max_attempts", "did you mean LOOP_INSPECTOR_CONTINUATION_MAX_ATTEMPTS?"),
    ("LOOP_INSPECTOR_POLICIY", "did you mean LOOP_INSPECTOR_POLICY?"),
    ("LOOP_INSPECTOR_CACHES", "did you mean LOOP_INSPECTOR_CACHE?"),
])
@pytest.mark.skipif(os.name == "nt", reason="Windows has one case for the names of variables")
def test_a_misspelt_variable_is_told_and_another_program_may_have_its_own(variable, says):
    with pytest.raises(CallerError) as caught:
        load({files.CONFIG_VARIABLE: "", variable: "5"})
    assert str(caught.value) == f"${variable}: there is no such variable; {says}"
    assert load({files.CONFIG_VARIABLE: "", "LOOP_INSPECTOR_API_KEY": "k", "LOOP_INSPECTOR_TAB": "{}"}).values == {}


@pytest.mark.parametrize(("word", "on"), [("True", True), ("ON", True), ("1", True), ("No", False), ("0", False)])
def test_ascii_of_a_variable_is_yes_or_no_in_any_case(word, on):
    assert load({files.CONFIG_VARIABLE: "", "LOOP_INSPECTOR_ASCII": word}).ascii is on


def test_ascii_that_is_neither_is_told():
    with pytest.raises(CallerError, match=r"^\$LOOP_INSPECTOR_ASCII: ascii: 'maybe' is neither yes nor no$"):
        load({files.CONFIG_VARIABLE: "", "LOOP_INSPECTOR_ASCII": "maybe"})


def test_the_project_ends_at_its_repository(at_home):
    (at_home / files.PROJECT_FILE).write_text("policy = 'pi-presence'\n", "utf-8")
    assert files.project_file() is None
    project(at_home, "")
    assert files.project_file() == str(at_home / "project" / files.PROJECT_FILE)


def run(capsys, *words):
    with contextlib.suppress(SystemExit):
        cli.main(list(words), standalone_mode=False)
    return capsys.readouterr().out


def test_a_configured_limit_is_in_force_headless(at_home, capsys):
    path = at_home / "s.jsonl"
    path.write_bytes(lines(*cut_text(*PARTS)))
    user(at_home, "")
    assert "LIMIT REACHED" in run(capsys, "explain", str(path))
    user(at_home, "[agent]\ncontinuation_max_attempts = 5\n")
    assert "CUT, COMPLETED" in run(capsys, "explain", str(path))
    replayed = run(capsys, "replay", str(path), "--set", "continuation_max_attempts=3")
    assert "Complete became AbortPartial, retry_limit" in replayed


def test_config_and_locate_tell_what_is_where(at_home, capsys):
    user(at_home, "theme = 'nord'\n")
    rows = json.loads(run(capsys, "config", "--json"))
    assert rows["theme"] == {"value": "nord", "origin": str(at_home / "config.toml")}
    assert rows["agent.continuation_max_attempts"] == {"value": 3, "origin": "default"}
    assert f"theme = nord  ({at_home / 'config.toml'})" in run(capsys, "config")
    assert run(capsys, "locate", "config").strip() == str(at_home / "config.toml")
    assert {line.split()[0] for line in run(capsys, "locate").splitlines()} == {
        "config", "project", "data", "state", "cache"}


@pytest.mark.parametrize("what", ["config", "cache"])
def test_locate_says_none_for_what_is_switched_off(what, capsys, monkeypatch):
    monkeypatch.setenv(f"LOOP_INSPECTOR_{what.upper()}", "")
    assert run(capsys, "locate", what) == "none\n"
    assert f"{what}  none\n" in run(capsys, "locate")


def test_without_a_configuration_pydantic_stays_unloaded():
    code = ("import sys\nfrom inspector.config import load\nload({'LOOP_INSPECTOR_CONFIG': '', "
            "'LOOP_INSPECTOR_POLICY': 'strict'})\nassert 'pydantic' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "tests", env={"PYTHONPATH": str(ROOT)})


def test_keys_that_do_not_exist_are_told():
    from inspector.tui.keys import check_keys, every_id

    check_keys(dict.fromkeys(every_id(), "f9"))
    with pytest.raises(CallerError, match=r"keys\.step\.foward: .* no such binding; did you mean step\.forward\?"):
        check_keys({"step.foward": "f9"})
    with pytest.raises(CallerError, match="names no key"):
        check_keys({"step.forward": "f9,,"})

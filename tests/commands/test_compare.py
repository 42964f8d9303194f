"""`inspector compare`: two turns side by side, as text and as JSON."""

from __future__ import annotations

import json
import sys

import pytest

from inspector import cli
from tests.scenes.recordings import CUT, call, chat, cut_text, lines, pair_of, user


@pytest.fixture
def run_compare(monkeypatch, capsys):
    """Runs `inspector compare` in this process: its code, what it says, and what it complains of."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["inspector", "compare", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.run()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def three(tmp_path):
    """A file with a turn that is whole, one that is cut, and one with a held call."""
    path = tmp_path / "three.jsonl"
    path.write_bytes(lines(pair_of([user("One?")], chat("Yes.")), pair_of([user("Two?")], chat("Cut", "length")),
                           pair_of([user("Three?")], chat("Here.", "length", call(CUT)))))
    return path


def test_without_numbers_the_two_worst_turns_of_a_file_are_compared(run_compare, three):
    code, out, _ = run_compare(three)
    assert code == 0
    said = [" ".join(line.split()) for line in out.splitlines()]
    assert said[1] == "turn 3 · three.jsonl turn 2 · three.jsonl"
    assert "verdict ▣ CALL HELD ≠ ✂ TRUNCATED" in said
    assert "calls write_file held ≠ none" in said
    assert "merged text" in said


def test_turns_of_a_folder_are_named_by_their_files(run_compare, three):
    code, out, _ = run_compare(f"{three.parent}/")
    assert code == 0
    assert "turn 3 · three.jsonl turn 2 · three.jsonl" in " ".join(out.split())


def test_turns_of_two_files_are_named_by_their_numbers(run_compare, three, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_bytes(lines(*cut_text("one, ", "two")))
    code, out, _ = run_compare(three, other, "--turns", "1,1", "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["schema"], found["left"]["turn"], found["right"]["path"]) == (
        "loop-inspector/compare/1", 1, str(other))
    assert (found["left"]["segments"], found["right"]["segments"]) == (1, 2)
    assert {"segments", "text"} <= set(found["differs"])
    assert found["steps"][0] == {"left": 1, "right": 1, "same": True}
    # The second turn was cut and continued first; both end by the same moves.
    assert [step["right"] for step in found["steps"] if not step["same"]] == [2, 3, 4]
    assert all(step["left"] is None for step in found["steps"] if not step["same"])


@pytest.mark.parametrize(("words", "said"), [
    (["--turns", "1,9"], "there is no turn 9; expected 1 to 3"),
    (["--turns", "0,1"], "there is no turn 0; expected 1 to 3"), (["--turns", "2"], "expected the number"),
    (["--turns", "a,b"], "expected the number"), (["--turns", "1," + "4" * 5_000], "expected the number"),
])
def test_a_turn_that_there_is_not_is_one_line(run_compare, three, words, said):
    code, _, err = run_compare(three, *words)
    assert code == 2
    assert said in err


def test_a_single_turn_wants_a_second_path(run_compare, tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_bytes(lines(pair_of([user("One?")], chat("Yes."))))
    code, _, err = run_compare(path)
    assert (code, "name a second path" in err) == (2, True)
    code, out, _ = run_compare(path, path)
    assert code == 0
    assert "every step is the same move" in out or "no step differs" in out


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_file_that_cannot_be_read_is_named(run_compare, three, tmp_path, options):
    missing = tmp_path / "missing.jsonl"
    for words in ((missing, three), (three, missing), (missing,)):
        code, out, err = run_compare(*words, *options)
        assert (code, out) == (2, "")
        assert err.startswith(f"inspector: {missing}: cannot be read: No such file or directory\n")

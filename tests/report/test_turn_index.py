"""The index of rows: the same as reading, nothing stale, nothing of a credential, never an error."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from inspector import __version__
from inspector.config.settings import Settings
from inspector.report import turn_index
from inspector.report.turn_index import TurnIndex, read_rows, state_of
from inspector.sessions.native import SessionWriter
from tests.scenes.recordings import chat, user
from tests.scenes.transcripts import block, claude, prompt, text

KEY = "sk-ant-api03-" + "a1B2" * 20
ENDED = claude(prompt(f"say hello with {KEY}"), block(text("Hello, zebra."), stop="end_turn"))


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LOOP_INSPECTOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / "home/.claude/projects/-w/a.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(ENDED)
    return path


def look(path: Path, indexed: bool = True):
    found = list(read_rows([str(path)], None, None, Settings(), indexed))
    return [row for each in found for _, rows in each.rows for row in rows], len(found)


def test_a_row_from_the_index_is_the_same_as_one_from_reading(place):
    plain, _ = look(place, indexed=False)
    first, reads = look(place)
    second, again = look(place)
    assert plain == first == second
    assert (reads, again) == (2, 1)


def test_a_file_that_changed_is_read_again_and_one_with_another_time_is_not(place):
    look(place)
    os.utime(place, (1, 1))
    assert look(place)[1] == 1
    place.write_text(ENDED.replace("zebra", "horse"))
    rows, reads = look(place)
    assert reads == 2
    assert rows[0].contents[1] == "Hello, horse."
    beside = place.with_suffix("") / "subagents"
    beside.mkdir(parents=True)
    (beside / "agent-a.jsonl").write_text(ENDED)
    assert look(place)[1] == 2


@pytest.mark.skipif(sys.platform == "win32", reason="a locked file cannot be read there")
def test_a_recording_that_is_still_written_is_read_again(place, tmp_path):
    path = tmp_path / "s.jsonl"
    writer = SessionWriter(path)
    writer.append({"type": "request", "id": "r1", "api": "openai_chat", "body": {"model": "m", "messages": []}})
    assert [row.verdict.word for row in look(path)[0]] == ["UNDER WAY"]
    writer.close()
    assert [row.verdict.word for row in look(path)[0]] == ["RECORDING CUT"]


@pytest.mark.parametrize("folder", ["one/subagents", "subagents", "one/subagents/workflows/wf_1", "sub-executions"])
def test_a_file_that_is_read_with_another_is_part_of_its_state(tmp_path, folder):
    path = tmp_path / "one.jsonl"
    path.write_text("{}\n")
    alone = state_of(str(path))
    (tmp_path / folder).mkdir(parents=True)
    beside = tmp_path / folder / "agent-a.jsonl"
    beside.write_text("{}\n")
    assert [row[0] for row in state_of(str(path))] == [*(row[0] for row in alone), str(beside)]


@pytest.mark.parametrize("which", ["explicit", "configured"])
def test_a_row_is_found_by_a_process_in_which_the_names_of_limits_have_another_order(place, which):
    program = ("import sys; from inspector.config.settings import LIMITS, Settings;"
               "from inspector.report.turn_index import read_rows;"
               "settings = Settings(**{sys.argv[2]: frozenset(LIMITS)});"
               "print(len(list(read_rows([sys.argv[1]], None, None, settings))))")
    reads = [subprocess.run([sys.executable, "-c", program, str(place), which], check=True, capture_output=True,
                            env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")]
    assert [int(each) for each in reads] == [2, 1]  # the second process has the row from the index


def test_the_files_of_a_spread_session_count_as_read_before_its_rows_are_there(tmp_path):
    for number in range(3):
        pair = {"request": {"model": "m", "messages": [user(f"{number}?")]}, "response": chat("Yes.")}
        (tmp_path / f"{number}.json").write_text(json.dumps(pair))
    found = list(read_rows([str(tmp_path)], None, None, Settings(), indexed=False))
    assert [(each.done, each.total) for each in found] == [(1, 3), (2, 3), (3, 3), (3, 3)]
    assert [[len(rows) for _, rows in each.rows] for each in found] == [[], [], [], [3]]


def test_a_file_that_is_gone_is_forgotten(place):
    look(place)
    place.unlink()
    list(read_rows([], None, None, Settings()))
    index = TurnIndex(None, None, Settings())
    assert index.search("zebra", [str(place)]) == []
    index.close()


def test_no_credential_is_kept_and_the_file_is_the_owners(place, tmp_path):
    look(place)
    base = tmp_path / "cache" / "turns.db"
    assert base.stat().st_mode & 0o777 == 0o600
    assert b"a1b2a1b2" not in base.read_bytes().lower()


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"\1" * 5000])
def test_a_damaged_index_is_made_again(place, tmp_path, content):
    look(place)
    (tmp_path / "cache" / "turns.db").write_bytes(content)
    assert look(place)[1] == 2
    assert look(place)[1] == 1


DAMAGE = {
    "rows": "UPDATE file SET rows = x'ff'",
    "no rows": "UPDATE file SET rows = NULL",
    "state": "UPDATE file SET state = 'nonsense'",
    "no state": "UPDATE file SET state = NULL",
    "another state": "UPDATE file SET state = '5'",
    "path": "UPDATE file SET path = NULL",
    "a table": "DROP TABLE words",
    "a text": "UPDATE made SET version = CAST(x'ff' AS TEXT)",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_in_the_index_is_read_from_its_file(place, inspector, tmp_path, damage):
    plain, _ = look(place)
    with closing(sqlite3.connect(tmp_path / "cache" / "turns.db", isolation_level=None)) as base:
        base.execute(DAMAGE[damage])
    assert inspector("search", "zebra").code == 0
    assert look(place) == (plain, 1)


def test_an_index_that_turns_out_to_be_damaged_is_made_again_by_the_next_program(place, tmp_path):
    plain, _ = look(place)
    file = tmp_path / "cache" / "turns.db"
    with closing(sqlite3.connect(file)) as base:
        (root,), = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'file'")
        (size,), = base.execute("PRAGMA page_size")
    with file.open("r+b") as written:
        written.seek((root - 1) * size)
        written.write(b"\xff" * size)
    found = list(read_rows([str(place)], None, None, Settings()))
    assert found[-1].note == "the index is not used: database disk image is malformed"
    assert look(place) == (plain, 2)
    assert look(place) == (plain, 1)


def test_a_name_that_is_no_text_is_in_the_index(place, inspector):
    odd = Path(os.fsdecode(bytes(place.parent) + b"/\xff.jsonl"))
    place.rename(odd)
    assert look(odd)[1] == 2
    rows, reads = look(odd)
    assert (rows[0].paths, reads) == ((str(odd),), 1)
    said = inspector("search", "zebra")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"{place.parent}/\\udcff.jsonl  turn 1: ")


def test_a_search_in_an_index_that_could_not_be_filled_says_so(place, inspector, monkeypatch):
    def connect_full(path, connect=turn_index._connect):
        base = connect(path)
        base.execute("PRAGMA max_page_count = 1")  # it cannot grow any more, as on a full disk
        return base

    look(place)
    place.with_name("b.jsonl").write_text(ENDED.replace("zebra", "horse " * 10_000))
    monkeypatch.setattr(turn_index, "_connect", connect_full)
    said = inspector("search", "horse")
    assert (said.code, said.out) == (2, "")
    assert said.err == "inspector: nothing was searched: the index is not used: database or disk is full\n"


def test_a_locked_index_is_not_used_and_says_so(place, tmp_path):
    look(place)
    with closing(sqlite3.connect(tmp_path / "cache" / "turns.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        found = list(read_rows([str(place)], None, None, Settings()))
        assert len(found[1].rows) == 1
        assert "locked" in found[0].note


@pytest.mark.parametrize(("written", "typed"), [
    ("İstanbul", "İstanbul"), ("İstanbul", "istanbul"), ("éclair", "e\u0301clair"), ("e\u0301clair", "éclair"),
    ("naïve", "NAI\u0308VE"),
])
def test_a_mark_above_a_letter_ends_no_word(place, written, typed):
    place.write_text(ENDED.replace("zebra", written))
    look(place)
    index = TurnIndex(None, None, Settings())
    assert len(index.search(typed, [str(place)])) == 1
    assert index.search(f"{typed}x", [str(place)]) == []
    index.close()


@pytest.mark.parametrize("typed", [
    "東京", "京", "私", "に住んで", "東京に zebra", "ﾄｳ", "한민", "서울", "𠮷", "か\u3099", "tokyo東", "ab東c",
])
def test_a_word_inside_a_run_of_characters_is_found(place, typed):
    said = "zebra 私は東京に住んでいます。ﾄｳｷｮｳ 대한민국 서울에서 𠮷野家 か\u3099き Tokyo東京 ab東cd"
    place.write_text(ENDED.replace("zebra", said))
    look(place)
    index = TurnIndex(None, None, Settings())
    (hit,) = index.search(typed, [str(place)])
    assert "\x1f" not in hit.excerpt
    assert "東京に住んで" in index.search("東京", [str(place)])[0].excerpt
    assert index.search("京東", [str(place)]) == index.search("東住", [str(place)]) == []
    index.close()


def test_another_program_finds_the_rows_of_a_file_only_with_their_words(place, tmp_path, monkeypatch):
    real, counts = TurnIndex._answer, []

    def count_and_answer(self, query, *values):
        if query.startswith("INSERT INTO words"):
            with closing(sqlite3.connect(tmp_path / "cache" / "turns.db")) as other:
                counts.append(other.execute("SELECT count(*) FROM file").fetchone()[0])
        return real(self, query, *values)

    monkeypatch.setattr(TurnIndex, "_answer", count_and_answer)
    look(place)
    assert counts == [0]
    index = TurnIndex(None, None, Settings())
    assert [hit.number for hit in index.search("zebra", [str(place)])] == [1]
    index.close()


def test_opening_an_index_that_is_made_waits_for_no_writer(place, tmp_path):
    look(place)
    with closing(sqlite3.connect(tmp_path / "cache" / "turns.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        index = TurnIndex(None, None, Settings())
        assert (len(index.rows([str(place)])), index.note) == (1, "")
        index.close()


def test_an_index_of_an_earlier_version_is_made_again(place, tmp_path):
    look(place)
    with closing(sqlite3.connect(tmp_path / "cache" / "turns.db")) as base, base:
        base.execute("UPDATE made SET version = ?", (f"10 {__version__}",))  # which kept runs of characters whole
    assert (look(place)[1], look(place)[1]) == (2, 1)


def test_a_search_without_a_letter_does_not_say_that_nothing_was_found(place, inspector):
    said = inspector("search", "🦊 -")
    assert (said.code, "nothing to look for: the words contain no letter and no digit" in said.err) == (1, True)


def test_a_path_among_words_that_were_not_found_is_told_as_a_word(place, inspector, tmp_path):
    said = inspector("search", "giraffe", tmp_path)
    assert (said.code, said.out) == (1, "")
    assert said.err.endswith(f"contains every word; {tmp_path} was taken for a word: "
                             "`inspector explain PATH --filter WORDS` searches a path\n")


@pytest.mark.parametrize("typed", ["zebra", "ZEB hello", '"zebra', "zebra*", "(hello", "zebra:", "hello -"])
def test_what_people_type_is_never_an_error(place, typed):
    look(place)
    index = TurnIndex(None, None, Settings())
    (hit,) = index.search(typed, [str(place)])
    assert (hit.file, hit.number, index.note) == (str(place), 1, "")
    assert index.search("giraffe", [str(place)]) == index.search('" * -', [str(place)]) == []
    assert index.search(typed, []) == []
    index.close()


def test_search_gives_hits_as_text_and_json_and_writes_nothing_beside_them(place, inspector, tmp_path):
    before = {each: each.stat().st_mtime_ns for each in (tmp_path / "home").rglob("*")}
    said = inspector("search", "zebra", "hello")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"{place}  turn 1: ")
    assert json.loads(inspector("search", "zebra", "--json").out)["hits"][0]["number"] == 1
    assert inspector("search", "giraffe").code == 1
    assert {each: each.stat().st_mtime_ns for each in (tmp_path / "home").rglob("*")} == before


@pytest.mark.parametrize(("cache", "why"), [
    ("", "LOOP_INSPECTOR_CACHE is empty, so there is no index to search"),
    ("/dev/null", "nothing was searched: the index is not used: /dev/null: File exists"),
])
def test_a_search_without_an_index_does_not_say_that_nothing_was_found(place, inspector, monkeypatch, cache, why):
    monkeypatch.setenv("LOOP_INSPECTOR_CACHE", cache)
    said = inspector("search", "zebra")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"inspector: {why}")
    assert said.err.count("\n") == 1


def test_search_lists_a_turn_that_another_session_copied_once(place, inspector):
    again = place.with_name("b.jsonl")
    again.write_text(claude(prompt(f"say hello with {KEY}"), block(text("Hello, zebra."), stop="end_turn"),
                            prompt("once more"), block(text("Hello, zebra."), "msg_02", stop="end_turn")))
    said = inspector("search", "zebra")
    assert sorted(line.partition(": ")[0] for line in said.out.splitlines()) == [
        f"{place}  turn 1", f"{again}  turn 2"]
    assert said.err == "inspector: 2 turns (1 copy of a turn left out)\n"
    hits = json.loads(inspector("search", "zebra", "--json").out)["hits"]
    assert sorted((hit["file"], hit["number"]) for hit in hits) == [(str(place), 1), (str(again), 2)]

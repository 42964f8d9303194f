"""Rows of a large transcript that stay in their file: read again, masked again, and refused where the file changed."""

from __future__ import annotations

import gc
import json
import tracemalloc

import pytest

from inspector.report.lines.steps import Outline
from inspector.sessions import intake, open_paths
from inspector.sessions.following import FollowedFile
from inspector.sessions.importers.claude_code import Session
from inspector.sessions.open import options_of
from inspector.sessions.recording import Exchange
from inspector.sessions.stored_rows import FileChangedError, StoredResult
from inspector.sessions.transcripts import TranscriptReader
from inspector.sessions.transcripts.answer import TranscriptAnswer
from inspector.tui.sheets import Sheets, Viewpoint
from loop_core.values import ToolResultPart
from tests.scenes.transcripts import (
    block,
    claude,
    pi,
    pi_call,
    pi_reply,
    pi_result,
    pi_user,
    prompt,
    result,
    text,
    use,
    view_file,
)

KEY = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gHi"
LONG = "one line of a file\n" * 40
REFUSED = "The user doesn't want to proceed with this tool use. " + "The tool use was rejected. " * 12
SESSIONS = {
    "claude-code": lambda said: claude(prompt("read it"), block(use(file="a.md"), stop="tool_use"), result(said),
                                       block(text("Done."), "msg_02", "end_turn")),
    "pi": lambda said: pi(pi_user("read it"), pi_reply(pi_call(), stop="toolUse"), pi_result(said),
                          pi_reply(text("Done."))),
}


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Every file is a large one."""
    monkeypatch.setattr(intake, "HEAVY", 10)


def exchanges(path) -> tuple[Exchange, ...]:
    return open_paths([str(path)]).exchanges


def result_in(exchange: Exchange) -> ToolResultPart:
    return exchange.request.messages[0].results[0]


@pytest.mark.parametrize("name", SESSIONS)
def test_a_long_result_is_read_again_when_it_is_looked_at(tmp_path, name):
    path = tmp_path / "s.jsonl"
    path.write_text(SESSIONS[name](LONG))
    asked, after = exchanges(path)
    found = result_in(after)
    assert isinstance(found, StoredResult)
    assert not any(isinstance(held, (str, bytes)) and len(held) > 200 for held in (*found, asked.content))
    assert (found.text, found.size) == (LONG, len(LONG))
    assert asked.body in path.read_bytes()
    assert asked.size == len(asked.body) == asked.response.size


def test_what_an_answer_was_made_of_is_freed_when_its_exchange_is_made(tmp_path, monkeypatch):
    path, alive = tmp_path / "s.jsonl", []
    path.write_text(claude(*(row for number in range(50) for row in (
        prompt(f"question {number}"), block(text(f"answer {number}"), f"msg_{number}", "end_turn")))))
    give = TranscriptReader.give
    gc.collect()
    others = sum(type(each) is TranscriptAnswer for each in gc.get_objects())  # those that other tests left

    def count(*given):
        give(*given)
        alive.append(sum(type(each) is TranscriptAnswer for each in gc.get_objects()) - others)

    monkeypatch.setattr(TranscriptReader, "give", count)
    assert len(exchanges(path)) == 50
    assert alive == [50, *range(50, 1, -1)], "the one above is freed too, with the last answer below it"


def test_rows_take_little_room_until_the_last_one_is_read(tmp_path, monkeypatch):
    """Of a row, the hash of its id and its packed place are held; ids and unpacked places would take 0.1 kB more."""
    path, held, settle = tmp_path / "s.jsonl", [], Session.settle

    def measure(reader):
        held.append(tracemalloc.get_traced_memory()[0])
        settle(reader)

    monkeypatch.setattr(Session, "settle", measure)
    for count in (1, 40, 120, 200):
        path.write_text(claude(prompt("go"), *(row for number in range(count) for row in (
            *(block(text(f"{number}.{part}"), f"msg_{number}", uuid=f"{number:035}{part}") for part in range(3)),
            *({"type": "progress", "uuid": f"{number:035}{part}"} for part in "3456")))))
        tracemalloc.start()
        assert len(exchanges(path)) == count
        tracemalloc.stop()
    # The interpreter's table of interned strings, which is enlarged now and then, may fall into one of the two.
    assert min(held[2] - held[1], held[3] - held[2]) / 80 < 2_000


@pytest.mark.parametrize("said", ["short", REFUSED])
def test_a_short_text_and_one_that_tells_what_became_of_a_call_are_kept(tmp_path, said):
    path = tmp_path / "s.jsonl"
    path.write_text(SESSIONS["claude-code"](said))
    asked, after = exchanges(path)
    assert type(result_in(after)) is ToolResultPart
    assert bool(asked.refusals) is (said is REFUSED)


def test_what_is_read_again_is_masked_again(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(SESSIONS["claude-code"](f"{LONG}{KEY}\n").replace("a.md", KEY))
    asked, after = exchanges(path)
    assert KEY not in result_in(after).text
    assert "[masked: " in result_in(after).text
    assert KEY.encode() not in asked.body
    assert b"[masked: " in asked.body


def test_the_rows_of_a_file_that_grew_are_the_same(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(SESSIONS["claude-code"](LONG))
    asked, after = exchanges(path)
    with path.open("a") as file:
        file.write(json.dumps(prompt("and more")) + "\n")
    assert result_in(after).text == LONG
    assert b"tool_use" in asked.body


@pytest.mark.parametrize("change", ["", "gone", "one line of a fold"])
def test_a_file_that_was_changed_says_so(tmp_path, change):
    path = tmp_path / "s.jsonl"
    path.write_text(SESSIONS["claude-code"](LONG))
    asked, after = exchanges(path)
    if change == "gone":
        path.unlink()
    else:
        path.write_text(path.read_text().replace("one line of a file", change).replace("a.md", "b.md"))
    for look in (lambda: result_in(after).text, lambda: asked.body):
        with pytest.raises(FileChangedError, match=r"s\.jsonl was changed or removed .*: open it again"):
            look()


def test_a_view_of_a_file_that_was_changed_says_so_in_its_place(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(SESSIONS["claude-code"](LONG))
    view = view_file(path)
    path.unlink()
    sheet = Sheets().at(Viewpoint("wire", Outline(view), len(view.steps) - 1, "events"))
    assert "was changed or removed" in sheet.copy_text()


def test_two_results_with_the_same_text_are_known_as_the_same(tmp_path):
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    for path in (first, second):
        path.write_text(SESSIONS["claude-code"](LONG if path is first else f" {LONG}"))
    keys = [result_in(exchanges(path)[1]).text_key for path in (first, first, second)]
    assert keys[0] == keys[1] != keys[2]
    assert len(set(keys)) == 2


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
@pytest.mark.parametrize("name", SESSIONS)
def test_of_a_followed_file_too_a_long_result_is_read_again_from_its_place(tmp_path, name, mark):
    path, rows = tmp_path / "s.jsonl", SESSIONS[name](LONG).encode().splitlines(keepends=True)
    followed = FollowedFile(str(path), options_of(None, None))
    for count in range(1, len(rows) + 1):
        path.write_bytes(mark + b"".join(rows[:count]))
        opened = followed.read()
    first, after = opened[1]
    found = result_in(after)
    assert isinstance(found, StoredResult)
    assert found.text == LONG
    assert first.body in path.read_bytes()
    assert not any(isinstance(held, (str, bytes)) and len(held) > 200 for held in (*found, first.content))

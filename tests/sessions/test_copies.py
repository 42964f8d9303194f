"""What several files hold twice is counted once: a file that was named twice, and turns that Claude Code copied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.check import check_paths
from inspector.check.report_forms import document, totals_line
from inspector.check.reports import Report, merge
from inspector.check.rules import RULES
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.call_outcomes import CutRun, count_runs
from inspector.report.facts import view
from inspector.report.lines.spans import text_of
from inspector.report.turn_rows import SAME, TurnRow, rows_of
from inspector.report.turn_table import about, rows_once
from inspector.sessions import open_paths
from inspector.sessions.following import FollowedSession
from inspector.sessions.open import open_each
from tests.scenes.app import assistant, body, entry, story, user
from tests.scenes.rows import each_row
from tests.scenes.transcripts import Row, block, claude, prompt, result, show, text, use

PLAN = (prompt("a plan"), block(text("First, look"), stop="max_tokens"),
        prompt("and the file"), block(use(path="a.md"), "msg_02", stop="tool_use"))
DONE = (result("ok"), block(text("Written."), "msg_03", stop="end_turn"))


def words(*paths: Path) -> list[str]:
    return [turn.verdict.word for turn in view(replay(open_case(open_paths(list(map(str, paths)))))).turns]


def count(*paths: Path) -> int:
    return sum(len(group.recording.turns) for group in open_each(list(map(str, paths)), api=None, profile=None))


def session(path: Path, *rows: Row) -> Path:
    """A file whose rows name the session after it; Claude Code keeps all else of rows that it copies."""
    lines = [json.loads(line) for line in claude(*rows).splitlines()]
    path.write_text("".join(json.dumps({**line, "sessionId": path.stem}) + "\n" for line in lines))
    return path


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return session(tmp_path / "a.jsonl", *PLAN, *DONE)


def test_a_file_that_is_named_twice_is_read_once(first: Path, tmp_path: Path):
    link = tmp_path / "link.jsonl"
    link.symlink_to(first)
    once = ["TRUNCATED, ANSWER LOST", "COMPLETE"]
    assert words(first) == words(first, first) == words(first, tmp_path) == words(tmp_path, first) == words(link, first)
    assert words(first) == once
    assert count(first, first) == count(first, tmp_path) == count(tmp_path) == count(link, first) == 2
    same = tmp_path / "same.json"
    said = {"role": "assistant", "content": "hi", "state": {"stopReason": "end_turn"}}
    same.write_text(json.dumps({"id": "T-1", "v": 1, "messages": [{"role": "user", "content": "go"}, said]}))
    other = tmp_path / "other.json"
    other.write_bytes(same.read_bytes())
    assert words(same, same) == ["COMPLETE"]
    assert words(same, other) == ["COMPLETE"]
    other.write_bytes(same.read_bytes().replace(b"hi", b"ho"))
    assert words(same, other) == ["COMPLETE", "COMPLETE"]


SAMPLE = Path(__file__).parents[2] / "sample_sessions/02-text-cut-twice.session.jsonl"


def equal_pair(tmp_path: Path, kind: str) -> tuple[Path, Path]:
    """Two files with the same bytes, in a format that knows no copies, and a third file of the same size."""
    answer = body(assistant("Yes."), "stop", 2)
    one = tmp_path / "one.json"
    if kind == "har":
        one = story(tmp_path, [entry([user("a")], answer)], "one.har")
    elif kind == "body":
        one.write_text(answer)
    else:
        one = tmp_path / "one.session.jsonl"
        one.write_bytes(SAMPLE.read_bytes())
    two = one.with_name(one.name.replace("one", "two"))
    two.write_bytes(one.read_bytes())
    one.with_name(one.name.replace("one", "zzz")).write_bytes(one.read_bytes()[:-1] + b"\n")
    return one, two


@pytest.mark.parametrize("kind", ["har", "body", "session"])
def test_a_file_with_the_very_same_bytes_as_another_is_counted_once_and_named(tmp_path: Path, kind: str):
    one, two = equal_pair(tmp_path, kind)
    said = f"byte for byte the same as {one}, whose turns are counted; they are not counted twice"
    first, second = open_paths([str(one), str(two)]).inputs
    assert (first.responses > 0, first.same_as) == (True, "")
    assert (second.responses, second.same_as, second.notices) == (0, str(one), (f"{two}: {said}",))
    rows = table(one, two)
    assert [(row.unread, row.why) for row in rows if row.verdict is None] == [(SAME, said)]
    assert len(rows) == len(table(one)) + 1
    assert len(words(one, two)) == len(words(one))
    assert len(words(two)) == len(words(one)), "alone, the second file is whole"
    report = check_paths([str(one), str(two)], list(RULES), jobs=1)
    assert report.turns == check_paths([str(one)], list(RULES), jobs=1).turns
    assert report.problems == check_paths([str(one)], list(RULES), jobs=1).problems
    assert report.notices == [f"{two}: byte for byte the same as {one}, whose turns are checked"]
    assert report.copy_count == len(report.turns)
    assert [file.get("same_as") for file in document(report)["files"]] == [None, str(one)]
    assert "without a turn" not in totals_line(report)


def test_a_file_counts_where_the_one_that_it_equals_is_not_in_the_merged_report(tmp_path: Path):
    one, two = equal_pair(tmp_path, "har")
    both = check_paths([str(one), str(two)], list(RULES), jobs=1)
    one.write_text(one.read_text().replace("gpt", "other").replace("stop", "length"))
    of_another_machine = check_paths([str(one)], list(RULES), jobs=1)
    other = of_another_machine.files[0]
    assert other.every_turn != both.files[0].every_turn, "another file has its path"
    for reports, counted in (([of_another_machine, both], 2), ([Report((both.files[1],))], 1), ([both], 1)):
        merged = merge(reports)
        assert (len(merged.turns), len(merged.notices)) == (counted, int(reports == [both]))
    assert merge([merge([Report((both.files[1],))]), both]) == merge([both]), "in any order"


def test_files_of_one_size_with_other_bytes_are_all_counted(tmp_path: Path):
    one, two = equal_pair(tmp_path, "har")
    two.write_bytes(one.read_bytes().replace(b"Yes.", b"Yep."))
    assert len(words(one, two)) == 2
    assert all(row.verdict is not None for row in table(one, two))
    assert not check_paths([str(one), str(two)], list(RULES), jobs=1).notices


def test_a_file_with_the_name_of_standard_input_is_not_compared_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    one, two = equal_pair(tmp_path, "har")
    one.rename("-")
    read = open_paths(["-", str(two)], stdin=body(assistant("No."), "stop", 2).encode())
    assert [source.same_as for source in read.inputs] == ["", ""]


def test_equal_pairs_of_a_logger_are_two_requests(tmp_path: Path):
    """A request that is sent again after the same error leaves two equal files."""
    pair = {"request": {"model": "m", "messages": [{"role": "user", "content": "a"}]},
            "response": json.loads(body(assistant("Yes."), "stop", 2))}
    files = [tmp_path / f"{name}.json" for name in ("1", "2")]
    for file in files:
        file.write_text(json.dumps(pair))
    assert [source.responses for source in open_paths(list(map(str, files))).inputs] == [1, 1]
    assert all(row.verdict is not None for row in table(*files))
    assert not check_paths(list(map(str, files)), list(RULES), jobs=1).notices


def test_an_unreadable_file_and_its_copy_are_both_reported(tmp_path: Path):
    files = [tmp_path / f"{name}.har" for name in ("1", "2")]
    for file in files:
        file.write_text('{"log": {}} trailing')
    assert all(source.error and not source.same_as for source in open_paths(list(map(str, files))).inputs)
    assert [row.unread for row in table(*files)] == ["NOT READ", "NOT READ"]


def test_a_subagents_file_that_is_named_beside_its_session_is_read_once(first: Path, tmp_path: Path):
    below = tmp_path / "a" / "subagents"
    below.mkdir(parents=True)
    agent = session(below / "agent-1.jsonl", prompt("look", agentId="1"), block(text("Seen."), "msg_09", "end_turn"))
    assert len(words(first)) == len(words(first, agent)) == len(words(agent, first)) == len(words(tmp_path)) == 3


def test_the_turns_that_a_resumed_session_begins_with_are_counted_once(first: Path, tmp_path: Path):
    again = session(tmp_path / "b.jsonl", *PLAN, *DONE, prompt("more"), block(text("Yes."), "msg_04", stop="end_turn"))
    assert words(first, again) == ["TRUNCATED, ANSWER LOST", "COMPLETE", "COMPLETE"]
    assert len(words(again)) == 3
    assert count(first, again) == 2 + 3, "one session after another, each is whole"
    given = open_paths([str(first), str(again)]).inputs[1]
    assert len(FollowedSession([str(first), str(again), str(first)], api=None, profile=None).read().turns) == 3
    assert (given.responses, given.notices[-1]) == (1, (
        f"{again}: answers copied from another session, which are counted there ({first}): 3"))


def test_a_session_that_was_resumed_within_a_turn_keeps_that_turn_whole(tmp_path: Path):
    first, again = session(tmp_path / "a.jsonl", *PLAN), session(tmp_path / "b.jsonl", *PLAN, *DONE)
    assert words(first, again) == ["TRUNCATED, ANSWER LOST", "COMPLETE SO FAR", "COMPLETE"]


def test_a_turn_that_ended_with_the_result_of_a_call_is_counted_once(tmp_path: Path):
    """The operator went on with another message, so that the model never saw the result alone."""
    begun = (*PLAN, result("ok"))
    first = session(tmp_path / "a.jsonl", *begun)
    again = session(tmp_path / "b.jsonl", *begun, *MORE)
    assert listing(first, again) == ["a1", "a2", "b3 2"]
    assert len(words(first, again)) == 3
    assert [given.responses for given in open_paths([str(first), str(again)]).inputs] == [2, 1]


def test_a_session_with_nothing_new_stays_whole(first: Path, tmp_path: Path):
    again = session(tmp_path / "b.jsonl", *PLAN, *DONE, prompt("more"))  # another end
    assert len(words(first, again)) == len(listing(first, again)) == 4


def table(*paths: Path) -> list[TurnRow]:
    """The rows of a table of these files."""
    groups = open_each(list(map(str, paths)), api=None, profile=None)
    return rows_once(row for group in groups for row in rows_of(
        view(replay(open_case(group.recording))), group.paths))


def listing(*paths: Path) -> list[str]:
    """The rows of a table of these files: the file's name and the turn's number in the file."""
    return [f"{Path(row.file).stem}{row.number} {row.copied or ''}".strip() for row in table(*paths)]


def test_a_file_with_nothing_new_says_that_its_turns_count_twice(first: Path, tmp_path: Path):
    again, more = (session(tmp_path / f"{name}.jsonl", *PLAN, *DONE, *rows) for name, rows in (("b", ()), ("c", MORE)))
    says = {Path(row.file).stem: "(every turn of its file is in a.jsonl too, and counts twice)" in " ".join(
        map(text_of, about(row))) for row in table(first, again, more)}
    assert says == {"a": False, "b": True, "c": False}
    notice = f"{again}: every answer of this file is in {first} too, so its turns count twice"
    assert [notice in source.notices for source in open_paths(list(map(str, (first, again, more)))).inputs] == [
        False, True, False]


MORE = (prompt("more"), block(text("Yes."), "msg_04", stop="end_turn"))
LATER = (prompt("later", timestamp="2026-02-08T00:00:00Z"),
         block(text("No."), "msg_05", stop="end_turn", timestamp="2026-02-08T00:00:01Z"))


@pytest.mark.parametrize(("files", "rows", "answers"), [
    ({"a": (), "b": MORE}, ["a1", "a2", "b3 2"], [3, 1]),
    ({"a": MORE, "b": ()}, ["a3 2", "b1", "b2"], [1, 3]),
    ({"a": (*MORE, *LATER), "b": MORE, "c": ()}, ["a4 3", "b3 2", "c1", "c2"], [1, 1, 3]),
    ({"a": LATER, "b": MORE}, ["a3 2", "b1", "b2", "b3"], [1, 4]),
], ids=["in the order of writing", "the copy first", "a chain", "two forks: the older one holds what both have"])
def test_a_copied_turn_is_counted_in_the_file_that_was_written_first(tmp_path: Path, files, rows, answers):
    paths = [session(tmp_path / f"{name}.jsonl", *PLAN, *DONE, *more) for name, more in files.items()]
    assert listing(*paths) == rows
    assert [given.responses for given in open_paths(list(map(str, paths))).inputs] == answers


def test_the_notices_of_a_chain_name_each_file_that_has_turns_of_it(tmp_path: Path):
    a, b, c = (session(tmp_path / f"{name}.jsonl", *PLAN, *DONE, *more)
               for name, more in (("a", ()), ("b", MORE), ("c", (*MORE, *LATER))))
    assert list(open_paths([str(a), str(b), str(c)]).inputs[2].notices[-2:]) == [
        f"{c}: answers copied from another session, which are counted there ({a}): 3",
        f"{c}: answers copied from another session, which are counted there ({b}): 1"]


def test_between_turns_that_stay_none_is_left_out(tmp_path: Path):
    """The next turn tells how a call of the one before it ended."""
    called = (prompt("first"), block(use(path="a"), "msg_08", stop="max_tokens"))
    answered = (result("ok"), block(text("So far."), "msg_09", stop="end_turn"))
    copied = (prompt("more", timestamp="2026-02-06T07:00:00Z"),
              block(text("Yes."), "msg_04", stop="end_turn", timestamp="2026-02-06T07:00:01Z"))
    first = session(tmp_path / "a.jsonl", *copied)
    other = session(tmp_path / "b.jsonl", *called, *answered, *copied, *LATER)
    assert listing(first, other) == ["a1", "b1", "b2", "b3"]
    assert len(words(first, other)) == 4


def test_the_table_keeps_a_turn_that_goes_on_in_another_file(tmp_path: Path):
    first, again = session(tmp_path / "a.jsonl", *PLAN), session(tmp_path / "b.jsonl", *PLAN, *DONE)
    assert listing(first, again) == ["a1", "a2", "b2 1"]
    assert listing(again, first) == ["b2 1", "a1", "a2"]


def test_equal_words_at_another_time_are_no_copy(first: Path, tmp_path: Path):
    other = tmp_path / "b.jsonl"
    other.write_text(first.read_text().replace("2026-02-06", "2026-02-07"))
    assert len(words(first, other)) == count(first, other) == 4


def codex(*items: Row) -> str:
    head = ({"type": "session_meta", "payload": {"id": "t"}}, {"type": "turn_context", "payload": {"model": "m"}})
    return "".join(json.dumps(row) + "\n" for row in (
        *head, *({"type": "response_item", "payload": item} for item in items)))


def test_a_call_whose_row_was_written_twice_ran_once(tmp_path: Path):
    def call(key: str = "c1", given: str = '{"path": "a') -> Row:
        return {"type": "function_call", "name": "write", "arguments": given, "call_id": key}

    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    done = ({"type": "function_call_output", "call_id": key, "output": "ok"} for key in ("c1", "c2"))
    for calls, ran in ((call(), call()), 1), ((call(), call("c2")), 2), ((call(), call(given="{}")), 2):
        seen = show(codex(asked, *calls, *done), tmp_path)
        assert len(seen.responses[0].exchange.response.tool_calls) == ran
    seen = show(codex(asked, call(), call(), {"type": "function_call_output", "call_id": "c1", "output": "ok"}),
                tmp_path)
    assert count_runs(seen, seen.responses) == {CutRun.RAN: 1}


SPAN: Row = {"traceId": "t", "spanId": "s1", "startTimeUnixNano": "1", "attributes": {
    "gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Hi."}]}]}}
MADE: Row = {"id": "a", "traceId": "t", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z",
             "output": {"choices": [{"finish_reason": "stop", "message": {"content": "Hi."}}]}}
ASKED: Row = {"requestId": "r1", "message": {"text": "go"}, "response": [], "result": {"metadata": {
    "toolCallRounds": [{"response": "Hi.", "toolCalls": []}]}}}


def otlp(*spans: Row) -> Row:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def langfuse(*observations: Row) -> Row:
    return {"trace": {"id": "t", "projectId": "p", "name": "n"}, "observations": list(observations)}


@each_row(("once", "twice", "other"), [
    (otlp(SPAN), otlp(SPAN, SPAN), otlp(SPAN, {**SPAN, "spanId": "s2"})),
    (otlp(SPAN), otlp(SPAN, SPAN), otlp(SPAN, {**SPAN, "traceId": "t2"})),
    (langfuse(MADE), langfuse(MADE, MADE), langfuse(MADE, {**MADE, "id": "b"})),
    ({"version": 3, "requests": [ASKED]}, {"version": 3, "requests": [ASKED, ASKED]},
     {"version": 3, "requests": [ASKED, {**ASKED, "requestId": "r2"}]}),
])
def test_a_record_that_was_exported_twice_is_one_answer(tmp_path: Path, once: Row, twice: Row, other: Row):
    seen = show(json.dumps(twice), tmp_path)
    assert len(seen.responses) == len(show(json.dumps(once), tmp_path).responses) == 1
    assert any("that repeat" in notice for notice in seen.inputs[0].notices)
    assert len(show(json.dumps(other), tmp_path).responses) == 2


def trajectory(path: Path, *answers: str, timed: bool = True) -> Path:
    """A trajectory in ATIF whose user speaks before each answer."""
    when = {"timestamp": "2026-02-01T00:00:01Z"} if timed else {}
    steps = [step for said in answers for step in ({"source": "user", "message": f"ask {said}"},
                                                   {"source": "agent", "message": said, **when})]
    path.write_text(json.dumps({"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a"}, "steps": [
        {"step_id": at, **step} for at, step in enumerate(steps, 1)]}))
    return path


def test_the_steps_that_a_continued_trajectory_repeats_are_counted_once(tmp_path: Path):
    one = trajectory(tmp_path / "a.json", "One.", "Two.")
    two = trajectory(tmp_path / "b.json", "One.", "Two.", "Three.")
    found = open_paths([str(one), str(two)])
    assert [exchange.response.text for exchange in found.exchanges] == ["One.", "Two.", "Three."]
    assert "answers copied from another session" in "\n".join(found.inputs[1].notices)


def test_steps_without_a_time_may_be_equal_by_chance(tmp_path: Path):
    one = trajectory(tmp_path / "a.json", "One.", timed=False)
    two = trajectory(tmp_path / "b.json", "One.", "Two.", timed=False)
    assert len(open_paths([str(one), str(two)]).exchanges) == 3


def test_between_a_step_without_a_time_and_others_that_stay_none_is_left_out(tmp_path: Path):
    one = trajectory(tmp_path / "a.json", "One.")
    two = trajectory(tmp_path / "b.json", "Zero.", "One.", "Three.")
    document = json.loads(two.read_text())
    del document["steps"][1]["timestamp"]
    two.write_text(json.dumps(document))
    assert [exchange.response.text for exchange in open_paths([str(one), str(two)]).exchanges] == [
        "One.", "Zero.", "One.", "Three."]


def test_which_of_two_equal_files_stays_whole_does_not_depend_on_the_order_of_reading(tmp_path: Path):
    old, one, two = (session(tmp_path / f"{name}.jsonl", *PLAN, *DONE, *more)
                     for name, more in (("a", ()), ("b", MORE), ("c", MORE)))
    rows = ["a1", "a2", "b3 2", "c1", "c2", "c3"]
    assert sorted(listing(old, one, two)) == sorted(listing(two, one, old)) == rows


def test_a_turn_that_goes_on_in_a_second_file_is_in_that_file_for_a_third(tmp_path: Path):
    a, b, c = (session(tmp_path / f"{name}.jsonl", *PLAN, *more)
               for name, more in (("a", ()), ("b", DONE), ("c", (*DONE, *MORE))))
    assert [notice.split("there ")[1] for notice in open_paths([str(a), str(b), str(c)]).inputs[2].notices[-2:]] == [
        f"({a}): 1", f"({b}): 2"]

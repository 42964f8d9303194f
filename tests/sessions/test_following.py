"""Files that grow: what is read on behind what was read equals a reading of the whole file, whatever was added."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector import replay
from inspector.config.settings import Settings
from inspector.replay import case
from inspector.report import facts, turn_rows
from inspector.report.explain_document import document_text, members
from inspector.report.facts import View
from inspector.report.table_rows import FOLLOWED, FollowedView, GrownFiles, RowReading
from inspector.report.turn_rows import rows_of
from inspector.sessions import following, intake, thread
from inspector.sessions.following import FollowedFile
from inspector.sessions.importers import IMPORTERS, opencode_records
from inspector.sessions.importers.recognition import importer
from inspector.sessions.recording import Options
from inspector.sessions.transcripts import TranscriptReader, TranscriptRows
from tests.scenes import transcripts as rows
from tests.scenes.recordings import assistant, call, chat, lines, pair_of, result, user
from tests.scenes.rows import each_row
from tests.scenes.shapes import SHAPES
from tests.sessions import test_opencode as opencode

KEY = "sk-ant-" + "api03-" + "Zq8Wn4Lr7Tk2Vx5Ym9Pb3Hd6Js1Fg0Ca" * 3
STOPPED = rows.prompt([rows.text("[Request interrupted by user]")])
CLAUDE = (
    rows.prompt("go on"), rows.prompt(f"the key is {KEY}"), STOPPED, rows.result("ok"), rows.failure(),
    rows.failure("API Error: 529 overloaded"), rows.failure(rows.CAP.replace("32000", "7")),
    rows.block(rows.text("Well, that is half of an answer.")), rows.block(rows.text("Done."), stop="end_turn"),
    rows.block(rows.use(path="a"), tokens=7), rows.block(rows.use(path="b"), stop="tool_use"),
    {"type": "custom-title", "customTitle": "A title"}, {"type": "system", "subtype": "odd"}, {"type": "new"},
    rows.system("compact_boundary", parentUuid=None, logicalParentUuid="u1"),
    rows.prompt("This session goes on from one before.", isCompactSummary=True),
    rows.prompt("look there", isSidechain=True, parentUuid=None, agentId="a1"),
    rows.block(rows.text("Found."), "side", "end_turn", isSidechain=True, agentId="a1"),
    *({"type": "stream_event", "event": event} for event in (
        {"type": "message_start", "message": {"id": "msg_01", "model": "m"}}, {"type": "message_stop"},
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Half"}})),
    {"type": "system", "subtype": "init", "session_id": "s2"},
)
PI = (
    rows.pi_user("go"), rows.pi_reply(rows.text("half"), stop="length"), rows.pi_reply(rows.text("all")),
    rows.pi_reply(rows.pi_call(path="a"), stop="toolUse"), rows.pi_result(), rows.entry("compaction", tokensBefore=9),
    rows.entry("label", label="here"), rows.entry("session_info", name="A title"), rows.pi_reply(api=None),
)


MESSAGE = {"type": "message", "role": "assistant"}
ROLLOUT = (
    *({"type": "event_msg", "payload": row} for row in (
        {"type": "agent_message", "message": "Looking."}, {"type": "agent_message", "message": "Done."},
        {"type": "user_message", "message": "go on"}, {"type": "task_complete", "last_agent_message": "Done."},
        {"type": "turn_aborted", "reason": "interrupted"}, {"type": "thread_rolled_back", "num_turns": 1},
        {"type": "error", "message": "Incomplete response returned, reason: max_output_tokens"},
        {"type": "token_count", "info": {"last_token_usage": {"output_tokens": 9}}})),
    *({"type": "response_item", "payload": row} for row in (
        {**MESSAGE, "content": [{"type": "output_text", "text": "Looking."}]},
        {**MESSAGE, "content": [{"type": "output_text", "text": f"the key is {KEY}"}]},
        {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "a.txt"})),
    {"type": "compacted", "payload": {}},
)
USE = tuple({"type": "tool_use", "id": key, "name": "ls", "input": {"path": key}} for key in ("c1", "c2"))
OLDER_KIMI = tuple({"timestamp": 1, "message": {"type": kind, "payload": payload}} for kind, payload in (
    ("TurnBegin", {"user_input": "go"}), ("StepBegin", {}), ("ContentPart", {"type": "text", "text": "hi"}),
    ("ToolCall", {"id": "c", "function": {"name": "ls", "arguments": "{"}}), ("ToolCallPart", {"arguments_part": "}"}),
    ("StatusUpdate", {"token_usage": {"output": 7}}), ("ToolResult", {"tool_call_id": "c", "return_value": "x"}),
    ("SubagentEvent", {"agent_id": "a", "event": {"type": "ContentPart", "payload": {"type": "text", "text": "hi"}}}),
    ("StepInterrupted", {}), ("TurnEnd", {})))
MORE: Mapping[str, tuple[rows.Row, ...]] = {
    "codex": ROLLOUT,
    "copilot": ({"type": "assistant.message", "data": {"messageId": "s", "content": "a", "parentToolCallId": "c"}},
                {"type": "abort", "data": {"reason": "user"}}, {"type": "session.truncation", "data": {}},
                {"type": "subagent.started", "data": {"toolCallId": "c", "agentName": "a"}}),
    "kimi": ({"type": "context.append_loop_event", "event": {"type": "step.begin", "uuid": "s2"}},
             {"type": "turn.prompt", "input": [{"type": "text", "text": "more"}]}, {"type": "turn.ended"},
             {"type": "turn.cancel"}, {"type": "context.apply_compaction"}),
    "qwen": ({"sessionId": "s", "uuid": "9", "parentUuid": "2", "type": "system", "subtype": "chat_compression",
              "systemPayload": {}},
             {"sessionId": "s", "uuid": "8", "parentUuid": "3", "type": "user",
              "message": {"parts": [{"text": "}{"}]}}),
    "cursor": ({"role": "user", "message": {"content": "more"}}, {"type": "turn_ended", "status": "error"}),
}
"""Rows that are added to those of each format's file by hand."""
LINES = [(shape.format, tuple(shape.value)) for shape in SHAPES if shape.rows and IMPORTERS[shape.format].grows]
GROW = [(name, (*first, *MORE.get(name, ()), *first)) for name, first in LINES]
IFLOW = tuple({"sessionId": "session-1", "uuid": uuid, "parentUuid": parent, "type": kind, "message": message}
              for uuid, parent, kind, message in (
    ("u1", None, "user", {"role": "user", "content": "go"}),
    ("a1", "u1", "assistant", {"id": "response-1", "content": [USE[0]]}),
    ("a2", "u1", "assistant", {"id": "response-2", "content": list(USE)}),
    *((f"r{at}", "a2", "user", {"content": [{"type": "tool_result", "tool_use_id": use["id"], "content": "x"}]})
      for at, use in enumerate(USE)),
    ("a3", "u1", "assistant", {"id": "response-3", "content": [USE[1], {"type": "text", "text": "Done."}]}),
    ("u2", "a3", "user", {"role": "user", "content": "more"})))
GROW += [("kimi", OLDER_KIMI * 2), ("claude-code", IFLOW)]


def test_every_format_that_says_so_is_read_on() -> None:
    assert {name for name, _ in GROW} == {name for name, row in IMPORTERS.items() if row.grows}


def document(seen: View) -> str:
    return "".join(document_text(members(seen, None)))


def check(data: bytes, cuts: Sequence[int], name: str = "s.jsonl") -> None:
    """Appends a file piece by piece, and compares after each."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.touch()
        followed = FollowedView([str(path)], None, None, Settings())
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            with path.open("ab") as file:
                file.write(data[start:end])
            seen, whole = followed.read(), rows.view_file(path)
            assert document(seen) == document(whole)
            assert followed.rows_of(seen, [str(path)]) == rows_of(whole, [str(path)])


def row_list(chosen: Sequence[int], pool: Sequence[rows.Row], tree: str) -> list[rows.Row]:
    """Rows of a pool: an answer has its own id or that of the one before; some go below an early row, or replace it."""
    made = []
    for number, choice in enumerate(chosen):
        row = json.loads(json.dumps(pool[choice % len(pool)]))
        message = row.get("message", {})
        if message.get("id") == "msg_01":
            message["id"] = f"msg_{number // 2}"
        if choice % 11 == 10:
            row[tree] = f"{'u' if tree == 'parentUuid' else 'e'}{1 + number // 2}"
        if choice % 13 == 12:
            row.update({"uuid": f"u{1 + number // 2}"} if tree == "parentUuid" else {"id": f"e{1 + number // 2}"})
        made.append(row)
    return made


@settings(max_examples=25, deadline=None)
@given(chosen=st.lists(st.integers(0, 200), min_size=3, max_size=24), draw=st.data(), agent=st.booleans())
def test_any_appends_give_what_reading_the_whole_file_gives(chosen, draw, agent) -> None:
    write, pool, tree = (rows.claude, CLAUDE, "parentUuid") if agent else (rows.pi, PI, "parentId")
    data = write(*row_list(chosen, pool, tree)).encode()
    cuts = sorted(draw.draw(st.lists(st.integers(1, len(data)), max_size=6)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "OPEN", 2)
        check(data, cuts)


@pytest.mark.parametrize(("write", "pool", "tree"), [(rows.claude, CLAUDE, "parentUuid"), (rows.pi, PI, "parentId")],
                         ids=["claude_code", "pi"])
def test_a_file_read_on_row_by_row_is_what_the_whole_file_is(write, pool, tree, monkeypatch) -> None:
    monkeypatch.setattr(following, "OPEN", 2)
    data = write(*row_list(range(len(pool) * 2), pool, tree)).encode()
    check(data, [number + 1 for number, byte in enumerate(data[:-1]) if byte == ord("\n")])


def lines_of(chosen: Sequence[rows.Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in chosen).encode()


@pytest.mark.parametrize(("name", "pool"), GROW, ids=[name for name, _ in GROW])
def test_a_file_of_each_format_that_grows_is_read_on_row_by_row(name, pool, monkeypatch) -> None:
    monkeypatch.setattr(following, "OPEN", 2)
    monkeypatch.setattr(following, "REACH", 900)
    data = lines_of(pool)
    check(data, [number + 1 for number, byte in enumerate(data[:-1]) if byte == ord("\n")])


@settings(max_examples=10, deadline=None)
@given(chosen=st.lists(st.integers(0, 200), min_size=3, max_size=24), draw=st.data(), at=st.integers(0, len(GROW) - 1))
def test_any_appends_to_any_format_give_what_the_whole_file_gives(chosen, draw, at) -> None:
    pool = GROW[at][1]
    data = lines_of([pool[0], *(pool[number % len(pool)] for number in chosen)])
    cuts = sorted(draw.draw(st.lists(st.integers(1, len(data)), max_size=6)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "OPEN", 2)
        patch.setattr(following, "REACH", 900)
        check(data, cuts)


@each_row("shape", [shape for shape in SHAPES if shape.rows])
def test_every_format_of_lines_can_be_followed(shape) -> None:
    data = shape.file_bytes()
    check(data, [len(data) // 3, len(data) // 2, len(data) - 9], shape.name)


RECORDS = {"swe-agent", "mini-swe-agent", "opencode", "gemini-cli", "atif", "otlp", "openhands", "hermes", "amp",
           "inspect", "litellm", "langfuse", "roo", "continue", "vscode-chat"}
"""The formats of one document that holds records."""


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.format in RECORDS], ids=lambda shape: shape.name)
def test_of_one_document_the_records_that_stand_as_before_are_not_read_again(shape, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(following, "OPEN", 1)
    monkeypatch.setattr(following, "LAST", 1)
    monkeypatch.setattr(following, "LOOKS", 1)
    grown = following.RecordGrowth()
    path = str(tmp_path / shape.name)

    def look(count, read):
        def of_first(reader, rows):
            given = enumerate([held for _, held, _ in rows.pieces()] * 3, start=1)
            rows.go_on([(number, held, False) for number, held in given][:count], 0)
            reader.options = Options()
            return read(reader, rows)
        return importer(shape.format).read(shape.file_bytes(), path, Options(growth=of_first))

    looks = [(look(count, grown.read), look(count, TranscriptReader.read_rows)) for count in range(1, 22)]
    for followed, whole in looks:
        assert asdict(followed) == asdict(whole)
    kept = [followed.exchanges[0] is before.exchanges[0]
            for (before, _), (followed, _) in pairwise(looks) if before.exchanges]
    # a name comes once in them
    assert any(kept) or shape.format in ("opencode", "inspect", "amp", "otlp", "langfuse")


def time_at(number: int, second: int = 0) -> str:
    return f"2026-02-06T{7 + number // 60:02}:{number % 60:02}:{second:02}.000Z"


def turns(first: int, last: int) -> str:
    return "".join(rows.claude(*[row for number in range(1, last + 1) for row in (
        rows.prompt(f"question {number}", uuid=f"q{number}", timestamp=time_at(number)),
        rows.block(rows.text(f"answer {number}"), f"m{number}", "end_turn", uuid=f"a{number}",
                   timestamp=time_at(number, 30)))]).splitlines(keepends=True)[2 * first - 2 :])


def as_lines(path: Path, count: int) -> None:
    path.write_text(turns(1, count))


def as_document(path: Path, count: int, when: str = "timestamp") -> None:
    steps = [{"source": source, "message": f"{source} {number}", when: time_at(number)}
             for number in range(count) for source in ("user", "agent")]
    path.write_text(json.dumps({"schema_version": "ATIF-v1.7", "steps": steps}))


def as_database(path: Path, count: int, *below: str) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript(opencode.TABLES)
        for session in ("s", *below):
            opencode.put_session(base, session, [], parent="s" if session in below else None)
            for number in range(3 if session in below else count):
                opencode.put_records(base, session, [*opencode.prompt(key=f"m{number:03}a"), *opencode.reply(
                    opencode.START, opencode.text(), opencode.end(), key=f"m{number:03}b",
                    time={"created": 1_770_000_001_000 + 60_000 * number})], 10 * number)


@pytest.mark.parametrize(("name", "write"), [
    ("s.jsonl", as_lines), ("run.json", as_document), ("opencode.db", as_database),
    ("timeless.json", partial(as_document, when="later"))])
def test_what_a_look_reads_judges_and_replays_does_not_grow_with_the_file(tmp_path, monkeypatch, name, write) -> None:
    done: Counter[str] = Counter()

    def watch(owner: object, act: str) -> None:
        call = getattr(owner, act)
        monkeypatch.setattr(owner, act, lambda *given, **more: (done.update([act]), call(*given, **more))[1])

    for owner, act in ((TranscriptRows, "_parse"), (opencode_records, "with_ids"), (case, "judge_exchange"),
                       (replay, "run"), (thread, "seat"), (facts, "_turn"), (turn_rows, "_row")):
        watch(owner, act)
    looks = []
    for count in (70, 99):
        followed = FollowedView([str(tmp_path / name)], None, None, Settings())
        for size in (count - 1, count):
            done.clear()
            write(tmp_path / name, size)
            seen = followed.read()
            assert len(followed.rows_of(seen, [str(tmp_path / name)])) == len(seen.turns) == size
        looks.append(dict(done))
    assert looks[0] == looks[1]
    assert max(looks[0].values()) <= following.LAST + 6
    assert {"_parse", "judge_exchange", "run", "seat", "_turn", "_row"} <= looks[0].keys()


def test_of_the_files_of_a_table_that_grew_last_only_additions_are_read(tmp_path, monkeypatch) -> None:
    reading = RowReading(None, None, Settings(), named=True)
    paths = [str(tmp_path / f"{number}.jsonl") for number in range(FOLLOWED + 1)]
    lines = rows.claude(*row_list(range(90), CLAUDE, "parentUuid")).encode().splitlines(keepends=True)
    grown, parsed = GrownFiles(reading), list[int]()
    parse = TranscriptRows._parse
    monkeypatch.setattr(TranscriptRows, "_parse", lambda *given: (parsed.append(1), parse(*given))[1])
    for path in paths:
        Path(path).write_bytes(b"".join(lines[:80]))
        assert [grown.is_first([(path,), (paths[0],)]) for _ in range(2)] == [True, False]
        assert grown.rows_of([(path,)]) == reading.rows_of([path])
    costs = []
    for path in (paths[-1], paths[0]):  # the reader of the first file was given up
        with open(path, "ab") as file:
            file.write(lines[80])
        whole = reading.rows_of([path])
        parsed.clear()
        assert grown.rows_of([(path,), (path,)]) == whole
        costs.append(len(parsed))
    assert costs[0] <= following.LAST + 6 < 80 <= costs[1]
    assert grown.rows_of([tuple(paths[:2])]) == reading.rows_of(paths[:2]), "files that may be one session"


def test_a_session_that_others_follow_in_its_file_is_read_on_too(tmp_path, monkeypatch) -> None:
    path, made = tmp_path / "opencode.db", list[int]()
    with_ids = opencode_records.with_ids
    monkeypatch.setattr(
        opencode_records, "with_ids", lambda *given, **ids: (made.append(1), with_ids(*given, **ids))[1])
    followed = FollowedView([str(path)], None, None, Settings())
    for count in (60, 61, 62, 90, 91):
        as_database(path, count, "t", "u")
        made.clear()
        seen = document(followed.read())
        if count in (62, 91):  # the first of such records takes a whole reading
            assert len(made) <= following.LAST + (30 + 1) * 6
        assert seen == document(rows.view_file(path))
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("UPDATE part SET data = replace(data, '\"stop\"', '\"length\"') WHERE session_id = 's'")
    seen = followed.read()
    assert len(seen.turns) == 97
    assert seen.turns[0].verdict.word.startswith("TRUNCATED")
    assert document(seen) == document(rows.view_file(path))


@pytest.fixture
def whole(monkeypatch):
    """How often a file was read whole."""
    calls = []
    read = FollowedFile._read_whole

    def count_read(self, file):
        calls.append(self.path)
        return read(self, file)

    monkeypatch.setattr(FollowedFile, "_read_whole", count_read)
    return calls


def test_an_answer_that_was_closed_and_gets_another_row_takes_a_whole_reading(tmp_path, whole) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(turns(1, 40))
    followed = FollowedView([str(path)], None, None, Settings())
    followed.read()
    with path.open("a") as file:
        file.write(rows.claude(rows.block(rows.text("more of it"), "m2", uuid="late", parentUuid="a2")))
    assert document(followed.read()) == document(rows.view_file(path))
    assert len(whole) == 2


def test_a_later_request_that_fits_two_answers_is_said_of_both(tmp_path) -> None:
    path = tmp_path / "s.jsonl"
    asks = [user("write it")]
    made = call(key="call_REDACTED_1")
    both = lines(*[pair_of(asks, chat(None, "tool_calls", made))] * 2)
    path.write_bytes(both)
    followed = FollowedView([str(path)], None, None, Settings())
    followed.read()
    after = [*asks, assistant(None, made), result(key="call_REDACTED_1")]
    path.write_bytes(both + lines(pair_of(after, chat("Written."))))
    now = followed.read()
    assert all("it is not known whether response 3 comes next" in turn.verdict.sentence for turn in now.turns[:2])
    assert document(now) == document(rows.view_file(path))


@pytest.mark.parametrize("change", ["shrunk", "replaced", "rewritten", "gone"])
def test_a_file_that_is_not_what_it_was_is_read_whole(tmp_path, whole, change) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(turns(1, 5))
    followed = FollowedView([str(path)], None, None, Settings())
    followed.read()
    if change == "shrunk":
        os.truncate(path, len(turns(1, 3)))
    elif change == "replaced":
        other = tmp_path / "other"
        other.write_text(turns(1, 6))
        other.replace(path)
    elif change == "rewritten":
        path.write_text(turns(1, 7).replace("answer 2", "ANSWER 2"))
    else:
        path.unlink()
        assert "cannot be read" in followed.read().headline()
        path.write_text(turns(1, 2))
    assert document(followed.read()) == document(rows.view_file(path))
    assert len(whole) == 2


def test_a_file_without_rows_is_followed_too(tmp_path) -> None:
    path = tmp_path / "state.json"
    followed = FollowedFile(str(path), Options())
    for title in ("Tides", "Moons"):  # the state of a session of Kimi Code
        path.write_text(json.dumps({"createdAt": "t", "title": title, "agents": {"main": {}}, "workDir": "/w"}) + "\n")
        (source, found) = followed.read(intake.Room())
        assert (source.format, source.error, source.about.title, found) == ("kimi", None, title, [])


def test_a_change_far_from_the_ends_of_a_large_file_is_seen_after_some_looks(tmp_path, whole, monkeypatch) -> None:
    monkeypatch.setattr(following, "_BLOCK", 1000)
    path = tmp_path / "s.jsonl"
    path.write_text(turns(1, 20))
    followed = FollowedView([str(path)], None, None, Settings())
    followed.read()
    blocks = path.stat().st_size // 1000
    path.write_text(turns(1, 20).replace("answer 9", "ANSWER 9"))
    for number in range(blocks):
        with path.open("a") as file:
            file.write(turns(21 + number, 21 + number))
        followed.read()
    assert document(followed.read()) == document(rows.view_file(path))
    assert len(whole) == 2


def test_the_files_of_subagents_are_followed_with_their_session(tmp_path) -> None:
    path, beside = tmp_path / "s.jsonl", tmp_path / "s" / "subagents" / "agent-a1.jsonl"
    path.write_text(turns(1, 2))
    followed = FollowedView([str(path)], None, None, Settings())
    followed.read()
    beside.parent.mkdir(parents=True)
    for added, where in ((rows.claude(rows.prompt("look", agentId="a1")), beside), (turns(3, 3), path),
                         (rows.claude(rows.block(rows.text("Found."), "s1", uuid="u9", parentUuid="u1")), beside)):
        with where.open("a") as file:
            file.write(added)
        assert document(followed.read()) == document(rows.view_file(path))


def test_each_look_at_a_packed_file_has_room_for_all_of_it(tmp_path, monkeypatch) -> None:
    path = tmp_path / "rollout.jsonl.gz"
    followed = FollowedView([str(path)], None, None, Settings())
    data = lines_of(dict(LINES)["codex"])
    monkeypatch.setattr(intake, "_most", 2 * len(data))
    for _ in range(3):
        path.write_bytes(gzip.compress(data))
        assert followed.read().responses


def test_of_a_file_of_pairs_only_what_is_new_is_decoded(tmp_path, monkeypatch) -> None:
    decoded = []
    build = following.build
    monkeypatch.setattr(following, "build", lambda raw, *more: decoded.append(raw.entry) or build(raw, *more))
    path = tmp_path / "pairs.jsonl"
    first, second = ({"request": {"model": "m", "messages": [{"role": "user", "content": said}]}, "response": {
        "id": said, "object": "chat.completion", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": KEY}, "finish_reason": "stop"}]}}
        for said in ("one", "two"))
    path.write_bytes(lines_of([first, first]))
    followed = FollowedView([str(path)], None, None, Settings())
    followed.read()
    path.write_bytes(lines_of([first, second, second]))
    assert document(followed.read()) == document(rows.view_file(path))
    assert decoded == [0, 1, 1, 2]

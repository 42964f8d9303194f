"""ZeroClaw and BotNexus: neither keeps a stop reason; cut calls, results, crashes and folded rows are read."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing

import pytest

from inspector.sessions.folders import transcripts
from inspector.sessions.importers.recognition import choose
from tests.scenes.rows import each_row
from tests.scenes.transcripts import rules, stops, view_file, words

ZEROCLAW = """
CREATE TABLE sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, session_key TEXT, role TEXT, content TEXT,
  created_at TEXT);
CREATE TABLE session_metadata (session_key TEXT PRIMARY KEY, state TEXT, turn_id TEXT);"""
BOTNEXUS = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, status TEXT, metadata TEXT, conversation_id TEXT);
CREATE TABLE session_history (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT,
  timestamp TEXT, tool_name TEXT, tool_call_id TEXT, tool_args TEXT, tool_is_error INTEGER, thinking_content TEXT,
  is_compaction_summary INTEGER NOT NULL DEFAULT 0, is_crash_sentinel INTEGER NOT NULL DEFAULT 0,
  is_history INTEGER NOT NULL DEFAULT 0);"""


def database(path, schema, table, *rows):
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript(schema)
        for row in rows:
            row = dict(row)
            into = row.pop("table", table)
            base.execute(f"INSERT INTO {into} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                         list(row.values()))
    return path


def notices(seen):
    return "\n".join(seen.inputs[0].notices)


def message(role, content, **more):
    return {"session_key": "k", "role": role, "content": content if isinstance(content, str) else json.dumps(content),
            **more}


def call(arguments):
    return {"content": None, "reasoning_content": "hm", "tool_calls": [
        {"id": "c1", "name": "write", "arguments": arguments}]}


RESULT = {"tool_call_id": "c1", "content": "done"}


def test_zeroclaw_calls_and_results(tmp_path):
    seen = view_file(database(tmp_path / "sessions.db", ZEROCLAW, "sessions", message("system", "s"),
                              message("user", "go"),
                              message("assistant", call('{"a": 1}'), created_at="2026-01-01T00:00:00Z"),
                              message("tool", RESULT),
                              message("assistant", "Done."),
                              {"table": "session_metadata", "session_key": "k", "state": "running"}))
    assert stops(seen) == ["tool_call", "unknown"]
    first = seen.responses[0].exchange
    assert first.response.tool_calls[0].arguments == '{"a": 1}'
    assert first.started == "2026-01-01T00:00:00Z"
    assert "hm" in str(first.response)
    assert "left in the state 'running'" in notices(seen)
    assert "ZeroClaw keeps no stop reason" in notices(seen)


@pytest.mark.parametrize(("begins", "stop", "word"), [
    ("Task failed", "error", "ERROR"), ("Task timed out", "error", "ERROR"),
    ("Session interrupted", "interrupted", "INTERRUPTED"),
])
def test_zeroclaw_closes_a_request_without_an_answer(tmp_path, begins, stop, word):
    closed = f"[{begins} — not continuing this request]"
    seen = view_file(database(tmp_path / "sessions.db", ZEROCLAW, "sessions", message("user", "go"),
                              message("assistant", closed),
                              message("user", "again"), message("assistant", f"It says {closed}")))
    assert stops(seen) == [stop, "unknown"]
    assert words(seen)[0] == word
    assert not seen.responses[0].exchange.response.text
    assert seen.responses[1].exchange.response.text == f"It says {closed}"


@each_row(("mark", "stop"), [
    *((f"[{said}]", "cancelled") for said in (
        "interrupted by user", "interrumpido por el usuario", "interrompu par l'utilisateur",
        "ユーザーによって中断されました", "被用户中断")),
    *((f"[{said}]", "interrupted") for said in (
        "stream interrupted", "transmisión interrumpida", "flux interrompu", "ストリームが中断されました", "流已中断")),
])
@each_row("part", ["", "Half of"])
def test_zeroclaw_marks_an_answer_that_was_interrupted(tmp_path, mark, stop, part):
    text = f"{part}\n\n{mark}" if part else mark
    seen = view_file(database(tmp_path / "sessions.db", ZEROCLAW, "sessions", message("user", "go"),
                              message("assistant", text),
                              message("user", "again"), message("assistant", f"It says {mark}")))
    assert stops(seen) == [stop, "unknown"]
    assert (seen.responses[0].exchange.response.text or "") == part
    assert seen.responses[1].exchange.response.text == f"It says {mark}"


def test_zeroclaw_tells_results_of_calls_in_a_text_itself(tmp_path):
    told = '[Tool results]\n<tool_result name="ls">a</tool_result>'
    seen = view_file(database(tmp_path / "sessions.db", ZEROCLAW, "sessions", message("user", "go"),
                              message("assistant", "<tool_call>…</tool_call>"), message("user", told),
                              message("assistant", "Done.")))
    assert stops(seen) == ["unknown", "unknown"]  # no user went on
    assert [turn.run.record.user_text for turn in seen.turns] == ["go"]


def test_zeroclaw_shows_a_cut_call(tmp_path):
    seen = view_file(database(tmp_path / "sessions.db", ZEROCLAW, "sessions", message("user", "go"),
                              message("assistant", call('{"path":"a'))))
    assert stops(seen) == ["max_tokens"]
    assert "transcript.inferred.call_cut" in rules(seen)


def test_zeroclaw_writes_a_result_for_an_interrupted_call(tmp_path):
    told = {"tool_call_id": "c1", "content": "[interrupted by user before this tool produced a result]"}
    seen = view_file(database(tmp_path / "sessions.db", ZEROCLAW, "sessions", message("user", "go"),
                              message("assistant", call("{}")), message("tool", told), message("user", "again")))
    assert stops(seen) == ["unknown"]


@pytest.mark.parametrize("behind", [[], [{"role": "user", "content": "on"}]])
def test_zeroclaw_lines_that_begin_with_a_cut_call_hold_it(behind, tmp_path):
    """A file whose beginning is gone; lines of texts of the model alone are what other agents print."""
    path = tmp_path / "telegram_1.jsonl"
    rows = [{"role": "assistant", "content": json.dumps(call('{"path":"a'))}, *behind]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    seen = view_file(path)
    assert (seen.inputs[0].format, stops(seen)) == ("zeroclaw", ["max_tokens"])
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]


def test_zeroclaw_lines(tmp_path):
    path = tmp_path / "telegram_1.jsonl"
    rows = [{"role": "user", "content": "go"}, {"role": "assistant", "content": json.dumps(call({"a": 1}))},
            {"role": "tool", "content": "plain"}, {"role": "assistant", "content": "{no JSON"}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    seen = view_file(path)
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == '{"a":1}'
    assert seen.responses[1].exchange.response.text == "{no JSON"


@each_row("said_instead", [
    "I generated an internal tool-call format error and could not complete this request. Please try again.",
    "Generé un error de formato interno en la llamada de herramienta y no pude completar esta solicitud. "
    "Inténtalo de nuevo.",
    "J'ai généré une erreur de format d'appel d'outil interne et n'ai pas pu terminer cette requête. "
    "Veuillez réessayer.",
    "内部ツール呼び出し形式のエラーが発生し、このリクエストを完了できませんでした。もう一度お試しください。",
    "我生成了内部工具调用格式错误，无法完成此请求。请重试。",
])
def test_zeroclaw_speaks_for_a_model_whose_calls_it_could_not_read(tmp_path, said_instead):
    seen = view_file(database(tmp_path / "sessions.db", ZEROCLAW, "sessions", message("user", "go"),
                              message("assistant", said_instead), message("user", "again")))
    assert stops(seen) == ["malformed_tool_call"]
    assert words(seen) != ["COMPLETE"]
    assert not seen.responses[0].exchange.response.text


@each_row("footer", [
    "⚡ `gemini` unavailable — response from **openai** (`gpt-5`)\nSwitch model: /models",
    "⚡ `gemini` no está disponible — respuesta de **openai** (`gpt-5`)\nCambiar modelo: /models",
    "⚡ `gemini` は利用できません — **openai**（`gpt-5`）からの応答\nモデル切り替え: /models",
    "⚡ `gemini` 不可用 — 已由 **openai**（`gpt-5`）响应\n切换模型：/models",
])
def test_zeroclaws_footer_about_another_model_is_no_text_of_the_model(tmp_path, footer):
    seen = view_file(database(tmp_path / "sessions.db", ZEROCLAW, "sessions", message("user", "go"),
                              message("assistant", f"Done.\n\n---\n{footer}"), message("user", "what did it say?"),
                              message("assistant", f"It said:\n\n---\n{footer}\nas I read it.")))
    first, second = (each.exchange for each in seen.responses)
    assert (first.response.text, first.model) == ("Done.", "gpt-5")
    assert second.response.text.endswith("as I read it.")
    assert second.model is None
    assert "a footer of ZeroClaw" in notices(seen)


@pytest.mark.parametrize("part", ["", "I read two files.\n\n"])
def test_zeroclaw_names_the_limit_that_ended_a_turn(tmp_path, part):
    text = f"{part}*Turn stopped: reached maximum tool iterations (10).*"
    seen = view_file(database(tmp_path / "sessions.db", ZEROCLAW, "sessions", message("user", "go"),
                              message("assistant", text),
                              message("user", "again"), message("assistant", f"{text} Indeed.")))
    first, second = (each.exchange.response for each in seen.responses)
    assert first.text == (part.strip() or None)
    assert "reached maximum tool iterations (10)" in str(first.findings)
    assert words(seen)[0] != "COMPLETE"
    assert second.text == f"{text} Indeed."


EDITORS = """
CREATE TABLE acp_sessions (id INTEGER PRIMARY KEY, session_uuid TEXT, agent_alias TEXT, created_at TEXT);
CREATE TABLE acp_messages (id INTEGER PRIMARY KEY, session_id INTEGER, role TEXT, content TEXT,
  reasoning_content TEXT, created_at TEXT);
CREATE TABLE acp_tool_calls (id INTEGER PRIMARY KEY, message_id INTEGER, tool_call_id TEXT, tool_name TEXT,
  event_kind TEXT, payload TEXT, outcome TEXT, created_at TEXT);"""


def row(table, **columns):
    return {"table": table, **columns}


def test_zeroclaw_sessions_of_an_editor(tmp_path):
    def call_row(owner, key, kind, payload, **more):
        return row("acp_tool_calls", message_id=owner, tool_call_id=key, tool_name="write", event_kind=kind,
                   payload=payload, **more)

    path = database(
        tmp_path / "acp-sessions.db", EDITORS, "acp_messages",
        row("acp_sessions", id=1, session_uuid="one"), row("acp_sessions", id=2, session_uuid="two"),
        {"id": 1, "session_id": 1, "role": "user", "content": "go"},
        {"id": 2, "session_id": 2, "role": "user", "content": "do"},
        {"id": 3, "session_id": 1, "role": "assistant", "content": "", "reasoning_content": "hm",
         "created_at": "2026-01-01T00:00:00Z"},
        call_row(3, "c1", "in", '{"a": 1}'), call_row(3, "c1", "out", "done"), call_row(3, "c2", "in", '{"a": 2}'),
        call_row(3, "c2", "out", "no", outcome="failure"), call_row(3, "c2", "odd", ""),
        {"id": 4, "session_id": 2, "role": "assistant", "content": "I write"},
        call_row(4, "c3", "in", '{"path":"a'),
        {"id": 5, "session_id": 1, "role": "assistant", "content": "Done."},
    )
    assert choose(path.read_bytes()[:4096], str(path)) == "zeroclaw"
    seen = view_file(path)
    assert stops(seen) == ["tool_call", "unknown", "max_tokens"]
    first, second, cut = (each.exchange for each in seen.responses)
    assert [(each.name, each.arguments) for each in first.response.tool_calls] == [
        ("write", '{"a": 1}'), ("write", '{"a": 2}')]
    assert first.started == "2026-01-01T00:00:00Z"
    assert "hm" in str(first.response)
    assert [(part.call_id, part.text, part.is_error) for part in second.request.messages[-1].results] == [
        ("c1", "done", False), ("c2", "no", True)]
    assert cut.response.text == "I write"
    assert [each.session for each in (first, second, cut)] == ["one", "one", "two"]
    assert "records of unknown type were skipped: odd (1)" in notices(seen)


def entry(role, content="", **more):
    return {"session_id": "s", "role": role, "content": content, **more}


START = entry("tool", "", tool_name="write", tool_call_id="c1", tool_args='{"a": 1}')
END = entry("tool", "done", tool_name="write", tool_call_id="c1", tool_is_error=1)


def botnexus(tmp_path, *rows):
    return view_file(database(tmp_path / "sessions.sqlite", BOTNEXUS, "session_history", *rows))


def test_botnexus_two_rows_of_a_call(tmp_path):
    seen = botnexus(tmp_path, entry("user", "go"),
                    entry("assistant", "I write", thinking_content="hm", timestamp="2026-01-01T00:00:00Z"),
                    START, END, entry("assistant", "Done."), entry("user", "more"), START | {"tool_call_id": "c2"})
    assert stops(seen) == ["tool_call", "end_turn", "unknown"]
    first = seen.responses[0].exchange.response
    assert first.text == "I write"
    assert "hm'" in str(first)
    assert (first.tool_calls[0].name, first.tool_calls[0].arguments) == ("write", '{"a": 1}')
    assert seen.responses[0].exchange.started == "2026-01-01T00:00:00Z"
    assert seen.responses[1].exchange.request.messages[-1].results[0].is_error
    assert "BotNexus keeps no stop reason" in notices(seen)


AGAIN = [row | {"tool_call_id": "c2"} for row in (START, END)]


@each_row(("behind", "texts", "ends"), [
    ([entry("assistant", "Done.")], ["I write", "Done."], ["tool_call", "unknown"]),
    ([*AGAIN, entry("assistant", "Done.")], ["I write", None, "Done."], ["tool_call", "tool_call", "unknown"]),
    ([entry("user", "thanks")], [None, "I write"], ["tool_call", "end_turn"]),
    ([entry("system", "x"), entry("assistant", "Done.")], [None, "I write", "Done."],
     ["tool_call", "unknown", "unknown"]),
    ([], [None, "I write"], ["tool_call", "unknown"]),
])
def test_botnexus_writes_the_text_that_came_with_calls_behind_their_results(tmp_path, behind, texts, ends):
    other = [entry("user", "hello", session_id="t"), entry("assistant", "hi", session_id="t")]
    seen = botnexus(tmp_path, entry("user", "go"), START, END, entry("assistant", "I write", thinking_content="hm"),
                    *behind, *other)
    answers = [facts.exchange.response for facts in seen.responses if facts.exchange.session != "t"]
    assert [answer.text for answer in answers] == texts
    assert [answer.stop_reason.normalized.value for answer in answers] == ends
    with_text = answers[texts.index("I write")]
    assert [type(part).__name__ for part in with_text.parts][:2] == ["ReasoningPart", "TextPart"]


def test_botnexus_crash_summary_and_folded_rows(tmp_path):
    seen = botnexus(tmp_path, entry("user", "go", is_history=1), entry("assistant", "a", is_history=1),
                    entry("user", "the summary", is_compaction_summary=1),
                    entry("system", "crash", is_crash_sentinel=1), entry("assistant", "half"))
    assert stops(seen) == ["unknown", "interrupted"]
    assert "transcript.inferred.crash_sentinel" in rules(seen, 1)
    assert "taken out of what the model sees" in notices(seen)


def test_botnexus_rows_of_its_own_are_no_message_of_the_user(tmp_path):
    newer = BOTNEXUS.replace("is_history", "is_replay_banner INTEGER, message_kind TEXT, is_history")
    seen = view_file(database(
        tmp_path / "sessions.sqlite", newer, "session_history", entry("user", "go"), entry("assistant", "a"),
        entry("user", "replayed", is_replay_banner=1), entry("assistant", "b"),
        entry("user", "it is done", message_kind="subagent-completion"), entry("assistant", "c"), entry("user", "b"),
        entry("assistant", "d")))
    assert stops(seen) == ["unknown", "unknown", "end_turn", "unknown"], "only a user shows that an answer was whole"


FAILED = "Agent stream error: HTTP 529 overloaded"


@each_row("behind", [[], [("user", "again"), ("assistant", "a")]])
@each_row("arrived", ["It beg", None])
def test_botnexus_writes_an_error_in_front_of_the_text_that_had_arrived(tmp_path, arrived, behind):
    rows = [("user", "go"), ("system", FAILED), *([("assistant", arrived)] if arrived else []), *behind]
    seen = botnexus(tmp_path, *(entry(*row) for row in rows))
    failed = seen.responses[0].exchange.response
    assert (stops(seen)[0], failed.text) == ("error", arrived)
    assert failed.error is not None
    assert "overloaded" in failed.error.message
    assert len(seen.responses) == 1 + bool(behind)


def test_botnexus_error_after_results_is_that_of_the_next_request(tmp_path):
    seen = botnexus(tmp_path, entry("user", "go"), START, END, entry("system", FAILED), entry("system", FAILED),
                    entry("assistant", "It beg"))
    assert stops(seen) == ["tool_call", "error", "error"]
    assert [facts.exchange.response.text for facts in seen.responses] == [None, None, "It beg"]


def test_botnexus_notes_of_the_system_are_no_errors(tmp_path):
    seen = botnexus(tmp_path, entry("user", "go"), entry("system", "You are helpful"), entry("assistant", "a"))
    assert stops(seen) != ["error"]


def test_botnexus_crash_before_an_answer(tmp_path):
    seen = botnexus(tmp_path, entry("user", "go"), entry("assistant", "a"), entry("user", "b"),
                    entry("system", "crash", is_crash_sentinel=1), entry("user", "c"), entry("assistant", "d"))
    assert "without an answer" in notices(seen)
    assert stops(seen) == ["end_turn", "unknown"]


def test_botnexus_crash_after_the_results(tmp_path):
    seen = botnexus(tmp_path, entry("user", "go"), entry("system", "crash", is_crash_sentinel=1), START, END)
    assert stops(seen) == ["tool_call"]


TOOL = {"role": "tool", "content": "write", "toolName": "write", "toolCallId": "c1", "toolArgs": "{}"}


def botnexus_lines(tmp_path, *rows):
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps({"isCrashSentinel": False, **row}) + "\n" for row in rows))
    return view_file(path)


@pytest.mark.parametrize(("start", "expected"), [([TOOL | {"kind": "tool-start"}], ["tool_call", "unknown"]),
                                                 ([], ["unknown"])])
def test_botnexus_rows_that_say_whether_they_are_results(tmp_path, start, expected):
    seen = botnexus_lines(tmp_path, {"role": "user", "content": "go"}, *start,
                          TOOL | {"content": "done", "kind": "tool-result"}, {"role": "assistant", "content": "Done."})
    assert stops(seen) == expected
    assert [part.text for facts in seen.responses for each in facts.exchange.request.messages
            for part in each.results] == ["done"]


@pytest.mark.parametrize(("kind", "stop"), [("subagent-completion", "unknown"), ("canvas-submission", "end_turn"),
                                            (None, "end_turn")])
def test_botnexus_notices_of_a_subagent_are_not_the_users(tmp_path, kind, stop):
    seen = botnexus_lines(tmp_path, {"role": "user", "content": "go"}, {"role": "assistant", "content": "Done."},
                          {"role": "user", "content": "more", "kind": kind})
    assert stops(seen) == [stop]


def test_botnexus_leaked_markup_stays_text(tmp_path):
    seen = botnexus(tmp_path, entry("user", "go"), entry("assistant", "<tool_call>{}</tool_call>"))
    assert seen.responses[0].exchange.response.tool_calls == ()
    assert "<tool_call>" in seen.responses[0].exchange.response.text


def test_botnexus_lines(tmp_path):
    path = tmp_path / "s.jsonl"
    rows = [{"role": "user", "content": "go", "isCompactionSummary": False},
            {"role": "tool", "content": "", "toolName": "ls", "toolCallId": "c", "toolArgs": '{"a"',
             "isCompactionSummary": False}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    seen = view_file(path)
    assert stops(seen) == ["max_tokens"]


def test_odd_members(tmp_path):
    path = tmp_path / "s.jsonl"
    names = ("role", "content", "tool_name", "tool_call_id", "tool_args", "thinking_content", "timestamp")
    odd = dict.fromkeys(names, 3)
    path.write_text(json.dumps({"role": "user", "content": "x", "toolCallId": None}) + "\n" + json.dumps(odd) + "\n")
    found = notices(view_file(path))
    assert "was expected" in found


def test_recognised():
    assert choose(b'{"role": "user", "content": "a"}\n{"role": "assistant", "content": "b"}\n', "k.jsonl") == "zeroclaw"
    assert choose(b'{"role": "assistant", "content": "b"}\n', "k.jsonl") == "chat-lines", "kimi --print prints no more"
    assert choose(b'{"role": "user", "content": "a", "isCrashSentinel": false}\n', "k.jsonl") == "botnexus"


def test_discovery(tmp_path):
    (tmp_path / ".zeroclaw/workspace/sessions").mkdir(parents=True)
    (tmp_path / ".botnexus").mkdir()
    database(tmp_path / ".zeroclaw/workspace/sessions/sessions.db", ZEROCLAW, "sessions", message("user", "go"))
    (tmp_path / ".zeroclaw/workspace/sessions/telegram_1.jsonl").write_text('{"role":"user","content":"go"}\n')
    database(tmp_path / ".botnexus/sessions.sqlite", BOTNEXUS, "session_history", entry("user", "go"))
    found = [(each.agent, os.path.basename(each.path)) for each in transcripts({"HOME": str(tmp_path)})]
    assert sorted(found) == [
        ("BotNexus", "sessions.sqlite"), ("ZeroClaw", "sessions.db"), ("ZeroClaw", "telegram_1.jsonl")]

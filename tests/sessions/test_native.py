"""The native session file: written, read back, cut at every byte, damaged, of another version, and its schema."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from inspector.sessions import open_paths
from inspector.sessions.native import FIELDS, MARK, SessionWriter, session_bytes, write_session
from inspector.sessions.native_models import json_schema
from inspector.sessions.open import open_beginning
from loop_core.formats import FORMATS
from loop_core.values import Stop, TransportEnd
from tests.scenes.bodies import CHAT, chat_body, chat_stream, user
from tests.scenes.rows import each_row

ROOT = Path(__file__).resolve().parents[2]
HEADER = {
    MARK: 1,
    "title": "Two answers",
    "story": "A story.",
    "provenance": "Written by hand.",
    "end_state": "Complete",
}


def request(key="r1", text="hello", **more):
    return {
        "type": "request",
        "id": key,
        "api": "openai_chat",
        "url": CHAT,
        "body": {"model": "m", "messages": [user(text)]},
        **more,
    }


def exchange(key="r1", text="hello", body=None, end="eof"):
    body = chat_body("hi") if body is None else body
    return [
        request(key, text),
        {"type": "response", "request": key, "status": 200, "headers": [["content-type", "application/json"]]},
        {"type": "bytes", "request": key, "text": body, "ms": 10.5},
        {"type": "end", "request": key, "end": end, "ms": 11},
    ]


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def test_a_session_is_read_back_as_it_was_written(tmp_path):
    path = tmp_path / "s.jsonl"
    stream = chat_stream("grüße an alle", "stop").encode()
    write_session(
        path,
        [
            HEADER,
            request(at="2026-03-01T10:00:00Z", profile=None),
            {"type": "limits", "values": {"continuation_max_attempts": 5}, "request": "r1"},
            {"type": "policy", "name": "strict"},
            {"type": "response", "request": "r1", "status": 200, "headers": [["x-request-id", "q"]]},
        ],
    )
    with SessionWriter(path) as writer:
        for number, start in enumerate(range(0, len(stream), 50)):
            writer.append_bytes("r1", stream[start : start + 50], ms=number)
        writer.append({"type": "end", "request": "r1", "end": "eof"})
        writer.append(
            {"type": "tool_result", "request": "r1", "call_id": "c", "name": "look", "text": "no", "is_error": True}
        )
        writer.append({"type": "note", "text": "odd", "request": "r1"})
        writer.append({"type": "about", "title": "A better title"})
    loaded = open_paths([str(path)])
    (given,), (read,) = loaded.inputs, loaded.exchanges
    assert (given.format, given.error, given.notices) == ("session", None, ())
    assert (given.about.title, given.about.end_state) == ("A better title", "Complete")
    assert [(act.kind, act.value, act.entry) for act in given.acts] == [
        ("limits", {"continuation_max_attempts": 5}, 0),
        ("policy", "strict", None),
        ("note", "odd", 0),
    ]
    (answer,) = given.answers
    assert (answer.entry, answer.result.call_id, answer.result.text, answer.result.is_error) == (0, "c", "no", True)
    assert read.body == stream
    assert read.response.text == "grüße an alle"
    assert read.chunks[0].end == 50
    assert read.chunks[-1].end == len(stream)
    assert read.duration_ms == read.chunks[-1].ms
    assert (read.started, read.response.http_status) == ("2026-03-01T10:00:00Z", 200)
    assert read.request.messages[0].text == "hello"


def test_a_chunk_that_ends_inside_a_character_is_kept_as_base64(tmp_path):
    path = tmp_path / "s.jsonl"
    with SessionWriter(path, title="t") as writer:
        writer.append(request())
        writer.append_bytes("r1", "ü".encode()[:1], None)
        writer.append_bytes("r1", "ü".encode()[1:], None)
    packed = [json.loads(line) for line in path.read_text().splitlines()][2:]
    assert [(record.get("text"), record.get("base64")) for record in packed] == [(None, "ww=="), (None, "vA==")]
    (read,) = open_paths([str(path)]).exchanges
    assert not read.recorded  # what there is of it is no answer of any format, and its end is missing


def test_every_record_is_there_as_soon_as_it_was_appended(tmp_path):
    path = tmp_path / "s.jsonl"
    writer = SessionWriter(path, title="t")
    for number, record in enumerate(exchange(), start=2):
        writer.append(record)
        assert len(path.read_text().splitlines()) == number
    writer.close()


def test_a_file_cut_at_any_byte_keeps_every_record_before_the_cut(load):
    whole = lines(HEADER, *exchange("r1", "one"), *exchange("r2", "two")).encode()
    ends = [match.end() for match in re.finditer(b"\n", whole)]
    for cut in range(ends[0], len(whole), 5):
        loaded = load(whole[:cut])
        (given,) = loaded.inputs
        assert given.error is None
        complete = sum(1 for end in ends if end <= cut)
        if cut not in ends and cut + 1 not in ends:
            assert any(f"line {complete + 1}, the last, is cut" in notice for notice in given.notices)
        bodies = [
            each.response.text
            for each in loaded.exchanges
            if each.recorded and each.response.transport_end is TransportEnd.EOF
        ]
        assert bodies == ["hi"] * ((complete >= 5) + (complete >= 9))
        assert all(
            each.response.transport_end is TransportEnd.CUT or not each.recorded
            for each in loaded.exchanges[len(bodies) :]
        )


def test_a_writer_that_goes_on_after_a_cut_begins_a_line_of_its_own(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(lines(HEADER, *exchange()) + '{"type": "requ')
    with SessionWriter(path) as writer:
        for record in exchange("r2", "two"):
            writer.append(record)
    loaded = open_paths([str(path)])
    assert [each.response.text for each in loaded.exchanges] == ["hi", "hi"]
    assert any("line 6 is not a record" in notice for notice in loaded.inputs[0].notices)


def test_the_writer_survives_being_killed(tmp_path):
    path = tmp_path / "s.jsonl"
    code = (
        "import os, sys\nfrom inspector.sessions.native import SessionWriter as W\nw = W(sys.argv[1], title='t')\n"
        "w.append({'type': 'request', 'id': 'r1'})\nw.append_bytes('r1', b'data: x', None)\nos.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=False)
    assert [json.loads(line).get("type") for line in path.read_text().splitlines()] == [None, "request", "bytes"]


def test_a_response_without_its_end_was_cut_by_the_recording_and_so_was_one_without_bytes(load):
    records = [*exchange("r1", "one")[:-1], request("r2", "two")]
    loaded = load(lines(HEADER, *records))
    first, second = loaded.exchanges
    assert first.response.transport_end is TransportEnd.CUT
    assert first.response.stop_reason.normalized is Stop.END_TURN  # its word had come
    assert any("exchange 0 has no `end`" in notice for notice in loaded.inputs[0].notices)
    assert not second.recorded
    assert (second.response.stop_reason.normalized, second.response.stop_reason.detail) == (
        Stop.UNKNOWN, "recording_cut")


def test_an_answer_that_a_killed_recorder_left_off_is_not_the_servers_cut(load):
    """At every byte: what came keeps its text, and its end is unknown, never interrupted."""
    body = chat_stream("one two three four")
    pieces = [body[at : at + 50] for at in range(0, len(body), 50)]
    sent = [{"type": "bytes", "request": "r1", "text": piece, "ms": float(n)} for n, piece in enumerate(pieces)]
    begun = [request(), {"type": "response", "request": "r1", "status": 200}]
    whole = lines(HEADER, *begun, *sent).encode()
    for cut in range(len(lines(HEADER, *begun)), len(whole), 23):
        (read,) = load(whole[:cut]).exchanges
        stop = read.response.stop_reason
        assert stop.normalized is not Stop.INTERRUPTED
        if stop.normalized is Stop.UNKNOWN:
            assert stop.detail == "recording_cut"
            assert (read.response.text or "") in "one two three four"
            assert not read.recorded or stop.evidence[-1].at.start == read.response.size
        else:
            assert stop.raw == "stop"


def test_an_answer_that_the_operator_gave_up_is_cancelled_and_not_cut_by_the_recording(load):
    records = [*exchange("r1", "one")[:-1], {"type": "cancel", "request": "r1"}]
    (read,) = load(lines(HEADER, *records)).exchanges
    assert read.response.transport_end is TransportEnd.ABORTED


def test_a_file_that_is_cut_behind_an_exchange_says_so_of_it(load):
    whole = lines(HEADER, *exchange("r1", "one"), request("r2", "two"))
    first, second = load(whole).exchanges
    assert (first.cut_after, second.cut_after) == (False, False)
    (alone,) = load(whole[:-20]).exchanges
    assert alone.cut_after
    assert alone.response.transport_end is TransportEnd.EOF


def test_a_body_that_was_not_kept_is_not_recorded(load):
    records = [
        request(),
        {"type": "response", "request": "r1", "status": 200},
        {"type": "end", "request": "r1", "end": "not_recorded"},
    ]
    (read,) = load(lines(HEADER, *records)).exchanges
    assert (read.recorded, read.response.stop_reason.normalized) == (False, Stop.UNKNOWN)


def test_unknown_types_are_counted_and_unknown_fields_passed_over(load):
    records = exchange()
    records[1]["colour"] = "red"
    loaded = load(lines(HEADER, {"type": "mood"}, *records, {"type": "mood"}, {"type": "dream"}))
    assert len(loaded.exchanges) == 1
    assert [notice.split(": ", 1)[1] for notice in loaded.inputs[0].notices] == [
        "records of unknown type were skipped: dream (1), mood (2)"
    ]


@each_row(
    ("bad", "said"),
    [
        ({"type": "request"}, "request.id: Field required"),
        ({"type": "request", "id": 5}, "request.id: Input should be a valid string"),
        ({"type": "request", "id": "x", "api": "openai"}, "request.api: Input should be 'openai_chat'"),
        ({"type": "response", "request": "r1", "status": "ok"}, "response.status: Input should be a valid integer"),
        ({"type": "bytes", "request": "r1", "text": "a", "base64": "YQ=="}, "expected either text or base64"),
        ({"type": "end", "request": "r1", "end": "later"}, "end.end: Input should be 'eof'"),
        ({"type": "limits", "values": 3}, "limits.values: Input should be a valid dictionary"),
        ([1], "is not a record: expected a JSON object with a `type`"),
    ],
)
def test_a_bad_record_is_explained_with_its_line_and_the_rest_is_read(load, bad, said):
    loaded = load(lines(HEADER, *exchange(), bad, *exchange("r2", "two")))
    assert [each.response.text for each in loaded.exchanges] == ["hi", "hi"]
    (notice,) = loaded.inputs[0].notices
    assert "line 6" in notice
    assert said in notice
    assert "\n" not in notice


def piece(text, **more):
    return {"type": "bytes", "request": "r1", "text": text, **more}


@each_row("bad", [
    '{"type": "bytes", "request": "r1", "text": "wo ', '{"request": "r1", "type": "bytes", "te', '{"type": "by',
    "\x00\x00", json.dumps(piece("two ", base64="YQ==")),
    json.dumps({"type": "bytes", "request": "r1", "base64": "%%%"}),
])
def test_what_follows_a_lost_piece_is_not_read_as_if_there_were_no_gap(load, bad):
    """The arguments of the call parse without the piece that is lost, as other arguments."""
    stream = [json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": 0, "id": "c", "function": {"name": "erase", "arguments": part}}]}}]}) for part in
        ('{"path": "one ', "two ", 'three"}')]
    begun, _, rest = (f"data: {event}\n\n" for event in stream)
    end = 'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}\n\ndata: [DONE]\n\n'
    before, after = lines(HEADER, *exchange("r0"), *exchange()[:2], piece(begun)), lines(piece(rest), piece(end))
    loaded = load(before + bad + "\n" + after + lines(*exchange()[3:], *exchange("r2")))
    first, lost, last = (each.response for each in loaded.exchanges)
    assert [first.text, last.text] == ["hi", "hi"]
    assert (lost.stop_reason.normalized, lost.stop_reason.detail) == (Stop.UNKNOWN, "recording_cut")
    assert lost.tool_calls[0].arguments == '{"path": "one '
    assert any("a piece of its answer is lost" in notice for notice in loaded.inputs[0].notices)


def test_another_damaged_record_loses_no_piece(load):
    begun, bad = lines(HEADER, *exchange()[:2]), '{"type": "note", "request": "r1", "text": "\n'
    loaded = load(begun + bad + lines(*exchange()[2:]))
    assert loaded.exchanges[0].response.text == "hi"
    assert not any("lost" in notice for notice in loaded.inputs[0].notices)


def test_invalid_utf8_is_reported_with_its_byte_and_a_cut_character_is_only_a_cut(load):
    whole = lines(HEADER, *exchange("r1", "größe")).encode().replace(b"\\u00f6", "ö".encode())
    at = whole.index("ö".encode())
    loaded = load(whole[:at] + b"\xff" + whole[at + 2 :])
    assert f"invalid UTF-8 at byte {at}" in loaded.inputs[0].error
    assert loaded.exchanges[0].request.messages[0].text == "gr\ufffdße"
    assert load(whole[: at + 1]).inputs[0].error is None


def test_a_file_that_only_quotes_the_name_of_the_header_is_of_its_own_format(tmp_path):
    path = tmp_path / "s.jsonl"
    row = {"uuid": "u", "parentUuid": None, "isSidechain": False, "sessionId": "s", "type": "user",
           "message": {"role": "user", "content": MARK}}
    path.write_text(json.dumps(row) + "\n")
    (source,) = open_paths([str(path)]).inputs
    assert (source.format, source.error) == ("claude-code", None)
    path.write_text(f'{{"producer": "x", "{MARK}" : 1}}\n')
    assert open_paths([str(path)]).inputs[0].format == "session"


def test_the_lines_of_a_session_in_an_indented_list_are_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([HEADER, *exchange()], indent=2))
    (given,) = open_paths([str(path)]).inputs
    assert (given.format, given.error, given.responses, given.notices) == ("session", None, 1, ())


def test_a_newer_version_is_refused_clearly(load):
    (given,) = load(lines({MARK: 2}, *exchange())).inputs
    assert "session format 2, written by a newer program: expected 1 at most" in given.error
    assert given.responses == 0


def test_the_writer_refuses_what_is_no_record(tmp_path):
    with SessionWriter(tmp_path / "s.jsonl") as writer:
        with pytest.raises(ValueError, match="type"):
            writer.append({"type": "mood"})
        with pytest.raises(ValueError, match=r"colour: Extra inputs"):
            writer.append({"type": "note", "text": "x", "colour": "red"})
        with pytest.raises(ValueError, match="one of body, text and base64"):
            writer.append({"type": "request", "id": "r", "body": {}, "text": "x"})


def test_reading_a_session_does_not_import_pydantic(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(lines(HEADER, *exchange()))
    code = (
        "import sys\nfrom inspector.sessions import open_paths\nloaded = open_paths(sys.argv[1:])\n"
        "assert loaded.exchanges[0].response.text == 'hi'\n"
        "print(sorted({'pydantic', 'textual', 'rich', 'click', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_explaining_a_small_session_loads_no_module_that_it_does_not_need(tmp_path):
    """Modules that other files and other commands need make up most of the program: each costs time at every start."""
    path = tmp_path / "s.jsonl"
    path.write_text(lines(HEADER, *exchange()))
    code = ("import sys\nfrom inspector.cli import run\nsys.argv[1:] = ['explain', '--json', *sys.argv[1:]]\n"
            "try:\n    run()\nexcept SystemExit:\n    print('\\n'.join(['', 'loaded', *sys.modules]))")
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, check=True)
    said, _, loaded = done.stdout.partition("\nloaded\n")
    assert '"text": "hi"' in said
    others = ("pydantic", "textual", "rich", "yaml", "httpx", "asyncio", "inspector.export", "inspector.live",
              "inspector.provider", "inspector.replay.rerun", "inspector.replay.simulate", "inspector.report.filters",
              "inspector.report.lines", "inspector.sessions.folders", "inspector.sessions.transcripts", "inspector.tui",
              "inspector.web", "inspector.whatif")
    assert [name for name in loaded.split() if name.startswith(others)] == []
    assert "glob" not in loaded.split(), "only files that others stand beside are looked for by a pattern"
    packages = tuple(row.package for row in FORMATS.values())
    assert {name for name in loaded.split() if name in packages} == {"loop_core.wire.openai_chat"}


def test_what_is_written_keeps_to_the_exported_schema(tmp_path):
    path = tmp_path / "s.jsonl"
    acts = [
        {"type": "limits", "values": {}},
        {"type": "policy", "name": "strict"},
        {"type": "note", "text": "x"},
        {"type": "tool_result", "text": "x"},
        {"type": "about", "story": "x"},
    ]
    write_session(path, [HEADER, *exchange(), *acts])
    validator = jsonschema_rs.validator_for(json_schema())
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(written) == 10
    assert all(validator.is_valid(record) for record in written)
    assert not validator.is_valid({"type": "mood"})
    assert not validator.is_valid({MARK: 2})


def test_the_page_names_every_record_and_field_of_the_schema():
    page = (ROOT / "docs" / "session-format.md").read_text()
    types = set()
    for name, model in json_schema()["$defs"].items():
        for field, values in model["properties"].items():
            assert f"`{field}`" in page or field == "type", f"{name}.{field}"
            if field == "type":
                types.add(values["const"])
    assert types == set(FIELDS)
    assert all(f"`{kind}`" in page for kind in types)


def test_the_example_of_the_page_is_a_session(load):
    page = (ROOT / "docs" / "session-format.md").read_text()
    loaded = load(page.rsplit("```\n", 2)[1])
    assert loaded.inputs[0].error is None
    assert loaded.inputs[0].notices == ()
    assert loaded.exchanges[0].response.stop_reason.normalized is Stop.MAX_TOKENS
    assert loaded.exchanges[0].request.max_tokens == 16


@each_row(
    "data", [b"plain", "caf\u00e9 \U0001f600".encode(), b"\xff\x00cut", b'{"a": "\\u00e9"}\n\n', b""]
)
@each_row("ms", [None, 0, 12.5])
def test_a_piece_is_written_as_any_record_is(data, ms, tmp_path):
    """Pieces are written without the models, for speed: the line has to be the one that they would make."""
    from inspector.sessions.native_models import clean

    with SessionWriter(tmp_path / "s.jsonl") as writer:
        writer.append_bytes("r1", data, ms)
    line = (tmp_path / "s.jsonl").read_text("utf-8").splitlines()[1]
    assert clean(json.loads(line)) == line


@each_row(("more", "notices"), [
    ({}, 0), ({"allow_silence": None}, 0), ({"allow_silence": False}, 0), ({"allow_silence": True}, 1),
])
def test_a_recording_in_which_silence_was_wanted_says_how_it_was_run(more, notices):
    data = session_bytes([{"type": "policy", "name": "strict", **more}, *exchange()])
    (given,) = open_paths(["-"], stdin=data).inputs
    assert [notice.count("--set allow_silence=yes") for notice in given.notices] == [1] * notices


@pytest.mark.parametrize(("name", "notices"), [
    ("strict", ()),
    ("pi-presence", (
        "standard input: recorded under the policy 'pi-presence': --policy pi-presence shows what was run then",)),
])
def test_a_recording_under_another_policy_says_how_it_was_run(name, notices):
    data = session_bytes([{"type": "policy", "name": name}, *exchange()])
    (given,) = open_paths(["-"], stdin=data).inputs
    assert given.notices == notices


@each_row("ms", [-1, "1", True, 10**400, [], {}])
def test_a_time_that_is_none_costs_the_time_alone(ms):
    records = [
        {"loop_inspector_session": 1},
        {"type": "request", "id": "r", "api": "openai_chat", "url": CHAT},
        {"type": "response", "request": "r", "status": 200},
        {"type": "bytes", "request": "r", "ms": ms, "text": chat_body("Hi")},
        {"type": "end", "request": "r", "end": "eof", "ms": ms},
    ]
    loaded = open_paths(["-"], stdin="".join(json.dumps(each) + "\n" for each in records).encode())
    (one,) = loaded.exchanges
    assert (one.response.text, one.response.transport_end.value) == ("Hi", "eof")
    assert (one.chunks, one.duration_ms) == ((), None)
    assert [f"line {number}" in " ".join(loaded.inputs[0].notices) for number in (4, 5)] == [True, True]


@pytest.mark.parametrize("name", ["a.session.jsonl", "a.txt"])
def test_a_session_with_a_byte_order_mark_is_read(name, tmp_path):
    records = [HEADER, request(), {"type": "response", "request": "r1", "status": 200},
               {"type": "bytes", "request": "r1", "text": chat_body("Hi")},
               {"type": "end", "request": "r1", "end": "eof"}]
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf" + "".join(json.dumps(each) + "\n" for each in records).encode())
    loaded = open_paths([str(path)])
    assert (loaded.inputs[0].format, loaded.inputs[0].error, loaded.inputs[0].notices) == ("session", None, ())
    assert loaded.inputs[0].about.title == HEADER["title"]
    assert [each.response.text for each in loaded.exchanges] == ["Hi"]


@each_row("status", [0, -1, 99, 1000, 10**400, True, "200", []])
def test_a_status_that_is_none_is_told_and_costs_the_status_alone(status):
    records = [HEADER, request(), {"type": "response", "request": "r1", "status": status, "headers": [["x-a", "b"]]},
               {"type": "bytes", "request": "r1", "text": chat_body("Hi")},
               {"type": "end", "request": "r1", "end": "eof"}]
    loaded = open_paths(["-"], stdin="".join(json.dumps(each) + "\n" for each in records).encode())
    (one,) = loaded.exchanges
    assert (one.response.text, one.response.http_status, one.headers) == ("Hi", None, (("x-a", "b"),))
    assert "line 3: " in loaded.inputs[0].notices[0]


@pytest.mark.parametrize(("body", "warned"), [
    (chat_stream("hi"), []), (chat_stream("hi").removesuffix("data: [DONE]\n\n"), ["transport.aborted"]),
])
def test_a_client_that_left_matters_only_before_the_end_mark(load, body, warned):
    """Copilot CLI closes the connection at `[DONE]`. After the stop word another choice or the usage may follow."""
    asked, answered, came, end = exchange(body=body, end="aborted")
    (found,) = load(lines(HEADER, asked, answered, came, {**end, "problem": "the client left"})).exchanges
    assert [each.rule for each in found.response.findings if each.rule.startswith("transport.")] == warned


def test_a_record_finds_its_request_also_where_the_id_looks_like_a_credential(load):
    key = "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0"
    (source,) = load(lines(HEADER, *exchange(key), {"type": "note", "request": key, "text": "seen"},
                             {"type": "tool_result", "request": key, "text": "ok"},
                             {"type": "cancel", "request": key})).inputs
    assert [act.entry for act in source.acts] == [0, 0]
    assert [answer.entry for answer in source.answers] == [0]


def test_ids_that_look_like_credentials_are_masked_and_stay_different(tmp_path):
    keys = [f"sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St{last}" for last in "01"]
    path = tmp_path / "a.jsonl"
    with SessionWriter(path) as writer:
        for key in keys:
            asked, answered, _, end = exchange(key)
            writer.append(asked)
            writer.append(answered)
            writer.append_bytes(key, chat_body(key[-1]).encode(), None)
            writer.append(end)
    written = path.read_text(encoding="utf-8")
    assert not any(key in written for key in keys)
    assert [each.response.text for each in open_paths([str(path)]).exchanges] == ["0", "1"]
    again = session_bytes(json.loads(line) for line in written.splitlines())
    assert again.decode() == written


def test_a_beginning_ends_where_no_answer_is_open(tmp_path):
    one, two, three = exchange("r1"), exchange("r2", "other"), exchange("r3", "more")
    path = tmp_path / "large.session.jsonl"
    path.write_text(lines(HEADER, *one, two[0], three[0], *two[1:], *three[1:]))  # two answers at once

    def start_of(records):
        found = open_beginning(str(path), len(lines(*records)) + 20)
        return found and (len(found.exchanges), found.inputs[0].notices, found.inputs[0].error)

    assert start_of([HEADER, *one[:3]]) is None, "no answer has ended"
    assert start_of([HEADER, *one, two[0]]) == (1, (), None)
    assert start_of([HEADER, *one, two[0], three[0], *two[1:]]) == (1, (), None), "the third is open"
    assert start_of([HEADER, *one, *two, *three]) == (3, (), None)

"""What leaves the program: harmless in its own syntax, without credentials, and true when it is read again."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector import cli
from inspector.config import price_table
from inspector.config.settings import Settings
from inspector.export import FORMS, ExportScope, Form, form_files, stem_of, write
from inspector.export.exchange_files import reread, session_of, shrink, symptom
from inspector.export.pages import fence_text
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.explain_document import document
from inspector.report.facts import view
from inspector.report.lines.spans import escape_markdown
from inspector.report.run_answers import answer_at
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from loop_core.errors import CallerError
from loop_core.values import Stop
from tests.report.test_inert import HOSTILE, dangerous
from tests.report.test_times import AT, PIECES, native
from tests.scenes import transcripts as agents
from tests.scenes.bodies import CHAT
from tests.scenes.recordings import (
    ASKS,
    CUT,
    PARTS,
    TOOLS,
    call,
    chat,
    cut_call_ran,
    cut_stream,
    cut_text,
    exchange,
    lines,
    pair_of,
    repair_turn,
    rounds_of_tools,
    show,
    user,
)
from tests.scenes.rows import each_row

SECRET = "hunter2hunter3"
KEY = "sk-ant-api03-" + "A1b2C3d4E5" * 4
MARKUP = '<script>alert(1)</script> [x](javascript:1) ```` | ![i](http://e.example) &amp; <!-- "q" \'s\' www.e.example'


def everything(found, response=1):
    return {name: form_files(found, name, response=response) for name in FORMS}


@pytest.fixture(scope="module")
def cut_call_view():
    return show(*cut_call_ran())


@pytest.mark.parametrize(("form", "said"), [("otlp", False), ("otlp-content", True)])
def test_traces_hold_what_was_said_only_where_that_is_the_form(form, said):
    files = form_files(show(pair_of([user("a word of its own")], chat("yes"))), form)
    assert any("resourceSpans" in text for text in files.values())
    assert any("a word of its own" in text for text in files.values()) is said


def test_every_form_makes_files_of_a_name_of_its_own(cut_call_view):
    made = [name for files in everything(cut_call_view).values() for name in files]
    assert len(made) == len(set(made)) == len(FORMS) + 2  # a session beside the bug report, metrics beside the traces
    assert all(form.about for form in FORMS.values())


def test_the_help_names_every_form(capsys):
    with pytest.raises(SystemExit):
        cli.main(["export", "--help"])
    told = " ".join(capsys.readouterr().out.split()).replace("- ", "-")  # a line may end at a hyphen
    assert f"{', '.join([*FORMS][:-1])} or {[*FORMS][-1]}." in told


class Reader(HTMLParser):
    """The tags and the text of a page, as a browser reads them."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.text.append(data)


def test_markup_of_a_transcript_is_text_in_the_page():
    page = html_of(show(pair_of([user("hi")], chat(MARKUP))))
    assert set(page.tags) <= {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "div", "table", "thead",
        "tbody", "tr", "th", "td", "ul", "li", "figure", "figcaption", "pre", "b"}
    assert set(page.attributes) <= {"lang", "charset", "http-equiv", "content", "name", "class", "id"}
    assert MARKUP in "".join(page.text)


def test_the_page_of_several_turns_links_those_that_need_attention():
    """Its first line named "turn 123 of 339", and nothing led there."""
    cut = pair_of([user("Two?")], chat("Half of it", "length", tokens=40), max_tokens=40)
    found = show(pair_of([user("One?")], chat("All of it.")), cut, pair_of([user("Three?")], chat("", tokens=3)))
    (page,) = form_files(found, "html").values()
    links = re.findall(r'<li><a href="#(turn-\d+)">(Turn \d+: [A-Z ]+) ·', page)
    assert links == [("turn-3", "Turn 3: EMPTY ANSWER"), ("turn-2", "Turn 2: TRUNCATED")], "the worst first"
    assert all(f'<h2 id="{name}">{title}</h2>' in page for name, title in links)
    (text,) = form_files(found, "md").values()
    assert "\n- Turn 3: EMPTY ANSWER · " in text
    (one,) = form_files(show(cut), "html").values()
    assert "href" not in one, "a single turn is in sight"


def html_of(found):
    reader = Reader()
    (page,) = form_files(found, "html").values()
    assert "default-src 'none'" in page
    reader.feed(page)
    return reader


def test_equal_rounds_of_tools_are_one_round_in_the_path_of_a_page():
    found = show(*rounds_of_tools(5, chat("Done.")))
    path = "(Request → EvaluateStop → ExecuteTools) 5 times → Request → EvaluateStop → Complete"
    assert f"This loop: {path}; ends in Complete" in "".join(html_of(found).text)


def test_markdown_cannot_be_left():
    assert fence_text("a\n````\nb").splitlines()[0] == "`````text"
    assert fence_text("a\n````\nb").splitlines()[-1] == "`````"
    assert escape_markdown("<b> [x](y) a|b `c` # d") == r"\<b\> \[x\](y) a\|b \`c\` # d"
    assert escape_markdown("# heading") == r"\# heading"
    assert escape_markdown("1. item") == r"1\. item"
    assert escape_markdown("http://e.example www.e.example") == r"http\://e.example www\.e.example"
    assert escape_markdown("two\nlines") == "two⏎lines"
    assert escape_markdown("_em_ write_file __b__ a_") == r"\_em\_ write_file \_\_b\_\_ a\_"


@each_row("name", FORMS)
def test_no_form_lets_an_escape_sequence_out(name):
    found = show(pair_of([user("hi")], chat("".join(HOSTILE), "length")), pair_of([user("x")], chat("end")))
    for content in form_files(found, name, response=1).values():
        assert name in ("session", "json", "fixture", "curl", "bug") or not dangerous(content)
        assert "\x1b" not in content
        assert "\x9b" not in content


@each_row("name", FORMS)
def test_no_form_lets_the_name_of_a_masked_header_out(name):
    key = "ghp_Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
    found = show(exchange(ASKS, chat("a", "length"), headers={f"token {''.join(HOSTILE.values())}\nread b": "x",
                                                              f"token {key}": "x", f"token {'n' * 200}": "x"}))
    for content in form_files(found, name).values():
        assert name in ("session", "bug") or not dangerous(content)
        assert "\x1b" not in content
        assert key.lower() not in content.lower()
        assert "\nread b" not in content
        assert name != "text" or "n" * 60 not in content


@each_row("name", FORMS)
def test_no_form_holds_a_credential(name):
    asks = {"model": "m-1", "messages": [user(f"my key is {KEY}")], "api_key": "plain-secret-value"}
    found = show(exchange(
        asks, cut_stream(f"so {KEY} it is"), headers={"Authorization": f"Bearer {KEY}", "x-api-key": KEY},
        url=f"https://api.openai.com/v1/chat/completions?key={KEY}",
        response_headers={"set-cookie": "sid=plain-secret-value"}))
    for content in form_files(found, name, response=1).values():
        assert KEY not in content
        assert "plain-secret-value" not in content


def test_a_key_split_over_deltas_is_masked_in_documents():
    first, second = KEY[:25], KEY[25:]
    found = show(pair_of(ASKS, chat(f"the key {first}", "length")), pair_of([
        *ASKS, {"role": "assistant", "content": f"the key {first}"}], chat(f"{second} is it")))
    assert found.inputs[0].masked == {"Anthropic API key": 1}
    assert KEY not in found.turns[0].joined_text.text
    for name in ("html", "md", "text", "json", "session", "bug"):
        for content in form_files(found, name).values():
            assert first not in content
            assert second not in content


def test_a_password_whose_name_stands_before_a_seam_is_masked_behind_it():
    first, second = "log in with DB_PASSWORD=", "hunter2hunter2 and go on"
    found = show(pair_of(ASKS, chat(first, "length")), pair_of([
        *ASKS, {"role": "assistant", "content": first}], chat(second)))
    assert "hunter2" not in found.turns[0].joined_text.text
    assert found.turns[0].joined_text.text.endswith(" and go on")
    for name in ("html", "md", "text", "json", "session", "bug"):
        for content in form_files(found, name).values():
            assert "hunter2" not in content


def test_a_key_split_over_the_events_of_a_stream_is_masked_where_its_pieces_stand(tmp_path):
    pieces = [KEY[at : at + 7] for at in range(0, len(KEY), 7)]
    events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in ("it is ", *pieces, " so")]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    found = show(pair_of(ASKS, body, stream=True))
    (answer,) = found.responses
    assert len(answer.exchange.body) == len(body)
    assert KEY not in answer.exchange.response.text
    assert answer.exchange.response.text.startswith("it is ")
    assert answer.exchange.response.text.endswith(" so")
    (content,) = form_files(found, "session").values()
    path = tmp_path / "again.jsonl"
    path.write_text(content, "utf-8")
    again = view(replay(open_case(open_paths([str(path)]))))
    assert again.responses[0].exchange.response.text == answer.exchange.response.text
    assert [turn.verdict for turn in again.turns] == [turn.verdict for turn in found.turns]
    assert not any(piece in content for piece in pieces if len(piece) == 7)


def test_a_careless_form_of_export_lets_no_credential_out(tmp_path, monkeypatch):
    def careless(chosen_):
        texts = [facts.exchange.response.text or "" for facts in chosen_.view.responses]
        return {"careless.txt": f"{KEY}\n{''.join(texts)}\nhttps://me:{SECRET}@host/",
                "careless.json": json.dumps({"password": SECRET})}

    monkeypatch.setitem(FORMS, "careless", Form("whatever it finds", careless))
    first, second = KEY[:25], KEY[25:]
    found = show(pair_of(ASKS, chat(f"the key {first}", "length")), pair_of([
        *ASKS, {"role": "assistant", "content": f"the key {first}"}], chat(f"{second} is it")))
    paths = write(form_files(found, "careless"), str(tmp_path)).paths
    written = "".join(Path(path).read_text("utf-8") for path in paths)
    for secret in (KEY, first, second, SECRET):
        assert secret not in written


def test_a_session_is_read_again_as_it_was(tmp_path):
    found = show(*cut_text(*PARTS))
    (content,) = form_files(found, "session").values()
    path = tmp_path / "again.jsonl"
    path.write_text(content, "utf-8")
    again = view(replay(open_case(open_paths([str(path)]))))
    before, after = document(found), document(again)
    for each in (*before["responses"], *after["responses"]):
        for name in ("path", "entry"):
            del each[name]
    assert after["responses"] == before["responses"]
    assert after["turns"] == before["turns"]


def test_a_session_keeps_the_limits_under_which_it_was_recorded(tmp_path):
    path = next(str(each.path) for each in samples() if "04-token-budget" in str(each.path))
    found = view(replay(open_case(open_paths([path]))))
    (content,) = form_files(found, "session").values()
    again = view(replay(open_case(open_paths(["-"], stdin=content.encode()))))
    assert [turn.terminal for turn in found.turns] == ["budget_exhausted"]
    assert [turn.terminal for turn in again.turns] == ["budget_exhausted"]
    several = view(replay(open_case(open_paths([path, *(str(each.path) for each in samples()[:1])]))))
    assert '"limits"' not in form_files(several, "session")["sessions.jsonl"], "each file has limits of its own"


def _records(key, messages, body, end="eof", **more):
    """The records of one exchange of a session file."""
    asks = {"model": "m-1", "messages": messages, "tools": TOOLS, "max_tokens": 40}
    received = [] if body is None else [{"type": "bytes", "request": key, "text": json.dumps(body)}]
    return [{"type": "request", "id": key, "api": "openai_chat", "url": CHAT, "body": asks, **more},
            {"type": "response", "request": key, "status": 200}, *received, {"type": "end", "request": key, "end": end}]


HALF = _records("r1", ASKS, chat("Half", "length", tokens=40), place="request", ordinal=0)
WAS_CUT = _records("r1", ASKS, chat(None, "length", call(CUT), tokens=40))
OTHER_HISTORY = [*ASKS, {"role": "assistant", "content": "half, as the client wrote it"}, user("and then?")]


@each_row("form", ["session", "bug"])
@each_row(("records", "told"), [
    ([*WAS_CUT, {"type": "tool_result", "request": "r1", "call_id": "call_a1b2c3d4e5", "text": "ok, written"}],
     [("CUT CALL RUN", "unrecorded")]),
    ([*WAS_CUT, {"type": "tool_result", "request": "r1", "call_id": "call_a1b2c3d4e5", "text": "no", "is_error": True}],
     [("CALL HELD", "unrecorded")]),
    ([*_records("r1", ASKS, chat("Half")), {"type": "cancel", "request": "r1"}], [("CANCELLED", "cancelled")]),
    ([*HALF, {"type": "cancel", "request": "r1", "answered": True}], [("TRUNCATED", "cancelled")]),
    ([*_records("r1", ASKS, None, "reset"), *_records("r2", ASKS, chat("Done"), retries="r1")],
     [("RETRIED", "completed")]),
    ([*HALF, *_records("r2", OTHER_HISTORY, chat("Done"), place="continuation", ordinal=1)],
     [("CUT, COMPLETED", "completed")]),
    ([*WAS_CUT[:-2], {"type": "bytes", "request": "r1", "text": json.dumps(chat(None, "tool_calls", call()))},
      WAS_CUT[-1], *_records("r2", [*ASKS, user("Result: ok")], chat("Done"), place="request", ordinal=1)],
     [("COMPLETE", "completed")]),
])
def test_a_session_keeps_what_its_file_says_beside_the_exchanges(form, records, told):
    """Results of tools, what the operator did, and why a request was sent: without them the verdict is another one."""
    data = lines({"loop_inspector_session": 1}, *records)
    found = show(data=data)
    assert [(turn.verdict.word, turn.terminal) for turn in found.turns] == told
    content = next(text for name, text in form_files(found, form).items() if name.endswith(".jsonl"))
    again = show(data=content.encode())
    assert [(turn.verdict.word, turn.terminal) for turn in again.turns] == told
    assert [note.finding.rule for note in again.findings] == [note.finding.rule for note in found.findings]
    if form == "session":  # a report leaves exchanges out
        links, links_again = ([link for turn in each.turns for link in turn.run.record.links]
                              for each in (found, again))
        assert [link.place for link in links_again] == [link.place for link in links]


def test_a_session_keeps_how_a_connection_broke():
    records = _records("r1", ASKS, None, "reset")
    found = show(data=lines({"loop_inspector_session": 1}, *records[:-1], {**records[-1], "problem": "h broke it"}))
    assert [turn.notice for turn in found.turns] == ["No answer came: h broke it."]
    again = show(data=form_files(found, "session")["session.jsonl"].encode())
    assert [turn.notice for turn in again.turns] == ["No answer came: h broke it."]


def test_notes_and_policies_on_an_exchange_stay_in_a_session():
    beside = [{"type": "note", "request": "r1", "text": "too low", "at": AT},
              {"type": "policy", "name": "claude-code", "request": "r1"}]
    found = show(data=lines({"loop_inspector_session": 1}, *HALF, *beside))
    (content,) = form_files(found, "session").values()
    (again,) = open_paths(["-"], stdin=content.encode()).inputs
    assert again.acts == found.inputs[0].acts


def test_a_place_is_not_kept_where_the_exchange_before_is_left_out():
    """The place of a request follows the exchange before it in the file, which a report may not need."""
    apart = _records("r0", [user("another matter")], chat("fine"))
    found = show(data=lines({"loop_inspector_session": 1}, *apart, *_records(
        "r1", ASKS, chat("Done"), place="continuation", ordinal=1)))
    content = session_of(found.responses[1:], "t", found.inputs)
    assert b'"place"' not in content
    assert b'"place"' in session_of(found.responses, "t", found.inputs)


def test_a_fixture_is_a_test_that_passes_and_can_fail(cut_call_view, tmp_path):
    (content,) = form_files(cut_call_view, "fixture", response=1).values()
    path = tmp_path / "recorded.py"
    path.write_text(content + "\n\ntest_recorded_response()\n", "utf-8")
    subprocess.run([sys.executable, str(path)], check=True, env=env_of())
    path.write_text(content.replace("'length'", "'stop'") + "\n\ntest_recorded_response()\n", "utf-8")
    assert subprocess.run([sys.executable, str(path)], capture_output=True, env=env_of()).returncode == 1


def test_a_fixture_of_a_server_with_words_of_its_own_passes(tmp_path):
    url = "https://api.mistral.ai/v1/chat/completions"
    found = show(exchange({"model": "m", "messages": ASKS}, chat("Half", "model_length"), url=url))
    assert found.responses[0].judgement.stop.normalized is Stop.CONTEXT_WINDOW_EXCEEDED
    (content,) = form_files(found, "fixture", response=1).values()
    path = tmp_path / "recorded.py"
    path.write_text(content + "\n\ntest_recorded_response()\n", "utf-8")
    subprocess.run([sys.executable, str(path)], check=True, env=env_of())


@pytest.mark.parametrize("kept", [0, 60])
def test_a_fixture_of_a_recording_that_was_cut_passes(tmp_path, kept):
    whole = form_files(show(exchange({"model": "m", "messages": ASKS}, chat("Half", "length"))), "session")
    header, asked_for, begun, sent, _end = next(iter(whole.values())).splitlines()
    body = json.dumps({**json.loads(sent), "text": json.loads(sent)["text"][:kept]})
    found = show(data="\n".join([header, asked_for, begun, body]).encode())
    assert found.responses[0].judgement.stop.detail == "recording_cut"
    (content,) = form_files(found, "fixture", response=1).values()
    path = tmp_path / "recorded.py"
    path.write_text(content + "\n\ntest_recorded_response()\n", "utf-8")
    subprocess.run([sys.executable, str(path)], check=True, env=env_of())


def test_a_simulated_answer_is_exported_as_its_bytes(tmp_path):
    found = show(pair_of(ASKS, chat("Water, fire and earth. " * 20, tokens=100)),
                  settings=Settings(simulate=True, max_tokens=20))
    facts = answer_at(found, 1)
    ((name, content),) = FORMS["fixture"].make(ExportScope(found, None, facts)).items()
    assert name == "test_session_simulated_step_2.py"
    assert content.startswith('"""openai_chat, SIMULATED response of step 2."""')
    (tmp_path / name).write_text(content + "\n\ntest_simulated_response()\n", "utf-8")
    subprocess.run([sys.executable, str(tmp_path / name)], check=True, env=env_of())
    with pytest.raises(CallerError, match="no provider was asked; choose a recorded one"):
        FORMS["curl"].make(ExportScope(found, None, facts))


def env_of():
    import os
    from pathlib import Path

    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def test_curl_sends_what_was_sent():
    asks = {"model": "m-1", "messages": [user("it's $HOME `x`")], "max_tokens": 9}
    found = show(exchange(asks, chat("ok"), headers={"Authorization": "Bearer abc", "X-Title": "a b"}))
    (content,) = form_files(found, "curl").values()
    words = shlex.split(content)
    assert words[0] == "curl"
    assert "--globoff" in words, "brackets in an address would be many requests"
    assert "https://api.openai.com/v1/chat/completions" in words
    headers = [words[i + 1] for i, word in enumerate(words) if word == "-H"]
    assert headers == ["Authorization: Bearer $API_KEY", "X-Title: a b", "content-type: application/json"]
    assert json.loads(words[words.index("--data-binary") + 1]) == asks
    echoed = subprocess.run(["sh", "-c", f"API_KEY=secret; set -- {content.strip()}; printf '%s\\n' \"$@\""],
                            capture_output=True, text=True, check=True).stdout
    assert "Authorization: Bearer secret" in echoed
    assert "it's $HOME `x`" in echoed


def test_curl_sends_only_headers_whose_names_are_names():
    # curl takes `-H @name` for the name of a file of headers
    sent = {"@/etc/passwd": "a", ":path": "/x", "x y": "b", "X-Title": "c"}
    (content,) = form_files(show(exchange({"model": "m-1", "messages": [user("hi")]}, chat("ok"), headers=sent)),
                            "curl").values()
    words = shlex.split(content)
    assert [words[i + 1] for i, word in enumerate(words) if word == "-H"] == [
        "X-Title: c", "content-type: application/json"]


def test_curl_needs_a_request():
    found = show(data=json.dumps(chat("ok")).encode())
    with pytest.raises(CallerError, match="was not recorded"):
        form_files(found, "curl")


def test_a_bug_report_holds_the_fewest_exchanges():
    # Two turns that have nothing to do with it, around a call that was cut and run.
    apart = pair_of([user("another matter")], chat("fine"))
    found = show(apart, *cut_call_ran(), pair_of([user("a third")], chat("good")))
    assert "turns: 1 cut call run · 2 complete" in "".join(form_files(found, "md").values())
    files = form_files(found, "bug")
    (session,) = [content for name, content in files.items() if name.endswith(".jsonl")]
    (report,) = [content for name, content in files.items() if name.endswith(".md")]
    assert sum('"type": "request"' in line for line in session.splitlines()) == 2
    again = view(replay(open_case(open_paths(["-"], stdin=session.encode()))))
    assert any(note.finding.rule == "agent.ran_held_call" for note in again.findings)
    assert "inspector explain loop-inspector-agent-ran_held_call.jsonl" in report
    assert "Found in turn 2 of 3, responses 2 to 3." in report
    assert report.count("the agent ran it") == 1
    assert "the result of write_file, which the agent sent back · the request of response 2 /messages/2" in report


def test_a_bug_report_has_the_verdict_of_its_own_session_and_says_that_of_the_whole_turn():
    """The report keeps the answer that lied about its call, and leaves out the repair that came after it."""
    found = show(pair_of(ASKS, chat("I will write it.", "tool_calls", call(CUT), tokens=40), tools=TOOLS,
                         max_tokens=40),
                  *repair_turn()[1:])
    assert found.turns[0].verdict.word == "CALL REPAIRED"
    report = next(content for name, content in form_files(found, "bug").items() if name.endswith(".md"))
    assert report.startswith("# Bug report: CALL HELD (judge.cut_arguments)\n")
    assert "responses 1 to 3. The verdict of the whole turn is CALL REPAIRED; answers that do not matter" in report
    assert "Turn 1: CALL HELD" in report


def test_a_bug_report_keeps_the_answers_that_led_to_the_limit_of_its_verdict():
    """A report that lost the failed repair would not say why the turn ended."""
    path = next(each.path for each in samples() if "06-repair-fails" in str(each.path))
    found = view(replay(open_case(open_paths([str(path)]))))
    files = form_files(found, "bug")
    report = next(content for name, content in files.items() if name.endswith(".md"))
    assert found.turns[0].verdict.sentence in report
    assert "continuation_tool_repair_attempts (1 of 1) ended the turn" in report
    session = next(content for name, content in files.items() if name.endswith(".jsonl"))
    assert session.count('"type":"response"') + session.count('"type": "response"') == 2


def test_a_report_about_several_files_names_the_file_of_each_turn_and_counts_as_that_file_does(tmp_path):
    paths = [str(each.path) for each in samples() if each.path.name.startswith(("08-", "09-"))]
    found = view(replay(open_case(open_paths(paths))))
    report = next(content for name, content in form_files(found, "bug", turn=2).items() if name.endswith(".md"))
    assert "Found in 09-one-complete-one-cut.session.jsonl, turn 1 of 1.\n" in report
    (page,) = form_files(found, "html").values()
    for path in paths:
        assert f"<p class=\"info\">File: {path}, turn 1 of 1</p>" in page
    (tmp_path / "-").write_bytes(Path(paths[0]).read_bytes())  # named as standard input is, which is no file
    both = view(replay(open_case(open_paths([str(tmp_path / "-"), paths[1]]))))
    assert any("Found in turn 1 of 1.\n" in content for content in form_files(both, "bug", turn=1).values())
    alone = view(replay(open_case(open_paths(paths[:1]))))
    assert "File: " not in next(iter(form_files(alone, "html").values()))


def test_shrinking_leaves_what_is_needed():
    assert shrink(list(range(20)), lambda some: {3, 17} <= set(some)) == [3, 17]
    assert shrink([1], lambda some: True) == [1]


def test_a_symptom_without_findings_is_the_verdict():
    found = show(pair_of([user("hi")], chat("all of it")))
    rule, shows = symptom(found, found.turns[0])
    assert rule == found.turns[0].verdict.word.lower().replace(" ", "-")
    assert shows(found)
    assert shows(reread([found.responses[0]], found.replay.settings, found.inputs))


@each_row(("path", "name"), [
    ("there/run.session.jsonl", "run"),
    ("run.har", "run-har"),
    ("run.har.gz", "run-har-gz"),
    ("claude-4.5.har", "claude-4-5-har"),
    ("my run.json", "my-run-json"),
    (".har", "session-har"),
    ("-", "session"),
])
def test_files_are_named_after_their_source(path, name):
    assert stem_of(path) == name


def test_a_credential_with_a_dot_in_a_file_name_is_masked_before_it_has_hyphens():
    key = "hvs.CAESIJ1ymWMs7V2Vlt9219kur1midMdAN3lhKak3hYzKRxHSXrfDILCujLMnuDGKxOuLwSMX"
    assert key[4:] not in stem_of(f"run-{key}.jsonl")
    assert stem_of(f"run-{key}.jsonl").startswith("run-")


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8), unique=True,
                min_size=2, max_size=6))
def test_sources_that_differ_only_behind_the_first_dot_have_names_of_their_own(rests):
    names = [stem_of(f"run.{rest}") for rest in rests]
    assert len(set(names)) == len(names)
    assert all("." not in name for name in names)


def test_the_command_line(tmp_path, capsys):
    path = tmp_path / "my session.har.jsonl"
    path.write_bytes(lines(*cut_call_ran()))

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            cli.main(["export", str(path), *words], standalone_mode=False)
        told.append((said := capsys.readouterr()).err)
        return ended.value.code, said.out

    told = []
    code, out = run("--to", "html", "--out", str(tmp_path / "new"))
    assert (code, told) == (0, [f"inspector: {tmp_path / 'new'}: this folder is new\n"])
    assert out.strip() == str(tmp_path / "new" / "my-session-har-jsonl.html")
    assert (tmp_path / "new" / "my-session-har-jsonl.html").read_text("utf-8").startswith("<!doctype html>")
    with pytest.raises(CallerError, match="exists; --force overwrites it"):
        run("--to", "html", "--out", str(tmp_path / "new"))
    assert run("--to", "html", "--out", str(tmp_path / "new"), "--force")[0] == 0
    assert told[1:] == [""]
    page = tmp_path / "report.html"
    code, out = run("--to", "html", "--out", str(page))
    assert (code, out.strip(), page.is_file()) == (0, str(page), True), "a name that ends as the file does is the file"
    with pytest.raises(CallerError, match=r"report\.html: exists; --force overwrites it"):
        run("--to", "html", "--out", str(page))
    with pytest.raises(CallerError, match=r"report\.md: this form is 2 files: expected the name of a folder"):
        run("--to", "bug", "--out", str(tmp_path / "report.md"))
    with pytest.raises(CallerError, match=r"there is no folder .*mistyped; only the last folder of a path is made"):
        run("--to", "html", "--out", str(tmp_path / "mistyped" / "out"))
    assert not (tmp_path / "mistyped").exists()
    assert run("--to", "md", "--turn", "1", "--out", "-")[1].startswith("# Loop Inspector report")
    first, last = (run("--to", "fixture", "--response", number, "--out", "-")[1] for number in "12")
    assert first.startswith('"""Recorded: openai_chat, response 1."""')
    assert last.startswith('"""Recorded: openai_chat, response 2."""')
    with pytest.raises(click.UsageError, match="'0' is not a whole number from 1 up"):
        run("--to", "fixture", "--response", "0")
    with pytest.raises(click.UsageError, match="--to is missing: one of bug, html, md"):
        run()
    for words, says in {
        ("--to", "pdf"): "unknown form 'pdf'", ("--to", "md", "--turn", "9"): "no turn 9",
        ("--to", "json", "--turn", "1"): "--turn 1: json holds the whole session; leave it out",
        ("--to", "md", "--response", "1"): "--response 1: md holds turns; --turn N chooses one",
        ("--to", "curl", "--turn", "1"): "--turn 1: curl holds one response; --response N chooses it",
        ("--to", "curl", "--response", "9"): "no response 9; expected 1 to 2",
        ("--to", "curl"): "choose a response: --response 1 to 2, or in the app a step that has one",
        ("--to", "html", "--out", str(path)): "cannot be written",
    }.items():
        with pytest.raises(CallerError, match=says):
            run(*words)


# -- transcripts -------------------------------------------------------------------------------------------------------


def test_rows_of_an_agent_are_never_passed_off_as_a_providers_bytes(tmp_path):
    rows = agents.claude(agents.prompt("hi"), agents.block(agents.text("Hello."), stop="end_turn"))
    seen = agents.show(rows, tmp_path)
    for form in ("session", "fixture", "bug", "curl"):
        with pytest.raises(CallerError) as raised:
            form_files(seen, form)
        said = "its request was not recorded" if form == "curl" else "which rows of claude-code do not hold"
        assert said in str(raised.value), form
        assert form == "curl" or str(raised.value).endswith("or share line 2 of the transcript"), "one line, not 2 to 2"
    for form in ("html", "md", "text", "json"):
        assert any("Hello." in content for content in form_files(seen, form).values()), form


def test_lone_surrogates_and_impossible_figures_are_written_in_every_form(tmp_path):
    body = chat("Hi \ud800", "length", call("\ud800", key="\udc00"), tokens=10**30)
    body["id"] = "\ud800"
    asks = {"model": "\ud800", "max_tokens": -1, "messages": [user("hi \ud800")]}
    path = tmp_path / "odd.json"
    path.write_bytes(lines({**exchange(asks, json.dumps(body)), "duration_ms": -5, "timestamp": -1}))
    loaded = open_paths([str(path)])
    found = view(replay(open_case(loaded)))
    for name, files in everything(found).items():
        assert files, name
        written = write(files, str(tmp_path / name))
        assert all(Path(each).read_bytes() for each in written.paths), name
    traces, metrics = (json.loads(text) for text in everything(found)["otlp"].values())
    attributes = {each["key"] for span in traces["resourceSpans"][0]["scopeSpans"][0]["spans"]
                  for each in span["attributes"]}
    assert "gen_ai.request.model" in attributes
    assert attributes.isdisjoint({"gen_ai.usage.output_tokens", "gen_ai.request.max_tokens"}), "those are no counts"
    names = [each["name"] for each in metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]]
    assert "gen_ai.client.operation.duration" not in names


def test_a_status_and_times_that_are_none_are_left_out_of_a_session(tmp_path):
    har = {"log": {"entries": [{
        "request": {"method": "POST", "url": "https://api.openai.com/v1/chat/completions",
                    "postData": {"text": json.dumps({"model": "m", "messages": [user("hi")]})}},
        "response": {"status": 1000, "content": {"text": json.dumps(chat("Hi"))}}, "time": -1}]}}
    path = tmp_path / "odd.har"
    path.write_text(json.dumps(har))
    found = view(replay(open_case(open_paths([str(path)]))))
    (session,) = everything(found)["session"].values()
    (again,) = open_paths(["-"], stdin=session.encode()).exchanges
    assert (again.response.text, again.response.http_status, again.duration_ms) == ("Hi", None, None)


def test_documents_have_times_and_costs():
    timed = native((AT, PIECES, 1_700.0))
    priced = view(replay(timed.replay.case, Settings(prices=price_table({"m-1": {"input": 1, "output": 10}}, "USD"))))
    for form in ("html", "md"):
        (content,) = form_files(priced, form).values()
        assert "took 1.7 s; cost 0.000079 USD" in content
        assert "response 1: first byte after 50 ms, whole after 1.7 s, largest gap 1.5 s at byte 40" in content

"""A report that is mailed holds the deciding bytes themselves: true offsets, inert, masked."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.config.settings import Settings
from inspector.export import form_files
from inspector.report.lines.excerpts import AROUND, MOST, excerpts, text_rows
from inspector.report.lines.slices import text_of_bytes
from loop_core import decode_response
from loop_core.values import At, Evidence, ExchangePart
from tests.export.test_export import KEY, MARKUP, html_of
from tests.report.test_inert import HOSTILE, dangerous
from tests.scenes import transcripts as agents
from tests.scenes.recordings import (
    ASKS,
    CUT,
    TOOLS,
    call,
    chat,
    cut_call_ran,
    cut_stream,
    exchange,
    pair_of,
    show,
    user,
)
from tests.scenes.rows import each_row

MAILED = ("html", "md", "text", "bug")


def content(view, form):
    return "".join(form_files(view, form).values())


def of(view, turn=0):
    return list(excerpts(view, view.turns[turn]))


def with_exchange(view, **changes):
    """The view with the exchange of its first response changed."""
    facts = view.responses[0]
    changed = replace(facts, exchange=replace(facts.exchange, **changes))
    return replace(view, responses=(changed, *view.responses[1:]))


def reading(view, at):
    """The excerpt of one place, as if the verdict had been read there."""
    facts = view.responses[0]
    stop = facts.judgement.stop._replace(evidence=(Evidence("rule.of_test", at),))
    changed = replace(facts, judgement=facts.judgement._replace(stop=stop), verdicts=())
    return of(replace(view, responses=(changed, *view.responses[1:])))


CUT_TEXT = pair_of(ASKS, chat("It begins", "length"))


@each_row("form", MAILED)
def test_the_stop_word_and_its_offset_are_in_what_is_mailed(form):
    view = show(CUT_TEXT)
    body = view.responses[0].exchange.body
    written = html_text(view) if form == "html" else content(view, form)
    assert f'{body.index(b"length") - 1:>11,} > "length"' in written
    assert "/choices/0/finish_reason" in written.replace("\\_", "_")
    assert "response 1, body bytes" in written


def test_the_deciding_rows_stand_out_in_the_page():
    page = content(show(CUT_TEXT), "html")
    body = show(CUT_TEXT).responses[0].exchange.body
    assert f"<b>{body.index(b'length') - 1:>11,} &gt; &quot;length&quot;\n</b>" in page
    assert page.count("<b>") == 1


def html_text(view):
    return "".join(html_of(view).text)


@each_row("form", MAILED)
def test_the_end_of_a_held_calls_arguments_is_in_what_is_mailed(form):
    view = show(*cut_call_ran())
    written = html_text(view) if form == "html" else content(view, form)
    assert "held call write_file: the end of its arguments" in written.replace("\\_", "_")
    assert json.dumps(CUT)[-20:] in written
    assert "the result of write_file, which the agent sent back" in written
    assert re.search(r"the request of response 2 /messages/2:?\s", written)
    assert '> {"role": "tool", "tool_call_id": "call_a1b2c3d4e5", "content": "ok, written"}' in written


@each_row("form", ["html", "md", "text"])  # a bug report also holds the recording as it is
@each_row("text", HOSTILE.values())
def test_the_place_of_a_call_in_a_request_is_inert(form, text):
    first, second = cut_call_ran()
    second["request"]["body"][text] = [call(CUT)]
    written = content(show(first, second), form)
    assert written.count("the request of response 2 /") == 3
    assert dangerous(written) == []


@each_row("form", MAILED)
def test_a_complete_turn_takes_no_room(form):
    written = content(show(pair_of(ASKS, chat("All of it."))), form)
    assert "deciding bytes" not in written


def test_answers_that_decided_nothing_are_left_out():
    tools = {"tools": TOOLS}
    results = [*ASKS, {"role": "assistant", "content": None, "tool_calls": [call()]},
               {"role": "tool", "tool_call_id": "call_a1b2c3d4e5", "content": "ok"}]
    view = show(pair_of(ASKS, chat(None, "tool_calls", call()), **tools),
                pair_of(results, chat("And", "length"), **tools))
    assert len(view.turns) == 1
    assert {each.where.partition(",")[0] for each in of(view)} == {"response 2"}


def test_where_nothing_came_the_end_of_the_body_is_shown():
    view = show(pair_of(ASKS, cut_stream("It begins"), stream=True))
    size = len(view.responses[0].exchange.body)
    ends = [row for each in of(view) for row in each.rows if row.start == size]
    assert [(row.text, row.deciding) for row in ends][:1] == [("(nothing: the body ends here)", True)]


def test_rules_that_read_the_same_bytes_share_an_excerpt():
    at = At(ExchangePart.BODY, 2, 6)
    view = show(CUT_TEXT)
    facts = view.responses[0]
    stop = facts.judgement.stop._replace(evidence=(Evidence("rule.one", at, "so"), Evidence("rule.two", at)))
    view = replace(view, responses=(replace(facts, judgement=facts.judgement._replace(stop=stop)),))
    assert [each.title for each in of(view)] == ["rule.one (so); rule.two"]


def test_of_many_deciding_bytes_the_beginning_and_the_end_are_shown():
    view = with_exchange(show(CUT_TEXT), content=b"<" + b"a" * 5_000 + b">" + b"z" * 5_000)
    (found,) = reading(view, At(ExchangePart.BODY, 0, 5_002))
    texts = [row.text for row in found.rows]
    assert texts[0] == "<" + "a" * (MOST // 2 - 1)
    assert texts[1] == f"({5_002 - MOST:,} bytes left out)"
    assert texts[2].endswith("a>")
    assert texts[3] == "z" * AROUND
    assert [row.deciding for row in found.rows] == [True, True, True, False]


def test_a_line_that_begins_near_is_shown_from_its_beginning():
    head = b'data: {"a": "' + b"b" * (AROUND - 8)
    view = with_exchange(show(CUT_TEXT), content=b"event: x\n\n" + head + b'"length"}')
    (found,) = reading(view, At(ExchangePart.BODY, len(head) + 10, len(head) + 18))
    assert found.rows[0].start == 10
    assert found.rows[0].text.startswith("data: {")


@given(st.binary(max_size=1_500), st.integers(0, 1_500), st.integers(0, 1_500))
def test_the_rows_are_the_bytes_at_their_offsets(body, one, other):
    start, end = sorted((min(one, len(body)), min(other, len(body))))
    view = with_exchange(VIEW, content=body)
    (found,) = reading(view, At(ExchangePart.BODY, start, end))
    assert any(row.deciding for row in found.rows)
    for row in found.rows:
        if row.start is not None and not row.text.startswith("("):
            line = body[row.start :]
            assert any(text_of_bytes(line[:size]) == row.text for size in range(1, len(line) + 1))
    assert all(not dangerous(text) for text in text_rows(found.rows))


VIEW = show(CUT_TEXT)


# -- headers, requests, rows of agents -------------------------------------------------------------------------------


def test_a_status_and_a_header_are_shown_with_their_values():
    moved = {"location": f"https://elsewhere.example/?key={KEY}"}
    view = show(exchange({"model": "m-1", "messages": ASKS}, "", status=307, response_headers=moved))
    texts = [row.text for each in of(view) for row in each.rows]
    assert any(text.startswith("location: https://elsewhere.example/") for text in texts)
    assert not any(KEY in text for text in texts)
    (found,) = reading(view, At(ExchangePart.HEADERS, pointer="status"))
    assert [row.text for row in found.rows] == ["HTTP status 307"]


def test_a_place_in_the_request_is_shown_with_its_value():
    view = show(CUT_TEXT)
    (found,) = reading(view, At(ExchangePart.REQUEST, pointer="/model"))
    assert [(row.start, row.text) for row in found.rows] == [(None, '"m-1"')]
    (found,) = reading(view, At(ExchangePart.REQUEST, pointer="url"))
    assert [row.text for row in found.rows] == ["https://api.openai.com/v1/chat/completions"]
    assert reading(view, At(ExchangePart.REQUEST, pointer="/nothing/here")) == []
    assert reading(view, At(ExchangePart.REQUEST)) == []


def test_rows_of_an_agent_are_called_rows_with_their_lines(tmp_path):
    rows = agents.claude(agents.prompt("hi"), agents.block(agents.text("It begins"), stop="max_tokens"))
    view = agents.show(rows, tmp_path)
    found = of(view)
    assert found
    assert all("(rows of claude-code, line 2 of the file)" in each.where for each in found)


def test_a_simulated_cut_is_shown_with_the_bytes_that_were_made():
    view = show(pair_of(ASKS, chat("Water, fire and earth. " * 20, tokens=100)),
                 settings=Settings(simulate=True, max_tokens=20))
    (found,) = of(view)
    assert found.where.startswith("SIMULATED response of step ")
    assert [row.text for row in found.rows if row.deciding] == ['"length"']


# -- hostile text ----------------------------------------------------------------------------------------------------


def hostile(text):
    """A cut answer whose stop word stands between two fields that hold a text."""
    body = chat("It begins", None)
    body["choices"][0] = {"before": text, "finish_reason": "length", "after": text, **body["choices"][0],
                          "index": 0}
    body["choices"][0]["finish_reason"] = "length"
    return show(pair_of([user("hi")], json.dumps(body, ensure_ascii=False)))


def test_markup_beside_the_deciding_bytes_is_text():
    view = hostile(MARKUP.replace('"', "'"))
    page = html_of(view)
    assert "script" not in page.tags
    assert page.tags.count("b") == 1
    assert "img" not in page.tags
    assert "a" not in page.tags
    assert MARKUP.replace('"', "'") in "".join(page.text).split("The deciding bytes")[1]
    fence = "`" * 5
    for form in ("md", "bug"):
        document = content(view, form).split("The deciding bytes")[1]
        assert f"{fence}text\n" in document  # longer than the four that the text brings


@pytest.mark.parametrize("form", ["html", "md", "text"])
def test_no_control_character_beside_the_deciding_bytes_gets_out(form):
    written = content(hostile("".join(HOSTILE)), form)
    assert "deciding bytes" in written
    assert not dangerous(written)


@each_row("shift", range(0, len(KEY) + 8, 5))
def test_a_credential_that_begins_outside_of_an_excerpt_is_masked_inside(shift):
    before = b'{"text": "' + b"x " * 200 + KEY.encode() + b" "
    body = before + b"y" * (AROUND - len(KEY) + shift) + b'"length"'
    view = with_exchange(VIEW, content=body)
    (found,) = reading(view, At(ExchangePart.BODY, len(body) - 8, len(body)))
    shown_text = "".join(row.text for row in found.rows)
    assert not any(KEY[at : at + 6] in shown_text for at in range(len(KEY) - 5))


def test_a_credential_that_a_live_run_heard_in_pieces_is_masked():
    pieces = [KEY[at : at + 9] for at in range(0, len(KEY), 9)]
    deltas = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in ("it is ", *pieces)]
    deltas.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
    body = "".join(f"data: {json.dumps(delta)}\n\n" for delta in deltas).encode()
    view = with_exchange(VIEW, content=body, response=decode_response("openai_chat", [body]))  # as it came, unmasked
    facts = view.responses[0]
    stop = facts.judgement.stop._replace(evidence=facts.exchange.response.stop_reason.evidence)
    view = replace(view, responses=(replace(facts, judgement=facts.judgement._replace(stop=stop)),))
    (found,) = of(view)
    text = "".join(row.text for row in found.rows)
    assert '"length"' in [row.text for row in found.rows if row.deciding]
    assert '"content": ' in text
    assert not any(piece in text for piece in pieces)

"""Facts and bytes in Wire: what is marked in each form, what a place became, and what that costs."""

import time
from itertools import pairwise
from pathlib import Path

import pytest

from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import ResponseFacts, View, view
from inspector.report.lines import body_slices, response, wire
from inspector.report.lines.body_slices import Slice
from inspector.report.lines.slices import Bytes, Hex, Slices
from inspector.report.lines.spans import EMPTY, Span, Tone, text_of, width_of
from inspector.report.lines.wire import (
    FactChoice,
    fact_line,
    next_fact,
    next_of,
    next_reading,
    picked_of,
    range_note,
    readings_in,
    value_of,
)
from inspector.sessions import open_paths
from inspector.sessions.provenance import Provenance, readings
from tests.scenes.app import CUT_ARGUMENTS, PARTS, cut_call_ran, cut_text, story

FORMS = ("events", "parsed", "raw", "hex")


@pytest.fixture
def two_turns(tmp_path: Path) -> View:
    """A text cut five times; then a cut call."""
    return view(replay(open_case(open_paths([str(story(tmp_path, [*cut_text(), *cut_call_ran()]))]))))


def found_in(facts: ResponseFacts) -> Provenance:
    found = readings(facts.exchange)
    assert found is not None
    return found


def cut_call(seen: View) -> ResponseFacts:
    return next(facts for facts in seen.responses if facts.verdicts)


def picking(facts: ResponseFacts, mode: str, picked: FactChoice) -> Bytes:
    """The sheet as Wire shows it."""
    found, sheet = found_in(facts), wire.wire(facts, mode)
    assert isinstance(sheet, Bytes)
    reads = found.by_fact[picked.fact]
    here = reads[picked.reading]
    line = fact_line(found, picked, facts.exchange.response)
    return sheet.picking(line, [(read.start, read.end) for read in reads], (here.start, here.end))


def role_text(sheet: Bytes, role: Tone) -> str:
    spans = [span.text for index in range(len(sheet)) for span in sheet.line(index) if span.role is role]
    digits = [text for text in spans if len(text) == 2]
    return bytes.fromhex("".join(digits)).decode() if isinstance(sheet, Hex) else "".join(spans)


@pytest.mark.parametrize("mode", FORMS)
@pytest.mark.parametrize(("fact", "said"), [
    ("stop_reason", '"length"'), ("usage.output_tokens", "64"), ("tool_calls[0].name", '"write_file"'),
    ("tool_calls[0].id", '"call_1"'), ("model", '"gpt-5-mini"'),
])
def test_the_bytes_of_a_fact_are_marked_in_every_form(two_turns: View, mode: str, fact: str, said: str) -> None:
    sheet = picking(cut_call(two_turns), mode, FactChoice(fact))
    assert role_text(sheet, Tone.PICKED) == said
    assert any(span.role is Tone.PICKED for span in sheet.line(sheet.focus))


def test_the_slices_of_a_call_are_its_arguments_one_after_the_other(two_turns: View) -> None:
    facts = cut_call(two_turns)
    found = found_in(facts)
    reads = found.of("tool_calls[0].arguments")
    assert len(reads) == -(-len(CUT_ARGUMENTS) // 20)  # the stream sends twenty characters an event
    picked: FactChoice = FactChoice("tool_calls[0].arguments")
    pieces = []
    for _ in reads:
        pieces.append(role_text(picking(facts, "raw", picked), Tone.PICKED))
        picked = next_reading(found, picked, 1)
    assert "".join(piece[1:-1] for piece in pieces).replace('\\"', '"') == CUT_ARGUMENTS
    assert picked.reading == 0
    assert next_reading(found, picked, -1).reading == len(reads) - 1


def test_the_head_names_the_fact_its_value_and_its_bytes(two_turns: View) -> None:
    facts = two_turns.responses[0]
    found = found_in(facts)
    read = found.of("usage.output_tokens")[0]
    number = found.facts.index("usage.output_tokens") + 1
    sheet = picking(facts, "events", FactChoice("usage.output_tokens"))
    assert text_of(sheet.line(wire.FACT_LINE)) == (
        f"fact {number} of {len(found.facts)}: usage.output_tokens = 64 · "
        f"bytes {read.start:,}–{read.end:,} · 1 of 1 slice")
    assert facts.exchange.body[read.start : read.end] == b"64"
    for width in (20, 60, 200):
        assert sheet.height(wire.FACT_LINE, width) == len(sheet.rows(wire.FACT_LINE, width)) == 1


def test_picking_moves_no_line(two_turns: View) -> None:
    facts = two_turns.responses[0]
    for mode in FORMS:
        plain = wire.wire(facts, mode)
        assert isinstance(plain, Bytes)
        other = plain.picking((Span("told " * 99),), [(6, 30)], (6, 30))
        assert other.shape is plain.shape
        assert [plain.height(i, 40) for i in range(len(plain))] == [other.height(i, 40) for i in range(len(other))]
        assert text_of(plain.line(wire.FACT_LINE)) == ". next fact  , fact before: its bytes"
        assert width_of(plain.line(wire.FACT_LINE)) <= 39, "it is whole at 41 columns, beside the margins"


def test_facts_are_gone_through_round_the_end(two_turns: View) -> None:
    found = found_in(two_turns.responses[0])
    picked, names = None, []
    for _ in found.facts:
        picked = next_fact(found, picked, 1)
        assert picked is not None
        names.append(picked.fact)
    assert tuple(names) == found.facts
    assert next_fact(found, picked, 1) == FactChoice(found.facts[0])
    assert next_fact(found, None, -1) == FactChoice(found.facts[-1])
    assert next_fact(Provenance({}, (), ()), None, 1) is None


def test_every_fact_has_a_value_and_nothing_else_has(two_turns: View) -> None:
    for facts in two_turns.responses:
        for fact in found_in(facts).facts:
            assert value_of(facts.exchange.response, fact) is not None
    answer = cut_call(two_turns).exchange.response
    assert value_of(answer, "tool_calls[0].arguments") == CUT_ARGUMENTS
    for nothing in ("tool_calls[7].name", "usage.cached_tokens", "x", "error", "refusal"):
        assert value_of(answer, nothing) is None


# -- from bytes to facts ---------------------------------------------------------------------------------------------


def test_a_range_of_bytes_says_what_it_became(two_turns: View) -> None:
    facts = two_turns.responses[0]
    found, body = found_in(facts), facts.exchange.body
    end = body.index(b"\n\n")
    reads = readings_in(found, 0, end)
    assert [read.fact for read in reads] == ["id", "model", "text"]
    assert range_note(reads, 0, end) == f"bytes 0–{end:,} became id, model, text"
    assert readings_in(found, 0, 3) == []
    assert range_note([], 2, 3) == "byte 2 became no fact"
    for start in range(0, len(body), 7):
        wanted = [read for read in found.by_start if read.start < start + 30 and read.end > start]
        assert readings_in(found, start, start + 30) == wanted


def test_what_bytes_became_is_gone_through_one_by_one(two_turns: View) -> None:
    found = found_in(two_turns.responses[0])
    reads = readings_in(found, 0, 140)
    first = next_of(found, reads, None)
    assert first == picked_of(found, reads[0])
    assert next_of(found, reads, first) == picked_of(found, reads[1])
    assert next_of(found, reads, picked_of(found, reads[-1])) == first


def test_a_cell_of_a_line_is_a_byte_of_the_body() -> None:
    body = bytes(range(48, 48 + 70)) * 3
    sheet = Slices([(Span("head"),)], body, [Slice(0, 100, 2, "at"), Slice(100, 210)], [], EMPTY)
    for index in (1, 2):
        for width in (24, 50, 300):
            for row, line in enumerate(sheet.rows(index, width)):
                text = text_of(line)
                for column in range(10, len(text)):
                    span = sheet.spot(index, row, column, width)
                    assert span is not None
                    if span[1] - span[0] == 1:
                        assert chr(body[span[0]]) == text[column]
                    else:
                        assert (row, index) == (0, 1)  # in the label
                        assert column < 15
    assert sheet.spot(0, 0, 0, 80) is None
    assert sheet.span(1) == (0, 100)
    assert sheet.span(3) is None


def test_a_line_with_wide_characters_is_taken_whole() -> None:
    body = "漢字 wide".encode()
    sheet = Slices([], body, body_slices.raw_lines(body), [], EMPTY)
    assert sheet.spot(0, 0, 12, 80) == (0, len(body))


@pytest.mark.parametrize("width", [50, 80])
def test_a_cell_of_a_hex_row_is_a_byte(width: int) -> None:
    body = bytes(range(33, 33 + 40))
    sheet = Hex([], body, [], EMPTY, None)
    for index in range(3):
        for row, line in enumerate(sheet.rows(index, width)):
            text = text_of(line)
            seen_bytes = set()
            for column in range(10, len(text)):
                span = sheet.spot(index, row, column, width)
                assert span is not None
                if span[1] - span[0] == 1 and text[column] != " ":
                    seen_bytes.add(span[0])
                    digit = f"{body[span[0]]:02x}"
                    assert text[column] in (chr(body[span[0]]), *digit)
            start = index * 16 + row * 8
            size = 16 if width == 80 else 8
            assert seen_bytes == set(range(start, min(start + size, 40)))
    assert sheet.span(2) == (32, 40)


# -- the response ----------------------------------------------------------------------------------------------------


def test_the_lines_of_a_response_know_their_facts(two_turns: View) -> None:
    facts = cut_call(two_turns)
    sheet = response.response(two_turns, facts)
    assert isinstance(sheet, response.ResponseSheet)
    told_by = {}
    for index, fact in enumerate(sheet.facts):
        if fact is not None:
            told_by.setdefault(fact, []).append(text_of(sheet.line(index)))
    assert told_by["stop_reason"][0].startswith('raw            "length"')
    assert told_by["usage.output_tokens"] == ["usage          input 20 · output 64 of 64"]
    assert told_by["tool_calls[0].arguments"][0].startswith("calls          ▣ held write_file")
    assert told_by["text"][1:] == ["│ Writing it now."]
    assert set(told_by) - {None} <= set(found_in(facts).facts)


# -- parsed ----------------------------------------------------------------------------------------------------------


def test_each_event_is_a_tree_at_its_offsets(two_turns: View) -> None:
    facts = two_turns.responses[0]
    body = facts.exchange.body
    slices, what = body_slices.parsed_slices(facts.exchange)
    assert what == f"{body.count(b'data: ')} events"
    lines = [" " * each.indent + body[each.start : each.end].decode() for each in slices]
    assert lines[:8] == ["{", '  "id": "c",', '  "model": "gpt-5-mini",', '  "choices": [', "    {",
                         '      "index": 0,', '      "delta": {', f'        "content": "{PARTS[0][:24]}"']
    assert lines[-1] == "[DONE]"
    assert all(each.start >= before.end for before, each in pairwise(slices))


def test_what_lies_behind_the_bound_is_shown_as_sent(two_turns: View, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = two_turns.responses[0].exchange
    events, _ = body_slices.events_of(exchange)
    monkeypatch.setattr(body_slices, "PRETTY", events[1].end)
    slices, what = body_slices.parsed_slices(exchange)
    assert what.endswith(f"; after {events[1].end:,} bytes as sent")
    assert [each for each in slices if each.start >= events[2].start] == events[2:]


# -- what it costs ---------------------------------------------------------------------------------------------------


def test_a_fact_of_fifty_thousand_slices_marks_a_line_at_the_price_of_the_line() -> None:
    body = b'"ab" ' * 50_000
    sheet = Slices([EMPTY], body, body_slices.raw_lines(body), [], EMPTY, 0)
    reads = [(at, at + 4) for at in range(0, len(body), 5)]
    other = sheet.picking((Span("x"),), reads, reads[25_000])
    started = time.process_time()
    line = other.line(other.focus)
    assert time.process_time() - started < 0.5
    assert [span.text for span in line if span.role is Tone.PICKED] == ['"ab"']

"""The pure lines: spans, sheets and each view, over sessions built by hand."""

import json
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report import run_answers
from inspector.report.explain import text
from inspector.report.explain_document import document
from inspector.report.facts import View, view
from inspector.report.lines import body_slices, calls, diff, header, machine_drawing, response, steps, wire
from inspector.report.lines.body_slices import Slice
from inspector.report.lines.diff import sides
from inspector.report.lines.glyphs import (
    ADMISSION,
    AHEAD,
    ASCII,
    AT_CURSOR,
    MARKED,
    NOTE,
    PAST,
    STATE,
    STOP,
    WIRE_FORMS,
    ascii_line,
    ascii_text,
)
from inspector.report.lines.merged import merged_sheet
from inspector.report.lines.slices import Hex, Slices
from inspector.report.lines.spans import (
    EMPTY,
    LONGEST,
    Line,
    LineSheet,
    Span,
    Tone,
    cells,
    clip,
    field,
    highlight,
    mark_matches,
    paragraphs,
    plain,
    safe,
    split_line,
    spread_ends,
    text_of,
    width_of,
    wrap_line,
)
from inspector.report.lines.steps import Outline, is_interesting
from inspector.sessions import open_paths
from inspector.tui.paint import terminal_cells
from inspector.whatif import branch_lines as whatif
from inspector.whatif.tree import branch
from loop_core.judge.gate import Admission
from loop_core.turn.machine import TRANSITIONS
from loop_core.turn.presets import PI_PRESENCE
from loop_core.turn.state import State
from loop_core.values import Stop
from tests.scenes import bodies, recordings, transcripts
from tests.scenes.app import (
    CUT_ARGUMENTS,
    HOSTILE,
    PARTS,
    assistant,
    body,
    cut_call_ran,
    cut_text,
    entry,
    hostile,
    story,
    stream,
    user,
)
from tests.scenes.rows import each_row


@pytest.fixture
def two_turns(tmp_path: Path) -> View:
    """Two turns: a text cut five times, then a cut call that the agent ran."""
    return read(tmp_path, [*cut_text(), *cut_call_ran()])


def read(folder: Path, entries: list) -> View:  # type: ignore[type-arg]
    return view(replay(open_case(open_paths([str(story(folder, entries))]))))


def said_by(sheet: LineSheet) -> list[str]:
    return [text_of(sheet.line(index)) for index in range(len(sheet))]


def role_texts(lines: list[Line], role: Tone) -> list[str]:
    return [span.text for line in lines for span in line if span.role is role]


# -- spans -----------------------------------------------------------------------------------------------------------


def test_text_of_a_transcript_becomes_inert_spans() -> None:
    for made in (safe(HOSTILE), *(span for line in paragraphs(HOSTILE) for span in line)):
        assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs") for char in made.text)
        assert "[bold red]" in made.text or "[link=x]" in made.text


def test_cells_count_wide_and_combining_characters() -> None:
    assert (cells("abc"), cells("漢字"), cells("e\u0301")) == (3, 4, 1)


@each_row("width", range(1, 30))
def test_clipping_never_exceeds_a_width(width: int) -> None:
    line = (Span("abc", Tone.STRONG), Span("漢字漢字"), Span("defghij"))
    assert width_of(clip(line, width)) <= width
    assert clip(line, 40) == line


@each_row("width", range(2, 20))
def test_a_sign_that_makes_the_one_before_it_wider_is_counted_with_it(width: int) -> None:
    """A flag with U+FE0F takes two cells, while its two characters take one and none."""
    flags = "ab\N{WAVING WHITE FLAG}\ufe0f" * 5
    assert terminal_cells(flags) == 20
    assert width - 2 <= terminal_cells(text_of(clip((Span(flags),), width, terminal_cells))) <= width
    rows = wrap_line((Span(flags),), width, terminal_cells)
    assert max(width_of(row, terminal_cells) for row in rows) <= width
    assert "".join(map(text_of, rows)) == flags


def test_clipping_says_that_something_is_left_out() -> None:
    assert text_of(clip((Span("abcdefgh"),), 5)) == "abcd…"


def test_two_ends_of_a_line_fill_it() -> None:
    assert text_of(spread_ends((Span("ab"),), (Span("yz"),), 10)) == "ab      yz"
    assert text_of(spread_ends((Span("abcdefghij"),), (Span("yz"),), 10)) == "abcdef… yz"


@each_row("width", [3, 7, 10, 24, 80])
@each_row("text", ["one two three four five six", "x" * 50, "漢字 " * 12, "a" + " " * 30 + "b"])
def test_wrapping_loses_nothing_but_spaces_and_keeps_the_width(text: str, width: int) -> None:
    rows = wrap_line((Span(text[:5], Tone.STRONG), Span(text[5:])), width)
    assert "".join(text_of(row) for row in rows).replace(" ", "") == text.replace(" ", "")
    assert all(width_of(row) <= width for row in rows)


@pytest.mark.parametrize("width", [1, 0, -1])
def test_less_room_than_a_cell_counts_as_one(width: int) -> None:
    assert wrap_line((), width) == [()]
    assert [text_of(row) for row in wrap_line((Span("ab"),), width)] == ["a", "b"]


def test_wrapped_rows_hang_behind_a_gutter_or_under_a_field() -> None:
    gutter = wrap_line((Span("│ ", Tone.RULE), Span("word " * 10)), 20)
    assert len(gutter) > 2
    assert all(text_of(row).startswith("│ ") for row in gutter)
    under = wrap_line(field("name", Span("word " * 20)), 60)
    assert [text_of(row)[:15].strip() for row in under] == ["name", *[""] * (len(under) - 1)]
    sentence = (Span("this is the only run; ", Tone.DIM), Span("e", Tone.PRESS), Span(" runs it again", Tone.DIM))
    assert [text_of(row) for row in wrap_line(sentence, 34)] == ["this is the only run; e runs it", "again"], "no field"
    key = (Span(f"{'h':<18}", Tone.KEY), Span("Left, where lines are not wrapped"))
    assert [text_of(row) for row in wrap_line(key, 30)] == [
        "h                 Left, where", " " * 18 + "lines are", " " * 18 + "not wrapped"], "on a telephone"
    assert text_of(wrap_line(key, 26)[1]) == "where lines are not", "too narrow for two columns"


def test_a_sentence_that_begins_with_a_key_hangs_behind_no_gutter() -> None:
    line = (Span("z", Tone.PRESS), Span(" works one screen back: this pane alone"))
    assert [text_of(row) for row in wrap_line(line, 24)] == ["z works one screen back:", "this pane alone"]


def test_a_very_long_paragraph_is_broken_so_that_wrapping_stays_cheap() -> None:
    lines = paragraphs("word " * 5_000)
    assert "".join(text_of(line) for line in lines) == "word " * 5_000
    assert all(len(text_of(line)) <= LONGEST for line in lines)


def test_highlighting_changes_roles_and_no_character() -> None:
    line = (Span("abc"), Span("def", Tone.KEY))
    marked_line = highlight(line, 2, 5, Tone.MARK)
    assert text_of(marked_line) == "abcdef"
    assert [span.text for span in marked_line if span.role is Tone.MARK] == ["c", "de"]


def test_matches_are_marked_whatever_their_case() -> None:
    line = mark_matches((Span("Length, length, LENGTH"),), "length")
    assert [span.text for span in line if span.role is Tone.MATCH] == ["Length", "length", "LENGTH"]
    assert mark_matches((Span("İstanbul length"),), "length")[-1] == Span("length", Tone.MATCH)


def test_splitting_at_every_place_gives_the_line_back() -> None:
    line = (Span("abc"), Span("de", Tone.KEY), Span("f"))
    for at in range(7):
        left, right = split_line(line, at)
        assert (text_of(left), text_of(right)) == ("abcdef"[:at], "abcdef"[at:])


# -- glyphs ----------------------------------------------------------------------------------------------------------


def test_every_word_has_a_glyph() -> None:
    assert set(STOP) == set(Stop)
    assert set(STATE) == set(State)
    assert set(ADMISSION) == set(Admission)


def test_every_glyph_has_an_ascii_place_holder() -> None:
    for glyph, _ in (*STOP.values(), *STATE.values(), *ADMISSION.values()):
        assert ascii_text(glyph) != glyph or glyph.isascii()
        assert len(ascii_text(glyph)) <= 2
    assert all(stand_in.isascii() for stand_in in ASCII.values())
    assert ascii_text("the session › its subagent") == "the session > its subagent"
    assert [ascii_text(f"verdict{mark}") for mark in "▾▴"] == ["verdict_", "verdict^"], "a letter would be read with it"


def test_marks_that_stand_side_by_side_differ_in_ascii() -> None:
    """A held call stands behind the gutter of its text, and behind the note of its step."""
    beside = (AT_CURSOR, PAST, AHEAD, MARKED, NOTE, ADMISSION[Admission.HELD][0])
    assert len({ascii_text(mark) for mark in beside}) == len(beside)


def test_anything_else_is_escaped() -> None:
    assert text_of(ascii_line((Span("naïve 漢"),))) == "na\\xefve \\u6f22"


# -- the outline and the steps ---------------------------------------------------------------------------------------


def test_rows_and_steps_are_each_others_inverse(two_turns: View) -> None:
    outline = Outline(two_turns)
    found = [outline.at(row)[1] for row in range(outline.rows)]
    assert [step for step in found if step is not None] == list(range(len(two_turns.steps)))
    assert all(outline.at(outline.row_of(step))[1] == step for step in range(len(two_turns.steps)))
    assert found.count(None) == len(outline.blocks) == 4  # two turns, and twice the agent went on by itself


def test_interesting_steps_are_cuts_held_calls_and_bad_ends(two_turns: View) -> None:
    outline = Outline(two_turns)
    forward, at = [], -1
    while (following := outline.interesting(at, 1)) is not None:
        forward.append(following)
        at = following
    assert forward == [index for index, step in enumerate(two_turns.steps) if is_interesting(step)]
    states = [two_turns.steps[index].state for index in forward]
    assert states.count(State.EVALUATE_STOP) == 6  # five cut answers and the held call
    assert State.COMPLETE not in states
    assert outline.interesting(forward[-1], 1) is None
    assert outline.interesting(len(two_turns.steps), -1) == forward[-1]


def test_a_step_says_where_it_stands_in_a_word_and_a_gutter(two_turns: View) -> None:
    outline = Outline(two_turns)
    lines = [text_of(steps.row(outline, outline.row_of(step), 4)) for step in range(6)]
    assert lines[0] == " │  1 → Request             cap 256"
    assert lines[1] == " │  2 ✂ EvaluateStop        max_tokens 10 ms"
    assert lines[2] == " │  3 ◌ ContinuePending     0 of 3"
    assert lines[3] == " │  4 → RequestContinuation 1 anchor"
    assert [line[1] for line in lines] == ["│", "│", "│", "│", "▶", "┆"]


def test_headings_carry_the_verdict(two_turns: View) -> None:
    outline = Outline(two_turns)
    headings = [text_of(steps.heading(outline, block)).strip() for block in outline.blocks]
    for turn, heading in zip(two_turns.turns, (headings[0], headings[2]), strict=True):
        assert f"{turn.verdict.glyph} {turn.verdict.word}" in heading
    assert headings[1] == headings[3] == "the recorded agent went on"


# -- the views -------------------------------------------------------------------------------------------------------


def test_merged_text_is_laid_out_whole_with_its_seams(two_turns: View) -> None:
    outline = Outline(two_turns)
    sheet = merged_sheet(two_turns, outline.blocks[0], two_turns.responses[1].step)
    lines = said_by(sheet)
    for number, part in enumerate(PARTS[:4], 1):
        assert any(line[2:].startswith(f"segment {number} · 64 tokens") for line in lines)
        assert any(part.strip() in line for line in lines)
    for number in (1, 2, 3):
        wanted = f"══ seam {number} to {number + 1}: prefill, joined byte for byte · rule: careful ══"
        assert sum(line[2:] == wanted for line in lines) == 1
    assert "ends in AbortPartial, retry_limit" in lines
    gutters = {line[0] for line in lines if line[1:2] == " " and "segment" in line}
    assert gutters == {"│", "┃", "┆"}
    assert sheet.copy_text() == "".join(PARTS[:4])


def test_stepping_moves_no_line_of_the_merged_text(two_turns: View) -> None:
    outline = Outline(two_turns)
    first = merged_sheet(two_turns, outline.blocks[0], 0)
    for index in range(outline.blocks[0].end):
        other = first.at(index)
        assert other.shape is first.shape
        assert [line[2:] for line in said_by(other)] == [line[2:] for line in said_by(first)]


def test_an_anchor_that_was_cut_is_shown(tmp_path: Path) -> None:
    start = "The answer begins here and is long enough to be quoted back exactly as it was. "
    again = start[-40:]
    ask, hint = user("x"), user("Continue exactly from where you left off.")
    entries = [entry([ask], stream(start, "length", 64)),
               entry([ask, {"role": "assistant", "content": start}, hint], stream(again + "And it ends.", "stop", 8))]
    seen = read(tmp_path, entries)
    lines = said_by(merged_sheet(seen, Outline(seen).blocks[0], 1))
    assert any("seam 1 to 2: overlap, 40 characters cut · rule: careful" in line for line in lines)
    assert any(line[2:] == f'− "{again}" cut' for line in lines)
    assert any(line[2:] == "And it ends." for line in lines)


def test_a_held_call_stands_in_the_merged_text(two_turns: View) -> None:
    lines = said_by(merged_sheet(two_turns, Outline(two_turns).blocks[2], two_turns.responses[6].step))
    assert any("▣ HELD write_file" in line for line in lines)


def test_the_response_names_both_words_the_evidence_and_what_was_done(two_turns: View) -> None:
    shown = "\n".join(said_by(response.response(two_turns, two_turns.responses[0])))
    for wanted in ('"length"', "mapped         max_tokens", "✂ max_tokens", "openai_chat.stop_reasons",
                   "/choices/0/finish_reason", "ContinuePending", "asked to continue", "output 64 of 256",
                   "api.openai.com"):
        assert wanted in shown, wanted


def test_what_is_awaited_is_told_before_the_first_response(two_turns: View) -> None:
    shown = "\n".join(said_by(response.awaiting_sheet(two_turns.steps[0])))
    assert "No response yet" in shown
    assert "max_tokens     256" in shown
    assert "Write the report." in shown


def test_the_tabs_name_the_bytes_of_the_word_and_not_those_of_its_event(two_turns: View) -> None:
    """As Wire marks them: `"length"` with its quotes."""
    facts = two_turns.responses[0]
    start = facts.exchange.body.rindex(b'"length"')
    word = f"body {start:,}–{start + 8:,} /choices/0/finish_reason"
    assert word in "\n".join(said_by(response.response(two_turns, facts)))
    assert f"read openai_chat.stop_reasons at {word}" in "\n".join(said_by(wire.wire(facts, "events")))
    own = f"openai_chat.stop_reasons at body bytes {start:,} to {start + 8:,} /choices/0/finish_reason"
    assert f"evidence: {own}" in text(two_turns)
    at = document(two_turns)["responses"][0]["evidence"][-1]["at"]
    assert (at["start"], at["end"]) == (start, start + 8)


def test_of_a_row_without_a_word_wire_marks_the_null(tmp_path: Path) -> None:
    """Reports name the whole row: an absent word has no bytes of its own."""
    rows = transcripts.claude(transcripts.prompt("hi"), transcripts.block(transcripts.text("Hello.")))
    facts = transcripts.show(rows, tmp_path).responses[0]
    absent, body = facts.evidence[0], facts.exchange.body
    assert (absent.rule, absent.at and (absent.at.start, absent.at.end)) == ("transcript.absent", (0, len(body)))
    [(start, end)] = wire.evidence_ranges(facts.exchange, [absent])
    assert (body[:start].endswith(b'"stop_reason": '), body[start:end]) == (True, b"null")


@pytest.mark.parametrize("mode", ["events", "parsed", "raw", "hex"])
def test_the_bytes_of_the_stop_reason_are_marked_in_every_form(two_turns: View, mode: str) -> None:
    facts = two_turns.responses[0]
    sheet = wire.wire(facts, mode)
    lines = [sheet.line(index) for index in range(len(sheet))]
    found = role_texts(lines, Tone.MARK)
    pairs = "".join(text for text in found if len(text) == 2)
    assert pairs == b'"length"'.hex() if mode == "hex" else "".join(found) == '"length"'
    start, end = wire.evidence_ranges(facts.exchange, facts.evidence)[0]
    assert facts.exchange.body[start:end] == b'"length"'
    assert any(span.role is Tone.MARK for span in sheet.line(sheet.focus))


def test_events_stand_at_their_offsets(two_turns: View) -> None:
    facts = two_turns.responses[0]
    body = facts.exchange.body
    slices, what = body_slices.event_slices(facts.exchange)
    assert what == f"{body.count(b'data: ')} events"
    assert [body[each.start - 6 : each.start] for each in slices] == [b"data: "] * len(slices)
    assert body[slices[-1].start : slices[-1].end] == b"[DONE]"
    sheet = wire.wire(facts, "events")
    assert text_of(sheet.line(3)) == "times whole after 10 ms · sent 2026-01-01T00:00:00Z"
    assert text_of(sheet.line(6)).startswith(f"{slices[0].start:>9,} ")


def test_events_without_their_framing_have_a_line_each(tmp_path: Path) -> None:
    head = {"id": "c", "object": "chat.completion.chunk", "model": "m"}
    events = [json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
              for delta, reason in (({"content": "hi"}, None), ({}, "stop"))]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(events))
    exchange = view(replay(open_case(open_paths([str(path)])))).responses[0].exchange
    slices, _ = body_slices.event_slices(exchange)
    assert [exchange.body[each.start : each.end].decode() for each in slices] == events


def test_raw_lines_are_all_of_the_body(two_turns: View) -> None:
    body = two_turns.responses[0].exchange.body
    pieces = body_slices.raw_lines(body)
    assert b"\n".join(body[each.start : each.end] for each in pieces) == body.rstrip(b"\n") + b"\n"


def test_pretty_json_changes_no_byte_and_leaves_none_out() -> None:
    body = json.dumps({"a": [1, {"b": "x, {y} [z]"}, []], "c": {}, "d": None, "e": "\\\""}).encode()
    pieces = body_slices.pretty(body)
    assert b"".join(body[each.start : each.end] for each in pieces).replace(b" ", b"") == body.replace(b" ", b"")
    rows = [" " * each.indent + body[each.start : each.end].decode() for each in pieces]
    assert rows == ["{", '  "a": [', "    1,", "    {", '      "b": "x, {y} [z]"', "    },", "    []", "  ],",
                    '  "c": {},', '  "d": null,', '  "e": "\\\\\\""', "}"]


@each_row("body", [b'{"a": [1, 2', b'{"a": "cut', b"}}]]", b"", b"[,]"])
def test_broken_json_is_shown_too(body: bytes) -> None:
    assert b"".join(body[each.start : each.end] for each in body_slices.pretty(body)) == body.replace(b", ", b",")


def test_long_lines_are_broken_between_characters() -> None:
    body = ("é漢" * 5_000).encode()
    pieces = body_slices.raw_lines(body)
    assert b"".join(body[each.start : each.end] for each in pieces) == body
    assert all(each.end - each.start <= body_slices.CHUNK for each in pieces)
    for each in pieces:
        body[each.start : each.end].decode()


def test_the_height_of_a_slice_is_that_of_its_rows() -> None:
    body = ("plain text " * 40 + "\n" + "漢字" * 90 + "\n\x1b[31m" + "x" * 200 + "\n").encode() + b"\xff\xfe"
    pieces = [Slice(0, 440, 4, "label"), *body_slices.raw_lines(body)]
    sheet = Slices([(Span("head"),)], body, pieces, [(5, 9)], (Span("end"),))
    for width in (20, 33, 80, 200):
        for index in range(len(sheet)):
            rows = sheet.rows(index, width)
            assert sheet.height(index, width) == len(rows)
            assert all(width_of(row) <= width for row in rows)


def test_a_large_body_is_made_into_lines_only_where_it_is_looked_at() -> None:
    body = b"x" * 50_000_000
    sheet = Slices([], body, body_slices.raw_lines(body), [(25_000_000, 25_000_008)], EMPTY)
    assert len(sheet) == -(-50_000_000 // body_slices.CHUNK) + 1
    assert sheet.height(0, 80) > 1
    assert "".join(role_texts([sheet.line(sheet.focus)], Tone.MARK)) == "x" * 8
    hexed = Hex([], body, [(25_000_000, 25_000_008)], EMPTY, None)
    assert text_of(hexed.line(hexed.focus)).startswith("25,000,000".rjust(9))


def test_searching_bytes_finds_forward_and_back() -> None:
    body = b"alpha\nbeta\nALPHA\ngamma"
    sheet = Slices([(Span("alpha in the head"),)], body, body_slices.raw_lines(body), [], (Span("end"),))
    assert [sheet.find("alpha", start, 1) for start in range(5)] == [0, 1, 3, 3, None]
    assert [sheet.find("alpha", start, -1) for start in (4, 3, 2, 1, 0)] == [3, 3, 1, 1, 0]
    assert sheet.find("end", 0, 1) == 5
    hexed = Hex([], body * 10, [], EMPTY, None)
    assert hexed.find("gamma", 0, 1) == 1
    assert hexed.find("gamma", 2, 1) == (17 + 22) // 16
    assert hexed.find("gamma", 2, -1) == (17 + 22) // 16
    assert hexed.find("nothing", 0, 1) is None


def test_a_hex_row_is_sixteen_bytes_or_eight() -> None:
    sheet = Hex([], bytes(range(65, 65 + 20)), [], EMPTY, None)
    assert text_of(sheet.line(0)) == "        0 41 42 43 44 45 46 47 48  49 4a 4b 4c 4d 4e 4f 50 ABCDEFGHIJKLMNOP"
    assert text_of(sheet.line(1)).startswith("       16 51 52 53 54 ")
    assert text_of(sheet.line(1)).index("QRST") == text_of(sheet.line(0)).index("ABCD")
    for width in (50, 76, 80):
        for index in range(len(sheet)):
            assert sheet.height(index, width) == len(sheet.rows(index, width))
            assert all(width_of(row) <= width for row in sheet.rows(index, width))


def test_the_request_is_shown_without_credentials(tmp_path: Path) -> None:
    key = "sk-proj-" + "a1B2" * 10
    seen = read(tmp_path, [entry([user("x")], stream("y", "stop", 1), key=key)])
    shown = "\n".join(said_by(wire.wire(seen.responses[0], "request")))
    assert key not in shown
    assert "REDACTED" in shown
    assert '"content": "x"' in shown


def test_a_held_call_is_an_object_in_its_own_right(two_turns: View) -> None:
    sheet = calls.calls(two_turns, Outline(two_turns).blocks[2], two_turns.responses[6])
    shown = "\n".join(said_by(sheet))
    for wanted in ("▣ HELD write_file", CUT_ARGUMENTS + "▌", "stopped at character",
                   "not checked: the arguments are cut",
                   'write_file(path="report.md", content="The report covers three regi")', "never run",
                   "would run it: zoo-after, pi-presence", "stuck with it: zoo-before",
                   "p explains these policies and what each does",
                   "would hold it: strict, zeroclaw-rfi, zeroclaw-merged, botnexus",
                   "the recorded agent ran write_file, which this loop holds: the request of",
                   "raise the output limit"):
        assert wanted in shown, wanted
    assert sheet.copy_text() == CUT_ARGUMENTS


def test_held_stands_beside_what_the_recorded_agent_did(two_turns: View) -> None:
    """HELD is what this engine makes of a call: where the recorded agent ran it, each view says both."""
    outline, facts = Outline(two_turns), two_turns.responses[6]
    assert two_turns.responses[7].verdicts == (), "the call that ran is the only one"
    for sheet in (merged_sheet(two_turns, outline.blocks[2], facts.step), response.response(two_turns, facts),
                  calls.calls(two_turns, outline.blocks[2], facts)):
        (line,) = [line for line in said_by(sheet) if "held write_file" in line.replace("HELD", "held")]
        assert "the recorded agent ran it" in line
    assert "call write_file: HELD (the recorded agent ran it), the arguments are cut" in text(two_turns)


def test_held_stands_alone_where_the_recorded_agent_did_not_run_it(tmp_path: Path) -> None:
    seen = read(tmp_path, cut_call_ran()[:1])
    sheets = (merged_sheet(seen, Outline(seen).blocks[0], len(seen.steps) - 1),
              response.response(seen, seen.responses[0]), calls.calls(seen, Outline(seen).blocks[0], None))
    shown = "\n".join([*(line for sheet in sheets for line in said_by(sheet)), text(seen)])
    assert shown.lower().count("held write_file") == 3
    assert "recorded agent ran" not in shown


def test_files_are_named_below_their_common_folder_and_in_full_where_they_share_only_the_root() -> None:
    assert run_answers.file_names(["/a/b/x.har", "/a/c/y.har"]) == {"/a/b/x.har": "b/x.har", "/a/c/y.har": "c/y.har"}
    assert run_answers.file_names(["a/b/x.har", "a/c/y.har"]) == {"a/b/x.har": "b/x.har", "a/c/y.har": "c/y.har"}
    for paths in (["/a/x.har", "/b/y.har"], ["a/x.har", "/b/y.har"], ["a/x.har", "b/y.har"], ["/a/x.har"]):
        assert run_answers.file_names(paths) == {path: path for path in paths}


def test_the_mark_of_the_call_at_hand_is_never_broken_over_two_lines(two_turns: View) -> None:
    sheet = calls.calls(two_turns, Outline(two_turns).blocks[2], two_turns.responses[6])
    (title,) = (line for line in sheet.lines if text_of(line).startswith("▣ HELD") and "▶" in text_of(line))
    for width in range(20, width_of(title) + 1):
        assert any(ascii_text(text_of(row)).endswith("> here") for row in wrap_line(title, width)), width


def test_a_step_before_an_answer_does_not_show_its_calls(two_turns: View) -> None:
    block, answer = Outline(two_turns).blocks[2], two_turns.responses[6]
    before = said_by(calls.calls(two_turns, block, None, answer.step - 1))
    assert before[-2:] == ["no tool calls up to this step", "1 call comes at a later step of this turn"]
    assert not any("write_file" in line for line in before)
    assert "▣ HELD write_file" in "\n".join(said_by(calls.calls(two_turns, block, answer, answer.step)))


def test_a_response_names_its_place_in_the_file_apart_from_its_turn(tmp_path: Path) -> None:
    har = tmp_path / "a.har"
    har.write_text(bodies.har(bodies.entry([bodies.user("hi")], bodies.chat_body("Hi."))))
    for path, where in (
        (str(har), "HAR entry 1"),
        ("sample_sessions/07-no-finish-reason.session.jsonl", "entry 1"),
        ("sample_sessions/18-claude-code-cut-writes.jsonl", "line 2"),
    ):
        seen = view(replay(open_case(open_paths([path]))))
        said = said_by(response.response(seen, seen.responses[0]))
        assert f"file           {Path(path).name} · {where}" in said


def test_the_diff_names_state_spend_text_and_history(two_turns: View) -> None:
    first = "\n".join(said_by(diff.diff(two_turns, 0)))
    assert "the turn begins" in first
    assert "1 message" in first
    answered = "\n".join(said_by(diff.diff(two_turns, 1)))
    assert "Request → EvaluateStop" in answered
    assert f"+ {len(PARTS[0])} characters, {len(PARTS[0])} in all" in answered
    silent = recordings.show(recordings.pair_of(
        recordings.ASKS, recordings.chat(None, "length", recordings.call(recordings.CUT))))
    assert any(line.split() == ["text", "no", "visible", "text", "came"] for line in said_by(diff.diff(silent, 1)))
    asked_on = "\n".join(said_by(diff.diff(two_turns, 3)))
    assert "attempts 0 → 1" in asked_on
    assert "continuation 1 · by anchor · max_tokens 256" in asked_on
    assert "Previous response was truncated by token limit." in asked_on


@each_row(("old", "new", "length"), [("", "", 0), ("abc", "abd", 2), ("abc", "abc", 3), ("abc", "x", 0)])
def test_the_shared_beginning_of_two_texts(old: str, new: str, length: int) -> None:
    assert diff.shared_length(old, new) == length


def test_a_branch_is_compared_with_its_original(two_turns: View) -> None:
    made = branch(two_turns, settings_of({"continuation_max_attempts": "5"}, Settings()))
    shown = "\n".join(said_by(whatif.branch_sheet(made, None)))
    for wanted in ("Run attempts=5", "continuation_max_attempts 3 → 5", "step 13 in turn 1",
                   "AbortPartial, retry_limit → Complete", "attempts 3 → 5 of 5", "4 → 6", "+ All three"):
        assert wanted in shown, wanted
    line = text_of(whatif.run_line(made.name, made.view, 0, made, here=True))
    assert line.startswith("▶ attempts=5  Complete · RECORDED · 6 segments")
    long = text_of(whatif.run_line("a name of a run " * 9, made.view, 0, made, here=True, room=60))
    assert long[:60].endswith("…  Complete · RECORDED"), "what was made up can be told from what was recorded"


@each_row(("old", "new", "wanted"), [
    ("a\nb\nc", "a\nb\nc", ["the same 5 characters"]),
    ("a\nb\nc", "a\nx\nc", ["  a", "− b", "+ x", "  c"]),
    ("the same beginning", "the same beginning goes on", ["  the same beginning", "+  goes on"]),
    ("the same beginning goes on", "the same beginning", ["  the same beginning", "−  goes on"]),
    ("", "new", ["− ", "+ new"]),
])
def test_two_texts_are_compared_line_by_line(old: str, new: str, wanted: list[str]) -> None:
    lines = [text_of(line) for line in whatif.text_diff(old, new)]
    assert [line for line in lines if not line.startswith("  line ")] == wanted


def test_events_of_the_turn_are_listed_with_their_steps(two_turns: View) -> None:
    sheet = machine_drawing.events(two_turns, Outline(two_turns).blocks[0], 3)
    lines = said_by(sheet)
    assert sum("stop_reason_observed" in line for line in lines) == 4
    assert sum("continuation_attempt" in line for line in lines) == 3
    assert sum("continuation_terminated" in line for line in lines) == 1
    records = [json.loads(line) for line in sheet.copy_text().split("\n")]
    assert records == [record for step in two_turns.steps[:14] for record in step.records]
    assert lines[sheet.focus].startswith("▶ continuation_attempt")


def test_the_machine_draws_every_state_and_every_transition(two_turns: View) -> None:
    drawn = [state for _, state, _ in machine_drawing.tree()]
    assert sorted(drawn) == sorted(State)
    found = {(state, signal, to) for state, leads in machine_drawing.edges().items() for to, signals in leads.items()
             for signal in signals}
    assert found == {(state, signal, row.to) for (state, signal), row in TRANSITIONS.items()}
    shown = {(machine_drawing.parents().get(state), state) for state in drawn}
    back = {(state, to) for _, state, ways in machine_drawing.tree() for to in ways}
    assert shown - {(None, State.REQUEST)} | back == {(state, row.to) for (state, _), row in TRANSITIONS.items()}


def test_the_machine_shows_only_ways_that_the_policy_has(two_turns: View) -> None:
    from loop_core.turn.presets import ZOO_BEFORE

    def ways(view: View) -> set[str]:
        step = next(step for step in view.steps if step.state is State.EVALUATE_STOP)
        return {line[1].text for line in machine_drawing.moves(step, None)[1:]}

    zoo = view(replay(two_turns.replay.case, Settings(policy=ZOO_BEFORE)))
    assert ways(two_turns) - ways(zoo) >= {"MaxTokens", "PartialToolCall", "Paused"}
    assert ways(zoo) - ways(two_turns) == {"NeverFinalized"}


def test_the_machine_marks_the_path_and_the_next_move(two_turns: View) -> None:
    shown = [text_of(line) for line in machine_drawing.sheet_lines(two_turns.steps, 0, 5, 14)]
    assert shown[0].startswith("● Request")
    assert any("▶ ContinuePending ×2" in line for line in shown)
    assert "next under_limits → RequestContinuation" in shown
    assert any("▶ContinuePending" in line for line in shown)
    assert machine_drawing.visits(two_turns.steps, 0, 5)[State.EVALUATE_STOP] == 2
    narrow = [text_of(line) for line in machine_drawing.panel(two_turns.steps[5], {})]
    assert "│├○ ExecuteTools ↺" in narrow
    assert not any("→" in line for line in narrow)  # an arrow to a state without a name would say nothing


def test_gauges_fill_with_what_is_spent(two_turns: View) -> None:
    shown = [text_of(line) for line in header.gauges(two_turns.steps[11].turn, 80)]
    assert shown[0] == "output      256 tokens"
    assert shown[1] == "attempts    ▰▰▰  3 of 3"
    assert shown[2] == "cont_tokens ▰▱▱▱ 256 of 1,024"
    assert shown[4] == "repairs     ▱    0 of 1"
    assert text_of(header.limits_line(two_turns.steps[11].turn)) == (
        "attempts 3/3 cont_tokens 25% cont_chars 0% repairs 0/1"), "the names under which they are set"
    assert [text_of(each) for each in header.limits_in_use(two_turns.steps[11].turn)] == [
        "attempts 3/3", "cont_tokens 25%"]
    assert header.limits_in_use(two_turns.steps[0].turn) == []
    assert text_of(header.gauges(two_turns.steps[11].turn, 20)[2]) == "cont_tokens ▰▱▱▱ 256/1,024"


@pytest.mark.parametrize("width", range(58, 160, 7))
def test_the_status_line_fits(two_turns: View, width: int) -> None:
    outline = Outline(two_turns)
    for index in range(len(two_turns.steps)):
        line = header.status(outline, index, width)
        assert width_of(line) <= width
        assert f"{index + 1}/28" in text_of(line)
        assert two_turns.steps[index].state.value in text_of(line)


@each_row("width", [40, 58, 78, 118])
def test_the_status_line_never_loses_the_stop_reason(tmp_path: Path, width: int) -> None:
    answer = body(assistant("x"), "A_WORD_THAT_NOBODY_KNOWS_AND_IS_LONG", 2)
    outline = Outline(read(tmp_path, [entry([user("a")], answer)]))
    said = [text_of(header.status(outline, index, width)) for index in range(len(outline.view.steps))]
    assert "no answer yet" in said[0]
    assert all(" → unknown" in line and '"A_' in line and len(line) <= width for line in said[1:])


def test_the_status_line_tells_all_output_where_there_is_room(two_turns: View) -> None:
    assert text_of(header.status(Outline(two_turns), 11, 120)).endswith("out 256 · attempts 3/3 cont_tokens 25%")


def test_the_number_of_a_response_is_written_like_those_of_turns_and_steps(two_turns: View) -> None:
    assert replace(two_turns.responses[0], index=3_000).name == "response 3,001"


def test_every_view_has_one_name_for_what_a_limit_counts(two_turns: View) -> None:
    spent = next(text_of(line) for line in diff.diff(two_turns, 1).lines if text_of(line).startswith("spent"))
    assert "cont_tokens 0 → 64 · cont_chars 0 → " in spent


def test_a_count_that_is_taken_back_says_why() -> None:
    """The loop asks for a continuation, which the recording does not hold: 1 attempt, then 0."""
    cut = recordings.show(recordings.pair_of([user("Go on")], recordings.chat("One, two", "length")))
    spent = next(text_of(line) for line in diff.diff(cut, Outline(cut).blocks[0].end - 1).lines
                 if text_of(line).startswith("spent"))
    assert "attempts 1 → 0" in spent
    assert spent.endswith("a request that was not recorded does not count")


def test_an_end_that_was_not_recorded_is_a_warning_wherever_it_is_named() -> None:
    cut = recordings.show(recordings.pair_of([user("Go on")], recordings.chat("One, two", "length")))
    block = Outline(cut).blocks[0]
    for sheet, word in ((merged_sheet(cut, block, 0), "Unrecorded"), (diff.diff(cut, block.end - 1), "unrecorded")):
        roles = {span.role for line in sheet.lines for span in line if span.text.startswith(word)}
        assert roles == {Tone.WARN}, "it is no failure"


def test_a_line_keeps_its_gutter_where_it_is_not_wrapped(two_turns: View) -> None:
    sheet = merged_sheet(two_turns, Outline(two_turns).blocks[0], two_turns.responses[1].step)
    gutters = {text_of(sheet.unbroken(at))[:2] for at in range(len(sheet)) if sheet.entries[at].segment >= 0}
    assert gutters == {"│ ", "┃ ", "┆ "}


def test_a_last_message_that_is_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response, "TEXT_SHOWN", 10)
    long = recordings.show(recordings.pair_of([user("0123456789a")], recordings.chat("Yes.")))
    assert "… 1 character more; Wire shows every byte" in plain(response.awaiting_sheet(long.steps[0]).lines)


def test_a_refused_call_without_a_name_is_shown() -> None:
    answer = recordings.chat("", "tool_calls", recordings.call("{}", name=""))
    nameless = recordings.show(recordings.pair_of([user("Go on")], answer), settings=Settings(policy=PI_PRESENCE))
    assert "unnamed" in plain([line for at in range(len(nameless.steps)) for line in diff.diff(nameless, at).lines])


def test_a_narrow_status_line_names_the_limit_that_is_nearest_to_its_end(two_turns: View) -> None:
    assert text_of(header.status(Outline(two_turns), 11, 80)).endswith(' "length" → max_tokens · attempts 3/3')
    assert text_of(header.status(Outline(two_turns), 0, 80)).endswith("no answer yet · out 0"), "nothing is spent yet"


@pytest.mark.parametrize(("tokens", "shown"), [(None, "out 0+"), (12, "out 12 ")])
def test_the_count_of_an_answer_without_one_is_a_lower_bound(tokens: int | None, shown: str) -> None:
    answer = recordings.chat("It is done.", "stop", tokens=tokens)
    seen = recordings.show(recordings.pair_of([user("Go on")], answer))
    assert shown in f"{text_of(header.status(Outline(seen), 1, 120))} "


def test_the_header_leads_with_the_worst_turn(two_turns: View) -> None:
    assert text_of(header.verdict(two_turns)).startswith("✖ CUT CALL RUN  turn 2 of 2 · ")
    assert text_of(header.counts(two_turns)).startswith("1 ✖ CUT CALL RUN · 1 ")
    assert text_of(header.source(["a/b/story.har"], two_turns, "attempts=5")) == "run attempts=5 · story.har"
    assert text_of(header.source(["a/recordings/"], two_turns, "original")) == "run original · recordings"
    lax = view(replay(two_turns.replay.case, Settings(policy=PI_PRESENCE)))
    assert text_of(header.source(["a.har"], lax, "original")) == "run original · a.har · policy pi-presence"
    assert text_of(header.source(["a.har"], lax, "policy=pi-presence")) == "run policy=pi-presence · a.har"


def test_no_view_of_a_hostile_transcript_holds_a_command(tmp_path: Path) -> None:
    seen = read(tmp_path, hostile())
    outline = Outline(seen)
    lines: list[Line] = [header.verdict(seen), header.counts(seen), header.source([HOSTILE], seen, HOSTILE)]
    lines += [steps.row(outline, row, 0) for row in range(outline.rows)]
    sheets: list[LineSheet] = []
    for block in outline.blocks:
        sheets += [merged_sheet(seen, block, block.first), sides(seen, block, block.first, None),
                       calls.calls(seen, block, None), machine_drawing.events(seen, block, block.first)]
        sheets.append(LineSheet(machine_drawing.sheet_lines(seen.steps, block.first, block.first, block.end)))
    for facts in seen.responses:
        sheets += [response.response(seen, facts), *(wire.wire(facts, mode) for mode in WIRE_FORMS)]
    for index, step in enumerate(seen.steps):
        sheets += [diff.diff(seen, index), response.awaiting_sheet(step)]
        lines.append(header.status(outline, index, 100))
    sheets.append(whatif.branch_sheet(branch(seen, settings_of({"continuation_max_attempts": "0"}, Settings())), None))
    lines += [sheet.line(index) for sheet in sheets for index in range(len(sheet))]
    bad = [line for line in lines if any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in text_of(line))]
    assert bad == []
    assert sum("[bold red]" in text_of(line) for line in lines) > 20


def test_each_line_of_the_merged_text_is_as_high_as_the_rows_that_it_takes(two_turns: View) -> None:
    for block in Outline(two_turns).blocks:
        sheet = merged_sheet(two_turns, block, block.end - 1)
        for width in range(8, 70):
            assert [sheet.height(at, width) for at in range(len(sheet))] == [
                len(sheet.rows(at, width)) for at in range(len(sheet))]


def test_arguments_that_are_no_object_are_named_in_words() -> None:
    """The name that programs read (`not_object`) stands in no line."""
    tools = [{"type": "function", "function": {"name": "write_file", "parameters": {"type": "object"}}}]
    body = recordings.chat(None, "tool_calls", recordings.call("[1]"))
    seen = recordings.show(recordings.pair_of([recordings.user("go")], body, tools=tools))
    shown = "\n".join(said_by(calls.calls(seen, Outline(seen).blocks[0], seen.responses[0])))
    assert "a JSON array where an object is expected; 3 characters received" in shown
    assert "not checked: the arguments are a JSON array where an object is expected" in shown
    assert "not_object" not in shown

"""A turn as a row: what it says is what the session says, a filter finds the same, and nothing is counted twice."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from inspector.config.settings import Settings
from inspector.export.pages import Items, blocks
from inspector.replay.case import open_case
from inspector.report import filter_words, filters, turn_rows, turn_table
from inspector.report.advice import Advice, Basis
from inspector.report.explain import WIDE, overview, text
from inspector.report.explain_document import document
from inspector.report.filter_terms import FLAGS, NUMBERS, WORDS, StepContext
from inspector.report.lines import header
from inspector.report.lines.spans import Tone, text_of, width_of
from inspector.report.table_rows import count_rows
from inspector.report.turn_index import read_rows
from inspector.report.turn_rows import (
    NUMBERS_OF_ROW,
    SHARES,
    AnswerRecord,
    TurnRow,
    matches,
    name_of,
    row_filter,
    rows_of,
    short_file,
)
from inspector.report.turn_table import about, columns, table
from inspector.report.verdict import ROWS, TurnVerdict, VerdictRow, identifier
from inspector.sessions.open import open_each, open_paths
from inspector.tui.session_files import ReadingOptions, load, session_of
from loop_core.errors import CallerError
from loop_core.turn.state import NotRecorded
from tests.scenes.app import entry, har
from tests.scenes.recordings import (
    ASKS,
    assistant,
    chat,
    cut_call_ran,
    exchange,
    lines,
    pair_of,
    repair_turn,
    show,
    user,
)
from tests.scenes.rows import each_row
from tests.scenes.transcripts import MODEL, block, claude, prompt
from tests.scenes.transcripts import text as said

ROOT = Path(__file__).parents[2]
ANSWERED = pair_of(ASKS, chat("Done."))
SKIPS = lines(ANSWERED, exchange({"prompt": 1}, {"odd": 1}, url="https://models.example/v1/odd"))
"""An exchange, and an entry beside it that holds no answer."""
ENTRY = entry(list(ASKS), json.dumps(chat("Done.")))
DAMAGED = har([ENTRY, ENTRY])[:-40]
"""Two exchanges, of which the second is cut."""
SAMPLES = sorted(str(path) for path in (ROOT / "sample_sessions").glob("*.jsonl"))


def rows(*exchanges) -> list[TurnRow]:
    return rows_of(show(*exchanges), ("a.har",))


def test_a_row_holds_the_texts_of_its_session_and_folds_them_once_for_a_filter(monkeypatch):
    view, folded, fold = show(*cut_call_ran()), [], turn_rows.folded_text
    (row,) = rows_of(view, ("a.har",))
    stored = (view.turns[0].run.record.user_text, view.turns[0].text,
              *(call.arguments for facts in view.responses for call in facts.exchange.response.tool_calls))
    assert [*map(id, row.contents)] == [*map(id, stored)]
    monkeypatch.setattr(turn_rows, "folded_text", lambda *texts: folded.append(1) or fold(*texts))
    assert len(row.answers) > 1
    assert not matches(row_filter("zebra").matches, row)
    assert folded == [1]


def test_a_row_says_what_its_turn_says():
    (row,) = rows(*cut_call_ran())
    assert (row.verdict.word, row.raw, row.effective) == ("CUT CALL RUN", "length", "max_tokens")
    assert (row.cap, row.tokens, row.held, row.ran) == (40, 40, 1, 1)
    assert (row.number, row.of, row.paths) == (1, 1, ("a.har",))
    assert row.title.startswith("write")
    assert row.advice.startswith("never run a held call")


def test_a_turn_that_a_limit_ended_has_the_reason_of_the_answer_before_it():
    view = load((SAMPLES[0],), ReadingOptions()).original.view
    row = rows_of(view, (SAMPLES[0],))[0]
    assert (row.verdict.word, row.raw, row.effective) == ("LIMIT REACHED", "length", "max_tokens")


@each_row("path", SAMPLES)
def test_a_filter_finds_the_turns_of_a_row_that_it_finds_in_the_session(path: str) -> None:
    view = load((path,), ReadingOptions()).original.view
    made = rows_of(view, (path,))
    turns = [row for row in made if row.verdict is not None]
    asks = [f"stop:{row.effective}" for row in turns] + [f"verdict:{row.verdict.word.split()[0].strip(',')}"
                                                        for row in turns]
    asks += ["held", "cut", "!cut", "ran", "attention", "complete", "stop:max_tokens held", "raw:length | raw:stop",
             "!raw:*", "out>40", "cap<100", "attempt>1", "turn_tokens>=64", "turn=2", "~t the", "~a path", "agent:*",
             "state:ContinuePending", "event:continuation_attempt", "model:*5*", "corrected", "end:retry_limit"]
    for ask in asks:
        found = filters.parse(ask)
        in_session = {view.replay.turn_at(step) + 1 for step in filters.steps(found, view)
                      if view.steps[step].turn.evaluation is not None}
        in_table = {row.number for row in turns if matches(row_filter(ask).matches, row)}
        assert in_table == in_session, ask


def test_a_row_of_a_turn_that_a_limit_ended_says_what_was_cut_there():
    rows_ = [row for row in rows_of(load((SAMPLES[0],), ReadingOptions()).original.view) if row.verdict]
    (row,) = [row for row in rows_ if row.verdict.word == "LIMIT REACHED"]
    assert (row.raw, row.effective, row.number) == ("length", "max_tokens", 1)


def test_every_row_of_the_filter_tables_is_kept():
    (row,) = rows(*cut_call_ran())
    shared = row.answers[0].shared
    assert len(shared.words) == len(WORDS)
    assert len(shared.numbers) + len({*NUMBERS} & {*AnswerRecord._fields, *NUMBERS_OF_ROW}) == len(NUMBERS)
    assert len(shared.shares) == len(SHARES)
    assert shared.flags <= set(FLAGS)
    assert {"held", "cut", "ran", "attention"} <= shared.flags


@each_row("ask", [
    *(f"{name}>=0" for name in (
        "attempt", "turn_tokens", "chars", "cont_tokens", "cont_chars", "repairs", "budget", "step", "turn", "segment",
        "cap", "out", "size", "took", "age", "status")),
    *(f"{name}:*" for name in (
        "stop", "mapped", "raw", "recorder", "detail", "ending", "rule", "tool", "provider", "api", "model", "agent",
        "finding", "next", "file", "state", "signal", "event", "method", "end", "verdict", "fidelity", "conversation")),
    "~t written", "~r thinking", "~a one",
])
def test_a_row_has_what_each_term_of_a_filter_asks_for(ask):
    view = show(*cut_call_ran())
    (row,) = rows_of(view, ("a.har",))
    found = filters.parse(ask)
    in_session = any(view.steps[step].turn.evaluation is not None for step in filters.steps(found, view))
    assert matches(row_filter(ask).matches, row) is in_session


def test_a_share_of_a_limit_is_kept():
    view = load((SAMPLES[2],), ReadingOptions()).original.view
    (row,) = rows_of(view)
    assert matches(row_filter("attempt>=100%").matches, row)
    assert not matches(row_filter("repairs>=100%").matches, row)


def test_a_text_that_rows_do_not_keep_is_refused_with_what_to_do():
    with pytest.raises(CallerError, match=r"~b searches contents that the table does not hold: filter in"):
        row_filter("held ~b path")


@pytest.mark.parametrize(("typed", "term"), [
    ("CUT", "cut"), ("max_tokens", "stop:max_tokens"), ("COMPLETE", "complete"), ("truncated", "verdict:TRUNCATED"),
    ("EvaluateStop", "state:EvaluateStop"), ("openai_chat", "api:openai_chat"), ("RECORDED", "fidelity:RECORDED"),
    ("run", "ran"), ("absent", "!raw:*"), ("!absent", "raw:*"),
])
def test_a_word_that_a_row_prints_is_the_term_that_finds_it(typed: str, term: str) -> None:
    views = [load((sample,), ReadingOptions()).original.view for sample in SAMPLES]
    found = [filters.responses(filters.parse(term), view) for view in views]
    assert [filters.responses(filters.parse(typed), view) for view in views] == found
    assert any(found)


@each_row("row", ROWS)
def test_a_verdict_is_found_by_its_word_and_by_its_id(row: VerdictRow) -> None:
    """The table prints the word; JSON and CSV print the id."""
    verdict = TurnVerdict(0, row.word, row.glyph, row.ascii, row.severity, "", None)
    place = StepContext(load((SAMPLES[0],), ReadingOptions()).original.view, 0)
    place.__dict__["turn"] = SimpleNamespace(verdict=verdict)
    for typed in (f'verdict:"{row.word}"', f"verdict:{verdict.id}", f"verdict:{verdict.id.upper()}"):
        assert filters.parse(typed).matches(place), typed
    other = next(each for each in reversed(ROWS) if identifier(each.word) != verdict.id)
    place.__dict__["turn"] = SimpleNamespace(verdict=verdict._replace(word=other.word))
    assert not filters.parse(f"verdict:{verdict.id}").matches(place)


def test_the_length_of_a_verdict_is_the_width_of_its_cell() -> None:
    """It is counted without the cell, since a table may have 100,000 rows."""
    every = [TurnVerdict(0, row.word, row.glyph, row.ascii, row.severity, "", None, simulated=simulated)
             for row in ROWS for simulated in (False, True)]
    rows = [*(TurnRow((), "", verdict=verdict) for verdict in every),
            *(TurnRow((), "", unread=unread) for unread in (turn_rows.NOT_READ, turn_rows.SKIPPED))]
    column = columns(0.0)[0]
    assert column.length is not None
    assert [column.length(row) for row in rows] == [width_of(column.column.cell(row)) for row in rows]


def test_the_words_of_a_row_in_csv_find_it() -> None:
    rows = [row for sample in SAMPLES for row in rows_of(load((sample,), ReadingOptions()).original.view)]
    for row in rows:
        values = table(0.0).values(row)
        for column in ("verdict", "file", "reason", "model", "agent", "raw"):
            term = filter_words.term_text(filter_words.COLUMNS.get(column, column), values[column] or "")
            assert not values[column] or matches(filters.parse(term).matches, row), (column, term)
        for column in ("verdict", "reason", "agent", "raw"):
            typed = values[column] or "absent"
            assert matches(filters.parse(typed).matches, row) or typed == "absent", (column, typed)


def test_the_age_of_a_turn_is_what_its_row_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    view = load((SAMPLES[18],), ReadingOptions()).original.view
    row = rows_of(view)[0]
    assert row.started is not None
    monkeypatch.setattr("time.time", lambda: row.started + 3 * 86_400 + 7)
    age = next(column for column in columns(row.started + 3 * 86_400 + 7) if column.name == "age")
    assert text_of(age.column.cell(row)) == "3d"
    for typed, finds in (
        ("age>=3d", True), ("age<4d", True), ("age>3.1d", False), ("age<72h", False), ("age<73h", True),
        ("age>4320m", True), ("age<4321m", True), ("age>259206s", True), ("age<259208s", True),
        ("age>259206000ms", True), ("age<259208000ms", True), ("age>0.008y", True), ("age<0.009y", True),
    ):
        assert matches(row_filter(typed).matches, row) is finds, typed
        assert bool(filters.steps(filters.parse(f"turn=1 {typed}"), view)) is finds, typed


def test_a_recorders_word_is_searched_as_the_row_prints_it() -> None:
    (row,) = (row for row in rows_of(load((SAMPLES[18],), ReadingOptions()).original.view) if row.number == 1)
    assert text_of(columns(0.0)[2].column.cell(row)) == "pi:length → max_tokens"
    assert matches(filters.parse('"pi:length"').matches, row)
    assert not matches(filters.parse('"pi:refusal"').matches, row)


@each_row("typed", ["trun", "trunc", "repair", "max_token", "err", "interrupt", "answer", "call"])
def test_the_beginning_of_a_term_is_no_slip_of_it(typed: str) -> None:
    assert filters.parse(typed).searched == (typed,)


@pytest.mark.parametrize(("typed", "offers"), [
    ("heeld", "held"), ("maxtokens", "stop:max_tokens"), ("trucated", "verdict:TRUNCATED"),
])
def test_a_slip_is_told_with_the_nearest_term(typed: str, offers: str) -> None:
    with pytest.raises(CallerError, match=f"did you mean {offers}\\?"):
        filters.parse(typed)


@pytest.mark.parametrize(("typed", "read", "said"), [
    ("team", '"team"', '"team" as text (did you mean verdict:SEAM?)'),
    ("!team held files", '!"team" held "files"',
     '"team" as text (did you mean verdict:SEAM?), "files" as text (did you mean file?)'),
])
def test_an_ordinary_word_that_is_near_to_a_term_is_searched_in_a_list(typed: str, read: str, said: str) -> None:
    found = filters.parse_typed(typed)
    assert (found.text, filters.search_note(found, ())) == (read, said)


@each_row("typed", ["held and cut", "heldd:1", "verdict:cutt", "("])
def test_what_no_text_can_mean_is_an_error_in_a_list_too(typed: str) -> None:
    with pytest.raises(filters.FilterError):
        filters.parse_typed(typed)


def test_an_error_in_what_is_typed_has_its_column_in_the_line() -> None:
    for typed, column in (('files "', 7), ("files team stop:maxx", 17), ("held files) team", 11), ("(files", 1)):
        with pytest.raises(filters.FilterError) as caught:
            filters.parse_typed(typed)
        assert caught.value.column == column, typed


@pytest.mark.parametrize(("typed", "offers"), [
    ("openai_chatt", "api:openai_chat"), ("heldd & lenght", "mean held?"),
])
def test_a_word_of_the_recording_is_offered_as_the_term_that_finds_it(typed: str, offers: str) -> None:
    view = load((SAMPLES[0],), ReadingOptions()).original.view
    for values in (filters.values_of(view), turn_rows.values_of_rows(rows_of(view))):
        with pytest.raises(filters.FilterError) as why:
            filters.parse(typed)
        assert offers in str(filters.explain_error(why.value, values))


@each_row(("typed", "said"), [
    ("model:gpt-5", 'no model is "gpt-5": model:gpt-5* finds "gpt-5-mini"'),
    ("model:GPT-5 held", 'no model is "GPT-5": model:GPT-5* finds "gpt-5-mini"'),
    ("tool:file", 'no tool is "file": tool:*file* finds "write_file"'),
    ("model:gpt-5-mini", ""), ("model:gpt-5*", ""), ("model:claude", ""),
    ("length model:mini", '"length" as text (raw:length for that value alone), no model is "mini": model:*mini* finds '
                          '"gpt-5-mini"'),
])
def test_a_value_that_is_a_part_of_longer_ones_is_offered_with_its_asterisk(typed: str, said: str) -> None:
    view = load((SAMPLES[0],), ReadingOptions()).original.view
    found = filters.parse(typed)
    for values in (filters.values_of(view), turn_rows.values_of_rows(rows_of(view))):
        assert filters.search_note(found, values) == said


@each_row(("typed", "finds"), [
    ("length", "raw:length"), ("gpt-5", "model:gpt-5-mini"), ("write_file", "tool:write_file"),
    ("retry_limit", "end:retry_limit"),
])
def test_a_word_of_the_recording_is_searched_and_the_term_that_finds_it_is_named(typed: str, finds: str) -> None:
    view = load((SAMPLES[0],), ReadingOptions()).original.view
    rows = rows_of(view)
    found = filters.parse(typed)
    for values in (filters.values_of(view), turn_rows.values_of_rows(rows)):
        assert filters.search_note(found, values) == f'"{typed}" as text ({finds} for that value alone)'
    held = set(filters.responses(filters.parse(finds), view))
    assert held <= set(filters.responses(found, view))
    assert [row.number for row in rows if matches(found.matches, row)] == [
        number for number, turn in enumerate(view.turns, 1) if held & {*turn.responses}]


def test_a_row_is_found_by_the_words_of_its_text() -> None:
    row = next(row for row in rows_of(load((SAMPLES[0],), ReadingOptions()).original.view) if row.number == 1)
    said = row.title.split()
    for wanted in (said[0].upper(), f'"{row.title[:30]}"', f"{said[0]}*", f"{row.file.rpartition('/')[2]}"):
        assert matches(filters.parse(wanted).matches, row), wanted
        assert not matches(filters.parse(f"!{wanted}").matches, row)
    assert not matches(filters.parse("zebra").matches, row)


@pytest.mark.parametrize(("typed", "offer"), [("not held", "!"), ("held OR cut", "|"), ("held and cut", "&")])
def test_a_connective_in_words_is_no_value_of_the_recording(typed: str, offer: str) -> None:
    values = [("verdict", "NOT"), ("model", "or-large"), ("session", "and")]
    with pytest.raises(filters.FilterError) as why:
        filters.parse(typed)
    assert f"did you mean {offer}?" in str(filters.explain_error(why.value, values))


def test_a_value_with_blanks_is_offered_in_quotes_that_are_read_again() -> None:
    why = filters.UnknownTermError(1, "so")
    said = str(filters.explain_error(why, [("raw", 'so "it" is')]))
    offer = said.split("did you mean ")[1].split("? ")[0]
    assert offer == 'raw:"so \\"it\\" is"'
    assert filters.parse(offer).text == offer


def test_a_file_that_was_not_read_is_one_row_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing")
    (tmp_path / "b.har").write_text("{")
    (tmp_path / "c.jsonl").write_text(Path(SAMPLES[0]).read_text())
    for each in (rows_of(session_of(open_case(open_paths([str(tmp_path)])), [str(tmp_path)]).original.view),
                 [row for group in open_each([str(tmp_path)], api=None, profile=None) for row in rows_of(
                     session_of(open_case(group.recording), group.paths).original.view, group.paths)]):
        unread = [row for row in each if row.verdict is None]
        assert sorted(Path(row.file).name for row in unread) == ["a.txt", "b.har"]
        assert all(row.why for row in unread)
        assert len(each) == 4
        assert sorted(each, key=lambda row: row.severe)[-2:] == sorted(unread, key=lambda row: row.severe)


def test_a_file_that_cannot_be_opened_is_a_row_of_its_own_also_in_a_folder_named_by_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nowhere.jsonl").symlink_to(tmp_path / "gone")
    (tmp_path / "whole.jsonl").write_text(Path(SAMPLES[0]).read_text())
    monkeypatch.chdir(tmp_path)
    rows = rows_of(session_of(open_case(open_paths(["."])), ["."]).original.view)
    (unread,) = [row for row in rows if row.verdict is None]
    assert (unread.unread, unread.name, unread.file) == ("NOT READ", "nowhere", "./nowhere.jsonl")
    assert unread.why == "cannot be read: No such file or directory"
    assert next(overview(rows, False)) == "2 turns in 1 session + 1 not read"


def test_a_file_without_an_answer_says_so_before_it_says_what_was_read_of_it(tmp_path: Path) -> None:
    """`the part before it was read` alone contradicts the words NOT READ beside it."""
    whole = Path(SAMPLES[0]).read_bytes()
    (path := tmp_path / "a.session.jsonl").write_bytes(whole[: whole.index(b"\n") + 50])
    (row,) = rows_of(session_of(open_case(open_paths([str(path)])), [str(path)]).original.view)
    assert row.unread == "NOT READ"
    assert row.why == ("it holds no answer of a model · line 2, the last, is cut after 49 bytes; the part before it "
                       "was read")


@each_row(("name", "text", "said"), [
    ("a.har", "{", ["NOT READ"]),
    ("b.txt", "nothing", ["NOT READ"]),
    ("c.jsonl", SKIPS.decode(), ["COMPLETE", "ENTRY SKIPPED"]),
    ("d.har", DAMAGED, ["COMPLETE", "RECORDING CUT", "READ IN PART"]),
])
def test_a_file_that_was_read_but_for_an_entry_is_not_called_unread(
    tmp_path: Path, name: str, text: str, said: list[str]
) -> None:
    (tmp_path / name).write_text(text)
    rows = rows_of(session_of(open_case(open_paths([str(tmp_path / name)])), [str(tmp_path / name)]).original.view)
    assert [row.verdict.word if row.verdict else row.unread for row in rows] == said
    last = rows[-1]
    assert text_of(columns(0)[0].column.cell(last)) == f"∅ {said[-1]}"
    assert text_of(about(last)[0]).startswith(said[-1])
    assert table(0).values(last)["verdict"] == said[-1].lower().replace(" ", "_")
    for typed in (said[-1], said[-1].lower().replace(" ", "_"), f'verdict:"{said[-1]}"', f"file:*{name}",
                  f"session:{name[0]}", f'"{last.why[:20]}"', "!complete"):
        assert matches(row_filter(typed).matches, last), typed
    for typed in ("held", "turn>=0", "out<1", "stop:*", "model:*", "conversation:*", "attention", "~t .", "age>=0"):
        assert not matches(row_filter(typed).matches, last), typed
    assert count_rows(rows).unread == {said[-1]: 1}
    assert said[-1] in "\n".join(overview(rows, False))


def test_each_file_alone_gives_the_same_turns_as_all_together() -> None:
    folder = str(ROOT / "sample_sessions")
    whole = rows_of(session_of(open_case(open_paths([folder])), [folder]).original.view)
    apart = [row for group in open_each([folder], api=None, profile=None) for row in rows_of(
        session_of(open_case(group.recording), group.paths).original.view, group.paths)]
    assert [(row.file, row.verdict and row.verdict.word, row.effective) for row in whole if row.verdict] == [
        (row.file, row.verdict and row.verdict.word, row.effective) for row in apart if row.verdict]


def test_a_session_is_called_by_its_title_else_its_file_and_a_number_says_its_folder() -> None:
    assert name_of("/a/b/report.session.jsonl") == "report"
    assert name_of("/p/-work-mine/3f2a8b1c-0d4e-4f5a-9b6c-7d8e9f0a1b2c.jsonl") == "3f2a8b1c work-mine"
    assert rows_of(load((SAMPLES[0],), ReadingOptions()).original.view)[0].name.startswith("A gateway that cuts")


@each_row(("path", "short"), [
    ("/a/monday-3.session.jsonl", "monday-3"),
    ("/p/-work/3f2a8b1c-0d4e-4f5a-9b6c-7d8e9f0a1b2c.jsonl", "3f2a8b1c"),
    ("/x/abc-123/wire.jsonl", "abc-123"),
    ("/24/rollout-2026-01-02T10-00-00-5973b6c0-94b8-487b-a530-2aeb6098ae0e.jsonl", "6098ae0e"),
    ("wire.jsonl", "wire"),
    ("/live/20260102-100203-319001-openai_chat.jsonl", "10:02:03"),
    ("/live/20260102-100203-319001-stand-in.jsonl", "10:02:03"),
])
def test_a_file_is_told_from_others_of_its_name(path: str, short: str) -> None:
    assert short_file(path) == short


# -- the table --------------------------------------------------------------------------------------------------------


def two() -> list[TurnRow]:
    asks = [*ASKS, assistant("done"), user("and now?")]
    return rows(*cut_call_ran(), pair_of(asks, chat("all well")))


@each_row("width", [40, 48, 55, 75, 100, 115, 155, 300])
def test_a_row_fits_its_width_and_every_column_stands_under_its_heading(width: int) -> None:
    laid = turn_table.layout(turn_table.columns(0), width)
    names = [column.name for column, _ in laid]
    # Half a stop word says nothing, and the session needs the room.
    assert names[:3] == ["verdict", "session", "raw → reason"] or (width < 48 and names == ["verdict", "session"])
    assert sum(size for _, size in laid) + len(laid) - 1 <= width
    head = turn_table.heading(laid)
    for row in two():
        assert width_of(turn_table.cells_of(row, laid)) == width_of(head)


def test_a_column_of_numbers_gets_what_its_widest_cell_needs_and_titles_get_the_rest() -> None:
    every = turn_table.columns(0)
    listed = [row._replace(number=1, of=2, tokens=32_000, cap=None, held=2, ran=0) for row in two()]
    widest = turn_table.widest_cells(every, listed)
    verdict = len("✖ CUT CALL RUN")
    assert widest == {"verdict": verdict, "turn": len("1/2"), "tokens": len("32,000"), "calls": len("2 held"),
                      "agent": 0}
    plain = {column.name: size for column, size in turn_table.layout(every, 100)}
    fitted = {column.name: size for column, size in turn_table.layout(every, 100, widest)}
    assert fitted["turn"] == len("turn▾"), "its heading needs more, with the mark of sorting"
    assert (fitted["tokens"], fitted["calls"], fitted["verdict"]) == (len("tokens▾"), len("calls▾"), verdict)
    assert set(fitted) - set(plain) == {"calls", "model"}, "there is room for more columns"


def test_a_column_whose_cells_are_all_empty_is_left_out() -> None:
    every = turn_table.columns(0)
    listed = [row._replace(tokens=None, cap=None, held=0, ran=0) for row in two()]
    laid = turn_table.layout(every, 400, turn_table.widest_cells(every, listed))
    assert {column.name for column in every} - {column.name for column, _ in laid} == {"tokens", "calls", "agent"}


def test_a_list_of_sessions_has_the_reason_at_60_columns_and_the_agent_too_at_80() -> None:
    every = turn_table.for_sessions(turn_table.columns(0))
    listed = [row._replace(agent="claude-code") for row in two()]
    narrow = turn_table.layout(every, 55, turn_table.widest_cells(every, listed))
    assert [column.name for column, _ in narrow] == ["verdict", "session", "raw → reason"]
    laid = turn_table.layout(every, 75, turn_table.widest_cells(every, listed))
    assert [column.name for column, _ in laid][:4] == ["verdict", "session", "agent", "raw → reason"]
    assert "claude-code" in text_of(turn_table.cells_of(listed[0], laid))


def test_every_column_is_there_where_there_is_room() -> None:
    laid = turn_table.layout(turn_table.columns(0), 400)
    assert [column.name for column, _ in laid] == [column.name for column in turn_table.columns(0)]


def test_where_the_provider_s_word_is_not_recorded_the_agent_s_own_is_shown_with_whose_it_is() -> None:
    (path,) = [path for path in SAMPLES if "19-pi" in path]
    row = rows_of(load((path,), ReadingOptions()).original.view, (path,))[0]
    assert (row.raw, row.noted, row.agent) == (None, "length", "pi")
    assert "pi:length → max_tokens" in text_of(turn_table.cells_of(row, turn_table.layout(turn_table.columns(0), 200)))
    assert matches(row_filter("recorder:length !raw:*").matches, row)
    assert matches(row_filter("session:19-pi*").matches, row)
    assert not matches(row_filter("recorder:toolUse").matches, row)


def test_the_provider_s_word_is_cut_before_ours() -> None:
    (row,) = rows(*cut_call_ran())
    long = row._replace(raw="a_stop_reason_that_never_ends")
    line = text_of(turn_table.cells_of(long, turn_table.layout(turn_table.columns(0), 75)))
    assert "→ max_tokens" in line


def test_a_turn_of_very_many_has_its_number_whole() -> None:
    column = next(each for each in turn_table.columns(0) if each.name == "turn")
    (row,) = rows(*cut_call_ran())
    assert text_of(column.column.cell(row._replace(number=7, of=999))) == "7/999"
    assert text_of(column.column.cell(row._replace(number=99_998, of=100_000))) == "99,998"


def test_each_column_sorts_its_rows_and_what_has_no_value_stands_last() -> None:
    made = [*two(), TurnRow(("z",), "z", "z", why="no session")]
    for column in turn_table.columns(1e9):
        for reverse in (False, True):
            order = turn_table.sorted_rows(made, column, reverse)
            keys = [column.order(made[at]) for at in order]
            known = [key for key in keys if key is not None]
            assert keys[: len(known)] == known
            assert known == sorted(known, reverse=reverse)
    assert turn_table.sorted_rows(made, turn_table.columns(0)[0]) == [0, 1, 2]


def test_the_csv_has_a_row_for_each_and_is_inert(tmp_path: Path) -> None:
    (row,) = rows(*cut_call_ran())
    hostile = row._replace(title="=1+1\x1b[31m", model="@sum")
    (head, values) = csv.reader(io.StringIO(turn_table.table(0).csv([hostile])))
    said = dict(zip(head, values, strict=True))
    assert (said["verdict"], said["cap"], said["ran"]) == ("cut_call_run", "40", "1")
    assert said["model"] == "'@sum"
    assert said["message"].startswith("'=1+1")
    assert "\x1b" not in said["message"]


def test_the_turns_of_a_file_are_counted_on_its_row() -> None:
    (worst,) = turn_table.worst_of_sessions(two())
    assert worst.verdict.word == "CUT CALL RUN"
    assert worst.turns == (("CUT CALL RUN", 1), ("COMPLETE", 1))


def test_simulated_turns_are_counted_beside_the_recorded_ones() -> None:
    """A run under a smaller budget makes up the answers of the turn that it cuts anew; the other one stays recorded."""
    second = [*ASKS, assistant("Fine."), user("And what else?")]
    entries = [pair_of(ASKS, chat("Fine.", tokens=2), max_tokens=9), pair_of(second, chat("Nothing " * 40, tokens=40))]
    view = show(*entries, settings=Settings(max_tokens=5, simulate=True))
    assert [turn.verdict.simulated for turn in show(*entries).turns] == [False, False]
    assert [turn.verdict.simulated for turn in view.turns] == [False, True]
    word = view.turns[1].verdict.word
    assert [word for word, _ in view.counts()] == ["COMPLETE", f"SIMULATED {word}"]
    assert text_of(header.counts(view)) == f"1 ✓ COMPLETE · 1 {view.turns[1].verdict.glyph} SIMULATED {word}"
    assert f"turns: 1 complete · 1 simulated {word.lower()}" in text(view)
    counts = count_rows(rows_of(view))
    assert (counts.turns, counts.simulated, counts.attention, counts.complete) == (1, 1, 0, 1)
    assert next(overview(rows_of(view), True)) == "1 turn + 1 SIMULATED (~) in 1 session"
    (worst,) = turn_table.worst_of_sessions(rows_of(view))
    assert worst.turns == (("COMPLETE", 1), (f"SIMULATED {word}", 1))


def test_a_report_says_how_many_copies_it_leaves_out_and_numbers_turns_as_their_file_does(tmp_path: Path) -> None:
    begun = (prompt("a"), block(said("A"), stop="end_turn"), prompt("b"), block(said("B"), "msg_02", stop="end_turn"))
    first, again = (tmp_path / f"{name}.jsonl" for name in "ab")
    first.write_text(claude(*begun))
    again.write_text(claude(*begun, prompt("c"), block(said("C"), "msg_03", stop="max_tokens")))
    view = session_of(open_case(open_paths([str(first), str(again)])), [str(first), str(again)]).original.view
    report = text(view, table=WIDE)
    assert report.splitlines()[0] == "3 turns in 2 sessions (2 copies of turns left out)"
    assert f"  file: {again}, turn 3 of 3" in report
    assert f"  file: {first}, turn 2 of 2" in report


def test_a_notice_that_several_files_have_is_told_once_with_its_sum(tmp_path: Path) -> None:
    for number in (1, 2):
        rows = [prompt(f"a{number}"), *(block(said("A"), f"msg_{number}{more}") for more in range(number))]
        (tmp_path / f"{number}.jsonl").write_text(claude(*rows))
    (tmp_path / "3.jsonl").write_text(claude(prompt("b"), block(said("B"), "msg_30", stop="end_turn")))
    path = str(tmp_path)
    view = session_of(open_case(open_paths([path])), [path]).original.view
    kept = ("answers have no stop reason, as Claude Code keeps none for them: what is shown for those is inferred from "
            "other rows")
    assert text(view, everything=False, table=WIDE).splitlines()[-2:] == [
        f"notice of 2 files: 3 of 3 {kept}, and says so",
        "files without a notice of their own: 3 (by format: claude-code 3; --all lists them)"]
    whole = text(view, table=WIDE).splitlines()
    assert f"looked through {path}: 0 files skipped" in whole
    assert [line for line in whole if kept in line] == [
        f"  notice: {count} of {count} {kept}, and says so" for count in (1, 2)]


def test_counts_of_several_files_are_added_up_by_their_kinds(tmp_path: Path) -> None:
    for name, kinds in (("a", ["system", "summary", "system"]), ("b", ["system"])):
        rows = claude(prompt(name), block(said("A"), f"msg_{name}", stop="end_turn"))
        passed = "".join(f'{{"type": "{kind}"}}\n' for kind in kinds)
        (tmp_path / f"{name}.jsonl").write_text(rows + passed + "[1]\n")
    view = session_of(open_case(open_paths([str(tmp_path)])), [str(tmp_path)]).original.view
    odd, held = "lines that are not JSON objects were skipped", "known records that hold no exchange"
    said_once = {f"notice of 2 files: {odd}: 2", f"notice of 2 files: {held}: summary (1), system (3)"}
    lines = text(view, everything=False, table=WIDE).splitlines()
    assert said_once <= set(lines)
    assert not [line for line in lines if line.startswith("  notice: ")]
    assert said_once <= {line for block in blocks(view) if isinstance(block, Items) for line in block.texts}, (
        "the page says the same")
    files = {source["path"].rpartition("/")[2]: source for source in document(view)["inputs"]}
    assert files["a.jsonl"]["notice_counts"] == [
        {"words": odd, "counts": {"": 1}}, {"words": held, "counts": {"system": 2, "summary": 1}}]
    assert [notice.partition(".jsonl: ")[2] for notice in files["a.jsonl"]["notices"]] == [
        f"{odd}: 1", f"{held}: summary (1), system (2)"], "the words stay as they were"


def test_a_notice_with_numbers_of_its_own_stays_with_its_file(tmp_path: Path) -> None:
    for name in "ab":
        rows = claude(prompt(name), block(said("A"), f"msg_{name}", stop="end_turn"))
        (tmp_path / f"{name}.jsonl").write_text(f"{rows}no JSON\n")
    view = session_of(open_case(open_paths([str(tmp_path)])), [str(tmp_path)]).original.view
    lines = text(view, everything=False, table=WIDE).splitlines()
    own = [line for line in lines if line.startswith("  notice: ")]
    assert len(own) == 2
    assert own[0] == own[1]
    assert not [line for line in lines if line.startswith("notice of")]


def test_the_name_of_a_model_is_short_in_the_counts(tmp_path: Path) -> None:
    for name in "ab":
        rows = claude(prompt(name), block(said("A"), f"msg_{name}", stop="end_turn"))
        (tmp_path / f"{name}.jsonl").write_text(rows.replace(MODEL, "m" * 5_000))
    view = session_of(open_case(open_paths([str(tmp_path)])), [str(tmp_path)]).original.view
    counts = next(line for line in text(view, everything=False, table=WIDE).splitlines() if "by model" in line)
    assert counts == f"by model: {'m' * 59}… 2"


def test_a_report_of_several_files_begins_with_the_table_and_tells_what_needs_attention() -> None:
    view = session_of(open_case(open_paths([SAMPLES[1], SAMPLES[7]])), SAMPLES[:2]).original.view
    said = text(view, everything=False, table=WIDE)
    lines = said.splitlines()
    assert lines[0] == "2 turns in 2 sessions"
    assert lines[2].startswith("▣ CALL HELD")
    assert lines[3] == "not listed: 1 turn (no attention needed; --all lists them)"
    assert lines[4] == "by verdict: 1 call held · 1 cut, completed"
    assert "\nturns: " not in said, "the same counts, once"
    assert lines[5].startswith("by model: ")
    assert lines[1].split()[:2] == ["verdict", "file"]
    assert "--turn" in lines[1].split(), "the number over all files, not that in the file"
    assert lines[lines.index("") + 2] == f"  file: {SAMPLES[7]}, turn 1 of 1", "the file of the worst turn"
    assert "08-router-says-tool-calls.session.jsonl " in lines[2]
    head = next(at for at, line in enumerate(lines) if line.startswith("turn 2 of 2 (t2): CALL HELD"))
    assert lines[head + 1] == f"  file: {SAMPLES[7]}, turn 1 of 1"
    assert "turn 1 of 2 (" not in said
    inputs = [f"read {SAMPLES[1]}: session, 3 responses", f"read {SAMPLES[7]}: session, 1 response"]
    assert lines[-1] == ("files without a notice of their own: 2 (by format: session 2; --all lists them)"), (
        "below what needs attention")
    assert text(view, table=WIDE).splitlines()[-2:] == inputs
    alone = session_of(open_case(open_paths(SAMPLES[:1])), SAMPLES[:1]).original.view
    assert "  file: " not in text(alone)
    assert text(alone).splitlines()[2].startswith("read "), "of one file it is short, and says what to trust"
    assert "turn 1 of 2 (" in text(view)
    whole = text(view, table=WIDE).splitlines()
    assert whole[0] == "2 turns in 2 sessions"
    assert [line.partition(" 0")[0].strip() for line in whole[2:4]] == ["▣ CALL HELD", "✓ CUT, COMPLETED"]
    assert not any(line.startswith("not listed") for line in whole)
    assert any(line.startswith("turn 1 of 2 (") for line in whole)
    narrow = text(view, table=80).splitlines()
    assert [line.partition(" 0")[0].strip() for line in narrow[2:4]] == ["▣ CALL HELD", "✓ CUT, COMPLETED"]
    assert max(map(len, narrow[1:4])) <= 80, "no row wraps on a terminal of 80 columns"


def test_exchanges_that_a_logger_spread_over_a_folder_are_one_session_in_a_report_as_in_the_table(
    tmp_path: Path,
) -> None:
    for folder, count in (("a", 3), ("b", 2)):
        (tmp_path / folder).mkdir()
        for number in range(count):
            pair = pair_of((user(f"{folder}{number}"),), chat(f"{folder} answers {number}.", stop="length", tokens=9))
            (tmp_path / folder / f"{number}.json").write_text(json.dumps(pair))
    (tmp_path / "c.json").write_text(json.dumps([pair_of((user("c"),), chat("C.")), pair_of((user("d"),), chat("D."))]))
    path = str(tmp_path)
    table_rows = [row for found in read_rows([path], None, None, Settings(), indexed=False)
                  for _, group in found.rows for row in group]
    report = text(session_of(open_case(open_paths([path])), [path]).original.view, table=WIDE)
    assert count_rows(table_rows).sessions == 3
    assert report.splitlines()[0] == "7 turns in 3 sessions"
    assert {f"  file: {row.file}, turn {row.number} of {row.of}" for row in table_rows} <= set(report.splitlines())


def test_a_subagents_turn_has_the_number_in_a_report_that_it_has_in_the_table(tmp_path: Path) -> None:
    beside = tmp_path / "one" / "subagents"
    beside.mkdir(parents=True)
    (tmp_path / "one.jsonl").write_text(claude(
        prompt("a"), block(said("A"), stop="end_turn"), prompt("b"), block(said("B"), "msg_02", stop="end_turn")))
    (beside / "agent-a.jsonl").write_text(claude(prompt("c"), block(said("C"), "msg_03", stop="max_tokens")))
    path = str(tmp_path)
    (table_rows,) = [group for found in read_rows([path], None, None, Settings(), indexed=False)
                     for _, group in found.rows]
    report = text(session_of(open_case(open_paths([path])), [path]).original.view, table=WIDE)
    assert {f"  file: {row.file}, turn {row.number} of {row.of}" for row in table_rows} <= set(report.splitlines())
    assert f"  file: {beside / 'agent-a.jsonl'}, turn 3 of 3" in report.splitlines()
    assert report.splitlines()[0] == f"3 turns in {count_rows(table_rows).sessions} sessions"


def test_a_row_of_a_repaired_turn_keeps_each_answer() -> None:
    (row,) = rows(*repair_turn())
    assert len(row.answers) == 3
    assert matches(row_filter("held stop:max_tokens").matches, row)
    assert not matches(row_filter("held stop:end_turn").matches, row)


@each_row(("stem", "called"), [
    ("rollout-2026-01-02T03-04-05-ab12", "say hello"), ("events", "say hello"), ("wire", "say hello"),
    ("session-2026-01-02T03-04-ab12", "say hello"), ("2026-01-02_x", "say hello"), ("plans", "plans"),
])
def test_a_file_whose_name_every_session_has_is_called_by_its_first_message(stem, called):
    assert name_of(f"/x/{stem}.jsonl", (), "say hello") == called
    assert name_of(f"/x/{stem}.jsonl", (), "") != ""


@each_row(("sample", "keys"), [
    ("01-cut-call-and-long-answer.session.jsonl", "F "),
    ("10-agent-ran-a-cut-call.session.jsonl", "F "),
    ("18-claude-code-cut-writes.jsonl", "L "),
    ("11-context-window-exceeded.session.jsonl", ""),
])
def test_the_details_of_a_row_name_the_keys_that_run_its_advice(sample: str, keys: str) -> None:
    rows = rows_of(load((str(ROOT / "sample_sessions" / sample),), ReadingOptions()).original.view)
    row = next(row for row in rows if row.advice)
    [said] = [text_of(line) for line in turn_table.about(row) if text_of(line).startswith("change")]
    warning = "never run a held call; " if row.advice.startswith("never run") else ""
    rest = row.advice.removeprefix(warning)
    assert said == f"change   {warning}{keys}{rest}", "the end may be cut off, so before what it does"
    [line] = [line for line in turn_table.about(row) if text_of(line) == said]
    assert [span.text for span in line if span.role is Tone.PRESS] == list(keys[:1]), "an article is not a key"


def test_an_advice_that_a_simulation_tried_names_its_key_too() -> None:
    row = next(row for row in rows_of(load((SAMPLES[0],), ReadingOptions()).original.view) if row.advice)
    assert row.verdict is not None
    advice = Advice("raise max_tokens to 90: a simulation then completes the turn, which is a guess", Basis.SIMULATED)
    simulated = row._replace(verdict=row.verdict._replace(advice=advice))
    assert any(text_of(line).startswith("change   F raise max_tokens to 90") for line in turn_table.about(simulated))


@each_row("path", [SAMPLES[0], SAMPLES[2], SAMPLES[4]])
@each_row("name", ["attempt", "cont_tokens", "cont_chars", "repairs", "budget"])
def test_a_share_of_a_row_is_that_of_the_session(path: str, name: str) -> None:
    """These samples use up the attempts, the tokens and the repairs."""
    view = load((path,), ReadingOptions()).original.view
    turns = [row for row in rows_of(view) if row.verdict is not None]
    for least in (1, 50, 100):
        found = filters.parse(f"{name}>={least}%")
        # A step that asks for what was never recorded counts a request that was not sent; the row is about the end.
        unsent = {step - 1 for step, each in enumerate(view.steps) if isinstance(each.event, NotRecorded)}
        in_session = {view.replay.turn_at(step) + 1 for step in filters.steps(found, view)
                      if view.steps[step].turn.evaluation is not None and step not in unsent}
        in_table = {row.number for row in turns if matches(row_filter(f"{name}>={least}%").matches, row)}
        assert in_table == in_session, least


def test_turns_of_equal_answers_share_their_words_and_keep_their_conversations() -> None:
    made = rows(pair_of([user("one")], chat("Fine.")), pair_of([user("two")], chat("Fine.")))
    assert made[0].answers[0].shared is made[1].answers[0].shared
    assert made[0].names is made[1].names
    assert made[0].verdict is made[1].verdict
    assert [row.conversation for row in made] == ["c1", "c2"]
    found = [row.number for row in made if matches(row_filter("conversation:c2").matches, row)]
    assert found == [2]


def test_the_number_in_the_table_of_a_report_chooses_the_text_about_its_turn(inspector) -> None:
    """The second turn over all files is the only one of its file."""
    files = [str(SAMPLES[1]), str(SAMPLES[7])]
    of_one, of_all = inspector("explain", *files, "--turn", "2"), inspector("explain", *files)
    lines = of_one.out.splitlines()
    assert lines[0].startswith("turn 2 of 2 (t2): CALL HELD")
    assert lines[1] == f"  file: {SAMPLES[7]}, turn 1 of 1"
    assert of_one.out in of_all.out
    assert "there is no turn 3; expected 1 to 2" in inspector("explain", *files, "--turn", "3").err
    for other in (["--json"], ["--follow"], ["--all"], ["--filter", "held"]):
        assert "--turn explains one turn as text" in inspector("explain", *files, "--turn", "2", *other).err


@each_row(("seconds", "shown"), [
    (None, ""), (0, "0.0s"), (0.001, "<0.1s"), (0.1, "0.1s"), (9.94, "9.9s"), (59, "59s"), (240, "4m"), (86_400, "1d"),
])
def test_a_duration_in_two_figures(seconds, shown):
    assert turn_table.span_of_time(seconds) == shown

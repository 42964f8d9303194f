"""The verdict on the turn at the cursor, the turns that need attention, and where a session opens."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from inspector.report import turn_table
from inspector.report.lines import header
from inspector.report.lines.spans import Span, cells, text_of, width_of
from inspector.report.lines.steps import Outline
from inspector.report.turn_rows import rows_of
from inspector.tui.app import LoopInspector
from inspector.tui.attention import VerdictSheet
from inspector.tui.keys import HelpScreen
from inspector.tui.limits_form import LimitsForm
from inspector.tui.live_forms import LiveForm
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import SessionScreen
from inspector.tui.turn_list import fit_lines
from inspector.tui.turns_screen import TurnsScreen
from tests.scenes.app import assistant, body, cut_call_ran, cut_text, entry, page, screen_rows, story, user, view_text

AppOn = Callable[..., LoopInspector]
DECIDED = 21
"""The step that the verdict on the second turn is about: where its cut call was evaluated."""


def fine(text: str) -> list[dict[str, Any]]:
    """A turn without any trouble."""
    return [entry([user(text)], body(assistant("Yes."), "stop", 2))]


def session(pilot: Pilot[Any]) -> SessionScreen:
    assert isinstance(pilot.app.screen, SessionScreen)
    return pilot.app.screen


async def test_a_session_opens_where_its_worst_turn_was_decided(app_on: AppOn) -> None:
    async with app_on(begins=None).run_test(size=(80, 24)) as pilot:
        assert session(pilot).step == DECIDED
        assert "turn 2 was decided here · :1 first step" in page(pilot.app)
        await pilot.press(":", "1", "enter")
        assert session(pilot).step == 0


async def test_a_session_that_a_limit_ended_opens_on_that_end_with_all_that_was_joined(app_on: AppOn) -> None:
    entries = cut_text()[:-1]  # all of them cut; this loop asks for three continuations, the agent asked for more
    async with app_on(entries, begins=None).run_test(size=(80, 40)) as pilot:
        shown = page(pilot.app)
        assert "TRUNCATED" in shown
        assert "segment 4 · 64 tokens" in shown
        assert "AbortPartial, retry_limit" in shown
        await pilot.press(":", "1", "6", "enter")
        shown = page(pilot.app)
        assert "segment 4" not in shown
        assert "this loop stopped at step 14; what the recorded agent did then:" in shown


async def test_the_keys_stand_beside_what_is_said_at_the_opening(app_on: AppOn) -> None:
    async with app_on(begins=None).run_test(size=(80, 24)) as pilot:
        for size in ((80, 24), (60, 20)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert "first step" in screen_rows(pilot.app)[-1], size
            assert screen_rows(pilot.app)[-1].rstrip().endswith("? help  q quit"), size
        await pilot.click("#keys", offset=(screen_rows(pilot.app)[-1].index("? help"), 0))
        await pilot.pause()
        assert isinstance(pilot.app.screen, HelpScreen)


async def test_a_session_in_which_all_is_well_opens_at_its_first_step(app_on: AppOn) -> None:
    async with app_on([*fine("a"), *fine("b")], begins=None).run_test(size=(80, 24)) as pilot:
        assert session(pilot).step == 0
        await pilot.press("!")
        assert "no turn needs attention" in page(pilot.app)


async def test_an_exclamation_mark_goes_through_what_needs_attention_worst_first(app_on: AppOn) -> None:
    entries = [*fine("a"), *cut_text(), *cut_call_ran(), *fine("b")]
    async with app_on(entries).run_test(size=(100, 24)) as pilot:
        view = session(pilot).run.view
        await pilot.press("!")
        assert session(pilot).step == view.deciding_step(view.turns[2])
        assert "1 of 2 turns that need attention · turn 3: CUT CALL RUN" in page(pilot.app)
        await pilot.press("space", "!")
        assert session(pilot).step == view.deciding_step(view.turns[1])
        assert "2 of 2 turns that need attention · turn 2: LIMIT REACHED" in page(pilot.app)
        await pilot.press("!")
        assert session(pilot).step == view.deciding_step(view.turns[2])


async def test_an_exclamation_mark_stays_inside_the_filter(app_on: AppOn) -> None:
    async with app_on([*cut_text(), *cut_call_ran()]).run_test(size=(100, 24)) as pilot:
        await pilot.press("f", *"turn=1 state:ContinuePending", "enter", "!")
        assert session(pilot).shown_outline is not None
        assert session(pilot).shown_outline.keeps(session(pilot).step)
        assert "the only turn that the filter keeps that needs attention · turn 1" in page(pilot.app)


async def test_the_header_is_about_the_turn_at_the_cursor(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 20)) as pilot:
        for size in ((60, 20), (80, 24), (120, 35), (160, 45)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            verdict = pilot.app.screen.query_one("#verdict").region
            assert "✂ LIMIT REACHED  turn 1 of 2" in screen_rows(pilot.app)[0], size
            assert "1 ✖ CUT CALL RUN · 1 ✂ LIMIT REACHED" in screen_rows(pilot.app)[verdict.bottom - 1], size
            await pilot.press("]")
            assert "✖ CUT CALL RUN  turn 2 of 2" in screen_rows(pilot.app)[0], size
            assert "1 ✖ CUT CALL RUN · 1 ✂ LIMIT REACHED" in screen_rows(pilot.app)[verdict.bottom - 1], size
            assert pilot.app.screen.query_one("#verdict").region == verdict, "nothing below it moves"
            await pilot.press("[")


async def test_the_whole_verdict_is_one_key_or_click_away(app_on: AppOn) -> None:
    async with app_on(begins=None).run_test(size=(60, 20)) as pilot:
        turn = session(pilot).run.view.turns[1]
        for size in ((60, 20), (80, 24), (160, 45)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            head = " ".join(row.strip() for row in screen_rows(pilot.app)[:2])
            assert ("V shows all" in head) is (size[0] < 100), "a verdict that is cut names the key"
            await pilot.press("V")
            assert isinstance(pilot.app.screen, VerdictSheet)
            said = view_text(pilot.app)
            assert turn.verdict.advice is not None
            for words in (turn.verdict.sentence, turn.verdict.advice.text, "1 ✖ CUT CALL RUN", "run original",
                          "story.har"):
                assert words in said, size
            assert all(noted.finding.message in said for noted in turn.findings)
            shown = " ".join(page(pilot.app).replace("│", " ").split())
            assert all(word in shown for word in turn.verdict.advice.text.split()), size
            await pilot.press("escape")
            await pilot.click("#verdict", offset=(5, 0))
            await pilot.pause()
            assert isinstance(pilot.app.screen, VerdictSheet)
            await pilot.press("escape")


@pytest.mark.parametrize(("path", "key", "box", "said"), [
    ("sample_sessions/01-cut-call-and-long-answer.session.jsonl", "F", LimitsForm, "F asks the provider"),
    ("sample_sessions/18-claude-code-cut-writes.jsonl", "L", LiveForm, "L opens the form of a live turn"),
])
async def test_the_key_that_the_whole_verdict_names_works_there(
    path: str, key: str, box: type[Screen[Any]], said: str
) -> None:
    app = LoopInspector([path], opened_already=load([path], ReadingOptions()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("V")
        assert said in page(app)
        await pilot.press(key)
        await pilot.pause()
        assert isinstance(app.screen, box)


async def test_a_digit_over_the_whole_verdict_opens_its_tab(app_on: AppOn) -> None:
    async with app_on(begins=None).run_test(size=(80, 24)) as pilot:
        for key, tab in (("3", "wire"), ("4", "calls"), ("1", "merged")):
            await pilot.press("V")
            assert "1 to 8 open a tab" in page(pilot.app)
            await pilot.press(key)
            await pilot.pause()
            assert not isinstance(pilot.app.screen, VerdictSheet)
            assert session(pilot).panes.tab == tab
        await pilot.press("V", "q")
        assert session(pilot).panes.tab == "merged"


@pytest.mark.parametrize(("name", "key"), [
    ("01-cut-call-and-long-answer.session", "F"), ("08-router-says-tool-calls.session", "F"),
    ("10-agent-ran-a-cut-call.session", "F"), ("18-claude-code-cut-writes", "L"),
])
async def test_the_key_of_the_advice_is_visible_at_every_size(name: str, key: str) -> None:
    path = f"sample_sessions/{name}.jsonl"
    app = LoopInspector([path], opened_already=load([path], ReadingOptions()))
    async with app.run_test(size=(60, 20)) as pilot:
        for size in ((60, 20), (80, 24), (160, 45)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            table = app.screen if isinstance(app.screen, TurnsScreen) else None
            if table is not None:
                assert f"change   {key} {table.turn_list.current_row.advice[:12]}" in page(app), size
                await pilot.press("enter")
                await pilot.pause()
            assert f" {key} " in " ".join(screen_rows(app)[:3]), size
            if table is not None:
                await pilot.press("q")
                assert app.screen is table


def test_a_long_sentence_does_not_push_the_advice_out_of_the_details() -> None:
    row = next(row for row in rows_of(load(["sample_sessions/08-router-says-tool-calls.session.jsonl"],
                                           ReadingOptions()).original.view) if row.advice)
    lines = [(Span("word " * 120),), *turn_table.about(row)[1:]]
    rows = fit_lines(lines, 60, 5, cells)
    assert len(rows) == 5
    assert text_of(rows[3]).endswith("…")
    assert text_of(rows[4]).startswith("change   F raise max_tokens")
    assert text_of(rows[4]).endswith("V shows all")
    assert fit_lines(lines, 60, 1, cells) != []
    (row,) = fit_lines([(Span(f"turn 1 of 1 · a-file.jsonl · {'model' * 9}"),)], 44, 1, cells)
    assert text_of(row) == "turn 1 of 1 · a-file.jsonl · V shows all", "with one sign between two words"


@pytest.mark.parametrize("rows", [2, 3])
def test_a_verdict_fits_its_rows_with_its_advice(tmp_path: Path, rows: int) -> None:
    view = load([str(story(tmp_path))], ReadingOptions()).original.view
    for width in range(50, 200, 7):
        for turn in view.turns:
            found = header.verdict_rows(view, turn, width, rows, cells)
            assert len(found) <= rows, width
            assert all(width_of(row) <= width for row in found), width
            text = " ".join(text_of(row).strip() for row in found)
            assert text.startswith(f"{turn.verdict.glyph} {turn.verdict.word}  turn {view.number(turn)} of 2"), width
            assert turn.verdict.advice is not None
            assert turn.verdict.advice.text[:12] in text, width
            assert text.endswith((turn.verdict.advice.text[-20:], "V shows all")), width


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_several_files_are_named_in_the_header_and_the_list(tmp_path: Path, size: tuple[int, int]) -> None:
    (tmp_path / "deep").mkdir()
    paths = [str(story(tmp_path, cut_call_ran(), "one.har")), str(story(tmp_path, fine("b"), "deep/two.har"))]
    async with LoopInspector(paths, opened_already=load(paths, ReadingOptions())).run_test(size=size) as pilot:
        assert "one.har" in screen_rows(pilot.app)[2]
        await pilot.press("]")
        assert "deep/two.har" in screen_rows(pilot.app)[2]
        await pilot.press("8")
        rows = [row for row in screen_rows(pilot.app)[3:-2] if row.strip()]
        names = [at for at, row in enumerate(rows) if row[:40].strip(" │▕") in ("one.har", "deep/two.har")]
        turns = [at for at, row in enumerate(rows) if row.startswith((" turn 1  ", " turn 2  "))]
        assert [at + 1 for at in names] == turns
        await pilot.press("k")
        assert session(pilot).run.outline.block_of(session(pilot).step).turn == 0, "headings are passed over"


async def test_a_long_file_name_leaves_room_for_the_run_and_is_cut_at_its_beginning_alone(tmp_path: Path) -> None:
    """A run that a stand-in answered has a file of its own, with a long name, beside the recording."""
    long = f"{'20261129-014904-856670-' * 2}stand-in.har"
    paths = [str(story(tmp_path, cut_text(), "one.har")), str(story(tmp_path, fine("b"), long))]
    async with LoopInspector(paths, opened_already=load(paths, ReadingOptions())).run_test(size=(80, 24)) as pilot:
        await pilot.press("]")
        assert screen_rows(pilot.app)[2].rstrip().endswith("-856670-stand-in.har · 2 inputs")
        await pilot.resize_terminal(120, 35)
        assert any(re.search(r"^ …[-\d]+-856670-stand-in\.har +▏", row) for row in screen_rows(pilot.app))
        await pilot.resize_terminal(80, 24)
        await pilot.press("[", "e", "5", "enter", "]")
        assert session(pilot).run.name == "attempts=5"
        assert "stand-in.har · run attempts=5" in screen_rows(pilot.app)[2]


def test_the_rows_of_an_outline_are_numbered_with_the_files_in_it(tmp_path: Path) -> None:
    paths = [str(story(tmp_path, entries, name)) for name, entries in (
        ("a.har", cut_text()), ("b.har", cut_call_ran()), ("c.har", fine("c")))]
    outline = Outline(load(paths, ReadingOptions()).original.view)
    shown = [outline.at(row) for row in range(outline.rows)]
    assert [step for _, step in shown if step is not None] == list(range(len(outline.view.steps)))
    assert all(shown[outline.row_of(step)][1] == step for step in range(len(outline.view.steps)))
    assert sum(outline.names_file(row) for row in range(outline.rows)) == 3
    assert [outline.file_of(block) for block in outline.blocks if not block.run] == ["a.har", "b.har", "c.har"]

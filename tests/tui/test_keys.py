"""Every key of the session screen does what its binding says, at one pane and at three."""

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.drivers.headless_driver import HeadlessDriver
from textual.pilot import Pilot
from textual.widgets import Input

from inspector.config.settings import command
from inspector.report.lines.spans import text_of
from inspector.tui import remarks
from inspector.tui.app import LoopInspector
from inspector.tui.breakpoints import BreakpointList
from inspector.tui.key_words import PURPOSES, SYNONYMS
from inspector.tui.keys import WAYS_TO_SCREENS, HelpScreen, active_keys, every_id, owners, sections, shown_keys
from inspector.tui.lists import RowList
from inspector.tui.panels import KeyNote
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import SessionScreen
from inspector.tui.session_widgets import StepList
from inspector.tui.text_view import TextView
from inspector.tui.turns_screen import TurnsScreen
from tests.scenes.app import (
    PARTS,
    assistant,
    body,
    choose_command,
    cut_call_ran,
    entry,
    page,
    result,
    screen_rows,
    story,
    stream,
    until,
    user,
    view_text,
)

AppOn = Callable[..., LoopInspector]
ONE_PANE, THREE = (80, 24), (160, 45)


def session(pilot: Pilot[Any]) -> SessionScreen:
    screen = pilot.app.screen
    assert isinstance(screen, SessionScreen)
    return screen


async def test_space_steps_forward_and_backspace_back(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("space", "space", "space", "backspace")
        assert session(pilot).step == 2
        assert "step 3/28" in page(pilot.app)


async def test_the_ends_are_told_and_not_passed(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("backspace")
        assert session(pilot).step == 0
        assert "this is the first step" in page(pilot.app)
        await pilot.press("space")
        assert "this is the first step" not in page(pilot.app), "a note goes with the next key"
        await pilot.press("8", "G", "space")
        assert session(pilot).step == 27
        assert "this is the last step" in page(pilot.app)


async def test_list_keys_move_over_steps_and_pass_headings(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        steps = pilot.app.screen.query_one(StepList)
        assert steps.has_focus
        for keys, step in (("jj", 2), ("k", 1), ("G", 27), ("g", 0)):
            await pilot.press(*keys)
            assert session(pilot).step == step
        for key, step in (("down", 1), ("up", 0), ("end", 27), ("home", 0)):
            await pilot.press(key)
            assert session(pilot).step == step
        await pilot.press(*"j" * 20)
        assert session(pilot).step == 20  # two headings were passed on the way
        row = screen_rows(pilot.app)[steps.region.y + steps.cursor - int(steps.scroll_offset.y)]
        assert "▶ 21" in row


async def test_pages_in_the_list_do_not_animate(app_on: AppOn) -> None:
    async with app_on().run_test(size=(160, 15)) as pilot:
        await pilot.press("pagedown")
        first = session(pilot).step
        assert first > 4
        assert not pilot.app._animator._animations
        await pilot.press("pageup")
        assert session(pilot).step < first


async def test_braces_go_between_events_worth_stopping_at(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        found = []
        for _ in range(8):
            await pilot.press("}")
            found.append(session(pilot).run.view.steps[session(pilot).step].state.value)
        # four cut answers, the end in trouble, the agent going on, its cut answer, then the held call
        assert found == ["EvaluateStop"] * 4 + ["AbortPartial", "Request", "EvaluateStop", "EvaluateStop"]
        here = session(pilot).step
        await pilot.press("{")
        assert session(pilot).step == 15
        await pilot.press("}")
        assert session(pilot).step == here


async def test_brackets_go_between_turns(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("]")
        assert session(pilot).step == 20
        await pilot.press("]")
        assert "this is the last turn" in page(pilot.app)
        await pilot.press("space", "[")
        assert session(pilot).step == 20
        await pilot.press("[")
        assert session(pilot).step == 0


async def test_what_can_be_typed_at_the_foot_is_not_cut_off(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        for key, last in ((":", "· a command"), ("f", "& | ! ( )")):
            await pilot.press(key)
            await pilot.pause()
            assert re.search(re.escape(last) + r" +enter · esc$", screen_rows(pilot.app)[-1].rstrip()), key
            await pilot.press("escape")


async def test_a_number_jumps(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        for typed, step in [("7", 6), ("1", 0), ("28", 27)]:
            await pilot.press(":", *typed, "enter")
            assert session(pilot).step == step, (typed, step)


async def test_a_number_that_is_no_step_is_told(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        for typed in ["0", "29", "9" * 20]:
            await pilot.press("space", ":", typed[0], *typed[1:], "enter")
            assert pilot.app.screen.query_one(Input).value == typed, "the line stays open for correction"
            assert "is not a step: expected 1 to 28" in page(pilot.app), typed
            await pilot.press(*["backspace"] * len(typed), "5", "enter")
            assert session(pilot).step == 4, typed


async def test_a_setting_after_a_colon_is_run(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press(":", *"continuation_max_attempts=5", "enter")
        await pilot.pause()
        assert session(pilot).runs.node.name == "attempts=5"
        assert session(pilot).run.view.turns[0].final_state.value == "Complete"
        await pilot.press(":", *"set max_tokens=160 simulate=yes@2", "enter")
        assert "all apply from one step on" in page(pilot.app)
        await pilot.press("ctrl+u", *"policy=nobody", "enter")
        assert "'policy=nobody': " in page(pilot.app)
        await pilot.press("escape")
        assert len(session(pilot).runs.every) == 2


async def test_a_line_is_completed(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press(":", *"seam=ov")
        await pilot.pause()
        await pilot.press("tab")
        assert pilot.app.screen.query_one(Input).value == "seam=overlap"
        await pilot.press("space", *"policy=pi")
        await pilot.pause()
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert session(pilot).runs.node.name == "policy=pi-presence, seam=overlap"


async def test_whatever_a_key_does_has_a_name(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        for typed in ["breakpoints", "breakp"]:
            await pilot.press(":", *typed, "enter")
            await pilot.pause()
            assert isinstance(pilot.app.screen, BreakpointList), typed
            await pilot.press("escape")


async def test_a_command_that_is_none_is_told_with_what_was_meant(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press(":", *"breekpoints", "enter")
        assert "'breekpoints' is not a command here; did you mean breakpoints" in page(pilot.app)
        await pilot.press("ctrl+u", *"turn.", "enter")
        assert "did you mean turn.next, turn.previous?" in page(pilot.app)
        await pilot.press("ctrl+u", *"zzz", "enter")
        assert "'zzz' is not a command here; expected a step's number, turn 2, file NAME" in page(pilot.app)


async def test_a_command_of_another_screen_is_named_before_one_that_is_spelt_alike() -> None:
    app = LoopInspector(["sample_sessions/01-cut-call-and-long-answer.session.jsonl"])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TurnsScreen) and not app.screen.reading)
        for typed in ("compar", "compare"):
            await pilot.press(":", *typed, "enter")
            await pilot.pause()
            assert f"'{typed}' is not a command here; compare works on another screen: " in " ".join(page(app).split())
            await pilot.press("escape")


async def test_a_turn_is_gone_to_by_its_number_and_one_file_is_not_looked_for(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press(":", *"turn 3", "enter")
        assert "turn 3: expected 1 to 2 · enter tries again, esc leaves" in page(pilot.app)
        await pilot.press("backspace", "2", "enter")
        assert session(pilot).step == 20
        await pilot.press(":", "9", "escape")
        assert session(pilot).step == 20, "escape leaves the line"
        await pilot.press(":", *"file story", "enter")
        assert "this session is one file" in page(pilot.app)


async def test_a_file_is_gone_to_by_a_part_of_its_name(tmp_path: Path) -> None:
    paths = [str(story(tmp_path, cut_call_ran(), name)) for name in ("alpha.har", "beta.har", "betamax.har")]
    for number, path in enumerate(paths):  # files of the same bytes are one
        Path(path).write_text(Path(path).read_text() + number * "\n")
    async with LoopInspector(paths, opened_already=load(paths, ReadingOptions())).run_test(size=ONE_PANE) as pilot:
        files = session(pilot).run.outline.files
        await pilot.press(":", *"file bet", "enter")
        assert "2 files match: beta.har, betamax.har" in page(pilot.app)
        await pilot.press("escape", ":", *"file max", "enter")
        assert session(pilot).step == files["betamax.har"]
        await pilot.press(":", *"file al")
        await pilot.pause()
        await pilot.press("tab", "enter")
        assert session(pilot).step == files["alpha.har"]
        await pilot.press(":", *"file alfa", "enter")
        assert "no file is called 'alfa'; did you mean alpha.har" in page(pilot.app)


TAB_SAYS = {
    "1": "segment 1 · 64 tokens", "2": "openai_chat.stop_reasons", "3": "v [events] parsed",
    "4": "no tool calls in this turn",
    "5": "against step 1", "6": "stop_reason_observed", "7": "WHERE IT LEADS", "8": "RequestContinuation",
}


async def test_numbers_open_tabs_in_one_pane(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("space")
        for key, text in TAB_SAYS.items():
            await pilot.press(key)
            assert text in page(pilot.app), (key, text)
            assert f"[{key}" in page(pilot.app), (key, text)


async def test_numbers_open_tabs_beside_the_list(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("space")
        for key in "1234567":
            await pilot.press(key)
            shown = page(pilot.app)
            assert f"[{key} " in shown, key
            assert "RequestContinuation" in shown, key
            assert "MACHINE" in shown, key
            assert "SPENT" in shown, key


async def test_eight_takes_the_list_in_hand_where_it_is_seen(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("tab")
        assert pilot.app.screen.query_one(TextView).has_focus
        await pilot.press("8")
        assert pilot.app.screen.query_one(StepList).has_focus
        assert "[1 Merged]" in page(pilot.app)


async def test_tab_goes_to_the_other_pane(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("tab")
        assert "[8Steps]" in page(pilot.app)
        await pilot.press("tab")
        assert "[1Merged]" in page(pilot.app)


async def test_the_line_beside_the_text_is_lit_while_the_text_has_the_focus(app_on: AppOn) -> None:
    async with app_on().run_test(size=(120, 35)) as pilot:
        middle = pilot.app.screen.query_one("#middle")
        list_focused = middle.styles.border_left
        await pilot.press("tab")
        assert middle.styles.border_left != list_focused
        await pilot.press("tab")
        assert middle.styles.border_left == list_focused


@pytest.mark.parametrize("plain", [False, True])
async def test_a_pane_alone_has_no_line_beside_it(app_on: AppOn, plain: bool) -> None:
    async with app_on(plain=plain).run_test(size=ONE_PANE) as pilot:
        assert not pilot.app.screen.query_one("#middle").styles.border_left[0]
        await pilot.resize_terminal(120, 35)
        assert pilot.app.screen.query_one("#middle").styles.border_left[0]
        pilot.app.screen.query_one(StepList).focus()
        await pilot.press("tab", "z")
        assert pilot.app.screen.has_class("-zoom-text")
        assert not pilot.app.screen.query_one("#middle").styles.border_left[0]


async def test_enter_in_the_list_shows_the_step(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("8", "j", "enter")
        assert "[1Merged]" in page(pilot.app)
        assert session(pilot).step == 1


async def test_text_keys_scroll(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 15)) as pilot:
        text = pilot.app.screen.query_one(TextView)
        await pilot.press("space", "3", "v", "v", "v", "v", "j", "j", "k")
        assert text.scroll_offset.y == 1
        await pilot.press("G")
        assert text.scroll_offset.y == text.max_scroll_y > 0
        await pilot.press("g", "pagedown")
        assert not pilot.app._animator._animations
        assert text.scroll_offset.y == text.size.height - 1
        await pilot.press("pageup")
        assert text.scroll_offset.y == 0


async def test_search_finds_goes_on_and_comes_round(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 15)) as pilot:
        text = pilot.app.screen.query_one(TextView)
        await pilot.press("/", *"certificates", "enter")
        assert any("certificates" in row for row in screen_rows(pilot.app))
        first = text._match
        await pilot.press("/", *"segment", "enter")
        assert "'segment' is here" in page(pilot.app)
        assert "n the next, N the previous one" in page(pilot.app)
        lines, said = [text._match], []
        for _ in range(4):
            await pilot.press("n")
            lines.append(text._match)
            said.append("is here, on from the first line" in page(pilot.app))
        assert said.count(True) == 1  # where it comes round; any other match needs no words
        assert lines[0] is not None
        assert len(set(lines[:4])) == 4
        assert lines[4] == lines[0]
        await pilot.press("N")
        assert text._match == lines[3]
        assert first is not None


async def test_search_says_when_nothing_is_found(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("n")
        assert "nothing was searched yet" in page(pilot.app)
        await pilot.press("/", *"xyzzy", "enter")
        assert "'xyzzy' is not in this view · f finds the steps whose messages, answers" in page(pilot.app)
        await pilot.press("/", *["backspace"] * 5, *"ContinuePending", "enter")
        assert "is not in this view" in page(pilot.app)
        assert "but step 3 says it: :3" in page(pilot.app)


async def test_a_call_of_which_nothing_shows_a_cut_is_not_called_cut(app_on: AppOn) -> None:
    """The server's word is none that is known: nothing says that a limit cut the call, so no limit is to be raised."""
    whole = entry([user("Write it.")], body(assistant(None, '{"path": "a.md", "content": "all"}'), "odd_word", 8), 256)
    async with app_on([whole]).run_test(size=(120, 30)) as pilot:
        await pilot.press("space")
        assert "its arguments parse; no known stop reason says that the answer is complete" in view_text(pilot.app)
        await pilot.press("4")
        assert "what to do     do not run it; ask for the call again if it is still needed" in view_text(pilot.app)
        assert "raise the output limit" not in view_text(pilot.app)


async def test_search_in_the_list_stays_inside_the_filter(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        screen, steps = session(pilot), pilot.app.screen.query_one(StepList)
        await pilot.press("f", *"state:EvaluateStop", "enter", "/", *"max_tokens", "enter")
        found = []
        for _ in range(8):
            found.append(screen.step)
            assert screen.run.view.steps[screen.step].state.value == "EvaluateStop"
            row = screen_rows(pilot.app)[steps.region.y + steps.cursor - int(steps.scroll_offset.y)]
            assert f"▶ {screen.step + 1:>2} " in row, "the cursor stands on the step that the other panes show"
            assert f"step {screen.step + 1}/28" in screen_rows(pilot.app)[-2]
            await pilot.press("n")
        assert len(set(found)) > 2
        await pilot.press("/", *"Unrecorded", "enter")
        assert "'Unrecorded' is in no step that the filter keeps · f finds the steps whose" in page(pilot.app)


async def test_search_in_the_text_leaves_every_pane_on_its_step(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        screen, steps = session(pilot), pilot.app.screen.query_one(StepList)
        await pilot.press("f", *"held", "enter", "tab", "/", *"write_file", "enter", "n")
        assert screen.rows.keeps(screen.step)
        row = screen_rows(pilot.app)[steps.region.y + steps.cursor - int(steps.scroll_offset.y)]
        assert f"▶ {screen.step + 1:>2} " in row
        assert "write_file" in page(pilot.app)


async def test_keys_that_move_stay_inside_the_filter(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("f", *"state:Request", "enter")
        for key in ("}", "]", "space", "G", "!"):
            await pilot.press("g")
            for _ in range(4):
                await pilot.press(key)
                assert session(pilot).filtered, key
                assert session(pilot).rows.keeps(session(pilot).step), key


async def test_a_step_outside_the_filter_takes_it_away(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("f", *"held", "enter", ":", "3", "enter")
        assert session(pilot).step == 2
        assert not session(pilot).filtered
        assert "the filter is removed: this step is outside it" in page(pilot.app)
        assert "▶  3 " in page(pilot.app)


async def test_many_steps_are_filtered_without_holding_a_key(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each key of a filter waited until every step of a long recording was made again."""
    go_on, look = threading.Event(), remarks.filter_steps

    def slow(*given: Any) -> Any:
        assert go_on.wait(10)
        return look(*given)

    monkeypatch.setattr(remarks, "MANY_STEPS", 0)
    monkeypatch.setattr(remarks, "filter_steps", slow)
    async with app_on().run_test(size=THREE) as pilot:
        screen = session(pilot)
        await pilot.press("f", *"held", "enter")
        assert "filtering…" in page(pilot.app)
        await pilot.press("down")
        assert not screen.filtered
        go_on.set()
        await until(pilot, lambda: bool(screen.filtered))
        assert screen.filtered == "held: 4 steps"
        assert "4 of 28 steps" in page(pilot.app)
        assert screen.rows.keeps(screen.step)
        go_on.clear()
        await pilot.press("f", *["backspace"] * 4, *"state:Request")
        await pilot.press("enter", "escape")
        assert "all steps are shown · f offers the filter again" in page(pilot.app), "esc gives it up"
        go_on.set()
        await screen.workers.wait_for_complete()
        await pilot.pause()
        assert not screen.filtered
        await pilot.press("f", "enter")
        await until(pilot, lambda: bool(screen.filtered))
        assert screen.filtered.startswith("state:Request: "), "the last filter is offered again"


async def test_a_filter_that_keeps_no_step_of_another_run_does_not_count_those_of_the_first(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("g", "f", *"end:retry_limit", "enter")
        assert re.search(r"end:retry_limit: \d+ steps", page(pilot.app))
        await pilot.press("F")
        await until(pilot, lambda: "run attempts=5" in page(pilot.app))
        assert "end:retry_limit: all steps are shown" in page(pilot.app)


async def test_a_long_note_leaves_the_keys_in_sight_and_they_can_be_clicked(app_on: AppOn) -> None:
    """Behind its last row, or on a row of their own if not even help and leaving fit there."""
    async with app_on().run_test(size=(60, 20)) as pilot:
        for words, behind in [(13, False), (16, True)]:
            session(pilot).note = "one " * words + "end"
            await pilot.pause()
            *_, before, last = page(pilot.app).splitlines()
            assert last.endswith("? help  q quit"), (words, behind)
            assert before.startswith(" one one"), (words, behind)
            assert ("end " in last) is behind, (words, behind)
            await pilot.click("#keys", offset=(last.index("? help"), 1))
            assert "Keys  (type to narrow" in page(pilot.app), (words, behind)
            await pilot.press("escape")


async def test_a_key_without_a_use_says_so(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 16)) as pilot:
        for key, said in (("J", "J has no use anywhere · ? lists the keys"), ("at", "@ has no use anywhere"),
                          ("A", "A has no use now: Cancel the live run that is under way"),
                          ("l", "nothing lies left or right: long lines are wrapped · w stops that"),
                          ("enter", "enter leads from a fact to its bytes in Response (2)"),
                          ("1", "merged is open already"), ("z", "there is room for one pane only"),
                          ("g", "this is the beginning of the view · space goes to the next step"),
                          ("end", ""), ("j", "this is the end of the view · space goes to the next step")):
            await pilot.press(key)
            await pilot.pause()
            assert said in page(pilot.app), key
    async with app_on().run_test(size=THREE) as pilot:
        for key in ("k", "g", "pageup"):
            await pilot.press("y", key)
            assert "this is the first step" in page(pilot.app)
        await pilot.press("8")
        assert "steps is open already" in page(pilot.app)
        await pilot.press("h")
        await pilot.pause()
        assert session(pilot).note == "h works in the text of an open session (tab): Left, where lines are not wrapped"
        await pilot.press("3", "tab", "h")
        await pilot.pause()
        assert session(pilot).note.endswith("w stops that · v shows the bytes as hex and in other forms")
        await pilot.press("v", "v", "v")
        assert session(pilot).panes.forms["wire"] == "hex"


async def test_search_in_the_list_goes_to_the_step_or_finds_what_only_the_text_holds(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("/", *"certificates", "enter")
        assert "'certificates' is in no step, but in this view" in page(pilot.app)
        assert session(pilot).step == 0
        assert pilot.app.screen.query_one(TextView)._match is not None
        await pilot.press("/", "ctrl+u", *"unrecorded", "enter")
        assert session(pilot).run.view.steps[session(pilot).step].state.value == "Unrecorded"


async def test_wire_shows_the_request_that_a_step_sends(app_on: AppOn) -> None:
    """At the step that sends the results of calls it is that request, whose answer comes one step later."""
    ask, whole = user("Put it into report.md."), '{"path": "report.md", "content": "short"}'
    sent = assistant("Writing it now.", whole)
    entries = [entry([ask], stream("Writing it now.", "tool_calls", 9, whole)),
               entry([ask, sent, result("ok, 28 bytes")], body(assistant("Done."), "stop", 8))]
    async with app_on(entries).run_test(size=ONE_PANE) as pilot:
        steps = session(pilot).run.view.steps
        sending = next(at for at, step in enumerate(steps) if at and step.state.value == "Request")
        assert steps[sending].response == 0, "the answer at hand is still the one before"
        session(pilot).go(sending, "")
        await pilot.press("3", "v", "v", "v", "v")
        assert "request of response 2" in view_text(pilot.app)
        assert "tool result ok, 28 bytes" in page(pilot.app)
        await pilot.press("backspace")
        assert "request of response 1" in view_text(pilot.app)


async def test_v_cycles_the_forms_of_wire_and_diff(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("space", "3", "g")
        marks = []
        for _ in range(5):
            marks.append(session(pilot).panes.forms["wire"])
            await pilot.press("v")
        assert marks == ["events", "parsed", "raw", "hex", "request"]
        assert session(pilot).panes.forms["wire"] == "events"
        await pilot.press("5")
        marks = []
        for _ in range(3):
            marks.append(view_text(pilot.app).split("\n")[0])
            await pilot.press("v")
        assert [mark.partition(" ")[0] for mark in marks] == ["Step", "Request", "this"]
        assert marks[2].startswith("this is the only run; e runs it again")
        assert session(pilot).panes.forms["diff"] == "step"
        await pilot.press("2", "v")
        assert "this view has one form" in page(pilot.app)


async def test_v_is_never_silent_in_wire_before_the_first_answer(app_on: AppOn) -> None:
    """Four of the five forms show the same request then, so the page says which form is chosen."""
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("g", "3")
        pages = []
        for _ in range(5):
            pages.append(page(pilot.app))
            await pilot.press("v")
        assert "No response yet" in pages[0]
        assert "v [events] parsed  raw  hex  request" in pages[0]
        for mode, text in zip(("events", "parsed", "raw", "hex", "request"), pages, strict=True):
            assert f"[{mode}]" in text, "the form that was chosen is marked by more than a colour"


@pytest.mark.parametrize("size", [ONE_PANE, (160, 45)])
async def test_v_lays_the_segments_side_by_side(app_on: AppOn, size: tuple[int, int]) -> None:
    async with app_on().run_test(size=size) as pilot:
        await pilot.press("}", "}", "v")
        await pilot.pause()
        assert session(pilot).panes.forms["merged"] == "side by side"
        assert "seam 1 to 2: prefill, joined byte for byte · rule: careful" in page(pilot.app)
        rows = screen_rows(pilot.app)
        heads = next(row for row in rows if "segment 1 " in row)
        assert heads.index("segment 1 ") < heads.index("segment 2 ")
        left = next(row for row in rows if f"1 {PARTS[0][:20]}" in row)
        right = next(row for row in rows if f"2 {PARTS[1][:20]}" in row)
        assert rows.index(left) < rows.index(right)
        assert left.index(f"1 {PARTS[0][:20]}") < right.index(f"2 {PARTS[1][:20]}") - 30
        await pilot.press("v")
        assert session(pilot).panes.forms["merged"] == "merged"


async def test_s_tries_the_seam_rules_and_comes_back(app_on: AppOn) -> None:
    first = "The answer begins here and is long enough to be quoted back exactly as it was. "
    again = first[-40:]
    ask, hint = user("x"), user("Continue exactly from where you left off.")
    entries = [entry([ask], stream(first, "length", 64)),
               entry([ask, assistant(first), hint], stream(again + "And it ends.", "stop", 8))]
    async with app_on(entries).run_test(size=ONE_PANE) as pilot:
        before = view_text(pilot.app)
        await pilot.press("s")
        assert session(pilot).panes.seam == "concat"
        assert "seam concat: 40 characters differ from careful · branch: --set seam=concat" in page(pilot.app)
        assert f'++ "{again}" 40 characters more than by the rule careful' in view_text(pilot.app)
        assert session(pilot).sheet.copy_text() == first + again + "And it ends."
        await pilot.press("s")
        assert session(pilot).panes.seam == "overlap"
        assert "seam overlap: 0 characters differ" in page(pilot.app)
        assert session(pilot).sheet.copy_text() == first + "And it ends."
        await pilot.press("s")
        assert session(pilot).panes.seam is None
        assert "seam rule careful: the rule in force" in page(pilot.app)
        assert view_text(pilot.app) == before
        await pilot.press("2", "s")
        assert "seams are tried in Merged: 1 opens it" in page(pilot.app)


async def test_s_says_where_there_is_no_seam(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("]", "s")
        assert "there is no seam in this turn" in page(pilot.app)


async def test_the_wire_opens_where_the_stop_reason_stands(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("space", "3")
        assert '"finish_reason": "length"' in page(pilot.app)


async def test_w_stops_wrapping(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        text = pilot.app.screen.query_one(TextView)
        await pilot.press("space", "3", "w")
        await pilot.pause()
        assert text.virtual_size.width > 80
        await pilot.press("l", "l")
        assert text.scroll_offset.x == 16
        await pilot.press("h", "w")
        await pilot.pause()
        assert text.virtual_size.width < 80


async def test_z_shows_one_pane_alone(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("tab", "z")
        await pilot.pause()
        assert "RequestContinuation 1" not in page(pilot.app)
        assert pilot.app.screen.query_one(TextView).region.width == 160
        await pilot.press("z")
        await pilot.pause()
        assert "MACHINE" in page(pilot.app)
        await pilot.press("tab", "z")
        await pilot.pause()
        assert pilot.app.screen.query_one(StepList).region.width == 160


async def test_y_copies_what_the_view_shows_and_capital_y_the_command_line(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("y")
        assert pilot.app.clipboard == "".join(PARTS[:4])
        assert "OSC 52" in page(pilot.app)
        await pilot.press("]", "space", "4", "y")
        assert pilot.app.clipboard.startswith('{"path": "report.md"')
        await pilot.press("Y")
        screen = session(pilot)
        assert pilot.app.clipboard == command(screen.session.paths, screen.run.view.replay.settings)
        assert pilot.app.clipboard.startswith("inspector replay ")


async def test_t_goes_between_light_and_dark(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        assert pilot.app.current_theme.dark
        await pilot.press("t")
        assert not pilot.app.current_theme.dark
        assert "CUT CALL RUN" in page(pilot.app)
        for keys, theme in ((":theme", "inspector-dark"), ("t", "inspector-light")):
            await pilot.press(*keys, *(["enter"] if keys[0] == ":" else []))
            await pilot.pause()
            assert session(pilot).note == f"theme {theme} · ctrl+p, then Choose a theme, offers every theme"


async def test_help_names_every_key(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        for key in ["question_mark", "f1"]:
            expected = [found.binding.tooltip for _, found in active_keys(pilot.app.screen)]
            await pilot.press(key)
            assert isinstance(pilot.app.screen, HelpScreen), key
            listed = "\n".join(text_of(line) for rows in pilot.app.screen._sections.values() for line in rows)
            assert expected, key
            for words in expected:
                assert words in listed, key
            await pilot.press("escape")
            assert isinstance(pilot.app.screen, SessionScreen), key


async def test_the_help_of_a_narrow_window_has_room_for_what_a_key_does(app_on: AppOn) -> None:
    async with app_on().run_test(size=(41, 45)) as pilot:
        await pilot.press("question_mark")
        row = next(row for row in screen_rows(pilot.app) if " space " in row)
        assert row.index("The next step") - row.index("space") == 13


async def test_the_help_has_keys_as_they_are_printed_in_columns_that_do_not_shift(app_on: AppOn) -> None:
    printed = {"space", "backspace", "enter", "esc", "tab", "Home", "End", "Page Up", "Page Down", "F1",
               "↑", "↓", "←", "→"}
    async with app_on().run_test(size=ONE_PANE) as pilot:
        assert len({len(row[0].text) for rows in sections(pilot.app.screen).values() for row in rows}) == 1
        for title, rows in sections(pilot.app.screen).items():
            if title in ("Filter language", "Marks"):
                continue
            names = [name for row in rows for name in row[0].text.strip().split(", ")]
            assert all(len(name) == 1 or name in printed or name.startswith("ctrl+") for name in names), names
        assert list(sections(pilot.app.screen)) == [
            "Move", "Find", "Look", "What if", "Open, copy, export", "Everywhere in the app", "Filter language",
            "Marks"], "by what keys are for"


async def test_the_palette_is_in_the_order_of_the_help_and_begins_with_no_key_that_moves(app_on: AppOn) -> None:
    from inspector.tui.keys import KeyCommands

    async with app_on().run_test(size=ONE_PANE) as pilot:
        screen = pilot.app.screen
        helped = [text_of(row[1:]) for title, rows in sections(screen).items()
                  if title not in ("Filter language", "Marks") for row in rows]
        offered = [found.binding.tooltip for _, _, found in KeyCommands(screen)._every()]
        assert offered == [words for words in helped if words != "All commands, by name"]
        about = [words for _, words, _ in KeyCommands(screen)._every()]
        assert not [words for words in about if words.partition(" · ")[2] != words.partition(" · ")[2].lower()]
        offered = [str(hit.text) async for hit in KeyCommands(pilot.app.screen).discover()]
        assert offered[0].startswith("To the other pane")
        assert offered[1].startswith(str(every_id()["step.forward"].tooltip))
        assert len(offered) == len(list(KeyCommands(pilot.app.screen)._every())), "none is left out"
        moving = ("A line up", "A line down", "A page up", "A page down", "The first line", "The last line", "Left,",
                  "Right,", "In Wire")
        assert all(each.startswith(moving) for each in offered[-len(moving):])


def test_every_binding_has_one_purpose() -> None:
    names = [name for names in PURPOSES.values() for name in names.split()]
    assert len(names) == len(set(names))
    for name in every_id():
        assert name in names or name.partition(".")[0] in names, f"{name} is under no heading of PURPOSES"
    assert set(SYNONYMS) <= set(every_id())
    assert set(WAYS_TO_SCREENS) <= {kind.__name__ for kind in owners()}


async def test_the_palette_finds_a_command_by_other_words(app_on: AppOn) -> None:
    from inspector.tui.keys import KeyCommands

    async with app_on().run_test(size=ONE_PANE) as pilot:
        for typed, command in [
            ("exit", "back"), ("grep", "search"), ("diff", "compare"), ("bookmark", "mark"), ("contrast", "theme"),
            ("max_tokens", "limits"), ("clipboard", "copy"), ("sweep", "tune")]:
            provider = KeyCommands(pilot.app.screen)
            wanted = next(title for title, _, found in provider._every() if found.binding.id == command)
            assert wanted in [hit.text async for hit in provider.search(typed)], (typed, command)


async def test_a_key_of_another_screen_says_where_it_works(app_on: AppOn) -> None:
    async with app_on().run_test(size=(160, 24)) as pilot:
        await pilot.press("space", "J")
        await pilot.pause()
        assert session(pilot).note.startswith("J has no use anywhere"), "or the operator tries it again"
        await pilot.press("D")
        await pilot.pause()
        assert session(pilot).note.startswith("D works in a live turn (L): Carry out what follows")
        await pilot.press("P")
        await pilot.pause()
        await pilot.press("F")
        await pilot.pause()
        assert "F works one screen back (esc): Follow the advice" in page(pilot.app)


async def test_a_key_works_on_the_screen_below_before_any_other() -> None:
    """`f` filters turns and steps; over the table of turns it is that of the turns."""
    app = LoopInspector(["sample_sessions"])
    async with app.run_test(size=ONE_PANE) as pilot:
        await app.workers.wait_for_complete()
        await pilot.press("s", "f")
        await pilot.pause()
        assert "f works one screen back (esc): Show only the turns that match" in " ".join(
            page(app).replace("│", " ").split())


async def test_help_is_narrowed_by_what_is_typed(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("?")
        assert "Move" in page(pilot.app)
        await pilot.press(*"previous breakpoint")
        assert "Run back to the previous breakpoint" in page(pilot.app)
        assert "The next step" not in page(pilot.app)
        await pilot.press(*["backspace"] * 19, *"filter lang stop:")
        assert "stop:WORD" in page(pilot.app)
        await pilot.press(*["backspace"] * 20, *"xyzzy")
        assert "no key or term matches" in page(pilot.app)


async def test_help_finds_the_keys_of_other_screens() -> None:
    """Nothing in the table of turns said that `compare` exists, and where."""
    app = LoopInspector(["sample_sessions"])
    async with app.run_test(size=ONE_PANE) as pilot:
        await app.workers.wait_for_complete()
        assert isinstance(app.screen, TurnsScreen)
        await pilot.press("?")
        assert "Only in" not in page(app), "the help is about this screen as long as nothing is typed"
        await pilot.press(*"compare")
        assert "Only in an open session (enter in the table of turns)" in page(app)
        assert "Compare this turn with another" in page(app)


async def test_the_key_that_opened_the_help_closes_it(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        for key in ("question_mark", "f1"):
            await pilot.press("?")
            assert isinstance(pilot.app.screen, HelpScreen)
            await pilot.press(key)
            assert isinstance(pilot.app.screen, SessionScreen)
        await pilot.press("?", *"go on?")
        assert isinstance(pilot.app.screen, HelpScreen), "in a text it is a character"


async def test_the_key_bar_in_ascii_ends_with_help_and_back() -> None:
    """The sign for space takes five cells there, but was counted as one: the bar was cut before `q`."""
    app = LoopInspector(["sample_sessions/05-cut-call-repaired.session.jsonl"], plain=True)
    async with app.run_test(size=ONE_PANE) as pilot:
        await pilot.press("space")
        for width in range(41, 100, 3):
            await pilot.resize_terminal(width, 24)
            await pilot.pause()
            assert screen_rows(app)[-1].rstrip().endswith("? help  q quit"), width


async def test_q_goes_back_then_quits(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("?")
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, SessionScreen)
        await pilot.press("q")
        assert pilot.app.return_value == 0


async def test_escape_never_leaves_the_program(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 20)) as pilot:
        for size in [(60, 20), ONE_PANE, THREE]:
            await pilot.resize_terminal(*size)
            await pilot.press("space")
            assert "nothing is open" not in page(pilot.app), "the note of the size before is gone"
            await pilot.press("escape", "escape")
            assert pilot.app.is_running, size
            assert "nothing is open that esc could close · q leaves" in page(pilot.app), size


async def test_escape_closes_what_is_open_one_at_a_time(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        screen = session(pilot)
        await pilot.press("f", *"held", "enter", "tab", "/", *"segment", "enter", "z", "escape")
        assert not screen.has_class("-zoom-text")
        await pilot.press("escape")
        assert pilot.app.screen.query_one(TextView).needle == ""
        assert screen.filtered
        await pilot.press("escape")
        assert not screen.filtered
        assert "all steps are shown · f offers the filter again" in page(pilot.app)
        await pilot.press("f", "enter")
        assert screen.filtered.startswith("held")


async def test_escape_goes_back_to_the_list_that_a_session_was_opened_from(tmp_path: Path) -> None:
    async with LoopInspector().run_test(size=ONE_PANE) as pilot:
        await pilot.press("o", *str(story(tmp_path)), "enter")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        turns = pilot.app.screen
        assert isinstance(turns, TurnsScreen)
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, SessionScreen)
        await pilot.press("escape")
        assert pilot.app.screen is turns
        await pilot.press("escape", "escape")
        assert pilot.app.is_running
        assert "q leaves" in page(pilot.app)


async def test_control_c_leaves_where_it_comes_twice(app_on: AppOn, monkeypatch: pytest.MonkeyPatch) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("ctrl+c")
        assert "press ctrl+c again to leave" in page(pilot.app)
        monkeypatch.setattr("inspector.tui.base_app.QUIT_PERIOD", -1.0)
        await pilot.press("ctrl+c")
        assert pilot.app.is_running, "too late"
        monkeypatch.setattr("inspector.tui.base_app.QUIT_PERIOD", 60.0)
        await pilot.press(":", "ctrl+c")
        assert pilot.app.return_value == 0


async def test_control_c_copies_what_is_selected_in_a_field(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press(":", *"turn", "shift+home", "ctrl+c", "ctrl+c")
        assert pilot.app.is_running
        assert pilot.app.clipboard == "turn"
        await pilot.press("escape", "e", "ctrl+c")  # where a field is selected from the start
        await until(pilot, lambda: "copied 1 character" in page(pilot.app))


@pytest.mark.parametrize(("place", "comes_back"), [
    ({"process_group": 0}, True), ({}, False), ({"start_new_session": True}, False),
])
def test_a_shell_in_another_group_makes_a_stopped_program_go_on(place: dict[str, Any], comes_back: bool) -> None:
    code = "from inspector.tui.base_app import has_job_control; print(has_job_control())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, **place)
    assert done.stdout == f"{comes_back}\n"


DRAW_UPDATE = Compositor.render_update
"""Draws for the terminal; in other tests nothing does."""


async def test_the_whole_screen_is_painted_when_the_shell_makes_the_program_go_on(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The terminal shows an empty screen then, and Textual would paint what has changed only."""
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.pause()
        painted: list[str] = []
        monkeypatch.setattr(Compositor, "render_update", DRAW_UPDATE)
        monkeypatch.setattr(LoopInspector, "_display", lambda app, screen, update: painted.append(
            update.render_segments(app.console) if update is not None else ""))
        pilot.app.post_message(HeadlessDriver.SignalResume())
        await pilot.pause()
        assert "Merged" in "".join(painted)


@pytest.mark.parametrize("shell", [True, False])
async def test_control_z_gives_the_terminal_back_to_a_shell_or_says_why_not(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch, shell: bool
) -> None:
    stops: list[bool] = []
    monkeypatch.setattr("inspector.tui.base_app.has_job_control", lambda: shell)
    monkeypatch.setattr(HeadlessDriver, "can_suspend", True)
    monkeypatch.setattr(LoopInspector, "action_suspend_process", lambda app: stops.append(True))
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("ctrl+z")
        assert ("ctrl+z works only where a shell started the program" in page(pilot.app)) is not shell
        await pilot.press("e", "ctrl+z")
        assert stops == [True, True] * shell
        await pilot.press("escape")
        session(pilot).step = 0
        await pilot.press("W")
        text = pilot.app.focused
        before = text.text
        await pilot.press("!")
        assert text.text == f"{before}!"
        await pilot.press("ctrl+z")
        assert text.text == before
        assert stops == [True, True] * shell, "in a text it undoes what was typed"


async def test_control_q_quits_from_anywhere(app_on: AppOn) -> None:
    async with app_on().run_test(size=ONE_PANE) as pilot:
        await pilot.press("e", "ctrl+q")
        assert pilot.app.return_value == 0


async def test_the_palette_offers_every_key(app_on: AppOn) -> None:
    from inspector.tui.keys import KeyCommands

    async with app_on().run_test(size=ONE_PANE) as pilot:
        offered = {title for title, _, _ in KeyCommands(pilot.app.screen)._every()}
        for keys, found in active_keys(pilot.app.screen):
            if found.binding.id != "palette":
                assert f"{found.binding.tooltip} ({keys})" in offered
        opened = session(pilot)
        await choose_command(pilot, "next turn", "The first step of the next turn")
        await until(pilot, lambda: pilot.app.screen is opened and opened.step == 20)


async def test_the_key_bar_holds_whole_keys_and_always_help_and_back(app_on: AppOn) -> None:
    async with app_on().run_test(size=(60, 24)) as pilot:
        for width in (60, 80, 100, 120, 160):
            await pilot.resize_terminal(width, 24)
            bar = screen_rows(pilot.app)[-1].rstrip()
            assert bar.endswith("? help  q quit"), width
            whole = {f"{key} {found.binding.description}" for key, found in shown_keys(pilot.app.screen)} | {"q quit"}
            assert all(part.strip() in whole for part in bar.split("  ") if part.strip()), width


def test_every_binding_has_an_id_a_tooltip_and_a_key_of_its_own() -> None:
    every = [binding for owner in (SessionScreen, LoopInspector, RowList, TextView) for binding in owner.BINDINGS]
    assert all(binding.id and binding.tooltip for binding in every)
    ids = [binding.id for binding in every]
    assert len(ids) == len(set(ids))


async def test_a_click_moves_opens_tabs_and_presses_keys(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.click("#steps", offset=(10, 4))
        assert session(pilot).step == 3
        await pilot.click("#tabs", offset=(14, 0))
        assert session(pilot).panes.tab == "response"
        await pilot.click("#keys", offset=(2, 0))
        await pilot.pause()
        assert session(pilot).step == 4


async def test_keys_that_come_faster_than_the_screen_answers_are_all_counted(app_on: AppOn) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        steps = pilot.app.screen.query_one(StepList)
        for _ in range(10):
            steps.action_move(1)
        await pilot.pause()
        assert session(pilot).step == 10


async def test_a_binding_that_was_remapped_has_its_new_keys_and_no_others(app_on: AppOn) -> None:
    async with app_on(keys={"step.forward": "right_parenthesis,f9"}).run_test(size=ONE_PANE) as pilot:
        await pilot.press("f9", "right_parenthesis")
        assert session(pilot).step == 2
        await pilot.press("space")
        assert session(pilot).step == 2
        assert any("F9" in keys or "f9" in keys for keys, found in active_keys(pilot.app.screen)
                   if found.binding.id == "step.forward")


@pytest.mark.parametrize("size", [ONE_PANE, (160, 45)])
async def test_diff_shows_what_a_request_added_to_the_context(app_on: AppOn, size: tuple[int, int]) -> None:
    async with app_on().run_test(size=size) as pilot:
        await pilot.press("5", "v", "}", "}")
        shown = page(pilot.app)
        assert "Request of response" in shown
        assert "v  step [request] run" in shown
        assert "added" in shown
        assert "measured" in view_text(pilot.app)
        step = session(pilot).step
        await pilot.press("]")
        assert session(pilot).step != step
        assert session(pilot).panes.forms["diff"] == "request"  # the form stays while one steps


async def test_below_a_question_the_bar_offers_no_keys(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        assert "? help" in page(pilot.app)
        await pilot.press("e")
        assert "? help" not in page(pilot.app)
        await pilot.press("escape")
        assert "? help" in page(pilot.app)


async def test_a_sign_that_works_elsewhere_says_where_as_a_letter_does() -> None:
    app = LoopInspector(["sample_sessions/01-cut-call-and-long-answer.session.jsonl"])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TurnsScreen) and not app.screen.reading)
        for key, sign, said in (("right_square_bracket", "]", "The first step"), ("semicolon", ";", "Write a note"),
                          ("full_stop", ".", "The next fact")):
            await pilot.press(key)
            await pilot.pause()
            where = f"{sign} works in an open session (enter in the table of turns): {said}"
            assert where in " ".join(page(app).split())


async def test_a_key_without_a_use_in_a_dialog_says_where_it_works(app_on: AppOn) -> None:
    """As on the screens; a field takes its keys as text."""
    async with app_on().run_test(size=ONE_PANE) as pilot:
        for opens, key, says in (("R", "f", "f works one screen back (esc): Show only the steps"),
                                 ("b", "t", "t works one screen back (esc): Light or dark"),
                                 ("x", "?", "? works one screen back (esc): Every key"),
                                 ("V", "D", "D works in a live turn (L): Carry out")):
            await pilot.press(opens)
            keys = pilot.app.screen.query_one(KeyNote)
            shown = keys.line
            await pilot.press(key)
            await pilot.pause()
            assert says in " ".join(page(pilot.app).split()), opens
            assert "esc " in page(pilot.app), "the keys of the box stay"
            await pilot.press("J", "down")
            await pilot.pause()
            assert "works " not in page(pilot.app), "the next key takes the note away"
            assert keys.line == shown
            await pilot.press("escape")
        await pilot.press("e", "f")
        await pilot.pause()
        assert " f works" not in page(pilot.app), "a field takes it"

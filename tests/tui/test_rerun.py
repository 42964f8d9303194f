"""A run under other limits: from the form to the branch, and what the screen says of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from inspector.config.settings import INITIAL
from inspector.sessions.folders import samples, short
from inspector.tui.app import LoopInspector
from inspector.tui.limits_form import LimitsForm
from inspector.tui.panels import Cycle
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import SessionScreen
from tests.scenes.app import PARTS, cut_text, page, until, view_text
from tests.scenes.recordings import lines, pair_of, user
from tests.scenes.transcripts import block, claude, prompt, text

AppOn = Callable[..., LoopInspector]


def session(pilot: Pilot[Any]) -> SessionScreen:
    screen = pilot.app.screen
    assert isinstance(screen, SessionScreen)
    return screen


async def test_the_first_sample_is_completed_in_five_keys_from_the_start() -> None:
    app = LoopInspector()
    async with app.run_test(size=(80, 24)) as pilot:
        for size in [(80, 24), (160, 45)]:
            await pilot.resize_terminal(*size)
            while app.screen.reading:  # its row then knows the step: that of the turn that is worst
                await pilot.pause(0.02)
            await pilot.pause()
            await pilot.press("enter", "[", "e", "5", "enter")
            screen = session(pilot)
            step = screen.run.view.steps[screen.step]
            assert (step.state.value, step.turn.terminal, step.fidelity.value) == ("Complete", "completed", "RECORDED")
            assert screen.run.view.replay.settings.limits.continuation_max_attempts == 5, size
            shown = page(app)
            for said in ("Complete", "RECORDED", "run attempts=5", "3 → 5", "differs at"):
                assert said in shown, size
            assert screen.session.paths == (short(samples()[0].path),), size
            await pilot.press("q")


async def test_the_branch_stands_beside_the_original_and_is_not_made_twice(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(120, 40)) as pilot:
        before = session(pilot).run.view
        await pilot.press("r")
        assert len(session(pilot).runs.every) == 1
        assert "has these settings already" in page(pilot.app)
        await pilot.press("e", "5", "enter")
        screen = session(pilot)
        made = screen.run
        assert made.branch is not None
        assert screen.runs.every[0].view is before
        # Attempt 4 is where the default of 3 stops: Request, then 3 for each of three continuations, and the guard.
        assert made.branch.difference == 12
        assert made.view.turns[0].joined_text.text == "".join(PARTS)
        shown = view_text(pilot.app)
        assert "step 13 in turn 1: AbortPartial → RequestContinuation" in shown
        assert "AbortPartial, retry_limit → Complete" in shown
        assert "4 → 6" in shown
        assert "+ All three have been closed" in shown
        await pilot.press("o")
        assert screen.run.view is before
        assert "run 1 of 2: original" in page(pilot.app)
        await pilot.press("o", "O", "O")
        assert screen.run is made
        await pilot.press("Y")
        assert "--set continuation_max_attempts=5" in pilot.app.clipboard
        await pilot.press("e")
        shown = page(pilot.app)
        assert "original" in shown
        assert "▶ attempts=5" in shown, "the form lists the runs"
        assert "6 segments" in shown
        await pilot.press("escape", "1", "o", "e", "5", "enter")
        assert len(session(pilot).runs.every) == 2, "the same limits go to the run that has them"
        assert session(pilot).runs.index == 1
        assert "Run attempts=5 beside the original" in page(pilot.app), "as when it was made"
        assert "turn 1 ends in Complete · o goes between runs" in page(pilot.app)


async def test_where_the_recording_ends_it_says_so(app_on: AppOn) -> None:
    parts = PARTS[:4]
    entries = cut_text((*parts, "never recorded"))[:4]
    async with app_on(entries).run_test(size=(120, 40)) as pilot:
        await pilot.press("e", "9", "enter")
        step = session(pilot).run.view.steps[session(pilot).step]
        assert step.state.value == "Unrecorded"
        assert "The recording of this turn ends here" in view_text(pilot.app)


async def test_a_shorter_run_is_a_prefix(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(120, 40)) as pilot:
        await pilot.press("e", "1", "enter")
        screen = session(pilot)
        assert screen.run.view.turns[0].joined_text.text == "".join(PARTS[:2])
        assert "− In the second" in view_text(pilot.app)


async def test_an_empty_field_shows_the_value_in_force(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        await pilot.press("e")
        form = pilot.app.screen
        assert isinstance(form, LimitsForm)
        hints = {name: form.query_one(f"#{name}", Input).placeholder for name in (
            "continuation_max_total_completion_tokens", "others")}
        assert hints == {"continuation_max_total_completion_tokens": "1024",
                         "others": "max_tool_steps=10 max_resumes=10"}
        form.query_one("#others", Input).value = "max_resumes=7"
        await pilot.press("enter", "e")
        assert pilot.app.screen.query_one("#others", Input).placeholder == "max_tool_steps=10 max_resumes=7"


async def test_the_form_shows_what_is_in_force_and_the_defaults(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        await pilot.press("e")
        form = pilot.app.screen
        assert isinstance(form, LimitsForm)
        shown = page(pilot.app)
        rows = {
            "attempts: continuations": "now 3", "cont_tokens: of cut answers": "now 1,024",
            "cont_chars: characters": "now 120,000",
            "repairs: of cut calls": "now 1", "max_tokens: first request": "now 256", "policy": "< strict >",
            "seam rule: how joined": "< default >", "continue by": "< default >",
            "server profile: who answered": "< default >",
            "answers from": "< recording >",
        }
        for name, said in rows.items():
            assert any(name in row and said in row for row in shown.split("\n")), name
        assert "continuation_max_attempts: how often a cut answer is continued · now 3 · default 3" in " ".join(
            shown.replace("│", " ").split())
        await pilot.press("down")
        assert "now 1,024 · default 4 × max_tokens" in " ".join(page(pilot.app).replace("│", " ").split())
        await pilot.press("up")
        assert form.query_one("#continuation_max_attempts", Input).has_focus
        assert form.query_one("#continuation_max_attempts", Input).selected_text == "3"


async def test_a_wrong_value_is_told_beside_its_field_and_not_run(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        for typed, said in (("x", "'x' is not a whole number"), ("9999", "not a whole number from 0 to 1,000"),
                            ("-1", "from 0 to 1,000")):
            await pilot.press("e", *typed, "enter")
            assert isinstance(pilot.app.screen, LimitsForm), (typed, said)
            rows = page(pilot.app).split("\n")
            assert any(typed in row and "✖ see below" in row for row in rows), (typed, said)
            assert any(said in row for row in rows), (typed, said)
            await pilot.press("escape")
            assert len(session(pilot).runs.every) == 1, (typed, said)


async def test_arrows_and_tab_go_between_fields_and_any_character_leaves_the_form_open(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        await pilot.press("e", "down", "down")
        assert pilot.app.focused is not None
        assert pilot.app.focused.id == "continuation_max_output_chars"
        await pilot.press("up", "tab", "tab", "tab")
        assert pilot.app.focused.id == "max_tokens"
        form = pilot.app.screen
        form.query_one("#source", Cycle).focus()
        await pilot.press("at", "x", "_", "1")
        assert pilot.app.screen is form
        assert form.query_one("#source", Cycle).value == "recording"


async def test_another_max_tokens_is_answered_by_the_simulation_and_nothing_else_changes(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(120, 40)) as pilot:
        before = session(pilot).run.view.turns[0].final_turn
        await pilot.press("e", *["down"] * 4, *"32")
        assert pilot.app.screen.query_one("#source", Cycle).value == "simulation"
        await pilot.press("enter")
        screen = session(pilot)
        assert screen.run.view.replay.settings.max_tokens == 32
        assert screen.run.view.replay.settings.simulate
        after = screen.run.view.turns[0].final_turn
        assert after.token_cap == before.token_cap == 1024, "the bound stays as it was"
        assert "SIMULATED" in page(pilot.app)


async def test_the_source_goes_back_with_max_tokens_and_max_tokens_with_the_source(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(120, 40)) as pilot:
        await pilot.press("e", *["down"] * 4, *"32", "backspace", "backspace")
        form = pilot.app.screen
        assert form.query_one("#source", Cycle).value == "recording", "an empty field is the recorded budget"
        await pilot.press(*"32", "enter", "e", *["down"] * 9, "r")
        assert pilot.app.screen.query_one("#max_tokens", Input).value == ""
        await pilot.press("enter")
        settings = session(pilot).run.view.replay.settings
        assert (settings.max_tokens, settings.simulate) == (None, False)


async def test_a_typed_max_tokens_comes_back_where_the_recording_was_only_passed(app_on: AppOn) -> None:
    """Between `live` and `simulation` stands `recording`, which has none but its own."""
    async with app_on(cut_text(cap=64)[:-1]).run_test(size=(120, 40)) as pilot:
        await pilot.press("F", *["down"] * 5)
        form = pilot.app.screen
        source, cap = form.query_one("#source", Cycle), form.query_one("#max_tokens", Input)
        assert (source.has_focus, source.value, cap.value) == (True, "live", "1024")
        await pilot.press("right")
        assert (source.value, cap.value) == ("recording", "64")
        await pilot.press("right")
        assert (source.value, cap.value) == ("simulation", "1024")


async def test_limits_that_change_nothing_say_so(app_on: AppOn) -> None:
    async with app_on(cut_text(PARTS[:1])).run_test(size=(120, 40)) as pilot:
        await pilot.press("e", "5", "enter")
        assert "nothing differs" in page(pilot.app)


async def test_taking_the_advice_makes_the_run_that_was_tried(app_on: AppOn) -> None:
    """Five parts are four continuations: the limit of three is raised by one, and the turn is complete."""
    async with app_on(cut_text()).run_test(size=(80, 24)) as pilot:
        for size in [(80, 24), (120, 35)]:
            await pilot.resize_terminal(*size)
            advice = session(pilot).run.view.turns[0].verdict.advice
            assert advice is not None, size
            assert advice.set is not None, size
            assert "F try" in page(pilot.app), size
            await pilot.press("F")
            turn = session(pilot).run.view.turns[0]
            assert (turn.terminal, turn.verdict.word) == ("completed", "CUT, COMPLETED"), size
            assert session(pilot).runs.command().endswith(
                " ".join(f"--set {name}={value}" for name, value in advice.set.items()))
            assert "F try" not in page(pilot.app), size
            await pilot.press("F")
            assert "turn 1: nothing to change" in page(pilot.app), size
            await pilot.press("o")


async def test_advice_that_only_a_live_answer_shows_opens_the_form_on_it_and_runs_nothing(app_on: AppOn) -> None:
    async with app_on(cut_text(cap=64)[:-1]).run_test(size=(80, 24)) as pilot:
        await pilot.press("F")
        await pilot.pause()
        form = pilot.app.screen
        assert isinstance(form, LimitsForm)
        shown = page(pilot.app)
        assert "answers from                 < live >" in shown
        assert "max_tokens 1,024 is a guess · asks the provider: enter sends nothing yet" in shown
        assert "enter shows costs · esc leaves · ↑ ↓ fields · ← → words" in shown
        assert form.query_one("#continuation_max_total_completion_tokens", Input).placeholder == "4096"
        assert isinstance(form.focused, Input)
        assert (form.focused.id, form.focused.value) == (INITIAL, "1024")
        await pilot.press(*"2048")
        await until(pilot, lambda: "asks the provider: enter shows where, and for how much; nothing is sent yet"
                    in page(pilot.app))
        await pilot.press("escape")
        assert len(session(pilot).runs.every) == 1
        assert "raise max_tokens, or continuation_max_attempts" in session(pilot).run.view.turns[0].verdict.advice.text
        assert "turn 1: enter, then y asks the provider, or p a stand-in without a key" in page(pilot.app)


async def test_the_form_opens_on_the_limits_that_the_advice_names_where_max_tokens_changes_nothing(
    app_on: AppOn,
) -> None:
    """The server cuts at 64 tokens although 256 are asked for, so only more continuations are left."""
    async with app_on(cut_text()[:-1]).run_test(size=(80, 24)) as pilot:
        advice = session(pilot).run.view.turns[0].verdict.advice
        assert advice.text.startswith("raise continuation_max_attempts: the answer ended below max_tokens; ")
        await pilot.press("F")
        await pilot.pause()
        form = pilot.app.screen
        assert (form.focused.id, form.focused.value) == ("continuation_max_attempts", "6")
        assert form.query_one(f"#{INITIAL}", Input).value == "256"
        assert "continuation_max_attempts 6 is a guess" in page(pilot.app)


async def test_the_bound_on_continuations_in_the_form_follows_max_tokens(app_on: AppOn) -> None:
    """It is a multiple of max_tokens unless it is set; the form would else show a bound that the run has not."""
    async with app_on(cut_text(cap=64)).run_test(size=(80, 24)) as pilot:
        await pilot.press("e")
        bound = pilot.app.screen.query_one("#continuation_max_total_completion_tokens", Input)
        first = pilot.app.screen.query_one(f"#{INITIAL}", Input)
        assert (bound.value, bound.placeholder) == ("", "256")
        for typed, shown in (("32", "128"), ("wrong", "default"), ("64", "256"), ("", "256")):
            first.value = typed
            await pilot.pause()
            assert bound.placeholder == shown


async def test_the_advice_of_a_turn_before_a_branch_is_followed_in_the_run_that_the_turn_is_of() -> None:
    app = LoopInspector([str(samples()[0].path)])
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "CUT CALL RUN" in page(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        screen = session(pilot)
        screen.branches.branch({"policy": "pi"}, since=screen.run.view.turns[1].run.first)
        await pilot.press("[", "[", "F")
        made = screen.runs.node
        assert (made.path, made.parent) == ("attempts=5", screen.runs.tree.original)
        assert "turn 1 ends in Complete" in screen.note


async def test_the_cursor_stays_in_its_turn_where_a_run_has_fewer_steps() -> None:
    app = LoopInspector([str(samples()[0].path)])
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "CUT CALL RUN" in page(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        screen = session(pilot)
        await pilot.press("[", "[")
        assert screen.run.view.replay.turn_at(screen.step) == 0
        await pilot.press("e", *["down"] * 4, *"240", "enter")
        assert screen.run.view.replay.settings.max_tokens == 240
        assert screen.run.view.replay.turn_at(screen.step) == 0
        assert "turn 1 ends in Complete" in screen.note
        await pilot.press("o")
        assert screen.run.view.replay.turn_at(screen.step) == 0


async def test_keys_that_come_together_are_obeyed_in_their_order(app_on: AppOn) -> None:
    async with app_on(cut_text()).run_test(size=(120, 40)) as pilot:
        await pilot.press("e")
        await pilot.pause()
        for key in (*"1234567", *["backspace"] * 4, *"89"):  # without a pause between them, as a slow connection does
            pilot.app.post_message(Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        field = pilot.app.focused
        assert isinstance(field, Input)
        assert field.value == "12389"


async def test_advice_and_its_key_agree_where_nothing_can_be_run(tmp_path: Path) -> None:
    """A transcript holds no request that could be sent again, and no setting helps against a full context."""
    cut = claude(prompt("Write it."), block(text("Half of"), stop="max_tokens", tokens=9))
    refused = pair_of([user("x")], {"error": {"message": "maximum context length exceeded"}}, status=400)
    full = tmp_path / "full.jsonl"
    full.write_bytes(lines(refused))
    (tmp_path / "agent.jsonl").write_text(cut)
    for path, advised, note in (
        (tmp_path / "agent.jsonl", "only a new live turn can show what is enough",
         "F runs nothing, because the rest was not recorded · L opens the form of a live turn"),
        (full, "shorten the request", "F runs nothing, because no setting changes this · shorten the request"),
    ):
        app = LoopInspector([str(path)], opened_already=load([str(path)], ReadingOptions()))
        async with app.run_test(size=(160, 45)) as pilot:
            turn = session(pilot).run.view.turns[0]
            assert turn.verdict.advice is not None
            assert turn.verdict.advice.text.find(advised) >= 0
            assert "F try" not in page(pilot.app), "a key in the bar does something"
            await pilot.press("F")
            assert note in session(pilot).note
            assert len(session(pilot).runs.every) == 1


async def test_the_sheet_of_the_verdict_says_what_the_key_does(app_on: AppOn) -> None:
    for exchanges, said in ((cut_text(), "F makes this run"),
                            (cut_text()[:-1], "F asks the provider or a stand-in")):
        async with app_on(exchanges).run_test(size=(160, 45)) as pilot:
            await pilot.press("V")
            assert said in page(pilot.app)

"""The transcripts of agents in the picker: listed at once, their verdicts told as they come, nothing written."""

import os
from pathlib import Path

from inspector.tui.app import LoopInspector
from inspector.tui.picker import READABLE, Choices, PickerScreen, judge_choice, transcript_rows
from inspector.tui.session_screen import SessionScreen
from tests.scenes.app import page
from tests.scenes.transcripts import MISSING, block, claude, failed, pi, pi_said, pi_user, prompt, result, text, use

SIZE = (120, 40)
CUT = claude(prompt("write the plan"), block(use()), result(MISSING, error=True))
ENDED = claude(prompt("say hello"), block(text("Hello."), stop="end_turn"))


def home() -> Path:
    return Path(os.environ["HOME"])


def wrote(below: str, content: str, at: float) -> str:
    path = home() / below
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (at, at))
    return str(path)


async def judged_by(app: LoopInspector, pilot) -> None:
    await app.workers.wait_for_complete()
    await pilot.pause()


async def test_the_newest_is_first_and_each_row_gets_its_verdict() -> None:
    old = wrote(".claude/projects/-work-old/a.jsonl", ENDED, 1_000)
    new = wrote(".claude/projects/-work-new/b.jsonl", CUT, 2_000)
    other = wrote(".pi/agent/sessions/--w--/c.jsonl", pi(pi_user("tell"), pi_said(text("On"), stop="length")), 1_500)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await judged_by(app, pilot)
        listed = app.screen.query_one(Choices)
        assert [choice.path for choice in listed.choices if choice.path][:3] == [new, other, old]
        assert listed.selected.path == new
        shown = page(app)
        assert shown.index("Transcripts of your agents") < shown.index("CALL REJECTED") < shown.index("Sample sessions")
        assert shown.index("CALL REJECTED") < shown.index("TRUNCATED") < shown.index("COMPLETE")
        assert "story          write the plan" in shown
        assert "anthropic_messages ended with no stop reason recorded" in shown


async def test_a_row_is_there_before_its_file_was_read_and_opens_by_enter() -> None:
    path = wrote(".claude/projects/-work/a.jsonl", ENDED, 1_000)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("enter")
        assert isinstance(app.screen, SessionScreen)
        assert app.screen.opened.paths == (path,)
        await pilot.press("q")
        await judged_by(app, pilot)
        assert isinstance(app.screen, PickerScreen)
        assert "COMPLETE" in page(app)


async def test_a_broken_file_shows_its_error_and_hides_no_other() -> None:
    broken = wrote(".claude/projects/-work/a.jsonl", "\x00\x01 nothing", 3_000)
    wrote(".claude/projects/-work/b.jsonl", "", 2_000)
    wrote(".claude/projects/-work/c.jsonl", ENDED, 1_000)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await judged_by(app, pilot)
        shown = page(app)
        assert "COMPLETE" in shown
        rows_ = {choice.path: choice.verdict for choice in app.screen.query_one(Choices).choices}
        assert "binary data at byte 0" in rows_[broken]


async def test_keys_are_answered_while_verdicts_come() -> None:
    for number in range(12):
        wrote(f".claude/projects/-work/{number}.jsonl", ENDED, 1_000 + number)
    app = LoopInspector()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("j", "j")
        assert app.screen.query_one(Choices).selected.path.endswith("/9.jsonl")
        await judged_by(app, pilot)
        assert app.screen.query_one(Choices).selected.path.endswith("/9.jsonl")
        assert all(choice.verdict == "✓ COMPLETE" for choice in app.screen.query_one(Choices).choices if choice.verdict)


def test_a_large_file_is_listed_and_not_read() -> None:
    path = Path(wrote(".claude/projects/-work/a.jsonl", ENDED, 1_000))
    with path.open("ab") as file:
        file.truncate(READABLE + 1)
    (row,) = transcript_rows(os.environ)
    assert (row.verdict, row.unread) == ("large: open it to see", False)


def test_nothing_is_written_beside_a_transcript() -> None:
    path = wrote(".claude/projects/-work/a.jsonl", claude(prompt("x"), failed()), 1_000)
    before = sorted(str(each) for each in home().rglob("*"))
    (row,) = transcript_rows(os.environ)
    assert judge_choice(row).verdict == "✂ TRUNCATED"
    assert sorted(str(each) for each in home().rglob("*")) == before
    assert os.stat(path).st_mtime == 1_000


def test_a_file_that_went_away_says_so() -> None:
    path = wrote(".claude/projects/-work/a.jsonl", ENDED, 1_000)
    (row,) = transcript_rows(os.environ)
    Path(path).unlink()
    assert "cannot be read" in judge_choice(row).verdict


def test_a_hostile_name_and_prompt_are_inert() -> None:
    wrote(".claude/projects/-\x1b[31mred/a.jsonl", claude(prompt("\x1b]52;c;AAAA\x07 hi"), failed()), 1_000)
    (row,) = transcript_rows(os.environ)
    listed = Choices([judge_choice(row)])
    assert "\x1b" not in "".join(span.text for span in listed.row(0))

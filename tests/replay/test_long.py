"""A long recording: its steps are made again when they are looked at, and nothing else differs from a short one."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest

import inspector.replay
from inspector import commands
from inspector.cli import main
from inspector.config.settings import Settings
from inspector.replay import RECENT, Replay, StepMaker, replay
from inspector.replay.case import open_case
from inspector.replay.rerun import rerun
from inspector.report.explain_document import document
from inspector.report.facts import view, view_of_case
from inspector.report.turn_rows import rows_of
from inspector.sessions.open import open_paths
from inspector.sessions.thread import thread
from inspector.tui import session_files
from inspector.tui.turn_list import rows_of_session
from inspector.whatif.tree import branch, preview
from loop_core.turn.limits import Limits
from loop_core.turn.trace import Step
from tests.scenes.recordings import PARTS, chat, cut_text, lines, pair_of, user
from tests.scenes.rows import each_row
from tests.whatif.test_rerun import memory_of

SAMPLES = sorted(str(path) for path in (Path(__file__).parents[2] / "sample_sessions").glob("*.jsonl"))
RAISED = Settings(Limits(continuation_max_attempts=9))


def both(path: str | None, data: bytes = b"") -> tuple[Replay, Replay]:
    """The same recording, replayed as a short and as a long one."""
    loaded = open_paths([path or "-"], stdin=data)
    short, long = replay(open_case(loaded)), replay(open_case(loaded, long_from=1))
    assert all(isinstance(turn.made, StepMaker) for turn in long.turns)
    assert not any(isinstance(turn.made, StepMaker) for turn in short.turns)
    return short, long


def turns(count: int) -> bytes:
    """So many turns of one answer."""
    return lines(*(pair_of([user(f"question {number}")], chat(f"answer {number}")) for number in range(count)))


@each_row("path", SAMPLES)
def test_the_document_and_the_rows_are_the_same(path: str) -> None:
    short, long = both(path)
    one, other = view(short), view(long)
    assert json.dumps(document(one)) == json.dumps(document(other))
    assert rows_of(one) == rows_of(other)


@each_row("path", SAMPLES)
@each_row("long_from", [0, 20_000])
def test_a_view_that_is_made_turn_by_turn_is_that_of_the_whole_replay(path: str, long_from: int) -> None:
    loaded = open_paths([path])
    one, other = view(replay(open_case(loaded))), view_of_case(open_case(loaded, long_from=long_from), Settings())
    assert json.dumps(document(one)) == json.dumps(document(other))
    assert rows_of(one) == rows_of(other)
    assert len(one.steps) == len(other.steps)


def test_turns_that_spent_the_same_share_the_counts() -> None:
    loaded = open_paths(["-"], stdin=turns(10))
    for made in (view(replay(open_case(loaded))), view_of_case(open_case(loaded), Settings())):
        assert made.turns[0].spend.requests == 1
        assert len({id(turn.spend) for turn in made.turns}) == 1


def test_a_document_makes_the_steps_of_each_turn_once_and_keeps_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    played, shown = list[str](), list[object]()
    play, opened = inspector.replay.play_runs, commands.open_view

    def note_and_play(case, record, *given):
        played.append(record.id)
        return play(case, record, *given)

    def keep_view(*given, **named):
        shown[:] = opened(*given, **named)
        return tuple(shown)

    monkeypatch.setattr(inspector.replay, "play_runs", note_and_play)
    monkeypatch.setattr(commands, "open_view", keep_view)
    monkeypatch.setattr(commands, "stdin_of", lambda paths: turns(3 * RECENT))
    with pytest.raises(SystemExit):
        main(["explain", "--json", "-"], standalone_mode=False)
    assert len(json.loads(capsys.readouterr().out)["turns"]) == 3 * RECENT
    assert len(played) == len(set(played)) == 3 * RECENT
    assert all(isinstance(turn.made, StepMaker) for turn in shown[1].replay.turns)
    maker = shown[1].replay.turns[0].made
    assert isinstance(maker, StepMaker)
    assert len(maker._recent) == 1  # a report never comes back to a turn


@each_row("path", SAMPLES)
def test_a_what_if_finds_the_same_differences(path: str) -> None:
    short, long = both(path)
    assert preview(short, RAISED, 0) == preview(long, RAISED, 0)
    made, again = (branch(view(one), RAISED) for one in (short, long))
    assert [turn.id for turn in made.changed_turns] == [turn.id for turn in again.changed_turns]
    assert made.difference == again.difference
    assert json.dumps(document(made.view)) == json.dumps(document(again.view))


def test_its_steps_are_read_as_a_tuple_is() -> None:
    short, long = both(None, turns(5) + lines(*cut_text(*PARTS)))
    told, steps = [key(step) for step in short.trace.steps], long.trace.steps
    assert [key(step) for step in steps] == told
    assert len(steps) == len(told)
    assert key(steps[-1]) == told[-1]
    assert [key(step) for step in steps[2:9]] == told[2:9]
    assert [key(step) for step in steps[-3:]] == told[-3:]
    with pytest.raises(IndexError):
        steps[len(told)]


def key(step: Step) -> tuple[object, ...]:
    return step.turn.id, step.state, step.signal, step.run, step.turn.spend, step.turn.terminal, step.response


def test_a_turn_that_no_setting_changes_is_known_to_be_the_same() -> None:
    _, long = both(None, turns(3) + lines(*cut_text(*PARTS)))
    made = rerun(long, RAISED)
    assert [old.same_steps(new) for old, new in zip(long.turns, made.turns, strict=True)] == [True, True, True, False]
    assert not long.turns[0].same_steps(long.turns[1])


def test_few_of_its_steps_are_kept() -> None:
    """Without this, 100,000 turns take more than twice as much memory."""
    loaded = open_paths(["-"], stdin=turns(10 * RECENT))
    short = memory_of(lambda: view(replay(open_case(loaded))))
    long = memory_of(lambda: view(replay(open_case(loaded, long_from=1))))
    assert short - long > 1_500 * 9 * RECENT


def test_a_turn_of_a_long_session_takes_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its row in the table of turns; 100,000 such turns then stay below 400 MB."""
    monkeypatch.setattr(session_files, "LONG_IN_APP", 1)
    many, few = tmp_path / "many.jsonl", tmp_path / "few.jsonl"
    many.write_bytes(turns(350))
    few.write_bytes(turns(100))  # what all sessions share is in both, and the steps that are kept

    def load_rows(path: Path) -> SimpleNamespace:
        session = session_files.load([str(path)], session_files.ReadingOptions())
        return SimpleNamespace(turns=session, rows=rows_of_session(session))

    load_rows(few)  # fills the caches
    assert (memory_of(lambda: load_rows(many)) - memory_of(lambda: load_rows(few))) / 250 < 3_100


def test_to_find_the_turns_takes_little_room() -> None:
    exchanges = open_paths(["-"], stdin=turns(600)).exchanges
    tracemalloc.start()
    try:
        assert len(thread(exchanges, [range(len(exchanges))])) == 600
        assert tracemalloc.get_traced_memory()[1] / 600 < 1_150
    finally:
        tracemalloc.stop()


def test_a_followed_recording_keeps_the_turns_that_it_grows_by() -> None:
    loaded = open_paths(["-"], stdin=turns(4))
    first = loaded._replace(exchanges=loaded.exchanges[:3], turns=loaded.turns[:3])
    before = replay(open_case(first, long_from=1))
    after = replay(open_case(loaded, before.case, long_from=1), before=before)
    assert [turn.made is before.turns[0].made for turn in after.turns] == [True, True, True, False]
    assert not isinstance(after.turns[3].made, StepMaker)

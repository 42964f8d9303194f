"""Live turns against the scripted provider that is started for them: a row of the table as it stands, a scenario."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from inspector.config.settings import Settings
from inspector.live.headless import LiveOptions, run_live
from inspector.live.scripted import ScriptedTurn, formats_of, row_turn, scenario_turn
from inspector.provider import all_stories
from inspector.provider.dialect_rows import DialectRow
from inspector.provider.scenarios import scenario_names
from inspector.replay import Replay
from inspector.report.facts import view
from loop_core.errors import LoopError
from loop_core.formats import FORMATS
from loop_core.turn.presets import PI_PRESENCE
from loop_core.wire import wire
from tests.scenes.provider import QUICK, table_rows


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path))
    monkeypatch.setenv("LOOP_INSPECTOR_API_KEY", "sk-live-0123456789abcdefghij")


def play_out(turn: ScriptedTurn) -> Replay:
    """The turn to its end; its server is gone then."""
    begun = turn.start
    try:
        return run_live(begun.request, begun.server, begun.settings, begun.answers, begun.path, QUICK).replay
    finally:
        turn.server.close()


def listens(url: str) -> bool:
    with socket.socket() as made:
        return made.connect_ex(("127.0.0.1", urlsplit(url).port or 0)) == 0


@pytest.mark.parametrize("name", ["call-cut", "call-then-text", "paused", "malformed-call", "stream-breaks"])
def test_a_row_that_is_played_live_is_the_row(name: str) -> None:
    """One dialect of each outcome: what comes over the wire is read, judged and gated as in the table."""
    chosen = {(row.exchange.response.raw_stop_reason, row.judgement.stop.normalized, row.decision, row.dialect.api): row
              for row in table_rows(name) if isinstance(row, DialectRow)}
    for row in chosen.values():
        made = play_out(row_turn(row, Settings()))
        case = made.case
        first = case.recording.exchanges[0]
        assert first.response.raw_stop_reason == row.exchange.response.raw_stop_reason, row.name
        assert case.judgements[0].stop.normalized is row.judgement.stop.normalized, row.name
        assert [verdict.admission for verdict in case.verdicts[0]] == [
            verdict.admission for verdict in row.verdicts], row.name
        assert first.response.text == row.exchange.response.text, row.name


def test_a_row_of_a_variant_is_played_past_its_first_answer() -> None:
    (row,) = (row for row in table_rows("call-cut") if row.name == "openai_chat/vllm+empty")
    assert isinstance(row, DialectRow)
    made = play_out(row_turn(row, Settings()))
    assert made.trace.steps[-1].turn.terminal == "completed", "the call comes whole when it is asked for again"


def test_a_lie_that_a_policy_believes_is_told_as_a_cut() -> None:
    """The same cut call comes until a limit ends the turn: the advice is about the cut, not about the repetition."""
    row = next(row for row in table_rows("call-cut") if row.name == "openai_chat/vllm")
    assert isinstance(row, DialectRow)
    (turn,) = view(play_out(row_turn(row, Settings(policy=PI_PRESENCE)))).turns
    assert turn.verdict.word == "CALL HELD"
    assert ("; policy pi-presence runs such a call, here it was not run; this loop's limit max_identical_calls "
            "(4 of 3) ended the turn" in turn.verdict.sentence)
    assert turn.verdict.advice is not None
    assert turn.verdict.advice.text.startswith("raise max_tokens")


def test_a_scenario_runs_to_the_end_that_it_names_without_a_key() -> None:
    story = all_stories()["cut-call"]
    turn = scenario_turn(story, LiveOptions("openai_chat", ""), Settings())
    assert turn.start.server.key == ""
    assert [tool.name for tool in turn.start.request.tools] == ["write_file"]
    assert turn.start.server.base.startswith("http://127.0.0.1:")
    assert listens(turn.server.url)
    made = play_out(turn)
    assert made.trace.steps[-1].turn.terminal == story.ends == "completed"
    assert not listens(turn.server.url)
    turn.server.close()  # once more does nothing


def test_what_cannot_be_begun_leaves_no_server_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    urls = []
    made = "inspector.live.scripted.ScriptedServer"
    from inspector.live.scripted import ScriptedServer

    class NotingServer(ScriptedServer):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            urls.append(self.url)

    monkeypatch.setattr(made, NotingServer)
    with pytest.raises(LoopError):
        scenario_turn(all_stories()["text"], LiveOptions("openai_chat", "", assignments=["max_tokens=x"]), Settings())
    with pytest.raises(LoopError):
        scenario_turn(all_stories()["text"], LiveOptions("openai_chat", "", assignments=["max_tokens=0"]), Settings())
    assert not any(map(listens, urls))


@pytest.mark.parametrize("api", FORMATS)
def test_a_scenario_that_names_no_budget_runs_in_every_format(api: str) -> None:
    story = all_stories()["text" if wire(api).no_tools else "call"]
    assert play_out(scenario_turn(story, LiveOptions(api, ""), Settings())).trace.steps[-1].turn.terminal == "completed"


@pytest.mark.parametrize("api", [api for api in FORMATS if wire(api).no_tools])
def test_a_format_without_calls_plays_no_scenario_with_calls(api: str) -> None:
    assert api not in formats_of(all_stories()["call"])
    with pytest.raises(LoopError, match=f"{api} cannot say what happens in call"):
        scenario_turn(all_stories()["call"], LiveOptions(api, ""), Settings())


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_of_the_form_ends_as_it_says(name: str) -> None:
    story = all_stories()[name]
    api = formats_of(story)[0]
    made = play_out(scenario_turn(story, LiveOptions(api, ""), Settings()))
    assert made.trace.steps[-1].turn.terminal == story.ends_in.get(f"{api} stream", story.ends_in.get(api, story.ends))


@pytest.mark.parametrize("profile", ["vllm", "cohere"])
def test_it_behaves_as_a_server_whether_or_not_a_habit_of_it_is_known(profile: str) -> None:
    made = play_out(scenario_turn(all_stories()["cut-call"], LiveOptions("openai_chat", "", profile=profile),
                                  Settings()))
    first = made.case.recording.exchanges[0].response.raw_stop_reason
    assert first == ("tool_calls" if profile == "vllm" else "length")
    assert made.trace.steps[-1].turn.terminal == "completed"


def test_a_format_that_cannot_say_what_happens_is_refused_with_those_that_can() -> None:
    with pytest.raises(LoopError, match=r"openai_chat cannot say what happens in paused; .*anthropic_messages.* can"):
        scenario_turn(all_stories()["paused"], LiveOptions("openai_chat", ""), Settings())

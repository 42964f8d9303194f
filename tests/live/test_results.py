"""What answers the calls of a live run from a step: what was recorded for the very same call, and nothing else."""

from __future__ import annotations

import pytest

from inspector.live.answers import TurnResults, recorded_results
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.limits import Limits
from loop_core.turn.state import CallAnswer, NotRecorded, RunTools, ToolResults, Turn
from loop_core.turn.tools import Toolbox
from loop_core.values import Message, Request, Role, TextPart, ToolCall, ToolResultPart
from tests.scenes.live_branch import OSLO, ROME, read, with_a_call

SAID = Message(Role.USER, (TextPart("Hi"),))


def turn_with(*answered: tuple[ToolCall, str]) -> Turn:
    history = [SAID]
    for call, text in answered:
        history += [Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (ToolResultPart(call.id, call.name, text),))]
    return Turn("t", Request("openai_chat", (SAID,)))._replace(history=tuple(history), limits=Limits())


def ready(*calls: ToolCall) -> RunTools:
    return RunTools(tuple(Verdict(call, Admission.READY, "", "") for call in calls))


def test_the_results_of_a_turn_each_once(tmp_path) -> None:
    case = read(with_a_call("http://127.0.0.1:1", tmp_path / "s.har")).case
    found = recorded_results(case.recording.exchanges, 1)
    assert {name: [part.text for part in parts] for name, parts in found.items()} == {
        ("weather", '{"city": "Oslo"}'): ["snow"]}
    assert recorded_results(case.recording.exchanges, 3) == {}


def test_arguments_that_are_nested_too_deeply_have_no_result() -> None:
    deep = OSLO._replace(arguments="[" * 200_000)
    assert isinstance(TurnResults({}, None, 1).run(ready(deep), turn_with((deep, "snow"))), NotRecorded)


def test_equal_arguments_whatever_their_spelling_and_as_often_as_recorded() -> None:
    results = TurnResults({("weather", '{"city": "Oslo"}'): [ToolResultPart("a", "weather", "snow"),
                                                         ToolResultPart("b", "weather", "sleet")]}, None, 1)
    spaced = OSLO._replace(id="new", arguments=' {"city" :  "Oslo"}')
    first = results.run(ready(spaced), turn_with())
    assert isinstance(first, ToolResults)
    assert [(part.call_id, part.text) for part in first.results] == [("new", "snow")]
    second = results.run(ready(OSLO), turn_with((OSLO, "snow")))
    assert isinstance(second, ToolResults)
    assert second.results[0].text == "sleet"
    both = results.run(ready(OSLO, OSLO._replace(id="2")), turn_with())
    assert isinstance(both, ToolResults)
    assert [part.text for part in both.results] == ["snow", "sleet"]
    assert isinstance(results.run(ready(OSLO), turn_with((OSLO, "snow"), (OSLO, "sleet"))), NotRecorded)


@pytest.mark.parametrize("call", [ROME, OSLO._replace(name="climate")])
def test_another_call_ends_the_turn(call: ToolCall) -> None:
    results = TurnResults({("weather", '{"city": "Oslo"}'): [ToolResultPart("a", "weather", "snow")]}, None, 1)
    for batch in (ready(call), ready(OSLO, call)):
        found = results.run(batch, turn_with())
        assert isinstance(found, NotRecorded)
        assert f"a call of {call.name}" in found.why


def test_an_answer_that_the_machine_gave_fills_the_guard_as_in_every_other_run() -> None:
    refused = CallAnswer(Verdict(ROME, Admission.REJECTED, "", ""), ToolResultPart("r", "weather", "x" * 100), 1)
    results = TurnResults({("weather", '{"city": "Oslo"}'): [ToolResultPart("a", "weather", "snow")]}, None, 1)
    full = turn_with()._replace(limits=Limits(context_guard_chars=100))
    found = results.run(ready(OSLO)._replace(answers=(refused,)), full)
    assert isinstance(found, ToolResults)
    assert found.results[0].text.startswith("Left out: 4 characters")


def test_what_is_given_is_run_and_only_that() -> None:
    ran: list[object] = []
    given = Toolbox({"weather": lambda arguments: ran.append(arguments) or "sun"})
    results = TurnResults({}, given, 1)
    found = results.run(ready(OSLO), turn_with())
    assert isinstance(found, ToolResults)
    assert (found.results[0].text, len(ran)) == ("sun", 1)
    assert isinstance(results.run(ready(OSLO._replace(name="other")), turn_with()), NotRecorded)
    assert len(ran) == 1
    assert (results.has_any, TurnResults({}).has_any, TurnResults({}, Toolbox()).has_any) == (True, False, False)


def test_a_rejected_call_gets_its_error_and_is_not_run() -> None:
    verdict = Verdict(OSLO, Admission.REJECTED, "", "city is missing")
    answer = ToolResultPart(OSLO.id, OSLO.name, "Not run: city is missing", is_error=True)
    rejected = RunTools((), (CallAnswer(verdict, answer, 0),))
    found = TurnResults({}).run(rejected, turn_with())
    assert isinstance(found, ToolResults)
    assert (found.results[0].is_error, found.results[0].text) == (True, "Not run: city is missing")

"""How the calls of a batch are answered: by their tools, by hand, from a recording, or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inspector.live.answers import REFUSAL, Answers, CallDecision, Source, results_of
from loop_core.errors import CallerError
from loop_core.judge.classify import judge
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.costs import batch_of
from loop_core.turn.limits import Limits
from loop_core.turn.machine import begin
from loop_core.turn.policy import STRICT, Dispatch
from loop_core.turn.state import Evaluation, RunTools
from loop_core.turn.tools import Toolbox, ToolError
from loop_core.values import ChatResponse, Request, Stop, ToolCall

TURN, _ = begin("t", Request("openai_chat"))


def call(name: str, arguments: dict[str, Any], ident: str = "c") -> Verdict:
    made = ToolCall(ident, name, json.dumps(arguments), closed=True)
    return Verdict(made, Admission.READY, "gate.ready", "")


def replace_call(verdict: Verdict, **changes: Any) -> Verdict:
    return verdict._replace(call=verdict.call._replace(**changes))


def held_call(name: str) -> Verdict:
    return Verdict(ToolCall("h", name, '{"a": 1', closed=False), Admission.HELD, "gate.cut", "cut by the output limit")


def texts(answers: Answers, *verdicts: Verdict) -> list[tuple[str, bool]]:
    return [(part.text, part.is_error) for part in answers.run(RunTools(verdicts), TURN).results]


def batch(*verdicts: Verdict) -> RunTools:
    """The batch as the machine makes it for a loop that takes every call for runnable."""
    seen = Evaluation(ChatResponse("openai_chat"), judge(ChatResponse("openai_chat")), verdicts, None, Stop.TOOL_CALL)
    return batch_of(TURN._replace(evaluation=seen, policy=replace(STRICT, dispatch=Dispatch.PRESENT)))


def session(folder: Path, *calls: tuple[str, dict[str, Any], str, bool]) -> str:
    """A recording in which each of these calls was asked for and answered."""
    lines: list[dict[str, Any]] = [{"loop_inspector_session": 1}]
    for number, (name, arguments, text, is_error) in enumerate(calls):
        made = {"id": f"call_{number}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)}}
        message = {"role": "assistant", "content": None, "tool_calls": [made]}
        body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        lines += [
            {"type": "request", "id": f"r{number}", "api": "openai_chat",
             "body": {"model": "m", "messages": [{"role": "user", "content": f"ask {number}"}]}},
            {"type": "response", "request": f"r{number}", "status": 200},
            {"type": "bytes", "request": f"r{number}", "text": json.dumps(body)},
            {"type": "end", "request": f"r{number}", "end": "eof"},
            {"type": "tool_result", "request": f"r{number}", "call_id": f"call_{number}", "name": name, "text": text,
             "is_error": is_error}]
    path = folder / "results.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return str(path)


def test_what_is_not_decided_is_done_as_headless() -> None:
    answers = Answers(Toolbox({"weather": lambda arguments: f"sun in {arguments['city']}"}))
    assert texts(answers, call("weather", {"city": "Oslo"}), call("time", {})) == [
        ("sun in Oslo", False), ("Not run: there is no tool 'time'", True)]


def test_each_call_is_answered_as_it_was_decided() -> None:
    ran: list[object] = []
    answers = Answers(Toolbox({"weather": lambda arguments: ran.append(arguments) or "sun"}))  # type: ignore[func-returns-value]
    effect = RunTools((call("weather", {}), call("weather", {}), call("time", {}), call("time", {})))
    answers.decide(effect, 0, CallDecision(Source.REFUSED))
    answers.decide(effect, 2, CallDecision(Source.TYPED, "noon"))
    answers.decide(effect, 3, CallDecision(Source.TYPED, "no clock", is_error=True))
    made = answers.run(effect, TURN)
    assert [(part.text, part.is_error) for part in made.results] == [
        (REFUSAL, True), ("sun", False), ("noon", False), ("no clock", True)]
    assert len(ran) == 1
    assert [whence for _, whence in answers.last_batch] == [
        "refused by the operator", "run by its callable", "typed by the operator", "typed by the operator"]
    assert answers.decisions == {}, "the next batch is another"


@pytest.mark.parametrize("how", Source)
def test_no_operator_releases_a_held_call(how: Source, tmp_path: Path) -> None:
    ran: list[object] = []
    answers = Answers(Toolbox({"weather": lambda arguments: ran.append(arguments) or "sun"}),  # type: ignore[func-returns-value]
                      results_of(session(tmp_path, ("weather", {"a": 1}, "sun", False))))
    effect = batch(held_call("weather"), call("weather", {"a": 1}))
    assert answers.ways(effect, 0) == ()
    with pytest.raises(CallerError, match="weather is held: cut by the output limit"):
        answers.decide(effect, 0, CallDecision(how, "sun"))
    answers.decisions[0] = CallDecision(how, "sun")  # and not by the back door either
    assert answers.run(effect, TURN).results[0].text == "Not run: cut by the output limit"
    assert ran == []


def test_a_recording_answers_by_arguments_then_by_order(tmp_path: Path) -> None:
    path = session(tmp_path, ("weather", {"city": "Oslo"}, "rain", False), ("weather", {"city": "Rome"}, "sun", False),
                   ("weather", {"city": "Oslo"}, "snow", True), ("time", {}, "noon", False))
    answers = Answers(results=results_of(path))
    assert texts(answers, call("weather", {"city": "Rome"}), call("weather", {"city": "Oslo"}),
                 call("weather", {"city": "Oslo"})) == [("sun", False), ("rain", False), ("snow", True)]
    other = Answers(results=results_of(path))
    assert texts(other, call("weather", {"city": "Bonn"}), call("weather", {"city": "Kiel"}),
                 call("time", {"zone": "UTC"}), call("time", {"zone": "UTC"})) == [
        ("rain", False), ("sun", False), ("noon", False), ("Not run: there is no tool 'time'", True)]


def test_the_same_arguments_in_another_spelling_are_the_same_arguments(tmp_path: Path) -> None:
    path = session(tmp_path, ("weather", {"city": "Oslo"}, "rain", False), ("weather", {"city": "Oslo"}, "snow", False))
    spaced = replace_call(call("weather", {}), arguments='{ "city":"Oslo" }')
    answers = Answers(results=results_of(path))
    assert texts(answers, call("weather", {"city": "Oslo"}), spaced) == [("rain", False), ("snow", False)]
    shown = Answers(results=results_of(path))
    effect = RunTools((call("weather", {"city": "Oslo"}), spaced))
    assert [found[0].text for place in range(2) if (found := shown.recorded_result(effect, place))] == ["rain", "snow"]


def test_arguments_that_are_nested_too_deeply_are_compared_as_text(tmp_path: Path) -> None:
    path = session(tmp_path, ("weather", {"city": "Oslo"}, "rain", False))
    deep = replace_call(call("weather", {}), arguments="[" * 200_000)
    assert texts(Answers(results=results_of(path)), deep, deep) == [
        ("rain", False), ("Not run: there is no tool 'weather'", True)]


def test_what_is_shown_before_is_what_is_done(tmp_path: Path) -> None:
    path = session(tmp_path, ("weather", {"city": "Oslo"}, "rain", False), ("weather", {"city": "Oslo"}, "snow", False))
    answers = Answers(results=results_of(path))
    effect = RunTools((call("weather", {"city": "Oslo"}), call("weather", {"city": "Oslo"})))
    shown = [answers.recorded_result(effect, place) for place in range(2)]
    assert [found[0].text for found in shown if found] == ["rain", "snow"]
    assert [part.text for part in answers.run(effect, TURN).results] == ["rain", "snow"]


def test_a_recording_goes_before_the_tool_and_the_tool_can_be_chosen(tmp_path: Path) -> None:
    path = session(tmp_path, ("weather", {}, "rain", False))
    answers = Answers(Toolbox({"weather": lambda _: "sun"}), results_of(path))
    effect = RunTools((call("weather", {}),))
    assert answers.ways(effect, 0)[0] is Source.RECORDED
    answers.decide(effect, 0, CallDecision(Source.RUN))
    assert answers.run(effect, TURN).results[0].text == "sun"


def test_results_are_bounded_however_they_come() -> None:
    turn = TURN._replace(limits=Limits(max_tool_result_chars=100, context_guard_chars=150))
    answers = Answers()
    effect = RunTools((call("a", {}), call("b", {}), call("c", {})))
    for place in range(3):
        answers.decide(effect, place, CallDecision(Source.TYPED, "x" * 120))
    made = [part.text for part in answers.run(effect, turn).results]
    assert made[0] == "x" * 100 + "\n[cut: 100 of 120 characters]"
    assert made[1].endswith("of 120 characters]")
    assert made[2].startswith("Left out: 120 characters")


def test_a_tool_that_fails_says_so() -> None:
    def broken(_: object) -> str:
        raise ToolError("no line")

    assert texts(Answers(Toolbox({"a": broken})), call("a", {})) == [("Failed: no line", True)]


@pytest.mark.parametrize(("content", "said"), [
    (None, "No such file"), ("not a session", "text of no session format"),
    (json.dumps({"loop_inspector_session": 1}) + "\n", "the recording holds no tool result"),
])
def test_a_recording_without_results_is_one_line(content: str | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CallerError, match=said) as why:
        results_of(str(path))
    assert str(why.value).startswith("--results ")


def test_results_are_found_in_the_requests_that_carried_them() -> None:
    found = results_of("sample_sessions/01-cut-call-and-long-answer.session.jsonl")
    assert len(found) > 0

"""Running a batch: in order, stopped when the user speaks, refused calls answered, results bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from loop_core.judge.gate import Admission, Verdict, admit_all
from loop_core.turn.costs import batch_of
from loop_core.turn.limits import Limits, bound_result
from loop_core.turn.machine import begin
from loop_core.turn.state import Evaluation, RunTools, ToolResults, Turn
from loop_core.turn.tools import Toolbox, ToolError, until
from loop_core.values import CallKind, Message, Role, Stop, TextPart, Tool, ToolCall, ToolResultPart
from tests.scenes.rows import each_row
from tests.scenes.turns import (
    BAD,
    CUT,
    NOW,
    REQUEST,
    WRITE,
    ScriptedSource,
    answer,
    call,
    dispatches,
    drive,
    judgement_of,
    last,
    sends,
)

SAID = Message(Role.USER, (TextPart("wait"),))


def turn(limits: Limits | None = None) -> Turn:
    return begin("t", REQUEST, limits)[0]


def batch(*calls: ToolCall) -> RunTools:
    response, seen = answer(Stop.TOOL_CALL, *calls).response, judgement_of(Stop.TOOL_CALL)
    verdicts = admit_all(calls, seen, (WRITE, NOW, Tool("shell", kind=CallKind.CUSTOM)))
    return batch_of(turn()._replace(evaluation=Evaluation(response, seen, verdicts, None, Stop.TOOL_CALL)))


class Log:
    """Tools that remember what they were given."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, Any]] = []

    def tool(self, name: str, answer: str = "ok") -> Callable[[Any], str]:
        def run(arguments: Any) -> str:
            self.ran.append((name, arguments))
            return answer

        return run

    def box(self, **more: Any) -> Toolbox:
        return Toolbox({name: self.tool(name) for name in ("write", "now", "shell")}, **more)


def texts(ran: ToolResults) -> list[str]:
    return [part.text for part in ran.results]


def test_calls_run_in_order_with_their_parsed_arguments() -> None:
    log = Log()
    custom = call("ls", "shell", "c3", kind=CallKind.CUSTOM)
    ran = log.box().run(batch(call(), call("", "now", "c2"), custom), turn())
    assert log.ran == [("write", {"path": "a.txt"}), ("now", {}), ("shell", "ls")]
    assert [(part.call_id, part.name, part.text, part.is_error) for part in ran.results] == [
        ("c1", "write", "ok", False), ("c2", "now", "ok", False), ("c3", "shell", "ok", False),
    ]
    assert ran.steering == ()


def test_a_rejected_call_gets_its_validation_error_and_its_siblings_run() -> None:
    log = Log()
    ran = log.box().run(batch(call(BAD, id="c1"), call(id="c2")), turn())
    assert log.ran == [("write", {"path": "a.txt"})]
    assert ran.results[0].is_error
    assert ran.results[0].text.startswith("Not run: path: ")
    assert not ran.results[1].is_error


@pytest.mark.parametrize("word", [Admission.HELD, Admission.REJECTED])
def test_a_call_that_was_not_released_is_not_run_even_in_the_list_of_those_that_were(word: Admission) -> None:
    log = Log()
    ran = log.box().run(RunTools((Verdict(call(CUT), word, "gate.incomplete", "cut"),)), turn())
    assert log.ran == []
    assert [(part.text, part.is_error) for part in ran.results] == [("Not run: cut", True)]


def test_a_tool_that_does_not_exist_or_fails_answers_with_an_error() -> None:
    def fails(arguments: Any) -> str:
        raise ToolError("disk full")

    ran = Toolbox({"write": fails}).run(batch(call(), call("{}", "now")), turn())
    assert texts(ran) == ["Failed: disk full", "Not run: there is no tool 'now'"]
    assert all(part.is_error for part in ran.results)


def test_any_exception_in_a_tool_is_an_error_result_with_its_type_and_the_others_run() -> None:
    def broken(arguments: Any) -> str:
        raise KeyError("x")

    ran = Toolbox({"write": broken, "now": lambda _: "noon"}).run(batch(call(), call("{}", "now", "c2")), turn())
    assert [(part.text, part.is_error) for part in ran.results] == [("Failed: KeyError: 'x'", True), ("noon", False)]


def test_an_exception_whose_words_cannot_be_read_is_named_by_its_type() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def fail(arguments: Any) -> str:
        raise MuteError

    assert texts(Toolbox({"write": fail}).run(batch(call()), turn())) == ["Failed: MuteError: <exception str() failed>"]


@pytest.mark.parametrize(("made", "text"), [
    ("report-\udce9.txt", "report-\ufffd.txt"), ("\ud83d\ude00 \ud83d", "😀 \ufffd"),
    ({"name": "\udfff"}, '{"name": "\ufffd"}'),
])
def test_half_a_character_in_a_result_is_replaced_since_providers_refuse_it(made: Any, text: str) -> None:
    assert texts(Toolbox({"write": lambda _: made}).run(batch(call()), turn())) == [text]


def test_an_interrupt_is_no_result() -> None:
    def interrupt(arguments: Any) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Toolbox({"write": interrupt}).run(batch(call()), turn())


class Colour(Enum):
    RED = "red"


@dataclass
class Spot:
    x: int
    colour: Colour = Colour.RED
    token: str = field(default="", repr=False)


@dataclass
class Spoken:
    number: int

    def __str__(self) -> str:
        return "one"


class Row(BaseModel):
    at: Any
    token: str = Field(repr=False)
    key: str = Field(exclude=True)


@each_row(("made", "text"), [
    ({"städte": ["Oslo"], "n": 1}, '{"städte": ["Oslo"], "n": 1}'),
    ([1, None, True], "[1, null, true]"),
    (None, "null"),
    (12.5, "12.5"),
    ("as it is", "as it is"),
    ({"at": Path("/tmp/a")}, '{"at": "/tmp/a"}'),
    (b"caf\xc3\xa9 \xff", "café \ufffd"),
    (bytearray(b"ab"), "ab"),
    ({"out": b"caf\xc3\xa9 \xff"}, '{"out": "café \ufffd"}'),
    ({"out": bytearray(b"ab")}, '{"out": "ab"}'),
    ([{3}, frozenset((4,)), set()], "[[3], [4], []]"),
    (Colour.RED, '"red"'),
    ([Spot(1, token="hidden")], '[{"x": 1, "colour": "red"}]'),
    (Spoken(1), '"one"'),
    ({"row": Row(at=Spot(1, token="hidden"), token="hidden", key="hidden")},
     '{"row": {"at": {"x": 1, "colour": "red"}}}'),
])
def test_what_a_tool_returns_is_sent_as_json_unless_it_is_text(made: Any, text: str) -> None:
    (part,) = Toolbox({"write": lambda _: made}).run(batch(call()), turn()).results
    assert (part.text, part.is_error) == (text, False)


async def coroutine_of_nobody() -> str:
    return "later"


def test_what_json_cannot_hold_is_an_error_result() -> None:
    endless: list[Any] = []
    endless.append(endless)
    (part,) = Toolbox({"write": lambda _: endless}).run(batch(call()), turn()).results
    assert part.is_error
    assert part.text.startswith("Failed: ValueError: ")


@pytest.mark.parametrize(("made", "kind"), [
    (coroutine_of_nobody, "coroutine"), (lambda: (number for number in (1, 2)), "generator"),
])
def test_what_was_never_run_is_no_result(made: Any, kind: str) -> None:
    """A decorated coroutine function looks like a plain one: the model would read a place in memory."""
    for value in (made(), {"rows": made()}):
        (part,) = Toolbox({"write": lambda _, value=value: value}).run(batch(call()), turn()).results
        assert part == ToolResultPart(part.call_id, "write",
                                      f"Failed: TypeError: what the tool returned did nothing yet: {kind}", True)


def test_a_tool_whose_own_task_was_cancelled_has_failed() -> None:
    async def cancel() -> str:
        raise asyncio.CancelledError

    ran = Toolbox({"write": lambda _: asyncio.run(cancel())}).run(batch(call()), turn())
    assert texts(ran) == ["Failed: CancelledError: "]


# -- steering --------------------------------------------------------------------------------------------------------


def speaks_after(count: int) -> Callable[[], Sequence[Message]]:
    asked = iter(range(1, 100))
    return lambda: (SAID,) if next(asked) == count else ()


def test_steering_is_checked_between_calls_and_the_skipped_ones_are_told() -> None:
    """pi's agent loop: `getSteeringMessages` after each tool; `skipToolCall` for the rest."""
    log = Log()
    ran = log.box(steering=speaks_after(1)).run(batch(call(), call(id="c2"), call("{}", "now", "c3")), turn())
    assert [name for name, _ in log.ran] == ["write"]
    assert [part.call_id for part in ran.results] == ["c1", "c2", "c3"]
    assert texts(ran)[1:] == ["Skipped: the user said something first."] * 2
    assert [part.is_error for part in ran.results] == [False, True, True]
    assert ran.steering == (SAID,)


def test_what_is_said_after_the_last_call_is_not_lost() -> None:
    ran = Log().box(steering=speaks_after(2)).run(batch(call(), call(id="c2")), turn())
    assert texts(ran) == ["ok", "ok"]
    assert ran.steering == (SAID,)


def test_steering_through_the_loop_reaches_the_next_request() -> None:
    box = Log().box(steering=speaks_after(1))

    class Live(ScriptedSource):
        run_tools = staticmethod(box.run)

    trace = drive([], source=Live([answer(Stop.TOOL_CALL, call(), call(id="c2")), answer(Stop.END_TURN, "x")]))
    assert [message.role for message in last(trace).history] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
    assert last(trace).history[-1] == SAID


# -- bounds ----------------------------------------------------------------------------------------------------------


def test_one_result_is_bounded_and_says_so() -> None:
    long = ToolResultPart("c1", "write", "x" * 250)
    cut = bound_result(long, Limits(max_tool_result_chars=100), 0)
    assert cut.text == "x" * 100 + "\n[cut: 100 of 250 characters]"
    fits = ToolResultPart("c1", "write", "x" * 100, is_error=True)
    assert bound_result(fits, Limits(max_tool_result_chars=100), 0) == fits


def test_all_results_of_a_turn_share_the_context() -> None:
    limits = Limits(max_tool_result_chars=100, context_guard_chars=150)
    box = Toolbox({"write": lambda _: "x" * 90})
    ran = box.run(batch(call(), call(id="c2"), call(id="c3")), turn(limits))
    assert texts(ran)[0] == "x" * 90
    assert texts(ran)[1] == "x" * 60 + "\n[cut: 60 of 90 characters]"
    assert texts(ran)[2] == "Left out: 90 characters; the tool results of this turn have reached their limit."


def test_the_share_is_the_turns_not_the_rounds() -> None:
    box = Toolbox({"write": lambda _: "x" * 90})

    class Live(ScriptedSource):
        run_tools = staticmethod(box.run)

    events = [answer(Stop.TOOL_CALL, call(f'{{"path": "{n}"}}')) for n in range(3)]
    source = Live([*events, answer(Stop.END_TURN, "x")])
    end = last(drive([], Limits(max_tool_result_chars=100, context_guard_chars=150), source=source))
    found = [message.results[0].text for message in end.history if message.results]
    assert found[0] == "x" * 90
    assert found[1].startswith("x" * 60 + "\n[cut")
    assert found[2].startswith("Left out")


def test_a_turn_that_forbids_calls_runs_none_and_tells_the_model() -> None:
    log = Log()
    request = replace(REQUEST, tool_choice="none")
    source = ScriptedSource([answer(Stop.TOOL_CALL, call()), answer(Stop.END_TURN, "well")])
    source.run_tools = log.box().run  # type: ignore[method-assign]
    trace = drive([], request=request, source=source)
    assert (log.ran, last(trace).terminal) == ([], "completed")
    results = [part for message in last(trace).history for part in message.results]
    assert [(part.is_error, "tool_choice none" in part.text) for part in results] == [(True, True)]


def test_no_repair_allows_calls_that_the_caller_forbade() -> None:
    request = replace(REQUEST, tool_choice="none")
    trace = drive([answer(Stop.TOOL_CALL, call(CUT)), answer(Stop.TOOL_CALL, call()), answer(Stop.END_TURN, "well")],
                  request=request)
    assert {send.tool_choice for send in sends(trace)} == {"none"}
    assert [effect.released for effect in dispatches(trace)] == [()]


class Counting(Toolbox):
    """A runner with a state and arguments of its own."""

    def __init__(self, name: str) -> None:
        super().__init__({})


def test_only_a_plain_runner_is_replaced_by_one_that_stops() -> None:
    plain, derived = Toolbox({}), Counting("mine")
    assert until(plain, lambda: True).stopped()
    assert not plain.stopped()
    assert until(derived, lambda: True) is derived

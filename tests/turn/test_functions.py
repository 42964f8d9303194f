"""Plain functions as tools: what the model is told of them, and what they are called with."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from math import inf, nan
from typing import Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, RootModel
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import TypedDict, Unpack

from loop_core.errors import CallerError
from loop_core.judge.arguments import schema_problems, takes_no_arguments
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.tools import Toolbox, ToolError, declare, declare_function
from loop_core.values import ToolCall
from tests.scenes.rows import each_row


@dataclass
class Place:
    city: str
    country: str = "NO"


def weather(place: Place, day: date, unit: Literal["C", "F"] = "C", *, hours: list[int] | None = None) -> object:
    """The weather at a place.

    Forecasts reach ten days.
    """
    return {"city": place.city, "country": place.country, "year": day.year, "unit": unit, "hours": hours}


def call_answer(arguments: dict[str, Any]) -> tuple[str, bool]:
    """What the model reads of a call that the gate released."""
    _, runs = declare([weather])
    call = ToolCall("c1", "weather", json.dumps(arguments), True)
    part = Toolbox(runs).run_call(Verdict(call, Admission.READY, "gate.ready", ""))
    return part.text, part.is_error


def test_the_declaration_is_the_signature_and_the_docstring() -> None:
    (tool,), runs = declare([weather])
    assert list(runs) == [tool.name] == ["weather"]
    assert tool.description == "The weather at a place.\n\nForecasts reach ten days."
    assert tool.schema is not None
    assert tool.schema["type"] == "object"
    assert sorted(tool.schema["required"]) == ["day", "place"]
    assert sorted(tool.schema["properties"]) == ["day", "hours", "place", "unit"]
    assert tool.schema["properties"]["day"]["format"] == "date"
    assert tool.schema["properties"]["unit"]["enum"] == ["C", "F"]


def test_the_function_gets_what_its_annotations_say() -> None:
    text, failed = call_answer({"place": {"city": "Oslo"}, "day": "2026-11-22", "hours": [6, 12]})
    assert not failed
    assert text == '{"city": "Oslo", "country": "NO", "year": 2026, "unit": "C", "hours": [6, 12]}'


def test_a_partial_under_a_name_is_a_tool() -> None:
    def convert(amount: float, rate: float, *, unit: str) -> str:
        return f"{amount * rate:g} {unit}"

    tool, run = declare_function(partial(convert, 10, unit="NOK"), "convert")
    assert tool.schema is not None
    assert sorted(tool.schema["properties"]) == ["rate", "unit"]
    assert run({"rate": 2}) == "20 NOK"
    with pytest.raises(CallerError, match="square: a tool is a plain function, not builtin_function_or_method"):
        declare_function(math.sqrt, "square")
    with pytest.raises(CallerError, match="twin: a tool is a plain function, not Twin: write one with def"):
        declare_function(type("Twin", (), {"__call__": lambda self: ""})(), "twin")


def test_the_model_is_told_which_argument_is_no_such_value() -> None:
    text, failed = call_answer({"place": {"city": "Oslo"}, "day": "soon"})
    assert failed
    assert text.startswith("Failed: day: ")
    assert "\n" not in text
    assert "http" not in text


def test_a_program_ends_properly_while_a_tool_that_was_given_up_runs() -> None:
    """The tool's thread dies with the program. It must not die inside compiled code, which aborts the whole process."""
    code = """if True:
        import threading, time
        from loop_core.turn.tools import declare
        began = threading.Event()
        def tool(seconds: float) -> None:
            began.set()
            while True:
                time.sleep(seconds)
        _, runs = declare([tool])
        threading.Thread(target=runs["tool"], args=({"seconds": 0.001},), daemon=True).start()
        began.wait()
    """
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_an_error_of_pydantic_inside_a_function_is_its_own_and_no_wrong_argument() -> None:
    class Person(BaseModel):
        name: str

    def parse(text: str) -> object:
        return Person.model_validate_json(text)

    _, runs = declare([parse])
    call = ToolCall("c1", "parse", json.dumps({"text": "{}"}), True)
    part = Toolbox(runs).run_call(Verdict(call, Admission.READY, "gate.ready", ""))
    assert part.is_error
    assert part.text.startswith("Failed: ValidationError: 1 validation error for Person")


def test_what_a_function_raises_is_its_own() -> None:
    def ask_somebody() -> str:
        raise ToolError("nobody is here")

    def divide(by: int) -> float:
        return 1 / by

    _, runs = declare([ask_somebody, divide])
    box = Toolbox(runs)
    for name, arguments, said in (("ask_somebody", {}, "Failed: nobody is here"),
                                  ("divide", {"by": 0}, "Failed: ZeroDivisionError: division by zero")):
        verdict = Verdict(ToolCall("c", name, json.dumps(arguments), True), Admission.READY, "gate.ready", "")
        assert box.run_call(verdict).text == said


async def later() -> None:
    """Not yet."""


def rows() -> Iterator[int]:
    yield 1


async def rows_later() -> AsyncIterator[int]:
    yield 1


class Nameless:
    """Something that can be called, whose name is no text."""

    __name__ = 5  # type: ignore[assignment]

    def __call__(self) -> str:
        return ""


def positional(place: str, /) -> str:
    return place


class Rule(TypedDict):
    name: str


def unpacked(**rule: Unpack[Rule]) -> str:
    return rule["name"]


def untyped(place: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


@each_row(("function", "why"), [
    (lambda: "", "a tool is a function with a name of letters, digits, - and _"),
    (partial(weather, unit="F"), "a tool is a function with a name of letters, digits, - and _: write one with def "),
    (7, "7: a tool is a function"),
    (Nameless(), "a tool is a function with a name"),
    (later, "later: a tool is a plain function, and this is a coroutine function: write one with def that runs it"),
    (rows, "rows: a tool is a plain function, and this is a generator function"),
    (Place, "Place: a tool is a plain function, and this is a class: write one with def that makes it"),
    (rows_later, "rows_later: a tool is a plain function, and this is a generator function"),
    (positional, "positional: a call passes its arguments by name: expected no positional-only parameter"),
    (untyped, "untyped: its parameters cannot be described to a model: name 'Nowhere'"),
    (unpacked, "unpacked: .* to a model: the members of an unpacked TypedDict have to be parameters"),
])
def test_what_cannot_be_a_tool_is_refused_by_name(function: Any, why: str) -> None:
    with pytest.raises(CallerError, match=why) as refused:
        declare([function])
    assert "\n" not in str(refused.value)


def test_a_member_that_a_dataclass_lacks_is_refused_and_not_dropped() -> None:
    (tool,), _ = declare([weather])
    unknown = {"place": {"city": "Oslo", "contry": "SE"}, "day": "2026-11-22"}
    assert any("contry" in problem for problem in schema_problems(tool, unknown))
    text, failed = call_answer(unknown)
    assert failed
    assert text == "Failed: place: Additional properties are not allowed ('contry' was unexpected)"


class Limit(BaseModel):
    """A model as most are written: pydantic ignores members that it lacks."""

    most: int = 0


class Rules(BaseModel):
    limits: list[Limit] = []
    name: Rule | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    most: int = 0


class ByName(RootModel[dict[str, Limit]]):
    """Limits by name."""


@pydantic_dataclass
class Pair:
    most: int = 0


class Colour(Enum):
    RED = "red"
    FIRST = 1


def tool_answer(kind: Any, value: Any) -> tuple[str, bool, tuple[str, ...]]:
    """What a tool with a parameter of this kind answers for a value, whether it failed, and what the gate says."""
    def take(given: Any) -> str:
        return f"ran: {given!r}"

    take.__annotations__["given"] = kind
    (tool,), runs = declare([take])
    call = ToolCall("c1", "take", json.dumps({"given": value}), True)
    part = Toolbox(runs).run_call(Verdict(call, Admission.READY, "gate.ready", ""))
    return part.text, part.is_error, schema_problems(tool, {"given": value})


@each_row(("kind", "value", "place"), [
    (Limit, {"most": 1, "least": 2}, "given: "),
    (list[Limit], [{"most": 1}, {"least": 2}], "given/1: "),
    (dict[str, Limit], {"a": {"least": 2}}, "given/a: "),
    (Rules, {"limits": [{"least": 2}]}, "given/limits/0: "),
    (ByName, {"a": {"least": 2}}, "given/a: "),
    (Pair, {"least": 2}, "given: "),
    (Limit | None, {"least": 2}, "given: "),
    (Rules, {"name": {"name": "n", "rank": 1}}, "given/name: "),
    # -- a value of another type
    (date, "1704067200", "given: "), (date, 1704067200, "given: "), (datetime, "1704067200", "given: "),
    (datetime, 1.5, "given: "), (list[date], ["2026-01-02", "1704067200"], "given/1: "),
    (dict[date, int], {"1704067200": 1}, "given: "), (bool, "yes", "given: "), (bool, 1, "given: "),
    (int, "3", "given: "), (int, 3.5, "given: "), (int, True, "given: "), (float, "nan", "given: "),
    (Limit, {"most": "3"}, "given/most: "), (list[int], "12", "given: "), (UUID, 5, "given: "),
    (Decimal, True, "given: "), (Colour, True, "given: "), (Colour, "1", "given: "), (Literal["a"], "b", "given: "),
    (Literal[1, 2], True, "given: "), (timedelta, 90, "given: "), (str, 3, "given: "),
])
def test_what_does_not_fit_the_annotation_is_refused_with_its_place(kind: Any, value: Any, place: str) -> None:
    text, failed, problems = tool_answer(kind, value)
    assert failed
    assert text.startswith(f"Failed: {place}")
    assert problems, "the gate refuses it too"


@each_row(("kind", "value", "made"), [
    (date, "2026-01-02", date(2026, 1, 2)), (datetime, "2026-01-02 03:04", datetime(2026, 1, 2, 3, 4)),
    (dict[date, int], {"2026-01-02": 1}, {date(2026, 1, 2): 1}),
    (int, 3.0, 3), (Decimal, "1.50", Decimal("1.50")), (Colour, "red", Colour.RED),
    (UUID, "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
    (Open, {"most": 1, "least": 2}, Open(most=1, least=2)),  # type: ignore[call-arg]
    (ByName, {"a": {"most": 2}}, ByName({"a": Limit(most=2)})),
])
def test_the_same_value_in_the_spelling_of_json_is_taken(kind: Any, value: Any, made: Any) -> None:
    assert tool_answer(kind, value) == (f"ran: {made!r}", False, ())


@each_row("text", [
    "2026-01-02T03:04:05.25+02:00", "2026-01-02t03:04z", "2026-01-02_03:04", "2026-01-02",
])
def test_servers_with_a_grammar_can_write_a_whole_date(text: str) -> None:
    """llama.cpp (common/json-schema-to-grammar.cpp) refuses a request with a pattern that does not begin with ^ and end
    with $, and a grammar allows nothing behind what a pattern matches."""
    def take(given: datetime) -> str:
        return ""

    (tool,), _ = declare([take])
    pattern = tool.schema["properties"]["given"]["pattern"]
    assert (pattern[0], pattern[-1]) == ("^", "$")
    assert re.fullmatch(pattern, text)


def test_an_object_with_dates_as_names_says_what_its_members_are_without_patterns_of_names() -> None:
    """llama.cpp and Gemini know none, and read an object that allows nothing else as one without members."""
    def take(days: dict[date, int]) -> str:
        return ""

    (tool,), _ = declare([take])
    days = tool.schema["properties"]["days"]
    assert days["additionalProperties"] == {"type": "integer"}
    assert "patternProperties" not in days


def test_empty_arguments_are_not_enough_for_a_function_that_takes_any_name() -> None:
    def label(**labels: Any) -> str:
        return ""

    def refresh() -> str:
        return ""

    (free, none), _ = declare([label, refresh])
    assert not takes_no_arguments(free)
    assert schema_problems(free, {"team": "platform"}) == ()
    assert takes_no_arguments(none)


def test_one_function_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(CallerError, match="expected a list of functions, not function"):
        declare(weather)  # type: ignore[arg-type]


@pytest.mark.parametrize("default", [inf, nan, object(), b"\xff"])
def test_a_default_that_json_cannot_hold_is_left_out(default: Any, recwarn: pytest.WarningsRecorder) -> None:
    def wait(seconds: float = default) -> str:
        return str(seconds)

    (tool,), runs = declare([wait])
    assert tool.schema is not None
    assert tool.schema["properties"]["seconds"] == {"title": "Seconds", "type": "number"}
    assert runs["wait"]({}) == str(default)
    assert not recwarn.list


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(CallerError, match="weather: two tools have this name"):
        declare([weather, weather])

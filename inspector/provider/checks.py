"""Checks requests like real servers: finds the first member that a server of the format would refuse, and describes
the error.

The checks of each format are in its package (`loop_core.wire.demands`). The last part applies a request's stop strings
to the text of an answer, and checks the text against the request's JSON schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from inspector.report.lines.spans import one_line
from loop_core.json_parser import JsonPath, from_json
from loop_core.judge.arguments import is_usable, schema_problems
from loop_core.values import Request, ResponsePart, TextPart, Tool
from loop_core.wire import wire
from loop_core.wire.demands import STEP, Body, Member, PathStyle, RequestError, Spellings, dots, inside, plain

_NAMED = re.compile(r"/deployments/|/agents/|/publishers/")
"""Matches paths that name the model or the agent (Azure, Mistral, Vertex)."""


def members_in_path(path: str) -> frozenset[str]:
    """The members that the path of a request provides: the model, if it names one."""
    return frozenset({"model"}) if _NAMED.search(path) else frozenset()


def check(api: str, body: Body, *, optional: frozenset[str] = frozenset(), path: str = "") -> None:
    """Checks a request to this path like a server of this format; the members in `optional` may be missing. Raises
    `RequestError` if the server would refuse it."""
    serving = wire(api).serving
    demands = next((each for pattern, each in serving.demands_of if pattern.search(path)), serving.demands)
    fields = [field for field in demands.checks if field.path not in optional]
    found = first_flaw(body, fields, demands.spellings)
    for holder, names in demands.names.items():
        found = found or unknown_member(body, holder, names)
    if found is not None:
        raise _member_error(found, demands.style)
    for condition in demands.conditions:
        error = condition.find(body) if condition.name not in optional else None
        if error is not None:
            raise error


# -- members ---------------------------------------------------------------------------------------------------------


class Flaw(StrEnum):
    """The kind of error in a member."""

    MISSING = "missing"
    TYPE = "type"
    VALUE = "value"
    LOW = "low"
    HIGH = "high"
    EMPTY = "empty"
    LONG = "long"
    UNKNOWN = "unknown"
    UNSERVED = "unserved"
    """The member requests something that a scripted answer cannot give, so the request is refused."""


@dataclass(frozen=True, slots=True)
class BadMember:
    """An invalid member, and its error."""

    flaw: Flaw
    where: JsonPath
    field: Member
    value: Any = None


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int,  # not isinstance: in Python a bool is an int
    "number": lambda value: type(value) in (int, float),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}
"""JSON type -> the function that decides whether a value has this type."""
_ABSENT = object()


def first_flaw(body: Mapping[str, Any], fields: Iterable[Member], spellings: Spellings) -> BadMember | None:
    """The first invalid member, in the order of the rows."""
    for field in fields:
        for where, value in _places(body, STEP.findall(field.path), (), spellings):
            flaw = _flaw(field, value)
            if flaw is not None:
                return BadMember(flaw, where, field, None if value is _ABSENT else value)
    return None


def unknown_member(body: Mapping[str, Any], path: str, names: Iterable[str]) -> BadMember | None:
    """The first member of the object at `path` whose name is none of these."""
    known_names = frozenset(names)
    for where, value in _places(body, STEP.findall(path), (), plain):
        if isinstance(value, Mapping):
            odd = next((str(name) for name in value if name not in known_names), None)
            if odd is not None:
                return BadMember(Flaw.UNKNOWN, (*where, odd), Member(path), value[odd])
    return None


def _places(value: Any, steps: Sequence[str], where: JsonPath, spellings: Spellings) -> Iterator[tuple[JsonPath, Any]]:
    """Every place to which a path leads, and its value."""
    if not steps:
        yield where, value
        return
    step, rest = steps[0], steps[1:]
    if step.startswith("["):
        items = enumerate(value) if isinstance(value, list) else [(None, value)] if step != "[]" else []
        for number, item in items:
            if step == "[]" or _fits(item, step[1:-1]):
                yield from _places(item, rest, where if number is None else (*where, number), spellings)
        return
    if not isinstance(value, Mapping):
        return
    name = next((name for name in spellings(step) if name in value), None)
    if name is not None:
        yield from _places(value[name], rest, (*where, name), spellings)
    elif not rest:
        yield (*where, step), _ABSENT


def _fits(item: Any, condition: str) -> bool:
    if not isinstance(item, Mapping):
        return False
    if condition.startswith("!"):
        return condition[1:] not in item
    name, _, value = condition.partition("=")
    return bool(item.get(name) == value)


def _flaw(field: Member, value: Any) -> Flaw | None:
    if value is _ABSENT:
        return Flaw.MISSING if field.required else None
    # Clients write null for an unset option.
    if value is None:
        return Flaw.TYPE if field.required else None
    kinds = field.types.split("|") if field.types else ()
    if kinds and not any(TYPES[kind](value) for kind in kinds):
        return Flaw.TYPE
    if field.only is not None and value not in field.only:
        return Flaw.UNSERVED
    if field.among and isinstance(value, str) and value not in field.among:
        return Flaw.VALUE
    size = len(value) if isinstance(value, list) else value if type(value) in (int, float) else None
    if size is not None and field.least is not None and size < field.least:
        return Flaw.EMPTY if isinstance(value, list) else Flaw.LOW
    # also for NaN, which Python reads in JSON
    if size is not None and field.most is not None and not size <= field.most:
        return Flaw.LONG if isinstance(value, list) else Flaw.HIGH
    return None


# -- in words --------------------------------------------------------------------------------------------------------


def flaw_in_words(member: BadMember) -> str:
    """The description of an error that all formats share."""
    field, value = member.field, one_line(repr(member.value), 80)
    kinds = " or ".join(field.types.split("|"))
    words = {
        Flaw.MISSING: f"expected {kinds or 'a value'}, but it is missing",
        Flaw.TYPE: f"expected {kinds}, but it is {_kind(member.value)}",
        Flaw.VALUE: f"expected one of {', '.join(field.among)}, but it is {value}",
        Flaw.LOW: f"expected {field.least} or more, but it is {value}",
        Flaw.HIGH: f"expected {field.most} or less, but it is {value}",
        Flaw.EMPTY: f"expected {field.least} element or more, but it is empty",
        Flaw.LONG: f"expected {field.most} elements or less",
        Flaw.UNKNOWN: "unknown field",
        Flaw.UNSERVED: "this server does not support it",
    }[member.flaw]
    return f"{words}; {field.hint}" if field.hint else words


def _kind(value: Any) -> str:
    return "null" if value is None else next(name for name, fits in TYPES.items() if fits(value))


def bracket_path(where: JsonPath) -> str:
    """A path in a document with its indices in brackets: `messages[0].role`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in where).lstrip(".")


CODES: Mapping[Flaw, str] = {
    Flaw.MISSING: "missing_required_parameter",
    Flaw.TYPE: "invalid_type",
    Flaw.VALUE: "invalid_value",
    Flaw.EMPTY: "empty_array",
    Flaw.LONG: "array_above_max_length",
    Flaw.UNSERVED: "unsupported_parameter",
}
"""Kind of error -> OpenAI's code for it."""
BOUNDS: Mapping[Flaw, str] = {Flaw.LOW: "{}_below_min_value", Flaw.HIGH: "{}_above_max_value"}
"""Kind of error of a number -> OpenAI's code for it; `{}` stands for the number's type."""


def _code(member: BadMember) -> str | None:
    if member.field.code and member.flaw is Flaw.UNSERVED:
        return member.field.code
    if member.flaw in BOUNDS:
        return BOUNDS[member.flaw].format("integer" if member.field.types == "integer" else "decimal")
    return CODES.get(member.flaw)


def _member_error(member: BadMember, style: PathStyle) -> RequestError:
    if style is PathStyle.DOTS:
        return RequestError(f"{dots(member.where)}: {flaw_in_words(member)}")
    at = bracket_path(member.where)
    if style is PathStyle.BRACKETS:
        return RequestError(f"{at}: {flaw_in_words(member)}", param=at)
    return RequestError(f"'{at}': {flaw_in_words(member)}", code=_code(member), param=at)


# -- demands of a request on the text --------------------------------------------------------------------------------


def stop_strings(request: Request) -> tuple[str, ...]:
    """The strings that end the answer."""
    serving = wire(request.api).serving
    stop_value = inside(request.extra, *serving.stops, spellings=serving.demands.spellings) if serving.stops else None
    found = [stop_value] if isinstance(stop_value, str) else stop_value if isinstance(stop_value, list) else []
    return tuple(each for each in found if isinstance(each, str) and each)


def until_stop(parts: Sequence[ResponsePart], strings: Sequence[str]) -> tuple[tuple[ResponsePart, ...], str | None]:
    """The parts up to the first of these strings in the text, and that string; reasoning is not searched."""
    for number, part in enumerate(parts):
        if type(part) is not TextPart:
            continue
        found = [(at, string) for string in strings if (at := part.text.find(string)) >= 0]
        if found:
            at, string = min(found)  # the first one in the text, whatever their order in the request
            kept_parts = (TextPart(part.text[:at]),) if at else ()
            return (*parts[:number], *kept_parts), string
    return tuple(parts), None


def match_json(request: Request, text: str, name: str) -> None:
    """Checks that the text of a scenario is valid under the JSON schema of the request. Raises `RequestError` if it is
    not, or the schema is not a JSON schema."""
    shape = wire(request.api).serving.json_shape(request.extra)
    if shape is None:
        return
    schema = shape.schema
    tool = Tool("answer", schema, dialect=shape.dialect) if isinstance(schema, Mapping) else None
    if schema is not None and (tool is None or not is_usable(tool)):
        raise RequestError(f"{shape.at}: the schema is not a JSON schema", param=shape.at)
    if not text:  # an answer of calls alone has no text to check
        return
    try:
        value = from_json(text.encode())
    except ValueError:
        raise RequestError(f"{shape.at}: the scenario {name} answers with a text that is not JSON",
                           param=shape.at) from None
    wrong = schema_problems(tool, value) if tool is not None else ()
    if wrong:
        raise RequestError(f"{shape.at}: the scenario {name} answers with JSON that the schema does not permit: "
                           f"{wrong[0][:200]}", param=shape.at)

"""Runs a batch of calls: in order, with bounded results, and stopped when the user writes.

Only the released calls of the effect are run; the other calls have ready-made answers. If a tool fails, its result is
an error; a call that is skipped gets a result that says so; a result that would fill the context is cut, with a note
(pi's agent loop, appendix: order, steering, result truncation, context guard).
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache, partial, wraps
from typing import Any, Protocol

from loop_core.errors import CallerError, LoopError, words_of
from loop_core.judge.arguments import schema_problems
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.history import tool_result
from loop_core.turn.limits import bound_result
from loop_core.turn.state import Event, RunTools, ToolResults, Turn
from loop_core.values import Message, Tool, ToolResultPart


class ToolError(LoopError):
    """The error that a tool raises to report a failure in its own words: the model reads them, and the turn goes on.

    Any other exception becomes an error result as well, with its type before its message.
    """


ToolFunction = Callable[[Any], Any]
"""A function that runs a tool. It receives the parsed arguments (or the text of a free-form call) and returns what the
model reads: a text or bytes as they are, any other value as JSON."""


class ToolRunner(Protocol):
    """Runs a batch of calls."""

    def run(self, effect: RunTools, turn: Turn) -> Event:
        """The results, or `NotRecorded` where a call of the batch has none."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """A runner of Python functions, with a function that returns messages of the user."""

    tools: Mapping[str, ToolFunction] = field(default_factory=dict)
    steering: Callable[[], Sequence[Message]] = tuple
    """Returns the messages that the user wrote since its last call. It is called after each tool call."""
    stopped: Callable[[], bool] = bool
    """Returns whether the turn was given up. It is called before each tool call: then no further call is begun."""

    def run(self, effect: RunTools, turn: Turn) -> ToolResults:
        """Runs the released calls in order; every call of the batch gets a result."""
        results: list[ToolResultPart] = []
        steering: tuple[Message, ...] = ()
        used = effect.chars_before(turn.spend)
        for verdict in effect.released:
            # Later calls were planned before the user spoke, and may be the very thing that the user objects to. Each
            # still needs a result: a provider refuses a history with a call that has none.
            skipped = "the user said something first" if steering else "the turn was ended" if self.stopped() else ""
            if skipped:
                results.append(tool_result(verdict.call, f"Skipped: {skipped}.", is_error=True))
                continue
            part = bound_result(self.run_call(verdict), turn.limits, used)
            used += part.size
            results.append(part)
            steering = tuple(self.steering())
        return ToolResults(effect.all_results(results), steering)

    def run_call(self, verdict: Verdict) -> ToolResultPart:
        """The unbounded result of one released call; an error if its tool fails or does not exist."""
        call = verdict.call
        if verdict.admission is not Admission.READY:  # the gate decides, wherever the effect comes from
            return tool_result(call, f"Not run: {verdict.why}", is_error=True)
        tool = self.tools.get(call.name)
        if tool is None:
            return tool_result(call, f"Not run: there is no tool {call.name!r}", is_error=True)
        try:
            return tool_result(call, _whole(_text(tool(verdict.arguments))))
        # The only broad `except` of the engine that ends an error: a tool is the caller's code and may raise anything,
        # and the model receives the error as a result.
        except BaseException as why:
            # `asyncio.CancelledError` is no `Exception`, but raised by a plain function it cancels nothing: the task of
            # the caller would seem to be cancelled, and a task group would hide it.
            if not isinstance(why, Exception) and type(why).__name__ != "CancelledError":
                raise
            return tool_result(call, _whole(f"Failed: {words_of(why)}"), is_error=True)


def until(runner: ToolRunner, stopped: Callable[[], bool]) -> ToolRunner:
    """The same runner, which begins no further call once `stopped` says so; a runner of another kind is returned
    unchanged. So is one of a derived class, which may have a state that a copy would not share."""
    if type(runner) is not Toolbox:
        return runner
    return replace(runner, stopped=lambda: stopped() or runner.stopped())


def _whole(text: str) -> str:
    """The text with U+FFFD in place of each lone surrogate (a file name that is not UTF-8 has some). A provider refuses
    JSON with a lone surrogate, and so would refuse every later request with this history."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(result: Any) -> str:
    if isinstance(result, (bytes, bytearray)):  # the output of a process
        return result.decode("utf-8", "replace")
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=_spell)


def _spell(value: Any) -> Any:
    """What stands in JSON for a value that is none: the members of an object, or its text, as of a date or a path.
    Raises `TypeError` if the value is work that was never done, such as a coroutine, which a decorated function may
    return."""
    if inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(f"what the tool returned did nothing yet: {type(value).__name__}")
    form = next((form for kinds, form in _FORMS if isinstance(value, kinds)), _members)
    return form(value)


_FORMS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((bytes, bytearray), lambda value: value.decode("utf-8", "replace")),
    ((set, frozenset), list),
    (Enum, lambda value: value.value),
)
"""Kind of value -> what stands for it in JSON."""


def _members(value: Any) -> Any:
    """The members of a dataclass or of a pydantic model, without those that its `repr` hides; the text of another
    value."""
    if is_dataclass(value) and type(value).__str__ is object.__str__:
        return {each.name: getattr(value, each.name) for each in fields(value) if each.repr}
    if hasattr(type(value), "model_dump"):
        # Not what `model_dump` returns: it would hold the hidden members of the objects inside.
        hidden = {name for name, each in type(value).model_fields.items() if each.exclude or not each.repr}
        return {name: member for name, member in value if name not in hidden}
    return str(value)


# -- Plain Python functions as tools: the declaration comes from the signature and the docstring ---------------------
# pydantic makes the schema and reads the arguments; it is imported when the first function is declared.


Function = Callable[..., Any]
"""A Python function as a tool. It is called with the arguments by name and returns what the model reads: a text, or a
value that JSON can hold."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # OpenAI API reference, function.name; Anthropic takes 128
"""The names of tools that every provider accepts."""


def declare(functions: Iterable[Function]) -> tuple[tuple[Tool, ...], dict[str, ToolFunction]]:
    """Declares functions as tools: the declarations for `Request.tools`, and the functions by name for `Toolbox`.
    Raises `CallerError` if one of them cannot be a tool, or two have one name."""
    if not isinstance(functions, Iterable):
        raise CallerError(f"tools: expected a list of functions, not {type(functions).__name__}")
    tools: list[Tool] = []
    runs: dict[str, ToolFunction] = {}
    for function in functions:
        name = getattr(function, "__name__", None)
        # A lambda is called `<lambda>`, and a partial has no name.
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise CallerError(f"{function!r}: a tool is a function with a name of letters, digits, - and _: write one "
                              "with def that calls this")
        if name in runs:
            raise CallerError(f"{name}: two tools have this name")
        tool, runs[name] = declare_function(function, name)
        tools.append(tool)
    return tuple(tools), runs


def declare_function(function: Function, name: str) -> tuple[Tool, ToolFunction]:
    """The declaration of one function under a name, and the callable that runs it. The callable converts arguments to
    the annotated types: a date for a date, a dataclass for an object. Raises `CallerError` if the function cannot be a
    tool."""
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    # Its call returns a coroutine that is never awaited: the tool would seem to succeed and do nothing.
    if inspect.iscoroutinefunction(function):
        raise CallerError(f"{name}: a tool is a plain function, and this is a coroutine function: write one with "
                          "def that runs it with asyncio.run")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise CallerError(f"{name}: a tool is a plain function, and this is a generator function")
    if isinstance(function, type):
        raise CallerError(f"{name}: a tool is a plain function, and this is a class: write one with def that makes it")
    written = inspect.unwrap(_inner(function))
    if not (inspect.isfunction(written) or inspect.ismethod(written)):
        raise CallerError(f"{name}: a tool is a plain function, and this is none: write one with def that calls this")
    # A member that a class lacks would be dropped in silence: of `dryrun=true` for `dry_run` the tool would never hear.
    config = ConfigDict(extra="forbid")
    try:
        # A function is a type to pydantic.
        adapter: TypeAdapter[Any] = TypeAdapter(_arguments_of(function), config=config)  # type: ignore[arg-type]
        schema: dict[str, Any] = adapter.json_schema(schema_generator=_schema_generator())
    except (PydanticUserError, TypeError, ValueError, NameError) as why:
        raise CallerError(f"{name}: {str(why).splitlines()[0]}") from None
    # pydantic gives a list schema to positional-only parameters, and providers accept an object alone.
    if schema.get("type") != "object":
        raise CallerError(f"{name}: its parameters have to be named")
    # pydantic says nothing of `**arguments` without a type, and then empty arguments would mean that there are none.
    schema.setdefault("additionalProperties", True)
    tool = Tool(name, schema, inspect.getdoc(function) or "")
    return tool, _run(_inner(function), adapter, tool)


def _inner(function: Function) -> Function:
    """The function that takes all arguments: of a partial the one that it calls."""
    return function.func if isinstance(function, partial) else function


def _arguments_of(function: Function) -> Function:
    """A function with the same signature that returns its arguments. pydantic calls this one: were the tool called from
    inside pydantic's compiled code, a program that ends while an abandoned tool runs would be aborted."""

    if isinstance(function, partial):
        return partial(_arguments_of(function.func), *function.args, **function.keywords)

    @wraps(function)
    def arguments_of(*words: Any, **named: Any) -> Any:
        return words, named

    return arguments_of


@cache
def _schema_generator() -> Any:
    """The class that makes schemas. It leaves out defaults that JSON cannot hold, such as an object or an infinite
    number, and refuses parameters that pydantic describes wrongly. Its schemas refuse what pydantic would take in
    silence: a member that a class lacks, and a number of seconds for a date."""
    from pydantic.errors import PydanticInvalidForJsonSchema
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_core import PydanticSerializationError

    class Generator(GenerateJsonSchema):
        ignored_warning_kinds = frozenset(("skipped-choice", "non-serializable-default"))  # type: ignore[assignment]

        def arguments_schema(self, schema: Any) -> Any:
            # pydantic describes each of them as such an object, so that no call could fit.
            if schema.get("var_kwargs_mode") == "unpacked-typed-dict":
                raise PydanticInvalidForJsonSchema("the members of an unpacked TypedDict have to be parameters")
            return super().arguments_schema(schema)

        def model_schema(self, schema: Any) -> Any:
            return _closed(super().model_schema(schema))

        def dataclass_schema(self, schema: Any) -> Any:
            return _closed(super().dataclass_schema(schema))

        def typed_dict_schema(self, schema: Any) -> Any:
            return _closed(super().typed_dict_schema(schema))

        def dict_schema(self, schema: Any) -> Any:
            # llama.cpp and Gemini know no patterns of names, and would allow an object without members alone.
            written = super().dict_schema(schema)
            for pattern, values in written.pop("patternProperties", {}).items():
                written |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
            return written

        def date_schema(self, schema: Any) -> Any:
            return {**super().date_schema(schema), "pattern": _DAY}

        def datetime_schema(self, schema: Any) -> Any:
            return {**super().datetime_schema(schema), "pattern": _DAY}

        def encode_default(self, dft: Any) -> Any:
            value = super().encode_default(dft)
            try:
                json.dumps(value, allow_nan=False)
            except ValueError as why:
                raise PydanticSerializationError(str(why)) from None
            return value

    return Generator


_DAY = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt_ ][-+.,:0-9Zz]+)?$"
"""Matches a day, with or without a time. llama.cpp refuses a pattern that does not cover the whole text, and servers
with a grammar write nothing behind it."""


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that names members. It allows these members alone, unless it says otherwise (pydantic's `extra`)."""
    return {"additionalProperties": False, **schema} if "properties" in schema else schema


def _run(function: Function, adapter: Any, declared: Tool) -> ToolFunction:
    """A callable that runs a function with a call's arguments; wrong ones become an error of one line for the model."""
    from pydantic_core import ArgsKwargs, ValidationError

    def run(arguments: Any) -> Any:
        wrong = schema_problems(declared, arguments)  # pydantic would make an int of "3", and a bool of "yes"
        if wrong:
            raise ToolError("; ".join(wrong))
        try:
            words, named = adapter.validate_python(ArgsKwargs((), arguments))
        except ValidationError as why:
            problems = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in why.errors())
            raise ToolError(problems) from None
        return function(*words, **named)

    return run

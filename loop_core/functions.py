"""Plain Python functions as tools: the declaration comes from the signature and the docstring.

pydantic makes the schema and reads the arguments; it is imported when the first function is declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from loop_core.errors import CallerError
from loop_core.tools import Run, ToolError
from loop_core.values import Tool

Function = Callable[..., Any]
"""A tool: it is called with the arguments by name and returns what the model reads: a text, or what JSON
can hold."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes for the name of a tool."""


def declare(functions: Iterable[Function]) -> tuple[tuple[Tool, ...], dict[str, Run]]:
    """The declarations of some functions, and what runs them by their names, for `Request.tools` and `Toolbox`.

    Raises:
        CallerError: one of them cannot be a tool, or two have one name.
    """
    tools: list[Tool] = []
    runs: dict[str, Run] = {}
    for function in functions:
        name = getattr(function, "__name__", "")
        if not _NAME.fullmatch(name):
            raise CallerError(f"{function!r}: a tool is a function with a name of letters, digits, - and _")
        if name in runs:
            raise CallerError(f"{name}: two tools have this name")
        tool, runs[name] = declared(function, name)
        tools.append(tool)
    return tuple(tools), runs


def declared(function: Function, name: str) -> tuple[Tool, Run]:
    """The declaration of one function under a name, and what runs it.

    What runs it gives the function what its annotations say: a date for a date, a dataclass for an object.

    Raises:
        CallerError: the function cannot be a tool.
    """
    import inspect

    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    if inspect.iscoroutinefunction(function):
        raise CallerError(f"{name}: a tool is a plain function, and this is a coroutine function")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(function)  # type: ignore[arg-type]  # a function is a type to pydantic
        schema: Mapping[str, Any] = adapter.json_schema()
    except (PydanticUserError, TypeError, ValueError, NameError) as why:
        raise CallerError(f"{name}: {str(why).splitlines()[0]}") from None
    if schema.get("type") != "object":
        raise CallerError(f"{name}: its parameters have to be named")
    return Tool(name, schema, inspect.getdoc(function) or ""), _run(adapter)


def _run(adapter: Any) -> Run:
    """Calls a function with its arguments; the model is told in one line what it was not given as declared."""
    from pydantic_core import ArgsKwargs, ValidationError

    def run(arguments: Any) -> Any:
        try:
            return adapter.validate_python(ArgsKwargs((), arguments))
        except ValidationError as why:
            said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in why.errors())
            raise ToolError(said) from None

    return run

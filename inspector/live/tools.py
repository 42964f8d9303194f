"""Tools of a live turn: declarations from a file, or Python callables by the name of their module.

A declaration may hold a `result`: what every call of it is answered with. Callables are run.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from inspector.config import bounds
from inspector.live.opening import json_file
from loop_core.errors import CallerError
from loop_core.turn.tools import Run, declared
from loop_core.values import Tool

Made = tuple[tuple[Tool, ...], Mapping[str, Run]]


def tools_of(given: str) -> Made:
    """The declared tools, and those of them that can be run; `given` is a file or MODULE:ATTR.

    Raises:
        CallerError: there is no such file, module or attribute, or what is there are no tools.
    """
    module, colon, name = given.partition(":")
    if colon and not Path(given).exists() and all(word.isidentifier() for word in module.split(".")):
        return _callables(given, module, name)
    value = json_file(given, "--tools")
    items = value.get("tools") if isinstance(value, Mapping) else value
    if not isinstance(items, list):
        raise CallerError(f"--tools {given}: expected a JSON list of tools")
    found = [_declared(given, item) for item in _flat(items)]
    return tuple(tool for tool, _ in found), {tool.name: run for tool, run in found if run is not None}


def _flat(items: Iterable[Any]) -> Iterable[Any]:
    """Gemini's lists of functions taken apart."""
    for item in items:
        inner = item.get("functionDeclarations") if isinstance(item, Mapping) else None
        if isinstance(inner, list):
            yield from inner
        else:
            yield item


def _declared(given: str, item: Any) -> tuple[Tool, Run | None]:
    """A tool in any provider's form, or in the plain one: name, description, parameters."""
    inner = item
    if isinstance(item, Mapping):
        inner = next((item[key] for key in ("function", "toolSpec") if isinstance(item.get(key), Mapping)), item)
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str) or not name:
        raise CallerError(f"--tools {given}: a tool without a name")
    schema = next((inner[key] for key in ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
                   if isinstance(inner.get(key), Mapping)), None)
    if schema is not None and isinstance(schema.get("json"), Mapping):
        schema = schema["json"]
    described, result = inner.get("description"), item.get("result")
    tool = Tool(name, schema, described if isinstance(described, str) else "")
    return tool, None if result is None else lambda arguments: result


def _callables(given: str, module: str, name: str) -> Made:
    bounds.check_tools(given)
    sys.path.insert(0, "")  # as `python -m` finds modules beside the work at hand
    try:
        found = importlib.import_module(module)
    except ImportError as why:
        raise CallerError(f"--tools {given}: {why}") from None
    finally:
        sys.path.remove("")
    value = getattr(found, name, None)
    named: dict[str, Any] = {}
    if isinstance(value, Mapping):
        named = {str(key): item for key, item in value.items()}
    elif callable(value):
        named = {_name(value): value}
    elif isinstance(value, (list, tuple)):
        named = {_name(item): item for item in value}
    if not named or not all(callable(item) for item in named.values()):
        raise CallerError(f"--tools {given}: expected a callable, a list of them, or names and callables")
    try:
        made = {key: declared(item, key) for key, item in named.items()}
    except CallerError as why:
        raise CallerError(f"--tools {given}: {why}") from None
    return tuple(tool for tool, _ in made.values()), {key: run for key, (_, run) in made.items()}


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", "tool"))

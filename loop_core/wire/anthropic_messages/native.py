"""What a message says about its end beside the stop reason, as flat words, and back again.

`stop_details`, `container` and `context_management` are objects; a response keeps words. Paths join with dots, strings
stay as they are, anything else becomes its JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.wire.jsontext import compact

_JSON = frozenset({"stop_details.fallback_has_prefill_claim", "container.skills", "context_management.applied_edits"})
"""Words that are JSON and not strings (anthropic 2.12.0: RefusalStopDetails, Container, ContextManagementResponse)."""


def flatten(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every word below `value`, with its dotted path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(f"{name}.{key}", inner)
    elif isinstance(value, str):
        yield name, value
    elif value is not None:
        yield name, compact(value)


def unflatten(native: Mapping[str, str], name: str) -> str | None:
    """The JSON of the value called `name`, put together from its words; None where there are none."""
    if name in native:
        return compact(native[name])
    members: dict[str, str] = {}
    for word in native:
        if word.startswith(name + "."):
            key = word[len(name) + 1 :].split(".")[0]
            path = f"{name}.{key}"
            members[key] = native[word] if word == path and path in _JSON else unflatten(native, path) or "null"
    return "{" + ",".join(f"{compact(key)}:{text}" for key, text in members.items()) + "}" if members else None

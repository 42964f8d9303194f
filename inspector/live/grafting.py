"""The body of a request that was recorded, with nothing changed in it but what was altered. Pure.

A format's reader and writer lose little, but a recorded body was taken by its server as it stood: what both of them
make of it unchanged is left as it was recorded, whatever its spelling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SPELLINGS: tuple[tuple[str, ...], ...] = (
    ("max_tokens", "max_completion_tokens", "max_output_tokens"),
    ("maxOutputTokens", "max_output_tokens"),
    ("generationConfig", "generation_config"),
    ("toolConfig", "tool_config"),
)
"""Names under which servers take the same field; a changed one is written where it was recorded."""


def grafted(recorded: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded body with what differs between `before` and `after`: what its request was read and written to
    again, and what is asked now."""
    made = dict(recorded)
    for name in [*before, *(name for name in after if name not in before)]:
        if name in before and name in after and before[name] == after[name]:
            continue
        places = _places(name, recorded)
        if name not in after:
            for place in places:
                made.pop(place, None)
            continue
        for place in places or (name,):
            made[place] = _value(recorded.get(place), before.get(name), after[name])
    return made


def _places(name: str, recorded: Mapping[str, Any]) -> list[str]:
    """Where a field was recorded."""
    if name in recorded:
        return [name, *(other for group in SPELLINGS if name in group for other in group
                        if other in recorded and other != name and recorded[other] == recorded[name])]
    return list(dict.fromkeys(other for group in SPELLINGS if name in group for other in group if other in recorded))


def _value(recorded: Any, before: Any, after: Any) -> Any:
    if isinstance(recorded, Mapping) and isinstance(after, Mapping):
        return grafted(recorded, before if isinstance(before, Mapping) else {}, after)
    if _list(recorded) and _list(before) and _list(after):
        same = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other),
                    min(len(before), len(after)))
        if same == len(before):
            return [*recorded, *after[same:]]
        if len(recorded) == len(before):
            return [*recorded[:same], *after[same:]]
    return after


def _list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))

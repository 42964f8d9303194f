"""What a rule about a whole request is, and what rules of several formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from inspector.provider.errors import RequestError

Body = Mapping[str, Any]


class Rule(NamedTuple):
    """A rule that no single member breaks."""

    name: str
    find: Callable[[Body], RequestError | None]
    source: str
    """Where it is known from."""


def items(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a list, with their numbers."""
    for number, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield number, item


def inside(value: Any, *names: str) -> Any:
    """The member at the end of these names; None where one is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def listed(ids: Iterable[str]) -> str:
    """Ids in a message, the first few."""
    names = [name[:80] for name in ids]
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")

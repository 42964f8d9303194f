"""Spans and metric points as plain values; nothing here knows OpenTelemetry's own packages. Times are nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from loop_core.frozen import field, frozen

Attribute = str | int | float | bool | tuple[str, ...]
Attributes = Mapping[str, Attribute]


class Kind(StrEnum):
    """On which side of a call a span stands."""

    INTERNAL = "internal"
    CLIENT = "client"


@frozen
class Happened:
    """Something at one moment of a span."""

    name: str
    at: int
    attributes: Attributes = field(default_factory=dict)


@frozen
class Span:
    """One operation. Those of a turn are a trace; the turn's own comes first."""

    name: str
    kind: Kind
    start: int
    """Since the epoch."""
    end: int
    attributes: Attributes
    parent: int | None = None
    """The place of the span that it belongs to, in the same sequence; None for a turn's own."""
    events: tuple[Happened, ...] = ()
    error: str | None = None
    """Why it is no success, in words of ours; None where it is one."""
    seed: bytes = b""
    """What the ids of a trace are made of; empty but for a turn's own."""


@frozen
class Point:
    """One measurement of an instrument of `names.INSTRUMENTS`."""

    name: str
    value: int | float
    attributes: Attributes


def given(attributes: Mapping[str, Attribute | None]) -> dict[str, Attribute]:
    """The attributes that have a value: what is not known is absent, never empty."""
    return {name: value for name, value in attributes.items() if value is not None and value not in ("", ())}

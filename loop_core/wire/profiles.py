"""Who speaks a wire format: what is known of a server, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from loop_core.errors import CallerError
from loop_core.values import Evidence
from loop_core.wire import FORMATS, wire
from loop_core.wire.base import Mapped


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    apis: tuple[str, ...] = ()
    words: Mapping[str, Mapped] = field(default_factory=dict)
    reasoning_under_cap: bool = True
    prefill: str = "none"
    native_fields: tuple[str, ...] = ("native_finish_reason",)
    context_size: int | None = None
    lies: tuple[str, ...] = ()


class Chosen(NamedTuple):
    profile: Profile
    evidence: tuple[Evidence, ...]


GENERIC = Profile("generic", tuple(FORMATS))


def choose(api: str, url: str = "", headers: Any = (), body: Any = None, model: str | None = None) -> Chosen:
    return Chosen(GENERIC, (Evidence("profile.generic"),))


def named(name: str) -> Profile:
    if name != "generic":
        raise CallerError(f"unknown profile {name!r}")
    return GENERIC


def native_word(word: str) -> Mapped | None:
    for api in FORMATS:
        for key, row in wire(api).STOP_REASONS.items():
            if str(key).casefold() == word.casefold():
                return row
    return None

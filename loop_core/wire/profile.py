"""What is known of one server that speaks a wire format: the shape of a profile, and nothing about any server.

The rows are in `servers`, choosing one is in `profiles`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from loop_core.wire.base import StopRow


class Prefill(StrEnum):
    """How a server can be made to go on from the text that a response already has."""

    NONE = "none"
    """It cannot, or that is not known: ask in a message."""
    PLAIN = "plain"
    """An assistant message at the end of the history."""
    PREFIX = "prefix"
    """The same with `prefix: true` on it."""
    PARTIAL = "partial"
    """The same with `partial: true` on it."""
    CONTINUE_FINAL_MESSAGE = "continue_final_message"
    """The same with `continue_final_message: true` and `add_generation_prompt: false` in the request."""


class BodyMark(NamedTuple):
    """A value of the body (or of the first event of a stream) that gives a server away."""

    path: tuple[str | int, ...]
    pattern: re.Pattern[str] = re.compile("")
    """Searched in the value's text (JSON text where it is no string); the default asks only that the key is there."""


def mark(*path: str | int, like: str = "") -> BodyMark:
    """A mark at this path, whose text holds the pattern."""
    return BodyMark(path, re.compile(like))


@dataclass(frozen=True, slots=True)
class Profile:
    """One server, or one kind of server, with what it is known by and what it is known for."""

    name: str
    apis: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    """Host names, each with its subdomains."""
    urls: tuple[re.Pattern[str], ...] = ()
    """Searched in `host:port/path` where a host name is not enough."""
    headers: tuple[str, ...] = ()
    """Lower-case names of response headers; one that ends in `*` is a prefix; `name=value` asks for a value too."""
    body: tuple[BodyMark, ...] = ()
    ports: tuple[int, ...] = ()
    """Ports that the server listens on by default; weaker than what its body says."""
    models: tuple[re.Pattern[str], ...] = ()
    """Models that practically only this server has; the weakest sign."""
    words: Mapping[str, StopRow] = field(default_factory=dict)
    """Stop words of its own; they go before the format's table."""
    reasoning_under_cap: bool = False
    """Whether thinking counts against the output cap, so that usage at the cap proves a cut; False where unknown."""
    cap_source: str = "not known"
    """Why `reasoning_under_cap` is what it is."""
    prefill: Prefill = Prefill.NONE
    prefill_models: tuple[tuple[re.Pattern[str], Prefill], ...] = ()
    """Models with another prefill than the server's; the first that fits."""
    echoes: bool | None = None
    """Whether the answer repeats the prefill; None where that is not known."""
    cap_field: str | None = None
    """How the output cap is named in a chat request, where that is not `max_tokens`."""
    stream_usage: bool = True
    """Whether a streamed chat request may ask for its usage (`stream_options`)."""
    native_fields: tuple[str, ...] = ("native_finish_reason",)
    """Fields that carry the word of the provider behind a router, or of the engine; they may only tighten, so that the
    one that routers share is read whoever answers."""
    at_cap: Mapping[str, str] = field(default_factory=dict)
    """Format -> the end-of-turn word that it says over an answer that the output cap cut."""
    truncated_flag: str | None = None
    """A field that says that the context was full, not the budget."""
    context_size: int | None = None
    """Tokens of prompt and output together; of the model that was chosen for, None where unknown."""
    contexts: tuple[tuple[re.Pattern[str], int], ...] = ()
    """Models whose context size is documented."""
    lies: tuple[str, ...] = ()
    """What it is known to say wrongly, each with its source."""

"""Facts and the bytes they were read from: which there are, what each says, what a range of bytes became."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from inspector.report.lines.spans import Line, Role, Span, joined, safe
from inspector.sessions.provenance import FactRead, Provenance
from loop_core.values import ChatResponse, ToolCall

VALUE_SHOWN = 40
"""Characters of a fact's value that are shown."""
HINT: Line = (
    Span(". ", Role.KEY), Span("next fact  ", Role.DIM), Span(", ", Role.KEY), Span("fact before: ", Role.DIM),
    Span("the bytes that each was read from", Role.DIM),
)
NONE: Line = (Span("no fact was read from these bytes", Role.DIM),)


class Picked(NamedTuple):
    """A fact that is looked at, and which of the readings that made it."""

    fact: str
    reading: int = 0


def next_fact(found: Provenance, picked: Picked | None, by: int) -> Picked | None:
    """The next or previous fact, round the end; None where there is none."""
    facts = found.facts
    if not facts:
        return None
    if picked is None or picked.fact not in facts:
        return Picked(facts[0 if by > 0 else -1])
    return Picked(facts[(facts.index(picked.fact) + by) % len(facts)])


def next_reading(found: Provenance, picked: Picked, by: int) -> Picked:
    """The next or previous reading of the same fact, round the end."""
    return Picked(picked.fact, (picked.reading + by) % len(found.by_fact[picked.fact]))


def readings_in(found: Provenance, start: int, end: int) -> list[FactRead]:
    """What the bytes from `start` to `end` became, in the order of the bytes."""
    last = bisect_left(found.by_start, end, key=lambda read: read.start)
    inside: list[FactRead] = []
    index = last - 1
    while index >= 0 and found.reach[index] > start:
        if found.by_start[index].end > start:
            inside.append(found.by_start[index])
        index -= 1
    return inside[::-1]


def picked_of(found: Provenance, read: FactRead) -> Picked:
    """A reading as what is looked at."""
    return Picked(read.fact, found.by_fact[read.fact].index(read))


def next_of(found: Provenance, reads: Sequence[FactRead], picked: Picked | None) -> Picked:
    """The reading of these after the one that is looked at, round the end; the first where it is none of them."""
    every = [picked_of(found, read) for read in reads]
    return every[(every.index(picked) + 1) % len(every)] if picked in every else every[0]


# -- in lines --------------------------------------------------------------------------------------------------------


def fact_line(found: Provenance, picked: Picked, response: ChatResponse) -> Line:
    """The fact that is looked at: its value, and where the reading stands."""
    facts, reads = found.facts, found.by_fact[picked.fact]
    read = reads[picked.reading]
    number = f"{picked.reading + 1:,} of {len(reads):,} slice{'' if len(reads) == 1 else 's'}"
    again = [(Span("said again", Role.WARN),)] if read.again else []
    value = value_of(response, picked.fact)
    shown = () if value is None else (Span(" = ", Role.DIM), safe(value, Role.STRONG, VALUE_SHOWN))
    return joined([
        (Span(f"fact {facts.index(picked.fact) + 1} of {len(facts)}: ", Role.DIM), safe(picked.fact, Role.KEY), *shown),
        (Span(f"bytes {read.start:,}–{read.end:,}"),), (Span(number),), *again,
    ])


def range_note(reads: Sequence[FactRead], start: int, end: int) -> str:
    """What a range of bytes became, in one short line."""
    names = list(dict.fromkeys(read.fact for read in reads))
    where = f"bytes {start:,}–{end:,}" if end - start > 1 else f"byte {start:,}"
    return f"{where} became {', '.join(names)}" if names else f"{where} became no fact"


_CALL = re.compile(r"(tool_calls|server_calls)\[(\d+)\]\.(id|name|arguments)")
_SAYS: Mapping[str, Callable[[ChatResponse], str | None]] = {
    "stop_reason": lambda response: response.raw_stop_reason,
    "text": lambda response: response.text,
    "reasoning": lambda response: response.reasoning_content,
    "refusal": lambda response: response.refusal,
    "id": lambda response: response.id,
    "model": lambda response: response.model,
    "error": lambda response: response.error.message if response.error else None,
}


def value_of(response: ChatResponse, fact: str) -> str | None:
    """What a fact says, by its name."""
    say = _SAYS.get(fact)
    if say is not None:
        return say(response)
    owner, _, name = fact.partition(".")
    if owner == "usage":
        count = getattr(response.usage, name, None)
        return None if count is None else f"{count:,}"
    match = _CALL.fullmatch(fact)
    if match is None:
        return None
    calls: Sequence[ToolCall] = response.tool_calls if match[1] == "tool_calls" else response.server_calls
    value = getattr(calls[int(match[2])], match[3]) if int(match[2]) < len(calls) else None
    return value if isinstance(value, str) else None

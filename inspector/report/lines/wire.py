"""The bytes of a response with the facts that were read from them, and its request, in the forms of the tab Wire.

The bytes that gave the stop reason are marked in every form of the body. The framing of the wire format splits the body
once, when a view of it is first opened.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from inspector.report.facts import ResponseFacts
from inspector.report.lines.body_slices import BODY_FORMS, JsonLines, holds_json
from inspector.report.lines.diff import MOST_SHOWN, message_lines, part_words
from inspector.report.lines.glyphs import WIRE_FORMS, forms_line
from inspector.report.lines.slices import Hex, Range, Slices
from inspector.report.lines.spans import (
    Line,
    LineSheet,
    Span,
    Tone,
    count_of,
    field,
    join_groups,
    one_line,
    paragraphs,
    safe,
)
from inspector.report.sentences import format_name
from inspector.report.times_and_costs import time_phrases
from inspector.sessions.evidence_places import value_place
from inspector.sessions.provenance import FactRead, Provenance
from inspector.sessions.reasons import ABSENT
from inspector.sessions.recording import Exchange
from loop_core.values import At, ChatResponse, Evidence, ExchangePart, Role, ToolCall

FACT_LINE = 2
"""The index of the line in the head that shows the selected fact."""


def wire(facts: ResponseFacts, mode: str) -> LineSheet:
    """The sheet of one response in one of `WIRE_FORMS`."""
    exchange = facts.exchange
    if mode == "request":
        return request_sheet(facts)
    if not exchange.recorded:
        return LineSheet([*_head(facts, mode, ""), (Span("the body was not recorded", Tone.WARN),)])
    marks = evidence_ranges(exchange, facts.evidence)
    tail: Line = (Span(f"{'':>9} ", Tone.DIM), Span(f"end of body: {count_of(exchange.size, 'byte')}", Tone.DIM))
    if mode == "hex":
        return Hex(_head(facts, mode, ""), exchange.body, marks, tail, FACT_LINE)
    slices, what = BODY_FORMS[mode](exchange)
    is_json = holds_json(exchange) and (mode != "raw" or b"\0" not in exchange.body[:64])  # no binary frames
    return Slices(_head(facts, mode, what), exchange.body, slices, marks, tail, FACT_LINE, is_json)


def _head(facts: ResponseFacts, mode: str, what: str) -> list[Line]:
    exchange = facts.exchange
    status = "" if exchange.response.http_status is None else f"HTTP {exchange.response.http_status}"
    parts = [(Span(facts.name, Tone.WARN if facts.is_made else Tone.STRONG),), (safe(format_name(exchange)),)]
    parts += [(Span(each),) for each in (status, what) if each]
    note = OF_ROWS if exchange.recorder is not None else HINT if exchange.recorded else NONE
    lines: list[Line] = [join_groups(parts), forms_line(WIRE_FORMS, mode), note]
    times = time_phrases(exchange)
    if times:
        lines.append((Span("times ", Tone.DIM), *join_groups([(safe(each),) for each in times])))
    for evidence in facts.evidence:
        lines.append((Span("read ", Tone.DIM), safe(evidence.rule, Tone.KEY),
                      Span(f" at {place(evidence.at)}", Tone.DIM)))
    return [*lines, ()]


def place(at: At | None) -> str:
    """A place in words."""
    if at is None:
        return "no single place"
    where = at.part.value
    if at.start is not None and at.end is not None:
        where += f" {at.start:,}–{at.end:,}" if at.end > at.start else f" {at.start:,}"
    return f"{where} {one_line(at.pointer)}" if at.pointer else where


def evidence_ranges(exchange: Exchange, evidence: Sequence[Evidence]) -> list[Range]:
    """The bytes of the body from which the stop reason was read; in a row without a word, those of its `null`."""
    places = [value_place(exchange, each.at) if each.rule == ABSENT else each.at for each in evidence if each.at]
    return [span for at in places if (span := body_range(at)) is not None]


def body_range(at: At) -> Range | None:
    """The byte range of the body at a place; None if the place is not one in the body."""
    if at.part is not ExchangePart.BODY or at.start is None:
        return None
    return at.start, at.start if at.end is None else at.end


ENDING = 8
"""The largest number of messages at the end of a request that are shown."""


def _ending(facts: ResponseFacts) -> list[Line]:
    """The messages after the model's last answer, such as the results of its calls, which are far down in a long body.
    If no body was recorded, they are all that is known of the request, and are shown in full."""
    request = facts.exchange.request
    if request is None or not request.messages or facts.recut is not None:
        return []
    messages, whole = request.messages, facts.exchange.request_json is None
    answered = next((at for at, each in reversed(list(enumerate(messages, 1))) if each.role is Role.ASSISTANT), 0)
    ending = messages[answered:] or messages[-1:]
    title = "what the agent's rows hold of it" if whole else "its last messages"
    lines: list[Line] = [(Span(title, Tone.TITLE), Span(f"  {len(ending):,} of {count_of(len(messages), 'message')}",
                                                        Tone.DIM))]
    for message in ending[-ENDING:]:
        for part in message.parts:
            word, text = part_words(part)
            head = (Span(f"{message.role.value} ", Tone.KEY), *((safe(f"{word} ", Tone.DIM),) if word else ()))
            if whole:
                lines += [head, *((Span("  "), *line) for line in paragraphs(text))]
                continue
            lines.append((*head, safe(text, width=MOST_SHOWN)))
            if len(text) > MOST_SHOWN:
                lines.append((Span(f"  {len(text):,} characters, whole in the body: ", Tone.DIM),
                              Span("G ", Tone.PRESS), Span("goes to its end", Tone.DIM)))
    return [*lines, ()]


def _missing_body(facts: ResponseFacts) -> list[Line]:
    """The lines in place of a request body that was not recorded; for a simulated answer, the engine's request."""
    request = facts.exchange.request
    if facts.recut is None or request is None:
        return [(Span("the request body was not recorded", Tone.WARN),)]
    cap = "no max_tokens" if request.max_tokens is None else f"max_tokens {request.max_tokens:,}"
    summary = f"SIMULATED: what this loop sends, {cap}, {count_of(len(request.messages), 'message')}"
    return [(Span(summary, Tone.WARN),), *(line for each in request.messages for line in message_lines(each))]


def request_sheet(facts: ResponseFacts) -> LineSheet:
    """The sheet of the request: the address, its last messages, the headers, and the body as recorded."""
    exchange = facts.exchange
    lines: list[Line] = [
        join_groups([(Span(f"request of {facts.name}", Tone.STRONG),), (safe(exchange.url or "no URL was recorded"),)]),
        forms_line(WIRE_FORMS, "request"), (), *_ending(facts),
    ]
    for title, headers in (("request headers", exchange.request_headers), ("response headers", exchange.headers)):
        if headers:
            lines.append((Span(title, Tone.TITLE),))
            lines += [field(safe(name).text + " ", safe(value)) for name, value in headers]
            lines.append(())
    if exchange.request_json is None:
        lines += _missing_body(facts)
        return LineSheet(lines)
    text = json.dumps(exchange.request_json, ensure_ascii=False, indent=2)
    lines.append((Span("request body", Tone.TITLE),))
    return JsonLines(lines, text)


# -- Facts and the bytes they were read from -------------------------------------------------------------------------


VALUE_SHOWN = 40
HINT: Line = (
    Span(". ", Tone.PRESS), Span("next fact  ", Tone.DIM), Span(", ", Tone.PRESS), Span("fact before: ", Tone.DIM),
    Span("its bytes", Tone.DIM),
)
NONE: Line = (Span("no fact was read from these bytes", Tone.DIM),)
OF_ROWS: Line = (Span("only the bytes that decided the end are marked", Tone.DIM),)


class FactChoice(NamedTuple):
    """A selected fact, and which of its readings is shown."""

    fact: str
    reading: int = 0


def next_fact(provenance: Provenance, choice: FactChoice | None, by: int) -> FactChoice | None:
    """The next or previous fact, wrapping around; None if there is none."""
    facts = provenance.facts
    if not facts:
        return None
    if choice is None or choice.fact not in facts:
        return FactChoice(facts[0 if by > 0 else -1])
    return FactChoice(facts[(facts.index(choice.fact) + by) % len(facts)])


def next_reading(provenance: Provenance, choice: FactChoice, by: int) -> FactChoice:
    """The next or previous reading of the same fact, wrapping around."""
    return FactChoice(choice.fact, (choice.reading + by) % len(provenance.by_fact[choice.fact]))


def readings_in(provenance: Provenance, start: int, end: int) -> list[FactRead]:
    """The facts read from the bytes `start` to `end`, in the order of the bytes."""
    last = bisect_left(provenance.by_start, end, key=lambda read: read.start)
    inside: list[FactRead] = []
    index = last - 1
    # `reach` is the largest end of this and all earlier ranges, so the search can stop early.
    while index >= 0 and provenance.reach[index] > start:
        if provenance.by_start[index].end > start:
            inside.append(provenance.by_start[index])
        index -= 1
    return inside[::-1]


def picked_of(provenance: Provenance, read: FactRead) -> FactChoice:
    """A reading as a selection."""
    return FactChoice(read.fact, provenance.by_fact[read.fact].index(read))


def next_of(provenance: Provenance, reads: Sequence[FactRead], choice: FactChoice | None) -> FactChoice:
    """The reading after the selected one, wrapping around; the first if none is selected."""
    every = [picked_of(provenance, read) for read in reads]
    return every[(every.index(choice) + 1) % len(every)] if choice in every else every[0]


def fact_line(provenance: Provenance, choice: FactChoice, response: ChatResponse) -> Line:
    """The selected fact: its value, and the place of its reading."""
    facts, reads = provenance.facts, provenance.by_fact[choice.fact]
    read = reads[choice.reading]
    number = f"{choice.reading + 1:,} of {count_of(len(reads), 'slice')}"
    again = [(Span("said again", Tone.WARN),)] if read.again else []
    value = value_of(response, choice.fact)
    value_spans = () if value is None else (Span(" = ", Tone.DIM), safe(value, Tone.STRONG, VALUE_SHOWN))
    return join_groups([
        (Span(f"fact {facts.index(choice.fact) + 1:,} of {len(facts):,}: ", Tone.DIM), safe(choice.fact, Tone.KEY),
         *value_spans),
        (Span(f"bytes {read.start:,}–{read.end:,}"),), (Span(number),), *again,
    ])


def range_note(reads: Sequence[FactRead], start: int, end: int) -> str:
    """The facts read from a range of bytes, in one short line."""
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
    """The value of a fact, by its name."""
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

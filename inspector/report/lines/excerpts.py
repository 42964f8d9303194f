"""The bytes that decided a turn, as short excerpts for a reader who does not have the recording.

An excerpt of the body has the JSON pointer, the offset of every row, and a mark at the deciding bytes; one of the
headers or the request has the value. Credentials are masked and control characters replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from inspector.report.call_outcomes import SentBackAs, sent_back
from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.findings import RAN
from inspector.report.lines.slices import text_of_bytes
from inspector.report.lines.spans import one_line
from inspector.report.lines.wire import body_range
from inspector.report.run_answers import answer_at
from inspector.sessions import redact
from inspector.sessions.build import without_pieces
from inspector.sessions.provenance import readings
from inspector.sessions.recording import Exchange
from loop_core.json_parser import JsonPath
from loop_core.judge.gate import Admission
from loop_core.values import FINISHED, At, Evidence, ExchangePart, ToolCall
from loop_core.wire.json_values import path_of, pointer

AROUND = 160
"""The number of bytes of the body that are shown before and after the deciding ones."""
NEAR = 40
"""The number of further bytes before an excerpt that are shown if a line begins within them."""
MOST = 480
"""The largest number of deciding bytes that are shown in full; of more, only the beginning and the end are shown."""
LEGEND = ("As they came, credentials masked: offset in the body, > before the deciding bytes; ⏎ is a line break, other "
          "control characters are shown as marks.")
_REACH = 2_048
"""The number of bytes before and after an excerpt that are searched too, to mask a credential that begins outside."""
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


class ExcerptRow(NamedTuple):
    """One row: the body offset of its first byte (None: not in a body), its text, and whether it has deciding bytes."""

    start: int | None
    text: str
    deciding: bool = False


class Excerpt(NamedTuple):
    """The deciding bytes and their surroundings."""

    title: str
    """What the bytes are: the rules that read them, or the held call."""
    where: str
    """The response, the bytes and the JSON pointer."""
    rows: tuple[ExcerptRow, ...]


def excerpts(view: View, turn: TurnFacts) -> Iterator[Excerpt]:
    """The deciding bytes of a turn that needs attention; none for a turn that is certainly complete."""
    if turn.verdict.clean and turn.verdict.sure:
        return
    deciding = answer_at(view, view.deciding_step(turn))
    answers = [view.responses[index] for index in turn.responses]
    if deciding is not None and deciding.index < 0:
        answers.append(deciding)
    for facts in answers:
        held = any(verdict.admission is not Admission.READY for verdict in facts.verdicts)
        if facts is deciding or held or facts.judgement.stop.normalized not in FINISHED:
            yield from _of_evidence(facts)
            yield from _of_calls(facts)
            yield from _of_results(view, turn, facts)


def text_rows(rows: Sequence[ExcerptRow]) -> Iterator[str]:
    """The rows as text: offset, `>` before the deciding ones, and the bytes."""
    for row in rows:
        yield f"{'' if row.start is None else f'{row.start:,}':>11} {'>' if row.deciding else ' '} {row.text}".rstrip()


def _of_evidence(facts: ResponseFacts) -> Iterator[Excerpt]:
    places: dict[At, list[Evidence]] = {}
    for evidence in facts.evidence:
        if evidence.at is not None:
            places.setdefault(evidence.at, []).append(evidence)
    for at, read in places.items():
        title = "; ".join(
            f"{evidence.rule}{f' ({one_line(evidence.note, 120)})' if evidence.note else ''}" for evidence in read)
        rows = _rows(facts.exchange, at)
        if rows:
            yield Excerpt(redact.text(title), f"{facts.name}, {_where(facts.exchange, at)}", rows)


def _of_calls(facts: ResponseFacts) -> Iterator[Excerpt]:
    """The end of the arguments of each call that may not run."""
    exchange = facts.exchange
    found = readings(exchange) if any(each.admission is not Admission.READY for each in facts.verdicts) else None
    for number, verdict in enumerate(facts.verdicts):
        pieces = found.of(f"tool_calls[{number}].arguments") if found is not None else ()
        if verdict.admission is Admission.READY or not pieces:
            continue
        last = pieces[-1]
        at = At(ExchangePart.BODY, last.start, last.end, last.pointer)
        rows = _around(_body(exchange), max(last.start, last.end - AROUND), last.end)
        title = f"{verdict.admission.value} call {one_line(verdict.call.name) or 'unnamed'}: the end of its arguments"
        yield Excerpt(title, f"{facts.name}, {_where(exchange, at)}", rows)


def _of_results(view: View, turn: TurnFacts, facts: ResponseFacts) -> Iterator[Excerpt]:
    """Excerpts of a later request, about held calls that ran: the call as it was sent back, and its result."""
    ran = [note.call.call for note in view.findings
           if note.response == facts.index and note.finding.rule in RAN and note.call is not None]
    later = [view.responses[index] for index in turn.responses if index > facts.index] if ran else []
    for call in ran:
        name, back = one_line(call.name) or "unnamed", sent_back(view, facts, call)
        for each in back:
            yield Excerpt(each.kind.format(name=name), _where_in_request(each.answer, each.pointer),
                          tuple(_ends(each.text)))
        if not any(each.kind is SentBackAs.RESULT for each in back):
            yield from _by_name(call, name, later)


def _by_name(call: ToolCall, name: str, later: Sequence[ResponseFacts]) -> Iterator[Excerpt]:
    """The result of a call, found by the tool's name, in formats and rows that have no object with the call's id."""
    answers = ((each, part) for each in later if each.exchange.request is not None
               for message in each.exchange.request.messages for part in message.results)
    for each, part in answers:
        if part.call_id == call.id if call.id else part.call_id is None and part.name == call.name:
            at = pointer_to(each.exchange.request_json, part.text)
            yield Excerpt(SentBackAs.RESULT.format(name=name), _where_in_request(each, at),
                          tuple(_ends(redact.text(part.text))))
            break


def _ends(text: str) -> Iterator[ExcerptRow]:
    """The rows of a text of a request; of a long text its beginning and its end, where a call's arguments end."""
    line = one_line(text)
    if len(line) <= MOST:
        yield ExcerptRow(None, line, True)
        return
    half = MOST // 2
    yield ExcerptRow(None, line[:half], True)
    yield ExcerptRow(None, f"({len(line) - 2 * half:,} characters left out)", True)
    yield ExcerptRow(None, line[-half:], True)


def pointer_to(value: Any, text: str) -> str:
    """The JSON pointer of the last string in a value that equals `text`; empty if there is none."""
    waiting: list[tuple[JsonPath, Any]] = [((), value)]
    while waiting:
        path, each = waiting.pop()
        if isinstance(each, str) and each == text:
            return pointer(*path)
        inside = each.items() if isinstance(each, dict) else enumerate(each) if isinstance(each, list) else ()
        waiting += [((*path, key), child) for key, child in inside]
    return ""


def _where(exchange: Exchange, at: At) -> str:
    span = ""
    if at.start is not None and at.end is not None:
        span = f" bytes {at.start:,} to {at.end:,}" if at.end > at.start else f" byte {at.start:,}"
    lines = _file_lines(exchange) if at.part is ExchangePart.BODY else ""
    return f"{at.part.value}{span}{_shown_pointer(at.pointer)}{lines}"


def _where_in_request(facts: ResponseFacts, path: str) -> str:
    return f"the request of {facts.name}{_shown_pointer(path)}"


def _shown_pointer(path: str | None) -> str:
    """A JSON pointer after a blank, inert, since it names members of a body; empty if there is none."""
    return f" {one_line(redact.text(path), 120)}" if path else ""


def _file_lines(exchange: Exchange) -> str:
    """The recorder of the body's rows and their lines in the file; empty for a provider's body."""
    if exchange.recorder is None:
        return ""
    if not exchange.lines:  # the rows of a database, or of a list
        return f" (rows of {exchange.recorder})"
    first, last = exchange.lines[0], exchange.lines[-1]
    which = f"line {first:,}" if first == last else f"lines {first:,} to {last:,}"
    return f" (rows of {exchange.recorder}, {which} of the file)"


def _rows(exchange: Exchange, at: At) -> tuple[ExcerptRow, ...]:
    if at.part is ExchangePart.BODY:
        span = body_range(at) if exchange.recorded else None
        return () if span is None else _around(_body(exchange), *span)
    text_of = _headers if at.part is ExchangePart.HEADERS else _request
    return tuple([ExcerptRow(None, text, True) for text in text_of(exchange, at.pointer or "")])


def _body(exchange: Exchange) -> bytes:
    """The body with pieces of credentials masked, at its original length."""
    if exchange.recorder is not None:
        return exchange.body
    # A stream may split a credential over several events, so that no pattern finds it in the bytes.
    return without_pieces(exchange.body, exchange.api, exchange.response)


def _around(body: bytes, start: int, end: int) -> tuple[ExcerptRow, ...]:
    """The bytes from `start` to `end` and the bytes around them, broken at line ends and at the deciding bytes."""
    low, high = _beginning(body, max(0, start - AROUND)), _character(body, min(len(body), end + AROUND))
    begin = max(0, low - _REACH)
    clean = redact.body(body[begin : high + _REACH])

    def part(first: int, last: int, deciding: bool = False) -> Iterator[ExcerptRow]:
        for line in _LINE.findall(clean[first - begin : last - begin]):
            yield ExcerptRow(first, text_of_bytes(line), deciding)
            first += len(line)

    rows = [*part(low, start)]
    if end == start:
        nothing = "nothing: the body ends here" if start >= len(body) else "here"
        rows.append(ExcerptRow(start, f"({nothing})", True))
    elif end - start > MOST:
        head, tail = _character(body, start + MOST // 2), _character(body, end - MOST // 2)
        rows += [*part(start, head, True), ExcerptRow(None, f"({tail - head:,} bytes left out)", True),
                 *part(tail, end, True)]
    else:
        rows += part(start, end, True)
    return (*rows, *part(end, high))


def _beginning(body: bytes, at: int) -> int:
    """The beginning of the line around `at`, if it is near; else the nearest beginning of a character."""
    line = body.rfind(b"\n", max(0, at - NEAR), at) + 1
    return line if line else 0 if at < NEAR else _character(body, at)


def _character(body: bytes, at: int) -> int:
    """The nearest offset from `at` on at which a UTF-8 character begins."""
    # A character has at most four bytes (RFC 3629); if none of them begins one, the bytes are not UTF-8.
    for place in range(at, min(at + 4, len(body))):
        if body[place] & 0xC0 != 0x80:
            return place
    return at


def _headers(exchange: Exchange, pointer: str) -> Iterator[str]:
    if pointer == "status" and exchange.response.http_status is not None:
        yield f"HTTP status {exchange.response.http_status}"
    for name, value in redact.headers(exchange.headers):
        if name.lower() == pointer.lower():
            yield one_line(f"{name}: {value}", MOST)


def _request(exchange: Exchange, pointer: str) -> Iterable[str]:
    if pointer == "url":
        return [one_line(redact.url(exchange.url), MOST)]
    value: Any = exchange.request_json
    if value is None or not pointer.startswith("/"):
        return []
    for key in path_of(pointer):
        try:
            value = value[key]
        except (LookupError, TypeError):
            return []
    return [one_line(redact.text(json.dumps(redact.values(value), ensure_ascii=False)), MOST)]

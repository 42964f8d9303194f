"""Handles, for all formats, the calls and texts of one response: parts that grow in a stream, calls of an earlier
answer in the same stream, repeated calls, and texts that a provider sends twice, such as at the end of a stream. If two
such texts differ, a call is held and a text is reported, with both places, since nothing shows which one is meant."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from loop_core.values import (
    FINISHED,
    At,
    CallKind,
    ChatResponse,
    Evidence,
    ExchangePart,
    ResponsePart,
    Severity,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
)
from loop_core.wire.body import compact, read_object
from loop_core.wire.reads import UNREAD_CALL

Call = TypeVar("Call")
Object = dict[str, Any] | None
"""The arguments of a call, if they are an object."""


def earlier_calls(
    begun: Sequence[tuple[Call, str | None]], first: str | None, ends: Sequence[tuple[str | None, str | None]]
) -> list[Call]:
    """Returns the calls of answers that another answer followed before they ended. `begun` holds each call with the id
    of the chunk that began it, `first` is the first id of the stream, and `ends` holds the id of each chunk with a stop
    reason and that of the chunk before it.

    A gateway that falls back in the middle of a stream (LiteLLM) appends another answer with its own id, whose stop
    reason says nothing about the calls before. If every chunk has another id, or a gateway makes the last chunk itself,
    the chunk with the stop reason mostly shares its id with no chunk before it.
    """
    if not begun or not ends or not ends[-1][0]:
        return []
    ended_by, before = ends[-1]
    ended = [ident for ident, _ in ends]
    one_id_for_all = before == ended_by  # so another id is that of another answer, which may have ended by itself
    last_has_calls = begun[-1][1] == ended_by != first
    return [call for call, ident in begun if (last_has_calls and ident == first)
            or (one_id_for_all and ident and ident not in ended)]


MOST_OF_ONE_ID = 100
"""The largest number of different calls with one id that are compared with each other, in quadratic time. A further
call is held as one of two texts."""


def each_call_once(response: ChatResponse, find: Callable[[str, str, At | None], None]) -> ChatResponse:
    """Returns the response without repeated calls; `find` receives the findings about repeated ids.

    The same id, tool and arguments are one call that was sent twice, as by a proxy that repeats a chunk: it must not
    run twice. With other arguments it is another call, since several servers give one id to all calls of an answer
    (Xinference #4237, nanobot #4473, oh-my-pi #2055). But if one text only extends the other, the call may have been
    sent while it grew, and nothing shows which text is meant: both are kept as texts of one call.

    All calls without ids are kept, since two equal ones may be meant (a die that is thrown twice). Not even equal lines
    of Ollama prove a repetition, because their times are as coarse as the server's clock. Gemini's chunks count the
    output tokens, so its decoder leaves out an equal chunk as a repetition.
    """
    counts = Counter(part.id for part in response.parts if type(part) is ToolCall and part.kind is not CallKind.SERVER)
    repeated = {ident for ident, count in counts.items() if ident and count > 1}
    if not repeated:
        return response
    parts: list[ResponsePart] = []
    calls: dict[int, ToolCall] = {}  # place in `parts` -> the call there
    places: dict[tuple[str | None, str, CallKind, str | None], int] = {}  # id, tool, kind and arguments -> place
    calls_by_id: dict[str | None, list[tuple[int, Object]]] = {}  # id -> place and arguments of its different calls
    for part in response.parts:
        if type(part) is not ToolCall or part.kind is CallKind.SERVER or part.id not in repeated:
            parts.append(part)
            continue
        value = read_object(part.arguments or "") if part.kind is CallKind.FUNCTION else None
        # One spelling for equal objects; other texts stay unchanged.
        key = (part.id, part.name, part.kind, part.arguments if value is None else compact(value, sort=True))
        same = places.get(key)
        if same is not None:
            find(f"{response.api}.call_repeated", "a complete call was sent again", part.at)
            parts[same] = calls[same] = calls[same]._replace(closed=calls[same].closed and part.closed)
            continue
        others = calls_by_id.setdefault(part.id, [])
        if others:
            find(f"{response.api}.id_repeated", "several tool calls have the same id", part.at)
        if len(others) >= MOST_OF_ONE_ID:
            parts.append(part._replace(other_arguments=calls[others[0][0]].arguments or ""))
            continue
        grown = next((place for place, before in others if _is_grown(calls[place], part, before, value)), None)
        if grown is not None:
            parts[grown] = calls[grown] = calls[grown]._replace(other_arguments=part.arguments or "")
            continue
        places[key] = len(parts)
        others.append((len(parts), value))
        calls[len(parts)] = part
        parts.append(part)
    return replace(response, parts=tuple(parts))


def _is_grown(call: ToolCall, other: ToolCall, one: Object, another: Object) -> bool:
    """Whether the arguments of one call extend those of another call of the tool. `one` and `another` are their parsed
    arguments."""
    if (call.name, call.kind) != (other.name, other.kind):
        return False
    if call.kind is CallKind.CUSTOM:
        return _begins(call.arguments, other.arguments)
    # Absent or blank arguments of a closed call may mean `{}`: all calls of a tool without parameters would be ready.
    one, another = (value if (each.arguments or "").strip() or not each.closed else {}
                    for each, value in ((call, one), (other, another)))
    if one is None or another is None:
        return False
    few, many = sorted((one, another), key=len)
    return all(name in many and _begins(few[name], many[name]) for name in few)


def _begins(one: Any, other: Any) -> bool:
    """Whether two values are equal, or one is a text that begins the other."""
    if isinstance(one, str) and isinstance(other, str):
        return one.startswith(other) or other.startswith(one)
    return compact(one, sort=True) == compact(other, sort=True)


def completes(stop: StopReason) -> bool:
    """Whether the last call of a whole body is complete under this reason. In formats whose arguments are an object,
    those of a cut call are one too (cynative PR#283, citing Anthropic's documentation), so only the reason shows the
    cut. A stop sequence may cut a call."""
    return stop.normalized in (Stop.TOOL_CALL, Stop.END_TURN) and stop.raw != "stop_sequence"


def gone_on(api: str, stop: StopReason, size: int, find: Callable[[str, str, At | None], None]) -> StopReason:
    """The reason of a stream of `size` bytes which goes on after its stop word and has no end: the rest may be cut."""
    end = At(ExchangePart.BODY, size, size)
    find(f"{api}.goes_on", f"the answer goes on after stop reason {stop.raw}, and has no end", end)
    if stop.normalized not in FINISHED:
        return stop
    evidence = (*stop.evidence, Evidence(f"{api}.goes_on", end))
    return stop._replace(normalized=Stop.INTERRUPTED, detail=None, evidence=evidence)


# -- Parts of a stream while they arrive -----------------------------------------------------------------------------


class StreamedPart:
    """A block or a step of a stream while it arrives; `append` reads the most frequent deltas."""

    __slots__ = ("append", "chunks", "closed", "end", "orphan", "start")

    def __init__(self, start: int, *, orphan: bool = False) -> None:
        self.chunks: list[str] = []
        self.append = self.chunks.append
        self.start = start
        self.end: int | None = None
        self.closed = False
        self.orphan = orphan
        """Whether the event that begins the part is missing."""

    def close(self, end: int) -> None:
        """Marks the part as ended by the provider. A call without its beginning stays open, since its name is
        unknown."""
        self.closed, self.end = not self.orphan, end

    def place(self, limit: int, pointer: str) -> At:
        """The place of the part; one that never ended reaches to `limit`."""
        end = self.end if self.end is not None else max(limit, self.start)
        return At(ExchangePart.BODY, self.start, end, pointer)


def open_places(parts: Iterable[StreamedPart], limit: int) -> list[At]:
    """The places of the parts that never closed, up to `limit`."""
    return [At(ExchangePart.BODY, part.start, max(limit, part.start)) for part in parts if not part.closed]


# -- Texts that a provider sends twice -------------------------------------------------------------------------------


_SHOWN_BEFORE, _SHOWN = 20, 60
"""The numbers of characters of a text that a finding shows: before the first difference, and altogether."""


class Copy(NamedTuple):
    """One of several texts of the same thing, and the byte at which it begins; None if that is not known."""

    text: str
    begin: int | None


def difference(what: str, text: str, other: Copy) -> str:
    """Returns a message about two different texts that shows both from shortly before their first difference."""
    place = next((i for i, (one, two) in enumerate(zip(text, other.text, strict=False)) if one != two),
                 min(len(text), len(other.text)))
    where = "elsewhere" if other.begin is None else f"from byte {other.begin:,} on"
    one, two = _around(text, place), _around(other.text, place)
    return f"the provider sent two texts of {what}: {one!r}, and {where} {two!r}"


def _around(text: str, place: int) -> str:
    start = max(0, place - _SHOWN_BEFORE)
    end = start + _SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"


def is_same_json(one: str, other: str) -> bool:
    """Whether two texts are equal, or the same JSON with other white space or another order of members, as from a
    gateway."""
    if one == other:
        return True
    try:
        return json.dumps(json.loads(one), sort_keys=True) == json.dumps(json.loads(other), sort_keys=True)
    except (ValueError, RecursionError):
        return False


class Difference(NamedTuple):
    """A finding about two different texts of one part."""

    rule: str
    message: str
    at: At | None
    severity: Severity


def compare(
    parts: Sequence[ResponsePart], repeated: Sequence[ResponsePart], end: At
) -> tuple[list[ResponsePart], list[Difference]]:
    """Compares the streamed parts of an answer with their repetition in the event at `end`. Returns the parts, with a
    call open if its repetition differs or is missing, and the differences. A repetition without text, or without calls,
    is not compared in that respect; one that alone has calls adds them."""
    found = list(_text_differences(parts, repeated, end))
    others = [part for part in repeated if type(part) is ToolCall]
    if not any(type(part) is ToolCall for part in parts):
        return [*parts, *others], found
    holds_calls = bool(others)
    compared: list[ResponsePart] = []
    for part in parts:
        if type(part) is ToolCall and holds_calls:
            other = _fitting(part, others)
            if other is not None:
                others.remove(other)
            if other is None or not _is_same_call(part, other):
                name, arguments = (other.name, other.arguments or "") if other is not None else ("", "")
                message = difference(f"a call of {part.name or 'no tool'}", f"{part.name} {part.arguments or ''}",
                                     Copy(f"{name} {arguments}", end.start))
                found.append(Difference("call_differs", message, part.at, Severity.ERROR))
                part = part._replace(closed=False, other_arguments=arguments)
        compared.append(part)
    for other in others:
        message = f"a call of {other.name or 'no tool'} comes only in the repetition at the end"
        found.append(Difference(UNREAD_CALL, message, other.at, Severity.ERROR))
    return compared, found


def _is_same_call(call: ToolCall, other: ToolCall) -> bool:
    return call.name == other.name and is_same_json(call.arguments or "", other.arguments or "")


def _fitting(call: ToolCall, others: Sequence[ToolCall]) -> ToolCall | None:
    """The repetition of a call, found by its id or, if one of the two has none, by its content, else by its place."""
    alike = ([other for other in others if other.id == call.id is not None]
             or [other for other in others if None in (other.id, call.id)])
    return next((other for other in alike if _is_same_call(call, other)), next(iter(alike), None))


def _text_differences(
    parts: Sequence[ResponsePart], repeated: Sequence[ResponsePart], end: At
) -> Iterator[Difference]:
    one, two = ("".join([part.text for part in each if type(part) is TextPart]) for each in (parts, repeated))
    if two and one.strip() != two.strip():  # a server may trim what it repeats
        yield Difference("text_differs", difference("the answer", one, Copy(two, end.start)), end, Severity.WARNING)

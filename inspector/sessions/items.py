"""Request histories as comparable items: harmless differences folded away, each distinct item a small number.

Folded: white space, text as a string or as parts, cache marks, reasoning, how several assistant messages or results are
grouped, the order of keys in arguments. A history is then a path in a tree (`Tree`), and two histories share a prefix
exactly where their paths do; no digest is needed, and nothing can collide.

Further down: what agents write after a cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable
from enum import Enum
from typing import NamedTuple

from pydantic_core import from_json

from loop_core.values import CallKind, Message, OpaquePart, Request, Role, TextPart, ToolCall, ToolResultPart


class Kind(Enum):
    """What an item of a history is."""

    ASSISTANT = "assistant"
    USER = "user"
    RESULTS = "results"
    SYSTEM = "system"


class Item(NamedTuple):
    """One item: a user message, or a run of assistant messages or of tool results."""

    kind: Kind
    key: int
    messages: tuple[Message, ...]

    @property
    def text(self) -> str:
        """Its visible text."""
        return "".join(message.text for message in self.messages)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that it holds, those of the provider left out."""
        return tuple(call for message in self.messages for call in message.tool_calls)

    @property
    def results(self) -> tuple[ToolResultPart, ...]:
        """The tool results that it holds."""
        return tuple(result for message in self.messages for result in message.results)


class History(NamedTuple):
    """A request's history: its items after the leading system messages, and the nodes before each and after all."""

    items: tuple[Item, ...]
    nodes: tuple[int, ...]
    system: int

    @property
    def node(self) -> int:
        """The node of the whole history."""
        return self.nodes[-1]

    @property
    def size(self) -> tuple[int, int]:
        """What grows from an exchange to the next: the items, or the text that a prefill goes on from."""
        last = self.items[-1] if self.items else None
        return len(self.items), len(last.text) if last is not None and last.kind is Kind.ASSISTANT else 0


_CACHE_MARK = re.compile(r',?\s*"cache_?(?:control|point)"\s*:\s*\{[^{}]*\}', re.IGNORECASE)


class Tree:
    """Numbers for items and for prefixes of histories, given out as they are first met."""

    __slots__ = ("_edges", "_keys", "_parsed", "_seen")

    def __init__(self) -> None:
        self._keys: dict[Hashable, int] = {}
        self._seen: dict[tuple[Message, ...], int] = {}
        self._edges: dict[tuple[int, int], int] = {}
        self._parsed: dict[str, str] = {}

    def history(self, request: Request, start: int = 0) -> History:
        """The history of a request, as a path that begins at node `start`."""
        messages = request.messages
        first = 0
        while first < len(messages) and messages[first].role is Role.SYSTEM:
            first += 1
        items = self._items(messages[first:])
        nodes = [start]
        for item in items:
            nodes.append(self.step(nodes[-1], item.key))
        return History(tuple(items), tuple(nodes), self._number(messages[:first], Kind.SYSTEM))

    def step(self, node: int, key: int) -> int:
        """The node that an item leads to."""
        edge = (node, key)
        found = self._edges.get(edge)
        if found is None:
            found = self._edges[edge] = len(self._edges) + 1
        return found

    def key(self, value: Hashable) -> int:
        """The number of a value."""
        found = self._keys.get(value)
        if found is None:
            found = self._keys[value] = len(self._keys)
        return found

    def said(self, text: str, calls: Iterable[ToolCall]) -> int:
        """The number of an assistant's text and calls, as an item of a history has it."""
        return self.key(
            (Kind.ASSISTANT, squeeze(text), tuple((call.id, call.name, self.arguments(call)) for call in calls))
        )

    def said_loosely(self, text: str, calls: Iterable[ToolCall]) -> int:
        """The same without the ids of calls, which some clients drop or rename."""
        return self.key(("loose", squeeze(text), tuple((call.name, self.arguments(call)) for call in calls)))

    def arguments(self, call: ToolCall) -> str:
        """A call's arguments with keys sorted and white space folded; as they are where they are no JSON."""
        raw = call.arguments or ""
        found = self._parsed.get(raw)
        if found is None:
            try:
                found = json.dumps(from_json(raw), sort_keys=True) if raw.strip() else "{}"
            except (ValueError, TypeError):  # a lone surrogate is no text to the parser
                found = raw.strip()
            self._parsed[raw] = found
        return found

    def _items(self, messages: tuple[Message, ...]) -> list[Item]:
        items: list[Item] = []
        run: list[Message] = []
        kind: Kind | None = None
        for message in messages:
            now = _kind(message)
            if kind is not None and (now is not kind or now not in (Kind.ASSISTANT, Kind.RESULTS)):
                items.append(self._item(kind, tuple(run)))
                run = []
            kind = now
            run.append(message)
        if kind is not None:
            items.append(self._item(kind, tuple(run)))
        return items

    def _item(self, kind: Kind, messages: tuple[Message, ...]) -> Item:
        return Item(kind, self._number(messages, kind), messages)

    def _number(self, messages: tuple[Message, ...], kind: Kind) -> int:
        found = self._seen.get(messages)
        if found is None:
            found = self._seen[messages] = self._fold(messages, kind)
        return found

    def _fold(self, messages: tuple[Message, ...], kind: Kind) -> int:
        text = "".join(message.text for message in messages)
        if kind is Kind.ASSISTANT:
            return self.said(text, [call for message in messages for call in message.tool_calls])
        results = tuple((part.call_id, squeeze(part.text)) for message in messages for part in message.results)
        others = tuple(
            (part.type, _CACHE_MARK.sub("", part.json))
            for message in messages
            for part in message.parts
            if type(part) is OpaquePart
        )
        return self.key((kind, squeeze(text), results, others))


def _kind(message: Message) -> Kind:
    if message.role is Role.ASSISTANT:
        return Kind.ASSISTANT
    if message.role is Role.TOOL or any(type(part) is ToolResultPart for part in message.parts):
        return Kind.RESULTS
    return Kind.SYSTEM if message.role is Role.SYSTEM else Kind.USER


def squeeze(text: str) -> str:
    """Text without any white space, for comparing."""
    return "".join(text.split())


def response_calls(parts: Iterable[object]) -> tuple[ToolCall, ...]:
    """The calls among a response's parts that the client has to answer."""
    return tuple(part for part in parts if type(part) is ToolCall and part.kind is not CallKind.SERVER)


def response_text(parts: Iterable[object]) -> str:
    """The visible text among a response's parts."""
    return "".join(part.text for part in parts if type(part) is TextPart)


# -- What agents write after a cut -----------------------------------------------------------------------------------
# The table of known hints, and the test for a message that repeats the cut text.
# A user message after a cut is a continuation only if a row here knows it, or if it quotes what was cut: everything
# else that a user says is a new turn. The patterns are our own; each row names where the wording was met.


class Hint(NamedTuple):
    """One wording; the pattern is searched in the message, white space folded, letters in lower case."""

    name: str
    pattern: str
    source: str
    call: bool = False
    """Whether it speaks of a tool call, and means nothing where none was cut."""


def _hint(name: str, source: str, *pattern: str, call: bool = False) -> Hint:
    return Hint(name, "".join(pattern), source, call)


HINTS: tuple[Hint, ...] = (
    _hint(
        "continue_exactly", "seed 000 (continuation hint); Hermes; ZeroClaw",
        r"\b(?:continue|resume|go on|pick up|carry on)\b[^.!?]{0,40}",
        r"\b(?:where|(?:at|from) the (?:exact )?(?:point|place|spot)) (?:where |that )?",
        r"(?:you|it|the (?:text|answer|output|response)) (?:\w+ )?(?:left|stop|cut|end|broke|break|were|was|paused)",
    ),
    _hint(
        "previous_cut", "seed 000; Hermes; gsd-pi",
        r"\b(?:previous|last|your) (?:response|message|output|answer|reply|generation|turn)\b[^.!?,;]{0,40}",
        r"\b(?:truncated|cut (?:off|short)|incomplete|interrupted mid|hit the (?:output|token|length))",
    ),
    _hint(
        "limit_hit", "Claude Code; typeclaw",
        r"\b(?:output|response|completion|max(?:imum)?)[ _-](?:output[ _-])?(?:token[s]?|length)(?: limit)? ",
        r"(?:was |has been |is )?(?:hit|reached|exceeded)",
    ),
    _hint(
        "no_recap", "Claude Code; cursor2api",
        r"\b(?:resume|continue)\b.{0,60}\b(?:no|without|do not|don't)\b.{0,20}",
        r"\b(?:apolog|recap|repeat|preamble|restat)",
    ),
    _hint(
        "do_not_repeat", "seed 000 (continuation hint)",
        r"\bdo not (?:repeat|restate|restart|regenerate)\b.{0,60}",
        r"\b(?:already[ -](?:sent|said|wrote|written|given|above)|previous|sent|wrote|written|text|beginning)",
    ),
    _hint(
        "bare_continue", "LibreChat; bedrock-access-gateway; pi-length-continue",
        r"^(?:please |now )?(?:continue|go on|keep going|carry on|resume|proceed)",
        r"(?: please| writing| generating)?(?: (?:the|your) (?:response|answer|output|text))?[ .!…]*$",
    ),
    _hint(
        "call_cut", "seed 000 (tool repair); Hermes; DeepChat; Strands",
        r"\b(?:call|tool use|function|arguments?|payload)s?\b[^.!?]{0,60}",
        r"\b(?:truncated|cut (?:off|short)|incomplete|malformed|invalid json|not valid json|never finished)",
        call=True,
    ),
    _hint(
        "resend_call", "seed 000 (tool repair); pi #6285",
        r"\b(?:re-?(?:send|issue|emit|do|try|generate)|repeat|send|emit|issue|make)\b[^.!?]{0,60}",
        r"\b(?:tool|function|call|arguments|payload|json)\b",
        call=True,
    ),
    _hint(
        "split_call", "Hermes; cynative",
        r"\b(?:split|break)\b[^.!?]{0,60}\b(?:smaller|several|multiple|parts?|chunks?)\b[^.!?]{0,40}",
        r"\b(?:call|write|tool)s?\b",
        call=True,
    ),
)

RESULTS: tuple[Hint, ...] = (
    _hint(
        "cut_result", "pi #6285; OpenClaw; Zoo-Code",
        r"\b(?:truncated|cut (?:off|short)|incomplete|output (?:token )?limit|",
        r"max[_ ]?(?:output[_ ])?tokens|length limit)\b",
    ),
    _hint(
        "not_run", "pi #6285; agentao",
        r"\b(?:not (?:been )?(?:executed|run)|was (?:blocked|held|rejected|discarded)|re-?issue)\b",
    ),
    _hint(
        "invalid_arguments", "Claude Code; pydantic-ai; LangChain",
        r"\b(?:invalid|malformed|unparsable|could not parse|failed to parse)\b.{0,30}",
        r"\b(?:json|arguments?|input|parameters?)\b|\binputvalidationerror\b",
    ),
)
"""How agents tell a model, in a tool result, that its call was cut and did not run."""

_LONG = 600
"""A hint is short, or stands at the beginning of what follows it."""
_QUOTE = 24
"""Characters, white space left out, that a message must repeat of a cut text's end."""


def known_hint(text: str, call: bool = True) -> str | None:
    """The name of the hint that `text` gives after a cut (of a call, or of text alone); None where it gives none."""
    return _search(HINTS if call else tuple(row for row in HINTS if not row.call), text)


def cut_result(text: str) -> str | None:
    """The name of the wording by which a tool result says that its call was cut; None where it says nothing of it."""
    return _search(RESULTS, text)


def _search(rows: tuple[Hint, ...], text: str) -> str | None:
    folded = " ".join(text[:_LONG].lower().replace("\u2019", "'").split())
    return next((row.name for row in rows if re.search(row.pattern, folded)), None)


def quotes_end(text: str, cut: str) -> bool:
    """Whether `text` repeats the end of the text that was cut."""
    end = "".join(cut.split())[-_QUOTE:]
    return len(end) == _QUOTE and end in "".join(text.split())

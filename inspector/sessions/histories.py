"""Makes request histories comparable: removes harmless differences, and gives each distinct item a small number.

Ignored differences are: white space, text as a string or as parts, cache marks, reasoning, the grouping of several
assistant messages or results, and the order of keys in arguments. A history is a path in a tree (`HistoryTree`). Two
histories share a prefix exactly if their paths do. Nothing can collide, because no digest is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from inspector.sessions.recording import Exchange
from inspector.sessions.traffic import host_of
from inspector.sessions.wordings import asks_again
from loop_core.json_parser import from_json
from loop_core.judge.endings import cut_at_cap, has_calls, has_content
from loop_core.values import (
    FINISHED,
    ArgsForm,
    CallKind,
    Message,
    MessagePart,
    OpaquePart,
    Request,
    Role,
    Stop,
    TextPart,
    ToolCall,
    ToolResultPart,
)
from loop_core.wire import wire


class ItemKind(Enum):
    """The kind of an item in a history."""

    ASSISTANT = "assistant"
    USER = "user"
    RESULTS = "results"
    SYSTEM = "system"


class HistoryItem(NamedTuple):
    """One item: a user message, or a run of assistant messages or of tool results."""

    kind: ItemKind
    key: int
    messages: tuple[Message, ...]

    @property
    def text(self) -> str:
        """The visible text of the item."""
        return "".join(message.text for message in self.messages)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of the item, without those that the provider ran."""
        return tuple(call for message in self.messages for call in message.tool_calls)

    @property
    def results(self) -> tuple[ToolResultPart, ...]:
        """The tool results of the item."""
        return tuple(result for message in self.messages for result in message.results)


class History(NamedTuple):
    """A request's history: the items after the leading system messages, the nodes before and after each item, and the
    number of the leading system messages' text."""

    items: tuple[HistoryItem, ...]
    nodes: tuple[int, ...]
    system: int

    @property
    def node(self) -> int:
        """The node of the whole history."""
        return self.nodes[-1]


def size_of(request: Request) -> tuple[int, int]:
    """A size that grows with each exchange of a conversation: the number of items, and the characters of a prefill."""
    runs = [*_runs(request.messages[_leading(request.messages) :])]
    kind, last = runs[-1] if runs else (None, ())
    return len(runs), sum(len(message.text) for message in last) if kind is ItemKind.ASSISTANT else 0


# Clients move these marks to the last messages of each request (Anthropic's cache_control, Bedrock's cachePoint).
_CACHE_MARK = re.compile(r'(?:,\s*)?"cache_?(?:control|point)"\s*:\s*\{[^{}]*\}', re.IGNORECASE)


class HistoryTree:
    """Numbers for items and for prefixes of histories, assigned on first occurrence."""

    __slots__ = ("_edges", "_exact", "_keys", "_parsed", "_seen")

    def __init__(self, exact: bool) -> None:
        self._exact = exact
        """Whether texts and arguments are compared unchanged: an agent's own rows never differ, and normalized copies
        of all texts would take much memory."""
        self._keys: dict[Hashable, int] = {}
        self._seen: dict[tuple[Message, ...], int] = {}
        self._edges: dict[int, int] = {}
        """Node in the upper bits, number of an item in the lower 32 -> the next node. Pairs take twice the memory."""
        self._parsed: dict[str, str] = {}

    def history(self, request: Request, start: int = 0) -> History:
        """The history of a request, as a path from the node `start`."""
        messages = request.messages
        first = _leading(messages)
        # The messages after a named answer are in no other request, so their numbers need not be looked up again.
        number = self._number if request.previous_id is None else self._fold
        items = [HistoryItem(kind, number(run, kind), run) for kind, run in _runs(messages[first:])]
        nodes = [start]
        for item in items:
            nodes.append(self.step(nodes[-1], item.key))
        return History(tuple(items), tuple(nodes), self._number(messages[:first], ItemKind.SYSTEM))

    def step(self, node: int, key: int) -> int:
        """The node after an item."""
        edge = node << 32 | key
        return self._edges.setdefault(edge, len(self._edges) + 1)

    def key(self, value: Hashable) -> int:
        """The number of a value."""
        return self._keys.setdefault(value, len(self._keys))

    def answer_key(self, text: str, calls: Iterable[ToolCall]) -> int:
        """The number of an answer's text and calls, equal to that of its item in a later history."""
        keys = [value for call in calls for value in (call.id, call.name, self.arguments(call))]
        return self.key((ItemKind.ASSISTANT, self._squeeze(text), *keys))

    def loose_answer_key(self, text: str, calls: Iterable[ToolCall]) -> int:
        """The number of an answer's text and calls without call ids, which some clients drop or rename."""
        return self.key(("loose", squeeze(text), tuple((call.name, self.arguments(call)) for call in calls)))

    def arguments(self, call: ToolCall) -> str:
        """A call's arguments with keys sorted and white space removed; unchanged if they are not JSON."""
        raw = call.arguments or ""
        if self._exact:
            return raw
        if raw not in self._parsed:
            try:
                # Clients parse arguments and write them again, with different white space and order of keys.
                self._parsed[raw] = json.dumps(from_json(raw.encode()), sort_keys=True) if raw.strip() else "{}"
            except (ValueError, TypeError):  # a lone surrogate is not text to the parser
                self._parsed[raw] = raw.strip()
        return self._parsed[raw]

    def _number(self, messages: tuple[Message, ...], kind: ItemKind) -> int:
        found = self._seen.get(messages)
        if found is None:
            found = self._seen[messages] = self._fold(messages, kind)
        return found

    def _fold(self, messages: tuple[Message, ...], kind: ItemKind) -> int:
        text = "".join(message.text for message in messages)
        if kind is ItemKind.ASSISTANT:
            return self.answer_key(text, [call for message in messages for call in message.tool_calls])
        results = [value for message in messages for part in message.results
                   for value in (part.call_id, part.text_key if self._exact else squeeze(part.text))]
        others = tuple((part.type, _CACHE_MARK.sub("", part.json))
                       for message in messages for part in message.parts if type(part) is OpaquePart)
        return self.key((kind, self._squeeze(text), others, *results))

    def _squeeze(self, text: str) -> str:
        return text if self._exact else squeeze(text)


def _leading(messages: tuple[Message, ...]) -> int:
    return next((number for number, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))


def _runs(messages: tuple[Message, ...]) -> Iterator[tuple[ItemKind, tuple[Message, ...]]]:
    for kind, run in groupby(_with_hints_apart(messages), key=_kind):
        # Clients may split an answer or join results; each message of a user is an item.
        if kind in (ItemKind.ASSISTANT, ItemKind.RESULTS):
            yield kind, tuple(run)
        else:
            yield from ((kind, (message,)) for message in run)


def _with_hints_apart(messages: Iterable[Message]) -> Iterator[Message]:
    """The messages. The hints that a client added to the end of one, where roles alternate, are messages of their own,
    after the system messages behind it, which were there before."""
    hints: tuple[Message, ...] = ()
    for message in messages:
        if message.role is not Role.SYSTEM:
            yield from hints
            hints = ()
        parts, end = message.parts, len(message.parts)
        least = end if message.role is Role.ASSISTANT else 1
        while end > least and type(part := parts[end - 1]) is TextPart and asks_again(part.text):
            end -= 1
        hints += tuple(Message(Role.USER, (part,)) for part in parts[end:])
        yield message if end == len(parts) else message._replace(parts=parts[:end])
    yield from hints


def _kind(message: Message) -> ItemKind:
    if message.role is Role.ASSISTANT:
        return ItemKind.ASSISTANT
    # Messages, Gemini and Converse send results under the user's role.
    if message.role is Role.TOOL or any(isinstance(part, ToolResultPart) for part in message.parts):
        return ItemKind.RESULTS
    return ItemKind.SYSTEM if message.role is Role.SYSTEM else ItemKind.USER


_CHANCE = 8
"""The smallest number of characters of a cut answer that is searched in other prompts. A shorter one may match by
chance: `Write` + `a`, `Write about`."""


def split_prompts(exchanges: Sequence[Exchange], group: Sequence[int]) -> dict[int, Request]:
    """Exchange -> its request, in which earlier answers are messages of their own, for the formats in which a history
    is one text. A prompt that begins with another prompt and its answer continues that one. A request with several
    prompts continues none."""
    requests = {index: request for index in group if (request := exchanges[index].request) is not None
                and request.messages and wire(exchanges[index].api).history == "prompt"
                and [message.text for message in request.messages if message.role is Role.USER and message.text]
                == [request.messages[-1].text]}
    prompts = {index: squeeze(request.messages[-1].text) for index, request in requests.items()}
    answers = {index: text for index in requests if (text := exchanges[index].response.text)
               and (len(squeeze(text)) >= _CHANCE or exchanges[index].response.stop_reason.normalized in _FINISHED)}
    known = [(prompts[index] + squeeze(text), False, index) for index, text in answers.items()]
    split: dict[int, Request] = {}
    begun: list[tuple[str, int]] = []  # a stack of prompts with their answers: each begins with the one before it
    for text, is_prompt, index in sorted([*known, *((prompt, True, index) for index, prompt in prompts.items())]):
        while begun and not text.startswith(begun[-1][0]):
            begun.pop()
        if not is_prompt:
            begun.append((text, index))
        elif begun and _beside(requests[index]) == _beside(requests[begun[-1][1]]):
            before, parent = begun[-1]
            added = _end_of(requests[index].messages[-1].text, len(text) - len(before))
            messages = (*split.get(parent, requests[parent]).messages,
                        Message(Role.ASSISTANT, (TextPart(answers[parent]),)),
                        *([Message(Role.USER, (TextPart(added),))] if added else []))
            split[index] = replace(requests[index], messages=messages)
    return split


def _beside(request: Request) -> list[MessagePart]:
    """The parts of a prompt other than its text, such as images."""
    return [part for part in request.messages[-1].parts if type(part) is not TextPart]


def _end_of(text: str, size: int) -> str:
    """The end of a text, with `size` characters that are not white space."""
    places = [match.start() for match in re.finditer(r"\S", text)]
    return text[places[-size] :] if size else ""


def squeeze(text: str) -> str:
    """Text without any white space, for comparing."""
    return "".join(text.split())


# -- Ids that tell one call from those of other conversations ---------------------------------------------------------

_RUN = re.compile(r"[A-Za-z0-9]{8,}")
_LETTERS = re.compile(r"[A-Za-z]+")
_TURN = re.compile(r"[a-z][A-Z]")


def are_distinctive(names: tuple[str | None, ...]) -> bool:
    """Whether there are ids, and all of them are distinctive."""
    return bool(names) and all(name is not None and _is_distinctive(name) for name in names)


def _is_distinctive(name: str) -> bool:
    """Whether an id is distinctive: a run of 8 characters with a digit, or letters with three changes to capitals.
    Others (`0`, `call_1`, `functions.read:0`) do not identify a call among several conversations."""
    return any(any(char.isdigit() for char in run) for run in _RUN.findall(name)) or any(
        len(_TURN.findall(letters)) >= 3 for letters in _LETTERS.findall(name))


# -- Exchanges on their way through threading --------------------------------------------------------------------------

# A block by a filter and a pause are complete ends: no part of such an answer is requested again.
_FINISHED = frozenset({Stop.END_TURN, Stop.TOOL_CALL, Stop.SAFETY_BLOCKED, Stop.PAUSED})
FAILED = frozenset({Stop.ERROR, Stop.INTERRUPTED, Stop.CANCELLED})


@dataclass(slots=True, eq=False, repr=False)
class SeatedExchange:
    """An exchange while it is assigned to a turn, without its history: long ones take much memory."""

    index: int
    exchange: Exchange
    node: int
    """The node of the exchange's whole history."""
    length: int
    when: float
    text: str
    calls: tuple[ToolCall, ...]
    cut: bool
    """Whether the answer did not end cleanly, a call in it is not complete JSON, or its output cap was reached."""
    failed: bool
    chain_text: str = ""
    """The joined text of the chain of continuations that ends with this answer."""
    base: int = 0
    """The node before the chain of continuations that ends with this answer."""
    tokens: set[str] | None = None
    """Values that are unique to the answer, once they are looked up."""
    turn: int = -1
    next_index: int | None = None
    """The exchange that continues this one in the same turn."""
    identity: tuple[object, ...] = ()
    """Wire format, host, model and system text, which are equal, like the history, in a repeated request."""

    @property
    def is_paused(self) -> bool:
        """Whether the provider waits for the client."""
        return self.exchange.response.stop_reason.normalized is Stop.PAUSED

    @property
    def is_refused(self) -> bool:
        """Whether the model or a filter refused to answer."""
        return self.exchange.response.stop_reason.normalized is Stop.SAFETY_BLOCKED

    @property
    def is_empty(self) -> bool:
        """Whether the answer has nothing for its reader and no call, even if its word asks for one."""
        return not (has_calls(self.exchange.response) or has_content(self.exchange.response))

    @property
    def is_silent(self) -> bool:
        """Whether the answer ended, but is empty."""
        return self.exchange.response.stop_reason.normalized in FINISHED and self.is_empty

    @property
    def is_lost(self) -> bool:
        """Whether the exchange failed without output, so that nothing can continue it."""
        return self.exchange.response.error is not None and not self.text and not self.calls

    @property
    def call_cut(self) -> bool:
        """Whether a call was cut, even if nothing of it was received."""
        return bool(self.cut_calls) or self.exchange.response.stop_reason.normalized is Stop.MALFORMED_TOOL_CALL

    @property
    def cut_calls(self) -> tuple[ToolCall, ...]:
        """All calls of a cut answer, because a cut batch is unfinished as a whole; else none."""
        return self.calls if self.cut else ()


def seat(index: int, exchange: Exchange, history: History, when: float) -> SeatedExchange:
    """An exchange with the facts that are needed to assign it to a turn."""
    response, request = exchange.response, exchange.request
    calls, text = response.tool_calls, response.text or ""
    word = response.stop_reason.normalized
    cut = word not in _FINISHED or any(map(_is_unparseable, calls)) or cut_at_cap(response, request) is not None
    model = request.model if request is not None else None
    identity = (exchange.api, host_of(exchange.url), model, history.system)
    return SeatedExchange(
        index, exchange, history.node, len(history.items), when, text, calls, cut, word in FAILED, text, history.node,
        identity=identity)


def _is_unparseable(call: ToolCall) -> bool:
    if call.kind is not CallKind.FUNCTION or call.form is not ArgsForm.STRING or not call.arguments:
        return False
    try:
        return not isinstance(from_json(call.arguments.encode()), dict)
    except (ValueError, TypeError):  # a lone surrogate is not text to the parser
        return True

"""Which recorded exchange another one follows: an index of requests and answers, asked with a later history.

An answer is looked for where its own request ended: the same history up to there, then what was answered. Evidence is
taken strongest first (the answer word for word, without the ids of calls, its calls alone, its text alone, the same
text continued). Nothing here decides between several that fit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic_core import from_json

from inspector.sessions.items import History, HistoryItem, HistoryTree, ItemKind, response_calls, response_text, squeeze
from inspector.sessions.recording import Exchange
from inspector.sessions.traffic import host_of
from loop_core.judge.classify import cut_at_cap
from loop_core.values import ArgsForm, CallKind, ReasoningPart, Stop, ToolCall

_FINISHED = frozenset({Stop.END_TURN, Stop.TOOL_CALL, Stop.SAFETY_BLOCKED, Stop.PAUSED})
_FAILED = frozenset({Stop.ERROR, Stop.INTERRUPTED, Stop.CANCELLED})
_RUN = re.compile(r"[A-Za-z0-9]{8,}")
_LETTERS = re.compile(r"[A-Za-z]+")
_TURN = re.compile(r"[a-z][A-Z]")
_TELLING_TEXT = 16
_END = 128
"""Characters, white space left out, by which both ends of a long text are compared when its middle is not there."""


@dataclass(slots=True, eq=False, repr=False)
class SeatedExchange:
    """An exchange on its way through threading."""

    index: int
    exchange: Exchange
    history: History
    when: float
    text: str
    calls: tuple[ToolCall, ...]
    cut: bool
    """It did not end cleanly, a call in it is no complete JSON, or its budget was spent."""
    failed: bool
    joined: str = ""
    """The text of the chain of continuations that it ends."""
    base: int = 0
    """The node before that chain."""
    turn: int = -1
    followed: int | None = None
    """The exchange that goes on from this one in the same turn."""
    identity: tuple[object, ...] = ()
    """What must be equal in a request that is sent again, beside its history."""

    @property
    def paused(self) -> bool:
        """Whether the provider waits for the client."""
        return self.exchange.response.stop_reason.normalized is Stop.PAUSED

    @property
    def lost(self) -> bool:
        """Whether it failed and said nothing, so that there is nothing to go on from."""
        return self.exchange.response.error is not None and not self.text and not self.calls

    @property
    def call_cut(self) -> bool:
        """Whether it was a call that the cut hit, though nothing of it may be left."""
        return bool(self.cut_calls) or self.exchange.response.stop_reason.normalized is Stop.MALFORMED_TOOL_CALL

    @property
    def cut_calls(self) -> tuple[ToolCall, ...]:
        """The calls of a batch that was cut: all of them, since a cut batch is unfinished as a whole."""
        return self.calls if self.cut else ()


class ParentMatch(NamedTuple):
    """Exchanges that fit as the parent, the item of the later history that shows it, and how."""

    candidates: Sequence[SeatedExchange]
    item: int
    why: str


def _tokens(parts: Iterable[object]) -> set[str]:
    """What a provider gives with one answer and with no other: signatures, encrypted reasoning, ids of items."""
    found: set[str] = set()
    for part in parts:
        if type(part) is ToolCall or type(part) is ReasoningPart:
            data = part.data if type(part) is ReasoningPart else None
            found.update(_mark(token) for token in (part.signature, part.item_id, data) if token)
    return found


_URL_SAFE = str.maketrans("-_", "+/")
_MARK = 48
"""Characters of a signature that tell it from all others; a recorder may have left out the rest."""


def _mark(token: str) -> str:
    """The beginning of a token in the common alphabet of base64: Google's client sends the other one back."""
    return token[:_MARK].translate(_URL_SAFE)


def seated(index: int, exchange: Exchange, history: History, when: float) -> SeatedExchange:
    """An exchange, with what threading asks of it."""
    response, request = exchange.response, exchange.request
    calls, text = response_calls(response.parts), response_text(response.parts)
    word = response.stop_reason.normalized
    cut = word not in _FINISHED or any(map(_unparsed, calls)) or cut_at_cap(response, request) is not None
    model = request.model if request is not None else None
    identity = (exchange.api, host_of(exchange.url), model, history.system)
    return SeatedExchange(
        index, exchange, history, when, text, calls, cut, word in _FAILED, text, history.node, identity=identity
    )


def _unparsed(call: ToolCall) -> bool:
    if call.kind is not CallKind.FUNCTION or call.form is not ArgsForm.STRING or not call.arguments:
        return False
    try:
        return not isinstance(from_json(call.arguments), dict)
    except (ValueError, TypeError):  # a lone surrogate is no text to the parser
        return True


class Index:
    """The exchanges met so far, by their requests and by their answers."""

    def __init__(self, tree: HistoryTree) -> None:
        self.tree = tree
        self.ids: defaultdict[str, list[SeatedExchange]] = defaultdict(list)
        self._requests: defaultdict[tuple[object, ...], list[SeatedExchange]] = defaultdict(list)
        self._tokens: defaultdict[tuple[object, ...], list[SeatedExchange]] = defaultdict(list)
        self._unrecorded: defaultdict[int, list[SeatedExchange]] = defaultdict(list)
        self._beginnings: defaultdict[tuple[int, str], list[SeatedExchange]] = defaultdict(list)
        self._chains: defaultdict[int, list[SeatedExchange]] = defaultdict(list)
        self._answers: defaultdict[int, list[tuple[str, SeatedExchange]]] = defaultdict(list)
        self._keyed: defaultdict[int, tuple[int, dict[int, list[SeatedExchange]]]] = defaultdict(lambda: (0, {}))
        self._calls: defaultdict[tuple[str | None, ...], list[SeatedExchange]] = defaultdict(list)

    def add(self, one: SeatedExchange) -> None:
        """Makes an exchange findable."""
        history, response = one.history, one.exchange.response
        self._requests[(history.node, *one.identity)].append(one)
        if response.id:
            self.ids[response.id].append(one)
        if response.continuation_token:
            self._tokens[(history.node, response.continuation_token, *one.identity)].append(one)
        if not one.exchange.recorded:
            self._unrecorded[history.node].append(one)
        if one.text or one.calls or one.paused:
            self._answers[history.node].append((one.text, one))
            if history.items and history.items[-1].kind is ItemKind.ASSISTANT:
                self._answers[history.nodes[-2]].append((history.items[-1].text + one.text, one))
            if one.joined != one.text:
                self._answers[one.base].append((one.joined, one))
                self._chains[one.base].append(one)
        if one.calls:
            names = tuple([call.id for call in one.calls])
            if _telling(names):
                self._calls[names].append(one)

    def asked(self, node: int, identity: tuple[object, ...]) -> Sequence[SeatedExchange]:
        """The exchanges that sent exactly this request, in order."""
        return self._requests.get((node, *identity), ())

    def with_token(self, node: int, identity: tuple[object, ...], token: str) -> Sequence[SeatedExchange]:
        """The exchanges that sent exactly this request and were given this continuation token."""
        return self._tokens.get((node, token, *identity), ())

    def _at(self, node: int) -> dict[int, list[SeatedExchange]]:
        """The answers that followed the history of a node, by their keys; made when they are first looked for."""
        answers = self._answers[node]
        done, keyed = self._keyed[node]
        for text, one in answers[done:]:
            for key in self._keys(text, one.calls):
                held = keyed.setdefault(key, [])
                if not held or held[-1] is not one:
                    held.append(one)
            self._beginnings[node, squeeze(text)[:_TELLING_TEXT]].append(one)
        self._keyed[node] = (len(answers), keyed)
        return keyed

    def _keys(self, text: str, calls: tuple[ToolCall, ...]) -> list[int]:
        tree = self.tree
        keys = [tree.said(text, calls)]
        if calls:
            keys += [tree.said_loosely(text, calls), self._alone_key(calls), self._named_key(calls)]
            keys.append(self._text_key(text))
        return keys

    def _alone_key(self, calls: tuple[ToolCall, ...]) -> int:
        return self.tree.key(("alone", self.tree.said_loosely("", calls)))

    def _named_key(self, calls: tuple[ToolCall, ...]) -> int:
        return self.tree.key(("named", tuple((call.id, call.name) for call in calls)))

    def _text_key(self, text: str) -> int:
        return self.tree.key(("text", squeeze(text)))

    def find(self, history: History) -> ParentMatch | None:
        """The nearest exchange that a history contains, request and answer; None where it contains none."""
        last = True
        for number in range(len(history.items) - 1, -1, -1):
            item = history.items[number]
            if item.kind is not ItemKind.ASSISTANT:
                continue
            node = history.nodes[number]
            found = self._exact(item, node) if node in self._answers else None
            if found is None and last:
                found = self._by_ids(item) or self._related(item, node)
            if found is not None:
                return ParentMatch(found[0], number, found[1])
            last = False
        return None

    def _exact(self, item: HistoryItem, node: int) -> tuple[list[SeatedExchange], str] | None:
        answers = self._at(node)
        found = answers.get(item.key)
        if found:
            return found, "the history repeats its request and its answer"
        calls, text = item.calls, item.text
        found = [one for one in answers.get(self.tree.said_loosely(text, calls), ()) if _same_ids(one.calls, calls)]
        why = "the history repeats its request and its calls"
        if len(found) > 1 and calls:  # a client that shortened the text may have kept the ids
            said = self.tree.said_loosely("", calls)
            named = [one for one in answers.get(self._named_key(calls), ())
                     if all(call.id for call in calls) and self.tree.said_loosely("", one.calls) == said]
            if named:
                return named, why
        if found:
            return found, "the history repeats its request and its answer, but for the ids of calls"
        if calls:
            tell = _telling(tuple(call.id for call in calls))
            found = [one for one in answers.get(self._named_key(calls), ()) if tell or one.cut]
            if found:
                return found, why
            found = answers.get(self._alone_key(calls), []) if not text.strip() else []
            found = [one for one in found if _same_ids(one.calls, calls)]
            if found:
                return found, why
        if text.strip() and not calls:
            found = answers.get(self._text_key(text))
            if found:
                return found, "the history repeats its request and its text, without its calls"
        return None

    def _by_ids(self, item: HistoryItem) -> tuple[list[SeatedExchange], str] | None:
        names = tuple(call.id for call in item.calls)
        if not _telling(names):
            return None
        said = self.tree.said_loosely("", item.calls)
        found = [one for one in self._calls.get(names, ()) if self.tree.said_loosely("", one.calls) == said]
        return (
            (found, f"the id {names[0]} of its call names it, though the history before was edited") if found else None
        )

    def _related(self, item: HistoryItem, node: int) -> tuple[list[SeatedExchange], str] | None:
        """Exchanges that asked the same, where the history's answer is theirs continued, shortened, or not recorded."""
        if node in self._unrecorded:
            return self._unrecorded[node], "the history continues its request; what it answered was not recorded"
        said = squeeze(item.text)
        if len(said) < _TELLING_TEXT or node not in self._answers:
            return None
        for one in reversed(self._chains.get(node, [])):  # joined by the client, its overlaps removed
            joined, last = squeeze(one.joined), squeeze(one.text)
            if said.startswith(joined[:_TELLING_TEXT]) and said.endswith(last[-_TELLING_TEXT:]):
                return [one], "the history repeats its request, and the answers up to its own as one text"
        for one in self._beginnings.get((node, said[:_TELLING_TEXT]), ()):
            text = squeeze(one.text)
            if said.startswith(text) if one.cut else text.startswith(said):
                return [one], "the history repeats its request and part of its answer"
            same_ends = said[:_END] == text[:_END] and said[-_END:] == text[-_END:]
            if len(said) > 2 * _END and same_ends and self._same_calls(one, item):
                return [one], "the history repeats its request and its answer, the middle of a long text left out"
        return None

    def _same_calls(self, one: SeatedExchange, item: HistoryItem) -> bool:
        said = self.tree.said_loosely
        return said("", one.calls) == said("", item.calls) and _same_ids(one.calls, item.calls)


def _same_ids(answered: tuple[ToolCall, ...], repeated: tuple[ToolCall, ...]) -> bool:
    """Whether the ids of equal calls may be the same, dropped or wrapped by the client: two that tell must agree."""
    return all(
        not _telling((one.id,))
        or not _telling((other.id,))
        or str(one.id) in str(other.id)
        or str(other.id) in str(one.id)
        for one, other in zip(answered, repeated, strict=True)
    )


def _telling(names: tuple[str | None, ...]) -> bool:
    return bool(names) and all(name is not None and _drawn(name) for name in names)


def _drawn(name: str) -> bool:
    """Whether an id has a run of 8 with a digit in it, or of letters that turn to capitals three times.

    One without (`0`, `call_1`, `functions.read:0`) does not name a call among several conversations.
    """
    return any(any(char.isdigit() for char in run) for run in _RUN.findall(name)) or any(
        len(_TURN.findall(letters)) >= 3 for letters in _LETTERS.findall(name))


def narrow(found: ParentMatch, child: SeatedExchange, ordered: bool) -> list[SeatedExchange]:
    """The candidates that fit best: signatures, the same server, model and system text, asked before the child."""
    left = list(found.candidates)
    if len(left) == 1:
        return left
    repeated = _tokens(part for message in child.history.items[found.item].messages for part in message.parts)
    tests: list[Callable[[SeatedExchange], bool]] = [
        lambda one: not repeated.isdisjoint(_tokens(one.exchange.response.parts)),
        lambda one: one.identity[:2] == child.identity[:2],
        lambda one: one.identity[2] == child.identity[2],
        lambda one: one.identity[3] == child.identity[3],
    ]
    if ordered:
        tests.append(lambda one: one.when < child.when)
    for test in tests:
        left = [one for one in left if test(one)] or left
    return left

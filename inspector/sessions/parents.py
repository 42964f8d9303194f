"""Finds the recorded exchange that another one follows (its parent).

A later history is searched for an earlier request followed by its answer. Evidence is tried from the strongest to the
weakest: the answer word for word, without the ids of calls, its calls alone, its text alone, the same text continued.
This module does not choose between equally good matches.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from inspector.sessions.histories import (
    FAILED,
    History,
    HistoryItem,
    HistoryTree,
    ItemKind,
    SeatedExchange,
    are_distinctive,
    squeeze,
)
from inspector.sessions.recording import Exchange
from loop_core.values import Message, ReasoningPart, Request, Role, TextPart, ToolCall
from loop_core.wire import wire
from loop_core.wire.body import word

_REMINDER = re.compile(r"\s*<system-reminder>(.*)</system-reminder>\s*", re.DOTALL)
_IDENTIFYING = 16  # the number of characters, without white space, that identify an answer
_END = 128  # the number of characters, without white space, of each end of a text whose middle was left out

Key = TypeVar("Key")
Value = TypeVar("Value")


class ParentMatch(NamedTuple):
    """The exchanges that may be the parent, the index of the matching item of the later history, and why they match."""

    candidates: Sequence[SeatedExchange]
    item: int
    why: str


def _tokens(parts: Iterable[object]) -> set[str]:
    """Values that are unique to one answer: signatures, encrypted reasoning, ids of items."""
    found: set[str] = set()
    for part in parts:
        if type(part) is ToolCall or type(part) is ReasoningPart:
            data = part.data if type(part) is ReasoningPart else None
            found.update(_mark(token) for token in (part.signature, part.item_id, data) if token)
    return found


def _answer_tokens(one: SeatedExchange) -> set[str]:
    if one.tokens is None:  # stored, because equal requests are candidates of each other
        one.tokens = _tokens(one.exchange.response.parts)
    return one.tokens


def repeats_reasoning(item: HistoryItem, one: SeatedExchange) -> bool:
    """Whether an item of a history may follow the request of an exchange: if it is of an assistant, it must have the
    exchange's own reasoning, by a signature or an id, or word for word."""
    if item.kind is not ItemKind.ASSISTANT or not _item_tokens(item).isdisjoint(_answer_tokens(one)):
        return True
    parts = (part for message in item.messages for part in message.parts if type(part) is ReasoningPart)
    thought = squeeze("".join(part.text or "" for part in parts))
    return bool(thought) and thought == squeeze(one.exchange.response.reasoning_content or "")


def _item_tokens(item: HistoryItem) -> set[str]:
    return _tokens(part for message in item.messages for part in message.parts)


_URL_SAFE = str.maketrans("-_", "+/")
_MARK = 48
"""The number of characters that identify a signature. A recorder may have left out the rest."""


def _mark(token: str) -> str:
    """The beginning of a token in standard base64; Google's client sends it back in the URL-safe alphabet."""
    return token[:_MARK].translate(_URL_SAFE)


class Index:
    """An index of the exchanges so far, by their requests and by their answers."""

    def __init__(self, tree: HistoryTree) -> None:
        self.tree = tree
        self._ids: dict[str, list[SeatedExchange]] = {}
        self._requests: defaultdict[tuple[object, ...], dict[int, list[SeatedExchange]]] = defaultdict(dict)
        self._tokens: defaultdict[tuple[object, ...], list[SeatedExchange]] = defaultdict(list)
        self._unrecorded: defaultdict[int, list[SeatedExchange]] = defaultdict(list)
        self._beginnings: defaultdict[tuple[int, str], list[SeatedExchange]] = defaultdict(list)
        self._chains: defaultdict[int, list[SeatedExchange]] = defaultdict(list)
        self._answers: dict[int, list[tuple[str, SeatedExchange]]] = {}
        self._keyed: defaultdict[int, tuple[int, dict[int, list[SeatedExchange]]]] = defaultdict(lambda: (0, {}))
        self._calls: defaultdict[tuple[str | None, ...], list[SeatedExchange]] = defaultdict(list)
        self._identities: dict[tuple[object, ...], tuple[object, ...]] = {}

    def add(self, one: SeatedExchange) -> None:
        """Adds an exchange by its request, and by its id."""
        response = one.exchange.response
        one.identity = self._identities.setdefault(one.identity, one.identity)  # equal identities share one object
        _put(self._requests[one.identity], one.node, one)
        if response.id:
            _put(self._ids, response.id, one)
        if response.continuation_token:
            self._tokens[(one.node, response.continuation_token, *one.identity)].append(one)

    def add_answer(self, one: SeatedExchange, history: History) -> None:
        """Adds an exchange by its answer, for `find`."""
        if not one.exchange.recorded:
            self._unrecorded[one.node].append(one)
        if one.text or one.calls or one.is_paused or one.is_silent:
            _put(self._answers, one.node, (one.text, one))
            if history.items and history.items[-1].kind is ItemKind.ASSISTANT:
                # A prefill and its answer are one message in later histories.
                _put(self._answers, history.nodes[-2], (history.items[-1].text + one.text, one))
            if one.chain_text != one.text:
                # A client may also join the segments of a continued answer into one message.
                _put(self._answers, one.base, (one.chain_text, one))
                self._chains[one.base].append(one)
        if one.calls:
            names = tuple([call.id for call in one.calls])
            if are_distinctive(names):
                self._calls[names].append(one)

    def remove(self, one: SeatedExchange) -> None:
        """Removes the exchange that was added last, when its answer is no longer needed to find parents."""
        response = one.exchange.response
        self._requests[one.identity][one.node].pop()
        if response.id:
            self._ids[response.id].pop()
        if response.continuation_token:
            self._tokens[(one.node, response.continuation_token, *one.identity)].pop()

    def with_id(self, name: str | None) -> Sequence[SeatedExchange]:
        """The exchanges whose response has this id."""
        return self._ids.get(name or "", ())

    def same_requests(self, node: int, identity: tuple[object, ...]) -> Sequence[SeatedExchange]:
        """The exchanges with exactly this request, in order. Of a recorder's requests without any message (node 0)
        nothing shows that they are the same."""
        found = self._requests[identity].get(node, ())
        return found if node else [each for each in found if each.exchange.recorder is None]

    def requests_before(self, history: History, at: int, identity: tuple[object, ...]) -> Sequence[SeatedExchange]:
        """The exchanges with exactly the request before an item of a history. Claude Code sends its reminder about the
        session as a system message, and with a hint behind it at the end of the user's message."""
        found, tree = self.same_requests(history.nodes[at], identity), self.tree
        item = history.items[at - 1] if at else None
        if found or item is None or item.kind is not ItemKind.USER:
            return found
        *before, last = item.messages[0].parts
        words = _REMINDER.fullmatch(last.text) if before and type(last) is TextPart else None
        if words is None:
            return found
        parts = (Message(Role.USER, tuple(before)), Message(Role.SYSTEM, (TextPart(words[1]),)))
        return self.same_requests(tree.history(Request("", parts), history.nodes[at - 1]).node, identity)

    def with_token(self, node: int, identity: tuple[object, ...], token: str) -> Sequence[SeatedExchange]:
        """The exchanges with exactly this request whose answer has this continuation token."""
        return self._tokens.get((node, token, *identity), ())

    def _at(self, node: int) -> dict[int, list[SeatedExchange]]:
        """The answers that followed the history of a node, by key; built at its first use."""
        answers = self._answers.get(node, [])
        done, keyed = self._keyed[node]
        for text, one in answers[done:]:
            for key in self._keys(text, one.calls):
                owners = keyed.setdefault(key, [])
                if not owners or owners[-1] is not one:
                    owners.append(one)
            self._beginnings[node, squeeze(text)[:_IDENTIFYING]].append(one)
        self._keyed[node] = (len(answers), keyed)
        return keyed

    def _keys(self, text: str, calls: tuple[ToolCall, ...]) -> list[int]:
        tree = self.tree
        if not calls:
            return [tree.answer_key(text, calls)]
        return [tree.answer_key(text, calls), tree.loose_answer_key(text, calls), self._alone_key(calls),
                self._named_key(calls), self._text_key(text)]

    def _alone_key(self, calls: tuple[ToolCall, ...]) -> int:
        return self.tree.key(("alone", self.tree.loose_answer_key("", calls)))

    def _named_key(self, calls: tuple[ToolCall, ...]) -> int:
        return self.tree.key(("named", tuple((call.id, call.name) for call in calls)))

    def _named(self, calls: tuple[ToolCall, ...]) -> set[tuple[str, str, str]]:
        """The ids, names and arguments of the calls that have an id."""
        return {(call.id, call.name, self.tree.arguments(call)) for call in calls if call.id}

    def _text_key(self, text: str) -> int:
        return self.tree.key(("text", squeeze(text)))

    def find(self, history: History) -> ParentMatch | None:
        """The nearest exchange that a history contains, request and answer; None if it contains none."""
        last = last_answer(history)
        # From the end, because the history contains the parent's ancestors too, and the parent is the nearest.
        for number in range(last, -1, -1):
            item, node = history.items[number], history.nodes[number]
            if item.kind is not ItemKind.ASSISTANT:
                continue
            found = self._exact(item, node) if node in self._answers else None
            if found is None and number == last:
                found = self._by_ids(item) or self._in_parts(history, last) or self._find_related(item, node)
            if found is not None:
                return ParentMatch(found[0], number, found[1])
        return None

    def _exact(self, item: HistoryItem, node: int) -> tuple[list[SeatedExchange], str] | None:
        answers = self._at(node)
        if found := answers.get(item.key):
            return found, "the history repeats its request and its answer"
        calls, text = item.calls, item.text
        found = [one for one in answers.get(self.tree.loose_answer_key(text, calls), ()) if _same_ids(one.calls, calls)]
        why = "the history repeats its request and its calls"
        if len(found) > 1 and calls:  # ids may be unchanged where the client shortened the text
            calls_key = self.tree.loose_answer_key("", calls)
            named = [one for one in answers.get(self._named_key(calls), ())
                     if all(call.id for call in calls) and self.tree.loose_answer_key("", one.calls) == calls_key]
            if named:
                return named, why
        if found:
            return found, "the history repeats its request and its answer, but for the ids of calls"
        if calls:
            tell = are_distinctive(names := tuple(call.id for call in calls))
            found = [one for one in answers.get(self._named_key(calls), ()) if tell or one.cut]
            if not found and not text.strip():
                found = [one for one in answers.get(self._alone_key(calls), ()) if _same_ids(one.calls, calls)]
            if not found and tell:  # opencode renames a call that it cannot run: `invalid`; Haystack leaves it out
                found = [one for _, one in self._answers[node] if {call.id for call in one.calls}.issuperset(names)]
            if not found:  # Claude Code leaves out a call that a lost connection cut, and goes on with those before it
                kept, near = self._named(calls), self._answers[node][-64:]
                found = [one for _, one in near if one.cut and kept and self._named(one.calls) > kept]
            if not found:  # Google ADK reads calls out of markup in the text
                found = [one for said, one in self._answers[node][-64:] if not one.calls and all(
                    call.name in said and squeeze(call.arguments or "") in squeeze(said) for call in calls)]
            return (found, why) if found else None
        found = answers.get(self._text_key(text)) if text.strip() else None
        near = [] if found else self._answers[node][-64:]
        if words := text.rstrip():  # AI SDK 4 leaves out the word that was cut; Inspect has words for an empty answer
            found = found or [one for said, one in near if (one.cut and said.rsplit(None, 1)[:1] == [words]) or (
                one.is_silent and words == "(no content)")]
        if not found:  # smolagents writes calls as text, and gptme those that it could not read
            spelled = [(one, tuple(call.id for call in one.calls)) for _, one in near]
            found = [one for one, ids in spelled if are_distinctive(ids) and all(str(key) in text for key in ids)]
        if not found and (whole := squeeze(text)):  # Pydantic AI writes reasoning as text: `<think>`
            found = [one for said, one in near if whole.endswith(squeeze(said)) and (
                thought := squeeze(one.exchange.response.reasoning_content or "")) and thought in whole]
        return (found, "the history repeats its request and its text, without its calls or cut word") if found else None

    def _by_ids(self, item: HistoryItem) -> tuple[list[SeatedExchange], str] | None:
        key = self.tree.loose_answer_key
        # Mastra joins the steps of a turn into one message: the answer is then the last of its calls.
        for start in (0, *range(max(1, len(item.calls) - 64), len(item.calls))):
            calls = item.calls[start:]
            found = self._calls.get(tuple(call.id for call in calls), ())
            if found := [one for one in found if key("", one.calls) == key("", calls)]:
                return found, f"the id {calls[0].id} of its call names it, though the history before was edited"
        return None

    def _in_parts(self, history: History, last: int) -> tuple[list[SeatedExchange], str] | None:
        """The exchange whose calls the history has one by one, each with its result after it: ADK for JavaScript runs a
        call of a stream at once, and sends such a history. None if there is none."""
        text, calls = "", tuple[ToolCall, ...]()
        for number in range(last, max(-1, last - 128), -1):
            item, node = history.items[number], history.nodes[number]
            if item.kind is ItemKind.RESULTS:
                continue
            if item.kind is not ItemKind.ASSISTANT or not item.calls:
                return None
            text, calls = item.text + text, item.calls + calls
            if number < last and node in self._answers:
                whole = self._at(node).get(self.tree.loose_answer_key(text, calls), ())
                if found := [one for one in whole if _same_ids(one.calls, calls)]:
                    return found, "the history repeats its request and its answer, with the results between its calls"
        return None

    def _find_related(self, item: HistoryItem, node: int) -> tuple[list[SeatedExchange], str] | None:
        """The exchanges with the same request whose answer is continued, shortened or not recorded; None if none."""
        if node in self._unrecorded:
            return self._unrecorded[node], "the history continues its request; the answer to it was not recorded"
        item_text, key = squeeze(item.text), self.tree.loose_answer_key
        if len(item_text) < _IDENTIFYING or node not in self._answers:
            return None
        for one in reversed(self._chains.get(node, [])):  # the client may have removed overlaps when it joined them
            joined, last = squeeze(one.chain_text), squeeze(one.text)
            if item_text.startswith(joined[:_IDENTIFYING]) and item_text.endswith(last[-_IDENTIFYING:]):
                return [one], "the history repeats its request, and the answers up to its own as one text"
        for one in self._beginnings.get((node, item_text[:_IDENTIFYING]), ()):
            text = squeeze(one.text)
            # A client appends to a cut answer, and may shorten a whole one.
            if item_text.startswith(text) if one.cut else text.startswith(item_text):
                return [one], "the history repeats its request and part of its answer"
            same_ends = item_text[:_END] == text[:_END] and item_text[-_END:] == text[-_END:]
            if (len(item_text) > 2 * _END and same_ends and key("", one.calls) == key("", item.calls)
                    and _same_ids(one.calls, item.calls)):
                return [one], "the history repeats its request and its answer, the middle of a long text left out"
        return None


def _put(table: dict[Key, list[Value]], key: Key, value: Value) -> None:
    """Adds a value to those of a key. Most keys have one value, so lists begin without spare capacity."""
    found = table.get(key)
    if found is None:
        table[key] = [value]
    else:
        found.append(value)


def _same_ids(calls: tuple[ToolCall, ...], repeated: tuple[ToolCall, ...]) -> bool:
    """Whether the ids of equal calls are compatible: if both are distinctive, one must contain the other, because
    clients wrap ids, or the id of the call's item; ids that are missing or not distinctive are compatible with any."""
    return all(
        not (are_distinctive((one.id,)) and are_distinctive((other.id,))) or str(one.id) in str(other.id)
        or str(other.id) in str(one.id) or other.id == one.item_id
        for one, other in zip(calls, repeated, strict=True)
    )


def name_answers(exchanges: Sequence[Exchange], group: Sequence[int], times: Mapping[int, float]) -> dict[int, Request]:
    """Exchange -> its request, with the id of the answer that it continues where the server keeps the history: the last
    of its `conversation` (Responses), or the only earlier one with the calls of its results if it repeats no answer."""
    results: list[tuple[int, Request, tuple[str | None, ...]]] = []
    found: dict[int, Request] = {}
    last: dict[str | None, tuple[float, str]] = {}
    for when, index in sorted((times.get(each, 0.0), each) for each in group):
        request, response = exchanges[index].request, exchanges[index].response
        if request is None or request.previous_id is not None or exchanges[index].recorder is not None:
            continue
        held = request.extra.get("conversation") if wire(request.api).chained(request) else None
        name = word(held.get("id") if isinstance(held, Mapping) else held)
        if name in last and 0 < last[name][0] < when:  # without times the order of a file proves nothing
            found[index] = replace(request, previous_id=last[name][1])
        elif not any(message.role is Role.ASSISTANT for message in request.messages):
            names = tuple(result.call_id for message in request.messages for result in message.results)
            results += [(index, request, names)] if are_distinctive(names) else []
        if name and response.id and response.stop_reason.normalized not in FAILED:
            last[name] = when, response.id
    owners: dict[str | None, dict[str, int]] = {}
    """Id of a call -> the ids of the responses that have it, each with its first exchange."""
    for index, call in ((each, call) for each in group if results for call in exchanges[each].response.tool_calls):
        owners.setdefault(call.id, {}).setdefault(exchanges[index].response.id or "", index)
    for index, request, names in results:
        first, *others = [owners.get(each, {}) for each in names]
        ids = [each for each, owner in first.items() if each and all(each in other for other in others)
               and owner != index and times.get(owner, 0.0) <= times.get(index, 0.0)]
        found |= {index: replace(request, previous_id=ids[0])} if len(ids) == 1 else {}
    return found


def narrow(match: ParentMatch, child: SeatedExchange, history: History, ordered: bool) -> list[SeatedExchange]:
    """The candidates that match best: the same session, signatures, server, model, system text, and an earlier time."""
    if len(left := list(match.candidates)) == 1:
        return left
    repeated = _item_tokens(history.items[match.item])
    # `identity` is wire format, host, model and system text, in the order of `seat`.
    tests: list[Callable[[SeatedExchange], bool]] = [
        lambda one: one.exchange.session == child.exchange.session,
        lambda one: not repeated.isdisjoint(_answer_tokens(one)),
        lambda one: one.identity[:2] == child.identity[:2],
        lambda one: one.identity[2] == child.identity[2],
        lambda one: one.identity[3] == child.identity[3],
    ]
    if ordered:
        tests.append(lambda one: one.when < child.when)
    for test in tests:
        # A test that no candidate passes is ignored, because not every client sends such data back.
        left = [one for one in left if test(one)] or left
    # Where a client sends empty answers back, the later ones follow a longer history than the first.
    if ordered and len({(one.turn, None if one.is_silent else one.node) for one in left}) == 1:
        left = [max(left, key=lambda one: one.when)]  # a repeated request got an equal answer, which took its place
    return left


def last_answer(history: History) -> int:
    """The index of the last assistant item; -1 if there is none."""
    return next((n for n in range(len(history.items) - 1, -1, -1) if history.items[n].kind is ItemKind.ASSISTANT), -1)

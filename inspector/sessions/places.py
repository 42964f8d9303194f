"""Finds the place of an exchange in its turn, by the items that its history adds after the answer of its parent, and
the results among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inspector.sessions import wordings
from inspector.sessions.histories import History, HistoryItem, ItemKind, SeatedExchange
from inspector.sessions.parents import last_answer
from inspector.sessions.reasons import quotes_parser
from inspector.sessions.recording import Exchange, TurnPlace
from loop_core.json_parser import from_json
from loop_core.judge.endings import is_unread
from loop_core.turn.continuation import repeats_request
from loop_core.values import BREAKS, FINISHED, Message, Role, Stop, ToolCall, ToolResultPart

_FOR_STREAMS = frozenset({"stream", "stream_options"})
"""The members of a request that ask for a stream."""
_QUOTE = 24
"""The characters at the end of a cut text, without white space, that a continuation must repeat."""


class PlaceEvidence(NamedTuple):
    """A place, and the evidence for it."""

    place: TurnPlace
    why: str


def tail_of(history: History) -> tuple[HistoryItem, ...]:
    """The items of the history after its last assistant item."""
    return history.items[last_answer(history) + 1 :]


def new_message(history: History) -> int:
    """The index of the last user item after the last answer, if possible not a hint of the client; -1 if there is
    none."""
    items = history.items
    typed = [n for n in range(last_answer(history) + 1, len(items)) if items[n].kind is ItemKind.USER]
    return max((n for n in typed if wordings.asks_again(items[n].text) is None), default=typed[-1] if typed else -1)


def opening(history: History) -> int:
    """The index of the user item that began the current turn; -1 if there is none. Neither a known hint nor a message
    right after tool results (steering) begins a turn."""
    items = history.items
    user_items: list[int] = []  # the user items since the item that the walk has not reached yet, the last one first
    for number in range(len(items) - 1, -1, -1):
        kind = items[number].kind
        if kind is ItemKind.USER:
            user_items.append(number)
        elif kind is not ItemKind.SYSTEM:
            for at in user_items if kind is not ItemKind.RESULTS else ():
                if wordings.known_hint(items[at].text, call=False) is None:
                    return at
            user_items = []
    return user_items[0] if user_items else -1


def is_output(item: HistoryItem) -> bool:
    """Whether an item is a tool's result, or a model's text or call; reasoning alone is none of them."""
    return item.kind is ItemKind.RESULTS or (item.kind is ItemKind.ASSISTANT and bool(item.text or item.calls))


def first_text(items: Sequence[HistoryItem]) -> str:
    """The text of the first item that has one, which reasoning alone has not."""
    return next((item.text for item in items if item.text), "")


def place(tail: Sequence[HistoryItem], parent: SeatedExchange | None) -> PlaceEvidence:
    """The place of an exchange whose history adds `tail` to its parent's answer, or to its parent's request."""
    # Codex CLI sends no more than the reasoning back.
    if tail and tail[0].kind is ItemKind.ASSISTANT and not is_output(tail[0]):
        tail = tail[1:]
        if not tail:
            return PlaceEvidence(TurnPlace.RETRY, "the same request again, with the reasoning of an answer that broke")
    if not tail:
        return _prefill(parent) if parent is None or parent.exchange.recorder is None else _at_once(parent)
    if any(item.kind is ItemKind.RESULTS for item in tail):
        return _results(tail, parent)
    text = "\n".join(item.text for item in tail)
    if parent is not None and repeats_request(text):
        return PlaceEvidence(TurnPlace.CONTINUATION, "a hint of this loop that asks for the last words again")
    if parent is not None and _lacks_call(parent) and (hint_name := wordings.asks_again(text)) is not None:
        return PlaceEvidence(TurnPlace.REPAIR, f"after a missing call: a known hint ({hint_name})")
    if parent is not None and (parent.cut or parent.is_paused or parent.is_silent) and not parent.is_lost:
        last = tail[-1].text if all(item.text.startswith("<") for item in tail[:-1]) else text  # `<thinking>`, quoted
        hint_name = wordings.asks_again(last) if parent.is_silent else wordings.known_hint(text, parent.call_cut)
        hint = (f"a known hint ({hint_name})" if hint_name is not None else
                "it repeats the end of the cut text" if _quotes_end(text, parent.chain_text) else
                "a system message alone" if all(item.kind is ItemKind.SYSTEM for item in tail) else "")
        if hint:
            return _after_cut(parent, hint)
    if parent is not None and parent.is_refused and wordings.asks_again(text) == "answer_of_no_use":
        return PlaceEvidence(TurnPlace.NUDGE, "after a refusal: a message that says so")
    if parent is not None and parent.calls and wordings.begins_as_result(text):
        return PlaceEvidence(TurnPlace.TOOL_RESULT, "tool results are sent back as a text")
    typed = any(item.kind is ItemKind.USER for item in tail)
    return PlaceEvidence(TurnPlace.REQUEST, "a new user message" if typed else "a new request")


def _prefill(parent: SeatedExchange | None) -> PlaceEvidence:
    if parent is None:
        return PlaceEvidence(TurnPlace.REQUEST, "the request ends with assistant text to be continued")
    if parent.is_paused:
        return PlaceEvidence(TurnPlace.RESUME, "the paused answer is sent back as it was")
    if parent.is_silent:
        return PlaceEvidence(TurnPlace.RETRY, "the empty answer is sent back as it was")
    return PlaceEvidence(TurnPlace.CONTINUATION, "the request ends with the answer's own text, to be continued")


def _at_once(parent: SeatedExchange) -> PlaceEvidence:
    """The place of an answer directly after another one in a transcript, by the end of the first."""
    if parent.is_paused:
        return PlaceEvidence(TurnPlace.RESUME, "the answer after a pause")
    if parent.failed:
        return PlaceEvidence(TurnPlace.RETRY, "the next answer, at once after a failure")
    if parent.is_refused:
        return PlaceEvidence(TurnPlace.RETRY, "the next answer, at once after a refusal")
    if parent.calls:
        return PlaceEvidence(TurnPlace.TOOL_RESULT, "the next answer; the results of the calls were not recorded")
    return PlaceEvidence(TurnPlace.CONTINUATION, "the next answer follows at once; the request was not recorded")


def _results(tail: Sequence[HistoryItem], parent: SeatedExchange | None) -> PlaceEvidence:
    results = [result for item in tail for result in item.results]
    calls = {} if parent is None else {call.id: call for call in parent.cut_calls}
    for result in results if calls else ():
        call = calls.get(result.call_id)
        wording = wordings.cut_result(result.text) or wordings.refused_arguments(result, call and call.name)
        if wordings.is_error(result) or wording is not None or (call and quotes_parser(result.text, call)):
            return PlaceEvidence(TurnPlace.REPAIR, f"the result of a cut call reports it ({wording or 'an error'})")
    beside = ", with a user message" if any(item.kind is ItemKind.USER for item in tail) else ""
    return PlaceEvidence(TurnPlace.TOOL_RESULT, f"tool results are sent back{beside}")


def _quotes_end(text: str, cut: str) -> bool:
    """Whether `text` repeats the end of the text that was cut."""
    end = "".join(cut.split())[-_QUOTE:]  # without white space: models and agents change it
    return len(end) == _QUOTE and end in "".join(text.split())


def _lacks_call(parent: SeatedExchange) -> bool:
    """Whether the answer's word asks for tools, and it has a text, but no call. The text is whole, so that only the
    constants of agents show that it was of no use: a user's own words may ask for a function, too."""
    return parent.exchange.response.stop_reason.normalized is Stop.TOOL_CALL and not (parent.calls or parent.is_silent)


_ENDS_WITHOUT_TEXT = FINISHED | {Stop.MAX_TOKENS, Stop.SAFETY_BLOCKED}
"""The stop words of an answer that ended, perhaps before its text began."""


def is_of_no_use(one: SeatedExchange) -> bool:
    """Whether an answer is broken or damaged, has neither a text nor a whole call, or no call although its word asks
    for tools."""
    response = one.exchange.response
    if response.stop_reason.normalized in _ENDS_WITHOUT_TEXT and one.is_empty:
        return True
    broke = response.transport_end in BREAKS  # perhaps after the stop reason: a client may take that for a failure
    return one.call_cut or broke or is_unread(response) or _lacks_call(one)


def follows_unchanged(last: SeatedExchange, one: SeatedExchange) -> bool:
    """Whether `one` is the same request, perhaps not as a stream, and known to be sent after the answer to `last` had
    ended. Else the same prompt may be another sample of an evaluation."""
    before = last.exchange
    return before.started is not None and before.duration_ms is not None and (
        one.when >= last.when + before.duration_ms * 1e6) and (
        _without_stream(before.request_json) == _without_stream(one.exchange.request_json))


def _without_stream(body: object) -> object:
    """A request's body without the members that ask for a stream: a client may ask for a whole answer after one."""
    return {name: body[name] for name in body if name not in _FOR_STREAMS} if isinstance(body, dict) else body


def _after_cut(parent: SeatedExchange, hint: str) -> PlaceEvidence:
    act, end = ((TurnPlace.RESUME, "a pause") if parent.is_paused else
                (TurnPlace.REPAIR, "a cut call") if parent.call_cut else
                (TurnPlace.NUDGE, "an empty answer") if parent.is_silent else (TurnPlace.CONTINUATION, "a cut"))
    return PlaceEvidence(act, f"after {end}: {hint}")


# -- The results in a request ------------------------------------------------------------------------------------------


def results_in(exchange: Exchange, calls: Sequence[ToolCall] = ()) -> tuple[ToolResultPart, ...]:
    """The tool results at the end of a request, after its last assistant message; a text may stand for all of them. If
    the last of these messages have one by one the `calls` of an answer, also those between them."""
    messages = exchange.request.messages if exchange.request else ()
    last = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.ASSISTANT), -1)
    in_parts = last >= 0 and len(messages[last].tool_calls) < len(calls)
    begin = _begin_of(messages[: last + 1], calls) if in_parts else last
    found = tuple(part for message in messages[begin + 1 :] for part in message.results)
    if calls and not any(call.id for call in calls):  # Gemini CLI gives such calls ids of its own
        found = tuple(part._replace(call_id=None) for part in found)
    text = messages[last + 1].text if last + 1 < len(messages) else ""
    if found or not wordings.begins_as_result(text):
        return found
    return (ToolResultPart(None, None, text, is_error="error:" in text[:60].lower()),)


def _begin_of(messages: Sequence[Message], calls: Sequence[ToolCall]) -> int:
    """The index of the first of the last assistant messages that have together exactly these calls; without such
    messages, that of the last one."""
    made: list[tuple[str, object]] = []
    for at in range(len(messages) - 1, -1, -1):
        made[:0] = map(_call_key, messages[at].tool_calls)
        if len(made) >= len(calls) or (messages[at].role is Role.ASSISTANT and not messages[at].tool_calls):
            return at if made == [*map(_call_key, calls)] else len(messages) - 1
    return len(messages) - 1


def _call_key(call: ToolCall) -> tuple[str, object]:
    """The name of a call and its arguments, which a client parses and writes again."""
    try:
        return call.name, from_json((call.arguments or "{}").encode())
    except (ValueError, TypeError):
        return call.name, call.arguments

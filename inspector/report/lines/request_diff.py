"""Shows how a request changed the context of its conversation; `~` marks token counts estimated from a text's size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from inspector.report.facts import ResponseFacts, View
from inspector.report.lines.diff import MOST_SHOWN, change_line, equal, part_words
from inspector.report.lines.glyphs import DIFF_FORMS, forms_line
from inspector.report.lines.spans import (
    EMPTY,
    LABEL,
    Line,
    LineSheet,
    Span,
    Tone,
    count_of,
    field,
    in_words,
    join_groups,
    more,
    safe,
)
from inspector.report.run_answers import answers_of
from inspector.report.times_and_costs import BYTES_A_TOKEN, estimated_tokens, input_tokens
from inspector.sessions.recording import common_beginning
from loop_core.turn.quotation import shared_length
from loop_core.values import Message, OpaquePart, ReasoningPart, Request, Role, TextPart, ToolCall, tools_by_name

MOST = 60
"""The largest number of added or removed messages that are listed; the others are counted."""
VALUE = 60


def request_before(view: View, facts: ResponseFacts) -> ResponseFacts | None:
    """The response to the previous request of the conversation; None if none was recorded."""
    turn = view.turn_of(facts.step)
    link = facts.link
    if facts.is_made:
        earlier = [answer for step, answer in answers_of(view, turn.run.first, facts.step)]
        if earlier:
            return earlier[-1]
        link = view.responses[turn.responses[0]].link
    return None if link.parent is None else view.responses[link.parent]


def request_diff(view: View, facts: ResponseFacts) -> LineSheet:
    """The sheet that compares one request with the one before."""
    before, request = request_before(view, facts), facts.exchange.request
    head = f"Request of {facts.name} "
    against = f"against the request of {before.name}" if before is not None else "no request before it was recorded"
    lines: list[Line] = [(Span(head, Tone.TITLE), Span(against, Tone.DIM)), forms_line(DIFF_FORMS, "request"), EMPTY]
    if request is None:
        return LineSheet([*lines, (Span("the request was not recorded", Tone.WARN),)])
    old = before.exchange.request if before is not None else None
    change = ContextChange(0, 0, (), request.messages)
    if old is not None and not _adds_only(facts, request):
        change = context_change(old.messages, request.messages)
    gone, come = change.removed, change.added
    lines += [_before(facts, old, change), *_size(gone, come), *_measurement(before, facts)]
    if old is not None:
        lines += _settings(old, request)
    lines += _message_list(gone, "− ", Tone.REMOVED, None)
    lines += _message_list(come, "+ ", Tone.ADDED, before)
    return LineSheet(lines)


def _adds_only(facts: ResponseFacts, request: Request) -> bool:
    """Whether the messages of a request are only those since the answer before it."""
    return facts.exchange.recorder is not None or request.previous_id is not None


class ContextChange(NamedTuple):
    """How the messages of a request differ from those of the previous one."""

    prefix_length: int
    """The number of equal messages at the beginning."""
    same_after: int
    """The number of equal messages after the first difference."""
    removed: Sequence[Message]
    added: Sequence[Message]


def context_change(old: Sequence[Message], new: Sequence[Message]) -> ContextChange:
    """The removed and added messages; a message that stays in the same order is neither."""
    same = common_beginning(old, new, equal)
    one, other = old[same:], new[same:]
    if not one or not other:
        return ContextChange(same, 0, one, other)
    removed: list[Message] = []
    added: list[Message] = []
    # Without `autojunk`, which ignores frequent elements in sequences of 200 or more
    # (https://docs.python.org/3/library/difflib.html), since equal tool results are frequent in a long session.
    for what, first, last, begin, end in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if what != "equal":
            removed += one[first:last]
            added += other[begin:end]
    return ContextChange(same, len(one) - len(removed), removed, added)


def _before(facts: ResponseFacts, old: Request | None, change: ContextChange) -> Line:
    if facts.exchange.recorder is not None:
        note = "a transcript holds no requests: these are its rows since the answer before"
        return field("before", Span(note, Tone.DIM))
    if old is None:
        return field("before", Span("nothing to compare with: all of it is listed", Tone.DIM))
    request = facts.exchange.request
    if request is not None and _adds_only(facts, request):
        return field("before", Span("kept by the provider: the request goes on from its response by id", Tone.DIM))
    count = len(old.messages)
    # Providers cache the beginning of a request up to its first difference
    # (https://platform.openai.com/docs/guides/prompt-caching), so everything after a rewritten message costs the full
    # price.
    if change.prefix_length == count:
        return field("before", Span("kept: ", Tone.OK), Span(f"{count_of(count, 'message')} sent again, unchanged"))
    same = f"; {count_of(change.same_after, 'message')} after it unchanged" if change.same_after else ""
    return field("before", Span(f"REWRITTEN at message {change.prefix_length + 1:,} of {count:,}", Tone.WARN),
                 Span(f"{same}; a provider's cache can hold what comes before it, and nothing after it"))


def _size(removed: Sequence[Message], added: Sequence[Message]) -> list[Line]:
    lines: list[Line] = []
    for name, messages, role in (("removed", removed, Tone.REMOVED), ("added", added, Tone.ADDED)):
        if messages or name == "added":
            texts = [_text(message) for message in messages]
            tokens = count_of(sum(estimated_tokens(text) for text in texts), "token")
            guess = () if not messages else (
                (Span(f"~{tokens}", role), Span(f" estimated, {BYTES_A_TOKEN} bytes a token", Tone.DIM)),)
            size = count_of(sum(map(len, texts)), "character")
            count = Span(count_of(len(messages), "message"), role)
            lines.append(field(name, *join_groups([(count,), (Span(size),), *guess])))
    return lines


def _measurement(before: ResponseFacts | None, facts: ResponseFacts) -> list[Line]:
    """The tokens of the whole context, if the provider counted them."""
    now = input_tokens(facts.exchange)
    was = input_tokens(before.exchange) if before is not None else None
    if now is None:
        return [field("context", Span("its tokens were not reported", Tone.DIM))]
    parts: list[Line] = [(Span(count_of(now.total, "token")), Span(" measured by the provider", Tone.DIM))]
    if was is not None:
        grown = now.total - was.total
        sign = "+" if grown >= 0 else "−"
        parts[0] = (*change_line(f"{was.total:,}", count_of(now.total, "token")),
                    Span(f" ({sign}{abs(grown):,})", Tone.STRONG), Span(" measured by the provider", Tone.DIM))
    parts += [(Span(f"{count:,} {word}"),) for count, word in (
        (now.cached, "from the cache"), (now.written, "written to the cache")) if count]
    return [field("context", *join_groups(parts))]


def _settings(old: Request, new: Request) -> Iterator[Line]:
    one, other = _system(old), _system(new)
    if one != other:
        same = shared_length(one, other)
        yield field("system", Span("changed ", Tone.WARN), Span(f"from character {same:,} on", Tone.DIM))
        yield more(Span("− ", Tone.REMOVED), safe(one[same:] or "(nothing)", Tone.REMOVED, VALUE * 3))
        yield more(Span("+ ", Tone.ADDED), safe(other[same:] or "(nothing)", Tone.ADDED, VALUE * 3))
    yield from _tools(old, new)
    for name in ("model", "max_tokens", "tool_choice", "stream", "n"):
        if getattr(old, name) != getattr(new, name):
            yield field(name, *change_line(_value(getattr(old, name)), _value(getattr(new, name))))
    for name in sorted(old.extra.keys() | new.extra.keys()):
        if old.extra.get(name) != new.extra.get(name):
            change = change_line(_member(old.extra, name), _member(new.extra, name))
            yield field(safe(name, width=LABEL - 1).text, *change)


def _tools(old: Request, new: Request) -> Iterator[Line]:
    was, now = tools_by_name(old.tools), tools_by_name(new.tools)
    spans: list[Line] = [(safe(f"+ {name}", Tone.ADDED),) for name in now if name not in was]
    spans += [(safe(f"− {name}", Tone.REMOVED),) for name in was if name not in now]
    spans += [(safe(f"{name} changed", Tone.WARN),) for name in now if name in was and now[name] != was[name]]
    if spans:
        yield field("tools", *join_groups(spans))


def _system(request: Request) -> str:
    return "\n".join(message.text for message in request.messages if message.role is Role.SYSTEM)


def _value(value: Any) -> str:
    return "not set" if value is None else safe(in_words(value), width=VALUE).text


def _member(values: Mapping[str, Any], name: str) -> str:
    return safe(json.dumps(values[name], ensure_ascii=False), width=VALUE).text if name in values else "not set"


def _message_list(messages: Sequence[Message], mark: str, role: Tone, before: ResponseFacts | None) -> Iterator[Line]:
    for message in messages[:MOST]:
        text, tokens = _text(message), _answer_tokens(message, before)
        size = f"~{count_of(estimated_tokens(text), 'token')}" if tokens is None else count_of(tokens, "token")
        how = "" if tokens is None or before is None else f" measured: the answer of {before.name}"
        yield EMPTY
        yield (Span(mark, role), Span(f"{message.role.value} ", Tone.STRONG), Span(size),
               Span(f"{how} · {count_of(len(text), 'character')}", Tone.DIM))
        for part in message.parts:
            word, content = part_words(part)
            name = (safe(f"{word} ", Tone.DIM),) if word else ()
            yield (Span("│ ", Tone.RULE), *name, safe(content, width=MOST_SHOWN))
            if len(content) > MOST_SHOWN:
                yield (Span("│ ", Tone.RULE),
                       Span(f"{MOST_SHOWN} of {len(content):,} characters; all are in Wire, request"
                            f"{' of the response before' if role is Tone.REMOVED else ''}", Tone.DIM))
    if len(messages) > MOST:
        yield EMPTY
        yield (Span(f"{mark}… {count_of(len(messages) - MOST, 'message')} more", Tone.DIM),)


def _answer_tokens(message: Message, before: ResponseFacts | None) -> int | None:
    """The tokens that the provider counted for a message that repeats the previous answer unchanged; else None."""
    if before is None or message.role is not Role.ASSISTANT:
        return None
    answer = before.exchange.response
    calls = [(call.id, call.name) for call in answer.tool_calls]
    same = message.text == (answer.text or "") and [(call.id, call.name) for call in message.tool_calls] == calls
    return answer.usage.visible_tokens if same and answer.usage is not None else None


def _text(message: Message) -> str:
    """All text of a message with its calls and results, to measure its size."""
    return "".join(_part(part) for part in message.parts)


def _part(part: Any) -> str:
    if isinstance(part, (TextPart, ReasoningPart)):
        return part.text
    if isinstance(part, ToolCall):
        return f"{part.name}{part.arguments or ''}"
    return str(part.json) if isinstance(part, OpaquePart) else str(part.json or part.text)

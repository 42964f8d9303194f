"""From choices to one answer: which choices are read, the mapped reason, and what was strange about the whole.

Owns the rules that need the complete response; does not know framing or deltas.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from loop_core.frozen import replace
from loop_core.values import At, Evidence, ResponsePart, Severity, Stop, StopReason, ToolCall, Usage
from loop_core.wire.base import Mapped
from loop_core.wire.openai_chat.choice import Choice
from loop_core.wire.openai_chat.table import API, EARLIER, FILTERED, FILTERS, FINISHED, REFUSAL

Read = Callable[[str | None, At | None], StopReason]
Remark = tuple[str, str, At | None, Severity]


def pick(choices: Collection[Choice], n: int) -> list[Choice]:
    """The first choice; with it those that hold other kinds of content, where one answer was asked for (Copilot)."""
    ordered = sorted(choices, key=lambda choice: choice.index if type(choice.index) is int else len(choices))
    first = ordered[:1]
    if n != 1 or len(ordered) < 2:
        return first
    filled = [choice for choice in ordered if choice.fields]
    kinds = [kind for choice in filled for kind in choice.fields]
    if len(filled) < 2 or len(kinds) != len(set(kinds)):
        return first
    return [choice for choice in ordered if choice.fields or choice is ordered[0]]


def settle(read: Sequence[Choice], mapped: Read, rows: Mapping[str, Mapped]) -> tuple[StopReason, str | None]:
    """The mapped reason, and an earlier word that it had to be tightened by.

    Of several choices the first that is not cleanly finished speaks for all. A clean word gives way to a cut or failure
    that was reported before it, to a refusal (whose reason is `stop`), and to a filter that removed something.
    """
    if not read:
        return mapped(None, None), None
    stops = [mapped(choice.raw, choice.raw_at) for choice in read]
    spoken = next((i for i, stop in enumerate(stops) if stop.normalized not in FINISHED), 0)
    lead, stop = read[spoken], stops[spoken]
    if stop.normalized not in FINISHED:
        return stop, None
    for word, at in lead.earlier:
        before = mapped(word, at)
        if before.normalized not in FINISHED:
            return _tighter(stop, before.normalized, before.detail, f"{API}.earlier_reason", at, word), word
    for choice in read:
        for key, found, seen in _signs(choice):
            row = rows.get(key)
            if found and row is not None:
                return _tighter(stop, row.stop, row.detail, f"{API}.{key}", seen, ""), None
    return stop, None


def _signs(choice: Choice) -> Iterator[tuple[str, bool, At | None]]:
    yield REFUSAL, bool(choice.refusal), choice.refusal_at
    yield FILTERED, bool(choice.filtered), choice.filtered_at


def words(read: Sequence[Choice], earlier: str | None) -> dict[str, str]:
    """What the choices say about the end besides their reason."""
    found = {name: word for choice in reversed(read) for name, word in choice.words.items()}
    filtered = {name for choice in read for name in choice.filtered}
    if filtered:
        found[FILTERS] = ",".join(sorted(filtered))
    if earlier is not None:
        found[EARLIER] = earlier
    return found


def remarks(
    read: Sequence[Choice], parts: Sequence[ResponsePart], usage: Usage | None, empty: At | None
) -> Iterator[Remark]:
    """What is strange about the complete response; `empty` is the place of an empty `choices` that ended it."""
    if empty is not None:
        yield (f"{API}.empty_end", "the answer ends with an empty list of choices and without a finish reason", empty,
               Severity.WARNING)
    if any(choice.late for choice in read):
        yield (f"{API}.after_stop", "text or a piece of a call came after the finish reason", None, Severity.WARNING)
    calls = [part for part in parts if type(part) is ToolCall]
    ids = [call.id for call in calls if call.id is not None]
    if len(calls) - len(ids) > sum(choice.deprecated_call for choice in read):  # those have no id by their format
        at = next((call.at for call in calls if call.id is None), None)
        yield f"{API}.id_missing", "a tool call has no id", at, Severity.INFO
    if len(set(ids)) < len(ids):
        yield f"{API}.id_repeated", "several tool calls have the same id", None, Severity.WARNING
    thought, spent = (usage.reasoning_tokens or 0, usage.output_tokens) if usage else (0, None)
    if spent is not None and thought > spent:
        yield (f"{API}.usage_contradiction",
               f"{thought:,} reasoning tokens are reported, and only {spent:,} output tokens, which should hold them",
               None, Severity.WARNING)


def _tighter(stop: StopReason, word: Stop, detail: str | None, rule: str, at: At | None, note: str) -> StopReason:
    return replace(stop, normalized=word, detail=detail, evidence=(*stop.evidence, Evidence(rule, at, note)))

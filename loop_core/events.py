"""The structured events of seed 000, and the metrics folded from them.

An event is a flat record (a dict of plain values) that any logger takes. Records come out of moves of the machine;
nothing here has a clock: where times are not given, latency is absent and reported as not recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loop_core.arguments import parse
from loop_core.frozen import field, frozen
from loop_core.gate import Admission
from loop_core.limits import Spent
from loop_core.policy import Signal
from loop_core.turn import Effect, Event, Finish, Place, Responded, Send, State, Tick, Turn
from loop_core.values import Stop

Record = dict[str, Any]
NOT_RECORDED = "not recorded"


def emitted(before: Turn, event: Event, after: Turn, effects: Sequence[Effect]) -> tuple[Record, ...]:
    """The records of one move."""
    if type(event) is Tick and not effects and before.state is not State.REPAIR_PENDING and not before.repairing:
        return ()  # most moves: nothing was received, asked for or ended
    records: list[Record] = []
    if isinstance(event, Responded):
        records.append(_stop_reason_observed(after, event))
    asked = before.repairing and before.spent.repairs > 0
    if before.state is State.EVALUATE_STOP and asked and after.state is not State.RESUME:
        records.append(_repair(before, attempted=True, success=after.state is State.EXECUTE_TOOLS))
    if before.state is State.REPAIR_PENDING and after.signal is Signal.REPAIR_FAILED and before.spent.repairs == 0:
        records.append(_repair(after, attempted=False, success=False))
    for effect in effects:
        if isinstance(effect, Send) and effect.place is Place.CONTINUATION:
            records.append(_continuation_attempt(after))
        elif isinstance(effect, Finish) and _was_cut(after):
            records.append({**_who(after, "continuation_terminated"), "terminal_reason": effect.terminal,
                            "attempts": after.spent.continuations})
    return tuple(records)


def _was_cut(turn: Turn) -> bool:
    spent = turn.spent
    used = (spent.continuations, spent.repairs, spent.continuation_tokens, spent.continuation_chars,
            spent.thinking_only)
    return turn.terminal in _CUT_EXITS or any(used)


def _who(turn: Turn, name: str) -> Record:
    model = turn.evaluated.response.model if turn.evaluated else None
    return {"event": name, "turn_id": turn.id, "provider": turn.provider, "model": model or turn.request.model or ""}


def _stop_reason_observed(turn: Turn, event: Responded) -> Record:
    stop = event.judged.stop
    return {
        **_who(turn, "stop_reason_observed"),
        "normalized_reason": stop.normalized.value,
        "raw_reason": stop.raw,
        "iteration": turn.spent.requests,
    }


def _continuation_attempt(turn: Turn) -> Record:
    spent, limits, cap = turn.spent, turn.limits, turn.token_cap
    return {
        **_who(turn, "continuation_attempt"),
        "attempt": spent.continuations,
        "cumulative_output_tokens": spent.output_tokens,
        "cumulative_output_chars": spent.output_chars,
        "continuation_tokens": spent.continuation_tokens,
        "continuation_chars": spent.continuation_chars,
        "attempts_remaining": max(0, limits.continuation_max_attempts - spent.attempts),
        "tokens_remaining": None if cap is None else max(0, cap - spent.continuation_tokens),
        "chars_remaining": max(0, limits.continuation_max_output_chars - spent.continuation_chars),
    }


def _repair(turn: Turn, attempted: bool, success: bool) -> Record:
    held = [v for v in (turn.broken or (turn.evaluated.verdicts if turn.evaluated else ()))
            if v.admission is Admission.HELD]
    issue = parse(held[0].call.arguments).shape.value if held else "no_call"
    return {
        **_who(turn, "tool_payload_repair"),
        "parse_issue": issue,
        "repair_attempted": attempted,
        "repair_succeeded": success,
        "attempt": turn.spent.repairs,
    }


def unknown_words(records: Iterable[Record]) -> list[Record]:
    """The observations of unknown reasons, one for each provider, model and word: what a caller logs once."""
    seen: dict[tuple[str, str, str], Record] = {}
    for record in records:
        if record["event"] == "stop_reason_observed" and record["normalized_reason"] == Stop.UNKNOWN.value:
            seen.setdefault((record["provider"], record["model"], str(record["raw_reason"])), record)
    return list(seen.values())


Labels = tuple[str, str]
"""Provider and model."""


@frozen
class Metrics:
    """Seed 000's two counters and two histograms; values of a histogram are kept, so that any bucket can be made."""

    continuations: Mapping[Labels, int] = field(default_factory=dict)
    """Continuations triggered."""
    truncation_exits: Mapping[Labels, int] = field(default_factory=dict)
    """Turns that ended cut, by a guard or a budget."""
    attempts_per_turn: Mapping[Labels, tuple[int, ...]] = field(default_factory=dict)
    """Continuations of every turn that was cut."""
    latency_ms: Mapping[Labels, tuple[float, ...]] = field(default_factory=dict)
    """End-to-end time of continued turns, where it was recorded."""
    latency_missing: int = 0
    """Continued turns whose time was not recorded."""


_CUT_EXITS = frozenset({"retry_limit", "budget_exhausted", "repair_failed", "context_window_exceeded"})
"""Terminal reasons that only a cut turn has, even where no token and no character of it was counted."""

GUARDED_EXITS = frozenset(
    {"retry_limit", "budget_exhausted", "no_progress", "repair_failed", "context_window_exceeded"}
)
"""Terminal reasons that leave a truncated turn truncated."""


def fold(records: Iterable[Record], latencies: Mapping[str, float] | None = None) -> Metrics:
    """Metrics of any number of turns; `latencies` gives milliseconds by turn id, where they are known."""
    continuations: Counter[Labels] = Counter()
    exits: Counter[Labels] = Counter()
    attempts: dict[Labels, list[int]] = {}
    latency: dict[Labels, list[float]] = {}
    missing = 0
    for record in records:
        labels = (record["provider"], record["model"])
        if record["event"] == "continuation_attempt":
            continuations[labels] += 1
        elif record["event"] == "continuation_terminated":
            exits[labels] += record["terminal_reason"] in GUARDED_EXITS
            attempts.setdefault(labels, []).append(record["attempts"])
            took = (latencies or {}).get(record["turn_id"])
            if record["attempts"] and took is None:
                missing += 1
            elif record["attempts"] and took is not None:
                latency.setdefault(labels, []).append(took)
    return Metrics(
        dict(continuations),
        {labels: count for labels, count in exits.items() if count},
        {labels: tuple(values) for labels, values in attempts.items()},
        {labels: tuple(values) for labels, values in latency.items()},
        missing,
    )


def remaining(turn: Turn) -> tuple[tuple[str, str, int, int | None], ...]:
    """Spent against each of the four limits: name, short name, spent, limit (None where there is no bound)."""
    spent: Spent = turn.spent
    limits = turn.limits
    return (
        ("continuation_max_attempts", "attempts", spent.attempts, limits.continuation_max_attempts),
        ("continuation_max_total_completion_tokens", "cont_tokens", spent.continuation_tokens, turn.token_cap),
        ("continuation_max_output_chars", "cont_chars", spent.continuation_chars,
         limits.continuation_max_output_chars),
        ("continuation_tool_repair_attempts", "repairs", spent.repairs, limits.continuation_tool_repair_attempts),
    )

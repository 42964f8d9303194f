"""Describes policies: data that say what an agent loop does with each stop reason and tool call.

A policy says which word of a response is read, what each word leads to, which calls run, how an answer is continued and
how its seams are decided. `STRICT` is the engine's own; `presets` describes other systems. The functions at the end of
this module and the machine interpret a policy, which contains no code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from loop_core.errors import CallerError, check_kinds
from loop_core.judge.arguments import is_complete, parse_leniently
from loop_core.judge.classify import Judgement
from loop_core.judge.endings import SILENT, Ending
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.continuation import Method, SeamRule
from loop_core.values import CallKind, ChatResponse, Stop, ToolCall


class Signal(StrEnum):
    """A signal that moves the machine from one state to the next."""

    __hash__ = str.__hash__  # these are keys of hot tables, and Enum's own hash is a Python function

    PROVIDER_RESPONSE = "provider_response"
    END_TURN = "EndTurn"
    TOOL_CALL = "ToolCall"
    MAX_TOKENS = "MaxTokens"
    PARTIAL_CALL = "PartialToolCall"
    """A call has begun and is held, so it must be requested again."""
    ANCHOR_MISSING = "AnchorMissing"
    """A continuation that began with chatter, a refusal or a restart instead of the words to quote has ended."""
    PAUSED = "Paused"
    SAFETY_BLOCKED = "SafetyBlocked"
    CONTEXT_WINDOW_EXCEEDED = "ContextWindowExceeded"
    CANCELLED = "Cancelled"
    INTERRUPTED = "Interrupted"
    UNKNOWN = "Unknown"
    ERROR = "Error"
    STUCK = "NeverFinalized"
    """A call has begun, and the described loop never ends it: it waits forever, or shows a call that it cannot run."""
    UNDER_LIMITS = "under_limits"
    RETRY_LIMIT = "retry_limit"
    BUDGET_EXHAUSTED = "budget_exhausted"
    NO_PROGRESS = "no_progress"
    REPAIR_FAILED = "repair_failed"
    STEP_LIMIT = "step_limit"
    EMPTY = "EmptyAnswer"
    """The response ended without content, so it may be requested once more."""
    NO_ANSWER = "NoAnswer"
    """The response ended, and its content is not an answer."""
    CONTINUATION_REFUSED = "ContinuationRefused"
    """The server refused the way in which the rest was requested, so the next request uses another way."""
    REPAIR_REFUSED = "RepairRefused"
    TOOL_RESULTS = "tool_results_appended"
    RETURN_PARTIAL = "return_partial_with_notice"
    NOT_RECORDED = "not_recorded"


class Dispatch(StrEnum):
    """Which calls a loop considers runnable."""

    READY = "ready"
    """Calls that the gate does not hold; a rejected one is answered with an error and not run."""
    COMPLETE = "complete"
    """Calls whose arguments parse, whatever the stop reason says."""
    READABLE = "readable"
    """Calls that the gate does not hold, and calls with at least one argument that a lenient parser reads."""
    PRESENT = "present"
    """All calls of the response, read with a lenient parser."""


class BatchRule(StrEnum):
    """The effect of a call that may not run on the other calls of its response."""

    WHOLE = "whole"
    """No call of its batch runs, because a truncated batch is one unfinished batch."""
    EACH = "each"
    """The other calls of its batch run."""


class ReasonSource(StrEnum):
    """Which of the stop reasons (raw, mapped, effective) a loop follows."""

    EFFECTIVE = "effective"
    MAPPED = "mapped"
    """The provider's own word, mapped by the loop's own table if that has the word, else by the format's."""


class Promotion(NamedTuple):
    """A row: if a response with this stop word holds calls, the word is read as `tool_call`."""

    api: str
    """The wire format to which the row applies; `*` for any."""
    word: Stop
    complete: bool
    """Whether the row applies only if all calls are complete; otherwise any call is enough."""
    source: str
    but: str = "-"
    """The profile to which the row does not apply; `-` for none."""


Words = Mapping[tuple[str, str], Stop]
"""Wire format and native word -> stop reason, in a loop's own table."""

Signals = Mapping[Stop, tuple[Signal, Signal, Signal]]
"""Stop reason -> the signals for a response without calls, with calls that may not run, and with calls that may run."""


def same_signals(*words: Stop) -> Signals:
    """The rows of stop reasons that are signalled by their own name, whatever calls there are."""
    return {word: (Signal[word.name],) * 3 for word in words}


STRICT_SIGNALS: Signals = MappingProxyType({
    Stop.END_TURN: (Signal.END_TURN, Signal.PARTIAL_CALL, Signal.PARTIAL_CALL),
    Stop.TOOL_CALL: (Signal.END_TURN, Signal.PARTIAL_CALL, Signal.TOOL_CALL),
    Stop.MAX_TOKENS: (Signal.MAX_TOKENS, Signal.PARTIAL_CALL, Signal.PARTIAL_CALL),
    Stop.MALFORMED_TOOL_CALL: (Signal.PARTIAL_CALL, Signal.PARTIAL_CALL, Signal.PARTIAL_CALL),
    **same_signals(Stop.PAUSED, Stop.SAFETY_BLOCKED, Stop.CONTEXT_WINDOW_EXCEEDED, Stop.CANCELLED, Stop.INTERRUPTED,
                   Stop.UNKNOWN, Stop.ERROR),
})
"""The signals of the engine's own loop. `tool_call` without a call ends the turn, which would otherwise loop forever
(mastra PR #14187)."""

ENDING_SIGNALS: Mapping[Ending, Signal] = MappingProxyType({
    Ending.EMPTY_ANSWER: Signal.EMPTY,
    Ending.REASONING_ONLY: Signal.EMPTY,
    Ending.CALL_LEAKED: Signal.NO_ANSWER,
    Ending.NO_CALL: Signal.NO_ANSWER,
    Ending.COMMENTARY_ONLY: Signal.NO_ANSWER,
})
"""Ending -> the signal for an answer that only looks finished."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How one agent loop reads a response, and how it reacts."""

    name: str
    title: str
    """What the loop does, in one line."""
    cites: tuple[str, ...] = ()
    """The lines of the source that the policy follows, and how they were interpreted."""
    reads: ReasonSource = ReasonSource.EFFECTIVE
    """The stop reason that the loop follows."""
    words: Words = field(default_factory=dict)
    unlisted: Mapping[str, Stop] = field(default_factory=dict)
    """Wire format -> the stop reason of a native word that `words` does not list."""
    reason_map: Mapping[Stop, Stop] = field(default_factory=dict)
    """Stop reason -> the stop reason that this loop reads instead. Reasons without a row stay."""
    promotions: tuple[Promotion, ...] = ()
    """The rows by which a stop reason of a response with calls is read as `tool_call`."""
    signals: Signals = field(default_factory=lambda: STRICT_SIGNALS)
    """Stop reason -> where it leads: without calls, with calls that may not run, and with calls that may run."""
    settles: bool = True
    """Whether a turn is finished only when every held call was received again."""
    cap_evidence: bool = True
    """Whether an answer without a known reason counts as a budget cut if its usage reached the cap, or if a call's
    arguments end in the middle of their JSON."""
    dispatch: Dispatch = Dispatch.READY
    """The calls that the loop would run. The engine itself runs `ready` calls only."""
    batch: BatchRule = BatchRule.WHOLE
    """What a call that may not run means for the others of its response."""
    strips: bool = True
    """Whether a call that did not run is left out of the history."""
    methods: tuple[Method, ...] = (Method.PREFILL, Method.ANCHOR)
    """The methods that continue a text, best first. The first that the server allows is used. Empty if the loop never
    continues."""
    system_hint: bool = True
    """Whether the hint is a system message where the server allows one; otherwise it is a message of the user."""
    seam: SeamRule = SeamRule.CAREFUL
    """The rule by which the segments of an answer are joined."""
    lacks: frozenset[str] = frozenset()
    """The names of the guards (`limits.GUARDS`) that this loop does not have."""
    allow_silence: bool = False
    """Whether an answer that shows nothing, with or without reasoning, counts as an ordinary answer."""
    silent_endings: tuple[str, ...] = ("__SILENT__", "HEARTBEAT_OK")
    """Whole answers by which a model asks that nothing be shown (pi's agent loop). They end a turn like any other."""

    def __post_init__(self) -> None:
        # A member of an enum is compared with `is`, so its plain text would be read as another rule.
        check_kinds(("reads", self.reads, ReasonSource), ("dispatch", self.dispatch, Dispatch),
                    ("batch", self.batch, BatchRule), ("seam", self.seam, SeamRule), ("methods", self.methods, tuple),
                    ("lacks", self.lacks, frozenset))
        missing = [word for word in Stop if self.reason_map.get(word, word) not in self.signals]
        if missing:
            raise CallerError(f"signals: expected a row for each stop reason that `reason_map` leaves, such as "
                              f"{', '.join(missing)}")

    def __repr__(self) -> str:
        return f"<Policy {self.name}>"  # shown in signatures, where the tables would be too long

    def __reduce__(self) -> tuple[Callable[..., Policy], tuple[Any, ...]]:
        """Pickles and copies a policy, and thus a turn: a read-only table cannot be pickled, but its rows can."""
        values = (getattr(self, each.name) for each in fields(self))
        return _restore, tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)


def _restore(*values: Any) -> Policy:
    locked: list[Any] = [MappingProxyType(value) if isinstance(value, dict) else value for value in values]
    return Policy(*locked)


STRICT = Policy(
    "strict",
    "This engine's own: nothing unfinished counts as finished, and no held call runs",
    ("ZeroClaw RFI 2309", "BotNexus PR 1676: only a ToolUse terminal authorises execution"),
)


# -- reading a policy ------------------------------------------------------------------------------------------------


def word_of(policy: Policy, response: ChatResponse, judgement: Judgement, provider: str = "") -> Stop:
    """The stop word that a policy follows; `provider` is the profile's name."""
    # Promotions are skipped: the judge has already promoted complete calls and demoted cut ones.
    if policy.reads is ReasonSource.EFFECTIVE:
        effective = judgement.stop.normalized
        return policy.reason_map.get(effective, effective)
    word = _own_word(policy, response, judgement)
    for row in policy.promotions:
        if row.word is word and row.api in ("*", response.api) and row.but != provider and _fits(row, response):
            return Stop.TOOL_CALL
    return word


def policy_ending(policy: Policy, judgement: Judgement) -> Ending | None:
    """The ending of an answer that only looks finished, as a policy reads it; None if there is none. A policy that
    follows the provider's words finds none, and an empty answer may be intended (stop strings)."""
    if policy.reads is not ReasonSource.EFFECTIVE or (policy.allow_silence and judgement.ending in SILENT):
        return None
    return judgement.ending


def _own_word(policy: Policy, response: ChatResponse, judgement: Judgement) -> Stop:
    mapped, raw = judgement.mapped.normalized, judgement.mapped.raw
    # A failed request has no word that a table could list. A client only raises an error, so no loop reads a full
    # context or a filter in its message as the end of an answer.
    if response.error is not None:
        without_word = raw is None and mapped in (Stop.CONTEXT_WINDOW_EXCEEDED, Stop.SAFETY_BLOCKED)
        return Stop.ERROR if without_word else policy.reason_map.get(mapped, mapped)
    # Listed words first: a loop may give a word another meaning than its format.
    if raw is not None and not raw.isdecimal():  # an enum sent as a number has the engine's meaning
        listed = policy.words.get((response.api, raw))
        if listed is not None:
            return listed
        # A word for a failure or a cancellation keeps its meaning: no loop reads it as an ordinary end because its
        # table lacks it.
        if mapped not in (Stop.ERROR, Stop.CANCELLED) and response.api in policy.unlisted:
            return policy.unlisted[response.api]
    return policy.reason_map.get(mapped, mapped)


def _fits(row: Promotion, response: ChatResponse) -> bool:
    calls = response.tool_calls
    return bool(calls) and (not row.complete or all(is_complete(call) for call in calls))


def _is_readable(call: ToolCall) -> bool:
    if call.kind is CallKind.CUSTOM:
        return bool(call.arguments)
    value = parse_leniently(call.arguments)
    # A lenient parser makes an empty object of missing arguments (Zoo Code's analysis: no nativeArgs).
    return isinstance(value, dict) and bool(value)


MAY_RUN: Mapping[Dispatch, Callable[[Verdict], bool]] = {
    Dispatch.READY: lambda verdict: verdict.admission is not Admission.HELD,
    Dispatch.COMPLETE: lambda verdict: verdict.admission is not Admission.HELD or is_complete(verdict.call),
    Dispatch.READABLE: lambda verdict: verdict.admission is not Admission.HELD or _is_readable(verdict.call),
    Dispatch.PRESENT: lambda verdict: True,
}
"""Rule of dispatch -> whether a loop considers a call runnable. Every loop does so if the gate does not hold the call;
a rejected call is then answered with an error."""


def dispatched_calls(policy: Policy, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """The calls of a batch that a loop runs or answers. A phantom (a call without a name and arguments) is included
    only under `present`."""
    may_run = MAY_RUN[policy.dispatch]
    return tuple([verdict for verdict in verdicts if may_run(verdict)])


def is_runnable(policy: Policy, verdicts: Sequence[Verdict]) -> bool:
    """Whether a loop runs this batch."""
    # A phantom is an empty call that vLLM and Llama servers append (vercel/ai #3953): it holds no batch back.
    real = [verdict for verdict in verdicts if verdict.rule != "gate.phantom"]
    may = dispatched_calls(policy, real)
    return bool(may) and (policy.batch is BatchRule.EACH or len(may) == len(real))

"""What a loop believes, as data.

A policy says which word of a response is read, what each word leads to, whether held calls run, how an answer is
continued and how its seams are decided. `strict` is ours. The presets describe other systems, so that one transcript
can be run under each; every preset cites the lines that it follows. No policy contains code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from loop_core.errors import CallerError
from loop_core.seam import Method, SeamRule
from loop_core.values import Stop


class Signal(StrEnum):
    """What moves the machine from one state to the next."""

    __hash__ = str.__hash__  # these are keys of hot tables, and Enum's own hash is a Python function

    PROVIDER_RESPONSE = "provider_response"
    END_TURN = "EndTurn"
    TOOL_CALL = "ToolCall"
    MAX_TOKENS = "MaxTokens"
    PARTIAL_CALL = "PartialToolCall"
    """A call was begun and is held: it has to be asked for again."""
    PAUSED = "Paused"
    SAFETY_BLOCKED = "SafetyBlocked"
    CONTEXT_WINDOW_EXCEEDED = "ContextWindowExceeded"
    CANCELLED = "Cancelled"
    INTERRUPTED = "Interrupted"
    UNKNOWN = "Unknown"
    ERROR = "Error"
    UNDER_LIMITS = "under_limits"
    RETRY_LIMIT = "retry_limit"
    BUDGET_EXHAUSTED = "budget_exhausted"
    NO_PROGRESS = "no_progress"
    REPAIR_FAILED = "repair_failed"
    STEP_LIMIT = "step_limit"
    TOOL_RESULTS = "tool_results_appended"
    RETURN_PARTIAL = "return_partial_with_notice"
    NOT_RECORDED = "not_recorded"


class Dispatch(StrEnum):
    """Which calls a loop runs."""

    READY = "ready"
    """Those that the gate released."""
    PRESENT = "present"
    """Any call that the response holds, read with a forgiving parser."""


class Reads(StrEnum):
    """Which reason a loop goes by."""

    EFFECTIVE = "effective"
    MAPPED = "mapped"


Signals = Mapping[Stop, tuple[Signal, Signal]]
"""Word -> the signal for a response without calls, and for one with calls."""

STRICT_SIGNALS: Signals = MappingProxyType({
    Stop.END_TURN: (Signal.END_TURN, Signal.END_TURN),
    Stop.TOOL_CALL: (Signal.END_TURN, Signal.TOOL_CALL),
    Stop.MAX_TOKENS: (Signal.MAX_TOKENS, Signal.PARTIAL_CALL),
    Stop.MALFORMED_TOOL_CALL: (Signal.PARTIAL_CALL, Signal.PARTIAL_CALL),
    Stop.PAUSED: (Signal.PAUSED, Signal.PAUSED),
    Stop.SAFETY_BLOCKED: (Signal.SAFETY_BLOCKED, Signal.SAFETY_BLOCKED),
    Stop.CONTEXT_WINDOW_EXCEEDED: (Signal.CONTEXT_WINDOW_EXCEEDED, Signal.CONTEXT_WINDOW_EXCEEDED),
    Stop.CANCELLED: (Signal.CANCELLED, Signal.CANCELLED),
    Stop.INTERRUPTED: (Signal.INTERRUPTED, Signal.INTERRUPTED),
    Stop.UNKNOWN: (Signal.UNKNOWN, Signal.UNKNOWN),
    Stop.ERROR: (Signal.ERROR, Signal.ERROR),
})
"""`tool_call` without a call ends the turn: it would loop for ever (mastra PR #14187)."""

PRESENCE_SIGNALS: Signals = MappingProxyType({
    **dict.fromkeys(Stop, (Signal.END_TURN, Signal.TOOL_CALL)),
    Stop.ERROR: (Signal.ERROR, Signal.ERROR),
    Stop.CANCELLED: (Signal.CANCELLED, Signal.CANCELLED),
})
"""Any call present runs; nothing else matters but error and abort (seed 002, the loop's third mark)."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a loop believes of a response and does about it."""

    name: str
    title: str
    cites: tuple[str, ...] = ()
    reads: Reads = Reads.EFFECTIVE
    reason_map: Mapping[Stop, Stop] = field(default_factory=dict)
    """Normalized word -> what this loop takes it for; a word that is not here stays."""
    signals: Signals = field(default_factory=lambda: STRICT_SIGNALS)
    cap_evidence: bool = True
    """Whether a stream without a reason, whose usage equals the cap, is taken for a budget cut."""
    dispatch: Dispatch = Dispatch.READY
    methods: tuple[Method, ...] = (Method.PREFILL, Method.ANCHOR)
    """How text is continued, best first; the first that the server allows is used. Empty: never."""
    seam: SeamRule = SeamRule.CAREFUL
    silent_endings: tuple[str, ...] = ("__SILENT__", "HEARTBEAT_OK")
    """Whole answers that ask for nothing to be shown (seed 002); they end a turn like any other."""


STRICT = Policy(
    "strict",
    "Nothing unfinished counts as finished; no held call runs",
    ("seed 000", "seed 003: only a ToolUse terminal authorises execution"),
)

PI_PRESENCE = Policy(
    "pi-presence",
    "pi / OpenClaw before its fix: any call present runs, whatever the reason but error and abort",
    (
        "seed 002: agent-loop.js:59, the loop's marks 2 and 3",
        "seed 002: anthropic.js:681, mapStopReason (refusal and sensitive are errors, pause_turn is a stop)",
        "its switch has no row for model_context_window_exceeded or an unknown word: it throws",
    ),
    reads=Reads.MAPPED,
    reason_map={
        Stop.SAFETY_BLOCKED: Stop.ERROR,
        Stop.PAUSED: Stop.END_TURN,
        Stop.CONTEXT_WINDOW_EXCEEDED: Stop.ERROR,
        Stop.UNKNOWN: Stop.ERROR,
    },
    signals=PRESENCE_SIGNALS,
    cap_evidence=False,
    dispatch=Dispatch.PRESENT,
    methods=(),
    seam=SeamRule.CONCAT,
)

POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in (STRICT, PI_PRESENCE)}
"""Every preset, by name."""


def named(name: str) -> Policy:
    """The preset with this name.

    Raises:
        CallerError: there is none.
    """
    if name not in POLICIES:
        raise CallerError(f"unknown policy {name!r}; expected one of {', '.join(POLICIES)}")
    return POLICIES[name]

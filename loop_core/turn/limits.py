"""The hard limits of a turn, its spend, and the guards that compare the two.

`Limits` are values that an operator may set; the first four have the names that ZeroClaw RFI 2309 gives them under
`[agent]` of a configuration. A guard is a row: the place in the machine where it is checked, the condition under which
it stops the turn, and the terminal reason.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from loop_core.errors import CallerError
from loop_core.formats import format_entry
from loop_core.values import Request, ToolResultPart

DEFAULT_TOKEN_FACTOR = 4
"""The default bound in multiples of the first cap (ZeroClaw RFI 2309: `max_total_completion_tokens_per_turn = 4 *
initial_max_tokens`)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one turn may use. Counts are whole numbers; characters are Unicode code points."""

    continuation_max_attempts: int = 3
    """Number of continuations after truncated text, counted per `attempts_scope` (ZeroClaw RFI 2309)."""
    continuation_max_total_completion_tokens: int | None = None
    """Output tokens of truncated responses and their continuations; None for 4 x the initial max_tokens."""
    continuation_max_output_chars: int = 120_000
    """Visible characters of truncated responses and their continuations (ZeroClaw RFI 2309's safety cap)."""
    continuation_tool_repair_attempts: int = 1
    """Number of requests for a held call again, counted apart from continuations (ZeroClaw RFI 2309)."""
    max_tool_steps: int = 10
    """Rounds of tool runs in a turn (pi's agent loop, `maxSteps`). A replay has at least those that were recorded."""
    max_follow_ups: int = 10
    """Number of times that messages of the user begin a further turn after one has ended (pi's agent loop)."""
    max_resumes: int = 10
    """Resumptions of a paused response (anthropic `pause_turn`, Gemini `CONTINUATION`, background polling)."""
    max_empty_retries: int = 1
    """Further requests after an answer without any content. A replay has 0 if nothing else is set or recorded."""
    max_identical_calls: int = 3
    """Number of times in a row that the same batch of calls with the same arguments may come."""
    max_thinking_only: int = 1
    """Truncated responses without visible output; each is retried with a larger cap."""
    min_progress_chars: int = 1
    """Characters that a continuation must add. A continuation that adds fewer ends the turn (`no_progress`)."""
    max_tool_result_chars: int = 100_000
    """Characters of one tool result that are sent back. A note replaces the rest (pi's agent loop)."""
    context_guard_chars: int = 400_000
    """Characters of all tool results in a turn. A note replaces each further result (pi's agent loop)."""
    attempts_scope: str = "turn"
    """When attempts are reset. turn: never; response: by a response that is not truncated."""

    def __post_init__(self) -> None:
        # Not a pydantic model: its import costs a third of the start of an empty app.
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if value is None and name in OPTIONAL:
                continue
            # `True` is an int in Python, and `max_tool_steps = true` in a TOML file is a mistake, not a limit of 1.
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise CallerError(f"{name}: {value!r} is not a whole number from {low:,} to {high:,}")
        if self.attempts_scope not in SCOPES:
            raise CallerError(f"attempts_scope: expected one of {', '.join(SCOPES)}, not {self.attempts_scope!r}")

    def token_cap(self, initial_max_tokens: int | None) -> int | None:
        """The bound on output tokens in force; None if there is none."""
        if self.continuation_max_total_completion_tokens is not None:
            return self.continuation_max_total_completion_tokens
        return None if initial_max_tokens is None else DEFAULT_TOKEN_FACTOR * initial_max_tokens

    def with_values(self, assignments: Mapping[str, str | int | None]) -> "Limits":
        """These limits with some values replaced, from text as an operator types it (`1_000`, `1,000`, `none`).

        Raises:
            CallerError: an unknown name, or a value out of range.
        """
        known_names = {field.name for field in fields(self)}
        values: dict[str, Any] = {}
        for name, value in assignments.items():
            if name not in known_names:
                raise CallerError(f"unknown limit {name!r}; expected one of {', '.join(sorted(known_names))}")
            values[name] = _number(name, value)
        return replace(self, **values)


MOST = 1_000_000_000
"""A value so large that it limits nothing."""
RANGES: Mapping[str, tuple[int, int]] = {
    "continuation_max_attempts": (0, 1_000),
    "continuation_max_total_completion_tokens": (1, MOST),
    "continuation_max_output_chars": (1, MOST),
    "continuation_tool_repair_attempts": (0, 100),
    "max_tool_steps": (0, 100_000),
    "max_follow_ups": (0, 100_000),
    "max_resumes": (0, 100_000),
    "max_empty_retries": (0, 100),
    "max_identical_calls": (1, 100_000),
    "max_thinking_only": (0, 100),
    "min_progress_chars": (0, 100_000),
    "max_tool_result_chars": (100, MOST),
    "context_guard_chars": (100, MOST),
}
TOTAL = "continuation_max_total_completion_tokens"
"""The name of the limit that is derived from the request if it is not set."""
OPTIONAL = frozenset({TOTAL})
SCOPES = ("turn", "response")
SHORT_NAMES: Mapping[str, str] = {
    "continuation_max_attempts": "attempts",
    TOTAL: "cont_tokens",
    "continuation_max_output_chars": "cont_chars",
    "continuation_tool_repair_attempts": "repairs",
}
"""Name -> short name of the four limits of ZeroClaw RFI 2309, in the order in which every screen shows them."""


class Spend(NamedTuple):
    """What a turn has used so far. Counts only grow, except that `attempts` is reset under the scope `response` and
    reduced by one if the server refused a continuation, `identical` restarts at 1 with another batch, and the counts of
    a request that was never recorded are taken back."""

    requests: int = 0
    attempts: int = 0
    continuations: int = 0
    """The number of continuations of the turn under any scope of `attempts`, refused ones included."""
    continuation_tokens: int = 0
    """Output tokens of truncated responses and their continuations, to which the token bound applies."""
    tokens_assumed: int = 0
    """The part of `continuation_tokens` that was not reported but assumed from the cap that was sent."""
    continuation_chars: int = 0
    """Visible characters of truncated responses and their continuations."""
    repairs: int = 0
    repairs_refused: int = 0
    """The number of `repairs` that the server refused. They count against no limit."""
    empty_retries: int = 0
    tool_steps: int = 0
    resumes: int = 0
    thinking_only: int = 0
    stalled: int = 0
    """The number of continuations that added less than `min_progress_chars`."""
    identical: int = 0
    """The number of times in a row that the latest batch of calls has come."""
    result_chars: int = 0
    output_tokens: int = 0
    """Output tokens of every response of the turn, which the provider charges for."""
    output_chars: int = 0
    """Visible characters of every response of the turn."""
    uncounted: int = 0
    """The number of responses with output without a known count or cap. `output_tokens` is then a lower bound."""


class Guard(NamedTuple):
    """A row that compares the spend with one limit; `limit` names the field of `Limits`."""

    name: str
    place: str
    limit: str
    least: Callable[[Spend], int] | None
    """The least value of the limit with which a turn of this spend passes; None if only `Spend.stalled` counts."""
    terminal: str
    source: str

    def exceeded(self, limits: Limits, spend: Spend, stop: int | None) -> bool:
        """Whether limits and spend stop the turn. `stop` (`token_stop`) is the bound on the total of tokens."""
        if self.least is None:
            return spend.stalled > 0
        bound = stop if self.limit == TOTAL else getattr(limits, self.limit)
        return bound is not None and self.least(spend) > bound


def least_cap(request: Request) -> int:
    """The smallest output cap with which a request can be sent: the format's minimum, and more than the request's
    thinking budget. A request with a smaller cap is sent unchanged."""
    least = format_entry(request.api).least_cap
    thinking = request.extra.get("thinking") if request.extra else None
    # The engine does not model `thinking` of Messages, so it is in `extra`.
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    # Messages refuses a max_tokens that is not larger than thinking.budget_tokens.
    least = max(least, budget + 1) if isinstance(budget, int) else least
    return least if request.max_tokens is None else min(least, request.max_tokens)


def token_stop(cap: int | None, request: Request, lacks: Container[str]) -> int | None:
    """The spent tokens at which no further request fits under the token bound; None without a bound."""
    return cap if cap is None or "room" in lacks else cap - least_cap(request) + 1


# The comparison of the guard `tokens`, at places where no answer was cut. `stop` leaves room for the least request, so
# a turn ends before its tools run and not after.
_NO_ROOM = (
    TOTAL, lambda spent: spent.continuation_tokens + 1, "budget_exhausted",
    "the bound holds for each request: none is sent with less than its format takes",
)

GUARDS: tuple[Guard, ...] = (
    Guard("attempts", "continuation", "continuation_max_attempts", lambda spent: spent.attempts + 1,
          "retry_limit", "ZeroClaw RFI 2309: max_continuations_per_turn"),
    Guard("tokens", "continuation", TOTAL, lambda spent: spent.continuation_tokens + 1,
          "budget_exhausted", "ZeroClaw RFI 2309: max_total_completion_tokens_per_turn"),
    Guard("chars", "continuation", "continuation_max_output_chars", lambda spent: spent.continuation_chars + 1,
          "budget_exhausted", "ZeroClaw RFI 2309: max_total_output_chars_per_turn"),
    Guard("thinking", "continuation", "max_thinking_only", lambda spent: spent.thinking_only,
          "no_progress", "hermes-agent #83915, #96973: one boosted retry, then stop"),
    Guard("progress", "continuation", "min_progress_chars", None,
          "no_progress", "a continuation that adds nothing will not end"),
    Guard("repairs", "repair", "continuation_tool_repair_attempts",
          lambda spent: spent.repairs - spent.repairs_refused + 1,
          "repair_failed", "ZeroClaw RFI 2309: max_tool_repair_attempts"),
    Guard("room", "repair", *_NO_ROOM),
    Guard("empty", "nudge", "max_empty_retries", lambda spent: spent.empty_retries + 1,
          "no_answer", "hermes-agent #83882: an empty answer shown as finished"),
    Guard("room", "nudge", *_NO_ROOM),
    Guard("tool_steps", "tools", "max_tool_steps", lambda spent: spent.tool_steps + 1,
          "step_limit", "pi's agent loop: maxSteps"),
    Guard("room", "tools", *_NO_ROOM),
    Guard("identical", "tools", "max_identical_calls", lambda spent: spent.identical,
          "no_progress", "the same calls again and again"),
    Guard("resumes", "resume", "max_resumes", lambda spent: spent.resumes + 1,
          "no_progress", "pydantic-ai: a ceiling on resumptions"),
    Guard("room", "resume", *_NO_ROOM),
)
_GUARDS_AT: Mapping[str, tuple[Guard, ...]] = {
    place: tuple([guard for guard in GUARDS if guard.place == place]) for place in {guard.place for guard in GUARDS}
}


def exceeded_guard(
    place: str, limits: Limits, spend: Spend, stop: int | None, lacks: Container[str]
) -> Guard | None:
    """The first guard of `place` that stops the turn; None if none does. Guards that the loop lacks are skipped."""
    for guard in _GUARDS_AT[place]:
        if guard.name not in lacks and guard.exceeded(limits, spend, stop):
            return guard
    return None


_DIGITS = 600
"""The largest number of digits that are read of a number. `int` may be set to refuse more than 640
(https://docs.python.org/3/library/stdtypes.html#int-max-str-digits)."""


def whole_number(text: str) -> int | None:
    """The whole number that an operator typed, such as `1000`, `1,000` or `-1_000`; None if the text is not a whole
    number. Only the first digits of a very long number are read; they exceed any limit."""
    digits = text.strip().replace(",", "").replace("_", "")
    return int(digits[:_DIGITS]) if re.fullmatch("-?[0-9]+", digits) else None


def _number(name: str, value: str | int | None) -> int | str | None:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if name == "attempts_scope":
        return text
    if text.lower() in ("none", "default", "") and name in OPTIONAL:
        return None
    number = whole_number(text)
    if number is None:
        raise CallerError(f"{name}: {value!r} is not a whole number" if text else f"{name}: a whole number is missing")
    return number


def bound_result(part: ToolResultPart, limits: Limits, amount: int) -> ToolResultPart:
    """The result, cut to `max_tool_result_chars` and to what is left of `context_guard_chars`, with a note about the
    cut. `amount` is the number of characters of the turn's results so far."""
    room = limits.context_guard_chars - amount
    if room <= 0:
        text = f"Left out: {part.size:,} characters; the tool results of this turn have reached their limit."
        return ToolResultPart(part.call_id, part.name, text, part.is_error)
    # The short note is not counted, so a result of exactly the limit passes unchanged.
    most = min(limits.max_tool_result_chars, room)
    if part.size <= most:
        return part
    text = f"{part.text[:most]}\n[cut: {most:,} of {part.size:,} characters]"
    return ToolResultPart(part.call_id, part.name, text, part.is_error)

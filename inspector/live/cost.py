"""The greatest possible cost of a live run in tokens, before it is asked for. Pure.

With C the output cap, A the continuations that are left, T what is left of the budget for continuations, R the repairs,
P the resumptions of a pause, E the retries of an empty answer, S the rounds of tools, N the answers that each request
asks for:

    requests  1 + S + A + R + P + E
    output    N x ( S x C + max(C, min(C + A x B, T - 1 + B)) + (R + P + E) x B )

where B is C, doubled for each retry of an answer that was all thinking and for each repair of a cut call. Input
is what the first request has, in each, and what was answered before. What a server refuses costs no output.
"""

from __future__ import annotations

from dataclasses import dataclass

from loop_core.limits import Limits, Spent
from loop_core.policy import Policy, Reads
from loop_core.turn import State, Turn
from loop_core.values import Stop
from loop_core.wire import wire

CHARS_A_TOKEN = 3
"""Characters of a request's JSON that are taken for a token where nothing was counted: few, so that it is enough."""
ASKED_TOKENS = 120
"""Tokens of what a continuation or a repair adds to the history, beside the answer so far."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a run may still ask for."""

    first: bool
    """Whether a request is about to leave; else the machine decides first whether one does."""
    cap: int | None
    """The output cap of the next request."""
    attempts: int | None
    """Continuations; None where the policy has no bound."""
    tokens: int | None
    """Of the budget for continuations; None where there is none."""
    repairs: int
    resumes: int
    rounds: int | None
    """Rounds of tools; None where the policy has no bound."""
    boosts: int | None
    """Retries with twice the cap; None where only the continuations bound them."""
    answers: int = 1
    """How many answers each request asks for."""
    nudges: int = 0
    """Retries of an answer without content."""
    doubles: bool = False
    """Whether a repair of a cut call is asked for with twice the cap."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The greatest possible cost."""

    requests: int | None
    output: int | None
    input: int | None
    unbounded: str = ""
    """Why there is no bound; empty where there is one."""


def left_of(turn: Turn, pending: bool, answered: bool) -> Left:
    """What a turn may still ask for; `answered` says whether any tool call could get a result."""
    limits, spent, policy = turn.limits, turn.spent, turn.policy
    cap = turn.sent.max_tokens if turn.sent is not None else turn.request.max_tokens
    budget = turn.token_cap
    pauses = any(row.stop is Stop.PAUSED for row in wire(turn.request.api).stop_reasons.values())
    steps = None if "tool_steps" in policy.lacks else max(0, limits.max_tool_steps - spent.tool_steps)
    return Left(
        pending, cap, _attempts(limits, spent, policy, turn),
        None if budget is None else max(0, budget - spent.continuation_tokens),
        max(0, limits.continuation_tool_repair_attempts - spent.repairs),
        max(0, limits.max_resumes - spent.resumes) if pauses else 0,
        steps if answered else 0,
        None if "thinking" in policy.lacks else max(0, limits.max_thinking_only - spent.thinking_only) + _due(turn),
        turn.request.n,
        max(0, limits.max_empty_retries - spent.empty_retries) if policy.reads is Reads.EFFECTIVE else 0,
        policy.settles,
    )


def _due(turn: Turn) -> bool:
    """Whether an answer that was all thinking is counted already, and its retry not asked for yet."""
    seen = turn.evaluated
    return turn.state is State.CONTINUE_PENDING and seen is not None and not seen.response.text


def _attempts(limits: Limits, spent: Spent, policy: Policy, turn: Turn) -> int | None:
    if not policy.methods:
        return 0
    if "attempts" in policy.lacks:
        return None
    if limits.attempts_scope == "turn":
        return max(0, limits.continuation_max_attempts - spent.attempts)
    rounds = limits.max_tool_steps + limits.max_resumes + limits.continuation_tool_repair_attempts
    return limits.continuation_max_attempts * (1 + rounds)  # each answer that is not cut gives them all back


def cost_of(left: Left, first_input: int, results: int = 0) -> Cost:
    """The bound; `first_input` are the tokens of the first request, `results` those that tools may answer in all."""
    if left.cap is None:
        return Cost(None, None, None, "the request has no max_tokens")
    if left.attempts is None or left.rounds is None:
        what = "continuations" if left.attempts is None else "rounds of tools"
        return Cost(None, None, None, f"the policy has no bound for {what}")
    attempts = 0 if left.tokens == 0 else left.attempts
    rounds = left.rounds
    most = left.cap * 2 ** (attempts if left.boosts is None else min(left.boosts, attempts))
    if left.doubles:
        most *= 2**left.repairs
        most = most if left.tokens is None else min(most, left.tokens)  # the bound holds for each request
    own = int(left.first)
    others = left.repairs + left.resumes + left.nudges
    requests = own + rounds + attempts + others
    chain = own * left.cap + attempts * most
    if left.tokens is not None:
        beyond = 0 if left.doubles else most - 1  # else it is looked at between requests only
        chain = max(own * left.cap, min(chain, left.tokens + beyond if attempts else 0))
    output = rounds * left.cap + chain + others * most
    before = sum(min(number * most, output) for number in range(requests))
    asked = ASKED_TOKENS * requests * (requests - 1) // 2
    sent = requests * first_input + max(0, requests - 1) * results + before + asked
    return Cost(requests, output * left.answers, sent)


def estimate(chars: int) -> int:
    """Tokens of a text whose tokens nobody counted."""
    return -(-chars // CHARS_A_TOKEN)


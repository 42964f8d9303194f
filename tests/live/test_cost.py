"""The greatest possible cost: small cases worked out by hand, and no run of the machine that goes beyond it."""

from __future__ import annotations

import random

import pytest

from inspector.live.target import MESSAGE_TOKENS, Cost, RequestsLeft, cost_of, estimate, requests_left
from loop_core.judge.classify import judge
from loop_core.turn.history import Ability
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, opening_step, steps_from
from loop_core.turn.policy import STRICT
from loop_core.turn.presets import POLICIES
from loop_core.turn.state import Event, ProviderResponse, RunTools, Send, ToolResults, Turn
from loop_core.values import (
    ChatResponse,
    Message,
    Request,
    Role,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    ToolResultPart,
    Usage,
)
from loop_core.wire.profiles import PROFILES

ONE = RequestsLeft(True, 100, 0, 400, 0, 0, 0, 0)


def left_with(**more: object) -> RequestsLeft:
    from dataclasses import replace

    return replace(ONE, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "requests", "output"), [
    (left_with(), 1, 100),
    (left_with(attempts=3), 4, 400),  # three continuations of 100
    (left_with(attempts=9), 10, 499),  # the budget of 400 is looked at before each: 399 + 100
    (left_with(attempts=9, tokens=None), 10, 1_000),
    (left_with(attempts=3, tokens=0), 1, 100),  # nothing is left of it: no continuation is asked for
    (left_with(attempts=3, boosts=1), 4, 599),  # the cap may double once: 399 + 200
    (left_with(attempts=1, boosts=5), 2, 300),  # no more doublings than continuations: 100 + 200
    (left_with(attempts=2, boosts=None), 3, 799),  # no bound of its own: 100, 200, 400, of which 399 + 400
    (left_with(repairs=2), 3, 300),
    (left_with(resumes=4), 5, 500),
    (left_with(rounds=10), 11, 1_100),
    (left_with(rounds=2, attempts=9, repairs=1), 13, 200 + 499 + 100),
    (left_with(first=False, attempts=1), 1, 100),
    (left_with(answers=4), 1, 400),
    (left_with(first=False), 0, 0),
])
def test_requests_and_output(given: RequestsLeft, requests: int, output: int) -> None:
    found = cost_of(given, 50)
    assert (found.requests, found.output, found.unbounded) == (requests, output, "")
    assert sum(part.requests for part in found.parts) == requests
    assert sum(part.output for part in found.parts) == output
    assert all(part.each is None or part.each * part.requests == part.output for part in found.parts)


def test_each_part_of_the_sum_names_the_limit_that_it_comes_from() -> None:
    found = cost_of(left_with(attempts=3, tokens=150, rounds=2, repairs=1, nudges=1, boosts=1, answers=2), 50)
    assert [(part.requests, part.one, part.each, part.output, part.limit) for part in found.parts] == [
        (1, "first request", 200, 200, "max_tokens"),
        (3, "continuation", None, 498, "continuation_max_total_completion_tokens"),
        (2, "tool round", 200, 400, "max_tool_steps"),
        (1, "repair", 400, 400, "continuation_tool_repair_attempts"),
        (1, "retry of an empty answer", 400, 400, "max_empty_retries"),
    ]
    assert found.raised == 400
    free = cost_of(left_with(attempts=3, tokens=None), 50)
    assert (free.parts[1].each, free.parts[1].limit, free.raised) == (100, "continuation_max_attempts", None)


def test_the_input_is_the_first_request_in_each_and_what_was_answered_before() -> None:
    assert cost_of(left_with(), 50).input == 50
    assert cost_of(left_with(attempts=2), 50).input == 3 * 50 + 100 + 200 + 3 * MESSAGE_TOKENS
    assert cost_of(left_with(rounds=1), 50, 1_000).input == 2 * 50 + 100 + 1_000 + MESSAGE_TOKENS


@pytest.mark.parametrize(("given", "why"), [
    (left_with(cap=None), "the request has no max_tokens"),
    (left_with(attempts=None), "the policy has no bound for continuations"),
    (left_with(rounds=None), "the policy has no bound for rounds of tools"),
])
def test_without_a_limit_there_is_no_bound(given: RequestsLeft, why: str) -> None:
    assert cost_of(given, 50) == Cost(None, None, None, why)


def test_an_estimate_is_rounded_up() -> None:
    assert [estimate(chars) for chars in (0, 1, 3, 4)] == [0, 1, 1, 2]


SAID = Message(Role.USER, (TextPart("Say it."),))


class Worst:
    """Answers with whatever costs most or goes on longest, as chance has it; counts what it took."""

    def __init__(self, seed: int, api: str) -> None:
        self.chance, self.api = random.Random(seed), api
        self.sent: list[int] = []
        self.asked: list[int] = []

    def respond(self, send: Send, turn: Turn) -> Event:
        assert send.max_tokens is not None
        self.sent.append(send.max_tokens)
        self.asked.append(turn.spend.requests)
        cap = send.max_tokens
        number = len(self.sent)
        call = ToolCall(f"c{number}", "weather", f'{{"n":{number}}}', closed=True)
        cut = ToolCall(f"c{number}", "weather", '{"n":', closed=False)
        kind = self.chance.choice(["cut", "cut", "thinking", "call", "cut call", "paused", "end"])
        stops = {"cut": Stop.MAX_TOKENS, "thinking": Stop.MAX_TOKENS, "call": Stop.TOOL_CALL,
                 "cut call": Stop.MAX_TOKENS, "paused": Stop.PAUSED, "end": Stop.END_TURN}
        if kind == "paused" and self.api == "openai_chat":
            kind = "cut"
        parts = {"cut": (TextPart(f"text {number} "),), "thinking": (), "call": (call,), "cut call": (cut,),
                 "paused": (TextPart("wait "),), "end": (TextPart("done"),)}[kind]
        detail = "echo" if kind == "paused" else None
        response = ChatResponse(self.api, parts, StopReason(stops[kind], kind, detail), Usage(10, cap))
        return ProviderResponse(response, judge(response, turn.request, PROFILES["generic"]))

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        return ToolResults(tuple(ToolResultPart(v.call.id, v.call.name, "sun") for v in effect.released))

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        return ()


@pytest.mark.parametrize("api", ["openai_chat", "anthropic_messages"])
@pytest.mark.parametrize("policy", [name for name, policy in POLICIES.items() if "attempts" not in policy.lacks])
def test_no_run_goes_beyond_the_bound(api: str, policy: str) -> None:
    """From every step of runs by chance, under limits by chance."""
    beyond = reached = 0
    for seed in range(150):
        chance = random.Random(seed)
        limits = Limits(
            continuation_max_attempts=chance.randint(0, 6), continuation_tool_repair_attempts=chance.randint(0, 2),
            continuation_max_total_completion_tokens=chance.choice([None, 50, 300]),
            max_tool_steps=chance.randint(0, 3), max_resumes=chance.randint(0, 3),
            max_thinking_only=chance.randint(0, 2),
            attempts_scope=chance.choice(["turn", "response"]))
        source = Worst(seed, api)
        first = opening_step("t", Request(api, (SAID,), "m", max_tokens=100),
                      Plan(limits, POLICIES[policy], Ability(prefill=chance.random() < 0.5)))
        steps = [(first, 0)]
        for step in steps_from(first, source):
            steps.append((step, len(source.sent)))
        for step, sent in steps:
            if step.turn.ended:
                continue
            pending = any(isinstance(effect, Send) for effect in step.effects)
            found = cost_of(requests_left(step.turn, pending, True), 10)
            assert found.output is not None
            assert found.requests is not None
            took = source.sent[sent:]
            beyond += sum(took) > found.output or len(took) > found.requests
            reached += sum(took) * 2 > found.output
    assert beyond == 0
    assert reached or policy != STRICT.name

"""Prepares the request that sends a recorded turn again, live, from one of its steps: address, key and cost.

This module sends nothing. The text about the request contains no control characters and no markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from inspector.config.settings import Settings, name_of
from inspector.live.answers import TurnResults, recorded_results
from inspector.live.headless import refuse_secrets
from inspector.live.target import (
    Cost,
    CostPart,
    Target,
    cost_of,
    estimate,
    graft_changes,
    requests_left,
    target_of,
    with_text,
)
from inspector.replay import Replay, plan_of
from inspector.replay.adjustments import TurnInput, edited_request, limits_after, pending_edits
from inspector.replay.case import ASKED_LIVE
from inspector.replay.rerun import BranchStart, cap_of, case_since, start_of
from inspector.report.lines.spans import count_of, one_line
from inspector.sessions.recording import Exchange
from loop_core.client.exchange import Retries
from loop_core.client.outgoing import LiveRequest, ability, body_of, request_for
from loop_core.errors import CallerError
from loop_core.turn.history import Ability
from loop_core.turn.state import Send, Tick
from loop_core.turn.tools import Toolbox
from loop_core.turn.trace import Step, next_step
from loop_core.wire import wire


class StandIn(Protocol):
    """A server of this program that answers instead of the provider."""

    def close(self) -> None:
        """Stops the server."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BranchRequest:
    """The request, and its maximum cost."""

    settings: Settings
    since: int
    """The index of the step from which the answers are live."""
    turn: int
    """The index of the turn."""
    target: Target
    cost: Cost
    counted: bool
    """Whether the first request's input tokens are the provider's recorded count, instead of an estimate."""
    results: TurnResults
    first: Step
    ability: Ability
    spelling: Callable[[LiveRequest], LiveRequest]
    under: str
    """The settings that differ from those of the parent run, in words; `unchanged` if none does."""
    stand_in: StandIn | None = None
    """The stand-in that answers instead of the provider; None: the provider answers."""


def branch_request(
    parent: Replay, settings: Settings, since: int, environment: Mapping[str, str], *, base: str,
    model: str | None = None, variable: str | None = None, toolbox: Toolbox | None = None,
    insecure_http: Sequence[str] = (), profile: str | None = None,
) -> BranchRequest:
    """The request that sends the turn again from this step; it is not sent here. `profile` names the server, if known.
    Raises `LoopError` if the turn cannot be sent again; the text says why."""
    start = start_of(parent, since)
    opening = parent.case.recording.exchanges[start.opening.index]
    target = target_of(opening, environment, base=base, model=model, variable=variable,
                       insecure_http=insecure_http, profile=profile)
    can = ability(target.profile, opening.api)
    first = _first_step(parent, settings, since, start, target, can)
    ahead = _next_effect_step(first)
    if ahead.turn.ended:
        raise CallerError(f"step {since + 1:,}: no request would be sent: the turn ends first ({ahead.turn.terminal})")
    send = next((effect for effect in ahead.effects if isinstance(effect, Send)), None)
    edits = pending_edits(parent.case, start.turn.record, settings)
    spelled = _spelling(opening, target, [each for each in edits if each[0].exchange == start.opening.index])
    request = request_for(ahead.turn, send) if send is not None else ahead.turn.request
    body = body_of(request, target.profile)  # raises before anything is sent, if it cannot be sent in this format
    refuse_secrets(body, target.server)
    record = start.turn.record
    exchanges = (parent.case.recording.exchanges[link.index] for link in (*record.links, *record.remainder))
    of_turn = [replace(each, request=edited_request(each.request, edits)) for each in exchanges if each.request]
    opened = len(opening.request.messages) if opening.request else 0
    results = TurnResults(recorded_results(of_turn, opened), toolbox, opened)
    # Without results the first call ends the turn, so there are no further rounds.
    left = requests_left(first.turn, any(isinstance(each, Send) for each in first.effects), results.has_any)
    counted = None if edits else _input_tokens(parent, start, target, model, base)
    tokens = counted if counted is not None else estimate(len(json.dumps(body, ensure_ascii=False)))
    limits = first.turn.limits
    # A tool that runs may return any text, up to the guard.
    result_chars = limits.context_guard_chars if toolbox is not None and toolbox.tools else min(
        results.chars, limits.context_guard_chars)
    return BranchRequest(
        settings, since, parent.turn_at(since), target, cost_of(left, tokens, estimate(result_chars)),
        counted is not None, results, first, can, spelled, name_of(parent.settings, settings),
    )


def _next_effect_step(step: Step) -> Step:
    """The first step from `step` on with an effect: a request, calls to run, or the end of the turn."""
    while not step.effects and not step.turn.ended:
        step = next_step(step, Tick())
    return step


def _first_step(
    parent: Replay, settings: Settings, since: int, start: BranchStart, target: Target, can: Ability
) -> Step:
    case = case_since(parent, settings.profile, since)
    request, plan = plan_of(case, start.turn.record, start.opening, settings, start.number, live=True)
    provider = plan.provider if start.prefix and start.opening.why != ASKED_LIVE else target.profile.name
    limits = limits_after(case, start.turn.record, (*start.earlier, *start.prefix), settings)
    plan = plan._replace(limits=limits, ability=can, provider=provider)
    return start.step(replace(request, model=target.model), plan, cap_of(parent, settings))


def _spelling(
    opening: Exchange, target: Target, edits: Sequence[tuple[TurnInput, str]]
) -> Callable[[LiveRequest], LiveRequest]:
    """A function that writes a request as the recorded body with only the changed fields replaced."""
    recorded = opening.request_json
    assert opening.request is not None  # noqa: S101 - `target_of` refuses an exchange without a request
    assert isinstance(recorded, Mapping)  # noqa: S101 - as before
    request = opening.request
    for turn_input, text in edits:  # at its recorded place if that is unambiguous, else as the format encodes it
        changed = with_text(recorded, turn_input.text, text)
        if changed is not None:
            recorded, request = changed, edited_request(request, [(turn_input, text)])
    before, recorded_body = body_of(request, target.profile), recorded

    def spell(ask: LiveRequest) -> LiveRequest:
        # Only the difference of our two encodings goes into the recorded body, whose spelling the server accepted.
        return ask if ask.body is None else replace(ask, body=graft_changes(recorded_body, before, ask.body))

    return spell


def _input_tokens(parent: Replay, start: BranchStart, target: Target, model: str | None, base: str) -> int | None:
    """The provider's count of input tokens for the request that is sent again; None if it does not apply."""
    if start.prefix or model or base:
        return None  # another request than the recorded one, or another tokenizer
    usage = parent.case.recording.exchanges[start.opening.index].response.usage
    if usage is None or usage.input_tokens is None:
        return None
    # Anthropic's `input_tokens` leaves out tokens from the cache, where the next request may not find them.
    beside = wire(target.server.api).cached_apart
    return usage.input_tokens + ((usage.cached_tokens or 0) if beside else 0)


def announcement(request: BranchRequest, turn: int) -> list[str]:
    """The description of the request, as lines of text. `turn` is the number of the turn."""
    target = request.target
    most, *basis = cost_lines(request)
    who = f"{target.server.api}, model {one_line(target.model or '') or 'not named'}, profile {target.profile.name}"
    lines = [
        f"asks the provider: turn {turn} from step {request.since + 1:,} on is sent to {one_line(target.url)}",
        f"as: {who}; settings: {request.under}",
        target.key,
        f"greatest possible cost: {most}", *(f"  {line}" for line in basis),
        f"tool calls: {tools_line(request)}",
    ]
    return [*lines, *([NOT_ENCRYPTED] if target.unencrypted else [])]


NOT_ENCRYPTED = "not encrypted: anyone on the network path can read the request and the key"


def cost_lines(request: BranchRequest) -> list[str]:
    """The greatest possible cost in tokens, then the parts of this sum, each with its limit."""
    found = request.cost
    if found.requests is None or found.output is None or found.input is None:
        return [f"no bound: {found.unbounded}"]
    basis = "" if request.counted else " (estimated)"
    lines = [
        f"{count_of(found.requests, 'request')}, {found.output:,} tokens out, about {found.input:,} in{basis}",
        "a bound, not a forecast: only if every limit is used up",
        *_sum_lines(found.parts)]
    if found.raised is not None:
        lines.append(f"{found.raised:,}: the cap of {found.cap or 0:,}, doubled by each repair or retry")
    again = Retries().most
    lines.append(f"each up to {again} times again if no answer comes: {found.requests * (1 + again):,} requests")
    lines.append("an answer that breaks off may be charged too")
    if not request.target.profile.reasoning_under_cap:
        lines.append("thinking may come on top: it may not count under max_tokens")
    return lines


def _sum_lines(parts: Sequence[CostPart]) -> Iterator[str]:
    """One line for each part of a sum, such as `+ 240: 2 repairs × 120 (continuation_tool_repair_attempts)`."""
    for at, part in enumerate(parts):
        times = f" × {part.each:,}" if part.requests > 1 and part.each is not None else ""
        many = count_of(part.requests, part.one, part.many)
        yield f"{'+' if at else '='} {part.output:,}: {many}{times} ({part.limit})"


def tools_line(request: BranchRequest) -> str:
    """Who answers the tool calls, in one line."""
    toolbox, recorded = request.results.toolbox, request.results.results
    parts = []
    if toolbox is not None and toolbox.tools:
        parts.append(f"run here: {', '.join(one_line(name) for name in toolbox.tools)}")
    if recorded:
        parts.append("a recorded call gets its result")
    return "; ".join([*parts, "any other ends the turn"]) if parts else "none is run; the first one ends the turn"

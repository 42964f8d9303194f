"""What is said before a request is asked live: where it goes, with whose key, what it may cost. Sober lines, inert."""

from __future__ import annotations

from inspector.live.again import Wanted
from inspector.report.inert import one_line


def told(wanted: Wanted, turn: int) -> list[str]:
    """The lines, for people; `turn` is the number of the turn."""
    target = wanted.target
    who = f"{target.server.api}, model {one_line(target.model or '') or 'not named'}, profile {target.profile.name}"
    lines = [
        f"asks the provider: turn {turn} from step {wanted.since + 1} on is sent to {one_line(target.url)}",
        f"as: {who}; settings: {wanted.under}",
        target.key,
        f"greatest possible cost: {'; '.join(cost(wanted))}",
        f"tool calls: {tools(wanted)}",
    ]
    return [*lines, *([NOT_ENCRYPTED] if target.open else [])]


NOT_ENCRYPTED = "not encrypted: whoever is on the way reads the request and the key"


def cost(wanted: Wanted) -> list[str]:
    """The greatest possible cost in tokens, and what it rests on, a line each."""
    found = wanted.cost
    if found.requests is None or found.output is None or found.input is None:
        return [f"no bound: {found.unbounded}"]
    basis = "the first request as counted in the recording" if wanted.counted else "the first request is estimated"
    requests = f"{found.requests:,} request{'' if found.requests == 1 else 's'}"
    lines = [f"{found.output:,} tokens out and about {found.input:,} in, in {requests}", f"in: {basis}"]
    if not wanted.target.profile.reasoning_under_cap:
        lines.append("thinking may come on top: this server is not known to count it under max_tokens")
    return lines


def tools(wanted: Wanted) -> str:
    """Who answers them."""
    given, recorded = wanted.results.given, wanted.results.recorded
    parts = []
    if given is not None and given.tools:
        parts.append(f"run here: {', '.join(one_line(name) for name in given.tools)}")
    if recorded:
        parts.append("a call that was recorded gets its recorded result")
    return "; ".join([*parts, "any other ends the turn"]) if parts else "none is run; the first one ends the turn"

"""Finds the target of a recorded request that is sent again: the address, the server's profile, the key.

A recording's own credentials are masked and never sent; the key comes from the environment. A recorded address gets a
provider's key only because of its host, never because of its path: a recording must not choose who receives a key.

The module also computes the greatest possible cost of a live run in tokens, and writes the changes of a request into
its recorded body without changing the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import eq
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from inspector.live.inputs import ANY, key_variables, missing_key, secrets_of, variable_for
from inspector.sessions.credential_values import REDACTED
from inspector.sessions.recording import Exchange, common_beginning
from loop_core.client.address import Server, expected_profile, is_unencrypted, public_url, refuse_plain_http, url_of
from loop_core.errors import CallerError
from loop_core.turn.limits import Limits, Spend
from loop_core.turn.policy import Policy, ReasonSource
from loop_core.turn.state import State, Turn
from loop_core.values import Request, Stop
from loop_core.wire import FORMATS, wire
from loop_core.wire.format import Profile

KEPT_HEADERS = frozenset({"anthropic-version", "anthropic-beta", "openai-beta"})
"""The names of recorded headers that are sent again, because they decide how the server reads the body."""


@dataclass(frozen=True, slots=True)
class Target:
    """The server of a request; its key is only within `server`."""

    server: Server
    profile: Profile
    model: str | None
    url: str
    """The address for display, without credentials."""
    variable: str | None
    """The environment variable with the key; None if there is none."""
    variables: tuple[str, ...]
    """The environment variables that were searched, in order."""
    missing: str = ""
    """The variable of the missing key, if this provider refuses requests without a key; empty if none is missing."""

    @property
    def host(self) -> str:
        """The host, with its port if given."""
        return urlsplit(self.url).netloc

    @property
    def unencrypted(self) -> bool:
        """Whether everything, including the key, would be sent over a network unencrypted."""
        return is_unencrypted(self.url)

    @property
    def key(self) -> str:
        """The source of the key, in words; never the key itself."""
        if self.variable is not None:
            also = ", which goes to any server" if self.variable == ANY else ""
            return f"key from {self.variable}{also}"
        return f"no key: {' and '.join(self.variables)} {'are' if len(self.variables) > 1 else 'is'} not set"


def why_unsendable(exchange: Exchange) -> str | None:
    """Why a request cannot be sent again; None if it can."""
    if exchange.recorder is not None:
        return f"this is a transcript of {exchange.recorder}: it does not hold the request that the provider got"
    if exchange.api not in FORMATS:
        return f"{exchange.api} is not one of the formats that requests can be sent in"
    if exchange.request is None or not isinstance(exchange.request_json, Mapping):
        return "its request was not recorded"
    return None


def target_of(
    exchange: Exchange, environment: Mapping[str, str], *, base: str = "", model: str | None = None,
    variable: str | None = None, insecure_http: Sequence[str] = (), profile: str | None = None,
) -> Target:
    """The target for the request of a recorded exchange; `base` and `model` override the recorded values, and `profile`
    the one found by the address. Raises `CallerError` if the request cannot be sent again, the recording has no
    address, or a key would be sent as plain text."""
    why = why_unsendable(exchange)
    if why is not None or exchange.request is None:
        raise CallerError(f"it cannot be sent live: {why}")
    request = exchange.request if not model else replace(exchange.request, model=model)
    headers = tuple((name.lower(), value) for name, value in exchange.request_headers
                    if name.lower() in KEPT_HEADERS and REDACTED not in value)
    place = base.strip() or base_of(exchange.url, exchange.api, exchange.request)
    server = Server(exchange.api, place, version=None if base.strip() else "", headers=headers,
                    hidden_words=secrets_of(environment), insecure_http=tuple(insecure_http))
    owner = expected_profile(server, request.model)
    by = owner.evidence[0].rule if owner.evidence else ""
    # Another address may be another server's, so a profile that was only guessed from the recording is dropped.
    elsewhere = bool(base.strip()) and exchange.named_profile is None
    if not elsewhere and exchange.profile.name not in ("generic", owner.profile.name) and by != "profile.host":
        server = replace(server, profile=exchange.profile.name)
    if profile is not None:
        server = replace(server, profile=profile)
    # An address that the operator typed may be recognised by its path as well.
    trusted = by == "profile.host" or (by == "profile.url" and bool(base.strip()))
    address = owner.profile.name if trusted else ""
    found = variable_for(address, environment, variable)
    if found is not None:
        server = replace(server, key=environment[found].strip())
    refuse_plain_http(server)
    chosen = expected_profile(server, request.model)
    names = (variable,) if variable is not None else key_variables(address)
    url = public_url(url_of(server, wire(exchange.api).path(request)))
    return Target(server, chosen.profile, request.model, url, found, names, missing_key(server, request.model))


def base_of(url: str, api: str, request: Request) -> str:
    """The part of a recorded address before the format's own path, with the version, if there is one, and without the
    masked parts. Raises `CallerError` if there is no address, or it does not end in a path of the format."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CallerError("the recording does not hold the address of the server; --base-url sets it")
    own, _, own_query = wire(api).path(request).partition("?")
    # Clients differ in a final slash, and in whether they encode a model's name (Bedrock: `%3A`).
    end = next((end for end in (own, f"{own}/", unquote(own)) if parts.path.endswith(end)), None)
    if end is None:
        raise CallerError(f"the recorded address {public_url(url)} is not one of {api}; --base-url sets the one to use")
    query = "&".join(pair for pair in parts.query.split("&")
                     if pair and REDACTED not in pair and pair not in own_query.split("&"))
    host = parts.netloc.rpartition("@")[2]  # without user and password
    return urlunsplit((parts.scheme, host, parts.path.removesuffix(end), query, ""))


# -- The greatest possible cost of a live run in tokens, before it is sent -------------------------------------------
# Pure.
# With C the output cap, A the continuations that are left, T what is left of the budget for continuations, R the
# repairs, P the resumptions of a pause, E the retries of an empty answer, S the rounds of tools, N the answers that
# each request asks for:
#     requests  1 + S + A + R + P + E
#     output    N x ( S x C + max(C, min(C + A x B, T - 1 + B)) + (R + P + E) x B )
# where B is C, doubled for each retry of an answer that was all thinking and for each repair of a cut call. The input
# of each request is that of the first one plus all answers before it. Refused requests cost no output.

CHARS_A_TOKEN = 3
"""The characters per token of a request's JSON if no tokens were counted; low, so that the estimate is a bound."""
MESSAGE_TOKENS = 120
"""The tokens that a continuation's or repair's message adds to the history, besides the answer so far."""


@dataclass(frozen=True, slots=True)
class RequestsLeft:
    """The requests and tokens that a run may still use."""

    first: bool
    """Whether a request waits to be sent; otherwise the machine first decides whether to send one."""
    cap: int | None
    attempts: int | None
    """The number of continuations; None if the policy has no bound."""
    tokens: int | None
    """The tokens left of the budget for continuations; None if there is no budget."""
    repairs: int
    resumes: int
    rounds: int | None
    """The number of rounds of tools; None if the policy has no bound."""
    boosts: int | None
    """The number of retries with twice the cap; None if they are bounded only by the continuations."""
    answers: int = 1
    nudges: int = 0
    """The number of retries of answers without content."""
    doubles: bool = False
    """Whether a repair of a cut call is requested with twice the cap."""


class CostPart(NamedTuple):
    """The part of one kind of request in the greatest possible output."""

    one: str
    many: str
    """The name of the kind in the plural; `one` is the singular."""
    requests: int
    each: int | None
    """The largest output of each such request, in tokens; None if only their total output is bounded."""
    output: int
    limit: str


@dataclass(frozen=True, slots=True)
class Cost:
    """The greatest possible cost."""

    requests: int | None
    output: int | None
    input: int | None
    unbounded: str = ""
    """Why there is no bound; empty if there is one."""
    parts: tuple[CostPart, ...] = ()
    """The kinds of requests of which `requests` and `output` are the sums."""
    raised: int | None = None
    """The cap of a request after all possible raises; None if no cap can be raised."""
    cap: int | None = None
    """The cap of a request whose cap was not raised."""


def requests_left(turn: Turn, pending: bool, answered: bool) -> RequestsLeft:
    """The requests and tokens that a turn may still use; `answered` says whether any tool call could get a result."""
    limits, spent, policy = turn.limits, turn.spend, turn.policy
    cap = turn.last_send.max_tokens if turn.last_send is not None else turn.request.max_tokens
    budget = turn.token_cap
    pauses = any(row.stop is Stop.PAUSED for row in wire(turn.request.api).stop_reasons.values())
    steps = None if "tool_steps" in policy.lacks else max(0, limits.max_tool_steps - spent.tool_steps)
    return RequestsLeft(
        pending, cap, _attempts(limits, spent, policy, turn),
        None if budget is None else max(0, budget - spent.continuation_tokens),
        max(0, limits.continuation_tool_repair_attempts - spent.repairs),
        max(0, limits.max_resumes - spent.resumes) if pauses else 0,
        steps if answered else 0,
        None if "thinking" in policy.lacks
        else max(0, limits.max_thinking_only - spent.thinking_only) + _is_retry_due(turn),
        turn.request.n,
        max(0, limits.max_empty_retries - spent.empty_retries) if policy.reads is ReasonSource.EFFECTIVE else 0,
        policy.settles,
    )


def _is_retry_due(turn: Turn) -> bool:
    """Whether the spend already counts an answer of reasoning alone whose retry is not sent yet."""
    evaluation = turn.evaluation
    return turn.state is State.CONTINUE_PENDING and evaluation is not None and not evaluation.response.text


def _attempts(limits: Limits, spend: Spend, policy: Policy, turn: Turn) -> int | None:
    if not policy.methods:
        return 0
    if "attempts" in policy.lacks:
        return None
    if limits.attempts_scope == "turn":
        return max(0, limits.continuation_max_attempts - spend.attempts)
    rounds = limits.max_tool_steps + limits.max_resumes + limits.continuation_tool_repair_attempts
    return limits.continuation_max_attempts * (1 + rounds)  # each answer that is not cut resets the count


def cost_of(remaining: RequestsLeft, first_input: int, results: int = 0) -> Cost:
    """The greatest possible cost; `first_input`: tokens of the first request, `results`: those of all tool results."""
    if remaining.cap is None:
        return Cost(None, None, None, "the request has no max_tokens")
    if remaining.attempts is None or remaining.rounds is None:
        what = "continuations" if remaining.attempts is None else "rounds of tools"
        return Cost(None, None, None, f"the policy has no bound for {what}")
    attempts = 0 if remaining.tokens == 0 else remaining.attempts
    rounds = remaining.rounds
    most = remaining.cap * 2 ** (attempts if remaining.boosts is None else min(remaining.boosts, attempts))
    if remaining.doubles:
        most *= 2**remaining.repairs
        most = most if remaining.tokens is None else min(most, remaining.tokens)  # the bound applies to each request
    own = int(remaining.first)
    others = remaining.repairs + remaining.resumes + remaining.nudges
    requests = own + rounds + attempts + others
    chain = whole = own * remaining.cap + attempts * most
    if remaining.tokens is not None:
        beyond = 0 if remaining.doubles else most - 1  # without doubling, it is checked only between requests
        chain = max(own * remaining.cap, min(chain, remaining.tokens + beyond if attempts else 0))
    output = rounds * remaining.cap + chain + others * most
    before = sum(min(number * most, output) for number in range(requests))
    messages = MESSAGE_TOKENS * requests * (requests - 1) // 2
    sent = requests * first_input + max(0, requests - 1) * results + before + messages
    repairs, resumes, nudges, answers = remaining.repairs, remaining.resumes, remaining.nudges, remaining.answers
    after, free = (chain - own * remaining.cap) * answers, chain == whole
    cap, raised = remaining.cap * answers, most * answers
    parts = (
        CostPart("first request", "first requests", own, cap, own * cap, "max_tokens"),
        CostPart("continuation", "continuations", attempts, raised if free else None, after,
                 "continuation_max_attempts" if free else "continuation_max_total_completion_tokens"),
        CostPart("tool round", "tool rounds", rounds, cap, rounds * cap, "max_tool_steps"),
        CostPart("repair", "repairs", repairs, raised, repairs * raised, "continuation_tool_repair_attempts"),
        CostPart("resumption", "resumptions", resumes, raised, resumes * raised, "max_resumes"),
        CostPart("retry of an empty answer", "retries of an empty answer", nudges, raised, nudges * raised,
                 "max_empty_retries"),
    )
    return Cost(requests, output * answers, sent, parts=tuple(part for part in parts if part.requests),
                raised=raised if most > remaining.cap else None, cap=cap)


def estimate(chars: int) -> int:
    """The estimated number of tokens of a text."""
    return -(-chars // CHARS_A_TOKEN)


# -- The body of a recorded request with a change --------------------------------------------------------------------
# Pure.
# A format's reader and writer may lose details, and the server accepted the recorded body as it was. So every field
# that the change does not concern keeps its recorded spelling.

SPELLINGS: tuple[tuple[str, ...], ...] = (
    ("max_tokens", "max_completion_tokens", "max_output_tokens"),
    ("maxOutputTokens", "max_output_tokens"),
    ("generationConfig", "generation_config"),
    ("toolConfig", "tool_config"),
)
"""Groups of names of the same field on different servers. A changed value is written under the recorded name."""


def graft_changes(original: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded body with the difference between the encoded requests `before` and `after`."""
    body = dict(original)
    for name in [*before, *(name for name in after if name not in before)]:
        if name in before and name in after and before[name] == after[name]:
            continue
        places = _places(name, original)
        if name not in after:
            for place in places:
                body.pop(place, None)
            continue
        for place in places or (name,):
            body[place] = _value(original.get(place), before.get(name), after[name])
    return body


def with_text(original: Any, old: str, new: str) -> Any:
    """The recorded JSON with one text replaced by another; None unless the text occurs exactly once."""
    return _replace(original, old, new) if _count(original, old) == 1 else None


def _count(value: Any, text: str) -> int:
    if isinstance(value, Mapping):
        return sum(_count(each, text) for each in value.values())
    return sum(_count(each, text) for each in value) if _is_list(value) else int(value == text)


def _replace(value: Any, old: str, new: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _replace(each, old, new) for name, each in value.items()}
    if _is_list(value):
        return [_replace(each, old, new) for each in value]
    return new if value == old else value


def _places(name: str, original: Mapping[str, Any]) -> list[str]:
    """The places in the recorded body that hold a field."""
    if name in original:
        return [name, *(other for group in SPELLINGS if name in group for other in group
                        if other in original and other != name and original[other] == original[name])]
    return list(dict.fromkeys(other for group in SPELLINGS if name in group for other in group if other in original))


def _value(original: Any, before: Any, after: Any) -> Any:
    if isinstance(original, Mapping) and isinstance(after, Mapping):
        return graft_changes(original, before if isinstance(before, Mapping) else {}, after)
    if _is_list(original) and _is_list(before) and _is_list(after):
        if len(original) == len(before) == len(after):
            return [own if one == other else _value(own, one, other)
                    for own, one, other in zip(original, before, after, strict=True)]
        same = common_beginning(before, after, eq)
        if same == len(before):
            return [*original, *after[same:]]
        if len(original) == len(before):
            return [*original[:same], *after[same:]]
    return after


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))

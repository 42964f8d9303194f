"""The functions behind the rules of `inspector check`. They report only what bytes or a recorder's rows prove."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.findings import CUT_WORDS, ReportedFinding, held_calls, is_suspicion
from inspector.report.run_answers import used_responses
from inspector.sessions.recording import TurnPlace
from inspector.sessions.thread import response_number
from loop_core.formats import FORMATS
from loop_core.judge.arguments import ArgumentShape, parse_call, schema_problems
from loop_core.judge.signs import only_thinks
from loop_core.values import At, ReasoningPart, Role, Severity, Stop, tools_by_name
from loop_core.wire import wire


class RuleHit(NamedTuple):
    """A match of a rule: its description and its place."""

    message: str
    response: int | None = None
    """The index of the response in the view; None if the match concerns the whole turn."""
    at: At | None = None
    sure: bool = True
    """Whether the match is certain and something was lost. Otherwise an error of the rule is reported as a warning."""


Finder = Callable[[View, TurnFacts], Iterator[RuleHit]]


def from_findings(*rules: str, but: Sequence[str] = ()) -> Finder:
    """A finder for findings of these rules; a name that ends in a dot stands for all warnings and errors whose rules
    begin with it. A hit is sure if its finding is an error and not only a suspicion."""

    def find(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
        for note in turn.findings:
            found = note.finding
            begins = any(found.rule.startswith(rule) for rule in rules if rule.endswith("."))
            if found.rule in but:
                continue
            if found.rule in rules or (begins and found.severity is not Severity.INFO):
                sure = found.severity is Severity.ERROR and not _is_suspicion(view, note)
                yield RuleHit(found.message, note.response, found.at, sure)

    return find


def _is_suspicion(view: View, reported_finding: ReportedFinding) -> bool:
    """Whether a finding is about a call with whole arguments, for whose cut a spent budget is the only evidence."""
    if reported_finding.call is None or reported_finding.response is None:
        return False
    whole = parse_call(reported_finding.call.call).shape is ArgumentShape.COMPLETE
    return whole and is_suspicion(view.responses[reported_finding.response].judgement)


_OWN_LIMIT = re.compile(r"(?:^|; )this loop's limit \w+ \([\d,]+(?: of [\d,]+)?\) ended the turn(?:$|: )")
"""Matches the part of a verdict's sentence about a limit of our engine, which the recorded agent did not have."""


def from_verdict(*words: str) -> Finder:
    """A finder for turns with one of these verdicts. If only a spent budget is evidence of a cut, its hit is not sure.
    """

    def find(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
        verdict = turn.verdict
        if verdict.word not in words:
            return
        facts = deciding(view, turn)
        at = (next((evidence.at for evidence in reversed(facts.evidence) if evidence.at is not None), None)
              if facts else None)
        yield RuleHit(_OWN_LIMIT.sub("", verdict.sentence), facts.index if facts else None, at,
                      verdict.sure and not (facts and is_suspicion(facts.judgement)))

    return find


def cut_call(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds turns that end with a held call. The hit is not sure if the call has no arguments and may need none."""
    facts = deciding(view, turn)
    for hit in from_verdict("CALL HELD", "CALL NOT RUN")(view, turn):
        yield hit._replace(sure=hit.sure and (facts is None or not _may_lack_arguments(facts)))


def cut_answer(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds turns that end with a cut answer, also where the verdict is about an earlier answer of the turn."""
    yield from from_verdict("TRUNCATED")(view, turn)
    last, decided = used_responses(view, turn)[-1], deciding(view, turn)
    if last.judgement.stop.normalized is not Stop.MAX_TOKENS or held_calls(last.verdicts) or (
            decided is None or decided.index >= last.index):
        return
    at = next((evidence.at for evidence in reversed(last.evidence) if evidence.at is not None), None)
    yield RuleHit(f"the last answer, response {response_number(last.index)}, was cut", last.index, at,
                  not is_suspicion(last.judgement))


def _may_lack_arguments(facts: ResponseFacts) -> bool:
    """Whether all held calls came whole or without arguments, which none of their tools is known to require."""
    tools = tools_by_name(facts.exchange.request.tools if facts.exchange.request else ())
    held = [(verdict.call, parse_call(verdict.call).shape) for verdict in held_calls(facts.verdicts)]
    return any(finding.rule == "judge.empty_arguments" for finding in facts.judgement.findings) and all(
        shape is ArgumentShape.COMPLETE or (shape.is_missing and not schema_problems(tools.get(call.name or ""), {}))
        for call, shape in held)


def deciding(view: View, turn: TurnFacts) -> ResponseFacts | None:
    """The response that decided a turn's verdict; else its last response; None if it has none."""
    index = view.steps[view.deciding_step(turn)].response
    if index is None and turn.responses:
        index = turn.responses[-1]
    return view.responses[index] if index is not None else None


def _cut(facts: ResponseFacts) -> bool:
    return facts.judgement.stop.normalized in CUT_WORDS or facts.judgement.cap_reached


# -- Problems that only several answers show ---------------------------------------------------------------------------

SAME = 20
"""The number of characters of the arguments that must be equal if two cut calls are to count as the same call."""


def repeated_cut_call(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds a call that was cut, requested again and cut again with the same beginning."""
    before: dict[str, str] = {}
    count = 1
    for facts in used_responses(view, turn):
        cut = {verdict.call.name or "": verdict.call.arguments or "" for verdict in held_calls(facts.verdicts)}
        if not _cut(facts):
            cut = {}
        same = next((name for name, text in cut.items()
                     if name in before and len(text) >= SAME and text[:SAME] == before[name][:SAME]), None)
        if same is not None:
            count += 1
            yield RuleHit(f"the call {same or 'without a name'} is cut again at the same beginning ({count} times)",
                          facts.index)
        before = cut


def thinking_ate_budget(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds cut responses whose tokens were nearly all reasoning. The hit is not sure if the turn is complete."""
    lost = not turn.verdict.complete
    for facts in used_responses(view, turn):
        response, usage = facts.exchange.response, facts.exchange.response.usage
        if facts.judgement.stop.normalized is not Stop.MAX_TOKENS:
            continue
        spent, thought = (usage.output_tokens, usage.reasoning_tokens) if usage else (None, None)
        if spent and thought is not None and thought <= spent and thought * 10 >= spent * 9:
            yield RuleHit(f"{thought:,} of {spent:,} output tokens were reasoning, and the answer was cut",
                          facts.index, sure=lost)
        elif not response.text and not response.tool_calls and any(
            type(part) is ReasoningPart for part in response.parts
        ):
            yield RuleHit("the answer was cut, and contains only reasoning", facts.index, sure=lost)
        # A server without a parser for the marks of its model (DeepSeek R1, QwQ) leaves reasoning in the text.
        elif not response.tool_calls and (sign := only_thinks(response.text or "")) is not None:
            yield RuleHit(f"the answer was cut, and contains only reasoning: {sign.text}", facts.index, sure=lost)


def budget_shrank(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds a continuation request whose cap is smaller than that of the cut response."""
    for before, facts in pairwise(used_responses(view, turn)):
        asks_on = facts.link.place not in (TurnPlace.REQUEST, TurnPlace.TOOL_RESULT)
        if asks_on and _cut(before):
            old, new = before.exchange.cap, facts.exchange.cap
            if old is not None and new is not None and new < old:
                yield RuleHit(f"the answer was cut at max_tokens {old:,}, and the {facts.link.place.value} has only "
                              f"{new:,}", facts.index, At())


DEFAULT_CAPS: Mapping[tuple[str, int], str] = {
    ("anthropic_messages", 512): "that of LlamaIndex's Anthropic class",
    ("anthropic_messages", 1_024): "that of LangChain's ChatAnthropic, and of many examples",
    ("anthropic_messages", 4_096): "that of the AI SDK, and of many examples",
}
"""Wire format and output cap -> the library that has this cap as its default. Such a cap was perhaps not chosen on
purpose. Sources: OpenAI's API reference; the classes' own signatures."""


def small_default_cap(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds cut responses whose cap is a library's default, or whose request sets none; at most one per turn."""
    cuts = [(facts, why) for facts in used_responses(view, turn) if (why := _unchosen_cap(facts))]
    if cuts:
        first, why = cuts[0]
        more = f"; {len(cuts):,} answers of the turn are cut like that" if len(cuts) > 1 else ""
        yield RuleHit(why + more, first.index)


def _unchosen_cap(facts: ResponseFacts) -> str:
    """Why the cap that cut an answer was probably not chosen on purpose; empty otherwise, or if nothing was cut."""
    exchange = facts.exchange
    if facts.judgement.stop.normalized is not Stop.MAX_TOKENS or exchange.request is None:
        return ""
    cap, usage = exchange.request.max_tokens, exchange.response.usage
    spent = usage.output_tokens if usage else None
    if cap is not None and (exchange.api, cap) in DEFAULT_CAPS:
        return (f"cut at max_tokens {cap:,}; this default is {DEFAULT_CAPS[exchange.api, cap]}, so perhaps nobody "
                "chose it")
    if cap is None and spent and exchange.recorder is None and exchange.request_json is not None:
        choices = f" in {exchange.response.other_choices + 1} choices" if exchange.response.other_choices else ""
        return f"the request sets no max_tokens, and the answer is cut after {spent:,} output tokens{choices}"
    return ""


def pause_as_end(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds a pause after which the client sent the user's next message instead of the paused response."""
    every = used_responses(view, turn)
    if not every or every[-1].judgement.stop.normalized is not Stop.PAUSED:
        return
    last = every[-1]
    if any(link.parent == last.index and link.place is TurnPlace.REQUEST
           for other in view.turns if other is not turn for link in other.run.record.links):
        yield RuleHit("the answer paused and was not resumed: the conversation went on with a new message", last.index)


def context_as_budget(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds a full context after which the client requested the rest, which cannot fit."""
    for before, facts in pairwise(used_responses(view, turn)):
        full = before.judgement.stop.normalized is Stop.CONTEXT_WINDOW_EXCEEDED
        if full and facts.link.place in (TurnPlace.CONTINUATION, TurnPlace.REPAIR):
            yield RuleHit(f"the context was full, and a {facts.link.place.value} was sent as if max_tokens had cut "
                          "the answer", facts.index)


LEAST_CACHED = 1_024
"""The number of cached tokens below which their loss is not reported. Providers cache no shorter prefix."""


def cache_prefix_rewritten(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds a request that changed earlier messages, so that the provider's cache no longer matched."""
    for facts in used_responses(view, turn):
        parent = facts.link.parent
        if parent is None or parent >= len(view.responses) or parent < 0:
            continue
        before = view.responses[parent]
        cached, now = (each.exchange.response.usage and each.exchange.response.usage.cached_tokens
                       for each in (before, facts))
        changed = changed_at(before.exchange.request_json, facts.exchange.request_json)
        if (cached is not None and now is not None and cached >= LEAST_CACHED and now * 2 < cached
                and changed is not None):
            yield RuleHit(f"{changed} differs from the request before: {cached:,} tokens came from the cache then, now "
                          f"{now:,}", facts.index)


def history_refused(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds requests whose history a strict server of their format would refuse, although this server accepted it."""
    for facts in used_responses(view, turn):
        exchange = facts.exchange
        if exchange.profile.name in OWN_SERVERS:
            continue  # the strict server itself accepted it
        why = refusal(exchange.api, exchange.request_json)
        if why is not None:
            yield RuleHit(why, facts.index)
            return  # the next request repeats this history


def continuation_damage(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
    """Finds text of a continued answer that the agent's history lost or repeated, or that started again."""
    pieces = [facts for facts in used_responses(view, turn) if facts.link.place in (TurnPlace.REQUEST,
                                                                                  TurnPlace.CONTINUATION)]
    for before, after in pairwise(pieces):
        if after.link.place is not TurnPlace.CONTINUATION or after.link.parent != before.index:
            continue
        first, second = before.exchange.response.text or "", after.exchange.response.text or ""
        if begins_anew(first, second):
            yield RuleHit("the continuation starts the answer again instead of continuing it", after.index)
    cut = [facts for facts, after in pairwise(pieces) if after.link.place is TurnPlace.CONTINUATION]
    # Later turns are searched only for a continued answer: a search for each of 3,000 turns of a file took 4.8 s.
    next_text = text_after(view, turn) if cut or turn.joined_text.seams else None
    if next_text is None:
        return
    gone = [facts for facts in cut if is_lost(facts.exchange.response.text or "", next_text)]
    if gone:
        yield RuleHit("the agent's history went on without the text before the cut" + (
            f", of {len(gone):,} answers" if len(gone) > 1 else ""), gone[0].index)
    for seam in turn.joined_text.seams:
        doubled = doubled_text(seam.cut, next_text)
        if doubled is not None:
            yield RuleHit(f"the agent's history repeats the overlap of two segments: {doubled!r}",
                          pieces[-1].index if pieces else None)


# -- Comparing requests: what an agent's history changed, lost or repeated ---------------------------------------------

LISTS = ("system", "tools", "messages", "contents", "input")
"""The members of a request that a provider caches as a prefix, in the order in which it reads them."""
OF_HISTORY = frozenset({"pairs", "first_role", "alternation", "undeclared", "empty_text", "last_blank"})
"""The names of the scripted provider's conditions (`Demands.conditions`) that concern only the history."""
OWN_SERVERS = frozenset({"openai", "azure_openai", "anthropic", "gemini", "vertex", "bedrock", "ollama"})
"""The profiles of the servers whose makers defined the formats. They are strict themselves, so a history that they
accepted is valid."""
SHARED_LENGTH = 40
"""The number of equal characters from which a match of two texts is not taken for an accident."""


def changed_at(before: Any, after: Any) -> str | None:
    """The first part of a request that differs when the next request sends it again; None if none does."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return None
    for name in LISTS:
        old, new = before.get(name), after.get(name)
        if name in ("system", "tools"):
            if old is not None and _plain(old) != _plain(new):
                return name
        elif isinstance(old, list) and isinstance(new, list):
            differs = (at for at, item in enumerate(old) if at >= len(new) or _plain(item) != _plain(new[at]))
            first = next(differs, None)
            # The last message of the earlier request may have had the cache mark, or been a prefill that is sent whole
            # here.
            if first is not None and first < len(old) - 1:
                return f"{name}[{first}]"
    return None


def _plain(value: Any) -> Any:
    """A value without cache marks (`cache_control`, `cachePoint`), which move with every request."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if name not in ("cache_control", "cachePoint")}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def refusal(api: str, body: Any) -> str | None:
    """Why a strict server of this format refuses the history of a request; None if it does not."""
    if not isinstance(body, dict) or api not in FORMATS:
        return None
    for condition in wire(api).serving.demands.conditions:
        if condition.name not in OF_HISTORY:
            continue
        try:
            error = condition.find(body)
        except (TypeError, ValueError, AttributeError, LookupError):
            continue  # another rule reports a body of an unexpected shape
        if error is not None:
            return " ".join(str(error).split())
    return None


def begins_anew(first: str, second: str) -> bool:
    """Whether a second text repeats the beginning of the first instead of continuing its end."""
    start = second.lstrip()[:SHARED_LENGTH]
    return len(start) == SHARED_LENGTH and first.lstrip().startswith(start) and not first.rstrip().endswith(start)


def text_after(view: View, turn: TurnFacts) -> str | None:
    """The text of the model in a later request whose history begins like the turn's own; None if it has none."""
    own = [link.index for link in turn.run.record.links]
    requests = [view.responses[index].exchange.request for index in own]
    opening = requests[0] if requests else None
    if opening is None or not opening.messages or opening.previous_id:
        return None
    begins, end = opening.messages, len(opening.messages)
    asks_on = {message.text for request in requests[1:] if request is not None for message in request.messages[end:]
               if message.role is Role.USER}
    later = (view.responses[link.index].exchange for other in view.turns if other is not turn
             for link in other.run.record.links if link.index > own[-1])
    for exchange in later:
        request = exchange.request
        if request is None or request.messages[:end] != begins:
            continue
        answer: list[str] = []
        for message in request.messages[end:]:
            if message.role is Role.USER and answer and message.text not in asks_on:
                break
            if message.role is Role.ASSISTANT:
                answer.append(message.text)
        return "\n".join(answer)
    return None


def is_lost(text: str, kept_text: str) -> bool:
    """Whether a text of some length is missing from the answer in the history."""
    begins = text.strip()[:SHARED_LENGTH]
    return len(begins) == SHARED_LENGTH and bool(kept_text.strip()) and begins not in kept_text


def doubled_text(overlap: str, kept_text: str) -> str | None:
    """The text that two segments share, if the history holds it twice in a row; None if it does not."""
    text = overlap.strip()
    if len(text) < SHARED_LENGTH // 2:
        return None
    at = kept_text.find(text)
    again = kept_text.find(text, at + len(text)) if at >= 0 else -1
    return text[:60] if again >= 0 and not kept_text[at + len(text) : again].strip() else None

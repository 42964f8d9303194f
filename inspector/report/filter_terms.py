"""The terms of a filter, one table row each: words, flags, numbers, patterns. A test of a response runs only once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Generic, NamedTuple, Protocol, TypeVar

from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.findings import CUT_WORDS, RAN
from inspector.report.run_answers import answer_at, answering_step
from inspector.report.times_and_costs import length_ms, turn_times
from inspector.report.verdict import identifier
from inspector.sessions.reasons import named_api, recorder_word
from inspector.sessions.traffic import moment
from loop_core.judge.gate import Admission
from loop_core.turn.state import Send
from loop_core.turn.trace import Step, limit_usage


class FilterPlace(Protocol):
    """What a filter tests: a step of a session, or a response in the table of turns."""

    @property
    def source(self) -> object:
        """The object that numbers answers, if places share them; the test of an answer then runs once."""

    @property
    def answer(self) -> int | None:
        """The number of the current answer; None before any."""

    def words(self, name: str) -> Iterable[str]:
        """The values of a row of `WORDS`."""

    def flag(self, name: str) -> bool:
        """Whether a flag of `FLAGS` holds."""

    def number(self, name: str, share: bool) -> float | None:
        """The value of a row of `NUMBERS`, or its percentage of the limit; None if there is none."""

    def text(self, name: str) -> str:
        """The text of a row of `PATTERNS`."""

    def search_text(self) -> str:
        """The text, in lower case, in which words that are not terms are searched."""


class StepContext:
    """One step of a session, as a filter tests it; the step and its response are looked up once for all terms."""

    def __init__(self, view: View, index: int, marks: frozenset[int] = frozenset()) -> None:
        self.view = self.source = view
        self.index, self.marks = index, marks

    @cached_property
    def step(self) -> Step:
        """The step, with the limits in force at it."""
        return self.view.effective_step(self.index)

    @cached_property
    def answer(self) -> int | None:
        """The index of the current response; for a simulated one a negative number (`~step`); None before any."""
        recorded = self.step.response
        if recorded is not None:
            return recorded
        at = answering_step(self.view, self.index)
        # `~at` is negative for every step, also for step 0, so it never equals the index of a recorded response.
        return None if at is None else ~at

    @cached_property
    def response(self) -> ResponseFacts | None:
        """The current response; None before the first of a turn."""
        return answer_at(self.view, self.index)

    @cached_property
    def turn(self) -> TurnFacts:
        """The turn of the step."""
        return self.view.turn_of(self.index)

    def words(self, name: str) -> Iterable[str]:
        """The values of a row of `WORDS`."""
        return self._value_of(WORDS[name], ())

    def flag(self, name: str) -> bool:
        """Whether a flag of `FLAGS` holds."""
        return self._value_of(FLAGS[name], False)

    def _value_of(self, row: Term[Value], nothing: Value) -> Value:
        if row.of_step is not None:
            return row.of_step(self)
        facts = self.response
        return nothing if facts is None or row.of_response is None else row.of_response(self.view, facts)

    def number(self, name: str, share: bool) -> float | None:
        """The value of a row of `NUMBERS`, or its percentage of the limit; None if there is none."""
        row = NUMBERS[name]
        return row.share(self) if share and row.share is not None else row.value(self)

    def text(self, name: str) -> str:
        """The text of a row of `PATTERNS`."""
        facts = self.response
        return PATTERNS[name].text(facts) if facts is not None else ""

    def search_text(self) -> str:
        """The text that a search looks through: the user's message, the answer, and the words and names about both."""
        facts = self.response
        if facts is None:
            return ""
        turn, path = self.turn, facts.exchange.path
        names = (*_present(facts.exchange.session, *_titles(self.view, path)), path)
        return folded_text(*searched_text(turn, (facts,), facts.exchange.response.text or "", names))


Value = TypeVar("Value")


class Term(NamedTuple, Generic[Value]):
    """A term that looks at the response, or at the step."""

    about: str
    of_response: Callable[[View, ResponseFacts], Value] | None = None
    of_step: Callable[[StepContext], Value] | None = None


Word = Term[Iterable[str]]
"""The term `name:value`, which matches if any value of the step or response matches."""
Flag = Term[bool]


class Number(NamedTuple):
    """The term `name>1`: a number, or with `%` the percentage of a limit."""

    about: str
    value: Callable[[StepContext], float | None]
    share: Callable[[StepContext], float | None] | None = None
    """The percentage of the limit that is spent; None if the number has no limit."""
    units: Mapping[str, int] = {}
    """Unit that may follow a number -> its factor, for a number of milliseconds."""


class Pattern(NamedTuple):
    """The term `~b REGEX`: a regular expression over a text of the response."""

    about: str
    text: Callable[[ResponseFacts], str]


def _present(*values: str | None) -> list[str]:
    return [value for value in values if value]


def _has(admission: Admission) -> Callable[[View, ResponseFacts], bool]:
    return lambda view, facts: any(verdict.admission is admission for verdict in facts.verdicts)


@lru_cache(maxsize=4)
def _findings(view: View) -> Mapping[int | str | None, set[str]]:
    """Index of a response, or id of a turn for findings about no response -> the rules; computed once for a view."""
    found: dict[int | str | None, set[str]] = {}
    for note in view.findings:
        found.setdefault(note.turn if note.response is None else note.response, set()).add(note.finding.rule)
    return found


def _rules(view: View, facts: ResponseFacts) -> set[str]:
    """The rules of the findings about a response and about its turn."""
    return {*_findings(view).get(facts.index, ()), *_findings(view).get(facts.turn, ())}


@lru_cache(maxsize=4)
def _begun(view: View) -> Sequence[int | None]:
    """The start of each turn in nanoseconds since the epoch; None if it was not recorded."""
    return [moment(times.started) if (times := turn_times(view, turn)) else None for turn in view.turns]


def _age(at: StepContext) -> float | None:
    started = _begun(at.view)[at.view.replay.turn_at(at.index)]
    return None if started is None else time.time() * 1_000 - started / 1e6


def searched_text(
    turn: TurnFacts, answers: Sequence[ResponseFacts], text: str, names: Iterable[str]
) -> tuple[tuple[str, ...], str]:
    """What a search looks through: the contents (the user's message, the text of answers, the arguments of calls) as
    they are stored, and the names and words about them in lower case, with `names`, which many turns share."""
    calls = [verdict.call for each in answers for verdict in each.verdicts]
    words = (word for each in answers for word in (
        each.exchange.model or "", each.agent, each.judgement.stop.raw or "", each.judgement.stop.normalized.value,
        noted_word(each.agent, recorder_word(each.judgement.stop))))
    advice = turn.verdict.advice.text if turn.verdict.advice else ""
    contents = (turn.run.record.user_text, text, *(call.arguments for call in calls if call.arguments))
    about = (*names, *dict.fromkeys((*(call.name or "" for call in calls), *words)), turn.verdict.word, turn.terminal,
             advice)
    return contents, "\n".join(about).casefold()


def folded_text(contents: Sequence[str], names: str) -> str:
    """The text, in lower case, in which a search looks; made at each search, as it takes as much memory as a turn."""
    return "\n".join((*contents, "")).casefold() + names


def noted_word(agent: str, word: str | None) -> str:
    """A recorder's stop word as rows print it, after the agent's name; empty if there is none."""
    return f"{agent}:{word}" if word else ""


def verdict_words(word: str) -> tuple[str, ...]:
    """The values of `verdict:` that find a verdict: its word, its id, and each word of a word of several."""
    return word, identifier(word), *word.replace(",", "").split()


def _titles(view: View, path: str) -> list[str | None]:
    return [source.about.title for source in view.inputs if source.path == path and source.about is not None]


WORDS: Mapping[str, Word] = {
    "stop": Word("the effective stop reason: stop:max_tokens",
                 lambda view, facts: (facts.judgement.stop.normalized.value,)),
    "mapped": Word("what the provider's own word means before any correction",
                   lambda view, facts: (facts.judgement.mapped.normalized.value,)),
    "raw": Word("the provider's own word: raw:length; !raw:* where it sent none",
                lambda view, facts: _present(facts.exchange.response.raw_stop_reason)),
    "recorder": Word("the recorder's own word, where the provider's was not recorded: recorder:length",
                     lambda view, facts: _present(recorder_word(facts.judgement.stop))),
    "detail": Word("the detail of the reason",
                   lambda view, facts: _present(facts.judgement.stop.detail)),
    "ending": Word("how an answer ended that only looks finished: ending:empty_answer",
                   lambda view, facts: _present(facts.judgement.ending.value if facts.judgement.ending else None)),
    "rule": Word("a rule that read the reason, decided a call or found something: rule:judge.*",
                 lambda view, facts: (
                     *(each.rule for each in (*facts.exchange.profile_evidence, *facts.judgement.stop.evidence)),
                     *(each.rule for each in facts.verdicts), *_rules(view, facts))),
    "tool": Word("the name of a call: tool:write_file",
                 lambda view, facts: _present(*(verdict.call.name for verdict in facts.verdicts))),
    "provider": Word("who answered: the profile's name",
                     lambda view, facts: (facts.exchange.profile.name,)),
    "api": Word("the wire format", lambda view, facts: _present(named_api(facts.exchange))),
    "model": Word("the model", lambda view, facts: _present(
        facts.exchange.response.model, facts.exchange.request.model if facts.exchange.request else None)),
    "agent": Word("who asked: the agent that wrote the transcript, or the client that the request names",
                  lambda view, facts: _present(facts.agent)),
    "finding": Word("a finding about the response: finding:agent.*",
                    _rules),
    "next": Word("what the recorded agent did next", lambda view, facts: (facts.recorded_next,)),
    "session": Word("what its session is called",
                    lambda view, facts: _present(facts.exchange.session, *_titles(view, facts.exchange.path))),
    "file": Word("the file it was read from", lambda view, facts: (facts.exchange.path,)),
    "state": Word("the state that was entered: state:ContinuePending", None,
                  lambda at: (at.step.state.value,)),
    "signal": Word("the signal that led to the state: signal:MaxTokens", None,
                   lambda at: _present(at.step.signal.value if at.step.signal else None)),
    "event": Word("an event of the step: event:continuation_attempt", None,
                  lambda at: (str(record["event"]) for record in at.step.records)),
    "method": Word("how the step asks for more of an answer: method:anchor", None, lambda at: (
        effect.method.value for effect in at.step.effects if isinstance(effect, Send))),
    "end": Word("the terminal reason of the turn: end:retry_limit", None, lambda at: _present(at.turn.terminal)),
    "verdict": Word("the verdict on the turn, a word of it, or its id: verdict:call_held", None,
                    lambda at: verdict_words(at.turn.verdict.word)),
    "fidelity": Word("RECORDED, SIMULATED or LIVE", None, lambda at: (at.step.fidelity.value,)),
    "conversation": Word("the conversation's id", None, lambda at: (at.turn.conversation,)),
}

FLAGS: Mapping[str, Flag] = {
    "held": Flag("a call is held", _has(Admission.HELD)),
    "ready": Flag("a call is ready", _has(Admission.READY)),
    "rejected": Flag("a call was rejected", _has(Admission.REJECTED)),
    "cut": Flag("the response is incomplete", lambda view, facts: facts.judgement.stop.normalized in CUT_WORDS),
    "corrected": Flag("the effective reason differs from the meaning of the provider's word",
                      lambda view, facts: facts.judgement.stop.normalized is not facts.judgement.mapped.normalized),
    "ran": Flag("the recorded agent ran a held call",
                lambda view, facts: not _rules(view, facts).isdisjoint(RAN)),
    "unverified": Flag("nothing shows that a segment continues the text before it", None,
                       lambda at: bool(at.step.turn.doubtful_seams)),
    "attention": Flag("the verdict on the turn is an error or a warning", None,
                      lambda at: not at.turn.verdict.clean),
    "complete": Flag("the turn is complete, and its end is known", None, lambda at: at.turn.verdict.complete),
    "marked": Flag("you marked the step", None, lambda at: at.index in at.marks),
    "changed": Flag("the step does not come from the recording", None,
                    lambda at: at.step.fidelity.value != "RECORDED"),
}


def _limit_number(name: str, what: str) -> Number:
    place = ("attempts", "cont_tokens", "cont_chars", "repairs").index(name)

    def row(at: StepContext) -> tuple[str, str, int, int | None]:
        return limit_usage(at.step.turn)[place]

    return Number(f"{what} so far; with % the share of the limit",
                  lambda at: row(at)[2], lambda at: _share(row(at)[2], row(at)[3]))


def _share(amount: int, limit: int | None) -> float | None:
    if limit is None:
        return None
    # A limit of 0 allows nothing, so it counts as used up from the start.
    return 100.0 if not limit else 100.0 * amount / limit


def _budget(at: StepContext) -> float | None:
    shares = [_share(spent, limit) for _, _, spent, limit in limit_usage(at.step.turn) if spent]
    return max((share for share in shares if share is not None), default=0.0)


def _output(at: StepContext) -> float | None:
    usage = at.response.exchange.response.usage if at.response else None
    return None if usage is None else usage.output_tokens


def _cap(at: StepContext) -> float | None:
    request = at.response.exchange.request if at.response else None
    return None if request is None else request.max_tokens


UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "y": 365 * 86_400_000}
"""Unit of a time, as rows print it -> its milliseconds."""
NUMBERS: Mapping[str, Number] = {
    "attempt": _limit_number("attempts", "continuations of the turn"),
    "turn_tokens": Number("output tokens of the turn so far", lambda at: at.step.turn.spend.output_tokens),
    "chars": Number("visible characters of the turn so far", lambda at: at.step.turn.spend.output_chars),
    "cont_tokens": _limit_number("cont_tokens", "output tokens of cut responses and their continuations"),
    "cont_chars": _limit_number("cont_chars", "visible characters of cut responses and their continuations"),
    "repairs": _limit_number("repairs", "repairs of the turn"),
    "budget": Number("the share of the budget that is spent most: budget>=80%", _budget, _budget),
    "step": Number("the step's number", lambda at: at.index + 1),
    "turn": Number("the turn's number", lambda at: at.view.replay.turn_at(at.index) + 1),
    "segment": Number("which segment of its answer the response is",
                      lambda at: at.response.segment if at.response else None),
    "cap": Number("the output tokens that the request allows", _cap),
    "out": Number("output tokens of the response", _output),
    "size": Number("bytes of the response's body",
                   lambda at: at.response.exchange.size if at.response else None),
    "took": Number("milliseconds that the response took, where that was recorded; also took>3s, took>2m",
                   lambda at: length_ms(at.response.exchange) if at.response else None, units=UNITS),
    "age": Number("milliseconds since the turn began, where that was recorded; also age<3h, age>2d",
                  _age, units=UNITS),
    "status": Number("the HTTP status of the response",
                     lambda at: at.response.exchange.response.http_status if at.response else None),
}


PATTERNS: Mapping[str, Pattern] = {
    # Bytes that are not UTF-8 are replaced, so that a search works in every body.
    "b": Pattern("the body", lambda facts: facts.exchange.body.decode("utf-8", "replace")),
    "t": Pattern("the visible text", lambda facts: facts.exchange.response.text or ""),
    "r": Pattern("the reasoning", lambda facts: facts.exchange.response.reasoning_content or ""),
    "a": Pattern("the arguments of calls",
                 lambda facts: "\n".join(verdict.call.arguments or "" for verdict in facts.verdicts)),
    "q": Pattern("the messages of the request", lambda facts: "\n".join(
        message.text for message in facts.exchange.request.messages) if facts.exchange.request else ""),
    "u": Pattern("the address", lambda facts: facts.exchange.url),
    "h": Pattern("the headers", lambda facts: "\n".join(f"{k}: {v}" for k, v in facts.exchange.headers)),
}

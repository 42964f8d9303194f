"""Answers from what is known, cut again: exact texts, honest ends, and no cut call that runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from inspector.replay.known import _length
from inspector.replay.simulate import RULE, _repetition, cut_word
from loop_core.judge.classify import judge
from loop_core.judge.gate import Admission
from loop_core.judge.signs import stops_in_the_middle
from loop_core.turn.continuation import Method, has_tags
from loop_core.turn.history import Ability
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, run
from loop_core.turn.policy import STRICT, Policy
from loop_core.turn.state import RequestPlace, RunTools, State
from loop_core.turn.trace import Fidelity, Trace
from loop_core.values import ReasoningPart, Request, Stop, TextPart, Usage
from loop_core.wire import decode
from tests.scenes.essence import essence
from tests.scenes.provider import CALLING
from tests.scenes.rows import share
from tests.scenes.simulated import AMPLE, TOKEN, WHOLE_CALLS, WORDS, answers, call, play, reply, simulation_of, tokens

each_format = pytest.mark.parametrize("api", CALLING)
TEXT = "One by one the lamps went out, and nobody counted them. Nobody had a reason to; the sea was calm.\n\nIt rose."
ARGUMENTS = '{"text": "the first line, and then the second"}'


def answers_of(api: str, *texts: str, clean: bool = True):
    """A text in segments, each but the last cut by its budget."""
    made = []
    for number, text in enumerate(texts):
        last = number == len(texts) - 1
        stop = Stop.END_TURN if last and clean else Stop.MAX_TOKENS
        made.append((RequestPlace.CONTINUATION if number else RequestPlace.REQUEST, *reply(api, stop, TextPart(text))))
    return made


def last_turn(trace: Trace):
    return trace.steps[-1].turn


# -- text ------------------------------------------------------------------------------------------------------------


@each_format
def test_at_every_budget_the_merged_text_is_the_text(api: str) -> None:
    """The methods take turns: each has every third budget, and every budget of each method is that of three formats."""
    known = answers_of(api, TEXT)
    for budget in share(range(1, tokens(TEXT) + 3), api):
        method = (Method.PREFILL, Method.ANCHOR, Method.HINT)[(budget + CALLING.index(api)) % 3]
        trace = play(known, budget, method=method)
        assert last_turn(trace).joined_answer().text == TEXT, budget
        assert last_turn(trace).terminal == "completed"


@each_format
def test_so_many_segments_as_the_budget_needs(api: str) -> None:
    """Recorded as 3 x 512 tokens: at 256 six segments, at 1,024 two; the end mark of the last costs one more."""
    text = "".join(f"{number:04d} words,\n" for number in range(600))[: TOKEN * (3 * 512 - 1)]
    size = 512 * TOKEN
    known = answers_of(api, text[:size], text[size : 2 * size], text[2 * size :])
    for budget, wanted in ((256, 6), (1_024, 2), (1_536, 1), (1_535, 2), (300, 6)):
        got = answers(play(known, budget, 512))
        assert len(got) == wanted
        assert [answer.judgement.stop.normalized
                for answer in got] == [Stop.MAX_TOKENS] * (wanted - 1) + [Stop.END_TURN]
    assert len(answers(play(known, 1_024, 512))[0].response.text or "") == 1_024 * TOKEN


@each_format
def test_a_simulated_answer_says_so_and_was_decoded_from_its_bytes(api: str) -> None:
    trace = play(answers_of(api, TEXT), 7)
    first = answers(trace)[0]
    assert first.number is None
    assert first.recut is not None
    assert (first.recut.basis, first.recut.budget, first.recut.tokens) == ("chunks", 7, 7)
    assert first.response.text == TEXT[: 7 * TOKEN]
    assert first.response.stop_reason.raw == WORDS[api][1] == cut_word(api)
    assert first.response.stop_reason.evidence[-1].rule == RULE
    assert first.response.streaming
    assert (first.response.usage or Usage()).output_tokens == 7
    again = decode(api, first.recut.body)
    assert essence(again) == essence(first.response)
    assert [step.fidelity for step in trace.steps] == [Fidelity.RECORDED] + [Fidelity.SIMULATED] * (
        len(trace.steps) - 1)
    assert trace.departure == 1


@each_format
def test_at_the_recorded_budget_the_answers_are_the_recorded_ones(api: str) -> None:
    known = answers_of(api, TEXT[:30], TEXT[30:60], TEXT[60:])
    trace = play(known, 10, 10)
    assert [answer.response for answer in answers(trace)] == [response for _, response, _ in known]
    assert trace.departure is None


@each_format
def test_answers_that_fit_stay_the_recorded_ones(api: str) -> None:
    known = answers_of(api, TEXT)
    trace = play(known, tokens(TEXT) + 1)
    assert answers(trace)[0].response is known[0][1]
    assert trace.departure is None
    assert play(known, tokens(TEXT)).departure == 1  # the end mark no longer fits


@each_format
def test_what_follows_a_cut_is_not_known(api: str) -> None:
    known = answers_of(api, TEXT[:30], TEXT[30:60], clean=False)  # 10 tokens each, and the last was cut
    assert last_turn(play(known, 20, 10)).state is State.UNRECORDED
    assert last_turn(play(known, 20, 10)).joined_answer().text == TEXT[:60]
    assert len(answers(play(known, 21, 10))) == 0
    assert last_turn(play(known, 3,
                          10)).joined_answer().text == TEXT[:54]  # the seventh answer would have 2 known tokens of 3
    assert last_turn(play(known, 5, 10)).joined_answer().text == TEXT[:60]
    assert last_turn(play(known, 10, 10)).joined_answer().text == TEXT[:60]


# -- servers that call a cut answer finished -------------------------------------------------------------------------


@each_format
def test_a_cut_is_told_with_the_end_word_that_the_recording_says_at_its_cap(api: str) -> None:
    """Recorded: as many tokens as the cap, under the word for an end of turn."""
    known = [(RequestPlace.REQUEST, *reply(api, Stop.END_TURN, TextPart(TEXT), count=tokens(TEXT)))]
    first = answers(play(known, 4, tokens(TEXT)))[0]
    assert first.response.stop_reason.raw == WORDS[api][0]
    assert first.response.text == TEXT[: 4 * TOKEN]
    assert first.recut is not None
    assert first.recut.cut
    assert f"for such a cut this server says {WORDS[api][0]!r}" in first.response.stop_reason.evidence[-1].note


@each_format
def test_such_an_answer_is_judged_as_a_recorded_one_would_be(api: str) -> None:
    """One sign of a cut, the usage at the cap, asks for nothing more; a text that stops at a comma is the second."""
    text = "one and two, three or four and so on."
    known = [(RequestPlace.REQUEST, *reply(api, Stop.END_TURN, TextPart(text), count=tokens(text)))]
    for budget in range(1, tokens(text)):
        made = answers(play(known, budget, tokens(text)))
        first = made[0]
        again = judge(first.response, Request(api, max_tokens=budget))
        assert again.stop.normalized == first.judgement.stop.normalized
        assert first.cut_unseen is (again.stop.normalized is Stop.END_TURN)
        assert (len(made) == 1) is first.cut_unseen
    comma = next(budget for budget in range(1, tokens(text)) if text[: budget * TOKEN].endswith("two,"))
    assert not answers(play(known, comma, tokens(text)))[0].cut_unseen


@each_format
def test_without_that_evidence_a_cut_has_the_words_of_the_format(api: str) -> None:
    below = [(RequestPlace.REQUEST, *reply(api, Stop.END_TURN, TextPart(TEXT), count=tokens(TEXT)))]
    first = answers(play(below, 4, tokens(TEXT) + 1))[0]
    assert first.response.stop_reason.raw == WORDS[api][1]
    assert not first.cut_unseen
    honest = [(RequestPlace.REQUEST, *reply(api, Stop.MAX_TOKENS, TextPart(TEXT[:30]), count=tokens(TEXT[:30]))),
              (RequestPlace.CONTINUATION, *reply(api, Stop.END_TURN, TextPart(TEXT[30:60]), count=tokens(TEXT[30:60])))]
    assert answers(play(honest, 4, 10))[0].response.stop_reason.raw == WORDS[api][1], "another answer says it openly"


def test_other_limits_alone_leave_the_recording_as_it_is() -> None:
    known = answers_of("openai_chat", TEXT[:30], TEXT[30:60], TEXT[60:])
    for attempts in range(4):
        trace = play(known, 10, 10, limits=Limits(continuation_max_attempts=attempts))
        assert {step.fidelity for step in trace.steps} == {Fidelity.RECORDED}
        assert len(answers(trace)) == min(3, attempts + 1)


def test_a_request_that_is_made_again_is_answered_from_the_beginning() -> None:
    """A first cut behind white space alone leaves nothing to go on from, and the white space comes once."""
    text = "\n" * 8 + TEXT
    trace = play(answers_of("openai_chat", text), 2, 1_000)
    assert last_turn(trace).terminal == "completed"
    assert last_turn(trace).joined_answer().text == text


@settings(max_examples=60, deadline=None)
@given(
    api=st.sampled_from(sorted(CALLING)),
    method=st.sampled_from([Method.PREFILL, Method.ANCHOR]),
    text=st.text(st.sampled_from("xb \n\té字"), min_size=1, max_size=90),
    splits=st.lists(st.integers(1, 89), max_size=3),
    budget=st.integers(1, 40),
)
def test_any_text_however_it_was_recorded(
    api: str, method: Method, text: str, splits: Sequence[int], budget: int
) -> None:
    """Repeating texts too: where the model is asked to quote, or its prefill is known not to be echoed.

    A blank one is no answer, one that begins blank is asked for again where no more than that fits, and after one that
    stops in the middle ("é" is a word of Portuguese that nothing ends with) an empty answer is asked for once more.
    """
    assume(not text[0].isspace() and stops_in_the_middle(text) is None)
    places = [0, *sorted({place for place in splits if place < len(text)}), len(text)]
    known = answers_of(api, *(text[a:b] for a, b in pairwise(places)))
    # A recorded hint may itself be joined with care: what is known is what those seams gave.
    whole = play(known, 10_000, 1_000, method=method)
    trace = play(known, budget, 1_000, method=method)
    assert last_turn(trace).terminal == "completed"
    assert last_turn(trace).joined_answer().text == last_turn(whole).joined_answer().text
    if len(known) == 1:
        assert last_turn(trace).joined_answer().text == text


# -- calls -----------------------------------------------------------------------------------------------------------


def with_call(api: str):
    text = TextPart("I will write it down. ")
    return [
        (RequestPlace.REQUEST, *reply(api, Stop.TOOL_CALL, text, call(ARGUMENTS))),
        (RequestPlace.REQUEST, *reply(api, Stop.END_TURN, TextPart("Done."))),
    ]


@each_format
def test_a_simulated_cut_call_is_never_ready(api: str) -> None:
    known = with_call(api)
    whole = (known[0][1].usage or Usage()).output_tokens or 0
    for budget in range(1, whole + 2):
        trace = play(known, budget, results=True)
        for answer in answers(trace):
            cut = answer.judgement.stop.normalized is Stop.MAX_TOKENS
            step = next(step for step in trace.steps if step.event is answer)
            verdicts = step.turn.evaluation.verdicts
            assert not cut or all(v.admission is Admission.HELD for v in verdicts)
        ran = [v.call.arguments for s in trace.steps for e in s.effects if isinstance(e, RunTools) for v in e.batch]
        assert ran in ([], [ARGUMENTS])
        assert trace.steps[-1].turn.ended


@each_format
def test_a_call_that_is_known_is_sent_whole_when_it_is_asked_for_again(api: str) -> None:
    budget = tokens(ARGUMENTS) + 2
    trace = play(with_call(api), budget, results=True)
    states = [step.state for step in trace.steps]
    assert last_turn(trace).terminal == "completed"
    # A format that cannot carry the cut call drops it; the text then goes on, and the call begins anew.
    assert (State.REQUEST_TOOL_REPAIR in states) is (api not in WHOLE_CALLS)
    assert (State.REQUEST_CONTINUATION in states) is (api in WHOLE_CALLS)
    first, second = answers(trace)[:2]
    assert first.response.text == "I will write it down. "
    assert bool(first.response.tool_calls) is (api not in WHOLE_CALLS)
    assert first.recut is not None
    assert first.recut.lost == ("the cut call" if api in WHOLE_CALLS else "")
    assert second.response.tool_calls[0].arguments == ARGUMENTS
    assert second.judgement.stop.normalized is Stop.TOOL_CALL
    assert second.judgement.stop.evidence[-1].rule in (RULE, "judge.promoted")


def test_a_call_too_large_for_the_budget_is_cut_again() -> None:
    trace = play(with_call("anthropic_messages"), tokens(ARGUMENTS) // 9, results=True)  # even doubled three times
    assert last_turn(trace).terminal == "repair_failed"
    assert last_turn(trace).spend.repairs == 3
    assert not any(isinstance(effect, RunTools) for step in trace.steps for effect in step.effects)


def test_a_repaired_call_stands_for_the_cut_one() -> None:
    """Recorded: cut after 8 tokens of arguments, then sent whole. At a budget that fits, it comes at once."""
    api = "openai_chat"
    known = [
        (RequestPlace.REQUEST, *reply(api, Stop.MAX_TOKENS, TextPart("Saving. "), call(ARGUMENTS[:24]))),
        (RequestPlace.REPAIR, *reply(api, Stop.TOOL_CALL, call(ARGUMENTS))),
        (RequestPlace.REQUEST, *reply(api, Stop.END_TURN, TextPart("Saved."))),
    ]
    trace = play(known, 60, 11, results=True)
    assert [[sent.arguments for sent in answer.response.tool_calls] for answer in answers(trace)] == [[ARGUMENTS], []]
    assert answers(trace)[0].response.text == "Saving. "
    assert answers(trace)[1].response is known[2][1]
    assert last_turn(trace).terminal == "completed"
    assert trace.steps[-1].fidelity is Fidelity.SIMULATED  # a turn that left its recording does not come back


def test_a_call_that_was_never_sent_whole_is_not_invented() -> None:
    api = "openai_chat"
    known = [(RequestPlace.REQUEST, *reply(api, Stop.MAX_TOKENS, TextPart("Saving. "), call(ARGUMENTS[:24])))]
    for budget in range(1, 40):
        trace = play(known, budget, 11)
        assert last_turn(trace).terminal in ("unrecorded", "repair_failed", "no_progress")
        for answer in answers(trace):
            for sent in answer.response.tool_calls:
                assert ARGUMENTS[:24].startswith(sent.arguments or "")


# -- thinking --------------------------------------------------------------------------------------------------------


def test_thinking_that_is_cut_begins_anew_under_a_larger_cap() -> None:
    known = [(RequestPlace.REQUEST, *reply("anthropic_messages", Stop.END_TURN, ReasoningPart("x" * 30, "sig"),
                                   TextPart("Yes.")))]
    trace = play(known, 8)  # 10 tokens of thinking, 2 of text, the end: cut at 8, then asked again with 16
    first, second = answers(trace)
    assert (first.response.text, first.response.reasoning_content) == (None, "x" * 24)
    assert first.response.parts[0].signature is None
    assert (second.response.text, second.response.reasoning_content) == ("Yes.", "x" * 30)
    assert second.response.parts[0].signature == "sig"
    assert last_turn(trace).terminal == "completed"


def test_thinking_costs_nothing_where_the_provider_does_not_count_it() -> None:
    known = [(RequestPlace.REQUEST,
              *reply("gemini_generate", Stop.END_TURN, ReasoningPart("x" * 30), TextPart("Yes, we do.")))]
    request, source = simulation_of(known, 2, 1_000)
    counted = source.measure(0)
    free = type(counted)(tuple(type(s)(s.part, s.ends, type(s.part) is TextPart) for s in counted.stretches),
                         counted.basis, counted.note, counted.end)
    source = type(source)(source.source, lambda _: free, source.profile, source.caps, True)
    trace = run("t", request, source, Plan(AMPLE))
    assert answers(trace)[0].response.reasoning_content == "x" * 30
    assert answers(trace)[0].response.text == "Yes, w"
    assert last_turn(trace).joined_answer().text == "Yes, we do."


# -- how an end is spelled -------------------------------------------------------------------------------------------


def test_a_server_that_says_nothing_at_a_cut_is_simulated_so() -> None:
    """The proxy of Zoo Code's analysis sends no finish reason; that the usage equals the cap is the only sign."""
    silent = (b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
              b'data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":10}}\n\ndata: [DONE]\n\n')
    body = silent % b"ten tokens of text in one"
    known = [(RequestPlace.REQUEST, decode("openai_chat", body), body),
             (RequestPlace.CONTINUATION, *reply("openai_chat", Stop.END_TURN, TextPart(" chunk, and more.")))]
    first = answers(play(known, 4, 10))[0]
    assert first.response.stop_reason.raw is None
    assert first.response.stop_reason.normalized is Stop.INTERRUPTED
    assert first.judgement.cap_reached
    assert first.recut is not None
    assert first.recut.basis == "estimate"
    assert last_turn(play(known, 4, 10)).joined_answer().text == "ten tokens of text in one chunk, and more."


def test_a_body_that_was_whole_is_simulated_whole() -> None:
    body = (b'{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"one '
            b'two three four"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":4}}')
    known = [(RequestPlace.REQUEST, decode("anthropic_messages", body), body)]
    trace = play(known, 2)
    assert [answer.recut.body[:1] for answer in answers(trace) if answer.recut] == [b"{"] * 2
    assert last_turn(trace).joined_answer().text == "one two three four"


def test_an_answer_that_was_resumed_is_cut_from_its_own_beginning() -> None:
    """A pause is no budget cut: what follows is an answer of its own, and the text before it is not said again."""
    paused = (b'{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Wait. "}],'
              b'"stop_reason":"pause_turn","usage":{"input_tokens":9,"output_tokens":2}}')
    known = [(RequestPlace.REQUEST, decode("anthropic_messages", paused), paused),
             (RequestPlace.RESUME, *reply("anthropic_messages", Stop.END_TURN, TextPart("Here it is: all of it.")))]
    trace = play(known, 3)
    assert answers(trace)[0].response is known[0][1]
    assert [answer.response.text for answer in answers(trace)[1:]][:1] == ["Here it i"]
    assert last_turn(trace).terminal == "completed"
    assert last_turn(trace).joined_answer().text == "Wait. Here it is: all of it."


# -- the answers that are read ---------------------------------------------------------------------------------------


class CountedReads(tuple):
    """Answers that count how often each is read."""

    def __new__(cls, answers):
        made = super().__new__(cls, answers)
        made.reads = [0] * len(made)
        return made

    def __getitem__(self, index):
        self.reads[index] += 1
        return super().__getitem__(index)

    def __iter__(self):
        return (self[index] for index in range(len(self)))


@pytest.mark.parametrize("budget", [1, 3, 9])
def test_no_cut_of_an_answer_reads_all_later_answers_again(budget: int) -> None:
    """A turn that ends again and again has a run for each answer: cuts times answers would be spent in each of them."""
    rounds = [(RequestPlace.REQUEST, *reply("openai_chat", Stop.END_TURN, TextPart(text)))
              for text in (TEXT, *(f"answer {number}" for number in range(12)))]
    request, source = simulation_of(rounds, budget, 1_000)
    counted = CountedReads(source.source.answers)
    source = replace(source, source=source.source._replace(answers=counted))
    policy = Policy(STRICT.name, STRICT.title, methods=(Method.ANCHOR,))
    trace = run("t", request, source, Plan(AMPLE, policy, Ability(prefill=True), fidelity=Fidelity.RECORDED))
    assert last_turn(trace).joined_answer().text == TEXT
    assert len([answer for answer in answers(trace) if answer.recut and answer.recut.cut]) >= tokens(TEXT) // budget
    assert counted.reads[3:] == [3] * 10  # in one search for an answer that was cut
    assert (source.answers_used(last_turn(trace)), counted.reads[3:]) == (1, [3] * 10)


def test_a_known_answer_of_many_segments_is_joined_without_reading_all_before_each(
        monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("inspector.replay.known._is_call", lambda stretch: bool(asked.append(1)))
    monkeypatch.setattr("inspector.replay.known._length", lambda given: asked.extend(given) or _length(given))
    pieces = [f"Part {number} of it. " for number in range(100)]
    request, source = simulation_of(answers_of("openai_chat", *pieces), 1_000, 8)
    trace = run("t", request, source, Plan(AMPLE, fidelity=Fidelity.RECORDED))
    assert last_turn(trace).joined_answer().text == "".join(pieces)
    assert len(asked) <= 6 * len(pieces)


def test_a_cut_reads_neither_all_segments_nor_all_messages_before_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cuts times segments would be minutes for a thousand of them."""
    read = {"segments": 0, "texts": 0}

    def count(name, function):
        def count_read(*given):
            read[name] += 1
            return function(*given)
        return count_read

    monkeypatch.setattr("inspector.replay.simulate._repetition", count("segments", _repetition))
    monkeypatch.setattr("loop_core.turn.continuation.has_tags", count("texts", has_tags))
    text = " ".join(f"word{number}" for number in range(200))
    request, source = simulation_of([(RequestPlace.REQUEST, *reply("openai_chat", Stop.END_TURN, TextPart(text)))], 4,
                                    1_000)
    policy = Policy(STRICT.name, STRICT.title, methods=(Method.ANCHOR,))
    trace = run("t", request, source, Plan(AMPLE, policy, Ability(), fidelity=Fidelity.RECORDED))
    assert last_turn(trace).joined_answer().text == text
    cuts = len([answer for answer in answers(trace) if answer.recut and answer.recut.cut])
    assert cuts > 50
    assert read["segments"] == cuts, "once for each segment"
    assert read["texts"] <= 10 * cuts, "up to the second hint"

"""`judge`: every rule with the response that only it corrects, what it leaves alone, and that it only ever tightens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop_core.judge.classify import Judgement, judge
from loop_core.judge.gate import Admission, admit_all
from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    ChatResponse,
    Evidence,
    FactQuote,
    Finding,
    OpaquePart,
    ReasoningPart,
    Request,
    Severity,
    Stop,
    StopReason,
    TextPart,
    Tool,
    ToolCall,
    TransportEnd,
    Usage,
)
from tests.scenes.rows import each_row
from tests.scenes.turns import CUT, GOOD, NOW, RAW, REQUEST, WRITE, call, reply


@dataclass(frozen=True)
class Server:
    name: str = "somebody"
    context_size: int | None = None
    reasoning_under_cap: bool = False
    at_cap: Mapping[str, str] = field(default_factory=dict)
    mends_calls: tuple[str, ...] = ()


def effective(response: ChatResponse, request: Request | None = REQUEST, **more: object) -> Judgement:
    return judge(response, request, **more)  # type: ignore[arg-type]


def rules(found: Judgement) -> list[str]:
    return [seen.rule for seen in found.stop.evidence]


def finding(found: Judgement, rule: str) -> Severity | None:
    return next((each.severity for each in found.findings if each.rule == rule), None)


@each_row("stop", list(Stop))
def test_a_response_that_nothing_contradicts_keeps_its_word(stop: Stop) -> None:
    parts = ("text", call()) if stop is Stop.TOOL_CALL else ("text",)
    response = reply(stop, *parts, detail="detail", tokens=5)
    found = effective(response)
    assert found.stop == found.mapped == response.stop_reason
    assert not found.promoted
    assert not found.cap_reached


# -- native_word -----------------------------------------------------------------------------------------------------


@each_row("word", [
    Stop.MAX_TOKENS, Stop.CONTEXT_WINDOW_EXCEEDED, Stop.SAFETY_BLOCKED, Stop.ERROR, Stop.MALFORMED_TOOL_CALL,
    Stop.CANCELLED, Stop.INTERRUPTED,
])
@each_row("mapped", [Stop.END_TURN, Stop.TOOL_CALL])
def test_a_native_word_that_says_cut_filtered_or_failed_outranks_the_routers(mapped: Stop, word: Stop) -> None:
    native = StopReason(word, "THEIR_WORD", "why", (Evidence("native", At(pointer="/x")),))
    found = effective(reply(mapped, "text", call()), native=native)
    assert found.stop.normalized is word
    assert found.stop.detail == "why"
    assert found.stop.raw == RAW[mapped], "the provider's word stays verbatim"
    assert found.stop.evidence[-1].rule == "judge.native_word"
    assert found.stop.evidence[-1].at == At(pointer="/x")
    assert finding(found, "judge.native_word") is Severity.ERROR
    assert admit_all((call(),), found, REQUEST.tools)[0].admission is Admission.HELD


@pytest.mark.parametrize("word", [Stop.END_TURN, Stop.TOOL_CALL, Stop.UNKNOWN])
def test_a_native_word_that_says_nothing_worse_changes_nothing_and_stays_as_evidence(word: Stop) -> None:
    found = effective(reply(Stop.END_TURN, "text"), native=StopReason(word, "THEIR_WORD"))
    assert found.stop.normalized is Stop.END_TURN
    assert rules(found) == ["judge.native_word"]
    assert "THEIR_WORD" in found.stop.evidence[0].note
    assert not found.findings


def test_a_native_pause_is_an_answer_that_is_not_finished() -> None:
    """It is of another format: nothing that could be sent in this one goes on with it."""
    found = effective(reply(Stop.END_TURN, "text"), native=StopReason(Stop.PAUSED, "pause_turn", "echo"))
    assert (found.stop.normalized, found.stop.detail) == (Stop.INTERRUPTED, None)
    assert finding(found, "judge.native_word") is Severity.ERROR


@each_row(("word", "read"), [
    (Stop.CONTEXT_WINDOW_EXCEEDED, Stop.CONTEXT_WINDOW_EXCEEDED), (Stop.SAFETY_BLOCKED, Stop.SAFETY_BLOCKED),
    (Stop.ERROR, Stop.ERROR), (Stop.CANCELLED, Stop.CANCELLED), (Stop.PAUSED, Stop.INTERRUPTED),
    (Stop.MAX_TOKENS, Stop.MAX_TOKENS), (Stop.INTERRUPTED, Stop.MAX_TOKENS),
    (Stop.MALFORMED_TOOL_CALL, Stop.MAX_TOKENS),
    (Stop.END_TURN, Stop.MAX_TOKENS), (Stop.TOOL_CALL, Stop.MAX_TOKENS), (Stop.UNKNOWN, Stop.MAX_TOKENS),
])
def test_a_cut_that_the_provider_behind_a_router_calls_a_filter_or_a_pause_is_not_continued(
    word: Stop, read: Stop
) -> None:
    found = effective(reply(Stop.MAX_TOKENS, "text"), native=StopReason(word, "THEIR_WORD", "why"))
    assert found.stop.normalized is read
    assert bool(found.findings) is (read is not Stop.MAX_TOKENS)


def test_a_native_word_never_loosens() -> None:
    for mapped in set(Stop) - {Stop.END_TURN, Stop.TOOL_CALL}:
        assert effective(reply(mapped, "text"), native=StopReason(Stop.END_TURN, "STOP")).stop.normalized is mapped


# -- the rules that look at calls ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [Stop.END_TURN, Stop.TOOL_CALL])
def test_cut_arguments_mean_a_budget_cut_whatever_the_reason_says(stop: Stop) -> None:
    """vLLM #58228, hermes-agent #7693 and #75179."""
    found = effective(reply(stop, call(), call(CUT, id="c2", at=At(start=7))))
    assert found.stop.normalized is Stop.MAX_TOKENS
    assert rules(found) == ["judge.cut_arguments"]
    assert found.stop.evidence[0].at == At(start=7)
    assert finding(found, "judge.cut_arguments") is Severity.ERROR


def test_a_call_that_was_never_closed_means_a_budget_cut_even_if_it_parses() -> None:
    found = effective(reply(Stop.TOOL_CALL, call(GOOD, closed=False)))
    assert found.stop.normalized is Stop.MAX_TOKENS
    assert rules(found) == ["judge.open_call"]
    assert [each.message for each in found.findings] == ["the call write was never closed"]
    custom = call("ls", kind=CallKind.CUSTOM, closed=False)
    assert effective(reply(Stop.END_TURN, custom)).stop.normalized is Stop.MAX_TOKENS


@pytest.mark.parametrize("fields", [{"form": ArgsForm.OBJECT}, {"kind": CallKind.CUSTOM}])
def test_a_stop_string_may_have_cut_a_call_that_shows_no_cut(fields: dict[str, object]) -> None:
    unseen = call(GOOD)._replace(**fields)  # type: ignore[arg-type]
    for native in ({"stop_reason": "###"}, {"matched_stop": "###"}):
        found = effective(reply(Stop.END_TURN, unseen, native=native))
        assert (found.stop.normalized, rules(found)) == (Stop.MAX_TOKENS, ["judge.open_call"])
        assert effective(reply(Stop.END_TURN, call(GOOD), native=native)).stop.normalized is Stop.TOOL_CALL
        assert effective(reply(Stop.END_TURN, unseen, call(GOOD), native=native)).stop.normalized is Stop.TOOL_CALL
    assert effective(reply(Stop.END_TURN, unseen, native={"stop_reason": "151645"})).stop.normalized is Stop.TOOL_CALL
    assert effective(reply(Stop.END_TURN, unseen)).stop.normalized is Stop.TOOL_CALL


@each_row("rule", [
    "frame.invalid", "frame.shape", "body.shape", "frame.repeated_member", "body.repeated_member",
    "transport.damaged"])
@each_row("stop", [Stop.END_TURN, Stop.TOOL_CALL])
def test_a_frame_that_was_not_read_may_have_held_a_part_of_a_call(rule: str, stop: Stop) -> None:
    """Arguments of which a piece inside a string is missing parse: with other words in them."""
    lost = (Finding(rule, Severity.WARNING, "a frame is not valid JSON", At(start=7)),)
    found = effective(replace(reply(stop, call(GOOD)), findings=lost))
    assert found.stop.normalized is Stop.MALFORMED_TOOL_CALL
    assert rules(found) == ["judge.lost_frame"]
    assert found.stop.evidence[0].at == At(start=7)
    assert finding(found, "judge.lost_frame") is Severity.ERROR
    assert effective(replace(reply(stop), findings=lost)).stop.normalized is stop, "there is no call to be wrong about"
    odd = (Finding("frame.no_object", Severity.WARNING, "a frame is not a JSON object"),)
    assert effective(replace(reply(stop, call(GOOD)), findings=odd)).stop.normalized is Stop.TOOL_CALL


@each_row("kind", [
    "repeated_index", "delta_without_start", "orphan_delta", "event_missing", "event_repeated", "name_differs",
])
@each_row("stop", [Stop.END_TURN, Stop.TOOL_CALL])
def test_no_limit_cut_a_call_that_is_broken_where_an_event_is_misplaced(kind: str, stop: Stop) -> None:
    misplaced = (Finding(f"some_format.{kind}", Severity.WARNING, "block 0 began twice", At(start=7)),)
    for broken in (call(GOOD)._replace(closed=False), call(CUT)):
        found = effective(replace(reply(stop, broken), findings=misplaced))
        assert (found.stop.normalized, rules(found)) == (Stop.MALFORMED_TOOL_CALL, ["judge.misplaced_event"])
        assert found.stop.evidence[0].at == At(start=7)
        assert finding(found, "judge.misplaced_event") is Severity.ERROR
        assert effective(reply(stop, broken)).stop.normalized is Stop.MAX_TOKENS
        assert effective(replace(reply(Stop.MAX_TOKENS, broken), findings=misplaced)).stop.normalized is Stop.MAX_TOKENS
    assert effective(replace(reply(stop, call(GOOD)), findings=misplaced)).stop.normalized is Stop.TOOL_CALL


@pytest.mark.parametrize("rule", ["frame.lenient", "body.lenient"])
def test_a_call_with_bytes_that_are_no_text_is_not_the_call_that_was_made(rule: str) -> None:
    lenient = (Finding(rule, Severity.WARNING, "a frame holds invalid UTF-8", At(start=7)),)
    for broken in (call('{"path": "/tmp/\ufffd"}'), call(GOOD)._replace(name="er\ufffd"),
                   call(GOOD)._replace(name="er\udc00")):
        found = effective(replace(reply(Stop.TOOL_CALL, broken), findings=lenient))
        assert found.stop.normalized is Stop.MALFORMED_TOOL_CALL
        assert rules(found) == ["judge.lost_frame"]
    assert effective(replace(reply(Stop.TOOL_CALL, call(GOOD)), findings=lenient)).stop.normalized is Stop.TOOL_CALL
    sent = effective(reply(Stop.TOOL_CALL, call('{"path": "/tmp/\ufffd"}')))
    assert sent.stop.normalized is Stop.TOOL_CALL, "the provider may have sent this character itself"


def test_cut_arguments_of_a_recording_that_broke_off_are_the_budgets_only_where_a_word_came() -> None:
    """Without a word the server may have sent the rest, which was not recorded."""
    for stop in (Stop.TOOL_CALL, Stop.END_TURN, Stop.UNKNOWN):
        told = reply(stop, call(CUT), raw="tool_calls", transport_end=TransportEnd.CUT)
        assert effective(told).stop.normalized is Stop.MAX_TOKENS
    silent = reply(Stop.UNKNOWN, call(CUT), raw=None, transport_end=TransportEnd.CUT)
    assert effective(silent).stop.normalized is Stop.UNKNOWN
    assert effective(replace(silent, transport_end=TransportEnd.EOF)).stop.normalized is Stop.MAX_TOKENS


@each_row("arguments", ["[1]", "I will", '{"a": 1}}', '{"a": 1, "a": 2}', "null"])
def test_invalid_arguments_mean_a_malformed_call(arguments: str) -> None:
    found = effective(reply(Stop.TOOL_CALL, call(arguments)))
    assert found.stop.normalized is Stop.MALFORMED_TOOL_CALL
    assert rules(found) == ["judge.invalid_arguments"]
    assert finding(found, "judge.invalid_arguments") is Severity.ERROR


@pytest.mark.parametrize("arguments", ["", "  ", None])
def test_empty_arguments_mean_a_malformed_call_unless_the_tool_is_known_to_need_none(arguments: str | None) -> None:
    """Zoo-Code #425: 24 of 24 calls with empty arguments were cut calls."""
    found = effective(reply(Stop.TOOL_CALL, call(arguments)))
    assert found.stop.normalized is Stop.MALFORMED_TOOL_CALL
    assert rules(found) == ["judge.empty_arguments"]
    for request in (None, replace(REQUEST, tools=()), replace(REQUEST, tools=(Tool("write"),)),
                    replace(REQUEST, tools=(Tool("write", {"type": "nonsense"}),))):
        assert effective(reply(Stop.TOOL_CALL, call(arguments)), request).stop.normalized is Stop.MALFORMED_TOOL_CALL
    for form in ArgsForm:
        for stop in (Stop.TOOL_CALL, Stop.END_TURN):
            assert effective(reply(stop, call(arguments, "now", form=form))).stop.normalized is Stop.TOOL_CALL


@each_row("form", list(ArgsForm))
@each_row("arguments", ["", None])
def test_an_optional_parameter_is_enough_to_hold_a_call_without_arguments(
    arguments: str | None, form: ArgsForm
) -> None:
    """It may have been the one that was lost."""
    lists = Tool("list", {"type": "object", "properties": {"force": {"type": "boolean"}}})
    for stop in (Stop.TOOL_CALL, Stop.END_TURN):
        found = effective(reply(stop, call(arguments, "list", form=form)), replace(REQUEST, tools=(lists,)))
        assert found.stop.normalized is Stop.MALFORMED_TOOL_CALL


@pytest.mark.parametrize(("arguments", "closed", "said"), [
    ("[1]", True, "the arguments of a call without a name are invalid: a JSON array where an object is expected"),
    ('{"a', True, "the arguments of a call without a name are cut, though the reason is 'tool_calls'"),
    ("{}", False, "the call without a name was never closed"),
])
def test_a_call_without_a_name_is_called_so(arguments: str, closed: bool, said: str) -> None:
    answer = reply(Stop.TOOL_CALL, call("{}"), ToolCall("c2", "", arguments, closed=closed))
    assert said in [each.message for each in effective(answer).findings]


def test_empty_arguments_under_another_word_change_nothing() -> None:
    assert effective(reply(Stop.MAX_TOKENS, call(""))).stop.normalized is Stop.MAX_TOKENS


def test_a_phantom_call_is_no_call_and_a_server_call_is_not_ours() -> None:
    phantom = ToolCall(None, "", "")
    server = ToolCall("s1", "web_search", '{"q": "x', kind=CallKind.SERVER)
    found = effective(reply(Stop.TOOL_CALL, call(), phantom, server))
    assert found.stop.normalized is Stop.TOOL_CALL
    assert effective(reply(Stop.END_TURN, "text", server)).stop.normalized is Stop.END_TURN


# -- usage -----------------------------------------------------------------------------------------------------------


MIDDLE = "It happens when the Moon passes between the Earth and the"


def test_usage_at_the_cap_and_a_text_that_stops_in_the_middle_are_a_cut() -> None:
    found = effective(reply(Stop.END_TURN, MIDDLE, tokens=100))
    assert found.stop.normalized is Stop.MAX_TOKENS
    assert rules(found) == ["judge.usage_at_cap", "judge.quoted"]
    assert finding(found, "judge.usage_at_cap") is Severity.ERROR
    assert found.stop.evidence[-1].quote == FactQuote("text", len(MIDDLE) - len("the"), len(MIDDLE))
    assert effective(reply(Stop.END_TURN, MIDDLE, tokens=117)).stop.normalized is Stop.MAX_TOKENS, "over the cap"


@pytest.mark.parametrize("server", [None, Server(), Server(name="vllm")])
def test_one_sign_alone_is_a_finding_only(server: Server | None) -> None:
    """A clean answer may end at its cap: `The answer is 42.` was continued where thinking counts under it."""
    for text in ("The answer is 42.", "The answer is 42"):
        found = effective(reply(Stop.END_TURN, text, tokens=100), server=server)
        assert found.stop.normalized is Stop.END_TURN
        assert finding(found, "judge.usage_at_cap") is Severity.INFO
    below = effective(reply(Stop.END_TURN, MIDDLE, tokens=99), server=server)
    assert below.stop == reply(Stop.END_TURN, MIDDLE).stop_reason
    assert [(each.rule, each.severity) for each in below.findings] == [("ending.unfinished_text", Severity.WARNING)]


# -- unfinished_text: a guess from the text alone ----------------------------------------------------------------------


def guess(response: ChatResponse, request: Request | None = REQUEST) -> Finding | None:
    found = judge(response, request)
    assert found.stop.normalized is response.stop_reason.normalized, "a guess leaves the reason"
    return next((each for each in found.findings if each.rule == "ending.unfinished_text"), None)


def test_a_text_that_stops_in_the_middle_below_its_cap_is_a_guess_that_names_the_characters() -> None:
    """LiteLLM 1.109.1 writes `stop` where the provider behind it gave no reason, or one that it does not know."""
    found = guess(reply(Stop.END_TURN, MIDDLE))
    assert found is not None
    assert found.severity is Severity.WARNING
    assert "its last word is 'the'" in found.message
    assert found.message.endswith("; it is a guess that it was cut")
    assert found.quote == FactQuote("text", len(MIDDLE) - len("the"), len(MIDDLE))
    assert guess(reply(Stop.END_TURN, "It happens when the Moon passes it")) is None, "no full stop is no sign"
    assert guess(reply(Stop.END_TURN, OpaquePart("message.annotations", "[]"), MIDDLE)) is not None
    assert guess(reply(Stop.END_TURN, MIDDLE, OpaquePart("message.annotations", "[]"))) is not None, "nothing visible"


@each_row("response", [
    reply(Stop.END_TURN, MIDDLE, raw=None),
    reply(Stop.UNKNOWN, MIDDLE),
    reply(Stop.CANCELLED, MIDDLE),
    reply(Stop.END_TURN, MIDDLE, native={"stop_reason": "!"}),
    reply(Stop.END_TURN, MIDDLE, OpaquePart("image", "{}")),
    reply(Stop.END_TURN, MIDDLE, ReasoningPart("hm")),
    reply(Stop.END_TURN, MIDDLE, call()),
])
def test_what_else_may_have_ended_a_text_leaves_nothing_to_guess(response: ChatResponse) -> None:
    found = judge(response, REQUEST)
    assert "ending.unfinished_text" not in {each.rule for each in found.findings}


@each_row("rule", [
    "pi.stop_reasons", "promptfoo.finish_reasons", "chatgpt.finish_details", "atif.extra"])
def test_the_clean_word_of_a_recorder_leaves_the_same_guess(rule: str) -> None:
    """A recorder may write its clean word over an end for which the provider gave none."""
    stop = StopReason(Stop.END_TURN, evidence=(Evidence(rule, None, "stop"),))
    assert guess(replace(reply(Stop.END_TURN, MIDDLE), stop_reason=stop)) is not None


def test_a_text_whose_request_is_unknown_or_sets_what_ends_it_leaves_nothing_to_guess() -> None:
    response = reply(Stop.END_TURN, MIDDLE)
    assert guess(response, replace(REQUEST, extra={"stop": ["!"]})) is None
    assert guess(response, replace(REQUEST, extra={"suffix": " Earth."})) is None
    assert guess(response, replace(REQUEST, extra={"suffix": ""})) is not None
    assert guess(response, None) is None, "`stop` also stands for a stop string"
    assert guess(replace(response, api="anthropic_messages"), None) is not None, "which names a stop string that it hit"


@pytest.mark.parametrize("stop", [Stop.END_TURN, Stop.TOOL_CALL])
def test_calls_at_the_cap_wait_where_thinking_counts_under_it(stop: Stop) -> None:
    """A batch may be cut between two calls, and an empty object may stand for a cut one (vLLM #46303)."""
    response = reply(stop, call(), tokens=100)
    found = effective(response, server=Server(reasoning_under_cap=True))
    assert found.stop.normalized is Stop.MAX_TOKENS
    assert finding(found, "judge.usage_at_cap") is Severity.WARNING
    elsewhere = effective(response, server=Server())
    assert elsewhere.stop.normalized is Stop.TOOL_CALL
    assert finding(elsewhere, "judge.usage_at_cap") is Severity.INFO


def test_a_word_that_the_server_sends_over_cuts_too_is_none_at_the_cap() -> None:
    """Ollama and llama.cpp say `completed` over every answer of Responses; a list is cut behind any of its numbers."""
    response = reply(Stop.END_TURN, "The planets are:\n\n- Earth: 1", tokens=100)
    word = {response.api: response.stop_reason.raw or ""}
    found = effective(response, server=Server(at_cap=word))
    assert found.stop.normalized is Stop.MAX_TOKENS
    assert finding(found, "judge.usage_at_cap") is Severity.WARNING
    middle = effective(reply(Stop.END_TURN, "The planets are Mercury, Venus and the", tokens=100),
                       server=Server(at_cap=word))
    assert finding(middle, "judge.usage_at_cap") is Severity.ERROR, "the text itself shows it"
    thought = replace(response, parts=(ReasoningPart("Hm."), *response.parts))
    assert effective(thought, server=Server(at_cap=word, reasoning_under_cap=True)).stop.normalized is Stop.MAX_TOKENS
    for other in (effective(response, server=Server(at_cap={response.api: "another"})),
                  effective(response, server=Server(at_cap={"another": response.stop_reason.raw or ""})),
                  effective(thought, server=Server(at_cap=word)),
                  effective(replace(response, stop_reason=StopReason(Stop.END_TURN)), server=Server()),
                  effective(reply(Stop.END_TURN, "- Earth: 1", tokens=99), server=Server(at_cap=word))):
        assert other.stop.normalized is Stop.END_TURN


def test_two_texts_of_one_call_are_a_contradiction_and_no_cut() -> None:
    for stop in (Stop.TOOL_CALL, Stop.END_TURN):
        found = effective(reply(stop, call(other_arguments='{"path": "b.txt"}', closed=False, at=At(start=3))))
        assert found.stop.normalized is Stop.MALFORMED_TOOL_CALL
        assert found.stop.detail == "contradiction"
        assert rules(found) == ["judge.contradiction"]
        assert found.stop.evidence[-1].at == At(start=3)


# -- no word ---------------------------------------------------------------------------------------------------------


def wordless(*parts: str | ToolCall, raw: str | None = None, **fields: object) -> ChatResponse:
    """An answer as a decoder gives it where no word came."""
    absent = StopReason(Stop.INTERRUPTED, raw, None, (Evidence("absent", At(start=9, end=9)),))
    return replace(reply(Stop.INTERRUPTED, *parts), stop_reason=absent, size=9, **fields)


@each_row("fields", [{"streaming": False}, {"streaming": True, "saw_done": True}])
@each_row("raw", [None, ""])
def test_an_answer_that_came_to_its_end_without_a_word_is_unknown(fields: dict[str, bool], raw: str | None) -> None:
    found = effective(wordless("Paris.", raw=raw, **fields))
    assert (found.stop.normalized, found.stop.detail) == (Stop.UNKNOWN, "no_stop_reason")
    assert found.mapped.normalized is Stop.INTERRUPTED
    assert rules(found) == ["absent", "judge.ended_wordless"]
    assert found.stop.evidence[-1].at == At(start=9, end=9), "where the word would stand"
    spent = effective(replace(wordless("Paris.", raw=raw, **fields), usage=Usage(1, 100)))
    assert spent.cap_reached, "the evidence of a cut stands in a whole body as in a stream"
    cut = effective(wordless(call(CUT, closed=False), raw=raw, **fields))
    assert cut.stop.normalized is Stop.MAX_TOKENS


@each_row("response", [
    wordless("Par", streaming=True),
    wordless("Par", streaming=False, transport_end=TransportEnd.RESET),
    replace(wordless(""), size=0),
    replace(wordless("Par"), stop_reason=StopReason(Stop.INTERRUPTED, None, None, (
        Evidence("absent"), Evidence("cut", At(start=9, end=9))))),
    replace(wordless("Par"), stop_reason=StopReason(Stop.INTERRUPTED, "incomplete", None, (Evidence("absent"),))),
    replace(wordless("Par"), stop_reason=StopReason(Stop.INTERRUPTED, None, None, (Evidence("transcript.absent"),))),
])
def test_an_answer_that_broke_is_interrupted(response: ChatResponse) -> None:
    assert effective(response).stop.normalized is Stop.INTERRUPTED


def test_arguments_that_are_cut_are_cut_under_an_unknown_word_too() -> None:
    assert effective(reply(Stop.UNKNOWN, call(CUT), raw="entropy")).stop.normalized is Stop.MAX_TOKENS
    assert effective(reply(Stop.UNKNOWN, call(), raw="entropy")).stop.normalized is Stop.UNKNOWN


def test_a_text_before_a_whole_call_may_stop_in_the_middle_at_the_cap() -> None:
    found = effective(reply(Stop.TOOL_CALL, "Now I look at the", call(GOOD), tokens=100))
    assert (found.stop.normalized, finding(found, "judge.usage_at_cap")) == (Stop.TOOL_CALL, Severity.INFO)
    alone = effective(reply(Stop.END_TURN, "Now I look at the", tokens=100))
    assert (alone.stop.normalized, finding(alone, "judge.usage_at_cap")) == (Stop.MAX_TOKENS, Severity.ERROR)


@pytest.mark.parametrize(("arguments", "lacks"), [("{}", "are empty"), ('{"lines": 3}', "lack path")])
def test_a_last_call_without_its_members_at_the_cap_is_a_cut(arguments: str, lacks: str) -> None:
    """vLLM PR#46303 makes `{}` of a call that the cap cut."""
    for stop in (Stop.TOOL_CALL, Stop.END_TURN):
        response = reply(stop, call(), call(arguments, id="c2", at=At(start=7)), tokens=100)
        found = effective(response)
        assert found.stop.normalized is Stop.MAX_TOKENS
        assert finding(found, "judge.usage_at_cap") is Severity.ERROR
        assert f"the arguments of write {lacks}" in found.findings[-1].message
        verdicts = admit_all(response.tool_calls, found, REQUEST.tools)
        assert [each.admission for each in verdicts] == [Admission.HELD, Admission.HELD]
        below = effective(reply(stop, call(), call(arguments, id="c2"), tokens=99))
        assert below.stop.normalized is Stop.TOOL_CALL, "a bad call, not a cut one"


@pytest.mark.parametrize(("form", "tokens", "stop"), [
    (ArgsForm.OBJECT, 100, Stop.MAX_TOKENS), (ArgsForm.OBJECT, 99, Stop.TOOL_CALL),
    (ArgsForm.STRING, 100, Stop.TOOL_CALL),
])
def test_a_parsed_call_at_the_cap_is_a_cut(form: ArgsForm, tokens: int, stop: Stop) -> None:
    """Mastra and routers parse what came: a call that the cap cut looks whole. A text that is JSON came whole, and
    Gemini and Ollama send no cut call."""
    response = reply(Stop.TOOL_CALL, call(GOOD)._replace(form=form), tokens=tokens)
    found = effective(response)
    assert found.stop.normalized is stop
    for api in ("gemini_generate", "ollama_chat"):
        assert effective(replace(response, api=api)).stop.normalized is Stop.TOOL_CALL
    verdict = admit_all(response.tool_calls, found, REQUEST.tools)[0].admission
    assert verdict is (Admission.HELD if stop is Stop.MAX_TOKENS else Admission.READY)


def test_an_empty_object_at_the_cap_is_whole_only_where_the_tool_takes_nothing() -> None:
    """An optional parameter may be the one that was lost: the schema accepts `{}`, and the call would run."""
    optional = Tool("purge", {"type": "object", "properties": {"below": {"type": "string"}}})
    for tool, stop in ((optional, Stop.MAX_TOKENS), (NOW, Stop.TOOL_CALL)):
        asked = replace(REQUEST, tools=(tool,))
        found = effective(reply(Stop.TOOL_CALL, call("{}", name=tool.name), tokens=100), asked)
        assert found.stop.normalized is stop
    first = effective(reply(Stop.TOOL_CALL, call("{}"), call(id="c2"), tokens=100))
    assert first.stop.normalized is Stop.TOOL_CALL, "the cap cuts the last call"


@each_row("response", [
    reply(Stop.END_TURN, ReasoningPart("hm"), MIDDLE, tokens=100),
    reply(Stop.END_TURN, ReasoningPart("", data="sealed"), MIDDLE, tokens=100),
    replace(reply(Stop.END_TURN, MIDDLE), usage=Usage(1, 100, 7)),
    reply(Stop.END_TURN, MIDDLE, tokens=100, other_choices=1),
])
def test_usage_is_no_sign_where_reasoning_was_seen_or_reported_or_several_choices_share_it(
    response: ChatResponse,
) -> None:
    found = effective(response)
    assert found.stop.normalized is Stop.END_TURN
    assert [each.rule for each in found.findings if each.severity is not Severity.INFO] == ["ending.unfinished_text"]


def test_a_stop_string_may_stop_a_text_anywhere() -> None:
    asked = replace(REQUEST, extra={"stop": ["!"]})
    assert effective(reply(Stop.END_TURN, MIDDLE, tokens=100), asked).stop.normalized is Stop.END_TURN
    eos = reply(Stop.END_TURN, MIDDLE, tokens=100, native={"matched_stop": "151645"})
    assert effective(eos, asked).stop.normalized is Stop.MAX_TOKENS, "a token's number: no string was hit"
    hit = reply(Stop.END_TURN, MIDDLE, tokens=100, native={"stop_reason": "!"})
    assert effective(hit).stop.normalized is Stop.END_TURN


def test_a_stream_without_a_reason_at_the_cap_stays_interrupted_with_evidence() -> None:
    """Zoo Code's analysis: MiMo ends the stream with empty choices, and its usage equals the cap."""
    found = effective(reply(Stop.INTERRUPTED, call(CUT, closed=False), tokens=100))
    assert found.stop.normalized is Stop.INTERRUPTED
    assert found.cap_reached
    assert rules(found) == ["judge.usage_at_cap"]


def test_a_word_that_leaves_an_answer_interrupted_at_the_cap_is_one_too_unless_another_rule_knows_more() -> None:
    """Gemini: the answer goes on after STOP, and nothing ends it."""
    answer = reply(Stop.INTERRUPTED, "x", tokens=100, raw="STOP")
    assert effective(answer).cap_reached
    failed = effective(replace(wordless("x"), usage=Usage(10, 100)), native=StopReason(Stop.ERROR, "THEIR_WORD"))
    assert (failed.stop.normalized, failed.cap_reached) == (Stop.ERROR, False)


@each_row(("response", "request_"), [
    (reply(Stop.INTERRUPTED, "x", tokens=99), REQUEST),
    (reply(Stop.INTERRUPTED, "x"), REQUEST),
    (reply(Stop.INTERRUPTED, "x", tokens=100), None),
    (reply(Stop.INTERRUPTED, "x", tokens=100), replace(REQUEST, max_tokens=None)),
    (reply(Stop.INTERRUPTED, "x", tokens=100, other_choices=1), REQUEST),
    (reply(Stop.INTERRUPTED, "x", tokens=100), replace(REQUEST, n=2)),
    (reply(Stop.MAX_TOKENS, "x", tokens=100), REQUEST),
])
def test_nothing_is_concluded_from_usage_below_the_cap_or_over_several_choices(
    response: ChatResponse, request_: Request | None
) -> None:
    found = effective(response, request_)
    assert not found.cap_reached
    assert found.stop == response.stop_reason


def test_a_full_context_is_no_budget_cut() -> None:
    used = Usage(4000, 96)
    full = replace(reply(Stop.MAX_TOKENS, "x"), usage=used)
    found = effective(full, server=Server(context_size=4096))
    assert found.stop.normalized is Stop.CONTEXT_WINDOW_EXCEEDED
    assert found.stop.detail == "usage"
    assert rules(found) == ["judge.context_full"]
    assert effective(full, server=Server(context_size=4097)).stop.normalized is Stop.MAX_TOKENS
    assert effective(full).stop.normalized is Stop.MAX_TOKENS
    ended = replace(reply(Stop.END_TURN, "x"), usage=used)
    assert effective(ended, server=Server(context_size=4096)).stop.normalized is Stop.END_TURN


@each_row(("options", "read"), [
    ({"num_ctx": 4096}, Stop.CONTEXT_WINDOW_EXCEEDED), ({"num_ctx": 8192}, Stop.MAX_TOKENS), ({}, Stop.MAX_TOKENS),
    ({"num_ctx": "4096"}, Stop.MAX_TOKENS), ({"num_ctx": True}, Stop.MAX_TOKENS), ("odd", Stop.MAX_TOKENS),
])
def test_the_context_that_the_request_set_is_full_at_its_size(options: Any, read: Stop) -> None:
    """`length` of Ollama means num_predict or num_ctx (TradingAgents#168)."""
    full = replace(reply(Stop.MAX_TOKENS, "x"), usage=Usage(4000, 96))
    asked = replace(REQUEST, max_tokens=1000, extra={"options": options})
    assert effective(full, request=asked).stop.normalized is read


@pytest.mark.parametrize(("rule", "reported"), [("gemini_generate.stop_reasons", False), ("unknown_word", True)])
def test_a_word_of_the_table_that_means_nothing_is_not_called_unknown(rule: str, reported: bool) -> None:
    """Gemini's OTHER."""
    said = reply(Stop.UNKNOWN, "x", raw="OTHER")
    said = replace(said, stop_reason=said.stop_reason._replace(evidence=(Evidence(rule),)))
    assert (finding(effective(said), "stop.unknown_word") is not None) is reported



@pytest.mark.parametrize("stop", [Stop.END_TURN, Stop.TOOL_CALL, Stop.MAX_TOKENS])
def test_a_server_that_says_truncated_ran_out_of_context(stop: Stop) -> None:
    """llama.cpp: `"truncated": true`."""
    parts = [call()] if stop is Stop.TOOL_CALL else ["x"]
    found = effective(reply(stop, *parts, native={"truncated": "true"}))
    assert found.stop.normalized is Stop.CONTEXT_WINDOW_EXCEEDED
    assert found.stop.detail == "server"
    assert effective(reply(stop, *parts, native={"truncated": "false"})).stop.normalized is stop


# -- promotion -------------------------------------------------------------------------------------------------------


def test_complete_calls_under_stop_are_promoted() -> None:
    """OpenAI itself for a named tool_choice (vLLM PR #25054)."""
    calls = (call(at=At(start=3)), call("", "now", "c2"), call("ls", kind=CallKind.CUSTOM))
    found = effective(reply(Stop.END_TURN, "text", *calls))
    assert found.stop.normalized is Stop.TOOL_CALL
    assert found.promoted
    assert found.stop.evidence[-1].rule == "judge.promoted"
    assert found.stop.evidence[-1].at == At(start=3)
    assert found.mapped.normalized is Stop.END_TURN


@each_row("other", [
    call('{"path": 5}'), call("{}"), call(name="unheard_of"), call(name=""), ToolCall(None, "", ""),
])
def test_a_call_that_will_be_refused_was_made_all_the_same(other: ToolCall) -> None:
    assert effective(reply(Stop.END_TURN, call(), other)).promoted
    alone = effective(reply(Stop.END_TURN, other))
    assert alone.promoted is (other.arguments != "")


@each_row(("stop", "form", "kind", "formats", "word"), [
    (Stop.END_TURN, ArgsForm.OBJECT, CallKind.FUNCTION, ("openai_chat",), Stop.UNKNOWN),
    (Stop.END_TURN, ArgsForm.OBJECT, CallKind.FUNCTION, ("anthropic_messages",), Stop.TOOL_CALL),
    (Stop.END_TURN, ArgsForm.STRING, CallKind.FUNCTION, ("openai_chat",), Stop.TOOL_CALL),
    (Stop.END_TURN, ArgsForm.OBJECT, CallKind.SERVER, ("openai_chat",), Stop.END_TURN),
    (Stop.TOOL_CALL, ArgsForm.OBJECT, CallKind.FUNCTION, ("openai_chat",), Stop.TOOL_CALL),
    (Stop.MAX_TOKENS, ArgsForm.OBJECT, CallKind.FUNCTION, ("openai_chat",), Stop.MAX_TOKENS),
])
def test_a_parsed_call_of_a_server_that_closes_cut_calls_is_not_promoted(
    stop: Stop, form: ArgsForm, kind: CallKind, formats: tuple[str, ...], word: Stop
) -> None:
    response = reply(stop, call(form=form, kind=kind, at=At(start=3)))
    found = effective(response, server=Server(mends_calls=formats))
    assert found.stop.normalized is word
    if word is Stop.UNKNOWN:
        assert (found.stop.evidence[-1].rule, found.stop.evidence[-1].at) == ("judge.mended_call", At(start=3))
        assert finding(found, "judge.mended_call") is Severity.WARNING
        assert [each.admission for each in admit_all(response.tool_calls, found)] == [Admission.HELD]


def test_the_evidence_of_a_promotion_is_the_first_call_that_was_made() -> None:
    found = effective(reply(Stop.END_TURN, ToolCall(None, "", None, at=At(start=1)), call(at=At(start=3))))
    assert found.stop.evidence[-1].at == At(start=3)


def test_one_call_that_is_not_complete_prevents_the_promotion_of_all() -> None:
    found = effective(reply(Stop.END_TURN, call(), call(None, kind=CallKind.CUSTOM)))
    assert found.stop.normalized is Stop.END_TURN
    assert not found.promoted


@each_row("stop", sorted(set(Stop) - {Stop.END_TURN, Stop.TOOL_CALL}))
def test_nothing_but_an_end_of_turn_is_promoted(stop: Stop) -> None:
    assert effective(reply(stop, call())).stop.normalized is stop


# -- remarks ---------------------------------------------------------------------------------------------------------


def test_a_reason_that_asks_for_tools_without_a_call_is_a_finding() -> None:
    found = effective(reply(Stop.TOOL_CALL, "text"))
    assert found.stop.normalized is Stop.TOOL_CALL
    assert found.stop.detail == "no_calls"
    assert finding(found, "ending.no_call") is Severity.ERROR


def test_an_unknown_word_is_a_finding_that_quotes_it() -> None:
    found = effective(reply(Stop.UNKNOWN, "text", raw="entropy"))
    assert finding(found, "stop.unknown_word") is Severity.WARNING
    assert "'entropy'" in found.findings[0].message


def test_a_budget_that_thinking_ate_is_a_finding() -> None:
    """Thinking and the call share 100 tokens (Zoo Code's analysis). Nothing is said of the cap, below which a server
    may stop."""
    cut = replace(reply(Stop.MAX_TOKENS, call(CUT, closed=False)), usage=Usage(10, 100, 60))
    found = effective(cut)
    assert finding(found, "usage.reasoning") is Severity.WARNING
    assert "60 of 100" in found.findings[0].message
    assert found.findings[0].message.endswith("the answer and its calls took 40")
    assert not effective(replace(cut, usage=Usage(10, 100, 40))).findings
    assert not effective(replace(reply(Stop.END_TURN, "x"), usage=Usage(10, 50, 40))).findings


# -- the property ----------------------------------------------------------------------------------------------------

calls = st.builds(
    ToolCall, st.sampled_from(["c1", None]), st.sampled_from(["write", "now", "other", ""]),
    st.sampled_from([GOOD, CUT, '{"path": 5}', "{}", "", None, "nonsense", "[1]"]), st.booleans(),
    st.sampled_from(CallKind), st.sampled_from(ArgsForm),
)
counts = st.sampled_from([None, 5, 100, 101])
usages = st.none() | st.builds(Usage, st.sampled_from([None, 10]), counts, st.sampled_from([None, 60]))
parts = st.lists(st.builds(TextPart, st.just("x")) | st.builds(ReasoningPart, st.just("hm")) | calls, max_size=3)
responses = st.builds(
    ChatResponse, st.just("openai_chat"), parts.map(tuple),
    st.builds(StopReason, st.sampled_from(Stop), st.sampled_from([None, "word"])), usage=usages,
    native=st.sampled_from([{}, {"truncated": "true"}]), other_choices=st.sampled_from([0, 1]),
)
requests = st.none() | st.builds(
    Request, st.just("openai_chat"), tools=st.sampled_from([(), (WRITE, NOW)]), max_tokens=st.sampled_from([None, 100]),
)
servers = st.none() | st.builds(Server, st.just("s"), st.sampled_from([None, 100]), st.booleans())
natives = st.none() | st.builds(StopReason, st.sampled_from(Stop), st.just("THEIRS"))
FINISHED = {Stop.END_TURN, Stop.TOOL_CALL}


@settings(max_examples=200)
@given(responses, requests, servers, natives)
def test_judging_only_tightens(
    response: ChatResponse, request_: Request | None, server: Server | None, native: StopReason | None
) -> None:
    found = judge(response, request_, server, native)
    before, after = response.stop_reason.normalized, found.stop.normalized
    assert found.mapped is response.stop_reason
    assert found.stop.raw == response.stop_reason.raw
    if before not in FINISHED:
        assert after not in FINISHED
    if after is Stop.TOOL_CALL and before is not Stop.TOOL_CALL:
        assert found.promoted
        assert before is Stop.END_TURN
    if after is not before:
        assert len(found.stop.evidence) > len(response.stop_reason.evidence), "each correction leaves evidence"
    assert found.stop.evidence[: len(response.stop_reason.evidence)] == response.stop_reason.evidence
    tools = request_.tools if request_ else ()
    if found.promoted:
        verdicts = admit_all(response.tool_calls, found, tools)
        assert all(v.admission is not Admission.HELD or v.rule == "gate.phantom" for v in verdicts)
    for verdict in admit_all(response.tool_calls, found, tools):
        if verdict.admission is not Admission.HELD:
            assert after is Stop.TOOL_CALL

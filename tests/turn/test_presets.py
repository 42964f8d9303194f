"""What each preset makes of a response, checked against the document that it cites; nothing here copies a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from loop_core.errors import CallerError
from loop_core.turn.continuation import Method
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, run
from loop_core.turn.machine import begin
from loop_core.turn.moves import final_history
from loop_core.turn.policy import STRICT, Policy
from loop_core.turn.presets import BOTNEXUS, PI_PRESENCE, POLICIES, ZEROCLAW_MERGED, ZEROCLAW_RFI, ZOO_AFTER, preset
from loop_core.turn.state import ProviderResponse, State
from loop_core.turn.tools import Toolbox
from loop_core.values import Message, OpaquePart, ProviderError, Role, Stop, TextPart
from tests.scenes.rows import each_row
from tests.scenes.turns import (
    CUT,
    GOOD,
    REQUEST,
    ScriptedSource,
    answer,
    as_event,
    call,
    dispatches,
    drive,
    last,
    path,
    reply,
    sends,
)

C, X, CP, RP, A, AP = (
    State.COMPLETE, State.EXECUTE_TOOLS, State.CONTINUE_PENDING, State.REPAIR_PENDING, State.ABORT, State.ABORT_PARTIAL,
)
CUT_CALL, WHOLE_CALL = call(CUT, closed=False), call(GOOD)
Leads = Mapping[Stop, tuple[State, State, State]]


def every(default: tuple[State, State, State], **more: tuple[State, State, State]) -> Leads:
    """Where text, a cut call and a whole call lead; an error and an abort end every loop."""
    ends = {Stop.ERROR: (AP, AP, AP), Stop.CANCELLED: (A, A, A)}
    return {**dict.fromkeys(Stop, default), **ends, **{Stop(name.lower()): leads for name, leads in more.items()}}


LEADS: dict[str, Leads] = {
    # ZeroClaw RFI 2309: the diagram; what is none of its seven words is Unknown; a whole call under a clean end is one
    "zeroclaw-rfi": every(
        (AP, AP, AP), END_TURN=(C, C, X), TOOL_CALL=(C, RP, X), MAX_TOKENS=(CP, RP, CP), SAFETY_BLOCKED=(A, A, A),
        CONTEXT_WINDOW_EXCEEDED=(A, A, A)),
    # zeroclaw#2373: calls that parse run whatever the reason; only MaxTokens without one is looked at
    "zeroclaw-merged": every((C, C, X), MAX_TOKENS=(CP, CP, X)),
    # Zoo Code's analysis: only tool_calls ends a call; Abort is where the call that is never finalized leaves the turn
    "zoo-before": every((C, A, A), TOOL_CALL=(C, X, X)),
    # Zoo Code's analysis, fixes 1 and 2: whatever the reason, the call is ended
    "zoo-after": every((C, X, X)),
    # pi's agent loop: presence; its map makes errors of a filter, of a full context and of a word it does not know
    "pi-presence": every(
        (C, X, X), SAFETY_BLOCKED=(AP, AP, AP), CONTEXT_WINDOW_EXCEEDED=(AP, AP, AP), UNKNOWN=(AP, AP, AP)),
    # BotNexus PR 1676: only ToolUse; a missing reason with calls is promoted to it
    "botnexus": every((C, C, C), TOOL_CALL=(C, X, X), INTERRUPTED=(C, X, X), SAFETY_BLOCKED=(A, A, A)),
}


@each_row("stop", list(Stop))
@each_row("name", LEADS)
def test_where_each_word_leads(name: str, stop: Stop) -> None:
    for parts, expected in zip((("text",), ("text", CUT_CALL), ("text", WHOLE_CALL)), LEADS[name][stop], strict=True):
        assert path(drive([answer(stop, *parts, raw=None)], policy=preset(name)))[2] is expected, parts


# -- native words ----------------------------------------------------------------------------------------------------


def response_of(api: str, raw: str, mapped: Stop, *parts: Any) -> ProviderResponse:
    """A response of any format, as the engine's own table maps it."""
    made = replace(reply(mapped, *(parts or ("text",)), raw=raw), api=api)
    return as_event(made, replace(REQUEST, api=api))


SEED_000: dict[tuple[str, str], Stop] = {
    ("openai_chat", "stop"): Stop.END_TURN, ("openai_chat", "tool_calls"): Stop.TOOL_CALL,
    ("openai_chat", "function_call"): Stop.TOOL_CALL, ("openai_chat", "length"): Stop.MAX_TOKENS,
    ("openai_chat", "content_filter"): Stop.SAFETY_BLOCKED, ("openai_chat", "model_length"): Stop.UNKNOWN,
    ("anthropic_messages", "end_turn"): Stop.END_TURN, ("anthropic_messages", "stop_sequence"): Stop.END_TURN,
    ("anthropic_messages", "tool_use"): Stop.TOOL_CALL, ("anthropic_messages", "max_tokens"): Stop.MAX_TOKENS,
    ("anthropic_messages", "model_context_window_exceeded"): Stop.CONTEXT_WINDOW_EXCEEDED,
    ("anthropic_messages", "refusal"): Stop.UNKNOWN, ("anthropic_messages", "pause_turn"): Stop.UNKNOWN,
    ("gemini_generate", "STOP"): Stop.END_TURN, ("gemini_generate", "MAX_TOKENS"): Stop.MAX_TOKENS,
    ("gemini_generate", "SAFETY"): Stop.SAFETY_BLOCKED, ("gemini_generate", "RECITATION"): Stop.SAFETY_BLOCKED,
    ("gemini_generate", "BLOCKLIST"): Stop.UNKNOWN,
    ("bedrock_converse", "end_turn"): Stop.END_TURN, ("bedrock_converse", "tool_use"): Stop.TOOL_CALL,
    ("bedrock_converse", "max_tokens"): Stop.MAX_TOKENS,
    ("bedrock_converse", "guardrail_intervened"): Stop.SAFETY_BLOCKED,
    ("bedrock_converse", "stop_sequence"): Stop.UNKNOWN,
}
"""The document's table, and a word of each family that it does not list."""
AS_MERGED = {
    **SEED_000, ("openai_chat", "max_tokens"): Stop.MAX_TOKENS, ("anthropic_messages", "safety"): Stop.SAFETY_BLOCKED,
    ("gemini_generate", "MALFORMED_FUNCTION_CALL"): Stop.TOOL_CALL,
    ("gemini_generate", "UNEXPECTED_TOOL_CALL"): Stop.TOOL_CALL,
    ("gemini_generate", "TOO_MANY_TOOL_CALLS"): Stop.TOOL_CALL,
}
SEED_002 = {
    ("anthropic_messages", "end_turn"): Stop.END_TURN, ("anthropic_messages", "tool_use"): Stop.TOOL_CALL,
    ("anthropic_messages", "max_tokens"): Stop.MAX_TOKENS, ("anthropic_messages", "refusal"): Stop.ERROR,
    ("anthropic_messages", "pause_turn"): Stop.END_TURN, ("anthropic_messages", "stop_sequence"): Stop.END_TURN,
    ("anthropic_messages", "sensitive"): Stop.ERROR, ("anthropic_messages", "compaction"): Stop.ERROR,
}
SEED_003 = {
    ("openai_responses", "incomplete"): Stop.MAX_TOKENS,
    ("openai_responses", "incomplete:content_filter"): Stop.MAX_TOKENS,
}
NATIVE = {"zeroclaw-rfi": SEED_000, "zeroclaw-merged": AS_MERGED, "pi-presence": SEED_002, "botnexus": SEED_003}


@each_row(("name", "api", "raw", "taken_for"), [
    (name, api, raw, stop) for name, rows in NATIVE.items() for (api, raw), stop in rows.items()
])
def test_native_words_are_read_as_the_document_reads_them(name: str, api: str, raw: str, taken_for: Stop) -> None:
    """Whatever our own table made of the word: another one is given here."""
    mapped = Stop.END_TURN if taken_for in (Stop.UNKNOWN, Stop.ERROR) else Stop.UNKNOWN
    turn = last(drive([response_of(api, raw, mapped)], policy=preset(name)))
    assert turn.evaluation is not None
    assert turn.evaluation.word is taken_for


def test_an_enum_sent_as_its_number_is_no_unknown_word() -> None:
    assert last(drive([response_of("gemini_generate", "1", Stop.END_TURN)],
                      policy=ZEROCLAW_RFI)).terminal == "completed"


def test_an_error_stays_an_error_for_a_table_of_stop_words() -> None:
    for name in ("zeroclaw-rfi", "zeroclaw-merged", "pi-presence"):
        turn = last(drive([response_of("anthropic_messages", "overloaded_error", Stop.ERROR)], policy=preset(name)))
        assert (turn.terminal, turn.outcome) == ("error", AP)
        broken = reply(Stop.ERROR, "text", raw="length", error=ProviderError("overloaded"))
        assert last(drive([as_event(broken)], policy=preset(name))).terminal == "error"


@each_row("stop", [Stop.CONTEXT_WINDOW_EXCEEDED, Stop.SAFETY_BLOCKED])
@each_row("name", [name for name in POLICIES if name != "strict"])
def test_a_failed_request_is_an_error_whatever_its_message_speaks_of(name: str, stop: Stop) -> None:
    failed = reply(stop, raw=None, error=ProviderError("prompt is too long"))
    assert last(drive([as_event(failed)], policy=preset(name))).terminal == "error"
    worded = reply(stop, "text", raw="content_filter", error=ProviderError("blocked"))
    assert last(drive([as_event(worded)], policy=ZOO_AFTER)).terminal == "completed", "it has a word, which is read"


@each_row(("stop", "taken_for"), [
    (Stop.SAFETY_BLOCKED, Stop.ERROR),  # refusal and sensitive -> "error"
    (Stop.PAUSED, Stop.END_TURN),  # pause_turn -> "stop"
    (Stop.CONTEXT_WINDOW_EXCEEDED, Stop.ERROR),  # no row: the switch throws
    (Stop.UNKNOWN, Stop.ERROR),  # no row: the switch throws
    (Stop.MAX_TOKENS, Stop.MAX_TOKENS),
])
def test_pi_reads_other_formats_alike(stop: Stop, taken_for: Stop) -> None:
    turn = last(drive([answer(stop, "text", call())], policy=PI_PRESENCE))
    assert turn.evaluation is not None
    assert turn.evaluation.word is taken_for


@each_row(("stop", "raw", "said"), [
    (Stop.UNKNOWN, None, "the policy treats a missing stop reason as an error"),
    (Stop.UNKNOWN, "zz_new", "the policy treats the stop reason 'zz_new' as an error"),
    (Stop.SAFETY_BLOCKED, "content_filter", "the policy treats the stop reason 'content_filter' as an error"),
    (Stop.ERROR, "error", "the provider reported an error"),
])
def test_an_error_of_the_policy_is_not_said_to_be_one_of_the_provider(stop: Stop, raw: str | None, said: str) -> None:
    turn = last(drive([answer(stop, "text", raw=raw)], policy=PI_PRESENCE))
    assert turn.notice == f"The answer may be incomplete: {said}."


@each_row("stop", list(Stop))
@each_row("policy", [PI_PRESENCE, ZEROCLAW_MERGED, ZOO_AFTER])
def test_presence_itself_knows_no_word_but_error_and_abort(policy: Policy, stop: Stop) -> None:
    """Without a reading of the reasons of its own every other word would run a call."""
    if policy is ZEROCLAW_MERGED and stop is Stop.MAX_TOKENS:
        return  # the one word that it looks at
    believes = replace(policy, name="presence", reason_map={})
    ended = drive([answer(stop, WHOLE_CALL, raw=None)], policy=believes)
    assert bool(dispatches(ended)) == (stop not in (Stop.ERROR, Stop.CANCELLED))
    spoken = last(drive([answer(stop, "text", raw=None)], policy=believes)).terminal
    assert spoken == {Stop.ERROR: "error", Stop.CANCELLED: "cancelled"}.get(stop, "completed")


# -- promotions ------------------------------------------------------------------------------------------------------


@each_row("api", ["gemini_generate", "openai_responses", "ollama_chat"])
@each_row("name", sorted(POLICIES))
def test_a_whole_call_runs_under_every_policy_where_the_format_has_no_word_for_calls(name: str, api: str) -> None:
    raw = {"gemini_generate": "STOP", "openai_responses": "completed", "ollama_chat": "stop"}[api]
    assert dispatches(drive([response_of(api, raw, Stop.END_TURN, WHOLE_CALL)], policy=preset(name)))


@each_row(("name", "whole", "cut"), [
    ("strict", True, False), ("zeroclaw-rfi", True, False), ("zeroclaw-merged", True, False),
    ("zoo-before", False, False), ("zoo-after", True, True), ("pi-presence", True, True), ("botnexus", False, False),
])
def test_what_runs_under_stop_in_a_chat(name: str, whole: bool, cut: bool) -> None:
    """vLLM PR #25054: `stop` over a whole call, for a named tool_choice; two of the systems lose it."""
    for made, runs in ((WHOLE_CALL, whole), (CUT_CALL, cut)):
        for provider in ("", "mimo", "openai"):
            answered = [response_of("openai_chat", "stop", Stop.END_TURN, made)]
            assert bool(dispatches(drive(answered, policy=preset(name), provider=provider))) == runs


def test_botnexus_promotes_any_call_of_a_responses_stream() -> None:
    """BotNexus PR 1676: `contentBlocks.OfType<ToolCallContent>().Any() && stopReason == Stop`."""
    assert dispatches(drive([response_of("openai_responses", "completed", Stop.END_TURN, call(CUT))], policy=BOTNEXUS))
    assert not dispatches(drive([response_of("gemini_generate", "STOP", Stop.END_TURN, call(CUT))], policy=BOTNEXUS))


def test_botnexus_promotes_a_missing_reason_but_on_openais_own_host() -> None:
    """BotNexus PR 1676: OpenAICompat maps null with calls to ToolUse; the completions engine does not."""
    mimo = answer(Stop.INTERRUPTED, CUT_CALL, tokens=100)
    assert dispatches(drive([mimo], policy=BOTNEXUS, provider="mimo"))
    assert not dispatches(drive([mimo], policy=BOTNEXUS, provider="openai"))
    assert path(drive([answer(Stop.INTERRUPTED, "text")], policy=BOTNEXUS))[2] is C


# -- what runs -------------------------------------------------------------------------------------------------------


def first_batch(name: str, *parts: Any, stop: Stop = Stop.TOOL_CALL) -> list[str | None]:
    """The arguments of the calls that the loop would run in its first batch; what is released is another matter."""
    effects = dispatches(drive([answer(stop, *parts)], policy=preset(name)))
    return [verdict.call.arguments for verdict in effects[0].batch] if effects else []


def test_zoo_ends_with_an_invalid_call_where_no_argument_can_be_read() -> None:
    """Zoo Code's analysis, problem: `missing nativeArgs`."""
    for name in ("zoo-before", "zoo-after"):
        for nothing in ("", None, "{", '{"pa'):
            turn = last(drive([answer(Stop.TOOL_CALL, call(nothing))], policy=preset(name)))
            assert (turn.outcome, turn.terminal) == (A, "stuck"), nothing
        assert first_batch(name, call(CUT)) == [CUT]


def test_a_call_that_needs_nothing_runs_under_every_policy() -> None:
    for name in POLICIES:
        assert first_batch(name, call("", "now")) == [""], name
        assert first_batch(name, call("{}", "now")) == ["{}"], name


def test_what_one_cut_call_means_for_its_siblings() -> None:
    both = (call(), call(CUT, id="c2", closed=False))
    assert first_batch("strict", *both, stop=Stop.MAX_TOKENS) == []
    assert first_batch("zeroclaw-rfi", *both, stop=Stop.MAX_TOKENS) == []
    assert first_batch("zeroclaw-merged", *both, stop=Stop.MAX_TOKENS) == [GOOD]
    assert first_batch("zoo-after", *both, stop=Stop.MAX_TOKENS) == [GOOD, CUT]
    assert first_batch("pi-presence", *both, stop=Stop.MAX_TOKENS) == [GOOD, CUT]
    assert first_batch("botnexus", *both, stop=Stop.MAX_TOKENS) == []
    assert first_batch("botnexus", *both) == [GOOD, CUT]


def test_a_free_form_call_runs_as_soon_as_it_is_there() -> None:
    from loop_core.values import CallKind

    patch, empty = (call(text, "write", kind=CallKind.CUSTOM, closed=False) for text in ("*** Begin", None))
    for name, runs in (("zeroclaw-merged", True), ("zoo-after", True), ("pi-presence", True), ("strict", False)):
        assert bool(first_batch(name, patch, stop=Stop.MAX_TOKENS)) == runs, name
    assert first_batch("zeroclaw-merged", empty, stop=Stop.MAX_TOKENS) == []
    assert first_batch("zoo-after", empty, stop=Stop.MAX_TOKENS) == []


def test_no_held_call_runs_under_any_policy_with_our_tools() -> None:
    """A preset shows what another loop would do; the toolbox still runs nothing that the gate did not release."""
    for name in ("pi-presence", "zoo-after"):
        called: list[object] = []
        box = Toolbox({"write": lambda arguments, called=called: called.append(arguments) or "ok"})

        class Live(ScriptedSource):
            run_tools = staticmethod(box.run)

        source = Live([answer(Stop.MAX_TOKENS, call(CUT, closed=False)), answer(Stop.END_TURN, "done")])
        trace = run("t", REQUEST, source, Plan(policy=preset(name)))
        assert dispatches(trace)
        assert called == []
        assert last(trace).history[-1].results[0].text.startswith("Not run")


# -- what stays in the history ---------------------------------------------------------------------------------------


def test_botnexus_strips_what_it_did_not_run_and_others_keep_it() -> None:
    """BotNexus PR 1676: from the calls and from the content, while the text is retained."""
    cut = answer(Stop.MAX_TOKENS, "text", CUT_CALL)
    after = final_history(last(drive([cut], policy=BOTNEXUS)))
    assert [m.parts for m in after if m.role is Role.ASSISTANT] == [(TextPart("text"),)]
    failed = answer(Stop.ERROR, "text", CUT_CALL)
    kept = final_history(last(drive([failed], policy=PI_PRESENCE)))
    assert kept[-1] == Message(Role.ASSISTANT, (TextPart("text"), CUT_CALL))


def test_pi_sends_back_what_it_received() -> None:
    opaque = OpaquePart("block", "{}")
    cut = answer(Stop.MAX_TOKENS, "text", opaque, call(CUT))
    turn = last(drive([cut, answer(Stop.END_TURN, "x")], policy=PI_PRESENCE))
    assert [message.parts for message in turn.history if message.role.value == "assistant"] == [
        (TextPart("text"), opaque, call(CUT)),
    ]


def test_merged_zeroclaw_sends_back_the_calls_that_it_ran() -> None:
    both = answer(Stop.MAX_TOKENS, "text", call(), call(CUT, id="c2"))
    turn = last(drive([both, answer(Stop.END_TURN, "x")], policy=ZEROCLAW_MERGED))
    assert [m.tool_calls for m in turn.history if m.role is Role.ASSISTANT] == [(call(),)]


# -- how they continue -----------------------------------------------------------------------------------------------


def test_the_document_hints_from_the_system_and_what_was_merged_as_the_user() -> None:
    script = [answer(Stop.MAX_TOKENS, "one two", tokens=10), answer(Stop.END_TURN, " three")]
    for policy, role in ((ZEROCLAW_RFI, Role.SYSTEM), (ZEROCLAW_MERGED, Role.USER)):
        asked = sends(drive(script, policy=policy))[1]
        assert (asked.method, asked.new_messages[-1].role) == (Method.HINT, role)
        assert asked.new_messages[-1].text.splitlines()[1] == "Continue exactly from where you left off."


def test_only_what_was_merged_removes_an_overlap_of_any_length() -> None:
    script = [answer(Stop.MAX_TOKENS, "10", tokens=10), answer(Stop.END_TURN, "000 people")]
    assert last(drive(script)).joined_answer().text == "10000 people"
    assert last(drive(script, policy=ZEROCLAW_RFI)).joined_answer().text == "10000 people"
    assert last(drive(script, policy=ZEROCLAW_MERGED)).joined_answer().text == "1000 people"


BEGUN = "Once upon a time there was a small house by the river, and in it lived nobody at all."


def test_the_limits_that_a_system_lacks_do_not_stop_it() -> None:
    cut = [answer(Stop.MAX_TOKENS, f"part {number} ", tokens=100) for number in range(9)]
    few = Limits(continuation_max_attempts=6)
    assert last(drive(cut, few)).terminal == "budget_exhausted"
    assert last(drive(cut, few, policy=ZEROCLAW_RFI)).terminal == "budget_exhausted"
    merged = last(drive(cut, few, policy=ZEROCLAW_MERGED))
    assert (merged.terminal, merged.spend.attempts, merged.token_cap) == ("retry_limit", 6, None)
    nothing_new = ([answer(Stop.MAX_TOKENS, tokens=1)] * 9, [answer(Stop.MAX_TOKENS, BEGUN, tokens=1)] * 9)
    for stalled in nothing_new:
        assert last(drive(stalled)).terminal == "no_progress"
        assert last(drive(stalled, policy=ZEROCLAW_RFI)).terminal == "retry_limit"
        assert last(drive(stalled, policy=ZEROCLAW_MERGED)).terminal == "retry_limit"


def test_systems_without_continuation_take_cut_text_for_an_answer() -> None:
    for name in ("zoo-before", "zoo-after", "pi-presence", "botnexus"):
        turn = last(drive([answer(Stop.MAX_TOKENS, "text", tokens=100)], policy=preset(name)))
        assert (turn.terminal, turn.notice) == ("completed", None)


# -- all of them -----------------------------------------------------------------------------------------------------


def test_presets_are_found_by_name() -> None:
    assert preset("strict") is STRICT
    assert preset("zoo-after") is ZOO_AFTER
    with pytest.raises(CallerError, match=r"strict, zeroclaw-rfi, .*, botnexus"):
        preset("lax")
    with pytest.raises(CallerError, match="unknown policy"):
        preset(["strict"])  # type: ignore[arg-type]
    assert set(LEADS) | {"strict"} == set(POLICIES)
    assert all(policy.cites and policy.title for policy in POLICIES.values())


UNTRUNCATED = (
    answer(Stop.END_TURN, "done."),
    answer(Stop.TOOL_CALL, "I will.", call(), call('{"zone": "UTC"}', "now", "c2")),
    answer(Stop.TOOL_CALL, call("", "now")),
)


@each_row("name", sorted(POLICIES))
def test_what_is_not_cut_ends_alike_under_every_policy(name: str) -> None:
    for first in UNTRUNCATED:
        for second in UNTRUNCATED:
            script = [first, second, answer(Stop.END_TURN, "end")]
            ours, theirs = drive(script), drive(script, policy=preset(name))
            assert path(ours) == path(theirs)
            assert last(ours).joined_answer().text == last(theirs).joined_answer().text
            assert [[v.call for v in e.batch] for e in dispatches(ours)] == [
                [v.call for v in e.batch] for e in dispatches(theirs)]


@each_row("name", ["zeroclaw-rfi", "zoo-before", "zoo-after", "pi-presence", "botnexus"])
def test_no_seed_lets_the_bound_on_tokens_lower_the_cap_of_a_request(name: str) -> None:
    """ZeroClaw RFI 2309 looks at what was spent before a continuation, the others at nothing: the first cap stays."""
    limits = Limits(continuation_max_total_completion_tokens=40)
    _, (sent,) = begin("t", REQUEST, limits, preset(name))
    _, (strict,) = begin("t", REQUEST, limits, STRICT)
    assert (sent.max_tokens, strict.max_tokens) == (100, 40)


@each_row("name", sorted(POLICIES))
@each_row("stop", list(Stop))
def test_every_policy_has_a_way_on_for_every_word_beside_an_error(name: str, stop: Stop) -> None:
    """A caller's own source may say both."""
    trace = drive([answer(stop, "Half.", error=ProviderError("broken"))], policy=preset(name))
    assert len(trace.steps) > 1
    assert last(trace).evaluation is not None

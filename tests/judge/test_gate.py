"""The gate: ready only if closed, authorised, strictly parsed, accepted; a batch waits as one, one may be refused."""

from __future__ import annotations

from itertools import product

from loop_core.judge.gate import REMEDY, Admission, admit, admit_all
from loop_core.values import ArgsForm, CallKind, Stop, Tool, ToolCall
from tests.scenes.rows import each_row
from tests.scenes.turns import CUT, GOOD, NOW, WRITE, call, judgement_of

READY, HELD, REJECTED = Admission.READY, Admission.HELD, Admission.REJECTED
AUTHORISED = judgement_of(Stop.TOOL_CALL)
TOOLS = (WRITE, NOW)
PHANTOM = ToolCall(None, "", "")


@each_row(("stop", "closed", "arguments", "expected"), [
    (stop, closed, arguments,
     HELD if stop is not Stop.TOOL_CALL or not closed or arguments not in (GOOD, '{"path": 5}')
     else READY if arguments == GOOD else REJECTED)
    for stop, closed, arguments in product(Stop, (True, False), (GOOD, '{"path": 5}', CUT, "", None, "[1]", "nonsense"))
])
def test_a_call_is_ready_only_under_every_condition(
    stop: Stop, closed: bool, arguments: str | None, expected: Admission
) -> None:
    verdict = admit(call(arguments, closed=closed), judgement_of(stop), WRITE)
    assert verdict.admission is expected
    assert verdict.why
    assert (verdict.arguments is not None) == (expected is READY), "arguments are handed out only where a call is ready"


def test_a_ready_call_carries_exactly_the_arguments_that_were_sent() -> None:
    verdict = admit(call('{"path": "a", "lines": 12}'), AUTHORISED, WRITE)
    assert verdict.arguments == {"path": "a", "lines": 12}
    assert verdict.rule == "gate.ready"


def test_a_ready_verdict_says_whether_a_schema_was_checked() -> None:
    assert "its schema accepts it" in admit(call(), AUTHORISED, WRITE).why
    assert "no usable schema" in admit(call(), AUTHORISED, Tool("write")).why
    assert "no usable schema" in admit(call(), AUTHORISED).why


@each_row("blank", [
    call("", "now"), call(" ", "now"), call("", "now", form=ArgsForm.OBJECT), call(None, "now", form=ArgsForm.OBJECT),
])
def test_empty_arguments_mean_the_empty_object_only_where_nothing_is_known_to_be_required(blank: ToolCall) -> None:
    assert admit(blank, AUTHORISED, NOW).arguments == {}
    for tool in (WRITE, None, Tool("now"), Tool("now", {"type": "nonsense"})):
        assert admit(blank, AUTHORISED, tool).admission is HELD
    for stop in set(Stop) - {Stop.TOOL_CALL}:
        assert admit(blank, judgement_of(stop), NOW).admission is HELD


@each_row(("raw", "kind"), [("[1]", "array"), ('"x"', "string"), ("5", "number"), ("null", "null")])
def test_arguments_that_are_no_object_are_named_in_words(raw: str, kind: str) -> None:
    assert admit(call(raw), AUTHORISED, WRITE).why == f"the arguments are a JSON {kind} where an object is expected"


def test_arguments_that_never_came_are_none_only_where_there_are_no_parameters() -> None:
    assert admit(call(None, "now"), AUTHORISED, NOW).arguments == {}
    assert admit(call(None), AUTHORISED, WRITE).admission is HELD
    assert admit(call(None), AUTHORISED).admission is HELD


def test_a_free_form_call_needs_a_closed_block_a_clean_stop_and_an_input() -> None:
    custom = call("ls -la", "shell", kind=CallKind.CUSTOM)
    assert admit(custom, AUTHORISED).arguments == "ls -la"
    assert admit(call("", "shell", kind=CallKind.CUSTOM), AUTHORISED).arguments == ""
    assert admit(call("ls", "shell", kind=CallKind.CUSTOM, closed=False), AUTHORISED).admission is HELD
    assert admit(call(None, "shell", kind=CallKind.CUSTOM), AUTHORISED).admission is HELD
    assert admit(custom, judgement_of(Stop.MAX_TOKENS)).admission is HELD


def test_a_complete_call_without_a_name_is_rejected() -> None:
    verdict = admit(call(name=""), AUTHORISED)
    assert (verdict.admission, verdict.rule) == (REJECTED, "gate.nameless")
    assert "no name" in verdict.why
    assert admit(call(CUT, name=""), AUTHORISED).admission is HELD
    assert admit(call(name=""), judgement_of(Stop.END_TURN)).admission is HELD


def test_a_tool_that_is_not_declared_is_rejected_where_the_declarations_are_known() -> None:
    verdict, good = admit_all([call(name="delete"), call(id="c2")], AUTHORISED, TOOLS)
    assert (verdict.admission, verdict.rule) == (REJECTED, "gate.unknown_tool")
    assert "write" in verdict.why
    assert good.admission is READY, "a rejected call does not hold its siblings"
    assert admit_all([call(name="delete")], AUTHORISED)[0].admission is READY, "no declaration is known"
    assert admit_all([call(CUT, name="delete")], AUTHORISED, TOOLS)[0].admission is HELD
    own = (*TOOLS, Tool("web_search", kind=CallKind.SERVER))
    assert admit_all([call(name="delete")], AUTHORISED, own[-1:])[0].admission is READY, "only the provider's own tools"
    assert admit_all([call(name="web_search")], AUTHORISED, own)[0].admission is REJECTED


def test_a_request_whose_tools_are_loaded_while_it_is_answered_declares_no_closed_list() -> None:
    loads = (*TOOLS, Tool("tool_search", kind=CallKind.SERVER))
    assert admit_all([call(name="delete")], AUTHORISED, loads)[0].admission is READY


def test_a_call_of_a_tool_that_the_provider_names_is_never_unknown() -> None:
    shell = call('{"type": "shell_call"}', "shell", kind=CallKind.CUSTOM, form=ArgsForm.OBJECT)
    assert admit_all([shell], AUTHORISED, TOOLS)[0].admission is READY
    assert admit_all([shell._replace(form=ArgsForm.STRING)], AUTHORISED, TOOLS)[0].admission is REJECTED


def test_a_call_that_the_request_forbade_is_rejected() -> None:
    shell = call("ls", "shell", "c2", kind=CallKind.CUSTOM)
    verdicts = admit_all([call(), shell], AUTHORISED, TOOLS, "none")
    assert [(each.admission, each.rule) for each in verdicts] == [(REJECTED, "gate.forbidden")] * 2
    assert "tool_choice none" in verdicts[0].why
    assert admit_all([call()], AUTHORISED, (), "none")[0].admission is REJECTED, "whether or not tools are declared"
    assert admit_all([call(CUT)], AUTHORISED, TOOLS, "none")[0].admission is HELD, "a cut call has no result"
    for choice in (None, "auto", "any", "tool:write"):
        assert admit_all([call()], AUTHORISED, TOOLS, choice)[0].admission is READY


def test_a_call_of_another_tool_than_the_request_chose_is_rejected() -> None:
    """A caller that forces a tool has allowed no other; a choice that names none of its own tools says nothing."""
    both = (*TOOLS, Tool("drop", {"type": "object"}), Tool("web_search", kind=CallKind.SERVER))
    calls = [call(), call("{}", "drop", "c2")]
    verdicts = admit_all(calls, AUTHORISED, both, "tool:write")
    assert [(each.admission, each.rule) for each in verdicts] == [(READY, "gate.ready"), (REJECTED, "gate.forbidden")]
    assert "only calls of 'write'" in verdicts[1].why
    assert admit_all([call(CUT), calls[1]], AUTHORISED, both, "tool:write")[1].admission is HELD, "of a cut batch"
    nameless = Tool("", {"type": "object"})
    for choice in ("tool:web_search", "tool:mcp", "tool:None", "tool:", "any", "auto", None):
        assert [each.admission for each in admit_all(calls, AUTHORISED, (*both, nameless), choice)] == [READY, READY]


def test_two_texts_of_one_call_hold_it_and_speak_of_no_budget() -> None:
    for stop in (Stop.TOOL_CALL, Stop.MALFORMED_TOOL_CALL):
        verdict = admit(call(other_arguments='{"path": "b.txt"}'), judgement_of(stop))
        assert (verdict.admission, verdict.rule) == (HELD, "gate.contradiction")
        assert not any(word in verdict.why for word in ("cut", "limit", "budget", "closed"))


def test_where_no_word_came_the_missing_word_holds_a_call_and_not_its_end() -> None:
    verdict = admit(call(closed=False), judgement_of(Stop.UNKNOWN), WRITE)
    assert (verdict.admission, verdict.rule) == (HELD, "gate.reason")
    assert "no known stop reason" in verdict.why
    assert admit(call(CUT, closed=False), judgement_of(Stop.UNKNOWN), WRITE).rule == "gate.incomplete"


# -- what is said ----------------------------------------------------------------------------------------------------


@each_row("made", [call(CUT, closed=False), call(CUT), call(GOOD), call("")])
def test_a_call_that_the_budget_cut_says_what_to_do(made: ToolCall) -> None:
    """Zoo Code's analysis, fix 3: raise the output limit, split, or simplify."""
    for reading in (judgement_of(Stop.MAX_TOKENS), judgement_of(Stop.INTERRUPTED, cap_reached=True)):
        why = admit(made, reading, WRITE).why
        assert "raise the output limit" in why
        assert "split" in why
        assert "simplify" in why


def test_a_call_that_the_network_cut_is_not_told_to_raise_a_limit() -> None:
    for made in (call(CUT, closed=False), call(GOOD)):
        assert REMEDY not in admit(made, judgement_of(Stop.INTERRUPTED), WRITE).why


@each_row(("stop", "word"), [
    (Stop.MAX_TOKENS, "output limit"),
    (Stop.CONTEXT_WINDOW_EXCEEDED, "context window"),
    (Stop.SAFETY_BLOCKED, "filter"),
    (Stop.CANCELLED, "cancelled"),
    (Stop.UNKNOWN, "no known stop reason"),
    (Stop.PAUSED, "paused"),
    (Stop.INTERRUPTED, "without a stop reason"),
    (Stop.MALFORMED_TOOL_CALL, "malformed"),
    (Stop.ERROR, "error"),
    (Stop.END_TURN, "without asking for tools"),
])
def test_a_reason_that_authorises_nothing_is_named(stop: Stop, word: str) -> None:
    verdict = admit(call(), judgement_of(stop), WRITE)
    assert verdict.rule == "gate.reason"
    assert word in verdict.why


def test_where_the_parser_stopped_is_told() -> None:
    assert "character 9" in admit(call(CUT), judgement_of(Stop.MAX_TOKENS), WRITE).why
    assert "never closed" in admit(call(GOOD, closed=False), judgement_of(Stop.MAX_TOKENS), WRITE).why
    whole = admit(call(GOOD, closed=False)._replace(form=ArgsForm.OBJECT), judgement_of(Stop.MAX_TOKENS), WRITE)
    assert (whole.admission, whole.rule) == (Admission.HELD, "gate.incomplete")
    assert whole.why.startswith("the answer ended in it (max_tokens), and arguments that come already parsed look")


# -- the batch -------------------------------------------------------------------------------------------------------


@each_row("odd", [
    call(CUT, id="c2"), call(closed=False, id="c2"), call("", id="c2"),
    call(id="c2", other_arguments="{}"),
])
@each_row("position", [0, 1])
def test_one_held_call_holds_its_whole_batch(odd: ToolCall, position: int) -> None:
    batch = [call(), call('{"path": 5}', id="c3")]
    batch.insert(position, odd)
    verdicts = admit_all(batch, AUTHORISED, TOOLS)
    assert {v.admission for v in verdicts} == {HELD}
    assert [v.call for v in verdicts] == batch
    assert {v.rule for v in verdicts if v.call is not odd} == {"gate.batch"}
    assert all(v.arguments is None for v in verdicts)


def test_complete_calls_of_a_cut_response_wait_with_it() -> None:
    verdicts = admit_all([call(), call(id="c2")], judgement_of(Stop.MAX_TOKENS), TOOLS)
    assert {v.admission for v in verdicts} == {HELD}


def test_a_rejected_call_is_alone_and_its_siblings_are_ready() -> None:
    """pi's agent loop: the validation error goes back as that call's result."""
    verdicts = admit_all([call(), call('{"lines": 1}', id="c2"), call(id="c3")], AUTHORISED, TOOLS)
    assert [v.admission for v in verdicts] == [READY, REJECTED, READY]
    assert verdicts[1].rule == "gate.schema"
    assert "path" in verdicts[1].problems[0]
    assert verdicts[1].arguments is None


def test_each_call_is_checked_against_its_own_tool() -> None:
    verdicts = admit_all([call("{}", "now"), call("{}", "write"), call("{}", "unheard_of")], AUTHORISED, TOOLS)
    assert [v.admission for v in verdicts] == [READY, REJECTED, REJECTED]


def test_a_phantom_is_held_and_holds_nobody() -> None:
    """Some servers append a call without a name and without arguments."""
    verdicts = admit_all([call(), PHANTOM], AUTHORISED, TOOLS)
    assert [v.admission for v in verdicts] == [READY, HELD]
    assert verdicts[1].rule == "gate.phantom"
    assert admit(PHANTOM, AUTHORISED).admission is HELD

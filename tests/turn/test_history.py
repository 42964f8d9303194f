"""The projection into history, the second guard of BotNexus PR 1676: no held call in any form, nothing refused."""

from __future__ import annotations

import pytest

from loop_core.judge.gate import Admission, Verdict, admit_all
from loop_core.turn import history
from loop_core.turn.continuation import HINT_POINTS, Method
from loop_core.turn.history import Ability
from loop_core.values import (
    ArgsForm,
    CallKind,
    ChatResponse,
    Message,
    OpaquePart,
    ReasoningPart,
    Role,
    Stop,
    TextPart,
    ToolCall,
    ToolResultPart,
)
from tests.scenes.rows import each_row
from tests.scenes.turns import BAD, CUT, GOOD, NOW, WRITE, call, check_history, judgement_of, reply

API = "openai_chat"
THOUGHT = ReasoningPart("hm", signature="s")
SEALED = ReasoningPart("", data="encrypted")
BLOCK = OpaquePart("web_search_tool_result", "{}")
SERVER = ToolCall("s1", "web_search", "{}", True, CallKind.SERVER)


def message_of(response: ChatResponse, stop: Stop, text: str | None = None, *, ran: bool = True) -> Message | None:
    verdicts = admit_all(response.tool_calls, judgement_of(stop), (WRITE, NOW))
    return history.assistant_message(response, verdicts if ran else (), text, stop)


def test_an_untruncated_response_passes_through_unchanged() -> None:
    parts = (THOUGHT, SEALED, TextPart("I look."), SERVER, BLOCK, TextPart("Found."), call(), call(BAD, id="c2"))
    assert message_of(reply(Stop.TOOL_CALL, *parts), Stop.TOOL_CALL) == Message(Role.ASSISTANT, parts, API)
    plain = (THOUGHT, TextPart("All."), SERVER, BLOCK)
    assert message_of(reply(Stop.END_TURN, *plain), Stop.END_TURN) == Message(Role.ASSISTANT, plain, API)


@each_row("stop", sorted(set(Stop) - {Stop.TOOL_CALL}))
def test_under_any_other_word_every_call_goes(stop: Stop) -> None:
    response = reply(stop, "text", call(), call(CUT, id="c2"))
    assert message_of(response, stop) == Message(Role.ASSISTANT, (TextPart("text"),))


def test_the_projection_does_not_lean_on_the_gate() -> None:
    """A gate that releases everything still gets no cut call into the history."""
    response = reply(Stop.MAX_TOKENS, "text", call(CUT))
    released = tuple(Verdict(c, Admission.READY, "broken", "") for c in response.tool_calls)
    for stop in set(Stop) - {Stop.TOOL_CALL}:
        said = history.assistant_message(response, released, None, stop)
        assert said is not None
        assert said.tool_calls == ()


def test_a_call_whose_result_does_not_follow_goes() -> None:
    response = reply(Stop.TOOL_CALL, "text", call())
    assert message_of(response, Stop.TOOL_CALL, ran=False) == Message(Role.ASSISTANT, (TextPart("text"),))


def test_what_cannot_be_read_leaves_with_an_unfinished_response() -> None:
    """A held call may hide in a block that is not interpreted; sealed thinking belongs to the call that is gone."""
    response = reply(Stop.MAX_TOKENS, THOUGHT, SEALED, "text", SERVER, BLOCK, call(CUT))
    assert message_of(response, Stop.MAX_TOKENS) == Message(Role.ASSISTANT, (THOUGHT, TextPart("text")), API)
    without_calls = reply(Stop.MAX_TOKENS, "text", SERVER)
    assert message_of(without_calls, Stop.MAX_TOKENS) == Message(Role.ASSISTANT, (TextPart("text"),))


def test_a_phantom_goes_and_nothing_with_it() -> None:
    response = reply(Stop.TOOL_CALL, SEALED, call(), ToolCall(None, "", ""))
    assert message_of(response, Stop.TOOL_CALL) == Message(Role.ASSISTANT, (SEALED, call()), API)


@each_row("parts", [(), ("",), ("  \n",), (THOUGHT,), (THOUGHT, call(CUT)), ("\n\n", call(CUT))])
def test_nothing_is_left_rather_than_an_empty_message(parts: tuple[object, ...]) -> None:
    assert message_of(reply(Stop.MAX_TOKENS, *parts), Stop.MAX_TOKENS) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "sent"), [("smile \ud83d", "smile "), ("\ude00 ok", " ok"), ("😀", "😀")])
def test_half_a_character_at_the_end_of_a_text_goes(text: str, sent: str) -> None:
    """A token may end inside a surrogate pair, and providers refuse JSON with half of one."""
    answer = reply(Stop.END_TURN, ReasoningPart(text), TextPart(text))
    whole = Message(Role.ASSISTANT, (ReasoningPart(sent), TextPart(sent)), API)
    assert message_of(answer, Stop.END_TURN) == whole
    echo, stripped = history.echo_message(answer)
    assert echo == Message(Role.ASSISTANT, (ReasoningPart(sent), TextPart(sent.rstrip())), API)
    assert stripped == {"smile \ud83d": " \ud83d"}.get(text, "")
    assert history.prefill_message(text) == (Message(Role.ASSISTANT, (TextPart(sent.rstrip()),)), stripped)
    assert message_of(reply(Stop.END_TURN, "ok"), Stop.END_TURN, text) == Message(Role.ASSISTANT, (TextPart(sent),))
    assert message_of(reply(Stop.END_TURN, "\ud83d"), Stop.END_TURN) is None


def test_blank_text_beside_a_call_goes() -> None:
    """Anthropic: "text content blocks must contain non-whitespace text"."""
    assert message_of(reply(Stop.TOOL_CALL, "\n\n", call()), Stop.TOOL_CALL) == Message(Role.ASSISTANT, (call(),))


@pytest.mark.parametrize(("blank", "form"), [("", ArgsForm.STRING), (" ", ArgsForm.STRING), (None, ArgsForm.OBJECT)])
def test_empty_arguments_that_meant_the_empty_object_are_sent_back_as_one(blank: str | None, form: ArgsForm) -> None:
    said = message_of(reply(Stop.TOOL_CALL, call(blank, "now", form=form)), Stop.TOOL_CALL)
    assert said is not None
    assert said.tool_calls[0].arguments == "{}"
    custom = call("", "shell", kind=CallKind.CUSTOM)
    assert message_of(reply(Stop.TOOL_CALL, custom), Stop.TOOL_CALL) == Message(Role.ASSISTANT, (custom,))


def test_text_that_goes_on_from_a_prefill_is_sent_back_whole() -> None:
    response = reply(Stop.TOOL_CALL, THOUGHT, " and two", call())
    said = message_of(response, Stop.TOOL_CALL, "one and two")
    assert said == Message(Role.ASSISTANT, (THOUGHT, TextPart("one and two"), call()), API)


# -- echo ------------------------------------------------------------------------------------------------------------


def test_a_paused_response_goes_back_as_it_was() -> None:
    parts = (THOUGHT, SEALED, TextPart("wait"), SERVER, BLOCK)
    assert history.echo_message(reply(Stop.PAUSED, *parts)) == (Message(Role.ASSISTANT, parts, API), "")


def test_a_pause_authorises_no_call_and_its_echo_holds_none() -> None:
    waits = Message(Role.ASSISTANT, (TextPart("wait"),))
    assert history.echo_message(reply(Stop.PAUSED, "wait", call())) == (waits, "")
    assert history.echo_message(reply(Stop.PAUSED, call())) == (None, "")
    assert history.echo_message(reply(Stop.PAUSED)) == (None, "")


def test_an_echo_holds_the_prefill_that_it_went_on_from() -> None:
    said, _ = history.echo_message(reply(Stop.PAUSED, "two", SERVER), "one two")
    assert said == Message(Role.ASSISTANT, (TextPart("one two"), SERVER))


# -- what is asked ---------------------------------------------------------------------------------------------------


def test_the_hint_makes_the_seeds_four_points_in_order() -> None:
    """ZeroClaw RFI 2309, "strict system-side continuation hint"."""
    message = history.hint_message()
    assert message.role is Role.SYSTEM
    assert message.text.split("\n") == [
        "Previous response was truncated by token limit.",
        "Continue exactly from where you left off.",
        "If you intended a tool call, emit one complete tool call payload only.",
        "Do not repeat already-sent text.",
    ]
    assert history.hint_message(system=False).role is Role.USER


def test_a_message_that_quotes_the_hint_is_none() -> None:
    quoted = f"Why did you say this?\n{HINT_POINTS[0]}"
    texts = (history.hint_message().text, quoted, HINT_POINTS[0].split()[0])
    assert [history.is_hint(Message(Role.USER, (TextPart(text),))) for text in texts] == [True, False, False]


def test_with_an_anchor_the_last_point_asks_for_it_verbatim() -> None:
    anchor = 'return "a\\n"\n\tx'
    text = history.hint_message(anchor).text
    assert text.startswith("\n".join(HINT_POINTS[:3]))
    assert f"<last>{anchor}</last>" in text, "as it is, not as a programming language would quote it"
    assert HINT_POINTS[3] not in text


def test_an_anchor_is_the_end_of_the_text() -> None:
    assert history.anchor_of("x" * 50 + "end") == "x" * 37 + "end"
    assert history.anchor_of("end") == "end"


def test_a_prefill_ends_without_white_space_and_remembers_it() -> None:
    assert history.prefill_message("one \n\n") == (Message(Role.ASSISTANT, (TextPart("one"),)), " \n\n")
    assert history.prefill_message("one") == (Message(Role.ASSISTANT, (TextPart("one"),)), "")


def test_a_repair_asks_for_one_complete_payload_and_suggests_nothing_smaller() -> None:
    verdicts = admit_all([call(CUT)], judgement_of(Stop.MAX_TOKENS))
    message = history.repair_message(verdicts)
    assert message.role is Role.SYSTEM
    assert "the tool call write again as one complete payload" in message.text
    assert "nothing else" not in message.text, "other calls are not forbidden"
    assert "split" not in message.text
    two = history.repair_message(admit_all([call(GOOD), call(CUT, "now")], judgement_of(Stop.MAX_TOKENS)), system=False)
    assert two.role is Role.USER
    assert two.text.endswith("Emit each of these tool calls again, as a complete payload of its own:\n- write\n- now")
    assert "Emit the tool call again" in history.repair_message(()).text


def test_the_notice_after_a_failed_repair_says_what_to_do() -> None:
    """Zoo Code's analysis: raise, split or simplify."""
    text = history.repair_notice(admit_all([call(CUT)], judgement_of(Stop.MAX_TOKENS)), ())
    assert text.startswith("The tool call write was not completed and was not run; raise the output limit, split")
    assert history.repair_notice((), ()).startswith("The tool call was not completed")


def test_the_model_is_told_why_a_call_was_not_run() -> None:
    cut = history.not_run_note(admit_all([call(CUT), call(CUT), call(CUT, "now")], judgement_of(Stop.MAX_TOKENS)))
    assert cut is not None
    assert "before it was complete: write, now." in cut.text
    assert "split" in cut.text
    ready = history.not_run_note(admit_all([call()], judgement_of(Stop.TOOL_CALL)), system=False)
    assert ready is not None
    assert ready.text == "Not run, since the turn was ended first: write."
    assert ready.role is Role.USER
    begun = history.not_run_note(admit_all([call()], judgement_of(Stop.TOOL_CALL)), broken_off=True)
    assert begun is not None
    assert begun.text.endswith("it may have run in part: write.")
    assert history.not_run_note(()) is None
    assert history.not_run_note(admit_all([ToolCall(None, "", "")], judgement_of(Stop.TOOL_CALL))) is None


# -- results ---------------------------------------------------------------------------------------------------------


def result(text: str, call_id: str | None = None, name: str | None = None) -> ToolResultPart:
    return ToolResultPart(call_id, name, text)


def test_every_call_gets_one_result_in_its_order() -> None:
    calls = [call(id="a"), call(id="b", name="now")]
    found = history.results_for(calls, [result("2", "b"), result("1", "a"), result("stray", "z")])
    assert [part.text for part in found] == ["1", "2"]
    missing = history.results_for(calls, [result("2", "b")])
    assert [(part.text, part.is_error, part.call_id) for part in missing] == [
        ("No result came.", True, "a"), ("2", False, "b"),
    ]
    check_history([Message(Role.ASSISTANT, tuple(calls)), history.tool_message(missing)])


def test_results_without_ids_are_told_apart_by_name_and_order() -> None:
    calls = [call(id=None), call(id=None, name="now"), call(id=None)]
    found = history.results_for(calls, [result("n", name="now"), result("1", name="write"), result("2", name="write")])
    assert [part.text for part in found] == ["1", "n", "2"]


# -- the method ------------------------------------------------------------------------------------------------------


@each_row(("methods", "text", "ability", "expected"), [
    ((Method.PREFILL, Method.ANCHOR), "text", Ability(prefill=True), Method.PREFILL),
    ((Method.PREFILL, Method.ANCHOR), "text", Ability(), Method.ANCHOR),
    ((Method.PREFILL, Method.ANCHOR), " ", Ability(prefill=True), Method.HINT),
    ((Method.HINT,), "text", Ability(prefill=True), Method.HINT),
    ((Method.PREFILL,), "text", Ability(), None),
    ((), "text", Ability(prefill=True), None),
])
def test_the_first_method_that_the_server_allows_is_used(
    methods: tuple[Method, ...], text: str, ability: Ability, expected: Method | None
) -> None:
    assert history.method_for(methods, text, ability) is expected


@each_row("anchor", ["the last words", "a </last> inside", " with blanks \n", ""])
def test_the_anchor_of_a_hint_is_read_back(anchor: str) -> None:
    assert [history.anchor_of_hint(history.hint_message(anchor, system)) for system in (True, False)] == [anchor] * 2


def test_other_words_ask_for_no_anchor() -> None:
    said = "Begin by repeating exactly the characters between <last> and </last>: <last>x</last>"
    assert history.anchor_of_hint(Message(Role.USER, (TextPart(said),))) == ""

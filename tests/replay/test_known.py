"""What a recording knows of one answer: segments merged, and what a budget takes of them."""

from __future__ import annotations

from inspector.replay.known import KnownAnswer, KnownOutput, first_position, known_output, take
from inspector.replay.tokens import measure
from loop_core.turn.continuation import Method
from loop_core.turn.state import RequestPlace
from loop_core.values import ChatResponse, OpaquePart, ReasoningPart, Stop, TextPart
from tests.scenes.turns import CUT, GOOD, as_event, call, reply


def output_of(*answers: tuple[RequestPlace, ChatResponse], first: int = 0) -> KnownOutput:
    made = tape(*answers)
    return known_output(made, first, lambda position: measure(made[position][2].response))


def tape(*answers: tuple[RequestPlace, ChatResponse]) -> list[KnownAnswer]:
    methods = {RequestPlace.CONTINUATION: Method.HINT, RequestPlace.REPAIR: Method.REPAIR}
    return [(place, number, as_event(response, number=number, method=methods.get(place, Method.FIRST)))
            for number, (place, response) in enumerate(answers)]


def cut(*parts: object, tokens: int = 5) -> ChatResponse:
    return reply(Stop.MAX_TOKENS, *parts, tokens=tokens)  # type: ignore[arg-type]


def end(*parts: object, tokens: int = 5) -> ChatResponse:
    return reply(Stop.END_TURN, *parts, tokens=tokens)  # type: ignore[arg-type]


ASK, ON, REPAIR = RequestPlace.REQUEST, RequestPlace.CONTINUATION, RequestPlace.REPAIR


def test_segments_make_one_text_and_one_part() -> None:
    told = output_of((ASK, cut("One and ")), (ON, cut("two and ")), (ON, end("three.")))
    assert (told.text, told.whole, told.after) == ("One and two and three.", True, (8, 16, 22))
    taken = take(told, 0, None)
    assert taken is not None
    assert (taken.parts, taken.tokens, taken.ended) == ((TextPart("One and two and three."),), 15, True)


def test_a_repetition_that_the_seam_cuts_is_known_once() -> None:
    first = "The lamp went out and the keeper slept until the morning came."
    told = output_of((ASK, cut(first, tokens=31)), (ON, end("the keeper slept until the morning came. Then he rose.",
                                                            tokens=27)))
    assert told.text == first + " Then he rose."
    assert sum(len(stretch.ends) for stretch in told.stretches) == 31 + 7  # 14 of 54 characters are new


def test_what_was_quoted_and_what_wrapped_it_is_not_known() -> None:
    first = "The lamp went out and the keeper slept until"
    words = first[-40:]
    sorry, wrapped = "I'm sorry, I can't go on.", f"<last>{words} the morning.</last>"
    answers = [
        (ASK, 0, as_event(cut(first, tokens=11), number=0, method=Method.FIRST)),
        (ON, 1, as_event(end(sorry, tokens=6), number=1, method=Method.ANCHOR, anchor=words)),
        (ON, 2, as_event(end(wrapped, tokens=15), number=2, method=Method.AGAIN, anchor=words)),
    ]
    told = known_output(answers, 0, lambda position: measure(answers[position][2].response))
    assert (told.text, told.whole) == (first + " the morning.", True), "a refusal is no end of the answer"
    assert first_position(answers, 2) == 0


def test_an_answer_that_was_begun_anew_stands_alone() -> None:
    first = "The lamp went out and the keeper slept until the morning came at last, it is said."
    other = first[:70] + " as they tell it."
    told = output_of((ASK, cut(first)), (ON, end(other)))
    assert told.text == other


def test_the_calls_of_a_repair_stand_for_the_cut_ones() -> None:
    told = output_of((ASK, cut("Saving. ", call(CUT))),
                     (REPAIR, reply(Stop.TOOL_CALL, "Again: ", call(GOOD), tokens=9)))
    assert told.whole
    taken = take(told, 0, None)
    assert taken is not None
    assert taken.parts == (TextPart("Saving. "), call(GOOD))
    again = take(told, 8, None, repair=True)
    assert again is not None
    assert again.parts == (call(GOOD),)


def test_a_call_that_never_came_whole_ends_what_is_known() -> None:
    told = output_of((ASK, cut("Saving. ", call(CUT))), (REPAIR, end("I cannot.")))
    assert (told.whole, told.after, told.has_calls) == (False, (8,), True)
    assert take(told, 0, 6) is None
    assert take(told, 0, 5) is not None


def test_thinking_of_a_continuation_is_left_out() -> None:
    told = output_of((ASK, cut(ReasoningPart("mm"), "One ")), (ON, end(ReasoningPart("go on"), "two.")))
    assert [type(stretch.part) for stretch in told.stretches] == [ReasoningPart, TextPart, TextPart]
    assert told.text == "One two."


def test_a_segment_without_text_is_replaced_by_the_next() -> None:
    told = output_of((ASK, cut(ReasoningPart("a long th"))), (ON, end(ReasoningPart("short"), "Yes.")))
    assert [stretch.part for stretch in told.stretches] == [ReasoningPart("short"), TextPart("Yes.")]
    assert told.after == (0, 4)


def test_what_no_budget_cut_goes_on_with_nothing() -> None:
    answers = tape((ASK, end("One.")), (ON, end("Two.")), (ON, cut("Three")), (ON, end(".")))
    assert [first_position(answers, position) for position in range(4)] == [0, 1, 2, 2]
    assert output_of((ASK, end("One.")), (ON, end("Two."))).text == "One."


def test_what_fits_what_is_cut_and_what_is_not_known() -> None:
    whole = output_of((ASK, end("abcdefghij", tokens=5)))
    cases = {0: "", 1: "ab", 4: "abcdefgh", 5: "abcdefghij", 9: "abcdefghij"}
    for budget, text in cases.items():
        taken = take(whole, 0, budget)
        assert taken is not None
        assert ("".join(p.text for p in taken.parts if isinstance(p, TextPart)), taken.ended) == (text, budget >= 5)
    rest = take(whole, 4, 2)
    assert rest is not None
    assert (rest.parts, rest.tokens) == ((TextPart("efgh"),), 2)
    partial = output_of((ASK, cut("abcdefghij", tokens=5)))
    at_the_cut = take(partial, 0, 5)
    assert at_the_cut is not None
    assert not at_the_cut.ended
    assert take(partial, 0, 6) is None
    assert take(partial, 8, 2) is None
    assert take(partial, 0, None) is None


def test_all_said_leaves_the_end() -> None:
    taken = take(output_of((ASK, end("abcdefghij", tokens=5))), 10, 1)
    assert taken is not None
    assert (taken.parts, taken.ended) == ((), True)


def test_a_block_that_is_not_cut_comes_with_the_text_before_it() -> None:
    block = OpaquePart("content.image", "{}")
    told = output_of((ASK, end("abcd", block, "efgh", tokens=4)))
    first, second = take(told, 0, 2), take(told, 4, 2)
    assert first is not None
    assert second is not None
    assert first.parts == (TextPart("abcd"), block)
    assert second.parts == (TextPart("efgh"),)

"""Where in a story a request stands: by the history alone, whoever wrote it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.provider.place import PlaceMark, StoryPlace, locate, reached_length, read_mark
from inspector.provider.reply import reply_at, stored_reply
from inspector.provider.scenarios import Intent, Kind, PlacedFault, Story
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.judge.arguments import parse
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.continuation import QUOTE_MARKS
from loop_core.turn.history import hint_message, nudge_message, repair_message
from loop_core.values import Message, ReasoningPart, Request, Role, TextPart, ToolCall, ToolResultPart
from loop_core.wire import decode, wire
from tests.scenes.cut_forms import CUT_FORMS
from tests.scenes.provider import CALLING, reply

TEXT = "One, two, three, four. One, two, three, four, five, and then the same once more: six, seven, eight, nine, ten."
CALL = ToolCall("c1", "count", '{"to": 10, "by": 1}')
SHORT = CALL._replace(arguments='{"to": 10}')
STORY = Story("count", "x", (Intent(text=TEXT), Intent("Hm.", "I count.", (CALL,)), Intent(text="Counted.")))


def user(text: str) -> Message:
    return Message(Role.USER, (TextPart(text),))


def assistant(text: str, *calls: ToolCall) -> Message:
    return Message(Role.ASSISTANT, (*((TextPart(text),) if text else ()), *calls))


def result(call: ToolCall = CALL, text: str = "done") -> Message:
    return Message(Role.TOOL, (ToolResultPart(call.id, call.name, text),))


def request_of(*messages: Message, **more: object) -> Request:
    return Request("openai_chat", messages, "m", **more)  # type: ignore[arg-type]


BEGIN = (user("Go."), assistant(TEXT), user("And now?"))
HELD = Verdict(CALL, Admission.HELD, "gate.reason", "cut")


@pytest.mark.parametrize(("messages", "answer", "at", "kind"), [
    ((user("Go."),), 0, 0, Kind.FIRST),
    ((Message(Role.SYSTEM, (TextPart("Be brief."),)), user("Go.")), 0, 0, Kind.FIRST),
    ((user("2+2?"), assistant("Four!"), user("Go.")), 0, 0, Kind.FIRST),
    ((user("Go."), assistant(TEXT[:30])), 0, 30, Kind.CONTINUATION),
    ((user("Go."), assistant(TEXT[:30]), user("weiter, bitte")), 0, 30, Kind.CONTINUATION),
    ((user("Go."), assistant(TEXT[:30]), hint_message()), 0, 30, Kind.CONTINUATION),
    ((user("Go."), assistant(TEXT[:30]), hint_message(), assistant(TEXT[30:50]), hint_message()), 0, 50,
     Kind.CONTINUATION),
    ((user("Go."), assistant(TEXT[:30]), hint_message(), assistant(TEXT[:50]), hint_message()), 0, 50,
     Kind.CONTINUATION),
    ((user("Go."), assistant(TEXT[:50]), hint_message(TEXT[10:50]), assistant(TEXT[10:70]), hint_message()), 0, 70,
     Kind.CONTINUATION),
    ((user("Go."), assistant(TEXT), hint_message()), 0, len(TEXT), Kind.CONTINUATION),
    ((user("Go."), assistant(TEXT), user("And now?")), 1, 0, Kind.FIRST),
    ((user("Go."), assistant(""), user("Well?")), 0, 0, Kind.CONTINUATION),
    ((user("Go."), assistant(" \n"), Message(Role.SYSTEM, (TextPart("Return text."),))), 0, 0, Kind.CONTINUATION),
    ((user("Go."), Message(Role.ASSISTANT, (ReasoningPart("Hm."),)), user("Well?")), 0, 0, Kind.CONTINUATION),
    ((user("Go."), assistant(""), assistant("Four!")), 0, 0, Kind.FIRST),
    ((*BEGIN, assistant("I count.", CALL), result()), 2, 0, Kind.FIRST),
    ((*BEGIN, assistant("", CALL), result()), 2, 0, Kind.FIRST),
    ((*BEGIN, assistant("I count."), repair_message([HELD])), 1, 8, Kind.REPAIR),
    ((*BEGIN, repair_message([HELD])), 1, 0, Kind.REPAIR),
    ((*BEGIN, assistant("I count."), user("Call it!")), 1, 8, Kind.CONTINUATION),
    ((*BEGIN, assistant("I count.", SHORT), result(text="refused")), 1, 8, Kind.CONTINUATION),
    ((*BEGIN, assistant("I count.", CALL._replace(arguments='{"to": 11}')), result()), 2, 0, Kind.FIRST),
    ((*BEGIN, assistant("I count.", CALL._replace(arguments='{"to": 11}')), result(text="Error: cut")), 1, 8,
     Kind.CONTINUATION),
    ((*BEGIN, assistant("I count.", CALL._replace(arguments='{"to": 11}')), result(text="an errand")), 2, 0,
     Kind.FIRST),
    ((*BEGIN, assistant("I count.", CALL), result(text="ValueError: no such file")), 2, 0, Kind.FIRST),
])
def test_a_history_tells_where_it_stands(messages: tuple[Message, ...], answer: int, at: int, kind: Kind) -> None:
    place = locate(STORY, request_of(*messages))
    assert (place.answer, place.text_length, place.kind) == (answer, at, kind)


@pytest.mark.parametrize("form", CUT_FORMS)
@pytest.mark.parametrize("api", CALLING)
def test_a_cut_call_that_was_answered_is_made_again_whole(api: str, form: str | None) -> None:
    """Whatever it was answered with: nothing whole was run, and the next answer would claim that it was."""
    for text in ("Error: the arguments were cut.", "done"):
        cut = CALL._replace(arguments=form)
        history = (*BEGIN, assistant("I count.", cut), result(cut, text))
        for more in ((), (user("Go on."),)):
            came = reply(STORY, Request(api, (*history, *more), "m"), False)
            assert came.place.answer == 1
            made = decode(api, b"".join(came.frames))
            assert [(call.name, parse(call.arguments).value) for call in made.tool_calls] == [
                ("count", {"to": 10, "by": 1})]
            assert not made.text


def test_of_two_calls_of_one_tool_the_one_that_was_cut_is_made_again() -> None:
    one, other = (ToolCall(f"c{i}", "write", f'{{"path": "{name}", "content": "x"}}')
                  for i, name in enumerate(("a.md", "a.md.bak")))
    story = Story("two", "x", (Intent(calls=(one, other)), Intent(text="Both are written.")))
    for whole, cut in ((one, other), (other, one)):
        half = cut._replace(arguments=(cut.arguments or "")[:-4])
        history = (user("Go."), assistant("", whole, half), result(whole), result(half, "Error"))
        came = reply(story, request_of(*history), False)
        made = decode("openai_chat", b"".join(came.frames))
        assert [call.arguments for call in made.tool_calls] == [cut.arguments]
        then = reply(story, request_of(*history, assistant("", cut), result(cut)), False)
        assert decode("openai_chat", b"".join(then.frames)).text == "Both are written."


def test_a_cut_call_of_a_stored_response_is_made_again() -> None:
    first = reply(STORY, Request("openai_responses", BEGIN, "m", max_tokens=6), False)
    response = decode("openai_responses", b"".join(first.frames))
    assert parse(response.tool_calls[0].arguments).value is None
    answered_so = Request("openai_responses", (result(response.tool_calls[0], "Error"),), "m", previous_id=response.id)
    made = decode("openai_responses", b"".join(reply(STORY, answered_so, False).frames))
    assert [call.arguments for call in made.tool_calls] == [CALL.arguments]


def test_a_forced_tool_after_an_answer_was_begun_is_a_repair_and_before_it_is_none() -> None:
    begun = (*BEGIN, assistant("I count."), user("Again."))
    assert locate(STORY, request_of(*begun, tool_choice="tool:count")).kind is Kind.REPAIR
    assert locate(STORY, request_of(*BEGIN, tool_choice="any")).kind is Kind.FIRST


def test_a_story_that_is_over_says_so() -> None:
    over = (*BEGIN, assistant("I count.", CALL), result(), assistant("Counted."), user("Thanks."))
    with pytest.raises(CallerError, match="the scenario count has 3 answers, and this asks for one more"):
        locate(STORY, request_of(*over))


def test_an_id_that_is_not_ours_is_refused() -> None:
    with pytest.raises(CallerError, match="no answer of this server is called 'resp_68af'"):
        locate(STORY, Request("openai_responses", (user("Go on."),), previous_id="resp_68af"))


@given(st.integers(0, len(TEXT)), st.integers(1, len(TEXT)), st.integers(0, 60))
def test_what_follows_or_repeats_what_was_said_is_found(at: int, size: int, again: int) -> None:
    """Any next piece, with any of what was said before it quoted first."""
    start = max(0, at - again)
    text = TEXT[start : at + size]
    found = reached_length(TEXT, at, text)
    if text:
        assert found == max(at, start + len(text)) or TEXT.count(text) > 1


@given(st.text(st.characters(codec="ascii", categories=["Lu"]), min_size=1, max_size=20))
def test_what_is_none_of_the_text_is_none(text: str) -> None:
    assert reached_length("one, two, three", 4, text) is None


@pytest.mark.parametrize("mark", [
    PlaceMark("count", StoryPlace()), PlaceMark("cut-call", StoryPlace(2, 117, 3), 40, 64, 2, 31),
])
def test_a_place_is_kept_in_an_id_and_in_a_token(mark: PlaceMark) -> None:
    for spelled in (f"resp_{mark.text}.5f3c9a1b", f"chatcmpl-{mark.text}.5f3c9a1b", mark.token):
        found = read_mark(spelled)
        assert found is not None, spelled
        assert found.place == mark.place
        assert (found.start, found.cap, found.calls, found.prompt) == (mark.start, mark.cap, mark.calls, mark.prompt)
    older = read_mark(f"resp_{mark.where}.5f3c9a1b")
    assert older is not None
    assert (older.place, older.calls, older.prompt) == (mark.place, mark.calls, 0)


@pytest.mark.parametrize("ident", ["", "resp_68af", "chatcmpl-123", "a.1.2.3", "Zm9v", "é", "a.1.2.3.4.5.6x"])
def test_ids_of_others_hold_no_place(ident: str) -> None:
    assert read_mark(ident) is None


def test_an_id_that_somebody_wrote_leads_nowhere_beyond_the_answer() -> None:
    """Of what is looked through for a place there is no more than the answer has."""
    mark = PlaceMark("count", StoryPlace(1, 999_999_999, 1), 999_999_999, 1, 999_999_999)
    place = locate(STORY, request_of(user("On."), previous_id=f"resp_{mark.text}.0"))
    assert (place.answer, place.text_length) == (2, 0), "all of the answer was said and called"
    unasked = locate(STORY, Request("gemini_generate", (user("On."),), "m", continuation_token=mark.token))
    assert (unasked.answer, unasked.text_length, unasked.whole_calls) == (1, len("I count."), (0,))
    assert stored_reply("openai_responses", STORY, mark, "x", None).place.text_length == len("I count.")


def test_previous_responses_lead_from_answer_to_answer() -> None:
    """Only what is new is sent; the id says the rest."""
    story = replace(STORY, answers=(*STORY.answers[:2], Intent(text="Counted.")))
    ident, texts, new = None, [], user("Go.")
    caps = (20, 40, None, None)
    for cap in caps:
        request = Request("openai_responses", (new,), "m", previous_id=ident, max_tokens=cap)
        came = reply(story, request, False)
        response = decode("openai_responses", b"".join(came.frames))
        texts.append((came.place.answer, response.text, len(response.tool_calls)))
        ident, new = response.id, result() if response.tool_calls else user("More.")
    assert texts == [(0, TEXT[:80], 0), (0, TEXT[80:], 0), (1, "I count.", 1), (2, "Counted.", 0)]


@pytest.mark.parametrize("kept", ["<think>\n{}\n</think>", "{}"])
def test_reasoning_that_a_client_keeps_as_text_is_an_empty_answer(kept: str) -> None:
    thought = "They want a number, and none is there; so nothing is said."
    story = Story("mute", "x", (Intent(thought, "Seven."),), faults=(PlacedFault("reasoning_only", segment=0),))
    again = request_of(user("Go."), assistant(kept.format(thought)), user("Well?"))
    first, then = (decode("openai_chat", b"".join(reply(story, request, False).frames))
                   for request in (request_of(user("Go.")), again))
    assert (first.text or "", then.text) == ("", "Seven.")


@pytest.mark.parametrize("api", FORMATS)
def test_an_answer_is_said_in_pieces_of_any_size_and_is_whole(api: str) -> None:
    """A prefill each time, as one message: the segments are counted by the cap."""
    for cap in (1, 2, 3, 7, 16):
        text, segments = "", []
        while len(text) < len(TEXT):
            history = (user("Go."), *((assistant(text),) if text else ()))
            request = Request(api, history, "m", max_tokens=cap, stream=True)
            if wire(api).history == "prompt":
                request = wire(api).read_request(wire(api).encode_request(request))
            came = reply(STORY, request, True)
            segments.append(came.segment)
            text += decode(api, b"".join(came.frames)).text or ""
        assert text == TEXT
        assert segments == list(range(-(-len(TEXT) // (cap * 4))))


def test_an_anchor_that_is_asked_for_is_quoted() -> None:
    came = reply(STORY, request_of(user("Go."), assistant(TEXT[:40]), hint_message(TEXT[:40])), False)
    assert decode("openai_chat", b"".join(came.frames)).text == TEXT


def test_faults_by_place() -> None:
    story = replace(STORY, faults=(PlacedFault("cut", 2, 0, 1), PlacedFault("cut", 3, when=Kind.REPAIR)))
    at = {
        (user("Go."),): (), (user("Go."), assistant(TEXT[:8]), hint_message()): ("cut",),
        (*BEGIN, assistant("I count."), repair_message([HELD])): ("cut",), BEGIN: (),
    }
    for messages, faults in at.items():
        assert reply(story, request_of(*messages), True).faults == faults


def test_the_same_request_gets_the_same_bytes_and_another_seed_other_ones() -> None:
    request = request_of(user("Go."))
    one, other = (reply_at(replace(STORY, seed=seed), request, StoryPlace(), True, None).frames for seed in (1, 2))
    assert one == reply_at(replace(STORY, seed=1), request, StoryPlace(), True, None).frames
    assert b"".join(one) != b"".join(other)
    assert decode("openai_chat", b"".join(one)).text == decode("openai_chat", b"".join(other)).text == TEXT


@pytest.mark.parametrize("api", [api for api in FORMATS if wire(api).history == "prompt"])
@pytest.mark.parametrize(("messages", "answer", "at", "kind"), [
    ((user("Go."),), 0, 0, Kind.FIRST),
    ((user("One question: go."),), 0, 0, Kind.FIRST),
    ((user("Go."), assistant(TEXT[:30])), 0, 30, Kind.CONTINUATION),
    ((user("Go."), assistant(TEXT[:30]), hint_message()), 0, 30, Kind.CONTINUATION),
    ((user("Go."), assistant(TEXT[:30]), hint_message(TEXT[10:30]), assistant(TEXT[30:50]), hint_message()), 0, 50,
     Kind.CONTINUATION),
    ((user("Go."), assistant(TEXT), user("And now?")), 1, 0, Kind.FIRST),
    ((user("Go."), assistant(TEXT[:4])), 0, 4, Kind.CONTINUATION),
    ((user("Go."), nudge_message("", True, QUOTE_MARKS[0])), 0, 0, Kind.CONTINUATION),
])
def test_the_turns_of_a_prompt_are_found_in_it(
    api: str, messages: tuple[Message, ...], answer: int, at: int, kind: Kind
) -> None:
    history = tuple(each._replace(role=Role.USER) if each.role is Role.SYSTEM else each for each in messages)
    body = wire(api).encode_request(Request(api, history, "m", max_tokens=9))
    place = locate(STORY, wire(api).read_request(body))
    assert (place.answer, place.text_length, place.kind) == (answer, at, kind)

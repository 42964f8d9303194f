"""Threading: which turn each exchange belongs to, and at which place, for histories as agents write them."""

import json
import random
import re
import sys
import time
import tracemalloc
from collections import Counter
from itertools import groupby

import pytest

from inspector.replay.case import open_case
from inspector.sessions import open_paths
from inspector.sessions.places import results_in
from inspector.sessions.thread import thread
from inspector.sessions.wordings import HINTS as HINT_ROWS
from inspector.sessions.wordings import RESULTS, cut_result, known_hint
from tests.scenes.bodies import (
    GEMINI,
    MESSAGES,
    RESPONSES,
    assistant,
    call,
    chat_body,
    chat_stream,
    entry,
    har,
    result,
    shape,
    user,
)
from tests.scenes.rows import each_row

CUT = "The report covers three regions. In the first, the queue was satur"
REST = "ated for nineteen minutes. In the second, nothing happened."


def thread_of(load, *entries):
    return shape(load(har(*entries)))


def link(loaded, entry_number):
    return next(
        link for turn in loaded.turns for link in turn.links if loaded.exchanges[link.index].entry == entry_number
    )


# -- turns ------------------------------------------------------------------------------------------------------------


def test_of_equal_answers_to_a_repeated_request_the_last_one_counts(load):
    """Qwen Code asks once more with a larger limit and may get the same cut call; its history has the call once."""
    cut = call("write", '{"path": "a.md", "text": "Satur', "call_9Kd72Lm4Xq")
    first = [user("write it")]
    found = load(har(
        entry(first, chat_body(None, "length", cut), max_tokens=8, started="2026-03-01T10:00:00Z"),
        entry(first, chat_body(None, "length", cut), max_tokens=64, started="2026-03-01T10:00:01Z"),
        entry([*first, assistant(None, cut), result("not JSON", cut["id"])], chat_body("Written."),
              started="2026-03-01T10:00:02Z"),
    )).turns
    assert [[each.index for each in turn.links] for turn in found] == [[0, 1, 2]]


@pytest.mark.parametrize(("name", "turns"), [("call_9Kd72Lm4Xq", 1), ("call_1", 3)])
def test_a_call_that_the_client_renamed_is_found_by_its_id(load, name, turns):
    """opencode sends a call that it cannot run back as `invalid`, with other arguments; `call_1` tells nothing."""
    cut = call("write", '{"path": "a.md", "text": "Satur', name)
    said = [call("invalid", '{"tool": "write", "error": "not JSON"}', f"{name}{number}") for number in ("", "b")]
    first = [user("write it")]
    second = [*first, assistant(None, said[0]), result("not JSON", said[0]["id"])]
    third = [*second, assistant(None, said[1]), result("not JSON", said[1]["id"])]
    loaded = load(har(
        entry(first, chat_body(None, "tool_calls", cut)),
        entry(second, chat_body(None, "tool_calls", {**cut, "id": said[1]["id"]})),
        entry(third, chat_body("Written.")),
    ))
    assert len(loaded.turns) == turns


def test_an_answer_is_found_though_the_client_left_out_a_call_that_it_could_not_read(load):
    """Haystack runs the call that it could read, and sends back that call alone."""
    whole = call("write", '{"path": "a.md"}', "call_9Kd72Lm4Xq")
    cut = call("write", '{"path": "b.md", "text": "Satur', "call_8Jc61Kl3Wp")
    first = [user("write both")]
    loaded = load(har(
        entry(first, chat_body(None, "tool_calls", whole, cut)),
        entry([*first, assistant(None, whole), result("written", whole["id"])], chat_body("Both are written.")),
    ))
    assert shape(loaded) == [[("write both", [(0, "request", 1), (1, "tool_result", 1)])]]


@each_row(("sent", "answer", "turns"), [
    ('{"path": "a.md"}', '{"path": "b.md", "text": "Satur', 1),
    ('{"path": "a.md"}', '{"path": "b.md"}', 2),
    ('{"path": "c.md"}', '{"path": "b.md", "text": "Satur', 2),
])
def test_a_call_before_the_cut_one_is_found_by_its_arguments_where_ids_tell_nothing(load, sent, answer, turns):
    """Claude Code runs the calls that came whole, and leaves out the one that was cut."""
    first = [user("write both")]
    loaded = load(har(
        entry(first, chat_body(None, "tool_calls", call("write", '{"path": "a.md"}', "0"), call("write", answer, "1"))),
        entry([*first, assistant(None, call("write", sent, "0")), result("written", "0")], chat_body("Done.")),
    ))
    assert len(loaded.turns) == turns


def test_an_answer_is_found_though_the_client_read_a_call_out_of_its_markup(load):
    """Google ADK takes the JSON out of the text, gives the call an id of its own, and runs it."""
    arguments = '{"path": "a.md", "text": "Saturated."}'
    leaked = f'I write.\n<tool_call>\n{{"name": "write", "arguments": {arguments}}}\n</tool_call>'
    own, first = call("write", arguments, "adk_tool_call_5f44011f85b2"), [user("write it")]
    other = call("write", arguments.replace("a.md", "b.md"), "adk_tool_call_5f44011f85b2")
    for sent, turns in ((own, 1), (other, 2)):
        assert len(load(har(
            entry(first, chat_body(leaked, "stop")),
            entry([*first, assistant("I write.\n<tool_call>\n\n</tool_call>", sent), result("ok", own["id"])],
                  chat_body("Written.")),
        )).turns) == turns


@pytest.mark.parametrize(("key", "turns"), [("call_8Jc61Kl3Wp", 1), ("call_2", 2)])
def test_an_answer_is_found_though_the_client_joined_it_with_the_one_before(load, key, turns):
    """Mastra joins the steps of a turn into one message; an id that tells nothing names no answer."""
    one, two = call("write", '{"path": "a.md"}', "call_9Kd72Lm4Xq"), call("write", '{"path": "b.md"}', key)
    first, results = [user("write both")], [result("ok", one["id"]), result("ok", two["id"])]
    assert len(load(har(
        entry(first, chat_body("The first.", "tool_calls", one)),
        entry([*first, assistant("The first.", one), results[0]], chat_body(None, "tool_calls", two)),
        entry([*first, assistant("The first.", one, two), *results], chat_body("Both are written.")),
    )).turns) == turns


NO_OUTPUT = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"


@pytest.mark.parametrize(("said", "parts"), [
    ("You previously returned an empty response with no text or thoughts. Please call a tool now.", [{"text": "go"}]),
    ("You previously generated thoughts but failed to provide a final user-facing response.", [{"text": "go"}]),
    ("You successfully executed a tool but returned an empty response. Please analyze the tool output.",
     [{"functionResponse": {"name": "look", "response": {"output": "a tree"}}}]),
])
def test_what_gemini_cli_adds_to_the_message_before_an_empty_answer(load, said, parts):
    called = [{"role": "user", "parts": [{"text": "look"}]},
              {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}]
    history = called if "functionResponse" in parts[0] else []
    empty, done = (json.dumps({"candidates": [{"content": {"role": "model", "parts": each}, "finishReason": "STOP"}]})
                   for each in ([], [{"text": "Done."}]))
    found = load(har(*(entry(None, body, url=GEMINI,
                             request={"contents": [*history, {"role": "user", "parts": sent}]})
                       for body, sent in ((empty, parts), (done, [*parts, {"text": f"\n[System: {said}]"}])))))
    assert [link.place.value for link in found.turns[0].links][1:] == ["nudge"]


@pytest.mark.parametrize(("said", "word", "content", "place"), [
    (NO_OUTPUT, "end_turn", [], "nudge"),
    ("Output token limit hit. Resume directly \u2014 no apology, no recap of what you were doing.", "max_tokens",
     [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}], "continuation"),
    ("Your response was cut off because it exceeded the output token limit. The cut fell inside a tool call, so that "
     "call did not run. " + "Split long content across several calls. " * 9, "max_tokens",
     [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}], "continuation"),
    ("The previous response failed to produce a valid tool call. Please retry the tool call now.", "tool_use",
     [{"type": "text", "text": "I do it."}], "repair"),
    ("The tests fail.", "end_turn", [], "request"),
])
def test_what_claude_code_adds_to_the_message_before_an_answer_that_it_leaves_out(load, said, word, content, place):
    reminder = {"type": "text", "text": "<system-reminder>\nThe date is the third.\n</system-reminder>"}
    typed = {"type": "text", "text": "go"}
    hint = {"type": "text", "text": f"<system-reminder>\n{said}\n</system-reminder>"}
    answer = {"type": "message", "id": "msg_1", "role": "assistant", "model": "claude-sonnet-4-5", "content": content,
              "stop_reason": word, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 9}}
    done = {**answer, "id": "msg_2", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
    loaded = load(har(
        entry([{"role": "user", "content": [reminder, typed]}], json.dumps(answer), url=MESSAGES, max_tokens=99),
        entry([{"role": "user", "content": [reminder, {**typed, "text": "go\n"}, hint]}], json.dumps(done),
              url=MESSAGES, max_tokens=99)))
    assert link(loaded, 1).place.value == place
    assert len(loaded.turns) == (2 if place == "request" else 1)


@pytest.mark.parametrize("sent", ["behind it", "in it, before the hint", "not at all"])
@pytest.mark.parametrize(("said", "word", "place"), [
    (NO_OUTPUT, "end_turn", "nudge"),
    ("Output token limit hit. Resume directly, no recap.", "max_tokens", "continuation"),
    ("The tests fail.", "end_turn", "request"),
])
def test_a_hint_is_found_though_a_system_message_follows_the_users(load, said, word, place, sent):
    """Claude Code 2.1.197 has its reminder in a system message; with a hint, it may be a text before that."""
    agents = "Agents: one that looks. Skills: two."
    system = {"role": "system", "content": agents}
    reminder = {"type": "text", "text": f"<system-reminder>\n{agents}\n</system-reminder>\n"}
    typed, hint = ({"type": "text", "text": text} for text in ("go", said))
    answer = {"type": "message", "id": "msg_1", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
              "stop_reason": word, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 9}}
    done = {**answer, "id": "msg_2", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
    again = [{"role": "user", "content": [typed, *([reminder] if "before" in sent else []), hint]}]
    again += [system] if sent == "behind it" else []
    loaded = load(har(
        entry([{"role": "user", "content": [typed]}, system], json.dumps(answer), url=MESSAGES, max_tokens=99),
        entry(again, json.dumps(done), url=MESSAGES, max_tokens=99)))
    assert link(loaded, 1).place.value == (place if sent != "not at all" else "request")
    assert len(loaded.turns) == (1 if link(loaded, 1).place.value != "request" else 2)


@pytest.mark.parametrize(("change", "place"), [
    ({"stream": False}, "retry"), ({}, "retry"), ({"temperature": 1}, "request"),
])
def test_a_request_that_is_sent_again_without_a_stream_is_a_retry(load, change, place):
    """Claude Code asks for a whole answer where it could not read the stream."""
    asked = {"model": "gpt-4o-mini", "messages": [user("go")], "stream": True,
             "stream_options": {"include_usage": True}}
    again = {name: value for name, value in {**asked, **change}.items() if change != {"stream": False} or (
        name != "stream_options")}
    loaded = load(har(
        entry(None, chat_body(""), request=asked, started="2026-03-01T10:00:00Z", time=1000),
        entry(None, chat_body("Done."), request=again, started="2026-03-01T10:00:05Z", time=1000)))
    assert link(loaded, 1).place.value == place


@each_row(("said", "title"), [
    ("The user's hook says: make the function pure, emit valid JSON.", None),
    ("Continue with the tasks; resume from where you left off.", None),
    (NO_OUTPUT, "go"),
])
def test_a_reminder_is_no_turn_and_apart_only_where_it_asks_again(load, said, title):
    """The first request of a recording: the words of the user name its turn."""
    reminder = f"<system-reminder>\n{said}\n</system-reminder>"
    asked = {"role": "user", "content": [{"type": "text", "text": text} for text in ("go", reminder)]}
    answer = {"type": "message", "id": "msg_1", "role": "assistant", "model": "claude-sonnet-4-5", "usage": {},
              "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn", "stop_sequence": None}
    loaded = load(har(entry([asked], json.dumps(answer), url=MESSAGES, max_tokens=99)))
    assert [turn.user_text for turn in loaded.turns] == [title or f"go{reminder}"]


@pytest.mark.parametrize(("sent", "turns"), [("b.md", 1), ("c.md", 2)])
@pytest.mark.parametrize("keys", [("call_9Kd72Lm4Xq", "call_8Jc61Kl3Wp"), ("call_1", "call_2")])
def test_an_answer_whose_calls_are_sent_back_one_by_one_is_found(load, keys, sent, turns):
    """ADK for JavaScript runs each call of a stream before the next one comes."""
    one, two = (call("write", json.dumps({"path": f"{name}.md"}), key) for name, key in zip("ab", keys, strict=True))
    back = call("write", json.dumps({"path": sent}), keys[1])
    first = [user("write both")]
    loaded = load(har(
        entry(first, chat_body("I write.", "tool_calls", one, two)),
        entry([*first, assistant("I write.", one), result("first", keys[0]), assistant(None, back),
               result("second", keys[1])], chat_body("Both are written.")),
    ))
    # an id that tells one call from all others names its answer, though the client changed the call
    assert len(loaded.turns) == (turns if keys[0] == "call_1" else 1)
    results = results_in(loaded.exchanges[1], loaded.exchanges[0].response.tool_calls)
    assert [part.text for part in results] == (["first", "second"] if turns == 1 else ["second"])
    assert [part.text for part in results_in(loaded.exchanges[1])] == ["second"]


def test_an_empty_answer_that_is_sent_back_as_it_was_is_a_retry(load):
    """Haystack asks again with every empty answer in the history."""
    first, silent = [user("write it")], assistant("")
    entries = [entry([*first, *[silent] * number], chat_body("" if number < 3 else "Written."),
                     started=f"2026-03-01T10:00:0{number}Z") for number in range(4)]
    again = entry([*first, silent, user("and the next?")], chat_body("Done."), started="2026-03-01T10:00:09Z")
    assert thread_of(load, *entries) == [[("write it", [(0, "request", 1), *((n, "retry", n) for n in (1, 2, 3))])]]
    assert len({turn.conversation for turn in load(har(entries[0], again)).turns}) == 1


def test_a_tool_result_stays_in_the_turn_and_a_new_user_message_opens_one(load):
    look = call(arguments='{"where": "here"}')
    first = [user("what is here?")]
    second = [*first, assistant(None, look), result("a tree")]
    third = [*second, assistant("A tree."), user("and there?")]
    assert thread_of(
        load,
        entry(first, chat_body(None, "tool_calls", look)),
        entry(second, chat_body("A tree.")),
        entry(third, chat_body("A bush.")),
    ) == [[("what is here?", [(0, "request", 1), (1, "tool_result", 1)]), ("and there?", [(2, "request", 1)])]]


def test_the_order_of_the_entries_changes_nothing(load):
    look, again = call(key="call_11111111aa"), call(key="call_22222222bb")
    first = [user("what is here?")]
    second = [*first, assistant(None, look), result("a tree", look["id"])]
    third = [*second, assistant(None, again), result("a bush", again["id"])]
    exchanges = [
        entry(first, chat_body(None, "tool_calls", look)),
        entry(second, chat_body(None, "tool_calls", again)),
        entry(third, chat_body("Both.")),
    ]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        loaded = load(har(*(exchanges[number] for number in order)))
        places = [
            (order[loaded.exchanges[each.index].entry], each.place.value, each.ordinal)
            for each in loaded.turns[0].links
        ]
        assert places == [(0, "request", 1), (1, "tool_result", 1), (2, "tool_result", 2)]


@each_row(
    "alter",
    [
        lambda message: {**message, "content": [{"type": "text", "text": message["content"]}]},
        lambda message: {
            **message,
            "content": [{"type": "text", "text": message["content"], "cache_control": {"type": "ephemeral"}}],
        },
        lambda message: {**message, "content": message["content"] + "  \n"},
        lambda message: {**message, "content": message["content"].replace(" ", "\r\n")},
    ],
)
def test_harmless_differences_do_not_part_a_conversation(load, alter):
    first = [user("tell me all")]
    second = [*map(alter, first), alter(assistant("All is well.")), user("more")]
    assert thread_of(load, entry(first, chat_body("All is well.")), entry(second, chat_body("No."))) == [
        [("tell me all", [(0, "request", 1)]), ("more", [(1, "request", 1)])]
    ]


def test_arguments_are_compared_as_values(load):
    asked = [user("look")]
    sent = call(arguments='{"b":1,"a":2}')
    repeated = call(arguments='{"a": 2, "b": 1}')
    loaded = thread_of(
        load,
        entry(asked, chat_body(None, "tool_calls", sent)),
        entry([*asked, assistant("", repeated), result("x")], chat_body("ok")),
    )
    assert [len(turns) for turns in loaded] == [1]


def test_dropped_ids_are_forgiven_and_other_ids_are_not(load):
    asked = [user("look")]
    sent = call(key="call_Zx9Yw8Vu7Ts6")
    for key, together in (("0", True), ("resp_1:call_Zx9Yw8Vu7Ts6", True), ("call_Aa1Bb2Cc3Dd4", False)):
        repeated = call(key=key)
        loaded = thread_of(
            load,
            entry(asked, chat_body(None, "tool_calls", sent)),
            entry([*asked, assistant(None, repeated), result("x", key)], chat_body("ok")),
        )
        assert (len(loaded) == 1) is together, key


def test_a_text_that_the_client_dropped_beside_its_call_is_forgiven(load):
    asked = [user("look")]
    for key in ("0", "call_Zx9Yw8Vu7Ts6"):
        sent = call(key=key)
        loaded = load(
            har(
                entry(asked, chat_body("I will look.", "tool_calls", sent)),
                entry([*asked, assistant(None, sent), result("x", key)], chat_body("ok")),
            )
        )
        assert len({turn.conversation for turn in loaded.turns}) == 1
        assert link(loaded, 1).why.endswith("the history repeats its request and its calls")


def test_a_history_that_was_edited_is_followed_by_the_id_of_its_call(load):
    sent = call(key="call_Zx9Yw8Vu7Ts6")
    edited = [user("(the beginning was summarised)"), assistant(None, sent), result("x", sent["id"])]
    loaded = load(har(entry([user("look")], chat_body(None, "tool_calls", sent)), entry(edited, chat_body("ok"))))
    assert shape(loaded) == [[("look", [(0, "request", 1), (1, "tool_result", 1)])]]
    assert "the history before was edited" in link(loaded, 1).why


def test_a_changed_system_message_does_not_part_a_conversation(load):
    first = [{"role": "system", "content": "It is ten."}, user("hi")]
    second = [{"role": "system", "content": "It is eleven."}, user("hi"), assistant("Hello."), user("bye")]
    assert len(thread_of(load, entry(first, chat_body("Hello.")), entry(second, chat_body("Bye.")))) == 1


def test_a_steering_message_after_tool_results_stays_in_the_turn(load):
    look = call()
    second = [user("look"), assistant(None, look), result("x"), user("be quick")]
    loaded = load(har(entry([user("look")], chat_body(None, "tool_calls", look)), entry(second, chat_body("ok"))))
    assert shape(loaded) == [[("look", [(0, "request", 1), (1, "tool_result", 1)])]]
    assert "with a user message" in link(loaded, 1).why


def test_exchanges_between_two_that_were_not_recorded_leave_a_gap_that_is_said(load):
    look, again = call(key="call_11111111aa"), call(key="call_22222222bb")
    start = [user("look")]
    middle = [*start, assistant(None, look), result("x", look["id"])]
    later = [*middle, assistant(None, again), result("y", again["id"])]
    loaded = load(har(entry(start, chat_body(None, "tool_calls", look)), entry(later, chat_body("done"))))
    assert shape(loaded) == [[("look", [(0, "request", 1), (1, "tool_result", 1)])]]
    assert "exchanges between the two were not recorded" in link(loaded, 1).why


def test_turns_whose_first_exchange_is_missing_are_joined_by_their_opening(load):
    start = [user("one")]
    look, again = call(key="call_11111111aa"), call(key="call_22222222bb")
    second = [*start, assistant("One."), user("two"), assistant(None, look), result("x", look["id"])]
    third = [*second, assistant(None, again), result("y", again["id"])]
    loaded = thread_of(
        load,
        entry(start, chat_body("One.")),
        entry(second, chat_body(None, "tool_calls", again)),
        entry(third, chat_body("Two.")),
    )
    assert loaded == [[("one", [(0, "request", 1)]), ("two", [(1, "tool_result", 1), (2, "tool_result", 2)])]]


def test_exchanges_without_a_request_are_turns_of_their_own(load):
    assert thread_of(load, entry(None, chat_body("a")), entry(None, chat_body("a"))) == [
        [("", [(0, "request", 1)])],
        [("", [(1, "request", 1)])],
    ]


def test_a_conversation_continues_over_a_body_that_was_not_recorded(load):
    first = [user("hi")]
    second = [*first, assistant("Hello."), user("bye")]
    loaded = load(har(entry(first, None, stream=True), entry(second, chat_body("Bye."))))
    assert shape(loaded) == [[("hi", [(0, "request", 1)]), ("bye", [(1, "request", 1)])]]
    assert "not recorded" in link(loaded, 1).why


# -- after a cut ------------------------------------------------------------------------------------------------------

HINTS = [
    "Continue exactly from where you left off. Do not repeat already-sent text.",
    "Your previous response was cut off because it reached the limit. Please go on.",
    "[System: your last message was truncated by the output length limit. Continue where you stopped.]",
    "[System: Your previous tool call (terminal) was too large and the stream timed out before it could be delivered.]",
    "Output token limit hit. Resume directly, no recap.",
    "Continue",
    "please continue…",
    "Keep going.",
    "Pick up from the exact point where you stopped.",
    "Your previous response reached the output token limit (finish_reason=length) before you produced a tool call.",
    "The previous assistant response was cut off. Output only new text.",
]


@each_row("hint", HINTS)
def test_a_known_hint_after_a_cut_is_a_continuation(load, hint):
    first = [user("write the report")]
    second = [*first, assistant(CUT), user(hint)]
    assert thread_of(load, entry(first, chat_body(CUT, "length")), entry(second, chat_body(REST))) == [
        [("write the report", [(0, "request", 1), (1, "continuation", 1)])]
    ]


@pytest.mark.parametrize(("cap", "places"), [(7, ["request", "continuation"]), (8, ["request", "request"]), (None, [
    "request", "request"])])
def test_a_spent_budget_is_a_cut_whatever_the_provider_says(load, cap, places):
    """The answers have 7 tokens; 7 of 7, and a text that stops behind a comma, are a cut."""
    first, more = [user("write the report")], {} if cap is None else {"max_tokens": cap}
    cut = "The report covers three regions. In the first,"
    second = [*first, assistant(cut), user("Continue")]
    loaded = load(har(entry(first, chat_body(cut, "stop"), **more), entry(second, chat_body(REST), **more)))
    assert [link(loaded, at).place.value for at in (0, 1)] == places


@each_row(
    "text",
    [
        "And what about the third region?",
        "Continue with the chapter on cats instead, please.",
        "Make it shorter.",
        "Please continue the discussion of budgets that we had on Monday.",
        "no",
        "My last message to Bob was cut. Why?",
        "My call with Bob was cut off. Send him another one.",
    ],
)
def test_any_other_user_message_after_a_cut_is_a_new_turn(load, text):
    first = [user("write the report")]
    second = [*first, assistant(CUT), user(text)]
    assert thread_of(load, entry(first, chat_body(CUT, "length")), entry(second, chat_body("ok"))) == [
        [("write the report", [(0, "request", 1)]), (text, [(1, "request", 1)])]
    ]


def test_a_message_that_repeats_the_cut_text_is_a_continuation(load):
    first = [user("write the report")]
    second = [*first, assistant(CUT), user(f"You had got to: «{CUT[-40:]}»")]
    loaded = load(har(entry(first, chat_body(CUT, "length")), entry(second, chat_body(REST))))
    assert link(loaded, 1).place.value == "continuation"
    assert "repeats the end of the cut text" in link(loaded, 1).why


def test_a_known_hint_after_a_clean_end_is_a_new_turn(load):
    first = [user("write the report")]
    second = [*first, assistant("Done."), user("Continue")]
    assert thread_of(load, entry(first, chat_body("Done.", "stop")), entry(second, chat_body("More."))) == [
        [("write the report", [(0, "request", 1)]), ("Continue", [(1, "request", 1)])]
    ]


def test_a_system_hint_after_a_cut_is_a_continuation(load):
    first = [user("write the report")]
    second = [*first, assistant(CUT), {"role": "system", "content": "Go on from the cut."}]
    loaded = thread_of(load, entry(first, chat_body(CUT, "length")), entry(second, chat_body(REST)))
    assert loaded == [[("write the report", [(0, "request", 1), (1, "continuation", 1)])]]


def test_prefills_are_continuations_one_after_the_other(load):
    first = [user("write the report")]
    second = [*first, assistant(CUT)]
    third = [*first, assistant(CUT + REST)]
    after = [*first, assistant(CUT + REST + " The end."), user("thanks")]
    assert thread_of(
        load,
        entry(first, chat_body(CUT, "length")),
        entry(second, chat_body(REST, "length")),
        entry(third, chat_body(" The end.")),
        entry(after, chat_body("Welcome.")),
    ) == [
        [
            ("write the report", [(0, "request", 1), (1, "continuation", 1), (2, "continuation", 2)]),
            ("thanks", [(3, "request", 1)]),
        ]
    ]


def test_segments_that_the_client_joined_with_their_overlap_removed_are_followed(load):
    first = [user("write the report")]
    hint = user("Continue exactly where you left off.")
    second = [*first, assistant(CUT), hint]
    tail = "was saturated for nineteen minutes, so that nothing else could be served at all that morn"
    third = [*first, assistant(CUT[:-9] + tail), hint]  # "was satur" stood twice and was removed once
    assert thread_of(
        load,
        entry(first, chat_body(CUT, "length")),
        entry(second, chat_body(tail, "length")),
        entry(third, chat_body("ing.")),
    ) == [[("write the report", [(0, "request", 1), (1, "continuation", 1), (2, "continuation", 2)])]]


def test_a_prefill_of_the_users_own_is_a_request(load):
    asked = [user("as JSON"), assistant("{")]
    assert thread_of(load, entry(asked, chat_body('"a": 1}'))) == [[("as JSON", [(0, "request", 1)])]]


def test_a_hint_where_the_cut_answer_was_left_out(load):
    first = [user("write the report")]
    second = [*first, user("Your previous response was cut off. Continue exactly where you left off.")]
    loaded = load(har(entry(first, chat_body("", "length")), entry(second, chat_body(REST))))
    assert shape(loaded) == [[("write the report", [(0, "request", 1), (1, "continuation", 1)])]]
    assert "left out" in link(loaded, 1).why


NO_CALL = "<system>No tool call detected in last message. Did you mean to finish?</system>"


@each_row(("nudge", "place"), [
    ({"role": "system", "content": "Please return text or call a tool."}, "nudge"),
    (user("<system>Please return text or call a tool.</system>"), "nudge"),
    (user(NO_CALL), "nudge"),
    (user("\nPlease proceed to the next step using your best judgement. If you are done, say so.\n"), "nudge"),
    (user("Please proceed to the next step using your best judgement of the prices."), "request"),
    (user("Continue"), "request"),
    (user("<system-reminder>Continue.</system-reminder>"), "nudge"),
    (user("Please call a tool or two, and a friend."), "request"),
])
@each_row(("empty", "word"), [(None, "stop"), ("", "stop"), (None, "tool_calls")])
def test_a_nudge_after_an_empty_answer_that_was_left_out(load, nudge, place, empty, word):
    first = [user("write the report")]
    loaded = load(har(entry(first, chat_body(empty, word)), entry([*first, nudge], chat_body("Here."))))
    assert [link(loaded, at).place.value for at in (0, 1)] == ["request", place]


def test_a_nudge_after_an_empty_answer_that_came_twice_is_in_the_same_turn(load):
    """Droid sends the request again, then leaves out both answers and adds a message."""
    first, nudge = [user("write the report")], user("<system-reminder>Continue.</system-reminder>")
    loaded = load(har(*(entry(first, chat_body("", "stop"), started=f"2026-03-01T10:00:0{at}Z") for at in range(2)),
                      entry([*first, nudge], chat_body("Here."), started="2026-03-01T10:00:02Z")))
    assert [(link(loaded, at).place.value, link(loaded, at).parent) for at in (0, 1, 2)] == [
        ("request", None), ("retry", 0), ("nudge", 1)]


@each_row(("said", "word", "place"), [
    ("Now make a function that reads JSON.", "tool_calls", "request"),
    ("Split it into smaller parts and write the tool.", "tool_calls", "request"),
    ("Your tool call was malformed and could not be parsed.", "tool_calls", "repair"),
    (NO_CALL, "tool_calls", "repair"),
    ("Your answer was cut off. Tell me about the cats.", "content_filter", "request"),
    ("Your response above was stopped by a safety classifier.", "content_filter", "nudge"),
])
def test_after_a_text_without_its_call_or_a_refusal_only_the_words_of_agents_go_on(load, said, word, place):
    first = [user("what is it?")]
    loaded = load(har(entry(first, chat_body("It is a relay.", word)),
                      entry([*first, assistant("It is a relay."), user(said)], chat_body("Here."))))
    assert [link(loaded, at).place.value for at in (0, 1)] == ["request", place]


@pytest.mark.parametrize("before", [
    [assistant(None, call("write", "{}", "call_9Kd72Lm4Xq")), result("ok", "call_9Kd72Lm4Xq")],
    [assistant("Done."), user("and now?")],
])
@pytest.mark.parametrize("quoted", [[], [user("<thinking>They want it.</thinking>")]])
def test_an_empty_answer_that_was_left_out_later_in_a_conversation(load, before, quoted):
    """The request goes on from the empty answer, and not a second time from the last answer that it repeats."""
    first, calls = [user("write it")], before[0].get("tool_calls", [])
    answer = chat_body(before[0]["content"], "tool_calls" if calls else "stop", *calls)
    second = [*first, *before]
    nudge = [*quoted, user("<system>Please return text or call a tool.</system>")]
    loaded = load(har(entry(first, answer), entry(second, chat_body("", "stop")),
                      entry([*second, *nudge], chat_body("", "stop")),
                      entry([*second, *nudge, *nudge], chat_body("Written."))))
    assert [(link(loaded, at).place.value, link(loaded, at).parent) for at in (2, 3)] == [("nudge", 1), ("nudge", 2)]
    other = load(har(entry(first, answer), entry(second, chat_body("", "stop")),
                     entry([*second, *nudge, user("No, read it.")], chat_body("Read."))))
    assert link(other, 2).place.value == "request", "somebody asked for something else after the nudge"
    other = load(har(entry(first, answer), entry(second, chat_body("", "stop")),
                     entry([*second, user("No, read it."), *nudge], chat_body("Read."))))
    assert link(other, 2).place.value == "request", "and before it, with an answer that was not recorded"


USED = {"toolUse": {"toolUseId": "tooluse_9Kd72Lm4Xq", "name": "write", "input": {}}}
TOOK = {"toolResult": {"toolUseId": "tooluse_9Kd72Lm4Xq", "content": [{"text": "ok"}]}}


@pytest.mark.parametrize(("before", "first"), [
    ([], {"text": "write it"}),
    ([{"role": "user", "content": [{"text": "write it"}]}, {"role": "assistant", "content": [USED]}], TOOK),
])
def test_a_nudge_that_is_part_of_the_message_whose_empty_answer_was_left_out(load, before, first):
    """The roles of Converse alternate, so a client adds the nudge to the question, or to the results."""
    def converse(*content, answer=""):
        body = {"output": {"message": {"role": "assistant", "content": [{"text": answer}] if answer else []}},
                "stopReason": "end_turn", "usage": {"inputTokens": 9, "outputTokens": 7, "totalTokens": 16}}
        return entry(None, json.dumps(body), url="https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse",
                     request={"messages": [*before, {"role": "user", "content": [*content]}]})

    nudge = {"text": "<system>Please return text or call a tool.</system>"}
    loaded = load(har(converse(first), converse(first, nudge), converse(first, nudge, nudge, answer="Ok.")))
    assert [(link(loaded, at).place.value, link(loaded, at).parent) for at in (1, 2)] == [("nudge", 0), ("nudge", 1)]
    other = load(har(converse(first), converse(first, {"text": "And that."}, answer="Ok.")))
    assert link(other, 1).parent is None


@pytest.mark.parametrize(("answer", "reason", "sent_back", "place"), [
    ("", "stop", "<think>\nThey want it written.\n</think>", "nudge"),
    (CUT, "length", f"<think>\nThey want it written.\n</think>\n{CUT}", "continuation"),
    ("", "stop", "<think>\nThey want it read.\n</think>", None),
    ("", "stop", "(no content)", "nudge"),
    ("Written.", "stop", "(no content)", None),
    (CUT, "length", f"<think>\nThey want it written.\n</think>\n{REST}", None),
])
def test_an_answer_sent_back_with_its_reasoning_or_as_a_placeholder_is_found(load, answer, reason, sent_back, place):
    first = [user("write it")]
    body = json.loads(chat_body(answer, reason))
    body["choices"][0]["message"]["reasoning_content"] = "They want it written."
    nudge = user("Continue" if reason == "length" else "<system>Please return text or call a tool.</system>")
    loaded = load(har(entry(first, json.dumps(body)),
                      entry([*first, assistant(sent_back), nudge], chat_body("Written."))))
    assert (link(loaded, 1).place.value, link(loaded, 1).parent) == ((place, 0) if place else ("request", None))


def test_a_nudge_after_a_whole_answer_begins_a_turn_of_its_conversation(load):
    """The first answer is judged by itself: a turn with both would hide how the second one ended."""
    first = [user("write the report")]
    for second in ([*first, user(NO_CALL)], [*first, assistant("Done."), user(NO_CALL)]):
        loaded = load(har(entry(first, chat_body("Done.")), entry(second, chat_body("More."))))
        assert (len(loaded.turns), link(loaded, 1).parent) == (2, 0)


@pytest.mark.parametrize("kept", [False, True])
def test_a_nudge_after_a_cut_call_asks_for_it_again(load, kept):
    """mini-swe-agent leaves the answer out, gptme sends the call back as a part of the text."""
    first = [user("write it")]
    cut = call("write", '{"path": "a.md", "text": "Satur', "call_9Kd72Lm4Xq")
    spelled = assistant('Now.\n@write(call_9Kd72Lm4Xq): {"path": "a.md", "text": "Satur')
    second = [*first, *([spelled] if kept else []), user(NO_CALL)]
    loaded = load(har(entry(first, chat_body("Now.", "length", cut)), entry(second, chat_body("Written."))))
    assert [link(loaded, at).place.value for at in (0, 1)] == ["request", "repair"]


@pytest.mark.parametrize(("text", "place"), [
    ("Observation:\nok", "tool_result"),
    ("Call id: call_9Kd72Lm4Xq\nError:\nError executing tool 'write'", "tool_result"),
    ("Error:\nError executing tool 'write' with arguments {\"path\": \"a: TypeError: write() missing", "tool_result"),
    ("Error:\nUnknown tool write, should be one of: final_answer.\nNow let's retry", "tool_result"),
    ("My observation: it is late.", "request"),
    ("Error: it is late.", "request"),
    ("Error: unknown tool chain 'gcc' in my build", "request"),
    ("Error: Error executing tool calls with the new server", "request"),
])
def test_a_result_that_smolagents_sends_back_as_a_text(load, text, place):
    first = [user("write it")]
    spelled = "Calling tools:\n[{'id': 'call_9Kd72Lm4Xq', 'type': 'function', 'function': {'name': 'write'}}]"
    second = [*first, assistant(spelled), user(text)]
    loaded = load(har(entry(first, chat_body(None, "tool_calls", call("write", "{}", "call_9Kd72Lm4Xq"))),
                      entry(second, chat_body("Written."))))
    assert (link(loaded, 1).place.value, link(loaded, 1).parent) == (place, 0)
    other = load(har(entry(first, chat_body(None, "tool_calls", call("write", "{}", "call_2Kd72Lm4Xq"))),
                     entry(second, chat_body("Written."))))
    assert link(other, 1).parent is None, "the text has the id of another call"


@each_row(
    ("text", "name"),
    [
        ("Resume from the exact point where you stopped", "continue_exactly"),
        ("Your last answer was cut short.", "previous_cut"),
        ("max_tokens reached", "limit_hit"),
        ("Resume now, without any preamble", "no_recap"),
        ("Do not restart the text from the beginning", "do_not_repeat"),
        ("Please continue your answer.", "bare_continue"),
        ('"Please continue."', "bare_continue"),  # as `opencode run` stores it
        ("The function arguments were malformed", "call_cut"),
        ("Re-issue that one call", "resend_call"),
        ("Break it into several smaller writes", "split_call"),
        (NO_CALL, "no_call_found"),
        ("Tool call error:\n\n<error>\nNo tool calls found in the response.", "no_call_found"),
        ("Error:\nError while parsing tool call from model output: no JSON blob.\nNow", "no_call_found"),
        ("Validation Error found:\nNo tool calls or function call found in response", "no_call_found"),
        ("Validation Error due to no tool invocation:\n1 validation error for list", "no_call_found"),
        ("Your last response did not include a function call or a message. Please use a tool to", "no_call_found"),
        ("Please return text or include your response in a tool call.", "answer_wanted"),
    ],
)
def test_each_hint_is_known_by_its_own_row(text, name):
    assert known_hint(text) == name


def known_rows(text: str) -> set[str]:
    return {hint.name for hint in HINT_ROWS if re.search(hint.pattern, " ".join(text.lower().split()))}


@each_row(
    ("text", "name"),
    [
        ("the output token limit was met", "cut_result"),
        ("This call was not executed", "not_run"),
        ("could not parse the arguments", "invalid_arguments"),
        ("InputValidationError: x", "invalid_arguments"),
    ],
)
def test_each_wording_of_a_result_is_known_by_its_own_row(text, name):
    assert cut_result(text) == name


def test_every_hint_names_where_it_was_met():
    assert all(row.source and row.name for row in (*HINT_ROWS, *RESULTS))
    assert len({row.name for row in HINT_ROWS}) == len(HINT_ROWS)


# -- after a cut call -------------------------------------------------------------------------------------------------

CUT_CALL = call("write_file", '{"path": "a.txt", "content": "hel', "call_0a1b2c3d4e")


@each_row(
    ("history", "place"),
    [
        (
            [
                assistant(None, {**CUT_CALL, "function": {"name": "write_file", "arguments": "{}"}}),
                result("Error: the arguments were truncated; re-issue the call.", "call_0a1b2c3d4e"),
            ],
            "repair",
        ),
        ([assistant(None, CUT_CALL), result("InputValidationError: content is missing", "call_0a1b2c3d4e")], "repair"),
        ([assistant(None, CUT_CALL), result("ok, 3 bytes written", "call_0a1b2c3d4e")], "tool_result"),
        # Python's words for these arguments, whose last string begins at character 29; then those for another text.
        ([assistant(None, CUT_CALL),
          result("Unterminated string starting at: line 1 column 30 (char 29)", "call_0a1b2c3d4e")], "repair"),
        ([assistant(None, CUT_CALL),
          result("Unterminated string starting at: line 1 column 31 (char 30)", "call_0a1b2c3d4e")], "tool_result"),
        ([user("Your tool call was truncated. Send it again in full.")], "repair"),
        (
            [
                assistant("I will write it."),
                user("The function arguments were cut off. Please re-send the complete call."),
            ],
            "repair",
        ),
    ],
)
def test_a_cut_call_is_repaired_or_was_run(load, history, place):
    first = [user("write it")]
    text = "I will write it." if history[0].get("content") == "I will write it." else None
    loaded = thread_of(
        load, entry(first, chat_body(text, "length", CUT_CALL)), entry([*first, *history], chat_body("ok"))
    )
    assert loaded == [[("write it", [(0, "request", 1), (1, place, 1)])]]


def test_a_masked_cut_counts_as_a_cut(load):
    first = [user("write it")]
    second = [*first, assistant(None, CUT_CALL), result("the call was truncated and not executed", "call_0a1b2c3d4e")]
    loaded = thread_of(load, entry(first, chat_body(None, "tool_calls", CUT_CALL)), entry(second, chat_body("ok")))
    assert loaded[0][0][1][1] == (1, "repair", 1)


def test_an_error_result_of_a_complete_call_is_no_repair(load):
    look = call()
    second = [user("look"), assistant(None, look), result("Error: invalid input, truncated file")]
    loaded = thread_of(
        load, entry([user("look")], chat_body(None, "tool_calls", look)), entry(second, chat_body("ok"))
    )
    assert loaded[0][0][1][1] == (1, "tool_result", 1)


# -- the same request again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ('{"error": {"message": "overloaded", "type": "server_error"}}', 503),
        (chat_stream("half an ans", None).replace("data: [DONE]\n\n", ""), 200),
    ],
)
def test_the_same_request_after_a_failure_is_a_retry(load, body, status):
    asked = [user("hi")]
    failed = entry(asked, body, status=status)
    assert thread_of(load, failed, failed, entry(asked, chat_body("hello"))) == [
        [("hi", [(0, "request", 1), (1, "retry", 1), (2, "retry", 2)])]
    ]


def test_the_same_request_after_an_answer_is_another_conversation(load):
    asked = [user("hi")]
    loaded = thread_of(load, entry(asked, chat_body("hello")), entry(asked, chat_body("hello again")))
    assert loaded == [[("hi", [(0, "request", 1)])], [("hi", [(1, "request", 1)])]]


@each_row(("body", "when", "place"), [
    (chat_body(""), ("2026-03-01T10:00:00Z", "2026-03-01T10:00:09Z"), "retry"),
    (chat_body("I look.", "tool_calls"), ("2026-03-01T10:00:00Z", "2026-03-01T10:00:09Z"), "retry"),
    (chat_body("I look."), ("2026-03-01T10:00:00Z", "2026-03-01T10:00:09Z"), "request"),
    (chat_body(None, "tool_calls", CUT_CALL), ("2026-03-01T10:00:00Z", "2026-03-01T10:00:09Z"), "repair"),
    (chat_body("half an ans", "length"), ("2026-03-01T10:00:00Z", "2026-03-01T10:00:09Z"), "request"),
    (chat_body("", "length"), ("2026-03-01T10:00:00Z", "2026-03-01T10:00:09Z"), "retry"),
    (chat_body("", "content_filter"), ("2026-03-01T10:00:00Z", "2026-03-01T10:00:09Z"), "retry"),
    (None, ("2026-03-01T10:00:00Z", "2026-03-01T10:00:09Z"), "request"),
    ('data: {"choices": [\n\n' + chat_stream("I look."), ("2026-03-01T10:00:00Z", "2026-03-01T10:00:09Z"), "retry"),
    (chat_stream("I look."), ("2026-03-01T10:00:00Z", "2026-03-01T10:00:09Z"), "request"),
    (chat_body(""), ("2026-03-01T10:00:00Z", "2026-03-01T10:00:01Z"), "request"),
    (chat_body(""), (None, None), "request"),
])
def test_the_same_request_after_the_end_of_an_empty_answer_or_a_cut_call_is_a_retry(load, body, when, place):
    """As agents send it. Before the end it is another agent's, without times it may be another sample."""
    first, again = (entry([user("hi")], each, started=started) for each, started in
                    zip((body, chat_body("hello")), when, strict=True))
    assert link(load(har({**first, "time": 5000}, again)), 1).place.value == place
    assert link(load(har({**first, "time": None}, again)), 1).place.value == "request", "its end is not known"


REFUSED_KEY = '{"error": {"message": "invalid api key", "type": "authentication_error"}}'


@each_row(("second", "when", "places"), [
    ({}, ("2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"), ["request", "retry"]),
    ({}, (None, None), ["request", "retry"]),
    ({"stream": True}, ("2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"), ["request", "request"]),
    ({}, ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), ["request", "request"]),
])
def test_what_was_refused_for_good_is_a_retry_only_as_the_same_request_later(load, second, when, places):
    """Another request with the same history, or one of which nobody knows when it was sent, is somebody else's."""
    ask = [user("hi")]
    loaded = load(har(entry(ask, REFUSED_KEY, status=401, started=when[0]),
                        entry(ask, chat_body("Hello."), started=when[1], **second)))
    assert [link(loaded, at).place.value for at in (0, 1)] == places


def test_the_same_request_to_another_model_is_no_retry(load):
    asked = [user("hi")]
    error = entry(asked, '{"error": {"message": "x"}}', status=500)
    assert (
        len(thread_of(load, error, entry(asked, chat_body("hello"), request={"model": "other", "messages": asked})))
        == 2
    )


@each_row(("first", "second", "turns"), [
    ("http://127.0.0.1:8000", "http://127.0.0.1:8080", 2), ("http://[::1]:8000", "http://[fd00::2]:8000", 2),
    ("http://[::1]:8000", "http://[::1]:8000", 1), ("https://u:p@a.example", "https://A.example", 1),
])
def test_the_same_request_to_another_server_is_no_retry(load, first, second, turns):
    asked, path = [user("hi")], "/v1/chat/completions"
    error = entry(asked, '{"error": {"message": "x"}}', status=500, url=first + path)
    assert len(thread_of(load, error, entry(asked, chat_body("hello"), url=second + path))) == turns


def test_an_entry_that_is_no_llm_traffic_is_named_by_its_whole_server(load):
    (skipped,) = load(har(entry([user("hi")], "{}", url="http://[::1]:9000/other"))).inputs[0].skipped
    assert skipped.why == "no LLM traffic: POST [::1]:9000/other"


def test_a_larger_cap_after_a_cut_call_is_a_repair_where_the_order_is_known(load):
    asked = [user("write it")]
    first = entry(asked, chat_body(None, "length", CUT_CALL), max_tokens=64, started="2026-03-01T10:00:00Z")
    second = entry(asked, chat_body(None, "tool_calls", call()), max_tokens=128, started="2026-03-01T10:00:05Z")
    assert thread_of(load, first, second) == [[("write it", [(0, "request", 1), (1, "repair", 1)])]]
    for each in (first, second):
        each["startedDateTime"] = "2026-01-01T00:00:00Z"
    assert len(thread_of(load, first, second)) == 2


def test_a_second_answer_to_the_same_results_is_a_branch(load):
    look = call()
    asked = [user("look")]
    answered = [*asked, assistant(None, look), result("x")]
    loaded = load(
        har(
            entry(asked, chat_body(None, "tool_calls", look)),
            entry(answered, chat_body("a")),
            entry(answered, chat_body("b")),
        )
    )
    assert shape(loaded) == [[("look", [(0, "request", 1), (1, "tool_result", 1)]), ("look", [(2, "tool_result", 1)])]]
    assert "a branch" in link(loaded, 2).why


# -- ambiguity --------------------------------------------------------------------------------------------------------


def test_parents_that_cannot_be_told_apart_are_shown_and_none_is_chosen(load):
    asked = [user("pick a number")]
    after = [*asked, assistant("Four."), user("why?")]
    loaded = load(
        har(entry(asked, chat_body("Four.")), entry(asked, chat_body("Four.")), entry(after, chat_body("Dice.")))
    )
    assert len({turn.conversation for turn in loaded.turns}) == 3
    third = link(loaded, 2)
    assert [loaded.exchanges[index].entry for index in third.ambiguous] == [0, 1]
    assert third.parent is None
    assert "2 exchanges could be its parent" in third.why


@pytest.fixture
def in_new_york(monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("times", [
    ("2026-03-01T10:00:00Z", "2026-03-01T10:00:05Z", "2026-03-01T10:00:10Z"),
    ("2026-03-01T10:00:00", "2026-03-01T10:00:05Z", "2026-03-01T10:00:10"),  # without a zone: UTC, not the reader's
    ("1772359200", "1772359205000", "1772359210"),  # seconds and milliseconds
])
def test_times_tell_parents_apart(load, in_new_york, times):
    asked = [user("pick a number")]
    after = [*asked, assistant("Four."), user("why?")]
    loaded = load(
        har(
            entry(asked, chat_body("Four."), started=times[0]),
            entry(after, chat_body("Dice."), started=times[1]),
            entry(asked, chat_body("Four."), started=times[2]),
        )
    )
    assert shape(loaded)[0] == [("pick a number", [(0, "request", 1)]), ("why?", [(1, "request", 1)])]


def test_the_ids_of_calls_tell_parents_apart_where_the_client_shortened_the_text(load):
    asked = [user("add 2 and 3")]
    own = call("add", key="functions.add:0")
    loaded = load(
        har(
            entry(asked, chat_body("I add them.", "tool_calls", own)),
            entry(asked, chat_body(None, "tool_calls", call("add", key="call_a"))),
            entry(asked, chat_body(None, "tool_calls", call("add", key="call_b"))),
            entry([*asked, assistant(" ", own), result("5", "functions.add:0")], chat_body("It is 5.")),
        )
    )
    found = link(loaded, 3)
    assert found.ambiguous == ()
    assert loaded.exchanges[found.parent].entry == 0


@pytest.mark.parametrize(("sent", "back"), [
    ("c2lnMg==", "c2lnMg=="),
    ("CiQB/+8" * 12, "CiQB_-8" * 12),  # another alphabet of base64
    ("CiQB/+8" * 12, "CiQB_-8" * 8 + "\u2026"),  # a recorder left out the end
])
def test_a_signature_tells_parents_apart(load, sent, back):
    asked = [{"role": "user", "parts": [{"text": "look"}]}]

    def gemini_call(signature):
        return {
            "role": "model",
            "parts": [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": signature}],
        }

    def answer(content):
        return json.dumps({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]})

    results = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"value": "tree"}}}]}
    loaded = load(
        har(
            entry(None, answer(gemini_call("c2lnMQ==")), url=GEMINI, request={"contents": asked}),
            entry(None, answer(gemini_call(sent)), url=GEMINI, request={"contents": asked}),
            entry(
                None,
                answer({"role": "model", "parts": [{"text": "ok"}]}),
                url=GEMINI,
                request={"contents": [*asked, gemini_call(back), results]},
            ),
        )
    )
    assert loaded.exchanges[link(loaded, 2).parent].entry == 1


def test_a_new_message_after_a_failure_stays_in_the_conversation(load):
    asked = [user("hi")]
    failed = entry(asked, '{"error": {"message": "x"}}', status=500)
    loaded = thread_of(load, failed, entry([*asked, user("are you there?")], chat_body("yes")))
    assert loaded == [[("hi", [(0, "request", 1)]), ("are you there?", [(1, "request", 1)])]]


def test_models_tell_parents_apart(load):
    asked = [user("pick a number")]
    after = [*asked, assistant("Four."), user("why?")]
    loaded = load(
        har(
            entry(asked, chat_body("Four."), request={"model": "a", "messages": asked}),
            entry(asked, chat_body("Four."), request={"model": "b", "messages": asked}),
            entry(after, chat_body("Dice."), request={"model": "b", "messages": after}),
        )
    )
    assert loaded.exchanges[link(loaded, 2).parent].entry == 1


# -- other formats ----------------------------------------------------------------------------------------------------


def claude(content, reason, key="msg_1"):
    return json.dumps(
        {
            "id": key,
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "output_tokens": 4},
        }
    )


def asks(url, **body):
    return {"url": url, "request": body}


def test_a_paused_answer_that_is_echoed_is_a_resume(load):
    content = [
        {"type": "text", "text": "Let me search."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    ]
    first = {"messages": [user("find x")], "model": "claude", "max_tokens": 9}
    second = {**first, "messages": [user("find x"), {"role": "assistant", "content": content}]}
    assert thread_of(
        load,
        entry(None, claude(content, "pause_turn"), **asks(MESSAGES, **first)),
        entry(None, claude([{"type": "text", "text": "Found."}], "end_turn"), **asks(MESSAGES, **second)),
    ) == [[("find x", [(0, "request", 1), (1, "resume", 1)])]]


def test_anthropic_tool_results_with_an_error_flag_after_a_cut_are_a_repair(load):
    content = [{"type": "tool_use", "id": "toolu_01AbCdEf23", "name": "w", "input": {"path": "a"}}]
    answer = [
        {"type": "tool_result", "tool_use_id": "toolu_01AbCdEf23", "is_error": True, "content": "content is missing"}
    ]
    first = {"messages": [user("write")], "model": "claude", "max_tokens": 9}
    second = {
        **first,
        "messages": [user("write"), {"role": "assistant", "content": content}, {"role": "user", "content": answer}],
    }
    assert thread_of(
        load,
        entry(None, claude(content, "max_tokens"), **asks(MESSAGES, **first)),
        entry(None, claude([{"type": "text", "text": "ok"}], "end_turn"), **asks(MESSAGES, **second)),
    ) == [[("write", [(0, "request", 1), (1, "repair", 1)])]]


def responses(key, output, status="completed", **more):
    return json.dumps({"id": key, "object": "response", "status": status, "model": "m", "output": output, **more})


def message_item(text):
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def thought_item(key, text="Let me see."):
    return {"type": "reasoning", "id": key, "summary": [{"type": "summary_text", "text": text}]}


@pytest.mark.parametrize(("status", "more", "added", "place"), [
    ("in_progress", {}, [], "retry"),
    ("failed", {"error": {"code": "server_error", "message": "busy"}}, [], "retry"),
    ("incomplete", {"incomplete_details": {"reason": "content_filter"}},
     [{"role": "developer", "content": "<content_filter_guidance>\nYour previous response was blocked."}], "nudge"),
])
def test_of_an_answer_that_broke_codex_sends_the_reasoning_alone(load, status, more, added, place):
    asked = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "go"}]

    def loaded(*sent):
        broken = responses("resp_a", [thought_item("rs_1"), message_item("I lo")], status, **more)
        return load(har(entry(None, broken, **asks(RESPONSES, model="m", input=asked)),
                        entry(None, responses("resp_b", [message_item("Done.")]),
                              **asks(RESPONSES, model="m", input=[*asked, *sent, *added]))))

    found = loaded(thought_item("rs_1"))
    assert [(link.place.value, link.parent) for link in found.turns[0].links] == [("request", None), (place, 0)]
    assert len(loaded(thought_item("rs_9", "Now another.")).turns) == 2, "the reasoning of another answer"


@pytest.mark.parametrize(("thought", "turns"), [("Let me see.", 1), ("Now another.", 2), ("", 2)])
def test_of_an_answer_cut_in_its_reasoning_qwen_code_sends_the_reasoning_alone(load, thought, turns):
    cut = json.loads(chat_body("", "length"))
    cut["choices"][0]["message"]["reasoning_content"] = "Let me see."
    sent = [user("go"), {"role": "assistant", "content": "", "reasoning_content": thought},
            user("Output token limit hit. Resume directly \u2014 no apology, no recap of what you were doing.")]
    found = load(har(entry([user("go")], json.dumps(cut), max_tokens=9), entry(sent, chat_body("Done."), max_tokens=9)))
    assert len(found.turns) == turns
    if turns == 1:
        assert link(found, 1).place.value == "continuation"


def test_an_answer_of_the_clients_own_in_a_chain_of_ids_is_no_answer_sent_again(load):
    cut = responses("resp_a", [message_item("Half")], "incomplete", incomplete_details={"reason": "max_output_tokens"})
    more = {"previous_response_id": "resp_a", "input": [{"role": "assistant", "content": "Sure."}]}
    found = load(har(entry(None, cut, **asks(RESPONSES, model="m", input="go")),
                     entry(None, responses("resp_b", [message_item("Done.")]), **asks(RESPONSES, model="m", **more))))
    assert [[each.place.value for each in turn.links] for turn in found.turns] == [["request"], ["request"]]


def test_a_chain_of_response_ids_is_a_conversation(load):
    called = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "look",
        "arguments": "{}",
        "status": "completed",
    }
    output = {"type": "function_call_output", "call_id": "call_1", "output": "a tree"}
    loaded = thread_of(
        load,
        entry(
            None,
            responses("resp_c", [message_item("Bye.")]),
            **asks(RESPONSES, model="m", input="bye", previous_response_id="resp_b"),
        ),
        entry(
            None,
            responses("resp_b", [message_item("A tree.")]),
            **asks(RESPONSES, model="m", input=[output], previous_response_id="resp_a"),
        ),
        entry(None, responses("resp_a", [called]), **asks(RESPONSES, model="m", input="look")),
    )
    assert loaded == [[("look", [(2, "request", 1), (1, "tool_result", 1)]), ("bye", [(0, "request", 1)])]]


def test_a_thread_of_messages_is_one_turn(load):
    """Anthropic's runner of tools sends the results alone, and the id of the message with the calls."""
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a tree"}
    first = {"messages": [user("look")], "model": "claude", "max_tokens": 9, "thread": {"type": "create"}}
    second = {**first, "messages": [{"role": "user", "content": [result]}],
              "thread": {"type": "continue", "previous_message_id": "msg_1"}}
    called = [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]
    said = [{"type": "text", "text": "A tree."}]
    assert thread_of(
        load, entry(None, claude(called, "tool_use"), **asks(MESSAGES, **first)),
        entry(None, claude(said, "end_turn", "msg_2"), **asks(MESSAGES, **second)),
    ) == [[("look", [(0, "request", 1), (1, "tool_result", 1)])]]


@each_row(("key", "turns"), [("call_9Kd72Lm4Xq", 1), ("call_2", 2)])
def test_results_without_an_answer_follow_the_only_answer_with_their_calls(load, key, turns):
    """The server keeps a `conversation`: its requests hold what is new. An id that tells nothing names no answer."""
    called = {"type": "function_call", "id": "fc_1", "call_id": key, "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": key, "output": "a tree"}
    first = asks(RESPONSES, model="m", input="look", instructions="Be brief.", conversation="conv_1")
    second = asks(RESPONSES, model="m", input=[output], conversation="conv_1")
    found = load(har(entry(None, responses("resp_b", [message_item("A tree.")]), **second),
                     entry(None, responses("resp_a", [called]), **first)))
    assert (len(found.turns), [link(found, 0).place.value, link(found, 0).parent]) == (
        turns, ["tool_result", 1 if turns == 1 else None])
    assert "it names" not in link(found, 0).why


def test_results_follow_neither_their_own_answer_nor_one_that_came_later(load):
    key = "call_9Kd72Lm4Xq"
    called = {"type": "function_call", "id": "fc_1", "call_id": key, "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": key, "output": "a tree"}
    first = asks(RESPONSES, model="m", input="look", conversation="conv_1")
    second = asks(RESPONSES, model="m", input=[output], conversation="conv_1")
    early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"
    again = load(har(entry(None, responses("resp_a", [called]), started=early, **first),
                     entry(None, responses("resp_b", [called]), started=late, **second)))
    assert [(link(again, at).place.value, link(again, at).parent) for at in (0, 1)] == [
        ("request", None), ("tool_result", 0)], "its own answer has the call again"
    before = load(har(entry(None, responses("resp_b", [message_item("A tree.")]), started=early, **second),
                      entry(None, responses("resp_a", [called]), started=late, **first)))
    assert [(link(before, at).place.value, link(before, at).parent) for at in (0, 1)] == [
        ("tool_result", None), ("request", 0)], "the same conversation, later"


def test_a_thread_of_messages_keeps_its_tools(load):
    """A whole body holds a cut call as an empty object: only the schema, which one request declares, refuses it."""
    def asked(sent, **more):
        return asks(MESSAGES, model="claude", max_tokens=9, messages=[user(sent)], **more)

    def called(number, **given):
        return claude([{"type": "tool_use", "id": f"toolu_{number}", "name": "look", "input": given}], "tool_use",
                      f"msg_{number}")

    look = {"name": "look", "input_schema": {"type": "object", "required": ["path"]}}
    more = [{"type": "continue", "previous_message_id": f"msg_{number}"} for number in (1, 2)]
    case = open_case(load(har(
        entry(None, called(1, path="a"), **asked("look", thread={"type": "create"}, tools=[look])),
        entry(None, called(2), **asked("ok", thread=more[0])), entry(None, called(3), **asked("ok", thread=more[1])),
    )))
    assert [verdict.admission.value for (verdict,) in case.verdicts] == ["ready", "rejected", "rejected"]


def test_an_id_that_was_not_recorded_is_a_conversation_of_its_own(load):
    asked = asks(RESPONSES, model="m", input="bye", previous_response_id="resp_gone")
    assert thread_of(load, entry(None, responses("resp_b", [message_item("Bye.")]), **asked)) == [
        [("bye", [(0, "request", 1)])]
    ]


def test_ids_that_name_one_another_end_nowhere(load):
    first = asks(RESPONSES, model="m", input="a", previous_response_id="resp_b")
    second = asks(RESPONSES, model="m", input="b", previous_response_id="resp_a")
    loaded = load(har(entry(None, responses("resp_a", [message_item("A")]), **first),
                      entry(None, responses("resp_b", [message_item("B")]), **second)))
    assert len(loaded.turns) == 2
    assert {link(loaded, at).why for at in (0, 1)} == {"it and other requests name each other's responses"}


def test_results_whose_calls_several_answers_with_one_id_have_follow_none(load):
    key = "call_9Kd72Lm4Xq"
    called = {"type": "function_call", "id": "fc_1", "call_id": key, "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": key, "output": "a tree"}
    one, other = (asks(RESPONSES, model="m", input=text, conversation="conv_1") for text in ("look", "look again"))
    last = asks(RESPONSES, model="m", input=[output], conversation="conv_1")
    found = load(har(entry(None, responses("resp_a", [called]), **one),
                     entry(None, responses("resp_a", [called]), **other),
                     entry(None, responses("resp_b", [message_item("A tree.")]), **last)))
    assert (link(found, 2).parent, link(found, 2).why) == (None, "2 exchanges have the calls of its results")


def test_a_background_response_that_is_polled_is_a_resume(load):
    asked = asks(RESPONSES, model="m", input="think", background=True)
    poll = entry(None, responses("resp_a", [message_item("Done.")]), url=RESPONSES + "/resp_a", method="GET")
    assert thread_of(load, entry(None, responses("resp_a", [], "queued"), **asked), poll) == [
        [("think", [(0, "request", 1), (1, "resume", 1)])]
    ]


@pytest.mark.parametrize(("status", "places"), [
    ("incomplete", ["request", "continuation", "request"]), ("in_progress", ["request", "retry", "request"])])
def test_a_request_follows_the_last_answer_of_its_conversation(load, status, places):
    """The server keeps the conversation, but not an answer that broke off, so that the client asks again."""
    def asked(second, text, answer, conversation="conv_1"):
        return entry(None, answer, started=f"2026-01-01T00:00:0{second}Z", **asks(
            RESPONSES, model="m", input=[user(text)], conversation=conversation))

    why = {"reason": "max_output_tokens"}
    cut = responses("resp_a", [message_item("The queue was")], status, incomplete_details=why)
    loaded = load(har(
        asked(1, "write it", cut), asked(2, "bye", responses("resp_x", [message_item("No.")]), "conv_2"),
        asked(3, "write it" if status == "in_progress" else "continue", responses("resp_b", [message_item(" full.")])),
        asked(4, "bye", responses("resp_c", [message_item("Bye.")])),
    ))
    links = [link for turn in loaded.turns for link in turn.links if link.index != 1]
    assert [link.place.value for link in links] == places
    assert [turn.conversation for turn in loaded.turns] == ["c1", "c1", "c2"]


@each_row(("url", "first", "second", "clock", "parent"), [
    (RESPONSES, "conv_1", "conv_1", "02", 0), (RESPONSES, "conv_1", {"id": "conv_1"}, "02", 0),
    (RESPONSES, "conv_1", "conv_1", "01", None), (RESPONSES, "", "", "02", None), (RESPONSES, {}, {}, "02", None),
    (None, "conv_1", "conv_1", "02", None)])
def test_only_an_id_of_a_kept_conversation_and_a_later_time_join_two_requests(load, url, first, second, clock, parent):
    """Other APIs keep no conversation, whatever a member of that name says; of equal times neither is the first."""
    def asked(second, text, name):
        started = f"2026-01-01T00:00:{second}Z"
        if url is None:
            return entry([user(text)], chat_body(text), started=started, conversation=name)
        answer = responses(f"resp_{text}", [message_item(text)])
        return entry(None, answer, started=started, **asks(url, model="m", conversation=name, input=text))

    found = load(har(asked("01", "look", first), asked(clock, "bye", second), asked("03", "so", "conv_2")))
    assert (link(found, 0).parent, link(found, 1).parent) == (None, parent)


@pytest.mark.parametrize("by_id", [True, False])
def test_a_request_after_a_polled_response_follows_what_was_fetched_last(load, by_id):
    """The response that was begun has the same id, and a call that is still incomplete."""
    def called(arguments, status):
        return {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": arguments,
                "status": status}

    asked = asks(RESPONSES, model="m", input=[user("look")], background=True)
    begun, *polls = (
        entry(None, responses("resp_a", [called(arguments, status)], status, background=True), **how)
        for arguments, status, how in (
            ('{"pa', "in_progress", asked), ('{"path"', "in_progress", {"url": RESPONSES + "/resp_a", "method": "GET"}),
            ('{"path": "a"}', "completed", {"url": RESPONSES + "/resp_a", "method": "GET"})))
    result = {"type": "function_call_output", "call_id": "call_1", "output": "a tree"}
    more = ({"previous_response_id": "resp_a", "input": [result]} if by_id else
            {"input": [user("look"), called('{"path": "a"}', "completed"), result]})
    last = entry(None, responses("resp_b", [message_item("A tree.")]), **asks(RESPONSES, model="m", **more))
    assert thread_of(load, begun, *polls, last) == [
        [("look", [(0, "request", 1), (1, "resume", 1), (2, "resume", 2), (3, "tool_result", 1)])]]


def test_a_continuation_token_is_a_resume(load):
    def answer(text, reason, **more):
        return json.dumps(
            {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": [{"text": text}]},
                        "finishReason": reason,
                        "index": 0,
                        **more,
                    }
                ],
                "modelVersion": "g",
                "responseId": "r",
            }
        )

    asked = {"contents": [{"role": "user", "parts": [{"text": "go"}]}]}
    first = json.loads(answer("a", "CONTINUATION"))
    first["continuationToken"] = "dG9rZW4="
    first["candidates"][0]["continuationToken"] = "dG9rZW4="
    loaded = thread_of(
        load,
        entry(None, json.dumps(first), **asks(GEMINI, **asked)),
        entry(None, answer("b", "STOP"), **asks(GEMINI, **asked, continuationToken="dG9rZW4=")),
    )
    assert loaded == [[("go", [(0, "request", 1), (1, "resume", 1)])]]


@pytest.mark.parametrize("halves", [2, 3])
def test_calls_of_both_halves_of_a_resumed_answer_are_one_message_of_the_next_request(load, halves):
    """Google's client joins the parts of all halves, and sends one result for each call."""
    def part(number):
        return {"functionCall": {"name": "look", "args": {"path": f"{number}"}}}

    def half(number, **more):
        end = "STOP" if number == halves - 1 else "CONTINUATION"
        token = {} if end == "STOP" else {"continuationToken": f"t{number}"}
        candidate = {"content": {"role": "model", "parts": [part(number)]}, "finishReason": end, "index": 0, **token}
        return entry(None, json.dumps({"candidates": [candidate]}), **asks(GEMINI, contents=go, **more))

    go = [{"role": "user", "parts": [{"text": "go"}]}]
    resumed = [half(number, continuationToken=f"t{number - 1}") for number in range(1, halves)]
    results = [{"functionResponse": {"name": "look", "response": {"result": "ok"}}}] * halves
    done = {"content": {"parts": [{"text": "Done."}]}, "finishReason": "STOP"}
    last = entry(None, json.dumps({"candidates": [done]}), **asks(GEMINI, contents=[
        *go, {"role": "model", "parts": [part(each) for each in range(halves)]}, {"role": "user", "parts": results}]))
    middle = [(each, "resume", each) for each in range(1, halves)]
    assert thread_of(load, half(0), *resumed, last) == [
        [("go", [(0, "request", 1), *middle, (halves, "tool_result", 1)])]]


@pytest.mark.parametrize("sent", [["Half of "], ["the rest."], ["Half of ", "the rest."], ["Half of the rest."]])
def test_a_client_may_send_back_each_half_of_a_resumed_answer_or_both(load, sent):
    go = [{"role": "user", "parts": [{"text": "go"}]}]
    first, rest = ({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": end, **token}]}
                   for text, end, token in (("Half of ", "CONTINUATION", {"continuationToken": "t"}),
                                            ("the rest.", "STOP", {})))
    back = [{"role": "model", "parts": [{"text": text}]} for text in sent]
    contents = [*go, *back, {"role": "user", "parts": [{"text": "And?"}]}]
    loaded = load(har(entry(None, json.dumps(first), **asks(GEMINI, contents=go)),
                      entry(None, json.dumps(rest), **asks(GEMINI, contents=go, continuationToken="t")),
                      entry(None, json.dumps(rest), **asks(GEMINI, contents=contents))))
    assert [link.parent for link in loaded.turns[-1].links] == [0 if sent == ["Half of "] else 1]


def test_a_resumption_that_failed_and_came_again_is_a_retry(load):
    go = [{"role": "user", "parts": [{"text": "go"}]}]
    first, rest = ({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": end, **token}]}
                   for text, end, token in (("Half of ", "CONTINUATION", {"continuationToken": "t"}),
                                            ("the rest.", "STOP", {})))
    failed = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    resumed = asks(GEMINI, contents=go, continuationToken="t")
    assert thread_of(
        load, entry(None, json.dumps(first), **asks(GEMINI, contents=go)),
        entry(None, json.dumps(failed), status=503, **resumed), entry(None, json.dumps(rest), **resumed),
    ) == [[("go", [(0, "request", 1), (1, "resume", 1), (2, "retry", 1)])]]


def test_many_resumptions_of_one_answer_take_memory_in_proportion(load):
    go = [{"role": "user", "parts": [{"text": "go"}]}]
    halves = [{"content": {"parts": [{"text": str(number) * 2_000}]}, "finishReason": "CONTINUATION",
               "continuationToken": f"t{number}"} for number in range(200)]
    entries = [entry(None, json.dumps({"candidates": [half]}), **asks(
        GEMINI, contents=go, **({"continuationToken": f"t{number - 1}"} if number else {})))
        for number, half in enumerate(halves)]
    content = har(*entries)
    tracemalloc.start()
    loaded = load(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(turn.links) for turn in loaded.turns] == [200]
    assert peak < 50e6  # above 100 MB if each half holds the text of all before it


# -- many -------------------------------------------------------------------------------------------------------------


def conversation(name, turns):
    history, entries = [], []
    for number in range(turns):
        history.append(user(f"{name} asks {number}"))
        look = call(key=f"call_{name}{number:08d}")
        entries.append(entry(list(history), chat_body(None, "tool_calls", look)))
        history += [assistant(None, look), result(f"{name} sees {number}", look["id"])]
        entries.append(entry(list(history), chat_body(f"{name} says {number}")))
        history.append(assistant(f"{name} says {number}"))
    return entries


def plain(loaded, key):
    return sorted(
        [
            [
                (turn.user_text, [(key(loaded.exchanges[each.index]), each.place, each.ordinal) for each in turn.links])
                for turn in turns
            ]
            for _, turns in groupby(loaded.turns, key=lambda turn: turn.conversation)
        ]
    )


def test_interleaving_changes_nothing(load):
    apart = [conversation("ann", 3), conversation("bob", 4), conversation("cyd", 1)]
    separate = [
        plain(load(har(*each)), lambda exchange: exchange.response.text or exchange.request.messages[-1].text)
        for each in apart
    ]
    expected = sorted(turns for each in separate for turns in each)
    for seed in range(5):
        queues = [list(each) for each in apart]
        mixed = []
        while any(queues):
            mixed.append(random.Random(seed * 100 + len(mixed)).choice([queue for queue in queues if queue]).pop(0))
        assert (
            plain(load(har(*mixed)), lambda exchange: exchange.response.text or exchange.request.messages[-1].text)
            == expected
        )


def test_ids_are_unique_over_files(tmp_path):
    paths = []
    for name in "ab":
        path = tmp_path / f"{name}.har"
        path.write_text(har(*conversation(name, 2)))
        paths.append(str(path))
    loaded = open_paths(paths)
    assert [*dict.fromkeys(turn.conversation for turn in loaded.turns)] == ["c1", "c2"]
    assert [turn.id for turn in loaded.turns] == ["t1", "t2", "t3", "t4"]
    assert {turn.conversation for turn in loaded.turns} == {"c1", "c2"}


def test_threading_grows_with_the_size_of_the_histories(load):
    """Four times the turns are sixteen times the histories: the work may grow by no more, counted in calls."""

    def work(turns):
        loaded = load(har(*conversation("x", turns)))
        calls = Counter()
        sys.setprofile(lambda frame, event, argument: calls.update([event]))
        try:
            thread(loaded.exchanges, [range(len(loaded.exchanges))])
        finally:
            sys.setprofile(None)
        return calls["call"]

    assert work(40) < 16 * work(10)


def test_many_equal_requests_cost_no_more_than_others(load):
    def work(count):
        asked = [user("again")]
        loaded = load(har(*[entry(asked, chat_body(f"answer {number}")) for number in range(count)]))
        calls = Counter()
        sys.setprofile(lambda frame, event, argument: calls.update([event]))
        try:
            thread(loaded.exchanges, [range(count)])
        finally:
            sys.setprofile(None)
        return calls["call"]

    assert work(400) < 4.2 * work(100)


# -- histories that are one text --------------------------------------------------------------------------------------


def completion(text: str, word: str) -> str:
    return json.dumps({"object": "text_completion", "choices": [{"text": text, "index": 0, "finish_reason": word}]})


def generation(text: str, word: str) -> str:
    return json.dumps({"model": "m", "response": text, "done": True, "done_reason": word})


def text_completion(text: str, word: str) -> str:
    word = {"stop": "stop_sequence", "length": "max_tokens"}[word]
    return json.dumps({"type": "completion", "id": text, "completion": text, "stop_reason": word})


TEXT_FORMATS = pytest.mark.parametrize(("url", "body"), [
    ("https://api.openai.com/v1/completions", completion), ("http://127.0.0.1:11434/api/generate", generation),
    ("https://api.anthropic.com/v1/complete", text_completion)])


def prompt_thread(load, url, *exchanges):
    return thread_of(load, *(entry(None, body, url=url, request={"model": "m", "prompt": prompt, "stream": False})
                             for prompt, body in exchanges))


@TEXT_FORMATS
@pytest.mark.parametrize("between", ["", "\n\n"])
def test_a_prompt_that_ends_with_its_answer_continues_it(load, url, body, between):
    """Each was a turn of its own: the answer counted as cut though the next request had the rest of it."""
    assert prompt_thread(
        load, url, ("Tell me.", body(CUT, "length")), (f"Tell me.{between}{CUT}", body("ated.", "stop")),
    ) == [[("Tell me.", [(0, "request", 1), (1, "continuation", 1)])]]


@TEXT_FORMATS
def test_what_a_prompt_adds_behind_an_answer_is_the_next_message(load, url, body):
    first, second = "User: go\nBot:", "\nUser: and then?\nBot:"
    assert prompt_thread(
        load, url, (first, body(" Done.", "stop")), (f"{first} Done.{second}", body(" Nothing.", "stop")),
        (f"{first} Done.{second} Nothing.{second}", body(" Still nothing.", "stop")),
    ) == [[(first, [(0, "request", 1)]), (second.strip(), [(1, "request", 1)]), (second.strip(), [(2, "request", 1)])]]


@TEXT_FORMATS
def test_prompts_that_only_begin_alike_are_conversations_of_their_own(load, url, body):
    found = prompt_thread(load, url, ("Tell me.", body("One.", "stop")), ("Tell me. One", body("Two.", "stop")),
                          ("Tell me. Two.", body("Three.", "stop")), ("Tell me.", body("", "stop")))
    assert [len(conversation) for conversation in found] == [1, 1, 1, 1]


@TEXT_FORMATS
def test_a_short_cut_answer_may_be_the_beginning_of_another_prompt_by_chance(load, url, body):
    """`CUT, COMPLETED` or an answer that was lost: of a cut answer of one letter any other prompt seemed the rest."""
    found = prompt_thread(load, url, ("Write", body(" a", "length")), ("Write about dogs.", body("Dogs.", "stop")))
    assert len(found) == 2


def test_of_several_prompts_and_of_none_nothing_is_continued(load):
    """The first answer was taken for that of the last prompt; any prompt continued an answer to none."""
    url, text = "https://api.openai.com/v1/completions", "It is a long story"
    assert len(prompt_thread(load, url, (["Once.", "Twice."], completion(text, "stop")),
                             ("Twice." + text, completion("x", "stop")), ("", completion(text, "stop")),
                             (text + ", she said.", completion("y", "stop")), (None, completion("z", "stop")))) == 5


def test_a_prompt_beside_another_image_continues_nothing(load):
    url, first = "http://127.0.0.1:11434/api/generate", "What is this?"
    found = thread_of(load, *(entry(None, generation(text, word), url=url, request={
        "model": "m", "prompt": prompt, "images": [image]}) for prompt, image, text, word in (
            (first, "YQ==", CUT, "length"), (first + CUT, "Yg==", "ated.", "stop"))))
    assert len(found) == 2


@pytest.mark.parametrize(("end", "turns"), [("reset", 1), ("timeout", 1), ("eof", 2), ("aborted", 2)])
def test_a_request_that_is_sent_again_after_a_broken_connection_is_a_retry(load, end, turns):
    """Continue CLI asks again although the stop reason had come; without a break it may be another sample."""
    rows = [{"loop_inspector_session": 1}]
    for number in (0, 1):
        key = f"r{number}"
        rows += [
            {"type": "request", "id": key, "api": "openai_chat", "at": f"2026-03-01T10:00:0{number}Z",
             "url": "http://localhost/v1/chat/completions",
             "body": {"model": "m", "messages": [user("write it")]}},
            {"type": "response", "request": key, "status": 200},
            {"type": "bytes", "request": key, "ms": 200, "text": chat_body("Written.")},
            {"type": "end", "request": key, "ms": 300, "end": end if number == 0 else "eof"},
        ]
    assert len(load("\n".join(map(json.dumps, rows))).turns) == turns

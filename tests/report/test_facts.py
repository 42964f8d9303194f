"""The view model: every response and turn with what is said about it, in the order of the recording."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inspector.replay import Settings, replay
from inspector.replay.case import open_case
from inspector.report.facts import NEXT_ACTS, view
from inspector.sessions import open_paths
from inspector.sessions.recording import TurnPlace
from loop_core.judge.gate import Admission
from loop_core.turn.state import State
from tests.scenes.recordings import (
    ASKS,
    MESSAGES,
    PARTS,
    RESPONSES,
    TOOLS,
    WHOLE,
    assistant,
    call,
    chat,
    cut_call_ran,
    cut_text,
    exchange,
    lines,
    message,
    pair_of,
    repair_turn,
    result,
    show,
    user,
)


def test_the_segments_of_an_answer_are_counted_from_one():
    found = show(*cut_text(*PARTS[:3]))
    assert [facts.segment for facts in found.responses] == [1, 2, 3]
    assert found.turns[0].joined_text.text == "".join(PARTS[:3])
    assert [seam.at for seam in found.turns[0].joined_text.seams] == [len(PARTS[0]), len(PARTS[0] + PARTS[1])]


def test_a_run_of_tools_begins_a_new_answer():
    found = show(*repair_turn())
    assert [facts.segment for facts in found.responses] == [1, 2, 1]
    assert found.turns[0].joined_text.text == "It is written."


def test_what_the_machine_decides_and_what_the_agent_did_stand_side_by_side():
    found = show(*repair_turn())
    assert [facts.state for facts in found.responses] == [State.REPAIR_PENDING, State.EXECUTE_TOOLS, State.COMPLETE]
    assert [facts.recorded_next for facts in found.responses] == [
        "asked for the call again",
        "answered the calls",
        "the recording ends",
    ]
    assert [[v.admission for v in facts.verdicts] for facts in found.responses] == [
        [Admission.HELD],
        [Admission.READY],
        [],
    ]


def test_every_way_to_go_on_has_its_words():
    paused = [{"type": "text", "text": "Searching."}]
    opening = [user("search")]
    found = show(
        pair_of(opening, message(paused, "pause_turn"), url=MESSAGES, max_tokens=90),
        pair_of(
            [*opening, {"role": "assistant", "content": paused}],
            message(paused, "end_turn"),
            url=MESSAGES,
            max_tokens=90,
        ),
        pair_of(
            [user("again")],
            {"type": "error", "error": {"type": "overloaded_error", "message": "no"}},
            url=MESSAGES,
            status=529,
            max_tokens=90,
        ),
        pair_of([user("again")], message(paused, "end_turn"), url=MESSAGES, max_tokens=90),
    )
    assert [facts.recorded_next for facts in found.responses] == [
        "resumed it",
        "the recording ends",
        "sent the request again",
        "the recording ends",
    ]
    assert show(*cut_text(*PARTS[:2])).responses[0].recorded_next == "asked to continue"
    assert set(NEXT_ACTS) == set(TurnPlace)


def test_a_whole_body_without_a_reason_is_no_stream():
    body = {"object": "response", "status": "incomplete", "incomplete_details": None, "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One, two"}]},
        {"type": "function_call", "name": "a", "call_id": "c", "arguments": "{}"}]}
    (turn,) = (found := show(exchange({"model": "gpt-5", "input": "hi"}, body, url=RESPONSES))).turns
    said = f"{turn.final_turn.notice} {turn.verdict.sentence} {found.responses[0].verdicts[0].why}"
    assert "ended without a stop reason" in said
    assert "stream" not in said


@pytest.mark.parametrize(("sent", "agent"), [
    ("claude-cli/2.1.7 (external, cli)", "claude-cli"), ("opencode/local ai-sdk/provider-utils", "opencode"),
    ("my-agent/1.2 AsyncOpenAI/Python 2.14.0", "my-agent"), ("AsyncOpenAI/Python 2.14.0", "OpenAI SDK"),
    ("Anthropic/JS 0.71.2", "Anthropic SDK"), ("OpenAI/Go 2.7.1", "OpenAI SDK"), ("OpenAI/Java 4.8.0", "OpenAI SDK"),
    ("Anthropic/Ruby 1.16.0", "Anthropic SDK"), ("", ""),
])
def test_an_sdk_that_is_all_that_a_request_names_is_not_called_like_the_provider(sent: str, agent: str) -> None:
    found = show(exchange({"model": "m", "messages": ASKS}, chat("All."), headers={"User-Agent": sent}))
    assert [facts.agent for facts in found.responses] == [agent]


def test_a_turn_that_is_followed_by_another_says_so():
    found = show(pair_of(ASKS, chat("Done.")), pair_of([*ASKS, assistant("Done."), user("And more?")], chat("No.")))
    assert [facts.recorded_next for facts in found.responses] == ["went on to a new turn", "the recording ends"]
    assert len({turn.conversation for turn in found.turns}) == 1


def test_a_response_that_our_machine_never_reached_is_looked_at_all_the_same():
    found = show(*cut_text(*PARTS))
    assert found.turns[0].final_state is State.ABORT_PARTIAL
    assert found.turns[0].run.runs == 2
    assert [facts.index for facts in found.responses] == [0, 1, 2, 3, 4]
    assert found.responses[4].state is State.COMPLETE
    for facts in found.responses:
        assert found.steps[facts.step].response == facts.index
        assert found.steps[facts.step].state is State.EVALUATE_STOP


def test_what_was_decided_is_the_first_run_not_the_last():
    found = show(*cut_call_ran())
    (turn,) = found.turns
    assert (turn.final_state, turn.terminal) == (State.UNRECORDED, "unrecorded")
    assert found.steps[turn.run.deciding_step].state is State.UNRECORDED
    assert turn.run.end > turn.run.deciding_step + 1


def test_every_step_belongs_to_the_turn_that_holds_it():
    found = show(*repair_turn(), pair_of([user("other")], chat("yes")), *cut_text(*PARTS))
    for turn in found.turns:
        for step in range(turn.run.first, turn.run.end):
            assert found.turn_of(step) is turn
            assert found.steps[step].turn.id == turn.id
    assert found.turns[-1].run.end == len(found.steps)


def test_the_headline_of_nothing(tmp_path):
    empty = tmp_path / "empty.har"
    empty.write_bytes(b"")
    found = view(replay(open_case(open_paths([str(empty)]))))
    assert found.headline().startswith(f"NOTHING READ  {empty}: empty")
    assert view(replay(open_case(open_paths([])))).headline() == "NOTHING READ  no LLM traffic was found"
    assert found.counts() == ()
    assert found.worst is None


def test_the_first_of_equally_bad_turns_speaks():
    found = show(pair_of([user("one")], chat("a", "length")), pair_of([user("two")], chat("b", "length")))
    assert "turn 1 of 2" in found.headline()


def test_ids_are_unique_over_many_conversations():
    found = show(*(pair_of([user(f"question {n}")], chat("yes")) for n in range(12)))
    assert len({turn.id for turn in found.turns}) == len({turn.conversation for turn in found.turns}) == 12


def test_one_response_alone_has_a_turn_of_its_own():
    loaded = open_paths(["-"], stdin=lines({"request": {}, "response": chat("All.")}))
    found = view(replay(open_case(loaded), Settings()))
    assert [turn.responses for turn in found.turns] == [(0,)]


@pytest.mark.parametrize("count", [1, 5])
def test_rounds_of_tools_go_on_to_the_end(count):
    history, exchanges = list(ASKS), []
    for number in range(count):
        made = call(WHOLE.replace("a.md", f"{number}.md"), f"call_{number}a1b2c3d4e")
        exchanges.append(pair_of(list(history), chat(None, "tool_calls", made), tools=TOOLS))
        history += [assistant(None, made), result(f"ok {number}", f"call_{number}a1b2c3d4e")]
    exchanges.append(pair_of(history, chat("All written."), tools=TOOLS))
    found = show(*exchanges)
    assert [facts.state for facts in found.responses] == [State.EXECUTE_TOOLS] * count + [State.COMPLETE]
    assert found.turns[0].final_turn.spend.tool_steps == count


def test_the_worst_turn_is_looked_for_once():
    looks = []

    class Turns(tuple):
        def __iter__(self):
            looks.append(1)
            return super().__iter__()

    whole = show(*cut_text(*PARTS[:2]))
    found = replace(whole, turns=Turns(whole.turns))
    assert found.worst is found.worst is whole.turns[0]
    assert looks == [1], "every key shows the advice of a turn, also among 100,000"

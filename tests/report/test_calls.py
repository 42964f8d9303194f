"""What each policy would do with a call, and what happens to a turn whose call does not run."""

from __future__ import annotations

from tests.scenes.recordings import MESSAGES, WHOLE, call, chat, message, pair_of, user
from tests.whatif.test_policies import case_of, verdict_by_policy


def test_a_filtered_and_a_paused_call() -> None:
    filtered = case_of(pair_of([user("x")], chat(None, "content_filter", call(WHOLE))))
    assert verdict_by_policy(filtered, 0, 0)[0].why == "reads safety_blocked; ends the turn with a notice"
    block = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {"path": "a.md", "content": "x"}}
    paused = case_of(pair_of([user("x")], message([block], "pause_turn"), url=MESSAGES, max_tokens=99))
    assert verdict_by_policy(paused, 0, 0)[0].why == "reads paused; resumes the response without it"
    ready = case_of(pair_of([user("x")], chat(None, "tool_calls", call(WHOLE))))
    assert verdict_by_policy(ready, 0, 0)[0].why == "reads tool_call; complete, and allowed by the stop reason"


def test_a_call_without_a_name_under_an_end_is_no_answer() -> None:
    nameless = call("")
    nameless["function"]["name"] = ""
    case = case_of(pair_of([user("x")], chat(None, "stop", nameless)))
    assert verdict_by_policy(case, 0, 0)[0].why == "reads end_turn; leaves it out and asks once more for an answer"

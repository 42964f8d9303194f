"""What an answer shows of calls of the provider's own tools: that one was asked for does not show that it ran."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.report.lines.calls import RESULT_OF, server_lines
from inspector.report.lines.spans import plain
from tests.scenes.recordings import ASKS, MESSAGES, exchange, message, pair_of, show, user

RESPONSES = "https://api.openai.com/v1/responses"


def search_call(number: int) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {"query": "x"}}


def search_result(number: int, name: str = "tool_use_id") -> dict[str, Any]:
    return {"type": "web_search_tool_result", name: f"srvtoolu_{number}", "content": []}


def call_lines(*blocks: dict[str, Any]) -> list[str]:
    facts = show(pair_of(ASKS, message([*blocks, {"type": "text", "text": "So."}], "end_turn"), url=MESSAGES))
    return plain(server_lines(facts.responses[0])).splitlines()


def test_only_results_that_came_are_counted() -> None:
    first, *rest = call_lines(search_call(1), search_result(1), search_call(2), search_result(2), search_call(3))
    assert first == "3 calls of the provider's own tools; the answer shows 2 of them run"
    assert ["run by the provider itself: its result came" in line for line in rest] == [True, True, False]
    assert "left to the provider itself: this answer holds no result of it; neither held" in rest[2]


def test_one_call_is_not_counted() -> None:
    (line,) = call_lines(search_call(1))
    assert "this answer holds no result of it" in line


@pytest.mark.parametrize("name", RESULT_OF)
def test_a_result_names_its_call_in_the_words_of_its_format(name: str) -> None:
    assert "its result came" in call_lines(search_call(1), search_result(1, name))[0]


@pytest.mark.parametrize(("more", "says"), [
    ({"status": "completed"}, "which says that it is completed"),
    ({"status": "failed"}, "this answer holds no result of it, and its state is failed"),
    ({"status": "completed", "results": [{"text": "x"}]}, "its result came"),
])
def test_an_item_of_responses_says_its_state_or_brings_its_result(more: dict[str, Any], says: str) -> None:
    item = {"type": "file_search_call", "id": "fs_1", "queries": ["x"], **more}
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": "m-1", "output": [item]}
    facts = show(exchange({"model": "m-1", "input": [user("x")]}, body, url=RESPONSES))
    assert says in plain(server_lines(facts.responses[0]))


def test_a_block_that_names_no_call_is_no_result() -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    assert "no result" in call_lines(search_call(1), {"type": "odd_result", "content": deep})[0]

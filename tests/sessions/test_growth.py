"""A record that is repeated takes time in proportion to its count: a file cannot hang the program."""

import time
from typing import Any

import pytest

from inspector.sessions import open_paths
from tests.scenes.shapes import SHAPES, Shape, put

IDS = ("id", "uuid", "parentUuid", "call_id", "callId")
FEW, MANY = 1600, 6400
MOST = 8
"""The largest factor for four times as many records. A search from each record through all others takes sixteen."""


def shape_of(format_name: str, name: str) -> Shape:
    return next(shape for shape in SHAPES if (shape.format, shape.name) == (format_name, name))


def numbered(value: Any, number: int) -> Any:
    """The same record with ids of its own."""
    if isinstance(value, dict):
        return {key: f"{held}-{number}" if key in IDS and isinstance(held, str) else numbered(held, number)
                for key, held in value.items()}
    return [numbered(held, number) for held in value] if isinstance(value, list) else value


def seconds(path: Any, shape: Shape, place: tuple[str | int, ...], row: int | None, count: int) -> float:
    held: Any = shape.value
    for key in place:
        held = held[key]
    repeated = [numbered(each, number) for number in range(count // len(held) if row is None else count)
                for each in (held if row is None else [held[row]])]
    value = put(shape.value, place, repeated if row is None else [*held[:row], *repeated, *held[row + 1 :]])
    file = path / shape.name
    file.write_bytes(shape.file_bytes(value))
    took = []
    for _ in range(2):
        begun = time.process_time()
        assert open_paths([str(file)]).exchanges
        took.append(time.process_time() - begun)
    return min(took)


@pytest.mark.parametrize(("format_name", "name", "place", "row"), [
    ("claude-code", "claude.jsonl", (), 3),  # a request that the user stopped
    ("claude-code", "claude.jsonl", (2, "message", "content"), None),
    ("gemini-cli", "gemini.jsonl", (2, "toolCalls"), None),
    ("antigravity", "antigravity.jsonl", (), 2),
    ("codex", "rollout.jsonl", (), 3),
    ("cursor", "cursor.jsonl", (1, "message", "content"), None),
    ("litellm", "litellm.json", ("messages",), None),
])
def test_repeated_records_take_time_in_proportion(format_name, name, place, row, tmp_path):
    shape = shape_of(format_name, name)
    few, many = (seconds(tmp_path, shape, place, row, count) for count in (FEW, MANY))
    assert many < MOST * max(few, 0.02), f"{few:.2f} s for {FEW}, {many:.2f} s for {MANY}"

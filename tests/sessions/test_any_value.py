"""No importer raises for any JSON value in any place: one odd row costs that row, is told, and hides nothing else."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers import IMPORTERS, pi
from inspector.sessions.importers import har as har_file
from inspector.sessions.importers import pairs as pair_file
from inspector.sessions.importers.recognition import choose
from tests import fuzz
from tests.scenes.rows import share
from tests.scenes.shapes import GONE, PI, SHAPES, Shape, places, put

DATABASES = {"ag2", "agno", "crewai", "crush", "cursor-chats", "llm", "openai-agents", "voltagent", "zed"}
"""Formats that are databases alone: their rows are made odd in their own tests."""
TYPES = (None, True, -1, "\ud800", [], {}, GONE)
"""One of each type of JSON, and the place left empty; `tests/fuzz.py` has the ends of each type as well."""


def test_there_is_a_shape_for_every_importer():
    assert {shape.format for shape in SHAPES} == set(IMPORTERS) - DATABASES
    for shape in SHAPES:
        assert choose(shape.file_bytes(), shape.name) == shape.format


def _write_over(path: Path, data: bytes) -> None:
    """A file that is emptied before it is written is flushed to the disk at its end: slower than writing."""
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def _odd(value: Any) -> Iterator[tuple[str, Any]]:
    """Files with odd values, and what is odd in each.

    A value that holds others is odd alone: it may hide all else. Of those that hold none, four that are far apart are
    odd in one file, in four files with other types.
    """
    found = {at: reduce(getitem, at, value) for at in places(value)}
    inner = [at for at, held in found.items() if held and isinstance(held, (dict, list))]
    for index, at in enumerate(inner):  # neighbours take turns: each type is in a third of the places
        for odd in TYPES[index % 3 :: 3]:
            yield f"{odd!r} at {at}", put(value, at, odd)
    ends = [at for at in found if at not in inner]
    apart = -(-len(ends) // 4)
    for first in range(apart):
        for turn in range(4):
            made, told = value, []
            for index in reversed(range(first, len(ends), apart)):  # what is left out moves only what stands behind it
                odd = TYPES[(index + 2 * turn) % len(TYPES)]
                made = put(made, ends[index], odd)
                told.append(f"{odd!r} at {ends[index]}")
            yield ", ".join(told), made


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_any_value_in_any_place_is_read_explained_and_replayed(shape: Shape, tmp_path: Path):
    path = tmp_path / shape.name
    path.touch()
    different: set[bytes] = set()
    for told, made in share(_odd(shape.value), shape.name):
        _write_over(path, shape.file_bytes(made))
        try:
            loaded = open_paths([str(path)])
            # Some files are read as one before them was; what follows is a function of what was read. Of the others
            # every second is explained.
            if (content := pickle.dumps(loaded)) not in different:
                different.add(content)
                if len(different) % 2:
                    fuzz.explain(loaded)
        except Exception as why:
            raise AssertionError(told) from why


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_odd_values_are_tuned_and_exported_in_every_form(shape: Shape, tmp_path: Path):
    path = tmp_path / shape.name
    files = [*_odd(shape.value)]
    for told, made in share(files[:: max(1, len(files) // 7)], shape.name):
        path.write_bytes(shape.file_bytes(made))
        try:
            fuzz.leave(*fuzz.read(str(path)))
        except Exception as why:
            raise AssertionError(told) from why


class SurpriseError(TypeError):
    """A kind of value that nobody thought of."""


def _raises(*_: object, **__: object) -> None:
    raise SurpriseError


def test_a_row_that_nobody_thought_of_is_told_and_the_others_are_read(tmp_path: Path, monkeypatch):

    whole = pi.usage_of
    monkeypatch.setattr(pi, "usage_of", lambda usage, api: _raises() if usage is None else whole(usage, api))
    path = tmp_path / "pi.jsonl"
    path.write_bytes(Shape("", "", list(PI), rows=True).file_bytes())
    loaded = open_paths([str(path)])
    lost = next(number for number, row in enumerate(PI, 1) if row["id"] == "e7")  # the answer without usage
    told = f"{path}: line {lost} holds a value of an unexpected type (SurpriseError); the rest was read"
    assert told in loaded.inputs[0].notices
    assert [each.entry for each in loaded.exchanges] == [3]


@pytest.mark.parametrize(("module", "name"), [(har_file, "a.har"), (pair_file, "pairs.jsonl")])
def test_an_entry_that_nobody_thought_of_is_skipped_by_name(module, name, tmp_path: Path, monkeypatch):
    shape = next(shape for shape in SHAPES if shape.name == name)
    function = {"a.har": "_raw", "pairs.jsonl": "_pair"}[name]
    whole = getattr(module, function)
    monkeypatch.setattr(module, function, lambda number, *rest: whole(number, *rest) if number else _raises())
    path = tmp_path / name
    path.write_bytes(shape.file_bytes())
    (given,) = open_paths([str(path)]).inputs
    assert "holds a value of an unexpected type (SurpriseError)" in given.skipped[0].why
    assert given.skipped[0].entry == 0
    assert given.responses > 0


def test_a_file_or_an_exchange_that_nobody_thought_of_never_hides_the_next_file(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(pi, "reader", _raises)
    first, second = tmp_path / "pi.jsonl", tmp_path / "chat.json"
    first.write_bytes(Shape("", "", list(PI), rows=True).file_bytes())
    second.write_text(json.dumps(SHAPES[-1].value))
    given = open_paths([str(first), str(second)]).inputs
    assert "holds a value of an unexpected type (SurpriseError)" in (given[0].error or "")
    assert given[1].responses == 1
    monkeypatch.setattr("inspector.sessions.open.build", _raises)
    (lost,) = open_paths([str(second)]).inputs
    assert "holds a value of an unexpected type (SurpriseError)" in lost.skipped[0].why

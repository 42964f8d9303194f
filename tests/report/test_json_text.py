"""Documents as JSON text in pieces: the very text that `json.dumps` gives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.report.explain_document import MANY, document_text, indent_value
from loop_core.values import Stop

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -7, 1.5, 1e-9, float("inf"), "", 'a "quote"\n\t\x7f\x00\\', "Prüfung 結果 😀 \ud800",
    [], {}, [[]], {"a": {}}, [1, [2, {"b": [3, None]}]], {"x": [], "y": {"z": (1, 2)}}, Stop.END_TURN, [Stop.ERROR],
)


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_written_as_json_dumps_writes_it(value: Any) -> None:
    assert indent_value(value) == json.dumps(value, indent=1)


@pytest.mark.parametrize("many", [0, MANY])
@pytest.mark.parametrize("items", [[], [1], [{"a": 1}, {}, [2]], [{"a": number / 7} for number in range(1100)]])
def test_the_items_of_an_iterator_are_written_one_after_the_other(items: list[Any], many: int) -> None:
    whole = {"first": 1, "items": items, "last": {"b": items}}
    assert "".join(document_text({**whole, "items": iter(items)}, many)) == json.dumps(whole, indent=1)


def test_an_empty_document_is_an_object() -> None:
    assert "".join(document_text({})) == "{}"

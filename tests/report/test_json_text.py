"""Documents as JSON text in pieces: the very text that `json.dumps` gives."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from inspector.report.explain_document import document_text, members
from loop_core.values import Stop
from tests.scenes.rows import each_row
from tests.scenes.transcripts import block, claude, prompt, show, text, use

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -7, 1.5, 1e-9, float("inf"), "", 'a "quote"\n\t\x7f\x00\\', "Prüfung 結果 😀 \ud800",
    [], {}, [[]], {"a": {}}, [1, [2, {"b": [3, None]}]], {"x": [], "y": {"z": (1, 2)}}, Stop.END_TURN, [Stop.ERROR],
)


@each_row("value", VALUES)
def test_a_value_is_written_as_json_dumps_writes_it(value: Any) -> None:
    assert "".join(document_text({"a": value})) == json.dumps({"a": value}, indent=1)


@each_row("items", [[], [1], [{"a": 1}, {}, [2]], [{"a": number / 7} for number in range(1100)]])
def test_the_items_of_an_iterator_are_written_one_after_the_other(items: list[Any]) -> None:
    whole = {"first": 1, "items": items, "last": {"b": items}}
    assert "".join(document_text({**whole, "items": iter(items)})) == json.dumps(whole, indent=1)


def test_an_empty_document_is_an_object() -> None:
    assert "".join(document_text({})) == "{}"


def test_writing_leaves_nothing_with_the_texts_of_a_session(tmp_path: Path) -> None:
    # Some encoders store the UTF-8 form of a text in the text itself; `sys.getsizeof` counts it.
    words = "結果は正しい " * 40
    thought = {"type": "thinking", "thinking": f"think {words}", "signature": "s"}
    rows = claude(prompt("go"), block(thought), block(text(f"say {words}")), block(use(content=words)))
    view = show(rows, tmp_path)
    response = view.responses[0].exchange.response
    held = [response.text, response.reasoning_content, response.tool_calls[0].arguments, view.turns[0].joined_text.text]
    sizes = [sys.getsizeof(each) for each in held]
    written = "".join(document_text(members(view)))
    assert json.loads(written)["responses"][0]["text"] == f"say {words}"
    assert [sys.getsizeof(each) for each in held] == sizes

"""What one headless command costs from exec to exit."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from measure import Line, Report, cpu_of, milliseconds

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 10
MOST_MS = 150
ANCHOR = 21
"""150 ms where `python -c pass` took 7 ms: the same bound for a machine of another speed."""
INSPECTOR = (sys.executable, "-c", "from inspector.cli import run; run()")
"""What the installed command does."""

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Os'}}
BODY = {
    "id": "r1", "object": "chat.completion", "model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 64},
    "choices": [{"index": 0, "finish_reason": "length",
                 "message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}],
}


def report() -> Report:
    """`explain --json` of a small file beside an interpreter that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "body.json"
        path.write_text(json.dumps(BODY), "utf-8")
        explain, nothing = [], []
        for _ in range(ROUNDS + 1):
            explain.append(cpu_of([*INSPECTOR, "explain", "--json", str(path)], cwd=str(ROOT)))
            nothing.append(cpu_of([sys.executable, "-c", "pass"], cwd=str(ROOT)))
    ours, bare = min(explain), min(nothing)
    yield Line("explain --json of a small file", ours * 1000, unit=" ms", most=MOST_MS)
    yield Line("explain --json of a small file ÷ python -c pass", ours / bare, most=ANCHOR,
               note=milliseconds(ours, bare))

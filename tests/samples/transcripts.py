"""Two sample transcripts, as Claude Code and pi would write them: `python tests/samples/transcripts.py FOLDER`.

Their stories are our own. Such a file has no place for a title, so it stands in the folder's README.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
PROVENANCE = "written by hand, in the rows that {agent} writes"


@dataclass(frozen=True)
class Transcript:
    """One sample transcript, and what the README says of it."""

    file: str
    title: str
    story: str
    provenance: str
    end_state: str
    rows: tuple[Row, ...]

    def file_text(self) -> str:
        """The whole file."""
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)


# -- Claude Code -------------------------------------------------------------------------------------------------------

SESSION = "7d1c6a52-3c1e-4f0b-9a77-2f5e1b8c0a11"
MODEL = "claude-opus-4-5-20251101"
MARCH = (
    "# Tides, March\n\n| day | high water | low water |\n|---|---|---|\n| 1 | 04:12 | 10:31 |\n| 2 | 04:58 | 11:14 |\n"
)
APRIL_CUT = "# Tides, April\n\n| day | high water | low water |\n|---|---|---|\n| 1 | 05:40 | 11:5"
CAP = (
    "API Error: Claude's response exceeded the 32000 output token maximum. To configure this behavior, set the "
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable."
)
MISSING = (
    "<tool_use_error>InputValidationError: Write failed due to the following issues:\n"
    "The required parameter `file_path` is missing\nThe required parameter `content` is missing</tool_use_error>"
)


def _claude(*rows: Row) -> tuple[Row, ...]:
    """Rows below one another, with the fields that each of them has."""
    made: list[Row] = []
    parent: str | None = None
    for number, row in enumerate(rows, 1):
        uuid = f"{number:08x}-0000-4000-8000-{number:012x}"
        common = {
            "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/home/keeper/harbour",
            "sessionId": SESSION, "version": "2.1.7", "gitBranch": "main",
        }
        made.append({**common, **row, "uuid": uuid, "timestamp": f"2026-03-01T08:{number:02}:00.000Z"})
        parent = uuid
    return tuple(made)


def _user(content: Any) -> Row:
    return {"type": "user", "message": {"role": "user", "content": content}}


def _result(key: str, text: str, error: bool = False) -> Row:
    part = {"tool_use_id": key, "type": "tool_result", "content": text, **({"is_error": True} if error else {})}
    return _user([part])


def _block(key: str, content: Row, tokens: int, stop: str | None = None) -> Row:
    message = {
        "model": MODEL, "id": f"msg_{key}", "type": "message", "role": "assistant", "content": [content],
        "stop_reason": stop, "stop_sequence": None,
        "usage": {"input_tokens": 9, "cache_read_input_tokens": 14_208, "output_tokens": tokens},
    }
    return {"type": "assistant", "message": message, "requestId": f"req_{key}"}


def _text(text: str) -> Row:
    return {"type": "text", "text": text}


def _write(key: str, **given: str) -> Row:
    return {"type": "tool_use", "id": key, "name": "Write", "input": given}


def _failure(text: str) -> Row:
    message = {
        "id": "0f5a7c1e-5a52-4a3c-8a55-6f0d3f1f2a90", "model": "<synthetic>", "role": "assistant", "type": "message",
        "stop_reason": "stop_sequence", "stop_sequence": "", "usage": {"input_tokens": 0, "output_tokens": 0},
        "content": [_text(text)],
    }
    return {"type": "assistant", "message": message, "isApiErrorMessage": True, "error": "max_output_tokens"}


CLAUDE_CODE = Transcript(
    "18-claude-code-cut-writes.jsonl",
    "Claude Code: a Write cut before its arguments, and one cut in the middle that ran",
    "Few rows have a stop reason, as Claude Code writes them. In turn 1 the output cap cuts a Write before its "
    "arguments: a row of Claude Code says so, the call is refused for its missing arguments, and comes whole when it "
    "is sent again. In turn 2 the answer has exactly 32,000 output tokens, its Write ends in the middle of a row, and "
    "it was run: half a table is in the file.",
    PROVENANCE.format(agent="Claude Code"),
    "Complete, completed; Unrecorded, unrecorded; Complete, completed",
    _claude(
        _user("Write the tide table for March to tides/march.md."),
        _block("01", _text("I will write the whole table in one go."), 2),
        _block("01", _write("toolu_01"), 2),
        _failure(CAP),
        _result("toolu_01", MISSING, error=True),
        _block("02", _text("The call came without its arguments. Once more, shorter."), 5),
        _block("02", _write("toolu_02", file_path="tides/march.md", content=MARCH), 96),
        _result("toolu_02", "File created successfully at: tides/march.md"),
        _block("03", _text("The table for March is in tides/march.md."), 1),
        {"type": "system", "subtype": "turn_duration", "durationMs": 94_000, "isMeta": False},
        _user("Now the same for April."),
        _block("04", _write("toolu_04", file_path="tides/april.md", content=APRIL_CUT), 32_000),
        _result("toolu_04", "File created successfully at: tides/april.md"),
        _block("05", _text("April is written as well."), 7, "end_turn"),
        _user("Good. Which day in March has the lowest low water?"),
        _block("06", _text("The table gives times and no heights, so it cannot tell."), 18, "end_turn"),
    ),
)


# -- pi ----------------------------------------------------------------------------------------------------------------


def _pi(*rows: Row) -> tuple[Row, ...]:
    made: list[Row] = [{
        "type": "session", "version": 3, "id": "019c2a10-77aa-7000-8000-1f2e3d4c5b6a",
        "timestamp": "2026-04-02T17:00:00.000Z", "cwd": "/home/keeper/gate",
    }]
    parent: str | None = None
    for number, row in enumerate(rows, 1):
        key = f"{number:08x}"
        kind, *rest = row.items()
        made.append(dict([kind, ("id", key), ("parentId", parent),
                          ("timestamp", f"2026-04-02T17:{number:02}:00.000Z"), *rest]))
        parent = key
    return tuple(made)


def _pi_user(text: str) -> Row:
    return {"type": "message", "message": {"role": "user", "content": [_text(text)]}}


def _pi_reply(stop: str, tokens: int, *content: Row) -> Row:
    usage = {"input": 812, "output": tokens, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 812 + tokens}
    return {"type": "message", "message": {
        "role": "assistant", "content": list(content), "api": "openai-completions", "provider": "local",
        "model": "qwen3-coder", "usage": usage, "stopReason": stop,
    }}


PARTS_CUT = "| part | count |\n|---|---|\n| hinge | 2 |\n| latch | 1"
PI = Transcript(
    "19-pi-length-and-a-call-that-ran.jsonl",
    "pi: a call under length that ran, and a text that was continued",
    "pi writes its own words for an end and not the provider's. In turn 1 the word is length and a call is present, so "
    "pi ran it: the list ends with 1 latch, which may have been 12. In turn 2 a text is cut and goes on when the "
    "user asks for the rest.",
    PROVENANCE.format(agent="pi"),
    "Unrecorded, unrecorded; Complete, completed",
    _pi(
        {"type": "model_change", "provider": "local", "modelId": "qwen3-coder"},
        _pi_user("Write the parts of the garden gate to parts.md."),
        _pi_reply("length", 256, _text("Here is the list."), {
            "type": "toolCall", "id": "call_7f3a91c2", "name": "write",
            "arguments": {"path": "parts.md", "content": PARTS_CUT},
        }),
        {"type": "message", "message": {
            "role": "toolResult", "toolCallId": "call_7f3a91c2", "toolName": "write",
            "content": [_text("Successfully wrote 52 bytes to parts.md")], "isError": False,
        }},
        _pi_reply("stop", 11, _text("The list is in parts.md.")),
        {"type": "label", "targetId": "00000005", "label": "list written"},
        _pi_user("What is each of them for?"),
        _pi_reply("length", 256, _text("The hinges carry the gate and let it swing. The latch holds it ")),
        _pi_user("continue"),
        _pi_reply("stop", 9, _text("shut when the wind is up.")),
    ),
)
TRANSCRIPTS = (CLAUDE_CODE, PI)


def main(folder: Path) -> None:
    """Writes both."""
    for each in TRANSCRIPTS:
        (folder / each.file).write_text(each.file_text(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

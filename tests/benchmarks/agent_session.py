"""A transcript such as Claude Code writes, of any size, from words of our own: `python agent_session.py FILE BYTES`.

The mix is that of real sessions: a row for each block of an answer (thinking, text, a call), most of them without a
stop reason; results of some kB that stand twice in their row; hooks, snapshots and progress between; every 40th answer
a subagent's. An answer takes some 15 kB of the file, nine tenths of it results.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINES = (
    "    def total(self, prices: Mapping[str, int]) -> int:\n", '        return sum(prices[name] for name in "abc")\n',
    "The importer reads one row after the other, and what it does not know is counted.\n", "\n",
    "src/reader/rows.py:41: error: Argument 1 has an incompatible type \"str\"; expected \"bytes\"\n",
    "+    if found is None:\n-    if not found:\n", "\tFAILED tests/test_rows.py::test_cut - assert 3 == 4\n",
    "Das Ergebnis ist geprüft; 結果は正しい.\n", "drwxr-xr-x  7 someone staff   224 Mar  3 10:41 build\n",
)
TOOLS = ("Read", "Bash", "Edit", "Grep")
SESSION = "6b1f0f4e-8a5e-4d1c-9a70-2f6f0d8e1c55"
AGENT = "a1b2c3d4"
MODEL = "claude-opus-4-5-20251101"


class Writer:
    """Rows of one session, each below the one before."""

    def __init__(self) -> None:
        self.random = random.Random(13)
        self.count = 0
        self.answers = 0
        self.above: str | None = None

    def text(self, size: int) -> str:
        """About so many characters of what tools and models write."""
        return "".join(self.random.choices(LINES, k=max(1, size // 44)))

    def row(self, kind: str, **more: Any) -> dict[str, Any]:
        """A row of the tree."""
        self.count += 1
        uuid = f"{self.count:08x}-0000-4000-8000-{self.random.getrandbits(48):012x}"
        second = self.count // 2
        day, clock = 1 + second // 86400 % 28, f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        moment = f"2026-03-{day:02d}T{clock}.{self.count % 1000:03d}Z"
        made = {"parentUuid": self.above, "isSidechain": False, "userType": "external", "cwd": "/home/someone/project",
                "sessionId": SESSION, "version": "2.1.7", "gitBranch": "main", "type": kind, **more, "uuid": uuid,
                "timestamp": moment}
        self.above = uuid
        return made

    def answer(self, *blocks: dict[str, Any], word: str | None = None, **more: Any) -> Iterator[dict[str, Any]]:
        """The rows of one answer: one for each block, the word only on the last, and mostly on none."""
        self.answers += 1
        name = f"msg_01{self.random.getrandbits(80):020x}"
        for number, block in enumerate(blocks, start=1):
            last = number == len(blocks)
            yield self.row("assistant", **more, requestId=f"req_011{self.answers:017d}", message={
                "model": MODEL, "id": name, "type": "message", "role": "assistant", "content": [block],
                "stop_reason": word if last else None, "stop_sequence": None,
                "usage": {"input_tokens": 9, "cache_creation_input_tokens": 1200, "cache_read_input_tokens": 41000,
                          "output_tokens": self.random.randrange(120, 900), "service_tier": "standard"}})

    def turn(self) -> Iterator[dict[str, Any]]:
        """A question, some rounds of calls, and the end, as the agent writes it."""
        draw = self.random
        asked = {"role": "user", "content": self.text(draw.randrange(60, 700))}
        yield self.row("user", message=asked, thinkingMetadata={"level": "high"})
        yield {"type": "file-history-snapshot", "messageId": self.above, "snapshot": {"trackedFileBackups": {}},
               "isSnapshotUpdate": False}
        for _ in range(draw.randrange(2, 12)):
            side = {"isSidechain": True, "agentId": AGENT} if draw.random() < 0.025 else {}
            yield from self.call(side)
        word = "end_turn" if draw.random() < 0.2 else None
        yield from self.answer({"type": "text", "text": self.text(draw.randrange(300, 3000))}, word=word)
        if draw.random() < 0.6:
            yield self.row("system", subtype="stop_hook_summary", hookCount=1, hookErrors=[], level="suggestion")

    def call(self, side: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """An answer that calls a tool, and the row of its result."""
        draw = self.random
        key, tool = f"toolu_01{draw.getrandbits(88):022x}", draw.choice(TOOLS)
        given: dict[str, Any] = {"file_path": f"/home/someone/project/src/module_{draw.randrange(400)}.py"}
        if tool == "Edit":
            given |= {"old_string": self.text(300), "new_string": self.text(500)}
        blocks: list[dict[str, Any]] = [{"type": "tool_use", "id": key, "name": tool, "input": given}]
        if draw.random() < 0.3:
            blocks.insert(0, {"type": "text", "text": self.text(200)})
        if draw.random() < 0.6:
            signature = f"{draw.getrandbits(4000):0600x}"
            blocks.insert(0, {"type": "thinking", "thinking": self.text(600), "signature": signature})
        yield from self.answer(*blocks, word="tool_use" if draw.random() < 0.1 else None, **side)
        for _ in range(draw.randrange(3)):
            yield self.row("progress", data={"type": "hook_progress", "hookEvent": "PostToolUse",
                                             "hookName": f"PostToolUse:{tool}", "command": "true"}, toolUseID=key)
        said = self.text(draw.choice((200, 900, 2500, 6000, 16000)))
        result = {"type": "tool_result", "tool_use_id": key, "content": said, **(
            {"is_error": True} if draw.random() < 0.04 else {})}
        yield self.row("user", message={"role": "user", "content": [result]}, **side, toolUseResult={
            "type": "text", "file": {"filePath": given["file_path"], "content": said, "numLines": said.count("\n")}})


def write(path: Path, size: int) -> int:
    """Writes a file of at least `size` bytes, whole turns; how many answers of a model it holds."""
    writer, done = Writer(), 0
    with path.open("w", encoding="utf-8") as file:
        while done < size:
            for row in writer.turn():
                line = json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"
                done += file.write(line)
    return writer.answers


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), int(sys.argv[2])))

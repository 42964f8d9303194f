"""Small recorded sessions as HAR files, written by hand in OpenAI's wire format, and what a test sees of a screen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_textual_snapshot import SVGImageExtension
from syrupy import SnapshotAssertion
from textual.app import App
from textual.command import CommandList
from textual.events import MouseScrollDown
from textual.pilot import Pilot
from textual.widget import Widget

from inspector.report.lines.spans import text_of
from inspector.tui.text_view import TextView

URL = "https://api.openai.com/v1/chat/completions"
WRITE = {
    "type": "function",
    "function": {
        "name": "write_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    },
}
CUT_ARGUMENTS = '{"path": "report.md", "content": "The report covers three regi'
PARTS = (
    "The report covers three regions. In the first, the queue ",
    "was saturated for nineteen minutes, so that nothing moved. ",
    "In the second, a deploy was rolled back before anyone saw it. ",
    "In the third, the certificates had run out on a Sunday. ",
    "All three have been closed, and the owners are named below. ",
    "Nothing else is open.",
)
HOSTILE = (
    "[bold red]markup[/] \x1b[31mred\x1b[0m \x1b]52;c;AAAA\x07 \x9b2J \u202eesrever\u202c "
    "\r\n[link=x]l[/link] \x00end"
)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None = None, arguments: str | None = None, name: str = "write_file") -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if arguments is not None:
        call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
        message["tool_calls"] = [call]
    return message


def result(text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "call_1", "content": text}


def body(message: dict[str, Any], reason: str, tokens: int) -> str:
    """A whole completion."""
    return json.dumps({
        "id": "c", "object": "chat.completion", "model": "gpt-5-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens},
    })


def stream(text: str, reason: str | None, tokens: int, arguments: str = "") -> str:
    """The same as server-sent events, a few words each."""
    deltas: list[dict[str, Any]] = [{"content": text[at : at + 24]} for at in range(0, len(text), 24)]
    if arguments:
        head = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "write_file", "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": arguments[at : at + 20]}}]}
                   for at in range(0, len(arguments), 20)]
    events = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if reason is not None:
        events.append({"index": 0, "delta": {}, "finish_reason": reason})
    chunks: list[dict[str, Any]] = [{"id": "c", "model": "gpt-5-mini", "choices": [event]} for event in events]
    chunks.append({"id": "c", "model": "gpt-5-mini", "choices": [], "usage": {
        "prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens}})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def entry(messages: list[dict[str, Any]], answer: str, cap: int | None = 64, key: str = "sk-none") -> dict[str, Any]:
    """One HAR entry."""
    asked: dict[str, Any] = {"model": "gpt-5-mini", "messages": messages, "tools": [WRITE]}
    if cap is not None:
        asked["max_tokens"] = cap
    mime = "text/event-stream" if answer.startswith("data:") else "application/json"
    return {
        "startedDateTime": "2026-01-01T00:00:00Z", "time": 10,
        "request": {"method": "POST", "url": URL, "headers": [{"name": "Authorization", "value": f"Bearer {key}"}],
                    "postData": {"mimeType": "application/json", "text": json.dumps(asked)}},
        "response": {"status": 200, "headers": [{"name": "content-type", "value": mime}],
                     "content": {"mimeType": mime, "size": len(answer), "text": answer}},
    }


def har(entries: list[dict[str, Any]]) -> str:
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "by hand", "version": "1"}, "entries": entries}})


def cut_text(parts: tuple[str, ...] = PARTS, cap: int | None = 256) -> list[dict[str, Any]]:
    """A text that is cut after every part but the last; the agent sends what it has as the beginning of the answer."""
    ask = user("Write the report.")
    entries, text = [], ""
    for number, part in enumerate(parts):
        messages = [ask] if not text else [ask, assistant(text)]
        last = number == len(parts) - 1
        entries.append(entry(messages, stream(part, "stop" if last else "length", 20 if last else 64), cap))
        text += part
    return entries


def cut_call_ran() -> list[dict[str, Any]]:
    """A call cut in the middle of its JSON, which the agent ran all the same."""
    ask = user("Put it into report.md.")
    cut = entry([ask], stream("Writing it now.", "length", 64, CUT_ARGUMENTS))
    after = [ask, assistant("Writing it now.", CUT_ARGUMENTS), result("ok, 28 bytes")]
    return [cut, entry(after, body(assistant("The report is in report.md."), "stop", 8))]


def story(folder: Path, entries: list[dict[str, Any]] | None = None, name: str = "story.har") -> Path:
    """Two turns: the continued text, then the cut call."""
    path = folder / name
    path.write_text(har(entries if entries is not None else [*cut_text(), *cut_call_ran()]))
    return path


def hostile() -> list[dict[str, Any]]:
    """Everything that a transcript can say is hostile here: text, names, arguments, results, reasons."""
    ask = user(HOSTILE)
    arguments = json.dumps({"path": HOSTILE, "content": "cut"})[:-3]
    first = entry([ask], body(assistant(HOSTILE, arguments, name=HOSTILE), HOSTILE, 64))
    after = [ask, assistant(HOSTILE, arguments, name=HOSTILE), result(HOSTILE)]
    return [first, entry(after, stream(HOSTILE, "length", 64, arguments)), *cut_text((HOSTILE, HOSTILE, HOSTILE))]


# -- what a test sees ------------------------------------------------------------------------------------------------


def screen_rows(app: App[Any]) -> list[str]:
    """The rows of the screen as text."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


def page(app: App[Any]) -> str:
    """The screen as one text; a blank at which no row ends looks like any other."""
    return "\n".join(row.replace("\u00a0", " ").rstrip() for row in screen_rows(app))


def view_text(app: App[Any]) -> str:
    """What the open view says, unwrapped."""
    sheet = app.screen.query_one(TextView).sheet
    return "\n".join(text_of(sheet.line(index)) for index in range(len(sheet)))


async def until(pilot: Pilot[Any], holds: Callable[[], bool]) -> None:
    """Waits for a condition. The limit only ends a test that fails: a busy machine takes many times its usual time."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, f"it never came to that:\n{page(pilot.app)}"
        await pilot.pause(0.01)
    await pilot.pause()


async def choose_command(pilot: Pilot[Any], words: str, title: str) -> None:
    """Types words into the palette, and chooses a command when it is the first that they find."""
    await pilot.press("ctrl+p", *words)
    found = pilot.app.screen.query_one(CommandList)
    await until(pilot, lambda: found.highlighted == 0 and title in str(found.get_option_at_index(0).prompt))
    await pilot.press("enter")


async def store_open(pilot: Pilot[Any]) -> None:
    """Waits until what is kept of the session has been read, or could not be."""
    runs = pilot.app.screen_stack[0].runs
    await until(pilot, lambda: runs.store is not None or bool(runs.unkeepable))


def panes(pilot: Pilot[Any]) -> list[Widget]:
    """What can be scrolled down on the screen that is seen."""
    screen = pilot.app.screen
    return [each for each in screen.query("*") if each.max_scroll_y > 0 and each.allow_vertical_scroll
            and each.region.area > 0 and screen.region.contains(each.region.x + 2, each.region.y + 1)]


async def check_wheel(pilot: Pilot[Any]) -> None:
    """Each pane that can be scrolled goes down under the wheel, and no other with it."""
    found = panes(pilot)
    assert found
    for pane in found:
        if pane not in panes(pilot):  # a legend that grew has pushed it out of a low screen
            continue
        before = {each: each.scroll_offset.y for each in found}
        await pilot._post_mouse_events([MouseScrollDown] * 2, pane, (2, 1))
        await until(pilot, lambda before=before: any(each.scroll_offset.y != before[each] for each in found))
        assert [each for each in found if each.scroll_offset.y != before[each]] == [pane], pane


class Album:
    """Compares each picture with the snapshot of its name; `different` has the names of those that differ."""

    def __init__(self, snapshot: SnapshotAssertion) -> None:
        self.snapshots, self.different = snapshot.use_extension(SVGImageExtension), list[str]()

    def compare(self, pilot: Pilot[Any], name: str) -> None:
        size = pilot.app.size
        name = f"{name}{'-' * bool(name)}{size.width}x{size.height}"
        if pilot.app.export_screenshot(simplify=True) != self.snapshots(name=name):
            self.different.append(name)


@pytest.fixture
def album(snapshot: SnapshotAssertion) -> Album:
    return Album(snapshot)

"""The tables of what client libraries report, from tests/clients/reports.json, which tests/clients/run.py writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from inspector.provider import all_stories
from loop_core.wire import FORMATS
from tests.clients import tables

Row = Mapping[str, Any]
SHOWN = ("call", "text", "thinking", "cut-call", "lying-router", "leaked-call", "no-call", "empty", "reasoning-only",
         "no-reason", "filtered", "paused", "fallback", "error-after-200", "reset", "stalled")
"""The columns of the short table."""


@cache
def _data() -> dict[str, Any]:
    return dict(json.loads(tables.DATA.read_text("utf-8")))


@cache
def _rows() -> dict[tuple[str, str, str, str], Row]:
    return {(row["client"], row["format"], row["mode"], row["scenario"]): row for row in _data()["cells"]}


def verdict(row: Row, usual: str | None) -> str:
    """A report in a word or two; `usual` is the stop reason that its client reports for a complete answer."""
    story = all_stories()[row["scenario"]]
    where = (f"{row['format']} {row['mode']}", row["format"], row["mode"])
    ends = next((story.ends_in[key] for key in where if key in story.ends_in), story.ends)
    if "unplayed" in row:
        return "–"
    if row["error"] == "no end":
        return "no end"
    calls = [name for name, given in row["ran"] if given == "whole"]
    if any(given != "whole" for _, given in row["ran"]):
        return "**ran cut**"
    if len(calls) > len(set(calls)):
        return "**ran twice**"
    if row["error"]:
        return "error"
    loops = next(client.loops for client in tables.CLIENTS if client.name == row["client"])
    meant = [call.name for answer in story.answers[: None if loops else 1] for call in answer.calls]
    had = calls if loops else [name if given == "whole" else "" for name, given in row["gave"]]
    if ends == "completed" and row["text"] == "whole" and had == meant:
        return "whole"
    return "unsaid" if row["reason"] in (None, usual, *tables.COMPLETE) else "said"


def _verdict(row: Row) -> str:
    usual = next((found["reason"] for name in ("call", "text")  # the format may have no calls
                  if "reason" in (found := _rows()[row["client"], row["format"], row["mode"], name])), None)
    return verdict(row, usual)


def reported() -> str:
    """The short table: client and format by scenario."""
    head = ["| client | " + " | ".join(f"`{name}`" for name in SHOWN) + " |", "| --- |" + " --- |" * len(SHOWN)]
    return "\n".join([*head, *(line for client in tables.CLIENTS for line in _short(client))])


def _short(client: tables.Client) -> list[str]:
    why = _data()["missing"].get(client.environment)
    if why:
        return [f"| {client.name} | not installed: {_plain(why)} |" + " |" * (len(SHOWN) - 1)]
    return [f"| {client.name}, `{api}` | "
            + " | ".join(_merged(client.name, api, name, _verdict, " / ") for name in SHOWN) + " |"
            for api in FORMATS if api in client.formats]


def _merged(client: str, api: str, scenario: str, told: Callable[[Row], str], between: str) -> str:
    streamed, whole = (told(_rows()[client, api, mode, scenario]) for mode in tables.MODES)
    return streamed if streamed == whole else f"{streamed}{between}{whole}"


def report_versions() -> str:
    """The installed libraries with their versions, and the parts of them that were used."""
    return "\n".join(["| client | what was asked | versions |", "| --- | --- | --- |", *map(_versions, tables.CLIENTS)])


def _versions(client: tables.Client) -> str:
    found = _data()["versions"].get(client.environment, {})
    names = [name for name in (tables.PACKAGES.get(client.name, ""), *client.formats.values()) if name]
    told = ", ".join(f"{name} {found[name]}" for name in dict.fromkeys(names) if name in found)
    if "node" in found:
        told += f" (node {found['node']})"
    return f"| {client.name} | {client.way} | {told or 'this project'} |"


def reports() -> str:
    """Everything that was observed, client by client."""
    return "\n\n".join(map(_all, tables.CLIENTS))


def _all(client: tables.Client) -> str:
    why = _data()["missing"].get(client.environment)
    if why:
        return f"### {client.name}\n\nNot installed: {_plain(why)}"
    formats = [api for api in FORMATS if api in client.formats]
    return "\n".join([
        f"### {client.name}\n", "| scenario | " + " | ".join(f"`{api}`" for api in formats) + " |",
        "| --- |" + " --- |" * len(formats),
        *(f"| `{name}` | " + " | ".join(_both(client.name, api, name) for api in formats) + " |"
          for name in tables.SCENARIOS)])


def _both(client: str, api: str, scenario: str) -> str:
    streamed, whole = (_observed(_rows()[client, api, mode, scenario]) for mode in tables.MODES)
    return streamed if streamed == whole else f"stream: {streamed}<br>whole: {whole}"


def _observed(row: Row) -> str:
    if "unplayed" in row:
        return "–"
    told = [f"`{_plain(row['reason'])}`"] if row["reason"] is not None else []
    told += [row["text"], *_calls("ran", row["ran"]), *_calls("gave", row["gave"])]
    told += [f"raises `{_plain(row['error'])}`" if row["error"] != "no end" else "no end"] if row["error"] else []
    told += [f"{row['requests']} requests"] if row["requests"] != 1 else []
    told += [f"asks for {'whole answers' if row['mode'] == 'stream' else 'a stream'}"] if row["otherwise"] else []
    told += [f"400: {_plain(row['refusal'])}"] if row["refusal"] else []
    return ", ".join(told)


def _calls(verb: str, calls: Sequence[Sequence[str]]) -> list[str]:
    return [f"{verb} whole" if given == "whole" else f"{verb} `{_plain(given) or '(nothing)'}`" for _, given in calls]


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")

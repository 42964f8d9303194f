"""The tables of what client libraries report, from tests/clients/reports.json, which tests/clients/run.py writes."""

from __future__ import annotations

import json
import re
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
_SHORT = re.compile(r"the scenario \S+ has \d+ answers?, and this asks for one more")


@cache
def _data() -> dict[str, Any]:
    return dict(json.loads(tables.DATA.read_text("utf-8")))


@cache
def _rows() -> dict[tuple[str, str, str, str], Row]:
    return {(row["client"], row["format"], row["mode"], row["scenario"]): row for row in _data()["cells"]}


def _row(client: str, api: str, mode: str, scenario: str) -> Row:
    """What a client reported. Ends the program if the client has not played the scenario yet."""
    if (client, api, mode, scenario) not in _rows():
        raise SystemExit(f"tests/clients/reports.json has no report of {client} about the scenario {scenario} "
                         f"({api}, {mode}): run python tests/clients/run.py --only {scenario}")
    return _rows()[client, api, mode, scenario]


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
    return "silent" if row["reason"] in (None, usual, *tables.COMPLETE) else "reported"


def _verdict(row: Row) -> str:
    usual = next((found["reason"] for name in ("call", "text")  # the format may have no calls
                  if "reason" in (found := _row(row["client"], row["format"], row["mode"], name))), None)
    return verdict(row, usual)


def reported() -> str:
    """The short table: client and format by scenario."""
    head = ["| client | " + " | ".join(f"`{name}`" for name in SHOWN) + " |", "| --- |" + " --- |" * len(SHOWN)]
    return "\n".join([*head, *(line for client in tables.CLIENTS for line in _short(client))])


def _short(client: tables.Client) -> list[str]:
    why = _data()["missing"].get(client.environment)
    if why:
        return [f"| {client.name} | not installed: {_plain(why)} |" + " |" * (len(SHOWN) - 1)]
    rows: dict[str, list[str]] = {}
    for api in FORMATS:
        if api in client.formats:
            cells = " | ".join(_merged(client.name, api, name, _verdict, " / ") for name in SHOWN)
            rows.setdefault(cells, []).append(f"`{api}`")
    return [f"| {client.name}: {', '.join(apis)} | {cells} |" for cells, apis in rows.items()]


def _merged(client: str, api: str, scenario: str, told: Callable[[Row], str], between: str) -> str:
    streamed, whole = (told(_row(client, api, mode, scenario)) for mode in tables.MODES)
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
    rows = ((name, _groups(client, name)) for name in tables.SCENARIOS)
    return "\n".join([f"### {client.name}\n", "| scenario | report |", "| --- | --- |",
                      *(f"| `{name}` | {told} |" for name, told in rows if told)])


def _groups(client: tables.Client, scenario: str) -> str:
    """Each report on a scenario with its formats, the most common one last; empty if it cannot be played."""
    found: dict[str, list[str]] = {}
    for api in FORMATS:
        if api in client.formats and (told := _both(client.name, api, scenario)) != "–":
            found.setdefault(told, []).append(f"`{api}`")
    *few, most = sorted(found.items(), key=lambda item: len(item[1])) or [("", [])]
    if not few:
        return most[0]
    last = "others" if len(most[1]) > 1 else most[1][0]
    return "<br>".join([*(f"{', '.join(apis)}: {told}" for told, apis in few), f"{last}: {most[0]}"])


def _both(client: str, api: str, scenario: str) -> str:
    streamed, whole = (_observed(_row(client, api, mode, scenario)) for mode in tables.MODES)
    return streamed if streamed == whole else f"stream: {streamed}; no stream: {whole}"


def _observed(row: Row) -> str:
    if "unplayed" in row:
        return "–"
    told = [f"`{_plain(row['reason'])}`"] if row["reason"] is not None else []
    told += [row["text"], *_calls("ran", row["ran"]), *_calls("gave", row["gave"])]
    told += [f"raises `{_plain(row['error'])}`" if row["error"] != "no end" else "no end"] if row["error"] else []
    told += [f"{row['requests']} requests"] if row["requests"] != 1 else []
    told += [f"asks for {'whole answers' if row['mode'] == 'stream' else 'a stream'}"] if row["otherwise"] else []
    told += [f"400: {_SHORT.sub('no more answers', _plain(row['refusal']))}"] if row["refusal"] else []
    return ", ".join(told)


def _calls(verb: str, calls: Sequence[Sequence[str]]) -> list[str]:
    return [f"{verb} whole" if given == "whole" else f"{verb} `{_plain(given) or '(nothing)'}`" for _, given in calls]


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")

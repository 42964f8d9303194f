"""The tables of docs/provider.md, made from the scripted provider's own tables."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.provider.faults import FAULTS, Fault
from inspector.provider.reading import all_stories
from inspector.provider.server import client_code
from loop_core.formats import FORMATS
from loop_core.wire import wire


def scripted_scenarios() -> str:
    """The scenarios that come with the program."""
    rows = [f"| `{story.name}` | {story.story} | `{story.ends}`{_besides(story.ends_in)} |"
            for story in all_stories().values()]
    return "\n".join(["| scenario | what happens | `loop_core` ends its turn as |", "| --- | --- | --- |", *rows])


def faults() -> str:
    """Every fault, and where it has no meaning."""
    head = ["| fault | value | what happens | `loop_core` ends its turn as | refused, because |",
            "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *map(_row, FAULTS.values())])


def _row(fault: Fault) -> str:
    ends_in = {**_of(fault, "ends"), **({"whole": fault.ends_whole} if fault.ends_whole else {})}
    ends = f"`{fault.ends}`{_besides(ends_in)}"
    return f"| `{fault.name}` | {fault.argument} | {fault.does} | {ends} | {_without(fault)} |"


def clients() -> str:
    """The code that points each SDK at the scripted provider."""
    rows = [f"| `{api}` | `{code}` |" for api, code in client_code("http://127.0.0.1:8765").items()]
    return "\n".join(["| wire format | client |", "| --- | --- |", *rows])


def _besides(ends: Mapping[str, str]) -> str:
    by_end: dict[str, list[str]] = {}
    for where, end in ends.items():
        by_end.setdefault(end, []).append(where)
    return "".join(f"; `{end}` in {', '.join(where)}" for end, where in by_end.items())


def _of(fault: Fault, table: str) -> dict[str, str]:
    """The remarks of formats on a fault, by format, or by format and mode."""
    modes = {fault.name: "", f"{fault.name} stream": " stream", f"{fault.name} whole": " whole"}
    return {f"{api}{modes[key]}": said for api in FORMATS
            for key, said in getattr(wire(api).serving, table).items() if key in modes}


def _without(fault: Fault) -> str:
    by_reason: dict[str, list[str]] = {}
    for where, why in {**_of(fault, "cannot"), **fault.without}.items():
        by_reason.setdefault(why, []).append(where)
    return "; ".join(f"{why} ({_formats(where)})" for why, where in by_reason.items())


def _formats(where: list[str]) -> str:
    """The formats of a remark, or the three or fewer that it leaves out."""
    rest = [api for api in FORMATS if api not in where]
    return f"all but {', '.join(rest)}" if len(rest) <= 3 and not set(where) - set(FORMATS) else ", ".join(where)

"""What every probe shares: it reads one job a line and writes one report a line, and runs in its client's own
installation, so nothing of this project may be imported here.

When its libraries are loaded it writes one line. Then a job has `url`, `api`, `loops`, `stream`, `model`, `prompt`,
`tools` (name, description, parameters, result), `cap` and `timeout`, and a report `reason` (a text, or null where the
client has none to give), `text`, `ran`, `gave` (name and arguments of each call that was run, or handed over) and
`error` (the class of what was raised).
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

Job = dict[str, Any]
Report = dict[str, Any]


def new() -> Report:
    """A report of a client that has said nothing yet."""
    return {"reason": None, "text": "", "ran": [], "gave": [], "error": None}


def word(reason: Any) -> str:
    """A reason as the client spells it; its absence is a word too."""
    return "None" if reason is None else str(getattr(reason, "value", reason))


def function(tool: dict[str, Any], report: Report) -> Callable[..., str]:
    """A typed function of the tool's signature, which notes what it is run with."""
    name, names = tool["name"], tool["parameters"]["properties"]

    def run(**arguments: Any) -> str:
        report["ran"].append([name, json.dumps(arguments)])
        return str(tool["result"])

    run.__name__ = run.__qualname__ = name
    told = "\n".join(f"    {each}: The {each}." for each in names)
    run.__doc__ = f"{tool.get('description') or name}\n\nArgs:\n{told}"
    run.__annotations__ = {**dict.fromkeys(names, str), "return": str}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, annotation=str) for each in names],
        return_annotation=str)
    return run


def main(probes: dict[str, Callable[[Job, Report], Any]]) -> None:
    """Says that it is there, and answers jobs until there are no more. What a library prints goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    out.write("{}\n")
    out.flush()
    for line in sys.stdin:
        job, report = json.loads(line), new()
        try:
            came = probes.get(job["api"], probes.get(""))(job, report)  # type: ignore[misc]
            if inspect.isawaitable(came):
                loop.run_until_complete(came)
        except BaseException as why:  # noqa: BLE001 - whatever a client raises is what it reports
            traceback.print_exc()
            report["error"] = type(why).__name__
        out.write(json.dumps(report) + "\n")
        out.flush()

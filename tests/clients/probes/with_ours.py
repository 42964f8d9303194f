"""Our own loop."""

from __future__ import annotations

import json
from typing import Any

from common import Job, Report, main

from inspector.provider.server import bases
from loop_core.client.address import Server
from loop_core.client.exchange import Connection, Timeouts
from loop_core.client.transport import Live
from loop_core.turn.loop import run
from loop_core.turn.tools import Toolbox
from loop_core.values import Message, Request, Role, TextPart, Tool


def ask(job: Job, report: Report) -> None:
    def runs(tool: dict[str, Any]) -> Any:
        def call(arguments: Any) -> str:
            report["ran"].append([tool["name"], json.dumps(arguments)])
            return str(tool["result"])

        return call

    said = Message(Role.USER, (TextPart(job["prompt"]),))
    tools = tuple(Tool(each["name"], each["parameters"], each["description"]) for each in job["tools"])
    request = Request(job["api"], (said,), job["model"], tools, max_tokens=job["cap"], stream=job["stream"])
    line = Connection(Timeouts(silence=job["timeout"])) if job["timeout"] else Connection()
    box = Toolbox({each["name"]: runs(each) for each in job["tools"]})
    with Live(Server(job["api"], bases(job["url"])[job["api"]]), toolbox=box, line=line) as source:
        turn = run("t", request, source).steps[-1].turn
    answers = [text for number in range(len(turn.answers)) if (text := turn.joined_answer(number).text)]
    report["text"], report["reason"] = (answers or [""])[-1], str(turn.terminal)


main({"": ask})

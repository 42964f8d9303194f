"""Plays the scenarios that come with the program to client libraries, and writes down what each one reports.

    python tests/clients/run.py                          everything, some minutes
    python tests/clients/run.py --only pydantic-ai       cells whose client, format, mode or scenario is this word
    python tests/clients/run.py --folder ENVIRONMENTS    keeps the installations there, and uses those that are there

Libraries are installed into a temporary folder, with the versions of tables.py. The result is reports.json beside this
file, from which docs/generate.py makes the tables of the documents. Nothing leaves this machine but the installation.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT)]  # this checkout

from inspector.provider import Provider, Story, all_stories, serving  # noqa: E402 - found by the line above
from inspector.provider.faults import why_unplayable  # noqa: E402 - likewise
from tests.clients import tables  # noqa: E402 - likewise

NO_END = "no end"
"""The error of a client that was given up."""
AT_ONCE = 3
"""Environments that are played to side by side: most of the time is spent in waits between retries."""
STORIES = all_stories()
Row = dict[str, Any]


# -- installations ---------------------------------------------------------------------------------------------------


def install(environment: tables.Environment, folder: Path) -> Mapping[str, str]:
    """Installs what is not there yet; package -> version, as the installation says.

    Raises:
        subprocess.CalledProcessError: it cannot be installed.
    """
    home = folder / environment.name
    (home / "home").mkdir(parents=True, exist_ok=True)
    if environment.python:
        _run(sys.executable, "-m", "venv", home / "venv")
        python = home / "venv" / "bin" / "python"
        _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *environment.python)
        names = [re.split(r"[=\[]", text)[0] for text in environment.python]
        code = "import sys\nfrom importlib.metadata import version\nfor n in sys.argv[1:]: print(n, version(n))"
        said = _run(python, "-c", code, *names)
        return dict(line.split() for line in said.splitlines())
    if environment.node:
        (home / "package.json").write_text('{"private": true}', "utf-8")
        _run("npm", "install", "--prefix", home, "--no-audit", "--no-fund", *environment.node)
        names = [text.rpartition("@")[0] for text in environment.node]
        read = {name: json.loads((home / "node_modules" / name / "package.json").read_text("utf-8")) for name in names}
        return {"node": _run("node", "--version").strip().lstrip("v"),
                **{name: about["version"] for name, about in read.items()}}
    return {}


def _run(*command: str | Path) -> str:
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout


def without_places(text: str) -> str:
    """One line of an installer, without addresses and paths."""
    lines = [line for line in text.splitlines() if "error" in line.lower()] or ["it cannot be installed"]
    return re.sub(r"\S*/\S*", "…", lines[-1])[:200]


# -- probes ----------------------------------------------------------------------------------------------------------


class Probe:
    """A program that asks with one client; it is started anew after it hung."""

    def __init__(self, environment: tables.Environment, folder: Path) -> None:
        self.home = folder / environment.name
        script = HERE / "probes" / environment.probe
        python = self.home / "venv" / "bin" / "python" if environment.python else sys.executable
        self.command = ["node" if environment.node else str(python), str(script)]
        self.running: subprocess.Popen[bytes] | None = None

    def ask(self, job: Mapping[str, Any]) -> Row:
        """What the client reports."""
        if self.running is None:
            self._start()
        assert self.running is not None
        assert self.running.stdin is not None
        self.running.stdin.write(json.dumps(job).encode() + b"\n")
        self.running.stdin.flush()
        line = self._line(tables.CELL_SECONDS)
        if line:
            return dict(json.loads(line))
        self.end()
        error = NO_END if line is None else "the program ended"
        return {"reason": None, "text": "", "ran": [], "gave": [], "error": error}

    def _line(self, seconds: float) -> bytes | None:
        """The next line that the program writes; empty where it ended, None where it takes longer."""
        assert self.running is not None
        assert self.running.stdout is not None
        ready, _, _ = select.select([self.running.stdout], [], [], seconds)
        return self.running.stdout.readline() if ready else None

    def _start(self) -> None:
        # Nothing of this machine's settings, credentials and proxies reaches a client.
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.home / "home"), "PYTHONPATH": str(ROOT),
                   "AWS_EC2_METADATA_DISABLED": "true", "PYTHONUNBUFFERED": "1"}
        if "venv" in self.command[0]:
            del environ["PYTHONPATH"]
        with (self.home / "said.log").open("ab") as said:
            self.running = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
                                            cwd=self.home, env=environ, bufsize=0)
        self._line(tables.START_SECONDS)  # it has loaded its libraries

    def end(self) -> None:
        """Ends the program."""
        if self.running is not None:
            self.running.kill()
            self.running.communicate()
            self.running = None


# -- cells -----------------------------------------------------------------------------------------------------------


def play(probe: Probe, provider: Provider, client: tables.Client, api: str, mode: str, story: Story) -> Row:
    """One cell: what a client makes of a scenario, held against what the scenario means."""
    why = why_unplayable(story, api, mode == "stream")
    row: Row = {"client": client.name, "format": api, "mode": mode, "scenario": story.name}
    if why:
        return {**row, "unplayed": why}
    tools = [{"name": each.tool.name, "description": each.tool.description or each.tool.name,
              "parameters": each.tool.schema, "result": each.result} for each in story.tools]
    before = len(provider.seen)
    came = probe.ask({
        "url": provider.url, "api": api, "loops": client.loops, "stream": mode == "stream", "model": story.name,
        "prompt": story.prompt, "tools": tools, "cap": tables.CAPS.get(story.name, tables.CAP),
        "timeout": tables.TIMEOUTS.get(story.name),
    })
    seen = provider.seen[before:]
    refusals = [each.error for each in seen if each.error]
    meant = {call.name: json.loads(call.arguments or "{}") for answer in story.answers for call in answer.calls}
    return {
        **row, "reason": came["reason"], "text": judge_text(came["text"], story, client.loops),
        "ran": [[name, compare_arguments(given, meant.get(name))] for name, given in came["ran"]],
        "gave": [[name, compare_arguments(given, meant.get(name))] for name, given in came["gave"]],
        "error": came["error"], "requests": len(seen), "refusal": refusals[-1] if refusals else None,
        "otherwise": any(each.request.stream is not (mode == "stream") for each in seen if not each.error),
    }


def judge_text(text: str, story: Story, loops: bool) -> str:
    """What of the intended text has come: of the last answer where a client runs tools, else of the first."""
    texts = [answer.text for answer in story.answers if answer.text]
    if not text.strip():
        return "empty"
    if not texts:
        return "other"
    last = texts[-1] if loops else texts[0]
    if text == last:
        return "whole"
    if text == texts[0]:
        return "first answer"
    return "part" if last.startswith(text) else "other"


def compare_arguments(given: str, meant: Any) -> str:
    """`whole` where a call has the arguments that were meant, else what it has."""
    try:
        return "whole" if json.loads(given) == meant else given
    except ValueError:
        return given


# -- the file --------------------------------------------------------------------------------------------------------


def data_text(versions: Mapping[str, Any], missing: Mapping[str, str], rows: list[Row]) -> str:
    """The data file: one cell a line."""
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    head = {"versions": versions, "missing": missing}
    return json.dumps(head, indent=1)[:-2] + ',\n "cells": [\n' + lines + "\n ]\n}\n"


def keys(row: Row) -> tuple[str, str, str, str]:
    """Which cell it is."""
    return row["client"], row["format"], row["mode"], row["scenario"]


def chosen(only: str | None) -> list[tuple[str, str, str, str]]:
    """The cells to play."""
    return [cell for cell in tables.cells() if not only or only in cell]


def play_cells(cells: list[tuple[str, str, str, str]], environment: tables.Environment, folder: Path) -> list[Row]:
    """Plays the cells of one environment, one after the other."""
    clients = {client.name: client for client in tables.CLIENTS if client.environment == environment.name}
    probe, rows = Probe(environment, folder), list[Row]()
    try:
        with serving() as provider:
            for name, api, mode, scenario in cells:
                if name in clients:
                    rows.append(play(probe, provider, clients[name], api, mode, STORIES[scenario]))
    finally:
        probe.end()
    print(f"played to {environment.name}: {len(rows)} cells", flush=True)
    return rows


def main(arguments: list[str]) -> int:
    """Installs, plays, writes."""
    parser = argparse.ArgumentParser(description="Plays scenarios to client libraries.")
    parser.add_argument("--only", metavar="WORD")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args(arguments)
    cells = chosen(given.only)
    if not cells:
        print(f"no client, format, mode or scenario is called {given.only!r}", file=sys.stderr)
        return 2
    before = json.loads(tables.DATA.read_text("utf-8")) if tables.DATA.exists() else {}
    versions, missing = dict(before.get("versions", {})), dict(before.get("missing", {}))
    needed = {client.environment for client in tables.CLIENTS for cell in cells if client.name == cell[0]}
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(AT_ONCE) as pool:
        folder = (given.folder or Path(temporary)).resolve()
        playing: list[Future[list[Row]]] = []
        for environment in tables.ENVIRONMENTS:
            if environment.name in needed:
                print(f"installing {environment.name}", flush=True)
                try:
                    versions[environment.name] = install(environment, folder)
                    missing.pop(environment.name, None)
                    playing.append(pool.submit(play_cells, cells, environment, folder))
                except (subprocess.CalledProcessError, OSError) as why:
                    missing[environment.name] = without_places(getattr(why, "stderr", "") or str(why))
        rows = {keys(row): row for future in playing for row in future.result()}
        kept = {keys(row): row for row in before.get("cells", ())}
        merged = {**kept, **rows}
        ordered = [merged[cell] for cell in tables.cells() if cell in merged]
        tables.DATA.write_text(data_text(versions, missing, ordered), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Where agents write their transcripts by default, and which of those are the newest.

Looks at names and times alone: nothing is opened here, and nothing is ever written there. A table: adding an agent is
one row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from heapq import nlargest
from typing import NamedTuple

from inspector.config.bounds import bounds

NEWEST = 24
"""Of more transcripts the older ones are not listed."""
LOOKED_AT = 20_000
"""Names that are looked at before a large folder is left."""


class Agent(NamedTuple):
    """One agent: its folder, by an environment variable or below the home folder, and where sessions lie in it."""

    name: str
    variable: str
    folder: str
    parts: tuple[str, ...]
    """Folder names down to the files, `*` for any one folder and `**` for any depth."""


AGENTS: tuple[Agent, ...] = (
    Agent("Claude Code", "CLAUDE_CONFIG_DIR", ".claude", ("projects", "*")),
    Agent("pi", "PI_CODING_AGENT_DIR", ".pi/agent", ("sessions", "**")),
    Agent("OpenClaw", "OPENCLAW_STATE_DIR", ".openclaw", ("agents", "*", "sessions")),
)


class Transcript(NamedTuple):
    """A file that an agent wrote, unopened."""

    modified: float
    """Seconds since the epoch."""
    path: str
    size: int
    agent: str


def transcripts(environment: Mapping[str, str], most: int = NEWEST) -> list[Transcript]:
    """The newest transcripts of all agents; `environment` says where home is."""
    within = bounds(environment)
    return nlargest(most, (each for each in _all(environment) if within.holds(each.path)))


def _all(environment: Mapping[str, str]) -> Iterator[Transcript]:
    home = environment.get("HOME") or environment.get("USERPROFILE")
    for agent in AGENTS:
        root = environment.get(agent.variable) or (os.path.join(home, agent.folder) if home else "")
        left = [LOOKED_AT]
        for entry in _files(root, agent.parts, left) if root else ():
            try:
                seen = entry.stat()
            except OSError:
                continue
            yield Transcript(seen.st_mtime, entry.path, seen.st_size, agent.name)


def _files(folder: str, parts: tuple[str, ...], left: list[int]) -> Iterator[os.DirEntry[str]]:
    """The `.jsonl` files below a folder; links are followed to files, never to folders."""
    if parts and parts[0] not in ("*", "**"):
        yield from _files(os.path.join(folder, parts[0]), parts[1:], left)
        return
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:
        return
    for entry in entries:
        left[0] -= 1
        if left[0] < 0:
            return
        try:
            is_folder, is_file = entry.is_dir(follow_symlinks=False), entry.is_file()
        except OSError:
            continue
        if is_folder and parts:
            yield from _files(entry.path, parts if parts[0] == "**" else parts[1:], left)
        elif is_file and entry.name.endswith(".jsonl") and parts in ((), ("**",)):
            yield entry

"""The file formats that can be read, one file and one line each, in the order in which they are asked.

Each is imported when it is first asked, so that a file that the first one knows does not pay for the others. What reads
an agent's transcript is large and imported for such a file alone: by what they are known stands in `transcripts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import cast

from inspector.sessions.recording import ODD, Importer

IMPORTERS: Mapping[str, str] = {
    "har": "inspector.sessions.importers.har.HARImporter",
    "session": "inspector.sessions.importers.native.NativeImporter",
    "claude-code": "inspector.sessions.importers.transcripts.ClaudeCodeImporter",
    "pi": "inspector.sessions.importers.transcripts.PiImporter",
    "known": "inspector.sessions.importers.known.KnownImporter",
    "pairs": "inspector.sessions.importers.pairs.PairsImporter",
    "body": "inspector.sessions.importers.body.BodyImporter",
}
BESIDE: Mapping[str, str] = {"claude-code": "subagents/*.jsonl"}
"""Format -> files that belong to one of it: below a folder of the file's name without its suffix."""
CERTAIN = 100
HEAD = 1 << 16


@cache
def importer(name: str) -> Importer:
    """The importer of this name."""
    module, _, kind = IMPORTERS[name].rpartition(".")
    return cast("Importer", getattr(import_module(module), kind)())


def choose(head: bytes, path: str) -> Importer | None:
    """The importer that is surest of a file that begins with `head`; None where none knows it."""
    best, best_score = None, 0
    for name in IMPORTERS:
        one = importer(name)
        try:
            score = one.sniff(head, path)
        except ODD:
            continue  # what it cannot look at is none of its files
        if score >= CERTAIN:
            return one
        if score > best_score:
            best, best_score = one, score
    return best

"""Calls that the DevTools of Vercel's AI SDK recorded: `.devtools/generations.json`, an object with `runs` and `steps`.

A step is one request to a model. It has the body of the request (`raw_request`) and the provider's own answer: the
object (`raw_response`) or, of a stream, its events (`raw_chunks`); its `raw_response` holds the SDK's own events. Each
is JSON in a string. Source: vercel/ai `packages/devtools/src/db.ts`, `middleware.ts`; files that 1.0.22 wrote.
"""

from __future__ import annotations

import json
from typing import Any

from inspector.sessions.importers import pairs
from inspector.sessions.importers.records import Piece, complete, first_look, list_pieces, object_in
from inspector.sessions.recording import FileReading, Options, UnreadableError
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from loop_core.values import TransportEnd

STEP = frozenset({"run_id", "step_number", "model_id"})
"""Members with which every step begins."""
RUN = frozenset({"id", "started_at"})
"""Members of every run."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the first step; where the runs fill the head, the first run."""
    first = object_of(first_look(head).first)
    steps, runs = objects_of(first.get("steps")), objects_of(first.get("runs"))
    if steps:
        return 100 if steps[0].keys() >= STEP else 0
    return 60 if runs and runs[0].keys() >= RUN else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every step as a pair of a request and its answer."""
    pieces = list(list_pieces(data, "steps"))
    if not pieces:
        raise UnreadableError("no step in it: expected the list `steps`")
    reading = pairs.read(b"\n".join(map(_pair, pieces)) + b"\n", path, options)
    for raw in reading.raws:
        step = object_in(pieces[raw.entry][1])
        raw.session = known_text(step.get("run_id")) or ""  # two runs may begin with the same request
        if (why := known_text(step.get("error"))) is not None:
            raw.end, raw.problem = TransportEnd.ABORTED, why
    return reading


def _pair(piece: Piece) -> bytes:
    """A step as one line of a log of pairs, with the texts of the provider as they are."""
    step = object_in(piece[1])
    if not step:
        return piece[1].replace(b"\n", b" ")  # cut: the reader of pairs says so
    about: dict[str, Any] = {"timestamp": step.get("started_at"), "duration_ms": step.get("duration_ms")}
    asked, chunks, whole = (_json_in(step, name) for name in ("raw_request", "raw_chunks", "raw_response"))
    answer = chunks if step.get("type") == "stream" else whole
    if answer is None:
        about["error"] = known_text(step.get("error")) or "no answer of the provider in it"
    texts = {"request": asked, "response": answer}
    members = [f'"{name}": {text}' for name, text in texts.items() if text is not None]
    return (", ".join([json.dumps(about)[:-1], *members]) + "}").encode()


def _json_in(step: dict[str, Any], name: str) -> str | None:
    """The JSON text in a member; None if there is none."""
    text = known_text(step.get(name))
    return text if text is not None and complete(text) else None

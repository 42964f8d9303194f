"""Calls that the DevTools of Vercel's AI SDK recorded: `.devtools/generations.json`, an object with `runs` and `steps`.

A step is one request to a model. It has the body of the request (`raw_request`) and the provider's own answer: the
object (`raw_response`) or, for a stream, its events (`raw_chunks`); then `raw_response` has the SDK's own events. Each
is JSON in a string. From AI SDK 7 on the DevTools are told of each step by the SDK's telemetry: then a step has the
SDK's own `input` and `output` in place of these, with its stop word. One file may have steps of both kinds. Source:
vercel/ai `packages/devtools/src/db.ts`, `middleware.ts`; files that 1.0.22 wrote.
"""

from __future__ import annotations

import json
from typing import Any

from inspector.sessions.importers import pairs
from inspector.sessions.importers.ai_sdk_result import StepReader
from inspector.sessions.importers.records import complete, elements, first_look, object_in
from inspector.sessions.recording import FileReading, Options, Skipped, UnreadableError
from inspector.sessions.transcripts import TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from loop_core.values import TransportEnd

STEP = frozenset({"run_id", "step_number", "model_id"})
"""The first members of every step."""
RUN = frozenset({"id", "started_at"})
"""Members of every run."""
RAW = ("raw_request", "raw_response", "raw_chunks")
"""The members with what was sent and received."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the first step or, if the runs fill the head, the first run."""
    first = object_of(first_look(head).first)
    steps, runs = objects_of(first.get("steps")), objects_of(first.get("runs"))
    if steps:
        return 100 if steps[0].keys() >= STEP else 0
    return 60 if runs and runs[0].keys() >= RUN else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every step as a pair of a request and its answer."""
    steps = [(object_in(piece), piece) for piece in elements(data, "steps")]
    if not steps:
        raise UnreadableError("no step in it: expected the list `steps`")
    # A project that moved to AI SDK 7 keeps its older steps. Of a cut step it is not known which it is.
    older = [at for at, (step, _) in enumerate(steps) if not step or any(known_text(step.get(name)) for name in RAW)]
    if not any(steps[at][0] for at in older):
        older = []
    rows = [(at + 1, _row(step), True) for at, (step, _) in enumerate(steps) if at not in set(older)]
    told = options._replace(growth=None) if older else options
    reading = _Telemetry(path, told).read_records(rows) if rows else FileReading()
    if older:
        _add_pairs(reading, steps, older, path, options)
    return reading


def _add_pairs(
    reading: FileReading, steps: list[tuple[dict[str, Any], bytes]], older: list[int], path: str, options: Options
) -> None:
    """Adds the steps at the indices in `older`, which have the provider's own answers."""
    # The reader of pairs reports what is wrong with a step that is cut or no object.
    lines = [_pair(step) if step else piece.replace(b"\n", b" ") for step, piece in map(steps.__getitem__, older)]
    found = pairs.read(b"\n".join(lines) + b"\n", path, options)
    for raw in found.raws:
        raw.entry = older[raw.entry]
        step = steps[raw.entry][0]
        raw.session = known_text(step.get("run_id")) or ""  # two runs may begin with the same request
        if (why := known_text(step.get("error"))) is not None:
            raw.end, raw.problem = TransportEnd.ABORTED, why
    reading.raws, reading.error = found.raws, found.error
    reading.skipped += [Skipped(older[each.entry], each.why) for each in found.skipped]
    reading.notices += found.notices
    reading.masked.update(found.masked)


def _pair(step: dict[str, Any]) -> bytes:
    """A step as one line of a log of pairs, with the provider's texts unchanged."""
    about: dict[str, Any] = {"timestamp": step.get("started_at"), "duration_ms": step.get("duration_ms")}
    answer = _json_in(step, "raw_chunks" if step.get("type") == "stream" else "raw_response")
    if answer is None:
        about["error"] = known_text(step.get("error"))
    texts = {"request": _json_in(step, "raw_request"), "response": answer}
    members = [f'"{name}": {text}' for name, text in texts.items() if text is not None]
    return (", ".join([json.dumps(about)[:-1], *members]) + "}").encode()


def _json_in(step: dict[str, Any], name: str) -> str | None:
    """The JSON text in a member; None if there is none."""
    text = known_text(step.get(name))
    return text if text is not None and complete(text) else None


def _row(step: dict[str, Any]) -> bytes:
    """A step of the telemetry as a row, with the text of the SDK's output unchanged."""
    asked = object_in((_json_in(step, "input") or "{}").encode())
    about: dict[str, Any] = {
        "run": known_text(step.get("run_id")), "error": known_text(step.get("error")),
        "asked": [each for each in objects_of(asked.get("prompt")) if each.get("role") == "user"][-1:],
        "request": {"body": {"max_output_tokens": asked.get("maxOutputTokens")}}}
    output = (_json_in(step, "output") or "").strip()
    members = [json.dumps(about)[1:-1], f'"usage": {_json_in(step, "usage") or "null"}']
    if output.startswith("{") and (inner := output[1:-1].strip()):
        members.append(inner)
    return ("{" + ", ".join(members) + "}").encode()


class _Telemetry(StepReader):
    """Reads the steps that the SDK's telemetry reported; each run is a conversation."""

    name = "ai-devtools"
    run: str | None = None
    """The run of the step before."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value = line.value
        if not self.answers or value.get("run") != self.run:
            self.run = known_text(value.get("run"))
            place = self.say(line, TreePlace(None), "\n".join(text_of(each.get("content"))
                                                              for each in objects_of(value.get("asked"))))
        why = known_text(value.get("error"))
        if known_text(value.get("finishReason")) is not None and why is None:
            return super().take(line, lines, place)
        failed = self.failed_request(line, place, why, after_results=True) if why is not None else None
        if failed is None:
            self.skip(line, why or "no answer in it")
        return failed or place

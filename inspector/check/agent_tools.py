"""What an agent may ask of recorded sessions, as plain values: the tools of `inspector mcp`, without its protocol.

Read-only. Every answer is masked, and bounded: texts are cut, and say so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from inspector.check.examine import check_file
from inspector.check.formats import document as report_document
from inspector.config.files import check_bounds
from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import ResponseFacts, View, view
from inspector.report.lines.spans import one_line
from inspector.sessions import open_paths, redact
from inspector.sessions.agents import transcripts
from loop_core.errors import CallerError

MOST_TEXT = 4_000
"""Characters of a text that are given; of more, the beginning and the end."""
MOST_ROWS = 200
"""Turns or problems that are given; of more, how many there are."""


def list_sessions(folder: str = "", most: int = 50) -> dict[str, Any]:
    """The newest sessions that agents on this machine wrote, or the files of a folder.

    Raises:
        CallerError: the folder may not be read, or is none.
    """
    if folder:
        _check(folder)
        if not os.path.isdir(folder):
            raise CallerError(f"{folder}: no folder")
        found = sorted((entry for entry in os.scandir(folder) if entry.is_file()),
                       key=lambda entry: -entry.stat().st_mtime)
        rows = [{"path": entry.path, "agent": "", "size": entry.stat().st_size} for entry in found]
    else:
        rows = [{"path": each.path, "agent": each.agent, "size": each.size} for each in transcripts(os.environ)]
    most = max(1, min(most, MOST_ROWS))
    return _masked({"sessions": rows[:most], "more": max(0, len(rows) - most)})


def why_did_it_stop(path: str) -> dict[str, Any]:
    """The headline of a session, and of each turn: verdict, what happened, what to change, and the stop reasons.

    Raises:
        CallerError: the file cannot be read.
    """
    shown = _view(path)
    turns = [{
        "turn": number, "verdict": turn.verdict.word, "severity": turn.verdict.severity.value,
        "complete": turn.verdict.complete, "what_happened": turn.verdict.sentence,
        "what_to_change": turn.verdict.advice.text if turn.verdict.advice else "",
        "user": one_line(turn.run.record.user_text, 200), "responses": list(turn.responses),
        "stop_reasons": [_reason(shown.responses[link.index]) for link in turn.run.record.links],
    } for number, turn in enumerate(shown.turns, start=1)]
    # The worst first: a long session is cut, and what matters must be in it.
    order = sorted(range(len(turns)), key=lambda at: shown.turns[at].verdict.rank)
    return _masked({"headline": shown.headline(), "turns": [turns[at] for at in order[:MOST_ROWS]],
                    "more": max(0, len(turns) - MOST_ROWS)})


def findings(path: str, rules: Sequence[str] = ()) -> dict[str, Any]:
    """What the rules of `inspector check` find in a file.

    Raises:
        CallerError: there is no such rule, or the file cannot be read.
    """
    _check(path)
    report = check_file(path, list(rules) or None)
    if report.errors and not report.turns:
        raise CallerError(report.errors[0])
    made = report_document(report)
    del made["turns"]
    made["more"] = max(0, len(made["problems"]) - MOST_ROWS)
    made["problems"] = made["problems"][:MOST_ROWS]
    return _masked(made)


def response(path: str, index: int) -> dict[str, Any]:
    """One response: its reasons with their evidence, its text, and each call with whether it may run.

    Raises:
        CallerError: the file cannot be read, or has no such response.
    """
    shown = _view(path)
    if not 0 <= index < len(shown.responses):
        raise CallerError(f"{path}: no response {index}: expected 0 to {len(shown.responses) - 1}")
    facts = shown.responses[index]
    answer = facts.exchange.response
    return _masked({
        "api": facts.exchange.api, "model": facts.exchange.model, **_reason(facts),
        "evidence": [{"rule": seen.rule, "note": seen.note, "at": str(seen.at) if seen.at is not None else ""}
                     for seen in facts.evidence],
        "text": _cut(answer.text or ""), "reasoning": _cut(answer.reasoning_content or ""),
        "calls": [{"name": verdict.call.name, "admission": verdict.admission.value, "why": verdict.why,
                   "arguments": _cut(verdict.call.arguments or "")} for verdict in facts.verdicts],
        "output_tokens": answer.usage.output_tokens if answer.usage else None,
        "cap": facts.exchange.request.max_tokens if facts.exchange.request else None,
    })


def what_if(path: str, limits: Mapping[str, str]) -> dict[str, Any]:
    """How each turn would have ended under other limits or another policy, over the recording or simulated.

    Raises:
        CallerError: the file cannot be read, or there is no such limit.
    """
    settings = settings_of({name: str(value) for name, value in limits.items()}, Settings())
    if settings.live is not None:
        raise CallerError("nothing is asked live here")
    before, after = _view(path), _view(path, settings)
    rows = [{"turn": number, "before": old.verdict.word, "after": new.verdict.word,
             "what_happened": new.verdict.sentence}
            for number, (old, new) in enumerate(zip(before.turns, after.turns, strict=False), start=1)
            if old.verdict.sentence != new.verdict.sentence]
    return _masked({"complete_before": before.complete, "complete_after": after.complete, "turns": len(before.turns),
                    "changed": rows[:MOST_ROWS], "more": max(0, len(rows) - MOST_ROWS)})


# -- What they share ---------------------------------------------------------------------------------------------------


def _check(path: str) -> None:
    try:
        check_bounds(path)
    except OSError as why:
        raise CallerError(f"{path}: cannot be read: {why.strerror or why}") from None


def _view(path: str, settings: Settings | None = None) -> View:
    _check(path)
    if os.path.isdir(path):
        raise CallerError(f"{path}: a folder; expected one file")
    loaded = open_paths([path])
    if not loaded.exchanges:
        why = next((given.error for given in loaded.inputs if given.error), "no answer of a model is in it")
        raise CallerError(why)
    return view(replay(open_case(loaded), settings or Settings()))


def _reason(facts: ResponseFacts) -> dict[str, Any]:
    stop = facts.judged.stop
    return {"raw": stop.raw, "stop_reason": stop.normalized.value, "detail": stop.detail}


def _cut(text: str) -> str:
    if len(text) <= MOST_TEXT:
        return text
    half = MOST_TEXT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def _masked(value: dict[str, Any]) -> dict[str, Any]:
    masked: dict[str, Any] = redact.texts(value)
    return masked

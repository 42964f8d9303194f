"""What leaves the program: a session as a document, an exchange for other tools, a bug report. Masked once more.

`FORMS` is the list of forms; each makes texts by file name, and opens no file itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from inspector.report.facts import ResponseFacts, TurnFacts, View
from loop_core.errors import CallerError


class Chosen(NamedTuple):
    """What is exported: a view, and where the operator stands in it."""

    view: View
    turn: TurnFacts | None = None
    """None: the whole session, where the form can hold it."""
    response: ResponseFacts | None = None
    name: str = "session"
    """What the files are called, without a suffix."""


class Form(NamedTuple):
    """One form: what it is, and how its files are made."""

    about: str
    make: Callable[[Chosen], Mapping[str, str]]


def _only(chosen: Chosen) -> list[int] | None:
    return None if chosen.turn is None else [chosen.view.number(chosen.turn) - 1]


def _response(chosen: Chosen) -> ResponseFacts:
    if chosen.response is None:
        raise CallerError("choose a response: no response is at hand here")
    return chosen.response


def _number(facts: ResponseFacts) -> str:
    """What tells files of different responses apart; a simulated one has no index, but a step."""
    return str(facts.index) if facts.index >= 0 else f"step_{facts.step + 1}"


def _turn(chosen: Chosen) -> TurnFacts:
    turn = chosen.turn or chosen.view.worst
    if turn is None:
        raise CallerError("nothing was read, so there is nothing to report")
    return turn


def _html(chosen: Chosen) -> Mapping[str, str]:
    from inspector.export.pages import blocks, html

    return {f"{chosen.name}.html": html(blocks(chosen.view, _only(chosen)))}


def _markdown(chosen: Chosen) -> Mapping[str, str]:
    from inspector.export.pages import blocks, markdown

    return {f"{chosen.name}.md": markdown(blocks(chosen.view, _only(chosen)))}


def _text(chosen: Chosen) -> Mapping[str, str]:
    from inspector.report.explain import text
    from inspector.sessions import redact

    only = None if chosen.turn is None else chosen.turn.responses
    return {f"{chosen.name}.txt": redact.text(text(chosen.view, only, with_bytes=True))}


def _json(chosen: Chosen) -> Mapping[str, str]:
    from inspector.report.explain import document
    from inspector.sessions import redact

    return {f"{chosen.name}.json": json.dumps(redact.texts(document(chosen.view)), ensure_ascii=True, indent=1) + "\n"}


def _curl(chosen: Chosen) -> Mapping[str, str]:
    from inspector.export.exchange_files import curl

    facts = _response(chosen)
    return {f"{chosen.name}-{_number(facts)}.sh": curl(facts)}


def _fixture(chosen: Chosen) -> Mapping[str, str]:
    from inspector.export.exchange_files import fixture

    facts = _response(chosen)
    return {f"test_{chosen.name.replace('-', '_')}_{_number(facts)}.py": fixture(facts)}


def _session(chosen: Chosen) -> Mapping[str, str]:
    from inspector.export.exchange_files import session_of

    wanted = chosen.view.responses if chosen.turn is None else [
        chosen.view.responses[index] for index in chosen.turn.responses]
    made = session_of([facts.exchange for facts in wanted], chosen.name)
    return {f"{chosen.name}.jsonl": made.decode("utf-8")}


def _otlp(chosen: Chosen) -> Mapping[str, str]:
    import time

    from inspector.export import otlp
    from inspector.export.otel_spans import spans
    from inspector.export.telemetry import points

    view, only, now = chosen.view, _only(chosen), time.time_ns()
    made = spans(view, now, only=only)
    begun, over = min((span.start for span in made), default=now), max((span.end for span in made), default=now)
    return {f"{chosen.name}.traces.json": otlp.traces(made),
            f"{chosen.name}.metrics.json": otlp.metrics(points(view, only), begun, over)}


def _otlp_content(chosen: Chosen) -> Mapping[str, str]:
    import time

    from inspector.export import otlp
    from inspector.export.otel_spans import spans

    made = spans(chosen.view, time.time_ns(), with_content=True, only=_only(chosen))
    return {f"{chosen.name}-content.traces.json": otlp.traces(made)}


def _bug(chosen: Chosen) -> Mapping[str, str]:
    from inspector.export.exchange_files import bug_report

    return bug_report(chosen.view, _turn(chosen))


FORMS: Mapping[str, Form] = {
    "html": Form("the session as a page that needs nothing else", _html),
    "md": Form("the session as Markdown", _markdown),
    "text": Form("the session as linear text", _text),
    "json": Form("the session as one document for programs", _json),
    "session": Form("the exchanges as a session file", _session),
    "curl": Form("the request of the response as a curl command", _curl),
    "fixture": Form("the response as a test of the engine", _fixture),
    "otlp": Form("traces and metrics for OpenTelemetry, without contents", _otlp),
    "otlp-content": Form("traces for OpenTelemetry, with what was said", _otlp_content),
    "bug": Form("a bug report: the smallest session that shows the finding, and its command", _bug),
}
"""Name -> form, in the order in which they are offered."""

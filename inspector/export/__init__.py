"""Exports sessions as documents, exchanges for other tools, and bug reports. Credentials are masked once more.

`FORMS` lists the forms; each returns texts by file name and opens no file. `form_files` makes the files of a form that
the operator named. `write` writes files into a folder, `save_output` the file that an option names; both overwrite a
file only if they are allowed to.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from inspector.config.files import folder_named, replace_all
from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.lines.spans import one_line
from inspector.sessions import redact
from loop_core.errors import CallerError


class ExportScope(NamedTuple):
    """The input of an export: a view, and the operator's place in it."""

    view: View
    turn: TurnFacts | None = None
    """The chosen turn; None: the whole session, if the form can hold it."""
    response: ResponseFacts | None = None
    name: str = "session"
    """The name of the files, without a suffix."""


class Form(NamedTuple):
    """One form of export: its description, and the function that makes its files."""

    about: str
    make: Callable[[ExportScope], Mapping[str, str]]
    holds: str = "turn"
    """The part of a session in the form: `turn` (all turns or one), `response`, or the whole `session`."""


def _only(scope: ExportScope) -> list[int] | None:
    return None if scope.turn is None else [scope.view.number(scope.turn) - 1]


def _response(scope: ExportScope) -> ResponseFacts:
    if scope.response is None:
        every = len(scope.view.responses)
        raise CallerError(f"choose a response: --response 1 to {every}, or in the app a step that has one")
    return scope.response


def _number(facts: ResponseFacts) -> str:
    """The part of a file name that tells responses apart: its number, else a mark and the step."""
    mark = f"{facts.fidelity.value.lower()}_" if facts.is_made else ""
    return mark + (str(facts.index + 1) if facts.index >= 0 else f"step_{facts.step + 1}")


def _page(scope: ExportScope, suffix: str) -> Mapping[str, str]:
    from inspector.export import pages

    write = pages.html if suffix == "html" else pages.markdown
    return {f"{scope.name}.{suffix}": write(pages.blocks(scope.view, _only(scope)))}


def _text(scope: ExportScope) -> Mapping[str, str]:
    from inspector.report.explain import text

    only = None if scope.turn is None else scope.turn.responses
    return {f"{scope.name}.txt": redact.text(text(scope.view, only, with_bytes=True))}


def _json(scope: ExportScope) -> Mapping[str, str]:
    from inspector.report.explain_document import document
    from inspector.report.run_answers import settings_words

    under = settings_words(scope.view)
    masked_document = redact.texts({**document(scope.view), **({"settings": under} if under else {})})
    # in ASCII, because lone surrogates can then be written too
    return {f"{scope.name}.json": json.dumps(masked_document, ensure_ascii=True, indent=1) + "\n"}


def _curl(scope: ExportScope) -> Mapping[str, str]:
    from inspector.export.exchange_files import curl

    facts = _response(scope)
    return {f"{scope.name}-{_number(facts)}.sh": curl(facts)}


def _fixture(scope: ExportScope) -> Mapping[str, str]:
    from inspector.export.exchange_files import fixture

    facts = _response(scope)
    return {f"test_{scope.name.replace('-', '_')}_{_number(facts)}.py": fixture(facts)}  # a name that Python can import


def _session(scope: ExportScope) -> Mapping[str, str]:
    from inspector.export.exchange_files import recorded_limits, session_of, session_responses

    responses = session_responses(scope.view, scope.view.turns if scope.turn is None else (scope.turn,))
    limits = recorded_limits(scope.view, responses)
    return {f"{scope.name}.jsonl": session_of(responses, scope.name, scope.view.inputs, limits).decode("utf-8")}


def _otlp(scope: ExportScope) -> Mapping[str, str]:
    from inspector.export import telemetry

    view, only, now = scope.view, _only(scope), time.time_ns()
    spans = telemetry.spans(view, now, only=only)
    begun, over = min((span.start for span in spans), default=now), max((span.end for span in spans), default=now)
    return {f"{scope.name}.traces.json": telemetry.traces(spans),
            f"{scope.name}.metrics.json": telemetry.metrics(telemetry.points(view, only), begun, over)}


def _otlp_content(scope: ExportScope) -> Mapping[str, str]:
    from inspector.export import telemetry

    spans = telemetry.spans(scope.view, time.time_ns(), with_content=True, only=_only(scope))
    return {f"{scope.name}-content.traces.json": telemetry.traces(spans)}


def _bug(scope: ExportScope) -> Mapping[str, str]:
    from inspector.export.exchange_files import bug_report

    turn = scope.turn or scope.view.worst
    if turn is None:
        raise CallerError("nothing was read, so there is nothing to report")
    return bug_report(scope.view, turn)


FORMS: Mapping[str, Form] = {
    "bug": Form("a report: the deciding bytes and the smallest session", _bug),
    "html": Form("the session as a page, with the deciding bytes", partial(_page, suffix="html")),
    "md": Form("the session as Markdown, with the deciding bytes", partial(_page, suffix="md")),
    "text": Form("the session as linear text, with the deciding bytes", _text),
    "json": Form("the session as one document for programs", _json, "session"),
    "session": Form("the exchanges as a session file", _session),
    "curl": Form("the request of the response as a curl command", _curl, "response"),
    "fixture": Form("the response as a test of the engine", _fixture, "response"),
    "otlp": Form("traces and metrics for OpenTelemetry, without contents", _otlp),
    "otlp-content": Form("traces for OpenTelemetry, with prompts and answers", _otlp_content),
}
"""Name -> form, in the order in which forms are listed."""
HOLDS: Mapping[str, str] = {
    "turn": "turns; --turn N chooses one", "response": "one response; --response N chooses it",
    "session": "the whole session; leave it out",
}
"""Value of `Form.holds` -> the words in the error message if the operator chose another part."""


# -- The form that an operator named, and its files ------------------------------------------------------------------


def check_form(form: str, turn: int | None, response: int | None) -> None:
    """Checks a form before anything is read. Raises `CallerError` if there is no such form, or if it would ignore the
    chosen turn or response."""
    if form not in FORMS:
        raise CallerError(f"unknown form {form!r}; expected one of {', '.join(FORMS)}")
    holds = FORMS[form].holds
    for option, number in (("turn", turn), ("response", response)):
        if number is not None and holds != option:
            raise CallerError(f"--{option} {number}: {form} holds {HOLDS[holds]}")


def form_files(view: View, form: str, turn: int | None = None, response: int | None = None) -> Mapping[str, str]:
    """The files of one form: name -> content. Turns and responses are numbered from 1. Raises `CallerError` if there is
    no such turn or response, or the form cannot hold it."""
    chosen = None if turn is None else view.numbered(turn)
    if response is not None and not 1 <= response <= len(view.responses):
        raise CallerError(f"there is no response {response}; expected 1 to {len(view.responses)}")
    facts = None if response is None else view.responses[response - 1]
    if facts is None and len(view.responses) == 1:
        facts = view.responses[0]
    return FORMS[form].make(ExportScope(view, chosen, facts, name_of(view)))


def name_of(view: View) -> str:
    """The base name of a session's exported files, after the file that it was read from."""
    return stem_of(view.inputs[0].path) if len(view.inputs) == 1 else "sessions"


OWN = "session.jsonl"
"""The end of a session file's name, which is left out of the names of exports."""


def stem_of(path: str) -> str:
    """A file name without dots; names that differ only after the first dot stay different."""
    name = redact.text(Path(path).name)  # now: a credential whose dots became hyphens is not recognized
    head, _, rest = name.partition(".")
    stem = _word(head) or "session"
    if rest in ("", OWN):
        return stem
    if re.fullmatch(r"\w+(?:\.\w+)*", rest):  # no other name gives the same hyphens
        return f"{stem}-{rest.replace('.', '-')}"
    # `_word` gives equal results for different names
    return f"{stem}-{_word(rest)}-{crc32(rest.encode('utf-8', 'surrogateescape')):08x}"


def _word(text: str) -> str:
    return re.sub(r"[^\w-]+", "-", text).strip("-")


def encode_file(content: str) -> bytes:
    """The bytes of a file, with credentials masked; lone surrogates are written as escapes."""
    return redact.text(content).encode("utf-8", "backslashreplace")


class Written(NamedTuple):
    """The result of `write`."""

    paths: tuple[str, ...]
    new_folder: bool
    """Whether the folder was created for the files."""


def write(files: Mapping[str, str], folder: str, force: bool = False) -> Written:
    """Writes the files into a folder, which is made if its parent exists; a name that ends as the only file does is
    that file. Raises `CallerError` if the folder cannot be written or, without `force`, one of the files exists;
    existing files are then unchanged."""
    target = Path(folder)
    if target.suffix and target.suffix in {Path(name).suffix for name in files} and not target.is_dir():
        if len(files) > 1:
            raise CallerError(f"{folder}: this form is {len(files)} files: expected the name of a folder")
        folder, files = str(target.parent), {target.name: next(iter(files.values()))}
    paths = {Path(folder) / name: content for name, content in files.items()}
    there = [path for path in paths if path.exists()]
    if there and not force:
        raise CallerError(f"{there[0]}: exists; --force overwrites it")
    try:
        new = folder_named(folder)
        replace_all({path: encode_file(content) for path, content in paths.items()})
    except OSError as why:
        raise CallerError(f"{folder}: cannot be written: {why.strerror or why}") from None
    return Written(tuple([str(path) for path in paths]), new)


NO_FILE = "-"
"""The value of an option such as `--csv` that means standard output."""


def check_output(
    path: str | None, paths: Sequence[str], force: bool, option: str = "--csv", others: Collection[str | None] = ()
) -> None:
    """Checks before the run that an output file may be written. Raises `CallerError` if it exists and `force` is not
    given, or if it is one of the sessions that are read, or one of the `others` that are written."""
    if path is None or path == NO_FILE:
        return
    if path in others:
        raise CallerError(f"{option} {one_line(path)}: another output goes there; expected another path")
    target = Path(path)
    try:
        if not target.is_file():
            return
        if any(session_path != "-" and os.path.exists(session_path) and target.samefile(session_path)
               for session_path in paths):
            raise CallerError(f"{option} {one_line(path)}: this session was read; expected another path")
    except OSError as why:
        raise CallerError(f"{option} {one_line(path)}: cannot be written: {why.strerror}") from why
    if not force:
        raise CallerError(f"{option} {one_line(path)}: exists; --force overwrites it")


def save_output(path: str | None, content: Callable[[], str], option: str = "--csv") -> None:
    """Writes a file, if `path` names one. Raises `CallerError` if that fails; the old file is then unchanged."""
    if path is None or path == NO_FILE:
        return
    try:
        replace_all({Path(path): content().encode("utf-8", "backslashreplace")})
    except OSError as why:
        raise CallerError(f"{option} {one_line(path)}: cannot be written: {why.strerror}") from why

"""Writes a check report as text, JSON, JUnit, SARIF, GitHub annotations, Markdown, and as a baseline of known problems.

Sources: SARIF 2.1.0 (OASIS standard); JUnit as Jenkins and GitLab read it; GitHub's workflow commands. All texts of a
report are already masked. The forms for programs are ASCII with the escapes of their syntax, so that they are equal in
terminals and logs of any encoding, and no text in them acts as a command.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import Any
from urllib.parse import quote

from inspector import __version__
from inspector.check.reports import Problem, Report
from inspector.check.rules import RULES
from inspector.report.ci_log import without_ci_commands
from inspector.report.lines.spans import count_of, escape_markdown, inert, one_line
from inspector.sessions import intake, redact
from inspector.sessions.file_format import entry_name
from loop_core.errors import CallerError
from loop_core.values import Severity

SCHEMA = "loop-inspector/check/1"
ORDER: Sequence[str] = tuple(Severity)
"""The severities, worst first."""
GLYPHS: Mapping[str, str] = {"error": "✖", "warning": "▲", "info": "·"}
_LEVELS: Mapping[str, str] = {"error": "error", "warning": "warning", "info": "note"}
"""Severity of a problem -> SARIF's level."""
_COMMANDS: Mapping[str, str] = {"error": "error", "warning": "warning", "info": "notice"}
"""Severity of a problem -> GitHub's workflow command."""


def place(problem: Problem) -> str:
    """The place of a problem: the file, its line or entry, the turn, the byte."""
    where = "" if problem.record is None else (
        f":{problem.line}" if problem.line is not None else f" {entry_name('', problem.record)}")
    byte = f", byte {problem.start:,}" if problem.start is not None else ""
    return f"{one_line(problem.file)}{where}, turn {problem.turn}{byte}"


def totals_line(report: Report) -> str:
    """The totals of a report in one line."""
    counts = Counter(problem.severity for problem in report.problems)
    turns = report.recorded_turns
    incomplete = sum(not turn.complete for turn in turns)
    found = ", ".join(count_of(counts[severity], severity, "info" if severity == "info" else "")
                      for severity in ORDER if counts[severity])
    found = found or ("nothing found" if turns else "nothing was checked")
    read = count_of(len(report.files), "file")
    empty = sum(not (file.turns or file.error or file.stands_in) for file in report.files)
    read += f", {empty:,} of them without a turn" if empty else ""
    skipped = f", {count_of(report.skipped, 'file is no session', 'files are no sessions')}" if report.skipped else ""
    errors = f", {len(report.errors):,} could not be read" if report.errors else ""
    ended = f"{count_of(len(turns), 'turn')}{report.not_counted}, {incomplete:,} not complete"
    return f"{found} · {ended} · {read}{skipped}{errors}{unread(report)}"


def unread(report: Report) -> str:
    """The exchanges that a report leaves out, because their formats are not read."""
    names = ", ".join(f"{name} ({count:,})" for name, count in report.unread.most_common())
    return f", {count_of(report.unread.total(), 'exchange')} in formats that are not read: {names}" if names else ""


COLUMNS = 80
"""The width of the text report in columns. A place is never broken, so that it can be copied."""


def _wrap(line: str, indent: int) -> str:
    return fill(line, COLUMNS, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def text(report: Report) -> str:
    """The text report: each problem with its place and rule, then the totals."""
    lines = []
    for problem in report.problems:
        lines.append(_wrap(f"{GLYPHS[problem.severity]} {problem.severity:<8}{problem.rule}  {problem.message}", 6))
        lines.append(f"    {place(problem)}")
    fixes = [_wrap(f"  {name}  {fix}", 6) for name, fix in _fixes(report).items()]
    return "\n".join([*lines, *(["", "what to do (`inspector rule ID` says more):", *fixes, ""] if fixes else []),
                      _wrap(totals_line(report), 2)]) + "\n"


def _fixes(report: Report) -> dict[str, str]:
    """What to do, by the rules that found problems."""
    found = {problem.rule for problem in report.problems}
    return {name: rule.fix for name, rule in RULES.items() if name in found}


def document(report: Report) -> dict[str, Any]:
    """The document of `--format json`."""
    return {
        "schema": SCHEMA,
        "files": [{"path": file.path, "turns": len(file.turns),
                   **({"copied": copied} if (copied := len(file.every_turn) - len(file.turns)) else {}),
                   **({"same_as": file.stands_in} if file.stands_in else {}),
                   **({"error": file.error} if file.error else {}),
                   **({"unread": dict(file.unread)} if file.unread else {})} for file in report.files],
        "skipped": report.skipped,
        "problems": [{name: value for name, value in problem._asdict().items() if value not in (None, "")}
                     for problem in report.problems],
        "turns": [turn._asdict() for turn in report.turns],
    }


def as_json(report: Report) -> str:
    """The document of `--format json` as text."""
    return json.dumps(document(report), indent=1) + "\n"


def junit(report: Report) -> str:
    """JUnit XML: a suite for each file, a case for each turn, which fails if an error or warning was found in it."""
    suites = []
    for file in report.files:
        cases, failed = [], 0
        found: dict[int, list[Problem]] = {}
        for problem in file.problems:
            if problem.severity != "info":
                found.setdefault(problem.turn, []).append(problem)
        for number in sorted({turn.turn for turn in file.turns} | found.keys()):
            failures = "".join(
                f"<failure type={_attribute(problem.rule)} message={_attribute(problem.message)}>"
                # Jenkins reads only the first failure; `system-out` has all of them
                f"{_escape_xml(place(problem))}</failure>" for problem in found.get(number, ())[:1])
            more = "\n".join(f"{problem.severity} {problem.rule}: {problem.message} ({place(problem)})"
                             for problem in found.get(number, ()))
            failed += bool(failures)
            out = f"<system-out>{_escape_xml(more)}</system-out>" if more else ""
            cases.append(f"<testcase classname={_attribute(file.path)} name={_attribute(f'turn {number}')}>"
                         f"{failures}{out}</testcase>")
        if file.error:
            cases.append(f"<testcase classname={_attribute(file.path)} name=\"read\">"
                         f"<error type=\"unreadable\" message={_attribute(file.error)}/></testcase>")
        suites.append(f"<testsuite name={_attribute(file.path)} tests=\"{len(cases)}\" failures=\"{failed}\" "
                      f"errors=\"{int(bool(file.error))}\">{''.join(cases)}</testsuite>")
    xml = f'<testsuites name="loop-inspector">{"".join(suites)}</testsuites>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.encode("ascii", "xmlcharrefreplace").decode()}\n'


def _escape_xml(value: str) -> str:
    """A text escaped for XML, without characters that XML 1.0 cannot represent."""
    from html import escape  # only JUnit needs this module, and its table of entities takes 2 ms to load

    return escape("".join(char if char in "\t\n\r" or (char >= " " and not "\ud800" <= char <= "\udfff"
                                                       and char not in "\ufffe\uffff") else "\ufffd" for char in value))


def _attribute(value: str) -> str:
    # A parser turns plain line breaks and tabs of an attribute into spaces (XML 1.0, section 3.3.3).
    return f'"{_escape_xml(value).replace(chr(10), "&#10;").replace(chr(13), "&#13;").replace(chr(9), "&#9;")}"'


def sarif(report: Report) -> str:
    """SARIF 2.1.0: every rule, and a result for each problem."""
    used = list(RULES)
    rules = [{
        "id": rule.id, "shortDescription": {"text": rule.title}, "fullDescription": {"text": rule.about},
        "help": {"text": f"{rule.about}\n\nExample: {rule.example}\n\nWhat to do: {rule.fix}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity.value]},
    } for rule in RULES.values()]
    results = [{
        "ruleId": problem.rule, "ruleIndex": used.index(problem.rule), "level": _LEVELS[problem.severity],
        "message": {"text": problem.message},
        "locations": [{
            "physicalLocation": {"artifactLocation": {"uri": _uri(problem.file)},
                                 # GitHub's code scanning requires a line
                                 "region": {"startLine": problem.line or 1}},
            "logicalLocations": [{"fullyQualifiedName": f"turn {problem.turn}" + (
                "" if problem.record is None else f" / {entry_name('', problem.record)}"), "kind": "element"}],
        }],
        # code scanning identifies a result by its fingerprint
        "partialFingerprints": {"loopInspector/v1": problem.fingerprint},
        "properties": {name: value for name, value in problem._asdict().items()
                       if name in ("record", "turn", "start", "end", "pointer", "model", "agent")
                       and value not in (None, "")},
    } for problem in report.problems]
    notes = [{"level": "error", "message": {"text": why}} for why in report.errors]
    gaps = [{"level": "warning", "message": {"text": unread(report).removeprefix(", ")}}] if report.unread else []
    run = {
        "tool": {"driver": {"name": "loop-inspector", "semanticVersion": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",  # SARIF's default is UTF-16 units
        "invocations": [{"executionSuccessful": not notes, "toolExecutionNotifications": notes + gaps}],
        "results": results,
    }
    return json.dumps({"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]},
                      indent=1) + "\n"


def _relative_path(path: str) -> str:
    """A path relative to the working directory, masked before it is escaped: no mask recognizes `%3A`."""
    plain = redact.text(path)
    try:
        return os.path.relpath(plain)
    except OSError:  # the working directory was removed
        return plain


def _uri(path: str) -> str:
    """A path as a relative URI reference if it is below the working directory; else as a `file:` URI."""
    inside = _relative_path(path)
    if not inside.startswith((os.pardir, os.sep)):
        return quote(os.fsencode(inside.replace(os.sep, "/")))  # bytes, because a name may not be UTF-8
    return "file://" + quote(os.fsencode(os.path.abspath(redact.text(path)).replace(os.sep, "/")))


def github(report: Report) -> str:
    """GitHub workflow commands, one line each: annotations of a run."""
    lines = []
    for problem in report.problems:
        inside = inert(_relative_path(problem.file))
        place_of = f"file={_property(inside)},line={problem.line or 1},title={_property(problem.rule)}"
        record = "" if problem.record is None or problem.line is not None else f", {entry_name('', problem.record)}"
        lines.append(f"::{_COMMANDS[problem.severity]} {place_of}::"
                     f"{_data(f'{problem.message} (turn {problem.turn}{record})')}")
    lines += [f"::error title=unreadable::{_data(why)}" for why in report.errors]
    lines += [] if report.turns or report.errors else [f"::warning title=nothing checked::{_data(totals_line(report))}"]
    lines += [f"::warning title=not read::{_data(unread(report).removeprefix(', '))}"] if report.unread else []
    return "".join(f"{line}\n" for line in lines)


def _data(value: str) -> str:
    # a line break would begin another command
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")  # these separate the properties of a command


MOST_ROWS = 500
"""The most rows of the Markdown table: GitHub refuses a summary of more than 1 MiB, and a row may take 2 KB."""


def markdown(report: Report) -> str:
    """A summary in Markdown: the totals, then a table of problems, errors first."""
    lines = ["## Loop Inspector", "", escape_markdown(totals_line(report)), ""]
    if report.problems:
        table_rows = sorted(report.problems, key=lambda each: ORDER.index(each.severity))[:MOST_ROWS]
        lines += ["| | rule | what | where |", "|---|---|---|---|"]
        lines += [f"| {GLYPHS[problem.severity]} {problem.severity} | `{problem.rule}` "
                  f"| {escape_markdown(problem.message)} | {escape_markdown(place(problem))} |"
                  for problem in table_rows]
        if len(report.problems) > len(table_rows):
            lines += ["", f"{len(report.problems) - len(table_rows):,} more are not listed."]
        lines += ["", *(f"- `{name}`: {escape_markdown(fix)}" for name, fix in _fixes(report).items())]
    lines += [f"- could not be read: {escape_markdown(why)}" for why in report.errors[:MOST_ROWS]]
    return "\n".join(lines) + "\n"


FORMS: Mapping[str, Callable[[Report], str]] = {
    "text": lambda report: without_ci_commands(text(report)),
    "json": lambda report: without_ci_commands(as_json(report), ".json"),
    "junit": lambda report: without_ci_commands(junit(report), ".xml"),
    "sarif": lambda report: without_ci_commands(sarif(report), ".json"),
    "github": github, "md": markdown,
}


# -- Baselines: the known problems as fingerprints, which stay the same if lines move or files are renamed -----------

BASELINE_SCHEMA = "loop-inspector/baseline/1"


def read_baseline(path: str) -> frozenset[str]:
    """The fingerprints of a baseline. Raises `CallerError` if it is not a baseline, or cannot be read."""
    try:
        value: Any = json.loads(intake.named_file(path))
    except (ValueError, RecursionError):
        raise CallerError(f"{path}: invalid JSON: expected a baseline of `inspector check --write-baseline`") from None
    problems = value.get("problems") if isinstance(value, dict) and value.get("schema") == BASELINE_SCHEMA else None
    if not isinstance(problems, dict):
        raise CallerError(f"{path}: no baseline: expected an object with \"schema\": \"{BASELINE_SCHEMA}\" "
                          "and \"problems\"")
    return frozenset(problems)


def check_baseline_file(path: str) -> None:
    """Checks that a baseline may be written to a path. Raises `CallerError` if a file exists there that is not a
    baseline, such as a session."""
    if not os.path.isfile(path) or not os.path.getsize(path):
        return
    try:
        read_baseline(path)
    except CallerError:
        raise CallerError(f"--write-baseline {one_line(path)}: exists and is no baseline; expected another path"
                          ) from None


def baseline_text(report: Report) -> str:
    """A baseline of all problems of a report, with a description of each fingerprint for readers."""
    entries = {problem.fingerprint: {"rule": problem.rule, "message": problem.message, "file": problem.file}
               for problem in sorted(report.problems, key=lambda each: (each.file, each.turn, each.rule))}
    return json.dumps({"schema": BASELINE_SCHEMA, "problems": entries}, ensure_ascii=False, indent=1) + "\n"

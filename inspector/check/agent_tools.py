"""The tools of `inspector mcp` as functions that only read. In answers, credentials are masked and texts are cut."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs

from inspector.check import check_paths
from inspector.check.report_forms import ORDER
from inspector.check.report_forms import document as report_document
from inspector.check.rules import selected_rules
from inspector.config.files import check_bounds
from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.explain_document import place_of
from inspector.report.facts import ResponseFacts, TurnFacts, View, view
from inspector.report.lines.spans import one_line
from inspector.report.run_answers import fidelity_of
from inspector.sessions import NO_ANSWER, open_paths, redact
from inspector.sessions.folders import files_of, is_session, locate, transcripts
from inspector.sessions.intake import STDIN
from inspector.sessions.reasons import named_api
from inspector.whatif import branch_report
from inspector.whatif.branch_lines import check_edits
from inspector.whatif.tree import Branch, branch
from loop_core.errors import CallerError
from loop_core.turn.trace import Fidelity

MOST_TEXT = 4_000
"""The number of characters of a text in an answer, unless the caller requests another number."""
LONGEST_TEXT = 20_000
"""The largest number of characters of a text that a caller may request."""
MOST_ARGUMENTS = 40_000
"""The largest number of characters of the arguments of all calls in an answer; further calls are only counted."""
MOST_ROWS = 200
"""The largest number of sessions, turns, problems or calls in an answer."""
MOST_NOTES = 50
"""The largest number of pieces of evidence, and of stop reasons of one turn, in an answer."""
LONGEST_LINE = 400
"""The largest number of characters of a sentence or a name."""
_WORDS = {True: "yes", False: "no"}


def _from_json(value: Any) -> Any:
    """A list or object that a client sent as the text of its JSON."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _as_list(value: Any) -> Any:
    """A list that a client sent as JSON text; a single text becomes a list of one element."""
    plain = _from_json(value)
    return [plain] if isinstance(plain, str) else plain


def _locate(path: str) -> str:
    return locate(os.path.expanduser(path))  # the path comes from a model, and no shell has expanded it


LimitValue = bool | int | float | str
LocatedPath = Annotated[str, AfterValidator(_locate)]
Paths = Annotated[Sequence[LocatedPath], BeforeValidator(_as_list, json_schema_input_type=list[str]), Field(
    description="Files and folders, or sample:NAME.")]
SessionPath = Annotated[LocatedPath, Field(description="A recorded session: one file, or sample:NAME.")]
RuleIds = Annotated[Sequence[str], BeforeValidator(_as_list, json_schema_input_type=list[str]), Field(
    description="Ids of rules, as `inspector rule` lists them; empty: all.")]
Limits = Annotated[Mapping[str, LimitValue], BeforeValidator(
    _from_json, json_schema_input_type=dict[str, LimitValue]), Field(
    description="What is changed: max_tokens, policy, or a limit such as continuation_max_attempts.")]
RowCount = Annotated[int, Field(ge=1, le=MOST_ROWS, description="The largest number of rows.")]
TextLength = Annotated[int, Field(ge=1, le=LONGEST_TEXT, description="The largest number of characters of each text.")]


def list_sessions(paths: Paths = (), most: RowCount = 50) -> dict[str, Any]:
    """The newest sessions in these files and folders; without paths, the newest that agents wrote on this machine.

    Raises:
        CallerError: a path cannot be read.
    """
    agents: dict[str, str] = {}
    if paths:
        for path in paths:
            _check(path)
        names = [name for name, _ in files_of(paths)[0]]
    else:
        agents = {each.path: each.agent for each in transcripts(os.environ)}
        names = list(agents)
    # Folders may contain pipes and devices, and opening one would block.
    stats = sorted(((name, os.stat(name)) for name in filter(os.path.isfile, names)),
                   key=lambda each: -each[1].st_mtime)
    rows: list[dict[str, Any]] = []
    count = 0
    for name, about in stats:
        if len(rows) == most:
            break
        count += 1
        if name in agents or name in paths or is_session(name):
            rows.append({"path": name, "agent": agents.get(name, ""), "size": about.st_size})
    return _mask_texts({"sessions": rows, "more": len(stats) - count})


def why_did_it_stop(path: SessionPath, most: RowCount = MOST_ROWS) -> dict[str, Any]:
    """The headline of a session, and of each turn, worst first: verdict, cause, what to change, stop reasons.

    Raises:
        CallerError: the file cannot be read.
    """
    session_view = _view(path)
    # The worst turn comes first, because the list of a long session is cut.
    order = sorted(range(len(session_view.turns)), key=lambda at: session_view.turns[at].verdict.rank)
    return _mask_texts({"headline": _line(session_view.headline()),
                    "turns": [_turn(session_view, at) for at in order[:most]], "more": max(0, len(order) - most)})


def _turn(view: View, at: int) -> dict[str, Any]:
    turn = view.turns[at]
    links = turn.run.record.links
    return {
        "turn": at + 1, "verdict": turn.verdict.word, "severity": turn.verdict.severity.value,
        "complete": turn.verdict.complete, "what_happened": _line(turn.verdict.sentence),
        "what_to_change": _line(turn.verdict.advice.text) if turn.verdict.advice else "",
        "user": _line(turn.run.record.user_text),
        "stop_reasons": [{"response": link.index, **_reason(view.responses[link.index])}
                         for link in links[-MOST_NOTES:]],
        "earlier_responses": max(0, len(links) - MOST_NOTES),
    }


def findings(paths: Paths, rules: RuleIds = (), most: RowCount = MOST_ROWS) -> dict[str, Any]:
    """The problems that the rules of `inspector check` find in files and folders, errors first.

    Raises:
        CallerError: there is no such rule, or none of the files can be read.
    """
    for path in paths:
        _check(path)
    report = check_paths(paths, selected_rules(rules), jobs=1)
    if report.errors and not report.turns:
        raise CallerError(report.errors[0])
    whole = report_document(report)
    problems = sorted(whole["problems"], key=lambda each: ORDER.index(each["severity"]))
    bad = [{"path": file.path, "error": file.error} for file in report.files if file.error]
    return _mask_texts({
        "files": len(report.files), "turns": len(report.recorded_turns), "simulated": report.simulated_count,
        "copied": report.copy_count, "skipped": report.skipped,
        "unreadable": bad[:MOST_NOTES], "problems": problems[:most], "more": max(0, len(problems) - most)})


def response(
    path: SessionPath,
    index: Annotated[int, Field(ge=0, description="The response, from 0, as `response` of why_did_it_stop counts them; "
                                "sentences count from 1.")],
    call: Annotated[int, Field(ge=0, description="The first call to return, counted from 0.")] = 0,
    offset: Annotated[int | None, Field(ge=0, description="The first character of each text to return; by default "
                                        "a long text is cut to its beginning and its end.")] = None,
    characters: TextLength = MOST_TEXT,
) -> dict[str, Any]:
    """One response: its stop reasons with their evidence, its text, and each call with its verdict.

    Raises:
        CallerError: the file cannot be read, or has no such response or call.
    """
    session_view = _view(path)
    if index >= len(session_view.responses):
        raise CallerError(f"{path}: no response {index}: expected 0 to {len(session_view.responses) - 1}")
    facts = session_view.responses[index]
    answer, count = facts.exchange.response, len(facts.verdicts)
    if call and call >= count:
        raise CallerError(f"{path}: response {index} has no call {call}: it has {count:,}")
    calls: list[dict[str, Any]] = []
    size = 0
    for at, verdict in enumerate(facts.verdicts[call : call + MOST_ROWS], start=call):
        arguments, whole = _part(verdict.call.arguments or "", offset, characters)
        size += len(arguments)
        if calls and size > MOST_ARGUMENTS:  # the first call is always included, however long it is
            break
        calls.append({"call": at, "name": _line(verdict.call.name or ""), "admission": verdict.admission.value,
                      "why": _line(verdict.why), "arguments": arguments, "arguments_characters": whole})
    text, text_whole = _part(answer.text or "", offset, characters)
    reasoning, reasoning_whole = _part(answer.reasoning_content or "", offset, characters)
    return _mask_texts({
        "api": named_api(facts.exchange), "model": facts.exchange.model, **_reason(facts),
        "evidence": [{"rule": evidence.rule, "note": _line(evidence.note), **(place_of(evidence.at) or {})}
                     for evidence in facts.evidence[:MOST_NOTES]],
        "more_evidence": max(0, len(facts.evidence) - MOST_NOTES),
        "text": text, "text_characters": text_whole,
        "reasoning": reasoning, "reasoning_characters": reasoning_whole,
        "calls": calls, "more_calls": max(0, count - call - len(calls)),
        "output_tokens": answer.usage.output_tokens if answer.usage else None,
        "cap": facts.exchange.cap,
    })


def what_if(
    path: SessionPath, limits: Limits,
    turn: Annotated[int | None, Field(ge=1, description="Only this turn, from 1; without it, all that change.")] = None,
    most: RowCount = MOST_ROWS,
) -> dict[str, Any]:
    """How each turn would have ended under other limits or another policy, and whether that end is recorded or
    simulated.

    Raises:
        CallerError: the file cannot be read, or there is no such limit or turn.
    """
    before = _view(path)
    # the command line writes them as yes and no
    assignments = {name: _WORDS[value] if isinstance(value, bool) else str(value) for name, value in limits.items()}
    settings = settings_of(assignments, Settings())
    if settings.live is not None:
        raise CallerError("live: this tool never asks a provider")
    if turn is not None and turn > len(before.turns):
        raise CallerError(f"{path}: no turn {turn}: expected 1 to {len(before.turns)}")
    new_branch = branch(before, settings)
    check_edits(new_branch.view.replay)
    wanted = range(len(before.turns)) if turn is None else [turn - 1]
    places = [at for at in wanted if turn is not None or _differs(before.turns[at], new_branch.view.turns[at])]
    return _mask_texts({
        "summary": branch_report.summary(new_branch), "fidelity": branch_report.trust(new_branch),
        "token_boundaries": [_line(line) for line in branch_report.boundaries(new_branch)],
        "turns": len(before.turns), "complete_before": before.complete, "complete_after": new_branch.view.complete,
        "changed": [_outcome(new_branch, at) for at in places[:most]], "more": max(0, len(places) - most)})


def _differs(old: TurnFacts, new: TurnFacts) -> bool:
    return (old.verdict.sentence, old.joined_text.text) != (new.verdict.sentence, new.joined_text.text)


def _outcome(branch: Branch, at: int) -> dict[str, Any]:
    """One turn before and after the change, with the fidelity of its new end."""
    old, new = branch.original.turns[at], branch.view.turns[at]
    cuts = [_line(step.estimated_cut.between) for step in branch.view.steps[new.run.first : new.run.deciding_step + 1]
            if step.estimated_cut is not None]
    simulated = fidelity_of(branch.view, new) is Fidelity.SIMULATED
    return {
        "turn": at + 1, "before": old.verdict.word, "after": new.verdict.word,
        "state_before": old.final_state.value, "state_after": new.final_state.value,
        "what_happened": _line(new.verdict.sentence),
        "answer": "unrecorded" if new in branch.unrecorded else "simulated" if simulated else "recorded",
        "estimated": cuts[:MOST_NOTES], "spent": branch_report.spend_text(branch.view.end_of(new)),
    }


TOOLS: Mapping[str, Any] = {
    tool.__name__: tool for tool in (list_sessions, why_did_it_stop, findings, response, what_if)}
"""Name of a tool -> its function, whose signature and docstring give the arguments and the description."""


def tool_descriptions() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, description and argument schema of each tool."""
    for name, tool in TOOLS.items():
        yield name, (tool.__doc__ or "").split("\n\n")[0], TypeAdapter(tool).json_schema()


def answer_of(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a tool and returns its answer.

    Raises:
        CallerError: there is no such tool, an argument is missing, unknown or out of range, or the tool refuses.
    """
    tool = TOOLS.get(name)
    if tool is None:
        raise CallerError(f"{_line(name)}: no such tool; there are {', '.join(TOOLS)}")
    try:
        # by the function's signature, so that unknown names are refused
        value: dict[str, Any] = TypeAdapter(tool).validate_python(ArgsKwargs((), dict(arguments)))
    except ValidationError as why:
        # the input may hold a credential
        first = why.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(each) for each in first["loc"]) or "arguments"
        raise CallerError(_line(redact.text(f"{name}: {where}: {first['msg']}"))) from None
    return value


def _check(path: str) -> None:
    """Refuses a path that is neither a regular file nor a folder, or that may not be read."""
    if path == STDIN:  # standard input has the protocol's messages
        raise CallerError("-: expected a file")
    try:
        check_bounds(path)
        mode = os.stat(path).st_mode
    except OSError as why:
        raise CallerError(f"{_line(path)}: cannot be read: {why.strerror or why}") from None
    except ValueError:
        raise CallerError(f"{_line(path)}: not a path of a file") from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise CallerError(f"{_line(path)}: neither a regular file nor a folder")


def _view(path: str) -> View:
    _check(path)
    if os.path.isdir(path):
        raise CallerError(f"{_line(path)}: a folder; expected one file")
    loaded = open_paths([path])
    if not loaded.exchanges:
        why = next((source.error for source in loaded.inputs if source.error), NO_ANSWER)
        raise CallerError(_line(why))
    return view(replay(open_case(loaded), Settings()))


def _reason(facts: ResponseFacts) -> dict[str, Any]:
    stop = facts.judgement.stop
    raw = _line(stop.raw) if isinstance(stop.raw, str) else stop.raw
    return {"raw": raw, "stop_reason": stop.normalized.value, "detail": stop.detail and _line(stop.detail)}


def _line(text: str) -> str:
    """A text on one line; masked before it is cut, because a cut credential is not recognized."""
    return one_line(redact.text(text), LONGEST_LINE)


def _part(text: str, offset: int | None, most: int) -> tuple[str, int]:
    """The requested part of a text and the length of the whole text. It is masked before it is cut."""
    plain = redact.text(text)
    if offset is not None:
        return plain[offset : offset + most], len(plain)
    if len(plain) <= most:
        return plain, len(plain)
    end = most // 2
    start = most - end
    return f"{plain[:start]}\n[{len(plain) - most:,} characters left out]\n{plain[len(plain) - end:]}", len(plain)


def _mask_texts(value: dict[str, Any]) -> dict[str, Any]:
    masked: dict[str, Any] = redact.texts(value)
    return masked

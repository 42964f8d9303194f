"""Writes exchanges as a curl command (with a variable for the key), an engine test, a session file, a bug report."""

from __future__ import annotations

import json
import platform
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from inspector.config.settings import Settings, command
from inspector.export.pages import Block, Heading, Items, Paragraph, Quote, blocks, markdown
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.explain import files_in, places_in_sessions
from inspector.report.facts import ResponseFacts, TurnFacts, View, view
from inspector.report.judged_turn import JudgedTurn, judged_turn_of
from inspector.report.lines.spans import count_of
from inspector.report.run_answers import fidelity_of, recut_responses, used_responses
from inspector.report.verdict import identifier
from inspector.sessions import open_paths, redact
from inspector.sessions.credential_values import REDACTED
from inspector.sessions.native import NOT_RECORDED, session_bytes
from inspector.sessions.native_fields import packed, place_members
from inspector.sessions.recording import Exchange, Input
from inspector.sessions.thread import response_number
from loop_core.errors import CallerError
from loop_core.turn.trace import Fidelity
from loop_core.values import Severity, TransportEnd

KEY_VARIABLE = "API_KEY"
"""The environment variable from which an exported command reads the credential."""
_CURL_HEADERS = frozenset({
    "host", "content-length", "connection", "accept-encoding", "transfer-encoding", "content-encoding",
})
"""The names of headers that curl writes itself."""
# RFC 9110 section 5.6.2. Pseudo-headers of HTTP/2 (`:path`) are not headers; curl reads `@name` as a file.
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)


def curl(facts: ResponseFacts) -> str:
    """The request as a curl command for a POSIX shell. Raises `CallerError` if the recording has no request, or no
    address to send it to."""
    exchange = facts.exchange
    if facts.recut is not None or (facts.live and facts.simulated):
        raise CallerError(f"{facts.name}: no provider was asked; choose a recorded one")
    if exchange.request_json is None or not exchange.url.startswith(("http://", "https://")):
        raise CallerError(f"{facts.name}: its request was not recorded, so there is nothing to send")
    address = redact.url(exchange.url)
    # Unbuffered, to show events of a stream at once. Without globs, because `[1-9]` in an address means nine requests.
    words = [f"curl -sS --no-buffer --globoff -X POST {_shell(address)}"]
    sent = {name.lower() for name, _ in exchange.request_headers}
    words += [f"-H {_shell(f'{name}: {_scheme(name)}{value}')}"
              for name, value in redact.headers(exchange.request_headers)
              if name.lower() not in _CURL_HEADERS and _HEADER_NAME.fullmatch(name)]
    if "content-type" not in sent:  # otherwise curl would send the content type of a form
        words.append("-H 'content-type: application/json'")
    body = json.dumps(redact.values(exchange.request_json), ensure_ascii=True)  # ASCII: equal bytes in any locale
    words.append(f"--data-binary {shlex.quote(body)}")  # `--data` would drop line breaks
    return " \\\n  ".join(words) + "\n"


def _scheme(name: str) -> str:
    return "Bearer " if name.lower() == "authorization" else ""  # the mask stands for the whole value of the header


def _shell(text: str) -> str:
    """A word of the command; a masked credential becomes the variable."""
    clean = "".join(char for char in text if char.isprintable())  # a control character could hide a part of the command
    return f'"${KEY_VARIABLE}"'.join(shlex.quote(part) if part else "" for part in clean.split(REDACTED)) or "''"


def fixture(facts: ResponseFacts) -> str:
    """The response as a test of the engine: its bytes, and the facts that were decoded from them. Raises `CallerError`
    if the body was not recorded, or consists of an agent's rows."""
    exchange, stop = facts.exchange, facts.judgement.mapped
    _of_provider(exchange)
    if not exchange.recorded:
        raise CallerError(f"{facts.name}: its body was not recorded")
    response = exchange.response
    calls = [(call.name, call.arguments) for call in response.tool_calls]
    words = f", words=profile_named({exchange.profile.name!r}).profile.words" if exchange.profile.words else ""
    status = "" if response.http_status is None else f", http_status={response.http_status}"
    end = response.transport_end.name
    ended = "" if end == "EOF" else f", end=TransportEnd.{end}"
    return "\n".join([
        f'"""{"" if facts.is_made else "Recorded: "}{exchange.api}, {facts.name}."""',
        "",
        "from loop_core import decode_response",
        *(["from loop_core.values import TransportEnd"] if ended else []),
        *(["from loop_core.wire.profiles import profile_named"] if words else []),
        "",
        f"BODY = {_pieces(exchange.body)}",
        "",
        "",
        f"def test_{facts.fidelity.value.lower()}_response():",
        f"    response = decode_response({exchange.api!r}, [BODY]{status}{words}{ended})",
        f"    assert response.raw_stop_reason == {stop.raw!r}",
        f"    assert response.stop_reason.normalized == {stop.normalized.value!r}",
        f"    assert response.text == {response.text!r}",
        f"    assert [(call.name, call.arguments) for call in response.tool_calls] == {calls!r}",
        "",
    ])


def _pieces(body: bytes) -> str:
    lines = body.splitlines(keepends=True) or [b""]  # a literal for each line, so that a diff of the test can be read
    return "(\n" + "".join(f"    {line!r}\n" for line in lines) + ")"


ACT_VALUES: Mapping[str, str] = {"cancel": "answered", "note": "text", "policy": "name"}
"""Kind of an act on an exchange -> the member of its record that has its value. Limits hold for a whole file."""


def records(exchanges: Iterable[Exchange], inputs: Iterable[Input] = ()) -> Iterator[dict[str, Any]]:
    """The records of a session file with these exchanges, the arrival times of their bytes, and their tool results and
    operator's acts from `inputs`. Raises `CallerError` if an exchange consists of an agent's rows.
    """
    beside, before = _records_beside(inputs), None
    for number, exchange in enumerate(exchanges):
        _of_provider(exchange)
        key = f"r{number}"
        # A recorded place follows from the exchange before, which may have been left out.
        follows = (exchange.path, exchange.entry - 1) == before
        before = exchange.path, exchange.entry
        yield {
            "type": "request", "id": key, "api": exchange.api, "url": exchange.url,
            **({"profile": exchange.named_profile} if exchange.named_profile is not None else {}),
            "headers": [list(pair) for pair in redact.headers(exchange.request_headers)],
            **({"body": exchange.request_json} if exchange.request_json is not None else {}),
            **({"at": exchange.started} if exchange.started else {}),
            **({"retries": f"r{number - 1}"} if follows and exchange.again else {}),
            **(place_members(exchange.recorded_place) if follows else {}),
        }
        yield {"type": "response", "request": key, "status": exchange.response.http_status,
               **({"simulated": True} if exchange.simulated else {}),
               "headers": [list(pair) for pair in redact.headers(exchange.headers)]}
        start = 0
        for chunk in exchange.chunks or ():
            yield _bytes(key, exchange.body[start : chunk.end], chunk.ms)
            start = chunk.end
        if start < len(exchange.body):
            yield _bytes(key, exchange.body[start:], None)
        if exchange.response.transport_end is not TransportEnd.CUT:  # a cut body has no such record
            end = exchange.response.transport_end.value if exchange.recorded else NOT_RECORDED
            problem = exchange.response.broken_connection
            yield {"type": "end", "request": key, "end": end, **({"problem": problem} if problem else {})}
        yield from ({**record, "request": key} for record in beside.get(before, ()))


def _records_beside(inputs: Iterable[Input]) -> Mapping[tuple[str, int | None], list[dict[str, Any]]]:
    """File and entry of an exchange -> the records of a session file that are about it."""
    found: dict[tuple[str, int | None], list[dict[str, Any]]] = defaultdict(list)
    for source in inputs:
        for answer in source.answers:
            found[source.path, answer.entry].append({
                "type": "tool_result", "call_id": answer.result.call_id, "name": answer.result.name,
                "text": answer.result.text, "is_error": answer.result.is_error, "at": answer.at})
        for act in source.acts:
            if act.kind in ACT_VALUES:
                found[source.path, act.entry].append({"type": act.kind, ACT_VALUES[act.kind]: act.value, "at": act.at})
    return found


def _of_provider(exchange: Exchange) -> None:
    if exchange.recorder is not None:
        lines = "its lines"
        if exchange.lines:
            first, last = exchange.lines[0], exchange.lines[-1]
            lines = f"line {first}" if first == last else f"lines {first} to {last}"
        raise CallerError(
            f"{exchange.path}: this form needs the provider's bytes, which rows of {exchange.recorder} do not hold: "
            f"choose another form, or share {lines} of the transcript"
        )


def _bytes(key: str, data: bytes, ms: float | None) -> dict[str, Any]:
    kind, piece = packed(data)
    has_time = ms is not None and 0 <= ms < inf  # recorders also write -1 for an unknown time (HAR)
    return {"type": "bytes", "request": key, kind: piece, **({"ms": ms} if has_time else {})}


# -- A bug report ----------------------------------------------------------------------------------------------------
# A report has a small session that still shows the finding or verdict, and the command that shows it. Exchanges are
# left out while the remaining session, written and read again, gives the same finding or verdict. So a report contains
# little of the user's work, and it has been verified.

MOST_TRIALS = 64
"""The most sessions that the search for a smaller one reads again; then the smallest so far is used."""

Shows = Callable[[View], bool]
T = TypeVar("T")


def bug_report(view: View, turn: TurnFacts) -> Mapping[str, str]:
    """The files of a bug report, the report and its session: name -> content. Raises `CallerError` if no provider sent
    the turn's answers, or if the finding disappears when the turn is read alone."""
    refused = why_unreported(view, turn)
    if refused:
        raise CallerError(refused)
    # The session has the answers themselves, so it needs neither the file of a live run nor a simulation.
    settings = replace(view.replay.settings_at(turn.run.deciding_step), live=None, simulate=False)
    responses = used_responses(view, turn)
    subject_view, subject = view, turn
    if any(facts.live for facts in responses):
        # A live turn may have been ended by a limit; in a recording of the same answers, the provider has cut them.
        subject_view = reread(responses, settings, view.inputs)
        subject = subject_view.worst or turn
    rule, shows = symptom(subject_view, subject)

    def shows_rule(some: Sequence[ResponseFacts]) -> bool:
        return shows(reread(some, settings, view.inputs))

    def repeats_sentence(some: Sequence[ResponseFacts]) -> bool:
        again = reread(some, settings, view.inputs)
        return any(each.verdict.sentence == subject.verdict.sentence for each in again.turns)

    if not shows_rule(responses):
        # The finding depends on earlier turns, so the whole conversation is used.
        talk = [other for other in view.turns if other.conversation == turn.conversation]
        responses = [facts for other in talk for facts in used_responses(view, other)]
        if not shows_rule(responses):
            raise CallerError(f"turn {turn.id}: {rule} is not found when its exchanges are read alone")
    # The sentence of a verdict also names the limit that ended the turn, which needs the answers before it. It differs
    # if the file itself sets that limit, because the report's session does not contain the limit.
    by_verdict = rule == _rule_of(subject) and repeats_sentence(responses)
    smallest = shrink(responses, repeats_sentence if by_verdict else shows_rule)
    name = f"loop-inspector-{rule.replace('.', '-')}"
    again = reread(smallest, settings, view.inputs)
    # The verdict on the whole turn may depend on answers that the smallest session leaves out, such as a repair.
    word, found = (again.worst or subject).verdict.word, subject.verdict.word
    origin = _origin(view, turn) + ("" if word == found else
        f" The verdict of the whole turn is {found}; answers that do not matter to this report are left out below.")
    report = _report(again, name, f"{word} ({rule})" if "." in rule else word, origin, settings)
    return {f"{name}.jsonl": session_of(smallest, rule, view.inputs).decode("utf-8"), f"{name}.md": report}


UNSENT: tuple[tuple[Callable[[JudgedTurn, Fidelity], bool], str], ...] = (
    (lambda judged, fidelity: judged.edited, "was edited, and no provider answered that"),
    (lambda judged, fidelity: judged.unanswered, "has no provider's answer in this run"),
    (lambda judged, fidelity: fidelity is Fidelity.SIMULATED, "is SIMULATED, no provider sent it"),
)
"""Conditions under which a turn is no evidence against a provider, with descriptions; the first that holds counts."""


def why_unreported(view: View, turn: TurnFacts) -> str:
    """Why a turn cannot be reported to a provider, and what to report instead; empty if a provider sent its answers."""
    judged, fidelity = judged_turn_of(view.replay, turn.run, turn.findings), fidelity_of(view, turn)
    why = next((words for holds, words in UNSENT if holds(judged, fidelity)), "")
    if not why:
        return ""
    recorded = any(not view.responses[index].is_made for index in turn.responses)
    instead = "R: report the original" if recorded else "md and html show it"
    return f"turn {view.number(turn):,} {why}; {instead}"


def symptom(view: View, turn: TurnFacts) -> tuple[str, Shows]:
    """The name of the turn's gravest finding, else of its verdict, and a test whether a session still shows it."""
    grave = [note.finding for note in view.findings
             if note.turn == turn.id and note.finding.severity is not Severity.INFO]
    if grave:
        rule = min(grave, key=lambda finding: list(Severity).index(finding.severity)).rule
        return rule, lambda again: any(note.finding.rule == rule for note in again.findings)
    word = turn.verdict.word
    return _rule_of(turn), lambda again: any(each.verdict.word == word for each in again.turns)


def _rule_of(turn: TurnFacts) -> str:
    """The name of a turn's verdict in the names of files."""
    return identifier(turn.verdict.word).replace("_", "-")


def session_responses(view: View, turns: Sequence[TurnFacts]) -> list[ResponseFacts]:
    """The responses of these turns for a session file: those of the run itself, not those that it replaced. Raises
    `CallerError` if some are in no file, because a simulation made them."""
    lost = next((turn for turn in turns if recut_responses(view, turn)), None)
    if lost is not None:
        number = view.number(lost)
        raise CallerError(f"turn {number:,} has SIMULATED answers, which were never sent; md and json show them")
    used = [facts for turn in turns for facts in used_responses(view, turn)]
    return used if any(facts.live for facts in used) else sorted(used, key=lambda facts: facts.index)


ORIGINS: Mapping[Fidelity, str] = {
    Fidelity.RECORDED: "recorded",
    Fidelity.LIVE: "asked live again",
    Fidelity.SIMULATED: "SIMULATED, sent by no provider",
}


def recorded_limits(view: View, responses: Sequence[ResponseFacts]) -> Mapping[str, int]:
    """The limits with which the files of these responses were recorded, if all have the same ones; else none."""
    by_path = view.replay.case.limits_by_path
    found = [by_path.get(path, {}) for path in {facts.exchange.path for facts in responses}]
    return found[0] if found and all(limits == found[0] for limits in found) else {}


def session_of(
    responses: Sequence[ResponseFacts], title: str, inputs: Iterable[Input], limits: Mapping[str, int] | None = None
) -> bytes:
    """A session file of these responses of `inputs`; its provenance says whether some are not from a recording.
    `limits` are those under which the responses were recorded."""
    count = Counter(facts.fidelity for facts in responses)
    parts = [f"{count_of(count[each], 'answer')} {words}" for each, words in ORIGINS.items() if count[each]]
    has_made_answers = any(facts.is_made for facts in responses)
    source = f"a run with {' and '.join(parts)}" if has_made_answers else "a recording"
    first = [{"type": "limits", "values": dict(limits)}] if limits else []
    return session_bytes([*first, *records([facts.exchange for facts in responses], inputs)], title=title,
                         provenance=f"exported from {source}, credentials masked")


def reread(responses: Sequence[ResponseFacts], settings: Settings, inputs: Iterable[Input]) -> View:
    """The view of the responses of `inputs` after they were written to a session file and read again."""
    written = session_bytes(records([facts.exchange for facts in responses], inputs))
    return view(replay(open_case(open_paths(["-"], stdin=written)), settings))


def shrink(parts: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> list[T]:
    """A small subset of parts for which `holds` is true, found by leaving out ever smaller pieces."""
    subset, trials = list(parts), 0
    size = max(1, len(subset) // 2)  # delta debugging (Zeller and Hildebrandt, ddmin): halves first
    while len(subset) > 1 and trials < MOST_TRIALS:
        for start in range(0, len(subset), size):
            fewer = subset[:start] + subset[start + size :]
            trials += 1
            if fewer and holds(fewer):
                subset = fewer
                break
            if trials >= MOST_TRIALS:
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
            continue
        size = min(size, max(1, len(subset) // 2))
    return subset


def _origin(view: View, turn: TurnFacts) -> str:
    """The turn's place in its recording, with the name of the file only, because a report is sent to others."""
    used, every = used_responses(view, turn), [view.responses[index] for index in turn.responses]
    live = [facts.exchange for facts in used if facts.live]
    file = next((Path(facts.exchange.path).name for facts in every if not facts.live), "")
    where, several = view.place(turn), files_in(view) > 1
    if several:  # the reader of the report has one file
        _, number, total = places_in_sessions(view)[view.number(turn) - 1]
        where = f"turn {number:,} of {total:,}"
    place = f"{file}, {where}" if file not in ("", "-") else where
    if live:
        return (f"Found in {count_of(len(live), 'LIVE answer')} of {redact.url(live[0].url)} "
                f"({Path(live[0].path).name}), asked again from a step of {place}.")
    first, last = response_number(used[0].index), response_number(used[-1].index)
    responses = f", response {first}" if len(used) == 1 else f", responses {first} to {last}"
    return f"Found in {place}{'' if several else responses}."


def _report(view: View, name: str, title: str, origin: str, settings: Settings) -> str:
    path = f"{name}.jsonl"
    run = command([path], settings) if settings != Settings() else f"inspector explain {path}"
    # the facts that a maintainer needs first
    versions = [f"{each} {_version(each)}" for each in ("loop-inspector", "textual", "pydantic")]
    head: list[Block] = [
        Heading(1, f"Bug report: {title}"),
        Paragraph(origin),
        Paragraph("The session beside this report is the smallest that still shows it; turns and responses are "
                  "renumbered in it. To see it:"),
        Quote(run),
        Items((*versions, f"Python {platform.python_version()}", platform.system())),
    ]
    body = list(blocks(view))
    return markdown([*head, *body[2 if len(view.turns) == 1 else 1 :]])  # the heading of a single turn would repeat it


@cache  # the metadata of a distribution is a long file
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed as a distribution"

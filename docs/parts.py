"""The generated parts of the documents: each function renders one table or diagram of the engine as Markdown.

All content comes from the engine: rows from its tables, words from its docstrings, and the behaviour of the gate and
the events from running them.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from itertools import pairwise
from typing import Any

from examples import GATE_CASES, WORDS_TRIED, Tried, records, try_call

from inspector.check.rules import RULES
from inspector.report import filter_terms
from inspector.sessions.credential_names import NAMES, PASSWORDS
from inspector.sessions.credentials import ALPHABETS, FORMS
from loop_core.judge import classify
from loop_core.judge import gate as engine_gate
from loop_core.judge.endings import ENDINGS, Ending
from loop_core.judge.signs import CALL_MARKS as MARKUP
from loop_core.turn import moves
from loop_core.turn import trace as engine_events
from loop_core.turn.continuation import Method, SeamDecision
from loop_core.turn.limits import DEFAULT_TOKEN_FACTOR, GUARDS, OPTIONAL, RANGES, SCOPES, Limits
from loop_core.turn.machine import TRANSITIONS
from loop_core.turn.policy import STRICT, Signal
from loop_core.turn.state import ENDED, State
from loop_core.values import Stop
from loop_core.wire import FORMATS, wire
from loop_core.wire import profiles as server_profiles
from loop_core.wire.failures import FATAL_WORDS, MARKS, RETRYABLE_STATUS, RETRYABLE_WORDS, SERVER_WORDS, StopRow


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [_row(head), _row(["---"] * len(head)), *(_row([str(cell) for cell in row]) for row in rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def code(text: object) -> str:
    """Text in the type of code; nothing for nothing."""
    return f"`{text}`" if text not in (None, "") else ""


def docs_of(owner: type) -> dict[str, str]:
    """The docstrings that stand below the fields or members of a class."""
    body = [line for node in ast.parse(inspect.getsource(owner)).body for line in getattr(node, "body", [])]
    found: dict[str, str] = {}
    for before, after in pairwise(body):
        target = before.target if isinstance(before, ast.AnnAssign) else None
        if isinstance(before, ast.Assign):
            target = before.targets[0]
        said = after.value if isinstance(after, ast.Expr) else None
        if isinstance(target, ast.Name) and isinstance(said, ast.Constant) and isinstance(said.value, str):
            found[target.id] = " ".join(said.value.split())
    return found


def _members(kind: type[StrEnum]) -> list[tuple[str, str]]:
    said = docs_of(kind)
    return [(code(member.value), said.get(member.name, "")) for member in kind]


def _first_line(function: object) -> str:
    return (inspect.getdoc(function) or "").split("\n", 1)[0]


def _first_sentences(function: object) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n", 1)[0].split())


# -- stop reasons ----------------------------------------------------------------------------------------------------


def words() -> str:
    """The normalized words, and where each leads under `strict`."""
    def way(signal: Signal) -> str:
        row = TRANSITIONS[State.EVALUATE_STOP, signal]
        return f"{row.to.value}, {code(row.terminal)}" if row.terminal else row.to.value

    said = docs_of(Stop)
    rows = []
    for word in Stop:
        rows.append((code(word.value), said.get(word.name, ""), *map(way, STRICT.signals[word])))
    return table(("word", "meaning", "next state without calls", "with held calls", "with calls that may run"), rows)


def _mapped(rows: Mapping[str, StopRow]) -> str:
    """The words of a format, those that mean the same in one row; the source of most of them stands above."""
    (usual, count), *_ = Counter(row.source for row in rows.values()).most_common(1)
    above = f"Source, where none is given: {usual}.\n\n" if count > 1 else ""
    return above + table(("native words", "mapped to", "detail", "source"), (
        (", ".join(map(code, words)), code(stop.value), code(detail), "" if above and source == usual else source)
        for (stop, detail, source), words in _alike(rows.items()).items()
    ))


def _alike(rows: Iterable[tuple[str, StopRow]]) -> dict[tuple[Stop, str | None, str], list[str]]:
    groups: dict[tuple[Stop, str | None, str], list[str]] = {}
    for word, row in rows:
        groups.setdefault((row.stop, row.detail, row.source), []).append(word)
    return groups


def formats() -> str:
    """The stop-reason table of every wire format, and the words that carry one of another format behind a colon."""
    return "\n\n".join(f"### {api}\n\n{_mapped(wire(api).stop_reasons)}{_foreign(api)}" for api in FORMATS)


def _foreign(api: str) -> str:
    rows = wire(api).decoder.foreign_reasons
    if not rows:
        return ""
    told = table(("before a colon", "what follows is read as", "and is at least", "source"), (
        (code(word), row.api, code(row.least.stop.value), row.least.source) for word, row in rows.items()
    ))
    return f"\n\n{told}"


def judge_rules() -> str:
    """The corrections, in order."""
    rows = enumerate(classify.RULES, start=1)
    return table(("order", "rule", "what it detects"), (
        (number, code(f"judge.{name}"), _first_sentences(rule)) for number, (name, rule) in rows
    ))


def endings() -> str:
    """The endings of an answer that only looks finished, in the order of the judge's table."""
    said = docs_of(Ending)
    return table(("ending", "what it is"), (
        (code(row.ending.value), said[row.ending.name]) for row in ENDINGS))


def call_marks() -> str:
    """The call formats whose marks are looked for."""
    return "; ".join(dict.fromkeys(mark.title for mark in MARKUP))


def error_marks() -> str:
    """What an error body's words say, and which statuses are worth a retry."""
    rows = table(("rule", "mapped to", "detail", "source"), (
        (code(mark.rule), code(mark.stop.value), code(mark.detail), mark.source) for mark in MARKS
    ))
    statuses = ", ".join(str(status) for status in sorted(RETRYABLE_STATUS))
    again, server, never = (", ".join(code(word) for word in sorted(words)) for words in (
        RETRYABLE_WORDS - SERVER_WORDS, SERVER_WORDS, FATAL_WORDS))
    return (f"{rows}\n\nEvery other error is `error`. HTTP statuses that make it retryable: {statuses}.\n\n"
            f"Types and codes that make it retryable under any status: {again}.\n\n"
            f"Types and codes that make it retryable, except under another status from 400 to 499: {server}.\n\n"
            f"Types and codes that make it fatal under any status below 500: {never}.")


# -- the machine -----------------------------------------------------------------------------------------------------


def machine() -> str:
    """The state diagram, drawn from the transition table."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, signal), row in TRANSITIONS.items():
        arrows.setdefault((state, row.to), []).append(signal.value)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {State.REQUEST.value}"]
    lines += [f"    {one.value} --> {other.value}: {' / '.join(signals)}" for (one, other), signals in arrows.items()]
    lines += [f"    {state.value} --> [*]" for state in State if state in ENDED]
    return "\n".join([*lines, "```"])


def transitions() -> str:
    """Every row of the transition table."""
    return table(("state", "signal", "next state", "terminal reason"), (
        (state.value, code(signal.value), row.to.value, code(row.terminal))
        for (state, signal), row in TRANSITIONS.items()
    ))


def limits() -> str:
    """Every limit with its default, its range and what it bounds."""
    said = docs_of(Limits)
    rows = []
    for field in fields(Limits):
        default = getattr(Limits(), field.name)
        shown = f"{default:,}" if isinstance(default, int) else str(default)
        if default is None and field.name in OPTIONAL:
            shown = f"{DEFAULT_TOKEN_FACTOR} × initial max_tokens"
        allowed = ", ".join(SCOPES)
        if field.name in RANGES:
            allowed = "{:,} to {:,}".format(*RANGES[field.name])
        rows.append((code(field.name), shown, allowed, said.get(field.name, "")))
    return table(("limit", "default", "allowed", "what it bounds"), rows)


def guards() -> str:
    """Every guard: where it looks, which limit it compares, and how the turn then ends."""
    return table(("guard", "checked in", "limit", "terminal reason", "source"), (
        (guard.name, _place(guard.place), code(guard.limit), code(guard.terminal), guard.source) for guard in GUARDS
    ))


def _place(name: str) -> str:
    return next(state.value for state, place in moves.GUARD_PLACES.items() if place == name)


def terminals() -> str:
    """Every terminal reason, where it ends and what the operator is told."""
    ends: dict[str, list[str]] = {}
    for row in TRANSITIONS.values():
        if row.terminal is not None and row.to.value not in ends.setdefault(row.terminal, []):
            ends[row.terminal].append(row.to.value)
    return table(("terminal reason", "decided in", "notice"), (
        (code(terminal), ", ".join(states), moves.NOTICES.get(terminal, "none")) for terminal, states in ends.items()
    ))


def methods() -> str:
    """How a segment can be asked for."""
    return table(("method", "meaning"), _members(Method))


def seams() -> str:
    """What can be decided at a seam."""
    return table(("decision", "meaning"), _members(SeamDecision))


# -- events ----------------------------------------------------------------------------------------------------------


def events() -> str:
    """The fields of every structured event, as a run of the machine emits them."""
    made: dict[str, dict[str, Any]] = {}
    for record in records():
        made.setdefault(record["event"], record)
    return table(("event", "fields, with the values of an example"), (
        (code(name), ", ".join(f"{field} {code(repr(value))}" for field, value in record.items() if field != "event"))
        for name, record in sorted(made.items())
    ))


def metrics() -> str:
    """What is folded from the events."""
    said = docs_of(engine_events.Metrics)
    return table(("metric", "meaning"), (
        (code(name), said.get(name, "")) for name in engine_events.Metrics._fields
    ))


# -- the gate --------------------------------------------------------------------------------------------------------


def gate() -> str:
    """What the gate says of each kind of call under each word, found by asking it."""
    return table(("the call", *(code(word) for word in WORDS_TRIED)), (
        (name, *(_verdict(try_call(case, word)) for word in WORDS_TRIED)) for name, case in GATE_CASES.items()
    ))


def _verdict(tried: Tried) -> str:
    tightened = f", read as {code(tried.effective)}" if tried.effective != tried.mapped else ""
    return f"**{tried.verdict.admission.value}** {code(tried.verdict.rule)}{tightened}"


def held() -> str:
    """Why a word does not authorise a call."""
    return table(("effective reason", "why its calls are held"), (
        (code(word.value), why) for word, why in engine_gate.WHY_REASON.items()
    ))


# -- profiles --------------------------------------------------------------------------------------------------------


UNDER_CAP = {True: "yes", False: "no", None: "unknown"}


def profiles() -> str:
    """Who speaks a format, and what is known of them."""
    return table(("profile", "formats", "thinking counts under the cap", "prefill", "known faults"), (
        (
            code(profile.name),
            ", ".join(profile.apis) if len(profile.apis) < len(FORMATS) else "all",
            f"{UNDER_CAP[profile.reasoning_under_cap]}: {profile.cap_source}",
            _prefill(profile),
            "; ".join(profile.lies),
        )
        for profile in server_profiles.PROFILES.values()
    ))


def _prefill(profile: server_profiles.Profile) -> str:
    ways = {profile.prefill.value, *(how.value for _, how in profile.prefill_models)}
    return ", ".join(sorted(ways)) + (" by model" if profile.prefill_models else "")


def profile_words() -> str:
    """The stop words that single servers have of their own."""
    return table(("profile", "native words", "mapped to", "detail", "source"), (
        (code(profile.name), ", ".join(map(code, words)), code(stop.value), code(detail), source)
        for profile in server_profiles.PROFILES.values()
        for (stop, detail, source), words in _alike(profile.words.items()).items()
    ))


def filter_words() -> str:
    """What a filter can ask."""
    rows = [(code(f"{name}:WORD"), row.about) for name, row in filter_terms.WORDS.items()]
    rows += [(code(name), row.about) for name, row in filter_terms.FLAGS.items()]
    rows += [(code(f"{name}>N"), row.about) for name, row in filter_terms.NUMBERS.items()]
    rows += [(code(f"~{name} REGEX"), row.about) for name, row in filter_terms.PATTERNS.items()]
    return table(("term", "what it compares, or what is true of the step"), rows)


def credential_forms() -> str:
    """Every form of credential that is masked by its looks, by the kind of service."""
    letters = "; ".join(f"`{letter}` is `[{characters}]`" for letter, characters in ALPHABETS.items())
    kinds = [
        f"### {kind[0].upper()}{kind[1:]}\n\n| masked as | form |\n|---|---|\n"
        + "\n".join(f"| {form.name} | `{form.template}` |" for form in FORMS if form.kind == kind)
        for kind in dict.fromkeys(form.kind for form in FORMS)]
    return "\n\n".join([f"In a form, braces hold an alphabet and a number of its characters: {letters}.", *kinds])


def credential_names() -> str:
    """The names whose values are credentials."""
    names, passwords = (", ".join(f"`{name}`" for name in each) for each in (NAMES, PASSWORDS))
    return f"Masked if the value looks random: {names}.\n\nMasked however short the value is: {passwords}."


def check_rules() -> str:
    """The rules of `inspector check`: what each reports and what to do about it."""
    rows = [f"| `{rule.id}` | {rule.severity.value} | {rule.about} | {rule.fix} |" for rule in RULES.values()]
    return "\n".join(["| rule | severity | what it reports | what to do |", "| --- | --- | --- | --- |", *rows])

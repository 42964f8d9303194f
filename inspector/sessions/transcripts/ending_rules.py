"""Infers the stop reason of an answer without a stop word, from its own rows and the rows after it.

Claude Code leaves the word out by design since 1.0.10 (claude-code #1546): it writes a row when its block is complete,
and the word arrives later. The rules are a table, the strictest first. An answer to which no rule applies is `unknown`,
with the detail `not_recorded`.

The end of a subagent may also be visible in another file, where its last text is the result of the parent's call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import NamedTuple

from inspector.sessions.notices import Notice, share
from inspector.sessions.reasons import (
    INFERRED,
    inferred_reason,
    is_recorders,
    is_unrecorded,
    missing_call_reason,
    provider_reason,
    reason_finding,
    shortened_call_reason,
    unrecorded_reason,
)
from inspector.sessions.recording import Exchange, Input
from inspector.sessions.stored_rows import RowPlace, row_bytes, row_size
from inspector.sessions.transcripts.answer import TranscriptAnswer
from inspector.sessions.wordings import known_hint, placeholder, refused_arguments
from loop_core.judge.arguments import ArgumentShape, parse
from loop_core.values import FINISHED, ArgsForm, At, CallKind, Evidence, ExchangePart, Stop, StopReason, ToolResultPart
from loop_core.wire.failures import StopRow
from loop_core.wire.json_values import byte_span, pointer

CLAUDE = "anthropic_messages"  # only the id, because importing its package would slow down all transcripts
# Kept up by hand. If a newer model's default is missing, the end stays unknown.
KNOWN_CAPS = frozenset({4_096, 8_192, 16_384, 32_000, 32_768, 64_000, 65_536, 128_000})
"""The default output caps of Claude models and Claude Code. An answer with exactly so many output tokens was cut."""
RESUMED = re.compile(
    r"\s*(?:output token limit hit|the previous assistant response was cut off|"
    r"your (?:previous )?response was cut off because it (?:exceeded the|reached the model's) output[ -]token limit)\b",
    re.IGNORECASE,
)
"""Matches the beginning of the message of Claude Code, Cline or nanobot to a model whose answer was cut at the cap."""


MASKED = re.compile(r"[\[<(*\s]*(?:redacted|masked|removed)(?![a-z])", re.IGNORECASE)
"""Matches the beginning of a text that was written over the arguments of a call."""
OUTPUT_COUNTS = (("message", "usage", "output_tokens"), ("event", "usage", "output_tokens"))
"""The paths of the output tokens of an answer of Claude Code: in its rows, and in the last event of its stream."""


class EndSign(NamedTuple):
    """The result of a rule."""

    stop: Stop
    note: str
    at: At | None = None


ERROR_MARKS: Mapping[str, Stop] = {
    "cap": Stop.MAX_TOKENS, "context": Stop.CONTEXT_WINDOW_EXCEEDED, "filter": Stop.SAFETY_BLOCKED,
    "malformed": Stop.MALFORMED_TOOL_CALL, "broken": Stop.INTERRUPTED}
"""Mark of a row of the agent about the answer before it -> the stop reason of that answer."""

Caps = frozenset[int]
"""The output caps that the rows of a file state."""
Rule = Callable[[TranscriptAnswer, Caps], EndSign | None]


def error_row(answer: TranscriptAnswer, caps: Caps) -> EndSign | None:
    """A row of the agent after the answer reports that a cap, the context or a filter ended it, that its call could not
    be read, or that its stream broke."""
    for row in answer.after:
        if row.mark == "ended":
            break  # a failure after the end of the turn belongs to another request
        stop = ERROR_MARKS.get(row.mark or "")
        if stop is not None:
            return EndSign(stop, f"{row.where}: {row.text[:120]}", At(ExchangePart.BODY, *_last_row(answer)))
    return None


def turn_ended(answer: TranscriptAnswer, caps: Caps) -> EndSign | None:
    """The agent recorded the end of its turn after an answer without calls; this outranks the later rules."""
    row = next((row for row in answer.after if row.mark == "ended"), None)
    if row is None or answer.calls or not answer.parts:
        return None
    return EndSign(Stop.END_TURN, f"{row.where}: the agent recorded the end of its turn ({row.text})",
                 At(ExchangePart.REQUEST, None, None, row.where))


def call_cut(answer: TranscriptAnswer, caps: Caps) -> EndSign | None:
    """A call of the answer ends in the middle of its JSON."""
    for call in answer.calls:
        # Only JSON text shows a cut: a parsed object always looks complete, and free text may end anywhere.
        json_text = call.form is ArgsForm.STRING and call.kind is not CallKind.CUSTOM
        if json_text and parse(call.arguments).shape is ArgumentShape.CUT:
            return EndSign(Stop.MAX_TOKENS, f"the arguments of {call.name} end in the middle of their JSON", call.at)
    return None


def tokens_at_cap(answer: TranscriptAnswer, caps: Caps) -> EndSign | None:
    """The output tokens of the answer equal a cap that the file states, or a default cap of Claude."""
    # A model that happens to stop exactly at a cap is far less likely than a cut.
    used = answer.usage.output_tokens if answer.usage else None
    stated, defaults = caps | {answer.cap}, KNOWN_CAPS if answer.api == CLAUDE else frozenset()
    if not used or used not in stated | defaults:
        return None
    source = "that this file states" if used in stated else "by default"
    return EndSign(Stop.MAX_TOKENS, f"its {used:,} output tokens are exactly a cap {source}",
                 _count(answer, used))


def agent_resumed(answer: TranscriptAnswer, caps: Caps) -> EndSign | None:
    """The next row is a message of the agent, not of the user, that the output cap had cut the answer."""
    row = next((row for row in answer.after if row.results or row.mark or row.text.strip()), None)
    if row is None or not row.own or row.results or RESUMED.match(row.text) is None:
        return None
    return EndSign(Stop.MAX_TOKENS, f"{row.where}: the agent says that the output limit was hit", _REQUEST)


def user_interrupted(answer: TranscriptAnswer, caps: Caps) -> EndSign | None:
    """The user stopped the answer, or a tool that it called."""
    for row in answer.after:
        if row.mark == "interrupted":
            if answer.calls and _has_all_results(answer):
                return None  # a later request or a tool was stopped, not this answer
            if row.at_tool and answer.calls:
                note = f"{row.where}: the user stopped a tool that it had asked for"
                return EndSign(Stop.TOOL_CALL, note, _REQUEST)
            return EndSign(Stop.CANCELLED, f"{row.where}: the user interrupted it", _REQUEST)
        if row.is_user_message:
            break  # an interruption after that concerns another request
    return None


def calls_answered(answer: TranscriptAnswer, caps: Caps) -> EndSign | None:
    """Every call of the answer has a result."""
    count = len(answer.calls)
    if not count or not _has_all_results(answer):
        return None
    subject = "its call is" if count == 1 else f"its {count} calls are"
    return EndSign(Stop.TOOL_CALL, f"{subject} answered by tool results", _REQUEST)


def user_went_on(answer: TranscriptAnswer, caps: Caps) -> EndSign | None:
    """A new user message follows a text without calls; a message that asks for the rest is no evidence."""
    row = next((row for row in answer.after if row.is_user_message), None)
    # A request to go on may follow a cut as well, so it proves nothing. Nor does a message after an answer without the
    # mark by which the recorder marks the end of each answer (`unended`).
    hinted = row is not None and known_hint(row.text, call=False) is not None
    if row is None or hinted or answer.unended or answer.calls or not answer.text.strip():
        return None
    return EndSign(Stop.END_TURN, f"{row.where}: the user went on with a new message", _REQUEST)


def call_unfinished(answer: TranscriptAnswer) -> StopReason | None:
    """The stop reason of an answer with a call that the recorder marks as unfinished; None if every call is finished.
    If the session went on, the call was never finished (INTERRUPTED). At the end of a session the stop reason is
    unknown, because the agent may still be writing."""
    call = next((call for call in answer.calls if not call.closed), None)
    if call is None:
        return None
    if not answer.next and not any(row.is_user_message for row in answer.after):
        return unrecorded_reason(answer.word_at)
    note = f"the recorder says that the call of {call.name or 'a tool'} was never finished, and the session went on"
    return inferred_reason(Stop.INTERRUPTED, answer.word_at, "call_unfinished", call.at, note)


def step_unfinished(answer: TranscriptAnswer, row: str) -> StopReason:
    """The stop reason of an answer of an agent that marks the end of each answer, if its next one begins at `row` and
    this one has no mark. A result of its call is no evidence: an agent may run a call before its answer has ended."""
    note = f"{row}: the next answer begins, and this one has no mark of its end"
    return inferred_reason(Stop.INTERRUPTED, answer.word_at, "step_unfinished",
                           At(ExchangePart.REQUEST, None, None, row), note)


def call_rejected(answer: TranscriptAnswer, agent: str) -> StopReason | None:
    """The stop reason of an answer with a call of `{}` that the agent refused for its arguments; None without one. For
    agents that store `{}` for text that is not JSON too: the call did not come whole."""
    refused = [call for call in answer.calls if call.arguments == "{}" and call.id in answer.results
               and answer.results[call.id].is_error and refused_arguments(answer.results[call.id], call.name)]
    if not refused:
        return None
    answer.parts = [part._replace(closed=False) if part in refused else part for part in answer.parts]
    note = f"{agent} refuses {{}} for the call of {refused[0].name}, and stores {{}} for text that is not JSON too"
    return inferred_reason(Stop.MALFORMED_TOOL_CALL, answer.word_at, "call_rejected", refused[0].at, note)


RULES: tuple[tuple[str, Rule], ...] = (
    ("error_row", error_row),
    ("turn_ended", turn_ended),
    ("call_cut", call_cut),
    ("tokens_at_cap", tokens_at_cap),
    ("resumed", agent_resumed),
    ("interrupted", user_interrupted),
    ("calls_answered", calls_answered),
    ("user_went_on", user_went_on),
)
"""The rules; the first with a result counts. A user's words are no evidence of a cut."""
_REQUEST = At(ExchangePart.REQUEST)


def infer(answer: TranscriptAnswer, caps: Caps = frozenset()) -> StopReason:
    """The stop reason of an answer without a stop word, with the rule that inferred it. `caps` are the caps that the
    file states beside the answer's own."""
    for name, rule in RULES:
        sign = rule(answer, caps)
        if sign is not None:
            return inferred_reason(sign.stop, answer.word_at, name, sign.at, sign.note)
    return unrecorded_reason(answer.word_at)


def provider_stop(answer: TranscriptAnswer, caps: Caps, words: Mapping[str, StopRow]) -> StopReason:
    """The stop reason of an answer by the provider's own word in its rows; inferred if there is none. A word for a
    finished or interrupted answer is overruled if a row of the agent reports another end (`error_row`); other words
    always count."""
    if answer.word is None:
        return infer(answer, caps)
    reason = provider_reason(answer.word, answer.word_at, words, answer.api)
    # A router may report `stop` for an answer that the cap has cut; the agent's error row is the stronger evidence.
    sign = error_row(answer, caps) if reason.normalized in {*FINISHED, Stop.INTERRUPTED} else None
    if sign is None:
        missing = reason.normalized is Stop.TOOL_CALL and not answer.calls
        return missing_call_reason(reason) if missing else reason
    inference = Evidence(f"{INFERRED}error_row", sign.at, sign.note)
    return StopReason(sign.stop, answer.word, None, (*reason.evidence, inference))


def without_lost_call(answer: TranscriptAnswer) -> StopReason | None:
    """The stop reason of an answer; not recorded if a word for calls is followed by a result but the file has no call
    (the model sent one, and its row was lost), or if the arguments of a call were replaced before the file was shared.
    Such arguments are taken away."""
    stop = answer.stop
    asks = stop is not None and stop.normalized is Stop.TOOL_CALL and not answer.calls
    if asks and stop and any(row.results for row in answer.after):
        return missing_call_reason(stop)
    masked = [call for call in answer.calls if call.arguments is not None and MASKED.match(call.arguments) and (
        call.kind is not CallKind.CUSTOM or not call.arguments.lstrip()[0].isalpha())]  # code may begin with the word
    if masked:
        answer.parts = [part._replace(arguments=None, closed=False) if part in masked else part
                        for part in answer.parts]
    return shortened_call_reason(stop) if masked and stop and stop.normalized in FINISHED else stop


def wordless_notice(answers: Sequence[TranscriptAnswer], agent: str) -> list[Notice]:
    """The notice about answers without a stop word, of the provider or the recorder; empty if all have one."""
    count = sum(answer.word is None and answer.error is None and not is_recorders(answer.stop) for answer in answers)
    return share(count, len(answers), f"answers have no stop reason, as {agent} keeps none for them: what is shown for "
                 "those is inferred from other rows, and says so")


def unanswered_calls(answer: TranscriptAnswer) -> int:
    """The number of calls without a result in a complete answer after which the session went on and was not stopped."""
    went_on = answer.next or any(row.is_user_message for row in answer.after)
    whole = answer.stop is not None and (answer.stop.normalized in FINISHED or answer.unseen)
    if not went_on or not whole or any(row.mark in ("interrupted", "stopped") for row in answer.after):
        return 0
    found = answer.results
    return sum(call.kind is not CallKind.SERVER and call.id is not None and call.id not in found
               for call in answer.calls)


def _has_all_results(answer: TranscriptAnswer) -> bool:
    """Whether every call has a result; a placeholder for an interrupted call does not count. Calls without ids match as
    many results of the same tools, or of unnamed ones."""
    calls = answer.calls
    found = [_result(answer, call.id, len(calls) == 1) for call in calls]
    if len(found) > 1 and not any(call.id for call in calls):
        beside = [part for part in _nearby_results(answer) if not part.call_id]
        names = sorted(part.name for part in beside if part.name is not None)
        matched = len(beside) == len(calls) and names in ([], sorted(call.name for call in calls))
        found = list(beside) if matched else found
    return all(part is not None and not placeholder(part) for part in found)


def _nearby_results(answer: TranscriptAnswer) -> list[ToolResultPart]:
    """The results after the answer, for calls without ids; none if one comes after a message of the user, because that
    one may belong to an answer whose row is lost."""
    spoken = dropwhile(lambda row: not row.is_user_message, answer.after)
    return [] if any(row.results for row in spoken) else [part for row in answer.after for part in row.results]


def _result(answer: TranscriptAnswer, key: str | None, only: bool) -> ToolResultPart | None:
    """The result of a call, the `only` one or not. Without an id (some recorders leave ids out), the only result
    belongs to the only call."""
    if key is not None:
        return answer.results.get(key)
    alone = _nearby_results(answer) if only else []
    return alone[0] if len(alone) == 1 else None


def _count(answer: TranscriptAnswer, amount: int) -> At:
    """The place of the output token count: the number in the last row with it, else the last row."""
    end = answer.size
    for row in reversed(_rows(answer)):
        start, data = end - row_size(row), row_bytes(row)
        for path in OUTPUT_COUNTS:
            span = byte_span(data, start, *path)
            if span is not None and data[span[0] - start : span[1] - start] == b"%d" % amount:
                return At(ExchangePart.BODY, *span, pointer(*path))
        end = start - 1  # the line break between two rows
    return At(ExchangePart.BODY, *_last_row(answer))


def _rows(answer: TranscriptAnswer) -> Sequence[bytes | RowPlace]:
    return answer.rows if answer.stored is None else answer.stored.places()


def _last_row(answer: TranscriptAnswer) -> tuple[int, int]:
    return answer.size - row_size(_rows(answer)[-1]), answer.size


# -- An answer that another session quotes whole ---------------------------------------------------------------------
# A result with the whole text of a subagent's answer shows that the subagent had finished. The result may be in another
# file, so it is looked up after all files are read.

TASKS = frozenset({"Task", "Agent", "TaskOutput", "AgentOutputTool"})
"""The tools of Claude Code whose result is the text of a subagent."""
_IDENTIFYING = 40
"""The smallest number of characters, without white space, of an answer that may be quoted anywhere in a result. A
shorter answer must be the whole result, or all of the result before `BEHIND`."""
BEHIND = ("agentid:", "<usage>")
"""The beginnings of texts that Claude Code adds after a subagent's text."""
NOTICE = "<task-notification>"
"""The beginning of the notice that a subagent in the background has finished."""


def settle(exchanges: list[Exchange], inputs: Sequence[Input]) -> None:
    """Infers the end of every answer whose own file does not show it and which a parent's row quotes in full."""
    open_ends = [at for at, exchange in enumerate(exchanges) if _open(exchange)]
    if not open_ends:
        return
    results = [*_results(exchanges, inputs), *_notices(exchanges)]
    for at in open_ends if results else ():
        exchange = exchanges[at]
        folded_text = _folded_quote(exchange.response.text or "")
        found = next((note for note, text in results if _quotes(text, folded_text)), None)
        if found is not None:
            exchanges[at] = _end_by_quote(exchange, found)


def _open(exchange: Exchange) -> bool:
    if exchange.recorder is None or not is_unrecorded(exchange.response.stop_reason):
        return False
    return not exchange.response.tool_calls and bool((exchange.response.text or "").strip())


def _results(exchanges: Sequence[Exchange], inputs: Sequence[Input]) -> Iterator[tuple[str, str]]:
    """The results of calls that started a subagent, each with a note for the evidence."""
    tasks = {call.id for exchange in exchanges if exchange.recorder is not None
             for call in exchange.response.tool_calls if call.name in TASKS and call.id}
    if not tasks:
        return
    results = [(exchange.path, part) for exchange in exchanges if exchange.recorder and exchange.request
               for message in exchange.request.messages for part in message.results]
    results += [(input_file.path, answer.result) for input_file in inputs for answer in input_file.answers]
    for path, part in results:
        if part.call_id in tasks:
            yield f"the result of call {part.call_id} quotes it whole ({path})", _folded_quote(part.text)


def _notices(exchanges: Sequence[Exchange]) -> Iterator[tuple[str, str]]:
    for exchange in exchanges:
        for message in exchange.request.messages if exchange.recorder and exchange.request else ():
            if message.text.startswith(NOTICE):
                yield f"the notice that its task is done quotes it whole ({exchange.path})", _folded_quote(message.text)


def _quotes(result: str, text: str) -> bool:
    if len(text) >= _IDENTIFYING:
        return text in result
    return result == text or (result.startswith(text) and result[len(text) :].startswith(BEHIND))


def _folded_quote(text: str) -> str:
    return "".join(text.split()).lower()


def _end_by_quote(exchange: Exchange, note: str) -> Exchange:
    response = exchange.response
    at = response.stop_reason.evidence[0].at or At(ExchangePart.BODY)
    stop = inferred_reason(Stop.END_TURN, at, "quoted", At(ExchangePart.REQUEST), note)
    others = (found for found in response.findings if found.rule != "transcript.not_recorded")
    findings = tuple(found for found in (*others, reason_finding(stop)) if found is not None)
    return replace(exchange, response=replace(response, stop_reason=stop, findings=findings))

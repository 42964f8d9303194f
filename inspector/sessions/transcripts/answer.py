"""One answer of a model while it is built from the rows of a transcript.

A transcript has no requests. A request is represented by the id of the previous answer and the rows since then, as for
a provider that stores histories, so that each row is processed once, however long the history is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from inspector.sessions.reasons import (
    GUESSED_API,
    STOPPED,
    UNREAD_CALL,
    failure_reason,
    is_unrecorded,
    reason_finding,
    recorder_word,
    unrecorded_reason,
)
from inspector.sessions.recording import Act, Exchange, ToolAnswer, TurnPlace
from inspector.sessions.stored_rows import RowPlace, StoredBody, results_between
from inspector.sessions.wordings import is_error, stops, why_refused
from loop_core.values import (
    EMPTY,
    At,
    ChatResponse,
    Evidence,
    ExchangePart,
    Finding,
    Message,
    ProviderError,
    ReasoningPart,
    Request,
    ResponsePart,
    Role,
    Severity,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    ToolResultPart,
    Usage,
    shared,
)
from loop_core.wire.format import Profile

STOP_STRING = "stop_sequence"
"""Anthropic's word for an answer that a stop sequence ended; also the detail of a stop reason of the recorder."""


class TranscriptLine(NamedTuple):
    """One line of a file: its number from 1, its bytes with credentials masked, and its JSON object."""

    number: int
    data: bytes
    value: dict[str, Any]
    path: str | None = None
    """The path of the file, if its rows can be read again from the file; else None."""
    start: int = 0
    """The offset of the line in the file."""

    @property
    def place(self) -> RowPlace | None:
        """The place from which the line can be read again; None if it stays in memory."""
        return None if self.path is None else RowPlace(self.path, self.start, len(self.data), hash(self.data))


class InterimRow(NamedTuple):
    """A row between two answers: tool results, a user's text, or a text that the agent inserted."""

    line: int
    text: str
    results: tuple[ToolResultPart, ...] = ()
    own: bool = False
    """Whether the agent wrote the text, instead of the user."""
    mark: str | None = None
    """The mark of a row that is not a request: `interrupted`, `stopped`, `ended` or a key of `ERROR_MARKS`."""
    at_tool: bool = False
    """Whether a tool was interrupted, instead of the answer."""
    denied: bool = False
    """Whether the row reports, beside its results, that the user refused the calls."""
    unit: str = "line"
    """The word for a record of the file (`TranscriptReader.unit`)."""

    @property
    def where(self) -> str:
        """The place of the row, in words."""
        return f"{self.unit} {self.line}"

    @property
    def is_user_message(self) -> bool:
        """Whether the row is a message of the user, without results or a mark."""
        return not (self.own or self.results or self.mark)


class RowLink(NamedTuple):
    """The last of the rows since an answer, linked to those before it, so that branches share their common rows."""

    before: RowLink | None
    row: InterimRow
    has_user_message: bool
    """Whether a row up to this one is a message of the user; `result_count` is the number of results up to it."""
    result_count: int


class TreePlace(NamedTuple):
    """A place in the tree of rows: the answer above it, and the rows since that answer."""

    answer: TranscriptAnswer | None
    since: RowLink | None = None

    @property
    def has_user_message(self) -> bool:
        """Whether one of the rows since the answer is a message of the user."""
        return self.since is not None and self.since.has_user_message

    @property
    def result_count(self) -> int:
        """The number of results in the rows since the answer."""
        return 0 if self.since is None else self.since.result_count

    @property
    def right_above(self) -> TranscriptAnswer | None:
        """The answer above, if no row has come since."""
        return self.answer if self.since is None else None

    def across_gap(self, is_answer: bool) -> TreePlace:
        """The place for a row after this place whose parent row is lost. An answer right after an answer without calls
        begins a new tree, because the lost row may be a message of the user."""
        above = self.right_above
        return _NOWHERE if is_answer and above is not None and not above.calls else self

    def rows(self) -> tuple[InterimRow, ...]:
        """The rows since the answer, in order."""
        found, link = list[InterimRow](), self.since
        while link is not None:
            found.append(link.row)
            link = link.before
        return tuple(reversed(found))

    def after(self, row: InterimRow) -> TreePlace:
        """The place after a further row; the answer above gets the row too. The end of a turn adds no row."""
        if self.answer is not None:
            self.answer.after.append(row)
        return self if row.mark == "ended" else self.linked(row)

    def linked(self, row: InterimRow) -> TreePlace:
        """The place after a further row, which the answer above does not get."""
        has_message, count = self.has_user_message or row.is_user_message, self.result_count + len(row.results)
        return TreePlace(self.answer, RowLink(self.since, row, has_message, count))


_NOWHERE = TreePlace(None)


@dataclass(slots=True, eq=False, repr=False)
class TranscriptAnswer:
    """A model's answer, while its file is being read."""

    id: str
    named_api: str | None
    """The wire format, if a row, the agent or the caller names it."""
    model: str | None
    above: TreePlace
    line: int
    """The number of the answer's first row."""
    started: str | None = None
    lines: list[int] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    stored: StoredBody | None = None
    """The places of the rows in their file, if they are not in memory (`rows`)."""
    size: int = 0
    parts: list[ResponsePart] = field(default_factory=list)
    word: str | None = None
    word_at: At = field(default_factory=At)
    usage: Usage | None = None
    cap: int | None = None
    """The output cap, if a row of the recorder states it."""
    error: ProviderError | None = None
    status: int | None = None
    stop: StopReason | None = None
    findings: list[Finding] = field(default_factory=list)
    after: list[InterimRow] = field(default_factory=list)
    """The rows after the answer, in the file's order, up to the next answers on all branches."""
    unended: bool = False
    """Whether the recorder marks the end of each answer, and this one has no such mark."""
    recorded_place: TurnPlace | None = None
    """The place of the answer's request in the turn, if the recorder states it."""
    next: list[TranscriptAnswer] = field(default_factory=list)
    session: str = ""
    """The name of the answer's session, in a file of several sessions."""
    _results: dict[str, ToolResultPart] = field(default_factory=dict)
    _rows_read: int = 0
    """The number of rows of `after` whose results are in `_results`."""

    @property
    def api(self) -> str:
        """The wire format as which the answer is read; a guess if none is named."""
        return self.named_api or GUESSED_API

    def take(self, line: TranscriptLine) -> At:
        """Adds a row to the answer's body; returns the row's place there."""
        start = self.size + 1 if self.lines else 0  # a line break stands between two rows
        if (place := line.place) is None:
            self.rows.append(line.data)
        else:
            self.stored = (self.stored or StoredBody(place.path)).with_row(place)
        self.lines.append(line.number)
        self.size = start + len(line.data)
        return At(ExchangePart.BODY, start, self.size)

    def fail(
        self, text: str, at: At, status: int | None = None, kind: str | None = None, word: str | None = None
    ) -> None:
        """Ends the answer with the error in a text of the recorder; `word` is the recorder's stop word, if any."""
        self.status = status
        self.stop, self.error = failure_reason(text, at, status, kind, word)

    def add_text(self, text: Any) -> None:
        """Adds a visible text, if there is one."""
        if isinstance(text, str) and text:
            self.parts.append(TextPart(text))

    def add_thought(self, text: Any) -> None:
        """Adds reasoning, if there is any."""
        if isinstance(text, str) and text:
            self.parts.append(ReasoningPart(text))

    def forget(self) -> None:
        """Frees the data that only the answer's exchange needs: answers form cycles, and the collector is paused."""
        self.rows.clear()
        self.next.clear()
        self.above = self._asked_at if self.is_dropped else _NOWHERE

    @property
    def results(self) -> dict[str, ToolResultPart]:
        """Id of a call -> its result in the rows after the answer: the first that is not an error, else the first."""
        found = self._results
        # Importers look results up at every row, so each row is read once.
        fresh = [part for row in self.after[self._rows_read :] for part in row.results]
        for key, part in ((one.call_id, one) for one in fresh if one.call_id is not None):
            before = found.setdefault(key, part)
            if before is not part and is_error(before) > is_error(part):
                found[key] = part
        self._rows_read = len(self.after)
        return found

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of the answer."""
        return [part for part in self.parts if type(part) is ToolCall]

    @property
    def text(self) -> str:
        """The visible text of the answer."""
        return "".join([part.text for part in self.parts if type(part) is TextPart])

    @property
    def open(self) -> bool:
        """Whether no row has shown so far how the answer ended, so that a later one may."""
        return self.stop is None and not any(row.mark == "ended" for row in self.after)

    @property
    def is_dropped(self) -> bool:
        """Whether later requests do not contain the answer, because it failed before any output."""
        return self.error is not None and not self.parts

    # -- the answer as an exchange ---------------------------------------------------------------------------------

    def exchange(
        self, path: str, recorder: str, profile: Profile, evidence: tuple[Evidence, ...], steered: bool = False
    ) -> Exchange:
        """The exchange of the answer, for which `stop` must be known. `steered`: text beside results opens no turn."""
        stop = self.stop or unrecorded_reason(self.word_at)
        if recorder_word(stop) == STOP_STRING:
            stop = stop._replace(detail=STOP_STRING)
        reason = reason_finding(stop, next((each.message for each in self.findings if each.rule == STOPPED), ""))
        findings = tuple(self.findings)
        if reason is not None:  # many answers have only this finding and share the tuple
            findings = (*findings, reason) if findings else shared((reason,))
        response = ChatResponse(
            self.api, self._final_parts(stop), stop, self.usage, id=self.id, model=self.model, http_status=self.status,
            error=self.error, native=EMPTY, saw_stop_reason=stop.raw is not None, findings=findings, size=self.size)
        return Exchange(
            path, self.line - 1, self.api, "", profile, evidence, self._request(), None, response,
            self.stored or b"\n".join(self.rows),
            started=self.started, recorder=recorder, lines=tuple(self.lines),
            recorded_place=self.recorded_place or (TurnPlace.REQUEST if self._opens(steered) else None),
            refusals=self._refusals(), session=self.session)

    def _opens(self, steered: bool) -> bool:
        """Whether the answer's request begins a turn, even if the previous answer has calls."""
        above, rows = self.above, self.above.rows()
        # After an interruption the next message is a new request, even if calls have no results.
        if any(row.mark == "interrupted" for row in rows) or (above.answer and above.answer.is_cancelled):
            return any(not row.results and row.mark is None for row in rows)
        unseen = above.answer is not None and above.answer.unseen
        return above.has_user_message and (unseen or (not steered and above.result_count > 0))

    def _refusals(self) -> Mapping[str, str]:
        """Id of a call that did not run -> the reason in its result."""
        denied = {part.call_id for row in self.after if row.denied for part in row.results}
        unread = {each.at for each in self.findings if each.rule == UNREAD_CALL}
        calls = {call.id: (call.at in unread, call.name) for call in self.calls} if self.results else {}
        return {key: why for key, part in self.results.items()
                if (why := why_refused(part, key in denied, *calls.get(key, ()))) is not None} or EMPTY

    # -- what the user did to the answer ---------------------------------------------------------------------------

    @property
    def unseen(self) -> bool:
        """Whether no row shows how the answer ended."""
        return self.stop is not None and is_unrecorded(self.stop)

    @property
    def is_cancelled(self) -> bool:
        """Whether the answer was interrupted."""
        return self.stop is not None and self.stop.normalized is Stop.CANCELLED

    def end(self) -> Act | None:
        """The operator's act that ended the turn after this answer, if there is one; a finding names its place."""
        reason = self._why_stopped()
        if reason is None:
            return None
        self.findings.append(Finding(STOPPED, Severity.INFO, reason, At(ExchangePart.REQUEST)))
        return None if self.is_cancelled else Act("cancel", True, self.line - 1)

    def _why_stopped(self) -> str | None:
        waits: str | None = None
        for row in self.after:
            if row.mark in ("interrupted", "stopped"):
                who = "the user interrupted the turn" if row.mark == "interrupted" else row.text
                return f"{row.where}: {who}"
            if row.is_user_message or row.mark == "ended":
                break
            if waits is None and any(stops(part) for part in row.results):
                waits = f"{row.where}: the user refused a call, and the agent was told to stop and wait"
        if waits is None or any(not later.above.has_user_message for later in self.next):
            return None
        return waits

    def _final_parts(self, stop: StopReason) -> tuple[ResponsePart, ...]:
        """The parts of the answer. A last call that a limit or a stop sequence may have cut is marked as not closed."""
        # A call with the same id and content comes from a row that was written twice. Only a further request would need
        # a signature, and a transcript cannot be sent again (`inspector.live.target.why_unsendable`).
        parts = tuple({part[:3] if type(part) is ToolCall and part.id else at:
                       part._replace(signature=None) if type(part) is ReasoningPart and part.signature else part
                       for at, part in enumerate(self.parts)}.values())
        last = parts[-1] if parts else None
        budget = stop.normalized in (Stop.MAX_TOKENS, Stop.CONTEXT_WINDOW_EXCEEDED)
        cut = budget or STOP_STRING in (stop.raw, stop.detail)
        return (*parts[:-1], last._replace(closed=False)) if type(last) is ToolCall and cut else parts

    @property
    def _asked_at(self) -> TreePlace:
        """The place of the answer's request; after failed attempts, that of the first, whose request was the same."""
        above = self.above
        while above.since is None and above.answer is not None and above.answer.is_dropped:
            above = above.answer.above
        return above

    def _request(self) -> Request:
        above = self._asked_at
        before, rows = above.answer, above.rows()
        results = results_between(before, rows, self.line)
        messages = [Message(Role.TOOL, results)] if results else []
        text_rows = [row for row in rows if not row.results and row.mark is None]
        typed = [row for row in text_rows if row.is_user_message] or text_rows
        messages += [Message(Role.USER, (TextPart(row.text),)) for row in typed]
        # A failed answer names no model, but its repetition does.
        model = self.model or next((later.model for later in self.next), None)
        return Request(self.api, tuple(messages), model, max_tokens=self.cap, extra=EMPTY,
                       previous_id=before.id if before else None)

    def answers(self) -> list[ToolAnswer]:
        """Tool results that no later request contains, because the session ended or went on elsewhere before them."""
        late = [part for row in self.after if all(row.line > each.line for each in self.next) for part in row.results]
        found = {part.call_id or at: self.results.get(part.call_id or "", part) for at, part in enumerate(late)}
        return [ToolAnswer(self.line - 1, part) for part in found.values()]


def text_of(content: Any) -> str:
    """The text of a content, which is a text or a list of texts and blocks; blocks of other types are named."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join([block if isinstance(block, str) else
                      block["text"] if isinstance(block.get("text"), str) else f"[{block.get('type')}]"
                      for block in content if isinstance(block, (str, dict))])


def any_text(value: Any) -> str:
    """The text of a content; any other value as JSON."""
    return text_of(value) if value is None or isinstance(value, (str, list)) else json.dumps(value, ensure_ascii=False)

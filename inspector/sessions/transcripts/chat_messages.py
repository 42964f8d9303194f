"""Reads messages in the forms of chat APIs, as harnesses, agents and their logs store them.

The module has a reader of consecutive messages without a tree of rows (`ChatReader`), and functions for the parts of a
message in OpenAI's or Anthropic's form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

from inspector.sessions import redact
from inspector.sessions.importers.records import Piece
from inspector.sessions.recording import BELOW, Options, SessionAbout, Skipped, TurnPlace
from inspector.sessions.transcripts import Fields, TranscriptReader, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import (
    InterimRow,
    TranscriptAnswer,
    TranscriptLine,
    TreePlace,
    any_text,
    text_of,
)
from inspector.sessions.transcripts.ending_rules import call_rejected, wordless_notice
from inspector.sessions.transcripts.member_values import known_text, moment_text, numbered_objects, objects_of
from loop_core.values import ArgsForm, At, CallKind, OpaquePart, ReasoningPart, TextPart, ToolCall, ToolResultPart

THOUGHTS = frozenset({"think", "thinking", "reasoning", "redacted_thinking"})
"""The types of blocks of reasoning: Kimi's, that of Anthropic and Mistral, Inspect's, and Anthropic's for hidden
ones."""


def is_thought(block: Any) -> bool:
    """Whether a block is reasoning, which may be between the blocks of text."""
    return isinstance(block, dict) and str(block.get("type")) in THOUGHTS


def said_text(content: Any) -> str:
    """The text of a model's message, without its reasoning."""
    return text_of([block for block in content if not is_thought(block)] if isinstance(content, list) else content)


# -- The parts of one message -----------------------------------------------------------------------------------------


def take_message(answer: TranscriptAnswer, message: dict[str, Any], line: TranscriptLine, at: At, *path: str) -> None:
    """Reads reasoning, text and calls of the message at `path` of a row."""
    thought, content = message.get("reasoning_content") or message.get("reasoning"), message.get("content")
    answer.add_thought(thought)
    shown = known_text(thought)
    beside = [] if shown else objects_of(message.get("thinking_blocks"))
    thoughts = [thought_of(block) for block in beside or filter(is_thought, objects_of(content))]
    # A block is also kept without a text, which may be hidden. It is left out if it repeats the shown reasoning.
    answer.parts += [part for part in thoughts if shown is None or part.text not in shown]
    answer.add_text(said_text(content))
    take_calls(answer, message.get("tool_calls"), line, at, *path, "tool_calls")


def thought_of(block: dict[str, Any]) -> ReasoningPart:
    """The reasoning of a block; recorders have different members for the text."""
    text = next((block[name] for name in ("think", "thinking", "reasoning", "text") if block.get(name)), "")
    return ReasoningPart(text_of(text))


def take_calls(answer: TranscriptAnswer, calls: Any, line: TranscriptLine, at: At, *path: str | int) -> None:
    """Reads the calls of a list in OpenAI's form; arguments stay exactly as written."""
    for number, call in numbered_objects(calls):
        function = call.get("function")
        if not isinstance(function, dict):
            answer.parts.append(OpaquePart(str(call.get("type")), slice_of(line.data, *path, number) or "{}"))
            continue
        find = partial(slice_of, line.data, *path, number, "function")
        answer.parts.append(call_of(call.get("id"), function.get("name"), function.get("arguments"),
                                    find, "arguments", pointer_at(at, *path, number)))


def arguments_of(value: Any, find: partial[str | None], member: str) -> tuple[str | None, ArgsForm]:
    """The arguments of a call: the model's string, or the verbatim JSON of an object that the recorder parsed."""
    if isinstance(value, str):
        return value, ArgsForm.STRING
    return None if value is None else find(member), ArgsForm.OBJECT


def call_of(key: Any, name: Any, value: Any, find: partial[str | None], member: str, at: At) -> ToolCall:
    """One call. Its arguments are `value`; `find` looks up the verbatim JSON of `member`."""
    arguments, form = arguments_of(value, find, member)
    return ToolCall(known_text(key), known_text(name) or "", arguments, True, form=form, at=at)


def take_call(
    answer: TranscriptAnswer, call: dict[str, Any], line: TranscriptLine, at: At, *path: str | int,
    key: str = "id", name: str = "name", member: str = "arguments",
) -> None:
    """Reads the call at `path` of a row, with its id, its name and its arguments in these members."""
    answer.parts.append(call_of(call.get(key), call.get(name), call.get(member), partial(slice_of, line.data, *path),
                                member, pointer_at(at, *path)))


def command_call(command: str, name: str, at: At) -> ToolCall:
    """The command that a harness extracted from the text of an answer, as a call."""
    return ToolCall(None, name, command, True, CallKind.CUSTOM, at=at)


def pointer_at(at: At, *path: str | int) -> At:
    """A place within a row."""
    return at._replace(pointer="".join([f"/{step}" for step in path]))


# -- The reader of a list ---------------------------------------------------------------------------------------------


class ChatReader(TranscriptReader):
    """Reads a file of consecutive messages, of one session or of several; subclasses interpret them for a format. Each
    answer has the name of its session, by which the turns of a file with many sessions can be found."""

    unit = "message"
    key = ""
    row_word = ("a message", "messages")
    several_apis = True
    repairs: ClassVar[bool] = False
    """Whether a text of the agent after an answer asks for the same answer in another form."""
    wordless: ClassVar[bool] = True
    """Whether the number of answers without a stop word is reported, if `words` is empty."""
    unanswered: ClassVar[str] = ""
    """The remark about sessions that end with a message of the user; empty for none."""
    awaits_results: ClassVar[bool] = False
    """Whether `unanswered` is also true of sessions that end with the results of calls."""
    hides_broken_arguments: ClassVar[bool] = False
    """Whether the agent stores `{}` for arguments that were not JSON too."""

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.session = ""
        """The session of the current message."""
        self.ends: dict[str, TreePlace] = {}
        """Lane -> its last place."""
        self.current_lane = ""
        self.last = TreePlace(None)
        """The place after the last message, of any lane."""
        self.cap: int | None = None
        """The output cap that the file states for all its requests."""
        self.title = self.session_id = self.parent_id = ""
        self.titles: dict[str, str] = {}
        """Session -> its title, in a file that may hold several."""
        self.parents: dict[str, str] = {}
        """Session -> the session that started it."""
        self.same_titles: Counter[str] = Counter()
        """Title -> the number of sessions of the file with this title."""
        self.runs: dict[int, str] = {}
        """Number of a run's first record -> the name of the run, in a file of several runs."""

    def several(self, runs: Iterable[tuple[str, Iterable[Piece]]]) -> Iterator[Piece]:
        """The records of several runs, numbered consecutively; a run without records is reported."""
        before = 0
        for index, (name, pieces) in enumerate(runs):
            number, title = 0, redact.text(name)[:80]
            for number, piece, last in pieces:
                if number == 1:
                    self.runs[before + 1] = title
                yield before + number, piece, last
            before += number
            if number == 0:
                self.reading.skipped.append(Skipped(index, f"{title} has no {self.unit}s"))

    def begins(self, line: TranscriptLine) -> bool:
        """Whether a record begins another run, which does not continue earlier records."""
        if line.number in self.runs:
            self.session = self.runs[line.number]
            self.current_lane = self.lane(line.value)
            self.ends.clear()
        return line.number in self.runs

    def session_of(self, value: dict[str, Any]) -> str:
        """The session of a message: that of the message before, unless the format names it."""
        return self.session

    def lane(self, value: dict[str, Any]) -> str:
        """What a message shares with those that it follows: its session, or the agent that wrote it."""
        return self.session

    def above(self, value: dict[str, Any]) -> TreePlace:
        """The place of the previous message of the same lane."""
        self.session = self.session_of(value)
        self.current_lane = self.lane(value)
        return self.here

    @property
    def here(self) -> TreePlace:
        """The last place of the current lane."""
        return self.ends.get(self.current_lane, TreePlace(None))

    @here.setter
    def here(self, place: TreePlace) -> None:
        self.ends[self.current_lane] = place

    def keep(self, line: TranscriptLine, place: TreePlace) -> None:
        """Stores the place as the last of its lane, and under the message's key if it has one, to recognise repeats."""
        super().keep(line, place)
        self.current_lane = self.lane(line.value)
        self.last = self.here = place

    def answer(
        self, line: TranscriptLine, place: TreePlace, name: str = "", model: Any = None, *, key: str = "",
        api: str | None = None, begin: Any = None,
    ) -> TranscriptAnswer:
        """Adds an answer that begins at a message. Its id is `key`, else the name and the number of the message."""
        key = key or f"{name or self.unit}:{line.number}"
        answer = self.add(self.begin(key, api, model or self.model, place, line))
        answer.started = moment_text(begin) or answer.started
        answer.cap, answer.session = self.cap, self.session
        rows = place.rows()  # a complaint after results is about an answer that the file lacks
        complaint = any(row.own for row in rows) and not any(row.results for row in rows)
        answer.recorded_place = TurnPlace.REPAIR if complaint and place.answer is not None and self.repairs else None
        self.here = TreePlace(answer)
        return answer

    def failed_request(
        self, line: TranscriptLine, place: TreePlace, why: str, *, after_results: bool, kind: str | None = None
    ) -> TreePlace | None:
        """Adds an answer that failed with this error, if a request has no answer so far; returns the place after it. A
        request begins with a message of the user or, with `after_results`, with the results of calls. None if the error
        belongs to no request."""
        if not (place.has_user_message or (after_results and place.result_count)):
            return None
        answer = self.answer(line, place)
        answer.fail(why, answer.take(line), kind=kind)
        return TreePlace(answer)

    def skip(self, line: TranscriptLine, why: str) -> None:
        """Adds a row without a part of an exchange to the skipped ones, with the reason."""
        self.reading.skipped.append(Skipped(line.number - 1, why))

    def stream_answer(self, line: TranscriptLine, place: TreePlace, name: str) -> TranscriptAnswer:
        """The answer of a stream's event, to which the row is added: the one right above, else a new one."""
        answer = place.right_above or self.answer(line, place, name)
        answer.word_at = answer.take(line)
        return answer

    def say(
        self, line: TranscriptLine, place: TreePlace, text: str, results: tuple[ToolResultPart, ...] = (), *,
        own: bool = False, mark: str | None = None, at_tool: bool = False, denied: bool = False,
    ) -> TreePlace:
        """Adds a row between two answers; returns the place after it."""
        after = place.after(InterimRow(line.number, text, results, own, mark, at_tool, denied, self.unit))
        # After an interruption the next message begins a turn (`TranscriptAnswer._opens`), but not after other marks.
        self.here = place if mark is not None and mark != "interrupted" else after
        return self.here

    def results(
        self, line: TranscriptLine, place: TreePlace, *parts: ToolResultPart, denied: bool = False
    ) -> TreePlace:
        """Adds the results of calls, if there are any."""
        return self.say(line, place, "", parts, denied=denied) if parts else place

    def result(
        self, line: TranscriptLine, place: TreePlace, key: Any, text: str, failed: bool = False, name: Any = None
    ) -> TreePlace:
        """Adds the result of a call."""
        return self.say(line, place, "", (ToolResultPart(known_text(key), known_text(name), text, failed),))

    def common(self) -> object:
        """The cap of all requests, and the titles and parents from which the names of sessions are made."""
        return self.cap, tuple(self.titles.items()), tuple(self.parents.items())

    def settle(self) -> None:
        """Also names the session of each answer by its title, and finds calls that the agent could not parse."""
        self.same_titles.update(self.titles.values())
        for answer in self.answers:
            answer.session = self.title_of(answer.session)
            if self.hides_broken_arguments:
                answer.stop = answer.stop or call_rejected(answer, self.agent)
        super().settle()

    def title_of(self, session: str) -> str:
        """The title of a session, after the titles of those that started it."""
        names, visited_ids = list[str](), set[str]()
        # the parents in a damaged file may form a ring
        while session and session not in visited_ids and (not names or session in self.titles):
            visited_ids.add(session)
            title = self.titles.get(session) or session
            # the end of the id, because many ids begin with a time
            names.append(title if self.same_titles[title] < 2 else f"{title} ({session[-8:]})")
            session = self.parents.get(session, "")
        return BELOW.join(reversed(names))

    def summarise(self) -> None:
        """Also reports what is missing, and describes the file's only session or reports the number of its sessions."""
        super().summarise()
        if self.wordless and not self.words:
            self.reading.notices[:0] = wordless_notice(self.answers, self.agent)
        waiting = sum(place.has_user_message or (self.awaits_results and place.result_count > 0)
                      for place in self.ends.values())
        if self.unanswered and waiting:
            self.remarks[self.unanswered] += waiting
        if len(self.titles) == 1:
            key, title = next(iter(self.titles.items()))
            self.reading.about = SessionAbout(title, id=key, parent=self.parents.get(key, ""))
        elif self.titles:
            below = f", {len(self.parents):,} of them begun by another" if self.parents else ""
            self.reading.notices.append(f"sessions in it: {len(self.titles):,}{below}")
        elif self.title or self.session_id:
            self.reading.about = SessionAbout(self.title, id=self.session_id, parent=self.parent_id)


class MessageReader(ChatReader):
    """Reads a file whose records are messages of OpenAI's chat, without stop words."""

    fields: ClassVar[Fields] = {"": {
        "role": (str,), "content": (str, list), "tool_calls": (list,), "tool_call_id": (str,), "name": (str,)}}
    marks: ClassVar[frozenset[str]] = frozenset({"system"})
    """The roles of records without a part of an exchange."""

    def own(self, text: str) -> bool:
        """Whether the agent wrote a message with the role of the user."""
        return False

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a message of the model, of a tool or of the user."""
        value, role = line.value, line.value.get("role")
        text = text_of(value.get("content"))
        if role == "assistant":
            answer = self.answer(line, place)
            take_message(answer, value, line, answer.take(line))
            return TreePlace(answer)
        if role == "tool":
            failed = text.startswith(("<system>ERROR", "<tool_error>"))  # marks of Kimi CLI and Mistral Vibe
            return self.result(line, place, value.get("tool_call_id"), text, failed, value.get("name"))
        if role == "user":
            return self.say(line, place, text, own=self.own(text))
        lines.count(role, self.marks)
        return place


def unanswered_call(place: TreePlace) -> ToolCall | None:
    """The only call above a place that has no result so far; None if there is none, or several."""
    answer = place.answer
    if answer is None:
        return None
    return answer.calls[0] if len(answer.calls) == 1 and not place.result_count else None


# -- Messages of content blocks in Anthropic's form, which agents also use for other models (Droid, Cursor) ----------
# Names of blocks differ by release: a call is `tool_use` or `tool_call`, a result `tool_result` or `tool-result`. Ids
# may be missing.

CALLS = frozenset({"tool_use", "tool_call", "tool-call"})
RESULTS = frozenset({"tool_result", "tool-result"})


def blocks_of(content: Any) -> list[Any]:
    """The blocks of a message; a plain text is one block."""
    return content if isinstance(content, list) else [] if content is None else [content]


def take_blocks(answer: TranscriptAnswer, content: Any, line: TranscriptLine, at: At, *path: str) -> None:
    """Reads the parts of an answer from the content at `path` of a row."""
    for number, block in enumerate(blocks_of(content)):
        if isinstance(block, str):
            answer.parts.append(TextPart(block))
        elif isinstance(block, dict):
            take_block(answer, block, line, at, *path, number)


def take_block(answer: TranscriptAnswer, block: dict[str, Any], line: TranscriptLine, at: At, *path: str | int) -> None:
    """Reads the block at `path` of a row."""
    kind = block.get("type")
    thought = block.get("text" if kind == "reasoning" else "thinking")
    find = partial(slice_of, line.data, *path)
    if kind in CALLS:
        # the name depends on the agent's release
        member = next((name for name in ("input", "parameters", "arguments", "args") if name in block), "input")
        answer.parts.append(call_of(block.get("id") or block.get("toolCallId"), block.get("name"), block.get(member),
                                    find, member, pointer_at(at, *path)))
    elif isinstance(thought, str):
        answer.parts.append(ReasoningPart(thought))
    elif isinstance(block.get("text"), str):
        answer.parts.append(TextPart(block["text"]))
    else:
        answer.parts.append(OpaquePart(str(kind), find() or "{}"))


def results_of(content: Any) -> tuple[ToolResultPart, ...]:
    """The tool results among the blocks of a message."""
    return tuple(
        ToolResultPart(known_text(block.get("tool_use_id")) or known_text(block.get("toolCallId")),
                       known_text(block.get("name")), any_text(block.get("content", block.get("output"))),
                       block.get("is_error") is True or block.get("isError") is True)
        for block in blocks_of(content) if isinstance(block, dict) and block.get("type") in RESULTS
    )


def words_of(content: Any) -> str:
    """The text of a message without its results; other blocks are named."""
    return text_of([block for block in blocks_of(content)
                    if not (isinstance(block, dict) and block.get("type") in RESULTS)])

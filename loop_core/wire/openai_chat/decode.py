"""Decodes Chat Completions, whole or streamed, into a `ChatResponse`, for OpenAI and the servers that imitate it.

This module chooses the choice that is read, maps the stop reason, and reads the fields beside the choices (usage,
errors, words of servers). `choice` reads messages, `calls` assembles calls. The first section joins several choices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from loop_core.json_parser import JsonPath
from loop_core.values import (
    FINISHED,
    At,
    ChatResponse,
    Evidence,
    ExchangePart,
    ResponsePart,
    Severity,
    Stop,
    StopReason,
    ToolCall,
    Usage,
)
from loop_core.wire.base import Decoder as Base
from loop_core.wire.body import mapping_of, token_count, value_at
from loop_core.wire.failures import ForeignWord, StopRow, read_error
from loop_core.wire.json_values import slice_of
from loop_core.wire.openai_chat import table
from loop_core.wire.openai_chat.choice import GrowingChoice, join_pieces
from loop_core.wire.openai_chat.table import API
from loop_core.wire.reads import UNREAD_CALL
from loop_core.wire.response_calls import earlier_calls

# -- From choices to one answer --------------------------------------------------------------------------------------
# Rules that need the complete response: which choices are read, the mapped reason, and findings about the whole.

MapWord = Callable[[str | None, At | None], StopReason]
Remark = tuple[str, str, At | None, Severity]


def pick(choices: Collection[GrowingChoice], n: int) -> list[GrowingChoice]:
    """The first choice, and if one answer was requested, the other choices that hold other kinds of content
    (Copilot), also where the first is empty."""
    ordered = sorted(choices, key=lambda choice: choice.index if type(choice.index) is int else len(choices))
    first = ordered[:1]
    # Several requested choices are several answers, of which the first is read.
    if n != 1 or len(ordered) < 2:
        return first
    kinds = [kind for choice in ordered for kind in choice.fields]
    if len(kinds) != len(set(kinds)):
        return first
    return [choice for choice in ordered if choice.fields or choice is ordered[0]]


def settle(
    read: Sequence[GrowingChoice], map_word: MapWord, rows: Mapping[str, StopRow]
) -> tuple[StopReason, str | None]:
    """The mapped stop reason, and the earlier word if a contradiction replaced it. Of several choices, the first that
    is not cleanly finished decides. A cut or a failure that was reported before a clean word outranks it, and so do a
    refusal (whose reason is `stop`) and a filter that removed something."""
    if not read:
        return map_word(None, None), None
    stops = [map_word(choice.raw, choice.raw_at) for choice in read]
    spoken = next((i for i, stop in enumerate(stops) if stop.normalized not in FINISHED), 0)
    lead, stop = read[spoken], stops[spoken]
    if stop.normalized not in FINISHED:
        return stop, None
    for word, at in lead.earlier:
        before = map_word(word, at)
        if before.normalized not in FINISHED:
            return _tighten(stop, before.normalized, before.detail, f"{API}.earlier_reason", at, word), word
    for choice in read:
        signs = ((table.REFUSAL, choice.refusal, choice.refusal_at),
                 (table.FILTERED, choice.filtered, choice.filtered_at))
        for key, found, sign_at in signs:
            row = rows.get(key)
            if found and row is not None:
                return _tighten(stop, row.stop, row.detail, f"{API}.{key}", sign_at, ""), None
    return stop, None


def words(read: Sequence[GrowingChoice], earlier: str | None) -> dict[str, str]:
    """The stop words of the choices besides their finish reason."""
    found = {name: word for choice in reversed(read) for name, word in choice.words.items()}
    filtered = {name for choice in read for name in choice.filtered}
    if filtered:
        found[table.FILTERS] = ",".join(sorted(filtered))
    if earlier is not None:
        found[table.EARLIER] = earlier
    return found


def remarks(
    read: Sequence[GrowingChoice], parts: Sequence[ResponsePart], usage: Usage | None, empty: At | None, stop: Stop,
    total: int | None,
) -> Iterator[Remark]:
    """The findings about the complete response; `empty` is the place of an empty `choices` that ended it, `stop` its
    mapped reason, and `total` the server's count of all tokens."""
    for choice in read if stop is Stop.MAX_TOKENS else ():  # the cut decides, and these are only reported
        if choice.refusal:
            yield (f"{API}.{table.REFUSAL}", "a part of the answer is a refusal", choice.refusal_at,
                   Severity.WARNING)
        if choice.filtered:
            yield (f"{API}.{table.FILTERED}", f"a filter took something away: {', '.join(sorted(choice.filtered))}",
                   choice.filtered_at, Severity.WARNING)
    if empty is not None:
        yield (f"{API}.empty_end", "the answer ends with an empty list of choices and without a finish reason", empty,
               Severity.WARNING)
    if any(choice.late for choice in read):
        yield (f"{API}.after_stop", "text or a piece of a call came after the finish reason", None, Severity.WARNING)
    unnamed = [part for part in parts if type(part) is ToolCall and part.id is None]
    if len(unnamed) > sum(choice.deprecated_call is not None for choice in read):  # the deprecated field has no id
        yield f"{API}.id_missing", "a tool call has no id", unnamed[0].at, Severity.INFO
    thought, spent = (usage.reasoning_tokens or 0, usage.output_tokens) if usage else (0, None)
    # Gateways to Gemini count thinking only in the total, not in the output (mozilla-ai/any-llm#1290).
    counted = None if usage is None or usage.input_tokens is None or spent is None else usage.input_tokens + spent
    if total is not None and counted is not None and total > counted:
        yield (f"{API}.usage_uncounted",
               f"{total:,} tokens are reported in all, and only {counted:,} as input or output", None, Severity.INFO)
    if spent is not None and thought > spent:
        yield (f"{API}.usage_contradiction",
               f"{thought:,} reasoning tokens are reported, and only {spent:,} output tokens, which should hold them",
               None, Severity.WARNING)


def _tighten(stop: StopReason, word: Stop, detail: str | None, rule: str, at: At | None, note: str) -> StopReason:
    return stop._replace(normalized=word, detail=detail, evidence=(*stop.evidence, Evidence(rule, at, note)))


_QUIRKS: Mapping[str, Severity] = {
    f"{API}.index_missing": Severity.INFO,
    f"{API}.index_shared": Severity.INFO,
    f"{API}.call_repeated": Severity.INFO,
    f"{API}.reasoning_twice": Severity.INFO,
    f"{API}.tool_calls_object": Severity.INFO,
    f"{API}.phantom_call": Severity.INFO,
    f"{API}.unknown_field": Severity.INFO,
}
"""Rule of a quirk that loses nothing -> the severity of its finding. All other quirks are warnings."""


class Decoder(Base):
    """The decoder of one Chat Completions response."""

    api: ClassVar[str] = API
    stop_reasons: ClassVar[Mapping[str, StopRow]] = table.STOP_REASONS
    foreign_reasons: ClassVar[Mapping[str, ForeignWord]] = table.FOREIGN_REASONS
    fold_case: ClassVar[bool] = True  # MAX_TOKENS (ironclaw PR#5665, agentao PR#125)
    closing = (*Base.closing, b'finish_reason":"', b'finish_reason": "')

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._choices: list[GrowingChoice] = []
        self._states: dict[Any, GrowingChoice] = {}
        self._counts: Mapping[str, Any] = {}
        self._named = False
        self._empty_at: At | None = None
        self._progress = 0
        self._before: Any = None  # the chunk before the one that is read
        self._current: Any = None  # the chunk that is read

    # -- streams -------------------------------------------------------------------------------------------------

    def on_event(self, event: Any, name: str | None) -> bool | None:
        """Reads one chunk; nearly all hold a piece of one known choice and nothing else."""
        self._before, self._current = self._current, event
        try:
            (choice,) = event["choices"]
            delta = choice["delta"]
            plain = name is None and choice.get("finish_reason") is None and "error" not in event
            if plain and not (choice.get(table.FILTERS) or choice.get("native_finish_reason")):
                usage = event.get("usage")
                if usage and type(usage) is dict:
                    self._counts = usage
                state = self._states[choice["index"]]
                text = delta.get("content")
                if type(text) is str and (len(delta) == 1 or (len(delta) == 2 and "role" in delta)):
                    if text:
                        state.text.append(text)
                    elif state.begun:
                        state.note_opening(delta)
                    return True
                if delta and state.append(delta):
                    return "tool_calls" not in delta
        except (KeyError, TypeError, ValueError, AttributeError):
            pass  # some other chunk
        self._chunk(event, name)
        return None

    def _chunk(self, event: Any, name: str | None) -> None:
        choices, usage = event.get("choices"), event.get("usage")
        if usage and type(usage) is dict:
            self._counts = usage
        if not self._named:
            self._identity(event)
        groq = event.get("x_groq")
        if type(groq) is dict and groq.get("error"):  # why a stream stopped early (groq 1.7.0 chat_completion_chunk.py)
            self._failure(groq, self.at("x_groq"))
        if not choices or name is not None or "error" in event:
            self._read_metadata(event)
        for i, choice in enumerate(choices or ()):  # none beside usage (API reference, stream_options.include_usage)
            state = self._states.get(choice.get("index"))
            if state is None:
                state = self._open(choice.get("index"))
                state.first_id = state.first_id or event.get("id")
            delta, call_count = choice.get("delta"), len(state.calls.opened)
            if delta:
                state.take(delta, ("choices", i, "delta"), self.at, self._verbatim, whole=False)
            elif choice.get("message"):
                self._message(state, choice["message"], ("choices", i, "message"))
            state.begun += [(call, event.get("id")) for call in state.calls.opened[call_count:]]
            reason, member = table.reason_of(choice)
            if reason and _word(reason) not in table.NO_REASON:
                state.ends.append((event.get("id"), mapping_of(self._before).get("id")))
            if reason is not None or not delta or choice.get(table.FILTERS) or choice.get("native_finish_reason"):
                self._ending(state, event, choice, reason, ("choices", i), member)
            if delta and state.begun:
                state.note_opening(delta)

    def _message(self, state: GrowingChoice, message: Any, base: JsonPath) -> None:
        """Reads a whole message inside a stream; text that was already streamed is not added again."""
        if type(message) is not dict:
            return
        self._note(f"{API}.message_in_stream", "a chunk holds a message instead of a delta")
        if state.progress and not state.whole:
            earlier_text, text = join_pieces(state.text), message.get("content")
            if type(text) is str and text.startswith(earlier_text):
                message = {**message, "content": text[len(earlier_text) :]}
            if state.reasoning or state.blocks:
                thought = (*table.REASONING_FIELDS, *table.REASONING_BLOCKS)
                message = {key: value for key, value in message.items() if key not in thought}
            message = {**message, "tool_calls": state.without_cut_copies(message.get("tool_calls"))}
        elif state.raw and state.whole:  # e.g. a list of answers without ids
            self._note(f"{API}.second_answer", "another answer follows the first one")
            for call in state.calls.opened:
                call.unended = True
        state.whole = state.whole or not state.progress
        state.take(message, base, self.at, self._verbatim, whole=False)

    # -- whole bodies --------------------------------------------------------------------------------------------

    def on_body(self, body: Any) -> None:
        """Reads a whole completion or an error."""
        self._identity(body)
        if type(usage := body.get("usage")) is dict:
            self._counts = usage
        self._read_metadata(body)
        listed = choices if isinstance(choices := body.get("choices"), list) else []
        # Servers list several choices in any order (TGI); others give each choice the same index, or none.
        numbers = {choice["index"] for choice in listed if type(choice) is dict and type(choice.get("index")) is int}
        for i, choice in enumerate(listed):
            if type(choice) is not dict:
                continue
            state = self._open(choice["index"] if len(numbers) == len(listed) else i)
            key = "message" if choice.get("message") else "delta"
            if type(message := choice.get(key)) is dict:
                state.take(message, ("choices", i, key), self.at, self._verbatim, whole=True)
            reason, member = table.reason_of(choice)
            self._ending(state, body, choice, reason, ("choices", i), member)

    # -- beside the message --------------------------------------------------------------------------------------

    def _ending(self, state: GrowingChoice, event: Any, choice: Any, reason: Any, path: JsonPath, member: str) -> None:
        """Reads a finish reason, and the fields that servers put beside it."""
        word = None if reason is None else _word(reason)
        if word is not None and word not in table.NO_REASON:
            self.raw = word
            state.stop(word, self.at(*path, member))
        for holder in (choice.get(table.PROVIDER_FIELDS), choice):  # the choice's own word last, because it counts
            for name in table.CHOICE_WORDS if type(holder) is dict else ():
                if holder.get(name) is not None:
                    state.words[name] = _word(holder[name])
        self._body_words(event)
        if filtered := table.filtered_categories(choice.get(table.FILTERS)):
            state.filtered |= filtered
            state.filtered_at = self.at(*path, table.FILTERS)
        # Groq puts usage into x_groq, Moonshot into the choice (pi-ai openai-completions.js).
        groq = event.get("x_groq")
        usage = event.get("usage") or choice.get("usage") or (groq.get("usage") if type(groq) is dict else None)
        if usage and type(usage) is dict:
            self._counts = usage
        if choice.get("error"):
            self._failure(choice, self.at(*path))

    def _read_metadata(self, event: Any) -> None:
        """Reads fields beside the choices: an error in the stream, Azure's prompt annotations, words of the server."""
        at = self.at()
        # vLLM's error is the object itself: {"object": "error", "message": …}.
        if event.get("error") or event.get("object") == "error" or event.get("base_resp"):
            self._failure(event, at)
        filtered = table.filtered_categories(event.get(table.PROMPT_FILTERS))
        if filtered:
            self.native[table.PROMPT_FILTERS] = ",".join(sorted(filtered))
            self.find(f"{API}.prompt_filtered", f"the prompt was filtered: {', '.join(sorted(filtered))}", at)
        self._body_words(event)
        # MiMo and LM Studio end so without a reason (Zoo-Code#425, vaadin/flow-components b88af58).
        if event.get("choices") == []:
            self._empty_at, self._progress = at, sum(choice.progress for choice in self._choices)

    def _body_words(self, event: Mapping[str, Any]) -> None:
        for holder in (mapping_of(event.get(table.VERBOSE)), event):
            for name, path in table.BODY_WORDS.items():
                if (value := value_at(holder, path)) is not None:
                    self.native[name] = _word(value)

    def _failure(self, event: Mapping[str, Any], at: At) -> None:
        error = read_error(event, self.http_status)
        if error is not None:
            self.fail(error, at._replace(pointer=f"{at.pointer or ''}/error") if event.get("error") else at)
        inner = event.get("error")
        for word in table.ERROR_WORDS:
            value = inner.get(word) if isinstance(inner, dict) else None
            if value:
                self.native[word] = _word(value)

    def _identity(self, event: Any) -> None:
        ident, model = event.get("id"), event.get("model")
        if self.id is None and ident and type(ident) is str:
            self.id = ident
        if self.model is None and model and type(model) is str:
            self.model = model
        self._named = self.id is not None and self.model is not None

    def _open(self, index: Any) -> GrowingChoice:
        state = self._states.get(index or 0)
        if state is None:
            state = self._states[index or 0] = GrowingChoice(index or 0, self._note)
            self._choices.append(state)
        self._states[index] = state  # a choice without an index is the first one
        return state

    def _note(self, rule: str, message: str, at: At | None = None) -> None:
        self.find(rule, message, at or self.at(), _QUIRKS.get(rule, Severity.WARNING))

    def _verbatim(self, *path: str | int) -> str | None:
        return slice_of(self.text(), *path)

    # -- the response --------------------------------------------------------------------------------------------

    @property
    def may_be_over(self) -> bool:
        """Whether `[DONE]`, an error, or a finish reason of every choice was read; choices may end far apart."""
        ended = sum(bool(choice.raw) for choice in self._choices)
        return self.is_over or self.error is not None or ended >= max(self.n, len(self._choices))

    def build(self) -> ChatResponse:
        """The response of the first choice, or of several that are pieces of one answer."""
        read = pick(self._choices, self.n)
        if len(read) > 1:
            self._note(f"{API}.choices_merged", "one answer came in several choices and is read as one",
                       read[1].raw_at or At(ExchangePart.BODY, 0, self.size))
        for call in [call for choice in read for call in (
                *earlier_calls(choice.begun, choice.first_id, choice.ends), *choice.abandoned_calls)]:
            self._note(f"{API}.second_answer", "another answer begins before the first one ended", call.at)
            call.unended = True
        stop, earlier = settle(read, self.map_word, self.stop_reasons)
        # Without an end mark, an empty list of choices, as beside the usage, is the end too.
        emptied = self._empty_at is not None and self._progress == sum(choice.progress for choice in self._choices)
        late = self.streaming and any(choice.late for choice in read)
        if late and not (self.saw_done or emptied) and stop.normalized in FINISHED:
            end = At(ExchangePart.BODY, self.size, self.size)
            stop = _tighten(stop, Stop.INTERRUPTED, None, f"{API}.goes_on", end, "no end follows")
        finished = bool(stop.raw) and all(choice.raw for choice in read)
        parts = [part for choice in read for part in choice.parts(finished)]
        self.usage = table.read_usage(self._counts, self.model)
        empty_at = self._empty_at if emptied and not stop.raw else None
        total = token_count(self._counts.get("total_tokens"))
        for rule, message, at, severity in remarks(read, parts, self.usage, empty_at, stop.normalized, total):
            self.find(rule, message, at, severity)
        others = [choice for choice in self._choices if choice not in read]
        for choice in others:
            self._other(choice)
        # The choices refer to this decoder, and the cycle is not freed while the garbage collector is paused: 4 kB for
        # each answer of a recording.
        self._choices, self._states = [], {}
        self.native |= words(read, earlier)
        self.raw = stop.raw
        refusal = join_pieces([text for choice in read for text in choice.refusal]) or None
        return self.response(parts, stop, refusal=refusal, other_choices=len(others))

    def _other(self, choice: GrowingChoice) -> None:
        """Reports how a choice that is not read ended, if it is not whole."""
        if self.map_word(choice.raw, choice.raw_at).normalized not in FINISHED:
            ended = f"ended with {choice.raw!r}" if choice.raw else "has no finish reason"
            self.find(f"{API}.other_choice", f"choice {choice.index}, which is not read, {ended}", choice.raw_at)
        for call in choice.calls.opened:
            if call.orphan:
                message = f"choice {choice.index}, which is not read, holds a piece of a call that never began"
                self.find(f"{API}.{UNREAD_CALL}", message, call.at)


def _word(value: Any) -> str:
    return value if type(value) is str else json.dumps(value)
